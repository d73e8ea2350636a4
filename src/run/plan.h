/*
 * HnExec and HnPlan: the inside of a session.
 *
 * An exec is a graph made ready: the main one, or a sub-graph of a control node (owned by that node's step, with the
 * outer values it captures as further inputs). It keeps a plan per set of input types.
 *
 * A plan covers nodes [start, end) of its graph for fixed shapes. Where end is not the end of the graph, the last
 * node's result shapes are seen only at run time; `next` holds the plans that go on from there, one per set of shapes
 * seen.
 */
#pragma once

#include "lower/lower.h"
#include "run/constants.h"
#include "run/session.h"

#define HN_PLAN_CACHE 8 /* plans kept per point of decision, unless the session says otherwise */

typedef struct HnExec HnExec;
typedef struct HnPlan HnPlan;

typedef struct {
    HnTensor *tensor;
    int next; /* the output that replaces it; -1: none */
} HnVariableState;

struct HnEngine {
    gint ref;
    HnGraph *graph; /* of the prepared model: nobody writes to it */
    HnDevice *device;
    GPtrArray *inputs;    /* HnValue * to feed */
    GPtrArray *fed;       /* HnValue *: the inputs, then the variables */
    GPtrArray *variables; /* HnVariableState *, in that order */
    GPtrArray *residents; /* HnResident *, in that order; NULL: nothing was planned on a device with memory yet */
    GPtrArray *replaced;  /* the same, NULL for those that a run leaves alone */
    gint generation;      /* of the variables' elements; atomic */
    GHashTable *last_use; /* HnExec.last_use of the main graph */
    GMutex lock;          /* held while a session plans; of all that follows */
    HnTypes *base;        /* what every plan knows: weights, and what was computed of them */
    guint8 *settled;      /* for each node of the main graph: its results are in `base`, or nobody wants them */
    HnConstants *constants;
};

/* Nodes [start, end) of the main graph were inferred for a plan: what follows from weights alone is known from now on.
 */
void hn_engine_settle(HnEngine *e, const HnTypes *plan, int start, int end);

/* Places on the device for the variables, where it has memory and they have none yet. Under the lock. */
gboolean hn_engine_reside(HnEngine *e, GError **error);
/* Where variable i is in plans, in that place; NULL: nowhere. */
HnTensor *hn_engine_place(const HnEngine *e, guint i, HnWhere where);
/* Before a run: what the host wrote is on the device. */
gboolean hn_engine_upload(HnEngine *e, gpointer stream, GError **error);
/* What the run replaces is newer on the device, ... */
void hn_engine_note_replaced(HnEngine *e);
/* ... but for variable i, which came out on the host. */
void hn_engine_note_host(HnEngine *e, guint i);

typedef struct {
    HnEngine *engine;
    const HnBackend *backend;
    gpointer device, stream;
    HnSessionOptions o;
    gsize most_bytes; /* hn_session_limit() */
    const gint *halt; /* the budget's: an HnHalt that steps look at; may be NULL */
    double optimize_ms, prepare_ms;
    HnTimer *timer;   /* NULL mostly */
    GArray *marked;   /* guint8: what begins at each mark of hn_session_time_device(); NULL mostly */
    GArray *traced;   /* HnStepWork since hn_session_trace_device(); NULL mostly */
    GArray *noting;   /* where steps note theirs: that one, or a segment's that is recorded; NULL mostly */
    guint work_zero;  /* HnDeviceTrace.work() when what is noted began, replayed work counted */
    GArray *renewals; /* what is made anew where ... */
    gint generation;  /* ... the engine's is another one */
} HnRunEnv;

/* Runs compute, and values have memory. */
static inline gboolean hn_env_computes(const HnRunEnv *env)
{
    return env->backend->computes && !env->o.plan_only;
}

