/*
 * HnInPlace: training with quantization in place, on a step's copy of a model.
 *
 * Weights that the file holds as integers become f32 ones, which are trained, behind FakeQuantize; so do pairs of
 * QuantizeLinear and DequantizeLinear around values. Scales are learned in place (S. K. Esser et al., "Learned step
 * size quantization", 2020), and fall to a 16th of what they were at most. What is trained is written back as the file
 * has it: integers of the grid that training saw, of the same type.
 */
#pragma once

#include "op/infer.h"
#include "train/quantized.h"

G_BEGIN_DECLS

/* A scale that may be learned. */
typedef struct {
    char *name;      /* in the step's graph */
    HnTensor *start; /* as the file has it; NULL: there is no scale */
} HnGridScale;

/* How a weight that is trained as f32 lies in the file. */
typedef struct {
    HnFakeForm form;
    HnTensor *zero;        /* NULL: 0 */
    HnGridScale scale, by; /* `by`: of a bias, whose scale is the product of both */
    HnTensor *like;        /* of a bias: its own scale, as the file has it; else NULL */
} HnGrid;

typedef struct HnInPlace HnInPlace;

/* Rewrites g, the main graph of a bound model of the newest opset; trained: HnTrainableWeight, of it. Errors: VALUE: a
 * scale is not above 0, or no number, one sentence that names it and the node. */
HnInPlace *hn_in_place_new(HnGraph *g, const GArray *trained, GError **error);
void hn_in_place_free(HnInPlace *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnInPlace, hn_in_place_free)

/* Something became FakeQuantize. */
gboolean hn_in_place_any(const HnInPlace *p);
/* What is trained instead of v, integers: f32. v itself: it is no such weight. */
HnValue *hn_in_place_master(const HnInPlace *p, HnValue *v);
/* How the file holds master; NULL: as it is. */
const HnGrid *hn_in_place_grid(const HnInPlace *p, const HnValue *master);
/* What elements of v, a scale that is learned, do not fall below; NULL: v is none. */
HnTensor *hn_in_place_least(const HnInPlace *p, const HnValue *v);
/* Scales of biases that follow others: HnGrid * whose `like` lies under these names (char *) in the file. */
guint hn_in_place_n_products(const HnInPlace *p);
const HnGrid *hn_in_place_product(const HnInPlace *p, guint i, const char **name);

/* --- writing back ------------------------------------------------------------------------------------------------- */

/* The scale of g from those of both values now (NULL: as they were): of the dims of the file's. NULL: no memory. */
HnTensor *hn_grid_scale(const HnGrid *g, const HnTensor *scale, const HnTensor *by, HnBudget *budget, GError **error);
/* A learned scale as it is used: elements of t, not below `least`. */
HnTensor *hn_scale_used(const HnTensor *t, const HnTensor *least, HnBudget *budget, GError **error);

G_END_DECLS
