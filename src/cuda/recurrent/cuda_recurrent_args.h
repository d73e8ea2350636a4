#pragma once

#include <stdint.h>

/* A function of gates, by the order of HnGateFunction. */
typedef struct {
    int32_t f;
    float alpha, beta;
} HnCudaGate;

typedef struct {
    int64_t steps, batch, directions, inputs, hidden;
    int64_t width, slots; /* elements of a sample's gates: that weights make, that are kept */
    int32_t batch_first, backwards, linear_before_reset, input_forget; /* backwards: the first direction */
    float clip;
    int32_t functions; /* of a direction */
    HnCudaGate act[6];
} HnCudaLayer;

/* Sums in f32, in scratch memory: xw [X's rows][D][width]; h twice, c, z, rh: [D][B][H]. lens: i32[B], 0: all are
 * whole. All other addresses are of elements of the layer's type, 0 where absent. */
typedef struct {
    HnCudaLayer layer;
    uint64_t r, bias, peep, h0, c0;
    uint64_t y, y_h, y_c, gates, cells;
    uint64_t xw, h[2], c, z, rh, lens;
    uint64_t rounded;           /* f32 [D][B][H] that R multiplies instead of the state; 0: the state itself */
    int64_t first, end;         /* steps ... */
    int32_t first_pass, passes; /* ... and passes [first_pass, passes) of each */
    uint64_t x, w;              /* where ... */
    int32_t direct;             /* ... steps multiply X by themselves, and begin with h0 and c0 */
    int64_t groups;             /* blocks that share the units of a tile of samples */
} HnCudaRecurrentArgs;

#define HN_CUDA_LENS 256

typedef struct {
    uint64_t to; /* i32 */
    int32_t n, lens[HN_CUDA_LENS];
} HnCudaLensArgs;

/* c [m][n] = sum over k of a(m, k) b(k, n); a's k runs through blocks of `each`, a_block apart. */
typedef struct {
    uint64_t a, b, c;
    int64_t m, n, k;
    int64_t a_m, a_k, a_block, each;
    int64_t b_k, b_n, c_m;
} HnCudaSumsArgs;

/* Rows of n elements become numbers that bytes of DynamicQuantizeLinear stand for: each block has one range. */
typedef struct {
    uint64_t x, y; /* f32 [rows][n] */
    int64_t n;
} HnCudaRoundArgs;

/* Gradients. dg, before, reset: f32 [X's rows][D][slots or H]; dh, dc, carry: f32 [D][B][H]. */
typedef struct {
    HnCudaLayer layer;
    int32_t kind;   /* HnRecurrentKind */
    int32_t resets; /* the launch is of what is reset before R */
    uint64_t r, peep, y, gates, cells, dy, dy_h, dy_c, h0, c0;
    uint64_t out_h, out_c;
    uint64_t dg, before, reset, dh, dc, carry, lens;
    int64_t step; /* from 0 on, in the order of the walk; layer.steps: only what is left is written */
} HnCudaRecurrentGradArgs;

/* Sums over rows: of gates, and for peepholes; db, dp: 0 where not wanted. */
typedef struct {
    HnCudaLayer layer;
    uint64_t dg, cells, c0, lens, db, dp;
} HnCudaRecurrentRowsArgs;
