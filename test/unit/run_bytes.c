/*
 * Quantized models on the CPU backend: what runs on bytes gives the numbers of the nodes one by one. Scales are powers
 * of 2, so that no sum is rounded and equal means equal.
 */
#include <string.h>

#include "base/cpu.h"
#include "run_model.h"

#define X "opset 17 graph g(%x:f32[1,16,9,11]) -> (%y) { "
#define QUANTIZED "%q = QuantizeLinear(%x, xs:f32={0.0078125}, xz:u8={121}) %d = DequantizeLinear(%q, xs, xz) "
#define WEIGHTS "%w = DequantizeLinear(wq:i8[24,16,3,3], ws:f32={0.015625}, wz:i8={0}) "
#define CONV "%c = Conv(%d, %w) pads=[1,1,1,1] "
#define OUT(v) "%p = QuantizeLinear(" v ", ps:f32={0.5}, pz:u8={100}) %y = DequantizeLinear(%p, ps, pz) }"

typedef struct {
    int numbers, f32_products, products;
} Found;

static void look(const HnStep *s, int depth, gpointer data)
{
    Found *f = data;
    (void)depth;
    f->numbers += s->kernel != NULL && strcmp(s->kernel->name, "cpu.byte_numbers") == 0;
    if (s->op == NULL || s->kernel == NULL)
        return;
    f->products += strcmp(s->op->name, "QuantConv") == 0 || strcmp(s->op->name, "QuantMatMul") == 0;
    f->f32_products += s->op->quant.kind == HN_Q_WEIGHTED;
}

/* Weights of a text are random numbers of 0 to 7; that many products run as integers, and as many values are made
 * numbers again. */
static void check(const char *text, int products, int numbers)
{
    for (int threads = 1; threads <= 2; threads++) {
        TestCount c = test_preferring(NULL, text, threads, 0, 1e-6);
        g_autoptr(HnModel) m = test_model(text);
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        g_autoptr(GPtrArray) in = test_inputs(s, 5);
        g_autoptr(GPtrArray) out = test_run(s, in);
        Found f = { 0 };
        hn_session_foreach_step(s, look, &f);
        if (c.ref > 0 || f.products != products || f.numbers != numbers) {
            g_test_message("%d steps on ref, %d products, %d values as numbers: %s", c.ref, f.products, f.numbers,
                           text);
            g_test_fail();
        }
        g_assert_cmpint(f.f32_products, ==, 0);
    }
}

static void test_conv(void)
{
    check(X QUANTIZED WEIGHTS CONV OUT("%c"), 1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Relu(%c) " OUT("%r"), 1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Clip(%c, l:f32={-3}, h:f32={20}) " OUT("%r"), 1, 0);
    check(X QUANTIZED WEIGHTS "%b = DequantizeLinear(bq:i32[24], bs:f32={0.0001220703125}) "
                              "%c = Conv(%d, %w, %b) strides=[2,2] " OUT("%c"),
          1, 0);
    check(X QUANTIZED WEIGHTS "%y = Conv(%d, %w, b:f32[24]) pads=[1,1,1,1] }", 1, 0);
    check(X QUANTIZED "%w = DequantizeLinear(wq:i8[24,16,3,3], ws:f32[24]={1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8,1,2,"
                      "4,8}, wz:i8[24]) axis=0 " CONV OUT("%c"),
          1, 0);
    check(X QUANTIZED "%w = DequantizeLinear(wq:u8[16,1,3,3], ws:f32={0.25}, wz:u8={3}) %c = Conv(%d, %w) group=16 "
                      "pads=[1,1,1,1] " OUT("%c"),
          1, 0);
}

/* Signed bytes in front of a product that is read where it is. */
static void test_signed(void)
{
    check("opset 17 graph g(%x:f32[1,32,5,4]) -> (%y) { %q = QuantizeLinear(%x, xs:f32={0.0078125}, xz:i8={-7}) "
          "%d = DequantizeLinear(%q, xs, xz) %w = DequantizeLinear(wq:i8[40,32,1,1], ws:f32={0.5}, wz:i8={0}) "
          "%c = Conv(%d, %w) %p = QuantizeLinear(%c, ps:f32={2}, pz:i8={5}) %y = DequantizeLinear(%p, ps, pz) }",
          1, 0);
}

/* Functions of one operand are tables, which the steps before take over; so are changes of scale. */
static void test_tables(void)
{
    check(X QUANTIZED "%e = Relu(%d) %r = QuantizeLinear(%e, rs:f32={0.015625}, rz:u8={0}) "
                      "%f = DequantizeLinear(%r, rs, rz) " WEIGHTS "%c = Conv(%f, %w) " OUT("%c"),
          1, 0);
    check(X QUANTIZED "%e = Relu(%d) " WEIGHTS "%c = Conv(%e, %w) " OUT("%c"), 1, 0);
    check(X QUANTIZED WEIGHTS CONV
          "%p = QuantizeLinear(%c, ps:f32={0.5}, pz:u8={100}) %e = DequantizeLinear(%p, ps, pz) "
          "%f = LeakyRelu(%e) alpha=0.25 %h = MaxPool(%f) kernel_shape=[3,3] strides=[2,2] "
          "%r = QuantizeLinear(%h, rs:f32={0.25}, rz:i8={3}) %y = DequantizeLinear(%r, rs, rz) }",
          1, 0);
    check(X QUANTIZED "%e = Neg(%d) %f = MaxPool(%e) kernel_shape=[2,2] " OUT("%f"), 0, 1); /* falls: no maximum */
    check(X QUANTIZED "%e = Mul(%d, two:f32={2}) %f = Sub(one:f32={1}, %e) " OUT("%f"), 0, 0);
}

