/*
 * Winograd's convolutions against ref: which tiles are chosen depends on the sizes, hence many of them, and how threads
 * share the work on sizes and threads.
 */
#include <string.h>

#include "run_model.h"

static void find_winograd(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(gboolean *)data |= s->kernel != NULL && strcmp(s->kernel->name, "cpu.winograd") == 0;
}

static gboolean computes_it(const HnSession *s)
{
    gboolean found = FALSE;
    hn_session_foreach_step(s, find_winograd, &found);
    return found;
}

/* Within `tolerance` of ref for each number of threads. Returns whether the kernel took part. */
static gboolean judge(const char *text, const HnSessionOptions *options, double tolerance)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 31);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    gboolean found = TRUE;
    for (int threads = 1; threads <= 3; threads++) {
        HnSessionOptions o = *options;
        o.threads = threads;
        o.prefer = "cpu.winograd";
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &o);
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < want->len; i++)
                test_assert_close(got->pdata[i], want->pdata[i], 1e-4, tolerance, text);
        }
        found = found && computes_it(s);
    }
    return found;
}

/* Channels and pixels: with few pixels threads share channels; weights decide between tiles of 4x4 and 2x2. */
static void test_sizes(void)
{
    static const struct {
        int n, in, h, w, out;
        const char *attrs;
    } cases[] = {
        { 1, 64, 30, 29, 64, "pads=[1,1,1,1]" },
        { 1, 33, 40, 41, 47, "pads=[1,1,1,1]" },
        { 2, 48, 13, 17, 96, "pads=[1,1,1,1]" },
        { 1, 128, 14, 14, 192, "pads=[1,1,1,1]" },
        { 3, 64, 9, 10, 130, "pads=[0,2,1,0]" },
        { 1, 192, 12, 7, 256, "" },
        { 1, 40, 61, 7, 24, "pads=[1,1,1,1]" },
        { 1, 32, 21, 50, 9, "pads=[1,1,1,1]" },
        { 1, 96, 28, 28, 64, "pads=[2,2,2,2]" },
        { 1, 64, 33, 32, 32, "pads=[1,0,0,1]" },
        { 1, 256, 14, 14, 256, "pads=[1,1,1,1]" },
        { 4, 64, 6, 6, 64, "pads=[1,1,1,1]" },
        { 1, 32, 39, 30, 64, "pads=[1,1,1,1] dilations=[2,1]" },
        { 2, 40, 31, 37, 47, "pads=[3,2,1,4] dilations=[3,2]" },
        { 1, 64, 29, 33, 36, "dilations=[1,5]" },
        { 1, 96, 24, 23, 96, "pads=[3,3,3,3] dilations=[3,3]" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "opset 17 graph g(%%x:f32[%d,%d,%d,%d]) -> (%%y) { %%y = Conv(%%x, w:f32[%d,%d,3,3], "
            "b:f32[%d]) %s }",
            cases[i].n, cases[i].in, cases[i].h, cases[i].w, cases[i].out, cases[i].in, cases[i].out, cases[i].attrs);
        if (!judge(text, &(HnSessionOptions){ 0 }, 2e-4)) {
            g_test_message("another kernel computes %s", text);
            g_test_fail();
        }
    }
}

