/*
 * What the files of hone-quantize share.
 */
#pragma once

#include "cli/report.h"
#include "common.h"
#include "quant/calibrate.h"
#include "quant/range.h"
#include "quant/search.h"

typedef struct {
    char *output, *calib, *ranges, *write_ranges, *method, *mode, *metric, *target, *activations, *exclude, *external;
    char **dim, **shapes;
    int samples, bits, block;
    double max_drop, min_speedup, percentile;
    char *max_drop_text;
    gboolean per_tensor, symmetric, analyze, force, allow_larger, speed_only;
} QuantizeParams;

typedef struct {
    HnContext *ctx;
    const QuantizeParams *p;
    const char *path;
    GBytes *file;     /* of a model from stdin */
    GBytes *prepared; /* the model that plans are carried out on */
    const HnBackend *backend;
    HnShapes *shapes;
    HnMetric metric;
    gboolean metric_set, weights_only;
    double max_drop;
    HnModel *f32; /* prepared */
    HnData *data;
    int64_t calib, held_first, held; /* samples to calibrate with, and to score with */
    HnQuantPlan *base;
    HnCalibMethod method;
    HnScorer *scorer;
    HnSearchOptions so;
    HnSearch search;
    HnModel *result;
    HnQuantLog log;
    gboolean has_gain;
    HnGain gain;
    guint64 file_before, file_after;
    gsize forecast; /* bytes of calibration */
} Quantize;

gboolean quantize_report(const Quantize *q, GError **error);
