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
static const HnColumn taught_columns[] = {
    EPOCH_COLUMNS, { "agreement", "as teacher", HN_COL_PERCENT }, { "best", "best", HN_COL_TEXT }, { 0 }
};

double distill_metric(const HnJudgement *j, const char **name)
{
    *name = !isnan(j->top1) ? "top1" : !isnan(j->agreement) ? "agreement" : "loss";
    return !isnan(j->top1) ? j->top1 : !isnan(j->agreement) ? j->agreement : j->loss;
}

static void add_epochs(const Distill *q, HnReport *report)
{
    const GArray *epochs = hn_fit_epochs(q->fit);
    JsonArray *rows = json_array_new(), *losses = json_array_new();
    for (guint i = 0; i < epochs->len; i++) {
        const HnEpoch *e = &g_array_index(epochs, HnEpoch, i);
        JsonObject *row = json_object_new();
        json_object_set_int_member(row, "epoch", e->epoch);
        json_object_set_int_member(row, "steps", e->steps);
        hn_json_set_number(row, "lr", e->lr);
        hn_json_set_number(row, "loss", e->loss);
        hn_json_set_number(row, "val_loss", e->judged.loss);
        hn_json_set_number(row, "top1", e->judged.top1);
        hn_json_set_number(row, "agreement", e->judged.agreement);
        json_object_set_string_member(row, "best", e->epoch == hn_fit_best(q->fit) ? "yes" : "no");
        json_array_add_object_element(rows, row);
        if (isfinite(e->loss))
            json_array_add_double_element(losses, e->loss);
        else
            json_array_add_null_element(losses);
    }
    json_object_set_array_member(hn_report_root(report), "loss", losses);
    json_object_set_array_member(hn_report_root(report), "epochs", rows);
    hn_report_table(report, "epochs",
                    !isnan(q->after.top1)        ? labelled_columns
                    : !isnan(q->after.agreement) ? taught_columns
                                                 : columns);
}

static JsonObject *judgement(const HnJudgement *j)
{
    JsonObject *o = json_object_new();
    hn_json_set_number(o, "loss", j->loss);
    hn_json_set_number(o, "top1", j->top1);
    hn_json_set_number(o, "agreement", j->agreement);
    return o;
}

static void add_val(const Distill *q, HnReport *report, const char *how)
{
    JsonObject *val = json_object_new(), *best = json_object_new();
    const char *metric;
    const int64_t epoch = hn_fit_best(q->fit);
    const GArray *epochs = hn_fit_epochs(q->fit);
    hn_json_set_number(val, "value", distill_metric(&q->after, &metric));
    json_object_set_string_member(val, "metric", metric);
    json_object_set_int_member(val, "samples", q->after.samples);
    json_object_set_string_member(val, "how", how);
    json_object_set_int_member(best, "step", epoch > 0 ? g_array_index(epochs, HnEpoch, epoch - 1).steps : 0);
    hn_json_set_number(best, "value", distill_metric(&q->after, &metric));
    json_object_set_object_member(hn_report_root(report), "val", val);
    json_object_set_object_member(hn_report_root(report), "best", best);
}

/* Of what was made over what there was: the difference of the metric, parts of loss, time and bytes. */
static void add_gain(const Distill *q, HnReport *report)
{
    JsonObject *gain = json_object_new();
    const char *metric;
    hn_json_set_number(gain, "metric", distill_metric(&q->after, &metric) - distill_metric(&q->before, &metric));
    hn_json_set_number(gain, "loss", q->after.loss / q->before.loss);
    hn_json_set_number(gain, "latency", q->speedup.old_ms > 0 ? q->speedup.effect.effect : NAN);
    hn_json_set_number(gain, "bytes",
                       q->teacher_file != NULL ? (double)q->file_after / (double)g_bytes_get_size(q->teacher_file)
                                               : NAN);
    json_object_set_object_member(hn_report_root(report), "gain", gain);
}

static void add_score(const Distill *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report);
    const HnJudgement *a = &q->after, *b = &q->before;
    const char *how = q->val == NULL ? "learned from" : q->p->val != NULL ? "other samples" : "held out", *metric;
    const double now = distill_metric(a, &metric), old = distill_metric(b, &metric);
    add_val(q, report, how);
    add_gain(q, report);
    json_object_set_object_member(root, "before", judgement(b));
    json_object_set_object_member(root, "after", judgement(a));
    if (isnan(a->top1) && isnan(a->agreement))
        hn_report_line(report, "loss %.4g instead of %.4g, on %" G_GINT64_FORMAT " samples (%s)", a->loss, b->loss,
                       a->samples, how);
    else
        hn_report_line(
            report, "%s %.2f %% instead of %.2f %%, loss %.4g instead of %.4g, on %" G_GINT64_FORMAT " samples (%s)",
            isnan(a->top1) ? "as the teacher" : "top-1", 100 * now, 100 * old, a->loss, b->loss, a->samples, how);
}

static void add_teacher(const Distill *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *o;
    if (q->p->teacher == NULL) {
        json_object_set_null_member(root, "teacher");
        return;
    }
    const double bytes = (double)g_bytes_get_size(q->teacher_file);
    o = judgement(&q->taught);
    json_object_set_string_member(o, "model", q->p->teacher);
    json_object_set_int_member(o, "bytes", (gint64)bytes);
    hn_json_set_number(o, "latency_ms", q->speedup.old_ms > 0 ? q->speedup.old_ms : NAN);
    json_object_set_object_member(root, "teacher", o);
    g_autofree char *top1 =
        isnan(q->taught.top1) ? g_strdup("") : g_strdup_printf("top-1 %.2f %%, ", 100 * q->taught.top1);
    g_autofree char *time = q->speedup.old_ms > 0
                                ? g_strdup_printf("the student takes %.3g of its time, and ", q->speedup.effect.effect)
                                : g_strdup("the student takes ");
    hn_report_line(report, "teacher: %s%s%.3g of its bytes", top1, time, (double)q->file_after / bytes);
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
    json_object_set_int_member(root, "steps", hn_trainer_steps(q->trainer));
    json_object_set_int_member(root, "steps_before", q->resumed);
    if (q->half == HN_F16) {
        int64_t skipped;
        json_object_set_double_member(root, "loss_scale", hn_trainer_scale(q->trainer, &skipped));
        json_object_set_int_member(root, "steps_skipped", skipped);
    }
    hn_json_set_number(root, "lr", q->lr);
    json_object_set_int_member(root, "batch", q->sample->count);
    hn_json_set_number(root, "ms_per_step", steps > 0 ? s * 1e3 / (double)steps : NAN);
    hn_json_set_number(root, "samples_per_s", steps > 0 ? (double)(steps * q->sample->count) / s : NAN);
    HnForecast f;
    hn_trainer_forecast(q->trainer, &f);
    json_object_set_int_member(memory, "forecast", (gint64)f.needed);
    json_object_set_int_member(memory, "arena", (gint64)hn_trainer_arena(q->trainer));
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
    g_autofree char *losses = hn_objectives_describe(q->objectives);
    json_object_set_string_member(root, "objective", losses);
    json_object_set_string_member(root, "data", hn_data_source(q->all));
    json_object_set_int_member(root, "samples", hn_data_count(q->data));
    json_object_set_int_member(root, "bytes", (gint64)q->file_after);
    add_epochs(q, report);
    distill_report_auto(q, report);
    distill_report_tune(q, report);
    add_trained(q, report);
    add_cost(q, report);
    add_score(q, report);
    add_teacher(q, report);
    return hn_report_write(report, error);
}
