#include "case.h"

static const HnCase argmax[] = {
    { "f32[2,2]={2,1,3,10}", NULL, "i64[1,2]={1,1}", .opset = 1 },
    { "f32[2,2]={2,2,3,10}", "axis=-1 keepdims=0", "i64[2]={0,1}", .opset = 11 },
    { "i32[2,3]={2,2,1,5,9,9}", "axis=1 select_last_index=1", "i64[2,1]={1,2}" },
    { "f32[3]={1,nan,5}", "keepdims=0", "i64={1}" },
    { "u64[2]={1,18446744073709551615}", NULL, "i64[1]={1}" },
    { "f32[3,7,5]", "axis=1", "i64[3,1,5]" },
    { "f32[0,2]", "axis=1", "i64[0,1]={}" },
    { "f32[0,2]", "axis=0", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2]", "axis=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "bool[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[5,1000]", "axis=1" },
    { "f32[3,9,50]", "axis=1 keepdims=0" },
    { "f32[4,300]@0:1", "axis=1 select_last_index=1" },
    { "f32[5]={0,-0.0,nan,nan,1}", "select_last_index=1", "i64[1]={3}" },
    { "f32[2,21,300]", "axis=1" },
    { "i32[3,21,40]@0:3", "axis=1" },
    { "f32[3,40,21]@-1:1", "axis=1 select_last_index=1" },
    { "f32[2,3,4]={0,nan,1,nan,nan,0,1,nan,nan,1,1,2,0,-0,7,7,-0,0,nan,7,0,0,7,8}", "axis=1",
      "i64[2,1,4]={1,0,0,0,0,0,1,2}" },
    { "f32[2,3,4]={0,nan,1,nan,nan,0,1,nan,nan,1,1,2,0,-0,7,7,-0,0,nan,7,0,0,7,8}", "axis=1 select_last_index=1",
      "i64[2,1,4]={2,0,2,1,2,2,1,2}" },
    { "f32[3,1,517]", "axis=2" },
    { "f32[9,517]@-1:1:4", "axis=1" },
    { "f32[9,517]@-1:1:4", "axis=1 select_last_index=1" },
    { "f32[3,21,150]@-1:1:4", "axis=1 select_last_index=1" },
};
HN_CASES(argmax, "ArgMax", argmax);

static const HnCase argmin[] = {
    { "f32[2,2]={2,1,3,10}", NULL, "i64[1,2]={0,0}", .opset = 1 },
    { "i8[2,2]={2,2,3,-10}", "axis=1 keepdims=0 select_last_index=1", "i64[2]={1,1}" },
    { "f32[3]={1,nan,-5}", NULL, "i64[1]={1}" },
    { "f16[3]={1,-2,-2}", NULL, "i64[1]={1}" },
    { "f32[7,130,2]", "axis=1" },
    { "f32[4]={3,-0.0,0,5}", NULL, "i64[1]={1}" },
    { "f32[9,517]@-1:1:4", "axis=1" },
    { "f32[3,21,150]@-1:1:4", "axis=1 select_last_index=1" },
};
HN_CASES(argmin, "ArgMin", argmin);
