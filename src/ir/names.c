/*
 * Names that are unique in a whole model, sub-graphs included.
 */
#include <string.h>

#include "ir/detach.h"

#define LONGEST 120 /* bytes of what stands before the last '/' */

typedef struct {
    GHashTable *uses; /* name -> graphs that use it, and those it was taken from; owns its keys */
    GHashTable *last; /* stem -> number that was put behind it last; owns its keys */
} Names;

static void count(Names *n, const HnGraph *g)
{
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, g->values);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        const guint uses = GPOINTER_TO_UINT(g_hash_table_lookup(n->uses, name));
        g_hash_table_insert(n->uses, g_strdup(name), GUINT_TO_POINTER(uses + 1));
    }
    for (guint i = 0; i < g->inner->len; i++)
        count(n, g->inner->pdata[i]);
}

static gboolean may_be_float(const HnValue *v)
{
    if (v->weight != NULL)
        return hn_dtype_in(v->weight->dtype, HN_T_FLOATS);
    return hn_type_may_be(v->type, HN_T_FLOATS);
}

static gboolean holds(const HnAttr *a, const HnGraph *g)
{
    HnGraph *const *graphs;
    const int64_t n = hn_attr_graphs(a, &graphs);
    for (int64_t i = 0; i < n; i++)
        if (graphs[i] == g)
            return TRUE;
    return FALSE;
}

/* "loop_1/body" */
static char *scope_of(const HnGraph *g)
{
    const HnNode *n = g->holder;
    const HnValue *v = NULL;
    const char *attr = "";
    for (guint i = 0; i < n->attrs->len; i++)
        if (holds(n->attrs->pdata[i], g))
            attr = ((const HnAttr *)n->attrs->pdata[i])->name;
    for (guint k = 0; k < n->out->len && v == NULL; k++)
        v = n->out->pdata[k];
    char *scope = g_strdup_printf("%s/%s", v != NULL ? v->name : n->op_type, attr);
    if (strlen(scope) > LONGEST)
        *g_utf8_find_prev_char(scope, scope + LONGEST + 1) = '\0';
    return scope;
}

static char *new_name(Names *n, const char *scope, const char *old)
{
    g_autofree char *stem = g_strdup_printf("%s/%s", scope, old);
    char *name = g_strdup(stem);
    guint k = GPOINTER_TO_UINT(g_hash_table_lookup(n->last, stem));
    while (g_hash_table_contains(n->uses, name)) {
        g_free(name);
        name = g_strdup_printf("%s_%u", stem, ++k);
    }
    if (k > 0)
        g_hash_table_insert(n->last, g_strdup(stem), GUINT_TO_POINTER(k));
    g_hash_table_insert(n->uses, g_strdup(name), GUINT_TO_POINTER(1));
    return name;
}

static void rename_value(Names *n, HnValue *v, const char *scope)
{
    if (v == NULL || GPOINTER_TO_UINT(g_hash_table_lookup(n->uses, v->name)) < 2 || !may_be_float(v))
        return;
    hn_value_take_name(v, new_name(n, scope, v->name));
}

/* Outer graphs come first: their nodes' names are in those of inner ones. */
static void name_graph(Names *n, HnGraph *g)
{
    g_autofree char *scope = g->holder != NULL ? scope_of(g) : NULL;
    if (scope != NULL) {
        for (guint i = 0; i < g->inputs->len; i++)
            rename_value(n, g->inputs->pdata[i], scope);
        for (guint i = 0; i < g->weights->len; i++)
            rename_value(n, g->weights->pdata[i], scope);
        for (guint i = 0; i < g->nodes->len; i++) {
            const HnNode *node = g->nodes->pdata[i];
            for (guint k = 0; k < node->out->len; k++)
                rename_value(n, node->out->pdata[k], scope);
        }
    }
    for (guint i = 0; i < g->inner->len; i++)
        name_graph(n, g->inner->pdata[i]);
}

void hn_model_name_apart(HnModel *m)
{
    if (m->graph->inner->len == 0)
        return;
    Names n = { g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) };
    count(&n, m->graph);
    name_graph(&n, m->graph);
    g_hash_table_unref(n.uses);
    g_hash_table_unref(n.last);
}

static gboolean has_name(const HnGraph *g, const char *name)
{
    if (g_hash_table_contains(g->values, name))
        return TRUE;
    for (guint i = 0; i < g->inner->len; i++)
        if (has_name(g->inner->pdata[i], name))
            return TRUE;
    return FALSE;
}

gboolean hn_model_has_name(const HnModel *m, const char *name)
{
    return has_name(m->graph, name);
}
