/*
 * Planning: numbers held as bytes.
 *
 * What DequantizeLinear makes of bytes is one number for each of 256 bytes, and so is any element-wise function of it:
 * such a value needs no memory of its own, only a table (HnQdqValue). Values share the slot of the bytes. Whoever can
 * work with bytes does: moves and maxima as they are, convolutions and products with constant weights as integers, and
 * QuantizeLinear as a table from bytes to bytes, which often changes nothing. Others get the numbers by a step of their
 * own (hn_plan_numbers()). A result that nobody but QuantizeLinear wants (HnRequantize) is made as its bytes at once.
 *
 * The model stays as it is; results are those of its nodes one by one, but for the last digit of sums.
 */
#include <math.h>
#include <string.h>

#include "op/clip.h"
#include "op/ops.h"
#include "op/quantize.h"
#include "run/qdq_fusion.h"

/* --- what nodes say ------------------------------------------------------------------------------------------------
 */

gboolean hn_qdq_is_byte(HnDtype d)
{
    return d == HN_U8 || d == HN_I8;
}

HnDtype hn_qdq_dtype(const HnPlan *p, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(p->types, v) : NULL;
    return t != NULL && hn_type_is_fixed(t, NULL) ? t->dtype : HN_UNDEFINED;
}

static int number_of(HnDtype dtype, int byte)
{
    return dtype == HN_I8 ? (int8_t)byte : byte;
}

HnTensor *hn_qdq_known(gconstpointer types, HnValue *v)
{
    return hn_types_value(types, v);
}

/* n quantizes or dequantizes bytes with one scale, which is known. */
static gboolean step_of(const HnPlan *p, const HnNode *n, HnQparams *s)
{
    HnQParams q;
    if (!hn_op_qparams(n, hn_qdq_known, p->types, &q) || q.axis >= 0)
        return FALSE;
    const HnDtype dtype = hn_qdq_dtype(p, q.q);
    if (!hn_qdq_is_byte(dtype) || hn_qdq_dtype(p, q.real) != HN_F32 || (q.zero != NULL && q.zero->dtype != dtype))
        return FALSE;
    *s = (HnQparams){ dtype, (float)hn_tensor_get_f64(q.scale, 0),
                      q.zero != NULL ? (int)hn_tensor_get_i64(q.zero, 0) : 0, q.scale_of, q.zero_of };
    return isfinite(s->scale) && s->scale > 0;
}

static gboolean same_step(const HnQparams *a, const HnQparams *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

float hn_qdq_number(const HnQparams *s, int byte)
{
    return (float)(number_of(s->dtype, byte) - s->zero) * s->scale;
}

/* As QuantizeLinear. */
int hn_qdq_of(const HnQparams *s, float v)
{
    const float lo = (float)((s->dtype == HN_I8 ? -128 : 0) - s->zero), hi = lo + 255;
    v = v / s->scale;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (uint8_t)((int)nearbyintf(v) + s->zero);
}

gboolean hn_qdq_stay(const HnValue *v)
{
    return v != NULL && !v->is_output;
}

typedef struct {
    const HnPlan *p;
    const HnNode *n;
} Reader;

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const Reader *r = of;
    const HnValue *v = hn_node_in(r->n, i);
    const HnTensor *t = v != NULL ? hn_types_value(r->p->types, v) : NULL;
    if (t != NULL && t->n == 1 && t->dtype == HN_F32)
        *x = hn_tensor_get_f64(t, 0);
    return v == NULL || (t != NULL && t->n == 1 && t->dtype == HN_F32);
}

gboolean hn_qdq_limits(const HnPlan *p, const HnNode *n, float *lo, float *hi)
{
    double from = -INFINITY, to = INFINITY;
    if (n->op == NULL || !hn_op_bounds(n->op, n->params, read_bound, &(Reader){ p, n }, &from, &to))
        return FALSE;
    *lo = (float)from;
    *hi = (float)to;
    return TRUE;
}

