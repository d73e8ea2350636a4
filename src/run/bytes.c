/*
 * Planning: numbers held as bytes.
 *
 * What DequantizeLinear makes of bytes is one number for each of 256 bytes, and so is any element-wise function of it:
 * such a value needs no memory of its own, only a table (HnHeld). Values share the slot of the bytes. Whoever can work
 * with bytes does: moves and maxima as they are, convolutions and products with constant weights as integers, and
 * QuantizeLinear as a table from bytes to bytes, which often changes nothing. Others get the numbers by a step of their
 * own (hn_plan_numbers()). A result that nobody but QuantizeLinear wants (HnWant) is made as its bytes at once.
 *
 * The model stays as it is; results are those of its nodes one by one, but for the last digit of sums.
 */
#include <math.h>
#include <string.h>

#include "op/gemm.h"
#include "op/quantize.h"
#include "op/quantproduct.h"
#include "op/resize.h"
#include "run/plan.h"

#define HN_OP(name, symbol, file) extern const HnOp hn_op_##symbol;
#include "op/ops.def"
#undef HN_OP

#define BYTES 256

/* Scale and zero point of a whole tensor. */
typedef struct {
    HnDtype dtype; /* HN_U8 or HN_I8 */
    float scale;
    int zero;
    HnValue *scale_of, *zero_of; /* zero_of NULL: 0 */
} Step;

struct HnHeld {
    Step step; /* of the bytes: value[i] is that of this step, or a function of it */
    gboolean plain;
    int lo, hi; /* bytes that occur, as numbers */
    float value[BYTES];
};

/* All that read a value quantize it so, limited to [lo, hi] first. */
typedef struct {
    Step step;
    float lo, hi;
} HnWant;

/* --- what nodes say ------------------------------------------------------------------------------------------------
 */

static gboolean is_byte(HnDtype d)
{
    return d == HN_U8 || d == HN_I8;
}

static HnDtype dtype_of(const HnPlan *p, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(p->types, v) : NULL;
    return t != NULL && hn_type_is_fixed(t, NULL) ? t->dtype : HN_UNDEFINED;
}

static int number_of(HnDtype dtype, int byte)
{
    return dtype == HN_I8 ? (int8_t)byte : byte;
}

/* n quantizes or dequantizes bytes with one scale, which is known. */
static gboolean step_of(const HnPlan *p, const HnNode *n, Step *s)
{
    const gboolean back = n->op == &hn_op_dequantizelinear;
    if (n->op != &hn_op_quantizelinear && !back)
        return FALSE;
    const HnQuantize *q = n->params;
    HnValue *scale_of = hn_node_in(n, 1), *zero_of = hn_node_in(n, 2);
    const HnTensor *scale = scale_of != NULL ? hn_types_value(p->types, scale_of) : NULL;
    const HnTensor *zero = zero_of != NULL ? hn_types_value(p->types, zero_of) : NULL;
    const HnDtype dtype = dtype_of(p, back ? hn_node_in(n, 0) : hn_node_out(n, 0));
    if (scale == NULL || scale->dtype != HN_F32 || scale->n != 1 || (zero_of != NULL && zero == NULL) ||
        (zero != NULL && (zero->n != 1 || zero->dtype != dtype)) || !is_byte(dtype) ||
        dtype_of(p, back ? hn_node_out(n, 0) : hn_node_in(n, 0)) != HN_F32 ||
        (q->precision != HN_UNDEFINED && q->precision != HN_F32) || q->block != 0)
        return FALSE;
    *s = (Step){ dtype, (float)hn_tensor_get_f64(scale, 0), zero != NULL ? (int)hn_tensor_get_i64(zero, 0) : 0,
                 scale_of, zero_of };
    return isfinite(s->scale) && s->scale > 0;
}

