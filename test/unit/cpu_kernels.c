/*
 * Kernels of the CPU backend against ref over odd shapes, and what layouts do to a chain of them. Every case must be
 * accepted by a kernel: ref doing the work is a failure, too.
 */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/gemm/gemm_kernel.h"
#include "run_model.h"

static void check(const char *text)
{
    TestCount c = test_against_ref(text, 2, 1e-4, 1e-4);
    if (c.ref > 0) {
        g_test_message("ref computes %s", text);
        g_test_fail();
    }
}

G_GNUC_PRINTF(1, 2) static void checkf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    check(text);
}

/* Right, whoever computes it. */
G_GNUC_PRINTF(1, 2) static void compare(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    (void)test_against_ref(text, 2, 1e-4, 1e-4);
}

static void test_conv2d(void)
{
    static const struct {
        int n, c, h, w, m, kh, kw, group;
        const char *attrs;
    } cases[] = {
        { 1, 3, 9, 11, 16, 3, 3, 1, "pads=[1,1,1,1]" },
        { 2, 3, 17, 17, 5, 7, 7, 1, "pads=[3,3,3,3] strides=[2,2]" },
        { 1, 16, 7, 7, 16, 1, 1, 1, "" },
        { 1, 19, 8, 5, 21, 3, 3, 1, "pads=[1,0,0,1]" },
        { 3, 16, 8, 8, 32, 3, 3, 1, "strides=[2,1] pads=[0,1,2,3]" },
        { 1, 8, 9, 9, 8, 3, 3, 1, "dilations=[2,3] pads=[2,3,2,3]" },
        { 1, 16, 10, 10, 16, 3, 3, 16, "pads=[1,1,1,1]" },
        { 2, 12, 6, 6, 24, 3, 3, 12, "pads=[1,1,1,1]" },
        { 1, 6, 6, 6, 9, 3, 3, 3, "" },
        { 1, 32, 6, 6, 32, 3, 3, 2, "pads=[1,1,1,1]" },
        { 1, 4, 7, 6, 4, 3, 2, 1, "auto_pad='SAME_UPPER' strides=[2,2]" },
        { 1, 4, 7, 6, 4, 3, 2, 1, "auto_pad='SAME_LOWER' strides=[2,2]" },
        { 1, 4, 7, 6, 4, 3, 2, 1, "auto_pad='VALID' strides=[3,4]" },
        { 1, 1, 5, 5, 1, 3, 3, 1, "pads=[4,4,4,4]" },
        { 1, 1, 1, 1, 1, 1, 1, 1, "" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int bias = 0; bias < 2; bias++) {
            g_autofree char *b = bias ? g_strdup_printf(", b:f32[%d]", cases[i].m) : g_strdup("");
            checkf("opset 17 graph g(%%x:f32[%d,%d,%d,%d]) -> (%%y) { "
                   "%%y = Conv(%%x, w:f32[%d,%d,%d,%d]%s) group=%d %s }",
                   cases[i].n, cases[i].c, cases[i].h, cases[i].w, cases[i].m, cases[i].c / cases[i].group, cases[i].kh,
                   cases[i].kw, b, cases[i].group, cases[i].attrs);
        }
}

/* The same with constant weights by tiles, whatever else would take them; sizes that end within tiles and blocks. */
static void test_conv_tile(void)
{
    static const struct {
        const char *x, *w;
        int m;
        const char *attrs;
    } cases[] = {
        { "2,19,7,9", "37,19,1,1", 37, "" },
        { "1,530,4,5", "65,530,1,1", 65, "" },
        { "1,19,9,7", "35,19,1,1", 35, "strides=[2,3]" },
        { "2,17,33,31", "50,17,3,3", 50, "pads=[1,0,2,1] strides=[1,2]" },
        { "1,70,5,6", "9,70,3,3", 9, "pads=[1,1,1,1]" },
        { "2,24,9,9", "36,8,3,3", 36, "group=3 pads=[1,1,1,1]" },
        { "1,10,6,6", "140,5,2,2", 140, "group=2" },
        { "2,40,90", "33,40,5", 33, "pads=[4,0] dilations=[2]" },
        { "2,7,5,6,7", "9,7,3,2,3", 9, "pads=[1,0,1,1,2,1]" },
        { "2,3,53,51", "34,3,7,7", 34, "pads=[3,3,3,3] strides=[2,2]" },
        { "1,1,40,30", "64,1,5,5", 64, "pads=[2,2,2,2]" },
        { "2,2,70", "6,2,9", 6, "pads=[12,3] strides=[5]" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int threads = 1; threads < 4; threads += 2) {
            const int m = cases[i].m;
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:f32[%s]) -> (%%y) { %%c = Conv(%%x, w:f32[%s], b:f32[%d]) %s "
                "%%n = BatchNormalization(%%c, s:f32[%d], o:f32[%d], m:f32[%d], v:f32[%d]=fill(3,0.5,1.5)) "
                "%%y = Clip(%%n, lo:f32={-0.5}, hi:f32={0.75}) }",
                cases[i].x, cases[i].w, m, cases[i].attrs, m, m, m, m);
            TestCount c = test_preferring("cpu.conv_gemm", text, threads, 1e-4, 1e-4);
            g_assert_cmpint(c.ref, ==, 0);
        }
}

static void count_planar(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(int *)data += s->kernel != NULL && strcmp(s->kernel->name, "cpu.conv_planar") == 0;
}

/* Few channels, lanes are columns: channels, columns and rows that end within tiles and blocks. */
static void test_conv_planar(void)
{
    static const struct {
        const char *x, *w;
        int m;
        const char *attrs;
    } cases[] = {
        { "2,5,9,37", "7,5,3,3", 7, "pads=[1,1,1,1] dilations=[2,1]" },
        { "1,12,21,62", "12,12,7,3", 12, "pads=[3,1,3,1]" },
        { "1,7,13,19", "3,7,5,1", 3, "pads=[2,0,1,0]" },
        { "1,9,40,33", "13,9,3,5", 13, "strides=[2,3] pads=[0,2,1,4]" },
        { "3,6,5,70", "1,6,1,9", 1, "strides=[1,2] dilations=[1,3] pads=[0,5,0,30]" },
        { "1,20,301,65", "2,20,3,2", 2, "" },
        { "1,20,3001", "5,20,31", 5, "pads=[15,15]" },
        { "2,5,997", "6,5,8", 6, "strides=[3] pads=[0,9] dilations=[2]" },
        { "1,5,50,1", "4,5,9,1", 4, "pads=[4,0,4,0]" },
        { "1,8,6,5", "1,8,5,5", 1, "pads=[8,8,8,8]" },
        { "2,6,24,30", "6,6,1,1", 6, "" }, /* read as it lies: whole vectors; other ends are copied */
        { "3,4,1200", "7,4,1", 7, "" },
        { "2,5,13,19", "4,5,1,1", 4, "" },
        { "1,3,16,16", "2,3,1,1", 2, "pads=[1,0,0,1]" },
        { "1,3,1,32", "2,3,1,1", 2, "pads=[1,0,0,0] strides=[2,1]" }, /* of the padding alone */
    };
    int taken = 0;
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int threads = 1; threads < 4; threads += 2) {
            const int m = cases[i].m;
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:f32[%s]) -> (%%y) { %%d = Conv(%%x, v:f32[%s]) %s %%e = Tanh(%%d) "
                "%%c = Conv(%%x, w:f32[%s], b:f32[%d]) %s %%a = Add(%%e, %%c) %%l = Clip(%%a, k:f32={-0.5}) "
                "%%m = Mul(%%l, q:f32={0.5}) %%y = HardSwish(%%m) }",
                cases[i].x, cases[i].w, cases[i].attrs, cases[i].w, m, cases[i].attrs);
            g_autoptr(HnModel) model = test_model(text);
            g_autoptr(HnSession) s = test_session(
                model, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads, .prefer = "cpu.conv_planar" });
            g_autoptr(GPtrArray) in = test_inputs(s, 3);
            g_ptr_array_unref(test_run(s, in));
            hn_session_foreach_step(s, count_planar, &taken);
            g_assert_cmpint(test_preferring("cpu.conv_planar", text, threads, 1e-4, 1e-4).ref, ==, 0);
        }
    g_test_message("%d steps", taken);
    g_assert_cmpint(taken, >, 3 * (int)G_N_ELEMENTS(cases)); /* of four times as many */
}

