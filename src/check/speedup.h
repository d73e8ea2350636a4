/*
 * Was a conversion worth it here: two forms of a model, their latency side by side and their bytes.
 */
#pragma once

#include "perf/contest.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct {
    int threads;    /* 0: hn_cpu_threads() */
    double seconds; /* of runs of each side at most; 0: 3 */
    double margin;  /* a difference below that is none; 0: 0.02 */
    double limit;   /* it goes on until it is decided whether `after` takes more than that of `before`'s time; 0: until
                       the interval is within the margin or beyond it */
    double precision;  /* instead: until the 95 % interval is within this part of the effect, in short rounds; what runs
                          the  same steps is not raced for long */
    double useful;     /* as HnContestOptions.useful */
    guint64 end;       /* as HnContestOptions.end */
    int after_threads; /* of `after`; 0: as `before` */
    HnTensor *const *after_in; /* its inputs, where they are others, such as more samples at a time; else NULL */
    HnBudget *budget;
    const HnProgress *progress;
} HnSpeedupOptions;

typedef struct {
    HnEffect effect;            /* latency of the new model over that of the old one */
    double old_ms, new_ms;      /* the latter is the former times the effect */
    gsize old_bytes, new_bytes; /* of the weights */
    gboolean faster;            /* beyond the margin */
    gboolean smaller;           /* by more than 1 % */
    gboolean pointless;         /* neither of them */
    gboolean same; /* both models run the same steps on the same shapes: the effect is 1, however noisy it is */
} HnSpeedup;

/*
 * Interleaved runs of `before` and `after` on one sample: `in` are the inputs of `before`, `after` gets them in its own
 * types. With a limit, what runs the same steps is not raced for longer than it takes to know how long they take.
 * Errors: those of hn_session_new() and hn_session_run(), naming the model; INTERRUPTED.
 */
gboolean hn_measure_speedup(HnModel *before, HnModel *after, const HnBackend *backend, HnTensor *const *in,
                            const HnSpeedupOptions *o, HnSpeedup *out, GError **error);

/* For people: "slower on this machine (1.043 times the latency, 95% interval 1.031 to 1.058), 0.502 times the bytes of
 * the weights"; g_free. */
char *hn_speedup_describe(const HnSpeedup *speedup);

G_END_DECLS
