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
    f->numbers += s->kernel != NULL && strcmp(s->kernel->name, "cpu.int8_numbers") == 0;
    if (s->op == NULL || s->kernel == NULL)
        return;
    f->products += strcmp(s->op->name, "QuantConv") == 0 || strcmp(s->op->name, "QuantMatMul") == 0;
    f->f32_products += s->op->quant.kind == HN_Q_WEIGHTED;
}

typedef struct {
    const char *kernel;
    int found;
} Named;

static void count_named(const HnStep *s, int depth, gpointer data)
{
    Named *n = data;
    (void)depth;
    n->found += s->kernel != NULL && strcmp(s->kernel->name, n->kernel) == 0;
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

/* So many products, no numbers, and so many steps on the kernel. */
static void check_steps(const char *text, int products, const char *kernel, int steps)
{
    check(text, products, 0);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 5);
    g_autoptr(GPtrArray) out = test_run(s, in);
    Named n = { kernel, 0 };
    hn_session_foreach_step(s, count_named, &n);
    if (n.found != steps) {
        g_test_message("%d steps on %s instead of %d: %s", n.found, kernel, steps, text);
        g_test_fail();
    }
}

static void test_conv(void)
{
    check(X QUANTIZED WEIGHTS CONV OUT("%c"), 1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Relu(%c) " OUT("%r"), 1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Clip(%c, l:f32={-3}, h:f32={20}) " OUT("%r"), 1, 0);
    check(X QUANTIZED WEIGHTS CONV "%r = Clip(%c, l:f32={20}, h:f32={-3}) " OUT("%r"), 1, 0); /* -3 throughout */
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
    check(X QUANTIZED "%e = Neg(%d) %f = MaxPool(%e) kernel_shape=[2,2] " OUT("%f"), 0, 0); /* falls: quantized first */
    check(X QUANTIZED "%e = Sin(%d) %y = MaxPool(%e) kernel_shape=[2,2] }", 0, 1);
    check(X QUANTIZED "%e = Mul(%d, two:f32={2}) %f = Sub(one:f32={1}, %e) " OUT("%f"), 0, 0);
}

