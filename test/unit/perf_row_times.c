/* Times of rows out of made-up runs, in which what disturbs them is known: no clock is read here. */
#include "perf/row_times.h"

#include <math.h>

#include "base/rng.h"

#define ROWS 12
#define OUTSIDE 0.05

/* ms of the rows when nothing disturbs: 0.1 and 1.2 times as much, and so on, in an order of their own. */
static double true_ms(guint row)
{
    return 0.1 * pow(1.2, row * 5 % ROWS);
}

static double true_total(void)
{
    double sum = OUTSIDE;
    for (guint row = 0; row < ROWS; row++)
        sum += true_ms(row);
    return sum;
}

/* What happens in a run; changes the times of its rows and outside (the last one). */
typedef void (*Disturb)(HnRng *rng, guint run, double *ms);

static double jitter(HnRng *rng)
{
    return 1 - 0.01 * log(1 - hn_rng_double(rng)); /* 1 % later on average, never earlier */
}

static double make_run(HnRng *rng, guint run, Disturb disturb, double *ms)
{
    double sum = 0;
    for (guint row = 0; row <= ROWS; row++)
        ms[row] = (row < ROWS ? true_ms(row) : OUTSIDE) * jitter(rng);
    if (disturb)
        disturb(rng, run, ms);
    for (guint row = 0; row <= ROWS; row++)
        sum += ms[row];
    return sum;
}

static HnRowRun *new_run(guint64 kind, const double *ms, guint n, double outside)
{
    HnRowRun *r = g_malloc0(sizeof *r + n * sizeof r->ms[0]);
    *r = (HnRowRun){ .kind = kind, .profiled = outside, .outside = outside, .n = n };
    for (guint row = 0; row < n; row++) {
        r->ms[row] = (float)ms[row];
        r->profiled += ms[row];
    }
    r->unprofiled = r->profiled;
    return r;
}

/* Pairs of runs; profiling makes each row `cost` times as long. */
static GPtrArray *make_runs(guint n, Disturb disturb, double cost, int seed)
{
    GPtrArray *runs = g_ptr_array_new_with_free_func(g_free);
    HnRng rng = hn_rng((guint64)seed);
    double ms[ROWS + 1];
    for (guint run = 0; run < n; run++) {
        make_run(&rng, run, disturb, ms);
        for (guint row = 0; row <= ROWS; row++)
            ms[row] *= cost;
        HnRowRun *r = new_run(0, ms, ROWS, ms[ROWS]);
        r->unprofiled = make_run(&rng, run, disturb, ms);
        r->number = run;
        g_ptr_array_add(runs, r);
    }
    return runs;
}

/* What holds whatever happened. */
static void check(const HnRowTimes *t, guint n_rows)
{
    double sum = 0;
    for (guint row = 0; row <= n_rows; row++) {
        const HnRowTime *x = &t->rows[row];
        g_assert_true(isfinite(x->ms) && x->p10 <= x->ms && x->ms <= x->p90 && x->spread >= 0);
        g_assert_true(x->level >= HN_ROWS_LOWEST && x->level <= 0.5);
        g_assert_true(x->lo >= 0 && x->lo <= x->ms && x->ms <= x->hi);
        sum += x->ms;
    }
    g_assert_cmpfloat_with_epsilon(sum, t->total, 1e-9);
    g_assert_cmpfloat_with_epsilon(t->disturbed, fmax(0, t->unprofiled - t->total), 1e-9);
    g_assert_true(t->scale <= 1 && t->lift >= 1 && t->lift <= 1 + HN_ROWS_LIFT);
}

/* Rows stand in the proportions that they have without disturbance, each within `part`; returns the factor. */
static double check_proportions(const HnRowTimes *t, double part)
{
    const double factor = t->total / true_total();
    for (guint row = 0; row < ROWS; row++)
        g_assert_cmpfloat_with_epsilon(t->rows[row].ms / true_ms(row) / factor, 1, part);
    g_assert_cmpfloat_with_epsilon(t->rows[ROWS].ms / OUTSIDE / factor, 1, part);
    return factor;
}