static void test_conv_other_ranks(void)
{
    check("opset 17 graph g(%x:f32[2,3,17]) -> (%y) { %y = Conv(%x, w:f32[4,3,5], b:f32[4]) pads=[2,2] strides=[2] }");
    check("opset 17 graph g(%x:f32[1,8,9]) -> (%y) { %y = Conv(%x, w:f32[8,1,3]) group=8 dilations=[2] }");
    check("opset 17 graph g(%x:f32[1,2,5,6,7]) -> (%y) { %y = Conv(%x, w:f32[3,2,3,2,3], b:f32[3]) "
          "pads=[1,0,1,1,1,1] strides=[1,2,1] }");
}

static void test_conv_weights_at_run_time(void)
{
    check("opset 17 graph g(%x:f32[1,16,9,9], %w:f32[32,16,3,3], %b:f32[32]) -> (%y) { %y = Conv(%x, %w, %b) }");
    check("opset 17 graph g(%x:f32[1,16,9,9], %w:f32[32,8,3,3]) -> (%y) { %y = Conv(%x, %w) group=2 }");
    check("opset 17 graph g(%w:f32[32,16,3,3]) -> (%y) { %y = Conv(c:f32[1,16,9,9], %w) }"); /* constant source */
}

static void test_gemm(void)
{
    static const int sizes[][3] = { { 1, 1, 1 }, { 1, 64, 10 }, { 7, 33, 19 }, { 64, 128, 48 } };
    static const char *const attrs[] = { "", "alpha=0.5", "beta=2.0", "alpha=0.25 beta=0.5", "beta=0.0" };
    static const char *const addends[] = {
        "", ", c:f32", ", c:f32[N]", ", c:f32[1,N]", ", c:f32[M,1]", ", c:f32[M,N]"
    };
    for (guint i = 0; i < G_N_ELEMENTS(sizes) * G_N_ELEMENTS(attrs) * G_N_ELEMENTS(addends); i++) {
        const int *size = sizes[i % G_N_ELEMENTS(sizes)], m = size[0], k = size[1], n = size[2];
        const char *attr = attrs[i / G_N_ELEMENTS(sizes) % G_N_ELEMENTS(attrs)];
        g_autoptr(GString) c = g_string_new(addends[i / G_N_ELEMENTS(sizes) / G_N_ELEMENTS(attrs)]);
        g_autofree char *rows = g_strdup_printf("%d", m), *cols = g_strdup_printf("%d", n);
        g_string_replace(c, "M", rows, 0);
        g_string_replace(c, "N", cols, 0);
        for (int t = 0; t < 4; t++) {
            int ta = t & 1, tb = t >> 1;
            checkf("opset 17 graph g(%%a:f32[%d,%d]) -> (%%y) { "
                   "%%y = Gemm(%%a, b:f32[%d,%d]%s) transA=%d transB=%d %s }",
                   ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n, c->str, ta, tb, attr);
        }
    }
    check("opset 17 graph g(%a:f32[5,7], %b:f32[9,7], %c:f32[9]) -> (%y) { %y = Gemm(%a, %b, %c) transB=1 }");
    check("opset 17 graph g(%a:f32[5,7], %b:f32[7,9], %c:f32[5,1]) -> (%y) { %y = Gemm(%a, %b, %c) beta=0.5 }");
}