static gboolean takes_bytes(const HnNode *n)
{
    const HnQuantBytes how = hn_op_bytes(n);
    return how == HN_QB_MOVES || how == HN_QB_MOST || how == HN_QB_FILLS;
}

/* --- what readers want ---------------------------------------------------------------------------------------------
 */

static gboolean same_want(const HnRequantize *a, const HnRequantize *b)
{
    return same_step(&a->step, &b->step) && a->lo == b->lo && a->hi == b->hi;
}

/* What node u, one of v's readers, makes of it. */
static gboolean want_of_reader(const HnPlan *p, const HnNode *u, const HnValue *v, HnRequantize *w)
{
    float lo, hi;
    if (u->op == NULL)
        return FALSE;
    *w = (HnRequantize){ .lo = -INFINITY, .hi = INFINITY };
    if (u->op == &hn_op_quantizelinear)
        return hn_node_in(u, 0) == v && step_of(p, u, &w->step);
    const HnRequantize *behind = g_hash_table_lookup(p->wants, hn_node_out(u, 0));
    if (behind == NULL)
        return FALSE;
    *w = *behind;
    for (guint k = 1; k < u->out->len; k++) {
        const HnRequantize *other = g_hash_table_lookup(p->wants, hn_node_out(u, (int)k));
        if (other == NULL || !same_want(other, w))
            return FALSE;
    }
    if (takes_bytes(u)) {
        for (guint i = 0; i < u->in->len; i++)
            if (u->in->pdata[i] == v && !hn_op_is_moved(u, (int)i))
                return FALSE;
        return TRUE;
    }
    if (!hn_qdq_limits(p, u, &lo, &hi) || hn_node_in(u, 0) != v)
        return FALSE;
    w->lo = MAX(w->lo, lo);
    w->hi = MIN(w->hi, hi);
    return w->lo <= w->hi;
}

static void find_want(HnPlan *p, const HnValue *v)
{
    HnRequantize want, other;
    if (v == NULL || hn_qdq_dtype(p, v) != HN_F32 || v->users->len == 0 || !hn_qdq_stay(v))
        return;
    for (guint i = 0; i < v->users->len; i++)
        if (!want_of_reader(p, v->users->pdata[i], v, i == 0 ? &want : &other) || (i > 0 && !same_want(&want, &other)))
            return;
    g_hash_table_insert(p->wants, (gpointer)v, g_memdup2(&want, sizeof want));
}

gboolean hn_plan_fuses_qdq(const HnBackend *b)
{
    return b->kernels(&hn_op_quantconv) != NULL && b->kernels(&hn_op_bytetable) != NULL;
}

void hn_plan_find_wants(HnPlan *p)
{
    const GPtrArray *nodes = p->low->model->graph->nodes;
    for (guint i = nodes->len; i-- > 0 && p->bytes;) {
        const HnNode *n = nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++)
            find_want(p, n->out->pdata[k]);
    }
}

/* --- held values ---------------------------------------------------------------------------------------------------
 */

const HnQdqValue *hn_plan_quantized_as(const HnPlan *p, const HnValue *v)
{
    return v != NULL ? g_hash_table_lookup(p->held, v) : NULL;
}

HnQdqValue *hn_qdq_held(const HnQparams *s, int lo, int hi)
{
    HnQdqValue *h = g_new(HnQdqValue, 1);
    *h = (HnQdqValue){ .step = *s, .fit = *s, .plain = TRUE, .lo = lo, .hi = hi };
    for (int i = 0; i < HN_BYTES; i++)
        h->value[i] = hn_qdq_number(s, i);
    return h;
}

HnQdqValue *hn_qdq_held_whole(const HnQparams *s)
{
    return hn_qdq_held(s, s->dtype == HN_I8 ? -128 : 0, s->dtype == HN_I8 ? 127 : 255);
}

gboolean hn_qdq_occurs(const HnQdqValue *h, int byte)
{
    const int n = number_of(h->step.dtype, byte);
    return n >= h->lo && n <= h->hi;
}

