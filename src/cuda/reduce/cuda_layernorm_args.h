#pragma once

#include <stdint.h>

/* x and y: [rows][cols]; scale and bias, which may be absent: [cols]; mean and inv, too: [rows] */
typedef struct {
    uint64_t x, scale, bias, y, mean, inv;
    int64_t rows, cols;
    float epsilon;
    int32_t centre;                   /* the mean is taken off */
    int32_t weight_type, moment_type; /* HN_ELEMENT_*: of scale, bias and y; of mean and inv */
    int32_t vector;                   /* four elements at a time */
} HnCudaLayerNormArgs;

/* dy, x, dx: [rows][cols]; scale, dscale, dbias: [cols]; dscale and dbias may be absent */
typedef struct {
    uint64_t dy, x, scale, dx, dscale, dbias;
    uint64_t moments; /* f32[rows, 2]: mean and 1 / deviation */
    uint64_t partial; /* f32[2, parts, cols]: sums of dscale and dbias */
    int64_t rows, cols, parts, part;
    float epsilon;
    int32_t centred;
} HnCudaLayerNormGradArgs;
