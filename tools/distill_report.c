/* hone-distill: what it says. */
#include <math.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "hone_distill.h"

#define EPOCH_COLUMNS                                                                                    \
    { "epoch", "epoch", HN_COL_INT }, { "steps", "steps", HN_COL_INT }, { "lr", "rate", HN_COL_NUMBER }, \
        { "loss", "loss", HN_COL_NUMBER },                                                               \
    {                                                                                                    \
        "val_loss", "validation", HN_COL_NUMBER                                                          \
    }

static const HnColumn columns[] = { EPOCH_COLUMNS, { "best", "best", HN_COL_TEXT }, { 0 } };
static const HnColumn labelled_columns[] = {
    EPOCH_COLUMNS, { "top1", "top-1", HN_COL_PERCENT }, { "best", "best", HN_COL_TEXT }, { 0 }
};

static void add_epochs(const Distill *q, HnReport *report)
{
    const GArray *epochs = hn_fit_epochs(q->fit);
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < epochs->len; i++) {
        const HnEpoch *e = &g_array_index(epochs, HnEpoch, i);
        JsonObject *row = json_object_new();
        json_object_set_int_member(row, "epoch", e->epoch);
        json_object_set_int_member(row, "steps", e->steps);
        hn_json_set_number(row, "lr", e->lr);
        hn_json_set_number(row, "loss", e->loss);
        hn_json_set_number(row, "val_loss", e->judged.loss);
        hn_json_set_number(row, "top1", e->judged.top1);
        json_object_set_string_member(row, "best", e->epoch == hn_fit_best(q->fit) ? "yes" : "no");
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "epochs", rows);
    hn_report_table(report, "epochs", isnan(q->after.top1) ? columns : labelled_columns);
}

static JsonObject *judgement(const HnJudgement *j)
{
    JsonObject *o = json_object_new();
    hn_json_set_number(o, "loss", j->loss);
    hn_json_set_number(o, "top1", j->top1);
    return o;
}

static void add_score(const Distill *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *val = json_object_new();
    const HnJudgement *a = &q->after, *b = &q->before;
    const char *how = q->p->val != NULL ? "other samples" : q->val != NULL ? "held out" : "learned from";
    json_object_set_int_member(val, "samples", a->samples);
    json_object_set_string_member(val, "how", how);
    json_object_set_object_member(root, "val", val);
    json_object_set_object_member(root, "before", judgement(b));
    json_object_set_object_member(root, "after", judgement(a));
    if (!isnan(a->top1))
        hn_report_line(
            report, "top-1 %.2f %% instead of %.2f %%, loss %.4g instead of %.4g, on %" G_GINT64_FORMAT " samples (%s)",
            100 * a->top1, 100 * b->top1, a->loss, b->loss, a->samples, how);
    else
        hn_report_line(report, "loss %.4g instead of %.4g, on %" G_GINT64_FORMAT " samples (%s)", a->loss, b->loss,
                       a->samples, how);
}

static void add_trained(const Distill *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *o = json_object_new();
    int64_t elements;
    const guint weights = hn_trainer_weights(q->trainer, &elements);
    json_object_set_int_member(o, "weights", weights);
    json_object_set_int_member(o, "elements", elements);
    json_object_set_int_member(o, "statistics", hn_trainer_statistics(q->trainer));
    json_object_set_boolean_member(o, "statistics_kept", q->keep_statistics);
    json_object_set_object_member(root, "trained", o);
    hn_report_line(report, "%u weights of %" G_GINT64_FORMAT " elements were trained", weights, elements);
    if (q->kept_why != NULL)
        hn_report_line(report, "normalizations kept their means and variances, %s", q->kept_why);
}

static void add_cost(const Distill *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *memory = json_object_new();
    const int64_t steps = hn_trainer_steps(q->trainer) - q->resumed;
    const double s = (double)q->seconds_ns / 1e9;
    HnSessionStats stats;
    hn_session_stats(hn_trainer_session(q->trainer), &stats);
    json_object_set_int_member(root, "steps", hn_trainer_steps(q->trainer));
    json_object_set_int_member(root, "steps_before", q->resumed);
    hn_json_set_number(root, "lr", q->lr);
    json_object_set_int_member(root, "batch", q->sample->count);
    hn_json_set_number(root, "ms_per_step", steps > 0 ? s * 1e3 / (double)steps : NAN);
    hn_json_set_number(root, "samples_per_s", steps > 0 ? (double)(steps * q->sample->count) / s : NAN);
    json_object_set_int_member(memory, "arena", (gint64)stats.arena_bytes);
    json_object_set_int_member(memory, "states", (gint64)hn_trainer_bytes(q->trainer));
    json_object_set_int_member(memory, "peak", (gint64)hn_budget_peak(q->ctx->budget));
    json_object_set_object_member(root, "memory_bytes", memory);
    if (q->range.steps > 0)
        hn_report_line(report, "learning rate %.3g, by a range test of %d steps", q->lr, q->range.steps);
    if (steps <= 0)
        return;
    g_autofree char *each = hn_text_time(s / (double)steps), *all = hn_text_time(s),
                    *rate = hn_text_number((double)(steps * q->sample->count) / s);
    hn_report_line(report,
                   "%" G_GINT64_FORMAT " steps of %" G_GINT64_FORMAT
                   " samples, %s each with validation, %s samples/s, %s in all",
                   steps, q->sample->count, each, rate, all);
}

gboolean distill_report(const Distill *q, GError **error)
{
    g_autoptr(HnReport) report =
        hn_report_new(q->ctx, "hone.distill/1", &(HnReportEnv){ .onednn = hn_tool_onednn(q->backend) });
    JsonObject *root = hn_report_root(report);
    json_object_set_string_member(root, "model", q->p->student);
    json_object_set_string_member(root, "teacher", q->p->teacher);
    json_object_set_string_member(root, "data", hn_data_source(q->all));
    json_object_set_int_member(root, "samples", hn_data_count(q->data));
    json_object_set_int_member(root, "bytes", (gint64)q->file_after);
    add_epochs(q, report);
    add_trained(q, report);
    add_cost(q, report);
    add_score(q, report);
    return hn_report_write(report, error);
}
