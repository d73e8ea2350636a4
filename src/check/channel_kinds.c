#include "check/channel_kinds.h"

#include <math.h>
#include <stdlib.h>

#define ONE 1e-3    /* a sum of probabilities is 1 but for that */
#define ALIKE 0.99  /* of the largest magnitude: numbers that stand for something else ... */
#define BEYOND 0.01 /* ... and of all others the largest one, at most */
#define FAR 1000    /* the same, at least: pixels of 255 stand for themselves */
#define LEAST 16    /* numbers, beside which another one may stand for something else */

typedef struct {
    double sum; /* of squares; then their root mean */
    double lo, hi;
    int64_t n, channel;
} Channel;

static gboolean is_told(const HnTensor *t)
{
    return t != NULL && hn_dtype_in(t->dtype, HN_T_NUM) && t->n > 0;
}

/* Channels along this axis, the same of all tensors; 0: none. *enough: a channel has so many elements that their size
 * says something. */
static int64_t channels_along(HnTensor *const *t, guint n, int axis, gboolean *enough)
{
    int64_t channels = 0, fewest = INT64_MAX, all = 0; /* elements of a channel in a single tensor, and in all */
    for (guint i = 0; i < n; i++) {
        if (!is_told(t[i]))
            continue;
        if (axis >= t[i]->ndim || (channels > 0 && t[i]->dims[axis] != channels))
            return 0;
        channels = t[i]->dims[axis];
        fewest = MIN(fewest, t[i]->n / channels);
        all += t[i]->n / channels;
    }
    *enough =
        fewest >= HN_CHANNEL_KINDS_ELEMENTS || (fewest >= HN_CHANNEL_KINDS_FEW && all >= 2 * HN_CHANNEL_KINDS_ELEMENTS);
    return channels <= HN_CHANNEL_KINDS_MOST ? channels : 0;
}

static int64_t step_of(const HnTensor *t, int axis)
{
    int64_t step = 1;
    for (int a = axis + 1; a < t->ndim; a++)
        step *= t->dims[a];
    return step;
}

/* The largest finite magnitude up to `limit`, and how many there are from `from` on. */
static double largest(HnTensor *const *t, guint n, double limit, double from, int64_t *count)
{
    double most = 0;
    *count = 0;
    for (guint i = 0; i < n; i++)
        for (int64_t e = 0; is_told(t[i]) && e < t[i]->n; e++) {
            const double a = fabs(hn_number_at(t[i], e));
            if (!isfinite(a) || a > limit)
                continue;
            most = fmax(most, a);
            *count += a >= from;
        }
    return most;
}

static double find_beyond(HnTensor *const *t, guint n)
{
    int64_t count, alike;
    const double most = largest(t, n, INFINITY, 0, &count), rest = largest(t, n, ALIKE * most, 0, &count);
    if (!(rest > 0) || rest > BEYOND * most || most < FAR)
        return INFINITY;
    (void)largest(t, n, INFINITY, ALIKE * most, &alike);
    return alike >= 2 ? sqrt(rest * most) : INFINITY;
}

/* Least and largest of the numbers that are not `but`, and how many there are. */
static int64_t ends_of(HnTensor *const *t, guint n, double beyond, double but, double *lo, double *hi)
{
    int64_t count = 0;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (guint i = 0; i < n; i++)
        for (int64_t e = 0; is_told(t[i]) && e < t[i]->n; e++) {
            const double x = hn_number_at(t[i], e);
            if (!isfinite(x) || fabs(x) >= beyond || x == but)
                continue;
            *lo = x < *lo ? x : *lo;
            *hi = x > *hi ? x : *hi;
            count++;
        }
    return count;
}

/* 0 is a number. */
static double find_none(HnTensor *const *t, guint n, double beyond)
{
    double lo, hi;
    const int64_t all = ends_of(t, n, beyond, NAN, &lo, &hi);
    if (!(lo < hi) || (lo >= 0 && hi <= 1))
        return NAN;
    for (int end = 0; end < 2; end++) {
        const double x = end ? hi : lo;
        double least, most;
        const int64_t others = ends_of(t, n, beyond, x, &least, &most);
        const double apart = end ? hi - most : least - lo;
        if (x != 0 && all - others >= 2 && others >= LEAST && least < most && apart >= most - least)
            return x;
    }
    return NAN;
}

/* Elements [from, from + n) are of channel c. */
static void add_run(Channel *c, const HnTensor *t, int64_t from, int64_t n, const HnChannelKinds *k)
{
    for (int64_t e = from; e < from + n; e++) {
        const double x = hn_number_at(t, e);
        if (!isfinite(x) || fabs(x) >= k->beyond || x == k->none)
            continue;
        c->sum += x * x;
        c->lo = x < c->lo ? x : c->lo;
        c->hi = x > c->hi ? x : c->hi;
        c->n++;
    }
}

static Channel *look(HnTensor *const *t, guint n, int axis, int64_t channels, const HnChannelKinds *kinds)
{
    Channel *c = g_new0(Channel, (gsize)channels + 1);
    for (int64_t k = 0; k < channels; k++)
        c[k] = (Channel){ 0, INFINITY, -INFINITY, 0, k };
    for (guint i = 0; i < n; i++) {
        if (!is_told(t[i]))
            continue;
        const int64_t step = axis >= 0 ? step_of(t[i], axis) : t[i]->n;
        for (int64_t e = 0; e < t[i]->n; e += step)
            add_run(&c[e / step % channels], t[i], e, step, kinds);
    }
    for (int64_t k = 0; k < channels; k++)
        c[k].sum = c[k].n > 0 ? sqrt(c[k].sum / (double)c[k].n) : 0;
    return c;
}

