/*
 * Resize and Upsample: every element of the output is one element (nearest) or a weighted mean (linear, cubic) of the
 * input around a place that `coordinate_transformation_mode` finds, axis by axis. Upsample, and Resize of opset 10,
 * know only x / scale. Without `sizes` an axis becomes floor(size * scale), also where roi says more: all
 * implementations agree on that.
 */
#include "op/resize.h"

#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/types.h"

void hn_resize_bind(HnBind *b, int64_t version, HnResize *p)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", NULL };
    static const char *const places[] = { "half_pixel",         "half_pixel_symmetric",
                                          "pytorch_half_pixel", "tf_half_pixel_for_nn",
                                          "align_corners",      "asymmetric",
                                          "tf_crop_and_resize", NULL };
    static const char *const rounds[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL };
    static const char *const policies[] = { "stretch", "not_larger", "not_smaller", NULL };
    p->mode = (HnResizeMode)hn_bind_word(b, "mode", modes, HN_RESIZE_NEAREST);
    if (version < 11) {
        *p = (HnResize){
            .mode = p->mode, .place = HN_RESIZE_ASYMMETRIC, .round = HN_RESIZE_OLD, .roi = -1, .scales = 1, .sizes = -1
        };
        return;
    }
    p->roi = 1;
    p->scales = 2;
    p->sizes = 3;
    p->place = (HnResizePlace)hn_bind_word(b, "coordinate_transformation_mode", places, HN_RESIZE_HALF_PIXEL);
    p->round = (HnResizeRound)hn_bind_word(b, "nearest_mode", rounds, HN_RESIZE_PREFER_FLOOR);
    p->exclude_outside = hn_bind_bool(b, "exclude_outside", FALSE);
    p->cubic_a = hn_bind_float(b, "cubic_coeff_a", -0.75F);
    p->extrapolation = hn_bind_float(b, "extrapolation_value", 0);
    if (version < 18)
        return;
    p->policy = (HnResizePolicy)hn_bind_word(b, "keep_aspect_ratio_policy", policies, HN_RESIZE_STRETCH);
    p->antialias = hn_bind_bool(b, "antialias", FALSE);
    p->axes = hn_bind_ints(b, "axes", &p->n_axes);
    if (p->antialias && p->mode == HN_RESIZE_NEAREST)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'antialias' does not go with mode 'nearest'");
}

static void resize_bind(HnBind *b, void *params)
{
    hn_resize_bind(b, b->version, params);
}

static void upsample_bind(HnBind *b, void *params)
{
    static const char *const modes[] = { "nearest", "linear", "bilinear", NULL };
    HnResize *p = params;
    *p = (HnResize){ .place = HN_RESIZE_ASYMMETRIC, .round = HN_RESIZE_OLD, .roi = -1, .scales = -1, .sizes = -1 };
    p->mode = hn_bind_word(b, "mode", modes, 0) == 0 ? HN_RESIZE_NEAREST : HN_RESIZE_LINEAR;
    if (b->version >= 9) {
        p->scales = 1;
        if (hn_node_in(b->node, 1) == NULL)
            hn_bind_fail(b, HN_ERROR_GRAPH, "input 1 is missing");
    } else if (b->version >= 7) {
        hn_bind_require(b, "scales");
        p->list = hn_bind_floats(b, "scales", &p->n_list);
    } else {
        hn_bind_require(b, "height_scale");
        hn_bind_require(b, "width_scale");
        p->height = hn_bind_float(b, "height_scale", 1);
        p->width = hn_bind_float(b, "width_scale", 1);
    }
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

/* What the inputs and attributes ask for; `on` maps the place in a list to an axis. */
typedef struct {
    int rank, n, on[HN_MAX_RANK];
    gboolean by_size;
    float scale[HN_MAX_RANK];  /* n of them, when not by_size */
    int64_t size[HN_MAX_RANK]; /* n of them, when by_size */
} Request;

static gboolean request_axes(const HnResize *p, int rank, Request *r, GError **error)
{
    r->rank = r->n = rank;
    for (int i = 0; i < rank; i++)
        r->on[i] = i;
    if (p->axes == NULL)
        return TRUE;
    r->n = (int)MIN(p->n_axes, HN_MAX_RANK);
    for (int i = 0; i < r->n; i++) {
        int64_t axis = p->axes[i] < 0 ? p->axes[i] + rank : p->axes[i];
        if (axis < 0 || axis >= rank || p->n_axes > rank) {
            g_set_error(error, HN_ERROR, HN_ERROR_ATTRIBUTE, "axis %" PRId64 " is outside [-%d, %d)", p->axes[i], rank,
                        rank);
            return FALSE;
        }
        r->on[i] = (int)axis;
    }
    return TRUE;
}

static gboolean request_count(const Request *r, int64_t n, const char *what, GError **error)
{
    if (n == r->n)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "%" PRId64 " %s are given for %d axes", n, what, r->n);
    return FALSE;
}

