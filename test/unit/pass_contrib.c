/*
 * Integer operators of ONNX Runtime's domain compute what they are spelled out as, and forms that are not refuse.
 */
#include <string.h>

#include "run_model.h"

#define HEAD "opset 17 opset com.microsoft 1 opset com.microsoft.nchwc 1 graph g(%x:f32[1,8,4,6]) -> (%y) { "
#define INPUTS                                                  \
    "%a = QuantizeLinear(%x, as:f32={0.0078125}, az:u8={121}) " \
    "%t = Neg(%x) %b = QuantizeLinear(%t, bs:f32={0.015625}, bz:u8={60}) "
#define NUMBERS "%d = DequantizeLinear(%a, as, az) %e = DequantizeLinear(%b, bs, bz) "
#define SCALES "ys:f32={0.03125}, yz:u8={100}"
#define OUT " %y = DequantizeLinear(%q, ys, yz) }"

/* `text` computes what `plain` does on ref. */
static void check(const char *text, const char *plain)
{
    g_autofree char *all = g_strconcat(HEAD INPUTS, text, NULL), *want = g_strconcat(HEAD INPUTS NUMBERS, plain, NULL);
    g_autoptr(HnModel) m = test_model(all), judge = test_model(want);
    g_autoptr(HnSession) ref = test_session(judge, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) cpu = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 3), a = test_run(ref, in), b = test_run(cpu, in);
    test_assert_close(b->pdata[0], a->pdata[0], 0, 1e-6, text);
    g_assert_cmpint(test_count(cpu).ref, ==, 0);
}

static void test_same(void)
{
    check("%q = com.microsoft::QLinearAdd(%a, as, az, %b, bs, bz, " SCALES ")" OUT,
          "%s = Add(%d, %e) %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%q = com.microsoft::QLinearMul(%b, bs, bz, %a, as, az, " SCALES ")" OUT,
          "%s = Mul(%d, %e) %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%q = com.microsoft::QLinearLeakyRelu(%a, as, az, " SCALES ") alpha=0.25" OUT,
          "%s = LeakyRelu(%d) alpha=0.25 %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%q = com.microsoft::QLinearSigmoid(%a, as, az, " SCALES ")" OUT,
          "%s = Sigmoid(%d) %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%q = com.microsoft::QLinearGlobalAveragePool(%a, as, az, " SCALES ") channels_last=0" OUT,
          "%s = GlobalAveragePool(%d) %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%q = com.microsoft::QLinearAveragePool(%a, as, az, " SCALES ") kernel_shape=[2,2]" OUT,
          "%s = AveragePool(%d) kernel_shape=[2,2] %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%q = com.microsoft::QLinearConcat(" SCALES ", %a, as, az, %b, bs, bz) axis=1" OUT,
          "%s = Concat(%d, %e) axis=1 %q = QuantizeLinear(%s, " SCALES ")" OUT);
}

static void test_gemm(void)
{
    check("%f = Flatten(%a) %q = com.microsoft::QGemm(%f, as, az, w:i8[192,2], ws:f32[2]={0.5,0.25}, wz:i8[2]={0,0}, "
          "c:i32[2]={300,-7}, " SCALES ")" OUT,
          "%f = Flatten(%d) %v = DequantizeLinear(w:i8[192,2], ws:f32[2]={0.5,0.25}, wz:i8[2]={0,0}) axis=1 "
          "%c = DequantizeLinear(cq:i32[2]={300,-7}, cs:f32[2]={0.00390625,0.001953125}) axis=0 "
          "%s = Gemm(%f, %v, %c) %q = QuantizeLinear(%s, " SCALES ")" OUT);
    check("%f = Flatten(%a) %y = com.microsoft::QGemm(%f, as, az, w:i8[2,192], ws:f32={0.5}, wz:i8={0}) transB=1 "
          "alpha=2.0 }",
          "%f = Flatten(%d) %v = DequantizeLinear(w:i8[2,192], ws:f32={0.5}, wz:i8={0}) %y = Gemm(%f, %v) transB=1 "
          "alpha=2.0 }");
}

/* `text` computes what `plain` does, in the newest opset, on ref. */
static void same(const char *inputs, const char *text, const char *plain)
{
    g_autofree char *all = g_strdup_printf("opset 13 opset com.microsoft 1 graph g(%s) -> (%%y) { %s }", inputs, text);
    g_autofree char *want = g_strdup_printf("opset 25 graph g(%s) -> (%%y) { %s }", inputs, plain);
    g_autoptr(HnModel) m = test_model(all), judge = test_model(want);
    g_autoptr(HnSession) ref = test_session(judge, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) cpu = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 5), a = test_run(ref, in), b = test_run(cpu, in);
    test_assert_close(b->pdata[0], a->pdata[0], 1e-5, 1e-5, text);
}

