/*
 * Training in halves on the CPU: what is rounded, how losses are scaled, and what a skipped step leaves alone.
 */
#include <string.h>

#include "run_model.h"
#include "train/loss_scale.h"
#include "train/trainer.h"

#define NET                                                                                               \
    "opset 17 graph g(%x:f32[8,2,6,6]) -> (%y) { %c = Conv(%x, w:f32[4,2,3,3]) "                          \
    "%n = BatchNormalization(%c, s:f32[4], t:f32[4], m:f32[4], v:f32[4]) %r = Relu(%n) %f = Flatten(%r) " \
    "%y = Gemm(%f, u:f32[64,5], z:f32[5]) }"

/* Doubled behind `every` good steps in a row, halved behind a bad one, within bounds. */
static void test_scale(void)
{
    g_autoptr(HnTensor) state = hn_loss_scale_new(3);
    const float *v = state->data;
    static const struct {
        gboolean finite;
        float scale;
    } steps[] = { { FALSE, 32768 }, { TRUE, 32768 },  { TRUE, 32768 }, { TRUE, 65536 },  { TRUE, 65536 },
                  { TRUE, 65536 },  { FALSE, 32768 }, { TRUE, 32768 }, { TRUE, 32768 },  { FALSE, 16384 },
                  { TRUE, 16384 },  { TRUE, 16384 },  { TRUE, 32768 }, { FALSE, 16384 }, { FALSE, 8192 } };
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        hn_loss_scale_heard(state, steps[i].finite);
        g_assert_cmpfloat(v[HN_LOSS_SCALE], ==, steps[i].scale);
    }
    g_assert_cmpfloat(v[HN_LOSS_SCALE_SKIPPED], ==, 5);
    for (int i = 0; i < 40; i++)
        hn_loss_scale_heard(state, FALSE);
    g_assert_cmpfloat(v[HN_LOSS_SCALE], ==, 1);
    for (int i = 0; i < 200; i++)
        hn_loss_scale_heard(state, TRUE);
    g_assert_cmpfloat(v[HN_LOSS_SCALE], ==, 1 << 24);
}

/* Each result is a half: what ref makes of halves, bit by bit. Else results in between are not rounded. */
static void test_rounded(void)
{
    static const char *const texts[] = {
        "opset 17 graph g(%x:f16[7,9]) -> (%y) { %a = Mul(%x, w:f16[7,9]) %t = Transpose(%a) %y = Mul(%t, u:f16[9,7]) "
        "}",
        "opset 17 graph g(%x:f16[7,9]) -> (%y) { %a = Mul(%x, w:f16[7,9]) %r = Reshape(%a, s:i64[2]={9,7}) "
        "%t = Transpose(%r) %y = Mul(%t, %x) }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(HnModel) m = test_model(texts[i]);
        for (guint k = 0; k < m->graph->weights->len; k++) {
            HnValue *w = m->graph->weights->pdata[k];
            if (w->weight->dtype != HN_F16)
                continue;
            HnTensor *t = test_random(HN_F16, w->weight->ndim, w->weight->dims, k);
            hn_tensor_unref(w->weight);
            w->weight = t;
        }
        g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(HnSession) rounded =
            test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .round_halves = TRUE });
        g_autoptr(HnSession) wide = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) in = test_inputs(ref, 3), want = test_run(ref, in), got = test_run(rounded, in);
        g_autoptr(GPtrArray) other = test_run(wide, in);
        g_assert_true(hn_tensor_equal(got->pdata[0], want->pdata[0]));
        g_assert_false(hn_tensor_equal(other->pdata[0], want->pdata[0]));
    }
}

typedef struct {
    HnDevice *device;
    GPtrArray *objectives;
    HnUpdateRule *rule;
    HnTrainer *trainer;
    HnTensor *x, *labels;
} Lesson;

