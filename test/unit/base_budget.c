/* Counted memory: alignment, limits, injected failures, GBytes that give their block back. */
#include <stdint.h>
#include <string.h>

#include "base/budget.h"
#include "base/checked.h"
#include "base/progress.h"

static void test_alloc(void)
{
    g_autoptr(HnBudget) b = hn_budget_new(1000);
    g_autoptr(GError) error = NULL;
    static const gsize sizes[] = { 0, 1, 63, 64, 65, 500 };
    gpointer p[G_N_ELEMENTS(sizes)];
    gsize sum = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        p[i] = hn_budget_alloc(b, sizes[i], &error);
        g_assert_no_error(error);
        g_assert_nonnull(p[i]);
        g_assert_cmpuint((uintptr_t)p[i] % HN_ALIGN, ==, 0);
        memset(p[i], 0xff, sizes[i]);
        sum += sizes[i];
    }
    g_assert_cmpuint(hn_budget_used(b), ==, sum);
    g_assert_null(hn_budget_alloc(b, 1000 - sum + 1, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_cmpstr(error->message, ==, "needs 308 B more, the memory limit of 1 KB leaves 307 B");
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++)
        hn_budget_free(b, p[i]);
    hn_budget_free(b, NULL);
    g_assert_cmpuint(hn_budget_used(b), ==, 0);
    g_assert_cmpuint(hn_budget_peak(b), ==, sum);
    g_assert_cmpuint(hn_budget_limit(b), ==, 1000);
}

static void test_zeroed(void)
{
    for (gsize n = 1; n < 100000; n *= 3) {
        guint8 *p = hn_budget_alloc(NULL, n, NULL);
        memset(p, 0xff, n);
        hn_budget_free(NULL, p);
        p = hn_budget_alloc0(NULL, n, NULL);
        for (gsize i = 0; i < n; i++)
            g_assert_cmpuint(p[i], ==, 0);
        hn_budget_free(NULL, p);
    }
}

