/*
 * HnTuneBudget: the time and the memory that all phases of a job have together: calibration, repairs, search,
 * measurements at the end. Each of them asks it; the clock starts when the job says so.
 *
 * A job that must not be late gives its phases a time each. A phase whose time is over is halted wherever it is,
 * between two nodes of a run, too: what it was doing fails with a BUDGET error, and the job goes on with what it has.
 */
#pragma once

#include "base/budget.h"
#include "base/halt.h"

G_BEGIN_DECLS

typedef struct HnTuneWatch HnTuneWatch;

typedef struct {
    HnBudget *memory; /* may be NULL */
    double seconds;   /* 0: no limit */
    guint64 end;      /* ns of hn_now_ns(); 0: no limit, or not started */
    gboolean late;    /* the end was met, and stays so until the next phase */
    gint *halt;       /* what halts the work (HnProgress.cancel); NULL: phases are not halted, they ask */
    guint64 last;     /* the end of it all, where phases have their own; 0: there are none */
    HnTuneWatch *watch;
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
