/*
 * Conversion of a model between f32 and the halves f16 and bf16.
 *
 *     HnPrecisionLog log;
 *     hn_precision_log_init(&log);
 *     ok = hn_convert_precision(m, &(HnPrecisionOptions){ .to = HN_F16, .ranges = r }, &log, &error);
 *
 * What may become a half is what the records' letters allow in the model's opset. Everything else keeps its type
 * between Casts, of which there is one for a value and a type, whoever reads it. Where `ranges` (check/ranges.h) or a
 * weight says that a half would overflow, or lose what matters, a node stays f32 as well: the log says which, and why.
 * Nodes that only move elements go along with those around them.
 *
 * To a half: f32 becomes that; halves of the file stay what they are. To f32: both halves become f32.
 */
#pragma once

#include "base/budget.h"
#include "ir/graph.h"
#include "op/range.h"

G_BEGIN_DECLS

#define HN_HEADROOM 2.0

typedef struct {
    HnDtype to;              /* HN_F16, HN_BF16 or HN_F32 */
    gboolean keep_io;        /* inputs and outputs keep their types, with Casts behind and before them */
    const HnRanges *ranges;  /* of the model as it is; NULL: nothing is known but the weights */
    double headroom;         /* the half's largest number over the largest magnitude seen; 0: HN_HEADROOM */
    const char *const *keep; /* operators (op_type) and nodes (name or first output) to leave alone; NULL: none */
    gboolean keep_checked;   /* these are what a check of results took back; nobody asked for them */
    HnBudget *budget;        /* of the weights that are made; NULL: unlimited */
} HnPrecisionOptions;

typedef enum {
    HN_KEPT_NOT,      /* runs in the new type */
    HN_KEPT_TYPE,     /* the operator does not take it in this opset, or is not known */
    HN_KEPT_OVERFLOW, /* an input or output would overflow */
    HN_KEPT_INSIDE,   /* a sum inside would */
    HN_KEPT_SMALL,    /* an input or output would become 0, or subnormal throughout */
    HN_KEPT_COARSE,   /* an exponent is so large that the half's last digit matters */
    HN_KEPT_WEIGHT,   /* a weight does not fit */
    HN_KEPT_POSITION, /* computes positions or sizes, which a half is too coarse for */
    HN_KEPT_ASKED,    /* named in `keep` */
    HN_KEPT_AROUND,   /* everything around it is f32: it would gain nothing */
    HN_KEPT_CHECKED,  /* named in `keep`, with keep_checked */
} HnKept;

/* "overflow", "inside", ... */
const char *hn_kept_name(HnKept kept);

/* A node that reads or makes what was to be converted. */
typedef struct {
    char *op;
    char *site; /* name of its first output */
    HnKept kept;
    char *why;       /* "the sum of squares reaches 1.2e+06"; NULL where it is converted */
    double headroom; /* of what it reads, makes and computes inside: largest finite half over largest magnitude seen;
                        infinite: nothing but zeros; NaN: nothing was seen */
} HnPrecisionNode;

typedef struct {
    GPtrArray *nodes;                /* HnPrecisionNode *, in the order of the graph */
    guint converted;                 /* of the nodes */
    guint unseen;                    /* of those: no sample got there, though there were ranges */
    guint casts_added;               /* Casts that the model has now and had not */
    guint casts_dropped;             /* that became superfluous */
    guint weights;                   /* tensors that were converted */
    guint weights_twice;             /* of them: kept in the old type too, for nodes that stay */
    guint weights_kept;              /* not converted: they do not fit, or only nodes that stay read them */
    gsize bytes_before, bytes_after; /* of all weights */
    int64_t flushed;                 /* elements of converted weights that were not 0 and are now */
    int64_t clamped;                 /* masks and bounds beyond the half's range that were moved into it */
    guint inputs, outputs;           /* of the main graph, that have another type now */
} HnPrecisionLog;

void hn_precision_log_init(HnPrecisionLog *log);
void hn_precision_log_clear(HnPrecisionLog *log);

/* The lowest opset from the model's own on in which it can hold `to`, and each operator takes it that ever does: 13 and
 * more for bf16. */
int64_t hn_precision_opset(HnModel *m, HnDtype to);

/*
 * Converts m in place; calls of the model's own functions are inlined and the functions go. Names of inputs and outputs
 * stay. FALSE: m is only good to be freed. Errors: USAGE for another type, GRAPH and TYPE where the result would be
 * wrong, BUDGET, and those of hn_inline_functions().
 */
gboolean hn_convert_precision(HnModel *m, const HnPrecisionOptions *o, HnPrecisionLog *log, GError **error);

G_END_DECLS
