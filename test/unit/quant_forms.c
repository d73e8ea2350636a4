/* Forms that a plan may take: which node can take which, operators on integers, dynamic ones, tied weights. */
#include "quant/prepare.h"
#include "quant/qdq.h"
#include "quant/qoperator.h"
#include "run_model.h"

static HnModel *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = test_model(text);
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_assert_no_error(error);
    return m;
}

static void count_op(HnNode *n, gpointer data)
{
    g_ptr_array_add(data, (gpointer)(guintptr)n->op_type);
}

static guint count(HnModel *m, const char *op)
{
    g_autoptr(GPtrArray) ops = g_ptr_array_new();
    guint n = 0;
    hn_graph_foreach_node(m->graph, count_op, ops);
    for (guint i = 0; i < ops->len; i++)
        n += g_str_equal(ops->pdata[i], op);
    return n;
}

static const HnNode *find(HnModel *m, const char *op)
{
    for (guint i = 0; i < m->graph->nodes->len; i++)
        if (g_str_equal(((const HnNode *)m->graph->nodes->pdata[i])->op_type, op))
            return m->graph->nodes->pdata[i];
    return NULL;
}

/* Every candidate in the form that fits it best, every range [lo, 3]. */
static void apply(HnModel *m, HnQuantForm form, const HnQuantOptions *o, double lo)
{
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(o);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    g_autoptr(GError) error = NULL;
    HnQuantLog log;
    for (guint i = 0; i < nodes->len; i++)
        hn_quant_plan_set_form(p, hn_node_out(nodes->pdata[i], 0)->name, hn_quant_form_fit(nodes->pdata[i], form, o));
    hn_quant_spread(p, m);
    g_autoptr(GPtrArray) values = hn_quant_wanted(p, m);
    for (guint i = 0; i < values->len; i++)
        hn_quant_plan_set_span(p, ((const HnValue *)values->pdata[i])->name, lo, 3);
    g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
    g_assert_no_error(error);
}

static HnTensor *run_model(HnModel *m)
{
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GError) error = NULL;
    int64_t dims[HN_MAX_RANK];
    const HnType *t = hn_session_input(s, 0)->type;
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i].n;
    g_autoptr(HnTensor) x = test_random(HN_F32, t->rank, dims, 5);
    HnTensor *y = NULL;
    g_assert_true(hn_session_run(s, &x, &y, &error));
    g_assert_no_error(error);
    return y;
}

/* Two models make the same of the same input but for a share of the largest number; not the very same. */
static void check_near(HnModel *a, HnModel *b, double most)
{
    g_autoptr(HnTensor) want = run_model(a), got = run_model(b);
    double largest = 0, worst = 0;
    g_assert_cmpint(want->n, ==, got->n);
    for (int64_t i = 0; i < want->n; i++) {
        largest = fmax(largest, fabs(hn_tensor_get_f64(want, i)));
        worst = fmax(worst, fabs(hn_tensor_get_f64(want, i) - hn_tensor_get_f64(got, i)));
    }
    g_assert_cmpfloat(largest, >, 0.1);
    g_assert_cmpfloat(worst, <=, most * largest);
}

/* Against the model as it was. */
static void check_form(const char *text, HnQuantForm form, const HnQuantOptions *o, double most)
{
    g_autoptr(HnModel) f32 = parse(text), m = parse(text);
    apply(m, form, o, 0);
    check_near(f32, m, most);
}

/* Operators on integers against the same between QuantizeLinear and DequantizeLinear: sums that lie between two steps
 * may be rounded to either. */
static void check_integers(const char *text, const HnQuantOptions *o, double lo)
{
    HnQuantOptions qdq = *o;
    g_autoptr(HnModel) a = parse(text), b = parse(text);
    qdq.integers = FALSE;
    apply(a, HN_FORM_INT8, &qdq, lo);
    apply(b, HN_FORM_INT8, o, lo);
    check_near(a, b, 0.02);
}

static const HnQuantOptions usual = { .activations = HN_U8, .reduced = TRUE, .block = 32 };

/* --- which form --------------------------------------------------------------------------------------------------- */

