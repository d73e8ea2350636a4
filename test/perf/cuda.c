/*
 * Kernels of the CUDA backend by the device's own clock, against a copy on the device in the same run; JSON lines.
 *
 * usage: perf-cuda [--small] [--copies] [--convs] [--attention] [--device cuda:N] [--only TEXT]
 * --small: sizes that the emulated device gets through; --only: cases whose names contain that
 *
 * A line: the name, the kernel, microseconds of a call (median), bytes and operations of it, and `of_copy`: its bytes
 * per second over those of a device copy that moves as many (read and write counted, too), timed by the same marks.
 * Copies between host and device are timed by the host's clock, from the call until they have been waited for. With
 * --copies these alone, in many forms of the host's part (HnCudaCopying), also where its threads have gone to sleep.
 * With --convs convolutions alone: channels last in each form, shared by some numbers of blocks, as they choose
 * themselves, and the kernel of plain values, without steps that bring values there.
 * Products of halves are timed by cuBLASLt, too, where it is there, under names that end in ", cuBLASLt".
 * With --attention that of few tokens alone, by blocks of many queries and by those whose warps share the keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/run_model.h"
#include "backends.h"
#include "base/clock.h"
#include "cuda/core/cuda_backend.h"
#include "perf/step_facts.h"

#define ROUNDS 30
#define TEXT_MAX 1024

/* %d: a size, divided where sizes are to be small. */
static const struct {
    const char *name, *text;
    int large, small;
} cases[] = {
    { "relu f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = Relu(%%x) }", 16384, 16 },
    { "relu f16", "opset 21 graph g(%%x:f16[%d,1024]) -> (%%y) { %%y = Relu(%%x) }", 32768, 16 },
    { "add, mul, tanh f32",
      "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%a = Add(%%x, %%x) %%b = Tanh(%%a) %%y = Mul(%%b, %%x) }", 16384,
      16 },
    { "softmax f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = Softmax(%%x) axis=-1 }", 16384, 16 },
    { "softmax f16", "opset 21 graph g(%%x:f16[%d,1024]) -> (%%y) { %%y = Softmax(%%x) axis=-1 }", 32768, 16 },
    { "layer norm f32",
      "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = LayerNormalization(%%x, s:f32[1024]) axis=-1 }", 16384, 16 },
    { "transpose f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = Transpose(%%x) perm=[1,0] }", 16384, 16 },
    { "sum of rows f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = ReduceSum(%%x, a:i64[1]={1}) }", 16384,
      16 },
    { "concat f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = Concat(%%x, %%x) axis=1 }", 8192, 16 },
    { "add of a row f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = Add(%%x, b:f32[1024]) }", 16384, 16 },
    { "mul by channel f32", "opset 21 graph g(%%x:f32[%d,64,56,56]) -> (%%y) { %%y = Mul(%%x, b:f32[64,1,1]) }", 80,
      1 },
    { "group with a row f16",
      "opset 21 graph g(%%x:f16[%d,1024]) -> (%%y) { %%a = Add(%%x, b:f16[1024]) %%c = Sigmoid(%%a) "
      "%%d = Mul(%%a, %%c) %%y = Add(%%d, %%x) }",
      32768, 16 },
    { "cast f32 f16", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = Cast(%%x) to=10 }", 16384, 16 },
    { "where f32",
      "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%c = Less(%%x, z:f32={0}) %%y = Where(%%c, %%x, %%x) }", 16384,
      16 },
    { "softmax f32, long", "opset 21 graph g(%%x:f32[%d,32768]) -> (%%y) { %%y = Softmax(%%x) axis=-1 }", 512, 1 },
    { "softmax of columns f32", "opset 21 graph g(%%x:f32[%d,128,2048]) -> (%%y) { %%y = Softmax(%%x) axis=1 }", 64,
      1 },
    { "RMS norm f16",
      "opset 23 graph g(%%x:f16[%d,4096]) -> (%%y) { %%y = RMSNormalization(%%x, s:f16[4096]) axis=-1 }", 8192, 4 },
    { "group norm f32",
      "opset 21 graph g(%%x:f32[%d,64,56,56]) -> (%%y) { %%y = GroupNormalization(%%x, s:f32[64], b:f32[64]) "
      "num_groups=16 }",
      80, 1 },
    { "batch norm f32",
      "opset 21 graph g(%%x:f32[%d,64,56,56]) -> (%%y) { %%y = BatchNormalization(%%x, s:f32[64], b:f32[64], "
      "m:f32[64], v:f32[64]) }",
      80, 1 },
    { "sum of columns f32", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = ReduceSum(%%x, a:i64[1]={0}) }", 16384,
      16 },
    { "sum of all f16", "opset 21 graph g(%%x:f16[%d,1024]) -> (%%y) { %%y = ReduceSum(%%x) }", 32768, 16 },
    { "global average f32", "opset 21 graph g(%%x:f32[%d,512,14,14]) -> (%%y) { %%y = GlobalAveragePool(%%x) }", 160,
      1 },
    { "channels last f16", "opset 21 graph g(%%x:f16[%d,64,56,56]) -> (%%y) { %%y = Transpose(%%x) perm=[0,2,3,1] }",
      160, 1 },
    { "heads f16", "opset 21 graph g(%%x:f16[%d,128,16,64]) -> (%%y) { %%y = Transpose(%%x) perm=[0,2,1,3] }", 256, 1 },
    { "slice f32",
      "opset 21 graph g(%%x:f32[%d,2048]) -> (%%y) { %%y = Slice(%%x, a:i64[1]={512}, e:i64[1]={1536}, k:i64[1]={1}) }",
      16384, 16 },
    { "expand f32", "opset 21 graph g(%%x:f32[%d,1,64]) -> (%%y) { %%y = Expand(%%x, s:i64[3]={1,64,64}) }", 4096, 8 },
    { "nearest f32",
      "opset 21 graph g(%%x:f32[%d,64,56,56]) -> (%%y) { %%y = Resize(%%x, -, s:f32[4]={1,1,2,2}) mode='nearest' }", 20,
      1 },
    { "average pool 2x2 f16",
      "opset 21 graph g(%%x:f16[%d,64,112,112]) -> (%%y) { %%y = AveragePool(%%x) kernel_shape=[2,2] strides=[2,2] }",
      64, 1 },
    { "depthwise 3x3 f32",
      "opset 21 graph g(%%x:f32[%d,64,112,112]) -> (%%y) { %%y = Conv(%%x, w:f32[64,1,3,3]) group=64 "
      "pads=[1,1,1,1] }",
      32, 1 },
    { "product f32 4096", "opset 21 graph g(%%x:f32[%d,4096]) -> (%%y) { %%y = MatMul(%%x, w:f32[4096,4096]) }", 4096,
      0 },
    { "product f16 4096", "opset 21 graph g(%%x:f16[%d,4096]) -> (%%y) { %%y = MatMul(%%x, w:f16[4096,4096]) }", 4096,
      0 },
    { "product f16 256", "opset 21 graph g(%%x:f16[%d,256]) -> (%%y) { %%y = MatMul(%%x, w:f16[256,256]) }", 2048, 16 },
    { "product bf16 4096", "opset 21 graph g(%%x:bf16[%d,4096]) -> (%%y) { %%y = MatMul(%%x, w:bf16[4096,4096]) }",
      4096, 0 },
    { "product bf16 1024", "opset 21 graph g(%%x:bf16[%d,1024]) -> (%%y) { %%y = MatMul(%%x, w:bf16[1024,1024]) }",
      1024, 0 },
    { "product f32 256", "opset 21 graph g(%%x:f32[%d,256]) -> (%%y) { %%y = MatMul(%%x, w:f32[256,256]) }", 2048, 64 },
    { "one row f16", "opset 21 graph g(%%x:f16[%d,8192]) -> (%%y) { %%y = MatMul(%%x, w:f16[8192,8192]) }", 1, 0 },
    { "one row, 8 bits",
      "opset 21 graph g(%%x:f32[%d,8192]) -> (%%y) { %%w = DequantizeLinear(q:i8[8192,8192], s:f32[8192]) axis=1 "
      "%%y = MatMul(%%x, %%w) }",
      1, 0 },
    { "one row, 4 bits",
      "opset 21 graph g(%%x:f32[%d,8192]) -> (%%y) { %%w = DequantizeLinear(q:u4[8192,8192], s:f32[64,8192]) axis=0 "
      "block_size=128 %%y = MatMul(%%x, %%w) }",
      1, 0 },
    { "product f32 197x384x384", "opset 21 graph g(%%x:f32[%d,384]) -> (%%y) { %%y = MatMul(%%x, w:f32[384,384]) }",
      197, 0 },
    { "product f32 197x384x1536", "opset 21 graph g(%%x:f32[%d,384]) -> (%%y) { %%y = MatMul(%%x, w:f32[384,1536]) }",
      197, 0 },
    { "product f32 197x1536x384", "opset 21 graph g(%%x:f32[%d,1536]) -> (%%y) { %%y = MatMul(%%x, w:f32[1536,384]) }",
      197, 0 },
    { "product f32 128x768x3072", "opset 21 graph g(%%x:f32[%d,768]) -> (%%y) { %%y = MatMul(%%x, w:f32[768,3072]) }",
      128, 0 },
    { "product f32 128x3072x768", "opset 21 graph g(%%x:f32[%d,3072]) -> (%%y) { %%y = MatMul(%%x, w:f32[3072,768]) }",
      128, 0 },
    { "product f32 1024x768x768", "opset 21 graph g(%%x:f32[%d,768]) -> (%%y) { %%y = MatMul(%%x, w:f32[768,768]) }",
      1024, 0 },
    { "product f16 197x384x1536", "opset 21 graph g(%%x:f16[%d,384]) -> (%%y) { %%y = MatMul(%%x, w:f16[384,1536]) }",
      197, 0 },
    { "product f16 128x3072x768", "opset 21 graph g(%%x:f16[%d,3072]) -> (%%y) { %%y = MatMul(%%x, w:f16[3072,768]) }",
      128, 0 },
    { "product f16 1024x768x768", "opset 21 graph g(%%x:f16[%d,768]) -> (%%y) { %%y = MatMul(%%x, w:f16[768,768]) }",
      1024, 0 },
    { "product, bias, gelu f16",
      "opset 21 graph g(%%x:f16[%d,768]) -> (%%y) { %%a = MatMul(%%x, w:f16[768,3072]) %%b = Add(%%a, k:f16[3072]) "
      "%%y = Gelu(%%b) }",
      1024, 0 },
    { "product, bias, residual f32",
      "opset 21 graph g(%%x:f32[%d,384], %%r:f32[197,384]) -> (%%y) { %%a = MatMul(%%x, w:f32[384,384]) "
      "%%b = Add(%%a, k:f32[384]) %%y = Add(%%b, %%r) }",
      197, 0 },
    { "product f16 8192", "opset 21 graph g(%%x:f16[%d,8192]) -> (%%y) { %%y = MatMul(%%x, w:f16[8192,8192]) }", 8192,
      0 },
    { "product f16 1024", "opset 21 graph g(%%x:f16[%d,1024]) -> (%%y) { %%y = MatMul(%%x, w:f16[1024,1024]) }", 1024,
      0 },
    { "product f16 of 128 rows", "opset 21 graph g(%%x:f16[%d,4096]) -> (%%y) { %%y = MatMul(%%x, w:f16[4096,4096]) }",
      128, 0 },
    { "product f32 1024", "opset 21 graph g(%%x:f32[%d,1024]) -> (%%y) { %%y = MatMul(%%x, w:f32[1024,1024]) }", 1024,
      0 },
    { "attention f16",
      "opset 23 graph g(%%q:f16[%d,16,2048,64], %%k:f16[8,16,2048,64], %%v:f16[8,16,2048,64]) -> (%%y) { "
      "%%y = Attention(%%q, %%k, %%v) }",
      8, 0 },
    { "attention f32",
      "opset 23 graph g(%%q:f32[%d,16,512,64], %%k:f32[8,16,512,64], %%v:f32[8,16,512,64]) -> (%%y) { "
      "%%y = Attention(%%q, %%k, %%v) }",
      8, 0 },
    { "conv 1x1 f16", "opset 21 graph g(%%x:f16[%d,256,56,56]) -> (%%y) { %%y = Conv(%%x, w:f16[64,256,1,1]) }", 32,
      0 },
    { "conv 1x1 f32", "opset 21 graph g(%%x:f32[%d,256,56,56]) -> (%%y) { %%y = Conv(%%x, w:f32[64,256,1,1]) }", 32,
      0 },
    { "conv 3x3 f16, 14x14",
      "opset 21 graph g(%%x:f16[%d,256,14,14]) -> (%%y) { %%y = Conv(%%x, w:f16[256,256,3,3]) pads=[1,1,1,1] }", 32,
      0 },
    { "conv 3x3 f32, 14x14, one image",
      "opset 21 graph g(%%x:f32[%d,256,14,14]) -> (%%y) { %%y = Conv(%%x, w:f32[256,256,3,3]) pads=[1,1,1,1] }", 1, 0 },
    { "conv 7x7 by 2 f32",
      "opset 21 graph g(%%x:f32[%d,3,224,224]) -> (%%y) { %%y = Conv(%%x, w:f32[64,3,7,7]) strides=[2,2] "
      "pads=[3,3,3,3] }",
      32, 0 },
    { "max pool 3x3 f32",
      "opset 21 graph g(%%x:f32[%d,64,112,112]) -> (%%y) { %%y = MaxPool(%%x) kernel_shape=[3,3] strides=[2,2] "
      "pads=[1,1,1,1] }",
      32, 0 },
    { "resize f32",
      "opset 21 graph g(%%x:f32[%d,64,56,56]) -> (%%y) { %%y = Resize(%%x, -, s:f32[4]={1,1,2,2}) mode='linear' }", 32,
      0 },
    { "gather rows f32", "opset 21 graph g(%%i:i64[%d]) -> (%%y) { %%y = Gather(w:f32[30000,768], %%i) }", 16384, 0 },
    { "small steps",
      "opset 21 graph g(%%x:f32[%d,64]) -> (%%y) { %%a = Softmax(%%x) %%b = Softmax(%%a) %%c = Softmax(%%b) "
      "%%d = Softmax(%%c) %%e = Softmax(%%d) %%f = Softmax(%%e) %%g = Softmax(%%f) %%y = Softmax(%%g) }",
      64, 4 },
    { "conv 3x3 f32",
      "opset 21 graph g(%%x:f32[%d,64,56,56]) -> (%%y) { %%y = Conv(%%x, w:f32[64,64,3,3]) pads=[1,1,1,1] }", 32, 0 },
    { "conv 3x3 f16",
      "opset 21 graph g(%%x:f16[%d,64,56,56]) -> (%%y) { %%y = Conv(%%x, w:f16[64,64,3,3]) pads=[1,1,1,1] }", 32, 0 },
};

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_number);
    return x[n / 2];
}

