/*
 * Values channels last between kernels of the CUDA backend, over the emulated driver: right results, and steps that
 * bring values into another layout only where they are expected.
 */
#include "../unit/run_model.h"
#include "backends.h"
#include "cuda/core/cuda_backend.h"
#include "run/device.h"

typedef struct {
    const char *text; /* TYPE stands for the element type */
    int reorders;
    double rtol;
} Region;

static void count_reorders(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(int *)data += s->node == NULL && s->kernel != NULL && g_str_has_prefix(s->kernel->name, "cuda.reorder");
}

static const char *form; /* of convolutions, the only one; NULL: they choose */
static int parts;

static void run_region(const char *text, int reorders, double rtol, double atol)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = test_model(text);
    HnDevice *device = hn_device_new(hn_backend_cuda(0), &error);
    g_assert_no_error(error);
    HnEngine *e = hn_engine_new(m, device, NULL, &error);
    g_assert_no_error(error);
    ((HnCuda *)device->handle)->conv_form = form;
    ((HnCuda *)device->handle)->conv_parts = parts;
    HnSession *s =
        hn_session_new_on(e, &(HnSessionOptions){ .threads = 1, .prefer = "cuda.conv_last", .strict = TRUE }, &error);
    g_assert_no_error(error);
    HnSession *ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    for (int run = 0; run < 3; run++) {
        g_autoptr(GPtrArray) got = test_run(s, in);
        for (guint k = 0; k < want->len; k++)
            test_assert_close(got->pdata[k], want->pdata[k], rtol, atol, text);
    }
    int n = 0;
    hn_session_foreach_step(s, count_reorders, &n);
    if (n != reorders)
        g_error("%d reorders, not %d: %s", n, reorders, text);
    hn_session_free(s);
    hn_session_free(ref);
    hn_engine_unref(e);
    hn_device_unref(device);
    hn_model_free(m);
}

static void run_types(const char *text, int reorders)
{
    static const struct {
        const char *name;
        double rtol, atol;
    } types[] = { { "f32", 1e-4, 1e-4 }, { "f16", 1e-2, 2e-2 }, { "bf16", 6e-2, 2e-1 } };
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        g_auto(GStrv) pieces = g_strsplit(text, "TYPE", -1);
        g_autofree char *typed = g_strjoinv(types[i].name, pieces);
        run_region(typed, reorders, types[i].rtol, types[i].atol);
    }
}

/* One after the other: x is brought there, and the last one makes plain values. */
static void test_chain(void)
{
    run_types("opset 17 graph g(%x:TYPE[2,3,9,7]) -> (%y) { %a = Conv(%x, w:TYPE[24,3,3,3], b:TYPE[24]) pads=[1,1,1,1] "
              "%r = Relu(%a) %y = Conv(%r, v:TYPE[12,24,1,1]) }",
              1);
    run_types("opset 17 graph g(%x:TYPE[1,17,11]) -> (%y) { %a = Conv(%x, w:TYPE[10,17,3]) pads=[1,1] dilations=[1] "
              "%y = Conv(%a, v:TYPE[40,10,2]) strides=[2] }",
              1);
    run_types("opset 17 graph g(%x:TYPE[2,20,9,10]) -> (%y) { %a = Conv(%x, w:TYPE[70,20,3,2], b:TYPE[70]) "
              "pads=[2,1,0,1] strides=[2,1] dilations=[1,2] %y = Conv(%a, v:TYPE[9,70,5,3]) pads=[2,1,2,1] }",
              1);
}

/* What is added and multiplied lies there, too, or is a number for each channel. */
static void test_residual(void)
{
    run_types("opset 17 graph g(%x:TYPE[1,16,8,9]) -> (%y) { %a = Conv(%x, w:TYPE[16,16,3,3], bias:TYPE[16]) "
              "pads=[1,1,1,1] %s = Conv(%x, u:TYPE[16,16,1,1]) %b = Add(%a, %s) %c = Mul(%b, k:TYPE[16,1,1]) "
              "%d = Clip(%c, lo:TYPE[]={-0.5}, hi:TYPE[]={0.75}) %y = Conv(%d, v:TYPE[8,16,1,1]) }",
              1);
    run_types("opset 17 graph g(%x:TYPE[1,12,8,9]) -> (%y) { %a = Conv(%x, w:TYPE[24,12,3,3], bias:TYPE[24]) "
              "pads=[1,1,1,1] %s = Conv(%x, u:TYPE[24,12,1,1]) %b = Add(%a, %s) %c = Tanh(%b) %d = Mul(%c, %s) "
              "%y = Conv(%d, v:TYPE[8,24,1,1]) }",
              1);
}

