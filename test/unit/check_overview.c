/* What models are said to be: ends, operators, weights, flops. */
#include "check/overview.h"
#include "data/interface.h"
#include "run_model.h"

/* --- inputs and outputs ------------------------------------------------------------------------------------------ */

static void check_seems(const char *text, const char *value, const char *want)
{
    g_autoptr(HnModel) m = test_model(text);
    HnSeems s;
    hn_seems(m, hn_graph_find(m->graph, value), &s);
    g_autofree char *got = hn_seems_text(&s);
    g_assert_cmpstr(got, ==, want);
}

static void test_images(void)
{
    const char *conv = "opset 17 graph g(%x:f32[N,3,H,W]) -> (%y) { %y = Conv(%x, w:f32[4,3,3,3]) kernel_shape=[3,3] }";
    check_seems(conv, "x", "image NCHW, 3 channels");
    /* the convolution says how many channels there are where the input does not */
    check_seems("opset 17 graph g(%x:f32[?,?,?,?]) -> (%y) { %1 = Cast(%x) to=1 "
                "%y = Conv(%1, w:f32[4,1,3,3]) kernel_shape=[3,3] }",
                "x", "image NCHW, 1 channel");
    check_seems("opset 17 graph g(%x:f32[1,224,224,3]) -> (%y) { %1 = Transpose(%x) perm=[0,3,1,2] "
                "%y = Conv(%1, w:f32[4,3,3,3]) kernel_shape=[3,3] }",
                "x", "image NHWC, 3 channels");
    check_seems("opset 17 graph g(%x:u8[N,32,32,3]) -> (%y) { %y = Cast(%x) to=1 }", "x", "image NHWC, 3 channels");
    /* of another number of channels, or too small for pixels */
    check_seems("opset 17 graph g(%x:f32[1,64,8,8]) -> (%y) { %y = Conv(%x, w:f32[4,64,3,3]) kernel_shape=[3,3] }", "x",
                "");
    check_seems("opset 17 graph g(%x:f32[1,3,2,2]) -> (%y) { %y = Relu(%x) }", "x", "");
    check_seems("opset 17 graph g(%x:f32[1,8,100]) -> (%y) { %y = Conv(%x, w:f32[4,8,3]) kernel_shape=[3] }", "x",
                "signal NCW, 8 channels");
    check_seems("opset 17 graph g(%x:f32[1,100,8]) -> (%y) { %1 = Transpose(%x) perm=[0,2,1] "
                "%y = Conv(%1, w:f32[4,8,3]) kernel_shape=[3] }",
                "x", "signal NWC, 8 channels");
}

static void test_integers(void)
{
    const char *text =
        "opset 17 graph g(%ids:i64[N,S], %attention_mask:i64[N,S], %sr:i64[], %position_ids:i64[N,S]) -> "
        "(%y, %m, %r, %p, %best) { %y = Gather(t:f32[100,8], %ids) %m = Neg(%attention_mask) "
        "%r = Neg(%sr) %p = Neg(%position_ids) %best = ArgMax(%y) }";
    check_seems(text, "ids", "token ids below 100");
    check_seems(text, "attention_mask", "mask");
    check_seems(text, "sr", "scalar");
    check_seems(text, "position_ids", "positions");
    check_seems("opset 17 graph g(%x:f32[4]) -> (%y:i64[1]) { %y = ArgMax(%x) axis=0 }", "y", "indices");
    check_seems("opset 17 graph g(%ids:i64[N,S]) -> (%y:f32[N,S,100]) { %e = Gather(t:f32[100,8], %ids) "
                "%y = MatMul(%e, w:f32[8,100]) }",
                "y", "logits of 100 tokens");
}

