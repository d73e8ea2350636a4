/*
 * Sessions on the CUDA backend over the emulated driver: how often they wait, copy, record and replay, and what becomes
 * of memory when an allocation fails. HONE_CUDA_DRIVER and HONE_CUDA_KERNELS say where both are; without the kernels
 * the test is skipped.
 */
#include "../unit/run_model.h"
#include "backends.h"
#include "counted.h"

typedef struct {
    HnModel *model;
    HnDevice *device;
    HnCudaDriver counting;
    HnEngine *engine;
} Place;

static void place_open(Place *p, const char *text)
{
    g_autoptr(GError) error = NULL;
    p->model = test_model(text);
    p->device = hn_device_new(hn_backend_cuda(0), &error);
    g_assert_no_error(error);
    count_calls(p->device, &p->counting);
    p->engine = hn_engine_new(p->model, p->device, NULL, &error);
    g_assert_no_error(error);
}

static size_t free_bytes(const HnDevice *d)
{
    const HnCuda *c = d->handle;
    size_t left = 0, all = 0;
    g_assert_true(hn_cuda_enter(c, NULL));
    g_assert_cmpint(c->driver->memory_info(&left, &all), ==, HN_CU_SUCCESS);
    return left;
}

static void place_close(Place *p)
{
    hn_engine_unref(p->engine);
    hn_device_unref(p->device);
    hn_model_free(p->model);
}

static HnSession *place_session(const Place *p)
{
    g_autoptr(GError) error = NULL;
    HnSession *s = hn_session_new_on(p->engine, &(HnSessionOptions){ .threads = 1 }, &error);
    g_assert_no_error(error);
    return s;
}

/* A run whose results are what ref makes of the same inputs. */
static void run_close(const Place *p, HnSession *s, GPtrArray *in, double rtol, double atol)
{
    g_autoptr(HnSession) ref = test_session(p->model, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(s, in);
    for (guint k = 0; k < want->len; k++)
        test_assert_close(got->pdata[k], want->pdata[k], rtol, atol, "result");
}

static void run_right(const Place *p, HnSession *s, GPtrArray *in)
{
    run_close(p, s, in, 1e-5, 1e-6);
}

static void count_table(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(guint *)data += s->table != NULL;
}

/* Steps that exchange the bytes of their results by a table, which took over a function of one operand. */
static void test_exchanged(void)
{
    static const char *const makers[] = { "Conv(%a, %w) pads=[1,1,1,1]", "Conv(%a, %v) group=8", "Add(%a, %b)",
                                          "AveragePool(%a) kernel_shape=[3,3] strides=[1,2]" };
    for (guint i = 0; i < G_N_ELEMENTS(makers); i++) {
        g_autofree char *text = g_strconcat(
            "opset 17 graph g(%x:f32[1,8,6,7]) -> (%y) { %aq = QuantizeLinear(%x, s:f32={0.015625}, z:u8={99}) "
            "%a = DequantizeLinear(%aq, s, z) %bq = QuantizeLinear(%x, t:f32={0.03125}, z) %b = DequantizeLinear(%bq, "
            "t, z) "
            "%w = DequantizeLinear(wq:i8[9,8,3,3], ws:f32={0.015625}, wz:i8={0}) "
            "%v = DequantizeLinear(vq:i8[8,1,3,3], ws, wz) %c = ",
            makers[i],
            " %cq = QuantizeLinear(%c, cs:f32={0.25}, cz:u8={90}) %d = DequantizeLinear(%cq, cs, cz) %e = "
            "LeakyRelu(%d) "
            "alpha=0.25 %p = QuantizeLinear(%e, ps:f32={0.3125}, pz:u8={7}) %y = DequantizeLinear(%p, ps, pz) }",
            NULL);
        Place p;
        place_open(&p, text);
        HnSession *s = place_session(&p);
        guint tables = 0;
        g_autoptr(GPtrArray) in = test_inputs(s, 3);
        run_right(&p, s, in);
        hn_session_foreach_step(s, count_table, &tables);
        g_assert_cmpuint(tables, ==, 1);
        hn_session_free(s);
        place_close(&p);
    }
}

/* One kernel in two steps, of which the first to run takes more shared memory than the last to be prepared. */
static void test_shared_memory(void)
{
    Place p;
    place_open(&p, "opset 23 graph g(%a:f32[1,1,2,96], %b:f32[1,1,2,8]) -> (%x, %y) { %x = Attention(%a, %a, %a) "
                   "%y = Attention(%b, %b, %b) }");
    HnSession *s = place_session(&p);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    run_right(&p, s, in);
    run_right(&p, s, in);
    hn_session_free(s);
    place_close(&p);
}

/* Element-wise nodes in one kernel, whose results are operands of several others: of one shape, and along axes. */
static void test_group(void)
{
    static const char *const texts[] = {
        "opset 17 graph g(%x:f32[5,37], %u:f32[5,37], %v:f32[5,37]) -> (%y) { %a = Mul(%x, %u) %b = Add(%a, %v) "
        "%c = Sub(%a, %b) %d = Tanh(%b) %e = Mul(%c, %d) %f = Add(%e, %a) %g = Sub(%f, %x) %y = Mul(%g, %d) }",
        "opset 17 graph g(%x:f32[5,37], %u:f32[37], %v:f32[5,1]) -> (%y) { %a = Mul(%x, %u) %b = Add(%a, %v) "
        "%c = Sub(%a, %b) %d = Tanh(%b) %e = Mul(%c, %d) %f = Add(%e, %a) %g = Sub(%f, %u) %y = Mul(%g, %d) }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        Place p;
        place_open(&p, texts[i]);
        HnSession *s = place_session(&p);
        g_autoptr(GPtrArray) in = test_inputs(s, 3);
        start_counting();
        run_right(&p, s, in);
        g_assert_cmpint(calls.launches, ==, 1);
        hn_session_free(s);
        place_close(&p);
    }
}

/* Hardmax has no kernel there: its input comes to the host, which waits for it, and its result goes back. */
static void test_host_step(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[4,8]) -> (%y) { %a = Softmax(%x) axis=-1 %b = Hardmax(%a) axis=-1 "
                   "%y = Softmax(%b) axis=-1 }");
    HnSession *s = place_session(&p);
    for (uint64_t run = 0; run < 4; run++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 3 + run);
        start_counting();
        run_right(&p, s, in);
        const int recorded = run == 1 ? 2 : 0, replayed = run >= 1 ? 2 : 0;
        assert_calls(2, 2, 2, recorded, replayed);
        g_assert_cmpint(calls.launches, ==, run <= 1 ? 2 : 0);
        g_assert_cmpint(calls.allocs, ==, run == 0 ? calls.allocs : 0);
    }
    hn_session_free(s);
    place_close(&p);
}