static HnQuantForm fit(const char *text, HnQuantForm wanted)
{
    g_autoptr(HnModel) m = parse(text);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    g_assert_cmpuint(nodes->len, ==, 1);
    return hn_quant_form_fit(nodes->pdata[0], wanted, &usual);
}

static void test_fit(void)
{
    static const struct {
        const char *text;
        HnQuantForm wanted, got;
    } cases[] = {
        { "opset 17 %y = Conv(%x:f32[1,64,8,8], w:f32[8,64,3,3])", HN_FORM_W4, HN_FORM_W4 },
        { "opset 17 %y = Conv(%x:f32[1,48,8,8], w:f32[8,48,3,3])", HN_FORM_W4, HN_FORM_W4 },
        { "opset 17 %y = Conv(%x:f32[1,8,8,8], w:f32[8,8,3,3])", HN_FORM_W4, HN_FORM_W8 },
        { "opset 17 %y = Conv(%x:f32[1,37,8,8], w:f32[8,37,3,3])", HN_FORM_W4, HN_FORM_W8 },
        { "opset 17 %y = Conv(%x:f32[1,3,8,8], w:f32[1,3,3,3])", HN_FORM_W4, HN_FORM_F32 },
        { "opset 17 %y = Conv(%x:f32[1,3,8,8], w:f32[1,3,3,3])", HN_FORM_INT8, HN_FORM_INT8 },
        { "opset 17 %y = Gather(w:f32[128,64], %i:i64[3])", HN_FORM_INT8, HN_FORM_W8 },
        { "opset 17 %y = Gather(w:f32[128,64], %i:i64[3])", HN_FORM_DYNAMIC, HN_FORM_W8 },
        { "opset 17 %y = Gather(w:f32[128,64], %i:i64[3])", HN_FORM_W4, HN_FORM_W4 },
        { "opset 17 %y = ConvTranspose(%x:f32[1,16,8,8], w:f32[16,8,3,3])", HN_FORM_DYNAMIC, HN_FORM_W8 },
        { "opset 17 %y = ConvTranspose(%x:f32[1,16,8,8], w:f32[16,8,3,3])", HN_FORM_W4, HN_FORM_W4 },
        { "opset 17 %y = MatMul(%x:f32[3,64], w:f32[64,8])", HN_FORM_DYNAMIC, HN_FORM_DYNAMIC },
        { "opset 17 %y = MatMul(%x:f32[3,256], w:f32[256])", HN_FORM_W4, HN_FORM_W8 },
        { "opset 17 %y = MatMul(%x:f32[2,3,64], w:f32[2,64,8])", HN_FORM_W4, HN_FORM_W8 },
        { "opset 17 %y = LSTM(%x:f32[5,1,16], w:f32[1,32,16], r:f32[1,32,8]) hidden_size=8", HN_FORM_W4, HN_FORM_W8 },
        { "opset 17 %y = LSTM(%x:f32[5,1,16], w:f32[1,32,16], r:f32[1,32,8]) hidden_size=8", HN_FORM_INT8, HN_FORM_W8 },
        { "opset 17 %y = GRU(%x:f32[5,1,16], w:f32[1,24,16], r:f32[1,24,8]) hidden_size=8", HN_FORM_DYNAMIC,
          HN_FORM_W8 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].text);
        g_assert_cmpint(fit(cases[i].text, cases[i].wanted), ==, cases[i].got);
    }
    g_assert_cmpint(hn_quant_block(64, 32), ==, 32);
    g_assert_cmpint(hn_quant_block(48, 32), ==, 24);
    g_assert_cmpint(hn_quant_block(16, 128), ==, 16);
    g_assert_cmpint(hn_quant_block(70, 32), ==, 0);
}