static gboolean same_held(const HnQdqValue *a, const HnQdqValue *b)
{
    if (a->step.dtype != b->step.dtype)
        return FALSE;
    for (int i = 0; i < HN_BYTES; i++)
        if ((hn_qdq_occurs(a, i) || hn_qdq_occurs(b, i)) && !(a->value[i] == b->value[i]))
            return FALSE;
    return TRUE;
}

/* v's numbers are those of the slot's bytes; takes h. */
void hn_qdq_hold(HnPlan *p, const HnValue *v, HnSlot *slot, HnQdqValue *h)
{
    hn_plan_set_slot(p, v, slot);
    g_hash_table_insert(p->held, (gpointer)v, h);
}

HnSlot *hn_qdq_constant(HnPlan *p, HnTensor *t)
{
    HnSlot *s = hn_plan_new_slot(p);
    s->tensor = t;
    s->constant = TRUE;
    return s;
}

/* A new slot for v that holds bytes. NULL: error. */
HnSlot *hn_qdq_slot(HnPlan *p, const HnValue *v, HnDtype dtype, GError **error)
{
    HnSlot *s = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error);
    if (s == NULL)
        return NULL;
    HnTensor *t = hn_tensor_new_borrowed(dtype, s->tensor->ndim, s->tensor->dims, NULL);
    hn_tensor_unref(s->tensor);
    s->tensor = t;
    return s;
}

HnSlot *hn_plan_numbers(HnPlan *p, const HnValue *v, HnSlot *slot, GError **error)
{
    const HnQdqValue *h = hn_plan_quantized_as(p, v);
    if (h == NULL)
        return slot;
    HnSlot *to = g_hash_table_lookup(p->numbers, v);
    if (to != NULL)
        return to;
    int64_t n = HN_BYTES;
    HnTensor *table = hn_tensor_new(HN_F32, 1, &n, NULL, error);
    if (table == NULL)
        return NULL;
    memcpy(table->data, h->value, sizeof h->value);
    HnStep *s = hn_step_new(p, NULL, 2, 0, 1);
    to = hn_plan_new_slot(p);
    to->tensor = hn_tensor_new_borrowed(HN_F32, slot->tensor->ndim, slot->tensor->dims, NULL);
    s->in[0].slot = slot;
    s->in[0].any = TRUE;
    s->in[1].slot = hn_qdq_constant(p, table);
    s->out[0].slot = to;
    s->kernel = hn_backend_reorder(p->exec->env->backend, s);
    g_hash_table_insert(p->numbers, (gpointer)v, to);
    const gboolean ok = hn_plan_move_ports(p, s, error);
    hn_plan_append(p, s);
    return ok && s->kernel->prepare(s, error) ? to : NULL;
}

/* A step of an internal operator in the place of n; *done: a kernel takes it. */
gboolean hn_qdq_finish(HnPlan *p, HnStep *s, gboolean *done, GError **error)
{
    s->refusals = g_ptr_array_new();
    s->kernel = hn_plan_ask_kernels(p, s);
    *done = s->kernel != NULL;
    if (!*done) {
        hn_step_free(s);
        return TRUE;
    }
    return hn_plan_finish_step(p, s, s->kernel->prepare(s, error), error);
}

/* --- bytes for bytes -----------------------------------------------------------------------------------------------
 */

gboolean hn_qdq_change_nothing(const HnQdqValue *h, const uint8_t *map, HnDtype dtype)
{
    gboolean same = h->step.dtype == dtype;
    for (int i = 0; i < HN_BYTES && same; i++)
        same = !hn_qdq_occurs(h, i) || map[i] == i;
    return same;
}

#define MOST_VALUES 64 /* that share a slot */

