/*
 * Memory of a check: one model at a time, for one shape, and sizes that grow no further than they have to. Where there
 * is too little the export ends for that reason, at whichever allocation: no rewrite is blamed for it.
 */
#include <string.h>

#include "export/export.h"
#include "onnx/onnx.h"
#include "run_model.h"

static HnModel *read_text(const char *text, HnBudget *budget, GError **error)
{
    g_autoptr(HnModel) m = hn_model_parse(text, budget, error);
    return m != NULL && hn_model_verify(m, error) ? g_steal_pointer(&m) : NULL;
}

typedef struct {
    const char *text;
    HnBudget *budget;
} Source;

static HnModel *open_source(gpointer data, GError **error)
{
    const Source *s = data;
    return read_text(s->text, s->budget, error);
}

/* An export with its check, as the tool does it. */
static gboolean export_text(const Source *s, HnExported *x, GError **error)
{
    const HnSamplesOptions vo = { .backend = &hn_backend_cpu, .threads = 1, .seed = 5, .budget = s->budget };
    const HnExportOptions o = { .open = open_source,
                                .data = (gpointer)s,
                                .pass = { .level = 2, .fold_bytes = HN_FOLD_BYTES, .budget = s->budget },
                                .backend = &hn_backend_cpu,
                                .tolerance = { .rtol = 1e-3, .part = 1e-4 } };
    g_autoptr(HnModel) original = hn_export_original(&o, error);
    g_autoptr(HnVerify) v = original != NULL ? hn_verify_new(original, &vo, error) : NULL;
    g_clear_pointer(&original, hn_model_free);
    *x = (HnExported){ 0 };
    return v != NULL && hn_export(&o, v, x, error);
}

static void test_too_little(void)
{
    static const char text[] =
        "opset 17 graph g(%x:f32[N,8], %c:bool[]) -> (%y) { w:f16[8,8] %1 = Cast(%w) to=1 %2 = MatMul(%x, %1) "
        "%3 = Identity(%2) %4 = If(%c) then_branch=graph() -> (%a) { %a = Add(%3, b:f32[8]) } "
        "else_branch=graph() -> (%b) { %b = Mul(%3, %3) } %y = Relu(%4) }";
    gboolean failed = TRUE;
    for (guint64 k = 1; failed; k++) {
        HnBudget *budget = hn_budget_new(0);
        const Source s = { text, budget };
        g_autoptr(GError) error = NULL;
        HnExported x;
        hn_budget_fail_at(budget, k);
        const gboolean ok = export_text(&s, &x, &error);
        failed = hn_budget_count(budget) >= k;
        if (ok) {
            g_assert_no_error(error);
            g_assert_true(x.verified.equal);
        } else {
            g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        }
        g_assert_true(x.dropped == NULL || x.dropped->len == 0);
        hn_exported_clear(&x);
        g_assert_cmpuint(hn_budget_used(budget), ==, 0);
        hn_budget_unref(budget);
        g_assert_cmpuint(k, <, 10000);
    }
}

/* What one run of each of the shapes takes, apart from each other. */
static gsize peak_of_runs(const char *text)
{
    gsize most = 0;
    for (int64_t n = 1; n <= 2; n++) {
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = read_text(text, budget, &error);
        const HnSessionOptions o = { .threads = 1, .budget = budget };
        g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_cpu, &o, &error);
        const int64_t dims[] = { n, 512 };
        HnTensor *out = NULL, *in = test_random(HN_F32, 2, dims, 1);
        g_assert_true(hn_session_run(s, &in, &out, &error));
        g_assert_no_error(error);
        hn_tensor_unref(in);
        hn_tensor_unref(out);
        const gsize peak = hn_budget_peak(budget);
        most = MAX(most, peak);
    }
    return most;
}

/* Weights that are computed ahead by each plan, and packed: the check takes what one run does. Outputs are small. */
static void test_one_at_a_time(void)
{
    static const char text[] =
        "opset 17 graph g(%x:f32[N,512]) -> (%y) { a:f32[512,512] b:f32[512,512] c:f32[512,512] "
        "%1 = Transpose(%a) perm=[1,0] %2 = MatMul(%x, %1) %3 = Transpose(%b) perm=[1,0] %4 = MatMul(%2, %3) "
        "%5 = Transpose(%c) perm=[1,0] %y = MatMul(%4, %5) }";
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    g_autoptr(GError) error = NULL;
    const Source s = { text, budget };
    HnExported x;
    g_assert_true(export_text(&s, &x, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(x.dropped->len, ==, 0);
    hn_exported_clear(&x);
    const gsize run = peak_of_runs(text);
    g_test_message("a check takes %" G_GSIZE_FORMAT " bytes, a run %" G_GSIZE_FORMAT, hn_budget_peak(budget), run);
    g_assert_cmpuint(hn_budget_peak(budget), <=, run * 13 / 10);
}

/* T x T numbers, and then a shape that made-up data do not fit: no size works, and the large ones are not tried. */
static void test_sizes_end(void)
{
    static const char text[] = "opset 17 graph g(%x:f32[1,T], %s:i64[2]) -> (%y) { %1 = Transpose(%x) perm=[1,0] "
                               "%2 = Mul(%1, %x) %3 = Reshape(%s, r:i64[2]={2,1}) %4 = Reshape(%3, t:i64[1]={2}) "
                               "%5 = Add(%4, f:i64[2]={11,11}) %y = Reshape(%2, %5) }";
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    g_autoptr(GError) error = NULL;
    const Source s = { text, budget };
    HnExported x;
    g_assert_false(export_text(&s, &x, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_assert_cmpuint(hn_budget_peak(budget), <, (gsize)300 << 20);
}

/* A window that only long inputs fit: the second size is the next one, not one many times as long. */
static void test_sizes_are_near(void)
{
    static const char text[] = "opset 17 graph g(%x:f32[1,1,T]) -> (%y) { %y = Conv(%x, w:f32[2,1,1500]) }";
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    const HnSamplesOptions vo = { .backend = &hn_backend_cpu, .threads = 1 };
    g_autoptr(HnVerify) v = hn_verify_new(m, &vo, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(hn_samples_shapes(hn_verify_samples(v)), ==, "x:1x1x2048 and x:1x1x4096");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/export/memory/too-little", test_too_little);
    g_test_add_func("/export/memory/one-at-a-time", test_one_at_a_time);
    g_test_add_func("/export/memory/sizes-end", test_sizes_end);
    g_test_add_func("/export/memory/sizes-are-near", test_sizes_are_near);
    return g_test_run();
}
