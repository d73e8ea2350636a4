#include "perf/contest.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK_NS 4e6   /* of runs of one side */
#define ROUND_NS 250e6 /* of runs of all sides, unless opening them takes longer */
#define MAX_BLOCKS 16  /* of a side in a round */
#define LONG_NS 20e6   /* runs from which on a block needs no three of them, and no run to warm caches */
#define WARM_NS 20e6   /* of a new instance's runs that do not count, at least ... */
#define WARM_RUNS 3    /* ... and so many */
#define MIN_ROUNDS 8   /* before a verdict, and of --runs and --time */
#define RUNS_ROUND 100 /* of --runs: runs in a round, where there are more than MIN_ROUNDS rounds of them */
#define MAX_RUN_ROUNDS 64
#define GROWTH 1.25 /* of the number of rounds, between two looks at the intervals */

typedef struct {
    const HnContest *c;
    const HnContestOptions *o;
    const HnProgress *progress;
    HnTimes times[HN_MAX_SIDES];               /* ns */
    double ratio[HN_MAX_SIDES][HN_MAX_ROUNDS]; /* logarithms */
    guint rounds;
    guint64 next;   /* run: that all sides make in the same block */
    double slowest; /* ns of a run of the slowest side, as warming found it */
    double open_ns; /* of the latest round */
} Contest;

/* --- statistics ------------------------------------------------------------------------------------------ */

/* The largest k for which P(W < k) <= 0.025, W the sum of the ranks 1...n that n coins choose. */
static gsize signed_rank(gsize n)
{
    gsize all = n * (n + 1) / 2;
    g_autofree double *p = g_new0(double, all + 1);
    p[0] = 1;
    for (gsize r = 1; r <= n; r++)
        for (gsize w = r * (r + 1) / 2 + 1; w-- > 0;)
            p[w] = 0.5 * (p[w] + (w >= r ? p[w - r] : 0));
    double tail = 0;
    gsize k = 0;
    while (k < all && (tail += p[k]) <= 0.025)
        k++;
    return k;
}

void hn_signed_rank(const double *x, gsize n, double *mid, double *lo, double *hi)
{
    gsize pairs = n * (n + 1) / 2, m = 0;
    g_autofree double *means = g_new(double, pairs + 1);
    for (gsize i = 0; i < n; i++)
        for (gsize k = i; k < n; k++)
            means[m++] = 0.5 * (x[i] + x[k]);
    *mid = hn_median(means, pairs);
    *lo = *hi = NAN;
    gsize rank = n >= HN_MIN_INTERVAL ? signed_rank(n) : 0;
    if (rank == 0)
        return;
    *lo = means[rank - 1];
    *hi = means[pairs - rank];
}

const char *hn_verdict_name(HnVerdict v)
{
    static const char *const names[] = { "no difference", "faster", "slower", "too noisy" };
    return names[v];
}

HnVerdict hn_verdict(double lo, double hi, double margin)
{
    if (!isfinite(lo) || !isfinite(hi))
        return HN_VERDICT_NOISY;
    if (lo >= 1 - margin && hi <= 1 + margin)
        return HN_VERDICT_NONE;
    return lo > 1 ? HN_VERDICT_SLOWER : hi < 1 ? HN_VERDICT_FASTER : HN_VERDICT_NOISY;
}

static HnEffect effect_of(const Contest *c, int side)
{
    HnEffect e = { 1, 1, 1, HN_VERDICT_NONE };
    if (side == 0)
        return e;
    hn_signed_rank(c->ratio[side], c->rounds, &e.effect, &e.lo, &e.hi);
    e.effect = exp(e.effect);
    e.lo = exp(e.lo);
    e.hi = exp(e.hi);
    e.verdict = hn_verdict(e.lo, e.hi, c->o->margin);
    return e;
}

static gboolean clear(const HnContestOptions *o, const HnEffect *e)
{
    if (!isfinite(e->lo))
        return FALSE;
    if (o->precision > 0)
        return MAX(e->hi - e->effect, e->effect - e->lo) <= o->precision * e->effect;
    if (o->gate > 0 && e->lo <= 1 + o->gate && e->hi > 1 + o->gate)
        return FALSE;
    return e->verdict == HN_VERDICT_NONE || e->lo > 1 + o->margin || e->hi < 1 - o->margin;
}

static gboolean all_clear(const Contest *c)
{
    for (int s = 1; s < c->c->sides; s++) {
        HnEffect e = effect_of(c, s);
        if (!clear(c->o, &e))
            return FALSE;
    }
    return TRUE;
}

/* --- a round --------------------------------------------------------------------------------------------- */

