#include "case.h"

/* Of key 0 and counter 0 Philox's published answer is 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8: the first two
 * numbers are 0xe169c58d / 2^32 = 0.880520198 and 0x9b00dbd8 / 2^32 = 0.605481854. */
static const HnCase uniform[] = {
    { "", "shape=[2] seed=0.0", "f32[2]={0.8805201,0.60548185}" },
    { "", "shape=[2] seed=0.0 low=-1.0 high=3.0", "f32[2]={2.5220804,1.4219274}" },
    { "", "shape=[1,2] seed=0.0 dtype=11", "f64[1,2]={0.880520197888614,0.605481853879921}", .rtol = 1e-9 },
    { "", "shape=[2] seed=0.0 dtype=10", "f16[2]={0.88037109,0.60546875}", .rtol = 1e-4 },
    { "", "shape=[2] seed=0.0 dtype=16", "bf16[2]={0.87890625,0.60546875}", .rtol = 1e-4 },
    { "", "shape=[3,1025]", "f32[3,1025]" },
    { "", "shape=[0,3]", "f32[0,3]={}" },
    { "", "shape=[]", "f32" },
    { "", "shape=[2] dtype=6", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "", "shape=[-1]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(randomuniform, "RandomUniform", uniform);

/* sqrt(-2 ln(1 - 0.880520197)) = 2.0613954 times the cosine and the sine of 2 pi 0.605481854 */
static const HnCase normal[] = {
    { "", "shape=[2] seed=0.0", "f32[2]={-1.62496344,-1.26834920}" },
    { "", "shape=[2] seed=0.0 mean=2.0 scale=0.5", "f32[2]={1.18751828,1.36582540}" },
    { "", "shape=[3,4,5] dtype=11", "f64[3,4,5]" },
    { "", "shape=[2] dtype=9", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(randomnormal, "RandomNormal", normal);

static const HnCase uniform_like[] = {
    { "f32[2]", "seed=0.0", "f32[2]={0.8805201,0.60548185}" },
    { "i64[2]", "seed=0.0 dtype=1", "f32[2]={0.8805201,0.60548185}" },
    { "f32[2]", "seed=0.0 dtype=11", "f64[2]={0.880520197888614,0.605481853879921}", .rtol = 1e-9, .opset = 1 },
    { "f32[0]", NULL, "f32[0]={}" },
    { "i64[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(randomuniformlike, "RandomUniformLike", uniform_like);

static const HnCase normal_like[] = {
    { "f32[2]", "seed=0.0", "f32[2]={-1.62496344,-1.26834920}" },
    { "bool[2]", "seed=0.0 dtype=1", "f32[2]={-1.62496344,-1.26834920}" },
    { "f64[7,3]", NULL, "f64[7,3]" },
    { "u8[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(randomnormallike, "RandomNormalLike", normal_like);

static const HnCase bernoulli[] = {
    { "f32[4]={0,1,0,1}", NULL, "f32[4]={0,1,0,1}" },
    { "f32[2]={0.881,0.605}", "seed=0.0", "f32[2]={1,0}" },
    { "f64[2]={0.88,0.606}", "seed=0.0 dtype=9", "bool[2]={0,1}" },
    { "f32[2]={0.88,0.606}", "seed=0.0 dtype=7", "i64[2]={0,1}", .opset = 15 },
    { "f32[2]={nan,1}", NULL, "f32[2]={0,1}" },
    { "f32[2]", "dtype=8", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(bernoulli, "Bernoulli", bernoulli);

static const HnCase multinomial[] = {
    /* shares 0.1, 0.5, 0.4 of 0.8805 and 0.6055 */
    { "f32[1,3]={-2.3025851,-0.6931472,-0.9162907}", "seed=0.0 sample_size=2", "i32[1,2]={2,2}" },
    { "f32[1,3]={-0.6931472,-2.3025851,-0.9162907}", "seed=0.0 sample_size=2", "i32[1,2]={2,2}" },
    { "f32[1,2]={-0.3566749,-1.2039728}", "seed=0.0 sample_size=2 dtype=7", "i64[1,2]={1,0}" },
    { "f64[2,3]={-inf,0,-inf,0,-inf,-inf}", "sample_size=3", "i32[2,3]={1,1,1,0,0,0}" },
    { "f32[0,3]", NULL, "i32[0,1]={}", .opset = 7 },
    { "f32[1,2]={-inf,-inf}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,2]={nan,0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,0]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,3]", "dtype=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,3]", "sample_size=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(multinomial, "Multinomial", multinomial);