static gboolean same_step(const Step *a, const Step *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

static float number_at(const Step *s, int byte)
{
    return (float)(number_of(s->dtype, byte) - s->zero) * s->scale;
}

/* As QuantizeLinear. */
static int byte_of(const Step *s, float v)
{
    const float lo = (float)((s->dtype == HN_I8 ? -128 : 0) - s->zero), hi = lo + 255;
    v = v / s->scale;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (uint8_t)((int)nearbyintf(v) + s->zero);
}

/* Only nodes of this plan read v. */
static gboolean stays_here(const HnPlan *p, const HnValue *v)
{
    if (v == NULL || v->is_output || hn_plan_needed_behind(p, v))
        return FALSE;
    for (guint i = 0; i < v->users->len; i++)
        if (((const HnNode *)v->users->pdata[i])->graph != v->graph)
            return FALSE;
    return TRUE;
}

/* Limits of a node that only limits its input 0. */
static gboolean limits_of(const HnPlan *p, const HnNode *n, float *lo, float *hi)
{
    *lo = -INFINITY;
    *hi = INFINITY;
    if (n->op == &hn_op_relu) {
        *lo = 0;
        return TRUE;
    }
    if (n->op != &hn_op_clip || n->version < 11)
        return FALSE;
    for (int i = 1; i <= 2; i++) {
        const HnValue *v = hn_node_in(n, i);
        const HnTensor *t = v != NULL ? hn_types_value(p->types, v) : NULL;
        if (v != NULL && (t == NULL || t->n != 1 || t->dtype != HN_F32))
            return FALSE;
        if (t != NULL)
            *(i == 1 ? lo : hi) = (float)hn_tensor_get_f64(t, 0);
    }
    return *lo <= *hi;
}

/* Input i is one of those whose elements the outputs of n consist of. */
static gboolean is_moved(const HnNode *n, int i)
{
    const char *in = n->op->in;
    const size_t last = strlen(in) - 1;
    const char letter = in[last] == '*' && (size_t)i >= last ? in[last - 1] : (size_t)i <= last ? in[i] : 0;
    return letter == in[0];
}

static gboolean takes_bytes(const HnNode *n)
{
    if (n->op == NULL || (n->op->quant.bytes == HN_QB_NONE && (n->op->flags & HN_OP_VIEW) == 0))
        return FALSE;
    const HnResize *r = n->op == &hn_op_resize ? n->params : NULL;
    return r == NULL || (r->mode == HN_RESIZE_NEAREST && r->place != HN_RESIZE_CROP);
}

/* --- what readers want ---------------------------------------------------------------------------------------------
 */

static gboolean same_want(const HnWant *a, const HnWant *b)
{
    return same_step(&a->step, &b->step) && a->lo == b->lo && a->hi == b->hi;
}

/* What node u, one of v's readers, makes of it. */
static gboolean want_of_reader(const HnPlan *p, const HnNode *u, const HnValue *v, HnWant *w)
{
    float lo, hi;
    if (u->op == NULL)
        return FALSE;
    *w = (HnWant){ .lo = -INFINITY, .hi = INFINITY };
    if (u->op == &hn_op_quantizelinear)
        return hn_node_in(u, 0) == v && step_of(p, u, &w->step);
    const HnWant *behind = g_hash_table_lookup(p->wants, hn_node_out(u, 0));
    if (behind == NULL)
        return FALSE;
    *w = *behind;
    for (guint k = 1; k < u->out->len; k++) {
        const HnWant *other = g_hash_table_lookup(p->wants, hn_node_out(u, (int)k));
        if (other == NULL || !same_want(other, w))
            return FALSE;
    }
    if (takes_bytes(u)) {
        for (guint i = 0; i < u->in->len; i++)
            if (u->in->pdata[i] == v && !is_moved(u, (int)i))
                return FALSE;
        return TRUE;
    }
    if (!limits_of(p, u, &lo, &hi) || hn_node_in(u, 0) != v)
        return FALSE;
    w->lo = MAX(w->lo, lo);
    w->hi = MIN(w->hi, hi);
    return w->lo <= w->hi;
}

static void find_want(HnPlan *p, const HnValue *v)
{
    HnWant want, other;
    if (v == NULL || dtype_of(p, v) != HN_F32 || v->users->len == 0 || !stays_here(p, v))
        return;
    for (guint i = 0; i < v->users->len; i++)
        if (!want_of_reader(p, v->users->pdata[i], v, i == 0 ? &want : &other) || (i > 0 && !same_want(&want, &other)))
            return;
    g_hash_table_insert(p->wants, (gpointer)v, g_memdup2(&want, sizeof want));
}

void hn_plan_find_wants(HnPlan *p, const gboolean *live)
{
    const HnBackend *b = p->exec->env->backend;
    if (b->kernels(&hn_op_quantconv) == NULL || b->kernels(&hn_op_bytetable) == NULL)
        return;
    p->bytes = TRUE;
    for (int i = p->end - 1; i >= p->start; i--) {
        const HnNode *n = p->exec->graph->nodes->pdata[i];
        for (guint k = 0; k < n->out->len && live[i - p->start]; k++)
            find_want(p, n->out->pdata[k]);
    }
}

/* --- held values ---------------------------------------------------------------------------------------------------
 */

const HnHeld *hn_plan_held_as(const HnPlan *p, const HnValue *v)
{
    return v != NULL ? g_hash_table_lookup(p->held, v) : NULL;
}

static HnHeld *held_of(const Step *s, int lo, int hi)
{
    HnHeld *h = g_new(HnHeld, 1);
    *h = (HnHeld){ .step = *s, .plain = TRUE, .lo = lo, .hi = hi };
    for (int i = 0; i < BYTES; i++)
        h->value[i] = number_at(s, i);
    return h;
}

static HnHeld *held_whole(const Step *s)
{
    return held_of(s, s->dtype == HN_I8 ? -128 : 0, s->dtype == HN_I8 ? 127 : 255);
}

static gboolean occurs(const HnHeld *h, int byte)
{
    const int n = number_of(h->step.dtype, byte);
    return n >= h->lo && n <= h->hi;
}

static gboolean same_held(const HnHeld *a, const HnHeld *b)
{
    if (a->step.dtype != b->step.dtype)
        return FALSE;
    for (int i = 0; i < BYTES; i++)
        if ((occurs(a, i) || occurs(b, i)) && !(a->value[i] == b->value[i]))
            return FALSE;
    return TRUE;
}

/* v's numbers are those of the slot's bytes; takes h. */
static void hold(HnPlan *p, const HnValue *v, HnSlot *slot, HnHeld *h)
{
    g_hash_table_insert(p->by_value, (gpointer)v, slot);
    g_hash_table_insert(p->held, (gpointer)v, h);
}

static HnSlot *constant_slot(HnPlan *p, HnTensor *t)
{
    HnSlot *s = hn_plan_new_slot(p);
    s->tensor = t;
    s->constant = TRUE;
    return s;
}

/* A new slot for v that holds bytes. NULL: error. */
static HnSlot *byte_slot(HnPlan *p, const HnValue *v, HnDtype dtype, GError **error)
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
    const HnHeld *h = hn_plan_held_as(p, v);
    if (h == NULL)
        return slot;
    HnSlot *to = g_hash_table_lookup(p->numbers, v);
    if (to != NULL)
        return to;
    int64_t n = BYTES;
    HnTensor *table = hn_tensor_new(HN_F32, 1, &n, NULL, error);
    if (table == NULL)
        return NULL;
    memcpy(table->data, h->value, sizeof h->value);
    HnStep *s = hn_step_new(p, NULL, 2, 0, 1);
    to = hn_plan_new_slot(p);
    to->tensor = hn_tensor_new_borrowed(HN_F32, slot->tensor->ndim, slot->tensor->dims, NULL);
    s->in[0].slot = slot;
    s->in[0].any = TRUE;
    s->in[1].slot = constant_slot(p, table);
    s->out[0].slot = to;
    s->kernel = hn_backend_reorder(p->exec->env->backend, s);
    g_hash_table_insert(p->numbers, (gpointer)v, to);
    g_ptr_array_add(p->steps, s);
    return s->kernel->prepare(s, error) ? to : NULL;
}

