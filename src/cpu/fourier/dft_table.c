#include "cpu/fourier/dft_table.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define ROWS 16       /* at least: fewer do not determine a window */
#define TAPS 32       /* at least */
#define POINTS 8192   /* at most */
#define EXACT 0x1p-22 /* of the largest weight: what rounding a weight once or twice makes of it */
#define LIKELY 0.8    /* of a row's squares that its bin explains, before the window is known well */
#define NEARLY 0.05   /* of a coefficient, as the first window makes it */
#define TINY 1e-6     /* the same of the last one */
#define ROUNDS 2      /* window and coefficients in turn; the first window is that of complete pairs of parts */

/* Weights in double, and what is known of them so far. */
typedef struct {
    int64_t rows, taps, n;
    double *w;       /* [rows][taps] */
    double *squares; /* [rows] sums of them */
    double most;     /* |w| */
    double *window;  /* [taps] */
    double *cosine, *sine;
    int64_t *bin;    /* [rows]; -1: all weights are 0 */
    double *re, *im; /* [rows], of cosine and sine */
} Fit;

static void fit_clear(Fit *f)
{
    g_free(f->w);
    g_free(f->squares);
    g_free(f->window);
    g_free(f->cosine);
    g_free(f->sine);
    g_free(f->bin);
    g_free(f->re);
    g_free(f->im);
}

static double weight_at(const void *w, int64_t i)
{
    float v;
    memcpy(&v, (const char *)w + i * (int64_t)sizeof v, sizeof v);
    return (double)v;
}

/*
 * One column of a table, rows being consecutive bins, is a wave too: v[r - d] + v[r + d] = c v[r], d being 1, or 2
 * where real and imaginary parts alternate. Tells nearly all other weights by a few columns of them; *factor is c.
 */
static gboolean column_is_wave(const void *w, int64_t rows, int64_t row, int64_t at, int64_t d, double *factor)
{
    double across = 0, own = 0, sum = 0, wrong = 0, c = 0;
    for (int pass = 0; pass < 2; pass++) {
        c = own > 0 ? across / own : 0;
        for (int64_t r = d; r < rows - d; r++) {
            const double v = weight_at(w, r * row + at),
                         both = weight_at(w, (r - d) * row + at) + weight_at(w, (r + d) * row + at);
            if (pass == 0) {
                across += v * both;
                own += v * v;
                sum += both * both;
            } else {
                wrong += (both - c * v) * (both - c * v);
            }
        }
    }
    *factor = c;
    return isfinite(sum) && wrong <= 0.25 * (sum + own); /* where real parts end and imaginary ones begin it is none */
}

#define PROBES 3 /* columns; not the one in the middle, where imaginary parts are 0 but for roundings */

static int64_t probed_tap(int64_t taps, int i)
{
    return taps * (5 + 2 * i) / 16;
}

