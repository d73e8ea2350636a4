/*
 * Kernels that a training step has beside those of a run: against ref, on each layout, and to the last bit the same
 * with any number of threads.
 */
#include <string.h>

#include "run_model.h"

static void same_bits(const GPtrArray *a, const GPtrArray *b, const char *text)
{
    for (guint i = 0; i < a->len; i++) {
        const HnTensor *x = a->pdata[i], *y = b->pdata[i];
        if (memcmp(x->data, y->data, x->bytes) != 0) {
            g_test_message("result %u differs with threads: %s", i, text);
            g_test_fail();
        }
    }
}

/* nodes: behind %x, f32 of dims; %c is x channels last. At most so many reorder steps, and none on ref. */
static void check(int reorders, const char *dims, const char *nodes)
{
    g_autofree char *text = g_strdup_printf("opset 21 opset hone 1 graph g(%%x:f32[%s]) -> (%%y) { %s }", dims, nodes);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 3), first = NULL;
    g_autoptr(GPtrArray) want = test_run(ref, in);
    for (int threads = 1; threads <= 3; threads++) {
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        g_autoptr(GPtrArray) got = test_run(s, in);
        const TestCount n = test_count(s);
        if (n.ref > 0 || n.reorders > reorders) {
            g_test_message("%d on ref, %d reorders: %s", n.ref, n.reorders, text);
            g_test_fail();
        }
        for (guint i = 0; i < want->len; i++)
            test_assert_close(got->pdata[i], want->pdata[i], 2e-4, 2e-4, text);
        if (first == NULL)
            first = test_copies(got);
        else
            same_bits(first, got, text);
    }
}

/* Shapes whose channels fill vectors, do not, and are fewer than a vector has; all large enough for several threads.
 * In `nodes` CC is the number of channels, DIMS the shape. */
static void each(int reorders, const char *nodes)
{
    static const struct {
        const char *dims, *channels;
    } shapes[] = { { "4,32,15,14", "32" }, { "5,21,15,17", "21" }, { "3,3,61,60", "3" },
                   { "2,300,9,8", "300" }, { "70,200", "200" },    { "3,16,999", "16" } };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_autoptr(GString) body = g_string_new(nodes);
        g_string_replace(body, "CC", shapes[i].channels, 0);
        g_string_replace(body, "DIMS", shapes[i].dims, 0);
        check(reorders, shapes[i].dims, body->str);
    }
}

#define NORM "s:f32[CC]=fill(1,0.5,1.5), b:f32[CC], m:f32[CC], v:f32[CC]=fill(3,0.5,1.5)"

/* All results in one: %y is their sum. */
static void test_batchnorm(void)
{
    each(0, "%y = BatchNormalization(%x, " NORM ") training_mode=1");
    each(0, "%n = BatchNormalization(%x, " NORM ") training_mode=1 %y = Relu(%n)");
    each(0, "%o = Neg(%x) %n = BatchNormalization(%x, " NORM ") training_mode=1 %a = Add(%o, %n) "
            "%y = Clip(%a, lo:f32={-0.5}, hi:f32={0.5})");
    each(0, "%n, -, -, %q, %i = hone::BatchNormTrain(%x, " NORM ") %y = Add(%q, %i)");
    each(0, "%n, %q, %i = BatchNormalization(%x, " NORM ") training_mode=1 %y = Add(%q, %i)");
}

#define GRAD(more)                                                                                                \
    "%o = Sin(%x) %n, -, -, %q, %i = hone::BatchNormTrain(%x, " NORM ") %dx, %ds, %db = hone::BatchNormGrad(%o, " \
    "%x, s, %q, %i, b)" more
#define FROZEN(more) "%o = Sin(%x) %dx, %ds, %db = hone::BatchNormGrad(%o, %x, s, m, v, b) frozen=1" more

