#include "train/order.h"

#include <string.h>

#define MOST_NODES 20000 /* beyond it moving takes too long */
#define CHAIN 4          /* nodes that turn and cut the gradient of a weight, at most */

typedef struct {
    HnGraph *g;
    const HnTypes *types;
    guint first, n; /* the places of nodes that may move: [first, n) */
    GHashTable *at; /* HnNode * -> 1 + its place */
} Order;

static guint place_of(const Order *o, const HnNode *n)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(o->at, n)) - 1;
}

static HnNode *node_at(const Order *o, guint i)
{
    return o->g->nodes->pdata[i];
}

static void put_at(const Order *o, HnNode *n, guint i)
{
    o->g->nodes->pdata[i] = n;
    g_hash_table_insert(o->at, n, GUINT_TO_POINTER(i + 1));
}

/* The node at place `from` stands at `to` then, and those between close up. */
static void move(const Order *o, guint from, guint to)
{
    HnNode *n = node_at(o, from);
    for (; from < to; from++)
        put_at(o, node_at(o, from + 1), from);
    for (; from > to; from--)
        put_at(o, node_at(o, from - 1), from);
    put_at(o, n, to);
}

/* Bytes, of elements of fixed shape; else 0. */
static gsize bytes_of(const Order *o, const HnValue *v)
{
    int64_t dims[HN_MAX_RANK], n;
    size_t bytes;
    const HnType *t = v != NULL ? hn_types_get(o->types, v) : NULL;
    const gboolean fixed = t != NULL && hn_type_is_fixed(t, dims) && hn_dims_count(t->rank, dims, &n);
    return fixed && hn_dtype_bytes(t->dtype, n, &bytes) ? bytes : 0;
}

/* The places of v's first and last reader beside `but`. FALSE: they are not known: another graph reads it, too. */
static gboolean readers(const Order *o, const HnValue *v, const HnNode *but, guint *first, guint *last)
{
    *first = o->n;
    *last = 0;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *user = v->users->pdata[i];
        if (user->graph != o->g)
            return FALSE;
        if (user == but)
            continue;
        *first = MIN(*first, place_of(o, user));
        *last = MAX(*last, place_of(o, user));
    }
    return TRUE;
}

static gboolean may_move(const Order *o, const HnNode *n)
{
    guint first, last;
    gboolean may = n->op != NULL && (n->op->flags & HN_OP_CONTROL) == 0;
    for (guint k = 0; may && k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        may = v == NULL || readers(o, v, n, &first, &last);
    }
    return may;
}

/* v is made by a node that may move, and n reads it for the last time, wherever n stands from place `to` on. */
static gboolean ends_with(const Order *o, const HnValue *v, const HnNode *n, guint to)
{
    guint first, last;
    return v->producer != NULL && place_of(o, v->producer) >= o->first && !v->is_output &&
           readers(o, v, n, &first, &last) && last < to;
}

/* What n makes is wanted itself, or after a few single nodes: the gradient of a weight. */
static gboolean is_wanted(const HnNode *n)
{
    for (int i = 0; i < CHAIN; i++) {
        const HnValue *v = n->out->len == 1 ? n->out->pdata[0] : NULL;
        if (v == NULL || v->users->len != 1)
            return v != NULL && v->users->len == 0 && !v->is_output;
        n = v->users->pdata[0];
    }
    return FALSE;
}

static void move_up(const Order *o, guint i)
{
    HnNode *n = node_at(o, i);
    guint to = o->first;
    gsize ends = 0, made = 0;
    if (!is_wanted(n))
        return;
    for (guint k = 0; k < n->in->len; k++) {
        const HnValue *v = n->in->pdata[k];
        to = v != NULL && v->producer != NULL ? MAX(to, place_of(o, v->producer) + 1) : to;
    }
    for (guint k = 0; k < n->in->len; k++)
        ends += n->in->pdata[k] != NULL && ends_with(o, n->in->pdata[k], n, to) ? bytes_of(o, n->in->pdata[k]) : 0;
    for (guint k = 0; k < n->out->len; k++)
        made += bytes_of(o, n->out->pdata[k]);
    if (to < i && made > 0 && ends >= made && may_move(o, n))
        move(o, i, to);
}

/* n alone reads v, which is made of weights and inputs, in front of n wherever that is. */
static gboolean follows(const HnValue *v)
{
    const HnNode *n = v->producer;
    gboolean given = v->users->len == 1 && !v->is_output;
    for (guint i = 0; given && i < n->in->len; i++)
        given = n->in->pdata[i] == NULL || ((const HnValue *)n->in->pdata[i])->producer == NULL;
    return given;
}

static void move_down(const Order *o, guint i)
{
    HnNode *n = node_at(o, i);
    guint to = o->n, first, last;
    gboolean read = FALSE;
    if (!may_move(o, n))
        return;
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (v == NULL)
            continue;
        if (v->is_output)
            return;
        readers(o, v, n, &first, &last);
        read = read || v->users->len > 0;
        to = MIN(to, first);
    }
    for (guint k = 0; k < n->in->len; k++) {
        const HnValue *v = n->in->pdata[k];
        if (v == NULL || v->producer == NULL || v->is_output || follows(v))
            continue;
        if (!readers(o, v, n, &first, &last))
            return;
        to = MIN(to, last + 1);
    }
    if (read && to > i + 1)
        move(o, i, to - 1);
}

void hn_order_backward(HnGraph *g, const HnTypes *types, guint first)
{
    Order o = { .g = g, .types = types, .first = first, .n = g->nodes->len };
    if (o.n - MIN(first, o.n) > MOST_NODES)
        return;
    o.at = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < o.n; i++)
        put_at(&o, node_at(&o, i), i);
    for (guint i = o.n; i > first; i--)
        move_down(&o, i - 1);
    for (guint i = first; i < o.n; i++)
        move_up(&o, i);
    g_hash_table_unref(o.at);
}