/* For several seeds: what `expect` says of the estimate from n runs. */
static void each_seed(guint n, Disturb disturb, double cost, void (*expect)(const HnRowTimes *t))
{
    for (int seed = 0; seed < 10; seed++) {
        g_autoptr(GPtrArray) runs = make_runs(n, disturb, cost, seed);
        HnRowTimes t;
        hn_row_times(runs, ROWS, 0, &t);
        check(&t, ROWS);
        g_assert_cmpuint(t.kinds, ==, 1);
        expect(&t);
        hn_row_times_clear(&t);
    }
}

/* --- quiet ------------------------------------------------------------------------------------------------ */

static void is_exact(const HnRowTimes *t)
{
    g_assert_cmpfloat_with_epsilon(t->total / t->unprofiled, 1, 0.001);
    g_assert_cmpfloat_with_epsilon(check_proportions(t, 0.01), 1.01, 0.005); /* with the mean delay */
    g_assert_cmpfloat(t->scale, >, 0.99);
}

static void test_quiet(void)
{
    each_seed(100, NULL, 1, is_exact);
}

static void is_exact_and_scaled(const HnRowTimes *t)
{
    g_assert_cmpfloat_with_epsilon(t->scale, 1 / 1.08, 0.005);
    g_assert_cmpfloat_with_epsilon(t->total / t->unprofiled, 1, 0.002);
    check_proportions(t, 0.01);
}

static void test_overhead(void)
{
    each_seed(100, NULL, 1.08, is_exact_and_scaled);
}

/* --- disturbed -------------------------------------------------------------------------------------------- */

#define SLICE 4.0 /* ms that another program gets: more than all rows together */

/* In each run the slice is lost in a row by chance, the longer the likelier. */
static void lose_slice(HnRng *rng, guint run, double *ms)
{
    (void)run;
    double at = hn_rng_double(rng) * true_total();
    for (guint row = 0; row <= ROWS; row++) {
        const double length = row < ROWS ? true_ms(row) : OUTSIDE;
        if (at >= 0 && at < length)
            ms[row] += SLICE;
        at -= length;
    }
}

/* The slice is in nobody's time, though each run has one. */
static void is_slice_apart(const HnRowTimes *t)
{
    g_assert_cmpfloat_with_epsilon(check_proportions(t, 0.01), 1, 0.05 + 0.01);
    g_assert_cmpfloat_with_epsilon(t->disturbed, SLICE, 0.1 * SLICE);
}

static void test_lost_slices(void)
{
    each_seed(100, lose_slice, 1, is_slice_apart);
}

static void slow_at_last(HnRng *rng, guint run, double *ms)
{
    (void)rng;
    for (guint row = 0; run >= 60 && row <= ROWS; row++)
        ms[row] *= 2;
}

static void test_slow_phase(void)
{
    each_seed(100, slow_at_last, 1, is_exact);
}

static void slow_mostly(HnRng *rng, guint run, double *ms)
{
    (void)rng;
    for (guint row = 0; run < 70 && row <= ROWS; row++)
        ms[row] *= 2;
}

/* The median run is slow, and all rows are told as in it. */
static void is_double(const HnRowTimes *t)
{
    g_assert_cmpfloat_with_epsilon(check_proportions(t, 0.01), 2, 0.03);
    g_assert_cmpfloat_with_epsilon(t->total / t->unprofiled, 1, 0.002);
}

static void test_mostly_slow(void)
{
    each_seed(100, slow_mostly, 1, is_double);
}

/* The clock has two paces, and the run a coin. */
static void two_clocks(HnRng *rng, guint run, double *ms)
{
    (void)run;
    const double pace = hn_rng_double(rng) < 0.5 ? 1 : 1.3;
    for (guint row = 0; row <= ROWS; row++)
        ms[row] *= pace;
}

/* No row is of one pace and another row of the other one. */
static void is_of_one_pace(const HnRowTimes *t)
{
    const double factor = check_proportions(t, 0.03);
    g_assert_true(factor > 0.99 && factor < 1.33);
    g_assert_cmpfloat(t->total / t->unprofiled, <, 1.001);
}

static void test_two_clocks(void)
{
    each_seed(100, two_clocks, 1, is_of_one_pace);
}

