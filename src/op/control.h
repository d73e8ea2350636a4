/*
 * Shared by If, Loop and Scan: types that sub-graphs agree on, values carried from run to run, results stacked.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

/* Output k gets type t; takes the reference. */
void hn_control_out(HnInfer *x, int k, HnType *t);

/*
 * Infers a body whose inputs in[at_in ...] are its outputs out[at_out ...] of the run before, n of them. `in` holds the
 * types of the first run and is widened until the body gives back what it gets. out: n_out places, new references.
 */
gboolean hn_control_carry(HnInfer *x, HnGraph *body, int n_in, HnType **in, int at_in, int n_out, HnType **out,
                          int at_out, int n);
void hn_control_unref_types(HnType **types, int n);

void hn_control_unref(HnTensor **t, int n);

/*
 * A tensor of `total` items along a new axis of what the items are: their elements in order (or reversed), zeros where
 * there are fewer items than total. Without items the shape is that which `formal`, the body's output, declares, with 0
 * for what it leaves open, a list where it leaves the rank open. NULL: e->error is set.
 */
HnTensor *hn_control_stack(HnEval *e, GPtrArray *items, int64_t total, int64_t axis, gboolean reversed,
                           const HnValue *formal);
/* Elements of x at position i along `axis`, which goes away. NULL: e->error is set. */
HnTensor *hn_control_slice(HnEval *e, const HnTensor *x, int axis, int64_t i);

/* How often n, which is bound, runs its sub-graph `body`; NAN: not known, or it runs one of its bodies and nobody knows
 * which. */
double hn_control_runs(const HnTypes *t, const HnNode *n, const HnGraph *body);
double hn_if_runs(const HnTypes *t, const HnNode *n, const HnGraph *body);
double hn_loop_runs(const HnTypes *t, const HnNode *n);
double hn_scan_runs(const HnTypes *t, const HnNode *n);

G_END_DECLS
