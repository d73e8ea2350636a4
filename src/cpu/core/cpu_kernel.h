/*
 * What the kernels of the CPU backend share: the device, memory descriptors and layouts, primitives, packed weights.
 *
 * A kernel through oneDNN, in outline:
 *   reject    the types and dims are ones that oneDNN computes as ONNX means them, and it has an implementation;
 *   prepare   a primitive descriptor with `any` layouts; what it chose goes into the ports' `want`, the output slot's
 *             layout and hn_pack() for constant weights; then hn_prim_init();
 *   run       hn_prim_run() with the slots' present addresses. Nothing is allocated by hone.
 */
#pragma once

#include "base/parallel.h"
#include "cpu/core/onednn.h"
#include "run/packs.h"
#include "run/variable.h"

G_BEGIN_DECLS

#define HN_CPU(symbol, file)          \
    extern const HnOp hn_op_##symbol; \
    extern const HnKernel *const hn_cpu_##symbol[];
#include "cpu/kernels.def"
#undef HN_CPU

/* --- the device -------------------------------------------------------------------------------------------------- */

/* Shared by sessions. Both are made with the first step that asks for oneDNN, and stay. */
typedef struct {
    GMutex lock; /* of making them */
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr; /* scratch memory comes from the plan's arena */
} HnCpu;

/* A session's own; NULL until it has a step that asks for oneDNN. */
typedef struct {
    dnnl_stream_t onednn;
} HnCpuStream;

/* Threads for a step of our own of so many floating-point operations: one, unless it takes long enough, some
 * microseconds, for others to be of use (base/team.h). */
int hn_cpu_threads_for(const HnStep *s, double flops);
/* The step's device, to make a primitive with: oneDNN takes the number of threads from OpenMP's setting, and more work
 * than our kernels to use them, for its threads wait for each other, milliseconds while somebody else holds a CPU. */
HnCpu *hn_cpu_begin(const HnStep *s, double flops);
/* The step is left to oneDNN, which rounds the operands of so large a product to bf16 and multiplies them in the
 * processor's matrix units (AMX): the session allows it, and there are such units. Without them kernels multiply pairs
 * of bf16 themselves (cpu/gemm/gemm_pairs.h). */
gboolean hn_cpu_in_bf16(const HnStep *s, double flops);
/* Turns a status other than success into an error that names the step's node. */
gboolean hn_cpu_check(dnnl_status_t status, const HnStep *s, GError **error);

/* Why a step cannot be computed in single precision by oneDNN at all: another type, no elements, too many axes.
 * NULL: nothing against it. */
const char *hn_cpu_reject_f32(const HnStep *s);
/* The same, and oneDNN is there: starts it. */
const char *hn_cpu_reject_onednn(const HnStep *s);
static inline const HnTensor *hn_cpu_in(const HnStep *s, int i)
{
    return hn_step_in(s, i);
}
/* Of a kernel whose state is one block of memory. */
static inline void hn_cpu_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}
static inline void *hn_cpu_data(const HnPort *p)
{
    return p->slot->tensor->data;
}
gboolean hn_cpu_wants_only(const HnStep *s, int n_out); /* no output from n_out on is named */

/* --- memory descriptors and layouts ------------------------------------------------------------------------------ */

static inline void hn_md_free(dnnl_memory_desc_t md)
{
    hn_dnnl(memory_desc_destroy)(md);
}
static inline void hn_attr_destroy(dnnl_primitive_attr_t attr)
{
    hn_dnnl(primitive_attr_destroy)(attr);
}
static inline void hn_pd_free(dnnl_primitive_desc_t pd)
{
    hn_dnnl(primitive_desc_destroy)(pd);
}
G_DEFINE_AUTO_CLEANUP_FREE_FUNC(dnnl_memory_desc_t, hn_md_free, NULL)
G_DEFINE_AUTO_CLEANUP_FREE_FUNC(dnnl_primitive_desc_t, hn_pd_free, NULL)
G_DEFINE_AUTO_CLEANUP_FREE_FUNC(dnnl_primitive_attr_t, hn_attr_destroy, NULL)

