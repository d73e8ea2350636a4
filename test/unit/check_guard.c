/*
 * What is not written because of its speed or its size: each limit from both sides.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "check/guard.h"
#include "cpu/core/cpu_backend.h"
#include "ir/ir_text.h"
#include "tune/trial.h"

static HnEffect effect(double lo, double middle, double hi)
{
    return (HnEffect){ .effect = middle, .lo = middle, .hi = middle, .sure_lo = lo, .sure_hi = hi };
}

static void refused(gboolean ok, GError **error, const char *words)
{
    g_assert_false(ok);
    g_assert_error(*error, HN_ERROR, HN_ERROR_GUARD);
    g_assert_cmpstr((*error)->message, ==, words);
    g_clear_error(error);
}

static void test_speed(void)
{
    g_autoptr(GError) error = NULL;
    const HnEffect e = effect(1.045, 1.05, 1.055), unknown = effect(NAN, 0.9, NAN);
    g_assert_true(hn_guard_speed(&e, 1.06, "it", &error));
    g_assert_no_error(error);
    refused(hn_guard_speed(&e, 1.01, "it", &error), &error,
            "it takes 1.050 of the time of the original, more than 1.010, 99.9% interval 1.045 to 1.055");
    g_assert_false(hn_guard_speed(&e, 1.05, "it", &error)); /* the effect itself would do */
    g_assert_error(error, HN_ERROR, HN_ERROR_NOISE);
    g_assert_cmpstr(error->message, ==,
                    "it is too noisy, or too near, to tell whether it takes more than 1.050 of the time of the "
                    "original: 1.050, 99.9% interval 1.045 to 1.055");
    g_clear_error(&error);
    g_assert_false(hn_guard_speed(&e, 1.047, "it", &error)); /* nor is it lost where the effect is above the limit */
    g_assert_error(error, HN_ERROR, HN_ERROR_NOISE);
    g_clear_error(&error);
    g_assert_false(hn_guard_speed(&unknown, 1, "it", &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_NOISE);
    g_assert_true(g_str_has_suffix(error->message, "original: 0.900"));
}

static void test_size(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_guard_smaller(99, 100, "it", &error));
    g_assert_no_error(error);
    refused(hn_guard_smaller(100, 100, "it", &error), &error, "it has 100 bytes, not less than 100");
    refused(hn_guard_smaller(G_GUINT64_CONSTANT(5000000001), G_GUINT64_CONSTANT(5000000000), "it", &error), &error,
            "it has 5000000001 bytes, not less than 5000000000");
    g_assert_true(hn_guard_size(100, 100, "--size", "it", &error));
    g_assert_true(hn_guard_size(100, 0, "--size", "it", &error));
    g_assert_no_error(error);
    refused(hn_guard_size(101, 100, "--size", "it", &error), &error, "it has 101 bytes, more than the 100 of '--size'");
    g_assert_cmpuint(hn_guard_room(0), ==, 512);
    g_assert_cmpuint(hn_guard_room(10240), ==, 10240 + 512);
    g_assert_cmpuint(hn_guard_room(10260), ==, 10260 + 513);
    g_assert_cmpuint(hn_guard_room(G_GUINT64_CONSTANT(10000000000)), ==, G_GUINT64_CONSTANT(10500000000));
}

/* What loses too much: any goal that is missed, and what is no number. */
static void test_lossy(void)
{
    const HnGoals g = { 2, { { HN_METRIC_TOP1, 0.01 }, { HN_METRIC_COS, 0.001 } } };
    const HnScore f32 = { .top1 = 1, .cos = 1, .sqnr = INFINITY, .scores = NAN, .command = NAN };
    HnScore s = f32;
    g_assert_true(hn_goals_met(&g, &s, &f32));
    s.cos = 0.9991;
    g_assert_true(hn_goals_met(&g, &s, &f32));
    s.cos = 0.9989;
    g_assert_false(hn_goals_met(&g, &s, &f32));
    s.cos = NAN;
    g_assert_false(hn_goals_met(&g, &s, &f32));
    s = f32;
    s.top1 = 0.98;
    g_assert_false(hn_goals_met(&g, &s, &f32));
}

/* --- trials of a job whose plans are texts ------------------------------------------------------------------------ */

