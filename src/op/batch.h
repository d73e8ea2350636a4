/*
 * HnBatch: how the samples of a batch pass through a node, when a dimension that was fixed becomes free.
 *
 * A model with a batch of 1 is made to take n samples. Each value is either the same for all samples, or holds n of
 * them, at one place: along an axis whose elements are numbered (o * n + sample) * inner + k, with o < outer and
 * k < inner. So [1,C,H,W] becomes [n,C,H,W] (axis 0, outer and inner 1), and what was viewed as [C,H,W] [n*C,H,W]
 * (axis 0, inner C). Where the value as it was has no axis for it the samples get one of their own, in front: a scalar
 * becomes [n], and the value's rank is one more than it was ("in front" below).
 *
 * The rule of an operator (HnOp.batch) tells from the places of the inputs where the outputs have theirs, and edits
 * the node where it says something about the size of the batch: a constant shape, an axis behind one that is new. It
 * may put nodes in front of the node that bring an input into another form. What a rule says has to hold whatever the
 * elements are: no result of a sample may depend on another one. Where it cannot, it fails with the reason. What is
 * computed of shapes is computed as for one sample: Shape says 1 where the samples are.
 *
 * Whoever walks over a graph with it (pass/free_batch.h) checks that the shapes come out as the places say.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

/* axis -1: the same for all samples. */
typedef struct {
    int axis;
    HnDim outer, inner;
} HnBatchPlace;

typedef struct {
    HnValue *v;  /* NULL: absent */
    HnType *was; /* before anything was freed; NULL: not known */
    HnType *now; /* borrowed from HnBatch.types */
    HnBatchPlace at;
} HnBatchIn;

/* An input or output of a sub-graph. */
typedef struct {
    HnBatchPlace at;
    gboolean front; /* the samples have an axis of their own that the value did not have */
} HnBatchFormal;

typedef struct HnBatch HnBatch;
struct HnBatch {
    HnNode *node; /* bound; params are those of the node as it was, as long as the rule runs */
    const void *params;
    HnTypes *types; /* as they are now */
    int n_in, n_out;
    HnBatchIn *in;
    HnType **was_out;  /* before anything was freed; NULL: not known */
    HnBatchPlace *out; /* the rule's answer; at first: the same for all samples */
    HnDim n;           /* the number of samples: a symbol */
    int64_t n0;        /* what it was */
    int wish;          /* which of several answers is to be given, the most natural one first */
    int choices;       /* how many there are: places of a view, ways to run a loop */
    gboolean stays;    /* the node has to stay as it is, and n is a number: a rule that would change anything fails */
    /* i64[1]: the number of samples, when the model runs. */
    HnValue *(*size)(HnBatch *b);
    /* Does v, which the node or a sub-graph of it reads, hold samples? */
    gboolean (*holds)(const HnBatch *b, const HnValue *v);
    /* Walks over sub-graph g, whose inputs are such; out[k]: its output k. FALSE: failed. */
    gboolean (*graph)(HnBatch *b, HnGraph *g, int n_in, const HnBatchFormal *in, HnBatchFormal *out);
    /* Output k of g, walked over, is brought into another form: samples along that axis, or (-1) in front. */
    gboolean (*settle)(HnBatch *b, HnGraph *g, int k, int axis);
    /* Both branches run, in the node's place, and each sample takes what its condition, input 0, says: the node goes.
     * branch: else, then. FALSE: failed. */
    gboolean (*select)(HnBatch *b, HnGraph *const branch[2]);
    /* The node runs for one sample after the other, in a Scan of its own, whatever it does: the node goes. For what has
     * one shape for all samples. FALSE: failed, and nothing was changed. */
    gboolean (*apart)(HnBatch *b);
    /* A node as it would have been in the original, in front, to which rules are applied: it makes output k of the
     * node, or (-1) a value of its own. attr: NULL, or an integer attribute. NULL: failed. */
    HnValue *(*make)(HnBatch *b, const char *op, HnValue *const *in, int n_in, const char *attr, int64_t v, int k);
    gpointer data;
    gboolean gone; /* others make what the node made */
    GError *error; /* the first failure */
};