/* Whoever reads `from`, or a function or view of it that shares the slot, does so on the way to v. */
static gboolean leads_to(const HnPlan *p, const HnValue *from, const HnValue *v, const HnSlot *slot, int *left)
{
    if (!hn_qdq_stay(from) || from->users->len == 0 || --*left < 0)
        return FALSE;
    if (from == v)
        return v->users->len == 1;
    for (guint i = 0; i < from->users->len; i++) {
        const HnNode *u = from->users->pdata[i];
        const HnValue *next = hn_node_out(u, 0);
        if (u->out->len != 1 || hn_plan_find_slot(p, next) != slot || !leads_to(p, next, v, slot, left))
            return FALSE;
    }
    return TRUE;
}

/* The step that makes the slot's bytes, if it can exchange them and nobody else than v's only reader sees them. */
static HnStep *only_maker(const HnPlan *p, const HnValue *v, const HnSlot *slot)
{
    HnStep *maker = NULL;
    int left = MOST_VALUES;
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        if (s->n_out == 1 && s->out[0].slot == slot)
            maker = s;
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            if (s->in[k].slot == slot)
                return NULL;
    }
    const gboolean can = maker != NULL && maker->kernel != NULL && maker->kernel->exchanges && maker->table == NULL;
    return can && slot->lowered != NULL && leads_to(p, slot->lowered, v, slot, &left) ? maker : NULL;
}

/* The slot of x's bytes after an exchange by map, in steps of dtype; `to` is the value they are, or NULL. */
HnSlot *hn_qdq_exchanged(HnPlan *p, const HnNode *n, const HnValue *x, HnSlot *slot, const uint8_t *map, HnDtype dtype,
                         const HnValue *to, GError **error)
{
    int64_t count = HN_BYTES;
    HnStep *maker = only_maker(p, x, slot);
    if (maker != NULL) {
        maker->table = g_memdup2(map, HN_BYTES);
        HnTensor *t = hn_tensor_new_borrowed(dtype, slot->tensor->ndim, slot->tensor->dims, NULL);
        hn_tensor_unref(slot->tensor);
        slot->tensor = t;
        if (to != NULL) /* nobody else asks for what it was */
            hn_slot_set_value(p, slot, to);
        return slot;
    }
    HnTensor *table = hn_tensor_new(dtype, 1, &count, NULL, error);
    if (table == NULL)
        return NULL;
    memcpy(table->data, map, HN_BYTES);
    HnStep *s = hn_step_new(p, n, 2, 0, 1);
    s->op = &hn_op_bytetable;
    s->params = NULL;
    s->in[0].slot = slot;
    s->in[1].slot = hn_qdq_constant(p, table);
    HnSlot *out = hn_plan_new_slot(p);
    hn_slot_set_value(p, out, to);
    out->tensor = hn_tensor_new_borrowed(dtype, slot->tensor->ndim, slot->tensor->dims, NULL);
    s->out[0].slot = out;
    gboolean done;
    if (!hn_qdq_finish(p, s, &done, error))
        return NULL;
    if (!done)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "bytes of node '%s' cannot be exchanged", hn_node_label(n));
    return done ? out : NULL;
}

/* All who read q make numbers of it, in these steps: it needs no bytes of its own. */
static gboolean only_dequantized(const HnPlan *p, const HnValue *q, const HnQparams *s)
{
    gboolean all = hn_qdq_stay(q) && q->users->len > 0;
    for (guint i = 0; all && i < q->users->len; i++) {
        const HnNode *u = q->users->pdata[i];
        HnQparams back;
        all = u->op == &hn_op_dequantizelinear && hn_node_in(u, 0) == q && step_of(p, u, &back) &&
              same_step(&back, s) && hn_qdq_stay(hn_node_out(u, 0));
    }
    return all;
}

/* QuantizeLinear of what is held. Bytes are exchanged only when somebody wants them: what comes behind may be a
 * function of the bytes that are there. */
