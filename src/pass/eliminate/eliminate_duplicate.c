/*
 * Equal weights become one; those of inner graphs that nobody sees from one another move outwards, unless they are too
 * small to matter. Weights that are inputs too stay.
 */
#include "pass/rewrite.h"

#define MOST_LIKE 8 /* different weights of one hash that are told apart */
#define SMALL 1024  /* bytes that may be there several times, in graphs beside one another */

static gboolean comparable(const HnValue *v)
{
    return v->weight != NULL && !v->weight->unloaded && !v->is_input && !v->is_output && v->users->len > 0;
}

/* The innermost graph that both see. */
static HnGraph *common_graph(HnGraph *a, HnGraph *b)
{
    for (; a != NULL; a = a->outer)
        for (HnGraph *g = b; g != NULL; g = g->outer)
            if (g == a)
                return g;
    return NULL;
}

/* v becomes what `first` is; *first moves outwards where v does not see it. */
static gboolean merge(HnRewrite *r, HnValue *v, HnValue **first)
{
    if (!hn_rw_visible(v->graph, *first)) {
        HnGraph *g = common_graph(v->graph, (*first)->graph);
        if (g == NULL || v->weight->bytes < SMALL || !hn_rw_go_graph(r, v->graph, v))
            return FALSE;
        HnValue *out = hn_rw_weight(r, g, (*first)->name, hn_tensor_ref((*first)->weight));
        hn_rw_replace(r, *first, out);
        *first = out;
    } else if (!hn_rw_go_graph(r, v->graph, v)) {
        return FALSE;
    }
    hn_rw_replace(r, v, *first);
    return TRUE;
}

static gboolean merge_below(HnRewrite *r, HnGraph *g, GHashTable *seen)
{
    gboolean any = FALSE;
    g_autoptr(GPtrArray) weights = g_ptr_array_sized_new(g->weights->len);
    for (guint i = 0; i < g->weights->len; i++)
        g_ptr_array_add(weights, g->weights->pdata[i]);
    for (guint i = 0; i < weights->len; i++) {
        HnValue *v = weights->pdata[i];
        if (!comparable(v))
            continue;
        gpointer key = GUINT_TO_POINTER(hn_tensor_hash(v->weight));
        GPtrArray *like = g_hash_table_lookup(seen, key);
        if (like == NULL) {
            like = g_ptr_array_new();
            g_hash_table_insert(seen, key, like);
        }
        gboolean done = FALSE;
        for (guint k = 0; k < like->len && !done; k++) {
            HnValue *first = like->pdata[k];
            if (!hn_tensor_equal(first->weight, v->weight))
                continue;
            done = merge(r, v, &first);
            any = any || done;
            like->pdata[k] = first;
        }
        if (!done && like->len < MOST_LIKE)
            g_ptr_array_add(like, v);
    }
    for (guint i = 0; i < g->inner->len; i++)
        any |= merge_below(r, g->inner->pdata[i], seen);
    return any;
}

static gboolean eliminate_duplicate(HnRewrite *r, HnGraph *g)
{
    if (g->outer != NULL)
        return FALSE; /* looked at from the outermost graph */
    g_autoptr(GHashTable) seen = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    return merge_below(r, g, seen);
}

const HnPass hn_pass_eliminate_duplicate = {
    .name = "eliminate-duplicate",
    .summary = "keep one of equal weights",
    .level = 1,
    .graph = eliminate_duplicate,
};
