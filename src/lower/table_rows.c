/*
 * What is done to each row that is taken of a table is done to the table, where that has fewer rows than are taken: a
 * network that is trained looks tokens up and then adds, scales or bends each of them, and so does its gradient.
 */
#include "lower/lower.h"
#include "op/gather.h"
#include "pass/rewrite.h"

#define FEWER 2 /* times as many rows are taken as there are */

/* n is infinite, or infinitely steep, where its input `at` is some finite number. No sample may ever take the row that
 * holds that number, whose gradient then is 0 times infinity. */
static gboolean is_steep(const HnNode *n, int at)
{
    static const HnOp *const steep[] = { &hn_op_acos, &hn_op_acosh, &hn_op_asin, &hn_op_atanh, &hn_op_cosh,
                                         &hn_op_exp,  &hn_op_log,   &hn_op_mod,  &hn_op_pow,   &hn_op_reciprocal,
                                         &hn_op_sinh, &hn_op_sqrt,  &hn_op_tan };
    for (guint i = 0; i < G_N_ELEMENTS(steep); i++)
        if (n->op == steep[i])
            return TRUE;
    return n->op == &hn_op_div && at == 1;
}

/* n computes each element by itself, without chance. Nodes behind one whose shapes do not match are not bound. */
static gboolean is_plain(const HnNode *n)
{
    const unsigned flags = n->op != NULL ? n->op->flags : 0;
    return (flags & HN_OP_ELEMENTWISE) != 0 && (flags & (HN_OP_RANDOM | HN_OP_CONTROL)) == 0 &&
           hn_domain_equal(n->domain, "") && n->version >= 7 && n->out->len == 1;
}

/* The rows of a table that n reads, and nobody else; *at: which of n's inputs. NULL: none. */
static HnNode *rows_read(const HnNode *n, int *at)
{
    for (*at = 0; *at < (int)n->in->len; (*at)++) {
        HnNode *m = hn_rw_maker(hn_node_in(n, *at), &hn_op_gather);
        if (m != NULL && m->graph == n->graph && hn_rw_single(hn_node_in(n, *at)) &&
            ((const HnGather *)m->params)->axis == 0)
            return m;
    }
    return NULL;
}

/* v broadcasts against rows of so many dimensions, `own` of them a row's, and is the same for each of them. */
static gboolean same_for_all(const HnRewrite *r, const HnValue *v, int rank, int own)
{
    int64_t dims[HN_MAX_RANK];
    const int n = hn_rw_rank(r, v);
    if (n < 0 || n > rank || (n > own && !hn_rw_fixed(r, v, dims)))
        return FALSE;
    for (int i = 0; i < n - own; i++)
        if (dims[i] != 1)
            return FALSE;
    return TRUE;
}

/* The same for the table. */
static HnValue *operand(HnRewrite *r, HnNode *n, HnValue *v, int own)
{
    int64_t dims[HN_MAX_RANK];
    const int more = hn_rw_rank(r, v) - own;
    if (more <= 0)
        return v;
    (void)hn_rw_fixed(r, v, dims);
    HnValue *shape = hn_rw_weight_ints(r, n->graph, "row", dims + more, own);
    return hn_rw_out(r, hn_rw_add(r, n, "Reshape", HN_INS(v, shape)), v->name);
}

static gboolean fits(const HnRewrite *r, const HnNode *n, const HnNode *rows, int at)
{
    int64_t table[HN_MAX_RANK], taken[HN_MAX_RANK], count;
    const HnValue *v = hn_node_in(n, at), *places = hn_node_in(rows, 1);
    const int rank = hn_rw_rank(r, v), own = hn_rw_rank(r, hn_node_in(rows, 0)) - 1;
    if (rank < 0 || own < 1 || !hn_rw_fixed(r, hn_node_in(rows, 0), table) || !hn_rw_fixed(r, places, taken) ||
        !hn_dims_count(hn_rw_rank(r, places), taken, &count) || count < FEWER * table[0])
        return FALSE;
    for (int i = 0; i < (int)n->in->len; i++)
        if (i != at && hn_node_in(n, i) != NULL && !same_for_all(r, hn_node_in(n, i), rank, own))
            return FALSE;
    return hn_rw_same_shape(r, v, hn_node_out(n, 0));
}

static gboolean table_rows(HnRewrite *r, HnNode *n)
{
    int at;
    HnNode *rows = hn_rw_trains(r) && is_plain(n) ? rows_read(n, &at) : NULL;
    if (rows == NULL || is_steep(n, at) || !fits(r, n, rows, at) || !hn_rw_go(r, n))
        return FALSE;
    const int own = hn_rw_rank(r, hn_node_in(rows, 0)) - 1;
    g_autofree HnValue **in = g_new0(HnValue *, n->in->len + 1u);
    for (int i = 0; i < (int)n->in->len; i++)
        in[i] = i == at ? hn_node_in(rows, 0) : hn_node_in(n, i) != NULL ? operand(r, n, hn_node_in(n, i), own) : NULL;
    HnNode *made = hn_rw_add(r, n, n->op_type, in, (int)n->in->len);
    hn_node_share_attrs(made, n);
    return hn_rw_take(r, hn_rw_add(r, n, "Gather", HN_INS(hn_rw_out(r, made, "table"), hn_node_in(rows, 1))), n);
}

const HnPass hn_pass_table_rows = {
    .name = "table-rows",
    .summary = "what is done to rows of a table that is trained is done to the table",
    .level = 2,
    .node = table_rows,
};
