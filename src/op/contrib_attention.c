/*
 * Attention in ONNX Runtime's forms: all become the core operator, with a bias of the scores for their masks.
 */
#include "op/contrib_forms.h"

#include <math.h>
#include <string.h>

static const int64_t swap_heads[] = { 0, 2, 1, 3 };

typedef struct {
    HnValue *q, *k, *v;       /* [batch, length, heads * size], or all [batch, heads, length, size] */
    HnValue *past_k, *past_v; /* [batch, heads, length, size]; NULL: none */
    HnValue *bias;            /* that broadcasts to [batch, heads, queries, keys], or bool; NULL: none */
    int64_t q_heads, kv_heads;
    double scale, softcap;  /* scale 0: 1 / sqrt(size) */
    gboolean causal, split; /* split: four axes */
} Core;

/* The core operator's node, with results output, present keys, present values. */
static HnNode *attend(HnUnbind *u, const Core *a, gboolean present)
{
    HnValue *in[] = { a->q, a->k, a->v, a->bias, a->past_k, a->past_v };
    HnNode *n = hn_unbind_node(u, "Attention", 6, in, present ? 3 : 1);
    if (!a->split) {
        hn_node_set_int(n, "q_num_heads", a->q_heads);
        hn_node_set_int(n, "kv_num_heads", a->kv_heads);
    }
    if (a->scale != 0)
        hn_node_set_float(n, "scale", (float)a->scale);
    if (a->softcap != 0)
        hn_node_set_float(n, "softcap", (float)a->softcap);
    if (a->causal)
        hn_node_set_int(n, "is_causal", 1);
    return n;
}

static HnValue *to_heads(HnUnbind *u, HnValue *v, int64_t heads)
{
    return hn_unbind_transpose(u, hn_unbind_reshape(u, v, (int64_t[]){ 0, 0, heads, -1 }, 4), swap_heads, 4);
}

static HnValue *from_heads(HnUnbind *u, HnValue *v)
{
    return hn_unbind_reshape(u, hn_unbind_transpose(u, v, swap_heads, 4), (int64_t[]){ 0, 0, -1 }, 3);
}

/* Index i of an axis, which goes. */
static HnValue *pick(HnUnbind *u, HnValue *v, int64_t axis, int64_t i)
{
    HnValue *y = hn_unbind_op2(u, "Gather", v, hn_unbind_scalar(u, HN_I64, (double)i));
    hn_node_set_int(y->producer, "axis", axis);
    return y;
}

/* The type that scores are computed in: that of input i. */
static HnDtype float_of(HnUnbind *u, int i)
{
    const HnDtype d = hn_unbind_dtype(u, i);
    if (!hn_dtype_in(d, HN_T_FLOATS))
        hn_unbind_refuse(u, "the element type of input %d is not known to be a float", i);
    return d;
}

/* --- masks -----------------------------------------------------------------------------------------------------------
 */

/* bool [batch, keys]: keys before the ends in mask i, and not before the starts behind them where it has both. `keys`:
 * i64[1]; `of`: a value whose first axis is the batch, input 0. */
static HnValue *by_ends(HnUnbind *u, int i, HnValue *keys)
{
    const int64_t n = hn_unbind_dim(u, i, 0), batch = hn_unbind_dim(u, 0, 0);
    HnValue *ends = hn_unbind_op1(u, "Cast", hn_unbind_in(u, i)), *at = hn_form_count(u, keys), *starts = NULL;
    hn_node_set_int(ends->producer, "to", HN_I64);
    if (n > 0 && batch > 0 && n == 2 * batch) {
        starts = hn_unbind_slice(u, ends, 0, batch, 2 * batch);
        ends = hn_unbind_slice(u, ends, 0, 0, batch);
    } else if (n > 0 && batch > 0 && n != batch) {
        hn_unbind_refuse(u, "a mask of %" PRId64 " elements for a batch of %" PRId64 " is not supported", n, batch);
    }
    HnValue *seen = hn_unbind_op2(u, "Less", at, hn_form_unsqueeze(u, ends, 1));
    if (starts == NULL)
        return seen;
    return hn_unbind_op2(u, "And", seen, hn_unbind_op2(u, "GreaterOrEqual", at, hn_form_unsqueeze(u, starts, 1)));
}

