#include "perf/streams.h"

#include <math.h>

#include "base/error.h"
#include "base/progress_time.h"

#define SLICE_S 0.5
#define SLICE_RUNS 20
#define FIRST_LOOK 0.5 /* seconds, as in measure.c */
#define GROWTH 1.25
#define PER_SLICE ((gsize)1 << 14) /* times of a thread that are kept, at most */

typedef struct {
    const HnRunner *runner;
    struct Crowd *crowd;
    HnTimes times; /* of this slice, ns */
    guint64 next;
    guint64 start, end;
    GError *error;
} Stream;

typedef struct Crowd {
    int n;
    gint ready;    /* threads that are warm; atomic */
    gint failed;   /* atomic */
    gint64 left;   /* runs that may still be made; atomic */
    guint64 slice; /* ns */
    const gint *cancel;
} Crowd;

static gboolean stopped(const Crowd *c)
{
    return g_atomic_int_get(&c->failed) || (c->cancel && g_atomic_int_get(c->cancel));
}

static gboolean run_next(Stream *s, double *ns)
{
    guint64 start;
    if (!s->runner->run(s->runner->data, s->next, &start, &s->end, &s->error)) {
        g_atomic_int_set(&s->crowd->failed, 1);
        return FALSE;
    }
    if (!s->start)
        s->start = start;
    *ns = (double)(s->end - start);
    return TRUE;
}

static gpointer stream_slice(gpointer data)
{
    Stream *s = data;
    Crowd *c = s->crowd;
    double ns;
    gboolean ok = run_next(s, &ns);
    g_atomic_int_inc(&c->ready);
    while (g_atomic_int_get(&c->ready) < c->n && !stopped(c))
        g_thread_yield();
    s->start = 0;
    while (ok && !stopped(c) && (!s->start || s->end - s->start < c->slice)) {
        if (__atomic_fetch_sub(&c->left, 1, __ATOMIC_RELAXED) <= 0)
            break;
        hn_times_reserve(&s->times);
        ok = run_next(s, &ns);
        if (!ok)
            break;
        s->next++;
        hn_times_add(&s->times, ns);
    }
    return NULL;
}

/* A thread for each stream but the first. One that cannot be had ends the slice: streams wait for each other. */
static void start_others(Crowd *c, Stream *streams, GThread **threads)
{
    g_autoptr(GError) cause = NULL;
    for (int i = 1; i < c->n && !cause; i++) {
        threads[i] = g_thread_try_new("stream", stream_slice, &streams[i], &cause);
        if (threads[i])
            continue;
        g_set_error(&streams[i].error, HN_ERROR, HN_ERROR_BUDGET, "no more than %d threads can be had", i);
        g_atomic_int_set(&c->failed, 1);
    }
}

/* One slice of all streams, its times onto `all`, its length onto *wall. */
static gboolean slice(Crowd *c, Stream *streams, HnTimes *all, double *wall, GError **error)
{
    g_autofree GThread **threads = g_new0(GThread *, c->n);
    c->ready = 0;
    for (int i = 0; i < c->n; i++) {
        streams[i].times.n = 0;
        streams[i].times.seen = 0;
        streams[i].times.sum = 0;
        streams[i].start = 0;
    }
    start_others(c, streams, threads);
    if (!stopped(c))
        stream_slice(&streams[0]);
    for (int i = 1; i < c->n; i++)
        if (threads[i])
            g_thread_join(threads[i]);
    guint64 first = G_MAXUINT64, last = 0;
    for (int i = 0; i < c->n; i++) {
        Stream *s = &streams[i];
        if (s->error && !hn_progress_cut(&s->error)) {
            g_propagate_error(error, g_steal_pointer(&s->error));
            return FALSE;
        }
        if (!s->times.seen)
            continue;
        first = MIN(first, s->start);
        last = MAX(last, s->end);
        double kept = 0;
        for (gsize k = 0; k < s->times.n; k++) {
            kept += s->times.x[k];
            hn_times_add(all, s->times.x[k]);
        }
        all->seen += s->times.seen - s->times.n; /* what was not kept is still counted */
        all->sum += s->times.sum - kept;
        all->least = MIN(all->least, s->times.least);
        all->most = MAX(all->most, s->times.most);
    }
    if (last > first)
        *wall += (double)(last - first) * 1e-9;
    return TRUE;
}

static gboolean enough(const HnMeasureOptions *o, const Crowd *c, HnTimes *all, double wall, double *look, HnStop *stop)
{
    switch (o->until) {
    case HN_UNTIL_RUNS:
        *stop = HN_STOP_RUNS;
        return all->seen >= o->runs;
    case HN_UNTIL_TIME:
        *stop = HN_STOP_TIME;
        return wall >= o->seconds && all->seen >= HN_MIN_INTERVAL;
    default:
        break;
    }
    *stop = HN_STOP_INTERVAL;
    if (wall >= *look && all->seen >= (guint64)c->n * 10) {
        HnStats s;
        hn_stats(all->x, all->n, &s);
        if (MAX(s.hi - s.p50, s.p50 - s.lo) <= o->precision * s.p50)
            return TRUE;
        *look = wall * GROWTH;
    }
    *stop = HN_STOP_LIMIT;
    return wall >= o->seconds;
}

static gboolean measure(Crowd *c, Stream *streams, const HnMeasureOptions *o, const HnProgress *progress, HnTimes *all,
                        double *wall, HnStop *stop, GError **error)
{
    double look = FIRST_LOOK;
    *stop = HN_STOP_INTERRUPTED;
    while (!(c->cancel && g_atomic_int_get(c->cancel))) {
        double rest = o->until == HN_UNTIL_RUNS ? INFINITY : MAX(o->seconds - *wall, 1e-3);
        double long_enough = all->seen ? SLICE_RUNS * all->sum * 1e-9 / (double)all->seen : 0;
        c->slice = (guint64)(MIN(MAX(SLICE_S, long_enough), rest) * 1e9);
        c->left = o->until == HN_UNTIL_RUNS ? (gint64)(o->runs - all->seen) : G_MAXINT64;
        if (o->until == HN_UNTIL_RUNS)
            hn_progress_tell(progress, "measuring", all->seen, o->runs);
        else
            hn_progress_tell_time(progress, "measuring", *wall, o->seconds);
        if (!slice(c, streams, all, wall, error))
            return FALSE;
        if (enough(o, c, all, *wall, &look, stop))
            return TRUE;
        *stop = HN_STOP_INTERRUPTED;
    }
    return TRUE;
}

gboolean hn_measure_streams(const HnRunner *runners, int n, const HnMeasureOptions *options, const HnProgress *progress,
                            HnMeasured *out, GError **error)
{
    Crowd c = { .n = n, .cancel = progress ? progress->cancel : NULL };
    g_autofree Stream *streams = g_new0(Stream, n);
    HnTimes all;
    HnStop stop;
    double wall = 0;
    hn_times_init(&all, 0);
    for (int i = 0; i < n; i++) {
        streams[i] = (Stream){ .runner = &runners[i], .crowd = &c };
        hn_times_init(&streams[i].times, PER_SLICE);
    }
    gboolean ok = measure(&c, streams, options, progress, &all, &wall, &stop, error);
    if (ok) {
        hn_measured_from(&all, stop, out);
        out->wall = wall;
    }
    for (int i = 0; i < n; i++) {
        hn_times_clear(&streams[i].times);
        g_clear_error(&streams[i].error);
    }
    hn_times_clear(&all);
    return ok;
}
