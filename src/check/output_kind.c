#include "check/output_kind.h"

#include <math.h>
#include <string.h>

#define LEAST_CLASSES 8
#define LEAST_CURVE 32  /* columns of what may be a curve */
#define NEAR 0.8        /* from one number of a curve to the next: correlation */
#define ONE 1e-3        /* a sum of probabilities, or a length, is 1 but for that */
#define LEAST_LENGTH 16 /* columns of rows that are told by a length other than 1 */
#define SAME 1e-5       /* squares of lengths that are the same differ by this part of them */
#define OWN_PART 0.05   /* of the variance of all numbers: within columns that have numbers of their own, at most */
#define OWN_ROWS 8      /* samples that show it; of fewer, and where the largest is not always the same column, ... */
#define OWN_LEAST 3
#define OWN_CLOSE 0.02 /* ... it is this part at most */
#define SIZE_ROWS 16   /* rows that show how large the numbers of a column are */
#define ROUND 0.98     /* of a turn: so much at least is between the least and the largest of some angles, ... */
#define LEAST_ANGLES 64
#define STILL_SAMPLES 3 /* that show which elements are still */
#define MOST_NAMED 64   /* channels beside that of names, at most */
#define LEAST_NAMES 8   /* numbers in it */

const char *hn_output_kind_name(HnOutputKind kind)
{
    static const char *const names[] = { "numbers", "classes", "labels", "scores", "embedding", "state", "mixed" };
    return names[kind];
}

static gboolean is_float(const HnTensor *t)
{
    return hn_dtype_in(t->dtype, HN_T_FLOATS);
}

/* [N, C] or [N, C, 1, 1]: a waveform or a mask has other axes beside. Else 0. */
static int64_t columns_of(const HnTensor *t)
{
    for (int i = 2; i < t->ndim; i++)
        if (t->dims[i] != 1)
            return 0;
    return t->ndim >= 2 && t->dims[0] > 0 ? t->dims[1] : 0;
}

/* The same, or [N, ..., C]: where each of several has a row of its own. */
static int64_t row_of(const HnTensor *t)
{
    return t->ndim > 2 && columns_of(t) < 2 ? t->dims[t->ndim - 1] : columns_of(t);
}

/* Elements of one of N, of which each has a meaning of its own. */
static int64_t places_of(const HnTensor *t)
{
    return t->ndim > 2 && t->dims[0] > 0 ? t->n / t->dims[0] : row_of(t);
}

/* What `of` says of all n tensors, some of which may be absent; 0 where they differ. */
static int64_t common(HnTensor *const *t, guint n, int64_t (*of)(const HnTensor *t))
{
    int64_t columns = -1;
    for (guint i = 0; i < n; i++)
        if (t[i] != NULL)
            columns = columns < 0 || columns == of(t[i]) ? of(t[i]) : 0;
    return MAX(columns, 0);
}

static int64_t same_columns(HnTensor *const *t, guint n)
{
    return common(t, n, columns_of);
}

/* A number, and none that stands for something else, as where a mask is. */
static gboolean says(double x, double beyond)
{
    return isfinite(x) && fabs(x) < beyond;
}

/* All rows of c elements add up to 1. */
static gboolean rows_add_up(HnTensor *const *t, guint n, int64_t c)
{
    gboolean any = FALSE;
    for (guint i = 0; i < n; i++)
        for (int64_t e = 0; t[i] != NULL && e < t[i]->n; e += c, any = TRUE) {
            double sum = 0;
            for (int64_t k = 0; k < c; k++) {
                const double x = hn_tensor_get_f64(t[i], e + k);
                sum += x < 0 ? NAN : x;
            }
            if (!(fabs(sum - 1) <= ONE))
                return FALSE;
        }
    return any;
}

/* Square of the length of c numbers; NaN: some stand for something else. */
static double length_of(const HnTensor *t, int64_t first, int64_t c, double beyond)
{
    double sum = 0;
    for (int64_t k = 0; k < c; k++) {
        const double x = hn_tensor_get_f64(t, first + k);
        sum += says(x, beyond) ? x * x : NAN;
    }
    return sum;
}