static gboolean cancelled(const HnProgress *progress)
{
    return progress && progress->cancel && g_atomic_int_get(progress->cancel);
}

static gboolean run_one(Contest *c, int side, guint64 i, double *ns, GError **error)
{
    guint64 start, end;
    if (!c->c->run(c->c->data, side, i, &start, &end, error))
        return FALSE;
    *ns = (double)(end - start);
    return TRUE;
}

/* Opens a side and warms it; *ns is the fastest run. */
static gboolean open_side(Contest *c, int side, double *ns, GError **error)
{
    double one, sum = 0;
    *ns = INFINITY;
    gint64 then = g_get_monotonic_time();
    if (!c->c->open(c->c->data, side, error))
        return FALSE;
    c->open_ns += (double)(g_get_monotonic_time() - then) * 1e3;
    for (guint64 i = 0; i < WARM_RUNS || sum < WARM_NS; i++) {
        if (!run_one(c, side, i, &one, error))
            return FALSE;
        sum += one;
        *ns = MIN(*ns, one);
        if (cancelled(c->progress))
            return TRUE;
    }
    return TRUE;
}

static gboolean open_all(Contest *c, GError **error)
{
    int n = c->c->sides;
    c->slowest = 1;
    c->open_ns = 0;
    for (int k = 0; k < n; k++) {
        double ns;
        if (!open_side(c, (int)((c->rounds + (guint)k) % (guint)n), &ns, error))
            return FALSE;
        c->slowest = MAX(c->slowest, ns);
    }
    return TRUE;
}

/* `runs` runs of a side; their median goes to *median. */
static gboolean block(Contest *c, int side, guint64 runs, double *buffer, double *median, GError **error)
{
    double ns;
    if (c->slowest < LONG_NS && !run_one(c, side, c->next, &ns, error))
        return FALSE;
    gsize kept = 0;
    HnOutliers *outliers = c->o->outliers ? c->o->outliers[side] : NULL;
    if (outliers)
        hn_outliers_mark(outliers);
    for (guint64 i = 0; i < runs; i++) {
        hn_times_reserve(&c->times[side]);
        if (!run_one(c, side, c->next + i, &ns, error))
            return FALSE;
        hn_times_add(&c->times[side], ns);
        buffer[kept++] = ns;
        if (outliers && ns > outliers->limit_ns)
            hn_outliers_add(outliers, c->times[side].seen - 1, ns);
    }
    *median = hn_median(buffer, kept);
    if (outliers)
        hn_outliers_expect(outliers, *median);
    return TRUE;
}

/* Blocks of a round, and runs of block j: of a given number of runs, or as many as take the wanted time. */
typedef struct {
    guint blocks;
    guint64 runs; /* of the round, 0: `each` runs in a block */
    guint64 each;
} Layout;

static guint64 runs_of_block(const Layout *l, guint j)
{
    return l->runs ? l->runs * (j + 1) / l->blocks - l->runs * j / l->blocks : l->each;
}

static guint runs_rounds(guint64 runs)
{
    guint64 n = CLAMP(runs / RUNS_ROUND, MIN_ROUNDS, MAX_RUN_ROUNDS);
    return (guint)MIN(n, runs);
}

static Layout layout_of(const Contest *c)
{
    const HnContestOptions *o = c->o;
    Layout l = { 0 };
    if (o->until == HN_UNTIL_RUNS) {
        guint64 n = runs_rounds(o->runs);
        l.runs = o->runs * (c->rounds + 1) / n - o->runs * c->rounds / n;
        /* where there is much to run, blocks are no longer than elsewhere */
        double wanted = (double)l.runs * c->slowest / BLOCK_NS;
        l.blocks = (guint)MIN(l.runs, (guint64)CLAMP(wanted, 4, 1024));
        return l;
    }
    double total = MAX(ROUND_NS, MIN(c->open_ns, 8 * ROUND_NS));
    if (o->until == HN_UNTIL_TIME)
        total = MIN(total, o->seconds * 1e9 * c->c->sides / MIN_ROUNDS);
    l.each = (guint64)MAX(BLOCK_NS / c->slowest, c->slowest < LONG_NS ? 3 : 1);
    guint64 period = c->c->period;
    if (period > 1 && (double)period * c->slowest < ROUND_NS / 4)
        l.each = (l.each + period - 1) / period * period;
    double blocks = total / ((double)l.each * c->slowest * c->c->sides);
    l.blocks = (guint)CLAMP(blocks, 2, MAX_BLOCKS) & ~1u;
    return l;
}

