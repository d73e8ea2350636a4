/*
 * Training with quantization in place: which integers and scales learn, what is written back, what is refused.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "run_model.h"
#include "train/trainer.h"

/* Scales are called s..., and lie around 0.05; integers are within 4 bits; biases of 32 bits are called b. */
static HnModel *model_of(const char *text)
{
    HnModel *m = test_model(text);
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnValue *v = m->graph->weights->pdata[i];
        HnTensor *t = v->weight;
        const gboolean floats = hn_dtype_in(t->dtype, HN_T_FLOATS);
        for (int64_t k = 0; k < t->n && v->name[0] != 'n'; k++)
            if (floats)
                hn_tensor_set_f64(t, k, v->name[0] == 's' ? hn_rng_range(&rng, 0.04, 0.06) : hn_rng_range(&rng, -1, 1));
            else
                hn_tensor_set_i64(t, k,
                                  t->dtype == HN_I32  ? 20 * k - 30
                                  : v->name[0] == 'z' ? 3
                                                      : hn_rng_int(&rng, 0, 7));
    }
    return m;
}

static HnTensor *elements(const HnModel *m, const char *name)
{
    const HnValue *v = g_hash_table_lookup(m->graph->values, name);
    g_assert_nonnull(v);
    return v->weight;
}

#define HEAD "opset 21 graph g(%x:f32[8,6]) -> (%y) { "
/* 4 bits, in blocks and for each column, with and without a zero point */
#define BLOCKS HEAD "%w = DequantizeLinear(q:u4[6,4], s:f32[2,4], z:u4[2,4]) axis=0 block_size=3 %y = MatMul(%x, %w) }"
#define COLUMNS                                                                                                 \
    HEAD "%w = DequantizeLinear(q:i4[4,6], s:f32[4]) axis=0 %t = Transpose(%w) perm=[1,0] %m = MatMul(%x, %t) " \
         "%y = Add(%m, c:f32[4]) }"
/* integers that are converted and multiplied, for each row */
#define STORED HEAD "%i = Cast(q:i8[6,4]) to=6 %f = Cast(%i) to=1 %w = Mul(%f, s:f32[6,1]) %y = MatMul(%x, %w) }"
/* values, weights and the bias are integers */
#define WHOLE                                                                                                 \
    HEAD "%a = QuantizeLinear(%x, nx:f32={0.02}, zx:u8) %h = DequantizeLinear(%a, nx, zx) "                   \
         "%w = DequantizeLinear(q:i8[6,4], nw:f32={0.125}) %v = DequantizeLinear(b:i32[4], nb:f32={0.0025}) " \
         "%g = Gemm(%h, %w, %v) %r = Relu(%g) %c = QuantizeLinear(%r, sr:f32, zr:u8) "                        \
         "%y = DequantizeLinear(%c, sr, zr) }"

/* --- which ---------------------------------------------------------------------------------------------------------
 */

static char *trained_names(const char *text, const char *freeze)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = model_of(text);
    hn_model_prepare(m, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) list = hn_trainable_find(m, &(HnTrainableOptions){ freeze, NULL }, &error);
    g_assert_no_error(error);
    GString *names = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "", ((HnValue *)list->pdata[i])->name);
    return g_string_free(names, FALSE);
}

