/*
 * Products of a Loop's body whose left operand is row i of a tensor from outside, i counting the runs: the rows are
 * multiplied together, in front of the loop, and the body takes row i of the result. Recurrent layers that are written
 * out so read their input weights once instead of in each run.
 */
#include "pass/hoist_products.h"

#include <string.h>

#include "op/gather.h"
#include "pass/rewrite.h"

#define LEAST 4096 /* weights: fewer stay in the nearest cache from run to run */

/* State i of the loop goes up by one in each run, or is the number of the run. */
static gboolean counts(const HnRewrite *r, const HnGraph *body, const HnValue *v)
{
    guint i;
    double step;
    if (!v->is_input || v->graph != body || !g_ptr_array_find(body->inputs, v, &i))
        return FALSE;
    if (i < 2 || i - 1 >= body->outputs->len)
        return i == 0;
    const HnValue *next = body->outputs->pdata[i - 1];
    const HnNode *add = hn_rw_maker(next, &hn_op_add);
    for (int k = 0; add != NULL && k < 2; k++)
        if (hn_node_in(add, k) == v && hn_rw_number(r, hn_node_in(add, 1 - k), &step))
            return step == 1;
    return FALSE;
}

/* It goes through the rows one by one: a count, or, backwards, a number from outside minus a count. */
static gboolean is_place(const HnRewrite *r, const HnGraph *body, const HnValue *at)
{
    const HnNode *sub = hn_rw_maker(at, &hn_op_sub);
    if (sub != NULL)
        return hn_node_in(sub, 0)->graph != body && counts(r, body, hn_node_in(sub, 1));
    return counts(r, body, at);
}

/* The node of n's graph that takes the rows, where n is a product that can be made outside. */
static HnNode *rows_of(HnRewrite *r, const HnNode *n)
{
    const HnNode *loop = n->graph->holder;
    int64_t dims[HN_MAX_RANK];
    if (n->op != &hn_op_matmul || loop == NULL || loop->op != &hn_op_loop)
        return NULL;
    HnNode *rows = hn_rw_maker(hn_node_in(n, 0), &hn_op_gather);
    const HnValue *w = hn_node_in(n, 1);
    if (rows == NULL || !hn_rw_fixed(r, w, dims) || hn_rw_rank(r, w) != 2 || dims[0] < 1 || dims[1] < LEAST / dims[0])
        return NULL;
    const HnValue *x = hn_node_in(rows, 0);
    const int64_t axis = ((const HnGather *)rows->params)->axis;
    if (x->graph == n->graph || hn_rw_rank(r, x) < 2 || (axis != 0 && axis != -hn_rw_rank(r, x)))
        return NULL;
    return is_place(r, n->graph, hn_node_in(rows, 1)) ? rows : NULL;
}

static gboolean hoist_products(HnRewrite *r, HnNode *n)
{
    HnNode *rows = rows_of(r, n), *loop = n->graph->holder;
    if (rows == NULL)
        return FALSE;
    HnValue *x = hn_node_in(rows, 0), *w = hn_node_in(n, 1);
    HnTensor *t = w->weight;
    if (hn_rw_known(r, x) != NULL)
        return hn_rw_miss(r, n, "'%s' is constant, and perhaps a table of which few rows are taken", x->name);
    if (!hn_rw_visible(loop->graph, w) && t == NULL)
        return hn_rw_miss(r, n, "'%s' is made in the loop", w->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    if (!hn_rw_visible(loop->graph, w))
        w = hn_rw_weight(r, loop->graph, w->name, hn_tensor_ref(t));
    HnValue *product = hn_rw_out(r, hn_rw_add(r, loop, "MatMul", HN_INS(x, w)), hn_node_out(n, 0)->name);
    return hn_rw_take(r, hn_rw_add(r, n, "Gather", HN_INS(product, hn_node_in(rows, 1))), n);
}

const HnPass hn_pass_hoist_products = {
    .name = "hoist-products",
    .summary = "products of rows that a loop goes through, in front of it",
    .level = 2,
    .node = hoist_products,
};

/* --- without a file ----------------------------------------------------------------------------------------------- */

/* By names: nothing is bound yet. */
static void look_for_rows(HnNode *n, gpointer data)
{
    gboolean *found = data;
    const HnNode *loop = n->graph->holder;
    const HnValue *x = hn_node_in(n, 0);
    const HnNode *rows = x != NULL && x->graph == n->graph ? x->producer : NULL;
    *found = *found || (loop != NULL && rows != NULL && strcmp(n->op_type, hn_op_matmul.name) == 0 &&
                        strcmp(rows->op_type, hn_op_gather.name) == 0 && strcmp(loop->op_type, hn_op_loop.name) == 0);
}

gboolean hn_hoist_products(HnModel *m, GError **error)
{
    static const char *const only[] = { "eliminate-unused-state", "hoist-products", NULL };
    const HnPassOptions o = { .level = 2, .only = only, .fold_bytes = HN_FOLD_BYTES, .budget = m->budget };
    gboolean found = FALSE;
    hn_graph_foreach_node(m->graph, look_for_rows, &found);
    if (!found)
        return TRUE;
    HnPassLog log;
    hn_pass_log_init(&log);
    const gboolean ok = hn_pass_run(m, &o, &log, error);
    hn_pass_log_clear(&log);
    return ok;
}
