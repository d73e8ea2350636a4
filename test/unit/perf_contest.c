/* Comparing by a made-up clock, several streams, and outliers. */
#include <math.h>

#include "perf/outliers.h"
#include "perf/streams.h"
#include "perf/contest.h"

#define SIDES 3

typedef struct {
    double ns[SIDES];           /* of a run of a side */
    double luck, drift;         /* standard deviation of instances; of the machine, per round */
    double now[SIDES], machine; /* of the present instance */
    gboolean open[SIDES];
    guint64 clock, runs[SIDES], opened;
    guint64 fail_at;
    gint cancel;
    guint64 cancel_at;
    HnRng rng;
} Fake;

static gboolean fake_open(gpointer data, int side, GError **error)
{
    Fake *f = data;
    g_assert_false(f->open[side]);
    f->open[side] = TRUE;
    if (++f->opened == f->fail_at) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_VALUE, "no");
        return FALSE;
    }
    f->now[side] = f->ns[side] * exp(f->luck * hn_rng_normal(&f->rng));
    if (side == 0)
        f->machine = exp(f->drift * hn_rng_normal(&f->rng));
    return TRUE;
}

static void fake_close(gpointer data, int side)
{
    Fake *f = data;
    f->open[side] = FALSE;
}

static gboolean fake_run(gpointer data, int side, G_GNUC_UNUSED guint64 i, guint64 *start, guint64 *end,
                         G_GNUC_UNUSED GError **error)
{
    Fake *f = data;
    guint64 all = ++f->runs[side];
    g_assert_true(f->open[side]);
    if (side == 0 && all == f->cancel_at)
        f->cancel = 1;
    *start = f->clock;
    f->clock += (guint64)(f->now[side] * f->machine * (1 + 0.01 * hn_rng_double(&f->rng)));
    *end = f->clock;
    return TRUE;
}

static void contest(Fake *f, int sides, guint64 period, const HnContestOptions *o, HnContestResult *result)
{
    HnContest c = { sides, fake_open, fake_close, fake_run, f, period };
    HnProgress progress = { .cancel = &f->cancel };
    GError *error = NULL;
    g_assert_true(hn_contest(&c, o, &progress, result, &error));
    g_assert_no_error(error);
    for (int s = 0; s < sides; s++)
        g_assert_false(f->open[s]);
}

/* n = 8: the critical value of a table of Wilcoxon's test is 3, so the 4th mean of a pair from either end. */
static void test_signed_rank(void)
{
    double x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, mid, lo, hi;
    hn_signed_rank(x, 8, &mid, &lo, &hi);
    g_assert_cmpfloat(mid, ==, 4.5);
    g_assert_cmpfloat(lo, ==, 2);
    g_assert_cmpfloat(hi, ==, 7);
    hn_signed_rank(x, 6, &mid, &lo, &hi);
    g_assert_cmpfloat(lo, ==, 1);
    g_assert_cmpfloat(hi, ==, 6);
    hn_signed_rank(x, 5, &mid, &lo, &hi);
    g_assert_true(isnan(lo) && isnan(hi) && mid == 3);

    HnRng rng = hn_rng(5);
    int hits = 0, tries = 5000;
    for (int i = 0; i < tries; i++) {
        double y[20];
        for (int k = 0; k < 20; k++)
            y[k] = hn_rng_normal(&rng);
        hn_signed_rank(y, 20, &mid, &lo, &hi);
        hits += lo <= 0 && hi >= 0;
    }
    g_assert_cmpfloat_with_epsilon((double)hits / tries, 0.952, 0.012);
}

static void test_verdicts(void)
{
    g_assert_cmpint(hn_verdict(0.99, 1.015, 0.02), ==, HN_VERDICT_NONE);
    g_assert_cmpint(hn_verdict(1.001, 1.015, 0.02), ==, HN_VERDICT_NONE);
    g_assert_cmpint(hn_verdict(1.01, 1.05, 0.02), ==, HN_VERDICT_SLOWER);
    g_assert_cmpint(hn_verdict(0.9, 0.95, 0.02), ==, HN_VERDICT_FASTER);
    g_assert_cmpint(hn_verdict(0.97, 1.01, 0.02), ==, HN_VERDICT_NOISY);
    g_assert_cmpint(hn_verdict(NAN, NAN, 0.02), ==, HN_VERDICT_NOISY);
    g_assert_cmpstr(hn_verdict_name(HN_VERDICT_NONE), ==, "no difference");
}

