/*
 * Quantized operators: DequantizeLinear, the operator that each is named after, QuantizeLinear; products of integers;
 * weights of few bits.
 */
#include "op/contrib_forms.h"

#include <math.h>
#include <string.h>

#define MOST 64 /* operands of QLinearConcat */

static HnValue *numbers(HnUnbind *u, HnValue *x, HnValue *scale, HnValue *zero)
{
    return hn_form_node(u, "DequantizeLinear", 3, (HnValue *[]){ x, scale, zero });
}

/* The numbers of inputs at, at + 1, at + 2. */
static HnValue *operand(HnUnbind *u, int at)
{
    if (hn_unbind_in(u, at) == NULL || hn_unbind_in(u, at + 1) == NULL) {
        hn_unbind_refuse(u, "input %d is missing", hn_unbind_in(u, at) == NULL ? at : at + 1);
        return hn_unbind_in(u, 0);
    }
    return numbers(u, hn_unbind_in(u, at), hn_unbind_in(u, at + 1), hn_unbind_in(u, at + 2));
}

/* y, quantized with inputs at and at + 1, is output 0; without a zero point in the type of input `like`. */
static void finish(HnUnbind *u, HnValue *y, int at, int like)
{
    if (hn_unbind_in(u, at) == NULL) {
        hn_unbind_refuse(u, "input %d is missing", at);
        return;
    }
    HnValue *zero = hn_unbind_in(u, at + 1);
    y = hn_form_node(u, "QuantizeLinear", 3, (HnValue *[]){ y, hn_unbind_in(u, at), zero });
    if (zero == NULL && hn_unbind_dtype(u, like) == HN_UNDEFINED)
        hn_unbind_refuse(u, "the type of input %d is not known", like);
    else if (zero == NULL)
        hn_node_set_int(y->producer, "output_dtype", hn_unbind_dtype(u, like));
    hn_unbind_take(u, 0, y);
}

static void take_attributes(HnUnbind *u, HnNode *n)
{
    hn_node_take_attrs(n, u->node);
    hn_node_remove_attr(n, "channels_last");
}

/* c->operands of three inputs each, then those of the result. */
static void by_numbers(HnUnbind *u, const HnContrib *c)
{
    HnValue *x[3];
    const gboolean last = hn_form_int(u, "channels_last", 0) != 0;
    for (int i = 0; i < c->operands; i++)
        x[i] = operand(u, 3 * i);
    if (last)
        x[0] = hn_form_channels_first(u, x[0]);
    HnNode *n = hn_unbind_node(u, c->core, c->operands, x, 1);
    take_attributes(u, n);
    HnValue *y = hn_node_out(n, 0);
    finish(u, last ? hn_form_channels_last(u, y) : y, 3 * c->operands, 0);
}

/* Those of the result, then as many operands as there are. */
static void concat(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int inputs = (int)u->node->in->len, n = (inputs - 2) / 3;
    HnValue *x[MOST];
    if (inputs != 3 * n + 2 || n < 1 || n > MOST) {
        hn_unbind_refuse(u, "has %d inputs, which are not three for each of 1 to %d operands and two more", inputs,
                         MOST);
        return;
    }
    for (int i = 0; i < n; i++)
        x[i] = operand(u, 2 + 3 * i);
    HnNode *node = hn_unbind_node(u, "Concat", n, x, 1);
    hn_node_take_attrs(node, u->node);
    finish(u, hn_node_out(node, 0), 0, 2);
}

/* (condition, x of three, y of three, result of two) */
static void where(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    finish(u, hn_unbind_op3(u, "Where", hn_unbind_in(u, 0), operand(u, 1), operand(u, 4)), 7, 1);
}

