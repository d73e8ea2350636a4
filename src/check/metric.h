/*
 * How good a classifier's answers are.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

/* "top1", "top5": k in 1 to 999. Errors: USAGE. */
gboolean hn_metric_parse(const char *name, int *k, GError **error);

/*
 * Scores [..., C] hold a row of C for each of the labels (integers, any shape): adds to *right the rows where fewer
 * than k scores rank before the label's, to *total all rows. Of equal scores the first ranks first, NaN ranks last.
 * Errors: TYPE, SHAPE.
 */
gboolean hn_metric_topk(const HnTensor *scores, const HnTensor *labels, int k, int64_t *right, int64_t *total,
                        GError **error);

G_END_DECLS
