/* hone-quantize: what was chosen, and what it costs and gains. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "hone_quantize.h"

static const HnColumn columns[] = {
    { "name", "node", HN_COL_TEXT },
    { "op", "type", HN_COL_TEXT },
    { "form", "form", HN_COL_TEXT },
    { "why", "why", HN_COL_TEXT },
    { "alone_sqnr_db", "alone dB", HN_COL_NUMBER },
    { "accumulated_sqnr_db", "there dB", HN_COL_NUMBER | HN_COL_MINOR },
    { "region", "region", HN_COL_INT | HN_COL_MINOR },
    { "f32_ms", "f32", HN_COL_MS },
    { "int_ms", "integers", HN_COL_MS },
    { "weight_bytes", "weights", HN_COL_BYTES },
    { 0 },
};

static const HnColumn pareto[] = {
    { "what", "trial", HN_COL_TEXT },    { "drop", "drop", HN_COL_PERCENT },
    { "sqnr_db", "dB", HN_COL_NUMBER },  { "ms", "latency", HN_COL_MS },
    { "how", "which is", HN_COL_TEXT },  { "weight_bytes", "weights", HN_COL_BYTES },
    { "chosen", "chosen", HN_COL_TEXT }, { 0 },
};

static void add_nodes(const Quantize *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < q->search.nodes->len; i++) {
        const HnSensitivity *n = q->search.nodes->pdata[i];
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", n->name);
        json_object_set_string_member(row, "op", n->op);
        json_object_set_string_member(row, "form", hn_quant_form_name(n->form));
        json_object_set_string_member(row, "why", n->why);
        hn_json_set_number(row, "alone_sqnr_db", n->tried ? n->alone.sqnr : NAN);
        hn_json_set_number(row, "alone_drop", n->drop);
        hn_json_set_number(row, "f32_ms", n->f32_ms);
        hn_json_set_number(row, "int_ms", n->int_ms);
        hn_json_set_number(row, "weight_bytes", n->weight_bytes);
        hn_json_set_number(row, "int_bytes", n->int_bytes);
        hn_json_set_number(row, "accumulated_sqnr_db", n->accumulated);
        json_object_set_int_member(row, "region", n->region);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "nodes", rows);
    hn_report_table(report, "nodes", columns);
}

/* What no other trial beats in loss, time and bytes at once. */
static void add_pareto(const Quantize *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < q->search.points->len; i++) {
        const HnParetoPoint *p = q->search.points->pdata[i];
        if (!p->best && !p->chosen)
            continue;
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "what", p->what);
        json_object_set_string_member(row, "plan", p->plan);
        hn_json_set_number(row, "drop", p->drop);
        hn_json_set_number(row, "sqnr_db", p->score.sqnr);
        json_object_set_boolean_member(row, "within", p->met);
        hn_json_set_number(row, "ms", p->ms);
        json_object_set_string_member(row, "how", isnan(p->ms) ? NULL : p->predicted ? "expected" : "measured");
        json_object_set_int_member(row, "weight_bytes", (gint64)p->bytes);
        json_object_set_string_member(row, "chosen", p->chosen ? "*" : NULL);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "pareto", rows);
    if (q->search.points->len > 2)
        hn_report_table(report, "pareto", pareto);
}

static JsonObject *score_object(const HnScore *s)
{
    JsonObject *o = json_object_new();
    hn_json_set_number(o, "top1", s->top1);
    hn_json_set_number(o, "cos", s->cos);
    hn_json_set_number(o, "worst_cos", s->worst_cos);
    hn_json_set_number(o, "sqnr_db", s->sqnr);
    hn_json_set_number(o, "scores", s->scores);
    hn_json_set_number(o, "r2", s->r2);
    hn_json_set_number(o, "cmd", s->command);
    return o;
}

char *quantize_goals(const Quantize *q)
{
    GString *text = g_string_new(NULL);
    for (int i = 0; i < q->so.goals.n; i++)
        g_string_append_printf(text, "%s%g %% of %s", i > 0 ? ", " : "", q->so.goals.goal[i].most * 100,
                               hn_metric_name(q->so.goals.goal[i].metric));
    return g_string_free(text, FALSE);
}

