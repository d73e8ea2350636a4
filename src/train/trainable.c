#include "train/trainable.h"

#include <math.h>
#include <string.h>

#include "base/regex.h"
#include "op/linear.h"
#include "train/quantized.h"

#define MASK 1e4 /* a magnitude that masks have and weights do not */

typedef struct {
    const HnModel *m;
    guint8 *of_data;   /* by HnValue.id: computed of the model's inputs, or one of them */
    guint8 *reached;   /* by HnValue.id: a weight whose elements reach what is trained */
    GPtrArray *to_see; /* HnValue * that reach it, whose makers are still to be looked at */
    const HnQuantized *quantized;
} Search;

/* A node that only holds a tensor in its one attribute; NULL: v is something else. */
static HnAttr *constant_of(const HnValue *v)
{
    const HnNode *n = v->producer;
    if (n == NULL || n->in->len > 0 || n->attrs->len != 1)
        return NULL;
    HnAttr *a = n->attrs->pdata[0];
    return a->kind == HN_ATTR_TENSOR && strcmp(a->name, "value") == 0 ? a : NULL;
}

HnTensor *hn_trainable_elements(const HnValue *v)
{
    const HnAttr *a = v->weight == NULL ? constant_of(v) : NULL;
    return a != NULL ? a->t : v->weight;
}

void hn_trainable_set(HnValue *v, HnTensor *t)
{
    HnAttr *a = v->weight == NULL ? constant_of(v) : NULL;
    HnTensor *old = a != NULL ? a->t : v->weight;
    t = hn_tensor_ref(t);
    g_free(t->name);
    t->name = g_strdup(old->name);
    if (a == NULL) {
        hn_graph_add_weight(v->graph, v, t);
        hn_tensor_unref(t);
        return;
    }
    HnAttr *b = hn_attr_new("value", HN_ATTR_TENSOR);
    b->has_kind = TRUE;
    b->t = t;
    hn_node_set_attr(v->producer, b);
}

/* --- forward: what is computed of the inputs ---------------------------------------------------------------------- */

/* What n makes depends on one that does; CastLike only asks its second input for a type. */
static gboolean reads_data(const Search *s, const HnNode *n)
{
    if (n->op != NULL && (n->op->flags & HN_OP_SHAPE_ONLY) != 0)
        return FALSE;
    g_autoptr(GPtrArray) reads = hn_node_reads(n);
    const guint end = n->op != NULL && (n->op->flags & HN_OP_CONVERT) != 0 ? MIN(reads->len, 1) : reads->len;
    for (guint k = 0; k < end; k++)
        if (reads->pdata[k] != NULL && s->of_data[((HnValue *)reads->pdata[k])->id] != 0)
            return TRUE;
    return FALSE;
}

static void find_data(Search *s)
{
    const HnGraph *g = s->m->graph;
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        s->of_data[v->id] = !hn_value_is_weight(v);
    }
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        const gboolean of_data = reads_data(s, n);
        for (guint k = 0; k < n->out->len; k++)
            if (n->out->pdata[k] != NULL)
                s->of_data[((HnValue *)n->out->pdata[k])->id] = of_data;
    }
}

/* --- backward: from the inputs that records name ------------------------------------------------------------------ */

/* Elements come out as they went in, perhaps elsewhere, several times or as another type. */
gboolean hn_trainable_moves(const HnNode *n)
{
    return n->op != NULL && n->in->len > 0 &&
           ((n->op->flags & (HN_OP_UNPACK | HN_OP_STEPS | HN_OP_CONVERT)) != 0 || hn_op_bytes(n) == HN_QB_MOVES);
}

static void reach(Search *s, HnValue *v)
{
    if (v == NULL || s->of_data[v->id] || s->reached[v->id])
        return;
    s->reached[v->id] = 1;
    g_ptr_array_add(s->to_see, v);
}

