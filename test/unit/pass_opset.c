/*
 * Conversion of models to other opsets: the driver. What becomes of each operator is hn-check's affair.
 */
#include <string.h>

#include "op/op.h"
#include "pass/opset.h"
#include "run_model.h"

static GPtrArray *new_blocked(void)
{
    return g_ptr_array_new_with_free_func(g_free);
}

static char *print(const HnModel *m)
{
    GString *s = g_string_new(NULL);
    hn_model_print(m, -1, s);
    return g_string_free(s, FALSE);
}

static HnModel *convert(const char *text, int64_t target)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) blocked = new_blocked();
    HnModel *m = test_model(text);
    g_assert_true(hn_convert_opset(m, target, blocked, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(blocked->len, ==, 0);
    g_assert_true(hn_model_verify(m, &error));
    g_assert_no_error(error);
    g_assert_cmpint(hn_model_opset(m, NULL), ==, target);
    return m;
}

/* `text` converted to `target` is `want`. */
static void expect(const char *text, int64_t target, const char *want)
{
    g_autoptr(HnModel) m = convert(text, target), w = test_model(want);
    g_autofree char *got = print(m), *printed = print(w);
    g_assert_cmpstr(got, ==, printed);
}

/* Converted to each of some opsets, and back again, the model computes what it did; types and names stay. */
static void expect_same(const char *text, const char *in, double tolerance)
{
    static const int64_t targets[] = { 28, 21, 17, 13, 11 };
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(GPtrArray) x = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_auto(GStrv) words = g_strsplit(in, " ", -1);
    for (char **w = words; *w != NULL; w++)
        g_ptr_array_add(x, test_tensor(*w));
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) want = test_run(s, x);
    for (guint i = 0; i < 2 * G_N_ELEMENTS(targets); i++) {
        g_autoptr(GPtrArray) blocked = new_blocked();
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) c = convert(text, targets[i / 2]);
        if (i % 2 == 1) {
            g_assert_true(hn_convert_opset(c, hn_model_opset(m, NULL), blocked, &error));
            g_assert_no_error(error);
        }
        g_autoptr(HnSession) t = test_session(c, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) got = test_run(t, x);
        for (guint k = 0; k < want->len; k++) {
            test_assert_close(got->pdata[k], want->pdata[k], tolerance, tolerance, text);
            g_assert_cmpstr(((HnValue *)c->graph->outputs->pdata[k])->name, ==,
                            ((HnValue *)m->graph->outputs->pdata[k])->name);
        }
    }
}

/* --- attributes and inputs --------------------------------------------------------------------------------------- */

static void test_forms(void)
{
    const char *attr = "opset 11 graph g(%x:f32[1,3]) -> (%y) { %y = Squeeze(%x) axes=[0] @'n' }";
    const char *input = "opset 13 graph g(%x:f32[1,3]) -> (%y) { %y = Squeeze(%x, const:i64[1]={0}) @'n' }";
    expect(attr, 13, input);
    expect(input, 11, attr);
    expect(attr, 12, "opset 12 graph g(%x:f32[1,3]) -> (%y) { %y = Squeeze(%x) axes=[0] @'n' }");
    /* what an opset does not have yet says nothing, and must not begin to speak */
    expect("opset 7 graph g(%x:f32[1,1,4]) -> (%y) { %y = MaxPool(%x) kernel_shape=[3] strides=[2] ceil_mode=1 }", 12,
           "opset 12 graph g(%x:f32[1,1,4]) -> (%y) { %y = MaxPool(%x) kernel_shape=[3] strides=[2] }");
    /* axes are counted from the front before opset 11 */
    expect("opset 13 graph g(%x:f32[2,3]) -> (%y) { %y = ReduceMax(%x) axes=[-1] }", 9,
           "opset 9 graph g(%x:f32[2,3]) -> (%y) { %y = ReduceMax(%x) axes=[1] }");
}

static void test_constants(void)
{
    /* a Constant that only gave the axes goes, one that something else uses stays */
    expect("opset 13 graph g(%x:f32[1,3]) -> (%y) { %a = Constant() value_ints=[0] %y = Squeeze(%x, %a) }", 11,
           "opset 11 graph g(%x:f32[1,3]) -> (%y) { %y = Squeeze(%x) axes=[0] }");
    expect("opset 13 graph g(%x:f32[1,3]) -> (%y, %z) { %a = Constant() value_ints=[0] %y = Squeeze(%x, %a) "
           "%z = Neg(%a) }",
           11,
           "opset 11 graph g(%x:f32[1,3]) -> (%y, %z) { %a = Constant() value=i64[1]={0} %y = Squeeze(%x) axes=[0] "
           "%z = Neg(%a) }");
    expect("opset 13 graph g(%x:f32[1,3]) -> (%y) { a:i64[1]={0} %y = Squeeze(%x, a) }", 11,
           "opset 11 graph g(%x:f32[1,3]) -> (%y) { %y = Squeeze(%x) axes=[0] }");
}

