/*
 * Kernels for weights that are mostly 0, against ref: how zeros lie, how windows lie, how threads share the work.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "cpu/sparse/sparse_cost.h"
#include "run_model.h"

/* Of weight w, element (o, i) at o * row + i * col: each `strip` outputs share their zeros. */
static void blank(const HnTensor *w, int64_t outs, int64_t inputs, int64_t row, int64_t col, int strip, double zeros)
{
    HnRng rng = hn_rng(11);
    float *data = w->data;
    for (int64_t first = 0; first < outs; first += strip)
        for (int64_t i = 0; i < inputs; i++)
            if (hn_rng_double(&rng) < zeros)
                for (int64_t o = first; o < MIN(first + strip, outs); o++)
                    data[o * row + i * col] = 0;
}

static void find_sparse(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    *(gboolean *)data |= s->kernel != NULL && g_str_has_prefix(s->kernel->name, "cpu.sparse_");
}

static gboolean computes_it(const HnSession *s)
{
    gboolean found = FALSE;
    hn_session_foreach_step(s, find_sparse, &found);
    return found;
}

static HnModel *model_of(const char *text, int strip, double zeros)
{
    HnModel *m = test_model(text);
    const HnTensor *w = hn_graph_find(m->graph, "w")->weight;
    const int64_t outs = w->dims[0], inputs = w->n / MAX(outs, 1);
    if (w->ndim == 2 && strstr(text, "transB=1") == NULL)
        blank(w, w->dims[1], outs, 1, w->dims[1], strip, zeros);
    else
        blank(w, outs, inputs, inputs, 1, strip, zeros);
    return m;
}

/* As ref has it, with one to three threads, twice each; whether a sparse kernel took part is `wanted`. */
static void compare(HnModel *m, const char *text, gboolean wanted)
{
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 31);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    for (int threads = 1; threads <= 3; threads++) {
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < want->len; i++)
                test_assert_close(got->pdata[i], want->pdata[i], 1e-4, 2e-4, text);
        }
        if (computes_it(s) != wanted) {
            g_test_message("%s: a sparse kernel %s", text, wanted ? "is missing" : "is not wanted");
            g_test_fail();
        }
    }
}

static void check(const char *text, int strip, double zeros, gboolean wanted)
{
    g_autoptr(HnModel) m = model_of(text, strip, zeros);
    compare(m, text, wanted);
}

