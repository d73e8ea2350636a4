/*
 * Training: which weights learn, losses and optimizers by their texts, steps, micro-batches, running moments, averages,
 * and what is written back.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "run_model.h"
#include "train/gradient_sum.h"
#include "train/trainer.h"

/* A weight of a model's text is filled with numbers in [-0.5, 0.5), a variance with larger ones. */
static HnModel *model_of(const char *text)
{
    HnModel *m = test_model(text);
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnValue *v = m->graph->weights->pdata[i];
        const double least = strcmp(v->name, "v") == 0 ? 0.5 : -0.5;
        HnTensor *t = v->weight;
        for (int64_t k = 0; hn_dtype_in(t->dtype, HN_T_FLOATS) && k < t->n; k++)
            hn_tensor_set_f64(t, k, hn_rng_range(&rng, least, least + 1));
    }
    return m;
}

static HnTensor *random_tensor(HnDtype dtype, int ndim, const int64_t *dims, uint64_t seed, double most)
{
    HnTensor *t = hn_tensor_new(dtype, ndim, dims, NULL, NULL);
    HnRng rng = hn_rng(seed);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(t, i, dtype == HN_F32 ? hn_rng_range(&rng, -most, most) : floor(hn_rng_double(&rng) * most));
    return t;
}

/* --- which weights ------------------------------------------------------------------------------------------------ */

static char *trained_names(HnModel *m, const char *freeze, const char *train)
{
    g_autoptr(GError) error = NULL;
    hn_model_prepare(m, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) list = hn_trainable_find(m, &(HnTrainableOptions){ freeze, train }, &error);
    g_assert_no_error(error);
    GString *names = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "", ((HnValue *)list->pdata[i])->name);
    return g_string_free(names, FALSE);
}

static void test_trainable(void)
{
    static const struct {
        const char *text, *names;
    } cases[] = {
        /* weight, bias, scale and shift of a norm, but not its moments */
        { "opset 17 graph g(%x:f32[2,3,4,4]) -> (%y) { %c = Conv(%x, w:f32[5,3,1,1], b:f32[5]) "
          "%y = BatchNormalization(%c, s:f32[5], t:f32[5], m:f32[5], v:f32[5]) }",
          "w b s t" },
        /* behind operators that only move or convert elements */
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %t = Transpose(w:f32[4,3]) perm=[1,0] %y = MatMul(%x, %t) }", "w" },
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %c = Cast(w:f64[3,4]) to=1 %y = MatMul(%x, %c) }", "w" },
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %c = Concat(a:f32[1,4], b:f32[2,4]) axis=0 %y = MatMul(%x, %c) }",
          "a b" },
        { "opset 17 graph g(%x:i64[2,3]) -> (%y) { %y = Gather(w:f32[10,4], %x) }", "w" },
        { "opset 17 graph g(%x:i64[2,3]) -> (%y) { %t = Transpose(w:f32[4,9,9]) perm=[1,2,0] %y = GatherND(%t, "
          "at:i64[3,2]={0,1,2,3,4,5}) }",
          "w" },
        { "opset 17 graph g(%x:i64[2,3]) -> (%y) { %y = GatherElements(w:f32[10,3], %x) }", "w" },
        /* operands: of what is computed, but not of the input itself, and no single numbers */
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %p = Sub(%x, mean:f32[3]) %r = Relu(%p) %q = Mul(%r, scale:f32[3]) "
          "%y = Add(%q, one:f32[1]) }",
          "scale" },
        /* through a cast to the type of what is computed; beside what is computed, but not beside the input itself */
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %r = Relu(%x) %c = CastLike(scale:f32[3], %r) %y = Mul(%r, %c) }",
          "scale" },
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %r = Relu(%x) %y = Concat(token:f32[1,3], %r) axis=0 }", "token" },
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %y = Concat(token:f32[1,3], %x) axis=0 }", "" },
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %r = Relu(%x) %y = ScatterND(zeros:f32[4,3], at:i64[2,1]={1,3}, %r) "
          "}",
          "" },
        /* what the model only looks up shapes of */
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %s = Shape(w:f32[2,3]) %y = Reshape(%x, %s) }", "" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HnModel) m = model_of(cases[i].text);
        g_autofree char *names = trained_names(m, NULL, NULL);
        g_assert_cmpstr(names, ==, cases[i].names);
    }
}

