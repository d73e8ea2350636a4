/* hone-quantize: a model in integers, where that is right, smaller and faster; else nothing. */
#include "hone_quantize.h"

#include <malloc.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "check/guard.h"
#include "check/recipe.h"
#include "ir/copy.h"
#include "onnx/onnx.h"
#include "quant/size_bound.h"
#include "verdict.h"

#define WHAT "the quantized model"
#define FIRST_SINGLE 4      /* trial from which on a search is a long one */
#define LARGE (1 << 30)     /* bytes */
#define LONG 10             /* seconds of runs of each model at most, for the last race */
#define REPAIR_PART 0.5     /* of the time that is left: calibration and repairs */
#define FOLD_PART 0.5       /* of what is left then: what few samples are judged by */
#define FIRST_RACE 0.6      /* of what is left for races: another one may follow */
#define MMAP_FROM (1 << 17) /* bytes: memory of this size and more goes back to the system when it is freed ... */
#define FREE_MOST (1 << 26) /* ... where it is short; where not, so much of it may wait for its next use */

static void tell_trial(gpointer data, const HnTrial *t)
{
    Quantize *q = data;
    if (t->number == FIRST_SINGLE && !q->search_long) { /* more than those of a plan that will do */
        q->search_long = TRUE;
        quantize_phase(q, QUANTIZE_SEARCH);
    }
    hn_context_note(q->ctx, 1, "trial %u, %s: drop %.3g %%, %.2f dB", t->number, t->what, t->drop * 100, t->score.sqnr);
}

/* What --size leaves for weights: the rest of the file stays about as large. */
static guint64 most_weights(const Quantize *q)
{
    const guint64 weights = hn_model_weight_bytes(q->f32),
                  rest = q->file_before > weights ? q->file_before - weights : 0;
    return q->most_bytes > rest ? q->most_bytes - rest : q->most_bytes;
}

static gboolean open_scorer(Quantize *q, GError **error)
{
    const HnScorerOptions o = { .backend = q->backend,
                                .threads = q->ctx->common.threads,
                                .budget = q->ctx->budget,
                                .progress = &q->ctx->progress,
                                .choice = &q->choice };
    g_autoptr(HnModel) given =
        quantize_open_given(q, error); /* not the prepared one: what preparing broke would not be seen */
    if (given == NULL)
        return FALSE;
    hn_tune_cost_start(&q->samples_cost);
    q->scorer = hn_scorer_new(g_steal_pointer(&given), q->data, q->held_first, q->held, &o, error);
    if (q->scorer == NULL) {
        if (q->reserve > 0 && error != NULL && g_error_matches(*error, HN_ERROR, HN_ERROR_BUDGET))
            g_prefix_error(error, "running the model: ");
        return FALSE;
    }
    hn_tune_cost_stop(&q->samples_cost);
    q->sample_seconds = q->samples_cost.seconds / (double)MAX(q->held, 1);
    q->so = (HnSearchOptions){ .open = quantize_open_prepared,
                               .data = q,
                               .scorer = q->scorer,
                               .by_time = !q->weights_only,
                               .all_alone = q->p->analyze,
                               .accumulated = q->p->analyze,
                               .pinned = q->pinned,
                               .most_bytes = most_weights(q),
                               .improved = quantize_improved,
                               .backend = q->backend,
                               .threads = q->ctx->common.threads,
                               .budget = &q->limits,
                               .progress = &q->ctx->progress,
                               .trial = tell_trial };
    hn_scorer_goals(q->scorer, q->max_drop, &q->so.goals);
    return hn_verdict_judges(q->ctx, q->scorer, q->p->force || q->p->analyze, error);
}

/* What the result may take of the f32 model's time. */
static double most_time(const Quantize *q)
{
    return (q->weights_only || q->is_safe) && q->p->min_speedup == 1 ? 1.02 : 1 / q->p->min_speedup;
}