/* A step of an internal operator in the place of n; *done: a kernel takes it. */
static gboolean finish(HnPlan *p, HnStep *s, gboolean *done, GError **error)
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

static gboolean changes_nothing(const HnHeld *h, const uint8_t *map, HnDtype dtype)
{
    gboolean same = h->step.dtype == dtype;
    for (int i = 0; i < BYTES && same; i++)
        same = !occurs(h, i) || map[i] == i;
    return same;
}

/* The step that makes the slot's bytes can exchange them, and nobody else than v's readers sees them: `v` comes from
 * the slot's own value through functions and views that have one reader each. */
static HnStep *only_maker(const HnPlan *p, const HnValue *v, const HnSlot *slot)
{
    HnStep *maker = NULL;
    for (guint i = 0; i < p->steps->len && maker == NULL; i++) {
        HnStep *s = p->steps->pdata[i];
        if (s->n_out == 1 && s->out[0].slot == slot)
            maker = s;
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            if (s->in[k].slot == slot)
                return NULL;
    }
    if (maker == NULL || maker->kernel == NULL || !maker->kernel->exchanges || maker->table != NULL)
        return NULL;
    while (stays_here(p, v) && v->users->len == 1) {
        if (v == slot->value)
            return maker;
        const HnNode *n = v->producer;
        const HnValue *from = NULL;
        for (guint i = 0; n != NULL && i < n->in->len; i++)
            if (n->in->pdata[i] != NULL && hn_plan_find_slot(p, n->in->pdata[i]) == slot)
                from = n->in->pdata[i];
        if (from == NULL)
            return NULL;
        v = from;
    }
    return NULL;
}

