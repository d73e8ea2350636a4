#include "prune/layers.h"

#include <math.h>
#include <string.h>

#include "op/clip.h"
#include "op/linear.h"

/* --- layers ------------------------------------------------------------------------------------------------------- */

/* The bias of l's node can be set: it has one, or may get one. */
static int bias_of(const HnLinearView *l, int64_t channels)
{
    const HnTensor *t = l->b != NULL && !l->b->is_input ? l->b->weight : NULL;
    if (l->b_in < 0 || l->beta != 1)
        return -1;
    const gboolean fits = t != NULL && t->dtype == HN_F32 && t->ndim == 1 && t->n == channels && l->b->users->len == 1;
    return l->b == NULL || fits ? l->b_in : -1;
}

/* Classes of the channels of x, where x is laid out as the layer reads it. */
static const int *classes_of(const HnPruneMap *map, const HnValue *v, int axis, int64_t channels)
{
    int along;
    int64_t n;
    const int *at = hn_channels_at(map->channels, v, &along, &n);
    const int rank = v->type != NULL ? v->type->rank : -1;
    if (at == NULL || n != channels || (axis < 0 ? axis + rank : axis) != along)
        return NULL;
    return at;
}

/* Every channel that the layer reads it also makes, and from no other: a depthwise convolution. */
static gboolean passes_on(const HnPruneMap *map, const HnPruneLayer *l, const HnLinearView *v)
{
    if (l->at == NULL || l->rows.groups == 1 || l->rows.k != l->rows.taps)
        return FALSE;
    const int *y = classes_of(map, hn_node_out(l->node, 0), v->y_axis, l->rows.groups * l->rows.outs);
    for (int64_t i = 0; y != NULL && i < l->rows.groups * l->rows.outs; i++)
        if (y[i] != l->at[i / l->rows.outs])
            return FALSE;
    return y != NULL;
}

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const HnValue *v = hn_node_in(of, i);
    const HnTensor *t = v != NULL && !v->is_input ? v->weight : NULL;
    if (t != NULL && t->n == 1 && t->dtype == HN_F32)
        *x = hn_tensor_get_f64(t, 0);
    return v == NULL || (t != NULL && t->n == 1 && t->dtype == HN_F32);
}

/* The only reader of y may do no more than limit it. */
static void find_bounds(HnPruneLayer *l, const HnValue *y)
{
    double lo = -INFINITY, hi = INFINITY;
    HnNode *n = y->users->len == 1 && !y->is_output ? y->users->pdata[0] : NULL;
    if (n != NULL && hn_op_bind(n, NULL) && hn_node_in(n, 0) == y &&
        !hn_op_bounds(n->op, n->params, read_bound, n, &lo, &hi)) {
        lo = -INFINITY;
        hi = INFINITY;
    }
    l->lo = (float)lo;
    l->hi = (float)hi;
}

static HnPruneLayer *layer_new(const HnPruneMap *map, const HnNode *n, int level)
{
    HnLinearView v;
    HnLinearRows rows;
    if (!hn_linear_rows_of(n, &rows) || !hn_op_linear(n, &v))
        return NULL;
    HnPruneLayer *l = g_new0(HnPruneLayer, 1);
    *l = (HnPruneLayer){
        .node = n, .rows = rows, .level = level, .x = v.x_in, .w = v.w_in, .bias = bias_of(&v, rows.groups * rows.outs)
    };
    l->free = v.alpha == 1 && v.w->users->len == 1 && !v.w->is_output && (l->bias >= 0 || v.b == NULL);
    if (v.x->weight == NULL)
        l->at = classes_of(map, v.x, rows.x_turned ? 0 : v.x_axis, rows.groups * rows.k / rows.taps);
    l->passes = passes_on(map, l, &v);
    find_bounds(l, hn_node_out(n, 0));
    return l;
}

static void find_layers(HnPruneMap *map)
{
    const GPtrArray *nodes = map->model->graph->nodes;
    g_autofree int *level = g_new0(int, (gsize)map->model->n_values + 1);
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        g_autoptr(GPtrArray) reads = hn_node_reads(n);
        int deepest = 0;
        for (guint k = 0; k < reads->len; k++)
            deepest = MAX(deepest, level[((const HnValue *)reads->pdata[k])->id]);
        HnPruneLayer *l = layer_new(map, n, deepest);
        for (guint k = 0; k < n->out->len; k++)
            if (n->out->pdata[k] != NULL)
                level[((const HnValue *)n->out->pdata[k])->id] = deepest + (l != NULL);
        if (l != NULL)
            g_ptr_array_add(map->layers, l);
        map->levels = MAX(map->levels, deepest + 1);
    }
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static void class_free(gpointer data)
{
    HnPruneClass *c = data;
    g_array_unref(c->layers);
    g_array_unref(c->others);
    g_free(c->name);
    g_free(c);
}

static HnPruneClass *class_new(HnPruneMap *map, const HnChannelGroup *g)
{
    HnPruneClass *c = g_new0(HnPruneClass, 1);
    *c = (HnPruneClass){ .group = g,
                         .name = g_strdup(g_array_index(g->spans, HnChannelSpan, 0).v->name),
                         .n = (int)g->classes->len,
                         .level = G_MAXINT,
                         .layers = g_array_new(FALSE, FALSE, sizeof(int)),
                         .others = g_array_new(FALSE, FALSE, sizeof(int)) };
    for (int i = 0; i < c->n; i++) {
        const int k = g_array_index(g->classes, int, i);
        map->class_of[k] = (int)map->classes->len;
        map->place_of[k] = i;
    }
    return c;
}

