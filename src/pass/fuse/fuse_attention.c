/*
 * Attention (opset 23) where it is spelled out:
 *     softmax(scale * q * k' + mask) * v
 * with heads in a dimension of their own; the factor may stand on q, on k, on both or behind the product. Keys and
 * values that are repeated for groups of query heads are taken from before that. Where heads lie side by side before
 * and after (Reshape and Transpose around everything), those go too.
 *
 * ONNX Runtime (1.31) takes a mask only with the sizes of queries and keys as its last two, so masks that broadcast
 * there stay as they are.
 */
#include <math.h>
#include <string.h>

#include "op/attention.h"
#include "op/softmax.h"
#include "op/transpose.h"
#include "pass/pattern.h"
#include "pass/shapes.h"

typedef struct {
    HnRewrite *r;
    HnGraph *g;
    HnNode *n;          /* the product with v */
    HnValue *q, *k, *v; /* [B,H,S,D], [B,G,L,D], [B,G,L,E] */
    HnValue *mask;      /* [S,L] or [1 or B, 1 or H, S, L] or NULL */
    HnValue *key_first; /* [B,L,H,D] where that, turned, is k: k is NULL then */
    double scale;
} Attend;

static const int64_t swap_last[] = { 0, 1, 3, 2 }, heads_first[] = { 0, 2, 1, 3 }, keys_last[] = { 0, 2, 3, 1 };

static gboolean turns(const HnNode *n, const int64_t *perm)
{
    const HnTranspose *p = n->params;
    return n->op == &hn_op_transpose && p->n == 4 && memcmp(p->perm, perm, 4 * sizeof *perm) == 0;
}

/* The node that makes v if it is such a Transpose. */
static HnNode *turned(const HnGraph *g, const HnValue *v, const int64_t *perm)
{
    HnNode *n = v->graph == g ? hn_rw_maker(v, &hn_op_transpose) : NULL;
    return n != NULL && turns(n, perm) ? n : NULL;
}

/* v = factor * leaf, one leaf only: that; else v. */
static HnValue *scaled(const Attend *a, HnValue *v, double *factor)
{
    HnSgemm p;
    *factor = 1;
    if (!hn_rw_single(v) || !hn_pattern_product(a->r, a->g, v, &p) || p.n != 1)
        return v;
    *factor = p.factor;
    return p.leaf[0];
}

/* u is scale * q * k': takes them apart. */
static gboolean find_products(Attend *a, HnValue *u)
{
    double f, fq, fk, fl;
    HnValue *s = scaled(a, u, &f);
    const HnNode *m = hn_pattern_maker(a->g, s, &hn_op_matmul);
    if (m == NULL)
        return FALSE;
    a->q = scaled(a, hn_node_in(m, 0), &fq);
    HnValue *t = scaled(a, hn_node_in(m, 1), &fk);
    const HnNode *turn = turned(a->g, t, swap_last);
    const HnNode *both = turn == NULL ? turned(a->g, t, keys_last) : NULL;
    if (turn == NULL && both == NULL)
        return FALSE;
    fl = 1;
    if (turn != NULL)
        a->k = hn_rw_single(t) ? scaled(a, hn_node_in(turn, 0), &fl) : hn_node_in(turn, 0);
    else
        a->key_first = hn_node_in(both, 0);
    a->scale = f * fq * fk * fl;
    return TRUE;
}

static gboolean find_scores(Attend *a, HnValue *v)
{
    const HnNode *p = hn_pattern_maker(a->g, v, &hn_op_softmax);
    if (p == NULL)
        return FALSE;
    const HnSoftmax *params = p->params;
    HnValue *u = hn_node_in(p, 0);
    if (params->flatten || hn_rw_rank(a->r, u) != 4 || (params->axis != -1 && params->axis != 3))
        return FALSE;
    if (find_products(a, u))
        return TRUE;
    const HnNode *add = hn_pattern_maker(a->g, u, &hn_op_add);
    for (int i = 0; i < 2 && add != NULL; i++) {
        a->mask = hn_node_in(add, 1 - i);
        if (find_products(a, hn_node_in(add, i)))
            return TRUE;
    }
    return FALSE;
}

static HnDim dim(const Attend *a, const HnValue *v, int axis)
{
    return hn_rw_dim(a->r, v, axis);
}

static gboolean is_one_or(HnDim d, HnDim other)
{
    return hn_dim_is(d, 1) || hn_dim_equal(d, other);
}

static gboolean mask_fits(const Attend *a, HnDim keys)
{
    const int rank = hn_rw_rank(a->r, a->mask);
    if ((rank != 2 && rank != 4) || !hn_rw_same_dim(a->r, a->mask, -2, a->q, 2) ||
        !hn_dim_equal(dim(a, a->mask, -1), keys) || hn_rw_dtype(a->r, a->mask) != hn_rw_dtype(a->r, a->q))
        return FALSE;
    return rank == 2 ||
           (is_one_or(dim(a, a->mask, 0), dim(a, a->q, 0)) && is_one_or(dim(a, a->mask, 1), dim(a, a->q, 1)));
}