/* From the scales input (NULL: none) or the attributes. FALSE without error: no scales are known. */
static gboolean request_scales(const HnResize *p, const HnTensor *t, Request *r, GError **error)
{
    const float *v = p->list;
    int64_t n = p->n_list;
    float own[4] = { 1, 1, p->height, p->width };
    if (p->height > 0 || p->width > 0) {
        v = own;
        n = 4;
    } else if (t != NULL) {
        v = t->dtype == HN_F32 ? t->data : NULL;
        n = t->n;
    }
    if (v == NULL || !request_count(r, n, "scales", error))
        return FALSE;
    for (int i = 0; i < r->n; i++) {
        r->scale[i] = v[i];
        if (!(v[i] > 0) || !isfinite(v[i])) {
            g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "scale %d is not a positive number", i);
            return FALSE;
        }
    }
    return TRUE;
}

/* Sizes and scales of all axes. */
static gboolean resolve(const HnResize *p, const Request *r, const int64_t *in, double *scale, int64_t *out,
                        GError **error)
{
    for (int i = 0; i < r->rank; i++) {
        scale[i] = 1;
        out[i] = in[i];
    }
    double common = p->policy == HN_RESIZE_NOT_LARGER ? INFINITY : 0;
    for (int i = 0; i < r->n; i++) {
        int a = r->on[i];
        if (r->by_size) {
            out[a] = r->size[i];
            scale[a] = in[a] > 0 ? (double)out[a] / (double)in[a] : 1;
            common = p->policy == HN_RESIZE_NOT_LARGER ? MIN(common, scale[a]) : MAX(common, scale[a]);
        } else { /* in single precision: 0.7 of 10 are meant to be 7 */
            float size = floorf((float)in[a] * r->scale[i]);
            scale[a] = (double)r->scale[i];
            out[a] = size < 0x1p62F ? (int64_t)size : -1;
        }
    }
    for (int i = 0; r->by_size && p->policy != HN_RESIZE_STRETCH && i < r->n; i++) {
        int a = r->on[i];
        double size = floor(common * (double)in[a] + 0.5);
        scale[a] = common;
        out[a] = size < 0x1p62 ? (int64_t)size : -1;
    }
    for (int i = 0; i < r->rank; i++)
        if (out[i] < 0 || (in[i] == 0 && out[i] > 0)) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "axis %d of size %" PRId64 " cannot be resized", i, in[i]);
            return FALSE;
        }
    return TRUE;
}

static HnDim scaled(HnDim in, float scale)
{
    float inverse = 1 / scale;
    if (scale == 1)
        return in;
    if (in.known) {
        float size = floorf((float)in.n * scale);
        return size < 0x1p62F ? hn_dim((int64_t)size) : hn_dim_unknown();
    }
    if (scale < 0x1p24F && scale == floorf(scale))
        return hn_dim_mul(in, hn_dim((int64_t)scale));
    if (inverse < 0x1p24F && inverse == floorf(inverse) && frexpf(inverse, &(int){ 0 }) == 0.5F) /* a power of two */
        return hn_dim_floor_div(in, hn_dim((int64_t)inverse));
    return hn_dim_unknown();
}

static gboolean uses_sizes(const HnInfer *x, const HnResize *p)
{
    if (p->sizes < 0 || !hn_infer_has(x, p->sizes))
        return FALSE;
    return !(x->value[p->sizes] != NULL && x->value[p->sizes]->n == 0);
}

