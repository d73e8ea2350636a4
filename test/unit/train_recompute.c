/*
 * Recomputation: limits are kept, forecasts are exact, and steps are the same to the bit with it and without.
 */
#include <string.h>

#include "../fence.h"
#include "base/rng.h"
#include "run_model.h"
#include "train/trainer.h"

#define STEPS 3

/* Convolutions with norms, activations and a sum; smooth activations; attention with movement and views between
 * products. */
static const char *const models[] = {
    "opset 17 graph g(%x:f32[16,3,24,24]) -> (%y) { "
    "%c1 = Conv(%x, a:f32[16,3,3,3]) pads=[1,1,1,1] "
    "%n1 = BatchNormalization(%c1, s1:f32[16], t1:f32[16], m1:f32[16], v1:f32[16]) %r1 = Relu(%n1) "
    "%c2 = Conv(%r1, b:f32[16,16,3,3]) pads=[1,1,1,1] "
    "%n2 = BatchNormalization(%c2, s2:f32[16], t2:f32[16], m2:f32[16], v2:f32[16]) %r2 = Relu(%n2) "
    "%c3 = Conv(%r2, c:f32[16,16,3,3]) pads=[1,1,1,1] "
    "%n3 = BatchNormalization(%c3, s3:f32[16], t3:f32[16], m3:f32[16], v3:f32[16]) "
    "%sum = Add(%n3, %r1) %r3 = Relu(%sum) %p = GlobalAveragePool(%r3) %f = Flatten(%p) "
    "%y = Gemm(%f, d:f32[16,4], e:f32[4]) }",

    "opset 17 graph g(%x:f32[256,32]) -> (%y) { %h = Gemm(%x, a:f32[32,128], b:f32[128]) %t = Tanh(%h) "
    "%k = Gemm(%t, c:f32[128,128], e:f32[128]) %s = Sigmoid(%k) %q = Mul(%k, %s) "
    "%l = Gemm(%q, f:f32[128,128], i:f32[128]) %z = Softplus(%l) %y = Gemm(%z, j:f32[128,4], o:f32[4]) }",

    "opset 17 graph g(%x:f32[8,32,32]) -> (%y) { "
    "%l = LayerNormalization(%x, s:f32[32], t:f32[32]) %q = MatMul(%l, a:f32[32,32]) %k = MatMul(%l, b:f32[32,32]) "
    "%w = MatMul(%l, c:f32[32,32]) %kt = Transpose(%k) perm=[0,2,1] %m = MatMul(%q, %kt) %p = Softmax(%m) axis=-1 "
    "%o = MatMul(%p, %w) %r = Add(%o, %x) %l2 = LayerNormalization(%r, s2:f32[32], t2:f32[32]) "
    "%h = MatMul(%l2, d:f32[32,128]) %e = Erf(%h) %g = Mul(%h, %e) %u = MatMul(%g, f:f32[128,32]) "
    "%v = Add(%u, %r) %y = ReduceMean(%v) axes=[1] keepdims=0 }",
};

static HnModel *model_of(const char *text)
{
    HnModel *m = test_model(text);
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnValue *v = m->graph->weights->pdata[i];
        const double least = v->name[0] == 'v' ? 0.5 : -0.25;
        for (int64_t k = 0; k < v->weight->n; k++)
            hn_tensor_set_f64(v->weight, k, hn_rng_range(&rng, least, least + 0.5));
    }
    return m;
}

typedef struct {
    GPtrArray *objectives;
    HnUpdateRule *rule;
    HnTrainer *trainer;
    HnTensor *in, *target;
} Lesson;

static gboolean lesson_init_on(Lesson *l, const HnBackend *backend, const char *text, int threads, gboolean checkpoint,
                               int segments, gsize limit, GError **error)
{
    g_autoptr(HnDevice) device = hn_device_new(backend, NULL);
    HnModel *work = model_of(text);
    g_autoptr(HnType) type = hn_type_ref(((HnValue *)work->graph->inputs->pdata[0])->type);
    int64_t dims[HN_MAX_RANK];
    hn_type_is_fixed(type, dims);
    *l = (Lesson){ .objectives = hn_objectives_parse("mse", NULL), .rule = hn_update_rule_parse("adamw", NULL) };
    l->in = test_random(HN_F32, type->rank, dims, 5);
    const HnTrainerOptions o = { .objectives = l->objectives,
                                 .rule = l->rule,
                                 .in = &type,
                                 .threads = threads,
                                 .checkpoint = checkpoint,
                                 .segments = segments,
                                 .limit = limit };
    l->trainer = hn_trainer_new(work, device, &o, error);
    if (l->trainer == NULL)
        return FALSE;
    const HnType *t = hn_trainer_target(l->trainer, 0);
    hn_type_is_fixed(t, dims);
    l->target = test_random(HN_F32, t->rank, dims, 6);
    return TRUE;
}

