/*
 * Sequences: SequenceConstruct, SequenceEmpty, SequenceAt, SequenceInsert, SequenceErase, SequenceLength,
 * SplitToSequence, ConcatFromSequence. All elements of one are of one type; their shapes may differ.
 */
#include "op/sequence.h"

#include <string.h>

#include "op/move.h"

#define SEQUENCE_TYPES (HN_T_PLAIN & ~HN_BIT(HN_BF16))

/* --- shared ------------------------------------------------------------------------------------------------------ */

HnTensor *hn_list_element(HnEval *e, const HnTensor *t)
{
    return hn_tensor_is_list(t) ? hn_tensor_ref((HnTensor *)t) : hn_tensor_copy(t, e->budget, &e->error);
}

const HnTensor *hn_eval_sequence(HnEval *e, int i)
{
    const HnTensor *t = hn_eval_in(e, i);
    if (t != NULL && t->dtype == HN_SEQUENCE)
        return t;
    hn_eval_fail(e, HN_ERROR_TYPE, "input %d is no sequence", i);
    return NULL;
}

HnType *hn_infer_elements(HnInfer *x, int i)
{
    const HnType *t = i < x->n_in ? x->in[i] : NULL;
    if (t == NULL || t->kind == HN_TYPE_NONE)
        return NULL;
    if (t->kind == HN_TYPE_SEQUENCE)
        return t->elem;
    g_autofree char *text = hn_type_describe(t);
    hn_infer_fail(x, HN_ERROR_TYPE, "input %d is %s, not a sequence", i, text);
    return NULL;
}

void hn_infer_out_type(HnInfer *x, int k, HnType *type)
{
    if (x->error == NULL && k < x->n_out) {
        hn_type_unref(x->out[k]);
        x->out[k] = type;
    } else {
        hn_type_unref(type);
    }
}

void hn_infer_out_sequence(HnInfer *x, int k, HnType *elem)
{
    hn_infer_out_type(x, k, hn_type_list(HN_TYPE_SEQUENCE, HN_UNDEFINED, elem));
}

/* Sets element i of a new list to what t holds. */
static void put(HnEval *e, HnTensor *list, int64_t i, const HnTensor *t)
{
    g_autoptr(HnTensor) element = hn_list_element(e, t);
    if (element != NULL)
        hn_tensor_set_item(list, i, element);
}

/* Position input i of a sequence of n, `n` where it is absent. FALSE: failed; `over` elements behind the end count. */
static gboolean position(HnEval *e, int i, int64_t n, int64_t over, int64_t *at)
{
    *at = n - 1 + over;
    if (hn_eval_in(e, i) != NULL && !hn_eval_int(e, i, at))
        return FALSE;
    if (*at < -n || *at >= n + over) {
        hn_eval_fail(e, HN_ERROR_VALUE, "position %" PRId64 " is outside a sequence of %" PRId64, *at, n);
        return FALSE;
    }
    *at += *at < 0 ? n : 0;
    return TRUE;
}

/* --- SequenceConstruct, SequenceEmpty ---------------------------------------------------------------------------- */

static void construct_infer(HnInfer *x)
{
    HnType *elem = x->in[0] != NULL ? hn_type_ref(x->in[0]) : NULL;
    for (int i = 1; i < x->n_in; i++) {
        g_autoptr(HnType) so_far = elem;
        elem = hn_type_common(so_far, x->in[i]);
    }
    hn_infer_out_sequence(x, 0, elem);
}

static void construct_ref(HnEval *e)
{
    HnTensor *list = hn_eval_out_list(e, 0, HN_SEQUENCE, e->n_in);
    for (int i = 0; i < e->n_in && e->error == NULL; i++)
        put(e, list, i, e->in[i]);
}

