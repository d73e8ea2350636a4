/*
 * hone.FusedAttention for attention that is written out:
 *     softmax(scale * q * k' + mask) * v
 * perhaps with a guard that makes zeros of probabilities that are NaN, and with a number instead of some scores;
 * factors may stand on q, on k, or behind their product. Transposes that put heads in front of tokens and back go, as
 * do copies of keys and values for groups of heads.
 */
#include <math.h>
#include <string.h>

#include "lower/lower.h"
#include "op/attention.h"
#include "op/gemm.h"
#include "op/softmax.h"
#include "op/transpose.h"
#include "pass/pattern.h"

#define CHAIN 6 /* views and factors in a row */

typedef struct {
    HnRewrite *r;
    HnNode *n; /* the product with values */
    int rank;
    HnValue *in[HN_FUSED_INPUTS];
    double key_scale, scale, fill;
    int64_t by_token;
    gboolean guard, inverted;
} Attend;

static const int64_t heads_back[] = { 0, 2, 1, 3 }, batch_back[] = { 1, 0, 2 };
static const int64_t swap_last4[] = { 0, 1, 3, 2 }, swap_last3[] = { 0, 2, 1 };
static const int64_t keys_last4[] = { 0, 2, 3, 1 }, keys_last3[] = { 1, 2, 0 };

static gboolean turns(const Attend *a, const HnNode *n, const int64_t *four, const int64_t *three)
{
    const HnTranspose *p = n != NULL ? n->params : NULL;
    return n != NULL && n->op == &hn_op_transpose && p->perm != NULL && p->n == a->rank &&
           memcmp(p->perm, a->rank == 4 ? four : three, (gsize)a->rank * sizeof *four) == 0;
}

/* v without the numbers it was multiplied by: their product goes into *factor. */
static HnValue *unscaled(const Attend *a, HnValue *v, double *factor)
{
    double x;
    for (int i = 0; i < CHAIN && hn_rw_single(v) && v->producer != NULL; i++) {
        const HnNode *n = v->producer;
        HnValue *of = NULL;
        if (n->op == &hn_op_mul)
            of = hn_pattern_with_number(a->r, n, &x);
        else if (n->op == &hn_op_div && hn_pattern_number(a->r, hn_node_in(n, 1), hn_node_in(n, 0), &x) && x != 0) {
            of = hn_node_in(n, 0);
            x = 1 / x;
        }
        if (of == NULL || hn_rw_rank(a->r, of) != hn_rw_rank(a->r, v) || !isfinite(*factor * x))
            break;
        *factor *= x;
        v = of;
    }
    return v;
}

/* What v is a view of, of v's own shape. */
static HnValue *unviewed(const Attend *a, HnValue *v)
{
    HnValue *same = v, *w = v;
    for (int i = 0; i < CHAIN && w->producer != NULL && w->producer->op == &hn_op_reshape; i++) {
        w = hn_node_in(w->producer, 0);
        if (hn_rw_same_shape(a->r, w, v))
            same = w;
    }
    return same;
}

/* Queries, keys or values as they are before tokens and heads change places. */
static HnValue *unturned(Attend *a, HnValue *v, int64_t bit)
{
    v = unviewed(a, v);
    if ((a->by_token & bit) == 0 && turns(a, v->producer, heads_back, batch_back)) {
        a->by_token |= bit;
        v = unviewed(a, hn_node_in(v->producer, 0));
    }
    return v;
}

