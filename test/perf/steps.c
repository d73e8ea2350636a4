/*
 * What a step costs besides its kernel (no test): runs 1,000 tiny nodes as a session does, and calls their kernels in
 * a bare loop.
 */
#include <stdio.h>
#include <string.h>

#include "../unit/run_model.h"
#include "base/clock.h"

#define NODES 1000
#define ROUNDS 300

static const char *const nodes[] = { "Softmax(%%v%d) axis=-1", "Transpose(%%v%d) perm=[1,0]", "Trilu(%%v%d) upper=1",
                                     "CumSum(%%v%d, one)" };

static void collect(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    g_ptr_array_add(data, (gpointer)s);
}

static HnModel *model_of(const char *node)
{
    g_autoptr(GString) text = g_string_new("opset 17 graph g(%v0:f32[4,4]) -> (%v1000) { one:i64={1}");
    for (int i = 0; i < NODES; i++) {
        g_string_append_printf(text, " %%v%d = ", i + 1);
        g_string_append_printf(text, node, i);
    }
    g_string_append(text, " }");
    return test_model(text->str);
}

static void measure(const char *node)
{
    g_autoptr(HnModel) m = model_of(node);
    HnSessionOptions o = { .threads = 1 };
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &o);
    g_autoptr(GPtrArray) in = test_inputs(s, 7), steps = g_ptr_array_new();
    double best[2] = { INFINITY, INFINITY };
    HnTensor *out = NULL;
    for (int k = 0; k < ROUNDS; k++) {
        guint64 a = hn_now_ns();
        g_assert_true(hn_session_run(s, (HnTensor *const *)in->pdata, &out, NULL));
        guint64 b = hn_now_ns();
        g_clear_pointer(&out, hn_tensor_unref);
        if (k == 0)
            hn_session_foreach_step(s, collect, steps);
        guint64 c = hn_now_ns();
        for (guint i = 0; i < steps->len; i++) {
            HnStep *step = steps->pdata[i];
            if (step->kernel != NULL)
                step->kernel->run(step, NULL);
        }
        best[0] = MIN(best[0], (double)(b - a));
        best[1] = MIN(best[1], (double)(hn_now_ns() - c));
    }
    printf("%-10.*s %4u steps: %6.1f ns each, kernels alone %6.1f ns, besides %5.1f ns\n", (int)strcspn(node, "("),
           node, steps->len, best[0] / steps->len, best[1] / steps->len, (best[0] - best[1]) / steps->len);
}

int main(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        measure(nodes[i]);
    return 0;
}
