/*
 * HnProfile: where a model's time goes, node by node.
 *
 * Profiled and unprofiled runs of the same inputs take turns in an order in which each kind follows each kind equally
 * often, so that what the machine does meanwhile meets both. A profiled run is a list of spans (run/timer.h); lists are
 * looked at after a block of runs, and then one run is made that does not count.
 *
 * A row is a node (with what was computed along with it), or the reorders of a value. The time of a node with
 * sub-graphs is its own, without the time of the nodes inside. "Outside" is what a run takes beyond its steps.
 *
 * The times of rows are robust estimates over all runs (perf/row_times.h): a time slice that went to another program
 * in one run is in no row. What the unprofiled median takes beyond them is `disturbed_ms`.
 *
 * On a device with memory and a clock of its own a third kind of run takes its turn, with marks between segments only:
 * rows are made to fit it (perf/device_rows.h), copies are rows, and two more are what is between kernels and when the
 * device waits for the host. "Outside" is then the host alone.
 *
 * Where the device keeps records (run/device_trace.h) a fourth kind of run, with these and with what is recorded
 * replayed, says what steps take there, and which kernels they are. Runs whose records are not what was enqueued are
 * told by marks; where they are more than half, all are.
 */
#pragma once

#include "base/progress.h"
#include "perf/device_rows.h"
#include "perf/device_work.h"
#include "perf/outliers.h"
#include "perf/roofline.h"
#include "perf/row_times.h"
#include "perf/stats.h"
#include "perf/ticks.h"
#include "run/session.h"

G_BEGIN_DECLS

#define HN_PROFILE_KEPT 4096 /* runs of which the times of rows are kept, chosen at random where there are more */

typedef struct {
    gconstpointer key; /* HnNode *, or HnValue * of a reorder */
    const HnNode *node;
    const HnValue *value;   /* that is moved, where node is NULL; may be NULL */
    const HnKernel *kernel; /* as last seen; NULL: ref */
    char *name;             /* "conv1", or "conv1_out" for its reorders */
    char *op;               /* "Conv+Relu", "reorder" */
    int depth;              /* of sub-graphs around it */
    int parent;             /* row of the node whose sub-graph holds it; -1: none, or never seen */
    char **in, **out;       /* types and shapes of one call, as in HnProfileCall; NULL: not known */
    int known;              /* steps of plans that it was seen in; 0: nothing is known down to refusals */
    gboolean integer, half; /* computes with 8-bit integers, with halves */
    HnRowPlace place;
    guint64 launches;    /* of kernels on a device, over all profiled runs */
    double flops, bytes; /* of one call */
    double made;         /* flops that the kernel makes: fewer than `flops` by Winograd's algorithm */
    GPtrArray *refusals; /* constant strings in pairs: kernel, reason */
    double error;        /* HnKernel.error(), the worst of all calls; NaN: nothing to tell */
    guint64 calls;       /* over all profiled runs */

    /* set by hn_profile_finish(), per run; NaN: not known */
    double per_run;        /* calls */
    double ms;             /* own time */
    double p10, p90;       /* of own times; never below and above ms */
    double spread;         /* half the distance of the quartiles of the same */
    double lo, hi;         /* 95 % interval of ms (perf/row_times.h) */
    HnRowPlaces places;    /* among all rows */
    double level;          /* of the quantile of its times that ms is, 0.5 at most */
    double with_ms;        /* own time and that of its sub-graphs */
    double gflops, gbytes; /* per second */
    double limit_ms;       /* what the roofline allows, never above ms */
    HnBound bound;         /* which part of it */
} HnProfileRow;

/* What a step was given in each call. */
typedef struct {
    const HnNode *node;
    char **in, **out; /* types and shapes, "" where there is none */
    HnCost cost;
} HnProfileCall;

/* A record of a row. */
typedef struct {
    HnDeviceRecord record;
    int row; /* -1: of none */
} HnProfileRecord;

/* A profiled run in full, for traces, and the run with records beside it. */
typedef struct {
    guint64 start, end; /* ticks */
    gsize n;
    HnSpan *spans;
    guint64 traced_start, traced_end; /* of the one with records; ... */
    guint64 origin;                   /* ... when they began to count their time */
    gsize n_records;
    HnProfileRecord *records;
} HnProfileRun;