/* The whole of it on the device: one copy each way, one wait, one recording. */
static void test_recorded(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[4,8]) -> (%y) { %a = Softmax(%x) axis=-1 %y = LogSoftmax(%a) axis=-1 }");
    HnSession *s = place_session(&p);
    for (uint64_t run = 0; run < 4; run++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 3 + run);
        start_counting();
        run_right(&p, s, in);
        assert_calls(1, 1, 1, run == 1, run >= 1);
    }
    hn_session_free(s);
    place_close(&p);
}

/* What is fed stays there from the first run on, and results are not brought back; nothing of it is overwritten. */
static void test_kept(void)
{
    Place p;
    g_autoptr(GError) error = NULL;
    place_open(&p, "opset 17 graph g(%x:f32[4,8]) -> (%y) { %a = Softmax(%x) axis=-1 %b = Add(%a, %x) "
                   "%c = LogSoftmax(%b) axis=-1 %y = Mul(%c, %a) }");
    HnSession *s = hn_session_new_on(p.engine, &(HnSessionOptions){ .threads = 1, .keeps_io = TRUE }, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    for (int run = 0; run < 4; run++) {
        start_counting();
        run_right(&p, s, in);
        assert_calls(run == 0, run == 0, 1, run == 1, run >= 1);
    }
    hn_session_free(s);
    place_close(&p);
}

/* What a host step reads and what it makes is copied in each run, all the same. */
static void test_kept_host_step(void)
{
    Place p;
    g_autoptr(GError) error = NULL;
    place_open(&p, "opset 17 graph g(%x:f32[4,8]) -> (%y, %b) { %a = Softmax(%x) axis=-1 %b = Hardmax(%a) axis=-1 "
                   "%y = Softmax(%b) axis=-1 }");
    HnSession *s = hn_session_new_on(p.engine, &(HnSessionOptions){ .threads = 1, .keeps_io = TRUE }, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    for (int run = 0; run < 3; run++) {
        start_counting();
        run_right(&p, s, in);
        g_assert_cmpint(calls.uploads, ==, run == 0 ? 2 : 1);
        g_assert_cmpint(calls.downloads, ==, run == 0 ? 2 : 1);
    }
    hn_session_free(s);
    place_close(&p);
}

/* The emulated clock counts what is done: a thousandth of a millisecond for each copy, launch and host function. */
static void test_device_times(void)
{
    Place p;
    g_autoptr(GError) error = NULL;
    HnDeviceTimes t;
    place_open(&p, "opset 17 graph g(%x:f32[4,8]) -> (%y) { %a = Softmax(%x) axis=-1 %b = Hardmax(%a) axis=-1 "
                   "%y = Softmax(%b) axis=-1 }");
    HnSession *s = place_session(&p);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    g_assert_true(hn_session_time_device(s, TRUE));
    for (int runs = 1; runs <= 3; runs++) {
        for (int i = 0; i < runs; i++)
            run_right(&p, s, in);
        g_assert_true(hn_session_device_times(s, &t, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(t.runs, ==, runs);
        g_assert_cmpfloat(t.segments, ==, 2 * runs);
        g_assert_cmpfloat(t.recorded, ==, runs == 1 ? 0 : 2 * runs);
        g_assert_cmpfloat_with_epsilon(t.upload_ms, 2e-3 * runs, 1e-4);
        g_assert_cmpfloat_with_epsilon(t.download_ms, 2e-3 * runs, 1e-4);
        g_assert_cmpfloat(t.kernels_ms, >=, 1.9e-3 * runs);
        g_assert_cmpfloat_with_epsilon(t.gaps_ms, 0, 1e-4);
    }
    g_assert_false(hn_session_time_device(s, FALSE));
    run_right(&p, s, in);
    g_assert_true(hn_session_device_times(s, &t, &error));
    g_assert_cmpuint(t.runs, ==, 0);
    hn_session_free(s);
    place_close(&p);
}

/* Step by step, by marks, with the device held up meanwhile: each step's own time, and right results. */
static void test_marked_steps(void)
{
    Place p;
    g_autoptr(GString) text = g_string_new("opset 17 graph g(%x:f32[4,8]) -> (%y) { %a0 = Softmax(%x) axis=-1 ");
    const int n = 150; /* more than are held up at once */
    for (int i = 1; i < n; i++)
        g_string_append_printf(text, "%%a%d = Softmax(%%a%d) axis=-1 ", i, i - 1);
    g_string_append_printf(text, "%%y = Softmax(%%a%d) axis=-1 }", n - 1);
    place_open(&p, text->str);
    HnSession *s = place_session(&p);
    HnTimer timer = { .tick_ns = 1 };
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    hn_session_set_timer(s, &timer);
    for (int run = 0; run < 2; run++) {
        timer.n = 0;
        run_right(&p, s, in);
        g_assert_cmpuint(timer.n, ==, n + 3);
        for (gsize i = 0; i < timer.n; i++) {
            const gboolean moves = i == 0 || i == timer.n - 1;
            g_assert_true(timer.spans[i].device && timer.spans[i].moves == moves);
            g_assert_cmpuint(timer.spans[i].launches, ==, moves ? 0 : 1);
            g_assert_cmpuint(timer.spans[i].end - timer.spans[i].start, >=, 900);
            g_assert_cmpuint(timer.spans[i].end - timer.spans[i].start, <, 100000);
        }
    }
    hn_session_set_timer(s, NULL);
    g_free(timer.spans);
    hn_session_free(s);
    place_close(&p);
}

/* A step whose first result nobody wants. */
static void test_marked_absent(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[3,2,4]) -> (%y) { -, %h = GRU(%x, w:f32[1,15,4], r:f32[1,15,5]) "
                   "hidden_size=5 %y = Softmax(%h) axis=-1 }");
    HnSession *s = place_session(&p);
    HnTimer timer = { .tick_ns = 1 };
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    hn_session_set_timer(s, &timer);
    run_right(&p, s, in);
    g_assert_cmpuint(timer.n, ==, 4);
    hn_session_set_timer(s, NULL);
    g_free(timer.spans);
    hn_session_free(s);
    place_close(&p);
}

/* Each iteration's plan waits for what it gives back; plans of the body are recorded once, too. */
static void test_loop(void)
{
    Place p;
    place_open(&p,
               "opset 17 graph g(%x:f32[2,4]) -> (%y) { %y = Loop(n:i64[]={3}, -, %x) body=graph(%i:i64[], %c:bool[], "
               "%h:f32[2,4]) -> (%d, %r) { %d = Identity(%c) %r = Softmax(%h) axis=-1 } }");
    HnSession *s = place_session(&p);
    int waits = 0;
    for (uint64_t run = 0; run < 4; run++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 3 + run);
        start_counting();
        run_right(&p, s, in);
        g_assert_cmpint(calls.recordings, ==, run == 0);
        waits = run == 1 ? calls.waits : waits;
        g_assert_cmpint(calls.waits, ==, run < 1 ? calls.waits : waits);
        g_assert_cmpint(calls.waits, <=, 4);
    }
    hn_session_free(s);
    place_close(&p);
}

/* How many rows there are is seen when NonZero has run: what follows is planned then, once for each number. */
static void test_data_dependent(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[6]) -> (%y) { %a = Softmax(%x) axis=-1 %n = NonZero(%x) "
                   "%t = Transpose(%n) %g = GatherND(%a, %t) %y = Softmax(%g) axis=-1 }");
    HnSession *s = place_session(&p);
    static const char *const in[] = { "f32[6]={0,1,0,2,3,0}", "f32[6]={1,1,0,2,3,0}", "f32[6]={4,0,0,2,3,0}",
                                      "f32[6]={0,0,0,0,0,7}", "f32[6]={0,1,5,2,0,0}" };
    for (guint i = 0; i < G_N_ELEMENTS(in); i++) {
        g_autoptr(GPtrArray) x = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
        g_ptr_array_add(x, test_tensor(in[i]));
        run_right(&p, s, x);
    }
    HnSessionStats stats;
    hn_session_stats(s, &stats);
    g_assert_cmpuint(stats.plans, ==, 1 + 3); /* 3, 4 and 1 numbers */
    hn_session_free(s);
    place_close(&p);
}

/* Five shapes in turn have a plan each, and each plan is recorded at its own second run. */
static void test_shapes(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[n,8]) -> (%y) { %y = Softmax(%x) axis=-1 }");
    HnSession *s = place_session(&p);
    for (uint64_t round = 0; round < 3; round++) {
        start_counting();
        for (int64_t n = 1; n <= 5; n++) {
            g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
            g_ptr_array_add(in, test_random(HN_F32, 2, (int64_t[]){ n, 8 }, round));
            run_right(&p, s, in);
        }
        assert_calls(5, 5, 5, round == 1 ? 5 : 0, round >= 1 ? 5 : 0);
    }
    hn_session_free(s);
    place_close(&p);
}

