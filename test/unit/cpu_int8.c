/*
 * Convolutions of bytes against ref, to the last bit: each kernel, at the level of instructions that there is.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/int8/int8_lut.h"
#include "cpu/int8/int8_kernel.h"
#include "run_model.h"

/* Bytes of the whole range; every fifth is one of its ends. */
static GPtrArray *bytes_for(const HnSession *s, uint64_t seed)
{
    GPtrArray *in = test_inputs(s, seed);
    HnRng rng = hn_rng(seed + 77);
    for (guint k = 0; k < in->len; k++) {
        HnTensor *t = in->pdata[k];
        for (gsize i = 0; i < t->bytes; i++)
            ((uint8_t *)t->data)[i] =
                (uint8_t)(i % 5 == 0 ? (t->dtype == HN_I8 ? 127 : 255) + (int)(i & 1) : hn_rng_int(&rng, 0, 255));
    }
    return in;
}

/* The same bytes as ref's for each number of threads; returns whether `kernel` computed them. */
static gboolean judge(const char *text, const char *kernel)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = bytes_for(ref, 5);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    gboolean found = FALSE;
    for (int threads = 1; threads <= 3; threads++) {
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < want->len; i++)
                test_assert_close(got->pdata[i], want->pdata[i], 0, 0, text);
        }
        found = test_has_kernel(s, kernel) || found;
    }
    return found;
}

