#include "check/tensor_diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/half.h"

#define CHUNK 256 /* elements converted at a time */

typedef struct {
    const HnTolerance *tolerance;
    HnDiff *diff;
    double excess; /* of the worst element: |got - want| - (atol + rtol * |want|) */
    double dot, got2, want2, noise2;
    gboolean one_sided; /* a pair of which only one is finite */
} Compare;

/* n elements from i on; complex numbers as two each, i and n count the halves */
static void load(const HnTensor *t, int64_t i, int n, double *out)
{
    const guint8 *p = t->data;
    switch (t->dtype) {
    case HN_F32:
    case HN_C64:
        for (int k = 0; k < n; k++) {
            float x;
            memcpy(&x, p + (size_t)(i + k) * sizeof x, sizeof x);
            out[k] = x;
        }
        break;
    case HN_F64:
    case HN_C128:
        memcpy(out, p + (size_t)i * sizeof *out, (size_t)n * sizeof *out);
        break;
    default:
        for (int k = 0; k < n; k++)
            out[k] = hn_tensor_get_f64(t, i + k);
    }
}

static void add(Compare *c, int64_t i, double got, double want, double d)
{
    HnDiff *diff = c->diff;
    const HnTolerance *t = c->tolerance;
    double limit = t->atol + t->rtol * fabs(want);
    if (t->size != NULL && !(fabs(want) >= t->beyond)) {
        const double size = t->size[i / t->step % t->channels];
        limit += t->part * size;
        diff->max_part = d > 0 ? fmax(diff->max_part, size > 0 ? d / size : INFINITY) : diff->max_part;
    }
    double excess = d - limit;
    if (isnan(excess)) /* an infinite tolerance, or one side alone is infinite */
        excess = isfinite(d) ? -INFINITY : INFINITY;
    if (excess > 0)
        diff->n_wrong++;
    if (d > diff->max_abs)
        diff->max_abs = d;
    if (want != 0 && d / fabs(want) > diff->max_rel)
        diff->max_rel = d / fabs(want);
    if (diff->worst < 0 || excess > c->excess) {
        c->excess = excess;
        diff->worst = i;
        diff->got = got;
        diff->want = want;
    }
    if (isfinite(got) && isfinite(want)) {
        c->dot += got * want;
        c->got2 += got * got;
        c->want2 += want * want;
        c->noise2 += d * d;
    } else if (d > 0) {
        c->one_sided = TRUE;
    }
}

static double distance(double got, double want, double turn)
{
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    double d = turn > 0 && isfinite(got) && isfinite(want) ? fabs(remainder(got - want, turn)) : fabs(got - want);
    return isnan(d) ? INFINITY : d;
}

static void compare_floats(Compare *c, const HnTensor *got, const HnTensor *want, int64_t n)
{
    double a[CHUNK], b[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int m = (int)MIN(n - i, CHUNK);
        load(got, i, m, a);
        load(want, i, m, b);
        for (int k = 0; k < m; k++)
            add(c, i + k, a[k], b[k], distance(a[k], b[k], c->tolerance->turn));
    }
}

/* 64-bit integers have more digits than a double: the difference is taken exactly */
static void compare_long(Compare *c, const HnTensor *got, const HnTensor *want, int64_t n)
{
    const guint8 *p = got->data, *q = want->data;
    for (int64_t i = 0; i < n; i++) {
        uint64_t a, b;
        memcpy(&a, p + (size_t)i * sizeof a, sizeof a);
        memcpy(&b, q + (size_t)i * sizeof b, sizeof b);
        gboolean is_signed = got->dtype == HN_I64;
        gboolean more = is_signed ? (int64_t)a > (int64_t)b : a > b;
        double x = is_signed ? (double)(int64_t)a : (double)a, y = is_signed ? (double)(int64_t)b : (double)b;
        add(c, i, x, y, (double)(more ? a - b : b - a));
    }
}

static void compare_strings(Compare *c, const HnTensor *got, const HnTensor *want)
{
    for (int64_t i = 0; i < got->n; i++) {
        gboolean same = g_bytes_equal(hn_tensor_get_string(got, i), hn_tensor_get_string(want, i));
        add(c, i, NAN, NAN, same ? 0 : INFINITY);
    }
}

static gboolean is_complex(const HnTensor *t)
{
    return t->dtype == HN_C64 || t->dtype == HN_C128;
}

/* May the elements be compared one by one? */
static gboolean comparable(const HnTensor *got, const HnTensor *want, gboolean any_type, const HnDiff *diff)
{
    gboolean both = is_complex(got) == is_complex(want) && (got->dtype == HN_STRING) == (want->dtype == HN_STRING);
    return diff->same_shape && (diff->same_type || (any_type && both));
}

static gboolean compare(const HnTensor *got, const HnTensor *want, gboolean any_type, const HnTolerance *tolerance,
                        HnDiff *diff)
{
    *diff = (HnDiff){ .worst = -1, .got = NAN, .want = NAN, .cos = 1, .sqnr = INFINITY };
    diff->same_type = got->dtype == want->dtype;
    diff->same_shape = hn_tensor_same_dims(got, want);
    if (!comparable(got, want, any_type, diff)) {
        diff->cos = diff->sqnr = diff->max_abs = diff->max_rel = NAN;
        return FALSE;
    }

    Compare c = { .tolerance = tolerance, .diff = diff };
    diff->n = is_complex(got) ? 2 * got->n : got->n;
    if (got->dtype == HN_STRING)
        compare_strings(&c, got, want);
    else if (diff->same_type && (got->dtype == HN_I64 || got->dtype == HN_U64))
        compare_long(&c, got, want, diff->n);
    else
        compare_floats(&c, got, want, diff->n);

    if (c.one_sided)
        diff->cos = diff->sqnr = NAN;
    else if (c.got2 > 0 || c.want2 > 0)
        diff->cos = c.got2 > 0 && c.want2 > 0 ? CLAMP(c.dot / (sqrt(c.got2) * sqrt(c.want2)), -1, 1) : 0;
    if (!c.one_sided)
        diff->sqnr = hn_decibels(c.want2, c.noise2);
    diff->equal = isnan(tolerance->min_cos) ? diff->n_wrong == 0 : diff->cos >= tolerance->min_cos;
    return diff->equal;
}

