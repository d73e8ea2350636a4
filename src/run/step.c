/*
 * Planning, part 3: slots for values, steps for nodes, kernels for steps, reorders in between.
 */
#include <string.h>

#include "op/ops.h"
#include "run/plan.h"

/* Of a value: more than any process can address, so that what kernels reckon with its sizes stays in range. */
#define MOST_ELEMENTS ((int64_t)1 << 47)

/* About what a slot takes with its tensor and its places in tables, and a step with its kernel's state. */
#define SLOT_BYTES (sizeof(HnSlot) + sizeof(HnTensor) + 160)
#define STEP_BYTES (sizeof(HnStep) + 512)

/* --- slots ------------------------------------------------------------------------------------------------------- */

HnLayout *hn_layout_ref(HnLayout *l)
{
    g_atomic_int_inc(&l->ref);
    return l;
}

void hn_layout_unref(HnLayout *l)
{
    if (l != NULL && g_atomic_int_dec_and_test(&l->ref))
        l->free(l);
}

void hn_slot_free(gpointer data)
{
    HnSlot *s = data;
    hn_tensor_unref(s->tensor);
    hn_tensor_unref(s->spare);
    hn_tensor_unref(s->origin);
    hn_pack_unref(s->pack);
    hn_layout_unref(s->layout);
    g_free(s);
}

/* The result of the model that v is, or that stands for what v's node does. */
static const HnValue *called_after(const HnPlan *p, const HnValue *v)
{
    const HnValue *origin = hn_lowered_origin(p->low, v);
    const HnNode *n = origin == v && v != NULL && p->low != NULL ? v->producer : NULL;
    const HnNode *m = n != NULL && n->op != &hn_op_bytetable ? hn_lowered_node(p->low, n) : n;
    const HnValue *result = m != n ? hn_node_out(m, (int)v->producer_out) : NULL;
    return result != NULL ? result : origin;
}

void hn_slot_set_value(const HnPlan *p, HnSlot *s, const HnValue *v)
{
    s->value = called_after(p, v);
    s->lowered = v;
}

static HnSlot *slot_new(HnPlan *p, const HnValue *v)
{
    HnSlot *s = g_new0(HnSlot, 1);
    p->objects += SLOT_BYTES;
    hn_slot_set_value(p, s, v);
    s->block = -1;
    s->first = -1;
    s->last = -1;
    g_ptr_array_add(p->slots, s);
    if (v != NULL)
        hn_plan_set_slot(p, v, s);
    return s;
}

HnSlot *hn_slot_root(HnSlot *s)
{
    while (s->root != NULL)
        s = s->root;
    return s;
}

void *hn_slot_place(HnSlot *s)
{
    gsize offset = 0;
    for (; s->root != NULL; s = s->root)
        offset += s->offset;
    return s->tensor != NULL && s->tensor->data != NULL ? (char *)s->tensor->data + offset : NULL;
}

HnSlot *hn_plan_new_slot(HnPlan *p)
{
    return slot_new(p, NULL);
}

HnSlot *hn_plan_find_slot(const HnPlan *p, const HnValue *v)
{
    v = hn_lowered_origin(p->low, v);
    for (; p != NULL; p = p->before) {
        HnSlot *s = g_hash_table_lookup(p->by_value, v);
        if (s != NULL)
            return s;
    }
    return NULL;
}

void hn_plan_set_slot(HnPlan *p, const HnValue *v, HnSlot *s)
{
    g_hash_table_insert(p->by_value, (gpointer)hn_lowered_origin(p->low, v), s);
}

static HnSlot *late_slot(HnPlan *p, HnNode *n, GError **error);