/* Bytes read and written per second by a copy of so many. */
static double copy_rate(HnDevice *device, gsize bytes)
{
    g_autoptr(GError) error = NULL;
    const HnMemory *m = device->backend->memory;
    const HnCuda *c = device->handle;
    HnCudaStream *t = device->backend->stream_new(device->handle, &error);
    g_assert_no_error(error);
    void *from = m->alloc(device->handle, bytes, &error), *to = m->alloc(device->handle, bytes, &error);
    g_assert_no_error(error);
    double us[ROUNDS], ns[2];
    c->driver->fill((HnCuAddress)(uintptr_t)from, 1, bytes, t->stream);
    for (int i = 0; i < ROUNDS; i++) {
        m->mark(t, 0, &error);
        c->driver->copy((HnCuAddress)(uintptr_t)to, (HnCuAddress)(uintptr_t)from, bytes, t->stream);
        m->mark(t, 1, &error);
        m->wait(t, &error);
        m->marks(t, 2, ns, &error);
        g_assert_no_error(error);
        us[i] = ns[1] * 1e-3;
    }
    m->free(device->handle, from);
    m->free(device->handle, to);
    device->backend->stream_free(t);
    return 2e6 * (double)bytes / median(us, ROUNDS);
}

/* --- copies between host and device ---------------------------------------------------------------------------------
 */

