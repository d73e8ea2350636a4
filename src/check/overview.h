/*
 * HnOverview: what a model file consists of, without computing anything and without reading the elements of weights.
 */
#pragma once

#include "data/input_shapes.h"
#include "run/backend.h"

G_BEGIN_DECLS

typedef enum {
    HN_SUPPORT_KERNEL,    /* the backend has kernels, or nothing is computed: views, constants, control flow */
    HN_SUPPORT_REFERENCE, /* known, but without a kernel: its reference runs unless it is fused into another operator */
    HN_SUPPORT_REFUSED,   /* known, but not in this version or with these attributes */
    HN_SUPPORT_UNKNOWN,
} HnSupport;

typedef struct {
    char *name;        /* with its domain where that is not the default: "com.acme.Foo" */
    guint nodes;       /* in all graphs */
    guint inner;       /* of them in sub-graphs or function bodies */
    HnSupport support; /* the worst of its nodes */
    char *reason;      /* of REFUSED: what the first such node says; else NULL */
} HnOverviewOp;

typedef struct {
    HnDtype dtype;
    guint tensors;
    guint64 elements, bytes; /* bytes: as they are in memory; of strings 0 */
} HnOverviewType;

/* A file of weights beside the model. */
typedef struct {
    char *location; /* as the model has it */
    guint tensors;
    guint64 bytes;     /* that the tensors refer to */
    gint64 file_bytes; /* -1: there is no such file */
} HnOverviewFile;

typedef enum {
    HN_QUANTIZED_NO,
    HN_QUANTIZED_WEIGHTS, /* weights of few bits that are dequantized; activations are floats */
    HN_QUANTIZED_QDQ,
    HN_QUANTIZED_OPERATORS, /* QLinearConv and the like */
    HN_QUANTIZED_DYNAMIC,   /* scales of activations are found at run time */
    HN_QUANTIZED_MIXED,
} HnQuantized;

typedef struct {
    guint nodes;             /* of the main graph */
    guint inner;             /* of sub-graphs */
    guint in_bodies;         /* of functions */
    guint graphs, functions; /* sub-graphs; functions of the model's own */
    GPtrArray *operators;    /* HnOverviewOp *, most frequent first */
    GPtrArray *unknown;      /* the same for those that the model cannot run by, of the graph with functions inlined */
    GPtrArray *slow;         /* the same for REFERENCE */
    char *not_inlined;       /* why functions could not be; NULL: they were */

    guint tensors;        /* initializers, sparse ones too, and tensors of attributes, each once */
    guint64 weight_bytes; /* of all of them */
    guint64 parameters; /* elements of all but i64, bool and strings, which are sizes, positions and tables of words */
    GPtrArray *types;   /* HnOverviewType *, most bytes first */
    GPtrArray *files;   /* HnOverviewFile *, in the order of first use */
    GPtrArray *held;    /* HnHeld *: what attributes hold, each name once, in the order of first use */
    guint sparse;       /* initializers that are stored as sparse tensors */

    HnQuantized quantized;
    guint quantize_nodes, dequantize_nodes, integer_nodes;
    guint quantized_tensors; /* weights of at most 8 bits that are dequantized or computed with as integers */
    guint64 quantized_elements;

    double flops;     /* of one run; each sub-graph counts once. NaN: of no node is it known */
    guint flops_left; /* nodes that are not in it */
} HnOverview;

/* At the sizes of `shapes` (NULL: 1 where they are free). Functions of m are inlined on the way, and its nodes bound:
 * look at the nodes of the file before. backend: whose kernels count. */
HnOverview *hn_overview_new(HnModel *m, const HnShapes *shapes, const HnBackend *backend, HnBudget *budget);
void hn_overview_free(HnOverview *o);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnOverview, hn_overview_free)

/* "QDQ", "weights only", ...; NULL: not quantized. */
const char *hn_quantized_name(HnQuantized q);
/* "com.acme.Foo", or "Conv"; g_free. */
char *hn_operator_name(const HnNode *n);

G_END_DECLS
