/*
 * HnTuneBudget: the time and the memory that all phases of a job have together: calibration, repairs, search,
 * measurements at the end. Each of them asks it; the clock starts when the job says so.
 *
 * A job that must not be late gives its phases a time each. A phase whose time is over is halted wherever it is,
 * between two nodes of a run, too: what it was doing fails with a BUDGET error, and the job goes on with what it has.
 *
 * What is still to be done is told by what it took before. A machine may have become busy since: each phase shows how
 * much of a processor its thread, which has part in all work, is given.
 */
#pragma once

#include "base/budget.h"
#include "base/halt.h"

G_BEGIN_DECLS

typedef struct HnTuneWatch HnTuneWatch;

/* What something took, up to hn_tune_cost_stop(): seconds of the clock, and those that its thread worked. */
typedef struct {
    double seconds, worked;
} HnTuneCost;

void hn_tune_cost_start(HnTuneCost *c);
void hn_tune_cost_stop(HnTuneCost *c); /* from the same thread */

typedef struct {
    HnBudget *memory; /* may be NULL */
    double seconds;   /* 0: no limit */
    guint64 end;      /* ns of hn_now_ns(); 0: no limit, or not started */
    gboolean late;    /* the end was met, and stays so until the next phase */
    gint *halt;       /* what halts the work (HnProgress.cancel); NULL: phases are not halted, they ask */
    guint64 last;     /* the end of it all, where phases have their own; 0: there are none */
    HnTuneWatch *watch;
    HnTuneCost phase; /* of the phase that goes on */
    double slowness;  /* seconds for one of work in the last phase that told it; 0: none did */
} HnTuneBudget;

/* The seconds count from now on. Once started it goes on. */
void hn_tune_start(HnTuneBudget *b);
/* They count from `since`, and there will be phases. Nothing, where there is no limit. */
void hn_tune_start_at(HnTuneBudget *b, guint64 since);
/* A phase begins, and has that part of what is left but `reserve` seconds; the one before has ended. Without
 * hn_tune_start_at() this is nothing, as is all that follows. */
void hn_tune_phase(HnTuneBudget *b, double part, double reserve);
/* It is over, and what follows is not halted. TRUE: it was halted. */
gboolean hn_tune_phase_end(HnTuneBudget *b);
/* It is over. TRUE, and *failure is none any more: that is what it came of. */
gboolean hn_tune_was_cut(HnTuneBudget *b, GError **failure);
/* Seconds that what cost this takes as the last phase went: no less than it took. */
double hn_tune_again(const HnTuneBudget *b, const HnTuneCost *c);
/* Seconds up to the end of it all; infinite: no limit. */
double hn_tune_left(const HnTuneBudget *b);
/* Seconds of the whole time that a race at the end may take; 0: no limit. */
double hn_tune_race_seconds(const HnTuneBudget *b);
void hn_tune_clear(HnTuneBudget *b);

/* b may be NULL from here on: no limits. */
HnBudget *hn_tune_memory(const HnTuneBudget *b);
/* Is its time over? Each phase asks before it begins something that can be left out. */
gboolean hn_tune_late(HnTuneBudget *b);

G_END_DECLS
