#include "lower/qdq_value.h"

#include <math.h>
#include <string.h>

#include "op/quantize.h"
#include "op/quantlinear.h"
#include "op/quantbinary.h"
#include "op/quantpool.h"
#include "pass/pattern.h"

#define CHAIN 16   /* nodes that are looked back */
#define FORWARD 64 /* values that are looked at to find out what consumers want */

/* --- what nodes say ------------------------------------------------------------------------------------------------
 */

gboolean hn_qdq_is_byte(HnDtype d)
{
    return d == HN_U8 || d == HN_I8;
}

HnDtype hn_qdq_dtype(const HnRewrite *r, const HnValue *v)
{
    return v != NULL && hn_rw_fixed(r, v, NULL) ? hn_rw_dtype(r, v) : HN_UNDEFINED;
}

HnTensor *hn_qdq_known(gconstpointer r, HnValue *v)
{
    return hn_rw_known(r, v);
}

static int number_of(HnDtype dtype, int byte)
{
    return dtype == HN_I8 ? (int8_t)byte : byte;
}

gboolean hn_qdq_step(const HnRewrite *r, const HnNode *n, HnQdqStep *s)
{
    HnQParams q;
    if (!hn_op_qparams(n, hn_qdq_known, r, &q) || q.axis >= 0)
        return FALSE;
    const HnDtype dtype = hn_qdq_dtype(r, q.q);
    if (!hn_qdq_is_byte(dtype) || hn_qdq_dtype(r, q.real) != HN_F32 || (q.zero != NULL && q.zero->dtype != dtype))
        return FALSE;
    *s = (HnQdqStep){ dtype, (float)hn_tensor_get_f64(q.scale, 0),
                      q.zero != NULL ? (int)hn_tensor_get_i64(q.zero, 0) : 0, q.scale_of, q.zero_of };
    return isfinite(s->scale) && s->scale > 0;
}

