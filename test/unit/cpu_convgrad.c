/*
 * Gradients of convolutions: what kernels make of them is near ref, and the same to the last bit for any number of
 * threads.
 */
#include <string.h>

#include "run_model.h"

typedef struct {
    const char *text, *kernel;
} Layer;

static void find_kernel(const HnStep *s, int depth, gpointer data)
{
    const char **name = data;
    (void)depth;
    if (s->kernel != NULL && strncmp(s->kernel->name, *name, strlen(*name)) == 0)
        *name = "";
}

static void judge(const Layer *l)
{
    g_autofree char *text = g_strdup_printf("opset 17 opset hone 1 graph g(%s }", l->text);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 7), want = test_run(ref, in), first = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        const char *name = l->kernel;
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < got->len; i++) {
                test_assert_close(got->pdata[i], want->pdata[i], 1e-4, 1e-3, text);
                if (first != NULL)
                    test_assert_close(got->pdata[i], first->pdata[i], 0, 0, text);
            }
            if (first == NULL) {
                first = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
                for (guint i = 0; i < got->len; i++)
                    g_ptr_array_add(first, hn_tensor_copy(got->pdata[i], NULL, NULL));
            }
        }
        hn_session_foreach_step(s, find_kernel, &name);
        g_assert_cmpstr(name, ==, "");
    }
}

#define WEIGHTS(x, dy, w, attrs) \
    "%x:f32[" x "], %d:f32[" dy "]) -> (%dw, %db) { %dw, %db = hone::ConvWeightGrad(%x, %d, w:f32[" w "]) " attrs

/* The same where half of dy's pixels are 0, as z of one channel says. */
#define SOME_WEIGHTS(x, dy, z, w, attrs)                                                                          \
    "%x:f32[" x "], %a:f32[" dy "], %z:f32[" z "]) -> (%dw, %db) { %r = Relu(%z) %s = Sign(%r) %d = Mul(%a, %s) " \
    "%dw, %db = hone::ConvWeightGrad(%x, %d, w:f32[" w "]) " attrs