/* What is behind casts and views of v is an input of the model. */
static gboolean is_input(const HnValue *v)
{
    while (v->producer != NULL && hn_trainable_moves(v->producer))
        v = hn_node_in(v->producer, 0);
    return v->is_input;
}

static gboolean is_computed(const Search *s, const HnValue *v)
{
    return v != NULL && s->of_data[v->id] && !is_input(v);
}

/* All that n reads is put beside one another, and something of it is computed: Concat. */
static gboolean joins_computed(const Search *s, const HnNode *n)
{
    gboolean any = FALSE;
    if (n->in->len < 2 || hn_op_bytes(n) != HN_QB_MOVES)
        return FALSE;
    for (int k = 0; k < (int)n->in->len; k++) {
        if (!hn_op_is_moved(n, k))
            return FALSE;
        any = any || is_computed(s, hn_node_in(n, k));
    }
    return any;
}

static gboolean is_named(const Search *s, const HnNode *n, int i)
{
    const HnOp *op = n->op;
    HnLinearView v;
    if (hn_op_is_linear(op) && (hn_op_linear(n, &v) || hn_op_linear_first(n, &v)))
        return i == v.w_in || i == v.b_in || (op->linear.either && i < 2);
    if (joins_computed(s, n))
        return TRUE;
    if (i > 7 || (op->trained >> i & 1) == 0)
        return FALSE;
    const gboolean pair = (op->flags & HN_OP_ELEMENTWISE) != 0 && n->in->len == 2 && (op->trained & 1) != 0;
    return !pair || is_computed(s, hn_node_in(n, 1 - i));
}

static void find_named(Search *s)
{
    const HnGraph *g = s->m->graph;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (int k = 0; n->op != NULL && k < (int)n->in->len; k++)
            if (is_named(s, n, k))
                reach(s, n->in->pdata[k]);
    }
    while (s->to_see->len > 0) {
        const HnValue *v = g_ptr_array_steal_index(s->to_see, s->to_see->len - 1);
        const HnNode *n = v->producer;
        reach(s, hn_quantized_integers(s->quantized, v));
        for (int k = 0; n != NULL && hn_trainable_moves(n) && k < (int)n->in->len; k++)
            if (k == 0 || (hn_op_bytes(n) == HN_QB_MOVES && hn_op_is_moved(n, k)))
                reach(s, n->in->pdata[k]);
    }
}

/* --- the weights -------------------------------------------------------------------------------------------------- */

static gboolean is_mask(const HnTensor *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!(fabs(hn_tensor_get_f64(t, i)) < MASK))
            return TRUE;
    return FALSE;
}

typedef struct {
    HnRegex *freeze, *train;
} Patterns;

static HnTrainableWhy why_by_rules(const Search *s, const HnValue *v, const HnTensor *t, gboolean scale)
{
    const gboolean floats = hn_dtype_in(t->dtype, HN_T_FLOATS);
    return scale                  ? HN_WHY_TRAINED
           : t->n <= 1 && floats  ? HN_WHY_ELEMENT
           : !s->reached[v->id]   ? HN_WHY_UNREACHED
           : floats && is_mask(t) ? HN_WHY_MASK
                                  : HN_WHY_TRAINED;
}

static gboolean find_why(const Search *s, const Patterns *p, const HnValue *v, gboolean scale, HnTrainableWhy *why,
                         GError **error)
{
    const HnTensor *t = hn_trainable_elements(v);
    gboolean named = TRUE, frozen = FALSE;
    *why = HN_WHY_TYPE;
    if (!hn_dtype_in(t->dtype, HN_T_FLOATS) && !hn_quantized_holds(s->quantized, v))
        return TRUE;
    if ((p->train != NULL && !hn_regex_find(p->train, v->name, &named, error)) ||
        (p->freeze != NULL && !hn_regex_find(p->freeze, v->name, &frozen, error)))
        return FALSE;
    *why = p->train == NULL ? why_by_rules(s, v, t, scale) : named ? HN_WHY_TRAINED : HN_WHY_UNNAMED;
    if (frozen && *why == HN_WHY_TRAINED)
        *why = HN_WHY_FROZEN;
    return TRUE;
}