static void test_scores(void)
{
    check_seems("opset 17 graph g(%x:f32[N,10]) -> (%y:f32[N,10]) { %y = Softmax(%x) }", "y",
                "probabilities of 10 classes");
    /* before opset 13 an axis that is not given is the second one */
    check_seems("opset 11 graph g(%x:f32[N,10,1]) -> (%y:f32[N,10,1]) { %y = Softmax(%x) }", "y",
                "probabilities of 10 classes");
    check_seems("opset 17 graph g(%x:f32[1,10]) -> (%y:f32[1,10,1,1]) { %1 = Softmax(%x) %y = Reshape(%1, "
                "s:i64[4]={1,10,1,1}) }",
                "y", "probabilities of 10 classes");
    check_seems(
        "opset 17 graph g(%x:f32[4,10]) -> (%y:f32[1,4,10]) { %1 = Softmax(%x) %y = Unsqueeze(%1, a:i64[1]={0}) }", "y",
        "probabilities");
    check_seems("opset 17 graph g(%x:f32[N,10]) -> (%y:f32[10,N]) { %1 = Sigmoid(%x) %y = Transpose(%1) }", "y",
                "scores from 0 to 1");
    check_seems("opset 17 graph g(%x:f32[N,10]) -> (%y:f32[N,10]) { %1 = Softmax(%x) %y = Neg(%1) }", "y", "");
}

static void test_states(void)
{
    const char *cache = "opset 17 graph g(%x:f32[1,4], %conv_cache:f32[2,4], %past_key_values.0.key:f32[1,T,8]) -> "
                        "(%y:f32[1,4], %conv_cache_out:f32[2,4], %present.0.key:f32[1,U,8]) { %y = Neg(%x) "
                        "%conv_cache_out = Neg(%conv_cache) %present.0.key = Neg(%past_key_values.0.key) }";
    check_seems(cache, "conv_cache", "state, fed by 'conv_cache_out'");
    check_seems(cache, "conv_cache_out", "state, for 'conv_cache'");
    check_seems(cache, "past_key_values.0.key", "state, fed by 'present.0.key'");
    check_seems(cache, "x", "");
    check_seems(
        "opset 17 graph g(%x:f32[1,4], %h:f32[1,8]) -> (%y:f32[1,4], %hn:f32[1,8]) { %y = Neg(%x) %hn = Neg(%h) }",
        "hn", "state, for 'h'");
    /* of another size it is none; nor are ends whose names say nothing but their side */
    check_seems("opset 17 graph g(%h:f32[1,8]) -> (%hn:f32[1,9]) { %hn = Pad(%h, p:i64[4]={0,0,0,1}) }", "h", "");
    check_seems("opset 17 graph g(%input:f32[1,8]) -> (%output:f32[1,8]) { %output = Neg(%input) }", "input", "");
    /* the first state of a recurrent layer, by its type */
    const char *lstm = "opset 17 graph g(%a:f32[1,1,3], %b:f32[1,1,2]) -> (%p:f32[1,1,1,2], %q:f32[1,1,2]) { "
                       "%p, %q = GRU(%a, w:f32[1,6,3], r:f32[1,6,2], -, -, %b) hidden_size=2 }";
    check_seems(lstm, "b", "state, fed by 'q'");
    check_seems(lstm, "q", "state, for 'b'");
}

static void test_words(void)
{
    g_autoptr(HnModel) one = test_model("opset 17 graph g(%x:f32[N,3]) -> (%y) { %y = Add(%x, w:f32[3]) }");
    g_autoptr(HnModel) two =
        test_model("opset 17 graph g(%x:f32[2], %sr:i64[]) -> (%y, %z) { %y = Neg(%x) %z = Neg(%sr) }");
    g_autoptr(GString) many = g_string_new("opset 17 graph g(");
    for (int i = 0; i < 9; i++)
        g_string_append_printf(many, "%s%%x%d:f32[2]", i > 0 ? ", " : "", i);
    g_string_append(many, ") -> (%y) { %y = Sum(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8) }");
    g_autoptr(HnModel) nine = test_model(many->str);
    g_autofree char *a = hn_model_inputs_words(one), *b = hn_model_inputs_words(two), *c = hn_model_inputs_words(nine);
    g_assert_cmpstr(a, ==, "; the model's input is 'x' f32[N,3]");
    g_assert_cmpstr(b, ==, "; the model's inputs are 'x' f32[2] and 'sr' i64[] (scalar)");
    g_assert_true(g_str_has_suffix(c, "'x5' f32[2] and 3 more"));
}

/* --- overview ---------------------------------------------------------------------------------------------------- */

/* "Relu 2, Conv 1" */
static char *ops_text(const GPtrArray *ops)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < ops->len; i++) {
        const HnOverviewOp *op = ops->pdata[i];
        g_string_append_printf(s, "%s%s %u", i > 0 ? ", " : "", op->name, op->nodes);
    }
    return g_string_free(s, FALSE);
}