/* What mask i adds to scores: mask_filter_value for what is hidden. */
static HnValue *mask_bias(HnUnbind *u, int i, HnDtype dtype, double hidden, HnValue *keys)
{
    const int rank = hn_unbind_rank(u, i);
    const HnDtype of = hn_unbind_dtype(u, i);
    if (rank < 1 || rank > 3 || of == HN_UNDEFINED) {
        hn_unbind_refuse(u, rank == 4 ? "a mask of four axes is not supported" : "the type of the mask is not known");
        return NULL;
    }
    HnValue *seen =
        rank == 1 ? by_ends(u, i, keys) : hn_unbind_op2(u, "Greater", hn_unbind_in(u, i), hn_unbind_scalar(u, of, 0));
    HnValue *bias = hn_unbind_op3(u, "Where", seen, hn_unbind_scalar(u, dtype, 0), hn_unbind_scalar(u, dtype, hidden));
    return hn_unbind_op2(u, "Unsqueeze", bias,
                         rank == 3 ? hn_unbind_int(u, 1) : hn_unbind_list(u, (int64_t[]){ 1, 2 }, 2));
}

/* --- Attention, QAttention: Q, K, V of one product -----------------------------------------------------------------
 */

/* qkv [batch, length, three parts]; inputs with mask, past and bias of the scores, -1: there is no such input. */
static void of_one_product(HnUnbind *u, HnValue *qkv, HnDtype dtype, int mask, int past, int bias)
{
    HnBind b = { .node = u->node };
    int64_t n = 0;
    const int64_t heads = hn_form_int(u, "num_heads", 0), *sizes = hn_bind_ints(&b, "qkv_hidden_sizes", &n);
    const double hidden = hn_form_float(u, "mask_filter_value", -10000);
    g_clear_error(&b.error);
    hn_form_only_zero(u, "do_rotary");
    hn_form_only_zero(u, "past_present_share_buffer");
    if (heads <= 0 || (n != 0 && n != 3))
        hn_unbind_refuse(u, "attributes 'num_heads' and 'qkv_hidden_sizes' do not go together");
    if (u->error != NULL)
        return;
    HnValue *parts[3], *pasts = hn_unbind_in(u, past);
    hn_form_split(u, qkv, n == 3 ? sizes : NULL, 3, parts);
    Core a = { .q = parts[0],
               .k = parts[1],
               .v = parts[2],
               .q_heads = heads,
               .kv_heads = heads,
               .scale = hn_form_float(u, "scale", 0),
               .causal = hn_form_int(u, "unidirectional", 0) != 0 };
    HnValue *keys = hn_unbind_shape(u, hn_unbind_in(u, 0), 1, 2);
    if (pasts != NULL) {
        a.past_k = pick(u, pasts, 0, 0);
        a.past_v = pick(u, pasts, 0, 1);
        keys = hn_unbind_op2(u, "Add", keys, hn_unbind_shape(u, pasts, 3, 4));
    }
    if (hn_unbind_in(u, mask) != NULL)
        a.bias = mask_bias(u, mask, dtype, hidden, keys);
    if (bias >= 0 && hn_unbind_in(u, bias) != NULL)
        a.bias = hn_form_add(u, hn_unbind_in(u, bias), a.bias);
    const gboolean present = hn_unbind_wants(u, 1);
    HnNode *node = attend(u, &a, present);
    if (present) {
        HnValue *both[] = { hn_form_unsqueeze(u, hn_node_out(node, 1), 0),
                            hn_form_unsqueeze(u, hn_node_out(node, 2), 0) };
        hn_unbind_take(u, 1, hn_unbind_concat(u, 2, both, 0));
    }
    hn_unbind_take(u, 0, hn_node_out(node, 0));
}

