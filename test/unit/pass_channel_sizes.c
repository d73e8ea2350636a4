/*
 * Channels of models whose sizes are symbols, or are more than what can be inferred; channels behind what stays along
 * another axis.
 */
#include "pass/lib/channel_removal.h"
#include "run_model.h"

static char *described(HnModel *m)
{
    g_autoptr(GError) error = NULL;
    HnChannels *c = hn_channels_new(m, HN_BOND_FATE, NULL, &error);
    g_assert_no_error(error);
    hn_channels_lock_fixed(c, &error);
    g_assert_no_error(error);
    char *text = hn_channels_describe(c);
    hn_channels_free(c);
    return text;
}

/* A pool of n x n, and what is said of channels that are moved behind it. */
static void check_pool(int n, const char *want)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        g_strdup_printf("opset 17 graph g(%%x:f32[1,3,H,W]) -> (%%y) { %%1 = Conv(%%x, w:f32[4,3,1,1]) "
                        "%%2 = MaxPool(%%1) kernel_shape=[%d,%d] strides=[%d,%d] %%3 = Reshape(%%2, s:i64[3]={0,4,-1}) "
                        "%%4 = ReduceMax(%%3) axes=[2] keepdims=0 %%y = Gemm(%%4, z:f32[4,3]) }",
                        n, n, n, n);
    g_autoptr(HnModel) m = test_model(text);
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_autofree char *got = described(m);
    g_assert_cmpstr(got, ==, want);
}

/* Small images have nothing left behind the pool that would show where channels are: larger ones do, or nobody does. */
static void test_empty(void)
{
    check_pool(6, "4: 1[1] 2[1] 3[1] 4[1] w[0] z[0]\n"
                  "3: y[1] z[1]; locked: 'y' is an output of the model\n");
    check_pool(300, "4: 1[1] 2[1] w[0]; locked: '3' (Reshape): where it moves channels is not known\n"
                    "3: y[1] z[1]; locked: 'y' is an output of the model\n");
}

/* A file may say sizes that depend on numbers that are fed: these are no reason to refuse what is elsewhere. */
static void test_declared(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[2,3], %n:i64[3]) -> (%y, %p) { %1 = MatMul(%x, "
                                      "w:f32[3,4]) %y = MatMul(%1, z:f32[4,3]) "
                                      "%q = Reshape(%x, %n) %p = Neg(%q) }");
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, 3, (const int64_t[]){ 2, 1, 3 });
    hn_value_set_type(hn_graph_find(m->graph, "q"), type);
    g_autofree char *text = described(m);
    g_assert_true(g_str_has_prefix(text, "4: 1[1] w[1] z[0]\n"));
}

/* A row of a constant in front of others, and a number for each element: what comes of them stays along all axes, but
 * not what layers make of it. */
static void test_behind(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 17\n"
                                      "%1 = MatMul(%x:f32[1,4,6], w:f32[6,3])\n"
                                      "%2 = Concat(t:f32[1,1,3], %1) axis=1\n"
                                      "%3 = Add(%2, p:f32[1,5,3])\n"
                                      "%4 = MatMul(%3, u:f32[3,4])\n"
                                      "%5 = Relu(%4)\n"
                                      "%6 = MatMul(%5, v:f32[4,3])\n"
                                      "%7 = Add(%6, %3)\n"
                                      "%y = MatMul(%7, z:f32[3,2])\n");
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_autofree char *text = described(m);
    g_assert_cmpstr(text, ==,
                    "1: 1[2]x3 3[1]x5 w[1]x3; locked: it does not come from weights that could be smaller\n"
                    "4: 4[2] 5[2] u[1] v[0]\n"
                    "3: 6[2] v[1]; locked: '7' (Add): operands have channels along different axes\n"
                    "2: y[2] z[1]; locked: 'y' is an output of the model\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pass/channel_sizes/empty", test_empty);
    g_test_add_func("/pass/channel_sizes/behind", test_behind);
    g_test_add_func("/pass/channel_sizes/declared", test_declared);
    return g_test_run();
}
