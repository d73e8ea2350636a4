/*
 * A model on its way into integers, as hone-quantize goes it, but for times and files: prepared, planned, calibrated on
 * made-up samples, repaired, searched, carried out; in one of the modes, with options that follow from the bytes. What
 * comes of it is a valid graph, is the same when it is written and read, has the outputs that the model had, and runs.
 * Errors are fine.
 */
#include <math.h>
#include <stdio.h>

#include "cpu/core/cpu_backend.h"
#include "fuzz.h"
#include "ir/copy.h"
#include "onnx/onnx.h"
#include "op/infer.h"
#include "check/calibrate.h"
#include "quant/prepare.h"
#include "quant/qoperator.h"
#include "quant/repair.h"

#define SAMPLES "random:3"
#define OFTEN 2000 /* hn_progress_tell(): whoever is told as often as that has seen enough */

typedef struct {
    HnRng rng;
    HnBudget *budget;
    HnModel *prepared;
    HnData *data;
    HnScorer *scorer;
    HnQuantPlan *base;
    HnCalibMethod method;
    HnSearchOptions so;
    HnTuneBudget limits;
    HnProgress progress;
    gint cancel, left; /* left: so often somebody tells, then work is interrupted */
} Quantize;

/* --- the model ---------------------------------------------------------------------------------------------------- */

static HnModel *open_prepared(gpointer data, GError **error)
{
    const Quantize *q = data;
    g_autoptr(HnModel) m = hn_model_copy(q->prepared);
    return hn_graph_infer(m->graph, FALSE, error) ? g_steal_pointer(&m) : NULL;
}

static gboolean replace(gpointer data, HnModel *m, GError **error)
{
    Quantize *q = data;
    hn_model_free(q->prepared);
    q->prepared = hn_model_copy(m);
    (void)error;
    return TRUE;
}

static void count_down(gpointer data, const char *what, guint64 done, guint64 total)
{
    Quantize *q = data;
    (void)what;
    (void)done;
    (void)total;
    if (q->left-- == 0)
        g_atomic_int_set(&q->cancel, 1);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static gboolean chance(Quantize *q, int of)
{
    return hn_rng_int(&q->rng, 0, of - 1) == 0;
}

/* Those that do not go together come once in a while. */
static void make_options(Quantize *q, HnQuantForm form, HnQuantOptions *o)
{
    static const int blocks[] = { 32, 64, 128 };
    *o = (HnQuantOptions){ .activations = chance(q, 3) ? HN_I8 : HN_U8,
                           .symmetric = chance(q, 3),
                           .per_tensor = chance(q, 3),
                           .reduced = chance(q, 2),
                           .block = blocks[hn_rng_int(&q->rng, 0, 2)],
                           .symmetric_block = chance(q, 2),
                           .integers = form == HN_FORM_INT8 && chance(q, 2) };
    if (chance(q, 16))
        return;
    o->per_tensor = o->per_tensor || (o->integers && o->activations == HN_I8);
    o->symmetric = o->symmetric && form != HN_FORM_DYNAMIC;
    o->activations = form == HN_FORM_DYNAMIC ? HN_U8 : o->activations;
}

/* Most candidates in that form, some in another one. */
static gboolean make_plan(Quantize *q, HnModel *m, HnQuantForm form, GError **error)
{
    HnQuantOptions o;
    make_options(q, form, &o);
    if (!hn_quant_check(&o, form == HN_FORM_DYNAMIC, error))
        return FALSE;
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    q->base = hn_quant_plan_new(&o);
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        const HnQuantForm other = chance(q, 8) ? (HnQuantForm)hn_rng_int(&q->rng, HN_FORM_F32, HN_FORM_DYNAMIC) : form;
        hn_quant_plan_set_form(q->base, hn_quant_name(n), hn_quant_form_fit(n, other, &o));
    }
    return TRUE;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* Nothing that takes too long is run. */
static gboolean is_affordable(Quantize *q, HnModel *m, GError **error)
{
    const HnSessionOptions so = { .threads = 1, .budget = q->budget };
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_cpu, &so, error);
    g_autoptr(HnSample) x = s != NULL ? hn_data_load(q->data, 0, error) : NULL;
    return x != NULL && fuzz_affordable(s, x->in, error);
}

static gboolean open_data(Quantize *q, HnModel *m, GError **error)
{
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_null, &(HnSessionOptions){ .budget = q->budget }, error);
    if (s == NULL)
        return FALSE;
    const int n = hn_session_n_inputs(s);
    g_autofree HnValue **inputs = g_new0(HnValue *, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        inputs[i] = (HnValue *)hn_session_input(s, i);
    const HnDataOptions o = { .budget = q->budget, .seed = hn_rng_u64(&q->rng) };
    q->data = hn_data_open(SAMPLES, inputs, n, &o, error);
    return q->data != NULL;
}

