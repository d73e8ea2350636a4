/*
 * The emulated driver: memory, streams that run late, graphs, faults that are found and named. Each case runs in a
 * process of its own, with what the environment is to say, and what has to stand on stderr.
 */
#include <dlfcn.h>
#include <glib/gstdio.h>
#include <string.h>

#include "cuda/core/cuda_driver.h"

/* The functions that hone calls, and the others, whose arguments are integers and addresses. */
static HnCudaDriver cu;
static void *library;

static void *find(const char *symbol)
{
    void *f = dlsym(library, symbol);
    if (f == NULL)
        g_error("%s is missing", symbol);
    return f;
}

#define CALL(symbol, types, ...) (((int(*) types)find(#symbol))(__VA_ARGS__))
#define OK(call) g_assert_cmpint((call), ==, 0)

enum { N = 1000 };
static const char add_ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry add(.param .u64 y, .param .u64 x, .param .u32 n)\n{\n"
                              ".reg .pred %p<2>;\n.reg .f32 %f<4>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"
                              "ld.param.u64 %rd1, [y];\nld.param.u64 %rd2, [x];\nld.param.u32 %r2, [n];\n"
                              "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\n"
                              "mad.lo.s32 %r1, %r3, %r4, %r5;\nsetp.ge.s32 %p1, %r1, %r2;\n@%p1 bra $L_end;\n"
                              "cvta.to.global.u64 %rd3, %rd2;\nmul.wide.s32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd3, %rd4;\n"
                              "cvta.to.global.u64 %rd6, %rd1;\nadd.s64 %rd7, %rd6, %rd4;\n"
                              "ld.global.f32 %f1, [%rd7];\nld.global.f32 %f2, [%rd5];\nadd.f32 %f3, %f2, %f1;\n"
                              "st.global.f32 [%rd7], %f3;\n$L_end:\nret;\n}\n";

static HnCuContext context;

/* The driver, as hone opens it. */
static void open_library(void)
{
    if ((library = dlopen(EMU_LIBRARY, RTLD_NOW | RTLD_LOCAL)) == NULL)
        g_error("%s", dlerror());
#define HN_CU(member, symbol, arguments) *(void **)&cu.member = find(#symbol);
#include "cuda/core/cuda_driver.def"
#undef HN_CU
}

static void open_device(void)
{
    open_library();
    OK(cu.init(0));
    OK(cu.context_retain(&context, 0));
    OK(cu.context_set(context));
}

/* y[N] and x[N] on the device, a stream, and the kernel y += x. */
typedef struct {
    HnCuStream stream;
    HnCuModule module;
    HnCuFunction add;
    HnCuAddress y, x;
    float *host; /* [N], pinned */
} Scene;

static Scene scene_new(void)
{
    Scene s = { 0 };
    float ones[N];
    open_device();
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    OK(cu.stream_create(&s.stream, HN_CU_STREAM_NON_BLOCKING));
    OK(cu.module_load(&s.module, add_ptx));
    OK(cu.module_function(&s.add, s.module, "add"));
    OK(cu.alloc(&s.y, sizeof ones));
    OK(cu.alloc(&s.x, sizeof ones));
    OK(cu.host_alloc((void **)&s.host, sizeof ones, 0));
    memcpy(s.host, ones, sizeof ones);
    OK(CALL(cuMemcpyHtoD_v2, (HnCuAddress, const void *, size_t), s.y, ones, sizeof ones));
    OK(CALL(cuMemcpyHtoD_v2, (HnCuAddress, const void *, size_t), s.x, ones, sizeof ones));
    return s;
}

static int add(const Scene *s, HnCuAddress y, HnCuAddress x, int n, HnCuStream stream)
{
    void *params[] = { &y, &x, &n };
    return cu.launch(s->add, (unsigned)(n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL);
}

static void scene_free(Scene *s)
{
    OK(cu.stream_destroy(s->stream));
    OK(cu.module_unload(s->module));
    OK(cu.free(s->y));
    OK(cu.free(s->x));
    OK(cu.host_free(s->host));
    OK(cu.context_release(0));
}

static void assert_all(const float *p, float value)
{
    for (int i = 0; i < N; i++)
        g_assert_cmpfloat(p[i], ==, value);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static void child_adds(void)
{
    Scene s = scene_new();
    size_t left, all;
    OK(add(&s, s.y, s.x, N, s.stream));
    OK(cu.download(s.host, s.y, N * sizeof(float), s.stream));
    g_assert_cmpfloat(s.host[0], !=, 2); /* not there before the wait, */
    g_assert_cmpfloat(s.host[0], !=, 1); /* nor what was there before */
    OK(cu.stream_wait(s.stream));
    assert_all(s.host, 2);
    struct {
        HnCuAddress y, x;
        int n;
    } block = { s.y, s.x, N };
    size_t bytes = 20;
    void *extra[] = { (void *)1, &block, (void *)2, &bytes, NULL };
    OK(cu.launch(s.add, 8, 1, 1, 128, 1, 1, 0, s.stream, NULL, extra));
    block.n = 0; /* parameters were copied */
    OK(cu.download(s.host, s.y, N * sizeof(float), s.stream));
    OK(cu.stream_wait(s.stream));
    assert_all(s.host, 3);
    OK(cu.memory_info(&left, &all));
    g_assert_cmpuint(all - left, ==, 2 * 4096);
    scene_free(&s);
}

static void child_memory(void)
{
    HnCuAddress p[300], q;
    size_t left, all;
    open_device();
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < G_N_ELEMENTS(p); i++) {
            OK(cu.alloc(&p[i], 1 + i * i * 17));
            g_assert_cmpuint(p[i] % 256, ==, 0);
            OK(cu.fill(p[i], (unsigned char)i, 1 + i * i * 17, NULL));
        }
        for (size_t i = 0; i < G_N_ELEMENTS(p); i++) {
            guint8 last;
            OK(CALL(cuMemcpyDtoH_v2, (void *, HnCuAddress, size_t), &last, p[i] + i * i * 17, 1));
            g_assert_cmpuint(last, ==, (guint8)i);
            OK(cu.free(p[i]));
        }
    }
    OK(cu.memory_info(&left, &all));
    g_assert_cmpuint(left, ==, all);
    g_assert_cmpuint(all, ==, 1 << 28);
    g_assert_cmpint(cu.alloc(&q, (1 << 28) + 1), ==, HN_CU_OUT_OF_MEMORY);
    OK(cu.alloc(&q, 1 << 28));
    g_assert_cmpint(cu.alloc(p, 1), ==, HN_CU_OUT_OF_MEMORY);
    OK(cu.free(q));
    for (int i = 0; i < 2000; i++) { /* addresses are used again in the end */
        OK(cu.alloc(&q, 1 << 28));
        OK(cu.fill(q, 1, 5000, NULL));
        OK(cu.free(q));
    }
    for (int i = 0; i < 50000; i++) {
        OK(cu.alloc(&q, 1000));
        OK(cu.free(q));
    }
    g_assert_cmpint(cu.free(q), ==, HN_CU_INVALID_VALUE);
    OK(cu.context_release(0));
}

static void child_bounds(void)
{
    HnCuAddress p;
    guint8 host[200] = { 0 };
    open_device();
    OK(cu.alloc(&p, 100));
    g_assert_cmpint(cu.upload(p, host, 101, NULL), ==, HN_CU_INVALID_VALUE);
    g_assert_cmpint(cu.upload(p + 100, host, 1, NULL), ==, HN_CU_INVALID_VALUE);
    g_assert_cmpint(cu.upload((HnCuAddress)(uintptr_t)host, host, 1, NULL), ==, HN_CU_INVALID_VALUE);
    g_assert_cmpint(cu.upload(p, (void *)(uintptr_t)p, 1, NULL), ==, HN_CU_INVALID_VALUE);
    g_assert_cmpint(CALL(cuMemsetD32Async, (HnCuAddress, unsigned, size_t, HnCuStream), p, 1, 26, NULL), ==,
                    HN_CU_INVALID_VALUE);
    OK(CALL(cuMemsetD32Async, (HnCuAddress, unsigned, size_t, HnCuStream), p, 0x01020304, 25, NULL));
    OK(cu.copy(p + 10, p, 50, NULL));
    OK(CALL(cuMemcpyDtoH_v2, (void *, HnCuAddress, size_t), host, p, 100));
    g_assert_cmpuint(host[10], ==, 4);
    g_assert_cmpuint(host[11], ==, 3);
    g_assert_cmpuint(host[61], ==, 3);
    OK(cu.free(p));
    g_assert_cmpint(cu.upload(p, host, 1, NULL), ==, HN_CU_INVALID_VALUE);
    OK(cu.context_release(0));
}

/* What is read late from pinned memory, and at once from other memory. */
static void child_late(void)
{
    Scene s = scene_new();
    float other[N] = { 0 };
    s.host[5] = 7;
    other[5] = 9;
    OK(cu.upload(s.y, s.host, sizeof other, s.stream));
    OK(cu.upload(s.x, other, sizeof other, s.stream));
    s.host[5] = 8;
    other[5] = 10;
    OK(cu.stream_wait(s.stream));
    OK(cu.download(other, s.y, sizeof other, s.stream));
    g_assert_cmpfloat(other[5], ==, 8);
    OK(cu.download(other, s.x, sizeof other, s.stream));
    g_assert_cmpfloat(other[5], ==, 9);
    scene_free(&s);
}

static void child_events(void)
{
    Scene s = scene_new();
    HnCuStream second;
    HnCuEvent event, end;
    float ms = -1;
    OK(cu.stream_create(&second, HN_CU_STREAM_NON_BLOCKING));
    OK(cu.event_create(&event, 0));
    OK(cu.event_create(&end, 0));
    OK(CALL(cuEventQuery, (HnCuEvent), event));
    OK(add(&s, s.x, s.y, N, s.stream)); /* x = 2 */
    OK(cu.event_record(event, s.stream));
    g_assert_cmpint(CALL(cuEventQuery, (HnCuEvent), event), ==, 600);
    OK(CALL(cuStreamWaitEvent, (HnCuStream, HnCuEvent, unsigned), second, event, 0));
    OK(add(&s, s.y, s.x, N, second)); /* y = 3 */
    OK(cu.event_record(end, second));
    g_assert_cmpint(CALL(cuEventElapsedTime, (float *, HnCuEvent, HnCuEvent), &ms, event, end), ==, 600);
    OK(cu.download(s.host, s.y, N * sizeof(float), second));
    OK(cu.event_wait(end));
    OK(CALL(cuEventElapsedTime, (float *, HnCuEvent, HnCuEvent), &ms, event, end));
    g_assert_cmpfloat(ms, >, 0);
    OK(cu.stream_wait(second));
    assert_all(s.host, 3);
    OK(cu.event_destroy(event));
    OK(cu.event_destroy(end));
    OK(cu.stream_destroy(second));
    scene_free(&s);
}

/* Without the event the second stream does not see what the first one did, and that is found. */
static void child_no_event(void)
{
    Scene s = scene_new();
    HnCuStream second;
    OK(cu.stream_create(&second, HN_CU_STREAM_NON_BLOCKING));
    OK(add(&s, s.x, s.y, N, s.stream));
    OK(add(&s, s.y, s.x, N, second));
    OK(cu.download(s.host, s.y, N * sizeof(float), second));
    OK(cu.stream_wait(second));
    assert_all(s.host, 2);
    g_assert_cmpint(cu.stream_wait(s.stream), ==, 719);
}

/* A copy that overwrites what a kernel in another stream may still read. */
static void child_overwrites(void)
{
    Scene s = scene_new();
    HnCuStream second;
    OK(cu.stream_create(&second, HN_CU_STREAM_NON_BLOCKING));
    OK(add(&s, s.y, s.x, N, s.stream));
    OK(cu.upload(s.x + 400, s.host, 100, second));
    OK(cu.stream_wait(s.stream));
    g_assert_cmpint(cu.stream_wait(second), ==, 719);
}

/* Streams that read the same and write what the other one does not use need not wait. */
static void child_apart(void)
{
    Scene s = scene_new();
    HnCuStream second;
    const HnCuAddress half = N / 2 * sizeof(float);
    OK(cu.stream_create(&second, HN_CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 5; i++) {
        OK(add(&s, s.y, s.x, N / 2, s.stream));
        OK(add(&s, s.y + half, s.x, N / 2, second));
    }
    OK(cu.stream_wait(second));
    OK(cu.stream_wait(s.stream));
    OK(cu.download(s.host, s.y, N * sizeof(float), second));
    OK(cu.stream_wait(second));
    assert_all(s.host, 6);
    OK(cu.stream_destroy(second));
    scene_free(&s);
}

/* Streams that were not made with NON_BLOCKING, and the default one, wait for each other. */
static void child_default_stream(void)
{
    Scene s = scene_new();
    HnCuStream second;
    OK(cu.stream_create(&second, 0));
    OK(add(&s, s.x, s.y, N, second)); /* x = 2 */
    OK(add(&s, s.y, s.x, N, NULL));   /* y = 3 */
    OK(add(&s, s.x, s.y, N, second)); /* x = 5 */
    OK(cu.download(s.host, s.x, N * sizeof(float), second));
    OK(cu.stream_wait(second));
    assert_all(s.host, 5);
    OK(cu.stream_destroy(second));
    scene_free(&s);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static HnCuGraphExec record(const Scene *s, int n)
{
    HnCuGraph graph;
    HnCuGraphExec exec;
    size_t nodes;
    OK(cu.capture_begin(s->stream, HN_CU_CAPTURE_THREAD));
    for (int i = 0; i < n; i++)
        OK(add(s, s->y, s->x, N, s->stream));
    OK(cu.download(s->host, s->y, N * sizeof(float), s->stream));
    OK(cu.capture_end(s->stream, &graph));
    OK(CALL(cuGraphGetNodes, (HnCuGraph, void **, size_t *), graph, NULL, &nodes));
    g_assert_cmpuint(nodes, ==, n + 1);
    OK(cu.graph_instantiate(&exec, graph, 0));
    OK(cu.graph_destroy(graph));
    return exec;
}

static void child_graph(void)
{
    Scene s = scene_new();
    const HnCuGraphExec exec = record(&s, 3);
    OK(cu.stream_wait(s.stream));
    assert_all(s.host, 1); /* nothing was done yet */
    for (int i = 1; i < 5; i++) {
        OK(cu.graph_launch(exec, s.stream));
        OK(cu.stream_wait(s.stream));
        assert_all(s.host, (float)(1 + 3 * i));
    }
    OK(cu.graph_forget(exec));
    scene_free(&s);
}

/* A second stream joins a capture and comes back; beside it the first one goes on. */
static void child_fork(void)
{
    Scene s = scene_new();
    HnCuStream second;
    HnCuEvent out, back;
    HnCuGraph graph;
    HnCuGraphExec exec;
    HnCuAddress z;
    OK(cu.alloc(&z, N * sizeof(float)));
    OK(CALL(cuMemsetD32Async, (HnCuAddress, unsigned, size_t, HnCuStream), z, 0, N, s.stream));
    OK(cu.stream_create(&second, HN_CU_STREAM_NON_BLOCKING));
    OK(cu.event_create(&out, HN_CU_EVENT_NO_TIMING));
    OK(cu.event_create(&back, HN_CU_EVENT_NO_TIMING));
    for (int joined = 0; joined < 2; joined++) {
        OK(cu.capture_begin(s.stream, HN_CU_CAPTURE_THREAD));
        OK(add(&s, s.x, s.y, N, s.stream));
        OK(cu.event_record(out, s.stream));
        OK(CALL(cuStreamWaitEvent, (HnCuStream, HnCuEvent, unsigned), second, out, 0));
        OK(add(&s, z, s.x, N, second));
        OK(cu.event_record(back, second));
        OK(add(&s, s.y, s.x, N, s.stream));
        if (joined)
            OK(CALL(cuStreamWaitEvent, (HnCuStream, HnCuEvent, unsigned), s.stream, back, 0));
        OK(add(&s, s.y, s.y, joined ? N : 1, s.stream));
        g_assert_cmpint(cu.capture_end(s.stream, &graph), ==, joined ? 0 : 904);
    }
    OK(cu.graph_instantiate(&exec, graph, 0));
    OK(cu.graph_destroy(graph));
    OK(cu.graph_launch(exec, s.stream)); /* x = 2, z = 2, y = 3, y = 6 */
    OK(cu.download(s.host, z, N * sizeof(float), s.stream));
    OK(cu.stream_wait(s.stream));
    assert_all(s.host, 2);
    OK(cu.download(s.host, s.y, N * sizeof(float), s.stream));
    OK(cu.stream_wait(s.stream));
    assert_all(s.host, 6);
    OK(cu.graph_forget(exec));
    OK(cu.event_destroy(out));
    OK(cu.event_destroy(back));
    OK(cu.stream_destroy(second));
    OK(cu.free(z));
    scene_free(&s);
}

static void child_forbidden(void)
{
    Scene s = scene_new();
    HnCuGraph graph;
    HnCuAddress p;
    int status;
    OK(cu.capture_begin(s.stream, HN_CU_CAPTURE_THREAD));
    OK(CALL(cuStreamIsCapturing, (HnCuStream, int *), s.stream, &status));
    g_assert_cmpint(status, ==, 1);
    g_assert_cmpint(cu.stream_wait(s.stream), ==, 900);
    g_assert_cmpint(add(&s, s.y, s.x, N, s.stream), ==, 901);
    OK(CALL(cuStreamIsCapturing, (HnCuStream, int *), s.stream, &status));
    g_assert_cmpint(status, ==, 2);
    g_assert_cmpint(cu.capture_end(s.stream, &graph), ==, 901);
    g_assert_null(graph);
    g_assert_cmpint(cu.capture_end(s.stream, &graph), ==, 401);
    OK(cu.capture_begin(s.stream, HN_CU_CAPTURE_THREAD));
    g_assert_cmpint(cu.alloc(&p, 100), ==, 900);
    g_assert_cmpint(cu.capture_end(s.stream, &graph), ==, 901);
    OK(cu.capture_begin(s.stream, 2)); /* relaxed */
    OK(cu.alloc(&p, 100));
    OK(cu.capture_end(s.stream, &graph));
    OK(cu.graph_destroy(graph));
    OK(cu.free(p));
    scene_free(&s);
}

static void child_replay_freed(void)
{
    Scene s = scene_new();
    const HnCuGraphExec exec = record(&s, 1);
    OK(cu.free(s.x));
    OK(cu.graph_launch(exec, s.stream));
    g_assert_cmpint(cu.stream_wait(s.stream), ==, 700);
    g_assert_cmpint(cu.alloc(&s.x, 1), ==, 700); /* as every call from now on, */
    OK(cu.context_release(0));                   /* until there is another context */
    OK(cu.context_retain(&context, 0));
    OK(cu.context_set(context));
    OK(cu.alloc(&s.x, 1));
    OK(cu.context_release(0));
}

/* --- faults ---------------------------------------------------------------------------------------------------------
 */

static void child_host_reads(void)
{
    const Scene s = scene_new();
    g_test_message("%g", (double)*(volatile float *)(uintptr_t)s.y);
}

static void child_undefined(void)
{
    HnCuAddress p;
    guint8 host[100];
    open_device();
    OK(cu.alloc(&p, 100));
    OK(cu.fill(p, 0, 40, NULL));
    g_assert_cmpint(cu.download(host, p, 100, NULL), ==, 719);
}

static void child_too_far(void)
{
    const Scene s = scene_new();
    OK(add(&s, s.y, s.x, N + 1, s.stream));
    g_assert_cmpint(cu.stream_wait(s.stream), ==, 700);
    g_assert_cmpstr(hn_cuda_result_text(&cu, 700), ==, "an illegal memory access was encountered");
}

static void child_launches(void)
{
    Scene s = scene_new();
    void *params[] = { &s.y, &s.x, (int[]){ N } };
    static const unsigned bad[][7] = {
        { 0, 1, 1, 1, 1, 1, 0 },   { 1, 65536, 1, 1, 1, 1, 0 }, { 1, 1, 1, 1025, 1, 1, 0 },
        { 1, 1, 1, 64, 32, 1, 0 }, { 1, 1, 1, 1, 1, 65, 0 },    { 1, 1, 1, 1, 1, 1, 49153 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_cmpint(cu.launch(s.add, bad[i][0], bad[i][1], bad[i][2], bad[i][3], bad[i][4], bad[i][5], bad[i][6],
                                  s.stream, params, NULL),
                        ==, HN_CU_INVALID_VALUE);
    g_assert_cmpint(cu.launch(s.add, 1, 1, 1, 1, 1, 1, 0, s.stream, NULL, NULL), ==, HN_CU_INVALID_VALUE);
    g_assert_cmpint(cu.function_set(s.add, HN_CU_MAX_DYNAMIC_SHARED, 166913), ==, HN_CU_INVALID_VALUE);
    OK(cu.function_set(s.add, HN_CU_MAX_DYNAMIC_SHARED, 166912));
    OK(cu.launch(s.add, 8, 1, 1, 128, 1, 1, 166912, s.stream, params, NULL));
    scene_free(&s);
}

/* Of 72 registers a block has at most 896 threads. */
static void child_registers(void)
{
    g_autofree char *path = NULL;
    const int file = g_file_open_tmp(NULL, &path, NULL);
    g_assert_cmpint(file, >=, 0);
    g_assert_true(g_close(file, NULL));
    g_assert_true(
        g_file_set_contents(path, "# kernel target registers\nadd sm_80 71 0 0 0\nadd sm_90 8 0 0 0\n", -1, NULL));
    g_setenv("HONE_EMU_BUDGET", path, TRUE);
    Scene s = scene_new();
    void *params[] = { &s.y, &s.x, (int[]){ N } };
    g_assert_cmpint(cu.launch(s.add, 1, 1, 1, 897, 1, 1, 0, s.stream, params, NULL), ==, 701);
    OK(cu.launch(s.add, 1, 1, 1, 896, 1, 1, 0, s.stream, params, NULL));
    g_unlink(path);
    scene_free(&s);
}

/* Nothing is computed, and so no fault is found; launches are checked. */
static void child_idle(void)
{
    Scene s = scene_new();
    void *params[] = { &s.y, &s.x, (int[]){ N } };
    OK(add(&s, s.y, s.x, N + 1, s.stream));
    OK(cu.stream_wait(s.stream));
    g_assert_cmpint(cu.launch(s.add, 1, 1, 1, 1025, 1, 1, 0, s.stream, params, NULL), ==, HN_CU_INVALID_VALUE);
    scene_free(&s);
}

static void child_fail_alloc(void)
{
    HnCuAddress p[3];
    open_device();
    OK(cu.alloc(&p[0], 10));
    g_assert_cmpint(cu.alloc(&p[1], 10), ==, HN_CU_OUT_OF_MEMORY);
    OK(cu.alloc(&p[1], 10));
    OK(cu.free(p[0]));
    OK(cu.free(p[1]));
    OK(cu.context_release(0));
}

static void child_leaks(void)
{
    HnCuAddress p;
    HnCuEvent event;
    open_device();
    OK(cu.alloc(&p, 12345));
    OK(cu.event_create(&event, 0));
    OK(cu.context_release(0));
}

static void child_images(void)
{
    HnCuModule m;
    HnCuFunction f;
    /* magic, version 1, header of 16 bytes, 80 bytes behind it; an entry that says it is larger */
    guint8 image[96] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 80 };
    open_device();
    g_assert_cmpint(cu.module_load(&m, "no image"), ==, HN_CU_INVALID_IMAGE);
    g_assert_cmpint(cu.module_load(&m, "\x7f"
                                       "ELF"),
                    ==, HN_CU_INVALID_IMAGE);
    g_assert_cmpint(cu.module_load(&m, image), ==, HN_CU_INVALID_IMAGE);
    image[16] = 1;
    image[20] = 64;
    memset(image + 24, 0xff, 8);
    g_assert_cmpint(cu.module_load(&m, image), ==, HN_CU_INVALID_IMAGE);
    memset(image + 24, 0, 8);
    image[24] = 16;
    image[44] = 90;
    g_assert_cmpint(cu.module_load(&m, image), ==, HN_CU_NO_BINARY); /* sm_90 */
    g_assert_cmpint(cu.module_load(&m, ".version 8.0\n.target sm_90\n.address_size 64\n"), ==, HN_CU_NO_BINARY);
    OK(cu.module_load(&m, add_ptx));
    g_assert_cmpint(cu.module_function(&f, m, "none"), ==, HN_CU_NOT_FOUND);
    OK(cu.module_unload(m));
    OK(cu.context_release(0));
}

#ifdef EMU_FATBIN
/* What nvcc made: PTX for sm_80 and later. Damaged entries are refused, or not noticed, but never lead astray. */
static void child_fatbin(void)
{
    g_autofree char *image = NULL;
    gsize n;
    HnCuModule m;
    open_device();
    g_assert_true(g_file_get_contents(EMU_FATBIN, &image, &n, NULL));
    OK(cu.module_load(&m, image));
    OK(cu.module_unload(m));
    for (gsize i = 16; i < 80; i++)
        for (int bit = 0; bit < 8; bit++) {
            image[i] ^= (char)(1 << bit);
            const int result = cu.module_load(&m, image);
            if (result == 0)
                OK(cu.module_unload(m));
            else if (result != 218)
                g_assert_true(result == HN_CU_INVALID_IMAGE || result == HN_CU_NO_BINARY);
            image[i] ^= (char)(1 << bit);
        }
    OK(cu.context_release(0));
}

static void child_fatbin_unfit(void)
{
    g_autofree char *image = NULL;
    HnCuModule m;
    open_device();
    g_assert_true(g_file_get_contents(EMU_FATBIN, &image, NULL, NULL));
    g_assert_cmpint(cu.module_load(&m, image), ==, HN_CU_NO_BINARY);
    OK(cu.context_release(0));
}
#endif

/* --- drivers that hone cannot use ------------------------------------------------------------------------------------
 */

static void child_stub(void)
{
    int n;
    open_library();
    g_assert_cmpint(cu.init(0), ==, HN_CU_STUB);
    g_assert_cmpint(cu.device_count(&n), ==, HN_CU_STUB);
}

static void child_nogpu(void)
{
    open_library();
    g_assert_cmpint(cu.init(0), ==, HN_CU_NO_DEVICE);
}

static void child_devices(void)
{
    int n, device, major;
    char name[50];
    HnCuModule m;
    open_device();
    OK(cu.device_count(&n));
    g_assert_cmpint(n, ==, 2);
    OK(cu.device_get(&device, 1));
    g_assert_cmpint(cu.device_get(&device, 2), ==, 101);
    OK(cu.device_name(name, sizeof name, 1));
    g_assert_cmpstr(name, ==, "emulated sm_70");
    OK(cu.device_attribute(&major, HN_CU_MAJOR, 1));
    g_assert_cmpint(major, ==, 7);
    g_assert_cmpint(cu.module_load(&m, add_ptx), ==, HN_CU_NO_BINARY);
    OK(cu.context_release(0));
}

static void child_busy(void)
{
    open_library();
    OK(cu.init(0));
    g_assert_cmpint(cu.context_retain(&context, 0), ==, HN_CU_UNAVAILABLE);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    void (*run)(void);
    const char *says; /* on stderr; NULL: nothing of the emulated device's */
    const char *set[3];
    gboolean crashes;
} Case;

static const Case cases[] = {
    { "adds", child_adds, NULL, { "HONE_EMU_LEAKS=1" } },
    { "adds-in-another-order", child_adds, NULL, { "HONE_EMU_LEAKS=1", "HONE_EMU_ORDER=5" } },
    { "memory", child_memory, "*cuMemFree: no allocation begins at 0x*", { "HONE_EMU_MEMORY=268435456" } },
    { "bounds", child_bounds,
      "*101 bytes at 0x* reach 1 bytes beyond the end of the allocation of 100 bytes*is no address of device memory*"
      "which is no address of the host's memory*no allocation is at 0x*" },
    { "late", child_late, NULL, { NULL }, FALSE },
    { "events", child_events, NULL, { "HONE_EMU_LEAKS=1" } },
    { "events-in-another-order", child_events, NULL, { "HONE_EMU_LEAKS=1", "HONE_EMU_ORDER=3" } },
    { "no-event", child_no_event,
      "*race between streams: 'add' in stream 1 reads 0x*, which 'add' in stream 2 writes, and*" },
    { "overwrites", child_overwrites,
      "*race between streams: 'copy to the device' in stream 2 writes 0x*, which 'add' in stream 1 reads, and*" },
    { "apart", child_apart, NULL, { "HONE_EMU_LEAKS=1" } },
    { "apart-in-another-order", child_apart, NULL, { "HONE_EMU_LEAKS=1", "HONE_EMU_ORDER=7" } },
    { "default-stream", child_default_stream, NULL, { NULL }, FALSE },
    { "graph", child_graph, NULL, { "HONE_EMU_LEAKS=1" } },
    { "fork", child_fork, "*work was captured that stream 1 does not wait for*", { "HONE_EMU_LEAKS=1" } },
    { "fork-in-another-order", child_fork, "*does not wait for*", { "HONE_EMU_ORDER=9" } },
    { "forbidden", child_forbidden, "*cuStreamSynchronize of stream 1 while it is captured*cuMemAlloc while*" },
    { "replay-freed", child_replay_freed, "*a graph is replayed: 'add' uses memory at 0x*, which was freed*" },
    { "host-reads", child_host_reads, NULL, .crashes = TRUE },
    { "undefined", child_undefined,
      "*copy to the host of 100 bytes*byte 40 of the allocation of 100 bytes*was never written*" },
    { "too-far", child_too_far, "*add*" },
    { "launches", child_launches, "*grid 0 x 1 x 1*at most 1024*at most 49152*" },
    { "registers", child_registers, "*897 threads of 71 registers; at most 65536 in all*" },
    { "idle", child_idle, "*block 1025 x 1 x 1*", { "HONE_EMU_IDLE=1" } },
    { "fail-alloc", child_fail_alloc, NULL, { "HONE_EMU_FAIL_ALLOC=2", "HONE_EMU_LEAKS=1" } },
    { "leaks", child_leaks, "*leaked: 12345 bytes of device memory*leaked: an event*", { "HONE_EMU_LEAKS=1" } },
    { "images", child_images, NULL, { NULL }, FALSE },
#ifdef EMU_FATBIN
    { "fatbin", child_fatbin, "*" },
    { "fatbin-90", child_fatbin, "*", { "HONE_EMU_CC=90" } },
    { "fatbin-75", child_fatbin_unfit, NULL, { "HONE_EMU_CC=75" } },
#endif
    { "stub", child_stub, NULL, { "HONE_EMU_CASE=stub" } },
    { "nogpu", child_nogpu, NULL, { "HONE_EMU_CASE=nogpu" } },
    { "devices", child_devices, NULL, { "HONE_EMU_CASE=cc70", "HONE_EMU_DEVICES=2" } },
    { "busy", child_busy, NULL, { "HONE_EMU_CASE=busy" } },
};

static void run_child(gconstpointer data)
{
    const Case *c = data;
    for (guint i = 0; i < G_N_ELEMENTS(c->set) && c->set[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(c->set[i], "=", 2);
        g_setenv(pair[0], pair[1], TRUE);
    }
    c->run();
}

static void test_case(gconstpointer data)
{
    const Case *c = data;
    g_autofree char *path = g_strdup_printf("/emu/%s/subprocess/run", c->name);
    g_test_trap_subprocess(path, 0, 0);
    if (c->crashes)
        g_test_trap_assert_failed();
    else
        g_test_trap_assert_passed();
    if (c->says != NULL)
        g_test_trap_assert_stderr(c->says);
    else
        g_test_trap_assert_stderr_unmatched("*emulated device:*");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/emu/%s", cases[i].name);
        g_autofree char *child = g_strdup_printf("%s/subprocess/run", path);
        g_test_add_data_func(path, &cases[i], test_case);
        g_test_add_data_func(child, &cases[i], run_child);
    }
    return g_test_run();
}
