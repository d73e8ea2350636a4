/*
 * Einsum that is a known operator: Transpose, ReduceSum, Mul, or MatMul with at most one Transpose or Reshape beside it
 * (constants are turned for nothing). What would take more stays: runtimes do the same inside Einsum.
 *
 * A product sums over one label: X[stack..., m, k] * Y[stack..., k, n] is [stack..., m, n], where m or n may be missing
 * in a product with a vector, and labels of the stack in the operand that has the fewer. Without a stack, Y may have
 * several n, or both several k, that lie side by side: they are taken together as one.
 */
#include <string.h>

#include "op/einsum.h"
#include "pass/lib/carry.h"
#include "pass/shapes.h"
#include "pass/lib/weights.h"

typedef struct {
    HnValue *v;
    int n;
    uint8_t label[HN_MAX_RANK + 1];
} Operand;

typedef struct {
    HnRewrite *r;
    HnNode *node;
    int n_in;
    Operand in[2], out;
} Sum;

static int find(const Operand *o, uint8_t label)
{
    for (int i = 0; i < o->n; i++)
        if (o->label[i] == label)
            return i;
    return -1;
}

static gboolean same(const Operand *o, int n, const uint8_t *label)
{
    return o->n == n && (n == 0 || memcmp(o->label, label, (size_t)n) == 0);
}

/* All ranks are known and no operand has a label twice. */
static gboolean read_sum(HnRewrite *r, HnNode *n, Sum *s)
{
    const HnEinsum *p = n->params;
    *s = (Sum){ .r = r, .node = n, .n_in = p->n };
    if (p->n > 2)
        return FALSE;
    for (int k = 0; k <= p->n; k++) {
        Operand *o = k < p->n ? &s->in[k] : &s->out;
        o->v = k < p->n ? hn_node_in(n, k) : hn_node_out(n, 0);
        int rank = hn_rw_rank(r, o->v);
        o->n = rank < 0 ? -1 : hn_einsum_spell(k < p->n ? &p->in[k] : &p->out, rank, o->label);
        if (o->n < 0)
            return FALSE;
        for (int i = 0; i < o->n; i++)
            for (int j = 0; j < i; j++)
                if (o->label[i] == o->label[j])
                    return FALSE;
    }
    return TRUE;
}

/* --- operands in another order ------------------------------------------------------------------------------------ */

/* Nodes that turning o into the order of `label` takes, with the same labels in both. */
static int turns(const Sum *s, const Operand *o, int n, const uint8_t *label)
{
    const HnTensor *t = hn_rw_const(s->r, o->v);
    return same(o, n, label) || (t != NULL && hn_dtype_in(t->dtype, HN_T_COMPUTE) && hn_weights_own(s->r, o->v)) ? 0
                                                                                                                 : 1;
}

static HnValue *turned(Sum *s, const Operand *o, int n, const uint8_t *label)
{
    HnOrder order = { .rank = n };
    int64_t perm[HN_MAX_RANK];
    if (same(o, n, label))
        return o->v;
    for (int i = 0; i < n; i++) {
        perm[i] = find(o, label[i]);
        order.to[perm[i]] = i;
    }
    if (turns(s, o, n, label) == 0)
        return hn_rw_weight(s->r, s->node->graph, o->v->name, hn_carry_constant(s->r, hn_rw_const(s->r, o->v), &order));
    HnNode *t = hn_rw_add(s->r, s->node, "Transpose", HN_INS(o->v));
    hn_node_set_ints(t, "perm", perm, n);
    return hn_rw_out(s->r, t, o->v->name);
}

/* n, whose result has these labels, makes the result of the Einsum. */
static gboolean finish(Sum *s, HnNode *n, int n_labels, const uint8_t *label)
{
    if (same(&s->out, n_labels, label))
        return hn_rw_take(s->r, n, s->node);
    int64_t perm[HN_MAX_RANK];
    for (int i = 0; i < n_labels; i++)
        for (int j = 0; j < n_labels; j++)
            if (label[j] == s->out.label[i])
                perm[i] = j;
    HnNode *t = hn_rw_add(s->r, s->node, "Transpose", HN_INS(hn_rw_out(s->r, n, s->out.v->name)));
    hn_node_set_ints(t, "perm", perm, n_labels);
    return hn_rw_take(s->r, t, s->node);
}

/* --- one operand -------------------------------------------------------------------------------------------------- */

