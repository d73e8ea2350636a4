/* hone-quantize: --time-budget covers all of it. A safe plan comes first, and is written if nothing better is known. */
#include "hone_quantize.h"

#define SAFE_LEFT 0.08 /* of the whole time: what the search for a safe plan leaves; without one nothing is written */
#define WRITES 4       /* times as long as the safe plan's model took: to build another one, count, write and read it */
#define WRITE_RUNS 2   /* samples' time: the file is opened and run */
#define LEAST_WRITE 0.1

void quantize_start_clock(Quantize *q)
{
    q->limits.halt = q->ctx->halt;
    hn_tune_start_at(&q->limits, q->ctx->since_ns);
    hn_tune_phase(&q->limits, 1, 0);
}

/* The candidates of q->base with weights in integers and nothing else. NULL: --set asks for what is none. */
static HnQuantPlan *weights_only(const Quantize *q)
{
    HnQuantOptions o = q->base->o;
    o.integers = FALSE;
    o.per_tensor = q->p->per_tensor;
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&o);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(q->f32);
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        const HnQuantForm form = hn_quant_plan_form(q->base, n), weights = hn_quant_form_fit(n, HN_FORM_W8, &o);
        const gboolean kept = q->weights_only || form == HN_FORM_F32;
        if (!kept && g_hash_table_contains(q->pinned, hn_quant_name(n)) && form != weights)
            return NULL;
        hn_quant_plan_set_form(p, hn_quant_name(n), kept ? form : weights);
    }
    return g_steal_pointer(&p);
}

static gboolean search(Quantize *q, GError **error)
{
    HnSearchOptions so = q->so;
    so.by_time = so.all_alone = so.accumulated = FALSE;
    so.quick = TRUE;
    return hn_quant_search(q->safe_base, &so, &q->safe, error);
}

/* Its model, and how long that and counting its bytes take. What is too large is none. */
static gboolean build(Quantize *q, GError **error)
{
    gsize bytes;
    hn_tune_cost_start(&q->safe_cost);
    q->safe_result = hn_quant_build(q->safe.plan, &q->so, &q->safe_log, error);
    if (q->safe_result == NULL || !hn_onnx_size(q->safe_result, q->ctx->budget, &bytes, error))
        return FALSE;
    hn_tune_cost_stop(&q->safe_cost);
    const gboolean larger = bytes >= q->file_before && !q->p->allow_larger && !q->p->force;
    if (larger || (q->most_bytes > 0 && bytes > q->most_bytes))
        g_clear_pointer(&q->safe_result, hn_model_free);
    return TRUE;
}

gboolean quantize_find_safe(Quantize *q, GError **error)
{
    const gboolean wanted = q->limits.last != 0 && q->recipe == NULL && q->p->plan == NULL && !q->p->analyze;
    GError *failure = NULL;
    if (wanted && !quantize_has_room(q, q->safe_bytes)) {
        hn_context_note(q->ctx, 1, "memory is too short for a plan of weights alone beside the others");
        return TRUE;
    }
    if (!wanted || (q->safe_base = weights_only(q)) == NULL)
        return TRUE;
    hn_tune_phase(&q->limits, 1, SAFE_LEFT * q->limits.seconds);
    if (!search(q, &failure) && !hn_tune_was_cut(&q->limits, &failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    (void)hn_tune_phase_end(&q->limits);
    if (q->safe.plan == NULL || g_hash_table_size(q->safe.plan->forms) == 0)
        return TRUE;
    if (!build(q, error))
        return FALSE;
    hn_context_note(q->ctx, 1, "weights alone: drop %.3g %%, %.2f dB, after %.1f s", q->safe.drop * 100,
                    q->safe.score.sqnr, q->limits.seconds - hn_tune_left(&q->limits));
    return TRUE;
}

gboolean quantize_has_safe(const Quantize *q)
{
    return q->safe_result != NULL;
}

void quantize_take_safe(Quantize *q)
{
    hn_search_clear(&q->search);
    hn_repair_log_clear(&q->repairs);
    hn_model_free(q->result);
    q->search = q->safe;
    q->safe = (HnSearch){ 0 };
    q->repairs = (HnRepairLog){ 0 };
    q->result = g_steal_pointer(&q->safe_result);
    q->log = q->safe_log;
    q->seen = FALSE; /* nothing was made from samples */
    quantize_clear_folds(q);
    q->is_safe = TRUE;
}

double quantize_reserve_write(const Quantize *q)
{
    if (q->limits.last == 0)
        return 0;
    const double sample = hn_tune_again(&q->limits, &q->samples_cost) / (double)MAX(q->held, 1);
    return LEAST_WRITE + WRITES * hn_tune_again(&q->limits, &q->safe_cost) + WRITE_RUNS * sample;
}

double quantize_reserve(const Quantize *q)
{
    return quantize_reserve_write(q) + hn_tune_race_seconds(&q->limits);
}

gboolean quantize_too_late(Quantize *q, GError *failure, GError **error)
{
    if (hn_tune_was_cut(&q->limits, &failure))
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET,
                    "the time of '--time-budget' was over before a plan was found: %g s are too few for this model and "
                    "its samples",
                    q->limits.seconds);
    else
        g_propagate_error(error, failure);
    return FALSE;
}

void quantize_clear_safe(Quantize *q)
{
    hn_tune_clear(&q->limits);
    hn_search_clear(&q->safe);
    g_clear_pointer(&q->safe_base, hn_quant_plan_free);
    g_clear_pointer(&q->safe_result, hn_model_free);
}