char *quantize_metric_at(const Quantize *q, HnMetric metric, const HnScore *score)
{
    const int at = score->at[metric];
    return at < 0 ? g_strdup(hn_metric_name(metric))
                  : g_strdup_printf("%s of '%s'", hn_metric_name(metric), hn_scorer_output_name(q->scorer, at));
}

static void add_goals(const Quantize *q, HnReport *report)
{
    const HnSearch *s = &q->search;
    JsonArray *goals = json_array_new();
    for (int i = 0; i < q->so.goals.n; i++) {
        const HnMetric metric = q->so.goals.goal[i].metric;
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "metric", hn_metric_name(metric));
        json_object_set_double_member(o, "max_drop", q->so.goals.goal[i].most);
        hn_json_set_number(o, "drop", s->plan != NULL ? hn_score_drop(metric, &s->score, &s->original) : NAN);
        json_array_add_object_element(goals, o);
        const int at = s->plan != NULL ? s->score.at[metric] : -1;
        json_object_set_string_member(o, "output", at >= 0 ? hn_scorer_output_name(q->scorer, at) : NULL);
        g_autofree char *what = quantize_metric_at(q, metric, &s->score);
        if (s->plan != NULL)
            hn_report_line(report, "%s drops by %.3g %% (at most %g %%)", what,
                           hn_score_drop(metric, &s->score, &s->original) * 100, q->so.goals.goal[i].most * 100);
    }
    json_object_set_array_member(hn_report_root(report), "goals", goals);
}

static const HnColumn outputs[] = {
    { "name", "output", HN_COL_TEXT },
    { "kind", "holds", HN_COL_TEXT },
    { "top1", "top1", HN_COL_PERCENT },
    { "r2_lost", "r2 lost", HN_COL_PERCENT },
    { "worst_r2_lost", "at worst", HN_COL_PERCENT },
    { "scores", "scores", HN_COL_PERCENT },
    { "cos", "cosine", HN_COL_NUMBER },
    { "sqnr_db", "dB", HN_COL_NUMBER },
    { 0 },
};

/* What was written, output by output. */
static void add_outputs(const Quantize *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (int k = 0; k < hn_scorer_n_outputs(q->scorer); k++) {
        const HnOutputScore *o = hn_scorer_output(q->scorer, k);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", hn_scorer_output_name(q->scorer, k));
        json_object_set_string_member(row, "kind", hn_output_kind_name(hn_scorer_output_kind(q->scorer, k)));
        hn_json_set_number(row, "top1", q->looked ? o->top1 : NAN);
        hn_json_set_number(row, "r2_lost", q->looked ? 1 - o->r2 : NAN);
        hn_json_set_number(row, "worst_r2_lost", q->looked ? 1 - o->worst_r2 : NAN);
        hn_json_set_number(row, "scores", q->looked ? o->scores : NAN);
        hn_json_set_number(row, "cos", q->looked ? o->cos : NAN);
        hn_json_set_number(row, "sqnr_db", q->looked && o->noise > 0 ? 10 * log10(o->signal / o->noise) : NAN);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "outputs", rows);
    hn_report_table(report, "outputs", outputs);
}

static void add_result(const Quantize *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report);
    const gint64 samples = hn_scorer_samples(q->scorer);
    json_object_set_string_member(root, "metric", hn_metric_name(q->so.goals.goal[0].metric));
    json_object_set_double_member(root, "max_drop", q->so.goals.goal[0].most);
    add_goals(q, report);
    json_object_set_int_member(root, "trials", q->search.trials);
    json_object_set_object_member(root, "original", score_object(&q->search.original));
    if (q->search.plan == NULL) {
        g_autofree char *goals = quantize_goals(q);
        json_object_set_null_member(root, "score");
        hn_report_line(report, "no choice keeps the loss within %s", goals);
        return;
    }
    json_object_set_object_member(root, "score", score_object(&q->search.score));
    hn_report_line(report, "cosine %.6f, %.1f dB, on %" G_GINT64_FORMAT " sample%s%s", q->search.score.cos,
                   q->search.score.sqnr, samples, samples == 1 ? "" : "s",
                   hn_data_synthetic(q->data) ? ", made-up" : "");
}

