/*
 * Rows of a table that is computed from constants of few bits (Cast, Add, Sub, Mul, Div with constants,
 * DequantizeLinear): they are taken first, and computed afterwards. Otherwise each run computes the whole table for the
 * sake of a few of its rows. Element by element, not a bit differs.
 */
#include "op/gather.h"
#include "op/quantize.h"
#include "pass/rewrite.h"

#define CHAIN 8         /* nodes that make the table */
#define LEAST (1 << 15) /* elements: a smaller one is computed in no time */

static HnTensor *known(gconstpointer r, HnValue *v)
{
    return hn_rw_known(r, v);
}

static gboolean is_arithmetic(const HnNode *n)
{
    return (n->op == &hn_op_add || n->op == &hn_op_sub || n->op == &hn_op_mul || n->op == &hn_op_div) &&
           n->version >= 7;
}

/* The input of n that is the table on its way: as large as what n makes, and not an operand. -1: n is no such step. */
static int table_input(const HnRewrite *r, const HnNode *n)
{
    if (n->op == &hn_op_cast || n->op == &hn_op_dequantizelinear)
        return 0;
    for (int i = 0; i < 2 && is_arithmetic(n); i++)
        if (hn_rw_known(r, hn_node_in(n, 1 - i)) != NULL && hn_rw_same_shape(r, hn_node_in(n, i), hn_node_out(n, 0)))
            return i;
    return -1;
}

/* A dequantization whose scales are one, or of an axis. */
static gboolean has_plain_steps(const HnRewrite *r, const HnNode *n)
{
    HnQParams q;
    if (n->op != &hn_op_dequantizelinear)
        return TRUE;
    return hn_op_qparams(n, known, r, &q) && q.block == 0 && hn_rw_dtype(r, hn_node_out(n, 0)) == HN_F32;
}

/* All that read v take rows of it. */
static gboolean is_looked_up(const HnRewrite *r, const HnValue *v)
{
    const int rank = hn_rw_rank(r, v);
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        if (u->op != &hn_op_gather || u->graph != v->graph || hn_node_in(u, 0) != v || hn_node_in(u, 1) == v)
            return FALSE;
        const int64_t axis = ((const HnGather *)u->params)->axis;
        if (axis != 0 && axis != -rank)
            return FALSE;
    }
    return !v->is_output;
}

/* The constant of 8 bits that v, of this graph, is computed from step by step. NULL: there is none, or others want what
 * is on the way. */