static void test_matmul(void)
{
    static const char *const shapes[][2] = {
        { "5,7", "7,3" },
        { "1,256", "256,100" },
        { "7", "7,3" },
        { "5,7", "7" },
        { "7", "7" },
        { "2,3,5,7", "7,4" },
        { "2,3,5,7", "7" },
        { "2,3,5,7", "2,3,7,4" },
        { "5,7", "2,3,7,4" },
        { "3,5,7", "2,3,7,4" },
        { "2,1,5,7", "3,7,4" },
        { "2,1,5,7", "1,3,7,4" },
        { "1,5,7", "1,7,4" },
        { "2,3,1,7", "2,1,7,4" },
        { "7", "2,3,7,4" },
        { "2,1,2,1,3,4", "3,1,5,4,3" },
        { "12,16,64", "12,64,16" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        checkf("opset 17 graph g(%%a:f32[%s]) -> (%%y) { %%y = MatMul(%%a, b:f32[%s]) }", shapes[i][0], shapes[i][1]);
        checkf("opset 17 graph g(%%a:f32[%s], %%b:f32[%s]) -> (%%y) { %%y = MatMul(%%a, %%b) }", shapes[i][0],
               shapes[i][1]);
        checkf("opset 17 graph g(%%b:f32[%s]) -> (%%y) { %%y = MatMul(a:f32[%s], %%b) }", shapes[i][1], shapes[i][0]);
    }
}

static void test_pool(void)
{
    static const char *const attrs[] = {
        "kernel_shape=[2,2]",
        "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]",
        "kernel_shape=[3,2] strides=[2,3] pads=[0,1,2,0]",
        "kernel_shape=[3,3] strides=[2,2] ceil_mode=1",
        "kernel_shape=[3,3] strides=[3,3] pads=[1,1,1,1] ceil_mode=1",
        "kernel_shape=[2,3] auto_pad='SAME_UPPER' strides=[2,2]",
        "kernel_shape=[2,3] auto_pad='SAME_LOWER'",
        "kernel_shape=[3,3] dilations=[2,2]",
        "kernel_shape=[3,3] dilations=[2,1] pads=[2,1,2,1]",
        "kernel_shape=[8,9]",
    };
    static const char *const ops[] = { "MaxPool", "AveragePool" };
    static const int channels[] = { 1, 3, 16, 21 };
    for (guint i = 0; i < G_N_ELEMENTS(attrs) * G_N_ELEMENTS(ops) * G_N_ELEMENTS(channels); i++) {
        const char *attr = attrs[i % G_N_ELEMENTS(attrs)], *op = ops[i / G_N_ELEMENTS(attrs) % G_N_ELEMENTS(ops)];
        int c = channels[i / G_N_ELEMENTS(attrs) / G_N_ELEMENTS(ops)];
        checkf("opset 22 graph g(%%x:f32[2,%d,8,9]) -> (%%y) { %%y = %s(%%x) %s }", c, op, attr);
        if (strcmp(op, "AveragePool") == 0) /* a window beyond counted padding is refused, but has to be right */
            compare("opset 22 graph g(%%x:f32[2,%d,8,9]) -> (%%y) { %%y = %s(%%x) %s count_include_pad=1 }", c, op,
                    attr);
    }
    check("opset 17 graph g(%x:f32[2,5,9]) -> (%y) { %y = MaxPool(%x) kernel_shape=[3] strides=[2] }");
    check(
        "opset 17 graph g(%x:f32[1,5,4,5,6]) -> (%y) { %y = AveragePool(%x) kernel_shape=[2,3,2] pads=[0,1,0,1,1,1] }");
    for (guint k = 0; k < 2; k++) {
        const char *op = k == 0 ? "GlobalMaxPool" : "GlobalAveragePool";
        checkf("opset 17 graph g(%%x:f32[2,5,9]) -> (%%y) { %%y = %s(%%x) }", op);
        checkf("opset 17 graph g(%%x:f32[2,32,7,7]) -> (%%y) { %%y = %s(%%x) }", op);
        checkf("opset 17 graph g(%%x:f32[1,3,2,3,4]) -> (%%y) { %%y = %s(%%x) }", op);
    }
}

/* Places of maxima stay with ref; odd windows do not. */
static void test_pool_odd(void)
{
    TestCount c = test_against_ref("opset 17 graph g(%x:f32[1,3,8,8]) -> (%y) { %y, %i = MaxPool(%x) "
                                   "kernel_shape=[2,2] }",
                                   1, 1e-5, 1e-5);
    g_assert_cmpint(c.ref, ==, 1);
    static const char *const texts[] = {
        "%y = AveragePool(%x) kernel_shape=[3,3] strides=[2,2] ceil_mode=1 count_include_pad=1",
        "%y = MaxPool(%x) kernel_shape=[2,2] pads=[2,0,0,0]",
        "%y = MaxPool(%x) kernel_shape=[2147483647,1] pads=[2147483646,0,0,0]",
        "%y = AveragePool(%x) kernel_shape=[1,2147483647] pads=[0,2147483646,0,0]",
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        checkf("opset 17 graph g(%%x:f32[1,3,8,8]) -> (%%y) { %s }", texts[i]);
}

static void test_batchnorm(void)
{
    static const char *const shapes[] = { "4,5", "2,3,7", "2,16,5,5", "1,21,3,4", "1,4,2,3,4" };
    static const int channels[] = { 5, 3, 16, 21, 4 };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        int c = channels[i];
        checkf("opset 15 graph g(%%x:f32[%s]) -> (%%y) { v:f32[%d]=fill(3,0.5,2.0) "
               "%%y = BatchNormalization(%%x, s:f32[%d], b:f32[%d], m:f32[%d], v) epsilon=0.01 }",
               shapes[i], c, c, c, c);
    }
    check("opset 15 graph g(%x:f32[1,3,4,4], %s:f32[3], %b:f32[3], %m:f32[3]) -> (%y) { v:f32[3]={1,2,3} "
          "%y = BatchNormalization(%x, %s, %b, %m, v) }");
}

static void test_unary(void)
{
    static const char *const ops[] = { "Relu(%c)",
                                       "LeakyRelu(%c) alpha=0.3",
                                       "Clip(%c, lo:f32={-0.25}, hi:f32={0.5})",
                                       "Clip(%c, lo:f32={0.5}, hi:f32={-0.25})", /* -0.25 throughout */
                                       "Clip(%c, lo:f32={0.25})",
                                       "Clip(%c)",
                                       "HardSigmoid(%c) alpha=0.3 beta=0.4",
                                       "HardSwish(%c)",
                                       "Sigmoid(%c)" };
    for (guint i = 0; i < G_N_ELEMENTS(ops); i++)
        for (int c = 13; c < 17; c += 3) { /* padded channels and full ones */
            checkf("opset 17 graph g(%%x:f32[2,16,9,9]) -> (%%y) { %%c = Conv(%%x, w:f32[%d,16,3,3]) %%a = %s "
                   "%%y = Conv(%%a, v:f32[8,%d,3,3]) }",
                   c, ops[i], c);
            checkf("opset 17 graph g(%%c:f32[3,%d,9]) -> (%%y) { %%y = %s }", c, ops[i]);
        }
    check("opset 17 graph g(%x:f32[1,8,128,130]) -> (%y) { %y = Relu(%x) }");
    check("opset 6 graph g(%x:f32[4,5]) -> (%y) { %y = Clip(%x) min=-0.5 max=0.25 }");
}

static void test_binary(void)
{
    static const char *const ops[] = { "Add", "Sub", "Mul", "Div" };
    static const char *const others[] = { "b:f32={1.5}", "b:f32[C,1,1]=fill(5,1.0,2.0)",
                                          "b:f32[1,C,1,1]=fill(5,1.0,2.0)", "b:f32[2,C,1,1]=fill(5,1.0,2.0)" };
    for (guint i = 0; i < G_N_ELEMENTS(ops); i++)
        for (int c = 13; c < 17; c += 3) {
            g_autofree char *channels = g_strdup_printf("%d", c);
            checkf("opset 17 graph g(%%x:f32[2,16,9,9]) -> (%%y) { %%c = Conv(%%x, w:f32[%d,16,3,3]) "
                   "%%d = Conv(%%x, u:f32[%d,16,3,3]=fill(2,0.1,0.2)) %%a = %s(%%c, %%d) %%y = Conv(%%a, "
                   "v:f32[8,%d,3,3]) }",
                   c, c, i < 3 ? ops[i] : "Mul", c);
            compare(
                "opset 17 graph g(%%x:f32[2,16,9,9], %%d:f32[2,%d,7,7]) -> (%%y) { %%c = Conv(%%x, w:f32[%d,16,3,3]) "
                "%%a = %s(%%d, %%c) %%y = Mul(%%a, one:f32={1}) }",
                c, c, i < 3 ? ops[i] : "Add");
            for (guint k = 0; k < 2 * G_N_ELEMENTS(others); k++) {
                g_autoptr(GString) b = g_string_new(others[k / 2]);
                g_string_replace(b, "C", channels, 0);
                const char *x = k % 2 == 0 ? "%c" : b->str, *y = k % 2 == 0 ? b->str : "%c";
                checkf("opset 17 graph g(%%x:f32[2,16,9,9]) -> (%%y) { "
                       "%%d = Conv(%%x, w:f32[%d,16,3,3]) %%e = Sigmoid(%%d) %%c = Add(%%e, one:f32={1}) "
                       "%%a = %s(%s, %s) %%y = Conv(%%a, v:f32[8,%d,3,3]) }",
                       c, ops[i], x, y, c);
            }
        }
    compare("opset 17 graph g(%%x:f32[3,4,5], %%y:f32[5]) -> (%%z) { %%z = Add(%%x, %%y) }");
    compare("opset 17 graph g(%%x:f32[3,1], %%y:f32[1,4]) -> (%%z) { %%z = Mul(%%x, %%y) }");
    compare("opset 6 graph g(%%x:f32[2,3,4,5], %%y:f32[3]) -> (%%z) { %%z = Add(%%x, %%y) broadcast=1 axis=1 }");
    check("opset 17 graph g(%x:f32, %y:f32[1,1]) -> (%z) { %z = Sub(%x, %y) }");
}

static void test_concat(void)
{
    compare("opset 17 graph g(%%x:f32[2,16,9,9]) -> (%%y) { %%a = Conv(%%x, w:f32[16,16,3,3]) "
            "%%b = Conv(%%x, u:f32[32,16,3,3]) %%c = Concat(%%a, %%b) axis=1 %%y = Conv(%%c, v:f32[8,48,3,3]) }");
    compare("opset 17 graph g(%%x:f32[2,16,9,9], %%p:f32[2,16,7,7]) -> (%%y) { %%a = Conv(%%x, w:f32[16,16,3,3]) "
            "%%b = Conv(%%x, u:f32[13,16,3,3]) %%c = Concat(%%a, %%b, %%p) axis=1 %%y = Conv(%%c, v:f32[8,45,3,3]) }");
    compare("opset 17 graph g(%%x:f32[2,16,9,9]) -> (%%y) { %%a = Conv(%%x, w:f32[16,16,3,3]) "
            "%%b = Conv(%%x, u:f32[16,16,3,3]) %%c = Concat(%%a, %%b) axis=2 %%y = Conv(%%c, v:f32[8,16,3,3]) }");
}

/* Blocked layouts last from the first convolution to the last pool: a reorder in, a reorder out. */
static void test_regions(void)
{
    TestCount c =
        test_against_ref("opset 17 graph g(%x:f32[1,16,20,20]) -> (%y) { "
                         "%1 = Conv(%x, a:f32[32,16,3,3], ab:f32[32]) pads=[1,1,1,1] %2 = Relu(%1) "
                         "%3 = Conv(%2, b:f32[32,32,3,3]) pads=[1,1,1,1] "
                         "%4 = BatchNormalization(%3, s:f32[32], t:f32[32], m:f32[32], v:f32[32]=fill(1,0.5,1.0)) "
                         "%5 = Add(%4, %2) %6 = Relu(%5) %y = MaxPool(%6) kernel_shape=[2,2] strides=[2,2] }",
                         2, 1e-4, 1e-4);
    g_assert_cmpint(c.ref, ==, 0);
    g_assert_cmpint(c.reorders, <=, 3); /* in, from blocks of oneDNN's to channels last, out */
    c = test_against_ref("opset 17 graph g(%x:f32[1,3,20,20]) -> (%y) { %1 = Conv(%x, a:f32[32,3,3,3]) %2 = Relu(%1) "
                         "%3 = GlobalAveragePool(%2) %4 = Flatten(%3) %y = Gemm(%4, w:f32[32,10], b:f32[10]) }",
                         2, 1e-4, 1e-4);
    g_assert_cmpint(c.ref, ==, 0);
    g_assert_cmpint(c.reorders, <=, 1);
}

/* Nodes behind a convolution or product are computed along with it: `steps` are left, by oneDNN's kernels and our own.
 */
static void fused(int steps, const char *graph)
{
    static const char *const prefer[] = { NULL, "onednn", "cpu.conv_gemm", "cpu.matmul_packed", "cpu.gemm_packed" };
    for (guint i = 0; i < G_N_ELEMENTS(prefer); i++) {
        TestCount c = test_preferring(prefer[i], graph, 2, 1e-4, 1e-4);
        if (c.steps - c.reorders != steps || c.ref > 0) {
            g_test_message("%d steps, %d of them on ref, for %s", c.steps - c.reorders, c.ref, graph);
            g_test_fail();
        }
    }
}

#define CONV                                                                                                     \
    "opset 17 graph g(%x:f32[2,5,9,11], %r:f32[2,19,9,11]) -> (%y) { %c = Conv(%x, w:f32[19,5,3,3], b:f32[19]) " \
    "pads=[1,1,1,1] "
#define GEMM "opset 17 graph g(%x:f32[7,33], %r:f32[7,21]) -> (%y) { "

static void test_fused(void)
{
    fused(1, CONV "%y = Relu(%c) }");
    fused(1, CONV "%y = LeakyRelu(%c) alpha=0.2 }");
    fused(1, CONV "%y = Clip(%c, lo:f32={-0.25}, hi:f32={0.5}) }");
    fused(1, CONV "%y = Clip(%c, lo:f32={0.5}, hi:f32={-0.25}) }");
    fused(1, CONV "%y = Clip(%c, -, hi:f32={0.5}) }");
    fused(1,
          "opset 17 graph g(%x:f32[1,6,5,4]) -> (%y) { %c = Conv(%x, w:f32[6,1,3,3], b:f32[6]) group=6 strides=[2,1] "
          "%y = Clip(%c, lo:f32={255}, hi:f32={6}) }");
    fused(1, CONV "%y = Sigmoid(%c) }");
    fused(1, CONV "%y = HardSwish(%c) }");
    fused(1, CONV "%y = HardSigmoid(%c) }");
    fused(1, CONV "%y = Add(%c, %r) }");
    fused(1, CONV "%a = Add(%r, %c) %y = Relu(%a) }");
    fused(1, CONV "%y = BatchNormalization(%c, s:f32[19], o:f32[19], m:f32[19], v:f32[19]=fill(3,0.5,1.5)) }");
    fused(1, CONV "%n = BatchNormalization(%c, s:f32[19], o:f32[19], m:f32[19], v:f32[19]=fill(3,0.5,1.5)) "
                  "%a = Add(%n, %r) %y = Relu(%a) }");
    fused(
        1, CONV
        "%a = Add(%c, k:f32[19,1,1]) %m = Mul(%a, q:f32[1,19,1,1]) %d = Div(%m, e:f32={2}) %y = Sub(%d, f:f32={1}) }");
    fused(2, CONV "%y = Mul(%c, %c) }");        /* reads the result twice */
    fused(2, CONV "%y = Sub(%r, %c) }");        /* the other way round */
    fused(2, CONV "%y = Add(%c, k:f32[11]) }"); /* along another axis */
    fused(1, GEMM "%p = MatMul(%x, w:f32[33,21]) %a = Add(%p, b:f32[21]) %y = Relu(%a) }");
    fused(1, GEMM "%p = MatMul(%x, w:f32[33,21]) %a = Add(b:f32[1,21], %p) %s = Add(%a, %r) %y = Clip(%s, lo:f32={0}, "
                  "hi:f32={6}) }");
    fused(1, GEMM "%p = Gemm(%x, w:f32[21,33], b:f32[21]) transB=1 %y = Sigmoid(%p) }");
    fused(2, GEMM "%p = Gemm(%x, w:f32[33,21], b:f32[7,1]) %y = Relu(%p) }");
}

/* Functions of many instructions, of the rows of each tile: tiles that fill no vector, sums of several parts, and what
 * stands behind. */
static void test_late(void)
{
    static const char *const sums[] = {
        "%x:f32[1,37], %r:f32[1,71]) -> (%y) { %n = MatMul(%x, w:f32[37,71]) %p = Add(%n, b:f32[71])",
        "%x:f32[100,37], %r:f32[100,35]) -> (%y) { %p = MatMul(%x, w:f32[37,35])",
        "%x:f32[29,2500], %r:f32[29,9]) -> (%y) { %p = Gemm(%x, w:f32[9,2500]=fill(1,-0.1,0.1), b:f32[9]) transB=1",
        "%x:f32[2,13,37], %r:f32[2,13,130]) -> (%y) { %p = MatMul(%x, w:f32[37,130])",
    };
    static const char *const ends[] = {
        "%y = Gelu(%p) }",
        "%y = Gelu(%p) approximate='tanh' }",
        "%g = Gelu(%p) approximate='tanh' %m = Mul(%g, k:f32={3}) %y = Sigmoid(%m) }",
        "%a = Add(%p, %r) %g = Gelu(%a) %y = Add(%g, %r) }",
        "%q = Relu(%p) %s = Sigmoid(%q) %a = Add(%s, k:f32[1]={0.5}) %y = Relu(%a) }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(sums); i++)
        for (guint k = 0; k < G_N_ELEMENTS(ends); k++) {
            g_autofree char *text = g_strdup_printf("opset 20 graph g(%s %s", sums[i], ends[k]);
            fused(1, text);
        }
}

/* Functions of a few instructions, which tiles end with; some of them with others in between that stand behind tiles.
 */
static void test_posts(void)
{
    static const char *const sums[] = {
        "%r:f32[2,35,5,7]) -> (%y) { %c = Conv(%x, w:f32[35,19,1,1], b:f32[35])",
        "%r:f32[2,35,3,4]) -> (%y) { %c = Conv(%x, w:f32[35,19,3,2]) strides=[2,2] pads=[1,1,1,1]",
        "%r:f32[2,19,5,7]) -> (%y) { %c = Conv(%x, w:f32[19,1,3,3], b:f32[19]) group=19 pads=[1,1,1,1]",
        "%r:f32[2,19,5,35]) -> (%y) { %c = MatMul(%x, w:f32[7,35])",
    };
    static const char *const ends[] = {
        "%h = HardSwish(%c) %m = Mul(%h, k:f32={0.75}) %y = Add(%m, j:f32[1]={-0.25}) }",
        "%l = LeakyRelu(%c) alpha=0.2 %y = Max(%l, k:f32[1,1,1,1]={-0.1}) }",
        "%m = Min(k:f32={0.3}, %c) %a = Add(%m, %r) %y = Max(%a, j:f32={-0.1}) }",
        "%p = Relu(%c) %m = Mul(%p, k:f32[1]={2}) %s = Sub(%m, j:f32={0.5}) %y = LeakyRelu(%s) alpha=0.3 }",
        "%a = Add(%c, %r) %h = HardSigmoid(%a) %m = Mul(%h, k:f32={3}) %y = Sigmoid(%m) }",
        "%s = Sigmoid(%c) %a = Add(%s, %r) %h = HardSwish(%a) %l = LeakyRelu(%h) alpha=1.5 %y = Clip(%l, -, k:f32={1}) "
        "}",
    };
    for (guint i = 0; i < G_N_ELEMENTS(sums); i++)
        for (guint k = 0; k < G_N_ELEMENTS(ends); k++) {
            g_autofree char *text = g_strdup_printf("opset 17 graph g(%%x:f32[2,19,5,7], %s %s", sums[i], ends[k]);
            fused(1, text);
        }
    fused(2, CONV "%y = Max(%c, k:f32={nan}) }");
    fused(2, CONV "%y = Max(%c, k:f32={1}, %r) }");
}

/* x * sigmoid(x) and x * hardsigmoid(x), which read the result twice, in the ways that exporters spell them. */
static void test_gates(void)
{
    fused(1, CONV "%s = Sigmoid(%c) %y = Mul(%c, %s) }");
    fused(1, CONV "%s = Sigmoid(%c) %m = Mul(%s, %c) %y = Add(%m, %r) }");
    fused(1, CONV "%s = HardSigmoid(%c) alpha=0.16666667 beta=0.5 %y = Mul(%c, %s) }");
    fused(1, CONV
          "%a = Add(%c, k:f32={3}) %i = Clip(%a, lo:f32={0}, hi:f32={6}) %m = Mul(%c, %i) %y = Div(%m, d:f32={6}) }");
    fused(1, CONV "%a = Add(k:f32={3}, %c) %i = Clip(%a, lo:f32={0}, hi:f32={6}) %d = Mul(%i, q:f32={0.16666667}) "
                  "%m = Mul(%d, %c) %y = Mul(%m, w2:f32={0.75}) }");
    fused(1, CONV "%n = Mul(%c, w2:f32={0.75}) %s = Sigmoid(%n) %m = Mul(%n, %s) %y = Relu(%m) }");
    fused(1, GEMM "%p = MatMul(%x, w:f32[33,21]) %a = Add(%p, b:f32[21]) %d = Div(%a, k:f32={1.4142135}) %e = Erf(%d) "
                  "%f = Add(%e, one:f32={1}) %m = Mul(%a, %f) %y = Mul(%m, half:f32={0.5}) }");
    fused(2, GEMM "%p = MatMul(%x, w:f32[33,21]) %d = Div(%p, k:f32={1.5}) %e = Erf(%d) "
                  "%f = Add(%e, one:f32={1}) %m = Mul(%p, %f) %y = Mul(%m, half:f32={0.5}) }");
    /* close to them: what can be computed along is, and the rest is one step */
    fused(2, CONV
          "%a = Add(%c, k:f32={2}) %i = Clip(%a, lo:f32={0}, hi:f32={6}) %m = Mul(%c, %i) %y = Div(%m, d:f32={6}) }");
    fused(2, CONV "%s = HardSigmoid(%c) %y = Mul(%c, %s) }");
    fused(2, CONV "%s = Sigmoid(%c) %m = Mul(%c, %s) %y = Sub(%c, %m) }");
    fused(2, CONV "%s = Sigmoid(%c) %t = Tanh(%c) %y = Mul(%t, %s) }");
    fused(1, GEMM "%p = Gemm(%x, w:f32[33,21], b:f32[21]) %s = Sigmoid(%p) %y = Mul(%p, %s) }");
}

/* How far off a model is where bf16 is allowed: a part of its result's norm. */
static double bf16_error(const char *text, int threads, const char *kernel)
{
    const HnSessionOptions plain = { .threads = threads },
                           allowed = { .threads = threads, .bf16 = TRUE, .prefer = kernel };
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) full = test_session(m, &hn_backend_cpu, &plain);
    g_autoptr(HnSession) half = test_session(m, &hn_backend_cpu, &allowed);
    g_autoptr(GPtrArray) in = test_inputs(full, 5), want = test_run(full, in), got = test_run(half, in);
    const HnTensor *x = want->pdata[0], *y = got->pdata[0];
    double error = 0, sum = 0;
    for (int64_t i = 0; i < x->n; i++) {
        const double a = hn_tensor_get_f64(x, i), d = hn_tensor_get_f64(y, i) - a;
        error += d * d;
        sum += a * a;
    }
    g_test_message("relative error %g of %s", sqrt(error / sum), text);
    return sqrt(error / sum);
}

/* bf16 has 8 bits of mantissa: results are near those of f32 and not the same; without instructions for it they are. */
static void bf16(const char *text)
{
    const double relative = bf16_error(text, 1, NULL);
    if (hn_cpu_isa() >= HN_ISA_BF16) {
        g_assert_cmpfloat(relative, >, 1e-4);
        g_assert_cmpfloat(relative, <, 1e-2);
    } else {
        g_assert_cmpfloat(relative, ==, 0);
    }
}

static void test_bf16(void)
{
    bf16("opset 17 graph g(%x:f32[96,256]) -> (%y) { %p = MatMul(%x, w:f32[256,192]) %y = Add(%p, b:f32[192]) }");
    bf16("opset 17 graph g(%x:f32[1,64,28,28]) -> (%y) { %c = Conv(%x, w:f32[64,64,3,3], b:f32[64]) "
         "pads=[1,1,1,1] strides=[2,2] %y = Relu(%c) }");
    bf16("opset 17 graph g(%x:f32[1,256,28,28]) -> (%y) { %y = Conv(%x, w:f32[64,256,1,1], b:f32[64]) }");
}

/* Of operands that are bf16 already, type 16, nothing is lost: only the order of sums differs. Of others it is. */
static void bf16_operands(const char *text, int threads, const char *kernel)
{
    g_autoptr(GString) whole = g_string_new(text);
    g_string_replace(whole, "to=16", "to=1", 0);
    g_assert_cmpfloat(bf16_error(text, threads, kernel), <, 3e-6);
    if (hn_cpu_isa() == HN_ISA_BF16)
        g_assert_cmpfloat(bf16_error(whole->str, threads, kernel), >, 1e-4);
}

static void test_bf16_operands(void)
{
    static const char *const products[] = {
        "%x:f32[13,33]) -> (%y) { ROUND(x) WEIGHT(33,21) %y = MatMul(%u, %k) }",
        "%x:f32[1,64]) -> (%y) { ROUND(x) WEIGHT(64,100) %y = MatMul(%u, %k) }",
        "%x:f32[5,2311]) -> (%y) { ROUND(x) WEIGHT(2311,70) %y = MatMul(%u, %k) }",
        "%x:f32[700,97]) -> (%y) { ROUND(x) WEIGHT(97,33) %a = MatMul(%u, %k) %d = Add(%a, b:f32[33]) %y = Relu(%d) }",
        "%x:f32[31,45]) -> (%y) { ROUND(x) WEIGHT(37,45) %y = Gemm(%u, %k) transB=1 }",
        "%x:f32[1045,40]) -> (%y) { ROUND(x) WEIGHT(1045,37) %y = Gemm(%u, %k) transA=1 }",
        "%x:f32[33,50]) -> (%y) { ROUND(x) WEIGHT(60,33) %y = Gemm(%u, %k, c:f32[60]) transA=1 transB=1 }",
        "%x:f32[3,20,66]) -> (%y) { ROUND(x) %t = Transpose(%u) perm=[0,2,1] %y = MatMul(%u, %t) }",
        "%x:f32[1,40,130]) -> (%y) { ROUND(x) %t = Transpose(%u) perm=[0,2,1] %y = MatMul(%u, %t) }",
    };
    static const struct {
        const char *x, *w, *attrs;
    } convs[] = {
        { "1,24,9,7", "40,24,1,1", "" },
        { "2,17,9,8", "33,17,1,1", "" },
        { "2,19,9,11", "20,19,3,3", "pads=[1,0,1,2] strides=[2,2]" },
        { "1,64,10,9", "48,32,3,2", "group=2 dilations=[2,1]" },
        { "1,34,53", "17,34,5", "pads=[2,2]" },
        { "1,18,4,5,6", "19,18,2,3,2", "strides=[1,2,1]" },
        { "1,800,3,4", "16,800,2,2", "" },
    };
    for (int threads = 1; threads <= 2; threads++) {
        for (guint i = 0; i < G_N_ELEMENTS(products); i++) {
            g_autoptr(GString) text = g_string_new(products[i]);
            g_autofree char *shape = NULL;
            g_string_prepend(text, "opset 17 graph g(");
            g_string_replace(text, "ROUND(x)", "%s = Cast(%x) to=16 %u = Cast(%s) to=1", 0);
            const char *at = strstr(text->str, "WEIGHT(");
            if (at != NULL) {
                shape = g_strndup(at + 7, strcspn(at + 7, ")"));
                g_autofree char *word = g_strdup_printf("WEIGHT(%s)", shape);
                g_autofree char *nodes = g_strdup_printf("%%h = Cast(w:f32[%s]) to=16 %%k = Cast(%%h) to=1", shape);
                g_string_replace(text, word, nodes, 0);
            }
            bf16_operands(text->str, threads, NULL);
        }
        for (guint i = 0; i < G_N_ELEMENTS(convs); i++) {
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:f32[%s]) -> (%%y) { %%s = Cast(%%x) to=16 %%u = Cast(%%s) to=1 "
                "%%h = Cast(w:f32[%s]) to=16 %%k = Cast(%%h) to=1 %%c = Conv(%%u, %%k) %s %%y = Relu(%%c) }",
                convs[i].x, convs[i].w, convs[i].attrs);
            bf16_operands(text, threads, "cpu.conv_gemm");
        }
    }
}

