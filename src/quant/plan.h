/*
 * HnQuantPlan: which nodes of a model compute with integers, and what the integers of each tensor stand for.
 *
 * Nodes and tensors are named, a node by its first output, so that a plan made on one copy of a model serves for
 * another and can be written down. A number is scale * (q - zero).
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef enum {
    HN_FORM_F32,  /* as it is */
    HN_FORM_INT8, /* activations and weights */
    HN_FORM_W8,   /* weights only, 8 bits, an own scale for each output channel */
    HN_FORM_W4,   /* weights only, 4 bits, an own scale for each block of `block` */
} HnQuantForm;

const char *hn_quant_form_name(HnQuantForm form); /* "f32", "int8", "w8", "w4" */
gboolean hn_quant_form_parse(const char *name, HnQuantForm *form);

/* The numbers that a tensor holds; of activations. */
typedef struct {
    double lo, hi;
} HnQuantSpan;

typedef struct {
    HnDtype activations;      /* HN_U8 or HN_I8 */
    gboolean symmetric;       /* of activations: the zero point is the middle of their type */
    gboolean per_tensor;      /* one scale for a whole weight */
    gboolean reduced;         /* 7-bit weights in channels where pairs of products could saturate 16 bits */
    gboolean reduced_all;     /* in all channels */
    int block;                /* of HN_FORM_W4: 32, 64, 128 along the axis that is summed over */
    gboolean symmetric_block; /* s4 with the zero point 0 instead of u4 */
} HnQuantOptions;

typedef struct {
    HnQuantOptions o;
    GHashTable *forms; /* char * -> GINT_TO_POINTER(HnQuantForm); absent: HN_FORM_F32 */
    GHashTable *spans; /* char * -> HnQuantSpan * */
} HnQuantPlan;

HnQuantPlan *hn_quant_plan_new(const HnQuantOptions *o);
void hn_quant_plan_free(HnQuantPlan *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnQuantPlan, hn_quant_plan_free)
HnQuantPlan *hn_quant_plan_copy(const HnQuantPlan *p);

HnQuantForm hn_quant_plan_form(const HnQuantPlan *p, const HnNode *n);
void hn_quant_plan_set_form(HnQuantPlan *p, const char *node, HnQuantForm form);
const HnQuantSpan *hn_quant_plan_span(const HnQuantPlan *p, const HnValue *v); /* NULL: not known */
void hn_quant_plan_set_span(HnQuantPlan *p, const char *value, double lo, double hi);

/* Nodes with weights that may take a form: input 1 is constant and f32, input 0 is f32. In order; HnNode *. */
GPtrArray *hn_quant_candidates(HnModel *m);

/* Marks as INT8 whatever else has integers on all sides: nodes between INT8 nodes with weights that move, compare or
 * combine numbers. Marks of other nodes without weights are taken away. */
void hn_quant_spread(HnQuantPlan *p, HnModel *m);

/* Tensors of which apply wants spans for these forms; HnValue *, in order. */
GPtrArray *hn_quant_wanted(const HnQuantPlan *p, HnModel *m);

G_END_DECLS
