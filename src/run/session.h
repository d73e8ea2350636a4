/*
 * HnSession: one stream of runs of a model on a device.
 *
 *     g_autoptr(HnSession) s = hn_session_new(model, &hn_backend_cpu, &(HnSessionOptions){ .threads = 2 }, &error);
 *     if (s == NULL || !hn_session_run(s, inputs, outputs, &error)) ...
 *
 * A plan is made for each set of input shapes and kept in a small cache. Within a plan all shapes are numbers, shape
 * arithmetic is constant, memory is one arena with lifetimes known ahead, and running is a flat list of steps. Where an
 * output's shape depends on elements (NonZero, a Reshape fed at run time, an If whose branches differ) the plan ends
 * behind that node, and the rest is planned when the shape is seen, again cached.
 *
 * A session is used by one thread at a time; several sessions of one engine (run/engine.h), each in a thread of its
 * own, share the model, its packed weights and what follows from its weights. The model must outlive it and must not be
 * edited meanwhile.
 */
#pragma once

#include "run/engine.h"
#include "run/timer.h"

G_BEGIN_DECLS

/* Elements of a value as they lie at the moment: rows of `width` of them, in an order of the backend's choice. */
typedef struct {
    HnDtype dtype; /* f32 where halves are held so */
    const void *data;
    int64_t rows, width, pitch; /* from the start of a row to that of the next; elements all three */
} HnSeen;

/* Somebody who looks at values while the model runs. What is wanted is not computed away into another step; what is a
 * view of another value (HN_OP_VIEW) or is known before the run is never seen. */
typedef struct {
    gboolean (*wants)(const HnValue *v, gpointer data);
    /* v was made, or fed to the graph that it is an input of; called by the thread that runs the session. */
    void (*saw)(const HnValue *v, const HnSeen *seen, gpointer data);
    gpointer data;
} HnWatch;

typedef struct {
    int threads;           /* 0: hn_cpu_threads() */
    gboolean strict;       /* a node that runs on ref is an error that names it */
    gboolean bf16;         /* large products may round operands to bf16 where the machine has units for it */
    gboolean round_halves; /* where halves are computed in f32, each result becomes a half: nearer to other devices */
    gboolean strict_math;  /* only algorithms that add up what the operator says: no Winograd */
    uint64_t seed;         /* of random operators */
    HnBudget *budget;      /* arena, packed weights, results; NULL: unlimited */
    const char *const *feeds; /* hn_session_new() only: HnEngineOptions.feeds */
    int max_isa;              /* hn_session_new() only: 1 + HnDevice.isa; 0: all that the process may use */
    const char *prefer;   /* kernels whose names start with this are asked before the others: for tests. NULL: none */
    int plan_cache;       /* plans kept per point of decision; 0: 8, as for sub-graphs, which never have fewer */
    gboolean lasting;     /* results that somebody still refers to are not overwritten: the next go elsewhere */
    gboolean plan_only;   /* values get no memory, and runs compute nothing: it is only asked what runs would need */
    gsize part_bytes;     /* in runs of a batch part by part, what a node of a part reads and makes is no more, if that
                             can be; 0: a share of the cache; G_MAXSIZE: batches are whole */
    gboolean apart;       /* a block of memory for each value, for tests: sanitizers see where it ends */
    gboolean keeps_io;    /* for measuring, on a device with memory of its own: what is fed is copied there by a plan's
                             first run alone, and results come back from that one alone */
    const HnWatch *watch; /* not copied: outlives the session; NULL: nobody looks */
} HnSessionOptions;

typedef struct {
    gsize arena_bytes;      /* of all plans alive */
    gsize output_bytes;     /* results that the plans own */
    gsize weight_bytes;     /* elements of weights that the plans refer to, mapped or not, others' plans perhaps too */
    gsize packed_bytes;     /* copies that kernels packed: all of the device, which its sessions share */
    gsize device_bytes;     /* of these, on a device: arenas, and what lies there beside them */
    guint steps, ref_steps; /* of the plans alive, sub-graphs included */
    guint plans;
    double optimize_ms, prepare_ms; /* spent so far: shape inference and folding; kernels and memory */
} HnSessionStats;

/* A session of its own engine and device; the model is prepared (hn_model_prepare()). Errors: UNSUPPORTED naming an
 * operator that is not known, GRAPH (a model without outputs, too), ATTRIBUTE, USAGE, BUDGET. */
