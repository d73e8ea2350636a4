/*
 * Training over epochs: a run that is stopped anywhere and goes on from its checkpoint ends with the same bytes; what
 * a judge says; a range test that leaves everything as it was; new weights.
 */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/halt.h"
#include "data/npz.h"
#include "run_model.h"
#include "train/init.h"
#include "train/init_batch.h"
#include "train/lr_range.h"
#include "train/train_data.h"

#define SAMPLES 80
#define BATCH 16
#define EPOCHS 10 /* of 5 steps */

static const char net[] = "opset 17 graph g(%x:f32[N,6]) -> (%y) { %h = Gemm(%x, w:f32[6,8], b:f32[8]) "
                          "%d = Dropout(%h) %r = Relu(%d) %y = Gemm(%r, u:f32[8,3], c:f32[3]) }";

/* All that trains a copy of the net. */
typedef struct {
    char *data_path, *checkpoint;
    HnModel *plain;
    GPtrArray *inputs, *objectives, *compared;
    HnUpdateRule *rule;
    HnData *data;
    HnTargets targets;
    HnDevice *device;
    HnTrainer *trainer;
    HnBatches *batches;
    HnJudge *judge;
    HnFit *fit;
    gint halt;
    int64_t stop_at;
    HnProgress progress;
    double lr;     /* 0: 0.02 */
    gboolean last; /* weights are kept, not the best */
} Set;

static HnModel *new_net(void)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = test_model(net);
    g_autoptr(HnModel) work = test_model(net);
    g_assert_true(hn_init_weights(work, &(HnTrainableOptions){ 0 }, 5, &error));
    g_assert_no_error(error);
    for (guint i = 0; i < work->graph->weights->len; i++) {
        const HnValue *v = work->graph->weights->pdata[i];
        g_assert_true(hn_trainer_put(m, v->name, v->weight, &error));
    }
    return m;
}

static HnModel *anew(gpointer data, GError **error)
{
    (void)data;
    (void)error;
    return new_net();
}

static void stepped(gpointer data, const HnFitStep *step)
{
    Set *s = data;
    g_assert_true(isfinite(step->loss) && isfinite(step->running));
    if (step->steps == s->stop_at)
        hn_halt_set(&s->halt, HN_HALT_USER);
}

/* Class k of 3 where x[k] is the largest of the first three. */
static void write_data(const char *path)
{
    g_autoptr(GError) error = NULL;
    const int64_t dims[] = { SAMPLES, 6 };
    g_autoptr(HnTensor) x = test_random(HN_F32, 2, dims, 3), label = hn_tensor_new(HN_I64, 1, dims, NULL, &error);
    for (int64_t i = 0; i < SAMPLES; i++) {
        const float *row = (const float *)x->data + i * 6;
        hn_tensor_set_i64(label, i, row[1] > row[0] ? (row[2] > row[1] ? 2 : 1) : row[2] > row[0] ? 2 : 0);
    }
    HnTensor *both[] = { x, label };
    g_assert_true(hn_npz_write(path, (const char *const[]){ "x", "label" }, both, 2, NULL, &error));
}

static void open_trainer(Set *s, int threads)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSample) first = hn_batches_next(s->batches, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) types = hn_train_types(first, &error);
    const HnTrainerOptions o = {
        .objectives = s->objectives, .rule = s->rule, .in = (HnType *const *)types->pdata, .threads = threads, .seed = 1
    };
    s->device = hn_device_new(&hn_backend_cpu, &error);
    s->trainer = hn_trainer_new(new_net(), s->device, &o, &error);
    g_assert_no_error(error);
    g_assert_true(hn_batches_go(s->batches, (HnBatchPlace){ 0, 0 }, &error));
    s->compared = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    g_ptr_array_add(s->compared, hn_trainer_compared(s->trainer, 0));
}

static HnFeed feed_of(const Set *s)
{
    return (HnFeed){ s->trainer, s->batches, s->data, &s->targets, (HnType *const *)s->compared->pdata };
}