/* The slot to read v from. A constant, and numbers that a table makes, get one on their first use. */
HnSlot *hn_plan_slot(HnPlan *p, const HnValue *v, GError **error)
{
    HnSlot *s = hn_plan_find_slot(p, v);
    if (s != NULL)
        return s;
    if (v->producer != NULL && hn_plan_is_late(p, v->producer))
        return late_slot(p, v->producer, error);
    HnTensor *t = hn_types_value(hn_plan_types(p, v), v), *origin = NULL;
    GError *failure = NULL;
    t = t != NULL ? hn_tensor_ref(t) : hn_plan_deferred(p, v, &origin, &failure);
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return NULL;
    }
    if (t == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "value '%s' is used before anything produces it", v->name);
        return NULL;
    }
    s = slot_new(p, v);
    s->tensor = t;
    s->constant = TRUE;
    s->origin = origin;
    return s;
}

/* A slot with a tensor of v's fixed type whose memory comes later. */
HnSlot *hn_plan_result_slot(HnPlan *p, const HnValue *v, const HnType *type, GError **error)
{
    int64_t dims[HN_MAX_RANK], n;
    HnSlot *s = slot_new(p, v);
    if (hn_type_is_list(type)) { /* what stands for it between runs has no elements */
        static const HnDtype kinds[] = {
            [HN_TYPE_SEQUENCE] = HN_SEQUENCE, [HN_TYPE_OPTIONAL] = HN_OPTIONAL, [HN_TYPE_MAP] = HN_MAP
        };
        s->tensor = hn_tensor_new_list(kinds[type->kind], 0, NULL, NULL);
        s->spare = hn_tensor_ref(s->tensor);
        s->changing = TRUE;
        return s;
    }
    if (!hn_type_is_fixed(type, dims))
        return s;
    if (!hn_dims_count(type->rank, dims, &n) || n > MOST_ELEMENTS ||
        (type->dtype != HN_STRING && hn_dtype_bits(type->dtype) == 0)) {
        g_autofree char *text = hn_type_describe(type);
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "'%s' of node '%s' is too large: %s", v->name,
                    v->producer != NULL ? hn_node_label(v->producer) : "input", text);
        return NULL;
    }
    s->tensor = hn_tensor_new_borrowed(type->dtype, type->rank, dims, NULL);
    return s;
}

/* --- steps ------------------------------------------------------------------------------------------------------- */

void hn_step_free(gpointer data)
{
    HnStep *s = data;
    if (s->kernel == NULL)
        hn_ref_release(s);
    else if (s->kernel->release != NULL)
        s->kernel->release(s);
    hn_renewals_forget(s->renewals, s);
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        hn_layout_unref(s->in[i].want);
    g_clear_pointer(&s->refusals, g_ptr_array_unref);
    hn_group_free(s->group);
    g_free(s->table);
    g_free(s->in);
    g_free(s->out);
    g_free(s);
}

HnStep *hn_step_new(HnPlan *p, const HnNode *n, int n_in, int n_hidden, int n_out)
{
    HnStep *s = g_new0(HnStep, 1);
    p->objects += STEP_BYTES + (gsize)(n_in + n_hidden + n_out) * sizeof(HnPort);
    s->node = n;
    s->origin = n != NULL ? hn_lowered_node(p->low, n) : NULL;
    s->low = p->low;
    s->op = n != NULL ? n->op : NULL;
    s->params = n != NULL ? n->params : NULL;
    s->n_in = n_in;
    s->n_hidden = n_hidden;
    s->n_out = n_out;
    s->in = g_new0(HnPort, (gsize)(n_in + n_hidden) + 1);
    s->out = g_new0(HnPort, (gsize)n_out + 1);
    s->device = p->exec->env->device;
    s->stream = p->exec->env->stream;
    s->packs = p->exec->env->engine->device->packs;
    s->renewals = p->exec->env->renewals;
    s->threads = p->exec->env->o.threads;
    s->budget = p->exec->env->o.budget;
    s->strict_math = p->exec->env->o.strict_math;
    s->bf16 = p->exec->env->o.bf16;
    return s;
}