/* ConvInteger's sums are what all others begin with; QLinearConv rounds them. */
static void test_winograd(void)
{
    static const struct {
        int n, in, h, w, out;
        const char *attrs, *fill;
    } cases[] = {
        { 1, 64, 28, 28, 64, "pads=[1,1,1,1]", "-128,127" }, { 1, 47, 40, 41, 63, "pads=[1,1,1,1]", "-128,127" },
        { 2, 80, 27, 16, 96, "pads=[1,1,1,1]", "-128,127" }, { 1, 64, 33, 32, 33, "pads=[1,0,2,1]", "-128,127" },
        { 1, 96, 20, 20, 128, "pads=[1,1,1,1]", "-9,127" },  { 1, 64, 53, 23, 64, "", "-128,-128" },
        { 1, 48, 28, 28, 64, "pads=[1,1,1,1]", "127,127" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int k = 0; k < 4; k++) {
            const char *x = k % 2 == 0 ? "u8" : "i8", *z = k % 2 == 0 ? "131" : "-3";
            g_autofree char *graph = g_strdup_printf("opset 17 graph g(%%x:%s[%d,%d,%d,%d]) -> (%%y) { %%y = ", x,
                                                     cases[i].n, cases[i].in, cases[i].h, cases[i].w);
            g_autofree char *w =
                g_strdup_printf("w:i8[%d,%d,3,3]=fill(7,%s)", cases[i].out, cases[i].in, cases[i].fill);
            g_autofree char *text =
                k < 2 ? g_strdup_printf("%s ConvInteger(%%x, %s, xz:%s={%s}) %s }", graph, w, x, z, cases[i].attrs)
                      : g_strdup_printf("%s QLinearConv(%%x, xs:f32={0.0078125}, xz:%s={%s}, %s, ws:f32={0.03125}, "
                                        "wz:i8={0}, ys:f32={4}, yz:%s) %s }",
                                        graph, x, z, w, k == 2 ? "u8={99}" : "i8={0}", cases[i].attrs);
            const gboolean has = hn_cpu_isa() >= HN_ISA_AVX2 && !hn_int8_has_blocks();
            if (judge(text, "cpu.int8_winograd") != has) {
                g_test_message("another kernel computes %s", text);
                g_test_fail();
            }
        }
}

/* Sums that 26 bits do not hold are left to the direct kernel. */
static void test_large_sums(void)
{
    g_assert_false(judge("opset 17 graph g(%x:u8[1,128,16,16]) -> (%y) { %y = ConvInteger(%x, "
                         "w:i8[64,128,3,3]=fill(1,127,127)) pads=[1,1,1,1] }",
                         "cpu.int8_winograd"));
}

/* Blocks of channels of each width, whole and in part, sources that end behind the last channel, all strides. */
static void test_depthwise(void)
{
    static const int channels[] = { 8, 13, 16, 24, 31, 40, 48, 70, 96 };
    static const char *const attrs[] = { "pads=[1,1,1,1]", "pads=[0,1,2,0] strides=[2,2]", "dilations=[2,1]" };
    for (guint i = 0; i < G_N_ELEMENTS(channels); i++)
        for (guint k = 0; k < G_N_ELEMENTS(attrs); k++)
            for (int kernel = 3; kernel <= 5; kernel += 2) {
                const int c = channels[i];
                const char *type = kernel == 3 ? "u8" : "i8";
                g_autofree char *text = g_strdup_printf(
                    "opset 17 graph g(%%x:%s[2,%d,11,39]) -> (%%y, %%z) { %%y = QLinearConv(%%x, xs:f32={0.0078125}, "
                    "xz:%s={3}, w:i8[%d,1,%d,%d]=fill(7,-128,127), ws:f32={0.03125}, wz:i8={0}, ys:f32={0.5}, "
                    "yz:u8={99}) "
                    "group=%d %s %%z = ConvInteger(%%x, v:i8[%d,1,%d,%d]=fill(8,-128,127), zz:%s={9}) group=%d %s }",
                    type, c, type, c, kernel, kernel, c, attrs[k], c, kernel, kernel, type, c, attrs[k]);
                g_assert_true(judge(text, "cpu.int8_depthwise"));
            }
}

/* Groups of few channels: whole blocks of 16 and a last one that lies back, signed and unsigned, both strides, windows
 * that reach beyond each edge, results of bytes and sums. */
static void test_groups(void)
{
    static const struct {
        int groups, each;
        const char *attrs;
        gboolean tiles;
    } cases[] = {
        { 8, 4, "pads=[1,1,1,1]", TRUE },
        { 7, 4, "pads=[1,2,1,0] strides=[2,2]", TRUE },
        { 4, 8, "pads=[1,1,1,1] strides=[1,2]", TRUE },
        { 3, 8, "pads=[2,1,2,1] dilations=[2,1]", TRUE },
        { 5, 8, "strides=[2,1]", TRUE },
        { 2, 16, "pads=[1,1,1,1]", TRUE },
        { 3, 16, "pads=[0,1,2,1] strides=[2,2]", TRUE },
        { 3, 4, "pads=[1,1,1,1]", FALSE },
        { 4, 12, "pads=[1,1,1,1]", FALSE },
        { 4, 8, "pads=[1,2,1,2] dilations=[1,2]", FALSE },
        { 4, 8, "strides=[1,3]", FALSE },
    };
    const gboolean has = hn_cpu_isa() >= HN_ISA_VNNI && __builtin_cpu_supports("avx512vbmi");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int k = 0; k < 4; k++) {
            const char *type = k % 2 == 0 ? "u8" : "i8";
            const int c = cases[i].groups * cases[i].each, wide = k < 2 ? 29 : 275;
            g_autofree char *w = g_strdup_printf("i8[%d,%d,3,3]=fill(7,-128,127)", c, cases[i].each);
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:%s[2,%d,9,%d]) -> (%%y, %%z) { %%y = QLinearConv(%%x, xs:f32={0.0078125}, "
                "xz:%s={77}, w:%s, ws:f32={0.03125}, wz:i8={0}, ys:f32={%s}, yz:%s={9}, b:i32[%d]=fill(3,-900,900)) "
                "group=%d %s %%z = ConvInteger(%%x, v:%s, zz:%s={9}) group=%d %s }",
                type, c, wide, type, w, k < 2 ? "0.5" : "2", k % 3 == 0 ? "u8" : "i8", c, cases[i].groups,
                cases[i].attrs, w, type, cases[i].groups, cases[i].attrs);
            if (judge(text, "cpu.int8_group") != (has && cases[i].tiles)) {
                g_test_message("another kernel computes %s", text);
                g_test_fail();
            }
        }
}

