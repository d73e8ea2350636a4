/*
 * Rewrites that go wrong: one that breaks the graph or cannot be finished is undone and named, one that changes results
 * is found among many good ones, and leaves a small model that shows it. The passes here are wrong on purpose.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "export/export.h"
#include "onnx/onnx.h"
#include "pass/rewrite.h"
#include "run_model.h"

/* --- passes ------------------------------------------------------------------------------------------------------- */

static gboolean good_node(HnRewrite *r, HnNode *n)
{
    return n->op == &hn_op_identity && hn_rw_bypass(r, n, hn_node_out(n, 0), hn_node_in(n, 0));
}

static const HnPass good = { .name = "good", .summary = "removes Identity", .level = 1, .node = good_node };

/* The sign is lost. */
static gboolean wrong_node(HnRewrite *r, HnNode *n)
{
    HnNode *neg = n->op == &hn_op_relu ? hn_rw_maker(hn_node_in(n, 0), &hn_op_neg) : NULL;
    return neg != NULL && hn_rw_bypass(r, n, hn_node_in(n, 0), hn_node_in(neg, 0));
}

static const HnPass wrong = { .name = "wrong", .summary = "Relu(-x) is no Relu(x)", .level = 1, .node = wrong_node };

/* Two nodes that need each other. */
static gboolean cycle_node(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_tanh || !hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, hn_node_out(n, 0));
    return TRUE;
}

static const HnPass cycle = {
    .name = "cycle", .summary = "makes a node wait for itself", .level = 1, .node = cycle_node
};

static gboolean given_up_node(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_exp || !hn_rw_go(r, n))
        return FALSE;
    hn_rw_fail(r, HN_ERROR_UNSUPPORTED, "no way to go on at '%s'", hn_node_out(n, 0)->name);
    return TRUE;
}

static const HnPass given_up = {
    .name = "given-up", .summary = "gives up half way", .level = 1, .node = given_up_node
};

/* A weight of 64 kB instead of a node. */
static gboolean bloat_node(HnRewrite *r, HnNode *n)
{
    const int64_t dims[] = { 4096, 4 };
    if (n->op != &hn_op_neg || !hn_rw_go(r, n))
        return FALSE;
    HnValue *w = hn_rw_weight(r, n->graph, "zeros", hn_tensor_new(HN_F32, 2, dims, NULL, NULL));
    HnNode *sum = hn_rw_add(r, n, "ReduceSum", HN_INS(w));
    hn_node_set_int(sum, "keepdims", 0);
    return hn_rw_take(r, hn_rw_add(r, n, "Sub", HN_INS(hn_rw_out(r, sum, "zero"), hn_node_in(n, 0))), n);
}

static const HnPass bloat = { .name = "bloat", .summary = "adds what is 0", .level = 1, .node = bloat_node };

/* --- running ------------------------------------------------------------------------------------------------------ */

static HnModel *open_text(gpointer data, GError **error)
{
    (void)error;
    return test_model(data);
}

typedef struct {
    HnSamplesOptions vo;
    HnExportOptions o;
    HnModel *original;
    HnVerify *verify;
    HnExported x;
    GError *error;
    gboolean ok;
} Run;

static void run_init(Run *r, const char *text, const HnPass *const *passes)
{
    *r = (Run){ .vo = { .backend = &hn_backend_ref, .threads = 1, .seed = 5 },
                .o = { .open = open_text,
                       .data = (gpointer)text,
                       .pass = { .level = 2, .passes = passes },
                       .tolerance = { .rtol = 1e-3, .part = 1e-4 } } };
}

static void run(Run *r)
{
    r->original = hn_export_original(&r->o, &r->error);
    g_assert_no_error(r->error);
    r->verify = hn_verify_new(r->original, &r->vo, &r->error);
    g_assert_no_error(r->error);
    r->ok = hn_export(&r->o, r->verify, &r->x, &r->error);
}

static void run_clear(Run *r)
{
    hn_exported_clear(&r->x);
    hn_verify_free(r->verify);
    hn_model_free(r->original);
    g_clear_error(&r->error);
}

static const HnDropped *dropped(const Run *r, guint i)
{
    g_assert_cmpuint(i, <, r->x.dropped->len);
    return r->x.dropped->pdata[i];
}

