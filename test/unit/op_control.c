/*
 * If, Loop and Scan: what sub-graphs are fed with and what becomes of their results, opset by opset; wrong sub-graphs
 * are refused. The numbers are worked out by hand.
 */
#include <string.h>

#include "op/infer.h"
#include "run_model.h"

static GPtrArray *tensors(const char *text)
{
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_auto(GStrv) parts = g_strsplit(text, " ", -1);
    for (int i = 0; parts[i] != NULL && parts[i][0] != '\0'; i++)
        g_ptr_array_add(list, test_tensor(parts[i]));
    return list;
}

/* Runs `text` on ref and on the CPU backend, twice each. */
static void expect(const char *text, const char *in, const char *want)
{
    static const HnBackend *const backends[] = { &hn_backend_ref, &hn_backend_cpu };
    g_autoptr(GPtrArray) x = tensors(in), y = tensors(want);
    for (int i = 0; i < 4; i++) {
        g_autoptr(HnModel) m = test_model(text);
        g_autoptr(HnSession) s = test_session(m, backends[i % 2], &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) out = test_run(s, x);
        g_assert_cmpuint(out->len, ==, y->len);
        for (guint k = 0; k < y->len; k++)
            test_assert_close(out->pdata[k], y->pdata[k], 0, 1e-6, in);
    }
}

/* Making a session or running it fails with this code and a message that has `word` in it. */
static void refuse(const char *text, const char *in, HnError code, const char *word)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(GPtrArray) x = tensors(in);
    HnTensor *out[4] = { NULL };
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 }, &error);
    if (s != NULL)
        g_assert_false(hn_session_run(s, (HnTensor *const *)x->pdata, out, &error));
    g_assert_error(error, HN_ERROR, (gint)code);
    if (strstr(error->message, word) == NULL) {
        g_test_message("'%s' does not speak of '%s'", error->message, word);
        g_test_fail();
    }
}

/* The inferred type of the graph's output k. */
static void expect_type(const char *text, guint k, const char *want)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    g_assert_true(hn_graph_infer(m->graph, TRUE, &error));
    g_assert_no_error(error);
    const HnValue *v = m->graph->outputs->pdata[k];
    g_autofree char *got = v->type != NULL ? hn_type_describe(v->type) : g_strdup("nothing");
    g_assert_cmpstr(got, ==, want);
}

/* --- If ---------------------------------------------------------------------------------------------------------- */

static const char if_text[] = "opset 17 graph g(%c:bool[], %x:f32[3]) -> (%y) { %y = If(%c) "
                              "then_branch=graph() -> (%t) { %t = Neg(%x) } "
                              "else_branch=graph() -> (%e) { %e = Concat(%x, %x) axis=0 } }";

static void test_if(void)
{
    expect(if_text, "bool={true} f32[3]={1,2,3}", "f32[3]={-1,-2,-3}");
    expect(if_text, "bool={false} f32[3]={1,2,3}", "f32[6]={1,2,3,1,2,3}");
    expect_type(if_text, 0, "f32[?]");
    expect_type(
        "opset 17 graph g(%x:f32[3]) -> (%y) { c:bool[1]={true} %y = If(c) "
        "then_branch=graph() -> (%t) { %t = Neg(%x) } else_branch=graph() -> (%e) { %e = Concat(%x, %x) axis=0 } }",
        0, "f32[3]");
    expect_type("opset 17 graph g(%c:bool[], %x:f32[N,3], %z:f32[2]) -> (%y) { %y = If(%c) "
                "then_branch=graph() -> (%t) { %t = Neg(%x) } else_branch=graph() -> (%e) { %e = Neg(%z) } }",
                0, "f32[...]");
}

static void test_if_refused(void)
{
    refuse("opset 17 graph g(%c:bool[2], %x:f32[1]) -> (%y) { %y = If(%c) then_branch=graph() -> (%t) { %t = Neg(%x) } "
           "else_branch=graph() -> (%e) { %e = Abs(%x) } }",
           "bool[2]={true,false} f32[1]={1}", HN_ERROR_SHAPE, "one bool");
    refuse("opset 17 graph g(%c:bool[], %x:f32[1]) -> (%y) { %y = If(%c) then_branch=graph() -> (%t) { %t = Neg(%x) } "
           "else_branch=graph() -> (%e, %f) { %e = Abs(%x) %f = Neg(%x) } }",
           "bool={true} f32[1]={1}", HN_ERROR_GRAPH, "else_branch");
}

/* --- Loop -------------------------------------------------------------------------------------------------------- */

/* state doubles and x is added; the state before each run is collected */
#define LOOP_BODY                                                                                                     \
    "body=graph(%i:i64[], %go:bool[], %s:f32[2]) -> (%more, %next, %seen:f32[2]) { %d = Add(%s, %s) %next = Add(%d, " \
    "%x) "                                                                                                            \
    "%top = ReduceMax(%next) keepdims=0 %more = Less(%top, limit:f32={20}) %seen = Identity(%s) } }"