static gboolean add_quantize(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    HnValue *x = hn_node_in(n, 0), *q = hn_node_out(n, 0);
    const HnQdqValue *h = hn_plan_quantized_as(p, x);
    HnSlot *slot = hn_plan_find_slot(p, x);
    uint8_t map[HN_BYTES];
    HnQparams s;
    if (h == NULL || !step_of(p, n, &s))
        return TRUE;
    for (int i = 0; i < HN_BYTES; i++)
        map[i] = (uint8_t)hn_qdq_of(&s, h->value[i]);
    *done = TRUE;
    const gboolean changes = !hn_qdq_change_nothing(h, map, s.dtype);
    if (changes && only_dequantized(p, q, &s) && only_maker(p, x, slot) == NULL) {
        HnQdqValue *later = g_memdup2(h, sizeof *h);
        later->plain = FALSE;
        later->fit = s;
        for (int i = 0; i < HN_BYTES; i++)
            later->value[i] = hn_qdq_number(&s, map[i]);
        hn_qdq_hold(p, q, slot, later);
        return TRUE;
    }
    if (changes || !hn_qdq_stay(q))
        slot = hn_qdq_exchanged(p, n, x, slot, map, s.dtype, q, error);
    if (slot != NULL)
        hn_plan_set_slot(p, q, slot);
    return slot != NULL;
}

static gboolean add_dequantize(HnPlan *p, const HnNode *n, gboolean *done, GError **error)
{
    HnValue *q = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    HnQparams s;
    if (hn_types_value(p->types, q) != NULL || !step_of(p, n, &s) || !hn_qdq_stay(v))
        return TRUE;
    HnSlot *slot = hn_plan_slot(p, q, error);
    if (slot == NULL)
        return FALSE;
    const HnQdqValue *later = hn_plan_quantized_as(p, q);
    hn_qdq_hold(p, v, slot, later != NULL ? g_memdup2(later, sizeof *later) : hn_qdq_held_whole(&s));
    *done = TRUE;
    return TRUE;
}

/* --- functions of one operand --------------------------------------------------------------------------------------
 */

/* 256 numbers for an input of a node: of the operand, of a node before it in the group, or one constant. */
static HnTensor *input_table(const HnPlan *p, const HnValue *v, GHashTable *made, const HnSlot **slot)
{
    HnTensor *t = g_hash_table_lookup(made, v);
    if (t != NULL)
        return hn_tensor_ref(t);
    if ((t = hn_types_value(p->types, v)) != NULL)
        return t->n == 1 && t->dtype == HN_F32 ? hn_tensor_reshaped(t, 0, NULL) : NULL;
    const HnQdqValue *h = hn_plan_quantized_as(p, v);
    const HnSlot *from = hn_plan_find_slot(p, v);
    if (h == NULL || (*slot != NULL && *slot != from))
        return NULL;
    *slot = from;
    int64_t n = HN_BYTES;
    t = hn_tensor_new(HN_F32, 1, &n, NULL, NULL);
    if (t != NULL)
        memcpy(t->data, h->value, sizeof h->value);
    return t;
}

/* One node on tables. */
static HnTensor *eval_table(const HnPlan *p, const HnNode *n, GHashTable *made, const HnSlot **slot)
{
    HnTensor *in[HN_GROUP_INPUTS] = { NULL }, *out[1] = { NULL };
    gboolean ok = n->in->len <= HN_GROUP_INPUTS && (n->op->flags & HN_OP_ELEMENTWISE) != 0 &&
                  (n->op->flags & (HN_OP_RANDOM | HN_OP_CONTROL)) == 0 && (n->version >= 7 || n->in->len == 1) &&
                  hn_qdq_dtype(p, hn_node_out(n, 0)) == HN_F32;
    for (guint k = 1; k < n->out->len; k++)
        ok = ok && n->out->pdata[k] == NULL;
    for (guint i = 0; i < n->in->len && ok; i++)
        ok = n->in->pdata[i] == NULL || (in[i] = input_table(p, n->in->pdata[i], made, slot)) != NULL;
    HnEval e = { .node = n, .params = n->params, .n_in = (int)n->in->len, .n_out = 1, .in = in, .out = out };
    g_autoptr(GError) failure = NULL;
    if (ok && !hn_op_eval(&e, &failure))
        ok = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(in); i++)
        hn_tensor_unref(in[i]);
    if (ok && out[0]->n == HN_BYTES && out[0]->dtype == HN_F32)
        return out[0];
    hn_tensor_unref(out[0]);
    return NULL;
}