struct HnExec {
    HnRunEnv *env;
    HnGraph *graph;
    const HnPlan *owner;  /* plan of the step that holds this sub-graph; NULL: main graph */
    GPtrArray *inputs;    /* HnValue *: fed values, then captures */
    GPtrArray *plans;     /* HnPlan *, most recently used first */
    GHashTable *last_use; /* HnValue * -> 1 + index of the last node that reads it; G_MAXINT: a result */
};

/* Memory of a plan in one place. */
typedef struct {
    gsize bytes;
    void *data;
    GPtrArray *apart; /* instead: a block for each value and each step's scratch memory */
} HnArena;

struct HnPlan {
    HnExec *exec;
    HnPlan *before; /* whose `next` this one is */
    int depth;      /* plans before this one */
    int start, end;
    guint n_key;
    HnType **key;         /* types that this plan is for: of the exec's inputs, or of what the plan before ended with */
    HnTypes *known;       /* of the graph's values; kept while a later plan or a sub-graph may ask; else NULL */
    HnLowered *low;       /* what its steps are made of: all nodes below are of this graph */
    HnTypes *types;       /* low->types */
    GPtrArray *slots;     /* HnSlot *, owned */
    GHashTable *by_value; /* hn_lowered_origin() -> HnSlot * */
    GPtrArray *steps;     /* HnStep *, owned */
    GHashTable *copies;   /* HnSlot * -> GPtrArray * of HnSlot *: what reorders make of it */
    GHashTable *fused;    /* HnNode * that are computed along with an earlier one */
    GHashTable *groups; /* HnNode * -> GPtrArray * of HnNode *, in order: computed in one step where the last stands */
    gboolean integers;  /* the backend computes with them: deferred.c */
    GPtrArray *inputs;  /* HnSlot * of the exec's inputs, NULL where unused; first plan only */
    GPtrArray *aliases; /* HnSlot *: views of memory that is elsewhere at each run */
    GPtrArray *fresh;   /* HnSlot *: results that own their memory; of a sub-graph not always the same */
    GPtrArray *results; /* HnSlot * per graph output; last plan only */
    int parts;          /* a run runs the steps so often, each time for the next samples; mostly 1 */
    GArray *pieces;     /* HnPiece, where there are several parts */
    GPtrArray *wholes;  /* HnTensor * per result, of all samples, where there are several parts */
    GPtrArray *seen;    /* HnSlot * whose types choose the next plan */
    GPtrArray *next;    /* HnPlan *, most recently used first */
    HnArena arena[HN_PLACES];
    GArray *segments;       /* HnSegment, of a backend with memory of its own: all steps; else NULL */
    gsize objects, charged; /* bytes of steps, slots and types, about, and what the budget knows of them */
    gboolean last;
};

HnExec *hn_exec_new(HnRunEnv *env, HnGraph *g, const HnPlan *owner, GPtrArray *inputs);
/* HnExec.last_use of g. */
GHashTable *hn_plan_last_uses(const HnGraph *g);
void hn_exec_free(HnExec *x);
/* The plan for these input types, made when there is none. */
HnPlan *hn_exec_plan(HnExec *x, HnType *const *in, GError **error);
/* Tells the budget of p->objects. */
gboolean hn_plan_charge(HnPlan *p, GError **error);
/* The plan that goes on behind `p` now that the types of p->seen are known. */
HnPlan *hn_plan_next(HnPlan *p, GError **error);
gboolean hn_exec_run(HnExec *x, HnTensor *const *in, HnTensor **out, GError **error);
/* The types of v's world: of the plan's lowered graph, or of the graph that it is made of. */
const HnTypes *hn_plan_types(const HnPlan *p, const HnValue *v);

/* --- step.c: slots and steps */

