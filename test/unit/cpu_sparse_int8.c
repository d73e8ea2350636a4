/*
 * Products of bytes with weights that are mostly 0: lists against the weights that they are made of, kernels against
 * ref to the last bit, at every level of instructions that the machine has.
 */
#include <string.h>

#include "base/rng.h"
#include "cpu/sparse/sparse_bytes.h"
#include "run_model.h"

static const HnIsa levels[] = { HN_ISA_AVX2, HN_ISA_AVX512, HN_ISA_VNNI, HN_ISA_AMX };

static gboolean is_there(HnIsa level)
{
    return level == HN_ISA_AMX ? hn_cpu_isa() >= HN_ISA_AVX2 : level <= hn_cpu_isa();
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* Adds what steps hold to w[column][segs * depth]. */
static void read_lists(const HnSparseTile *t, const HnSparseColumns *of, int *w)
{
    const int half = hn_int8_cols() / 2, vector = half * HN_INT8_GROUP;
    for (int64_t k = 0; k < t->steps; k++) {
        const uint8_t *at = t->lists + k * 2 * vector;
        const int8_t *weights = (const int8_t *)at + vector;
        const HnSparsePlace place = t->places[k];
        g_assert_cmpint(place.seg, <, of->segs);
        for (int i = 0; i < vector; i++) {
            const int64_t byte = place.at + at[i];
            g_assert_cmpint(byte, <, of->depth);
            if (weights[i] != 0)
                w[i / HN_INT8_GROUP * of->length + place.seg * of->depth + byte] += weights[i];
            const int pair = weights[i] + weights[i ^ 1];
            g_assert_true(!hn_int8_saturates() || (pair >= -128 && pair <= 128) ||
                          (weights[i] < 0) != (weights[i ^ 1] < 0));
        }
    }
}

static void check_lists(HnRng *rng, int64_t segs, int64_t depth, double zeros, int largest)
{
    const int cols = (int)hn_rng_int(rng, 1, hn_int8_cols());
    const int64_t length = segs * depth;
    g_autofree int8_t *w = g_malloc0((gsize)(cols * length));
    g_autofree int *got = g_new0(int, (gsize)(hn_int8_cols() * length));
    g_autofree int32_t *begin = g_new0(int32_t, (gsize)hn_int8_cols());
    for (int64_t i = 0; i < cols * length; i++)
        w[i] = (int8_t)(hn_rng_double(rng) < zeros ? 0 : hn_rng_int(rng, -largest - 1, largest));
    const HnSparseColumns of = { .w = w, .length = length, .cols = cols, .segs = segs, .depth = depth };
    const HnSparseLists lists = hn_sparse_bytes_count(&of);
    const gsize size = hn_sparse_bytes_size(&lists);
    g_autofree uint8_t *packed = g_malloc(size + 1);
    packed[size] = 0x5a;
    hn_sparse_bytes_pack(&of, &lists, packed);
    g_assert_cmpint(packed[size], ==, 0x5a);
    HnSparseTile halves[2];
    const int n = hn_sparse_bytes_open(halves, &lists, packed, begin, cols);
    g_assert_cmpint(n, ==, cols > hn_int8_cols() / 2 ? 2 : 1);
    for (int i = 0; i < n; i++) {
        g_assert_true(halves[i].begin == begin + i * hn_int8_cols() / 2);
        read_lists(&halves[i], &of, got + i * hn_int8_cols() / 2 * length);
    }
    for (int64_t i = 0; i < cols * length; i++)
        g_assert_cmpint(got[i], ==, w[i]);
}

static void test_lists(void)
{
    static const int64_t depths[] = { 64, 65, 79, 128, 300 };
    HnRng rng = hn_rng(1);
    for (guint l = 0; l < G_N_ELEMENTS(levels); l++) {
        if (!is_there(levels[l]))
            continue;
        const HnIsa before = hn_cpu_limit_isa(levels[l]);
        g_assert_true(hn_sparse_bytes_fit(64));
        g_assert_false(hn_sparse_bytes_fit(15));
        for (guint d = 0; d < G_N_ELEMENTS(depths); d++)
            for (int segs = 1; segs <= 3; segs++) {
                check_lists(&rng, segs, depths[d], 0.9, 127);
                check_lists(&rng, segs, depths[d], 0.5, 30);
                check_lists(&rng, segs, depths[d], 0, 127);
                check_lists(&rng, segs, depths[d], 1, 0);
            }
        hn_cpu_limit_isa(before);
    }
}

/* Columns that share their zeros take no more steps than full ones do, and as many as the fullest column needs. */
static void test_steps(void)
{
    int8_t w[16 * 256] = { 0 };
    const HnSparseColumns of = { .w = w, .length = 256, .cols = hn_int8_cols() / 2, .segs = 1, .depth = 256 };
    if (!hn_sparse_bytes_fit(256))
        return;
    g_assert_cmpint(hn_sparse_bytes_count(&of).steps[0], ==, 0);
    for (int j = 0; j < of.cols; j++)
        for (int i = 0; i < 4; i++)
            w[j * 256 + 16 + 3 * i] = 5;
    g_assert_cmpint(hn_sparse_bytes_count(&of).steps[0], ==, 1);
    w[17] = 1; /* a fifth one */
    g_assert_cmpint(hn_sparse_bytes_count(&of).steps[0], ==, 2);
    w[17] = 0;
    w[255] = 1; /* another window */
    g_assert_cmpint(hn_sparse_bytes_count(&of).steps[0], ==, 2);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* Part `zeros` of weight w's bytes becomes `zero`. */
static void blank(HnModel *m, double zeros, int zero)
{
    HnTensor *w = (HnTensor *)hn_graph_find(m->graph, "w")->weight;
    HnRng rng = hn_rng(11);
    for (gsize i = 0; i < w->bytes; i++)
        if (hn_rng_double(&rng) < zeros)
            ((uint8_t *)w->data)[i] = (uint8_t)zero;
}

/* The same bytes as ref's for one to three threads; whether `kernel` computed them. */
static gboolean judge(const char *text, const char *kernel, double zeros, int zero)
{
    g_autoptr(HnModel) m = test_model(text);
    blank(m, zeros, zero);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 5);
    HnRng rng = hn_rng(78);
    const gboolean float_inputs = ((HnTensor *)in->pdata[0])->dtype == HN_F32;
    for (guint k = 0; k < in->len; k++) {
        HnTensor *t = in->pdata[k];
        for (gsize i = 0; i < t->bytes && t->dtype != HN_F32; i++)
            ((uint8_t *)t->data)[i] = (uint8_t)hn_rng_int(&rng, 0, i % 3 == 0 ? 1 : 255) * (i % 3 == 0 ? 255 : 1);
    }
    g_autoptr(GPtrArray) want = test_run(ref, in);
    gboolean found = FALSE;
    for (int threads = 1; threads <= 3; threads++) {
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < want->len; i++)
                test_assert_close(got->pdata[i], want->pdata[i], float_inputs ? 1e-6 : 0, float_inputs ? 1e-5 : 0,
                                  text);
        }
        found = test_has_kernel(s, kernel) || found;
    }
    return found;
}

