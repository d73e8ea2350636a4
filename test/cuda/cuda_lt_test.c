/*
 * Products by cuBLASLt's stand-in (HONE_CUBLASLT), which finds mistakes in what it is told and fails the process then:
 * which ones it is asked for, what is computed along, and what goes to own kernels.
 */
#include <dlfcn.h>

#include "../unit/run_model.h"
#include "backends.h"
#include "cuda/core/cuda_backend.h"

typedef struct {
    int lt, others;      /* steps by cuBLASLt, and by other kernels */
    const char *refused; /* why not by cuBLASLt, of the last one */
} Kernels;

static void count_kernel(const HnStep *s, int depth, gpointer data)
{
    Kernels *k = data;
    (void)depth;
    if (s->node == NULL)
        return;
    const gboolean lt = s->kernel != NULL && strcmp(s->kernel->name, "cuda.lt") == 0;
    k->lt += lt;
    k->others += !lt;
    for (guint i = 0; s->refusals != NULL && !lt && i + 1 < s->refusals->len; i += 2)
        if (strcmp(s->refusals->pdata[i], "cuda.lt") == 0)
            k->refused = s->refusals->pdata[i + 1];
}

/* Three runs, the last one replayed, against ref; bf16 for f16 in the text where `dtype` says so. */
static Kernels run(const char *text, HnDtype dtype, gboolean strict_math)
{
    g_auto(GStrv) parts = g_strsplit(text, "f16", -1);
    g_autofree char *typed = g_strjoinv(dtype == HN_F16 ? "f16" : "bf16", parts);
    g_autoptr(HnModel) m = test_model(typed);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) s = test_session(
        m, hn_backend_cuda(0), &(HnSessionOptions){ .threads = 1, .strict = TRUE, .strict_math = strict_math });
    const double close = dtype == HN_F16 ? 2e-3 : 1.6e-2;
    Kernels k = { 0 };
    for (uint64_t i = 0; i < 3; i++) {
        g_autoptr(GPtrArray) in = test_inputs(ref, 7 + i), want = test_run(ref, in), got = test_run(s, in);
        for (guint o = 0; o < want->len; o++)
            test_assert_close(got->pdata[o], want->pdata[o], close, close, typed);
    }
    hn_session_foreach_step(s, count_kernel, &k);
    return k;
}

static const struct {
    const char *text;
    int lt, others;
} cases[] = {
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = MatMul(%x, w:f16[70,9]) }", 1, 0 },
    /* terms, rows, columns of one; vectors */
    { "opset 21 graph g(%x:f16[5,1]) -> (%y) { %y = MatMul(%x, w:f16[1,9]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[1,70]) -> (%y) { %y = MatMul(%x, w:f16[70,9]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = MatMul(%x, w:f16[70,1]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[70]) -> (%y) { %y = MatMul(%x, w:f16[70,9]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = MatMul(%x, w:f16[70]) }", 1, 0 },
    /* stacks: of both, of one, and along two axes that repeat apart */
    { "opset 21 graph g(%x:f16[3,5,70], %w:f16[3,70,9]) -> (%y) { %y = MatMul(%x, %w) }", 1, 0 },
    { "opset 21 graph g(%x:f16[2,3,5,70]) -> (%y) { %y = MatMul(%x, w:f16[70,9]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70], %w:f16[3,70,9]) -> (%y) { %y = MatMul(%x, %w) }", 1, 0 },
    { "opset 21 graph g(%x:f16[2,1,5,70], %w:f16[1,3,70,9]) -> (%y) { %y = MatMul(%x, %w) }", 0, 1 },
    /* transposed; of FusedMatMul, which lowering makes of f32 alone, hn-check has the cases */
    { "opset 21 graph g(%x:f16[70,5], %w:f16[9,70], %c:f16[5,9]) -> (%y) { %y = Gemm(%x, %w, %c) transA=1 transB=1 "
      "alpha=0.5 beta=0.25 }",
      1, 0 },
    { "opset 21 graph g(%x:f16[1,5], %w:f16[9,1]) -> (%y) { %y = Gemm(%x, %w) transA=1 transB=1 }", 1, 0 },
    { "opset 21 graph g(%x:f16[70,1], %w:f16[1,70]) -> (%y) { %y = Gemm(%x, %w) transA=1 transB=1 alpha=2.0 }", 1, 0 },
    /* addends of Gemm: rows, whole ones, and those that it cannot add */
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[9]) alpha=0.5 }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[1,9]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[1,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[9]) beta=0.5 }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[9]) beta=0.5 }", 0, 1 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[5,1]) }", 0, 1 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[1]) }", 0, 1 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[1]) beta=0.0 }", 1, 0 },
    /* computed along: a bias, a residual, a function, all of them; not two of one, nothing behind the function */
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) %y = Add(%a, k:f16[9]) }", 1, 0 },
    { "opset 21 graph g(%x:f16[2,5,70], %r:f16[2,5,9]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) %y = Add(%r, %a) }", 1,
      0 },
    { "opset 21 graph g(%x:f16[2,5,70], %w:f16[2,70,9], %r:f16[2,5,9]) -> (%y) { %a = MatMul(%x, %w) "
      "%b = Add(%a, k:f16[9]) %c = Add(%r, %b) %y = Relu(%c) }",
      1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) %y = Relu(%a) }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) %b = Add(%a, k:f16[9]) "
      "%y = Gelu(%b) approximate='tanh' }",
      1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %y = Gemm(%x, w:f16[70,9], c:f16[9]) %z = Relu(%y) }", 1, 0 },
    { "opset 21 graph g(%x:f16[5,70]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) %b = Add(%a, k:f16[9]) %y = Gelu(%b) }", 1,
      1 },
    /* own kernels compute more along, and are asked before for all of it */
    { "opset 21 graph g(%x:f16[5,70], %r:f16[5,9]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) %b = Add(%a, %r) "
      "%c = Relu(%b) %y = Add(%c, k:f16[9]) }",
      0, 1 },
    { "opset 21 graph g(%x:f16[5,70], %r:f16[5,9], %s:f16[5,9]) -> (%y) { %a = MatMul(%x, w:f16[70,9]) "
      "%b = Add(%a, %r) %y = Add(%b, %s) }",
      0, 1 },
};