static void test_patterns(void)
{
    const char *text = "opset 17 graph g(%x:f32[2,3]) -> (%y) { %h = Gemm(%x, first:f32[3,4], bias:f32[4]) "
                       "%r = Relu(%h) %y = Gemm(%r, second:f32[4,2], shift:f32[2]) }";
    g_autoptr(HnModel) m = model_of(text);
    g_autofree char *frozen = trained_names(m, "^first$|bias", NULL), *only = trained_names(m, NULL, "second");
    g_assert_cmpstr(frozen, ==, "second shift");
    g_assert_cmpstr(only, ==, "second");
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_trainable_find(m, &(HnTrainableOptions){ "(", NULL }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
}

/* A mask has elements that no weight has. */
static void test_mask(void)
{
    g_autoptr(HnModel) m =
        model_of("opset 17 graph g(%x:f32[2,3]) -> (%y) { %r = Relu(%x) %y = Add(%r, mask:f32[3]) }");
    g_autofree char *before = trained_names(m, NULL, NULL);
    g_assert_cmpstr(before, ==, "mask");
    const double masks[] = { -INFINITY, -1e9, -1e4 };
    for (guint i = 0; i < G_N_ELEMENTS(masks); i++) {
        hn_tensor_set_f64(((HnValue *)m->graph->weights->pdata[0])->weight, 1, masks[i]);
        g_autofree char *names = trained_names(m, NULL, NULL);
        g_assert_cmpstr(names, ==, "");
    }
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void test_texts(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) two = hn_objectives_parse("0.25*ce:smoothing=0.1:axis=-1+kl:temperature=4@a.b", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(two->len, ==, 2);
    const HnObjective *ce = two->pdata[0], *kl = two->pdata[1];
    g_assert_cmpfloat(ce->weight, ==, 0.25);
    g_assert_cmpfloat(hn_terms_get(ce->terms, "smoothing"), ==, 0.1);
    g_assert_null(ce->value);
    g_assert_cmpfloat(kl->weight, ==, 1);
    g_assert_cmpstr(kl->value, ==, "a.b");
    static const char *const bad[] = { "",
                                       "xx",
                                       "ce:smoothing",
                                       "ce:smoothing=x",
                                       "ce:temperature=1",
                                       "0*ce",
                                       "x*ce",
                                       "ce+",
                                       "ce:smoothing=0.1:smoothing=0.2",
                                       "-1*mse" };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) wrong = NULL;
        g_assert_null(hn_objectives_parse(bad[i], &wrong));
        g_assert_error(wrong, HN_ERROR, HN_ERROR_USAGE);
    }
    g_autoptr(HnUpdateRule) rule = hn_update_rule_parse("sgd:lr=0.5:momentum=0.9:nesterov=1", &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(rule->lr, ==, 0.5);
    static const char *const wrong_rules[] = { "", "adam", "sgd:lr=0", "sgd:lr=-1", "adamw:momentum=0.9", "lion:lr" };
    for (guint i = 0; i < G_N_ELEMENTS(wrong_rules); i++) {
        g_autoptr(GError) wrong = NULL;
        g_assert_null(hn_update_rule_parse(wrong_rules[i], &wrong));
        g_assert_error(wrong, HN_ERROR, HN_ERROR_USAGE);
    }
}

static void test_rates(void)
{
    const HnLrSchedule cosine = { HN_LR_COSINE, 4, 104, 0.1 }, step = { HN_LR_STEP, 0, 90, 0 },
                       line = { HN_LR_LINEAR, 0, 11, 0 }, flat = { HN_LR_CONSTANT, 1, 10, 0 };
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&cosine, 1), 0.2, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&cosine, 4), 0.8, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&cosine, 5), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&cosine, 104), 0.1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&cosine, 1000), 0.1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&step, 1), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&step, 30), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&step, 31), 0.1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&step, 60), 0.1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&step, 61), 0.01, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&step, 90), 0.01, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&line, 6), 0.5, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&flat, 1), 0.5, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_lr_factor(&flat, 9), 1, 1e-12);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *loss, *rule, *freeze;
    double clip, ema;
    int micro, threads;
    gboolean keep_statistics;
    HnTensor *const *fixed;
} Setting;

/* A trainer, what it is made with, and one batch. */
typedef struct {
    GPtrArray *objectives;
    HnUpdateRule *rule;
    HnTrainer *trainer;
    HnTensor *in[3], *target[2];
} Lesson;

static gboolean lesson_init(Lesson *l, const char *text, const Setting *s, GError **error)
{
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, NULL);
    HnModel *work = model_of(text);
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    *l = (Lesson){ .objectives = hn_objectives_parse(s->loss, NULL), .rule = hn_update_rule_parse(s->rule, NULL) };
    l->rule->clip = s->clip;
    l->rule->ema = s->ema;
    for (guint i = 0; i < work->graph->inputs->len; i++) {
        const HnType *t = ((HnValue *)work->graph->inputs->pdata[i])->type;
        int64_t dims[HN_MAX_RANK];
        hn_type_is_fixed(t, dims);
        l->in[i] = random_tensor(t->dtype, t->rank, dims, 3 + i, t->dtype == HN_F32 ? 1 : 4);
        g_ptr_array_add(types, hn_type_fixed(t->dtype, t->rank, dims));
    }
    const HnTrainerOptions o = { .objectives = l->objectives,
                                 .rule = l->rule,
                                 .trainable = { s->freeze, NULL },
                                 .keep_statistics = s->keep_statistics,
                                 .in = (HnType *const *)types->pdata,
                                 .fixed = s->fixed,
                                 .micro = s->micro,
                                 .threads = MAX(s->threads, 1) };
    l->trainer = hn_trainer_new(work, device, &o, error);
    for (guint i = 0; l->trainer != NULL && i < l->objectives->len; i++) {
        const HnType *t = hn_trainer_target(l->trainer, i);
        int64_t dims[HN_MAX_RANK];
        hn_type_is_fixed(t, dims);
        l->target[i] = random_tensor(t->dtype, t->rank, dims, 11 + i,
                                     t->dtype == HN_F32 ? 1 : (double)hn_trainer_classes(l->trainer, i));
    }
    return l->trainer != NULL;
}

