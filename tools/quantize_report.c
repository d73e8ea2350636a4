/* hone-quantize: what was chosen, and what it costs and gains. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "check/tensor_diff.h"
#include "hone_quantize.h"
#include "verdict.h"

#define LEAST_TURNED 0.002 /* that is told */

static const HnColumn columns[] = {
    { "name", "node", HN_COL_TEXT },
    { "op", "type", HN_COL_TEXT },
    { "form", "form", HN_COL_TEXT },
    { "why", "why", HN_COL_TEXT },
    { "alone_sqnr_db", "isolated SQNR", HN_COL_NUMBER },
    { "accumulated_sqnr_db", "cumulative SQNR", HN_COL_NUMBER | HN_COL_MINOR },
    { "region", "region", HN_COL_INT | HN_COL_MINOR },
    { "f32_ms", "f32", HN_COL_MS },
    { "int_ms", "integers", HN_COL_MS },
    { "weight_bytes", "weights", HN_COL_BYTES },
    { 0 },
};

static const HnColumn pareto[] = {
    { "what", "trial", HN_COL_TEXT },     { "drop", "drop", HN_COL_PERCENT },
    { "sqnr_db", "SQNR", HN_COL_NUMBER }, { "ms", "latency", HN_COL_MS },
    { "how", "which is", HN_COL_TEXT },   { "weight_bytes", "weights", HN_COL_BYTES },
    { "chosen", "chosen", HN_COL_TEXT },  { 0 },
};

/* An analysis consists of the tables; of a model that was written they are asked for. */
static gboolean in_full(const Quantize *q)
{
    return hn_verdict_in_full(q->ctx) || q->p->analyze;
}

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
    hn_report_csv_table(report, "nodes", columns);
    if (in_full(q)) {
        hn_report_section(report, "Nodes");
        hn_report_table(report, "nodes", columns);
    }
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
    if (q->search.points->len > 2 && in_full(q)) {
        hn_report_section(report, "Plans");
        hn_report_table(report, "pareto", pareto);
    }
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
        hn_json_set_number(o, "drop", s->scored ? hn_score_drop(metric, &s->score, &s->original) : NAN);
        json_array_add_object_element(goals, o);
        const int at = s->scored ? s->score.at[metric] : -1;
        json_object_set_string_member(o, "output", at >= 0 ? hn_scorer_output_name(q->scorer, at) : NULL);
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
    { "sqnr_db", "SQNR", HN_COL_NUMBER },
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
        hn_json_set_number(row, "turned", q->looked ? o->turned : NAN);
        hn_json_set_number(row, "r2_lost", q->looked ? 1 - o->r2 : NAN);
        hn_json_set_number(row, "worst_r2_lost", q->looked ? 1 - o->worst_r2 : NAN);
        hn_json_set_number(row, "scores", q->looked ? o->scores : NAN);
        hn_json_set_number(row, "cos", q->looked ? o->cos : NAN);
        hn_json_set_number(row, "sqnr_db", q->looked ? hn_decibels(o->signal, o->noise) : NAN);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "outputs", rows);
    if (in_full(q)) {
        hn_report_section(report, "Outputs");
        hn_report_table(report, "outputs", outputs);
    }
}

/* "8 held-out samples of 'calib/'": what the loss was measured on. */
static char *judged_on(const Quantize *q)
{
    const gint64 n = hn_scorer_samples(q->scorer);
    const char *s = n == 1 ? "" : "s", *source = hn_data_source(q->data);
    if (hn_data_synthetic(q->data))
        return g_strdup_printf("%" G_GINT64_FORMAT " synthetic sample%s, which say nothing of real data", n, s);
    g_autofree char *of = source != NULL ? g_strdup_printf(" of '%s'", source) : g_strdup("");
    if (q->folds != NULL)
        return g_strdup_printf("%" G_GINT64_FORMAT " sample%s%s, each left out of calibration in turn", n, s, of);
    return g_strdup_printf("%" G_GINT64_FORMAT " %ssample%s%s%s", n, q->seen ? "" : "held-out ", s, of,
                           q->seen ? " that also calibrated it" : "");
}

/* "top1 drops by 0.1 % (at most 1 %)": each goal */
static char *drops(const Quantize *q)
{
    const HnSearch *s = &q->search;
    GString *text = g_string_new(NULL);
    for (int i = 0; i < q->so.goals.n; i++) {
        const HnMetric metric = q->so.goals.goal[i].metric;
        g_autofree char *what = quantize_metric_at(q, metric, &s->score);
        g_string_append_printf(text, "%s%s drops by %.3g %% (at most %g %%)", i > 0 ? ", " : "", what,
                               hn_score_drop(metric, &s->score, &s->original) * 100, q->so.goals.goal[i].most * 100);
    }
    return g_string_free(text, FALSE);
}