static gboolean open_scorer(Quantize *q, HnModel *given, GError **error)
{
    const HnScorerOptions o = {
        .backend = &hn_backend_cpu, .threads = 1, .budget = q->budget, .progress = &q->progress
    };
    q->scorer = hn_scorer_new(given, q->data, 0, hn_data_count(q->data), &o, error);
    q->limits = (HnTuneBudget){ .memory = q->budget };
    q->so = (HnSearchOptions){ .open = open_prepared,
                               .data = q,
                               .scorer = q->scorer,
                               .all_alone = chance(q, 4),
                               .accumulated = chance(q, 4),
                               .backend = &hn_backend_cpu,
                               .threads = 1,
                               .budget = &q->limits,
                               .progress = &q->progress };
    if (q->scorer != NULL)
        hn_scorer_goals(q->scorer, chance(q, 2) ? NAN : hn_rng_double(&q->rng), &q->so.goals);
    return q->scorer != NULL;
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

static void set_spans(const HnCalibrator *c, const GPtrArray *values, HnCalibMethod method, HnQuantPlan *p)
{
    const HnQuantizer quantizer = hn_quantizer_of(&p->o);
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        const HnHistogram *h = hn_calibrator_get(c, v->name);
        HnQuantSpan span = { 0, 0 };
        if ((v->producer == NULL || v->producer->op == NULL || !hn_quant_span_fixed(v->producer, &span)) && h != NULL)
            hn_quant_span_of(h, method, 99.99, &quantizer, &span);
        hn_quant_plan_set_span(p, v->name, span.lo, span.hi);
    }
}

/* p[n] get the spans of the methods from `first` on. */
static gboolean calibrate(Quantize *q, HnQuantPlan *const *p, int n, HnCalibMethod first, GError **error)
{
    g_autoptr(HnModel) m = open_prepared(q, error);
    if (m == NULL)
        return FALSE;
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p[0]);
    hn_quant_spread(spread, m);
    g_autoptr(GPtrArray) values = hn_quant_wanted(spread, m), names = g_ptr_array_new();
    for (guint i = 0; i < values->len; i++)
        g_ptr_array_add(names, ((const HnValue *)values->pdata[i])->name);
    g_ptr_array_add(names, NULL);
    const HnCalibrateOptions o = {
        .values = (const char *const *)names->pdata, .threads = 1, .budget = q->budget, .progress = &q->progress
    };
    g_autoptr(HnCalibrator) c = hn_calibrator_new(m, &hn_backend_cpu, &o, error);
    for (int64_t i = 0; c != NULL && i < hn_data_count(q->data); i++) {
        g_autoptr(HnSample) x = hn_data_load(q->data, i, error);
        if (x == NULL || !hn_calibrator_run(c, x->in, error))
            return FALSE;
    }
    for (int k = 0; c != NULL && k < n; k++)
        set_spans(c, values, (HnCalibMethod)((int)first + k), p[k]);
    return c != NULL;
}

static gboolean recalibrate(gpointer data, HnQuantPlan *const *p, gboolean same_units, GError **error)
{
    (void)same_units;
    return calibrate(data, p, HN_CALIB_METHODS, (HnCalibMethod)0, error);
}

static gboolean repair(Quantize *q, HnQuantPlan **p, guint wanted, gboolean anyway, GError **error)
{
    HnRepairLog log = { 0 };
    const HnRepairOptions o = { .search = &q->so,
                                .samples = { .backend = &hn_backend_cpu,
                                             .threads = 1,
                                             .budget = q->budget,
                                             .progress = &q->progress,
                                             .data = q->data,
                                             .n = hn_data_count(q->data) },
                                .held = hn_data_count(q->data),
                                .wanted = wanted,
                                .parts = chance(q, 4),
                                .anyway = anyway,
                                .replace = replace,
                                .calibrate = recalibrate,
                                .method = q->method,
                                .data = q };
    const gboolean ok = hn_quant_repair(p, &o, &log, error);
    hn_repair_log_clear(&log);
    return ok;
}

static gboolean refine(gpointer data, HnQuantPlan **p, GError **error)
{
    return repair(data, p, 1u << HN_REPAIR_BIAS, TRUE, error);
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static void check_outputs(const HnModel *m, HnTensor *const *out, const HnModel *given)
{
    for (guint k = 0; k < m->graph->outputs->len; k++) {
        const HnType *t = ((const HnValue *)given->graph->outputs->pdata[k])->type;
        if (out[k] == NULL)
            g_error("output %u is missing", k);
        if (t != NULL && t->kind == HN_TYPE_TENSOR && t->dtype != HN_UNDEFINED && t->dtype != out[k]->dtype)
            g_error("output %u is %s instead of %s", k, hn_dtype_name(out[k]->dtype), hn_dtype_name(t->dtype));
    }
}

/* given: a model that has run, whose types are those of its file. */
static gboolean run_result(Quantize *q, HnModel *m, const HnModel *given, GError **error)
{
    const guint n = m->graph->outputs->len;
    const HnSessionOptions so = { .threads = 1, .budget = q->budget };
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_cpu, &so, error);
    g_autoptr(HnSample) x = s != NULL ? hn_data_load(q->data, 0, error) : NULL;
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n + 1);
    const gboolean ok = x != NULL && hn_session_run(s, x->in, out, error);
    if (ok)
        check_outputs(m, out, given);
    for (guint k = 0; k < n; k++)
        hn_tensor_unref(out[k]);
    return ok;
}