/* Sizes that are known as dimensions; with a policy only when all numbers are known. */
static void infer_sizes(HnInfer *x, Request *r, HnDim *dims)
{
    const HnResize *p = x->params;
    const HnContents *c = x->contents[p->sizes];
    int64_t in[HN_MAX_RANK] = { 0 }, out[HN_MAX_RANK];
    double scale[HN_MAX_RANK];
    gboolean all = c != NULL;
    for (int i = 0; i < r->rank; i++)
        in[i] = dims[i].known ? dims[i].n : 1;
    for (int i = 0; i < r->n; i++) {
        all = all && dims[r->on[i]].known;
        dims[r->on[i]] = hn_dim_unknown();
    }
    if (c == NULL || !request_count(r, c->n, "sizes", &x->error))
        return;
    for (int i = 0; i < r->n; i++) {
        all = all && c->d[i].known;
        r->size[i] = c->d[i].n;
        if (c->d[i].known && c->d[i].n < 0) {
            hn_infer_fail(x, HN_ERROR_VALUE, "size %" PRId64 " is negative", c->d[i].n);
            return;
        }
        if (p->policy == HN_RESIZE_STRETCH)
            dims[r->on[i]] = c->d[i];
    }
    r->by_size = TRUE;
    if (p->policy == HN_RESIZE_STRETCH || !all || !resolve(p, r, in, scale, out, &x->error))
        return;
    for (int i = 0; i < r->n; i++)
        dims[r->on[i]] = hn_dim(out[r->on[i]]);
}

