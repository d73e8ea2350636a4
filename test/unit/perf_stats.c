/* Statistics of times, and measuring by a made-up clock. */
#include <math.h>

#include "perf/measure.h"
#include "perf/noise.h"

#define MS G_GUINT64_CONSTANT(1000000)

static void test_quantiles(void)
{
    /* numpy.percentile(x, [0, 50, 90, 95, 99, 100]) */
    double x[] = { 9, 1, 4, 7, 3, 8, 2 };
    HnStats s;
    hn_stats(x, G_N_ELEMENTS(x), &s);
    g_assert_cmpfloat(s.min, ==, 1);
    g_assert_cmpfloat(s.p50, ==, 4);
    g_assert_cmpfloat_with_epsilon(s.p90, 8.4, 1e-12);
    g_assert_cmpfloat_with_epsilon(s.p95, 8.7, 1e-12);
    g_assert_cmpfloat_with_epsilon(s.p99, 8.94, 1e-12);
    g_assert_cmpfloat(s.max, ==, 9);
    g_assert_cmpfloat_with_epsilon(s.mean, 34.0 / 7, 1e-12);
    g_assert_cmpfloat_with_epsilon(s.stddev, 3.1320159337914943, 1e-12);
    g_assert_cmpfloat(s.lo, ==, 1);
    g_assert_cmpfloat(s.hi, ==, 9);

    double even[] = { 4, 1, 3, 2 };
    g_assert_cmpfloat(hn_median(even, 4), ==, 2.5);
    hn_stats(even, 4, &s);
    g_assert_true(isnan(s.lo) && isnan(s.hi));
    hn_stats(even, 1, &s);
    g_assert_cmpfloat(s.p99, ==, 1);
    g_assert_true(isnan(s.stddev));
    hn_stats(NULL, 0, &s);
    g_assert_true(isnan(s.p50) && isnan(s.mean) && isnan(s.max) && s.n == 0);
}

/* The definition, with sums of Pascal's triangle, which are exact. */
static void test_rank(void)
{
    long double row[64] = { 1 };
    for (int n = 1; n < 60; n++) {
        for (int k = n; k > 0; k--)
            row[k] += row[k - 1];
        long double all = ldexpl(1, n), tail = 0;
        int r = 0;
        while (r < n && (tail += row[r]) <= all * 0.025L)
            r++;
        g_assert_cmpuint(hn_median_rank((gsize)n, 0.95), ==, r);
    }
    g_assert_cmpuint(hn_median_rank(0, 0.95), ==, 0);
    g_assert_cmpuint(hn_median_rank(HN_MIN_INTERVAL - 1, 0.95), ==, 0);
    g_assert_cmpuint(hn_median_rank(HN_MIN_INTERVAL, 0.95), ==, 1);
    g_assert_cmpuint(hn_median_rank(100, 0.95), ==, 40);
    /* the normal approximation is good for many */
    for (gsize n = 1000; n <= 10000000; n *= 10) {
        double about = (double)n / 2 - 1.959964 * sqrt((double)n) / 2;
        g_assert_cmpfloat_with_epsilon((double)hn_median_rank(n, 0.95), about, 1);
    }
}

/* The interval holds the true median as often as it says, of a skewed distribution too. */
static void test_coverage(void)
{
    HnRng rng = hn_rng(3);
    double x[40];
    int hits = 0, tries = 20000;
    for (int i = 0; i < tries; i++) {
        HnStats s;
        for (gsize k = 0; k < G_N_ELEMENTS(x); k++)
            x[k] = -log(1 - hn_rng_double(&rng));
        hn_stats(x, G_N_ELEMENTS(x), &s);
        hits += s.lo <= G_LN2 && G_LN2 <= s.hi;
    }
    /* n = 40: ranks 14 and 27, exactly 0.9615 */
    g_assert_cmpfloat_with_epsilon((double)hits / tries, 0.9615, 0.005);
}