static void test_batchnorm_grad(void)
{
    static const char *const results[] = { " %y = Neg(%dx)", " %y = Neg(%ds)", " %y = Neg(%db)" };
    for (guint i = 0; i < G_N_ELEMENTS(results); i++) {
        g_autofree char *plain = g_strconcat(GRAD(""), results[i], NULL);
        g_autofree char *relu = g_strconcat(GRAD(" mask='relu'"), results[i], NULL);
        g_autofree char *clip = g_strconcat(GRAD(" mask='clip' lo=-0.25 hi=0.5"), results[i], NULL);
        each(0, plain);
        each(0, relu);
        each(0, clip);
    }
    for (guint i = 0; i < G_N_ELEMENTS(results); i++) {
        g_autoptr(GString) frozen = g_string_new(FROZEN(" mask='relu'"));
        g_string_append(frozen, results[i]);
        g_string_replace(frozen, " s, m, v, b", " s:f32[CC], m:f32[CC], v:f32[CC]=fill(3,0.5,1.5), b:f32[CC]", 0);
        each(0, frozen->str);
    }
}

/* Channels last from a convolution on: both passes stay there. */
static void test_last(void)
{
    check(2, "2,8,20,21",
          "%c = Conv(%x, w:f32[32,8,3,3]) pads=[1,1,1,1] %n, -, -, %q, %i = hone::BatchNormTrain(%c, s:f32[32], "
          "b:f32[32], "
          "m:f32[32], v:f32[32]) %z = Relu(%n) %o = Sin(%z) %dx, %ds, %db = hone::BatchNormGrad(%o, %c, s, %q, %i, b) "
          "mask='relu' %y = Conv(%dx, u:f32[8,32,3,3]) pads=[1,1,1,1]");
}

/* Moments of numbers far from 0 lose no more digits than the numbers have. */
static void test_far(void)
{
    check(0, "8,16,12,12",
          "%f = Add(%x, k:f32[16,1,1]=fill(1,90,100)) %y = BatchNormalization(%f, s:f32[16]=fill(1,0.5,1), "
          "b:f32[16], m:f32[16], v:f32[16]) training_mode=1");
}

/* Sums of every form, of plain elements, and of those that lie channels last. */
static void test_sumlike(void)
{
    static const char *const likes[] = { "128",      "",        "700,1",    "700,128",   "1,128",    "64,1,1,1",
                                         "1,30,1,1", "30,1,1",  "64,1,7,9", "64,30,1,1", "1,30,1,9", "63",
                                         "40,1,63",  "40,20,1", "20,63",    "1,20,1",    "40,1,1" };
    static const char *const shapes[] = { "700,128", "64,30,7,9", "40,20,63" };
    static const int of[] = { 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2 };
    for (guint i = 0; i < G_N_ELEMENTS(likes); i++) {
        g_autofree char *nodes = g_strdup_printf("%%y = hone::SumLike(%%x, l:f32[%s])", likes[i]);
        check(0, shapes[of[i]], likes[i][0] != 0 ? nodes : "%y = hone::SumLike(%x, l:f32={0})");
    }
    check(0, "3,50000", "%y = hone::SumLike(%x, l:f32={0})");
    for (guint i = 5; i < 11; i++) {
        g_autofree char *nodes =
            g_strdup_printf("%%c = Conv(%%x, w:f32[30,8,1,1]) %%y = hone::SumLike(%%c, l:f32[%s])", likes[i]);
        check(i == 8 || i == 10 ? 2 : 1, "64,8,7,9", nodes);
    }
}

static void test_rows(void)
{
    static const char *const results[] = { "%y = Neg(%dx)", "%y = Neg(%ds)", "%y = Neg(%db)" };
    for (guint i = 0; i < G_N_ELEMENTS(results); i++) {
        g_autofree char *last =
            g_strconcat("%o = Sin(%x) %dx, %ds, %db = hone::LayerNormGrad(%o, %x, s:f32[CC]) ", results[i], NULL);
        g_autofree char *two = g_strconcat("%o = Sin(%x) %dx, %ds, %db = hone::LayerNormGrad(%o, %x, s:f32[CC]) "
                                           "axis=1 centred=0 ",
                                           results[i], NULL);
        g_autoptr(GString) a = g_string_new(last), b = g_string_new(two);
        g_string_replace(a, "CC", "200", 0);
        g_string_replace(b, "CC", "20,33", 0);
        check(0, "170,200", a->str);
        check(0, "90,20,33", b->str);
    }
    each(0, "%o = Sin(%x) %y = hone::SoftmaxGrad(%o, %x) axis=-1");
    each(0, "%o = Sin(%x) %y = hone::SoftmaxGrad(%o, %x) axis=1");
    each(0, "%o = Sin(%x) %y = hone::SoftmaxGrad(%o, %x) axis=1 log=1");
    each(0, "%o = Sin(%x) %y = hone::SoftmaxGrad(%o, %x) axis=-1 log=1");
}