/* (input, weights, bias, mask, past, bias of the scores) */
static void attention(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const HnDtype dtype = float_of(u, 0);
    hn_form_absent(u, 6, "past_sequence_length");
    HnValue *qkv =
        hn_form_add(u, hn_unbind_op2(u, "MatMul", hn_unbind_in(u, 0), hn_unbind_in(u, 1)), hn_unbind_in(u, 2));
    if (u->error == NULL)
        of_one_product(u, qkv, dtype, 3, 4, 5);
}

/* (input, weights, bias, scale, scale of weights, mask, zero, zero of weights, past) */
static void quantized_attention(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    HnValue *in[] = { hn_unbind_in(u, 0), hn_unbind_in(u, 1), hn_unbind_in(u, 6), hn_unbind_in(u, 7) };
    HnValue *scale = hn_unbind_op2(u, "Mul", hn_unbind_in(u, 3), hn_unbind_in(u, 4));
    of_one_product(u, hn_form_product(u, in, scale, hn_unbind_in(u, 2)), HN_F32, 5, 8, -1);
}

/* --- MultiHeadAttention --------------------------------------------------------------------------------------------
 */

enum { QUERY, KEY, VALUE, BIAS, PADDING, SCORES, PAST_K, PAST_V, PAST_LENGTH, BEAMS };

/* Parts i of axis 3 of [batch, length, heads, parts, size] as [batch, length, heads * size]. */
static HnValue *unpacked(HnUnbind *u, int input, int64_t i)
{
    return hn_unbind_reshape(u, pick(u, hn_unbind_in(u, input), 3, i), (int64_t[]){ 0, 0, -1 }, 3);
}

/* Q, K, V out of packed tensors; FALSE: refused. */
static gboolean multi_head_inputs(HnUnbind *u, Core *a)
{
    const int q = hn_unbind_rank(u, QUERY), k = hn_unbind_rank(u, KEY);
    a->q = hn_unbind_in(u, QUERY);
    a->k = hn_unbind_in(u, KEY);
    a->v = hn_unbind_in(u, VALUE);
    if (q == 5 && a->k == NULL) {
        for (int i = 0; i < 3; i++)
            *(HnValue * *[]){ &a->q, &a->k, &a->v }[i] = unpacked(u, QUERY, i);
    } else if (q == 3 && k == 5 && a->v == NULL) {
        a->k = unpacked(u, KEY, 0);
        a->v = unpacked(u, KEY, 1);
    } else if (q != 3 || (k != 3 && k != 4) || a->v == NULL) {
        hn_unbind_refuse(u, "the ranks of query, key and value are not known, or do not go together");
    }
    a->split = k == 4;
    return u->error == NULL;
}

/* The bias of the three, of which K and V have none where they come with heads. */
static void add_bias(HnUnbind *u, Core *a)
{
    const int64_t all = hn_unbind_dim(u, BIAS, 0),
                  last = hn_unbind_rank(u, QUERY) == 3 ? hn_unbind_dim(u, QUERY, 2) : -1;
    const int64_t hidden = last > 0 ? last : all / 3, sizes[] = { hidden, hidden, all - 2 * hidden };
    HnValue *parts[3];
    if (hn_unbind_in(u, BIAS) == NULL)
        return;
    if (all <= 0 || sizes[2] <= 0) {
        hn_unbind_refuse(u, "the size of the bias is not known");
        return;
    }
    hn_form_split(u, hn_unbind_in(u, BIAS), sizes, 3, parts);
    a->q = hn_unbind_op2(u, "Add", a->q, parts[0]);
    if (a->split)
        return;
    a->k = hn_unbind_op2(u, "Add", a->k, parts[1]);
    a->v = hn_unbind_op2(u, "Add", a->v, parts[2]);
}

