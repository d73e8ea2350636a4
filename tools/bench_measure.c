/* hone-bench: measuring one model alone, or several against each other. */
#include <string.h>

#include "hone_bench.h"
#include "perf/streams.h"

/* The first run, and the warm-up. */
static gboolean warm_subject(Subject *s, GError **error)
{
    const Bench *b = s->b;
    const HnProgress *progress = &b->ctx->progress;
    HnRunner runner = { instance_run, &s->first, s->n_sets };
    guint64 start, end;
    if (hn_progress_stop(progress, error) || !instance_run(&s->first, 0, &start, &end, error))
        return FALSE;
    s->phases[BENCH_FIRST_RUN] = (double)(end - start) / 1e6;
    hn_tool_note_refs(b->ctx, s->first.trainer ? hn_trainer_session(s->first.trainer) : s->first.session, s->backend);
    if (!hn_warm_up(&runner, &b->warmup, progress, &s->warmed, error))
        return FALSE;
    s->has_warmed = TRUE;
    s->running = subject_growth(s);
    s->peak_rss = bench_peak_rss();
    return TRUE;
}

/* The first instance and others at once. */
static gboolean measure_streams(Subject *s, GError **error)
{
    const Bench *b = s->b;
    int n = s->streams;
    g_autofree Instance *more = g_new0(Instance, n);
    g_autofree HnRunner *runners = g_new0(HnRunner, n);
    gboolean ok = TRUE;
    for (int i = 0; i < n && ok; i++) {
        ok = i == 0 || instance_share(s, &more[i], error);
        runners[i] = (HnRunner){ instance_run, i ? &more[i] : &s->first, s->n_sets };
    }
    if (ok)
        s->running = subject_growth(s);
    ok = ok && hn_measure_streams(runners, n, &b->measure, &b->ctx->progress, &s->measured, error);
    for (int i = 1; i < n; i++)
        instance_clear(&more[i]);
    return ok;
}

static gboolean measure_alone(Subject *s, GError **error)
{
    const Bench *b = s->b;
    HnRunner runner = { instance_run, &s->first, s->n_sets };
    HnMeasureOptions o = b->measure;
    hn_outliers_init(&s->outliers, s->warmed.median_ns);
    o.outliers = &s->outliers;
    s->has_outliers = hn_measure(&runner, &o, &b->ctx->progress, &s->measured, error);
    return s->has_outliers;
}

static gboolean measure_subject(Subject *s, GError **error)
{
    const Bench *b = s->b;
    const HnProgress *progress = &b->ctx->progress;
    HnNoiseMark before, after;
    if (!warm_subject(s, error))
        return FALSE;
    hn_noise_mark(NULL, &before);
    subject_device_begin(s);
    const gboolean several = b->p->instances > 0 || b->baseline != NULL;
    const gboolean ok = several          ? bench_measure_instances(s, error)
                        : s->streams > 1 ? measure_streams(s, error)
                                         : measure_alone(s, error);
    if (!ok)
        return FALSE;
    hn_noise_mark(NULL, &after);
    hn_noise_between(&before, &after, &s->noise);
    subject_device_end(s);
    subject_time_device(s);
    guint64 peak = bench_peak_rss(); /* with the list of times in it */
    s->peak_rss = MAX(s->peak_rss, peak - MIN(peak, s->measured.bytes));
    s->has_measured = s->measured.runs > 0;
    if (s->training && s->has_measured)
        subject_time_training(s);
    return s->measured.stop != HN_STOP_INTERRUPTED || !hn_progress_stop(progress, error);
}

void bench_set_verdict(Bench *b, HnError code, const char *format, ...)
{
    if (b->verdict && (b->verdict->code == HN_ERROR_GUARD || code != HN_ERROR_GUARD))
        return;
    va_list args;
    va_start(args, format);
    g_clear_error(&b->verdict);
    b->verdict = g_error_new_valist(HN_ERROR, (int)code, format, args);
    va_end(args);
}

gboolean bench_alone(Bench *b, const Point *point, int model, GError **error)
{
    Subject s;
    GError *cause = NULL;
    subject_init(&s, b, point, model);
    gboolean ok = subject_open(&s, &cause) && (!s.backend->computes || measure_subject(&s, &cause));
    hn_data_explain(s.data, &cause);
    if (s.ready) {
        subject_retire(&s); /* one instance at a time: there may not be memory for two */
        bench_apart_peak(b, &s);
        if (ok || g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED))
            bench_report_add(b->report, &s);
    }
    if (ok && b->baseline && s.has_measured)
        bench_judge_baseline(b, &s);
    if (ok && s.has_measured && !b->baseline && s.measured.stop == HN_STOP_LIMIT && b->fail_on_noise)
        bench_set_verdict(b, HN_ERROR_NOISE, "'%s': the median is not known within %g %% after %d s", s.label,
                          b->measure.precision * 100, BENCH_LIMIT_S);
    if (!ok && b->ctx->n_args > 1 && s.model && !g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED))
        g_prefix_error(&cause, "'%s': ", s.path);
    if (!ok)
        g_propagate_error(error, cause);
    subject_clear(&s);
    return ok;
}

/* --- several ----------------------------------------------------------------------------------------------------- */

typedef struct {
    Subject *subjects;
    Instance now[HN_MAX_SIDES];
} Sides;

static gboolean open_side(gpointer data, int side, GError **error)
{
    Sides *sides = data;
    return instance_open(&sides->subjects[side], &sides->now[side], error);
}

static void close_side(gpointer data, int side)
{
    Sides *sides = data;
    instance_clear(&sides->now[side]);
}

