/*
 * hn_reverse(): whole graphs, held against differences of what they compute in f64; branches, straight-through steps,
 * and what has no gradient.
 */
#include <string.h>

#include "op/infer.h"
#include "pass/pass.h"
#include "run_model.h"
#include "train/reverse.h"

static GPtrArray *tensors(const char *text)
{
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_auto(GStrv) parts = g_strsplit(text, " ", -1);
    for (int i = 0; parts[i] != NULL && parts[i][0] != '\0'; i++)
        g_ptr_array_add(list, test_tensor(parts[i]));
    return list;
}

/* The gradient of the sum of r_k * y_k becomes m's only results, in the order of the names in `wanted`; r_k are further
 * inputs. Those that nothing depends on are left out. */
static gboolean add_gradients(HnModel *m, const char *wanted, gboolean straight, GError **error)
{
    HnGraph *g = m->graph;
    g_auto(GStrv) names = g_strsplit(wanted, " ", -1);
    g_autoptr(HnTypes) types = hn_types_new(m);
    g_autoptr(GPtrArray) of = g_ptr_array_new(), dy = g_ptr_array_new(), to = g_ptr_array_new();
    if (!hn_types_graph(types, g, 4096, 0, error))
        return FALSE;
    for (guint k = 0; k < g->outputs->len; k++) {
        HnValue *r = hn_graph_new_value(g, "r");
        hn_value_set_type(r, hn_types_get(types, g->outputs->pdata[k]));
        hn_graph_add_input(g, r);
        g_ptr_array_add(of, g->outputs->pdata[k]);
        g_ptr_array_add(dy, r);
    }
    for (int i = 0; names[i] != NULL; i++)
        g_ptr_array_add(to, hn_graph_find(g, names[i]));
    g_autofree HnValue **gradients = g_new0(HnValue *, to->len + 1u);
    const HnReverse reverse = { .graph = g,
                                .types = types,
                                .n = (int)of->len,
                                .of = (HnValue *const *)of->pdata,
                                .dy = (HnValue *const *)dy->pdata,
                                .n_wanted = (int)to->len,
                                .wanted = (HnValue *const *)to->pdata,
                                .straight = straight };
    if (!hn_reverse(&reverse, gradients, error))
        return FALSE;
    while (g->outputs->len > 0)
        hn_graph_remove_output(g, (int)g->outputs->len - 1);
    for (guint i = 0; i < to->len; i++)
        if (gradients[i] != NULL)
            hn_graph_add_output(g, gradients[i]);
    g_assert_true(hn_model_verify(m, error));
    return TRUE;
}

static HnSession *gradient_session(const char *text, const char *wanted, const HnBackend *backend, HnModel **m)
{
    g_autoptr(GError) error = NULL;
    *m = test_model(text);
    (void)add_gradients(*m, wanted, FALSE, &error);
    g_assert_no_error(error);
    return test_session(*m, backend, &(HnSessionOptions){ .threads = 1 });
}

/* The sum of r_k * y_k. */
static double loss_of(HnSession *s, GPtrArray *x, const GPtrArray *r)
{
    g_autoptr(GPtrArray) y = test_run(s, x);
    double sum = 0;
    for (guint k = 0; k < y->len; k++)
        for (int64_t i = 0; i < ((HnTensor *)y->pdata[k])->n; i++)
            sum += hn_tensor_get_f64(y->pdata[k], i) * hn_tensor_get_f64(r->pdata[k], i);
    return sum;
}

static double difference(HnSession *s, GPtrArray *x, const GPtrArray *r, guint at, int64_t element)
{
    const double h = 1e-6, was = hn_tensor_get_f64(x->pdata[at], element);
    double loss[2];
    for (int side = 0; side < 2; side++) {
        hn_tensor_set_f64(x->pdata[at], element, was + (side == 0 ? h : -h));
        loss[side] = loss_of(s, x, r);
    }
    hn_tensor_set_f64(x->pdata[at], element, was);
    return (loss[0] - loss[1]) / (2 * h);
}

/* Gradients of those inputs whose names are in `wanted`, in the order of the inputs, at each of `points` (inputs by
 * blanks), with one session for all points. */