/* What few rows of classes leave open; may be empty. */
static char *turned(const Quantize *q)
{
    double most = 0;
    for (int k = 0; q->looked && k < hn_scorer_n_outputs(q->scorer); k++)
        most = fmax(most, hn_scorer_output(q->scorer, k)->turned);
    return most >= LEAST_TURNED
               ? g_strdup_printf("; by the margins of these few, some %.2g %% of others change class", most * 100)
               : g_strdup("");
}

static void tell_accuracy(const Quantize *q, HnReport *report)
{
    g_autofree char *on = judged_on(q), *loss = NULL, *goals = NULL, *open = NULL;
    if (q->search.plan == NULL) {
        goals = quantize_goals(q);
        hn_report_fact(report, "accuracy", "no choice keeps the loss within %s, on %s", goals, on);
        return;
    }
    if (!q->search.scored) {
        hn_report_fact(report, "accuracy", "not measured: there was no time for it");
        return;
    }
    loss = drops(q);
    open = turned(q);
    hn_report_fact(report, "accuracy", "%s, SQNR %.1f dB, on %s%s", loss, q->search.score.sqnr, on, open);
}

static const char *reason_text(const char *why)
{
    return why == NULL              ? "as asked"
           : !strcmp(why, "error")  ? "for their error"
           : !strcmp(why, "slower") ? "as integers are no faster there"
                                    : why;
}

/* Why a node computes in f32; NULL: it does not, or weights alone were to be integers and are. */
static const char *reason_of(const Quantize *q, const HnSensitivity *n)
{
    if (n->form == HN_FORM_F32)
        return reason_text(n->why);
    const gboolean stored = n->form == HN_FORM_W8 || n->form == HN_FORM_W4;
    return stored && !q->weights_only ? "with weights stored as integers" : NULL;
}

/* "3 of 12 nodes: 2 for their error ('conv1', 'fc'), 1 as integers are no faster there ('conv2')" */
static void tell_kept(const Quantize *q, HnReport *report)
{
    const GPtrArray *nodes = q->search.nodes;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    guint kept = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const char *why = reason_of(q, nodes->pdata[i]);
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        kept += why != NULL;
        if (why == NULL || !g_hash_table_add(told, (gpointer)why))
            continue;
        for (guint k = i; k < nodes->len; k++)
            if (g_strcmp0(reason_of(q, nodes->pdata[k]), why) == 0)
                g_ptr_array_add(names, ((const HnSensitivity *)nodes->pdata[k])->name);
        g_autofree char *list = hn_verdict_names(names);
        g_string_append_printf(text, "%s%u %s (%s)", text->len > 0 ? ", " : ": ", names->len, why, list);
    }
    if (kept > 0)
        hn_report_fact(report, "kept f32", "%u of %u nodes with weights%s", kept, nodes->len, text->str);
    else
        hn_report_fact(report, "kept f32", "none of %u nodes with weights", nodes->len);
}

static void add_result(const Quantize *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report);
    json_object_set_string_member(root, "metric", hn_metric_name(q->so.goals.goal[0].metric));
    json_object_set_double_member(root, "max_drop", q->so.goals.goal[0].most);
    add_goals(q, report);
    json_object_set_int_member(root, "trials", q->search.trials);
    json_object_set_object_member(root, "original", score_object(&q->search.original));
    if (!q->search.scored)
        json_object_set_null_member(root, "score");
    else
        json_object_set_object_member(root, "score", score_object(&q->search.score));
}

static void add_bytes(const Quantize *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report);
    json_object_set_int_member(root, "bytes_before", (gint64)q->file_before);
    json_object_set_int_member(root, "bytes_after", (gint64)q->file_after);
    if (in_full(q))
        hn_report_line(
            report,
            "%u nodes in int8, %u dynamic, %u with 8-bit, %u with 4-bit weights, %u others between; 7 bits in "
            "%" PRId64 " channels",
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
    if (unseen && q->held > 1 && in_full(q))
        hn_report_line(report, "a further sample: SQNR %.1f dB (95 %%: %.1f to %.1f)", q->mean_db, q->lo_db, q->hi_db);
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
}

static void tell_verdict(const Quantize *q, HnReport *report)
{
    if (q->result != NULL) {
        hn_verdict_size(report, q->file_before, q->file_after);
        hn_verdict_speed(report, q->has_speedup ? &q->speedup : NULL, q->ctx->common.threads,
                         "there was no time for it");
    }
    tell_accuracy(q, report);
    tell_kept(q, report);
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
    if (!q->p->analyze)
        tell_verdict(q, report);
    add_nodes(q, report);
    add_pareto(q, report);
    quantize_plot(q, root, report);
    quantize_report_repairs(q, report);
    add_outputs(q, report);
    add_result(q, report);
    add_unseen(q, report);
    add_speedup(q, report);
    if (q->result != NULL)
        add_bytes(q, report);
    if (q->p->analyze)
        tell_verdict(q, report);
    json_object_set_int_member(root, "peak_bytes", (gint64)hn_budget_peak(q->ctx->budget));
    return hn_report_write(report, error);
}