static gboolean expand_one(Sum *s)
{
    const Operand *x = &s->in[0];
    uint8_t kept[HN_MAX_RANK + 1];
    int64_t axes[HN_MAX_RANK], n_axes = 0;
    int n = 0;
    for (int i = 0; i < x->n; i++) {
        if (find(&s->out, x->label[i]) >= 0)
            kept[n++] = x->label[i];
        else
            axes[n_axes++] = i;
    }
    if (n != s->out.n || (n_axes > 0 && !same(&s->out, n, kept)))
        return FALSE;
    if (n_axes == 0 && same(&s->out, n, kept))
        return hn_rw_bypass(s->r, s->node, s->out.v, x->v);
    if (!hn_rw_go(s->r, s->node))
        return FALSE;
    if (n_axes == 0) {
        HnNode *t = hn_rw_add(s->r, s->node, "Transpose", HN_INS(x->v));
        for (int i = 0; i < n; i++)
            axes[i] = find(x, s->out.label[i]);
        hn_node_set_ints(t, "perm", axes, n);
        return hn_rw_take(s->r, t, s->node);
    }
    const gboolean input = s->node->version >= 13;
    HnValue *list = input ? hn_rw_weight_ints(s->r, s->node->graph, "axes", axes, (int)n_axes) : NULL;
    HnNode *sum = hn_rw_add(s->r, s->node, "ReduceSum", HN_INS(x->v, list));
    if (!input)
        hn_node_set_ints(sum, "axes", axes, n_axes);
    hn_node_set_int(sum, "keepdims", 0);
    return hn_rw_take(s->r, sum, s->node);
}

/* --- products without a sum --------------------------------------------------------------------------------------- */

/* The last labels of the output, in its order: numpy broadcasts just so. */
static gboolean is_tail(const Sum *s, const Operand *o)
{
    return o->n <= s->out.n && memcmp(o->label, s->out.label + (s->out.n - o->n), (size_t)o->n) == 0;
}

static gboolean expand_mul(Sum *s)
{
    if (!is_tail(s, &s->in[0]) || !is_tail(s, &s->in[1]) || !hn_rw_go(s->r, s->node))
        return FALSE;
    return hn_rw_take(s->r, hn_rw_add(s->r, s->node, "Mul", HN_INS(s->in[0].v, s->in[1].v)), s->node);
}

/* --- matrix products ---------------------------------------------------------------------------------------------- */

typedef struct {
    const Operand *x, *y;
    int n_k, n_m, n_n, n_stack; /* summed; in x and the output; in y and the output; both, or what is left over */
    uint8_t k[HN_MAX_RANK], m[HN_MAX_RANK], n[HN_MAX_RANK], stack[HN_MAX_RANK];
    int n_left, n_right; /* labels as MatMul wants them */
    uint8_t left[HN_MAX_RANK + 2], right[HN_MAX_RANK + 2], result[2 * HN_MAX_RANK];
    int n_result;
    gboolean fold_k, fold_n; /* several of them are taken together */
    int cost;                /* nodes beside the product */
} Product;

/* Every label of o is in `other` or the output; those of both and not of the output are summed. */
static gboolean sort_labels(const Sum *s, Product *p)
{
    for (int i = 0; i < p->x->n; i++) {
        uint8_t l = p->x->label[i];
        int j = find(p->y, l);
        gboolean out = find(&s->out, l) >= 0;
        if (!out && j < 0)
            return FALSE;
        if (!out) {
            if (!hn_rw_same_dim(s->r, p->x->v, i, p->y->v, j))
                return FALSE; /* one of them may be 1 */
            p->k[p->n_k++] = l;
        }
    }
    for (int i = 0; i < p->y->n; i++)
        if (find(&s->out, p->y->label[i]) < 0 && find(p->x, p->y->label[i]) < 0)
            return FALSE;
    for (int i = 0; i < s->out.n; i++) {
        uint8_t l = s->out.label[i];
        gboolean x = find(p->x, l) >= 0, y = find(p->y, l) >= 0;
        if (x && y)
            p->stack[p->n_stack++] = l;
        else if (x)
            p->m[p->n_m++] = l;
        else
            p->n[p->n_n++] = l;
    }
    return p->n_k > 0;
}

static void append(uint8_t *to, int *n, const uint8_t *from, int count)
{
    for (int i = 0; i < count; i++)
        to[(*n)++] = from[i];
}

/* The sizes of these labels of o are known, so that they can be one. */
static gboolean can_fold(const Sum *s, const Operand *o, const uint8_t *label, int n)
{
    for (int i = 0; i < n; i++) {
        int at = find(o, label[i]);
        HnDim d = hn_rw_dim(s->r, o->v, at);
        if (!d.known || d.n < 1)
            return FALSE;
    }
    return TRUE;
}

