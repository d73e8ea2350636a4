/*
 * Parameters of LinearRegressor and LinearClassifier, for records and passes.
 */
#pragma once

#include "op/ml.h"

typedef struct {
    int64_t targets, features;
    const float *coefficients; /* [targets, features] */
    const float *intercepts;   /* [targets]; NULL: 0 */
    HnMlTransform transform;
    HnMlLabels labels; /* of a classifier; may have none where there is one target: 0 and 1 */
    gboolean pair;     /* one score stands for two classes */
} HnMlLinear;