/* What a step's bytes are exchanged by, of any number of channels: a line, a bent one, one that falls. */
static void test_exchanged(void)
{
    static const int channels[] = { 1, 3, 8, 15, 16, 17, 24, 33, 58 };
    static const char *const functions[] = { "Relu(%e)", "LeakyRelu(%e) alpha=0.25", "Neg(%e)",
                                             "HardSigmoid(%e) alpha=0.125 beta=0.5" };
    static const struct {
        const char *text; /* makes %c of %d, %w, and %t, which has another scale */
        int kernel;       /* of a product; 0: none */
        int tables;       /* steps of their own */
    } makers[] = {
        { "Conv(%d, %w) pads=[1,1,1,1]", 3, 0 },
        { "Conv(%d, %w) strides=[2,1]", 1, 0 },
        { "MaxPool(%d) kernel_shape=[3,3] strides=[2,2]", 0, 1 }, /* exchanged first */
        { "AveragePool(%d) kernel_shape=[3,3] strides=[1,2]", 0, 0 },
        { "Add(%d, %t)", 0, 0 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(channels); i++)
        for (guint k = 0; k < G_N_ELEMENTS(functions); k++)
            for (guint j = 0; j < G_N_ELEMENTS(makers); j++) {
                const int c = channels[i], kernel = makers[j].kernel;
                g_autofree char *head = g_strdup_printf(
                    "opset 17 graph g(%%x:f32[1,%d,9,11]) -> (%%y) { %%w = DequantizeLinear(wq:i8[%d,16,%d,%d], "
                    "ws:f32={0.015625}, wz:i8={0}) ",
                    kernel > 0 ? 16 : c, c, kernel, kernel);
                g_autofree char *text = g_strconcat(
                    head, QUANTIZED,
                    "%tq = QuantizeLinear(%x, ts:f32={0.015625}, tz:u8={99}) %t = DequantizeLinear(%tq, ts, tz) %c = ",
                    makers[j].text,
                    " %aq = QuantizeLinear(%c, as:f32={0.25}, az:u8={90}) %e = DequantizeLinear(%aq, as, az) %f = ",
                    functions[k], " %p = QuantizeLinear(%f, ",
                    k % 2 == 0 ? "ps:f32={0.3125}, pz:u8={0}" : "ps:f32={0.1875}, pz:i8={3}",
                    ") %y = DequantizeLinear(%p, ps, pz) }", NULL);
                check_steps(text, kernel > 0, "cpu.int8_table", makers[j].tables);
            }
}

/* ... with a filter for each channel: of blocks of channels that lie on each other, of strips of them. */
static void test_exchanged_depthwise(void)
{
    static const int channels[] = { 8, 15, 24, 33, 58, 200 };
    for (guint i = 0; i < G_N_ELEMENTS(channels); i++)
        for (int stride = 1; stride <= 2; stride++) {
            const int c = channels[i];
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:f32[1,%d,9,141]) -> (%%y) { %%w = DequantizeLinear(wq:i8[%d,1,3,3], "
                "ws:f32={0.015625}, wz:i8={0}) %s%%c = Conv(%%d, %%w) group=%d pads=[1,1,1,1] "
                "strides=[%d,%d] %%aq = QuantizeLinear(%%c, as:f32={0.25}, az:u8={90}) "
                "%%e = DequantizeLinear(%%aq, as, az) %%f = LeakyRelu(%%e) alpha=0.25 "
                "%%p = QuantizeLinear(%%f, ps:f32={0.1875}, pz:i8={3}) %%y = DequantizeLinear(%%p, ps, pz) }",
                c, c, QUANTIZED, c, stride, stride);
            check_steps(text, 1, "cpu.int8_table", 0);
        }
}

#define SIGMOID                                                                                          \
    "%g = HardSigmoid(%c) alpha=0.125 beta=0.5 %gq = QuantizeLinear(%g, gs:f32={0.0078125}, gz:u8={0}) " \
    "%h = DequantizeLinear(%gq, gs, gz) "
#define SUMS                                                                                        \
    WEIGHTS "%a = Conv(%d, %w) pads=[1,1,1,1] %aq = QuantizeLinear(%a, as:f32={0.25}, az:u8={90}) " \
            "%c = DequantizeLinear(%aq, as, az) "

/* A function of bytes and of another function of them, quantized in between, is one function, which the product makes
 * at once; several who want what was quantized get it once. */
static void test_composed(void)
{
    const char *table = "cpu.int8_table";
    check_steps(X QUANTIZED SUMS SIGMOID "%m = Mul(%c, %h) " OUT("%m"), 1, table, 0);
    check_steps(X QUANTIZED SUMS SIGMOID "%m = Mul(%c, %h) %k = MaxPool(%m) kernel_shape=[2,2] " OUT("%k"), 1, table,
                0);
    check_steps(X QUANTIZED SUMS SIGMOID "%i = DequantizeLinear(%gq, gs, gz) %k = AveragePool(%h) kernel_shape=[2,2] "
                                         "%o = AveragePool(%i) kernel_shape=[1,1] %e = AveragePool(%c) "
                                         "kernel_shape=[2,2] strides=[3,3] %n = ReduceMean(%e) axes=[2,3] "
                                         "%m = ReduceMean(%k) axes=[2,3] %p = ReduceMean(%o) axes=[2,3] "
                                         "%t = Add(%m, %n) %y = Add(%t, %p) }",
                1, table, 1);
    check_steps(X QUANTIZED SUMS SIGMOID "%k = Concat(%c, %h) axis=1 " OUT("%k"), 1, table, 2);
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
    check(X QUANTIZED "%e = Pad(%d, n:i64[8]={0,0,1,2,0,3,0,1}) " OUT("%e"), 0, 0);
    check(X QUANTIZED "%e = Pad(%d, n:i64[8]={0,0,1,2,0,3,0,1}, fill:f32={1.5}) " OUT("%e"), 0, 1); /* no byte is 1.5 */
    check(X QUANTIZED "%f = Sin(%d) %e = Pad(%f, n:i64[8]={0,1,1,2,0,3,0,1}, fill:f32={1}) " OUT("%e"), 0, 1);
    check(X QUANTIZED "%e = Pad(%d, n:i64[8]={0,0,1,2,0,3,0,1}) mode='reflect' " OUT("%e"), 0, 0);
    check(X QUANTIZED "%a, %b = Split(%d, n:i64[2]={4,12}) axis=1 %p = QuantizeLinear(%b, xs, xz) "
                      "%y = DequantizeLinear(%p, xs, xz) %z = QuantizeLinear(%a, xs, xz) }",
          0, 0);
}

static const HnKernel *const *but_concat(const HnOp *op)
{
    return strcmp(op->name, "Concat") == 0 ? NULL : hn_backend_cpu.kernels(op);
}

/* Convolutions make bytes in steps of a concatenation's result, of which the backend then has no kernel. */
static void test_no_concat(void)
{
    HnBackend without = hn_backend_cpu;
    without.kernels = but_concat;
    g_autoptr(HnModel) m =
        test_model(X QUANTIZED WEIGHTS CONV "%cq = QuantizeLinear(%c, cs:f32={0.25}, cz:u8={90}) "
                                            "%ce = DequantizeLinear(%cq, cs, cz) %r = Relu(%ce) "
                                            "%v = DequantizeLinear(vq:i8[24,16,3,3], vs:f32={0.03125}) "
                                            "%f = Conv(%d, %v) pads=[1,1,1,1] "
                                            "%fq = QuantizeLinear(%f, fs:f32={0.125}, fz:u8={80}) "
                                            "%fe = DequantizeLinear(%fq, fs, fz) %s = Relu(%fe) "
                                            "%k = Concat(%r, %s) axis=1 " OUT("%k"));
    g_autoptr(HnSession) s = test_session(m, &without, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 5);
    g_autoptr(GPtrArray) got = test_run(s, in);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    test_assert_close(got->pdata[0], want->pdata[0], 0, 1e-6, "without Concat");
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

/* A sum's addend of any shape: only a list of channels is a bias. */
static void test_addends(void)
{
    static const char *const shapes[] = {
        "f32", "f32[1]", "f32[20]", "f32[1,20]", "f32[7,1]", "f32[7,20]", "f32[1,1]"
    };
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_autofree char *text =
            g_strdup_printf("opset 17 graph g(%%x:f32[7,36]) -> (%%y) { %%q = QuantizeLinear(%%x, xs:f32={0.0078125}, "
                            "xz:u8={121}) %%d = DequantizeLinear(%%q, xs, xz) %%w = DequantizeLinear(wq:i8[20,36], "
                            "ws:f32={0.015625}, wz:i8={0}) %%y = Gemm(%%d, %%w, b:%s) transB=1 }",
                            shapes[i]);
        test_preferring(NULL, text, 1, 0, 1e-6);
    }
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

/* Of the step itself, or of a node in it. */
static void count_op(const HnStep *s, int depth, gpointer data)
{
    Named *n = data;
    (void)depth;
    n->found += s->op != NULL && strcmp(s->op->name, n->kernel) == 0;
    for (int i = 0; s->group != NULL && i < s->group->n; i++)
        n->found += s->group->node[i] != s->node && strcmp(s->group->node[i]->op->name, n->kernel) == 0;
}

/* That many steps run on the kernel, and no numbers are made of bytes. */
static void check_named(const char *text, const char *kernel, int steps)
{
    check_steps(text, 0, kernel, steps);
}

#define OTHER "%r = QuantizeLinear(%x, rs:f32={0.015625}, rz:u8={60}) %e = DequantizeLinear(%r, rs, rz) "
#define PIXEL                                                                             \
    "%g = ReduceMax(%x) axes=[2,3] %r = QuantizeLinear(%g, rs:f32={0.03125}, rz:i8={3}) " \
    "%e = DequantizeLinear(%r, rs, rz) "
#define PLACE                                                                           \
    "%g = ReduceMax(%x) axes=[1] %r = QuantizeLinear(%g, rs:f32={0.03125}, rz:i8={3}) " \
    "%e = DequantizeLinear(%r, rs, rz) "
#define SMALL(v) "%p = QuantizeLinear(" v ", ps:f32={0.0625}, pz:i8={-10}) %y = DequantizeLinear(%p, ps, pz) }"

/* Two tensors of bytes, or one with numbers. */
static void test_pairs(void)
{
    const char *kernel = "cpu.quantbinary";
    check_named(X QUANTIZED OTHER "%s = Add(%d, %e) " SMALL("%s"), kernel, 1);
    check_named(X QUANTIZED OTHER "%s = Sub(%e, %d) %t = Relu(%s) " SMALL("%t"), kernel, 1);
    check_named(X QUANTIZED OTHER "%s = Mul(%e, %d) %t = Clip(%s, l:f32={-0.25}, h:f32={0.5}) " SMALL("%t"), kernel, 1);
    check_named(X QUANTIZED OTHER "%y = Add(%e, %d) }", kernel, 1);
    check_named(X QUANTIZED OTHER "%f = Relu(%d) %s = Add(%f, %e) %y = Relu(%s) }", kernel, 1);
    check_named(X QUANTIZED "%s = Add(%d, %d) " SMALL("%s"), kernel, 0); /* a function of one */
    check_named(X QUANTIZED PIXEL "%s = Mul(%d, %e) " SMALL("%s"), kernel, 1);
    check_named(X QUANTIZED PIXEL "%s = Sub(%e, %d) " SMALL("%s"), kernel, 1);
    check_named(X QUANTIZED PLACE "%s = Mul(%d, %e) " SMALL("%s"), kernel, 1);
    check_named(X QUANTIZED PLACE "%s = Sub(%d, %e) %t = Relu(%s) " SMALL("%t"), kernel, 1);
    check_named(X QUANTIZED "%s = Add(%d, c:f32[16,1,1]={1,2,3,4,5,6,7,8,-1,-2,-3,-4,-5,-6,-7,-8}) " SMALL("%s"),
                kernel, 1);
    check_named(X QUANTIZED "%g = ReduceMax(%x) axes=[2,3] %s = Sub(%g, %d) " SMALL("%s"), kernel, 1);
    /* results within one another's memory */
    check_named(X QUANTIZED OTHER "%s = Add(%d, %e) %p = QuantizeLinear(%s, ps:f32={0.0625}, pz:i8={-10}) "
                                  "%f = DequantizeLinear(%p, ps, pz) %t = Mul(%d, %e) %o = QuantizeLinear(%t, ps, pz) "
                                  "%h = DequantizeLinear(%o, ps, pz) %k = Concat(%f, %h) axis=1 "
                                  "%i = QuantizeLinear(%k, ps, pz) %y = DequantizeLinear(%i, ps, pz) }",
                kernel, 2);
}

static void test_means(void)
{
    const char *kernel = "cpu.quantpool";
    check_named(X QUANTIZED "%s = GlobalAveragePool(%d) %y = Flatten(%s) }", kernel, 1);
    check_named(X QUANTIZED "%s = ReduceMean(%d) axes=[-1,2] keepdims=0 %t = Relu(%s) " SMALL("%t"), kernel, 1);
    check_named(X QUANTIZED "%s = ReduceMean(%d) axes=[2,3] " SMALL("%s"), kernel, 1);
    check(X QUANTIZED "%s = ReduceMean(%d) axes=[2] " SMALL("%s"), 0, 1);
    check_named(X QUANTIZED "%s = AveragePool(%d) kernel_shape=[2,2] strides=[2,2] " SMALL("%s"), kernel, 1);
    check_named(X QUANTIZED
                "%f = Relu(%d) %s = AveragePool(%f) kernel_shape=[4,4] pads=[1,1,1,1] count_include_pad=1 " SMALL("%s"),
                kernel, 1);
}

#define DYNAMIC "%q, %s, %z = DynamicQuantizeLinear(%x) "
#define INTEGER "%i = ConvInteger(%q, wq:u8[24,16,3,3], %z, wz:u8={3}) pads=[1,1,1,1] %f = Cast(%i) to=1 "

/* That many steps on the kernel, with what makes numbers of their sums. */
static void check_integer(const char *text, const char *kernel, int steps)
{
    for (int threads = 1; threads <= 2; threads++) {
        Named on = { kernel, 0 }, casts = { "Cast", 0 };
        TestCount c = test_preferring(NULL, text, threads, 0, 1e-6);
        g_autoptr(HnModel) m = test_model(text);
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        g_autoptr(GPtrArray) in = test_inputs(s, 5);
        g_autoptr(GPtrArray) out = test_run(s, in);
        hn_session_foreach_step(s, count_named, &on);
        hn_session_foreach_step(s, count_op, &casts);
        if (c.ref > 0 || on.found != steps || (casts.found == 0) != (steps > 0)) {
            g_test_message("%d steps on %s instead of %d, %d casts: %s", on.found, kernel, steps, casts.found, text);
            g_test_fail();
        }
    }
}

/* Integer operators with what makes numbers of their sums are one step, whose scale may come from the data. */
static void test_integer(void)
{
    const char *conv = "cpu.int8_conv";
    check_integer(X DYNAMIC INTEGER "%t = Mul(%s, ws:f32={0.5}) %y = Mul(%f, %t) }", conv, 1);
    check_integer(X DYNAMIC "%t = Mul(ws:f32[1,24,1,1]={1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8}, %s) " INTEGER
                            "%m = Mul(%t, %f) %b = Add(%m, bias:f32[24,1,1]) %y = Relu(%b) }",
                  conv, 1);
#define STATIC                                                                                             \
    "%q = QuantizeLinear(%x, xs:f32={0.0078125}, xz:i8={-12}) %i = ConvInteger(%q, wq:i8[24,16,3,3], xz) " \
    "%f = Cast(%i) to=1 %m = Mul(%f, ms:f32={0.0078125}) "
    const char *pooled = X STATIC "%r = Clip(%m, l:f32={0}, h:f32={6}) %k = MaxPool(%r) kernel_shape=[2,2] " OUT("%k");
    check_integer(pooled, conv, 1);
    check_integer(pooled, "cpu.int8_maxpool", 1); /* what is quantized in the end is so from the start */
    check_integer(X STATIC "%k = MaxPool(%m) kernel_shape=[2,2] %r = Clip(%k, l:f32={-0.5}, h:f32={0.5}) " OUT("%r"),
                  "cpu.int8_maxpool", 1);
    check_integer("opset 17 graph g(%x:f32[7,36]) -> (%y) { " DYNAMIC "%i = MatMulInteger(%q, wq:i8[36,20], %z) "
                  "%f = Cast(%i) to=1 %t = Mul(%s, ws:f32[20]={1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8,1,2,4,8}) %m = Mul(%f, "
                  "%t) %y = Add(bias:f32[20], %m) }",
                  "cpu.int8_matmul", 1);
    /* a scale by pixels; somebody else who looks at the sums */
    check_integer(X DYNAMIC INTEGER "%y = Mul(%f, ms:f32[9,1]) }", "cpu.int8_table", 0);
    check_integer("opset 17 graph g(%x:f32[1,16,9,11]) -> (%y, %h) { " DYNAMIC INTEGER
                  "%y = Mul(%f, ms:f32={0.5}) %h = Cast(%i) to=7 }",
                  "cpu.int8_table", 0);
}

/* One weight of several products, each with zero points of its own: what is packed is not the same. */
static void test_shared(void)
{
    static const char *const texts[] = {
        "opset 13 graph g(%x:u8[1,8,9,9]) -> (%a, %b, %c) { w:u8[16,8,3,3] %a = ConvInteger(%x, w, z:u8={3}, o:u8={2}) "
        "%b = ConvInteger(%x, w, z, p:u8={5}) %c = QLinearConv(%x, s:f32={0.01}, z, w, s, q:u8={9}, s, z) }",
        "opset 13 graph g(%x:u8[1,8,9,9]) -> (%a, %b) { w:i8[8,1,3,3] %a = QLinearConv(%x, s:f32={0.1}, z:u8={3}, w, "
        "s, "
        "p:i8={1}, s, z) group=8 %b = QLinearConv(%x, s, z, w, s, q:i8={-2}, s, z) group=8 }",
        "opset 13 graph g(%x:u8[6,40]) -> (%a, %b, %c) { w:u8[40,24] s:f32={0.01} z:u8={3} "
        "%a = QLinearMatMul(%x, s, z, w, s, p:u8={1}, t:f32={0.1}, z) "
        "%b = QLinearMatMul(%x, s, z, w, s, q:u8={130}, t, z) %c = MatMulInteger(%x, w, z, p) }",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(HnModel) m = test_model(texts[i]);
        HnSession *ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ 0 });
        HnSession *cpu = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ 0 });
        g_autoptr(GPtrArray) in = test_inputs(ref, 3);
        g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(cpu, in);
        for (guint k = 0; k < want->len; k++)
            test_assert_close(got->pdata[k], want->pdata[k], 0, 1, texts[i]);
        hn_session_free(ref);
        hn_session_free(cpu);
    }
}