static void open_fit(Set *s, int threads)
{
    const HnJudgeOptions jo = { .data = s->data,
                                .targets = &s->targets,
                                .forward = { .backend = &hn_backend_cpu, .threads = threads, .inputs = s->inputs },
                                .batch = 32 };
    s->judge = hn_judge_new(&jo);
    const HnFitOptions fo = { .feed = feed_of(s),
                              .judge = s->judge,
                              .student = anew,
                              .stepped = stepped,
                              .data = s,
                              .epochs = EPOCHS,
                              .schedule = { HN_LR_COSINE, 3, EPOCHS * (SAMPLES / BATCH), 0 },
                              .lr = s->lr != 0 ? s->lr : 0.02,
                              .averages = TRUE,
                              .last = s->last,
                              .checkpoint = s->checkpoint,
                              .recipe = "test",
                              .progress = &s->progress };
    s->fit = hn_fit_new(&fo);
}

static Set *open_set(const char *folder, int threads, int64_t stop_at)
{
    g_autoptr(GError) error = NULL;
    Set *s = g_new0(Set, 1);
    s->data_path = g_build_filename(folder, "data.npz", NULL);
    s->checkpoint = g_build_filename(folder, "part.checkpoint", NULL);
    s->stop_at = stop_at;
    s->progress.cancel = &s->halt;
    write_data(s->data_path);
    s->plain = new_net();
    s->inputs = hn_train_inputs(s->plain);
    s->data =
        hn_data_open(s->data_path, (HnValue *const *)s->inputs->pdata, 1, &(HnDataOptions){ .rows = TRUE }, &error);
    g_assert_no_error(error);
    s->batches = hn_batches_new(
        s->data, &(HnBatchesOptions){ .batch = BATCH, .shuffle = TRUE, .seed = 4, .threads = 1 }, &error);
    s->objectives = hn_objectives_parse("ce", &error);
    s->rule = hn_update_rule_parse("adamw", &error);
    g_assert_no_error(error);
    s->rule->clip = 1;
    s->rule->ema = 0.9;
    s->targets = (HnTargets){ .objectives = s->objectives };
    open_trainer(s, threads);
    open_fit(s, threads);
    return s;
}

static void close_set(Set *s)
{
    hn_fit_free(s->fit);
    hn_judge_free(s->judge);
    hn_trainer_free(s->trainer);
    hn_device_unref(s->device);
    hn_batches_free(s->batches);
    hn_data_free(s->data);
    hn_update_rule_free(s->rule);
    g_ptr_array_unref(s->objectives);
    g_ptr_array_unref(s->compared);
    g_ptr_array_unref(s->inputs);
    hn_model_free(s->plain);
    g_free(s->data_path);
    g_free(s->checkpoint);
    g_free(s);
}

/* The sum over all that was learned, and all that the optimizer keeps. */
static char *hash_of(const Set *s)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = new_net();
    g_assert_true(hn_fit_store(s->fit, m, &error));
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        g_checksum_update(sum, t->data, (gssize)t->bytes);
    }
    for (guint i = 0; i < hn_trainer_n_states(s->trainer); i++) {
        const char *name;
        const HnTensor *t = hn_trainer_state(s->trainer, i, &name);
        g_checksum_update(sum, t->data, (gssize)t->bytes);
    }
    return g_strdup(g_checksum_get_string(sum));
}

static char *make_folder(void)
{
    g_autoptr(GError) error = NULL;
    char *folder = g_dir_make_tmp("hone-fit-XXXXXX", &error);
    g_assert_no_error(error);
    return folder;
}

