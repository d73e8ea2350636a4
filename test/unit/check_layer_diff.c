/*
 * Two models layer by layer: sub-graphs (nodes with everything inside them copied), other float types.
 */
#include "check/layer_diff.h"
#include "run_model.h"

static HnLayerDiff *diff_of(HnModel *a, HnModel *b, gboolean per_layer)
{
    g_autoptr(GError) error = NULL;
    HnLayerDiffOptions o = { .per_layer = per_layer, .threads = 1, .seed = 3 };
    HnLayerDiff *l = hn_layer_diff_new(&(HnSide){ .model = a, .backend = &hn_backend_cpu },
                                       &(HnSide){ .model = b, .backend = &hn_backend_ref }, &o, &error);
    g_assert_no_error(error);
    return l;
}

static void run(HnLayerDiff *l, const char *in0, const char *in1)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) x = in0 != NULL ? test_tensor(in0) : NULL, y = in1 != NULL ? test_tensor(in1) : NULL;
    HnTensor *in[] = { x, y };
    gboolean ok = hn_layer_diff_run(l, in, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

static const HnLayerDiffRow *row(const HnLayerDiff *l, const char *name)
{
    for (guint i = 0; i < hn_layer_diff_rows(l); i++)
        if (strcmp(hn_layer_diff_row(l, i)->match.b->name, name) == 0)
            return hn_layer_diff_row(l, i);
    g_error("no row '%s'", name);
}

static const char branches[] =
    "opset 17 graph g(%c:bool[], %x:f32[2]) -> (%y) { w:f32[2]={1,2} %n = Neg(%x) %k = Shape(%x) %i = If(%c) "
    "then_branch=graph() -> (%p) { %p = Add(%n, w) } else_branch=graph() -> (%q) { %q = Mul(%n, %x) } "
    "%y = Reshape(%i, %k) }";

static void test_subgraphs(void)
{
    g_autoptr(HnModel) a = test_model(branches), b = test_model(branches);
    for (int per_layer = 0; per_layer < 2; per_layer++) {
        g_autoptr(HnLayerDiff) l = diff_of(a, b, per_layer);
        run(l, "bool={true}", "f32[2]={3,4}");
        run(l, "bool={false}", "f32[2]={5,6}");
        const HnLayerDiffRow *r = row(l, "y");
        g_assert_cmpuint(r->accumulated.samples, ==, 2);
        g_assert_cmpfloat(r->accumulated.max_abs, ==, 0);
        g_assert_true(r->is_output);
        g_assert_cmpstr(r->type_b, ==, "f32[2]");
        g_assert_cmpuint(hn_layer_diff_rows(l), ==, per_layer ? 3 : 1); /* n, i, y: the shape is constant */
    }
}

static void test_half(void)
{
    g_autoptr(HnModel) a = test_model("opset 17 graph g(%x:f32[2]) -> (%y) { %a = Mul(%x, w:f32[2]={0.1,3}) "
                                      "%y = Add(%a, %a) }");
    g_autoptr(HnModel) b = test_model("opset 17 graph g(%x:f16[2]) -> (%y) { %a = Mul(%x, w:f16[2]={0.1,3}) "
                                      "%y = Add(%a, %a) }");
    g_autoptr(HnLayerDiff) l = diff_of(a, b, TRUE);
    run(l, "f32[2]={1,2}", NULL);
    const HnLayerDiffRow *first = row(l, "a"), *last = row(l, "y");
    g_assert_false(first->differs);
    g_assert_cmpstr(first->type_a, ==, "f32[2]");
    g_assert_cmpstr(first->type_b, ==, "f16[2]");
    g_assert_cmpfloat(first->accumulated.max_abs, >, 0);
    g_assert_cmpfloat(first->accumulated.max_abs, <, 1e-4);
    g_assert_cmpfloat(first->isolated.max_abs, ==, first->accumulated.max_abs);
    g_assert_cmpfloat(last->accumulated.sqnr, >, 60);
    g_assert_cmpfloat(last->isolated.max_rel, <, 1e-3);
}

/* What both have is the same; what the second model puts in between counts for the tensor behind it. */
static void test_between(void)
{
    g_autoptr(HnModel) a = test_model("opset 17 graph g(%x:f32[3]) -> (%y) { %a = Relu(%x) %y = Neg(%a) }");
    g_autoptr(HnModel) b = test_model("opset 17 graph g(%x:f32[3]) -> (%y) { %a = Relu(%x) %s = Add(%a, c:f32={0.5}) "
                                      "%t = Floor(%s) %y = Neg(%t) }");
    g_autoptr(HnLayerDiff) l = diff_of(a, b, TRUE);
    run(l, "f32[3]={-1,1.25,2}", NULL);
    g_assert_cmpuint(hn_layer_diff_unmatched(l, 0), ==, 0);
    g_assert_cmpuint(hn_layer_diff_unmatched(l, 1), ==, 2);
    g_assert_cmpfloat(row(l, "a")->accumulated.max_abs, ==, 0);
    g_assert_cmpfloat(row(l, "y")->accumulated.max_abs, ==, 0.25);
    g_assert_cmpfloat(row(l, "y")->isolated.max_abs, ==, 0.25);
}

static void test_refused(void)
{
    g_autoptr(GError) error = NULL;
    HnLayerDiffOptions o = { .per_layer = TRUE };
    g_autoptr(HnModel) a = test_model("opset 17 graph g(%x:f32[3]) -> (%y) { %y = Neg(%x) }");
    g_autoptr(HnModel) b = test_model("opset 17 graph g(%x:f32[3], %z:f32[3]) -> (%y) { %y = Add(%x, %z) }");
    HnSide side_a = { .model = a, .backend = &hn_backend_ref }, side_b = { .model = b, .backend = &hn_backend_ref };
    g_assert_null(hn_layer_diff_new(&side_a, &side_b, &o, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    g_autoptr(HnModel) c = test_model("opset 17 graph g(%x:f32[3]) -> (%y) { %y = MatMul(%x, w:f32[4,4]) }");
    HnSide side_c = { .model = c, .backend = &hn_backend_ref };
    g_autoptr(HnLayerDiff) l = hn_layer_diff_new(&side_a, &side_c, &o, &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) x = test_tensor("f32[3]={1,2,3}");
    g_assert_false(hn_layer_diff_run(l, &x, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
    g_assert_true(g_str_has_prefix(error->message, "second model: "));
}

static void test_sqnr(void)
{
    const HnTolerance t = { .rtol = 1, .min_cos = NAN };
    g_autoptr(HnTensor) a = test_tensor("f32[2]={3,4}"), b = test_tensor("f32[2]={3,4.5}"),
                        h = test_tensor("f16[2]={3,4}");
    g_autoptr(HnTensor) n = test_tensor("f32[2]={3,nan}");
    HnDiff d;
    hn_compare(b, a, &t, &d);
    g_assert_cmpfloat_with_epsilon(d.sqnr, 20, 1e-9); /* 25 over 0.25 */
    hn_compare(a, a, &t, &d);
    g_assert_true(isinf(d.sqnr));
    hn_compare(n, a, &t, &d);
    g_assert_true(isnan(d.sqnr));
    g_assert_false(hn_compare(h, a, &t, &d));
    g_assert_true(hn_compare_numbers(h, a, &t, &d));
    g_assert_false(d.same_type);
    g_assert_cmpint(d.n, ==, 2);
    g_assert_cmpfloat(d.max_abs, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/layer_diff/subgraphs", test_subgraphs);
    g_test_add_func("/check/layer_diff/half", test_half);
    g_test_add_func("/check/layer_diff/between", test_between);
    g_test_add_func("/check/layer_diff/refused", test_refused);
    g_test_add_func("/check/compare/sqnr", test_sqnr);
    return g_test_run();
}
