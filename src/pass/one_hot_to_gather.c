/*
 * The product of a one-hot matrix, compared (a place with 0, 1, 2, ...) and cast, with a constant table is rows of the
 * table. A place outside of it has no one in its row, and a row of zeros: there is one behind the table, and Min
 * brings what is too large to it, as Max does what is too small, to -1, which counts from the back.
 */
#include <math.h>

#include "pass/pattern.h"
#include "pass/shapes.h"

static gboolean all_finite(const HnTensor *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite(hn_tensor_get_f64(t, i)))
            return FALSE;
    return TRUE;
}

/* The comparison that v is 1 and 0 of; NULL: none. */
static const HnNode *comparison(const HnGraph *g, const HnValue *v)
{
    const HnNode *cast = hn_pattern_maker(g, v, &hn_op_cast);
    return cast != NULL ? hn_pattern_maker(g, hn_node_in(cast, 0), &hn_op_equal) : NULL;
}

/* `t`, a matrix, with a row of zeros behind it. */
static HnTensor *with_zeros(HnRewrite *r, const HnTensor *t)
{
    const int64_t dims[] = { t->dims[0] + 1, t->dims[1] };
    HnTensor *all = hn_tensor_new(t->dtype, 2, dims, hn_rw_budget(r), NULL);
    for (int64_t i = 0; all != NULL && i < t->n; i++)
        hn_tensor_set_f64(all, i, hn_tensor_get_f64(t, i));
    return all;
}

static gboolean one_hot_to_gather(HnRewrite *r, HnNode *n)
{
    const HnTensor *table;
    const HnNode *equal;
    if (n->op != &hn_op_matmul || (equal = comparison(n->graph, hn_node_in(n, 0))) == NULL)
        return FALSE;
    if ((table = hn_rw_known(r, hn_node_in(n, 1))) == NULL || table->ndim != 2 || table->n == 0 ||
        !hn_dtype_in(table->dtype, HN_T_FLOATS) || !hn_rw_single(hn_node_in(n, 1)))
        return FALSE;
    const int64_t rows = table->dims[0];
    const int k = hn_pattern_counts_up(r, hn_node_in(equal, 0), rows) ? 1 : 0;
    HnValue *x = hn_node_in(equal, k), *places = hn_node_in(equal, 1 - k);
    if (!hn_pattern_counts_up(r, places, rows))
        return hn_rw_miss(r, n, "'%s' does not count the rows up", places->name);
    const int rank = hn_rw_rank(r, x);
    if (!hn_dtype_in(hn_rw_dtype(r, x), HN_BIT(HN_I32) | HN_BIT(HN_I64)) || rank < 1 || hn_rw_rank(r, places) > rank ||
        !hn_dim_is(hn_rw_dim(r, x, rank - 1), 1))
        return hn_rw_miss(r, n, "'%s' is not one integer for each row of the result", x->name);
    if (!hn_rw_can(n->graph, &hn_op_max, 12))
        return hn_rw_miss(r, n, "no Max of integers in this opset");
    if (!all_finite(table))
        return hn_rw_miss(r, n, "not all of '%s' is finite", hn_node_in(n, 1)->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnValue *all = hn_rw_weight(r, n->graph, hn_node_in(n, 1)->name, with_zeros(r, table));
    const int last = rank - 1;
    HnValue *at = hn_rw_out(r, hn_shapes_squeeze(r, n, "Squeeze", x, &last, 1), "at");
    HnValue *lo = hn_pattern_scalar(r, n->graph, "none", x, -1),
            *hi = hn_pattern_scalar(r, n->graph, "none", x, (double)rows);
    HnValue *above = hn_rw_out(r, hn_rw_add(r, n, "Max", HN_INS(at, lo)), "above");
    HnValue *place = hn_rw_out(r, hn_rw_add(r, n, "Min", HN_INS(above, hi)), "place");
    return hn_rw_take(r, hn_rw_add(r, n, "Gather", HN_INS(all, place)), n);
}

const HnPass hn_pass_one_hot_to_gather = {
    .name = "one-hot-to-gather",
    .summary = "rows of a table instead of its product with a one-hot matrix",
    .level = 2,
    .node = one_hot_to_gather,
};
