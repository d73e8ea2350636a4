/*
 * hone-quantize: --mem-limit covers all of it. What each phase needs is planned, and told, before any of it runs; what
 * may be left out (repairs, samples left out in turn, several models at a time) leaves the rest what it needs.
 */
#include <malloc.h>

#include "base/clock.h"
#include "base/text.h"
#include "check/session_need.h"
#include "hone_quantize.h"

#define SLACK 1.05 /* of what is counted: graphs and plans grow, too */
#define SPAN 1.0   /* stands for all ranges: none is known, and none has a part in sizes */

/* Bytes of a model, beside what the command has anyway. */
typedef struct {
    gsize model;   /* its own weights, and what making it takes */
    gsize session; /* ready to run ... */
    gsize outputs; /* ... of that results */
} Need;

/* What is left of the limit, as a budget of its own. */
static HnBudget *open_rest(const Quantize *q)
{
    const gsize limit = hn_budget_limit(q->ctx->budget), used = hn_budget_used(q->ctx->budget);
    HnBudget *b = hn_budget_new(limit > used ? limit - used : 1);
    hn_budget_watch(b, hn_budget_halt(q->ctx->budget));
    return b;
}

static gboolean plan_session(const Quantize *q, HnModel *m, HnTensor *const *in, Need *need, GError **error)
{
    const gsize limit = hn_budget_limit(q->ctx->budget), used = hn_budget_used(q->ctx->budget);
    HnSessionNeed n;
    if (!hn_session_need(m, q->backend, q->ctx->common.threads, in, limit > used ? limit - used : 1, &n, error))
        return FALSE;
    need->session = n.values + n.beside;
    need->outputs = n.results;
    return TRUE;
}

static void take_spans(HnQuantPlan *p, HnModel *m)
{
    hn_quant_spread(p, m);
    g_autoptr(GPtrArray) values = hn_quant_wanted(p, m);
    for (guint i = 0; i < values->len; i++)
        if (hn_quant_plan_span(p, values->pdata[i]) == NULL)
            hn_quant_plan_set_span(p, ((const HnValue *)values->pdata[i])->name, 0, SPAN);
}

/* Of the main graph: what is stored in few bits, and computed in f32, is made one by one before it is packed. */
static gsize largest_weight(const HnModel *m)
{
    gsize most = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        most = MAX(most, t != NULL ? t->bytes : 0);
    }
    return most;
}

static gboolean plan_trial(const Quantize *q, HnTensor *const *in, Need *need, GError **error)
{
    HnQuantLog log;
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(q->base);
    g_autoptr(HnModel) m = quantize_open_prepared((gpointer)q, error);
    if (m == NULL)
        return FALSE;
    HnBudget *rest = open_rest(q);
    take_spans(p, m);
    gboolean ok = hn_quant_apply(p, m, rest, &log, error);
    need->model = hn_budget_peak(rest);
    ok = ok && plan_session(q, m, in, need, error);
    g_clear_pointer(&m, hn_model_free);
    hn_budget_unref(rest);
    return ok;
}

/* Of ranges that are looked for: *bytes, beside what q has; *kept: of them while methods are tried. */
static gboolean plan_calibration(const Quantize *q, HnTensor *const *in, gsize *bytes, gsize *kept, GError **error)
{
    *bytes = *kept = 0;
    if (!q->by_ranges || q->p->ranges != NULL || q->plan_spans)
        return TRUE;
    HnBudget *rest = open_rest(q);
    g_autoptr(HnModel) m = quantize_open_prepared((gpointer)q, error);
    HnCalibrator *c = m != NULL ? quantize_open_calibrator(q, m, q->base, rest, NULL, error) : NULL;
    const gboolean inner = m != NULL && m->graph->inner->len > 0; /* what branches take shows when they run */
    const gboolean ok =
        c != NULL && hn_calibrator_prepare(c, in, bytes, error) && (!inner || hn_calibrator_run(c, in, error));
    const gsize peak = hn_budget_peak(rest);
    if (inner)
        *bytes = MAX(*bytes, peak);
    *kept = c != NULL ? hn_calibrator_bytes(c) : 0;
    hn_calibrator_free(c);
    g_clear_pointer(&m, hn_model_free);
    hn_budget_unref(rest);
    return ok;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

typedef enum { PHASE_MODEL, PHASE_CALIBRATION, PHASE_TRIAL, PHASE_RACE, PHASE_WRITING, PHASES } Phase;

static const char *const phases[] = { "the model itself", "calibration", "a trial", "races", "writing" };

static char *describe(const gsize *need, int known)
{
    GString *text = g_string_new(NULL);
    for (int k = 0; k < known; k++) {
        g_autofree char *size = hn_text_size(need[k]);
        g_string_append_printf(text, "%s%s %s", k > 0 ? ", " : "", phases[k], size);
    }
    return g_string_free(text, FALSE);
}

/* BUDGET: all phases, or those up to the one that could not be planned for want of memory. */
static void refuse(const Quantize *q, const gsize *need, int known, GError **error)
{
    g_autofree char *limit = hn_text_size(hn_budget_limit(q->ctx->budget)), *text = describe(need, known);
    if (known == PHASES)
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "the memory limit of %s is too small; needed: %s", limit, text);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "the memory limit of %s is too small; needed: %s%smore for %s",
                    limit, text, known > 0 ? ", and " : "", phases[known]);
}