static gboolean lesson_init(Lesson *l, const char *text, int threads, gboolean checkpoint, int segments, gsize limit,
                            GError **error)
{
    return lesson_init_on(l, &hn_backend_cpu, text, threads, checkpoint, segments, limit, error);
}

static void lesson_open(Lesson *l, const char *text, int threads, gboolean checkpoint, int segments, gsize limit)
{
    g_autoptr(GError) error = NULL;
    lesson_init(l, text, threads, checkpoint, segments, limit, &error);
    g_assert_no_error(error);
    for (int i = 0; i < STEPS; i++) {
        HnStepLoss made;
        hn_trainer_step(l->trainer, &l->in, &l->target, 0.01, &made, &error);
        g_assert_no_error(error);
    }
}

static void lesson_clear(Lesson *l)
{
    hn_trainer_free(l->trainer);
    hn_tensor_unref(l->in);
    hn_tensor_unref(l->target);
    hn_update_rule_free(l->rule);
    g_ptr_array_unref(l->objectives);
}

static gsize measured(const Lesson *l)
{
    HnSessionStats stats;
    hn_session_stats(hn_trainer_session(l->trainer), &stats);
    g_assert_cmpuint(hn_trainer_arena(l->trainer), ==, stats.arena_bytes);
    return stats.arena_bytes + hn_trainer_bytes(l->trainer);
}

/* Weights, states of the optimizer and running moments of both. */
static void same_states(const Lesson *a, const Lesson *b)
{
    g_assert_cmpuint(hn_trainer_n_states(a->trainer), ==, hn_trainer_n_states(b->trainer));
    for (guint i = 0; i < hn_trainer_n_states(a->trainer); i++) {
        const char *name, *other;
        const HnTensor *x = hn_trainer_state(a->trainer, i, &name), *y = hn_trainer_state(b->trainer, i, &other);
        g_assert_cmpstr(name, ==, other);
        g_assert_cmpmem(x->data, x->bytes, y->data, y->bytes);
    }
}

static void count_again(const HnStep *s, int depth, gpointer data)
{
    (void)depth;
    if (s->origin == NULL || !hn_is_again(s->origin))
        return;
    ++*(guint *)data;
    g_assert_cmpint(hn_step_graph_phase(s->origin), ==, HN_PHASE_BACKWARD);
    g_assert_false(g_str_has_suffix(s->origin->name, HN_AGAIN_SUFFIX HN_AGAIN_SUFFIX));
}

static void test_limits(void)
{
    guint again = 0; /* steps: what joins another node's step counts for that */
    for (guint i = 0; i < G_N_ELEMENTS(models); i++)
        for (int threads = 1; threads <= 2; threads++) {
            Lesson plain, small;
            HnForecast f;
            lesson_open(&plain, models[i], threads, FALSE, 0, 0);
            hn_trainer_forecast(plain.trainer, &f);
            g_assert_cmpuint(f.needed, ==, measured(&plain));
            g_assert_cmpuint(f.nodes, ==, 0);
            const gsize own = hn_trainer_bytes(plain.trainer), limit = own + (f.needed - own) * 9 / 10;
            lesson_open(&small, models[i], threads, TRUE, 0, limit);
            hn_trainer_forecast(small.trainer, &f);
            g_assert_cmpuint(f.plain, ==, measured(&plain));
            g_assert_cmpuint(f.needed, ==, measured(&small));
            g_assert_cmpuint(f.needed, <=, limit);
            g_assert_cmpuint(f.nodes, >, 0);
            g_assert_true(f.part > 0 && f.part < 0.073); /* the dearest first would take 0.078 */
            hn_session_foreach_step(hn_trainer_session(small.trainer), count_again, &again);
            same_states(&plain, &small);
            lesson_clear(&plain);
            lesson_clear(&small);
        }
    g_assert_cmpuint(again, >, 0);
}

