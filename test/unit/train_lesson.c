/*
 * What is learned where nobody says it: losses by what outputs hold, and those that do not suit. What is better of two
 * judgements.
 */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "data/npz.h"
#include "run_model.h"
#include "train/judge.h"
#include "train/lesson.h"
#include "train/train_data.h"

#define SAMPLES 12

typedef struct {
    const char *teacher, *student; /* texts; teacher NULL: labels say all */
    HnKd kd;
    int64_t steps;
    int labels;       /* dimensions of them; 0: none */
    const char *want; /* the losses */
    double temperature;
} Case;

typedef struct {
    char *folder, *path;
    GPtrArray *inputs;
    HnModel *student;
    HnData *data;
    HnLesson *lesson;
} Set;

static void write_data(Set *s, int labels)
{
    g_autoptr(GError) error = NULL;
    const int64_t dims[] = { SAMPLES, 10 }, of_labels[] = { SAMPLES, 10 };
    g_autoptr(HnTensor) x = test_random(HN_F32, 2, dims, 3);
    g_autoptr(HnTensor) label = hn_tensor_new(HN_I64, labels, of_labels, NULL, &error);
    HnTensor *both[] = { x, label };
    s->folder = g_dir_make_tmp("hone-XXXXXX", &error);
    s->path = g_build_filename(s->folder, "data.npz", NULL);
    g_assert_true(hn_npz_write(s->path, (const char *const[]){ "x", "label" }, both, labels > 0 ? 2 : 1, NULL, &error));
}

static void open_set(Set *s, const Case *c)
{
    g_autoptr(GError) error = NULL;
    const HnDataOptions rows = { .rows = TRUE, .drop_rest = TRUE };
    write_data(s, c->labels);
    s->student = test_model(c->student);
    g_assert_true(hn_model_prepare(s->student, &error));
    s->inputs = hn_train_inputs(s->student);
    s->data = hn_data_open(s->path, (HnValue *const *)s->inputs->pdata, (int)s->inputs->len, &rows, &error);
    g_assert_no_error(error);
    g_autoptr(HnSample) first = hn_data_load(s->data, 0, &error);
    const HnForwardOptions f = { .backend = &hn_backend_cpu, .threads = 1, .inputs = s->inputs };
    const HnLessonOptions o = { .student = s->student,
                                .forward = &f,
                                .data = s->data,
                                .labels = c->labels > 0 ? first->label : NULL,
                                .kd = c->kd,
                                .temperature = c->temperature,
                                .steps = c->steps };
    s->lesson = hn_lesson_new(&o, test_model(c->student), c->teacher != NULL ? test_model(c->teacher) : NULL, &error);
    g_assert_no_error(error);
}

static void close_set(Set *s)
{
    hn_lesson_free(s->lesson);
    hn_data_free(s->data);
    hn_model_free(s->student);
    g_ptr_array_unref(s->inputs);
    g_unlink(s->path);
    g_rmdir(s->folder);
    g_free(s->path);
    g_free(s->folder);
}

#define HEAD "opset 17 graph g(%x:f32[N,10]) -> "
#define LOGITS HEAD "(%y) { %y = Gemm(%x, w:f32[10,9]) }"
#define SOFTMAX HEAD "(%p) { %y = Gemm(%x, w:f32[10,9]) %p = Softmax(%y) }"
#define HIDDEN HEAD "(%p) { %z = Gemm(%x, w:f32[10,9]) %s = Softmax(%z) %p = Identity(%s) }"
#define SCORES HEAD "(%p) { %y = Gemm(%x, w:f32[10,9]) %p = Sigmoid(%y) }"
#define LENGTH HEAD "(%p) { %y = Gemm(%x, w:f32[10,5]) %p = LpNormalization(%y) }"
#define DEEP HEAD "(%p) { %y = Gemm(%x, w:f32[10,5]) %l = LpNormalization(%y) %p = Unsqueeze(%l, a:i64[1]={1}) }"
#define POOLED HEAD "(%p) { %y = Gemm(%x, w:f32[10,5]) %l = LpNormalization(%y) %p = Unsqueeze(%l, a:i64[2]={2,3}) }"
#define PLACES HEAD "(%y) { %u = Unsqueeze(%x, a:i64[1]={2}) %y = MatMul(%u, w:f32[1,4]) }"
#define NUMBERS HEAD "(%y) { %y = Gemm(%x, w:f32[10,3]) }"

