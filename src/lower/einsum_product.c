/*
 * Einsum of two operands as MatMul, or Mul where nothing is summed, between what puts labels in order: stacks are those
 * of both operands and the result, rows those of the left one and the result, columns those of the right one and the
 * result, and what only the operands have is summed. Several of a kind become one axis. An axis of 1 that broadcasts is
 * no axis of that operand.
 */
#include <string.h>

#include "lower/lower.h"
#include "op/einsum.h"
#include "op/move.h"
#include "pass/rewrite.h"

#define MOST_BYTES ((gsize)8 << 20) /* of weights that are turned ahead */

typedef struct {
    int n;
    uint8_t label[2 * HN_MAX_RANK];
} Labels;

typedef struct {
    HnRewrite *r;
    HnNode *node;
    int64_t size[HN_EINSUM_LABELS];
    Labels in[2], out; /* axes of more than one element */
    Labels stack, rows, cols, sum;
} Sum;

static int find(const Labels *l, uint8_t label)
{
    for (int i = 0; i < l->n; i++)
        if (l->label[i] == label)
            return i;
    return -1;
}

static void append(Labels *to, const Labels *from)
{
    memcpy(to->label + to->n, from->label, (size_t)from->n);
    to->n += from->n;
}

static gboolean same(const Labels *a, const Labels *b)
{
    return a->n == b->n && memcmp(a->label, b->label, (size_t)a->n) == 0;
}

/* The labels of v's axes that are not 1. FALSE: an unknown shape, or a diagonal. */
static gboolean spell(Sum *s, const HnValue *v, const HnEinsumTerm *term, Labels *l)
{
    int64_t dims[HN_MAX_RANK];
    uint8_t label[HN_EINSUM_TERM];
    const int rank = hn_rw_fixed(s->r, v, dims) ? hn_einsum_spell(term, hn_rw_rank(s->r, v), label) : -1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1)
            continue;
        if (dims[i] == 0 || find(l, label[i]) >= 0)
            return FALSE;
        s->size[label[i]] = dims[i];
        l->label[l->n++] = label[i];
    }
    return rank >= 0;
}

/* FALSE: one of the operands has a label of its own that is summed. */
static gboolean sort_labels(Sum *s)
{
    for (int i = 0; i < s->out.n; i++) {
        const uint8_t l = s->out.label[i];
        const gboolean x = find(&s->in[0], l) >= 0, y = find(&s->in[1], l) >= 0;
        Labels *to = x && y ? &s->stack : x ? &s->rows : &s->cols;
        to->label[to->n++] = l;
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < s->in[k].n; i++) {
            const uint8_t l = s->in[k].label[i];
            if (find(&s->out, l) >= 0)
                continue;
            if (find(&s->in[1 - k], l) < 0)
                return FALSE;
            if (k == 0)
                s->sum.label[s->sum.n++] = l;
        }
    return TRUE;
}

/* A copy of known elements with its axes in this order; NULL: no memory. */
static HnTensor *turned(const Sum *s, const HnTensor *x, const int64_t *perm)
{
    int64_t from[HN_MAX_RANK], dims[HN_MAX_RANK], strides[HN_MAX_RANK];
    hn_strides(x->ndim, x->dims, from);
    for (int i = 0; i < x->ndim; i++) {
        dims[i] = x->dims[perm[i]];
        strides[i] = from[perm[i]];
    }
    HnTensor *t = hn_tensor_new(x->dtype, x->ndim, dims, hn_rw_budget(s->r), NULL);
    if (t != NULL)
        hn_move_strided(t->data, x->data, hn_dtype_size(x->dtype), x->ndim, dims, strides);
    return t;
}

/* Weights are turned once, where each plan may have a copy of them, and at each run where they are large. */
static HnValue *transposed(Sum *s, HnValue *v, const int64_t *perm, int n)
{
    const HnTensor *known = hn_rw_known(s->r, v);
    HnTensor *weight =
        known != NULL && known->dtype == HN_F32 && known->bytes <= MOST_BYTES ? turned(s, known, perm) : NULL;
    if (weight != NULL)
        return hn_rw_weight(s->r, s->node->graph, v->name, weight);
    HnNode *t = hn_rw_add(s->r, s->node, "Transpose", HN_INS(v));
    hn_node_set_ints(t, "perm", perm, n);
    return hn_rw_out(s->r, t, v->name);
}

static HnValue *reshaped(Sum *s, HnValue *v, const int64_t *dims, int n)
{
    int64_t now[HN_MAX_RANK];
    if (hn_rw_rank(s->r, v) == n && hn_rw_fixed(s->r, v, now) && memcmp(now, dims, (size_t)n * sizeof *dims) == 0)
        return v;
    HnValue *shape = hn_rw_weight_ints(s->r, s->node->graph, "shape", dims, n);
    return hn_rw_out(s->r, hn_rw_add(s->r, s->node, "Reshape", HN_INS(v, shape)), v->name);
}

