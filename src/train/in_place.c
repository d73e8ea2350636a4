#include "train/in_place.h"

#include <math.h>
#include <string.h>

#include "train/trainable.h"

#define LEAST 0.0625f /* of where a scale began */

typedef struct {
    HnValue *master;
    HnGrid grid;
} Master;

typedef struct {
    char *name;
    HnGrid grid;
} Product;

struct HnInPlace {
    HnGraph *g;
    HnQuantized *quantized;
    GHashTable *trained; /* HnValue *, keys: as the caller says */
    GHashTable *masters; /* HnValue * of integers -> Master * */
    GHashTable *least;   /* HnValue * of a scale that is learned -> HnTensor * */
    GHashTable *used;    /* the same -> HnValue *, what nodes read instead */
    GPtrArray *products; /* Product * */
    gboolean any;
};

static void grid_clear(HnGrid *g)
{
    g_clear_pointer(&g->zero, hn_tensor_unref);
    g_clear_pointer(&g->scale.start, hn_tensor_unref);
    g_clear_pointer(&g->by.start, hn_tensor_unref);
    g_free(g->scale.name);
    g_free(g->by.name);
    g_clear_pointer(&g->like, hn_tensor_unref);
}

static void master_free(gpointer data)
{
    grid_clear(&((Master *)data)->grid);
    g_free(data);
}

static void product_free(gpointer data)
{
    grid_clear(&((Product *)data)->grid);
    g_free(((Product *)data)->name);
    g_free(data);
}

void hn_in_place_free(HnInPlace *p)
{
    if (p == NULL)
        return;
    hn_quantized_free(p->quantized);
    g_hash_table_unref(p->trained);
    g_hash_table_unref(p->masters);
    g_hash_table_unref(p->least);
    g_hash_table_unref(p->used);
    g_ptr_array_unref(p->products);
    g_free(p);
}

/* --- scales ------------------------------------------------------------------------------------------------------- */

static HnTensor *ref_of(const HnValue *v)
{
    return v != NULL ? hn_tensor_ref(hn_trainable_elements(v)) : NULL;
}

static HnGridScale grid_scale(const HnValue *v)
{
    return (HnGridScale){ g_strdup(v->name), ref_of(v) };
}

static gboolean check_scale(const HnNode *n, const HnValue *v, GError **error)
{
    const HnTensor *t = hn_trainable_elements(v);
    for (int64_t i = 0; i < t->n; i++) {
        const double s = hn_tensor_get_f64(t, i);
        if (s > 0 && isfinite(s))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "node '%s': scale '%s' holds %g: nothing is learned through that",
                    hn_node_label(n), v->name, s);
        return FALSE;
    }
    return TRUE;
}

static HnBuild in_front(const HnInPlace *p)
{
    return (HnBuild){ .graph = p->g, .before = p->g->nodes->pdata[0], .version = HN_OPSET_MAX };
}

static gboolean is_learned(const HnInPlace *p, const HnValue *v)
{
    return g_hash_table_contains(p->trained, v);
}

/* A scale that is learned is held above a part of where it began. */
static HnValue *used_scale(HnInPlace *p, HnValue *v)
{
    HnValue *used = g_hash_table_lookup(p->used, v);
    if (!is_learned(p, v) || used != NULL)
        return used != NULL ? used : v;
    const HnTensor *t = hn_trainable_elements(v);
    HnTensor *least = hn_tensor_new(HN_F32, t->ndim, t->dims, NULL, NULL);
    for (int64_t i = 0; i < t->n; i++)
        ((float *)least->data)[i] = (float)hn_tensor_get_f64(t, i) * LEAST;
    g_hash_table_insert(p->least, v, hn_tensor_ref(least));
    const HnBuild b = in_front(p);
    used = hn_build_op2(&b, "Max", v, hn_build_constant(&b, "least", least));
    g_hash_table_insert(p->used, v, used);
    return used;
}

