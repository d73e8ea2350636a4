/*
 * Convolutions and products with what follows them, normalizations, embeddings.
 */
#include "op/contrib_forms.h"

#include <string.h>

/* --- functions behind a layer --------------------------------------------------------------------------------------
 */

typedef struct {
    const char *name;
    const char *attr[2]; /* that parameters 0 and 1 are; NULL: none */
} Activation;

static const Activation activations[] = {
    { "Relu", { NULL } },
    { "Sigmoid", { NULL } },
    { "Tanh", { NULL } },
    { "Softplus", { NULL } },
    { "Softsign", { NULL } },
    { "HardSwish", { NULL } },
    { "Elu", { "alpha" } },
    { "LeakyRelu", { "alpha" } },
    { "ThresholdedRelu", { "alpha" } },
    { "HardSigmoid", { "alpha", "beta" } },
    { "Selu", { "alpha", "gamma" } },
};

/* The function of that name of v, with n parameters. */
static HnValue *activate(HnUnbind *u, HnValue *v, const char *name, int64_t n, const float *params)
{
    if (*name == '\0')
        return v;
    if (strcmp(name, "Clip") == 0 && n == 2 && hn_dtype_in(hn_unbind_dtype(u, 0), HN_T_FLOATS)) {
        const HnDtype dtype = hn_unbind_dtype(u, 0);
        return hn_unbind_op3(u, "Clip", v, hn_unbind_scalar(u, dtype, (double)params[0]),
                             hn_unbind_scalar(u, dtype, (double)params[1]));
    }
    for (guint i = 0; i < G_N_ELEMENTS(activations); i++) {
        const Activation *a = &activations[i];
        if (strcmp(a->name, name) != 0)
            continue;
        HnValue *y = hn_unbind_op1(u, name, v);
        for (int k = 0; k < 2 && k < n && a->attr[k] != NULL; k++)
            hn_node_set_float(y->producer, a->attr[k], params[k]);
        return y;
    }
    hn_unbind_refuse(u, "the function '%s' behind it is not supported", name);
    return v;
}

/* FusedConv(x, w, bias, sum), NhwcConv, NhwcFusedConv */
static void conv(HnUnbind *u, const HnContrib *c)
{
    HnBind b = { .node = u->node };
    int64_t n = 0;
    const char *name = hn_form_word(u, "activation", "");
    const float *list = hn_bind_floats(&b, "activation_params", &n);
    float params[2] = { 0, 0 };
    if (n > 2 || b.error != NULL)
        hn_unbind_refuse(u, "attribute 'activation_params' is no list of at most two numbers");
    for (int64_t i = 0; i < n && i < 2 && list != NULL; i++)
        params[i] = list[i];
    g_clear_error(&b.error);
    HnValue *x = c->last ? hn_form_channels_first(u, hn_unbind_in(u, 0)) : hn_unbind_in(u, 0), *z = hn_unbind_in(u, 3);
    HnNode *node = hn_unbind_node(u, "Conv", 3, (HnValue *[]){ x, hn_unbind_in(u, 1), hn_unbind_in(u, 2) }, 1);
    hn_node_take_attrs(node, u->node);
    hn_node_remove_attr(node, "activation");
    hn_node_remove_attr(node, "activation_params");
    HnValue *y = hn_form_add(u, hn_node_out(node, 0), z != NULL && c->last ? hn_form_channels_first(u, z) : z);
    y = activate(u, y, name, n, params);
    hn_unbind_take(u, 0, c->last ? hn_form_channels_last(u, y) : y);
}

static void pool(HnUnbind *u, const HnContrib *c)
{
    HnValue *x = hn_form_channels_first(u, hn_unbind_in(u, 0));
    HnNode *node = hn_unbind_node(u, c->core, 1, &x, 1);
    hn_node_take_attrs(node, u->node);
    hn_unbind_take(u, 0, hn_form_channels_last(u, hn_node_out(node, 0)));
}