/* Batches, heads and lengths agree; nothing broadcasts. */
static gboolean shapes_fit(const Attend *a)
{
    const HnValue *k = a->k != NULL ? a->k : a->key_first;
    const int heads = a->k != NULL ? 1 : 2, length = 3 - heads;
    if (hn_rw_rank(a->r, a->q) != 4 || hn_rw_rank(a->r, k) != 4 || hn_rw_rank(a->r, a->v) != 4)
        return FALSE;
    if (!hn_rw_same_dim(a->r, a->q, 0, k, 0) || !hn_rw_same_dim(a->r, a->q, 1, k, heads) ||
        !hn_rw_same_dim(a->r, a->q, 3, k, 3))
        return FALSE;
    return hn_rw_same_dim(a->r, a->q, 0, a->v, 0) && hn_rw_same_dim(a->r, a->q, 1, a->v, 1) &&
           hn_rw_same_dim(a->r, k, length, a->v, 2);
}

/* --- heads that share keys and values ------------------------------------------------------------------------------
 */

typedef struct {
    HnValue *one; /* [B,G,1,L,D] or [B,L,G,1,D], each head of which is repeated; NULL: nothing is */
    int axis;     /* of the 1 */
} Shared;

/* v is a view of `one`, expanded along an axis that lies behind that of the heads. */
static gboolean is_repeated(const Attend *a, const HnValue *v, int axis, Shared *s)
{
    const HnNode *view = hn_pattern_maker(a->g, v, &hn_op_reshape);
    const HnNode *more = view != NULL ? hn_pattern_maker(a->g, hn_node_in(view, 0), &hn_op_expand) : NULL;
    HnValue *one = more != NULL ? hn_node_in(more, 0) : NULL;
    const HnValue *all = more != NULL ? hn_node_out(more, 0) : NULL;
    if (one == NULL || hn_rw_rank(a->r, one) != 5 || hn_rw_rank(a->r, all) != 5 || hn_rw_rank(a->r, v) != 4)
        return FALSE;
    if (!hn_dim_is(dim(a, one, axis), 1) || !dim(a, all, axis).known)
        return FALSE;
    for (int i = 0; i < 5; i++)
        if (i != axis && !hn_rw_same_dim(a->r, one, i, all, i))
            return FALSE;
    for (int i = 0; i < 4; i++) {
        const HnDim d = dim(a, all, i < axis ? i : i + 1);
        if (!hn_dim_equal(dim(a, v, i), i == axis - 1 ? hn_dim_mul(d, dim(a, all, axis)) : d))
            return FALSE;
    }
    *s = (Shared){ one, axis };
    return TRUE;
}

/* How v [B,H,L,D], or, where that is not turned yet, key_first [B,L,H,D], was repeated. */
static gboolean find_shared(const Attend *a, const HnValue *v, const HnValue *key_first, Shared *s)
{
    if (v == NULL)
        return is_repeated(a, key_first, 3, s);
    const HnNode *turn = hn_rw_single(v) ? turned(a->g, v, heads_first) : NULL;
    return is_repeated(a, v, 2, s) || (turn != NULL && is_repeated(a, hn_node_in(turn, 0), 3, s));
}

static HnValue *turn_heads(const Attend *a, HnValue *v)
{
    HnNode *turn = hn_rw_add(a->r, a->n, "Transpose", HN_INS(v));
    hn_node_set_ints(turn, "perm", heads_first, 4);
    return hn_rw_out(a->r, turn, v->name);
}

/* [B,G,L,D] */
static HnValue *unrepeated(const Attend *a, const Shared *s)
{
    HnValue *v = hn_rw_out(a->r, hn_shapes_squeeze(a->r, a->n, "Squeeze", s->one, &s->axis, 1), s->one->name);
    return s->axis == 3 ? turn_heads(a, v) : v;
}

/* --- heads side by side ------------------------------------------------------------------------------------------- */

/* v [B,H,L,D] is a view of [B,L,H*D], turned: that. */
static HnValue *joined(const Attend *a, const HnValue *v)
{
    const HnNode *turn = turned(a->g, v, heads_first);
    const HnValue *split = turn != NULL ? hn_node_in(turn, 0) : NULL;
    const HnNode *view = split != NULL && split->graph == a->g ? hn_rw_maker(split, &hn_op_reshape) : NULL;
    HnValue *w = view != NULL ? hn_node_in(view, 0) : NULL;
    if (w == NULL || hn_rw_rank(a->r, w) != 3 || !dim(a, split, 2).known)
        return NULL;
    const gboolean same = hn_rw_same_dim(a->r, w, 0, split, 0) && hn_rw_same_dim(a->r, w, 1, split, 1) &&
                          hn_dim_equal(dim(a, w, 2), hn_dim_mul(dim(a, split, 2), dim(a, split, 3)));
    return same ? w : NULL;
}

