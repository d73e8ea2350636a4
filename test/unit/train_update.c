/*
 * Optimizers, as the graph that updates weights from given gradients: twenty steps of it against their formulas, which
 * stand here once more, in double.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "run_model.h"
#include "run/engine.h"
#include "run/session.h"
#include "train/update_graph.h"

#define STEPS 20
#define MAX_N 600

typedef struct {
    double beta1, beta2, epsilon, momentum, decay, rate;
    gboolean nesterov;
} Formula;

typedef struct {
    double w[MAX_N], m[MAX_N], v[MAX_N], average[MAX_N];
} Judge;

typedef void (*StepFn)(const Formula *f, Judge *j, int i, double g, double decay, int t);

static void sgd(const Formula *f, Judge *j, int i, double g, double decay, int t)
{
    (void)t;
    g += decay * j->w[i];
    j->m[i] = f->momentum * j->m[i] + g;
    j->w[i] -= f->rate * (f->nesterov ? g + f->momentum * j->m[i] : j->m[i]);
}

static void adamw(const Formula *f, Judge *j, int i, double g, double decay, int t)
{
    j->m[i] = f->beta1 * j->m[i] + (1 - f->beta1) * g;
    j->v[i] = f->beta2 * j->v[i] + (1 - f->beta2) * g * g;
    const double m = j->m[i] / (1 - pow(f->beta1, t)), v = j->v[i] / (1 - pow(f->beta2, t));
    j->w[i] -= f->rate * decay * j->w[i] + f->rate * m / (sqrt(v) + f->epsilon);
}

static void lion(const Formula *f, Judge *j, int i, double g, double decay, int t)
{
    const double by = f->beta1 * j->m[i] + (1 - f->beta1) * g;
    (void)t;
    j->w[i] -= f->rate * ((by > 0) - (by < 0) + decay * j->w[i]);
    j->m[i] = f->beta2 * j->m[i] + (1 - f->beta2) * g;
}

/* Two weights: a matrix, which decays, and a row, which does not. */
typedef struct {
    HnUpdateRule *rule;
    HnModel *model;
    HnEngine *engine;
    HnSession *session;
    HnTensor *weight[2], *gradient[2], *numbers;
    HnUpdatedWeight list[3];
    Judge judge[2];
} Bench;

static const int64_t dims[2][2] = { { 23, 26 }, { 33, 0 } };

static void bench_open(Bench *b, const char *rule, double clip, double ema)
{
    HnRng rng = hn_rng(3);
    const int64_t four = 4;
    GArray *variables = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, NULL);
    memset(b, 0, sizeof *b);
    b->rule = hn_update_rule_parse(rule, &error);
    g_assert_no_error(error);
    b->rule->clip = clip;
    b->rule->ema = ema;
    b->numbers = hn_tensor_new(HN_F32, 1, &four, NULL, NULL);
    for (int k = 0; k < 2; k++) {
        b->weight[k] = hn_tensor_new(HN_F32, 2 - k, dims[k], NULL, NULL);
        b->gradient[k] = hn_tensor_new(HN_F32, 2 - k, dims[k], NULL, NULL);
        for (int64_t i = 0; i < b->weight[k]->n; i++) {
            hn_tensor_set_f64(b->weight[k], i, hn_rng_range(&rng, -1, 1));
            b->judge[k].w[i] = b->judge[k].average[i] = hn_tensor_get_f64(b->weight[k], i);
        }
        b->list[k] = (HnUpdatedWeight){ .name = k == 0 ? "w" : "b", .elements = b->weight[k] };
    }
    b->model = hn_update_graph_new(b->rule, b->list, 2, NULL, &variables, &error);
    g_assert_no_error(error);
    b->engine = hn_engine_new(b->model, device, &(HnEngineOptions){ .variables = (void *)variables->data }, &error);
    g_assert_no_error(error);
    b->session = hn_session_new_on(b->engine, &(HnSessionOptions){ .threads = 1 }, &error);
    g_assert_no_error(error);
    g_array_unref(variables);
}

