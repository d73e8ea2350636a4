#include "tune/tune_budget.h"

#include <math.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"

#define RACE_PART 0.25 /* of the whole time: for races at the end ... */
#define RACE_MOST 12.0 /* ... seconds at most */
#define TELLING 0.05   /* seconds of a phase that tell how slow it is */
#define SLOWEST 8.0    /* what waits for a disk, or for a program, is not that slow everywhere */

/* A thread that sleeps until a phase is over. */
struct HnTuneWatch {
    GThread *thread;
    GMutex lock;
    GCond changed;
    gint64 end; /* us of g_get_monotonic_time(); 0: no phase */
    gboolean done;
    gint *halt;
};

static gpointer watch(gpointer data)
{
    HnTuneWatch *w = data;
    g_mutex_lock(&w->lock);
    while (!w->done) {
        if (w->end == 0) {
            g_cond_wait(&w->changed, &w->lock);
        } else if (!g_cond_wait_until(&w->changed, &w->lock, w->end) && w->end != 0 &&
                   g_get_monotonic_time() >= w->end) {
            hn_halt_set(w->halt, HN_HALT_PHASE);
            w->end = 0;
        }
    }
    g_mutex_unlock(&w->lock);
    return NULL;
}

static void wait_for(HnTuneWatch *w, gint64 end)
{
    g_mutex_lock(&w->lock);
    w->end = end;
    g_cond_signal(&w->changed);
    g_mutex_unlock(&w->lock);
}

/* Programs that were waited for count as its thread's work. */
static double worked(void)
{
    struct rusage others;
    const gboolean told = getrusage(RUSAGE_CHILDREN, &others) == 0;
    const struct timeval user = told ? others.ru_utime : (struct timeval){ 0 };
    return (double)hn_thread_cpu_ns() * 1e-9 + (double)user.tv_sec + (double)user.tv_usec * 1e-6;
}

void hn_tune_cost_start(HnTuneCost *c)
{
    *c = (HnTuneCost){ -(double)hn_now_ns() * 1e-9, -worked() };
}

void hn_tune_cost_stop(HnTuneCost *c)
{
    c->seconds += (double)hn_now_ns() * 1e-9;
    c->worked += worked();
}

double hn_tune_again(const HnTuneBudget *b, const HnTuneCost *c)
{
    return fmax(c->seconds, c->worked * b->slowness);
}

/* The phase that goes on is over. */
static void learn_slowness(HnTuneBudget *b)
{
    if (b->end == 0)
        return;
    hn_tune_cost_stop(&b->phase);
    if (b->phase.seconds >= TELLING)
        b->slowness = b->phase.seconds / fmax(b->phase.worked, b->phase.seconds / SLOWEST);
}

void hn_tune_start(HnTuneBudget *b)
{
    if (b->end == 0 && b->last == 0 && b->seconds > 0)
        b->end = hn_now_ns() + (guint64)(b->seconds * 1e9);
}

void hn_tune_start_at(HnTuneBudget *b, guint64 since)
{
    if (!(b->seconds > 0) || b->last != 0)
        return;
    b->last = since + (guint64)(b->seconds * 1e9);
    if (b->halt == NULL)
        return;
    HnTuneWatch *w = b->watch = g_new0(HnTuneWatch, 1);
    g_mutex_init(&w->lock);
    g_cond_init(&w->changed);
    w->halt = b->halt;
    w->thread = g_thread_new("budget", watch, w);
}

double hn_tune_left(const HnTuneBudget *b)
{
    return b->last == 0 ? INFINITY : ((double)b->last - (double)hn_now_ns()) * 1e-9;
}

void hn_tune_phase(HnTuneBudget *b, double part, double reserve)
{
    if (b->last == 0)
        return;
    (void)hn_tune_phase_end(b);
    const double seconds = fmax(part * (hn_tune_left(b) - reserve), 0);
    b->end = MAX(hn_now_ns() + (guint64)(seconds * 1e9), 1);
    hn_tune_cost_start(&b->phase);
    if (b->watch != NULL)
        wait_for(b->watch, g_get_monotonic_time() + (gint64)(seconds * 1e6));
}

gboolean hn_tune_phase_end(HnTuneBudget *b)
{
    if (b->last == 0)
        return FALSE;
    if (b->watch != NULL)
        wait_for(b->watch, 0);
    learn_slowness(b);
    b->end = 0;
    b->late = FALSE;
    return b->halt != NULL && g_atomic_int_compare_and_exchange(b->halt, HN_HALT_PHASE, HN_HALT_NOT);
}

gboolean hn_tune_was_cut(HnTuneBudget *b, GError **failure)
{
    const gboolean halted = hn_tune_phase_end(b);
    if (!halted || !g_error_matches(*failure, HN_ERROR, HN_ERROR_BUDGET))
        return FALSE;
    g_clear_error(failure);
    return TRUE;
}

double hn_tune_race_seconds(const HnTuneBudget *b)
{
    return b->last == 0 ? 0 : fmin(RACE_PART * b->seconds, RACE_MOST);
}

void hn_tune_clear(HnTuneBudget *b)
{
    (void)hn_tune_phase_end(b);
    HnTuneWatch *w = g_steal_pointer(&b->watch);
    if (w == NULL)
        return;
    g_mutex_lock(&w->lock);
    w->done = TRUE;
    g_cond_signal(&w->changed);
    g_mutex_unlock(&w->lock);
    g_thread_join(w->thread);
    g_mutex_clear(&w->lock);
    g_cond_clear(&w->changed);
    g_free(w);
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
