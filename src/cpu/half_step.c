#include "cpu/half_step.h"

#include "cpu/backend.h"
#include "cpu/half.h"

/* A value of the step in f32: plain, and in the layout that the inner kernel has for it where that is another one. */
typedef struct {
    HnSlot plain, laid;
    HnStep reorder; /* between the two */
    HnPort from, to;
    gboolean shadow;         /* a half value; otherwise the port is the outer one's */
    gboolean moved;          /* goes through the reorder */
    gsize plain_at, laid_at; /* in scratch memory */
    void *made;              /* a constant's elements in f32; freed as soon as the kernel has packed them */
} Shadow;

typedef struct {
    HnStep step; /* in f32, never seen by the planner */
    int n_in, n_out;
    HnPort *ports;   /* of step: inputs, hidden ones included, then outputs */
    Shadow *shadows; /* of ports */
    gsize inner_at;  /* scratch of the kernels inside */
    gboolean failed; /* no memory for the constants of fused nodes */
} Half;

static gboolean half_slot(const HnSlot *slot)
{
    return slot != NULL && hn_cpu_is_half(slot->tensor->dtype);
}

static const HnPort *outer_port(const HnStep *s, int i)
{
    const int n = s->n_in + s->n_hidden;
    return i < n ? &s->in[i] : &s->out[i - n];
}

/* Elements of a constant in f32, in memory of their own. */
static gboolean convert(Half *h, int i, HnTensor *t, GError **error)
{
    Shadow *v = &h->shadows[i];
    if ((v->made = hn_budget_alloc(h->step.budget, v->plain.tensor->bytes, error)) == NULL ||
        !hn_tensor_align(t, h->step.budget, error))
        return FALSE;
    v->plain.tensor->data = v->made;
    hn_cpu_half_to_f32(t->dtype, v->made, t->data, t->n);
    return TRUE;
}

/* The step in f32, without the elements of its own constants: kernels ask for those of fused nodes at once. */
static Half *half_new(const HnStep *s)
{
    Half *h = g_new0(Half, 1);
    h->n_in = s->n_in + s->n_hidden;
    h->n_out = s->n_out;
    h->ports = g_new0(HnPort, (gsize)(h->n_in + h->n_out) + 1);
    h->shadows = g_new0(Shadow, (gsize)(h->n_in + h->n_out) + 1);
    h->step = *s;
    h->step.in = h->ports;
    h->step.out = h->ports + h->n_in;
    h->step.state = NULL;
    h->step.kernel = NULL;
    h->step.refusals = NULL;
    h->step.scratch_bytes = 0;
    h->step.inplace = FALSE;
    for (int i = 0; i < h->n_in + h->n_out; i++) {
        const HnPort *outer = outer_port(s, i);
        Shadow *v = &h->shadows[i];
        h->ports[i].slot = outer->slot;
        if (!half_slot(outer->slot))
            continue;
        const HnTensor *t = outer->slot->tensor;
        v->shadow = TRUE;
        v->plain = (HnSlot){ .constant = outer->slot->constant && i < h->n_in, .block = -1 };
        v->plain.tensor = hn_tensor_new_borrowed(HN_F32, t->ndim, t->dims, NULL);
        h->ports[i].slot = &v->plain;
        if (i >= s->n_in && v->plain.constant && !convert(h, i, outer->slot->tensor, NULL))
            h->failed = TRUE;
    }
    return h;
}

static void free_made(Half *h, Shadow *v)
{
    if (v->made != NULL)
        hn_budget_free(h->step.budget, v->made);
    v->made = NULL;
}

static void half_free(Half *h)
{
    if (h->step.kernel != NULL && h->step.kernel->release != NULL)
        h->step.kernel->release(&h->step);
    for (int i = 0; i < h->n_in + h->n_out; i++) {
        Shadow *v = &h->shadows[i];
        if (v->moved)
            v->reorder.kernel->release(&v->reorder);
        free_made(h, v);
        hn_layout_unref(h->ports[i].want);
        hn_layout_unref(v->laid.layout);
        hn_layout_unref(v->plain.layout);
        hn_tensor_unref(v->laid.tensor);
        hn_tensor_unref(v->plain.tensor);
    }
    g_free(h->shadows);
    g_free(h->ports);
    g_free(h);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Half, half_free)

/* The first f32 kernel that takes the step; NULL and *reason where none does. */
static const HnKernel *kernel_for(const Half *h, const char **reason)
{
    const HnKernel *const *k = hn_backend_cpu.kernels(h->step.op);
    *reason = h->failed ? "no memory for constants in f32" : "no kernel for f32";
    for (; !h->failed && k != NULL && *k != NULL; k++) {
        if (*k == &hn_cpu_half_step)
            continue;
        if (h->step.n_fused > 0 && ((*k)->fuses == NULL || !(*k)->fuses(&h->step)))
            continue;
        if ((*reason = (*k)->reject(&h->step)) == NULL)
            return *k;
    }
    return NULL;
}

static gboolean any_half(const HnStep *s)
{
    gboolean any = FALSE;
    for (int i = 0; i < s->n_in + s->n_hidden + s->n_out; i++) {
        const HnSlot *slot = outer_port(s, i)->slot;
        if (slot != NULL && slot->layout != NULL)
            return FALSE;
        any = any || half_slot(slot);
    }
    return any;
}

static const char *half_reject(const HnStep *s)
{
    const char *reason;
    if (!any_half(s))
        return "only f16 and bf16";
    g_autoptr(Half) h = half_new(s);
    return kernel_for(h, &reason) != NULL ? NULL : reason;
}

static gboolean half_fuses(const HnStep *s)
{
    const char *reason;
    if (!any_half(s))
        return FALSE;
    g_autoptr(Half) h = half_new(s);
    return kernel_for(h, &reason) != NULL;
}

