/* Shared by the contrib_*.c files: how one operator of ONNX Runtime's domain is said in core operators. */
#pragma once

#include "op/contrib.h"
#include "op/unbind.h"

G_BEGIN_DECLS

typedef struct HnContrib HnContrib;

/* u->node is of that operator; u->op and u->params are not set. Outputs that are read and not taken are an error. */
typedef void (*HnSpell)(HnUnbind *u, const HnContrib *c);

struct HnContrib {
    const char *name;
    HnSpell spell;
    const char *core; /* the operator that it is a form of; NULL: several */
    int operands;     /* of quantized ones: with a scale and a zero point each */
    gboolean last;    /* channels are the last axis */
    int below;        /* it is of the default domain, below this opset; 0: of com.microsoft */
};

/* Tables, each ended by a NULL name. */
extern const HnContrib hn_contrib_simple[], hn_contrib_layers[], hn_contrib_integers[], hn_contrib_attention[];

/* Attributes; one of a wrong kind is a refusal. */
int64_t hn_form_int(HnUnbind *u, const char *name, int64_t def);
double hn_form_float(HnUnbind *u, const char *name, double def);
const char *hn_form_word(HnUnbind *u, const char *name, const char *def);
/* Refuses where the attribute is there and not 0: "attribute 'x' is not supported". */
void hn_form_only_zero(HnUnbind *u, const char *name);
/* Refuses where input i is there. */
void hn_form_absent(HnUnbind *u, int i, const char *name);

/* Nodes of one output; attributes may be set on ->producer. */
HnValue *hn_form_node(HnUnbind *u, const char *op, int n_in, HnValue *const *in);
HnValue *hn_form_axis(HnUnbind *u, const char *op, HnValue *x, int64_t axis); /* with attribute `axis` */
HnValue *hn_form_unsqueeze(HnUnbind *u, HnValue *v, int64_t axis);
HnValue *hn_form_add(HnUnbind *u, HnValue *a, HnValue *b_or_null);
HnValue *hn_form_count(HnUnbind *u, HnValue *n);  /* 0, 1, ... below n, i64[1] */
HnValue *hn_form_number(HnUnbind *u, HnValue *v); /* a tensor of one element as a scalar */
/* Parts of these sizes along the last axis; sizes NULL: n equal ones. */
void hn_form_split(HnUnbind *u, HnValue *v, const int64_t *sizes, int n, HnValue **parts);
HnValue *hn_form_layer_norm(HnUnbind *u, HnValue *x, HnValue *scale, HnValue *bias, double epsilon);
/* v with its channels moved from the back to axis 1, and back; a refusal where the rank of input 0 is not known. */
HnValue *hn_form_channels_first(HnUnbind *u, HnValue *v);
HnValue *hn_form_channels_last(HnUnbind *u, HnValue *v);
/* Integers of a product, with one scale for all or one for each column, as numbers; bias may be NULL. */
HnValue *hn_form_product(HnUnbind *u, HnValue *const in[4], HnValue *scale, HnValue *bias);

G_END_DECLS
