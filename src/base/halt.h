/*
 * HnHalt: why all work is to end, as a signal handler says it in one atomic number that long work looks at.
 *
 * HnProgress.cancel and hn_budget_watch() take the address of such a number. It goes from HN_HALT_NOT to one of the
 * others and stays there, but for HN_HALT_PHASE: whoever has given a phase of the work a time takes it back.
 */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

typedef enum {
    HN_HALT_NOT,   /* go on */
    HN_HALT_USER,  /* Ctrl-C: HN_ERROR_INTERRUPTED */
    HN_HALT_TIME,  /* the time limit was reached: HN_ERROR_BUDGET */
    HN_HALT_PHASE, /* the time of a part of the work is over, and other work will follow: HN_ERROR_BUDGET */
} HnHalt;

/* The error of a halt that is not HN_HALT_NOT. */
static inline void hn_halt_error(gint halt, GError **error)
{
    if (halt == HN_HALT_PHASE)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "its time was over");
    else if (halt == HN_HALT_TIME)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "the time limit was reached");
    else
        g_set_error_literal(error, HN_ERROR, HN_ERROR_INTERRUPTED, "interrupted");
}

/* The first reason stays; but a phase may end at any time. */
static inline void hn_halt_set(gint *halt, HnHalt why)
{
    if (!g_atomic_int_compare_and_exchange(halt, HN_HALT_NOT, why) && why != HN_HALT_PHASE)
        (void)g_atomic_int_compare_and_exchange(halt, HN_HALT_PHASE, why);
}

/* FALSE with that error where work is to end; NULL: nobody ends it. The cost is that of a load. */
static inline gboolean hn_halt_go(const gint *halt, GError **error)
{
    const gint why = halt ? g_atomic_int_get(halt) : HN_HALT_NOT;
    if (G_LIKELY(why == HN_HALT_NOT))
        return TRUE;
    hn_halt_error(why, error);
    return FALSE;
}

G_END_DECLS
