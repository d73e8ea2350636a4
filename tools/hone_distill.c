/* hone-distill: a model that learns, from labels or from another model; written where it is no worse than before. */
#include "hone_distill.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonread.h"
#include "check/guard.h"
#include "check/recipe.h"

#define WHAT "the trained model"

/* --- the recipe --------------------------------------------------------------------------------------------------- */

static JsonObject *options_of(const Distill *q)
{
    return hn_recorded_json(&distill_recorded, q->p, q->ctx->common.seed);
}

static JsonObject *went_in(const Distill *q)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "input", q->student_hash);
    json_object_set_string_member(o, "data", q->data_hash);
    json_object_set_string_member(o, "val", q->val_hash);
    json_object_set_string_member(o, "teacher", q->teacher_hash);
    return o;
}

/* A checkpoint is for who goes on with the same of all that. */
static void hash_recipe(Distill *q)
{
    g_autoptr(JsonObject) all = went_in(q);
    json_object_set_object_member(all, "options", options_of(q));
    q->made = distill_narrower(q);
    if (q->made != NULL)
        json_object_set_string_member(all, DISTILL_NARROWER, q->made);
    g_autofree char *text = hn_json_line(all);
    q->recipe_hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

static void write_recipe(const Distill *q)
{
    JsonObject *o = went_in(q);
    json_object_set_double_member(o, "lr", q->lr);
    json_object_set_int_member(o, "epoch", hn_fit_best(q->fit));
    distill_record_auto(q, o);
    hn_recipe_write(q->plain, DISTILL_TOOL, options_of(q), o);
    hn_model_set_metadata(q->plain, HN_SPEED_ONLY, NULL);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static gboolean guard_loss(const Distill *q, GError **error)
{
    const HnJudgement *a = &q->after, *b = &q->before;
    const char *metric;
    const double now = distill_metric(a, &metric), old = distill_metric(b, &metric);
    if (q->p->force || q->recipe != NULL || hn_judgement_better(a, b)) /* the recipe's bytes were judged before */
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                WHAT "'s %s is %.4g on %" G_GINT64_FORMAT " samples%s, and was %.4g before: a lower '--lr', or more "
                     "'--epochs', may help; see '--force'",
                metric, now, a->samples, now == old ? ", its loss no smaller" : "", old);
    return FALSE;
}

static gboolean guard_written(gpointer data, HnModel *m, GError **error)
{
    const Distill *q = data;
    const HnSessionOptions o = { .threads = q->ctx->common.threads, .budget = q->ctx->budget };
    g_autoptr(HnSample) one = hn_data_load(q->data, 0, error);
    return one != NULL && hn_guard_runs(m, q->backend, &o, one->in, WHAT, error);
}

static gboolean write_model(Distill *q, GError **error)
{
    const HnOnnxWriteOptions o = {
        .external = q->external, .budget = q->ctx->budget, .bytes = &q->file_after, .check = guard_written, .data = q
    };
    if (!hn_fit_store(q->fit, q->plain, error))
        return FALSE;
    write_recipe(q);
    if (q->recipe != NULL && !hn_recipe_check_bytes(q->p->replay, q->plain, q->ctx->budget, error))
        return FALSE;
    if (q->recipe != NULL && q->p->output == NULL)
        return TRUE;
    return !hn_progress_stop(&q->ctx->progress, error) &&
           hn_onnx_write_file(q->plain, q->p->output != NULL ? q->p->output : "-", &o, error);
}

static gboolean work(Distill *q, GError **error)
{
    if (q->p->replay != NULL && !distill_read_recipe(q, error))
        return FALSE;
    const DistillParams *p = q->p;
    if (!distill_parse(q, error) || (q->backend = hn_tool_backend(q->ctx, error)) == NULL)
        return FALSE;
    /* said before the time is spent on training; a cache that is there is read */
    g_autofree char *journal = hn_tool_journal_path(p->journal, p->output);
    const gboolean cached = p->cache != NULL && g_file_test(p->cache, G_FILE_TEST_IS_REGULAR);
    const char *const written[] = { p->output, p->checkpoint, cached ? NULL : p->cache, journal };
    for (gsize i = 0; i < G_N_ELEMENTS(written); i++)
        if (!hn_tool_can_write(written[i], error))
            return FALSE;
    const gboolean silent = p->list_trainable || (p->replay != NULL && p->output == NULL);
    if (!silent && (p->output == NULL || hn_out_is_stdout(p->output)) &&
        !hn_context_take_stdout(q->ctx, "the model", error))
        return FALSE;
    if (!distill_tune(q, error) || !distill_open(q, error))
        return FALSE;
    if (p->list_trainable)
        return distill_list(q, error);
    hash_recipe(q);
    if (!distill_train(q, error) || !distill_judge_fit(q, q, &q->after, error) || !guard_loss(q, error))
        return FALSE;
    return distill_compare(q, error) && write_model(q, error) && distill_plot(q, error) && distill_report(q, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    Distill q = { .ctx = ctx, .p = ctx->params };
    GError *failure = NULL;
    const gboolean ok = work(&q, &failure);
    distill_end_tune(&q, failure);
    distill_clear(&q);
    if (!ok)
        g_propagate_error(error, failure);
    return ok;
}

static const char *const usual[] = { "output", "student", "teacher", "data",    "val",  "loss",     "epochs",
                                     "init",   "threads", "json",    "verbose", "help", "help-all", NULL };

static const HnTool tool = {
    .name = DISTILL_TOOL,
    .summary = "train a model, from labels or from what another model says",
    .usage = "[OPTIONS] --student MODEL --data SRC [--teacher MODEL] -o OUT",
    .usual = usual,
    .examples = "hone-distill --student half.onnx --teacher m.onnx --data x.npz -o out.onnx\n"
                "hone-distill --student m.onnx --init random:1 --data train.npz -o out.onnx",
    .details =
        "The file that is written is the student's own graph, with the same nodes and names and other weights. It is "
        "judged behind each epoch by samples that it does not learn from, and the best weights are written, where they "
        "are no worse than those that came in.\n\n"
        "Exit status: 0 written; 1 bad model or data; 2 usage; 3 a guard was missed, nothing written; 4 unsupported: "
        "no weight can be trained, or a node on the way to one has no gradient; 6 a limit was reached; 130 "
        "interrupted.",
    .options = distill_entries,
    .params_size = sizeof(DistillParams),
    .defaults = &distill_defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
