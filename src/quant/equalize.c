#include "quant/equalize.h"

#include <math.h>
#include <string.h>

#include "base/each.h"
#include "check/factors.h"
#include "quant/units.h"
#include "check/linear_rows.h"

#define LARGEST                                                                                                      \
    ((int64_t)1 << 24)            /* numbers about weights, three times 4 bytes each; larger models stay as they are \
                                   */
#define AT_A_TIME 32              /* values that are looked at in one pass over the samples */
#define MARGIN 1.05               /* a Clip's bound is beyond what was seen by that much */
#define FURTHEST 256.0            /* units are not changed by more */
#define UNSEEN 2.0                /* samples: after so many, one twice as large would be no surprise */
#define ROUNDED 0.4               /* of the weights' noise is left where their integers are chosen together */
#define GRID 4                    /* steps of alpha and beta from 0 to 1 */
#define STEPS ((double)(1 << 26)) /* of the search that changes units one by one, at most */

/* What samples show of a value's channels, n of each. */
typedef struct {
    const HnValue *v;
    int axis;
    int64_t n;
    double *lo, *hi; /* of every other sample from the first one on, then [n] of the others; in the end what may come */
    double *square;  /* mean */
    double count;    /* elements of a channel */
    guint samples;
} Seen;

/* A product that computes with integers, or a sum. */
typedef struct Sink Sink;

struct Sink {
    const Seen *x;
    const int *at;                /* classes of x's channels */
    int64_t groups, outs, inputs; /* rows and channels of one group */
    double taps;
    float *most, *square; /* [groups * outs, inputs]: of the weights of a channel, their sum over taps */
    float *pair;          /* of the same: the largest sum of two neighbours */
    double *signal;       /* [groups * outs]: mean square of the output, as if channels did not correlate */
    double mean;          /* of signal */
    Sink *next;           /* that reads the same set */
};

typedef struct {
    const HnCaptureOptions *o;
    const HnChannels *units;
    GPtrArray *seen;    /* Seen * */
    GHashTable *places; /* HnValue * -> 1 + index in seen */
    GPtrArray *sinks;   /* Sink * */
    gsize counted;      /* bytes of the budget for all that follows from the model's size */
    GError *error;
    int classes;
    gboolean reduced;     /* HnQuantOptions */
    int64_t size;         /* numbers about weights */
    double *unit, *least; /* [classes]; least: as Clips allow */
    double *reach;  /* [classes]: of activations, or weights that make them, relative to the largest of a tensor */
    double *weight; /* [classes]: the same of weights that read them */
    int *set;       /* [classes]: of classes that some product reads together; -1: none, or locked */
    int *next;      /* [classes]: the next class of the same set; -1: none. A set is called after its first one */
    Sink **readers; /* [classes]: the first of a set */
} Equalize;

static void seen_free(gpointer data)
{
    Seen *s = data;
    g_free(s->lo);
    g_free(s->hi);
    g_free(s->square);
    g_free(s);
}

