#include "perf/measure.h"

#include <math.h>
#include <string.h>

#include "base/progress_time.h"
#include "base/text.h"

#define BLOCK_NS 50000000u    /* of warm-up */
#define BLOCKS 3              /* whose medians have to agree ... */
#define AGREE 1.02            /* ... within this ratio */
#define SETTLE_NS 2000000000u /* of warm-up, at most */
#define BLOCK_TIMES 4096      /* kept of one block: a random selection of more */

#define SLICE_NS 500000000u /* of measuring without a look at anything else */
#define SHORT 100           /* a run of less than a slice's n-th part notices cold caches */
#define FIRST_LOOK 0.5      /* seconds of measuring before the interval may end it */
#define FIRST_RUNS 10
#define USUAL 1001            /* times that tell what an outlier is */
#define GROWTH 1.25           /* of the time measured, between two looks at the interval */
#define MAX_WARMUP 1000000000 /* runs, and seconds */

typedef struct {
    const HnRunner *runner;
    guint64 next;       /* run */
    guint64 start, end; /* clock of the slice's first and latest run */
} Loop;

static gboolean run_next(Loop *l, gboolean first, double *ns, GError **error)
{
    guint64 start, end;
    if (!l->runner->run(l->runner->data, l->next, &start, &end, error))
        return FALSE;
    if (first)
        l->start = start;
    l->end = end;
    l->next++;
    *ns = (double)(end - start);
    return TRUE;
}

/* --- warm-up ----------------------------------------------------------------------------------------------------- */

gboolean hn_warmup_parse(const char *text, HnWarmup *warmup, GError **error)
{
    gint64 runs;
    double seconds;
    if (!strcmp(text, "auto")) {
        *warmup = (HnWarmup){ .kind = HN_WARMUP_AUTO };
    } else if (hn_parse_int(text, 0, MAX_WARMUP, &runs, NULL)) {
        *warmup = (HnWarmup){ .kind = HN_WARMUP_RUNS, .runs = (guint64)runs };
    } else if (hn_parse_duration(text, &seconds, NULL) && seconds >= 0 && seconds <= MAX_WARMUP) {
        *warmup = (HnWarmup){ .kind = HN_WARMUP_TIME, .seconds = seconds };
    } else {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "'%s' is no warm-up: auto, a number of runs, or a time such as 200ms", text);
        return FALSE;
    }
    return TRUE;
}

/* One block; its median goes to *median. */
static gboolean warm_block(Loop *l, HnTimes *times, double *median, GError **error)
{
    guint64 runs = 0;
    double ns, sum = 0;
    times->n = 0;
    times->seen = 0;
    do {
        hn_times_reserve(times);
        if (!run_next(l, l->next == 0, &ns, error))
            return FALSE;
        hn_times_add(times, ns);
        sum += ns;
        runs++;
    } while ((sum < BLOCK_NS || runs % l->runner->period) && l->end - l->start < SETTLE_NS);
    *median = hn_median(times->x, times->n);
    return TRUE;
}

static gboolean agree(const double *medians)
{
    double lo = INFINITY, hi = 0;
    for (int i = 0; i < BLOCKS; i++) {
        lo = MIN(lo, medians[i]);
        hi = MAX(hi, medians[i]);
    }
    return hi <= lo * AGREE;
}

static gboolean warm_auto(Loop *l, const HnProgress *progress, gboolean *steady, double *latest, GError **error)
{
    double medians[BLOCKS] = { 0 }; /* the latest, in a ring */
    HnTimes times;
    gboolean ok = TRUE;
    hn_times_init(&times, BLOCK_TIMES);
    for (guint n = 0; ok && !*steady; n++) {
        if (l->next >= BLOCKS && l->end - l->start >= SETTLE_NS)
            break;
        hn_progress_tell(progress, "warming up", 0, 0);
        ok = !hn_progress_stop(progress, error) && warm_block(l, &times, &medians[n % BLOCKS], error);
        *steady = ok && n + 1 >= BLOCKS && agree(medians);
        *latest = medians[n % BLOCKS];
    }
    hn_times_clear(&times);
    return ok;
}

static gboolean warm_fixed(Loop *l, const HnWarmup *w, const HnProgress *progress, GError **error)
{
    guint64 ns = (guint64)(w->seconds * 1e9);
    double unused;
    for (;;) {
        if (w->kind == HN_WARMUP_RUNS ? l->next >= w->runs : l->end - l->start >= ns)
            return TRUE;
        hn_progress_tell(progress, "warming up", 0, 0);
        if (hn_progress_stop(progress, error) || !run_next(l, l->next == 0, &unused, error))
            return FALSE;
    }
}

