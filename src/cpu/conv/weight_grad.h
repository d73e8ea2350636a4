/*
 * What the kernels of ConvWeightGrad share: the gradient of a convolution's weights, of f32 tensors channels last.
 *
 * The sum over all pixels is cut into parts by shapes alone. Each part has sums of its own, which are added pair by
 * pair at the end: any number of threads gives the same bits.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "op/conv.h"

G_BEGIN_DECLS

extern const HnKernel hn_cpu_weight_grad_depthwise, hn_cpu_weight_grad_few, hn_cpu_weight_grad_winograd;
extern const HnKernel hn_cpu_source_grad_few; /* of ConvTranspose */

/* The convolution of a step, dy's sizes as its results' (which may be fewer than the windows that fit), and its spatial
 * axes as depth, height and width. NULL: fine; else the reason against it. */
const char *hn_weight_grad_plan(const HnStep *s, HnConvPlan *plan, HnWindowAxis *axis);

/* Of pixels that are summed up: `lines` adjacent lines of outputs, each in `across` pieces. */
typedef struct {
    int64_t lines, across;
    int64_t parts; /* a power of 2 */
} HnWeightGradCut;

/* flops: of all; bytes: of the source and of dy; sums: floats of one part. Pieces have about `pixels` pixels at most.
 */
HnWeightGradCut hn_weight_grad_cut(const HnConvPlan *plan, const HnWindowAxis *axis, int64_t pixels, double bytes,
                                   double flops, int64_t sums);

/* Parts of so many units: not more than have some work each, and whose sums are small beside what they are made of. */
int64_t hn_weight_grad_parts(int64_t units, double bytes, double flops, int64_t sums);

/* Adds elements [from, to) of all parts, which lie `pitch` floats apart, into those of part 0. */
void hn_weight_grad_join(float *sums, int64_t parts, int64_t pitch, int64_t from, int64_t to);

/* The first of row[i] ... row[n - 1] that is not 0; n: none. */
int64_t hn_weight_grad_next(const float *row, int64_t i, int64_t n);

/* n pixels of a line from column `first` on, `channels` of each, side by side; zeros where the line, of `in` pixels
 * that lie `pitch` apart, has none. line NULL: zeros alone. */
void hn_weight_grad_copy(float *to, int64_t channels, const float *line, int64_t pitch, int64_t in, int64_t first,
                         int64_t n);

/* Products of pixels: c[i][j] += (or =) sum over lines and pixels of a[i] * b[j]. */
typedef struct {
    const float *const *a, *const *b; /* [lines]: the first pixels */
    int64_t a_at, b_at;               /* floats to be added to each pointer */
    int64_t lines, n;                 /* n pixels in each line */
    int64_t a_step, b_step;           /* floats from pixel to pixel */
    float *c;                         /* rows of whole vectors, c_pitch apart */
    int64_t c_pitch;
    int cols;       /* of b, at most two vectors */
    gboolean fresh; /* c holds nothing yet: 0 */
} HnWeightGradTile;

typedef void (*HnWeightGradFn)(const HnWeightGradTile *t);

/* Products of any size go in tiles: so many, */
int64_t hn_weight_grad_tiles(int64_t rows, int64_t cols);
/* ... of which tiles [from, to) are computed. t: a_at, b_at and c of row 0 and column 0; c as wide as
 * HN_WEIGHT_GRAD_ROUND says. */
void hn_weight_grad_product(const HnWeightGradTile *t, int64_t rows, int64_t cols, int64_t from, int64_t to);
/* Cycles that a pixel takes in them. */
double hn_weight_grad_cycles(int64_t rows, int64_t cols);

#define HN_WEIGHT_GRAD_ROWS 12  /* of a tile, at most */
#define HN_WEIGHT_GRAD_FEW 8    /* channels below which the taps of a kernel row are one row of a product */
#define HN_WEIGHT_GRAD_ROUND 16 /* floats: whole vectors of any level */
#define HN_WEIGHT_GRAD_TAPS 9   /* of a depthwise tile, at most */

/* One vector of channels: sums[k * pitch] += sum over lines and pixels of x[off[k]] * dy, for a few taps k. */
typedef struct {
    const float *x, *dy;
    const int64_t *off; /* [taps] */
    int64_t lines, n, x_line, y_line, x_step, y_step;
    float *sums;
    int64_t pitch;
    int some; /* lanes that exist; 0: all */
} HnWeightGradDepth;

typedef void (*HnWeightGradDepthFn)(const HnWeightGradDepth *t);

/* to[j] += sum over n rows of from[i * pitch + j], j < cols */
typedef void (*HnWeightGradSumFn)(float *to, const float *from, int64_t pitch, int64_t n, int64_t cols);
HnWeightGradSumFn hn_weight_grad_sum(void);

G_END_DECLS
