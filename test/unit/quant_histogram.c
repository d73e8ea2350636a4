/*
 * Histograms held against counts by hand, element by element.
 */
#include "check/histogram.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "ir/tensor.h"

#define BINS HN_HISTOGRAM_BINS

static void add(HnHistogram *h, const float *x, int64_t n)
{
    g_autoptr(GError) error = NULL;
    gboolean ok = hn_histogram_add(h, HN_F32, x, 1, n, n, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

static uint64_t in_bin(const HnHistogram *h, int sign, int k)
{
    return h->bins[sign] != NULL ? h->bins[sign][k] : 0;
}

static void assert_same(const HnHistogram *a, const HnHistogram *b)
{
    g_assert_cmpuint(a->n, ==, b->n);
    g_assert_cmpuint(a->n_zero, ==, b->n_zero);
    g_assert_cmpuint(a->n_nan, ==, b->n_nan);
    g_assert_cmpuint(a->n_infinite, ==, b->n_infinite);
    g_assert_cmpuint(a->n_mask, ==, b->n_mask);
    g_assert_cmpint(a->exponent, ==, b->exponent);
    g_assert_true(memcmp(&a->min, &b->min, sizeof a->min) == 0);
    g_assert_true(memcmp(&a->max, &b->max, sizeof a->max) == 0);
    g_assert_true(a->mask_min == b->mask_min);
    for (int sign = 0; sign < 2; sign++)
        for (int k = 0; k < BINS; k++)
            g_assert_cmpuint(in_bin(a, sign, k), ==, in_bin(b, sign, k));
}

/* What the counts have to be, by division in double. */
static void assert_counts(const HnHistogram *h, const float *x, int64_t n)
{
    g_autofree uint64_t *want = g_new0(uint64_t, 2 * BINS);
    uint64_t counted = 0, zero = 0, nan = 0, infinite = 0, mask = 0;
    float min = INFINITY, max = -INFINITY;
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && x[i] > -65504)
            most = fmax(most, fabs((double)x[i]));
    int exponent = HN_HISTOGRAM_LOWEST;
    while (most >= ldexp(1, exponent))
        exponent++;
    for (int64_t i = 0; i < n; i++) {
        nan += isnan(x[i]) != 0;
        infinite += isinf(x[i]) != 0;
        mask += isfinite(x[i]) && x[i] <= -65504;
        if (!isfinite(x[i]) || x[i] <= -65504)
            continue;
        counted++;
        zero += x[i] == 0;
        min = MIN(min, x[i]);
        max = MAX(max, x[i]);
        want[(x[i] < 0 ? BINS : 0) + (int)floor(fabs((double)x[i]) / ldexp(1.0 / BINS, exponent))]++;
    }
    g_assert_cmpint(h->exponent, ==, exponent);
    g_assert_cmpuint(h->n, ==, counted);
    g_assert_cmpuint(h->n_zero, ==, zero);
    g_assert_cmpuint(h->n_nan, ==, nan);
    g_assert_cmpuint(h->n_infinite, ==, infinite);
    g_assert_cmpuint(h->n_mask, ==, mask);
    g_assert_true(h->min == min && h->max == max);
    for (int k = 0; k < 2 * BINS; k++)
        g_assert_cmpuint(in_bin(h, k / BINS, k % BINS), ==, want[k]);
}

enum { NORMAL, RELU, WIDE, ODD, TINY, LARGE, KINDS };

static float *numbers(int kind, int64_t n, uint64_t seed)
{
    static const float odd[] = {
        NAN, INFINITY, -INFINITY, -FLT_MAX, -1e9f, -65504, -65500, 65504, 0, -0.0f, 1, FLT_MIN
    };
    float *x = g_new(float, n + 1);
    HnRng rng = hn_rng(seed);
    for (int64_t i = 0; i < n; i++) {
        const double g = hn_rng_normal(&rng);
        x[i] = (float)g;
        if (kind == RELU)
            x[i] = (float)fmax(g, 0);
        else if (kind == WIDE)
            x[i] = (float)(g * exp2(hn_rng_range(&rng, -30, 15)));
        else if (kind == ODD && hn_rng_int(&rng, 0, 3) == 0)
            x[i] = odd[hn_rng_int(&rng, 0, G_N_ELEMENTS(odd) - 1)];
        else if (kind == TINY)
            x[i] = (float)g * 1e-40f;
        else if (kind == LARGE)
            x[i] = (float)fmin(fabs(g) * 1e38, (double)FLT_MAX);
    }
    return x;
}

static void test_counts(void)
{
    static const int64_t sizes[] = { 0, 1, 3, 1000, 1024, 1025, 16383, 16384, 50001, 300007 };
    for (int kind = 0; kind < KINDS; kind++)
        for (guint s = 0; s < G_N_ELEMENTS(sizes); s++) {
            g_autofree float *x = numbers(kind, sizes[s], 17 + s);
            HnHistogram h;
            hn_histogram_init(&h, NULL);
            add(&h, x, sizes[s]);
            assert_counts(&h, x, sizes[s]);
            hn_histogram_clear(&h);
        }
}

/* Growing magnitudes, so that bins are merged again and again; and in the other order, so that they never are. */
static void test_rescaling(void)
{
    const int64_t n = 40000;
    g_autofree float *x = numbers(NORMAL, n, 5), *y = g_new(float, n);
    for (int64_t i = 0; i < n; i++)
        x[i] *= exp2f((float)(i / 1000) - 30);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[n - 1 - i];
    HnHistogram up, down, parts, all;
    HnHistogram *every[] = { &up, &down, &parts, &all };
    for (int i = 0; i < 4; i++)
        hn_histogram_init(every[i], NULL);
    for (int64_t i = 0; i < n; i += 100)
        add(&up, x + i, 100);
    add(&down, y, n);
    for (int k = 0; k < 7; k++) { /* as threads do */
        const int64_t from = n * k / 7, to = n * (k + 1) / 7;
        add(&parts, x + from, to - from);
        g_assert_true(hn_histogram_merge(&all, &parts, NULL));
        hn_histogram_reset(&parts);
    }
    assert_counts(&up, x, n);
    assert_same(&up, &down);
    assert_same(&up, &all);
    /* into a wider one, and a wider one into it */
    HnHistogram small;
    hn_histogram_init(&small, NULL);
    add(&small, x, 1000);
    g_assert_cmpint(small.exponent, <, up.exponent);
    g_assert_true(hn_histogram_merge(&small, &up, NULL));
    add(&up, x, 1000);
    assert_same(&small, &up);
    hn_histogram_clear(&small);
    for (int i = 0; i < 4; i++)
        hn_histogram_clear(every[i]);
}

static void test_zeros(void)
{
    const float zeros[] = { 0, -0.0f, 0, -0.0f }, one[] = { -0x1p-90f };
    HnHistogram h;
    hn_histogram_init(&h, NULL);
    add(&h, zeros, 4);
    g_assert_cmpuint(h.n, ==, 4);
    g_assert_cmpuint(h.n_zero, ==, 4);
    g_assert_cmpint(h.exponent, ==, HN_HISTOGRAM_LOWEST);
    g_assert_true(h.min == 0 && h.max == 0 && !signbit(h.min) && !signbit(h.max));
    add(&h, one, 1);
    g_assert_cmpint(h.exponent, ==, -89); /* zeros do not make bins wide */
    g_assert_cmpuint(in_bin(&h, 1, BINS / 2), ==, 1);
    hn_histogram_clear(&h);
}

/* f16, bf16 and f64 count as the numbers that they are. */
static void test_types(void)
{
    const int n = 5000;
    g_autofree float *x = numbers(ODD, n, 3), *y = g_new(float, n);
    g_autofree uint16_t *half = g_new(uint16_t, n);
    g_autofree double *wide = g_new(double, n + 1);
    HnHistogram h;
    hn_histogram_init(&h, NULL);
    for (int f16 = 0; f16 < 2; f16++) {
        for (int i = 0; i < n; i++) {
            half[i] = f16 ? hn_f16_from_f32(x[i]) : hn_bf16_from_f32(x[i]);
            y[i] = f16 ? hn_f16_to_f32(half[i]) : hn_bf16_to_f32(half[i]);
        }
        g_assert_true(hn_histogram_add(&h, f16 ? HN_F16 : HN_BF16, half, 1, n, n, NULL));
        assert_counts(&h, y, n);
        hn_histogram_reset(&h);
    }
    for (int i = 0; i < n; i++)
        wide[i] = (double)x[i];
    wide[n] = 1e300;
    g_assert_true(hn_histogram_add(&h, HN_F64, wide, 1, n, n, NULL));
    assert_counts(&h, x, n);
    g_assert_true(hn_histogram_add(&h, HN_F64, wide + n, 1, 1, 1, NULL)); /* beyond f32 */
    hn_histogram_reset(&h);
    g_assert_true(hn_histogram_add(&h, HN_F64, wide + n, 1, 1, 1, NULL));
    g_assert_cmpuint(h.n_infinite, ==, 1);
    g_assert_cmpuint(h.n, ==, 0);
    hn_histogram_clear(&h);
}

/* What lies between rows is not looked at. */
static void test_rows(void)
{
    static const int shapes[][3] = { { 700, 3, 5 }, { 1, 4000, 4000 }, { 90, 1500, 1600 }, { 0, 8, 9 }, { 5, 0, 3 } };
    for (guint s = 0; s < G_N_ELEMENTS(shapes); s++) {
        const int rows = shapes[s][0], width = shapes[s][1], pitch = shapes[s][2];
        g_autofree float *x = numbers(WIDE, (int64_t)rows * pitch, 8), *y = g_new(float, rows *width + 1);
        for (int r = 0; r < rows; r++) {
            memcpy(y + r * width, x + r * pitch, (size_t)width * sizeof *x);
            for (int i = width; i < pitch; i++)
                x[r * pitch + i] = NAN;
        }
        HnHistogram h;
        hn_histogram_init(&h, NULL);
        g_assert_true(hn_histogram_add(&h, HN_F32, x, rows, width, pitch, NULL));
        assert_counts(&h, y, (int64_t)rows * width);
        hn_histogram_clear(&h);
    }
}

/* Two rows of bins at most, however much comes; the second only where something is below 0. */
static void test_memory(void)
{
    const int n = 100000;
    g_autofree float *x = numbers(RELU, n, 1), *y = numbers(WIDE, n, 2);
    g_autoptr(HnBudget) budget = hn_budget_new(0), none = hn_budget_new(16);
    g_autoptr(GError) error = NULL;
    HnHistogram h;
    hn_histogram_init(&h, budget);
    for (int i = 0; i < 10; i++)
        add(&h, x, n);
    g_assert_cmpuint(hn_budget_peak(budget), ==, hn_histogram_bytes() / 2);
    for (int i = 0; i < 10; i++)
        add(&h, y, n);
    g_assert_cmpuint(hn_budget_peak(budget), ==, hn_histogram_bytes());
    hn_histogram_clear(&h);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    hn_histogram_init(&h, none);
    g_assert_false(hn_histogram_add(&h, HN_F32, x, 1, n, n, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    hn_histogram_clear(&h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/histogram/counts", test_counts);
    g_test_add_func("/check/histogram/rescaling", test_rescaling);
    g_test_add_func("/check/histogram/zeros", test_zeros);
    g_test_add_func("/check/histogram/types", test_types);
    g_test_add_func("/check/histogram/rows", test_rows);
    g_test_add_func("/check/histogram/memory", test_memory);
    return g_test_run();
}
