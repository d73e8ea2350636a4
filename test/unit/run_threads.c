/*
 * Threads beside each other: eight sessions of different models at once, each with threads of its own, and samples that
 * worker threads load ahead. ThreadSanitizer looks on in scripts/test --long threads.
 */
#include <string.h>

#include <glib/gstdio.h>

#include "data/data.h"
#include "data/npz.h"
#include "run_model.h"

#define SESSIONS 8
#define RUNS 12

static const char *const models[] = {
    "opset 17 graph g(%x:f32[64,64]) -> (%y) { %y = MatMul(%x, %x) }",
    "opset 17 graph g(%x:f32[1,16,24,24], %w:f32[16,16,3,3]) -> (%y) { %y = Conv(%x, %w) pads=[1,1,1,1] }",
    "opset 17 graph g(%x:f32[128,300]) -> (%y, %z) { %y = Softmax(%x) axis=1 %s = ReduceSum(%x) %z = Exp(%s) }",
    "opset 17 graph g(%x:f32[8,32,40]) -> (%y) { %t = Transpose(%x) perm=[2,0,1] %r = Relu(%t) %y = Add(%r, %t) }",
};

typedef struct {
    HnModel *model;
    uint64_t seed;
    int wrong; /* runs that differ from the first one */
} Lane;

static HnTensor **run_once(HnSession *s, GPtrArray *in)
{
    g_autoptr(GError) error = NULL;
    HnTensor **out = g_new0(HnTensor *, hn_session_n_outputs(s) + 1);
    gboolean ok = hn_session_run(s, (HnTensor *const *)in->pdata, out, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    for (int k = 0; k < hn_session_n_outputs(s); k++) {
        HnTensor *copy = hn_tensor_copy(out[k], NULL, NULL);
        hn_tensor_unref(out[k]);
        out[k] = copy;
    }
    return out;
}

static gpointer run_lane(gpointer data)
{
    Lane *l = data;
    HnSession *s = test_session(l->model, &hn_backend_cpu, &(HnSessionOptions){ .threads = 4 });
    g_autoptr(GPtrArray) in = test_inputs(s, l->seed);
    g_autofree HnTensor **first = run_once(s, in);
    for (int i = 1; i < RUNS; i++) {
        g_autofree HnTensor **out = run_once(s, in);
        for (int k = 0; k < hn_session_n_outputs(s); k++) {
            l->wrong += !hn_tensor_equal(out[k], first[k]);
            hn_tensor_unref(out[k]);
        }
    }
    for (int k = 0; k < hn_session_n_outputs(s); k++)
        hn_tensor_unref(first[k]);
    hn_session_free(s);
    return NULL;
}

static void test_sessions(void)
{
    Lane lanes[SESSIONS];
    GThread *threads[SESSIONS];
    for (int i = 0; i < SESSIONS; i++)
        lanes[i] = (Lane){ test_model(models[i % (int)G_N_ELEMENTS(models)]), (uint64_t)i, 0 };
    for (int i = 0; i < SESSIONS; i++)
        threads[i] = g_thread_new("lane", run_lane, &lanes[i]);
    for (int i = 0; i < SESSIONS; i++) {
        g_thread_join(threads[i]);
        g_assert_cmpint(lanes[i].wrong, ==, 0);
        hn_model_free(lanes[i].model);
    }
}

/* Samples of a stored archive, by four worker threads: the first use of an array is that of them all. */
static void test_reader(void)
{
    g_autoptr(GError) error = NULL;
    const int64_t rows = 64;
    const char *const names[] = { "x", "label" };
    g_autoptr(HnTensor) x = test_random(HN_F32, 2, (int64_t[]){ rows, 33 }, 1);
    g_autoptr(HnTensor) label = test_random(HN_I64, 1, &rows, 2);
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL), *path = g_build_filename(folder, "x.npz", NULL);
    g_assert_true(hn_npz_write(path, names, (HnTensor *const[]){ x, label }, 2, NULL, &error));
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1,33]) -> (%y) { %y = Relu(%x) }");
    HnValue *in[] = { m->graph->inputs->pdata[0] };
    g_autoptr(HnData) d = hn_data_open(path, in, 1, &(HnDataOptions){ 0 }, &error);
    g_assert_no_error(error);
    g_autoptr(HnDataIter) it = hn_data_iter_new(d, &(HnDataIterOptions){ .batch = 1, .threads = 4 });
    for (int64_t i = 0; i < rows; i++) {
        g_autoptr(HnSample) s = hn_data_iter_next(it, &error);
        g_assert_no_error(error);
        g_assert_cmpint(memcmp(s->in[0]->data, (const float *)x->data + i * 33, 33 * sizeof(float)), ==, 0);
    }
    g_unlink(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/threads/sessions", test_sessions);
    g_test_add_func("/run/threads/reader", test_reader);
    return g_test_run();
}