/* As the reference computes it, in one launch. */
static void in_one_launch(const char *text)
{
    Place p;
    place_open(&p, text);
    HnSession *s = place_session(&p);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    start_counting();
    run_close(&p, s, in, 1e-4, 1e-5);
    g_assert_cmpint(calls.launches, ==, 1);
    hn_session_free(s);
    place_close(&p);
}

/* What follows a convolution is computed along with it, by whichever kernel: one launch. */
static void test_behind_conv(void)
{
    static const char *const convs[] = { "w:f32[%d,32,3,3], bias:f32[%d]) pads=[1,1,1,1]", "w:f32[%d,32,1,1])",
                                         "w:f32[%d,1,3,3], bias:f32[%d]) group=32 pads=[1,1,1,1] strides=[1,1]",
                                         "w:f32[%d,1,5,5]) group=32 pads=[2,2,2,2]" };
    static const char *const behind[] = { "%y = Relu(%a)",
                                          "%b = Add(%r, %a) %y = Clip(%b, lo:f32[]={-0.5}, hi:f32[]={0.75})",
                                          "%b = Mul(%a, k:f32[32,1,1]) %c = Sub(%b, d:f32[1,32,1,1]) %y = Add(%c, "
                                          "e:f32[]={0.5})",
                                          "%b = HardSwish(%a) %y = LeakyRelu(%b) alpha=0.25",
                                          "%b = Sigmoid(%a) %c = PRelu(%b, k:f32[32,1,1]) %y = HardSigmoid(%c)" };
    for (guint i = 0; i < G_N_ELEMENTS(convs) * G_N_ELEMENTS(behind); i++) {
        g_autofree char *sizes = g_strdup(convs[i % G_N_ELEMENTS(convs)]);
        g_auto(GStrv) pieces = g_strsplit(sizes, "%d", -1);
        g_autofree char *conv = g_strjoinv("32", pieces);
        g_autofree char *text =
            g_strdup_printf("opset 17 graph g(%%x:f32[1,32,9,11], %%r:f32[1,32,9,11]) -> (%%y) { %%a = "
                            "Conv(%%x, %s %s }",
                            conv, behind[i / G_N_ELEMENTS(convs)]);
        in_one_launch(text);
    }
}

