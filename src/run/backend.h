/*
 * HnBackend and HnKernel: how a device takes part in running a graph.
 *
 * A backend is a table of functions. For each node the session asks the backend's kernels in order of preference; the
 * first whose reject() answers NULL is prepared; if none is left, the operator's ref runs on the host. Everything is
 * decided in prepare: layouts are agreed, weights packed, scratch booked. run() allocates nothing and takes no lock.
 *
 * Threads. A step belongs to one session, and a session to one thread at a time; but sessions of one device plan and
 * run at the same time, so a kernel writes to nothing but its step, its session's stream, and the device behind a lock.
 *
 * Layouts. A value is plain (row-major, as in the file) unless the kernel that makes it said otherwise: a layout is the
 * backend's own description of how elements lie in memory (for oneDNN: a memory descriptor). A kernel that wants an
 * input in another layout says so in prepare with HnPort.want; the planner then puts the backend's reorder step
 * in between, once for all consumers that want the same. Graph outputs, ref and other backends see plain values only.
 *
 * Places. A backend with memory of its own (HnBackend.memory) computes there: all that its kernels read and write is on
 * the device, but for HnKernel.host_in, and their run() only enqueues, on the session's stream. Inputs, results, and
 * what ref and sub-graphs read and write are on the host; the planner puts steps in between that copy, once for all
 * consumers.
 */
#pragma once

#include "lower/lower.h"
#include "run/device_state.h"
#include "run/device_trace.h"

G_BEGIN_DECLS

typedef struct HnBackend HnBackend;
typedef struct HnKernel HnKernel;
typedef struct HnStep HnStep;
typedef struct HnSlot HnSlot;
typedef struct HnPacks HnPacks;
typedef struct HnPack HnPack;

/* In whose memory elements are. */
typedef enum { HN_HOST, HN_DEVICE, HN_PLACES } HnWhere;

/* A backend's description of a memory layout; compared, measured and freed by the backend. */
typedef struct HnLayout {
    gint ref;
    gsize bytes; /* that a value in this layout fills, padding included */
    const HnBackend *backend;
    void (*free)(struct HnLayout *l); /* called when the last reference goes */
} HnLayout;

HnLayout *hn_layout_ref(HnLayout *l);
void hn_layout_unref(HnLayout *l);

/* A value while a plan runs: where its elements are. */
struct HnSlot {
    const HnValue *value;   /* of the model; NULL: made by the planner (reordered copy) */
    const HnValue *lowered; /* while planning: of the plan's lowered graph, that it is the slot of */
    HnTensor *tensor;       /* type, dims and the current place of the data. In a layout that is not plain, data is
                               what the layout says and `dims` stay the logical ones */
    HnLayout *layout;       /* NULL: plain */
    gboolean constant;      /* elements are known at prepare and stay */
    gboolean variable;      /* elements are there at prepare, and others in later runs (run/variable.h) */
    HnDtype half;           /* f16 or bf16: the value's type while its elements are held in f32; else HN_UNDEFINED */
    HnTensor *origin;       /* of a constant made of another: that one, or what stands for it; NULL mostly */
    HnWhere where;          /* of HN_DEVICE, the tensor's data is an address for kernels alone */
    HnPack *pack;           /* of a constant on the device: what holds its elements; NULL mostly */
    HnSlot *root;           /* whose memory this one looks at (output of a view); NULL: its own */
    int first, last;        /* steps between which it is alive, of a root: kept by the planner */
    int block;              /* index of its block in the memory plan; -1: not in the arena */
    gboolean kept;          /* alive beyond the plan: a result, or used behind the plan's end */
    gsize offset;           /* bytes into root's memory */
    int64_t pitch;          /* channels last within wider pixels: elements from a pixel to the next; 0: its channels */
    gboolean read;          /* some step reads it, or a view looks at it */
    gboolean dense;         /* a view in a layout looks at it, which knows no pitch */
    gboolean watched;       /* HnWatch: somebody looks at the elements as soon as they are there */
    gboolean changing;      /* the tensor is another one at each run: inputs, results of data-dependent shape */
    HnTensor *spare; /* of a sub-graph's result: the one of an earlier run; of a list: an empty one; NULL mostly */
};

