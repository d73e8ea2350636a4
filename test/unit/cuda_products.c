/*
 * Products of f32 on tensor cores, which multiply numbers of 11 bits: as exact as plain sums of f32, and right where
 * numbers are infinite, NaN, huge or tiny. On the device that CUDA's driver has, or a driver that HONE_CUDA_DRIVER
 * names; without one the test is skipped.
 */
#include <float.h>
#include <string.h>

#include "backends.h"
#include "run_model.h"

static const HnBackend *cuda;

static HnTensor *product(const HnTensor *a, const HnTensor *b, gboolean strict)
{
    g_autofree char *text = g_strdup_printf("opset 17 graph g(%%a:f32[%" PRId64 ",%" PRId64 "], %%b:f32[%" PRId64
                                            ",%" PRId64 "]) -> (%%y) { %%y = "
                                            "MatMul(%%a, %%b) }",
                                            a->dims[0], a->dims[1], b->dims[0], b->dims[1]);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) s =
        test_session(m, cuda, &(HnSessionOptions){ .threads = 1, .strict = TRUE, .strict_math = strict });
    g_autoptr(GPtrArray) in = g_ptr_array_new(), out = NULL;
    g_ptr_array_add(in, (gpointer)a);
    g_ptr_array_add(in, (gpointer)b);
    out = test_run(s, in);
    return hn_tensor_copy(out->pdata[0], NULL, NULL);
}

static float at(const HnTensor *t, int64_t i, int64_t j)
{
    return ((const float *)t->data)[i * t->dims[1] + j];
}

static double exact(const HnTensor *a, const HnTensor *b, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < a->dims[1]; k++)
        sum += (double)at(a, i, k) * (double)at(b, k, j);
    return sum;
}

static float plain(const HnTensor *a, const HnTensor *b, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t k = 0; k < a->dims[1]; k++)
        sum = fmaf(at(a, i, k), at(b, k, j), sum);
    return sum;
}

#define SIZE 24  /* rows and columns: more than are "few", and no whole tile */
#define WIDE 72  /* columns that warpgroups of capability 9.0 multiply ... */
#define MANY 404 /* rows for which they have b split before */

static void test_errors(void)
{
    static const int64_t sizes[][3] = {
        /* k, rows, columns */
        { 64, SIZE, SIZE },    { 256, SIZE, SIZE },   { 1024, SIZE, SIZE }, { 4096, SIZE, SIZE },
        { 16384, SIZE, SIZE }, { 64, SIZE, WIDE },    { 256, SIZE, WIDE },  { 1024, SIZE, WIDE },
        { 4096, SIZE, WIDE },  { 16384, SIZE, WIDE }, { 1024, MANY, WIDE },
    };
    for (guint d = 0; d < G_N_ELEMENTS(sizes); d++) {
        const int64_t k = sizes[d][0], rows = sizes[d][1], columns = sizes[d][2];
        g_autoptr(HnTensor) a = test_random(HN_F32, 2, (int64_t[]){ rows, k }, 5);
        g_autoptr(HnTensor) b = test_random(HN_F32, 2, (int64_t[]){ k, columns }, 6);
        g_autoptr(HnTensor) y = product(a, b, FALSE);
        double ours = 0, theirs = 0, all = 0;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                const double want = exact(a, b, i, j);
                ours += pow((double)at(y, i, j) - want, 2);
                theirs += pow((double)plain(a, b, i, j) - want, 2);
                all += want * want;
            }
        g_test_message("K %" PRId64 ", %" PRId64 " x %" PRId64 ": error %.3g, of plain sums %.3g", k, rows, columns,
                       sqrt(ours / all), sqrt(theirs / all));
        g_assert_cmpfloat(sqrt(ours / all), <=, k < 256 ? 4e-7 : sqrt(theirs / all));
    }
}

/* Rows of a and columns of b of every kind; beside each other they make all the others. */
static const float kinds[] = { 1, 0, -3.0f, 1e-40f, 1e-30f, 1e30f, FLT_MAX, FLT_MIN, INFINITY, -INFINITY, NAN };

static void fill(HnTensor *t, gboolean rows)
{
    float *x = t->data;
    for (int64_t i = 0; i < t->dims[0]; i++)
        for (int64_t j = 0; j < t->dims[1]; j++) {
            const int64_t line = rows ? i : j, k = rows ? j : i;
            if (k % 16 == line % 16)
                x[i * t->dims[1] + j] = kinds[line % (int64_t)G_N_ELEMENTS(kinds)];
            else if (line % 2 == 1 && line < 8) /* tiny ones throughout */
                x[i * t->dims[1] + j] *= 1e-38f;
        }
}

static void check_kinds(int64_t rows, int64_t columns, gboolean strict)
{
    g_autoptr(HnTensor) a = test_random(HN_F32, 2, (int64_t[]){ rows, 80 }, 7);
    g_autoptr(HnTensor) b = test_random(HN_F32, 2, (int64_t[]){ 80, columns }, 8);
    fill(a, TRUE);
    fill(b, FALSE);
    g_autoptr(HnTensor) y = product(a, b, strict);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double scale = 0, units = 0;
            for (int64_t k = 0; k < 80; k++) {
                scale += fabs((double)at(a, i, k) * (double)at(b, k, j));
                units += fabs((double)at(a, i, k)) + fabs((double)at(b, k, j)) + 1;
            }
            const double want = exact(a, b, i, j), got = (double)at(y, i, j);
            /* what is smaller than the smallest number is a unit of it off; sums of huge ones may have become infinite
             * on the way */
            const gboolean near = fabs(got - want) <= 1e-6 * scale + 0x1p-149 * units;
            const gboolean same = isnan(want) ? isnan(got) : (double)(float)want == got;
            const gboolean beyond = isfinite(want) && scale > (double)FLT_MAX / 2 && !isfinite(got);
            if (!near && !same && !beyond) {
                g_test_message("row %" PRId64 ", column %" PRId64 ": %g, not %g", i, j, got, want);
                g_test_fail();
            }
        }
}

