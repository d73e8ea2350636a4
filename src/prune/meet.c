#include "prune/meet.h"

#include <math.h>

#define WIDE 1.1 /* an interval that ends within that of what it is about tells what it is */
#define MIN_STEP 0.7
#define MAX_STEP 1.3
#define SAME 1.005 /* goals so near to each other, of costs that are counted, have nothing between them */

gboolean hn_prune_tells(const HnPruneMeet *m, const HnPruneTry *t)
{
    return t->hi <= m->limit || t->lo > m->hi || (t->hi <= t->cost * WIDE && t->lo >= t->cost / WIDE);
}

static gboolean attempt(const HnPruneMeet *m, HnPruneTry *t, gboolean *tells, GError **error)
{
    *tells = FALSE;
    for (guint patience = 0; patience < HN_PRUNE_PATIENCE && !*tells; patience++) {
        if (!m->attempt(m->data, t, patience, error))
            return FALSE;
        *tells = hn_prune_tells(m, t);
    }
    return TRUE;
}

/* under: the largest goal whose model costs too little; over: the smallest one whose model costs too much. What is
 * measured is not believed twice: the second step to one side is a long one. */
static double next_goal(const HnPruneMeet *m, const HnPruneTry *t, guint round, double under, double over)
{
    const double part = m->limit / t->cost, step = m->measured && round > 0 ? (part < 1 ? MIN_STEP : MAX_STEP) : part;
    const double next = t->goal * CLAMP(step, MIN_STEP, MAX_STEP);
    const gboolean between = under > 0 && isfinite(over);
    return between && (m->measured || next <= under || next >= over) ? sqrt(under * over) : next;
}

gboolean hn_prune_meet(const HnPruneMeet *m, double goal, HnPruneMeeting *how, HnPruneTry *best, GError **error)
{
    HnPruneTry least = { .cost = INFINITY };
    double under = 0, over = INFINITY;
    gboolean known = TRUE, taken = FALSE, best_tells = FALSE;
    for (guint i = 0; i < HN_PRUNE_ROUNDS && known; i++) {
        HnPruneTry t = { .goal = goal };
        gboolean tells;
        if (!attempt(m, &t, &tells, error))
            return FALSE;
        known = tells || m->any;
        const gboolean surer = !taken || (tells && !best_tells), nearer = taken && t.cost > best->cost;
        const gboolean better = known && t.cost <= m->hi && (surer || (nearer && tells == best_tells));
        if (!m->settle(m->data, &t, better, error))
            return FALSE;
        if (t.cost < least.cost)
            least = t;
        if (better) {
            *best = t;
            taken = TRUE;
            best_tells = tells;
        }
        if ((t.cost >= m->lo && t.cost <= m->hi) || (t.least && t.cost > m->limit))
            break;
        if (t.cost <= m->limit)
            under = MAX(under, goal);
        else
            over = MIN(over, goal);
        if (!m->measured && over <= under * SAME)
            break;
        goal = next_goal(m, &t, i, under, over);
    }
    *how = taken ? HN_PRUNE_MET : known ? HN_PRUNE_IMPOSSIBLE : HN_PRUNE_UNKNOWN;
    if (!taken)
        *best = least;
    return TRUE;
}