/* FusedGemm(a, b, c) */
static void gemm(HnUnbind *u, const HnContrib *c)
{
    static const char *const names[] = { "activation", "activation_alpha", "activation_beta", "activation_gamma" };
    (void)c;
    const char *name = hn_form_word(u, "activation", "");
    float params[2] = { 0, 0 };
    int64_t n = 0; /* those that are said, in order */
    for (int i = 1; i < 4; i++)
        if (hn_node_attr(u->node, names[i]) != NULL && n < 2)
            params[n++] = (float)hn_form_float(u, names[i], 0);
    HnNode *node =
        hn_unbind_node(u, "Gemm", 3, (HnValue *[]){ hn_unbind_in(u, 0), hn_unbind_in(u, 1), hn_unbind_in(u, 2) }, 1);
    hn_node_take_attrs(node, u->node);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        hn_node_remove_attr(node, names[i]);
    hn_unbind_take(u, 0, activate(u, hn_node_out(node, 0), name, n, params));
}

/* Operand i with its last two axes exchanged, and with axis 0 in the place of rows, those behind it being batches. */
static HnValue *operand(HnUnbind *u, int i, const char *turned, const char *batch)
{
    const gboolean turn = hn_form_int(u, turned, 0) != 0, by_batch = hn_form_int(u, batch, 0) != 0;
    const int rank = hn_unbind_rank(u, i);
    int64_t perm[HN_MAX_RANK];
    if ((!turn && !by_batch) || rank == 1)
        return hn_unbind_in(u, i);
    if (rank < 2) {
        hn_unbind_refuse(u, "input %d is turned, and its number of axes is not known", i);
        return hn_unbind_in(u, i);
    }
    for (int k = 0; k < rank - 2; k++)
        perm[k] = k + by_batch;
    perm[rank - 2] = by_batch ? 0 : rank - 2;
    perm[rank - 1] = rank - 1;
    if (turn) {
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = rank - 1;
    }
    return hn_unbind_transpose(u, hn_unbind_in(u, i), perm, rank);
}

static void matmul(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const double alpha = hn_form_float(u, "alpha", 1);
    const HnDtype dtype = hn_unbind_dtype(u, 0);
    HnValue *a = operand(u, 0, "transA", "transBatchA"), *b = operand(u, 1, "transB", "transBatchB");
    HnValue *y = hn_unbind_op2(u, "MatMul", a, b);
    if (alpha != 1 && dtype == HN_UNDEFINED)
        hn_unbind_refuse(u, "the type of input 0 is not known");
    else if (alpha != 1)
        y = hn_unbind_op2(u, "Mul", y, hn_unbind_scalar(u, dtype, alpha));
    hn_unbind_take(u, 0, y);
}

/* --- normalizations ------------------------------------------------------------------------------------------------
 */

static HnValue *rms_norm(HnUnbind *u, HnValue *x, HnValue *scale, double epsilon, int64_t axis)
{
    HnValue *y = hn_unbind_op2(u, "RMSNormalization", x, scale);
    hn_node_set_float(y->producer, "epsilon", (float)epsilon);
    hn_node_set_int(y->producer, "axis", axis);
    return y;
}

static void simplified_norm(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const double epsilon = hn_form_float(u, "epsilon", 1e-5);
    hn_unbind_take(u, 0, rms_norm(u, hn_unbind_in(u, 0), hn_unbind_in(u, 1), epsilon, hn_form_int(u, "axis", -1)));
}