/* The columns that are looked at are waves, of these factors. */
static gboolean probe(const void *w, int64_t rows, int64_t taps, int64_t row, int64_t tap, double factor[PROBES])
{
    if (rows < ROWS || taps < TAPS || taps > POINTS || rows > 2 * POINTS)
        return FALSE;
    for (int i = 0; i < PROBES; i++) {
        const int64_t at = probed_tap(taps, i) * tap;
        if (!column_is_wave(w, rows, row, at, 1, &factor[i]) && !column_is_wave(w, rows, row, at, 2, &factor[i]))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_dft_table_likely(const void *w, int64_t rows, int64_t taps, int64_t row, int64_t tap)
{
    double factor[PROBES];
    return probe(w, rows, taps, row, tap, factor);
}

static gboolean read_weights(Fit *f, const void *w, int64_t row, int64_t tap)
{
    f->w = g_new(double, (gsize)(f->rows * f->taps));
    f->squares = g_new0(double, (gsize)f->rows);
    f->window = g_new0(double, (gsize)f->taps);
    for (int64_t r = 0; r < f->rows; r++)
        for (int64_t j = 0; j < f->taps; j++) {
            const double v = f->w[r * f->taps + j] = weight_at(w, r * row + j * tap);
            if (!isfinite(v))
                return FALSE;
            f->most = MAX(f->most, fabs(v));
            f->squares[r] += v * v;
            f->window[j] += v * v;
        }
    return f->most > 0;
}

static void set_points(Fit *f, int64_t n)
{
    f->n = n;
    f->cosine = g_renew(double, f->cosine, (gsize)n);
    f->sine = g_renew(double, f->sine, (gsize)n);
    for (int64_t i = 0; i < n; i++) {
        f->cosine[i] = cos(2 * PI * (double)i / (double)n);
        f->sine[i] = sin(2 * PI * (double)i / (double)n);
    }
}

/* Least squares of row r by window * (re cos + im sin) of bin k: the part of its squares that they explain. */
static double try_bin(Fit *f, int64_t r, int64_t k)
{
    const double *w = f->w + r * f->taps;
    double cc = 0, cs = 0, ss = 0, wc = 0, ws = 0;
    for (int64_t j = 0, at = 0; j < f->taps; j++, at += k, at -= at >= f->n ? f->n : 0) {
        const double c = f->window[j] * f->cosine[at], s = f->window[j] * f->sine[at];
        cc += c * c;
        cs += c * s;
        ss += s * s;
        wc += w[j] * c;
        ws += w[j] * s;
    }
    const double det = cc * ss - cs * cs;
    const gboolean both = det > 1e-9 * (cc + ss) * (cc + ss); /* bins 0 and n / 2 have no sine */
    f->bin[r] = k;
    f->re[r] = both ? (wc * ss - ws * cs) / det : cc > 0 ? wc / cc : 0;
    f->im[r] = both ? (ws * cc - wc * cs) / det : 0;
    return (f->re[r] * wc + f->im[r] * ws) / f->squares[r];
}

/* The next bin, or the one before, is the likeliest one, or the row begins another list, mostly with bin 0 or 1. */
static gboolean find_bin(Fit *f, int64_t r, int64_t before)
{
    const int64_t guess[] = { before + 1, before, before - 1, 0, 1 };
    for (int i = before >= 0 ? 0 : 3; i < 5; i++)
        if (guess[i] >= 0 && guess[i] <= f->n / 2 && try_bin(f, r, guess[i]) > LIKELY)
            return TRUE;
    int64_t best = 0;
    double most = 0;
    for (int64_t k = 0; k <= f->n / 2; k++) {
        const double part = try_bin(f, r, k);
        if (part > most) {
            most = part;
            best = k;
        }
    }
    return most > LIKELY && try_bin(f, r, best) > LIKELY;
}

static gboolean find_bins(Fit *f)
{
    int64_t before = -1, lists = 0;
    for (int64_t r = 0; r < f->rows; r++) {
        if (f->squares[r] <= EXACT * EXACT * f->most * f->most * (double)f->taps) {
            f->bin[r] = -1;
            continue;
        }
        const int64_t last = before;
        if (!find_bin(f, r, before))
            return FALSE;
        before = f->bin[r];
        if (last < 0 || ABS(before - last) > 1)
            lists++;
        if (lists > 4) /* each takes a search of all bins */
            return FALSE;
    }
    return before >= 0;
}

/* Row r of the waves, without a window. */
static void wave_of(const Fit *f, int64_t r, double *to)
{
    const int64_t k = f->bin[r];
    const double re = f->re[r], im = f->im[r];
    if (re == 0 || im == 0) { /* nearly all: one part of a bin */
        const double *of = im == 0 ? f->cosine : f->sine, factor = im == 0 ? re : im;
        for (int64_t j = 0, at = 0; j < f->taps; j++, at += k, at -= at >= f->n ? f->n : 0)
            to[j] = factor * of[at];
        return;
    }
    for (int64_t j = 0, at = 0; j < f->taps; j++, at += k, at -= at >= f->n ? f->n : 0)
        to[j] = re * f->cosine[at] + im * f->sine[at];
}

/* The window that fits all rows best. */
static void refine_window(Fit *f)
{
    g_autofree double *own = g_new0(double, (gsize)f->taps), *wave = g_new(double, (gsize)f->taps);
    memset(f->window, 0, (gsize)f->taps * sizeof *f->window);
    for (int64_t r = 0; r < f->rows; r++) {
        if (f->bin[r] < 0)
            continue;
        wave_of(f, r, wave);
        for (int64_t j = 0; j < f->taps; j++) {
            own[j] += wave[j] * wave[j];
            f->window[j] += wave[j] * f->w[r * f->taps + j];
        }
    }
    for (int64_t j = 0; j < f->taps; j++)
        f->window[j] = own[j] > 1e-9 ? f->window[j] / own[j] : 0;
}

/* Coefficients in units of what they are in the mean; those that are nearly 0, 1 or -1 are that. FALSE: some are not.
 */
static gboolean settle(Fit *f, double nearly)
{
    gboolean all = TRUE;
    double sum = 0;
    int64_t n = 0;
    for (int64_t r = 0; r < f->rows; r++)
        if (f->bin[r] >= 0) {
            sum += hypot(f->re[r], f->im[r]);
            n++;
        }
    const double unit = sum / (double)n;
    for (int64_t j = 0; j < f->taps; j++)
        f->window[j] *= unit;
    for (int64_t r = 0; r < f->rows; r++) {
        double *part[] = { &f->re[r], &f->im[r] };
        for (int i = 0; i < 2; i++) {
            const double v = f->bin[r] >= 0 ? *part[i] / unit : 0;
            *part[i] = fabs(v) < nearly ? 0 : fabs(fabs(v) - 1) < nearly ? copysign(1, v) : v;
            all = all && (*part[i] == 0 || fabs(*part[i]) == 1);
        }
    }
    return all;
}

/* As the table computes: window and coefficients are floats. */
static gboolean is_exact(const Fit *f)
{
    g_autofree double *wave = g_new0(double, (gsize)f->taps);
    for (int64_t r = 0; r < f->rows; r++) {
        if (f->bin[r] >= 0)
            wave_of(f, r, wave);
        double most = 0;
        for (int64_t j = 0; j < f->taps; j++) {
            const double v = f->bin[r] >= 0 ? (double)(float)f->window[j] * wave[j] : 0;
            most = MAX(most, fabs(v - f->w[r * f->taps + j]));
        }
        if (!(most <= EXACT * f->most))
            return FALSE;
    }
    return TRUE;
}

static gboolean fits(Fit *f, int64_t n, const double *window)
{
    set_points(f, n);
    memcpy(f->window, window, (gsize)f->taps * sizeof *window);
    if (!find_bins(f))
        return FALSE;
    if (settle(f, NEARLY)) { /* real and imaginary parts as they are */
        refine_window(f);
        return is_exact(f);
    }
    for (int i = 0; i < ROUNDS; i++) {
        refine_window(f);
        for (int64_t r = 0; r < f->rows; r++)
            if (f->bin[r] >= 0)
                (void)try_bin(f, r, f->bin[r]);
    }
    (void)settle(f, TINY);
    refine_window(f);
    return is_exact(f);
}

/* How far the waves of the probed columns are from those of n points. */
static double distance(int64_t n, int64_t taps, const double factor[PROBES])
{
    double sum = 0;
    for (int i = 0; i < PROBES; i++) {
        const double off = 2 * cos(2 * PI * (double)probed_tap(taps, i) / (double)n) - factor[i];
        sum += off * off;
    }
    return sum;
}

/* Points that a table of so many rows and taps may have, the likeliest ones first: as many as taps, as bins say, or the
 * next power of two. */
static int points_of(int64_t rows, int64_t taps, const double factor[PROBES], int64_t *n)
{
    int64_t power = 2;
    while (power < taps)
        power *= 2;
    const int64_t all[] = { taps, rows - 2, 2 * (rows - 1), power };
    int found = 0;
    for (int i = 0; i < 4; i++) {
        gboolean had = FALSE;
        for (int k = 0; k < found; k++)
            had = had || n[k] == all[i];
        if (had || all[i] < taps || all[i] % 2 != 0 || all[i] > POINTS)
            continue;
        int k = found++;
        for (; k > 0 && distance(all[i], taps, factor) < distance(n[k - 1], taps, factor); k--)
            n[k] = n[k - 1];
        n[k] = all[i];
    }
    return found;
}

static void take(HnDftTable *t, const Fit *f)
{
    *t = (HnDftTable){ .n = f->n, .rows = f->rows, .taps = f->taps };
    float *window = (float *)(void *)(t->sums + f->rows);
    for (int64_t j = 0; j < f->taps; j++)
        window[j] = (float)f->window[j];
    for (int64_t r = 0; r < f->rows; r++) /* the imaginary part of a bin has the sine's sign turned */
        t->sums[r] =
            (HnFftSum){ .bin = MAX(f->bin[r], 0), .re = (float)f->re[r], .im = f->im[r] != 0 ? (float)-f->im[r] : 0 };
}

gboolean hn_dft_table_find(HnDftTable *t, const void *w, int64_t rows, int64_t taps, int64_t row, int64_t tap)
{
    Fit f = { .rows = rows, .taps = taps };
    int64_t n[4];
    double factor[PROBES];
    if (!probe(w, rows, taps, row, tap, factor))
        return FALSE;
    gboolean found = FALSE;
    if (read_weights(&f, w, row, tap)) {
        f.bin = g_new(int64_t, (gsize)rows);
        f.re = g_new0(double, (gsize)rows);
        f.im = g_new0(double, (gsize)rows);
        g_autofree double *window = g_new(double, (gsize)taps);
        for (int64_t j = 0; j < taps; j++)
            window[j] = sqrt(f.window[j] / (double)rows);
        const int many = points_of(rows, taps, factor, n);
        for (int i = 0; i < many && !found; i++)
            found = fits(&f, n[i], window);
        if (found)
            take(t, &f);
    }
    fit_clear(&f);
    return found;
}