static const Case cases[] = {
    { LOGITS, LOGITS, HN_KD_STANDARD, 1000, 0, "kl:temperature=4:axis=1@y", 0 },
    { LOGITS, LOGITS, HN_KD_STANDARD, 100, 0, "kl:temperature=2:axis=1@y", 0 },
    { LOGITS, LOGITS, HN_KD_STANDARD, 1000, 1, "0.7*kl:temperature=4:axis=1@y+0.3*ce:axis=1@y", 0 },
    { LOGITS, LOGITS, HN_KD_MSE, 1000, 0, "mse:logits=1:axis=1@y", 0 },
    { LOGITS, LOGITS, HN_KD_STANDARDIZE, 1000, 0, "kl:temperature=4:axis=1:standardize=1@y", 0 },
    { LOGITS, LOGITS, HN_KD_STANDARDIZE, 100, 0, "kl:temperature=1.5:axis=1:standardize=1@y", 1.5 },
    { SOFTMAX, LOGITS, HN_KD_STANDARD, 1000, 0, "kl:temperature=4:axis=1@y", 0 },
    { LOGITS, SOFTMAX, HN_KD_STANDARD, 1000, 0, "kl:temperature=4:axis=-1@p", 0 },
    { HIDDEN, HIDDEN, HN_KD_STANDARD, 1000, 0, "kl:temperature=4:axis=1@p", 0 },
    { SCORES, SCORES, HN_KD_STANDARD, 1000, 0, "bce:probabilities=1@p", 0 },
    { LENGTH, LENGTH, HN_KD_STANDARD, 1000, 0, "cosine@p", 0 },
    { DEEP, DEEP, HN_KD_STANDARD, 1000, 0, "cosine@p", 0 },
    { POOLED, POOLED, HN_KD_STANDARD, 1000, 0, "5.575*mse@p", 0 },
    { NULL, LOGITS, HN_KD_STANDARD, 1000, 1, "ce:axis=1@y", 0 },
    { NULL, SOFTMAX, HN_KD_STANDARD, 1000, 1, "ce:axis=-1@p", 0 },
};

static void losses_by_what_outputs_hold(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        Set s;
        open_set(&s, &cases[i]);
        g_autoptr(GPtrArray) all = hn_lesson_objectives(s.lesson, &error);
        g_assert_no_error(error);
        g_autofree char *got = hn_objectives_describe(all);
        g_assert_cmpstr(got, ==, cases[i].want);
        g_assert_true(hn_lesson_check(s.lesson, all, &error)); /* what it chooses suits */
        close_set(&s);
    }
}

/* Numbers count by their variance, so that a unit of them does not matter. */
static void numbers_are_weighed(void)
{
    const Case c = { NUMBERS, NUMBERS, HN_KD_STANDARD, 1000, 0, NULL, 0 };
    g_autoptr(GError) error = NULL;
    Set s;
    open_set(&s, &c);
    g_autoptr(GPtrArray) all = hn_lesson_objectives(s.lesson, &error);
    const HnObjective *o = all->pdata[0];
    double sum = 0, squares = 0;
    g_autoptr(HnSession) session =
        hn_session_new(s.student, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 }, &error);
    g_assert_no_error(error);
    for (int64_t i = 0; i < SAMPLES; i++) {
        g_autoptr(HnSample) one = hn_data_load(s.data, i, &error);
        HnTensor *y = NULL;
        g_assert_true(hn_session_run(session, one->in, &y, &error));
        for (int64_t k = 0; k < y->n; k++) {
            sum += hn_tensor_get_f64(y, k);
            squares += hn_tensor_get_f64(y, k) * hn_tensor_get_f64(y, k);
        }
        hn_tensor_unref(y);
    }
    const double n = SAMPLES * 3, v = squares / n - sum / n * (sum / n);
    g_assert_cmpstr(o->terms->name, ==, "mse");
    g_assert_cmpfloat_with_epsilon(o->weight * v, 1, 1e-9);
    close_set(&s);
}

