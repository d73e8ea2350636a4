#include "case.h"

static const HnCase expand[] = {
    { "f32[3,1]={1,2,3} !i64[2]={3,2}", NULL, "f32[3,2]={1,1,2,2,3,3}" },
    { "i16[2]={1,2} !i64[2]={2,1}", NULL, "i16[2,2]={1,2,1,2}", .opset = 8 },
    { "f32[3,1]={1,2,3} i64[3]={2,1,1}", NULL, "f32[2,3,1]={1,2,3,1,2,3}" },
    { "bool={1} i64[1]={3}", NULL, "bool[3]={1,1,1}" },
    { "f32[2,1,3] !i64[4]={2,1,4,3}" },
    { "f32[2] i64[0]={}", NULL, "f32[2]" },
    { "f32[1,2] i64[2]={0,2}", NULL, "f32[0,2]" },
    { "f32[3] i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] !i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1] !i64[2]={4611686018427387904,4}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1] !i64[1]={4611686018427387904}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,0] !i64[2]={4611686018427387904,1}", NULL, "f32[4611686018427387904,0]" },
    { "!i64[1]={3} !i64[1]={-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1] i64[2]={4611686018427387904,4}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(expand, "Expand", expand);

static const HnCase tile[] = {
    { "f32[2,2]={0,1,2,3} !i64[2]={2,2}", NULL, "f32[4,4]={0,1,0,1,2,3,2,3,0,1,0,1,2,3,2,3}" },
    { "u8[3]={1,2,3} i64[1]={2}", NULL, "u8[6]={1,2,3,1,2,3}", .opset = 6 },
    { "f32[1,2]={1,2} !f32[1]={3} !f32[1]={0}", NULL, "f32[3,2]={1,2,1,2,1,2}", .opset = 1 },
    { "f32[1,2]={1,2} f32={2} f32={1}", NULL, "f32[1,4]={1,2,1,2}", .opset = 5 },
    { "f32[2,3,4] !i64[3]={1,2,3}" },
    { "f32[2,3] i64[2]={0,2}", NULL, "f32[0,6]" },
    { "i64={4} i64[0]={}", NULL, "i64={4}" },
    { "f32[2,3] i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[1]={-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2] !i64[1]={-9223372036854775808}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[0] !i64[1]={9223372036854775807}", NULL, "f32[0]" },
    { "f32[4] !i64[1]={4611686018427387904}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[4] i64[1]={4611686018427387904}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
};
HN_CASES(tile, "Tile", tile);
