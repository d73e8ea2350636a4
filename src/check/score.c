#include "check/score.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "check/outputs.h"
#include "onnx/onnx.h"
#include "check/channel_kinds.h"

#define LEAST_CLASSES 8
#define KEPT_BYTES (4 << 20) /* of outputs */
#define DENSE 2              /* how much more the mean of strong scores may change than the best ones */
#define SPREAD 2             /* times the root mean square over samples stand for the largest, where there are many */
#define BEST 10              /* scores that stand for the strong ones where there are none */

/* Memory does not grow with the number of samples: these are loaded again for each run, and beyond some bytes the
 * original computes again what it said of them. */
struct HnScorer {
    HnScorerOptions o;
    const HnData *data;
    int64_t first, n;
    HnModel *model; /* the original, with its session; NULL: all that it says is kept */
    HnSession *session;
    int n_out;
    HnSample *sample;      /* the first */
    GPtrArray *kept;       /* HnTensor **: outputs of the first samples */
    HnChannelKinds *kinds; /* of each output */
    gboolean labelled, classes;
    HnScore original;
};

/* --- metrics ------------------------------------------------------------------------------------------------------ */

static const char *const names[] = { "top1", "cos", "sqnr", "scores", "cmd" };

gboolean hn_metric_name_parse(const char *name, HnMetric *metric, const char **command, GError **error)
{
    *command = NULL;
    if (g_str_has_prefix(name, "cmd:") && name[4] != '\0') {
        *metric = HN_METRIC_CMD;
        *command = name + 4;
        return TRUE;
    }
    for (int i = 0; i < HN_METRIC_CMD; i++)
        if (strcmp(name, names[i]) == 0) {
            *metric = (HnMetric)i;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "metric '%s' is none of top1, cos, sqnr, scores, cmd:PROGRAM", name);
    return FALSE;
}

const char *hn_metric_name(HnMetric metric)
{
    return names[metric];
}

double hn_score_drop(HnMetric metric, const HnScore *score, const HnScore *original)
{
    switch (metric) {
    case HN_METRIC_TOP1:
        return original->top1 - score->top1;
    case HN_METRIC_COS:
        return original->cos - score->cos;
    case HN_METRIC_SQNR:
        return isfinite(score->sqnr) ? pow(10, -score->sqnr / 20) : 0;
    case HN_METRIC_SCORES:
        return isnan(original->scores) ? 0 : isnan(score->scores) ? INFINITY : score->scores;
    case HN_METRIC_CMD: {
        const double lost = original->command - score->command;
        return original->command != 0 ? lost / fabs(original->command) : lost;
    }
    }
    return INFINITY;
}

gboolean hn_goals_met(const HnGoals *g, const HnScore *score, const HnScore *original)
{
    for (int i = 0; i < g->n; i++)
        if (!(hn_score_drop(g->goal[i].metric, score, original) <= g->goal[i].most))
            return FALSE;
    return TRUE;
}

double hn_goals_part(const HnGoals *g, const HnScore *score, const HnScore *original)
{
    double worst = 0;
    for (int i = 0; i < g->n; i++) {
        const double drop = hn_score_drop(g->goal[i].metric, score, original), most = g->goal[i].most;
        const double part = most > 0 ? drop / most : drop > 0 ? INFINITY : 0;
        worst = isnan(part) ? INFINITY : fmax(worst, part);
    }
    return worst;
}

double hn_goals_drop(const HnGoals *g, const HnScore *score, const HnScore *original, int *which)
{
    double worst = -INFINITY, found = 0;
    int at = 0;
    for (int i = 0; i < g->n; i++) {
        const double drop = hn_score_drop(g->goal[i].metric, score, original), most = g->goal[i].most;
        const double part = !(drop <= most) ? 2 + drop - most : most > 0 ? drop / most : 1;
        if (i == 0 || part > worst) {
            worst = part;
            found = drop;
            at = i;
        }
    }
    if (which != NULL)
        *which = at;
    return found;
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* Of one output, over samples and kinds. */
typedef struct {
    double cos;
    guint n_cos;
    double peaks, worst; /* largest change of a channel's best score in each sample: sum of squares, and the largest */
    double strong;       /* mean squares of changes of strong scores, of each sample and kind */
    guint n_strong, samples;
    gboolean lost; /* nothing of it is there */
} Output;

typedef struct {
    int64_t rows, right;
    Output *out;
    double worst_cos, signal, noise;
} Sums;

static int64_t best_of(const HnTensor *t, int64_t row, int64_t n)
{
    int64_t best = 0;
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_tensor_get_f64(t, row * n + i);
        if (x > most) {
            most = x;
            best = i;
        }
    }
    return best;
}

