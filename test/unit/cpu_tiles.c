/*
 * Tiles of products: each sum is made in one order, one product after the other, whatever the form of the loop. Tiles
 * of convolutions of groups and of images, against ref.
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/level.h"
#include "cpu/gemm/gemm_kernel.h"
#include "run_model.h"

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

/* A kernel, and steps that are computed by it. */
typedef struct {
    const char *kernel;
    int n;
} Taken;

static void count_taken(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    Taken *t = data;
    t->n += s->kernel != NULL && strcmp(s->kernel->name, t->kernel) == 0;
}

typedef struct {
    const char *x, *w;
    int m;
    const char *attrs;
} ConvCase;

/* Both convolutions are computed by this kernel, with constants, sums and functions behind them, by rows that threads
 * share. */
static void check_convs(const char *kernel, const ConvCase *c, gsize n)
{
    for (gsize i = 0; i < n; i++)
        for (int threads = 1; threads < 4; threads += 2)
            for (int far = 0; far < 2; far++) { /* a function of rows in memory is computed behind whole rows */
                Taken taken = { .kernel = kernel };
                g_autofree char *text = g_strdup_printf(
                    "opset 17 graph g(%%x:f32[%s]) -> (%%y) { %%d = Conv(%%x, v:f32[%s]) %s %%e = Tanh(%%d) "
                    "%%c = Conv(%%x, w:f32[%s], b:f32[%d]) %s %%n = BatchNormalization(%%c, s:f32[%d], o:f32[%d], "
                    "m:f32[%d], q:f32[%d]=fill(3,0.5,1.5)) %s }",
                    c[i].x, c[i].w, c[i].attrs, c[i].w, c[i].m, c[i].attrs, c[i].m, c[i].m, c[i].m, c[i].m,
                    far ? "%l = LeakyRelu(%n) %g = Sigmoid(%l) %y = Add(%g, %e)"
                        : "%a = Add(%n, %e) %l = Clip(%a, k:f32={-0.5}) %y = HardSwish(%l)");
                g_autoptr(HnModel) model = test_model(text);
                g_autoptr(HnSession) s =
                    test_session(model, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads, .prefer = kernel });
                g_autoptr(GPtrArray) in = test_inputs(s, 3);
                g_ptr_array_unref(test_run(s, in));
                hn_session_foreach_step(s, count_taken, &taken);
                if (hn_cpu_isa() >= HN_ISA_AVX2 && taken.n != 2)
                    g_error("%s computes %d steps of %s", kernel, taken.n, text);
                g_assert_cmpint(test_preferring(kernel, text, threads, 1e-4, 1e-4).ref, ==, 0);
            }
}

/* Groups of some channels. */
static void test_conv_group(void)
{
    static const ConvCase cases[] = {
        { "1,32,14,15", "32,4,3,3", 32, "group=8 pads=[1,1,1,1]" },
        { "1,40,19,21", "40,8,3,3", 40, "group=5 pads=[1,1,1,1]" },
        { "2,136,9,11", "136,8,3,3", 136, "group=17 pads=[1,1,1,1] strides=[2,2]" },
        { "1,12,23,30", "12,4,3,3", 12, "group=3 pads=[0,2,1,1]" },
        { "1,64,13,12", "64,4,5,3", 64, "group=16 pads=[1,1,1,1] strides=[1,2]" },
    };
    check_convs("cpu.conv_group", cases, G_N_ELEMENTS(cases));
}

/* Images: panels of whole and half vectors, rows that end within tiles, and windows that reach beyond the image. */
static void test_conv_few(void)
{
    static const ConvCase cases[] = {
        { "1,3,41,43", "16,3,3,3", 16, "pads=[1,1,1,1] strides=[2,2]" },
        { "2,3,30,101", "24,3,4,4", 24, "strides=[4,4]" },
        { "1,1,33,57", "64,1,5,5", 64, "pads=[2,2,2,2]" },
        { "1,3,40,8", "33,3,7,3", 33, "pads=[3,1,3,1]" },
        { "2,4,17,61", "40,4,2,5", 40, "pads=[0,9,3,1] dilations=[3,1] strides=[3,2]" },
        { "1,2,31,29", "9,2,3,1", 9, "pads=[5,0,0,4]" },
        { "3,2,1201", "12,2,9", 12, "pads=[4,0] strides=[4]" },
        { "1,3,40,90", "50,3,3,3", 50, "pads=[1,1,1,1] strides=[2,2]" },
    };
    check_convs("cpu.conv_few", cases, G_N_ELEMENTS(cases));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/tiles/order", test_order);
    g_test_add_func("/cpu/conv-group", test_conv_group);
    g_test_add_func("/cpu/conv-few", test_conv_few);
    return g_test_run();
}
