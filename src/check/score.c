#include "check/score.h"

#include <glib/gstdio.h>
#include <math.h>

#include "base/each.h"
#include "base/nearest.h"
#include "check/outputs.h"
#include "check/tensor_diff.h"
#include "check/whole_numbers.h"
#include "onnx/onnx.h"

#define LEAST_DB (-300.0)    /* of what is lost: journals take no number for none that is different */
#define KEPT_BYTES (4 << 20) /* of outputs */

#define R2_PART 0.2 /* of the limit that is given for classes is that of r2 beside it */

/* What an output is judged by where the user does not say. */
#define AUTO HN_METRICS

/* Memory does not grow with the number of samples: these are loaded again for each run, and beyond some bytes the
 * original computes again what it said of them. */
struct HnScorer {
    HnScorerOptions o;
    const HnData *data;
    int64_t first, n;
    HnModel *model; /* the original, with its session; NULL: all that it says is kept */
    HnSession *session;
    int n_out;
    char **name;      /* of each output */
    HnSample *sample; /* the first */
    GPtrArray *kept;  /* HnTensor **: outputs of the first samples */
    HnOutputView *view;
    int *by; /* HnMetric of each output, or AUTO */
    gboolean labelled;
    HnOutputScore *last; /* of each output in the last run */
    HnOutputSums **rest; /* [n, n_out]: of the present run without sample i; NULL: nobody asks */
    HnScore original;
};

/* --- all outputs together ----------------------------------------------------------------------------------------- */

static gboolean any_by(const HnScorer *s, int metric)
{
    for (int j = 0; j < s->n_out; j++)
        if (s->by[j] == metric)
            return TRUE;
    return FALSE;
}

/* Does what this metric says of output j count? */
static gboolean counts(const HnScorer *s, int j, HnMetric metric)
{
    if (s->by[j] != AUTO)
        return s->by[j] == (int)metric;
    if (metric == HN_METRIC_SCORES)
        return s->view[j].kind != HN_OUTPUT_CLASSES;
    return (metric != HN_METRIC_COS && metric != HN_METRIC_SQNR) || !any_by(s, (int)metric);
}

/* The lowest (sign 1) or highest (-1) of what the outputs say; NaN: none does. */
static void take(const HnScorer *s, HnScore *score, double *to, HnMetric metric, int j, double x, int sign)
{
    if (isnan(x) || !counts(s, j, metric) || sign * x >= sign * *to)
        return;
    *to = x;
    score->at[metric] = j;
}

/* Some output is judged by it; where none is, it is still told, and says which nodes cost most. */
static gboolean any_counts(const HnScorer *s, HnMetric metric)
{
    for (int j = 0; j < s->n_out; j++)
        if (counts(s, j, metric))
            return TRUE;
    return FALSE;
}

/* Sums of squares; [1]: of elements that are not still. */
typedef struct {
    double signal[2], noise[2];
} Power;

/* Of what s->last says of all outputs. */
static Power power_of(const HnScorer *s)
{
    const gboolean all = !any_counts(s, HN_METRIC_SQNR);
    Power p = { 0 };
    for (int j = 0; j < s->n_out; j++) {
        const HnOutputScore *o = &s->last[j];
        if (!all && !counts(s, j, HN_METRIC_SQNR))
            continue;
        p.signal[0] += o->signal;
        p.noise[0] += o->noise;
        p.signal[1] += o->own_signal;
        p.noise[1] += o->own_noise;
    }
    return p;
}

static Power less(const Power *a, const Power *b)
{
    Power p;
    for (int i = 0; i < 2; i++) {
        p.signal[i] = a->signal[i] - b->signal[i];
        p.noise[i] = a->noise[i] - b->noise[i];
    }
    return p;
}

/* What is the same in all samples doesn't make it better. */
static double db_of(const Power *p)
{
    const double all = hn_decibels(p->signal[0], p->noise[0]);
    return p->signal[1] > 0 ? fmin(all, hn_decibels(p->signal[1], p->noise[1])) : all;
}

static double least_cos(const HnScorer *s)
{
    double least = 1;
    for (int j = 0; j < s->n_out; j++)
        least = fmin(least, s->last[j].cos); /* not that of an output that has none */
    return least;
}