HnSession *hn_session_new(HnModel *m, const HnBackend *backend, const HnSessionOptions *o, GError **error);
/* One more session of an engine; any thread may call it. */
HnSession *hn_session_new_on(HnEngine *e, const HnSessionOptions *o, GError **error);
HnEngine *hn_session_engine(const HnSession *s); /* borrowed */
void hn_session_free(HnSession *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnSession, hn_session_free)

/* The values to feed, in order: graph inputs that are not initializers, and the initializers named in `feeds`. */
int hn_session_n_inputs(const HnSession *s);
const HnValue *hn_session_input(const HnSession *s, int i);
int hn_session_n_outputs(const HnSession *s);
const HnValue *hn_session_output(const HnSession *s, int k);

/* Plans for inputs of these types (fixed tensors) without running: as much as can be known before data is seen. */
gboolean hn_session_prepare(HnSession *s, HnType *const *in, GError **error);

/* in: one tensor per input (NULL only where the graph's declared type is optional: an error otherwise); checked against
 * the declared types. out: new references to results, which the session overwrites at the next run of the same shapes
 * (not with HnSessionOptions.lasting): copy what shall stay. For outputs that replace variables see run/variable.h.
 * Errors: TYPE, SHAPE, VALUE, BUDGET, UNSUPPORTED, each naming node or input. */
gboolean hn_session_run(HnSession *s, HnTensor *const *in, HnTensor **out, GError **error);

/* From now on no plan is made whose values and scratch memory take more than that: UNSUPPORTED, before any of it is
 * allocated. 0, as at first: any. */
void hn_session_limit(HnSession *s, gsize bytes);

/* From now on runs are timed step by step into t, which has to stay; NULL: no longer. Costs nothing when off. While
 * it is on nobody watches (HnSessionOptions.watch). */
void hn_session_set_timer(HnSession *s, HnTimer *t);

/* Behind a step (HnTimer.after): what the slot holds, as it lies there, copied to the host. */
gboolean hn_session_read(HnSession *s, const HnSlot *slot, void *to, GError **error);

void hn_session_stats(const HnSession *s, HnSessionStats *stats);

/* Where the time of runs went, by the clock of a device with memory of its own; ms, all runs together. They add up to
 * the time from the first copy or kernel of a run to the last one; the rest of a run is the host's alone. */
typedef struct {
    guint runs;
    double upload_ms, download_ms; /* copies, the host's part of them included */
    double kernels_ms;             /* segments of steps on the device: kernels, and what passes between them */
    double gaps_ms;                /* between segments: the host computes, or is late */
    double segments, recorded;     /* of steps on the device, and those of them that were replayed */
} HnDeviceTimes;

/* Does the device have a clock, and are runs timed by it from now on? There are marks between segments only, so that
 * what is recorded stays so. While it is on, HnTimer must not be. */
gboolean hn_session_time_device(HnSession *s, gboolean on);
/* Of the runs since it was switched on, or last asked for. */
gboolean hn_session_device_times(HnSession *s, HnDeviceTimes *t, GError **error);

/* From now on the device keeps records of what the session runs there (run/device_trace.h). FALSE: it cannot; *why
 * (g_free) is part of a sentence. What is recorded for replay has to be so while this is on, or may make no records. */
gboolean hn_session_trace_device(HnSession *s, char **why);
/* The end of it: adds an HnDeviceRecord for each piece of work, in order, and an HnStepWork for each step, whose pieces
 * are counted as the records are. FALSE: some are missing or are not what was enqueued; *why as above. */
gboolean hn_session_device_records(HnSession *s, GArray *records, GArray *work, char **why);

/* Called for every step of the plans alive, in order; `depth` counts enclosing sub-graphs. */
typedef void (*HnStepFn)(const HnStep *s, int depth, gpointer data);
void hn_session_foreach_step(const HnSession *s, HnStepFn fn, gpointer data);
/* Called for every step of these, but for copies, that a device which records what it is to do (HnMemory.record) has to
 * be told of anew at each run; `why` says why, as part of a sentence. */
typedef void (*HnUnrecordedFn)(const HnStep *s, const char *why, gpointer data);
void hn_session_foreach_unrecorded(const HnSession *s, HnUnrecordedFn fn, gpointer data);

G_END_DECLS
