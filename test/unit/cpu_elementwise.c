/*
 * Groups of element-wise nodes: what becomes one step, and that it gives what the nodes give one by one.
 */
#include <math.h>
#include <string.h>

#include "cpu/core/post.h"
#include "cpu/elementwise/short_rows.h"
#include "run_model.h"

/* The graph gives what ref gives, with so many steps that are no reorders; none of them on ref. */
static void check(int steps, const char *text)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        TestCount c = test_preferring(NULL, text, threads, 2e-5, 2e-6);
        if (c.steps - c.reorders != steps || c.ref > 0) {
            g_test_message("%d steps, %d of them on ref, for %s", c.steps - c.reorders, c.ref, text);
            g_test_fail();
        }
    }
}

G_GNUC_PRINTF(2, 3) static void checkf(int steps, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    check(steps, text);
}

/* Lengths around the vectors', the tiles', and beyond what one thread does. */
static void test_sizes(void)
{
    static const char *const shapes[] = { "",      "1",        "7",         "1,1,1", "16",     "1023",     "1024",
                                          "1025",  "3000",     "2,3,5",     "0,3",   "600000", "700,1000", "1,3,300000",
                                          "513,2", "2,511,11", "70000,1,9", "4,512", "3,1025" };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++)
        checkf(1,
               "opset 17 graph g(%%x:f32[%s], %%w:f32[%s]) -> (%%y) { %%1 = Mul(%%x, %%w) %%2 = Tanh(%%1) "
               "%%3 = Sub(%%2, c:f32={0.5}) %%4 = Mul(%%3, %%3) %%y = Add(%%4, %%x) }",
               shapes[i], shapes[i]);
}