/* A key of attention as exporters write it: its Reshape goes behind the Transpose, and bytes behind both, whose nodes
 * stand for nodes that the model never had. */
static void test_turned_key(void)
{
    static const char text[] =
        "opset 17 graph g(%x:f32[1,6,16], %a:f32[1,2,6,8]) -> (%y) { " QUANTIZED
        "%w = DequantizeLinear(wq:i8[16,16], ws:f32={0.015625}, wz:i8={0}) %m = MatMul(%d, %w) "
        "%mq = QuantizeLinear(%m, ms:f32={0.25}, mz:u8={128}) %md = DequantizeLinear(%mq, ms, mz) "
        "%r = Reshape(%md, s1:i64[4]={1,6,2,8}) %t = Transpose(%r) perm=[0,2,1,3] %f = Reshape(%t, s2:i64[3]={2,6,8}) "
        "%u = Transpose(%f) perm=[0,2,1] %h = Reshape(%u, s3:i64[4]={1,2,8,6}) %k = Mul(%h, half:f32={0.5}) "
        "%kq = QuantizeLinear(%k, ks:f32={0.125}, kz:u8={128}) %kd = DequantizeLinear(%kq, ks, kz) "
        "%y = MatMul(%a, %kd) }";
    test_preferring(NULL, text, 1, 1e-5, 1e-5);
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bytes/conv", test_conv);
    g_test_add_func("/bytes/signed", test_signed);
    g_test_add_func("/bytes/exchanged_depthwise", test_exchanged_depthwise);
    g_test_add_func("/bytes/tables", test_tables);
    g_test_add_func("/bytes/exchanged", test_exchanged);
    g_test_add_func("/bytes/composed", test_composed);
    g_test_add_func("/bytes/moves", test_moves);
    g_test_add_func("/bytes/no_concat", test_no_concat);
    g_test_add_func("/bytes/matmul", test_matmul);
    g_test_add_func("/bytes/addends", test_addends);
    g_test_add_func("/bytes/numbers", test_numbers);
    g_test_add_func("/bytes/full_range", test_full_range);
    g_test_add_func("/bytes/pairs", test_pairs);
    g_test_add_func("/bytes/means", test_means);
    g_test_add_func("/bytes/integer", test_integer);
    g_test_add_func("/bytes/shared", test_shared);
    g_test_add_func("/qdq/turned-key", test_turned_key);
    return g_test_run();
}
