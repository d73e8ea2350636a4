#include "train/open_batch.h"

#include <string.h>

#include "pass/free_batch.h"
#include "train/train_data.h"

#define SYMBOL "hone_batch"

/* The first axis of each input that has one is a number: HnFreeDim; NULL: not of all, or there are none. */
static GArray *fixed_axes(const HnModel *m)
{
    g_autoptr(GPtrArray) inputs = hn_train_inputs(m);
    g_autoptr(GArray) dims = g_array_new(FALSE, FALSE, sizeof(HnFreeDim));
    for (guint i = 0; i < inputs->len; i++) {
        const HnValue *v = inputs->pdata[i];
        const HnFreeDim d = { v->name, 0 };
        if (!hn_type_is_tensor(v->type) || hn_type_rank(v->type) < 1)
            continue;
        if (!v->type->dims[0].known)
            return NULL;
        g_array_append_val(dims, d);
    }
    return dims->len > 0 ? g_steal_pointer(&dims) : NULL;
}

/* What learns is stored by name. */
static gboolean has_weights_of(const HnModel *freed, const HnModel *m)
{
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnValue *v = m->graph->weights->pdata[i], *w = g_hash_table_lookup(freed->graph->values, v->name);
        const HnTensor *t = v->weight, *same = w != NULL ? w->weight : NULL;
        if (t == NULL || !hn_dtype_in(t->dtype, HN_T_FLOATS))
            continue;
        if (same == NULL || same->ndim != t->ndim || memcmp(same->dims, t->dims, (gsize)t->ndim * sizeof *t->dims) != 0)
            return FALSE;
    }
    return TRUE;
}

/* As many samples as its file says. */
static gboolean takes(const HnModel *m, HnType *const *in)
{
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnType *t = ((const HnValue *)m->graph->inputs->pdata[i])->type;
        if (hn_type_rank(t) > 0 && hn_type_rank(in[i]) > 0 && t->dims[0].known &&
            !hn_dim_equal(t->dims[0], in[i]->dims[0]))
            return FALSE;
    }
    return TRUE;
}

HnModel *hn_train_open_batch(HnModel *m, HnType *const *in, HnBudget *budget)
{
    static const HnFreeDim none = { NULL, 0 };
    HnFreedBatch f = { 0 };
    g_autoptr(GArray) dims = fixed_axes(m);
    if (dims != NULL && (in == NULL || !takes(m, in)) &&
        hn_free_batch(m, (const HnFreeDim *)dims->data, dims->len, SYMBOL, &none, budget, &f, NULL) && f.n_apart == 0 &&
        has_weights_of(f.model, m)) {
        hn_model_free(m);
        m = g_steal_pointer(&f.model);
    }
    hn_freed_batch_clear(&f);
    return m;
}
