/*
 * The cheapest clock: the CPU's time stamp counter where it runs at one rate on all cores, else nanoseconds.
 */
#pragma once

#include "run/timer.h"

G_BEGIN_DECLS

typedef struct {
    double ns;    /* per tick */
    double stamp; /* ns that taking one stamp costs */
    double step;  /* ns by which the clock goes on at a time: some counters stand still for 10 ns */
} HnTicks;

/* Sets timer->tsc, and compares the counter with the clock for some milliseconds. */
void hn_ticks_start(HnTimer *timer, HnTicks *ticks);

G_END_DECLS
