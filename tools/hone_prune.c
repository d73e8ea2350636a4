/* hone-prune: a model with fewer channels, repaired, where that is worth it; else nothing. */
#include "hone_prune.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "check/guard.h"
#include "check/recipe.h"
#include "ir/copy.h"
#include "ir/sparse.h"

#define WHAT "the pruned model"
#define RACE 5.0        /* seconds of runs of each model, for the last comparison */
#define NOT_SLOWER 1.02 /* of the time */
#define WORTHLESS 0.5   /* a loss of the metric that leaves nothing of the model */
#define MASK_ERROR 1e-4 /* of the largest result: the order of sums */

/* --- as it is masked ---------------------------------------------------------------------------------------------- */

static gboolean outputs_of(const Prune *q, HnModel *m, GPtrArray *out, GError **error)
{
    g_autoptr(HnSession) s = hn_session_new(
        m, q->backend, &(HnSessionOptions){ .threads = q->ctx->common.threads, .budget = q->ctx->budget }, error);
    if (s == NULL)
        return FALSE;
    g_ptr_array_set_size(out, hn_session_n_outputs(s));
    return hn_session_run(s, q->sample->in, (HnTensor **)out->pdata, error);
}

/* Largest difference over the largest result. */
static double difference(const GPtrArray *a, const GPtrArray *b)
{
    double worst = 0;
    for (guint k = 0; k < a->len; k++) {
        const HnTensor *x = a->pdata[k], *y = b->pdata[k];
        double most = 0, largest = 0;
        if (x == NULL || y == NULL || !hn_dtype_in(x->dtype, HN_T_FLOATS))
            continue;
        if (x->n != y->n)
            return INFINITY;
        for (int64_t i = 0; i < x->n; i++) {
            const double u = hn_tensor_get_f64(x, i), v = hn_tensor_get_f64(y, i);
            if (isfinite(v))
                largest = fmax(largest, fabs(v));
            if (u != v && !(isnan(u) && isnan(v)))
                most = fmax(most, isfinite(u - v) ? fabs(u - v) : INFINITY);
        }
        worst = fmax(worst, most > 0 ? most / largest : 0);
    }
    return worst;
}

/* Without the channels the model does what it does with 0 in their places. */
static gboolean check_removal(Prune *q, GError **error)
{
    if (!q->backend->computes)
        return TRUE;
    g_autoptr(GPtrArray) a = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
                         b = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autoptr(HnModel) masked = hn_pruned_masked(q->pruned, error);
    if (masked == NULL || !outputs_of(q, q->result, a, error) || !outputs_of(q, masked, b, error))
        return FALSE;
    q->mask_error = difference(a, b);
    if (q->mask_error <= MASK_ERROR)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                "without its channels the model differs from the one with 0 in their places by %.3g of the largest "
                "result: this is an error of hone",
                q->mask_error);
    return FALSE;
}

/* --- guards ------------------------------------------------------------------------------------------------------- */

static gboolean race(Prune *q, GError **error)
{
    const gboolean decides = q->budget == PRUNE_NO_BUDGET;
    const HnSpeedupOptions o = { .threads = q->ctx->common.threads,
                                 .seconds = prune_race_seconds(q, RACE),
                                 .limit = decides ? PRUNE_WORTH : NOT_SLOWER,
                                 .budget = q->ctx->budget,
                                 .progress = &q->ctx->progress };
    if (!q->backend->computes || q->recipe != NULL)
        return TRUE;
    if (!hn_measure_speedup(q->dense, q->result, q->backend, q->sample->in, &o, &q->speedup, error))
        return FALSE;
    q->has_speedup = isfinite(q->speedup.effect.effect);
    return !hn_progress_stop(&q->ctx->progress, error);
}

static gboolean guard_speed(const Prune *q, GError **error)
{
    if (q->p->force || !q->has_speedup)
        return TRUE;
    if (q->budget == PRUNE_NO_BUDGET)
        return hn_guard_speed(&q->speedup.effect, PRUNE_WORTH, WHAT, error);
    return hn_decide(&q->speedup.effect, NOT_SLOWER) != HN_LOST ||
           hn_guard_speed(&q->speedup.effect, NOT_SLOWER, WHAT, error);
}