typedef struct {
    HnSession *session;
    HnTimer timer;
    HnTicks ticks;
    GPtrArray *rows;     /* HnProfileRow *, in order of first execution */
    GHashTable *by_key;  /* -> index + 1 */
    GPtrArray *runs;     /* HnRowRun *: the kept ones */
    GPtrArray *traces;   /* HnProfileRun *, inner */
    gsize trace_spans;   /* room for so many spans in traces; 0: none */
    GHashTable *calls;   /* HnStep * -> HnProfileCall *; for traces only */
    HnOutliers outliers; /* among all runs, numbered as they were made; none where inputs are of many kinds */
    guint64 runs_made;
    HnTimes profiled, unprofiled; /* ms of whole runs */
    HnRng rng;
    guint64 first; /* ticks when measuring began */
    double spans;  /* over all profiled runs */

    gboolean on_device;        /* that has memory and a clock of its own; what follows is of it */
    guint64 marked;            /* runs with marks between segments */
    double segments, recorded; /* over these: HnDeviceTimes */
    guint64 settled;           /* of these, the ones that rows were taken from ... */
    double mark_ms;            /* ... and HnDeviceRest.mark over them */
    HnTimes marked_ms;         /* of these, whole */
    HnTimes traced_ms;         /* of runs with records, whole */
    guint64 traced, lost;      /* of these, the ones whose records were what was enqueued, and the others ... */
    guint lost_in_row;
    char *no_records; /* ... and why there are no more of them, or what was wrong last; NULL: nothing was */
    gboolean trace_ended;
    HnDeviceWork device_work; /* over all that were as they should */

    /* set by hn_profile_finish() */
    HnStats with, without; /* of profiled and unprofiled runs, ms */
    double nodes_ms, outside_ms, outside_p10, outside_p90;
    double total_ms;      /* nodes and outside */
    double unprofiled_ms; /* without.p50; where runs are of several kinds, the mean of their medians */
    gboolean by_records;  /* rows on the device are by records */
    double disturbed_ms;  /* by which total_ms is below it */
    double overhead;      /* by which part of its time profiling makes a run longer */
    guint kinds;          /* of runs */
} HnProfile;

typedef struct {
    gboolean (*run)(gpointer data, guint64 i, GError **error); /* one run of the session with the i-th inputs */
    guint (*kind)(gpointer data, guint64 i); /* equal for inputs of the same shapes; NULL: all inputs are */
    gpointer data;
    guint64 runs;     /* of each kind; 0: as the others say */
    double seconds;   /* of both kinds together; HN_MIN_INTERVAL of each kind at least */
    double precision; /* then go on until the 95 % intervals of both medians are within this part of them; 0: do not */
    double limit;     /* seconds when to end even so */
    gsize trace_spans;
    gboolean records; /* runs with records of the device, too */
} HnProfileOptions;

void hn_profile_init(HnProfile *p, HnSession *session);
void hn_profile_clear(HnProfile *p);

/* Ctrl-C is no error once a run of each kind was made. Errors are those of run, and INTERRUPTED. */
gboolean hn_profile_measure(HnProfile *p, const HnProfileOptions *o, const HnProgress *progress, GError **error);

/* One more run, run(data, 0): the errors of rows whose kernels have some to tell of. */
gboolean hn_profile_errors(HnProfile *p, gboolean (*run)(gpointer data, guint64 i, GError **error), gpointer data,
                           GError **error);

/* Costs, statistics and limits. Rooflines may be NULL; there: of the device that has memory of its own. */
void hn_profile_finish(HnProfile *p, const HnRoofline *roofline, const HnRoofline *there);

/* The row of a span, NULL: none. */
const HnProfileRow *hn_profile_row(const HnProfile *p, const HnSpan *span);

/* What its step was given, where there was to be a trace; NULL: not known. */
const HnProfileCall *hn_profile_call(const HnProfile *p, const HnSpan *span);

G_END_DECLS
