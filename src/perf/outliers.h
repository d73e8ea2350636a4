/*
 * Runs that took much longer than the others, and what happened to the process meanwhile.
 *
 * While measuring, a run beyond the limit is looked at right after it: what the kernel counted since the latest look
 * (at the start of the slice, or behind the outlier before) is taken for its cause, as runs that are not outliers
 * rarely have such a thing in them. Looks take some microseconds and are outside of what is timed.
 */
#pragma once

#include "base/cpu.h"

G_BEGIN_DECLS

#define HN_OUTLIER 1.5        /* a run that takes so many times the median is one */
#define HN_OUTLIERS_MAX 4096u /* kept; more are only counted */

typedef enum {
    HN_CAUSE_PREEMPTED = 1 << 0, /* another thread got the CPU */
    HN_CAUSE_FAULTS = 1 << 1,    /* pages were read from a disk, or so many mapped that it took a quarter of the time */
    HN_CAUSE_MIGRATED = 1 << 2,  /* the main thread came to another CPU */
    HN_CAUSE_STEAL = 1 << 3,     /* the hypervisor gave the CPU away */
} HnCause;

#define HN_CAUSES 4

const char *hn_cause_name(int bit); /* 0: "preempted" ... HN_CAUSES - 1; HN_CAUSES: "unknown" */

typedef struct {
    guint64 run;
    double ms;
    guint causes; /* of HnCause; 0: unknown */
} HnOutlier;

typedef struct {
    double limit_ns; /* a run above it is looked at; INFINITY: none is */
    double median_ns;
    HnOutlier *x;
    guint n;
    guint64 seen; /* more than n where there were too many to keep */
    struct {
        guint64 preemptions, minor, major;
        int cpu;
        HnCpuStat stat;
        gboolean has_stat;
    } mark;
} HnOutliers;

void hn_outliers_init(HnOutliers *o, double median_ns); /* 0: not known yet */
void hn_outliers_clear(HnOutliers *o);
void hn_outliers_expect(HnOutliers *o, double median_ns); /* sets the limit */
void hn_outliers_mark(HnOutliers *o);
void hn_outliers_add(HnOutliers *o, guint64 run, double ns); /* and marks */

/* By the median that was found in the end: what is no outlier by it is left out, the others come worst first. */
void hn_outliers_finish(HnOutliers *o, double median_ns);

G_END_DECLS
