/*
 * HnConstants: what planning makes of the model's constants, once for all sessions of an engine.
 *
 * A weight may lie at an address that its elements must not have, be of a type that kernels do not compute in, or be
 * held as a few bits; the elements that a step reads are then made when a plan asks for them. They are found by what
 * they are made of, and live while somebody beside this table holds them.
 *
 * Called with the engine's lock held (run/engine.h). Tensors that come from here are new references, and never written
 * to.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

#define HN_CONSTANT_INPUTS 4 /* of a node whose result is kept, at most */

typedef struct HnConstants HnConstants;

HnConstants *hn_constants_new(HnBudget *budget);
void hn_constants_free(HnConstants *c); /* NULL is fine */

/* The elements of t at an aligned address: t itself mostly. */
HnTensor *hn_constants_aligned(HnConstants *c, HnTensor *t, GError **error);
/* What t was aligned from; t where it was not. No new reference. */
HnTensor *hn_constants_source(const HnConstants *c, HnTensor *t);
/* The elements of f16 or bf16 as f32. */
HnTensor *hn_constants_wide(HnConstants *c, HnTensor *half, GError **error);

/* What node n makes of tensors, which may stand for such themselves: a tensor without elements that stands for the
 * result, the same for all who have the same inputs. */
HnTensor *hn_constants_standin(HnConstants *c, const HnNode *n, HnTensor *const *in);
/* The result's elements; NULL without an error: nobody has made them, or they are dropped. */
HnTensor *hn_constants_made(const HnConstants *c, const HnTensor *standin);
/* From now on t is what `standin` stands for. */
void hn_constants_note_made(HnConstants *c, const HnTensor *standin, HnTensor *t);

/* Takes a reference of t, which may be anything; elements that were made here and that nobody else holds go. */
void hn_constants_unref(HnConstants *c, HnTensor *t);
/* All go that nobody holds any more. */
void hn_constants_sweep(HnConstants *c);

G_END_DECLS