const HnOp hn_op_sequenceconstruct = {
    .name = "SequenceConstruct",
    .since = { 11 },
    .in = "T*",
    .out = ".",
    .T = SEQUENCE_TYPES,
    .infer = construct_infer,
    .cost = hn_cost_nothing,
    .ref = construct_ref,
};

typedef struct {
    HnDtype dtype;
} Empty;

static void empty_bind(HnBind *b, void *params)
{
    const int64_t dtype = hn_bind_int(b, "dtype", HN_F32);
    if (dtype <= HN_UNDEFINED || dtype >= HN_DTYPE_COUNT)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'dtype' is %" PRId64 ", which is no element type", dtype);
    ((Empty *)params)->dtype = (HnDtype)dtype;
}

static void empty_infer(HnInfer *x)
{
    hn_infer_out_sequence(x, 0, hn_type_tensor(((const Empty *)x->params)->dtype, -1, NULL));
}

static void empty_ref(HnEval *e)
{
    hn_eval_out_list(e, 0, HN_SEQUENCE, 0);
}

const HnOp hn_op_sequenceempty = {
    .name = "SequenceEmpty",
    .since = { 11 },
    .in = "",
    .out = ".",
    .params_size = sizeof(Empty),
    .bind = empty_bind,
    .infer = empty_infer,
    .cost = hn_cost_nothing,
    .ref = empty_ref,
};

/* --- SequenceAt, SequenceInsert, SequenceErase, SequenceLength --------------------------------------------------- */

static void at_infer(HnInfer *x)
{
    HnType *elem = hn_infer_elements(x, 0);
    hn_infer_out_type(x, 0, elem != NULL ? hn_type_ref(elem) : NULL);
}

static void at_ref(HnEval *e)
{
    const HnTensor *list = hn_eval_sequence(e, 0);
    int64_t at;
    if (list == NULL || !position(e, 1, list->n, 0, &at))
        return;
    const HnTensor *t = hn_tensor_get_item(list, at);
    hn_eval_view(e, 0, t, t->ndim, t->dims);
}

const HnOp hn_op_sequenceat = {
    .name = "SequenceAt",
    .flags = HN_OP_DYNAMIC,
    .since = { 11 },
    .in = ".j",
    .out = ".",
    .infer = at_infer,
    .cost = hn_cost_nothing,
    .ref = at_ref,
};

static gboolean same_type(const HnType *elem, const HnType *t)
{
    return elem == NULL || t == NULL || elem->kind != t->kind || elem->dtype == t->dtype ||
           elem->dtype == HN_UNDEFINED || t->dtype == HN_UNDEFINED;
}

static void insert_infer(HnInfer *x)
{
    HnType *elem = hn_infer_elements(x, 0);
    if (!same_type(elem, x->in[1]))
        hn_infer_fail(x, HN_ERROR_TYPE, "a sequence of %s cannot take %s", hn_dtype_name(elem->dtype),
                      hn_dtype_name(x->in[1]->dtype));
    hn_infer_out_sequence(x, 0, hn_type_common(elem, x->in[1]));
}

static void insert_ref(HnEval *e)
{
    const HnTensor *list = hn_eval_sequence(e, 0), *t = hn_eval_in(e, 1);
    int64_t at;
    if (list == NULL || !position(e, 2, list->n, 1, &at))
        return;
    if (list->n > 0 && hn_tensor_get_item(list, 0)->dtype != t->dtype) {
        hn_eval_fail(e, HN_ERROR_TYPE, "a sequence of %s cannot take %s",
                     hn_dtype_name(hn_tensor_get_item(list, 0)->dtype), hn_dtype_name(t->dtype));
        return;
    }
    HnTensor *y = hn_eval_out_list(e, 0, HN_SEQUENCE, list->n + 1);
    if (y == NULL)
        return;
    for (int64_t i = 0; i < list->n; i++)
        hn_tensor_set_item(y, i < at ? i : i + 1, hn_tensor_get_item(list, i));
    put(e, y, at, t);
}

