/* Changes to models that stay readable, so that what is wrong is met by operators, inference and planning. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "op/op.h"

#define PICK(rng, list) ((list)[hn_rng_int(rng, 0, (int64_t)G_N_ELEMENTS(list) - 1)])

static int64_t odd_int(HnRng *rng)
{
    static const int64_t odd[] = { -1,
                                   0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   7,
                                   8,
                                   16,
                                   31,
                                   32,
                                   33,
                                   64,
                                   100,
                                   127,
                                   128,
                                   255,
                                   256,
                                   1000,
                                   65535,
                                   65536,
                                   G_MAXINT32,
                                   G_MININT32,
                                   (int64_t)G_MAXINT32 + 1,
                                   G_MAXUINT32,
                                   (int64_t)1 << 32,
                                   (int64_t)1 << 40,
                                   (int64_t)1 << 62,
                                   G_MAXINT64,
                                   G_MAXINT64 - 1,
                                   G_MININT64,
                                   G_MININT64 + 1,
                                   -2,
                                   -3,
                                   -5,
                                   -64 };
    return hn_rng_int(rng, 0, 1) ? hn_rng_int(rng, -4, 6) : PICK(rng, odd);
}

static double odd_float(HnRng *rng)
{
    static const double odd[] = { 0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  3,
                                  1e-45,
                                  1e38,
                                  -1e38,
                                  1e300,
                                  1e10,
                                  -1e10,
                                  NAN,
                                  INFINITY,
                                  -INFINITY,
                                  2147483648.0,
                                  4294967296.0,
                                  9223372036854775808.0,
                                  1e-7,
                                  128,
                                  255,
                                  256 };
    return hn_rng_int(rng, 0, 3) ? PICK(rng, odd) : hn_rng_normal(rng) * 10;
}

/* --- tensors -------------------------------------------------------------------------------------------------------
 */

static void set_odd(HnTensor *t, int64_t i, HnRng *rng)
{
    if (t->dtype == HN_BOOL)
        hn_tensor_set_i64(t, i, hn_rng_int(rng, 0, 1));
    else if (hn_dtype_in(t->dtype, HN_T_INTS))
        hn_tensor_set_i64(t, i, odd_int(rng));
    else if (t->dtype != HN_STRING)
        hn_tensor_set_f64(t, i, odd_float(rng));
}

/* Elements of t, as many as there are, again and again. */
static HnTensor *refilled(const HnTensor *t, HnDtype dtype, int ndim, const int64_t *dims)
{
    HnTensor *y = hn_tensor_new(dtype, ndim, dims, NULL, NULL);
    gboolean strings = y != NULL && (t->dtype == HN_STRING || dtype == HN_STRING);
    for (int64_t i = 0; y != NULL && t->n > 0 && i < y->n; i++) {
        if (!strings && dtype == HN_BOOL)
            hn_tensor_set_i64(y, i, hn_tensor_get_i64(t, i % t->n) != 0);
        else if (!strings && hn_dtype_in(t->dtype, HN_T_INTS) && hn_dtype_in(dtype, HN_T_INTS))
            hn_tensor_set_i64(y, i, hn_tensor_get_i64(t, i % t->n));
        else if (!strings)
            hn_tensor_set_f64(y, i, hn_tensor_get_f64(t, i % t->n));
        else if (t->dtype == dtype)
            hn_tensor_set_string(y, i, hn_tensor_get_string(t, i % t->n));
    }
    return y;
}

