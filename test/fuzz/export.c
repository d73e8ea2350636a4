/*
 * A whole export: a model, as ONNX or as text that begins with "opset", is cut loose, converted, rewritten, checked on
 * ref, and what is wrong is undone. Half of the files get passes that are wrong on purpose beside the real ones, so
 * that bisection and undoing have something to do; a quarter is not compared but may not grow. What is accepted is
 * valid, has the inputs and outputs that were there, is the same when it is written and read, computes what the
 * original does on the samples, and is not much longer where that was asked for. Errors are fine; what was counted goes
 * back.
 */
#include <stdio.h>
#include <string.h>

#include "check/recipe.h"
#include "export/export.h"
#include "fuzz.h"
#include "onnx/onnx.h"
#include "pass/rewrite.h"

static const HnVerifyTolerance tolerance = { .rtol = 1e-3, .part = 1e-4 };
#define SPARE 4200 /* bytes that a file may grow by, and the entry that says it was not compared */

/* --- wrong passes ------------------------------------------------------------------------------------------------- */

/* Loses what a node of one input does. */
static gboolean lose(HnRewrite *r, HnNode *n)
{
    return (n->op == &hn_op_relu || n->op == &hn_op_neg || n->op == &hn_op_transpose) &&
           hn_rw_bypass(r, n, hn_node_out(n, 0), hn_node_in(n, 0));
}

static const HnPass wrong_lose = { .name = "lose", .summary = "", .level = 1, .node = lose };

static gboolean confuse(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_mul || !hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, hn_rw_add(r, n, "Add", HN_INS(hn_node_in(n, 0), hn_node_in(n, 1))), n);
}

static const HnPass wrong_confuse = { .name = "confuse", .summary = "", .level = 1, .node = confuse };

static gboolean tangle(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_tanh || !hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, hn_node_out(n, 0)); /* a node that waits for itself */
    return TRUE;
}

static const HnPass wrong_tangle = { .name = "tangle", .summary = "", .level = 1, .node = tangle };

static gboolean give_up(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_exp || !hn_rw_go(r, n))
        return FALSE;
    hn_rw_fail(r, HN_ERROR_UNSUPPORTED, "no way to go on");
    return TRUE;
}

static const HnPass wrong_give_up = { .name = "give-up", .summary = "", .level = 1, .node = give_up };

/* Right, but it stores 16 kB for each. */
static gboolean bloat(HnRewrite *r, HnNode *n)
{
    const int64_t dims[] = { 4096 };
    if (n->op != &hn_op_add || hn_rw_dtype(r, hn_node_in(n, 0)) != HN_F32 || hn_rw_opset(n->graph) < 13 ||
        hn_rw_rank(r, hn_node_in(n, 0)) < 0 || !hn_rw_go(r, n))
        return FALSE;
    HnTensor *zeros = hn_tensor_new(HN_F32, 1, dims, hn_rw_budget(r), NULL);
    HnNode *sum = hn_rw_add(r, n, "ReduceSum", HN_INS(hn_rw_weight(r, n->graph, "zeros", zeros)));
    hn_node_set_int(sum, "keepdims", 0);
    HnNode *negative = hn_rw_add(r, n, "Sub", HN_INS(hn_rw_out(r, sum, "zero"), hn_node_in(n, 1)));
    HnValue *other = hn_rw_out(r, negative, "negative");
    return hn_rw_take(r, hn_rw_add(r, n, "Sub", HN_INS(hn_node_in(n, 0), other)), n);
}

static const HnPass heavy_bloat = { .name = "bloat", .summary = "", .level = 1, .node = bloat };

/* The real ones with the wrong ones in front of them. */
static GPtrArray *passes_with(const HnPass *const *wrong, guint n)
{
    GPtrArray *all = g_ptr_array_new();
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(all, (gpointer)wrong[i]);
    for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++)
        g_ptr_array_add(all, (gpointer)*p);
    g_ptr_array_add(all, NULL);
    return all;
}

/* --- one export --------------------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *data;
    size_t size;
    uint64_t seed;
    HnBudget *budget;
} Input;

static HnModel *open_input(gpointer data, GError **error)
{
    const Input *in = data;
    return fuzz_read_model(in->data, in->size, in->budget, error);
}

/* Names of inputs that are no weights, and of outputs. */
static char *border(const HnModel *m)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        if (v->weight == NULL && v->sparse == NULL)
            g_string_append_printf(s, "%s,", v->name);
    }
    g_string_append(s, ":");
    for (guint i = 0; i < m->graph->outputs->len; i++)
        g_string_append_printf(s, "%s,", ((const HnValue *)m->graph->outputs->pdata[i])->name);
    return g_string_free(s, FALSE);
}

static HnSamplesOptions verify_options(const Input *in)
{
    return (HnSamplesOptions){ .backend = &hn_backend_ref, .threads = 1, .seed = in->seed, .budget = in->budget };
}