/* A type that came later is converted around the node. */
static void test_types(void)
{
    expect("opset 14 graph g(%x:i32[3]) -> (%y:i32[3]) { %y = Relu(%x) }", 13,
           "opset 13 graph g(%x:i32[3]) -> (%y:i32[3]) { %Cast = Cast(%x) to=11 %wide = Relu(%Cast) "
           "%y:i32[3] = Cast(%wide) to=6 }");
}

/* --- what blocks ------------------------------------------------------------------------------------------------- */

static void expect_blocked(const char *text, int64_t target, const char *const *want)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(GPtrArray) blocked = new_blocked();
    g_autoptr(GError) error = NULL;
    g_assert_false(hn_convert_opset(m, target, blocked, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    guint n = 0;
    for (; want[n] != NULL; n++) {
        g_assert_cmpuint(blocked->len, >, n);
        g_assert_cmpstr(blocked->pdata[n], ==, want[n]);
    }
    g_assert_cmpuint(blocked->len, ==, n);
}

static void test_blocked(void)
{
    static const char *const sliding[] = { "node 'b' (Unsqueeze): 'axes' is computed when it runs and was an attribute "
                                           "before opset 13",
                                           "node 'd' (Det): the operator exists since opset 11", NULL };
    static const char *const inner[] = { "node 't' (Det): the operator exists since opset 11", NULL };
    static const char *const unknown[] = {
        "node 'y' (ImageDecoder): the operator is not known well enough to be converted", NULL
    };
    expect_blocked("opset 13 graph g(%x:f32[2,2], %a:i64[1]) -> (%b, %c, %d) { %b = Unsqueeze(%x, %a) %c = Neg(%x) "
                   "%d = Det(%x) }",
                   9, sliding);
    expect_blocked("opset 13 graph g(%c:bool, %x:f32[2,2]) -> (%y) { %y = If(%c) then_branch=graph() -> (%t) { "
                   "%t = Det(%x) } else_branch=graph() -> (%e) { %e = ReduceMax(%x) keepdims=0 } }",
                   9, inner);
    expect_blocked("opset 20 graph g(%x:f32[1,4,1]) -> (%y) { %y = ImageDecoder(%x) }", 18, unknown);
}

static void test_range(void)
{
    static const int64_t targets[] = { 6, 29, 0, -1, INT64_MAX };
    for (guint i = 0; i < G_N_ELEMENTS(targets); i++) {
        g_autoptr(HnModel) m = test_model("opset 14 graph g(%x:f32[2]) -> (%y) { %y = Neg(%x) }");
        g_autoptr(GPtrArray) blocked = new_blocked();
        g_autoptr(GError) error = NULL;
        g_assert_false(hn_convert_opset(m, targets[i], blocked, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    }
    g_autoptr(HnModel) old = test_model("opset 6 graph g(%x:f32[2]) -> (%y) { %y = Neg(%x) }");
    g_autoptr(GPtrArray) blocked = new_blocked();
    g_autoptr(GError) error = NULL;
    g_assert_false(hn_convert_opset(old, 13, blocked, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
}

/* --- whole models ------------------------------------------------------------------------------------------------ */

static void test_chain(void)
{
    expect_same("opset 20 graph g(%x:f32[2,3,4]) -> (%y, %z) { s:f32[4] b:f32[4] a:i64[1]={1} "
                "%1 = LayerNormalization(%x, s, b) axis=-1 %2 = Gelu(%1) %3 = Softmax(%2) axis=1 "
                "%4 = ReduceMean(%3, a) keepdims=0 %y = Mish(%4) %5 = Shape(%x) start=1 "
                "%z = Reshape(%4, m:i64[3]={2,-1,1}) }",
                "f32[2,3,4]={1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6}", 1e-5);
}

static void test_inner(void)
{
    expect_same("opset 18 graph g(%c:bool, %x:f32[2,3]) -> (%y) { %a = Constant() value_ints=[-1] "
                "%y = If(%c) then_branch=graph() -> (%t) { %1 = ReduceSumSquare(%x, %a) keepdims=0 %t = Mish(%1) } "
                "else_branch=graph() -> (%e) { %e = ReduceMax(%x, %a) keepdims=0 } }",
                "bool={true} f32[2,3]={1,2,3,4,5,6}", 1e-5);
    /* the number of dimensions of what a loop carries is not known: what does not ask for it converts all the same */
    expect_same("opset 14 graph g(%x:f32[2,3]) -> (%y) { n:i64={3} c:bool={true} "
                "%y = Loop(n, c, %x) body=graph(%i:i64, %k:bool, %v:f32) -> (%k2, %v2) { %k2 = Identity(%k) "
                "%1 = HardSwish(%v) %v2 = Softmax(%1) axis=-1 } }",
                "f32[2,3]={1,2,3,4,5,6}", 1e-5);
}

static void test_functions(void)
{
    g_autoptr(HnModel) m = convert("opset 18 opset f 1 function f::Twice(%a) -> (%b) { opset 13 %1 = Add(%a, %a) "
                                   "%b = Squeeze(%1, s:i64[1]={0}) } "
                                   "graph g(%x:f32[1,2]) -> (%y) { %y = f::Twice(%x) }",
                                   11);
    g_assert_cmpuint(m->functions->len, ==, 0);
    g_assert_cmpuint(m->graph->nodes->len, ==, 2);
    g_assert_nonnull(hn_node_attr(m->graph->nodes->pdata[1], "axes"));
}

/* Other domains, and operators without a record whose form did not change, stay as they are. */
static void test_strangers(void)
{
    expect("opset 14 opset com.acme 3 graph g(%x:f32[2]) -> (%y) { %1 = com.acme::Foo(%x) axes=[1] "
           "%2 = SequenceConstruct(%1, %1) %y = SequenceAt(%2, i:i64={0}) }",
           12,
           "opset 12 opset com.acme 3 graph g(%x:f32[2]) -> (%y) { %1 = com.acme::Foo(%x) axes=[1] "
           "%2 = SequenceConstruct(%1, %1) %y = SequenceAt(%2, i:i64={0}) }");
}

/* The IR version is raised where the opset, or a weight that is no input, wants it, and never lowered. */
static void test_ir(void)
{
    static const struct {
        int64_t ir, target, want;
    } cases[] = { { 3, 8, 4 }, { 3, 9, 4 }, { 8, 9, 8 }, { 8, 17, 8 }, { 8, 21, 10 }, { 8, 28, 14 }, { 12, 13, 12 } };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) blocked = new_blocked();
        g_autoptr(HnModel) m = test_model("opset 12 graph g(%x:f32[2]) -> (%y) { %y = Mul(%x, w:f32[2]={1,2}) }");
        m->ir_version = cases[i].ir;
        g_assert_true(hn_convert_opset(m, cases[i].target, blocked, NULL));
        g_assert_cmpint(m->ir_version, ==, cases[i].want);
    }
    g_autoptr(GPtrArray) blocked = new_blocked();
    g_autoptr(HnModel) m = test_model("opset 9 graph g(%x:f32[2]) -> (%y) { %y = Neg(%x) }");
    m->ir_version = 3;
    g_assert_true(hn_convert_opset(m, 8, blocked, NULL));
    g_assert_cmpint(m->ir_version, ==, 3);
}

/* Names of nodes are unique in what ONNX Runtime loads. */
static void test_names(void)
{
    g_autoptr(HnModel) m = convert("opset 20 graph g(%x:f32[2,4]) -> (%y, %z) { s:f32[4] "
                                   "%y = LayerNormalization(%x, s) @'norm' %z = LayerNormalization(%y, s) @'norm2' }",
                                   13);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    guint named = 0;
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        const HnNode *n = m->graph->nodes->pdata[i];
        if (n->name == NULL)
            continue;
        g_assert_true(g_hash_table_add(names, n->name));
        named++;
    }
    g_assert_cmpuint(named, ==, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/opset/forms", test_forms);
    g_test_add_func("/opset/constants", test_constants);
    g_test_add_func("/opset/types", test_types);
    g_test_add_func("/opset/blocked", test_blocked);
    g_test_add_func("/opset/range", test_range);
    g_test_add_func("/opset/chain", test_chain);
    g_test_add_func("/opset/inner", test_inner);
    g_test_add_func("/opset/functions", test_functions);
    g_test_add_func("/opset/strangers", test_strangers);
    g_test_add_func("/opset/ir", test_ir);
    g_test_add_func("/opset/names", test_names);
    return g_test_run();
}