gboolean hn_qdq_same_step(const HnQdqStep *a, const HnQdqStep *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

float hn_qdq_number(const HnQdqStep *s, int byte)
{
    return (float)(number_of(s->dtype, byte) - s->zero) * s->scale;
}

void hn_qdq_numbers(const HnQdqStep *s, float *value)
{
    for (int i = 0; i < HN_QDQ_BYTES; i++)
        value[i] = hn_qdq_number(s, i);
}

int hn_qdq_byte(const HnQdqStep *s, float v)
{
    const float lo = (float)((s->dtype == HN_I8 ? -128 : 0) - s->zero), hi = lo + 255;
    v = v / s->scale;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (uint8_t)((int)nearbyintf(v) + s->zero);
}

gboolean hn_qdq_limits(const HnRewrite *r, const HnNode *n, float *lo, float *hi)
{
    double from, to;
    if (!hn_pattern_bounds(r, n, &from, &to))
        return FALSE;
    *lo = (float)from;
    *hi = (float)to;
    return TRUE;
}

gboolean hn_qdq_takes_bytes(const HnNode *n)
{
    const HnQuantBytes how = hn_op_bytes(n);
    return how == HN_QB_MOVES || how == HN_QB_MOST || how == HN_QB_FILLS;
}

/* --- what consumers want -------------------------------------------------------------------------------------------
 */

static gboolean same_want(const HnQdqWant *a, const HnQdqWant *b)
{
    return hn_qdq_same_step(&a->step, &b->step) && a->lo == b->lo && a->hi == b->hi;
}

static gboolean wanted(const HnRewrite *r, const HnValue *v, int *left, HnQdqWant *w);

/* What node u, one of v's consumers, makes of it. */
static gboolean wanted_by(const HnRewrite *r, const HnNode *u, const HnValue *v, int *left, HnQdqWant *w)
{
    HnQdqWant other;
    float lo, hi;
    *w = (HnQdqWant){ .lo = -INFINITY, .hi = INFINITY };
    if (u->op == NULL)
        return FALSE;
    if (u->op == &hn_op_quantizelinear)
        return hn_node_in(u, 0) == v && hn_qdq_step(r, u, &w->step);
    const gboolean moves = hn_qdq_takes_bytes(u), limits = !moves && hn_qdq_limits(r, u, &lo, &hi);
    if (!moves && (!limits || hn_node_in(u, 0) != v))
        return FALSE;
    for (guint i = 0; i < u->in->len && moves; i++)
        if (u->in->pdata[i] == v && !hn_op_is_moved(u, (int)i))
            return FALSE;
    for (guint k = 0; k < u->out->len; k++)
        if (!wanted(r, hn_node_out(u, (int)k), left, k == 0 ? w : &other) || (k > 0 && !same_want(w, &other)))
            return FALSE;
    if (limits) {
        w->lo = MAX(w->lo, lo);
        w->hi = MIN(w->hi, hi);
    }
    return w->lo <= w->hi;
}

static gboolean wanted(const HnRewrite *r, const HnValue *v, int *left, HnQdqWant *w)
{
    HnQdqWant other;
    if (hn_qdq_dtype(r, v) != HN_F32 || v->users->len == 0 || v->is_output || --*left < 0)
        return FALSE;
    for (guint i = 0; i < v->users->len; i++)
        if (!wanted_by(r, v->users->pdata[i], v, left, i == 0 ? w : &other) || (i > 0 && !same_want(w, &other)))
            return FALSE;
    return TRUE;
}

gboolean hn_qdq_wanted(const HnRewrite *r, const HnValue *v, HnQdqWant *w)
{
    int left = FORWARD;
    return wanted(r, v, &left, w);
}

/* --- bytes that occur ----------------------------------------------------------------------------------------------
 */

/* The input that holds the scale of the result; -1: n is no such operator. */
static int scale_input(const HnOp *op)
{
    static const struct {
        const HnOp *op;
        int input;
    } makers[] = { { &hn_op_quantconv, HN_QUANT_Y_SCALE },
                   { &hn_op_quantmatmul, HN_QUANT_Y_SCALE },
                   { &hn_op_quantadd, HN_QUANTBINARY_Y_SCALE },
                   { &hn_op_quantmul, HN_QUANTBINARY_Y_SCALE },
                   { &hn_op_quantaveragepool, HN_MEAN_Y_SCALE } };
    for (guint i = 0; i < G_N_ELEMENTS(makers); i++)
        if (makers[i].op == op)
            return makers[i].input;
    return -1;
}

static float attr_number(const HnNode *n, const char *name, float otherwise)
{
    const HnAttr *a = hn_node_attr(n, name);
    return a != NULL ? a->f : otherwise;
}

/* Widens [*lo, *hi] by the bytes that b holds, as numbers. */
static void widen_span(const HnRewrite *r, const HnValue *b, int chain, int *lo, int *hi)
{
    const HnNode *n = b->producer;
    const HnDtype dtype = hn_rw_dtype(r, b);
    const int at = n != NULL ? scale_input(n->op) : -1;
    const HnTensor *scale = at >= 0 ? hn_rw_known(r, hn_node_in(n, at)) : NULL;
    const HnTensor *zero = at >= 0 ? hn_rw_known(r, hn_node_in(n, at + 1)) : NULL;
    if (scale != NULL && scale->n == 1 && (zero == NULL || zero->n == 1)) {
        const HnQuantProduct p = { .lo = attr_number(n, "lo", -INFINITY), .hi = attr_number(n, "hi", INFINITY) };
        const int z = zero != NULL ? (int)hn_tensor_get_i64(zero, 0) : 0;
        const HnQuantBounds bound = hn_quant_bounds(&p, dtype, (float)hn_tensor_get_f64(scale, 0), z);
        *lo = MIN(*lo, (int)bound.lo + z);
        *hi = MAX(*hi, (int)bound.hi + z);
        return;
    }
    const HnQuantBytes how = n != NULL && n->op != NULL ? hn_op_bytes(n) : HN_QB_NONE;
    if (chain == 0 || (how != HN_QB_MOVES && how != HN_QB_MOST)) {
        *lo = MIN(*lo, dtype == HN_I8 ? -128 : 0);
        *hi = MAX(*hi, dtype == HN_I8 ? 127 : 255);
        return;
    }
    const gboolean view = (n->op->flags & HN_OP_VIEW) != 0;
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL && (view ? i == 0 : hn_op_is_moved(n, (int)i)))
            widen_span(r, n->in->pdata[i], chain - 1, lo, hi);
}

gboolean hn_qdq_occurs(const HnQdqReal *h, int byte)
{
    const int n = number_of(h->dtype, byte);
    return n >= h->lo && n <= h->hi;
}

/* --- numbers that stand for bytes ----------------------------------------------------------------------------------
 */