static void lesson_open(Lesson *l, const char *text, const Setting *s)
{
    g_autoptr(GError) error = NULL;
    lesson_init(l, text, s, &error);
    g_assert_no_error(error);
}

static HnStepLoss lesson_step(Lesson *l, double lr)
{
    g_autoptr(GError) error = NULL;
    HnStepLoss made;
    hn_trainer_step(l->trainer, l->in, l->target, lr, &made, &error);
    g_assert_no_error(error);
    return made;
}

static void lesson_clear(Lesson *l)
{
    hn_trainer_free(l->trainer);
    for (guint i = 0; i < G_N_ELEMENTS(l->in); i++)
        hn_tensor_unref(l->in[i]);
    for (guint i = 0; i < G_N_ELEMENTS(l->target); i++)
        hn_tensor_unref(l->target[i]);
    hn_update_rule_free(l->rule);
    g_ptr_array_unref(l->objectives);
}

static const HnTensor *state(const Lesson *l, const char *name)
{
    const char *of;
    for (guint i = 0; i < hn_trainer_n_states(l->trainer); i++) {
        HnTensor *t = hn_trainer_state(l->trainer, i, &of);
        if (strcmp(of, name) == 0)
            return t;
    }
    g_assert_not_reached();
}

static double largest_difference(const HnTensor *a, const HnTensor *b)
{
    double most = 0;
    g_assert_cmpint(a->n, ==, b->n);
    for (int64_t i = 0; i < a->n; i++)
        most = MAX(most, fabs(hn_tensor_get_f64(a, i) - hn_tensor_get_f64(b, i)));
    return most;
}

#define LINE "opset 17 graph g(%x:f32[8,3]) -> (%y) { %y = MatMul(%x, w:f32[3,2]) }"
#define NET                                                                                               \
    "opset 17 graph g(%x:f32[8,2,6,6]) -> (%y) { %c = Conv(%x, w:f32[4,2,3,3], b:f32[4]) pads=[1,1,1,1] " \
    "%n = BatchNormalization(%c, s:f32[4], t:f32[4], m:f32[4], v:f32[4]) %r = Relu(%n) "                  \
    "%p = GlobalAveragePool(%r) %f = Flatten(%p) %y = Gemm(%f, u:f32[4,5], z:f32[5]) }"

/* One step of plain descent on a mean of squares: w - lr * 2/n X'(XW - T), by hand. */
static void test_descent(void)
{
    Lesson l;
    lesson_open(&l, LINE, &(Setting){ .loss = "mse", .rule = "sgd:momentum=0" });
    g_autoptr(HnTensor) w = hn_tensor_copy(state(&l, "w"), NULL, NULL);
    const float *x = l.in[0]->data, *t = l.target[0]->data;
    float *v = w->data;
    double residual[8][2], loss = 0;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 2; k++) {
            residual[i][k] = -(double)t[i * 2 + k];
            for (int c = 0; c < 3; c++)
                residual[i][k] += (double)x[i * 3 + c] * (double)v[c * 2 + k];
            loss += residual[i][k] * residual[i][k] / 16;
        }
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < 2; k++) {
            double slope = 0;
            for (int i = 0; i < 8; i++)
                slope += 2 * (double)x[i * 3 + c] * residual[i][k] / 16;
            v[c * 2 + k] = (float)((double)v[c * 2 + k] - 0.5 * slope);
        }
    const HnStepLoss made = lesson_step(&l, 0.5);
    g_assert_cmpfloat_with_epsilon(made.loss, loss, 1e-6);
    g_assert_true(isnan(made.norm));
    g_assert_cmpfloat(largest_difference(w, state(&l, "w")), <, 1e-6);
    lesson_clear(&l);
}

/* The weighted sum of two losses has the weighted sum of their gradients. */
static void test_two_losses(void)
{
    Lesson l[3];
    static const char *const losses[] = { "2*mse", "0.5*l1", "2*mse+0.5*l1" };
    double moved[3][6], loss[3];
    for (int i = 0; i < 3; i++) {
        lesson_open(&l[i], LINE, &(Setting){ .loss = losses[i], .rule = "sgd:momentum=0" });
        if (i == 2) {
            hn_tensor_unref(l[2].target[1]);
            l[2].target[1] = hn_tensor_ref(l[1].target[0]);
        }
        g_autoptr(HnTensor) before = hn_tensor_copy(state(&l[i], "w"), NULL, NULL);
        loss[i] = lesson_step(&l[i], 0.1).loss;
        for (int k = 0; k < 6; k++)
            moved[i][k] = hn_tensor_get_f64(state(&l[i], "w"), k) - hn_tensor_get_f64(before, k);
    }
    g_assert_cmpfloat_with_epsilon(loss[2], loss[0] + loss[1], 1e-6);
    for (int k = 0; k < 6; k++)
        g_assert_cmpfloat_with_epsilon(moved[2][k], moved[0][k] + moved[1][k], 1e-6);
    for (int i = 0; i < 3; i++)
        lesson_clear(&l[i]);
}