/* Phases of 25 runs, slower ones of which make each row longer by 15 to 35 %; a slice is lost now and then. */
static void phases(HnRng *rng, guint run, double *ms)
{
    const guint phase = run / 25 % 4;
    for (guint row = 0; phase && row <= ROWS; row++)
        ms[row] *= phase == 1 ? 1.6 : 1.15 + 0.2 * (row % 3) / 2;
    if (run % 10 == 0)
        lose_slice(rng, run, ms);
}

/* Rows add up to the median run, and stand in the proportions of its phase. */
static void is_of_usual_phase(const HnRowTimes *t)
{
    g_assert_cmpfloat_with_epsilon(t->total / t->unprofiled, 1, 0.02);
    g_assert_cmpfloat_with_epsilon(check_proportions(t, 0.12), 1.25, 0.05);
}

static void test_phases(void)
{
    each_seed(200, phases, 1, is_of_usual_phase);
}

/* One row takes three quarters of the time, and loses a slice in half of the runs: all others stay what they are. */
static void large_row(HnRng *rng, guint run, double *ms)
{
    ms[0] = 3 * true_total() * jitter(rng);
    if (run % 2)
        ms[0] += SLICE * hn_rng_double(rng);
}

static void is_one_row_alone(const HnRowTimes *t)
{
    for (guint row = 1; row < ROWS; row++)
        g_assert_cmpfloat_with_epsilon(t->rows[row].ms / true_ms(row) / t->lift, 1, 0.03);
}

static void test_large_row(void)
{
    each_seed(200, large_row, 1, is_one_row_alone);
}

/* Each row by itself meets the other program on the second core. */
static void one_core_of_two(HnRng *rng, guint run, double *ms)
{
    (void)run;
    for (guint row = 0; row <= ROWS; row++)
        if (hn_rng_double(rng) < 0.5)
            ms[row] *= 2;
}

static void is_undisturbed(const HnRowTimes *t)
{
    g_assert_cmpfloat_with_epsilon(check_proportions(t, 0.12), 1, 0.12);
    g_assert_cmpfloat_with_epsilon(t->disturbed / t->unprofiled, 1 - 1 / 1.5, 0.1);
}

static void test_one_core_of_two(void)
{
    each_seed(200, one_core_of_two, 1, is_undisturbed);
}

/* Unprofiled runs alone are slow: nothing explains that, so that nothing is made to. */
static void test_honest(void)
{
    g_autoptr(GPtrArray) runs = make_runs(100, NULL, 1, 1);
    HnRowTimes t;
    for (guint i = 0; i < runs->len; i++)
        ((HnRowRun *)runs->pdata[i])->unprofiled *= 1.5;
    hn_row_times(runs, ROWS, 0, &t);
    check(&t, ROWS);
    g_assert_cmpfloat(t.scale, ==, 1);
    g_assert_cmpfloat(t.total / t.unprofiled, <, 1.05 / 1.5);
    hn_row_times_clear(&t);
}

/* --- the clock -------------------------------------------------------------------------------------------- */

/* Rows of about one and a half steps of the clock, which shows one or two of them; the caller fills in at random. */
static void test_coarse_clock(void)
{
    for (int seed = 0; seed < 10; seed++) {
        g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(g_free);
        HnRng rng = hn_rng((guint64)seed);
        HnRowTimes t;
        for (guint run = 0; run < 1000; run++) {
            double ms[ROWS], end = hn_rng_double(&rng), before = end;
            const double start = end;
            for (guint row = 0; row < ROWS; row++, before = end) {
                end += 1.5 + 0.01 * row;
                ms[row] = floor(end) - floor(before) + hn_rng_double(&rng) - 0.5;
            }
            HnRowRun *r = new_run(0, ms, ROWS, 0);
            r->profiled = r->unprofiled = floor(end) - floor(start) + hn_rng_double(&rng) - 0.5;
            g_ptr_array_add(runs, r);
        }
        hn_row_times(runs, ROWS, 1, &t);
        check(&t, ROWS);
        g_assert_cmpfloat_with_epsilon(t.total / t.unprofiled, 1, 0.02);
        for (guint row = 0; row < ROWS; row++)
            g_assert_cmpfloat_with_epsilon(t.rows[row].ms, 1.5 + 0.01 * row, 0.15);
        hn_row_times_clear(&t);
    }
}

