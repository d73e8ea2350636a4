/*
 * Ensembles of trees as kernels walk them: cells of 8 bytes, branch-free.
 *
 * Numbers become keys: integers of 32 bits in the same order, of f32 its bits (negative ones turned round), and of f64
 * the rank among the thresholds of that feature. Every branch becomes `x <= key`, or two: x < t is x <= the number
 * below t; x >= t is x < t with its sides changed; x == t is x <= t and then x <= the number below. NaN, which compares
 * with nothing, is the largest key where branches shall take it for `no`, and the smallest for `yes`: a feature that is
 * tested in both ways has two columns in a row of keys.
 *
 * A cell leads to a child or to the one behind it: next = child + (x > key). A leaf's key is the largest there is, and
 * leads to itself, so that a walk of as many steps as the tree is deep ends at the leaf of any row.
 */
#pragma once

#include "op/trees.h"

G_BEGIN_DECLS

typedef struct {
    int32_t key;
    uint32_t next; /* child << bits | column; cells are counted from the tree's first */
} HnTreeCell;

typedef enum {
    HN_LEAF_VALUE, /* a weight of one target, the same in all leaves of the tree: HnCellValue.value */
    HN_LEAF_DENSE, /* one weight for each target: HnCellValue.at is the row of `table` */
    HN_LEAF_SOME,  /* any weights: HnCellValue.at is the leaf's place in `first` */
} HnLeafKind;

typedef union {
    float value;
    int32_t at;
} HnCellValue;

typedef struct {
    gsize first;          /* cell: its root */
    int32_t cells;        /* of it */
    int32_t depth, least; /* steps to the farthest and to the next leaf */
    HnLeafKind kind;
    int32_t target; /* of HN_LEAF_VALUE */
    gboolean opens; /* it is the first tree of its target */
} HnTreePlace;

#define HN_WALK_TREES 64 /* trees at a time, for one row: a group */

/* Over the trees of a group. */
typedef struct {
    int32_t depth, least;
} HnTreeGroup;

typedef struct {
    int32_t feature;
    int32_t nan;    /* key of NaN */
    gsize first, n; /* of f64: its thresholds in `ranks` */
} HnTreeColumn;

typedef struct {
    HnTrees *trees; /* without nodes: what hn_trees_finish() needs */
    HnTreePlace *place;
    HnTreeGroup *group;
    int32_t *roots; /* HnTreePlace.first, for whole groups: the last one is repeated */
    HnTreeCell *cell;
    HnCellValue *value; /* of each cell; of leaves only */
    gsize n_cells;
    int bits; /* of a column in HnTreeCell.next */
    int64_t n_columns;
    HnTreeColumn *column;
    gboolean ranked; /* keys are ranks of f64 */
    int64_t *ranks;  /* keys of f64, ascending for each column */
    double *table;   /* [rows, targets] */
    int64_t n_table;
    int32_t *first; /* of HN_LEAF_SOME: weights of leaf i are first[i] to first[i + 1] */
    int64_t n_some;
    HnTreeWeight *weights;
    int64_t n_weights;
    uint8_t *has;   /* [targets] some tree gives each row a weight for this target */
    gboolean mixed; /* there are trees other than HN_LEAF_VALUE */
    double steps;   /* of a row, through all trees: at most */
} HnPackedTrees;

/* Why kernels do not take rows x of features; NULL: they do, and surely there is room for the nodes in cells. */
const char *hn_trees_reject(const HnTreesParams *p, const HnTensor *x);
/* Takes what it needs of t's attributes. Errors: UNSUPPORTED: cells have no room for so many nodes and columns. */
HnPackedTrees *hn_trees_pack(const HnNode *n, HnDtype input, GError **error);
void hn_trees_unpack(HnPackedTrees *p);

/* Keys that stand for no number. */
#define HN_TREE_NAN_YES G_MININT32
#define HN_TREE_NAN_NO G_MAXINT32

/* -0 is 0. Of a NaN it is anything. */
static inline int32_t hn_tree_key32(float x)
{
    union {
        float f;
        int32_t i;
    } u = { x + 0.0f };
    return u.i ^ ((u.i >> 31) & G_MAXINT32);
}
static inline int64_t hn_tree_key64(double x)
{
    union {
        double f;
        int64_t i;
    } u = { x + 0.0 };
    return u.i ^ ((u.i >> 63) & G_MAXINT64);
}

G_END_DECLS