static void test_reservoir(void)
{
    HnTimes t;
    hn_times_init(&t, 1000);
    for (int i = 0; i < 100000; i++)
        hn_times_add(&t, i);
    g_assert_cmpuint(t.n, ==, 1000);
    g_assert_cmpuint(t.seen, ==, 100000);
    g_assert_cmpfloat(t.sum, ==, 99999.0 * 50000);
    /* a uniform selection: the median is 50000 with a deviation of 1580 */
    g_assert_cmpfloat_with_epsilon(hn_median(t.x, t.n), 50000, 8000);
    HnStats s;
    hn_times_stats(&t, &s);
    g_assert_cmpfloat(s.mean, ==, 49999.5);
    g_assert_cmpfloat(s.min, ==, 0);
    g_assert_cmpfloat(s.max, ==, 99999);
    hn_times_clear(&t);
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

typedef struct {
    guint64 now, base, spread; /* ns: clock, length of a run, and how much it may be longer */
    guint64 slow;              /* so many first runs take 3 times as long */
    guint64 calls, fail_at, cancel_at;
    gint cancel;
    HnRng rng;
} Fake;

static gboolean fake_run(gpointer data, G_GNUC_UNUSED guint64 i, guint64 *start, guint64 *end, GError **error)
{
    Fake *f = data;
    f->calls++;
    if (f->calls == f->fail_at) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_VALUE, "no");
        return FALSE;
    }
    if (f->calls == f->cancel_at)
        f->cancel = 1;
    *start = f->now;
    f->now += f->base * (f->calls <= f->slow ? 3 : 1);
    if (f->spread)
        f->now += (guint64)hn_rng_int(&f->rng, 0, (gint64)f->spread);
    *end = f->now;
    f->now += 50; /* what is not timed */
    return TRUE;
}

static HnMeasured measured(Fake *f, const HnMeasureOptions *o)
{
    HnRunner r = { fake_run, f, 1 };
    HnProgress progress = { .cancel = &f->cancel };
    HnMeasured m;
    GError *error = NULL;
    f->rng = hn_rng(1);
    g_assert_true(hn_measure(&r, o, &progress, &m, &error));
    g_assert_no_error(error);
    return m;
}

static void test_runs(void)
{
    for (guint64 n = 1; n <= 100000; n *= 10) {
        Fake f = { .base = 20000 };
        HnMeasured m = measured(&f, &(HnMeasureOptions){ .until = HN_UNTIL_RUNS, .runs = n });
        g_assert_cmpuint(m.runs, ==, n);
        g_assert_cmpuint(m.ms.n, ==, MIN(n, HN_TIMES_MAX));
        g_assert_cmpint(m.stop, ==, HN_STOP_RUNS);
        g_assert_cmpfloat_with_epsilon(m.ms.p50, 0.02, 1e-12);
        g_assert_cmpfloat_with_epsilon(m.busy, (double)n * 20e-6, 1e-9);
        /* the runs that warm the caches again are few */
        g_assert_cmpuint(f.calls - n, <=, (guint64)(m.busy / 0.5));
    }
    Fake f = { .base = 20000 };
    measured(&f, &(HnMeasureOptions){ .until = HN_UNTIL_RUNS, .runs = 5, .warm = TRUE });
    g_assert_cmpuint(f.calls, ==, 6);
}

static void test_time(void)
{
    Fake f = { .base = 20000, .spread = 100 };
    HnMeasured m = measured(&f, &(HnMeasureOptions){ .until = HN_UNTIL_TIME, .seconds = 1.2 });
    g_assert_cmpint(m.stop, ==, HN_STOP_TIME);
    g_assert_cmpfloat_with_epsilon(m.busy, 1.2, 0.01);
    /* slow ones run six times all the same */
    f = (Fake){ .base = 900 * MS };
    m = measured(&f, &(HnMeasureOptions){ .until = HN_UNTIL_TIME, .seconds = 0.001 });
    g_assert_cmpuint(m.runs, ==, HN_MIN_INTERVAL);
    g_assert_cmpuint(f.calls, ==, HN_MIN_INTERVAL);
    g_assert_cmpfloat_with_epsilon(m.ms.lo, 900, 1e-9);
}