static void add_classes(Sums *sums, const HnTensor *got, const HnTensor *want, const HnTensor *label)
{
    if (got == NULL || want == NULL || got->n != want->n || want->ndim < 1)
        return;
    int64_t n = 1, rows;
    for (int i = want->ndim - 1; i >= 0 && n == 1; i--) /* [N, C, 1, 1] too */
        n = want->dims[i];
    rows = n > 0 ? want->n / n : 0;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t right = label != NULL && label->n == rows ? hn_tensor_get_i64(label, r) : best_of(want, r, n);
        sums->right += best_of(got, r, n) == right;
        sums->rows++;
    }
}

/* One kind of numbers in one output of one sample. */
typedef struct {
    double dot, got, want;
    gboolean one_sided; /* a pair of which only one is finite */
    GArray *strong;     /* Pair */
} Kind;

typedef struct {
    double want, got;
} Pair;

/* A score that was raised counts as much as one that was lowered. */
static double size_of(const Pair *p)
{
    return fmax(p->want, p->got);
}

static gint by_size(gconstpointer a, gconstpointer b)
{
    const Pair *x = a, *y = b;
    if (size_of(x) != size_of(y))
        return size_of(x) < size_of(y) ? 1 : -1;
    return (x->want < y->want) - (x->want > y->want);
}

/* How far a score lies above the border of a yes. */
static double above(double score)
{
    return fmax(score - HN_STRONG_SCORE, 0);
}

/* Mean square of the change of strong scores, or of the best ones; the array is put in order. */
static double change_of(GArray *pairs)
{
    double sum = 0;
    guint n = 0;
    g_array_sort(pairs, by_size);
    const gboolean strong = pairs->len > 0 && size_of(&g_array_index(pairs, Pair, 0)) >= HN_STRONG_SCORE;
    for (; n < pairs->len; n++) {
        const Pair *p = &g_array_index(pairs, Pair, n);
        if (strong ? size_of(p) < HN_STRONG_SCORE : n >= BEST)
            break;
        const double change = strong ? above(p->got) - above(p->want) : p->got - p->want;
        sum += change * change;
    }
    return n > 0 ? sum / n : 0;
}

/* Change of each channel's best score, of those that are strong. */
static double peaks_of(const HnChannelKinds *k, const HnTensor *got, const HnTensor *want)
{
    const int64_t step = hn_channel_kinds_step(k, want);
    g_autofree Pair *peak = g_new(Pair, (gsize)k->channels);
    double most = 0;
    for (int64_t c = 0; c < k->channels; c++)
        peak[c] = (Pair){ -INFINITY, -INFINITY };
    for (int64_t i = 0; i < want->n; i++) {
        const int64_t c = i / step % k->channels;
        const double w = hn_channel_kinds_value(k, want, step, i), g = hn_channel_kinds_value(k, got, step, i);
        peak[c].want = fmax(peak[c].want, w);
        peak[c].got = fmax(peak[c].got, isfinite(g) ? g : INFINITY);
    }
    for (int64_t c = 0; c < k->channels; c++)
        if (k->scores[k->of[c]])
            most = fmax(most, fabs(above(peak[c].got) - above(peak[c].want)));
    return most;
}

static double cosine(const Kind *k)
{
    if (k->one_sided)
        return 0;
    if (k->got == 0 || k->want == 0)
        return k->got == k->want;
    return k->dot / sqrt(k->got * k->want);
}

static void add_kinds(Sums *sums, const HnChannelKinds *k, Output *o, const HnTensor *got, const HnTensor *want)
{
    const int64_t step = hn_channel_kinds_step(k, want);
    g_autofree Kind *kind = g_new0(Kind, (gsize)k->n);
    for (int i = 0; i < k->n; i++)
        kind[i].strong = k->scores[i] ? g_array_new(FALSE, FALSE, sizeof(Pair)) : NULL;
    for (int64_t i = 0; i < want->n; i++) {
        Kind *at = &kind[k->of[i / step % k->channels]];
        const double w = hn_tensor_get_f64(want, i), g = hn_tensor_get_f64(got, i);
        if (isfinite(w) && isfinite(g)) {
            at->dot += w * g;
            at->want += w * w;
            at->got += g * g;
            sums->signal += w * w;
            sums->noise += (g - w) * (g - w);
        } else if (isfinite(w) != isfinite(g)) {
            at->one_sided = TRUE;
        }
        if (at->strong != NULL) {
            const double score = hn_channel_kinds_value(k, got, step, i);
            const Pair pair = { hn_channel_kinds_value(k, want, step, i), isfinite(score) ? score : INFINITY };
            g_array_append_val(at->strong, pair);
        }
    }
    for (int i = 0; i < k->n; i++) {
        const double cos = cosine(&kind[i]);
        if (k->n == 1 || !k->scores[i]) { /* scores beside other numbers are left to their own measure */
            o->cos += cos;
            o->n_cos++;
        }
        sums->worst_cos = fmin(sums->worst_cos, cos);
        if (kind[i].strong == NULL)
            continue;
        o->strong += change_of(kind[i].strong);
        o->n_strong++;
        g_array_unref(kind[i].strong);
    }
    if (o->n_strong == 0)
        return;
    const double peak = peaks_of(k, got, want);
    o->peaks += peak * peak;
    o->worst = fmax(o->worst, peak);
    o->samples++;
}

