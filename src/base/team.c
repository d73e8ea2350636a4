#include "base/team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/thread_local.h"

#if defined __x86_64__
#include <x86intrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif

#define LINE 64 /* bytes of a cache line: what different threads write lies in different ones */

/* us. Waking a thread takes the waker 2 to 5 of them, and 10 to 100 pass until it runs. */
#define SPIN_US 1000   /* that a thread without work waits actively */
#define GAP_US 50      /* between two looks: somebody else had the CPU */
#define PATIENCE_US 50 /* that is waited actively for other shares, besides a quarter of the own one's time */
#define ALONE_US 1000
#define ALONE_MAX_US 20000

/* The word: generation, shares of the region, shares claimed. */
#define NEXT(w) ((int)((w)&0xfff))
#define SHARES(w) ((int)((w) >> 12 & 0xfff))
#define GENERATION ((guint64)1 << 24)

#define ASLEEP 1u /* in `done`: the caller sleeps until it is more */
#define DONE 2u

typedef struct Team {
    _Alignas(LINE) guint64 word;
    HnRegion *region; /* this line is the caller's to write, but for claims */
    HnTeamFn fn;
    void *data;
    int cpu;                       /* the caller's, when the region began; atomic */
    _Alignas(LINE) guint done;     /* shares that threads have run so far */
    _Alignas(LINE) guint bell;     /* sleeping threads wait for a change */
    gboolean asleep;               /* a thread may be sleeping */
    int threads;                   /* the caller's to write */
    _Alignas(LINE) gboolean taken; /* by a caller; what follows is the caller's */
    guint expected;                /* `done` when all is done */
    struct Team *next;
} Team;

static Team teams;                     /* the first one: the only one for regions whose shares are claimed */
static GMutex more;                    /* of making other teams */
static guint64 alone_until, alone_for; /* ticks */
static guint64 ticks_per_us;

static HN_THREAD_LOCAL HnShare share = { .n = 1 };
static HN_THREAD_LOCAL gboolean holds_together;

/* --- time and sleep ---------------------------------------------------------------------------------------------- */

guint64 hn_team_ticks(void)
{
#if defined __x86_64__
    return __rdtsc();
#else
    return hn_now_ns();
#endif
}

/* A few per cent off, or more when interrupted: good enough to be patient by. */
static void calibrate(void)
{
    guint64 ns = hn_now_ns(), t = hn_team_ticks(), now;
    while ((now = hn_now_ns()) - ns < 20000)
        ;
    guint64 per_us = (hn_team_ticks() - t) * 1000 / (now - ns);
    __atomic_store_n(&ticks_per_us, CLAMP(per_us, 500, 10000), __ATOMIC_RELAXED);
}

guint64 hn_team_ticks_of(guint64 n)
{
    return n * __atomic_load_n(&ticks_per_us, __ATOMIC_RELAXED);
}

static void sleep_on(guint *word, guint value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(guint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, G_MAXINT, NULL, NULL, 0);
}

/* --- running alone while others want the CPUs -------------------------------------------------------------------- */

gboolean hn_team_alone(void)
{
    guint64 until = __atomic_load_n(&alone_until, __ATOMIC_RELAXED);
    return until != 0 && hn_team_ticks() < until;
}

