/* hone-quantize: how long all of it takes, before it does, and one bar over it. */
#include <math.h>
#include <unistd.h>

#include "cli/progress_bar.h"
#include "hone_quantize.h"

#define LONG_WORK 10.0   /* seconds: of less nobody is told beforehand who did not ask */
#define REPAIR_TRIALS 60 /* what repairs take, in trials: most is what they compute of the samples */
#define FEW_TRIALS 3     /* of a search where the first plan will do */
#define MORE_TRIALS 100  /* where it does not: beyond one for each node */
#define RACE_SECONDS 5.0

/* Of a plan: built, and run on the samples. */
static double trial_seconds(const Quantize *q)
{
    return q->trial_seconds > 0 ? q->trial_seconds : 2 * q->sample_seconds * (double)q->held;
}

/* Of few samples each is left out in turn. */
static gboolean leaves_out(const Quantize *q)
{
    return q->held_first == 0 && q->held > 1 && q->by_ranges;
}

/* Seconds of each phase; `all`: of the longest search. */
static void forecast(const Quantize *q, gboolean all, double *seconds)
{
    const double t = trial_seconds(q), nodes = g_hash_table_size(q->base->forms);
    const double models = leaves_out(q) ? (double)q->held / (double)quantize_workers(q) : 1;
    seconds[QUANTIZE_CALIBRATION] = q->by_ranges ? (HN_CALIB_METHODS + 2) * t : 0;
    seconds[QUANTIZE_REPAIRS] = q->has_data ? REPAIR_TRIALS * t : t;
    seconds[QUANTIZE_FOLDS] = leaves_out(q) ? REPAIR_TRIALS * t * models : 0;
    seconds[QUANTIZE_SEARCH] = (all ? nodes + MORE_TRIALS : FEW_TRIALS) * t * models;
    seconds[QUANTIZE_RACES] = RACE_SECONDS;
}

static double sum_of(const double *seconds, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds[i];
    return sum;
}

/* "40 s", "3 min" */
static char *about(double seconds)
{
    return seconds < 100 ? g_strdup_printf("%.0f s", seconds) : g_strdup_printf("%.0f min", seconds / 60);
}

void quantize_hint(Quantize *q)
{
    double least[QUANTIZE_PHASES], most[QUANTIZE_PHASES];
    if (q->limits.last != 0 || q->p->plan != NULL || q->recipe != NULL)
        return;
    forecast(q, FALSE, least);
    forecast(q, TRUE, most);
    const double long_s = sum_of(most, QUANTIZE_PHASES);
    const gboolean somebody_waits = isatty(STDERR_FILENO) && long_s >= LONG_WORK;
    g_autofree char *a = about(sum_of(least, QUANTIZE_PHASES)), *b = about(long_s);
    hn_context_note(q->ctx, somebody_waits ? 0 : 1,
                    "this takes about %s, and some %s where parts of the model have to stay f32; --time-budget ends it "
                    "earlier",
                    a, b);
}

/* What phases tell becomes a part of all of it, and never less than before. */
static void tell(gpointer data, const char *what, guint64 done, guint64 total)
{
    Quantize *q = data;
    const double part = total > 0 ? fmin((double)done / (double)total, 1) : 0;
    const gint now = (gint)(1000 * (q->phase_from + part * (q->phase_to - q->phase_from)));
    gint before = g_atomic_int_get(&q->told);
    while (now > before && !g_atomic_int_compare_and_exchange(&q->told, before, now))
        before = g_atomic_int_get(&q->told);
    hn_bar_part(q->ctx->bar, what, MAX(now, before) / 1000.0);
}

/* "2/4": of the phases that take any time. */
static void tell_phase(const Quantize *q, QuantizePhase phase, const double *seconds)
{
    guint at = 0, n = 0;
    for (int k = 0; k < QUANTIZE_PHASES; k++) {
        n += seconds[k] > 0;
        at += seconds[k] > 0 && k <= (int)phase;
    }
    hn_bar_phase(q->ctx->bar, MAX(at, 1), n);
}

void quantize_phase(Quantize *q, QuantizePhase phase)
{
    double seconds[QUANTIZE_PHASES];
    forecast(q, q->search_long, seconds);
    const double all = sum_of(seconds, QUANTIZE_PHASES);
    q->phase_from = sum_of(seconds, (int)phase) / all;
    q->phase_to = sum_of(seconds, (int)phase + 1) / all;
    tell_phase(q, phase, seconds);
    if (q->ctx->progress.fn != NULL)
        q->ctx->progress = (HnProgress){ tell, q, q->ctx->progress.cancel };
}