/* 5x5, and 3, 5 or 7 taps along one axis */
static void test_taps(void)
{
    static const char *const graphs[] = {
        "%x:f32[1,64,361]) -> (%y) { %y = Conv(%x, w:f32[64,64,3], b:f32[64]) pads=[1,1] }",
        "%x:f32[2,80,83]) -> (%y) { %y = Conv(%x, w:f32[47,80,3], b:f32[47]) pads=[0,2] }",
        "%x:f32[1,33,90]) -> (%y) { %c = Conv(%x, w:f32[40,33,5], b:f32[40]) pads=[2,2] %y = Relu(%c) }",
        "%x:f32[3,64,70]) -> (%y) { %y = Conv(%x, w:f32[48,64,5]) dilations=[3] pads=[1,0] }",
        "%x:f32[1,64,55]) -> (%y) { %y = Conv(%x, w:f32[96,64,7], b:f32[96]) pads=[3,3] }",
        "%x:f32[1,64,64], %r:f32[1,64,64]) -> (%y) { %c = Conv(%x, w:f32[64,64,7], b:f32[64]) pads=[9,9] dilations=[3] "
        "%a = Add(%c, %r) %y = LeakyRelu(%a) }",
        "%x:f32[1,48,21,18]) -> (%y) { %y = Conv(%x, w:f32[64,48,3,1], b:f32[64]) pads=[1,0,1,0] }",
        "%x:f32[2,48,19,22], %r:f32[2,64,19,22]) -> (%y) { %c = Conv(%x, w:f32[64,48,1,3], b:f32[64]) pads=[0,1,0,1] "
        "%a = Add(%r, %c) %y = Sigmoid(%a) }",
        "%x:f32[2,48,23,14], %r:f32[2,64,19,14]) -> (%y) { %c = Conv(%x, w:f32[64,48,5,1], b:f32[64]) %y = Add(%c, %r) "
        "}",
        "%x:f32[1,48,9,40]) -> (%y) { %c = Conv(%x, w:f32[64,48,1,5], b:f32[64]) pads=[0,4,0,4] dilations=[1,2] "
        "%h = HardSwish(%c) %y = Mul(%h, k:f32[64,1,1]) }",
        "%x:f32[1,80,25,17]) -> (%y) { %c = Conv(%x, w:f32[64,80,7,1], b:f32[64]) pads=[6,0,6,0] dilations=[2,1] "
        "%s = Sigmoid(%c) %y = Mul(%c, %s) }",
        "%x:f32[1,80,16,29]) -> (%y) { %y = Conv(%x, w:f32[64,80,1,7]) pads=[0,3,0,3] }",
        "%x:f32[1,40,23,21]) -> (%y) { %y = Conv(%x, w:f32[48,40,5,5], b:f32[48]) pads=[2,2,2,2] }",
        "%x:f32[2,32,14,19], %r:f32[2,40,14,19]) -> (%y) { %c = Conv(%x, w:f32[40,32,5,5], b:f32[40]) pads=[4,4,4,4] "
        "dilations=[2,2] %a = Add(%c, %r) %y = Relu(%a) }",
        "%x:f32[1,64,50]) -> (%y) { %y = ConvTranspose(%x, w:f32[64,48,5], b:f32[48]) pads=[2,2] }",
        "%x:f32[1,32,20,21]) -> (%y) { %y = ConvTranspose(%x, w:f32[32,40,5,5], b:f32[40]) pads=[1,2,3,2] }",
        "%x:f32[1,64,20,21]) -> (%y) { %y = ConvTranspose(%x, w:f32[64,40,1,7]) }",
        "%x:f32[2,32,5,20,21]) -> (%y) { %y = Conv(%x, w:f32[40,32,3,3,3], b:f32[40]) pads=[1,1,1,1,1,1] }",
        "%x:f32[2,21,9,19,18]) -> (%y) { %c = Conv(%x, w:f32[48,21,3,3,3], b:f32[48]) strides=[2,1,1] "
        "pads=[2,1,0,3,1,2] dilations=[2,1,1] %y = Relu(%c) }",
        "%x:f32[1,32,4,26,17], %r:f32[1,33,4,26,17]) -> (%y) { %c = Conv(%x, w:f32[33,32,1,3,3], b:f32[33]) "
        "pads=[0,1,1,0,1,1] %a = Add(%c, %r) %y = Relu(%a) }",
        "%x:f32[1,24,6,15,40]) -> (%y) { %y = Conv(%x, w:f32[64,24,2,1,5]) pads=[0,0,2,1,0,2] }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(graphs); i++) {
        g_autofree char *text = g_strconcat("opset 17 graph g(", graphs[i], NULL);
        if (!judge(text, &(HnSessionOptions){ 0 }, 2e-4)) {
            g_test_message("another kernel computes %s", text);
            g_test_fail();
        }
    }
}