static void score_of(const HnScorer *s, HnScore *score)
{
    *score = (HnScore){
        .top1 = INFINITY, .cos = INFINITY, .worst_cos = 1, .scores = -INFINITY, .command = NAN, .r2 = INFINITY
    };
    for (int i = 0; i < HN_METRICS; i++)
        score->at[i] = -1;
    for (int j = 0; j < s->n_out; j++) {
        const HnOutputScore *o = &s->last[j];
        take(s, score, &score->top1, HN_METRIC_TOP1, j, o->top1, 1);
        take(s, score, &score->cos, HN_METRIC_COS, j, o->cos, 1);
        take(s, score, &score->r2, HN_METRIC_R2, j, o->r2, 1);
        take(s, score, &score->scores, HN_METRIC_SCORES, j, o->scores, -1);
        score->worst_cos = fmin(score->worst_cos, o->worst_cos);
    }
    const Power power = power_of(s);
    score->cos = isinf(score->cos) ? least_cos(s) : score->cos;
    score->top1 = isinf(score->top1) ? NAN : score->top1;
    const gboolean labels = power.signal[0] == 0 && power.noise[0] == 0 && !isnan(score->top1);
    score->sqnr = fmax(labels ? hn_decibels(1, 1 - score->top1) : db_of(&power), LEAST_DB);
    score->r2 = isinf(score->r2) ? NAN : score->r2;
    score->scores = isinf(score->scores) ? NAN : score->scores;
}

/* --- a program's opinion ------------------------------------------------------------------------------------------ */

static const char *command_of(const HnScorer *s)
{
    return s->o.choice != NULL ? s->o.choice->command : NULL;
}

static gboolean number_of(const char *command, char *text, double *number, GError **error)
{
    char *end;
    g_strstrip(text);
    *number = g_ascii_strtod(text, &end);
    if (*text != '\0' && *end == '\0' && isfinite(*number))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' prints no number", command);
    return FALSE;
}

static gboolean ask_command(const char *command, const char *path, double *number, GError **error)
{
    g_auto(GStrv) words = NULL;
    g_autofree char *text = NULL;
    GError *cause = NULL;
    int n = 0, status = 0;
    gboolean ok = g_shell_parse_argv(command, &n, &words, &cause);
    if (ok) {
        words = g_renew(char *, words, n + 2);
        words[n] = g_strdup(path);
        words[n + 1] = NULL;
        ok = g_spawn_sync(NULL, words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &text, NULL, &status, &cause) &&
             g_spawn_check_wait_status(status, &cause);
    }
    if (ok)
        return number_of(command, text, number, error);
    g_set_error(error, HN_ERROR, HN_ERROR_IO, "'%s' failed: %s", command, cause->message);
    g_error_free(cause);
    return FALSE;
}

static gboolean run_command(const HnScorer *s, HnModel *m, HnScore *score, GError **error)
{
    if (command_of(s) == NULL)
        return TRUE;
    GError *cause = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", &cause);
    if (folder == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "a folder for the metric's model: %s", cause->message);
        g_error_free(cause);
        return FALSE;
    }
    g_autofree char *path = g_build_filename(folder, "model.onnx", NULL);
    const gboolean ok = hn_onnx_write_file(m, path, &(HnOnnxWriteOptions){ .budget = s->o.budget }, error) &&
                        ask_command(command_of(s), path, &score->command, error);
    hn_onnx_remove(path);
    g_rmdir(folder);
    return ok;
}

/* --- the scorer --------------------------------------------------------------------------------------------------- */

static HnSession *open_session(const HnScorer *s, HnModel *m, int threads, GError **error)
{
    const gboolean limited = s->o.budget != NULL && hn_budget_limit(s->o.budget) > 0; /* plans of other shapes go */
    const HnSessionOptions o = { .threads = threads, .budget = s->o.budget, .plan_cache = limited ? 1 : 0 };
    return hn_session_new(m, s->o.backend, &o, error);
}

static HnTensor **run_plain(const HnScorer *s, HnSession *session, HnTensor *const *in, GError **error)
{
    HnTensor **out = hn_outputs_run(session, in, s->o.budget, error);
    for (int j = 0; out != NULL && j < s->n_out; j++) {
        HnTensor *t = out[j];
        if (t == NULL)
            continue;
        out[j] = hn_output_plain(t, s->o.budget, error);
        hn_tensor_unref(t);
        if (out[j] == NULL) {
            hn_outputs_free(out, s->n_out);
            return NULL;
        }
    }
    return out;
}

