/*
 * Values that lie channels last: each operator in a chain behind a depthwise convolution, against ref. No step leaves
 * the layout, and none is oneDNN's.
 */
#include <string.h>

#include "base/cpu.h"
#include "run_model.h"

typedef struct {
    GString *kernels;
    gboolean foreign;
} Seen;

static void see(const HnStep *s, int depth, gpointer data)
{
    Seen *seen = data;
    (void)depth;
    const char *name = s->kernel != NULL ? s->kernel->name : "ref";
    g_string_append_printf(seen->kernels, "%s%s", seen->kernels->len > 0 ? " " : "", name);
    seen->foreign = seen->foreign || strcmp(name, "ref") == 0 || g_str_has_prefix(name, "onednn");
}

/* nodes: from %c, f32[2,c,h,w] channels last, to %y; at most so many reorder steps. */
static void last(int reorders, int c, int h, int w, const char *nodes)
{
    g_autoptr(GString) body = g_string_new(nodes);
    g_autofree char *channels = g_strdup_printf("%d", c), *half = g_strdup_printf("%d", c / 2);
    g_autofree char *rest = g_strdup_printf("%d", c - c / 2), *low = g_strdup_printf("%d", h - 4);
    g_string_replace(body, "CC", channels, 0);
    g_string_replace(body, "HALF", half, 0);
    g_string_replace(body, "REST", rest, 0);
    g_string_replace(body, "LOW", low, 0);
    g_autofree char *text =
        g_strdup_printf("opset 18 graph g(%%x:f32[2,%d,%d,%d]) -> (%%y) { %%c = Conv(%%x, wc:f32[%d,1,3,3], "
                        "bias:f32[%d]) group=%d pads=[1,1,1,1] %s }",
                        c, h, w, c, c, c, body->str);
    for (int threads = 1; threads <= 2; threads++) {
        TestCount n = test_preferring(NULL, text, threads, 1e-4, 1e-4);
        g_autoptr(HnModel) m = test_model(text);
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        g_autoptr(GPtrArray) out = test_run(s, in);
        Seen seen = { g_string_new(NULL), FALSE };
        hn_session_foreach_step(s, see, &seen);
        if (n.reorders > reorders || seen.foreign) {
            g_test_message("%s: %s", seen.kernels->str, text);
            g_test_fail();
        }
        g_string_free(seen.kernels, TRUE);
    }
}

/* Channels that fill vectors, that do not, that are fewer than a vector has. */
static void each(int reorders, const char *nodes)
{
    last(reorders, 32, 15, 14, nodes);
    last(reorders, 21, 15, 17, nodes);
    last(reorders, 8, 31, 30, nodes);
}

static void test_depthwise(void)
{
    each(2, "%y = Conv(%c, v:f32[CC,1,3,3]) group=CC strides=[2,2] pads=[1,1,0,0]");
    each(2, "%d = Conv(%c, v:f32[CC,1,5,5], u:f32[CC]) group=CC pads=[2,2,2,2] %n = BatchNormalization(%d, s:f32[CC], "
            "o:f32[CC], m:f32[CC], t:f32[CC]=fill(3,0.5,1.5)) %y = Clip(%n, lo:f32={0}, hi:f32={0.5})");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %a = Add(%d, %c) %y = Relu(%a)");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %r = Relu(%d) %a = Mul(%r, k:f32[CC,1,1]) "
            "%b = Add(%c, %a) %y = HardSwish(%b)");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %y = Sigmoid(%d)");
}

/* Results of few channels are plain: one reorder of the source in front, no other. */
static void test_transposed(void)
{
    last(1, 64, 15, 14,
         "%t = ConvTranspose(%c, v:f32[CC,2,4,4], u:f32[2]) strides=[2,2] pads=[1,1,1,1] %y = Sigmoid(%t)");
    last(1, 96, 9, 17,
         "%a, %b = Split(%c, n:i64[2]={HALF,REST}) axis=1 %p = Relu(%b) "
         "%y = ConvTranspose(%p, v:f32[REST,1,2,2]) strides=[2,2]");
}

