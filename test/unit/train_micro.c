/*
 * How many micro-batches: by memory, by limits, and never where samples have to do with each other.
 */
#include "run_model.h"
#include "train/gradient_sum.h"
#include "train/micro.h"

#define MB ((gsize)1 << 20)

static void test_parts(void)
{
    g_assert_cmpint(hn_micro_parts(10 * MB, MB, 64), ==, 1);      /* stays in the caches as it is */
    g_assert_cmpint(hn_micro_parts(60 * MB, MB, 64), ==, 4);      /* 15 MB each */
    g_assert_cmpint(hn_micro_parts(60 * MB, MB, 60), ==, 4);      /* a divisor, ... */
    g_assert_cmpint(hn_micro_parts(60 * MB, MB, 25), ==, 5);      /* ... the next one up */
    g_assert_cmpint(hn_micro_parts(60 * MB, 10 * MB, 64), ==, 2); /* parts of the size of weights gain little */
    g_assert_cmpint(hn_micro_parts(1000 * MB, MB, 16), ==, 4);    /* four samples are the least */
    g_assert_cmpint(hn_micro_parts(1000 * MB, MB, 7), ==, 1);     /* no part of four and more divides it */
    g_assert_cmpint(hn_micro_parts(1000 * MB, MB, 1), ==, 1);
}

static const struct {
    const char *text;
    gboolean apart;
} models[] = {
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y) { %a = MatMul(%x, w:f32[8,8]) %y = Relu(%a) }", TRUE },
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y) { %t = Transpose(%x) perm=[0,2,1] %a = MatMul(%x, %t) "
      "%p = Softmax(%a) axis=-1 %y = MatMul(%p, %x) }",
      TRUE },
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y) { %y = ReduceMean(%x) axes=[1] keepdims=0 }", TRUE },
    /* over the batch */
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y) { %y = Softmax(%x) axis=0 }", FALSE },
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y) { %m = ReduceMean(%x) axes=[0] keepdims=1 %y = Sub(%x, %m) }", FALSE },
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y, %z) { %y = Relu(%x) %z = ReduceMean(%x) axes=[0] keepdims=1 }", FALSE },
    { "opset 17 graph g(%x:f32[N,6,8]) -> (%y) { %y = ReduceSum(%x) keepdims=0 }", FALSE },
    { "opset 17 graph g(%x:f32[N,8]) -> (%y) { %t = Transpose(%x) perm=[1,0] %y = MatMul(%x, %t) }", FALSE },
    { "opset 17 graph g(%x:f32[N,8]) -> (%y) { %y = CumSum(%x, i:i64[]) }", FALSE },
    /* the second half does, the first does not: one half alone would not tell */
    { "opset 17 graph g(%x:f32[N,8]) -> (%y) { %q = CumSum(%x, i:i64[]) %s = Mul(%q, c:f32[]) %y = Add(%x, %s) }",
      FALSE },
    /* a number of samples that is declared is one of any */
    { "opset 17 graph g(%x:f32[8,6,8]) -> (%y) { %y = Relu(%x) }", TRUE },
    { "opset 17 graph g(%x:f32[8,6,8]) -> (%y) { %y = Softmax(%x) axis=0 }", FALSE },
    /* cannot be asked */
    { "opset 17 graph g(%x:f32[N,8], %k:f32[8]) -> (%y) { %y = Add(%x, %k) }", FALSE },
};

/* Weights by number, integers 0. */
static HnModel *model_of(const char *text)
{
    HnModel *m = test_model(text);
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < m->graph->weights->len; i++) {
        HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        for (int64_t k = 0; k < t->n; k++)
            hn_tensor_set_f64(t, k, t->dtype == HN_F32 ? hn_rng_range(&rng, 0.25, 0.75) : 0);
    }
    return m;
}