static void add_output(const HnScorer *s, Sums *sums, int output, const HnTensor *got, const HnTensor *want)
{
    if (want == NULL || !hn_dtype_in(want->dtype, HN_T_FLOATS) || want->n == 0)
        return;
    if (got != NULL && hn_dtype_in(got->dtype, HN_T_FLOATS) && got->n == want->n) {
        add_kinds(sums, &s->kinds[output], &sums->out[output], got, want);
        return;
    }
    sums->out[output].n_cos++;
    sums->out[output].lost = TRUE;
    sums->worst_cos = 0;
}

/* NaN: holds none. */
static double scores_of(const Output *o, const HnChannelKinds *k)
{
    if (o->lost)
        return k->scores[0] ? 1 : NAN;
    if (o->n_strong == 0)
        return NAN;
    const double peak = fmin(o->worst, SPREAD * sqrt(o->peaks / o->samples));
    return fmax(peak, sqrt(o->strong / o->n_strong) / DENSE);
}

static void add_sample(const HnScorer *s, Sums *sums, HnTensor *const *got, HnTensor *const *want,
                       const HnTensor *label)
{
    if (s->classes)
        add_classes(sums, got[0], want[0], label);
    for (int j = 0; j < s->n_out; j++)
        add_output(s, sums, j, got[j], want[j]);
}

static void score_of(const HnScorer *s, const Sums *sums, HnScore *score)
{
    *score = (HnScore){ .top1 = sums->rows > 0 ? (double)sums->right / (double)sums->rows : NAN,
                        .cos = 1,
                        .sqnr = sums->noise > 0 ? 10 * log10(sums->signal / sums->noise) : INFINITY,
                        .worst_cos = sums->worst_cos,
                        .scores = NAN,
                        .command = NAN };
    for (int j = 0; j < s->n_out; j++) {
        const Output *o = &sums->out[j];
        score->scores = fmax(score->scores, scores_of(o, &s->kinds[j])); /* a number before NaN */
        if (o->n_cos > 0)
            score->cos = fmin(score->cos, o->cos / o->n_cos);
    }
}

/* --- a program's opinion ------------------------------------------------------------------------------------------ */

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
    if (s->o.command == NULL)
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
                        ask_command(s->o.command, path, &score->command, error);
    hn_onnx_remove(path);
    g_rmdir(folder);
    return ok;
}

/* --- the scorer --------------------------------------------------------------------------------------------------- */

static HnSession *open_session(const HnScorer *s, HnModel *m, GError **error)
{
    const HnSessionOptions o = { .threads = s->o.threads, .budget = s->o.budget };
    return hn_session_new(m, s->o.backend, &o, error);
}

/* [C], [N, C] or [N, C, 1, 1]: a waveform or a mask has other axes beside. */
static gboolean looks_like_classes(const HnScorer *s)
{
    const HnTensor *t = s->kept->len > 0 ? ((HnTensor *const *)s->kept->pdata[0])[0] : NULL;
    if (t == NULL || !hn_dtype_in(t->dtype, HN_T_FLOATS) || t->ndim < 1)
        return FALSE;
    for (int i = 2; i < t->ndim; i++)
        if (t->dims[i] != 1)
            return FALSE;
    return t->dims[t->ndim > 1] >= LEAST_CLASSES;
}

