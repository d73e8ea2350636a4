#include "perf/outliers.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#define LEAST_NS 1000    /* beyond the median: the clock itself, an interrupt */
#define FAULT_NS 500.0   /* a page that is only mapped */
#define STEAL_NS 2000000 /* beyond the median, from which on stolen time is asked for: it is counted in 10 ms */

const char *hn_cause_name(int bit)
{
    static const char *const names[HN_CAUSES + 1] = { "preempted", "page faults", "migrated", "steal", "unknown" };
    return names[bit];
}

void hn_outliers_init(HnOutliers *o, double median_ns)
{
    *o = (HnOutliers){ .x = g_new(HnOutlier, HN_OUTLIERS_MAX), .limit_ns = INFINITY };
    if (median_ns > 0)
        hn_outliers_expect(o, median_ns);
}

void hn_outliers_clear(HnOutliers *o)
{
    g_clear_pointer(&o->x, g_free);
    o->n = 0;
}

static double limit(double median_ns)
{
    return MAX(HN_OUTLIER * median_ns, median_ns + LEAST_NS);
}

void hn_outliers_expect(HnOutliers *o, double median_ns)
{
    o->median_ns = median_ns;
    o->limit_ns = limit(median_ns);
}

static void mark_usage(HnOutliers *o)
{
    struct rusage r = { 0 };
    getrusage(RUSAGE_SELF, &r);
    o->mark.preemptions = (guint64)r.ru_nivcsw;
    o->mark.minor = (guint64)r.ru_minflt;
    o->mark.major = (guint64)r.ru_majflt;
    o->mark.cpu = sched_getcpu();
}

void hn_outliers_mark(HnOutliers *o)
{
    mark_usage(o);
    o->mark.has_stat = hn_cpu_stat(NULL, &o->mark.stat);
}

void hn_outliers_add(HnOutliers *o, guint64 run, double ns)
{
    HnOutlier x = { .run = run, .ms = ns * 1e-6 };
    guint64 preemptions = o->mark.preemptions, minor = o->mark.minor, major = o->mark.major;
    int cpu = o->mark.cpu;
    double excess = ns - o->median_ns;
    mark_usage(o);
    if (o->mark.preemptions > preemptions)
        x.causes |= HN_CAUSE_PREEMPTED;
    if (o->mark.major > major || (double)(o->mark.minor - minor) * FAULT_NS > excess / 4)
        x.causes |= HN_CAUSE_FAULTS;
    if (cpu >= 0 && o->mark.cpu != cpu)
        x.causes |= HN_CAUSE_MIGRATED;
    HnCpuStat stat;
    if (excess > STEAL_NS && o->mark.has_stat && hn_cpu_stat(NULL, &stat)) {
        if (stat.steal > o->mark.stat.steal)
            x.causes |= HN_CAUSE_STEAL;
        o->mark.stat = stat;
    }
    o->seen++;
    if (o->n < HN_OUTLIERS_MAX)
        o->x[o->n++] = x;
}

static int worst_first(const void *a, const void *b)
{
    const HnOutlier *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

void hn_outliers_finish(HnOutliers *o, double median_ns)
{
    double least = limit(median_ns) * 1e-6;
    guint kept = 0, n = o->n;
    for (guint i = 0; i < n; i++)
        if (o->x[i].ms > least)
            o->x[kept++] = o->x[i];
    /* those that were only counted are taken to be outliers in the same proportion */
    o->seen = n ? (guint64)((double)o->seen * kept / n + 0.5) : 0;
    o->n = kept;
    hn_outliers_expect(o, median_ns);
    if (kept)
        qsort(o->x, kept, sizeof o->x[0], worst_first);
}