static void test_apart(gconstpointer data)
{
    const gsize i = GPOINTER_TO_SIZE(data);
    HnModel *m = model_of(models[i].text);
    HnTensor *in[2] = { NULL };
    for (guint k = 0; k < m->graph->inputs->len; k++) {
        const HnType *t = ((const HnValue *)m->graph->inputs->pdata[k])->type;
        int64_t dims[HN_MAX_RANK] = { 0 };
        for (int d = 0; d < t->rank; d++)
            dims[d] = d == 0 && t->dims[0].sym != NULL ? 8 : t->dims[d].n;
        in[k] = test_random(HN_F32, t->rank, dims, 5 + k);
    }
    g_assert_cmpint(hn_micro_apart(m, &hn_backend_cpu, in), ==, models[i].apart);
    for (int k = 0; k < 2; k++)
        hn_tensor_unref(in[k]);
}

/* --- trainers */

#define BATCH 32

typedef struct {
    const char *text;
    gsize limit;
    gboolean apart;
    int asked; /* whether samples are apart */
} Lesson;

static HnTrainer *make(int parts, gpointer data, GError **error)
{
    const Lesson *l = data;
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, NULL);
    static GPtrArray *objectives; /* outlive the trainers */
    static HnUpdateRule *rule;
    if (objectives == NULL) {
        objectives = hn_objectives_parse("mse", NULL);
        rule = hn_update_rule_parse("adamw", NULL);
    }
    const int64_t dims[] = { BATCH, 4, 16, 16 };
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, 4, dims);
    const HnTrainerOptions o = {
        .objectives = objectives, .rule = rule, .in = &type, .micro = parts, .threads = 1, .limit = l->limit
    };
    return hn_trainer_new(model_of(l->text), device, &o, error);
}

static gboolean are_apart(gpointer data)
{
    Lesson *l = data;
    l->asked++;
    return l->apart;
}

static const char *const plain = "opset 17 graph g(%x:f32[N,4,16,16]) -> (%y) { "
                                 "%c1 = Conv(%x, a:f32[8,4,3,3]) pads=[1,1,1,1] %r1 = Relu(%c1) "
                                 "%c2 = Conv(%r1, b:f32[8,8,3,3]) pads=[1,1,1,1] %y = Relu(%c2) }";
static const char *const with_norm = "opset 17 graph g(%x:f32[N,4,16,16]) -> (%y) { "
                                     "%c1 = Conv(%x, a:f32[8,4,3,3]) pads=[1,1,1,1] "
                                     "%n = BatchNormalization(%c1, s:f32[8], t:f32[8], m:f32[8], v:f32[8]) "
                                     "%r1 = Relu(%n) %y = Conv(%r1, b:f32[8,8,3,3]) pads=[1,1,1,1] }";

static gsize needed(const char *text, int parts)
{
    Lesson l = { .text = text };
    HnForecast f;
    g_autoptr(HnTrainer) t = make(parts, &l, NULL);
    hn_trainer_forecast(t, &f);
    return f.needed;
}

/* Parts for a limit that p parts just keep to, and what is asked on the way. */
static int parts_for(Lesson *l, gboolean fit, GError **error)
{
    int parts = 0;
    const HnMicroOptions o = { .batch = BATCH, .fit = fit, .make = make, .apart = are_apart, .data = l };
    g_autoptr(HnTrainer) t = hn_micro_trainer(&o, &parts, error);
    return t != NULL ? parts : 0;
}

static void test_limits(void)
{
    for (int p = 1; p <= 8; p *= 2) {
        Lesson l = { .text = plain, .limit = needed(plain, p), .apart = TRUE };
        g_assert_true(p == 1 || needed(plain, p / 2) > l.limit);
        g_assert_cmpint(parts_for(&l, TRUE, NULL), ==, p);
        g_assert_cmpint(l.asked, ==, 0); /* as asked for */
        g_assert_cmpint(parts_for(&l, FALSE, NULL), ==, p);
        g_assert_cmpint(l.asked, ==, p > 1);
    }
}

/* What is not told to is not cut where that would be something else. */
static void test_guarded(void)
{
    for (int norm = 0; norm <= 1; norm++) {
        g_autoptr(GError) error = NULL;
        const char *text = norm ? with_norm : plain;
        Lesson l = { .text = text, .limit = needed(text, 2), .apart = norm == 1 };
        g_assert_cmpint(parts_for(&l, FALSE, &error), ==, 0);
        g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        g_assert_cmpint(parts_for(&l, TRUE, NULL), ==, 2);
    }
    g_autoptr(GError) error = NULL;
    Lesson none = { .text = plain, .limit = 1000, .apart = TRUE };
    g_assert_cmpint(parts_for(&none, TRUE, &error), ==, 0);
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
}

