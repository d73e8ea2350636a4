/*
 * A batch of 1 that becomes free (HnOp.batch, hn_free_batch()): models as text, which hn_face_check() holds against
 * single runs with 1, 3 and 8 samples; and those in which a node stands in the way, by the words that name it.
 */
#include <string.h>

#include "export/face.h"
#include "run_model.h"

typedef struct {
    const char *name, *text;
    const char *free; /* "x:0 h:1"; the dimension is called B where nothing else is said */
    const char *want; /* types of the outputs, or what the error says */
} Case;

static HnFaceOptions *options_of(const char *free)
{
    HnFaceOptions *o = hn_face_options_new();
    g_auto(GStrv) all = g_strsplit(free, " ", -1);
    for (char **t = all; *t != NULL; t++) {
        HnFaceFree *f = g_new0(HnFaceFree, 1);
        char *colon = strrchr(*t, ':'), *equals = strchr(*t, '=');
        *f = (HnFaceFree){ g_strndup(*t, (gsize)(colon - *t)), (int)g_ascii_strtoll(colon + 1, NULL, 10),
                           g_strdup(equals != NULL ? equals + 1 : "B"), NULL };
        g_ptr_array_add(o->free, f);
    }
    return o;
}

static char *outputs_of(const HnModel *m)
{
    GString *s = g_string_new(NULL);
    for (guint k = 0; k < m->graph->outputs->len; k++) {
        g_string_append(s, k > 0 ? " " : "");
        hn_type_print(((const HnValue *)m->graph->outputs->pdata[k])->type, s);
    }
    return g_string_free(s, FALSE);
}

static void judge(gconstpointer data)
{
    const Case *c = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("%s%s", g_str_has_prefix(c->text, "opset") ? "" : "opset 17\n", c->text);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnFaceOptions) o = options_of(c->free);
    HnFaced f;
    const HnFaceCheck how = { .backend = &hn_backend_cpu, .threads = 1, .rtol = NAN, .atol = NAN };
    hn_graph_infer(m->graph, FALSE, &error);
    g_assert_no_error(error);
    hn_face_tie(m, o);
    if (!hn_face_change(m, o, NULL, &f, &error)) {
        g_assert_cmpint(error->code, ==, HN_ERROR_GUARD);
        if (strstr(error->message, c->want) == NULL)
            g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, c->want));
        hn_faced_clear(&f);
        return;
    }
    g_autofree char *types = outputs_of(f.model);
    g_assert_cmpstr(types, ==, c->want);
    hn_face_check(m, o, &how, &f, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(f.sizes, ==, 3);
    hn_faced_clear(&f);
}