static void remove_folder(char *folder)
{
    static const char *const names[] = { "data.npz", "part.checkpoint" };
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(folder, names[i], NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
    g_free(folder);
}

/* 50 steps, stopped behind ten different ones. */
static void test_goes_on(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        g_autoptr(GError) error = NULL;
        char *folder = make_folder();
        Set *whole = open_set(folder, threads, -1);
        g_assert_true(hn_fit_run(whole->fit, &error));
        g_assert_no_error(error);
        g_autofree char *want = hash_of(whole);
        const HnEpoch *last = &g_array_index(hn_fit_epochs(whole->fit), HnEpoch, EPOCHS - 1);
        g_assert_cmpint(last->steps, ==, 50);
        g_assert_cmpfloat(last->loss, <, g_array_index(hn_fit_epochs(whole->fit), HnEpoch, 0).loss);
        close_set(whole);
        HnRng rng = hn_rng(11);
        for (int i = 0; i < 10; i++) {
            Set *part = open_set(folder, threads, hn_rng_int(&rng, 1, 49));
            g_assert_false(hn_fit_run(part->fit, &error));
            g_assert_error(error, HN_ERROR, HN_ERROR_INTERRUPTED);
            g_clear_error(&error);
            close_set(part);
            Set *rest = open_set(folder, threads, -1);
            hn_fit_free(rest->fit);
            hn_judge_free(rest->judge);
            rest->lr = 0.5; /* the checkpoint's is gone on with */
            open_fit(rest, threads);
            g_assert_true(hn_fit_resume(rest->fit, rest->checkpoint, &error));
            g_assert_true(hn_fit_run(rest->fit, &error));
            g_assert_no_error(error);
            g_autofree char *got = hash_of(rest);
            g_assert_cmpstr(got, ==, want);
            close_set(rest);
        }
        remove_folder(folder);
    }
}

static void test_range(void)
{
    g_autoptr(GError) error = NULL;
    char *folder = make_folder();
    Set *s = open_set(folder, 1, -1);
    const HnFeed feed = feed_of(s);
    HnLrRange found;
    g_autofree char *before = hash_of(s);
    g_assert_true(hn_lr_range(&feed, &found, &error));
    g_assert_no_error(error);
    g_autofree char *after = hash_of(s);
    g_assert_cmpstr(after, ==, before);
    g_assert_cmpint(hn_trainer_steps(s->trainer), ==, 0);
    g_assert_cmpint(hn_batches_place(s->batches).epoch, ==, 0);
    g_assert_cmpfloat(found.lr, >, 1e-5);
    g_assert_cmpfloat(found.lr, <, 0.1);
    g_assert_cmpint(found.steps, >, 20);
    close_set(s);
    remove_folder(folder);
}

/* Losses by hand, for batches that do not divide the set. */
static void test_judge(void)
{
    g_autoptr(GError) error = NULL;
    char *folder = make_folder();
    Set *s = open_set(folder, 1, -1);
    HnJudgement made;
    g_assert_true(hn_judge_run(s->judge, new_net(), &made, &error));
    g_assert_no_error(error);
    g_autoptr(HnModel) m = new_net();
    g_autoptr(HnSession) session = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    double loss = 0;
    int right = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        g_autoptr(HnSample) one = hn_data_load(s->data, i, &error);
        HnTensor *y = NULL;
        g_assert_true(hn_session_run(session, one->in, &y, &error));
        const float *v = y->data;
        const int64_t label = hn_tensor_get_i64(one->label, 0);
        const double sum = exp((double)v[0]) + exp((double)v[1]) + exp((double)v[2]);
        loss += log(sum) - (double)v[label];
        right += v[label] >= fmaxf(v[0], fmaxf(v[1], v[2]));
        hn_tensor_unref(y);
    }
    g_assert_cmpint(made.samples, ==, SAMPLES);
    g_assert_cmpfloat_with_epsilon(made.loss, loss / SAMPLES, 1e-5);
    g_assert_cmpfloat_with_epsilon(made.top1, right / (double)SAMPLES, 1e-9);
    HnJudgement again;
    g_assert_true(hn_judge_run(s->judge, new_net(), &again, &error));
    g_assert_true(again.loss == made.loss && again.top1 == made.top1 && again.samples == made.samples);
    close_set(s);
    remove_folder(folder);
}

/* Uphill, each epoch is worse than the one before: the best weights are kept, or the last ones where they are asked
 * for. */
static void test_last(void)
{
    for (int last = 0; last <= 1; last++) {
        g_autoptr(GError) error = NULL;
        char *folder = make_folder();
        Set *s = open_set(folder, 1, -1);
        hn_fit_free(s->fit);
        hn_judge_free(s->judge);
        s->lr = -0.02;
        s->last = last;
        open_fit(s, 1);
        g_assert_true(hn_fit_run(s->fit, &error));
        g_assert_no_error(error);
        g_autoptr(HnModel) m = new_net();
        g_assert_true(hn_fit_store(s->fit, m, &error));
        const char *name;
        const HnTensor *now = hn_trainer_learned(s->trainer, 0, TRUE, &name, NULL);
        g_assert_true(hn_tensor_equal(hn_graph_find(m->graph, name)->weight, now) == (last == 1));
        g_assert_cmpint(hn_fit_best(s->fit), ==, last ? EPOCHS : 1);
        close_set(s);
        remove_folder(folder);
    }
}

