#include "case.h"

static const HnCase topk[] = {
    { "f32[3,4]={0,1,2,3,4,5,6,7,8,9,10,11} !i64[1]={3}", "axis=1",
      "f32[3,3]={3,2,1,7,6,5,11,10,9} i64[3,3]={3,2,1,3,2,1,3,2,1}", .opset = 10 },
    { "f32[3,4]={0,1,2,3,4,5,6,7,11,10,9,8} i64[1]={3}", "axis=1 largest=0",
      "f32[3,3]={0,1,2,4,5,6,8,9,10} i64[3,3]={0,1,2,0,1,2,3,2,1}" },
    { "f32[2,2]={1,4,3,2}", "k=1 axis=0", "f32[1,2]={3,4} i64[1,2]={1,0}", .opset = 1 },
    { "i8[5]={2,7,7,-1,7} i64[1]={4}", "sorted=0", "i8[4]={7,7,7,2} i64[4]={1,2,4,0}" }, /* ties keep their order */
    { "u64[2]={18446744073709551615,1} i64[1]={1}", NULL, "u64[1]={18446744073709551615} i64[1]={0}" },
    { "f32[3]={1,nan,2} i64[1]={3}", NULL, "f32[3]={nan,2,1} i64[3]={1,2,0}" },
    { "f32[3]={1,nan,2} i64[1]={2}", "largest=0", "f32[2]={1,2} i64[2]={0,2}", .own = TRUE },
    { "bf16[3]={1,3,2} i64[1]={2}", NULL, "bf16[2]={3,2} i64[2]={1,2}" },
    { "f32[3] i64[1]={0}", NULL, "f32[0]={} i64[0]={}" },
    { "f32[4,33,3] i64[1]={7}", "axis=1", "f32[4,7,3] i64[4,7,3]" },
    { "f32[3] i64[1]={4}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] i64[1]={-1}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] !i64[1]={4}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] !i64[1]={9223372036854775807}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] !i64[1]={-9223372036854775808}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[0,3] !i64[1]={0}", "axis=0", .n_out = 2 },
    { "f32[2,3] !i64[1]={0}", NULL, .n_out = 2 },
    { "f32[5]={nan,-inf,nan,inf,1} !i64[1]={5}", "largest=0", .n_out = 2, .own = TRUE },
    { "f32[3]", NULL, .n_out = 2, .opset = 1, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32={3} i64[1]={1}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[3,50,7] !i64[1]={9}", "axis=1", .n_out = 2 },
    { "f32[4,300] !i64[1]={300}", "largest=0", .n_out = 2 },
    { "f32[9]={1,nan,3,1,nan,inf,3,0,-inf} !i64[1]={9}", NULL, .n_out = 2 },
    { "f32[3,2700] !i64[1]={20}", NULL, .n_out = 2 },
    { "f32[2,20000] !i64[1]={5}", "largest=0", .n_out = 2 },
    { "f32[3,1300,2] !i64[1]={1100}", "axis=1", .n_out = 2 },
};
HN_CASES(topk, "TopK", topk);