/* --- places ----------------------------------------------------------------------------------------------- */

static void test_places_by_hand(void)
{
    const double lo[] = { 1, 7, 3.5, 3, 9 }, hi[] = { 2, 8, 5, 3.5, 11 };
    const HnRowPlaces want[] = { { 5, 5 }, { 2, 2 }, { 3, 4 }, { 3, 4 }, { 1, 1 } };
    HnRowPlaces places[5];
    hn_row_places(lo, hi, 5, places);
    for (int i = 0; i < 5; i++) {
        g_assert_cmpuint(places[i].first, ==, want[i].first);
        g_assert_cmpuint(places[i].last, ==, want[i].last);
    }
    hn_row_places(lo, hi, 0, places);
}

#define SETS 20
#define TOP 5

typedef struct {
    double ms[ROWS];
    HnRowPlaces places[ROWS];
} Told;

/* Rows of which some differ by a hundredth: what is told of them by another process, whose memory makes each of them up
 * to 1 % longer. */
static void tell(int seed, Disturb disturb, Told *told)
{
    HnRng rng = hn_rng((guint64)seed + 1000);
    double as_placed[ROWS], lo[ROWS], hi[ROWS];
    g_autoptr(GPtrArray) runs = make_runs(200, disturb, 1, seed);
    HnRowTimes t;
    for (guint row = 0; row < ROWS; row++) {
        const double near = row % 4 == 3 ? 1 : 0.1 * pow(1.2, 7) * (1 + 0.01 * (row % 4)) / true_ms(row);
        as_placed[row] = (row % 2 ? near : 1) * (1 + 0.01 * hn_rng_double(&rng));
    }
    for (guint i = 0; i < runs->len; i++)
        for (guint row = 0; row < ROWS; row++)
            ((HnRowRun *)runs->pdata[i])->ms[row] *= (float)as_placed[row];
    hn_row_times(runs, ROWS, 0, &t);
    check(&t, ROWS);
    for (guint row = 0; row < ROWS; row++) {
        told->ms[row] = t.rows[row].ms;
        lo[row] = t.rows[row].lo;
        hi[row] = t.rows[row].hi;
    }
    hn_row_places(lo, hi, ROWS, told->places);
    hn_row_times_clear(&t);
}

/* The longest rows of one process are, by what it says itself, among those that may be the longest of any other. */
typedef struct {
    Disturb disturb;
    guint sure; /* places of a process, at least */
} Sure;

static void test_places(gconstpointer data)
{
    const Sure *c = data;
    g_autofree Told *told = g_new(Told, SETS);
    guint sure = 0, wrong = 0;
    for (int i = 0; i < SETS; i++)
        tell(i, c->disturb, &told[i]);
    for (int a = 0; a < SETS; a++)
        for (guint row = 0; row < ROWS; row++)
            for (int b = 0; told[a].places[row].last <= TOP && b < SETS; b++) {
                sure++;
                wrong += told[b].places[row].first > TOP;
            }
    g_test_message("%u of %u places that are told as sure are not even possible elsewhere", wrong, sure);
    g_assert_cmpuint(sure, >=, c->sure * SETS * SETS); /* some are told apart */
    g_assert_cmpuint(wrong * 100, <=, sure);
}

/* Half of each part of the runs is slow in one phase, and the row's time is not known better than that. */
static void slow_phases(HnRng *rng, guint run, double *ms)
{
    (void)rng;
    ms[0] *= run / 25 % 2 ? 1.1 : 1;
}