static void expect(const char *text, const char *wanted, const char *const *points)
{
    static const HnBackend *const backends[] = { &hn_backend_ref, &hn_backend_cpu };
    g_auto(GStrv) names = g_strsplit(wanted, " ", -1);
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnModel) plain = test_model(text), full = NULL;
        g_autoptr(HnSession) s = test_session(plain, backends[b], &(HnSessionOptions){ .threads = 1 });
        g_autoptr(HnSession) reverse = gradient_session(text, wanted, backends[b], &full);
        for (guint p = 0; points[p] != NULL; p++) {
            g_autoptr(GPtrArray) x = tensors(points[p]), y = test_run(s, x), r = g_ptr_array_new();
            g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
            for (guint i = 0; i < x->len; i++)
                g_ptr_array_add(in, hn_tensor_ref(x->pdata[i]));
            for (guint k = 0; k < y->len; k++) {
                const HnTensor *t = y->pdata[k];
                g_ptr_array_add(in, test_random(t->dtype, t->ndim, t->dims, 7 + k));
                g_ptr_array_add(r, in->pdata[in->len - 1]);
            }
            g_autoptr(GPtrArray) dx = test_run(reverse, in);
            g_assert_cmpuint(dx->len, ==, g_strv_length(names));
            for (guint i = 0, k = 0; i < x->len; i++) {
                const char *name = ((HnValue *)plain->graph->inputs->pdata[i])->name;
                if (!g_strv_contains((const char *const *)names, name))
                    continue;
                const HnTensor *d = dx->pdata[k++];
                g_assert_cmpint(d->n, ==, ((HnTensor *)x->pdata[i])->n);
                for (int64_t e = 0; e < d->n; e++) {
                    const double want = difference(s, x, r, i, e), got = hn_tensor_get_f64(d, e);
                    g_assert_cmpfloat_with_epsilon(got, want, 1e-6);
                }
            }
        }
    }
}

