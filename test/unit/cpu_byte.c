/*
 * Convolutions of bytes against ref, to the last bit: each kernel, at the level of instructions that there is.
 */
#include <string.h>

#include "base/cpu.h"
#include "cpu/byte_tile.h"
#include "run_model.h"

typedef struct {
    const char *name;
    gboolean found;
} Wanted;

static void find_kernel(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    Wanted *w = data;
    w->found |= s->kernel != NULL && strcmp(s->kernel->name, w->name) == 0;
}

/* Bytes of the whole range; every fifth is one of its ends. */
static GPtrArray *bytes_for(const HnSession *s, uint64_t seed)
{
    GPtrArray *in = test_inputs(s, seed);
    HnRng rng = hn_rng(seed + 77);
    for (guint k = 0; k < in->len; k++) {
        HnTensor *t = in->pdata[k];
        for (gsize i = 0; i < t->bytes; i++)
            ((uint8_t *)t->data)[i] =
                (uint8_t)(i % 5 == 0 ? (t->dtype == HN_I8 ? 127 : 255) + (int)(i & 1) : hn_rng_int(&rng, 0, 255));
    }
    return in;
}

/* The same bytes as ref's for each number of threads; returns whether `kernel` computed them. */
static gboolean judge(const char *text, const char *kernel)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = bytes_for(ref, 5);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    Wanted w = { .name = kernel };
    for (int threads = 1; threads <= 3; threads++) {
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        for (int run = 0; run < 2; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            for (guint i = 0; i < want->len; i++)
                test_assert_close(got->pdata[i], want->pdata[i], 0, 0, text);
        }
        hn_session_foreach_step(s, find_kernel, &w);
    }
    return w.found;
}