/* At each level; none where matrix units are. */
static void expect(const char *text, const char *kernel, double zeros, int zero, gboolean wanted)
{
    for (guint l = 0; l < G_N_ELEMENTS(levels); l++) {
        if (!is_there(levels[l]))
            continue;
        const HnIsa before = hn_cpu_limit_isa(levels[l]);
        const gboolean found = judge(text, kernel, zeros, zero);
        if (!hn_int8_has_blocks() && found != wanted) {
            g_test_message("level %s: %s computes %s", hn_cpu_isa_name(levels[l]), found ? kernel : "another kernel",
                           text);
            g_test_fail();
        }
        hn_cpu_limit_isa(before);
    }
}

/* Bytes and what zero points make of them; ends of what bytes and weights are; windows that are copied, and that are
 * read where they lie; outputs that fill no panel. */
static void test_convolutions(void)
{
    static const struct {
        int n, in, h, w, out, kh, kw;
        const char *attrs;
    } cases[] = {
        { 1, 128, 13, 13, 96, 1, 1, "" },
        { 2, 79, 9, 11, 50, 1, 1, "" },
        { 1, 128, 17, 16, 17, 1, 1, "strides=[2,2]" },
        { 1, 65, 10, 12, 66, 3, 3, "pads=[1,1,1,1]" },
        { 1, 64, 15, 14, 64, 3, 3, "pads=[0,1,2,1] strides=[2,1]" },
        { 1, 72, 12, 13, 33, 3, 3, "dilations=[2,2]" },
        { 2, 80, 40, 1, 48, 5, 1, "pads=[2,0,2,0]" },
        { 1, 256, 8, 7, 128, 2, 2, "group=2" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int k = 0; k < 4; k++) {
            const char *x = k % 2 == 0 ? "u8" : "i8", *z = k % 2 == 0 ? "131" : "-3";
            const char *fill = k == 3 ? "-128,-128" : k == 2 ? "127,127" : "-128,127";
            const gboolean groups = strstr(cases[i].attrs, "group") != NULL;
            g_autofree char *w = g_strdup_printf("w:i8[%d,%d,%d,%d]=fill(7,%s)", cases[i].out,
                                                 cases[i].in / (groups ? 2 : 1), cases[i].kh, cases[i].kw, fill);
            g_autofree char *text = g_strdup_printf(
                "opset 17 graph g(%%x:%s[%d,%d,%d,%d]) -> (%%y, %%z) { %%y = ConvInteger(%%x, %s, xz:%s={%s}) %s "
                "%%z = QLinearConv(%%x, xs:f32={0.0078125}, xz, %%w, ws:f32={0.03125}, wz:i8={0}, ys:f32={4}, "
                "yz:u8={99}, b:i32[%d]=fill(3,-9999,9999)) %s }",
                x, cases[i].n, cases[i].in, cases[i].h, cases[i].w, w, x, z, cases[i].attrs, cases[i].out,
                cases[i].attrs);
            expect(text, "cpu.sparse_int8_conv", 0.97, 0, TRUE);
        }
}

/* One row, rows that fill no tile, more than a block of them; weights with a zero point, of 9 bits; few zeros. */
static void test_products(void)
{
    for (int rows = 1; rows <= 300; rows = rows * 2 + 1) {
        g_autofree char *text = g_strdup_printf(
            "opset 17 graph g(%%x:u8[%d,257], %%f:u8[%d,257]) -> (%%y, %%z) { %%y = MatMulInteger(%%x, "
            "w:i8[257,130]=fill(7,-128,127), xz:u8={131}) %%z = QLinearMatMul(%%f, xs:f32={0.0078125}, xz, %%w, "
            "ws:f32={0.03125}, wz:i8={0}, ys:f32={4}, yz:u8={99}) }",
            rows, rows);
        expect(text, "cpu.sparse_int8_matmul", 0.97, 0, TRUE);
    }
    expect("opset 17 graph g(%x:i8[40,192]) -> (%y) { %y = MatMulInteger(%x, w:u8[192,64]=fill(7,0,255), xz:i8={-3}, "
           "wz:u8={140}) }",
           "cpu.sparse_int8_matmul", 0.97, 140, TRUE);
    expect("opset 17 graph g(%x:u8[40,192]) -> (%y) { %y = MatMulInteger(%x, w:u8[192,64]=fill(7,0,255), xz:u8={3}, "
           "wz:u8={5}) }",
           "cpu.sparse_int8_matmul", 0.97, 5, TRUE);
    expect("opset 17 graph g(%x:u8[40,192]) -> (%y) { %y = MatMulInteger(%x, w:i8[192,64]=fill(7,-128,127)) }",
           "cpu.sparse_int8_matmul", 0.4, 0, FALSE);
    expect("opset 17 graph g(%x:u8[40,12]) -> (%y) { %y = MatMulInteger(%x, w:i8[12,64]=fill(7,-128,127)) }",
           "cpu.sparse_int8_matmul", 0.99, 0, FALSE);
}

/* Panels of few zeros beside others: outputs from 64 on keep all of their weights. */
static void test_panels(void)
{
    for (guint l = 0; l < G_N_ELEMENTS(levels); l++) {
        if (!is_there(levels[l]))
            continue;
        const HnIsa before = hn_cpu_limit_isa(levels[l]);
        g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:u8[1,128,9,9]) -> (%y) { %y = ConvInteger(%x, "
                                          "w:i8[320,128,1,1]=fill(7,-128,127)) }");
        HnTensor *w = (HnTensor *)hn_graph_find(m->graph, "w")->weight;
        for (gsize i = 64 * 128; i < w->bytes; i++)
            ((int8_t *)w->data)[i] = (int8_t)(i % 16 == 0 ? ((int8_t *)w->data)[i] : 0);
        g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 2 });
        g_autoptr(GPtrArray) in = test_inputs(ref, 5);
        g_autoptr(GPtrArray) want = test_run(ref, in);
        g_autoptr(GPtrArray) got = test_run(s, in);
        test_assert_close(got->pdata[0], want->pdata[0], 0, 0, "panels");
        g_assert_true(test_has_kernel(s, "cpu.sparse_int8_conv") || hn_int8_has_blocks());
        hn_cpu_limit_isa(before);
    }
}