/* What follows a product is, too. */
static void test_behind_product(void)
{
    static const char *const nodes[] = { "MatMul(%x, w:f32[64,48])", "Gemm(%x, w:f32[64,48], k:f32[48])",
                                         "Gemm(%x, w:f32[48,64]) transB=1 alpha=0.5" };
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autofree char *text = g_strdup_printf("opset 20 graph g(%%x:f32[24,64], %%r:f32[24,48]) -> (%%y) { %%a = %s "
                                                "%%b = Add(%%a, d:f32[48]) %%c = Relu(%%b) %%y = Add(%%c, %%r) }",
                                                nodes[i]);
        in_one_launch(text);
    }
}

/* One kernel with lists of several lengths, the longest first. */
static void test_convs(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[1,300,4,4]) -> (%y) { %a = Conv(%x, v:f32[16,300,1,1]) "
                   "%y = Conv(%a, w:f32[16,16,1,1]) }");
    HnSession *s = place_session(&p);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    run_close(&p, s, in, 1e-4, 1e-3);
    hn_session_free(s);
    place_close(&p);
}

/* Bytes from ordinary memory onto the device and back again, in pieces and whole, beside small ones. */
static void copy_around(HnCudaStream *t, gsize bytes, uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    const HnMemory *m = &hn_cuda_memory;
    g_autoptr(HnTensor) x = test_random(HN_F32, 1, (int64_t[]){ (int64_t)(bytes / 4 + 16) }, seed);
    guint8 *from = (guint8 *)x->data + bytes % 3, small[3] = { 1, 2, (guint8)seed };
    g_autofree guint8 *back = g_malloc0(bytes + 1), *want = g_memdup2(from, bytes + 1);
    guint8 *there = m->alloc(t->device, bytes + 3, &error);
    g_assert_no_error(error);
    g_assert_true(m->upload(t, there + bytes, small, 3, &error));
    g_assert_true(m->upload(t, there, from, bytes, &error));
    memset(from, 0x5a, bytes); /* it may be overwritten */
    g_assert_true(m->download(t, back, there, bytes, &error));
    g_assert_true(m->wait(t, &error));
    g_assert_cmpmem(back, bytes, want, bytes);
    g_assert_true(m->download(t, small, there + bytes, 3, &error));
    g_assert_true(m->wait(t, &error));
    g_assert_cmpuint(small[2], ==, (guint8)seed);
    g_assert_no_error(error);
    m->free(t->device, there);
}

