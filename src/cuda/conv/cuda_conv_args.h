#pragma once

#include "cuda/conv/cuda_window_args.h"

/*
 * A convolution: x [batch][groups * in_channels][plane], w [groups * out_channels][in_channels][taps], y
 * [batch][groups * out_channels][plane]. A transposed one has w [groups * in_channels][out_channels][taps], and the
 * axes of the convolution that it is the adjoint of: axis.out is the size of x, axis.in that of y. Of a gradient of
 * weights y is the gradient of the result, and w what is computed.
 *
 * As a product of matrices: rows are output channels, columns are pixels, and what is summed are taps; of a gradient
 * columns are taps, and pixels are summed.
 */
typedef struct {
    uint64_t x, w, bias, y;
    uint64_t parts; /* f32 [splits][all of the result]: sums of parts of the terms; 0: there is one part */
    HnCudaWindowAxis axis[HN_CUDA_SPATIAL];
    int64_t batch, x_plane, y_plane;
    int64_t w_out, w_in; /* elements between weights of neighbouring channels */
    int64_t result;      /* elements of it */
    int64_t terms;       /* of a part, at most */
    int64_t columns;     /* tiles of them */
    int32_t rows, splits;
    int32_t groups, in_channels, out_channels; /* channels of a group */
    int32_t transposed;
    int32_t phases[HN_CUDA_SPATIAL]; /* transposed: remainders that outputs have modulo the stride */
} HnCudaConvArgs;

/* y [n], the sum of parts [splits][n] and bias [channels]; plane: elements of a channel */
typedef struct {
    uint64_t parts, bias, y;
    int64_t n, plane;
    int32_t splits, channels;
} HnCudaConvSumArgs;

/* db [channels], the sums of dy [batch][channels][plane] */
typedef struct {
    uint64_t dy, db;
    int64_t batch, plane;
    int32_t channels;
} HnCudaConvBiasArgs;
