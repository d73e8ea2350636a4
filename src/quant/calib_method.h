/*
 * The range of a value that its integers cover, chosen from a histogram.
 *
 *   minmax      all that was seen
 *   percentile  all but a share of it, cut off where the numbers are largest
 *   entropy     the cut whose distribution loses least information when it is quantized: Kullback-Leibler divergence,
 *               as S. Migacz describes it, "8-bit Inference with TensorRT", 2017
 *   mse         the least mean square error, what is cut off included
 *
 * Exact zeros, which every quantizer of this project represents, have no say in entropy and mse. Masks, infinities and
 * NaN (histogram.h) have none in anything.
 */
#pragma once

#include "check/histogram.h"
#include "quant/quant_plan.h"

G_BEGIN_DECLS

typedef enum { HN_CALIB_MINMAX, HN_CALIB_PERCENTILE, HN_CALIB_ENTROPY, HN_CALIB_MSE, HN_CALIB_METHODS } HnCalibMethod;

const char *hn_calib_method_name(HnCalibMethod method); /* "minmax", "percentile", "entropy", "mse" */
gboolean hn_calib_method_parse(const char *name, HnCalibMethod *method, GError **error);

/* Integers of 2 to 16 bits. */
typedef struct {
    int bits;
    gboolean is_signed;
    gboolean symmetric; /* the zero point is 0, or 2^(bits - 1) of unsigned ones, and the lowest integer is not used */
} HnQuantizer;

HnQuantizer hn_quantizer_of(const HnQuantOptions *o);

/*
 * percentile: 50 to 100, of that method alone; 99.9 keeps all but a thousandth. The span need not hold 0:
 * hn_quant_step() sees to that. FALSE: nothing was seen, *span is [0, 0].
 */
gboolean hn_quant_span_of(const HnHistogram *h, HnCalibMethod method, double percentile, const HnQuantizer *q,
                          HnQuantSpan *span);

/* The range that n's output has by definition (HN_Q_FIXED_RANGE); FALSE: it has none. */
gboolean hn_quant_span_fixed(const HnNode *n, HnQuantSpan *span);

/* Scale and zero point: number = scale * (integer - zero). The span is widened to hold 0, which is exact. The scale is
 * never 0, subnormal or infinite; it is 1 where the span is [0, 0]. */
void hn_quant_step(const HnQuantSpan *span, const HnQuantizer *q, float *scale, int *zero);

G_END_DECLS
