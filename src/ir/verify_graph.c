#include "ir/graph.h"

#include "base/error.h"
#include "ir/detach.h"

static gboolean fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean fail(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, HN_ERROR, HN_ERROR_GRAPH, message);
    return FALSE;
}

static const char *graph_name(const HnGraph *g)
{
    return g->name ? g->name : "";
}

static gboolean is_defined(const HnValue *v)
{
    return v->producer || v->is_input || hn_value_is_weight(v);
}

/* v can be seen from g: it belongs to g or to a graph around it. */
static gboolean in_scope(const HnValue *v, const HnGraph *g)
{
    while (g && g != v->graph)
        g = g->outer;
    return g != NULL;
}

/* --- names of outer graphs that were used before they were made -------------------------------------------------- */

static void resolve(HnGraph *g)
{
    GHashTableIter it;
    gpointer p;
    g_hash_table_iter_init(&it, g->values);
    while (g->outer && g_hash_table_iter_next(&it, NULL, &p)) {
        HnValue *v = p, *found = NULL;
        if (is_defined(v) || !hn_value_is_read(v))
            continue;
        for (HnGraph *h = g->outer; h && !found; h = h->outer) {
            found = g_hash_table_lookup(h->values, v->name);
            if (found && !is_defined(found))
                found = NULL;
        }
        if (!found)
            continue;
        hn_value_replace(v, found);
        if (!v->has_info)
            g_hash_table_iter_remove(&it);
    }
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint j = 0; j < n->attrs->len; j++) {
            HnGraph *const *graphs;
            int64_t k = hn_attr_graphs(n->attrs->pdata[j], &graphs);
            for (int64_t q = 0; q < k; q++)
                if (graphs[q])
                    resolve(graphs[q]);
        }
    }
}

/* --- one producer each ------------------------------------------------------------------------------------------- */

static gboolean check_inputs(const HnGraph *g, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < g->inputs->len; i++) {
        HnValue *v = g->inputs->pdata[i];
        if (!g_hash_table_add(seen, v))
            return fail(error, "input '%s' of graph '%s' is listed twice", v->name, graph_name(g));
        if (v->graph != g || !v->is_input)
            return fail(error, "input '%s' of graph '%s' belongs to another graph", v->name, graph_name(g));
    }
    g_hash_table_remove_all(seen);
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (!g_hash_table_add(seen, v))
            return fail(error, "weight '%s' of graph '%s' is listed twice", v->name, graph_name(g));
        if (v->graph != g)
            return fail(error, "weight '%s' of graph '%s' belongs to another graph", v->name, graph_name(g));
    }
    return TRUE;
}

static gboolean check_producers(const HnGraph *g, GHashTable *index, GError **error)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint j = 0; j < n->out->len; j++) {
            const HnValue *v = n->out->pdata[j];
            if (!v)
                continue;
            if (v->graph != g)
                return fail(error, "node '%s' produces '%s' of another graph", hn_node_label(n), v->name);
            if (v->is_input || hn_value_is_weight(v))
                return fail(error, "'%s' is both %s and an output of node '%s'", v->name,
                            v->is_input ? "an input" : "a weight", hn_node_label(n));
            if (v->producer && v->producer != n)
                return fail(error, "'%s' is produced by node '%s' and by node '%s'", v->name,
                            hn_node_label(v->producer), hn_node_label(n));
            if (!v->producer || v->producer_out != (int)j)
                return fail(error, "'%s' is produced twice by node '%s'", v->name, hn_node_label(n));
        }
    }
    GHashTableIter it;
    gpointer p;
    g_hash_table_iter_init(&it, g->values);
    while (g_hash_table_iter_next(&it, NULL, &p)) {
        const HnValue *v = p;
        if (v->producer &&
            (!g_hash_table_contains(index, v->producer) || hn_node_out(v->producer, v->producer_out) != v))
            return fail(error, "'%s' names a producer that does not produce it", v->name);
    }
    return TRUE;
}

