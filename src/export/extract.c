#include "export/extract.h"

#include <string.h>

#include "op/infer.h"

/* --- a piece ------------------------------------------------------------------------------------------------------ */

static HnValue *value_of(const HnGraph *g, const char *name, GError **error)
{
    HnValue *v = g_hash_table_lookup(g->values, name);
    if (v == NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the model's graph has no value '%s'", name);
    return v;
}

static gboolean set_outputs(HnGraph *g, const char *const *out, GError **error)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    for (; *out != NULL; out++) {
        HnValue *v = value_of(g, *out, error);
        if (v == NULL)
            return FALSE;
        g_ptr_array_add(values, v);
    }
    for (guint i = 0; i < g->outputs->len; i++)
        ((HnValue *)g->outputs->pdata[i])->is_output = FALSE;
    g_ptr_array_set_size(g->outputs, 0);
    for (guint i = 0; i < values->len; i++)
        if (!((HnValue *)values->pdata[i])->is_output)
            hn_graph_add_output(g, values->pdata[i]);
    return TRUE;
}

static gboolean set_inputs(HnGraph *g, const char *const *in, GError **error)
{
    for (; *in != NULL; in++) {
        HnValue *v = value_of(g, *in, error);
        if (v == NULL)
            return FALSE;
        if (hn_value_is_weight(v)) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is a weight, which cannot be an input", *in);
            return FALSE;
        }
        if (v->producer != NULL) {
            hn_node_set_out(v->producer, v->producer_out, NULL);
            hn_graph_add_input(g, v);
        }
    }
    return TRUE;
}

/* The nodes that the outputs need, into `needed`; values that nothing makes, into `open`. */
static void reach(const HnGraph *g, GHashTable *needed, GHashTable *open)
{
    g_autoptr(GPtrArray) todo = g_ptr_array_new();
    for (guint i = 0; i < g->outputs->len; i++)
        g_ptr_array_add(todo, g->outputs->pdata[i]);
    while (todo->len > 0) {
        const HnValue *v = g_ptr_array_steal_index(todo, todo->len - 1);
        HnNode *n = v->producer;
        if (n == NULL)
            g_hash_table_add(open, (gpointer)v);
        if (n == NULL || !g_hash_table_add(needed, n))
            continue;
        for (guint i = 0; i < n->in->len; i++)
            if (n->in->pdata[i] != NULL)
                g_ptr_array_add(todo, n->in->pdata[i]);
        g_autoptr(GPtrArray) captured = hn_node_captures(n);
        for (guint i = 0; i < captured->len; i++)
            g_ptr_array_add(todo, captured->pdata[i]);
    }
}

static gboolean drop_rest(HnGraph *g, const char *const *in, GError **error)
{
    g_autoptr(GHashTable) needed = g_hash_table_new(NULL, NULL), open = g_hash_table_new(NULL, NULL);
    reach(g, needed, open);
    for (guint i = g->inputs->len; i-- > 0;) {
        HnValue *v = g->inputs->pdata[i];
        const gboolean named = in != NULL && g_strv_contains(in, v->name), used = g_hash_table_contains(open, v);
        if (used && in != NULL && !named && v->weight == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the outputs need input '%s' too", v->name);
            return FALSE;
        }
        if (used || named)
            continue;
        v->is_input = FALSE;
        g_ptr_array_remove_index(g->inputs, i);
    }
    for (guint i = g->nodes->len; i-- > 0;)
        if (!g_hash_table_contains(needed, g->nodes->pdata[i]))
            hn_graph_remove_node(g, g->nodes->pdata[i]);
    for (guint i = g->weights->len; i-- > 0;) {
        HnValue *v = g->weights->pdata[i];
        if (!hn_value_is_read(v) && !v->is_input)
            hn_graph_remove_weight(g, v);
    }
    return TRUE;
}

gboolean hn_extract(HnModel *m, const char *const *in, const char *const *out, GError **error)
{
    HnGraph *g = m->graph;
    if (!hn_graph_infer(g, FALSE, error) || (out != NULL && !set_outputs(g, out, error)))
        return FALSE;
    return (in == NULL || set_inputs(g, in, error)) && drop_rest(g, in, error) && hn_model_verify(m, error);
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static gboolean fix(HnValue *v, const HnShapes *s, GError **error)
{
    HnType *t = v->type;
    HnDim dims[HN_MAX_RANK];
    int64_t n;
    int rank = 0;
    gboolean any = FALSE;
    if (!hn_type_is_tensor(t) || t->rank > HN_MAX_RANK)
        return TRUE;
    while (t->rank < 0 && rank < HN_MAX_RANK && hn_shapes_says(s, v, rank, &n))
        dims[rank++] = hn_dim(n);
    any = rank > 0;
    for (; rank < t->rank; rank++) {
        dims[rank] = t->dims[rank];
        if (!hn_shapes_says(s, v, rank, &n))
            continue;
        if (t->dims[rank].known && t->dims[rank].n != n) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                        "dimension %d of input '%s' is %" PRId64 " in the model, and cannot be %" PRId64, rank, v->name,
                        t->dims[rank].n, n);
            return FALSE;
        }
        dims[rank] = hn_dim(n);
        any = TRUE;
    }
    if (any) {
        g_autoptr(HnType) fixed = hn_type_tensor(t->dtype, rank, dims);
        hn_value_set_type(v, fixed);
    }
    return TRUE;
}

gboolean hn_fix_shapes(HnModel *m, const HnShapes *s, GError **error)
{
    GPtrArray *in = m->graph->inputs;
    if (!hn_shapes_check(s, (HnValue *const *)in->pdata, (int)in->len, error))
        return FALSE;
    for (guint i = 0; i < in->len; i++)
        if (!fix(in->pdata[i], s, error))
            return FALSE;
    return TRUE;
}