void hn_plan_note_copy(HnPlan *p, const HnStep *s)
{
    GPtrArray *copies = g_hash_table_lookup(p->copies, s->in[0].slot);
    if (copies == NULL)
        g_hash_table_insert(p->copies, s->in[0].slot, copies = g_ptr_array_new());
    g_ptr_array_add(copies, s->out[0].slot);
}

void hn_plan_append(HnPlan *p, HnStep *s)
{
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        if (s->in[i].slot != NULL && !s->in[i].unread)
            s->in[i].slot->read = TRUE;
    if (s->node == NULL)
        hn_plan_note_copy(p, s);
    g_ptr_array_add(p->steps, s);
}

const HnKernel *hn_backend_reorder(const HnBackend *b, const HnStep *s)
{
    const HnKernel *const *k = b->reorders;
    while ((*k)->reject != NULL && (*k)->reject(s) != NULL)
        k++;
    return *k;
}

static gboolean lies_as(const HnBackend *b, const HnSlot *s, HnWhere where, HnDtype dtype, const HnLayout *want)
{
    return s->where == where && s->tensor->dtype == dtype &&
           (s->layout == want || (s->layout != NULL && want != NULL && b->layout_equal(s->layout, want)));
}

/* Elements of a constant that somebody reads are where their type may be. */
static gboolean align_constant(HnPlan *p, HnSlot *s, GError **error)
{
    if (!s->constant || !s->tensor->misaligned)
        return TRUE;
    HnTensor *t = hn_constants_aligned(p->exec->env->engine->constants, s->tensor, error);
    if (t == NULL)
        return FALSE;
    s->origin = s->tensor; /* elements of the file are no other's copy */
    s->tensor = t;
    return TRUE;
}

HnSlot *hn_plan_converted(HnPlan *p, HnSlot *from, HnDtype dtype, HnLayout *want, GError **error)
{
    const HnBackend *b = p->exec->env->backend;
    if (lies_as(b, from, from->where, dtype, want))
        return from;
    if (!align_constant(p, from, error) || (from = hn_plan_moved(p, from, HN_DEVICE, error)) == NULL)
        return NULL;
    const GPtrArray *copies = g_hash_table_lookup(p->copies, from);
    for (guint i = 0; copies != NULL && i < copies->len; i++) /* somebody else wanted the same */
        if (lies_as(b, copies->pdata[i], from->where, dtype, want))
            return copies->pdata[i];
    HnStep *s = hn_step_new(p, NULL, 1, 0, 1);
    HnSlot *to = slot_new(p, NULL);
    to->tensor = hn_tensor_new_borrowed(dtype, from->tensor->ndim, from->tensor->dims, NULL);
    to->layout = want != NULL ? hn_layout_ref(want) : NULL;
    to->half = dtype == from->tensor->dtype ? from->half : HN_UNDEFINED;
    to->where = from->where;
    s->in[0].slot = from;
    s->in[0].any = TRUE;
    s->out[0].slot = to;
    s->kernel = hn_backend_reorder(b, s);
    hn_plan_append(p, s);
    return s->kernel->prepare(s, error) ? to : NULL;
}

HnSlot *hn_plan_in_layout(HnPlan *p, HnSlot *from, HnLayout *want, GError **error)
{
    return hn_plan_converted(p, from, from->tensor->dtype, want, error);
}

static gboolean aligned_constants(HnPlan *p, HnStep *s, GError **error)
{
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        if (s->in[i].slot != NULL && !s->in[i].unread && !align_constant(p, s->in[i].slot, error))
            return FALSE;
    return TRUE;
}