/* Of a bias: the product, in the dims of its own. */
static HnValue *used_product(HnInPlace *p, const HnHeldIntegers *h)
{
    if (h->x == NULL || (!is_learned(p, h->x) && !is_learned(p, h->w)))
        return h->p.scale_of;
    HnValue *product = g_hash_table_lookup(p->used, h->p.scale_of);
    if (product != NULL)
        return product;
    HnValue *x = used_scale(p, h->x), *w = used_scale(p, h->w);
    const HnBuild b = { .graph = p->g, .before = h->node, .version = HN_OPSET_MAX };
    product = hn_build_reshape(&b, hn_build_op2(&b, "Mul", x, w), h->p.scale->dims, h->p.scale->ndim);
    Product *made = g_new0(Product, 1);
    made->name = g_strdup(h->p.scale_of->name);
    made->grid = (HnGrid){ .scale = grid_scale(h->x), .by = grid_scale(h->w), .like = ref_of(h->p.scale_of) };
    g_ptr_array_add(p->products, made);
    g_hash_table_insert(p->used, h->p.scale_of, product);
    return product;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* y takes the place of n's result, and its name. */
static void take_over(HnInPlace *p, HnNode *n, HnValue *y)
{
    HnValue *old = hn_node_out(n, 0);
    g_autofree char *name = g_strdup(n->name);
    hn_value_replace(old, y);
    hn_value_swap_names(old, y);
    g_free(y->producer->name);
    y->producer->name = g_steal_pointer(&name);
    hn_graph_remove_node(p->g, n);
    p->any = TRUE;
}

static HnValue *master_of(HnInPlace *p, const HnHeldIntegers *h, GError **error)
{
    Master *m = g_hash_table_lookup(p->masters, h->p.q);
    if (m != NULL)
        return m->master;
    HnTensor *x =
        hn_fake_numbers(&h->form, hn_trainable_elements(h->p.q), h->p.scale, h->p.zero, p->g->model->budget, error);
    if (x == NULL)
        return NULL;
    g_autofree char *stem = g_strconcat(h->p.q->name, "/f32", NULL);
    m = g_new0(Master, 1);
    m->master = hn_graph_new_value(p->g, stem);
    m->grid = (HnGrid){ .form = h->form, .zero = ref_of(h->p.zero_of) };
    m->grid.scale = grid_scale(h->x != NULL ? h->x : h->p.scale_of);
    if (h->x != NULL) {
        m->grid.by = grid_scale(h->w);
        m->grid.like = ref_of(h->p.scale_of);
    }
    hn_graph_add_weight(p->g, m->master, x);
    hn_tensor_unref(x);
    g_hash_table_insert(p->masters, h->p.q, m);
    return m->master;
}

static gboolean take_integers(HnInPlace *p, const HnHeldIntegers *h, GError **error)
{
    if (!g_hash_table_contains(p->trained, h->p.q))
        return TRUE;
    HnValue *master = check_scale(h->node, h->p.scale_of, error) ? master_of(p, h, error) : NULL;
    if (master == NULL)
        return FALSE;
    HnFakeForm form = h->form;
    form.stays = form.dtype == HN_I32 || !is_learned(p, h->p.scale_of);
    HnValue *scale = form.dtype == HN_I32 ? used_product(p, h) : used_scale(p, h->p.scale_of);
    const HnBuild b = { .graph = p->g, .before = h->node, .version = HN_OPSET_MAX };
    take_over(p, h->node, hn_build_fake_quantize(&b, &form, master, scale, h->p.zero));
    return TRUE;
}

static gboolean take_pair(HnInPlace *p, const HnQuantPair *q, GError **error)
{
    if (!check_scale(q->first, q->p.scale_of, error))
        return FALSE;
    HnFakeForm form = q->form;
    form.stays = !is_learned(p, q->p.scale_of);
    HnValue *scale = used_scale(p, q->p.scale_of);
    const HnBuild b = { .graph = p->g, .before = q->second, .version = HN_OPSET_MAX };
    take_over(p, q->second, hn_build_fake_quantize(&b, &form, q->p.real, scale, q->p.zero));
    return TRUE;
}

/* Nodes that made integers of pairs, where nobody else reads these. */
static void drop_firsts(HnInPlace *p)
{
    const GArray *pairs = hn_quantized_pairs(p->quantized);
    g_autoptr(GHashTable) gone = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < pairs->len; i++) {
        const HnQuantPair *q = &g_array_index(pairs, HnQuantPair, i);
        if (q->p.q->users->len == 0 && !q->p.q->is_output && g_hash_table_add(gone, q->first))
            hn_graph_remove_node(p->g, q->first);
    }
}