/* ConvInteger's sums are what all others begin with; QLinearConv rounds them. */
static void test_winograd(void)
{
    static const struct {
        int n, in, h, w, out;
        const char *attrs, *fill;
    } cases[] = {
        { 1, 64, 28, 28, 64, "pads=[1,1,1,1]", "-128,127" }, { 1, 47, 40, 41, 63, "pads=[1,1,1,1]", "-128,127" },
        { 2, 80, 27, 16, 96, "pads=[1,1,1,1]", "-128,127" }, { 1, 64, 33, 32, 33, "pads=[1,0,2,1]", "-128,127" },
        { 1, 96, 20, 20, 128, "pads=[1,1,1,1]", "-9,127" },  { 1, 64, 53, 23, 64, "", "-128,-128" },
        { 1, 48, 28, 28, 64, "pads=[1,1,1,1]", "127,127" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int k = 0; k < 4; k++) {
            const char *x = k % 2 == 0 ? "u8" : "i8", *z = k % 2 == 0 ? "131" : "-3";
            g_autofree char *graph = g_strdup_printf("opset 17 graph g(%%x:%s[%d,%d,%d,%d]) -> (%%y) { %%y = ", x,
                                                     cases[i].n, cases[i].in, cases[i].h, cases[i].w);
            g_autofree char *w =
                g_strdup_printf("w:i8[%d,%d,3,3]=fill(7,%s)", cases[i].out, cases[i].in, cases[i].fill);
            g_autofree char *text =
                k < 2 ? g_strdup_printf("%s ConvInteger(%%x, %s, xz:%s={%s}) %s }", graph, w, x, z, cases[i].attrs)
                      : g_strdup_printf("%s QLinearConv(%%x, xs:f32={0.0078125}, xz:%s={%s}, %s, ws:f32={0.03125}, "
                                        "wz:i8={0}, ys:f32={4}, yz:%s) %s }",
                                        graph, x, z, w, k == 2 ? "u8={99}" : "i8={0}", cases[i].attrs);
            const gboolean has = hn_cpu_isa() >= HN_ISA_AVX2 && !hn_byte_has_blocks();
            if (judge(text, "cpu.byte_winograd") != has) {
                g_test_message("another kernel computes %s", text);
                g_test_fail();
            }
        }
}

/* Sums that 26 bits do not hold are left to the direct kernel. */
static void test_large_sums(void)
{
    g_assert_false(judge("opset 17 graph g(%x:u8[1,128,16,16]) -> (%y) { %y = ConvInteger(%x, "
                         "w:i8[64,128,3,3]=fill(1,127,127)) pads=[1,1,1,1] }",
                         "cpu.byte_winograd"));
}

/* Blocks of channels of each width, whole and in part, sources that end behind the last channel, all strides. */
static void test_depthwise(void)
{
    static const int channels[] = { 8, 13, 16, 24, 31, 40, 48, 70, 96 };
    static const char *const attrs[] = { "pads=[1,1,1,1]", "pads=[0,1,2,0] strides=[2,2]", "dilations=[2,1]" };
    for (guint i = 0; i < G_N_ELEMENTS(channels); i++)
        for (guint k = 0; k < G_N_ELEMENTS(attrs); k++)
            for (int kernel = 3; kernel <= 5; kernel += 2) {
                const int c = channels[i];
                const char *type = kernel == 3 ? "u8" : "i8";
                g_autofree char *text = g_strdup_printf(
                    "opset 17 graph g(%%x:%s[2,%d,11,39]) -> (%%y, %%z) { %%y = QLinearConv(%%x, xs:f32={0.0078125}, "
                    "xz:%s={3}, w:i8[%d,1,%d,%d]=fill(7,-128,127), ws:f32={0.03125}, wz:i8={0}, ys:f32={0.5}, "
                    "yz:u8={99}) "
                    "group=%d %s %%z = ConvInteger(%%x, v:i8[%d,1,%d,%d]=fill(8,-128,127), zz:%s={9}) group=%d %s }",
                    type, c, type, c, kernel, kernel, c, attrs[k], c, kernel, kernel, type, c, attrs[k]);
                g_assert_true(judge(text, "cpu.byte_depthwise"));
            }
}

/* Lines that are shorter than a strip of rows, longer ones, windows that are read where they are. */
static void test_lines(void)
{
    static const struct {
        int in, h, w, out, kernel;
        const char *attrs;
    } cases[] = {
        { 16, 40, 1, 40, 1, "" },
        { 16, 9, 3, 17, 3, "pads=[1,1,1,1]" },
        { 3, 31, 47, 16, 3, "strides=[2,2]" },
        { 20, 7, 7, 33, 3, "" },
        { 64, 5, 13, 64, 1, "" },
        { 5, 23, 2, 70, 3, "pads=[1,1,1,1]" },
        { 24, 30, 5, 9, 2, "strides=[2,1]" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "opset 17 graph g(%%x:u8[2,%d,%d,%d]) -> (%%y, %%z) { %%y = ConvInteger(%%x, "
            "w:i8[%d,%d,%d,%d]=fill(7,-128,127), "
            "cz:u8={77}) %s %%z = QLinearConv(%%x, xs:f32={0.0078125}, xz:u8={3}, v:i8[%d,%d,%d,%d]=fill(9,-128,127), "
            "ws:f32={0.03125}, wz:i8={0}, ys:f32={2}, yz:u8={0}) %s }",
            cases[i].in, cases[i].h, cases[i].w, cases[i].out, cases[i].in, cases[i].kernel,
            MIN(cases[i].kernel, cases[i].w), cases[i].attrs, cases[i].out, cases[i].in, cases[i].kernel,
            MIN(cases[i].kernel, cases[i].w), cases[i].attrs);
        g_assert_true(judge(text, "cpu.byte_conv"));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/byte/winograd", test_winograd);
    g_test_add_func("/byte/large_sums", test_large_sums);
    g_test_add_func("/byte/depthwise", test_depthwise);
    g_test_add_func("/byte/lines", test_lines);
    return g_test_run();
}