static void multi_head(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t heads = hn_form_int(u, "num_heads", 0);
    const double hidden = hn_form_float(u, "mask_filter_value", -10000);
    const HnDtype dtype = float_of(u, QUERY);
    Core a = { .past_k = hn_unbind_in(u, PAST_K),
               .past_v = hn_unbind_in(u, PAST_V),
               .q_heads = heads,
               .kv_heads = heads,
               .scale = hn_form_float(u, "scale", 0),
               .causal = hn_form_int(u, "unidirectional", 0) != 0 };
    hn_form_absent(u, PAST_LENGTH, "past_sequence_length");
    hn_form_absent(u, BEAMS, "cache_indirection");
    if (heads <= 0 || (a.past_k == NULL) != (a.past_v == NULL))
        hn_unbind_refuse(u, "attribute 'num_heads' is missing, or one of past keys and values is");
    if (u->error != NULL || !multi_head_inputs(u, &a))
        return;
    HnValue *keys = hn_unbind_shape(u, a.k, a.split ? 2 : 1, a.split ? 3 : 2);
    add_bias(u, &a);
    if (a.past_k != NULL)
        keys = hn_unbind_op2(u, "Add", keys, hn_unbind_shape(u, a.past_k, 2, 3));
    if (hn_unbind_in(u, PADDING) != NULL)
        a.bias = mask_bias(u, PADDING, dtype, hidden, keys);
    if (hn_unbind_in(u, SCORES) != NULL)
        a.bias = hn_form_add(u, hn_unbind_in(u, SCORES), a.bias);
    if (a.split)
        a.q = to_heads(u, a.q, heads);
    const gboolean present = hn_unbind_wants(u, 1) || hn_unbind_wants(u, 2);
    HnNode *n = attend(u, &a, present);
    HnValue *y = hn_node_out(n, 0);
    for (int k = 1; k < 3 && present; k++)
        hn_unbind_take(u, k, hn_node_out(n, k));
    hn_unbind_take(u, 0, a.split ? from_heads(u, y) : y);
}

/* --- rotations -----------------------------------------------------------------------------------------------------
 */

static HnValue *rotate(HnUnbind *u, HnValue *x, HnValue *places, int cosines, int64_t heads)
{
    const int64_t half = hn_unbind_dim(u, cosines, 1);
    HnValue *in[] = { x, hn_unbind_in(u, cosines), hn_unbind_in(u, cosines + 1), places };
    HnValue *y = hn_form_node(u, "RotaryEmbedding", 4, in);
    if (half > 0)
        hn_node_set_int(y->producer, "rotary_embedding_dim", 2 * half);
    if (heads > 0)
        hn_node_set_int(y->producer, "num_heads", heads);
    return y;
}

/* (input, places, cosines, sines) */
static void rotary(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int rank = hn_unbind_rank(u, 0), of = hn_unbind_rank(u, 1);
    const int64_t interleaved = hn_form_int(u, "interleaved", 0), width = hn_unbind_dim(u, 0, -1);
    int64_t heads = hn_form_int(u, "num_heads", 0);
    HnValue *x = hn_unbind_in(u, 0), *places = hn_unbind_in(u, 1);
    hn_form_only_zero(u, "is_packed_batching");
    if (heads == 0 && rank == 3 && width > 0 && hn_unbind_dim(u, 2, 1) > 0)
        heads = width / (2 * hn_unbind_dim(u, 2, 1));
    if (hn_form_float(u, "scale", 1) != 1)
        hn_unbind_refuse(u, "attribute 'scale' is not supported");
    else if ((rank != 3 && rank != 4) || (of != 1 && of != 2))
        hn_unbind_refuse(u, "the shapes of the input and of positions are not known");
    else if (rank == 3 && heads <= 0)
        hn_unbind_refuse(u, "the number of heads is not known");
    if (u->error != NULL)
        return;
    if (of == 1) { /* the first position of all */
        HnValue *length = hn_unbind_shape(u, x, rank - 2, rank - 1), *batch = hn_unbind_shape(u, x, 0, 1);
        places = hn_unbind_op2(u, "Add", hn_form_count(u, length), places);
        places = hn_unbind_op2(u, "Expand", places, hn_unbind_concat(u, 2, (HnValue *[]){ batch, length }, 0));
    }
    HnValue *y = rotate(u, x, places, 2, rank == 3 ? heads : 0);
    if (interleaved != 0)
        hn_node_set_int(y->producer, "interleaved", 1);
    hn_unbind_take(u, 0, y);
}

/* --- GroupQueryAttention -------------------------------------------------------------------------------------------
 */