const HnKernel *hn_plan_ask_kernels(const HnPlan *p, HnStep *s)
{
    const HnRunEnv *env = p->exec->env;
    const HnKernel *const *kernels = env->backend->kernels(s->op);
    g_ptr_array_set_size(s->refusals, 0);
    for (int pass = env->o.prefer != NULL ? 0 : 1; pass < 2; pass++)
        for (int i = 0; kernels != NULL && kernels[i] != NULL; i++) {
            const HnKernel *k = kernels[i];
            gboolean preferred = env->o.prefer != NULL && g_str_has_prefix(k->name, env->o.prefer);
            if (preferred != (pass == 0) || (s->n_fused > 0 && (k->fuses == NULL || !k->fuses(s))))
                continue;
            const char *reason = k->reject != NULL ? k->reject(s) : NULL;
            if (reason == NULL)
                return k;
            g_ptr_array_add(s->refusals, (gpointer)k->name);
            g_ptr_array_add(s->refusals, (gpointer)reason);
        }
    return NULL;
}

gboolean hn_plan_runs(const HnDraft *d, gpointer plan)
{
    HnPlan *p = plan;
    const gsize objects = p->objects;
    g_autofree HnSlot *slots = g_new0(HnSlot, d->n_in + 1);
    HnStep *s = hn_step_new(p, NULL, d->n_in, 0, 1);
    s->op = d->op;
    s->params = d->params;
    s->refusals = g_ptr_array_new();
    for (int i = 0; i < d->n_in; i++) {
        slots[i].tensor = d->in[i];
        slots[i].constant = d->in[i] != NULL && d->in[i]->data != NULL;
        s->in[i].slot = d->in[i] != NULL ? &slots[i] : NULL;
    }
    slots[d->n_in].tensor = d->out;
    s->out[0].slot = &slots[d->n_in];
    const gboolean runs = hn_plan_ask_kernels(p, s) != NULL;
    hn_step_free(s);
    p->objects = objects;
    return runs;
}

/* --- nodes computed along with the one before */

static gboolean same_type(const HnPlan *p, const HnValue *a, const HnValue *b)
{
    const HnType *x = hn_types_get(p->types, a), *y = hn_types_get(p->types, b);
    return x != NULL && y != NULL && hn_type_is_fixed(x, NULL) && hn_type_is_fixed(y, NULL) && x->dtype == y->dtype &&
           hn_type_equal(x, y);
}

/* A step makes w, or a table does of what one makes. */
static gboolean is_there(const HnPlan *p, const HnValue *w)
{
    if (w->producer != NULL && hn_plan_is_late(p, w->producer))
        w = hn_node_in(w->producer, 0);
    return hn_plan_find_slot(p, w) != NULL;
}

/* u takes v as exactly one input, at *at; its others are constants or values of v's type that are there already. */
static gboolean can_follow(const HnPlan *p, const HnNode *u, const HnValue *v, int *at)
{
    const HnValue *y = hn_node_out(u, 0);
    if (u->op == NULL || (u->op->flags & (HN_OP_ELEMENTWISE | HN_OP_ALONG)) == 0 || y == NULL || !same_type(p, y, v))
        return FALSE;
    for (guint k = 1; k < u->out->len; k++)
        if (u->out->pdata[k] != NULL)
            return FALSE;
    *at = -1;
    for (guint i = 0; i < u->in->len; i++) {
        const HnValue *w = u->in->pdata[i];
        if (w == v) {
            if (*at >= 0)
                return FALSE;
            *at = (int)i;
        } else if (w != NULL && hn_types_value(p->types, w) == NULL && (!is_there(p, w) || !same_type(p, w, v))) {
            return FALSE;
        }
    }
    return *at >= 0;
}

/* A chain of nodes that is looked for from index `at` of the graph on. */
typedef struct {
    const HnPlan *p;
    HnStep *s;
    guint at;
    int length;
} Chain;

/* The chain's next node is u, whose input `in` is the result so far. FALSE: no room, or it stands before another one.
 */
static gboolean follow(Chain *c, const HnNode *u, int in)
{
    const guint at = hn_graph_index(u->graph, u);
    if (c->length == HN_FUSED_MAX || at < c->at)
        return FALSE;
    c->at = at;
    c->s->fused[c->length] = u;
    c->s->fused_at[c->length++] = in;
    return TRUE;
}

