/*
 * Ranges from histograms, held against what the elements themselves say.
 */
#include "quant/calib_method.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "op/infer.h"
#include "run_model.h"

enum { NORMAL, RELU, LAPLACE, UNIFORM, LOPSIDED, OUTLIERS, POSITIVE, NEGATIVE, KINDS };

#define N 40000

static const HnQuantizer quantizers[] = { { 8, FALSE, FALSE }, { 8, TRUE, FALSE }, { 8, TRUE, TRUE },
                                          { 4, FALSE, FALSE }, { 4, TRUE, TRUE },  { 8, FALSE, TRUE } };

static gint compare(gconstpointer a, gconstpointer b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Sorted. */
static float *numbers(int kind)
{
    float *x = g_new(float, N);
    HnRng rng = hn_rng((uint64_t)kind + 40);
    for (int i = 0; i < N; i++) {
        const double g = hn_rng_normal(&rng), u = hn_rng_range(&rng, -1, 1);
        const double laplace = copysign(-log(1 - fabs(u)), u);
        x[i] = (float)(kind == NORMAL     ? g * 3
                       : kind == RELU     ? fmax(g - 0.5, 0)
                       : kind == LAPLACE  ? laplace * 0.02
                       : kind == UNIFORM  ? u * 1e-6
                       : kind == LOPSIDED ? (laplace < 0 ? fmax(laplace, -0.375) : laplace * 20)
                       : kind == OUTLIERS ? (i % 2000 == 0 ? g * 300 : g)
                       : kind == POSITIVE ? 5 + fabs(g)
                                          : -5 - laplace * laplace);
    }
    qsort(x, N, sizeof *x, compare);
    return x;
}

static HnHistogram histogram(const float *x, int n)
{
    HnHistogram h;
    hn_histogram_init(&h, NULL);
    g_assert_true(hn_histogram_add(&h, HN_F32, x, 1, n, n, NULL));
    return h;
}

static HnQuantSpan span_of(const HnHistogram *h, HnCalibMethod method, double percentile, const HnQuantizer *q)
{
    HnQuantSpan s;
    g_assert_true(hn_quant_span_of(h, method, percentile, q, &s));
    g_assert_true(s.lo <= s.hi && s.lo >= (double)h->min && s.hi <= (double)h->max);
    return s;
}

static void test_minmax(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        g_autofree float *x = numbers(kind);
        HnHistogram h = histogram(x, N);
        const HnQuantSpan s = span_of(&h, HN_CALIB_MINMAX, 0, &quantizers[0]);
        g_assert_true(s.lo == (double)x[0] && s.hi == (double)x[N - 1]);
        hn_histogram_clear(&h);
    }
}

/* The k-th largest magnitude. */
static double magnitude(const float *x, int k)
{
    g_autofree float *m = g_new(float, N);
    for (int i = 0; i < N; i++)
        m[i] = -fabsf(x[i]);
    qsort(m, N, sizeof *m, compare);
    return (double)-m[k];
}

static void test_percentile(void)
{
    static const double percentiles[] = { 100, 99.99, 99.9, 99, 90 };
    for (int kind = 0; kind < KINDS; kind++) {
        g_autofree float *x = numbers(kind);
        HnHistogram h = histogram(x, N);
        const double width = hn_histogram_width(&h);
        for (guint p = 0; p < G_N_ELEMENTS(percentiles); p++) {
            const int cut = (int)lrint(N * (1 - percentiles[p] / 100));
            const gboolean both = x[0] < 0 && x[N - 1] > 0;
            const int low = both ? cut / 2 : x[0] < 0 ? cut : 0, high = both ? cut / 2 : x[N - 1] > 0 ? cut : 0;
            HnQuantSpan s = span_of(&h, HN_CALIB_PERCENTILE, percentiles[p], &quantizers[0]);
            g_assert_cmpfloat_with_epsilon(s.lo, (double)x[low], width);
            g_assert_cmpfloat_with_epsilon(s.hi, (double)x[N - 1 - high], width);
            s = span_of(&h, HN_CALIB_PERCENTILE, percentiles[p], &quantizers[2]);
            g_assert_cmpfloat_with_epsilon(fmax(-s.lo, s.hi), magnitude(x, cut), width);
        }
        hn_histogram_clear(&h);
    }
}

