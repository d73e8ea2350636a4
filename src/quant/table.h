/*
 * Calibration tables: ranges of a model's values as JSON, for a later run and for people.
 *
 *     { "schema": "hone.calibration/1", "data": "calib/", "samples": 16, "method": "percentile", "percentile": 99.99,
 *       "bits": 8, "signed": false, "symmetric": false,
 *       "tensors": { "conv1_out": { "lo": -0.25, "hi": 6.1, "min": -0.25, "max": 40.7, "elements": 1204224,
 *                                   "zeros": 17, "nan": 0, "infinite": 0, "masks": 0 }, ... } }
 *
 * Tensors stand in the order of the model, those that no sample had elements for are left out. Same samples, same
 * table.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "check/calibrate.h"
#include "quant/calib_method.h"

G_BEGIN_DECLS

typedef struct {
    HnCalibMethod method;
    double percentile; /* of that method */
    HnQuantizer quantizer;
    const char *data; /* where the samples came from; NULL: not said */
} HnCalibTableOptions;

/* The span that samples suggest for a value: hn_quant_span_of() of its histogram, and what reaches as far as they do
 * (minmax, percentile) beyond that (hn_spread_widen()). FALSE: nothing was seen. */
gboolean hn_calib_span(const HnCalibrator *c, const char *value, HnCalibMethod method, double percentile,
                       const HnQuantizer *q, HnQuantSpan *span);

JsonNode *hn_calib_table(const HnCalibrator *c, const HnCalibTableOptions *o);

/* The spans of a table become p's. Errors: FORMAT, and then p is as before. */
gboolean hn_calib_table_apply(JsonNode *table, HnQuantPlan *p, GError **error);

G_END_DECLS
