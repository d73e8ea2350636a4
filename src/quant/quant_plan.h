/*
 * HnQuantPlan: which nodes of a model compute with integers, and what the integers of each tensor stand for.
 *
 * Nodes and tensors are named, a node by its first output that is there, so that a plan made on one copy of a model
 * serves for another and can be written down; hn_quant_prepare() sees to it that each of them has a name of its own.
 * A number is scale * (q - zero).
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef enum {
    HN_FORM_F32,     /* as it is */
    HN_FORM_INT8,    /* activations and weights */
    HN_FORM_W8,      /* weights only, 8 bits, an own scale for each output channel, or row of a table */
    HN_FORM_W4,      /* weights only, 4 bits, an own scale for each block of `block` */
    HN_FORM_DYNAMIC, /* both, activations in the range that they turn out to have */
} HnQuantForm;

const char *hn_quant_form_name(HnQuantForm form); /* "f32", "int8", "w8", "w4", "dynamic" */
gboolean hn_quant_form_parse(const char *name, HnQuantForm *form);

/* The numbers that a tensor holds; of activations. */
typedef struct {
    double lo, hi;
} HnQuantSpan;

/* What a plan is carried out on: parts of it tell whose fault an error is. */
typedef enum { HN_PART_ALL, HN_PART_WEIGHTS, HN_PART_ACTIVATIONS } HnQuantPart;

typedef struct {
    HnDtype activations;      /* HN_U8 or HN_I8 */
    gboolean symmetric;       /* of activations: the zero point is the middle of their type */
    gboolean per_tensor;      /* one scale for a whole weight */
    gboolean reduced;         /* 7-bit weights in channels where pairs of products could saturate 16 bits */
    gboolean reduced_all;     /* in all channels */
    int block;                /* of HN_FORM_W4: 32, 64, 128 along the axis that is summed over */
    gboolean symmetric_block; /* s4 with the zero point 0 instead of u4 */
    gboolean integers;        /* operators on integers, not on floats between QuantizeLinear and DequantizeLinear */
    HnQuantPart part;
} HnQuantOptions;

typedef struct {
    HnQuantOptions o;
    GHashTable *forms; /* char * -> GINT_TO_POINTER(HnQuantForm); absent: HN_FORM_F32 */
    GHashTable *spans; /* char * -> HnQuantSpan * */
    /* what repairs found (quant/repair.h), good for the weights that it was found for: */
    GHashTable *integers; /* char *, form and weight -> HnRounded * (quant/rounding.h) */
    GHashTable *shifts;   /* char * node -> HnTensor *, f32 [channels], of its bias */
} HnQuantPlan;

HnQuantPlan *hn_quant_plan_new(const HnQuantOptions *o);
void hn_quant_plan_free(HnQuantPlan *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnQuantPlan, hn_quant_plan_free)
HnQuantPlan *hn_quant_plan_copy(const HnQuantPlan *p);

/* What a node is called in a plan: as the first of its outputs that it has. */
const char *hn_quant_name(const HnNode *n);
HnQuantForm hn_quant_plan_form(const HnQuantPlan *p, const HnNode *n);
void hn_quant_plan_set_form(HnQuantPlan *p, const char *node, HnQuantForm form);
const HnQuantSpan *hn_quant_plan_span(const HnQuantPlan *p, const HnValue *v); /* NULL: not known */
void hn_quant_plan_set_span(HnQuantPlan *p, const char *value, double lo, double hi);

/* Nodes with weights that may take a form, in order; HnNode *: input 1 of a product is constant and f32, input 0 is
 * f32; or the table of a Gather of rows is a constant of some size, or the weights of LSTM, GRU, RNN are constant. */
GPtrArray *hn_quant_candidates(HnModel *m);
/* The next f32 weight that integers would take the place of: of a product also one that a Transpose turns round (tied
 * weights of a table and a product are kept so). NULL: none, or it has been replaced. */
HnValue *hn_quant_weight(const HnNode *n);
/* The weight reaches n through a Transpose. */
gboolean hn_quant_is_turned(const HnNode *n);
/* The axis of a weight of this rank that has a scale for each index, as it is stored; -1: there is none. */
int hn_quant_scale_axis(const HnNode *n, int rank);
/* Elements that share a scale where so many lie along the axis that is summed over: all blocks are of one size
 * (OpenVINO reads no other files), at most `most`. 0: no size of 16 or more will do. */
int hn_quant_block(int64_t size, int most);
/* The form that comes nearest to the wanted one: of tables, LSTM, GRU and RNN only weights become integers; 4 bits need
 * blocks of one size (hn_quant_block()); DynamicQuantizeLinear serves convolutions and products with f32 inputs. F32
 * where a scale would take more than the weights give. n is a candidate. */
HnQuantForm hn_quant_form_fit(const HnNode *n, HnQuantForm wanted, const HnQuantOptions *o);

/* Marks as INT8 whatever else has integers on all sides: nodes between INT8 nodes with weights that move, compare or
 * combine numbers. Marks of other nodes without weights are taken away. */
void hn_quant_spread(HnQuantPlan *p, HnModel *m);

/* Tensors of which apply wants spans for these forms; HnValue *, in order. */
GPtrArray *hn_quant_wanted(const HnQuantPlan *p, HnModel *m);

G_END_DECLS