/* A plan from a file may ask for what a node cannot take. */
static void test_unfit(void)
{
    static const char *const texts[] = { "opset 21 %y = MatMul(%x:f32[3,37], w:f32[37,8])",
                                         "opset 21 %y = MatMul(%x:f32[3,256], w:f32[256])",
                                         "opset 21 %y = Gather(w:f32[128,64], %i:i64[3])",
                                         "opset 21 %y = ConvTranspose(%x:f32[1,16,8,8], w:f32[16,8,3,3])" };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        for (int form = HN_FORM_W8; form <= HN_FORM_DYNAMIC; form++) {
            g_autoptr(HnModel) m = parse(texts[i]);
            g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&usual);
            g_autoptr(GError) error = NULL;
            HnQuantLog log;
            hn_quant_plan_set_form(p, "y", (HnQuantForm)form);
            g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
            g_assert_no_error(error);
            g_assert_true(hn_graph_infer(m->graph, TRUE, &error));
            g_assert_no_error(error);
        }
}

static void test_check(void)
{
    g_autoptr(GError) error = NULL;
    HnQuantOptions o = { .activations = HN_I8, .integers = TRUE };
    g_assert_false(hn_quant_check(&o, FALSE, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    o.per_tensor = TRUE;
    g_assert_true(hn_quant_check(&o, FALSE, &error));
    o.integers = FALSE;
    g_assert_false(hn_quant_check(&o, TRUE, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    o.activations = HN_U8;
    g_assert_true(hn_quant_check(&o, TRUE, &error));
    g_assert_no_error(error);
}

/* --- operators on integers ---------------------------------------------------------------------------------------- */

static const char chain[] = "opset 17\n"
                            "%1 = Conv(%x:f32[1,3,9,9], w:f32[8,3,3,3], b:f32[8])\n"
                            "%2 = Relu(%1)\n"
                            "%3 = MaxPool(%2) kernel_shape=[2,2]\n"
                            "%4 = Transpose(%3) perm=[0,1,3,2]\n"
                            "%5 = Conv(%4, v:f32[4,8,1,1], c:f32[4])\n"
                            "%y = Tanh(%5)\n";

static void test_linear(void)
{
    const HnQuantOptions o = { .activations = HN_U8, .per_tensor = TRUE, .integers = TRUE };
    g_autoptr(HnModel) m = parse(chain);
    apply(m, HN_FORM_INT8, &o, 0);
    g_assert_cmpuint(count(m, "QLinearConv"), ==, 1); /* the second one's result stays f32 */
    g_assert_cmpuint(count(m, "ConvInteger"), ==, 1);
    g_assert_cmpuint(count(m, "QuantizeLinear"), ==, 1);
    g_assert_cmpuint(count(m, "DequantizeLinear"), ==, 0);
    g_assert_cmpuint(count(m, "Relu") + count(m, "Clip"), ==, 0); /* integers end at 0 as it is */
    const HnNode *conv = find(m, "ConvInteger");
    g_assert_cmpint(hn_node_in(conv, 1)->weight->dtype, ==, HN_U8);
    g_assert_cmpint(hn_tensor_get_i64(hn_node_in(conv, 3)->weight, 0), ==, 128);
    g_assert_cmpint(hn_node_in(conv, 3)->weight->ndim, ==, 0);
    check_integers(chain, &o, 0);
}

/* Where integers go below 0, what Relu did is left to do. */
static void test_limits(void)
{
    HnQuantOptions o = { .activations = HN_U8, .per_tensor = TRUE, .integers = TRUE };
    g_autoptr(HnModel) m = parse(chain);
    apply(m, HN_FORM_INT8, &o, -1);
    const HnNode *clip = find(m, "Clip");
    g_assert_nonnull(clip);
    g_assert_cmpint(hn_tensor_get_i64(hn_node_in(clip, 1)->weight, 0), ==, 64); /* of [-1, 3] */
    g_assert_cmpint(hn_tensor_get_i64(hn_node_in(clip, 2)->weight, 0), ==, 255);
    g_assert_cmpuint(count(m, "Relu"), ==, 0);
    check_integers(chain, &o, -1);
    o.activations = HN_I8;
    o.symmetric = TRUE;
    check_integers(chain, &o, -3);
}

static void test_channels(void)
{
    const HnQuantOptions o = { .activations = HN_U8, .integers = TRUE };
    g_autoptr(HnModel) m = parse(chain);
    apply(m, HN_FORM_INT8, &o, 0);
    g_assert_cmpuint(count(m, "QLinearConv"), ==, 0);
    g_assert_cmpuint(count(m, "ConvInteger"), ==, 2);
    g_assert_cmpuint(count(m, "QuantizeLinear"), ==, 2);
    const HnNode *mul = find(m, "Mul");
    const HnTensor *scale = hn_node_in(mul, 1)->weight;
    g_assert_cmpint(scale->ndim, ==, 4);
    g_assert_cmpint(scale->dims[1], ==, scale->n);
    check_integers(chain, &o, 0);
}

/* QuantizeLinear and DequantizeLinear of somebody else: a zero point of the weights, none of the bias' list, one list
 * of zero points that no single one stands for. */
static void test_foreign(void)
{
    static const char text[] = "opset 17\n"
                               "%1 = DequantizeLinear(w:u8[4,2,3,3]=fill(1,0,255), ws:f32={0.01}, wz:u8={100})\n"
                               "%2 = QuantizeLinear(%x:f32[1,2,9,9], xs:f32={0.01}, xz:u8={120})\n"
                               "%3 = DequantizeLinear(%2, xs, xz)\n"
                               "%4 = DequantizeLinear(b:i32[4]={100,-2000,5000,0}, bs:f32={0.0001})\n"
                               "%5 = Conv(%3, %1, %4)\n"
                               "%6 = DequantizeLinear(v:i8[4,4,1,1]=fill(2,-99,99), vs:f32[4]={0.01,0.02,0.01,0.02}, "
                               "vz:i8[4]={0,1,0,0}) axis=0\n"
                               "%7 = QuantizeLinear(%5, ys:f32={0.04}, yz:u8={99})\n"
                               "%8 = DequantizeLinear(%7, ys, yz)\n"
                               "%y = Conv(%8, %6)\n";
    g_autoptr(HnModel) a = parse(text), b = parse(text);
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_quant_make_integers(b, NULL, &error));
    g_assert_true(hn_model_verify(b, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count(b, "QLinearConv"), ==, 1);
    g_assert_cmpuint(count(b, "Conv"), ==, 1); /* the second */
    g_assert_cmpuint(count(b, "ConvInteger"), ==, 0);
    check_near(a, b, 0.02);

    static const char last[] = "opset 17\n"
                               "%1 = DequantizeLinear(w:u8[32,8]=fill(1,0,255), ws:f32={0.01}, wz:u8={100})\n"
                               "%2 = QuantizeLinear(%x:f32[3,32], xs:f32={0.01}, xz:u8={120})\n"
                               "%3 = DequantizeLinear(%2, xs, xz)\n"
                               "%y = MatMul(%3, %1)\n";
    g_autoptr(HnModel) c = parse(last), d = parse(last);
    g_assert_true(hn_quant_make_integers(d, NULL, &error));
    g_assert_true(hn_model_verify(d, &error));
    g_assert_cmpuint(count(d, "MatMulInteger"), ==, 1);
    check_near(c, d, 1e-5);

    static const char back[] =
        "opset 17\n"
        "%1 = DequantizeLinear(w:i8[32,4]=fill(1,-99,99), ws:f32[4]={0.01,0.02,0.03,0.04}) axis=-1\n"
        "%2 = QuantizeLinear(%x:f32[3,32], xs:f32={0.01}, xz:u8={120})\n"
        "%3 = DequantizeLinear(%2, xs, xz)\n"
        "%y = MatMul(%3, %1)\n";
    g_autoptr(HnModel) e = parse(back), f = parse(back);
    g_assert_true(hn_quant_make_integers(f, NULL, &error));
    g_assert_true(hn_model_verify(f, &error));
    g_assert_cmpuint(count(f, "MatMulInteger"), ==, 1);
    check_near(e, f, 1e-5);
}

/* 4 bits in a model of an older opset. */
static void test_raised(void)
{
    g_autoptr(HnModel) m = parse("opset 13 %y = MatMul(%x:f32[3,64], w:f32[64,8])");
    apply(m, HN_FORM_W4, &usual, 0);
    g_assert_cmpint(hn_model_opset(m, NULL), ==, 21);
    g_assert_nonnull(hn_node_attr(find(m, "DequantizeLinear"), "block_size"));
}

static void test_halves(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m =
        hn_quant_prepare(parse("opset 17 %y = MatMul(%x:f16[3,64], w:f16[64,8])"), 13, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_graph_infer(m->graph, TRUE, &error));
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    g_assert_cmpuint(nodes->len, ==, 1);
    const HnValue *y = m->graph->outputs->pdata[0];
    g_assert_cmpint(y->type->dtype, ==, HN_F16);
}

/* --- dynamic ------------------------------------------------------------------------------------------------------ */

static void test_dynamic(void)
{
    static const char text[] = "opset 17\n"
                               "%1 = MatMul(%x:f32[5,32], w:f32[32,16])\n"
                               "%2 = Gemm(%x, v:f32[16,32], b:f32[16]) transB=1 alpha=0.5 beta=2.0\n"
                               "%3 = Add(%1, %2)\n"
                               "%y = Gemm(%3, u:f32[5,4]) transA=1\n";
    g_autoptr(HnModel) m = parse(text);
    apply(m, HN_FORM_DYNAMIC, &usual, 0);
    g_assert_cmpuint(count(m, "DynamicQuantizeLinear"), ==, 2); /* of x once */
    g_assert_cmpuint(count(m, "MatMulInteger"), ==, 3);
    g_assert_cmpuint(count(m, "Gemm") + count(m, "MatMul") + count(m, "DequantizeLinear"), ==, 0);
    check_form(text, HN_FORM_DYNAMIC, &usual, 0.03);
}

static void test_dynamic_conv(void)
{
    static const char text[] =
        "opset 17\n"
        "%1 = Conv(%x:f32[1,4,9,9], w:f32[8,2,3,3], b:f32[8]) group=2 pads=[1,0,1,2] strides=[2,1]\n"
        "%y = Conv(%1, v:f32[4,8,3,3]) auto_pad='SAME_LOWER'\n";
    g_autoptr(HnModel) m = parse(text);
    apply(m, HN_FORM_DYNAMIC, &usual, 0);
    g_assert_cmpuint(count(m, "ConvInteger"), ==, 2);
    g_assert_cmpuint(count(m, "Add"), ==, 1);
    check_form(text, HN_FORM_DYNAMIC, &usual, 0.03);
}

/* --- tied weights, branches, recurrent ones ------------------------------------------------------------------------
 */

static const char tied[] = "opset 17\n"
                           "graph main(%i:i64[3]) -> (%y) {\n"
                           "  t:f32[96,64]\n"
                           "  %1 = Gather(t, %i)\n"
                           "  %2 = Transpose(t) perm=[1,0]\n"
                           "  %3 = MatMul(%1, %2)\n"
                           "  %4 = Exp(%1)\n"
                           "  %5 = MatMul(%4, %2)\n"
                           "  %y = Add(%3, %5)\n"
                           "}\n";

static guint n_matrices(HnModel *m)
{
    guint n = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        n += t->n == 96 * 64;
    }
    return n;
}

static void test_tied(void)
{
    static const HnQuantForm forms[] = { HN_FORM_INT8, HN_FORM_W8, HN_FORM_W4, HN_FORM_DYNAMIC };
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = hn_quant_prepare(parse(tied), 21, NULL, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(n_matrices(m), ==, 1);
        g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
        apply(m, forms[i], &usual, 0);
        g_assert_cmpuint(n_matrices(m), ==, 1);
        g_assert_cmpuint(count(m, "MatMulInteger"), ==, forms[i] == HN_FORM_DYNAMIC ? 2 : 0);
        g_assert_cmpuint(count(m, "Transpose"), ==, 1);
    }
}

/* A product that multiplies by another's weights turned round reads those, in whichever way it can. */
static void test_tied_products(void)
{
    static const char text[] = "opset 17\n"
                               "graph main(%x:f32[2,64]) -> (%y) {\n"
                               "  w:f32[96,64] b:f32[96]\n"
                               "  %1 = Gemm(%x, w, b) transB=1\n"
                               "  %2 = Transpose(w) perm=[1,0]\n"
                               "  %3 = Identity(w)\n"
                               "  %4 = MatMul(%x, %2)\n"
                               "  %5 = Sub(%1, %4)\n"
                               "  %6 = Tanh(%1)\n"
                               "  %7 = Gemm(%6, %3)\n"
                               "  %8 = Relu(%7)\n"
                               "  %9 = Gemm(%8, %2)\n"
                               "  %y = Add(%5, %9)\n"
                               "}\n";
    static const HnQuantForm forms[] = { HN_FORM_INT8, HN_FORM_W8, HN_FORM_DYNAMIC };
    g_autoptr(HnModel) f32 = parse(text);
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = hn_quant_prepare(parse(text), 17, NULL, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(n_matrices(m), ==, 1);
        g_assert_cmpuint(count(m, "Transpose"), ==, 1); /* for MatMul alone */
        g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
        apply(m, forms[i], &usual, -3);
        g_assert_cmpuint(n_matrices(m), ==, 1);
        /* read along both axes, a weight has one scale, so that all its products are of integers */
        g_assert_cmpuint(count(m, "MatMulInteger"), ==, forms[i] == HN_FORM_DYNAMIC ? 4 : 0);
        if (forms[i] != HN_FORM_INT8) /* whose ranges are not these values' */
            check_near(f32, m, 0.05);
    }
}

/* --- one weight for several places -------------------------------------------------------------------------------- */

/* Three times one convolution, with factors of its own behind each; `sign` of the last. */
static HnModel *repeated(int sign)
{
    g_autofree char *text = g_strdup_printf("opset 17\n"
                                            "graph main(%%x:f32[1,16,8,8]) -> (%%y) {\n"
                                            "  w:f32[16,16,3,3] a:f32[16,1,1]=fill(1,0.5,1.5)\n"
                                            "  b:f32[16,1,1]=fill(2,0.5,1.5) c:f32[16,1,1]=fill(3,%s)\n"
                                            "  %%1 = Conv(%%x, w) pads=[1,1,1,1]\n"
                                            "  %%2 = Mul(%%1, a)\n"
                                            "  %%3 = Relu(%%2)\n"
                                            "  %%4 = Conv(%%3, w) pads=[1,1,1,1]\n"
                                            "  %%5 = Mul(%%4, b)\n"
                                            "  %%6 = Relu(%%5)\n"
                                            "  %%7 = Conv(%%6, w) pads=[1,1,1,1]\n"
                                            "  %%y = Mul(%%7, c)\n"
                                            "}\n",
                                            sign < 0 ? "-1.5,-0.5" : "0.5,1.5");
    return parse(text);
}

static guint n_packed(const HnModel *m)
{
    guint n = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        n += t->ndim == 4 && (t->dtype == HN_I8 || t->dtype == HN_U8);
    }
    return n;
}

static void test_repeated(void)
{
    static const HnQuantForm forms[] = { HN_FORM_INT8, HN_FORM_W8, HN_FORM_DYNAMIC };
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) f32 = repeated(1), m = hn_quant_prepare(repeated(1), 17, NULL, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(count(m, "Mul"), ==, 0); /* there are three weights now */
        g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
        apply(m, forms[i], &usual, -3);
        g_assert_cmpuint(n_packed(m), ==, 1);
        if (forms[i] != HN_FORM_INT8)
            check_near(f32, m, 0.05);
    }
}

/* A scale is positive: weights of the other sign are others. So are those of one scale for all channels. */
static void test_not_repeated(void)
{
    HnQuantOptions one = usual;
    one.per_tensor = TRUE;
    for (int i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) f32 = repeated(-1 + 2 * i),
                           m = hn_quant_prepare(repeated(-1 + 2 * i), 17, NULL, NULL, &error);
        g_assert_no_error(error);
        g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
        apply(m, HN_FORM_W8, i == 0 ? &usual : &one, 0);
        g_assert_cmpuint(n_packed(m), ==, i == 0 ? 2 : 3);
        check_near(f32, m, 0.05);
    }
}

