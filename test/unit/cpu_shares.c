/*
 * How products are shared by threads: evenly, where there are tiles enough.
 */
#include <glib.h>

#include "cpu/gemm/gemm_kernel.h"

/* Tiles of the part with most of them, over what each had if all had the same. */
static double load(int64_t rows, int64_t columns, int parts, gboolean tall)
{
    const int64_t height = hn_gemm_kernel_rows(), width = hn_gemm_kernel_cols();
    const int64_t strips = (rows + height - 1) / height, panels = (columns + width - 1) / width;
    int down = 0, across = 0;
    hn_gemm_kernel_grid(rows, strips, panels, tall, parts, &down, &across);
    g_assert_cmpint(down, >, 0);
    g_assert_cmpint(across, >, 0);
    g_assert_cmpint(down * across, <=, parts);
    int64_t most = 0;
    for (int i = 0; i < down; i++)
        for (int j = 0; j < across; j++) {
            const int64_t some = rows * (i + 1) / down - rows * i / down;
            const int64_t share = (some + height - 1) / height * (panels * (j + 1) / across - panels * j / across);
            most = MAX(most, share);
        }
    return (double)most * parts / (double)(strips * panels);
}

/* How products are shared by 4 to 64 threads: evenly, where there are tiles enough for each. */
static void test_shares(void)
{
    static const int64_t sizes[][2] = { { 3136, 64 }, { 784, 512 },  { 196, 1024 }, { 49, 2048 },
                                        { 128, 768 }, { 128, 3072 }, { 197, 2304 }, { 12544, 32 },
                                        { 64, 6625 }, { 2048, 96 },  { 512, 512 },  { 1, 4096 } };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++)
        for (int parts = 4; parts <= 64; parts++)
            for (int tall = 0; tall < 2; tall++) {
                const double tiles =
                    (double)sizes[i][0] / hn_gemm_kernel_rows() * (double)sizes[i][1] / hn_gemm_kernel_cols();
                const double most = load(sizes[i][0], sizes[i][1], parts, tall == 1);
                const double limit = tiles >= 8 * parts ? 1.5 : tiles >= 2 * parts ? 2 : 1 + parts;
                if (most > limit) {
                    g_test_message("%d parts of %d x %d, %d: %g", parts, (int)sizes[i][0], (int)sizes[i][1], tall,
                                   most);
                    g_test_fail();
                }
            }
}

/* The largest run of units, in elements, over what each thread had if all had the same: before anything is stolen. */
static double load_of_cut(int64_t rows, int64_t columns, int64_t depth, int threads)
{
    const int64_t panels = (columns + hn_gemm_kernel_cols() - 1) / hn_gemm_kernel_cols();
    const HnGemmCut cut = hn_gemm_cut(rows, columns, depth, FALSE, threads);
    const int64_t units = (int64_t)cut.down * cut.across;
    int64_t most = 0;
    for (int t = 0; t < threads; t++) {
        int64_t share = 0, r0, r1, p0, p1;
        for (int64_t u = units * t / threads, end = units * (t + 1) / threads; u < end;) {
            u = hn_gemm_unit(&cut, rows, panels, u, end, &r0, &r1, &p0, &p1);
            share += (r1 - r0) * (p1 - p0);
        }
        most = MAX(most, share);
    }
    return (double)most * threads / (double)(rows * panels);
}

/* Where a product has few units, as many for each thread. */
static void test_cuts(void)
{
    static const int64_t sizes[][3] = { { 480, 480, 480 }, { 240, 480, 480 }, { 500, 512, 512 }, { 300, 700, 700 } };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++)
        for (int threads = 2; threads <= 4; threads++) {
            const double most = load_of_cut(sizes[i][0], sizes[i][1], sizes[i][2], threads);
            if (most > 1.15) {
                g_test_message("%d threads, product %u: %g", threads, i, most);
                g_test_fail();
            }
        }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/shares", test_shares);
    g_test_add_func("/cpu/cuts", test_cuts);
    return g_test_run();
}
