#include "prune/obs.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "prune/spd.h"

/* h with its ridge, [k, k], the lower triangle, without what is gone; *r: the ridge itself. */
static void take_matrix(const HnGram *g, int64_t group, double ridge, const guint8 *gone, double *h, double *r)
{
    const float *from = g->h + group * g->k * g->k;
    const int64_t inputs = g->k - g->constant;
    double trace = 0;
    for (int64_t i = 0; i < g->k; i++)
        for (int64_t j = 0; j <= i; j++)
            h[i * g->k + j] = (double)from[i * g->k + j];
    for (int64_t i = 0; i < inputs; i++)
        trace += h[i * g->k + i];
    *r = trace > 0 ? ridge * trace / (double)inputs : 1;
    for (int64_t i = 0; i < inputs; i++)
        h[i * g->k + i] += *r;
    if (g->constant) /* free, but there where no row was seen */
        h[g->k * g->k - 1] += g->rows > 0 ? 1e-9 * (double)g->rows : 1;
    for (int64_t i = 0; i < g->k; i++)
        for (int64_t j = 0; j <= i; j++)
            if (gone[group * g->k + i] || gone[group * g->k + j])
                h[i * g->k + j] = i == j;
}

/* What is wanted, [k, outs]: b + r w0, or h w0 where the layer's own results are. */
static void take_targets(const HnGram *g, int64_t group, const double *own, const double *h, double r,
                         const guint8 *gone, double *b)
{
    const int64_t n = g->k * g->outs;
    if (!g->wanted) {
        memset(b, 0, (gsize)n * sizeof *b);
        for (int64_t i = 0; i < g->k; i++)
            for (int64_t j = 0; j < g->k; j++) {
                const double t = -(j <= i ? h[i * g->k + j] : h[j * g->k + i]);
                if (i == j || t != 0)
                    hn_spd_subtract(b + i * g->outs, own + j * g->outs, g->outs, &t, 1, g->outs);
            }
    }
    const float *from = g->b + group * n;
    for (int64_t i = 0; i < n && g->wanted; i++)
        b[i] = (double)from[i] + (g->constant && i >= n - g->outs ? 0 : r * own[i]);
    for (int64_t i = 0; i < g->k; i++)
        if (gone[group * g->k + i])
            memset(b + i * g->outs, 0, (gsize)g->outs * sizeof *b);
}

void hn_obs_system(const HnGram *g, int64_t group, const double *own, double ridge, double *h, double *b)
{
    double r;
    g_autofree guint8 *none = g_new0(guint8, (gsize)(g->groups * g->k));
    take_matrix(g, group, ridge, none, h, &r);
    take_targets(g, group, own, h, r, none, b);
}

double hn_obs_energy(const HnGram *g, const double *w0)
{
    double sum = 0;
    for (int64_t o = 0; g->wanted && o < g->groups * g->outs; o++)
        sum += g->squares[o];
    if (!g->wanted) {
        for (int64_t group = 0; group < g->groups; group++) {
            const double *w = w0 + group * g->k * g->outs;
            const float *h = g->h + group * g->k * g->k;
            for (int64_t i = 0; i < g->k; i++)
                for (int64_t j = 0; j <= i; j++) {
                    double dot = 0;
                    for (int64_t o = 0; o < g->outs; o++)
                        dot += w[i * g->outs + o] * w[j * g->outs + o];
                    sum += (i == j ? 1 : 2) * (double)h[i * g->k + j] * dot;
                }
        }
    }
    for (int64_t group = 0; g->constant && g->rows > 0 && group < g->groups; group++)
        for (int64_t o = 0; o < g->outs; o++) {
            const int64_t last = (group + 1) * g->k;
            double total = g->wanted ? (double)g->b[(last - 1) * g->outs + o] : 0;
            for (int64_t i = 0; !g->wanted && i < g->k; i++)
                total += (double)g->h[(last - 1) * g->k + i] * w0[(last - g->k + i) * g->outs + o];
            sum -= total * total / (double)g->rows;
        }
    return fmax(sum, 0);
}

static gboolean is_finite(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * 0;
    return sum == 0;
}

gsize hn_obs_bytes(const HnLinearRows *rows, gboolean constant, gboolean choose)
{
    const gsize k = (gsize)(rows->k + constant);
    return (gsize)rows->groups * k * ((choose ? k + (gsize)rows->outs : 0) + (gsize)rows->outs) * sizeof(double);
}