typedef enum { UPLOAD, DOWNLOAD, UPLOAD_PINNED, DOWNLOAD_PINNED, WAYS } Way;
static const char *const way_names[WAYS] = { "upload", "download", "upload, pinned", "download, pinned" };

typedef struct {
    HnDevice *device;
    HnCudaStream *stream;
    guint8 *host, *pinned, *there;
} Copies;

static void copy_once(const Copies *c, Way way, gsize bytes)
{
    g_autoptr(GError) error = NULL;
    const HnMemory *m = c->device->backend->memory;
    const HnCudaDriver *d = c->stream->device->driver;
    if (way == UPLOAD)
        m->upload(c->stream, c->there, c->host, bytes, &error);
    else if (way == UPLOAD_PINNED)
        d->upload((HnCuAddress)(uintptr_t)c->there, c->pinned, bytes, c->stream->stream);
    else
        m->download(c->stream, way == DOWNLOAD ? c->host : c->pinned, c->there, bytes, &error);
    m->wait(c->stream, &error);
    g_assert_no_error(error);
}

static void time_copy(const Copies *c, Way way, gsize bytes, gboolean rested)
{
    const HnCudaCopying *o = &c->stream->copying;
    double us[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        if (rested)
            g_usleep(3000);
        const guint64 start = hn_now_ns();
        copy_once(c, way, bytes);
        if (i >= 0)
            us[i] = (double)(hn_now_ns() - start) * 1e-3;
    }
    const double took = median(us, ROUNDS);
    printf("{\"name\": \"%s %.4g MB\", \"threads\": %d, \"piece\": %" G_GSIZE_FORMAT
           ", \"past\": %s, \"rested\": %s, \"us\": %.2f, \"gb_per_s\": %.2f}\n",
           way_names[way], (double)bytes / (1 << 20), o->threads, o->piece, o->past ? "true" : "false",
           rested ? "true" : "false", took, (double)bytes / took * 1e-3);
    fflush(stdout);
}

