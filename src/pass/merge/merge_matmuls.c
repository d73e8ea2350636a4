/*
 * MatMul by a constant matrix and by another one behind it: one MatMul by their product, where that is no longer than
 * the two and takes no more multiplications.
 */
#include "op/gemm.h"
#include "pass/lib/weights.h"

#define MOST_WORK 2e9 /* multiplications: a second */

/* The product of [m,k] and [k,n], summed in double; NULL: no memory. */
static HnTensor *multiply(const HnRewrite *r, const HnTensor *a, const HnTensor *b)
{
    const int64_t dims[2] = { a->dims[0], b->dims[1] };
    g_autoptr(HnTensor) x = hn_tensor_new(HN_F64, 2, a->dims, hn_rw_budget(r), NULL);
    g_autoptr(HnTensor) y = hn_tensor_new(HN_F64, 2, b->dims, hn_rw_budget(r), NULL);
    g_autoptr(HnTensor) z = hn_tensor_new(HN_F64, 2, dims, hn_rw_budget(r), NULL);
    if (x == NULL || y == NULL || z == NULL)
        return NULL;
    for (int64_t i = 0; i < a->n; i++)
        ((double *)x->data)[i] = hn_tensor_get_f64(a, i);
    for (int64_t i = 0; i < b->n; i++)
        ((double *)y->data)[i] = hn_tensor_get_f64(b, i);
    const HnGemm g = {
        .m = dims[0],
        .n = dims[1],
        .k = a->dims[1],
        .a = x->data,
        .a_row = a->dims[1],
        .a_col = 1,
        .b = y->data,
        .b_row = dims[1],
        .b_col = 1,
        .c = z->data,
        .c_row = dims[1],
        .alpha = 1,
    };
    hn_gemm(HN_F64, &g);
    return hn_weights_new(a->dtype, 2, dims, z->data, hn_rw_budget(r));
}

static gboolean merge_matmuls(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_matmul)
        return FALSE;
    HnNode *first = hn_rw_maker(hn_node_in(n, 0), &hn_op_matmul);
    const HnTensor *b = first != NULL ? hn_rw_known(r, hn_node_in(n, 1)) : NULL;
    const HnTensor *a = first != NULL ? hn_rw_known(r, hn_node_in(first, 1)) : NULL;
    if (a == NULL || b == NULL || !hn_dtype_in(a->dtype, HN_T_FLOATS) || hn_rw_rank(r, hn_node_in(first, 0)) < 1)
        return FALSE;
    if (a->ndim != 2 || b->ndim != 2 || a->n == 0 || b->n == 0 || a->dims[1] != b->dims[0])
        return hn_rw_miss(r, n, "the weights of '%s' and '%s' are not two matrices", hn_node_label(first),
                          hn_node_label(n));
    if (!hn_rw_single(hn_node_in(n, 0)))
        return hn_rw_miss(r, n, "'%s' is used by others too", hn_node_in(n, 0)->name);
    if (hn_node_in(first, 1)->users->len != 1 || hn_node_in(n, 1)->users->len != 1)
        return hn_rw_miss(r, n, "the weights are used by others too");
    /* in double: the product of the sizes may overflow */
    if ((double)a->dims[0] * (double)b->dims[1] > (double)(a->n + b->n))
        return hn_rw_miss(r, n, "the product of the weights would be longer than both");
    if ((double)a->n * (double)b->dims[1] > MOST_WORK)
        return hn_rw_miss(r, n, "the product of the weights would take too long");
    g_autoptr(HnTensor) w = multiply(r, a, b);
    if (w == NULL || !hn_weights_good(w, NULL))
        return hn_rw_miss(r, n, "the product of the weights would not be finite");
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, hn_node_in(first, 0));
    hn_rw_set_in(r, n, 1, hn_rw_weight(r, n->graph, hn_node_in(n, 1)->name, g_steal_pointer(&w)));
    return hn_rw_done(r, n);
}

const HnPass hn_pass_merge_matmuls = {
    .name = "merge-matmuls",
    .summary = "one MatMul instead of two by constant matrices",
    .level = 1,
    .node = merge_matmuls,
};
