#include "quant/qoperator.h"

#include <math.h>

#include "op/clip.h"
#include "op/linear.h"
#include "op/ops.h"
#include "op/quantize.h"
#include "op/unbind.h"
#include "quant/integer_product.h"

gboolean hn_quant_check(const HnQuantOptions *o, gboolean dynamic, GError **error)
{
    if (dynamic && (o->activations != HN_U8 || o->symmetric))
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE,
                            "activations that are quantized as they come are u8 with any zero point: leave out "
                            "'--activations s8' and '--symmetric', or take '--mode static'");
    else if (o->integers && o->activations != HN_U8 && !o->per_tensor)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE,
                            "s8 activations and a scale for each channel do not go together as integer operators; "
                            "'--activations u8' does, or '--per-tensor', or '--format qdq'");
    else
        return TRUE;
    return FALSE;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* The only node that reads v, which is nothing else's. */
static HnNode *reader_of(const HnValue *v)
{
    return v->users->len == 1 && !v->is_output ? v->users->pdata[0] : NULL;
}

/* The step of QuantizeLinear n: one scale, a zero point, both constant. */
static gboolean step_of(const HnNode *n, HnQuantized *q)
{
    HnQParams p;
    if (!hn_op_qparams(n, NULL, NULL, &p) || p.back || p.zero == NULL || p.axis >= 0)
        return FALSE;
    *q = (HnQuantized){ p.q, p.scale_of, p.zero_of, -1, FALSE, FALSE };
    return p.zero->dtype == HN_U8 || p.zero->dtype == HN_I8;
}

static gboolean same_step(const HnQuantized *a, const HnQuantized *b)
{
    if (a->axis != -1 || b->axis != -1 || a->zero == NULL || b->zero == NULL || a->scale->weight->n != 1)
        return FALSE;
    return a->zero->weight->dtype == b->zero->weight->dtype &&
           hn_tensor_get_f64(a->scale->weight, 0) == hn_tensor_get_f64(b->scale->weight, 0) &&
           hn_tensor_get_i64(a->zero->weight, 0) == hn_tensor_get_i64(b->zero->weight, 0);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const HnValue *v = hn_node_in(of, i);
    if (v != NULL && v->weight != NULL && v->weight->n == 1)
        *x = hn_tensor_get_f64(v->weight, 0);
    return v == NULL || (v->weight != NULL && v->weight->n == 1);
}

static int quantized(double x, const HnQuantized *q, int least, int most)
{
    const double s = hn_tensor_get_f64(q->scale->weight, 0), z = (double)hn_tensor_get_i64(q->zero->weight, 0);
    return (int)fmin(fmax(rint(x / s) + z, least), most);
}