gsize hn_obs_work_bytes(const HnLinearRows *rows, gboolean constant)
{
    const gsize k = (gsize)(rows->k + constant);
    return k * (k + (gsize)rows->outs) * sizeof(double);
}

HnObs *hn_obs_new(const HnGram *g, const double *w0, double ridge, const guint8 *gone, gboolean choose, GError **error)
{
    g_autoptr(HnObs) o = g_new0(HnObs, 1);
    *o = (HnObs){ .k = g->k, .outs = g->outs, .groups = g->groups, .budget = g->budget };
    const int64_t square = g->k * g->k;
    o->gone = g_memdup2(gone, (gsize)(g->groups * g->k));
    o->gram = g;
    o->ridges = g_new0(double, (gsize)g->groups);
    if (choose)
        o->inverse = hn_budget_alloc_n(g->budget, (gsize)(g->groups * square), sizeof *o->inverse, error);
    if (o->inverse != NULL)
        o->b = hn_budget_alloc_n(g->budget, (gsize)(g->groups * g->k * g->outs), sizeof *o->b, error);
    if ((choose && o->b == NULL) ||
        (o->w = hn_budget_alloc_n(g->budget, (gsize)(g->groups * g->k * g->outs), sizeof *o->w, error)) == NULL)
        return NULL;
    double *h = hn_budget_alloc_n(g->budget, (gsize)square, sizeof *h, error);
    gboolean ok = h != NULL;
    for (int64_t i = 0; i < g->groups && ok; i++) {
        double *w = o->w + i * g->k * g->outs;
        take_matrix(g, i, ridge, o->gone, h, &o->ridges[i]);
        take_targets(g, i, w0 + i * g->k * g->outs, h, o->ridges[i], o->gone, w);
        if (choose)
            memcpy(o->b + i * g->k * g->outs, w, (gsize)(g->k * g->outs) * sizeof *w);
        ok = hn_spd_factor(h, g->k);
        if (!ok) {
            g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "inputs of a layer are not finite, or say nothing");
            break;
        }
        hn_spd_solve(h, g->k, w, g->outs);
        if (choose)
            hn_spd_invert(h, g->k, o->inverse + i * square);
    }
    if (ok && !is_finite(o->w, g->groups * g->k * g->outs)) {
        g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "a layer's least squares have no solution");
        ok = FALSE;
    }
    o->energy = ok ? hn_obs_energy(g, w0) : 0;
    hn_budget_free(g->budget, h);
    return ok ? g_steal_pointer(&o) : NULL;
}

void hn_obs_free(HnObs *o)
{
    if (o == NULL)
        return;
    hn_budget_free(o->budget, o->inverse);
    hn_budget_free(o->budget, o->factors);
    g_free(o->factored);
    hn_budget_free(o->budget, o->b);
    hn_budget_free(o->budget, o->w);
    g_free(o->ridges);
    g_free(o->gone);
    g_free(o);
}

/* Of H^-1 the lower triangle is kept. */
static double inverse_at(const HnObs *o, int64_t group, int64_t i, int64_t j)
{
    return o->inverse[group * o->k * o->k + MAX(i, j) * o->k + MIN(i, j)];
}

/* The factor of H^-1_SS, [m, m]. FALSE: rounding left nothing of it. */
static gboolean factor_of(const HnObs *o, int64_t group, const int64_t *at, int64_t m, double *l)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++)
            l[i * m + j] = inverse_at(o, group, at[i], at[j]);
    return hn_spd_factor(l, m);
}

double hn_obs_cost(const HnObs *o, int64_t group, const int64_t *at, int64_t m)
{
    const double *w = o->w + group * o->k * o->outs;
    double sum = 0;
    if (m == 1) {
        const double d = inverse_at(o, group, at[0], at[0]);
        for (int64_t i = 0; i < o->outs; i++)
            sum += w[at[0] * o->outs + i] * w[at[0] * o->outs + i];
        return d > 0 ? sum / d : 0;
    }
    g_autofree double *l = g_new(double, (gsize)(m * m)), *z = g_new(double, (gsize)(m * o->outs));
    if (!factor_of(o, group, at, m, l))
        return 0;
    for (int64_t i = 0; i < m; i++) {
        double *row = z + i * o->outs;
        memcpy(row, w + at[i] * o->outs, (gsize)o->outs * sizeof *row);
        hn_spd_subtract(row, z, o->outs, l + i * m, i, o->outs);
        for (int64_t k = 0; k < o->outs; k++) {
            row[k] /= l[i * m + i];
            sum += row[k] * row[k];
        }
    }
    return sum;
}

