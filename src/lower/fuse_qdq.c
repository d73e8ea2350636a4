/*
 * Quantized models: what stands between DequantizeLinear and QuantizeLinear, computed with integers.
 *
 * What DequantizeLinear makes of bytes is one number for each of 256 bytes, and so is any element-wise function of it:
 * a hone.ByteTable. QuantizeLinear of such a value is a table from bytes to bytes, which often changes nothing. Moves
 * and maxima take the bytes as they are; convolutions and products with constant weights, sums, products and means of
 * two such values become hone.Quant*, whose result is quantized at once where all consumers quantize it alike.
 *
 * Results are those of the nodes one by one, but for the last digit of sums.
 */
#include <math.h>
#include <string.h>

#include "lower/qdq_value.h"

#define DEEP 8 /* element-wise nodes on the way to a value, that are looked back */

/* --- functions of one operand --------------------------------------------------------------------------------------
 */

/* 256 numbers for each value that such nodes read: a constant, or a function of the bytes. */
typedef struct {
    const HnRewrite *r;
    HnValue *bytes;   /* NULL: none was met yet */
    HnQdqStep step;   /* of the first value that stands for them */
    GHashTable *made; /* HnValue * -> HnTensor *, of nodes that are no tables yet */
    int deep;         /* nodes before this one that may become some */
} Function;

static HnTensor *eval_table(Function *f, const HnNode *n);

static HnTensor *input_table(Function *f, HnValue *v)
{
    HnTensor *t = g_hash_table_lookup(f->made, v);
    HnQdqReal h;
    if (t != NULL)
        return hn_tensor_ref(t);
    if ((t = hn_rw_known(f->r, v)) != NULL)
        return t->n == 1 && t->dtype == HN_F32 ? hn_tensor_reshaped(t, 0, NULL) : NULL;
    if (hn_qdq_real(f->r, v, &h)) {
        if (f->bytes != NULL && f->bytes != h.bytes)
            return NULL;
        if (f->bytes == NULL)
            f->step = h.step;
        f->bytes = h.bytes;
        return hn_tensor_ref(hn_rw_known(f->r, hn_node_in(v->producer, 1)));
    }
    if (f->deep == 0 || v->producer == NULL)
        return NULL;
    f->deep--;
    t = eval_table(f, v->producer);
    f->deep++;
    return t;
}

/* One node on tables: a new tensor of 256 numbers; NULL: it is no function of one operand's bytes. */
static HnTensor *eval_table(Function *f, const HnNode *n)
{
    HnTensor *in[8] = { NULL }, *out[1] = { NULL };
    gboolean ok = n->op != NULL && n->in->len <= G_N_ELEMENTS(in) && (n->op->flags & HN_OP_ELEMENTWISE) != 0 &&
                  (n->op->flags & (HN_OP_RANDOM | HN_OP_CONTROL)) == 0 && (n->version >= 7 || n->in->len == 1) &&
                  hn_qdq_dtype(f->r, hn_node_out(n, 0)) == HN_F32;
    for (guint k = 1; k < n->out->len; k++)
        ok = ok && n->out->pdata[k] == NULL;
    for (guint i = 0; i < n->in->len && ok; i++)
        ok = n->in->pdata[i] == NULL || (in[i] = input_table(f, n->in->pdata[i])) != NULL;
    ok = ok && f->bytes != NULL && hn_rw_same_shape(f->r, f->bytes, hn_node_out(n, 0));
    HnEval e = { .node = n, .params = n->params, .n_in = (int)n->in->len, .n_out = 1, .in = in, .out = out };
    g_autoptr(GError) failure = NULL;
    ok = ok && hn_op_eval(&e, &failure);
    for (guint i = 0; i < G_N_ELEMENTS(in); i++)
        hn_tensor_unref(in[i]);
    if (ok && out[0]->n == HN_QDQ_BYTES && out[0]->dtype == HN_F32)
        return out[0];
    hn_tensor_unref(out[0]);
    return NULL;
}

/* These numbers are some of the step's, so that bytes can stand for them. */
static gboolean is_quantized(const Function *f, const HnTensor *t)
{
    const float *v = t->data;
    for (int i = 0; i < HN_QDQ_BYTES; i++)
        if (hn_qdq_number(&f->step, hn_qdq_byte(&f->step, v[i])) != v[i])
            return FALSE;
    return TRUE;
}

