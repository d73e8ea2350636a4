/*
 * Few columns of the panels of AVX-512: half of its vectors, of which some processors compute two in the time of a
 * whole one.
 */
#include "cpu/gemm/gemm_kernel.h"

#define HN_LEVEL avx2
#define NARROW_NAME(name) name##_narrow
#define TILE_NAME NARROW_NAME
#define TILE_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define TILE_FMA HN_VFMA
#define TILE_MANY 1
#define TILE_PITCH 32
#include "cpu/gemm/gemm_kernel_tile.h"

const HnGemmKernelFn *const hn_gemm_kernel_narrow = fns_narrow[0];