/* Below opset 13 all axes from `axis` on are one row. */
static void softmax(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t axis = hn_form_int(u, "axis", -1), opset = hn_form_int(u, "opset", 13);
    HnValue *x = operand(u, 0);
    if (opset >= 13) {
        finish(u, hn_form_axis(u, "Softmax", x, axis), 3, 0);
        return;
    }
    HnValue *y = hn_form_axis(u, "Softmax", hn_form_axis(u, "Flatten", x, axis), -1);
    finish(u, hn_unbind_op2(u, "Reshape", y, hn_unbind_shape(u, x, 0, INT64_MAX)), 3, 0);
}

static void reduce_mean(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnBind b = { .node = u->node };
    int64_t n = 0;
    const int64_t *axes = hn_bind_ints(&b, "axes", &n), keep = hn_form_int(u, "keepdims", 1);
    g_clear_error(&b.error);
    finish(u, hn_unbind_reduce(u, "ReduceMean", operand(u, 0), axes, (int)n, keep != 0), 3, 0);
}

/* QLinearConv of channels last; the integers are only moved. */
static void conv(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *in[9];
    const gboolean last = hn_form_int(u, "channels_last", 0) != 0;
    for (int i = 0; i < 9; i++)
        in[i] = hn_unbind_in(u, i);
    if (last)
        in[0] = hn_form_channels_first(u, in[0]);
    HnNode *n = hn_unbind_node(u, "QLinearConv", 9, in, 1);
    take_attributes(u, n);
    hn_unbind_take(u, 0, last ? hn_form_channels_last(u, hn_node_out(n, 0)) : hn_node_out(n, 0));
}

/* QuantizeLinear, DequantizeLinear of this domain. */
static void linear(HnUnbind *u, const HnContrib *c)
{
    HnNode *n =
        hn_unbind_node(u, c->name, 3, (HnValue *[]){ hn_unbind_in(u, 0), hn_unbind_in(u, 1), hn_unbind_in(u, 2) }, 1);
    hn_node_take_attrs(n, u->node);
    hn_unbind_take(u, 0, hn_node_out(n, 0));
}

/* --- products of integers ------------------------------------------------------------------------------------------
 */

/* The scale of the sums, alpha * a * b. */
static HnValue *scale_of_sums(HnUnbind *u, HnValue *a, HnValue *b, double alpha)
{
    HnValue *s = hn_unbind_op2(u, "Mul", a, b);
    return alpha == 1 ? s : hn_unbind_op2(u, "Mul", s, hn_unbind_scalar(u, HN_F32, alpha));
}

/* QGemm: a, b of three inputs each, c in steps of the sums (6), and where the result is quantized 7 and 8. */
static void gemm(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const double alpha = hn_form_float(u, "alpha", 1);
    const gboolean turned = hn_form_int(u, "transB", 0) != 0;
    HnValue *x[3] = { operand(u, 0), operand(u, 3), NULL }, *bias = hn_unbind_in(u, 6);
    if (u->error != NULL)
        return;
    const gboolean each = hn_unbind_rank(u, 4) == 1 && hn_unbind_dim(u, 4, 0) != 1;
    if (hn_unbind_rank(u, 4) < 0 || (each && hn_unbind_dim(u, 4, 0) < 0)) {
        hn_unbind_refuse(u, "the shape of input 4 is not known");
        return;
    }
    if (each)
        hn_node_set_int(x[1]->producer, "axis", turned ? 0 : 1);
    if (bias != NULL) {
        HnValue *scale = scale_of_sums(u, hn_unbind_in(u, 1), hn_unbind_in(u, 4), alpha);
        x[2] = numbers(u, bias, each ? scale : hn_form_number(u, scale), NULL);
        if (each)
            hn_node_set_int(x[2]->producer, "axis", -1);
    }
    HnNode *n = hn_unbind_node(u, "Gemm", 3, x, 1);
    hn_node_take_attrs(n, u->node);
    if (hn_unbind_in(u, 7) != NULL)
        finish(u, hn_node_out(n, 0), 7, 0);
    else
        hn_unbind_take(u, 0, hn_node_out(n, 0));
}