static HnTensor *other_dims(const HnTensor *t, HnRng *rng)
{
    int64_t dims[HN_MAX_RANK + 1], n;
    int ndim = MIN(t->ndim, HN_MAX_RANK), at = ndim > 0 ? (int)hn_rng_int(rng, 0, ndim - 1) : 0;
    memcpy(dims, t->dims, (size_t)ndim * sizeof *dims);
    int64_t what = hn_rng_int(rng, 0, 5);
    if (what == 0 && ndim > 0) { /* one axis less */
        memmove(dims + at, dims + at + 1, (size_t)(ndim - at - 1) * sizeof *dims);
        ndim--;
    } else if (what == 1 && ndim < HN_MAX_RANK) { /* one more */
        memmove(dims + at + 1, dims + at, (size_t)(ndim - at) * sizeof *dims);
        dims[at] = hn_rng_int(rng, 0, 2);
        ndim++;
    } else if (what == 2 && ndim > 1) {
        int64_t d = dims[at];
        dims[at] = dims[ndim - 1];
        dims[ndim - 1] = d;
    } else if (ndim > 0) {
        const int64_t d = what == 3 ? dims[at] + hn_rng_int(rng, -1, 1) : hn_rng_int(rng, 0, 9);
        dims[at] = MAX(0, d);
    }
    if (!hn_dims_count(ndim, dims, &n) || n > 100000)
        return NULL;
    return refilled(t, t->dtype, ndim, dims);
}

static HnTensor *other_elements(const HnTensor *t, HnRng *rng)
{
    HnTensor *y = hn_tensor_copy(t, NULL, NULL);
    gboolean all = hn_rng_int(rng, 0, 7) == 0;
    for (int64_t i = 0; y != NULL && all && i < y->n; i++)
        set_odd(y, i, rng);
    for (int64_t i = hn_rng_int(rng, 1, 3); y != NULL && y->n > 0 && i > 0; i--)
        set_odd(y, hn_rng_int(rng, 0, y->n - 1), rng);
    return y;
}

/* NULL: as it was. */
static HnTensor *other_tensor(const HnTensor *t, HnRng *rng)
{
    if (t->n > 100000 || t->unloaded)
        return NULL;
    switch (hn_rng_int(rng, 0, 3)) {
    case 0:
        return other_dims(t, rng);
    case 1:
        return t->ndim <= HN_MAX_RANK && hn_dtype_bits(t->dtype) > 0
                   ? refilled(t, (HnDtype)hn_rng_int(rng, 1, HN_DTYPE_COUNT - 1), t->ndim, t->dims)
                   : NULL;
    default:
        return other_elements(t, rng);
    }
}

static void change_weight(HnGraph *g, HnRng *rng)
{
    if (g->weights->len == 0)
        return;
    HnValue *v = g->weights->pdata[hn_rng_int(rng, 0, g->weights->len - 1)];
    HnTensor *t = v->weight != NULL ? other_tensor(v->weight, rng) : NULL;
    if (t == NULL)
        return;
    hn_graph_add_weight(g, v, t);
    if (v->type != NULL) {
        g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->ndim, t->dims);
        hn_value_set_type(v, type);
    }
    hn_tensor_unref(t);
}

/* A weight of the main graph as an initializer that is an input as well: its elements may come at run time then. */
static void feed_weight(HnGraph *g, HnRng *rng)
{
    if (g->weights->len == 0)
        return;
    HnValue *v = g->weights->pdata[hn_rng_int(rng, 0, g->weights->len - 1)];
    if (v->weight == NULL || v->is_input || v->is_output)
        return;
    g_autoptr(HnType) type = hn_type_fixed(v->weight->dtype, v->weight->ndim, v->weight->dims);
    hn_value_set_type(v, type);
    hn_graph_add_input(g, v);
}

/* --- types of inputs -----------------------------------------------------------------------------------------------
 */

static void change_input(HnGraph *g, HnRng *rng)
{
    if (g->inputs->len == 0)
        return;
    HnValue *v = g->inputs->pdata[hn_rng_int(rng, 0, g->inputs->len - 1)];
    const HnType *t = v->type;
    HnDim dims[HN_MAX_RANK];
    if (v->weight != NULL || t == NULL || t->kind != HN_TYPE_TENSOR || t->rank > HN_MAX_RANK - 1)
        return;
    HnDtype dtype = t->dtype;
    int rank = t->rank;
    if (rank > 0)
        memcpy(dims, t->dims, (size_t)rank * sizeof *dims);
    switch (hn_rng_int(rng, 0, 4)) {
    case 0:
        dtype = (HnDtype)hn_rng_int(rng, 1, HN_DTYPE_COUNT - 1);
        break;
    case 1:
        rank = -1;
        break;
    case 2:
        rank = MAX(rank, 0);
        dims[rank++] = hn_dim(hn_rng_int(rng, 0, 4));
        break;
    case 3:
        rank -= rank > 0;
        break;
    default:
        if (rank > 0) {
            const int64_t at = hn_rng_int(rng, 0, rank - 1), n = odd_int(rng);
            dims[at] = hn_rng_int(rng, 0, 3) ? hn_dim(MAX(0, n)) : hn_dim_unknown();
        }
    }
    g_autoptr(HnType) type = hn_type_tensor(dtype, rank, dims);
    hn_value_set_type(v, type);
}

