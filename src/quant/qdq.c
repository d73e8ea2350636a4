#include "quant/qdq.h"

#include <math.h>
#include <string.h>

#include "op/infer.h"
#include "op/linear.h"
#include "op/ops.h"
#include "pass/opset.h"
#include "quant/correct.h"
#include "quant/dynamic.h"
#include "quant/integer_product.h"
#include "quant/qoperator.h"
#include "quant/calib_method.h"
#include "quant/rounding.h"
#include "quant/shared_weights.h"

typedef struct {
    const HnQuantPlan *p;
    HnModel *m;
    HnBudget *budget;
    HnQuantLog *log;
    GHashTable *scales; /* HnValue * dequantized activation or weight -> HnTensor * scale */
    GHashTable *spans;  /* HnValue * -> HnQuantSpan *: those of the plan, made equal where bytes only move */
    HnSharedWeights *shared;
    gboolean computes; /* some nodes compute with integers */
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

static gboolean computes(const HnQuantPlan *p)
{
    GHashTableIter iter;
    gpointer form;
    g_hash_table_iter_init(&iter, p->forms);
    while (g_hash_table_iter_next(&iter, NULL, &form))
        if (GPOINTER_TO_INT(form) == HN_FORM_INT8 || GPOINTER_TO_INT(form) == HN_FORM_DYNAMIC)
            return TRUE;
    return FALSE;
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
    HnValue *v = hn_quant_value(g, name);
    hn_graph_add_weight(g, v, t);
    return v;
}

/* A node at the end: hn_model_verify() puts it where it belongs. */
static HnValue *node(HnGraph *g, const char *op, const char *stem, const char *suffix, HnValue *x, HnValue *scale,
                     HnValue *zero, HnNode **made)
{
    g_autofree char *name = g_strconcat(stem, suffix, NULL);
    return hn_quant_node(g, op, name, (HnValue *const[]){ x, scale, zero, NULL }, made);
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
    return v != NULL && v->weight == NULL && hn_type_dtype(v->type) == HN_F32;
}

/* What only moves bytes keeps their meaning: inputs of a concatenation take its span, outputs of others their input's.
 */
static void align_spans(HnNode *n, gpointer data)
{
    Apply *a = data;
    const HnQuantBytes how = n->op != NULL ? n->op->quant.bytes : HN_QB_NONE;
    if (form_of(a, n) != HN_FORM_INT8 || (how != HN_QB_MOVES && how != HN_QB_MOST && how != HN_QB_FILLS))
        return;
    const HnQuantSpan *out = span_of(a, hn_node_out(n, 0)), *in = span_of(a, hn_node_in(n, 0));
    guint activations = 0;
    for (guint i = 0; i < n->in->len; i++)
        activations += is_f32(n->in->pdata[i]);
    if (n->op->quant.kind == HN_Q_PASS && in != NULL) {
        const HnQuantSpan copy = *in;
        for (guint k = 0; k < n->out->len; k++)
            set_span(a, n->out->pdata[k], &copy);
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

/* v lies between a node with weights and its bias, or the bounds that it is held within: those of what comes behind do.
 */
static gboolean is_part_of_next(const Apply *a, const HnValue *v)
{
    const HnNode *u = v->users->len == 1 && !v->is_output ? v->users->pdata[0] : NULL;
    const HnNode *n = v->producer;
    if (u == NULL || u->graph != v->graph || n == NULL || n->op == NULL || !is_weighted(n))
        return FALSE;
    return form_of(a, n) == HN_FORM_INT8 && form_of(a, u) == HN_FORM_INT8 && (u->op->quant.clamps || hn_op_is_bias(u));
}

static void redirect(Apply *a, HnValue *v, HnValue *to, gboolean all)
{
    g_autoptr(GPtrArray) users = hn_ptrs_copy(v->users);
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

/* Output channels of n for each place along the weight's channel axis: 1, unless groups share it. */
static gboolean is_per_channel(const HnQuantPlan *p, const HnNode *n, const HnTensor *w, int axis)
{
    const HnType *y = hn_node_out(n, 0) != NULL ? hn_node_out(n, 0)->type : NULL;
    if (axis < 0)
        return FALSE;
    if (hn_op_is_lookup(n->op))
        return TRUE; /* of one scale for all rows the rare ones would have next to nothing */
    if (p->o.per_tensor)
        return FALSE;
    if (w->ndim == 2 || !is_weighted(n))
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

/* What k stands for, between its integers and everybody who reads v. */
static HnValue *dequantized(HnValue *v, const HnPacked *k, HnValue *q, HnValue *zero)
{
    HnNode *made;
    HnValue *s = weight(v->graph, v->name, "_scale", k->scale);
    HnValue *d = node(v->graph, "DequantizeLinear", v->name, "_dq", q, s, zero, &made);
    if (k->axis >= 0)
        hn_node_set_int(made, "axis", k->axis);
    if (k->block > 0)
        hn_node_set_int(made, "block_size", k->block);
    return d;
}

/* The same of s8 as Cast and Mul. Whoever computes with floats makes these once, when a model is loaded, while ONNX
 * Runtime computes DequantizeLinear at each run; the Cast in between keeps OpenVINO from taking it for that. */
static HnValue *cast_back(HnValue *v, const HnPacked *k, HnValue *q)
{
    int64_t dims[HN_MAX_RANK] = { k->scale->n };
    const int rank = k->axis >= 0 ? k->q->ndim - k->axis : 0;
    HnNode *wide, *real;
    for (int i = 1; i < rank; i++)
        dims[i] = 1;
    g_autoptr(HnTensor) scale = hn_tensor_reshaped(k->scale, rank, dims);
    HnValue *i32 = node(v->graph, "Cast", v->name, "_i32", q, NULL, NULL, &wide);
    HnValue *f32 = node(v->graph, "Cast", v->name, "_f32", i32, NULL, NULL, &real);
    hn_node_set_int(wide, "to", 6);
    hn_node_set_int(real, "to", 1);
    return node(v->graph, "Mul", v->name, "_dq", f32, weight(v->graph, v->name, "_scale", scale), NULL, NULL);
}

/* v becomes k, which *q and *zero hold (NULL: new weights do, which they are then). */
static HnValue *unpacked(HnValue *v, const HnPacked *k, gboolean stored, HnValue **q, HnValue **zero)
{
    if (*q == NULL)
        *q = weight(v->graph, v->name, "_q", k->q);
    if (*zero == NULL && !stored)
        *zero = weight(v->graph, v->name, "_zero", k->zero);
    HnValue *d = stored ? cast_back(v, k, *q) : dequantized(v, k, *q, *zero);
    g_autoptr(HnType) type = v->type != NULL ? hn_type_ref(v->type) : NULL;
    hn_value_set_type(d, type);
    hn_value_replace(v, d);
    return d;
}

/* Somebody multiplies v with integers, perhaps turned round. */
static gboolean is_multiplied(const HnQuantPlan *p, const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        const HnQuantForm form = u->op != NULL ? hn_quant_plan_form(p, u) : HN_FORM_F32;
        if (form == HN_FORM_INT8 || form == HN_FORM_DYNAMIC ||
            (u->op == &hn_op_transpose && is_multiplied(p, hn_node_out(u, 0))))
            return TRUE;
    }
    return FALSE;
}

/* A product of integers reads v, perhaps turned round, whose output channels lie along another axis of v than `axis`.
 */
static gboolean is_read_along_other(const HnQuantPlan *p, const HnValue *v, int axis)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        const HnQuantForm form = u->op != NULL ? hn_quant_plan_form(p, u) : HN_FORM_F32;
        if (u->op == &hn_op_transpose && is_read_along_other(p, hn_node_out(u, 0), axis))
            return TRUE;
        if ((form == HN_FORM_INT8 || form == HN_FORM_DYNAMIC) && is_weighted(u) && hn_quant_scale_axis(u, 2) != axis)
            return TRUE;
    }
    return FALSE;
}

gboolean hn_quant_pack(const HnQuantPlan *p, const HnNode *n, const HnValue *v, float x_scale, HnBudget *budget,
                       HnPacked *k, GError **error)
{
    const HnQuantForm form = hn_quant_plan_form(p, n);
    HnTensor *w = v->weight;
    const int axis = hn_quant_scale_axis(n, w->ndim);
    const HnTensor *b = is_weighted(n) && hn_node_in(n, 2) != NULL ? hn_node_in(n, 2)->weight : NULL;
    const gboolean multiplied = w->ndim < 3 ? is_multiplied(p, v) : form == HN_FORM_INT8;
    if (!hn_tensor_align(w, budget, error))
        return FALSE;
    if (form == HN_FORM_W4 && hn_quant_form_fit(n, form, &p->o) == form) {
        const int block = hn_quant_block(w->dims[1 - axis], p->o.block);
        return hn_pack_4(w, 1 - axis, block, p->o.symmetric_block, budget, k, error);
    }
    const gboolean both = is_weighted(n) && form != HN_FORM_W8 && w->ndim == 2 && is_read_along_other(p, v, axis);
    const int channels = !both && is_per_channel(p, n, w, axis) ? axis : -1;
    g_autofree float *least =
        b != NULL && x_scale > 0 && channels >= 0 ? least_scales(b, x_scale, w->dims[channels]) : NULL;
    return hn_pack_s8(w, channels, least, multiplied && p->o.reduced, multiplied && p->o.reduced_all, budget, k, error);
}

/* Nobody computes with v's integers: they only make the file smaller. Where a plan has weights alone, that is what
 * kernels for such weights are for. */
static gboolean is_stored(const Apply *a, const HnNode *n, const HnValue *v)
{
    const gboolean never = n->op->channels.kind == HN_CH_RECURRENT;
    return form_of(a, n) == HN_FORM_W8 && (never || a->computes) && !is_multiplied(a->p, v);
}

/* v becomes integers: its own, or another weight's with scales of its own. */
static gboolean pack_weight(Apply *a, const HnNode *n, HnValue *v, float x_scale, HnPacked *k)
{
    const HnQuantForm form = form_of(a, n);
    const int axis = hn_quant_scale_axis(n, v->weight->ndim);
    HnValue *q = NULL, *zero = NULL;
    if (!hn_quant_pack(a->p, n, v, x_scale, a->budget, k, &a->error))
        return FALSE;
    const gboolean found = hn_shared_weights_find(a->shared, v, form, axis, k, &q, &zero, a->budget, &a->error);
    if (!found)
        hn_rounded_use(a->p, v->name, form, k);
    HnValue *d = unpacked(v, k, is_stored(a, n, v), &q, &zero);
    if (!found)
        hn_shared_weights_add(a->shared, v, form, axis, k, q, zero);
    g_hash_table_insert(a->scales, d, hn_tensor_ref(k->scale));
    return TRUE;
}

static void quantize_weight(Apply *a, HnNode *n)
{
    const HnQuantForm form = form_of(a, n);
    HnValue *v, *x = hn_node_in(n, 0);
    const HnTensor *xs = g_hash_table_lookup(a->scales, x);
    const float x_scale = form == HN_FORM_INT8 && xs != NULL ? ((const float *)xs->data)[0] : 0;
    while ((v = hn_quant_weight(n)) != NULL) { /* LSTM has two */
        HnPacked k;
        if (!pack_weight(a, n, v, x_scale, &k))
            return;
        a->log->reduced += k.reduced;
        hn_packed_clear(&k);
    }
    v = hn_node_in(n, 1);
    const HnTensor *ws = g_hash_table_lookup(a->scales, hn_quant_is_turned(n) ? hn_node_in(v->producer, 0) : v);
    if (x_scale > 0 && ws != NULL && a->error == NULL)
        bias_as_integers(a, n, ws, x_scale);
    a->log->int8 += form == HN_FORM_INT8;
    a->log->w8 += form == HN_FORM_W8;
    a->log->w4 += form == HN_FORM_W4;
    a->log->dynamic += form == HN_FORM_DYNAMIC;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void list(HnNode *n, gpointer data)
{
    g_ptr_array_add(data, n);
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
            if (is_f32(v) && is_taken(a, v) && !is_part_of_next(a, v) && g_hash_table_add(seen, v))
                g_ptr_array_add(values, v);
        }
    }
    for (guint i = 0; i < values->len && a->error == NULL; i++)
        quantize_value(a, values->pdata[i]);
}

/* Other operators, where the plan wants them. */
static gboolean make_integers(const HnQuantPlan *p, HnModel *m, const GPtrArray *dynamic, HnBudget *budget,
                              GError **error)
{
    if (dynamic->len == 0 && !p->o.integers)
        return TRUE;
    return hn_graph_infer(m->graph, FALSE, error) && hn_quant_make_dynamic(m, dynamic, budget, error) &&
           (!p->o.integers || hn_quant_make_integers(m, budget, error)) && hn_model_verify(m, error);
}

static gboolean raise_opset(const HnQuantPlan *p, HnModel *m, GError **error)
{
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    const int64_t opset = hn_quant_opset(p);
    return hn_model_opset(m, NULL) >= opset ||
           (hn_settle_opset(m, opset, blocked, error) && hn_graph_infer(m->graph, FALSE, error));
}

gboolean hn_quant_apply(const HnQuantPlan *p, HnModel *m, HnBudget *budget, HnQuantLog *log, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new(), dynamic = g_ptr_array_new();
    if (!raise_opset(p, m, error) || !hn_quant_shift(p, m, budget, error))
        return FALSE;
    Apply a = { .p = p,
                .m = m,
                .budget = budget,
                .log = log,
                .scales = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_tensor_unref),
                .spans = g_hash_table_new_full(NULL, NULL, NULL, g_free),
                .shared = hn_shared_weights_new(),
                .computes = computes(p) };
    *log = (HnQuantLog){ 0 };
    hn_graph_foreach_node(m->graph, list, nodes);
    for (guint i = 0; i < nodes->len; i++)
        align_spans(nodes->pdata[i], &a);
    if (p->o.part != HN_PART_WEIGHTS)
        apply_values(&a, nodes);
    for (guint i = 0; i < nodes->len && a.error == NULL; i++) {
        HnNode *n = nodes->pdata[i];
        const HnQuantForm form = form_of(&a, n);
        if (form == HN_FORM_DYNAMIC)
            g_ptr_array_add(dynamic, n);
        if (form != HN_FORM_F32 && (is_weighted(n) || form != HN_FORM_INT8)) {
            if (p->o.part != HN_PART_ACTIVATIONS)
                quantize_weight(&a, n);
        } else if (form == HN_FORM_INT8)
            log->between++;
    }
    g_hash_table_unref(a.scales);
    g_hash_table_unref(a.spans);
    hn_shared_weights_free(a.shared);
    if (a.error != NULL) {
        g_propagate_error(error, a.error);
        return FALSE;
    }
    hn_quant_drop_unused(m->graph);
    if (!hn_model_verify(m, error) || !make_integers(p, m, dynamic, budget, error))
        return FALSE;
    hn_weights_merge(m->graph);
    return TRUE;
}
