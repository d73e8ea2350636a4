/*
 * Recomputation: values of the forward part of a step that backward reads are made a second time, just in front of
 * their first reader there, so that the first ones need no memory in between (T. Chen et al., "Training Deep Nets with
 * Sublinear Memory Cost", 2016). It is a rewrite of the step's graph, before planning:
 *
 *     a = Conv(x); b = Relu(a); ...; da = ReluGrad(db, b)
 *     a = Conv(x); b = Relu(a); ...; b/again = Relu(a); da = ReluGrad(db, b/again)
 *
 * What is made again is chosen greedily by bytes freed at the peak for each second that it takes (by the records'
 * costs), in a model of the memory that is as good as the lifetimes of the plan; what is chosen is then planned, and
 * the choice goes on until the plan's own arena fits. What is cheap is chosen without being asked for: a norm's and an
 * activation's result of what they read cost a pass over memory, and memory that is not used twice saves as much. A
 * node is made again of the same inputs by the same kernels: results are the same to the bit. Nodes that are random or
 * run sub-graphs are not made again; running moments are results of the first nodes only.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

#define HN_AGAIN_SUFFIX "/again" /* of the names of nodes that are written */

typedef struct {
    gsize limit;    /* bytes of the arena; G_MAXSIZE: any */
    double part;    /* of a step's time: what takes no more, and is moved rather than computed, is made again in any
                       case, as far as the arena falls by it */
    gboolean never; /* nothing is made again; only what is needed is told */
    int segments; /* 0: what the limit asks for; else the forward part is cut into as many, and only what goes from one
                     to another stays */
    /* A session that is prepared for m as it is, of no budget; NULL: *error. */
    HnSession *(*plan)(HnModel *m, gpointer data, GError **error);
    gpointer data;
} HnRecomputeOptions;

typedef struct {
    gsize plain; /* bytes of the arena without recomputation */
    gsize arena; /* and with it: exactly those of planning the graph as it is now */
    guint nodes; /* made again */
    double part; /* of the time of a step that they take, by their costs */
    gboolean fits;
} HnRecomputed;

/* m: of hn_step_graph_new(), bound. Where nothing fits, m is what comes nearest. Errors: those of plan(). */
gboolean hn_recompute(HnModel *m, const HnRecomputeOptions *o, HnRecomputed *made, GError **error);

/* The node is one of these. */
gboolean hn_is_again(const HnNode *n);

G_END_DECLS