static void test_too_large(void)
{
    g_autoptr(HnBudget) unlimited = hn_budget_new(0);
    HnBudget *const budgets[] = { NULL, unlimited };
    static const gsize sizes[] = { G_MAXSIZE, G_MAXSIZE - 100, G_MAXSSIZE, G_MAXSSIZE - 1000 };
    for (gsize b = 0; b < G_N_ELEMENTS(budgets); b++) {
        for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
            g_autoptr(GError) error = NULL;
            g_assert_null(hn_budget_alloc(budgets[b], sizes[i], &error));
            g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        }
        g_autoptr(GError) error = NULL;
        g_assert_null(hn_budget_alloc_n(budgets[b], G_MAXSIZE / 2, 3, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    }
    g_assert_cmpuint(hn_budget_used(unlimited), ==, 0);
}

static void test_fail_at(void)
{
    g_autoptr(HnBudget) b = hn_budget_new(0);
    for (guint64 k = 1; k <= 5; k++) {
        hn_budget_fail_at(b, k);
        for (guint64 i = 1; i <= 6; i++) {
            g_autoptr(GError) error = NULL;
            gpointer p = i % 2 ? hn_budget_alloc(b, 10, &error) : NULL;
            gboolean ok = i % 2 ? p != NULL : hn_budget_charge(b, 10, &error);
            g_assert_cmpint(ok, ==, i != k);
            if (i == k)
                g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
            if (i % 2)
                hn_budget_free(b, p);
            else if (ok)
                hn_budget_uncharge(b, 10);
        }
    }
    g_assert_cmpuint(hn_budget_used(b), ==, 0);
    g_assert_cmpuint(hn_budget_count(b), ==, 30);

    /* whoever allocates nothing can ask: that counts as the one that fails */
    g_autoptr(GError) error = NULL;
    const guint64 count = hn_budget_count(b);
    g_assert_true(hn_budget_ask(NULL, &error));
    hn_budget_fail_at(b, 2);
    g_assert_true(hn_budget_ask(b, &error));
    g_assert_cmpuint(hn_budget_count(b), ==, count);
    g_assert_true(hn_budget_charge(b, 0, &error));
    g_assert_false(hn_budget_ask(b, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_true(hn_budget_ask(b, NULL));
}

/* the block outlives the caller's reference to its budget */
static void test_bytes(void)
{
    HnBudget *b = hn_budget_new(0);
    guint8 *p = hn_budget_alloc(b, 100, NULL);
    memset(p, 7, 100);
    GBytes *bytes = hn_budget_bytes(b, p, 60);
    GBytes *slice = g_bytes_new_from_bytes(bytes, 10, 20);
    g_assert_cmpuint(hn_budget_used(b), ==, 100);
    hn_budget_ref(b);
    g_bytes_unref(bytes);
    g_assert_cmpuint(hn_budget_used(b), ==, 100);
    hn_budget_unref(b);
    hn_budget_unref(b);
    g_assert_cmpuint(((const guint8 *)g_bytes_get_data(slice, NULL))[19], ==, 7);
    g_bytes_unref(slice);
}

static gpointer hammer(gpointer data)
{
    HnBudget *b = data;
    for (gsize i = 0; i < 2000; i++) {
        gpointer p = hn_budget_alloc(b, i % 300, NULL);
        if (p)
            hn_budget_free(b, p);
    }
    return NULL;
}

static void test_threads(void)
{
    g_autoptr(HnBudget) b = hn_budget_new(400);
    GThread *threads[4];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("hammer", hammer, b);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    g_assert_cmpuint(hn_budget_used(b), ==, 0);
    g_assert_cmpuint(hn_budget_peak(b), <=, 400);
}

static void test_checked(void)
{
    size_t s = 5;
    int64_t x = 5;
    g_assert_true(hn_add_size(2, 3, &s) && s == 5);
    g_assert_false(hn_add_size(SIZE_MAX, 1, &s));
    g_assert_false(hn_mul_size(SIZE_MAX / 2, 3, &s));
    g_assert_cmpuint(s, ==, 5);
    g_assert_true(hn_align_size(65, 64, &s) && s == 128);
    g_assert_true(hn_align_size(64, 64, &s) && s == 64);
    g_assert_false(hn_align_size(SIZE_MAX, 64, &s));
    g_assert_false(hn_add_i64(INT64_MAX, 1, &x));
    g_assert_false(hn_sub_i64(INT64_MIN, 1, &x));
    g_assert_false(hn_mul_i64(INT64_MIN, -1, &x));
    g_assert_cmpint(x, ==, 5);
    g_assert_true(hn_mul_i64(-4, 3, &x) && x == -12);
}

static void test_exit_status(void)
{
    static const int expected[] = {
        [HN_ERROR_IO] = 1,
        [HN_ERROR_FORMAT] = 1,
        [HN_ERROR_GRAPH] = 1,
        [HN_ERROR_ATTRIBUTE] = 1,
        [HN_ERROR_SHAPE] = 1,
        [HN_ERROR_TYPE] = 1,
        [HN_ERROR_VALUE] = 1,
        [HN_ERROR_USAGE] = 2,
        [HN_ERROR_GUARD] = 3,
        [HN_ERROR_UNSUPPORTED] = 4,
        [HN_ERROR_NOISE] = 5,
        [HN_ERROR_BUDGET] = 6,
        [HN_ERROR_INTERRUPTED] = 130,
    };
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_autoptr(GError) error = g_error_new_literal(HN_ERROR, (int)i, "x");
        g_assert_cmpint(hn_error_exit_status(error), ==, expected[i]);
    }
    g_autoptr(GError) foreign = g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_NOENT, "x");
    g_assert_cmpint(hn_error_exit_status(foreign), ==, 1);
    g_assert_cmpint(hn_error_exit_status(NULL), ==, 0);
}

/* A signal ends all work, whatever there is room for. */
static void test_halt(void)
{
    gint halt = HN_HALT_NOT;
    HnBudget *b = hn_budget_new(1000);
    g_assert_null(hn_budget_halt(b));
    g_assert_null(hn_budget_halt(NULL));
    hn_budget_watch(b, &halt);
    g_assert_true(hn_budget_halt(b) == &halt);
    gpointer before = hn_budget_alloc(b, 10, NULL);
    g_assert_true(hn_budget_ask(b, NULL) && hn_halt_go(&halt, NULL) && hn_halt_go(NULL, NULL));
    for (gint why = HN_HALT_USER; why <= HN_HALT_TIME; why++) {
        const int code = why == HN_HALT_TIME ? HN_ERROR_BUDGET : HN_ERROR_INTERRUPTED;
        HnProgress progress = { .cancel = &halt };
        g_autoptr(GError) asked = NULL, charged = NULL, made = NULL, told = NULL;
        halt = why;
        g_assert_false(hn_budget_ask(b, &asked));
        g_assert_false(hn_budget_charge(b, 1, &charged));
        g_assert_null(hn_budget_alloc(b, 0, &made));
        g_assert_true(hn_progress_stop(&progress, &told));
        g_assert_error(asked, HN_ERROR, code);
        g_assert_error(charged, HN_ERROR, code);
        g_assert_error(made, HN_ERROR, code);
        g_assert_error(told, HN_ERROR, code);
        g_assert_true(hn_progress_cut(&told) == (why == HN_HALT_USER));
    }
    g_assert_cmpuint(hn_budget_used(b), ==, 10);
    hn_budget_free(b, before);
    hn_budget_unref(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/budget/alloc", test_alloc);
    g_test_add_func("/base/budget/zeroed", test_zeroed);
    g_test_add_func("/base/budget/too-large", test_too_large);
    g_test_add_func("/base/budget/fail-at", test_fail_at);
    g_test_add_func("/base/budget/halt", test_halt);
    g_test_add_func("/base/budget/bytes", test_bytes);
    g_test_add_func("/base/budget/threads", test_threads);
    g_test_add_func("/base/checked", test_checked);
    g_test_add_func("/base/error/exit-status", test_exit_status);
    return g_test_run();
}
