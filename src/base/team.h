/*
 * A team of threads for parallel regions that take microseconds: what stands under OpenMP in hone's programs
 * (tools/omp.c).
 *
 * A region is a function that is called n times, each call (a share) with its own id. Shares that need not run at the
 * same time are claimed: the calling thread runs every share that no other thread has started by then, so it never
 * waits for a thread that has not come yet, and a region is right with any number of threads. While somebody else
 * wants the CPUs, so that a share was interrupted and had to be waited for, regions run on the calling thread alone,
 * for 1 ms at first and for 20 ms at most. Together means: each share has a thread of its own, as barriers need it.
 *
 * Threads start when they are first needed, wait actively for a while after each region, and then sleep; they end with
 * the process. A second caller at the same time runs its region alone, or gets a team of its own where its shares have
 * to be together. Nothing is allocated, and no lock is taken, except where threads start. The child of a fork()
 * starts its own.
 */
#pragma once

#include "base/cpu.h"

G_BEGIN_DECLS

#define HN_TEAM_MAX 4095 /* shares of a region */

typedef void (*HnTeamFn)(void *data);

/* A region while it runs, in its caller's memory. */
typedef struct HnRegion HnRegion;

typedef struct {
    int id, n; /* 0 and 1 outside of regions */
    gboolean inside;
    HnRegion *region;
} HnShare;

struct HnRegion {
    HnTeamFn fn;
    void *data;
    int n; /* shares: 1 in a region inside another one */
    void *team;
    HnIsa isa;             /* the caller's limit */
    HnShare outer;         /* the caller's, before */
    guint64 began;         /* ticks */
    guint arrived, phase;  /* of the barrier, atomic */
    gboolean phase_asleep; /* somebody sleeps until phase changes; atomic */
};

/* Calls r->fn(r->data) r->n times and returns when all are done; what is not set is 0. FALSE: together, and threads
 * could not be started; nothing was called. */
gboolean hn_team_run(HnRegion *r, gboolean together);

/* The same, together, in two halves: in between the caller itself does share 0. */
gboolean hn_team_begin(HnRegion *r);
void hn_team_end(HnRegion *r);

/* The calling thread's share. */
HnShare *hn_team_share(void);
/* All shares of the region, which run together, have come here. */
void hn_team_barrier(void);

/* From now on the calling thread's regions run together, whoever starts them: around calls of libraries whose regions
 * are not known, and where shares measure what they do at the same time. Returns what was before. */
gboolean hn_team_together(gboolean on);

/* A clock that is cheap to read, and how many of its ticks so many microseconds are, a few per cent off; 0 before there
 * are threads. */
guint64 hn_team_ticks(void);
guint64 hn_team_ticks_of(guint64 us);

/* For tests: threads of all teams, and whether regions run alone at present. */
int hn_team_threads(void);
gboolean hn_team_alone(void);

G_END_DECLS
