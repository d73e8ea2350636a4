/*
 * Element-wise operators, and those that are named differently in the default domain.
 */
#include "op/contrib_forms.h"

#include <math.h>
#include <string.h>

/* The core operator with the same inputs, outputs and attributes. */
static void same(HnUnbind *u, const HnContrib *c)
{
    const int n_out = (int)u->node->out->len;
    HnValue *in[16] = { NULL }, *out[8];
    const int n_in = (int)u->node->in->len;
    if (n_in > (int)G_N_ELEMENTS(in) || n_out > (int)G_N_ELEMENTS(out)) {
        hn_unbind_refuse(u, "has too many inputs or outputs");
        return;
    }
    for (int i = 0; i < n_in; i++)
        in[i] = hn_unbind_in(u, i);
    HnNode *n = hn_unbind_node(u, c->core != NULL ? c->core : c->name, n_in, in, n_out);
    hn_node_take_attrs(n, u->node);
    for (int k = 0; k < n_out; k++)
        out[k] = hn_node_out(n, k);
    for (int k = 0; k < n_out; k++)
        if (hn_node_out(u->node, k) != NULL)
            hn_unbind_take(u, k, out[k]);
        else if (k > 0)
            hn_node_set_out(n, k, NULL);
}

/* Gelu(x), FastGelu(x, bias), BiasGelu(x, bias) */
static void gelu(HnUnbind *u, const HnContrib *c)
{
    HnValue *x = hn_form_add(u, hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    HnValue *y = hn_form_node(u, "Gelu", 1, &x);
    if (c->operands == 2) /* by tanh */
        hn_node_set_string(y->producer, "approximate", "tanh");
    hn_unbind_take(u, 0, y);
}

/* GemmFastGelu(x, w, bias) */
static void product_gelu(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *x = hn_unbind_op2(u, "MatMul", hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    HnValue *y = hn_unbind_op1(u, "Gelu", hn_form_add(u, x, hn_unbind_in(u, 2)));
    hn_node_set_string(y->producer, "approximate", "tanh");
    hn_unbind_take(u, 0, y);
}

/* BiasSplitGelu(x, bias): the first half of channels times Gelu of the second. */
static void split_gelu(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *half[2];
    hn_form_split(u, hn_form_add(u, hn_unbind_in(u, 0), hn_unbind_in(u, 1)), NULL, 2, half);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Mul", half[0], hn_unbind_op1(u, "Gelu", half[1])));
}

/* BiasSoftmax(x, bias): of all axes from `axis` on at once. */
static void bias_softmax(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t axis = hn_form_int(u, "axis", 1);
    HnValue *x = hn_form_add(u, hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    HnValue *y = hn_form_axis(u, "Softmax", hn_form_axis(u, "Flatten", x, axis), -1);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Reshape", y, hn_unbind_shape(u, x, 0, INT64_MAX)));
}

/* Windows of `size` along an axis, `step` apart; what is within one is a new axis at the end. */
static void unfold(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t size = hn_form_int(u, "size", 0), step = hn_form_int(u, "step", 1);
    const int rank = hn_unbind_rank(u, 0);
    int64_t axis = hn_form_int(u, "dim", -1), perm[HN_MAX_RANK];
    axis += axis < 0 ? rank : 0;
    if (rank < 1 || rank >= HN_MAX_RANK || axis < 0 || axis >= rank)
        hn_unbind_refuse(u, "attribute 'dim' is no axis of a tensor whose number of axes is known");
    else if (size <= 0 || size > INT32_MAX || step <= 0 || step > INT32_MAX)
        hn_unbind_refuse(u, "attributes 'size' and 'step' are no lengths");
    if (u->error != NULL)
        return;
    HnValue *x = hn_unbind_in(u, 0), *n = hn_unbind_op1(u, "Squeeze", hn_unbind_size(u, x, axis));
    HnValue *end = hn_unbind_op2(u, "Sub", n, hn_unbind_scalar(u, HN_I64, (double)(size - 1)));
    HnValue *zero = hn_unbind_scalar(u, HN_I64, 0);
    HnValue *from = hn_unbind_op3(u, "Range", zero, end, hn_unbind_scalar(u, HN_I64, (double)step));
    HnValue *at = hn_unbind_op2(u, "Add", hn_form_unsqueeze(u, from, 1), hn_form_count(u, hn_unbind_int(u, size)));
    HnValue *y = hn_unbind_op2(u, "Gather", x, at);
    hn_node_set_int(y->producer, "axis", axis);
    for (int i = 0; i < rank; i++)
        perm[i] = i <= axis ? i : i + 1;
    perm[rank] = axis + 1;
    hn_unbind_take(u, 0, hn_unbind_transpose(u, y, perm, rank + 1));
}

static void quick_gelu(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const double alpha = hn_form_float(u, "alpha", 1.702);
    HnValue *y = hn_form_node(u, "Swish", 1, (HnValue *[]){ hn_unbind_in(u, 0) });
    hn_node_set_float(y->producer, "alpha", (float)alpha);
    hn_unbind_take(u, 0, y);
}

/* BiasAdd(x, bias, skip) */
static void sum(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *y = hn_form_add(u, hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    hn_unbind_take(u, 0, hn_form_add(u, y, hn_unbind_in(u, 2)));
}

static void expand_dims(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *axis = hn_unbind_cast(u, hn_unbind_reshape(u, hn_unbind_in(u, 1), (int64_t[]){ 1 }, 1), HN_I64);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Unsqueeze", hn_unbind_in(u, 0), axis));
}

static void gather_nd(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *at = hn_unbind_op1(u, "Cast", hn_unbind_in(u, 1));
    hn_node_set_int(at->producer, "to", HN_I64);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "GatherND", hn_unbind_in(u, 0), at));
}

/* pads may be a row of a matrix, and the value a list of one. */
static void pad(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const char *mode = hn_form_word(u, "mode", "constant");
    HnValue *pads = hn_unbind_reshape(u, hn_unbind_in(u, 1), (int64_t[]){ -1 }, 1), *value = hn_unbind_in(u, 2);
    HnValue *y = hn_unbind_op3(u, "Pad", hn_unbind_in(u, 0), pads, value != NULL ? hn_form_number(u, value) : NULL);
    hn_node_set_string(y->producer, "mode", mode);
    hn_unbind_take(u, 0, y);
}

static void range(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *step = hn_unbind_in(u, 2);
    if (step == NULL && hn_unbind_dtype(u, 0) == HN_UNDEFINED)
        hn_unbind_refuse(u, "the type of input 0 is not known");
    else if (step == NULL)
        step = hn_unbind_scalar(u, hn_unbind_dtype(u, 0), 1);
    else
        step = hn_form_number(u, step);
    if (u->error == NULL)
        hn_unbind_take(u, 0,
                       hn_unbind_op3(u, "Range", hn_form_number(u, hn_unbind_in(u, 0)),
                                     hn_form_number(u, hn_unbind_in(u, 1)), step));
}

/* In the order of their first places; the core operator has those places as output 1. */
static void unique(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnNode *n = hn_unbind_node(u, "Unique", 1, (HnValue *[]){ hn_unbind_in(u, 0) }, 4);
    HnValue *out[] = { hn_node_out(n, 0), hn_node_out(n, 2), hn_node_out(n, 3) };
    hn_node_set_int(n, "sorted", 0);
    for (int k = 0; k < 3; k++)
        hn_unbind_take(u, k, out[k]);
}

static void grid_sample(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const char *mode = hn_form_word(u, "mode", "bilinear");
    const char *padding = hn_form_word(u, "padding_mode", "zeros");
    const int64_t align = hn_form_int(u, "align_corners", 0);
    HnValue *y = hn_unbind_op2(u, "GridSample", hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    hn_node_set_string(y->producer, "mode",
                       strcmp(mode, "bilinear") == 0  ? "linear"
                       : strcmp(mode, "bicubic") == 0 ? "cubic"
                                                      : mode);
    hn_node_set_string(y->producer, "padding_mode", padding);
    hn_node_set_int(y->producer, "align_corners", align);
    hn_unbind_take(u, 0, y);
}

/* Distances of all rows of a to all rows of b. */
static void cdist(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const char *metric = hn_form_word(u, "metric", "sqeuclidean");
    HnValue *a = hn_form_unsqueeze(u, hn_unbind_in(u, 0), 1), *b = hn_form_unsqueeze(u, hn_unbind_in(u, 1), 0);
    HnValue *d = hn_unbind_op2(u, "Sub", a, b);
    HnValue *y = hn_unbind_reduce(u, "ReduceSumSquare", d, (int64_t[]){ 2 }, 1, FALSE);
    if (strcmp(metric, "euclidean") == 0)
        y = hn_unbind_op1(u, "Sqrt", y);
    else if (strcmp(metric, "sqeuclidean") != 0)
        hn_unbind_refuse(u, "metric '%s' is not supported", metric);
    hn_unbind_take(u, 0, y);
}

const HnContrib hn_contrib_simple[] = {
    { .name = "Gelu", .spell = gelu, .operands = 1 },
    { .name = "BiasGelu", .spell = gelu, .operands = 1 },
    { .name = "FastGelu", .spell = gelu, .operands = 2 },
    { .name = "QuickGelu", .spell = quick_gelu },
    { .name = "GemmFastGelu", .spell = product_gelu },
    { .name = "BiasSplitGelu", .spell = split_gelu },
    { .name = "BiasSoftmax", .spell = bias_softmax },
    { .name = "UnfoldTensor", .spell = unfold },
    { .name = "BiasAdd", .spell = sum },
    { .name = "Trilu", .spell = same },
    { .name = "ExpandDims", .spell = expand_dims },
    { .name = "GatherND", .spell = gather_nd },
    { .name = "Pad", .spell = pad },
    { .name = "Range", .spell = range },
    { .name = "Unique", .spell = unique },
    { .name = "GridSample", .spell = grid_sample },
    { .name = "CDist", .spell = cdist },
    /* the contrib operator of all opsets, whose attributes are those of 17 */
    { .name = "LayerNormalization", .spell = same, .below = 17 },
    { .name = NULL },
};
