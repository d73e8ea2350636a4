/*
 * HnTimer: the spans of a session's steps, taken while it runs.
 *
 * Given to hn_session_set_timer(), it gets a span for each step of each run, steps of sub-graphs included (`depth` is
 * 1 and more there, and they come before the control node that they belong to). Steps of one plan follow each other
 * without a gap: a stamp ends one and starts the next, so that no time is lost between them. The caller empties the
 * list between runs.
 */
#pragma once

#include "base/clock.h"
#include "run/backend.h"

#if defined __x86_64__
#include <x86intrin.h>
#endif

G_BEGIN_DECLS

#define HN_TIMER_SPANS                                                                             \
    ((gsize)1 << 19) /* of sub-graphs in one run; what is beyond counts as the control node's time \
                      */

typedef struct {
    const HnNode *node;     /* NULL: the planner's own step, a reorder */
    const HnValue *value;   /* whose elements a reorder moves; may be NULL */
    const HnKernel *kernel; /* NULL: ref */
    const HnStep *step;     /* only to be compared: it may be gone */
    int depth;
    gboolean device;    /* took place there, by its own clock ... */
    gboolean moves;     /* ... and was a copy from one memory to the other, or it was ... */
    guint launches;     /* ... so many kernels; 0: not known */
    guint64 start, end; /* ticks */
} HnSpan;

typedef struct {
    gboolean tsc;   /* ticks are the CPU's time stamp counter, else nanoseconds */
    double tick_ns; /* nanoseconds of one; 0: not known, and then all steps are waited for, on a device too */
    HnSpan *spans;
    gsize n, room;
    guint64 dropped; /* spans beyond HN_TIMER_SPANS, over all runs */
    int depth;       /* of the sub-graph that is running */
    guint marks;     /* of the device's clock, taken since the plan that is running began */
    void (*after)(const HnStep *s, gpointer data); /* called behind each step, between the spans; NULL: not */
    gpointer data;
} HnTimer;

static inline guint64 hn_timer_now(const HnTimer *t)
{
#if defined __x86_64__
    if (t->tsc)
        return __rdtsc();
#endif
    return hn_now_ns();
}

/* The span, until the next one is added; NULL: it was dropped. */
static inline HnSpan *hn_timer_add(HnTimer *t, const HnStep *s, int depth, guint64 start, guint64 end)
{
    if (t->n >= HN_TIMER_SPANS && depth > 0) {
        t->dropped++;
        return NULL;
    }
    if (t->n == t->room) {
        t->room = t->room != 0 ? t->room * 2 : 1024;
        t->spans = g_renew(HnSpan, t->spans, t->room);
    }
    const HnValue *v = s->node == NULL && s->in[0].slot != NULL ? s->in[0].slot->value : NULL;
    t->spans[t->n++] = (HnSpan){
        .node = s->origin, .value = v, .kernel = s->kernel, .step = s, .depth = depth, .start = start, .end = end
    };
    return &t->spans[t->n - 1];
}

G_END_DECLS
