#include "cpu/core/even_block.h"

/* Items of the part that has most, where blocks of `block` are handed out as kernels do it. */
static gint64 most_of_a_part(gint64 n, gint64 block, gint64 times, int parts)
{
    const gint64 down = (n + block - 1) / block, blocks = down * times;
    gint64 most = 0;
    for (int part = 0; part < parts; part++) {
        gint64 items = 0;
        for (gint64 i = blocks * part / parts; i < blocks * (part + 1) / parts; i++)
            items += MIN(block, n - i % down * block);
        most = MAX(most, items);
    }
    return most;
}

static void test_known(void)
{
    g_assert_cmpint(hn_even_block(128, 1, 58, 1, 1), ==, 58); /* 58, 58 and 12: nobody waits */
    g_assert_cmpint(hn_even_block(128, 1, 58, 1, 2), ==, 32);
    g_assert_cmpint(hn_even_block(128, 1, 128, 1, 2), ==, 64);
    g_assert_cmpint(hn_even_block(16, 1, 16, 8, 2), ==, 16); /* whole images */
    g_assert_cmpint(hn_even_block(1, 1, 9, 1, 64), ==, 1);
    g_assert_cmpint(hn_even_block(100, 40, 100, 1, 64), ==, 50); /* more blocks would be too small */
    g_assert_cmpint(hn_even_block(10, 40, 100, 1, 4), ==, 10);
}

/* Within 1.25 of even wherever there is enough to share, and never a size that is not allowed. */
static void test_balance(void)
{
    static const int threads[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 };
    for (gsize t = 0; t < G_N_ELEMENTS(threads); t++)
        for (gint64 n = 1; n <= 300; n++)
            for (gint64 most = 1; most <= 301; most += 1 + most / 3)
                for (gint64 times = 1; times <= 9; times += 4) {
                    const int parts = threads[t];
                    const gint64 block = hn_even_block(n, 1, most, times, parts);
                    g_assert_cmpint(block, >=, 1);
                    g_assert_cmpint(block, <=, MIN(n, most));
                    if (n * times >= 8 * parts)
                        g_assert_cmpfloat((double)most_of_a_part(n, block, times, parts), <=,
                                          1.25 * (double)(n * times) / parts);
                }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/even_block/known", test_known);
    g_test_add_func("/even_block/balance", test_balance);
    return g_test_run();
}