enum {
    G_Q,
    G_K,
    G_V,
    G_PAST_K,
    G_PAST_V,
    G_LAST,
    G_TOTAL,
    G_COS,
    G_SIN,
    G_PLACES,
    G_BIAS,
    G_SINK,
    G_K_SCALE,
    G_V_SCALE,
    G_Q_NORM,
    G_K_NORM
};

/* new [batch, heads, length, size] in the cache, which becomes `total` long where it is shorter, at `start` [batch]. */
static HnValue *cached(HnUnbind *u, HnValue *new, int past, HnValue *total, HnValue *start)
{
    HnValue *cache = hn_unbind_in(u, past);
    if (cache == NULL)
        return new;
    HnValue *zero = hn_unbind_int(u, 0), *more = hn_unbind_op2(u, "Sub", total, hn_unbind_shape(u, cache, 2, 3));
    more = hn_unbind_op2(u, "Max", more, zero);
    HnValue *pads[] = { hn_unbind_list(u, (int64_t[6]){ 0 }, 6), more, zero };
    HnValue *longer = hn_unbind_op2(u, "Pad", cache, hn_unbind_concat(u, 3, pads, 0));
    return hn_unbind_op3(u, "TensorScatter", longer, new, start);
}

/* bool [batch, 1, queries, keys]: keys that a query at places `at` [batch, queries] sees, in a window of so many. */
static HnValue *frontier(HnUnbind *u, HnValue *at, HnValue *total, int64_t window)
{
    HnValue *key = hn_form_count(u, total),
            *place = hn_unbind_op2(u, "Unsqueeze", at, hn_unbind_list(u, (int64_t[]){ 1, 3 }, 2));
    HnValue *seen = hn_unbind_op2(u, "LessOrEqual", key, place);
    if (window <= 0)
        return seen;
    HnValue *first = hn_unbind_op2(u, "Sub", place, hn_unbind_scalar(u, HN_I64, (double)window));
    return hn_unbind_op2(u, "And", seen, hn_unbind_op2(u, "Greater", key, first));
}

