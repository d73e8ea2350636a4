/*
 * Units of channels chosen so that integers serve all channels of a tensor alike: what a tensor of activations has one
 * scale for, weights can have many.
 *
 *   from weights   M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019:
 *                  the geometric mean of what makes a channel and of what reads it
 *   from samples   G. Xiao et al., "SmoothQuant", 2022: activations^alpha / weights^beta, with the alpha and beta for
 *                  each set of tensors that share channels that promise the least noise behind the products that
 *                  read them
 *
 * What the model computes in f32 stays, except where a Clip's bound is beyond all that was seen.
 */
#pragma once

#include "quant/quant_plan.h"
#include "check/capture.h"

G_BEGIN_DECLS

typedef struct {
    guint channels, free; /* that products read; classes of them that may have another unit */
    guint sets;           /* that got other units */
    double noise;         /* promised: mean of noise behind products, over that before; geometric */
} HnEqualizeLog;

/* m, a fresh copy with types, gets other weights, good for p's options. Errors: those of
 * hn_capture_run(), BUDGET. */
gboolean hn_quant_equalize(const HnQuantPlan *p, HnModel *m, gboolean from_samples, const HnCaptureOptions *o,
                           HnEqualizeLog *log, GError **error);

G_END_DECLS
