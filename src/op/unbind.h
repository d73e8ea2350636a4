/*
 * HnUnbind: writing a bound node in the form of another opset.
 *
 * A record says most of it as data (HnLack, HnForm). What is left does its function `unbind`: it edits the node in
 * place, or builds others that compute the same and lets them take over the outputs, or refuses. What it builds is
 * written in the newest form (opset HN_OPSET_MAX) and is converted in turn: a decomposition is written once, for every
 * target.
 *
 * After a refusal the graph is only good to be freed: what was built before it stays.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

#define HN_OPSET_MIN 7                    /* oldest that is converted from and to; HN_OPSET_MAX is the newest */
#define HN_UNBIND_FILL ((int64_t)1 << 24) /* elements of a constant that is made */

typedef struct HnUnbind {
    HnNode *node; /* bound; edits of its attributes unbind it, params stay */
    const HnOp *op;
    const void *params;
    int64_t from, to;
    HnTypes *types;
    GPtrArray *made; /* HnNode *: built so far, in order */
    GError *error;   /* the refusal */
} HnUnbind;

/* Converts n to opset `to` of the default domain, with what it is decomposed into. `types` holds what is known of its
 * inputs and outputs. n may be freed. Sub-graphs stay as they are. Errors: UNSUPPORTED, one sentence without the node's
 * name; the graph is then no longer of use. */
gboolean hn_node_convert(HnNode *n, int64_t to, HnTypes *types, GError **error);
/* n, of the newest opset, is taken apart into the nodes that its record writes for opsets without the operator: they
 * stand in its place, in newest form, bound, with types; n is freed. Errors: UNSUPPORTED, as above. */
gboolean hn_node_take_apart(HnNode *n, HnTypes *types, GError **error);
/* A node of the default domain whose operator has no record: does it mean the same in opset `to`? */
gboolean hn_unbind_unknown(const HnNode *n, int64_t to, const HnTypes *types);
/* Element types that inputs and outputs under `letter` can have in an opset. */
HnTypeMask hn_op_types(const HnOp *op, char letter, int64_t version);

/* --- what is known of the node ------------------------------------------------------------------------------------ */

/* TRUE: the change that came with opset `version` lies between the two forms, and the target is the older. */
static inline gboolean hn_unbind_below(const HnUnbind *u, int64_t version)
{
    return u->to < version && u->from >= version;
}
static inline gboolean hn_unbind_above(const HnUnbind *u, int64_t version)
{
    return u->to >= version && u->from < version;
}
static inline HnValue *hn_unbind_in(const HnUnbind *u, int i)
{
    return hn_node_in(u->node, i);
}
HnDtype hn_unbind_dtype(const HnUnbind *u, int i); /* HN_UNDEFINED: unknown or absent */
HnDtype hn_unbind_out_dtype(const HnUnbind *u, int k);
int hn_unbind_rank(const HnUnbind *u, int i);                        /* -1: unknown or absent */
int64_t hn_unbind_dim(const HnUnbind *u, int i, int axis);           /* -1: unknown; the axis may be negative */
gboolean hn_unbind_dims(const HnUnbind *u, int i, int64_t *dims);    /* all are known (HN_MAX_RANK places) */
HnTensor *hn_unbind_value(const HnUnbind *u, int i);                 /* elements where they are known; borrowed */
gboolean hn_unbind_number(const HnUnbind *u, int i, double *number); /* one element, known */
/* Integer elements of input i where they are known: how many; -1 where not, or more than HN_MAX_RANK. */
int hn_unbind_ints(const HnUnbind *u, int i, int64_t *v);
gboolean hn_unbind_wants(const HnUnbind *u, int k); /* output k is used */

/* --- editing --------------------------------------------------------------------------------------------------------
 */

/* Failure, once: "the axes are computed when it runs". The first counts. */
void hn_unbind_refuse(HnUnbind *u, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Outputs from k on, which nobody uses, are not made any more. */
void hn_unbind_give_up(HnUnbind *u, int k);
/* Input i is absent; constants that nothing else uses go. */
void hn_unbind_drop(HnUnbind *u, int i);
/* An axis attribute that is counted from the back becomes one from the front. */
void hn_unbind_axis(HnUnbind *u, const char *name, int rank);

/* --- building --------------------------------------------------------------------------------------------------------
 * Everything returned is borrowed; a NULL input is an absent one. */

HnNode *hn_unbind_node(HnUnbind *u, const char *op, int n_in, HnValue *const *in, int n_out);
/* The node once more, in its own version, with outputs of its own: for what has to stand behind it. */
HnNode *hn_unbind_again(HnUnbind *u);
/* A node that was built moves behind those that were built since. */
void hn_unbind_last(HnUnbind *u, HnNode *n);
/* One output, up to three inputs. */
HnValue *hn_unbind_op1(HnUnbind *u, const char *op, HnValue *a);
HnValue *hn_unbind_op2(HnUnbind *u, const char *op, HnValue *a, HnValue *b);
HnValue *hn_unbind_op3(HnUnbind *u, const char *op, HnValue *a, HnValue *b, HnValue *c);
HnValue *hn_unbind_cast(HnUnbind *u, HnValue *v, HnDtype to);
HnValue *hn_unbind_shape(HnUnbind *u, HnValue *v, int64_t start, int64_t end); /* sizes [start,end) of v */
HnValue *hn_unbind_size(HnUnbind *u, HnValue *v, int64_t axis);                /* that of one axis, i64[1] */
HnValue *hn_unbind_reshape(HnUnbind *u, HnValue *v, const int64_t *dims, int n);
HnValue *hn_unbind_transpose(HnUnbind *u, HnValue *v, const int64_t *perm, int n);
HnValue *hn_unbind_concat(HnUnbind *u, int n, HnValue *const *parts, int64_t axis);
HnValue *hn_unbind_slice(HnUnbind *u, HnValue *v, int64_t axis, int64_t start, int64_t end);
HnValue *hn_unbind_reduce(HnUnbind *u, const char *op, HnValue *v, const int64_t *axes, int n, gboolean keep);
HnValue *hn_unbind_const(HnUnbind *u, HnTensor *t);            /* takes t */
HnValue *hn_unbind_list(HnUnbind *u, const int64_t *v, int n); /* i64[n] */
HnValue *hn_unbind_int(HnUnbind *u, int64_t v);                /* i64[1] */
HnValue *hn_unbind_scalar(HnUnbind *u, HnDtype dtype, double v);
/* All elements v; refuses more than HN_UNBIND_FILL of them (and gives a scalar, so that the caller may go on). */
HnValue *hn_unbind_fill(HnUnbind *u, HnDtype dtype, int ndim, const int64_t *dims, double v);
/* Output k becomes a constant where its elements are known. */
gboolean hn_unbind_settle(HnUnbind *u, int k);
/* Input i in a type that decompositions compute with: f32 for halves, else its own. NULL: refused, the type is not
 * known. */
HnValue *hn_unbind_real(HnUnbind *u, int i, HnDtype *dtype);
/* hn_unbind_take() of a value that was computed in that type. */
void hn_unbind_take_real(HnUnbind *u, int k, HnValue *v);
/* v, made by a node that was built or not, takes the place of output k: its name and all uses. */
void hn_unbind_take(HnUnbind *u, int k, HnValue *v);

G_END_DECLS
