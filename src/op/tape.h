/*
 * HnTape: writing down the gradient of a node, as nodes.
 *
 * A record's `grad` is handed a node of the newest form (opset HN_OPSET_MAX) and the gradients of its results, and says
 * what those of its inputs are: in expressions, or by building nodes, ordinary ones or internal ones (domain "hone")
 * where a fused kernel is worth it. What it writes goes through the same passes, lowering and memory plan as all else.
 *
 *     static void tanh_grad(HnTape *t) { hn_tape_map(t, "dy * (1 - y * y)"); }
 *
 * Inputs that nobody asks a gradient of cost nothing: what is given for them is dropped, and hn_tape_needs() says so
 * before much is built. An input that has no gradient for a reason (positions, shapes, ranges) is one that is not
 * given: records name those of floats with hn_tape_ends(), so that a forgotten one is seen.
 *
 * Gradients are of the type of the value; those of integers that stand for floats (HN_OP_STEPS) are floats. Sums of
 * several uses are made by whoever walks over the graph (train/).
 */
#pragma once

#include "ir/build.h"
#include "op/infer.h"

G_BEGIN_DECLS

#define HN_TAPE_NUMBERS 3

typedef struct HnTape {
    HnNode *node; /* bound */
    const void *params;
    const HnBuild *build;
    const HnTypes *types;           /* of the values of the graph that the node is of */
    HnValue *const *dy;             /* [node's results]; NULL: nothing depends on it */
    const gboolean *needs;          /* [node's inputs] */
    HnValue **dx;                   /* [node's inputs]: filled in */
    gboolean *ends;                 /* [node's inputs]: has no gradient by its meaning */
    HnDtype dtype;                  /* of the first result that has a gradient, which is a float */
    gboolean apart;                 /* hn_tape_apart() was called */
    gboolean straight;              /* through steps as through the identity (Y. Bengio et al., 2013) */
    double number[HN_TAPE_NUMBERS]; /* what a, b, c stand for in expressions */
    /* Of a node with sub-graphs: values around them that they use and whose gradients are asked for, and these. */
    int n_captures;
    HnValue *const *captures;
    HnValue **dcapture; /* [n_captures]: filled in; NULL: nothing depends on it */
    /* Writes the gradients of the captures behind the nodes of g, a copy of a sub-graph of the node, into g: dx
     * [n_captures], NULL: g's results do not depend on it. They are given the node's `dy`. FALSE: t->error is set. */
    gboolean (*graph)(struct HnTape *t, HnGraph *g, HnValue **dx);
    gpointer data;
    GError *error;
} HnTape;

/* --- what is known ------------------------------------------------------------------------------------------------ */

gboolean hn_tape_needs(const HnTape *t, int i);
HnValue *hn_tape_in(const HnTape *t, int i); /* NULL: absent */
HnValue *hn_tape_out(const HnTape *t, int k);
HnValue *hn_tape_dy(const HnTape *t, int k);              /* NULL: nothing depends on it */
int hn_tape_rank(const HnTape *t, int i);                 /* of input i; -1: not known */
HnDtype hn_tape_dtype(const HnTape *t, const HnValue *v); /* HN_UNDEFINED: not known */
gboolean hn_tape_dims(const HnTape *t, int i, int64_t *dims);
gboolean hn_tape_out_dims(const HnTape *t, int k, int64_t *dims);
/* Integer elements of input i where they are known: how many; -1 where not, or more than HN_MAX_RANK. */
int hn_tape_ints(const HnTape *t, int i, int64_t *v);

/* --- giving --------------------------------------------------------------------------------------------------------
 */

/* The gradient of input i, of its shape; several add up. NULL: nothing. */
void hn_tape_give(HnTape *t, int i, HnValue *dx);
/* The same, of result 0's shape, to which input i was broadcast. */
void hn_tape_give_sum(HnTape *t, int i, HnValue *dx);
/* Input i has none by its meaning. */
void hn_tape_ends(HnTape *t, int i);
/* Failure, once: "the axes are computed when it runs". */
void hn_tape_refuse(HnTape *t, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* --- expressions ----------------------------------------------------------------------------------------------------
 * Of `dy` and `y` (result 0), `x` or `x0`, `x1`, `x2` (inputs), `a`, `b`, `c` (t->number), `p`, `q`, `r` (values that
 * are handed over), numbers, + - * / and comparisons, and calls of operators by name: "dy * Where(x > 0, 1, a)". What
 * is only numbers is computed at once. Not well-formed: a fault of the program.
 */
HnValue *hn_tape_calc(HnTape *t, const char *expression, HnValue *const *values); /* values: p, q, r; NULL: none */
/* The gradient of input 0, of its own shape. */
void hn_tape_map(HnTape *t, const char *expression);
/* Of input i of operands that broadcast, if it is asked for. */
void hn_tape_operand(HnTape *t, int i, const char *expression);

/* --- building -------------------------------------------------------------------------------------------------------
 */

HnValue *hn_tape_number(HnTape *t, double v);                    /* a scalar of t->dtype */
HnValue *hn_tape_sum_like(HnTape *t, HnValue *v, HnValue *like); /* summed to the shape of `like`, which v broadcasts */
HnValue *hn_tape_reshape_like(HnTape *t, HnValue *v, HnValue *like);
/* The node's operator of domain "hone" that is named, with the node's attributes. */
HnNode *hn_tape_backward(HnTape *t, const char *op, int n_in, HnValue *const *in, int n_out);
/* The node itself becomes the operator of domain "hone" that is named, of the same parameters, with further results up
 * to n_out: what a gradient reads again. t->params are the new ones. */
void hn_tape_become(HnTape *t, const char *op, int n_out);
HnValue *hn_tape_zeros(HnTape *t, HnValue *like); /* of t->dtype */

HnValue *hn_tape_places(HnTape *t, HnValue *like); /* i64: 1, 2, 3 ... in its shape */

/* Ready-made: an input of the result's elements, in another place or shape. */
void hn_tape_reshaped(HnTape *t); /* inputs 1 and on say shapes */
/* An input whose elements the result consists of, or of zeros: the operator moves their numbers, too. */
void hn_tape_moved(HnTape *t);
/* The node is taken apart (hn_node_take_apart()): gradients are those of what it consists of. */
void hn_tape_apart(HnTape *t);
/* Flat but for steps: 0, or, where that is asked for, as if it were the identity. */
void hn_tape_steps(HnTape *t);

/* n, bound, with a gradient: calls its record. FALSE: it has none, or refused. The arrays of t are the caller's. */
gboolean hn_op_grad(HnTape *t, GError **error);

G_END_DECLS