static double deviation_of(const HnTensor *t, double *mean)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const double x = hn_tensor_get_f64(t, i);
        sum += x;
        squares += x * x;
    }
    *mean = sum / (double)t->n;
    return sqrt(squares / (double)t->n - *mean * *mean);
}

/* By what weights are for. */
static void test_init(void)
{
    static const struct {
        const char *name;
        double mean, deviation;
    } want[] = { { "w", 0, 0.1178 /* sqrt(2 / 144) */ },
                 { "b", 0, 0 },
                 { "s", 1, 0 },
                 { "t", 0, 0 },
                 { "m", 0, 0 },
                 { "v", 1, 0 },
                 { "e", 0, 0.02 } };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[2,16,4,4], %i:i64[3]) -> (%y, %z) { %c = Conv(%x, w:f32[64,16,3,3], b:f32[64]) "
        "%y = BatchNormalization(%c, s:f32[64], t:f32[64], m:f32[64], v:f32[64]) %z = Gather(e:f32[100,20], %i) }");
    g_assert_true(hn_init_weights(m, &(HnTrainableOptions){ 0 }, 1, &error));
    g_assert_no_error(error);
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        double mean, deviation = deviation_of(hn_graph_find(m->graph, want[i].name)->weight, &mean);
        g_assert_cmpfloat_with_epsilon(mean, want[i].mean, 0.003);
        g_assert_cmpfloat_with_epsilon(deviation, want[i].deviation, 0.003);
    }
}

/* Channels of the first layer, and not those of the last. */
static void test_init_by_batch(void)
{
    static const char text[] = "opset 17 graph g(%x:f32[32,6]) -> (%y, %h) { %h = Gemm(%x, w:f32[6,8], b:f32[8]) "
                               "%r = Relu(%h) %y = Gemm(%r, u:f32[8,3], c:f32[3]) }";
    g_autoptr(GError) error = NULL;
    const int64_t dims[] = { 32, 6 };
    g_autoptr(HnTensor) x = test_random(HN_F32, 2, dims, 3), u = NULL;
    g_autoptr(HnModel) m = test_model(text);
    HnModel *work = test_model(text);
    for (int k = 0; k < 2; k++) {
        HnModel *each = k == 0 ? m : work;
        for (guint i = 0; i < each->graph->weights->len; i++) {
            const HnTensor *t = ((const HnValue *)each->graph->weights->pdata[i])->weight;
            g_autoptr(HnTensor) r = test_random(HN_F32, t->ndim, t->dims, 20 + i);
            g_assert_true(hn_trainer_put(each, ((const HnValue *)each->graph->weights->pdata[i])->name, r, &error));
        }
    }
    u = hn_tensor_copy(hn_graph_find(m->graph, "u")->weight, NULL, &error);
    const HnInitBatch o = { .backend = &hn_backend_cpu, .threads = 1, .in = (HnTensor *const[]){ x } };
    g_assert_true(hn_init_by_batch(m, work, &o, &error));
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(u, hn_graph_find(m->graph, "u")->weight));
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    HnTensor *out[2] = { NULL }, *in[] = { x };
    g_assert_true(hn_session_run(s, in, out, &error));
    for (int64_t c = 0; c < 8; c++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < 32; i++) {
            const double v = hn_tensor_get_f64(out[1], i * 8 + c);
            sum += v / 32;
            squares += v * v / 32;
        }
        g_assert_cmpfloat_with_epsilon(sum, 0, 1e-5);
        g_assert_cmpfloat_with_epsilon(squares, 1, 1e-4);
    }
    hn_tensor_unref(out[0]);
    hn_tensor_unref(out[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fit/goes-on", test_goes_on);
    g_test_add_func("/fit/range", test_range);
    g_test_add_func("/fit/judge", test_judge);
    g_test_add_func("/fit/last", test_last);
    g_test_add_func("/fit/init", test_init);
    g_test_add_func("/fit/init-by-batch", test_init_by_batch);
    return g_test_run();
}
