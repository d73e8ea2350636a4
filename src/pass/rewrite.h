/*
 * HnRewrite: what a pass may ask and do.
 *
 *     static gboolean div_to_mul(HnRewrite *r, HnNode *n)            called for each node
 *     {
 *         double c;
 *         if (n->op != &hn_op_div || !hn_rw_number(r, hn_node_in(n, 1), &c))
 *             return FALSE;                                          not our pattern
 *         if (c == 0)
 *             return hn_rw_miss(r, n, "the divisor is 0");           nearly: --explain tells
 *         if (!hn_rw_go(r, n))
 *             return FALSE;                                          banned, or no more rewrites wanted
 *         HnValue *f = hn_rw_weight(r, n->graph, "factor", hn_tensor_scalar_f32(1 / c));
 *         HnNode *mul = hn_rw_add(r, n, "Mul", HN_INS(hn_node_in(n, 0), f));
 *         return hn_rw_take(r, mul, n);                              mul makes what n made; n is swept away
 *     }
 *
 * Look first, change later: nothing is edited before hn_rw_go() said yes, and everything behind it has to succeed; what
 * cannot (out of memory, an operator that refuses) is noted by the calls themselves, and the driver undoes the rewrite.
 * Nobody removes nodes or weights: what lost its last user goes by itself when the pass returns.
 *
 * Every op record is declared here: hn_op_conv, hn_op_relu, ...
 */
#pragma once

#include "op/ops.h"
#include "pass/pass.h"

G_BEGIN_DECLS

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* Type of v; NULL: nothing known, or no tensor. */
const HnType *hn_rw_type(const HnRewrite *r, const HnValue *v);
HnDtype hn_rw_dtype(const HnRewrite *r, const HnValue *v); /* HN_UNDEFINED: not known */
int hn_rw_rank(const HnRewrite *r, const HnValue *v);      /* -1: not known */
/* Of the axis counted from the front, or with a negative one from the back; unknown where there is none. */
HnDim hn_rw_dim(const HnRewrite *r, const HnValue *v, int axis);
/* Axis i of a is as long as axis k of b. */
gboolean hn_rw_same_dim(const HnRewrite *r, const HnValue *a, int i, const HnValue *b, int k);
/* Known to have the same rank and dimensions, symbolic ones included. */
gboolean hn_rw_same_shape(const HnRewrite *r, const HnValue *a, const HnValue *b);
/* All dimensions are numbers: written to dims (HN_MAX_RANK places). */
gboolean hn_rw_fixed(const HnRewrite *r, const HnValue *v, int64_t *dims);

/* Elements that are known ahead (a weight, or what follows from weights and shapes), aligned unless the graph is
 * lowered: other threads may run the model that they belong to. NULL: not known. */
HnTensor *hn_rw_const(const HnRewrite *r, const HnValue *v);
/* The same, perhaps not aligned, so that nothing is copied: for its sizes, hn_tensor_get_*() and memcpy(). */
HnTensor *hn_rw_known(const HnRewrite *r, const HnValue *v);
/* For HnDraft: a new reference of the same, else a tensor without elements of v's type and dimensions, which are fixed.
 */
HnTensor *hn_rw_tensor(const HnRewrite *r, const HnValue *v);
/* The same for a tensor of one element, and for one where all elements are equal. */
gboolean hn_rw_number(const HnRewrite *r, const HnValue *v, double *x);
gboolean hn_rw_uniform(const HnRewrite *r, const HnValue *v, double *x);
/* Integers of rank 0 or 1, all known: up to `max` written, *n of them. */
gboolean hn_rw_ints(const HnRewrite *r, const HnValue *v, int64_t *x, int max, int *n);
/* Integers of rank 0 or 1 as far as they follow from shapes: numbers, symbols, unknowns; NULL: nothing is known. */
const HnContents *hn_rw_contents(const HnRewrite *r, const HnValue *v);

/* The node that makes v, where that is an `op` of v's own graph; NULL otherwise. */
HnNode *hn_rw_maker(const HnValue *v, const HnOp *op);
/* The only use of v (which is no output) is one input of an `op` of the same graph. */
HnNode *hn_rw_reader(const HnValue *v, const HnOp *op);
/* v has one use, and is no output: whoever takes over its maker leaves nothing behind. */
gboolean hn_rw_single(const HnValue *v);
/* The other one of two inputs. */
HnValue *hn_rw_other(const HnNode *n, const HnValue *v);
/* v can be read in g: it belongs to g or to a graph around it. */
gboolean hn_rw_visible(const HnGraph *g, const HnValue *v);
/* The operator exists in the opset that g's nodes are of, which is at least `version`. */
gboolean hn_rw_can(const HnGraph *g, const HnOp *op, int64_t version);
int64_t hn_rw_opset(const HnGraph *g); /* of the default domain */
HnBudget *hn_rw_budget(const HnRewrite *r);
/* The graph is about to run, no file is made of it, and nobody compares results: a formula that overflows where its
 * operator does not stays a formula. */
gboolean hn_rw_lowers(const HnRewrite *r);
/* No file is written of the graph, and loops shall be gone: it may grow. */
gboolean hn_rw_unrolls(const HnRewrite *r);
/* The graph is to be trained: weights are values that nobody knows, and finite, since a step that would make others
 * changes nothing. */
