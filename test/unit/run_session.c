/*
 * Sessions: plans per shape, memory shared in place and through views, shapes that depend on data, sub-graphs, budgets.
 * What comes out is compared with numbers worked out by hand or with the ref backend.
 */
#include <string.h>

#include "run_model.h"

/* --- helpers ----------------------------------------------------------------------------------------------------- */

static GPtrArray *tensors(const char *text)
{
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_auto(GStrv) parts = g_strsplit(text, " ", -1);
    for (int i = 0; parts[i] != NULL && parts[i][0] != '\0'; i++)
        g_ptr_array_add(list, test_tensor(parts[i]));
    return list;
}

static void expect(HnSession *s, const char *in, const char *want)
{
    g_autoptr(GPtrArray) x = tensors(in), kept = test_copies(x), y = tensors(want), out = test_run(s, x);
    g_assert_cmpuint(out->len, ==, y->len);
    for (guint i = 0; i < y->len; i++)
        test_assert_close(out->pdata[i], y->pdata[i], 0, 1e-6, in);
    for (guint i = 0; i < x->len; i++)
        test_assert_close(x->pdata[i], kept->pdata[i], 0, 0, "an input after the run");
}

static void expect_error(HnSession *s, const char *in, HnError code, const char *word)
{
    g_autoptr(GPtrArray) x = tensors(in);
    g_autoptr(GError) error = NULL;
    HnTensor *out[4] = { NULL };
    g_assert_false(hn_session_run(s, (HnTensor *const *)x->pdata, out, &error));
    g_assert_error(error, HN_ERROR, (gint)code);
    if (strstr(error->message, word) == NULL) {
        g_test_message("'%s' does not speak of '%s'", error->message, word);
        g_test_fail();
    }
    g_assert_null(out[0]);
}

static const HnBackend *const backends[] = { &hn_backend_ref, &hn_backend_cpu };

/* --- halves held in f32 ---------------------------------------------------------------------------------------------
 */

static void note_kernel(const HnStep *s, int depth, gpointer names)
{
    (void)depth;
    g_string_append_printf(names, "%s ", s->kernel != NULL ? s->kernel->name : "ref");
}

/* Nothing is rounded between nodes, a shape is passed on, and the results are halves again. 2049 is no f16. */
static void test_halves(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f16[1,2,3]) -> (%y, %z) { %1 = Add(%x, one:f16={1}) "
                                      "%2 = Reshape(%1, shape:i64[2]={2,3}) %3 = Transpose(%2) perm=[1,0] "
                                      "%y = Sub(%3, one) %z = Cast(%3) to=6 }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    expect(s, "f16[1,2,3]={2048,1,2,3,4,5}", "f16[3,2]={2048,3,1,4,2,5} i32[3,2]={2049,4,2,5,3,6}");
    g_autoptr(GString) names = g_string_new(NULL);
    hn_session_foreach_step(s, note_kernel, names);
    g_assert_null(strstr(names->str, "ref"));
    g_assert_cmpint(g_strrstr(names->str, "cpu.convert") - names->str, >, 0);
}

/* --- values inside one another's memory -------------------------------------------------------------------------- */

static void count_joined(const HnStep *s, int depth, gpointer count)
{
    (void)depth;
    for (int i = 0; i < s->n_in; i++)
        *(int *)count += s->in[i].joined;
    for (int k = 0; k < s->n_out; k++)
        *(int *)count += s->out[k].joined;
}

/* Runs the model on both backends, twice with different inputs, and counts what was not copied on the CPU. */
static void check_joined(const char *text, int joined)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) judge = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    for (guint64 seed = 1; seed <= 2; seed++) {
        g_autoptr(GPtrArray) in = test_inputs(s, seed), got = test_run(s, in), want = test_run(judge, in);
        for (guint i = 0; i < want->len; i++)
            test_assert_close(got->pdata[i], want->pdata[i], 1e-4, 1e-3, text); /* sums of some 800 products */
    }
    int count = 0;
    hn_session_foreach_step(s, count_joined, &count);
    g_assert_cmpint(count, ==, joined);
}