static gboolean run_blocks(Contest *c, const Layout *l, GError **error)
{
    int n = c->c->sides;
    guint64 most = 1;
    for (guint j = 0; j < l->blocks; j++)
        most = MAX(most, runs_of_block(l, j));
    g_autofree double *buffer = g_new(double, most);
    g_autofree double *medians = g_new(double, (gsize)l->blocks *(gsize)n);
    g_autofree double *logs = g_new(double, l->blocks);
    for (guint j = 0; j < l->blocks; j++) {
        guint64 runs = runs_of_block(l, j);
        for (int k = 0; k < n; k++) {
            int turn = (j + c->rounds) % 2 ? n - 1 - k : k;
            if (!block(c, turn, runs, buffer, &medians[(gsize)j * (gsize)n + (gsize)turn], error))
                return FALSE;
        }
        c->next += runs;
        if (cancelled(c->progress))
            return TRUE; /* half a round is no number */
    }
    for (int s = 1; s < n; s++) {
        for (guint j = 0; j < l->blocks; j++) {
            const double *m = &medians[(gsize)j * (gsize)n];
            logs[j] = log(MAX(m[s], 1) / MAX(m[0], 1));
        }
        c->ratio[s][c->rounds] = hn_median(logs, l->blocks);
    }
    c->rounds++;
    return TRUE;
}

static gboolean run_round(Contest *c, GError **error)
{
    gboolean ok = open_all(c, error);
    if (ok && !cancelled(c->progress)) {
        Layout l = layout_of(c);
        ok = run_blocks(c, &l, error);
    }
    for (int s = 0; s < c->c->sides; s++)
        c->c->close(c->c->data, s);
    return ok;
}

/* --- all of it ------------------------------------------------------------------------------------------- */

static double passed(const Contest *c)
{
    double sum = 0;
    for (int s = 0; s < c->c->sides; s++)
        sum += c->times[s].sum;
    return sum * 1e-9 / c->c->sides;
}

/* Whether this was the last round; *look is the number of rounds at which to look at the intervals again. */
static gboolean enough(const Contest *c, double *look, HnStop *stop)
{
    const HnContestOptions *o = c->o;
    double time = passed(c);
    switch (o->until) {
    case HN_UNTIL_RUNS:
        *stop = HN_STOP_RUNS;
        return c->rounds >= runs_rounds(o->runs);
    case HN_UNTIL_TIME:
        *stop = HN_STOP_TIME;
        return time >= o->seconds && c->rounds >= HN_MIN_INTERVAL;
    default:
        break;
    }
    *stop = HN_STOP_INTERVAL;
    if (c->rounds >= *look) {
        if (all_clear(c))
            return TRUE;
        *look = c->rounds * GROWTH;
    }
    *stop = HN_STOP_LIMIT;
    return time >= o->seconds && c->rounds >= HN_MIN_INTERVAL;
}

static gboolean play(Contest *c, HnStop *stop, GError **error)
{
    const HnContestOptions *o = c->o;
    double look = MIN_ROUNDS;
    do {
        *stop = HN_STOP_INTERRUPTED;
        if (o->until == HN_UNTIL_RUNS)
            hn_progress_tell(c->progress, "comparing", c->rounds, runs_rounds(o->runs));
        else if (o->until == HN_UNTIL_TIME)
            hn_progress_tell(c->progress, "comparing", (guint64)(MIN(passed(c), o->seconds) * 1e3),
                             (guint64)(o->seconds * 1e3));
        else
            hn_progress_tell(c->progress, "comparing", c->rounds, 0);
        if (cancelled(c->progress))
            return TRUE;
        GError *failure = NULL;
        if (!run_round(c, &failure) && !hn_progress_cut(&failure)) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        if (cancelled(c->progress))
            return TRUE;
    } while (!enough(c, &look, stop) && c->rounds < HN_MAX_ROUNDS);
    return TRUE;
}

gboolean hn_contest(const HnContest *contest, const HnContestOptions *options, const HnProgress *progress,
                    HnContestResult *out, GError **error)
{
    g_assert(contest->sides >= 1 && contest->sides <= HN_MAX_SIDES);
    Contest *c = g_new0(Contest, 1);
    HnStop stop;
    c->c = contest;
    c->o = options;
    c->progress = progress;
    for (int s = 0; s < contest->sides; s++)
        hn_times_init(&c->times[s], HN_TIMES_MAX / 4);
    gboolean ok = play(c, &stop, error);
    if (ok) {
        out->stop = stop;
        out->rounds = c->rounds;
    }
    for (int s = 0; s < contest->sides; s++) {
        if (ok) {
            hn_measured_from(&c->times[s], stop, &out->side[s]);
            out->effect[s] = effect_of(c, s);
        }
        hn_times_clear(&c->times[s]);
    }
    g_free(c);
    return ok;
}
