/*
 * A step of training on the CUDA backend over the emulated driver: weights and moments behind it are the CPU's.
 */
#include <string.h>

#include "../unit/run_model.h"
#include "backends.h"
#include "cuda/core/cuda_backend.h"
#include "train/trainer.h"

static const struct {
    const char *name, *text;
} nets[] = {
    { "digits",
      "opset 17 graph g(%x:f32[2,1,8,8]) -> (%y) { %a = Conv(%x, w:f32[4,1,3,3]) pads=[1,1,1,1] "
      "%n = BatchNormalization(%a, s:f32[4], t:f32[4], m:f32[4], v:f32[4]) %r = Relu(%n) "
      "%p = MaxPool(%r) kernel_shape=[2,2] strides=[2,2] %f = Flatten(%p) %y = Gemm(%f, q:f32[64,5], z:f32[5]) }" },
    { "resnet", "opset 17 graph g(%x:f32[2,4,6,6]) -> (%y) { %a = Conv(%x, w:f32[4,4,3,3]) pads=[1,1,1,1] "
                "%n = BatchNormalization(%a, s:f32[4], t:f32[4], m:f32[4], v:f32[4]) %r = Relu(%n) "
                "%c = Conv(%r, u:f32[4,4,3,3]) pads=[1,1,1,1] %d = Add(%c, %x) %e = Relu(%d) "
                "%p = GlobalAveragePool(%e) %f = Flatten(%p) %y = Gemm(%f, q:f32[4,5], z:f32[5]) }" },
    { "mobilenet",
      "opset 17 graph g(%x:f32[2,4,6,6]) -> (%y) { %a = Conv(%x, w:f32[8,4,1,1]) %r = Clip(%a, lo:f32[]={0}, "
      "hi:f32[]={6}) %c = Conv(%r, u:f32[8,1,3,3]) group=8 strides=[2,2] pads=[1,1,1,1] "
      "%n = BatchNormalization(%c, s:f32[8], t:f32[8], m:f32[8], v:f32[8]) %h = HardSwish(%n) "
      "%p = GlobalAveragePool(%h) %f = Flatten(%p) %y = Gemm(%f, q:f32[8,5], z:f32[5]) }" },
    { "transformer", "opset 17 graph g(%i:i64[2,6]) -> (%y) { %e = Gather(w:f32[4,8], %i) "
                     "%n = LayerNormalization(%e, s:f32[8], t:f32[8]) axis=-1 %q = MatMul(%n, a:f32[8,8]) "
                     "%k = MatMul(%n, b:f32[8,8]) %l = MatMul(%n, c:f32[8,8]) %kt = Transpose(%k) perm=[0,2,1] "
                     "%g = MatMul(%q, %kt) %p = Softmax(%g) axis=-1 %o = MatMul(%p, %l) %j = Add(%o, %e) "
                     "%h = MatMul(%j, d:f32[8,16]) %u = Tanh(%h) %z = MatMul(%u, f:f32[16,8]) %r = Add(%z, %j) "
                     "%y = ReduceMean(%r) axes=[1] keepdims=0 }" },
    { "lstm",
      "opset 17 graph g(%x:f32[5,2,3]) -> (%y) { %o, %h, %c = LSTM(%x, w:f32[1,16,3], r:f32[1,16,4], b:f32[1,32]) "
      "hidden_size=4 %f = Squeeze(%h, axis:i64[1]={0}) %y = Gemm(%f, q:f32[4,5], z:f32[5]) }" },
};

static HnModel *model_of(const char *text)
{
    HnModel *m = test_model(text);
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnValue *v = m->graph->weights->pdata[i];
        const double least = strcmp(v->name, "v") == 0 ? 0.5 : -0.5;
        if (v->weight->ndim == 0 || !hn_dtype_in(v->weight->dtype, HN_T_FLOATS))
            continue;
        for (int64_t k = 0; k < v->weight->n; k++)
            hn_tensor_set_f64(v->weight, k, hn_rng_range(&rng, least, least + 1));
    }
    return m;
}

/* A trainer behind some steps on the same batch. */
static HnTrainer *train(const char *text, const HnBackend *backend, const GPtrArray *objectives,
                        const HnUpdateRule *rule, int steps, HnStepLoss *made)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDevice) device = hn_device_new(backend, &error);
    g_assert_no_error(error);
    HnModel *work = model_of(text);
    const HnType *t = ((HnValue *)work->graph->inputs->pdata[0])->type;
    int64_t dims[HN_MAX_RANK];
    g_assert_true(hn_type_is_fixed(t, dims));
    g_autoptr(HnTensor) x = test_random(t->dtype, t->rank, dims, 5);
    for (int64_t i = 0; t->dtype == HN_I64 && i < x->n; i++)
        hn_tensor_set_f64(x, i, (double)(i % 4));
    g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->rank, dims);
    const HnTrainerOptions o = { .objectives = objectives, .rule = rule, .in = (HnType *[]){ type }, .threads = 1 };
    HnTrainer *trainer = hn_trainer_new(work, device, &o, &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) labels = hn_tensor_new(HN_I64, 1, (int64_t[]){ 2 }, NULL, NULL);
    hn_tensor_set_f64(labels, 0, 1);
    hn_tensor_set_f64(labels, 1, 3);
    for (int i = 0; i < steps; i++) {
        hn_trainer_step(trainer, &x, &labels, 0.01, made, &error);
        g_assert_no_error(error);
    }
    return trainer;
}

/* An optimizer divides by the gradient's size: what is left of rounding is small beside the rate, not beside a weight.
 */
static void check(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    g_autoptr(GPtrArray) objectives = hn_objectives_parse("ce", NULL);
    static const char *const rules[] = { "sgd:lr=0.01:momentum=0.9", "adamw:lr=0.01" };
    for (guint r = 0; r < G_N_ELEMENTS(rules); r++) {
        HnUpdateRule *rule = hn_update_rule_parse(rules[r], NULL);
        HnStepLoss here, there;
        HnTrainer *cpu = train(nets[i].text, &hn_backend_cpu, objectives, rule, 2, &here);
        HnTrainer *cuda = train(nets[i].text, hn_backend_cuda(0), objectives, rule, 2, &there);
        g_assert_cmpfloat_with_epsilon(here.loss, there.loss, 1e-5 * (1 + fabs(here.loss)));
        g_assert_cmpuint(hn_trainer_n_states(cpu), ==, hn_trainer_n_states(cuda));
        for (guint k = 0; k < hn_trainer_n_states(cpu); k++) {
            const char *name, *same;
            const HnTensor *want = hn_trainer_state(cpu, k, &name), *got = hn_trainer_state(cuda, k, &same);
            g_assert_cmpstr(name, ==, same);
            test_assert_close(got, want, 1e-5, r == 0 ? 1e-6 : 1e-4, name);
        }
        hn_trainer_free(cpu);
        hn_trainer_free(cuda);
        hn_update_rule_free(rule);
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_test_init(&argc, &argv, NULL);
    g_autoptr(HnDevice) device = hn_cuda_has_device(0, &error) ? hn_device_new(hn_backend_cuda(0), &error) : NULL;
    if (device == NULL) {
        g_print("1..0 # SKIP %s\n", error->message);
        return 0;
    }
    for (guint i = 0; i < G_N_ELEMENTS(nets); i++) {
        g_autofree char *path = g_strconcat("/cuda/train/", nets[i].name, NULL);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), check);
    }
    return g_test_run();
}
