#include "perf/contest.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/progress_time.h"

#define BLOCK_NS 4e6   /* of runs of one side */
#define ROUND_NS 250e6 /* of runs of all sides, unless opening them takes longer */
#define MAX_BLOCKS 16  /* of a side in a round */
#define LONG_NS 20e6   /* runs from which on a block needs no three of them, and no run to warm caches */
#define WARM_NS 20e6   /* of a new instance's runs that do not count, at least ... */
#define WARM_RUNS 3    /* ... and so many */
#define MIN_ROUNDS 8   /* before a verdict, but for decisions, and of --runs and --time */
#define RUNS_ROUND 100 /* of --runs: runs in a round, where there are more than MIN_ROUNDS rounds of them */
#define MAX_RUN_ROUNDS 64
#define GROWTH 1.25 /* of the number of rounds, between two looks at the intervals */
#define DECIDE_PART \
    0.5 /* of ROUND_NS: where a decision is all that is asked, more rounds are worth more than long ones */
#define FIRST_PART 0.25 /* ... and the first MIN_ROUNDS decide alone where the sides are far apart */
#define SLOW_NS 200e6   /* of runs of a new instance, behind which it is warm whatever their number */
#define MANY_ROUNDS 24  /* with fewer an interval that decides is wider than what they say of themselves */
#define OPPOSITE 0.02   /* of the time: what is beyond a limit by less is not lost, ... */
#define FAR 0.07        /* ... and what is by more is, however noisy */

typedef struct {
    const HnContest *c;
    const HnContestOptions *o;
    const HnProgress *progress;
    HnTimes times[HN_MAX_SIDES];               /* ns */
    double ratio[HN_MAX_SIDES][HN_MAX_ROUNDS]; /* logarithms */
    guint rounds;
    guint64 next;               /* run: that all sides make in the same block */
    double slowest;             /* ns of a run of the slowest side, as warming found it */
    double open_ns;             /* of the latest round */
    double base[HN_MAX_ROUNDS]; /* ns of a run of the first side: medians of its blocks */
    guint64 round_ns;           /* the longest round so far, opening included */
} Contest;

/* --- statistics ------------------------------------------------------------------------------------------ */

/* The largest k for which P(W < k) <= most, W the sum of the ranks 1...n that n coins choose. */
static gsize signed_rank(gsize n, double most)
{
    gsize all = n * (n + 1) / 2;
    g_autofree double *p = g_new0(double, all + 1);
    p[0] = 1;
    for (gsize r = 1; r <= n; r++)
        for (gsize w = r * (r + 1) / 2 + 1; w-- > 0;)
            p[w] = 0.5 * (p[w] + (w >= r ? p[w - r] : 0));
    double tail = 0;
    gsize k = 0;
    while (k < all && (tail += p[k]) <= most)
        k++;
    return k;
}

void hn_signed_rank(const double *x, gsize n, double level, double *mid, double *lo, double *hi)
{
    gsize pairs = n * (n + 1) / 2, m = 0;
    g_autofree double *means = g_new(double, pairs + 1);
    for (gsize i = 0; i < n; i++)
        for (gsize k = i; k < n; k++)
            means[m++] = 0.5 * (x[i] + x[k]);
    *mid = hn_median(means, pairs);
    *lo = *hi = NAN;
    gsize rank = n >= HN_MIN_INTERVAL ? signed_rank(n, (1 - level) / 2) : 0;
    if (rank == 0)
        return;
    *lo = means[rank - 1];
    *hi = means[pairs - rank];
}

/* Values that are below x[i], and half of those that are the same. */
static double rank_of(const double *x, gsize n, gsize i)
{
    double rank = 0;
    for (gsize k = 0; k < n; k++)
        rank += x[k] < x[i] ? 1 : x[k] == x[i] ? 0.5 : 0;
    return rank;
}

