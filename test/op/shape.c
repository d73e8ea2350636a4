#include "case.h"

static const HnCase shape[] = {
    { "f32[2,3,4]", NULL, "i64[3]={2,3,4}", .opset = 1 },
    { "f32[2,3,4]", "start=-1", "i64[1]={4}", .opset = 15 },
    { "i8[2,3,4]", "end=-1", "i64[2]={2,3}" },
    { "f32[2,3,4]", "start=1 end=2", "i64[1]={3}" },
    { "f32[2,3,4]", "start=-9 end=99", "i64[3]={2,3,4}" },
    { "f32[2,3,4]", "start=2 end=1", "i64[0]={}" },
    { "bool={1}", NULL, "i64[0]={}" },
    { "f16[0,7]", NULL, "i64[2]={0,7}" },
};
HN_CASES(shape, "Shape", shape);

static const HnCase size[] = {
    { "f32[2,3,4]", NULL, "i64={24}", .opset = 1 },
    { "u8={1}", NULL, "i64={1}" },
    { "bf16[3,0]", NULL, "i64={0}" },
};
HN_CASES(size, "Size", size);