/* Windows of each size, whole and padded tiles of outputs, several stretches of a line, the ends of what bytes and
 * weights are. */
static void test_depthwise_windows(void)
{
    static const struct {
        int c, h, w, rows, k;
        const char *attrs;
    } cases[] = {
        { 1, 9, 9, 3, 3, "pads=[1,1,1,1]" },
        { 3, 9, 20, 3, 3, "pads=[1,1,1,1]" },
        { 8, 4, 600, 3, 3, "pads=[1,1,1,1]" },
        { 8, 6, 530, 3, 3, "pads=[1,2,1,1] strides=[2,2]" },
        { 15, 7, 7, 3, 3, "pads=[1,1,1,1]" },
        { 15, 12, 14, 5, 5, "pads=[2,2,2,2]" },
        { 24, 13, 13, 3, 3, "pads=[1,1,1,1] strides=[2,2]" },
        { 24, 11, 21, 5, 5, "pads=[2,2,2,2] strides=[2,2]" },
        { 33, 10, 12, 7, 7, "pads=[3,3,3,3]" },
        { 33, 10, 12, 7, 7, "pads=[3,3,3,3] strides=[2,2]" },
        { 58, 5, 15, 3, 3, "" },
        { 58, 9, 16, 3, 3, "pads=[2,2,2,2] dilations=[2,2]" },
        { 65, 8, 9, 3, 3, "pads=[2,0,0,2] strides=[1,3]" },
        { 20, 1, 40, 1, 7, "pads=[0,3,0,3]" },
        { 20, 30, 1, 5, 1, "pads=[4,0,0,0]" },
        { 40, 9, 9, 4, 2, "pads=[1,0,2,1]" },
        { 9, 3, 3, 3, 3, "pads=[5,5,5,5]" },
        { 17, 40, 9, 2, 3, "pads=[0,1,30,1] dilations=[30,1]" },
    };
    static const char *const fills[] = { "-128,127", "-128,-128", "127,127" };
    static const char *const zeros[] = { "u8={3}", "i8={-7}", "u8={0}", "i8={0}" };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int k = 0; k < 12; k++) {
            const int c = cases[i].c;
            const char *x = k % 2 == 0 ? "u8" : "i8", *xz = k % 2 == 0 ? "255" : "-128";
            const char *yz = zeros[k / 3], *fill = fills[k % 3];
            g_autofree char *conv = g_strdup_printf("group=%d %s", c, cases[i].attrs);
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:%s[2,%d,%d,%d]) -> (%%y, %%z) { %%y = QLinearConv(%%x, xs:f32={0.0078125}, "
                "xz:%s={%s}, w:i8[%d,1,%d,%d]=fill(7,%s), ws:f32[%d]=fill(4,0.001,0.02), wz:i8={0}, ys:f32={0.25}, "
                "yz:%s, b:i32[%d]=fill(3,-999,999)) %s %%z = ConvInteger(%%x, v:i8[%d,1,%d,%d]=fill(8,%s), "
                "zz:%s={%s}) %s }",
                x, c, cases[i].h, cases[i].w, x, xz, c, cases[i].rows, cases[i].k, fill, c, yz, c, conv, c,
                cases[i].rows, cases[i].k, fill, x, xz, conv);
            g_assert_true(judge(text, "cpu.int8_depthwise") == (c >= 8));
        }
}

/* The same weights at two strides, for which they are packed otherwise. */
static void test_depthwise_shared(void)
{
    g_assert_true(judge("opset 17 graph g(%x:u8[1,40,20,40]) -> (%y, %z) { %y = ConvInteger(%x, "
                        "w:i8[40,1,3,3]=fill(7,-128,127)) group=40 %z = ConvInteger(%x, %w) group=40 strides=[2,2] }",
                        "cpu.int8_depthwise"));
}