static gboolean same_dims(const HnPlan *p, const HnValue *v, const HnSlot *slot)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *t = hn_types_get(p->types, v);
    return t != NULL && hn_type_is_fixed(t, dims) && hn_tensor_has_dims(slot->tensor, t->rank, dims);
}

/* Element-wise nodes, one after the other, that make a function of one held operand: no step, another table. */
static void add_function(HnPlan *p, HnNode *const *nodes, guint n_nodes, gboolean *done)
{
    const HnValue *v = hn_node_out(nodes[n_nodes - 1], 0);
    g_autoptr(GHashTable) made = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_tensor_unref);
    const HnSlot *slot = NULL;
    const HnQdqValue *from = NULL;
    HnTensor *t = NULL;
    if (!hn_qdq_stay(v))
        return;
    for (guint i = 0; i < n_nodes; i++) {
        if (g_hash_table_contains(p->fused, nodes[i]) || (t = eval_table(p, nodes[i], made, &slot)) == NULL)
            return;
        g_hash_table_insert(made, hn_node_out(nodes[i], 0), t);
        for (guint k = 0; k < nodes[i]->in->len && from == NULL; k++)
            from = hn_plan_quantized_as(p, nodes[i]->in->pdata[k]);
    }
    if (slot == NULL || from == NULL || !same_dims(p, v, slot))
        return;
    for (guint i = 0; i < n_nodes; i++) {
        const HnValue *inner = hn_node_out(nodes[i], 0);
        if (!same_dims(p, inner, slot))
            continue;
        HnQdqValue *h = g_memdup2(from, sizeof *from);
        memcpy(h->value, ((const HnTensor *)g_hash_table_lookup(made, inner))->data, sizeof h->value);
        h->plain = from->plain && memcmp(h->value, from->value, sizeof h->value) == 0;
        hn_qdq_hold(p, inner, (HnSlot *)slot, h);
    }
    *done = TRUE;
}

/* Such nodes, or two operands at most that are functions of one each. */
static gboolean add_elementwise(HnPlan *p, HnNode *const *nodes, guint n_nodes, gboolean *done, GError **error)
{
    g_autoptr(GPtrArray) rest = g_ptr_array_new();
    add_function(p, nodes, n_nodes, done);
    for (guint i = 0; i < n_nodes && !*done; i++) {
        gboolean is_function = FALSE;
        add_function(p, &nodes[i], 1, &is_function);
        if (!is_function)
            g_ptr_array_add(rest, nodes[i]);
    }
    if (rest->len == 0 || rest->pdata[rest->len - 1] != nodes[n_nodes - 1])
        return TRUE;
    return hn_qdq_add_binary(p, (HnNode *const *)rest->pdata, rest->len, done, error);
}

/* --- moves ---------------------------------------------------------------------------------------------------------
 */

/* Larger bytes are larger numbers. */
static gboolean is_rising(const HnQdqValue *h)
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

/* The largest byte is not that of the largest number. */
static gboolean is_wrong_for(const HnNode *n, const HnQdqValue *h)
{
    return n->op->quant.bytes == HN_QB_MOST && !is_rising(h);
}

