/*
 * Half vectors of AVX-512, for 8, 24 ... channels: some processors compute two in the time of a whole one.
 */
#include "cpu/conv/conv_few.h"

#define HN_LEVEL avx2
#define HALF_NAME(name) name##_half
#define FEW_NAME HALF_NAME
#define FEW_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define FEW_MANY 1
#include "cpu/conv/conv_few_loops.h"

const HnFewFn (*const hn_few_half)[3][HN_FEW_SIZES] = few_fns_half;
