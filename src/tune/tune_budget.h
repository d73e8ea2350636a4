/*
 * HnTuneBudget: the time and the memory that all phases of a job have together: calibration, repairs, search,
 * measurements at the end. Each of them asks it; the clock starts when the job says so.
 */
#pragma once

#include "base/budget.h"

G_BEGIN_DECLS

typedef struct {
    HnBudget *memory; /* may be NULL */
    double seconds;   /* 0: no limit */
    guint64 end;      /* ns of hn_now_ns(); 0: no limit, or not started */
    gboolean late;    /* the end was met, and stays so */
} HnTuneBudget;

/* The seconds count from now on. Once started it goes on. */
void hn_tune_start(HnTuneBudget *b);

/* b may be NULL from here on: no limits. */
HnBudget *hn_tune_memory(const HnTuneBudget *b);
/* Is its time over? Each phase asks before it begins something that can be left out. */
gboolean hn_tune_late(HnTuneBudget *b);

G_END_DECLS