typedef struct {
    guint built, told;
} Job;

static char *name_of(gconstpointer plan)
{
    return g_strdup(plan);
}

static HnModel *never(gpointer data, gconstpointer plan, GError **error)
{
    Job *job = data;
    job->built++;
    g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "'%s' cannot be built", (const char *)plan);
    return NULL;
}

static GPtrArray *none(gpointer data, gconstpointer plan)
{
    (void)data;
    (void)plan;
    return g_ptr_array_new();
}

static double twice(gpointer data, gconstpointer plan)
{
    (void)data;
    return 2.0 * (double)strlen(plan);
}

static void count(gpointer data, gconstpointer plan, guint number, const char *what, const HnScore *score, double drop)
{
    Job *job = data;
    (void)plan;
    (void)what;
    g_assert_cmpuint(number, ==, ++job->told);
    g_assert_cmpfloat_with_epsilon(drop, 1 - score->cos, 1e-12);
}

static void know(HnJournal *j, const char *plan, double cos)
{
    g_autoptr(GError) error = NULL;
    HnTried *t = g_new0(HnTried, 1);
    t->plan = g_strdup(plan);
    t->what = g_strdup("before");
    t->score = (HnScore){ .top1 = NAN, .cos = cos, .scores = NAN, .command = NAN };
    t->bytes = 10;
    t->f32 = g_ptr_array_new_with_free_func(g_free);
    g_assert_true(hn_journal_add_tried(j, t, &error));
    g_assert_no_error(error);
}

static void test_trials(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnJournal) journal = hn_journal_new();
    g_autoptr(GPtrArray) points = hn_pareto_new();
    const HnGoals goals = { 1, { { HN_METRIC_COS, 0.1 } } };
    const HnScore original = { .cos = 1 };
    Job job = { 0, 0 };
    HnTune t = { .job = { &job, name_of, never, none, twice, NULL, count },
                 .goals = &goals,
                 .original = &original,
                 .journal = journal,
                 .points = points };
    HnOutcome o;
    know(journal, "good", 0.95);
    know(journal, "poor", 0.5);
    g_assert_true(hn_tune_try(&t, "good", "first", TRUE, &o, &error));
    g_assert_true(o.met && o.bytes == 10);
    g_assert_cmpfloat_with_epsilon(o.part, 0.5, 1e-9);
    g_assert_true(hn_tune_try(&t, "poor", "second", TRUE, &o, &error));
    g_assert_false(o.met);
    g_assert_true(hn_tune_try(&t, "good", "the same by another way", TRUE, &o, &error));
    g_assert_true(hn_tune_try(&t, "good", "alone", FALSE, &o, &error));
    g_assert_cmpuint(t.trials, ==, 3);
    g_assert_cmpuint(job.told, ==, 3);
    g_assert_cmpuint(job.built, ==, 0);
    g_assert_cmpuint(points->len, ==, 2);
    hn_tune_choose(&t, "poor");
    g_assert_false(hn_pareto_find(points, "good")->chosen);
    g_assert_true(hn_pareto_find(points, "poor")->chosen);
    g_assert_cmpfloat(hn_pareto_find(points, "good")->ms, ==, 8);
    g_assert_false(hn_tune_try(&t, "unknown", "third", TRUE, &o, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GRAPH);
    g_assert_cmpuint(job.built, ==, 1);
}

/* --- and of one whose plans are models ---------------------------------------------------------------------------- */

#define NET "opset 17 graph g(%x:f32[1,8]) -> (%y) { %y = MatMul(%x, w:f32[8,8]) }"

static HnModel *net(gpointer data, gconstpointer plan, GError **error)
{
    (void)data;
    (void)plan;
    HnModel *m = hn_model_parse(NET, NULL, error);
    g_assert_true(hn_model_verify(m, error));
    return m;
}

static GPtrArray *left(gpointer data, gconstpointer plan)
{
    (void)data;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(names, g_strdup(plan));
    return names;
}