const HnOp hn_op_sequenceinsert = {
    .name = "SequenceInsert",
    .since = { 11 },
    .in = ".Tj",
    .out = ".",
    .T = SEQUENCE_TYPES,
    .min_in = 2,
    .infer = insert_infer,
    .cost = hn_cost_nothing,
    .ref = insert_ref,
};

static void erase_infer(HnInfer *x)
{
    HnType *elem = hn_infer_elements(x, 0);
    hn_infer_out_sequence(x, 0, elem != NULL ? hn_type_ref(elem) : NULL);
}

static void erase_ref(HnEval *e)
{
    const HnTensor *list = hn_eval_sequence(e, 0);
    int64_t at;
    if (list == NULL || !position(e, 1, list->n, 0, &at))
        return;
    HnTensor *y = hn_eval_out_list(e, 0, HN_SEQUENCE, list->n - 1);
    for (int64_t i = 0; y != NULL && i < y->n; i++)
        hn_tensor_set_item(y, i, hn_tensor_get_item(list, i < at ? i : i + 1));
}

const HnOp hn_op_sequenceerase = {
    .name = "SequenceErase",
    .since = { 11 },
    .in = ".j",
    .out = ".",
    .min_in = 1,
    .infer = erase_infer,
    .cost = hn_cost_nothing,
    .ref = erase_ref,
};

static void length_infer(HnInfer *x)
{
    hn_infer_elements(x, 0);
    hn_infer_out(x, 0, HN_I64, 0, NULL);
}

static void length_ref(HnEval *e)
{
    const HnTensor *list = hn_eval_sequence(e, 0);
    int64_t *y = list != NULL ? hn_eval_out(e, 0, HN_I64, 0, NULL) : NULL;
    if (y != NULL)
        *y = list->n;
}

const HnOp hn_op_sequencelength = {
    .name = "SequenceLength",
    .since = { 11 },
    .in = ".",
    .out = "i",
    .infer = length_infer,
    .cost = hn_cost_nothing,
    .ref = length_ref,
};

/* --- SplitToSequence --------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t axis;
    gboolean drop; /* parts of one, without the axis: keepdims is 0, and nobody says how long parts are */
} Split;

static void split_bind(HnBind *b, void *params)
{
    Split *p = params;
    p->axis = hn_bind_int(b, "axis", 0);
    p->drop = !hn_bind_bool(b, "keepdims", TRUE) && hn_node_in(b->node, 1) == NULL;
}

/* Length of every part along an axis of `whole`; unknown: they differ, or nobody knows. */
static HnDim part_length(const HnInfer *x, HnDim whole)
{
    int64_t v[HN_CONTENTS_MAX];
    int n;
    if (!hn_infer_has(x, 1))
        return hn_dim(1);
    if (!hn_infer_ints(x, 1, v, HN_CONTENTS_MAX, &n) || n == 0)
        return hn_dim_unknown();
    if (hn_infer_rank(x, 1) == 0)
        return whole.known && v[0] > 0 && whole.n % v[0] == 0 ? hn_dim(v[0]) : hn_dim_unknown();
    for (int i = 1; i < n; i++)
        if (v[i] != v[0])
            return hn_dim_unknown();
    return hn_dim(v[0]);
}

static void split_infer(HnInfer *x)
{
    const Split *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    int n = 0;
    if (rank < 0) {
        hn_infer_out_sequence(x, 0, hn_type_tensor(hn_infer_dtype(x, 0), -1, NULL));
        return;
    }
    const int axis = hn_infer_axis(x, p->axis, rank);
    for (int i = 0; i < rank; i++)
        if (i != axis || !p->drop)
            dims[n++] = i == axis ? part_length(x, hn_infer_dim(x, 0, i)) : hn_infer_dim(x, 0, i);
    hn_infer_out_sequence(x, 0, hn_type_tensor(hn_infer_dtype(x, 0), n, dims));
}

