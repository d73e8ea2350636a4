/*
 * Weights that spell out a Fourier transform are found and computed as one, others are not; and what is computed of a
 * frame does not depend on louder ones beside it.
 */
#include <math.h>
#include <string.h>

#include "run_model.h"

#define PI 3.14159265358979323846

typedef enum { HALVES, TURNS, REAL, IMAGINARY, BACKWARDS } Order;

/* Bins [first, first + bins) of n points, of frames of `taps` with a window a - (1 - a) cos from `begin` on. */
typedef struct {
    int64_t n, taps, begin, first, bins;
    double a, scale;
    Order order;
} Table;

static double window_at(const Table *t, int64_t j)
{
    const int64_t length = t->taps - 2 * t->begin, at = j - t->begin;
    if (at < 0 || at >= length)
        return 0;
    return t->scale * (t->a - (1 - t->a) * cos(2 * PI * (double)at / (double)length));
}

static void fill(const Table *t, const HnTensor *w, gboolean columns)
{
    const int64_t rows = columns ? w->dims[1] : w->dims[0];
    float *data = w->data;
    for (int64_t r = 0; r < rows; r++) {
        const gboolean imaginary =
            t->order == IMAGINARY || (t->order == HALVES && r >= t->bins) || (t->order == TURNS && r % 2 != 0);
        int64_t k = t->order == TURNS ? r / 2 : r % t->bins;
        k = t->first + (t->order == BACKWARDS ? t->bins - 1 - k : k);
        for (int64_t j = 0; j < t->taps; j++) {
            const double angle = 2 * PI * (double)(k * j % t->n) / (double)t->n;
            const double noise = 1e-13 * (double)((r * 7 + j * 3) % 11); /* of angles that others compute */
            data[columns ? j * rows + r : r * t->taps + j] =
                (float)(window_at(t, j) * (imaginary ? noise - sin(angle) : cos(angle)));
        }
    }
}

static void find_transform(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(gboolean *)data |= s->kernel != NULL && g_str_has_prefix(s->kernel->name, "cpu.dft_");
}

static gboolean computes_it(const HnSession *s)
{
    gboolean found = FALSE;
    hn_session_foreach_step(s, find_transform, &found);
    return found;
}

/* As ref has it, with one to three threads; whether transforms took part. */
static gboolean judge(HnModel *m, const HnSessionOptions *options, const char *what)
{
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 31);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    gboolean found = TRUE;
    for (int threads = 1; threads <= 3; threads++) {
        HnSessionOptions o = *options;
        o.threads = threads;
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &o);
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < want->len; i++)
                test_assert_close(got->pdata[i], want->pdata[i], 1e-5, 2e-5, what);
        }
        found = found && computes_it(s);
    }
    return found;
}

static HnModel *model_of(const char *graph, const Table *t)
{
    g_autofree char *text = g_strconcat("opset 17 graph g(", graph, " }", NULL);
    HnModel *m = test_model(text);
    fill(t, hn_graph_find(m->graph, "w")->weight, strstr(graph, "MatMul") != NULL);
    return m;
}

static void test_tables(void)
{
    static const struct {
        const char *graph;
        Table table;
    } cases[] = {
        { "%x:f32[1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[130,1,128]) strides=[64]",
          { 128, 128, 0, 0, 65, 0.5, 1, HALVES } },
        /* real or imaginary parts alone; bins 0 and n / 2 have none of the latter */
        { "%x:f32[2,1,7000]) -> (%y) { %y = Conv(%x, w:f32[257,1,512]) strides=[160]",
          { 512, 512, 56, 0, 257, 0.54, 3, REAL } },
        { "%x:f32[1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[257,1,512]) strides=[160]",
          { 512, 512, 56, 0, 257, 0.5, 1, IMAGINARY } },
        /* more points than taps, zeros around each signal, a bias and what follows; frames of samples share vectors */
        { "%x:f32[3,1,2500], %r:f32[3,514,19]) -> (%y) { %c = Conv(%x, w:f32[514,1,400], b:f32[514]) strides=[130] "
          "pads=[170,130] %a = Add(%c, %r) %y = Relu(%a)",
          { 512, 400, 0, 0, 257, 0.54, 0.25, HALVES } },
        { "%x:f32[1,1,6000]) -> (%y) { %y = Conv(%x, w:f32[402,1,400]) strides=[160]",
          { 400, 400, 0, 0, 201, 0.5, 1, TURNS } },
        /* some bins of them; all of them; from the highest down */
        { "%x:f32[1,1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[80,1,1,256]) strides=[1,100]",
          { 256, 256, 0, 7, 40, 1, 0.0625, HALVES } },
        { "%x:f32[1,1,5000]) -> (%y) { %y = Conv(%x, w:f32[160,1,80]) strides=[40]",
          { 80, 80, 0, 0, 80, 0.5, 1, HALVES } },
        { "%x:f32[1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[129,1,256]) strides=[100]",
          { 256, 256, 0, 0, 129, 0.5, 1, BACKWARDS } },
        /* a length with a large prime */
        { "%x:f32[1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[268,1,268]) strides=[50]",
          { 268, 268, 0, 0, 134, 0.5, 1, HALVES } },
        { "%x:f32[2,37,400]) -> (%y) { %y = MatMul(%x, w:f32[400,402])", { 400, 400, 0, 0, 201, 0.5, 1, HALVES } },
        { "%x:f32[70,256]) -> (%y) { %y = MatMul(%x, w:f32[256,129])", { 256, 256, 0, 0, 129, 1, 0.1, IMAGINARY } },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HnModel) m = model_of(cases[i].graph, &cases[i].table);
        if (!judge(m, &(HnSessionOptions){ 0 }, cases[i].graph)) {
            g_test_message("another kernel computes %s", cases[i].graph);
            g_test_fail();
        }
        g_assert_false(judge(m, &(HnSessionOptions){ .strict_math = TRUE }, cases[i].graph));
    }
}