/* More than caches hold is cut, unless caches do not matter, or a normalization follows the batch. */
static void test_whole(void)
{
    static const char *const wide = "opset 17 graph g(%x:f32[N,4,16,16]) -> (%y) { "
                                    "%c1 = Conv(%x, a:f32[160,4,3,3]) pads=[1,1,1,1] %r1 = Relu(%c1) "
                                    "%c2 = Conv(%r1, b:f32[160,160,3,3]) pads=[1,1,1,1] %y = Relu(%c2) }";
    static const char *const follows = "opset 17 graph g(%x:f32[N,4,16,16]) -> (%y) { "
                                       "%c1 = Conv(%x, a:f32[160,4,3,3]) pads=[1,1,1,1] "
                                       "%n = BatchNormalization(%c1, s:f32[160], t:f32[160], m:f32[160], v:f32[160]) "
                                       "%c2 = Conv(%n, b:f32[160,160,3,3]) pads=[1,1,1,1] %y = Relu(%c2) }";
    for (int k = 0; k < 3; k++) {
        Lesson l = { .text = k == 2 ? follows : wide, .apart = TRUE };
        int parts = 0;
        const HnMicroOptions o = { .batch = BATCH, .make = make, .apart = are_apart, .data = &l, .whole = k == 1 };
        g_autoptr(HnTrainer) t = hn_micro_trainer(&o, &parts, NULL);
        g_assert_nonnull(t);
        g_assert_true(k > 0 ? parts == 1 : parts > 1);
        g_assert_cmpint(l.asked, ==, k == 0);
    }
}

/* What several parts are said to need is what they take, sums of gradients included. */
static void test_forecast(void)
{
    for (int p = 1; p <= 8; p *= 2) {
        Lesson l = { .text = plain, .limit = G_MAXSIZE / 2 };
        HnForecast f;
        g_autoptr(HnTrainer) t = make(p, &l, NULL);
        hn_trainer_forecast(t, &f);
        const double has = (double)(hn_trainer_arena(t) + hn_trainer_bytes(t));
        g_assert_cmpfloat(fabs((double)f.needed - has), <=, 0.03 * has);
    }
}

/* So many sums are held at once as is said, in the second step, too. */
static void test_levels(void)
{
    const int64_t n = 10000;
    g_autoptr(HnTensor) t = test_random(HN_F32, 1, &n, 5);
    for (guint parts = 2; parts <= 9; parts++) {
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        HnGradientSum *s = hn_gradient_sum_new(1, 1, budget);
        for (guint i = 0; i < 2 * parts; i++) {
            g_assert_true(hn_gradient_sum_add(s, &t, NULL));
            if (i % parts == parts - 1)
                g_assert_cmpfloat_with_epsilon(*(float *)hn_gradient_sum_finish(s, NULL)[0]->data,
                                               (float)parts * *(float *)t->data, 1e-4);
        }
        const gsize levels = hn_gradient_sum_levels(parts);
        g_assert_cmpuint(hn_budget_peak(budget), >, (levels - 1) * t->bytes);
        g_assert_cmpuint(hn_budget_peak(budget), <, (levels + 1) * t->bytes);
        hn_gradient_sum_free(s);
    }
    g_assert_cmpuint(hn_gradient_sum_levels(1), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/train/micro/parts", test_parts);
    for (gsize i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *path = g_strdup_printf("/train/micro/apart/%zu", i);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_apart);
    }
    g_test_add_func("/train/micro/limits", test_limits);
    g_test_add_func("/train/micro/guarded", test_guarded);
    g_test_add_func("/train/micro/whole", test_whole);
    g_test_add_func("/train/micro/forecast", test_forecast);
    g_test_add_func("/train/micro/levels", test_levels);
    return g_test_run();
}
