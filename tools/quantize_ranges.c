/* hone-quantize: the ranges of activations, looked for or read. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/each.h"
#include "base/file.h"
#include "base/jsonread.h"
#include "base/text.h"
#include "cli/json.h"
#include "quant/table.h"
#include "hone_quantize.h"

static gboolean watch(Quantize *q, HnCalibrator *c, GError **error)
{
    for (int64_t i = 0; i < q->calib; i++) {
        g_autoptr(HnSample) s = hn_data_load(q->data, i, error);
        hn_progress_tell(&q->ctx->progress, "calibrating", (guint64)i, (guint64)q->calib);
        if (s == NULL || (i == 0 && !hn_calibrator_prepare(c, s->in, &q->forecast, error)))
            return FALSE;
        if (i == 0) {
            g_autofree char *text = hn_text_size(q->forecast);
            hn_context_note(q->ctx, 1, "calibration needs %s, whatever the number of samples", text);
        }
        if (!hn_calibrator_run(c, s->in, error))
            return FALSE;
    }
    return TRUE;
}

typedef struct {
    const Quantize *q;
    const HnCalibrator *c;
    const GPtrArray *values;
    HnCalibMethod method;
    HnQuantizer quantizer;
    HnQuantSpan *span; /* [values] */
} Spans;

static void find_span(gpointer data, gint64 i)
{
    const Spans *s = data;
    const HnValue *v = s->values->pdata[i];
    if (v->producer == NULL || v->producer->op == NULL || !hn_quant_span_fixed(v->producer, &s->span[i]))
        hn_calib_span(s->c, v->name, s->method, s->q->p->percentile, &s->quantizer, &s->span[i]);
}

static void set_spans(const Quantize *q, const HnCalibrator *c, const GPtrArray *values, HnCalibMethod method,
                      HnQuantPlan *p)
{
    g_autofree HnQuantSpan *span = g_new0(HnQuantSpan, values->len + 1u);
    Spans s = { q, c, values, method, hn_quantizer_of(&p->o), span };
    hn_each(values->len, q->ctx->common.threads, find_span, &s);
    for (guint i = 0; i < values->len; i++)
        hn_quant_plan_set_span(p, ((const HnValue *)values->pdata[i])->name, span[i].lo, span[i].hi);
}

typedef struct {
    double least, *least_without; /* [q->held], or NULL: errors of the best method so far */
} Best;

static void take_method(Quantize *q, Best *best, HnCalibMethod method, const HnScore *score, const HnScore *without)
{
    if (hn_repair_error(score) < best->least) {
        best->least = hn_repair_error(score);
        q->method = method;
    }
    for (int64_t i = 0; without != NULL && i < q->held; i++)
        if (method == 0 || hn_repair_error(&without[i]) < best->least_without[i]) {
            best->least_without[i] = hn_repair_error(&without[i]);
            q->method_without[i] = method;
        }
}

/* The method with the least error of the whole model on the samples held out; where these are all there are, also the
 * one that each would have if a sample were not there. */
static gboolean choose_method(Quantize *q, const HnCalibrator *c, const GPtrArray *values, GError **error)
{
    const gboolean given = q->p->method != NULL && strcmp(q->p->method, "auto"), folds = quantize_wants_folds(q);
    g_autofree HnScore *without = folds && !given ? g_new0(HnScore, (gsize)q->held) : NULL;
    g_autofree double *least = g_new0(double, (gsize)q->held);
    Best best = { INFINITY, least };
    if (without != NULL)
        q->method_without = g_new0(HnCalibMethod, (gsize)q->held);
    for (int k = 0; k < HN_CALIB_METHODS && !given && !(k > 0 && hn_tune_late(&q->limits)); k++) {
        g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(q->base);
        HnQuantLog log;
        HnScore score;
        set_spans(q, c, values, (HnCalibMethod)k, p);
        const guint64 start = hn_now_ns();
        g_autoptr(HnModel) m = hn_quant_build(p, &q->so, &log, error);
        if (m == NULL || !(without != NULL ? hn_scorer_run_without(q->scorer, m, &score, without, error)
                                           : hn_scorer_run(q->scorer, m, &score, error)))
            return FALSE;
        q->trial_seconds = (double)(hn_now_ns() - start) * 1e-9;
        hn_context_note(q->ctx, 1, "%s: %.2f dB, cosine %.6f", hn_calib_method_name((HnCalibMethod)k), score.sqnr,
                        score.cos);
        take_method(q, &best, (HnCalibMethod)k, &score, without);
    }
    q->cut = q->cut || (!given && hn_tune_late(&q->limits));
    set_spans(q, c, values, q->method, q->base);
    return TRUE;
}