gboolean quantize_charge_program(Quantize *q, GError **error)
{
    HnBudget *b = q->ctx->budget;
    if (hn_budget_limit(b) == 0)
        return TRUE;
    malloc_trim(0);
    hn_budget_uncharge(b, q->program_bytes);
    const gsize used = hn_budget_used(b), now = hn_mem_private(), more = now > used ? now - used : 0;
    q->program_bytes = 0;
    if (more > 0 && !hn_budget_charge(b, more, error))
        return FALSE;
    q->program_bytes = more;
    return TRUE;
}

/* *known: phases planned so far; FALSE where the next one cannot be. */
static gboolean plan_all(Quantize *q, gsize *need, int *known, GError **error)
{
    g_autoptr(HnSample) largest = hn_data_load_largest(q->data, error);
    g_autoptr(HnModel) m = largest != NULL ? quantize_open_prepared(q, error) : NULL;
    Need f32 = { 0 }, trial = { 0 };
    gsize calibration, histograms;
    if (m == NULL || !quantize_charge_program(q, error))
        return FALSE;
    const gsize here = hn_budget_used(q->ctx->budget);
    if (!plan_session(q, m, largest->in, &f32, error))
        return FALSE;
    /* what the original says, or its session, which says it again */
    const gsize kept = hn_scorer_kept_bytes(q->held, f32.outputs);
    const gboolean all = kept == (gsize)q->held * f32.outputs;
    const gsize rest = here + kept + (all ? 0 : f32.session);
    need[(*known)++] = rest + (all ? f32.session : 0);
    if (!plan_calibration(q, largest->in, &calibration, &histograms, error))
        return FALSE;
    need[(*known)++] = rest + calibration;
    if (!plan_trial(q, largest->in, &trial, error))
        return FALSE;
    const gsize partly = f32.session + largest_weight(m), either = MAX(partly, trial.session);
    need[(*known)++] = rest + trial.model + either;
    need[PHASE_CALIBRATION] = MAX(need[PHASE_CALIBRATION], need[PHASE_TRIAL] + histograms);
    need[(*known)++] = rest + trial.model + f32.session + either;
    need[(*known)++] = rest + 2 * trial.model + either; /* the file's bytes are nearly all weights */
    q->trial_bytes = need[PHASE_TRIAL] - rest;
    q->reserve = MAX(need[PHASE_RACE], need[PHASE_WRITING]) - rest;
    q->safe_bytes = trial.model + need[PHASE_CALIBRATION] - rest;
    q->safe_bytes = q->safe_bytes > q->reserve ? q->safe_bytes - q->reserve : 0;
    q->safe_bytes = (gsize)(SLACK * (double)MAX(q->safe_bytes, trial.model));
    for (int k = 0; k < *known; k++)
        need[k] = (gsize)(SLACK * (double)need[k]) + HN_SPARE_BYTES;
    return TRUE;
}

gboolean quantize_forecast(Quantize *q, GError **error)
{
    gsize need[PHASES] = { 0 }, most = 0;
    int known = 0;
    GError *failure = NULL;
    const gsize limit = hn_budget_limit(q->ctx->budget);
    if (limit == 0)
        return TRUE;
    if (!plan_all(q, need, &known, &failure)) {
        if (g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) {
            g_clear_error(&failure);
            refuse(q, need, known, error);
            return FALSE;
        }
        g_propagate_error(error, failure);
        return FALSE;
    }
    for (int k = 0; k < PHASES; k++)
        most = MAX(most, need[k]);
    if (most > limit) {
        refuse(q, need, PHASES, error);
        return FALSE;
    }
    g_autofree char *text = describe(need, PHASES);
    hn_context_note(q->ctx, 1, "memory: %s", text);
    return TRUE;
}

gboolean quantize_has_room(const Quantize *q, gsize more)
{
    const gsize limit = hn_budget_limit(q->ctx->budget), used = hn_budget_used(q->ctx->budget);
    return limit == 0 || (used <= limit && limit - used >= q->reserve + more);
}