/* What a trial finds out is in the journal, and so is a race, in its direction; nothing begins behind an end. */
static void test_found(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnJournal) journal = hn_journal_new();
    g_autoptr(GPtrArray) points = hn_pareto_new();
    g_autoptr(HnModel) m = net(NULL, "", &error);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) data = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_autoptr(HnScorer) scorer = hn_scorer_new(net(NULL, "", &error), data, 0, 4,
                                               &(HnScorerOptions){ .backend = &hn_backend_cpu, .threads = 1 }, &error);
    g_assert_no_error(error);
    gint cancel = 0;
    const HnProgress progress = { .cancel = &cancel };
    const HnGoals goals = { 1, { { HN_METRIC_COS, 0.1 } } };
    HnScore original;
    HnEffect e;
    HnOutcome o;
    hn_scorer_original(scorer, &original);
    HnTune t = { .job = { NULL, name_of, net, left, twice, NULL, NULL },
                 .scorer = scorer,
                 .goals = &goals,
                 .original = &original,
                 .journal = journal,
                 .points = points,
                 .backend = &hn_backend_cpu,
                 .threads = 1,
                 .progress = &progress };
    g_assert_true(hn_tune_try(&t, "a", "first", TRUE, &o, &error));
    const HnTried *known = hn_journal_tried(journal, "a");
    g_assert_cmpstr(known->what, ==, "first");
    g_assert_cmpuint(known->bytes, ==, 256);
    g_assert_cmpuint(known->f32->len, ==, 1);
    g_assert_cmpstr(known->f32->pdata[0], ==, "a");
    g_assert_true(hn_pareto_find(points, "a")->predicted);
    g_assert_true(hn_tune_race(&t, "a", "b", 1, 0, &e, &error));
    g_assert_no_error(error);
    g_assert_true(hn_journal_race(journal, "a", "b", &e));
    g_assert_false(hn_journal_race(journal, "b", "a", &e));
    cancel = 1;
    g_assert_false(hn_tune_try(&t, "a", "again", TRUE, &o, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_INTERRUPTED);
}

static void add_point(GPtrArray *points, const char *plan, double drop, double ms, guint64 bytes)
{
    hn_pareto_add(
        points,
        &(HnParetoPoint){
            .what = (char *)plan, .plan = (char *)plan, .drop = drop, .bytes = bytes, .ms = ms, .predicted = TRUE });
}

/* The best are those that no other is better than in one thing, and as good in the others; times that were measured
 * count, not those that were expected. */
static void test_best(void)
{
    static const struct {
        const char *plan;
        double drop, ms;
        guint64 bytes;
        gboolean best;
    } rows[] = {
        { "all", 0.1, 1, 10, TRUE },     { "slower", 0.1, 2, 10, FALSE },   { "larger", 0.1, 1, 11, FALSE },
        { "worse", 0.2, 1, 10, FALSE },  { "exact", 0, 9, 40, TRUE },       { "twin", 0.1, 1, 10, TRUE },
        { "small", 0.3, 5, 2, TRUE },    { "untimed", 0.4, NAN, 50, TRUE }, { "measured", 0.1, 0.5, 10, FALSE },
        { "quick", 0.5, 0.2, 60, TRUE }, { "unjudged", NAN, 0.1, 1, TRUE },
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnJournal) journal = hn_journal_new();
    g_autoptr(GPtrArray) points = hn_pareto_new();
    HnNodeTimes *times = hn_node_times_new();
    times->total_ms = 7;
    g_assert_true(hn_journal_add_times(journal, "measured", times, &error));
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        add_point(points, rows[i].plan, rows[i].drop, rows[i].ms, rows[i].bytes);
    add_point(points, "all", 0, 0, 0); /* is there already */
    g_assert_cmpuint(points->len, ==, G_N_ELEMENTS(rows));
    hn_pareto_finish(points, journal);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (hn_pareto_find(points, rows[i].plan)->best != rows[i].best) {
            g_test_message("'%s' counts as %s", rows[i].plan, rows[i].best ? "beaten" : "best");
            g_test_fail();
        }
    g_assert_cmpfloat(hn_pareto_find(points, "measured")->ms, ==, 7);
    g_assert_false(hn_pareto_find(points, "measured")->predicted);
    g_assert_true(hn_pareto_find(points, "all")->predicted);
    hn_pareto_choose(points, "all");
    hn_pareto_choose(points, "exact");
    g_assert_false(hn_pareto_find(points, "all")->chosen);
    g_assert_true(hn_pareto_find(points, "exact")->chosen);
}