/* DynamicQuantizeMatMul(a, b, b_scale, b_zero, bias) */
static void dynamic_matmul(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnNode *q = hn_unbind_node(u, "DynamicQuantizeLinear", 1, (HnValue *[]){ hn_unbind_in(u, 0) }, 3);
    HnValue *in[] = { hn_node_out(q, 0), hn_unbind_in(u, 1), hn_node_out(q, 2), hn_unbind_in(u, 3) };
    HnValue *scale = hn_unbind_op2(u, "Mul", hn_node_out(q, 1), hn_unbind_in(u, 2));
    hn_unbind_take(u, 0, hn_form_product(u, in, scale, hn_unbind_in(u, 4)));
}

/* MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero, bias) */
static void integer_matmul(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *in[] = { hn_unbind_in(u, 0), hn_unbind_in(u, 1), hn_unbind_in(u, 4), hn_unbind_in(u, 5) };
    HnValue *scale = hn_unbind_op2(u, "Mul", hn_unbind_in(u, 2), hn_unbind_in(u, 3));
    hn_unbind_take(u, 0, hn_form_product(u, in, scale, hn_unbind_in(u, 6)));
}

/* Weights [D,k,4*H] of a recurrent layer, with the steps of inputs at and at + 1, as numbers [D,4*H,k]. */
static HnValue *recurrent_weights(HnUnbind *u, int i, int at)
{
    const gboolean each = hn_unbind_rank(u, at) == 2;
    HnValue *in[] = { hn_unbind_in(u, i), hn_unbind_in(u, at), hn_unbind_in(u, at + 1) };
    if (hn_unbind_rank(u, at) < 1 || hn_unbind_rank(u, at + 1) != hn_unbind_rank(u, at)) {
        hn_unbind_refuse(u, "the shape of input %d is not known", at);
        return in[0];
    }
    if (each) { /* a step for each column: by the numbers themselves */
        HnValue *w = hn_unbind_cast(u, in[0], HN_F32), *zero = hn_unbind_cast(u, in[2], HN_F32);
        w = hn_unbind_op2(u, "Sub", w, hn_form_unsqueeze(u, zero, 1));
        w = hn_unbind_op2(u, "Mul", w, hn_form_unsqueeze(u, in[1], 1));
        return hn_unbind_transpose(u, w, (int64_t[]){ 0, 2, 1 }, 3);
    }
    HnValue *w = hn_form_node(u, "DequantizeLinear", 3, in);
    hn_node_set_int(w->producer, "axis", 0);
    return hn_unbind_transpose(u, w, (int64_t[]){ 0, 2, 1 }, 3);
}

/* DynamicQuantizeLSTM as LSTM of the same weights: without the roundings of its inputs and states, which no core
 * operator has. */
static void dynamic_lstm(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *in[8];
    for (int i = 0; i < 8; i++)
        in[i] = hn_unbind_in(u, i);
    in[1] = recurrent_weights(u, 1, 8);
    in[2] = recurrent_weights(u, 2, 10);
    HnNode *n = hn_unbind_node(u, "LSTM", 8, in, 3);
    hn_node_take_attrs(n, u->node);
    HnValue *out[] = { hn_node_out(n, 0), hn_node_out(n, 1), hn_node_out(n, 2) };
    for (int k = 0; k < 3; k++)
        hn_unbind_take(u, k, out[k]);
}

/* --- weights of few bits -------------------------------------------------------------------------------------------
 */

static HnDtype unsigned_of(int64_t bits)
{
    return bits == 2 ? HN_U2 : bits == 4 ? HN_U4 : bits == 8 ? HN_U8 : HN_UNDEFINED;
}