/* A bias that needs a larger scale, which the other weight's integers do not have. */
static void test_repeated_bias(void)
{
    g_autoptr(HnModel) m =
        parse("opset 17\n"
              "graph main(%x:f32[1,16,8,8]) -> (%y) {\n"
              "  w:f32[16,16,3,3]=fill(7,-1,1) v:f32[16,16,3,3]=fill(7,-1,1) b:f32[16]=fill(1,100000000,100000001)\n"
              "  %1 = Conv(%x, w)\n"
              "  %2 = Relu(%1)\n"
              "  %3 = Conv(%x, v, b)\n"
              "  %4 = Relu(%3)\n"
              "  %y = Add(%2, %4)\n"
              "}\n");
    apply(m, HN_FORM_INT8, &usual, -3);
    g_assert_cmpuint(n_packed(m), ==, 2);
}

/* Integers that an integer convolution wants as u8 are not kept as s8 beside them. */
static void test_one_type(void)
{
    HnQuantOptions o = usual;
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&o);
    g_autoptr(GError) error = NULL;
    HnQuantLog log;
    static const char text[] = "opset 17\n"
                               "graph main(%x:f32[1,16,8,8]) -> (%y) {\n"
                               "  w:f32[16,16,3,3]\n"
                               "  %1 = Conv(%x, w) pads=[1,1,1,1]\n"
                               "  %2 = Tanh(%1)\n"
                               "  %y = Conv(%2, w)\n"
                               "}\n";
    g_autoptr(HnModel) f32 = parse(text), m = parse(text);
    hn_quant_plan_set_form(p, "1", HN_FORM_DYNAMIC);
    hn_quant_plan_set_form(p, "y", HN_FORM_W8);
    g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count(m, "ConvInteger"), ==, 1);
    g_assert_cmpuint(n_packed(m), ==, 1);
    check_near(f32, m, 0.03);
}