static void test_fused(void)
{
    same("%x:f32[2,3,8], %s:f32[3,8]", "%y = com.microsoft::SkipLayerNormalization(%x, %s, g:f32[8], b:f32[8])",
         "%t = Add(%x, %s) %y = LayerNormalization(%t, g:f32[8], b:f32[8]) epsilon=1e-12");
    same("%x:f32[2,3,8]", "%y = com.microsoft::BiasGelu(%x, b:f32[8])", "%t = Add(%x, b:f32[8]) %y = Gelu(%t)");
    same("%x:f32[2,5,8], %m:f32[2,5,3]",
         "%t = com.microsoft::FusedMatMul(%m, %x) transBatchA=0 transA=1 alpha=0.5 %y = Relu(%t)",
         "%n = Transpose(%m) perm=[0,2,1] %t = MatMul(%n, %x) %u = Mul(%t, h:f32={0.5}) %y = Relu(%u)");
    same("%x:f32[1,5,5,3]", "%y = com.microsoft::NhwcConv(%x, w:f32[4,3,3,3], b:f32[4]) pads=[1,1,1,1]",
         "%t = Transpose(%x) perm=[0,3,1,2] %u = Conv(%t, w:f32[4,3,3,3], b:f32[4]) pads=[1,1,1,1] "
         "%y = Transpose(%u) perm=[0,2,3,1]");
    same("%x:f32[2,4,12]",
         "%y = com.microsoft::Attention(%x, w:f32[12,48], b:f32[48], m:i32[2]={4,2}) num_heads=2 unidirectional=1",
         "%p = MatMul(%x, w:f32[12,48]) %t = Add(%p, b:f32[48]) %q, %k, %v = Split(%t) axis=-1 num_outputs=3 "
         "%y = Attention(%q, %k, %v, m:f32[2,1,1,4]={0,0,0,0,0,0,-10000,-10000}) q_num_heads=2 kv_num_heads=2 "
         "is_causal=1");
}

static void refuse(const char *text)
{
    g_autofree char *all = g_strconcat(HEAD INPUTS, text, NULL);
    g_autoptr(HnModel) m = test_model(all);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 }, &error);
    g_assert_null(s);
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, "com.microsoft"));
}

static void test_refused(void)
{
    refuse("%q = com.microsoft::QLinearAdd(%a, as, az, %b, bs, bz) %y = DequantizeLinear(%q, as, az) }");
    refuse("%q = com.microsoft::QLinearConcat(ys:f32={0.03125}, yz:u8={100}, %a, as) axis=1" OUT);
    refuse("%y = com.microsoft::Inverse(%x) }");
    refuse("%y = com.microsoft::FusedConv(%x, w:f32[2,8,1,1]) activation='Sinus' }");
    refuse("%y = com.microsoft::Attention(%x, w:f32[6,12]) num_heads=2 do_rotary=1 }");
    refuse("%y, %m = com.microsoft::SkipLayerNormalization(%x, %x, w:f32[6]) %n = Neg(%m) }");
    refuse("%y = com.microsoft::MatMulNBits(%x, bits:u8[4,1,8], steps:f32[4]) K=6 N=4 bits=3 block_size=16 }");
}

/* What a file's shapes promise and its bytes do not hold is an error, not a read behind them. */
static void test_hostile(void)
{
    refuse("%y = com.microsoft::MatMulNBits(%x, bits:u8[4,1,4], steps:f32[4]) K=6 N=4 bits=4 block_size=16 }");
    refuse("%y = com.microsoft::MatMulNBits(%x, bits:u8[4,1,8], steps:f32[4]) K=9223372036854775807 N=4 bits=4 "
           "block_size=16 }");
    refuse("%y = com.microsoft::MatMulNBits(%x, bits:u8[4,1,8], steps:f32[4], zeros:u8[2]) K=6 N=4 bits=4 "
           "block_size=16 }");
    refuse("%y = com.microsoft::MatMulBnb4(%x, codes4:u8[11], most:f32[2]) K=6 N=4 block_size=16 quant_type=1 }");
    refuse("%y = com.microsoft::MatMulBnb4(%x, codes4:u8[12], most:f32[1]) K=6 N=4 block_size=16 quant_type=1 }");
    refuse("%y = com.microsoft::MatMulBnb4(%x, codes4:u8[12], most:f32[2]) K=6 N=4 block_size=16 quant_type=2 }");
    refuse("%y = com.microsoft::MatMulBnb4(%x, codes4:u8[12], most:f32[2]) K=6 N=4611686018427387904 block_size=16 "
           "quant_type=1 }");
    refuse("%y = com.microsoft::RelativePositionBias(table:f32[8,2], q:i64[1]={4}, q) max_distance=4 }");
    refuse("%y = com.microsoft::RelativePositionBias(table:f32[0,2], q:i64[1]={4}, q) max_distance=0 }");
    refuse(
        "%y = com.microsoft::RelativePositionBias(table:f32[8,2], q:i64[1]={4}, q) max_distance=9223372036854775807 }");
    refuse("%y = com.microsoft::UnfoldTensor(%x) size=0 }");
    refuse("%y = com.microsoft::UnfoldTensor(%x) size=2 step=0 }");
    refuse("%y = com.microsoft::UnfoldTensor(%x) size=2 dim=4 }");
    refuse("%y = com.microsoft::GroupNorm(%x, gain:f32[6], base:f32[6]) groups=0 activation=0 }");
    refuse("%y = com.microsoft::GroupNorm(%x, gain:f32[6], base:f32[6]) groups=2 activation=2 }");
    refuse(
        "%y = com.microsoft::SkipGroupNorm(%x, gain:f32[6], base:f32[6], %x) groups=2 activation=0 channels_last=0 }");
    refuse("%y = com.microsoft::GatedRelativePositionBias(%x, %x, %x, %x, %x, %x) num_heads=0 }");
    refuse("%y = com.microsoft::MultiHeadAttention(%x) num_heads=-1 }");
    refuse("%c = com.microsoft.nchwc::Conv(%x, w:f32[16,16,1,1]) %y = Neg(%c) }");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/contrib/same", test_same);
    g_test_add_func("/contrib/gemm", test_gemm);
    g_test_add_func("/contrib/refused", test_refused);
    g_test_add_func("/contrib/hostile", test_hostile);
    g_test_add_func("/contrib/fused", test_fused);
    return g_test_run();
}
