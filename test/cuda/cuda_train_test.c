/*
 * A step of training on the CUDA backend over the emulated driver: weights and moments behind it are the CPU's, and
 * stay on the device.
 */
#include <string.h>

#include "../unit/run_model.h"
#include "backends.h"
#include "counted.h"
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

/* Somebody who trains one of the networks, always on the same batch. */
typedef struct {
    HnDevice *device;
    HnCudaDriver counting;
    GPtrArray *objectives;
    HnUpdateRule *rule;
    HnTrainer *trainer;
    HnTensor *x, *labels;
    HnStepLoss made;
} Lesson;

typedef struct {
    const char *rule;
    double clip, ema;
    int micro;
    HnDtype half;
} Setting;

static void lesson_open(Lesson *l, const char *text, const HnBackend *backend, const Setting *how)
{
    g_autoptr(GError) error = NULL;
    *l = (Lesson){ .device = hn_device_new(backend, &error) };
    g_assert_no_error(error);
    if (backend->memory != NULL)
        count_calls(l->device, &l->counting);
    HnModel *work = model_of(text);
    const HnType *t = ((HnValue *)work->graph->inputs->pdata[0])->type;
    int64_t dims[HN_MAX_RANK];
    g_assert_true(hn_type_is_fixed(t, dims));
    l->x = test_random(t->dtype, t->rank, dims, 5);
    for (int64_t i = 0; t->dtype == HN_I64 && i < l->x->n; i++)
        hn_tensor_set_f64(l->x, i, (double)(i % 4));
    l->labels = hn_tensor_new(HN_I64, 1, (int64_t[]){ 2 }, NULL, NULL);
    hn_tensor_set_f64(l->labels, 0, 1);
    hn_tensor_set_f64(l->labels, 1, 3);
    l->objectives = hn_objectives_parse("ce", NULL);
    l->rule = hn_update_rule_parse(how->rule, NULL);
    l->rule->clip = how->clip;
    l->rule->ema = how->ema;
    g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->rank, dims);
    const HnTrainerOptions o = { .objectives = l->objectives,
                                 .rule = l->rule,
                                 .in = (HnType *[]){ type },
                                 .micro = how->micro,
                                 .half = how->half,
                                 .scale_every = 2,
                                 .threads = 1 };
    l->trainer = hn_trainer_new(work, l->device, &o, &error);
    g_assert_no_error(error);
}

static void lesson_close(Lesson *l)
{
    hn_trainer_free(l->trainer);
    hn_update_rule_free(l->rule);
    g_ptr_array_unref(l->objectives);
    hn_tensor_unref(l->x);
    hn_tensor_unref(l->labels);
    hn_device_unref(l->device);
}

static void step(Lesson *l)
{
    g_autoptr(GError) error = NULL;
    hn_trainer_step(l->trainer, &l->x, &l->labels, 0.01, &l->made, &error);
    g_assert_no_error(error);
}

static void fetch(Lesson *l)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_trainer_fetch(l->trainer, &error));
    g_assert_no_error(error);
}

/* Weights, moments of the optimizer, averages and running moments; the norm of what is apart at most atol. */
static void assert_states(Lesson *a, Lesson *b, double rtol, double atol)
{
    fetch(a);
    fetch(b);
    g_assert_cmpuint(hn_trainer_n_states(a->trainer), ==, hn_trainer_n_states(b->trainer));
    for (guint k = 0; k < hn_trainer_n_states(a->trainer); k++) {
        const char *name, *same;
        const HnTensor *got = hn_trainer_state(a->trainer, k, &name), *want = hn_trainer_state(b->trainer, k, &same);
        g_assert_cmpstr(name, ==, same);
        if (rtol > 0)
            test_assert_close(got, want, rtol, atol, name);
        else
            g_assert_true(hn_tensor_equal(got, want));
    }
}

static GPtrArray *copies_of_states(Lesson *l)
{
    GPtrArray *copies = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    fetch(l);
    for (guint k = 0; k < hn_trainer_n_states(l->trainer); k++) {
        const char *name;
        g_ptr_array_add(copies, hn_tensor_copy(hn_trainer_state(l->trainer, k, &name), NULL, NULL));
    }
    return copies;
}

static void put_states(Lesson *l, const GPtrArray *from, int64_t steps)
{
    for (guint k = 0; k < from->len; k++) {
        const char *name;
        HnTensor *to = hn_trainer_state(l->trainer, k, &name);
        memcpy(to->data, ((const HnTensor *)from->pdata[k])->data, to->bytes);
    }
    hn_trainer_wrote(l->trainer, steps);
}

/* Nothing is left to the host. */
static void assert_all_there(const Lesson *l)
{
    HnSessionStats stats;
    hn_session_stats(hn_trainer_session(l->trainer), &stats);
    g_assert_cmpuint(stats.ref_steps, ==, 0);
}