/* Sizes of the labels, behind `n` dims that are there. */
static int sizes(const Sum *s, const Labels *l, int64_t *dims, int n)
{
    for (int i = 0; i < l->n; i++)
        dims[n++] = s->size[l->label[i]];
    return n;
}

static int64_t product(const Sum *s, const Labels *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->n; i++)
        n *= s->size[l->label[i]];
    return n;
}

/* v, whose axes are `from`, with axes `to`. */
static HnValue *in_order(Sum *s, HnValue *v, const Labels *from, const Labels *to)
{
    int64_t dims[2 * HN_MAX_RANK], perm[2 * HN_MAX_RANK];
    v = reshaped(s, v, dims, sizes(s, from, dims, 0));
    if (same(from, to))
        return v;
    for (int i = 0; i < to->n; i++)
        perm[i] = find(from, to->label[i]);
    return transposed(s, v, perm, to->n);
}

/* An operand as matrices [stack..., a, b]; those that lie as [stack..., b, a] are turned last, which products take as
 * they are. */
static HnValue *matrices(Sum *s, HnValue *v, const Labels *from, const Labels *a, const Labels *b)
{
    Labels straight = s->stack, turned = s->stack;
    int64_t dims[HN_MAX_RANK], perm[HN_MAX_RANK];
    append(&straight, a);
    append(&straight, b);
    append(&turned, b);
    append(&turned, a);
    const gboolean turn = same(from, &turned) && !same(from, &straight);
    v = in_order(s, v, from, turn ? &turned : &straight);
    int n = sizes(s, &s->stack, dims, 0);
    dims[n++] = product(s, turn ? b : a);
    dims[n++] = product(s, turn ? a : b);
    v = reshaped(s, v, dims, n);
    if (!turn)
        return v;
    for (int i = 0; i < n; i++)
        perm[i] = i < n - 2 ? i : 2 * n - 3 - i;
    return transposed(s, v, perm, n);
}

/* The left operand is the one whose labels come first in the result. */
static gboolean is_swapped(const Sum *s)
{
    return s->rows.n > 0 && s->cols.n > 0 &&
           find(&s->out, s->rows.label[s->rows.n - 1]) > find(&s->out, s->cols.label[s->cols.n - 1]);
}

static gboolean make(Sum *s)
{
    int64_t dims[2 * HN_MAX_RANK];
    const gboolean swap = is_swapped(s);
    const Labels *rows = swap ? &s->cols : &s->rows, *cols = swap ? &s->rows : &s->cols;
    HnValue *x = matrices(s, hn_node_in(s->node, swap), &s->in[swap], rows, &s->sum);
    HnValue *y = matrices(s, hn_node_in(s->node, !swap), &s->in[!swap], &s->sum, cols);
    HnNode *n = hn_rw_add(s->r, s->node, s->sum.n > 0 ? "MatMul" : "Mul", HN_INS(x, y));
    Labels made = s->stack;
    append(&made, rows);
    append(&made, cols);
    HnValue *out = hn_node_out(s->node, 0);
    HnValue *v = in_order(s, hn_rw_out(s->r, n, out->name), &made, &s->out);
    if (!hn_rw_fixed(s->r, out, dims))
        return FALSE;
    HnValue *shape = hn_rw_weight_ints(s->r, s->node->graph, "shape", dims, hn_rw_rank(s->r, out));
    return hn_rw_take(s->r, hn_rw_add(s->r, s->node, "Reshape", HN_INS(v, shape)), s->node);
}

static gboolean einsum_product(HnRewrite *r, HnNode *n)
{
    const HnEinsum *p = n->params;
    if (n->op != &hn_op_einsum || p == NULL || p->n != 2 ||
        !hn_dtype_in(hn_rw_dtype(r, hn_node_out(n, 0)), HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16)))
        return FALSE;
    Sum s = { .r = r, .node = n };
    for (int k = 0; k < 2; k++)
        if (!spell(&s, hn_node_in(n, k), &p->in[k], &s.in[k]))
            return FALSE;
    if (!spell(&s, hn_node_out(n, 0), &p->out, &s.out) || !sort_labels(&s) || s.stack.n > HN_MAX_RANK - 2 ||
        s.stack.n + s.rows.n + s.cols.n > HN_MAX_RANK)
        return FALSE;
    return hn_rw_go(r, n) && make(&s);
}

const HnPass hn_pass_einsum_product = {
    .name = "einsum-product",
    .summary = "Einsum of two operands as a product of matrices",
    .level = 1,
    .node = einsum_product,
};