static gboolean check_uses(const HnGraph *g, GError **error)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint j = 0; j < n->in->len; j++) {
            const HnValue *v = n->in->pdata[j];
            if (!v)
                continue;
            if (!in_scope(v, g))
                return fail(error, "node '%s' uses '%s', which belongs to another graph", hn_node_label(n), v->name);
            if (!is_defined(v))
                return fail(error, "node '%s' uses '%s', which nothing produces", hn_node_label(n), v->name);
        }
    }
    for (guint i = 0; i < g->outputs->len; i++) {
        const HnValue *v = g->outputs->pdata[i];
        if (!in_scope(v, g))
            return fail(error, "output '%s' of graph '%s' belongs to another graph", v->name, graph_name(g));
        if (!is_defined(v))
            return fail(error, "nothing produces output '%s' of graph '%s'", v->name, graph_name(g));
    }
    return TRUE;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

typedef struct {
    guint node;
    guint next;          /* dependency to look at */
    GPtrArray *captures; /* NULL: no sub-graphs */
} Frame;

enum { NEW, OPEN, DONE };

static gboolean holds_graphs(const HnNode *n)
{
    HnGraph *const *graphs;
    for (guint i = 0; i < n->attrs->len; i++)
        if (hn_attr_graphs(n->attrs->pdata[i], &graphs) > 0)
            return TRUE;
    return FALSE;
}

static void push(GArray *stack, const HnGraph *g, guint node)
{
    const HnNode *n = g->nodes->pdata[node];
    Frame f = { node, 0, holds_graphs(n) ? hn_node_captures(n) : NULL };
    g_array_append_val(stack, f);
}

static void frame_clear(gpointer p)
{
    Frame *f = p;
    if (f->captures)
        g_ptr_array_unref(f->captures);
}

/* Each node goes right behind what it needs, in the order of the file otherwise: a sorted list stays as it is. */
static gboolean sort_nodes(HnGraph *g, GHashTable *index, gboolean *reordered, GError **error)
{
    g_autoptr(GPtrArray) order = g_ptr_array_sized_new(g->nodes->len);
    g_autofree guint8 *state = g_new0(guint8, g->nodes->len);
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(Frame));
    g_array_set_clear_func(stack, frame_clear);
    for (guint root = 0; root < g->nodes->len; root++) {
        if (state[root] == DONE)
            continue;
        state[root] = OPEN;
        push(stack, g, root);
        while (stack->len > 0) {
            Frame *f = &g_array_index(stack, Frame, stack->len - 1);
            HnNode *n = g->nodes->pdata[f->node];
            guint k = f->next++;
            if (k >= n->in->len + (f->captures ? f->captures->len : 0)) {
                state[f->node] = DONE;
                g_ptr_array_add(order, n);
                g_array_set_size(stack, stack->len - 1);
                continue;
            }
            const HnValue *v = k < n->in->len ? n->in->pdata[k] : f->captures->pdata[k - n->in->len];
            if (!v || v->graph != g || !v->producer)
                continue;
            guint dep = GPOINTER_TO_UINT(g_hash_table_lookup(index, v->producer)) - 1;
            if (state[dep] == OPEN)
                return fail(error, "node '%s' needs its own result '%s': the graph has a cycle",
                            hn_node_label(v->producer), v->name);
            if (state[dep] == NEW) {
                state[dep] = OPEN;
                push(stack, g, dep);
            }
        }
    }
    for (guint i = 0; i < order->len; i++) {
        if (g->nodes->pdata[i] != order->pdata[i]) {
            g->nodes->pdata[i] = order->pdata[i];
            *reordered = TRUE;
        }
    }
    return TRUE;
}

/* --- `users` says what uses say ---------------------------------------------------------------------------------- */

