#include "quant/integer_product.h"

#include <string.h>

#include "ir/build.h"
#include "op/linear.h"
#include "op/ops.h"
#include "op/quantize.h"

void hn_products_init(HnProducts *p, HnBudget *budget)
{
    *p = (HnProducts){ budget, g_hash_table_new(NULL, NULL), g_hash_table_new(NULL, NULL), g_ptr_array_new() };
}

void hn_products_clear(HnProducts *p)
{
    g_clear_pointer(&p->turned, g_hash_table_unref);
    g_clear_pointer(&p->unsigned_, g_hash_table_unref);
    g_clear_pointer(&p->copied, g_ptr_array_unref);
}

/* --- what is there ------------------------------------------------------------------------------------------------ */

static gboolean is_byte(HnDtype d)
{
    return d == HN_U8 || d == HN_I8;
}

static HnDtype dtype_of(const HnValue *v)
{
    if (v->weight != NULL)
        return v->weight->dtype;
    return hn_type_dtype(v->type);
}

gboolean hn_quantized_of(const HnValue *v, HnQuantized *q)
{
    HnQParams p;
    if (v == NULL || dtype_of(v) != HN_F32 || !hn_op_qparams(v->producer, NULL, NULL, &p))
        return FALSE;
    if (!p.back || p.block != 0 || !is_byte(dtype_of(p.q)))
        return FALSE;
    const gboolean shared = v->users->len > 1 || v->is_output || p.q->users->len > 1;
    *q = (HnQuantized){ p.q, p.scale_of, p.zero_of, p.axis, FALSE, shared };
    return TRUE;
}

gboolean hn_quant_is_conv(const HnNode *n)
{
    HnLinearView l;
    return hn_op_linear(n, &l) && l.window != NULL && !l.adjoint;
}

/* The axis of the output channels of weights as they are stored. */
static int channels_of(const HnNode *n, const HnQuantized *w)
{
    return hn_quant_scale_axis(n, w->q->weight->ndim);
}

/* What DequantizeLinear, d, makes of a constant list of i32. */
static gboolean is_integer_list(const HnNode *d)
{
    HnQParams p;
    if (!hn_op_qparams(d, NULL, NULL, &p) || !p.back || p.zero_of != NULL || p.q->weight == NULL)
        return FALSE;
    return p.q->weight->dtype == HN_I32 && p.q->weight->ndim == 1 && (p.axis < 0 || p.scale->n == p.q->weight->n);
}

/* Of a convolution: what is not constant would have to be brought into shape. */
static gboolean has_plain_bias(const HnNode *n)
{
    const HnValue *b = hn_node_in(n, 2);
    return !hn_quant_is_conv(n) || b == NULL || b->weight != NULL || is_integer_list(b->producer);
}

/* The zero point of all of w. FALSE: there are several. */
static gboolean zero_point(const HnQuantized *w, int *zero)
{
    const HnTensor *z = w->zero != NULL ? w->zero->weight : NULL;
    *zero = z != NULL && z->n > 0 ? (int)hn_tensor_get_i64(z, 0) : 0;
    for (int64_t i = 1; z != NULL && i < z->n; i++)
        if (hn_tensor_get_i64(z, i) != *zero)
            return FALSE;
    return TRUE;
}

gboolean hn_quantized_weight(const HnNode *n, HnQuantized *w)
{
    const HnValue *v = hn_node_in(n, 1);
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.adjoint || !has_plain_bias(n))
        return FALSE;
    const gboolean turned = hn_quant_is_turned(n);
    if (!hn_quantized_of(turned ? hn_node_in(v->producer, 0) : v, w) || w->q->weight == NULL)
        return FALSE;
    w->turned = turned;
    int zero;
    const int rank = w->q->weight->ndim;
    return rank >= (l.window == NULL ? 2 : 3) && (w->axis == -1 || w->axis == channels_of(n, w)) &&
           zero_point(w, &zero);
}

/* --- building ----------------------------------------------------------------------------------------------------- */

HnValue *hn_quant_value(HnGraph *g, const char *stem)
{
    g_autofree char *name = g_strdup(stem);
    for (uint32_t k = g->model->n_values; hn_model_has_name(g->model, name); k++) {
        g_free(name);
        name = g_strdup_printf("%s_%u", stem, k);
    }
    return hn_graph_value(g, name);
}

HnValue *hn_quant_constant(HnGraph *g, const char *stem, HnTensor *t)
{
    if (t == NULL)
        return NULL;
    HnValue *v = hn_quant_value(g, stem);
    hn_graph_add_weight(g, v, t);
    hn_tensor_unref(t);
    return v;
}