static void add_bytes(const Quantize *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report);
    json_object_set_int_member(root, "bytes_before", (gint64)q->file_before);
    json_object_set_int_member(root, "bytes_after", (gint64)q->file_after);
    g_autofree char *before = hn_text_size(q->file_before), *after = hn_text_size(q->file_after);
    hn_report_line(report, "bytes: %s instead of %s, %.3f", after, before,
                   (double)q->file_after / (double)q->file_before);
    hn_report_line(
        report,
        "%u nodes in int8, %u dynamic, %u with 8-bit, %u with 4-bit weights, %u others between; 7 bits in %" PRId64
        " channels",
        q->log.int8, q->log.dynamic, q->log.w8, q->log.w4, q->log.between, q->log.reduced);
}

/* What can be said of samples that nobody has seen. */
static void add_unseen(const Quantize *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *o = json_object_new();
    const gboolean unseen = q->looked && (!q->seen || q->folds != NULL);
    json_object_set_int_member(o, "samples", q->held);
    json_object_set_string_member(o, "how",
                                  q->folds != NULL ? "left out in turn"
                                  : q->seen        ? "used to calibrate"
                                                   : "held out");
    hn_json_set_number(o, "sqnr_db", unseen ? q->mean_db : NAN);
    hn_json_set_number(o, "lo", unseen ? q->lo_db : NAN);
    hn_json_set_number(o, "hi", unseen ? q->hi_db : NAN);
    json_object_set_object_member(root, "judged_on", o);
    if (q->folds != NULL)
        hn_report_line(report, "each sample was judged by ranges and repairs that were made without it");
    else if (q->seen)
        hn_report_line(report, "judged on data that was also used to calibrate");
    if (unseen && q->held > 1)
        hn_report_line(report, "a further sample: %.1f dB (95 %%: %.1f to %.1f)", q->mean_db, q->lo_db, q->hi_db);
}

static void add_speedup(const Quantize *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report);
    if (!q->has_speedup) {
        json_object_set_null_member(root, "speed");
        return;
    }
    JsonObject *o = json_object_new();
    json_object_set_double_member(o, "effect", q->speedup.effect.effect);
    hn_json_set_number(o, "lo", q->speedup.effect.sure_lo);
    hn_json_set_number(o, "hi", q->speedup.effect.sure_hi);
    json_object_set_double_member(o, "f32_ms", q->speedup.old_ms);
    json_object_set_double_member(o, "int_ms", q->speedup.new_ms);
    json_object_set_object_member(root, "speed", o);
    g_autofree char *old_ms = hn_text_time(q->speedup.old_ms / 1e3), *new_ms = hn_text_time(q->speedup.new_ms / 1e3);
    const HnEffect *e = &q->speedup.effect;
    g_autofree char *interval =
        isfinite(e->sure_lo) ? g_strdup_printf(" (99.9 %%: %.3f to %.3f)", e->sure_lo, e->sure_hi) : g_strdup("");
    hn_report_line(report, "latency: %s instead of %s, %.3f%s", new_ms, old_ms, e->effect, interval);
}

gboolean quantize_report(const Quantize *q, GError **error)
{
    g_autoptr(HnReport) report =
        hn_report_new(q->ctx, "hone.quantize/1", &(HnReportEnv){ .onednn = hn_tool_onednn(q->backend) });
    JsonObject *root = hn_report_root(report);
    json_object_set_string_member(root, "model", q->path);
    json_object_set_string_member(root, "calibration", hn_data_source(q->data));
    json_object_set_boolean_member(root, "synthetic", hn_data_synthetic(q->data));
    json_object_set_string_member(root, "method", !q->by_ranges ? NULL : hn_calib_method_name(q->method));
    add_nodes(q, report);
    add_pareto(q, report);
    quantize_report_repairs(q, report);
    add_outputs(q, report);
    add_result(q, report);
    add_unseen(q, report);
    add_speedup(q, report);
    if (q->result != NULL)
        add_bytes(q, report);
    json_object_set_int_member(root, "peak_bytes", (gint64)hn_budget_peak(q->ctx->budget));
    return hn_report_write(report, error);
}