/* Twice as long as the last time, unless that was long ago. */
static void back_off(void)
{
    guint64 now = hn_team_ticks(), last = __atomic_load_n(&alone_for, __ATOMIC_RELAXED),
            until = __atomic_load_n(&alone_until, __ATOMIC_RELAXED);
    last = now > until + 4 * last ? hn_team_ticks_of(ALONE_US) : MIN(2 * last, hn_team_ticks_of(ALONE_MAX_US));
    __atomic_store_n(&alone_for, last, __ATOMIC_RELAXED);
    __atomic_store_n(&alone_until, now + last, __ATOMIC_RELAXED);
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

/* The next share that nobody has started; -1: none. */
static int claim(Team *t)
{
    guint64 w = __atomic_load_n(&t->word, __ATOMIC_ACQUIRE);
    while (NEXT(w) < SHARES(w))
        if (__atomic_compare_exchange_n(&t->word, &w, w + 1, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return NEXT(w);
    return -1;
}

static void run_share(HnRegion *r, int n, int id, HnTeamFn fn, void *data)
{
    share = (HnShare){ .id = id, .n = n, .inside = TRUE, .region = r };
    hn_cpu_limit_isa(r->isa);
    fn(data);
}

/* The scheduler had no other CPU for this thread than the one that it is to relieve. */
static gboolean beside_caller(Team *t)
{
    return sched_getcpu() == __atomic_load_n(&t->cpu, __ATOMIC_RELAXED);
}

/* The next share, waited for; -1: nothing came for a while, or somebody else had the CPU or wants it. */
static int wait_for_share(Team *t)
{
    guint64 start = hn_team_ticks(), last = start, spin = hn_team_ticks_of(SPIN_US), gap = hn_team_ticks_of(GAP_US);
    guint64 w = __atomic_load_n(&t->word, __ATOMIC_ACQUIRE);
    gboolean only = __atomic_load_n(&t->threads, __ATOMIC_RELAXED) == 1;
    for (;;) {
        for (int i = 0; i < 64; i++) {
            /* the same as the last time but for the generation? To compare and exchange, and not to look first, leaves
             * the line with this CPU alone, one transfer between CPUs less; several threads would pull at it. */
            guint64 next = (w & ~(GENERATION - 1)) + GENERATION + (w & 0xfff000) + 1;
            if (!only)
                next = __atomic_load_n(&t->word, __ATOMIC_ACQUIRE);
            if ((only || NEXT(next) < SHARES(next)) &&
                __atomic_compare_exchange_n(&t->word, &next, next + 1, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return NEXT(next);
            w = next;
            if (NEXT(w) < SHARES(w)) {
                int id = claim(t);
                if (id >= 0)
                    return id;
            }
            PAUSE();
        }
        guint64 now = hn_team_ticks();
        if (now - start > spin || now - last > gap || beside_caller(t))
            return -1;
        last = now;
    }
}

static void sleep_for_work(Team *t)
{
    guint bell = __atomic_load_n(&t->bell, __ATOMIC_SEQ_CST);
    __atomic_store_n(&t->asleep, TRUE, __ATOMIC_SEQ_CST);
    guint64 w = __atomic_load_n(&t->word, __ATOMIC_SEQ_CST);
    if (NEXT(w) >= SHARES(w))
        sleep_on(&t->bell, bell);
}

/* Times that the calling thread was interrupted for another one. */
static long interruptions(void)
{
    struct rusage u = { 0 };
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nivcsw;
}

/* Runs a share and what else is left of the region. TRUE: somebody else wants the CPU that this took, maybe the
 * caller. */
static gboolean work(Team *t, int id, long *interrupted)
{
    gboolean waited_for = FALSE;
    for (; id >= 0; id = claim(t)) {
        int n = SHARES(__atomic_load_n(&t->word, __ATOMIC_RELAXED));
        run_share(t->region, n, id, t->fn, t->data);
        if ((__atomic_fetch_add(&t->done, DONE, __ATOMIC_ACQ_REL) & ASLEEP) != 0) {
            wake(&t->done);
            waited_for = TRUE;
        }
    }
    gboolean wanted = beside_caller(t);
    if (waited_for) {
        long before = *interrupted;
        *interrupted = interruptions();
        wanted = wanted || before != *interrupted;
    }
    if (wanted)
        back_off();
    return wanted;
}

static void *thread_main(void *data)
{
    Team *t = data;
    long interrupted = 0;
    pthread_setname_np(pthread_self(), "hone-team"); /* by others it goes through /proc, which exit() then tidies up */
    for (;;) {
        int id = wait_for_share(t);
        if (id < 0 || work(t, id, &interrupted))
            sleep_for_work(t);
    }
    return NULL;
}

/* The child of a fork() has one thread, and nobody else's regions. */
static void forget_threads(void)
{
    teams = (Team){ 0 };
    g_mutex_init(&more);
}

/* There are n threads besides the caller, or as many as could be started. */
static int grow(Team *t, int n)
{
    static gsize once;
    if (t->threads >= n)
        return t->threads;
    if (g_once_init_enter(&once)) {
        calibrate();
        pthread_atfork(NULL, NULL, forget_threads);
        g_once_init_leave(&once, 1);
    }
    while (t->threads < n) {
        pthread_t thread; /* GThread would allocate something in the thread itself, whenever that begins to run */
        if (pthread_create(&thread, NULL, thread_main, t) != 0)
            break;
        pthread_detach(thread);
        __atomic_store_n(&t->threads, t->threads + 1, __ATOMIC_RELAXED);
    }
    return t->threads;
}

static gboolean take(Team *t)
{
    return !__atomic_load_n(&t->taken, __ATOMIC_RELAXED) && !__atomic_exchange_n(&t->taken, TRUE, __ATOMIC_ACQUIRE);
}

/* A team that nobody uses. */
static Team *take_any(void)
{
    for (Team *t = &teams; t != NULL; t = __atomic_load_n(&t->next, __ATOMIC_ACQUIRE))
        if (take(t))
            return t;
    Team *t = g_aligned_alloc0(1, sizeof(Team), LINE), *last = &teams;
    t->taken = TRUE;
    g_mutex_lock(&more);
    while (last->next != NULL)
        last = last->next;
    __atomic_store_n(&last->next, t, __ATOMIC_RELEASE);
    g_mutex_unlock(&more);
    return t;
}

int hn_team_threads(void)
{
    int n = 0;
    for (Team *t = &teams; t != NULL; t = __atomic_load_n(&t->next, __ATOMIC_ACQUIRE))
        n += __atomic_load_n(&t->threads, __ATOMIC_RELAXED);
    return n;
}

/* --- regions ----------------------------------------------------------------------------------------------------- */

/* Lets the threads know; share 0 is the caller's. Where the caller will not wait for a thread that does not come, a
 * thread that falls asleep at this very moment may miss it, and the store need not have arrived before share 0. */
static void publish(Team *t, HnRegion *r, gboolean together)
{
    r->team = t;
    t->region = r;
    t->fn = r->fn;
    t->data = r->data;
    __atomic_store_n(&t->cpu, sched_getcpu(), __ATOMIC_RELAXED);
    t->expected += DONE * (guint)(r->n - 1);
    guint64 w = (__atomic_load_n(&t->word, __ATOMIC_RELAXED) / GENERATION + 1) * GENERATION;
    w |= (guint64)r->n << 12 | 1;
    if (together)
        __atomic_store_n(&t->word, w, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n(&t->word, w, __ATOMIC_RELEASE);
    if (__atomic_load_n(&t->asleep, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&t->asleep, FALSE, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&t->bell, 1, __ATOMIC_SEQ_CST);
        wake(&t->bell);
    }
}

static gboolean all_done(Team *t)
{
    return __atomic_load_n(&t->done, __ATOMIC_ACQUIRE) == t->expected;
}

/* All other shares are done. */
static void join(Team *t, const HnRegion *r)
{
    for (int i = 0; i < 256; i++)
        if (all_done(t))
            return;
    guint64 now = hn_team_ticks(), until = now + hn_team_ticks_of(PATIENCE_US) + (now - r->began) / 4;
    while (!all_done(t)) {
        PAUSE();
        if (hn_team_ticks() < until)
            continue;
        guint done = __atomic_or_fetch(&t->done, ASLEEP, __ATOMIC_ACQ_REL);
        while (done != (t->expected | ASLEEP)) {
            sleep_on(&t->done, done);
            done = __atomic_load_n(&t->done, __ATOMIC_ACQUIRE);
        }
        __atomic_and_fetch(&t->done, ~ASLEEP, __ATOMIC_RELAXED);
    }
}

static void run_alone(HnRegion *r)
{
    for (int id = 0; id < r->n; id++)
        run_share(r, r->n, id, r->fn, r->data);
    share = r->outer;
}

static void run_claimed(HnRegion *r)
{
    if (hn_team_alone() || !take(&teams)) {
        run_alone(r);
        return;
    }
    static int cpus;
    if (cpus == 0)
        cpus = hn_cpu_affinity();
    Team *t = &teams;
    if (grow(t, MIN(r->n, cpus) - 1) > 0) {
        r->began = hn_team_ticks();
        publish(t, r, FALSE);
        run_share(r, r->n, 0, r->fn, r->data);
        for (int id; !all_done(t) && (id = claim(t)) >= 0; t->expected -= DONE)
            run_share(r, r->n, id, r->fn, r->data);
        join(t, r);
        share = r->outer;
    } else {
        run_alone(r);
    }
    __atomic_store_n(&t->taken, FALSE, __ATOMIC_RELEASE);
}

gboolean hn_team_begin(HnRegion *r)
{
    r->outer = share;
    r->isa = hn_cpu_isa();
    r->n = share.inside ? 1 : CLAMP(r->n, 1, HN_TEAM_MAX);
    if (r->n > 1) {
        Team *t = take_any();
        if (grow(t, r->n - 1) < r->n - 1) {
            __atomic_store_n(&t->taken, FALSE, __ATOMIC_RELEASE);
            return FALSE;
        }
        r->began = hn_team_ticks();
        publish(t, r, TRUE);
    }
    share = (HnShare){ .n = r->n, .inside = r->outer.inside || r->n > 1, .region = r };
    return TRUE;
}

void hn_team_end(HnRegion *r)
{
    Team *t = r->team;
    if (t != NULL) {
        join(t, r);
        __atomic_store_n(&t->taken, FALSE, __ATOMIC_RELEASE);
    }
    share = r->outer;
}

gboolean hn_team_run(HnRegion *r, gboolean together)
{
    if (r->n > 1 && !share.inside && !together && !holds_together) {
        r->outer = share;
        r->isa = hn_cpu_isa();
        r->n = MIN(r->n, HN_TEAM_MAX);
        run_claimed(r);
        return TRUE;
    }
    if (!hn_team_begin(r))
        return FALSE;
    r->fn(r->data);
    hn_team_end(r);
    return TRUE;
}

HnShare *hn_team_share(void)
{
    return &share;
}

gboolean hn_team_together(gboolean on)
{
    gboolean before = holds_together;
    holds_together = on;
    return before;
}

void hn_team_barrier(void)
{
    HnRegion *r = share.region;
    if (r == NULL || r->n <= 1)
        return;
    guint phase = __atomic_load_n(&r->phase, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&r->arrived, 1, __ATOMIC_ACQ_REL) == (guint)r->n) {
        __atomic_store_n(&r->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&r->phase, phase + 1, __ATOMIC_SEQ_CST);
        if (__atomic_exchange_n(&r->phase_asleep, FALSE, __ATOMIC_SEQ_CST))
            wake(&r->phase);
        return;
    }
    guint64 now = hn_team_ticks(), until = now + hn_team_ticks_of(PATIENCE_US) + (now - r->began) / 4;
    while (__atomic_load_n(&r->phase, __ATOMIC_ACQUIRE) == phase) {
        PAUSE();
        if (hn_team_ticks() < until)
            continue;
        __atomic_store_n(&r->phase_asleep, TRUE, __ATOMIC_SEQ_CST);
        sleep_on(&r->phase, phase);
    }
}
