/*
 * The stand-in for cuBLASLt: right values, in the order of the stream and in graphs; and each planted mistake is found.
 * Each case runs in a process of its own, which fails where there was a mistake.
 */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "cuda/core/cublaslt.h"
#include "cuda/core/cuda_driver.h"

#define OK(call) g_assert_cmpint((call), ==, 0)
#define BAD(call) g_assert_cmpint((call), !=, 0)

enum { M = 5, N = 3, K = 70, BATCH = 2, ELEMENTS = 1000 }; /* d: M x N by columns; K is deep enough for workspace */

static HnCudaDriver cu;
static HnCublasLt lt;

/* Operands, their descriptions, and an algorithm: d = a b, in f16. */
typedef struct {
    HnCuContext context;
    HnCuStream stream;
    HnCuAddress a, b, c, d, bias, workspace; /* ELEMENTS halves each */
    uint16_t *host;                          /* [ELEMENTS], pinned */
    HnLtHandle handle;
    HnLtProduct product;
    HnLtMatrix ma, mb, md;
    HnLtWish wish;
    HnLtChoice choice;
} Scene;

static void open_libraries(void)
{
    void *driver = dlopen(EMU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    g_setenv("HONE_CUDA_DRIVER", EMU_LIBRARY, TRUE);
    void *library = dlopen(EMU_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL || library == NULL)
        g_error("%s", dlerror());
#define HN_CU(member, symbol, arguments) *(void **)&cu.member = dlsym(driver, #symbol);
#include "cuda/core/cuda_driver.def"
#undef HN_CU
#define HN_LT(member, symbol, arguments) *(void **)&lt.member = dlsym(library, #symbol);
#include "cuda/core/cublaslt.def"
#undef HN_LT
}

/* An operand of small numbers that are halves. */
static HnCuAddress operand(Scene *s, uint32_t seed)
{
    HnCuAddress at;
    OK(cu.alloc(&at, ELEMENTS * sizeof(uint16_t)));
    for (uint32_t i = 0; i < ELEMENTS; i++)
        s->host[i] = hn_f16_from_f32((float)((i * 7 + seed) % 9) - 4);
    OK(cu.upload(at, s->host, ELEMENTS * sizeof(uint16_t), s->stream));
    OK(cu.stream_wait(s->stream));
    return at;
}

static void wish(Scene *s, uint32_t alignment)
{
    const uint64_t most = 1 << 20;
    const uint32_t reductions = HN_LT_REDUCE_F32;
    OK(lt.wish_new(&s->wish));
    OK(lt.wish_set(s->wish, HN_LT_WORKSPACE, &most, sizeof most));
    OK(lt.wish_set(s->wish, HN_LT_REDUCTIONS, &reductions, sizeof reductions));
    for (int i = HN_LT_ALIGNMENT_A; i <= HN_LT_ALIGNMENT_D; i++)
        OK(lt.wish_set(s->wish, i, &alignment, sizeof alignment));
}

static int choose(Scene *s)
{
    int n = 0;
    return lt.choose(s->handle, s->product, s->ma, s->mb, s->md, s->md, s->wish, 1, &s->choice, &n);
}

static Scene scene_new(void)
{
    Scene s = { 0 };
    open_libraries();
    OK(cu.init(0));
    OK(cu.context_retain(&s.context, 0));
    OK(cu.context_set(s.context));
    OK(cu.stream_create(&s.stream, HN_CU_STREAM_NON_BLOCKING));
    OK(cu.host_alloc((void **)&s.host, ELEMENTS * sizeof(uint16_t), 0));
    s.a = operand(&s, 1);
    s.b = operand(&s, 2);
    s.c = operand(&s, 3);
    s.d = operand(&s, 4);
    s.bias = operand(&s, 5);
    s.workspace = operand(&s, 0);
    OK(lt.create(&s.handle));
    OK(lt.product_new(&s.product, HN_LT_SUMS_F32, HN_LT_F32));
    OK(lt.matrix_new(&s.ma, HN_LT_F16, M, K, M));
    OK(lt.matrix_new(&s.mb, HN_LT_F16, K, N, K));
    OK(lt.matrix_new(&s.md, HN_LT_F16, M, N, M));
    wish(&s, 16);
    return s;
}

static int multiply(const Scene *s, HnCuAddress a, float alpha, float beta, size_t workspace)
{
    return lt.multiply(s->handle, s->product, &alpha, (const void *)(uintptr_t)a, s->ma, (const void *)(uintptr_t)s->b,
                       s->mb, &beta, (const void *)(uintptr_t)(beta != 0 ? s->c : s->d), s->md, (void *)(uintptr_t)s->d,
                       s->md, &s->choice.algorithm, (void *)(uintptr_t)s->workspace, workspace, s->stream);
}

static int plain(const Scene *s)
{
    return multiply(s, s->a, 1, 0, s->choice.workspace);
}

static void read_back(Scene *s)
{
    OK(cu.download(s->host, s->d, ELEMENTS * sizeof(uint16_t), s->stream));
    OK(cu.stream_wait(s->stream));
}

static void scene_free(Scene *s)
{
    OK(lt.wish_free(s->wish));
    OK(lt.matrix_free(s->ma));
    OK(lt.matrix_free(s->mb));
    OK(lt.matrix_free(s->md));
    OK(lt.product_free(s->product));
    OK(lt.destroy(s->handle));
}

/* Element i of the operand of that seed. */
static double number(int i, uint32_t seed)
{
    return (double)(((uint32_t)i * 7 + seed) % 9) - 4;
}

static void assert_half(const Scene *s, int i, double want)
{
    g_assert_cmpfloat(fabs((double)hn_f16_to_f32(s->host[i]) - want), <=, 1e-3 * fabs(want));
}

/* --- right -------------------------------------------------------------------------------------------------------- */

static void child_product(void)
{
    Scene s = scene_new();
    OK(choose(&s));
    g_assert_cmpuint(s.choice.workspace, >, 0);
    OK(plain(&s));
    read_back(&s);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += number(k * M + i, 1) * number(j * K + k, 2);
            assert_half(&s, j * M + i, sum);
        }
    assert_half(&s, M * N, number(M * N, 4)); /* behind the result */
    scene_free(&s);
}