static void time_copies(const Copies *c, gsize largest, gboolean forms)
{
    static const int threads[] = { 1, 2, 4, 6, 8, 12 };
    static const gsize pieces[] = { 256 << 10, 512 << 10, HN_CUDA_STAGE_BYTES };
    for (Way way = 0; way < WAYS; way++)
        for (gsize bytes = 4096; bytes <= largest; bytes *= bytes < 1 << 20 ? 16 : 4)
            time_copy(c, way, bytes, FALSE);
    const gsize one = (gsize)5 << 20; /* an image of 640 by 640 in f32 */
    for (guint i = 0; forms && i < G_N_ELEMENTS(threads) * G_N_ELEMENTS(pieces) * 8; i++) {
        HnCudaCopying *o = &c->stream->copying;
        *o = hn_cuda_copying;
        o->threads = threads[i / 8 / G_N_ELEMENTS(pieces)];
        o->share = (gsize)32 << 10;
        o->piece = pieces[i / 8 % G_N_ELEMENTS(pieces)];
        o->past = i / 4 % 2 != 0;
        time_copy(c, i % 2 == 0 ? UPLOAD : DOWNLOAD, MIN(one, largest), i / 2 % 2 != 0);
    }
}

/* Of up to so many bytes. */
static void measure_copies(HnDevice *device, gsize largest, gboolean forms)
{
    g_autoptr(GError) error = NULL;
    const HnMemory *m = device->backend->memory;
    Copies c = { .device = device,
                 .stream = device->backend->stream_new(device->handle, &error),
                 .host = g_malloc(largest),
                 .pinned = m->alloc_pinned(device->handle, largest, &error),
                 .there = m->alloc(device->handle, largest, &error) };
    g_assert_no_error(error);
    m->threads(c.stream, hn_cpu_threads(NULL));
    g_assert_nonnull(c.pinned);
    memset(c.host, 1, largest);
    memset(c.pinned, 1, largest);
    time_copies(&c, largest, forms);
    m->free(device->handle, c.there);
    m->free_pinned(device->handle, c.pinned);
    g_free(c.host);
    device->backend->stream_free(c.stream);
}

