/*
 * HnLockstep: two models on the same data, tensor by tensor.
 *
 *     g_autoptr(HnLockstep) l = hn_lockstep_new(&(HnSide){ ma, cpu }, &(HnSide){ mb, ref }, &options, &error);
 *     for (each sample of hn_lockstep_input(l, i)) hn_lockstep_run(l, in, &error);
 *     for (guint i = 0; i < hn_lockstep_rows(l); i++) hn_lockstep_row(l, i) ...
 *
 * Per layer, both models are run node by node, each node a session of its own, the second model leading and the first
 * going along as far as results are asked for. A result is given back after its last reader, so that memory does not
 * grow with the number of layers. Nodes are not fused, as a session over a whole model may do, and a node with
 * sub-graphs is one step. A tensor of the second model that stands for one of the first (check/match.h) gets two
 * errors:
 *
 *   accumulated   each model goes on with its own results
 *   isolated      the nodes since the last matched tensors are fed with the first model's tensors
 *
 * Otherwise both models are run whole, and only their outputs are compared, accumulated.
 */
#pragma once

#include "base/progress.h"
#include "check/compare.h"
#include "check/match.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnLockstep HnLockstep;

typedef struct {
    HnModel *model; /* outlives the lock-step; calls of its functions are inlined in it */
    const HnBackend *backend;
} HnSide;

typedef struct {
    gboolean per_layer;
    int threads; /* 0: hn_cpu_threads() */
    gboolean strict_math;
    uint64_t seed;
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL; outlives it */
} HnLockstepOptions;

/* The worst over all samples; in the scale of the first model's tensor. */
typedef struct {
    guint samples; /* that were compared; 0: the numbers mean nothing */
    double max_abs, max_rel;
    double cos, sqnr; /* as HnDiff; NaN (only one side is finite) is the worst */
} HnTensorError;

typedef struct {
    HnMatch match;
    gboolean is_output;    /* of the second model */
    gboolean differs;      /* shapes differed, or types that cannot be compared: f32 beside u8 */
    char *type_a, *type_b; /* as seen last: "f32[1,10]"; NULL: not seen */
    HnTensorError accumulated, isolated;
} HnLockstepRow;

/* Errors: those of hn_session_new(); USAGE where an input of b stands for none of a, or nothing is matched. */
HnLockstep *hn_lockstep_new(const HnSide *a, const HnSide *b, const HnLockstepOptions *o, GError **error);
void hn_lockstep_free(HnLockstep *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnLockstep, hn_lockstep_free)

/* Inputs of the first model; the second one's are those that they stand for, in its own float type. */
int hn_lockstep_n_inputs(const HnLockstep *l);
const HnValue *hn_lockstep_input(const HnLockstep *l, int i);

/* Compares on one more sample. Errors: INTERRUPTED, and those of hn_session_run(), naming the model. */
gboolean hn_lockstep_run(HnLockstep *l, HnTensor *const *in, GError **error);

/* In the order of the second model's nodes. What is constant in both is left out. */
guint hn_lockstep_rows(const HnLockstep *l);
const HnLockstepRow *hn_lockstep_row(const HnLockstep *l, guint i);

/* Results of the model (0 or 1) that stand for none of the other; constants left out. */
guint hn_lockstep_unmatched(const HnLockstep *l, int side);

G_END_DECLS