/* What moves elements moves bytes; a concatenation of several scales is in that of its result. */
static void test_moves(void)
{
    check(X QUANTIZED
          "%t = Transpose(%d) perm=[0,2,3,1] %s = Slice(%t, b:i64[1]={1}, e:i64[1]={7}, a:i64[1]={1}) " OUT("%s"),
          0, 0);
    check(X QUANTIZED "%s = Reshape(%d, shape:i64[3]={1,16,99}) %t = Flatten(%s) " OUT("%t"), 0, 0);
    check(X QUANTIZED WEIGHTS
          "%c = Conv(%d, %w) pads=[1,1,1,1] %cq = QuantizeLinear(%c, cs:f32={0.25}, cz:u8={100}) "
          "%e = DequantizeLinear(%cq, cs, cz) %k = Concat(%d, %e) axis=1 %p = QuantizeLinear(%k, ps:f32={0.5}, "
          "pz:u8={90}) "
          "%f = DequantizeLinear(%p, ps, pz) %v = DequantizeLinear(vq:i8[8,40,1,1], vs:f32={0.5}) %z = Conv(%f, %v) "
          "%r = QuantizeLinear(%z, rs:f32={4}, rz:u8={100}) %y = DequantizeLinear(%r, rs, rz) }",
          2, 0);
    check(X QUANTIZED "%a, %b = Split(%d, n:i64[2]={4,12}) axis=1 %p = QuantizeLinear(%b, xs, xz) "
                      "%y = DequantizeLinear(%p, xs, xz) %z = QuantizeLinear(%a, xs, xz) }",
          0, 0);
}

static void test_matmul(void)
{
    check("opset 17 graph g(%x:f32[7,36]) -> (%y) { %q = QuantizeLinear(%x, xs:f32={0.0078125}, xz:u8={121}) "
          "%d = DequantizeLinear(%q, xs, xz) %w = DequantizeLinear(wq:i8[36,20], ws:f32={0.5}) %c = MatMul(%d, %w) "
          "%p = QuantizeLinear(%c, ps:f32={1}, pz:u8={3}) %y = DequantizeLinear(%p, ps, pz) }",
          1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Clip(%c, l:f32={-3}, h:f32={20}) %y = GlobalAveragePool(%r) }", 1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Relu(%c) %e = Exp(%r) %y = Add(%e, %r) }", 1, 0);
    check("opset 17 graph g(%x:f32[7,36]) -> (%y) { %q = QuantizeLinear(%x, xs:f32={0.0078125}, xz:u8={121}) "
          "%d = DequantizeLinear(%q, xs, xz) %w = DequantizeLinear(wq:i8[20,36], ws:f32={0.5}) "
          "%y = Gemm(%d, %w, b:f32[20]) transB=1 }",
          1, 0);
}

/* Somebody wants the numbers: other nodes, results, sub-graphs; weights that no integer product takes. */
static void test_numbers(void)
{
    check("opset 17 graph g(%x:f32[1,16,9,11]) -> (%y, %z) { " QUANTIZED WEIGHTS CONV
          "%p = QuantizeLinear(%c, ps:f32={0.5}, pz:u8={100}) %y = DequantizeLinear(%p, ps, pz) %z = Softmax(%c) "
          "axis=1 }",
          1, 0);
    check(X QUANTIZED "%e = Softmax(%d) axis=2 " OUT("%e"), 0, 1);
    check(X "%w = DequantizeLinear(wq:i8[2,1,1,11], ws:f32={0.5}) %r = Relu(%x) %y = Mul(%r, %w) }", 0, 0);
}

/* 256 at every tap and weights of 127 where sums of two products would saturate. */
static void test_full_range(void)
{
    g_autoptr(GString) w = g_string_new("i8[9,68,1,1]={");
    for (int i = 0; i < 9 * 68; i++)
        g_string_append_printf(w, "%s%d", i > 0 ? "," : "", i % 7 == 0 ? -128 : i % 5 == 0 ? -3 : 127);
    g_string_append(w, "}");
    g_autofree char *text = g_strdup_printf(
        "opset 17 graph g(%%x:f32[1,68,5,6]) -> (%%y) { %%q = QuantizeLinear(%%x, xs:f32={0.0009765625}, xz:u8={1}) "
        "%%d = DequantizeLinear(%%q, xs, xz) %%w = DequantizeLinear(wq:%s, ws:f32={0.5}) %%y = Conv(%%d, %%w) }",
        w->str);
    check(text, 1, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bytes/conv", test_conv);
    g_test_add_func("/bytes/signed", test_signed);
    g_test_add_func("/bytes/tables", test_tables);
    g_test_add_func("/bytes/moves", test_moves);
    g_test_add_func("/bytes/matmul", test_matmul);
    g_test_add_func("/bytes/numbers", test_numbers);
    g_test_add_func("/bytes/full_range", test_full_range);
    return g_test_run();
}