/* As the CPU does. An optimizer divides by the gradient's size: what is left of rounding is small beside the rate, not
 * beside a weight. */
static void check(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    static const Setting settings[] = {
        { .rule = "sgd:lr=0.01:momentum=0.9" },
        { .rule = "adamw:lr=0.01" },
        { .rule = "sgd:lr=0.01:momentum=0.9", .clip = 1, .ema = 0.9, .micro = 2 },
    };
    for (guint r = 0; r < G_N_ELEMENTS(settings); r++) {
        Lesson here, there;
        if (settings[r].micro > 1 && strstr(nets[i].text, "LSTM") != NULL) /* whose batch is not the first axis */
            continue;
        lesson_open(&here, nets[i].text, &hn_backend_cpu, &settings[r]);
        lesson_open(&there, nets[i].text, hn_backend_cuda(0), &settings[r]);
        for (int k = 0; k < 2; k++) {
            step(&here);
            step(&there);
        }
        g_assert_cmpfloat_with_epsilon(here.made.loss, there.made.loss, 1e-5 * (1 + fabs(here.made.loss)));
        assert_states(&there, &here, 1e-5, r == 1 ? 1e-4 : 1e-6);
        lesson_close(&here);
        lesson_close(&there);
    }
}

/* Behind the first step a step copies its batch and numbers there and its loss back, and is one recording, whose bits
 * are those of steps between which all states go to the host and back. */
static void check_copies(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    static const Setting how = { .rule = "adamw:lr=0.01", .clip = 1, .ema = 0.9 };
    Lesson stays, goes;
    lesson_open(&goes, nets[i].text, hn_backend_cuda(0), &how);
    lesson_open(&stays, nets[i].text, hn_backend_cuda(0), &how);
    assert_all_there(&stays);
    for (int k = 0; k < 4; k++) {
        fetch(&goes);
        hn_trainer_wrote(goes.trainer, k);
        step(&goes);
        start_counting();
        step(&stays);
        if (k >
            0) /* of the batch, labels, their factor, and numbers of the step; of the loss, the norm, and complaints */
            assert_calls(4, 3, 1, k == 1, 1);
    }
    g_assert_cmpfloat(goes.made.loss, ==, stays.made.loss);
    assert_states(&stays, &goes, 0, 0);
    lesson_close(&stays);
    lesson_close(&goes);
}

static void count_optimizers(const HnStep *s, int depth, gpointer n)
{
    (void)depth;
    *(int *)n += s->kernel != NULL && s->kernel->run_many != NULL;
}

