/*
 * What is computed twice is computed once: nodes of one operator, one version, equal attributes and the same inputs, in
 * the whole graph and from inner graphs out; and integers that follow from shapes to the same numbers or symbols, by
 * whatever way. Random operators are never merged, nor are nodes with graphs inside.
 */
#include <string.h>

#include "pass/shapes.h"

#define MOST_BYTES 4096 /* of tensors in attributes: longer ones are not compared */

/* What is there already, in the graph at work and, through `outer`, around it. */
typedef struct Scope {
    const struct Scope *outer;
    GHashTable *nodes;  /* GBytes: key -> HnNode * */
    GHashTable *shapes; /* the same -> HnValue * */
} Scope;

static gpointer lookup(const Scope *s, gboolean shapes, const GBytes *key)
{
    for (; s != NULL; s = s->outer) {
        gpointer found = g_hash_table_lookup(shapes ? s->shapes : s->nodes, key);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static void add(GByteArray *key, gconstpointer data, gsize n)
{
    g_byte_array_append(key, data, (guint)n);
}

static void add_int(GByteArray *key, int64_t i)
{
    add(key, &i, sizeof i);
}

static void add_text(GByteArray *key, const char *text)
{
    add(key, text != NULL ? text : "", (text != NULL ? strlen(text) : 0) + 1);
}

static gboolean add_tensor(GByteArray *key, const HnTensor *t)
{
    if (t == NULL || t->dtype == HN_STRING || t->unloaded || t->bytes > MOST_BYTES)
        return FALSE;
    add_int(key, t->dtype);
    add_int(key, t->ndim);
    add(key, t->dims, (gsize)t->ndim * sizeof *t->dims);
    add(key, t->data, t->bytes);
    return TRUE;
}

/* FALSE: not to be compared. */
static gboolean add_attr(GByteArray *key, const HnAttr *a)
{
    add_text(key, a->name);
    add_int(key, a->kind);
    add_text(key, a->ref_attr);
    if (a->ref_attr != NULL)
        return TRUE;
    switch (a->kind) {
    case HN_ATTR_FLOAT:
        add(key, &a->f, sizeof a->f);
        return TRUE;
    case HN_ATTR_INT:
        add_int(key, a->i);
        return TRUE;
    case HN_ATTR_STRING:
        add_int(key, (int64_t)g_bytes_get_size(a->s));
        add(key, g_bytes_get_data(a->s, NULL), g_bytes_get_size(a->s));
        return TRUE;
    case HN_ATTR_TENSOR:
        return add_tensor(key, a->t);
    case HN_ATTR_FLOATS:
    case HN_ATTR_INTS:
        add_int(key, a->n);
        add(key, a->kind == HN_ATTR_INTS ? (gconstpointer)a->ints : a->floats,
            (gsize)a->n * (a->kind == HN_ATTR_INTS ? sizeof *a->ints : sizeof *a->floats));
        return TRUE;
    default:
        return FALSE;
    }
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp((*(HnAttr *const *)a)->name, (*(HnAttr *const *)b)->name);
}

static void add_value(GByteArray *key, const HnValue *v)
{
    add_int(key, v != NULL ? (int64_t)v->id : -1);
}

/* NULL: n is not compared. */
static GBytes *node_key(const HnNode *n)
{
    if (n->op == NULL || (n->op->flags & (HN_OP_RANDOM | HN_OP_CONTROL)) != 0 || n->out->len == 0)
        return NULL;
    g_autoptr(GByteArray) key = g_byte_array_new();
    g_autoptr(GPtrArray) attrs = g_ptr_array_sized_new(n->attrs->len);
    add(key, &n->op, sizeof n->op);
    add_int(key, n->version);
    add_int(key, n->out->len);
    add_int(key, n->in->len);
    guint first = 0;
    if ((n->op->flags & HN_OP_COMMUTATIVE) != 0 && n->in->len == 2 && n->version >= 7) {
        const HnValue *a = hn_node_in(n, 0), *b = hn_node_in(n, 1);
        const gboolean turn = a != NULL && b != NULL && a->id > b->id;
        add_value(key, turn ? b : a);
        add_value(key, turn ? a : b);
        first = 2;
    }
    for (guint i = first; i < n->in->len; i++)
        add_value(key, n->in->pdata[i]);
    for (guint i = 0; i < n->attrs->len; i++)
        g_ptr_array_add(attrs, n->attrs->pdata[i]);
    g_ptr_array_sort(attrs, by_name);
    for (guint i = 0; i < attrs->len; i++)
        if (!add_attr(key, attrs->pdata[i]))
            return NULL;
    return g_byte_array_free_to_bytes(g_steal_pointer(&key));
}

/* NULL: something in v does not follow from shapes. */
static GBytes *shape_key(const HnRewrite *r, const HnValue *v)
{
    const HnContents *c = hn_rw_contents(r, v);
    if (c == NULL || c->n == 0 || !hn_dtype_in(hn_rw_dtype(r, v), HN_T_INTS | HN_T_BOOL))
        return NULL;
    g_autoptr(GByteArray) key = g_byte_array_new();
    add_int(key, hn_rw_dtype(r, v));
    add_int(key, c->rank);
    for (int i = 0; i < c->n; i++) {
        if (!c->d[i].known && c->d[i].sym == NULL)
            return NULL;
        add_int(key, c->d[i].known ? c->d[i].n : -1);
        add_text(key, c->d[i].known ? NULL : c->d[i].sym);
    }
    return g_byte_array_free_to_bytes(g_steal_pointer(&key));
}

/* --- merging ------------------------------------------------------------------------------------------------------ */

/* n does what `twin` did before. */
static gboolean merge_nodes(HnRewrite *r, HnNode *n, HnNode *twin)
{
    gboolean any = FALSE;
    for (int k = 0; k < (int)n->out->len; k++) {
        HnValue *v = hn_node_out(n, k), *to = hn_node_out(twin, k);
        if (hn_value_is_read(v) && to != NULL)
            any |= hn_rw_bypass(r, n, v, to);
    }
    return any;
}

static gboolean merge_shapes(HnRewrite *r, HnNode *n, const Scope *s)
{
    HnValue *v = hn_node_out(n, 0);
    if (n->op == NULL || v == NULL || n->out->len != 1 || !hn_value_is_read(v) || hn_rw_const(r, v) != NULL)
        return FALSE;
    GBytes *key = shape_key(r, v);
    HnValue *to = key != NULL ? lookup(s, TRUE, key) : NULL;
    if (to != NULL || key == NULL) {
        g_clear_pointer(&key, g_bytes_unref);
        return to != NULL && hn_rw_bypass(r, n, v, to);
    }
    g_hash_table_insert(s->shapes, key, v);
    return FALSE;
}

static gboolean common_below(HnRewrite *r, HnGraph *g, const Scope *outer)
{
    Scope s = { outer, g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL),
                g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL) };
    gboolean any = FALSE;
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        for (guint a = 0; a < n->attrs->len; a++) {
            const HnAttr *attr = n->attrs->pdata[a];
            if (attr->kind == HN_ATTR_GRAPH && attr->g != NULL)
                any |= common_below(r, attr->g, &s);
            for (int64_t q = 0; attr->kind == HN_ATTR_GRAPHS && q < attr->n; q++)
                any |= common_below(r, attr->graphs[q], &s);
        }
        if (merge_shapes(r, n, &s)) {
            any = TRUE;
            continue;
        }
        GBytes *key = node_key(n);
        HnNode *twin = key != NULL ? lookup(&s, FALSE, key) : NULL;
        if (twin != NULL)
            any |= merge_nodes(r, n, twin);
        if (key != NULL && twin == NULL)
            g_hash_table_insert(s.nodes, key, n);
        else
            g_clear_pointer(&key, g_bytes_unref);
    }
    g_hash_table_unref(s.nodes);
    g_hash_table_unref(s.shapes);
    return any;
}

static gboolean eliminate_common(HnRewrite *r, HnGraph *g)
{
    return g->outer == NULL && common_below(r, g, NULL); /* inner graphs are looked at from the outermost */
}

const HnPass hn_pass_eliminate_common = {
    .name = "eliminate-common",
    .summary = "compute once what is computed twice, inner graphs included",
    .level = 1,
    .graph = eliminate_common,
};
