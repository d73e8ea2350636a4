#include "tune/tune_budget.h"

#include "base/clock.h"

void hn_tune_start(HnTuneBudget *b)
{
    if (b->end == 0 && b->seconds > 0)
        b->end = hn_now_ns() + (guint64)(b->seconds * 1e9);
}

HnBudget *hn_tune_memory(const HnTuneBudget *b)
{
    return b != NULL ? b->memory : NULL;
}

gboolean hn_tune_late(HnTuneBudget *b)
{
    if (b == NULL)
        return FALSE;
    if (b->end != 0 && hn_now_ns() > b->end)
        b->late = TRUE;
    return b->late;
}