static void test_broadcast(void)
{
    static const char *const shapes[][2] = {
        { "4,33", "33" },
        { "4,33", "4,1" },
        { "4,33", "1" },
        { "4,33", "1,1" },
        { "2,3,5,7", "3,1,1" },
        { "2,3,5,7", "7" },
        { "2,3,5,7", "2,1,5,1" },
        { "2,3,5,7", "1,3,1,7" },
        { "2,3,5,7", "5,7" },
        { "3,1500", "3,1" },
        { "3,1500", "1500" },
        { "600,1000", "1000" },
        { "600,1000", "600,1" },
        { "5000,3", "3" },
        { "5000,3", "5000,1" },
        { "70000,2,4", "70000,1,4" },
        { "2,64,513", "64,1" },
        { "1,4,1", "4,1" },
        { "9,1,4", "1,4" },
        { "3,40,16", "40,1" },
        { "3,40,16", "3,1,16" },
        { "2,9,5,12", "5,1" },
        { "2,9,5,12", "9,1,12" },
        { "2,70,9", "2,1,1" },
        { "2,70,9", "2,70,1" },
        { "6,1,3", "1,50,1" },
        /* rows that tiles end with, and do not; the same rows for several tiles; vectors of each level */
        { "3,128,16", "128,16" },
        { "3,70,16", "70,16" },
        { "3,70,16", "3,1,16" },
        { "2,256,16", "2,1,16" },
        { "3,128,8", "128,1" },
        { "2,2,64,16", "2,1,64,16" },
        { "2,300,4", "2,1,4" },
        { "2,130,20", "130,20" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        checkf(1,
               "opset 17 graph g(%%x:f32[%s], %%w:f32[%s]) -> (%%y) { %%1 = Mul(%%w, %%x) %%2 = Exp(%%1) "
               "%%y = Sub(%%w, %%2) }",
               shapes[i][0], shapes[i][1]);
        checkf(1, "opset 17 graph g(%%x:f32[%s], %%w:f32[%s]) -> (%%y) { %%y = Sub(%%w, %%x) }", shapes[i][0],
               shapes[i][1]);
        checkf(1, "opset 17 graph g(%%x:i64[%s], %%w:i64[%s]) -> (%%y) { %%y = Greater(%%x, %%w) }", shapes[i][0],
               shapes[i][1]);
        checkf(1,
               "opset 17 graph g(%%x:f32[%s]) -> (%%y) { %%1 = Add(%%x, w:f32[%s]) %%2 = Div(v:f32={3}, %%1) "
               "%%3 = Neg(%%2) %%y = Max(%%3, w, %%x) }",
               shapes[i][0], shapes[i][1]);
    }
    /* the result is larger than each of the operands */
    check(1, "opset 17 graph g(%x:f32[5,1], %w:f32[1,7]) -> (%y) { %1 = Mul(%x, %w) %2 = Exp(%1) %y = Add(%2, %1) }");
    /* rows that lie in an operand as they do in a tile, or across its end; one row again and again */
    check(1, "opset 17 graph g(%x:f32[3,100,1], %w:f32[100,16]) -> (%y) { %1 = Mul(%x, %w) %2 = Exp(%1) "
             "%y = Add(%2, %1) }");
    check(1, "opset 17 graph g(%x:f32[2,128,1], %w:f32[128,32], %v:f32[2,1,1]) -> (%y) { %1 = Mul(%x, %w) "
             "%2 = Sub(%1, %v) %y = Add(%2, %w) }");
    check(1, "opset 17 graph g(%x:f32[7,1,3], %w:f32[130,3]) -> (%y) { %1 = Sub(%x, %w) %y = Mul(%1, %1) }");
    check(1, "opset 17 graph g(%x:f32[5,1,19], %w:f32[70,19], %v:f32[5,70,1]) -> (%y) { %1 = Sub(%x, %w) "
             "%y = Mul(%1, %v) }");
    /* and a part of the group smaller than the rest is a step of its own */
    check(2, "opset 17 graph g(%x:f32[5,7], %w:f32[7]) -> (%y) { %1 = Exp(%w) %2 = Neg(%1) %3 = Mul(%x, %2) "
             "%y = Relu(%3) }");
}

/* Elements of each size, rows of all lengths up to two vectors and more; nothing is written behind the last one. */
static void test_short_rows(void)
{
    enum { ROWS = 3, MOST = 40, STRIDE = MOST + 3 };
    guint8 x[ROWS * STRIDE * 8], y[(ROWS * MOST + 64) * 8];
    for (gsize i = 0; i < sizeof x; i++)
        x[i] = (guint8)(i * 37 + i / 256);
    for (gsize size = 1; size <= 8; size *= 2)
        for (int n = 1; n <= MOST; n++)
            for (int how = 0; how < 5; how++) {
                const int step = how / 3, stride = how % 3 == 0 ? STRIDE : how % 3 == 1 ? n : 0;
                memset(y, 0xa5, sizeof y);
                hn_short_rows(y, x, size, ROWS, n, stride, step);
                for (int r = 0; r < ROWS; r++)
                    for (int k = 0; k < n; k++)
                        g_assert_cmpmem(y + (gsize)(r * n + k) * size, size, x + (gsize)(r * stride + k * step) * size,
                                        size);
                for (gsize i = (gsize)(ROWS * n) * size; i < sizeof y; i++)
                    g_assert_cmpint(y[i], ==, 0xa5);
            }
}

static void test_truth(void)
{
    check(1, "opset 17 graph g(%x:f32[5,300], %w:f32[300]) -> (%y) { %1 = Greater(%x, %w) %2 = Neg(%x) "
             "%y = Where(%1, %x, %2) }");
    check(1, "opset 17 graph g(%x:f32[5,300], %c:bool[5,1]) -> (%y) { %1 = Exp(%x) %y = Where(%c, %1, k:f32={2}) }");
    check(1, "opset 17 graph g(%x:f32[5,7], %c:bool) -> (%y) { %1 = Exp(%x) %y = Where(%c, %1, %x) }");
    check(1, "opset 17 graph g(%x:f32[40,7], %w:f32[7]) -> (%y) { %1 = LessOrEqual(%x, %w) %2 = Less(%w, k:f32[40,1]) "
             "%3 = And(%1, %2) %4 = GreaterOrEqual(%x, z:f32={0}) %5 = Not(%4) %6 = Or(%3, %5) %7 = Equal(%x, %x) "
             "%y = Xor(%6, %7) }");
    check(1, "opset 17 graph g(%x:f32[3000], %i:i64[3000], %b:bool[3000]) -> (%y) { %1 = Cast(%i) to=1 "
             "%2 = Cast(%b) to=1 %3 = Mul(%1, %x) %4 = Add(%3, %2) %5 = Cast(%4) to=9 %6 = Cast(%5) to=1 "
             "%y = Sub(%6, %1) }");
    check(1, "opset 17 graph g(%i:i32[3,5], %u:u8[3,5]) -> (%y) { %1 = Cast(%i) to=1 "
             "%2 = Cast(%u) to=1 %3 = Add(%1, %2) %y = Mul(%3, %3) }");
    check(1, "opset 17 graph g(%x:f32[9]) -> (%y) { %1 = Neg(%x) %2 = Cast(%1) to=9 %3 = Cast(%2) to=1 "
             "%y = Cast(%3) to=1 }");
    check(1, "opset 17 graph g(%x:bool[9]) -> (%y) { %1 = Cast(%x) to=1 %y = Cast(%1) to=9 }");
}

static void test_halves(void)
{
    static const char *const shapes[][2] = { { "5", "5" }, { "3,1030", "1030" }, { "400,7", "7" }, { "40,7", "1" } };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (int bf = 0; bf < 2; bf++) {
            const char *t = bf ? "bf16" : "f16";
            g_autofree char *text =
                g_strdup_printf("opset 17 graph g(%%x:%s[%s], %%w:%s[%s]) -> (%%y) { %%1 = Mul(%%x, %%w) "
                                "%%2 = Exp(%%1) %%3 = Add(%%2, %%w) %%y = Sub(%%3, c:%s={0.25}) }",
                                t, shapes[i][0], t, shapes[i][1], t);
            TestCount c = test_preferring(NULL, text, 2, bf ? 2e-2 : 2e-3, bf ? 2e-2 : 2e-3);
            g_assert_cmpint(c.steps - c.reorders, ==, 1);
        }
}

/* What is one function in the end. */
static void test_functions(void)
{
    static const char *const bodies[] = {
        "%1 = Mul(%x, %x) %2 = Mul(%1, %x) %3 = Mul(c:f32={0.044715}, %2) %4 = Add(%x, %3) "
        "%5 = Mul(k:f32={0.7978846}, %4) %6 = Tanh(%5) %7 = Add(%6, o:f32={1}) %8 = Mul(h:f32={0.5}, %7) "
        "%y = Mul(%8, %x)",
        "%2 = Pow(%x, t:f32={3}) %3 = Mul(%2, c:f32={0.044715}) %4 = Add(%3, %x) %5 = Mul(%4, k:f32={0.7978846}) "
        "%6 = Tanh(%5) %7 = Add(o:f32={1}, %6) %8 = Mul(%x, %7) %y = Mul(%8, h:f32={0.5})",
        "%1 = Mul(%x, k:f32={0.7978846}) %2 = Mul(%x, c:f32={0.044715}) %3 = Mul(%2, %x) %4 = Add(%3, o:f32={1}) "
        "%5 = Mul(%1, %4) %6 = Tanh(%5) %7 = Add(%6, o) %8 = Mul(%x, h:f32={0.5}) %y = Mul(%8, %7)",
        "%1 = Div(%x, r:f32={1.4142135}) %2 = Erf(%1) %3 = Add(%2, o:f32={1}) %4 = Mul(%x, %3) "
        "%y = Mul(%4, h:f32={0.5})",
        "%1 = Mul(%x, r:f32={0.70710678}) %2 = Erf(%1) %3 = Add(o:f32={1}, %2) %4 = Mul(h:f32={0.5}, %x) "
        "%y = Mul(%4, %3)",
        "%1 = Sigmoid(%x) %y = Mul(%x, %1)",
        "%1 = Mul(%x, b:f32={1.702}) %2 = Sigmoid(%1) %y = Mul(%2, %x)",
        /* nearly those: other numbers, and values that something else reads too */
        "%1 = Mul(%x, r:f32={0.7}) %2 = Erf(%1) %3 = Add(o:f32={1}, %2) %4 = Mul(h:f32={0.5}, %x) %y = Mul(%4, %3)",
        "%1 = Mul(%x, r:f32={0.70710678}) %2 = Erf(%1) %3 = Add(o:f32={1}, %2) %4 = Mul(h:f32={0.5}, %x) "
        "%5 = Mul(%4, %3) %y = Add(%5, %2)",
        "%1 = Sigmoid(%x) %2 = Mul(%x, %1) %3 = Mul(%2, %1) %y = Mul(%x, %3)",
        "%1 = Exp(%x) %2 = Mul(%1, %1) %3 = Mul(%2, %2) %4 = Mul(%3, k:f32={0.01}) %5 = Mul(%4, %4) %y = Mul(%5, %x)",
    };
    for (guint i = 0; i < G_N_ELEMENTS(bodies); i++)
        checkf(1, "opset 17 graph g(%%x:f32[3,700]) -> (%%y) { %s }", bodies[i]);
}

/* Everything else that may be part of a group. */
static void test_operators(void)
{
    static const char *const unary[] = {
        "Abs",  "Ceil",        "Celu",      "Cos",       "Elu",      "Erf",      "Exp",  "Floor",
        "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish",     "Neg",      "Relu", "Round",
        "Selu", "Sigmoid",     "Sign",      "Sin",       "Softplus", "Softsign", "Tanh", "ThresholdedRelu",
    };
    for (guint i = 0; i < G_N_ELEMENTS(unary); i++)
        checkf(
            1,
            "opset 22 graph g(%%x:f32[2,77]) -> (%%y) { %%1 = Mul(%%x, k:f32={3}) %%2 = %s(%%1) %%y = Add(%%2, %%x) }",
            unary[i]);
    check(1, "opset 17 graph g(%x:f32[77]) -> (%y) { %1 = Abs(%x) %2 = Sqrt(%1) %3 = Add(%2, k:f32={1}) %4 = Log(%3) "
             "%5 = Reciprocal(%3) %6 = Pow(%5, e:f32={0.5}) %y = Sub(%6, %4) }");
    check(1, "opset 17 graph g(%x:f32[7,9], %e:f32[9]) -> (%y) { %1 = Exp(%x) %2 = Pow(%1, %e) %y = PRelu(%2, %e) }");
    check(1, "opset 17 graph g(%x:f32[77]) -> (%y) { %1 = Clip(%x, a:f32={-0.5}, b:f32={0.25}) %2 = Clip(%1, -, b) "
             "%y = Min(%2, %x, %1, c:f32={0.1}) }");
    check(1, "opset 17 graph g(%x:f32[7,7], %a:f32, %b:f32) -> (%y) { %1 = Neg(%x) %2 = Clip(%1, %a, %b) "
             "%y = Add(%2, %x) }");
}

/* Not one step: results that others read, other types. */
static void test_borders(void)
{
    check(2, "opset 17 graph g(%x:f32[77]) -> (%1, %y) { %1 = Exp(%x) %y = Neg(%1) }");
    check(3, "opset 17 graph g(%x:f32[7,7]) -> (%y, %z) { %1 = Exp(%x) %y = Neg(%1) %z = Softmax(%1) }");
    check(2, "opset 17 graph g(%x:f32[7,7]) -> (%y) { %1 = Exp(%x) %2 = Neg(%1) %y = Softmax(%2) }");
    check(3, "opset 17 graph g(%x:f32[7,7]) -> (%y) { %1 = Exp(%x) %2 = Softmax(%1) %3 = Mul(%1, %2) %y = Abs(%3) }");
    /* sub-graphs read and make values of a group */
    (void)test_preferring(NULL,
                          "opset 17 graph g(%x:f32[7], %c:bool) -> (%y) { %1 = Exp(%x) %2 = Neg(%1) %3 = If(%c) "
                          "then_branch=graph() -> (%a) { %4 = Add(%2, %1) %a = Neg(%4) } "
                          "else_branch=graph() -> (%b) { %b = Abs(%2) } %5 = Mul(%3, %2) %y = Sub(%5, %x) }",
                          2, 1e-5, 1e-6);
    (void)test_preferring(NULL,
                          "opset 17 graph g(%x:f32[7], %c:bool) -> (%y) { %1 = Exp(%x) %2 = Neg(%1) %4 = Abs(%2) "
                          "%3 = If(%c) then_branch=graph() -> (%2) { } else_branch=graph() -> (%b) { %b = Neg(%x) } "
                          "%y = Mul(%3, %4) }",
                          2, 1e-5, 1e-6);
    /* shapes that depend on data, in the middle */
    (void)test_preferring(NULL,
                          "opset 17 graph g(%x:f32[7], %k:i64[2]) -> (%y) { %1 = Exp(%x) %2 = Neg(%1) "
                          "%n = NonZero(%2) %3 = Mul(%2, %x) %4 = Add(%3, %2) %5 = Gather(%4, %n) %6 = Neg(%5) "
                          "%y = Abs(%6) }",
                          2, 1e-5, 1e-6);
    /* 60 nodes are more than one group */
    g_autoptr(GString) text = g_string_new("opset 17 graph g(%x:f32[33]) -> (%y) { %0 = Neg(%x) ");
    for (int i = 1; i < 60; i++)
        g_string_append_printf(text, "%%%d = Add(%%%d, c%d:f32[33]) ", i, i - 1, i);
    g_string_append(text, "%y = Neg(%59) }");
    check(2, text->str);
}

/* In the layout of the convolutions around. */
static void test_layouts(void)
{
    for (int size = 5; size < 40; size += 31) {
        TestCount c = { 0 };
        g_autofree char *a = g_strdup_printf(
            "opset 17 graph g(%%x:f32[2,32,%d,%d], %%p:f32[2,32,1,1]) -> (%%y) { %%c = Conv(%%x, w:f32[32,32,3,3]) "
            "pads=[1,1,1,1] %%1 = Sigmoid(%%c) %%2 = Mul(%%c, %%1) %%3 = Mul(%%2, %%p) %%4 = Add(%%3, q:f32[32,1,1]) "
            "%%5 = Greater(%%4, r:f32={0.1}) %%6 = Where(%%5, %%4, r) %%y = Conv(%%6, v:f32[32,32,3,3]) }",
            size, size);
        c = test_preferring(NULL, a, 2, 1e-3, 1e-3);
        g_assert_cmpint(c.steps - c.reorders, ==, 3);
        g_assert_cmpint(c.ref, ==, 0);
        /* one operand is plain, and one broadcasts along the pixels of a row */
        g_autofree char *b = g_strdup_printf(
            "opset 17 graph g(%%x:f32[2,32,%d,%d], %%p:f32[1,1,1,%d], %%q:f32[2,32,%d,%d]) -> (%%y) { "
            "%%c = Conv(%%x, w:f32[32,32,3,3]) pads=[1,1,1,1] %%1 = Tanh(%%c) %%2 = Mul(%%c, %%1) %%3 = Mul(%%2, %%p) "
            "%%4 = Add(%%3, %%q) %%y = Conv(%%4, v:f32[32,32,3,3]) }",
            size, size, size, size, size);
        c = test_preferring(NULL, b, 2, 1e-3, 1e-3);
        g_assert_cmpint(c.steps - c.reorders, ==, 3);
    }
}

/* Operators that a file spells out. */
static void test_lowered(void)
{
#define CENTRED "%m = ReduceMean(%x) axes=[-1] %d = Sub(%x, %m) "
#define NORM CENTRED "%s = Mul(%d, %d) %v = ReduceMean(%s) axes=[-1] %e = Add(%v, k:f32={1e-5}) "
#define RMS "%s = Pow(%x, t:f32={2}) %v = ReduceMean(%s) axes=[2] %e = Add(k:f32[1]={1e-6}, %v) "
    static const struct {
        int steps;
        const char *body;
    } cases[] = {
        { 1, NORM "%q = Sqrt(%e) %n = Div(%d, %q) %w = Mul(%n, g:f32[77]) %y = Add(%w, h:f32[77])" },
        { 1, NORM
          "%q = Sqrt(%e) %r = Reciprocal(%q) %n = Mul(%r, %d) %w = Mul(g:f32[1,1,77], %n) %y = Add(h:f32[77], %w)" },
        { 1, NORM "%q = Sqrt(%e) %d2 = Sub(%x, %m) %n = Div(%d2, %q) %y = Mul(%n, g:f32[77])" },
        { 1, NORM "%q = Sqrt(%e) %y = Div(%d, %q)" },
        { 1, RMS "%q = Sqrt(%e) %r = Div(o:f32={1}, %q) %n = Mul(%x, %r) %y = Mul(g:f32[77], %n)" },
        { 1, RMS "%q = Pow(%e, o:f32={-0.5}) %y = Mul(%x, %q)" },
        { 1, "%m = ReduceMax(%x) axes=[1] %d = Sub(%x, %m) %e = Exp(%d) %s = ReduceSum(%e, a:i64[1]={1}) "
             "%y = Div(%e, %s)" },
        /* two axes, or the middle one of three */
        { 1, "%m = ReduceMean(%x) axes=[1,2] %d = Sub(%x, %m) %s = Mul(%d, %d) %v = ReduceMean(%s) axes=[2,1] "
             "%e = Add(%v, k:f32={1e-5}) %q = Sqrt(%e) %n = Div(%d, %q) %w = Mul(%n, g:f32[5,77]) "
             "%y = Add(%w, h:f32[5,77])" },
        { 6, "%m = ReduceMean(%x) axes=[1] %d = Sub(%x, %m) %s = Mul(%d, %d) %v = ReduceMean(%s) axes=[1] "
             "%e = Add(%v, k:f32={1e-5}) %q = Sqrt(%e) %y = Div(%d, %q)" },
        /* scale or bias of another shape belong to the group behind */
        { 2, NORM "%q = Sqrt(%e) %n = Div(%d, %q) %w = Mul(%n, g:f32[5,1]) %y = Add(%w, h:f32[77])" },
        { 2, NORM "%q = Sqrt(%e) %n = Div(%d, %q) %w = Mul(%n, g:f32[77]) %1 = Add(%w, %x) %y = Relu(%1)" },
        /* not quite */
        { 6, NORM "%q = Sqrt(%e) %n = Div(%d, %q) %y = Add(%n, %s)" },
        { 5, "%m = ReduceMax(%x) axes=[1] %d = Sub(%x, %m) %e = Exp(%d) %s = ReduceSum(%e, a:i64[1]={2}) "
             "%1 = Div(%e, %s) %y = Softmax(%1)" },
        { 6, "%s = Mul(%x, %x) %v = ReduceMean(%s) axes=[-1] %z = Mul(%v, o:f32={2}) %e = Add(%z, k:f32={1e-5}) "
             "%q = Sqrt(%e) %1 = Div(%x, %q) %2 = Softmax(%1) %y = Div(%2, %q)" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("opset 17 graph g(%%x:f32[3,5,77]) -> (%%y) { %s }", cases[i].body);
        check(cases[i].steps, text);
        g_autoptr(GString) empty = g_string_new(text);
        g_string_replace(empty, "%x:f32[3,5,77]", "%x:f32[0,5,77]", 0);
        (void)test_preferring(NULL, empty->str, 1, 1e-5, 1e-5);
    }
}

/* A one-hot matrix times constant rows. */
static void test_lookup(void)
{
    static const char *const ends[] = {
        "%3 = MatMul(%2, w:f32[7,5]) %y = Neg(%3)",
        "%3 = MatMul(%2, w:f32[7,5]) %y = Add(%3, %3)",
    };
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        checkf(2,
               "opset 17 graph g(%%x:i32[2,3,1]) -> (%%y) { %%1 = Equal(%%x, c:i32[7]={0,1,2,3,4,5,6}) "
               "%%2 = Cast(%%1) to=1 %s }",
               ends[i]);
        checkf(2,
               "opset 17 graph g(%%x:i64[3,1]) -> (%%y) { %%1 = Equal(c:i64[1,7]={0,1,2,3,4,5,6}, %%x) "
               "%%2 = Cast(%%1) to=1 %s }",
               ends[i]);
    }
    /* another order, another count, more axes, something infinite, another reader */
    check(3, "opset 17 graph g(%x:i64[3,1]) -> (%y) { %1 = Equal(%x, c:i64[3]={0,2,1}) %2 = Cast(%1) to=1 "
             "%y = MatMul(%2, w:f32[3,5]) }");
    check(3, "opset 17 graph g(%x:i64[3,3]) -> (%y) { %1 = Equal(%x, c:i64[3]={0,1,2}) %2 = Cast(%1) to=1 "
             "%y = MatMul(%2, w:f32[3,5]) }");
    check(3, "opset 17 graph g(%x:i64[2,1]) -> (%y) { %1 = Equal(%x, c:i64[1,1,3]={0,1,2}) %2 = Cast(%1) to=1 "
             "%y = MatMul(%2, w:f32[3,5]) }");
    check(3, "opset 17 graph g(%x:i64[2,1]) -> (%y) { %1 = Equal(%x, c:i64[2]={0,1}) %2 = Cast(%1) to=1 "
             "%y = MatMul(%2, w:f32[2,2]={1,inf,2,3}) }");
    check(3, "opset 17 graph g(%x:i64[2,1]) -> (%y, %2) { %1 = Equal(%x, c:i64[2]={0,1}) %2 = Cast(%1) to=1 "
             "%y = MatMul(%2, w:f32[2,2]) }");
}

static void count_inplace(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(int *)data += s->inplace;
}

/* Any of the inputs may give its memory to the result. */
static void test_inplace(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[7,7]) -> (%y) { %a = Softmax(%x) %b = Softmax(%a) axis=0 "
                   "%1 = Neg(%x) %2 = Mul(%1, %b) %3 = Sub(%2, %x) %y = Softmax(%3) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 5), out = test_run(s, in);
    int inplace = 0;
    hn_session_foreach_step(s, count_inplace, &inplace);
    g_assert_cmpint(inplace, ==, 2); /* %b on %a, %3 on %b */
}

/* Gelu of the level that is used, against doubles: as near for numbers of which little is left. */
static void test_gelu(void)
{
    enum { N = 1 << 14 };
    static float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = y[i] = -10.7f + 22.0f * (float)i / N;
    hn_post_rows(&(HnPost){ .kind = HN_POST_GELU }, 1, y, N, 1, 0, N);
    for (int i = 0; i < N; i++) {
        const double v = x[i], want = v * 0.5 * erfc(-v * M_SQRT1_2), wrong = fabs(y[i] - want);
        if (wrong > (v < -3 ? 2e-5 : 2e-6) * fabs(want))
            g_test_fail_printf("Gelu(%g) is %g instead of %g", v, y[i], want);
    }
    float far[] = { -10.76f, -1e30f, 10.76f, 1e30f };
    hn_post_rows(&(HnPost){ .kind = HN_POST_GELU }, 1, far, 4, 1, 0, 4);
    g_assert_true(far[0] == 0 && far[1] == 0 && far[2] == 10.76f && far[3] == 1e30f);
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/gelu", test_gelu);
    g_test_add_func("/region/sizes", test_sizes);
    g_test_add_func("/region/broadcast", test_broadcast);
    g_test_add_func("/cpu/short-rows", test_short_rows);
    g_test_add_func("/region/truth", test_truth);
    g_test_add_func("/region/halves", test_halves);
    g_test_add_func("/region/functions", test_functions);
    g_test_add_func("/region/operators", test_operators);
    g_test_add_func("/region/borders", test_borders);
    g_test_add_func("/region/layouts", test_layouts);
    g_test_add_func("/region/lowered", test_lowered);
    g_test_add_func("/region/lookup", test_lookup);
    g_test_add_func("/region/inplace", test_inplace);
    return g_test_run();
}