static void test_joined(void)
{
    /* sources written into their places, a result that is a part of another, parts read where they are */
    check_joined("opset 17 graph g(%x:f32[1,4,6]) -> (%y) { %1 = Softmax(%x) axis=2 %2 = Softmax(%1) axis=1 "
                 "%3 = Concat(%1, %2) axis=1 %4 = Softmax(%3) axis=2 %5 = Concat(%4, %3) axis=1 %y = Neg(%5) }",
                 4);
    check_joined("opset 17 graph g(%x:f32[6,4]) -> (%y, %z) { %1, %2 = Split(%x, n:i64[2]={2,4}) axis=0 "
                 "%y = Softmax(%1) %z = Softmax(%2) }",
                 2);
    check_joined("opset 17 graph g(%x:f32[4,6]) -> (%y, %z) { %1, %2 = Split(%x, n:i64[2]={2,4}) axis=1 "
                 "%y = Softmax(%1) %z = Softmax(%2) }",
                 0);
    /* rows that follow one another are where they are; not those that do not, nor of an axis inside */
    check_joined("opset 17 graph g(%x:f32[3,4,6]) -> (%y, %z, %u, %v) { %1 = Gather(%x, a:i64={-1}) "
                 "%2 = Gather(%x, b:i64[2]={0,1}) %3 = Gather(%x, c:i64[2]={1,0}) %4 = Gather(%x, d:i64={1}) axis=1 "
                 "%y = Softmax(%1) %z = Softmax(%2) %u = Softmax(%3) %v = Softmax(%4) }",
                 2);
    /* exported with channels last: nothing is moved but by what computes */
    check_joined("opset 17 graph g(%x:f32[1,9,9,32]) -> (%y) { %1 = Transpose(%x) perm=[0,3,1,2] "
                 "%2 = Conv(%1, w:f32[64,32,3,3]) %3 = Conv(%1, v:f32[32,32,3,3]) %4 = Concat(%2, %3) axis=1 "
                 "%5 = Conv(%4, u:f32[32,96,3,3]) %6 = Transpose(%5) perm=[0,2,3,1] %y = Neg(%6) }",
                 4);
    /* a source twice, a source that is a result, a source that the result outlives */
    check_joined("opset 17 graph g(%x:f32[2,3]) -> (%y) { %1 = Softmax(%x) %y = Concat(%1, %1) axis=0 }", 0);
    check_joined("opset 17 graph g(%x:f32[2,3]) -> (%1, %y) { %1 = Softmax(%x) %2 = Neg(%1) "
                 "%y = Concat(%1, %2) axis=0 }",
                 1);
    check_joined("opset 17 graph g(%x:f32[2,3], %c:bool) -> (%y) { %r = If(%c) "
                 "then_branch=graph() -> (%a) { %1 = Softmax(%x) %2 = Neg(%1) %a = Concat(%1, %2) axis=0 } "
                 "else_branch=graph() -> (%b) { %b = Concat(%x, %x) axis=0 } %y = Neg(%r) }",
                 0);
}

/* --- plans per shape --------------------------------------------------------------------------------------------- */

static guint plans_of(const HnSession *s)
{
    HnSessionStats stats;
    hn_session_stats(s, &stats);
    return stats.plans;
}

static void test_plan_cache(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N]) -> (%y) { %1 = Add(%x, one:f32={1}) %y = Neg(%1) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .plan_cache = 2 });
    expect(s, "f32[1]={1}", "f32[1]={-2}");
    g_assert_cmpuint(plans_of(s), ==, 1);
    expect(s, "f32[2]={1,2}", "f32[2]={-2,-3}");
    expect(s, "f32[1]={5}", "f32[1]={-6}");
    g_assert_cmpuint(plans_of(s), ==, 2);
    expect(s, "f32[3]={1,2,3}", "f32[3]={-2,-3,-4}");
    g_assert_cmpuint(plans_of(s), ==, 2); /* the one of 2 elements, used least recently, is gone */
    expect(s, "f32[0]", "f32[0]");
    expect(s, "f32[2]={1,2}", "f32[2]={-2,-3}");
}

static void test_run_allocates_nothing(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[2,8,9,9]) -> (%y) { %1 = Conv(%x, w:f32[8,8,3,3]) %2 = Relu(%1) "
                   "%3 = Softmax(%2) axis=1 %4 = Flatten(%3) %y = Gemm(%4, v:f32[392,10]) }");
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .budget = budget });
    g_autoptr(GPtrArray) in = test_inputs(s, 1), first = test_run(s, in), kept = test_copies(first);
    guint64 count = hn_budget_count(budget);
    for (int i = 0; i < 3; i++) {
        g_autoptr(GPtrArray) again = test_run(s, in);
        test_assert_close(again->pdata[0], kept->pdata[0], 0, 0, "a repeated run");
    }
    g_assert_cmpuint(hn_budget_count(budget), ==, count);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void count_inplace(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(int *)data += s->inplace;
}