/* Sums over the first i of the sorted elements. */
typedef struct {
    double x[N + 1], xx[N + 1];
} Sums;

static Sums *sums_of(const float *x)
{
    Sums *s = g_new0(Sums, 1);
    for (int i = 0; i < N; i++) {
        s->x[i + 1] = s->x[i] + (double)x[i];
        s->xx[i + 1] = s->xx[i] + (double)x[i] * (double)x[i];
    }
    return s;
}

/* How many elements are below `limit`. */
static int below(const float *x, double limit)
{
    int from = 0, to = N;
    while (from < to) {
        const int mid = (from + to) / 2;
        if ((double)x[mid] < limit)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Mean square error of the elements themselves: of all those at a time that one integer stands for. */
static double error_of(const float *x, const Sums *s, const HnQuantSpan *span, const HnQuantizer *q)
{
    float scale;
    int zero, from = 0;
    double sum = 0;
    const int half = 1 << (q->bits - 1);
    const int least = (q->is_signed ? -half : 0) + q->symmetric, most = q->is_signed ? half - 1 : 2 * half - 1;
    hn_quant_step(span, q, &scale, &zero);
    for (int k = least; k <= most; k++) {
        const double v = (k - zero) * (double)scale;
        const int to = k < most ? below(x, v + (double)scale / 2) : N;
        sum += s->xx[to] - s->xx[from] - 2 * v * (s->x[to] - s->x[from]) + v * v * (to - from);
        from = to;
    }
    return fmax(sum, 0) / N;
}

/* The same, element by element. */
static double error_by_elements(const float *x, const HnQuantSpan *span, const HnQuantizer *q)
{
    float scale;
    int zero;
    double sum = 0;
    const int half = 1 << (q->bits - 1);
    const int least = (q->is_signed ? -half : 0) + q->symmetric, most = q->is_signed ? half - 1 : 2 * half - 1;
    hn_quant_step(span, q, &scale, &zero);
    for (int i = 0; i < N; i++) {
        const double k = fmin(fmax(rint((double)x[i] / (double)scale) + zero, least), most);
        const double d = (double)x[i] - (k - zero) * (double)scale;
        sum += d * d;
    }
    return sum / N;
}

/* No cut of a fine grid is better by more than a few hundredths. */
static void test_mse(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        g_autofree float *x = numbers(kind);
        g_autofree Sums *sums = sums_of(x);
        HnHistogram h = histogram(x, N);
        for (guint k = 0; k < G_N_ELEMENTS(quantizers); k++) {
            const HnQuantizer *q = &quantizers[k];
            const HnQuantSpan s = span_of(&h, HN_CALIB_MSE, 0, q), all = span_of(&h, HN_CALIB_MINMAX, 0, q);
            const double got = error_of(x, sums, &s, q);
            double best = INFINITY;
            for (double i = 1; i > 0.002; i *= 0.93)
                for (double j = 1; j > 0.002; j = q->symmetric || x[0] >= 0 || x[N - 1] <= 0 ? 0 : j * 0.93) {
                    const double hi = q->symmetric ? fmax(-all.lo, all.hi) * i : all.hi * i;
                    const HnQuantSpan t = { q->symmetric ? -hi : all.lo * (j < 1 ? j : all.hi <= 0 ? i : 1), hi };
                    best = fmin(best, error_of(x, sums, &t, q));
                }
            if (!(got <= best * 1.05)) {
                g_test_message("kind %d, quantizer %u: [%g, %g] has %g, the best one %g", kind, k, s.lo, s.hi, got,
                               best);
                g_test_fail();
            }
            g_assert_cmpfloat(got, <=, error_of(x, sums, &all, q) * 1.02);
            g_assert_cmpfloat_with_epsilon(got, error_by_elements(x, &s, q), got * 1e-6);
        }
        hn_histogram_clear(&h);
    }
}

/* The divergence as it is defined, over all bins of magnitudes and without anything known ahead. */
static double divergence(const uint64_t *bins, int n, int cut, int levels)
{
    g_autofree double *p = g_new0(double, cut), *q = g_new0(double, cut);
    double all = 0, inside = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        p[MIN(i, cut - 1)] += (double)bins[i];
        all += (double)bins[i];
        inside += i < cut ? (double)bins[i] : 0;
    }
    for (int k = 0; k < levels; k++) {
        const int from = k * cut / levels, to = (k + 1) * cut / levels;
        double elements = 0;
        int used = 0;
        for (int i = from; i < to; i++) {
            elements += (double)bins[i];
            used += p[i] > 0;
        }
        for (int i = from; i < to; i++)
            q[i] = p[i] > 0 ? elements / used : 0;
    }
    for (int i = 0; i < cut; i++)
        if (p[i] > 0)
            sum += q[i] > 0 ? p[i] / all * log(p[i] / all / (q[i] / inside)) : INFINITY;
    return sum;
}

