#include "check/output_score.h"

#include <math.h>
#include <string.h>

#include "check/margins.h"

#define DENSE 2        /* how much more the mean of strong scores may change than the best ones */
#define SPREAD 2       /* times the root mean square over samples stand for the largest, where there are many */
#define BEST 10        /* scores that stand for the strong ones where there are none */
#define FLOOR 0.1      /* of their root mean square: numbers that vary less are told no finer */
#define VARIES 5       /* deviations are that at most, ... */
#define MANY_SAMPLES 8 /* ... where so many show it, ... */
#define STILL 3e-6     /* ... and it is more than that of the root mean square: 50 roundings of f32 */
#define WORST 16       /* times the mean square of all errors that of a single sample may be */
#define CLASS_PART 0.1 /* of the loss of classes, and of a label's elements, counts */
#define MOST_LOSS 1e9  /* of r2: what is not there, or no number */
#define STAND_IN 0.005 /* of a number that stands for something else: how far it may be off */
#define EXACT 0.9      /* of those that may stand for something else, as results show */
#define NONE_PART 0.01 /* of all numbers' root mean square is the size of those that are 0 throughout */
#define FEW_VALUES 16  /* elements for each value, at least, where labels are few */
#define TURN_PART 0.25 /* of what margins let expect is sure: of 8 rows it may be a quarter as many */

/* --- one sample after the other ----------------------------------------------------------------------------------- */

/* Of numbers that r2 looks at together, over all samples. */
typedef struct {
    double n, sum, squares, most;
    double about, n_about;  /* squares of what those that are not still differ by from their columns' means */
    double none, none_kept; /* numbers that may stand for something else, which are no part of these; and there, too */
    int64_t samples;
    double noise, worst;     /* sum of squares of errors; the largest mean of a sample */
    double sample, n_sample; /* of the sample that is being added */
    gboolean one_sided;      /* a pair of which only one is finite */
    gboolean names;          /* errors are 1 or 0 */
    gboolean whole;          /* numbers are rounded to integers */
} Group;

typedef struct Value {
    gint64 key;
    int64_t n, wrong;
} Value;

struct HnOutputSums {
    const HnOutputView *view;
    int64_t rows, right;
    double cos, worst_cos, signal, noise;
    double own_signal, own_noise; /* of elements that are not still */
    guint n_cos;
    double peaks, worst; /* largest change of a channel's best score in each sample: sum of squares, and the largest */
    double strong;       /* mean squares of changes of strong scores, of each sample and kind */
    guint n_strong, samples;
    gboolean lost, labelled; /* something of it is not there; its classes are known */
    gboolean there;          /* in some sample */
    int64_t n;               /* elements */
    HnMargins *margins;      /* of classes; NULL: none, or nothing of another model was added */
    GHashTable *values;      /* Value * of each label that the original gives; NULL: too many, or known by labels */
    Value *last;             /* the one before: neighbours are mostly alike */
    Group *group;
    Group *own; /* the same of elements that are not still; NULL: all are */
};

HnOutputSums *hn_output_sums_new(const HnOutputView *view)
{
    HnOutputSums *s = g_new0(HnOutputSums, 1);
    s->view = view;
    s->worst_cos = 1;
    s->values = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    s->group = g_new0(Group, (gsize)view->n_groups + 1);
    s->own = view->still != NULL ? g_new0(Group, (gsize)view->n_groups + 1) : NULL;
    if (view->name >= 0)
        s->group[view->group[view->name]].names = TRUE;
    return s;
}

void hn_output_sums_free(HnOutputSums *s)
{
    if (s == NULL)
        return;
    g_clear_pointer(&s->values, g_hash_table_unref);
    g_free(s->margins);
    g_free(s->group);
    g_free(s->own);
    g_free(s);
}

static void add_margins(HnOutputSums *s, const HnTensor *got, const HnTensor *want, int64_t rows, int64_t n)
{
    g_autofree double *g = g_new(double, (gsize)n + 1), *w = g_new(double, (gsize)n + 1);
    if (s->margins == NULL)
        s->margins = g_new0(HnMargins, 1);
    for (int64_t r = 0; r < rows && s->margins->n <= HN_MOST_MARGINS; r++) {
        for (int64_t i = 0; i < n; i++) {
            g[i] = hn_number_at(got, r * n + i);
            w[i] = hn_number_at(want, r * n + i);
        }
        hn_margins_add(s->margins, g, w, (gsize)n);
    }
}