HnValue *hn_quant_node(HnGraph *g, const char *op, const char *stem, HnValue *const *in, HnNode **made)
{
    const HnBuild b = { .graph = g };
    HnValue *y = NULL;
    int n_in = 0;
    while (in[n_in] != NULL)
        n_in++;
    HnNode *n = hn_build_node(&b, op, NULL, n_in, in, 0);
    if (stem != NULL) {
        y = hn_quant_value(g, stem);
        n->name = g_strdup(y->name);
        hn_node_add_out(n, y);
    }
    if (made != NULL)
        *made = n;
    return y;
}

static HnValue *node(HnGraph *g, const char *op, const HnValue *after, const char *suffix, HnValue *a, HnValue *b,
                     HnNode **made)
{
    g_autofree char *stem = g_strconcat(after->name, suffix, NULL);
    return hn_quant_node(g, op, stem, (HnValue *const[]){ a, b, NULL }, made);
}

static HnValue *constant(HnGraph *g, const HnValue *after, const char *suffix, HnTensor *t)
{
    g_autofree char *stem = g_strconcat(after->name, suffix, NULL);
    return hn_quant_constant(g, stem, t);
}

/* Integers of one byte, [n, k] for [k, n]. */
static HnTensor *transposed(const HnTensor *t, HnBudget *budget, GError **error)
{
    const int64_t dims[] = { t->dims[1], t->dims[0] };
    HnTensor *u = hn_tensor_new_uninit(t->dtype, 2, dims, budget, error);
    for (int64_t i = 0; u != NULL && i < dims[0]; i++)
        for (int64_t k = 0; k < dims[1]; k++)
            ((uint8_t *)u->data)[i * dims[1] + k] = ((const uint8_t *)t->data)[k * dims[0] + i];
    return u;
}

HnValue *hn_quant_matrix(HnProducts *p, const HnNode *n, const HnQuantized *w, GError **error)
{
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.w_turned == w->turned)
        return w->q;
    HnValue *v = g_hash_table_lookup(p->turned, w->q);
    if (v != NULL)
        return v;
    if (w->shared) {
        HnNode *made;
        v = node(w->q->graph, "Transpose", w->q, "_t", w->q, NULL, &made);
        hn_node_set_ints(made, "perm", (const int64_t[]){ 1, 0 }, 2);
    } else {
        v = constant(w->q->graph, w->q, "_t", transposed(w->q->weight, p->budget, error));
    }
    if (v != NULL)
        g_hash_table_insert(p->turned, w->q, v);
    return v;
}

/* s8 as u8, 128 larger. */
static HnValue *as_unsigned(HnProducts *p, HnValue *q, GError **error)
{
    HnValue *v = g_hash_table_lookup(p->unsigned_, q);
    if (v != NULL || q->weight->dtype == HN_U8)
        return v != NULL ? v : q;
    const HnTensor *t = q->weight;
    HnTensor *u = hn_tensor_new_uninit(HN_U8, t->ndim, t->dims, p->budget, error);
    for (int64_t i = 0; u != NULL && i < t->n; i++)
        ((uint8_t *)u->data)[i] = (uint8_t)(((const int8_t *)t->data)[i] + 128);
    v = constant(q->graph, q, "_u8", u);
    if (v == NULL)
        return NULL;
    g_hash_table_insert(p->unsigned_, q, v);
    g_ptr_array_add(p->copied, q);
    return v;
}

static HnTensor *zero_of(HnDtype dtype, int zero, HnBudget *budget, GError **error)
{
    HnTensor *z = hn_tensor_new(dtype, 0, NULL, budget, error);
    if (z != NULL)
        hn_tensor_set_i64(z, 0, zero);
    return z;
}

/* A list of channels as what is added to, or multiplied with, n's result; factor times each. */
static HnTensor *along_channels(const HnNode *n, const HnTensor *list, int rank, double factor, HnBudget *budget,
                                GError **error)
{
    int64_t dims[HN_MAX_RANK] = { 1, list->n };
    const gboolean conv = list->n != 1 && hn_quant_is_conv(n);
    for (int i = 2; conv && i < rank; i++)
        dims[i] = 1;
    HnTensor *t = conv ? hn_tensor_new_uninit(HN_F32, rank, dims, budget, error)
                       : hn_tensor_new_uninit(HN_F32, list->n == 1 ? 0 : list->ndim, list->dims, budget, error);
    for (int64_t i = 0; t != NULL && i < list->n; i++)
        ((float *)t->data)[i] = (float)(hn_tensor_get_f64(list, i) * factor);
    return t;
}