static gboolean take_all(HnInPlace *p, GError **error)
{
    const GArray *held = hn_quantized_held(p->quantized), *pairs = hn_quantized_pairs(p->quantized);
    for (guint i = 0; i < held->len; i++)
        if (!take_integers(p, &g_array_index(held, HnHeldIntegers, i), error))
            return FALSE;
    for (guint i = 0; i < pairs->len; i++)
        if (!take_pair(p, &g_array_index(pairs, HnQuantPair, i), error))
            return FALSE;
    drop_firsts(p);
    return TRUE;
}

HnInPlace *hn_in_place_new(HnGraph *g, const GArray *trained, GError **error)
{
    g_autoptr(HnInPlace) p = g_new0(HnInPlace, 1);
    p->g = g;
    p->quantized = hn_quantized_new(g);
    p->trained = g_hash_table_new(NULL, NULL);
    p->masters = g_hash_table_new_full(NULL, NULL, NULL, master_free);
    p->least = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_tensor_unref);
    p->used = g_hash_table_new(NULL, NULL);
    p->products = g_ptr_array_new_with_free_func(product_free);
    for (guint i = 0; i < trained->len; i++)
        if (g_array_index(trained, HnTrainableWeight, i).why == HN_WHY_TRAINED)
            g_hash_table_add(p->trained, g_array_index(trained, HnTrainableWeight, i).v);
    return take_all(p, error) ? g_steal_pointer(&p) : NULL;
}

gboolean hn_in_place_any(const HnInPlace *p)
{
    return p->any;
}

HnValue *hn_in_place_master(const HnInPlace *p, HnValue *v)
{
    const Master *m = g_hash_table_lookup(p->masters, v);
    return m != NULL ? m->master : v;
}

const HnGrid *hn_in_place_grid(const HnInPlace *p, const HnValue *master)
{
    GHashTableIter iter;
    gpointer m;
    g_hash_table_iter_init(&iter, p->masters);
    while (g_hash_table_iter_next(&iter, NULL, &m))
        if (((Master *)m)->master == master)
            return &((Master *)m)->grid;
    return NULL;
}

HnTensor *hn_in_place_least(const HnInPlace *p, const HnValue *v)
{
    return g_hash_table_lookup(p->least, v);
}

guint hn_in_place_n_products(const HnInPlace *p)
{
    return p->products->len;
}

const HnGrid *hn_in_place_product(const HnInPlace *p, guint i, const char **name)
{
    const Product *made = p->products->pdata[i];
    *name = made->name;
    return &made->grid;
}

/* --- writing back ------------------------------------------------------------------------------------------------- */

HnTensor *hn_grid_scale(const HnGrid *g, const HnTensor *scale, const HnTensor *by, HnBudget *budget, GError **error)
{
    if (g->like == NULL)
        return hn_tensor_copy(scale != NULL ? scale : g->scale.start, budget, error);
    HnTensor *t = hn_tensor_copy(g->like, budget, error);
    const HnTensor *x = scale != NULL ? scale : g->scale.start, *w = by != NULL ? by : g->by.start;
    for (int64_t i = 0; t != NULL && (scale != NULL || by != NULL) && i < t->n; i++)
        ((float *)t->data)[i] = (float)hn_tensor_get_f64(x, 0) * (float)hn_tensor_get_f64(w, w->n == 1 ? 0 : i);
    return t;
}

HnTensor *hn_scale_used(const HnTensor *t, const HnTensor *least, HnBudget *budget, GError **error)
{
    HnTensor *used = hn_tensor_copy(t, budget, error);
    for (int64_t i = 0; used != NULL && i < t->n; i++)
        ((float *)used->data)[i] = fmaxf(((const float *)t->data)[i], ((const float *)least->data)[i]);
    return used;
}