/* Lines that are shorter than a strip of rows, longer ones, windows that are read where they are. */
static void test_lines(void)
{
    static const struct {
        int in, h, w, out, kernel;
        const char *attrs;
    } cases[] = {
        { 16, 40, 1, 40, 1, "" },
        { 16, 9, 3, 17, 3, "pads=[1,1,1,1]" },
        { 3, 31, 47, 16, 3, "strides=[2,2]" },
        { 3, 37, 53, 40, 7, "strides=[2,2] pads=[3,3,3,3]" },
        { 3, 32, 64, 24, 4, "strides=[4,4]" },
        { 20, 7, 7, 33, 3, "" },
        { 64, 5, 13, 64, 1, "" },
        { 5, 23, 2, 70, 3, "pads=[1,1,1,1]" },
        { 24, 30, 5, 9, 2, "strides=[2,1]" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "opset 17 graph g(%%x:u8[2,%d,%d,%d]) -> (%%y, %%z) { %%y = ConvInteger(%%x, "
            "w:i8[%d,%d,%d,%d]=fill(7,-128,127), "
            "cz:u8={77}) %s %%z = QLinearConv(%%x, xs:f32={0.0078125}, xz:u8={3}, v:i8[%d,%d,%d,%d]=fill(9,-128,127), "
            "ws:f32={0.03125}, wz:i8={0}, ys:f32={2}, yz:u8={0}) %s }",
            cases[i].in, cases[i].h, cases[i].w, cases[i].out, cases[i].in, cases[i].kernel,
            MIN(cases[i].kernel, cases[i].w), cases[i].attrs, cases[i].out, cases[i].in, cases[i].kernel,
            MIN(cases[i].kernel, cases[i].w), cases[i].attrs);
        g_assert_true(judge(text, "cpu.int8_conv"));
    }
}

/* Panels that end in a whole vector of columns, a part of one or half a one, of each number of rows. */
static void test_columns(void)
{
    static const int columns[] = { 1, 8, 9, 16, 17, 23, 24, 25, 32, 40, 56, 57 };
    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        for (int rows = 5; rows <= 26; rows++) {
            const int n = columns[i];
            g_autofree char *text = g_strdup_printf(
                "opset 21 graph g(%%x:u8[%d,40]) -> (%%y, %%z) { %%y = MatMulInteger(%%x, "
                "w:i8[40,%d]=fill(7,-128,127), xz:u8={77}) %%z = QLinearMatMul(%%x, xs:f32={0.0078125}, xz, "
                "w, ws:f32={0.03125}, wz:i8={0}, ys:f32={2}, yz:u8={9}) }",
                rows, n);
            g_assert_true(judge(text, "cpu.int8_matmul"));
        }
}