/* What is written means the same. */
static gboolean check_result(Quantize *q, HnModel *m, const HnModel *given, GError **error)
{
    g_autofree char *why = NULL;
    g_autoptr(GError) invalid = NULL;
    if (!hn_model_verify(m, &invalid))
        g_error("the quantized model is invalid: %s", invalid->message);
    if (m->graph->outputs->len != given->graph->outputs->len)
        g_error("the quantized model has %u outputs instead of %u", m->graph->outputs->len, given->graph->outputs->len);
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, q->budget, error);
    if (bytes == NULL)
        return FALSE;
    g_autoptr(HnModel) back = hn_onnx_read_bytes(bytes, NULL, &(HnOnnxOptions){ .budget = q->budget }, error);
    if (back == NULL)
        return FALSE;
    fuzz_untimed_begin();
    const gboolean ok = run_result(q, back, given, error);
    fuzz_untimed_end();
    return ok;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* What runs the model again and again, on samples. */
static gboolean choose(Quantize *q, HnSearch *search, HnModel **given, GError **error)
{
    const guint wanted = (guint)hn_rng_int(&q->rng, 0, HN_REPAIR_ALL);
    q->method = (HnCalibMethod)hn_rng_int(&q->rng, 0, HN_CALIB_METHODS - 1);
    if (!is_affordable(q, *given, error) || !open_scorer(q, g_steal_pointer(given), error) ||
        !calibrate(q, &q->base, 1, q->method, error) || !repair(q, &q->base, wanted, chance(q, 4), error))
        return FALSE;
    q->so.refine = (wanted >> HN_REPAIR_BIAS & 1) != 0 ? refine : NULL;
    return hn_quant_search(q->base, &q->so, search, error);
}

static gboolean quantize(Quantize *q, HnModel *m, HnModel **given, const HnModel *types, GError **error)
{
    static const HnQuantForm forms[] = { HN_FORM_INT8, HN_FORM_INT8, HN_FORM_DYNAMIC, HN_FORM_W8, HN_FORM_W4 };
    const HnQuantForm form = forms[hn_rng_int(&q->rng, 0, G_N_ELEMENTS(forms) - 1)];
    HnSearch search = { 0 };
    HnQuantLog log;
    q->prepared = hn_quant_prepare(m, form == HN_FORM_W4 ? 21 : 13, q->budget, &q->progress, error);
    g_autoptr(HnModel) f32 = q->prepared != NULL ? open_prepared(q, error) : NULL;
    if (f32 == NULL || !make_plan(q, f32, form, error) || g_hash_table_size(q->base->forms) == 0 ||
        !open_data(q, f32, error))
        return FALSE;
    fuzz_untimed_begin(); /* fuzz_watch() and fuzz_affordable() bound it */
    gboolean ok = choose(q, &search, given, error);
    fuzz_untimed_end();
    if (ok) {
        g_autoptr(HnModel) result = hn_quant_build(search.plan != NULL ? search.plan : q->base, &q->so, &log, error);
        ok = result != NULL && check_result(q, result, types, error);
    }
    hn_search_clear(&search);
    g_clear_pointer(&q->scorer, hn_scorer_free);
    g_clear_pointer(&q->data, hn_data_free); /* its inputs are those of f32 */
    return ok;
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    Quantize q = { .rng = hn_rng(fuzz_seed(data, size)), .budget = hn_budget_new(FUZZ_BUDGET) };
    q.left = chance(&q, 8) ? (gint)hn_rng_int(&q.rng, 0, 30) : OFTEN;
    q.progress = (HnProgress){ .fn = count_down, .data = &q, .cancel = &q.cancel };
    g_autoptr(HnModel) types = fuzz_read_model(data, size, q.budget, &error);
    HnModel *m = types != NULL ? fuzz_read_model(data, size, q.budget, &error) : NULL;
    HnModel *given = m != NULL ? fuzz_read_model(data, size, q.budget, &error) : NULL;
    gboolean ok = given != NULL;
    fuzz_result(ok, error);
    if (ok && chance(&q, 4)) /* an allocation fails somewhere */
        hn_budget_fail_at(q.budget, (guint64)hn_rng_int(&q.rng, 1, 2000));
    fuzz_watch(q.budget);
    if (ok)
        ok = quantize(&q, m, &given, types, &error);
    else
        hn_model_free(m);
    fuzz_watch(NULL);
    if (error != NULL)
        fuzz_result(FALSE, error);
    if (g_getenv("FUZZ_VERBOSE") != NULL)
        fprintf(stderr, "# %s\n", ok ? "all well" : error != NULL ? error->message : "nothing to do");
    hn_model_free(given);
    hn_quant_plan_free(q.base);
    hn_model_free(q.prepared);
    g_clear_pointer(&types, hn_model_free);
    fuzz_budget_done(q.budget);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_model, .init = fuzz_watch_init, .times = 4 };