/* The result against f32, in that part of the time that is left for it. */
static gboolean race(Quantize *q, double part, GError **error)
{
    GError *failure = NULL;
    quantize_phase(q, QUANTIZE_RACES);
    hn_tune_phase(&q->limits, part, quantize_reserve_write(q));
    const HnSpeedupOptions o = { .threads = q->ctx->common.threads,
                                 .seconds = LONG,
                                 .limit = most_time(q),
                                 .end = q->limits.end,
                                 .budget = q->ctx->budget,
                                 .progress = &q->ctx->progress };
    const gboolean ok =
        hn_measure_speedup(q->f32, q->result, q->backend, hn_scorer_inputs(q->scorer), &o, &q->speedup, &failure);
    q->has_speedup = ok && isfinite(q->speedup.effect.effect);
    if (!ok && !hn_tune_was_cut(&q->limits, &failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    (void)hn_tune_phase_end(&q->limits);
    return !hn_progress_stop(&q->ctx->progress, error);
}

static HnDecision decision(const Quantize *q)
{
    return q->has_speedup ? hn_decide(&q->speedup.effect, most_time(q)) : HN_UNDECIDED;
}

static gboolean guard_speed(const Quantize *q, GError **error)
{
    const HnEffect unknown = { .effect = NAN, .sure_lo = NAN, .sure_hi = NAN };
    if (q->recipe != NULL || q->p->force) /* another machine's times are no reason */
        return TRUE;
    return hn_guard_speed(q->has_speedup ? &q->speedup.effect : &unknown, most_time(q), WHAT, error);
}

/* Of a large model its weights: the rest is next to nothing, and it has no single message. */
static gboolean count_bytes(Quantize *q, GError **error)
{
    q->file_after = hn_model_weight_bytes(q->result);
    if (q->file_after >= LARGE)
        return TRUE;
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(q->result, q->ctx->budget, error);
    q->file_after = bytes != NULL ? g_bytes_get_size(bytes) : 0;
    return bytes != NULL;
}

static gboolean guard_size(const Quantize *q, guint64 bytes, const char *what, GError **error)
{
    if (q->p->force)
        return TRUE;
    return (q->p->allow_larger || hn_guard_smaller(bytes, q->file_before, what, error)) &&
           hn_guard_size(bytes, q->most_bytes, "--size", what, error);
}

static gboolean guard_written(gpointer data, HnModel *m, GError **error)
{
    const Quantize *q = data;
    const HnSessionOptions o = { .threads = q->ctx->common.threads, .budget = q->ctx->budget };
    return hn_guard_runs(m, q->backend, &o, hn_scorer_inputs(q->scorer), WHAT, error);
}

gboolean quantize_write(Quantize *q, const HnModel *m, const char *path, GError **error)
{
    const HnOnnxWriteOptions o = {
        .external = q->external, .budget = q->ctx->budget, .check = guard_written, .data = q
    };
    return hn_onnx_write_file(m, path, &o, error);
}

static gboolean write_model(Quantize *q, GError **error)
{
    const char *path = q->p->output != NULL ? q->p->output : "-";
    quantize_write_recipe(q);
    if (!count_bytes(q, error) || !guard_size(q, q->file_after, WHAT, error))
        return FALSE;
    if (q->recipe != NULL && !hn_recipe_check_bytes(q->p->replay, q->result, q->ctx->budget, error))
        return FALSE;
    if (q->recipe != NULL && q->p->output == NULL)
        return TRUE;
    return !hn_progress_stop(&q->ctx->progress, error) && quantize_write(q, q->result, path, error);
}

static gboolean refuse(Quantize *q, GError **error)
{
    g_autofree char *goals = quantize_goals(q);
    if (q->search.slower)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_GUARD, "no part of the model is faster with integers");
    else if (q->search.plan == NULL && q->search.out_of_time)
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET,
                    "the time of '--time-budget' was over before a plan was found with a loss of at most %s", goals);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "no part of the model can be quantized with a loss of at most %s",
                    goals);
    return FALSE;
}

/* What is told beforehand is not looked for. */
static gboolean fix_plan(Quantize *q, GError **error)
{
    if (q->p->plan != NULL)
        q->so.fixed = q->base;
    return q->recipe == NULL || quantize_replay_plan(q, error);
}

/* What the command line, or a recipe, says; no model is read yet. */
static gboolean begin(Quantize *q, GError **error)
{
    if (q->p->replay != NULL && !quantize_read_recipe(q, error))
        return FALSE;
    const QuantizeParams *p = q->p;
    if (!quantize_parse_mode(q, error))
        return FALSE;
    q->path = hn_tool_one_model(q->ctx, error);
    q->backend = q->path != NULL ? hn_tool_backend(q->ctx, error) : NULL;
    q->shapes = q->backend != NULL ? hn_tool_shapes(p->dim, p->shapes, error) : NULL;
    if (q->shapes == NULL)
        return FALSE;
    if (p->analyze || (p->replay != NULL && p->output == NULL)) /* nothing is written */
        return TRUE;
    const gboolean to_stdout = p->output == NULL || hn_out_is_stdout(p->output);
    return !to_stdout || hn_context_take_stdout(q->ctx, "the model", error);
}