/* x in steps of `want`, for a concatenation of several kinds; NULL without an error: it cannot be. */
static HnSlot *in_steps_of(HnPlan *p, const HnNode *n, const HnValue *x, const HnRequantize *want, GError **error)
{
    const HnQdqValue *h = hn_plan_quantized_as(p, x);
    HnSlot *slot = hn_plan_find_slot(p, x);
    uint8_t map[HN_BYTES];
    if (h == NULL || slot == NULL)
        return NULL;
    for (int i = 0; i < HN_BYTES; i++)
        map[i] = (uint8_t)hn_qdq_of(&want->step, CLAMP(h->value[i], want->lo, want->hi));
    if (hn_qdq_change_nothing(h, map, want->step.dtype))
        return slot;
    HnSlot *to = hn_qdq_exchanged(p, n, x, slot, map, want->step.dtype, NULL, error);
    if (to == slot) /* by its maker, whether or not a kernel concatenates them then */
        hn_qdq_hold(p, x, slot, hn_qdq_held_whole(&want->step));
    return to;
}

/* All that n moves as bytes of steps of their own, where that is possible. */
static gboolean moved_as_steps(HnPlan *p, const HnNode *n, GError **error)
{
    GError *failure = NULL;
    for (guint i = 0; i < n->in->len && failure == NULL; i++)
        if (hn_op_is_moved(n, (int)i) && hn_plan_quantized_as(p, n->in->pdata[i]) != NULL)
            (void)hn_qdq_as_step(p, n, n->in->pdata[i], &failure);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

/* All that n moves is held, and alike. */
static const HnQdqValue *moved_held(const HnPlan *p, const HnNode *n, gboolean *all)
{
    const HnQdqValue *first = NULL;
    gboolean alike = TRUE;
    *all = TRUE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnQdqValue *h = hn_plan_quantized_as(p, n->in->pdata[i]);
        if (n->in->pdata[i] == NULL || !hn_op_is_moved(n, (int)i))
            continue;
        *all = *all && h != NULL;
        first = first == NULL ? h : first;
        alike = alike && h != NULL && same_held(first, h);
    }
    return *all && alike ? first : NULL;
}

static gboolean results_stay(const HnPlan *p, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL && (!hn_qdq_stay(n->out->pdata[k]) || hn_qdq_dtype(p, n->out->pdata[k]) != HN_F32))
            return FALSE;
    return TRUE;
}

#define FILLER 2 /* input */

/* The byte that n fills up with, of what is held or, as it is quantized, of what is wanted; it occurs from now on.
 * *filler NULL: no byte is that number. */
static gboolean filler_of(const HnPlan *p, const HnNode *n, HnQdqValue *h, const HnRequantize *want, HnTensor **filler,
                          GError **error)
{
    const HnTensor *t = hn_node_in(n, FILLER) != NULL ? hn_types_value(p->types, hn_node_in(n, FILLER)) : NULL;
    if (hn_node_in(n, FILLER) != NULL && (t == NULL || t->n != 1 || t->dtype != HN_F32))
        return TRUE;
    const float v = t != NULL ? (float)hn_tensor_get_f64(t, 0) : 0;
    int byte = want != NULL ? hn_qdq_of(&want->step, CLAMP(v, want->lo, want->hi)) : 0;
    while (want == NULL && byte < HN_BYTES && h->value[byte] != v)
        byte++;
    if (byte == HN_BYTES || (*filler = hn_tensor_new(h->step.dtype, 0, NULL, NULL, error)) == NULL)
        return byte == HN_BYTES;
    ((uint8_t *)(*filler)->data)[0] = (uint8_t)byte;
    h->lo = MIN(h->lo, number_of(h->step.dtype, byte));
    h->hi = MAX(h->hi, number_of(h->step.dtype, byte));
    return TRUE;
}