/* Integers within what the limits of n become, in the place of n and the QuantizeLinear behind it. */
static HnValue *limited(HnNode *n, const HnQuantized *y, HnValue *q, HnBudget *budget, GError **error)
{
    const HnDtype dtype = y->zero->weight->dtype;
    const int least = dtype == HN_U8 ? 0 : -128, most = least + 255;
    double lo = -INFINITY, hi = INFINITY;
    if (!hn_op_bounds(n->op, n->params, read_bound, n, &lo, &hi))
        return NULL;
    const int a = quantized(lo, y, least, most), b = quantized(hi, y, least, most);
    if (a == least && b == most)
        return q;
    HnValue *bound[2];
    for (int i = 0; i < 2; i++) {
        HnTensor *t = hn_tensor_new(dtype, 0, NULL, budget, error);
        if (t == NULL)
            return NULL;
        hn_tensor_set_i64(t, 0, i == 0 ? a : b);
        g_autofree char *stem = g_strconcat(q->name, i == 0 ? "_min" : "_max", NULL);
        bound[i] = hn_quant_constant(n->graph, stem, t);
    }
    g_autofree char *stem = g_strconcat(q->name, "_limited", NULL);
    return hn_quant_node(n->graph, "Clip", stem, (HnValue *const[]){ q, bound[0], bound[1], NULL }, NULL);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

typedef struct {
    HnProducts products;
    GError *error;
    HnBudget *budget;
} Make;

/* i32 in units of both scales, as QLinearConv takes it; absent is fine. */
static gboolean integer_bias(const HnNode *n, const HnQuantized *x, const HnQuantized *w, HnValue **bias)
{
    const HnValue *v = hn_node_in(n, 2);
    const HnNode *d = v != NULL ? v->producer : NULL;
    *bias = NULL;
    if (v == NULL)
        return TRUE;
    HnQParams p;
    if (!hn_op_qparams(d, NULL, NULL, &p) || !p.back || p.axis >= 0 || p.zero_of != NULL || p.q->weight == NULL)
        return FALSE;
    const float unit = ((const float *)x->scale->weight->data)[0] * ((const float *)w->scale->weight->data)[0];
    if (p.q->weight->dtype != HN_I32 || (float)hn_tensor_get_f64(p.scale, 0) != unit)
        return FALSE;
    *bias = p.q;
    return TRUE;
}

/* One scale, and no factors that QLinearMatMul has no place for. */
static gboolean is_linear(const HnNode *n, const HnQuantized *x, const HnQuantized *w, HnValue **bias)
{
    HnLinearView l;
    *bias = NULL;
    if (w->axis != -1 || w->zero == NULL || x->zero == NULL || !hn_op_linear(n, &l))
        return FALSE;
    if (l.window != NULL)
        return integer_bias(n, x, w, bias);
    return l.b == NULL && l.alpha == 1 && !l.x_turned;
}

/* QLinearConv or QLinearMatMul, with what limits the result and quantizes it. */
static gboolean linear(Make *m, HnNode *n, const HnQuantized *x, const HnQuantized *w, HnValue *bias)
{
    HnNode *limit = reader_of(hn_node_out(n, 0)), *last = limit, *made;
    HnQuantized y;
    double lo = -INFINITY, hi = INFINITY;
    if (limit != NULL && limit->op != NULL && limit->op->quant.clamps && limit->graph == n->graph &&
        hn_op_bounds(limit->op, limit->params, read_bound, limit, &lo, &hi))
        last = reader_of(hn_node_out(limit, 0));
    else
        limit = NULL;
    if (!step_of(last, &y) || last->graph != n->graph)
        return FALSE;
    const gboolean conv = hn_quant_is_conv(n);
    HnValue *wq = conv ? w->q : hn_quant_matrix(&m->products, n, w, &m->error);
    if (wq == NULL)
        return FALSE;
    g_autofree char *stem = g_strconcat(hn_node_out(n, 0)->name, "_q", NULL);
    HnValue *q = hn_quant_node(
        n->graph, conv ? "QLinearConv" : "QLinearMatMul", stem,
        (HnValue *const[]){ x->q, x->scale, x->zero, wq, w->scale, w->zero, y.scale, y.zero, bias, NULL }, &made);
    if (conv)
        hn_quant_copy_attrs(n, made);
    if (limit != NULL)
        q = limited(limit, &y, q, m->budget, &m->error);
    if (q == NULL)
        return FALSE;
    g_autoptr(HnType) type = y.q->type != NULL ? hn_type_ref(y.q->type) : NULL;
    hn_value_set_type(q, type);
    hn_value_replace(y.q, q);
    hn_graph_remove_node(last->graph, last);
    if (limit != NULL)
        hn_graph_remove_node(limit->graph, limit);
    hn_graph_remove_node(n->graph, n);
    return TRUE;
}

static void make_product(Make *m, HnNode *n)
{
    HnQuantized x, w;
    HnValue *bias;
    if (!hn_quantized_weight(n, &w) || !hn_quantized_of(hn_node_in(n, 0), &x) || x.axis != -1)
        return;
    if (is_linear(n, &x, &w, &bias) && linear(m, n, &x, &w, bias))
        return;
    if (m->error == NULL && hn_node_in(n, 0)->type != NULL && x.zero != NULL && x.zero->weight->dtype == HN_U8)
        hn_quant_product(&m->products, n, &x, &w, &m->error);
}

/* --- what moves numbers ------------------------------------------------------------------------------------------- */

/* Moves integers as it moves floats. */
static gboolean is_move(const HnNode *n, HnDtype dtype)
{
    const HnQuantBytes how = hn_op_bytes(n);
    return (how == HN_QB_MOVES || how == HN_QB_MOST) &&
           hn_dtype_in(dtype, hn_op_types(n->op, n->op->in[0], n->version));
}

/* All floats that n reads and what it makes are of one step: it may as well see the integers. */
static void make_move(HnNode *n)
{
    HnQuantized y, x;
    HnNode *last = n->out->len == 1 ? reader_of(hn_node_out(n, 0)) : NULL;
    if (!step_of(last, &y) || last->graph != n->graph || !is_move(n, y.zero->weight->dtype))
        return;
    for (guint i = 0; i < n->in->len; i++)
        if (hn_op_is_moved(n, (int)i) && (!hn_quantized_of(n->in->pdata[i], &x) || !same_step(&x, &y)))
            return;
    for (guint i = 0; i < n->in->len; i++)
        if (hn_op_is_moved(n, (int)i) && hn_quantized_of(n->in->pdata[i], &x))
            hn_node_set_in(n, (int)i, x.q);
    HnValue *old = hn_node_out(n, 0), *q = y.q;
    hn_node_set_in(last, 0, NULL);
    hn_node_set_out(n, 0, q);
    hn_graph_remove_node(last->graph, last);
    hn_graph_drop_value(old);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void list_products(HnNode *n, gpointer data)
{
    if (n->op != NULL && n->op->quant.kind == HN_Q_WEIGHTED)
        g_ptr_array_add(data, n);
}

static void list_moves(HnNode *n, gpointer data)
{
    if (hn_op_bytes(n) == HN_QB_MOVES || hn_op_bytes(n) == HN_QB_MOST)
        g_ptr_array_add(data, n);
}

gboolean hn_quant_make_integers(HnModel *m, HnBudget *budget, GError **error)
{
    g_autoptr(GPtrArray) products = g_ptr_array_new(), places = g_ptr_array_new();
    Make k = { .budget = budget };
    hn_products_init(&k.products, budget);
    hn_graph_foreach_node(m->graph, list_products, products);
    hn_graph_foreach_node(m->graph, list_moves, places);
    for (guint i = 0; i < products->len && k.error == NULL; i++)
        make_product(&k, products->pdata[i]);
    for (guint i = 0; i < places->len && k.error == NULL; i++)
        make_move(places->pdata[i]);
    if (k.error == NULL)
        hn_products_settle(&k.products, &k.error);
    hn_products_clear(&k.products);
    hn_quant_drop_unused(m->graph);
    if (k.error == NULL)
        return TRUE;
    g_propagate_error(error, k.error);
    return FALSE;
}