static gboolean guard_loss(const Prune *q, GError **error)
{
    HnGoals goals = { 0 };
    if (q->p->force || q->scorer == NULL || q->recipe != NULL)
        return TRUE;
    hn_scorer_goals(q->scorer, q->max_drop, &goals);
    int which;
    if (!isnan(q->max_drop)) {
        const double drop = hn_goals_drop(&goals, &q->score, &q->original, &which);
        if (hn_goals_met(&goals, &q->score, &q->original))
            return TRUE;
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s loses %.3g %% of %s, more than %.3g %%", WHAT, drop * 100,
                    hn_metric_name(goals.goal[which].metric), goals.goal[which].most * 100);
        return FALSE;
    }
    const double drop = hn_score_drop(goals.goal[0].metric, &q->score, &q->original);
    if (drop <= WORTHLESS)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s loses %.3g %% of %s: too little is left of it; see '--force'",
                WHAT, drop * 100, hn_metric_name(goals.goal[0].metric));
    return FALSE;
}

static gboolean guard_size(const Prune *q, GError **error)
{
    return q->p->force || q->budget == PRUNE_ZEROS || q->recipe != NULL ||
           hn_guard_smaller(q->file_after, q->file_before, WHAT, error);
}

static gboolean guard_written(gpointer data, HnModel *m, GError **error)
{
    const Prune *q = data;
    const HnSessionOptions o = { .threads = q->ctx->common.threads, .budget = q->ctx->budget };
    return hn_guard_runs(m, q->backend, &o, q->sample->in, WHAT, error);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static gboolean begin(Prune *q, GError **error)
{
    if (q->p->replay != NULL && !prune_read_recipe(q, error))
        return FALSE;
    const PruneParams *p = q->p;
    if (p->plan != NULL && !prune_read_plan(q, error))
        return FALSE;
    if (!prune_parse(q, error) || (q->path = hn_tool_one_model(q->ctx, error)) == NULL ||
        (q->backend = hn_tool_backend(q->ctx, error)) == NULL ||
        (q->shapes = hn_tool_shapes(p->dim, p->shapes, error)) == NULL || !hn_tool_can_write(p->output, error) ||
        !hn_tool_can_write(p->write_plan, error))
        return FALSE;
    if (p->analyze || p->explain || (p->replay != NULL && p->output == NULL))
        return TRUE;
    return (p->output != NULL && !hn_out_is_stdout(p->output)) || hn_context_take_stdout(q->ctx, "the model", error);
}

static gboolean make(Prune *q, GError **error)
{
    if (!prune_choose(q, error))
        return FALSE;
    (void)hn_tune_phase_end(&q->limits);
    q->result = hn_pruned_model(q->pruned, error);
    return q->result != NULL && check_removal(q, error) && prune_count_flops(q, q->result, &q->flops_after, error) &&
           prune_in_steps(q, error) && prune_heal(q, error);
}

static gboolean write_model(Prune *q, GError **error)
{
    const HnOnnxWriteOptions o = {
        .external = q->external, .budget = q->ctx->budget, .check = guard_written, .data = q
    };
    gsize bytes;
    prune_write_recipe(q);
    if (q->store_sparse && (q->stored_sparse = hn_model_store_sparse(q->result, q->ctx->budget, error)) < 0)
        return FALSE;
    if (!hn_onnx_size(q->result, q->ctx->budget, &bytes, error))
        return FALSE;
    q->file_after = bytes;
    if (q->recipe != NULL && !hn_recipe_check_bytes(q->p->replay, q->result, q->ctx->budget, error))
        return FALSE;
    if (q->recipe != NULL && q->p->output == NULL)
        return TRUE;
    return guard_size(q, error) && !hn_progress_stop(&q->ctx->progress, error) &&
           hn_onnx_write_file(q->result, q->p->output != NULL ? q->p->output : "-", &o, error);
}

static gboolean work(Prune *q, GError **error)
{
    if (!begin(q, error))
        return FALSE;
    prune_start_clock(q);
    if (!prune_open(q, error) || !prune_take_hashes(q, error) || (!q->p->explain && !prune_open_journal(q, error)))
        return FALSE;
    if (q->p->explain)
        return prune_explain(q, error);
    if (q->p->analyze || (q->budget == PRUNE_NO_BUDGET && q->recipe == NULL)) {
        if (!prune_find_widths(q, 0, error))
            return FALSE;
        if (q->p->analyze)
            return prune_find_costs(q, error) && prune_report(q, error);
    }
    if (!make(q, error) || !prune_look_at_outputs(q, error) || !guard_loss(q, error) || !race(q, error) ||
        !guard_speed(q, error) || !write_model(q, error))
        return FALSE;
    prune_finish_points(q);
    return prune_write_plan(q, error) && prune_report(q, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    Prune q = { .ctx = ctx, .p = ctx->params };
    q.repairs = g_array_new(FALSE, FALSE, sizeof(PruneRepair));
    q.points = prune_points_new();
    q.outputs = g_array_new(FALSE, FALSE, sizeof(PruneOutput));
    q.blocks = prune_blocks_new();
    GError *failure = NULL;
    q.left_out = g_ptr_array_new();
    const gboolean ok = work(&q, &failure);
    if (!ok)
        prune_too_late(&q, &failure);
    hn_tune_clear(&q.limits);
    prune_close_journal(&q, failure);
    if (failure != NULL)
        g_propagate_error(error, failure);
    prune_clear_folds(&q);
    hn_pruned_free(q.pruned);
    hn_model_free(q.result);
    for (guint c = 0; q.loss != NULL && c < q.map->classes->len; c++)
        g_free(q.loss[c]);
    g_free(q.loss);
    g_free(q.keep);
    g_free(q.taylor);
    hn_prune_costs_free(q.ms);
    hn_prune_costs_free(q.bytes);
    hn_zeros_curves_free(q.zeros_loss);
    g_free(q.zeros_part);
    hn_scorer_free(q.scorer);
    hn_scorer_free(q.chooser);
    hn_metric_choice_clear(&q.choice);
    hn_sample_free(q.sample);
    hn_data_free(q.lessons);
    hn_sample_free(q.largest);
    hn_data_free(q.data);
    hn_data_free(q.drawn);
    hn_data_free(q.all);
    hn_prune_map_free(q.map);
    prune_clear_blocks(&q);
    hn_model_free(q.dense);
    hn_shapes_free(q.shapes);
    prune_clear_replayed(&q);
    g_clear_pointer(&q.plan, json_object_unref);
    g_clear_pointer(&q.memory.bytes, g_hash_table_unref);
    g_clear_pointer(&q.file, g_bytes_unref);
    g_ptr_array_unref(q.left_out);
    g_array_unref(q.repairs);
    g_array_unref(q.points);
    g_array_unref(q.outputs);
    return ok;
}

static const char *const usual[] = { "output",  "calib", "flops",   "latency", "sparsity", "max-drop", "metric",
                                     "threads", "json",  "verbose", "help",    "help-all", NULL };

static const HnTool tool = {
    .name = PRUNE_TOOL,
    .summary = "remove channels and repair what is left, without training",
    .usage = "[OPTIONS] MODEL --calib SRC --flops 0.5x -o OUT",
    .usual = usual,
    .examples = "hone-prune model.onnx --flops 0.5x --calib train.npz -o half.onnx\n"
                "hone-prune model.onnx --latency 0.7x --calib train.npz -o fast.onnx",
    .details =
        "Channels that go together leave all tensors at once: the file gets smaller and every runtime faster. Which go "
        "is decided by what the layers that read them lose, and their weights are computed anew by least squares on "
        "samples, which need no labels. Nothing is written that is larger, slower, or worthless.\n\n"
        "Exit status: 0 written; 1 bad model or data; 2 usage; 3 a guard was missed, nothing written; 4 unsupported; "
        "5 too noisy to tell whether it is faster, nothing written; 6 a limit was reached; 130 interrupted.",
    .options = prune_entries,
    .params_size = sizeof(PruneParams),
    .defaults = &prune_defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
