/*
 * Parameters of QuantizeLinear and DequantizeLinear, for their records and for backends; and the step between numbers
 * and integers that such a node has, for whoever computes with the integers.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean per_axis; /* may the scale have more than one element? */
    int64_t axis, block;
    HnDtype to;        /* HN_UNDEFINED: as the zero point or scale says */
    HnDtype precision; /* HN_UNDEFINED: that of the scale */
    gboolean saturate;
} HnQuantize;

/* Quantization parameters: number = scale * (integer - zero), for all elements, each index of an axis of q, or each
 * block of them. */
typedef struct {
    gboolean back;               /* DequantizeLinear: numbers are made of integers */
    HnValue *real, *q;           /* the numbers and the integers */
    HnValue *scale_of, *zero_of; /* zero_of, zero: NULL where absent, which is 0 */
    HnTensor *scale, *zero;      /* as many of one as of the other */
    int axis;                    /* that scales belong to, counted from the front; -1: there is one scale */
    int64_t block;               /* 0: a scale for each index of the axis */
} HnQParams;

/* Elements of v where they are known; NULL: they are not. */
typedef HnTensor *(*HnReadTensor)(gconstpointer of, HnValue *v);

/*
 * Those of n, which is bound. Elements are known where `read` says so; NULL: those of the file's weights. FALSE: n is
 * NULL, no QuantizeLinear and no DequantizeLinear; or its parameters are not known, not f32, or of no shape that
 * belongs together.
 */
gboolean hn_op_qparams(const HnNode *n, HnReadTensor read, gconstpointer of, HnQParams *p);

/* The step that DynamicQuantizeLinear finds for numbers within [lo, hi], lo <= 0 <= hi. */
float hn_dynamic_step(float lo, float hi, int *zero);
/* Their gradients. That of integers is a float: what stands for them. */
void hn_quantize_grad(struct HnTape *t);
void hn_dequantize_grad(struct HnTape *t);
