/* hone-quantize: what can be done about the error before nodes are given up. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "ir/copy.h"
#include "hone_quantize.h"
#include "quant/rounding.h"
#include "verdict.h"

static gboolean replace(gpointer data, HnModel *m, GError **error)
{
    Quantize *q = data;
    hn_model_free(q->prepared);
    q->prepared = hn_model_copy(m);
    (void)error;
    return TRUE;
}

static gboolean calibrate(gpointer data, HnQuantPlan *const *p, gboolean same_units, GError **error)
{
    return quantize_recalibrate(data, p, same_units, error);
}

static HnRepairOptions options_of(Quantize *q, guint wanted)
{
    const gboolean one_method = q->p->method != NULL && strcmp(q->p->method, "auto") != 0;
    return (HnRepairOptions){
        .search = &q->so,
        .samples = { .backend = q->backend,
                     .threads = q->ctx->common.threads,
                     .budget = q->ctx->budget,
                     .progress = &q->ctx->progress,
                     .data = q->data,
                     .first = 0,
                     .n = q->calib },
        .held_first = q->held_first,
        .held = q->held,
        .wanted = wanted,
        .parts = !q->weights_only && q->has_data,
        .anyway = q->plan_repairs != NULL,
        .reserve = q->reserve,
        .replace = replace,
        .calibrate = q->plan_spans || !q->by_ranges ? NULL : calibrate,
        .one_method = one_method,
        .method = q->method,
        .data = q,
    };
}

gboolean quantize_repair_as(Quantize *q, HnQuantPlan **p, guint repairs, GError **error)
{
    HnRepairOptions o = options_of(q, repairs);
    HnRepairLog log = { 0 };
    o.parts = FALSE;
    o.anyway = TRUE;
    const gboolean ok = hn_quant_repair(p, &o, &log, error);
    hn_repair_log_clear(&log);
    return ok;
}

gboolean quantize_round_without(Quantize *q, HnQuantPlan *const *p, GError **error)
{
    const HnRepairOptions o = options_of(q, 0);
    g_autoptr(HnModel) m = quantize_open_prepared(q, error);
    return m != NULL && hn_quant_round_without(p, m, &o.samples, error);
}

gboolean quantize_refine(gpointer data, HnQuantPlan **p, GError **error)
{
    return quantize_repair_as(data, p, 1u << HN_REPAIR_BIAS, error);
}

gboolean quantize_repair(Quantize *q, GError **error)
{
    guint wanted;
    const char *list = q->plan_repairs != NULL ? q->plan_repairs : q->p->repair != NULL ? q->p->repair : "auto";
    if (!hn_repair_parse(list, &wanted, error))
        return FALSE;
    if (q->p->ranges != NULL || q->p->write_ranges != NULL || q->weights_only) /* they would be in other units */
        wanted &= ~(1u << HN_REPAIR_EQUALIZE | 1u << HN_REPAIR_SMOOTH);
    if (q->p->ranges != NULL || q->weights_only)
        wanted &= ~(1u << HN_REPAIR_RANGES);
    if (!q->has_data) /* made-up samples teach nothing */
        wanted = 0;
    if (q->p->method != NULL && strcmp(q->p->method, "auto") != 0)
        wanted &= ~(1u << HN_REPAIR_RANGES);
    const HnRepairOptions o = options_of(q, wanted);
    q->repairs_wanted = wanted;
    GError *failure = NULL;
    if (!hn_quant_repair(&q->base, &o, &q->repairs, &failure) && !hn_tune_was_cut(&q->limits, &failure)) {
        if (q->reserve == 0 || !g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        hn_context_note(q->ctx, 1, "no repairs: %s", failure->message);
        g_clear_error(&failure);
    }
    q->cut = q->cut || (q->limits.last != 0 && (wanted & ~q->repairs.tried) != 0);
    if (q->repairs.kept >> HN_REPAIR_BIAS & 1)
        q->so.refine = quantize_refine;
    return TRUE;
}

static const HnColumn columns[] = {
    { "repair", "repair", HN_COL_TEXT },
    { "kept", "kept", HN_COL_TEXT },
    { "before_db", "before dB", HN_COL_NUMBER },
    { "after_db", "after dB", HN_COL_NUMBER },
    { "what", "what", HN_COL_PROSE },
    { 0 },
};

void quantize_report_repairs(const Quantize *q, HnReport *report)
{
    const HnRepairLog *log = &q->repairs;
    JsonObject *root = hn_report_root(report);
    JsonArray *rows = json_array_new();
    for (guint i = 0; log->steps != NULL && i < log->steps->len; i++) {
        const HnRepairStep *s = &g_array_index(log->steps, HnRepairStep, i);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "repair", hn_repair_name(s->repair));
        json_object_set_string_member(row, "kept", s->kept ? "yes" : "no");
        hn_json_set_number(row, "before_db", hn_repair_db(&s->before));
        hn_json_set_number(row, "after_db", hn_repair_db(&s->after));
        json_object_set_string_member(row, "what", s->what);
        json_array_add_object_element(rows, row);
    }
    const guint n = json_array_get_length(rows);
    json_object_set_array_member(root, "repairs", rows);
    if (!log->has_parts) {
        json_object_set_null_member(root, "error_budget");
        return;
    }
    JsonObject *parts = json_object_new();
    hn_json_set_number(parts, "weights_db", hn_repair_db(&log->weights));
    hn_json_set_number(parts, "activations_db", hn_repair_db(&log->activations));
    hn_json_set_number(parts, "both_db", hn_repair_db(&log->full));
    hn_json_set_number(parts, "repaired_db", hn_repair_db(&log->repaired));
    json_object_set_object_member(root, "error_budget", parts);
    if (!hn_verdict_in_full(q->ctx) && !q->p->analyze)
        return;
    hn_report_line(
        report,
        "SQNR of weights alone in integers: %.1f dB, of activations alone: %.1f dB, of both: %.1f dB, repaired: "
        "%.1f dB",
        hn_repair_db(&log->weights), hn_repair_db(&log->activations), hn_repair_db(&log->full),
        hn_repair_db(&log->repaired));
    if (n > 0)
        hn_report_table(report, "repairs", columns);
}
