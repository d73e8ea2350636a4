/*
 * What running costs in memory: nothing is allocated once a plan has run, and sessions leave nothing behind. This
 * program's own malloc() and the like count the calls before they hand them on to the C library. What oneDNN allocates
 * within the execution of a primitive is counted apart: nobody can keep it from that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "onnx/onnx.h"
#include "run_model.h"

#if HN_SANITIZE_ADDRESS || HN_SANITIZE_THREAD || !defined(__GLIBC__)
#define COUNTS 0
#else
#define COUNTS 1
#endif

static gint counting; /* atomic */
static gint counted, of_onednn;

#if COUNTS

#define SHOWN 4 /* allocations whose callers are printed */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static gboolean within_onednn(void *const *callers, int n)
{
    Dl_info info;
    for (int i = 0; i < n; i++)
        if (dladdr(callers[i], &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, "libdnnl") != NULL)
            return TRUE;
    return FALSE;
}

static void count(void)
{
    void *callers[24];
    if (!g_atomic_int_compare_and_exchange(&counting, TRUE, FALSE)) /* backtrace() may allocate */
        return;
    int n = backtrace(callers, G_N_ELEMENTS(callers));
    if (within_onednn(callers, n))
        of_onednn++;
    else if (counted++ < SHOWN && g_test_verbose())
        backtrace_symbols_fd(callers, n, STDERR_FILENO);
    g_atomic_int_set(&counting, TRUE);
}

void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    *p = memalign(align, n);
    return *p != NULL ? 0 : ENOMEM;
}

#endif

/* --- no allocation while running --------------------------------------------------------------------------------- */

#define WARM 3
#define RUNS 100

/* Allocations of RUNS runs, oneDNN's own left out. */
static int allocations(HnModel *m, int threads)
{
    g_autoptr(GError) error = NULL;
    HnSessionOptions o = { .threads = threads, .seed = 1 };
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &o);
    g_autoptr(GPtrArray) in = test_inputs(s, 7);
    HnTensor *out[8] = { NULL };
    int n_out = hn_session_n_outputs(s);
    g_assert_cmpint(n_out, <=, (int)G_N_ELEMENTS(out));
    counted = of_onednn = 0;
    for (int i = 0; i < WARM + RUNS; i++) {
        g_atomic_int_set(&counting, i >= WARM);
        gboolean ok = hn_session_run(s, (HnTensor *const *)in->pdata, out, &error);
        for (int k = 0; ok && k < n_out; k++)
            hn_tensor_unref(out[k]);
        g_atomic_int_set(&counting, FALSE);
        g_assert_no_error(error);
        g_assert_true(ok);
    }
    g_test_message("within oneDNN: %g per run", (double)of_onednn / RUNS);
    return counted;
}

static void check(const char *text, int threads)
{
    g_autoptr(HnModel) m = test_model(text);
    g_assert_cmpint(allocations(m, threads), ==, 0);
}

static const char *const texts[] = {
    "opset 17 graph g(%x:f32[2,3,17,17]) -> (%y) { %a = Conv(%x, w:f32[5,3,3,3], b:f32[5]) pads=[1,1,1,1] "
    "%r = Relu(%a) %p = MaxPool(%r) kernel_shape=[2,2] strides=[2,2] %g = GlobalAveragePool(%p) %f = Flatten(%g) "
    "%y = Gemm(%f, v:f32[5,10], c:f32[10]) }",
    "opset 17 graph g(%x:f32[1,64,32,32]) -> (%y) { %a = Conv(%x, w:f32[64,64,3,3]) pads=[1,1,1,1] "
    "%b = Conv(%a, v:f32[64,64,3,3]) pads=[1,1,1,1] %y = Add(%b, %x) }",
    "opset 17 graph g(%x:f32[4,16]) -> (%y) { %a = MatMul(%x, w:f32[16,16]) %b = Tanh(%a) %c = Mul(%b, %x) "
    "%d = Sigmoid(%c) %y = Softmax(%d) axis=-1 }",
    "opset 17 graph g(%x:f32[4,16]) -> (%y, %z) { %a = Transpose(%x) perm=[1,0] %y = ReduceMean(%a) axes=[1] "
    "%z = Concat(%x, %x) axis=1 }",
    "opset 17 graph g(%x:f32[64,256], %w:f32[256,64]) -> (%y) { %a = MatMul(%x, %w) %y = Exp(%a) }",
};

static void test_text(void)
{
    if (!COUNTS) {
        g_test_skip("a sanitizer has malloc() for itself");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        for (int threads = 1; threads <= 2; threads++) {
            g_test_message("%d threads: %s", threads, texts[i]);
            check(texts[i], threads);
        }
}

/* A sub-graph's results may outlive its next run; a branch's do not, and it has them where it had them before. */
static void test_control(void)
{
    static const char *const bodies[] = { "%p = Neg(%n)",
                                          "%a = Neg(%n) %b = Relu(%a) %d = Mul(%b, %a) %p = Add(%d, %n)" };
    int n[2];
    if (!COUNTS) {
        g_test_skip("a sanitizer has malloc() for itself");
        return;
    }
    for (int i = 0; i < 2; i++) {
        g_autofree char *text = g_strdup_printf(
            "opset 17 graph g(%%x:f32[2,8]) -> (%%y) { z:f32={0.5} %%n = Abs(%%x) %%m = ReduceMax(%%n) keepdims=0 "
            "%%c = Less(%%m, z) %%y = If(%%c) then_branch=graph() -> (%%p) { %s } "
            "else_branch=graph() -> (%%q) { %%q = Relu(%%n) } }",
            bodies[i]);
        g_autoptr(HnModel) m = test_model(text);
        n[i] = allocations(m, 1);
        g_test_message("%g allocations per run", (double)n[i] / RUNS);
    }
    g_assert_cmpint(n[0], ==, 0);
    g_assert_cmpint(n[1], ==, 0);
}

/* --- sessions leave nothing behind ------------------------------------------------------------------------------- */

/* Resident memory in bytes. */
static gint64 resident(void)
{
    g_autofree char *text = NULL;
    gint64 pages = 0;
    if (g_file_get_contents("/proc/self/statm", &text, NULL, NULL)) {
        char *second = strchr(text, ' ');
        pages = second != NULL ? g_ascii_strtoll(second, NULL, 10) : 0;
    }
    return pages * sysconf(_SC_PAGESIZE);
}

static void open_and_close(HnModel *m)
{
    g_autoptr(GError) error = NULL;
    HnSessionOptions o = { .threads = 1 };
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &o);
    g_autoptr(GPtrArray) in = test_inputs(s, 7);
    HnTensor *out[8] = { NULL };
    g_assert_true(hn_session_run(s, (HnTensor *const *)in->pdata, out, &error));
    g_assert_no_error(error);
    for (int k = 0; k < hn_session_n_outputs(s); k++)
        hn_tensor_unref(out[k]);
}

static void test_sessions(void)
{
    if (!COUNTS) {
        g_test_skip("a sanitizer keeps freed memory");
        return;
    }
    gint64 before = 0;
    for (int i = 0; i < 1000; i++) {
        g_autoptr(HnModel) m = test_model(texts[i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : 3]);
        open_and_close(m);
        if (i == 100)
            before = resident();
    }
    gint64 grown = resident() - before;
    g_test_message("grown by %" G_GINT64_FORMAT " bytes from session 100 to 1000", grown);
    g_assert_cmpint(grown, <, 1000000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/alloc/models", test_text);
    g_test_add_func("/run/alloc/control", test_control);
    g_test_add_func("/run/alloc/sessions", test_sessions);
    return g_test_run();
}