/* The slot of x's bytes after an exchange by map, in steps of dtype; `to` is the value they are, or NULL. */
static HnSlot *exchanged(HnPlan *p, const HnNode *n, const HnValue *x, HnSlot *slot, const uint8_t *map, HnDtype dtype,
                         const HnValue *to, GError **error)
{
    int64_t count = BYTES;
    HnStep *maker = only_maker(p, x, slot);
    if (maker != NULL) {
        maker->table = g_memdup2(map, BYTES);
        HnTensor *t = hn_tensor_new_borrowed(dtype, slot->tensor->ndim, slot->tensor->dims, NULL);
        hn_tensor_unref(slot->tensor);
        slot->tensor = t;
        return slot;
    }
    HnTensor *table = hn_tensor_new(dtype, 1, &count, NULL, error);
    if (table == NULL)
        return NULL;
    memcpy(table->data, map, BYTES);
    HnStep *s = hn_step_new(p, n, 2, 0, 1);
    s->op = &hn_op_bytetable;
    s->params = NULL;
    s->in[0].slot = slot;
    s->in[1].slot = constant_slot(p, table);
    HnSlot *out = hn_plan_new_slot(p);
    out->value = to;
    out->tensor = hn_tensor_new_borrowed(dtype, slot->tensor->ndim, slot->tensor->dims, NULL);
    s->out[0].slot = out;
    gboolean done;
    if (!finish(p, s, &done, error))
        return NULL;
    if (!done)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "bytes of node '%s' cannot be exchanged", hn_node_label(n));
    return done ? out : NULL;
}

/* QuantizeLinear of what is held. */
static gboolean add_quantize(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    HnValue *x = hn_node_in(n, 0), *q = hn_node_out(n, 0);
    const HnHeld *h = hn_plan_held_as(p, x);
    HnSlot *slot = hn_plan_find_slot(p, x);
    uint8_t map[BYTES];
    Step s;
    if (h == NULL || !step_of(p, n, &s))
        return TRUE;
    for (int i = 0; i < BYTES; i++)
        map[i] = (uint8_t)byte_of(&s, h->value[i]);
    *done = TRUE;
    if (!changes_nothing(h, map, s.dtype) || !stays_here(p, q))
        slot = exchanged(p, n, x, slot, map, s.dtype, q, error);
    if (slot != NULL)
        g_hash_table_insert(p->by_value, q, slot);
    return slot != NULL;
}