static void test_staged_copies(void)
{
    static const gsize sizes[] = { 0, 1, 65536, 65537, 262145, 1048575, 9437201, 700001, 64, 5242880 };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDevice) device = hn_device_new(hn_backend_cuda(0), &error);
    g_assert_no_error(error);
    for (int form = 0; form < 4; form++) {
        HnCudaStream *t = device->backend->stream_new(device->handle, &error);
        g_assert_no_error(error);
        hn_cuda_memory.threads(t, form % 2 == 0 ? 1 : 3);
        t->copying.past = form >= 2;
        for (guint i = 0; i < G_N_ELEMENTS(sizes); i++)
            copy_around(t, sizes[i], i);
        device->backend->stream_free(t);
    }
}

static int wait_for_nothing(HnCuEvent e)
{
    (void)e;
    return HN_CU_SUCCESS;
}

/* Planted: a stage is filled, or read, before the copy from it, or to it, is done. That cannot pass unseen. */
static void test_stages_not_waited_for(void)
{
    g_autoptr(GError) error = NULL;
    const gsize bytes = 2 * HN_CUDA_STAGES * HN_CUDA_STAGE_BYTES;
    const HnMemory *m = &hn_cuda_memory;
    g_autoptr(HnDevice) device = hn_device_new(hn_backend_cuda(0), &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) x = test_random(HN_U8, 1, (int64_t[]){ (int64_t)bytes }, 3);
    HnCudaDriver hasty;
    HnCuda *c = device->handle;
    const HnCudaDriver *real = c->driver;
    hasty = *real;
    hasty.event_wait = wait_for_nothing;
    for (int way = 0; way < 3; way++) {
        g_autofree guint8 *back = g_malloc0(bytes);
        HnCudaStream *t = device->backend->stream_new(c, &error);
        void *there = m->alloc(c, bytes, &error);
        g_assert_no_error(error);
        c->driver = way == 1 ? &hasty : real;
        g_assert_true(m->upload(t, there, x->data, bytes, &error));
        c->driver = way == 2 ? &hasty : real;
        g_assert_true(m->wait(t, &error) && m->download(t, back, there, bytes, &error) && m->wait(t, &error));
        c->driver = real;
        g_assert_true((memcmp(back, x->data, bytes) == 0) == (way == 0));
        m->free(c, there);
        device->backend->stream_free(t);
    }
}

