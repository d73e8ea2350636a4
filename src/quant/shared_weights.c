#include "quant/shared_weights.h"

#include <math.h>

#include "pass/lib/weights.h"

#define LEAST 1024       /* elements: what is shorter is not worth looking for */
#define MOST_ALIKE 32    /* weights of one shape that are compared */
#define NOT_LESS 0.9999F /* of a scale that a bias may have asked for */

typedef struct {
    HnTensor *w; /* f32, aligned */
    HnQuantForm form;
    int axis;
    HnPacked packed;
    HnValue *q, *zero;
} Entry;

struct HnSharedWeights {
    GPtrArray *entries; /* Entry * */
};

static void entry_free(gpointer data)
{
    Entry *e = data;
    hn_tensor_unref(e->w);
    hn_packed_clear(&e->packed);
    g_free(e);
}

HnSharedWeights *hn_shared_weights_new(void)
{
    HnSharedWeights *s = g_new(HnSharedWeights, 1);
    s->entries = g_ptr_array_new_with_free_func(entry_free);
    return s;
}

void hn_shared_weights_free(HnSharedWeights *s)
{
    if (s == NULL)
        return;
    g_ptr_array_unref(s->entries);
    g_free(s);
}

void hn_shared_weights_add(HnSharedWeights *s, const HnValue *v, HnQuantForm form, int axis, const HnPacked *k,
                           HnValue *q, HnValue *zero)
{
    if (v->weight->n < LEAST)
        return;
    Entry *e = g_new(Entry, 1);
    *e = (Entry){ hn_tensor_ref(v->weight), form, axis, *k, q, zero };
    hn_tensor_ref(k->q);
    hn_tensor_ref(k->scale);
    hn_tensor_ref(k->zero);
    g_ptr_array_add(s->entries, e);
}

/* --- factors ------------------------------------------------------------------------------------------------------ */

/* One for each channel, to be g_free'd; NULL: w is not e's weight times such. A single scale takes a single one. */
static float *factors_of(const Entry *e, const HnTensor *w)
{
    return hn_weights_factors(e->w, w, e->packed.scale->n == 1 ? -1 : e->axis);
}

/* e's scales times the factors. NULL with no error: a bias asks for larger ones, which k has. */
static HnTensor *scales_of(const Entry *e, const float *f, const HnPacked *k, HnBudget *budget, GError **error)
{
    const HnTensor *from = e->packed.scale;
    g_autoptr(HnTensor) s = hn_tensor_new_uninit(HN_F32, from->ndim, from->dims, budget, error);
    if (s == NULL)
        return NULL;
    const int axis = from->ndim == 1 ? 0 : e->axis; /* along which the factors lie in the scales */
    const HnWeightsView v = from->n == 1 ? (HnWeightsView){ 1, 1, 1, 1 } : hn_weights_along(from, axis);
    for (int64_t i = 0; i < s->n; i++) {
        const float x = ((const float *)from->data)[i] * f[i / v.inner % v.b];
        const gboolean less = x < ((const float *)k->scale->data)[i] * NOT_LESS;
        if (!isfinite(x) || (less && e->form == HN_FORM_INT8))
            return NULL;
        ((float *)s->data)[i] = x;
    }
    return g_steal_pointer(&s);
}

static gboolean is_seen(const HnGraph *from, const HnValue *v)
{
    for (; from != NULL; from = from->outer)
        if (from == v->graph)
            return TRUE;
    return FALSE;
}

static gboolean may_share(const Entry *e, const HnValue *v, HnQuantForm form, int axis, const HnPacked *k)
{
    if (e->form != form || e->axis != axis || e->packed.axis != k->axis || e->packed.block != k->block)
        return FALSE;
    return hn_tensor_same_dims(e->w, v->weight) && hn_tensor_same_dims(e->packed.scale, k->scale) &&
           is_seen(v->graph, e->q);
}

gboolean hn_shared_weights_find(HnSharedWeights *s, const HnValue *v, HnQuantForm form, int axis, HnPacked *k,
                                HnValue **q, HnValue **zero, HnBudget *budget, GError **error)
{
    guint alike = 0;
    for (guint i = 0; i < s->entries->len && alike < MOST_ALIKE; i++) {
        const Entry *e = s->entries->pdata[i];
        if (!may_share(e, v, form, axis, k))
            continue;
        alike++;
        g_autofree float *f = factors_of(e, v->weight);
        GError *cause = NULL;
        HnTensor *scale = f != NULL ? scales_of(e, f, k, budget, &cause) : NULL;
        if (cause != NULL)
            g_propagate_error(error, cause);
        if (scale == NULL && cause == NULL)
            continue;
        if (scale == NULL)
            return FALSE;
        const int64_t reduced = k->reduced;
        hn_packed_clear(k);
        *k = (HnPacked){ hn_tensor_ref(e->packed.q), scale, hn_tensor_ref(e->packed.zero), k->axis, k->block, reduced };
        *q = e->q;
        *zero = e->zero;
        return TRUE;
    }
    return FALSE;
}

/* --- equal ones --------------------------------------------------------------------------------------------------- */

static guint hash_of(gconstpointer tensor)
{
    return hn_tensor_hash(tensor);
}

static gboolean are_equal(gconstpointer a, gconstpointer b)
{
    return hn_tensor_equal(a, b);
}

static gboolean may_merge(const HnValue *v)
{
    return v->weight != NULL && !v->weight->unloaded && !v->is_input && !v->is_output && v->users->len > 0;
}

/* seen: HnTensor * -> HnValue *, of g and the graphs around it. */
static void merge_below(HnGraph *g, GHashTable *seen)
{
    g_autoptr(GPtrArray) weights = g_ptr_array_copy(g->weights, NULL, NULL), own = g_ptr_array_new();
    for (guint i = 0; i < weights->len; i++) {
        HnValue *v = weights->pdata[i];
        if (!may_merge(v))
            continue;
        HnValue *first = g_hash_table_lookup(seen, v->weight);
        if (first == NULL) {
            g_hash_table_insert(seen, v->weight, v);
            g_ptr_array_add(own, v->weight);
            continue;
        }
        hn_value_replace(v, first);
        hn_graph_drop_value(v);
    }
    for (guint i = 0; i < g->inner->len; i++)
        merge_below(g->inner->pdata[i], seen);
    for (guint i = 0; i < own->len; i++) /* graphs beside this one do not see them */
        g_hash_table_remove(seen, own->pdata[i]);
}

void hn_weights_merge(HnGraph *g)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(hash_of, are_equal);
    merge_below(g, seen);
}
