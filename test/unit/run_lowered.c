/*
 * The graph that a plan's steps are made of: it is valid, its text can be read again, and on ref it computes what the
 * model does. With HONE_MODELS, real models too.
 */
#include "check/tensor_diff.h"
#include "lower/lower.h"
#include "onnx/onnx.h"
#include "onnx/tensor_file.h"
#include "op/infer.h"
#include "pass/pass.h"
#include "run_model.h"

static void collect(const HnStep *s, int depth, gpointer lows)
{
    if (depth == 0 && s->low != NULL && !g_ptr_array_find(lows, s->low, NULL))
        g_ptr_array_add(lows, s->low);
}

/* What the session's plans run, in order. */
static GPtrArray *lowered_of(const HnSession *s)
{
    g_autoptr(GPtrArray) lows = g_ptr_array_new();
    GPtrArray *models = g_ptr_array_new_with_free_func((GDestroyNotify)hn_model_free);
    hn_session_foreach_step(s, collect, lows);
    for (guint i = 0; i < lows->len; i++)
        g_ptr_array_add(models, hn_lowered_model(lows->pdata[i]));
    return models;
}

/* It is valid, and its text says all of it. */
static void check_text(HnModel *m)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *why = NULL;
    hn_model_verify(m, &error);
    g_assert_no_error(error);
    hn_model_print(m, -1, text);
    g_autoptr(HnModel) again = hn_model_parse(text->str, NULL, &error);
    g_assert_no_error(error);
    hn_model_verify(again, &error);
    g_assert_no_error(error);
    g_autoptr(GString) twice = g_string_new(NULL);
    hn_model_print(again, -1, twice);
    g_assert_cmpstr(text->str, ==, twice->str);
}

static gboolean holds(const HnModel *m, const char *op_type)
{
    for (guint i = 0; i < m->graph->nodes->len; i++)
        if (strcmp(((const HnNode *)m->graph->nodes->pdata[i])->op_type, op_type) == 0)
            return TRUE;
    return FALSE;
}

static HnTensor *fed(const HnSession *s, GPtrArray *in, const char *name)
{
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        if (strcmp(hn_session_input(s, i)->name, name) == 0)
            return in->pdata[i];
    return NULL;
}

static void same(const HnTensor *got, const HnTensor *want, const HnTolerance *tol)
{
    HnDiff diff;
    if (!hn_compare(got, want, tol, &diff)) {
        g_autofree char *why = hn_diff_describe(&diff, got, want, tol);
        g_test_message("%s", why);
        g_test_fail();
    }
}

/* m, of one plan, on ref: as it is and as it is lowered for the CPU, which had these results. A value that is quantized
 * again goes to the next step where sums are rounded otherwise, and so on: such a model as a whole is judged by the
 * cosine, and what the plan computed element by element. */
static void check_values(HnModel *m, const HnSession *planned, HnModel *low, GPtrArray *in, GPtrArray *had,
                         double tolerance)
{
    const gboolean integers = holds(low, "QuantConv") || holds(low, "QuantMatMul");
    const HnTolerance each = { .rtol = tolerance, .atol = tolerance, .min_cos = NAN };
    const HnTolerance whole = { .rtol = tolerance, .atol = tolerance, .min_cos = 0.999 };
    g_autoptr(HnSession) plain = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) s = test_session(low, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) inputs = g_ptr_array_new();
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        g_ptr_array_add(inputs, fed(planned, in, hn_session_input(s, i)->name));
    g_autoptr(GPtrArray) want = test_run(plain, in), got = test_run(s, inputs);
    for (int k = 0; k < hn_session_n_outputs(plain); k++)
        for (int i = 0; i < hn_session_n_outputs(s); i++)
            if (strcmp(hn_session_output(s, i)->name, hn_session_output(plain, k)->name) == 0) {
                same(got->pdata[i], want->pdata[k], integers ? &whole : &each);
                if (integers)
                    same(got->pdata[i], had->pdata[k], &each);
            }
}

/* The lowered graph of the text has an operator; NULL: it is one node. */
static void lowers(const char *text, const char *op_type)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GPtrArray) out = test_run(s, in);
    g_autoptr(GPtrArray) models = lowered_of(s);
    g_assert_cmpuint(models->len, ==, 1);
    HnModel *low = models->pdata[0];
    check_text(low);
    if (op_type != NULL)
        g_assert_true(holds(low, op_type));
    else
        g_assert_cmpuint(low->graph->nodes->len, ==, 1);
    check_values(m, s, low, in, out, 1e-5);
}