/* A large result comes to pinned memory in one copy, unless the next run may need another place for it; a large input
 * goes there in pieces. */
static void test_large(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%b:f32[1024], %x:f32[2100,1024]) -> (%y) { %y = Sub(%x, %b) }");
    for (int form = 0; form < 4; form++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        HnSession *s = hn_session_new_on(
            p.engine, &(HnSessionOptions){ .threads = 1 + form / 2, .lasting = form % 2 != 0, .budget = budget },
            &error);
        g_assert_no_error(error);
        for (uint64_t run = 0; run < 3; run++) {
            g_autoptr(GPtrArray) in = test_inputs(s, 3 + run);
            start_counting();
            run_right(&p, s, in);
            g_assert_cmpint(calls.uploads, ==, 1 + 9);
            g_assert_cmpint(calls.downloads, ==, form % 2 != 0 ? 9 : 1);
            g_assert_cmpint(calls.waits, ==, 1);
            g_assert_cmpint(calls.allocs, ==, run == 0 ? calls.allocs : 0);
            g_assert_cmpuint(hn_budget_used(budget), >=, (gsize)2100 * 1024 * 4);
        }
        hn_session_free(s);
        g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    }
    g_assert_cmpuint(((const HnCuda *)p.device->handle)->pinned_bytes, ==, 0);
    place_close(&p);
}

/* A result outlives session and engine. */
static void test_pinned_result_stays(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[64,1024]) -> (%y) { %y = Neg(%x) }");
    HnSession *s = place_session(&p);
    g_autoptr(GPtrArray) in = test_inputs(s, 3), out = test_run(s, in);
    const HnTensor *x = in->pdata[0], *y = out->pdata[0];
    hn_session_free(s);
    place_close(&p);
    for (int64_t i = 0; i < 64 * 1024; i++)
        g_assert_cmpfloat(((const float *)y->data)[i], ==, -((const float *)x->data)[i]);
}

static const char *const models[] = {
    "opset 17 graph g(%x:f32[4,8]) -> (%y) { %a = Softmax(%x) axis=-1 %b = Hardmax(%a) axis=-1 %y = Softmax(%b) "
    "axis=-1 }",
    "opset 17 graph g(%x:f32[2,8]) -> (%y) { %a = MatMul(%x, w:f32[8,8]) %b = Add(%a, c:f32[8]) %d = Relu(%b) %y = "
    "Softmax(%d) axis=-1 }",
    "opset 17 graph g(%x:f32[64,512]) -> (%y) { %y = Neg(%x) }",
};

/* Whichever allocation fails: an error that says so, and nothing is left behind. */
static void test_failing_allocations(void)
{
    for (guint m = 0; m < G_N_ELEMENTS(models); m++) {
        Place p;
        place_open(&p, models[m]);
        HnSession *first = place_session(&p); /* what the device keeps for all sessions is there from now on */
        g_autoptr(GPtrArray) any = test_inputs(first, 1);
        g_ptr_array_unref(test_run(first, any));
        hn_session_free(first);
        const size_t whole = free_bytes(p.device);
        gboolean done = FALSE;
        for (int k = 1; !done; k++) {
            g_autoptr(GError) error = NULL;
            HnSession *s = place_session(&p);
            g_autoptr(GPtrArray) in = test_inputs(s, 1), out = g_ptr_array_new();
            g_ptr_array_set_size(out, 1);
            start_counting();
            calls.fail_alloc = k;
            done = hn_session_run(s, (HnTensor *const *)in->pdata, (HnTensor **)out->pdata, &error);
            g_assert_true(done == (calls.fail_alloc > 0));
            if (done)
                hn_tensor_unref(out->pdata[0]);
            else
                g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
            g_assert_cmpint(k, <, 1000);
            calls.fail_alloc = 0;
            hn_session_free(s);
            g_assert_cmpuint(free_bytes(p.device), ==, whole);
        }
        place_close(&p);
    }
}