/* Element-wise nodes in between: of one shape, of a number for each channel of an image, of a mask. */
static void test_elements(void)
{
    run_types("opset 17 graph g(%x:TYPE[2,16,5,4], %g:TYPE[2,16,1,1], %m:TYPE[2,1,5,4]) -> (%y) { "
              "%a = Conv(%x, w:TYPE[16,16,1,1]) %b = Tanh(%a) %c = Mul(%b, %g) %d = Mul(%c, %m) %e = Softplus(%d) "
              "%f = Add(%e, %b) %y = Conv(%f, v:TYPE[8,16,1,1]) }",
              1);
    run_types("opset 17 graph g(%x:TYPE[2,24,5,4]) -> (%y, %b) { %a = Conv(%x, w:TYPE[24,24,1,1]) %b = Exp(%a) "
              "%c = Log(%b) %y = Conv(%c, v:TYPE[8,24,1,1]) }",
              2);
    /* what is behind channels stays 0 */
    run_region("opset 17 graph g(%x:f16[2,24,5,4]) -> (%y) { %a = Conv(%x, w:f16[20,24,1,1]) %b = Reciprocal(%a) "
               "%c = Add(%b, %a) %d = Clip(%c, lo:f16[]={-2}, hi:f16[]={2}) %y = Conv(%d, v:f16[8,20,1,1]) }",
               3, 1e-2, 2e-2);
}

/* Terms that several blocks share, and tiles of all forms. */
static void test_forms(void)
{
    static const char *const forms[] = { "conv_last_128x128",
                                         "conv_last_128x64",
                                         "conv_last_128x32",
                                         "conv_last_64x64",
                                         "conv_last_64x32",
                                         "conv_last_group_128x256",
                                         "conv_last_group_128x128",
                                         "conv_last_group_128x64",
                                         "conv_last_group_64x128",
                                         "conv_last_group_64x64",
                                         NULL };
    for (int i = 0; forms[i] != NULL; i++)
        for (parts = 1; parts <= 3; parts += 2) {
            form = forms[i];
            run_types("opset 17 graph g(%x:TYPE[3,40,7,7]) -> (%y) { %a = Conv(%x, w:TYPE[136,40,3,3], b:TYPE[136]) "
                      "pads=[1,1,1,1] %r = HardSwish(%a) %y = Conv(%r, v:TYPE[8,136,1,1]) }",
                      1);
        }
    form = NULL;
    run_types("opset 17 graph g(%x:TYPE[1,256,3,3]) -> (%y) { %a = Conv(%x, w:TYPE[40,256,3,3], b:TYPE[40]) "
              "pads=[1,1,1,1] %r = Relu(%a) %y = Conv(%r, v:TYPE[8,40,3,3]) pads=[1,1,1,1] }",
              1);
    run_types("opset 17 graph g(%x:TYPE[1,256,3,3]) -> (%y) { %y = Conv(%x, w:TYPE[40,256,3,3], b:TYPE[40]) "
              "pads=[1,1,1,1] }",
              1);
}

/* Sums that tensor cores cannot make of f32. */
static void test_large_numbers(void)
{
    run_region("opset 17 graph g(%x:f32[1,4,2,2]) -> (%y) { %a = Mul(%x, k:f32[]={3e38}) %b = Conv(%a, "
               "w:f32[8,4,1,1]) %c = Mul(%b, j:f32[]={1e-38}) %y = Conv(%c, v:f32[8,8,1,1]) }",
               1, 1e-4, 1e-3);
}

/* Pools, means of planes, and nearest pixels. */
static void test_pools(void)
{
    run_types("opset 17 graph g(%x:TYPE[2,16,9,8]) -> (%y) { %a = Conv(%x, w:TYPE[24,16,1,1]) %b = MaxPool(%a) "
              "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] %c = AveragePool(%b) kernel_shape=[2,3] pads=[0,1,1,0] "
              "count_include_pad=1 %d = Resize(%c, -, r:f32[4]={1,1,2,3}) mode='nearest' "
              "%e = Conv(%d, v:TYPE[24,24,1,1]) %f = GlobalAveragePool(%d) %g = Conv(%f, u:TYPE[24,24,1,1]) "
              "%y = Mul(%e, %g) }",
              1);
    run_types("opset 17 graph g(%x:TYPE[2,16,5,6]) -> (%y) { %a = Conv(%x, w:TYPE[16,16,1,1]) "
              "%b = Resize(%a, -, r:f32[4]={1,1,2,2}) mode='linear' %c = Resize(%b, -, q:f32[4]={1,1,0.7,1.5}) "
              "mode='cubic' %y = Conv(%c, v:TYPE[8,16,1,1]) }",
              1);
    run_types("opset 18 graph g(%x:TYPE[2,16,20,17]) -> (%y) { %a = Conv(%x, w:TYPE[72,16,1,1]) %b = MaxPool(%a) "
              "kernel_shape=[2,2] dilations=[2,1] %s = ReduceMean(%b, axes:i64[2]={2,3}) %g = Sigmoid(%s) "
              "%h = Mul(%b, %g) %e = Conv(%h, v:TYPE[24,72,1,1]) %m = GlobalMaxPool(%h) %f = Add(%e, k:TYPE[24,1,1]) "
              "%n = Conv(%m, u:TYPE[24,72,1,1]) %y = Mul(%f, %n) }",
              1);
}

