/*
 * Shared by the operators of sequences and optionals: elements with memory of their own.
 *
 * What an operator reads lies in a plan's arena, or belongs to a caller, and is written over later; what a list holds
 * stays. So a tensor is copied when it becomes an element, once, and shared by whatever lists come of it.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

/* A new reference: t itself where it is a list, else a copy. NULL: e->error is set. */
HnTensor *hn_list_element(HnEval *e, const HnTensor *t);
/* Input i, which is a sequence; NULL: e->error is set. */
const HnTensor *hn_eval_sequence(HnEval *e, int i);
/* Type of the elements of input i; NULL: not known, or no sequence, which is a failure. Borrowed. */
HnType *hn_infer_elements(HnInfer *x, int i);
/* Output k is a sequence of these. Takes elem, which may be NULL: unknown. */
void hn_infer_out_sequence(HnInfer *x, int k, HnType *elem);
/* Output k is of that type, which may be NULL: unknown. Takes the reference. */
void hn_infer_out_type(HnInfer *x, int k, HnType *type);

G_END_DECLS
