/*
 * What a quantized model takes at least, before anything is calibrated, tried or timed.
 */
#pragma once

#include "quant/quant_plan.h"

G_BEGIN_DECLS

/* Bytes that no file has less of that is made of m, which takes `bytes` as a file, by any plan with some of the forms
 * of `base`. The names of further nodes are not counted. */
guint64 hn_quant_least_bytes(const HnQuantPlan *base, HnModel *m, guint64 bytes);

G_END_DECLS