/* So are those of convolutions whose lanes are columns. */
static void test_few(void)
{
    last(1, 64, 15, 14, "%y = Conv(%c, v:f32[1,CC,5,5], u:f32[1]) pads=[2,2,2,2]");
    last(1, 21, 25, 37, "%y = Conv(%c, v:f32[1,CC,7,7]) pads=[2,0,11,3] dilations=[2,3] strides=[2,1]");
    last(1, 96, 19, 33,
         "%a, %b = Split(%c, n:i64[2]={HALF,REST}) axis=1 %p = Relu(%b) "
         "%d = Conv(%p, v:f32[1,REST,7,7], u:f32[1]) pads=[3,3,3,3] %y = Relu(%d)");
    if (hn_cpu_isa() < HN_ISA_AVX512) /* with fewer lanes Winograd's products are fewer */
        return;
    last(1, 48, 37, 40, "%d = Conv(%c, v:f32[3,CC,3,3], u:f32[3]) pads=[1,1,1,1] %y = Relu(%d)");
    last(1, 160, 12, 33, "%y = Conv(%c, v:f32[1,CC,5,5]) pads=[2,2,2,2]");
}

static void test_pools(void)
{
    each(2, "%y = MaxPool(%c) kernel_shape=[2,2] strides=[2,2]");
    each(2, "%y = MaxPool(%c) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1");
    each(2, "%y = MaxPool(%c) kernel_shape=[5,5] pads=[2,2,2,2]");
    each(2, "%y = MaxPool(%c) kernel_shape=[3,2] dilations=[2,3] strides=[1,2]");
    each(2, "%y = AveragePool(%c) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1");
    each(2, "%y = AveragePool(%c) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1");
    each(2, "%y = AveragePool(%c) kernel_shape=[4,1] pads=[5,0,0,0]");
    each(1, "%y = GlobalAveragePool(%c)");
    each(1, "%y = GlobalMaxPool(%c)");
    last(1, 300, 9, 8, "%y = GlobalAveragePool(%c)");
    last(1, 5, 64, 63, "%y = GlobalAveragePool(%c)");
}

static void test_concat(void)
{
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %e = Relu(%c) %y = Concat(%c, %d, %e) axis=1");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %j = Concat(%d, %c) axis=1 "
            "%p = MaxPool(%j) kernel_shape=[2,2] %y = Concat(%p, %p) axis=-3");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %y = Concat(%c, %d, %c) axis=2");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %y = Concat(%c, %d) axis=0");
}

static void test_split(void)
{
    each(2,
         "%a, %b = Split(%c, n:i64[2]={HALF,REST}) axis=1 %d = Conv(%b, v:f32[REST,1,3,3]) group=REST pads=[1,1,1,1] "
         "%p = Sigmoid(%a) %y = Concat(%d, %p) axis=1");
    each(2, "%y = Slice(%c, f:i64[1]={1}, t:i64[1]={5}, ax:i64[1]={1})");
    each(2, "%y = Slice(%c, f:i64[1]={0}, t:i64[1]={99}, ax:i64[1]={1}, s:i64[1]={2})");
    each(2, "%y = Slice(%c, f:i64[1]={1}, t:i64[1]={99}, ax:i64[1]={1}, s:i64[1]={2})");
    each(2, "%y = Slice(%c, f:i64[1]={-1}, t:i64[1]={-99}, ax:i64[1]={1}, s:i64[1]={-3})");
    each(2, "%y = Slice(%c, f:i64[3]={0,2,1}, t:i64[3]={4,9,-2}, ax:i64[3]={1,2,3}, s:i64[3]={1,3,1})");
    each(2, "%y = Gather(%c, i:i64[3]={1,3,5}) axis=1");
    each(2, "%y = Gather(%c, i:i64[2]={4,5}) axis=1");
    each(2, "%a, %b = Split(%c, n:i64[2]={4,LOW}) axis=2 %y = Concat(%b, %a) axis=2");
}