void hn_slot_free(gpointer slot);
/* Whose memory a view looks at in the end; the slot itself if it is no view. */
HnSlot *hn_slot_root(HnSlot *s);
/* Where a view's elements are: in its root's memory. */
void *hn_slot_place(HnSlot *s);
/* The slot to read v from: of this plan, of one before it, or a constant's, made on its first use. */
HnSlot *hn_plan_slot(HnPlan *p, const HnValue *v, GError **error);
/* A new slot for v with a tensor of its type, if that is fixed; memory comes later. */
HnSlot *hn_plan_result_slot(HnPlan *p, const HnValue *v, const HnType *type, GError **error);
/* The slot of a value in this plan or one before it; NULL: none yet. */
HnSlot *hn_plan_find_slot(const HnPlan *p, const HnValue *v);
/* What the slot is called after; NULL: nothing. */
void hn_slot_set_value(const HnPlan *p, HnSlot *s, const HnValue *v);
/* v is read from that slot from now on. */
void hn_plan_set_slot(HnPlan *p, const HnValue *v, HnSlot *s);
/* An empty slot that belongs to no value's name. */
HnSlot *hn_plan_new_slot(HnPlan *p);
/* The slot's elements as dtype in layout `want` (NULL: plain), by a reorder step where they are not. */
HnSlot *hn_plan_converted(HnPlan *p, HnSlot *from, HnDtype dtype, HnLayout *want, GError **error);
/* The slot's elements in layout `want` (NULL: plain), by a reorder step where they lie otherwise. */
HnSlot *hn_plan_in_layout(HnPlan *p, HnSlot *from, HnLayout *want, GError **error);
/* A kernel takes d, for a lowering pass. */
gboolean hn_plan_runs(const HnDraft *d, gpointer plan);
/* Steps for node n, with what can be computed along (HnStep.fused, noted in p->fused). */
gboolean hn_plan_add_step(HnPlan *p, HnNode *n, GError **error);
/* Behind prepare, whose success `ok` is: reorders for what it asked for, and the step at the plan's end. The plan owns
 * it in any case. */
gboolean hn_plan_finish_step(HnPlan *p, HnStep *s, gboolean ok, GError **error);
/* The first kernel that takes the step as it is; NULL: none. Refusals are noted. */
const HnKernel *hn_plan_ask_kernels(const HnPlan *p, HnStep *s);
HnStep *hn_step_new(HnPlan *p, const HnNode *n, int n_in, int n_hidden, int n_out);
/* Its output 0 holds what its input 0 holds. */
void hn_plan_note_copy(HnPlan *p, const HnStep *s);
/* At the plan's end, which owns it from now on. */
void hn_plan_append(HnPlan *p, HnStep *s);
gboolean hn_plan_add_view(HnPlan *p, HnNode *n, GError **error);
/* The same for a node that only says how its input lies (HnBackend.turns), which *done tells. */
gboolean hn_plan_add_turned(HnPlan *p, HnNode *n, gboolean *done, GError **error);
/* n is a table that makes numbers of bytes: its step comes when one is planned that reads them (hn_plan_slot()). */
gboolean hn_plan_is_late(const HnPlan *p, const HnNode *n);
/* n is a table from bytes to bytes, which the step that makes the former applies at once from now on. */
gboolean hn_plan_exchanges(HnPlan *p, const HnNode *n);
void hn_step_free(gpointer step);

/* --- widen.c: halves held in f32 */

/* Shall n see its halves as f32? */
gboolean hn_plan_widens(const HnPlan *p, const HnNode *n);
/* The slot as f32 where it holds halves (wide), or as halves where it holds them in f32; others as they are. */
HnSlot *hn_plan_held(HnPlan *p, HnSlot *from, gboolean wide, GError **error);
/* Behind a step: what it made in f32 is read as the halves that it stands for, with HnSessionOptions.round_halves. */
gboolean hn_plan_round_results(HnPlan *p, const HnStep *s, GError **error);
/* A new result that is a half is f32 from now on. */
void hn_plan_widen_result(HnSlot *s);
/* Frees the elements of wide and of deferred constants that no step reads. */
void hn_plan_drop_wide(HnPlan *p);
/* The same at once for those that only this step takes, so that the next ones can have their memory. */
void hn_plan_drop_packed(HnPlan *p, const HnStep *step);

/* --- deferred.c: constants that are many bytes made of few */

/* n, of the graph before lowering, makes large constants of few bytes, which are better made where somebody reads them.
 */
