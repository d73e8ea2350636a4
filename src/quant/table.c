#include "quant/table.h"

#include <math.h>

#include "base/error.h"
#include "base/jsonread.h"

#define SCHEMA "hone.calibration/1"

static void add_count(JsonObject *o, const char *name, uint64_t n)
{
    json_object_set_int_member(o, name, (gint64)MIN(n, (uint64_t)G_MAXINT64));
}

static JsonObject *row_of(const HnHistogram *h, const HnQuantSpan *span)
{
    JsonObject *o = json_object_new();
    json_object_set_double_member(o, "lo", span->lo);
    json_object_set_double_member(o, "hi", span->hi);
    json_object_set_double_member(o, "min", (double)h->min);
    json_object_set_double_member(o, "max", (double)h->max);
    add_count(o, "elements", h->n);
    add_count(o, "zeros", h->n_zero);
    add_count(o, "nan", h->n_nan);
    add_count(o, "infinite", h->n_infinite);
    add_count(o, "masks", h->n_mask);
    return o;
}

gboolean hn_calib_span(const HnCalibrator *c, const char *value, HnCalibMethod method, double percentile,
                       const HnQuantizer *q, HnQuantSpan *span)
{
    const HnHistogram *h = hn_calibrator_get(c, value);
    if (h == NULL || !hn_quant_span_of(h, method, percentile, q, span))
        return FALSE;
    if (method == HN_CALIB_MINMAX || method == HN_CALIB_PERCENTILE)
        hn_spread_widen(hn_calibrator_spread(c, value), &span->lo, &span->hi);
    return TRUE;
}

JsonNode *hn_calib_table(const HnCalibrator *c, const HnCalibTableOptions *o)
{
    JsonObject *table = json_object_new(), *tensors = json_object_new();
    json_object_set_string_member(table, "schema", SCHEMA);
    if (o->data != NULL)
        json_object_set_string_member(table, "data", o->data);
    add_count(table, "samples", hn_calibrator_samples(c));
    json_object_set_string_member(table, "method", hn_calib_method_name(o->method));
    if (o->method == HN_CALIB_PERCENTILE)
        json_object_set_double_member(table, "percentile", o->percentile);
    json_object_set_int_member(table, "bits", o->quantizer.bits);
    json_object_set_boolean_member(table, "signed", o->quantizer.is_signed);
    json_object_set_boolean_member(table, "symmetric", o->quantizer.symmetric);
    for (guint i = 0; i < hn_calibrator_count(c); i++) {
        const char *name = hn_calibrator_name(c, i);
        const HnHistogram *h = hn_calibrator_get(c, name);
        HnQuantSpan span;
        if (hn_calib_span(c, name, o->method, o->percentile, &o->quantizer, &span))
            json_object_set_object_member(tensors, name, row_of(h, &span));
    }
    json_object_set_object_member(table, "tensors", tensors);
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, table);
    return node;
}

static JsonObject *tensors_of(JsonNode *table, GError **error)
{
    JsonObject *o = hn_json_object(table);
    JsonObject *tensors =
        g_strcmp0(hn_json_string_at(o, "schema"), SCHEMA) == 0 ? hn_json_object_at(o, "tensors") : NULL;
    if (tensors == NULL)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "this is no calibration table of '" SCHEMA "'");
    return tensors;
}

gboolean hn_calib_table_apply(JsonNode *table, HnQuantPlan *p, GError **error)
{
    JsonObject *tensors = tensors_of(table, error);
    if (tensors == NULL)
        return FALSE;
    for (int pass = 0; pass < 2; pass++) { /* all is looked at before anything is changed */
        JsonObjectIter iter;
        const char *name;
        JsonNode *row;
        json_object_iter_init(&iter, tensors);
        while (json_object_iter_next(&iter, &name, &row)) {
            HnQuantSpan s;
            JsonObject *o = hn_json_object(row);
            if (o == NULL || !hn_json_number_at(o, "lo", &s.lo) || !hn_json_number_at(o, "hi", &s.hi) || s.lo > s.hi) {
                g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "the calibration table has no range for '%s'", name);
                return FALSE;
            }
            if (pass == 1)
                hn_quant_plan_set_span(p, name, s.lo, s.hi);
        }
    }
    return TRUE;
}