/* How long the parts of an axis are, one after the other; NULL: failed. */
static GArray *parts_of(HnEval *e, int64_t whole)
{
    const HnTensor *split = hn_eval_in(e, 1);
    const gboolean list = split != NULL && split->ndim > 0;
    const int64_t each = split == NULL ? 1 : !list ? hn_tensor_get_i64(split, 0) : 0;
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t sum = 0;
    if ((split != NULL && split->ndim > 1) || (!list && each <= 0)) {
        hn_eval_fail(e, HN_ERROR_VALUE, "the length of parts is neither a positive number nor a list of them");
        return NULL;
    }
    for (int64_t i = 0; list ? i < split->n : sum < whole; i++) {
        int64_t part = list ? hn_tensor_get_i64(split, i) : MIN(each, whole - sum);
        if (part < 0 || part > whole - sum) {
            hn_eval_fail(e, HN_ERROR_VALUE, "parts of the lengths given do not make an axis of %" PRId64, whole);
            return NULL;
        }
        g_array_append_val(parts, part);
        sum += part;
    }
    if (sum == whole)
        return g_steal_pointer(&parts);
    hn_eval_fail(e, HN_ERROR_VALUE, "parts of the lengths given make %" PRId64 " of an axis of %" PRId64, sum, whole);
    return NULL;
}

/* Rows [from, from + n) of each of `outer` blocks of x along an axis of `whole` whose elements are `inner` wide. */
static HnTensor *cut(HnEval *e, const HnTensor *x, int axis, int64_t from, int64_t n, gboolean drop)
{
    int64_t dims[HN_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != axis || !drop)
            dims[rank++] = i == axis ? n : x->dims[i];
    HnTensor *y = hn_tensor_new_uninit(x->dtype, rank, dims, e->budget, &e->error);
    if (y == NULL)
        return NULL;
    const int64_t outer = hn_span(x->dims, 0, axis), inner = hn_span(x->dims, axis + 1, x->ndim), whole = x->dims[axis];
    for (int64_t o = 0; o < outer; o++)
        hn_tensor_copy_elements(y, o * n * inner, x, (o * whole + from) * inner, n * inner);
    return y;
}

static void split_ref(HnEval *e)
{
    const Split *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    const int axis = hn_eval_axis(e, p->axis, x->ndim);
    g_autoptr(GArray) parts = axis >= 0 && hn_move_size(e, x->dtype) > 0 ? parts_of(e, x->dims[axis]) : NULL;
    HnTensor *list = parts != NULL ? hn_eval_out_list(e, 0, HN_SEQUENCE, parts->len) : NULL;
    int64_t from = 0;
    for (guint i = 0; list != NULL && i < parts->len && e->error == NULL; i++) {
        const int64_t n = g_array_index(parts, int64_t, i);
        g_autoptr(HnTensor) part = cut(e, x, axis, from, n, p->drop);
        if (part != NULL)
            hn_tensor_set_item(list, i, part);
        from += n;
    }
}

const HnOp hn_op_splittosequence = {
    .name = "SplitToSequence",
    .since = { 11, 24 },
    .lacks = HN_LACKS(HN_BF16_SINCE(24)),
    .in = "Tj",
    .out = ".",
    .T = HN_T_PLAIN,
    .min_in = 1,
    .params_size = sizeof(Split),
    .bind = split_bind,
    .infer = split_infer,
    .cost = hn_cost_nothing,
    .ref = split_ref,
};

/* --- ConcatFromSequence ------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t axis;
    gboolean stack; /* along a new axis */
} Join;

static void join_bind(HnBind *b, void *params)
{
    Join *p = params;
    hn_bind_require(b, "axis");
    p->axis = hn_bind_int(b, "axis", 0);
    p->stack = hn_bind_bool(b, "new_axis", FALSE);
}