static void test_inplace(void)
{
    /* f64: one step for each */
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f64[4]) -> (%y) { %1 = Neg(%x) %2 = Exp(%1) %3 = Neg(%2) "
                                      "%4 = Add(%3, %3) %5 = Add(%2, %4) %y = Neg(%5) }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        expect(s, "f64[4]={0,0,0,0}", "f64[4]={1,1,1,1}");
        HnSessionStats stats;
        int inplace = 0;
        hn_session_stats(s, &stats);
        hn_session_foreach_step(s, count_inplace, &inplace);
        g_assert_cmpint(inplace, ==, 3); /* %2 on %1, %4 on %3, %5 on %2; never on the input, and %y is a result */
        g_assert_cmpuint(stats.arena_bytes, ==, 128);
        g_assert_cmpuint(stats.output_bytes, ==, 32);
    }
}

static void test_views(void)
{
    static const char *const text =
        "opset 17 graph g(%x:f32[2,3]) -> (%a, %b, %c, %x, %d, %w) { w:f32[2]={8,9} "
        "%a = Reshape(%x, s:i64[2]={3,2}) "                         /* a result that looks at an input */
        "%1 = Neg(%x) %b = Flatten(%1) axis=0 %c = Reshape(%1, s) " /* two that look at one value */
        "%2 = Unsqueeze(%1, t:i64[1]={0}) %3 = Neg(%2) %d = Squeeze(%3) }";
    g_autoptr(HnModel) m = test_model(text);
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        for (int run = 0; run < 2; run++)
            expect(s, run == 0 ? "f32[2,3]={1,2,3,4,5,6}" : "f32[2,3]={0,0,0,0,0,7}",
                   run == 0 ? "f32[3,2]={1,2,3,4,5,6} f32[1,6]={-1,-2,-3,-4,-5,-6} f32[3,2]={-1,-2,-3,-4,-5,-6} "
                              "f32[2,3]={1,2,3,4,5,6} f32[2,3]={1,2,3,4,5,6} f32[2]={8,9}"
                            : "f32[3,2]={0,0,0,0,0,7} f32[1,6]={0,0,0,0,0,-7} f32[3,2]={0,0,0,0,0,-7} "
                              "f32[2,3]={0,0,0,0,0,7} f32[2,3]={0,0,0,0,0,7} f32[2]={8,9}");
    }
}

/* What is written over may be looked at by another input of the same step: as it was, not as it becomes. */
static void test_overwritten_views(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[6]) -> (%y) { i:i64[6,1]={5,4,3,2,1,0} %1 = Neg(%x) %2 = Reshape(%1, s:i64[2]={2,3}) "
        "%3 = Reshape(%2, t:i64[1]={6}) %4 = ScatterND(%1, i, %3) %y = Neg(%4) }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        expect(s, "f32[6]={1,2,3,4,5,6}", "f32[6]={6,5,4,3,2,1}");
    }
}

/* Results of one run stay what they were while the session lives on other inputs of other shapes. */
static void test_results_of_other_shapes_stay(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N]) -> (%y) { %y = Neg(%x) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .plan_cache = 1 });
    g_autoptr(GPtrArray) in = tensors("f32[2]={1,2}"), out = test_run(s, in);
    expect(s, "f32[3]={1,2,3}", "f32[3]={-1,-2,-3}");
    g_autoptr(HnTensor) want = test_tensor("f32[2]={-1,-2}");
    test_assert_close(out->pdata[0], want, 0, 0, "a result of a plan that is gone");
}

