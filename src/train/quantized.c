#include "train/quantized.h"

#include <math.h>

#include "op/linear.h"
#include "train/trainable.h"

#define CLOSE 1e-5 /* of a product of scales that a bias has */

struct HnQuantized {
    GArray *held, *pairs;
    GPtrArray *tied;    /* HnValue *: scales of a layer with a bias whose own is not their product */
    GHashTable *makers; /* HnValue * -> its scale: numbers that a node of the two lists makes */
};

static HnTensor *elements(gconstpointer of, HnValue *v)
{
    (void)of;
    return hn_trainable_elements(v);
}

static gboolean takes(HnDtype dtype)
{
    return (hn_dtype_in(dtype, HN_T_SUBBYTE) && dtype != HN_F4E2M1) || dtype == HN_U8 || dtype == HN_I8 ||
           dtype == HN_U16 || dtype == HN_I16;
}

/* Another value, or another tensor of the same elements. */
static gboolean same(const HnValue *a, const HnValue *b)
{
    const HnTensor *x = a != NULL ? hn_trainable_elements(a) : NULL, *y = b != NULL ? hn_trainable_elements(b) : NULL;
    return a == b || (x != NULL && y != NULL && hn_tensor_equal(x, y));
}

static gboolean same_grid(const HnQParams *a, const HnQParams *b)
{
    return same(a->scale_of, b->scale_of) && same(a->zero_of, b->zero_of) && a->axis == b->axis && a->block == b->block;
}

static HnFakeForm form_of(const HnQParams *p, HnDtype dtype)
{
    return (HnFakeForm){ .dtype = dtype, .axis = p->axis, .block = p->block };
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static void add_held(HnQuantized *z, HnNode *n, const HnQParams *p)
{
    const HnTensor *t = hn_trainable_elements(p->q);
    if (t == NULL || t->unloaded || (!takes(t->dtype) && t->dtype != HN_I32))
        return;
    const HnHeldIntegers h = { n, *p, form_of(p, t->dtype), NULL, NULL };
    g_array_append_val(z->held, h);
    g_hash_table_insert(z->makers, p->real, p->scale_of);
}

/* Integers behind nodes that only convert them, each with one reader; NULL: others are there. */
static HnValue *converted(HnValue *v)
{
    while (v != NULL && v->producer != NULL && v->producer->op != NULL &&
           (v->producer->op->flags & HN_OP_CONVERT) != 0 && v->users->len == 1)
        v = hn_node_in(v->producer, 0);
    return v != NULL && v->users->len == 1 ? v : NULL;
}

/* The axis of q that a factor of these dims broadcasts along; -1: there is one factor, -2: it is something else. */
static int factor_axis(const HnTensor *q, const HnTensor *s)
{
    const int axis = q->ndim - s->ndim;
    if (s->n == 1)
        return -1;
    return axis >= 0 && s->ndim > 0 && s->dims[0] == s->n && s->n == q->dims[axis] ? axis : -2;
}

/* Integers that are converted and multiplied by a scale: what only makes a file smaller is stored so. */
static void add_stored(HnQuantized *z, HnNode *n, int i)
{
    HnValue *real = hn_node_out(n, 0), *first = hn_node_in(n, i), *scale_of = hn_node_in(n, 1 - i);
    if (n->op->channels.unit != HN_UNIT_CONSTANT || n->in->len != 2 || first == NULL || scale_of == NULL)
        return;
    HnValue *q = converted(first);
    HnTensor *t = q != NULL && q != first ? hn_trainable_elements(q) : NULL, *s = hn_trainable_elements(scale_of);
    const int axis = t != NULL && s != NULL && s->dtype == HN_F32 ? factor_axis(t, s) : -2;
    if (real == NULL || axis < -1 || t->unloaded || !takes(t->dtype))
        return;
    const HnQParams p = { .back = TRUE, .real = real, .q = q, .scale_of = scale_of, .scale = s, .axis = axis };
    const HnHeldIntegers h = { n, p, form_of(&p, t->dtype), NULL, NULL };
    g_array_append_val(z->held, h);
    g_hash_table_insert(z->makers, real, scale_of);
}

static void add_pair(HnQuantized *z, HnNode *second, const HnQParams *p)
{
    HnNode *first = p->q->producer;
    HnQParams before;
    if (first == NULL || !hn_op_qparams(first, elements, NULL, &before) || before.back || !same_grid(p, &before))
        return;
    const HnDtype to = ((const HnQuantize *)first->params)->to;
    const HnDtype dtype = before.zero != NULL ? before.zero->dtype : to != HN_UNDEFINED ? to : HN_U8;
    HnQuantPair pair = { first, second, before, form_of(&before, dtype), p->scale_of == before.scale_of };
    pair.form.samples = hn_trainable_elements(before.real) == NULL;
    if (!takes(dtype))
        return;
    g_array_append_val(z->pairs, pair);
    g_hash_table_insert(z->makers, p->real, p->scale_of);
}

static void find_nodes(HnQuantized *z, const HnGraph *g)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        HnQParams p;
        for (int k = 0; n->op != NULL && k < 2; k++)
            add_stored(z, n, k);
        if (!hn_op_qparams(n, elements, NULL, &p) || !p.back)
            continue;
        const HnDtype to = ((const HnQuantize *)n->params)->to;
        if (to != HN_UNDEFINED && to != HN_F32)
            continue;
        add_held(z, n, &p);
        add_pair(z, n, &p);
    }
}