gboolean hn_qdq_real(const HnRewrite *r, const HnValue *v, HnQdqReal *h)
{
    const HnNode *n = v != NULL && !v->is_output ? v->producer : NULL;
    if (n == NULL || n->op != &hn_op_bytetable || hn_qdq_dtype(r, v) != HN_F32)
        return FALSE;
    const HnTensor *table = hn_rw_known(r, hn_node_in(n, 1)), *scale = hn_rw_known(r, hn_node_in(n, 2));
    const HnTensor *zero = hn_rw_known(r, hn_node_in(n, 3));
    HnValue *bytes = hn_node_in(n, 0);
    if (table == NULL || table->dtype != HN_F32 || table->n != HN_QDQ_BYTES || scale == NULL || zero == NULL ||
        hn_rw_known(r, bytes) != NULL)
        return FALSE;
    h->bytes = bytes;
    h->dtype = hn_rw_dtype(r, bytes);
    h->step = (HnQdqStep){ zero->dtype, (float)hn_tensor_get_f64(scale, 0), (int)hn_tensor_get_i64(zero, 0),
                           hn_node_in(n, 2), hn_node_in(n, 3) };
    memcpy(h->value, table->data, sizeof h->value);
    h->plain = h->step.dtype == h->dtype;
    for (int i = 0; i < HN_QDQ_BYTES && h->plain; i++)
        h->plain = h->value[i] == hn_qdq_number(&h->step, i);
    h->lo = G_MAXINT;
    h->hi = G_MININT;
    widen_span(r, bytes, CHAIN, &h->lo, &h->hi);
    return TRUE;
}

gboolean hn_qdq_keeps(const HnQdqReal *h, const uint8_t *map, HnDtype dtype)
{
    gboolean same = h->dtype == dtype;
    for (int i = 0; i < HN_QDQ_BYTES && same; i++)
        same = !hn_qdq_occurs(h, i) || map[i] == i;
    return same;
}

gboolean hn_qdq_fits(const HnQdqReal *h, uint8_t *map)
{
    gboolean fits = TRUE;
    for (int i = 0; i < HN_QDQ_BYTES && h->plain; i++)
        map[i] = (uint8_t)i;
    for (int i = 0; i < HN_QDQ_BYTES && !h->plain; i++) {
        map[i] = (uint8_t)hn_qdq_byte(&h->step, h->value[i]);
        fits = fits && (!hn_qdq_occurs(h, i) || hn_qdq_number(&h->step, map[i]) == h->value[i]);
    }
    return fits;
}

HnValue *hn_qdq_as_bytes(HnRewrite *r, const HnNode *n, HnValue *v, HnQdqReal *h)
{
    uint8_t map[HN_QDQ_BYTES];
    (void)hn_qdq_fits(h, map);
    if (hn_qdq_keeps(h, map, h->step.dtype))
        return h->bytes;
    HnNode *m = hn_qdq_table(r, v->producer, n, h->bytes, h->step.dtype, map, NULL);
    HnValue *bytes = hn_rw_out(r, m, h->bytes->name);
    if (v->users->len > 1) { /* the others read the same bytes */
        float numbers[HN_QDQ_BYTES];
        hn_qdq_numbers(&h->step, numbers);
        hn_qdq_hold(r, v->producer, v, bytes, numbers, &h->step);
    }
    return bytes;
}

/* --- tables --------------------------------------------------------------------------------------------------------
 */

/* Of a tensor of that type, with v's dims. */
static HnTensor *like(const HnRewrite *r, const HnValue *v, HnDtype dtype)
{
    int64_t dims[HN_MAX_RANK];
    return hn_rw_fixed(r, v, dims) ? hn_tensor_new_borrowed(dtype, hn_rw_rank(r, v), dims, NULL) : NULL;
}

gboolean hn_qdq_table_runs(HnRewrite *r, const HnValue *bytes, HnDtype dtype)
{
    static const float zeros[HN_QDQ_BYTES];
    const int64_t n = HN_QDQ_BYTES;
    HnTensor *in[] = { hn_rw_tensor(r, bytes), hn_tensor_new_borrowed(dtype, 1, &n, (gpointer)zeros) };
    HnTensor *y = like(r, bytes, dtype);
    const gboolean runs = hn_rw_runs(r, &(HnDraft){ &hn_op_bytetable, NULL, in, 2, y });
    hn_tensor_unref(in[0]);
    hn_tensor_unref(in[1]);
    hn_tensor_unref(y);
    return runs;
}