/* A result that somebody else reads, or that is one itself, stays. */
static void test_not_fused(void)
{
    fused(2, "opset 17 graph g(%x:f32[1,8,6,6]) -> (%c, %y) { %c = Conv(%x, w:f32[8,8,3,3]) %y = Relu(%c) }");
    /* the last two are one step */
    fused(2,
          "opset 17 graph g(%x:f32[1,8,6,6]) -> (%y) { %c = Conv(%x, w:f32[8,8,3,3]) %a = Relu(%c) %y = Add(%a, %c) }");
}

/* Weights are packed once for all shapes, by own kernels and by oneDNN's, and given back with the session. */
static void packed_once(int64_t size)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N,16,H,H]) -> (%y) { %y = Conv(%x, w:f32[64,16,3,3]) }");
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .budget = budget });
    HnSessionStats stats[2];
    for (int i = 0; i < 2; i++) {
        g_autoptr(HnTensor) x = test_random(HN_F32, 4, (const int64_t[]){ 1 + i, 16, size, size }, 3);
        g_autoptr(GPtrArray) in = g_ptr_array_new();
        g_ptr_array_add(in, x);
        g_ptr_array_unref(test_run(s, in));
        hn_session_stats(s, &stats[i]);
    }
    g_assert_cmpuint(stats[1].plans, ==, 2);
    g_assert_cmpuint(stats[0].packed_bytes, >=, 64 * 16 * 9 * sizeof(float));
    g_assert_cmpuint(stats[1].packed_bytes, ==, stats[0].packed_bytes);
    g_clear_pointer(&s, hn_session_free);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

