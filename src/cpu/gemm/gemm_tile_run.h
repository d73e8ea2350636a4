/*
 * The loop over k of tiles of two vectors of 8, four k at a time, for gemm_kernel_tile.h. With 16 registers, sums, two
 * vectors of B and one element of A fill them all: compilers read ahead, and keep sums in memory for that, which costs
 * a tenth of the time. Products are added in the order of the loop in C, so the bits are the same.
 */
#pragma once

#include <stdint.h>

typedef struct {
    const float *const *a; /* where rows begin */
    int64_t at;            /* bytes from there on */
    const float *b;
    int64_t pitch; /* bytes from k to the next one of b */
    int64_t k;     /* a multiple of 4, not 0 */
    const float *next;
    int64_t next_step, next_line; /* bytes for four k of what is brought closer, and between lines of it: 0 or 64 */
} HnTileRun;

/* k counts up in rcx, b is in rdx, next in rdi; rows begin at r8 to r13. */
#define HN_RUN_POINT(i, a) "movq " #i "*8(%%rax),%%" a "\n\taddq %%rcx,%%" a "\n\t"
#define HN_RUN_ROW(i, a, k)                              \
    "vbroadcastss " #k "*4(%%" a ",%%rcx,4),%%ymm15\n\t" \
    "vfmadd231ps %%ymm13,%%ymm15,%[p" #i "]\n\t"         \
    "vfmadd231ps %%ymm14,%%ymm15,%[q" #i "]\n\t"
/* clang-format off */
#define HN_RUN_K(b, rows) "vmovups " b ",%%ymm13\n\tvmovups 32" b ",%%ymm14\n\t" rows
#define HN_RUN_LOOP(points, ROWS)      \
    "movq (%[run]),%%rax\n\t"          \
    "movq 8(%[run]),%%rcx\n\t"         \
    points                             \
    "movq 16(%[run]),%%rdx\n\t"        \
    "movq 24(%[run]),%%rax\n\t"        \
    "movq 40(%[run]),%%rdi\n\t"        \
    "movq 48(%[run]),%%rsi\n\t"        \
    "movq 56(%[run]),%%r14\n\t"        \
    "xorl %%ecx,%%ecx\n\t"             \
    ".p2align 5\n"                     \
    "1:\n\t"                           \
    "prefetcht1 (%%rdi)\n\t"           \
    HN_RUN_K("(%%rdx)", ROWS(0))       \
    "prefetcht1 (%%rdi,%%r14)\n\t"     \
    HN_RUN_K("(%%rdx,%%rax)", ROWS(1)) \
    "leaq (%%rdx,%%rax,2),%%rdx\n\t"   \
    "prefetcht1 (%%rdi,%%r14,2)\n\t"   \
    HN_RUN_K("(%%rdx)", ROWS(2))       \
    "addq %%rsi,%%rdi\n\t"             \
    "prefetcht1 -64(%%rdi)\n\t"        \
    HN_RUN_K("(%%rdx,%%rax)", ROWS(3)) \
    "leaq (%%rdx,%%rax,2),%%rdx\n\t"   \
    "addq $4,%%rcx\n\t"                \
    "cmpq 32(%[run]),%%rcx\n\t"        \
    "jl 1b"
/* clang-format on */

#define HN_RUN_POINTS4 HN_RUN_POINT(0, "r8") HN_RUN_POINT(1, "r9") HN_RUN_POINT(2, "r10") HN_RUN_POINT(3, "r11")
#define HN_RUN_POINTS5 HN_RUN_POINTS4 HN_RUN_POINT(4, "r12")
#define HN_RUN_POINTS6 HN_RUN_POINTS5 HN_RUN_POINT(5, "r13")
#define HN_RUN_ROWS4(k) HN_RUN_ROW(0, "r8", k) HN_RUN_ROW(1, "r9", k) HN_RUN_ROW(2, "r10", k) HN_RUN_ROW(3, "r11", k)
#define HN_RUN_ROWS5(k) HN_RUN_ROWS4(k) HN_RUN_ROW(4, "r12", k)
#define HN_RUN_ROWS6(k) HN_RUN_ROWS5(k) HN_RUN_ROW(5, "r13", k)

/* Of the caller's p0, q0, p1 ... */
#define HN_RUN_SUM(i) [p##i] "+x"(p##i), [q##i] "+x"(q##i)
#define HN_RUN_SUMS4 HN_RUN_SUM(0), HN_RUN_SUM(1), HN_RUN_SUM(2), HN_RUN_SUM(3)
#define HN_RUN_SUMS5 HN_RUN_SUMS4, HN_RUN_SUM(4)
#define HN_RUN_SUMS6 HN_RUN_SUMS5, HN_RUN_SUM(5)

/* `rows` is 4, 5 or 6, as written. */
#define HN_TILE_RUN(run_, rows)                                                                                   \
    __asm__ volatile(HN_RUN_LOOP(HN_RUN_POINTS##rows, HN_RUN_ROWS##rows)                                          \
                     : HN_RUN_SUMS##rows                                                                          \
                     : [run] "r"(run_)                                                                            \
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "xmm13", \
                       "xmm14", "xmm15", "cc", "memory")