gboolean hn_rw_trains(const HnRewrite *r);
/* What the graph is lowered for can do d without its ref. */
gboolean hn_rw_runs(const HnRewrite *r, const HnDraft *d);

/* --- deciding ----------------------------------------------------------------------------------------------------- */

/* Says that n nearly was a match; returns FALSE. */
gboolean hn_rw_miss(HnRewrite *r, const HnNode *n, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* May n's results, of so many bytes, be stored instead of n? With HnPassOptions.lean not where that adds some kB to the
 * file: what n reads is stored, too, or is computed itself. */
gboolean hn_rw_may_store(HnRewrite *r, const HnNode *n, gsize bytes);
/* May the rewrite that begins with n be made? */
gboolean hn_rw_go(HnRewrite *r, const HnNode *n);
/* The same for a pass over graphs. */
gboolean hn_rw_go_graph(HnRewrite *r, const HnGraph *g, const HnValue *site);

/* --- changing ----------------------------------------------------------------------------------------------------- */

#define HN_INS(...) (HnValue *[]){ __VA_ARGS__ }, (int)(sizeof((HnValue *[]){ __VA_ARGS__ }) / sizeof(HnValue *))

/* A new weight of g; takes the tensor, NULL (as from an allocation that failed) fails the rewrite. */
HnValue *hn_rw_weight(HnRewrite *r, HnGraph *g, const char *stem, HnTensor *t);
HnValue *hn_rw_weight_ints(HnRewrite *r, HnGraph *g, const char *stem, const int64_t *x, int n); /* i64[n] */

/* A new node of the default domain in front of `before`, without outputs; set its attributes, then one of the next
 * two. Inputs at the end that are NULL are left out. */
HnNode *hn_rw_add(HnRewrite *r, HnNode *before, const char *op, HnValue *const *in, int n_in);
/* The same for an operator of domain "hone". */
HnNode *hn_rw_add_internal(HnRewrite *r, HnNode *before, const HnOp *op, HnValue *const *in, int n_in);
/* n makes a new value: that. Binds and infers n. */
HnValue *hn_rw_out(HnRewrite *r, HnNode *n, const char *stem);
/* n makes output 0 of `old` instead of it, with its name. Binds and infers n; the rewrite fails where the types
 * contradict. Returns TRUE. */
gboolean hn_rw_take(HnRewrite *r, HnNode *n, HnNode *old);
/* The same for value v, whichever node made it. */
gboolean hn_rw_take_value(HnRewrite *r, HnNode *n, HnValue *v);
/* Input i of n becomes v (NULL: absent; absent ones at the end go). Call hn_rw_done() behind the last edit of n. */
void hn_rw_set_in(HnRewrite *r, HnNode *n, int i, HnValue *v);
/* Inputs from `n_in` on go. */
void hn_rw_cut_in(HnRewrite *r, HnNode *n, int n_in);
/* Binds n again and infers its outputs, after inputs or attributes were edited. Returns TRUE. */
gboolean hn_rw_done(HnRewrite *r, HnNode *n);
/* Nobody reads output k of n: it goes. */
void hn_rw_drop_out(HnRewrite *r, HnNode *n, int k);

/* Everybody who reads v reads `to` instead, which has the same type and is visible where v is. Where v is an output of
 * its graph, `to` takes over v's name. Asks hn_rw_go() for n. FALSE: not possible (an output that `to`, being an input,
 * a weight, an output already or another graph's, cannot become) or not wanted. */
gboolean hn_rw_bypass(HnRewrite *r, const HnNode *n, HnValue *v, HnValue *to);
/* The same behind hn_rw_go(), where it is known to be possible. */
void hn_rw_replace(HnRewrite *r, HnValue *v, HnValue *to);
/* Output k of n is constant: becomes a weight, or a Constant where it is an output of its graph. Takes t. Behind
 * hn_rw_go(). */
void hn_rw_make_constant(HnRewrite *r, HnNode *n, int k, HnTensor *t);

/* The nodes of g, which an attribute of `holder` holds, once more in front of holder. in[i] stands for g's input i;
 * out[k] becomes what stands for its output k (places for all). `shared`: g's weights -> theirs outside, kept from copy
 * to copy; NULL where there is one. Behind hn_rw_go(). */
void hn_rw_inline_graph(HnRewrite *r, HnNode *holder, HnGraph *g, HnValue *const *in, GHashTable *shared,
                        HnValue **out);
/* Output k of n is `to`, through an Identity where v is a graph's output that `to` cannot become. Behind hn_rw_go(). */
void hn_rw_stand_in(HnRewrite *r, HnNode *n, int k, HnValue *to);

/* The place goes and those behind move up; nobody reads what was an output of n or an input of g. A node that holds
 * the graph needs hn_rw_done() behind it. */
void hn_rw_remove_in(HnRewrite *r, HnNode *n, int i);
void hn_rw_remove_out(HnRewrite *r, HnNode *n, int k);
void hn_rw_remove_graph_in(HnRewrite *r, HnGraph *g, int i);
void hn_rw_remove_graph_out(HnRewrite *r, HnGraph *g, int k);

/* The rewrite cannot be finished: it is undone. */
void hn_rw_fail(HnRewrite *r, HnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

G_END_DECLS