static gboolean has_classes(const HnScorer *s, int j)
{
    return s->view[j].kind == HN_OUTPUT_CLASSES || s->view[j].kind == HN_OUTPUT_LABELS;
}

static gboolean is_text(const HnScorer *s, int j)
{
    for (guint i = 0; i < s->kept->len; i++) {
        HnTensor *const *out = s->kept->pdata[i];
        if (out[j] != NULL)
            return out[j]->dtype == HN_STRING;
    }
    return FALSE;
}

/* The user's word about output j goes before what its numbers look like. */
static void ask(HnScorer *s, int j, HnMetric metric)
{
    HnOutputKind *kind = &s->view[j].kind;
    s->by[j] = (int)metric;
    if (metric == HN_METRIC_NONE)
        return;
    if (metric == HN_METRIC_TOP1 && *kind != HN_OUTPUT_LABELS)
        *kind = HN_OUTPUT_CLASSES;
    else if (metric != HN_METRIC_TOP1 && has_classes(s, j))
        *kind = HN_OUTPUT_NUMBERS;
}

static int output_of(const HnScorer *s, const char *name)
{
    for (int j = 0; j < s->n_out; j++)
        if (g_strcmp0(s->name[j], name) == 0)
            return j;
    return -1;
}

static gboolean ask_all(HnScorer *s, GError **error)
{
    const HnMetricChoice *c = s->o.choice;
    gboolean classes = FALSE;
    for (int j = 0; j < s->n_out; j++) {
        s->by[j] = AUTO;
        classes = classes || has_classes(s, j);
    }
    for (int j = 0; j < s->n_out && c != NULL && c->given && c->command == NULL; j++)
        if (!is_text(s, j) || c->all == HN_METRIC_TOP1) /* text has no numbers, whatever others are judged by */
            ask(s, j, c->all == HN_METRIC_TOP1 && !(classes ? has_classes(s, j) : j == 0) ? HN_METRIC_NONE : c->all);
    for (guint i = 0; c != NULL && i < c->n; i++) {
        const int j = output_of(s, c->of[i].output);
        if (j < 0) {
            g_autofree char *words = hn_nearest_words(c->of[i].output, (const char *const *)s->name);
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--metric': the model has no output '%s'%s",
                        c->of[i].output, words);
            return FALSE;
        }
        const HnMetric metric = c->of[i].metric;
        if (is_text(s, j) && metric != HN_METRIC_TOP1 && metric != HN_METRIC_NONE) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "option '--metric': output '%s' is text, which top1 judges and '%s' does not", c->of[i].output,
                        hn_metric_name(metric));
            return FALSE;
        }
        ask(s, j, metric);
    }
    return TRUE;
}

/* Each metric that is asked for says something of the original, whose score is there. */
static gboolean check_choice(const HnScorer *s, GError **error)
{
    const double said[HN_METRIC_CMD] = {
        [HN_METRIC_TOP1] = s->original.top1, [HN_METRIC_SCORES] = s->original.scores, [HN_METRIC_R2] = s->original.r2
    };
    for (int m = 0; m < HN_METRIC_CMD; m++) {
        if (!any_by(s, m) || !isnan(said[m]))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "option '--metric': no output that '%s' is asked of has such values", hn_metric_name((HnMetric)m));
        return FALSE;
    }
    return TRUE;
}

static gboolean find_views(HnScorer *s, GError **error)
{
    s->view = g_new0(HnOutputView, (gsize)s->n_out + 1);
    s->by = g_new0(int, (gsize)s->n_out + 1);
    g_autofree gboolean *real = g_new0(gboolean, (gsize)s->n_out + 1);
    for (int j = 0; j < s->n_out; j++)
        real[j] = hn_whole_numbers_are_real(s->model->graph->outputs->pdata[j]);
    const HnOutputsSeen seen = { (HnTensor *const *const *)s->kept->pdata,
                                 s->kept->len,
                                 s->sample->in,
                                 s->sample->n,
                                 s->labelled,
                                 hn_data_synthetic(s->data),
                                 real };
    hn_output_views_find(s->view, s->n_out, &seen);
    return ask_all(s, error);
}