static gboolean write_ranges(const Quantize *q, const HnCalibrator *c, GError **error)
{
    const HnCalibTableOptions o = { q->method, q->p->percentile, hn_quantizer_of(&q->base->o),
                                    hn_data_source(q->data) };
    if (q->p->write_ranges == NULL)
        return TRUE;
    JsonNode *table = hn_calib_table(c, &o);
    g_autofree char *text = hn_json_text(table);
    json_node_unref(table);
    return hn_out_save(q->p->write_ranges, text, strlen(text), error);
}

static gboolean read_ranges(const Quantize *q, GError **error)
{
    g_autoptr(JsonNode) table = hn_json_read_file(q->p->ranges, HN_JSON_BYTES, q->ctx->budget, error);
    if (table == NULL)
        return FALSE;
    if (hn_calib_table_apply(table, q->base, error))
        return TRUE;
    g_prefix_error(error, "'%s': ", q->p->ranges);
    return FALSE;
}

static HnCalibrator *open_calibrator(const Quantize *q, HnModel *m, const HnQuantPlan *p, HnBudget *budget,
                                     gboolean apart, GPtrArray **values, GError **error)
{
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    hn_quant_spread(spread, m);
    g_autoptr(GPtrArray) wanted = hn_quant_wanted(spread, m), names = g_ptr_array_new();
    for (guint i = 0; i < wanted->len; i++)
        g_ptr_array_add(names, ((const HnValue *)wanted->pdata[i])->name);
    g_ptr_array_add(names, NULL);
    const HnCalibrateOptions o = { .values = (const char *const *)names->pdata,
                                   .threads = q->ctx->common.threads,
                                   .seed = q->ctx->common.seed,
                                   .apart = apart,
                                   .budget = budget,
                                   .progress = &q->ctx->progress };
    HnCalibrator *c = hn_calibrator_new(m, q->backend, &o, error);
    if (values != NULL)
        *values = g_steal_pointer(&wanted);
    return c;
}

HnCalibrator *quantize_open_calibrator(const Quantize *q, HnModel *m, const HnQuantPlan *p, HnBudget *budget,
                                       GPtrArray **values, GError **error)
{
    return open_calibrator(q, m, p, budget, FALSE, values, error);
}

/* Looks at the samples for what p wants to know of m; *values: that. */
static HnCalibrator *calibrate(Quantize *q, HnModel *m, const HnQuantPlan *p, gboolean apart, GPtrArray **values,
                               GError **error)
{
    g_autoptr(HnCalibrator) c = open_calibrator(q, m, p, q->ctx->budget, apart, values, error);
    if (c == NULL || !watch(q, c, error))
        return NULL;
    hn_calibrator_end(c);
    return g_steal_pointer(&c);
}

gboolean quantize_calibrate(Quantize *q, GError **error)
{
    g_autoptr(GPtrArray) values = NULL;
    if (q->p->ranges != NULL)
        return read_ranges(q, error);
    const gboolean apart = quantize_wants_folds(q) && q->ctx->common.mem_limit == 0;
    g_autoptr(HnCalibrator) c = calibrate(q, q->f32, q->base, apart, &values, error);
    if (c == NULL || !choose_method(q, c, values, error) || !write_ranges(q, c, error))
        return FALSE;
    if (apart) {
        q->shown = g_steal_pointer(&c);
        q->shown_values = g_steal_pointer(&values);
    }
    return TRUE;
}

gboolean quantize_spans_without(Quantize *q, guint64 i, GError **error)
{
    g_autoptr(HnCalibrator) rest = hn_calibrator_without(q->shown, i, error);
    if (rest != NULL)
        set_spans(q, rest, q->shown_values, q->method, q->base);
    return rest != NULL;
}

gboolean quantize_spans(Quantize *q, GError **error)
{
    g_autoptr(GPtrArray) values = NULL;
    if (!q->by_ranges || q->p->ranges != NULL || q->plan_spans)
        return TRUE;
    g_autoptr(HnModel) m = quantize_open_prepared(q, error);
    g_autoptr(HnCalibrator) c = m != NULL ? calibrate(q, m, q->base, FALSE, &values, error) : NULL;
    if (c != NULL)
        set_spans(q, c, values, q->method, q->base);
    return c != NULL;
}

gboolean quantize_recalibrate(Quantize *q, HnQuantPlan *const *p, gboolean same_units, GError **error)
{
    g_autoptr(GPtrArray) looked = NULL;
    const gboolean known = same_units && q->shown != NULL;
    g_autoptr(HnModel) m = known ? NULL : quantize_open_prepared(q, error);
    g_autoptr(HnCalibrator) own = m != NULL ? calibrate(q, m, p[0], FALSE, &looked, error) : NULL;
    const HnCalibrator *c = known ? q->shown : own;
    for (int k = 0; c != NULL && k < HN_CALIB_METHODS; k++)
        set_spans(q, c, known ? q->shown_values : looked, (HnCalibMethod)k, p[k]);
    return c != NULL;
}
