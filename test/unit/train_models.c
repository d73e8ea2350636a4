/*
 * Gradients of real models: for each folder of HONE_MODELS (NAME/model.onnx, NAME/test_data_set_0/input_K.pb) whose
 * model computes with floats, those of all its float weights, against differences of its results; and a step towards
 * its own results with noise, which lowers the loss.
 */
#include <math.h>
#include <string.h>

#include "onnx/onnx.h"
#include "onnx/tensor_file.h"
#include "op/infer.h"
#include "pass/inline_functions.h"
#include "pass/opset.h"
#include "pass/pass.h"
#include "pass/precision/precision.h"
#include "run/engine.h"
#include "run_model.h"
#include "train/reverse.h"
#include "train/trainer.h"

#define CLOSE 0.02 /* of the derivative: weights are moved in f32, past some kinks */

/* A model whose float weights are variables, twice: as it is, and with the gradient of sum(r_k * y_k) behind it. */
typedef struct {
    HnModel *plain, *full;
    HnEngine *plain_engine, *full_engine;
    GPtrArray *in, *r; /* HnTensor *: what is fed, and r_k; NULL: y_k is no float */
    GPtrArray *names;  /* char *: weights that have a gradient, in the order of full's results */
} Pair;

/* Integers without axes become weights: conditions are known then. */
static void fix_integers(HnModel *m, GPtrArray *in)
{
    for (guint i = in->len; i > 0; i--) {
        HnTensor *t = in->pdata[i - 1];
        HnValue *v = m->graph->inputs->pdata[i - 1];
        if (hn_dtype_in(t->dtype, HN_T_FLOATS) || t->ndim > 0)
            continue;
        hn_graph_remove_input(m->graph, (int)i - 1);
        hn_graph_add_weight(m->graph, v, t);
        g_ptr_array_remove_index(in, i - 1);
    }
}

static GPtrArray *inputs_of(const HnModel *m, const char *folder)
{
    g_autoptr(GError) error = NULL;
    GPtrArray *in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        g_autofree char *name = g_strdup_printf("input_%u.pb", i);
        g_autofree char *file = g_build_filename(folder, "test_data_set_0", name, NULL);
        HnTensor *t = hn_onnx_tensor_read(file, NULL, &error);
        g_assert_no_error(error);
        HnTensor *wide = hn_dtype_is_half(t->dtype) ? hn_tensor_new(HN_F32, t->ndim, t->dims, NULL, NULL) : NULL;
        for (int64_t k = 0; wide != NULL && k < t->n; k++)
            hn_tensor_set_f64(wide, k, hn_tensor_get_f64(t, k));
        if (wide != NULL)
            hn_tensor_unref(t);
        g_ptr_array_add(in, wide != NULL ? wide : t);
    }
    return in;
}

/* In f32 and the newest opset, with branches and loops unfolded. */
static HnModel *read_model(const char *folder, GPtrArray **in)
{
    static const char *const passes[] = { "fold-constants", "inline-if", "unroll-loop", "eliminate-dead", NULL };
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *path = g_build_filename(folder, "model.onnx", NULL);
    HnModel *m = hn_onnx_read_file(path, NULL, &error);
    HnPrecisionLog precision;
    HnPassLog log;
    g_assert_no_error(error);
    hn_model_drop_defaults(m);
    *in = inputs_of(m, folder);
    fix_integers(m, *in);
    hn_precision_log_init(&precision);
    hn_pass_log_init(&log);
    (void)(hn_inline_functions(m, &error) && hn_convert_opset(m, HN_OPSET_MAX, blocked, &error) &&
           hn_convert_precision(m, &(HnPrecisionOptions){ .to = HN_F32 }, &precision, &error) &&
           hn_pass_run(m, &(HnPassOptions){ .level = 1, .only = passes, .fold_bytes = HN_FOLD_BYTES }, &log, &error));
    g_assert_no_error(error);
    hn_precision_log_clear(&precision);
    hn_pass_log_clear(&log);
    return m;
}