/* Zero points, scales, tables: what is equal is there once. */
static void test_merged(void)
{
    g_autoptr(HnModel) m = parse("opset 17\n"
                                 "%1 = MatMul(%x:f32[2,64], w:f32[64,64])\n"
                                 "%2 = Tanh(%1)\n"
                                 "%y = MatMul(%2, v:f32[64,64])\n");
    apply(m, HN_FORM_W8, &usual, 0);
    guint zeros = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        zeros += t->dtype == HN_I8 && t->n == 64;
    }
    g_assert_cmpuint(count(m, "DequantizeLinear"), ==, 2);
    g_assert_cmpuint(zeros, ==, 1);
}

/* One copy of a weight serves all that read it, those that stay f32 too: two would be larger than what there was. */
static void test_shared(void)
{
    g_autoptr(HnModel) m = parse("opset 17\n"
                                 "%1 = MatMul(%x:f32[2,64], w:f32[64,64])\n"
                                 "%2 = Tanh(%1)\n"
                                 "%y = MatMul(%2, w)\n");
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&usual);
    g_autoptr(GError) error = NULL;
    HnQuantLog log;
    hn_quant_plan_set_form(p, "y", HN_FORM_W8);
    g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(log.w8, ==, 1);
    g_assert_cmpuint(count(m, "DequantizeLinear"), ==, 1);
    g_assert_true(hn_node_in(find(m, "MatMul"), 1) == hn_node_out(find(m, "DequantizeLinear"), 0));
    for (guint i = 0; i < m->graph->weights->len; i++)
        g_assert_cmpint(((const HnValue *)m->graph->weights->pdata[i])->weight->bytes, <=, 64 * 64);
}