/* Every optimizer learns a batch by heart. */
static void test_learns(void)
{
    static const struct {
        const char *rule;
        double lr;
    } rules[] = { { "adamw", 0.02 }, { "sgd:momentum=0.9:nesterov=1", 0.1 }, { "lion", 0.005 } };
    for (guint i = 0; i < G_N_ELEMENTS(rules); i++) {
        Lesson l;
        lesson_open(&l, NET, &(Setting){ .loss = "ce", .rule = rules[i].rule, .clip = 10 });
        const HnStepLoss first = lesson_step(&l, rules[i].lr);
        HnStepLoss last = first;
        for (int k = 0; k < 250; k++)
            last = lesson_step(&l, rules[i].lr);
        g_assert_cmpfloat(last.loss, <, 0.75 * first.loss);
        g_assert_cmpfloat(last.norm, >, 0);
        lesson_clear(&l);
    }
}

/* The sum over micro-batches is that over the batch, and the same bits on one thread and on two. Moments that follow
 * the data would differ, so they are kept. */
static void test_micro_batches(void)
{
    Lesson whole, parts[2];
    const char *names[] = { "w", "b", "s", "t", "u", "z" };
    Setting s = { .loss = "ce", .rule = "sgd:momentum=0.9", .keep_statistics = TRUE, .clip = 0.5 };
    lesson_open(&whole, NET, &s);
    s.micro = 4;
    for (int i = 0; i < 2; i++) {
        s.threads = 1 + i;
        lesson_open(&parts[i], NET, &s);
    }
    for (int k = 0; k < 3; k++) {
        const HnStepLoss a = lesson_step(&whole, 0.2), b = lesson_step(&parts[0], 0.2), c = lesson_step(&parts[1], 0.2);
        g_assert_cmpfloat_with_epsilon(a.loss, b.loss, 1e-5);
        g_assert_cmpfloat_with_epsilon(a.norm, b.norm, 1e-5);
        g_assert_true(b.loss == c.loss && b.norm == c.norm);
    }
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpfloat(largest_difference(state(&whole, names[i]), state(&parts[0], names[i])), <, 1e-5);
        g_assert_true(hn_tensor_equal(state(&parts[0], names[i]), state(&parts[1], names[i])));
    }
    lesson_clear(&whole);
    for (int i = 0; i < 2; i++)
        lesson_clear(&parts[i]);
}

#define DROPS(x)                                                     \
    "opset 13 graph g(%x:f32[" x ",32]) -> (%y) { %d = Dropout(%x) " \
    "%y = MatMul(%d, w:f32[32,3]) }"

/* What a Dropout leaves out differs from part to part: parts of the same samples have other losses. */
static void test_dropped(void)
{
    Lesson half, both;
    lesson_open(&half, DROPS("4"), &(Setting){ .loss = "mse", .rule = "sgd" });
    lesson_open(&both, DROPS("8"), &(Setting){ .loss = "mse", .rule = "sgd", .micro = 2 });
    for (int i = 0; i < 2; i++) {
        memcpy((char *)both.in[0]->data + (gsize)i * half.in[0]->bytes, half.in[0]->data, half.in[0]->bytes);
        memcpy((char *)both.target[0]->data + (gsize)i * half.target[0]->bytes, half.target[0]->data,
               half.target[0]->bytes);
    }
    const double one = lesson_step(&half, 0).loss, two = lesson_step(&both, 0).loss;
    g_test_message("%g, and %g of two parts", one, two);
    g_assert_cmpfloat(fabs(one - two), >, 1e-3 * one);
    lesson_clear(&half);
    lesson_clear(&both);
}

#define ROWS(x)           \
    "opset 20 graph g(" x \
    " %m = MatMul(%c, w:f32[3,5]) %a = Add(%m, b:f32[1,1,5]) %g = Gelu(%a) %y = MatMul(%g, u:f32[5,4]) }"

/* A one-hot matrix that is computed is looked up instead, and what follows is done to the table; not so one that is
 * fed. Places outside the table have zeros. */
static void test_rows(void)
{
    static const char *const names[] = { "w", "b", "u" };
    const Setting s = { .loss = "mse", .rule = "sgd:momentum=0.9" };
    Lesson found, fed;
    lesson_open(&found, ROWS("%x:i32[2,9,1]) -> (%y) { %e = Equal(%x, n:i32[1,1,3]={0,1,2}) %c = Cast(%e) to=1"), &s);
    lesson_open(&fed, ROWS("%c:f32[2,9,3]) -> (%y) {"), &s);
    for (int i = 0; i < 18; i++)
        for (int k = 0; k < 3; k++)
            ((float *)fed.in[0]->data)[i * 3 + k] = ((const int32_t *)found.in[0]->data)[i] == k;
    for (int k = 0; k < 4; k++) {
        const HnStepLoss a = lesson_step(&found, 0.3), b = lesson_step(&fed, 0.3);
        g_assert_cmpfloat_with_epsilon(a.loss, b.loss, 1e-6);
    }
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_cmpfloat(largest_difference(state(&found, names[i]), state(&fed, names[i])), <, 1e-5);
    lesson_clear(&found);
    lesson_clear(&fed);
}