#define CONV(CHANNELS)                                                                                           \
    "opset 17 graph g(%x:f32[2,32,13,14], %r:f32[2," CHANNELS ",13,14]) -> (%y) { %c = Conv(%x, w:f32[" CHANNELS \
    ",32,3,3], b:f32[" CHANNELS "]) pads=[1,1,1,1] "
#define NORM(CHANNELS) \
    "s:f32[" CHANNELS "], o:f32[" CHANNELS "], m:f32[" CHANNELS "], v:f32[" CHANNELS "]=fill(3,0.5,1.5)"

/* What follows is computed along, at the end of each tile */
static void test_fused(void)
{
    static const char *const graphs[] = {
        CONV("40") "%y = Relu(%c) }",
        CONV("40") "%y = Clip(%c, lo:f32={-0.5}, hi:f32={0.5}) }",
        CONV("40") "%y = Add(%c, %r) }",
        CONV("40") "%y = Sigmoid(%c) }",
        CONV("40") "%n = BatchNormalization(%c, " NORM("40") ") %y = Relu(%n) }",
        CONV("130") "%n = BatchNormalization(%c, " NORM("130") ") %a = Add(%r, %n) %y = Relu(%a) }",
        "opset 17 graph g(%x:f32[2,32,23,24], %r:f32[2,40,19,18]) -> (%y) { %c = Conv(%x, w:f32[40,32,3,3], b:f32[40]) "
        "dilations=[2,3] %a = Add(%c, %r) %s = Sigmoid(%a) %m = Mul(%s, k:f32[40,1,1]) %y = LeakyRelu(%m) }",
        "opset 17 graph g(%x:f32[2,32,23,24]) -> (%y) { %c = ConvTranspose(%x, w:f32[32,40,3,3], b:f32[40]) "
        "dilations=[2,3] pads=[1,2,0,3] %y = Relu(%c) }",
        CONV("130") "%h = HardSwish(%c) %a = Add(%h, %r) %m = Mul(%a, k:f32[130,1,1]) %y = LeakyRelu(%m) }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(graphs); i++) {
        g_assert_true(judge(graphs[i], &(HnSessionOptions){ 0 }, 2e-4));
        TestCount c = test_preferring("cpu.winograd", graphs[i], 2, 1e-4, 2e-4);
        g_assert_cmpint(c.steps - c.reorders, ==, 1);
    }
}

/* Results and sources that are ranges of wider pixels */
static void test_concatenated(void)
{
    g_assert_true(judge("opset 17 graph g(%x:f32[1,32,20,20]) -> (%y) { %a = Conv(%x, v:f32[48,32,3,3]) pads=[1,1,1,1] "
                        "%b = Conv(%x, w:f32[19,32,3,3]) pads=[1,1,1,1] %c = Concat(%a, %b) axis=1 "
                        "%y = Conv(%c, u:f32[32,67,3,3]) }",
                        &(HnSessionOptions){ 0 }, 2e-3));
}

/* Too little memory for its weights is no error, and strict math does without it. */
static void test_refused(void)
{
    const char *text = "opset 17 graph g(%x:f32[1,64,20,20]) -> (%y) { %y = Conv(%x, w:f32[64,64,3,3]) }";
    g_autoptr(HnBudget) budget = hn_budget_new(1100000);
    g_assert_true(judge(text, &(HnSessionOptions){ 0 }, 2e-4));
    g_assert_false(judge(text, &(HnSessionOptions){ .strict_math = TRUE }, 2e-4));
    g_assert_false(judge(text, &(HnSessionOptions){ .budget = budget }, 2e-4));
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/winograd/sizes", test_sizes);
    g_test_add_func("/winograd/taps", test_taps);
    g_test_add_func("/winograd/fused", test_fused);
    g_test_add_func("/winograd/concatenated", test_concatenated);
    g_test_add_func("/winograd/refused", test_refused);
    return g_test_run();
}
