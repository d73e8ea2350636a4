#include "prune/ready.h"

#include "ir/sparse.h"
#include "op/infer.h"
#include "pass/opset.h"
#include "pass/pass.h"

static gboolean run_passes(HnModel *m, const HnPassOptions *o, GError **error)
{
    HnPassLog log;
    hn_pass_log_init(&log);
    const gboolean ok = hn_pass_run(m, o, &log, error);
    hn_pass_log_clear(&log);
    return ok;
}

static gboolean align(HnModel *m, HnBudget *budget, GError **error)
{
    for (guint i = 0; i < m->graph->weights->len; i++) {
        HnTensor *t = ((HnValue *)m->graph->weights->pdata[i])->weight;
        if (t != NULL && !t->unloaded && !hn_tensor_align(t, budget, error))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_prune_ready(HnModel *m, HnBudget *budget, const HnProgress *progress, GError **error)
{
    const HnPassOptions o = {
        .level = 1, .fold_bytes = HN_FOLD_BYTES, .lean = TRUE, .budget = budget, .progress = progress
    };
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    if (hn_model_store_dense(m, budget, error) < 0)
        return FALSE;
    hn_model_drop_defaults(m);
    if (!hn_settle_opset(m, hn_model_opset(m, NULL), blocked, error)) {
        if (blocked->len > 0)
            g_prefix_error(error, "%s: ", (const char *)blocked->pdata[0]);
        return FALSE;
    }
    if (!run_passes(m, &o, error))
        return FALSE;
    hn_model_name_apart(m);
    return hn_graph_infer(m->graph, FALSE, error) && align(m, budget, error);
}

gboolean hn_prune_sweep(HnModel *m, HnBudget *budget, GError **error)
{
    static const char *const dead[] = { "eliminate-dead", NULL };
    const HnPassOptions o = { .level = 1, .only = dead, .budget = budget };
    return run_passes(m, &o, error) && hn_graph_infer(m->graph, FALSE, error);
}