void hn_obs_remove(HnObs *o, int64_t group, const int64_t *at, int64_t m)
{
    const int64_t k = o->k;
    double *inverse = o->inverse + group * k * k, *w = o->w + group * k * o->outs;
    guint8 *gone = o->gone + group * k;
    g_autofree double *l = g_new(double, (gsize)(m * m)), *c = g_new(double, (gsize)(m * k)),
                      *t = g_new(double, (gsize)(m * k)), *v = g_new(double, (gsize)(m * o->outs)),
                      *across = g_new(double, (gsize)(m * k));
    g_autofree HnSpdRow *rows = g_new(HnSpdRow, 2 * (gsize)k);
    const gboolean ok = factor_of(o, group, at, m, l);
    int64_t left = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < k; j++)
            c[i * k + j] = inverse_at(o, group, at[i], j);
        memcpy(v + i * o->outs, w + at[i] * o->outs, (gsize)o->outs * sizeof *v);
        gone[at[i]] = 1;
    }
    memcpy(t, c, (gsize)(m * k) * sizeof *t);
    if (ok)
        hn_spd_solve(l, m, t, k); /* (H^-1_SS)^-1 H^-1_S: */
    for (int64_t i = 0; i < k && ok; i++) {
        if (gone[i])
            continue;
        for (int64_t q = 0; q < m; q++)
            across[i * m + q] = t[q * k + i];
        rows[left] = (HnSpdRow){ inverse + i * k, across + i * m, i + 1 };
        rows[k + left++] = (HnSpdRow){ w + i * o->outs, across + i * m, o->outs };
    }
    hn_spd_subtract_rows(rows, left, c, k, m);
    hn_spd_subtract_rows(rows + k, left, v, o->outs, m);
    for (int64_t q = 0; q < m; q++) {
        memset(inverse + at[q] * k, 0, (gsize)(at[q] + 1) * sizeof *inverse);
        memset(w + at[q] * o->outs, 0, (gsize)o->outs * sizeof *w);
        for (int64_t i = at[q]; i < k; i++)
            inverse[i * k + at[q]] = 0;
    }
}

/* Of H, with its ridge. */
static double matrix_at(const HnObs *o, int64_t group, int64_t i, int64_t j)
{
    const int64_t k = o->k, last = o->gram->constant ? k - 1 : k;
    const double h = (double)o->gram->h[group * k * k + MAX(i, j) * k + MIN(i, j)];
    return i == j && i < last ? h + o->ridges[group] : h;
}

/* x[m, k] of what is left becomes H^-1 x, in y. */
static void apply_inverse(const HnObs *o, int64_t group, const double *x, int64_t m, double *y)
{
    const int64_t k = o->k;
    const double *inverse = o->inverse + group * k * k;
    memset(y, 0, (gsize)(m * k) * sizeof *y);
    for (int64_t i = 0; i < k; i++) {
        const double *row = inverse + i * k;
        if (o->gone[group * k + i])
            continue;
        for (int64_t q = 0; q < m; q++) {
            const double t = -x[q * k + i];
            y[q * k + i] += hn_spd_dot(row, x + q * k, i + 1);
            hn_spd_subtract(y + q * k, row, k, &t, 1, i);
        }
    }
}

