/*
 * HnOp: everything hone knows about an operator that does not depend on hardware, as one constant record.
 *
 * A record answers: what do the attributes of each opset mean (bind), which types and shapes come out (infer), what
 * does it cost (cost), what is the right answer (ref), what is its gradient (grad). A NULL means "cannot". Fast kernels
 * live with the backends (src/cpu/<name>.c), cases in test/op/<name>.c. Nobody outside src/op switches over operator
 * names: what a pass or tool needs to know of an operator is a field here.
 *
 * To add an operator (CONTRIBUTING.md walks through a real one):
 *   1. src/op/<file>.c with `const HnOp hn_op_<symbol>`, one line in src/op/ops.def;
 *   2. test/op/<file>.c with its cases;
 *   3. src/cpu/<file>.c with kernels, one line in src/cpu/kernels.def. Without it, `ref` runs.
 *
 * bind, infer and ref report a failure with hn_bind_fail(), hn_infer_fail(), hn_eval_fail() and return; the first
 * failure counts, and the caller puts the node's name in front of the message.
 */
#pragma once

#include <inttypes.h>

#include "base/error.h"
#include "ir/graph.h"

G_BEGIN_DECLS

#define HN_DOMAIN_INTERNAL "hone"
#define HN_MIN_IN_NONE 255 /* HnOp.min_in: any input may be absent */
#define HN_OPSET_MAX 28    /* newest version of the default domain that hone knows */

typedef struct HnOp HnOp;

/* --- bind: attributes of any opset -> one parameter struct ---------------------------------------------------------
 */

typedef struct {
    HnNode *node;
    int64_t version; /* opset version of the node's domain */
    GError *error;   /* first failure */
} HnBind;

/* Attribute `name`, or `def` where it is absent; a wrong kind is a failure. */
int64_t hn_bind_int(HnBind *b, const char *name, int64_t def);
float hn_bind_float(HnBind *b, const char *name, float def);
gboolean hn_bind_bool(HnBind *b, const char *name, gboolean def);
/* Borrowed from the attribute; NULL and *n = 0 where it is absent. */
const int64_t *hn_bind_ints(HnBind *b, const char *name, int64_t *n);
const float *hn_bind_floats(HnBind *b, const char *name, int64_t *n);
HnTensor *hn_bind_tensor(HnBind *b, const char *name); /* borrowed; NULL: absent */
HnGraph *hn_bind_graph(HnBind *b, const char *name);   /* borrowed; absent is a failure */
/* NUL-terminated text of a string attribute or `def`; interned (lives for ever), so that it may stay in params. */
const char *hn_bind_string(HnBind *b, const char *name, const char *def);
/* Index of the text in the NULL-terminated list `words`; `def` (an index) where absent, failure where not in the list.
 */
