/*
 * Unique: the different elements, or the different slices along an axis, in ascending order or in the order in which
 * they first occur. NaNs are one value, larger than all others.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "op/move.h"
#include "op/types.h"

typedef struct {
    gboolean flat, sorted;
    int64_t axis;
} HnUnique;

static void unique_bind(HnBind *b, void *params)
{
    HnUnique *p = params;
    p->flat = !hn_bind_has(b, "axis");
    p->axis = hn_bind_int(b, "axis", 0);
    p->sorted = hn_bind_bool(b, "sorted", TRUE);
}

static void unique_infer(HnInfer *x)
{
    const HnUnique *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK], unknown = hn_dim_unknown(), count = unknown;
    if (p->flat) {
        count = rank >= 0 ? hn_dim(1) : unknown;
        for (int a = 0; a < rank; a++)
            count = hn_dim_mul(count, hn_infer_dim(x, 0, a));
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), 1, &unknown);
    } else if (rank >= 0) {
        int axis = hn_infer_axis(x, p->axis, rank);
        count = hn_infer_dim(x, 0, axis);
        for (int a = 0; a < rank; a++)
            dims[a] = a == axis ? unknown : hn_infer_dim(x, 0, a);
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
    } else {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
    }
    for (int k = 1; k < 4; k++)
        hn_infer_out(x, k, HN_I64, 1, k == 2 ? &count : &unknown);
}

/* The input as [outer, n, inner]: slice i is what has i in the middle. */
typedef struct Slices Slices;
struct Slices {
    const void *x;
    int64_t outer, n, inner;
    int (*compare)(const Slices *s, int64_t a, int64_t b);
};

#define DEFINE_COMPARE(T)                                                                     \
    static int compare_##T(const Slices *s, int64_t a, int64_t b)                             \
    {                                                                                         \
        const T *x = s->x;                                                                    \
        for (int64_t o = 0; o < s->outer; o++)                                                \
            for (int64_t i = 0; i < s->inner; i++) {                                          \
                T v = x[(o * s->n + a) * s->inner + i], w = x[(o * s->n + b) * s->inner + i]; \
                if (v < w || (w != w && v == v))                                              \
                    return -1;                                                                \
                if (v > w || (v != v && w == w))                                              \
                    return 1;                                                                 \
            }                                                                                 \
        return 0;                                                                             \
    }
DEFINE_COMPARE(float)
DEFINE_COMPARE(double)
DEFINE_COMPARE(int8_t)
DEFINE_COMPARE(uint8_t)
DEFINE_COMPARE(int16_t)
DEFINE_COMPARE(uint16_t)
DEFINE_COMPARE(int32_t)
DEFINE_COMPARE(uint32_t)
DEFINE_COMPARE(int64_t)
DEFINE_COMPARE(uint64_t)

static int compare_string(const Slices *s, int64_t a, int64_t b)
{
    GBytes *const *x = s->x;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            int c = g_bytes_compare(x[(o * s->n + a) * s->inner + i], x[(o * s->n + b) * s->inner + i]);
            if (c != 0)
                return c;
        }
    return 0;
}

/* Indices by value, those of equal slices in their order. */
static int compare_indices(const void *a, const void *b, void *data)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int c = ((const Slices *)data)->compare(data, i, j);
    return c != 0 ? c : i < j ? -1 : i > j;
}

static gboolean slices_open(HnEval *e, Slices *s)
{
    const HnUnique *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int axis = p->flat ? 0 : hn_eval_axis(e, p->axis, x->ndim);
    if (axis < 0)
        return FALSE;
    *s = (Slices){ x->data, 1, x->n, 1, NULL };
    if (!p->flat) {
        s->outer = hn_span(x->dims, 0, axis);
        s->n = x->dims[axis];
        s->inner = hn_span(x->dims, axis + 1, x->ndim);
    }
    if (x->n == 0 && s->n > 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "slices without elements cannot be compared");
        return FALSE;
    }