double hn_serial_widening(const double *x, gsize n)
{
    double steps = 0, all = 0, before = 0;
    for (gsize i = 0; i < n; i++) {
        const double rank = rank_of(x, n, i);
        steps += i > 0 ? (rank - before) * (rank - before) : 0;
        all += (rank - 0.5 * (double)n) * (rank - 0.5 * (double)n);
        before = rank;
    }
    if (all == 0)
        return 1;
    /* beyond what chance makes of independent values it is of few values too low by (1 + 4 r) / n (M. G. Kendall, "Note
     * on bias in the estimation of autocorrelation", 1954) */
    const double seen = 1 - 0.5 * steps / all, missing = seen > 1 / sqrt((double)n) ? (1 + 4 * seen) / (double)n : 0;
    const double r = CLAMP(seen + missing, 0, 0.95);
    return sqrt((1 + r) / (1 - r));
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

HnDecision hn_decide(const HnEffect *e, double limit)
{
    if (e->sure_hi <= limit)
        return HN_WON;
    const double beyond = e->sure_lo / limit, spread = e->sure_hi / e->sure_lo;
    return beyond > 1 + FAR || (beyond > 1 + OPPOSITE && beyond > spread * spread) ? HN_LOST : HN_UNDECIDED;
}

/* Of HN_SURE. Where the values are too few for ranks to say so much: Student's, which is wide where one of
 * them is far off. */
static void sure_interval(const double *x, gsize n, double *lo, double *hi)
{
    static const double student[] = { 6.869, 5.959, 5.408, 5.041,
                                      4.781 }; /* 0.9995, of HN_MIN_INTERVAL values and on */
    double mid, sum = 0, squares = 0;
    hn_signed_rank(x, n, HN_SURE, &mid, lo, hi);
    if (isfinite(*lo) || n < HN_MIN_INTERVAL)
        return;
    for (gsize i = 0; i < n; i++)
        sum += x[i];
    for (gsize i = 0; i < n; i++)
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    const double half = student[n - HN_MIN_INTERVAL] * sqrt(squares / (double)((n - 1) * n));
    *lo = sum / (double)n - half;
    *hi = sum / (double)n + half;
}

static HnEffect effect_of(const Contest *c, int side)
{
    HnEffect e = { 1, 1, 1, HN_VERDICT_NONE, 1, 1 };
    const double *x = c->ratio[side];
    /* looks at few rounds need more to go by, as in P. C. O'Brien and T. R. Fleming, "A multiple testing procedure for
     * clinical trials", 1979: a wave that is longer than they are looks like a difference */
    const double wider = hn_serial_widening(x, c->rounds) * sqrt(MAX((double)MANY_ROUNDS / c->rounds, 1));
    double mid;
    if (side == 0)
        return e;
    hn_signed_rank(x, c->rounds, 0.95, &mid, &e.lo, &e.hi);
    sure_interval(x, c->rounds, &e.sure_lo, &e.sure_hi);
    e.effect = exp(mid);
    e.lo = exp(e.lo);
    e.hi = exp(e.hi);
    e.sure_lo = exp(mid + wider * (e.sure_lo - mid));
    e.sure_hi = exp(mid + wider * (e.sure_hi - mid));
    e.verdict = hn_verdict(e.lo, e.hi, c->o->margin);
    return e;
}

typedef struct {
    double mean, squares; /* of logarithms: squares of what they are off it */
} Logs;

static Logs logs_of(const double *x, gsize n)
{
    Logs l = { 0 };
    for (gsize i = 0; i < n; i++)
        l.mean += log(x[i]) / (double)n;
    for (gsize i = 0; i < n; i++)
        l.squares += (log(x[i]) - l.mean) * (log(x[i]) - l.mean);
    return l;
}

HnEffect hn_effect_apart(const double *a, gsize n_a, const double *b, gsize n_b, double margin)
{
    const Logs of_a = logs_of(a, n_a), of_b = logs_of(b, n_b);
    const double mid = of_b.mean - of_a.mean, few = sqrt(MAX((double)MANY_ROUNDS / (double)n_b, 1));
    HnEffect e = { exp(mid), NAN, NAN, HN_VERDICT_NOISY, NAN, NAN };
    if (n_a < 1 || n_b < HN_MIN_INTERVAL || n_a + n_b < HN_MIN_INTERVAL + 2)
        return e;
    const gsize freedom = n_a + n_b - 2;
    const double serial_a = hn_serial_widening(a, n_a), serial_b = hn_serial_widening(b, n_b);
    const double se = MAX(serial_a, serial_b) *
                      sqrt((of_a.squares + of_b.squares) / (double)freedom * (1.0 / (double)n_a + 1.0 / (double)n_b));
    const double usual = hn_student(HN_Z_95, freedom) * se, sure = few * hn_student(HN_Z_999, freedom) * se;
    e.lo = exp(mid - usual);
    e.hi = exp(mid + usual);
    e.sure_lo = exp(mid - sure);
    e.sure_hi = exp(mid + sure);
    e.verdict = hn_verdict(e.lo, e.hi, margin);
    return e;
}

static gboolean clear(const HnContestOptions *o, const HnEffect *e)
{
    if (!isfinite(e->lo))
        return FALSE;
    if (o->precision > 0)
        return MAX(e->hi - e->effect, e->effect - e->lo) <= o->precision * e->effect;
    if (o->useful > 0 && e->lo > o->useful)
        return TRUE;
    const gboolean decided = o->limit == 0 || hn_decide(e, o->limit) != HN_UNDECIDED;
    if (o->decide || !decided)
        return decided;
    return e->verdict == HN_VERDICT_NONE || e->lo > 1 + o->margin || e->hi < 1 - o->margin;
}

static gboolean all_clear(const Contest *c)
{
    if (c->o->known != NULL) {
        double ms[HN_MAX_ROUNDS];
        for (guint i = 0; i < c->rounds; i++)
            ms[i] = c->base[i] * 1e-6;
        return c->o->known(ms, c->rounds, c->o->known_data);
    }
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

/* Rounds that decide alone where sides are far apart: they are short. */
static gboolean is_first(const Contest *c)
{
    return c->o->decide && c->rounds < MIN_ROUNDS;
}

/* Opens a side and warms it; *ns is the fastest run. */
static gboolean open_side(Contest *c, int side, double *ns, GError **error)
{
    const double warm = is_first(c) ? FIRST_PART * WARM_NS : WARM_NS;
    double one, sum = 0;
    *ns = INFINITY;
    gint64 then = g_get_monotonic_time();
    if (!c->c->open(c->c->data, side, error))
        return FALSE;
    c->open_ns += (double)(g_get_monotonic_time() - then) * 1e3;
    for (guint64 i = 0; sum < warm || (i < WARM_RUNS && sum < SLOW_NS); i++) {
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
    const double part = is_first(c) ? FIRST_PART : o->decide ? DECIDE_PART : 1, least = part * ROUND_NS;
    double total = MAX(least, MIN(c->open_ns, 8 * least));
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
    for (guint j = 0; j < l->blocks; j++)
        logs[j] = medians[(gsize)j * (gsize)n];
    c->base[c->rounds] = hn_median(logs, l->blocks);
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
    const guint64 start = hn_now_ns();
    gboolean ok = open_all(c, error);
    if (ok && !cancelled(c->progress)) {
        Layout l = layout_of(c);
        ok = run_blocks(c, &l, error);
    }
    for (int s = 0; s < c->c->sides; s++)
        c->c->close(c->c->data, s);
    c->round_ns = MAX(c->round_ns, hn_now_ns() - start);
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
    *stop = HN_STOP_LIMIT;
    if (o->end != 0 && hn_now_ns() + c->round_ns > o->end) /* the next one would be cut */
        return TRUE;
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
        *look = o->known != NULL ? c->rounds + 1 : c->rounds * GROWTH;
    }
    *stop = HN_STOP_LIMIT;
    return time >= o->seconds && c->rounds >= HN_MIN_INTERVAL;
}

static gboolean play(Contest *c, HnStop *stop, GError **error)
{
    const HnContestOptions *o = c->o;
    double look = c->o->decide ? HN_MIN_INTERVAL : MIN_ROUNDS;
    do {
        *stop = HN_STOP_INTERRUPTED;
        if (o->until == HN_UNTIL_RUNS)
            hn_progress_tell(c->progress, "comparing", c->rounds, runs_rounds(o->runs));
        else if (o->rounds > 0)
            hn_progress_tell(c->progress, "comparing", c->rounds, o->rounds);
        else if (o->seconds > 0) /* at most, until an interval will do */
            hn_progress_tell_time(c->progress, "comparing", passed(c), o->seconds);
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
    for (int s = 0; s < contest->sides; s++) {
        hn_times_init(&c->times[s], HN_TIMES_MAX / 4);
        c->times[s].raw = options->raw;
    }
    gboolean ok = play(c, &stop, error);
    if (ok) {
        out->stop = stop;
        out->rounds = c->rounds;
        for (guint i = 0; i < c->rounds; i++)
            out->round_ms[i] = c->base[i] * 1e-6;
        out->ms = hn_median(c->base, c->rounds) * 1e-6;
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