static void test_which(void)
{
    static const struct {
        const char *text, *freeze, *names;
    } cases[] = {
        { BLOCKS, NULL, "q s" },
        { BLOCKS, "^s$", "q" },
        { BLOCKS, "^q$", "" }, /* the scale of integers that stay */
        { COLUMNS, NULL, "q s c" },
        { STORED, NULL, "q s" },
        { STORED, "^q$", "" },
        { WHOLE, NULL, "nx q nw b sr" }, /* the bias' own scale follows */
        { WHOLE, "^b$", "q sr" },        /* it stays, and so do the scales that it depends on */
        { WHOLE, "^q$", "nx b sr" },
        /* integers that two nodes take for different numbers, and a scale that somebody else reads, too */
        { HEAD "%v = DequantizeLinear(q:i8[6,4], s:f32) %w = DequantizeLinear(q, t:f32) %a = MatMul(%x, %v) "
               "%b = MatMul(%x, %w) %y = Add(%a, %b) }",
          NULL, "" },
        { HEAD "%v = DequantizeLinear(q:i8[6,4], s:f32) %a = MatMul(%x, %v) %y = Mul(%a, s) }", NULL, "q" },
        { HEAD "%v = DequantizeLinear(q:i8[6,4], s:f32) %w = DequantizeLinear(q, s) %a = MatMul(%x, %v) "
               "%b = MatMul(%x, %w) %y = Add(%a, %b) }",
          NULL, "q s" },
        /* f32 weights that are quantized when the model runs */
        { HEAD "%k = QuantizeLinear(w:f32[6,4], s:f32, z:i8) %d = DequantizeLinear(%k, s, z) %y = MatMul(%x, %d) }",
          NULL, "w s" },
        /* a bias whose scale is no product: nothing may change that it could be meant to be one of */
        { HEAD "%a = QuantizeLinear(%x, sx:f32, zx:u8) %h = DequantizeLinear(%a, sx, zx) "
               "%w = DequantizeLinear(q:i8[6,4], sw:f32) %v = DequantizeLinear(b:i32[4], sb:f32) "
               "%y = Gemm(%h, %w, %v) }",
          NULL, "q b" },
        /* integers of a pair that somebody else reads */
        { HEAD "%a = QuantizeLinear(%x, s:f32, z:u8) %b = DequantizeLinear(%a, s, z) %c = Cast(%a) to=1 "
               "%d = Add(%b, %c) %y = MatMul(%d, w:f32[6,4]) }",
          NULL, "w" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *names = trained_names(cases[i].text, cases[i].freeze);
        g_assert_cmpstr(names, ==, cases[i].names);
    }
}

/* --- lessons -------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const char *rule;
    double lr, ema;
    int micro, threads;
} Setting;

typedef struct {
    GPtrArray *objectives;
    HnUpdateRule *rule;
    HnTrainer *trainer;
    HnTensor *in[1], *target[1];
    double lr;
} Lesson;

static gboolean lesson_init(Lesson *l, HnModel *work, const Setting *s, GError **error)
{
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, NULL);
    const int64_t x[] = { 8, 6 }, y[] = { 8, 4 };
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, 2, x);
    HnType *types[] = { type };
    *l = (Lesson){ .objectives = hn_objectives_parse("mse", NULL),
                   .rule = hn_update_rule_parse(s->rule, NULL),
                   .in = { test_random(HN_F32, 2, x, 3) },
                   .target = { test_random(HN_F32, 2, y, 4) },
                   .lr = s->lr };
    l->rule->ema = s->ema;
    const HnTrainerOptions o = {
        .objectives = l->objectives, .rule = l->rule, .in = types, .micro = s->micro, .threads = MAX(s->threads, 1)
    };
    l->trainer = hn_trainer_new(work, device, &o, error);
    return l->trainer != NULL;
}

static double lesson_steps(Lesson *l, int n)
{
    HnStepLoss made = { 0 };
    for (int i = 0; i < n; i++) {
        g_autoptr(GError) error = NULL;
        hn_trainer_step(l->trainer, l->in, l->target, l->lr, &made, &error);
        g_assert_no_error(error);
    }
    return made.loss;
}

static void lesson_clear(Lesson *l)
{
    hn_trainer_free(l->trainer);
    hn_tensor_unref(l->in[0]);
    hn_tensor_unref(l->target[0]);
    hn_update_rule_free(l->rule);
    g_ptr_array_unref(l->objectives);
}

static HnModel *stored(const Lesson *l, const char *text, gboolean averages)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = model_of(text);
    hn_trainer_store(l->trainer, m, averages, &error);
    g_assert_no_error(error);
    return m;
}

/* The loss of a model as others run it. */
static double loss_of(HnModel *m, const Lesson *l)
{
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = g_ptr_array_new();
    g_ptr_array_add(in, l->in[0]);
    g_autoptr(GPtrArray) out = test_run(s, in);
    double sum = 0;
    for (int64_t i = 0; i < l->target[0]->n; i++)
        sum += pow(hn_tensor_get_f64(out->pdata[0], i) - hn_tensor_get_f64(l->target[0], i), 2);
    return sum / (double)l->target[0]->n;
}

static const char *const texts[] = { BLOCKS, COLUMNS, STORED, WHOLE };
static const Setting settings[] = { { .rule = "adamw", .lr = 0.01 },
                                    { .rule = "sgd:momentum=0", .lr = 0.05 },
                                    { .rule = "lion", .lr = 0.003, .micro = 2, .threads = 2 } };

/* What is written computes what the step computed: its next loss is that of the file. And it has learned. */
static void test_written(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        for (guint k = 0; k < G_N_ELEMENTS(settings); k++) {
            Lesson l;
            g_autoptr(GError) error = NULL;
            lesson_init(&l, model_of(texts[i]), &settings[k], &error);
            g_assert_no_error(error);
            g_assert_true(hn_trainer_in_place(l.trainer));
            const double first = lesson_steps(&l, 1);
            lesson_steps(&l, 30);
            g_autoptr(HnModel) before = model_of(texts[i]), m = stored(&l, texts[i], FALSE);
            g_assert_cmpfloat_with_epsilon(loss_of(before, &l), first, 1e-5 * first);
            const double now = loss_of(m, &l), next = lesson_steps(&l, 1);
            g_assert_cmpfloat_with_epsilon(now, next, 1e-5 * next);
            g_assert_cmpfloat(next, <, 0.9 * first);
            lesson_clear(&l);
        }
}

/* Types and dims stay, elements differ; zero points stay. */
static void test_types(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        Lesson l;
        lesson_init(&l, model_of(texts[i]), &settings[0], NULL);
        lesson_steps(&l, 20);
        g_autoptr(HnModel) before = model_of(texts[i]), m = stored(&l, texts[i], FALSE);
        g_assert_cmpuint(before->graph->weights->len, ==, m->graph->weights->len);
        g_assert_cmpuint(before->graph->nodes->len, ==, m->graph->nodes->len);
        for (guint k = 0; k < m->graph->weights->len; k++) {
            const HnValue *a = before->graph->weights->pdata[k], *b = m->graph->weights->pdata[k];
            g_autofree char *is = hn_tensor_describe(b->weight), *was = hn_tensor_describe(a->weight);
            g_assert_cmpstr(a->name, ==, b->name);
            g_assert_cmpstr(is, ==, was);
            g_assert_cmpint(hn_tensor_equal(a->weight, b->weight), ==, a->name[0] == 'z');
        }
        lesson_clear(&l);
    }
}

