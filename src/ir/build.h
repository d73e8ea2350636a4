/*
 * HnBuild: making nodes, one behind the other. Passes, conversions and whoever writes gradients or lowers put their own
 * around it: where nodes go, and who is told.
 *
 *     HnBuild b = { .graph = g, .before = n };
 *     HnValue *t = hn_build_transpose(&b, x, (int64_t[]){ 1, 0 }, 2);
 *     HnValue *y = hn_build_op2(&b, "MatMul", a, t);
 *
 * Nodes are written in the newest form of their operators. What comes back is borrowed; a NULL input is an absent one.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct HnBuild HnBuild;
struct HnBuild {
    HnGraph *graph;
    const HnNode *before; /* of the graph: new nodes go in front of it, in the order of making; NULL: to the end */
    HnGraph *weights;     /* where constants go, a graph around `graph`; NULL: there */
    int64_t version;      /* of the nodes' opset; 0: as the graph imports it */
    void (*on_node)(const HnBuild *b, HnNode *n);                   /* after inputs, before attributes; NULL: nobody */
    void (*on_constant)(const HnBuild *b, HnValue *v, HnTensor *t); /* the same */
    gpointer data;
};

/* Inputs at the end that are NULL are left out. Its n_out outputs are new values, called after the operator; of none
 * the caller adds his own. */
HnNode *hn_build_node(const HnBuild *b, const char *op, const char *domain, int n_in, HnValue *const *in, int n_out);
/* One output. */
HnValue *hn_build_op1(const HnBuild *b, const char *op, HnValue *a);
HnValue *hn_build_op2(const HnBuild *b, const char *op, HnValue *x, HnValue *y);
HnValue *hn_build_op3(const HnBuild *b, const char *op, HnValue *x, HnValue *y, HnValue *z);
HnValue *hn_build_cast(const HnBuild *b, HnValue *v, HnDtype to);
HnValue *hn_build_shape(const HnBuild *b, HnValue *v, int64_t start, int64_t end); /* sizes [start,end) of v */
HnValue *hn_build_reshape(const HnBuild *b, HnValue *v, const int64_t *dims, int n);
HnValue *hn_build_transpose(const HnBuild *b, HnValue *v, const int64_t *perm, int n);
HnValue *hn_build_concat(const HnBuild *b, int n, HnValue *const *parts, int64_t axis);
HnValue *hn_build_slice(const HnBuild *b, HnValue *v, int64_t axis, int64_t start, int64_t end);
HnValue *hn_build_reduce(const HnBuild *b, const char *op, HnValue *v, const int64_t *axes, int n, gboolean keep);
/* A weight, called after `stem`; takes t. */
HnValue *hn_build_constant(const HnBuild *b, const char *stem, HnTensor *t);
HnValue *hn_build_list(const HnBuild *b, const int64_t *v, int n); /* i64[n] */

G_END_DECLS