/* Instances that differ by luck, and a machine that drifts: verdicts are right in nearly all of 200 comparisons. */
static void test_rates(void)
{
    const struct {
        double other, luck, drift;
        HnVerdict want;
    } cases[] = {
        { 1.00, 0.00, 0.00, HN_VERDICT_NONE },   { 1.00, 0.01, 0.10, HN_VERDICT_NONE },
        { 1.00, 0.03, 0.10, HN_VERDICT_NONE },   { 1.05, 0.01, 0.10, HN_VERDICT_SLOWER },
        { 1.05, 0.03, 0.10, HN_VERDICT_SLOWER }, { 0.95, 0.03, 0.10, HN_VERDICT_FASTER },
    };
    HnContestResult *r = g_new0(HnContestResult, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        int right = 0;
        for (int k = 0; k < 200; k++) {
            Fake f = { .ns = { 2e6, 2e6 * cases[i].other }, .luck = cases[i].luck, .drift = cases[i].drift };
            f.rng = hn_rng((uint64_t)k);
            contest(&f, 2, 1, &(HnContestOptions){ .until = HN_UNTIL_INTERVAL, .seconds = 10, .margin = 0.02 }, r);
            right += r->effect[1].verdict == cases[i].want;
        }
        g_test_message("case %u: %d of 200", (guint)i, right);
        g_assert_cmpint(right, >=, 186);
    }
    g_free(r);
}

static void test_lengths(void)
{
    HnContestResult *r = g_new0(HnContestResult, 1);
    for (guint64 n = 1; n <= 100000; n = n * 3 + 1) {
        Fake f = { .ns = { 30000, 60000, 20000 }, .rng = hn_rng(1) };
        contest(&f, SIDES, 1, &(HnContestOptions){ .until = HN_UNTIL_RUNS, .runs = n, .margin = 0.02 }, r);
        for (int s = 0; s < SIDES; s++)
            g_assert_cmpuint(r->side[s].runs, ==, n);
        g_assert_cmpint(r->stop, ==, HN_STOP_RUNS);
        g_assert_cmpfloat_with_epsilon(r->effect[1].effect, 2, 0.02);
    }
    Fake f = { .ns = { 2e8, 2e8 }, .rng = hn_rng(1) };
    contest(&f, 2, 32, &(HnContestOptions){ .until = HN_UNTIL_TIME, .seconds = 3, .margin = 0.02 }, r);
    g_assert_cmpint(r->stop, ==, HN_STOP_TIME);
    g_assert_cmpuint(r->side[0].runs, ==, r->side[1].runs);
    g_assert_cmpfloat(r->side[0].busy, >=, 2.9);
    g_assert_cmpfloat(r->side[0].busy, <, 12);

    /* it goes on until the interval is on one side of the gate, or the time is over */
    Fake g = { .ns = { 1e6, 1.05e6 }, .luck = 0.03, .rng = hn_rng(1) };
    contest(&g, 2, 1, &(HnContestOptions){ .until = HN_UNTIL_INTERVAL, .seconds = 10, .margin = 0.02, .gate = 0.04 },
            r);
    g_assert_true(r->stop == HN_STOP_LIMIT || r->effect[1].lo > 1.04 || r->effect[1].hi <= 1.04);
    contest(&g, 2, 1,
            &(HnContestOptions){ .until = HN_UNTIL_INTERVAL, .seconds = 10, .precision = 0.03, .margin = 0.02 }, r);
    g_assert_cmpint(r->stop, ==, HN_STOP_INTERVAL);
    g_assert_cmpfloat(r->effect[1].hi - r->effect[1].lo, <=, 0.07);
    g_free(r);
}

