/*
 * Batches that are run part by part: which ones are, and that the results are those of the whole batch.
 */
#include "run_model.h"

typedef struct {
    const char *what, *text;
    gsize part_bytes; /* HnSessionOptions.part_bytes */
    guint parts;
} Case;

#define CONVS "%1 = Conv(%x, w:f32[4,4,3,3]) pads=[1,1,1,1] %2 = Relu(%1) %3 = Conv(%2, v:f32[4,4,1,1]) "
#define MANY "opset 17 graph g(%x:f32[8,4,64,64]) -> (%y) { "
#define FEW "opset 17 graph g(%x:f32[6,4,5,5]) -> "

static const Case cases[] = {
    { "what is handed on would leave the cache", MANY CONVS "%y = Add(%3, %x) }", 0, 2 },
    { "what is small stays whole", FEW "(%y) { " CONVS "%y = Add(%3, %x) }", 0, 1 },
    { "nothing is handed on", MANY "%y = Relu(%x) }", 0, 1 },
    { "nobody may", MANY CONVS "%y = Add(%3, %x) }", G_MAXSIZE, 1 },
    { "parts would be single samples that are small",
      "opset 17 graph g(%x:f32[20011,32]) -> (%y) { %1 = Softmax(%x) axis=1 %2 = CumSum(%1, a:i64={1}) "
      "%y = Softmax(%2) axis=1 }",
      0, 1 },
    { "parts are as many as divide the batch",
      "opset 17 graph g(%x:f32[20000,32]) -> (%y) { %1 = Softmax(%x) axis=1 %2 = CumSum(%1, a:i64={1}) "
      "%y = Softmax(%2) axis=1 }",
      0, 8 },
    { "single samples", FEW "(%y) { " CONVS "%y = Add(%3, %x) }", 1, 6 },
    { "two at once", FEW "(%y) { " CONVS "%y = Add(%3, %x) }", 2 * 3 * 400, 3 },
    { "several results, views and pieces of one another",
      FEW "(%y, %z, %2) { " CONVS "%4 = Concat(%3, %x) axis=1 %5 = Reshape(%4, s:i64[5]={6,2,4,5,5}) "
          "%6 = Transpose(%5) perm=[0,2,1,3,4] %z = Reshape(%6, t:i64[4]={6,8,5,5}) %7 = GlobalAveragePool(%z) "
          "%y = Flatten(%7) }",
      1, 6 },
    { "samples among the channels", FEW "(%y) { " CONVS "%4 = Reshape(%3, s:i64[3]={24,5,5}) %y = Softmax(%4) axis=2 }",
      1, 6 },
    { "samples along another axis",
      FEW "(%y) { %1 = Reshape(%x, s:i64[3]={6,4,25}) %2 = Transpose(%1) perm=[1,0,2] %3 = MatMul(%2, "
          "w:f32[25,25]) %4 = Relu(%3) %y = Transpose(%4) perm=[1,0,2] }",
      1, 6 },
    { "another input is the same for all",
      "opset 17 graph g(%x:f32[6,8], %w:f32[8,8]) -> (%y) { %1 = MatMul(%x, %w) %y = Softmax(%1) axis=1 }", 1, 6 },
    { "two inputs hold samples",
      "opset 17 graph g(%x:f32[6,8], %w:f32[6,8]) -> (%y) { %1 = Mul(%x, %w) %y = Softmax(%1) axis=1 }", 1, 6 },
    { "halves", "opset 17 graph g(%x:f16[6,8]) -> (%y) { %1 = Mul(%x, h:f16={2}) %y = Softmax(%1) axis=1 }", 1, 6 },
    { "a number that is the batch",
      FEW "(%y) { %1 = Relu(%x) %s = Shape(%1) end=1 %n = Cast(%s) to=1 %y = Div(%1, %n) }", 1, 6 },
    { "results of one memory", FEW "(%y, %z) { %y = Relu(%x) %z = Reshape(%y, s:i64[2]={6,100}) }", 1, 6 },

    /* whole, since it is not the same in parts, or nobody knows */
    { "a mean over samples", FEW "(%y) { " CONVS "%4 = ReduceMean(%3) axes=[0] keepdims=1 %y = Sub(%3, %4) }", 1, 1 },
    { "a softmax over samples", FEW "(%y) { " CONVS "%y = Softmax(%3) axis=0 }", 1, 1 },
    { "samples side by side", FEW "(%y) { " CONVS "%y = Concat(%3, %x) axis=0 }", 1, 1 },
    { "products of samples",
      "opset 17 graph g(%x:f32[6,8]) -> (%y) { %1 = Relu(%x) %2 = Transpose(%1) perm=[1,0] %y = MatMul(%1, %2) }", 1,
      1 },
    { "a zero point for each sample",
      "opset 17 graph g(%x:u8[6,8]) -> (%y) { %y = MatMulInteger(%x, w:i8[8,4], z:u8[6]={1,2,3,4,5,6}) }", 1, 1 },
    { "a scale for each sample",
      "opset 17 graph g(%x:u8[6,8]) -> (%y) { %y = QLinearMatMul(%x, sa:f32[6]={1,2,3,4,5,6}, za:u8[6]={1,2,3,4,5,6}, "
      "w:i8[8,4], sb:f32={0.1}, zb:i8={0}, sy:f32={1}, zy:u8={0}) }",
      1, 1 },
    { "steps for blocks of each sample",
      "opset 21 graph g(%x:f32[6,8]) -> (%y) { %1 = Relu(%x) %2 = QuantizeLinear(%1, "
      "s:f32[6,2]={0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.1,0.11,0.12}) axis=1 block_size=4 output_dtype=3 "
      "%y = Cast(%2) to=1 }",
      1, 1 },
    { "a mask for each sample",
      "opset 23 graph g(%q:f32[6,2,4,8], %k:f32[6,2,4,8], %v:f32[6,2,4,8]) -> (%y) { %y = Attention(%q, %k, %v, "
      "m:f32[6,1,4,4]) }",
      1, 1 },
    { "a mask for all",
      "opset 23 graph g(%q:f32[6,2,4,8], %k:f32[6,2,4,8], %v:f32[6,2,4,8]) -> (%y) { %y = Attention(%q, %k, %v, "
      "m:f32[4,4]) }",
      1, 6 },
    { "a weight for each sample",
      "opset 17 graph g(%x:f32[6,4,8]) -> (%y) { %1 = Relu(%x) %y = LayerNormalization(%1, s:f32[6,1,8]) axis=2 }", 1,
      1 },
    { "an operand along the samples' axis",
      "opset 6 graph g(%x:f32[6,4,5]) -> (%y) { %1 = Relu(%x) %y = Add(%1, b:f32[6,4]) axis=0 broadcast=1 }", 1, 1 },
    { "moments of the batch",
      "opset 6 graph g(%x:f32[6,4,5]) -> (%y) { %1 = Relu(%x) %y = BatchNormalization(%1, s:f32[4], b:f32[4], "
      "c:f32[4], v:f32[4]={1,1,1,1}) is_test=0 }",
      1, 1 },
    { "elements between samples",
      FEW "(%y) { %1 = Relu(%x) %y = Resize(%1, -, z:f32[4]={1,1,2,2}) "
          "coordinate_transformation_mode='tf_half_pixel_for_nn' mode='nearest' nearest_mode='ceil' }",
      1, 1 },
    { "samples moved by a scale", FEW "(%y) { %1 = Relu(%x) %y = Resize(%1, -, z:f32[4]={1.1,1,2,2}) mode='linear' }",
      1, 1 },
    { "elements between those of a sample",
      FEW "(%y) { %1 = Relu(%x) %y = Resize(%1, -, z:f32[4]={1,1,2,2}) mode='linear' }", 1, 6 },
    { "samples that share bytes", "opset 21 graph g(%x:u4[6,5]) -> (%y) { %1 = Cast(%x) to=1 %y = Relu(%1) }", 1, 1 },
    { "a step for all",
      "opset 17 graph g(%x:f32[6,8]) -> (%y, %s, %z) { %1 = Relu(%x) %y, %s, %z = "
      "DynamicQuantizeLinear(%1) }",
      1, 1 },
    { "samples lose their place", FEW "(%y) { " CONVS "%y = Reshape(%3, s:i64[2]={4,150}) }", 1, 1 },
    { "results hold samples inside", FEW "(%y) { " CONVS "%y = Transpose(%3) perm=[1,0,2,3] }", 1, 1 },
    { "what is added differs from sample to sample", FEW "(%y) { " CONVS "%y = Add(%3, b:f32[6,1,1,1]) }", 1, 1 },
    { "a result is an input", FEW "(%y, %z) { %y = Relu(%x) %z = Reshape(%x, s:i64[2]={6,100}) }", 1, 1 },
    { "a result has no samples", FEW "(%y, %z) { %y = Relu(%x) %z = Relu(w:f32[6]) }", 1, 1 },
    { "a result is an input itself", "opset 17 graph g(%x:f32[6,8]) -> (%y, %x) { %y = Relu(%x) }", 1, 1 },
    { "numbers that are drawn",
      FEW "(%z) { %y = RandomNormalLike(%x) seed=1.0 %1 = Mul(%y, zero:f32={0}) %z = Add(%x, %1) }", 1, 1 },
};