/* Constant biases as f32, those of DequantizeLinear too; NULL with no error: there are none. */
static HnTensor *bias_of(const HnNode *n, HnBudget *budget, GError **error)
{
    const HnValue *v = hn_node_in(n, 2);
    const HnNode *d = v != NULL ? v->producer : NULL;
    if (v == NULL || v->weight != NULL)
        return v != NULL ? hn_tensor_ref(v->weight) : NULL;
    if (!is_integer_list(d))
        return NULL;
    const HnTensor *q = hn_node_in(d, 0)->weight, *s = hn_node_in(d, 1)->weight;
    HnTensor *b = hn_tensor_new_uninit(HN_F32, q->ndim, q->dims, budget, error);
    for (int64_t i = 0; b != NULL && i < q->n; i++)
        ((float *)b->data)[i] = (float)(hn_tensor_get_f64(q, i) * hn_tensor_get_f64(s, s->n == 1 ? 0 : i));
    return b;
}

void hn_quant_copy_attrs(const HnNode *conv, HnNode *to)
{
    static const char *const kept[] = { "kernel_shape", "strides", "pads", "dilations" };
    for (gsize i = 0; i < G_N_ELEMENTS(kept); i++) {
        const HnAttr *a = hn_node_attr(conv, kept[i]);
        if (a != NULL)
            hn_node_set_ints(to, a->name, a->ints, a->n);
    }
    const HnAttr *group = hn_node_attr(conv, "group"), *pad = hn_node_attr(conv, "auto_pad");
    if (group != NULL)
        hn_node_set_int(to, "group", group->i);
    if (pad != NULL) {
        gsize len;
        const char *text = g_bytes_get_data(pad->s, &len);
        g_autofree char *copy = g_strndup(text, len);
        hn_node_set_string(to, "auto_pad", copy);
    }
}

/* Sums of products: i32. */
static HnValue *sums(HnProducts *p, const HnNode *n, const HnQuantized *x, const HnQuantized *w, GError **error)
{
    const HnValue *y = hn_node_out(n, 0);
    HnLinearView l;
    if (!hn_op_linear(n, &l))
        return NULL;
    const gboolean conv = l.window != NULL;
    HnValue *q = conv ? as_unsigned(p, w->q, error) : hn_quant_matrix(p, n, w, error);
    if (q == NULL)
        return NULL;
    const HnDtype dtype = w->q->weight->dtype;
    int z;
    zero_point(w, &z);
    z += conv && dtype == HN_I8 ? 128 : 0;
    HnValue *zero = constant(w->q->graph, w->q, "_z", zero_of(conv ? HN_U8 : dtype, z, p->budget, error));
    HnValue *xq = x->q;
    HnNode *made;
    if (zero == NULL)
        return NULL;
    if (l.x_turned) {
        xq = node(n->graph, "Transpose", xq, "_t", xq, NULL, &made);
        hn_node_set_ints(made, "perm", (const int64_t[]){ 1, 0 }, 2);
    }
    HnValue *s = node(n->graph, conv ? "ConvInteger" : "MatMulInteger", y, "_sums", xq, q, &made);
    hn_node_add_in(made, x->zero);
    hn_node_add_in(made, zero);
    if (!conv)
        return s;
    hn_quant_copy_attrs(n, made);
    return s;
}

/* The product of both scales and alpha, as a constant where both are. */
static HnValue *scale(HnProducts *p, const HnNode *n, const HnQuantized *x, const HnQuantized *w, double alpha,
                      GError **error)
{
    const HnValue *y = hn_node_out(n, 0);
    const HnTensor *xs = x->scale->weight;
    const double factor = xs != NULL ? alpha * hn_tensor_get_f64(xs, 0) : alpha;
    HnTensor *t = along_channels(n, w->scale->weight, w->q->weight->ndim, factor, p->budget, error);
    HnValue *s = constant(w->q->graph, w->q, xs != NULL ? "_xs" : "_ws", t);
    return s == NULL || xs != NULL ? s : node(n->graph, "Mul", y, "_scale", x->scale, s, NULL);
}