static void resize_infer(HnInfer *x)
{
    const HnResize *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    Request r = { 0 };
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (!request_axes(p, rank, &r, &x->error))
        return;
    for (int i = 0; i < rank; i++)
        dims[i] = hn_infer_dim(x, 0, i);
    if (uses_sizes(x, p)) {
        infer_sizes(x, &r, dims);
    } else {
        const HnTensor *t = p->scales >= 0 && p->scales < x->n_in ? x->value[p->scales] : NULL;
        gboolean known = request_scales(p, t, &r, &x->error);
        for (int i = 0; i < r.n && x->error == NULL; i++)
            dims[r.on[i]] = known ? scaled(dims[r.on[i]], r.scale[i]) : hn_dim_unknown();
    }
    if (x->error == NULL)
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static void resize_cost(const HnInfer *x, HnCost *c)
{
    const HnResize *p = x->params;
    c->flops = hn_type_count(x->out[0]) * (p->mode == HN_RESIZE_NEAREST ? 0 : p->mode == HN_RESIZE_LINEAR ? 8 : 32);
}

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Where output y comes from. The nearest element is looked for in single precision, as everybody does: exact halves and
 * whole numbers must come out as such from scales that are not exact. */
#define DEFINE_ORIGIN(T)                                                                              \
    static T origin_##T(const HnResizeAxis *a, HnResizePlace place, int64_t y)                        \
    {                                                                                                 \
        T v = (T)y, scale = (T)a->scale, last = (T)(a->in - 1), length = (T)a->length, half = (T)0.5; \
        switch (place) {                                                                              \
        case HN_RESIZE_HALF_SYMMETRIC:                                                                \
            return (T)a->in / 2 * (1 - (T)a->out / length) + (v + half) / scale - half;               \
        case HN_RESIZE_HALF_PYTORCH:                                                                  \
            return a->out > 1 ? (v + half) / scale - half : 0;                                        \
        case HN_RESIZE_HALF_NEAREST:                                                                  \
            return (v + half) / scale;                                                                \
        case HN_RESIZE_ALIGN_CORNERS:                                                                 \
            return length == 1 ? 0 : v * last / (length - 1);                                         \
        case HN_RESIZE_ASYMMETRIC:                                                                    \
            return v / scale;                                                                         \
        case HN_RESIZE_CROP:                                                                          \
            if (a->out == 1)                                                                          \
                return (T)(a->start + a->end) * half * last;                                          \
            return (T)a->start * last + v * (T)(a->end - a->start) * last / (length - 1);             \
        default:                                                                                      \
            return (v + half) / scale - half;                                                         \
        }                                                                                             \
    }
DEFINE_ORIGIN(float)
DEFINE_ORIGIN(double)

int64_t hn_resize_nearest(const HnResize *p, const HnResizeAxis *a, int64_t y)
{
    double x = (double)origin_float(a, p->place, y), k;
    if (p->place == HN_RESIZE_CROP && !(x >= 0 && x <= (double)(a->in - 1)))
        return -1;
    switch (p->round) {
    case HN_RESIZE_PREFER_FLOOR:
        k = ceil(x - 0.5);
        break;
    case HN_RESIZE_PREFER_CEIL:
        k = floor(x + 0.5);
        break;
    case HN_RESIZE_UP:
        k = ceil(x);
        break;
    case HN_RESIZE_OLD:
        k = a->scale < 1 ? ceil(x) : floor(x);
        break;
    default:
        k = floor(x);
        break;
    }
    return k >= (double)a->in ? a->in - 1 : k > 0 ? (int64_t)k : 0;
}

static void nearest_run(const HnResize *p, const HnTensor *x, int rank, const HnResizeAxis *axis, const int64_t *table,
                        void *out)
{
    int64_t idx[HN_MAX_RANK] = { 0 }, inner = axis[rank - 1].out, rows = 1;
    const int64_t *column = table;
    for (int i = 0; i < rank - 1; i++) {
        rows *= axis[i].out;
        column += axis[i].out;
    }
    HnTensor *fill = hn_tensor_new_borrowed(x->dtype, 0, NULL, &(uint64_t){ 0 });
    hn_tensor_set_f64(fill, 0, (double)p->extrapolation);
    for (int64_t r = 0; r < rows; r++) {
        int64_t base = 0;
        gboolean outside = FALSE;
        const int64_t *t = table;
        for (int i = 0; i < rank - 1; i++) {
            int64_t k = t[idx[i]];
            outside = outside || k < 0;
            base = base * axis[i].in + MAX(0, k);
            t += axis[i].out;
        }
#define RUN(T)                                                     \
    const T *from = (const T *)x->data + base * axis[rank - 1].in; \
    T *to = (T *)out + r * inner, other = *(const T *)fill->data;  \
    for (int64_t i = 0; i < inner; i++)                            \
        to[i] = outside || column[i] < 0 ? other : from[column[i]];
        HN_FOR_SIZE(hn_dtype_size(x->dtype), RUN)
#undef RUN
        for (int i = rank - 2; i >= 0 && ++idx[i] == axis[i].out; i--)
            idx[i] = 0;
    }
    hn_tensor_unref(fill);
}

static void nearest_ref(HnEval *e, const HnTensor *x, int rank, const HnResizeAxis *axis, void *out)
{
    int64_t n = 0;
    for (int i = 0; i < rank; i++)
        n += axis[i].out;
    int64_t *table = hn_eval_scratch(e, n, sizeof *table), *t = table;
    if (table == NULL)
        return;
    for (int i = 0; i < rank; i++)
        for (int64_t y = 0; y < axis[i].out; y++)
            *t++ = hn_resize_nearest(e->params, &axis[i], y);
    nearest_run(e->params, x, rank, axis, table, out);
    hn_eval_scratch_free(e, table);
}

/* --- means ------------------------------------------------------------------------------------------------------- */

/* Weight of an element at distance d >= 0. */
static double kernel(const HnResize *p, double d)
{
    double a = (double)p->cubic_a;
    if (p->mode == HN_RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static double radius_of(const HnResize *p, const HnResizeAxis *a)
{
    return (p->mode == HN_RESIZE_CUBIC ? 2 : 1) / (p->antialias ? MIN(a->scale, 1) : 1);
}

int64_t hn_resize_taps(const HnResize *p, const HnResizeAxis *a)
{
    double radius = radius_of(p, a);
    return radius <= 0x1p40 ? (int64_t)ceil(2 * radius) : -1;
}

gboolean hn_resize_weights(const HnResize *p, const HnResizeAxis *a, int64_t y, int64_t *first, double *w)
{
    double x = origin_double(a, p->place, y), shrink = p->antialias ? MIN(a->scale, 1) : 1, sum = 0;
    int64_t width = hn_resize_taps(p, a);
    if (p->place == HN_RESIZE_CROP && !(x >= 0 && x <= (double)(a->in - 1)))
        return FALSE;
    x = CLAMP(x, -0x1p50, 0x1p50);
    *first = (int64_t)floor(x - radius_of(p, a)) + 1;
    for (int64_t k = 0; k < width; k++) {
        int64_t i = *first + k;
        w[k] = kernel(p, fabs((double)i - x) * shrink);
        if (p->exclude_outside && (i < 0 || i >= a->in))
            w[k] = 0;
        sum += w[k];
    }
    for (int64_t k = 0; (p->antialias || p->exclude_outside) && sum != 0 && k < width; k++)
        w[k] /= sum;
    return TRUE;
}

/* from [outer, in, inner] to [outer, out, inner] */
static gboolean mean_pass(HnEval *e, const HnResizeAxis *a, int64_t outer, int64_t inner, const double *from,
                          double *to)
{
    const HnResize *p = e->params;
    int64_t width = hn_resize_taps(p, a), first = 0;
    if (width < 0) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "scale %g is too small", a->scale);
        return FALSE;
    }
    double *w = hn_eval_scratch(e, width, sizeof *w);
    if (w == NULL)
        return FALSE;
    for (int64_t y = 0; y < a->out; y++) {
        gboolean outside = !hn_resize_weights(p, a, y, &first, w);
        for (int64_t o = 0; o < outer; o++) {
            double *t = to + (o * a->out + y) * inner;
            for (int64_t i = 0; i < inner; i++)
                t[i] = outside ? (double)p->extrapolation : 0;
            for (int64_t k = 0; !outside && k < width; k++) {
                const double *f = from + (o * a->in + CLAMP(first + k, 0, a->in - 1)) * inner;
                double weight = w[k];
                for (int64_t i = 0; weight != 0 && i < inner; i++)
                    t[i] += weight * f[i];
            }
        }
    }
    hn_eval_scratch_free(e, w);
    return TRUE;
}

static inline double rounded(double v, double lo, double hi)
{
    v = nearbyint(v);
    return v != v ? 0 : CLAMP(v, lo, hi);
}

/* Integers are rounded to the nearest and limited; hi of 64 bits is the largest double below the limit. */
static void store(const double *v, HnDtype dtype, int64_t n, void *out)
{
#define FLOATS(d, T)                    \
    case d:                             \
        for (int64_t i = 0; i < n; i++) \
            ((T *)out)[i] = (T)v[i];    \
        break;
#define INTS(d, T, lo, hi)                            \
    case d:                                           \
        for (int64_t i = 0; i < n; i++)               \
            ((T *)out)[i] = (T)rounded(v[i], lo, hi); \
        break;
    switch (dtype) {
        FLOATS(HN_F32, float)
        FLOATS(HN_F64, double)
        INTS(HN_I8, int8_t, -128, 127)
        INTS(HN_U8, uint8_t, 0, 255)
        INTS(HN_I16, int16_t, INT16_MIN, INT16_MAX)
        INTS(HN_U16, uint16_t, 0, UINT16_MAX)
        INTS(HN_I32, int32_t, INT32_MIN, INT32_MAX)
        INTS(HN_U32, uint32_t, 0, UINT32_MAX)
        INTS(HN_I64, int64_t, -0x1p63, 0x1.fffffffffffffp62)
        INTS(HN_U64, uint64_t, 0, 0x1.fffffffffffffp63)
    default:
        break;
    }
#undef FLOATS
#undef INTS
}

static void means_ref(HnEval *e, const HnTensor *x, int rank, const HnResizeAxis *axis, void *out)
{
    int64_t dims[HN_MAX_RANK], n;
    double *v = hn_eval_scratch(e, x->n, sizeof *v);
    if (v == NULL)
        return;
#define RUN(T)                         \
    for (int64_t i = 0; i < x->n; i++) \
        v[i] = (double)((const T *)x->data)[i];
    HN_FOR_NUM(x->dtype, RUN)
#undef RUN
    for (int i = 0; i < rank; i++)
        dims[i] = axis[i].in;
    for (int i = 0; i < rank; i++) {
        const HnResize *p = e->params;
        if (axis[i].in == axis[i].out && axis[i].scale == 1 && p->place != HN_RESIZE_CROP)
            continue;
        dims[i] = axis[i].out;
        double *next = NULL;
        if (!hn_dims_count(rank, dims, &n))
            hn_eval_fail(e, HN_ERROR_SHAPE, "the size between two axes overflows");
        else
            next = hn_eval_scratch(e, n, sizeof *next);
        gboolean done =
            next != NULL && mean_pass(e, &axis[i], hn_span(dims, 0, i), hn_span(dims, i + 1, rank), v, next);
        hn_eval_scratch_free(e, v);
        v = next;
        if (!done)
            break;
    }
    if (e->error == NULL)
        store(v, x->dtype, hn_span(dims, 0, rank), out);
    hn_eval_scratch_free(e, v);
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

static gboolean request_of(HnEval *e, const HnTensor *x, Request *r)
{
    const HnResize *p = e->params;
    const HnTensor *sizes = p->sizes >= 0 ? hn_eval_in(e, p->sizes) : NULL;
    const HnTensor *scales = p->scales >= 0 ? hn_eval_in(e, p->scales) : NULL;
    if (!request_axes(p, x->ndim, r, &e->error))
        return FALSE;
    r->by_size = sizes != NULL && sizes->n > 0;
    if (!r->by_size) {
        if (!request_scales(p, scales, r, &e->error))
            hn_eval_fail(e, HN_ERROR_VALUE, "neither scales nor sizes are given");
        return e->error == NULL;
    }
    if (!request_count(r, sizes->n, "sizes", &e->error))
        return FALSE;
    for (int i = 0; i < r->n; i++)
        r->size[i] = hn_tensor_get_i64(sizes, i);
    return TRUE;
}

/* The region of interest of the axes that are resized; the others stay whole. */
static gboolean crop_of(HnEval *e, const Request *r, HnResizeAxis *axis)
{
    const HnResize *p = e->params;
    const HnTensor *roi = p->roi >= 0 ? hn_eval_in(e, p->roi) : NULL;
    if (p->place != HN_RESIZE_CROP)
        return TRUE;
    if (roi == NULL || roi->n != 2 * (int64_t)r->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the region of interest does not have a start and an end for each axis");
        return FALSE;
    }
    for (int i = 0; i < r->n; i++) {
        axis[r->on[i]].start = hn_tensor_get_f64(roi, i);
        axis[r->on[i]].end = hn_tensor_get_f64(roi, r->n + i);
    }
    return TRUE;
}

gboolean hn_resize_axes(HnEval *e, HnResizeAxis *axis)
{
    const HnResize *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    Request r = { 0 };
    double scale[HN_MAX_RANK];
    int64_t out[HN_MAX_RANK];
    if (x->ndim > HN_MAX_RANK || !request_of(e, x, &r) || !resolve(p, &r, x->dims, scale, out, &e->error))
        return FALSE;
    for (int i = 0; i < x->ndim; i++) {
        double length = scale[i] * (double)x->dims[i], whole = (double)out[i];
        if (r.by_size || fabs(length - whole) < 1e-5 * whole)
            length = whole;
        axis[i] = (HnResizeAxis){ x->dims[i], out[i], scale[i], length, 0, 1 };
    }
    return crop_of(e, &r, axis);
}

static void resize_ref(HnEval *e)
{
    const HnResize *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    HnResizeAxis axis[HN_MAX_RANK];
    int64_t out[HN_MAX_RANK], n;
    if (!hn_resize_axes(e, axis))
        return;
    if (!hn_dtype_in(x->dtype, p->mode == HN_RESIZE_NEAREST ? HN_T_COMPUTE | HN_BIT(HN_C64) : HN_T_NUM)) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%s cannot be resized in this mode", hn_dtype_name(x->dtype));
        return;
    }
    for (int i = 0; i < x->ndim; i++)
        out[i] = axis[i].out;
    if (x->ndim == 0) {
        hn_eval_view(e, 0, x, 0, NULL);
        return;
    }
    void *y = hn_eval_out(e, 0, x->dtype, x->ndim, out);
    if (y == NULL || !hn_dims_count(x->ndim, out, &n) || n == 0)
        return;
    if (p->mode == HN_RESIZE_NEAREST)
        nearest_ref(e, x, x->ndim, axis, y);
    else
        means_ref(e, x, x->ndim, axis, y);
}

/* Region, scales and sizes are where a Resize has them; the gradient comes behind them. */
static void resize_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_in(t, 2), hn_tape_in(t, 3), hn_tape_dy(t, 0) };
    hn_tape_ends(t, 1);
    hn_tape_ends(t, 2);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "ResizeGrad", 5, in, 1), 0));
}

