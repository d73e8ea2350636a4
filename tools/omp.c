/*
 * OpenMP's entry points on hone's team of threads, exported from the program: oneDNN, opened later, finds them before
 * libgomp's, and there is one pool of threads. A program's business, for they serve the whole process.
 *
 * Regions of the program's own code have their shares claimed; those begun by GOMP_parallel_start, which compilers of
 * today no longer emit, and those of a thread that said hn_team_together(), run together.
 */
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/team.h"
#include "base/thread_local.h"

#define NESTED 8

static HN_THREAD_LOCAL int wanted;
static HN_THREAD_LOCAL HnRegion started[NESTED];
static HN_THREAD_LOCAL int depth;

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "hone: OpenMP: %s\n", what);
    abort();
}

/* --- what libraries and pragmas ask ------------------------------------------------------------------------------ */

int omp_get_thread_num(void)
{
    return hn_team_share()->id;
}

int omp_get_num_threads(void)
{
    return hn_team_share()->n;
}

int omp_in_parallel(void)
{
    return hn_team_share()->inside;
}

/* A region inside another one has one share, and is none of those that count. */
int omp_get_level(void)
{
    return hn_team_share()->inside;
}

int omp_get_active_level(void)
{
    return hn_team_share()->inside;
}

int omp_get_ancestor_thread_num(int level)
{
    return level == 0 ? 0 : level == omp_get_level() ? hn_team_share()->id : -1;
}

int omp_get_team_size(int level)
{
    return level == 0 ? 1 : level == omp_get_level() ? hn_team_share()->n : -1;
}

int omp_get_max_threads(void)
{
    if (wanted == 0)
        wanted = hn_cpu_affinity();
    return wanted;
}

void omp_set_num_threads(int n)
{
    wanted = MAX(n, 1);
}

/* --- regions ----------------------------------------------------------------------------------------------------- */

static int shares(unsigned n)
{
    return n > 0 ? (int)MIN(n, HN_TEAM_MAX) : omp_get_max_threads();
}

void GOMP_parallel(HnTeamFn fn, void *data, unsigned n, unsigned flags);
void GOMP_parallel(HnTeamFn fn, void *data, unsigned n, unsigned flags)
{
    (void)flags;
    HnRegion r = { .fn = fn, .data = data, .n = shares(n) };
    if (!hn_team_run(&r, FALSE))
        die("a thread could not be started");
}

void GOMP_parallel_start(HnTeamFn fn, void *data, unsigned n);
void GOMP_parallel_start(HnTeamFn fn, void *data, unsigned n)
{
    if (depth == NESTED)
        die("regions within regions");
    HnRegion *r = &started[depth++];
    *r = (HnRegion){ .fn = fn, .data = data, .n = shares(n) };
    if (!hn_team_begin(r))
        die("a thread could not be started");
}

void GOMP_parallel_end(void);
void GOMP_parallel_end(void)
{
    hn_team_end(&started[--depth]);
}

void GOMP_barrier(void);
void GOMP_barrier(void)
{
    hn_team_barrier();
}

/* --- loops whose iterations are dealt out beforehand ------------------------------------------------------------- */

static guint64 trips(long start, long end, long step)
{
    if (step > 0)
        return start < end ? ((guint64)end - (guint64)start - 1) / (guint64)step + 1 : 0;
    return start > end ? ((guint64)start - (guint64)end - 1) / -(guint64)step + 1 : 0;
}

/* The share's loop. Iterations are counted from 0, `at` is the next one. */
static HN_THREAD_LOCAL struct {
    long start, step;
    guint64 chunk, at, end; /* chunk 0: each share has one piece */
} loop;

static void piece(long start, long step, guint64 from, guint64 to, long *first, long *last)
{
    *first = (long)((guint64)start + from * (guint64)step);
    *last = (long)((guint64)start + to * (guint64)step);
}

bool GOMP_loop_static_next(long *first, long *last);
bool GOMP_loop_static_next(long *first, long *last)
{
    guint64 from = loop.at, to = loop.chunk == 0 ? loop.end : MIN(from + loop.chunk, loop.end);
    if (from >= loop.end)
        return FALSE;
    loop.at = loop.chunk == 0 ? loop.end : from + loop.chunk * (guint64)hn_team_share()->n;
    piece(loop.start, loop.step, from, to, first, last);
    return TRUE;
}

bool GOMP_loop_static_start(long start, long end, long step, long chunk, long *first, long *last);
bool GOMP_loop_static_start(long start, long end, long step, long chunk, long *first, long *last)
{
    guint64 id = (guint64)hn_team_share()->id, n = (guint64)hn_team_share()->n, all = trips(start, end, step);
    loop.start = start;
    loop.step = step;
    loop.chunk = (guint64)chunk;
    loop.at = id * (guint64)chunk;
    loop.end = all;
    if (chunk == 0) { /* the first few are one longer */
        loop.at = id * (all / n) + MIN(id, all % n);
        loop.end = loop.at + all / n + (id < all % n);
    }
    return GOMP_loop_static_next(first, last);
}

void GOMP_loop_end_nowait(void);
void GOMP_loop_end_nowait(void)
{
}

void GOMP_loop_end(void);
void GOMP_loop_end(void)
{
    hn_team_barrier();
}

/* --- loops whose iterations go to whoever comes ------------------------------------------------------------------ */

typedef struct {
    HnRegion region;
    long start, step;
    guint64 chunk, trips, taken; /* iterations; the last one is atomic */
} OnDemand;

static void on_demand(HnTeamFn fn, void *data, unsigned n, long start, long end, long step, long chunk)
{
    OnDemand d = { .region = { .fn = fn, .data = data, .n = shares(n) }, .start = start, .step = step };
    d.chunk = (guint64)MAX(chunk, 1);
    d.trips = trips(start, end, step);
    if (!hn_team_run(&d.region, FALSE))
        die("a thread could not be started");
}

static bool take_piece(long *first, long *last)
{
    OnDemand *d = (OnDemand *)hn_team_share()->region;
    guint64 from = __atomic_fetch_add(&d->taken, d->chunk, __ATOMIC_RELAXED);
    if (from < d->trips)
        piece(d->start, d->step, from, MIN(from + d->chunk, d->trips), first, last);
    return from < d->trips;
}

#define HN_ON_DEMAND(kind)                                                                                           \
    void GOMP_parallel_loop_##kind(HnTeamFn fn, void *data, unsigned n, long start, long end, long step, long chunk, \
                                   unsigned flags);                                                                  \
    void GOMP_parallel_loop_##kind(HnTeamFn fn, void *data, unsigned n, long start, long end, long step, long chunk, \
                                   unsigned flags)                                                                   \
    {                                                                                                                \
        (void)flags;                                                                                                 \
        on_demand(fn, data, n, start, end, step, chunk);                                                             \
    }                                                                                                                \
    bool GOMP_loop_##kind##_next(long *first, long *last);                                                           \
    bool GOMP_loop_##kind##_next(long *first, long *last)                                                            \
    {                                                                                                                \
        return take_piece(first, last);                                                                              \
    }
#define HN_MISSING(name)           \
    void name(void);               \
    void name(void)                \
    {                              \
        die(#name " is not here"); \
    }
#include "omp.def"