gboolean hn_plan_unpacks(const HnPlan *p, HnNode *n);
/* Such a node whose inputs are known, or one that moves what it makes: nothing is to be done for it, ... */
gboolean hn_plan_is_deferred(const HnPlan *p, const HnNode *n);
/* ... and this is v, made by such a node: a new reference, another in *origin of what packed copies of it are found by,
 * for its slot. NULL without an error: it is something else. */
HnTensor *hn_plan_deferred(const HnPlan *p, const HnValue *v, HnTensor **origin, GError **error);

/* --- watch.c: values that somebody looks at */

gboolean hn_plan_watches(const HnPlan *p, const HnValue *v);
/* A step that leaves watched results behind in a layout with gaps gets plain copies of them. */
gboolean hn_plan_watch_step(HnPlan *p, const HnStep *s, GError **error);
/* Marks the slots. */
void hn_plan_watch_slots(HnPlan *p);
void hn_plan_look(const HnPlan *p, const HnSlot *s);

/* --- group.c: element-wise nodes in one pass */

/* Fills in p->groups. */
void hn_plan_find_groups(HnPlan *p);
/* One step for those nodes of a group that no earlier step computes along. */
gboolean hn_plan_add_group(HnPlan *p, const GPtrArray *group, GError **error);
void hn_group_free(HnGroup *g);

/* --- parts.c: a batch that is run part by part */

/* A value of all samples, whose next part is in the slot. */
typedef struct {
    HnSlot *slot;
    HnTensor *whole; /* NULL: nothing is fed yet */
    int input;       /* of the exec; -1: it is a result's memory */
} HnPiece;

/* Behind lowering, in front of steps: where it pays and is the same, the plan becomes one for some of the samples. */
void hn_plan_cut(HnPlan *p);
/* Memory for the results of all samples. */
gboolean hn_plan_own_wholes(HnPlan *p, GError **error);
/* Input i of the exec is that from now on. FALSE: it is the same for all parts. */
gboolean hn_plan_feed(HnPlan *p, int i, HnTensor *t);
/* Slots hold that part of their values. */
void hn_plan_begin_part(const HnPlan *p, int part);
void hn_plan_forget_pieces(HnPlan *p);

/* --- join.c: values inside one another's memory */

void hn_plan_join(HnPlan *p);

/* --- transfer.c: memory of the host and of a device */

/* Steps [start, end) that are of one kind. */
typedef struct {
    int start, end;
    enum { HN_ON_HOST, HN_MOVES, HN_READS_HOST, HN_ON_DEVICE } kind; /* READS_HOST: on the device, of host_in */
    guint runs;
    gpointer recorded; /* HN_ON_DEVICE: from the second run on; NULL: cannot be recorded */
    GArray *work;      /* HnStepWork of what was recorded, counted from its begin; NULL mostly */
    guint pieces;      /* of all of it */
    guint zero;        /* HnRunEnv.work_zero of before, while it is recorded */
} HnSegment;
/* The slot's elements in that place, plain where they have to be moved, by a step that copies them; device constants
 * are copied while planning. */