/* A teacher whose probabilities have no softmax right in front of them is compared by their logarithms. */
static void probabilities_of_the_teacher(void)
{
    const Case c = { HIDDEN, LOGITS, HN_KD_STANDARD, 1000, 0, NULL, 0 };
    g_autoptr(GError) error = NULL;
    Set s;
    open_set(&s, &c);
    g_autoptr(GPtrArray) all = hn_lesson_objectives(s.lesson, &error);
    g_assert_true(((const HnObjective *)all->pdata[0])->log_target);
    const HnForwardOptions f = {
        .backend = &hn_backend_cpu, .threads = 1, .inputs = s.inputs, .like = s.student->graph
    };
    g_autoptr(HnForward) teacher = hn_forward_new(test_model(HIDDEN), all, &f, &error);
    const HnTargets targets = { .objectives = all, .teacher = teacher };
    g_autoptr(HnSample) one = hn_data_load(s.data, 0, &error);
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, 2, (const int64_t[]){ 1, 9 });
    HnTensor *made = NULL;
    g_assert_true(hn_targets_make(&targets, s.data, one, &type, &made, &error));
    double sum = 0;
    for (int64_t k = 0; k < 9; k++)
        sum += exp(hn_tensor_get_f64(made, k));
    g_assert_cmpfloat_with_epsilon(sum, 1, 1e-5);
    g_assert_cmpfloat(hn_tensor_get_f64(made, 0), <, 0);
    hn_tensor_unref(made);
    close_set(&s);
}

static const struct {
    Case c;
    const char *loss, *says; /* NULL: it suits */
} choices[] = {
    { { SCORES, SCORES, HN_KD_STANDARD, 9, 0, NULL, 0 }, "kl", "'bce:probabilities=1' does" },
    { { SCORES, SCORES, HN_KD_STANDARD, 9, 0, NULL, 0 }, "bce", "holds probabilities already" },
    { { LENGTH, LENGTH, HN_KD_STANDARD, 9, 0, NULL, 0 }, "kl", "'cosine' does" },
    { { HIDDEN, HIDDEN, HN_KD_STANDARD, 9, 0, NULL, 0 }, "kl", NULL },
    { { NUMBERS, NUMBERS, HN_KD_STANDARD, 9, 0, NULL, 0 }, "bce", "'mse' does" },
    { { NUMBERS, NUMBERS, HN_KD_STANDARD, 9, 0, NULL, 0 }, "kl", NULL }, /* three classes, or three numbers */
    { { LOGITS, LOGITS, HN_KD_STANDARD, 9, 1, NULL, 0 }, "0.5*ce+kl:temperature=3", NULL },
    { { LOGITS, LOGITS, HN_KD_STANDARD, 9, 0, NULL, 0 }, "l1+cosine", NULL },
    { { SCORES, SCORES, HN_KD_STANDARD, 9, 0, NULL, 0 }, "bce:probabilities=1", NULL },
};

static void losses_that_do_not_suit(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(choices); i++) {
        g_autoptr(GError) error = NULL;
        Set s;
        open_set(&s, &choices[i].c);
        g_autoptr(GPtrArray) all = hn_objectives_parse(choices[i].loss, &error);
        g_assert_no_error(error);
        g_assert_cmpint(hn_lesson_check(s.lesson, all, &error), ==, choices[i].says == NULL);
        if (choices[i].says != NULL)
            g_assert_nonnull(strstr(error->message, choices[i].says));
        close_set(&s);
    }
}