/* What is only planned tells what runs would need, with a budget that has no room for it. */
static void test_plan_only(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1024,1024]) -> (%y) { %1 = Exp(%x) %2 = Transpose(%1) "
                                      "%3 = MatMul(%1, %2) %4 = Softmax(%3) %y = ReduceSum(%4) keepdims=0 }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnBudget) budget = hn_budget_new((gsize)2 << 20);
        HnSessionOptions o = { .threads = 1 };
        HnSessionStats real, planned;
        g_autoptr(GError) error = NULL;
        g_autoptr(HnSession) s = test_session(m, backends[b], &o);
        HnType *type = hn_session_input(s, 0)->type;
        g_assert_true(hn_session_prepare(s, &type, NULL));
        hn_session_stats(s, &real);
        g_assert_cmpuint(real.arena_bytes, >=, (gsize)8 << 20);
        o.budget = budget;
        g_autoptr(HnSession) none = test_session(m, backends[b], &o);
        g_assert_false(hn_session_prepare(none, &type, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        o.plan_only = TRUE;
        g_autoptr(HnSession) only = test_session(m, backends[b], &o);
        g_assert_true(hn_session_prepare(only, &type, NULL));
        hn_session_stats(only, &planned);
        g_assert_cmpuint(planned.arena_bytes, ==, real.arena_bytes);
        g_assert_cmpuint(planned.steps, ==, real.steps);
        g_assert_cmpuint(planned.output_bytes, ==, real.output_bytes);
    }
}

/* --- shapes that depend on data ---------------------------------------------------------------------------------- */

static void test_dynamic(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[N]) -> (%y, %n, %z) { %i = NonZero(%x) %j = Transpose(%i) "
                   "%v = GatherND(%x, %j) %y = Neg(%v) %n = Shape(%v) %z = Neg(%x) }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        for (int run = 0; run < 2; run++) {
            expect(s, "f32[4]={0,3,0,4}", "f32[2]={-3,-4} i64[1]={2} f32[4]={0,-3,0,-4}");
            expect(s, "f32[4]={1,3,0,4}", "f32[3]={-1,-3,-4} i64[1]={3} f32[4]={-1,-3,0,-4}");
            expect(s, "f32[4]={0,0,0,0}", "f32[0] i64[1]={0} f32[4]={0,0,0,0}");
            expect(s, "f32[1]={7}", "f32[1]={-7} i64[1]={1} f32[1]={-7}");
        }
    }
}

/* A Reshape by a fed shape, and what was made before it used behind it, also in a layout of the backend's own. */
static void test_dynamic_reshape(void)
{
    static const char *const text =
        "opset 17 graph g(%x:f32[1,16,6,6], %s:i64[2]) -> (%y, %z) { %c = Conv(%x, w:f32[32,16,3,3]) %r = Relu(%c) "
        "%f = Reshape(%r, %s) %y = ReduceSum(%f, a:i64[1]={1}) keepdims=0 %z = Conv(%r, v:f32[16,32,3,3]) }";
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) cpu = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    for (int run = 0; run < 4; run++) {
        g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
        g_ptr_array_add(in, test_random(HN_F32, 4, (const int64_t[]){ 1, 16, 6, 6 }, (uint64_t)run));
        g_ptr_array_add(in, test_tensor(run % 2 == 0 ? "i64[2]={32,16}" : "i64[2]={64,-1}"));
        g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(cpu, in);
        for (guint i = 0; i < want->len; i++)
            test_assert_close(got->pdata[i], want->pdata[i], 1e-4, 1e-4, text);
    }
}

/* --- sub-graphs ----------------------------------------------------------------------------------------------------
 */

static void test_if(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[2], %c:bool) -> (%y) { k:f32={10} %n = Neg(%x) %r = If(%c) "
        "then_branch=graph() -> (%t) { %t = Add(%n, k) } else_branch=graph() -> (%e) { %e = Concat(%x, %n) axis=0 } "
        "%y = Neg(%r) }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        for (int run = 0; run < 2; run++) {
            expect(s, "f32[2]={1,2} bool={true}", "f32[2]={-9,-8}");
            expect(s, "f32[2]={1,2} bool={false}", "f32[4]={-1,-2,1,2}");
        }
    }
}

static void test_loop(void)
{
    /* s starts at x and gains x (captured) at each turn; each state and the number of the turn are collected */
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[2], %m:i64) -> (%last, %all, %turns) { %last, %all, %turns = Loop(%m, -, %x) "
        "body=graph(%i:i64, %c:bool, %s:f32[2]) -> (%go, %next, %copy, %turn) { %go = Identity(%c) %next = Add(%s, %x) "
        "%copy = Neg(%next) %turn = Identity(%i) } }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        for (int run = 0; run < 2; run++) {
            expect(s, "f32[2]={1,2} i64={3}", "f32[2]={4,8} f32[3,2]={-2,-4,-3,-6,-4,-8} i64[3]={0,1,2}");
            expect(s, "f32[2]={1,2} i64={1}", "f32[2]={2,4} f32[1,2]={-2,-4} i64[1]={0}");
        }
    }
}

