/*
 * The order of a backward part: which nodes move, and which must not.
 */
#include <string.h>

#include "run_model.h"
#include "train/order.h"

/* The results of the nodes in order, as the graph has them then; those from the one that makes `first` on may move. */
static char *order_of(const char *text, const char *first)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnTypes) types = hn_types_new(m);
    g_autoptr(GError) error = NULL;
    GString *order = g_string_new(NULL);
    hn_model_prepare(m, &error);
    g_assert_no_error(error);
    hn_types_enter(types, m->graph, TRUE, &error);
    hn_types_graph(types, m->graph, HN_FOLD_BYTES, 0, &error);
    g_assert_no_error(error);
    const HnNode *from = hn_graph_find(m->graph, first)->producer;
    hn_order_backward(m->graph, types, hn_graph_index(m->graph, from));
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        const HnNode *n = m->graph->nodes->pdata[i];
        g_assert_cmpuint(hn_graph_index(m->graph, n), ==, i);
        g_string_append_printf(order, "%s%s", i > 0 ? " " : "", hn_node_out(n, 0)->name);
    }
    gboolean moved = FALSE;
    hn_graph_verify(m->graph, &moved, &error);
    g_assert_no_error(error);
    g_assert_false(moved);
    return g_string_free(order, FALSE);
}

static const struct {
    const char *text, *first, *order;
} cases[] = {
    /* dx waits until the gradient of the weight, turned, is there: x is free then */
    { "opset 17 graph g(%x0:f32[64,8], %dy:f32[64,8], %w:f32[8,8]) -> (%dz) { %x = Relu(%x0) %g = Neg(%dy) "
      "%wt = Transpose(%w) %dx = MatMul(%g, %wt) %xt = Transpose(%x) %dw = MatMul(%xt, %g) %turned = Transpose(%dw) "
      "%dz = Mul(%dx, %dx) }",
      "wt", "x g xt dw turned wt dx dz" },
    /* nobody else reads g: what is made of it stays where it is */
    { "opset 17 graph g(%dy:f32[64,8], %k:f32[64,8]) -> (%z) { %f = Relu(%dy) %g = Neg(%f) %a = Relu(%g) %b = Neg(%k) "
      "%c = Exp(%b) %z = Add(%a, %c) }",
      "g", "f g a b c z" },
    /* a waits for b, which reads g, too, but not for c, for which g would have to stay */
    { "opset 17 graph g(%dy:f32[64,8]) -> (%z) { %g = Neg(%dy) %a = Relu(%g) %b = Exp(%g) %c = Neg(%b) "
      "%z = Add(%a, %c) }",
      "g", "g b a c z" },
    /* b could be made at once, and would be alive with g's gradients for that */
    { "opset 17 graph g(%x0:f32[64,8], %dy:f32[64,8]) -> (%z) { %x = Relu(%x0) %f = Relu(%dy) %g = Neg(%f) "
      "%h = Exp(%g) %b = Neg(%x) %z = Mul(%b, %h) }",
      "g", "x f g h b z" },
    /* a result of the graph is made when it can be; so is what is larger than all that it reads for the last time */
    { "opset 17 graph g(%dy:f32[64,8]) -> (%a, %z) { %g = Neg(%dy) %a = Relu(%g) %b = Exp(%g) %z = Neg(%b) }", "g",
      "g a b z" },
    { "opset 17 graph g(%dy:f32[64,8]) -> (%z) { %g = Neg(%dy) %s = ReduceSum(%g) keepdims=0 %b = Exp(%g) "
      "%z = Add(%b, %s) }",
      "g", "g b s z" },
    /* what another graph reads stays */
    { "opset 17 graph g(%c:bool[], %dy:f32[64,8]) -> (%z) { %g = Neg(%dy) %a = Relu(%g) %b = Exp(%g) "
      "%q = If(%c) then_branch=graph() -> (%u) { %u = Neg(%a) } else_branch=graph() -> (%v) { %v = Exp(%b) } "
      "%z = Add(%q, %g) }",
      "g", "g a b q z" },
};

static void test_order(gconstpointer data)
{
    const gsize i = GPOINTER_TO_SIZE(data);
    g_autofree char *order = order_of(cases[i].text, cases[i].first);
    g_assert_cmpstr(order, ==, cases[i].order);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/train/order/%zu", i);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_order);
    }
    return g_test_run();
}