static gsize bytes_of(const HnScorer *s, HnTensor *const *out)
{
    gsize bytes = 0;
    for (int j = 0; j < s->n_out; j++)
        bytes += out[j] != NULL ? out[j]->bytes : 0;
    return bytes;
}

/* What the original says of the first samples, one at least. */
static gboolean keep_outputs(HnScorer *s, GError **error)
{
    gsize bytes = 0;
    for (int64_t i = 0; i < s->n && bytes < KEPT_BYTES; i++) {
        g_autoptr(HnSample) x = hn_data_load(s->data, s->first + i, error);
        HnTensor **out = x != NULL ? run_plain(s, s->session, x->in, error) : NULL;
        if (out == NULL || (s->o.progress != NULL && hn_progress_stop(s->o.progress, error))) {
            hn_outputs_free(out, s->n_out);
            return FALSE;
        }
        g_ptr_array_add(s->kept, out);
        bytes += bytes_of(s, out);
        s->labelled = s->labelled || x->label != NULL;
        if (i == 0)
            s->sample = g_steal_pointer(&x);
    }
    return TRUE;
}

/* The sample; the first one is there. */
static HnSample *load(const HnScorer *s, int64_t i, GError **error)
{
    return i > 0 ? hn_data_load(s->data, s->first + i, error) : s->sample;
}

static void unload(const HnScorer *s, HnSample *x)
{
    if (x != s->sample)
        hn_sample_free(x);
}

/* Adds what a model says of sample i; NULL: the original. */
static gboolean add_sample(HnScorer *s, const HnSample *x, int64_t i, HnTensor *const *got, HnOutputSums *const *sums,
                           GError **error)
{
    HnTensor **kept = i < (int64_t)s->kept->len ? s->kept->pdata[i] : NULL;
    HnTensor **want = kept != NULL ? kept : run_plain(s, s->session, x->in, error);
    for (int j = 0; want != NULL && j < s->n_out; j++) {
        const HnTensor *mine = got != NULL ? got[j] : want[j], *label = j == 0 ? x->label : NULL;
        hn_output_sums_add(sums[j], mine, want[j], label);
        for (int64_t k = 0; s->rest != NULL && k < s->n; k++)
            if (k != i)
                hn_output_sums_add(s->rest[k * s->n_out + j], mine, want[j], label);
    }
    if (kept == NULL)
        hn_outputs_free(want, s->n_out);
    return want != NULL;
}

/* Adds sample i as `session` computes it; NULL: as the original does. */
static gboolean run_sample(HnScorer *s, HnSession *session, int64_t i, HnOutputSums *const *sums, GError **error)
{
    if (s->o.progress != NULL && hn_progress_stop(s->o.progress, error))
        return FALSE;
    HnSample *x = load(s, i, error);
    HnTensor **got = x != NULL && session != NULL ? run_plain(s, session, x->in, error) : NULL;
    const gboolean ok = x != NULL && (got != NULL || session == NULL) && add_sample(s, x, i, got, sums, error);
    hn_outputs_free(got, s->n_out);
    unload(s, x);
    return ok;
}

/* --- samples by models of their own, several at a time ------------------------------------------------------------ */

#define MOST_WORKERS 16

typedef struct {
    const HnScorer *s;
    const HnScorerEach *each;
    int64_t from; /* sample of the first */
    int threads;  /* of each model */
    HnTensor **got[MOST_WORKERS];
    GError *error[MOST_WORKERS];
} Made;

static void run_made(gpointer data, gint64 k)
{
    Made *r = data;
    const HnScorer *s = r->s;
    GError **error = &r->error[k];
    if (s->o.progress != NULL && hn_progress_stop(s->o.progress, error))
        return;
    g_autoptr(HnModel) m = r->each->made(r->each->data, r->from + k, error);
    g_autoptr(HnSession) session = m != NULL ? open_session(s, m, r->threads, error) : NULL;
    HnSample *x = session != NULL ? load(s, r->from + k, error) : NULL;
    if (x == NULL)
        return;
    r->got[k] = run_plain(s, session, x->in, error);
    unload(s, x);
}

static gboolean add_made(HnScorer *s, Made *r, int64_t i, HnOutputSums *const *sums, GError **error)
{
    const int64_t k = i - r->from;
    if (r->error[k] != NULL) {
        g_propagate_error(error, g_steal_pointer(&r->error[k]));
        return FALSE;
    }
    HnSample *x = load(s, i, error);
    const gboolean ok = x != NULL && add_sample(s, x, i, r->got[k], sums, error);
    unload(s, x);
    return ok;
}

