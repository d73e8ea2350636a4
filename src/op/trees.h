/*
 * Ensembles of decision trees, as all three operators mean them: TreeEnsemble, TreeEnsembleRegressor and
 * TreeEnsembleClassifier. For the records' ref, and for backends, which arrange them anew.
 */
#pragma once

#include "op/ml.h"

G_BEGIN_DECLS

/* A branch goes to `yes` where its feature compares so with `value`, to `no` where it does not. NaN compares with
 * nothing, but goes to `yes` where `missing` is set. */
typedef enum {
    HN_TREE_LEQ,
    HN_TREE_LT,
    HN_TREE_GEQ,
    HN_TREE_GT,
    HN_TREE_EQ,
    HN_TREE_NEQ,
    HN_TREE_MEMBER,
    HN_TREE_LEAF,
} HnTreeMode;

typedef struct {
    double value;
    int32_t yes, no;  /* nodes */
    int32_t first, n; /* weights of a leaf, members of MEMBER */
    int32_t feature;
    uint8_t mode, missing;
} HnTreeNode;

typedef struct {
    double value;
    int32_t target;
} HnTreeWeight;

typedef enum { HN_TREES_AVERAGE, HN_TREES_SUM, HN_TREES_MIN, HN_TREES_MAX } HnTreesAggregate;

/* How two classes become one score, of which the operator makes two again. */
typedef struct {
    gboolean classes;  /* it is a classifier */
    gboolean binary;   /* of two classes, all weights are of one */
    gboolean positive; /* no weight is below 0: scores are probabilities */
} HnTreesClasses;

typedef struct {
    int64_t n_nodes, n_trees, n_leaves; /* leaves that a root leads to */
    int64_t n_weights, n_members, n_base, n_targets;
    int64_t features; /* that a row has to have, at least */
    HnTreeNode *nodes;
    int32_t *roots; /* in the order in which the trees are added up */
    HnTreeWeight *weights;
    double *members, *base;
    HnTreesAggregate aggregate;
    HnMlTransform transform;
    HnTreesClasses kind;
    gboolean wide; /* some threshold is no f32 */
} HnTrees;

/* Parameters of the three records. */
typedef struct {
    int64_t n_targets, n_trees, n_leaves, features;
    int64_t tests, tests_most; /* comparisons that branches come down to: of all trees, of a tree */
    double steps;              /* from roots to leaves, for a row: about */
    HnMlLabels labels;         /* of a classifier */
} HnTreesParams;

/* The trees of n's attributes; NULL: an error of the attributes. hn_op_bind() has checked that there is none. */
HnTrees *hn_trees_new(const HnNode *n, GError **error);
void hn_trees_free(HnTrees *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnTrees, hn_trees_free)

/* Scores of a row from what its leaves gave. `sum` has n_targets places, or 2 where that is more, and is written to;
 * has[k]: some leaf gave class k a weight. Returns the number of the class (0 where there are none). */
int64_t hn_trees_finish(const HnTrees *t, double *sum, const uint8_t *has);
/* Takes a weight in. */
static inline void hn_trees_add(HnTreesAggregate how, double *sum, uint8_t *has, double w)
{
    if (how == HN_TREES_MIN || how == HN_TREES_MAX)
        *sum = !*has || (how == HN_TREES_MIN ? w < *sum : w > *sum) ? w : *sum;
    else
        *sum += w;
    *has = 1;
}
/* Where the branch n leads. */
int32_t hn_trees_next(const HnTrees *t, const HnTreeNode *n, double x);

G_END_DECLS
