/*
 * A loop whose iterations are shared by threads that are not equally fast: two kinds of cores, or a virtual machine
 * whose host takes one of them away for a while.
 *
 * Each thread has its own contiguous run of iterations, the same at every call, so that it finds in its caches what it
 * wrote there the time before. It takes a third of what is left of it, again and again, from the front; a thread that
 * has come to its end takes from the end of the fullest other run (static scheduling with stealing). Runs of a few
 * microseconds are not cut up: what threads say to each other would cost more than waiting.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_PARALLEL_PIECES 16 /* of a run */

/* Iterations [from, to), with memory of that thread: an index below `threads` that no other call has meanwhile. */
typedef void (*HnRangeFn)(gpointer data, int thread, int64_t from, int64_t to);

/* Calls fn for ranges that make up [0, n), in parallel and in any order, in a parallel region (base/team.h). With one
 * thread it is one call, with n threads at least one iteration each. */
void hn_parallel_for(int64_t n, int threads, HnRangeFn fn, gpointer data);

/* --- for tests --- */

#define HN_DEAL_RUNS 64

/* Pieces [0, n) in a run for each thread; threads beyond HN_DEAL_RUNS have none of their own. */
typedef struct {
    int runs;
    struct {
        _Alignas(64) guint64 left; /* first piece, end; atomic */
    } run[HN_DEAL_RUNS];
} HnDeal;

void hn_deal(HnDeal *d, guint32 pieces, int threads);
/* Pieces [*from, *to) are that thread's; in a hurry all that is left of its own run, and none of others'. FALSE: all
 * are taken. */
gboolean hn_deal_next(HnDeal *d, int thread, gboolean hurry, int64_t *from, int64_t *to);

G_END_DECLS