static void clear_made(Made *r)
{
    for (int k = 0; k < MOST_WORKERS; k++) {
        hn_outputs_free(r->got[k], r->s->n_out);
        r->got[k] = NULL;
        g_clear_error(&r->error[k]);
    }
}

/* Sample i is the first of those that are run now, or one of those that were. */
static gboolean run_own(HnScorer *s, Made *r, int64_t i, HnOutputSums *const *sums, GError **error)
{
    const int workers = (int)CLAMP(r->each->workers, 1, MIN(s->n, MOST_WORKERS));
    if (i % workers == 0) {
        clear_made(r);
        r->from = i;
        r->threads = workers > 1 ? MAX(s->o.threads / workers, 1) : s->o.threads;
        hn_each(MIN(workers, s->n - i), workers, run_made, r);
    }
    return add_made(s, r, i, sums, error);
}

/* What outputs did up to here. */
static void take_sums(HnScorer *s, HnOutputSums *const *sums)
{
    for (int j = 0; j < s->n_out; j++)
        hn_output_sums_score(sums[j], &s->last[j]);
}

/* session: of all samples; NULL: those of each, or where that is NULL too the original. */
static gboolean run_samples(HnScorer *s, HnSession *session, const HnScorerEach *each, HnScore *score, GError **error)
{
    g_autofree HnOutputSums **sums = g_new0(HnOutputSums *, (gsize)s->n_out + 1);
    Made made = { .s = s, .each = each };
    Power power = { 0 };
    gboolean ok = TRUE;
    for (int j = 0; j < s->n_out; j++)
        sums[j] = hn_output_sums_new(&s->view[j]);
    for (int64_t i = 0; i < s->n && ok; i++) {
        const Power before = power;
        ok = each != NULL && each->made != NULL ? run_own(s, &made, i, sums, error)
                                                : run_sample(s, session, i, sums, error);
        if (!ok || each == NULL)
            continue;
        take_sums(s, sums);
        power = power_of(s);
        const Power now = less(&power, &before);
        if (each->db != NULL)
            each->db[i] = isfinite(power.noise[0]) ? db_of(&now) : -INFINITY;
    }
    clear_made(&made);
    take_sums(s, sums);
    for (int j = 0; j < s->n_out; j++)
        hn_output_sums_free(sums[j]);
    if (ok)
        score_of(s, score);
    return ok;
}

gsize hn_scorer_kept_bytes(int64_t n, gsize results)
{
    const gsize most = results > 0 ? (KEPT_BYTES + results - 1) / results : 0;
    return MIN((gsize)n, most) * results;
}

HnScorer *hn_scorer_new(HnModel *original, const HnData *d, int64_t first, int64_t n, const HnScorerOptions *o,
                        GError **error)
{
    g_autoptr(HnScorer) s = g_new0(HnScorer, 1);
    *s = (HnScorer){ .o = *o, .data = d, .first = first, .n = n, .model = original, .kept = g_ptr_array_new() };
    s->session = open_session(s, original, s->o.threads, error);
    if (s->session == NULL)
        return NULL;
    s->n_out = hn_session_n_outputs(s->session);
    s->last = g_new0(HnOutputScore, (gsize)s->n_out + 1);
    s->name = g_new0(char *, (gsize)s->n_out + 1);
    for (int j = 0; j < s->n_out; j++)
        s->name[j] = g_strdup(hn_session_output(s->session, j)->name);
    if (!keep_outputs(s, error) || !find_views(s, error))
        return NULL;
    if (!run_samples(s, NULL, NULL, &s->original, error) || !check_choice(s, error) ||
        !run_command(s, original, &s->original, error))
        return NULL;
    if ((int64_t)s->kept->len == n) {
        g_clear_pointer(&s->session, hn_session_free);
        g_clear_pointer(&s->model, hn_model_free);
    }
    return g_steal_pointer(&s);
}