static void test_elements(void)
{
    each(2, "%y = Tanh(%c)");
    each(2, "%y = Add(%c, k:f32[CC,1,1])");
    each(2, "%y = Sub(k:f32[2,CC,1,1], %c)");
    each(2, "%y = Div(%c, k:f32={3})");
    each(2, "%g = GlobalAveragePool(%c) %s = Sigmoid(%g) %y = Mul(%c, %s)");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %e = MaxPool(%c) kernel_shape=[3,3] pads=[1,1,1,1] "
            "%y = Sub(%d, %e)");
    each(2, "%n = Tanh(%c) %y = BatchNormalization(%n, s:f32[CC], o:f32[CC], m:f32[CC], t:f32[CC]=fill(3,0.5,1.5))");
    each(2, "%n = Tanh(%c) %y = Softmax(%n) axis=1");
    each(2, "%n = Tanh(%c) %y = LogSoftmax(%n) axis=-3");
}

static void test_shapes(void)
{
    each(2, "%y = Resize(%c, -, z:f32[4]={1,1,2,2}) mode='nearest'");
    each(2, "%y = Resize(%c, -, z:f32[4]={1,1,2.5,0.5}) mode='nearest'");
    each(2, "%y = Resize(%c, -, z:f32[4]={1,1,2,2}) mode='linear'");
    each(2, "%y = Resize(%c, -, z:f32[4]={1,1,0.6,1.3}) mode='cubic'");
    each(2, "%y = Pad(%c, p:i64[8]={0,0,1,2,0,0,3,0}, k:f32={2})");
    each(2, "%y = Pad(%c, p:i64[8]={0,1,1,2,0,3,-3,0}) mode='edge'");
    each(1, "%y = ReduceMean(%c, ax:i64[2]={2,3})");
    each(1, "%y = ReduceSum(%c, ax:i64[2]={2,3}) keepdims=0");
    each(1, "%y = ReduceMean(%c, ax:i64[1]={1})");
    each(1, "%y = ReduceMax(%c, ax:i64[1]={1}) keepdims=0");
    each(1, "%y = ReduceMax(%c, ax:i64[2]={2,3})");
    each(1, "%y = ReduceMin(%c, ax:i64[3]={0,2,3}) keepdims=0");
    each(1, "%y = ReduceL2(%c)");
    each(1, "%y = ReduceLogSumExp(%c, ax:i64[3]={0,2,-1})");
    each(2, "%y = ReduceMax(%c, ax:i64[1]={2})");
    each(2, "%y = ReduceMin(%c, ax:i64[1]={-1}) keepdims=0");
    each(2, "%y = ReduceMax(%c, ax:i64[2]={0,2})");
    each(2, "%r = ReduceMax(%c, ax:i64[1]={3}) keepdims=0 %y = Conv(%r, v:f32[CC,1,3]) group=CC pads=[1,1]");
    last(1, 96, 40, 40, "%y = ReduceLogSumExp(%c, ax:i64[3]={0,2,3})");
    last(2, 32, 14, 12, "%d = DepthToSpace(%c) blocksize=2 %y = SpaceToDepth(%d) blocksize=2");
    last(2, 32, 14, 12, "%d = DepthToSpace(%c) blocksize=4 mode='CRD' %y = SpaceToDepth(%d) blocksize=2");
    last(2, 36, 15, 12, "%y = DepthToSpace(%c) blocksize=3");
}

static void test_norms(void)
{
    each(2, "%y = InstanceNormalization(%c, s:f32[CC], o:f32[CC])");
    last(2, 32, 33, 34, "%y = GroupNormalization(%c, s:f32[8], o:f32[8]) num_groups=8");
    last(2, 21, 15, 17, "%y = GroupNormalization(%c, s:f32[1], o:f32[1]) num_groups=1");
    last(2, 96, 7, 5, "%y = GroupNormalization(%c, s:f32[6], o:f32[6]) num_groups=6");
    last(2, 24, 40, 41,
         "%r = Reshape(%c, g:i64[3]={0,4,-1}) %n = InstanceNormalization(%r, s:f32[4]={1,1,1,1}, "
         "o:f32[4]={0,0,0,0}) %b = Reshape(%n, v:i64[4]={2,24,40,41}) %m = Mul(%b, f:f32[24,1,1]) "
         "%y = Add(%m, t:f32[24,1,1])");
}