static void test_interval(void)
{
    g_autoptr(GPtrArray) two = make_runs(200, one_core_of_two, 1, 1), runs = make_runs(200, slow_phases, 1, 1),
                         few = make_runs(15, NULL, 1, 1);
    HnRowTimes t;
    hn_row_times(runs, ROWS, 0, &t);
    g_assert_cmpfloat(t.rows[0].hi - t.rows[0].lo, >, 0.08 * t.rows[0].ms);
    g_assert_cmpfloat_with_epsilon(t.rows[1].hi - t.rows[1].lo, 2 * HN_ROWS_PLACED * t.rows[1].ms, 1e-9);
    hn_row_times_clear(&t);
    hn_row_times(two, ROWS, 0, &t); /* chance decides which of two times it has */
    g_assert_cmpfloat(t.rows[0].hi, >, t.rows[0].ms + 0.4 * true_ms(0));
    hn_row_times_clear(&t);
    hn_row_times(few, ROWS, 0, &t); /* of which no parts can be made */
    check(&t, ROWS);
    g_assert_cmpfloat(t.rows[0].lo, <=, t.rows[0].p10);
    g_assert_cmpfloat(t.rows[0].hi, >=, t.rows[0].p90);
    hn_row_times_clear(&t);
}

/* --- kinds ------------------------------------------------------------------------------------------------ */

/* One of 20 runs is of a kind in which row 1 runs, too, and takes 100 times as long. */
static void test_kinds(void)
{
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(g_free);
    HnRowTimes t;
    for (guint i = 0; i < 100; i++) {
        const gboolean large = i % 20 == 0;
        const double ms[2] = { large ? 100 : 1, large ? 50 : 0 };
        g_ptr_array_add(runs, new_run(large ? 7 : 3, ms, large ? 2 : 1, 0.5)); /* the row is not known to the others */
    }
    hn_row_times(runs, 2, 0, &t);
    check(&t, 2);
    g_assert_cmpuint(t.kinds, ==, 2);
    g_assert_cmpfloat_with_epsilon(t.rows[0].ms, 0.05 * 100 + 0.95, 1e-5);
    g_assert_cmpfloat_with_epsilon(t.rows[1].ms, 0.05 * 50, 1e-5);
    g_assert_cmpfloat_with_epsilon(t.rows[2].ms, 0.5, 1e-5);
    g_assert_cmpfloat_with_epsilon(t.unprofiled, 0.05 * 150.5 + 0.95 * 1.5, 1e-5);
    g_assert_cmpfloat_with_epsilon(t.disturbed, 0, 1e-5);
    hn_row_times_clear(&t);
}

static void test_few(void)
{
    for (guint n = 1; n < 6; n++) {
        g_autoptr(GPtrArray) runs = make_runs(n, lose_slice, 1, (int)n);
        HnRowTimes t;
        hn_row_times(runs, ROWS, 0, &t);
        check(&t, ROWS);
        hn_row_times_clear(&t);
    }
    g_autoptr(GPtrArray) nothing = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(nothing, new_run(0, NULL, 0, 0));
    HnRowTimes t;
    hn_row_times(nothing, 3, 0, &t);
    check(&t, 3);
    g_assert_cmpfloat(t.total, ==, 0);
    hn_row_times_clear(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/row-times/quiet", test_quiet);
    g_test_add_func("/row-times/overhead", test_overhead);
    g_test_add_func("/row-times/lost-slices", test_lost_slices);
    g_test_add_func("/row-times/slow-phase", test_slow_phase);
    g_test_add_func("/row-times/mostly-slow", test_mostly_slow);
    g_test_add_func("/row-times/two-clocks", test_two_clocks);
    g_test_add_func("/row-times/phases", test_phases);
    g_test_add_func("/row-times/large-row", test_large_row);
    g_test_add_func("/row-times/one-core-of-two", test_one_core_of_two);
    g_test_add_func("/row-times/honest", test_honest);
    g_test_add_func("/row-times/coarse-clock", test_coarse_clock);
    static const Sure quiet = { NULL, 2 }, slices = { lose_slice, 2 }, one_core = { one_core_of_two, 0 };
    g_test_add_func("/row-times/places", test_places_by_hand);
    g_test_add_data_func("/row-times/places-quiet", &quiet, test_places);
    g_test_add_data_func("/row-times/places-lost-slices", &slices, test_places);
    g_test_add_data_func("/row-times/places-one-core-of-two", &one_core, test_places);
    g_test_add_func("/row-times/interval", test_interval);
    g_test_add_func("/row-times/kinds", test_kinds);
    g_test_add_func("/row-times/few", test_few);
    return g_test_run();
}