static HnTensor *zero_of(const HnQdqStep *s)
{
    HnTensor *t = hn_tensor_new(s->dtype, 0, NULL, NULL, NULL);
    if (t != NULL)
        ((int8_t *)t->data)[0] = 0;
    return t;
}

HnNode *hn_qdq_table(HnRewrite *r, HnNode *before, const HnNode *of, HnValue *bytes, HnDtype dtype, const void *table,
                     const HnQdqStep *step)
{
    const int64_t n = HN_QDQ_BYTES;
    HnTensor *t = hn_tensor_new(dtype, 1, &n, hn_rw_budget(r), NULL);
    if (t != NULL)
        memcpy(t->data, table, t->bytes);
    HnValue *in[4] = { bytes, hn_rw_weight(r, before->graph, "table", t) };
    if (step != NULL) {
        in[2] = step->scale_of;
        in[3] = step->zero_of != NULL ? step->zero_of : hn_rw_weight(r, before->graph, "zero", zero_of(step));
    }
    HnNode *m = hn_rw_add_internal(r, before, &hn_op_bytetable, in, 4);
    hn_lower_credit(r, m, of);
    return m;
}

void hn_qdq_hold(HnRewrite *r, HnNode *before, HnValue *v, HnValue *bytes, const float *table, const HnQdqStep *step)
{
    hn_rw_take_value(r, hn_qdq_table(r, before, NULL, bytes, HN_F32, table, step), v);
}

/* --- integer operators ---------------------------------------------------------------------------------------------
 */

void hn_qdq_set(HnRewrite *r, HnQdqInputs *in, int i, HnValue *v)
{
    in->v[i] = v;
    hn_qdq_set_tensor(in, i, v != NULL ? hn_rw_tensor(r, v) : NULL);
}

void hn_qdq_set_tensor(HnQdqInputs *in, int i, HnTensor *t)
{
    hn_tensor_unref(in->t[i]);
    in->t[i] = t;
    in->n = MAX(in->n, i + 1);
}

void hn_qdq_set_step(HnRewrite *r, HnQdqInputs *in, int i, const HnQdqStep *s)
{
    hn_qdq_set(r, in, i, s->scale_of);
    hn_qdq_set(r, in, i + 1, s->zero_of);
    if (s->zero_of == NULL)
        hn_qdq_set_tensor(in, i + 1, zero_of(s));
}

void hn_qdq_set_bytes(HnRewrite *r, HnQdqInputs *in, int i, const HnQdqReal *h)
{
    hn_qdq_set_tensor(in, i, like(r, h->bytes, h->step.dtype));
}

void hn_qdq_clear(HnQdqInputs *in)
{
    for (int i = 0; i < in->n; i++)
        hn_tensor_unref(in->t[i]);
}

gboolean hn_qdq_runs(HnRewrite *r, const HnOp *op, gconstpointer params, const HnQdqInputs *in, const HnValue *y,
                     HnDtype dtype)
{
    HnTensor *out = like(r, y, dtype);
    const gboolean runs = hn_rw_runs(r, &(HnDraft){ op, params, in->t, in->n, out });
    hn_tensor_unref(out);
    return runs;
}

HnNode *hn_qdq_add(HnRewrite *r, HnNode *n, const HnOp *op, HnQdqInputs *in, const HnNode *like)
{
    for (int i = 0; i < in->n; i++)
        if (in->v[i] == NULL && in->t[i] != NULL)
            in->v[i] = hn_rw_weight(r, n->graph, "step", hn_tensor_ref(in->t[i]));
    HnNode *m = hn_rw_add_internal(r, n, op, in->v, in->n);
    if (like != NULL)
        hn_node_share_attrs(m, like);
    hn_lower_credit(r, m, n);
    return m;
}

void hn_qdq_set_limits(HnNode *m, float lo, float hi)
{
    if (isfinite(lo))
        hn_node_set_float(m, "lo", lo);
    if (isfinite(hi))
        hn_node_set_float(m, "hi", hi);
}

gboolean hn_qdq_put(HnRewrite *r, HnNode *m, HnNode *before, HnValue *y, const HnQdqWant *want)
{
    if (want == NULL)
        return hn_rw_take_value(r, m, y);
    float numbers[HN_QDQ_BYTES];
    hn_qdq_numbers(&want->step, numbers);
    hn_qdq_hold(r, before, y, hn_rw_out(r, m, y->name), numbers, &want->step);
    return TRUE;
}