/* A value that grows by each turn, and an If inside that captures through two graphs. */
static void test_loop_nested(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[1], %m:i64) -> (%y) { %y = Loop(%m, -, %x) "
        "body=graph(%i:i64, %c:bool, %s:f32[N]) -> (%go, %next) { %go = Identity(%c) %even = Equal(%i, zero:i64={0}) "
        "%next = If(%even) then_branch=graph() -> (%t) { %t = Concat(%s, %x) axis=0 } "
        "else_branch=graph() -> (%e) { %d = Add(%s, %s) %e = Concat(%d, %x) axis=0 } } }");
    for (guint b = 0; b < G_N_ELEMENTS(backends); b++) {
        g_autoptr(HnSession) s = test_session(m, backends[b], &(HnSessionOptions){ .threads = 1 });
        for (int run = 0; run < 2; run++)
            expect(s, "f32[1]={1} i64={3}", "f32[4]={4,4,2,1}");
    }
}

/* --- backends, options and errors -------------------------------------------------------------------------------- */

static void test_null_backend(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[N,4]) -> (%y) { %1 = Neg(%x) %2 = Exp(%1) %y = Neg(%2) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_null, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, 2, (const int64_t[]){ 1 << 20, 4 });
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_session_prepare(s, &type, &error));
    g_assert_no_error(error);
    HnSessionStats stats;
    hn_session_stats(s, &stats);
    g_assert_cmpuint(stats.arena_bytes, ==, (gsize)16 << 20); /* planned, but not there */
    g_assert_cmpuint(stats.steps, ==, 3);

    g_autoptr(HnModel) d = test_model("opset 17 graph g(%x:f32[4]) -> (%y) { %i = NonZero(%x) @'where' %y = Neg(%i) }");
    g_autoptr(HnSession) t = test_session(d, &hn_backend_null, &(HnSessionOptions){ .threads = 1 });
    expect_error(t, "f32[4]={1,0,0,0}", HN_ERROR_UNSUPPORTED, "where");
}

static void test_strict(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f64[2,2]) -> (%y) { %y = MatMul(%x, %x) @'slow' }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .strict = TRUE });
    expect_error(s, "f64[2,2]={1,2,3,4}", HN_ERROR_UNSUPPORTED, "slow");
    g_autoptr(HnModel) fast = test_model("opset 17 graph g(%x:f32[2,2]) -> (%y) { %y = MatMul(%x, %x) }");
    g_autoptr(HnSession) t = test_session(fast, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .strict = TRUE });
    expect(t, "f32[2,2]={1,2,3,4}", "f32[2,2]={7,10,15,22}");
}

static void test_bad_inputs(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%left:f32[2,N], %x:f32[...]) -> (%y) { %y = MatMul(%left, %x) @'prod' }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    expect_error(s, "f64[2,2]={1,2,3,4} f32[2,2]", HN_ERROR_TYPE, "left");
    expect_error(s, "f32[3,2] f32[2,2]", HN_ERROR_SHAPE, "left");
    expect_error(s, "f32[2] f32[2,2]", HN_ERROR_SHAPE, "left");
    expect_error(s, "f32[2,2] f32[3,2]", HN_ERROR_SHAPE, "prod");
    g_autoptr(GError) error = NULL;
    HnTensor *in[2] = { NULL, NULL }, *out[1] = { NULL };
    g_assert_false(hn_session_run(s, in, out, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GRAPH);
    expect(s, "f32[2,2]={1,0,0,1} f32[2,1]={5,6}", "f32[2,1]={5,6}"); /* and it still works */
}

static void test_unknown_operator(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 opset com.acme 1 graph g(%x:f32[2]) -> (%y) { %y = com.acme::Foo(%x) @'f' }");
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_session_new(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, "com.acme.Foo"));
}

static void test_feeds(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[2]) -> (%y) { w:f32[2]={1,1} %y = Add(%x, w) }");
    HnValue *w = hn_graph_find(m->graph, "w");
    hn_graph_add_input(m->graph, w);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    expect(s, "f32[2]={1,2}", "f32[2]={2,3}");
    const char *const names[] = { "w", NULL }, *const wrong[] = { "nope", NULL };
    g_autoptr(HnSession) fed = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .feeds = names });
    expect(fed, "f32[2]={1,2} f32[2]={5,6}", "f32[2]={6,8}");
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_session_new(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .feeds = wrong }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
}

/* --- budgets ----------------------------------------------------------------------------------------------------- */

