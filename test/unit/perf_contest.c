/* Comparing by a made-up clock, several streams, and outliers. */
#include <math.h>

#include "perf/outliers.h"
#include "perf/streams.h"
#include "perf/contest.h"

#define SIDES 3

typedef struct {
    double ns[SIDES];     /* of a run of a side */
    double luck, drift;   /* standard deviation of instances; of the machine, per round */
    double process;       /* the same of the second side, for as long as the process lives */
    double trend;         /* of the second side: what it gets slower by, per second */
    double bursts, inert; /* share of runs beside a burst of others' work; how like a state is to the one before */
    double swing;         /* standard deviation of the second side's states, one for each round */
    double state, off;
    gboolean burst;
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
    if (f->opened == 1)
        f->off = f->process * hn_rng_normal(&f->rng);
    f->now[side] = f->ns[side] * exp(f->luck * hn_rng_normal(&f->rng));
    if (side == 0)
        f->machine = exp(f->drift * hn_rng_normal(&f->rng));
    if (side == 1) {
        f->state = f->inert * f->state + sqrt(1 - f->inert * f->inert) * f->swing * hn_rng_normal(&f->rng);
        f->now[side] *= exp(f->off + f->state + f->trend * (double)f->clock * 1e-9);
    }
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
    /* others' work comes and goes in stretches of some 20 runs, whoever runs */
    if (hn_rng_double(&f->rng) < 0.05)
        f->burst = hn_rng_double(&f->rng) < f->bursts;
    f->clock += (guint64)(f->now[side] * f->machine * (f->burst ? 1.8 : 1) * (1 + 0.01 * hn_rng_double(&f->rng)));
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
    hn_signed_rank(x, 8, 0.95, &mid, &lo, &hi);
    g_assert_cmpfloat(mid, ==, 4.5);
    g_assert_cmpfloat(lo, ==, 2);
    g_assert_cmpfloat(hi, ==, 7);
    hn_signed_rank(x, 6, 0.95, &mid, &lo, &hi);
    g_assert_cmpfloat(lo, ==, 1);
    g_assert_cmpfloat(hi, ==, 6);
    hn_signed_rank(x, 5, 0.95, &mid, &lo, &hi);
    g_assert_true(isnan(lo) && isnan(hi) && mid == 3);

    HnRng rng = hn_rng(5);
    int hits = 0, tries = 5000;
    for (int i = 0; i < tries; i++) {
        double y[20];
        for (int k = 0; k < 20; k++)
            y[k] = hn_rng_normal(&rng);
        hn_signed_rank(y, 20, 0.95, &mid, &lo, &hi);
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

/* --- decisions --------------------------------------------------------------------------------------------------- */

/* n = 11: 2 of 2^11 orders of signs have a sum of ranks below 1, so that the ends are the outermost values. */
static void test_sure(void)
{
    double x[11], mid, lo, hi;
    for (int i = 0; i < 11; i++)
        x[i] = i;
    hn_signed_rank(x, 11, HN_SURE, &mid, &lo, &hi);
    g_assert_true(lo == 0 && hi == 10 && mid == 5);
    hn_signed_rank(x, 10, HN_SURE, &mid, &lo, &hi);
    g_assert_true(isnan(lo) && isnan(hi));
}

static HnEffect sure(double lo, double hi)
{
    return (HnEffect){ .effect = sqrt(lo * hi), .lo = 1, .hi = 1, .sure_lo = lo, .sure_hi = hi };
}

static void check_decision(double lo, double hi, double limit, HnDecision want)
{
    const HnEffect e = sure(lo, hi);
    g_assert_cmpint(hn_decide(&e, limit), ==, want);
}

static void test_decide(void)
{
    check_decision(0.9, 0.99, 1, HN_WON);
    check_decision(0.9, 1, 1, HN_WON); /* the limit itself is within it */
    check_decision(0.9, 1.001, 1, HN_UNDECIDED);
    check_decision(1.015, 1.2, 1, HN_UNDECIDED); /* by less than two hundredths */
    check_decision(1.022, 1.028, 1, HN_LOST);
    check_decision(1.021, 1.04, 1, HN_UNDECIDED);      /* so noisy that another process may come to the opposite, ... */
    check_decision(0.543, 0.575, 0.532, HN_UNDECIDED); /* ... as one did, ... */
    check_decision(0.555, 0.573, 0.533, HN_UNDECIDED); /* ... and another one, ... */
    check_decision(0.545, 0.69, 0.533, HN_UNDECIDED);  /* ... upwards as well as downwards */
    check_decision(1.075, 1.3, 1, HN_LOST);            /* none is off by so much */
    check_decision(1.3, 1.6, 1, HN_LOST);
    check_decision(1.011, 1.02, 1.02, HN_WON);
    check_decision(0.45, 0.55, 0.5, HN_UNDECIDED); /* a speed-up of 2 is asked for */
    check_decision(0.505, 0.55, 0.5, HN_UNDECIDED);
    check_decision(0.512, 0.516, 0.5, HN_LOST);
    check_decision(NAN, NAN, 1, HN_UNDECIDED);
}

/* Independent values hardly widen an interval, a trend and long waves do, single ones that are far off do not. */
static void test_widening(void)
{
    HnRng rng = hn_rng(7);
    double x[24], mean = 0, wave[24], trend[24];
    for (int i = 0; i < 24; i++) {
        wave[i] = sin(i / 3.0);
        trend[i] = i;
    }
    for (int k = 0; k < 1000; k++) {
        for (int i = 0; i < 24; i++)
            x[i] = hn_rng_normal(&rng);
        mean += hn_serial_widening(x, 24) / 1000;
    }
    g_test_message("widened by %g", mean);
    g_assert_cmpfloat(mean, <, 1.15);
    g_assert_cmpfloat(hn_serial_widening(wave, 24), >, 1.8);
    g_assert_cmpfloat(hn_serial_widening(trend, 24), >, 1.8);
    g_assert_cmpfloat(hn_serial_widening(trend, 1), ==, 1);
    for (int i = 0; i < 24; i++)
        x[i] = i % 2;
    g_assert_cmpfloat(hn_serial_widening(x, 24), ==, 1);
    for (int i = 0; i < 24; i++)
        x[i] = 3;
    g_assert_cmpfloat(hn_serial_widening(x, 24), ==, 1);
    for (int i = 0; i < 24; i++)
        x[i] = i % 2 ? -i : i;
    x[12] = x[13] = 1e9;
    g_assert_cmpfloat(hn_serial_widening(x, 24), <, 1.3);
}

typedef struct {
    const char *name;
    Fake of;
} Machine;

static const Machine machines[] = {
    { "quiet", { .luck = 0.005 } },
    { "bursts", { .luck = 0.02, .bursts = 0.3 } },
    { "a neighbour", { .luck = 0.02, .bursts = 0.5, .drift = 0.2, .process = 0.003 } },
    { "drift", { .luck = 0.01, .drift = 0.3, .trend = 0.002 } },
    { "waves", { .luck = 0.01, .swing = 0.02, .inert = 0.8 } },
    { "luck of the process", { .luck = 0.005, .process = 0.003 } },
    { "a crowd", { .luck = 0.03, .bursts = 0.5, .drift = 0.2, .process = 0.02 } }, /* more work than processors */
};

/* Decisions of `commands` processes that compare ms with `ratio` times as much: won, lost, undecided. */
static void decide(const Machine *m, double ns, double ratio, guint64 seed, int commands, guint *n)
{
    HnContestResult *r = g_new0(HnContestResult, 1);
    const HnContestOptions o = { .until = HN_UNTIL_INTERVAL, .seconds = 3, .margin = 0.02, .limit = 1, .decide = TRUE };
    n[HN_WON] = n[HN_LOST] = n[HN_UNDECIDED] = 0;
    for (int i = 0; i < commands; i++) {
        Fake f = m->of;
        f.ns[0] = ns;
        f.ns[1] = ns * ratio;
        f.rng = hn_rng(seed * 1000 + (guint64)i);
        contest(&f, 2, 1, &o, r);
        n[hn_decide(&r->effect[1], 1)]++;
        g_assert_true(r->stop == HN_STOP_INTERVAL || r->stop == HN_STOP_LIMIT);
    }
    g_free(r);
}

/* The same command again and again: never one that writes beside one that refuses, whatever the machine does beside
 * it and however near the limit the truth is; and what is clear is decided. */
static void test_decisions(void)
{
    static const double ratios[] = { 0.5, 0.93, 0.98, 0.995, 1, 1.005, 1.01, 1.02, 1.03, 1.1, 2 };
    for (gsize k = 0; k < G_N_ELEMENTS(machines); k++) {
        for (gsize i = 0; i < G_N_ELEMENTS(ratios); i++) {
            guint n[3], wrong = ratios[i] <= 1 ? HN_LOST : HN_WON, right = wrong == HN_LOST ? HN_WON : HN_LOST;
            decide(&machines[k], 3e6, ratios[i], k * 100 + i, 40, n);
            g_test_message("%s, %g: %u won, %u lost, %u undecided", machines[k].name, ratios[i], n[HN_WON], n[HN_LOST],
                           n[HN_UNDECIDED]);
            g_assert_false(n[HN_WON] > 0 && n[HN_LOST] > 0);
            if (fabs(ratios[i] - 1) > 0.05)
                g_assert_cmpuint(n[wrong], ==, 0);
            if (fabs(ratios[i] - 1) > (machines[k].of.swing > 0 || machines[k].of.process > 0.01 ? 0.4 : 0.05))
                g_assert_cmpuint(n[right], >=, 38);
        }
    }
}

/* Runs of a second are few: what is clear is decided by few rounds, what is not stays open. */
static void test_slow(void)
{
    guint n[3];
    decide(&machines[1], 4e8, 0.6, 1, 20, n);
    g_assert_cmpuint(n[HN_WON], >=, 14);
    g_assert_cmpuint(n[HN_LOST], ==, 0);
    decide(&machines[1], 4e8, 1.5, 2, 20, n);
    g_assert_cmpuint(n[HN_LOST], >=, 14);
    g_assert_cmpuint(n[HN_WON], ==, 0);
    decide(&machines[1], 4e8, 1, 3, 20, n);
    g_assert_cmpuint(n[HN_UNDECIDED], >=, 19);
}

/* Half of the mean width of the interval that decides, over 400 comparisons of n rounds, in deviations of a round. */
static double half_width(guint n)
{
    const double luck = 0.02;
    HnContestResult *r = g_new0(HnContestResult, 1);
    double sum = 0;
    for (guint64 k = 0; k < 400; k++) {
        Fake f = { .ns = { 2e6, 2e6 }, .luck = luck, .rng = hn_rng(k) };
        contest(&f, 2, 1, &(HnContestOptions){ .until = HN_UNTIL_RUNS, .runs = n, .margin = 0.02 }, r);
        g_assert_cmpuint(r->rounds, ==, n);
        sum += 0.5 * log(r->effect[1].sure_hi / r->effect[1].sure_lo);
    }
    g_free(r);
    return sum / 400 / (luck * G_SQRT2);
}

/* Few rounds: Student's factor for 99.9 %, over the root of n, and wider by the root of 24 / n; that they seem to be
 * like each other by chance adds about half of it. */
static void test_few(void)
{
    const double six = half_width(6) / (6.869 / sqrt(6) * sqrt(24.0 / 6));
    const double eight = half_width(8) / (5.408 / sqrt(8) * sqrt(24.0 / 8));
    g_test_message("%.3f and %.3f of what is due", six, eight);
    g_assert_true(six >= 1 && six <= 2);
    g_assert_true(eight >= 1 && eight <= 2);
}

/* Of all processes that compare a model with itself at the very limit, those that come to any decision at all. */
static void test_errors(void)
{
    guint n[3];
    decide(&machines[0], 3e6, 1, 77, 1000, n);
    g_test_message("%u won, %u lost", n[HN_WON], n[HN_LOST]);
    g_assert_cmpuint(n[HN_WON] + n[HN_LOST], <=, 15);
}

/* Rounds of comparisons for a second that is only of use where it takes 0.99 of the time; how many say it does. */
static guint useful_rounds(double ratio, double useful, guint *won)
{
    HnContestResult *r = g_new0(HnContestResult, 1);
    const HnContestOptions o = {
        .until = HN_UNTIL_INTERVAL, .seconds = 3, .limit = 1, .decide = TRUE, .useful = useful
    };
    guint rounds = 0;
    *won = 0;
    for (guint64 k = 0; k < 40; k++) {
        Fake f = { .ns = { 3e6, 3e6 * ratio }, .luck = 0.01, .rng = hn_rng(k) };
        contest(&f, 2, 1, &o, r);
        rounds += r->rounds;
        *won += r->effect[1].effect <= 0.99 && hn_decide(&r->effect[1], 1) == HN_WON;
    }
    g_free(r);
    return rounds;
}

/* What is of no use is not raced until it has lost, and what is of use wins as often. */
static void test_useful(void)
{
    static const double ratios[] = { 0.9, 0.97, 1, 1.015, 1.03 };
    for (gsize i = 0; i < G_N_ELEMENTS(ratios); i++) {
        guint won, before, rounds = useful_rounds(ratios[i], 0.99, &won), all = useful_rounds(ratios[i], 0, &before);
        g_test_message("%g: %u of %u rounds, %u won, %u before", ratios[i], rounds, all, won, before);
        g_assert_cmpuint(won + 1, >=, before);
        g_assert_cmpuint(won, <=, before);
        g_assert_true(ratios[i] < 0.99 ? rounds * 10 >= all * 9 : rounds * 2 < all);
    }
}

/* Times printed beside an effect are of the same estimate, and none of a round that a deadline would cut is begun. */
static void test_estimate(void)
{
    HnContestResult *r = g_new0(HnContestResult, 1);
    Fake f = { .ns = { 2e6, 1e6 }, .luck = 0.02, .rng = hn_rng(3) };
    HnContestOptions o = { .until = HN_UNTIL_INTERVAL, .seconds = 3, .margin = 0.02, .limit = 1, .decide = TRUE };
    contest(&f, 2, 1, &o, r);
    g_assert_cmpfloat_with_epsilon(r->ms, 2, 0.06);
    g_assert_cmpfloat_with_epsilon(r->ms * r->effect[1].effect, 1, 0.06);
    g_assert_cmpint(r->stop, ==, HN_STOP_INTERVAL);
    o.end = 1; /* long ago */
    contest(&f, 2, 1, &o, r);
    g_assert_cmpuint(r->rounds, ==, 1);
    g_assert_cmpint(hn_decide(&r->effect[1], 1), ==, HN_UNDECIDED);
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
    contest(&g, 2, 1, &(HnContestOptions){ .until = HN_UNTIL_INTERVAL, .seconds = 10, .margin = 0.02, .limit = 1.04 },
            r);
    g_assert_true(r->stop == HN_STOP_LIMIT || hn_decide(&r->effect[1], 1.04) != HN_UNDECIDED);
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

/* How often an interval of two samples of one distribution holds 1, how it reaches what is apart, and what few say. */
static void test_apart(void)
{
    HnRng rng;
    guint held = 0, lost = 0;
    rng = hn_rng(7);
    for (int i = 0; i < 2000; i++) {
        double a[8], b[12];
        for (gsize k = 0; k < G_N_ELEMENTS(a); k++)
            a[k] = 5 * exp(0.02 * hn_rng_normal(&rng));
        for (gsize k = 0; k < G_N_ELEMENTS(b); k++)
            b[k] = 5 * exp(0.02 * hn_rng_normal(&rng));
        const HnEffect e = hn_effect_apart(a, i % 2 ? 1 : G_N_ELEMENTS(a), b, G_N_ELEMENTS(b), 0.02);
        held += e.lo <= 1 && e.hi >= 1;
        lost += e.sure_lo > 1;
        g_assert_true(e.sure_lo < e.lo && e.lo < e.effect && e.effect < e.hi && e.hi < e.sure_hi);
    }
    g_assert_cmpuint(held, >=, 1860); /* 0.95 of 2000, less four standard deviations */
    g_assert_cmpuint(lost, ==, 0);
    const double one = 1, eight[] = { 2, 2.01, 1.99, 2, 2.02, 1.98, 2, 2.01 };
    const HnEffect e = hn_effect_apart(&one, 1, eight, 8, 0.02), none = hn_effect_apart(&one, 1, eight, 6, 0.02);
    g_assert_cmpint(hn_decide(&e, 1.5), ==, HN_LOST);
    g_assert_cmpint(e.verdict, ==, HN_VERDICT_SLOWER);
    g_assert_true(isnan(none.lo) && isnan(none.sure_hi));
    g_assert_cmpint(hn_decide(&none, 1.5), ==, HN_UNDECIDED);
    g_assert_cmpfloat_with_epsilon(hn_student(HN_Z_999, 14), 4.140, 0.01);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perf/versus/signed-rank", test_signed_rank);
    g_test_add_func("/perf/versus/verdicts", test_verdicts);
    g_test_add_func("/perf/versus/rates", test_rates);
    g_test_add_func("/perf/versus/sure", test_sure);
    g_test_add_func("/perf/versus/decide", test_decide);
    g_test_add_func("/perf/versus/widening", test_widening);
    g_test_add_func("/perf/versus/decisions", test_decisions);
    g_test_add_func("/perf/versus/slow", test_slow);
    g_test_add_func("/perf/versus/few", test_few);
    g_test_add_func("/perf/versus/errors", test_errors);
    g_test_add_func("/perf/versus/apart", test_apart);
    g_test_add_func("/perf/versus/useful", test_useful);
    g_test_add_func("/perf/versus/estimate", test_estimate);
    g_test_add_func("/perf/versus/lengths", test_lengths);
    g_test_add_func("/perf/versus/ends", test_ends);
    g_test_add_func("/perf/streams", test_streams);
    g_test_add_func("/perf/outliers", test_outliers);
    return g_test_run();
}