/* The same weights for one row, which lists do not pay for, and for many, which they do: two packs. */
static void test_shared(void)
{
    expect("opset 17 graph g(%x:u8[1,128], %z:u8[90,128]) -> (%y, %v) { %y = MatMulInteger(%x, "
           "w:i8[128,320]=fill(7,-128,127)) %v = MatMulInteger(%z, %w) }",
           "cpu.int8_matmul", 0.6, 0, TRUE);
    expect("opset 17 graph g(%x:u8[1,128], %z:u8[90,128]) -> (%y, %v) { %y = MatMulInteger(%x, "
           "w:i8[128,320]=fill(7,-128,127)) %v = MatMulInteger(%z, %w) }",
           "cpu.sparse_int8_matmul", 0.75, 0, TRUE);
}

/* An integer LSTM in both directions, of one sequence and of several, whose sums are exact: gates differ by roundings
 * of floats alone. */
static void test_lstm(void)
{
    for (int batch = 1; batch <= 13; batch += 12) {
        g_autofree char *text = g_strdup_printf(
            "opset 17 opset com.microsoft 1 graph g(%%x:f32[4,%d,96]) -> (%%y, %%h, %%c) { %%y, %%h, %%c = "
            "com.microsoft::DynamicQuantizeLSTM(%%x, w:i8[2,96,288]=fill(7,-60,60), r:i8[2,72,288]=fill(8,-60,60), "
            "b:f32[2,576]=fill(4,-1,1), -, -, -, -, ws:f32[2]={0.001,0.002}, wz:i8[2]={0,0}, rs:f32[2]={0.001,0.002}, "
            "rz:i8[2]={0,0}) hidden_size=72 direction='bidirectional' }",
            batch);
        expect(text, "cpu.dynamicquantizelstm", 0.95, 0, TRUE);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sparse_int8/lists", test_lists);
    g_test_add_func("/sparse_int8/steps", test_steps);
    g_test_add_func("/sparse_int8/convolutions", test_convolutions);
    g_test_add_func("/sparse_int8/products", test_products);
    g_test_add_func("/sparse_int8/panels", test_panels);
    g_test_add_func("/sparse_int8/shared", test_shared);
    g_test_add_func("/sparse_int8/lstm", test_lstm);
    return g_test_run();
}