static gboolean run_side(gpointer data, int side, guint64 i, guint64 *start, guint64 *end, GError **error)
{
    Sides *sides = data;
    return instance_run(&sides->now[side], i, start, end, error);
}

static guint64 longest_period(const Subject *subjects, int n)
{
    guint64 longest = 1;
    for (int i = 0; i < n; i++)
        longest = MAX(longest, subjects[i].n_sets);
    return longest;
}

/* Against --fail-if-slower, or, without it, whether there is a difference at all. */
static void judge(Bench *b, const Subject *a, const Subject *s, const HnEffect *e)
{
    const double more = (e->effect - 1) * 100;
    const HnDecision decision = hn_decide(e, 1 + b->gate);
    const char *near = b->gate > 0 ? ", or too near the limit," : "";
    const gboolean open = b->gate > 0 ? decision == HN_UNDECIDED : e->verdict == HN_VERDICT_NOISY;
    if (b->gate > 0 && decision == HN_LOST)
        bench_set_verdict(b, HN_ERROR_GUARD,
                          "'%s' is %.1f %% slower than '%s' (99.9 %%: %+.1f to %+.1f), which is more than %g %%",
                          s->label, more, a->label, (e->sure_lo - 1) * 100, (e->sure_hi - 1) * 100, b->gate * 100);
    else if (open && b->fail_on_noise)
        bench_set_verdict(b, HN_ERROR_NOISE, "it is too noisy%s to tell whether '%s' is slower than '%s'", near,
                          s->label, a->label);
    else if (open && b->gate > 0)
        hn_context_warn(b->ctx, "it is too noisy%s to tell whether '%s' is slower than '%s'", near, s->label, a->label);
}

static gboolean compare(Bench *b, Subject *subjects, int n, GError **error)
{
    const HnProgress *progress = &b->ctx->progress;
    Sides *sides = g_new0(Sides, 1);
    sides->subjects = subjects;
    HnContest contest = { n, open_side, close_side, run_side, sides, longest_period(subjects, n) };
    HnContestOptions o = { .until = b->measure.until,
                           .runs = b->measure.runs,
                           .seconds = b->measure.seconds,
                           .precision = b->ci_given ? b->measure.precision : 0,
                           .margin = b->margin,
                           .limit = b->gate > 0 ? 1 + b->gate : 0,
                           .raw = b->p->raw };
    HnContestResult *result = g_new0(HnContestResult, 1);
    HnOutliers *outliers[HN_MAX_SIDES];
    for (int i = 0; i < n; i++) {
        outliers[i] = &subjects[i].outliers;
        hn_outliers_init(outliers[i], subjects[i].warmed.median_ns);
    }
    o.outliers = outliers;
    HnNoiseMark before, after;
    HnDevice *kept[HN_MAX_SIDES] = { NULL }; /* open from one instance to the next: that takes longer than a round */
    for (int i = 0; i < n; i++) {
        kept[i] = subjects[i].backend->memory ? hn_device_new(subjects[i].backend, NULL) : NULL;
        subject_device_begin(&subjects[i]);
    }
    hn_noise_mark(NULL, &before);
    gboolean ok = hn_contest(&contest, &o, progress, result, error);
    hn_noise_mark(NULL, &after);
    for (int i = 0; i < n; i++) {
        subject_device_end(&subjects[i]);
        hn_device_unref(kept[i]);
    }
    for (int i = 0; i < n && ok; i++) {
        Subject *s = &subjects[i];
        s->measured = result->side[i];
        s->has_measured = s->has_outliers = s->measured.runs > 0;
        hn_outliers_finish(&s->outliers, s->measured.ms.p50 * 1e6);
        hn_noise_between(&before, &after, &s->noise);
        bench_report_add(b->report, s);
    }
    for (int i = 1; i < n && ok && result->rounds > 0; i++) {
        bench_report_compare(b->report, &subjects[0], &subjects[i], &result->effect[i], result->rounds);
        if (result->stop != HN_STOP_INTERRUPTED)
            judge(b, &subjects[0], &subjects[i], &result->effect[i]);
    }
    ok = ok && (result->stop != HN_STOP_INTERRUPTED || !hn_progress_stop(progress, error));
    g_free(sides);
    g_free(result);
    return ok;
}

/* The time limit, not that of memory: then nothing that was begun is told about. */
static gboolean out_of_time(const Bench *b, const GError *cause)
{
    return g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET) && hn_progress_stop(&b->ctx->progress, NULL);
}

gboolean bench_compare(Bench *b, const Point *point, GError **error)
{
    int n = bench_sides(b), opened = 0;
    g_autofree Subject *subjects = g_new0(Subject, n);
    GError *cause = NULL;
    gboolean ok = TRUE;
    for (int i = 0; i < n && ok; i++) {
        Subject *s = &subjects[i];
        subject_init(s, b, point, i);
        ok = subject_open(s, &cause) && warm_subject(s, &cause);
        if (ok)
            subject_time_device(s);
        hn_data_explain(s->data, &cause);
        opened += ok;
        if (s->ready) {
            subject_retire(s);
            bench_apart_peak(b, s);
        }
        if (!ok && s->model && !g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED))
            g_prefix_error(&cause, "'%s': ", s->path);
    }
    if (ok) {
        ok = compare(b, subjects, n, &cause);
    } else if (!out_of_time(b, cause)) {
        /* those that opened are told about, without a comparison */
        for (int i = 0; i < opened; i++)
            bench_report_add(b->report, &subjects[i]);
    }
    if (!ok)
        g_propagate_error(error, cause);
    for (int i = 0; i < n; i++)
        subject_clear(&subjects[i]);
    return ok;
}