#define HN_FUSED_MAX 10
#define HN_INPLACE_MAX 32 /* outputs that may lie in an input's memory */

/* One input or output of a step. */
typedef struct {
    HnSlot *slot;    /* NULL: absent */
    HnLayout *want;  /* input, set in prepare: the layout that run() expects; NULL: as it is if plain */
    gboolean any;    /* input, set in prepare: whatever layout the slot has is fine (element-wise kernels) */
    gboolean dies;   /* input that holds values, and nobody reads it behind this step */
    gboolean unread; /* input, set in prepare: run() does not read it (a weight that was packed) */
    gboolean joined; /* an input that lies in its place in output 0 already, or an output that lies in input 0 */
} HnPort;

/* Element-wise nodes that one step computes. */
typedef struct {
    int n;
    const HnNode **node; /* in order; the last one makes output 0, which has the shape of all element-wise results */
    /* For each input of each node: a port of the step, -1 - index of the node that makes it, or HN_GROUP_ABSENT. */
    int from[];
} HnGroup;
#define HN_GROUP_ABSENT G_MAXINT
/* At most: nodes of a group, ports of its step, inputs of a node. */
#define HN_GROUP_NODES 48
#define HN_GROUP_PORTS 64
#define HN_GROUP_INPUTS 8

struct HnStep {
    const HnNode *node;   /* of the plan's lowered graph; NULL: the planner's own step, a reorder */
    const HnNode *origin; /* of the model: the one whose result it makes. For reports */
    HnLowered *low;       /* hn_lowered_parts() of node are all the model's nodes that are computed here */
    const HnOp *op;
    const void *params;     /* node->params */
    const HnKernel *kernel; /* NULL: ref */
    int n_in, n_out, n_hidden;
    HnPort *in, *out;    /* in: n_in of the node, then n_hidden captures of its sub-graphs
                            or other inputs of fused nodes;
                            out[k].slot->layout may be set in prepare */
    gpointer state;      /* the kernel's own; freed by release() */
    gsize scratch_bytes; /* set in prepare: booked memory, 64-byte aligned ... */
    void *scratch;       /* ... granted in run; shared with all other steps */
    gpointer device;     /* what HnBackend.open returned: shared by sessions */
    gpointer stream;     /* what HnBackend.stream_new returned: the session's own */
    HnPacks *packs;      /* the device's packed weights (run/packs.h) */
    GArray *renewals;    /* the session's: hn_step_renews() */
    int threads;         /* HnSessionOptions.threads */
    HnBudget *budget;
    gboolean strict_math; /* HnSessionOptions.strict_math */
    gboolean bf16;        /* HnSessionOptions.bf16 */
    gboolean widened;     /* halves among the node's values are f32 here */
    guint32 inplace;      /* bit k: the planner let output k share input k's memory */
    int n_fused;          /* nodes computed along, in order: each takes the result so far as one of its inputs */
    const HnNode *fused[HN_FUSED_MAX];
    int fused_at[HN_FUSED_MAX];   /* which input that is */
    int fused_port[HN_FUSED_MAX]; /* where in `in` the node's other inputs are, in order; constants or of one shape */
    guint8 *table;  /* [256] what the bytes of output 0 are exchanged by, where the kernel `exchanges`; NULL mostly */
    HnGroup *group; /* its nodes instead of `node`, which is the last of them; NULL mostly */
    GPtrArray *refusals; /* "kernel: reason", borrowed constant strings in pairs (name, reason) */
};

/* How a value would lie in another one's memory. */
typedef enum {
    HN_PLACE_NONE,
    HN_PLACE_PIECE, /* as one piece, in its own order of bytes */
    HN_PLACE_PIXELS /* both channels last: each pixel's channels within the other's */
} HnPlace;

