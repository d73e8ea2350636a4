/*
 * What the kernels of the CUDA backend share: functions of .cu files, launches, types.
 *
 * A kernel in outline: <name>.cu holds __global__ functions, extern "C", that take one structure, which <name>_args.h
 * declares for both sides: device addresses as uint64_t, sizes, no pointers. <name>.c has the HnKernel:
 *   reject    types and shapes that it does not take;
 *   prepare   hn_cuda_function() for what run() launches; sizes go into the step's state; scratch_bytes is booked;
 *   run       fills in the addresses that ports have now, and hn_cuda_launch(): it only enqueues.
 * Inputs that run() reads on the host (axes, shapes) are HnKernel.host_in. Elements are plain, row-major
 * as in the file, where the kernel asks for nothing else (cuda_layout.h).
 */
#pragma once

#include "cuda/core/complaint_args.h"
#include "cuda/core/cuda_backend.h"
#include "run/packs.h"
#include "run/variable.h"

G_BEGIN_DECLS

#define HN_CUDA(symbol, file)         \
    extern const HnOp hn_op_##symbol; \
    extern const HnKernel *const hn_cuda_##symbol[];
#include "cuda/kernels.def"
#undef HN_CUDA

#define HN_CUDA_WARP 32

static inline const HnTensor *hn_cuda_in(const HnStep *s, int i)
{
    return hn_step_in(s, i);
}
static inline const HnTensor *hn_cuda_out(const HnStep *s, int k)
{
    return hn_step_out(s, k);
}
/* Where the elements are on the device at the moment; of an absent port 0. */
static inline uint64_t hn_cuda_address(const HnPort *p)
{
    return p->slot != NULL ? (uint64_t)(uintptr_t)p->slot->tensor->data : 0;
}
static inline uint64_t hn_cuda_in_address(const HnStep *s, int i)
{
    return i < s->n_in + s->n_hidden ? hn_cuda_address(&s->in[i]) : 0;
}
static inline uint64_t hn_cuda_out_address(const HnStep *s, int k)
{
    return k < s->n_out ? hn_cuda_address(&s->out[k]) : 0;
}
static inline uint64_t hn_cuda_scratch(const HnStep *s)
{
    return (uint64_t)(uintptr_t)s->scratch;
}
/* Of a kernel whose state is one block of memory. */
static inline void hn_cuda_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

/* The kernel <prefix>_<type> of <module>.cu, by hn_dtype_name(dtype). In prepare. */
HnCuFunction hn_cuda_typed(const HnStep *s, const char *module, const char *prefix, HnDtype dtype, GError **error);
/* The kernel of that name. */
HnCuFunction hn_cuda_named(const HnStep *s, const char *module, const char *name, GError **error);

typedef struct {
    unsigned grid[3], block[3];
    gsize shared; /* bytes of dynamic shared memory; more than 48 KiB only behind hn_cuda_allow_shared() */
} HnCudaGrid;

/* A row of blocks of so many threads. */
static inline HnCudaGrid hn_cuda_row(int64_t blocks, int threads)
{
    return (HnCudaGrid){ { (unsigned)CLAMP(blocks, 1, G_MAXINT32), 1, 1 }, { (unsigned)threads, 1, 1 }, 0 };
}
/* For kernels that loop over n elements by the size of the grid: as many blocks as keep the device busy. */
HnCudaGrid hn_cuda_loop(const HnStep *s, int64_t n, int threads);
/* A thread for each of n: smaller blocks where there would be fewer of them than multiprocessors. */
HnCudaGrid hn_cuda_spread(const HnStep *s, int64_t n, int threads);

/* Enqueues f on the session's stream; args: its structure, which is copied. */
gboolean hn_cuda_launch(const HnStep *s, HnCuFunction f, HnCudaGrid g, const void *args, GError **error);
/* f may be launched with that much dynamic shared memory, or with what another step asked for; not above
 * HnCuda.shared_bytes. In prepare. */
gboolean hn_cuda_allow_shared(const HnStep *s, HnCuFunction f, gsize bytes, GError **error);
/* Enqueues a copy on the device. */
gboolean hn_cuda_copy(const HnStep *s, uint64_t to, uint64_t from, gsize bytes, GError **error);

/* For kernels whose elements may be wrong (an index outside its axis), which nobody knows before they run: such a
 * kernel calls hn_complain() with the position of the element, and goes on with another one; the next wait fails with
 * what `say` says of the first of them, without the node's name. In prepare; `c` goes into the arguments. */
typedef void (*HnCudaSayFn)(const HnStep *s, int64_t at, GError **error);
gboolean hn_cuda_complains(const HnStep *s, HnCudaSayFn say, HnCudaComplaint *c, GError **error);
/* In release, of every step that may have asked. */
void hn_cuda_complains_no_more(const HnStep *s);

/* Enqueues zeros. */
gboolean hn_cuda_zeros(const HnStep *s, uint64_t to, gsize bytes, GError **error);

/* In prepare: `bytes` bytes of numbers on the device, for the step alone; 0: error. To be freed in release; 0 is fine.
 */
uint64_t hn_cuda_table_new(const HnStep *s, const void *data, gsize bytes, GError **error);
void hn_cuda_table_free(const HnStep *s, uint64_t table);

static inline gboolean hn_cuda_is_float(HnDtype t) /* f32, f16, bf16 */
{
    return t == HN_F32 || hn_dtype_is_half(t);
}
/* "only f32, f16, bf16" where input 0 is of another type, or "nothing to compute" where it has no elements. */
const char *hn_cuda_reject_floats(const HnStep *s);
gboolean hn_cuda_wants_only(const HnStep *s, int n_out); /* no output from n_out on is named */

G_END_DECLS
