/*
 * The CUDA backend: devices, streams and memory behind HnBackend. cuda_kernel.h is for its kernels.
 *
 * A device is an open context with the modules of kernels loaded so far; sessions share it. A session's stream is a
 * CUDA stream with pinned memory through which pass what it copies from and to ordinary memory. All functions may be
 * called from any thread.
 */
#pragma once

#include "cuda/core/cublaslt.h"
#include "cuda/core/cuda_driver.h"
#include "cuda/core/kernel_file.h"
#include "run/backend.h"

G_BEGIN_DECLS

#define HN_CUDA_DEVICES 16 /* that have names */

/* "cuda" or "cuda:0", "cuda:1" and so on; NULL: of another index than those. Whether it is there open() tells. */
const HnBackend *hn_backend_cuda(int index);

typedef struct {
    const HnCudaDriver *driver;
    HnCuDevice index;
    HnCuContext context;
    gboolean apart; /* the context is no other's; else it is the one that all of the process share */
    int multiprocessors;
    int shared_bytes;  /* most of a block */
    int capability;    /* 80: compute capability 8.0 */
    float few_cost[2]; /* HN_CUDA_FEW_COSTS: others to see what they are worth */
    HnKernelFile *kernels;
    const char *conv_form; /* of convolutions channels last, the only one that they take; NULL: they choose */
    int conv_parts;        /* ... and how many blocks share their terms, if they can */
    gboolean asks_lt;      /* products may be cuBLASLt's, and are where it can: HONE_CUDA_LIBRARIES */
    GMutex lock;           /* of all that follows */
    HnLtHandle lt;         /* NULL: no product has asked for it yet, or ... */
    const char *lt_lacks;  /* ... it is not there, a constant text that says why */
    GHashTable *modules;   /* name -> HnCuModule */
    GHashTable *functions; /* name -> HnCuFunction, of all modules */
    GHashTable *shared;    /* HnCuFunction -> gsize in the pointer: hn_cuda_allow_shared() */
    GHashTable *blocks;    /* allocated memory: HnCuAddress -> gsize * */
    gsize used, limit;     /* bytes: of all blocks, and at most; 0: any */
    GHashTable *pinned;    /* memory of the host: void * -> its bytes */
    gsize pinned_bytes;    /* of all of it */
} HnCuda;

/* What a key costs where 8 warps share those of 16 queries (gemm/cuda_attention_few.cu), of one for the 64 queries and
 * more of other blocks: in f32, and in halves; as an H100 took for 128 to 1024 tokens. */
#define HN_CUDA_FEW_COSTS \
    {                     \
        1.65f, 3.7f       \
    }

#define HN_CUDA_STAGES 4
#define HN_CUDA_STAGE_BYTES ((gsize)1 << 20)

/* How the host's part of copies from and to ordinary memory is done: piece by piece, the one before it being on its way
 * meanwhile. */
typedef struct {
    int threads;   /* at most */
    gsize share;   /* bytes for each of them at least */
    gsize piece;   /* bytes; HN_CUDA_STAGE_BYTES at most */
    gboolean past; /* their stores go past the caches, which the device does not have to ask then */
} HnCudaCopying;

typedef struct {
    HnCuda *device;
    HnCuStream stream;
    guint8 *stages; /* pinned, HN_CUDA_STAGE_BYTES each; NULL until something is uploaded */
    HnCuEvent copied[HN_CUDA_STAGES];
    int turn;   /* which one is being filled ... */
    gsize used; /* ... up to here */
    HnCudaCopying copying;
    HnCuAddress complaint; /* 0 until a kernel may complain: its number on the device, ... */
    uint64_t *complained;  /* ... where it is copied to, pinned, ... */
    GArray *complainers;   /* ... and who may */
    GPtrArray *marks;      /* HnCuEvent: hn_cuda_memory's mark() */
    guint launches;        /* of kernels, counted, ... */
    guint work;            /* ... and all of what makes a record (HnDeviceTrace) */
    GMutex hold_lock;      /* of all that follows: hn_cuda_memory's hold() */
    GCond freed;
    guint held, free; /* how often the stream was held up, and let go */
    guint reached;    /* holds that the device has come to */
} HnCudaStream;

/* The driver is there and knows so many devices. Errors: UNSUPPORTED. */
gboolean hn_cuda_has_device(int index, GError **error);
/* Turns a result of the driver into an error that says what was tried; TRUE for success. */
gboolean hn_cuda_check(const HnCuda *c, int result, const char *what, GError **error);
/* Waits for all that was enqueued: a result of the driver. */
int hn_cuda_wait(const HnCudaStream *t);
/* The calling thread works with this device from now on. */
gboolean hn_cuda_enter(const HnCuda *c, GError **error);
/* The kernel `name` of the file <module>.cu; loads the module where it is the first. Errors: UNSUPPORTED. */
HnCuFunction hn_cuda_function(HnCuda *c, const char *module, const char *name, GError **error);

/* cuBLASLt, with HnCuda.lt open; NULL: *why, a constant text. In reject and prepare of kernels that it is asked for. */
const HnCublasLt *hn_cuda_lt(HnCuda *c, const char **why);
void hn_cuda_close_lt(HnCuda *c);

/* Around a wait: whether a kernel complained (hn_cuda_complains()) is asked for in front of it, and an error behind. */
gboolean hn_cuda_ask_complaint(HnCudaStream *t, GError **error);
gboolean hn_cuda_hear_complaint(HnCudaStream *t, GError **error);
void hn_cuda_free_complaint(HnCudaStream *t);

/* HnMemory's copies between host and device, and what they need; hn_cuda_copying: what streams begin with. */
gboolean hn_cuda_upload(gpointer stream, void *to, const void *from, gsize bytes, GError **error);
gboolean hn_cuda_download(gpointer stream, void *to, const void *from, gsize bytes, GError **error);
void hn_cuda_free_stages(HnCudaStream *t);
extern const HnCudaCopying hn_cuda_copying;

/* HnBackend.state, HnMemory.hold */
void hn_cuda_state(int index, gpointer device, HnDeviceState *out);
gboolean hn_cuda_hold(gpointer stream, gboolean on, GError **error);

/* HnMemory and HnDeviceTrace of the backend. */
extern const HnMemory hn_cuda_memory;
extern const HnDeviceTrace hn_cuda_trace;

G_END_DECLS