struct HnKernel {
    const char *name; /* "onednn.conv" */
    /* NULL: accepts; else why not, a constant text. Types and dims of all slots are fixed. */
    const char *(*reject)(const HnStep *s);
    gboolean (*prepare)(HnStep *s, GError **error);
    gboolean (*run)(HnStep *s, GError **error);
    /* The same for steps of the kernel that follow each other, each in memory of its own: in fewer launches. NULL: one
     * by one. Steps of little memory whose results nobody else reads are put together at the plan's end for it. */
    gboolean (*run_many)(HnStep *const *steps, int n, GError **error);
    void (*release)(HnStep *s);
    gboolean inplace;      /* run() may write output 0 over input 0 ... */
    gboolean inplace_each; /* ... or each output k over input k */
    guint64 host_in; /* of a backend with memory: bits of the inputs that run() reads on the host (shapes, axes) */
    /* A concatenation: where in output 0 the elements of input i are in the end, `offset` bytes from its start. run()
     * leaves alone what is HnPort.joined. NULL: never. */
    HnPlace (*joins)(const HnStep *s, int i, gsize *offset);
    HnPlace (*splits)(const HnStep *s, int k, gsize *offset); /* the same for output k in input 0 */
    gboolean pitched;   /* run() obeys HnSlot.pitch of channels-last inputs and outputs */
    gboolean exchanges; /* run() obeys HnStep.table, which may come behind prepare */
    /* Behind run(): max |error| / max |result| of output 0, in a kernel whose algorithm rounds more than the operator's
     * own sums would; NaN: not known. For reports, takes its time and allocates. NULL: no such algorithm. */
    double (*error)(const HnStep *s);
    /* Behind prepare(): the part of the operator's multiply-adds that the algorithm makes, below 1. For reports. NULL:
     * all of them. */
    double (*products)(const HnStep *s);
    /* The kernel can compute s->fused along with the node, all of output 0; asked before reject(). NULL: never. */
    gboolean (*fuses)(const HnStep *s);
};

/* Memory that is not the host's. What is enqueued is done in the order of the stream, perhaps much later. */
typedef struct {
    /* For kernels alone; of 0 bytes it is no NULL, either. Error: BUDGET. */
    void *(*alloc)(gpointer device, gsize bytes, GError **error);
    void (*free)(gpointer device, void *data);
    /* Memory of the host from and to which copies are fastest; NULL without an error: there is no more of it, and
     * ordinary memory will do. NULL: there is no such memory. Error: BUDGET. */
    void *(*alloc_pinned)(gpointer device, gsize bytes, GError **error);
    void (*free_pinned)(gpointer device, void *data);
    /* Enqueued: plain bytes to the device, whose source may be overwritten as soon as it returns, and back to the host,
     * where they are behind wait(). */
    gboolean (*upload)(gpointer stream, void *to, const void *from, gsize bytes, GError **error);
    gboolean (*download)(gpointer stream, void *to, const void *from, gsize bytes, GError **error);
    /* Enqueued: from one place on the device to another one. */
    gboolean (*copy)(gpointer stream, void *to, const void *from, gsize bytes, GError **error);
    /* For all that was enqueued; what went wrong there is its error. */
    gboolean (*wait)(gpointer stream, GError **error);
    /* What kernels enqueue between record() and recorded() is not done, but kept, to be enqueued at once by each
     * replay(); all addresses are the same each time. NULL: nothing is recorded. recorded() without an error may be
     * NULL, too: these steps cannot be, and are enqueued one by one. */
    gboolean (*record)(gpointer stream, GError **error);
    gpointer (*recorded)(gpointer stream, GError **error);
    gboolean (*replay)(gpointer stream, gpointer recorded, GError **error);
    void (*forget)(gpointer stream, gpointer recorded);
    /* Time stamps of the device. mark() enqueues number i, counted from 0 on; behind wait(), marks() says how many
     * nanoseconds behind the first one each of the first n was reached. NULL: the device has no clock. */
    gboolean (*mark)(gpointer stream, guint i, GError **error);
    gboolean (*marks)(gpointer stream, guint n, double *ns, GError **error);
    /* From now on alloc() gives no more than that many bytes in all; 0: any. NULL: nobody can say. */
    void (*limit)(gpointer device, gsize bytes);
    /* Something that ran there did what it must not, and nothing works on this device any more. NULL: never. */
    gboolean (*failed)(gpointer stream);
    /* From hold(TRUE) on nothing begins that is enqueued, until hold(FALSE), or until a millisecond has passed: the
     * device then goes from one step to the next without waiting for the host. NULL: it cannot be. */
    gboolean (*hold)(gpointer stream, gboolean on, GError **error);
    /* From now on copies may take so many threads of the host; at first 1. NULL: they never take others. */
    void (*threads)(gpointer stream, int n);
    guint (*launches)(gpointer stream); /* kernels that were enqueued there so far; NULL: they are not counted */
} HnMemory;

