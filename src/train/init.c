#include "train/init.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "op/linear.h"
#include "run/engine.h"

#define SMALL 0.02 /* standard deviation of tables */
#define SLOPE 0.25

typedef struct {
    HnModel *m;
    GHashTable *trained; /* HnValue *, as long as it has no new elements */
    HnRng all;
    uint64_t n; /* given so far */
    GError *error;
} Init;

/* The weight behind what only moves elements. */
static HnValue *source(HnValue *v)
{
    while (v != NULL && hn_trainable_elements(v) == NULL && v->producer != NULL && hn_trainable_moves(v->producer))
        v = hn_node_in(v->producer, 0);
    return v;
}

/* New elements for what v, which may be NULL, holds: mean + spread * a normal number, or one of [-1,1). */
static void give(Init *k, HnValue *v, double mean, double spread, gboolean uniform)
{
    HnValue *w = source(v);
    if (k->error != NULL || w == NULL || !g_hash_table_remove(k->trained, w))
        return;
    HnRng rng = hn_rng_split(&k->all, k->n++);
    g_autoptr(HnTensor) t = hn_tensor_copy(hn_trainable_elements(w), k->m->budget, &k->error);
    for (int64_t i = 0; t != NULL && i < t->n; i++) {
        const double r = spread == 0 ? 0 : uniform ? hn_rng_range(&rng, -1, 1) : hn_rng_normal(&rng);
        hn_tensor_set_f64(t, i, mean + spread * r);
    }
    if (t != NULL)
        hn_trainable_set(w, t);
}

/* Products that are summed for one result; 0: not known. */
static double fan_in(const HnLinearView *v)
{
    int64_t dims[HN_MAX_RANK];
    if (v->w->weight != NULL)
        memcpy(dims, v->w->weight->dims, (gsize)v->w->weight->ndim * sizeof *dims);
    else if (!hn_type_is_fixed(v->w->type, dims))
        return 0;
    const int rank = v->w->weight != NULL ? v->w->weight->ndim : v->w->type->rank;
    g_autoptr(HnTensor) shape = hn_tensor_new_borrowed(HN_F32, rank, dims, NULL);
    const int64_t channels = hn_linear_channels(v, shape);
    return channels > 0 ? (double)shape->n / (double)channels : 0;
}

static gboolean init_linear(Init *k, const HnNode *n)
{
    HnLinearView v;
    HnValue *w;
    if (!hn_op_is_linear(n->op))
        return FALSE;
    if (!hn_op_linear(n, &v) || (w = source(v.w)) == NULL || !g_hash_table_contains(k->trained, w))
        if (!hn_op_linear_first(n, &v))
            return TRUE;
    const double in = fan_in(&v);
    give(k, v.w, 0, in > 0 ? sqrt(2 / in) : SMALL, FALSE);
    give(k, v.b, 0, 0, FALSE);
    return TRUE;
}

/* Input 2 is [directions, gates * hidden, hidden]. */
static void init_recurrent(Init *k, const HnNode *n)
{
    const HnValue *r = source(hn_node_in(n, 2));
    const HnTensor *t = r != NULL ? hn_trainable_elements(r) : NULL;
    const double spread = t != NULL && t->ndim == 3 && t->dims[2] > 0 ? 1 / sqrt((double)t->dims[2]) : SMALL;
    for (int i = 1; i < (int)n->in->len; i++)
        if (i < 8 && (n->op->trained >> i & 1) != 0)
            give(k, hn_node_in(n, i), 0, spread, TRUE);
}

static gboolean several_axes(const HnValue *v)
{
    const HnValue *w = source((HnValue *)v);
    const HnTensor *t = w != NULL ? hn_trainable_elements(w) : NULL;
    int axes = 0;
    for (int a = 0; t != NULL && a < t->ndim; a++)
        axes += t->dims[a] > 1;
    return axes > 1;
}