static const char for_text[] =
    "opset 17 graph g(%m:i64[], %x:f32[2]) -> (%y, %all) { %y, %all = Loop(%m, -, %x) " LOOP_BODY;
static const char while_text[] =
    "opset 17 graph g(%c:bool[], %x:f32[2]) -> (%y, %all) { %y, %all = Loop(-, %c, %x) " LOOP_BODY;
static const char both_text[] =
    "opset 17 graph g(%m:i64[], %c:bool[], %x:f32[2]) -> (%y, %all) { %y, %all = Loop(%m, %c, %x) " LOOP_BODY;

static void test_loop(void)
{
    expect(for_text, "i64={3} f32[2]={1,2}", "f32[2]={15,30} f32[3,2]={1,2,3,6,7,14}"); /* its condition is ignored */
    expect(for_text, "i64={5} f32[2]={1,0}", "f32[2]={63,0} f32[5,2]={1,0,3,0,7,0,15,0,31,0}");
    expect(while_text, "bool={true} f32[2]={1,2}", "f32[2]={15,30} f32[3,2]={1,2,3,6,7,14}");
    expect(while_text, "bool={false} f32[2]={1,2}", "f32[2]={1,2} f32[0,2]={}");
    expect(both_text, "i64={2} bool={true} f32[2]={1,2}", "f32[2]={7,14} f32[2,2]={1,2,3,6}");
    expect(both_text, "i64={9} bool={true} f32[2]={1,2}", "f32[2]={15,30} f32[3,2]={1,2,3,6,7,14}");
    expect(both_text, "i64={0} bool={true} f32[2]={1,2}", "f32[2]={1,2} f32[0,2]={}");
    expect_type(for_text, 0, "f32[2]");
    expect_type(for_text, 1, "f32[?,2]");
}

/* A carried value that grows, and the number of the run. */
static const char grow_text[] = "opset 13 graph g(%m:i64[1], %x:i64[N]) -> (%y) { %y = Loop(%m, -, %x) "
                                "body=graph(%i:i64[1], %go:bool[1], %s:i64[...]) -> (%go, %next) "
                                "{ %next = Concat(%s, %i) axis=0 } }";

static void test_loop_grows(void)
{
    expect(grow_text, "i64[1]={3} i64[2]={7,8}", "i64[5]={7,8,0,1,2}");
    expect_type(grow_text, 0, "i64[?]");
    expect_type("opset 13 graph g(%x:f32[2]) -> (%y, %all) { m:i64[]={4} %y, %all = Loop(m, -, %x) "
                "body=graph(%i:i64[], %go:bool[], %s:f32[2]) -> (%go, %n, %n2) { %n = Neg(%s) %n2 = Abs(%s) } }",
                1, "f32[4,2]");
}

static void test_loop_refused(void)
{
    refuse("opset 17 graph g(%m:i64[], %x:f32[2]) -> (%y) { %y = Loop(%m, -, %x) body=graph(%i:i64[], %go:bool[]) -> "
           "(%go) "
           "{ } }",
           "i64={1} f32[2]={1,2}", HN_ERROR_GRAPH, "do not fit");
    refuse("opset 17 graph g(%m:i64[2], %x:f32[2]) -> (%y) { %y = Loop(%m, -, %x) "
           "body=graph(%i:i64[], %go:bool[], %s:f32[2]) -> (%go, %n) { %n = Neg(%s) } }",
           "i64[2]={1,2} f32[2]={1,2}", HN_ERROR_SHAPE, "trip count");
    refuse("opset 17 graph g(%m:i64[], %x:i64[1]) -> (%y, %all) { %y, %all = Loop(%m, -, %x) "
           "body=graph(%i:i64[], %go:bool[], %s:i64[...]) -> (%go, %n, %e) { %n = Concat(%s, %s) axis=0 %e = "
           "Identity(%s) } }",
           "i64={2} i64[1]={1}", HN_ERROR_SHAPE, "later");
}

/* --- Scan -------------------------------------------------------------------------------------------------------- */

#define SCAN_BODY "body=graph(%s:f32[2], %e:f32[2]) -> (%t, %o) { %t = Add(%s, %e) %o = Identity(%t) } }"

static const char scan_text[] =
    "opset 17 graph g(%s:f32[2], %x:f32[3,2]) -> (%y, %all) { %y, %all = Scan(%s, %x) num_scan_inputs=1 " SCAN_BODY;