static void add_classes(HnOutputSums *s, const HnTensor *got, const HnTensor *want, const HnTensor *label)
{
    int64_t n = 1;
    for (int i = want->ndim - 1; i >= 0 && n == 1; i--) /* [N, C, 1, 1] too */
        n = want->dims[i];
    const int64_t rows = n > 0 ? want->n / n : 0;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t right =
            label != NULL && label->n == rows ? hn_tensor_get_i64(label, r) : hn_output_best(want, r, n);
        s->right += got != NULL && got->n == want->n && hn_output_best(got, r, n) == right;
        s->rows++;
    }
    s->labelled = s->labelled || label != NULL;
    if (got != NULL && got->n == want->n)
        add_margins(s, got, want, rows, n);
}

static gboolean same_label(const HnTensor *a, const HnTensor *b, int64_t i)
{
    if (a->dtype != HN_STRING)
        return hn_tensor_get_i64(a, i) == hn_tensor_get_i64(b, i);
    return g_bytes_equal(hn_tensor_get_string(a, i), hn_tensor_get_string(b, i));
}

static void count_value(HnOutputSums *s, const HnTensor *want, int64_t i, gboolean right)
{
    const gint64 key =
        want->dtype == HN_STRING ? (gint64)g_bytes_hash(hn_tensor_get_string(want, i)) : hn_tensor_get_i64(want, i);
    Value *v = s->last != NULL && s->last->key == key ? s->last : g_hash_table_lookup(s->values, &key);
    if (v == NULL) {
        v = g_new0(Value, 1);
        v->key = key;
        g_hash_table_insert(s->values, &v->key, v);
    }
    v->n++;
    v->wrong += !right;
    s->last = v;
    if (g_hash_table_size(s->values) > HN_MOST_LABELS)
        g_clear_pointer(&s->values, g_hash_table_unref);
}

static void add_labels(HnOutputSums *s, const HnTensor *got, const HnTensor *want, const HnTensor *label)
{
    const gboolean known = label != NULL && label->n == want->n && want->dtype != HN_STRING;
    const gboolean comparable = got != NULL && got->n == want->n && got->dtype == want->dtype;
    if (known)
        g_clear_pointer(&s->values, g_hash_table_unref);
    for (int64_t i = 0; i < want->n; i++) {
        const gboolean right = comparable && same_label(got, known ? label : want, i);
        s->right += right;
        if (s->values != NULL)
            count_value(s, want, i, right);
    }
    s->rows += want->n > 0 || got == NULL ? want->n : got->n; /* labels where there were none */
}

/* One kind of numbers of one sample. */
typedef struct {
    double dot, got, want;
    gboolean one_sided;
    GArray *strong; /* Pair */
} Kind;

typedef struct {
    double want, got;
} Pair;

/* A score that was raised counts as much as one that was lowered. */
static double size_of(const Pair *p)
{
    return p->want > p->got || isnan(p->got) ? p->want : p->got; /* as fmax(), which is a call */
}

static gint by_size(gconstpointer a, gconstpointer b)
{
    const Pair *x = a, *y = b;
    if (size_of(x) != size_of(y))
        return size_of(x) < size_of(y) ? 1 : -1;
    return (x->want < y->want) - (x->want > y->want);
}

/* How far a score lies above the border of a yes. */
static double above(double score)
{
    return fmax(score - HN_STRONG_SCORE, 0);
}