/* What the journal knows is not raced again, and decides as it did. */
static void test_races(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnJournal) journal = hn_journal_new();
    Job job = { 0, 0 };
    HnTune t = { .job = { &job, name_of, never, none, twice, NULL, count }, .journal = journal };
    HnEffect e;
    e = effect(0.7, 0.75, 0.8);
    g_assert_true(hn_journal_add_race(journal, "a", "b", &e, &error));
    e = effect(0, 0, 0);
    g_assert_true(hn_tune_race(&t, "a", "b", 1, 0, &e, &error));
    g_assert_cmpfloat(e.effect, ==, 0.75);
    g_assert_true(isnan(e.lo) && isnan(e.hi));
    g_assert_cmpint(hn_decide(&e, 0.8), ==, HN_WON);
    g_assert_cmpint(hn_decide(&e, 0.64), ==, HN_LOST);
    g_assert_false(hn_tune_race(&t, "b", "a", 1, 0, &e, &error)); /* the other way round it is another race */
    g_assert_cmpuint(job.built, ==, 1);
    e = effect(0.72, 0.73, 0.74); /* who races again what is known, since it tells too little, is believed */
    g_assert_true(hn_journal_add_race(journal, "a", "b", &e, &error));
    g_assert_true(hn_journal_race(journal, "a", "b", &e));
    g_assert_cmpfloat(e.effect, ==, 0.73);
}

/* What does not load: a node that nobody knows, one that cannot run, too little memory; and what may. */
static gboolean runs(const char *text, HnTensor *x, HnBudget *budget, GError **error)
{
    g_autofree char *whole = g_strconcat("opset 17 opset com.acme 1 ", text, NULL);
    g_autoptr(HnModel) m = hn_model_parse(whole, NULL, error);
    HnTensor *const in[] = { x, NULL };
    g_assert_true(hn_model_verify(m, error));
    return hn_guard_runs(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .budget = budget },
                         x != NULL ? in : NULL, "it", error);
}