static void test_pools(void)
{
    static const char *const windows[] = {
        "kernel_shape=[2,2] strides=[2,2]", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]",
        "kernel_shape=[3,2] strides=[1,3] dilations=[2,1] pads=[2,0,1,1] ceil_mode=1"
    };
    for (guint i = 0; i < G_N_ELEMENTS(windows); i++)
        for (int last = 0; last < 2; last++) {
            const char *x = last ? "%c = Conv(%x, w:f32[24,8,1,1])" : "%c = Neg(%x)";
            g_autofree char *most =
                g_strdup_printf("%s %%p = MaxPool(%%c) %s %%d = Sin(%%p) %%y = hone::MaxPoolGrad(%%d, %%c, %%p) %s", x,
                                windows[i], windows[i]);
            g_autofree char *mean =
                g_strdup_printf("%s %%p = AveragePool(%%c) %s %%d = Sin(%%p) %%y = hone::PoolGrad(%%d, %%c) %s", x,
                                windows[i], windows[i]);
            check(last ? 2 : 4, "20,8,15,17", most);
            check(last ? 2 : 3, "20,8,15,17", mean);
            if (last)
                continue;
            check(0, "20,3,15,17", most);
            check(0, "20,3,15,17", mean);
        }
    static const char *const apart[] = {
        "kernel_shape=[2,2] strides=[2,2]", /* of all elements, or all but the last line */
        "kernel_shape=[2,2] strides=[2,2] pads=[1,1,1,1]",
        "kernel_shape=[2,2] strides=[2,2] pads=[1,1,0,0]",
        "kernel_shape=[2,1] strides=[3,2]",
        "kernel_shape=[2,2] strides=[3,3] dilations=[3,3]", /* with common ones after all */
        "kernel_shape=[2,2] strides=[2,2] ceil_mode=1",
        "kernel_shape=[5,7] strides=[5,7]" /* of many elements */
    };
    for (guint i = 0; i < G_N_ELEMENTS(apart); i++)
        for (int odd = 0; odd < 2; odd++) {
            g_autofree char *most = g_strdup_printf("%%c = Round(%%x) %%p = MaxPool(%%c) %s %%d = Sin(%%p) "
                                                    "%%y = hone::MaxPoolGrad(%%d, %%c, %%p) %s",
                                                    apart[i], apart[i]); /* of equal ones, too */
            check(4, odd ? "3,37,11,15" : "3,48,10,14", most);
        }
    check(2, "3,16,9,8,7",
          "%p = MaxPool(%x) kernel_shape=[2,3,2] %d = Sin(%p) "
          "%y = hone::MaxPoolGrad(%d, %x, %p) kernel_shape=[2,3,2]");
}

/* Gradients of a value with several uses: in the layout that most of them have. */
static void test_sums(void)
{
    each(0, "%a = Sin(%x) %b = Cos(%x) %y = Sum(%a, %x, %b)");
    each(0, "%a = Sin(%x) %b = Cos(%x) %y = Mean(%a, %x, %b)");
    check(2, "6,8,15,17",
          "%a = Conv(%x, v:f32[24,8,1,1]) %b = Conv(%x, w:f32[24,8,1,1]) %c = MaxPool(%a) kernel_shape=[3,3] "
          "pads=[1,1,1,1] %y = Sum(%a, %b, %c)");
}

static void test_scatter(void)
{
    check(0, "300,70", "%y = hone::ScatterAdd(%x, at:i64[21000]=fill(5,0,4000), l:f32[40,100])");
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/backward/batchnorm", test_batchnorm);
    g_test_add_func("/cpu/backward/batchnorm_grad", test_batchnorm_grad);
    g_test_add_func("/cpu/backward/last", test_last);
    g_test_add_func("/cpu/backward/far", test_far);
    g_test_add_func("/cpu/backward/sumlike", test_sumlike);
    g_test_add_func("/cpu/backward/rows", test_rows);
    g_test_add_func("/cpu/backward/pools", test_pools);
    g_test_add_func("/cpu/backward/sums", test_sums);
    g_test_add_func("/cpu/backward/scatter", test_scatter);
    return g_test_run();
}