static void find_integers(HnNode *n, gpointer found)
{
    static const char *const types[] = { "QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "ConvInteger",
                                         "MatMulInteger",  "DequantizeLinear",      NULL };
    *(gboolean *)found = *(gboolean *)found || g_strv_contains(types, n->op_type);
}

static gboolean is_quantized(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, "model.onnx", NULL);
    g_autoptr(HnModel) m = hn_onnx_read_file(path, NULL, NULL);
    gboolean found = FALSE;
    if (m != NULL)
        hn_graph_foreach_node(m->graph, find_integers, &found);
    return found;
}

static HnTypes *types_of(HnModel *m, GPtrArray *in)
{
    g_autoptr(GError) error = NULL;
    HnTypes *types = hn_types_new(m);
    for (guint i = 0; i < in->len; i++) {
        const HnTensor *t = in->pdata[i];
        g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->ndim, t->dims);
        hn_types_set(types, m->graph->inputs->pdata[i], type);
    }
    (void)hn_types_enter(types, m->graph, FALSE, &error);
    for (guint i = 0; i < m->graph->nodes->len && error == NULL; i++)
        (void)hn_types_node(types, m->graph->nodes->pdata[i], 4096, &error);
    g_assert_no_error(error);
    return types;
}

/* FALSE: *error says which node has no gradient. */
static gboolean add_gradients(Pair *p, GError **error)
{
    HnGraph *g = p->full->graph;
    g_autoptr(HnTypes) types = types_of(p->full, p->in);
    g_autoptr(GPtrArray) of = g_ptr_array_new(), dy = g_ptr_array_new(), wanted = g_ptr_array_new();
    for (guint k = 0; k < g->outputs->len; k++) {
        const HnType *t = hn_types_get(types, g->outputs->pdata[k]);
        int64_t dims[HN_MAX_RANK];
        g_assert_true(hn_type_is_fixed(t, dims));
        g_ptr_array_add(p->r, t->dtype == HN_F32 ? test_random(HN_F32, t->rank, dims, 11 + k) : NULL);
        if (t->dtype != HN_F32)
            continue;
        HnValue *r = hn_graph_new_value(g, "r");
        hn_graph_add_weight(g, r, p->r->pdata[k]);
        g_ptr_array_add(of, g->outputs->pdata[k]);
        g_ptr_array_add(dy, r);
    }
    for (guint i = 0; i < p->plain->graph->weights->len; i++) {
        const HnValue *v = p->plain->graph->weights->pdata[i];
        if (v->weight != NULL && v->weight->dtype == HN_F32 && v->weight->n > 1 && v->users->len > 0)
            g_ptr_array_add(wanted, hn_graph_find(g, v->name));
    }
    g_autofree HnValue **gradients = g_new0(HnValue *, wanted->len + 1u);
    const HnReverse reverse = { .graph = g,
                                .types = types,
                                .n = (int)of->len,
                                .of = (HnValue *const *)of->pdata,
                                .dy = (HnValue *const *)dy->pdata,
                                .n_wanted = (int)wanted->len,
                                .wanted = (HnValue *const *)wanted->pdata };
    if (!hn_reverse(&reverse, gradients, error))
        return FALSE;
    while (g->outputs->len > 0)
        hn_graph_remove_output(g, (int)g->outputs->len - 1);
    for (guint i = 0; i < wanted->len; i++)
        if (gradients[i] != NULL) {
            hn_graph_add_output(g, gradients[i]);
            g_ptr_array_add(p->names, g_strdup(((HnValue *)wanted->pdata[i])->name));
        }
    return TRUE;
}

static HnEngine *engine_of(HnModel *m, const GPtrArray *names)
{
    g_autoptr(GError) error = NULL;
    g_autofree HnVariable *variables = g_new0(HnVariable, names->len + 1u);
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
    for (guint i = 0; i < names->len; i++)
        variables[i].name = names->pdata[i];
    HnEngine *e = hn_engine_new(m, device, &(HnEngineOptions){ .variables = variables }, &error);
    g_assert_no_error(error);
    return e;
}