/* --- biases ------------------------------------------------------------------------------------------------------- */

/* The scale of the node of the lists that makes v, or what v moves; NULL: there is none. */
static HnValue *scale_behind(const HnQuantized *z, HnValue *v)
{
    while (v != NULL && !g_hash_table_contains(z->makers, v) && v->producer != NULL && hn_trainable_moves(v->producer))
        v = hn_node_in(v->producer, 0);
    return v != NULL ? g_hash_table_lookup(z->makers, v) : NULL;
}

static gboolean is_product(const HnTensor *s, const HnTensor *x, const HnTensor *w)
{
    if (x->n != 1 || (w->n != 1 && w->n != s->n) || (w->n == 1 && s->n != 1))
        return FALSE;
    for (int64_t i = 0; i < s->n; i++) {
        const double product = hn_tensor_get_f64(x, 0) * hn_tensor_get_f64(w, w->n == 1 ? 0 : i);
        if (!(fabs(hn_tensor_get_f64(s, i) - product) <= CLOSE * fabs(product)))
            return FALSE;
    }
    return TRUE;
}

static HnHeldIntegers *held_of(const HnQuantized *z, const HnValue *real)
{
    for (guint i = 0; i < z->held->len; i++)
        if (g_array_index(z->held, HnHeldIntegers, i).p.real == real)
            return &g_array_index(z->held, HnHeldIntegers, i);
    return NULL;
}

static void find_bias(HnQuantized *z, const HnNode *n)
{
    HnLinearView v;
    if (!hn_op_is_linear(n->op) || !hn_op_linear(n, &v) || v.b == NULL)
        return;
    HnHeldIntegers *b = held_of(z, v.b);
    HnValue *x = scale_behind(z, hn_node_in(n, v.x_in)), *w = scale_behind(z, v.w);
    if (b == NULL || b->form.dtype != HN_I32 || (x == NULL && w == NULL))
        return;
    if (x != NULL && w != NULL && (b->x == NULL || (b->x == x && b->w == w)) &&
        is_product(b->p.scale, hn_trainable_elements(x), hn_trainable_elements(w))) {
        b->x = x;
        b->w = w;
        return;
    }
    if (x != NULL)
        g_ptr_array_add(z->tied, x);
    if (w != NULL)
        g_ptr_array_add(z->tied, w);
}

HnQuantized *hn_quantized_new(const HnGraph *g)
{
    HnQuantized *z = g_new0(HnQuantized, 1);
    z->held = g_array_new(FALSE, FALSE, sizeof(HnHeldIntegers));
    z->pairs = g_array_new(FALSE, FALSE, sizeof(HnQuantPair));
    z->tied = g_ptr_array_new();
    z->makers = g_hash_table_new(NULL, NULL);
    find_nodes(z, g);
    for (guint i = 0; i < g->nodes->len; i++)
        find_bias(z, g->nodes->pdata[i]);
    return z;
}

void hn_quantized_free(HnQuantized *z)
{
    if (z == NULL)
        return;
    g_array_unref(z->held);
    g_array_unref(z->pairs);
    g_ptr_array_unref(z->tied);
    g_hash_table_unref(z->makers);
    g_free(z);
}

const GArray *hn_quantized_held(const HnQuantized *z)
{
    return z->held;
}

const GArray *hn_quantized_pairs(const HnQuantized *z)
{
    return z->pairs;
}

