/* Loops that threads share: every iteration once, whoever is slow. */
#include "base/parallel.h"

#include "base/cpu.h"
#include "base/team.h"

#define MOST 1000

typedef struct {
    gint calls[MOST], wrong, done, others; /* atomic */
    int64_t n;
    int threads;
    gint waiting[HN_DEAL_RUNS + 8]; /* of a thread: it is in a call; atomic */
} Loop;

static void count(gpointer data, int thread, int64_t from, int64_t to)
{
    Loop *l = data;
    if (thread < 0 || thread >= l->threads || from < 0 || from >= to || to > l->n ||
        !g_atomic_int_compare_and_exchange(&l->waiting[thread], 0, 1)) {
        g_atomic_int_inc(&l->wrong);
        return;
    }
    for (int64_t i = from; i < to; i++)
        g_atomic_int_inc(&l->calls[i]);
    g_atomic_int_set(&l->waiting[thread], 0);
}

static int wrong_iterations(int64_t n, int threads)
{
    g_autofree Loop *l = g_new0(Loop, 1);
    l->n = n;
    l->threads = threads;
    hn_parallel_for(n, threads, count, l);
    int wrong = g_atomic_int_get(&l->wrong);
    for (int64_t i = 0; i < MOST; i++)
        wrong += g_atomic_int_get(&l->calls[i]) != (i < n);
    return wrong;
}

static void test_once(void)
{
    const int threads[] = { 1, 2, 3, 7, 16, HN_DEAL_RUNS + 5 };
    const int64_t n[] = { 0, 1, 2, 3, 5, 8, 31, 33, 100, 999 };
    for (gsize t = 0; t < G_N_ELEMENTS(threads); t++)
        for (gsize k = 0; k < G_N_ELEMENTS(n); k++)
            for (int again = 0; again < 20; again++)
                g_assert_cmpint(wrong_iterations(n[k], threads[t]), ==, 0);
}

/* Inside of a region a loop is its caller's alone. */
static void nested(void *data)
{
    g_atomic_int_add((gint *)data, wrong_iterations(100, 4));
}

static void test_nested(void)
{
    gint wrong = 0;
    HnRegion r = { .fn = nested, .data = &wrong, .n = 3 };
    g_assert_true(hn_team_run(&r, FALSE));
    g_assert_cmpint(g_atomic_int_get(&wrong), ==, 0);
}

/* The thread that comes to iteration 0 stays there until all others are done, which somebody else has to do then. */
static void wait_at_first(gpointer data, G_GNUC_UNUSED int thread, int64_t from, int64_t to)
{
    Loop *l = data;
    g_atomic_int_add(&l->done, (gint)(to - from));
    const gint64 until = g_get_monotonic_time() + G_USEC_PER_SEC / 5;
    g_usleep(100); /* no loop of a few microseconds, which threads would not share anew */
    while (from == 0 && g_atomic_int_get(&l->done) < l->n && g_get_monotonic_time() < until)
        g_thread_yield();
    if (from == 0)
        g_atomic_int_set(&l->others, g_atomic_int_get(&l->done) == l->n && to < l->n / 2);
}

/* Where a thread is away all that it has not begun is done by the others. Not judged where the loop was its caller's
 * alone, since somebody else wants the CPUs. */
static void test_slow_thread(void)
{
    if (hn_cpu_affinity() < 2) {
        g_test_skip("one CPU");
        return;
    }
    int seen = 0;
    for (int again = 0; again < 50 && seen == 0; again++) {
        g_autofree Loop *l = g_new0(Loop, 1);
        l->n = 64;
        while (hn_team_alone())
            g_usleep(1000);
        hn_parallel_for(l->n, 2, wait_at_first, l);
        seen = g_atomic_int_get(&l->others);
    }
    g_assert_cmpint(seen, ==, 1);
}

/* Without threads: whose pieces come in which order. */
static void test_deal(void)
{
    HnDeal d;
    int64_t from, to, end = 0;
    hn_deal(&d, 12, 2); /* [0, 6) and [6, 12) */
    g_assert_true(hn_deal_next(&d, 0, FALSE, &from, &to));
    g_assert_cmpint(from, ==, 0);
    g_assert_cmpint(to, ==, 2);
    for (int64_t sum = to; sum < 6; sum += to - from) {
        end = to;
        g_assert_true(hn_deal_next(&d, 0, FALSE, &from, &to));
        g_assert_cmpint(from, ==, end);
    }
    g_assert_true(hn_deal_next(&d, 0, FALSE, &from, &to)); /* stolen, from the end */
    g_assert_cmpint(from, ==, 10);
    g_assert_cmpint(to, ==, 12);
    g_assert_true(hn_deal_next(&d, 1, FALSE, &from, &to));
    g_assert_cmpint(from, ==, 6);
    g_assert_cmpint(to, ==, 8);
    for (int64_t left = 2; left > 0; left -= to - from)
        g_assert_true(hn_deal_next(&d, 5, FALSE, &from, &to)); /* a thread without a run */
    g_assert_false(hn_deal_next(&d, 0, FALSE, &from, &to));
    g_assert_false(hn_deal_next(&d, 1, FALSE, &from, &to));
    hn_deal(&d, 12, 2); /* in a hurry: all of its own, nothing else */
    g_assert_true(hn_deal_next(&d, 0, FALSE, &from, &to));
    g_assert_true(hn_deal_next(&d, 0, TRUE, &from, &to));
    g_assert_cmpint(from, ==, 2);
    g_assert_cmpint(to, ==, 6);
    g_assert_false(hn_deal_next(&d, 0, TRUE, &from, &to));
    g_assert_true(hn_deal_next(&d, 0, FALSE, &from, &to));
    g_assert_cmpint(from, ==, 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parallel/deal", test_deal);
    g_test_add_func("/parallel/once", test_once);
    g_test_add_func("/parallel/nested", test_nested);
    g_test_add_func("/parallel/slow-thread", test_slow_thread);
    return g_test_run();
}
