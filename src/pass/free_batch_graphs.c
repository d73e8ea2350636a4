/* hn_free_batch(): branches of which each sample takes one. */
#include <string.h>

#include "pass/free_batch_inner.h"

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* The node that was added last, in front of `before`. */
static void move_before(HnGraph *g, const HnNode *before)
{
    HnNode *n = g_ptr_array_steal_index(g->nodes, g->nodes->len - 1);
    g_ptr_array_insert(g->nodes, (gint)hn_graph_index(g, before), n);
}

/* What the original made is known of the copies, too. */
static void know_copies(HnFreeWalk *f, GHashTable *copies)
{
    GHashTableIter iter;
    gpointer from, to;
    g_hash_table_iter_init(&iter, copies);
    while (g_hash_table_iter_next(&iter, &from, &to)) {
        HnType *t = from != to ? hn_types_get(f->was, from) : NULL;
        HnTensor *v = from != to ? hn_types_value(f->was, from) : NULL;
        if (t != NULL)
            hn_types_set(f->was, to, t);
        if (v != NULL)
            hn_types_set_value(f->was, to, v);
    }
}

/* The nodes of branch g once more in front of n; out[k]: what stands for its output k. */
static gboolean inline_branch(HnFreeWalk *f, HnNode *n, HnGraph *g, HnValue **out, GError **error)
{
    HnGraph *to = n->graph;
    g_autoptr(GHashTable) copies = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) made = g_ptr_array_new();
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *w = g->weights->pdata[i];
        HnValue *copy = hn_graph_new_value(to, w->name);
        if (w->weight == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "a branch has a sparse weight");
            return FALSE;
        }
        hn_graph_add_weight(to, copy, w->weight);
        hn_types_set_value(f->now, copy, w->weight);
        hn_types_set_value(f->was, copy, w->weight);
        g_hash_table_insert(copies, (gpointer)w, copy);
    }
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *inner = g->nodes->pdata[i];
        for (guint k = 0; k < inner->out->len; k++)
            if (inner->out->pdata[k] != NULL)
                g_hash_table_insert(copies, inner->out->pdata[k],
                                    hn_graph_new_value(to, ((HnValue *)inner->out->pdata[k])->name));
        for (guint k = 0; k < inner->in->len; k++) { /* values around the branch stand for themselves */
            HnValue *v = inner->in->pdata[k];
            if (v != NULL && v->graph != g)
                g_hash_table_insert(copies, v, v);
        }
        g_autoptr(GPtrArray) captured = hn_node_captures(inner);
        for (guint k = 0; k < captured->len; k++)
            if (((HnValue *)captured->pdata[k])->graph != g)
                g_hash_table_insert(copies, captured->pdata[k], captured->pdata[k]);
        g_ptr_array_add(made, hn_node_copy(to, inner, copies));
        move_before(to, n);
    }
    know_copies(f, copies);
    for (guint k = 0; k < g->outputs->len; k++) {
        HnValue *v = g->outputs->pdata[k];
        out[k] = v->graph == g ? g_hash_table_lookup(copies, v) : v;
    }
    for (guint i = 0; i < made->len; i++)
        if (!hn_free_node(f, made->pdata[i], error))
            return FALSE;
    return TRUE;
}

/* A node in front of `before` that makes `y` (NULL: a value of its own), as it would have been in the original; of type
 * `was` there (NULL: inferred), with an integer attribute (NULL: none). */
static HnValue *add_free(HnFreeWalk *f, HnNode *before, const char *op, HnValue *const *in, int n_in, HnValue *y,
                         HnType *was, const char *attr, int64_t v, GError **error)
{
    HnNode *n = hn_graph_add_node_before(before->graph, before, op, NULL, NULL);
    for (int i = 0; i < n_in; i++) {
        hn_node_add_in(n, in[i]);
        if (in[i] != NULL && in[i]->weight != NULL && hn_types_get(f->was, in[i]) == NULL)
            hn_types_set_value(f->was, in[i], in[i]->weight); /* made by a rule */
    }
    if (attr != NULL)
        hn_node_set_int(n, attr, v);
    if (y != NULL)
        hn_node_set_out(n, 0, y);
    else
        hn_node_add_out(n, y = hn_graph_new_value(n->graph, op));
    if (was != NULL)
        hn_types_set(f->was, y, was);
    else if (!hn_types_node(f->was, n, 0, error))
        return NULL;
    return hn_free_node(f, n, error) ? y : NULL;
}

HnValue *hn_free_make(HnBatch *b, const char *op, HnValue *const *in, int n_in, const char *attr, int64_t v, int k)
{
    HnValue *y = k >= 0 ? hn_node_out(b->node, k) : NULL;
    if (b->error != NULL)
        return NULL;
    if (y != NULL)
        hn_node_set_out(b->node, k, NULL);
    return add_free(b->data, b->node, op, in, n_in, y, k >= 0 ? b->was_out[k] : NULL, attr, v, &b->error);
}

gboolean hn_free_select(HnBatch *b, HnGraph *const branch[2])
{
    HnFreeWalk *f = b->data;
    HnNode *n = b->node;
    g_autofree HnValue **no = g_new0(HnValue *, (gsize)b->n_out + 1), **yes = g_new0(HnValue *, (gsize)b->n_out + 1);
    g_autoptr(HnType) scalar = hn_type_tensor(HN_BOOL, 0, NULL);
    HnValue *list = hn_batch_constant(b, NULL, 0), *cond = b->in[0].v;
    hn_types_set(f->was, list, hn_types_get(f->now, list));
    if (!inline_branch(f, n, branch[0], no, &b->error) || !inline_branch(f, n, branch[1], yes, &b->error) ||
        (cond = add_free(f, n, "Reshape", (HnValue *[]){ cond, list }, 2, NULL, scalar, NULL, 0, &b->error)) == NULL)
        return FALSE;
    for (int k = 0; k < b->n_out; k++) {
        HnValue *y = hn_node_out(n, k), *in[] = { cond, yes[k], no[k] };
        HnType *was = hn_types_get(f->was, yes[k]), *other = hn_types_get(f->was, no[k]);
        if (y == NULL)
            continue;
        if (was == NULL || other == NULL || !hn_type_equal(was, other))
            return hn_batch_fail(b, "which branch runs differs from sample to sample, and what they make is not of one "
                                    "shape");
        hn_node_set_out(n, k, NULL);
        if (add_free(f, n, "Where", in, 3, y, was, NULL, 0, &b->error) == NULL)
            return FALSE;
    }
    return b->gone = TRUE;
}