/* Mean square of the change of strong scores, or of the best ones; the others leave the array. */
static double change_of(GArray *pairs)
{
    double sum = 0;
    guint n = 0, strong = 0;
    Pair *all = (Pair *)(void *)pairs->data;
    for (guint i = 0; i < pairs->len; i++)
        if (size_of(&all[i]) >= HN_STRONG_SCORE) {
            const Pair p = all[i];
            all[i] = all[strong];
            all[strong++] = p;
        }
    if (strong > 0) /* only they count: mostly few of many */
        g_array_set_size(pairs, strong);
    g_array_sort(pairs, by_size);
    for (; n < pairs->len; n++) {
        const Pair *p = &g_array_index(pairs, Pair, n);
        if (strong == 0 && n >= BEST)
            break;
        const double change = strong ? above(p->got) - above(p->want) : p->got - p->want;
        sum += change * change;
    }
    return n > 0 ? sum / n : 0;
}

/* There is no number here, and there was none; or the same infinity. */
static gboolean both_none(double got, double want)
{
    return (isnan(got) && isnan(want)) || (got == want && !isfinite(want));
}

/* Change of each channel's best score, of those that are strong. */
static double peaks_of(const HnChannelKinds *k, const HnTensor *got, const HnTensor *want)
{
    const int64_t step = hn_channel_kinds_step(k, want);
    g_autofree Pair *peak = g_new(Pair, (gsize)k->channels);
    double most = 0;
    for (int64_t c = 0; c < k->channels; c++)
        peak[c] = (Pair){ -INFINITY, -INFINITY };
    for (int64_t from = 0, c = 0; from < want->n; from += step, c = c + 1 < k->channels ? c + 1 : 0)
        for (int64_t i = from; i < from + step; i++) {
            const double w = hn_channel_kinds_value(k, want, step, c, i),
                         g = hn_channel_kinds_value(k, got, step, c, i);
            if (both_none(g, w) || fabs(w) >= k->beyond)
                continue;
            peak[c].want = w > peak[c].want ? w : peak[c].want;
            peak[c].got = !isfinite(g) ? INFINITY : g > peak[c].got ? g : peak[c].got;
        }
    for (int64_t c = 0; c < k->channels; c++)
        if (k->scores[k->of[c]])
            most = fmax(most, fabs(above(peak[c].got) - above(peak[c].want)));
    return most;
}

static double cosine(const Kind *k)
{
    if (k->one_sided)
        return 0;
    if (k->got == 0 || k->want == 0)
        return k->got == k->want;
    return k->dot / sqrt(k->got * k->want);
}

/* A pair of numbers, those of element i, to its group. */
static void add_to_group(const HnOutputView *v, Group *group, int64_t i, double g, double w)
{
    if (isfinite(w) && fabs(w) >= v->channels.beyond) {
        group->one_sided = group->one_sided || !(fabs(g - w) <= STAND_IN * fabs(w));
        return;
    }
    const gboolean none = w == v->channels.none;
    if (none && g == w) {
        group->none++;
        group->none_kept++;
        group->n_sample++;
        return;
    }
    if (isfinite(w) && isfinite(g))
        group->sample += group->names ? (double)(fabs(g - w) >= 0.5) : (g - w) * (g - w);
    else if (!both_none(g, w))
        group->one_sided = TRUE;
    if (!isfinite(w))
        return;
    group->n_sample++;
    group->none += none;
    if (none)
        return;
    group->n++;
    group->sum += w;
    group->squares += w * w;
    group->most = MAX(group->most, w);
    if (v->middle == NULL || hn_output_is_still(v, i))
        return;
    const double x = w - v->middle[i % v->columns];
    group->about += x * x;
    group->n_about++;
}

/* To its kind and the output's sums; still: it is the same in all samples. */
static void add_to_sums(HnOutputSums *s, Kind *kind, double g, double w, gboolean still)
{
    const HnChannelKinds *k = &s->view->channels;
    double signal = 0, noise = 0;
    if (isfinite(w) && fabs(w) >= k->beyond) {
        const gboolean other = !(fabs(g - w) <= STAND_IN * fabs(w));
        kind->one_sided = kind->one_sided || other;
        noise = other ? INFINITY : 0;
    } else if (isfinite(w) && isfinite(g) && !(w == k->none && g == w)) {
        kind->dot += w * g;
        kind->want += w * w;
        kind->got += g * g;
        signal = w * w;
        noise = (g - w) * (g - w);
    } else if (!(g == w) && !both_none(g, w)) {
        kind->one_sided = kind->one_sided || isfinite(w) != isfinite(g);
        noise = INFINITY;
    }
    s->signal += signal;
    s->noise += noise;
    s->own_signal += still ? 0 : signal;
    s->own_noise += still ? 0 : noise;
}

