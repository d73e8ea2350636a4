/*
 * Reverse mode: the gradients of values of a graph, written behind its nodes as further ones (op/tape.h).
 *
 *     HnReverse r = { .graph = g, .types = types, .n = 1, .of = &loss, .dy = &one, .n_wanted = n, .wanted = weights };
 *     if (!hn_reverse(&r, gradients, &error)) ...
 *
 * Nodes are of the newest form of their operators (hn_convert_opset()), and bound. A value that several nodes use gets
 * one sum. Nothing is written for what leads to no wanted value. What is wanted belongs to the graph itself; nodes in
 * the branches of an If may use it. Loop and Scan have no gradient: what runs a known number of times is unrolled
 * before (pass/unroll_loop.c, as train/step_graph.c asks for it).
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

#define HN_GRADIENT_SUFFIX \
    "/gradient" /* of the names of nodes that are written, behind that of the node they are for */

typedef struct {
    HnGraph *graph;
    const HnTypes *types; /* of its values */
    int n;
    HnValue *const *of, *const *dy; /* [n]: values, and the gradient of what is to fall by them: of their shapes */
    int n_wanted;
    HnValue *const *wanted; /* [n_wanted]: floats whose gradients are asked for */
    gboolean straight;      /* HnTape.straight: through Round and its like, and through QuantizeLinear */
} HnReverse;

/* gradients: [n_wanted], of the types and shapes of what is wanted; NULL: nothing depends on it. Errors: UNSUPPORTED,
 * one sentence that names the operator, the node and what is wanted: the graph is then only good to be freed. */
gboolean hn_reverse(const HnReverse *r, HnValue **gradients, GError **error);

G_END_DECLS