static void sink_free(gpointer data)
{
    Sink *s = data;
    g_free(s->most);
    g_free(s->pair);
    g_free(s->square);
    g_free(s->signal);
    g_free(s);
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

/* FALSE: e->error. */
static gboolean count(Equalize *e, int64_t n, gsize bytes_each)
{
    const gsize bytes = (gsize)n * bytes_each;
    if (e->error != NULL || !hn_budget_charge(e->o->budget, bytes, &e->error))
        return FALSE;
    e->counted += bytes;
    return TRUE;
}

/* NULL: e->error. */
static Seen *seen_of(Equalize *e, const HnValue *v)
{
    int axis;
    int64_t n;
    const guint at = GPOINTER_TO_UINT(g_hash_table_lookup(e->places, v));
    if (at > 0)
        return e->seen->pdata[at - 1];
    if (hn_channels_at(e->units, v, &axis, &n) == NULL)
        n = axis = 0;
    if (!count(e, n, 5 * sizeof(double)))
        return NULL;
    Seen *s = g_new0(Seen, 1);
    *s = (Seen){ .v = v, .axis = axis, .n = n };
    s->lo = g_new0(double, (gsize)s->n * 2 + 1);
    s->hi = g_new0(double, (gsize)s->n * 2 + 1);
    s->square = g_new0(double, (gsize)s->n + 1);
    g_ptr_array_add(e->seen, s);
    g_hash_table_insert(e->places, (gpointer)v, GUINT_TO_POINTER(e->seen->len));
    return s;
}

static void add_sink(Equalize *e, const HnNode *n)
{
    HnLinearRows rows;
    int axis;
    int64_t channels;
    const HnValue *x = hn_node_in(n, 0);
    const int *at = hn_channels_at(e->units, x, &axis, &channels);
    if (at == NULL || !hn_linear_rows_of(n, &rows) || rows.groups * rows.k != channels * rows.taps)
        return;
    e->size += rows.groups * rows.outs * rows.k / rows.taps;
    if (e->size > LARGEST)
        return;
    const Seen *seen = seen_of(e, x);
    const int64_t rest = rows.groups * rows.outs;
    if (seen == NULL || !count(e, rest * (rows.k / rows.taps), 3 * sizeof(float)) || !count(e, rest, sizeof(double)))
        return;
    Sink *s = g_new0(Sink, 1);
    *s = (Sink){ .x = seen,
                 .at = at,
                 .groups = rows.groups,
                 .outs = rows.outs,
                 .inputs = rows.k / rows.taps,
                 .taps = (double)rows.taps };
    const int64_t all = s->groups * s->outs;
    s->most = g_new0(float, (gsize)(all * s->inputs));
    s->pair = g_new0(float, (gsize)(all * s->inputs));
    s->square = g_new0(float, (gsize)(all * s->inputs));
    s->signal = g_new0(double, (gsize)all);
    for (int64_t m = 0; m < all; m++)
        for (int64_t k = 0; k < rows.k; k++) {
            const float *at_w = (const float *)rows.w->data + m * rows.row + k * rows.col, w = *at_w;
            const int64_t i = m * s->inputs + k / rows.taps;
            s->most[i] = fabsf(w) > s->most[i] ? fabsf(w) : s->most[i];
            if (k % rows.taps > 0) {
                const float pair = fabsf(w) + fabsf(at_w[-rows.col]);
                s->pair[i] = pair > s->pair[i] ? pair : s->pair[i];
            }
            s->square[i] += w * w;
        }
    g_ptr_array_add(e->sinks, s);
}

/* x is an operand of a sum, which has a scale too: each channel for itself. */
static void add_operand(Equalize *e, const HnValue *x)
{
    int axis;
    int64_t n;
    const int *at = hn_channels_at(e->units, x, &axis, &n);
    const Seen *seen = at != NULL ? seen_of(e, x) : NULL;
    if (seen == NULL || !count(e, n, 3 * sizeof(float) + sizeof(double)))
        return;
    Sink *s = g_new0(Sink, 1);
    *s = (Sink){ .x = seen, .at = at, .groups = n, .outs = 1, .inputs = 1, .taps = 1 };
    s->most = g_new0(float, (gsize)n);
    s->pair = g_new0(float, (gsize)n);
    s->square = g_new0(float, (gsize)n);
    s->signal = g_new0(double, (gsize)n);
    for (int64_t i = 0; i < n; i++)
        s->square[i] = 1;
    g_ptr_array_add(e->sinks, s);
}

static void add_reader(Equalize *e, const HnNode *n)
{
    guint operands = 0;
    if (n->op == NULL)
        return;
    if (n->op->quant.kind == HN_Q_WEIGHTED) /* f32 ones too: units do not hang on what the rest of a plan says */
        add_sink(e, n);
    if (n->op->quant.kind != HN_Q_ELEMENTWISE || n->op->quant.bytes == HN_QB_MOVES)
        return;
    for (guint i = 0; i < n->in->len; i++)
        operands += hn_node_in(n, (int)i) != NULL && hn_node_in(n, (int)i)->weight == NULL;
    for (guint i = 0; i < n->in->len && operands > 1; i++)
        if (hn_node_in(n, (int)i) != NULL)
            add_operand(e, hn_node_in(n, (int)i));
}

static gboolean look(gpointer data, G_GNUC_UNUSED int64_t sample, guint i, const HnTensor *x, GError **error)
{
    Seen *s = ((GPtrArray *)data)->pdata[i];
    (void)error;
    if (x->dtype != HN_F32 || s->axis >= x->ndim || x->dims[s->axis] != s->n)
        return TRUE;
    int64_t inner = 1;
    for (int k = s->axis + 1; k < x->ndim; k++)
        inner *= x->dims[k];
    const float *e = x->data;
    const double count = (double)(x->n / s->n), before = s->count;
    const int64_t half = s->samples++ % 2 * s->n;
    for (int64_t c = 0; c < s->n; c++)
        s->square[c] *= before / (before + count);
    for (int64_t o = 0; o < x->n / inner; o++, e += inner) {
        const int64_t c = o % s->n;
        float lo = 0, hi = 0;
        double square = 0;
        for (int64_t k = 0; k < inner; k++) {
            lo = e[k] < lo ? e[k] : lo; /* as fminf() and fmaxf(), which are calls */
            hi = e[k] > hi ? e[k] : hi;
            square += (double)e[k] * (double)e[k];
        }
        s->lo[half + c] = fmin(s->lo[half + c], (double)lo);
        s->hi[half + c] = fmax(s->hi[half + c], (double)hi);
        s->square[c] += square / (before + count);
    }
    s->count += count;
    return TRUE;
}

/* Where halves of the samples differ, others will reach further still; and what few of them show no trace of may come
 * all the same. */
static void expect(gpointer seen, gpointer data)
{
    Seen *s = seen;
    double lo = 0, hi = 0;
    (void)data;
    for (int64_t c = 0; c < s->n; c++) {
        const double *l = s->lo + c, *h = s->hi + c;
        const gboolean halves = s->samples > 1;
        s->lo[c] = fmin(l[0], l[s->n]) - (halves ? fabs(l[0] - l[s->n]) : -l[0] / 2);
        s->hi[c] = fmax(h[0], h[s->n]) + (halves ? fabs(h[0] - h[s->n]) : h[0] / 2);
        lo = fmin(lo, s->lo[c]);
        hi = fmax(hi, s->hi[c]);
    }
    for (int64_t c = 0; c < s->n; c++) {
        s->lo[c] = fmin(s->lo[c], lo * UNSEEN / (s->samples + UNSEEN));
        s->hi[c] = fmax(s->hi[c], hi * UNSEEN / (s->samples + UNSEEN));
    }
}

static gboolean look_all(const Equalize *e, HnModel *m, GError **error)
{
    for (guint from = 0; from < e->seen->len; from += AT_A_TIME) {
        g_autoptr(GPtrArray) names = g_ptr_array_new(), some = g_ptr_array_new();
        for (guint i = from; i < MIN(from + AT_A_TIME, e->seen->len); i++) {
            g_ptr_array_add(some, e->seen->pdata[i]);
            g_ptr_array_add(names, ((const Seen *)e->seen->pdata[i])->v->name);
        }
        hn_progress_tell(e->o->progress, "looking at channels", from, e->seen->len);
        g_autoptr(HnCapture) capture = hn_capture_new(m, names, e->o, error);
        if (capture == NULL || !hn_capture_all(capture, look, some, error))
            return FALSE;
        g_ptr_array_foreach(some, expect, NULL);
    }
    return TRUE;
}

/* --- noise -------------------------------------------------------------------------------------------------------- */

/* Mean over rows of noise over signal, when activations and each row of weights are rounded to 8 bits: that of a number
 * rounded to steps of d is d^2 / 12. */
static double noise_of(const Equalize *e, const Sink *s)
{
    double lo = 0, hi = 0, sum = 0;
    const int64_t all = s->groups * s->outs, channels = s->groups * s->inputs;
    g_autofree double *square = g_new(double, (gsize)channels); /* of activations, then of weights' units */
    g_autofree double *unit = g_new(double, (gsize)channels);
    for (int64_t c = 0; c < channels; c++) {
        unit[c] = e->unit[s->at[c]];
        lo = fmin(lo, s->x->lo[c] / unit[c]);
        hi = fmax(hi, s->x->hi[c] / unit[c]);
        square[c] = s->x->square[c] / (unit[c] * unit[c]) * s->taps;
    }
    const double step = (hi - lo) / 255;
    double activations = 0; /* of a group */
    for (int64_t m = 0; m < all; m++) {
        const int64_t first = m / s->outs * s->inputs;
        double most = 0, pair = 0, last = 0, weights = 0;
        if (m % s->outs == 0) {
            activations = 0;
            for (int64_t i = 0; i < s->inputs; i++)
                activations += square[first + i];
        }
        for (int64_t i = 0; i < s->inputs; i++) {
            const double u = unit[first + i], w = (double)s->most[m * s->inputs + i] * u;
            most = MAX(most, w);
            if (e->reduced) {
                pair = MAX(pair, MAX((double)s->pair[m * s->inputs + i] * u, w + last));
                last = w;
            }
            weights += (double)s->square[m * s->inputs + i] * u * u;
        }
        const double fine =
            fmax(most / 127, e->reduced ? fmin(pair / 127.9, most / 63) : 0); /* as quant/pack_weights.h */
        sum += (step * step * weights + ROUNDED * fine * fine * activations) / (s->signal[m] + s->mean);
    }
    return sum / (double)all;
}

/* Of the products that read classes of one set. */
static double noise_of_set(const Equalize *e, const GPtrArray *sinks)
{
    double sum = 0;
    for (guint i = 0; i < sinks->len; i++)
        sum += log(fmax(noise_of(e, sinks->pdata[i]), 1e-30));
    return sum;
}

static void set_signals(const Equalize *e)
{
    for (guint i = 0; i < e->sinks->len; i++) {
        Sink *s = e->sinks->pdata[i];
        for (int64_t m = 0; m < s->groups * s->outs; m++) {
            for (int64_t k = 0; k < s->inputs; k++)
                s->signal[m] += (double)s->square[m * s->inputs + k] * s->x->square[m / s->outs * s->inputs + k];
            s->mean += s->signal[m] / (double)(s->groups * s->outs);
        }
        s->mean = fmax(s->mean, 1e-30);
    }
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static void clips(Equalize *e)
{
    const GArray *all = hn_channels_clips(e->units);
    for (guint i = 0; i < all->len; i++) {
        const HnClipped *c = &g_array_index(all, HnClipped, i);
        const Seen *s = seen_of(e, c->v);
        int axis;
        int64_t n;
        const int *at = hn_channels_at(e->units, c->v, &axis, &n);
        for (int64_t k = 0; at != NULL && k < n; k++)
            e->least[at[k]] = fmax(e->least[at[k]], s->hi[k] * MARGIN / c->most);
    }
}

/* Classes that reach a bound stay as they are. */
static gboolean is_free(const Equalize *e, int k)
{
    return hn_channels_locked(e->units, k) == NULL && e->least[k] < 1;
}

static void reaches_seen(Equalize *e)
{
    for (guint i = 0; i < e->sinks->len; i++) {
        const Sink *s = e->sinks->pdata[i];
        double most = 0;
        for (int64_t c = 0; c < s->x->n; c++)
            most = fmax(most, fmax(s->x->hi[c], -s->x->lo[c]));
        for (int64_t c = 0; c < s->x->n && most > 0; c++)
            e->reach[s->at[c]] = fmax(e->reach[s->at[c]], fmax(s->x->hi[c], -s->x->lo[c]) / most);
    }
}

static void reaches_of_weights(Equalize *e, const HnModel *m)
{
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        const HnNode *n = m->graph->nodes->pdata[i];
        HnLinearRows rows;
        int axis;
        int64_t channels;
        const int *at =
            hn_linear_rows_of(n, &rows) ? hn_channels_at(e->units, hn_node_out(n, 0), &axis, &channels) : NULL;
        if (at == NULL || channels != rows.groups * rows.outs)
            continue;
        g_autofree double *most = g_new0(double, (gsize)channels);
        double largest = 0;
        for (int64_t r = 0; r < channels; r++) {
            for (int64_t k = 0; k < rows.k; k++)
                most[r] = fmax(most[r], (double)fabsf(((const float *)rows.w->data)[r * rows.row + k * rows.col]));
            largest = fmax(largest, most[r]);
        }
        for (int64_t r = 0; r < channels && largest > 0; r++)
            e->reach[at[r]] = fmax(e->reach[at[r]], most[r] / largest);
    }
}

static void weights_that_read(Equalize *e)
{
    for (guint i = 0; i < e->sinks->len; i++) {
        const Sink *s = e->sinks->pdata[i];
        for (int64_t m = 0; m < s->groups * s->outs; m++) {
            const float *row = s->most + m * s->inputs;
            const int *at = s->at + m / s->outs * s->inputs;
            double most = 0;
            for (int64_t k = 0; k < s->inputs; k++)
                most = fmax(most, (double)row[k]);
            for (int64_t k = 0; k < s->inputs && most > 0; k++)
                e->weight[at[k]] = fmax(e->weight[at[k]], (double)row[k] / most);
        }
    }
}

static int top_of(int *set, int k)
{
    while (set[k] != k)
        k = set[k] = set[set[k]]; /* the next one has half the way */
    return k;
}

/* Of the set that s reads, in order: what it reads that is free is all of one set. */
static void add_to_set(Equalize *e, Sink *s)
{
    int64_t c = 0;
    while (c < s->x->n && e->set[s->at[c]] < 0)
        c++;
    if (c == s->x->n)
        return;
    Sink **first = &e->readers[e->set[s->at[c]]];
    s->next = *first;
    *first = s;
}

/* Classes that products read together. */
static void find_sets(Equalize *e)
{
    g_autofree int *set = g_new(int, (gsize)e->classes + 1);
    for (int k = 0; k < e->classes; k++)
        set[k] = k;
    for (guint i = 0; i < e->sinks->len; i++) {
        const Sink *s = e->sinks->pdata[i];
        int first = -1;
        for (int64_t c = 0; c < s->x->n; c++) {
            if (!is_free(e, s->at[c]))
                continue;
            const int a = top_of(set, s->at[c]), b = first >= 0 ? top_of(set, first) : a;
            set[MAX(a, b)] = MIN(a, b);
            first = s->at[c];
            e->set[s->at[c]] = 0; /* counts */
        }
    }
    for (int k = 0; k < e->classes; k++)
        e->set[k] = e->set[k] == 0 ? top_of(set, k) : -1;
    int *last = set; /* of each set so far */
    for (int k = 0; k < e->classes; k++) {
        e->next[k] = -1;
        if (e->set[k] >= 0 && e->set[k] != k)
            e->next[last[e->set[k]]] = k;
        if (e->set[k] >= 0)
            last[e->set[k]] = k;
    }
    for (guint i = e->sinks->len; i-- > 0;)
        add_to_set(e, e->sinks->pdata[i]);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

static void set_units(const Equalize *e, int set, double alpha, double beta)
{
    for (int k = set; k >= 0; k = e->next[k]) {
        const double reach = e->reach[k], weight = e->weight[k];
        const double u = reach > 0 && weight > 0 ? pow(reach, alpha) / pow(weight, beta) : 1;
        e->unit[k] = fmin(fmax(fmax(u, 1 / FURTHEST), e->least[k]), FURTHEST);
    }
}

/* Units that are changed one by one, while that lessens the noise. */
static void refine(const Equalize *e, const GPtrArray *sinks, int set, double *noise)
{
    double work = 0, classes = 0;
    for (guint i = 0; i < sinks->len; i++) {
        const Sink *s = sinks->pdata[i];
        work += (double)(s->groups * s->outs * s->inputs);
    }
    for (int k = set; k >= 0; k = e->next[k])
        classes++;
    for (double factor = 2; factor > 1.1 && work * classes * 8 < STEPS; factor = sqrt(factor))
        for (int k = set; k >= 0; k = e->next[k])
            for (int up = 0; up < 2; up++) {
                const double old = e->unit[k];
                e->unit[k] = fmin(fmax(up ? old * factor : old / factor, fmax(1 / FURTHEST, e->least[k])), FURTHEST);
                const double now = noise_of_set(e, sinks);
                if (now < *noise)
                    *noise = now;
                else
                    e->unit[k] = old;
            }
}

/* Of one set, which has nothing to do with others. */
typedef struct {
    int set;
    gboolean less;
    double noise; /* logarithm: of all that read it */
} Chosen;

static void choose(const Equalize *e, gboolean from_samples, Chosen *chosen)
{
    const int set = chosen->set;
    g_autoptr(GPtrArray) sinks = g_ptr_array_new();
    double alpha = 0.5, beta = 0.5;
    for (Sink *s = e->readers[set]; s != NULL; s = s->next)
        g_ptr_array_add(sinks, s);
    const double before = noise_of_set(e, sinks);
    double best = from_samples ? before : INFINITY;
    for (int a = 0; a <= GRID && from_samples; a++)
        for (int b = 0; b <= GRID; b++) {
            set_units(e, set, (double)a / GRID, (double)b / GRID);
            const double noise = noise_of_set(e, sinks);
            if (noise < best) {
                best = noise;
                alpha = (double)a / GRID;
                beta = (double)b / GRID;
            }
        }
    if (from_samples && best >= before)
        alpha = beta = 0;
    set_units(e, set, alpha, beta);
    best = noise_of_set(e, sinks);
    if (from_samples)
        refine(e, sinks, set, &best);
    chosen->less = best < before || !from_samples;
    chosen->noise = best - before;
}

typedef struct {
    const Equalize *e;
    gboolean from_samples;
    GArray *sets; /* Chosen */
} Choice;

static void choose_one(gpointer data, gint64 i)
{
    const Choice *all = data;
    if (!hn_progress_stop(all->e->o->progress, NULL)) /* it is asked again, by who can tell */
        choose(all->e, all->from_samples, &g_array_index(all->sets, Chosen, i));
}

/* Several sets at a time. */
static gboolean choose_all(const Equalize *e, gboolean from_samples, HnEqualizeLog *log, GError **error)
{
    g_autoptr(GArray) sets = g_array_new(FALSE, TRUE, sizeof(Chosen));
    for (int k = 0; k < e->classes; k++) {
        const Chosen chosen = { k, FALSE, 0 };
        log->channels += hn_channels_locked(e->units, k) != NULL || e->set[k] >= 0;
        log->free += e->set[k] >= 0;
        if (e->set[k] == k)
            g_array_append_val(sets, chosen);
    }
    Choice all = { e, from_samples, sets };
    hn_each(sets->len, e->o->threads, choose_one, &all);
    for (guint i = 0; i < sets->len; i++) {
        log->sets += g_array_index(sets, Chosen, i).less;
        log->noise += g_array_index(sets, Chosen, i).noise;
    }
    return !hn_progress_stop(e->o->progress, error);
}

/* Which unit each result is in, for those who compare it with the original's (check/factors.h). */
static void note_factors(const Equalize *e, HnModel *m)
{
    g_autoptr(HnFactors) all = hn_factors_read(m);
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        const HnNode *node = m->graph->nodes->pdata[i];
        for (guint o = 0; o < node->out->len; o++) {
            const HnValue *v = hn_node_out(node, (int)o);
            int axis;
            int64_t n;
            const int *at = v != NULL ? hn_channels_at(e->units, v, &axis, &n) : NULL;
            if (at == NULL)
                continue;
            g_autofree double *factors = g_new(double, (gsize)n + 1);
            for (int64_t k = 0; k < n; k++)
                factors[k] =
                    hn_channels_locked(e->units, at[k]) != NULL ? 1 : e->unit[hn_channels_class(e->units, at[k])];
            hn_factors_add(all, v->name, axis, factors, n);
        }
    }
    hn_factors_write(all, m);
}

static gboolean equalize(Equalize *e, HnModel *m, gboolean from_samples, HnEqualizeLog *log, GError **error)
{
    for (guint i = 0; i < m->graph->nodes->len; i++)
        add_reader(e, m->graph->nodes->pdata[i]);
    for (guint i = 0; i < hn_channels_clips(e->units)->len; i++)
        seen_of(e, g_array_index(hn_channels_clips(e->units), HnClipped, i).v);
    if (e->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&e->error));
        return FALSE;
    }
    if (e->size > LARGEST)
        return TRUE;
    if (!look_all(e, m, error))
        return FALSE;
    set_signals(e);
    clips(e);
    find_sets(e);
    weights_that_read(e);
    if (from_samples)
        reaches_seen(e);
    else
        reaches_of_weights(e, m);
    if (!choose_all(e, from_samples, log, error))
        return FALSE;
    log->noise = e->sinks->len > 0 ? exp(log->noise / e->sinks->len) : 1;
    note_factors(e, m);
    return hn_units_scale(e->units, m, e->unit, e->o->budget, error);
}