static void test_entropy(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        g_autofree float *x = numbers(kind);
        HnHistogram h = histogram(x, N);
        g_autofree uint64_t *bins = g_new0(uint64_t, HN_HISTOGRAM_BINS);
        int last = 0;
        for (int i = 0; i < HN_HISTOGRAM_BINS; i++) {
            bins[i] = (h.bins[0] != NULL ? h.bins[0][i] : 0) + (h.bins[1] != NULL ? h.bins[1][i] : 0);
            bins[i] -= i == 0 ? h.n_zero : 0;
            last = bins[i] > 0 ? i : last;
        }
        int first = 0;
        while (bins[first] == 0)
            first++;
        const HnQuantSpan s = span_of(&h, HN_CALIB_ENTROPY, 0, &quantizers[2]);
        const int cut = (int)lrint(ceil(fmax(-s.lo, s.hi) / hn_histogram_width(&h) - 1e-6));
        const double got = divergence(bins + first, HN_HISTOGRAM_BINS - first, cut - first, 128);
        double best = INFINITY;
        for (int t = first + 128; t <= last + 1; t++)
            best = fmin(best, divergence(bins + first, HN_HISTOGRAM_BINS - first, t - first, 128));
        if (!(got <= best * 1.05 + 1e-9)) {
            g_test_message("kind %d: cut at %d has %g, the best one %g", kind, cut, got, best);
            g_test_fail();
        }
        hn_histogram_clear(&h);
    }
}

/* Rare large numbers go where their size does not count; a flat distribution stays whole. */
static void test_sense(void)
{
    g_autofree float *x = numbers(OUTLIERS), *y = numbers(UNIFORM);
    HnHistogram h = histogram(x, N), flat = histogram(y, N);
    for (int method = HN_CALIB_PERCENTILE; method < HN_CALIB_METHODS; method++)
        for (guint k = 0; k < 3; k++) {
            const HnQuantSpan s = span_of(&h, method, 99.9, &quantizers[k]);
            if (method != HN_CALIB_MSE)
                g_assert_cmpfloat(s.hi, <, 0.7 * (double)h.max);
            g_assert_cmpfloat(s.hi, >, 1);
            const HnQuantSpan f = span_of(&flat, method, 99.9, &quantizers[k]);
            g_assert_cmpfloat(f.hi, >, 0.95 * (double)flat.max);
            g_assert_cmpfloat(f.lo, <, 0.95 * (double)flat.min);
        }
    hn_histogram_clear(&h);
    hn_histogram_clear(&flat);
}