static void test_cases(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int t = 0; t < 2; t++) {
            const Kernels k = run(cases[i].text, t == 0 ? HN_F16 : HN_BF16, FALSE);
            if (k.lt != cases[i].lt || k.others != cases[i].others) {
                g_test_message("%d steps by cuBLASLt, %d by others (%s): %s", k.lt, k.others, k.refused, cases[i].text);
                g_test_fail();
            }
        }
}

/* What it is never asked for: f32, which would become TF32, and --strict-math. */
static void test_never(void)
{
    const Kernels strict = run(cases[0].text, HN_F16, TRUE);
    g_assert_cmpint(strict.lt, ==, 0);
    g_assert_cmpstr(strict.refused, ==, "not with --strict-math");
    const Kernels f32 = run("opset 21 graph g(%x:f32[5,70]) -> (%y) { %y = MatMul(%x, w:f32[70,9]) }", HN_F16, FALSE);
    g_assert_cmpint(f32.lt, ==, 0);
    g_assert_true(g_str_has_prefix(f32.refused, "only f16, bf16"));
}

/* --- in processes of their own: the library is opened once ------------------------------------------------------- */

static gboolean is_open(void)
{
    return dlopen(g_getenv("HONE_TEST_CUBLASLT"), RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

static void refused_child(const char *name, const char *value, const char *reason, gboolean opened)
{
    g_setenv("HONE_TEST_CUBLASLT", g_getenv("HONE_CUBLASLT"), TRUE);
    g_setenv(name, value, TRUE);
    const Kernels k = run(cases[0].text, HN_F16, FALSE);
    g_assert_cmpint(k.lt, ==, 0);
    g_assert_cmpint(k.others, ==, 1);
    g_assert_cmpstr(k.refused, ==, reason);
    g_assert_cmpint(is_open(), ==, opened);
}

static void child_not_asked(void)
{
    refused_child("HONE_CUDA_LIBRARIES", "", "HONE_CUDA_LIBRARIES does not ask for cuBLASLt", FALSE);
}

static void child_missing(void)
{
    refused_child("HONE_CUBLASLT", "/nowhere/libcublasLt.so", "cuBLASLt (/nowhere/libcublasLt.so) is not installed",
                  FALSE);
}

static void child_other_library(void)
{
    refused_child("HONE_CUBLASLT", "libm.so.6", "the library in the place of cuBLASLt has no function cublasLtCreate",
                  FALSE);
}

static void child_dead(void)
{
    refused_child("HONE_EMU_LT", "dead", "cuBLASLt does not start on this device", TRUE);
}

static void child_none(void)
{
    refused_child("HONE_EMU_LT", "none", "cuBLASLt has no algorithm for it", TRUE);
}

/* Nothing in f16 or bf16 asks for the library. */
static void child_f32_alone(void)
{
    g_setenv("HONE_TEST_CUBLASLT", g_getenv("HONE_CUBLASLT"), TRUE);
    (void)run("opset 21 graph g(%x:f32[5,70]) -> (%y) { %y = MatMul(%x, w:f32[70,9]) }", HN_F16, FALSE);
    g_assert_false(is_open());
}

/* It takes a product in the end that it does not compute. */
static void child_fails(void)
{
    g_autoptr(GError) error = NULL;
    g_setenv("HONE_EMU_LT", "fails", TRUE);
    g_autoptr(HnModel) m = test_model(cases[0].text);
    g_autoptr(HnSession) s = test_session(m, hn_backend_cuda(0), &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 7);
    HnTensor *out[1] = { NULL };
    g_assert_false(hn_session_run(s, (HnTensor *const *)in->pdata, out, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, "cuBLASLt does not compute a product: status 15"));
}

static void test_child(gconstpointer path)
{
    g_autofree char *child = g_strconcat(path, "/subprocess", NULL);
    g_test_trap_subprocess(child, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr_unmatched("*emulated device:*");
}

static void add_child(const char *path, GTestFunc run_child)
{
    g_autofree char *child = g_strconcat(path, "/subprocess", NULL);
    g_test_add_data_func(path, path, test_child);
    g_test_add_func(child, run_child);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda-lt/cases", test_cases);
    g_test_add_func("/cuda-lt/never", test_never);
    add_child("/cuda-lt/not-asked", child_not_asked);
    add_child("/cuda-lt/missing", child_missing);
    add_child("/cuda-lt/other-library", child_other_library);
    add_child("/cuda-lt/dead", child_dead);
    add_child("/cuda-lt/none", child_none);
    add_child("/cuda-lt/f32-alone", child_f32_alone);
    add_child("/cuda-lt/fails", child_fails);
    return g_test_run();
}
