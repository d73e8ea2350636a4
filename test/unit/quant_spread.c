/*
 * Which nodes between integer products become integers, too: those that work on bytes, and whose neighbours do.
 */
#include "base/clock.h"
#include "ir/ir_text.h"
#include "op/infer.h"
#include "quant/quant_plan.h"

#define HEAD "opset 17 graph g(%x:f32[1,8,6,6]) -> (%y:f32[1,8,6,6]) { %a = Conv(%x, w:f32[8,8,1,1]) "
#define TAIL(v) " %y = Conv(" v ", u:f32[8,8,1,1]) }"

/* Exactly the values named in `marked` (blanks between) are made by nodes without weights that are integers. */
static void check(const char *text, const char *marked)
{
    const HnQuantOptions o = { .activations = HN_U8 };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&o);
    g_assert_true(hn_model_verify(m, &error));
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_autoptr(GPtrArray) candidates = hn_quant_candidates(m), found = g_ptr_array_new();
    for (guint i = 0; i < candidates->len; i++)
        hn_quant_plan_set_form(p, hn_node_out(candidates->pdata[i], 0)->name, HN_FORM_INT8);
    hn_quant_spread(p, m);
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        HnNode *n = m->graph->nodes->pdata[i];
        if (hn_quant_plan_form(p, n) == HN_FORM_INT8 && !g_ptr_array_find(candidates, n, NULL))
            g_ptr_array_add(found, hn_node_out(n, 0)->name);
    }
    g_ptr_array_add(found, NULL);
    g_autofree char *names = g_strjoinv(" ", (char **)found->pdata);
    g_assert_cmpstr(names, ==, marked);
}

static void test_marked(void)
{
    check(HEAD "%b = Relu(%a) %c = Add(%a, %b)" TAIL("%c"), "b c");
    check(HEAD "%b = Sigmoid(%a) %c = Mul(%a, %b)" TAIL("%c"), "b c");
    check(HEAD "%b = GlobalAveragePool(%a) %c = Mul(%a, %b)" TAIL("%c"), "b c");
    check(HEAD "%b, %c = Split(%a, n:i64[2]={4,4}) axis=1 %d = Concat(%c, %b) axis=1" TAIL("%d"), "b d");
    check(HEAD "%b = Pad(%a, n:i64[8]={0,0,1,1,0,0,0,0}) %c = AveragePool(%b) kernel_shape=[2,2]" TAIL("%c"), "b c");
}

/* A constant of one number makes a function of one operand, of columns it is the bias of a product. */
static void test_constants(void)
{
#define PRODUCT "opset 17 graph g(%x:f32[1,8,6,6]) -> (%y:f32[1,8,6,6]) { %a = MatMul(%x, w:f32[6,6]) "
#define LAST(v) " %y = MatMul(" v ", u:f32[6,6]) }"
    check(HEAD "%b = Div(%a, k:f32={2}) %c = Erf(%b) %d = Mul(e:f32[1,1]={3}, %c)" TAIL("%d"), "b c d");
    check(PRODUCT "%b = Add(%a, k:f32[6]) %c = Erf(%b) %d = Mul(%b, %c)" LAST("%d"), "b c d");
    check(PRODUCT "%b = Add(k:f32[1,6], %a)" LAST("%b"), "b");
    check(PRODUCT "%b = Mul(%a, k:f32[6])" LAST("%b"), "");
    check(PRODUCT "%b = Add(%a, k:f32[6,1])" LAST("%b"), "");
    check(PRODUCT "%b = Relu(%a) %c = Add(%b, k:f32[6])" LAST("%c"), "");
    check(PRODUCT "%b = Add(%a, k:f32[6]) %c = Mul(%a, %b)" LAST("%c"), "");
    check("opset 17 graph g(%x:f32[8,6]) -> (%y:f32[8,6]) { %a = Gemm(%x, w:f32[6,6], v:f32[6]) %b = Add(%a, k:f32[6]) "
          "%y = Gemm(%b, u:f32[6,6]) }",
          "");
}

/* No kernel computes them on bytes; what only they read is no use as integers either. */
static void test_left(void)
{
    check(HEAD "%b = Exp(%a) %c = Div(%a, %b)" TAIL("%c"), "");
    check(HEAD "%b = Max(%a, %x)" TAIL("%b"), "");
    check(HEAD "%b = Relu(%a) %c = Softmax(%b) axis=1" TAIL("%c"), "");
    check(HEAD "%b = Add(%a, c:f32[8,1,1])" TAIL("%b"), "");
    check(HEAD "%b = Add(%a, %x)" TAIL("%b"), "");
}

/* What does not fit takes all before it along, one after the other: in time that grows with the model, not with its
 * square. */
static void test_long(void)
{
    g_autoptr(GString) text = g_string_new("opset 17 %y0 = MatMul(%x:f32[2,16], w:f32[16,16])\n");
    for (int i = 1; i <= 20000; i++)
        g_string_append_printf(text, "%%y%d = Relu(%%y%d)\n", i, i - 1);
    const guint64 start = hn_process_cpu_ns();
    check(text->str, ""); /* nobody wants the last one as integers */
    const double s = (double)(hn_process_cpu_ns() - start) / 1e9;
    g_test_message("%.3f s of processor time", s);
    g_assert_cmpfloat(s, <, 5);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spread/marked", test_marked);
    g_test_add_func("/spread/left", test_left);
    g_test_add_func("/spread/constants", test_constants);
    g_test_add_func("/spread/long", test_long);
    return g_test_run();
}