static gint by_size(gconstpointer a, gconstpointer b)
{
    const Channel *x = a, *y = b;
    return x->sum != y->sum ? (x->sum > y->sum) - (x->sum < y->sum)
                            : (x->channel > y->channel) - (x->channel < y->channel);
}

/* The widest gap of channels in order of size; those that are 0 throughout are of no kind of their own. */
static double gap_of(const Channel *c, int64_t n)
{
    double most = 1;
    for (int64_t k = 1; k < n; k++)
        if (c[k - 1].sum > 0)
            most = fmax(most, c[k].sum / c[k - 1].sum);
    return most;
}

static void number(HnChannelKinds *k, const Channel *c, gboolean apart)
{
    k->n = 1;
    k->of = g_new0(int, (gsize)k->channels + 1);
    for (int64_t i = 0; i < k->channels; i++) {
        if (apart && i > 0 && c[i - 1].sum > 0 && c[i].sum / c[i - 1].sum >= HN_CHANNEL_KINDS_GAP)
            k->n++;
        k->of[c[i].channel] = k->n - 1;
    }
    k->scores = g_new(gboolean, (gsize)k->n);
    for (int i = 0; i < k->n; i++)
        k->scores[i] = FALSE;
    for (int i = 0; i < k->n; i++) {
        gboolean within = TRUE;
        double most = 0;
        for (int64_t j = 0; j < k->channels; j++)
            if (k->of[c[j].channel] == i && c[j].n > 0) {
                within = within && c[j].lo >= 0 && c[j].hi <= 1 && !(k->none > 1);
                most = fmax(most, c[j].hi);
            }
        k->scores[i] = within && most > 0;
    }
}

static gboolean is_score(const HnChannelKinds *k, int64_t channel)
{
    return k->scores[k->of[channel]];
}

/* Channels [from, to) of each position add up to 1. */
static gboolean is_distribution(const HnChannelKinds *k, HnTensor *const *t, guint n, int64_t from, int64_t to)
{
    if (to - from < 2)
        return FALSE;
    for (guint i = 0; i < n; i++) {
        if (!is_told(t[i]))
            continue;
        const int64_t step = hn_channel_kinds_step(k, t[i]), block = step * k->channels;
        for (int64_t first = 0; first + block <= t[i]->n; first += block)
            for (int64_t p = 0; p < step; p++) {
                double sum = 0;
                for (int64_t c = from; c < to; c++)
                    sum += hn_tensor_get_f64(t[i], first + c * step + p);
                if (!(fabs(sum - 1) <= ONE))
                    return FALSE;
            }
    }
    return TRUE;
}

/* A distribution of classes, with one score in front of it or behind, that is itself no part of one. */
static void find_gate(HnChannelKinds *k, HnTensor *const *t, guint n)
{
    for (int64_t from = 0, to; from < k->channels && k->gate < 0; from = to + 1) {
        for (to = from; to < k->channels && is_score(k, to); to++)
            ;
        if (to - from < 3)
            continue;
        if (is_distribution(k, t, n, from + 1, to)) {
            k->gate = from;
            k->gated = from + 1;
            k->gated_end = to;
        } else if (is_distribution(k, t, n, from, to - 1)) {
            k->gate = to - 1;
            k->gated = from;
            k->gated_end = to - 1;
        }
    }
}

void hn_channel_kinds_find(HnChannelKinds *k, HnTensor *const *t, guint n)
{
    double widest = HN_CHANNEL_KINDS_GAP;
    int64_t shortest = 0;
    *k = (HnChannelKinds){ .axis = -1, .channels = 1, .gate = -1, .beyond = find_beyond(t, n) };
    k->none = find_none(t, n, k->beyond);
    for (int axis = 1; axis < HN_MAX_RANK; axis++) {
        gboolean enough;
        const int64_t channels = channels_along(t, n, axis, &enough);
        if (channels == 0)
            continue;
        g_autofree Channel *c = look(t, n, axis, channels, k);
        qsort(c, (gsize)channels, sizeof *c, by_size);
        const double gap = gap_of(c, channels);
        const gboolean wider = gap >= widest && enough;
        if (wider || (widest <= HN_CHANNEL_KINDS_GAP && (shortest == 0 || channels < shortest))) {
            k->axis = axis;
            k->channels = shortest = channels;
        }
        widest = fmax(widest, wider ? nextafter(gap, INFINITY) : 0);
    }
    g_autofree Channel *c = look(t, n, k->axis, k->channels, k);
    qsort(c, (gsize)k->channels, sizeof *c, by_size);
    number(k, c, widest > HN_CHANNEL_KINDS_GAP);
    if (k->axis >= 0)
        find_gate(k, t, n);
}

void hn_channel_kinds_clear(HnChannelKinds *k)
{
    g_clear_pointer(&k->of, g_free);
    g_clear_pointer(&k->scores, g_free);
}

int64_t hn_channel_kinds_step(const HnChannelKinds *k, const HnTensor *t)
{
    return k->axis >= 0 && k->axis < t->ndim ? step_of(t, k->axis) : MAX(t->n, 1);
}