static gboolean add_dequantize(HnPlan *p, const HnNode *n, gboolean *done, GError **error)
{
    HnValue *q = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    Step s;
    if (!step_of(p, n, &s) || !stays_here(p, v) || hn_types_value(p->types, q) != NULL)
        return TRUE;
    HnSlot *slot = hn_plan_slot(p, q, error);
    if (slot == NULL)
        return FALSE;
    hold(p, v, slot, held_whole(&s));
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
    const HnHeld *h = hn_plan_held_as(p, v);
    const HnSlot *from = hn_plan_find_slot(p, v);
    if (h == NULL || (*slot != NULL && *slot != from))
        return NULL;
    *slot = from;
    int64_t n = BYTES;
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
                  dtype_of(p, hn_node_out(n, 0)) == HN_F32;
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
    if (ok && out[0]->n == BYTES && out[0]->dtype == HN_F32)
        return out[0];
    hn_tensor_unref(out[0]);
    return NULL;
}

static gboolean same_dims(const HnPlan *p, const HnValue *v, const HnSlot *slot)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *t = hn_types_get(p->types, v);
    return t != NULL && hn_type_is_fixed(t, dims) && t->rank == slot->tensor->ndim &&
           memcmp(dims, slot->tensor->dims, (gsize)t->rank * sizeof *dims) == 0;
}

/* Element-wise nodes, one after the other, that make a function of one held operand: no step, another table. */
static void add_function(HnPlan *p, HnNode *const *nodes, guint n_nodes, gboolean *done)
{
    const HnValue *v = hn_node_out(nodes[n_nodes - 1], 0);
    g_autoptr(GHashTable) made = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_tensor_unref);
    const HnSlot *slot = NULL;
    const HnHeld *from = NULL;
    HnTensor *t = NULL;
    if (!stays_here(p, v))
        return;
    for (guint i = 0; i < n_nodes; i++) {
        if (g_hash_table_contains(p->fused, nodes[i]) || (t = eval_table(p, nodes[i], made, &slot)) == NULL)
            return;
        g_hash_table_insert(made, hn_node_out(nodes[i], 0), t);
        for (guint k = 0; k < nodes[i]->in->len && from == NULL; k++)
            from = hn_plan_held_as(p, nodes[i]->in->pdata[k]);
    }
    if (slot == NULL || from == NULL || !same_dims(p, v, slot))
        return;
    HnHeld *h = g_memdup2(from, sizeof *from);
    memcpy(h->value, t->data, sizeof h->value);
    h->plain = from->plain && memcmp(h->value, from->value, sizeof h->value) == 0;
    hold(p, v, (HnSlot *)slot, h);
    *done = TRUE;
}

/* --- moves ---------------------------------------------------------------------------------------------------------
 */

/* Larger bytes are larger numbers. */
static gboolean is_rising(const HnHeld *h)
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

/* x in steps of `want`, for a concatenation of several kinds; NULL without an error: it cannot be. */
static HnSlot *in_steps_of(HnPlan *p, const HnNode *n, const HnValue *x, const HnWant *want, GError **error)
{
    const HnHeld *h = hn_plan_held_as(p, x);
    HnSlot *slot = hn_plan_find_slot(p, x);
    uint8_t map[BYTES];
    if (h == NULL || slot == NULL)
        return NULL;
    for (int i = 0; i < BYTES; i++)
        map[i] = (uint8_t)byte_of(&want->step, CLAMP(h->value[i], want->lo, want->hi));
    return changes_nothing(h, map, want->step.dtype) ? slot
                                                     : exchanged(p, n, x, slot, map, want->step.dtype, NULL, error);
}

/* All that n moves is held, and alike. */
static const HnHeld *moved_held(const HnPlan *p, const HnNode *n, gboolean *all)
{
    const HnHeld *first = NULL;
    gboolean alike = TRUE;
    *all = TRUE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnHeld *h = hn_plan_held_as(p, n->in->pdata[i]);
        if (n->in->pdata[i] == NULL || !is_moved(n, (int)i))
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
        if (n->out->pdata[k] != NULL && (!stays_here(p, n->out->pdata[k]) || dtype_of(p, n->out->pdata[k]) != HN_F32))
            return FALSE;
    return TRUE;
}