static void test_interval(void)
{
    HnMeasureOptions o = { .until = HN_UNTIL_INTERVAL, .seconds = 10, .precision = 0.01 };
    Fake f = { .base = MS, .spread = MS / 100 };
    HnMeasured m = measured(&f, &o);
    g_assert_cmpint(m.stop, ==, HN_STOP_INTERVAL);
    g_assert_cmpfloat_with_epsilon(m.busy, 0.5, 0.01);
    /* noisier: later, and then it is narrow enough */
    f = (Fake){ .base = 2 * MS, .spread = MS };
    m = measured(&f, &o);
    g_assert_cmpint(m.stop, ==, HN_STOP_INTERVAL);
    g_assert_cmpfloat(m.busy, >, 0.6);
    g_assert_cmpfloat(MAX(m.ms.hi - m.ms.p50, m.ms.p50 - m.ms.lo), <=, 0.01 * m.ms.p50);
    /* never */
    f = (Fake){ .base = 10 * MS, .spread = 200 * MS };
    m = measured(&f, &o);
    g_assert_cmpint(m.stop, ==, HN_STOP_LIMIT);
    g_assert_cmpfloat(m.busy, >, 9.8);
    g_assert_cmpfloat(m.busy, <, 10.4);
    /* one run is longer than all the time */
    f = (Fake){ .base = 11000 * MS };
    m = measured(&f, &o);
    g_assert_cmpint(m.stop, ==, HN_STOP_LIMIT);
    g_assert_cmpuint(m.runs, ==, 1);
}