gboolean hn_warm_up(const HnRunner *runner, const HnWarmup *warmup, const HnProgress *progress, HnWarmedUp *out,
                    GError **error)
{
    Loop l = { .runner = runner };
    gboolean steady = FALSE;
    double latest = 0;
    gboolean ok = warmup->kind == HN_WARMUP_AUTO ? warm_auto(&l, progress, &steady, &latest, error)
                                                 : warm_fixed(&l, warmup, progress, error);
    if (ok)
        *out = (HnWarmedUp){
            .runs = l.next, .ms = (double)(l.end - l.start) / 1e6, .steady = steady, .median_ns = latest
        };
    return ok;
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

const char *hn_stop_name(HnStop stop)
{
    static const char *const names[] = { "interval", "limit", "runs", "time", "interrupted" };
    return names[stop];
}

static gboolean cancelled(const HnProgress *progress)
{
    return progress && progress->cancel && g_atomic_int_get(progress->cancel);
}

/* What the failure of a run means: FALSE, unless it was cut short by the user. */
static gboolean failed(GError *failure, GError **error)
{
    if (hn_progress_cut(&failure))
        return TRUE;
    g_propagate_error(error, failure);
    return FALSE;
}

/* Runs until ns have passed or the number of runs has reached `last`: no clock but the runs' own, no input or output.
 */
static gboolean slice(Loop *l, HnTimes *times, guint64 ns, guint64 last, HnOutliers *outliers,
                      const HnProgress *progress, GError **error)
{
    double took, far = outliers ? outliers->limit_ns : INFINITY;
    GError *failure = NULL;
    gboolean first = TRUE;
    do {
        hn_times_reserve(times);
        if (!run_next(l, first, &took, &failure))
            return failed(failure, error);
        hn_times_add(times, took);
        if (took > far)
            hn_outliers_add(outliers, l->next - 1, took);
        first = FALSE;
    } while (l->next < last && l->end - l->start < ns && !cancelled(progress));
    return TRUE;
}

/* Whether enough was measured, all of it in `passed` seconds; *look is when to look at the interval again. */
static gboolean enough(const Loop *l, HnTimes *times, const HnMeasureOptions *o, double passed, double *look,
                       HnStop *stop)
{
    switch (o->until) {
    case HN_UNTIL_RUNS:
        *stop = HN_STOP_RUNS;
        return l->next >= o->runs;
    case HN_UNTIL_TIME:
        *stop = HN_STOP_TIME;
        return passed >= o->seconds && l->next >= HN_MIN_INTERVAL;
    default:
        break;
    }
    *stop = HN_STOP_INTERVAL;
    if (passed >= *look && l->next >= FIRST_RUNS && l->next >= l->runner->period) {
        HnStats s;
        hn_stats(times->x, times->n, &s);
        if (MAX(s.hi - s.p50, s.p50 - s.lo) <= o->precision * s.p50)
            return TRUE;
        *look = passed * GROWTH;
    }
    *stop = HN_STOP_LIMIT;
    return passed >= o->seconds;
}

/* The length of the next slice: short of what the time still allows. */
static guint64 slice_length(const HnMeasureOptions *o, double passed)
{
    double rest = (o->seconds - passed) * 1e9;
    return o->until != HN_UNTIL_RUNS && rest < SLICE_NS ? (guint64)MAX(rest, 1) : SLICE_NS;
}

static void tell(const Loop *l, const HnMeasureOptions *o, double passed, const HnProgress *progress)
{
    if (o->until == HN_UNTIL_RUNS)
        hn_progress_tell(progress, "measuring", l->next, o->runs);
    else if (o->until == HN_UNTIL_TIME)
        hn_progress_tell_time(progress, "measuring", passed, o->seconds);
    else
        hn_progress_tell(progress, "measuring", 0, 0);
}

static gboolean measure(Loop *l, HnTimes *times, const HnMeasureOptions *o, const HnProgress *progress, HnStop *stop,
                        GError **error)
{
    double passed = 0, look = FIRST_LOOK, unused;
    GError *failure = NULL;
    guint64 last = o->until == HN_UNTIL_RUNS ? o->runs : G_MAXUINT64;
    *stop = HN_STOP_INTERRUPTED;
    tell(l, o, passed, progress);
    while (!cancelled(progress)) {
        gboolean brief = times->sum * SHORT < (double)times->seen * SLICE_NS;
        if (l->next ? brief : o->warm) {
            Loop warm = *l;
            if (!run_next(&warm, FALSE, &unused, &failure))
                return failed(failure, error);
        }
        if (o->outliers)
            hn_outliers_mark(o->outliers);
        if (!slice(l, times, slice_length(o, passed), last, o->outliers, progress, error))
            return FALSE;
        passed += (double)(l->end - l->start) * 1e-9;
        if (enough(l, times, o, passed, &look, stop))
            return TRUE;
        *stop = HN_STOP_INTERRUPTED;
        if (o->outliers)
            hn_outliers_expect(o->outliers, hn_times_usual(times, USUAL));
        tell(l, o, passed, progress);
    }
    return TRUE;
}

static void to_ms(HnStats *s)
{
    double *const all[] = {
        &s->mean, &s->stddev, &s->min, &s->p50, &s->p90, &s->p95, &s->p99, &s->max, &s->lo, &s->hi
    };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        *all[i] /= 1e6;
}

void hn_measured_from(HnTimes *times, HnStop stop, HnMeasured *out)
{
    *out = (HnMeasured){ .stop = stop,
                         .runs = times->seen,
                         .busy = times->sum * 1e-9,
                         .wall = times->sum * 1e-9,
                         .bytes = times->n * sizeof times->x[0] };
    if (times->raw && times->n > 0)
        out->raw = g_new(double, times->n);
    for (gsize i = 0; out->raw != NULL && i < times->n; i++)
        out->raw[i] = times->x[i] / 1e6;
    hn_times_stats(times, &out->ms);
    to_ms(&out->ms);
    for (int i = 0; i < HN_CURVE; i++)
        out->curve[i] = hn_quantile(times->x, times->n, (double)i / (HN_CURVE - 1)) / 1e6;
}

gboolean hn_measure(const HnRunner *runner, const HnMeasureOptions *options, const HnProgress *progress,
                    HnMeasured *out, GError **error)
{
    Loop l = { .runner = runner };
    HnTimes times;
    HnStop stop;
    hn_times_init(&times, 0);
    times.raw = options->raw;
    gboolean ok = measure(&l, &times, options, progress, &stop, error);
    if (ok)
        hn_measured_from(&times, stop, out);
    if (ok && options->outliers)
        hn_outliers_finish(options->outliers, out->ms.p50 * 1e6);
    hn_times_clear(&times);
    return ok;
}
