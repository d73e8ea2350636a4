/* Students of small models: most steps of vectors are there whatever the widths, and do not make a student of two
 * channels where twelve are few enough operations. What takes too long becomes narrower, as far as that helps. */
#include <string.h>

#include "data/data.h"
#include "prune/student.h"
#include "run_model.h"

/* A model takes `floor` and the part of the dense one's weights that it has. */
typedef struct {
    double floor, dense;
    int asked;
} Times;

static int64_t weights_of(const HnModel *m)
{
    int64_t n = 0;
    for (guint i = 0; i < m->graph->weights->len; i++)
        n += ((const HnValue *)m->graph->weights->pdata[i])->weight->n;
    return n;
}

static gboolean take_time(gpointer data, const HnModel *m, double *part, G_GNUC_UNUSED GError **error)
{
    Times *t = data;
    t->asked++;
    *part = t->floor + (double)weights_of(m) / t->dense;
    return TRUE;
}

/* The first student of a model of two layers, through which 48 channels go. */
static HnStudent first_student(Times *t, double most, const HnNarrower *known, HnNarrower *narrower, double *flops)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 17\n%1 = Flatten(%x:f32[N,3,6,6])\n%2 = Gemm(%1, a:f32[108,48])\n"
                                      "%3 = Relu(%2)\n%y = Gemm(%3, b:f32[48,4])\n");
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    HnValue *in[] = { m->graph->inputs->pdata[0] };
    g_autoptr(HnData) data = hn_data_open("random:24", in, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    const HnStudentOptions o = { .backend = &hn_backend_ref,
                                 .threads = 1,
                                 .data = data,
                                 .n = 16,
                                 .part = 0.25,
                                 .time = t != NULL ? take_time : NULL,
                                 .time_data = t,
                                 .most_time = most,
                                 .narrower = known };
    if (t != NULL)
        t->dense = (double)weights_of(m);
    g_autoptr(GPtrArray) made = hn_students_new(m, &o, flops, narrower, &error);
    g_assert_no_error(error);
    HnStudent s = *(const HnStudent *)made->pdata[0];
    s.model = NULL;
    return s;
}

static void test_few_channels(void)
{
    double flops;
    HnNarrower narrower;
    const HnStudent t = first_student(NULL, 0, NULL, &narrower, &flops);
    g_assert_cmpstr(t.how, ==, "channels");
    g_assert_cmpfloat(t.flops, <=, 0.25 * flops);
    g_assert_cmpint(t.weights, >=, 10 * (108 + 4));
    g_assert_true(isnan(t.time));
}

static void test_too_slow(void)
{
    double flops;
    HnNarrower narrower, again;
    const HnStudent wide = first_student(NULL, 0, NULL, &narrower, &flops);
    Times plain = { 0 }, fixed = { .floor = 10 }, unasked = { 0 };
    /* fast enough: nothing changes */
    const HnStudent fast = first_student(&plain, 0.3, NULL, &narrower, &flops);
    g_assert_cmpint(fast.weights, ==, wide.weights);
    g_assert_cmpint(fast.narrower, ==, 0);
    g_assert_cmpfloat(fast.time, ==, fast.as_wide);
    /* too slow: no more than it takes, and who knows how it was makes the same without asking */
    const HnStudent slow = first_student(&plain, 0.17, NULL, &narrower, &flops);
    g_assert_cmpint(slow.narrower, >, 0);
    g_assert_cmpint(slow.weights, <, wide.weights);
    g_assert_cmpfloat(slow.time, <=, 0.17);
    g_assert_cmpfloat(slow.as_wide, >, 0.17);
    g_assert_cmpint(narrower.times[0], ==, slow.narrower);
    const HnStudent same = first_student(&unasked, 0.17, &narrower, &again, &flops);
    g_assert_cmpint(same.weights, ==, slow.weights);
    g_assert_cmpint(again.times[0], ==, slow.narrower);
    g_assert_cmpint(unasked.asked, ==, 0);
    /* where that hardly helps it stays as it is */
    const HnStudent kept = first_student(&fixed, 0.3, NULL, &narrower, &flops);
    g_assert_cmpint(kept.weights, ==, wide.weights);
    g_assert_cmpint(kept.narrower, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune-student/few_channels", test_few_channels);
    g_test_add_func("/prune-student/too_slow", test_too_slow);
    return g_test_run();
}