static void test_windows(void)
{
    static const struct {
        int n, in, h, w, out, kh, kw;
        const char *attrs;
    } cases[] = {
        { 1, 64, 13, 13, 96, 1, 1, "" },
        { 2, 48, 32, 32, 64, 1, 1, "" }, /* planes that clash */
        { 1, 33, 21, 45, 96, 1, 1, "strides=[2,3]" },
        { 1, 40, 14, 15, 66, 3, 3, "pads=[1,1,1,1]" },
        { 2, 24, 20, 9, 50, 3, 3, "pads=[0,2,1,0]" },
        { 1, 32, 19, 22, 64, 3, 3, "pads=[1,1,1,1] strides=[2,2]" },
        { 1, 32, 19, 22, 64, 5, 2, "pads=[2,1,2,0] strides=[3,2]" },
        { 1, 32, 25, 22, 64, 3, 3, "pads=[2,2,2,2] dilations=[2,2]" },
        { 1, 32, 25, 22, 64, 3, 3, "pads=[1,3,2,0] dilations=[2,3] strides=[2,1]" },
        { 1, 64, 200, 1, 64, 5, 1, "pads=[2,0,2,0]" },
        { 1, 200, 11, 10, 128, 2, 2, "" },
        { 1, 30, 21, 50, 9, 3, 3, "" },                /* outputs that fill no strip */
        { 2, 64, 40, 44, 64, 3, 3, "pads=[1,1,1,1]" }, /* planes that are taken in bands */
        { 1, 48, 90, 70, 64, 3, 3, "pads=[1,1,1,1] strides=[2,2]" },
        { 1, 48, 71, 50, 64, 5, 3, "pads=[3,1,0,2] dilations=[2,3] strides=[3,1]" },
        { 1, 64, 3000, 1, 64, 5, 1, "pads=[2,0,2,0]" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int strip = 1; strip <= 16; strip *= 4) {
            g_autofree char *text =
                g_strdup_printf("opset 17 graph g(%%x:f32[%d,%d,%d,%d]) -> (%%y) { %%y = Conv(%%x, w:f32[%d,%d,%d,%d], "
                                "b:f32[%d]) %s }",
                                cases[i].n, cases[i].in, cases[i].h, cases[i].w, cases[i].out, cases[i].in, cases[i].kh,
                                cases[i].kw, cases[i].out, cases[i].attrs);
            check(text, strip, 0.97, TRUE);
        }
    check("opset 17 graph g(%x:f32[3,64,70]) -> (%y) { %y = Conv(%x, w:f32[80,64,3]) pads=[1,1] strides=[2] }", 4, 0.9,
          TRUE);
    /* one axis alone, in bands; and not, where strides part its pixels */
    check("opset 17 graph g(%x:f32[2,64,1500]) -> (%y) { %y = Conv(%x, w:f32[80,64,3]) pads=[1,3] dilations=[2] }", 4,
          0.97, TRUE);
    check("opset 17 graph g(%x:f32[1,64,200,1]) -> (%y) { %y = Conv(%x, w:f32[64,64,5,1]) pads=[2,0,1,0] strides=[2,1] "
          "}",
          4, 0.97, TRUE);
}

#define CONV(WINDOW, PADS)                                                                                 \
    "opset 17 graph g(%x:f32[2,64,13,14], %r:f32[2,60,13,14]) -> (%y) { %c = Conv(%x, w:f32[60,64," WINDOW \
    "], b:f32[60]) pads=" PADS " "

/* What follows at once. */
static void test_epilogues(void)
{
    static const char *const rest[] = {
        "%y = Relu(%c) }",
        "%y = Sigmoid(%c) }",
        "%s = Add(%c, %r) %y = Relu(%s) }",
        "%n = BatchNormalization(%c, s:f32[60], o:f32[60], m:f32[60], v:f32[60]=fill(3,0.5,1.5)) %y = Clip(%n, "
        "l:f32={0}, h:f32={6}) }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(rest); i++)
        for (int strip = 1; strip <= 4; strip *= 4) {
            g_autofree char *point = g_strconcat(CONV("1,1", "[0,0,0,0]"), rest[i], NULL),
                            *window = g_strconcat(CONV("3,3", "[1,1,1,1]"), rest[i], NULL);
            check(point, strip, 0.95, TRUE);
            check(window, strip, 0.97, TRUE);
        }
}

static void test_products(void)
{
    for (int strip = 1; strip <= 16; strip *= 4) {
        check("opset 17 graph g(%x:f32[128,96]) -> (%y) { %y = MatMul(%x, w:f32[96,200]) }", strip, 0.9, TRUE);
        check("opset 17 graph g(%x:f32[3,37,96]) -> (%y) { %m = MatMul(%x, w:f32[96,203]) %y = Add(%m, b:f32[203]) }",
              strip, 0.9, TRUE);
        check("opset 20 graph g(%x:f32[100,96], %r:f32[100,200]) -> (%y) { %m = MatMul(%x, w:f32[96,200]) %a = "
              "Add(%m, b:f32[200]) %g = Gelu(%a) %y = Add(%g, %r) }",
              strip, 0.9, TRUE);
        check("opset 17 graph g(%x:f32[50,96]) -> (%y) { %m = Gemm(%x, w:f32[200,96], b:f32[200]) transB=1 %y = "
              "Relu(%m) }",
              strip, 0.9, TRUE);
        check("opset 17 graph g(%x:f32[96,70]) -> (%y) { %y = Gemm(%x, w:f32[96,200], c:f32[70,1]) transA=1 "
              "alpha=0.5 }",
              strip, 0.9, TRUE);
    }
}

/* Weights of recurrent layers: their gates' rows share zeros, which are not those of other directions. */
static void check_recurrent(const char *text, int strip, double zeros, gboolean wanted)
{
    g_autoptr(HnModel) m = test_model(text);
    for (int i = 0; i < 2; i++) {
        const HnTensor *w = hn_graph_find(m->graph, i == 0 ? "w" : "r")->weight;
        blank(w, w->dims[0] * w->dims[1], w->dims[2], w->dims[2], 1, strip, zeros);
    }
    compare(m, text, wanted);
}

static void test_recurrent(void)
{
    static const char *const cases[] = {
        "%y, %h, %c = LSTM(%x:f32[9,1,40], w:f32[1,128,40], r:f32[1,128,32], b:f32[1,256]) hidden_size=32",
        "%y, %h = LSTM(%x:f32[7,3,24], w:f32[2,192,24], r:f32[2,192,48]) hidden_size=48 direction='bidirectional'",
        "%y, %h, %c = LSTM(%x:f32[5,13,64], w:f32[1,80,64], r:f32[1,80,20], b:f32[1,160], -, -, -, p:f32[1,60]) "
        "hidden_size=20 direction='reverse'",
        "%y, %h = GRU(%x:f32[11,1,48], w:f32[1,96,48], r:f32[1,96,32], b:f32[1,192]) hidden_size=32",
        "%y = GRU(%x:f32[6,9,48], w:f32[2,96,48], r:f32[2,96,32], b:f32[2,192]) hidden_size=32 "
        "linear_before_reset=1 direction='bidirectional'",
        "%y, %h = RNN(%x:f32[6,5,80], w:f32[1,64,80], r:f32[1,64,64], b:f32[1,128]) hidden_size=64",
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("opset 17\n%s\n", cases[i]);
        check_recurrent(text, 16, 0.9, TRUE);
        check_recurrent(text, 1, 0.99, TRUE);
        check_recurrent(text, 16, 1, TRUE);
        check_recurrent(text, 1, 0.8, FALSE);
    }
}

/* Where lists are not worth it dense kernels stay. */
static void test_rule(void)
{
    check("opset 17 graph g(%x:f32[1,64,13,13]) -> (%y) { %y = Conv(%x, w:f32[96,64,1,1]) }", 4, 0.3, FALSE);
    check("opset 17 graph g(%x:f32[1,64,13,13]) -> (%y) { %y = Conv(%x, w:f32[96,64,3,3]) pads=[1,1,1,1] }", 1, 0.6,
          FALSE);
    check("opset 17 graph g(%x:f32[1,256,1,1]) -> (%y) { %y = Conv(%x, w:f32[900,256,1,1]) }", 1, 0.9, FALSE);
    check("opset 17 graph g(%x:f32[1,256]) -> (%y) { %y = MatMul(%x, w:f32[256,900]) }", 1, 0.9, FALSE);
    check("opset 17 graph g(%x:f32[1,64,13,13]) -> (%y) { %y = Conv(%x, w:f32[96,32,3,3]) group=2 }", 1, 0.95, FALSE);
    check("opset 17 graph g(%x:f32[1,64,9,9]) -> (%y) { %y = Conv(%x, w:f32[64,64,1,1]) }", 1, 1.0, TRUE);
}

/* Lists hold what is not 0, in strips of four where these share it. */
static void test_lists(void)
{
    const float w[] = { 1, 0, 0, 2, 3, 0, 0, 4, 5, 0, 0, 6, 7, 0, 0, 8, 0, 0, 9, 0, 0, 1, 0, 0 }; /* [6, 4] */
    HnSparseCount c;
    g_assert_true(hn_sparse_count(w, 6, 4, 4, 1, 0.5, &c));
    g_assert_cmpint(c.entries4, ==, 2);
    g_assert_cmpint(c.entries1, ==, 2);
    g_assert_cmpint(c.strips, ==, 3);
    g_assert_cmpint((int)hn_sparse_floats(&c), ==, 10);
    g_assert_false(hn_sparse_count(w, 6, 4, 4, 1, 0.6, &c));
    const int64_t offset[] = { 0, 10, 20, 30 };
    HnSparseRows r;
    hn_sparse_rows_init(&r, &c, w, 4, 1, offset);
    float packed[10];
    hn_sparse_pack(&r, packed, w, 4, 1);
    const float want[] = { 1, 3, 5, 7, 2, 4, 6, 8, 9, 1 };
    g_assert_cmpmem(packed, sizeof packed, want, sizeof want);
    const int32_t at[] = { 0, 30, 20, 10 };
    g_assert_cmpmem(r.at, sizeof at, at, sizeof at);
    g_assert_cmpint(r.fours, ==, 1);
    hn_sparse_rows_clear(&r);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sparse/count", test_lists);
    g_test_add_func("/sparse/windows", test_windows);
    g_test_add_func("/sparse/epilogues", test_epilogues);
    g_test_add_func("/sparse/products", test_products);
    g_test_add_func("/sparse/recurrent", test_recurrent);
    g_test_add_func("/sparse/rule", test_rule);
    return g_test_run();
}