/* Pixels under other dims stay channels last, whoever reads them; a view's source has no pitch. */
static void test_views(void)
{
    each(1, "%r = Reshape(%c, s:i64[3]={2,CC,-1}) %y = Transpose(%r) perm=[0,2,1]");
    each(2, "%r = Reshape(%c, s:i64[3]={2,CC,-1}) %t = Transpose(%r) perm=[0,2,1] %e = Tanh(%t) "
            "%u = Transpose(%e) perm=[0,2,1] %q = Reshape(%u, v:i64[4]={2,CC,-1,1}) "
            "%y = Conv(%q, v4:f32[CC,1,3,1]) group=CC pads=[1,0,1,0]");
    each(2, "%u = Unsqueeze(%c, ax:i64[1]={4}) %e = Relu(%u) %q = Squeeze(%e, ax2:i64[1]={4}) "
            "%y = MaxPool(%q) kernel_shape=[2,2]");
    each(2, "%r = Reshape(%c, s:i64[3]={2,CC,-1}) %y = Add(%r, k:f32[CC,1])");
    each(2, "%a, %b = Split(%c, n:i64[2]={HALF,REST}) axis=1 %r = Reshape(%b, s:i64[3]={2,REST,-1}) "
            "%t = Transpose(%r) perm=[0,2,1] %e = Tanh(%t) %u = Transpose(%e) perm=[0,2,1] "
            "%q = ReduceMax(%u, ax:i64[1]={2}) keepdims=1 %w = Unsqueeze(%q, ax2:i64[1]={3}) %o = Mul(%b, %w) "
            "%y = Concat(%a, %o) axis=1");
    each(2, "%d = Conv(%c, v:f32[CC,1,3,3]) group=CC pads=[1,1,1,1] %r = Reshape(%d, s:i64[3]={2,CC,-1}) "
            "%m = ReduceMax(%r, ax:i64[1]={2}) %w = Unsqueeze(%m, ax2:i64[1]={3}) %j = Concat(%d, %c) axis=1 "
            "%k = Concat(%w, %w) axis=1 %y = Mul(%j, %k)");
    each(3, "%r = Reshape(%c, s:i64[3]={2,CC,-1}) %t = Transpose(%r) perm=[1,0,2] %e = ReduceSum(%t, ax:i64[1]={1}) "
            "keepdims=0 "
            "%y = Add(%r, %e)");
}

/* Channels that are shuffled and parted stay last: each part is a slice with steps. */
static void test_shuffle(void)
{
    last(2, 32, 15, 14,
         "%r = Reshape(%c, s:i64[3]={32,2,210}) %t = Transpose(%r) perm=[1,0,2] %q = Reshape(%t, "
         "u:i64[5]={2,2,16,15,14}) "
         "%o = Gather(%q, n1:i64={1}) axis=0 %e = Gather(%q, n0:i64={0}) axis=0 "
         "%d = Conv(%o, v:f32[16,1,3,3]) group=16 pads=[1,1,1,1] %y = Concat(%e, %d) axis=1");
    last(2, 21, 15, 17,
         "%r = Reshape(%c, s:i64[3]={14,3,255}) %t = Transpose(%r) perm=[1,0,2] %q = Reshape(%t, "
         "u:i64[5]={3,2,7,15,17}) "
         "%o = Gather(%q, n1:i64={-1}) axis=0 %e = Gather(%q, n0:i64[1]={0}) axis=0 %f = Reshape(%e, "
         "z:i64[4]={2,7,15,17}) %y = Concat(%f, %o) axis=1");
    last(2, 21, 15, 17,
         "%r = Reshape(%c, s:i64[3]={14,3,255}) %t = Transpose(%r) perm=[1,0,2] %q = Reshape(%t, "
         "u:i64[5]={3,2,7,15,17}) "
         "%o = Gather(%q, n1:i64={-1}) axis=0 %e = Gather(%q, n0:i64={0}) axis=0 %y = Add(%e, %o)");
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/last/depthwise", test_depthwise);
    g_test_add_func("/last/transposed", test_transposed);
    g_test_add_func("/last/few", test_few);
    g_test_add_func("/last/pools", test_pools);
    g_test_add_func("/last/concat", test_concat);
    g_test_add_func("/last/split", test_split);
    g_test_add_func("/last/elements", test_elements);
    g_test_add_func("/last/shapes", test_shapes);
    g_test_add_func("/last/norms", test_norms);
    g_test_add_func("/last/views", test_views);
    g_test_add_func("/last/shuffle", test_shuffle);
    return g_test_run();
}