struct HnBackend {
    const char *name;       /* "cpu", "cuda", "cuda:1" */
    int index;              /* of several devices of its kind the one that open() opens, from 0 on */
    const HnMemory *memory; /* NULL: kernels work on the host's, and run() returns when they are done */
    /* What the sessions of an HnDevice share (run/device.h); NULL without an error: nothing. Error: UNSUPPORTED where
     * there is no such device. */
    gpointer (*open)(int index, GError **error);
    void (*close)(gpointer device);
    /* The same device, but so that it has nothing in common with what was opened before, which HnMemory.failed. NULL:
     * there is no such thing. */
    gpointer (*open_apart)(int index, GError **error);
    /* What each session has for itself beside it; NULL: nothing. stream_new fails with NULL. */
    gpointer (*stream_new)(gpointer device, GError **error);
    void (*stream_free)(gpointer stream);
    /* Kernels for an operator in order of preference, NULL ends; NULL: none. */
    const HnKernel *const *(*kernels)(const HnOp *op);
    /* For steps that turn input 0 into the layout of output 0 (either may be plain), or into its element type where
     * both are plain; in order of preference, the last takes everything. NULL: the planner never asks for any, since
     * all that the backend's kernels take and make is plain. */
    const HnKernel *const *reorders;
    /* For steps with a group; rejects none that group_takes() took each node of. NULL: none. */
    const HnKernel *group;
    /* May n be computed together with others? in[i] and out are fixed; known[i]: elements of input i, where they are.
     */
    gboolean (*group_takes)(const HnNode *n, const HnType *const *in, HnTensor *const *known, const HnType *out);
    gboolean (*layout_equal)(const HnLayout *a, const HnLayout *b);
    /* How the elements of `from`, which are not plain, lie when they are looked at under the dims of `to`. NULL: they
     * have to be plain. */
    HnLayout *(*layout_view)(const HnSlot *from, const HnTensor *to);
    /* The elements that n makes of `from`, which is on the device, are those of `from` as they lie, in *layout (NULL:
     * plain) under the dims of `to`: nothing is to be done. NULL: never. */
    gboolean (*turns)(const HnNode *n, const HnSlot *from, const HnTensor *to, HnLayout **layout);
    gboolean lowers;               /* nodes that spell an operator out become that operator */
    gboolean widens;               /* halves are computed in f32: the planner keeps them so in between */
    gboolean computes;             /* FALSE: the null backend, which plans everything and runs nothing */
    const char *(*describe)(void); /* library and version for reports, "oneDNN 3.2.0"; may be NULL */
    /* device: what open() returned, or NULL where it is not open. NULL: the host's own. */
    void (*state)(int index, gpointer device, HnDeviceState *out);
    const HnDeviceTrace *trace; /* NULL: the device keeps no records of what ran there */
};

/* What the step's input i, or output k, is; NULL: it is absent. */
static inline const HnTensor *hn_step_in(const HnStep *s, int i)
{
    return i < s->n_in && s->in[i].slot != NULL ? s->in[i].slot->tensor : NULL;
}
static inline const HnTensor *hn_step_out(const HnStep *s, int k)
{
    return k < s->n_out && s->out[k].slot != NULL ? s->out[k].slot->tensor : NULL;
}

/* The reorder of b for such a step. */
const HnKernel *hn_backend_reorder(const HnBackend *b, const HnStep *s);

extern const HnBackend hn_backend_null;

/* Every operator on its ref: no kernels at all. The judge of other backends. */
extern const HnBackend hn_backend_ref;

G_END_DECLS
