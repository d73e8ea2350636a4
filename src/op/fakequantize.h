/*
 * FakeQuantize (domain "hone"): what QuantizeLinear and DequantizeLinear behind one another make of numbers, as
 * training with quantization in place computes it, and its gradient. See fakequantize.c for the formulas.
 */
#pragma once

#include "ir/build.h"
#include "op/quantize.h"

G_BEGIN_DECLS

/* Of FakeQuantize and FakeQuantizeGrad. */
typedef struct {
    int64_t axis, block;    /* as those of QuantizeLinear */
    double lowest, highest; /* of the integers */
    gboolean smooth;        /* numbers are clipped, and not rounded: what the gradient is the derivative of */
    gboolean gain;          /* the gradient of a scale is multiplied by 1 / sqrt(elements * levels) */
    gboolean samples;       /* axis 0 of x counts samples, which are no elements of that */
    gboolean stays;         /* the scale has no gradient */
} HnFakeQuantize;

/* x as [outer, size, inner]: the scale of element [o, k, i] is number (o * scales + k / block) * inner + i where each
 * block has its own, k / block where each index of the axis has, else 0. */
typedef struct {
    int64_t outer, size, inner, scales, block;
    gboolean blocked;
} HnFakeGrid;

/* FALSE: the scale does not fit x. */
gboolean hn_fake_grid(const HnFakeQuantize *p, const HnTensor *x, const HnTensor *scale, HnFakeGrid *g);
/* What the gradient of a scale of that zero point is multiplied by, of n elements that have it (K. S. Esser et al.,
 * 2020, section 2.2; levels are those on the longer side of the zero point). */
double hn_fake_gain(const HnFakeQuantize *p, double zero, double n);
/* Elements that have one scale, for hn_fake_gain(). */
double hn_fake_elements(const HnFakeQuantize *p, const HnTensor *x, const HnFakeGrid *g);

/* Range of an integer type. */
void hn_int_range(HnDtype dtype, double *lowest, double *highest);

/* --- for training ------------------------------------------------------------------------------------------------- */

typedef struct {
    HnDtype dtype; /* of the integers */
    int axis;      /* -1: one scale */
    int64_t block;
    gboolean stays, samples;
} HnFakeForm;

/* scale * (round(x / scale) held within the range of the type); zero: a tensor of any type like the scale, NULL: 0. */
HnValue *hn_build_fake_quantize(const HnBuild *b, const HnFakeForm *form, HnValue *x, HnValue *scale,
                                const HnTensor *zero);
/* The integers of the grid that are next to x: of x's dims. NULL: no memory. */
HnTensor *hn_fake_integers(const HnFakeForm *form, const HnTensor *x, const HnTensor *scale, const HnTensor *zero,
                           HnBudget *budget, GError **error);
/* And what integers stand for. */
HnTensor *hn_fake_numbers(const HnFakeForm *form, const HnTensor *q, const HnTensor *scale, const HnTensor *zero,
                          HnBudget *budget, GError **error);

G_END_DECLS