/* Numbers of `bits` from rows of packed bytes, `row` bytes each: [n, k]. NULL: refused. */
static HnTensor *unpack(HnUnbind *u, const HnTensor *t, int64_t bits, int64_t n, int64_t k, int64_t row)
{
    const int64_t dims[] = { n, k }, per = 8 / bits;
    int64_t bytes;
    if (!hn_dims_count(2, (int64_t[]){ n, row }, &bytes) || t->dtype != HN_U8 || t->n != bytes || row * per < k) {
        hn_unbind_refuse(u, "packed numbers are not as many as attributes say");
        return NULL;
    }
    HnTensor *made = hn_tensor_new(unsigned_of(bits), 2, dims, NULL, NULL);
    if (made == NULL) {
        hn_unbind_refuse(u, "there is no memory for its weights");
        return NULL;
    }
    const uint8_t *from = t->data;
    if (row * per == k) {
        memcpy(made->data, from, (size_t)bytes);
        return made;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            hn_tensor_set_i64(made, i * k + j, from[i * row + j / per] >> (j % per * bits) & ((1 << bits) - 1));
    return made;
}

/* Zero points of [n, blocks]: packed, as numbers that are integers, or all in the middle. NULL: refused. */
static HnTensor *zeros_of(HnUnbind *u, int i, int64_t bits, int64_t n, int64_t blocks)
{
    const HnTensor *given = hn_unbind_in(u, i) != NULL ? hn_unbind_value(u, i) : NULL;
    if (hn_unbind_in(u, i) != NULL && given == NULL) {
        hn_unbind_refuse(u, "zero points are computed when it runs");
        return NULL;
    }
    if (given != NULL && given->dtype == HN_U8)
        return unpack(u, given, bits, n, blocks, (blocks * bits + 7) / 8);
    HnTensor *made = hn_tensor_new(unsigned_of(bits), 2, (int64_t[]){ n, blocks }, NULL, NULL);
    if (made == NULL || (given != NULL && given->n != made->n)) {
        hn_unbind_refuse(u, "zero points are not one for each block");
        hn_tensor_unref(made);
        return NULL;
    }
    for (int64_t k = 0; k < made->n; k++) {
        const double z = given != NULL ? hn_tensor_get_f64(given, k) : 1 << (bits - 1);
        if (z != floor(z) || z < 0 || z >= 1 << bits)
            hn_unbind_refuse(u, "zero point %g is no integer of %d bits", z, (int)bits);
        hn_tensor_set_i64(made, k, u->error == NULL ? (int64_t)z : 0);
    }
    return made;
}

/* MatMulNBits(a, b, scales, zero points, -, bias): b [n, blocks, bytes of a block], rows are columns of the product. */
static void matmul_bits(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t k = hn_form_int(u, "K", 0), n = hn_form_int(u, "N", 0), bits = hn_form_int(u, "bits", 4);
    const int64_t block = hn_form_int(u, "block_size", 0);
    const HnTensor *b = hn_unbind_value(u, 1);
    hn_form_only_zero(u, "weight_prepacked");
    hn_form_absent(u, 4, "g_idx");
    if (b == NULL)
        hn_unbind_refuse(u, "its weights are computed when it runs");
    else if (unsigned_of(bits) == HN_UNDEFINED || block < 8 || block > INT32_MAX || block * bits % 8 != 0)
        hn_unbind_refuse(u, "blocks of %" PRId64 " numbers of %" PRId64 " bits are not supported", block, bits);
    else if (k <= 0 || k > INT32_MAX || n <= 0)
        hn_unbind_refuse(u, "attributes 'K' and 'N' are no sizes of a matrix");
    if (u->error != NULL)
        return;
    const int64_t blocks = k / block + (k % block != 0);
    HnTensor *w = unpack(u, b, bits, n, k, blocks * (block * bits / 8));
    HnTensor *zeros = w != NULL ? zeros_of(u, 3, bits, n, blocks) : NULL;
    if (u->error != NULL) {
        hn_tensor_unref(w);
        hn_tensor_unref(zeros);
        return;
    }
    HnValue *scale = hn_unbind_reshape(u, hn_unbind_in(u, 2), (int64_t[]){ n, blocks }, 2);
    HnValue *m = numbers(u, hn_unbind_const(u, w), scale, hn_unbind_const(u, zeros));
    hn_node_set_int(m->producer, "axis", 1);
    hn_node_set_int(m->producer, "block_size", block);
    m = hn_unbind_transpose(u, m, (int64_t[]){ 1, 0 }, 2);
    hn_unbind_take(u, 0, hn_form_add(u, hn_unbind_op2(u, "MatMul", hn_unbind_in(u, 0), m), hn_unbind_in(u, 5)));
}

/* What the 16 codes of bitsandbytes mean, of the largest of a block: floats of 4 bits, quantiles of the normal
 * distribution (Dettmers et al., "QLoRA", 2023, appendix E). */
static const float code_f4[] = {
    0.0f,  0.00520833333f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -0.00520833333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f
};
static const float code_nf4[] = { -1.0f,          -0.6961928009f, -0.5250730514f, -0.3949174881f,
                                  -0.2844413817f, -0.1847734302f, -0.0910500363f, 0.0f,
                                  0.0795802996f,  0.1609302014f,  0.2461123019f,  0.3379152417f,
                                  0.4407098293f,  0.5626170039f,  0.7229568362f,  1.0f };

/* MatMulBnb4(a, b, largest of each block): b holds numbers [N,K] in rows, the first of a byte in its upper half. */
static void matmul_codes(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t k = hn_form_int(u, "K", 0), n = hn_form_int(u, "N", 0), block = hn_form_int(u, "block_size", 0);
    const int64_t kind = hn_form_int(u, "quant_type", 0);
    const gboolean turned = hn_form_int(u, "transB", 1) != 0;
    const HnTensor *b = hn_unbind_value(u, 1), *largest = hn_unbind_value(u, 2);
    int64_t count = 0;
    if (b == NULL || largest == NULL)
        hn_unbind_refuse(u, "its weights are computed when it runs");
    else if (block < 1 || (kind != 0 && kind != 1))
        hn_unbind_refuse(u, "blocks of %" PRId64 " numbers of kind %" PRId64 " are not supported", block, kind);
    else if (k <= 0 || n <= 0 || !hn_dims_count(2, (int64_t[]){ n, k }, &count))
        hn_unbind_refuse(u, "attributes 'K' and 'N' are no sizes of a matrix");
    else if (b->dtype != HN_U8 || b->n != count / 2 + count % 2 || largest->n != count / block + (count % block != 0))
        hn_unbind_refuse(u, "packed numbers are not as many as attributes say");
    else if (!hn_dtype_in(largest->dtype, HN_T_FLOATS))
        hn_unbind_refuse(u, "input 2 is not of floats");
    if (u->error != NULL)
        return;
    HnTensor *w = hn_tensor_new(largest->dtype, 2, (int64_t[]){ n, k }, NULL, NULL);
    if (w == NULL) {
        hn_unbind_refuse(u, "there is no memory for its weights");
        return;
    }
    const uint8_t *from = b->data;
    for (int64_t i = 0; i < count; i++) {
        const int code = i % 2 == 0 ? from[i / 2] >> 4 : from[i / 2] & 15;
        hn_tensor_set_f64(w, i, (double)(kind == 0 ? code_f4 : code_nf4)[code] * hn_tensor_get_f64(largest, i / block));
    }
    HnValue *m = hn_unbind_const(u, w);
    m = turned ? hn_unbind_transpose(u, m, (int64_t[]){ 1, 0 }, 2) : m;
    hn_unbind_take(u, 0, hn_unbind_op2(u, "MatMul", hn_unbind_in(u, 0), m));
}

/* A constant table of bytes that hold several numbers each, and its zero points, become ones of numbers. */
static gboolean unpack_table(HnUnbind *u, int64_t bits, int64_t axis, HnValue **table, HnValue **zeros)
{
    const HnTensor *t = hn_unbind_value(u, 0);
    int64_t dims[HN_MAX_RANK], steps[HN_MAX_RANK];
    const gboolean flat = hn_unbind_rank(u, 0) == 2 && hn_unbind_rank(u, 2) == 2 && (axis == 1 || axis == -1);
    if (t == NULL || !flat || !hn_unbind_dims(u, 0, dims) || !hn_unbind_dims(u, 2, steps))
        hn_unbind_refuse(u, "bytes of several numbers are known for constant tables of two axes only");
    else if (unsigned_of(bits) == HN_UNDEFINED)
        hn_unbind_refuse(u, "attribute 'bits' is %" PRId64 ", not 2, 4 or 8", bits);
    if (u->error != NULL)
        return FALSE;
    HnTensor *w = unpack(u, t, bits, dims[0], dims[1] * (8 / bits), dims[1]);
    HnTensor *z = w != NULL ? zeros_of(u, 3, bits, steps[0], steps[1]) : NULL;
    if (u->error != NULL) {
        hn_tensor_unref(w);
        hn_tensor_unref(z);
        return FALSE;
    }
    *table = hn_unbind_const(u, w);
    *zeros = hn_unbind_const(u, z);
    return TRUE;
}

/* GatherBlockQuantized(table, places, scales, zero points): rows of a table of few bits. */
static void gather_bits(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t bits = hn_form_int(u, "bits", 4), block = hn_form_int(u, "block_size", 128);
    const int64_t axis = hn_form_int(u, "gather_axis", 0), by = hn_form_int(u, "quantize_axis", 1);
    HnValue *table = hn_unbind_in(u, 0), *zeros = hn_unbind_in(u, 3);
    if (hn_unbind_dtype(u, 0) == HN_U8 && !unpack_table(u, bits, by, &table, &zeros))
        return;
    HnValue *m = numbers(u, table, hn_unbind_in(u, 2), zeros);
    hn_node_set_int(m->producer, "axis", by);
    hn_node_set_int(m->producer, "block_size", block);
    HnValue *y = hn_unbind_op2(u, "Gather", m, hn_unbind_in(u, 1));
    hn_node_set_int(y->producer, "axis", axis);
    hn_unbind_take(u, 0, y);
}

const HnContrib hn_contrib_integers[] = {
    { .name = "QLinearAdd", .spell = by_numbers, .core = "Add", .operands = 2 },
    { .name = "QLinearMul", .spell = by_numbers, .core = "Mul", .operands = 2 },
    { .name = "QLinearSigmoid", .spell = by_numbers, .core = "Sigmoid", .operands = 1 },
    { .name = "QLinearLeakyRelu", .spell = by_numbers, .core = "LeakyRelu", .operands = 1 },
    { .name = "QLinearAveragePool", .spell = by_numbers, .core = "AveragePool", .operands = 1 },
    { .name = "QLinearGlobalAveragePool", .spell = by_numbers, .core = "GlobalAveragePool", .operands = 1 },
    { .name = "QLinearConcat", .spell = concat },
    { .name = "QLinearWhere", .spell = where },
    { .name = "QLinearSoftmax", .spell = softmax },
    { .name = "QLinearReduceMean", .spell = reduce_mean },
    { .name = "QLinearConv", .spell = conv },
    { .name = "QuantizeLinear", .spell = linear },
    { .name = "DequantizeLinear", .spell = linear },
    { .name = "QGemm", .spell = gemm },
    { .name = "DynamicQuantizeMatMul", .spell = dynamic_matmul },
    { .name = "MatMulIntegerToFloat", .spell = integer_matmul },
    { .name = "DynamicQuantizeLSTM", .spell = dynamic_lstm },
    { .name = "MatMulNBits", .spell = matmul_bits },
    { .name = "MatMulBnb4", .spell = matmul_codes },
    { .name = "GatherBlockQuantized", .spell = gather_bits },
    { .name = NULL },
};