/* Nodes behind n that are the only readers of the result so far. Fills in the step's fused nodes. */
static int chain_behind(const HnPlan *p, const HnNode *n, HnStep *s)
{
    Chain c = { .p = p, .s = s, .at = hn_graph_index(n->graph, n) };
    const HnValue *v = hn_node_out(n, 0);
    while (v != NULL && !v->is_output) {
        const HnNode *u = v->users->len == 1 ? v->users->pdata[0] : NULL;
        int in;
        if (u == NULL || !can_follow(p, u, v, &in) || !follow(&c, u, in))
            break;
        v = hn_node_out(u, 0);
    }
    return c.length;
}

/* The slot to read v from, its halves as f32 or as they are. */
static HnSlot *operand(HnPlan *p, const HnValue *v, gboolean wide, GError **error)
{
    HnSlot *s = hn_plan_slot(p, v, error);
    return s != NULL ? hn_plan_held(p, s, wide, error) : NULL;
}

static gboolean any_fuses(const HnPlan *p, const HnOp *op)
{
    const HnKernel *const *kernels = p->exec->env->backend->kernels(op);
    for (int i = 0; kernels != NULL && kernels[i] != NULL; i++)
        if (kernels[i]->fuses != NULL)
            return TRUE;
    return FALSE;
}

/* Ports for the other inputs of the chain's nodes, and the longest part of the chain that a kernel takes. */
static gboolean choose_fused(HnPlan *p, HnStep *s, int length, GError **error)
{
    int hidden[HN_FUSED_MAX + 1] = { s->n_hidden };
    for (int k = 0; k < length; k++) {
        const HnNode *u = s->fused[k];
        s->fused_port[k] = s->n_in + hidden[k];
        hidden[k + 1] = hidden[k] + (int)u->in->len - 1;
    }
    s->in = g_renew(HnPort, s->in, s->n_in + hidden[length] + 1);
    memset(s->in + s->n_in + s->n_hidden, 0, (gsize)(hidden[length] - s->n_hidden + 1) * sizeof(HnPort));
    for (int k = 0; k < length; k++)
        for (int i = 0, port = s->fused_port[k]; i < (int)s->fused[k]->in->len; i++) {
            const HnValue *w = hn_node_in(s->fused[k], i);
            if (i == s->fused_at[k])
                continue;
            if (w != NULL && (s->in[port].slot = operand(p, w, s->widened, error)) == NULL)
                return FALSE;
            port++;
        }
    for (s->n_fused = length;; s->n_fused--) {
        s->n_hidden = hidden[s->n_fused];
        if ((s->kernel = hn_plan_ask_kernels(p, s)) != NULL || s->n_fused == 0)
            return TRUE;
    }
}

/* The slot carries what the last fused node makes. */
static void take_over(HnPlan *p, HnStep *s)
{
    for (int k = 0; k < s->n_fused; k++)
        g_hash_table_add(p->fused, (gpointer)s->fused[k]);
    if (s->n_fused == 0)
        return;
    HnSlot *o = s->out[0].slot;
    g_hash_table_remove(p->by_value, o->value);
    hn_slot_set_value(p, o, hn_node_out(s->fused[s->n_fused - 1], 0));
    hn_plan_set_slot(p, o->lowered, o);
}

static gboolean choose_kernel(HnPlan *p, HnStep *s, GError **error)
{
    int length = any_fuses(p, s->op) ? chain_behind(p, s->node, s) : 0;
    s->refusals = g_ptr_array_new();
    if (!choose_fused(p, s, length, error))
        return FALSE;
    take_over(p, s);
    if (s->kernel != NULL)
        return s->kernel->prepare(s, error);
    hn_ref_prepare(s, p);
    return TRUE;
}

static gboolean is_list(const HnPort *p)
{
    return p->slot != NULL && p->slot->tensor != NULL && hn_tensor_is_list(p->slot->tensor);
}

/* Results of data-dependent shape have no tensor yet and are never offered to kernels; nor are values that hold values.
 */
