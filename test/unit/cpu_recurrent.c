/*
 * Recurrent layers whose steps are long enough for threads to share each of them: as ref has it, and the same bits for
 * every number of threads.
 */
#include <math.h>

#include "run_model.h"

/* Weights of the size that trained ones have: with larger ones errors grow from step to step. */
static void shrink(const HnTensor *w)
{
    float *data = w->data;
    for (int64_t i = 0; i < w->n; i++)
        data[i] /= sqrtf((float)w->dims[2]);
}

static void check(const char *text)
{
    g_autoptr(HnModel) m = test_model(text);
    shrink(hn_graph_find(m->graph, "w")->weight);
    shrink(hn_graph_find(m->graph, "r")->weight);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 7);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    g_autoptr(GPtrArray) one = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
        for (int run = 0; run < 3; run++) {
            g_autoptr(GPtrArray) got = test_run(s, in);
            if (one == NULL)
                one = g_ptr_array_ref(got);
            for (guint i = 0; i < want->len; i++) {
                const HnTensor *t = got->pdata[i], *first = one->pdata[i];
                test_assert_close(t, want->pdata[i], 1e-4, 2e-4, text);
                g_assert_cmpmem(t->data, t->bytes, first->data, first->bytes);
            }
        }
    }
}

/* One task, two tasks for up to four threads, more units than whole panels, several samples, sequences that end, the
 * state reset before and behind its product, peepholes. */
static void test_shared_steps(void)
{
    static const char *const cases[] = {
        "%y, %h, %c = LSTM(%x:f32[9,1,40], w:f32[1,1024,40], r:f32[1,1024,256], b:f32[1,2048]) "
        "hidden_size=256",
        "%y, %h, %c = LSTM(%x:f32[70,1,24], w:f32[1,520,24], r:f32[1,520,130], b:f32[1,1040], -, -, -, "
        "p:f32[1,390]) hidden_size=130 direction='reverse' clip=0.75",
        "%y, %h = LSTM(%x:f32[6,5,64], w:f32[2,800,64], r:f32[2,800,200]) hidden_size=200 "
        "direction='bidirectional'",
        "%y, %h = GRU(%x:f32[11,1,48], w:f32[1,768,48], r:f32[1,768,256], b:f32[1,1536]) hidden_size=256",
        "%y, %h = GRU(%x:f32[6,9,48], w:f32[1,600,48], r:f32[1,600,200], b:f32[1,1200], n:i32[9]={6,1,0,3,6,5,2,4,6}) "
        " hidden_size=200 linear_before_reset=1",
        "%y, %h = GRU(%x:f32[6,40,20], w:f32[2,480,20], r:f32[2,480,160]) hidden_size=160 "
        "direction='bidirectional'",
        "%y, %h = RNN(%x:f32[6,3,80], w:f32[1,400,80], r:f32[1,400,400], b:f32[1,800]) hidden_size=400",
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("opset 17\n%s\n", cases[i]);
        check(text);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/recurrent/shared-steps", test_shared_steps);
    return g_test_run();
}
