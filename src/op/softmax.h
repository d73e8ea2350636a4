/*
 * Parameters of Softmax, LogSoftmax and Hardmax, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis;
    gboolean flatten; /* rows reach from axis to the end */
} HnSoftmax;

/* Of SoftmaxGrad. */
typedef struct {
    int64_t axis;
    gboolean log; /* of LogSoftmax */
} HnSoftmaxGrad;