#define CHOOSE(T) s->compare = compare_##T;
    switch (x->dtype) {
        HN_CASE(HN_BOOL, uint8_t, CHOOSE)
    case HN_STRING:
        s->compare = compare_string;
        break;
    default:
        HN_FOR_NUM(x->dtype, CHOOSE)
        break;
    }
#undef CHOOSE
    if (s->compare == NULL)
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "elements of type %s cannot be ordered", hn_dtype_name(x->dtype));
    return s->compare != NULL;
}

/* Group g of equal slices: its first index and how many. */
typedef struct {
    int64_t first, count, sorted_place;
} Group;

static int compare_groups(const void *a, const void *b)
{
    const Group *g = a, *h = b;
    return g->first < h->first ? -1 : g->first > h->first;
}

static void unique_write(HnEval *e, const Slices *s, const Group *g, int64_t m, const int64_t *inverse)
{
    const HnUnique *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    size_t size = hn_move_size(e, x->dtype);
    int64_t dims[HN_MAX_RANK] = { m };
    for (int a = 0; a < x->ndim && !p->flat; a++)
        dims[a] = a == (p->axis < 0 ? p->axis + x->ndim : p->axis) ? m : x->dims[a];
    char *y = hn_move_out(e, 0, x->dtype, p->flat ? 1 : x->ndim, dims);
    if (y == NULL)
        return;
    size_t run = (size_t)s->inner * size;
    for (int64_t o = 0; o < s->outer && x->n > 0; o++)
        for (int64_t i = 0; i < m; i++, y += run)
            memcpy(y, (const char *)s->x + (size_t)(o * s->n + g[i].first) * run, run);
    hn_move_done(e, 0);
    for (int k = 1; k < 4; k++) {
        int64_t n = k == 2 ? s->n : m, *v = hn_eval_wants(e, k) ? hn_eval_out(e, k, HN_I64, 1, &n) : NULL;
        for (int64_t i = 0; v != NULL && i < n; i++)
            v[i] = k == 1 ? g[i].first : k == 2 ? inverse[i] : g[i].count;
    }
}

static void unique_ref(HnEval *e)
{
    const HnUnique *p = e->params;
    Slices s;
    if (!slices_open(e, &s))
        return;
    int64_t m = 0, *order = hn_eval_scratch(e, s.n, sizeof *order);
    int64_t *inverse = order != NULL ? hn_eval_scratch(e, s.n, sizeof *inverse) : NULL;
    int64_t *place = inverse != NULL ? hn_eval_scratch(e, s.n, sizeof *place) : NULL;
    Group *g = place != NULL ? hn_eval_scratch(e, s.n, sizeof *g) : NULL;
    if (g != NULL) {
        for (int64_t i = 0; i < s.n; i++)
            order[i] = i;
        qsort_r(order, (size_t)s.n, sizeof *order, compare_indices, &s);
        for (int64_t i = 0; i < s.n; i++) {
            if (i == 0 || s.compare(&s, order[i - 1], order[i]) != 0) {
                g[m] = (Group){ order[i], 0, m };
                m++;
            }
            g[m - 1].count++;
            inverse[order[i]] = m - 1;
        }
        if (!p->sorted) {
            qsort(g, (size_t)m, sizeof *g, compare_groups);
            for (int64_t i = 0; i < m; i++)
                place[g[i].sorted_place] = i;
            for (int64_t i = 0; i < s.n; i++)
                inverse[i] = place[inverse[i]];
        }
        unique_write(e, &s, g, m, inverse);
    }
    hn_eval_scratch_free(e, g);
    hn_eval_scratch_free(e, place);
    hn_eval_scratch_free(e, inverse);
    hn_eval_scratch_free(e, order);
}

const HnOp hn_op_unique = {
    .name = "Unique",
    .flags = HN_OP_DYNAMIC | HN_OP_HALF_VIA_F32,
    .since = { 11, 28 },
    .lacks = HN_LACKS(HN_BF16_SINCE(28)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "Tiii",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnUnique),
    .bind = unique_bind,
    .infer = unique_infer,
    .ref = unique_ref,
};
