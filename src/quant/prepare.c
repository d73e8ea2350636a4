#include "quant/prepare.h"

#include <string.h>

#include "op/infer.h"
#include "op/linear.h"
#include "pass/opset.h"
#include "pass/precision/precision.h"
#include "pass/rewrite.h"

#define LEAST_TIED 4096 /* elements */

static gboolean simplify(HnModel *m, HnBudget *budget, const HnProgress *progress, GError **error)
{
    const HnPassOptions o = { .level = 1, .fold_bytes = HN_FOLD_BYTES, .budget = budget, .progress = progress };
    HnPassLog log;
    hn_pass_log_init(&log);
    const gboolean ok = hn_pass_run(m, &o, &log, error);
    hn_pass_log_clear(&log);
    return ok;
}

static gboolean has_halves(const HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)g->weights->pdata[i])->weight;
        if (t != NULL && t->ndim > 1 && (t->dtype == HN_F16 || t->dtype == HN_BF16))
            return TRUE;
    }
    for (guint i = 0; i < g->inner->len; i++)
        if (has_halves(g->inner->pdata[i]))
            return TRUE;
    return FALSE;
}

/* Weights of halves are quantized like others, between Casts. */
static gboolean widen(HnModel *m, HnBudget *budget, GError **error)
{
    HnPrecisionLog log;
    if (!has_halves(m->graph))
        return TRUE;
    hn_precision_log_init(&log);
    const gboolean ok =
        hn_graph_infer(m->graph, FALSE, error) &&
        hn_convert_precision(m, &(HnPrecisionOptions){ .to = HN_F32, .keep_io = TRUE, .budget = budget }, &log, error);
    hn_precision_log_clear(&log);
    return ok;
}

/* --- tied weights ------------------------------------------------------------------------------------------------- */

static gboolean is_matrix(const HnValue *v)
{
    const HnTensor *t = v->weight;
    if (t == NULL || t->unloaded || v->is_input || v->is_output)
        return FALSE;
    return t->dtype == HN_F32 && t->ndim == 2 && t->n >= LEAST_TIED;
}

/* b holds what a does, rows for columns. */
static gboolean is_turned(const HnTensor *a, const HnTensor *b)
{
    if (a->dims[0] != b->dims[1] || a->dims[1] != b->dims[0])
        return FALSE;
    const char *x = a->data, *y = b->data; /* perhaps not aligned */
    for (int64_t i = 0; i < a->dims[0]; i++)
        for (int64_t k = 0; k < a->dims[1]; k++)
            if (memcmp(x + (i * a->dims[1] + k) * 4, y + (k * b->dims[1] + i) * 4, 4) != 0)
                return FALSE;
    return TRUE;
}

static gboolean is_gathered(const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++)
        if (hn_op_is_lookup(((const HnNode *)v->users->pdata[i])->op))
            return TRUE;
    return FALSE;
}

/* All that read v multiply with it. */
static gboolean is_factor(const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        HnLinearView l;
        if (!hn_op_linear(v->users->pdata[i], &l) || l.window != NULL || l.w != v || l.x == v)
            return FALSE;
    }
    return v->users->len > 0;
}

/* Gemm reads its matrix either way. */
static void turn_gemm(HnNode *n, HnValue *table)
{
    HnLinearView l;
    hn_op_linear(n, &l);
    hn_node_set_in(n, l.w_in, table);
    if (l.w_turned)
        hn_node_remove_attr(n, "transB");
    else
        hn_node_set_int(n, "transB", 1);
    n->op = NULL;
    g_clear_pointer(&n->params, g_free);
    hn_op_bind(n, NULL);
}

static void read_through(HnGraph *g, HnValue *table, HnValue *v)
{
    g_autoptr(GPtrArray) users = hn_ptrs_copy(v->users);
    for (guint i = 0; i < users->len; i++)
        if (((const HnNode *)users->pdata[i])->op == &hn_op_gemm)
            turn_gemm(users->pdata[i], table);
    if (v->users->len > 0) {
        HnNode *n = hn_graph_add_node(g, 0, "Transpose", NULL, NULL);
        HnValue *t = hn_graph_new_value(g, v->name);
        hn_node_set_ints(n, "perm", (const int64_t[]){ 1, 0 }, 2);
        hn_node_add_in(n, table);
        hn_node_add_out(n, t);
        hn_value_replace(v, t);
    }
    hn_graph_drop_value(v);
}

/* A product's weight that is another one turned round is read from that, a table or what another product multiplies
 * with: a file that has both holds them once, and folding constants makes the second where there was one. */
static void tie(HnGraph *g)
{
    g_autoptr(GPtrArray) kept = g_ptr_array_new(), factors = g_ptr_array_new();
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (!is_matrix(v))
            continue;
        if (is_gathered(v))
            g_ptr_array_add(kept, v);
        else if (is_factor(v))
            g_ptr_array_add(factors, v);
    }
    for (guint i = 0; i < factors->len; i++) {
        HnValue *v = factors->pdata[i], *table = NULL;
        for (guint k = 0; k < kept->len && table == NULL; k++)
            if (is_turned(((const HnValue *)kept->pdata[k])->weight, v->weight))
                table = kept->pdata[k];
        if (table != NULL)
            read_through(g, table, v);
        else
            g_ptr_array_add(kept, v);
    }
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
    if (!widen(m, budget, error) || !simplify(m, budget, progress, error) || !hn_graph_infer(m->graph, FALSE, error))
        return NULL;
    tie(m->graph);
    hn_model_name_apart(m);
    return g_steal_pointer(&owned);
}