/* (input, skip, scale, bias of the result, bias of the sum), or without a bias of the result */
static void skip_norm(HnUnbind *u, const HnContrib *c)
{
    const gboolean centred = c->operands == 5;
    const double epsilon = hn_form_float(u, "epsilon", 1e-12);
    HnValue *sum = hn_unbind_op2(u, "Add", hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    sum = hn_form_add(u, sum, hn_unbind_in(u, centred ? 4 : 3));
    HnValue *y = centred ? hn_form_layer_norm(u, sum, hn_unbind_in(u, 2), hn_unbind_in(u, 3), epsilon)
                         : rms_norm(u, sum, hn_unbind_in(u, 2), epsilon, -1);
    hn_unbind_take(u, 0, y);
    hn_unbind_take(u, 3, sum);
}

/* GroupNorm(x, scale, bias), SkipGroupNorm(x, scale, bias, skip, bias of the sum): channels last unless said. */
static void group_norm(HnUnbind *u, const HnContrib *c)
{
    const gboolean last = hn_form_int(u, "channels_last", 1) != 0;
    const int64_t groups = hn_form_int(u, "groups", 0), activation = hn_form_int(u, "activation", 0);
    const double epsilon = hn_form_float(u, "epsilon", 1e-5);
    const HnDtype dtype = hn_unbind_dtype(u, 0);
    HnValue *sum = hn_unbind_in(u, 0), *scale = hn_unbind_in(u, 1), *bias = hn_unbind_in(u, 2);
    if (activation != 0 && activation != 1)
        hn_unbind_refuse(u, "attribute 'activation' is %" PRId64 ", not 0 or 1", activation);
    else if (groups <= 0)
        hn_unbind_refuse(u, "attribute 'groups' is %" PRId64, groups);
    else if (dtype == HN_UNDEFINED)
        hn_unbind_refuse(u, "the type of input 0 is not known");
    else if (c->operands == 2 && !last)
        hn_unbind_refuse(u, "channels in axis 1 are not supported");
    else if (c->operands == 2 && hn_unbind_rank(u, 3) != 4 && hn_unbind_rank(u, 3) != 2)
        hn_unbind_refuse(u, "the number of axes of input 3 is not known to be 2 or 4");
    if (u->error != NULL)
        return;
    if (c->operands == 2) {
        HnValue *skip = hn_unbind_in(u, 3);
        if (hn_unbind_rank(u, 3) == 2)
            skip = hn_unbind_op2(u, "Unsqueeze", skip, hn_unbind_list(u, (int64_t[]){ 1, 2 }, 2));
        sum = hn_form_add(u, hn_unbind_op2(u, "Add", sum, skip), hn_unbind_in(u, 4));
    }
    scale = hn_unbind_dtype(u, 1) == dtype ? scale : hn_unbind_cast(u, scale, dtype);
    bias = hn_unbind_dtype(u, 2) == dtype ? bias : hn_unbind_cast(u, bias, dtype);
    HnValue *x = last ? hn_form_channels_first(u, sum) : sum;
    HnValue *y = hn_form_node(u, "GroupNormalization", 3, (HnValue *[]){ x, scale, bias });
    hn_node_set_float(y->producer, "epsilon", (float)epsilon);
    hn_node_set_int(y->producer, "num_groups", groups);
    if (activation != 0)
        y = hn_unbind_op1(u, "Swish", y);
    hn_unbind_take(u, 0, last ? hn_form_channels_last(u, y) : y);
    if (c->operands == 2)
        hn_unbind_take(u, 1, sum);
}

enum { IDS, SEGMENTS, WORD_TABLE, PLACE_TABLE, SEGMENT_TABLE, SCALE, BIAS, MASK, PLACES };
/* QEmbedLayerNormalization: steps and zero points of WORD_TABLE to BIAS, of each one for all. */
enum { FIRST_STEP = 8, FIRST_ZERO = 13 };

/* How many are 1 in each row of the mask; 0 without one. */
static HnValue *mask_counts(HnUnbind *u)
{
    HnValue *mask = hn_unbind_in(u, MASK);
    if (mask == NULL)
        return hn_unbind_op2(u, "Expand", hn_unbind_scalar(u, HN_I32, 0),
                             hn_unbind_shape(u, hn_unbind_in(u, IDS), 0, 1));
    const HnDtype dtype = hn_unbind_dtype(u, MASK) != HN_UNDEFINED ? hn_unbind_dtype(u, MASK) : HN_I32;
    mask = hn_unbind_cast(u, hn_unbind_op2(u, "Equal", mask, hn_unbind_scalar(u, dtype, 1)), HN_I32);
    return hn_unbind_reduce(u, "ReduceSum", mask, (int64_t[]){ 1 }, 1, FALSE);
}

/* Rows of a table, or a vector, as numbers: v is of input i. */
static HnValue *embed_numbers(HnUnbind *u, const HnContrib *c, HnValue *v, int i)
{
    if (c->operands == 0 || v == NULL)
        return v;
    HnValue *const step = hn_unbind_in(u, FIRST_STEP + i - WORD_TABLE);
    HnValue *const zero = hn_unbind_in(u, FIRST_ZERO + i - WORD_TABLE);
    if (step == NULL || zero == NULL) {
        hn_unbind_refuse(u, "the step or the zero point of input %d is missing", i);
        return v;
    }
    HnValue *in[] = { v, hn_form_number(u, step), hn_form_number(u, zero) };
    return hn_form_node(u, "DequantizeLinear", 3, in);
}

static HnValue *embed_rows(HnUnbind *u, const HnContrib *c, int table, int ids)
{
    return embed_numbers(u, c, hn_unbind_op2(u, "Gather", hn_unbind_in(u, table), hn_unbind_in(u, ids)), table);
}

/* EmbedLayerNormalization, and QEmbedLayerNormalization (operands: quantized) without PLACES and without the sum. */
static void embed_norm(HnUnbind *u, const HnContrib *c)
{
    const double epsilon = hn_form_float(u, "epsilon", 1e-12);
    HnValue *sum = embed_rows(u, c, WORD_TABLE, IDS), *places;
    if (c->operands == 0 && hn_unbind_in(u, PLACES) != NULL)
        places = embed_rows(u, c, PLACE_TABLE, PLACES);
    else
        places = embed_numbers(
            u, c,
            hn_form_node(u, "Slice", 4,
                         (HnValue *[]){ hn_unbind_in(u, PLACE_TABLE), hn_unbind_int(u, 0),
                                        hn_unbind_shape(u, hn_unbind_in(u, IDS), 1, 2), hn_unbind_int(u, 0) }),
            PLACE_TABLE);
    sum = hn_unbind_op2(u, "Add", sum, places);
    if (hn_unbind_in(u, SEGMENTS) != NULL && hn_unbind_in(u, SEGMENT_TABLE) != NULL)
        sum = hn_unbind_op2(u, "Add", sum, embed_rows(u, c, SEGMENT_TABLE, SEGMENTS));
    HnValue *y = hn_form_layer_norm(u, sum, embed_numbers(u, c, hn_unbind_in(u, SCALE), SCALE),
                                    embed_numbers(u, c, hn_unbind_in(u, BIAS), BIAS), epsilon);
    if (hn_unbind_wants(u, 1))
        hn_unbind_take(u, 1, mask_counts(u));
    hn_unbind_take(u, 0, y);
    hn_unbind_take(u, 2, sum);
}

const HnContrib hn_contrib_layers[] = {
    { .name = "FusedConv", .spell = conv },
    { .name = "NhwcConv", .spell = conv, .last = TRUE },
    { .name = "NhwcFusedConv", .spell = conv, .last = TRUE },
    { .name = "NhwcMaxPool", .spell = pool, .core = "MaxPool", .last = TRUE },
    { .name = "FusedGemm", .spell = gemm },
    { .name = "FusedMatMul", .spell = matmul },
    { .name = "TransposeMatMul", .spell = matmul },
    { .name = "SkipLayerNormalization", .spell = skip_norm, .operands = 5 },
    { .name = "SkipSimplifiedLayerNormalization", .spell = skip_norm, .operands = 4 },
    { .name = "SimplifiedLayerNormalization", .spell = simplified_norm },
    { .name = "SimplifiedLayerNormalization", .spell = simplified_norm, .below = 255 },
    { .name = "EmbedLayerNormalization", .spell = embed_norm },
    { .name = "QEmbedLayerNormalization", .spell = embed_norm, .operands = 5 },
    { .name = "GroupNorm", .spell = group_norm },
    { .name = "SkipGroupNorm", .spell = group_norm, .operands = 2 },
    { .name = NULL },
};
