/*
 * Parameters of Scaler, Imputer, Binarizer and Normalizer, for records, backends and passes.
 */
#pragma once

#include "op/ml.h"

typedef struct {
    int64_t n;                   /* 1, or as many as there are features */
    const float *offset, *scale; /* NULL: 0, 1 */
} HnScaler;

/* Of the lists for floats or for integers one is empty. */
typedef struct {
    int64_t n, n_ints;
    const float *values;
    const int64_t *ints;
    float replaced;
    int64_t replaced_int;
} HnImputer;

typedef struct {
    float threshold;
} HnBinarizer;

typedef enum { HN_NORM_MAX, HN_NORM_L1, HN_NORM_L2 } HnMlNorm;

typedef struct {
    HnMlNorm norm;
} HnNormalizer;