static gboolean add_move(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    gboolean all;
    const HnHeld *held = moved_held(p, n, &all);
    const HnWant *want = g_hash_table_lookup(p->wants, hn_node_out(n, 0));
    if (!all || (held == NULL && (want == NULL || n->op->quant.bytes != HN_QB_MOVES || n->out->len != 1)) ||
        !results_stay(p, n) || (held != NULL && n->op->quant.bytes == HN_QB_MOST && !is_rising(held)))
        return TRUE;
    g_autofree HnHeld *made = held != NULL ? g_memdup2(held, sizeof *held) : held_whole(&want->step);
    HnStep *s = hn_step_new(p, n, (int)n->in->len, 0, (int)n->out->len);
    gboolean ok = TRUE;
    for (guint i = 0; i < n->in->len && ok; i++) {
        HnValue *v = n->in->pdata[i];
        if (v != NULL)
            ok = (s->in[i].slot = held == NULL && is_moved(n, (int)i) ? in_steps_of(p, n, v, want, error)
                                                                      : hn_plan_slot(p, v, error)) != NULL;
    }
    for (guint k = 0; k < n->out->len && ok; k++) {
        HnValue *v = n->out->pdata[k];
        if (v == NULL)
            continue;
        ok = (s->out[k].slot = byte_slot(p, v, made->step.dtype, error)) != NULL;
        if (ok)
            g_hash_table_insert(p->held, v, g_memdup2(made, sizeof *made));
    }
    if (!ok) {
        hn_step_free(s);
        return FALSE;
    }
    if (!finish(p, s, done, error))
        return FALSE;
    for (guint k = 0; k < n->out->len && !*done; k++)
        g_hash_table_remove(p->held, n->out->pdata[k]);
    return TRUE;
}

gboolean hn_plan_bytes_through(HnPlan *p, const HnOp *op, const HnValue *x, const HnValue *v, HnSlot *out)
{
    const HnHeld *h = hn_plan_held_as(p, x);
    if (h == NULL || !stays_here(p, v) || (op->quant.bytes != HN_QB_MOVES && (op->flags & HN_OP_VIEW) == 0))
        return FALSE;
    HnTensor *t = hn_tensor_new_borrowed(h->step.dtype, out->tensor->ndim, out->tensor->dims, NULL);
    hn_tensor_unref(out->tensor);
    out->tensor = t;
    g_hash_table_insert(p->held, (gpointer)v, g_memdup2(h, sizeof *h));
    return TRUE;
}

/* --- products with constant weights --------------------------------------------------------------------------------
 */

typedef struct {
    HnTensor *w, *scale, *zero, *bias; /* zero, bias: NULL where absent */
    HnQuantProduct params;
    const HnOp *op;
} Product;

/* The constant bytes that v is made of, with scales for all of it or for each index of `axis`. */
static gboolean weights_of(const HnPlan *p, const HnValue *v, int axis, Product *o)
{
    const HnNode *n = v != NULL ? v->producer : NULL;
    if (n == NULL || n->op != &hn_op_dequantizelinear || hn_node_in(n, 1) == NULL)
        return FALSE;
    const HnQuantize *q = n->params;
    o->w = hn_types_value(p->types, hn_node_in(n, 0));
    o->scale = hn_types_value(p->types, hn_node_in(n, 1));
    o->zero = hn_node_in(n, 2) != NULL ? hn_types_value(p->types, hn_node_in(n, 2)) : NULL;
    if (o->w == NULL || o->scale == NULL || !is_byte(o->w->dtype) || o->scale->dtype != HN_F32 || q->block != 0 ||
        dtype_of(p, v) != HN_F32 || (hn_node_in(n, 2) != NULL && o->zero == NULL) || o->w->ndim <= axis)
        return FALSE;
    const int64_t at = q->axis < 0 ? q->axis + o->w->ndim : q->axis;
    return (o->scale->n == 1 ||
            (o->scale->ndim == 1 && q->per_axis && at == axis && o->scale->n == o->w->dims[axis])) &&
           (o->zero == NULL || (o->zero->n == o->scale->n && o->zero->dtype == o->w->dtype));
}

