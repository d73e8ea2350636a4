/*
 * HnLayerDiff: two models on the same data, tensor by tensor.
 *
 *     const HnSide a = { .model = ma, .backend = cpu }, b = { .model = mb, .backend = ref };
 *     g_autoptr(HnLayerDiff) l = hn_layer_diff_new(&a, &b, &options, &error);
 *     for (each sample of hn_layer_diff_input(l, i))
 *         hn_layer_diff_run(l, in, &error);
 *     for (guint i = 0; i < hn_layer_diff_rows(l); i++)
 *         hn_layer_diff_row(l, i) ...
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
#include "check/tensor_diff.h"
#include "check/match.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnLayerDiff HnLayerDiff;

typedef struct {
    HnModel *model; /* outlives the layer diff; calls of its functions are inlined in it */
    const HnBackend *backend;
    gboolean bf16; /* HnSessionOptions */
    int max_isa;   /* HnSessionOptions */
} HnSide;

typedef struct {
    gboolean per_layer;
    int threads; /* 0: hn_cpu_threads() */
    gboolean strict_math;
    uint64_t seed;
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL; outlives it */
} HnLayerDiffOptions;

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
    gboolean rescaled;     /* a tool had moved factors between layers (check/factors.h); they were undone */
    char *type_a, *type_b; /* as seen last: "f32[1,10]"; NULL: not seen */
    HnTensorError accumulated, isolated;
} HnLayerDiffRow;

/* Errors: those of hn_session_new(); USAGE where an input of b stands for none of a, or nothing is matched. */
HnLayerDiff *hn_layer_diff_new(const HnSide *a, const HnSide *b, const HnLayerDiffOptions *o, GError **error);
void hn_layer_diff_free(HnLayerDiff *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnLayerDiff, hn_layer_diff_free)

/* Inputs of the first model; the second one's are those that they stand for, in its own float type. */
int hn_layer_diff_n_inputs(const HnLayerDiff *l);
const HnValue *hn_layer_diff_input(const HnLayerDiff *l, int i);

/* Compares on one more sample. Errors: INTERRUPTED, and those of hn_session_run(), naming the model. */
gboolean hn_layer_diff_run(HnLayerDiff *l, HnTensor *const *in, GError **error);

/* In the order of the second model's nodes. What is constant in both is left out. */
guint hn_layer_diff_rows(const HnLayerDiff *l);
const HnLayerDiffRow *hn_layer_diff_row(const HnLayerDiff *l, guint i);

/* Results of the model (0 or 1) that stand for none of the other; constants left out. */
guint hn_layer_diff_unmatched(const HnLayerDiff *l, int side);

G_END_DECLS