static void test_packed_once(void)
{
    packed_once(4);
    packed_once(40);
}

/* Weights in a mapped file may lie at any address. */
static void test_misaligned_weights(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[1,16,9,9]) -> (%y) { %1 = Conv(%x, w:f32[32,16,3,3], b:f32[32]) "
                   "%2 = Flatten(%1) %y = Gemm(%2, v:f32[1568,7], c:f32[7]) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GPtrArray) want = test_run(s, in);
    for (guint i = 0; i < m->graph->weights->len; i++) {
        HnValue *v = m->graph->weights->pdata[i];
        HnTensor *t = v->weight;
        g_autofree char *bytes = g_malloc(t->bytes + 1);
        memcpy(bytes + 1, t->data, t->bytes);
        g_autoptr(GBytes) file = g_bytes_new(bytes, t->bytes + 1);
        g_autoptr(HnTensor) mapped = hn_tensor_new_mapped(t->dtype, t->ndim, t->dims, file, 1, NULL, NULL);
        hn_graph_add_weight(m->graph, v, mapped);
    }
    g_autoptr(HnSession) off = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) got = test_run(off, in);
    test_assert_close(got->pdata[0], want->pdata[0], 0, 0, "misaligned weights");
}

static void test_threads_agree(void)
{
    const char *text = "opset 17 graph g(%x:f32[2,8,64,64]) -> (%y) { %1 = Conv(%x, a:f32[24,8,3,3]) %2 = Relu(%1) "
                       "%y = AveragePool(%2) kernel_shape=[3,3] }";
    for (int threads = 1; threads < 4; threads++)
        (void)test_against_ref(text, threads, 1e-4, 1e-4);
}