static void test_scan(void)
{
    expect(scan_text, "f32[2]={0,0} f32[3,2]={1,2,3,4,5,6}", "f32[2]={9,12} f32[3,2]={1,2,4,6,9,12}");
    expect_type(scan_text, 0, "f32[2]");
    expect_type(scan_text, 1, "f32[3,2]");
    expect("opset 17 graph g(%s:f32[2], %x:f32[2,3]) -> (%y, %all) { %y, %all = Scan(%s, %x) num_scan_inputs=1 "
           "scan_input_axes=[-1] scan_output_axes=[1] scan_input_directions=[1] " SCAN_BODY,
           "f32[2]={0,0} f32[2,3]={1,2,3,4,5,6}", "f32[2]={6,15} f32[2,3]={3,5,6,6,11,15}");
    expect("opset 9 graph g(%s:f32[2], %x:f32[3,2]) -> (%y, %all) { %y, %all = Scan(%s, %x) num_scan_inputs=1 "
           "scan_output_directions=[1] " SCAN_BODY,
           "f32[2]={0,0} f32[3,2]={1,2,3,4,5,6}", "f32[2]={9,12} f32[3,2]={9,12,4,6,1,2}");
    expect("opset 17 graph g(%s:f32[2], %x:f32[0,2]) -> (%y, %all) { %y, %all = Scan(%s, %x) num_scan_inputs=1 "
           "body=graph(%s1:f32[2], %e:f32[2]) -> (%t:f32[2], %o:f32[2]) { %t = Add(%s1, %e) %o = Identity(%t) } }",
           "f32[2]={3,4} f32[0,2]={}", "f32[2]={3,4} f32[0,2]={}");
}

/* Version 8: a batch in front of everything; what lies behind a sample's length is zero. */
static void test_scan_batched(void)
{
    expect("opset 8 graph g(%s:f32[2,2], %x:f32[2,3,2]) -> (%y, %all) { %y, %all = Scan(-, %s, %x) "
           "num_scan_inputs=1 " SCAN_BODY,
           "f32[2,2]={0,0,100,200} f32[2,3,2]={1,2,3,4,5,6,1,1,1,1,1,1}",
           "f32[2,2]={9,12,103,203} f32[2,3,2]={1,2,4,6,9,12,101,201,102,202,103,203}");
    expect("opset 8 graph g(%n:i64[2], %s:f32[2,2], %x:f32[2,3,2]) -> (%y, %all) { %y, %all = Scan(%n, %s, %x) "
           "num_scan_inputs=1 directions=[1] " SCAN_BODY,
           "i64[2]={3,1} f32[2,2]={0,0,100,200} f32[2,3,2]={1,2,3,4,5,6,1,1,7,7,7,7}",
           "f32[2,2]={9,12,101,201} f32[2,3,2]={5,6,8,10,9,12,101,201,0,0,0,0}");
}

static void test_scan_refused(void)
{
    refuse(
        "opset 17 graph g(%s:f32[2], %x:f32[3,2]) -> (%y, %all) { %y, %all = Scan(%s, %x) num_scan_inputs=3 " SCAN_BODY,
        "f32[2]={0,0} f32[3,2]", HN_ERROR_ATTRIBUTE, "num_scan_inputs");
    refuse("opset 17 graph g(%s:f32[2], %x:f32[3,2]) -> (%y, %all) { %y, %all = Scan(%s, %x) num_scan_inputs=1 "
           "scan_input_axes=[5] " SCAN_BODY,
           "f32[2]={0,0} f32[3,2]", HN_ERROR_ATTRIBUTE, "axis 5");
    refuse("opset 17 graph g(%x:f32[3,2], %z:f32[4,2]) -> (%y) { %y = Scan(%x, %z) num_scan_inputs=2 "
           "body=graph(%a:f32[2], %b:f32[2]) -> (%o) { %o = Add(%a, %b) } }",
           "f32[3,2] f32[4,2]", HN_ERROR_SHAPE, "differ");
}

/* --- sequences ---------------------------------------------------------------------------------------------------- */

static void test_sequence_map(void)
{
    static const char text[] =
        "opset 17 graph g(%x:f32[N,2], %b:f32[2]) -> (%y, %n) { %s = SplitToSequence(%x) axis=0 keepdims=0 "
        "%t = SequenceMap(%s, %b) body=graph(%e:f32[2], %c:f32[2]) -> (%o) { %d = Add(%e, %c) %o = Add(%d, %b) } "
        "%y = ConcatFromSequence(%t) axis=0 new_axis=1 %n = SequenceLength(%t) }";
    expect(text, "f32[2,2]={1,2,3,4} f32[2]={10,20}", "f32[2,2]={21,42,23,44} i64={2}");
    expect(text, "f32[1,2]={1,2} f32[2]={0,0}", "f32[1,2]={1,2} i64={1}");
    refuse(text, "f32[0,2]={} f32[2]={0,0}", HN_ERROR_VALUE, "empty sequence");
    refuse("opset 17 graph g(%x:f32[2]) -> (%t) { %s = SequenceConstruct(%x) %t = SequenceMap(%s, %x) "
           "body=graph(%e:f32[2]) -> (%o) { %o = Neg(%e) } }",
           "f32[2]={1,2}", HN_ERROR_GRAPH, "1 inputs");
}

