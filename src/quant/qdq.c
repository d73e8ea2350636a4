#include "quant/qdq.h"

#include <math.h>
#include <string.h>

#include "quant/pack.h"
#include "quant/range.h"

typedef struct {
    const HnQuantPlan *p;
    HnModel *m;
    HnBudget *budget;
    HnQuantLog *log;
    GHashTable *scales; /* HnValue * dequantized activation or weight -> HnTensor * scale */
    GHashTable *spans;  /* HnValue * -> HnQuantSpan *: those of the plan, made equal where bytes only move */
    GError *error;
} Apply;

int64_t hn_quant_opset(const HnQuantPlan *p)
{
    GHashTableIter iter;
    gpointer form;
    int64_t opset = 13;
    g_hash_table_iter_init(&iter, p->forms);
    while (g_hash_table_iter_next(&iter, NULL, &form))
        if (GPOINTER_TO_INT(form) == HN_FORM_W4)
            opset = 21;
    return opset;
}

static HnQuantForm form_of(const Apply *a, const HnNode *n)
{
    return n->op != NULL ? hn_quant_plan_form(a->p, n) : HN_FORM_F32;
}

static gboolean is_weighted(const HnNode *n)
{
    return n->op->quant.kind == HN_Q_WEIGHTED;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

static HnValue *weight(HnGraph *g, const char *stem, const char *suffix, HnTensor *t)
{
    g_autofree char *name = g_strconcat(stem, suffix, NULL);
    HnValue *v = hn_graph_new_value(g, name);
    hn_graph_add_weight(g, v, t);
    return v;
}

/* A node at the end: hn_model_verify() puts it where it belongs. */
static HnValue *node(HnGraph *g, const char *op, const char *stem, const char *suffix, HnValue *x, HnValue *scale,
                     HnValue *zero, HnNode **made)
{
    g_autofree char *name = g_strconcat(stem, suffix, NULL);
    HnNode *n = hn_graph_add_node(g, -1, op, NULL, NULL);
    HnValue *y = hn_graph_new_value(g, name);
    n->name = g_strdup(y->name);
    hn_node_add_in(n, x);
    hn_node_add_in(n, scale);
    if (zero != NULL)
        hn_node_add_in(n, zero);
    hn_node_add_out(n, y);
    if (made != NULL)
        *made = n;
    return y;
}

/* --- activations -------------------------------------------------------------------------------------------------- */

static const HnQuantSpan *span_of(Apply *a, const HnValue *v)
{
    const HnQuantSpan *s = g_hash_table_lookup(a->spans, v);
    return s != NULL ? s : hn_quant_plan_span(a->p, v);
}

static void set_span(Apply *a, const HnValue *v, const HnQuantSpan *s)
{
    g_hash_table_insert(a->spans, (gpointer)v, g_memdup2(s, sizeof *s));
}

static gboolean is_read_by_others(const HnValue *v, const HnNode *n)
{
    for (guint i = 0; i < v->users->len; i++)
        if (v->users->pdata[i] != n)
            return TRUE;
    return v->is_output;
}

static gboolean is_f32(const HnValue *v)
{
    return v != NULL && v->weight == NULL && v->type != NULL && v->type->kind == HN_TYPE_TENSOR &&
           v->type->dtype == HN_F32;
}

/* What only moves bytes keeps their meaning: inputs of a concatenation take its span, outputs of others their input's.
 */
static void align_spans(HnNode *n, gpointer data)
{
    Apply *a = data;
    if (n->op == NULL || form_of(a, n) != HN_FORM_INT8 || n->op->quant.bytes == HN_QB_NONE)
        return;
    const HnQuantSpan *out = span_of(a, hn_node_out(n, 0)), *in = span_of(a, hn_node_in(n, 0));
    guint activations = 0;
    for (guint i = 0; i < n->in->len; i++)
        activations += is_f32(n->in->pdata[i]);
    if (n->op->quant.kind == HN_Q_PASS && in != NULL) {
        const HnQuantSpan copy = *in;
        set_span(a, hn_node_out(n, 0), &copy);
    } else if (activations > 1 && out != NULL) {
        const HnQuantSpan copy = *out;
        for (guint i = 0; i < n->in->len; i++)
            if (is_f32(n->in->pdata[i]) && !is_read_by_others(n->in->pdata[i], n))
                set_span(a, n->in->pdata[i], &copy);
    }
}

/* Somebody takes v as integers. */
static gboolean is_taken(const Apply *a, const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        if (form_of(a, u) == HN_FORM_INT8 && (!is_weighted(u) || hn_node_in(u, 0) == v))
            return TRUE;
    }
    return FALSE;
}