/* Depthwise convolutions of all forms, with what follows them. */
static void test_depthwise(void)
{
    static const char *const windows[] = {
        "[16,1,3,3]) pads=[1,1,1,1]", "[16,1,3,3]) pads=[1,0,1,0] strides=[2,2]",
        "[16,1,5,5]) pads=[2,2,2,2]", "[16,1,5,5]) pads=[2,2,2,2] strides=[2,2]",
        "[16,1,7,7]) pads=[3,3,3,3]", "[16,1,4,2]) pads=[3,0,0,1] dilations=[1,2] strides=[1,3]"
    };
    for (guint i = 0; i < G_N_ELEMENTS(windows); i++) {
        g_autofree char *text = g_strconcat(
            "opset 17 graph g(%x:TYPE[2,8,9,13]) -> (%y) { %a = Conv(%x, w:TYPE[16,8,1,1]) %b = Conv(%a, d:TYPE",
            windows[i], " group=16 %c = Relu(%b) %y = Conv(%c, v:TYPE[8,16,1,1]) }", NULL);
        run_types(text, 1);
    }
    run_types("opset 17 graph g(%x:TYPE[1,20,5,6]) -> (%y) { %a = Conv(%x, w:TYPE[20,20,1,1]) %b = Conv(%a, "
              "d:TYPE[20,1,3,3], k:TYPE[20]) pads=[1,1,1,1] group=20 %c = Add(%b, %a) "
              "%y = Conv(%c, v:TYPE[8,20,1,1]) }",
              1);
}

static void count_joined(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    for (int i = 0; i < s->n_in; i++)
        *(int *)data += s->in[i].joined;
    for (int k = 0; k < s->n_out; k++)
        *(int *)data += s->out[k].joined;
}

/* Channels side by side: written and read in place, but for what an element-wise step touches. */
static void test_joins(void)
{
    static const struct {
        const char *text;
        int reorders, joined;
    } joins[] = {
        { "opset 17 graph g(%x:f16[2,16,5,6]) -> (%y) { %a = Conv(%x, w:f16[32,16,1,1]) %b, %c = Split(%a) axis=1 "
          "%d = Conv(%c, u:f16[16,16,3,3]) pads=[1,1,1,1] %m = MaxPool(%d) kernel_shape=[3,3] pads=[1,1,1,1] "
          "%e = Concat(%b, %c, %d, %m) axis=1 %y = Conv(%e, v:f16[8,64,1,1]) }",
          1, 4 },
        { "opset 17 graph g(%x:f16[2,16,5,6]) -> (%y) { %a = Conv(%x, w:f16[32,16,1,1]) %t = Tanh(%a) "
          "%b = Slice(%t, f:i64[1]={8}, l:i64[1]={24}, i:i64[1]={1}) %d = Conv(%b, u:f16[16,16,3,3]) pads=[1,1,1,1] "
          "%e = Concat(%t, %d, %b) axis=1 %y = Conv(%e, v:f16[8,64,1,1]) }",
          1, 2 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(joins); i++) {
        HnModel *m = test_model(joins[i].text);
        HnSession *s = test_session(m, hn_backend_cuda(0),
                                    &(HnSessionOptions){ .threads = 1, .prefer = "cuda.conv_last", .strict = TRUE });
        g_autoptr(GPtrArray) in = test_inputs(s, 3), out = test_run(s, in);
        int joined = 0;
        hn_session_foreach_step(s, count_joined, &joined);
        g_assert_cmpint(joined, ==, joins[i].joined);
        hn_session_free(s);
        hn_model_free(m);
        run_region(joins[i].text, joins[i].reorders, 1e-2, 2e-2);
    }
}

/* Transposes that only say how values lie: nothing is done for them, nor for what they are made of. */
static void test_turned(void)
{
    static const char *const texts[] = {
        "opset 17 graph g(%x:TYPE[2,16,5,6]) -> (%y, %t) { %a = Conv(%x, w:TYPE[24,16,1,1]) %b = Transpose(%a) "
        "perm=[0,2,3,1] %c = LayerNormalization(%b, s:TYPE[24]) axis=-1 %t = MatMul(%c, m:TYPE[24,24]) "
        "%d = Transpose(%t) perm=[0,3,1,2] %e = Add(%d, %a) %f = Conv(%e, u:TYPE[24,1,7,7]) pads=[3,3,3,3] group=24 "
        "%y = Conv(%f, v:TYPE[8,24,1,1]) }",
        "opset 17 graph g(%x:TYPE[2,5,6,16]) -> (%y) { %a = Softmax(%x) axis=-1 %b = Transpose(%a) perm=[0,3,1,2] "
        "%y = Conv(%b, v:TYPE[8,16,3,3]) }",
    };
    run_types(texts[0], 1);
    run_types(texts[1], 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/last/chain", test_chain);
    g_test_add_func("/cuda/last/residual", test_residual);
    g_test_add_func("/cuda/last/elements", test_elements);
    g_test_add_func("/cuda/last/forms", test_forms);
    g_test_add_func("/cuda/last/pools", test_pools);
    g_test_add_func("/cuda/last/depthwise", test_depthwise);
    g_test_add_func("/cuda/last/joins", test_joins);
    g_test_add_func("/cuda/last/turned", test_turned);
    g_test_add_func("/cuda/last/large-numbers", test_large_numbers);
    return g_test_run();
}