/* The bias as integers where they count steps of the sums, else as numbers. FALSE: neither is known. */
static gboolean bias_of(const HnPlan *p, const HnValue *v, float x_scale, Product *o)
{
    if (v == NULL)
        return TRUE;
    const HnNode *n = v->producer;
    const gboolean back = n != NULL && n->op == &hn_op_dequantizelinear;
    HnTensor *ints = back ? hn_types_value(p->types, hn_node_in(n, 0)) : NULL;
    const HnTensor *scale = back ? hn_types_value(p->types, hn_node_in(n, 1)) : NULL;
    const HnTensor *zero = back && hn_node_in(n, 2) != NULL ? hn_types_value(p->types, hn_node_in(n, 2)) : NULL;
    gboolean fits = ints != NULL && ints->dtype == HN_I32 && ints->ndim == 1 && scale != NULL &&
                    scale->dtype == HN_F32 && (scale->n == 1 || scale->n == ints->n) &&
                    (hn_node_in(n, 2) == NULL || zero != NULL);
    for (int64_t i = 0; fits && zero != NULL && i < zero->n; i++)
        fits = hn_tensor_get_i64(zero, i) == 0;
    for (int64_t i = 0; fits && i < ints->n; i++) {
        const double step = (double)x_scale * hn_tensor_get_f64(o->scale, o->scale->n > 1 ? i : 0);
        fits = (o->scale->n == 1 || o->scale->n == ints->n) &&
               fabs(hn_tensor_get_f64(scale, scale->n > 1 ? i : 0) - step) <= 1e-5 * step;
    }
    HnTensor *t = fits ? ints : hn_types_value(p->types, v);
    if (t == NULL || (t->dtype != HN_F32 && t->dtype != HN_I32) || t->n != t->dims[MAX(t->ndim - 1, 0)] || t->ndim < 1)
        return FALSE;
    o->bias = t;
    return TRUE;
}

/* n multiplies input 0 by constant bytes. */
static gboolean product_of(const HnPlan *p, const HnNode *n, float x_scale, Product *o)
{
    *o = (Product){ .params = { .lo = -INFINITY, .hi = INFINITY } };
    if (n->op == &hn_op_conv) {
        o->op = &hn_op_quantconv;
        o->params.conv = *(const HnConv *)n->params;
        return weights_of(p, hn_node_in(n, 1), 0, o) && bias_of(p, hn_node_in(n, 2), x_scale, o);
    }
    o->op = &hn_op_quantmatmul;
    if (n->op == &hn_op_matmul)
        return weights_of(p, hn_node_in(n, 1), 1, o) && o->w->ndim == 2;
    if (n->op != &hn_op_gemm)
        return FALSE;
    const HnGemmParams *g = n->params;
    o->params.turned = g->trans_b;
    return !g->trans_a && g->alpha == 1 && (g->beta == 1 || hn_node_in(n, 2) == NULL) &&
           weights_of(p, hn_node_in(n, 1), g->trans_b ? 0 : 1, o) && o->w->ndim == 2 &&
           bias_of(p, hn_node_in(n, 2), x_scale, o);
}

/* x's bytes as those of its step: of Relu's results those below the zero point are raised to it. NULL without an error:
 * that does not give the same numbers. */
static HnSlot *as_step(HnPlan *p, const HnNode *n, const HnValue *x, GError **error)
{
    const HnHeld *h = hn_plan_held_as(p, x);
    HnSlot *slot = hn_plan_find_slot(p, x);
    uint8_t map[BYTES];
    if (h->plain)
        return slot;
    for (int i = 0; i < BYTES; i++) {
        map[i] = (uint8_t)byte_of(&h->step, h->value[i]);
        if (occurs(h, i) && number_at(&h->step, map[i]) != h->value[i])
            return NULL;
    }
    HnHeld *plain = held_whole(&h->step);
    if (!changes_nothing(h, map, h->step.dtype))
        slot = exchanged(p, n, x, slot, map, h->step.dtype, NULL, error);
    if (slot != NULL)
        hold(p, x, slot, plain);
    else
        g_free(plain);
    return slot;
}

static HnSlot *scalar_slot(HnPlan *p, const HnValue *v, HnDtype dtype)
{
    if (v != NULL)
        return constant_slot(p, hn_tensor_ref(hn_types_value(p->types, v)));
    HnTensor *t = hn_tensor_new(dtype, 0, NULL, NULL, NULL);
    return t != NULL ? constant_slot(p, t) : NULL;
}