/* Only limits stand behind u among those that compute on its result element by element. */
static gboolean is_limited_only(const HnRewrite *r, const HnNode *u)
{
    float lo, hi;
    while ((u = hn_qdq_elementwise_reader(r, hn_node_out(u, 0))) != NULL)
        if (!hn_qdq_limits(r, u, &lo, &hi))
            return FALSE;
    return TRUE;
}

/* A table for v, t: unless f32 kernels compute with it along with other values, which costs them less. */
static gboolean pays(Function *f, const HnValue *v, HnTensor *t)
{
    f->deep = DEEP;
    g_hash_table_insert(f->made, (gpointer)v, hn_tensor_ref(t));
    for (const HnNode *u; (u = hn_qdq_elementwise_reader(f->r, v)) != NULL; v = hn_node_out(u, 0)) {
        HnTensor *next = eval_table(f, u);
        if (next == NULL)
            return u->op->quant.bytes == HN_QB_PAIR && is_limited_only(f->r, u) && is_quantized(f, t);
        g_hash_table_insert(f->made, hn_node_out(u, 0), next);
        t = next;
    }
    return TRUE;
}

static gboolean fuse_function(HnRewrite *r, HnNode *n)
{
    HnValue *v = hn_node_out(n, 0);
    if (v->is_output)
        return FALSE;
    g_autoptr(GHashTable) made = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_tensor_unref);
    Function f = { .r = r, .made = made };
    HnTensor *t = eval_table(&f, n);
    const gboolean ok = t != NULL && pays(&f, v, t) && hn_qdq_table_runs(r, f.bytes, HN_F32) && hn_rw_go(r, n);
    if (ok)
        hn_qdq_hold(r, n, v, f.bytes, t->data, &f.step);
    hn_tensor_unref(t);
    return ok;
}

/* --- bytes for bytes -----------------------------------------------------------------------------------------------
 */

/* All consumers of q make numbers of it, in these steps: it needs no bytes of its own. */
static gboolean is_only_dequantized(const HnRewrite *r, const HnValue *q, const HnQdqStep *s)
{
    gboolean all = !q->is_output && q->users->len > 0;
    for (guint i = 0; all && i < q->users->len; i++) {
        const HnNode *u = q->users->pdata[i];
        HnQdqStep back;
        all = u->op == &hn_op_dequantizelinear && hn_node_in(u, 0) == q && hn_qdq_step(r, u, &back) &&
              hn_qdq_same_step(&back, s) && !hn_node_out(u, 0)->is_output;
    }
    return all;
}

/* What makes the bytes that v stands for can exchange them by a table at once, and nobody else wants them. */
static gboolean is_exchanged_by_maker(const HnQdqReal *h, const HnValue *v)
{
    static const HnOp *const makers[] = { &hn_op_quantconv,   &hn_op_quantmatmul,      &hn_op_quantadd,
                                          &hn_op_quantmul,    &hn_op_quantaveragepool, &hn_op_maxpool,
                                          &hn_op_qlinearconv, &hn_op_qlinearmatmul };
    const HnNode *m = h->bytes->producer;
    if (m == NULL || m->out->len != 1 || !hn_rw_single(h->bytes) || v->users->len != 1)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(makers); i++)
        if (m->op == makers[i])
            return TRUE;
    return FALSE;
}

/* q's consumers, which are DequantizeLinear, read a table of the bytes before q: what comes behind may be a function of
 * these. */
static void skip_quantized(HnRewrite *r, HnNode *n, const HnQdqReal *h, const uint8_t *map, const HnQdqStep *s)
{
    float numbers[HN_QDQ_BYTES];
    g_autoptr(GPtrArray) made = g_ptr_array_new();
    const HnValue *q = hn_node_out(n, 0);
    for (guint i = 0; i < q->users->len; i++)
        g_ptr_array_add(made, hn_node_out(q->users->pdata[i], 0));
    for (int i = 0; i < HN_QDQ_BYTES; i++)
        numbers[i] = hn_qdq_number(s, map[i]);
    hn_qdq_hold(r, n, made->pdata[0], h->bytes, numbers, s);
    for (guint i = 1; i < made->len; i++)
        hn_rw_replace(r, made->pdata[i], made->pdata[0]);
}