static gboolean compare_any(const HnTensor *got, const HnTensor *want, gboolean any_type, const HnTolerance *tolerance,
                            HnDiff *diff);

/* What is known of element i of a list, beside what is known of those before it. The list is told by its worst one. */
static void merge(HnDiff *all, int64_t i, const HnDiff *one, gboolean by_cos)
{
    const gboolean worse = by_cos ? one->cos < all->cos || isnan(one->cos) : one->max_abs > all->max_abs;
    if (all->worst < 0 || (all->equal && !one->equal) || (all->equal == one->equal && worse)) {
        all->worst = i;
        all->got = one->got;
        all->want = one->want;
    }
    all->equal = all->equal && one->equal;
    all->same_type = all->same_type && one->same_type;
    all->same_shape = all->same_shape && one->same_shape;
    all->n += one->n;
    all->n_wrong += one->n_wrong;
    all->max_abs = fmax(all->max_abs, one->max_abs);
    all->max_part = fmax(all->max_part, one->max_part);
    all->max_rel = fmax(all->max_rel, one->max_rel);
    all->cos = isnan(one->cos) ? NAN : fmin(all->cos, one->cos);
    all->sqnr = isnan(one->sqnr) ? NAN : fmin(all->sqnr, one->sqnr);
}

static gboolean compare_lists(const HnTensor *got, const HnTensor *want, gboolean any_type,
                              const HnTolerance *tolerance, HnDiff *diff)
{
    *diff = (HnDiff){ .equal = TRUE, .worst = -1, .got = NAN, .want = NAN, .cos = 1, .sqnr = INFINITY };
    diff->same_type = got->dtype == want->dtype;
    diff->same_shape = got->n == want->n;
    if (!diff->same_type || !diff->same_shape) {
        diff->equal = FALSE;
        diff->cos = diff->sqnr = diff->max_abs = diff->max_rel = NAN;
    }
    for (int64_t i = 0; diff->same_type && diff->same_shape && i < got->n; i++) {
        HnDiff one;
        compare_any(hn_tensor_get_item(got, i), hn_tensor_get_item(want, i), any_type, tolerance, &one);
        merge(diff, i, &one, !isnan(tolerance->min_cos));
    }
    return diff->equal;
}

static gboolean compare_any(const HnTensor *got, const HnTensor *want, gboolean any_type, const HnTolerance *tolerance,
                            HnDiff *diff)
{
    return hn_tensor_is_list(got) || hn_tensor_is_list(want) ? compare_lists(got, want, any_type, tolerance, diff)
                                                             : compare(got, want, any_type, tolerance, diff);
}

gboolean hn_compare(const HnTensor *got, const HnTensor *want, const HnTolerance *tolerance, HnDiff *diff)
{
    return compare_any(got, want, FALSE, tolerance, diff);
}

gboolean hn_compare_numbers(const HnTensor *got, const HnTensor *want, const HnTolerance *tolerance, HnDiff *diff)
{
    return compare_any(got, want, TRUE, tolerance, diff);
}

char *hn_index_describe(const HnTensor *t, int64_t i)
{
    int64_t index[HN_MAX_RANK];
    if (t->dtype == HN_C64 || t->dtype == HN_C128)
        i /= 2;
    if (t->ndim > HN_MAX_RANK)
        return g_strdup_printf("%" PRId64, i);
    for (int d = t->ndim - 1; d >= 0; d--) {
        index[d] = t->dims[d] > 0 ? i % t->dims[d] : 0;
        i /= MAX(t->dims[d], 1);
    }
    GString *s = g_string_new("[");
    for (int d = 0; d < t->ndim; d++)
        g_string_append_printf(s, "%s%" PRId64, d ? "," : "", index[d]);
    return g_string_free(g_string_append_c(s, ']'), FALSE);
}

char *hn_diff_describe(const HnDiff *diff, const HnTensor *got, const HnTensor *want, const HnTolerance *tolerance)
{
    if (hn_tensor_is_list(got) && diff->worst >= 0) {
        g_autofree char *a = hn_tensor_describe(got), *b = hn_tensor_describe(want);
        return g_strdup_printf("%s and %s differ in element %" PRId64, a, b, diff->worst);
    }
    if (!diff->same_shape || (!diff->same_type && diff->n == 0)) {
        g_autofree char *a = hn_tensor_describe(got), *b = hn_tensor_describe(want);
        return g_strdup_printf("%s instead of %s", a, b);
    }
    if (!isnan(tolerance->min_cos))
        return g_strdup_printf("its cosine is %.6g, below %g", diff->cos, tolerance->min_cos);
    if (diff->worst < 0)
        return g_strdup("it is empty");
    g_autofree char *at = hn_index_describe(got, diff->worst);
    GString *s = g_string_new(NULL);
    g_string_printf(s, "%" PRId64 " of %" PRId64 " elements differ, most at %s", diff->n_wrong, diff->n, at);
    if (got->dtype != HN_STRING)
        g_string_append_printf(s, ": %.9g instead of %.9g", diff->got, diff->want);
    return g_string_free(s, FALSE);
}
