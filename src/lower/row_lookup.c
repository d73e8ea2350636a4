/*
 * hone.RowLookup for the product of a one-hot matrix, compared and cast, with constant rows, which may be integers that
 * are still to be unpacked. The matrix may be quantized: then its ones are one other number. Of rows that are trained
 * it is a Gather, which has a gradient: of the table with a row of zeros behind it, for places outside.
 */
#include <math.h>

#include "lower/qdq_value.h"
#include "pass/pattern.h"

#define CHAIN 8     /* nodes that move rows on the way */
#define LARGE 1e30F /* scales below it times any integer of 8 bits are finite */

static gboolean all_below(const HnTensor *t, double most)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!(fabs(hn_tensor_get_f64(t, i)) <= most))
            return FALSE;
    return TRUE;
}

/* The elements of v are constant and finite: a product with 0 is 0. */
static gboolean is_finite(const HnRewrite *r, const HnValue *v)
{
    const HnTensor *t = hn_rw_known(r, v), *scale;
    for (int chain = 0; t == NULL && v->producer != NULL && chain <= CHAIN; chain++) {
        const HnNode *n = v->producer;
        if (n->op == &hn_op_dequantizelinear) {
            t = hn_rw_known(r, hn_node_in(n, 0));
            scale = hn_rw_known(r, hn_node_in(n, 1));
            return t != NULL && scale != NULL && hn_dtype_in(t->dtype, HN_T_INTS) && hn_dtype_bits(t->dtype) <= 8 &&
                   all_below(scale, (double)LARGE) && (hn_node_in(n, 2) == NULL || hn_rw_known(r, hn_node_in(n, 2)));
        }
        if ((n->op->flags & HN_OP_VIEW) == 0 && n->op != &hn_op_transpose)
            return FALSE;
        v = hn_node_in(n, 0);
        t = hn_rw_known(r, v);
    }
    return t != NULL && all_below(t, (double)G_MAXFLOAT);
}

/* Place x of a table of so many rows, without its last axis, and behind them where there is no such row. */
static HnValue *place_in(HnRewrite *r, HnNode *n, HnValue *x, int64_t rows)
{
    HnValue *last = hn_rw_weight_ints(r, n->graph, "last", (int64_t[]){ -1 }, 1);
    HnValue *none = hn_pattern_scalar(r, n->graph, "none", x, (double)rows),
            *zero = hn_pattern_scalar(r, n->graph, "zero", x, 0);
    HnValue *at = hn_rw_out(r, hn_rw_add(r, n, "Squeeze", HN_INS(x, last)), "at");
    HnValue *lo = hn_rw_out(r, hn_rw_add(r, n, "GreaterOrEqual", HN_INS(at, zero)), "lo");
    HnValue *hi = hn_rw_out(r, hn_rw_add(r, n, "Less", HN_INS(at, none)), "hi");
    HnValue *in = hn_rw_out(r, hn_rw_add(r, n, "And", HN_INS(lo, hi)), "in");
    return hn_rw_out(r, hn_rw_add(r, n, "Where", HN_INS(in, at, none)), "place");
}

static gboolean look_up_trained(HnRewrite *r, HnNode *n, HnValue *rows, HnValue *x, const int64_t *table)
{
    const int64_t dims[] = { 1, table[1] };
    if (!hn_rw_can(n->graph, &hn_op_greaterorequal, 16) || !hn_rw_go(r, n))
        return FALSE;
    HnValue *zeros = hn_rw_weight(r, n->graph, "zeros", hn_tensor_new(HN_F32, 2, dims, hn_rw_budget(r), NULL));
    HnNode *all = hn_rw_add(r, n, "Concat", HN_INS(rows, zeros));
    hn_node_set_int(all, "axis", 0);
    return hn_rw_take(r, hn_rw_add(r, n, "Gather", HN_INS(hn_rw_out(r, all, "table"), place_in(r, n, x, table[0]))), n);
}

/* The comparison that v is 1 and 0 of; *one is what quantizing, between them, makes of 1. NULL: none, or it shifts 0.
 */
static const HnNode *comparison(const HnRewrite *r, const HnGraph *g, const HnValue *v, float *one)
{
    const HnNode *real = hn_pattern_maker(g, v, &hn_op_dequantizelinear);
    *one = 1;
    if (real != NULL) {
        const HnNode *bytes = hn_pattern_maker(g, hn_node_in(real, 0), &hn_op_quantizelinear);
        HnQdqStep to, from;
        if (bytes == NULL || !hn_qdq_step(r, bytes, &to) || !hn_qdq_step(r, real, &from) ||
            !hn_qdq_same_step(&to, &from) || hn_qdq_number(&from, hn_qdq_byte(&to, 0)) != 0)
            return NULL;
        *one = hn_qdq_number(&from, hn_qdq_byte(&to, 1));
        v = hn_node_in(bytes, 0);
    }
    const HnNode *cast = hn_pattern_maker(g, v, &hn_op_cast);
    return cast != NULL ? hn_pattern_maker(g, hn_node_in(cast, 0), &hn_op_equal) : NULL;
}

static gboolean look_up(HnRewrite *r, HnNode *n, HnValue *rows, HnValue *x, float one)
{
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *made = hn_rw_add_internal(r, n, &hn_op_rowlookup, HN_INS(rows, x));
    if (one != 1) {
        HnValue *picked = hn_rw_out(r, made, "rows");
        made = hn_rw_add(r, n, "Mul", HN_INS(picked, hn_pattern_scalar(r, n->graph, "one", rows, (double)one)));
    }
    return hn_rw_take(r, made, n);
}

static gboolean row_lookup(HnRewrite *r, HnNode *n)
{
    int64_t table[HN_MAX_RANK], dims[HN_MAX_RANK];
    HnValue *rows = hn_node_in(n, 1);
    if (n->op != &hn_op_matmul)
        return FALSE;
    float one;
    const HnNode *equal = comparison(r, n->graph, hn_node_in(n, 0), &one);
    if (equal == NULL || hn_rw_dtype(r, rows) != HN_F32 || hn_rw_rank(r, rows) != 2 || !hn_rw_fixed(r, rows, table) ||
        table[0] == 0 || table[1] == 0)
        return FALSE;
    const int k = hn_pattern_counts_up(r, hn_node_in(equal, 0), table[0]) ? 1 : 0;
    HnValue *x = hn_node_in(equal, k), *places = hn_node_in(equal, 1 - k);
    const int rank = hn_rw_rank(r, x);
    if (!hn_pattern_counts_up(r, places, table[0]))
        return hn_rw_miss(r, n, "'%s' does not count the rows up", places->name);
    if (!hn_dtype_in(hn_rw_dtype(r, x), HN_BIT(HN_I32) | HN_BIT(HN_I64)) || rank < 1 || !hn_rw_fixed(r, x, dims) ||
        dims[rank - 1] != 1 || hn_rw_rank(r, places) > rank)
        return hn_rw_miss(r, n, "'%s' is not one integer for each row of the result", x->name);
    if (hn_rw_trains(r) && hn_rw_known(r, rows) == NULL && one == 1)
        return look_up_trained(r, n, rows, x, table);
    if (!is_finite(r, rows))
        return hn_rw_miss(r, n, "'%s' is not constant and finite", rows->name);
    return look_up(r, n, rows, x, one);
}

const HnPass hn_pass_row_lookup = {
    .name = "row-lookup",
    .summary = "rows of a table instead of its product with a one-hot matrix",
    .level = 2,
    .node = row_lookup,
};
