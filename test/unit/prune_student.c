/* Students of small models: most steps of vectors are there whatever the widths, and do not make a student of two
 * channels where twelve are few enough operations. */
#include "data/data.h"
#include "prune/student.h"
#include "run_model.h"

static void test_few_channels(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 17\n%1 = Flatten(%x:f32[N,3,6,6])\n%2 = Gemm(%1, a:f32[108,48])\n"
                                      "%3 = Relu(%2)\n%y = Gemm(%3, b:f32[48,4])\n");
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    HnValue *in[] = { m->graph->inputs->pdata[0] };
    g_autoptr(HnData) data = hn_data_open("random:24", in, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    const HnStudentOptions o = { .backend = &hn_backend_ref, .threads = 1, .data = data, .n = 16, .part = 0.25 };
    double flops;
    g_autoptr(GPtrArray) made = hn_students_new(m, &o, &flops, &error);
    g_assert_no_error(error);
    const HnStudent *t = made->pdata[0];
    g_assert_cmpstr(t->how, ==, "channels");
    g_assert_cmpfloat(t->flops, <=, 0.25 * flops);
    g_assert_cmpint(t->weights, >=, 10 * (108 + 4));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune-student/few_channels", test_few_channels);
    return g_test_run();
}
