#include "case.h"

/* Elements 0 to 3 of Philox's published answer for counter 0 and key 0: 0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
 * 0x9b00dbd8, of which the first one is below a half, and the last one below 0.625. */
static const HnCase traindropout[] = {
    { "f32[4]={1,2,3,4} i64[2]={0,0}", "ratio=0.5", "f32[4]={0,4,6,8}" },
    { "f32[4]={1,2,-3,4} i64[2]={0,0}", "ratio=0.625", "f32[4]={0,5.3333333,-8,0}" },
    { "f32[4]={1,2,3,4} i64[2]={0,0}", "ratio=0.0", "f32[4]={1,2,3,4}" },
    { "f32[4]={inf,nan,-inf,nan} i64[2]={0,0}", "ratio=0.625", "f32[4]={0,nan,-inf,0}" },
    { "f32[3,5,7] i64[2]={7,3}", "ratio=0.3 salt=4" },
    { "f32[300,1001] i64[2]={-7,4294967301}", "ratio=0.1 salt=4294967295" },
    { "f32[257] i64[2]={81985529216486895,2}", "ratio=0.9" },
    { "f32 i64[2]={1,2}", "salt=1" },
    { "f32[0] i64[2]={1,2}", NULL, "f32[0]={}" },
    { "f32[2] i64[3]={1,2,3}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[2]={1,2}", "ratio=1.0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] i64[2]={1,2}", "salt=-1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(traindropout, "TrainDropout", traindropout);