/* No gradient, for a reason that has `word` in it. */
static void refuse(const char *text, const char *wanted, const char *word)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    g_assert_false(add_gradients(m, wanted, FALSE, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    if (strstr(error->message, word) == NULL) {
        g_test_message("'%s' does not speak of '%s'", error->message, word);
        g_test_fail();
    }
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

#define POINTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* One value in several places, as an operand of one node twice, and as a result. */
static void test_several_uses(void)
{
    expect("opset 28 graph g(%w:f64[2,2], %x:f64[2,2]) -> (%y, %w, %z) "
           "{ %a = MatMul(%x, %w) %b = Mul(%w, %w) %y = Mul(%a, %b) %z = Sum(%a, %w, %w) }",
           "w x", POINTS("f64[2,2]={1,-2,3,0.5} f64[2,2]={0.3,2,-1,1.5}"));
}

/* Nodes that are taken apart, between others, one behind the other, and with a result that is no wanted one's. */
static void test_apart(void)
{
    expect("opset 28 graph g(%x:f64[1,1,2,2], %k:f64[1,1,2,2], %w:f64[2,2]) -> (%y, %n) "
           "{ %p = MatMul(%x, %w) %a = Attention(%p, %k, %p) is_causal=1 %t = Tanh(%a) %b = Attention(%t, %a, %k) "
           "%y = Mul(%b, %p) %n = Attention(%k, %k, %k) }",
           "x k w", POINTS("f64[1,1,2,2]={1,-2,3,0.5} f64[1,1,2,2]={0.3,2,-1,1.5} f64[2,2]={0.5,1,-0.5,0.2}"));
}

/* A result that is an input: its gradient is what came in. */
static void test_results_that_are_inputs(void)
{
    expect("opset 28 graph g(%x:f64[3]) -> (%x) { }", "x", POINTS("f64[3]={1,2,3}"));
    expect("opset 28 graph g(%x:f64[3]) -> (%x, %y, %x) { %y = Neg(%x) }", "x", POINTS("f64[3]={1,2,3}"));
}

/* Wanted in the middle; what nothing depends on is left out. */
static void test_wanted(void)
{
    g_autoptr(HnModel) m = NULL;
    g_autoptr(HnSession) s =
        gradient_session("opset 28 graph g(%x:f64[2], %u:f64[2]) -> (%y) { %h = Mul(%x, %x) %y = Mul(%h, %h) }",
                         "h u x h", &hn_backend_ref, &m);
    g_autoptr(GPtrArray) in = tensors("f64[2]={1,2} f64[2]={5,5} f64[2]={1,-1}"), dx = test_run(s, in);
    g_autoptr(GPtrArray) want = tensors("f64[2]={2,-8} f64[2]={4,-32} f64[2]={2,-8}");
    g_assert_cmpuint(dx->len, ==, want->len);
    for (guint i = 0; i < want->len; i++)
        test_assert_close(dx->pdata[i], want->pdata[i], 0, 1e-12, "wanted");
}

/* Integers end the way to a value; floats of operators that nobody knows, or that hold several tensors, do not. */
static void test_ends(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 28 graph g(%x:f32[2]) -> (%y) "
                                      "{ %i = Cast(%x) to=7 %f = Cast(%i) to=1 %y = Mul(%f, %f) }");
    g_assert_true(add_gradients(m, "x", FALSE, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(m->graph->outputs->len, ==, 0);
    refuse("opset 28 opset acme 1 graph g(%x:f32[2]) -> (%y) { %s = acme::Split(%x) %y = acme::First(%s) }", "x",
           "operator 'First' has no gradient");
    refuse("opset 28 opset acme 1 graph g(%x:f32[2]) -> (%y) { %s = acme::Odd(%x) %y = Neg(%s) }", "x",
           "the type of what operator 'Neg' gives is not known");
    refuse("opset 28 graph g(%x:f32[2]) -> (%y, %i) { %y, %i, %k, %c = Unique(%x) }", "x", "'Unique' has no gradient");
}

/* Nothing is known but the element type: gradients work, or say what they would have to know. */
static void test_unknown_rank(void)
{
    static const char *const nodes[] = {
        "Add(%x, %w)",
        "MatMul(%x, %w)",
        "Softmax(%x)",
        "ReduceSum(%x)",
        "ReduceMean(%x, two)",
        "Transpose(%x)",
        "Gemm(%x, %w)",
        "Relu(%x)",
        "Flatten(%x)",
        "Concat(%x, %w) axis=-1",
        "Squeeze(%x, two)",
        "Unsqueeze(%x, two)",
        "Gather(%x, two)",
        "Slice(%x, two, two)",
        "Pow(%x, %w)",
        "LogSoftmax(%x)",
        "LayerNormalization(%x, %w)",
        "Conv(%x, %w)",
        "ConvTranspose(%x, %w)",
        "MaxPool(%x) kernel_shape=[2,2]",
        "AveragePool(%x) kernel_shape=[2,2]",
        "GlobalAveragePool(%x)",
        "Expand(%x, two)",
        "Tile(%x, two)",
        "Pad(%x, two)",
        "CumSum(%x, one)",
        "ReduceMax(%x)",
        "ReduceL2(%x)",
        "TopK(%x, two)",
        "Where(b, %x, %w)",
        "InstanceNormalization(%x, %w, %w)",
        "BatchNormalization(%x, %w, %w, %w, %w)",
        "Resize(%x, -, s)",
        "Clip(%x, %w, %w)",
        "DepthToSpace(%x) blocksize=2",
        "Trilu(%x)",
        "GatherElements(%x, two)",
        "PRelu(%x, %w)",
        "GroupNormalization(%x, %w, %w) num_groups=2",
        "RMSNormalization(%x, %w)",
        "ScatterND(%x, two, %w)",
    };
    guint written = 0;
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf("opset 28 graph g(%%x:f32[...], %%w:f32[...]) -> (%%y) "
                                                "{ two:i64[1]={2} one:i64={1} b:bool={true} s:f32[1]={2} %%y = %s }",
                                                nodes[i]);
        g_autoptr(HnModel) m = test_model(text);
        if (add_gradients(m, "x w", FALSE, &error)) {
            written++;
            continue;
        }
        g_test_message("%s: %s", nodes[i], error->message);
        g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    }
    g_assert_cmpuint(written, >, G_N_ELEMENTS(nodes) / 2);
}

static double seconds_for(int n)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new("opset 28 graph g(%x:f32[2], %w:f32[2]) -> (%y) { %v0 = Mul(%x, %w) ");
    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "%%v%d = Add(%%v%d, %s) ", i + 1, i, i % 2 == 0 ? "%w" : "%v0");
    g_string_append_printf(text, "%%y = Neg(%%v%d) }", n);
    g_autoptr(HnModel) m = test_model(text->str);
    const clock_t from = clock();
    g_assert_true(add_gradients(m, "x w", FALSE, &error));
    g_assert_no_error(error);
    g_string_free(text, TRUE);
    return (double)(clock() - from) / CLOCKS_PER_SEC;
}