static void test_branches(void)
{
    g_autoptr(HnModel) m =
        parse("opset 17\n"
              "graph main(%c:bool, %x:f32[4,64]) -> (%y) {\n"
              "  w:f32[64,64]\n"
              "  %y = If(%c) then_branch=graph() -> (%a) { %a = MatMul(%x, w) }\n"
              "              else_branch=graph() -> (%b) { v:f32[64,64] %d = MatMul(%x, v) %b = MatMul(%d, w) }\n"
              "}\n");
    apply(m, HN_FORM_DYNAMIC, &usual, 0);
    g_assert_cmpuint(count(m, "MatMulInteger"), ==, 3);
    g_assert_cmpuint(count(m, "DynamicQuantizeLinear"), ==, 2); /* x for both branches, and d */
    guint bytes = 0, floats = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        bytes += t->dtype == HN_I8 && t->n == 64 * 64;
        floats += t->dtype == HN_F32 && t->n == 64 * 64;
    }
    g_assert_cmpuint(bytes, ==, 1);
    g_assert_cmpuint(floats, ==, 0);
}

static void test_recurrent(void)
{
    static const char text[] = "opset 17 %y = LSTM(%x:f32[5,1,16], w:f32[2,32,16], r:f32[2,32,8]) hidden_size=8"
                               " direction='bidirectional'";
    g_autoptr(HnModel) m = parse(text);
    apply(m, HN_FORM_W8, &usual, 0);
    g_assert_cmpuint(count(m, "DequantizeLinear"), ==, 0); /* which OpenVINO takes for no constant */
    g_assert_cmpuint(count(m, "Cast"), ==, 4);
    g_assert_cmpuint(count(m, "Mul"), ==, 2);
    for (guint i = 0; i < m->graph->weights->len; i++)
        g_assert_cmpint(((const HnValue *)m->graph->weights->pdata[i])->weight->bytes, <=, 2 * 32 * 16);
    check_form(text, HN_FORM_W8, &usual, 0.02);
}