static void test_kinds(gconstpointer strict)
{
    check_kinds(SIZE, SIZE, strict != NULL);
    check_kinds(SIZE, WIDE, strict != NULL);
    check_kinds(MANY, WIDE, strict != NULL);
}

/* Keys that are infinite, values that are: as ref has them. */
static void test_attention(void)
{
    static const char text[] = "opset 23 graph g(%q:f32[1,2,19,24], %k:f32[1,2,40,24], %v:f32[1,2,40,17]) -> (%y) { "
                               "%y = Attention(%q, %k, %v) }";
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) s = test_session(m, cuda, &(HnSessionOptions){ .threads = 1, .strict = TRUE });
    for (int kind = 0; kind < 4; kind++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 3);
        float *q = ((HnTensor *)in->pdata[0])->data, *k = ((HnTensor *)in->pdata[1])->data;
        float *v = ((HnTensor *)in->pdata[2])->data;
        for (int i = 0; i < 24; i++)
            q[i] = fabsf(q[i]) + 0.1f;
        if (kind == 1)
            k[35 * 24 + 2] = -INFINITY; /* nothing of this key for queries that are positive there */
        if (kind == 2)
            v[3 * 17 + 4] = INFINITY;
        if (kind == 3)
            v[3 * 17 + 4] = NAN;
        g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(s, in);
        test_assert_close(got->pdata[0], want->pdata[0], 1e-5, 1e-6, text);
    }
}

/* What follows a product is computed along with it, in each form: few rows, few columns, plain ones, tiles, parts of k,
 * 16 bytes of results at a time or not. */
static void check_ends(const char *type, const int64_t *size, const char *ends, gboolean strict)
{
    const int64_t m = size[0], k = size[1], n = size[2];
    g_autofree char *with_sizes =
        g_strdup_printf("opset 20 graph g(%%x:T[%" PRId64 ",%" PRId64 "], %%r:T[%" PRId64 ",%" PRId64
                        "]) -> (%%y) { %%a = MatMul(%%x, w:T[%" PRId64 ",%" PRId64 "]) %s }",
                        m, k, m, n, k, n, ends);
    g_autoptr(GString) text = g_string_new(with_sizes);
    g_autofree char *width = g_strdup_printf("%" PRId64 "]", n);
    g_string_replace(text, "T[", type, 0);
    g_string_replace(text, "N]", width, 0);
    g_autoptr(HnModel) model = test_model(text->str);
    g_autoptr(HnSession) ref = test_session(model, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) s =
        test_session(model, cuda, &(HnSessionOptions){ .threads = 1, .strict = TRUE, .strict_math = strict });
    g_autoptr(GPtrArray) in = test_inputs(s, 3), want = test_run(ref, in), got = test_run(s, in);
    const double near = type[1] == '3' ? 1e-5 : type[0] == 'f' ? 4e-3 : 3e-2;
    test_assert_close(got->pdata[0], want->pdata[0], near, near, text->str);
}

static void test_ends(void)
{
    static const char *const ends[] = {
        "%b = Add(%a, k:T[N]) %y = Gelu(%b)",
        "%b = Add(k:T[N], %a) %c = Add(%b, %r) %y = Relu(%c)",
        "%b = Mul(%a, k:T[1,N]) %c = Sub(%b, %r) %d = Tanh(%c) %y = Add(%d, e:T[]={0.5})",
    };
    static const int64_t sizes[][3] = { { 1, 40, 64 },  { 5, 72, 33 },   { 40, 72, 3 },   { 40, 24, 24 },
                                        { 33, 96, 40 }, { 70, 768, 72 }, { 66, 512, 136 } };
    static const char *const types[] = { "f32[", "f16[", "bf16[" };
    for (guint e = 0; e < G_N_ELEMENTS(ends); e++)
        for (guint z = 0; z < G_N_ELEMENTS(sizes); z++)
            for (guint t = 0; t < G_N_ELEMENTS(types); t++)
                check_ends(types[t], sizes[z], ends[e], (e + z + t) % 4 == 0);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_test_init(&argc, &argv, NULL);
    cuda = hn_backend_find("cuda", &error);
    g_autoptr(HnDevice) device = cuda != NULL ? hn_device_new(cuda, &error) : NULL;
    if (device == NULL) {
        g_print("1..0 # SKIP %s\n", error->message);
        return 0;
    }
    g_test_add_func("/cuda/products/errors", test_errors);
    g_test_add_data_func("/cuda/products/kinds", NULL, test_kinds);
    g_test_add_data_func("/cuda/products/kinds-strict", "", test_kinds);
    g_test_add_func("/cuda/products/attention", test_attention);
    g_test_add_func("/cuda/products/ends", test_ends);
    return g_test_run();
}