static void test_operators(void)
{
    lowers("opset 17 graph g(%x:f32[2,4,8]) -> (%y) { %m = ReduceMax(%x) axes=[-1] %d = Sub(%x, %m) %e = Exp(%d) "
           "%s = ReduceSum(%e, a:i64[1]={-1}) %y = Div(%e, %s) }",
           "Softmax");
    lowers("opset 11 graph g(%x:f32[2,4,8]) -> (%y) { %m = ReduceMean(%x) axes=[-1] %d = Sub(%x, %m) %q = Mul(%d, %d) "
           "%v = ReduceMean(%q) axes=[-1] %a = Add(%v, e:f32={0.001}) %r = Sqrt(%a) %n = Div(%d, %r) "
           "%g = Mul(%n, s:f32[8]) %y = Add(%g, b:f32[8]) }",
           "LayerNormalization");
    lowers("opset 17 graph g(%i:i64[3,1]) -> (%y) { %q = Equal(%i, n:i64[1,8]={0,1,2,3,4,5,6,7}) %c = Cast(%q) to=1 "
           "%y = MatMul(%c, t:f32[8,5]) }",
           "RowLookup");
}

/* Constants of 8 bits that are spelled out as numbers stay bytes, unless what multiplies them is no scale of an axis:
 * then nothing is left of it. */
static void test_bytes_as_numbers(void)
{
    lowers("opset 17 graph g(%x:f32[20,200]) -> (%y) { %c = Cast(q:i8[200,96]) to=1 %w = Mul(%c, s:f32[1,96]) "
           "%y = MatMul(%x, %w) }",
           "WeightMatMul");
    lowers("opset 17 graph g(%x:f32[20,200]) -> (%y) { %c = Cast(q:u8[200,96]) to=1 %d = Sub(%c, z:f32={7}) "
           "%w = Mul(s:f32={0.25}, %d) %y = MatMul(%x, %w) }",
           "WeightMatMul");
    lowers("opset 17 graph g(%x:f32[20,200]) -> (%y) { %c = Cast(q:i8[200,96]) to=1 %w = Mul(%c, s:f32[200,96]) "
           "%y = MatMul(%x, %w) }",
           NULL);
    lowers("opset 17 graph g(%x:f32[20,200]) -> (%y) { %c = Cast(q:i8[200,96]) to=1 %y = MatMul(%x, %c) }", NULL);
}

/* Old forms keep their version: this Softmax sees the last two axes as one. */
static void test_versions(void)
{
    lowers("opset 11 graph g(%x:f32[2,3,4]) -> (%y) { %s = Softmax(%x) axis=1 %y = Relu(%s) }", "Softmax");
    lowers("opset 12 graph g(%x:f32[2,1,4]) -> (%y) { %s = Squeeze(%x) axes=[1] %y = Neg(%s) }", "Squeeze");
}

/* What sub-graphs read is there, and under the names that they have for it. */
static void test_sub_graphs(void)
{
    lowers("opset 17 graph g(%x:f32[3], %c:bool) -> (%y) { %a = Neg(%x) %y = If(%c) then_branch=graph() -> (%t) { %t = "
           "Add(%a, w:f32[3]) } else_branch=graph() -> (%u) { %u = Abs(%a) } }",
           "If");
}

/* Values that are read elsewhere stay, be it by somebody who watches. */
static gboolean wants_e(const HnValue *v, gpointer data)
{
    (void)data;
    return strcmp(v->name, "e") == 0;
}

static void saw(const HnValue *v, const HnSeen *seen, gpointer data)
{
    g_assert_cmpstr(v->name, ==, "e");
    g_assert_cmpint(seen->rows * seen->width, ==, 32);
    ++*(int *)data;
}

static const char *const softmax = "opset 17 graph g(%x:f32[4,8]) -> (%y) { %m = ReduceMax(%x) axes=[-1] "
                                   "%d = Sub(%x, %m) %e = Exp(%d) %s = ReduceSum(%e, a:i64[1]={-1}) %y = Div(%e, %s) }";

static void test_watched(void)
{
    int n = 0;
    const HnWatch watch = { wants_e, saw, &n };
    g_autoptr(HnModel) m = test_model(softmax);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .watch = &watch });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GPtrArray) out = test_run(s, in);
    g_autoptr(GPtrArray) models = lowered_of(s);
    g_assert_false(holds(models->pdata[0], "Softmax"));
    g_assert_cmpint(n, ==, 1);
}