static void find_classes(HnPruneMap *map)
{
    map->groups = hn_channels_groups(map->channels);
    for (guint i = 0; i < map->groups->len; i++) {
        HnChannelGroup *g = map->groups->pdata[i];
        if (g->locked != NULL)
            g_ptr_array_add(map->locked, g);
        else if (g->classes->len > 1)
            g_ptr_array_add(map->classes, class_new(map, g));
    }
}

/* Notes `reader` with each class among at[0..n), once. */
static void note_readers(HnPruneMap *map, const int *at, int64_t n, int reader, int level)
{
    for (int64_t i = 0; i < n; i++) {
        const int k = map->class_of[at[i]];
        if (k < 0)
            continue;
        HnPruneClass *c = map->classes->pdata[k];
        GArray *readers = level >= 0 ? c->layers : c->others;
        if (readers->len > 0 && g_array_index(readers, int, readers->len - 1) == reader)
            continue;
        g_array_append_val(readers, reader);
        if (level >= 0)
            c->level = MIN(c->level, level);
    }
}

static gboolean is_layer(const HnPruneMap *map, const HnChannelMember *f)
{
    for (guint i = 0; i < map->layers->len; i++) {
        const HnPruneLayer *l = map->layers->pdata[i];
        if (l->at != NULL && !strcmp(hn_node_out(l->node, 0)->name, f->node))
            return TRUE;
    }
    return FALSE;
}

static void find_readers(HnPruneMap *map)
{
    const GPtrArray *members = hn_channels_members(map->channels);
    for (guint i = 0; i < map->layers->len; i++) {
        const HnPruneLayer *l = map->layers->pdata[i];
        if (l->at != NULL && !l->passes)
            note_readers(map, l->at, l->rows.groups * l->rows.k / l->rows.taps, (int)i, l->level);
    }
    for (guint i = 0; i < members->len; i++) {
        const HnChannelMember *f = members->pdata[i];
        if (f->in_axis >= 0 && !is_layer(map, f))
            note_readers(map, f->in, f->groups * f->in_n, (int)i, -1);
    }
}

HnPruneMap *hn_prune_map_new(HnModel *m, HnBudget *budget, GError **error)
{
    g_autoptr(HnPruneMap) map = g_new0(HnPruneMap, 1);
    map->model = m;
    map->layers = g_ptr_array_new_with_free_func(g_free);
    map->classes = g_ptr_array_new_with_free_func(class_free);
    map->locked = g_ptr_array_new();
    map->channels = hn_channels_new(m, HN_BOND_FATE, budget, error);
    if (map->channels == NULL || !hn_channels_lock_fixed(map->channels, error))
        return NULL;
    const int n = hn_channels_count(map->channels);
    map->class_of = g_new(int, (gsize)n + 1);
    map->place_of = g_new0(int, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        map->class_of[i] = -1;
    find_layers(map);
    find_classes(map);
    find_readers(map);
    return g_steal_pointer(&map);
}

void hn_prune_map_free(HnPruneMap *map)
{
    if (map == NULL)
        return;
    g_ptr_array_unref(map->layers);
    g_ptr_array_unref(map->classes);
    g_ptr_array_unref(map->locked);
    g_clear_pointer(&map->groups, g_ptr_array_unref);
    hn_channels_free(map->channels);
    g_free(map->class_of);
    g_free(map->place_of);
    g_free(map);
}

void hn_prune_inputs(const HnPruneMap *map, const HnPruneLayer *l, int c, int place, int64_t group, GArray *at)
{
    const int64_t channels = l->rows.k / l->rows.taps;
    for (int64_t i = 0; i < channels; i++) {
        const int k = l->at[group * channels + i];
        if (map->class_of[k] != c || map->place_of[k] != place)
            continue;
        for (int64_t t = i * l->rows.taps; t < (i + 1) * l->rows.taps; t++)
            g_array_append_val(at, t);
    }
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

double *hn_prune_weights(const HnPruneLayer *l)
{
    const HnValue *b = l->bias >= 0 ? hn_node_in(l->node, l->bias) : NULL;
    return hn_prune_weights_in(l, l->rows.w, b != NULL ? b->weight : NULL);
}

double *hn_prune_weights_in(const HnPruneLayer *l, const HnTensor *weight, const HnTensor *bias)
{
    const HnLinearRows *p = &l->rows;
    const int64_t k = p->k + (l->bias >= 0);
    const float *from = weight->data;
    double *w = g_new0(double, (gsize)(p->groups * k * p->outs));
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t o = 0; o < p->outs; o++) {
            double *to = w + g * k * p->outs + o;
            const int64_t row = g * p->outs + o;
            for (int64_t i = 0; i < p->k; i++)
                to[i * p->outs] = (double)from[row * p->row + i * p->col];
            if (bias != NULL)
                to[p->k * p->outs] = hn_tensor_get_f64(bias, row);
        }
    return w;
}

gboolean hn_prune_tensors(const HnPruneLayer *l, const double *w, HnBudget *budget, HnTensor **weight, HnTensor **bias,
                          GError **error)
{
    const HnLinearRows *p = &l->rows;
    const int64_t k = p->k + (l->bias >= 0), all = p->groups * p->outs;
    *bias = NULL;
    if ((*weight = hn_tensor_copy(p->w, budget, error)) == NULL ||
        (l->bias >= 0 && (*bias = hn_tensor_new(HN_F32, 1, &all, budget, error)) == NULL))
        return FALSE;
    float *to = (*weight)->data;
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t o = 0; o < p->outs; o++) {
            const double *from = w + g * k * p->outs + o;
            const int64_t row = g * p->outs + o;
            for (int64_t i = 0; i < p->k; i++)
                to[row * p->row + i * p->col] = (float)from[i * p->outs];
            if (l->bias >= 0)
                ((float *)(*bias)->data)[row] = (float)from[p->k * p->outs];
        }
    return TRUE;
}