#define RESIZE_TYPES (HN_T_COMPUTE | HN_BIT(HN_C64) | HN_BIT(HN_C128) | HN_BIT(HN_STRING))

static gboolean resize_computes(const HnNode *n)
{
    const HnResize *p = n->params;
    return p->mode != HN_RESIZE_NEAREST || p->place == HN_RESIZE_CROP;
}

/* Channels are not resized: only sizes say how many there are. */
static gboolean resize_narrow(const HnNarrow *x)
{
    const HnResize *p = x->params;
    const HnKept *k = hn_narrow_in(x, 0), *y = hn_narrow_out(x, 0);
    if (k == NULL)
        return TRUE;
    if (y == NULL || y->axis != k->axis || y->n != k->n)
        return FALSE;
    g_autoptr(HnTensor) sizes = hn_narrow_constant(x, 3);
    if (sizes != NULL && p->axes == NULL)
        hn_narrow_set_number(x, 3, k->axis, k->left);
    return TRUE;
}

/* Scales of 1 leave the samples apart; sizes are said anew. That the result has as many samples is seen to by whoever
 * compares the shapes. */
/* Along an axis whose size stays, the k-th of those that are named, elements stay where they are. */
static gboolean keeps_places(const HnBatch *b, const HnResize *p, int k)
{
    const HnTensor *scales =
        p->scales >= 0 && hn_batch_has(b, p->scales) ? hn_types_value(b->types, b->in[p->scales].v) : NULL;
    if (p->place == HN_RESIZE_HALF_NEAREST || p->place == HN_RESIZE_CROP)
        return FALSE;
    if (p->list != NULL)
        return k < p->n_list && p->list[k] == 1;
    return scales == NULL || k >= scales->n || hn_tensor_get_f64(scales, k) == 1;
}