/* f32 memory descriptors, to be freed. NULL: oneDNN has no such thing (out of memory, more than 12 axes). */
dnnl_memory_desc_t hn_md_plain(int ndim, const int64_t *dims);
dnnl_memory_desc_t hn_md_any(int ndim, const int64_t *dims);
dnnl_memory_desc_t hn_md_strided(int ndim, const int64_t *dims, const int64_t *strides);
dnnl_memory_desc_t hn_md_of(const HnSlot *slot); /* as the slot's elements lie now */

/* New layout of elements that lie as md says; NULL where that is plain. */
HnLayout *hn_layout_new(const_dnnl_memory_desc_t md);
const_dnnl_memory_desc_t hn_layout_md(const HnLayout *l);
/* Channels last: [N, spatial..., C] of a tensor of 3 to 5 axes, made without oneDNN. NULL: plain elements lie that way
 * already (one channel or one pixel), or there are other axes. */
HnLayout *hn_layout_last(const HnTensor *t);
gboolean hn_layout_is_last(const HnLayout *l);
/* Elements from index to index of each axis, channels last without a pitch. */
void hn_last_strides(int ndim, const int64_t *dims, int64_t *strides);
/* The elements lie channels last; plain ones of one channel or one pixel do too. */
gboolean hn_slot_is_last(const HnSlot *slot);
/* Channels last: elements from one pixel's channels to the next pixel's. Settled behind prepare. */
int64_t hn_slot_pitch(const HnSlot *slot);
/* There are elements that belong to no logical index (channels filled up to a whole block). They are 0, and have to
 * stay 0. */
gboolean hn_layout_padded(const HnLayout *l);
gboolean hn_layout_equal(const HnLayout *a, const HnLayout *b);
HnLayout *hn_layout_view(const HnSlot *from, const HnTensor *to); /* HnBackend.layout_view */
/* Elements in memory, padding included. */
int64_t hn_slot_elements(const HnSlot *slot);

extern const HnKernel *const hn_cpu_reorders[];

/* --- primitives -------------------------------------------------------------------------------------------------- */

#define HN_PRIM_ARGS (4 + 2 * HN_FUSED_MAX)

typedef struct {
    dnnl_primitive_t prim;
    int n; /* of arg; with scratch memory the last one is that */
    dnnl_exec_arg_t *arg;
    gboolean scratch;
    int threads; /* that it was made for */
} HnPrim;

/* Behind hn_cpu_begin(): a primitive and memory objects for the given arguments (DNNL_ARG_...); books scratch memory
 * for the step. */
gboolean hn_prim_init(HnPrim *p, HnStep *s, const_dnnl_primitive_desc_t pd, int n, const int *args, GError **error);
/* Executes it on data[i] for args[i]. */
gboolean hn_prim_run(HnPrim *p, const HnStep *s, void *const *data, GError **error);
void hn_prim_clear(HnPrim *p);

/* --- packed weights ---------------------------------------------------------------------------------------------- */

/* Input i of s, a constant whose elements lie as `view` says, in layout `want`. Where they lie that way already, *pack
 * is NULL and run() reads the slot; otherwise the port is marked unread. */
gboolean hn_pack(HnStep *s, int i, const_dnnl_memory_desc_t view, const_dnnl_memory_desc_t want, HnPack **pack,
                 GError **error);
/* The same in an arrangement of our own: fn writes `bytes` bytes; of f32 it makes floats, of which denormal ones become
 * 0. `variant` tells arrangements by the same fn apart; data is handed on to it, and stays as long as the step does
 * where input i is a variable, whose pack fn writes anew whenever it has changed. */
gboolean hn_pack_own(HnStep *s, int i, HnPackFn fn, int64_t variant, gsize bytes, gconstpointer data, HnPack **pack,
                     GError **error);
/* The same of an fn that makes 0 of denormal floats itself. */
gboolean hn_pack_normal(HnStep *s, int i, HnPackFn fn, int64_t variant, gsize bytes, gconstpointer data, HnPack **pack,
                        GError **error);
/* A hash of t's elements, too, for a `variant`: what else the arrangement depends on. NULL is fine. */
guint64 hn_pack_mix(guint64 hash, const HnTensor *t);
/* What run() shall read for input i. */
void *hn_pack_data(const HnPack *pack, const HnStep *s, int i);

G_END_DECLS