static gboolean fit_for_kernels(const HnStep *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (is_list(&s->in[i]))
            return FALSE;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot != NULL && (s->out[k].slot->tensor == NULL || is_list(&s->out[k])))
            return FALSE;
    return TRUE;
}

gboolean hn_plan_add_step(HnPlan *p, HnNode *n, GError **error)
{
    const int n_all = (int)n->in->len; /* what sub-graphs capture stands behind the node's own inputs */
    const int n_in = (n->op->flags & HN_OP_CONTROL) != 0 ? (int)hn_lowered_node(p->low, n)->in->len : n_all;
    HnStep *s = hn_step_new(p, n, n_in, n_all - n_in, (int)n->out->len);
    s->widened = hn_plan_widens(p, n);
    for (int i = 0; i < n_all; i++) {
        const HnValue *v = hn_node_in(n, i);
        if (v != NULL && (s->in[i].slot = operand(p, v, s->widened, error)) == NULL) {
            s->n_hidden = 0;
            g_free(s->in);
            g_free(s->out);
            g_free(s);
            return FALSE;
        }
    }
    gboolean ok = TRUE;
    for (int k = 0; ok && k < s->n_out; k++) {
        const HnValue *v = hn_node_out(n, k);
        if (v != NULL)
            ok = (s->out[k].slot = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error)) != NULL;
        if (ok && v != NULL && s->widened)
            hn_plan_widen_result(s->out[k].slot);
    }
    if (ok && (n->op->flags & HN_OP_CONTROL) != 0) {
        hn_ref_prepare(s, p);
        s->kernel = &hn_control_kernel;
    } else if (ok && fit_for_kernels(s)) {
        ok = choose_kernel(p, s, error);
    } else if (ok) {
        hn_ref_prepare(s, p);
    }
    return hn_plan_finish_step(p, s, ok, error);
}

gboolean hn_plan_finish_step(HnPlan *p, HnStep *s, gboolean ok, GError **error)
{
    for (int i = 0; ok && i < s->n_in + s->n_hidden; i++)
        if (s->in[i].slot != NULL && !s->in[i].any && !s->in[i].unread)
            ok = (s->in[i].slot = hn_plan_in_layout(p, s->in[i].slot, s->in[i].want, error)) != NULL;
    ok = ok && hn_plan_move_ports(p, s, error) && (!p->exec->env->backend->computes || aligned_constants(p, s, error));
    hn_plan_append(p, s);
    hn_plan_drop_packed(p, s);
    ok = ok && hn_plan_watch_step(p, s, error) && hn_plan_round_results(p, s, error);
    if (ok && s->kernel == NULL && p->exec->env->o.strict) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "node '%s' (%s) has no kernel for this and would run on ref",
                    hn_node_label(s->node), s->node->op_type);
        return FALSE;
    }
    return ok;
}

/* Output 0 looks at input 0's memory under other dims. */
gboolean hn_plan_add_view(HnPlan *p, HnNode *n, GError **error)
{
    const HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    HnSlot *from = hn_plan_slot(p, x, error);
    HnSlot *s = from != NULL ? hn_plan_result_slot(p, v, hn_types_get(p->types, v), error) : NULL;
    if (s == NULL)
        return FALSE;
    if (from->layout != NULL && p->exec->env->backend->layout_view != NULL)
        s->layout = p->exec->env->backend->layout_view(from, s->tensor);
    if (s->layout != NULL)
        from->dense = TRUE;
    else if ((from = hn_plan_in_layout(p, from, NULL, error)) == NULL)
        return FALSE;
    if (from->half != HN_UNDEFINED)
        hn_plan_widen_result(s);
    from->read = TRUE;
    s->root = hn_slot_root(from);
    s->where = from->where;
    return TRUE;
}

