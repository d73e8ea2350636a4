#include "tune/tune_budget.h"

#include "base/clock.h"

void hn_tune_budget_init(HnTuneBudget *b, double seconds, HnBudget *memory)
{
    *b = (HnTuneBudget){ .memory = memory, .end = seconds > 0 ? hn_now_ns() + (guint64)(seconds * 1e9) : 0 };
}

gboolean hn_tune_late(HnTuneBudget *b)
{
    if (b->end != 0 && hn_now_ns() > b->end)
        b->late = TRUE;
    return b->late;
}