static gboolean add_product(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    const HnHeld *h = hn_plan_held_as(p, x);
    const HnWant *want = g_hash_table_lookup(p->wants, v);
    Product o;
    if (h == NULL || dtype_of(p, v) != HN_F32 || !product_of(p, n, h->step.scale, &o))
        return TRUE;
    GError *failure = NULL;
    HnSlot *from = as_step(p, n, x, &failure);
    if (from == NULL) {
        if (failure != NULL)
            g_propagate_error(error, failure);
        return failure == NULL;
    }
    const Step step = ((const HnHeld *)hn_plan_held_as(p, x))->step;
    HnStep *s = hn_step_new(p, n, HN_QUANT_INPUTS, 0, 1);
    s->op = o.op;
    s->in[HN_QUANT_X].slot = from;
    s->in[HN_QUANT_X_SCALE].slot = scalar_slot(p, step.scale_of, HN_F32);
    s->in[HN_QUANT_X_ZERO].slot = scalar_slot(p, step.zero_of, step.dtype);
    s->in[HN_QUANT_W].slot = constant_slot(p, hn_tensor_ref(o.w));
    s->in[HN_QUANT_W_SCALE].slot = constant_slot(p, hn_tensor_ref(o.scale));
    if (o.zero != NULL)
        s->in[HN_QUANT_W_ZERO].slot = constant_slot(p, hn_tensor_ref(o.zero));
    if (o.bias != NULL)
        s->in[HN_QUANT_BIAS].slot = constant_slot(p, hn_tensor_reshaped(o.bias, 1, &o.bias->n));
    HnHeld *made = NULL;
    if (want != NULL) {
        o.params.lo = want->lo;
        o.params.hi = want->hi;
        s->in[HN_QUANT_Y_SCALE].slot = scalar_slot(p, want->step.scale_of, HN_F32);
        s->in[HN_QUANT_Y_ZERO].slot = scalar_slot(p, want->step.zero_of, want->step.dtype);
        const HnQuantBounds b = hn_quant_bounds(&o.params, want->step.dtype, want->step.scale, want->step.zero);
        made = held_of(&want->step, (int)b.lo + want->step.zero, (int)b.hi + want->step.zero);
    }
    gpointer params = g_memdup2(&o.params, sizeof o.params);
    g_ptr_array_add(p->owned, params);
    s->params = params;
    s->out[0].slot = want != NULL ? byte_slot(p, v, want->step.dtype, error)
                                  : hn_plan_result_slot(p, v, hn_types_get(p->types, v), error);
    if (s->out[0].slot == NULL || s->in[HN_QUANT_X_ZERO].slot == NULL) {
        g_free(made);
        hn_step_free(s);
        return FALSE;
    }
    const gboolean ok = finish(p, s, done, error);
    if (ok && *done && made != NULL)
        g_hash_table_insert(p->held, v, made);
    else
        g_free(made);
    return ok;
}

/* --- all -----------------------------------------------------------------------------------------------------------
 */

gboolean hn_plan_add_bytes(HnPlan *p, HnNode *n, const GPtrArray *group, gboolean *done, GError **error)
{
    *done = FALSE;
    if (!p->bytes || (group != NULL && g_hash_table_contains(p->lowered, n)))
        return TRUE;
    if (n->op == &hn_op_quantizelinear)
        return add_quantize(p, n, done, error);
    if (n->op == &hn_op_dequantizelinear)
        return add_dequantize(p, n, done, error);
    if ((n->op->flags & HN_OP_ELEMENTWISE) != 0) {
        if (group != NULL)
            add_function(p, (HnNode *const *)group->pdata, group->len, done);
        else
            add_function(p, &n, 1, done);
        return TRUE;
    }
    if (takes_bytes(n) && (n->op->flags & HN_OP_VIEW) == 0)
        return add_move(p, n, done, error);
    return n->op->quant.kind == HN_Q_WEIGHTED ? add_product(p, n, done, error) : TRUE;
}