/* All rows of c elements have the length 1, or, where rows and elements are enough, the very same one. */
static gboolean rows_have_length(HnTensor *const *t, guint n, int64_t c, double beyond)
{
    double lo = INFINITY, hi = 0;
    int64_t rows = 0;
    for (guint i = 0; i < n; i++)
        for (int64_t e = 0; t[i] != NULL && e < t[i]->n; e += c, rows++) {
            const double square = length_of(t[i], e, c, beyond);
            if (isnan(square))
                return FALSE;
            lo = fmin(lo, square);
            hi = fmax(hi, square);
        }
    const gboolean one = fabs(lo - 1) <= ONE && fabs(hi - 1) <= ONE;
    return rows > 0 && (one || (rows >= OWN_LEAST && c >= LEAST_LENGTH && lo > 0 && hi - lo <= SAME * hi));
}

int64_t hn_output_best(const HnTensor *t, int64_t row, int64_t n)
{
    int64_t best = 0;
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_tensor_get_f64(t, row * n + i);
        if (x > most) {
            most = x;
            best = i;
        }
    }
    return best;
}

/* Correlation of numbers with those before them along an axis; *same: part of them that are equal. */
static double nearness(HnTensor *const *t, guint n, int axis, double beyond, double *same)
{
    double at = 0, next = 0, mean = 0, count = 0, pairs = 0, equal = 0;
    for (guint i = 0; i < n; i++)
        for (int64_t k = 0; t[i] != NULL && k < t[i]->n; k++) {
            const double x = hn_tensor_get_f64(t[i], k);
            mean += says(x, beyond) ? x : 0;
            count += says(x, beyond);
        }
    mean /= fmax(count, 1);
    for (guint i = 0; i < n; i++) {
        int64_t step = 1;
        for (int a = axis + 1; t[i] != NULL && a < t[i]->ndim; a++)
            step *= t[i]->dims[a];
        for (int64_t k = 0; t[i] != NULL && k < t[i]->n; k++) {
            const double number = hn_tensor_get_f64(t[i], k), x = number - mean;
            if (!says(number, beyond))
                continue;
            at += x * x;
            if (k / step % t[i]->dims[axis] == 0 || !says(hn_tensor_get_f64(t[i], k - step), beyond))
                continue;
            const double before = hn_tensor_get_f64(t[i], k - step) - mean;
            next += x * before;
            equal += x == before;
            pairs++;
        }
    }
    *same = pairs > 0 ? equal / pairs : 1;
    return at > 0 ? next / at : 1;
}

static gboolean is_of_shape(const HnTensor *t, HnTensor *const *in, int n_in)
{
    for (int i = 0; i < n_in; i++)
        if (in[i] != NULL && in[i]->dtype == t->dtype && in[i]->ndim == t->ndim &&
            memcmp(in[i]->dims, t->dims, (gsize)t->ndim * sizeof *t->dims) == 0)
            return TRUE;
    return FALSE;
}

/* Each number of [N, C] is near the one before, as in sound and curves. */
static gboolean is_curve(HnTensor *const *t, guint n, double beyond)
{
    double same;
    return nearness(t, n, 1, beyond, &same) >= NEAR;
}

/* All numbers are one of two. */
static gboolean are_two_values(HnTensor *const *t, guint n)
{
    double a = NAN, b = NAN;
    for (guint i = 0; i < n; i++)
        for (int64_t k = 0; t[i] != NULL && k < t[i]->n; k++) {
            const double x = hn_number_at(t[i], k);
            if (isnan(a))
                a = x;
            else if (x != a && isnan(b))
                b = x;
            else if (x != a && x != b)
                return FALSE;
        }
    return TRUE;
}

/* Integers that are quantities: of more than two values, and where they come of real numbers, or where along the last
 * long axis each is near the one before, as in pictures and sound; but seldom the same, as labels of neighbours are. */
static gboolean are_quantities(HnTensor *const *t, guint n, const HnTensor *some, gboolean real)
{
    int axis = some->ndim - 1;
    double same = 0;
    if (!hn_dtype_in(some->dtype, HN_T_INTS) || are_two_values(t, n))
        return FALSE;
    while (axis >= 0 && some->dims[axis] < LEAST_CURVE)
        axis--;
    for (guint i = 0; i < n; i++)
        if (t[i] != NULL && t[i]->ndim != some->ndim)
            return FALSE;
    const gboolean near = axis >= 0 && nearness(t, n, axis, INFINITY, &same) >= NEAR;
    return (near || real) && same < 0.5;
}

/* Columns, C in each row of all tensors, are far apart beside what each does from row to row: the closer, the less it
 * tells that the largest number is in the same one. */