static void test_ends(void)
{
    Fake f = { .base = MS, .cancel_at = 7 };
    HnMeasured m = measured(&f, &(HnMeasureOptions){ .until = HN_UNTIL_TIME, .seconds = 5 });
    g_assert_cmpint(m.stop, ==, HN_STOP_INTERRUPTED);
    g_assert_cmpuint(m.runs, ==, 7);
    f = (Fake){ .base = MS, .cancel = 1 };
    m = measured(&f, &(HnMeasureOptions){ .until = HN_UNTIL_TIME, .seconds = 5 });
    g_assert_cmpint(m.stop, ==, HN_STOP_INTERRUPTED);
    g_assert_cmpuint(m.runs, ==, 0);
    g_assert_true(isnan(m.ms.p50));

    for (guint64 k = 1; k < 4; k++) {
        g_autoptr(GError) error = NULL;
        f = (Fake){ .base = MS, .fail_at = k };
        HnRunner r = { fake_run, &f, 1 };
        g_assert_false(hn_measure(&r, &(HnMeasureOptions){ .until = HN_UNTIL_RUNS, .runs = 9 }, NULL, &m, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_VALUE);
    }
}

/* --- warm-up -------------------------------------------------------------------------------------------------------
 */

static HnWarmedUp warmed(Fake *f, const char *text, guint64 period)
{
    HnWarmup w;
    HnWarmedUp out;
    HnRunner r = { fake_run, f, period };
    GError *error = NULL;
    f->rng = hn_rng(1);
    g_assert_true(hn_warmup_parse(text, &w, &error));
    g_assert_true(hn_warm_up(&r, &w, NULL, &out, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(out.runs, ==, f->calls);
    return out;
}

static void test_warm_up(void)
{
    Fake f = { .base = MS };
    g_assert_cmpuint(warmed(&f, "0", 1).runs, ==, 0);
    f = (Fake){ .base = MS };
    g_assert_cmpuint(warmed(&f, "12", 1).runs, ==, 12);
    f = (Fake){ .base = 2 * MS };
    g_assert_cmpuint(warmed(&f, "200ms", 1).runs, ==, 100);

    /* three blocks of 50 ms, whole periods, or three runs that are longer */
    f = (Fake){ .base = MS, .spread = MS / 100 };
    HnWarmedUp w = warmed(&f, "auto", 1);
    g_assert_cmpuint(w.runs, ==, 150);
    g_assert_true(w.steady);
    f = (Fake){ .base = MS };
    g_assert_cmpuint(warmed(&f, "auto", 7).runs, ==, 168);
    f = (Fake){ .base = 5000 * MS };
    w = warmed(&f, "auto", 1);
    g_assert_cmpuint(w.runs, ==, 3);
    g_assert_true(w.steady);
    /* slow at first: not before the slow ones are over */
    f = (Fake){ .base = MS, .slow = 40 };
    w = warmed(&f, "auto", 1);
    g_assert_true(w.steady);
    g_assert_cmpuint(w.runs, >, 120);
    /* never settles: two seconds */
    f = (Fake){ .base = 100 * MS, .spread = 50 * MS };
    w = warmed(&f, "auto", 1);
    g_assert_cmpfloat(w.ms, >=, 300);
    g_assert_cmpfloat(w.ms, <, 2200);
    f = (Fake){ .base = MS, .fail_at = 30 };
    HnRunner r = { fake_run, &f, 1 };
    g_autoptr(GError) error = NULL;
    g_assert_false(hn_warm_up(&r, &(HnWarmup){ .kind = HN_WARMUP_AUTO }, NULL, &w, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_VALUE);
}

static void test_warm_up_text(void)
{
    static const char *const bad[] = { "", "x", "-1", "1.5", "-3s", "automatic", "3 s x", "1e9h" };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        HnWarmup w = { .runs = 77 };
        g_assert_false(hn_warmup_parse(bad[i], &w, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_assert_cmpuint(w.runs, ==, 77);
    }
}

/* --- noise ------------------------------------------------------------------------------------------------------- */

static void test_causes(void)
{
    HnNoise quiet = { .wall_ms = 1000,
                      .steal_ms = NAN,
                      .waiting_ms = 3,
                      .throttled_ms = NAN,
                      .mhz_before = NAN,
                      .mhz_after = NAN,
                      .migrations = -1 };
    g_autofree const char **none = hn_noise_causes(&quiet);
    g_assert_null(none[0]);
    HnNoise loud = { .wall_ms = 1000,
                     .steal_ms = 11,
                     .waiting_ms = 50,
                     .throttled_ms = 20,
                     .mhz_before = 3000,
                     .mhz_after = 2000,
                     .major_faults = 1 };
    g_autofree const char **all = hn_noise_causes(&loud);
    const char *const want[] = { "steal", "quota", "waiting", "page faults", "clock", NULL };
    g_assert_cmpstrv((char **)all, (char **)want);
}

static void test_noise(void)
{
    HnNoiseMark a, b;
    HnNoise n;
    volatile guint64 x = 0;
    hn_noise_mark(NULL, &a);
    for (guint64 end = hn_now_ns() + 20 * MS; hn_now_ns() < end;)
        x = x + 1;
    hn_noise_mark(NULL, &b);
    hn_noise_between(&a, &b, &n);
    g_assert_cmpfloat(n.wall_ms, >=, 20);
    g_assert_cmpfloat(n.cpu_ms, >, 0);
    g_assert_cmpint(n.waits, >=, 0);
    g_assert_false(n.waiting_ms < 0);
    g_assert_false(n.steal_ms < 0);
}

/* The usual time is that of the whole list, whether it was sorted meanwhile or not. */
static void test_usual(void)
{
    HnTimes t;
    hn_times_init(&t, 0);
    g_assert_true(isnan(hn_times_usual(&t, 11)));
    for (int i = 0; i < 5000; i++)
        hn_times_add(&t, i);
    g_assert_cmpfloat_with_epsilon(hn_times_usual(&t, 1001), 2500, 5);
    g_assert_cmpfloat(t.x[4999], ==, 4999); /* and leaves it as it is */
    g_assert_cmpfloat(hn_times_usual(&t, 10000), ==, 2499.5);
    hn_times_clear(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perf/stats/quantiles", test_quantiles);
    g_test_add_func("/perf/stats/rank", test_rank);
    g_test_add_func("/perf/stats/coverage", test_coverage);
    g_test_add_func("/perf/stats/reservoir", test_reservoir);
    g_test_add_func("/perf/stats/usual", test_usual);
    g_test_add_func("/perf/measure/runs", test_runs);
    g_test_add_func("/perf/measure/time", test_time);
    g_test_add_func("/perf/measure/interval", test_interval);
    g_test_add_func("/perf/measure/ends", test_ends);
    g_test_add_func("/perf/warmup/kinds", test_warm_up);
    g_test_add_func("/perf/warmup/text", test_warm_up_text);
    g_test_add_func("/perf/noise/causes", test_causes);
    g_test_add_func("/perf/noise/here", test_noise);
    return g_test_run();
}
