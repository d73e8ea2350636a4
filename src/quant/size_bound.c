#include "quant/size_bound.h"

#define LEAST_NODE 24 /* bytes of a node with two inputs and an operator of that name: DequantizeLinear */

typedef struct {
    const HnQuantOptions *o;
    GHashTable *weights; /* HnTensor * that were looked at: several nodes may read one */
    GHashTable *shapes;  /* char * of them */
    double saved;
} Bound;

/* At least so many of w's bytes are there in that form: its integers, which it may have in common with another weight
 * of the same shape that is a multiple of it, and a scale for each channel or block. */
static double bytes_in(const Bound *b, const HnNode *n, const HnTensor *w, HnQuantForm form, gboolean first)
{
    const int axis = hn_quant_scale_axis(n, w->ndim);
    const gboolean per_channel = (form == HN_FORM_INT8 || form == HN_FORM_W8) && !b->o->per_tensor && axis >= 0;
    const double integers = first ? (double)w->n * (form == HN_FORM_W4 ? 0.5 : 1) : 0;
    const double scales = form == HN_FORM_W4 ? (double)w->n / MAX(b->o->block, 1) : 1;
    return integers + 4 * (per_channel ? (double)w->dims[axis] : scales) + LEAST_NODE;
}

static void save(Bound *b, const HnNode *n, const HnValue *v, HnQuantForm form)
{
    const HnTensor *w = v != NULL && v->weight != NULL && v->weight->dtype == HN_F32 ? v->weight : NULL;
    if (w == NULL || w->ndim < 2 || !g_hash_table_add(b->weights, (gpointer)w))
        return;
    const gboolean first = g_hash_table_add(b->shapes, hn_tensor_describe(w));
    b->saved += MAX((double)w->bytes - bytes_in(b, n, w, form, first), 0);
}

guint64 hn_quant_least_bytes(const HnQuantPlan *base, HnModel *m, guint64 bytes)
{
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    g_autoptr(GHashTable) weights = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) shapes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Bound b = { &base->o, weights, shapes, 0 };
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        const HnQuantForm form = hn_quant_plan_form(base, n);
        if (form == HN_FORM_F32)
            continue;
        save(&b, n, hn_quant_weight(n), form);
        for (guint k = 0; k < n->in->len; k++) /* a recurrent layer has two */
            save(&b, n, n->in->pdata[k], form);
    }
    return b.saved < (double)bytes ? bytes - (guint64)b.saved : 0;
}
