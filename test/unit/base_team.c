/* The team of threads, and OpenMP's pragmas on it: every share once, loops, nesting, many callers, forks. */
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/each.h"
#include "base/team.h"

#define MOST 64

typedef struct {
    gint calls[MOST]; /* atomic */
    gint wrong;       /* atomic */
    int n;
    gboolean barriers;
    gint reached; /* atomic */
} Count;

static void count(void *data)
{
    Count *c = data;
    const HnShare *s = hn_team_share();
    g_atomic_int_inc(&c->calls[s->id]);
    if (s->n != c->n || s->id < 0 || s->id >= c->n)
        g_atomic_int_inc(&c->wrong);
    for (int k = 1; c->barriers && k <= 3; k++) {
        g_atomic_int_inc(&c->reached);
        hn_team_barrier();
        if (g_atomic_int_get(&c->reached) < k * c->n)
            g_atomic_int_inc(&c->wrong);
        hn_team_barrier();
    }
}

/* Times that something was not as it should be. */
static int wrong_shares(int n, gboolean together, gboolean barriers)
{
    Count c = { .n = n, .barriers = barriers };
    HnRegion r = { .fn = count, .data = &c, .n = n };
    int wrong = !hn_team_run(&r, together) + g_atomic_int_get(&c.wrong);
    for (int i = 0; i < MOST; i++)
        wrong += g_atomic_int_get(&c.calls[i]) != (i < n);
    return wrong + (hn_team_share()->inside || hn_team_share()->n != 1 || hn_team_share()->id != 0);
}

static void test_shares(void)
{
    for (int n = 1; n <= MOST; n = n < 9 ? n + 1 : n * 2 - 3)
        for (int k = 0; k < 200; k++)
            g_assert_cmpint(wrong_shares(n, FALSE, FALSE), ==, 0);
    for (int n = 1; n <= 5; n++)
        for (int k = 0; k < 200; k++)
            g_assert_cmpint(wrong_shares(n, TRUE, k % 2 == 0), ==, 0);
    gboolean before = hn_team_together(TRUE);
    g_assert_false(before);
    g_assert_cmpint(wrong_shares(3, FALSE, TRUE), ==, 0);
    g_assert_true(hn_team_together(before));
}

static void note_level(void *data)
{
    int *level = data;
    level[hn_team_share()->id] = (int)hn_cpu_isa();
    g_usleep(500); /* for the others to come */
}

/* Shares have the limit of the thread whose region it is, whichever thread runs them. */
static void test_limit(void)
{
    const HnIsa all = hn_cpu_isa();
    for (int k = 0; k < 40; k++) {
        const HnIsa most = k % 2 == 0 ? HN_ISA_NONE : HN_ISA_AMX, before = hn_cpu_limit_isa(most);
        int level[4] = { -1, -1, -1, -1 };
        HnRegion r = { .fn = note_level, .data = level, .n = 4 };
        g_assert_true(hn_team_run(&r, k % 4 < 2));
        for (int i = 0; i < 4; i++)
            g_assert_cmpint(level[i], ==, MIN(all, most));
        hn_cpu_limit_isa(before);
    }
}

static void test_many(void)
{
    long sum = 0;
    for (int k = 0; k < 1000000; k++) {
        long part[2] = { 0 };
#pragma omp parallel num_threads(2)
        part[omp_get_thread_num()] += k + omp_get_thread_num();
        sum += part[1] - part[0];
    }
    g_assert_cmpint(sum, ==, 1000000);
}

/* --- callers that do not know of each other ---------------------------------------------------------------------- */

static gpointer caller(gpointer data)
{
    int wrong = 0;
    for (int k = 0; k < 3000; k++) {
        gboolean together = GPOINTER_TO_INT(data) && k % 16 == 0;
        wrong += wrong_shares(2 + k % 3, together, together && k % 32 == 0);
    }
    return GINT_TO_POINTER(wrong);
}

static void test_callers(void)
{
    GThread *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = g_thread_new("caller", caller, GINT_TO_POINTER(i % 2));
    for (int i = 0; i < 4; i++)
        g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(t[i])), ==, 0);
    g_test_message("%d threads", hn_team_threads());
}

static void test_fork(void)
{
    g_assert_cmpint(wrong_shares(2, TRUE, TRUE), ==, 0);
    pid_t child = fork();
    if (child == 0) {
        int wrong = hn_team_threads();
        for (int k = 0; k < 100; k++)
            wrong += wrong_shares(2, k % 2 == 0, k % 2 == 0);
        _exit(wrong != 0);
    }
    int status = -1;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(wrong_shares(2, TRUE, TRUE), ==, 0);
}