/* 2 a' b' + 3 c + bias, and the larger of it and 0; two of each. */
static void child_all_of_it(void)
{
    const int32_t turned = HN_LT_TRANSPOSE, batch = BATCH;
    const int64_t step_a = K * M, step_b = 0, step_d = M * N;
    const uint32_t end = HN_LT_END_RELU | HN_LT_END_BIAS;
    Scene s = scene_new();
    OK(lt.matrix_free(s.ma));
    OK(lt.matrix_free(s.mb));
    OK(lt.matrix_new(&s.ma, HN_LT_F16, K, M, K));
    OK(lt.matrix_new(&s.mb, HN_LT_F16, N, K, N));
    OK(lt.product_set(s.product, HN_LT_TRANSPOSE_A, &turned, sizeof turned));
    OK(lt.product_set(s.product, HN_LT_TRANSPOSE_B, &turned, sizeof turned));
    OK(lt.product_set(s.product, HN_LT_EPILOGUE, &end, sizeof end));
    OK(lt.product_set(s.product, HN_LT_BIAS, &s.bias, sizeof s.bias));
    const HnLtMatrix all[] = { s.ma, s.mb, s.md };
    const int64_t steps[] = { step_a, step_b, step_d };
    for (int i = 0; i < 3; i++) {
        OK(lt.matrix_set(all[i], HN_LT_BATCH, &batch, sizeof batch));
        OK(lt.matrix_set(all[i], HN_LT_BATCH_STEP, &steps[i], sizeof steps[i]));
    }
    OK(choose(&s));
    OK(multiply(&s, s.a, 2, 3, s.choice.workspace));
    read_back(&s);
    for (int t = 0; t < BATCH; t++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < M; i++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += number(t * K * M + i * K + k, 1) * number(k * N + j, 2);
                const int at = t * M * N + j * M + i;
                sum = 2 * sum + 3 * number(at, 3) + number(i, 5);
                assert_half(&s, at, MAX(sum, 0));
            }
    scene_free(&s);
}

/* It runs late, and each time that it is replayed. */
static void child_recorded(void)
{
    Scene s = scene_new();
    HnCuGraph graph;
    HnCuGraphExec exec;
    OK(choose(&s));
    OK(cu.capture_begin(s.stream, HN_CU_CAPTURE_THREAD));
    OK(plain(&s));
    OK(cu.capture_end(s.stream, &graph));
    OK(cu.graph_instantiate(&exec, graph, 0));
    read_back(&s);
    assert_half(&s, 0, number(0, 4));
    double first = 0;
    for (int k = 0; k < K; k++)
        first += number(k * M, 1) * number(k, 2);
    for (int i = 0; i < 2; i++) {
        OK(cu.fill(s.d, 0, ELEMENTS * sizeof(uint16_t), s.stream));
        OK(cu.graph_launch(exec, s.stream));
        read_back(&s);
        assert_half(&s, 0, first);
    }
    OK(cu.graph_forget(exec));
    OK(cu.graph_destroy(graph));
    scene_free(&s);
}