HnSlot *hn_plan_moved(HnPlan *p, HnSlot *from, HnWhere where, GError **error);
/* The planner's own step that copies between the two. */
gboolean hn_step_is_move(const HnStep *s);
/* Where the step's kernel works. */
HnWhere hn_step_where(const HnPlan *p, const HnStep *s);
/* Behind prepare: inputs are moved to where the kernel reads them, outputs are where it writes. */
gboolean hn_plan_move_ports(HnPlan *p, HnStep *s, GError **error);
void hn_plan_find_segments(HnPlan *p);
void hn_plan_forget_segments(HnPlan *p);
gboolean hn_plan_run_segments(HnPlan *p, GError **error);
/* The device's own clock can time the plan's steps there, ... */
gboolean hn_plan_has_clock(const HnPlan *p, const HnTimer *t);
/* ... which are enqueued one by one, unrecorded, with marks between them. */
gboolean hn_plan_run_marked(HnPlan *p, HnTimer *t, GError **error);
/* The stream of a session whose options and device are set, and what the device is to know of them. */
gboolean hn_env_open(HnRunEnv *env, GError **error);
/* For all that the session has enqueued. */
gboolean hn_env_wait(const HnRunEnv *env, GError **error);
/* hn_session_time_device(), hn_session_device_times(). */
gboolean hn_env_time_device(HnRunEnv *env, gboolean on);
gboolean hn_env_device_times(HnRunEnv *env, HnDeviceTimes *t, GError **error);
/* While a session's device keeps records (device_trace.h). Around n steps that are enqueued together, ... */
typedef struct {
    guint work, launches;
} HnTraceMark;
HnTraceMark hn_trace_mark(const HnRunEnv *env);
void hn_trace_note(const HnRunEnv *env, HnTraceMark before, HnStep *const *s, int n);
/* ... around the recording of a segment, whose steps are then noted with it, and before each replay. */
void hn_trace_record(HnRunEnv *env, HnSegment *g);
void hn_trace_recorded(HnRunEnv *env, HnSegment *g);
void hn_trace_replay(HnRunEnv *env, const HnSegment *g);
/* Copies to the device of what no step of the plan makes come first: what is behind them can be recorded in one go. */
void hn_plan_hoist_moves(HnPlan *p);
/* hn_session_foreach_unrecorded(), of this plan alone. */
void hn_plan_foreach_unrecorded(const HnPlan *p, HnUnrecordedFn fn, gpointer data);

/* --- together.c: steps that are run together */

/* Puts them one behind the other (HnKernel.run_many). */
void hn_plan_gather(HnPlan *p);
/* How many steps from `from` on, of those before `end`, are. */
int hn_plan_together(const HnPlan *p, int from, int end);
/* Where the copies of results to the host begin at the plan's end. */
guint hn_plan_first_result(const HnPlan *p);

/* --- settle.c: variables on a device */

/* Result k, in that slot, is not copied to the host: it replaces variables on the device. */
gboolean hn_plan_stays(const HnPlan *p, guint k, const HnSlot *s);
/* Steps at the end that copy new elements to the places of variables where they are not made there. */
gboolean hn_plan_settle(HnPlan *p, GError **error);

/* --- fault.c: what ran on a device did what it must not */

gboolean hn_env_failed(const HnRunEnv *env);
/* Behind a wait for this step alone, which failed with *error: says which node it was. */
void hn_step_name_failure(const HnStep *s, const HnRunEnv *env, GError **error);
/* The same behind a run of many steps with these inputs: by another run, step by step on the device opened anew. */
void hn_env_find_failure(const HnRunEnv *env, HnTensor *const *in, GError **error);

/* --- place.c: memory */

void hn_plan_free_memory(HnPlan *p);

void hn_plan_lifetimes(HnPlan *p);
gboolean hn_plan_place(HnPlan *p, GError **error);
/* Memory of its own for every result, and for what outlives the plan. */
gboolean hn_plan_own_memory(HnPlan *p, GError **error);
/* A tensor of the slot's form on the device. */
HnTensor *hn_plan_tensor_there(const HnPlan *p, const HnSlot *s, GError **error);
void hn_plan_resolve_aliases(HnPlan *p);

/* --- session.c */

HnRunEnv *hn_session_env(HnSession *s);

/* State of a step that runs a record's ref; see session.c. */
void hn_ref_prepare(HnStep *s, HnPlan *p);
gboolean hn_ref_run(HnStep *s, GError **error);
void hn_ref_release(HnStep *s);
/* What a step with sub-graphs runs on; prepared by hn_ref_prepare(). */
extern const HnKernel hn_control_kernel;
gboolean hn_step_run(HnStep *s, GError **error);
void hn_exec_foreach(const HnExec *x, HnStepFn fn, int depth, gpointer data);
void hn_exec_stats(const HnExec *x, HnSessionStats *stats);