gboolean hn_plan_add_turned(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    const HnBackend *b = p->exec->env->backend;
    const HnValue *x = n->in->len > 0 ? hn_node_in(n, 0) : NULL, *v = n->out->len > 0 ? hn_node_out(n, 0) : NULL;
    HnSlot *from = b->turns != NULL && x != NULL && v != NULL ? hn_plan_find_slot(p, x) : NULL;
    HnLayout *layout = NULL;
    int64_t dims[HN_MAX_RANK];
    if (from == NULL || from->constant || from->tensor == NULL || from->where != HN_DEVICE)
        return TRUE;
    const HnType *type = hn_types_get(p->types, v);
    if (!hn_type_is_fixed(type, dims) || type->dtype != from->tensor->dtype)
        return TRUE;
    HnTensor *to = hn_tensor_new_borrowed(type->dtype, type->rank, dims, NULL);
    *done = b->turns(n, from, to, &layout);
    hn_tensor_unref(to);
    if (!*done)
        return TRUE;
    HnSlot *s = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error);
    if (s == NULL) {
        hn_layout_unref(layout);
        return FALSE;
    }
    s->layout = layout;
    s->root = hn_slot_root(from);
    s->where = from->where;
    from->dense = from->read = TRUE;
    return TRUE;
}

/* --- tables of bytes */

gboolean hn_plan_is_late(const HnPlan *p, const HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    const HnType *t = n->op == &hn_op_bytetable && !v->is_output ? hn_types_get(hn_plan_types(p, v), v) : NULL;
    return t != NULL && t->dtype == HN_F32;
}

/* A step of the planner's own. */
static HnSlot *late_slot(HnPlan *p, HnNode *n, GError **error)
{
    HnSlot *from = hn_plan_slot(p, hn_node_in(n, 0), error);
    HnSlot *table = from != NULL ? hn_plan_slot(p, hn_node_in(n, 1), error) : NULL;
    if (table == NULL)
        return NULL;
    HnStep *s = hn_step_new(p, NULL, 2, 0, 1);
    HnSlot *to = hn_plan_new_slot(p);
    to->tensor = hn_tensor_new_borrowed(HN_F32, from->tensor->ndim, from->tensor->dims, NULL);
    s->op = n->op;
    s->in[0].slot = from;
    s->in[1].slot = table;
    s->out[0].slot = to;
    s->refusals = g_ptr_array_new();
    s->kernel = hn_plan_ask_kernels(p, s);
    if (s->kernel == NULL) { /* of a backend without it */
        hn_step_free(s);
        return hn_plan_add_step(p, n, error) ? hn_plan_find_slot(p, hn_node_out(n, 0)) : NULL;
    }
    hn_plan_set_slot(p, hn_node_out(n, 0), to);
    return hn_plan_finish_step(p, s, s->kernel->prepare(s, error), error) ? to : NULL;
}

/* The step that makes the slot's elements alone. */
static HnStep *maker_of(const HnPlan *p, const HnSlot *slot)
{
    for (guint i = p->steps->len; i-- > 0;) {
        HnStep *s = p->steps->pdata[i];
        if (s->n_out == 1 && s->out[0].slot == slot)
            return s;
    }
    return NULL;
}

gboolean hn_plan_exchanges(HnPlan *p, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    if (n->op != &hn_op_bytetable || x->is_output || x->users->len != 1)
        return FALSE;
    const HnTensor *table = hn_types_value(p->types, hn_node_in(n, 1));
    HnSlot *slot = hn_plan_find_slot(p, x);
    HnStep *maker = slot != NULL ? maker_of(p, slot) : NULL;
    if (table == NULL || maker == NULL || maker->kernel == NULL || !maker->kernel->exchanges || maker->table != NULL)
        return FALSE;
    maker->table = g_memdup2(table->data, table->bytes);
    HnTensor *t = hn_tensor_new_borrowed(table->dtype, slot->tensor->ndim, slot->tensor->dims, NULL);
    hn_tensor_unref(slot->tensor);
    slot->tensor = t;
    hn_slot_set_value(p, slot, v);
    hn_plan_set_slot(p, v, slot);
    return TRUE;
}