static const char *const budget_models[] = {
    "opset 17 graph g(%x:f32[1,16,8,8]) -> (%y, %r) { %1 = Conv(%x, w:f32[16,16,3,3], b:f32[16]) %2 = Relu(%1) "
    "%3 = MaxPool(%2) kernel_shape=[2,2] strides=[2,2] %4 = Flatten(%3) %y = Gemm(%4, v:f32[144,5], c:f32[5]) %r = "
    "Neg(%y) }",
    "opset 17 graph g(%x:f32[1,4,8,8]) -> (%y) { %i = NonZero(%x) %1 = Cast(%i) to=1 %2 = Add(%1, one:f32={1}) "
    "%y = ReduceSum(%2) }",
    "opset 17 graph g(%x:f32[2]) -> (%y, %all) { %y, %all = Loop(m:i64={3}, -, %x) "
    "body=graph(%i:i64, %c:bool, %s:f32[2]) -> (%go, %next, %copy) { %go = Identity(%c) %next = Add(%s, %x) "
    "%copy = Neg(%next) } }",
};

/* Whichever allocation fails, the session says so, frees everything, and runs once there is room. */
static void test_each_allocation_fails(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(budget_models); i++) {
        g_autoptr(HnModel) m = test_model(budget_models[i]);
        guint64 k = 1;
        gboolean all = FALSE;
        for (; !all; k++) {
            g_autoptr(HnBudget) budget = hn_budget_new(0);
            HnSessionOptions o = { .threads = 1, .budget = budget };
            g_autoptr(GError) error = NULL;
            hn_budget_fail_at(budget, k);
            HnSession *s = hn_session_new(m, &hn_backend_cpu, &o, &error);
            if (s != NULL) {
                g_autoptr(GPtrArray) in = test_inputs(s, 3);
                HnTensor *out[2] = { NULL };
                all = hn_session_run(s, (HnTensor *const *)in->pdata, out, &error);
                hn_budget_fail_at(budget, 0);
                if (!all) {
                    g_assert_null(out[0]);
                    g_autoptr(GPtrArray) again = test_run(s, in);
                    g_assert_cmpuint(again->len, ==, (guint)hn_session_n_outputs(s));
                }
                for (int j = 0; j < 2; j++)
                    hn_tensor_unref(out[j]);
            }
            if (!all)
                g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
            hn_session_free(s);
            g_assert_cmpuint(hn_budget_used(budget), ==, 0);
        }
        g_assert_cmpuint(k, >, 2);
    }
}

static void test_limit(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N]) -> (%y) { %1 = Neg(%x) %y = Neg(%1) }");
    g_autoptr(HnBudget) budget = hn_budget_new(50000);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .budget = budget });
    g_autoptr(HnTensor) big = test_random(HN_F32, 1, (const int64_t[]){ 20000 }, 1);
    g_autoptr(GError) error = NULL;
    HnTensor *out[1] = { NULL };
    g_assert_false(hn_session_run(s, &big, out, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    expect(s, "f32[1]={1}", "f32[1]={1}");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/halves", test_halves);
    g_test_add_func("/run/joined", test_joined);
    g_test_add_func("/run/plan-cache", test_plan_cache);
    g_test_add_func("/run/plan-only", test_plan_only);
    g_test_add_func("/run/allocates-nothing", test_run_allocates_nothing);
    g_test_add_func("/run/inplace", test_inplace);
    g_test_add_func("/run/overwritten-views", test_overwritten_views);
    g_test_add_func("/run/views", test_views);
    g_test_add_func("/run/results-stay", test_results_of_other_shapes_stay);
    g_test_add_func("/run/dynamic/nonzero", test_dynamic);
    g_test_add_func("/run/dynamic/reshape", test_dynamic_reshape);
    g_test_add_func("/run/sub-graph/if", test_if);
    g_test_add_func("/run/sub-graph/loop", test_loop);
    g_test_add_func("/run/sub-graph/nested", test_loop_nested);
    g_test_add_func("/run/null", test_null_backend);
    g_test_add_func("/run/strict", test_strict);
    g_test_add_func("/run/bad-inputs", test_bad_inputs);
    g_test_add_func("/run/unknown-operator", test_unknown_operator);
    g_test_add_func("/run/feeds", test_feeds);
    g_test_add_func("/run/budget/each-allocation", test_each_allocation_fails);
    g_test_add_func("/run/budget/limit", test_limit);
    return g_test_run();
}