/* Sums that are cut into parts, and such that threads share by tiles. */
static void test_weights(void)
{
    static const Layer layers[] = {
        { WEIGHTS("8,16,20,20", "8,16,20,20", "16,16,3,3", "pads=[1,1,1,1]"), "cpu.convweightgrad_winograd" },
        { WEIGHTS("5,40,13,18", "5,24,13,18", "24,40,3,3", "pads=[1,1,1,1]"), "cpu.convweightgrad_winograd" },
        { WEIGHTS("3,48,10,9", "3,70,9,11", "70,48,3,3", "pads=[0,2,1,2]"), "cpu.convweightgrad_winograd" },
        { WEIGHTS("64,64,4,4", "64,64,4,4", "64,64,3,3", "pads=[1,1,1,1]"), "cpu.convweightgrad_winograd" },
        { WEIGHTS("8,24,20,20", "8,64,20,20", "64,24,3,3", "pads=[1,1,1,1]"), "cpu.convweightgrad_winograd" },
        { WEIGHTS("8,16,20,20", "8,24,16,18", "24,16,3,3", "dilations=[2,1]"), "cpu.convweightgrad" },
        { WEIGHTS("8,3,40,40", "8,16,20,20", "16,3,3,3", "strides=[2,2] pads=[1,1,1,1]"), "cpu.convweightgrad" },
        { WEIGHTS("4,64,4,4", "4,96,4,4", "96,64,3,3", "pads=[1,1,1,1]"), "cpu.convweightgrad" },
        { WEIGHTS("8,24,16,16", "8,40,16,16", "40,24,1,1", ""), "cpu.convweightgrad" },
        { WEIGHTS("8,32,9,9", "8,64,5,5", "64,8,3,3", "group=4 strides=[2,2] pads=[1,1,1,1]"), "cpu.convweightgrad" },
        { WEIGHTS("8,48,24,24", "8,48,24,24", "48,1,3,3", "group=48 pads=[1,1,1,1]"), "cpu.convweightgrad_depthwise" },
        { WEIGHTS("1,200,5,5", "1,200,5,5", "200,1,5,5", "group=200 pads=[2,2,2,2]"), "cpu.convweightgrad_depthwise" },
        { WEIGHTS("2,16,5000", "2,24,2500", "24,16,5", "strides=[2] pads=[2,2]"), "cpu.convweightgrad" },
        { WEIGHTS("4,40,130", "4,60,128", "60,40,5", "pads=[1,1] few=1"), "cpu.convweightgrad_few" },
        { SOME_WEIGHTS("8,16,20,20", "8,24,16,18", "8,1,16,18", "24,16,3,3", "dilations=[2,1]"), "cpu.convweightgrad" },
        { SOME_WEIGHTS("8,24,16,16", "8,40,16,16", "8,1,16,16", "40,24,1,1", ""), "cpu.convweightgrad" },
        { SOME_WEIGHTS("2,16,5000", "2,24,2500", "1,1,2500", "24,16,5", "strides=[2] pads=[2,2]"),
          "cpu.convweightgrad" },
        { SOME_WEIGHTS("2,9,7,8,9", "2,12,4,6,9", "2,1,4,6,9", "12,9,3,3,3", "strides=[2,1,1] pads=[1,0,1,1,0,1]"),
          "cpu.convweightgrad" },
        { SOME_WEIGHTS("8,32,9,9", "8,64,5,5", "8,1,5,5", "64,8,3,3", "group=4 strides=[2,2] pads=[1,1,1,1]"),
          "cpu.convweightgrad" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(layers); i++)
        judge(&layers[i]);
}

#define SOURCE(dy, w, attrs) "%d:f32[" dy "]) -> (%x) { %x = ConvTranspose(%d, w:f32[" w "]) " attrs

/* Of stride 1 kernels of convolutions, with their weights turned. */
static void test_source(void)
{
    static const Layer layers[] = {
        { SOURCE("8,32,20,20", "32,48,3,3", "pads=[1,1,1,1]"), "cpu.winograd" },
        { SOURCE("2,40,13,18", "40,24,3,3", "pads=[0,2,1,1]"), "cpu.winograd" },
        { SOURCE("3,64,10,9", "64,36,5,3", "pads=[2,1,2,1]"), "cpu.conv_gemm" },
        { SOURCE("3,64,10,9", "64,36,3,3", "dilations=[2,1] pads=[3,3,0,1]"), "cpu.winograd" },
        { SOURCE("4,24,16,16", "24,96,1,1", ""), "cpu.conv_gemm" },
        { SOURCE("4,32,9,9", "32,12,3,3", "group=4 pads=[1,1,1,1]"), "cpu.conv_gemm" },
        { SOURCE("2,16,9,8,7", "16,24,3,2,3", "pads=[1,1,1,1,0,1]"), "cpu.conv_gemm" },
        { SOURCE("4,32,9,9", "32,24,3,3", "strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]"),
          "cpu.convtranspose_gemm" },
        { SOURCE("2,24,9,7", "24,20,4,5", "strides=[3,2] dilations=[2,3] pads=[2,5,1,3]"), "cpu.convtranspose_gemm" },
        { SOURCE("2,16,5,6,250", "16,8,2,3,3", "strides=[1,3,2] pads=[0,1,1,1,0,2]"), "cpu.convtranspose_gemm" },
        { SOURCE("4,60,128", "60,40,5", "pads=[1,1] few=1"), "cpu.convsourcegrad_few" },
        { SOURCE("4,48,24,24", "48,1,3,3", "group=48 pads=[1,1,1,1]"), "cpu.depthwise" },
        { SOURCE("4,48,12,12", "48,1,3,3", "group=48 strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]"),
          "cpu.depthwise_transposed" },
        { SOURCE("2,70,9,11", "70,1,5,4", "group=70 strides=[3,2] dilations=[2,1] pads=[1,2,4,0]"),
          "cpu.depthwise_transposed" },
        { SOURCE("4,36,19,41", "36,1,3,5", "group=36 strides=[1,4] dilations=[1,6] pads=[1,9,1,3]"),
          "cpu.depthwise_transposed" },
        { SOURCE("9,24,33,33", "24,1,1,2", "group=24 strides=[3,3]"), "cpu.depthwise_transposed" },
        { SOURCE("2,70,17,19", "70,1,5,3", "group=70 pads=[0,3,4,1]"), "cpu.depthwise" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(layers); i++)
        judge(&layers[i]);
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu_convgrad/weights", test_weights);
    g_test_add_func("/cpu_convgrad/source", test_source);
    return g_test_run();
}