static void init_elementwise(Init *k, const HnNode *n)
{
    if (n->op->trained == 1 << 1) { /* a slope */
        give(k, hn_node_in(n, 1), SLOPE, 0, FALSE);
        return;
    }
    const gboolean addend = n->op->channels.unit == HN_UNIT_SUM;
    for (int i = 0; i < (int)n->in->len; i++) {
        HnValue *v = hn_node_in(n, i);
        give(k, v, addend ? 0 : 1, addend && several_axes(v) ? SMALL : 0, FALSE);
    }
}

/* Scale and shift; then the running mean and variance, which no optimizer changes. */
static void init_norm(Init *k, const HnNode *n)
{
    for (int i = 3; n->op->train != NULL && i < 5; i++)
        if (hn_node_in(n, i) != NULL && hn_node_in(n, i)->weight != NULL)
            g_hash_table_add(k->trained, hn_node_in(n, i));
    for (int i = 1; i < 5; i++)
        give(k, hn_node_in(n, i), i % 3 == 1, 0, FALSE);
}

static void init_node(HnNode *n, gpointer data)
{
    Init *k = data;
    const HnOp *op = n->op;
    if (op == NULL || k->error != NULL || init_linear(k, n) || op->trained == 0)
        return;
    if (op->channels.kind == HN_CH_RECURRENT)
        init_recurrent(k, n);
    else if ((op->flags & HN_OP_ELEMENTWISE) != 0)
        init_elementwise(k, n);
    else if (hn_op_is_lookup(op))
        give(k, hn_node_in(n, 0), 0, SMALL, FALSE);
    else if ((op->trained & 1) == 0)
        init_norm(k, n);
}

/* What no record has a rule for. */
static void init_rest(Init *k)
{
    g_autoptr(GList) rest = g_hash_table_get_keys(k->trained);
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (guint i = 0; i < k->m->graph->weights->len; i++)
        if (g_list_find(rest, k->m->graph->weights->pdata[i]) != NULL)
            g_ptr_array_add(sorted, k->m->graph->weights->pdata[i]);
    for (guint i = 0; i < sorted->len; i++) {
        const HnTensor *t = hn_trainable_elements(sorted->pdata[i]);
        const double in = t->ndim > 0 ? (double)t->n / (double)MAX(t->dims[0], 1) : 1;
        give(k, sorted->pdata[i], 0, 1 / sqrt(MAX(in, 1)), FALSE);
    }
}

/* What is quantized has no new weights: its scales fit those that it has. */
static gboolean all_floats(const HnModel *m, const HnTrainableOptions *o, GError **error)
{
    g_autoptr(GArray) all = hn_trainable_list(m, o, error);
    for (guint i = 0; all != NULL && i < all->len; i++) {
        const HnTrainableWeight *w = &g_array_index(all, HnTrainableWeight, i);
        if (w->why != HN_WHY_TRAINED || (!w->scale && hn_dtype_in(hn_trainable_elements(w->v)->dtype, HN_T_FLOATS)))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "'%s' belongs to a quantized weight or value: new weights are for a model that is not quantized",
                    w->v->name);
        return FALSE;
    }
    return all != NULL;
}

gboolean hn_init_weights(HnModel *m, const HnTrainableOptions *o, uint64_t seed, GError **error)
{
    Init k = { .m = m, .all = hn_rng(seed) };
    if (!hn_model_prepare(m, error) || !hn_graph_infer(m->graph, FALSE, error))
        return FALSE;
    g_autoptr(GPtrArray) list = hn_trainable_find(m, o, error);
    if (list == NULL)
        return FALSE;
    if (!all_floats(m, o, error))
        return FALSE;
    k.trained = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < list->len; i++)
        g_hash_table_add(k.trained, list->pdata[i]);
    hn_graph_foreach_node(m->graph, init_node, &k);
    init_rest(&k);
    g_hash_table_unref(k.trained);
    if (k.error != NULL)
        g_propagate_error(error, k.error);
    return k.error == NULL;
}
