/*
 * Tiles of products: each sum is made in one order, one product after the other, whatever the form of the loop.
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "base/level.h"
#include "cpu/gemm/gemm_kernel.h"

#define MOST_K 70
#define TAPS 3
#define AT 3     /* where rows begin */
#define PITCH 40 /* of b where it is not packed; more than HN_GEMM_KERNEL_MAX_COLS */
#define BEYOND 12345.0f

static float number(GRand *random)
{
    return (float)g_rand_double_range(random, -1, 1);
}

/* One tile against sums in C. Behind rows of a and b there are infinities. */
static void try_tile(GRand *random, int rows, int cols, int64_t taps, int64_t k, gboolean loose, int64_t next_step,
                     gboolean accumulate)
{
    static float a[TAPS][HN_GEMM_KERNEL_MAX_ROWS][AT + MOST_K + 1], b[TAPS][MOST_K + 1][PITCH];
    static float c[HN_GEMM_KERNEL_MAX_ROWS + 1][PITCH], bias[HN_GEMM_KERNEL_MAX_COLS];
    const float *from[TAPS][HN_GEMM_KERNEL_MAX_ROWS];
    const int pitch = loose ? PITCH : hn_gemm_kernel_cols();
    float *const panel = &b[0][0][0];
    const int64_t b_tap = (MOST_K + 1) * PITCH;
    for (int64_t t = 0; t < taps; t++) {
        for (int64_t i = 0; i <= k; i++)
            for (int j = 0; j < PITCH; j++)
                if (i * pitch + j < b_tap)
                    panel[t * b_tap + i * pitch + j] = i == k ? INFINITY : number(random);
        for (int64_t r = 0; r < HN_GEMM_KERNEL_MAX_ROWS; r++) {
            from[t][r] = a[t][r];
            for (int64_t i = 0; i <= k; i++)
                a[t][r][AT + i] = i == k ? INFINITY : number(random);
        }
    }
    for (int j = 0; j < HN_GEMM_KERNEL_MAX_COLS; j++)
        bias[j] = number(random);
    for (int r = 0; r <= rows; r++)
        for (int j = 0; j < PITCH; j++)
            c[r][j] = r < rows && j < cols ? number(random) : BEYOND;
    float want[HN_GEMM_KERNEL_MAX_ROWS][HN_GEMM_KERNEL_MAX_COLS];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < cols; j++) {
            float sum = accumulate ? c[r][j] : bias[j];
            for (int64_t t = 0; t < taps; t++)
                for (int64_t i = 0; i < k; i++) {
                    const float x = a[t][r][AT + i], y = panel[t * b_tap + i * pitch + j], product = x * y;
                    sum = hn_cpu_level() == 0 /* plain */ ? sum + product : fmaf(x, y, sum);
                }
            want[r][j] = sum;
        }
    const HnGemmKernelArgs args = { .a = &from[0][0],
                                    .a_tap = HN_GEMM_KERNEL_MAX_ROWS,
                                    .a_at = AT,
                                    .taps = taps,
                                    .k = k,
                                    .b = panel,
                                    .b_pitch = pitch,
                                    .b_tap = b_tap,
                                    .bias = bias,
                                    .c = &c[0][0],
                                    .c_pitch = PITCH,
                                    .cols = cols,
                                    .accumulate = accumulate,
                                    .lo = HN_GEMM_KERNEL_LOW,
                                    .hi = HN_GEMM_KERNEL_HIGH,
                                    .next = next_step > 0 ? panel : NULL,
                                    .next_step = next_step };
    hn_gemm_kernel_fns(cols)[rows - 1](&args);
    for (int r = 0; r <= rows; r++)
        for (int j = 0; j < PITCH; j++) {
            const float is = r < rows && j < cols ? want[r][j] : BEYOND;
            if (memcmp(&c[r][j], &is, sizeof is) != 0) {
                g_test_message("%d x %d, %d taps of %d, pitch %d: [%d, %d] is %.9g instead of %.9g", rows, cols,
                               (int)taps, (int)k, pitch, r, j, (double)c[r][j], (double)is);
                g_test_fail();
                return;
            }
        }
}

static void test_order(void)
{
    static const int64_t depths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 12, 19, 64, MOST_K };
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    const int most = hn_gemm_kernel_cols();
    const int widths[] = { 1, most / 2, most / 2 + 1, most - 1, most };
    for (int rows = HN_GEMM_KERNEL_FEW; rows <= hn_gemm_kernel_rows(); rows++)
        for (guint w = 0; w < G_N_ELEMENTS(widths); w++)
            for (guint d = 0; d < G_N_ELEMENTS(depths); d++)
                for (int64_t taps = 1; taps <= TAPS; taps++) {
                    const gboolean loose = rows <= HN_GEMM_KERNEL_LOOSE_ROWS && d % 2 == 1;
                    try_tile(random, rows, widths[w], taps, depths[d], loose, (int64_t)(d % 3) * 3, taps == 2);
                }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/tiles/order", test_order);
    return g_test_run();
}