/* --- what can change ---------------------------------------------------------------------------------------------- */

gboolean hn_quantized_holds(const HnQuantized *z, const HnValue *v)
{
    const HnQParams *first = NULL;
    guint n = 0;
    for (guint i = 0; i < z->held->len; i++) {
        const HnQParams *p = &g_array_index(z->held, HnHeldIntegers, i).p;
        if (p->q != v)
            continue;
        if (first != NULL && (p->scale_of != first->scale_of || !same_grid(p, first)))
            return FALSE;
        first = p;
        n++;
    }
    return n > 0 && n == v->users->len && !v->is_output;
}

HnValue *hn_quantized_integers(const HnQuantized *z, const HnValue *real)
{
    const HnHeldIntegers *h = held_of(z, real);
    return h != NULL ? h->p.q : NULL;
}

gboolean hn_quantized_is_scale(const HnQuantized *z, const HnValue *v)
{
    for (guint i = 0; i < z->held->len; i++)
        if (g_array_index(z->held, HnHeldIntegers, i).p.scale_of == v)
            return TRUE;
    for (guint i = 0; i < z->pairs->len; i++)
        if (g_array_index(z->pairs, HnQuantPair, i).p.scale_of == v)
            return TRUE;
    return FALSE;
}

/* Uses of v as the scale of a pair, or of integers that are trained. */
static guint known_uses(const HnQuantized *z, const HnValue *v, GHashTable *trained)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < z->pairs->len; i++) {
        const HnQuantPair *p = &g_array_index(z->pairs, HnQuantPair, i);
        if (p->p.scale_of == v && p->one) {
            g_hash_table_add(nodes, p->first);
            g_hash_table_add(nodes, p->second);
        }
    }
    for (guint i = 0; i < z->held->len; i++) {
        const HnHeldIntegers *h = &g_array_index(z->held, HnHeldIntegers, i);
        if (h->p.scale_of == v && h->form.dtype != HN_I32 && g_hash_table_contains(trained, h->p.q))
            g_hash_table_add(nodes, h->node);
    }
    return g_hash_table_size(nodes);
}

/* All who read integers of a pair are its second half, so that no other meaning of them is left. */
static gboolean closed(const HnQuantized *z, const HnValue *v)
{
    for (guint i = 0; i < z->pairs->len; i++) {
        const HnQuantPair *p = &g_array_index(z->pairs, HnQuantPair, i);
        guint n = 0;
        if (p->p.scale_of != v)
            continue;
        for (guint k = 0; k < z->pairs->len; k++)
            n += g_array_index(z->pairs, HnQuantPair, k).first == p->first;
        if (n != p->p.q->users->len || p->p.q->is_output)
            return FALSE;
    }
    return TRUE;
}

/* The bias follows when its factors change: whoever reads its scale has the same factors. */
static gboolean follows(const HnQuantized *z, const HnHeldIntegers *b, GHashTable *trained)
{
    guint n = 0;
    for (guint i = 0; i < z->held->len; i++) {
        const HnHeldIntegers *h = &g_array_index(z->held, HnHeldIntegers, i);
        n += h->p.scale_of == b->p.scale_of && h->x == b->x && h->w == b->w;
    }
    return n == b->p.scale_of->users->len && !b->p.scale_of->is_output && g_hash_table_contains(trained, b->p.q);
}

GHashTable *hn_quantized_learns(const HnQuantized *z, GHashTable *trained, GHashTable *scales)
{
    GHashTable *learns = g_hash_table_new(NULL, NULL);
    GHashTableIter iter;
    gpointer v;
    g_hash_table_iter_init(&iter, scales);
    while (g_hash_table_iter_next(&iter, &v, NULL)) {
        const HnValue *s = v;
        if (hn_trainable_elements(s) != NULL && !s->is_output && closed(z, s) &&
            known_uses(z, s, trained) == s->users->len)
            g_hash_table_add(learns, v);
    }
    for (guint i = 0; i < z->held->len; i++) {
        const HnHeldIntegers *h = &g_array_index(z->held, HnHeldIntegers, i);
        if (h->x != NULL && !follows(z, h, trained)) {
            g_hash_table_remove(learns, h->x);
            g_hash_table_remove(learns, h->w);
        }
    }
    for (guint i = 0; i < z->tied->len; i++)
        g_hash_table_remove(learns, z->tied->pdata[i]);
    return learns;
}