/* Of any number of channels, one behind the other or apart in larger pixels; windows over all edges. */
static void test_largest(void)
{
    static const int channels[] = { 1, 3, 8, 15, 17, 24, 33, 58, 64, 70, 130 };
    static const char *const attrs[] = { "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]",
                                         "kernel_shape=[5,4] pads=[2,3,2,1]",
                                         "kernel_shape=[2,2] strides=[2,2]",
                                         "kernel_shape=[1,2] strides=[1,3] dilations=[1,2]",
                                         "kernel_shape=[3,9] dilations=[2,1] pads=[2,8,2,8] strides=[1,2]",
                                         "kernel_shape=[2,1] strides=[2,1]" };
    for (guint i = 0; i < G_N_ELEMENTS(channels); i++)
        for (guint k = 0; k < G_N_ELEMENTS(attrs); k++)
            for (int is_signed = 0; is_signed < 2; is_signed++) {
                g_autofree char *text = g_strdup_printf(
                    "opset 17 graph g(%%x:%s[2,%d,7,13]) -> (%%y, %%z) { %%y = MaxPool(%%x) %s %%a, %%b = Split(%%y, "
                    "n:i64[2]={%d,%d}) axis=1 %%c = MaxPool(%%a) kernel_shape=[3,2] strides=[1,2] pads=[1,1,1,1] "
                    "%%d = MaxPool(%%b) kernel_shape=[3,2] strides=[1,2] pads=[1,1,1,1] %%z = Concat(%%d, %%c) axis=1 "
                    "}",
                    is_signed ? "i8" : "u8", channels[i] + 9, attrs[k], channels[i], 9);
                g_assert_true(judge(text, "cpu.int8_maxpool"));
                g_autofree char *all =
                    g_strdup_printf("opset 17 graph g(%%x:%s[2,%d,7,13]) -> (%%y) { %%y = MaxPool(%%x) %s }",
                                    is_signed ? "i8" : "u8", channels[i], attrs[k]);
                g_assert_true(judge(all, "cpu.int8_maxpool"));
            }
}

/* Every other channel, the even or the odd ones, of pixels that lie one behind the other or apart. */
static void test_halves(void)
{
    static const int channels[] = { 1, 2, 3, 8, 15, 17, 24, 31, 32, 33, 34, 48, 58, 65, 66, 130 };
    for (guint i = 0; i < G_N_ELEMENTS(channels); i++)
        for (int step = 2; step <= 3; step++) {
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:u8[2,%d,7,13]) -> (%%p, %%q, %%r, %%s) { %%y = MaxPool(%%x) kernel_shape=[2,2] "
                "%%p = Slice(%%y, b:i64[1]={0}, e:i64[1]={999}, a:i64[1]={1}, t:i64[1]={%d}) "
                "%%q = Slice(%%y, c:i64[1]={1}, e, a, t) %%u, %%v = Split(%%y, n:i64[2]={%d,3}) axis=1 "
                "%%r = Slice(%%v, b, e, a, t) %%w = Slice(%%u, c, e, a, t) %%s = Concat(%%w, %%v, %%w) axis=1 }",
                channels[i] + 3, step, channels[i]);
            g_assert_true(judge(text, "cpu.slice_channels"));
        }
}

/* Rows of every length, apart and in place, to the last byte and none beyond. */
static void check_map(const HnInt8Lut *m)
{
    enum { ROWS = 3, PITCH = 210 };
    uint8_t x[ROWS * PITCH], y[ROWS * PITCH], z[ROWS * PITCH];
    for (int n = 1; n <= 200; n += n < 70 ? 1 : 13) {
        for (int i = 0; i < ROWS * PITCH; i++)
            x[i] = (uint8_t)(i * 7 + n * 31 + i / 256);
        memset(y, 77, sizeof y);
        memcpy(z, x, sizeof x);
        hn_int8_lut_rows(m, y, PITCH - 5, x, PITCH, ROWS, n);
        hn_int8_lut_rows(m, z, PITCH, z, PITCH, ROWS, n);
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < PITCH - 5; i++) {
                g_assert_cmpint(y[r * (PITCH - 5) + i], ==, i < n ? m->table[x[r * PITCH + i]] : 77);
                g_assert_cmpint(z[r * PITCH + i], ==, i < n ? m->table[x[r * PITCH + i]] : x[r * PITCH + i]);
            }
    }
    for (int i = 0; i < 256; i++)
        x[i] = y[i] = (uint8_t)i;
    hn_int8_lut_rows(m, y, 32, y, 32, 8, 32);
    g_assert_cmpmem(y, 256, m->table, 256);
    hn_int8_exchange_rows(x, 256, x, 256, m->table, 1, 256);
    g_assert_cmpmem(x, 256, m->table, 256);
}