static gboolean fuse_quantize(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0), *q = hn_node_out(n, 0);
    uint8_t map[HN_QDQ_BYTES];
    HnQdqReal h;
    HnQdqStep s;
    if (!hn_qdq_real(r, x, &h) || !hn_qdq_step(r, n, &s))
        return FALSE;
    for (int i = 0; i < HN_QDQ_BYTES; i++)
        map[i] = (uint8_t)hn_qdq_byte(&s, h.value[i]);
    const gboolean changes = !hn_qdq_keeps(&h, map, s.dtype);
    if (!changes && !q->is_output) {
        if (!hn_rw_go(r, n))
            return FALSE;
        hn_rw_replace(r, q, h.bytes);
        return TRUE;
    }
    if (changes && is_only_dequantized(r, q, &s) && !is_exchanged_by_maker(&h, x)) {
        if (!hn_rw_go(r, n))
            return FALSE;
        skip_quantized(r, n, &h, map, &s);
        return TRUE;
    }
    if (!hn_qdq_table_runs(r, h.bytes, s.dtype) || !hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, hn_qdq_table(r, n, n, h.bytes, s.dtype, map, NULL), n);
}

static gboolean fuse_dequantize(HnRewrite *r, HnNode *n)
{
    HnValue *q = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    float numbers[HN_QDQ_BYTES];
    HnQdqStep s;
    if (hn_rw_known(r, q) != NULL || !hn_qdq_step(r, n, &s) || v->is_output || !hn_qdq_table_runs(r, q, HN_F32) ||
        !hn_rw_go(r, n))
        return FALSE;
    hn_qdq_numbers(&s, numbers);
    hn_qdq_hold(r, n, v, q, numbers, &s);
    return TRUE;
}

/* --- moves ---------------------------------------------------------------------------------------------------------
 */

/* Larger bytes are larger numbers. */
static gboolean is_rising(const HnQdqReal *h)
{
    float before = -INFINITY;
    for (int k = h->lo; k <= h->hi; k++) {
        const float v = h->value[(uint8_t)k];
        if (!(v >= before))
            return FALSE;
        before = v;
    }
    return TRUE;
}

static gboolean same_numbers(const HnQdqReal *a, const HnQdqReal *b)
{
    if (a->dtype != b->dtype)
        return FALSE;
    for (int i = 0; i < HN_QDQ_BYTES; i++)
        if ((hn_qdq_occurs(a, i) || hn_qdq_occurs(b, i)) && !(a->value[i] == b->value[i]))
            return FALSE;
    return TRUE;
}

/* h as bytes of its step, if it can be. */
static void take_step(HnQdqReal *h)
{
    uint8_t map[HN_QDQ_BYTES];
    if (!hn_qdq_fits(h, map))
        return;
    if (!hn_qdq_keeps(h, map, h->step.dtype)) {
        h->lo = h->step.dtype == HN_I8 ? -128 : 0;
        h->hi = h->lo + 255;
    }
    h->dtype = h->step.dtype;
    hn_qdq_numbers(&h->step, h->value);
}

/* What n moves may be of dtype. */
static gboolean may_be(const HnNode *n, HnDtype dtype)
{
    return n->op->in[0] == 'T' && hn_dtype_in(dtype, n->op->T);
}

static gboolean is_moved(const HnNode *n, guint i)
{
    return n->in->pdata[i] != NULL && hn_op_is_moved(n, (int)i);
}

/* All that n moves stands for bytes, and alike: into *first. as_steps: as bytes of steps of their own. */
static gboolean moved_alike(const HnRewrite *r, const HnNode *n, gboolean as_steps, HnQdqReal *first)
{
    HnQdqReal h;
    gboolean any = FALSE;
    for (guint i = 0; i < n->in->len; i++) {
        if (!is_moved(n, i))
            continue;
        if (!hn_qdq_real(r, n->in->pdata[i], &h))
            return FALSE;
        if (as_steps)
            take_step(&h);
        if (any && !same_numbers(first, &h))
            return FALSE;
        if (!any)
            *first = h;
        any = TRUE;
    }
    return any && (n->op->quant.bytes != HN_QB_MOST || is_rising(first));
}