static gboolean has_own_columns(HnTensor *const *t, guint n, int64_t c, double beyond)
{
    g_autofree double *sum = g_new0(double, (gsize)c), *squares = g_new0(double, (gsize)c),
                      *count = g_new0(double, (gsize)c);
    double all = 0, all_squares = 0, all_count = 0, within = 0;
    int64_t rows = 0, best = -1;
    gboolean same = TRUE;
    for (guint i = 0; i < n; i++)
        for (int64_t r = 0; t[i] != NULL && r < t[i]->n / c; r++, rows++) {
            const int64_t now = hn_output_best(t[i], r, c);
            same = same && (best < 0 || now == best);
            best = now;
            for (int64_t k = 0; k < c; k++) {
                const double x = hn_tensor_get_f64(t[i], r * c + k);
                if (!says(x, beyond))
                    continue;
                sum[k] += x;
                squares[k] += x * x;
                count[k]++;
            }
        }
    if (rows < OWN_LEAST)
        return FALSE;
    for (int64_t k = 0; k < c; k++) {
        within += squares[k] - sum[k] * sum[k] / fmax(count[k], 1);
        all += sum[k];
        all_squares += squares[k];
        all_count += count[k];
    }
    const double part = same && rows >= OWN_ROWS ? OWN_PART : OWN_CLOSE;
    return within * (double)rows / (double)(rows - 1) <= part * (all_squares - all * all / fmax(all_count, 1));
}

typedef struct {
    double size;
    int64_t at;
} Column;

static gint by_size(gconstpointer a, gconstpointer b)
{
    const Column *x = a, *y = b;
    return x->size != y->size ? (x->size > y->size) - (x->size < y->size) : (x->at > y->at) - (x->at < y->at);
}

/* The group of each of c columns: one for each size, by gaps as between kinds of channels. How many there are; 1 where
 * rows are too few to tell. */
static int groups_by_size(HnTensor *const *t, guint n, int64_t c, double beyond, int *group)
{
    g_autofree Column *column = g_new0(Column, (gsize)c);
    int64_t rows = 0;
    int groups = 1;
    for (int64_t k = 0; k < c; k++)
        column[k].at = k;
    for (guint i = 0; i < n; i++)
        for (int64_t e = 0; t[i] != NULL && e < t[i]->n; e++) {
            const double x = hn_number_at(t[i], e);
            rows += e % c == 0;
            column[e % c].size += says(x, beyond) ? x * x : 0;
        }
    qsort(column, (gsize)c, sizeof *column, by_size);
    for (int64_t k = 0; k < c; k++) {
        const double before = k > 0 ? column[k - 1].size : 0, gap = before > 0 ? sqrt(column[k].size / before) : 1;
        groups += rows >= SIZE_ROWS && gap >= HN_CHANNEL_KINDS_GAP;
        group[column[k].at] = groups - 1;
    }
    return groups;
}

/* One that is not empty, or any. */
static const HnTensor *some_of(HnTensor *const *t, guint n)
{
    const HnTensor *some = NULL;
    for (guint i = 0; i < n; i++)
        if (t[i] != NULL && (some == NULL || some->n == 0))
            some = t[i];
    return some;
}

static HnOutputKind kind_of(const HnOutputView *v, HnTensor *const *t, const HnOutputsSeen *seen, int k)
{
    const guint n = seen->n;
    const gboolean first = k == 0;
    const HnTensor *some = some_of(t, n);
    if (some == NULL)
        return HN_OUTPUT_NUMBERS;
    if (!is_float(some)) {
        const gboolean real = seen->real != NULL && seen->real[k] && !(first && seen->labelled);
        return are_quantities(t, n, some, real) ? HN_OUTPUT_NUMBERS : HN_OUTPUT_LABELS;
    }
    const int64_t columns = same_columns(t, n);
    if (columns >= 2 && rows_add_up(t, n, columns))
        return HN_OUTPUT_CLASSES;
    if (v->channels.n > 1)
        return HN_OUTPUT_MIXED;
    if (v->channels.scores[0])
        return HN_OUTPUT_SCORES;
    const int64_t row = common(t, n, row_of);
    if (row >= 2 && rows_have_length(t, n, row, v->channels.beyond))
        return HN_OUTPUT_EMBEDDING;
    if (v->beside && is_of_shape(some, seen->in, seen->n_in))
        return HN_OUTPUT_STATE;
    const gboolean curve = columns >= LEAST_CURVE && is_curve(t, n, v->channels.beyond);
    if (!first || columns < LEAST_CLASSES || curve)
        return HN_OUTPUT_NUMBERS;
    if (seen->made_up)
        return HN_OUTPUT_CLASSES;
    g_autofree int *group = g_new(int, (gsize)columns);
    const gboolean measures = has_own_columns(t, n, columns, v->channels.beyond) ||
                              groups_by_size(t, n, columns, v->channels.beyond, group) > 1;
    return measures ? HN_OUTPUT_NUMBERS : HN_OUTPUT_CLASSES;
}