static gboolean convert_constants(Half *h, HnStep *s, GError **error)
{
    for (int i = 0; i < s->n_in; i++)
        if (h->shadows[i].shadow && h->shadows[i].plain.constant) {
            if (!convert(h, i, s->in[i].slot->tensor, error))
                return FALSE;
            s->in[i].unread = TRUE;
        }
    for (int i = s->n_in; i < h->n_in; i++)
        s->in[i].unread = h->shadows[i].made != NULL;
    return TRUE;
}

static gsize book(gsize *total, gsize bytes)
{
    gsize at = *total;
    *total += (bytes + 63) / 64 * 64;
    return at;
}

/* Puts a reorder between the value as it is in plain f32 and as the kernel inside has it. */
static gboolean add_reorder(Half *h, int i, HnLayout *layout, GError **error)
{
    Shadow *v = &h->shadows[i];
    const HnTensor *t = v->plain.tensor;
    v->laid = (HnSlot){ .block = -1, .layout = hn_layout_ref(layout) };
    v->laid.tensor = hn_tensor_new_borrowed(HN_F32, t->ndim, t->dims, NULL);
    v->from.slot = i < h->n_in ? &v->plain : &v->laid;
    v->to.slot = i < h->n_in ? &v->laid : &v->plain;
    v->reorder = (HnStep){
        .n_in = 1, .n_out = 1, .in = &v->from, .out = &v->to, .device = h->step.device, .budget = h->step.budget
    };
    v->moved = TRUE;
    h->ports[i].slot = &v->laid;
    v->reorder.kernel = hn_backend_reorder(&hn_backend_cpu, &v->reorder);
    return v->reorder.kernel->prepare(&v->reorder, error);
}

/* Layouts that the kernel inside asked for and made. */
static gboolean add_reorders(Half *h, GError **error)
{
    for (int i = 0; i < h->n_in + h->n_out; i++) {
        Shadow *v = &h->shadows[i];
        if (!v->shadow)
            continue;
        if (i < h->n_in && h->ports[i].want != NULL && !h->ports[i].unread &&
            !add_reorder(h, i, h->ports[i].want, error))
            return FALSE;
        HnLayout *made = i >= h->n_in ? v->plain.layout : NULL;
        if (made == NULL)
            continue;
        v->plain.layout = NULL;
        gboolean ok = add_reorder(h, i, made, error);
        hn_layout_unref(made);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

static void half_release(HnStep *s)
{
    if (s->state != NULL)
        half_free(s->state);
    s->state = NULL;
}

static gboolean half_prepare(HnStep *s, GError **error)
{
    const char *reason;
    Half *h = half_new(s);
    s->state = h;
    if (!convert_constants(h, s, error))
        return FALSE;
    if ((h->step.kernel = kernel_for(h, &reason)) == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "node '%s' has no kernel any more: %s", hn_node_label(s->node),
                    reason);
        return FALSE;
    }
    if (!h->step.kernel->prepare(&h->step, error) || !add_reorders(h, error))
        return FALSE;
    gsize total = 0, inner = h->step.scratch_bytes;
    for (int i = 0; i < h->n_in + h->n_out; i++) {
        Shadow *v = &h->shadows[i];
        if (!v->shadow)
            continue;
        if (i < h->n_in && h->ports[i].unread) {
            free_made(h, v);
            v->plain.tensor->data = NULL;
        }
        if (!v->plain.constant)
            v->plain_at = book(&total, v->plain.tensor->bytes);
        if (v->moved)
            v->laid_at = book(&total, v->laid.layout->bytes);
        inner = MAX(inner, v->reorder.scratch_bytes);
    }
    h->inner_at = book(&total, inner);
    s->scratch_bytes = total;
    return TRUE;
}

static void place(Half *h, char *scratch)
{
    for (int i = 0; i < h->n_in + h->n_out; i++) {
        Shadow *v = &h->shadows[i];
        v->reorder.scratch = scratch + h->inner_at;
        if (v->shadow && !v->plain.constant)
            v->plain.tensor->data = scratch + v->plain_at;
        if (v->moved)
            v->laid.tensor->data = scratch + v->laid_at;
    }
    h->step.scratch = scratch + h->inner_at;
}

static gboolean half_run(HnStep *s, GError **error)
{
    Half *h = s->state;
    place(h, s->scratch);
    for (int i = 0; i < h->n_in; i++) {
        Shadow *v = &h->shadows[i];
        const HnPort *outer = outer_port(s, i);
        if (!v->shadow)
            continue;
        if (!v->plain.constant)
            hn_cpu_half_to_f32(outer->slot->tensor->dtype, v->plain.tensor->data, outer->slot->tensor->data,
                               v->plain.tensor->n);
        if (v->moved && !v->reorder.kernel->run(&v->reorder, error))
            return FALSE;
    }
    if (!h->step.kernel->run(&h->step, error))
        return FALSE;
    for (int i = h->n_in; i < h->n_in + h->n_out; i++) {
        Shadow *v = &h->shadows[i];
        const HnPort *outer = outer_port(s, i);
        if (!v->shadow)
            continue;
        if (v->moved && !v->reorder.kernel->run(&v->reorder, error))
            return FALSE;
        hn_cpu_half_from_f32(outer->slot->tensor->dtype, outer->slot->tensor->data, v->plain.tensor->data,
                             v->plain.tensor->n);
    }
    return TRUE;
}

const HnKernel hn_cpu_half_step = {
    .name = "cpu.half",
    .reject = half_reject,
    .prepare = half_prepare,
    .run = half_run,
    .release = half_release,
    .fuses = half_fuses,
};