/* Where no plan at all makes the file as small as it has to be, none is looked for. */
static gboolean guard_bound(const Quantize *q, GError **error)
{
    gsize bytes;
    if (q->p->analyze || q->p->plan != NULL || q->recipe != NULL || q->file_before >= LARGE)
        return TRUE;
    return hn_onnx_size(q->f32, q->ctx->budget, &bytes, error) &&
           guard_size(q, hn_quant_least_bytes(q->base, q->f32, bytes), "the smallest quantized model in this mode",
                      error);
}

/* The model, what may become of it, samples, and who judges by them. */
static gboolean open_all(Quantize *q, GError **error)
{
    if (!quantize_prepare(q, error) || !quantize_base_plan(q, error) || !guard_bound(q, error) ||
        !quantize_open_data(q, error))
        return FALSE;
    if (!quantize_take_hashes(q, error) || (q->recipe != NULL && !quantize_check_recipe(q, error)))
        return FALSE;
    return quantize_forecast(q, error) && open_scorer(q, error) && quantize_check_original(q, error);
}

/* Ranges, repairs, and the search: q->search. */
static gboolean find_plan(Quantize *q, GError **error)
{
    const gboolean ranges = q->by_ranges && !q->plan_spans;
    q->untouched = hn_model_copy(q->prepared);
    q->blank = hn_quant_plan_copy(q->base);
    hn_tune_phase(&q->limits, REPAIR_PART, quantize_reserve(q));
    quantize_phase(q, QUANTIZE_CALIBRATION);
    if (ranges && !quantize_calibrate(q, error))
        return FALSE;
    quantize_hint(q);
    quantize_phase(q, QUANTIZE_REPAIRS);
    (void)quantize_charge_program(q, NULL); /* where that is too much, what may be left out is */
    if (!quantize_repair(q, error))
        return FALSE;
    hn_tune_phase(&q->limits, FOLD_PART, quantize_reserve(q));
    quantize_phase(q, QUANTIZE_FOLDS);
    (void)quantize_charge_program(q, NULL);
    if (!quantize_make_folds(q, error))
        return FALSE;
    hn_tune_phase(&q->limits, 1, quantize_reserve(q));
    quantize_phase(q, QUANTIZE_SEARCH);
    if (!fix_plan(q, error) || !quantize_open_journal(q, error))
        return FALSE;
    return hn_quant_search(q->base, &q->so, &q->search, error);
}

static gboolean has_forms(const HnQuantPlan *p)
{
    return p != NULL && g_hash_table_size(p->forms) > 0;
}

/* A replay makes what was made then, --force all that may be, whatever it loses: what a search began with. */
static void insist(Quantize *q)
{
    const gboolean again = q->recipe != NULL && q->search.plan == NULL;
    if (q->search.nodes == NULL)
        return;
    if (!again && (!q->p->force || has_forms(q->search.plan)))
        return;
    hn_search_insist(&q->search, hn_quant_plan_copy(again ? q->fixed : q->base));
}

/* Where time is over before any plan is known, and there is a safe one, that is no failure. */
static gboolean find_in_time(Quantize *q, GError **error)
{
    GError *failure = NULL;
    const gboolean found = find_plan(q, &failure);
    gboolean cut = !found && hn_tune_was_cut(&q->limits, &failure);
    if (!found && !cut && q->reserve > 0 && q->search.plan != NULL &&
        g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) {
        hn_context_warn(q->ctx, "the search ended early: %s", failure->message);
        g_clear_error(&failure);
        cut = TRUE;
    }
    (void)hn_tune_phase_end(&q->limits);
    if (!found && !cut) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    q->search.out_of_time = q->search.out_of_time || cut;
    return TRUE;
}

/* Weights alone, in time: only what is known to be slower is refused. */
static gboolean fall_back(Quantize *q, GError **error)
{
    quantize_take_safe(q);
    if (!race(q, 1, error) || (decision(q) == HN_LOST && !guard_speed(q, error)))
        return FALSE;
    if (decision(q) == HN_UNDECIDED)
        hn_context_warn(q->ctx,
                        "only weights are quantized, and there was no time to tell whether they make it slower");
    return TRUE;
}

