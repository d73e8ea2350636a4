/*
 * Sessions opened and closed many times: what the process has grown by afterwards, and what a budget still counts.
 *
 * test-run_soak [N]: sessions of each model (default: as many as make a thousand of all).
 */
#include <malloc.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "onnx/onnx.h"
#include "run_model.h"

#define WARM 20 /* rounds in which caches and the heap find their size */
#define MOST_GROWTH 1000000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 30 /* a sanitizer keeps freed memory: what it finds at the end counts */
#define MEASURED 0
#else
#define ROUNDS 140
#define MEASURED 1
#endif

typedef struct {
    const char *name, *text;
    const char *prefer; /* HnSessionOptions.prefer */
    gboolean external;  /* weights lie beside the model */
} Model;

static const Model models[] = {
    { "convolution",
      "opset 17 graph g(%x:f32[2,3,17,17]) -> (%y) { %a = Conv(%x, w:f32[5,3,3,3], b:f32[5]) pads=[1,1,1,1] "
      "%r = Relu(%a) %p = MaxPool(%r) kernel_shape=[2,2] strides=[2,2] %g = GlobalAveragePool(%p) %f = Flatten(%g) "
      "%y = Gemm(%f, v:f32[5,10], c:f32[10]) }",
      NULL, FALSE },
    { "onednn",
      "opset 17 graph g(%x:f32[2,3,17,17]) -> (%y) { %a = Conv(%x, w:f32[5,3,3,3], b:f32[5]) pads=[1,1,1,1] "
      "%y = Relu(%a) }",
      "onednn", FALSE },
    { "function",
      "opset 17 opset com.acme 1 function com.acme::Twice(%a) -> (%b) { opset 17 %c = Add(%a, %a) %b = Tanh(%c) } "
      "graph g(%x:f32[4,16]) -> (%y) { %a = com.acme::Twice(%x) %b = MatMul(%a, w:f32[16,16]) %y = com.acme::Twice(%b) "
      "}",
      NULL, FALSE },
    { "sub-graphs",
      "opset 17 graph g(%x:f32[2,8]) -> (%y) { z:f32={0.5} n:i64={3} t:bool={true} %m = ReduceMax(%x) keepdims=0 "
      "%c = Less(%m, z) %b = If(%c) then_branch=graph() -> (%p) { %p = Neg(%x) } "
      "else_branch=graph() -> (%q) { %a = Relu(%x) %q = Mul(%a, %x) } "
      "%y = Loop(n, t, %b) body=graph(%i:i64[], %k:bool[], %s:f32[2,8]) -> (%k2, %u) { %k2 = Identity(%k) "
      "%u = Add(%s, %x) } }",
      NULL, FALSE },
    { "data-dependent", "opset 17 graph g(%x:f32[4,16]) -> (%y) { %a = Relu(%x) %b = NonZero(%a) %y = Mul(%b, %b) }",
      NULL, FALSE },
    { "external",
      "opset 17 graph g(%x:f32[4,64]) -> (%y) { %a = MatMul(%x, w:f32[64,64]) %y = MatMul(%a, v:f32[64,64]) }", NULL,
      TRUE },
    { "quantized",
      "opset 17 graph g(%x:f32[1,16,9,11]) -> (%y) { %q = QuantizeLinear(%x, xs:f32={0.0078125}, xz:u8={121}) "
      "%d = DequantizeLinear(%q, xs, xz) %w = DequantizeLinear(wq:i8[24,16,3,3], ws:f32={0.015625}, wz:i8={0}) "
      "%c = Conv(%d, %w) pads=[1,1,1,1] %p = QuantizeLinear(%c, ps:f32={0.5}, pz:u8={100}) "
      "%y = DequantizeLinear(%p, ps, pz) }",
      NULL, FALSE },
};

typedef struct {
    const Model *model;
    GBytes *bytes; /* of the file; NULL: it is at path */
    char *path;
} File;

static void file_make(File *f, const Model *model, const char *folder)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(model->text);
    *f = (File){ .model = model };
    if (model->external) {
        f->path = g_build_filename(folder, "external.onnx", NULL);
        hn_onnx_write_file(m, f->path, &(HnOnnxWriteOptions){ .external = HN_EXTERNAL_ONE_FILE }, &error);
    } else {
        f->bytes = hn_onnx_write_bytes(m, NULL, &error);
    }
    g_assert_no_error(error);
}

static void open_and_close(const File *f)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    const HnOnnxOptions o = { .budget = budget };
    HnModel *m = f->bytes ? hn_onnx_read_bytes(f->bytes, NULL, &o, &error) : hn_onnx_read_file(f->path, &o, &error);
    g_assert_no_error(error);
    HnSession *s = test_session(m, &hn_backend_cpu,
                                &(HnSessionOptions){ .threads = 1, .budget = budget, .prefer = f->model->prefer });
    g_autoptr(GPtrArray) in = test_inputs(s, 7);
    g_ptr_array_unref(test_run(s, in));
    hn_session_free(s);
    hn_model_free(m);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

/* Private bytes of the process once the heap has given back what it can. */
static gint64 taken(void)
{
#if MEASURED && defined(__GLIBC__)
    malloc_trim(0);
#endif
    return (gint64)hn_mem_private();
}

static void test_sessions(gconstpointer data)
{
    const int rounds = GPOINTER_TO_INT(data);
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-soak-XXXXXX", &error);
    g_assert_no_error(error);
    File files[G_N_ELEMENTS(models)];
    for (guint i = 0; i < G_N_ELEMENTS(models); i++)
        file_make(&files[i], &models[i], folder);
    gint64 before = 0;
    for (int k = 0; k < WARM + rounds; k++) {
        if (k == WARM)
            before = taken();
        for (guint i = 0; i < G_N_ELEMENTS(models); i++)
            open_and_close(&files[i]);
    }
    gint64 grown = taken() - before;
    g_test_message("grown by %" G_GINT64_FORMAT " bytes in %d sessions", grown, rounds * (int)G_N_ELEMENTS(models));
    if (MEASURED)
        g_assert_cmpint(grown, <, MOST_GROWTH);
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        if (files[i].path)
            hn_onnx_remove(files[i].path);
        g_free(files[i].path);
        if (files[i].bytes)
            g_bytes_unref(files[i].bytes);
    }
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gint64 rounds = ROUNDS;
    if (argc > 1 && !hn_parse_int(argv[1], 1, 1000000, &rounds, NULL))
        return 2;
    g_test_add_data_func("/run/soak/sessions", GINT_TO_POINTER((int)rounds), test_sessions);
    return g_test_run();
}