static GPtrArray *run(HnEngine *e, GPtrArray *in)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSession) s = hn_session_new_on(e, &(HnSessionOptions){ .threads = 1 }, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) out = test_run(s, in);
    return test_copies(out);
}

static double loss_of(Pair *p)
{
    g_autoptr(GPtrArray) y = run(p->plain_engine, p->in);
    double sum = 0;
    for (guint k = 0; k < y->len; k++)
        for (int64_t i = 0; p->r->pdata[k] != NULL && i < ((HnTensor *)y->pdata[k])->n; i++)
            sum += hn_tensor_get_f64(y->pdata[k], i) * hn_tensor_get_f64(p->r->pdata[k], i);
    return sum;
}

static double rms(const HnTensor *t)
{
    double sum = 0;
    for (int64_t i = 0; i < t->n; i++)
        sum += hn_tensor_get_f64(t, i) * hn_tensor_get_f64(t, i);
    return sqrt(sum / (double)MAX(t->n, 1));
}

/* Where each weight goes: as far as its like are large, most of them uphill. Returns the derivative that the gradients
 * say. */
static double choose_direction(const Pair *p, const GPtrArray *gradients, GPtrArray *d)
{
    HnRng rng = hn_rng(5);
    double slope = 0;
    for (guint k = 0; k < p->names->len; k++) {
        const HnTensor *w = hn_engine_variable(p->plain_engine, p->names->pdata[k]), *g = gradients->pdata[k];
        HnTensor *to = hn_tensor_new(HN_F32, w->ndim, w->dims, NULL, NULL);
        const double size = rms(w);
        g_assert_cmpint(g->n, ==, w->n);
        for (int64_t i = 0; i < w->n; i++) {
            const double up = hn_tensor_get_f64(g, i), far = fabs(hn_rng_normal(&rng)) * size;
            hn_tensor_set_f64(to, i, (up < 0) == (hn_rng_int(&rng, 0, 3) > 0) ? -far : far);
            slope += up * hn_tensor_get_f64(to, i);
        }
        g_ptr_array_add(d, to);
    }
    return slope;
}

static void move_weights(Pair *p, const GPtrArray *was, const GPtrArray *d, double h)
{
    for (guint k = 0; k < p->names->len; k++) {
        HnTensor *w = hn_engine_variable(p->plain_engine, p->names->pdata[k]);
        for (int64_t i = 0; i < w->n; i++)
            hn_tensor_set_f64(w, i, hn_tensor_get_f64(was->pdata[k], i) + h * hn_tensor_get_f64(d->pdata[k], i));
    }
    hn_engine_wrote(p->plain_engine);
}