static void group_query(HnUnbind *u, const HnContrib *c)
{
    static const char *const unsupported[] = { "smooth_softmax", "qk_output", "sliding_window_cache",
                                               "kv_cache_bit_width" };
    (void)c;
    const int64_t heads = hn_form_int(u, "num_heads", 0), kv_heads = hn_form_int(u, "kv_num_heads", 0);
    const int64_t window = hn_form_int(u, "local_window_size", -1), rotates = hn_form_int(u, "do_rotary", 0);
    const int64_t interleaved = hn_form_int(u, "rotary_interleaved", 0);
    const HnDtype dtype = float_of(u, G_Q);
    Core a = { .q_heads = heads,
               .kv_heads = kv_heads,
               .scale = hn_form_float(u, "scale", 0),
               .softcap = hn_form_float(u, "softcap", 0),
               .split = TRUE };
    for (guint i = 0; i < G_N_ELEMENTS(unsupported); i++)
        hn_form_only_zero(u, unsupported[i]);
    for (int i = G_SINK; i <= G_K_NORM; i++)
        hn_form_absent(u, i, "head_sink, k_scale, v_scale, q_norm_weight or k_norm_weight");
    if (heads <= 0 || kv_heads <= 0 || heads % kv_heads != 0 || hn_form_int(u, "causal", 1) != 1)
        hn_unbind_refuse(u, "attributes 'num_heads' and 'kv_num_heads' do not go together, or it is not causal");
    if (u->error != NULL)
        return;
    HnValue *parts[] = { hn_unbind_in(u, G_Q), hn_unbind_in(u, G_K), hn_unbind_in(u, G_V) };
    HnValue *length = hn_unbind_shape(u, parts[0], 1, 2), *batch = hn_unbind_shape(u, parts[0], 0, 1);
    if (parts[1] == NULL) { /* heads of all three side by side */
        HnValue *all = hn_unbind_reshape(u, parts[0], (int64_t[]){ 0, 0, heads + 2 * kv_heads, -1 }, 4);
        HnNode *s = hn_unbind_node(
            u, "Split", 2, (HnValue *[]){ all, hn_unbind_list(u, (int64_t[]){ heads, kv_heads, kv_heads }, 3) }, 3);
        hn_node_set_int(s, "axis", 2);
        for (int i = 0; i < 3; i++)
            parts[i] = hn_unbind_transpose(u, hn_node_out(s, i), swap_heads, 4);
    } else {
        for (int i = 0; i < 3; i++)
            parts[i] = to_heads(u, parts[i], i == 0 ? heads : kv_heads);
    }
    /* what each sequence has in its cache already: at first nothing, padding behind short ones */
    HnValue *last = hn_unbind_cast(u, hn_unbind_reshape(u, hn_unbind_in(u, G_LAST), (int64_t[]){ -1 }, 1), HN_I64);
    HnValue *total = hn_unbind_cast(u, hn_unbind_reshape(u, hn_unbind_in(u, G_TOTAL), (int64_t[]){ 1 }, 1), HN_I64);
    HnValue *start = hn_unbind_op2(u, "Sub", hn_unbind_op2(u, "Add", last, hn_unbind_int(u, 1)), length);
    start = hn_unbind_op2(u, "Max", start, hn_unbind_int(u, 0));
    HnValue *at = hn_unbind_op2(u, "Add", hn_form_unsqueeze(u, start, 1), hn_form_count(u, length));
    if (rotates != 0) {
        HnValue *places = hn_unbind_in(u, G_PLACES);
        if (places == NULL)
            places = hn_unbind_op2(u, "Expand", at, hn_unbind_concat(u, 2, (HnValue *[]){ batch, length }, 0));
        for (int i = 0; i < 2; i++) {
            parts[i] = rotate(u, parts[i], places, G_COS, 0);
            if (interleaved != 0)
                hn_node_set_int(parts[i]->producer, "interleaved", 1);
        }
    }
    HnValue *present[] = { cached(u, parts[1], G_PAST_K, total, start), cached(u, parts[2], G_PAST_V, total, start) };
    a.q = parts[0];
    a.k = present[0];
    a.v = present[1];
    a.bias = frontier(u, at, total, window);
    if (hn_unbind_in(u, G_BIAS) != NULL)
        a.bias = hn_unbind_op3(u, "Where", a.bias, hn_unbind_in(u, G_BIAS), hn_unbind_scalar(u, dtype, -INFINITY));
    HnNode *n = attend(u, &a, FALSE);
    hn_unbind_take(u, 0, from_heads(u, hn_node_out(n, 0)));
    hn_unbind_take(u, 1, present[0]);
    hn_unbind_take(u, 2, present[1]);
}

/* --- places of tokens to one another ------------------------------------------------------------------------------
 */

/* The bucket of keys `after` places behind their query, as T5 has it (Raffel et al., 2020): near places have one each,
 * others by their logarithm. */
static int64_t bucket_of(int64_t after, int64_t buckets, int64_t farthest, gboolean both)
{
    const int64_t half = both ? buckets / 2 : buckets, near = half / 2, base = both && after > 0 ? half : 0;
    const int64_t away = both ? ABS(after) : MAX(-after, 0);
    if (away < near)
        return base + away;
    const float part = logf((float)away / (float)near) / logf((float)farthest / (float)near);
    const int64_t far = near + (int64_t)(part * (float)(half - near));
    return base + MIN(far, half - 1);
}