/* Values that thousands of nodes use: eight times the nodes take less than 24 times as long, and squares 64. */
static void test_many_nodes(void)
{
    double least = G_MAXDOUBLE, most = G_MAXDOUBLE;
    for (int i = 0; i < 3; i++) {
        least = MIN(least, seconds_for(2500));
        most = MIN(most, seconds_for(20000));
    }
    g_test_message("2,500 nodes: %.4f s, 20,000: %.4f s", least, most);
    g_assert_cmpfloat(most, <, 24 * least + 0.02);
}

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* The branches use w and b once, twice or not at all, and hand values of the graph on. */
static void test_if(void)
{
    expect("opset 28 graph g(%c:bool[], %x:f64[2], %w:f64[2], %b:f64[1]) -> (%y) "
           "{ %h = Mul(%x, %w) %z = If(%c) "
           "then_branch=graph() -> (%t) { %s = Tanh(%h) %q = Mul(%s, %w) %t = Add(%q, %b) } "
           "else_branch=graph() -> (%e) { k:f64[2]={2,3} %e = Mul(%h, k) } %y = Mul(%z, %z) }",
           "x w b",
           POINTS("bool={true} f64[2]={1,2} f64[2]={0.5,-0.3} f64[1]={0.2}",
                  "bool={false} f64[2]={1,2} f64[2]={0.5,-0.3} f64[1]={0.2}",
                  "bool={true} f64[2]={-1,0.5} f64[2]={0.1,2} f64[1]={-2}"));
}

/* Results of other shapes in each branch, one of them an input as it is. */
static void test_if_shapes(void)
{
    expect("opset 28 graph g(%c:bool[], %x:f64[2], %w:f64[2]) -> (%y, %v) { %y, %v = If(%c) "
           "then_branch=graph() -> (%w, %t) { %t = Neg(%x) } "
           "else_branch=graph() -> (%e, %f) { %e = Concat(%x, %w) axis=0 %f = Exp(%e) } }",
           "x w", POINTS("bool={true} f64[2]={1,2} f64[2]={0.5,-0.3}", "bool={false} f64[2]={1,2} f64[2]={0.5,-0.3}"));
}

/* A branch inside a branch, with a condition of its own. */
static void test_if_nested(void)
{
    expect("opset 28 graph g(%c:bool[], %d:bool[], %x:f64[2], %w:f64[2]) -> (%y) { %y = If(%c) "
           "then_branch=graph() -> (%t) { %s = Sigmoid(%x) %t = If(%d) "
           "then_branch=graph() -> (%tt) { %tt = Mul(%s, %w) } "
           "else_branch=graph() -> (%te) { %u = Mul(%s, %s) %te = Sub(%u, %x) } } "
           "else_branch=graph() -> (%e) { %e = Mul(%w, %w) } }",
           "x w",
           POINTS("bool={true} bool={true} f64[2]={1,2} f64[2]={0.5,-0.3}",
                  "bool={true} bool={false} f64[2]={1,2} f64[2]={0.5,-0.3}",
                  "bool={false} bool={false} f64[2]={1,2} f64[2]={0.5,-0.3}"));
}

/* What is wanted is used by a branch only, as a weight. */
static void test_if_weight(void)
{
    g_autoptr(HnModel) m = NULL;
    g_autoptr(HnSession) s = gradient_session("opset 28 graph g(%c:bool[], %x:f64[2]) -> (%y) { w:f64[2]={2,3} "
                                              "%y = If(%c) then_branch=graph() -> (%t) { %t = Mul(%x, w) } "
                                              "else_branch=graph() -> (%e) { %e = Neg(%x) } }",
                                              "w", &hn_backend_cpu, &m);
    for (int taken = 1; taken >= 0; taken--) {
        g_autoptr(GPtrArray) in =
            tensors(taken ? "bool={true} f64[2]={5,7} f64[2]={1,10}" : "bool={false} f64[2]={5,7} f64[2]={1,10}");
        g_autoptr(GPtrArray) dw = test_run(s, in), want = tensors(taken ? "f64[2]={5,70}" : "f64[2]={0,0}");
        test_assert_close(dw->pdata[0], want->pdata[0], 0, 1e-12, "w");
    }
}