static gboolean moves_reals(const HnRewrite *r, const HnNode *n)
{
    HnQdqReal h;
    for (guint i = 0; i < n->in->len; i++)
        if (is_moved(n, i) && !hn_qdq_real(r, n->in->pdata[i], &h))
            return FALSE;
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL &&
            (((const HnValue *)n->out->pdata[k])->is_output || hn_qdq_dtype(r, n->out->pdata[k]) != HN_F32))
            return FALSE;
    return TRUE;
}

#define FILLER 2 /* input */

/* How n moves bytes. */
typedef struct {
    enum { AS_THEY_ARE, AS_STEPS, AS_WANTED } how;
    HnDtype dtype;  /* of the bytes */
    HnQdqStep step; /* as that of HnQdqReal */
    HnQdqWant want;
    float value[HN_QDQ_BYTES]; /* that they stand for */
    int filler;                /* the byte that n fills up with */
} Move;

/* The byte that stands for what n fills up with; FALSE: there is none. */
static gboolean find_filler(const HnRewrite *r, const HnNode *n, Move *m)
{
    const HnTensor *t = hn_rw_known(r, hn_node_in(n, FILLER));
    if (hn_node_in(n, FILLER) != NULL && (t == NULL || t->n != 1 || t->dtype != HN_F32))
        return FALSE;
    const float v = t != NULL ? (float)hn_tensor_get_f64(t, 0) : 0;
    m->filler = m->how == AS_WANTED ? hn_qdq_byte(&m->want.step, CLAMP(v, m->want.lo, m->want.hi)) : 0;
    while (m->how != AS_WANTED && m->filler < HN_QDQ_BYTES && m->value[m->filler] != v)
        m->filler++;
    return m->filler < HN_QDQ_BYTES;
}

static gboolean find_move(const HnRewrite *r, const HnNode *n, Move *m)
{
    HnQdqReal h;
    const gboolean wanted = hn_qdq_wanted(r, hn_node_out(n, 0), &m->want);
    m->how = moved_alike(r, n, FALSE, &h) ? AS_THEY_ARE : !wanted && moved_alike(r, n, TRUE, &h) ? AS_STEPS : AS_WANTED;
    if (m->how == AS_WANTED && (!wanted || n->out->len != 1))
        return FALSE;
    m->step = m->how == AS_WANTED ? m->want.step : h.step;
    m->dtype = m->how == AS_WANTED ? m->want.step.dtype : h.dtype;
    if (m->how == AS_WANTED)
        hn_qdq_numbers(&m->step, m->value);
    else
        memcpy(m->value, h.value, sizeof m->value);
    return n->op->quant.bytes != HN_QB_FILLS || find_filler(r, n, m);
}

/* x's bytes in steps that are wanted, for a concatenation of several kinds. */
static HnValue *in_wanted_steps(HnRewrite *r, HnNode *n, const HnQdqReal *h, const HnQdqWant *want)
{
    uint8_t map[HN_QDQ_BYTES];
    for (int i = 0; i < HN_QDQ_BYTES; i++)
        map[i] = (uint8_t)hn_qdq_byte(&want->step, CLAMP(h->value[i], want->lo, want->hi));
    if (hn_qdq_keeps(h, map, want->step.dtype))
        return h->bytes;
    return hn_rw_out(r, hn_qdq_table(r, n, n, h->bytes, want->step.dtype, map, NULL), h->bytes->name);
}

/* n once more, in front of it, with bytes. Outputs are new values. */
static HnNode *copy_on_bytes(HnRewrite *r, HnNode *n, HnValue *const *in, int n_in)
{
    HnNode *m =
        n->op->domain != NULL ? hn_rw_add_internal(r, n, n->op, in, n_in) : hn_rw_add(r, n, n->op_type, in, n_in);
    m->version = n->version;
    hn_node_share_attrs(m, n);
    hn_lower_credit(r, m, n);
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        hn_node_add_out(m, v != NULL ? hn_graph_new_value(n->graph, v->name) : NULL);
    }
    hn_rw_done(r, m);
    return m;
}

static void hold_results(HnRewrite *r, HnNode *n, const HnNode *m, const float *value, const HnQdqStep *step)
{
    for (guint k = 0; k < m->out->len; k++)
        if (m->out->pdata[k] != NULL)
            hn_qdq_hold(r, n, n->out->pdata[k], m->out->pdata[k], value, step);
}