/* All weights of a step are updated by one launch, and all averages by another one, but where steps are timed. */
static void test_together(void)
{
    static const Setting settings[] = {
        { .rule = "adamw:lr=0.01", .clip = 1, .ema = 0.9 },
        { .rule = "adamw:lr=0.01", .ema = 0.9 },
        { .rule = "sgd:lr=0.01:momentum=0.9", .ema = 0.9 },
        { .rule = "lion:lr=0.01", .ema = 0.9, .micro = 2 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(settings); i++) {
        Lesson timed, l;
        int n = 0;
        lesson_open(&timed, nets[0].text, hn_backend_cuda(0), &settings[i]);
        lesson_open(&l, nets[0].text, hn_backend_cuda(0), &settings[i]);
        hn_session_foreach_step(hn_trainer_session(l.trainer), count_optimizers, &n);
        g_assert_cmpint(n, ==, settings[i].micro > 1 ? 0 : 2 * 5);
        HnTimer timer = { .tick_ns = 1 };
        hn_session_set_timer(hn_trainer_session(timed.trainer), &timer);
        start_counting();
        step(&timed);
        const int each = calls.launches;
        start_counting();
        step(&l);
        if (n > 0)
            g_assert_cmpint(calls.launches, ==, each - n + 2);
        assert_states(&l, &timed, 0, 0);
        hn_session_set_timer(hn_trainer_session(timed.trainer), NULL);
        g_free(timer.spans);
        lesson_close(&timed);
        lesson_close(&l);
    }
}

/* In f16 the CPU rounds as the device does: the same steps are skipped, and scales grow at the same time. In bf16 there
 * is nothing to scale. */
static void check_halves(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    static const Setting settings[] = {
        { .rule = "sgd:lr=0.01:momentum=0.9", .half = HN_F16 },
        { .rule = "sgd:lr=0.01:momentum=0.9", .half = HN_F16, .clip = 1, .ema = 0.9, .micro = 2 },
        { .rule = "sgd:lr=0.01:momentum=0.9", .half = HN_BF16 },
    };
    for (guint r = 0; r < G_N_ELEMENTS(settings); r++) {
        const gboolean f16 = settings[r].half == HN_F16;
        gboolean grown = FALSE;
        int64_t skipped = 0, same;
        Lesson here, there;
        if (settings[r].micro > 1 && strstr(nets[i].text, "LSTM") != NULL)
            continue;
        lesson_open(&here, nets[i].text, &hn_backend_cpu, &settings[r]);
        lesson_open(&there, nets[i].text, hn_backend_cuda(0), &settings[r]);
        assert_all_there(&there);
        double before = hn_trainer_scale(here.trainer, &skipped);
        for (int k = 0; k < 8; k++) {
            step(&here);
            start_counting();
            step(&there);
            if (settings[r].micro == 0 && k > 0 && !there.made.skipped)
                assert_calls(4, f16 ? 3 : 2, 1, k == 1, 1);
            const double scale = hn_trainer_scale(here.trainer, &skipped);
            g_assert_true(here.made.skipped == there.made.skipped && here.made.skipped == (scale < before));
            g_assert_cmpfloat(scale, ==, hn_trainer_scale(there.trainer, &same));
            g_assert_cmpint(skipped, ==, same);
            g_assert_cmpfloat_with_epsilon(here.made.loss, there.made.loss, (f16 ? 1e-3 : 2e-2) * here.made.loss);
            grown = grown || scale > before;
            before = scale;
        }
        g_assert_true(grown == f16 && (skipped > 0) == f16);
        if (f16)
            assert_states(&there, &here, 1e-2, 2e-3);
        lesson_close(&here);
        lesson_close(&there);
    }
}

/* What a checkpoint takes with it is all there is. */
static void test_resume(void)
{
    static const Setting settings[] = {
        { .rule = "adamw:lr=0.01", .ema = 0.9 },
        { .rule = "adamw:lr=0.01", .clip = 1, .micro = 2 },
        { .rule = "adamw:lr=0.01", .half = HN_F16 },
    };
    for (guint r = 0; r < G_N_ELEMENTS(settings); r++) {
        Lesson through, first, second;
        lesson_open(&through, nets[0].text, hn_backend_cuda(0), &settings[r]);
        lesson_open(&first, nets[0].text, hn_backend_cuda(0), &settings[r]);
        lesson_open(&second, nets[0].text, hn_backend_cuda(0), &settings[r]);
        step(&second); /* somewhere else */
        for (int k = 0; k < 5; k++)
            step(&through);
        for (int k = 0; k < 2; k++)
            step(&first);
        g_autoptr(GPtrArray) states = copies_of_states(&first);
        put_states(&second, states, 2);
        for (int k = 0; k < 3; k++)
            step(&second);
        assert_states(&second, &through, 0, 0);
        lesson_close(&through);
        lesson_close(&first);
        lesson_close(&second);
    }
}

/* A batch with NaN changes nothing, whatever it went through, and the first node that makes it is named. */
static void test_not_finite(void)
{
    static const Setting settings[] = {
        { .rule = "adamw:lr=0.01", .ema = 0.9 },
        { .rule = "adamw:lr=0.01", .clip = 1, .micro = 2 },
        { .rule = "adamw:lr=0.01", .half = HN_F16 },
    };
    for (guint r = 0; r < G_N_ELEMENTS(settings); r++) {
        Lesson l;
        lesson_open(&l, nets[0].text, hn_backend_cuda(0), &settings[r]);
        step(&l);
        g_autoptr(GPtrArray) before = copies_of_states(&l);
        float *x = l.x->data;
        const float right = x[9];
        x[9] = NAN;
        step(&l);
        g_assert_false(isfinite(l.made.loss));
        g_autofree char *node = hn_trainer_find_nonfinite(l.trainer, &l.x, &l.labels);
        g_assert_cmpstr(node, ==, settings[r].half == HN_F16 ? "x_f16" : "a");
        g_autoptr(GPtrArray) after = copies_of_states(&l);
        for (guint k = 0; k < before->len; k++)
            g_assert_true(hn_tensor_equal(before->pdata[k], after->pdata[k]));
        x[9] = right;
        step(&l);
        g_assert_true(isfinite(l.made.loss));
        lesson_close(&l);
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
        g_autofree char *copies = g_strconcat("/cuda/train/copies/", nets[i].name, NULL);
        g_test_add_data_func(copies, GUINT_TO_POINTER(i), check_copies);
        g_autofree char *halves = g_strconcat("/cuda/train/halves/", nets[i].name, NULL);
        g_test_add_data_func(halves, GUINT_TO_POINTER(i), check_halves);
    }
    g_test_add_func("/cuda/train/together", test_together);
    g_test_add_func("/cuda/train/resume", test_resume);
    g_test_add_func("/cuda/train/not-finite", test_not_finite);
    return g_test_run();
}