/* The product as MatMul takes it, several n as one or not; FALSE: it would not be one. */
static gboolean arrange(const Sum *s, Product *p, gboolean fold_n)
{
    const HnTensor *y = hn_rw_const(s->r, p->y->v);
    const int lead_x = MAX(p->n_m - 1, 0), lead_y = fold_n ? 0 : MAX(p->n_n - 1, 0);
    p->n_left = p->n_right = p->n_result = 0;
    p->fold_k = p->n_k > 1;
    p->fold_n = fold_n;
    if ((p->n_m == 0 || p->n_n == 0) && (p->n_stack > 0 || p->fold_k || fold_n))
        return FALSE; /* a product with a vector */
    if ((p->fold_k || fold_n) && (p->n_stack > 0 || y == NULL || y->n == 0))
        return FALSE;
    if (fold_n && (p->n_n < 2 || !can_fold(s, p->y, p->n, p->n_n)))
        return FALSE;
    if (p->fold_k && (fold_n || p->n_n != 1 || !can_fold(s, p->x, p->k, p->n_k)))
        return FALSE;
    if (lead_x > 0 && lead_y > 0)
        return FALSE;
    append(p->left, &p->n_left, p->m, lead_x);
    append(p->left, &p->n_left, p->stack, p->n_stack);
    append(p->left, &p->n_left, p->m + lead_x, p->n_m - lead_x);
    append(p->left, &p->n_left, p->k, p->n_k);
    append(p->right, &p->n_right, p->n, lead_y);
    append(p->right, &p->n_right, p->stack, p->n_stack);
    append(p->right, &p->n_right, p->k, p->n_k);
    append(p->right, &p->n_right, p->n + lead_y, p->n_n - lead_y);
    append(p->result, &p->n_result, p->m, lead_x);
    append(p->result, &p->n_result, p->n, lead_y);
    append(p->result, &p->n_result, p->stack, p->n_stack);
    append(p->result, &p->n_result, p->m + lead_x, p->n_m - lead_x);
    append(p->result, &p->n_result, p->n + lead_y, p->n_n - lead_y);
    p->cost = turns(s, p->x, p->n_left, p->left) + turns(s, p->y, p->n_right, p->right) +
              (same(&s->out, p->n_result, p->result) ? 0 : 1) + (p->fold_k ? 1 : 0) + (p->fold_n ? 1 : 0);
    return TRUE;
}

/* The constant w, in the order [k..., n...], as a matrix. */
static HnValue *as_matrix(Sum *s, const Product *p, HnValue *w)
{
    HnTensor *t = hn_rw_const(s->r, w);
    int64_t dims[2] = { 1, 1 };
    for (int i = 0; i < p->n_right; i++)
        dims[i < p->n_k ? 0 : 1] *= t->dims[i];
    return hn_rw_weight(s->r, s->node->graph, w->name, hn_tensor_reshaped(t, 2, dims));
}

static gboolean make_product(Sum *s, const Product *p)
{
    HnValue *x = turned(s, p->x, p->n_left, p->left), *y = turned(s, p->y, p->n_right, p->right);
    int64_t list[HN_MAX_RANK];
    if (p->fold_k || p->fold_n)
        y = as_matrix(s, p, y);
    if (p->fold_k) {
        for (int i = 0; i < p->n_m; i++)
            list[i] = 0;
        list[p->n_m] = hn_rw_dim(s->r, y, 0).n;
        x = hn_rw_out(s->r, hn_shapes_reshape(s->r, s->node, x, list, p->n_m + 1), x->name);
    }
    HnNode *product = hn_rw_add(s->r, s->node, "MatMul", HN_INS(x, y));
    if (!p->fold_n)
        return finish(s, product, p->n_result, p->result);
    for (int i = 0; i < p->n_m; i++)
        list[i] = 0;
    for (int i = 0; i < p->n_n; i++)
        list[p->n_m + i] = hn_rw_dim(s->r, p->y->v, find(p->y, p->n[i])).n;
    HnValue *flat = hn_rw_out(s->r, product, s->out.v->name);
    return finish(s, hn_shapes_reshape(s->r, s->node, flat, list, p->n_m + p->n_n), p->n_result, p->result);
}

static gboolean multiplies(HnDtype dtype)
{
    return hn_dtype_in(dtype, HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64));
}

static gboolean expand_product(Sum *s)
{
    g_autofree Product *p = g_new0(Product, 4);
    const Product *best = NULL;
    for (int k = 0; k < 4; k++) {
        p[k].x = &s->in[k / 2];
        p[k].y = &s->in[1 - k / 2];
        if (sort_labels(s, &p[k]) && arrange(s, &p[k], k % 2 == 1) && (best == NULL || p[k].cost < best->cost))
            best = &p[k];
    }
    if (best == NULL || !multiplies(hn_rw_dtype(s->r, s->out.v)))
        return hn_rw_miss(s->r, s->node, "it is not a product of matrices");
    if (best->cost > 1)
        return hn_rw_miss(s->r, s->node, "a product would need %d more nodes", best->cost);
    return hn_rw_go(s->r, s->node) && make_product(s, best);
}

static gboolean expand_einsum(HnRewrite *r, HnNode *n)
{
    Sum s;
    if (n->op != &hn_op_einsum || n->params == NULL)
        return FALSE;
    if (!read_sum(r, n, &s))
        return hn_rw_miss(r, n, "it has more than two operands, unknown ranks, or takes a diagonal");
    if (s.n_in == 1)
        return expand_one(&s);
    gboolean sums = FALSE;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < s.in[k].n; i++)
            sums = sums || find(&s.out, s.in[k].label[i]) < 0;
    return sums ? expand_product(&s) : expand_mul(&s);
}

const HnPass hn_pass_expand_einsum = {
    .name = "expand-einsum",
    .summary = "Einsum that is a MatMul, Mul, ReduceSum or Transpose",
    .level = 1,
    .node = expand_einsum,
};