static void count_uses(const HnGraph *g, guint32 *count)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint j = 0; j < n->in->len; j++)
            if (n->in->pdata[j])
                count[((const HnValue *)n->in->pdata[j])->id]++;
        for (guint j = 0; j < n->attrs->len; j++) {
            HnGraph *const *graphs;
            int64_t k = hn_attr_graphs(n->attrs->pdata[j], &graphs);
            for (int64_t q = 0; q < k; q++)
                if (graphs[q])
                    count_uses(graphs[q], count);
        }
    }
    for (guint i = 0; i < g->outputs->len; i++) {
        const HnValue *v = g->outputs->pdata[i];
        count[v->id] += v->graph != g;
    }
}

static gboolean check_users(const HnGraph *g, const guint32 *count, GError **error)
{
    GHashTableIter it;
    gpointer p;
    g_hash_table_iter_init(&it, g->values);
    while (g_hash_table_iter_next(&it, NULL, &p)) {
        const HnValue *v = p;
        if (v->users->len != count[v->id])
            return fail(error, "'%s' lists %u users but has %u", v->name, v->users->len, count[v->id]);
    }
    for (guint i = 0; i < g->inner->len; i++)
        if (((const HnGraph *)g->inner->pdata[i])->holder && !check_users(g->inner->pdata[i], count, error))
            return FALSE;
    return TRUE;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static gboolean verify(HnGraph *g, gboolean *reordered, GError **error)
{
    g_autoptr(GHashTable) index = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < g->nodes->len; i++)
        if (!g_hash_table_insert(index, g->nodes->pdata[i], GUINT_TO_POINTER(i + 1)))
            return fail(error, "node '%s' is listed twice", hn_node_label(g->nodes->pdata[i]));
    if (!check_inputs(g, error) || !check_producers(g, index, error) || !check_uses(g, error) ||
        !sort_nodes(g, index, reordered, error))
        return FALSE;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        if (n->graph != g)
            return fail(error, "node '%s' belongs to another graph", hn_node_label(n));
        for (guint j = 0; j < n->attrs->len; j++) {
            HnGraph *const *graphs;
            int64_t k = hn_attr_graphs(n->attrs->pdata[j], &graphs);
            for (int64_t q = 0; q < k; q++) {
                if (!graphs[q])
                    continue;
                if (graphs[q]->holder != n || graphs[q]->outer != g)
                    return fail(error, "graph '%s' is not linked to node '%s' that holds it", graph_name(graphs[q]),
                                hn_node_label(n));
                if (!verify(graphs[q], reordered, error))
                    return FALSE;
            }
        }
    }
    return TRUE;
}

static gboolean verify_root(HnGraph *g, guint32 *count, gboolean *reordered, GError **error)
{
    resolve(g);
    if (!verify(g, reordered, error))
        return FALSE;
    count_uses(g, count);
    return check_users(g, count, error);
}

gboolean hn_graph_verify(HnGraph *g, gboolean *reordered, GError **error)
{
    gboolean moved = FALSE, good;
    if (g->outer) { /* its values' users may lie outside: not counted */
        resolve(g);
        good = verify(g, &moved, error);
    } else {
        g_autofree guint32 *count = g_new0(guint32, g->model->n_values);
        good = verify_root(g, count, &moved, error);
    }
    if (good && reordered)
        *reordered = moved;
    return good;
}

gboolean hn_model_verify(HnModel *m, GError **error)
{
    g_autofree guint32 *count = g_new0(guint32, m->n_values); /* by HnValue.id, graphs share it */
    gboolean moved = FALSE;
    if (!verify_root(m->graph, count, &moved, error))
        return FALSE;
    for (guint i = 0; i < m->functions->len; i++) {
        HnFunction *f = m->functions->pdata[i];
        if (!verify_root(f->body, count, &moved, error)) {
            g_prefix_error(error, "in function '%s': ", f->name ? f->name : "");
            return FALSE;
        }
    }
    return TRUE;
}