/* Changes of scale, of which nearly all are found to be lines. */
static void test_lines_of_bytes(void)
{
    int lines = 0, all = 0;
    HnRng rng = hn_rng(3);
    for (int k = 0; k < 400; k++) {
        const float scale = (float)exp(hn_rng_range(&rng, -3, 3)) * (k % 5 == 4 ? -1 : 1);
        const gboolean from_signed = k % 2 == 1, to_signed = k / 2 % 2 == 1;
        const int x_zero = (int)hn_rng_int(&rng, from_signed ? -128 : 0, from_signed ? 127 : 255);
        const int y_zero = (int)hn_rng_int(&rng, to_signed ? -128 : 0, to_signed ? 127 : 255);
        const int lo = k % 7 == 0 ? MAX(y_zero, to_signed ? -128 : 0) : to_signed ? -128 : 0; /* Relu, too */
        uint8_t table[HN_INT8_LUT];
        for (int i = 0; i < HN_INT8_LUT; i++) {
            const int x = from_signed ? (int8_t)i : i;
            const int v = (int)rintf((float)(x - x_zero) * scale) + y_zero;
            table[i] = (uint8_t)CLAMP(v, lo, to_signed ? 127 : 255);
        }
        HnInt8Lut m;
        hn_int8_lut_init(&m, table);
        if (k < 40)
            check_map(&m);
        uint8_t got[HN_INT8_LUT], x[HN_INT8_LUT];
        for (int i = 0; i < HN_INT8_LUT; i++)
            x[i] = (uint8_t)i;
        hn_int8_lut_rows(&m, got, HN_INT8_LUT, x, HN_INT8_LUT, 1, HN_INT8_LUT);
        g_assert_cmpmem(got, HN_INT8_LUT, table, HN_INT8_LUT);
        lines += m.is_line;
        all += memcmp(&table[1], &table[0], HN_INT8_LUT - 1) != 0; /* not the same everywhere */
    }
    g_test_message("%d of %d are lines", lines, all);
    g_assert_cmpint(lines, >=, all * 99 / 100);
}

static void test_tables_of_bytes(void)
{
    HnRng rng = hn_rng(4);
    HnInt8Lut m;
    uint8_t table[HN_INT8_LUT];
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < HN_INT8_LUT; i++)
            table[i] = (uint8_t)hn_rng_int(&rng, 0, 255);
        hn_int8_lut_init(&m, table);
        g_assert_false(m.is_line);
        check_map(&m);
    }
    for (int i = 0; i < HN_INT8_LUT; i++) /* rises, but not evenly */
        table[i] = (uint8_t)(i * i / 256);
    hn_int8_lut_init(&m, table);
    g_assert_false(m.is_line);
    check_map(&m);
    memset(table, 9, sizeof table);
    hn_int8_lut_init(&m, table);
    check_map(&m);
    for (int i = 0; i < HN_INT8_LUT; i++)
        table[i] = (uint8_t)i;
    hn_int8_lut_init(&m, table);
    g_assert_true(m.is_line);
    check_map(&m);
    for (int at = 60; at < HN_INT8_LUT; at += 85) { /* a line but for one byte */
        table[at] ^= 1;
        hn_int8_lut_init(&m, table);
        g_assert_false(m.is_line);
        check_map(&m);
        table[at] ^= 1;
    }
    for (int at = 0; at < HN_INT8_LUT; at += 5) { /* two values */
        for (int i = 0; i < HN_INT8_LUT; i++)
            table[i] = i > at ? 200 : 3;
        hn_int8_lut_init(&m, table);
        check_map(&m);
    }
}

/* Two products of 255 stay in 16 bits, also those of a group and the next one together. */
static void check_lane(const int8_t *w, const int8_t *next)
{
    int above = 0, below = 0;
    for (int k = 0; k < 2; k++) {
        above += MAX(w[k], 0) + (next != NULL ? MAX(next[k], 0) : 0);
        below += MIN(w[k], 0) + (next != NULL ? MIN(next[k], 0) : 0);
    }
    g_assert_cmpint(above, <=, 128);
    g_assert_cmpint(below, >=, -128);
}