/* clang-format off */
static const Case cases[] = {
    { "conv", "%1 = Conv(%x:f32[1,3,8,8], w:f32[4,3,3,3])\n%2 = Flatten(%1)\n%y = Gemm(%2, v:f32[144,5], b:f32[5])\n",
      "x:0", "f32[B,5]" },
    { "heads",
      "%q = MatMul(%x:f32[1,6,8], wq:f32[8,8])\n%k = MatMul(%x, wk:f32[8,8])\n%v = MatMul(%x, wv:f32[8,8])\n"
      "%q1 = Reshape(%q, s:i64[4]={1,6,2,4})\n%k1 = Reshape(%k, s)\n%v1 = Reshape(%v, s)\n"
      "%q2 = Transpose(%q1) perm=[0,2,1,3]\n%k2 = Transpose(%k1) perm=[0,2,3,1]\n%v2 = Transpose(%v1) perm=[0,2,1,3]\n"
      "%a = MatMul(%q2, %k2)\n%p = Softmax(%a) axis=3\n%o = MatMul(%p, %v2)\n%o2 = Transpose(%o) perm=[0,2,1,3]\n"
      "%y = Reshape(%o2, t:i64[3]={1,6,8})\n",
      "x:0", "f32[B,6,8]" },
    { "heads among samples",
      "%q = Transpose(%x:f32[1,6,8]) perm=[1,0,2]\n%q1 = Reshape(%q, s:i64[3]={6,2,4})\n%q2 = Transpose(%q1) perm=[1,0,2]\n"
      "%k2 = Transpose(%q1) perm=[1,2,0]\n%a = MatMul(%q2, %k2)\n%p = Softmax(%a) axis=-1\n%o = MatMul(%p, %q2)\n"
      "%o2 = Transpose(%o) perm=[1,0,2]\n%o3 = Reshape(%o2, t:i64[2]={6,8})\n%g = Gemm(%o3, w:f32[8,8])\n"
      "%y = Reshape(%g, u:i64[3]={6,1,8})\n",
      "x:0", "f32[6,B,8]" },
    { "class token",
      "%c = Expand(cls:f32[1,1,4], s:i64[3]={1,1,4})\n%1 = Concat(%c, %x:f32[1,5,4]) axis=1\n%2 = Add(%1, pos:f32[1,6,4])\n"
      "%y = Gather(%2, i:i64[]={0}) axis=1\n",
      "x:0", "f32[B,4]" },
    { "lstm with a zero state",
      "%z = ConstantOfShape(s:i64[3]={1,1,4})\n%t = Transpose(%x:f32[1,5,3]) perm=[1,0,2]\n"
      "%1, %h, %c = LSTM(%t, w:f32[1,16,3], r:f32[1,16,4], b:f32[1,32], -, %z, %z) hidden_size=4\n"
      "%2 = Squeeze(%1, a:i64[1]={1})\n%y = Transpose(%2) perm=[1,0,2]\n",
      "x:0", "f32[1,B,4] f32[1,B,4] f32[B,5,4]" },
    { "lstm behind a squeeze",
      "%s = Squeeze(%x:f32[1,5,3], a:i64[1]={0})\n%t = Unsqueeze(%s, b:i64[1]={1})\n"
      "%1 = GRU(%t, w:f32[1,12,3], r:f32[1,12,4]) hidden_size=4\n%y = Squeeze(%1, c:i64[2]={1,2})\n",
      "x:0", "f32[B,5,4]" },
    { "shapes of the model",
      "%s = Shape(%x:f32[1,T,8])\n%b = Gather(%s, i:i64[1]={0})\n%t = Gather(%s, j:i64[1]={1})\n"
      "%l = Concat(%b, %t, k:i64[2]={2,4}) axis=0\n%1 = Reshape(%x, %l)\n%2 = Transpose(%1) perm=[0,2,1,3]\n"
      "%y = ReduceMean(%2) axes=[-1] keepdims=0\n",
      "x:0", "f32[B,2,T]" },
    { "shuffle", "%1 = Reshape(%x:f32[1,4,3,3], s:i64[5]={1,2,2,3,3})\n%2 = Transpose(%1) perm=[0,2,1,3,4]\n"
      "%3 = Reshape(%2, t:i64[4]={1,-1,3,3})\n%y, %z = Split(%3) axis=1\n",
      "x:0", "f32[B,2,3,3] f32[B,2,3,3]" },
    { "squeezed away", "%1 = Squeeze(%x:f32[1,4])\n%2 = Softmax(%1) axis=0\n%y, %z = TopK(%2, k:i64[1]={2}) axis=0\n",
      "x:0", "f32[B,2] i64[B,2]" },
    { "to a scalar", "%1 = ReduceMax(%x:f32[1,4]) keepdims=0\n%y = Sigmoid(%1)\n", "x:0", "f32[B]" },
    { "over all axes", "%1 = ReduceMean(%x:f32[1,3,4,4]) keepdims=1\n%2 = Sub(%x, %1)\n%y = Relu(%2)\n", "x:0",
      "f32[B,3,4,4]" },
    { "slices and pads", "%1 = Slice(%x:f32[1,6,6], s:i64[2]={0,1}, e:i64[2]={1,5}, a:i64[2]={0,1})\n"
      "%2 = Pad(%1, p:i64[6]={0,1,0,0,1,0})\n%y = Tile(%2, r:i64[3]={1,1,2})\n", "x:0", "f32[B,6,12]" },
    { "a detector's tail", "%1 = Transpose(%x:f32[1,8,2,2]) perm=[0,2,3,1]\n%2 = Reshape(%1, s:i64[3]={1,-1,4})\n"
      "%3 = Concat(%2, more:f32[1,2,4]) axis=1\n%4 = Sub(%3, anchor:f32[1,10,4])\n%y = Mul(%4, scale:f32[10,4])\n",
      "x:0", "f32[B,10,4]" },
    { "resized", "%y = Resize(%x:f32[1,2,4,4], -, -, s:i64[4]={1,2,8,6}) mode='nearest'\n", "x:0", "f32[B,2,8,6]" },
    { "a table", "%1 = Gather(table:f32[7,4], %x:i64[1,5])\n%2 = ReduceSum(%1, a:i64[1]={1}) keepdims=0\n"
      "%y = LayerNormalization(%2, g:f32[4], b:f32[4]) axis=-1\n", "x:0", "f32[B,4]" },
    { "picked by positions", "%1 = Squeeze(%x:f32[1,5,3], a:i64[1]={0})\n%2 = ArgMax(%1) axis=0 keepdims=0\n"
      "%y = Gather(%1, %2) axis=0\n", "x:0", "f32[B,3,3]" },
    { "scattered", "%1 = ScatterND(%x:f32[1,4,3], i:i64[2,2]={0,1,0,3}, u:f32[2,3])\n%y = Relu(%1)\n", "x:0",
      "f32[B,4,3]" },
    { "scattered along", "%y = ScatterElements(%x:f32[1,4], i:i64[1,2]={1,3}, u:f32[1,2]) axis=1\n", "x:0", "f32[B,4]" },
    { "a condition of each",
      "%m = ReduceMax(%x:f32[1,3]) keepdims=0\n%c = Greater(%m, t:f32[]={0.5})\n%y = If(%c) then_branch=graph() -> (%a) {\n"
      "%a = Neg(%x)\n} else_branch=graph() -> (%b) {\n%b = Mul(%x, f:f32[]={3})\n}\n", "x:0", "f32[B,3]" },
    { "a scale of each", "%1, %2, %3 = DynamicQuantizeLinear(%x:f32[1,3,4])\n%y = DequantizeLinear(%1, %2, %3)\n", "x:0",
      "f32[B,3,4]" },
    { "nothing but zeros", "%0 = Sub(%x:f32[1,4], %x)\n%1, %2, %3 = DynamicQuantizeLinear(%0)\n%4 = Cast(%1) to=1\n"
      "%5 = Cast(%3) to=1\n%6 = Add(%4, %5)\n%y = Add(%6, %2)\n", "x:0", "f32[B,4]" },
    { "dynamically quantized", "%1, %2, %3 = DynamicQuantizeLinear(%x:f32[1,5,4])\n"
      "%4 = MatMulInteger(%1, w:i8[4,6]={3,-7,100,-128,127,0,5,6,-7,8,9,-10,11,12,13,-14,15,-16,17,18,19,20,21,-22}, %3, z:i8[]={3})\n"
      "%5 = Cast(%4) to=1\n%y = Mul(%5, %2)\n", "x:0", "f32[B,5,6]" },
    { "a vector, dynamically quantized", "%0 = Squeeze(%x:f32[1,4], a:i64[1]={0})\n%1, %2, %3 = DynamicQuantizeLinear(%0)\n"
      "%4 = MatMulInteger(%1, w:i8[4,3]={3,-7,100,-128,127,0,5,6,-7,8,9,-10}, %3)\n%5 = Cast(%4) to=1\n%y = Mul(%5, %2)\n",
      "x:0", "f32[B,3]" },
    { "a convolution, dynamically quantized", "%1, %2, %3 = DynamicQuantizeLinear(%x:f32[1,1,4,4])\n"
      "%4 = ConvInteger(%1, w:u8[2,1,2,2]={1,2,3,4,250,6,7,8}, %3)\n%5 = Cast(%4) to=1\n%y = Mul(%5, %2)\n", "x:0", "f32[B,2,3,3]" },
    { "weights of each", "%y = Conv(%x:f32[1,2,4,4], %w:f32[1,2,3,3])\n", "x:0 w:0", "f32[B,1,2,2]" },
    { "a rule that nobody wrote", "%y = Einsum(%x:f32[1,3,4], %x) equation='bij,bkj->ik'\n", "x:0", "f32[B,3,3]" },
    { "a type to be like", "%1 = ReduceMean(%x:f32[1,3]) keepdims=0\n%2 = CastLike(c:f64[]={2}, %x)\n%3 = CastLike(%1, %2)\n"
      "%y = Mul(%x, %3)\n", "x:0", "f32[B,3]" },
    { "bounds of 32 bits", "%1 = Squeeze(%x:f32[1,5,4], a:i64[1]={0})\n%y = Slice(%1, s:i32[2]={1,0}, e:i32[2]={4,2})\n", "x:0",
      "f32[B,3,2]" },
    { "a spectrum", "%y = DFT(%x:f32[1,8,1]) axis=1 onesided=1\n", "x:0", "f32[B,5,2]" },
    { "a spectrum over the first axis", "opset 20\n%1 = Squeeze(%x:f32[1,8,3,1], a:i64[1]={0})\n%y = DFT(%1, -, b:i64[]={0})\n",
      "x:0", "f32[B,8,3,2]" },
    { "backwards", "%y = ReverseSequence(%x:f32[1,4,3], n:i64[1]={3}) batch_axis=0 time_axis=1\n", "x:0", "f32[B,4,3]" },
    { "backwards, each so far", "%l = Cast(%s:f32[1]) to=7\n%m = Clip(%l, a:i64[]={0}, b:i64[]={4})\n"
      "%y = ReverseSequence(%x:f32[4,1,3], %m)\n", "x:1 s:0", "f32[4,B,3]" },
    { "a loop", "%y, %z = Loop(n:i64[]={3}, -, %x:f32[1,4]) body=graph(%i:i64[], %c:bool[], %v:f32[1,4]) -> (%d, %w, %u) {\n"
      "%d = Identity(%c)\n%w = Tanh(%v)\n%u = Add(%w, %x)\n}\n%y2 = Add(%y, %x)\n", "x:0", "f32[3,B,4] f32[B,4]" },
    { "a loop from zeros", "%x2 = Neg(%x:f32[1,4])\n%z = Loop(n:i64[]={3}, -, h:f32[1,4]={0,0,0,0}, k:i64[]={0}) body=graph(%i:i64[], %c:bool[], %v:f32[1,4], %j:i64[]) "
      "-> (%d, %w, %l) {\n%d = Identity(%c)\n%1 = Add(%v, %x2)\n%w = Tanh(%1)\n%l = Add(%j, o:i64[]={1})\n}\n%y = Neg(%z)\n",
      "x:0", "f32[B,4]" },
    { "a loop over a vector", "%s = Squeeze(%x:f32[1,4], a:i64[1]={0})\n%v, %u = Loop(n:i64[]={3}, -, %s) body=graph(%i:i64[], %c:bool[], "
      "%v:f32[4]) -> (%d, %w, %t) {\n%d = Identity(%c)\n%w = Softmax(%v)\n%t = Neg(%v)\n}\n%y = Add(%u, %v)\n", "x:0", "f32[B,3,4]" },
    { "a counter that is a list", "%y = Loop(n:i64[]={3}, -, %x:f32[1,4]) body=graph(%i:i64[1], %c:bool[], %v:f32[1,4]) -> (%d, %w) {\n"
      "%d = Identity(%c)\n%f = Cast(%i) to=1\n%g = Squeeze(%f, a:i64[1]={0})\n%w = Add(%v, %g)\n}\n", "x:0", "f32[B,4]" },
    { "until each is done", "%y = Loop(-, t:bool[]={1}, %x:f32[1,4]) body=graph(%i:i64[], %c:bool[], %v:f32[1,4]) -> (%d, %w) {\n"
      "%w = Add(%v, o:f32[]={1})\n%m = ReduceSum(%w) keepdims=0\n%d = Less(%m, q:f32[]={20})\n}\n", "x:0", "f32[B,4]" },
    { "a scan", "%h, %y = Scan(i:f32[1,4]={0,0,0,0}, %x:f32[1,5,4]) num_scan_inputs=1 scan_input_axes=[1] scan_output_axes=[1] "
      "body=graph(%s:f32[1,4], %e:f32[1,4]) -> (%t, %o) {\n%1 = Add(%s, %e)\n%t = Tanh(%1)\n%o = MatMul(%t, w:f32[4,3])\n}\n", "x:0",
      "f32[B,4] f32[B,5,3]" },
    { "a scan over a matrix", "%q = Squeeze(%x:f32[1,5,4], a:i64[1]={0})\n%h, %y = Scan(i:f32[4]={0,0,0,0}, %q) num_scan_inputs=1 "
      "scan_output_axes=[-1] body=graph(%s:f32[4], %e:f32[4]) -> (%t, %o) {\n%1 = Add(%s, %e)\n%t = Tanh(%1)\n%o = Softmax(%t)\n}\n",
      "x:0", "f32[B,4] f32[B,4,5]" },
    { "a scan of opset 8", "opset 8\n%h, %y = Scan(-, i:f32[1,4]={0,0,0,0}, %x:f32[1,5,4]) num_scan_inputs=1 "
      "body=graph(%s:f32[4], %e:f32[4]) -> (%t, %o) {\n%t = Add(%s, %e)\n%o = Neg(%t)\n}\n", "x:0", "f32[B,4] f32[B,5,4]" },
    { "bounds of each", "%m = ReduceMean(%x:f32[1,3]) keepdims=0\n%y = Clip(%x, %m, hi:f32[]={1})\n", "x:0", "f32[B,3]" },
    { "a state", "%1 = Add(%x:f32[1,4], %h:f32[1,4])\n%y = Relu(%1)\n", "x:0 h:0", "f32[B,4]" },
    { "two samples", "%1 = Reshape(%x:f32[2,6], s:i64[3]={2,3,2})\n%2 = Transpose(%1) perm=[1,0,2]\n"
      "%y = ReduceSum(%2, a:i64[1]={2}) keepdims=0\n", "x:0", "f32[3,B]" },
    { "old opset", "opset 9\n%1 = Squeeze(%x:f32[1,3,4]) axes=[0]\n%2 = Slice(%1) starts=[0] ends=[2] axes=[1]\n"
      "%3 = Unsqueeze(%2) axes=[0]\n%y = Pad(%3) pads=[0,0,1,0,0,1]\n", "x:0", "f32[B,3,4]" },
    { "quantized", "%1 = QuantizeLinear(%x:f32[1,3,4], s:f32[]={0.1}, z:u8[]={128})\n"
      "%y = DequantizeLinear(%1, s, z)\n", "x:0", "f32[B,3,4]" },
    { "a height", "%1 = Conv(%x:f32[1,2,8,8], w:f32[4,2,3,3]) pads=[1,1,1,1]\n%2 = Reshape(%1, s:i64[3]={1,4,64})\n"
      "%3 = Softmax(%2) axis=2\n%y = Reshape(%3, t:i64[4]={1,4,8,8})\n", "x:2=H", "f32[1,4,H,8]" },
    { "a height and a width", "%1 = Relu(%x:f32[1,2,8,6])\n%y = MaxPool(%1) kernel_shape=[2,2] strides=[2,2]\n",
      "x:2=S x:3=S", "f32[1,2,floor(S/2),floor(S3/2)]" },
    { "boxes that suppress others, as many as there may be", "%n = NonMaxSuppression(%b:f32[1,6,4], %s:f32[1,2,6], m:i64[]={2}, t:f32[]={0.5}, u:f32[]={0.1})\n"
      "%i = Gather(%n, two:i64[]={2}) axis=1\n%b2 = Squeeze(%b, z:i64[1]={0})\n%p = Gather(%b2, %i) axis=0\n"
      "%l = Shape(%p)\n%k = Sub(all:i64[2]={8,4}, %l)\n%r = Relu(%b)\n%d = Concat(o:i64[2]={0,0}, %k) axis=0\n%q = Pad(%p, %d)\n"
      "%y = Reshape(%q, w:i64[2]={8,4})\n%y2 = Neg(%r)\n", "b:0 s:0", "f32[B,8,4] f32[B,6,4]" },
    { "what follows from as many as there are", "%1 = NonZero(%x:f32[1,4])\n%c = Shape(%1)\n%r = Relu(%x)\n%f = Cast(%c) to=1\n%g = Neg(%f)\n"
      "%t = Transpose(%1)\n%h = Identity(%r)\n%s = ReduceSum(%t, z:i64[1]={0}) keepdims=0\n%e = Cast(%s) to=1\n%y = Add(%e, %g)\n"
      "%y2 = Neg(%h)\n", "x:0", "f32[B,2] f32[B,4]" },
    /* what stands in the way */
    { "boxes that suppress others",
      "%y = NonMaxSuppression(%x:f32[1,4,4], %s:f32[1,2,4], m:i64[]={3})\n", "x:0 s:0", "(NonMaxSuppression): how much it finds" },
    { "sums over samples", "%y = ReduceSum(%x:f32[4,3], a:i64[1]={0})\n", "x:0", "(ReduceSum): " },
    { "as many as there are", "%1 = NonZero(%x:f32[1,4])\n%y = Cast(%1) to=1\n", "x:0", "(NonZero): how much it finds" },
    { "as many as a file has a name for", "opset 17\ngraph g(%x:f32[1,4]) -> (%y:i64[2,k]) { %y = NonZero(%x) }", "x:0",
      "(NonZero): how much it finds differs from sample to sample, and so does the shape of 'y'" },
    { "a sum of as many as there are", "%1 = NonZero(%x:f32[1,4])\n%t = Transpose(%1)\n%f = Cast(%t) to=1\n%y = Mul(%f, %f)\n", "x:0",
      "(NonZero): how much it finds differs from sample to sample, and so does the shape of 'y'" },
    { "random numbers for as many as there are", "%1 = NonZero(%x:f32[1,4])\n%f = Cast(%1) to=1\n%f2 = RandomNormalLike(%f)\n"
      "%y = ReduceSum(%f2) keepdims=0\n", "x:0", "(NonZero): RandomNormalLike 'f2', which reads it, draws" },
    { "random", "%1 = RandomNormalLike(%x:f32[1,4])\n%y = Add(%x, %1)\n", "x:0", "(RandomNormalLike): it draws" },
    { "numbers of runs", "%c = Shape(%x:f32[1,3])\n%m = ReduceSum(%x) keepdims=0\n%n = Cast(%m) to=7\n"
      "%z, %y = Loop(%n, -, %x) body=graph(%i:i64[], %k:bool[], %v:f32[1,3]) -> (%k2, %w, %u) { %k2 = Identity(%k) "
      "%w = Neg(%v) %u = Exp(%v) }\n", "x:0", "(Loop): how much it makes" },
};
/* clang-format on */

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/export/face/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], judge);
    }
    return g_test_run();
}
