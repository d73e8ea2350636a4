#pragma once

#include "cuda/elementwise/cuda_end_args.h"
#include "cuda/conv/cuda_window_args.h"
#include "cuda/move/cuda_divide.h"

#define HN_CUDA_LAST_THREADS 128

/* Values channels last (core/cuda_layout.h): a thread for each unit of 16 bytes of channels of a pixel of y. */
typedef struct {
    uint64_t x, y;
    uint32_t n;               /* threads */
    int32_t channels;         /* of both */
    int64_t x_pitch, y_pitch; /* elements from a pixel to the next */
    HnCudaWindowAxis height, width;
    HnDivisor units, of_width, of_height; /* of a pixel; of y, of_width of pieces of COLUMNS pixels */
} HnCudaLast;

typedef struct {
    HnCudaLast of;
    int32_t count_pad;
} HnCudaPoolLastArgs;

/* Places of x that rows and columns of y read. */
typedef struct {
    HnCudaLast of;
    uint64_t row_table, column_table; /* i32 */
} HnCudaNearestLastArgs;

#define HN_CUDA_DEPTHWISE_COLUMNS 4 /* of a thread */

/* w: [taps][channels, with those that fill the last unit] */
typedef struct {
    HnCudaLast of;
    uint64_t w, bias;
    HnCudaEnd end;
} HnCudaDepthwiseLastArgs;

#define HN_CUDA_GLOBAL_UNITS 8  /* of a block, side by side, ... */
#define HN_CUDA_GLOBAL_LINES 16 /* ... and threads that share the pixels of each */
#define HN_CUDA_GLOBAL_LEAST 64 /* pixels of a part, at least */

/* y [images][channels] of x [images][pixels][pitch] */
typedef struct {
    uint64_t x, y;
    uint64_t parts, done; /* f32 [block][splits][channels of it], and how many of them there are, 0 at first */
    int64_t pixels, pitch, y_pitch, share; /* ...; pixels of a part */
    int32_t channels, across, splits;      /* ...; blocks of an image */
    int32_t mean;                          /* else the largest */
} HnCudaGlobalLastArgs;