gboolean hn_quant_equalize(const HnQuantPlan *p, HnModel *m, gboolean from_samples, const HnCaptureOptions *o,
                           HnEqualizeLog *log, GError **error)
{
    *log = (HnEqualizeLog){ 0 };
    g_autoptr(HnChannels) units = hn_channels_new(m, HN_BOND_UNIT, o->budget, error);
    if (units == NULL)
        return FALSE;
    Equalize e = { .o = o, .units = units, .classes = hn_channels_count(units) };
    const gsize n = (gsize)e.classes + 1;
    if (!count(&e, e.classes, 4 * sizeof *e.unit + 3 * sizeof *e.set + sizeof *e.readers)) { /* find_sets() has one */
        g_propagate_error(error, e.error);
        return FALSE;
    }
    e.reduced = p->o.reduced;
    e.seen = g_ptr_array_new_with_free_func(seen_free);
    e.places = g_hash_table_new(NULL, NULL);
    e.sinks = g_ptr_array_new_with_free_func(sink_free);
    e.unit = g_new(double, n);
    e.least = g_new0(double, n);
    e.reach = g_new0(double, n);
    e.weight = g_new0(double, n);
    e.set = g_new(int, n);
    e.next = g_new(int, n);
    e.readers = g_new0(Sink *, n);
    for (gsize i = 0; i < n; i++) {
        e.unit[i] = 1;
        e.set[i] = -1;
    }
    const gboolean ok = equalize(&e, m, from_samples, log, error);
    hn_budget_uncharge(o->budget, e.counted);
    g_clear_error(&e.error);
    g_ptr_array_unref(e.seen);
    g_hash_table_unref(e.places);
    g_ptr_array_unref(e.sinks);
    g_free(e.unit);
    g_free(e.least);
    g_free(e.reach);
    g_free(e.weight);
    g_free(e.set);
    g_free(e.next);
    g_free(e.readers);
    return ok;
}
