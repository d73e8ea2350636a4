/*
 * Which of a model's values change their type in a conversion of precision, and which nodes stay as they are: the
 * decisions of pass/precision/precision.h, which carries them out.
 *
 * An input or output of a node that has a type to be converted is a port. Ports that must agree, because the record
 * has one letter for them or because a sub-graph hands one on as the other, are one set, and sets are decided: TRUE,
 * its ports are of the new type. Between two sets that were decided differently a Cast is needed.
 */
#pragma once

#include "op/infer.h"
#include "pass/precision/precision.h"

G_BEGIN_DECLS

#define HN_PORT_NONE (-1) /* of another type */
#define HN_PORT_ANY (-2)  /* takes its input as it comes: Cast, Shape */

typedef struct {
    int parent;        /* set that it was united with; itself: none */
    gboolean mover;    /* nothing but moved elements: goes along with those around it */
    gboolean cheap;    /* nothing but element by element: not worth a Cast of its own */
    gboolean edge;     /* holds an input or output of the model */
    gboolean converts; /* what was decided */
    HnKept kept;       /* not HN_KEPT_NOT: does not convert, for this reason */
    char *why;
} HnPortSet;

typedef struct {
    HnNode *node;
    int *port; /* of its inputs, then of its outputs: a set, or one of the two above */
} HnPortNode;

typedef struct {
    HnModel *model;
    const HnPrecisionOptions *o;
    HnTypes *types;
    HnTypeMask from;     /* types that are converted */
    GArray *sets;        /* HnPortSet */
    GPtrArray *nodes;    /* HnPortNode * of all graphs, outer ones first */
    GHashTable *by_node; /* HnNode * -> HnPortNode * */
    GHashTable *outputs; /* HnGraph * -> int *: a port for each output */
    int *of_value;       /* by HnValue.id: the set that it is stored as; HN_PORT_NONE: of another type, or constant */
    guint n_values;
} HnPrecisionPlan;

/* Types of everything in m: symbolic shapes where they can be inferred, element types in any case. */
HnTypes *hn_precision_types(const HnModel *m, GError **error);

HnPrecisionPlan *hn_precision_plan(HnModel *m, const HnPrecisionOptions *o, GError **error);
void hn_precision_plan_free(HnPrecisionPlan *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnPrecisionPlan, hn_precision_plan_free)

/* Type of v before the conversion, where it is one to be converted; else HN_UNDEFINED. */
HnDtype hn_precision_dtype(const HnPrecisionPlan *p, const HnValue *v);
/* The elements of a weight, or of a Constant's output, that can be converted; NULL: it is none. */
HnTensor *hn_precision_constant(const HnValue *v);
/* The set that stands for `port` (not negative). */
HnPortSet *hn_precision_set(const HnPrecisionPlan *p, int port);
static inline gboolean hn_precision_converts(const HnPrecisionPlan *p, int port)
{
    return port >= 0 && hn_precision_set(p, port)->converts;
}
static inline HnPortNode *hn_precision_node(const HnPrecisionPlan *p, const HnNode *n)
{
    return (HnPortNode *)g_hash_table_lookup(p->by_node, n);
}

/* A finite number that the half cannot hold becomes this one, with its sign, where it is a mask or a bound. */
double hn_precision_clamp(HnDtype to);
/* Largest finite and smallest normal number of the half. */
double hn_precision_largest(HnDtype to);
double hn_precision_least(HnDtype to);

/* --- precision_range.c: what would not survive in a half ---------------------------------------------------------- */

/* Marks sets that have to stay: overflow, sums inside, what vanishes, weights that do not fit. */
void hn_precision_keep_ranges(HnPrecisionPlan *p);
/* Largest half over the largest magnitude that the node reads, makes and computes inside; NaN: nothing was seen. */
double hn_precision_headroom(const HnPrecisionPlan *p, const HnPortNode *pn);
/* The set stays as it is from now on; `why` is taken. The first reason counts. */
gboolean hn_precision_keep(HnPrecisionPlan *p, int port, HnKept kept, char *why);

G_END_DECLS
