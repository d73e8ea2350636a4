#include "base/parallel.h"

#include "base/team.h"

/* A thread that has done the first pieces of its run in less than that does the rest at once, and takes nothing of
 * others': it would cost more than it can save. */
#define SHORT_US 3

#define FIRST(left) ((guint32)((left) >> 32))
#define END(left) ((guint32)(left))
#define RUN(first, end) ((guint64)(first) << 32 | (guint64)(end))

void hn_deal(HnDeal *d, guint32 pieces, int threads)
{
    d->runs = MIN(threads, HN_DEAL_RUNS);
    for (int i = 0; i < d->runs; i++)
        d->run[i].left =
            RUN((guint64)pieces * (guint64)i / (guint64)d->runs, (guint64)pieces * (guint64)(i + 1) / (guint64)d->runs);
}

/* What is taken at once of so many pieces: more at first, for less is begun then, one in the end. */
static guint32 some_of(guint32 left, gboolean all)
{
    return all ? left : (left + 2) / 3;
}

static gboolean exchange(guint64 *run, guint64 *left, guint64 by)
{
    return __atomic_compare_exchange_n(run, left, by, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static gboolean take_first(guint64 *run, gboolean all, int64_t *from, int64_t *to)
{
    guint64 left = __atomic_load_n(run, __ATOMIC_RELAXED);
    while (FIRST(left) < END(left)) {
        const guint32 next = FIRST(left) + some_of(END(left) - FIRST(left), all);
        *from = FIRST(left);
        *to = next;
        if (exchange(run, &left, RUN(next, END(left))))
            return TRUE;
    }
    return FALSE;
}

/* From the run where most is left. */
static gboolean steal_last(HnDeal *d, int64_t *from, int64_t *to)
{
    for (;;) {
        guint64 *fullest = NULL, most = 0;
        guint32 n = 0;
        for (int i = 0; i < d->runs; i++) {
            const guint64 left = __atomic_load_n(&d->run[i].left, __ATOMIC_RELAXED);
            if (FIRST(left) < END(left) && END(left) - FIRST(left) > n) {
                fullest = &d->run[i].left;
                most = left;
                n = END(left) - FIRST(left);
            }
        }
        if (fullest == NULL)
            return FALSE;
        *from = END(most) - some_of(n, FALSE);
        *to = END(most);
        if (exchange(fullest, &most, RUN(FIRST(most), *from)))
            return TRUE;
    }
}

gboolean hn_deal_next(HnDeal *d, int thread, gboolean hurry, int64_t *from, int64_t *to)
{
    const gboolean own = thread < d->runs && take_first(&d->run[thread].left, hurry, from, to);
    return own || (!hurry && steal_last(d, from, to));
}

typedef struct {
    HnDeal deal;
    int64_t n, pieces;
    guint64 short_ticks;
    HnRangeFn fn;
    gpointer data;
} Loop;

static void run_share(gpointer data)
{
    Loop *l = data;
    const int thread = hn_team_share()->id;
    const guint64 began = hn_team_ticks();
    gboolean hurry = FALSE;
    for (int64_t from, to; hn_deal_next(&l->deal, thread, hurry, &from, &to);) {
        l->fn(l->data, thread, l->n * from / l->pieces, l->n * to / l->pieces);
        hurry = hn_team_ticks() - began < l->short_ticks;
    }
}

/* As many iterations as threads: one each. */
static void run_one(gpointer data)
{
    const Loop *l = data;
    const int thread = hn_team_share()->id;
    if (thread < l->n)
        l->fn(l->data, thread, thread, thread + 1);
}

void hn_parallel_for(int64_t n, int threads, HnRangeFn fn, gpointer data)
{
    threads = MIN(threads, HN_TEAM_MAX);
    if (threads <= 1 || n <= 1 || hn_team_share()->inside) {
        if (n > 0)
            fn(data, 0, 0, n);
        return;
    }
    Loop l;
    l.n = n;
    l.fn = fn;
    l.data = data;
    if (n > threads) {
        l.pieces = MIN(n, (int64_t)HN_PARALLEL_PIECES * threads);
        l.short_ticks = hn_team_ticks_of(SHORT_US);
        hn_deal(&l.deal, (guint32)l.pieces, threads);
    }
    HnRegion region = { .fn = n > threads ? run_share : run_one, .data = &l, .n = threads };
    if (!hn_team_run(&region, FALSE))
        fn(data, 0, 0, n); /* threads were to be together, and could not be started */
}