static gboolean list_weight(const Search *s, const Patterns *p, HnValue *v, GArray *list, GError **error)
{
    HnTrainableWeight w = { .v = v };
    const HnTensor *t = hn_trainable_elements(v);
    if (t == NULL || t->unloaded)
        return TRUE;
    w.scale = hn_quantized_is_scale(s->quantized, v);
    if (!find_why(s, p, v, w.scale, &w.why, error))
        return FALSE;
    g_array_append_val(list, w);
    return TRUE;
}

static gboolean list_weights(const Search *s, const Patterns *p, GArray *list, GError **error)
{
    const HnGraph *g = s->m->graph;
    for (guint i = 0; i < g->weights->len; i++)
        if (!list_weight(s, p, g->weights->pdata[i], list, error))
            return FALSE;
    for (guint i = 0; i < g->nodes->len; i++) {
        HnValue *v = hn_node_out(g->nodes->pdata[i], 0);
        if (v != NULL && constant_of(v) != NULL && !list_weight(s, p, v, list, error))
            return FALSE;
    }
    return TRUE;
}

/* Scales that cannot be learned with the integers that are trained stay. */
static void settle_scales(const Search *s, GArray *list)
{
    g_autoptr(GHashTable) trained = g_hash_table_new(NULL, NULL), scales = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < list->len; i++) {
        const HnTrainableWeight *w = &g_array_index(list, HnTrainableWeight, i);
        if (w->why == HN_WHY_TRAINED)
            g_hash_table_add(w->scale ? scales : trained, w->v);
    }
    g_autoptr(GHashTable) learns = hn_quantized_learns(s->quantized, trained, scales);
    for (guint i = 0; i < list->len; i++) {
        HnTrainableWeight *w = &g_array_index(list, HnTrainableWeight, i);
        if (w->why == HN_WHY_TRAINED && w->scale && !g_hash_table_contains(learns, w->v))
            w->why = HN_WHY_SCALE;
    }
}

GArray *hn_trainable_list(const HnModel *m, const HnTrainableOptions *o, GError **error)
{
    g_autoptr(HnRegex) freeze = o->freeze != NULL ? hn_regex_new(o->freeze, error) : NULL;
    g_autoptr(HnRegex) train =
        o->train != NULL && (o->freeze == NULL || freeze != NULL) ? hn_regex_new(o->train, error) : NULL;
    if ((o->freeze != NULL && freeze == NULL) || (o->train != NULL && train == NULL))
        return NULL;
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(HnTrainableWeight));
    g_autoptr(GPtrArray) to_see = g_ptr_array_new();
    g_autofree guint8 *of_data = g_new0(guint8, (gsize)m->n_values + 1),
                      *reached = g_new0(guint8, (gsize)m->n_values + 1);
    g_autoptr(HnQuantized) quantized = hn_quantized_new(m->graph);
    Search s = { m, of_data, reached, to_see, quantized };
    const Patterns p = { freeze, train };
    find_data(&s);
    find_named(&s);
    if (!list_weights(&s, &p, list, error))
        return NULL;
    settle_scales(&s, list);
    return g_steal_pointer(&list);
}

GPtrArray *hn_trainable_find(const HnModel *m, const HnTrainableOptions *o, GError **error)
{
    g_autoptr(GArray) all = hn_trainable_list(m, o, error);
    if (all == NULL)
        return NULL;
    GPtrArray *trained = g_ptr_array_new();
    for (guint i = 0; i < all->len; i++)
        if (g_array_index(all, HnTrainableWeight, i).why == HN_WHY_TRAINED)
            g_ptr_array_add(trained, g_array_index(all, HnTrainableWeight, i).v);
    return trained;
}