/* RelativePositionBias(table, queries, keys): the table's bytes are those of [heads, buckets], whatever its shape. */
static void relative_bias(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t farthest = hn_form_int(u, "max_distance", 0), buckets = hn_unbind_dim(u, 0, 0);
    const gboolean both = hn_form_int(u, "is_bidirectional", 0) != 0;
    if (buckets < (both ? 4 : 2) || buckets > INT32_MAX || hn_unbind_rank(u, 0) != 2)
        hn_unbind_refuse(u, "the number of buckets is not known, or below %d", both ? 4 : 2);
    else if (farthest <= buckets / (both ? 4 : 2) || farthest > HN_UNBIND_FILL / 4)
        hn_unbind_refuse(u, "attribute 'max_distance' is %" PRId64 " for %" PRId64 " buckets", farthest, buckets);
    if (u->error != NULL)
        return;
    const int64_t n = 2 * farthest + 1; /* places beyond `farthest` are as that one */
    HnTensor *bucket = hn_tensor_new(HN_I64, 1, &n, NULL, NULL);
    if (bucket == NULL) {
        hn_unbind_refuse(u, "there is no memory for its buckets");
        return;
    }
    for (int64_t i = 0; i < n; i++)
        hn_tensor_set_i64(bucket, i, bucket_of(i - farthest, buckets, farthest, both));
    HnValue *table = hn_unbind_reshape(u, hn_unbind_in(u, 0), (int64_t[]){ -1, buckets }, 2);
    HnValue *by_place = hn_unbind_op2(u, "Gather", table, hn_unbind_const(u, bucket));
    hn_node_set_int(by_place->producer, "axis", 1);
    HnValue *query = hn_form_unsqueeze(u, hn_form_count(u, hn_unbind_in(u, 1)), 1);
    HnValue *after = hn_unbind_op2(u, "Sub", hn_form_count(u, hn_unbind_in(u, 2)), query);
    after = hn_unbind_op2(u, "Min", after, hn_unbind_scalar(u, HN_I64, (double)farthest));
    after = hn_unbind_op2(u, "Max", after, hn_unbind_scalar(u, HN_I64, (double)-farthest));
    after = hn_unbind_op2(u, "Add", after, hn_unbind_scalar(u, HN_I64, (double)farthest));
    HnValue *y = hn_unbind_op2(u, "Gather", by_place, after);
    hn_node_set_int(y->producer, "axis", 1);
    hn_unbind_take(u, 0, hn_form_unsqueeze(u, y, 0));
}

/* GatedRelativePositionBias(query, bias, relative bias, weight, bias of that, constant): WavLM's (Chen et al., 2022).
 */
static void gated_bias(HnUnbind *u, const HnContrib *c)
{
    (void)c;
    const int64_t heads = hn_form_int(u, "num_heads", 0);
    const HnDtype dtype = float_of(u, 0);
    HnValue *gate[2];
    hn_form_absent(u, 6, "token_offset");
    if (heads <= 0)
        hn_unbind_refuse(u, "attribute 'num_heads' is %" PRId64, heads);
    if (u->error != NULL)
        return;
    HnValue *q = hn_unbind_op2(u, "Add", hn_unbind_in(u, 0), hn_unbind_in(u, 1));
    q = hn_unbind_reshape(u, q, (int64_t[]){ 0, 0, heads, -1 }, 4);
    q = hn_unbind_transpose(u, q, swap_heads, 4);
    HnValue *g = hn_form_add(u, hn_unbind_op2(u, "MatMul", q, hn_unbind_in(u, 3)), hn_unbind_in(u, 4));
    g = hn_unbind_reshape(u, g, (int64_t[]){ 0, 0, 0, 2, -1 }, 5);
    g = hn_unbind_op1(u, "Sigmoid", hn_unbind_reduce(u, "ReduceSum", g, (int64_t[]){ 4 }, 1, FALSE));
    hn_form_split(u, g, NULL, 2, gate);
    HnValue *y = hn_unbind_op2(u, "Mul", gate[1], hn_unbind_in(u, 5));
    y = hn_unbind_op2(u, "Sub", y, hn_unbind_scalar(u, dtype, 1));
    y = hn_unbind_op2(u, "Add", hn_unbind_op2(u, "Mul", gate[0], y), hn_unbind_scalar(u, dtype, 2));
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Mul", y, hn_unbind_in(u, 2)));
}

const HnContrib hn_contrib_attention[] = {
    { .name = "Attention", .spell = attention },
    { .name = "QAttention", .spell = quantized_attention },
    { .name = "MultiHeadAttention", .spell = multi_head },
    { .name = "RotaryEmbedding", .spell = rotary },
    { .name = "GroupQueryAttention", .spell = group_query },
    { .name = "RelativePositionBias", .spell = relative_bias },
    { .name = "GatedRelativePositionBias", .spell = gated_bias },
    { .name = NULL },
};