/* A softmax that overflows does so still: the largest number is not taken off. */
static void test_overflow(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1,2]) -> (%y) { %e = Exp(%x) "
                                      "%s = ReduceSum(%e, a:i64[1]={-1}) %y = Div(%e, %s) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_ptr_array_add(in, test_tensor("f32[1,2]={100,1}"));
    g_autoptr(GPtrArray) out = test_run(s, in);
    g_assert_true(isnan(hn_tensor_get_f64(out->pdata[0], 0)));
}

/* A plan for each part, and all that a node stands for. */
static void test_parts(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[4]) -> (%y) { %a = Neg(%x) %n = NonZero(%a) "
                                      "%t = Transpose(%n) %y = Shape(%t) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GPtrArray) out = test_run(s, in);
    g_autoptr(GPtrArray) models = lowered_of(s);
    g_assert_cmpuint(models->len, >=, 1);
    for (guint i = 0; i < models->len; i++)
        check_text(models->pdata[i]);
    g_assert_true(holds(models->pdata[0], "NonZero"));
}

static void count_parts(const HnStep *s, int depth, gpointer n)
{
    (void)depth;
    if (s->node != NULL && strcmp(s->node->op_type, "Softmax") == 0) {
        const GPtrArray *parts = hn_lowered_parts(s->low, s->node);
        g_assert_cmpuint(parts->len, ==, 5);
        g_assert_cmpstr(((const HnNode *)parts->pdata[0])->op_type, ==, "ReduceMax");
        g_assert_true(parts->pdata[4] == s->origin);
        ++*(int *)n;
    }
}

static void test_stands_for(void)
{
    int n = 0;
    g_autoptr(HnModel) m = test_model(softmax);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GPtrArray) out = test_run(s, in);
    hn_session_foreach_step(s, count_parts, &n);
    g_assert_cmpint(n, ==, 1);
}

/* The folder holds model.onnx and test_data_set_0/input_K.pb. */
static void check_folder(const char *folder)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(folder, "model.onnx", NULL);
    g_autoptr(HnModel) m = hn_onnx_read_file(path, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (int i = 0; i < hn_session_n_inputs(s); i++) {
        g_autofree char *name = g_strdup_printf("input_%d.pb", i);
        g_autofree char *file = g_build_filename(folder, "test_data_set_0", name, NULL);
        g_ptr_array_add(in, hn_onnx_tensor_read(file, NULL, &error));
        g_assert_no_error(error);
    }
    g_autoptr(GPtrArray) out = test_run(s, in);
    g_autoptr(GPtrArray) models = lowered_of(s);
    g_test_message("%s: %u", path, models->len);
    for (guint i = 0; i < models->len; i++)
        check_text(models->pdata[i]);
    if (models->len == 1)
        check_values(m, s, models->pdata[0], in, out, 1e-3);
}

/* Passes that are named, and no others. */
static void test_named(void)
{
    static const char *const only[] = { "fuse-normalization", NULL };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[2,4,8]) -> (%y) { %m = ReduceMax(%x) axes=[-1] "
                                      "%d = Sub(%x, %m) %e = Exp(%d) %s = ReduceSum(%e, a:i64[1]={-1}) "
                                      "%y = Div(%e, %s) }");
    HnTypes *types = hn_types_new(m);
    HnPassOptions o = { .only = only, .passes = hn_lower_passes, .lowering = TRUE };
    hn_model_prepare(m, &error);
    g_assert_no_error(error);
    g_assert_true(hn_types_graph(types, m->graph, 4096, 0, &error));
    g_assert_true(hn_pass_apply(m, types, &o, &error));
    g_assert_cmpuint(m->graph->nodes->len, ==, 5);
    o.only = NULL;
    g_assert_true(hn_pass_apply(m, types, &o, &error));
    g_assert_true(holds(m, "Softmax"));
    hn_types_free(types);
}

static void test_models(void)
{
    const char *folder = g_getenv("HONE_MODELS"), *name;
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    if (dir == NULL || !g_test_slow()) {
        g_test_skip("only with -m slow, and where HONE_MODELS names a folder of real models");
        return;
    }
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            check_folder(path);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lowered/operators", test_operators);
    g_test_add_func("/lowered/bytes-as-numbers", test_bytes_as_numbers);
    g_test_add_func("/lowered/versions", test_versions);
    g_test_add_func("/lowered/sub-graphs", test_sub_graphs);
    g_test_add_func("/lowered/watched", test_watched);
    g_test_add_func("/lowered/overflow", test_overflow);
    g_test_add_func("/lowered/parts", test_parts);
    g_test_add_func("/lowered/stands-for", test_stands_for);
    g_test_add_func("/lowered/named", test_named);
    g_test_add_func("/lowered/models", test_models);
    return g_test_run();
}
