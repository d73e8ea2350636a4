/* ir/graph: edits keep uses and producers, verify names what is wrong and sorts, equality sees every part. */
#include "ir/graph.h"

#include <string.h>

#include "base/error.h"
#include "ir/build.h"
#include "ir/ir_text.h"

static HnModel *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    return m;
}

static HnModel *good(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = parse(text);
    hn_model_verify(m, &error);
    g_assert_no_error(error);
    return m;
}

static void check_text(const HnModel *m, const char *want)
{
    GString *s = g_string_new(NULL);
    hn_graph_print(m->graph, -1, s);
    g_assert_cmpstr(s->str, ==, want);
    g_string_free(s, TRUE);
}

static void verified(HnModel *m)
{
    g_autoptr(GError) error = NULL;
    hn_model_verify(m, &error);
    g_assert_no_error(error);
}

static HnValue *value(HnModel *m, const char *name)
{
    HnValue *v = hn_graph_find(m->graph, name);
    g_assert_nonnull(v);
    return v;
}

/* --- edits ------------------------------------------------------------------------------------------------------- */

static void test_edit(void)
{
    g_autoptr(HnModel) m = good("opset 17 %a = Relu(%x:f32[2]) %b = Add(%a, %a) %c = Mul(%b, w:f32[2]={1,2})");
    HnNode *relu = value(m, "a")->producer, *add = value(m, "b")->producer;
    g_assert_cmpint(add->version, ==, 17);
    g_assert_cmpuint(value(m, "a")->users->len, ==, 2);

    hn_node_set_in(add, 1, value(m, "x"));
    g_assert_cmpuint(value(m, "a")->users->len, ==, 1);
    hn_node_set_in(add, 3, value(m, "w"));
    g_assert_cmpuint(add->in->len, ==, 4);
    g_assert_null(hn_node_in(add, 2));
    g_assert_null(hn_node_in(add, 4));
    hn_node_set_in(add, 3, NULL);
    verified(m);

    hn_value_replace(value(m, "a"), value(m, "x"));
    hn_graph_remove_node(m->graph, relu);
    g_assert_null(hn_graph_find(m->graph, "a"));
    verified(m);
    check_text(m, "graph main(%x:f32[2]) -> (%c) {\n  %b = Add(%x, %x, -, -)\n  %c = Mul(%b, w:f32[2]={1.0,2.0})\n}\n");

    /* Mul goes, the sum becomes the output under the old name */
    HnNode *mul = value(m, "c")->producer;
    HnValue *c = value(m, "c");
    hn_node_set_out(add, 0, c);
    g_assert_true(c->producer == add);
    g_assert_null(hn_node_out(mul, 0));
    hn_graph_remove_node(m->graph, mul);
    hn_graph_remove_weight(m->graph, value(m, "w"));
    verified(m);
    check_text(m, "graph main(%x:f32[2]) -> (%c) {\n  %c = Add(%x, %x, -, -)\n}\n");

    /* outputs are replaced, too */
    HnValue *d = hn_graph_new_value(m->graph, "c");
    g_assert_cmpstr(d->name, !=, "c");
    HnNode *neg = hn_graph_add_node(m->graph, -1, "Neg", NULL, "last");
    hn_value_replace(c, d);
    hn_node_add_in(neg, c);
    hn_node_add_out(neg, d);
    g_assert_true(d->is_output && !c->is_output);
    verified(m);
    hn_graph_remove_node(m->graph, neg); /* the output stays, as something that nothing produces */
    g_autoptr(GError) error = NULL;
    g_assert_false(hn_model_verify(m, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GRAPH);
}

static void test_attrs(void)
{
    g_autoptr(HnModel) m = good("%y = Op(%x) a=1 b=2.5 c='text' d=[1,2]");
    HnNode *n = value(m, "y")->producer;
    n->params = g_malloc0(8);
    hn_node_set_int(n, "a", 7);
    g_assert_null(n->params);
    hn_node_set_float(n, "b", 3);
    hn_node_set_ints(n, "d", NULL, 0);
    hn_node_set_string(n, "e", "new");
    hn_node_remove_attr(n, "c");
    hn_node_remove_attr(n, "none");
    g_assert_null(hn_node_attr(n, "c"));
    check_text(m, "graph main(%x) -> (%y) {\n  %y = Op(%x) a=7 b=3.0 d=[] e='new'\n}\n");
    g_assert_cmpstr(hn_node_label(n), ==, "y");
    n->name = g_strdup("the node");
    g_assert_cmpstr(hn_node_label(n), ==, "the node");
    g_assert_true(hn_domain_equal(NULL, "") && hn_domain_equal("", "ai.onnx") && !hn_domain_equal("", "ai.onnx.ml"));
}

static const char nested[] = "%a = Relu(%x)\n"
                             "%y = If(%c) then=graph yes() -> (%t) {\n"
                             "  %t = Loop(w:f32[1]) body=graph b(%i) -> (%i, %a) {\n"
                             "    %s = Add(%x, w)\n"
                             "  }\n"
                             "} else=graph no() -> (%a) { }\n";

static void count(HnNode *n, gpointer data)
{
    g_string_append_printf(data, "%s ", n->op_type);
}

static void test_nested(void)
{
    g_autoptr(HnModel) m = good(nested);
    HnNode *n = value(m, "y")->producer;
    HnGraph *yes = hn_node_attr(n, "then")->g;
    g_assert_true(yes->holder == n && yes->outer == m->graph);
    g_autoptr(GPtrArray) c = hn_node_captures(n);
    g_assert_cmpuint(c->len, ==, 2);
    g_assert_true(c->pdata[0] == value(m, "x") && c->pdata[1] == value(m, "a"));
    g_autoptr(GString) order = g_string_new(NULL);
    hn_graph_foreach_node(m->graph, count, order);
    g_assert_cmpstr(order->str, ==, "Relu If Loop Add ");
    g_assert_cmpuint(value(m, "a")->users->len, ==, 2); /* an output of two graphs inside */
    HnValue *fresh = hn_graph_new_value(m->graph, "s"); /* not the name that the innermost graph uses */
    g_assert_cmpstr(fresh->name, !=, "s");
    g_assert_true(hn_graph_new_value(yes, "a")->graph == yes);

    /* what graphs inside put out follows a replacement */
    HnNode *relu = value(m, "a")->producer;
    hn_value_replace(value(m, "a"), value(m, "x"));
    hn_graph_remove_node(m->graph, relu);
    g_assert_cmpuint(value(m, "x")->users->len, ==, 3);
    verified(m);
    hn_graph_remove_node(m->graph, n);
    g_assert_cmpuint(value(m, "x")->users->len, ==, 0);
    g_assert_cmpuint(m->graph->inner->len, ==, 0);
}

static void test_half_built(void)
{
    HnModel *m = hn_model_new();
    HnValue *x = hn_graph_value(m->graph, "x");
    HnGraph *inner = hn_graph_new(m, m->graph, NULL), *deeper = hn_graph_new(m, inner, NULL);
    HnNode *n = hn_graph_add_node(inner, -1, NULL, NULL, NULL);
    hn_node_add_in(n, x);
    hn_node_add_in(n, hn_graph_value(inner, "y"));
    hn_graph_add_output(inner, x);
    HnNode *k = hn_graph_add_node(deeper, 0, "K", NULL, NULL);
    hn_node_add_in(k, x);
    hn_node_add_in(k, hn_graph_value(inner, "y"));
    HnAttr *a = hn_attr_new("body", HN_ATTR_GRAPH), *list = hn_attr_new("list", HN_ATTR_STRINGS);
    a->g = deeper;
    list->n = 3;
    list->strings = g_new0(GBytes *, 3);
    hn_node_set_attr(n, list);
    hn_node_set_attr(n, a);
    hn_attr_free(hn_attr_new("graphs", HN_ATTR_GRAPHS));
    g_assert_cmpuint(x->users->len, ==, 2);
    hn_graph_free(inner);
    g_assert_cmpuint(x->users->len, ==, 0);
    hn_model_free(m);
    hn_model_free(NULL);
    hn_graph_free(NULL);
    hn_node_free(NULL);
    hn_attr_free(NULL);
    hn_function_free(NULL);
}

/* --- verify ------------------------------------------------------------------------------------------------------ */

static void broken(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = parse(text);
    g_assert_false(hn_model_verify(m, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GRAPH);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_broken(void)
{
    broken("graph main() -> (%y) { %y = Relu(%foo) @'r' }", "node 'r' uses 'foo', which nothing produces");
    broken("graph main(%x) -> (%y) { }", "nothing produces output 'y' of graph 'main'");
    broken("graph main(%x) -> (%a) { %a = A(%x) %a = B(%x) @'b' }", "'a' is produced by node 'a' and by node 'b'");
    broken("graph main(%x) -> (%a) { %a, %a = A(%x) @'n' }", "'a' is produced twice by node 'n'");
    broken("graph main(%x) -> (%x) { %x = A() @'n' }", "'x' is both an input and an output of node 'n'");
    broken("graph main() -> (%w) { w:f32[1] %w = A() @'n' }", "'w' is both a weight and an output of node 'n'");
    broken("graph main(%x, %x) -> (%x) { }", "input 'x' of graph 'main' is listed twice");
    broken("graph main() -> (%b) { %a = A(%b) @'n1' %b = B(%a) @'n2' }",
           "node 'n1' needs its own result 'a': the graph has a cycle");
    broken("graph main() -> (%a) { %a = A(%a) }", "node 'a' needs its own result 'a': the graph has a cycle");
    broken("graph main(%c) -> (%y) { %y = If(%c) then=graph() -> (%t) { %t = Neg(%y) } }",
           "node 'y' needs its own result 'y': the graph has a cycle");
    broken("graph main(%c) -> (%y) { %y = If(%c) then=graph t() -> (%t) { %t = Neg(%u) } }",
           "node 't' uses 'u', which nothing produces");
    broken("graph main(%c) -> (%y) { %y = If(%c) then=graph t() -> (%u) { } }",
           "nothing produces output 'u' of graph 't'");
    /* never of a sibling */
    broken("graph main(%c) -> (%y) { %y = If(%c) then=graph() -> (%t) { %t = Neg(%c) } "
           "else=graph() -> (%e) { %e = Neg(%t) } }",
           "node 'e' uses 't', which nothing produces");
    broken("function F(%a) -> (%b) { %b = G(%d) } graph main() -> () { }",
           "in function 'F': node 'b' uses 'd', which nothing produces");

    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = good(nested);
    hn_ptrs_add(value(m, "x")->users, value(m, "y")->producer);
    g_assert_false(hn_model_verify(m, &error));
    g_assert_cmpstr(error->message, ==, "'x' lists 3 users but has 2");
}

static void test_sort(void)
{
    gboolean moved = TRUE;
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m =
        parse("graph main(%x) -> (%d) { %d = D(%c, %b) %z = Z(%x) %c = C(%a) %b = B(%a) %a = A(%x) }");
    g_assert_true(hn_graph_verify(m->graph, &moved, &error));
    g_assert_true(moved);
    check_text(m, "graph main(%x) -> (%d) {\n  %a = A(%x)\n  %c = C(%a)\n  %b = B(%a)\n  %d = D(%c, %b)\n"
                  "  %z = Z(%x)\n}\n");
    g_assert_true(hn_graph_verify(m->graph, &moved, &error));
    g_assert_false(moved);

    /* a graph inside uses what comes later, two levels up, by a name that was not there yet */
    g_autoptr(HnModel) n =
        parse("graph main(%c) -> (%y) { %y = If(%c) then=graph() -> (%t) { %t = If(%c) then=graph() -> (%late, %k) { "
              "%k = Neg(%late) } } %late = L(%c) }");
    g_assert_true(hn_graph_verify(n->graph, &moved, &error));
    g_assert_no_error(error);
    g_assert_true(moved);
    g_assert_cmpuint(value(n, "late")->users->len, ==, 2);
    g_assert_true(n->graph->nodes->pdata[0] == value(n, "late")->producer);
}

static void test_large(void)
{
    enum { N = 30000 };
    g_autoptr(HnModel) m = hn_model_new();
    HnGraph *g = m->graph;
    HnValue *prev = hn_graph_value(g, "x");
    hn_graph_add_input(g, prev);
    g_autoptr(HnTensor) t = hn_tensor_scalar_f32(1);
    HnValue *w = hn_graph_value(g, "w");
    hn_graph_add_weight(g, w, t);
    for (int i = 0; i < N; i++) { /* stored in reverse */
        HnNode *n = hn_graph_add_node(g, 0, "Add", NULL, NULL);
        hn_node_add_in(n, prev);
        hn_node_add_in(n, w);
        prev = hn_graph_new_value(g, "v");
        hn_node_add_out(n, prev);
    }
    hn_graph_add_output(g, prev);
    gint64 start = g_get_monotonic_time();
    gboolean moved = FALSE;
    g_assert_true(hn_graph_verify(g, &moved, NULL));
    g_assert_true(moved);
    gint64 sorted = g_get_monotonic_time();
    for (int i = 0; i < N / 10; i++) {
        HnNode *n = g->nodes->pdata[0];
        hn_value_replace(hn_node_out(n, 0), hn_node_in(n, 0));
        hn_graph_remove_node(g, n);
    }
    gint64 removed = g_get_monotonic_time();
    g_assert_true(hn_graph_verify(g, &moved, NULL));
    g_assert_false(moved);
    g_assert_cmpuint(g_hash_table_size(g->values), ==, N - N / 10 + 2);
    g_test_message("sorted %d in %.1f ms, removed %d in %.1f ms", N, (double)(sorted - start) / 1e3, N / 10,
                   (double)(removed - sorted) / 1e3);
}

/* --- equality ---------------------------------------------------------------------------------------------------- */

static const char full[] = "opset 17 function F(%a) -> (%b) k l=1 { %b = G(%a) }\n"
                           "graph main(%x:f32[N], %u) -> (%y:f32[?]) { w:f32[2]={1,2}\n"
                           "%v:f32[3] = A(%x, -, w, s:sparse[4](f32[1]={1},i64[1]={2})) i=1 f=1.5 s='t' "
                           "l=[1,2] t=f32[1]={1} ty=type(f32[1]) g=graph b() -> (%q) { %q = Q(%x) } @'first'\n"
                           "%y = B(%v) }";

static void differs(const char *from, const char *to, const char *want)
{
    GString *s = g_string_new(full);
    g_assert_cmpuint(g_string_replace(s, from, to, 1), ==, 1);
    g_autoptr(HnModel) a = parse(full), b = parse(s->str);
    g_autofree char *why = NULL;
    g_assert_false(hn_model_equal(a, b, &why));
    g_assert_cmpstr(why, ==, want);
    g_assert_false(hn_model_equal(b, a, NULL));
    g_string_free(s, TRUE);
}

static void test_equal(void)
{
    g_autoptr(HnModel) a = parse(full), b = parse(full);
    g_autofree char *why = NULL;
    g_assert_true(hn_model_equal(a, b, &why));
    g_assert_null(why);
    differs("opset 17", "opset 16", "opset differs");
    differs("l=1", "l=2", "F/l: value differs");
    differs("G(%a)", "H(%a)", "F/F/b: operator differs");
    differs("f32[N]", "f32[M]", "main/x: type differs");
    differs("%u) ->", "%uu) ->", "main: an input differs");
    differs("{1,2}", "{1,3}", "main/w: type, dimensions or an element differs");
    differs("i64[1]={2}", "i64[1]={3}", "main/s: type, dimensions or an element differs");
    differs("%v:f32[3]", "%v:f32[4]", "main/v: type differs");
    differs("i=1", "i=2", "main/first/i: value differs");
    differs("f=1.5", "f=1", "main/first/f: kind differs");
    differs("s='t'", "s='u'", "main/first/s: value differs");
    differs("l=[1,2]", "l=[1,2,3]", "main/first/l: length differs");
    differs("t=f32[1]={1}", "t=f32[1]={-1}", "main/first/t: type, dimensions or an element differs");
    differs("type(f32[1])", "type(f16[1])", "main/first/ty: value differs");
    differs("Q(%x)", "Q(%u)", "main/first/g/b/q: an input differs");
    differs("@'first'", "@'second'", "main/first: name differs");
    differs("-, w", "w, w", "main/first: an input differs");
    differs("\n%y = B(%v)", "\n%y = B(%v) %z = C(%y)", "main: number of nodes differs");
    b->has_model_version = TRUE;
    g_assert_false(hn_model_equal(a, b, &why));
    g_assert_cmpstr(why, ==, "model version differs");
}

/* Floats that share a name with others get one of their own; integers, and what is called as nothing else, keep theirs.
 * Names that exist are not taken. */
static void test_name_apart(void)
{
    g_autoptr(HnModel) m =
        good("opset 17 graph g(%c:bool[], %x:f32[2]) -> (%y, %z) {\n"
             "%t = Neg(%x)\n%y/then_branch/t = Abs(%x)\n"
             "%y = If(%c) then_branch=graph() -> (%p) { w:f32[2]={1,2} %t = Add(%x, w) %n:i64[1] = Shape(%t)\n"
             "    %p = If(%c) then_branch=graph() -> (%t) { %t = Neg(%x) } else_branch=graph() -> (%own) { %own = "
             "Exp(%t) } }\n"
             "  else_branch=graph() -> (%q) { w:f32[2]={3,4} %n:i64[1] = Shape(%x) %q = Sub(%t, w) }\n"
             "%z = Add(%t, %y/then_branch/t) }");
    hn_model_name_apart(m);
    verified(m);
    check_text(m, "graph g(%c:bool[], %x:f32[2]) -> (%y, %z) {\n"
                  "  %t = Neg(%x)\n"
                  "  %y/then_branch/t = Abs(%x)\n"
                  "  %y = If(%c) then_branch=graph() -> (%p) {\n"
                  "    %y/then_branch/t_1 = Add(%x, y/then_branch/w:f32[2]={1.0,2.0})\n"
                  "    %n:i64[1] = Shape(%y/then_branch/t_1)\n"
                  "    %p = If(%c) then_branch=graph() -> (%p/then_branch/t) {\n"
                  "      %p/then_branch/t = Neg(%x)\n"
                  "    } else_branch=graph() -> (%own) {\n"
                  "      %own = Exp(%y/then_branch/t_1)\n"
                  "    }\n"
                  "  } else_branch=graph() -> (%q) {\n"
                  "    %n:i64[1] = Shape(%x)\n"
                  "    %q = Sub(%t, y/else_branch/w:f32[2]={3.0,4.0})\n"
                  "  }\n"
                  "  %z = Add(%t, %y/then_branch/t)\n"
                  "}\n");
    g_assert_true(hn_model_has_name(m, "own"));
    g_assert_false(hn_model_has_name(m, "w"));
    hn_model_name_apart(m); /* once is enough */
    g_assert_true(hn_model_has_name(m, "y/then_branch/t_1"));
}

/* Long names do not grow from graph to graph, and many graphs around nodes with the same beginning take no longer. */
static void test_name_apart_long(void)
{
    g_autoptr(HnModel) m = hn_model_new();
    g_autofree char *stem = g_strnfill(4096, 'n');
    HnValue *c = hn_graph_value(m->graph, "c");
    hn_graph_add_input(m->graph, c);
    for (int i = 0; i < 2000; i++) {
        g_autofree char *name = g_strdup_printf("%s%d", stem, i);
        HnNode *n = hn_graph_add_node(m->graph, -1, "If", NULL, NULL);
        HnAttr *a = hn_attr_new("then_branch", HN_ATTR_GRAPH);
        a->g = hn_graph_new(m, m->graph, "g");
        HnNode *inner = hn_graph_add_node(a->g, -1, "Neg", NULL, NULL);
        hn_node_add_in(inner, c);
        hn_node_add_out(inner, hn_graph_value(a->g, "t"));
        hn_graph_add_output(a->g, hn_graph_value(a->g, "t"));
        hn_node_add_in(n, c);
        hn_node_add_out(n, hn_graph_value(m->graph, name));
        hn_node_set_attr(n, a);
    }
    hn_model_name_apart(m);
    for (guint i = 0; i < m->graph->inner->len; i++) {
        const HnGraph *g = m->graph->inner->pdata[i];
        g_assert_cmpuint(strlen(((const HnValue *)g->outputs->pdata[0])->name), <, 200);
        g_assert_cmpuint(g_hash_table_size(g->values), ==, 1);
    }
}

/* Lists against an array, by many small edits. */
static void test_lists(void)
{
    g_autoptr(GPtrArray) want = g_ptr_array_new();
    HnPtrs list[1] = { 0 };
    guint seed = 1;
    for (guint i = 1; i < 3000; i++) {
        seed = seed * 1103515245u + 12345u;
        guint what = (seed >> 16) % 7, at = want->len ? (seed >> 8) % want->len : 0;
        gpointer p = GUINT_TO_POINTER(i);
        if (what < 2) {
            g_ptr_array_add(want, p);
            hn_ptrs_add(list, p);
        } else if (what == 2) {
            g_ptr_array_insert(want, (gint)at, p);
            hn_ptrs_insert(list, at, p);
        } else if (what == 3 && want->len > 0) {
            g_ptr_array_remove_index(want, at);
            hn_ptrs_remove(list, at);
        } else if (what == 4 && want->len > 0) {
            p = want->pdata[want->len - 1];
            g_ptr_array_remove_index(want, want->len - 1);
            g_assert_true(hn_ptrs_drop(list, p));
        } else if (what == 5) {
            g_assert_false(hn_ptrs_drop(list, want));
        } else if (i % 50 == 0) {
            g_ptr_array_set_size(want, (gint)(seed % 5));
            hn_ptrs_set_len(list, seed % 5);
        }
        g_autoptr(GPtrArray) copy = hn_ptrs_copy(list);
        g_assert_cmpuint(copy->len, ==, want->len);
        g_assert_true(want->len == 0 || memcmp(copy->pdata, want->pdata, want->len * sizeof p) == 0);
    }
    hn_ptrs_clear(list);
    g_assert_cmpuint(list->len, ==, 0);
    hn_ptrs_clear(list);
}

/* Nodes and values count while they are there; who edits beyond the limit is told by the next that asks. */
static void test_counted(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) budget = hn_budget_new(1000000);
    HnModel *m = parse("opset 17 graph g(%x:f32[2]) -> (%y) { %y = Relu(%x) }");
    hn_model_set_budget(m, budget);
    gsize before = hn_budget_used(budget);
    g_assert_cmpuint(before, >, 2 * sizeof(HnValue) + sizeof(HnNode));
    const int n = 10000;
    for (int i = 0; i < n; i++) {
        HnNode *node = hn_graph_add_node(m->graph, -1, "Relu", NULL, NULL);
        hn_node_add_in(node, hn_graph_find(m->graph, "x"));
        hn_node_add_out(node, hn_graph_new_value(m->graph, NULL));
    }
    g_assert_cmpuint(hn_budget_used(budget), >=, n * (sizeof(HnNode) + sizeof(HnValue)));
    g_assert_false(hn_budget_charge(budget, 1, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    while (m->graph->nodes->len > 1)
        hn_graph_remove_node(m->graph, m->graph->nodes->pdata[m->graph->nodes->len - 1]);
    g_assert_cmpuint(hn_budget_used(budget), <, before + 2000000);
    hn_model_free(m);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

/* --- building ----------------------------------------------------------------------------------------------------- */

static void count_node(const HnBuild *b, HnNode *n)
{
    g_assert_cmpint(n->version, ==, b->version);
    ((int *)b->data)[0]++;
}

static void count_constant(const HnBuild *b, HnValue *v, HnTensor *t)
{
    g_assert_true(v->weight == t);
    ((int *)b->data)[1]++;
}

/* In order, in front of a node; what is told to whom; where constants go. */
static void test_build(void)
{
    g_autoptr(HnModel) m = good("opset 17\n%1 = Relu(%x:f32[2,3])\n%y = Neg(%1)\n");
    HnGraph *g = m->graph;
    HnValue *x = hn_graph_find(g, "x"), *last = hn_graph_find(g, "1");
    int seen[2] = { 0, 0 };
    const HnBuild b = { .graph = g,
                        .before = hn_graph_find(g, "y")->producer,
                        .version = 21,
                        .on_node = count_node,
                        .on_constant = count_constant,
                        .data = seen };
    HnValue *t = hn_build_transpose(&b, x, (int64_t[]){ 1, 0 }, 2);
    HnValue *r = hn_build_reshape(&b, t, (int64_t[]){ 2, -1 }, 2);
    HnValue *s = hn_build_reduce(&b, "ReduceSum", r, (int64_t[]){ 1 }, 1, TRUE);
    HnValue *c = hn_build_concat(&b, 2, (HnValue *[]){ hn_build_slice(&b, r, 1, 0, 2), s }, 1);
    HnValue *k = hn_build_cast(&b, hn_build_shape(&b, c, 1, 2), HN_F32);
    HnValue *sum = hn_build_op2(&b, "Add", c, k);
    HnNode *n = hn_build_node(&b, "Clip", NULL, 3, (HnValue *[]){ sum, NULL, NULL }, 1);
    hn_value_replace(last, hn_node_out(n, 0));
    hn_build_op1(&(HnBuild){ .graph = g }, "Sin", x);
    verified(m);
    check_text(m, "graph main(%x:f32[2,3]) -> (%y) {\n"
                  "  %1 = Relu(%x)\n"
                  "  %Transpose = Transpose<21>(%x) perm=[1,0]\n"
                  "  %Reshape = Reshape<21>(%Transpose, const:i64[2]={2,-1})\n"
                  "  %ReduceSum = ReduceSum<21>(%Reshape, const_6:i64[1]={1}) keepdims=1\n"
                  "  %Slice = Slice<21>(%Reshape, const_8:i64[1]={0}, const_9:i64[1]={2}, const_10:i64[1]={1})\n"
                  "  %Concat = Concat<21>(%Slice, %ReduceSum) axis=1\n"
                  "  %Shape = Shape<21>(%Concat) start=1 end=2\n"
                  "  %Cast = Cast<21>(%Shape) to=1\n"
                  "  %Add = Add<21>(%Concat, %Cast)\n"
                  "  %Clip = Clip<21>(%Add)\n"
                  "  %y = Neg(%Clip)\n"
                  "  %Sin = Sin(%x)\n"
                  "}\n");
    g_assert_cmpint(seen[0], ==, 9);
    g_assert_cmpint(seen[1], ==, 5);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ir/graph/lists", test_lists);
    g_test_add_func("/ir/graph/counted", test_counted);
    g_test_add_func("/ir/graph/edit", test_edit);
    g_test_add_func("/ir/graph/attrs", test_attrs);
    g_test_add_func("/ir/graph/nested", test_nested);
    g_test_add_func("/ir/graph/half-built", test_half_built);
    g_test_add_func("/ir/graph/broken", test_broken);
    g_test_add_func("/ir/graph/sort", test_sort);
    g_test_add_func("/ir/build", test_build);
    g_test_add_func("/ir/graph/large", test_large);
    g_test_add_func("/ir/graph/equal", test_equal);
    g_test_add_func("/ir/graph/name-apart", test_name_apart);
    g_test_add_func("/ir/graph/name-apart-long", test_name_apart_long);
    return g_test_run();
}