gboolean hn_obs_restore(HnObs *o, int64_t group, const int64_t *at, int64_t m)
{
    const int64_t k = o->k, outs = o->outs;
    double *inverse = o->inverse + group * k * k, *w = o->w + group * k * outs;
    guint8 *gone = o->gone + group * k;
    g_autofree double *c = g_new(double, (gsize)(m * k)), *u = g_new(double, (gsize)(m * k)),
                      *t = g_new(double, (gsize)(m * k)), *across = g_new(double, (gsize)(2 * m * k)),
                      *s = g_new(double, (gsize)(m * m)), *v = g_new(double, (gsize)(m * outs)),
                      *own = g_new(double, (gsize)(m * m));
    g_autofree HnSpdRow *rows = g_new(HnSpdRow, 2 * (gsize)k + (gsize)m);
    int64_t left = 0;
    for (int64_t q = 0; q < m; q++)
        for (int64_t i = 0; i < k; i++)
            c[q * k + i] = gone[i] ? 0 : matrix_at(o, group, at[q], i);
    apply_inverse(o, group, c, m, u);
    for (int64_t q = 0; q < m; q++) /* what is left of H_SS */
        for (int64_t p = 0; p <= q; p++)
            s[q * m + p] = matrix_at(o, group, at[q], at[p]) - hn_spd_dot(c + q * k, u + p * k, k);
    if (!hn_spd_factor(s, m))
        return FALSE;
    for (int64_t q = 0; q < m; q++) {
        memcpy(v + q * outs, o->b + (group * k + at[q]) * outs, (gsize)outs * sizeof *v);
        rows[q] = (HnSpdRow){ v + q * outs, c + q * k, outs };
    }
    hn_spd_subtract_rows(rows, m, w, outs, k);
    hn_spd_solve(s, m, v, outs); /* their weights */
    memcpy(t, u, (gsize)(m * k) * sizeof *t);
    hn_spd_solve(s, m, t, k);
    hn_spd_invert(s, m, own);
    for (int64_t i = 0; i < k; i++) {
        if (gone[i])
            continue;
        double *to = across + 2 * i * m;
        for (int64_t q = 0; q < m; q++) {
            to[q] = -t[q * k + i];
            to[m + q] = u[q * k + i];
        }
        rows[left] = (HnSpdRow){ inverse + i * k, to, i + 1 };
        rows[k + left++] = (HnSpdRow){ w + i * outs, to + m, outs };
    }
    hn_spd_subtract_rows(rows, left, u, k, m);
    hn_spd_subtract_rows(rows + k, left, v, outs, m);
    for (int64_t q = 0; q < m; q++) {
        for (int64_t i = 0; i < k; i++)
            if (!gone[i])
                inverse[MAX(at[q], i) * k + MIN(at[q], i)] = -t[q * k + i];
        memcpy(w + at[q] * outs, v + q * outs, (gsize)outs * sizeof *w);
    }
    for (int64_t q = 0; q < m; q++) {
        gone[at[q]] = 0;
        for (int64_t p = 0; p <= q; p++)
            inverse[MAX(at[q], at[p]) * k + MIN(at[q], at[p])] = own[q * m + p];
    }
    return TRUE;
}

void hn_obs_end(HnObs *o)
{
    o->factors = g_steal_pointer(&o->inverse);
    g_free(o->factored);
    o->factored = g_new0(guint8, (gsize)o->groups);
}

/* The factor of a group's system without what is gone; NULL: rounding is in the way. `room` holds it where none is
 * kept. */
static const double *factor_left(HnObs *o, const HnGram *g, int64_t group, double ridge, double *room)
{
    double r, *h = o->factors != NULL ? o->factors + group * o->k * o->k : room;
    if (o->factors != NULL && o->factored[group])
        return h;
    take_matrix(g, group, ridge, o->gone, h, &r);
    if (!hn_spd_factor(h, o->k))
        return NULL;
    if (o->factors != NULL)
        o->factored[group] = 1;
    return h;
}

gboolean hn_obs_settle(HnObs *o, const HnGram *g, const double *w0, double ridge, GError **error)
{
    g_assert(g->wanted);
    const int64_t square = o->factors != NULL ? 0 : o->k * o->k, n = o->k * o->outs;
    double *room = hn_budget_alloc_n(g->budget, (gsize)(square + n), sizeof *room, error);
    if (room == NULL)
        return FALSE;
    double *b = room + square;
    for (int64_t i = 0; i < o->groups; i++) {
        const double *l = factor_left(o, g, i, ridge, room);
        if (l == NULL) /* what the downdates left is good enough */
            continue;
        take_targets(g, i, w0 + i * n, NULL, o->ridges[i], o->gone, b);
        hn_spd_solve(l, o->k, b, o->outs);
        memcpy(o->w + i * n, b, (gsize)n * sizeof *b);
    }
    hn_budget_free(g->budget, room);
    return TRUE;
}