static void test_runs(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) x = hn_tensor_new(HN_F32, 1, (const int64_t[]){ 4 }, NULL, NULL);
    g_assert_true(runs("%y = Relu(%x:f32[4])", x, NULL, &error));
    g_assert_true(runs("%y = Relu(%x:f16[4])", x, NULL, &error));             /* in its own type */
    g_assert_true(runs("%y = com.acme::Foo(%x:f32[4])", NULL, NULL, &error)); /* nothing to run it on */
    g_assert_no_error(error);
    refused(runs("%y = com.acme::Foo(%x:f32[4])", x, NULL, &error), &error,
            "it does not run as it was written: operator 'com.acme.Foo' of node 'y' is not known");
    g_assert_false(runs("%y = Relu(%x:f32[5])", x, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GUARD);
    g_clear_error(&error);
    g_autoptr(HnBudget) little = hn_budget_new(8);
    g_assert_false(runs("%y = Relu(%x:f32[4])", x, little, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET); /* which says nothing about the model */
}

static void test_budget(void)
{
    HnTuneBudget b;
    g_assert_false(hn_tune_late(NULL));
    g_assert_null(hn_tune_memory(NULL));
    b = (HnTuneBudget){ .seconds = 0 };
    hn_tune_start(&b);
    g_assert_false(hn_tune_late(&b));
    b = (HnTuneBudget){ .seconds = 1e-9 };
    g_assert_false(hn_tune_late(&b)); /* not started */
    hn_tune_start(&b);
    const guint64 end = b.end;
    g_usleep(10);
    hn_tune_start(&b);
    g_assert_cmpuint(b.end, ==, end); /* once */
    g_assert_true(hn_tune_late(&b));
    b = (HnTuneBudget){ .seconds = 3600 };
    hn_tune_start(&b);
    g_assert_false(hn_tune_late(&b));
    b.end = 1;
    g_assert_true(hn_tune_late(&b));
    b.end = G_MAXUINT64;
    g_assert_true(hn_tune_late(&b)); /* and stays so */
}

/* Phases: each is halted at its end, and not behind it; the whole has an end that does not move. */
static void test_phases(void)
{
    gint halt = HN_HALT_NOT;
    HnTuneBudget b = { .seconds = 3600, .halt = &halt };
    hn_tune_phase(&b, 1, 0); /* not started: nothing */
    g_assert_false(hn_tune_late(&b) || hn_tune_phase_end(&b));
    g_assert_true(isinf(hn_tune_left(&b)));
    hn_tune_start_at(&b, hn_now_ns() - (guint64)1800e9);
    g_assert_cmpfloat_with_epsilon(hn_tune_left(&b), 1800, 10);
    hn_tune_phase(&b, 0.5, 800);
    g_assert_cmpfloat_with_epsilon((double)(b.end - hn_now_ns()) * 1e-9, 500, 10);
    g_assert_false(hn_tune_late(&b));
    hn_tune_phase(&b, 1, 3000); /* more is reserved than is left */
    for (int i = 0; i < 1000 && g_atomic_int_get(&halt) == HN_HALT_NOT; i++)
        g_usleep(10000);
    g_assert_cmpint(g_atomic_int_get(&halt), ==, HN_HALT_PHASE);
    g_assert_true(hn_tune_late(&b));
    g_assert_true(hn_tune_phase_end(&b));
    g_assert_cmpint(g_atomic_int_get(&halt), ==, HN_HALT_NOT);
    g_assert_false(hn_tune_late(&b) || hn_tune_phase_end(&b));
    hn_tune_start(&b); /* there are phases: no other end */
    g_assert_true(b.end == 0);
    hn_tune_phase(&b, 1, 3000);
    halt = HN_HALT_NOT;
    hn_halt_set(&halt, HN_HALT_PHASE);
    hn_halt_set(&halt, HN_HALT_USER); /* Ctrl-C counts in any phase, and is not taken back */
    g_assert_false(hn_tune_phase_end(&b));
    g_assert_cmpint(halt, ==, HN_HALT_USER);
    hn_halt_set(&halt, HN_HALT_TIME);
    g_assert_cmpint(halt, ==, HN_HALT_USER);
    hn_tune_clear(&b);
}

/* A phase of so many seconds, in which the thread works or sleeps; seconds for one of work. */
static double phase_of(HnTuneBudget *b, double seconds, gboolean work)
{
    HnTuneCost c;
    hn_tune_phase(b, 1, 0);
    hn_tune_cost_start(&c);
    const guint64 end = hn_now_ns() + (guint64)(seconds * 1e9);
    while (hn_now_ns() < end)
        if (!work)
            g_usleep(1000);
    hn_tune_cost_stop(&c);
    (void)hn_tune_phase_end(b);
    return c.seconds / c.worked;
}

/* What is still to be done takes longer where a thread is given less of a processor than it was. */
static void test_slowness(void)
{
    const HnTuneCost c = { .seconds = 1, .worked = 0.75 };
    HnTuneBudget b = { .seconds = 3600 };
    g_assert_cmpfloat(hn_tune_again(&b, &c), ==, 1); /* nothing is known */
    hn_tune_start_at(&b, hn_now_ns());
    phase_of(&b, 0.1, FALSE);
    g_assert_cmpfloat_with_epsilon(hn_tune_again(&b, &c), 6, 1e-6); /* eight times is the most */
    phase_of(&b, 0.001, TRUE);
    g_assert_cmpfloat_with_epsilon(hn_tune_again(&b, &c), 6, 1e-6); /* too short to tell */
    const double now = fmin(phase_of(&b, 0.2, TRUE), 8);
    g_assert_cmpfloat_with_epsilon(hn_tune_again(&b, &c) / fmax(now * 0.75, 1), 1, 0.2);
    g_assert_cmpfloat(hn_tune_again(&b, &c), >=, 1); /* no less than it took */
    hn_tune_clear(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guard/speed", test_speed);
    g_test_add_func("/guard/size", test_size);
    g_test_add_func("/guard/lossy", test_lossy);
    g_test_add_func("/guard/runs", test_runs);
    g_test_add_func("/tune/trials", test_trials);
    g_test_add_func("/tune/found", test_found);
    g_test_add_func("/tune/races", test_races);
    g_test_add_func("/tune/best", test_best);
    g_test_add_func("/tune/budget", test_budget);
    g_test_add_func("/tune/slowness", test_slowness);
    g_test_add_func("/tune/phases", test_phases);
    return g_test_run();
}