static void test_ends(void)
{
    HnContestResult *r = g_new0(HnContestResult, 1);
    HnContestOptions o = { .until = HN_UNTIL_INTERVAL, .seconds = 10, .margin = 0.02 };
    Fake f = { .ns = { 1e5, 1e5 }, .rng = hn_rng(1), .cancel_at = 2000 };
    contest(&f, 2, 1, &o, r);
    g_assert_cmpint(r->stop, ==, HN_STOP_INTERRUPTED);
    Fake g = { .ns = { 1e5, 1e5 }, .rng = hn_rng(1), .fail_at = 4 };
    HnContest c = { 2, fake_open, fake_close, fake_run, &g, 1 };
    GError *error = NULL;
    g_assert_false(hn_contest(&c, &o, NULL, r, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_VALUE);
    g_assert_false(g.open[0] || g.open[1]);
    g_error_free(error);
    g_free(r);
}

/* --- streams ----------------------------------------------------------------------------------------------------- */

typedef struct {
    guint64 runs, fail_at;
} Busy;

static gboolean busy_run(gpointer data, G_GNUC_UNUSED guint64 i, guint64 *start, guint64 *end, GError **error)
{
    Busy *b = data;
    *start = (guint64)g_get_monotonic_time() * 1000;
    g_usleep(1000);
    *end = (guint64)g_get_monotonic_time() * 1000;
    if (++b->runs != b->fail_at)
        return TRUE;
    g_set_error_literal(error, HN_ERROR, HN_ERROR_VALUE, "no");
    return FALSE;
}

static void test_streams(void)
{
    Busy busy[4] = { { 0 } };
    HnRunner r[4];
    HnMeasured m;
    GError *error = NULL;
    for (int i = 0; i < 4; i++)
        r[i] = (HnRunner){ busy_run, &busy[i], 1 };
    g_assert_true(hn_measure_streams(r, 4, &(HnMeasureOptions){ .until = HN_UNTIL_RUNS, .runs = 101 }, NULL, &m, NULL));
    g_assert_cmpuint(m.runs, ==, 101);
    g_assert_cmpuint(m.ms.n, ==, 101);
    g_assert_cmpfloat(m.ms.min, >=, 0.99);
    g_assert_cmpfloat(m.wall, <, m.busy);
    g_assert_true(
        hn_measure_streams(r, 4, &(HnMeasureOptions){ .until = HN_UNTIL_TIME, .seconds = 0.2 }, NULL, &m, NULL));
    g_assert_cmpfloat(m.wall, >=, 0.2);
    busy[2].fail_at = busy[2].runs + 5;
    g_assert_false(
        hn_measure_streams(r, 4, &(HnMeasureOptions){ .until = HN_UNTIL_TIME, .seconds = 9 }, NULL, &m, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_VALUE);
    g_error_free(error);
}

/* --- outliers ---------------------------------------------------------------------------------------------------- */

static void test_outliers(void)
{
    HnOutliers o;
    hn_outliers_init(&o, 0);
    g_assert_true(isinf(o.limit_ns));
    hn_outliers_expect(&o, 100000);
    g_assert_cmpfloat(o.limit_ns, ==, 150000);
    hn_outliers_mark(&o);
    for (guint i = 0; i < HN_OUTLIERS_MAX + 10; i++)
        hn_outliers_add(&o, i, i % 2 ? 160000 : 400000);
    g_assert_cmpuint(o.seen, ==, HN_OUTLIERS_MAX + 10);
    hn_outliers_finish(&o, 200000);
    g_assert_cmpuint(o.n, ==, HN_OUTLIERS_MAX / 2);
    g_assert_cmpuint(o.seen, ==, HN_OUTLIERS_MAX / 2 + 5);
    g_assert_cmpfloat_with_epsilon(o.x[0].ms, 0.4, 1e-9);
    hn_outliers_clear(&o);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perf/versus/signed-rank", test_signed_rank);
    g_test_add_func("/perf/versus/verdicts", test_verdicts);
    g_test_add_func("/perf/versus/rates", test_rates);
    g_test_add_func("/perf/versus/lengths", test_lengths);
    g_test_add_func("/perf/versus/ends", test_ends);
    g_test_add_func("/perf/streams", test_streams);
    g_test_add_func("/perf/outliers", test_outliers);
    return g_test_run();
}