/* The plan found, where it is fast enough; with --time-budget the safe one, where it is not. */
static gboolean make_result(Quantize *q, GError **error)
{
    if (has_forms(q->search.plan)) {
        q->result = hn_quant_build(q->search.plan, &q->so, &q->log, error);
        if (q->result == NULL || !race(q, quantize_has_safe(q) ? FIRST_RACE : 1, error))
            return FALSE;
        if (decision(q) == HN_WON || !quantize_has_safe(q) || q->p->force)
            return guard_speed(q, error);
    }
    return quantize_has_safe(q) ? fall_back(q, error) : refuse(q, error);
}

static gboolean work(Quantize *q, GError **error)
{
    GError *failure = NULL;
    if (!begin(q, error))
        return FALSE;
    quantize_start_clock(q);
    if (!open_all(q, &failure) || !quantize_find_safe(q, &failure))
        return quantize_too_late(q, failure, error);
    if (!find_in_time(q, error))
        return FALSE;
    if (q->p->analyze)
        return quantize_write_plan(q, error) && quantize_report(q, error);
    insist(q);
    if (!quantize_check_score(q, error) || !make_result(q, error) || !quantize_look(q, error) || !write_model(q, error))
        return FALSE;
    return quantize_write_plan(q, error) && quantize_report(q, error);
}

/* --format says what the model is made of, or, as in other tools, what the report is. */
static gboolean take_format(HnContext *ctx, GError **error)
{
    QuantizeParams *p = ctx->params;
    HnFormat format;
    if (p->format == NULL || !hn_format_parse(p->format, &format))
        return TRUE;
    g_clear_pointer(&p->format, g_free);
    return hn_common_set_format(&ctx->common, format, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    if (!take_format(ctx, error))
        return FALSE;
    Quantize q = { .ctx = ctx, .p = ctx->params, .limits = { .memory = ctx->budget } };
    if (ctx->common.mem_limit > 0) {
        mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    } else { /* what one trial frees the next one takes again */
        mallopt(M_MMAP_THRESHOLD, FREE_MOST / 2);
        mallopt(M_TRIM_THRESHOLD, FREE_MOST);
    }
    GError *failure = NULL;
    const gboolean ok = work(&q, &failure);
    quantize_close_journal(&q, failure);
    if (!ok)
        g_propagate_error(error, failure);
    hn_search_clear(&q.search);
    hn_repair_log_clear(&q.repairs);
    quantize_clear_safe(&q);
    hn_scorer_free(q.scorer);
    hn_metric_choice_clear(&q.choice);
    hn_data_free(q.data);
    hn_data_free(q.all);
    hn_quant_plan_free(q.base);
    hn_quant_plan_free(q.fixed);
    quantize_clear_replayed(&q);
    quantize_clear_folds(&q);
    hn_quant_plan_free(q.blank);
    hn_model_free(q.untouched);
    hn_model_free(q.result);
    hn_model_free(q.f32);
    hn_shapes_free(q.shapes);
    hn_model_free(q.prepared);
    g_clear_pointer(&q.file, g_bytes_unref);
    g_clear_pointer(&q.pinned, g_hash_table_unref);
    g_free(q.method_without);
    hn_calibrator_free(q.shown);
    g_clear_pointer(&q.shown_values, g_ptr_array_unref);
    g_free(q.plan_repairs);
    g_free(q.model_hash);
    g_free(q.data_hash);
    return ok;
}

static const char *const usual[] = { "output",     "calib",   "mode", "bits",    "metric", "max-drop", "exclude",
                                     "speed-only", "threads", "json", "verbose", "help",   "help-all", NULL };

static const HnTool tool = {
    .name = QUANTIZE_TOOL,
    .summary = "make a model of integers, where that is right, smaller and faster",
    .usage = "[OPTIONS] MODEL --calib SRC -o OUT",
    .usual = usual,
    .examples = "hone-quantize model.onnx --calib samples/ -o int8.onnx\n"
                "hone-quantize model.onnx --mode weights --bits 4 --calib samples/ -o w4.onnx",
    .details =
        "Ranges come from samples; what integers lose is measured on samples held out, and nodes that lose too much, "
        "or are not faster, stay as they are. Nothing is written unless the result is smaller, faster and within "
        "--max-drop.\n\n"
        "Exit status: 0 written; 1 bad model or data; 2 usage; 3 a guard was missed, nothing written; 4 unsupported; "
        "5 too noisy to tell whether it is faster, nothing written; 6 a limit was reached; 130 interrupted.",
    .options = quantize_entries,
    .params_size = sizeof(QuantizeParams),
    .defaults = &quantize_defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
