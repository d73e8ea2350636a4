#include "perf/ticks.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

#define CALIBRATE_NS 20000000
#define STAMPS 1000
#define MULTIPLES 8 /* that are looked at: interrupts are longer, and of any length */

/* The counter neither stops nor changes its rate. */
static gboolean invariant(void)
{
#if defined __x86_64__
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#else
    return FALSE;
#endif
}

/* A pair of clock and counter read close to each other: the closest of some tries. */
static void both(const HnTimer *t, guint64 *ns, guint64 *ticks)
{
    guint64 best = G_MAXUINT64;
    for (int i = 0; i < 20; i++) {
        guint64 before = hn_timer_now(t), now = hn_now_ns(), after = hn_timer_now(t);
        if (after - before < best) {
            best = after - before;
            *ns = now;
            *ticks = before + (after - before) / 2;
        }
    }
}

/* What a counter goes on by at a time, out of n differences of neighbouring stamps: the least one, if all are about
 * multiples of it; else one tick. */
static guint64 step_of(const guint64 *apart, gsize n)
{
    guint64 least = G_MAXUINT64;
    for (gsize i = 0; i < n; i++)
        if (apart[i] > 0)
            least = MIN(least, apart[i]);
    for (gsize i = 0; i < n; i++)
        if (apart[i] < MULTIPLES * least && (apart[i] + 1) % least > 2)
            return 1;
    return least < G_MAXUINT64 ? least : 1;
}

static guint64 measure_step(const HnTimer *t)
{
    guint64 apart[STAMPS], before = hn_timer_now(t);
    for (int i = 0; i < STAMPS; i++) {
        guint64 now = hn_timer_now(t);
        apart[i] = now - before;
        before = now;
    }
    return step_of(apart, STAMPS);
}

void hn_ticks_start(HnTimer *timer, HnTicks *ticks)
{
    guint64 ns0 = 0, t0 = 0, ns1 = 0, t1 = 0, best = G_MAXUINT64;
    timer->tsc = invariant();
    ticks->ns = 1;
    if (timer->tsc) {
        both(timer, &ns0, &t0);
        while (hn_now_ns() - ns0 < CALIBRATE_NS)
            ;
        both(timer, &ns1, &t1);
        timer->tsc = t1 > t0;
        ticks->ns = timer->tsc ? (double)(ns1 - ns0) / (double)(t1 - t0) : 1;
    }
    for (int k = 0; k < 10; k++) {
        guint64 start = hn_timer_now(timer), end = start;
        for (int i = 0; i < STAMPS; i++)
            end = hn_timer_now(timer);
        best = MIN(best, end - start);
    }
    timer->tick_ns = ticks->ns;
    ticks->stamp = (double)best * ticks->ns / STAMPS;
    ticks->step = (double)measure_step(timer) * ticks->ns;
}