/* At most one failure counts. The message says what stands in the way, without the node's name. */
gboolean hn_batch_fail(HnBatch *b, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* FALSE: the node stays as it is, and this is a failure. */
gboolean hn_batch_may_edit(HnBatch *b);

/* --- asking ------------------------------------------------------------------------------------------------------- */

static inline gboolean hn_batch_has(const HnBatch *b, int i)
{
    return i < b->n_in && b->in[i].v != NULL;
}
static inline gboolean hn_batch_split(const HnBatch *b, int i)
{
    return hn_batch_has(b, i) && b->in[i].at.axis >= 0;
}
HnBatchPlace hn_batch_place(int axis); /* outer and inner 1 */
HnBatchPlace hn_batch_none(void);
gboolean hn_batch_alike(const HnBatchPlace *a, const HnBatchPlace *b); /* outer and inner agree */
/* Ranks of input i; -1: not known. */
int hn_batch_rank_was(const HnBatch *b, int i);
int hn_batch_rank(const HnBatch *b, int i);
/* The samples have an axis of their own that the value did not have. */
gboolean hn_batch_in_front(const HnBatch *b, int i);
/* What is the same for all samples as input i has nothing of its own for each of them, where their axis is `back` from
 * the back. FALSE: failed. */
gboolean hn_batch_same_along(HnBatch *b, int i, int back);
/* Elements of input i along axis 0 where it is an integer list that is known ahead. FALSE: it is not. */
gboolean hn_batch_ints(const HnBatch *b, int i, int64_t *v, int max, int *n);
/* Axis of a value with such a rank, counted from the front; -1: there is none. */
int hn_batch_axis(int64_t axis, int rank);

/* --- bringing inputs into form ------------------------------------------------------------------------------------
 * FALSE: failed. */

/* Input i holds its samples in front, behind them ones up to `rank` axes (0: as many as it had), then its own. One
 * that is the same for all samples is repeated. */
gboolean hn_batch_lift(HnBatch *b, int i, int rank);
/* Input i has the rank that it had, and its samples along that axis with outer 1. The same. */
gboolean hn_batch_put(HnBatch *b, int i, int axis);
/* Input i is a constant list of integers; element `at` of it becomes what `place` says: outer * n * inner. */
gboolean hn_batch_set_size(HnBatch *b, int i, int at, const HnBatchPlace *place);
/* Input i becomes this constant list; of i32 where input `like` (-1: none) is of that type. */
void hn_batch_set_ints(HnBatch *b, int i, const int64_t *v, int n, int like);
/* Sizes for Reshape of a value of type `from` to `to`, as an input. NULL: failed. */
HnValue *hn_batch_shape(HnBatch *b, const HnType *from, const HnDim *to, int rank);
/* The node becomes a Reshape of input 0 to `to`. */
gboolean hn_batch_become_view(HnBatch *b, const HnDim *to, int rank);
/* A node in front of the node, bound and inferred once done. */
HnNode *hn_batch_add(HnBatch *b, const char *op, HnValue *const *in, int n_in);
HnValue *hn_batch_done(HnBatch *b, HnNode *n);
HnValue *hn_batch_constant(HnBatch *b, const int64_t *v, int n); /* i64[n] */
HnValue *hn_batch_weight(HnBatch *b, HnTensor *t);               /* takes it; any tensor */
/* What the node makes as output k is a value of its own from now on; a Transpose behind it makes what it made. */
gboolean hn_batch_turn_out(HnBatch *b, int k, const int64_t *perm, int rank);

/* --- rules that records share -------------------------------------------------------------------------------------
 */

/* What HN_OP_ELEMENTWISE means without a rule: inputs broadcast, output 0 and its like have their shape. */
void hn_batch_elementwise(HnBatch *b);
/* Axis 0 of input 0, and of the others with a bit in `mask`, counts samples; what is left is the same for all. */
void hn_batch_first_of(HnBatch *b, guint mask);
void hn_batch_first(HnBatch *b); /* of input 0 only */
/* Each row along `axis` of input 0 by itself, or with `on` all from there to the end; attribute `axis` says which. */
void hn_batch_along(HnBatch *b, int64_t axis, gboolean on);
void hn_batch_rows(HnBatch *b); /* along the last axis */
/* Axes of input 0 with a mark go, or become 1. Where they have to be said again: how many, from the front. */
typedef struct {
    gboolean mark[HN_MAX_RANK];
    gboolean keepdims;
    gboolean one; /* there is one, in attribute `axis`; else `axes`, or input 1 */
} HnBatchReduced;
void hn_batch_reduce(HnBatch *b, const HnBatchReduced *r);
void hn_batch_matmul(HnBatch *b, int first, int second); /* those inputs */
void hn_batch_gemm(HnBatch *b, gboolean trans_a, gboolean trans_b);
void hn_batch_quantize(HnBatch *b, gboolean per_axis, int64_t axis);
void hn_batch_recurrent(HnBatch *b, gboolean batch_first);
void hn_batch_last_two(HnBatch *b); /* matrices along the last two axes of input 0 */
/* The same elements in the same order. prefer_front: samples without an axis get one of their own, rather than go among
 * others. */
void hn_batch_view(HnBatch *b, gboolean prefer_front);
void hn_batch_transpose(HnBatch *b, const int64_t *perm);
void hn_batch_concat(HnBatch *b, int64_t axis);
void hn_batch_tile(HnBatch *b);
void hn_batch_expand(HnBatch *b);
void hn_batch_gather(HnBatch *b, int64_t axis);
void hn_batch_elements(HnBatch *b, int64_t axis); /* GatherElements, ScatterElements */
void hn_batch_gathernd(HnBatch *b, int64_t batch_dims);
void hn_batch_scatternd(HnBatch *b);
/* Sub-graphs of which one runs; what they make has its samples at one place. */
void hn_batch_branches(HnBatch *b, HnGraph *const *branch, int n);
/* A body that runs again and again: its inputs [formal, formal + n) are the node's inputs from `in` on at first, and
 * then what its outputs from `result` on were. `formals` of the others are said; these are filled in, as `results`, of
 * all outputs, are. Which of them hold samples follows from what the body reads. FALSE: failed. */
typedef struct {
    HnGraph *body;
    int in, formal, result, n;
    HnBatchFormal *formals, *results;
} HnBatchCarry;
gboolean hn_batch_carry(HnBatch *b, const HnBatchCarry *c);

/* --- rules of records (HnOp.batch) ---------------------------------------------------------------------------------
 */

void hn_arg_batch(HnBatch *b);
void hn_attention_batch(HnBatch *b);
void hn_batchnorm_batch(HnBatch *b);
void hn_castlike_batch(HnBatch *b);
void hn_causalconv_batch(HnBatch *b);
void hn_clip_batch(HnBatch *b);
void hn_concat_batch(HnBatch *b);
void hn_cum_batch(HnBatch *b);
void hn_deformconv_batch(HnBatch *b);
void hn_dft_batch(HnBatch *b);
void hn_dropout_batch(HnBatch *b);
void hn_gather_batch(HnBatch *b);
void hn_gatherelements_batch(HnBatch *b);
void hn_gathernd_batch(HnBatch *b);
void hn_gemm_batch(HnBatch *b);
void hn_gridsample_batch(HnBatch *b);
void hn_if_batch(HnBatch *b);
void hn_layernorm_batch(HnBatch *b);
void hn_loop_batch(HnBatch *b);
void hn_lpnorm_batch(HnBatch *b);
void hn_matmul_batch(HnBatch *b);
void hn_matmulinteger_batch(HnBatch *b);
void hn_mvn_batch(HnBatch *b);
void hn_onehot_batch(HnBatch *b);
void hn_pad_batch(HnBatch *b);
void hn_qlinear_batch(HnBatch *b);
void hn_quantize_batch(HnBatch *b);
void hn_recurrent_batch(HnBatch *b);
void hn_reduce_batch(HnBatch *b);
void hn_reshape_batch(HnBatch *b);
void hn_resize_batch(HnBatch *b);
void hn_reversesequence_batch(HnBatch *b);
void hn_scan_batch(HnBatch *b);
void hn_scatterelements_batch(HnBatch *b);
void hn_shape_batch(HnBatch *b);
void hn_slice_batch(HnBatch *b);
void hn_softmax_batch(HnBatch *b);
void hn_split_batch(HnBatch *b);
void hn_squeeze_batch(HnBatch *b);
void hn_topk_batch(HnBatch *b);
void hn_transpose_batch(HnBatch *b);

/* NULL: nothing is known of op, which may mix samples. */
void (*hn_batch_rule(const HnOp *op))(HnBatch *b);

G_END_DECLS