static void test_uneven(void)
{
    Lesson l;
    g_autoptr(GError) error = NULL;
    g_assert_false(lesson_init(&l, NET, &(Setting){ .loss = "ce", .rule = "adamw", .micro = 3 }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
    g_assert_nonnull(strstr(error->message, "cannot be cut into 3 micro-batches"));
    lesson_clear(&l);
}

static GPtrArray *copies_of_states(const Lesson *l)
{
    GPtrArray *copies = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    const char *name;
    for (guint k = 0; k < hn_trainer_n_states(l->trainer); k++)
        g_ptr_array_add(copies, hn_tensor_copy(hn_trainer_state(l->trainer, k, &name), NULL, NULL));
    return copies;
}

static void assert_states(const Lesson *l, const GPtrArray *copies)
{
    const char *name;
    for (guint k = 0; k < copies->len; k++) {
        const HnTensor *now = hn_trainer_state(l->trainer, k, &name), *then = copies->pdata[k];
        if (now->bytes != then->bytes || memcmp(now->data, then->data, now->bytes) != 0)
            g_error("'%s' changed", name);
    }
}

/* A batch that makes no finite loss, or no finite gradient, leaves all weights and states as they were. */
static void test_not_finite(void)
{
    static const Setting settings[] = {
        { .loss = "mse", .rule = "adamw" },
        { .loss = "mse", .rule = "adamw", .clip = 1 },
        { .loss = "mse", .rule = "adamw", .micro = 2 },
        { .loss = "mse", .rule = "sgd:momentum=0.9", .micro = 2, .clip = 1 },
        { .loss = "mse+0.5*l1", .rule = "lion" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(settings); i++) {
        Lesson l;
        const char *name;
        lesson_open(&l, LINE, &settings[i]);
        g_assert_true(isfinite(lesson_step(&l, 0.01).loss));
        g_autoptr(GPtrArray) before = copies_of_states(&l);
        g_assert_cmpuint(before->len, >, 1);
        ((float *)l.in[0]->data)[4] = INFINITY;
        g_assert_false(isfinite(lesson_step(&l, 0.01).loss));
        g_autofree char *node = hn_trainer_find_nonfinite(l.trainer, l.in, l.target);
        g_assert_nonnull(node);
        g_assert_cmpstr(node, ==, "y");
        assert_states(&l, before);
        ((float *)l.in[0]->data)[4] = 1;
        g_assert_null(hn_trainer_find_nonfinite(l.trainer, l.in, l.target));
        g_assert_true(isfinite(lesson_step(&l, 0.01).loss));
        g_assert_false(hn_tensor_equal(before->pdata[0], hn_trainer_state(l.trainer, 0, &name)));
        lesson_clear(&l);
    }
}

/* A batch with NaN between others: weights, states, averages and running moments keep their bits, whatever the NaN went
 * through, and steps go on as if it had not been there. */
static void test_nan_batch(void)
{
    static const char *const nets[] = {
        NET,
        "opset 17 graph g(%x:f32[8,2,6,6]) -> (%y) { %c = Conv(%x, w:f32[4,2,3,3]) "
        "%n = BatchNormalization(%c, s:f32[4], t:f32[4], m:f32[4], v:f32[4]) %r = Clip(%n, lo:f32[]={0}, hi:f32[]={6}) "
        "%p = MaxPool(%r) kernel_shape=[2,2] strides=[2,2] %f = Flatten(%p) %y = Gemm(%f, u:f32[16,5], z:f32[5]) }",
    };
    static const Setting settings[] = {
        { .loss = "ce", .rule = "adamw", .ema = 0.5 },
        { .loss = "ce", .rule = "lion", .ema = 0.9, .clip = 1 },
        { .loss = "ce", .rule = "sgd:momentum=0.9", .ema = 0.5, .micro = 2 },
        { .loss = "ce", .rule = "adamw", .ema = 0.5, .micro = 4, .clip = 1, .threads = 2 },
    };
    static const float wrong[] = { NAN, INFINITY };
    for (guint i = 0; i < G_N_ELEMENTS(nets) * G_N_ELEMENTS(settings) * G_N_ELEMENTS(wrong); i++) {
        Lesson l;
        lesson_open(&l, nets[i / 2 % 2], &settings[i / 4]);
        lesson_step(&l, 0.01);
        g_autoptr(GPtrArray) before = copies_of_states(&l);
        float *x = l.in[0]->data;
        const float right = x[200];
        x[200] = wrong[i % 2];
        g_assert_false(isfinite(lesson_step(&l, 0.01).loss));
        assert_states(&l, before);
        g_autofree char *node = hn_trainer_find_nonfinite(l.trainer, l.in, l.target);
        g_assert_cmpstr(node, ==, "c");
        assert_states(&l, before);
        x[200] = right;
        g_assert_true(isfinite(lesson_step(&l, 0.01).loss));
        for (guint k = 0; k < before->len; k++) {
            const char *name;
            const HnTensor *now = hn_trainer_state(l.trainer, k, &name);
            g_assert_true(strlen(name) > 1 || *name == 'b' || !hn_tensor_equal(before->pdata[k], now));
        }
        lesson_clear(&l);
    }
}

/* Ignored labels count neither in the loss nor in what it is divided by, micro-batch by micro-batch. */
static void test_ignored(void)
{
    Lesson l[2];
    for (int i = 0; i < 2; i++) {
        lesson_open(&l[i], NET,
                    &(Setting){ .loss = "ce", .rule = "sgd:momentum=0", .micro = 1 + i, .keep_statistics = TRUE });
        for (int k = 0; k < 3; k++)
            hn_tensor_set_i64(l[i].target[0], k, -100);
    }
    g_assert_cmpfloat_with_epsilon(lesson_step(&l[0], 0.1).loss, lesson_step(&l[1], 0.1).loss, 1e-5);
    g_assert_cmpfloat(largest_difference(state(&l[0], "u"), state(&l[1], "u")), <, 1e-6);
    hn_tensor_set_i64(l[0].target[0], 5, 5);
    HnStepLoss made;
    g_autoptr(GError) error = NULL;
    g_assert_false(hn_trainer_step(l[0].trainer, l[0].in, l[0].target, 0.1, &made, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_VALUE);
    for (int i = 0; i < 2; i++)
        lesson_clear(&l[i]);
}

/* Running moments follow the batch, unless they are kept. */
static void test_statistics(void)
{
    for (int keep = 0; keep < 2; keep++) {
        Lesson l;
        lesson_open(&l, NET, &(Setting){ .loss = "ce", .rule = "adamw", .keep_statistics = keep });
        g_assert_cmpuint(hn_trainer_statistics(l.trainer), ==, keep ? 0 : 2);
        g_autoptr(HnModel) m = model_of(NET);
        const HnValue *mean = hn_graph_find(m->graph, "m");
        g_autoptr(HnTensor) before = hn_tensor_copy(mean->weight, NULL, NULL);
        lesson_step(&l, 0.01);
        g_assert_true(hn_trainer_store(l.trainer, m, FALSE, NULL));
        g_assert_true(hn_tensor_equal(before, mean->weight) == (keep == 1));
        lesson_clear(&l);
    }
}

/* Frozen weights stay, others move; a model's own names and nodes are kept. */
static void test_store(void)
{
    Lesson l;
    lesson_open(&l, NET, &(Setting){ .loss = "ce", .rule = "adamw", .freeze = "^w$", .ema = 0.5 });
    g_autoptr(HnModel) before = model_of(NET), after = model_of(NET), averaged = model_of(NET);
    for (int k = 0; k < 3; k++)
        lesson_step(&l, 0.05);
    g_assert_true(hn_trainer_store(l.trainer, after, FALSE, NULL));
    g_assert_true(hn_trainer_store(l.trainer, averaged, TRUE, NULL));
    g_assert_cmpuint(after->graph->nodes->len, ==, before->graph->nodes->len);
    const char *names[] = { "w", "u" };
    for (int i = 0; i < 2; i++) {
        const HnTensor *a = hn_graph_find(before->graph, names[i])->weight,
                       *b = hn_graph_find(after->graph, names[i])->weight,
                       *c = hn_graph_find(averaged->graph, names[i])->weight;
        g_assert_true(hn_tensor_equal(a, b) == (i == 0));
        g_assert_true(i == 0 || (largest_difference(a, c) > 0 && largest_difference(a, c) < largest_difference(a, b)));
    }
    lesson_clear(&l);
}

/* A branch that an input decides in every step is part of what learns, and goes back to where it was. */
static void test_branch(void)
{
    const char *text =
        "opset 17 graph g(%x:f32[4,3], %c:bool[]) -> (%y) { %y = If(%c) then_branch=graph() -> (%p) { %p = MatMul(%x, "
        "w:f32[3,2]) } else_branch=graph() -> (%q) { %q = MatMul(%x, u:f32[3,2]) } }";
    g_autoptr(HnTensor) yes = hn_tensor_new(HN_BOOL, 0, NULL, NULL, NULL);
    hn_tensor_set_i64(yes, 0, 1);
    HnTensor *fixed[] = { NULL, yes };
    Lesson l;
    lesson_open(&l, text, &(Setting){ .loss = "mse", .rule = "sgd:momentum=0", .fixed = fixed });
    g_autoptr(HnModel) m = model_of(text);
    lesson_step(&l, 0.5);
    g_assert_true(hn_trainer_store(l.trainer, m, FALSE, NULL));
    const HnGraph *branch = m->graph->inner->pdata[0], *other = m->graph->inner->pdata[1];
    g_autoptr(HnModel) before = model_of(text);
    const HnTensor *w = hn_graph_find(before->graph->inner->pdata[0], "w")->weight;
    g_assert_cmpfloat(largest_difference(w, hn_graph_find(branch, "w")->weight), >, 0);
    g_assert_nonnull(hn_graph_find(other, "u")->weight);
    lesson_clear(&l);
}

#define LOOPS                                                                                                   \
    "opset 21 graph g(%x:f32[3,20,2]) -> (%y) { %p = MatMul(%x, u:f32[2,4]) "                                   \
    "%last, %all = Scan(h:f32[3,4], %p) num_scan_inputs=1 scan_input_axes=[1] scan_output_axes=[1] "            \
    "body=graph(%s:f32[3,4], %e:f32[3,4]) -> (%t, %o) { %m = MatMul(%s, w:f32[4,4]) %a = Add(%m, %e) "          \
    "%t = Tanh(%a) %o = Mul(%t, k:f32[4]) } "                                                                   \
    "%z = Loop(n:i64[]={18}, c:bool[]={1}, %last) body=graph(%i:i64[], %go:bool[], %v:f32[3,4]) -> (%go2, %q) " \
    "{ %go2 = Identity(%go) %g = MatMul(%v, b:f32[4,4]) %f = Add(%g, %v) %q = Tanh(%f) } "                      \
    "%r = ReduceMean(%all, axis:i64[1]={1}) keepdims=0 %y = Add(%z, %r) }"

/* Elements that learn, by their name in the model. */
static HnTensor *learned(const Lesson *l, const char *name)
{
    const char *of;
    for (guint i = 0; i < hn_trainer_n_learned(l->trainer); i++) {
        HnTensor *t = hn_trainer_learned(l->trainer, i, FALSE, &of, NULL);
        if (strcmp(of, name) == 0)
            return t;
    }
    g_assert_not_reached();
}

/* The slope of the loss along element e. */
static double slope_of(Lesson *l, HnTensor *t, int64_t e)
{
    const double was = hn_tensor_get_f64(t, e), step = 0x1p-11;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        hn_tensor_set_f64(t, e, side == 0 ? was + step : was - step);
        hn_trainer_wrote(l->trainer, 0);
        loss[side] = lesson_step(l, 0).loss;
    }
    hn_tensor_set_f64(t, e, was);
    return (loss[0] - loss[1]) / (2 * step);
}

/* Weights in the bodies of loops and around them: a step moves them by what differences of the loss say, and they go
 * back to where they were. */
static void test_loops(void)
{
    static const char *const names[] = { "u", "h", "w", "k", "b" };
    static const int places[] = { -1, -1, 0, 0, 1 }; /* graph inside; -1: the model's own */
    Lesson l;
    lesson_open(&l, LOOPS, &(Setting){ .loss = "mse", .rule = "sgd:momentum=0" });
    g_autoptr(HnModel) before = model_of(LOOPS), after = model_of(LOOPS);
    g_autofree double *slopes = g_new0(double, 64 * G_N_ELEMENTS(names));
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        for (int64_t e = 0; e < learned(&l, names[i])->n; e++)
            slopes[64 * i + (guint)e] = slope_of(&l, learned(&l, names[i]), e);
    hn_trainer_wrote(l.trainer, 0);
    lesson_step(&l, 1);
    g_assert_true(hn_trainer_store(l.trainer, after, FALSE, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const HnGraph *was = places[i] < 0 ? before->graph : before->graph->inner->pdata[places[i]],
                      *is = places[i] < 0 ? after->graph : after->graph->inner->pdata[places[i]];
        const HnTensor *old = hn_graph_find(was, names[i])->weight, *now = hn_graph_find(is, names[i])->weight;
        for (int64_t e = 0; e < old->n; e++) { /* 18 runs multiply roundings */
            const double want = slopes[64 * i + (guint)e], got = hn_tensor_get_f64(old, e) - hn_tensor_get_f64(now, e);
            g_assert_cmpfloat_with_epsilon(got, want, 0.01 * MAX(fabs(want), 0.1));
        }
    }
    lesson_clear(&l);
}

/* A split that is spelled out with a sequence, of values and of a weight, as torch.onnx writes chunk(). */
static void test_sequences(void)
{
    static const char *const texts[] = {
        "opset 18 graph g(%x:f32[8,6]) -> (%y) { %h = MatMul(%x, w:f32[6,4]) "
        "%s = SplitToSequence(%h, two:i64[]={2}) axis=1 %a = SequenceAt(%s, n:i64[]={0}) "
        "%b = SequenceAt(%s, m:i64[]={1}) %t = SplitToSequence(v:f32[2,4], two) axis=1 %v0 = SequenceAt(%t, m) "
        "%p = Sin(%a) %q = Mul(%p, %b) %y = MatMul(%q, %v0) }",
        "opset 18 graph g(%x:f32[8,6]) -> (%y) { %h = MatMul(%x, w:f32[6,4]) "
        "%a, %b = Split(%h) axis=1 num_outputs=2 %u, %v0 = Split(v:f32[2,4]) axis=1 num_outputs=2 "
        "%p = Sin(%a) %q = Mul(%p, %b) %y = MatMul(%q, %v0) }",
    };
    Lesson l[2];
    for (int i = 0; i < 2; i++) {
        lesson_open(&l[i], texts[i], &(Setting){ .loss = "mse", .rule = "adamw" });
        for (int k = 0; k < 3; k++)
            lesson_step(&l[i], 0.01);
    }
    g_assert_cmpfloat(largest_difference(learned(&l[0], "w"), learned(&l[1], "w")), ==, 0);
    g_assert_cmpfloat(largest_difference(learned(&l[0], "v"), learned(&l[1], "v")), ==, 0);
    for (int i = 0; i < 2; i++)
        lesson_clear(&l[i]);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *loss;
        int code;
    } cases[] = {
        { "opset 17 graph g(%x:f32[2,3]) -> (%y) { %y = Relu(%x) }", "mse", HN_ERROR_UNSUPPORTED },
        { "opset 17 graph g(%x:f16[2,3]) -> (%y) { %y = MatMul(%x, w:f16[3,2]) }", "mse", HN_ERROR_UNSUPPORTED },
        { LINE, "mse@nothing", HN_ERROR_USAGE },
        { "opset 17 graph g(%x:f32[4,3]) -> (%y, %z) { %y = MatMul(%x, w:f32[3,2]) %z = Relu(%x) }", "mse@z",
          HN_ERROR_UNSUPPORTED },
        { LINE, "ce:axis=4", HN_ERROR_SHAPE },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Lesson l;
        g_autoptr(GError) error = NULL;
        g_assert_false(lesson_init(&l, cases[i].text, &(Setting){ .loss = cases[i].loss, .rule = "adamw" }, &error));
        g_assert_error(error, HN_ERROR, cases[i].code);
        lesson_clear(&l);
    }
}

/* A model that ends in a softmax learns by its logits: the same steps as without it. */
static void test_softmax(void)
{
    const char *with = "opset 17 graph g(%x:f32[8,3]) -> (%y) { %l = MatMul(%x, w:f32[3,4]) %y = Softmax(%l) }";
    const char *without = "opset 17 graph g(%x:f32[8,3]) -> (%l) { %l = MatMul(%x, w:f32[3,4]) }";
    Lesson a, b;
    lesson_open(&a, with, &(Setting){ .loss = "ce", .rule = "adamw" });
    lesson_open(&b, without, &(Setting){ .loss = "ce", .rule = "adamw" });
    for (int k = 0; k < 3; k++)
        g_assert_true(lesson_step(&a, 0.01).loss == lesson_step(&b, 0.01).loss);
    g_assert_true(hn_tensor_equal(state(&a, "w"), state(&b, "w")));
    lesson_clear(&a);
    lesson_clear(&b);
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* Numbers whose sum depends on the order: of seven ((a + b) + (c + d)) + ((e + f) + g). */
static void test_tree(void)
{
    const float v[] = { -1e8f, 1.0f, 3.0f, 3.0f, 0.25f, 1e8f, 3.0f };
    HnGradientSum *s = hn_gradient_sum_new(1, 2, NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_gradient_sum_finish(s, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    for (guint round = 0; round < 4; round++) {
        const guint n = round % 2 == 0 ? 5 : 7;
        for (guint i = 0; i < n; i++) {
            g_autoptr(HnTensor) t = hn_tensor_scalar_f32(v[i]);
            g_assert_true(hn_gradient_sum_add(s, &t, NULL));
        }
        const float left = (v[0] + v[1]) + (v[2] + v[3]), right = n == 5 ? v[4] : (v[4] + v[5]) + v[6];
        g_assert_true(*(float *)hn_gradient_sum_finish(s, NULL)[0]->data == left + right);
    }
    hn_gradient_sum_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/train/trainable", test_trainable);
    g_test_add_func("/train/patterns", test_patterns);
    g_test_add_func("/train/mask", test_mask);
    g_test_add_func("/train/texts", test_texts);
    g_test_add_func("/train/rates", test_rates);
    g_test_add_func("/train/descent", test_descent);
    g_test_add_func("/train/two-losses", test_two_losses);
    g_test_add_func("/train/learns", test_learns);
    g_test_add_func("/train/micro-batches", test_micro_batches);
    g_test_add_func("/train/dropped", test_dropped);
    g_test_add_func("/train/rows", test_rows);
    g_test_add_func("/train/uneven", test_uneven);
    g_test_add_func("/train/not-finite", test_not_finite);
    g_test_add_func("/train/nan-batch", test_nan_batch);
    g_test_add_func("/train/ignored", test_ignored);
    g_test_add_func("/train/statistics", test_statistics);
    g_test_add_func("/train/store", test_store);
    g_test_add_func("/train/branch", test_branch);
    g_test_add_func("/train/loops", test_loops);
    g_test_add_func("/train/sequences", test_sequences);
    g_test_add_func("/train/refused", test_refused);
    g_test_add_func("/train/softmax", test_softmax);
    g_test_add_func("/train/tree", test_tree);
    return g_test_run();
}