/* What is wrong with one loss leaves what is found out about another. */
static void one_that_does_not_suit(void)
{
    const Case c = { HIDDEN, HIDDEN, HN_KD_STANDARD, 9, 0, NULL, 0 };
    g_autoptr(GError) error = NULL;
    Set s;
    open_set(&s, &c);
    g_autoptr(GPtrArray) all = hn_objectives_parse("bce+kl+bce", &error);
    g_assert_false(hn_lesson_check(s.lesson, all, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_true(((const HnObjective *)all->pdata[1])->log_value);
    close_set(&s);
}

/* Classes lie where labels leave an axis, unless somebody says where. */
static void classes_of_places(void)
{
    static const char *const texts[][2] = { { "ce", "ce:axis=2" },
                                            { "ce:smoothing=0.1", "ce:smoothing=0.1:axis=2" },
                                            { "ce:axis=1", "ce:axis=1" },
                                            { "mse", "mse" } };
    const Case c = { NULL, PLACES, HN_KD_STANDARD, 9, 2, NULL, 0 };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        Set s;
        open_set(&s, &c);
        g_autoptr(GPtrArray) all = hn_objectives_parse(texts[i][0], &error);
        hn_lesson_place(s.lesson, all);
        g_autofree char *text = hn_objectives_describe(all);
        g_assert_cmpstr(text, ==, texts[i][1]);
        close_set(&s);
    }
}

/* Labels are looked at where there are some apart from the inputs. */
static void labels_of_all_samples(void)
{
    for (int labels = 0; labels < 2; labels++) {
        const Case c = { NULL, LOGITS, HN_KD_STANDARD, 9, labels, NULL, 0 };
        g_autoptr(GError) error = NULL;
        Set s;
        open_set(&s, &c);
        g_autoptr(GPtrArray) all = hn_objectives_parse("mse+ce", &error);
        const HnTargets targets = { .objectives = all };
        g_autoptr(HnType) type = hn_type_fixed(HN_F32, 2, (const int64_t[]){ 1, 9 });
        g_autoptr(HnType) none = hn_type_fixed(HN_F32, 2, (const int64_t[]){ 1, 0 });
        HnType *compared[] = { type, type };
        g_assert_true(hn_targets_check(&targets, s.data, compared, &error));
        compared[1] = none; /* 0 is no class */
        g_assert_cmpint(hn_targets_check(&targets, s.data, compared, &error), ==, labels == 0);
        g_assert_cmpint(g_error_matches(error, HN_ERROR, HN_ERROR_VALUE), ==, labels > 0);
        close_set(&s);
    }
}

/* Where classes of values of these dims lie by these labels. */
static int labelled(HnDtype dtype, int ndim, const int64_t *labels, int rank, const int64_t *dims)
{
    g_autoptr(HnTensor) t = hn_tensor_new(dtype, ndim, labels, NULL, NULL);
    return hn_labelled_axis(t, rank, dims);
}

static void axis_that_labels_leave(void)
{
    const int64_t each[] = { 8, 4 }, first[] = { 2, 5, 4 }, last[] = { 2, 4, 5 }, image[] = { 2, 5, 4, 3 },
                  one[] = { 2, 1, 4 };
    g_assert_cmpint(labelled(HN_I64, 2, each, 3, first), ==, 1);
    g_assert_cmpint(labelled(HN_I32, 2, each, 3, last), ==, 2);
    g_assert_cmpint(labelled(HN_I64, 3, (const int64_t[]){ 8, 5, 4 }, 4, image), ==, 3);
    g_assert_cmpint(labelled(HN_I64, 1, each, 2, first), ==, 1);
    g_assert_cmpint(labelled(HN_I64, 1, each, 3, first), ==, HN_NO_AXIS); /* of a sample, not of each place */
    g_assert_cmpint(labelled(HN_I64, 2, each, 3, one), ==, HN_NO_AXIS);
    g_assert_cmpint(labelled(HN_F32, 2, each, 3, first), ==, HN_NO_AXIS);
    g_assert_cmpint(hn_labelled_axis(NULL, 3, first), ==, HN_NO_AXIS);
}

static void better_of_two(void)
{
    const HnJudgement labels[] = { { 2.0, 0.9, 0.5, 10 }, { 1.0, 0.8, 0.9, 10 } },
                      rows[] = { { 2.0, NAN, 0.9, 1000 }, { 1.0, NAN, 0.8, 1000 } },
                      chance[] = { { 1.0, NAN, 0.8, 10 }, { 2.0, NAN, 0.9, 10 } },
                      lost[] = { { 1.0, NAN, 0.9, 10 }, { NAN, NAN, 0.8, 10 } },
                      near[] = { { 1.0, NAN, 0.98, 143 }, { 1.5, NAN, 1.0, 143 } },
                      far[] = { { 1.5, NAN, 1.0, 1430 }, { 1.0, NAN, 0.98, 1430 } },
                      numbers[] = { { 1.0, NAN, NAN, 10 }, { 2.0, NAN, NAN, 10 } },
                      even[] = { { 1.0, 0.9, 0.1, 10 }, { 2.0, 0.9, 0.9, 10 } };
    const HnJudgement *const all[] = { labels, rows, chance, lost, near, far, numbers, even };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_true(hn_judgement_better(&all[i][0], &all[i][1]));
        g_assert_false(hn_judgement_better(&all[i][1], &all[i][0]));
        g_assert_false(hn_judgement_better(&all[i][0], &all[i][0]));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/train_lesson/losses-by-what-outputs-hold", losses_by_what_outputs_hold);
    g_test_add_func("/train_lesson/numbers-are-weighed", numbers_are_weighed);
    g_test_add_func("/train_lesson/probabilities-of-the-teacher", probabilities_of_the_teacher);
    g_test_add_func("/train_lesson/losses-that-do-not-suit", losses_that_do_not_suit);
    g_test_add_func("/train_lesson/one-that-does-not-suit", one_that_does_not_suit);
    g_test_add_func("/train_lesson/classes-of-places", classes_of_places);
    g_test_add_func("/train_lesson/labels-of-all-samples", labels_of_all_samples);
    g_test_add_func("/train_lesson/axis-that-labels-leave", axis_that_labels_leave);
    g_test_add_func("/train_lesson/better-of-two", better_of_two);
    return g_test_run();
}