/* A sequence is carried, and grows by what each run makes; results of other shapes, too. */
static void test_carried_sequence(void)
{
    static const char text[] =
        "opset 17 graph g(%m:i64[], %x:f32[3]) -> (%y, %n) { %e = SequenceEmpty() %s = Loop(%m, -, %e) "
        "body=graph(%i:i64[], %go:bool[], %c) -> (%more, %next) { %more = Identity(%go) "
        "%k = Add(%i, one:i64={1}) %l = Unsqueeze(%k, zero:i64[1]={0}) %p = Slice(%x, start:i64[1]={0}, %l) "
        "%d = Add(%p, %p) %next = SequenceInsert(%c, %d) } "
        "%y = ConcatFromSequence(%s) axis=0 %n = SequenceLength(%s) }";
    expect(text, "i64={3} f32[3]={1,2,3}", "f32[6]={2,2,4,2,4,6} i64={3}");
    expect(text, "i64={1} f32[3]={1,2,3}", "f32[1]={2} i64={1}");
    refuse(text, "i64={0} f32[3]={1,2,3}", HN_ERROR_VALUE, "empty sequence");
}

/* What a sequence holds is not what later steps write over, and another sequence each time. */
static void test_kept_elements(void)
{
    static const char text[] =
        "opset 17 graph g(%x:f32[4], %i:i64[]) -> (%y, %w) { %a = Neg(%x) %b = Abs(%a) %s = SequenceConstruct(%a, %b) "
        "%c = Exp(%b) %d = Log(%c) %f = Sqrt(%d) %g = Mul(%f, %f) %w = Neg(%g) %y = SequenceAt(%s, %i) }";
    expect(text, "f32[4]={1,-2,3,-4} i64={0}", "f32[4]={-1,2,-3,4} f32[4]={-1,-2,-3,-4}");
    expect(text, "f32[4]={1,-2,3,-4} i64={-1}", "f32[4]={1,2,3,4} f32[4]={-1,-2,-3,-4}");
    refuse(text, "f32[4]={1,-2,3,-4} i64={2}", HN_ERROR_VALUE, "position 2");
}

static void test_optionals(void)
{
    static const char text[] =
        "opset 18 graph g(%c:bool[], %x:f32[2]) -> (%y, %h) { %o = If(%c) "
        "then_branch=graph() -> (%t) { %n = Neg(%x) %t = Optional(%n) } "
        "else_branch=graph() -> (%e) { %e = Optional() } %h = OptionalHasElement(%o) %y = If(%h) "
        "then_branch=graph() -> (%g) { %g = OptionalGetElement(%o) } else_branch=graph() -> (%k) { %k = Abs(%x) } }";
    expect(text, "bool={true} f32[2]={1,-2}", "f32[2]={-1,2} bool={true}");
    expect(text, "bool={false} f32[2]={1,-2}", "f32[2]={1,2} bool={false}");
}

/* Strings are stacked by Loop, and cut by Scan, as numbers are. */
static void test_strings(void)
{
    static const char text[] =
        "opset 17 graph g(%m:i64[]) -> (%y, %z) { w:string[3]={'a','b','c'} %all = Loop(%m, -) "
        "body=graph(%i:i64[], %go:bool[]) -> (%more, %e) { %more = Identity(%go) %e = Gather(w, %i) } "
        "%y = Equal(%all, b:string={'b'}) %s = Scan(w) num_scan_inputs=1 "
        "body=graph(%p) -> (%q) { %q = Identity(%p) } %z = Equal(%s, c:string={'c'}) }";
    expect(text, "i64={2}", "bool[2]={false,true} bool[3]={false,false,true}");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/op/if", test_if);
    g_test_add_func("/op/if/refused", test_if_refused);
    g_test_add_func("/op/loop", test_loop);
    g_test_add_func("/op/loop/grows", test_loop_grows);
    g_test_add_func("/op/loop/refused", test_loop_refused);
    g_test_add_func("/op/scan", test_scan);
    g_test_add_func("/op/scan/batched", test_scan_batched);
    g_test_add_func("/op/scan/refused", test_scan_refused);
    g_test_add_func("/op/sequence/map", test_sequence_map);
    g_test_add_func("/op/sequence/carried", test_carried_sequence);
    g_test_add_func("/op/sequence/kept", test_kept_elements);
    g_test_add_func("/op/sequence/optionals", test_optionals);
    g_test_add_func("/op/sequence/strings", test_strings);
    return g_test_run();
}