static void lesson_open(Lesson *l, HnDtype half)
{
    g_autoptr(GError) error = NULL;
    l->device = hn_device_new(&hn_backend_cpu, &error);
    l->objectives = hn_objectives_parse("ce", &error);
    l->rule = hn_update_rule_parse("adamw", &error);
    l->rule->ema = 0.9;
    HnModel *work = test_model(NET);
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < work->graph->weights->len; i++) {
        const HnValue *v = work->graph->weights->pdata[i];
        for (int64_t k = 0; k < v->weight->n; k++)
            hn_tensor_set_f64(v->weight, k, hn_rng_range(&rng, strcmp(v->name, "v") == 0 ? 0.5 : -0.5, 0.5));
    }
    const HnValue *x = work->graph->inputs->pdata[0];
    int64_t dims[HN_MAX_RANK];
    g_assert_true(hn_type_is_fixed(x->type, dims));
    l->x = test_random(HN_F32, 4, dims, 3);
    l->labels = test_tensor("i64[8]={0,1,2,3,4,0,1,2}");
    const HnTrainerOptions o = {
        .objectives = l->objectives, .rule = l->rule, .in = (HnType *[]){ x->type }, .threads = 1, .half = half
    };
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

static HnStepLoss step(Lesson *l)
{
    g_autoptr(GError) error = NULL;
    HnStepLoss made;
    hn_trainer_step(l->trainer, &l->x, &l->labels, 0.01, &made, &error);
    g_assert_no_error(error);
    return made;
}

/* f16 with scaled losses learns what f32 does. */
static void test_learns(void)
{
    Lesson halves, whole;
    HnStepLoss a = { 0 }, b = { 0 };
    int64_t skipped;
    lesson_open(&halves, HN_F16);
    lesson_open(&whole, HN_UNDEFINED);
    g_assert_cmpfloat(hn_trainer_scale(whole.trainer, &skipped), ==, 1);
    for (int i = 0; i < 60; i++) {
        a = step(&halves);
        b = step(&whole);
    }
    g_assert_cmpfloat(b.loss, <, 0.1);
    g_assert_cmpfloat(a.loss, <, 0.12);
    g_assert_cmpfloat(hn_trainer_scale(halves.trainer, &skipped), <=, 65536);
    lesson_close(&halves);
    lesson_close(&whole);
}

/* A scale that is too large: nothing but the scale is another one behind the step, whose loss is what it was. */
static void test_skipped(void)
{
    Lesson l;
    lesson_open(&l, HN_F16);
    while (step(&l).skipped) {
    }
    const guint n = hn_trainer_n_states(l.trainer);
    const char *name;
    HnTensor *scale = hn_trainer_state(l.trainer, n - 1, &name);
    g_assert_cmpstr(name, ==, "loss scale");
    g_autoptr(GPtrArray) before = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    hn_tensor_set_f64(scale, HN_LOSS_SCALE, 1 << 24);
    hn_tensor_set_f64(scale, HN_LOSS_SCALE_SKIPPED, 0);
    for (guint i = 0; i + 1 < n; i++)
        g_ptr_array_add(before, hn_tensor_copy(hn_trainer_state(l.trainer, i, &name), NULL, NULL));
    const HnStepLoss first = step(&l), second = step(&l);
    int64_t skipped;
    g_assert_true(first.skipped && second.skipped && isfinite(first.loss) && !isfinite(first.norm));
    g_assert_cmpfloat(first.loss, ==, second.loss);
    g_assert_cmpfloat(hn_trainer_scale(l.trainer, &skipped), ==, 1 << 22);
    g_assert_cmpint(skipped, ==, 2);
    for (guint i = 0; i + 1 < n; i++)
        g_assert_true(hn_tensor_equal(before->pdata[i], hn_trainer_state(l.trainer, i, &name)));
    lesson_close(&l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/halves/scale", test_scale);
    g_test_add_func("/halves/rounded", test_rounded);
    g_test_add_func("/halves/learns", test_learns);
    g_test_add_func("/halves/skipped", test_skipped);
    return g_test_run();
}