/* v lies between a node with weights and the bounds that it is held within: those of what comes behind do. */
static gboolean is_clamped_next(const Apply *a, const HnValue *v)
{
    const HnNode *u = v->users->len == 1 && !v->is_output ? v->users->pdata[0] : NULL;
    return u != NULL && v->producer != NULL && v->producer->op != NULL && is_weighted(v->producer) &&
           form_of(a, v->producer) == HN_FORM_INT8 && form_of(a, u) == HN_FORM_INT8 && u->op->quant.clamps &&
           u->graph == v->graph;
}

static void redirect(Apply *a, HnValue *v, HnValue *to, gboolean all)
{
    g_autoptr(GPtrArray) users = g_ptr_array_new();
    g_ptr_array_extend(users, v->users, NULL, NULL);
    for (guint i = 0; i < users->len; i++) {
        HnNode *u = users->pdata[i];
        const gboolean integer = form_of(a, u) == HN_FORM_INT8;
        for (guint k = 0; k < u->in->len; k++)
            if (u->in->pdata[k] == v && (all || (integer && (!is_weighted(u) || k == 0))))
                hn_node_set_in(u, (int)k, to);
    }
}

static void quantize_value(Apply *a, HnValue *v)
{
    const HnQuantSpan *span = span_of(a, v);
    const HnDtype dtype = a->p->o.activations;
    float scale;
    int zero;
    if (span == NULL) {
        g_set_error(&a->error, HN_ERROR, HN_ERROR_GRAPH, "the range of '%s' is not known", v->name);
        return;
    }
    const HnQuantizer q8 = hn_quantizer_of(&a->p->o);
    hn_quant_step(span, &q8, &scale, &zero);
    g_autoptr(HnTensor) s = hn_tensor_scalar_f32(scale);
    g_autoptr(HnTensor) z = hn_tensor_new(dtype, 0, NULL, NULL, &a->error);
    if (z == NULL)
        return;
    hn_tensor_set_i64(z, 0, zero);
    HnValue *sv = weight(v->graph, v->name, "_scale", s), *zv = weight(v->graph, v->name, "_zero", z);
    HnNode *first;
    HnValue *q = node(v->graph, "QuantizeLinear", v->name, "_q", v, sv, zv, &first);
    HnValue *d = node(v->graph, "DequantizeLinear", v->name, "_dq", q, sv, zv, NULL);
    g_autoptr(HnType) type = v->type != NULL ? hn_type_ref(v->type) : NULL;
    hn_value_set_type(d, type);
    g_hash_table_insert(a->scales, d, hn_tensor_ref(s));
    redirect(a, v, d, v->producer != NULL && form_of(a, v->producer) == HN_FORM_INT8);
    hn_node_set_in(first, 0, v);
    a->log->pairs++;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static int axis_of(const HnNode *n, int rank)
{
    int axis = n->op->quant.axis != NULL ? n->op->quant.axis(n->params) : n->op->quant.weight_axis;
    axis += axis < 0 ? rank : 0;
    return axis < rank ? axis : -1;
}

/* Output channels of n for each place along the weight's channel axis: 1, unless groups share it. */
static gboolean is_per_channel(const Apply *a, const HnNode *n, const HnTensor *w, int axis)
{
    const HnType *y = hn_node_out(n, 0)->type;
    if (a->p->o.per_tensor || axis < 0)
        return FALSE;
    if (w->ndim == 2)
        return TRUE;
    return axis == 0 || (y != NULL && y->rank > 1 && y->dims[1].known && y->dims[1].n == w->dims[axis]);
}

/* A bias in units of the product of scales: no channel's may be so small that the bias does not fit 32 bits. */
static float *least_scales(const HnTensor *b, float x_scale, int64_t n)
{
    float *least = g_new0(float, (gsize)n + 1);
    for (int64_t i = 0; i < b->n && b->n == n; i++)
        least[i] = (float)(fabs(hn_tensor_get_f64(b, i)) / ((double)x_scale * 1073741824.0));
    return least;
}

static void bias_as_integers(Apply *a, HnNode *n, const HnTensor *scale, float x_scale)
{
    HnValue *v = hn_node_in(n, 2);
    const HnTensor *b = v != NULL ? v->weight : NULL;
    if (v == NULL)
        return;
    if (b == NULL || b->dtype != HN_F32 || b->ndim != 1 || (scale->n != 1 && scale->n != b->n)) {
        a->log->without_bias++;
        return;
    }
    g_autofree double *unit = g_new(double, (gsize)b->n + 1);
    g_autoptr(HnTensor) us = hn_tensor_new(HN_F32, scale->n != 1, &b->n, a->budget, &a->error);
    for (int64_t i = 0; us != NULL && i < b->n; i++) {
        const float u = x_scale * ((const float *)scale->data)[scale->n == 1 ? 0 : i];
        ((float *)us->data)[scale->n == 1 ? 0 : i] = u;
        unit[i] = (double)u;
    }
    HnTensor *q = us != NULL ? hn_pack_bias(b, unit, a->budget) : NULL;
    if (q == NULL) {
        a->log->without_bias++;
        return;
    }
    HnNode *made;
    HnValue *d = node(v->graph, "DequantizeLinear", v->name, "_dq", weight(v->graph, v->name, "_q", q),
                      weight(v->graph, v->name, "_scale", us), NULL, &made);
    if (us->ndim > 0)
        hn_node_set_int(made, "axis", 0);
    hn_tensor_unref(q);
    hn_node_set_in(n, 2, d);
}

/* DequantizeLinear in front of everybody who reads the weight. */
static HnValue *unpacked(HnValue *v, const HnPacked *k)
{
    HnNode *made;
    HnValue *q = weight(v->graph, v->name, "_q", k->q), *s = weight(v->graph, v->name, "_scale", k->scale);
    HnValue *d =
        node(v->graph, "DequantizeLinear", v->name, "_dq", q, s, weight(v->graph, v->name, "_zero", k->zero), &made);
    if (k->axis >= 0)
        hn_node_set_int(made, "axis", k->axis);
    if (k->block > 0)
        hn_node_set_int(made, "block_size", k->block);
    g_autoptr(HnType) type = v->type != NULL ? hn_type_ref(v->type) : NULL;
    hn_value_set_type(d, type);
    hn_value_replace(v, d);
    return d;
}

static void quantize_weight(Apply *a, HnNode *n)
{
    const HnQuantForm form = form_of(a, n);
    HnValue *v = hn_node_in(n, 1), *x = hn_node_in(n, 0);
    HnTensor *w = v->weight;
    const HnTensor *xs = g_hash_table_lookup(a->scales, x);
    const float x_scale = form == HN_FORM_INT8 && xs != NULL ? ((const float *)xs->data)[0] : 0;
    if (w != NULL) {
        int axis = axis_of(n, w->ndim);
        const HnTensor *b = hn_node_in(n, 2) != NULL ? hn_node_in(n, 2)->weight : NULL;
        HnPacked k;
        gboolean ok;
        if (!hn_tensor_align(w, a->budget, &a->error))
            return;
        if (form == HN_FORM_W4) {
            ok = hn_pack_4(w, w->ndim == 2 ? 1 - axis : 0, a->p->o.block, a->p->o.symmetric_block, a->budget, &k,
                           &a->error);
        } else {
            axis = is_per_channel(a, n, w, axis) ? axis : -1;
            g_autofree float *least =
                b != NULL && x_scale > 0 && axis >= 0 ? least_scales(b, x_scale, w->dims[axis]) : NULL;
            ok = hn_pack_s8(w, axis, least, form == HN_FORM_INT8 && a->p->o.reduced, a->p->o.reduced_all, a->budget, &k,
                            &a->error);
        }
        if (!ok)
            return;
        HnValue *d = unpacked(v, &k);
        a->log->reduced += k.reduced;
        g_hash_table_insert(a->scales, d, hn_tensor_ref(k.scale));
        hn_packed_clear(&k);
        v = d;
    }
    const HnTensor *ws = g_hash_table_lookup(a->scales, v);
    if (x_scale > 0 && ws != NULL && a->error == NULL)
        bias_as_integers(a, n, ws, x_scale);
    a->log->int8 += form == HN_FORM_INT8;
    a->log->w8 += form == HN_FORM_W8;
    a->log->w4 += form == HN_FORM_W4;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void list(HnNode *n, gpointer data)
{
    g_ptr_array_add(data, n);
}

static void drop_unused(HnGraph *g)
{
    for (guint i = g->weights->len; i-- > 0;) {
        HnValue *v = g->weights->pdata[i];
        if (v->users->len > 0 || v->is_output || v->is_input)
            continue;
        hn_graph_remove_weight(g, v);
        if (v->has_info)
            g_ptr_array_remove(g->infos, v);
        g_hash_table_remove(g->values, v->name);
    }
    for (guint i = 0; i < g->inner->len; i++)
        drop_unused(g->inner->pdata[i]);
}

static void apply_values(Apply *a, const GPtrArray *nodes)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        if (form_of(a, n) != HN_FORM_INT8)
            continue;
        for (guint k = 0; k < n->in->len && !(is_weighted(n) && k > 0); k++) {
            HnValue *v = n->in->pdata[k];
            if (is_f32(v) && is_taken(a, v) && !is_clamped_next(a, v) && g_hash_table_add(seen, v))
                g_ptr_array_add(values, v);
        }
    }
    for (guint i = 0; i < values->len && a->error == NULL; i++)
        quantize_value(a, values->pdata[i]);
}

gboolean hn_quant_apply(const HnQuantPlan *p, HnModel *m, HnBudget *budget, HnQuantLog *log, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    Apply a = { .p = p,
                .m = m,
                .budget = budget,
                .log = log,
                .scales = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_tensor_unref),
                .spans = g_hash_table_new_full(NULL, NULL, NULL, g_free) };
    *log = (HnQuantLog){ 0 };
    hn_graph_foreach_node(m->graph, list, nodes);
    for (guint i = 0; i < nodes->len; i++)
        align_spans(nodes->pdata[i], &a);
    apply_values(&a, nodes);
    for (guint i = 0; i < nodes->len && a.error == NULL; i++) {
        HnNode *n = nodes->pdata[i];
        const HnQuantForm form = form_of(&a, n);
        if (form != HN_FORM_F32 && is_weighted(n))
            quantize_weight(&a, n);
        else if (form == HN_FORM_INT8)
            log->between++;
    }
    g_hash_table_unref(a.scales);
    g_hash_table_unref(a.spans);
    if (a.error != NULL) {
        g_propagate_error(error, a.error);
        return FALSE;
    }
    drop_unused(m->graph);
    return hn_model_verify(m, error);
}