static void child_none(void)
{
    Scene s = scene_new();
    BAD(choose(&s));
    scene_free(&s);
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

static void child_short_line(void)
{
    Scene s = scene_new();
    OK(lt.matrix_free(s.ma));
    OK(lt.matrix_new(&s.ma, HN_LT_F16, M, K, M - 1));
    BAD(choose(&s));
    scene_free(&s);
}

static void child_long_line(void)
{
    Scene s = scene_new();
    OK(lt.matrix_free(s.ma));
    OK(lt.matrix_new(&s.ma, HN_LT_F16, M, K, 4 * M));
    OK(choose(&s));
    OK(plain(&s));
    BAD(cu.stream_wait(s.stream));
    scene_free(&s);
}

static void child_not_turned(void)
{
    Scene s = scene_new();
    OK(lt.matrix_free(s.ma));
    OK(lt.matrix_new(&s.ma, HN_LT_F16, K, M, K));
    BAD(choose(&s));
    scene_free(&s);
}

static void child_other_type(void)
{
    Scene s = scene_new();
    OK(lt.matrix_free(s.mb));
    OK(lt.matrix_new(&s.mb, HN_LT_BF16, K, N, K));
    BAD(choose(&s));
    scene_free(&s);
}

static void child_sums_of_halves(void)
{
    const uint32_t all = HN_LT_REDUCE_ALL;
    Scene s = scene_new();
    OK(lt.wish_set(s.wish, HN_LT_REDUCTIONS, &all, sizeof all));
    BAD(choose(&s));
    scene_free(&s);
}

static void child_bias_type(void)
{
    const uint32_t end = HN_LT_END_BIAS;
    const int32_t type = HN_LT_F32;
    Scene s = scene_new();
    OK(lt.product_set(s.product, HN_LT_EPILOGUE, &end, sizeof end));
    OK(lt.product_set(s.product, HN_LT_BIAS, &s.bias, sizeof s.bias));
    OK(lt.product_set(s.product, HN_LT_BIAS_TYPE, &type, sizeof type));
    BAD(choose(&s));
    scene_free(&s);
}

static void child_bias_outside(void)
{
    const uint32_t end = HN_LT_END_BIAS;
    Scene s = scene_new();
    const HnCuAddress beyond = s.bias + ELEMENTS * sizeof(uint16_t) - 4;
    OK(lt.product_set(s.product, HN_LT_EPILOGUE, &end, sizeof end));
    OK(lt.product_set(s.product, HN_LT_BIAS, &beyond, sizeof beyond));
    OK(choose(&s));
    OK(plain(&s));
    BAD(cu.stream_wait(s.stream));
    scene_free(&s);
}

static void child_attribute_size(void)
{
    const int64_t turned = HN_LT_TRANSPOSE;
    Scene s = scene_new();
    BAD(lt.product_set(s.product, HN_LT_TRANSPOSE_A, &turned, sizeof turned));
    scene_free(&s);
}

static void child_small_workspace(void)
{
    Scene s = scene_new();
    OK(choose(&s));
    BAD(multiply(&s, s.a, 1, 0, s.choice.workspace / 2));
    s.workspace += 16;
    BAD(plain(&s));
    scene_free(&s);
}

static void child_workspace_used(void)
{
    Scene s = scene_new();
    OK(choose(&s));
    s.workspace = s.b;
    BAD(plain(&s));
    scene_free(&s);
}

static void child_misaligned(void)
{
    Scene s = scene_new();
    OK(choose(&s));
    BAD(multiply(&s, s.a + 2, 1, 0, s.choice.workspace));
    OK(lt.wish_free(s.wish));
    wish(&s, 2);
    OK(choose(&s));
    OK(multiply(&s, s.a + 2, 1, 0, s.choice.workspace));
    OK(cu.stream_wait(s.stream));
    scene_free(&s);
}

static void child_other_algorithm(void)
{
    const uint32_t end = HN_LT_END_RELU;
    Scene s = scene_new();
    OK(choose(&s));
    OK(lt.product_set(s.product, HN_LT_EPILOGUE, &end, sizeof end));
    BAD(plain(&s));
    scene_free(&s);
}

static void child_undefined(void)
{
    Scene s = scene_new();
    HnCuAddress fresh;
    OK(cu.alloc(&fresh, ELEMENTS * sizeof(uint16_t)));
    OK(choose(&s));
    OK(multiply(&s, fresh, 1, 0, s.choice.workspace));
    BAD(cu.stream_wait(s.stream));
    scene_free(&s);
}

/* What a graph has recorded is freed before it is replayed. */
static void child_replay_freed(void)
{
    Scene s = scene_new();
    HnCuGraph graph;
    HnCuGraphExec exec;
    OK(choose(&s));
    OK(cu.capture_begin(s.stream, HN_CU_CAPTURE_THREAD));
    OK(plain(&s));
    OK(cu.capture_end(s.stream, &graph));
    OK(cu.graph_instantiate(&exec, graph, 0));
    OK(cu.free(s.a));
    OK(cu.graph_launch(exec, s.stream));
    BAD(cu.stream_wait(s.stream));
    scene_free(&s);
}

/* Two streams, one of which writes what the other one reads. */
static void child_race(void)
{
    Scene s = scene_new();
    HnCuStream other;
    OK(cu.stream_create(&other, HN_CU_STREAM_NON_BLOCKING));
    OK(choose(&s));
    OK(plain(&s));
    OK(cu.fill(s.a, 0, 2, other));
    OK(cu.stream_wait(s.stream));
    BAD(cu.stream_wait(other));
    scene_free(&s);
}

static void child_leaks(void)
{
    Scene s = scene_new();
    HnLtMatrix more;
    OK(lt.matrix_new(&more, HN_LT_F16, 1, 1, 1));
    OK(lt.wish_free(s.wish));
    OK(lt.product_free(s.product));
    OK(lt.matrix_free(s.ma));
    OK(lt.matrix_free(s.mb));
    OK(lt.matrix_free(s.md));
}

static void child_freed(void)
{
    Scene s = scene_new();
    OK(lt.matrix_free(s.md));
    BAD(choose(&s));
    BAD(lt.matrix_free(s.md));
    OK(lt.matrix_new(&s.md, HN_LT_F16, M, N, M));
    scene_free(&s);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
    const char *says; /* NULL: nothing */
    gboolean passes;  /* with a fault on the device, which is no mistake of the call */
} cases[] = {
    { "product", child_product, NULL, TRUE },
    { "all-of-it", child_all_of_it, NULL, TRUE },
    { "recorded", child_recorded, NULL, TRUE },
    { "none", child_none, NULL, TRUE },
    { "short-line", child_short_line, "*columns of a begin every 4 elements, and have 5*", FALSE },
    { "long-line", child_long_line, "*cublasLtMatmul, a: * bytes at 0x* reach * bytes beyond the end*", TRUE },
    { "not-turned", child_not_turned, "*70 x 5 times 70 x 3 is not 5 x 3*", FALSE },
    { "other-type", child_other_type, "*b is of type 14, a of type 2*", FALSE },
    { "sums-of-halves", child_sums_of_halves, "*may be rounded to halves*", FALSE },
    { "bias-type", child_bias_type, "*a bias of type 0, d of type 2*", FALSE },
    { "bias-outside", child_bias_outside, "*cublasLtMatmul, bias: 10 bytes at 0x* reach 6 bytes beyond*", TRUE },
    { "attribute-size", child_attribute_size, "*attribute 3 of a description of a product has 4 bytes, not 8*", FALSE },
    { "small-workspace", child_small_workspace, "*512 bytes of workspace, the algorithm needs 1024*multiple of 256*",
      FALSE },
    { "workspace-used", child_workspace_used, "*workspace lies over b*", FALSE },
    { "misaligned", child_misaligned, "*a at 0x*, the algorithm was chosen for multiples of 16*", FALSE },
    { "other-algorithm", child_other_algorithm, "*was chosen for another product*", FALSE },
    { "undefined", child_undefined, "*cublasLtMatmul, a: byte 0 of the allocation*was never written*", TRUE },
    { "replay-freed", child_replay_freed, "*replayed: 'cublasLtMatmul' uses memory at 0x*, which was freed*", TRUE },
    { "race", child_race, "*race between streams*'cublasLtMatmul' in stream 1 reads*", TRUE },
    { "leaks", child_leaks, "*1 times a handle is never destroyed*1 times a description of a matrix*", FALSE },
    { "freed", child_freed, "*no description of c is at 0x*no description of a matrix is at 0x*", FALSE },
};

static void run_child(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    if (cases[i].run == child_none)
        g_setenv("HONE_EMU_LT", "none", TRUE);
    cases[i].run();
}

static void test_case(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    g_autofree char *path = g_strdup_printf("/emu-cublaslt/%s/subprocess/run", cases[i].name);
    g_test_trap_subprocess(path, 0, 0);
    if (cases[i].passes)
        g_test_trap_assert_passed();
    else
        g_test_trap_assert_failed();
    if (cases[i].says != NULL)
        g_test_trap_assert_stderr(cases[i].says);
    else
        g_test_trap_assert_stderr_unmatched("*emulated device:*");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/emu-cublaslt/%s", cases[i].name);
        g_autofree char *child = g_strdup_printf("%s/subprocess/run", path);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_case);
        g_test_add_data_func(child, GUINT_TO_POINTER(i), run_child);
    }
    return g_test_run();
}