static HnValue *source_of(HnRewrite *r, const HnNode *n, const HnGraph *g, HnValue *v)
{
    for (int steps = 0; steps <= CHAIN; steps++) {
        const HnNode *m = v->producer;
        const HnTensor *t = hn_rw_known(r, v);
        if (m == NULL)
            return t != NULL && steps > 0 && (t->dtype == HN_U8 || t->dtype == HN_I8) ? v : NULL;
        const int i = m->op != NULL && m->graph == g ? table_input(r, m) : -1;
        if (i < 0 || !has_plain_steps(r, m))
            return NULL;
        if (steps > 0 && !hn_rw_single(v)) {
            hn_rw_miss(r, n, "'%s' is used by others too", v->name);
            return NULL;
        }
        v = hn_node_in(m, i);
    }
    return NULL;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* `at` of v, rows. */
static HnNode *rows_of(HnRewrite *r, HnNode *n, HnValue *v, HnValue *at)
{
    return hn_rw_add(r, n, "Gather", HN_INS(v, at));
}

/* Operand c of a step that makes tables of this rank, for their rows. */
static HnValue *operand_of(HnRewrite *r, HnNode *n, HnValue *c, int rank, HnValue *at)
{
    const HnTensor *t = hn_rw_known(r, c);
    if (t->ndim == rank && t->dims[0] != 1)
        return hn_rw_out(r, rows_of(r, n, c, at), c->name);
    if (t->ndim < rank)
        return c;
    /* [1, ...] of [rows, ...]: without it the rank of what is looked up is left to the rows */
    return hn_rw_weight(r, n->graph, c->name, hn_tensor_reshaped(hn_rw_known(r, c), t->ndim - 1, t->dims + 1));
}

/* A list of numbers for the rows of a table of this rank: [rows, 1, ...], as f32. */
static HnValue *column_of(HnRewrite *r, HnNode *n, const HnTensor *list, int rank, HnValue *at)
{
    int64_t dims[HN_MAX_RANK] = { list->n };
    for (int i = 1; i < rank; i++)
        dims[i] = 1;
    HnTensor *t = hn_tensor_new_uninit(HN_F32, rank, dims, hn_rw_budget(r), NULL);
    for (int64_t i = 0; t != NULL && i < list->n; i++)
        hn_tensor_set_f64(t, i, hn_tensor_get_f64(list, i));
    return hn_rw_out(r, rows_of(r, n, hn_rw_weight(r, n->graph, "rows", t), at), "rows");
}

/* What m, DequantizeLinear, does to rows x. */
static HnNode *dequantized(HnRewrite *r, HnNode *n, const HnNode *m, HnValue *x, HnValue *at)
{
    HnQParams q;
    const int rank = hn_rw_rank(r, hn_node_in(m, 0));
    hn_op_qparams(m, known, r, &q);
    if (q.axis != 0) {
        HnNode *made = hn_rw_add(r, n, "DequantizeLinear", HN_INS(x, q.scale_of, q.zero_of));
        if (q.axis > 0)
            hn_node_set_int(made, "axis", q.axis + hn_rw_rank(r, x) - rank);
        return made;
    }
    HnNode *cast = hn_rw_add(r, n, "Cast", HN_INS(x));
    hn_node_set_int(cast, "to", 1);
    HnValue *v = hn_rw_out(r, cast, x->name);
    if (q.zero != NULL)
        v = hn_rw_out(r, hn_rw_add(r, n, "Sub", HN_INS(v, column_of(r, n, q.zero, rank, at))), x->name);
    return hn_rw_add(r, n, "Mul", HN_INS(v, column_of(r, n, q.scale, rank, at)));
}

/* The node, without outputs, that makes rows `at` of v. */
static HnNode *looked_up(HnRewrite *r, HnNode *n, HnValue *v, const HnValue *source, HnValue *at)
{
    const HnNode *m = v->producer;
    if (v == source)
        return rows_of(r, n, v, at);
    const int i = table_input(r, m);
    HnValue *x = hn_rw_out(r, looked_up(r, n, hn_node_in(m, i), source, at), hn_node_in(m, i)->name);
    if (m->op == &hn_op_dequantizelinear)
        return dequantized(r, n, m, x, at);
    HnValue *in[2] = { x, NULL };
    if (is_arithmetic(m)) {
        in[i] = x;
        in[1 - i] = operand_of(r, n, hn_node_in(m, 1 - i), hn_rw_rank(r, v), at);
    }
    HnNode *made = hn_rw_add(r, n, m->op_type, in, is_arithmetic(m) ? 2 : 1);
    hn_node_share_attrs(made, m);
    return made;
}

static gboolean lookup_first(HnRewrite *r, HnNode *n)
{
    HnValue *table = hn_node_in(n, 0), *at = hn_node_in(n, 1);
    int64_t dims[HN_MAX_RANK], places[HN_MAX_RANK], count;
    if (n->op != &hn_op_gather || table->graph != n->graph || !hn_rw_fixed(r, table, dims) || hn_rw_rank(r, at) < 0)
        return FALSE;
    const int rank = hn_rw_rank(r, table);
    if (rank < 1 || !hn_dims_count(rank, dims, &count) || count < LEAST)
        return FALSE;
    const HnValue *source = source_of(r, n, n->graph, table);
    if (source == NULL)
        return FALSE;
    if (!is_looked_up(r, table))
        return hn_rw_miss(r, n, "'%s' is not only looked up", table->name);
    if (hn_rw_fixed(r, at, places) && hn_dims_count(hn_rw_rank(r, at), places, &count) && count > dims[0] / 2)
        return hn_rw_miss(r, n, "about all of the table is looked up");
    return hn_rw_go(r, n) && hn_rw_take(r, looked_up(r, n, table, source, at), n);
}

const HnPass hn_pass_lookup_first = {
    .name = "lookup-first",
    .summary = "rows of a table of few bits before the table is computed",
    .level = 2,
    .node = lookup_first,
};