static guint count_parts(HnSession *s, GPtrArray *in)
{
    HnTimer timer = { 0 };
    HnSessionStats stats;
    hn_session_set_timer(s, &timer);
    g_ptr_array_unref(test_run(s, in));
    hn_session_set_timer(s, NULL);
    hn_session_stats(s, &stats);
    const guint parts = stats.steps > 0 ? (guint)timer.n / stats.steps : 1;
    g_free(timer.spans);
    return parts;
}

static void check_case(const Case *c)
{
    g_autoptr(HnModel) m = test_model(c->text);
    g_autoptr(HnSession) s = test_session(
        m, &hn_backend_cpu, &(HnSessionOptions){ .threads = c->part_bytes == 0 ? 1 : 2, .part_bytes = c->part_bytes });
    g_autoptr(HnSession) judge = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    for (uint64_t seed = 1; seed <= 3; seed++) { /* the first and second inputs are fed again */
        g_autoptr(GPtrArray) in = test_inputs(s, seed % 2), got = test_run(s, in), want = test_run(judge, in);
        g_assert_cmpuint(got->len, ==, want->len);
        for (guint i = 0; i < want->len; i++)
            test_assert_close(got->pdata[i], want->pdata[i], 1e-4, 1e-3, c->what);
    }
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    const guint parts = count_parts(s, in);
    if (parts != c->parts) {
        g_test_message("%s: %u parts, not %u", c->what, parts, c->parts);
        g_test_fail();
    }
}

static void test_cases(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        check_case(&cases[i]);
}

/* Memory is that of a part, beside the results of all samples, and a limit of the budget holds for both. */
static void test_memory(void)
{
    HnSessionStats whole, cut;
    g_autoptr(HnModel) m = test_model(cases[0].text);
    for (int i = 0; i < 2; i++) {
        const HnSessionOptions o = { .threads = 1, .part_bytes = i == 0 ? G_MAXSIZE : 0 };
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &o);
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        g_ptr_array_unref(test_run(s, in));
        hn_session_stats(s, i == 0 ? &whole : &cut);
    }
    g_assert_cmpuint(cut.arena_bytes * 3, <=, 2 * whole.arena_bytes);
    g_assert_cmpuint(cut.output_bytes, ==, whole.output_bytes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parts/cases", test_cases);
    g_test_add_func("/parts/memory", test_memory);
    return g_test_run();
}
