#include "quant/prepare.h"

#include "op/infer.h"
#include "pass/opset.h"
#include "pass/pass.h"

static gboolean simplify(HnModel *m, HnBudget *budget, const HnProgress *progress, GError **error)
{
    const HnPassOptions o = { .level = 1, .fold_bytes = HN_FOLD_BYTES, .budget = budget, .progress = progress };
    HnPassLog log;
    hn_pass_log_init(&log);
    const gboolean ok = hn_pass_run(m, &o, &log, error);
    hn_pass_log_clear(&log);
    return ok;
}

HnModel *hn_quant_prepare(HnModel *m, int64_t opset, HnBudget *budget, const HnProgress *progress, GError **error)
{
    g_autoptr(HnModel) owned = m;
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    hn_model_drop_defaults(m);
    if (!hn_settle_opset(m, MAX(opset, hn_model_opset(m, NULL)), blocked, error)) {
        if (blocked->len > 0)
            g_prefix_error(error, "%s: ", (const char *)blocked->pdata[0]);
        return NULL;
    }
    if (!simplify(m, budget, progress, error) || !hn_graph_infer(m->graph, FALSE, error))
        return NULL;
    return g_steal_pointer(&owned);
}