int hn_bind_word(HnBind *b, const char *name, const char *const *words, int def);
gboolean hn_bind_has(HnBind *b, const char *name);
/* Failure "attribute 'x' is missing" where it is absent. */
void hn_bind_require(HnBind *b, const char *name);
void hn_bind_fail(HnBind *b, HnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* --- infer: types, symbolic shapes, symbolic contents of small integer tensors --------------------------------------
 */

/* Elements of an integer tensor of rank 0 or 1 as dimensions: what Shape, Gather, Concat, ... hand on to Reshape. */
typedef struct {
    int rank; /* 0 or 1 */
    int n;
    HnDim d[];
} HnContents;

#define HN_CONTENTS_MAX 256 /* longer ones are not followed */

typedef struct HnInfer HnInfer;
struct HnInfer {
    const HnNode *node;
    const void *params;
    int n_in, n_out;
    HnType **in;           /* NULL: absent, or nothing known */
    HnTensor **value;      /* elements where they are known ahead (weights, folded nodes); else NULL */
    HnContents **contents; /* integer elements known symbolically (also for every small integer `value`); else NULL */
    HnType **out;          /* filled in by infer; NULL: unknown */
    HnContents **out_contents;
    /* Infers sub-graph g with given input types (NULL entries: unknown); out gets new references. */
    gboolean (*graph)(HnInfer *x, HnGraph *g, int n_in, HnType *const *in, int n_out, HnType **out);
    gpointer data;
    GError *error;
};

gboolean hn_infer_has(const HnInfer *x, int i);        /* input i is present */
HnDtype hn_infer_dtype(const HnInfer *x, int i);       /* HN_UNDEFINED: unknown or absent */
int hn_infer_rank(const HnInfer *x, int i);            /* -1: unknown or absent */
HnDim hn_infer_dim(const HnInfer *x, int i, int axis); /* unknown where rank or dimension are; axis in [0,rank) */
/* Integer elements of input i where all are known: TRUE, up to `max` written, *n elements. A longer list is FALSE. */
gboolean hn_infer_ints(const HnInfer *x, int i, int64_t *v, int max, int *n);

void hn_infer_out(HnInfer *x, int k, HnDtype dtype, int rank, const HnDim *dims); /* rank -1: unknown */
void hn_infer_out_like(HnInfer *x, int k, int i);                                 /* type and shape of input i */
void hn_infer_out_shape_of(HnInfer *x, int k, HnDtype dtype, int i);              /* shape of input i, another type */
void hn_infer_out_unknown(HnInfer *x, int k, HnDtype dtype);
/* Takes contents (g_free'd by the caller of infer). */
void hn_infer_out_contents(HnInfer *x, int k, HnContents *c);
HnContents *hn_contents_new(int rank, int n);
/* Negative axis of a tensor with `rank`; failure where it is outside [-rank, rank). */
int hn_infer_axis(HnInfer *x, int64_t axis, int rank);
/* numpy-style broadcast of the shapes of inputs first..last into dims (HN_MAX_RANK places): rank, or -1 when unknown.
 * Sizes that cannot broadcast are a failure. */
int hn_infer_broadcast(HnInfer *x, int first, int last, HnDim *dims);
void hn_infer_fail(HnInfer *x, HnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Ready-made rules. */
void hn_infer_same(HnInfer *x);          /* output 0 is like input 0 */
void hn_infer_broadcast_all(HnInfer *x); /* output 0: broadcast of all inputs; type from the record's `out` */

/* --- ref: the judge of all kernels ---------------------------------------------------------------------------------
 */

typedef struct HnEval HnEval;
struct HnEval {
    const HnNode *node;
    const void *params;
    int n_in, n_out;
    HnTensor *const *in; /* NULL: absent. Contiguous host memory */
    /* NULL: hn_eval_out() allocates. Otherwise where the caller wants the result: type and dims are as inferred. */
    HnTensor **out;
    HnBudget *budget;
    uint64_t seed; /* of random operators: differs from node to node, repeats from run to run */
    /* Runs sub-graph g on n_in tensors; fills out (n_out of them) with new references. FALSE: e->error is set. */
    gboolean (*graph)(HnEval *e, HnGraph *g, int n_in, HnTensor *const *in, int n_out, HnTensor **out);
    gpointer data;
    GError *error;
};

static inline const HnTensor *hn_eval_in(const HnEval *e, int i)
{
    return i < e->n_in ? e->in[i] : NULL;
}
gboolean hn_eval_wants(const HnEval *e, int k); /* output k exists and is named */
/* Elements of output k, uninitialised (but never NULL for n = 0). NULL: failed, return. An output that nobody wants
 * gets memory all the same. */
void *hn_eval_out(HnEval *e, int k, HnDtype dtype, int ndim, const int64_t *dims);
void *hn_eval_out_like(HnEval *e, int k, const HnTensor *t);
/* Output k is a sequence, an optional or a map, whose n elements have to be set. NULL: failed, return. */
HnTensor *hn_eval_out_list(HnEval *e, int k, HnDtype kind, int64_t n);
/* Output k has the elements of t under other dims: shared where the caller left the place open, else copied. A list is
 * shared as it is. */
void hn_eval_view(HnEval *e, int k, const HnTensor *t, int ndim, const int64_t *dims);
/* Scratch memory, 64-byte aligned, freed with g_autofree-like hn_eval_scratch_free(). NULL: failed, return. */
void *hn_eval_scratch(HnEval *e, int64_t n, size_t elem);
void hn_eval_scratch_free(HnEval *e, void *p);
int hn_eval_axis(HnEval *e, int64_t axis, int rank);
/* Broadcast of two shapes into dims: rank; -1 and failure where they do not fit. */
int hn_eval_broadcast(HnEval *e, const HnTensor *a, const HnTensor *b, int64_t *dims);
void hn_eval_fail(HnEval *e, HnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* --- cost -----------------------------------------------------------------------------------------------------------
 */

typedef struct {
    double flops; /* a multiply-add counts 2 */
    double bytes; /* read and written once each */
} HnCost;

/* With all types of x (in and out) fixed. c->bytes holds the sum over inputs and outputs already. */
typedef void (*HnCostFn)(const HnInfer *x, HnCost *c);
void hn_cost_elementwise(const HnInfer *x, HnCost *c); /* one flop per element of output 0 */
double hn_type_count(const HnType *t);                 /* elements of a fixed tensor type; 0 otherwise */

/* --- rules for tools, as data ----------------------------------------------------------------------------------------
 */

typedef enum {
    HN_Q_NONE,        /* not quantized */
    HN_Q_WEIGHTED,    /* input 1 is a weight: convolution, matrix product */
    HN_Q_PASS,        /* same range in and out: pooling, reshape, transpose */
    HN_Q_ELEMENTWISE, /* needs ranges of all inputs: Add, Mul, Concat */
    HN_Q_FIXED_RANGE, /* output lies in [lo, hi]: Sigmoid, Softmax */
} HnQuantKind;

/* What an operator makes of numbers that are held as bytes, one number for each byte. */
typedef enum {
    HN_QB_NONE,
    HN_QB_MOVES, /* its results are elements of the inputs under the letter of input 0: bytes do as well */
    HN_QB_MOST,  /* the same, always the largest of some: where larger bytes are larger numbers */
    HN_QB_FILLS, /* moves elements of input 0, and others are all the number of input 2, or 0: Pad */
    HN_QB_PAIR,  /* a sum or product of two, which broadcast */
    HN_QB_MEAN,  /* means of some of input 0: AveragePool */
} HnQuantBytes;

typedef struct {
    HnQuantKind kind;
    float lo, hi;
    HnQuantBytes bytes;
    gboolean (*computes)(const HnNode *n); /* with these parameters it does not do what `bytes` says; NULL: never */
    gboolean clamps; /* only holds numbers within bounds, which the bounds of a quantized result can do: Relu, Clip */
} HnQuantRule;

typedef struct HnLinearView HnLinearView; /* op/linear.h, which explains the fields, too */

/* A linear layer. Axes are counted from the back where negative. */
typedef struct {
    uint8_t weight;                                    /* input with the weights; 0: the operator is none */
    uint8_t bias;                                      /* input with the bias; 0: it takes none */
    int8_t out, in;                                    /* axes of the weights: output channels, what is summed over */
    int8_t x_axis, y_axis;                             /* of data and result: their channels */
    gboolean either;                                   /* input 0 may hold the weights as well */
    void (*read)(const void *params, HnLinearView *v); /* changes what parameters change; NULL: nothing */
} HnLinearRule;

/* How channels pass from an operator's inputs to its result, where no other field says so: pass/lib/channel_groups.h.
 */
typedef enum {
    HN_CH_OTHER,     /* element-wise, a linear layer or a move, as the other fields say; else not known */
    HN_CH_MOVE,      /* the result's elements come from a few of input 0 each, in the same places for all channels */
    HN_CH_PLANES,    /* axis 1, each channel by itself; other inputs hold a number for each of them: pools, norms */
    HN_CH_ROWS,      /* all elements of a row decide about each (HnOp.range.row); other inputs lie along the row */
    HN_CH_REDUCE,    /* some axes go, or become 1 */
    HN_CH_RECURRENT, /* LSTM, GRU, RNN */
    HN_CH_ATTENTION, /* heads of queries, keys and values, in inputs 0 to 2 */
    HN_CH_STEP,      /* with a scale for all elements or for each channel: QuantizeLinear */
} HnChannelKind;

/* What becomes of the result when a channel of the input is measured in another (positive) unit. */
typedef enum {
    HN_UNIT_OTHER,    /* something else */
    HN_UNIT_SAME,     /* it is in that unit, too: Relu, pools */
    HN_UNIT_SUM,      /* the same where all operands are: Add */
    HN_UNIT_CONSTANT, /* times a constant, that may bring any unit along: Mul */
    HN_UNIT_NONE,     /* nothing: it is normalized first, and then multiplied by weights: LayerNormalization */
} HnChannelUnit;

typedef struct {
    HnChannelKind kind;
    HnChannelUnit unit;
} HnChannelRule;

/* What comes up inside while a result is made and may be larger than it: whether a half would hold it. */
typedef enum {
    HN_R_NONE,      /* nothing larger than inputs and outputs */
    HN_R_PRODUCTS,  /* a sum of products: at most what comes out when all inputs are magnitudes */
    HN_R_MEAN,      /* the same, times the elements behind each result */
    HN_R_SQUARE,    /* the square of the result: ReduceL2 */
    HN_R_SQUARES,   /* the sum of squares of a row of input 0 */
    HN_R_EXPONENTS, /* the sum of e^(x - max) of a row */
} HnRangeKind;

typedef enum {
    HN_ROW_ALL,       /* the whole tensor */
    HN_ROW_AXIS,      /* along attribute `axis`, or the last one */
    HN_ROW_FROM_AXIS, /* from attribute `axis` to the end */
    HN_ROW_SPATIAL,   /* from axis 2 to the end, times the channels of each of attribute `num_groups` */
} HnRow;

typedef struct {
    HnRangeKind kind;
    HnRow row;
    uint8_t divisors;  /* bit i: what is small in input i is large in the result, and 0 is the end of it */
    uint8_t addends;   /* bit i: the elements of input i are only added to something */
    const char *exact; /* letters of positions and counts, for which a half is too coarse; NULL: none */
} HnRangeRule;

enum {
    HN_OP_VIEW = 1 << 0,          /* output 0 is input 0's bytes under other dims */
    HN_OP_ELEMENTWISE = 1 << 1,   /* element i of output 0 depends on element i of each (broadcast) input only */
    HN_OP_INPLACE = 1 << 2,       /* ref and kernels may write output 0 over input 0 when type and shape agree */
    HN_OP_INPLACE_EACH = 1 << 14, /* the same for output k over input k, for every k: optimizers */
    HN_OP_RANDOM = 1 << 3,        /* two runs differ: never folded, never merged */
    HN_OP_CONTROL = 1 << 4,       /* runs sub-graphs */
    HN_OP_HALF_VIA_F32 = 1 << 5,  /* ref sees f16 and bf16 tensors as f32; the driver converts around it */
    HN_OP_COMMUTATIVE = 1 << 6,
    HN_OP_SHAPE_ONLY = 1 << 7, /* reads input 0's shape, never its elements: Shape, Size */
    HN_OP_LOOKUP = 1 << 9,     /* input 1 holds positions along attribute `axis` (default 0) of input 0: Gather */
    HN_OP_ALONG = 1 << 10,     /* like element-wise where its other inputs are constant: BatchNormalization */
    HN_OP_UNPACK = 1 << 11,    /* makes many bytes of few, which is what a file wants to keep: DequantizeLinear */
    HN_OP_STEPS = 1 << 12,     /* its integers stand for the floats of input 0: QuantizeLinear */
    HN_OP_CONVERT = 1 << 13,   /* output 0 is input 0, number by number, in another type: Cast, CastLike */
    HN_OP_STRAIGHT = 1 << 15,  /* its gradient is that of the function that attribute `smooth` makes of it: rounding */
    HN_OP_INTEGERS = 1 << 16,  /* computes with integers that stand for floats, or makes them for that: MatMulInteger */
    HN_OP_DYNAMIC = 1 << 8,    /* output shape depends on elements even when all input shapes are known: NonZero */
};

/* --- forms of other opsets, as data: op/unbind.h applies them ---------------------------------------------------- */

/* In opsets below `before` (and, where `from` is set, from there on) inputs and outputs under this letter of `in` and
 * `out` could not have these types. A letter of 0 ends a list; several entries of one letter add up. */
typedef struct {
    char letter;
    uint8_t before, from;
    HnTypeMask types;
} HnLack;

#define HN_LACKS(...) ((const HnLack[]){ __VA_ARGS__, { 0 } })
#define HN_BF16_SINCE(v)           \
    {                              \
        'T', v, 0, HN_BIT(HN_BF16) \
    }
/* 8-bit floats since opset `f8`, then the types below 8 bits as they came */
#define HN_SMALL_TYPES(letter, f8)                                                  \
    { letter, f8, 0, HN_T_F8S }, { letter, 21, 0, HN_BIT(HN_U4) | HN_BIT(HN_I4) },  \
        { letter, 23, 0, HN_BIT(HN_F4E2M1) }, { letter, 24, 0, HN_BIT(HN_F8E8M0) }, \
    {                                                                               \
        letter, 25, 0, HN_BIT(HN_U2) | HN_BIT(HN_I2)                                \
    }

/* What another element type does to the result when the elements are converted before and back after it. Halves of a
 * record with HN_OP_HALF_VIA_F32 may always be f32. */
typedef enum {
    HN_WIDE_NO,
    HN_WIDE_PICKS, /* elements are moved and compared: any type that holds their values gives the same */
    HN_WIDE_WRAPS, /* integers: what is computed in more bits and cut off is the same */
} HnWide;

/* An attribute that not every opset has. A NULL name ends a list. */
typedef struct {
    const char *name;
    HnAttrKind kind;
    uint8_t since, until; /* first opset that has it (0: as long as the operator), first that has it no longer (0) */
    uint8_t input;        /* where it is no attribute it is this input; 0: no input either */
    gboolean any;         /* may be left out whatever it says */
    double number;        /* else only as this number, ... */
    const char *word;     /* ... or word: what opsets without it do. A list must be full of the number; NAN: none */
    uint8_t back;         /* below this opset an axis is not counted from the back: input 0 has to have a known rank */
} HnForm;

#define HN_FORMS(...) ((const HnForm[]){ __VA_ARGS__, { 0 } })

/* --- training, as data: train/ finds losses and optimizers by these ------------------------------------------------
 */

#define HN_NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* What a loss compares input 0 with, and what its sum is divided by to be a mean. */
typedef enum { HN_TARGET_LABELS, HN_TARGET_LIKE } HnLossTarget; /* class numbers; a tensor like input 0 */
typedef enum { HN_COUNT_LABELS, HN_COUNT_ROWS, HN_COUNT_ELEMENTS } HnLossCount;

/* A loss: inputs are what the model made and a target, output 0 the sum of losses, a scalar. */
typedef struct {
    const char *name; /* for options, "ce"; NULL: the operator is none */
    HnLossTarget target;
    HnLossCount count; /* LABELS: those that are not attribute `ignore_index`; ROWS: elements but for `axis` */
    gboolean logits;   /* input 0 is what a softmax reads, not what it makes */
    int axis;          /* attribute `axis` where it is not set: of the classes */
    const char *const *floats, *const *ints; /* attributes that an option may set, ended by NULL; NULL: none */
} HnLossRule;

/* An optimizer: inputs are a weight, `states` tensors like it, its gradient and f32[4] { learning rate, 1 / (1 -
 * beta1^t), 1 / (1 - beta2^t), factor of the gradient }; outputs the next weight and the next states. States begin as
 * zeros. */
typedef struct {
    const char *name; /* for options, "adamw"; NULL: the operator is none */
    int states;
    float lr;      /* where nobody says another: a usual one */
    gboolean even; /* its steps are about as long as the rate says, whatever the gradient's size is */
    const char *const *floats, *const *ints; /* as above; `weight_decay` counts for weights of several axes */
} HnOptimizerRule;

/* What a node's attributes hold, for reports: "trees", "leaves". A NULL name ends. */
typedef struct {
    const char *name;
    int64_t n;
} HnHeld;

#define HN_HELD_MAX 4

struct HnUnbind;   /* op/unbind.h */
struct HnNarrow;   /* op/narrow.h */
struct HnTape;     /* op/tape.h */
struct HnBatch;    /* op/batch.h */
struct HnTraining; /* op/training.h */

struct HnOp {
    const char *name;
    const char *domain; /* NULL: the default domain */
    uint32_t flags;
    uint8_t since[16]; /* opset versions in which it was introduced or changed, ascending, 0 ends */
    uint8_t until;     /* last opset version that has it; 0: still there (Upsample 9, Scatter 10) */

    /* One letter per input and output. 'T' 'U' 'V' 'W': variables with the masks below; all T are of one type.
     * Fixed: 'i' i64, 'j' i32 or i64, 'b' bool, 'f' f32, 'u' u8, 'y' u8 or i8, '.' anything.
     * A '*' at the end repeats the letter before it; with '~' instead the types may differ from one another. */
    const char *in, *out;
    HnTypeMask T, U, V, W;
    uint8_t min_in; /* leading inputs that must be there; 0: all of the letters (one of a repeated letter) */

    const HnLack *lacks; /* types that came later, or went; NULL: none */
    HnWide wide;         /* what to do about them */
    const HnForm *forms; /* attributes that came, went or became inputs; NULL: none */
    /* What lacks and forms do not say: rewrites the node for another opset, builds others that do the same, or refuses;
     * NULL: nothing is left to do. Called first. */
    void (*unbind)(struct HnUnbind *u);

    size_t params_size;
    void (*bind)(HnBind *b, void *params); /* params zero-filled; may hold pointers borrowed from attributes */
    void (*infer)(HnInfer *x);
    HnCostFn cost; /* NULL: no flops */
    void (*ref)(HnEval *e);
    void (*grad)(struct HnTape *t); /* op/tape.h; NULL: none, which ends the way to a weight with an error */
    /* op/batch.h: how samples pass through; NULL: they may get mixed, but for element-wise operators (hn_batch_rule) */
    void (*batch)(struct HnBatch *b);
    HnLinearRule linear;
    HnQuantRule quant;
    HnChannelRule channels;
    /* Parameters for values that have lost channels. FALSE: they cannot say it. NULL: none depends on it. */
    gboolean (*narrow)(const struct HnNarrow *x);
    HnRangeRule range;
    void (*held)(const void *params, HnHeld held[HN_HELD_MAX]); /* zero-filled; NULL: nothing but what others say */
    uint8_t trained; /* bit i: a float initializer that input i reads is what training changes, as those of `linear` */
    /* Gives a node of the newest form its meaning while a model is trained; NULL: it has one meaning. */
    void (*train)(struct HnTraining *t);
    HnLossRule loss;
    HnOptimizerRule optimizer;
};

/* --- registry and drivers -------------------------------------------------------------------------------------------
 */

/* NULL: unknown. Domain NULL, "" and "ai.onnx" are one. */
const HnOp *hn_op_find(const char *domain, const char *name);
/* All records, ending with NULL. */
const HnOp *const *hn_op_all(void);

/* Checks arity, version and attributes; sets n->op and n->params. Does nothing when n is bound already. An unknown
 * operator is UNSUPPORTED ("operator 'com.acme.Foo' of node 'x' is not known"). */
gboolean hn_op_bind(HnNode *n, GError **error);
/* Letter of input or output i in a record's `in` or `out`; *same is FALSE where types under a repeated letter may
 * differ. */
char hn_op_letter(const char *letters, int i, gboolean *same);
/* With these element types (HN_UNDEFINED: absent or unknown): could each half among the inputs be f32 instead, and
 * would each half among the outputs be f32 then? */
gboolean hn_op_widens(const HnOp *op, int n_in, const HnDtype *in, int n_out, const HnDtype *out);
/* Types and shapes of n's outputs; checks the input types against the record's letters first. */
gboolean hn_op_infer(HnInfer *x, GError **error);
/* Runs ref, with the half conversions around it. n is bound. On success every output that is named is non-NULL. */
gboolean hn_op_eval(HnEval *e, GError **error);
/* Picks rows of a table: HN_OP_LOOKUP. */
static inline gboolean hn_op_is_lookup(const HnOp *op)
{
    return op != NULL && (op->flags & HN_OP_LOOKUP) != 0;
}
/* What n, which is bound, makes of numbers that are held as bytes, with its parameters and in its version: views and
 * nearest neighbours are HN_QB_MOVES, other kinds of Resize HN_QB_NONE. */
HnQuantBytes hn_op_bytes(const HnNode *n);
/* An operator with HN_OP_UNPACK makes v. */
gboolean hn_op_is_unpacked(const HnValue *v);
/* Input i is one of those whose elements the results of n, which moves, consist of. */
gboolean hn_op_is_moved(const HnNode *n, int i);
/* Cost with all types of x fixed. */
void hn_op_cost(const HnInfer *x, HnCost *c);

G_END_DECLS