gboolean hn_quant_product(HnProducts *p, HnNode *n, const HnQuantized *x, const HnQuantized *w, GError **error)
{
    HnValue *y = hn_node_out(n, 0), *c = hn_node_in(n, 2);
    HnGraph *g = n->graph;
    HnLinearView l;
    HnNode *last, *cast;
    if (!hn_op_linear(n, &l))
        return FALSE;
    const double beta = l.beta;
    HnValue *acc = sums(p, n, x, w, error);
    HnValue *s = acc != NULL ? scale(p, n, x, w, l.alpha, error) : NULL;
    if (s == NULL)
        return FALSE;
    HnValue *v = node(g, "Cast", y, "_cast", acc, NULL, &cast);
    hn_node_set_int(cast, "to", 1);
    v = node(g, "Mul", y, "_product", v, s, &last);
    if (c != NULL && beta != 0) {
        GError *cause = NULL;
        g_autoptr(HnTensor) b = bias_of(n, p->budget, &cause);
        if (cause != NULL) {
            g_propagate_error(error, cause);
            return FALSE;
        }
        if (b != NULL)
            c = constant(g, y, "_bias", along_channels(n, b, w->q->weight->ndim, beta, p->budget, error));
        else if (beta != 1)
            c = node(g, "Mul", y, "_beta", c, constant(g, y, "_factor", hn_tensor_scalar_f32((float)beta)), NULL);
        if (c == NULL)
            return FALSE;
        node(g, "Add", y, "_sum", v, c, &last);
    }
    HnValue *old = hn_node_out(last, 0);
    hn_node_set_out(last, 0, y);
    g_hash_table_remove(g->values, old->name);
    hn_graph_remove_node(g, n);
    return TRUE;
}

/* The zero points of s8 weights as those of the same as u8: 128 larger. NULL with no error: v is not constant. */
static HnValue *unsigned_zero(HnProducts *p, const HnValue *q, const HnValue *v, GError **error)
{
    const HnTensor *z = v->weight;
    if (z == NULL || z->dtype != HN_I8)
        return NULL;
    HnTensor *u = hn_tensor_new_uninit(HN_U8, z->ndim, z->dims, p->budget, error);
    for (int64_t i = 0; u != NULL && i < z->n; i++)
        ((uint8_t *)u->data)[i] = (uint8_t)(hn_tensor_get_i64(z, i) + 128);
    return constant(q->graph, q, "_u8_zero", u);
}

/* Whoever reads integers of which there is a copy as u8 reads that: one of the two goes. */
static gboolean read_unsigned(HnProducts *p, HnValue *q, HnValue *u, GError **error)
{
    g_autoptr(GPtrArray) users = hn_ptrs_copy(q->users);
    for (guint i = 0; i < users->len; i++) {
        HnNode *n = users->pdata[i];
        const int at = hn_node_in(n, 0) == q ? 0 : 3, zero_at = at + 2; /* DequantizeLinear or QLinearConv */
        HnQParams qp;
        const gboolean known =
            at == 0 ? hn_op_qparams(n, NULL, NULL, &qp) && qp.back : g_str_equal(n->op_type, "QLinearConv");
        if (!known || hn_node_in(n, at) != q || hn_node_in(n, zero_at) == NULL)
            continue;
        GError *cause = NULL;
        HnValue *zero = unsigned_zero(p, q, hn_node_in(n, zero_at), &cause);
        if (cause != NULL) {
            g_propagate_error(error, cause);
            return FALSE;
        }
        if (zero == NULL)
            continue;
        hn_node_set_in(n, at, u);
        hn_node_set_in(n, zero_at, zero);
    }
    return TRUE;
}

gboolean hn_products_settle(HnProducts *p, GError **error)
{
    for (guint i = 0; i < p->copied->len; i++) {
        HnValue *q = p->copied->pdata[i];
        if (!read_unsigned(p, q, g_hash_table_lookup(p->unsigned_, q), error))
            return FALSE;
    }
    return TRUE;
}

/* --- sweeping ----------------------------------------------------------------------------------------------------- */

static void drop_weights(HnGraph *g)
{
    for (guint i = g->weights->len; i-- > 0;) {
        HnValue *v = g->weights->pdata[i];
        if (!hn_value_is_read(v) && !v->is_input)
            hn_graph_drop_value(v);
    }
}

/* What integers take the place of. */
static gboolean is_swept(const HnNode *n)
{
    return n->op == &hn_op_transpose || (n->op != NULL && n->op->channels.kind == HN_CH_STEP);
}

static void drop_nodes(HnGraph *g)
{
    for (guint i = g->nodes->len; i-- > 0;) {
        HnNode *n = g->nodes->pdata[i];
        if (is_swept(n) && !hn_node_is_read(n))
            hn_graph_remove_node(g, n);
    }
}

void hn_quant_drop_unused(HnGraph *g)
{
    for (guint i = 0; i < g->inner->len; i++)
        hn_quant_drop_unused(g->inner->pdata[i]);
    drop_nodes(g);
    drop_weights(g);
}