/* Kernels that move elements: layouts in front of them end there, or go on. */
static void test_moves(void)
{
    static const char *const nodes[] = {
        "Transpose(%x) perm=[0,2,3,1]",
        "Transpose(%x) perm=[0,3,1,2]",
        "Transpose(%x)",
        "Slice(%x, s:i64[2]={1,-1}, e:i64[2]={16,-9}, a:i64[2]={1,3}, t:i64[2]={3,-2})",
        "Pad(%x, p:i64[8]={0,1,2,3,0,2,0,1})",
        "Pad(%x, p:i64[8]={0,1,2,3,0,2,0,1}) mode='reflect'",
        "Pad(%x, p:i64[8]={0,-1,2,3,0,2,0,-1}) mode='edge'",
        "Concat(%x, %x) axis=3",
        "Expand(%x, d:i64[5]={3,1,1,1,1})",
        "Tile(%x, d:i64[4]={1,2,1,3})",
        "DepthToSpace(%x) blocksize=4",
        "SpaceToDepth(%x) blocksize=3",
        "Gather(%x, i:i64[2,2]={0,3,-1,3}) axis=1",
        "Gather(%x, i:i64={5}) axis=2",
        "GatherElements(%x, i:i64[1,16,9,2]=fill(1,0,8)) axis=2",
        "GatherND(%x, i:i64[3,2]={0,1,0,-2,0,3})",
        "ScatterND(%x, i:i64[2,2]={0,1,0,5}, u:f32[2,9,9])",
        "ScatterElements(%x, i:i64[1,2,9,9]=fill(1,0,15), u:f32[1,2,9,9]) axis=1 reduction='add'",
        "Resize(%x, -, r:f32[4]={1,1,2,2}) mode='nearest'",
        "Resize(%x, -, r:f32[4]={1,1,2,1.5}) mode='linear'",
        "Resize(%x, -, r:f32[4]={1,1,0.5,3}) mode='cubic'",
        "GridSample(%x, g:f32[1,4,5,2])",
        "Trilu(%x) upper=0",
        "Dropout(%x)",
    };
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        checkf("opset 18 graph g(%%x:f32[1,16,9,9]) -> (%%y) { %%y = %s }", nodes[i]);
        checkf("opset 18 graph g(%%z:f32[1,16,9,9]) -> (%%y) { "
               "%%x = Conv(%%z, w:f32[16,16,3,3]) pads=[1,1,1,1] %%y = %s }",
               nodes[i]);
    }
    check("opset 18 graph g(%x:f32[2,9,4]) -> (%a,%b,%c) { %a, %b, %c = Split(%x, s:i64[3]={2,3,4}) axis=1 }");
    check("opset 18 graph g(%x:f32[2,9,4]) -> (%a,%b) { %a, %b = TopK(%x, k:i64[1]={3}) axis=1 }");
    check("opset 18 graph g(%x:i64[2,9]) -> (%y) { %y = OneHot(%x, d:i64={5}, v:f32[2]={0,1}) axis=1 }");
}

