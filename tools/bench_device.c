/* hone-bench: a device with memory of its own: where the time of a run goes there, and what memory it takes. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "hone_bench.h"

#define RUNS_LEAST 5
#define RUNS_MOST 200
#define MOST_NS 500000000u /* for all of them */
#define PLAN_PART 0.02     /* by which memory may be above the plan before it is told */

static gboolean has_device(const Subject *s)
{
    return s->backend->memory != NULL && s->backend->state != NULL;
}

static HnSession *session_of(const Subject *s)
{
    return s->first.trainer ? hn_trainer_session(s->first.trainer) : s->first.session;
}

void subject_device_before(Subject *s)
{
    if (has_device(s))
        s->backend->state(s->backend->index, NULL, &s->device_before);
}

static gpointer handle_of(const Subject *s)
{
    const HnSession *session = session_of(s);
    return session ? hn_engine_device(hn_session_engine(session))->handle : NULL;
}

void subject_device_begin(Subject *s)
{
    hn_device_noise_begin(&s->device_noise, s->backend, handle_of(s));
}

void subject_device_end(Subject *s)
{
    hn_device_noise_end(&s->device_noise, s->backend, handle_of(s));
}

/* --- times ------------------------------------------------------------------------------------------------------- */

enum { WALL, KERNELS, UPLOAD, DOWNLOAD, GAPS, HOST };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, guint n)
{
    qsort(x, n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* One run with marks, into column n of ms. */
static gboolean time_one(Subject *s, guint64 i, guint n, double (*ms)[RUNS_MOST], HnDeviceTimes *t)
{
    guint64 start, end;
    if (!instance_run(&s->first, i, &start, &end, NULL) || !hn_session_device_times(session_of(s), t, NULL) ||
        t->runs == 0)
        return FALSE;
    ms[WALL][n] = (double)(end - start) * 1e-6;
    ms[KERNELS][n] = t->kernels_ms;
    ms[UPLOAD][n] = t->upload_ms;
    ms[DOWNLOAD][n] = t->download_ms;
    ms[GAPS][n] = t->gaps_ms;
    ms[HOST][n] = ms[WALL][n] - t->kernels_ms - t->upload_ms - t->download_ms - t->gaps_ms;
    return TRUE;
}

void subject_time_device(Subject *s)
{
    double ms[BENCH_DEVICE_TIMES][RUNS_MOST];
    HnDeviceTimes t = { 0 };
    guint n = 0;
    if (!has_device(s) || !session_of(s))
        return;
    hn_device_bytes(session_of(s), &s->device_before, &s->device_bytes);
    s->has_device = TRUE;
    if (!hn_session_time_device(session_of(s), TRUE))
        return;
    const guint64 since = hn_now_ns();
    while (n < RUNS_MOST && (n < RUNS_LEAST || hn_now_ns() - since < MOST_NS) &&
           !hn_progress_stop(&s->b->ctx->progress, NULL) && time_one(s, n, n, ms, &t))
        n++;
    hn_session_time_device(session_of(s), FALSE);
    s->device_runs = n;
    s->device_segments = t.segments;
    s->device_recorded = t.recorded;
    for (int k = 0; k < BENCH_DEVICE_TIMES && n > 0; k++)
        s->device_ms[k] = median(ms[k], n);
}

/* --- report ------------------------------------------------------------------------------------------------------ */

void bench_report_device(const Subject *s, JsonObject *row)
{
    static const char *const names[BENCH_DEVICE_TIMES] = { "wall", "kernels", "upload", "download", "gaps", "host" };
    JsonObject *o = json_object_new(), *times = json_object_new();
    if (!s->has_device) {
        json_object_set_null_member(row, "gpu");
        json_object_unref(o);
        json_object_unref(times);
        return;
    }
    hn_report_device(&s->device_noise, &s->device_bytes, o);
    json_object_set_int_member(times, "runs", s->device_runs);
    for (int k = 0; k < BENCH_DEVICE_TIMES; k++)
        json_object_set_double_member(times, names[k], s->device_runs ? s->device_ms[k] : NAN);
    json_object_set_double_member(times, "segments", s->device_segments);
    json_object_set_double_member(times, "recorded", s->device_recorded);
    json_object_set_object_member(o, "times_ms", times);
    json_object_set_object_member(row, "gpu", o);
}

char *bench_device_line(const Subject *s)
{
    const HnDeviceBytes *b = &s->device_bytes;
    const gint64 planned = b->arena + b->weights;
    if (!s->has_device || (double)b->allocated <= (double)planned * (1 + PLAN_PART))
        return NULL;
    g_autofree char *more = hn_text_size((guint64)(b->allocated - planned));
    return g_strdup_printf("the device holds %s beyond the plan", more);
}