/* Larger steps meet kinks, smaller ones roundings: one of them has to agree. */
static void compare(Pair *p, const char *name)
{
    static const double steps[] = { 1e-3, 1e-4, 1e-5, 1e-6 };
    g_autoptr(GPtrArray) gradients = run(p->full_engine, p->in);
    g_autoptr(GPtrArray) d = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autoptr(GPtrArray) was = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    const double slope = choose_direction(p, gradients, d);
    double found = NAN;
    for (guint k = 0; k < p->names->len; k++)
        g_ptr_array_add(was, hn_tensor_copy(hn_engine_variable(p->plain_engine, p->names->pdata[k]), NULL, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(steps) && !(fabs(found - slope) <= CLOSE * fabs(found)); i++) {
        move_weights(p, was, d, steps[i]);
        const double up = loss_of(p);
        move_weights(p, was, d, -steps[i]);
        found = (up - loss_of(p)) / (2 * steps[i]);
        g_test_message("%s: %u weights, derivative %.6g, by a step of %g: %.6g", name, p->names->len, slope, steps[i],
                       found);
    }
    if (!(fabs(found - slope) <= CLOSE * fabs(found)))
        g_test_fail();
}

static void check_folder(gconstpointer folder)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_path_get_basename(folder);
    Pair p = { .r = g_ptr_array_new(), .names = g_ptr_array_new_with_free_func(g_free) };
    g_autoptr(GPtrArray) again = NULL;
    p.plain = read_model(folder, &p.in);
    p.full = read_model(folder, &again);
    if (add_gradients(&p, &error)) {
        g_assert_cmpuint(p.names->len, >, 0);
        p.plain_engine = engine_of(p.plain, p.names);
        p.full_engine = engine_of(p.full, p.names);
        compare(&p, name);
    } else if (g_regex_match_simple("operator '(LSTM|GRU|RNN)' has no gradient", error->message, 0, 0)) {
        g_test_incomplete(error->message);
    } else {
        g_test_message("%s: %s", name, error->message);
        g_test_fail();
    }
    hn_engine_unref(p.plain_engine);
    hn_engine_unref(p.full_engine);
    hn_model_free(p.plain);
    hn_model_free(p.full);
    g_ptr_array_unref(p.in);
    g_ptr_array_unref(p.names);
    for (guint k = 0; k < p.r->len; k++)
        hn_tensor_unref(p.r->pdata[k]);
    g_ptr_array_unref(p.r);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* "mse@first+mse@second": of all results that are floats. */
static char *losses_of(const HnModel *m, const GPtrArray *y)
{
    GString *text = g_string_new(NULL);
    for (guint k = 0; k < y->len; k++)
        if (((HnTensor *)y->pdata[k])->dtype == HN_F32)
            g_string_append_printf(text, "%smse@%s", text->len > 0 ? "+" : "",
                                   ((HnValue *)m->graph->outputs->pdata[k])->name);
    return g_string_free(text, FALSE);
}

/* What the model makes, and some noise. */
static GPtrArray *targets_of(const GPtrArray *y)
{
    GPtrArray *targets = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    HnRng rng = hn_rng(9);
    for (guint k = 0; k < y->len; k++) {
        const HnTensor *t = y->pdata[k];
        if (t->dtype != HN_F32)
            continue;
        HnTensor *noisy = hn_tensor_new(HN_F32, t->ndim, t->dims, NULL, NULL);
        const double size = fmax(rms(t), 1e-3);
        for (int64_t i = 0; i < t->n; i++)
            hn_tensor_set_f64(noisy, i, hn_tensor_get_f64(t, i) + 0.1 * size * hn_rng_normal(&rng));
        g_ptr_array_add(targets, noisy);
    }
    return targets;
}

static HnStepLoss step(HnTrainer *t, const GPtrArray *in, const GPtrArray *targets, double lr)
{
    g_autoptr(GError) error = NULL;
    HnStepLoss made;
    hn_trainer_step(t, (HnTensor *const *)in->pdata, (HnTensor *const *)targets->pdata, lr, &made, &error);
    g_assert_no_error(error);
    return made;
}

/* Weights come from `was`, or go there. */
static void move_states(HnTrainer *t, GPtrArray *was, gboolean back)
{
    const char *name;
    for (guint i = 0; i < hn_trainer_n_states(t); i++) {
        HnTensor *s = hn_trainer_state(t, i, &name);
        if (!back)
            g_ptr_array_add(was, hn_tensor_copy(s, NULL, NULL));
        else
            memcpy(s->data, ((HnTensor *)was->pdata[i])->data, s->bytes);
    }
    hn_trainer_wrote(t, 0);
}

/* A step of plain descent that a straight line says will lower the loss by a part of it lowers it. */
static void expect_lower(HnTrainer *t, const GPtrArray *in, const GPtrArray *targets, const char *name)
{
    static const double parts[] = { 0.1, 0.01, 0.001, 1e-4, 1e-5 };
    g_autoptr(GPtrArray) was = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    const HnStepLoss first = step(t, in, targets, 0);
    double last = INFINITY;
    int64_t elements;
    move_states(t, was, FALSE);
    for (guint i = 0; i < G_N_ELEMENTS(parts) && !(last < first.loss); i++) {
        step(t, in, targets, parts[i] * first.loss / (first.norm * first.norm));
        hn_trainer_wrote(t, 0);
        last = step(t, in, targets, 0).loss;
        move_states(t, was, TRUE);
    }
    const guint n = hn_trainer_weights(t, &elements);
    g_test_message("%s: %u weights of %" PRId64 " elements, loss %.6g to %.6g", name, n, elements, first.loss, last);
    g_assert_cmpfloat(last, <, first.loss);
}

/* Weights of floats that are not trained, and why. */
static void tell_others(HnModel *m, const char *name)
{
    static const char *const whys[] = { "",      "", "", "", "one number", "it reaches no weight, bias, scale or table",
                                        "a mask" };
    g_autoptr(GError) error = NULL;
    hn_model_prepare(m, &error);
    g_assert_no_error(error);
    g_autoptr(GArray) list = hn_trainable_list(m, &(HnTrainableOptions){ NULL, NULL }, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < list->len; i++) {
        const HnTrainableWeight *w = &g_array_index(list, HnTrainableWeight, i);
        const HnTensor *t = hn_trainable_elements(w->v);
        if (w->why != HN_WHY_TRAINED && hn_dtype_in(t->dtype, HN_T_FLOATS) && t->n > 1)
            g_test_message("%s: weight '%s' of %" PRId64 " elements stays: %s", name, w->v->name, t->n, whys[w->why]);
    }
}

static void check_step(gconstpointer folder)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_path_get_basename(folder);
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
    g_autoptr(GPtrArray) in = NULL, again = NULL, names = g_ptr_array_new();
    g_autoptr(HnModel) plain = read_model(folder, &again);
    HnModel *work = read_model(folder, &in);
    HnEngine *engine = engine_of(plain, names);
    g_autoptr(GPtrArray) y = run(engine, again), targets = targets_of(y);
    hn_engine_unref(engine);
    tell_others(plain, name);
    g_autofree char *losses = losses_of(work, y);
    g_autoptr(GPtrArray) objectives = hn_objectives_parse(losses, &error);
    g_assert_no_error(error);
    g_autoptr(HnUpdateRule) rule = hn_update_rule_parse("sgd:momentum=0", &error);
    rule->clip = 1e30; /* asks for the norm */
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < in->len; i++) {
        const HnTensor *t = in->pdata[i];
        g_ptr_array_add(types, hn_type_fixed(t->dtype, t->ndim, t->dims));
    }
    g_ptr_array_add(types, NULL);
    const HnTrainerOptions o = { .objectives = objectives,
                                 .rule = rule,
                                 .keep_statistics = TRUE,
                                 .in = (HnType *const *)types->pdata,
                                 .threads = 1 };
    g_autoptr(HnTrainer) t = hn_trainer_new(work, device, &o, &error);
    g_assert_no_error(error);
    expect_lower(t, in, targets, name);
}

static void no_models(void)
{
    g_test_skip("HONE_MODELS names no folder of real models");
}

int main(int argc, char **argv)
{
    const char *folder = g_getenv("HONE_MODELS"), *name;
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_test_init(&argc, &argv, NULL);
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        char *path = g_build_filename(folder, name, NULL);
        g_autofree char *model = g_build_filename(path, "model.onnx", NULL);
        g_autofree char *test = g_strdup_printf("/train/%s", name), *by = g_strdup_printf("/train/step/%s", name);
        g_ptr_array_add(paths, path);
        if (!g_file_test(model, G_FILE_TEST_EXISTS) || is_quantized(path))
            continue;
        g_test_add_data_func(test, path, check_folder);
        g_test_add_data_func(by, path, check_step);
    }
    if (dir == NULL)
        g_test_add_func("/train/models", no_models);
    return g_test_run();
}