/* A bias' scale is the product of the other two, and its integers are in units of that. */
static void test_bias(void)
{
    Lesson l;
    lesson_init(&l, model_of(WHOLE), &settings[0], NULL);
    lesson_steps(&l, 20);
    g_autoptr(HnModel) m = stored(&l, WHOLE, FALSE);
    const float x = *(float *)elements(m, "nx")->data, w = *(float *)elements(m, "nw")->data;
    const float b = *(float *)elements(m, "nb")->data;
    g_assert_cmpfloat(x, !=, 0.02f);
    g_assert_cmpfloat(w, !=, 0.125f);
    g_assert_true(memcmp(&b, &(float){ x * w }, sizeof b) == 0);
    lesson_clear(&l);
}

/* Averages are written as integers of averaged scales. */
static void test_averages(void)
{
    Lesson l;
    lesson_init(&l, model_of(BLOCKS), &(Setting){ .rule = "adamw", .lr = 0.01, .ema = 0.5 }, NULL);
    lesson_steps(&l, 20);
    g_autoptr(HnModel) plain = stored(&l, BLOCKS, FALSE), mean = stored(&l, BLOCKS, TRUE);
    g_assert_false(hn_tensor_equal(elements(plain, "s"), elements(mean, "s")));
    g_assert_cmpint(elements(mean, "q")->dtype, ==, HN_U4);
    lesson_clear(&l);
}