/* k [.., size, keys] is something with its last two axes exchanged, perhaps as stacks of three dimensions: that. */
static HnValue *unswapped(const Attend *a, const HnValue *k)
{
    int64_t want[HN_MAX_RANK], have[HN_MAX_RANK];
    const HnNode *n = k->producer;
    if (turns(a, n, swap_last4, swap_last3))
        return hn_node_in(n, 0);
    const HnNode *t = n != NULL && n->op == &hn_op_reshape ? hn_rw_maker(hn_node_in(n, 0), &hn_op_transpose) : NULL;
    const Attend stack = { .rank = 3 };
    if (a->rank != 4 || !turns(&stack, t, swap_last4, swap_last3) || !hn_rw_fixed(a->r, k, want))
        return NULL;
    HnValue *v = hn_node_in(t, 0);
    if (!hn_rw_fixed(a->r, v, have) || have[1] != want[3] || have[2] != want[2])
        return NULL;
    for (int i = 0; i < CHAIN && v->producer != NULL && v->producer->op == &hn_op_reshape; i++) {
        v = hn_node_in(v->producer, 0);
        if (hn_rw_rank(a->r, v) == 4 && hn_rw_fixed(a->r, v, have) && have[0] == want[0] && have[1] == want[1] &&
            have[2] == want[3] && have[3] == want[2])
            return v;
    }
    return NULL;
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* u = q * k', factors apart. */
static gboolean find_product(Attend *a, HnValue *u)
{
    a->scale = a->key_scale = 1;
    a->by_token = 0;
    HnValue *s = unscaled(a, u, &a->scale);
    const HnNode *m = s->producer;
    const HnFusedMatMul *form = m != NULL && m->op == &hn_op_fusedmatmul ? m->params : NULL;
    if (m == NULL || (m->op != &hn_op_matmul && form == NULL) || !hn_rw_single(s) || hn_node_in(m, 2) != NULL)
        return FALSE;
    if (form != NULL && (form->trans_a || !form->trans_b))
        return FALSE;
    if (hn_rw_rank(a->r, hn_node_in(m, 0)) != a->rank || hn_rw_rank(a->r, hn_node_in(m, 1)) != a->rank)
        return FALSE;
    HnValue *k = unscaled(a, hn_node_in(m, 1), &a->key_scale);
    if (form == NULL) {
        const HnNode *t = k->producer;
        if (turns(a, t, keys_last4, keys_last3))
            a->by_token |= HN_BY_TOKEN_K;
        k = (a->by_token & HN_BY_TOKEN_K) != 0 ? hn_node_in(t, 0) : unswapped(a, k);
        if (k == NULL)
            return FALSE;
        k = unscaled(a, k, &a->key_scale);
    }
    a->in[0] = unturned(a, unscaled(a, hn_node_in(m, 0), &a->key_scale), HN_BY_TOKEN_Q);
    a->in[1] = unturned(a, k, HN_BY_TOKEN_K);
    return TRUE;
}

/* The mask, of this type, does not make scores larger. */
static gboolean mask_fits(const Attend *a, const HnValue *mask, HnDtype dtype, const HnValue *scores)
{
    int64_t m[HN_MAX_RANK], s[HN_MAX_RANK];
    const int rank = hn_rw_rank(a->r, mask);
    if (rank < 0 || rank > a->rank || hn_rw_dtype(a->r, mask) != dtype || !hn_rw_fixed(a->r, mask, m) ||
        !hn_rw_fixed(a->r, scores, s))
        return FALSE;
    for (int i = 0; i < rank; i++)
        if (m[i] != 1 && m[i] != s[a->rank - rank + i])
            return FALSE;
    return TRUE;
}

/* u = q * k', or Where that puts a number for some of it. */
static gboolean find_kept(Attend *a, HnValue *u)
{
    if (find_product(a, u))
        return TRUE;
    const HnNode *w = hn_rw_single(u) ? hn_rw_maker(u, &hn_op_where) : NULL;
    for (int i = 1; i < 3 && w != NULL; i++) {
        HnValue *scores = hn_node_in(w, i);
        if (!hn_rw_uniform(a->r, hn_node_in(w, 3 - i), &a->fill) || !(a->fill < INFINITY) ||
            !hn_rw_same_shape(a->r, u, scores) || !find_product(a, scores))
            continue;
        if (!mask_fits(a, hn_node_in(w, 0), HN_BOOL, scores))
            return FALSE;
        a->in[HN_FUSED_KEEP] = hn_node_in(w, 0);
        a->inverted = i == 2;
        return TRUE;
    }
    return FALSE;
}

static gboolean find_scores(Attend *a, HnValue *u)
{
    if (find_kept(a, u))
        return TRUE;
    const HnNode *add = hn_rw_single(u) ? hn_rw_maker(u, &hn_op_add) : NULL;
    for (int i = 0; i < 2 && add != NULL; i++) {
        a->in[HN_FUSED_MASK] = hn_node_in(add, 1 - i);
        if (hn_rw_rank(a->r, hn_node_in(add, i)) == a->rank && find_kept(a, hn_node_in(add, i)))
            return mask_fits(a, a->in[HN_FUSED_MASK], hn_rw_dtype(a->r, hn_node_in(add, i)), hn_node_in(add, i));
    }
    return FALSE;
}

/* --- probabilities ------------------------------------------------------------------------------------------------ */

/* v = Where(IsNaN(p), 0, p): p. */
static HnValue *guarded(const Attend *a, const HnValue *v)
{
    double zero;
    const HnNode *w = hn_rw_single(v) ? hn_rw_maker(v, &hn_op_where) : NULL;
    const HnNode *is = w != NULL ? hn_pattern_maker(v->graph, hn_node_in(w, 0), &hn_op_isnan) : NULL;
    HnValue *p = w != NULL ? hn_node_in(w, 2) : NULL;
    if (is == NULL || hn_node_in(is, 0) != p || p->users->len != 2 || p->is_output)
        return NULL;
    return hn_rw_uniform(a->r, hn_node_in(w, 1), &zero) && zero == 0 && hn_rw_same_shape(a->r, p, v) ? p : NULL;
}

static gboolean find_probabilities(Attend *a, HnValue *v)
{
    HnValue *p = guarded(a, v);
    a->guard = p != NULL;
    if (p == NULL)
        p = v;
    const HnNode *s = a->guard || hn_rw_single(p) ? hn_rw_maker(p, &hn_op_softmax) : NULL;
    const HnSoftmax *params = s != NULL ? s->params : NULL;
    if (s == NULL || params->flatten || (params->axis != -1 && params->axis != a->rank - 1))
        return FALSE;
    return find_scores(a, hn_node_in(s, 0));
}

/* --- heads that share keys and values ------------------------------------------------------------------------------
 */

/* v [batch, heads, tokens, size], or with tokens in front, is x with each head several times over: x. */
static HnValue *unrepeated(const Attend *a, const HnValue *v, gboolean by_token)
{
    int64_t d[HN_MAX_RANK], one[HN_MAX_RANK], all[HN_MAX_RANK], x[HN_MAX_RANK];
    const int head = by_token ? 2 : 1;
    const HnNode *view = a->rank == 4 ? hn_rw_maker(v, &hn_op_reshape) : NULL;
    const HnNode *more = view != NULL ? hn_rw_maker(hn_node_in(view, 0), &hn_op_expand) : NULL;
    const HnNode *split = more != NULL ? hn_node_in(more, 0)->producer : NULL;
    if (split == NULL || (split->op != &hn_op_unsqueeze && split->op != &hn_op_reshape))
        return NULL;
    HnValue *from = hn_node_in(split, 0);
    if (hn_rw_rank(a->r, hn_node_in(more, 0)) != 5 || hn_rw_rank(a->r, hn_node_out(more, 0)) != 5 ||
        hn_rw_rank(a->r, from) != 4)
        return NULL;
    if (!hn_rw_fixed(a->r, v, d) || !hn_rw_fixed(a->r, hn_node_in(more, 0), one) ||
        !hn_rw_fixed(a->r, hn_node_out(more, 0), all) || !hn_rw_fixed(a->r, from, x))
        return NULL;
    for (int i = 0; i < 5; i++)
        if (one[i] != (i == head + 1 ? 1 : all[i]))
            return NULL;
    for (int i = 0; i < 4; i++)
        if (x[i] != one[i > head ? i + 1 : i] || d[i] != (i == head ? x[i] * all[head + 1] : x[i]))
            return NULL;
    return from;
}

static void take_shared(Attend *a)
{
    HnValue *k = unrepeated(a, a->in[1], (a->by_token & HN_BY_TOKEN_K) != 0);
    HnValue *v = unrepeated(a, a->in[2], (a->by_token & HN_BY_TOKEN_V) != 0);
    if (k == NULL || v == NULL)
        return;
    a->in[1] = unturned(a, k, HN_BY_TOKEN_K);
    a->in[2] = unturned(a, v, HN_BY_TOKEN_V);
}

/* --- the node ----------------------------------------------------------------------------------------------------- */

static int inputs_of(const Attend *a)
{
    int n = HN_FUSED_INPUTS;
    while (a->in[n - 1] == NULL)
        n--;
    return n;
}

/* A kernel takes it, whose result is y. */
static gboolean runs(const Attend *a, HnValue *y)
{
    const HnFusedAttention p = { (float)a->key_scale, (float)a->scale, a->by_token, a->guard,
                                 (float)a->fill,      a->inverted };
    HnTensor *t[HN_FUSED_INPUTS] = { NULL }, *out = hn_rw_tensor(a->r, y);
    const int n = inputs_of(a);
    for (int i = 0; i < n; i++)
        t[i] = a->in[i] != NULL ? hn_rw_tensor(a->r, a->in[i]) : NULL;
    const gboolean ok = hn_rw_runs(a->r, &(HnDraft){ &hn_op_fusedattention, &p, t, n, out });
    for (int i = 0; i < n; i++)
        hn_tensor_unref(t[i]);
    hn_tensor_unref(out);
    return ok;
}

/* Batches, heads and lengths agree, nothing broadcasts, and all is of fixed sizes. */
static gboolean shapes_fit(const Attend *a)
{
    int64_t d[3][HN_MAX_RANK];
    HnAttentionForm f[3];
    const HnDtype type = hn_rw_dtype(a->r, a->in[0]);
    if (type != HN_F32 && type != HN_F16 && type != HN_BF16)
        return FALSE;
    for (int i = 0; i < 3; i++) {
        if (hn_rw_rank(a->r, a->in[i]) != a->rank || hn_rw_dtype(a->r, a->in[i]) != type ||
            !hn_rw_fixed(a->r, a->in[i], d[i]))
            return FALSE;
        f[i] = hn_attention_form(a->rank, d[i], (a->by_token >> i & 1) != 0);
    }
    if (f[1].heads == 0 || f[0].heads % f[1].heads != 0 || f[1].heads != f[2].heads)
        return FALSE;
    return f[0].batch == f[1].batch && f[0].batch == f[2].batch && f[0].size == f[1].size && f[1].length == f[2].length;
}

static gboolean attention_steps(HnRewrite *r, HnNode *n)
{
    Attend a = { .r = r, .n = n };
    if (n->op != &hn_op_matmul)
        return FALSE;
    a.rank = hn_rw_rank(r, hn_node_in(n, 0));
    if ((a.rank != 3 && a.rank != 4) || hn_rw_rank(r, hn_node_in(n, 1)) != a.rank ||
        !find_probabilities(&a, hn_node_in(n, 0)))
        return FALSE;
    a.in[2] = unturned(&a, hn_node_in(n, 1), HN_BY_TOKEN_V);
    const gboolean equal = shapes_fit(&a); /* before heads are shared: products broadcast otherwise */
    take_shared(&a);
    if (!equal || !shapes_fit(&a))
        return hn_rw_miss(r, n,
                          "query, key and value are not of one batch and number of heads, or of one type of floats");
    HnNode *back = hn_rw_reader(hn_node_out(n, 0), &hn_op_transpose), *last = n;
    if (turns(&a, back, heads_back, batch_back)) {
        a.by_token |= HN_BY_TOKEN_Y;
        last = back;
    }
    if (!runs(&a, hn_node_out(last, 0)))
        return hn_rw_miss(r, n, "no kernel takes it");
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *all = hn_rw_add_internal(r, last, &hn_op_fusedattention, a.in, inputs_of(&a));
    hn_node_set_float(all, "key_scale", (float)a.key_scale);
    hn_node_set_float(all, "scale", (float)a.scale);
    hn_node_set_int(all, "by_token", a.by_token);
    hn_node_set_int(all, "guard", a.guard);
    if (a.in[HN_FUSED_KEEP] != NULL) {
        hn_node_set_float(all, "fill", (float)a.fill);
        hn_node_set_int(all, "inverted", a.inverted);
    }
    return hn_rw_take(r, all, last);
}

const HnPass hn_pass_attention_steps = {
    .name = "attention-steps",
    .summary = "attention that is written out as one node, scores never in memory",
    .level = 2,
    .node = attention_steps,
};