static void bench_close(Bench *b)
{
    hn_session_free(b->session);
    hn_engine_unref(b->engine);
    hn_model_free(b->model);
    hn_update_rule_free(b->rule);
    hn_tensor_unref(b->numbers);
    for (int k = 0; k < 2; k++) {
        hn_tensor_unref(b->weight[k]);
        hn_tensor_unref(b->gradient[k]);
        g_free(b->list[k].average);
    }
}

static void judge_step(Bench *b, const Formula *f, StepFn step, int t)
{
    double squares = 0;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < b->gradient[k]->n; i++)
            squares += pow(hn_tensor_get_f64(b->gradient[k], i), 2);
    const double limit = b->rule->clip, scale = limit > 0 ? fmin(limit / (sqrt(squares) + 1e-6), 1) : 1;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < b->gradient[k]->n; i++) {
            Judge *j = &b->judge[k];
            step(f, j, (int)i, scale * hn_tensor_get_f64(b->gradient[k], i), k == 0 ? f->decay : 0, t);
            j->average[i] = b->rule->ema * j->average[i] + (1 - b->rule->ema) * j->w[i];
        }
}

/* The largest difference, by the largest element. */
static double apart(const HnTensor *got, const double *want)
{
    double most = 0, largest = 0;
    for (int64_t i = 0; i < got->n; i++) {
        most = fmax(most, fabs(hn_tensor_get_f64(got, i) - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    return most / largest;
}

static void bench_step(Bench *b, double rate, int t, HnRng *rng)
{
    HnTensor *in[] = { b->gradient[0], b->gradient[1], b->numbers }, *out[16] = { 0 };
    g_autoptr(GError) error = NULL;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < b->gradient[k]->n; i++)
            hn_tensor_set_f64(b->gradient[k], i, hn_rng_range(rng, -1, 1) / t);
    hn_update_rule_numbers(b->rule, rate, t, b->numbers->data);
    hn_session_run(b->session, in, out, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < G_N_ELEMENTS(out); i++)
        hn_tensor_unref(out[i]);
}

static void test_formulas(void)
{
    static const struct {
        const char *rule;
        StepFn step;
        Formula f;
    } cases[] = {
        { "sgd:momentum=0", sgd, { .rate = 0.1 } },
        { "sgd:momentum=0:weight_decay=0.1", sgd, { .rate = 0.1, .decay = 0.1 } },
        { "sgd:momentum=0.9", sgd, { .rate = 0.05, .momentum = 0.9 } },
        { "sgd:momentum=0.8:weight_decay=0.1:nesterov=1",
          sgd,
          { .rate = 0.05, .momentum = 0.8, .decay = 0.1, .nesterov = TRUE } },
        { "adamw", adamw, { .rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.01 } },
        { "adamw:beta1=0.8:beta2=0.95:epsilon=0.01:weight_decay=0.1",
          adamw,
          { .rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.01, .decay = 0.1 } },
        { "lion", lion, { .rate = 0.01, .beta1 = 0.9, .beta2 = 0.99 } },
        { "lion:beta1=0.8:beta2=0.95:weight_decay=0.1",
          lion,
          { .rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .decay = 0.1 } },
    };
    static const double clips[] = { 0, 0.75, 1e3 };
    for (guint c = 0; c < G_N_ELEMENTS(cases) * G_N_ELEMENTS(clips); c++) {
        Bench b;
        HnRng rng = hn_rng(c);
        bench_open(&b, cases[c / 3].rule, clips[c % 3], 0.9);
        for (int t = 1; t <= STEPS; t++) {
            bench_step(&b, cases[c / 3].f.rate, t, &rng);
            judge_step(&b, &cases[c / 3].f, cases[c / 3].step, t);
        }
        for (int k = 0; k < 2; k++) {
            g_assert_cmpfloat(apart(b.weight[k], b.judge[k].w), <, 1e-6);
            g_assert_cmpfloat(apart(hn_engine_variable(b.engine, b.list[k].average), b.judge[k].average), <, 1e-6);
        }
        bench_close(&b);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/train/update/formulas", test_formulas);
    return g_test_run();
}