/* Loop and Scan as the nodes of their runs. */
static void test_unrolled(void)
{
    static const char *const passes[] = { "unroll-loop", NULL };
    static const char *const texts[] = {
        "opset 28 graph g(%x:f64[3,2], %w:f64[2], %h:f64[2]) -> (%last, %all) { %last, %all = Scan(%h, %x) "
        "num_scan_inputs=1 body=graph(%s:f64[2], %e:f64[2]) -> (%n, %o) "
        "{ %a = Mul(%s, %w) %b = Add(%a, %e) %n = Tanh(%b) %o = Mul(%n, %n) } }",
        "opset 28 graph g(%x:f64[3,2], %w:f64[2], %h:f64[2]) -> (%last, %all) { m:i64={3} "
        "%last, %all = Loop(m, -, %h) body=graph(%i:i64[], %go:bool[], %s:f64[2]) -> (%go, %n, %o) "
        "{ %e = Gather(%x, %i) %a = Mul(%s, %w) %b = Add(%a, %e) %n = Tanh(%b) %o = Mul(%n, %n) } }"
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = test_model(texts[i]);
        HnPassLog log;
        hn_pass_log_init(&log);
        g_assert_true(hn_pass_run(m, &(HnPassOptions){ .level = 1, .only = passes }, &log, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(log.made->len, ==, 1);
        hn_pass_log_clear(&log);
        g_autoptr(GString) text = g_string_new(NULL);
        hn_model_print(m, 16, text);
        expect(text->str, "x w h", POINTS("f64[3,2]={1,2,-1,0.5,0.3,0.7} f64[2]={0.5,-0.3} f64[2]={0.2,0.1}"));
    }
}

static void test_control_refused(void)
{
    g_autoptr(GError) error = NULL;
    refuse("opset 28 graph g(%m:i64[], %x:f32[2], %w:f32[2]) -> (%y) { %y = Loop(%m, -, %x) "
           "body=graph(%i:i64[], %go:bool[], %s:f32[2]) -> (%go, %n) { %n = Mul(%s, %w) } }",
           "w", "'Loop' has no gradient");
    refuse("opset 28 graph g(%c:bool[], %x:f32[2]) -> (%y) { %y = If(%c) "
           "then_branch=graph() -> (%t) { %q, %i, %k, %n = Unique(%x) %t = Neg(%q) } "
           "else_branch=graph() -> (%e) { %e = Neg(%x) } }",
           "x", "'Unique' has no gradient");
    refuse("opset 28 graph g(%c:bool[], %x:f32[2]) -> (%y) { r:f32={0.5} on:bool={true} %y = If(%c) "
           "then_branch=graph() -> (%t) { %t = Dropout(%x, r, on) } "
           "else_branch=graph() -> (%e) { %e = Neg(%x) } }",
           "x", "other numbers");
    g_autoptr(HnModel) m = test_model("opset 28 graph g(%c:bool[], %x:f32[2]) -> (%y) { %y = If(%c) "
                                      "then_branch=graph() -> (%t) { w:f32[2]={1,2} %t = Mul(%x, w) } "
                                      "else_branch=graph() -> (%e) { %e = Neg(%x) } }");
    const HnGraph *then = hn_node_attr(m->graph->nodes->pdata[0], "then_branch")->g;
    HnValue *w = then->weights->pdata[0], *gradient, *y = m->graph->outputs->pdata[0];
    g_autoptr(HnTypes) types = hn_types_new(m);
    const HnReverse reverse = {
        .graph = m->graph, .types = types, .n = 1, .of = &y, .dy = &y, .n_wanted = 1, .wanted = &w
    };
    g_assert_false(hn_reverse(&reverse, &gradient, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
}

/* --- straight through --------------------------------------------------------------------------------------------- */

static void expect_straight(const char *text, const char *wanted, const char *in, const char *want)
{
    for (int cpu = 0; cpu < 2; cpu++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = test_model(text);
        (void)add_gradients(m, wanted, TRUE, &error);
        g_assert_no_error(error);
        g_autoptr(HnSession) s =
            test_session(m, cpu ? &hn_backend_cpu : &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) x = tensors(in), y = tensors(want), out = test_run(s, x);
        g_assert_cmpuint(out->len, ==, y->len);
        for (guint k = 0; k < y->len; k++)
            test_assert_close(out->pdata[k], y->pdata[k], 1e-6, 1e-6, text);
    }
}

/* x = 0.3, 10, -40, 63.4 with scale 0.5 in [-128,127]: the last one is clipped at zero point 10, 127 - 10 steps. */
static void test_quantized(void)
{
    expect_straight("opset 28 graph g(%x:f32[4], %s:f32[]) -> (%y) { z:i8={10} %q = QuantizeLinear(%x, %s, z) "
                    "%y = DequantizeLinear(%q, %s, z) }",
                    "x s", "f32[4]={0.3,10,-40,63.4} f32={0.5} f32[4]={1,10,100,1000}",
                    /* ds: (1 - 0.6) + 10 * 0 + 100 * 0 + 1000 * 117 */
                    "f32[4]={1,10,100,0} f32={117000.4}");
    /* a scale for each row, a shape between, and the numbers of a product */
    expect_straight("opset 28 graph g(%x:f32[2,2], %s:f32[2]) -> (%y) { %q = QuantizeLinear(%x, %s) axis=0 "
                    "output_dtype=3 %v = Reshape(%q, n:i64[2]={2,-1}) %y = DequantizeLinear(%v, %s) axis=0 }",
                    "x s", "f32[2,2]={1.2,-3.4,0.26,99} f32[2]={1,0.1} f32[2,2]={1,2,3,4}",
                    /* 1 * (1 - 1.2) + 2 * (-3 + 3.4), 3 * (3 - 2.6) + 4 * 127 */
                    "f32[2,2]={1,2,3,0} f32[2]={0.6,509.2}");
    /* 4 bits without a sign */
    expect_straight("opset 28 graph g(%x:f32[3]) -> (%y) { s:f32={2} %q = QuantizeLinear(%x, s) output_dtype=21 "
                    "%y = DequantizeLinear(%q, s) }",
                    "x", "f32[3]={-3,29,33} f32[3]={1,2,3}", "f32[3]={0,2,0}");
}

static void test_steps(void)
{
    expect_straight(
        "opset 28 graph g(%x:f32[2]) -> (%y) { %a = Round(%x) %b = Floor(%a) %c = Ceil(%b) %y = Mul(%c, %c) }", "x",
        "f32[2]={1.4,-2.6} f32[2]={1,1}", "f32[2]={2,-6}");
    expect_straight("opset 28 graph g(%x:f32[2]) -> (%y) { %y = Sign(%x) }", "x", "f32[2]={1.4,-2.6} f32[2]={3,4}",
                    "f32[2]={3,4}");
}

/* Without being asked for it, integers end the way; other operators on them have no gradient. */
static void test_quantized_otherwise(void)
{
    static const char text[] = "opset 28 graph g(%x:f32[4], %s:f32[]) -> (%y) { %q = QuantizeLinear(%x, %s) "
                               "%y = DequantizeLinear(%q, %s) }";
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    g_assert_true(add_gradients(m, "x", FALSE, &error));
    g_assert_cmpuint(m->graph->outputs->len, ==, 0);
    g_autoptr(HnModel) odd = test_model("opset 28 graph g(%x:f32[1,1,4,4]) -> (%y) { s:f32={1} "
                                        "%q = QuantizeLinear(%x, s) %p = MaxPool(%q) kernel_shape=[2,2] "
                                        "%y = DequantizeLinear(%p, s) }");
    g_assert_false(add_gradients(odd, "x", TRUE, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, "'MaxPool' has no gradient of integers"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reverse/several-uses", test_several_uses);
    g_test_add_func("/reverse/apart", test_apart);
    g_test_add_func("/reverse/results-that-are-inputs", test_results_that_are_inputs);
    g_test_add_func("/reverse/wanted", test_wanted);
    g_test_add_func("/reverse/ends", test_ends);
    g_test_add_func("/reverse/unknown-rank", test_unknown_rank);
    g_test_add_func("/reverse/many-nodes", test_many_nodes);
    g_test_add_func("/reverse/if", test_if);
    g_test_add_func("/reverse/if-shapes", test_if_shapes);
    g_test_add_func("/reverse/if-nested", test_if_nested);
    g_test_add_func("/reverse/if-weight", test_if_weight);
    g_test_add_func("/reverse/unrolled", test_unrolled);
    g_test_add_func("/reverse/control-refused", test_control_refused);
    g_test_add_func("/reverse/quantized", test_quantized);
    g_test_add_func("/reverse/quantized-otherwise", test_quantized_otherwise);
    g_test_add_func("/reverse/steps", test_steps);
    return g_test_run();
}