typedef struct {
    double bytes, flops;
    const char *kernel;
    gboolean lt;         /* cuBLASLt computes some of it, ... */
    const char *refused; /* ... or does not, for this reason */
} Facts;

#define LT "cuda.lt"

static void add_facts(const HnStep *s, int depth, gpointer data)
{
    Facts *f = data;
    HnCost cost = { 0 };
    (void)depth;
    if (s->node == NULL)
        return;
    hn_step_cost(s, &cost);
    f->bytes += cost.bytes;
    f->flops += cost.flops;
    f->kernel = s->kernel != NULL ? s->kernel->name : "ref";
    f->lt = f->lt || strcmp(f->kernel, LT) == 0;
    for (guint i = 0; s->refusals != NULL && i + 1 < s->refusals->len; i += 2)
        if (strcmp(s->refusals->pdata[i], LT) == 0)
            f->refused = s->refusals->pdata[i + 1];
}

static void print_case(HnDevice *device, const char *name, const Facts *f, double took)
{
    const double copy = copy_rate(device, MAX((gsize)f->bytes / 2, 1));
    printf("{\"name\": \"%s\", \"kernel\": \"%s\", \"us\": %.2f, \"bytes\": %.0f, \"flops\": %.0f, \"of_copy\": %.3f, "
           "\"tflops\": %.3f}\n",
           name, f->kernel, took, f->bytes, f->flops, f->bytes / took * 1e6 / copy, f->flops / took * 1e-6);
    fflush(stdout);
}

