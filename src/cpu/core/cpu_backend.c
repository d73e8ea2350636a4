#include "cpu/core/cpu_backend.h"

#include "base/cpu.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/elementwise/fused_elementwise.h"
#include "run/element_program.h"

static void cpu_close(gpointer device)
{
    HnCpu *c = device;
    if (c == NULL)
        return;
    g_mutex_clear(&c->lock);
    if (c->attr != NULL)
        hn_dnnl(primitive_attr_destroy)(c->attr);
    if (c->engine != NULL)
        hn_dnnl(engine_destroy)(c->engine);
    g_free(c);
}

static gpointer cpu_open(int index, GError **error)
{
    (void)index;
    (void)error;
    HnCpu *c = g_new0(HnCpu, 1);
    g_mutex_init(&c->lock);
    return c;
}

static gpointer cpu_stream_new(gpointer device, GError **error)
{
    (void)device;
    (void)error;
    return g_new0(HnCpuStream, 1);
}

static void cpu_stream_free(gpointer stream)
{
    HnCpuStream *t = stream;
    if (t != NULL && t->onednn != NULL)
        hn_dnnl(stream_destroy)(t->onednn);
    g_free(t);
}

static const HnKernel *const *cpu_kernels(const HnOp *op)
{
#define HN_CPU(symbol, file)   \
    if (op == &hn_op_##symbol) \
        return hn_cpu_##symbol;
#include "cpu/kernels.def"
#undef HN_CPU
    return NULL;
}

static const char *cpu_describe(void)
{
    static const dnnl_version_t built = { .major = DNNL_VERSION_MAJOR,
                                          .minor = DNNL_VERSION_MINOR,
                                          .patch = DNNL_VERSION_PATCH };
    const dnnl_version_t *v = hn_onednn_is_open() ? hn_dnnl(version)() : &built;
    g_autofree char *text = g_strdup_printf("oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return g_intern_string(text);
}

const HnBackend hn_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .kernels = cpu_kernels,
    .reorders = hn_cpu_reorders,
    .group = &hn_cpu_fused_elementwise,
    .group_takes = hn_element_takes,
    .lowers = TRUE,
    .layout_equal = hn_layout_equal,
    .layout_view = hn_layout_view,
    .describe = cpu_describe,
    .widens = TRUE,
    .computes = TRUE,
};

/* --- what kernels share ------------------------------------------------------------------------------------------ */

/* From where on threads are used. Of our own kernels 2 to 5 us of one thread: two of them gain from 1 us on, and lose
 * nothing where the other one does not come. */
#define OWN_FLOPS 1e5
#define OWN_BYTES ((gsize)96 << 10)
/* Of oneDNN, whose threads wait for each other, 50 us. */
#define ONEDNN_FLOPS 4e6
#define ONEDNN_BYTES ((gsize)1 << 20)

static int threads_for(const HnStep *s, double flops, double enough_flops, gsize enough_bytes)
{
    gsize bytes = 0;
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnPort *p = i < s->n_in ? &s->in[i] : &s->out[i - s->n_in];
        if (p->slot != NULL && !p->slot->constant)
            bytes += p->slot->tensor->bytes;
    }
    return flops >= enough_flops || bytes >= enough_bytes ? s->threads : 1;
}

#define BF16_FLOPS 4e6 /* calling oneDNN and changing types costs about as much as this saves */

int hn_cpu_threads_for(const HnStep *s, double flops)
{
    return threads_for(s, flops, OWN_FLOPS, OWN_BYTES);
}

HnCpu *hn_cpu_begin(const HnStep *s, double flops)
{
    hn_onednn()->set_threads(threads_for(s, flops, ONEDNN_FLOPS, ONEDNN_BYTES));
    return s->device;
}

gboolean hn_cpu_in_bf16(const HnStep *s, double flops)
{
    return s->bf16 && hn_cpu_isa() >= HN_ISA_AMX && flops >= BF16_FLOPS;
}

gboolean hn_cpu_check(dnnl_status_t status, const HnStep *s, GError **error)
{
    if (status == dnnl_success)
        return TRUE;
    HnError code = status == dnnl_out_of_memory ? HN_ERROR_BUDGET : HN_ERROR_UNSUPPORTED;
    if (s->node == NULL)
        g_set_error(error, HN_ERROR, code, "oneDNN could not change a memory layout, status %d", (int)status);
    else
        g_set_error(error, HN_ERROR, code, "oneDNN could not compute node '%s' (%s), status %d", hn_node_label(s->node),
                    s->node->op_type, (int)status);
    return FALSE;
}

const char *hn_cpu_reject_f32(const HnStep *s)
{
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnSlot *slot = i < s->n_in ? s->in[i].slot : s->out[i - s->n_in].slot;
        if (slot == NULL)
            continue;
        if (slot->tensor->dtype != HN_F32)
            return "only f32";
        if (slot->tensor->n == 0)
            return "nothing to compute";
        if (slot->tensor->ndim > DNNL_MAX_NDIMS)
            return "only up to 12 axes";
    }
    return NULL;
}

/* What sessions share of oneDNN; under the device's lock. */
static gboolean start_shared(HnCpu *c)
{
    if (c->attr != NULL)
        return TRUE;
    dnnl_primitive_attr_t attr = NULL;
    if (hn_onednn() == NULL || hn_onednn()->isa > hn_cpu_isa()) /* opened for a session with a higher level */
        return FALSE;
    if ((c->engine == NULL && hn_dnnl(engine_create)(&c->engine, dnnl_cpu, 0) != dnnl_success) ||
        hn_dnnl(primitive_attr_create)(&attr) != dnnl_success)
        return FALSE;
    if (hn_dnnl(primitive_attr_set_scratchpad_mode)(attr, dnnl_scratchpad_mode_user) != dnnl_success) {
        hn_dnnl(primitive_attr_destroy)(attr);
        return FALSE;
    }
    c->attr = attr;
    return TRUE;
}

/* Engine of the device and stream of the session; FALSE: oneDNN is not there or does not start. */
static gboolean start_onednn(const HnStep *s)
{
    HnCpu *c = s->device;
    HnCpuStream *t = s->stream;
    if (t->onednn != NULL) /* the engine came before it */
        return TRUE;
    g_mutex_lock(&c->lock);
    const gboolean ok = start_shared(c);
    g_mutex_unlock(&c->lock);
    return ok && hn_dnnl(stream_create)(&t->onednn, c->engine, dnnl_stream_default_flags) == dnnl_success;
}

const char *hn_cpu_reject_onednn(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    return reason != NULL ? reason : start_onednn(s) ? NULL : "oneDNN (libdnnl.so.3) is not installed";
}

gboolean hn_cpu_wants_only(const HnStep *s, int n_out)
{
    for (int k = n_out; k < s->n_out; k++)
        if (s->out[k].slot != NULL)
            return FALSE;
    return TRUE;
}