static HnOverview *overview_of(HnModel *m)
{
    return hn_overview_new(m, NULL, &hn_backend_cpu, NULL);
}

static void test_operators(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 opset com.acme 1 function com.acme::Two(%a) -> (%b) { opset 17 %1 = Relu(%a) %b = Relu(%1) } "
        "graph g(%x:f32[4], %c:bool[]) -> (%y, %z) { %1 = com.acme::Two(%x) %2 = com.acme::Nix(%1) "
        "%3 = com.acme::Nix(%2) %4 = Det(m:f32[2,2]) %y = Celu(%3) alpha='x' "
        "%z = If(%c) then_branch=graph() -> (%t) { %t = Neg(%4) } else_branch=graph() -> (%e) { %e = Exp(%4) } }");
    g_autoptr(HnOverview) o = overview_of(m);
    g_autofree char *all = ops_text(o->operators), *bad = ops_text(o->unknown), *slow = ops_text(o->slow);
    g_assert_cmpstr(all, ==, "Relu 2, com.acme.Nix 2, Celu 1, Det 1, Exp 1, If 1, Neg 1, com.acme.Two 1");
    g_assert_cmpstr(bad, ==, "com.acme.Nix 2, Celu 1");
    g_assert_cmpstr(slow, ==, "Det 1");
    g_assert_cmpint(((HnOverviewOp *)o->unknown->pdata[1])->support, ==, HN_SUPPORT_REFUSED);
    g_assert_nonnull(strstr(((HnOverviewOp *)o->unknown->pdata[1])->reason, "alpha"));
    g_assert_cmpuint(o->nodes, ==, 6);
    g_assert_cmpuint(o->inner, ==, 2);
    g_assert_cmpuint(o->graphs, ==, 2);
    g_assert_cmpuint(o->functions, ==, 1);
    g_assert_cmpuint(o->in_bodies, ==, 2);
}

static void test_weights(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N,4]) -> (%y) { %1 = MatMul(%x, w:f32[4,8]) "
                                      "%2 = Reshape(%1, s:i64[2]={-1,8}) %3 = Constant() value=f16[8] "
                                      "%4 = Cast(%3) to=1 %y = Add(%2, %4) }");
    g_autoptr(HnOverview) o = overview_of(m);
    g_assert_cmpuint(o->tensors, ==, 3);
    g_assert_cmpuint(o->parameters, ==, 40);
    g_assert_cmpuint(o->weight_bytes, ==, 128 + 16 + 16);
    g_assert_cmpint(((HnOverviewType *)o->types->pdata[0])->dtype, ==, HN_F32);
    g_assert_cmpint(o->quantized, ==, HN_QUANTIZED_NO);
}

static void test_flops(void)
{
    const char *text = "opset 17 graph g(%x:f32[N,4]) -> (%y) { %y = MatMul(%x, w:f32[4,8]) }";
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnShapes) shapes = hn_shapes_new();
    g_autoptr(HnOverview) one = overview_of(m);
    hn_shapes_set_dim(shapes, "N", 3);
    g_autoptr(HnOverview) three = hn_overview_new(m, shapes, &hn_backend_cpu, NULL);
    g_assert_cmpfloat(one->flops, ==, 2 * 4 * 8);
    g_assert_cmpfloat(three->flops, ==, 3 * 2 * 4 * 8);
    g_assert_cmpuint(three->flops_left, ==, 0);
    g_autoptr(HnModel) unknown = test_model("opset 17 opset com.acme 1 graph g(%x:f32[4]) -> (%y) "
                                            "{ %1 = com.acme::Nix(%x) %y = Exp(%1) }");
    g_autoptr(HnOverview) none = overview_of(unknown);
    g_assert_true(isnan(none->flops));
    g_assert_cmpuint(none->flops_left, ==, 2);
}