static gboolean add_move(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    gboolean all;
    const HnQdqValue *held = moved_held(p, n, &all);
    const HnRequantize *want = g_hash_table_lookup(p->wants, hn_node_out(n, 0));
    if (!all || !results_stay(p, n))
        return TRUE;
    if ((held == NULL || is_wrong_for(n, held)) && want == NULL) {
        if (!moved_as_steps(p, n, error))
            return FALSE;
        held = moved_held(p, n, &all);
    }
    if (held != NULL && is_wrong_for(n, held))
        held = NULL;
    if (held == NULL && (want == NULL || n->out->len != 1)) /* else all are brought into the steps that are wanted */
        return TRUE;
    g_autofree HnQdqValue *made = held != NULL ? g_memdup2(held, sizeof *held) : hn_qdq_held_whole(&want->step);
    const gboolean fills = n->op->quant.bytes == HN_QB_FILLS;
    HnTensor *filler = NULL;
    if (fills && !filler_of(p, n, made, held == NULL ? want : NULL, &filler, error))
        return FALSE;
    if (fills && filler == NULL)
        return TRUE;
    HnStep *s = hn_step_new(p, n, fills ? MAX((int)n->in->len, FILLER + 1) : (int)n->in->len, 0, (int)n->out->len);
    gboolean ok = TRUE;
    for (guint i = 0; i < n->in->len && ok; i++) {
        HnValue *v = n->in->pdata[i];
        if (v != NULL && !(fills && i == FILLER))
            ok = (s->in[i].slot = held == NULL && hn_op_is_moved(n, (int)i) ? in_steps_of(p, n, v, want, error)
                                                                            : hn_plan_slot(p, v, error)) != NULL;
    }
    if (fills)
        s->in[FILLER].slot = hn_qdq_constant(p, filler);
    for (guint k = 0; k < n->out->len && ok; k++) {
        HnValue *v = n->out->pdata[k];
        if (v == NULL)
            continue;
        ok = (s->out[k].slot = hn_qdq_slot(p, v, made->step.dtype, error)) != NULL;
        if (ok)
            g_hash_table_insert(p->held, v, g_memdup2(made, sizeof *made));
    }
    if (!ok) {
        hn_step_free(s);
        return FALSE;
    }
    if (!hn_qdq_finish(p, s, done, error))
        return FALSE;
    for (guint k = 0; k < n->out->len && !*done; k++)
        g_hash_table_remove(p->held, n->out->pdata[k]);
    return TRUE;
}

gboolean hn_plan_quantized_through(HnPlan *p, const HnOp *op, const HnValue *x, const HnValue *v, HnSlot *out)
{
    const HnQdqValue *h = hn_plan_quantized_as(p, x);
    if (h == NULL || !hn_qdq_stay(v) || (op->quant.bytes != HN_QB_MOVES && (op->flags & HN_OP_VIEW) == 0))
        return FALSE;
    HnTensor *t = hn_tensor_new_borrowed(h->step.dtype, out->tensor->ndim, out->tensor->dims, NULL);
    hn_tensor_unref(out->tensor);
    out->tensor = t;
    g_hash_table_insert(p->held, (gpointer)v, g_memdup2(h, sizeof *h));
    return TRUE;
}

/* --- all -----------------------------------------------------------------------------------------------------------
 */

gboolean hn_plan_add_qdq(HnPlan *p, HnNode *n, const GPtrArray *group, gboolean *done, GError **error)
{
    *done = FALSE;
    if (!p->bytes)
        return TRUE;
    if (n->op == &hn_op_quantizelinear)
        return add_quantize(p, n, done, error);
    if (n->op == &hn_op_dequantizelinear)
        return add_dequantize(p, n, done, error);
    if ((n->op->flags & HN_OP_ELEMENTWISE) != 0) {
        return group != NULL ? add_elementwise(p, (HnNode *const *)group->pdata, group->len, done, error)
                             : add_elementwise(p, &n, 1, done, error);
    }
    if (n->op == &hn_op_quantconv || n->op == &hn_op_quantmatmul)
        return hn_qdq_requantize(p, n, done, error);
    if (takes_bytes(n) && (n->op->flags & HN_OP_VIEW) == 0)
        return add_move(p, n, done, error);
    if (n->op->quant.bytes == HN_QB_MEAN)
        return hn_qdq_add_mean(p, n, done, error);
    return n->op->quant.kind == HN_Q_WEIGHTED ? hn_qdq_add_product(p, n, done, error) : TRUE;
}
