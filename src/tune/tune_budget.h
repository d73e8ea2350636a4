/*
 * HnTuneBudget: the time and the memory that all phases of a search have together.
 */
#pragma once

#include "base/budget.h"

G_BEGIN_DECLS

typedef struct {
    HnBudget *memory; /* may be NULL */
    guint64 end;      /* ns of hn_now_ns(); 0: no limit */
    gboolean late;    /* the end was met, and stays so */
} HnTuneBudget;

/* seconds: from now on; 0: no limit. */
void hn_tune_budget_init(HnTuneBudget *b, double seconds, HnBudget *memory);

/* Is its time over? Each phase asks before it begins something that can be left out. */
gboolean hn_tune_late(HnTuneBudget *b);

G_END_DECLS