/* The grid is exact: numbers of integers are these integers. */
static void test_grid(void)
{
    const HnFakeForm forms[] = { { HN_U4, 0, 3, FALSE, FALSE },
                                 { HN_I8, 1, 0, FALSE, FALSE },
                                 { HN_I32, -1, 0, TRUE, FALSE } };
    static const char *const scales[] = { "f32[2,4]={0.1,0.2,0.3,0.4,0.5,0.6,0.7,1e-9}", "f32[4]={0.3,3,1e4,0.07}",
                                          "f32={1e-6}" };
    static const char *const zeros[] = { "u4[2,4]={0,1,2,3,4,5,15,7}", "i8[4]={-128,127,0,5}", "i32={0}" };
    const int64_t dims[] = { 6, 4 };
    for (guint i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autoptr(HnTensor) s = test_tensor(scales[i]), z = test_tensor(zeros[i]);
        g_autoptr(HnTensor) q = hn_tensor_new(forms[i].dtype, 2, dims, NULL, NULL);
        for (int64_t k = 0; k < q->n; k++)
            hn_tensor_set_i64(q, k,
                              forms[i].dtype == HN_U4   ? k % 16
                              : forms[i].dtype == HN_I8 ? 10 * k - 120
                                                        : 90001 * k);
        g_autoptr(HnTensor) x = hn_fake_numbers(&forms[i], q, s, z, NULL, NULL);
        g_autoptr(HnTensor) again = hn_fake_integers(&forms[i], x, s, z, NULL, NULL);
        g_assert_true(hn_tensor_equal(q, again));
    }
}

/* Scales are held above a part of where they began. */
static void test_least(void)
{
    Lesson l;
    lesson_init(&l, model_of(BLOCKS), &(Setting){ .rule = "lion", .lr = 0.5 }, NULL);
    lesson_steps(&l, 40);
    g_autoptr(HnModel) before = model_of(BLOCKS), m = stored(&l, BLOCKS, FALSE);
    const HnTensor *a = elements(before, "s"), *b = elements(m, "s");
    for (int64_t i = 0; i < a->n; i++)
        g_assert_cmpfloat(hn_tensor_get_f64(b, i), >=, hn_tensor_get_f64(a, i) / 16.001);
    lesson_clear(&l);
}

/* --- refused -------------------------------------------------------------------------------------------------------
 */

static void test_refused(void)
{
    static const struct {
        const char *text, *words;
        HnError code;
    } cases[] = {
        { HEAD "%w = DequantizeLinear(q:i8[6,4], ns:f32={0}) %y = MatMul(%x, %w) }", "'ns' holds 0", HN_ERROR_VALUE },
        { HEAD "%w = DequantizeLinear(q:i8[6,4], ns:f32={nan}) %y = MatMul(%x, %w) }", "'ns' holds nan",
          HN_ERROR_VALUE },
        { HEAD
          "%a = QuantizeLinear(%x, ns:f32={-1}, z:u8) %b = DequantizeLinear(%a, ns, z) %y = MatMul(%b, w:f32[6,4]) }",
          "'ns' holds -1", HN_ERROR_VALUE },
        { HEAD "%q, %s, %z = DynamicQuantizeLinear(%x) %i = MatMulInteger(%q, w:i8[6,4], %z) %f = Cast(%i) to=1 "
               "%g = Mul(%f, %s) %y = MatMul(%g, v:f32[4,4]) }",
          "--format qdq", HN_ERROR_UNSUPPORTED },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Lesson l;
        g_autoptr(GError) error = NULL;
        g_assert_false(lesson_init(&l, model_of(cases[i].text), &settings[0], &error));
        g_assert_error(error, HN_ERROR, (int)cases[i].code);
        g_assert_nonnull(strstr(error->message, cases[i].words));
        lesson_clear(&l);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/train/quantized/which", test_which);
    g_test_add_func("/train/quantized/written", test_written);
    g_test_add_func("/train/quantized/types", test_types);
    g_test_add_func("/train/quantized/bias", test_bias);
    g_test_add_func("/train/quantized/averages", test_averages);
    g_test_add_func("/train/quantized/grid", test_grid);
    g_test_add_func("/train/quantized/least", test_least);
    g_test_add_func("/train/quantized/refused", test_refused);
    return g_test_run();
}