static void join_infer(HnInfer *x)
{
    const Join *p = x->params;
    const HnType *elem = hn_infer_elements(x, 0);
    const int rank = hn_type_rank(elem), more = p->stack ? 1 : 0;
    HnDim dims[HN_MAX_RANK];
    if (rank < 0 || rank + more > HN_MAX_RANK) {
        hn_infer_out_unknown(x, 0, hn_type_dtype(elem));
        return;
    }
    const int axis = hn_infer_axis(x, p->axis, rank + more);
    for (int i = 0; i < rank + more; i++)
        dims[i] = i == axis ? hn_dim_unknown() : elem->dims[i - (i > axis ? more : 0)];
    hn_infer_out(x, 0, hn_type_dtype(elem), rank + more, dims);
}

/* Dims of what the elements make; the axis, or -1: failed. */
static int joined_dims(HnEval *e, const HnTensor *list, int64_t *dims)
{
    const Join *p = e->params;
    const int more = p->stack ? 1 : 0;
    if (list->n == 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "an empty sequence cannot be concatenated");
        return -1;
    }
    const HnTensor *first = hn_tensor_get_item(list, 0);
    if (first->ndim + more > HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", first->ndim + more, HN_MAX_RANK);
        return -1;
    }
    const int axis = hn_eval_axis(e, p->axis, first->ndim + more);
    if (axis < 0)
        return -1;
    for (int i = 0; i < first->ndim + more; i++)
        dims[i] = i == axis ? 0 : first->dims[i - (i > axis ? more : 0)];
    for (int64_t k = 0; k < list->n; k++) {
        const HnTensor *t = hn_tensor_get_item(list, k);
        gboolean fits = t->dtype == first->dtype && t->ndim == first->ndim;
        for (int i = 0; i < first->ndim && fits; i++)
            fits = t->dims[i] == first->dims[i] || (!p->stack && i == axis);
        if (!fits || __builtin_add_overflow(dims[axis], p->stack ? 1 : t->dims[axis], &dims[axis])) {
            g_autofree char *a = hn_tensor_describe(first), *b = hn_tensor_describe(t);
            hn_eval_fail(e, HN_ERROR_SHAPE, "%s and %s of one sequence cannot be concatenated", a, b);
            return -1;
        }
    }
    return axis;
}

static void join_ref(HnEval *e)
{
    const Join *p = e->params;
    const HnTensor *list = hn_eval_sequence(e, 0);
    int64_t dims[HN_MAX_RANK];
    const int axis = list != NULL ? joined_dims(e, list, dims) : -1;
    if (axis < 0)
        return;
    const HnTensor *first = hn_tensor_get_item(list, 0);
    const int rank = first->ndim + (p->stack ? 1 : 0);
    const size_t size = hn_move_size(e, first->dtype);
    char *y = size > 0 ? hn_move_out(e, 0, first->dtype, rank, dims) : NULL;
    if (y == NULL)
        return;
    const int64_t outer = hn_span(dims, 0, axis), inner = hn_span(dims, axis + 1, rank);
    int64_t from = 0;
    for (int64_t k = 0; k < list->n; k++) {
        const HnTensor *t = hn_tensor_get_item(list, k);
        const int64_t n = p->stack ? 1 : t->dims[axis];
        const size_t run = (size_t)(n * inner) * size;
        for (int64_t o = 0; o < outer && run > 0; o++)
            memcpy(y + (size_t)((o * dims[axis] + from) * inner) * size, (const char *)t->data + (size_t)o * run, run);
        from += n;
    }
    hn_move_done(e, 0);
}

const HnOp hn_op_concatfromsequence = {
    .name = "ConcatFromSequence",
    .flags = HN_OP_DYNAMIC,
    .since = { 11 },
    .in = ".",
    .out = ".",
    .params_size = sizeof(Join),
    .bind = join_bind,
    .infer = join_infer,
    .cost = hn_cost_nothing,
    .ref = join_ref,
};
