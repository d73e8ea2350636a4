/*
 * Goals that meet a budget: costs that are counted, and costs that are measured, noisily.
 */
#include <math.h>

#include "base/error.h"
#include "prune/meet.h"

typedef struct {
    double power, floor; /* a goal costs pow(goal, power), no less than the floor */
    const double *noise; /* by measurement: what it is off by; NULL: by nothing */
    const double *wide;  /* by measurement: the interval reaches from cost / wide to cost * wide */
    guint n, measured, again, settled;
    double kept;  /* goal that was kept */
    double stair; /* goals above it cost 0.75, others 0.6; 0: there is none */
} Job;

static gboolean attempt(gpointer data, HnPruneTry *t, guint patience, GError **error)
{
    Job *job = data;
    const guint i = job->measured++;
    const double noise = job->noise != NULL && i < job->n ? job->noise[i] : 1;
    const double wide = job->wide != NULL && i < job->n ? job->wide[i] : 1;
    const double stair = t->goal > job->stair ? 0.75 : 0.6;
    const double cost = job->stair > 0 ? stair : pow(t->goal, job->power);
    job->again += patience > 0;
    t->least = cost < job->floor;
    t->cost = MAX(cost, job->floor) * noise;
    t->lo = t->cost / wide;
    t->hi = t->cost * wide;
    if (isfinite(noise))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_IO, "no more");
    return FALSE;
}

static gboolean settle(gpointer data, const HnPruneTry *t, gboolean best, G_GNUC_UNUSED GError **error)
{
    Job *job = data;
    job->settled++;
    if (best)
        job->kept = t->goal;
    return TRUE;
}

static HnPruneMeeting run(Job *job, gboolean any, HnPruneTry *best)
{
    g_autoptr(GError) error = NULL;
    const HnPruneMeet m = { .limit = 0.7,
                            .lo = 0.7 * 0.98,
                            .hi = 0.7 * (job->stair > 0 ? 1 : 1.02),
                            .measured = job->stair == 0,
                            .any = any,
                            .attempt = attempt,
                            .settle = settle,
                            .data = job };
    HnPruneMeeting how;
    g_assert_true(hn_prune_meet(&m, 0.7, &how, best, &error));
    g_assert_no_error(error);
    return how;
}

/* A cost that falls far faster than the goal does, or hardly, is met in eight rounds. */
static void test_steep(void)
{
    static const double powers[] = { 0.3, 0.5, 1, 2, 4, 8 };
    for (guint i = 0; i < G_N_ELEMENTS(powers); i++) {
        Job job = { .power = powers[i] };
        HnPruneTry best;
        g_assert_cmpint(run(&job, FALSE, &best), ==, HN_PRUNE_MET);
        g_assert_cmpfloat(best.cost, >=, 0.7 * 0.98);
        g_assert_cmpfloat(best.cost, <=, 0.7 * 1.02);
        g_assert_cmpfloat(job.kept, ==, best.goal);
        g_assert_cmpint((int)job.again, ==, 0);
    }
}

/* 0.16, 0.20, 1.06, 0.88: what a busy machine said of models that take 0.7 and about; it is asked again, and what comes
 * of that holds. */
static void test_busy(void)
{
    static const double noise[] = { 0.23, 1, 0.2, 1.4, 1 }, wide[] = { 7, 1.02, 5, 2, 1.02 };
    Job job = { .power = 2, .noise = noise, .wide = wide, .n = 5 };
    HnPruneTry best;
    g_assert_cmpint(run(&job, FALSE, &best), ==, HN_PRUNE_MET);
    g_assert_cmpfloat(best.cost, >=, 0.7 * 0.98);
    g_assert_cmpfloat(best.cost, <=, 0.7 * 1.02);
    g_assert_cmpfloat(pow(job.kept, 2), ==, best.cost); /* what was measured without noise */
    g_assert_cmpint((int)job.again, ==, 3);
}