double hn_output_turn(HnTensor *const *t, guint n)
{
    double lo = INFINITY, hi = -INFINITY;
    int64_t count = 0;
    for (guint i = 0; i < n; i++)
        for (int64_t k = 0; t[i] != NULL && is_float(t[i]) && k < t[i]->n; k++, count++) {
            const double x = hn_number_at(t[i], k);
            if (!(fabs(x) <= 2 * M_PI * (1 + ONE)))
                return 0;
            lo = fmin(lo, x);
            hi = fmax(hi, x);
        }
    const gboolean around = lo >= -M_PI * (1 + ONE) && hi <= M_PI * (1 + ONE) && fmin(-lo, hi) >= ROUND * M_PI;
    const gboolean ahead = lo >= 0 && lo <= (1 - ROUND) * 2 * M_PI && hi >= ROUND * 2 * M_PI;
    return count >= LEAST_ANGLES && (around || ahead) ? 2 * M_PI : 0;
}

/* The one channel of several that holds whole numbers, of more than one value; -1: none, or more. */
static int64_t name_of(const HnOutputView *v, HnTensor *const *t, guint n)
{
    const int64_t channels = v->channels.channels;
    int64_t name = -1;
    for (int64_t c = 0; c < channels && channels >= 3 && channels <= MOST_NAMED; c++) {
        double lo = INFINITY, hi = -INFINITY;
        int64_t count = 0;
        gboolean whole = TRUE;
        for (guint i = 0; i < n && whole; i++) {
            const int64_t step = t[i] != NULL ? hn_channel_kinds_step(&v->channels, t[i]) : 1;
            for (int64_t k = c * step; t[i] != NULL && k < t[i]->n && whole;
                 k += (k + 1) % step ? 1 : (channels - 1) * step + 1) {
                const double x = hn_number_at(t[i], k);
                whole = is_float(t[i]) && x == rint(x) && fabs(x) <= HN_MOST_LABELS;
                lo = fmin(lo, x);
                hi = fmax(hi, x);
                count++;
            }
        }
        if (!whole || !(lo < hi))
            continue;
        if (name >= 0)
            return -1;
        name = count >= LEAST_NAMES ? c : -1;
    }
    return name;
}

static guint8 *still_of(HnTensor *const *t, guint n)
{
    gboolean any = FALSE;
    for (guint i = 0; i < n; i++)
        if (t[i] == NULL || t[i]->n != t[0]->n || !hn_dtype_in(t[i]->dtype, HN_T_NUM))
            return NULL;
    if (n < STILL_SAMPLES)
        return NULL;
    g_autofree guint8 *still = g_new0(guint8, (gsize)t[0]->n / 8 + 1);
    for (int64_t e = 0; e < t[0]->n; e++) {
        const double x = hn_number_at(t[0], e);
        guint i = 1;
        while (i < n && hn_number_at(t[i], e) == x)
            i++;
        if (i < n)
            continue;
        still[e / 8] |= (guint8)(1U << e % 8);
        any = TRUE;
    }
    return any ? g_steal_pointer(&still) : NULL;
}

/* Of so few columns, and where columns have numbers of their own, each one is a measure of its own. */
static gboolean are_apart(const HnOutputView *v, HnTensor *const *t, const HnOutputsSeen *seen, int64_t columns)
{
    return columns < LEAST_CLASSES ||
           (columns < LEAST_CURVE && !seen->made_up && has_own_columns(t, seen->n, columns, v->channels.beyond));
}