/* What was accepted agrees with the original once more, both made anew. */
static void agrees(const Input *in, const HnModel *m)
{
    const HnSamplesOptions vo = verify_options(in);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) original = open_input((gpointer)in, &error);
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, in->budget, &error);
    const HnOnnxOptions o = { .budget = in->budget };
    g_autoptr(HnModel) again = bytes != NULL ? hn_onnx_read_bytes(bytes, "/nonexistent", &o, &error) : NULL;
    g_autoptr(HnVerify) v = again != NULL && original != NULL ? hn_verify_new(original, &vo, &error) : NULL;
    HnVerified found;
    const gboolean asked = v != NULL && hn_verify(v, again, &tolerance, 0, &found, &error);
    if (!asked && !g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET))
        g_error("what was accepted cannot be compared again: %s", error->message);
    if (asked && !found.equal)
        g_error("what was accepted is not the same: %s", found.why);
    if (asked)
        hn_verified_clear(&found);
}

static void judge(const Input *in, const HnExported *x, const char *before, gsize file_bytes, gboolean compared)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *after = border(x->model);
    gsize bytes = 0;
    if (!hn_model_verify(x->model, &error))
        g_error("the new model is invalid: %s", error->message);
    if (strcmp(before, after) != 0)
        g_error("inputs and outputs are %s instead of %s", after, before);
    if ((hn_model_metadata(x->model, HN_CHECKED) == NULL) != compared)
        g_error("the new model %s that it was not compared", compared ? "says" : "does not say");
    if (file_bytes > 0 && hn_onnx_size(x->model, NULL, &bytes, NULL) && bytes > file_bytes + file_bytes / 10 + SPARE)
        g_error("the new model takes %" G_GSIZE_FORMAT " bytes, the original %" G_GSIZE_FORMAT, bytes, file_bytes);
    if (compared)
        agrees(in, x->model);
}

static void export_input(const Input *in, HnModel *original)
{
    static const HnPass *const wrong[] = { &wrong_lose, &wrong_confuse, &wrong_tangle, &wrong_give_up, &heavy_bloat };
    const gboolean compared = (in->seed & 3) != 0, spoilt = (in->seed >> 2 & 1) != 0;
    const HnSamplesOptions vo = verify_options(in);
    g_autoptr(GPtrArray) passes =
        compared ? passes_with(wrong, spoilt ? 4 : 0) : passes_with(wrong + 2, spoilt ? 3 : 0);
    g_autoptr(GError) error = NULL;
    g_autofree char *before = border(original);
    gsize file_bytes = 0;
    if (!compared && !hn_onnx_size(original, in->budget, &file_bytes, NULL))
        file_bytes = 0;
    g_autoptr(HnVerify) v = compared ? hn_verify_new(original, &vo, &error) : NULL;
    HnExportOptions o = { .open = open_input,
                          .data = (gpointer)in,
                          .keep_functions = (in->seed >> 3 & 3) == 0,
                          .pass = { .level = 3,
                                    .passes = (const HnPass *const *)passes->pdata,
                                    .fold_bytes = HN_FOLD_BYTES,
                                    .budget = in->budget },
                          .file_bytes = file_bytes,
                          .infer_shapes = FALSE,
                          .clear_metadata = (in->seed >> 5 & 1) != 0,
                          .tolerance = tolerance,
                          .backend = &hn_backend_ref };
    fuzz_result(v != NULL || !compared, error);
    if (error != NULL)
        return;
    if ((in->seed >> 6 & 7) == 0) /* an allocation fails somewhere */
        hn_budget_fail_at(in->budget, 1 + (in->seed >> 9) % 256);
    HnExported x;
    const gboolean ok = hn_export(&o, v, &x, &error);
    fuzz_result(ok, error);
    if (g_getenv("FUZZ_VERBOSE") != NULL)
        fprintf(stderr, "# %u rewrites, %u undone, %u left out; %s\n", x.log.made != NULL ? x.log.made->len : 0,
                x.dropped->len, x.grown->len, ok ? "all well" : error->message);
    if (ok) {
        hn_budget_fail_at(in->budget, 0);
        judge(in, &x, before, file_bytes, compared);
    }
    hn_exported_clear(&x);
}

static void one(const uint8_t *data, size_t size)
{
    Input in = { data, size, fuzz_seed(data, size), hn_budget_new(FUZZ_BUDGET) };
    g_autoptr(GError) error = NULL;
    HnModel *m = open_input(&in, &error);
    fuzz_result(m != NULL, error);
    fuzz_watch(in.budget);
    if (m != NULL)
        export_input(&in, m);
    fuzz_watch(NULL);
    hn_model_free(m);
    fuzz_budget_done(in.budget);
}

/* Models are run, twice per rewrite that is looked for; fuzz_watch() ends that after 2 s, far below what this allows.
 */
const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_model, .init = fuzz_watch_init, .times = 100 };