/* Nobody wants the first result: ref makes the others. */
static void test_no_first_result(void)
{
    compare("opset 17 graph g(%%x:f32[3,8]) -> (%%m, %%i) { -, %%m, %%i = LayerNormalization(%%x, s:f32[8]) }");
    compare(
        "opset 15 graph g(%%x:f32[2,4,6]) -> (%%m, %%v) { -, %%m, %%v = BatchNormalization(%%x, s:f32[4], t:f32[4], "
        "a:f32[4], b:f32[4]) training_mode=1 }");
    compare(
        "opset 23 graph g(%%q:f32[1,2,3,4], %%k:f32[1,2,5,4], %%v:f32[1,2,5,4], %%a:f32[1,2,2,4], %%b:f32[1,2,2,4]) "
        "-> (%%c, %%d) { -, %%c, %%d = Attention(%%q, %%k, %%v, -, %%a, %%b) }");
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/conv/2d", test_conv2d);
    g_test_add_func("/cpu/conv/tile", test_conv_tile);
    g_test_add_func("/cpu/conv/ranks", test_conv_other_ranks);
    g_test_add_func("/cpu/conv/weights-at-run-time", test_conv_weights_at_run_time);
    g_test_add_func("/cpu/gemm", test_gemm);
    g_test_add_func("/cpu/matmul", test_matmul);
    g_test_add_func("/cpu/late", test_late);
    g_test_add_func("/cpu/pool/kernels", test_pool);
    g_test_add_func("/cpu/pool/odd", test_pool_odd);
    g_test_add_func("/cpu/batchnorm", test_batchnorm);
    g_test_add_func("/cpu/unary", test_unary);
    g_test_add_func("/cpu/binary", test_binary);
    g_test_add_func("/cpu/concat", test_concat);
    g_test_add_func("/cpu/regions", test_regions);
    g_test_add_func("/cpu/packed-once", test_packed_once);
    g_test_add_func("/cpu/misaligned-weights", test_misaligned_weights);
    g_test_add_func("/cpu/fused", test_fused);
    g_test_add_func("/cpu/posts", test_posts);
    g_test_add_func("/cpu/conv-planar", test_conv_planar);
    g_test_add_func("/cpu/gates", test_gates);
    g_test_add_func("/cpu/no-first-result", test_no_first_result);
    g_test_add_func("/cpu/bf16", test_bf16);
    g_test_add_func("/cpu/bf16-operands", test_bf16_operands);
    g_test_add_func("/cpu/not-fused", test_not_fused);
    g_test_add_func("/cpu/threads", test_threads_agree);
    g_test_add_func("/cpu/moves", test_moves);
    return g_test_run();
}