static void find_kinds(HnScorer *s)
{
    g_autofree HnTensor **t = g_new0(HnTensor *, (gsize)s->kept->len + 1);
    s->kinds = g_new0(HnChannelKinds, (gsize)s->n_out + 1);
    for (int j = 0; j < s->n_out; j++) {
        for (guint i = 0; i < s->kept->len; i++)
            t[i] = ((HnTensor *const *)s->kept->pdata[i])[j];
        hn_channel_kinds_find(&s->kinds[j], t, s->kept->len);
    }
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
        HnTensor **out = x != NULL ? hn_outputs_run(s->session, x->in, s->o.budget, error) : NULL;
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

/* Adds sample i as `session` computes it; NULL: as the original does. */
static gboolean run_sample(HnScorer *s, HnSession *session, int64_t i, Sums *sums, GError **error)
{
    if (s->o.progress != NULL && hn_progress_stop(s->o.progress, error))
        return FALSE;
    g_autoptr(HnSample) loaded = i > 0 ? hn_data_load(s->data, s->first + i, error) : NULL;
    const HnSample *x = i > 0 ? loaded : s->sample;
    if (x == NULL)
        return FALSE;
    HnTensor **kept = i < (int64_t)s->kept->len ? s->kept->pdata[i] : NULL;
    HnTensor **want = kept != NULL ? kept : hn_outputs_run(s->session, x->in, s->o.budget, error);
    HnTensor **got = want != NULL && session != NULL ? hn_outputs_run(session, x->in, s->o.budget, error) : NULL;
    const gboolean ok = want != NULL && (got != NULL || session == NULL);
    if (ok)
        add_sample(s, sums, got != NULL ? got : want, want, x->label);
    hn_outputs_free(got, s->n_out);
    if (kept == NULL)
        hn_outputs_free(want, s->n_out);
    return ok;
}

static gboolean run_samples(HnScorer *s, HnSession *session, HnScore *score, GError **error)
{
    g_autofree Output *out = g_new0(Output, (gsize)s->n_out + 1);
    Sums sums = { .out = out, .worst_cos = 1 };
    for (int64_t i = 0; i < s->n; i++)
        if (!run_sample(s, session, i, &sums, error))
            return FALSE;
    score_of(s, &sums, score);
    return TRUE;
}

HnScorer *hn_scorer_new(HnModel *original, const HnData *d, int64_t first, int64_t n, const HnScorerOptions *o,
                        GError **error)
{
    g_autoptr(HnScorer) s = g_new0(HnScorer, 1);
    *s = (HnScorer){ .o = *o, .data = d, .first = first, .n = n, .model = original, .kept = g_ptr_array_new() };
    s->session = open_session(s, original, error);
    if (s->session == NULL)
        return NULL;
    s->n_out = hn_session_n_outputs(s->session);
    if (!keep_outputs(s, error))
        return NULL;
    s->classes = s->n_out > 0 && (s->labelled || looks_like_classes(s));
    find_kinds(s);
    if (!run_samples(s, NULL, &s->original, error) || !run_command(s, original, &s->original, error))
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
    for (int j = 0; s->kinds != NULL && j < s->n_out; j++)
        hn_channel_kinds_clear(&s->kinds[j]);
    g_clear_pointer(&s->session, hn_session_free);
    g_clear_pointer(&s->model, hn_model_free);
    g_clear_pointer(&s->sample, hn_sample_free);
    g_free(s->kinds);
    g_ptr_array_unref(s->kept);
    g_free(s);
}

gboolean hn_scorer_run(HnScorer *s, HnModel *m, HnScore *score, GError **error)
{
    g_autoptr(HnSession) session = open_session(s, m, error);
    return session != NULL && run_samples(s, session, score, error) && run_command(s, m, score, error);
}

static double default_drop(HnMetric metric)
{
    return metric == HN_METRIC_COS ? 0.001 : metric == HN_METRIC_SCORES ? 0.02 : 0.01;
}

static void add_goal(HnGoals *g, HnMetric metric, double most)
{
    g->goal[g->n].metric = metric;
    g->goal[g->n++].most = most;
}

void hn_goals_one(HnMetric metric, double max_drop, HnGoals *out)
{
    out->n = 0;
    add_goal(out, metric, isnan(max_drop) ? default_drop(metric) : max_drop);
}

void hn_scorer_goals(const HnScorer *s, double max_drop, HnGoals *out)
{
    const double one = isnan(max_drop) ? default_drop(HN_METRIC_TOP1) : max_drop;
    hn_goals_one(s->classes ? HN_METRIC_TOP1 : HN_METRIC_COS, max_drop, out);
    if (s->classes && !s->labelled)
        add_goal(out, HN_METRIC_COS, one);
    else if (!s->classes && !isnan(s->original.scores))
        add_goal(out, HN_METRIC_SCORES, fmax(default_drop(HN_METRIC_SCORES), isnan(max_drop) ? 0 : max_drop));
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