/* Nothing, one number, next to nothing, and almost everything that f32 holds. */
static void test_degenerate(void)
{
    static const float cases[][3] = { { 0, 0, 0 },
                                      { 3, 3, 3 },
                                      { -3, -3, -3 },
                                      { 1e-42f, 0, 0 },
                                      { -1e-42f, 1e-42f, 1e-42f },
                                      { 1e38f, 1e38f, 2e38f },
                                      { FLT_MAX, -60000, 0 },
                                      { 1, NAN, INFINITY },
                                      { 1, -1e9f, -FLT_MAX } };
    for (guint c = 0; c < G_N_ELEMENTS(cases); c++)
        for (guint k = 0; k < G_N_ELEMENTS(quantizers); k++)
            for (int method = 0; method < HN_CALIB_METHODS; method++) {
                HnHistogram h = histogram(cases[c], 3);
                const HnQuantSpan s = span_of(&h, method, 99.99, &quantizers[k]);
                const int half = 1 << (quantizers[k].bits - 1);
                const int least = quantizers[k].is_signed ? -half : 0;
                float scale;
                int zero;
                hn_quant_step(&s, &quantizers[k], &scale, &zero);
                g_assert_true(isnormal(scale) && scale > 0);
                g_assert_true(isfinite(1 / scale));
                g_assert_cmpint(zero, >=, least);
                g_assert_cmpint(zero, <, least + 2 * half);
                hn_histogram_clear(&h);
            }
    HnHistogram h;
    HnQuantSpan s = { 1, 2 };
    hn_histogram_init(&h, NULL);
    for (int method = 0; method < HN_CALIB_METHODS; method++)
        g_assert_false(hn_quant_span_of(&h, method, 99, &quantizers[0], &s));
    g_assert_true(s.lo == 0 && s.hi == 0);
    const float nothing[] = { NAN, INFINITY, -1e30f };
    g_assert_true(hn_histogram_add(&h, HN_F32, nothing, 1, 3, 3, NULL));
    g_assert_false(hn_quant_span_of(&h, HN_CALIB_MSE, 99, &quantizers[0], &s));
    hn_histogram_clear(&h);
}

static void check_step(double lo, double hi, int quantizer, double scale, int zero)
{
    float got_scale;
    int got_zero;
    hn_quant_step(&(HnQuantSpan){ lo, hi }, &quantizers[quantizer], &got_scale, &got_zero);
    g_assert_true(got_scale == (float)scale);
    g_assert_cmpint(got_zero, ==, zero);
}

static void test_step(void)
{
    check_step(0, 255, 0, 1, 0);
    check_step(-1, 1, 0, 2.0 / 255, 128);
    check_step(3, 5, 0, 5.0 / 255, 0); /* 0 is covered */
    check_step(-5, -3, 0, 5.0 / 255, 255);
    check_step(0, 255, 1, 1, -128);
    check_step(-127, 3, 2, 1, 0);
    check_step(-127, 3, 5, 1, 128);
    check_step(-6, 7, 4, 1, 0);
    check_step(0, 0, 0, 1, 0);
    check_step(0, 0, 1, 1, 0);
    check_step(0, 0, 5, 1, 128);
}

static void test_names(void)
{
    g_autoptr(GError) error = NULL;
    HnCalibMethod m;
    for (int i = 0; i < HN_CALIB_METHODS; i++)
        g_assert_true(hn_calib_method_parse(hn_calib_method_name(i), &m, NULL) && m == (HnCalibMethod)i);
    g_assert_false(hn_calib_method_parse("best", &m, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
}

static void test_fixed(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 %a = Softmax(%x) %b = Relu(%a)");
    HnQuantSpan s;
    for (guint i = 0; i < 2; i++)
        g_assert_true(hn_op_bind(m->graph->nodes->pdata[i], NULL));
    g_assert_true(hn_quant_span_fixed(m->graph->nodes->pdata[0], &s));
    g_assert_true(s.lo == 0 && s.hi == 1);
    g_assert_false(hn_quant_span_fixed(m->graph->nodes->pdata[1], &s));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quant/range/minmax", test_minmax);
    g_test_add_func("/quant/range/percentile", test_percentile);
    g_test_add_func("/quant/range/mse", test_mse);
    g_test_add_func("/quant/range/entropy", test_entropy);
    g_test_add_func("/quant/range/sense", test_sense);
    g_test_add_func("/quant/range/degenerate", test_degenerate);
    g_test_add_func("/quant/range/step", test_step);
    g_test_add_func("/quant/range/names", test_names);
    g_test_add_func("/quant/range/fixed", test_fixed);
    return g_test_run();
}