/* prefer: HnSessionOptions.prefer; where that is cuBLASLt and it computes nothing of it, only this is said. */
static void measure(HnDevice *device, const char *name, const char *text, const char *prefer)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = test_model(text);
    HnEngine *e = hn_engine_new(m, device, NULL, &error);
    g_assert_no_error(error);
    HnSession *s = hn_session_new_on(e, &(HnSessionOptions){ .threads = 1, .prefer = prefer }, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    HnTimer timer = { .tick_ns = 1 };
    double us[ROUNDS];
    Facts facts = { 0 };
    hn_session_set_timer(s, &timer);
    for (int i = -2; i < ROUNDS; i++) {
        timer.n = 0;
        g_ptr_array_unref(test_run(s, in));
        double all = 0;
        for (gsize k = 0; k < timer.n; k++)
            all += timer.spans[k].node != NULL ? (double)(timer.spans[k].end - timer.spans[k].start) * 1e-3 : 0;
        if (i >= 0)
            us[i] = all;
    }
    hn_session_foreach_step(s, add_facts, &facts);
    if (prefer != NULL && !facts.lt)
        fprintf(stderr, "perf-cuda: no time of '%s': %s\n", name, facts.refused);
    else
        print_case(device, name, &facts, median(us, ROUNDS));
    hn_session_free(s);
    hn_engine_unref(e);
    hn_model_free(m);
    g_free(timer.spans);
}

/* The same by cuBLASLt, whatever HONE_CUDA_LIBRARIES asks for. */
static void measure_lt(HnDevice *device, const char *name, const char *text)
{
    HnCuda *c = device->handle;
    const gboolean asked = c->asks_lt;
    g_autofree char *named = g_strconcat(name, ", cuBLASLt", NULL);
    c->asks_lt = TRUE;
    measure(device, named, text, LT);
    c->asks_lt = asked;
}

/* --- forms of convolutions ---------------------------------------------------------------------------------------- */

typedef struct {
    int batch, from, to, size, kernel, stride;
} Shape;

static const Shape shapes[] = {
    { 8, 3, 64, 224, 7, 2 },   { 8, 64, 64, 56, 1, 1 },    { 8, 64, 64, 56, 3, 1 },    { 8, 64, 256, 56, 1, 1 },
    { 8, 256, 64, 56, 1, 1 },  { 8, 128, 128, 28, 3, 1 },  { 8, 128, 512, 28, 1, 1 },  { 8, 512, 128, 28, 1, 1 },
    { 8, 256, 256, 14, 3, 1 }, { 8, 256, 1024, 14, 1, 1 }, { 8, 1024, 256, 14, 1, 1 }, { 8, 512, 512, 7, 3, 1 },
    { 8, 512, 2048, 7, 1, 1 }, { 8, 2048, 512, 7, 1, 1 },  { 8, 3, 16, 640, 3, 2 },    { 8, 16, 32, 320, 3, 2 },
    { 8, 16, 16, 160, 3, 1 },  { 8, 32, 32, 80, 3, 1 },    { 8, 64, 64, 40, 3, 1 },    { 8, 128, 128, 20, 3, 1 },
    { 1, 64, 64, 56, 3, 1 },   { 1, 64, 256, 56, 1, 1 },   { 1, 128, 128, 28, 3, 1 },  { 1, 256, 256, 14, 3, 1 },
    { 1, 512, 512, 7, 3, 1 },  { 1, 1024, 256, 14, 1, 1 }, { 32, 64, 64, 56, 3, 1 },   { 32, 256, 256, 14, 3, 1 },
    { 32, 256, 64, 56, 1, 1 },
};

