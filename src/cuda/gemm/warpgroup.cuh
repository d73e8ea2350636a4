/*
 * Tensor cores of compute capability 9.0, for a warpgroup (four warps, the first one's number a multiple of 4): sums +=
 * A B of 64 x N results, whose operands are read from shared memory while the warps go on. Barriers in shared memory
 * and copies of tiles that fill it.
 *
 * Lines of operands are of 128 bytes, in patterns of 8 that begin at multiples of 1024: the 16 bytes number c of line r
 * are at place c ^ r % 8, which is what copies by tensor maps make. Lane l of warp w has of the sums, for each 8
 * columns, columns 2 (l % 4) and the next one of rows 16 w + l / 4 (d[0], d[1]) and 8 more (d[2], d[3]).
 */
#pragma once

#include "cuda/gemm/copies.cuh"
#include "cuda/gemm/cuda_warpgroup_args.h"

#define HN_LINE 128     /* bytes */
#define HN_PATTERN 1024 /* bytes: 8 lines */

/* --- barriers in shared memory -------------------------------------------------------------------------------------
 */

/* For so many arrivals; to be followed by hn_gates_ready() and a barrier of the block. */
__device__ inline void hn_gate_init(uint32_t gate, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gate), "r"(arrivals) : "memory");
}
__device__ inline void hn_gates_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void hn_gate_arrive(uint32_t gate)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(gate) : "memory");
}
/* Arrives, and so many bytes are to come as well. */
__device__ inline void hn_gate_expect(uint32_t gate, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gate), "r"(bytes) : "memory");
}
/* Until the phase of that parity has ended. */
__device__ inline void hn_gate_wait(uint32_t gate, int parity)
{
    asm volatile(
        "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN; }" ::"r"(gate),
        "r"(parity)
        : "memory");
}
/* What this thread wrote to shared memory may be read by what goes on beside it. */
__device__ inline void hn_written()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* --- copies --------------------------------------------------------------------------------------------------------
 */

/* The map will be used soon. */
__device__ inline void hn_map_soon(const HnCuTensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/* The map's box from element x of line y of stack z on: what is outside of the tensor becomes 0. */
__device__ inline void hn_copy_tile(uint32_t to, const HnCuTensorMap *map, uint32_t gate, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
                 "%5}], [%2];" ::"r"(to),
                 "l"(map), "r"(gate), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* --- products ------------------------------------------------------------------------------------------------------
 */

template <int N> __device__ inline void hn_registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ inline void hn_registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
/* Behind what changed registers of a product that follows. */
__device__ inline void hn_products_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void hn_products_close()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until at most N of the groups that were closed last go on. */
template <int N> __device__ inline void hn_products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* The compiler must not use them earlier. */
template <int N> __device__ inline void hn_sums_ready(float *d)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* An operand that begins there. `apart`: bytes between its parts of 64 rows of A (columns of B), where lines lie across
 * k; groups of 8 lines follow each other. */
__device__ inline uint64_t hn_operand(uint32_t at, int apart)
{
    return (uint64_t)(at >> 4) | (uint64_t)(apart >> 4) << 16 | (uint64_t)(HN_PATTERN >> 4) << 32 | (uint64_t)1 << 62;
}

#define HN_SUMS_0                                                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HN_SUMS_1                                                                                            \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
    "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HN_SUMS_2                                                                                            \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, " \
    "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HN_SUMS_3                                                                                          \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
    "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define HN_KEEP_8(d, i)                                                                                             \
    "+f"(d[i + 0]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define HN_KEEP_32(d, i) HN_KEEP_8(d, i), HN_KEEP_8(d, i + 8), HN_KEEP_8(d, i + 16), HN_KEEP_8(d, i + 24)

/* N columns. HnWarpgroup<T, N>::add<A_ACROSS, B_ACROSS>(): 16 terms of two operands in shared memory, whose lines lie
 * along k or across it; `more`: added to what is there. Of f32, HnWarpgroup<float, N>::add(): 8 terms in TF32, a from
 * registers as in cuda_mma.cuh, lines of b along k. */
template <typename T, int N> struct HnWarpgroup;

#define HN_HALF_PRODUCT(type, name, n, numbers, a, b, more, a_across, b_across, ...)                            \
    template <> struct HnWarpgroup<type, n> {                                                                   \
        template <int A_ACROSS, int B_ACROSS>                                                                   \
        __device__ static inline void add(float *d, uint64_t x, uint64_t w, int go_on)                          \
        {                                                                                                       \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #more ", 0;\n"                                    \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name " {" numbers "}, %" #a \
                         ", %" #b ", p, 1, 1, %" #a_across ", %" #b_across "; }"                                \
                         : __VA_ARGS__                                                                          \
                         : "l"(x), "l"(w), "r"(go_on), "n"(A_ACROSS), "n"(B_ACROSS));                           \
        }                                                                                                       \
    };
#define HN_HALF_PRODUCTS(type, name)                                                                               \
    HN_HALF_PRODUCT(type, name, 64, HN_SUMS_0, 32, 33, 34, 35, 36, HN_KEEP_32(d, 0))                               \
    HN_HALF_PRODUCT(type, name, 128, HN_SUMS_0 HN_SUMS_1, 64, 65, 66, 67, 68, HN_KEEP_32(d, 0), HN_KEEP_32(d, 32)) \
    HN_HALF_PRODUCT(type, name, 256, HN_SUMS_0 HN_SUMS_1 HN_SUMS_2 HN_SUMS_3, 128, 129, 130, 131, 132,             \
                    HN_KEEP_32(d, 0), HN_KEEP_32(d, 32), HN_KEEP_32(d, 64), HN_KEEP_32(d, 96))
HN_HALF_PRODUCTS(hn_f16, "f16")
HN_HALF_PRODUCTS(hn_bf16, "bf16")

#define HN_TF32_PRODUCT(n, numbers, a0, a1, a2, a3, b, more, ...)                                                  \
    template <> struct HnWarpgroup<float, n> {                                                                     \
        __device__ static inline void add(float *d, const uint32_t *x, uint64_t w, int go_on)                      \
        {                                                                                                          \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #more ", 0;\n"                                       \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" numbers "}, {%" #a0 ", %" #a1 \
                         ", %" #a2 ", %" #a3 "}, %" #b ", p, 1, 1; }"                                              \
                         : __VA_ARGS__                                                                             \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(w), "r"(go_on));                        \
        }                                                                                                          \
    };
HN_TF32_PRODUCT(64, HN_SUMS_0, 32, 33, 34, 35, 36, 37, HN_KEEP_32(d, 0))
HN_TF32_PRODUCT(128, HN_SUMS_0 HN_SUMS_1, 64, 65, 66, 67, 68, 69, HN_KEEP_32(d, 0), HN_KEEP_32(d, 32))