/* Where nothing asks for it, what is cheap is made again, and nothing where that is not allowed. */
static void test_cheap(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++)
        for (int limited = 0; limited <= 1; limited++) {
            Lesson plain, cheap;
            HnForecast f;
            lesson_open(&plain, models[i], 1, FALSE, 0, 0);
            lesson_open(&cheap, models[i], 1, TRUE, 0, limited ? measured(&plain) : 0);
            hn_trainer_forecast(cheap.trainer, &f);
            g_assert_cmpuint(f.plain, ==, measured(&plain));
            g_assert_cmpuint(f.needed, ==, measured(&cheap));
            g_assert_true(f.nodes == 0 ? f.needed == f.plain : f.needed < f.plain);
            g_assert_cmpfloat(f.part, <=, 0.1);
            same_states(&plain, &cheap);
            lesson_clear(&plain);
            lesson_clear(&cheap);
        }
}

static void cut_into(const char *text, int segments)
{
    Lesson plain, cut;
    HnForecast f;
    lesson_open(&plain, text, 1, FALSE, 0, 0);
    lesson_open(&cut, text, 1, TRUE, segments, 0);
    hn_trainer_forecast(cut.trainer, &f);
    g_assert_cmpuint(f.nodes, >, 0);
    g_assert_cmpuint(f.needed, ==, measured(&cut));
    guint again = 0;
    hn_session_foreach_step(hn_trainer_session(cut.trainer), count_again, &again);
    g_assert_cmpuint(again, >, 0);
    same_states(&plain, &cut);
    lesson_clear(&plain);
    lesson_clear(&cut);
}

static void test_segments(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++)
        for (int segments = 1; segments <= 3; segments++)
            cut_into(models[i], segments);
}

/* What is made again is read by the gradient of the weights alone, through a view as a matrix. */
static void test_views(void)
{
    static const char *const makers[] = { "HardSwish", "HardSigmoid", "Tanh", "LeakyRelu" };
    for (guint i = 0; i < G_N_ELEMENTS(makers); i++) {
        g_autofree char *text =
            g_strdup_printf("opset 17 graph g(%%x:f32[8,32,32]) -> (%%y) { %%h = MatMul(%%x, a:f32[32,128]) "
                            "%%n = BatchNormalization(%%h, s:f32[32], t:f32[32], m:f32[32], v:f32[32]) %%g = %s(%%n) "
                            "%%u = MatMul(%%g, b:f32[128,64]) %%i = %s(%%u) %%w = MatMul(%%i, c:f32[64,32]) "
                            "%%y = ReduceMean(%%w) axes=[1] keepdims=0 }",
                            makers[i], makers[i]);
        cut_into(text, 1);
    }
}

static void test_refused(void)
{
    for (int checkpoint = 0; checkpoint <= 1; checkpoint++) {
        g_autoptr(GError) error = NULL;
        Lesson l;
        g_assert_false(lesson_init(&l, models[0], 1, checkpoint == 1, 0, 50000, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        g_assert_nonnull(strstr(error->message, "a step needs "));
        lesson_clear(&l);
    }
}

/* On a device whose memory has no room for the step as it is, but for what is left of it. */
static void test_device(void)
{
    static const char *const text =
        "opset 17 graph g(%x:f32[7168,16]) -> (%y) { %1 = Gemm(%x, a:f32[16,8192], b:f32[8192]) %2 = Tanh(%1) "
        "%3 = Exp(%2) %4 = Sin(%3) %5 = Exp(%4) %6 = Sin(%5) %7 = Exp(%6) %8 = Sin(%7) %9 = Exp(%8) "
        "%y = Gemm(%9, c:f32[8192,4], e:f32[4]) }";
    const gsize room = (gsize)1 << 30; /* of the device */
    g_autoptr(GError) error = NULL;
    Lesson l;
    HnForecast f;
    lesson_init_on(&l, &hn_backend_fence, text, 1, TRUE, 0, room * 15 / 16, &error);
    g_assert_no_error(error);
    hn_trainer_forecast(l.trainer, &f);
    g_assert_cmpuint(f.plain, >, room);
    g_assert_cmpuint(f.needed, <=, room * 15 / 16);
    lesson_clear(&l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/train/recompute/limits", test_limits);
    g_test_add_func("/train/recompute/cheap", test_cheap);
    g_test_add_func("/train/recompute/segments", test_segments);
    g_test_add_func("/train/recompute/views", test_views);
    g_test_add_func("/train/recompute/refused", test_refused);
    g_test_add_func("/train/recompute/device", test_device);
    return g_test_run();
}