/* Element i, of group k. */
static void add_pair(HnOutputSums *s, Kind *kind, int k, int64_t i, double g, double w)
{
    const gboolean still = hn_output_is_still(s->view, i);
    if (s->view->turn > 0 && isfinite(g) && isfinite(w))
        g -= s->view->turn * rint((g - w) / s->view->turn);
    add_to_sums(s, kind, g, w, still);
    add_to_group(s->view, &s->group[k], i, g, w);
    if (s->own != NULL && !still)
        add_to_group(s->view, &s->own[k], i, g, w);
}

static void end_sample(Group *group, int n)
{
    for (int i = 0; i < n; i++) {
        Group *g = &group[i];
        g->noise += g->sample;
        g->worst = g->n_sample > 0 ? fmax(g->worst, g->sample / g->n_sample) : g->worst;
        g->samples += g->n_sample > 0;
        g->sample = g->n_sample = 0;
    }
}

static void end_kinds(HnOutputSums *s, Kind *kind)
{
    const HnChannelKinds *k = &s->view->channels;
    for (int i = 0; i < k->n; i++) {
        const double cos = cosine(&kind[i]);
        if (k->n == 1 || !k->scores[i]) { /* scores beside other numbers are left to their own measure */
            s->cos += cos;
            s->n_cos++;
        }
        s->worst_cos = fmin(s->worst_cos, cos);
        if (kind[i].strong == NULL)
            continue;
        s->strong += change_of(kind[i].strong);
        s->n_strong++;
        g_array_unref(kind[i].strong);
    }
}

/* What the numbers of each row differ by from their mean. */
static void add_between(HnOutputSums *s, const HnTensor *got, const HnTensor *want)
{
    const int64_t columns = s->view->channels.channels;
    Group *group = &s->group[s->view->n_groups - 1];
    for (int64_t first = 0; first < want->n; first += columns) {
        double g = 0, w = 0;
        for (int64_t i = first; i < first + columns; i++) {
            g += hn_number_at(got, i) / (double)columns;
            w += hn_number_at(want, i) / (double)columns;
        }
        for (int64_t i = first; i < first + columns && isfinite(g) && isfinite(w); i++) {
            const double x = hn_number_at(want, i) - w, error = hn_number_at(got, i) - g - x;
            group->sample += error * error;
            group->n_sample++;
            group->n++;
            group->sum += x;
            group->squares += x * x;
        }
    }
}

static void add_score(GArray *strong, const HnChannelKinds *k, double got, double want)
{
    const Pair pair = { want == k->none ? 0 : want, got == k->none ? 0 : isfinite(got) ? got : INFINITY };
    if (!both_none(got, want) && !(fabs(want) >= k->beyond))
        g_array_append_val(strong, pair);
}

static void add_numbers(HnOutputSums *s, const HnTensor *got, const HnTensor *want)
{
    const HnChannelKinds *k = &s->view->channels;
    const int64_t step = hn_channel_kinds_step(k, want);
    g_autofree Kind *kind = g_new0(Kind, (gsize)k->n);
    for (int i = 0; i < s->view->n_groups - s->view->between; i++) {
        s->group[i].whole = hn_dtype_in(want->dtype, HN_T_INTS);
        if (s->own != NULL)
            s->own[i].whole = s->group[i].whole;
    }
    for (int i = 0; i < k->n; i++)
        kind[i].strong = k->scores[i] ? g_array_new(FALSE, FALSE, sizeof(Pair)) : NULL;
    for (int64_t from = 0, c = 0; from < want->n; from += step, c = c + 1 < k->channels ? c + 1 : 0) {
        Kind *at = &kind[k->of[c]];
        for (int64_t i = from; i < from + step; i++) {
            add_pair(s, at, s->view->group[c], i, hn_number_at(got, i), hn_number_at(want, i));
            if (at->strong != NULL)
                add_score(at->strong, k, hn_channel_kinds_value(k, got, step, c, i),
                          hn_channel_kinds_value(k, want, step, c, i));
        }
    }
    if (s->view->between)
        add_between(s, got, want);
    end_sample(s->group, s->view->n_groups);
    if (s->own != NULL)
        end_sample(s->own, s->view->n_groups);
    end_kinds(s, kind);
    if (s->n_strong == 0)
        return;
    const double peak = peaks_of(k, got, want);
    s->peaks += peak * peak;
    s->worst = fmax(s->worst, peak);
    s->samples++;
}