/* `n` slices along the middle axis put behind each other the other way round: copies that are one launch. */
static char *turned_slices(int n)
{
    g_autoptr(GString) slices = g_string_new(NULL), all = g_string_new(NULL);
    for (int i = 0; i < n; i++) {
        g_string_append_printf(slices, "%s%%s%d", i > 0 ? ", " : "", i);
        g_string_append_printf(all, "%s%%s%d", i > 0 ? ", " : "", n - 1 - i);
    }
    return g_strdup_printf("opset 18 graph g(%%x:f32[2,%d,3]) -> (%%y) { %s = Split(%%x) axis=1 num_outputs=%d "
                           "%%y = Concat(%s) axis=1 }",
                           n, slices->str, n, all->str);
}

/* A launch that is recorded holds no addresses of another model, which a larger one has left where it is put together.
 */
static void test_recorded_arguments(void)
{
    g_autofree char *small = turned_slices(3), *large = turned_slices(40);
    Place p, other;
    place_open(&p, small);
    place_open(&other, large);
    HnSession *s = place_session(&p), *t = place_session(&other);
    g_autoptr(GPtrArray) in = test_inputs(s, 1), in_other = test_inputs(t, 2);
    run_right(&p, s, in);
    g_ptr_array_unref(test_run(t, in_other));
    run_right(&p, s, in); /* is recorded */
    hn_session_free(t);
    place_close(&other);
    run_right(&p, s, in);
    hn_session_free(s);
    place_close(&p);
}

/* Contexts come and go, and the device's memory is what it was. */
static void test_many_contexts(void)
{
    const int n = g_test_slow() ? 1000 : 20;
    size_t left = 0;
    for (int i = 0; i < n; i++) {
        Place p;
        place_open(&p, models[1]);
        HnSession *s = place_session(&p);
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        g_ptr_array_unref(test_run(s, in));
        hn_session_free(s);
        left = i == 0 ? free_bytes(p.device) : left;
        g_assert_cmpuint(free_bytes(p.device), ==, left);
        place_close(&p);
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_test_init(&argc, &argv, NULL);
    g_autoptr(HnDevice) device = hn_cuda_has_device(0, &error) ? hn_device_new(hn_backend_cuda(0), &error) : NULL;
    if (device == NULL) {
        g_print("1..0 # SKIP %s\n", error->message);
        return 0;
    }
    g_test_add_func("/cuda/run/recorded", test_recorded);
    g_test_add_func("/cuda/run/host-step", test_host_step);
    g_test_add_func("/cuda/run/kept-inputs", test_kept);
    g_test_add_func("/cuda/run/kept-inputs-host-step", test_kept_host_step);
    g_test_add_func("/cuda/run/device-times", test_device_times);
    g_test_add_func("/cuda/run/marked-steps", test_marked_steps);
    g_test_add_func("/cuda/run/marked-absent", test_marked_absent);
    g_test_add_func("/cuda/run/group", test_group);
    g_test_add_func("/cuda/run/shared-memory", test_shared_memory);
    g_test_add_func("/cuda/run/exchanged", test_exchanged);
    g_test_add_func("/cuda/run/loop", test_loop);
    g_test_add_func("/cuda/run/data-dependent", test_data_dependent);
    g_test_add_func("/cuda/run/shapes", test_shapes);
    g_test_add_func("/cuda/run/behind-conv", test_behind_conv);
    g_test_add_func("/cuda/run/behind-product", test_behind_product);
    g_test_add_func("/cuda/run/convs", test_convs);
    g_test_add_func("/cuda/run/staged-copies", test_staged_copies);
    g_test_add_func("/cuda/run/stages-not-waited-for", test_stages_not_waited_for);
    g_test_add_func("/cuda/run/large-inputs-and-results", test_large);
    g_test_add_func("/cuda/run/pinned-result-stays", test_pinned_result_stays);
    g_test_add_func("/cuda/run/recorded-arguments", test_recorded_arguments);
    g_test_add_func("/cuda/run/failing-allocations", test_failing_allocations);
    g_test_add_func("/cuda/run/many-contexts", test_many_contexts);
    return g_test_run();
}