static void set_moved(HnRewrite *r, const HnNode *n, const Move *m, HnQdqInputs *in)
{
    for (int i = 0; i < (int)n->in->len; i++) {
        HnValue *v = hn_node_in(n, i);
        HnQdqReal h;
        if (v == NULL || !is_moved(n, (guint)i)) {
            hn_qdq_set(r, in, i, v);
            continue;
        }
        (void)hn_qdq_real(r, v, &h);
        h.step.dtype = m->dtype;
        hn_qdq_set_bytes(r, in, i, &h);
    }
    if (n->op->quant.bytes != HN_QB_FILLS)
        return;
    HnTensor *t = hn_tensor_new(m->dtype, 0, NULL, NULL, NULL);
    if (t != NULL)
        ((uint8_t *)t->data)[0] = (uint8_t)m->filler;
    in->v[FILLER] = NULL;
    hn_qdq_set_tensor(in, FILLER, t);
}

static gboolean fuse_move(HnRewrite *r, HnNode *n)
{
    HnQdqInputs in = { .n = 0 };
    Move m;
    if (n->in->len > HN_QDQ_INPUTS || !moves_reals(r, n) || !find_move(r, n, &m) || !may_be(n, m.dtype))
        return FALSE;
    set_moved(r, n, &m, &in);
    const gboolean ok = hn_qdq_runs(r, n->op, n->params, &in, hn_node_out(n, 0), m.dtype) && hn_rw_go(r, n);
    for (int i = 0; ok && i < (int)n->in->len; i++) {
        HnQdqReal h;
        if (!is_moved(n, (guint)i) || !hn_qdq_real(r, hn_node_in(n, i), &h))
            continue;
        in.v[i] = m.how == AS_THEY_ARE ? h.bytes
                  : m.how == AS_STEPS  ? hn_qdq_as_bytes(r, n, hn_node_in(n, i), &h)
                                       : in_wanted_steps(r, n, &h, &m.want);
    }
    if (ok && n->op->quant.bytes == HN_QB_FILLS)
        in.v[FILLER] = hn_rw_weight(r, n->graph, "filler", hn_tensor_ref(in.t[FILLER]));
    if (ok)
        hold_results(r, n, copy_on_bytes(r, n, in.v, in.n), m.value, &m.step);
    hn_qdq_clear(&in);
    return ok;
}

static gboolean fuse_view(HnRewrite *r, HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    HnQdqReal h;
    if (v->is_output || n->in->len > HN_QDQ_INPUTS || hn_qdq_dtype(r, v) != HN_F32)
        return FALSE;
    if (!hn_qdq_real(r, hn_node_in(n, 0), &h) || !may_be(n, h.dtype) || !hn_rw_go(r, n))
        return FALSE;
    HnValue *in[HN_QDQ_INPUTS] = { h.bytes };
    for (int i = 1; i < (int)n->in->len; i++)
        in[i] = hn_node_in(n, i);
    hold_results(r, n, copy_on_bytes(r, n, in, (int)n->in->len), h.value, &h.step);
    return TRUE;
}

/* --- all -----------------------------------------------------------------------------------------------------------
 */

static gboolean fuse_qdq(HnRewrite *r, HnNode *n)
{
    if (n->op == NULL || hn_node_out(n, 0) == NULL || hn_rw_known(r, hn_node_out(n, 0)) != NULL)
        return FALSE;
    if (n->op == &hn_op_quantizelinear)
        return fuse_quantize(r, n);
    if (n->op == &hn_op_dequantizelinear)
        return fuse_dequantize(r, n);
    if ((n->op->flags & HN_OP_VIEW) != 0)
        return fuse_view(r, n);
    if ((n->op->flags & HN_OP_ELEMENTWISE) != 0)
        return fuse_function(r, n) || hn_qdq_binary(r, n);
    if (n->op == &hn_op_quantconv || n->op == &hn_op_quantmatmul)
        return hn_qdq_requantize(r, n);
    if (hn_qdq_takes_bytes(n))
        return fuse_move(r, n);
    if (n->op->quant.bytes == HN_QB_MEAN)
        return hn_qdq_mean(r, n);
    return n->op->quant.kind == HN_Q_WEIGHTED && hn_qdq_product(r, n);
}

const HnPass hn_pass_fuse_qdq = {
    .name = "fuse-qdq",
    .summary = "integers where numbers are quantized again, and tables for functions of bytes",
    .level = 2,
    .node = fuse_qdq,
};