/* --- attributes ----------------------------------------------------------------------------------------------------
 */

static void change_ints(HnNode *n, const HnAttr *a, HnRng *rng)
{
    g_autofree int64_t *v = g_new(int64_t, (gsize)a->n + 2);
    g_autofree char *name = g_strdup(a->name);
    int64_t len = a->n;
    if (len > 0)
        memcpy(v, a->ints, (size_t)len * sizeof *v);
    int64_t what = hn_rng_int(rng, 0, 6);
    if (what == 0)
        len = 0;
    else if (what == 1 && len > 0)
        len--;
    else if (what == 2)
        v[len++] = odd_int(rng);
    for (int64_t i = 0; what == 3 && i < len; i++)
        v[i] = odd_int(rng);
    if (len > 0)
        v[hn_rng_int(rng, 0, len - 1)] = odd_int(rng);
    hn_node_set_ints(n, name, v, len);
}

static void change_attr(HnNode *n, HnRng *rng)
{
    static const char *const words[] = { "",      "VALID",         "SAME_UPPER", "linear",    "cubic",   "nearest",
                                         "none",  "add",           "mul",        "constant",  "reflect", "edge",
                                         "wrap",  "bidirectional", "reverse",    "avg",       "max",     "...ij->ji",
                                         "ij,jk", "i->ii",         "half_pixel", "asymmetric" };
    if (n->attrs->len == 0)
        return;
    HnAttr *a = n->attrs->pdata[hn_rng_int(rng, 0, n->attrs->len - 1)];
    g_autofree char *name = g_strdup(a->name);
    if (hn_rng_int(rng, 0, 9) == 0) {
        hn_node_remove_attr(n, name);
        return;
    }
    double x;
    HnTensor *t;
    switch (a->kind) {
    case HN_ATTR_INT:
        hn_node_set_int(n, name, odd_int(rng));
        break;
    case HN_ATTR_FLOAT:
        x = odd_float(rng);
        hn_node_set_float(n, name, (float)CLAMP(x, -3e38, 3e38));
        break;
    case HN_ATTR_STRING:
        hn_node_set_string(n, name, PICK(rng, words));
        break;
    case HN_ATTR_INTS:
        change_ints(n, a, rng);
        break;
    case HN_ATTR_FLOATS:
        if (a->n > 0)
            a->floats[hn_rng_int(rng, 0, a->n - 1)] = (float)odd_float(rng);
        break;
    case HN_ATTR_TENSOR:
        t = other_tensor(a->t, rng);
        if (t != NULL) {
            hn_tensor_unref(a->t);
            a->t = t;
        }
        break;
    default:
        break;
    }
}

static void add_attr(HnNode *n, HnRng *rng)
{
    static const char *const ints[] = { "axis",
                                        "keepdims",
                                        "noop_with_empty_axes",
                                        "group",
                                        "ceil_mode",
                                        "to",
                                        "exclusive",
                                        "block_size",
                                        "blocksize",
                                        "select_last_index",
                                        "allowzero",
                                        "num_outputs",
                                        "start",
                                        "end",
                                        "largest",
                                        "sorted",
                                        "count_include_pad",
                                        "storage_order",
                                        "transA",
                                        "transB",
                                        "is_causal",
                                        "q_num_heads",
                                        "kv_num_heads",
                                        "stash_type",
                                        "batch_dims",
                                        "fmod",
                                        "align_corners",
                                        "hidden_size",
                                        "layout",
                                        "training_mode",
                                        "consumed_inputs",
                                        "broadcast",
                                        "saturate",
                                        "output_dtype",
                                        "dtype",
                                        "upper",
                                        "detect_positive",
                                        "num_scan_inputs",
                                        "interleaved",
                                        "rotary_embedding_dim",
                                        "p",
                                        "size" };
    static const char *const lists[] = { "axes",
                                         "pads",
                                         "strides",
                                         "dilations",
                                         "kernel_shape",
                                         "perm",
                                         "output_padding",
                                         "output_shape",
                                         "starts",
                                         "ends",
                                         "scan_input_axes",
                                         "scan_output_axes",
                                         "scan_input_directions",
                                         "split",
                                         "shape",
                                         "value_ints" };
    int64_t v[6];
    if (hn_rng_int(rng, 0, 1)) {
        hn_node_set_int(n, PICK(rng, ints), odd_int(rng));
        return;
    }
    int64_t len = hn_rng_int(rng, 0, 6);
    for (int64_t i = 0; i < len; i++)
        v[i] = odd_int(rng);
    hn_node_set_ints(n, PICK(rng, lists), v, len);
}