#define FRAMES "%x:f32[1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[130,1,128], b:f32[130]) strides=[64]"

/* A single weight that is another one, bins between bins, taps apart from each other, one short frame */
static void test_near_misses(void)
{
    const Table whole = { 128, 128, 0, 0, 65, 0.5, 1, HALVES }, between = { 131, 128, 0, 0, 65, 0.5, 1, HALVES };
    g_autoptr(HnModel) m = model_of(FRAMES, &whole);
    float *w = hn_graph_find(m->graph, "w")->weight->data;
    g_assert_true(judge(m, &(HnSessionOptions){ 0 }, "whole"));
    for (int i = 0; i < 5; i++) {
        const int64_t at = (int64_t[]){ 64, 128 * 129 + 3, 128 * 33 + 64, 127, 128 * 65 }[i];
        const float kept = w[at];
        w[at] += 1e-6f;
        g_assert_false(judge(m, &(HnSessionOptions){ 0 }, "a weight"));
        w[at] = kept;
    }
    w[128 * 7] = NAN;
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_assert_false(computes_it(s));
    g_autoptr(HnModel) other = model_of(FRAMES, &between);
    g_assert_false(judge(other, &(HnSessionOptions){ 0 }, "between bins"));
    g_autoptr(HnModel) dilated =
        model_of("%x:f32[1,1,9000]) -> (%y) { %y = Conv(%x, w:f32[130,1,128]) strides=[64] dilations=[2]", &whole);
    g_assert_false(judge(dilated, &(HnSessionOptions){ 0 }, "dilated"));
    g_autoptr(HnModel) one = model_of("%x:f32[1,1,32]) -> (%y) { %y = Conv(%x, w:f32[34,1,32])",
                                      &(Table){ 32, 32, 0, 0, 17, 0.5, 1, HALVES });
    g_assert_false(judge(one, &(HnSessionOptions){ 0 }, "one frame"));
}

/* Frames whose loudness differs by 1e9: each is as exact as it would be alone. */
static void check_quiet_frames(HnModel *m, int64_t frames, int64_t frame, int64_t numbers)
{
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 31);
    const HnTensor *x = in->pdata[0];
    for (int64_t i = 0; i < x->n; i++)
        ((float *)x->data)[i] *= i / frame % 3 == 1 ? 1e6f : 1e-3f;
    g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(s, in);
    const HnTensor *a = got->pdata[0], *b = want->pdata[0];
    g_assert_cmpint(a->n, ==, frames * numbers);
    for (int64_t f = 0; f < frames; f++) {
        double most = 0, wrong = 0;
        for (int64_t i = 0; i < numbers; i++) {
            const double v = hn_tensor_get_f64(b, f * numbers + i);
            most = MAX(most, fabs(v));
            wrong = MAX(wrong, fabs(v - hn_tensor_get_f64(a, f * numbers + i)));
        }
        g_assert_cmpfloat(wrong, <=, 1e-6 * most);
    }
}

static void test_quiet_frames(void)
{
    g_autoptr(HnModel) stft = test_model("opset 17 graph g(%x:f32[1,25600,1]) -> (%y) { %y = STFT(%x, hop:i64={256}, "
                                         "w:f32[256]=fill(1,0.5,1)) }");
    check_quiet_frames(stft, 100, 256, 129 * 2);
    g_autoptr(HnModel) dft = test_model("opset 17 graph g(%x:f32[60,300,1]) -> (%y) { %y = DFT(%x) axis=1 }");
    check_quiet_frames(dft, 60, 300, 300 * 2);
    g_autoptr(HnModel) product = model_of("%x:f32[70,256]) -> (%y) { %y = MatMul(%x, w:f32[256,258])",
                                          &(Table){ 256, 256, 0, 0, 129, 0.54, 1, HALVES });
    check_quiet_frames(product, 70, 256, 258);
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fourier/tables", test_tables);
    g_test_add_func("/fourier/near-misses", test_near_misses);
    g_test_add_func("/fourier/quiet-frames", test_quiet_frames);
    return g_test_run();
}