void hn_output_sums_add(HnOutputSums *s, const HnTensor *got, const HnTensor *want, const HnTensor *label)
{
    if (want == NULL)
        return;
    s->there = TRUE;
    s->n += want->n;
    if (s->view->kind == HN_OUTPUT_LABELS) {
        add_labels(s, got, want, label);
        return;
    }
    if (want->n == 0 && (got == NULL || got->n == 0))
        return;
    const gboolean there = got != NULL && !hn_dtype_is_refs(got->dtype) && got->n == want->n;
    if (s->view->kind == HN_OUTPUT_CLASSES)
        add_classes(s, there ? got : NULL, want, label);
    if (there) {
        add_numbers(s, got, want);
        return;
    }
    s->n_cos++;
    s->lost = TRUE;
    s->noise = s->own_noise = INFINITY;
    s->worst_cos = 0;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static double scores_of(const HnOutputSums *s)
{
    const HnChannelKinds *k = &s->view->channels;
    if (s->lost)
        return k->scores[0] ? 1 : NAN;
    if (s->n_strong == 0)
        return NAN;
    const double peak = fmin(s->worst, SPREAD * sqrt(s->peaks / s->samples));
    return fmax(peak, sqrt(s->strong / s->n_strong) / DENSE);
}

/* With what may stand for something else where it does not, and without it where it does. */
static Group as_judged(const HnOutputView *v, const Group *group)
{
    Group g = *group;
    const double none = v->channels.none;
    if (g.none > 0 && !(g.n > 0 && g.none_kept >= EXACT * g.none)) {
        g.n += g.none;
        g.sum += g.none * none;
        g.squares += g.none * none * none;
        g.n_about = 0;
    }
    g.about *= v->rows / fmax(v->rows - 1, 1); /* means are those of the same rows */
    return g;
}

/* Square of the size that numbers of the group have. */
static double size_of_group(const Group *g, gboolean scores)
{
    if (g->names)
        return 1 / CLASS_PART;
    const double rest = fmax(g->n - 1, 1), power = g->squares / fmax(g->n, 1), few = FLOOR + (1 - FLOOR) / rest;
    const double all = fmax(g->squares - g->sum * g->sum / fmax(g->n, 1), 0) / rest;
    const double spread = g->n_about > 0 ? fmin(all, g->about / g->n_about) : all;
    const gboolean varies = g->samples >= MANY_SAMPLES && spread > STILL * STILL * power;
    const double floor = varies ? fmin(few * few * power, VARIES * VARIES * spread) : few * few * power;
    const double size = fmax(spread, floor);
    return scores && g->most >= HN_STRONG_SCORE ? fmax(size, HN_STRONG_SCORE * HN_STRONG_SCORE) : size;
}

/* A mean square of errors over that. Of what is rounded, the error e before: a small one moves a part |e| of the
 * integers by 1, which has a mean square of |e|, sqrt(2 / pi) times the root of that of normal errors. */
static double loss_of(const Group *g, double noise, double size)
{
    const double real = g->whole ? noise * fmin(M_PI_2 * noise, 1) : noise;
    return noise > 0 ? fmin(real / size, MOST_LOSS) : 0;
}

/* Of a group: its loss, and that of its worst sample. least: of the size. */
static void add_loss(const Group *g, gboolean scores, double least, gboolean between, double *loss, double *most)
{
    const double own = size_of_group(g, scores), size = (own > 0 ? own : least) / (between ? CLASS_PART : 1);
    const double worst = g->one_sided ? MOST_LOSS : loss_of(g, g->worst, size);
    const double mean = g->one_sided ? MOST_LOSS : loss_of(g, g->noise / fmax(g->n, 1), size);
    *most = fmax(*most, worst);
    *loss = fmax(*loss, g->one_sided ? MOST_LOSS : fmax(mean, worst / WORST));
}

/* Scores beside other numbers, and classes that labels judge, are left to their own measures: NaN where nothing is
 * left. *worst: of a single sample. */
static double r2_of(const HnOutputSums *s, double *worst, double *lost)
{
    const HnOutputView *v = s->view;
    const double part = v->kind == HN_OUTPUT_CLASSES ? CLASS_PART : 1;
    double loss = NAN, most = NAN;
    double power = 0; /* of the group whose numbers are largest */
    *worst = *lost = NAN;
    if (v->kind == HN_OUTPUT_LABELS || s->labelled)
        return NAN;
    for (int i = 0; i < v->n_groups; i++)
        power = fmax(power, s->group[i].squares / fmax(s->group[i].n, 1));
    for (int64_t c = 0; c < v->channels.channels + v->between; c++) {
        const gboolean between = c == v->channels.channels;
        const gboolean scores = !between && v->channels.scores[v->channels.of[c]];
        const int k = between ? v->n_groups - 1 : v->group[c];
        if (v->channels.n > 1 && scores && c != v->name)
            continue;
        Group g = as_judged(v, &s->group[k]);
        g.one_sided = g.one_sided || s->lost;
        add_loss(&g, scores && v->kind == HN_OUTPUT_SCORES, NONE_PART * NONE_PART * power, between, &loss, &most);
        if (s->own == NULL || s->own[k].n == 0 || s->own[k].samples < MANY_SAMPLES)
            continue;
        g = as_judged(v, &s->own[k]);
        add_loss(&g, scores && v->kind == HN_OUTPUT_SCORES, NONE_PART * NONE_PART * power, FALSE, &loss, &most);
    }
    *worst = 1 - most;
    *lost = loss;
    return 1 - part * loss;
}

/* Of the value that lost most of its elements, but for what chance may do: that part. */
static double lost_values(const HnOutputSums *s)
{
    double most = 0;
    GHashTableIter it;
    gpointer at;
    if (s->values == NULL || s->rows < FEW_VALUES * (int64_t)g_hash_table_size(s->values))
        return 0;
    g_hash_table_iter_init(&it, s->values);
    while (g_hash_table_iter_next(&it, NULL, &at)) {
        const Value *v = at;
        const double n = (double)v->n;
        most = fmax(most, ((double)v->wrong - sqrt(n)) / n);
    }
    return most;
}

/* Part of rows that are expected to have another class than the original gives; NaN: rows are enough to count, or are
 * held against labels. */
static double turned_of(const HnOutputSums *s)
{
    return s->margins != NULL && !s->labelled ? hn_margins_turned(s->margins) : NAN;
}

/* NaN: it has no classes. */
static double top1_of(const HnOutputSums *s)
{
    const HnOutputKind kind = s->view->kind;
    if (kind != HN_OUTPUT_LABELS && kind != HN_OUTPUT_CLASSES)
        return NAN;
    if (s->rows == 0)
        return kind == HN_OUTPUT_LABELS && s->there ? 1 : NAN;
    const double turned = turned_of(s), sure = isnan(turned) ? 1 : 1 - TURN_PART * turned;
    return fmin(fmin((double)s->right / (double)s->rows, sure), 1 - CLASS_PART * lost_values(s));
}

void hn_output_sums_score(const HnOutputSums *s, HnOutputScore *score)
{
    double worst, lost;
    const double r2 = r2_of(s, &worst, &lost);
    *score = (HnOutputScore){ .top1 = top1_of(s),
                              .turned = turned_of(s),
                              .cos = s->n_cos > 0 ? s->cos / s->n_cos : NAN,
                              .worst_cos = s->worst_cos,
                              .scores = scores_of(s),
                              .r2 = r2,
                              .worst_r2 = worst,
                              .lost = lost,
                              .signal = s->signal,
                              .noise = s->noise,
                              .own_signal = s->own_signal,
                              .own_noise = s->own_noise,
                              .n = s->n };
}