/* What turns the result back and joins its heads; NULL: nothing does. */
static HnNode *joining(const Attend *a)
{
    const HnValue *y = hn_node_out(a->n, 0);
    const HnNode *turn = hn_rw_reader(y, &hn_op_transpose);
    HnNode *view = turn != NULL && turns(turn, heads_first) ? hn_rw_reader(hn_node_out(turn, 0), &hn_op_reshape) : NULL;
    const HnValue *z = view != NULL ? hn_node_out(view, 0) : NULL;
    return z != NULL && hn_rw_rank(a->r, z) == 3 && hn_rw_same_dim(a->r, z, 0, y, 0) &&
                   hn_rw_same_dim(a->r, z, 1, y, 2) &&
                   hn_dim_equal(dim(a, z, 2), hn_dim_mul(dim(a, y, 1), dim(a, y, 3)))
               ? view
               : NULL;
}

/* Nothing is asked of n but what hone itself writes. */
static gboolean is_plain(const HnNode *n)
{
    const HnAttention *p = n->params;
    if (p->causal || p->left != -1 || p->right != -1) /* some keys are masked */
        return FALSE;
    return p->softcap == 0 && p->mode == HN_QK_RAW && hn_node_attr(n, "softmax_precision") == NULL;
}

/* n is Attention over four dimensions that were made of three. */
static gboolean join_heads(HnRewrite *r, HnNode *n)
{
    const Attend a = { .r = r, .g = n->graph, .n = n };
    const HnAttention *p = n->params;
    if (n->in->len > 4 || n->out->len > 1 || hn_rw_rank(r, hn_node_in(n, 0)) != 4)
        return FALSE;
    HnNode *last = joining(&a);
    HnValue *in[4] = { NULL };
    for (int i = 0; i < 3; i++)
        if ((in[i] = joined(&a, hn_node_in(n, i))) == NULL)
            return FALSE;
    in[3] = hn_node_in(n, 3);
    if (last == NULL || last->graph != n->graph || !hn_rw_go(r, n))
        return FALSE;
    HnNode *all = hn_rw_add(r, n, "Attention", in, 4);
    hn_node_set_int(all, "q_num_heads", dim(&a, hn_node_in(n, 0), 1).n);
    hn_node_set_int(all, "kv_num_heads", dim(&a, hn_node_in(n, 1), 1).n);
    if (!isnan(p->scale))
        hn_node_set_float(all, "scale", (float)p->scale);
    return hn_rw_take(r, all, last);
}

static gboolean fuse_attention(HnRewrite *r, HnNode *n)
{
    Attend a = { .r = r, .g = n->graph, .n = n };
    if (n->op == &hn_op_attention)
        return is_plain(n) && join_heads(r, n);
    if (n->op != &hn_op_matmul || !find_scores(&a, hn_node_in(n, 0)))
        return FALSE;
    a.v = hn_node_in(n, 1);
    if (!shapes_fit(&a))
        return hn_rw_miss(r, n, "query, key and value are not known to be of one batch and number of heads");
    if (!hn_pattern_is_float(r, a.q))
        return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", a.q->name);
    if (a.mask != NULL && !mask_fits(&a, dim(&a, a.v, 2)))
        return hn_rw_miss(r, n, "mask '%s' has not the sizes of queries and keys as its last two", a.mask->name);
    if (!hn_rw_can(n->graph, &hn_op_attention, 23))
        return hn_rw_miss(r, n, "Attention needs opset 23, and the model has %" PRId64, hn_rw_opset(n->graph));
    Shared k, v;
    const gboolean shared = find_shared(&a, a.k, a.key_first, &k) && find_shared(&a, a.v, NULL, &v) &&
                            hn_dim_equal(dim(&a, k.one, k.axis == 2 ? 1 : 2), dim(&a, v.one, v.axis == 2 ? 1 : 2));
    if (!hn_rw_go(r, n))
        return FALSE;
    if (shared) {
        a.k = unrepeated(&a, &k);
        a.v = unrepeated(&a, &v);
    } else if (a.k == NULL) {
        a.k = turn_heads(&a, a.key_first);
    }
    HnNode *all = hn_rw_add(r, n, "Attention", HN_INS(a.q, a.k, a.v, a.mask));
    hn_node_set_float(all, "scale", (float)a.scale);
    return hn_rw_take(r, all, n);
}

const HnPass hn_pass_fuse_attention = {
    .name = "fuse-attention",
    .summary = "Attention where it is spelled out with MatMul and Softmax (opset 23)",
    .level = 2,
    .node = fuse_attention,
};