void hn_scorer_free(HnScorer *s)
{
    if (s == NULL)
        return;
    for (guint i = 0; i < s->kept->len; i++)
        hn_outputs_free(s->kept->pdata[i], s->n_out);
    for (int j = 0; s->view != NULL && j < s->n_out; j++)
        hn_output_view_clear(&s->view[j]);
    g_clear_pointer(&s->session, hn_session_free);
    g_clear_pointer(&s->model, hn_model_free);
    g_clear_pointer(&s->sample, hn_sample_free);
    g_free(s->view);
    g_free(s->by);
    g_free(s->last);
    g_strfreev(s->name);
    g_ptr_array_unref(s->kept);
    g_free(s);
}

gboolean hn_scorer_look(HnScorer *s, HnModel *m, double *db, HnScore *score, GError **error)
{
    g_autoptr(HnSession) session = open_session(s, m, s->o.threads, error);
    const HnScorerEach each = { .db = db };
    return session != NULL && run_samples(s, session, db != NULL ? &each : NULL, score, error);
}

gboolean hn_scorer_run_without(HnScorer *s, HnModel *m, HnScore *score, HnScore *without, GError **error)
{
    const int64_t all = s->n * s->n_out;
    g_autofree HnOutputSums **rest = g_new0(HnOutputSums *, (gsize)all + 1);
    for (int64_t k = 0; k < all; k++)
        rest[k] = hn_output_sums_new(&s->view[k % s->n_out]);
    s->rest = rest;
    const gboolean ok = hn_scorer_look(s, m, NULL, score, error);
    s->rest = NULL;
    for (int64_t i = 0; i < s->n && ok; i++) {
        take_sums(s, rest + i * s->n_out);
        score_of(s, &without[i]);
    }
    for (int64_t k = 0; k < all; k++)
        hn_output_sums_free(rest[k]);
    return ok && run_command(s, m, score, error);
}

gboolean hn_scorer_run_each(HnScorer *s, const HnScorerEach *each, HnScore *score, GError **error)
{
    return run_samples(s, NULL, each, score, error);
}

gboolean hn_scorer_run(HnScorer *s, HnModel *m, HnScore *score, GError **error)
{
    return hn_scorer_look(s, m, NULL, score, error) && run_command(s, m, score, error);
}

/* The metrics of the user's choice, in their order. */
static void add_chosen(const HnScorer *s, double max_drop, HnGoals *out)
{
    if (command_of(s) != NULL)
        hn_goals_add(out, HN_METRIC_CMD, max_drop);
    for (int m = 0; m < HN_METRIC_CMD; m++)
        if (any_by(s, m))
            hn_goals_add(out, (HnMetric)m, max_drop);
}

void hn_scorer_goals(const HnScorer *s, double max_drop, HnGoals *out)
{
    out->n = 0;
    add_chosen(s, max_drop, out);
    if (!any_by(s, AUTO) || command_of(s) != NULL)
        return;
    const gboolean classes = !isnan(s->original.top1) && !any_by(s, HN_METRIC_TOP1);
    if (classes)
        hn_goals_add(out, HN_METRIC_TOP1, max_drop);
    if (!isnan(s->original.r2) && !any_by(s, HN_METRIC_R2))
        hn_goals_add(out, HN_METRIC_R2, out->n > 0 ? R2_PART * max_drop : max_drop);
    if (!isnan(s->original.scores) && !any_by(s, HN_METRIC_SCORES)) {
        hn_goals_add(out, HN_METRIC_SCORES, NAN);
        out->goal[out->n - 1].most = fmax(out->goal[out->n - 1].most, max_drop); /* of two the number */
    }
}

int hn_scorer_n_outputs(const HnScorer *s)
{
    return s->n_out;
}

const char *hn_scorer_output_name(const HnScorer *s, int k)
{
    return s->name[k];
}

HnOutputKind hn_scorer_output_kind(const HnScorer *s, int k)
{
    return s->view[k].kind;
}

const HnOutputScore *hn_scorer_output(const HnScorer *s, int k)
{
    return &s->last[k];
}

GPtrArray *hn_scorer_empty(const HnScorer *s)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (int j = 0; j < s->n_out; j++)
        if (s->last[j].n == 0)
            g_ptr_array_add(names, g_strdup(s->name[j]));
    return names;
}

void hn_scorer_original(const HnScorer *s, HnScore *score)
{
    *score = s->original;
}

gint64 hn_scorer_samples(const HnScorer *s)
{
    return s->n;
}

HnTensor *const *hn_scorer_inputs(const HnScorer *s)
{
    return s->sample->in;
}