static void test_split_two(void)
{
    int taken = 0;
    for (int n = 0; n < 20000; n++) {
        int8_t w[8], all[8], rest[8];
        gboolean fits = TRUE;
        for (int k = 0; k < 8; k++)
            w[k] = all[k] = (int8_t)g_test_rand_int_range(-128 >> n % 3, (127 >> n % 3) + 1);
        const gboolean any = hn_int8_split_two(w, rest, &fits);
        g_assert_cmpint(any, ==, memcmp(w, all, 8) != 0);
        for (int k = 0; k < 8; k++)
            g_assert_cmpint(w[k] + rest[k], ==, all[k]);
        for (int k = 0; fits && k < 4; k += 2) {
            check_lane(w + k, w + 4 + k);
            check_lane(rest + k, NULL);
            check_lane(rest + 4 + k, NULL);
        }
        taken += any && fits;
    }
    g_assert_cmpint(taken, >, 1000);
    int8_t most[8] = { 127, 127, 0, 0, 127, 127, 0, 0 }, rest[8];
    gboolean fits = TRUE;
    hn_int8_split_two(most, rest, &fits);
    g_assert_false(fits); /* 380 too much: 128 for each group at most */
}

/* Quotients that are halves, or next to one, and what has none: the bytes of ref. */
static void judge_quotients(double scale, const char *zero)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1e-40f, -1e-40f, -0.0f };
    g_autofree char *text = g_strdup_printf(
        "opset 21 graph g(%%x:f32[2000]) -> (%%y) { %%y = QuantizeLinear(%%x, s:f32={%.9g}, z:%s) }", scale, zero);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) cpu = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 1);
    float *x = ((HnTensor *)in->pdata[0])->data;
    for (int i = 0; i < 2000; i++) {
        const float half = ((float)(i / 3) - 320 + 0.5f) * (float)scale;
        x[i] = i % 3 == 0 ? half : nextafterf(half, i % 3 == 1 ? INFINITY : -INFINITY);
    }
    for (guint i = 0; i < 70 * G_N_ELEMENTS(odd); i += 7)
        x[i] = odd[i % G_N_ELEMENTS(odd)];
    g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(cpu, in);
    const HnTensor *a = want->pdata[0], *b = got->pdata[0];
    g_assert_cmpmem(a->data, a->bytes, b->data, b->bytes);
}

static void test_quotients(void)
{
    static const double scales[] = { 0.1, 1 / 255.0, 1 / 3.0, 0.7071, 2.5, 1e-20, 3e10, 1e-31, 1e31 };
    for (guint i = 0; i < G_N_ELEMENTS(scales); i++) {
        judge_quotients(scales[i], "u8={128}");
        judge_quotients(scales[i], "u8={0}");
        judge_quotients(scales[i], "i8={-5}");
    }
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/byte/split_two", test_split_two);
    g_test_add_func("/byte/winograd", test_winograd);
    g_test_add_func("/byte/large_sums", test_large_sums);
    g_test_add_func("/byte/depthwise", test_depthwise);
    g_test_add_func("/byte/groups", test_groups);
    g_test_add_func("/byte/depthwise_windows", test_depthwise_windows);
    g_test_add_func("/byte/depthwise_shared", test_depthwise_shared);
    g_test_add_func("/byte/lines", test_lines);
    g_test_add_func("/byte/columns", test_columns);
    g_test_add_func("/byte/largest", test_largest);
    g_test_add_func("/byte/halves", test_halves);
    g_test_add_func("/byte/lines_of_bytes", test_lines_of_bytes);
    g_test_add_func("/byte/tables_of_bytes", test_tables_of_bytes);
    g_test_add_func("/byte/quotients", test_quotients);
    return g_test_run();
}