static void test_flops_of_bodies(void)
{
    static const struct {
        const char *text;
        double flops;
        guint left;
    } cases[] = {
        { "opset 17 graph g(%x:f32[2,4], %c:bool[]) -> (%y) { %y = If(%c) then_branch=graph() -> (%a) { "
          "%a = MatMul(%x, w:f32[4,8]) } else_branch=graph() -> (%b) { %b = MatMul(%x, v:f32[4,2]) } }",
          2 * 2 * 4 * 8, 0 },
        { "opset 17 graph g(%x:f32[2,4]) -> (%y) { %y = If(c:bool[]={0}) then_branch=graph() -> (%a) { "
          "%a = MatMul(%x, w:f32[4,8]) } else_branch=graph() -> (%b) { %b = MatMul(%x, v:f32[4,2]) } }",
          2 * 2 * 4 * 2, 0 },
        { "opset 17 opset com.acme 1 graph g(%x:f32[2,4], %c:bool[]) -> (%y) { %y = If(%c) then_branch=graph() -> (%a) "
          "{ "
          "%a = com.acme::Nix(%x) } else_branch=graph() -> (%b) { %b = MatMul(%x, v:f32[4,2]) } }",
          2 * 2 * 4 * 2, 0 },
        { "opset 17 graph g(%x:f32[2,4]) -> (%y) { %y = Loop(n:i64[]={5}, -, %x) body=graph(%i:i64[], %k:bool[], "
          "%v:f32[2,4]) "
          "-> (%k2, %w) { %k2 = Identity(%k) %w = MatMul(%v, m:f32[4,4]) } }",
          5 * 2 * 2 * 4 * 4, 0 },
        { "opset 17 graph g(%x:f32[2,4], %n:i64[]) -> (%y) { %y = Loop(%n, -, %x) body=graph(%i:i64[], %k:bool[], "
          "%v:f32[2,4]) -> (%k2, %w) { %k2 = Identity(%k) %w = MatMul(%v, m:f32[4,4]) } }",
          2 * 2 * 4 * 4, 0 },
        { "opset 17 graph g(%x:f32[2,7,4]) -> (%y) { %y = Scan(%x) num_scan_inputs=1 scan_input_axes=[1] "
          "body=graph(%e:f32[2,4]) -> (%o) { %o = MatMul(%e, m:f32[4,3]) } }",
          7 * 2 * 2 * 4 * 3, 0 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HnModel) m = test_model(cases[i].text);
        g_autoptr(HnOverview) o = overview_of(m);
        g_assert_cmpfloat(o->flops, ==, cases[i].flops);
        g_assert_cmpuint(o->flops_left, ==, cases[i].left);
    }
}

static HnQuantized quantized(const char *text)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnOverview) o = overview_of(m);
    return o->quantized;
}

static void test_quantized(void)
{
    g_assert_cmpint(quantized("opset 17 graph g(%x:f32[1,4]) -> (%y) { %w = DequantizeLinear(q:i8[4,2], s:f32[]) "
                              "%y = MatMul(%x, %w) }"),
                    ==, HN_QUANTIZED_WEIGHTS);
    g_assert_cmpint(quantized("opset 17 graph g(%x:f32[1,4]) -> (%y) { %1 = QuantizeLinear(%x, s:f32[], z:u8[]) "
                              "%2 = DequantizeLinear(%1, s, z) %w = DequantizeLinear(q:i8[4,2], t:f32[]) "
                              "%y = MatMul(%2, %w) }"),
                    ==, HN_QUANTIZED_QDQ);
    g_assert_cmpint(quantized("opset 17 graph g(%x:f32[1,4]) -> (%y) { %1, %s, %z = DynamicQuantizeLinear(%x) "
                              "%2 = MatMulInteger(%1, q:i8[4,2], %z) %3 = Cast(%2) to=1 %y = Mul(%3, %s) }"),
                    ==, HN_QUANTIZED_DYNAMIC);
    g_assert_cmpint(quantized("opset 17 graph g(%x:f32[1,4]) -> (%y) { %1 = QuantizeLinear(%x, s:f32[], z:u8[]) "
                              "%2 = QLinearMatMul(%1, s, z, q:i8[4,2], t:f32[], c:i8[], s, z) "
                              "%y = DequantizeLinear(%2, s, z) }"),
                    ==, HN_QUANTIZED_OPERATORS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/interface/images", test_images);
    g_test_add_func("/interface/integers", test_integers);
    g_test_add_func("/interface/scores", test_scores);
    g_test_add_func("/interface/states", test_states);
    g_test_add_func("/interface/words", test_words);
    g_test_add_func("/overview/operators", test_operators);
    g_test_add_func("/overview/weights", test_weights);
    g_test_add_func("/overview/flops", test_flops);
    g_test_add_func("/overview/flops/bodies", test_flops_of_bodies);
    g_test_add_func("/overview/quantized", test_quantized);
    return g_test_run();
}