/* The first convolution's time alone; the second one reads what it makes, channels last. */
static double time_conv(HnDevice *device, HnModel *m, GPtrArray *in, const char *prefer)
{
    g_autoptr(GError) error = NULL;
    HnEngine *e = hn_engine_new(m, device, NULL, &error);
    g_assert_no_error(error);
    HnSession *s =
        hn_session_new_on(e, &(HnSessionOptions){ .threads = 1, .prefer = prefer, .keeps_io = TRUE }, &error);
    g_assert_no_error(error);
    HnTimer timer = { .tick_ns = 1 };
    double us[ROUNDS];
    hn_session_set_timer(s, &timer);
    for (int i = -2; i < ROUNDS; i++) {
        timer.n = 0;
        g_ptr_array_unref(test_run(s, in));
        for (gsize k = timer.n; k-- > 0;)
            if (i >= 0 && timer.spans[k].node != NULL)
                us[i] = (double)(timer.spans[k].end - timer.spans[k].start) * 1e-3;
    }
    hn_session_free(s);
    hn_engine_unref(e);
    g_free(timer.spans);
    return median(us, ROUNDS);
}

static void print_conv(const Shape *c, const char *type, const char *form, int parts, double us)
{
    const int out = (c->size - 1) / c->stride + 1;
    const double flops = 2.0 * c->batch * out * out * c->from * c->to * c->kernel * c->kernel;
    printf("{\"conv\": \"%dx%d by %d, %d to %d, %dx%d, batch %d\", \"type\": \"%s\", \"form\": \"%s\", \"parts\": %d, "
           "\"us\": %.2f, \"tflops\": %.2f}\n",
           c->kernel, c->kernel, c->stride, c->from, c->to, c->size, c->size, c->batch, type, form, parts, us,
           flops / us * 1e-6);
    fflush(stdout);
}

static void measure_shape(HnDevice *device, const Shape *c, const char *type)
{
    static const char *const halves[] = { "conv_last_128x128",
                                          "conv_last_128x64",
                                          "conv_last_128x32",
                                          "conv_last_64x64",
                                          "conv_last_64x32",
                                          "conv_last_group_128x256",
                                          "conv_last_group_128x128",
                                          "conv_last_group_128x64",
                                          "conv_last_group_64x128",
                                          "conv_last_group_64x64",
                                          NULL };
    static const char *const f32[] = { "conv_last_128x64", "conv_last_64x64", "conv_last_64x32", NULL };
    static const int parts[] = { 1, 2, 4, 8 };
    const char *const *forms = strcmp(type, "f32") == 0 ? f32 : halves;
    const int pad = c->kernel / 2, out = (c->size - 1) / c->stride + 1;
    const int64_t dims[4] = { c->batch, c->from, c->size, c->size };
    HnCuda *cuda = device->handle;
    g_autofree char *text = g_strdup_printf(
        "opset 21 graph g(%%x:%s[%d,%d,%d,%d]) -> (%%y) { %%a = Conv(%%x, w:%s[%d,%d,%d,%d]) pads=[%d,%d,%d,%d] "
        "strides=[%d,%d] %%y = Conv(%%a, v:%s[8,%d,1,1]) }",
        type, c->batch, c->from, c->size, c->size, type, c->to, c->from, c->kernel, c->kernel, pad, pad, pad, pad,
        c->stride, c->stride, type, c->to);
    HnModel *m = test_model(text);
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_ptr_array_add(in, test_random(strcmp(type, "f32") == 0 ? HN_F32 : HN_F16, 4, dims, 1));
    print_conv(c, type, "plain", 0, time_conv(device, m, in, "cuda.conv_packed"));
    print_conv(c, type, "chosen", 0, time_conv(device, m, in, "cuda.conv_last"));
    const gboolean few = (int64_t)c->batch * out * out * c->to < 132 * 64 * 64 * 2;
    for (int i = 0; forms[i] != NULL; i++)
        for (guint k = 0; k < (few ? G_N_ELEMENTS(parts) : 1); k++) {
            if (parts[k] > c->from * c->kernel * c->kernel / 128)
                break;
            cuda->conv_form = forms[i];
            cuda->conv_parts = parts[k];
            print_conv(c, type, forms[i], parts[k], time_conv(device, m, in, "cuda.conv_last"));
        }
    cuda->conv_form = NULL;
    hn_model_free(m);
}