/* --- what compilers make of pragmas ------------------------------------------------------------------------------ */

static void test_loops(void)
{
    enum { N = 1013 };
    static gint seen[N];
    for (int n = 1; n <= 5; n++) {
        for (int i = 0; i < N; i++)
            seen[i] = 0;
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < N; i++)
            g_atomic_int_inc(&seen[i]);
#pragma omp parallel for num_threads(n) schedule(static, 7)
        for (int i = N - 1; i >= 0; i--)
            g_atomic_int_inc(&seen[i]);
#pragma omp parallel for num_threads(n) schedule(dynamic, 5)
        for (int i = 0; i < N; i++)
            g_atomic_int_inc(&seen[i]);
#pragma omp parallel for num_threads(n) schedule(dynamic)
        for (int i = N - 1; i >= 0; i -= 2)
            g_atomic_int_inc(&seen[i]);
#pragma omp parallel for num_threads(n) schedule(guided)
        for (int i = 1; i < N; i += 2)
            g_atomic_int_inc(&seen[i]);
        for (int i = 0; i < N; i++)
            g_assert_cmpint(seen[i], ==, 4);
#pragma omp parallel for num_threads(n) schedule(dynamic)
        for (int i = 0; i < 0; i++)
            g_atomic_int_inc(&seen[i]);
    }
}

static void test_nested(void)
{
    gint inner = 0, wrong = 0;
#pragma omp parallel num_threads(3)
    {
        int id = omp_get_thread_num();
        if (!omp_in_parallel())
            g_atomic_int_inc(&wrong);
#pragma omp parallel num_threads(2)
        {
            g_atomic_int_inc(&inner);
            if (omp_get_num_threads() != 1 || omp_get_thread_num() != 0 || !omp_in_parallel())
                g_atomic_int_inc(&wrong);
        }
        if (omp_get_thread_num() != id || omp_get_num_threads() != 3)
            g_atomic_int_inc(&wrong);
    }
    g_assert_cmpint(inner, ==, 3);
    g_assert_cmpint(wrong, ==, 0);
    g_assert_false(omp_in_parallel());
}

static gpointer other_setting(gpointer data)
{
    (void)data;
    omp_set_num_threads(7);
    return GINT_TO_POINTER(omp_get_max_threads());
}

static void test_settings(void)
{
    omp_set_num_threads(3);
    GThread *t = g_thread_new("setting", other_setting, NULL);
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(t)), ==, 7);
    g_assert_cmpint(omp_get_max_threads(), ==, 3);
    int n = 0;
#pragma omp parallel
    if (omp_get_thread_num() == 0)
        n = omp_get_num_threads();
    g_assert_cmpint(n, ==, 3);
    omp_set_num_threads(1);
#pragma omp parallel
    n = omp_get_num_threads();
    g_assert_cmpint(n, ==, 1);
}

/* --- pieces of work by themselves --------------------------------------------------------------------------------- */

typedef struct {
    gint done[1000], last;
    gboolean ordered;
} Pieces;

static void piece(gpointer data, gint64 i)
{
    Pieces *p = data;
    g_atomic_int_inc(&p->done[i]);
    if (g_atomic_int_get(&p->last) != (gint)i - 1)
        p->ordered = FALSE;
    g_atomic_int_set(&p->last, (gint)i);
}

static void test_each(void)
{
    static const gint64 counts[] = { 0, 1, 2, 7, 1000 };
    for (int workers = 0; workers < 9; workers++)
        for (gsize k = 0; k < G_N_ELEMENTS(counts); k++) {
            Pieces p = { .last = -1, .ordered = TRUE };
            hn_each(counts[k], workers, piece, &p);
            for (gint64 i = 0; i < 1000; i++)
                g_assert_cmpint(p.done[i], ==, i < counts[k]);
            if (workers < 2)
                g_assert_true(p.ordered);
        }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/team/shares", test_shares);
    g_test_add_func("/base/team/limit", test_limit);
    g_test_add_func("/base/team/many", test_many);
    g_test_add_func("/base/team/callers", test_callers);
    g_test_add_func("/base/team/fork", test_fork);
    g_test_add_func("/base/team/loops", test_loops);
    g_test_add_func("/base/team/nested", test_nested);
    g_test_add_func("/base/team/settings", test_settings);
    g_test_add_func("/base/each", test_each);
    return g_test_run();
}