/* --- nodes ---------------------------------------------------------------------------------------------------------
 */

static void collect(HnNode *n, gpointer data)
{
    g_ptr_array_add(data, n);
}

static HnNode *any_node(HnModel *m, HnRng *rng)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    hn_graph_foreach_node(m->graph, collect, nodes);
    return nodes->len > 0 ? nodes->pdata[hn_rng_int(rng, 0, nodes->len - 1)] : NULL;
}

static void change_inputs(HnNode *n, HnRng *rng)
{
    if (n->in->len == 0)
        return;
    int i = (int)hn_rng_int(rng, 0, n->in->len - 1), k = (int)hn_rng_int(rng, 0, n->in->len - 1);
    HnValue *a = hn_node_in(n, i), *b = hn_node_in(n, k);
    switch (hn_rng_int(rng, 0, 3)) {
    case 0:
        hn_node_set_in(n, i, NULL);
        break;
    case 1:
        hn_node_set_in(n, i, b);
        hn_node_set_in(n, k, a);
        break;
    case 2:
        hn_node_set_in(n, i, b);
        break;
    default:
        hn_node_add_in(n, a);
    }
}

static void change_outputs(HnNode *n, HnRng *rng)
{
    int64_t what = hn_rng_int(rng, 0, 2);
    HnValue *v = hn_node_out(n, 0);
    if (what == 0)
        hn_node_add_out(n, NULL);
    else if (what == 1)
        hn_node_add_out(n, hn_graph_new_value(n->graph, "more"));
    else if (v != NULL && v->users->len == 0 && n->out->len > 1 && !v->is_output)
        hn_node_set_out(n, 0, NULL);
}

static void change_operator(HnNode *n, HnRng *rng)
{
    const HnOp *const *all = hn_op_all();
    int64_t count = 0;
    while (all[count] != NULL)
        count++;
    const HnOp *op = all[hn_rng_int(rng, 0, count - 1)];
    if (op->domain != NULL)
        return;
    g_free(n->op_type);
    n->op_type = g_strdup(op->name);
}

static void change_once(HnModel *m, HnRng *rng)
{
    HnNode *n = any_node(m, rng);
    int64_t what = hn_rng_int(rng, 0, 21);
    if (what < 6)
        change_weight(n != NULL && hn_rng_int(rng, 0, 1) ? n->graph : m->graph, rng);
    else if (what < 8)
        change_input(m->graph, rng);
    else if (what == 8)
        hn_model_set_opset(m, "", hn_rng_int(rng, 1, HN_OPSET_MAX));
    else if (what >= 20)
        feed_weight(m->graph, rng);
    else if (n == NULL)
        return;
    else if (what < 14)
        change_attr(n, rng);
    else if (what == 14)
        add_attr(n, rng);
    else if (what < 17)
        change_inputs(n, rng);
    else if (what == 17)
        change_outputs(n, rng);
    else if (hn_rng_int(rng, 0, 2) == 0)
        change_operator(n, rng);
}

void fuzz_mutate(HnModel *m, HnRng *rng)
{
    for (int64_t i = hn_rng_int(rng, 1, 4); i > 0; i--)
        change_once(m, rng);
}