static guint count_op(const HnModel *m, const char *op)
{
    guint count = 0;
    for (guint i = 0; i < m->graph->nodes->len; i++)
        count += strcmp(((const HnNode *)m->graph->nodes->pdata[i])->op_type, op) == 0;
    return count;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

/* 40 nodes, half of them Identity; where `bad` holds the number of one of the others, it is Relu(-x), others are Abs.
 */
static char *chain(const int *bad, int n_bad)
{
    GString *s = g_string_new("opset 17 graph g(%x0:f32[N,4]) -> (%y) { ");
    for (int i = 0; i < 20; i++) {
        gboolean is_bad = FALSE;
        for (int k = 0; k < n_bad; k++)
            is_bad = is_bad || bad[k] == i;
        g_string_append_printf(
            s, is_bad ? "%%i%d = Neg(%%x%d) %%r%d = Relu(%%i%d) " : "%%i%d = Identity(%%x%d) %%r%d = Abs(%%i%d) ", i, i,
            i, i);
        g_string_append_printf(s, "%%x%d = Add(%%r%d, %%x%d) ", i + 1, i, i);
    }
    g_string_append(s, "%y = Neg(%x20) }");
    return g_string_free(s, FALSE);
}

static void test_found(void)
{
    const HnPass *const passes[] = { &wrong, &good, NULL };
    for (int at = 0; at < 20; at += 6) {
        g_autofree char *text = chain(&at, 1), *site = g_strdup_printf("r%d", at);
        Run r;
        run_init(&r, text, passes);
        run(&r);
        g_assert_no_error(r.error);
        g_assert_true(r.ok && r.x.verified.equal);
        g_assert_cmpuint(r.x.dropped->len, ==, 1);
        g_assert_cmpstr(dropped(&r, 0)->pass, ==, "wrong");
        g_assert_cmpstr(dropped(&r, 0)->op, ==, "Relu");
        g_assert_cmpstr(dropped(&r, 0)->site, ==, site);
        g_assert_nonnull(strstr(dropped(&r, 0)->why, "output 'y': "));
        g_assert_null(dropped(&r, 0)->repro);
        g_assert_cmpuint(count_op(r.x.model, "Identity"), ==, 0); /* what is good stays done */
        g_assert_cmpuint(count_op(r.x.model, "Relu"), ==, 1);
        run_clear(&r);
    }
}

static void test_several(void)
{
    const HnPass *const passes[] = { &good, &wrong, NULL };
    const int bad[] = { 3, 11, 19 };
    g_autofree char *text = chain(bad, 3);
    Run r;
    run_init(&r, text, passes);
    run(&r);
    g_assert_no_error(r.error);
    g_assert_true(r.ok && r.x.verified.equal);
    g_assert_cmpuint(r.x.dropped->len, ==, 3);
    g_assert_cmpuint(count_op(r.x.model, "Identity"), ==, 0);
    g_assert_cmpuint(count_op(r.x.model, "Neg"), ==, 4);
    run_clear(&r);
}

static void test_repro(void)
{
    const HnPass *const passes[] = { &good, &wrong, NULL };
    const int at = 9;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = chain(&at, 1), *dir = g_dir_make_tmp("hone-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *folder = g_strconcat(dir, "/", NULL), *path = g_strconcat(dir, "/wrong-1.onnx", NULL);
    Run r;
    run_init(&r, text, passes);
    r.o.repro = folder;
    run(&r);
    g_assert_no_error(r.error);
    g_assert_cmpstr(dropped(&r, 0)->repro, ==, path);
    g_autoptr(HnModel) m = hn_onnx_read_file(path, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(m->graph->nodes->len, ==, 2);
    g_assert_cmpuint(count_op(m, "Neg"), ==, 1);
    g_assert_cmpuint(count_op(m, "Relu"), ==, 1);
    g_assert_cmpuint(m->graph->inputs->len, ==, 1);
    run_clear(&r);
    g_assert_cmpint(g_remove(path), ==, 0);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static void test_broken(void)
{
    const HnPass *const passes[] = { &good, &cycle, &given_up, NULL };
    Run r;
    run_init(&r,
             "opset 17 graph g(%x:f32[N,4]) -> (%y) { %a = Identity(%x) %b = Tanh(%a) %c = Exp(%b) %d = Tanh(%c) "
             "%y = Identity(%d) }",
             passes);
    run(&r);
    g_assert_no_error(r.error);
    g_assert_true(r.ok && r.x.verified.equal);
    g_assert_cmpuint(r.x.model->graph->nodes->len, ==, 3);
    guint cycles = 0, failed = 0;
    for (guint i = 0; i < r.x.dropped->len; i++) {
        cycles += strcmp(dropped(&r, i)->pass, "cycle") == 0;
        failed += strcmp(dropped(&r, i)->pass, "given-up") == 0;
    }
    g_assert_cmpuint(cycles, ==, 2);
    g_assert_cmpuint(failed, ==, 1);
    run_clear(&r);
}

/* Without a check nobody sees what changes results, but what breaks the graph is undone all the same. */
static void test_unchecked(void)
{
    const HnPass *const passes[] = { &cycle, &wrong, NULL };
    HnExported x;
    Run r;
    run_init(&r, "opset 17 graph g(%x:f32[N,4]) -> (%y) { %a = Tanh(%x) %b = Neg(%a) %y = Relu(%b) }", passes);
    g_assert_true(hn_export(&r.o, NULL, &x, &r.error));
    g_assert_no_error(r.error);
    g_assert_cmpuint(x.dropped->len, ==, 1);
    g_assert_cmpuint(x.verified.n, ==, 0);
    g_assert_cmpuint(count_op(x.model, "Neg"), ==, 0);
    hn_exported_clear(&x);
}

/* The original is not what the file was: no rewrite is to blame, and nothing comes out. */
static void test_no_culprit(void)
{
    const HnPass *const passes[] = { &good, NULL };
    Run r;
    run_init(&r, "opset 17 graph g(%x:f32[N,4]) -> (%y) { %a = Identity(%x) %y = Neg(%a) }", passes);
    r.original = test_model("opset 17 graph g(%x:f32[N,4]) -> (%y) { %a = Identity(%x) %y = Abs(%a) }");
    r.verify = hn_verify_new(r.original, &r.vo, &r.error);
    g_assert_no_error(r.error);
    g_assert_false(hn_export(&r.o, r.verify, &r.x, &r.error));
    g_assert_error(r.error, HN_ERROR, HN_ERROR_GUARD);
    g_assert_nonnull(strstr(r.error->message, "no rewrite is to blame"));
    run_clear(&r);
}

static void test_functions(void)
{
    static const char text[] =
        "opset 17 opset com.acme 1 function com.acme::Twice(%a) -> (%b) { opset 17 %b = Add(%a, %a) } "
        "graph g(%x:f32[N,4]) -> (%y) { %i = Identity(%x) %t = com.acme::Twice(%i) %y = Neg(%t) }";
    Run r;
    run_init(&r, text, NULL);
    r.o.keep_functions = TRUE;
    run(&r);
    g_assert_no_error(r.error);
    g_autoptr(HnModel) want =
        test_model("opset 17 opset com.acme 1 function com.acme::Twice(%a) -> (%b) { opset 17 %b = Add(%a, %a) } "
                   "graph g(%x:f32[N,4]) -> (%y) { %t = com.acme::Twice(%x) %y = Neg(%t) }");
    g_autoptr(GString) a = g_string_new(NULL), b = g_string_new(NULL);
    hn_model_print(r.x.model, -1, a);
    hn_model_print(want, -1, b);
    g_assert_cmpstr(a->str, ==, b->str);
    run_clear(&r);
    run_init(&r, text, NULL);
    run(&r);
    g_assert_no_error(r.error);
    g_assert_cmpuint(r.x.model->functions->len, ==, 0);
    g_assert_cmpuint(count_op(r.x.model, "Twice"), ==, 0);
    run_clear(&r);
}

static gsize bytes_of(const HnModel *m)
{
    g_autoptr(GError) error = NULL;
    gsize bytes = 0;
    g_assert_true(hn_onnx_size(m, NULL, &bytes, &error));
    g_assert_no_error(error);
    return bytes;
}

/* One that makes the file longer is not made where it does not pay; nothing can be measured here. It is made where the
 * length does not count, or where a recipe says that it stayed. */
static void test_grown(void)
{
    enum { MEASURED, ANY_LENGTH, STAYED, WENT, WAYS };
    const HnPass *const passes[] = { &good, &bloat, NULL };
    static const char text[] = "opset 17 graph g(%x:f32[N,4]) -> (%y) { %a = Identity(%x) %b = Abs(%a) %y = Neg(%b) }";
    g_autoptr(HnModel) original = test_model(text);
    for (int way = 0; way < WAYS; way++) {
        const gboolean allowed = way == ANY_LENGTH || way == STAYED;
        HnExported x;
        Run r;
        run_init(&r, text, passes);
        r.o.file_bytes = way == ANY_LENGTH ? 0 : bytes_of(original);
        r.o.growth = way == STAYED ? HN_GROWTH_STAYS : way == WENT ? HN_GROWTH_GOES : HN_GROWTH_MEASURED;
        r.o.pass.most = 0;
        g_assert_true(hn_export(&r.o, NULL, &x, &r.error));
        g_assert_no_error(r.error);
        g_assert_cmpuint(x.dropped->len, ==, 0);
        g_assert_cmpuint(x.grown->len, ==, allowed ? 0 : 1);
        if (!allowed) {
            const HnDropped *d = x.grown->pdata[0];
            g_assert_cmpstr(d->pass, ==, "bloat");
            g_assert_cmpstr(d->site, ==, "y");
            g_assert_cmpint(d->bytes, >, 65536);
            g_assert_cmpuint(count_op(x.model, "Identity"), ==, 0); /* what is good stays done */
        }
        g_assert_true(allowed ? bytes_of(x.model) > 65536 : bytes_of(x.model) <= bytes_of(original) + 4096);
        hn_exported_clear(&x);
    }
}

/* Bodies of functions, each called many times, are longer than the calls: these stay. */
static void test_functions_stay(void)
{
    GString *s = g_string_new("opset 17 opset com.acme 1 function com.acme::F(%a) -> (%l) { opset 17 %b = Sin(%a) ");
    for (char c = 'b'; c < 'l'; c++)
        g_string_append_printf(s, "%%%c = Sin(%%%c) ", c + 1, c);
    g_string_append(s, "} graph g(%x0:f32[N,4]) -> (%x40) { ");
    for (int i = 0; i < 40; i++)
        g_string_append_printf(s, "%%x%d = com.acme::F(%%x%d) ", i + 1, i);
    g_string_append(s, "}");
    g_autofree char *text = g_string_free(s, FALSE);
    g_autoptr(HnModel) original = test_model(text);
    HnExported x;
    Run r;
    run_init(&r, text, NULL);
    r.o.file_bytes = bytes_of(original);
    g_assert_true(hn_export(&r.o, NULL, &x, &r.error));
    g_assert_no_error(r.error);
    g_assert_true(x.functions);
    g_assert_cmpuint(count_op(x.model, "F"), ==, 40);
    hn_exported_clear(&x);
}

/* Nothing can be undone: what is read is longer than what it is to be. */
static void test_refused(void)
{
    GString *s = g_string_new("opset 17 graph g(%x0:f32[N,4]) -> (%x400) { ");
    for (int i = 0; i < 400; i++)
        g_string_append_printf(s, "%%x%d = Sin(%%x%d) ", i + 1, i);
    g_string_append(s, "}");
    g_autofree char *text = g_string_free(s, FALSE);
    HnExported x;
    Run r;
    run_init(&r, text, NULL);
    r.o.file_bytes = 1000;
    g_assert_false(hn_export(&r.o, NULL, &x, &r.error));
    g_assert_error(r.error, HN_ERROR, HN_ERROR_GUARD);
    g_assert_nonnull(strstr(r.error->message, "the original 1 KB"));
    hn_exported_clear(&x);
    g_clear_error(&r.error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/export/undo/found", test_found);
    g_test_add_func("/export/undo/several", test_several);
    g_test_add_func("/export/undo/repro", test_repro);
    g_test_add_func("/export/undo/broken", test_broken);
    g_test_add_func("/export/undo/unchecked", test_unchecked);
    g_test_add_func("/export/undo/no-culprit", test_no_culprit);
    g_test_add_func("/export/undo/functions", test_functions);
    g_test_add_func("/export/undo/grown", test_grown);
    g_test_add_func("/export/undo/functions-stay", test_functions_stay);
    g_test_add_func("/export/undo/refused", test_refused);
    return g_test_run();
}