void hn_resize_batch(HnBatch *b)
{
    const HnResize *p = b->params;
    if (hn_batch_in_front(b, 0) && !hn_batch_put(b, 0, 0))
        return;
    for (int i = 1; i < b->n_in; i++)
        if (hn_batch_split(b, i)) {
            hn_batch_fail(b, "its sizes differ from sample to sample");
            return;
        }
    int at = b->in[0].at.axis;
    for (int64_t i = 0; i < p->n_axes && p->axes != NULL; i++)
        at = hn_batch_axis(p->axes[i], hn_batch_rank_was(b, 0)) == b->in[0].at.axis ? (int)i : at;
    gboolean named = p->axes == NULL;
    for (int64_t i = 0; i < p->n_axes; i++)
        named = named || hn_batch_axis(p->axes[i], hn_batch_rank_was(b, 0)) == b->in[0].at.axis;
    if (named && !keeps_places(b, p, at)) {
        hn_batch_fail(b, "it puts elements between samples");
        return;
    }
    b->out[0] = b->in[0].at;
    if (named && p->sizes >= 0 && hn_batch_has(b, p->sizes))
        hn_batch_set_size(b, p->sizes, at, &b->in[0].at);
}

const HnOp hn_op_resize = {
    .name = "Resize",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 10, 11, 13, 18, 19 },
    .forms = HN_FORMS({ "coordinate_transformation_mode", HN_ATTR_STRING, .since = 11, .word = "asymmetric" },
                      { "nearest_mode", HN_ATTR_STRING, .since = 11, .word = "floor" },
                      { "cubic_coeff_a", HN_ATTR_FLOAT, .since = 11, .any = TRUE },
                      { "exclude_outside", HN_ATTR_INT, .since = 11 },
                      { "extrapolation_value", HN_ATTR_FLOAT, .since = 11, .any = TRUE },
                      { "antialias", HN_ATTR_INT, .since = 18 }, { "axes", HN_ATTR_INTS, .since = 18 },
                      { "keep_aspect_ratio_policy", HN_ATTR_STRING, .since = 18, .word = "stretch" }),
    .lacks = HN_LACKS({ 'U', 11, 0, HN_BIT(HN_F16) | HN_BIT(HN_F64) }, HN_BF16_SINCE(13)),
    .in = "TUfi",
    .out = "T",
    .T = RESIZE_TYPES,
    .U = HN_T_FLOATS,
    .min_in = 1,
    .unbind = hn_resize_unbind,
    .params_size = sizeof(HnResize),
    .bind = resize_bind,
    .infer = resize_infer,
    .cost = resize_cost,
    .ref = resize_ref,
    .grad = resize_grad,
    .batch = hn_resize_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES, .computes = resize_computes },
    .narrow = resize_narrow,
    .range = { .exact = "U" },
};

const HnOp hn_op_upsample = {
    .name = "Upsample",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 7, 9 },
    .forms = HN_FORMS({ "scales", HN_ATTR_FLOATS, .until = 9, .input = 1 }),
    .until = 9,
    .in = "Tf",
    .out = "T",
    .T = RESIZE_TYPES,
    .min_in = 1,
    .unbind = hn_upsample_unbind,
    .params_size = sizeof(HnResize),
    .bind = upsample_bind,
    .infer = resize_infer,
    .cost = resize_cost,
    .ref = resize_ref,
    .batch = hn_resize_batch,
    .quant = { .kind = HN_Q_PASS },
    .channels = { HN_CH_MOVE },
};
