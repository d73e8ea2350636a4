#include "check/session_need.h"

#include "check/outputs.h"
#include "ir/copy.h"

static gboolean run(HnSession *s, HnTensor *const *in, HnBudget *budget, GError **error)
{
    HnTensor **out = hn_outputs_run(s, in, budget, error);
    hn_outputs_free(out, hn_session_n_outputs(s));
    return out != NULL;
}

/* Plans for the types of `in`; where a backend computes, graphs inside other graphs are planned by running them. */
static gboolean plan(HnModel *m, const HnBackend *backend, int threads, HnBudget *budget, HnTensor *const *in,
                     HnSessionStats *stats, GError **error)
{
    const gboolean runs = backend->computes && m->graph->inner->len > 0;
    const HnSessionOptions o = { .threads = threads, .budget = budget, .plan_cache = 1 };
    g_autoptr(HnSession) s = hn_session_new(m, backend, &o, error);
    if (s == NULL || !hn_outputs_plan(s, in, error) || (runs && !run(s, in, budget, error)))
        return FALSE;
    hn_session_stats(s, stats);
    return TRUE;
}

gboolean hn_session_need(HnModel *m, const HnBackend *backend, int threads, HnTensor *const *in, gsize most,
                         HnSessionNeed *need, GError **error)
{
    HnSessionStats planned, real = { 0 };
    GError *failure = NULL;
    if (!plan(m, &hn_backend_null, threads, NULL, in, &planned, error))
        return FALSE;
    need->values = planned.arena_bytes + planned.output_bytes;
    need->results = planned.output_bytes;
    need->beside = planned.weight_bytes;
    if (most == 0 || !backend->computes)
        return TRUE;
    g_autoptr(HnBudget) budget = hn_budget_new(most);
    if (plan(m, backend, threads, budget, in, &real, &failure)) {
        const gsize peak = hn_budget_peak(budget);
        const gsize all = MAX(real.arena_bytes + real.output_bytes + real.packed_bytes, peak);
        need->beside = all > need->values ? all - need->values : 0;
        return TRUE;
    }
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) { /* it is more than that */
        const gsize least = most > need->values ? most - need->values + 1 : 0;
        need->beside = MAX(need->beside, least);
        g_clear_error(&failure);
        return TRUE;
    }
    g_propagate_error(error, failure);
    return FALSE;
}

gboolean hn_session_values(const HnModel *m, const GPtrArray *names, HnTensor *const *in, gsize *bytes, GError **error)
{
    g_autoptr(HnModel) look = hn_model_copy(m);
    HnSessionStats stats;
    *bytes = 0;
    while (look->graph->outputs->len > 0)
        hn_graph_remove_output(look->graph, (int)look->graph->outputs->len - 1);
    for (guint i = 0; i < names->len; i++) {
        HnValue *v = hn_graph_find(look->graph, names->pdata[i]);
        if (v != NULL && v->producer != NULL && !g_ptr_array_find(look->graph->outputs, v, NULL))
            hn_graph_add_output(look->graph, v);
    }
    if (look->graph->outputs->len == 0)
        return TRUE;
    if (!plan(look, &hn_backend_null, 1, NULL, in, &stats, error))
        return FALSE;
    *bytes = stats.arena_bytes + stats.output_bytes;
    return TRUE;
}