/* Weights that a plan of integers only stores are no DequantizeLinear, unless somebody multiplies by their integers. */
static void test_stored(void)
{
    static const char text[] = "opset 17\n"
                               "graph main(%x:f32[4,64]) -> (%y) {\n"
                               "  w:f32[64,64] v:f32[64,64]\n"
                               "  %1 = MatMul(%x, v)\n"
                               "  %2 = MatMul(%x, w)\n"
                               "  %3 = MatMul(%1, w)\n"
                               "  %y = Add(%2, %3)\n"
                               "}\n";
    for (int i = 0; i < 3; i++) {
        static const guint n_dequantized[] = { 0, 1, 2 }, n_integer[] = { 1, 1, 0 };
        g_autoptr(HnModel) f32 = parse(text), m = parse(text);
        g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&usual);
        g_autoptr(GError) error = NULL;
        HnQuantLog log;
        hn_quant_plan_set_form(p, "1", i == 0 ? HN_FORM_DYNAMIC : HN_FORM_W8); /* all of v */
        hn_quant_plan_set_form(p, "2", HN_FORM_W8);                            /* with the next, w */
        hn_quant_plan_set_form(p, "3", i == 1 ? HN_FORM_DYNAMIC : HN_FORM_W8);
        g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(count(m, "DequantizeLinear"), ==, n_dequantized[i]);
        g_assert_cmpuint(count(m, "MatMulInteger"), ==, n_integer[i]);
        g_assert_cmpuint(log.dynamic, ==, n_integer[i]);
        g_assert_cmpuint(log.w8, ==, 3 - n_integer[i]);
        check_near(f32, m, 0.03);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quant/forms/fit", test_fit);
    g_test_add_func("/quant/forms/unfit", test_unfit);
    g_test_add_func("/quant/forms/check", test_check);
    g_test_add_func("/quant/forms/linear", test_linear);
    g_test_add_func("/quant/forms/limits", test_limits);
    g_test_add_func("/quant/forms/channels", test_channels);
    g_test_add_func("/quant/forms/foreign", test_foreign);
    g_test_add_func("/quant/forms/raised", test_raised);
    g_test_add_func("/quant/forms/halves", test_halves);
    g_test_add_func("/quant/forms/dynamic", test_dynamic);
    g_test_add_func("/quant/forms/dynamic-conv", test_dynamic_conv);
    g_test_add_func("/quant/forms/tied", test_tied);
    g_test_add_func("/quant/forms/tied-products", test_tied_products);
    g_test_add_func("/quant/forms/repeated", test_repeated);
    g_test_add_func("/quant/forms/not-repeated", test_not_repeated);
    g_test_add_func("/quant/forms/repeated-bias", test_repeated_bias);
    g_test_add_func("/quant/forms/one-type", test_one_type);
    g_test_add_func("/quant/forms/merged", test_merged);
    g_test_add_func("/quant/forms/shared", test_shared);
    g_test_add_func("/quant/forms/branches", test_branches);
    g_test_add_func("/quant/forms/recurrent", test_recurrent);
    g_test_add_func("/quant/forms/stored", test_stored);
    return g_test_run();
}