/* --- forms of attention ------------------------------------------------------------------------------------------- */

static void measure_attention(HnDevice *device)
{
    static const struct {
        int heads, tokens;
    } of[] = { { 6, 197 }, { 12, 128 }, { 12, 384 }, { 8, 1024 } };
    static const char *const types[] = { "f32", "f16" };
    static const float costs[] = HN_CUDA_FEW_COSTS;
    HnCuda *c = device->handle;
    for (guint i = 0; i < G_N_ELEMENTS(of) * G_N_ELEMENTS(types); i++)
        for (int batch = 1; batch <= 16; batch *= 2)
            for (int few = 0; few < 2; few++) {
                const char *type = types[i % 2];
                g_autofree char *q = g_strdup_printf("%s[%d,%d,%d,64]", type, batch, of[i / 2].heads, of[i / 2].tokens);
                g_autofree char *name = g_strdup_printf("attention %s, %s", q, few ? "shared keys" : "other blocks");
                g_autofree char *text = g_strdup_printf(
                    "opset 23 graph g(%%q:%s, %%k:%s, %%v:%s) -> (%%y) { %%y = Attention(%%q, %%k, %%v) }", q, q, q);
                c->few_cost[0] = c->few_cost[1] = few ? 0 : G_MAXINT;
                measure(device, name, text, NULL);
            }
    memcpy(c->few_cost, costs, sizeof costs);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    gboolean small = FALSE, copies = FALSE, convs = FALSE, attention = FALSE;
    const char *name = "cuda", *only = "";
    for (int i = 1; i < argc; i++) {
        small = small || strcmp(argv[i], "--small") == 0;
        copies = copies || strcmp(argv[i], "--copies") == 0;
        convs = convs || strcmp(argv[i], "--convs") == 0;
        attention = attention || strcmp(argv[i], "--attention") == 0;
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            name = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
    }
    const HnBackend *backend = hn_backend_find(name, &error);
    g_autoptr(HnDevice) device = backend != NULL ? hn_device_new(backend, &error) : NULL;
    if (device == NULL) {
        fprintf(stderr, "perf-cuda: %s\n", error->message);
        return hn_error_exit_status(error);
    }
    for (guint i = 0; convs && i < 2 * G_N_ELEMENTS(shapes); i++) {
        Shape c = shapes[i / 2];
        c.size = small ? MIN(c.size, 12) : c.size;
        if (!small || c.batch == 1)
            measure_shape(device, &c, i % 2 == 0 ? "f16" : "f32");
    }
    if (convs)
        return 0;
    const gsize copied = small ? (gsize)1 << 16 : (gsize)256 << 20;
    printf("{\"name\": \"device copy\", \"bytes\": %.0f, \"gb_per_s\": %.1f}\n", 2 * (double)copied,
           copy_rate(device, copied) * 1e-9);
    if (attention)
        measure_attention(device);
    else if (only[0] == '\0')
        measure_copies(device, (gsize)(small ? 1 : 64) << 20, copies);
    for (guint i = 0; i < G_N_ELEMENTS(cases) && !copies && !attention; i++) {
        char text[TEXT_MAX];
        const int size = small ? cases[i].small : cases[i].large;
        if (size == 0 || strstr(cases[i].name, only) == NULL)
            continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, cases[i].text, size);
#pragma GCC diagnostic pop
        measure(device, cases[i].name, text, NULL);
        if (strstr(text, "f16") != NULL && strstr(text, "MatMul") != NULL)
            measure_lt(device, cases[i].name, text);
    }
    return 0;
}