static void set_groups(HnOutputView *v, HnTensor *const *t, const HnOutputsSeen *seen)
{
    const int64_t columns = same_columns(t, seen->n);
    const gboolean table =
        v->kind == HN_OUTPUT_NUMBERS && v->channels.n == 1 && v->channels.axis == 1 && columns == v->channels.channels;
    const gboolean apart = table && are_apart(v, t, seen, columns);
    v->n_groups = apart ? (int)columns : v->channels.n;
    v->group = g_new(int, (gsize)v->channels.channels + 1);
    for (int64_t c = 0; c < v->channels.channels; c++)
        v->group[c] = apart ? (int)c : v->channels.of[c];
    if (table && !apart && !seen->made_up)
        v->n_groups = groups_by_size(t, seen->n, columns, v->channels.beyond, v->group);
    const gboolean numbers = v->kind == HN_OUTPUT_NUMBERS || v->kind == HN_OUTPUT_MIXED;
    v->turn = numbers ? hn_output_turn(t, seen->n) : 0;
    v->name = numbers ? name_of(v, t, seen->n) : -1;
    if (v->name >= 0)
        v->group[v->name] = v->n_groups++;
    v->between = table && columns >= 2 && columns < LEAST_CLASSES;
    v->n_groups += v->between;
}

/* Mean of each of c columns over all rows; NULL: they are too few. */
static double *middle_of(HnTensor *const *t, guint n, int64_t c, double *rows)
{
    g_autofree double *mean = g_new0(double, (gsize)c + 1);
    *rows = 0;
    for (guint i = 0; i < n; i++)
        *rows += t[i] != NULL ? (double)(t[i]->n / c) : 0;
    for (guint i = 0; i < n; i++)
        for (int64_t e = 0; t[i] != NULL && e < t[i]->n; e++)
            mean[e % c] += hn_number_at(t[i], e) / *rows;
    return *rows >= OWN_LEAST ? g_steal_pointer(&mean) : NULL;
}

/* The largest of each row is where it is in the other output, which holds probabilities. */
static gboolean has_classes_of(HnTensor *const *t, HnTensor *const *other, guint n)
{
    gboolean any = FALSE;
    for (guint i = 0; i < n; i++) {
        const int64_t c = t[i] != NULL ? columns_of(t[i]) : 0;
        if (c < 2 || other[i] == NULL || columns_of(other[i]) != c || other[i]->n != t[i]->n)
            return FALSE;
        for (int64_t r = 0; r < t[i]->n / c; r++)
            if (hn_output_best(t[i], r, c) != hn_output_best(other[i], r, c))
                return FALSE;
        any = TRUE;
    }
    return any;
}

/* Numbers that other outputs may show to be of classes. */
static gboolean is_open(HnOutputKind kind)
{
    return kind == HN_OUTPUT_NUMBERS || kind == HN_OUTPUT_STATE;
}

static HnTensor **of_output(const HnOutputsSeen *seen, int k)
{
    HnTensor **t = g_new0(HnTensor *, (gsize)seen->n + 1);
    for (guint i = 0; i < seen->n; i++)
        t[i] = seen->out[i][k];
    return t;
}

void hn_output_views_find(HnOutputView *views, int n_out, const HnOutputsSeen *seen)
{
    for (int k = 0; k < n_out; k++) {
        g_autofree HnTensor **t = of_output(seen, k);
        HnOutputView *v = &views[k];
        *v = (HnOutputView){ .beside = n_out > 1 };
        hn_channel_kinds_find(&v->channels, t, seen->n);
        v->kind = kind_of(v, t, seen, k);
        if (seen->labelled && k == 0 && v->kind != HN_OUTPUT_LABELS)
            v->kind = HN_OUTPUT_CLASSES;
        set_groups(v, t, seen);
        v->still = still_of(t, seen->n);
        v->columns = common(t, seen->n, places_of);
        if (v->columns == 0)
            v->columns = common(t, seen->n, row_of);
        if (v->kind == HN_OUTPUT_EMBEDDING && !seen->made_up)
            v->middle = middle_of(t, seen->n, v->columns, &v->rows);
    }
    for (int k = 0; k < n_out; k++) {
        g_autofree HnTensor **t = of_output(seen, k);
        for (int j = 0; j < n_out && is_open(views[k].kind); j++) {
            g_autofree HnTensor **other = of_output(seen, j);
            if (j != k && views[j].kind == HN_OUTPUT_CLASSES && has_classes_of(t, other, seen->n))
                views[k].kind = HN_OUTPUT_CLASSES;
        }
    }
}

void hn_output_view_clear(HnOutputView *v)
{
    hn_channel_kinds_clear(&v->channels);
    g_clear_pointer(&v->group, g_free);
    g_clear_pointer(&v->still, g_free);
    g_clear_pointer(&v->middle, g_free);
}