/* Where it stays noisy nothing is taken, unless anything is. */
static void test_noisy(void)
{
    static const double noise[] = { 0.23, 0.29, 1.5, 1.2, 0.8, 0.9, 1.1, 1 }, wide[] = { 5, 5, 5, 5, 5, 5, 5, 5 };
    Job job = { .power = 1, .noise = noise, .wide = wide, .n = 8 }, forced = job, later = job;
    static const double later_wide[] = { 1.01, 5, 5, 5 }, later_noise[] = { 0.8, 1, 1.1, 1.2 };
    HnPruneTry best;
    g_assert_cmpint(run(&job, FALSE, &best), ==, HN_PRUNE_UNKNOWN);
    g_assert_cmpint((int)job.measured, ==, HN_PRUNE_PATIENCE);
    g_assert_cmpfloat(job.kept, ==, 0);
    g_assert_cmpint((int)job.settled, ==, 1);
    g_assert_cmpint(run(&forced, TRUE, &best), ==, HN_PRUNE_MET);
    g_assert_cmpfloat(forced.kept, ==, best.goal);
    later.wide = later_wide; /* what was known before stays */
    later.noise = later_noise;
    later.n = 4;
    g_assert_cmpint(run(&later, FALSE, &best), ==, HN_PRUNE_MET);
    g_assert_cmpfloat(later.kept, ==, 0.7);
    g_assert_cmpfloat(best.cost, ==, 0.7 * 0.8);
}

/* Widths come in steps: what costs too little and too much may have nothing between them. */
static void test_stair(void)
{
    Job job = { .stair = 0.71 };
    HnPruneTry best;
    g_assert_cmpint(run(&job, FALSE, &best), ==, HN_PRUNE_MET);
    g_assert_cmpfloat(best.cost, ==, 0.6);
    g_assert_cmpint((int)job.measured, <, HN_PRUNE_ROUNDS);
    g_assert_cmpint((int)job.measured, >, 2);
}

/* A wide interval that does not reach the limit tells what is asked. */
static void test_far_off(void)
{
    static const double noise[] = { 0.5 }, wide[] = { 1.9 };
    Job job = { .power = 1, .noise = noise, .wide = wide, .n = 1 };
    HnPruneTry best;
    g_assert_cmpint(run(&job, FALSE, &best), ==, HN_PRUNE_MET);
    g_assert_cmpint((int)job.again, ==, 0);
    g_assert_cmpint((int)job.settled, >, 1);
}

static void test_impossible(void)
{
    Job job = { .power = 1, .floor = 0.8 };
    HnPruneTry best;
    g_assert_cmpint(run(&job, FALSE, &best), ==, HN_PRUNE_IMPOSSIBLE);
    g_assert_cmpfloat(best.cost, ==, 0.8);
    g_assert_cmpint((int)job.settled, ==, 1);
    g_assert_cmpfloat(job.kept, ==, 0);
}

static void test_error(void)
{
    static const double noise[] = { 1.5, INFINITY };
    Job job = { .power = 1, .noise = noise, .n = 2 };
    g_autoptr(GError) error = NULL;
    const HnPruneMeet m = { .limit = 0.7, .lo = 0.69, .hi = 0.7, .attempt = attempt, .settle = settle, .data = &job };
    HnPruneMeeting how;
    HnPruneTry best;
    g_assert_false(hn_prune_meet(&m, 0.7, &how, &best, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_assert_cmpint((int)job.settled, ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune/meet/steep", test_steep);
    g_test_add_func("/prune/meet/stair", test_stair);
    g_test_add_func("/prune/meet/busy", test_busy);
    g_test_add_func("/prune/meet/noisy", test_noisy);
    g_test_add_func("/prune/meet/far-off", test_far_off);
    g_test_add_func("/prune/meet/impossible", test_impossible);
    g_test_add_func("/prune/meet/error", test_error);
    return g_test_run();
}
