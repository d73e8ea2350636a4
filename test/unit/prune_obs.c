/*
 * Pruning: least squares, and what is lost by them when inputs or single weights go, against sums made the long way.
 */
#include <math.h>
#include <string.h>

#include "prune/obs.h"
#include "prune/spd.h"
#include "prune/zeros.h"
#include "prune/zeros_group.h"
#include "run_model.h"

/* --- matrices ----------------------------------------------------------------------------------------------------- */

#define LARGEST 211

static double *random_spd(int64_t n, uint64_t seed)
{
    HnRng rng = hn_rng(seed);
    double *a = g_new0(double, LARGEST *LARGEST);
    g_autofree double *x = g_new(double, 2 * LARGEST * LARGEST);
    for (int64_t i = 0; i < 2 * n * n; i++)
        x[i] = hn_rng_normal(&rng);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t r = 0; r < 2 * n; r++)
                a[i * n + j] += x[r * n + i] * x[r * n + j];
    return a;
}

static void test_spd(void)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 23, 47, 48, 49, 97, 101, 146, LARGEST };
    for (guint k = 0; k < G_N_ELEMENTS(sizes); k++) {
        const int64_t n = sizes[k], m = 3;
        g_autofree double *a = random_spd(n, k + 1), *l = g_memdup2(a, LARGEST * LARGEST * sizeof *a);
        g_autofree double *inverse = g_new(double, LARGEST *LARGEST), *x = g_new(double, LARGEST * 3),
                          *b = g_new(double, LARGEST * 3);
        for (int64_t i = 0; i < n * m; i++)
            b[i] = x[i] = sin((double)i);
        g_assert_true(hn_spd_factor(l, n));
        hn_spd_solve(l, n, x, m);
        hn_spd_invert(l, n, inverse);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < m; j++) {
                double sum = 0;
                for (int64_t r = 0; r < n; r++)
                    sum += a[i * n + r] * x[r * m + j];
                g_assert_cmpfloat_with_epsilon(sum, b[i * m + j], 1e-7);
            }
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t r = 0; r < n; r++)
                    sum += a[i * n + r] * inverse[r * n + j];
                g_assert_cmpfloat_with_epsilon(sum, i == j, 1e-7);
            }
        }
    }
    double not_definite[] = { 1, 0, 2, 1 };
    g_assert_false(hn_spd_factor(not_definite, 2));
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* A number of h or b: rows of x (a 1 behind them) times columns of z. */
static double sum_of(const HnLinearRows *rows, int64_t group, const float *x, const float *z, int64_t n_z, int64_t i,
                     int64_t j, const gboolean *bad, int64_t n)
{
    const int64_t all = rows->groups * rows->k;
    double sum = 0;
    for (int64_t r = 0; r < n; r++)
        if (!bad[r])
            sum += (i < rows->k ? (double)x[r * all + group * rows->k + i] : 1) *
                   (z != x ? (double)z[r * rows->groups * n_z + group * n_z + j]
                           : (j < rows->k ? (double)x[r * all + group * rows->k + j] : 1));
    return sum;
}

/* Sums over the rows of two samples, of which one row is not finite in x and one in y, against those made the long way;
 * the same bits with any number of threads. */
static void check_sums(const char *text, const int64_t *dims, int rank)
{
    g_autoptr(HnModel) m = test_model(text);
    g_assert_true(hn_graph_infer(m->graph, FALSE, NULL));
    HnLinearRows rows;
    g_assert_true(hn_linear_rows_of(m->graph->nodes->pdata[0], &rows));
    g_autoptr(HnTensor) x = test_random(HN_F32, rank, dims, 3);
    const int64_t n = hn_linear_rows_feed(&rows, x), k = rows.k + 1, all = rows.groups * rows.outs;
    g_autoptr(HnTensor) y = test_random(HN_F32, 2, (const int64_t[]){ n, all }, 4);
    ((float *)x->data)[0] = NAN;
    ((float *)y->data)[all * n - 1] = INFINITY;
    g_autofree float *each = g_new(float, (gsize)(n * rows.groups * rows.k)), *made = g_new(float, (gsize)(n * all));
    g_autofree gboolean *bad = g_new0(gboolean, (gsize)n);
    int64_t good = 0;
    for (int64_t r = 0; r < n; r++) {
        float sum = 0;
        hn_linear_rows_get(&rows, r, each + r * rows.groups * rows.k);
        for (int64_t i = 0; i < rows.groups * rows.k; i++)
            sum += 0 * each[r * rows.groups * rows.k + i];
        for (int64_t c = 0; c < all; c++) {
            const int64_t plane = rows.conv ? rows.plan.y_plane : 1;
            made[r * all + c] = ((float *)y->data)[r / plane * all * plane + c * plane + r % plane];
            sum += 0 * made[r * all + c];
        }
        bad[r] = sum != 0;
        good += !bad[r];
    }
    g_assert_cmpint(good, <, n);
    g_autoptr(HnGram) one = hn_gram_new(&rows, TRUE, TRUE, NULL, NULL),
                      two = hn_gram_new(&rows, TRUE, TRUE, NULL, NULL);
    for (int twice = 0; twice < 2; twice++) {
        hn_gram_add(one, &rows, x, y, n, 1, 1);
        hn_gram_add(two, &rows, x, y, n, 1, 2);
    }
    hn_gram_settle(one, 1);
    hn_gram_settle(two, 2);
    g_assert_cmpint(one->rows, ==, 2 * good);
    for (int64_t g = 0; g < rows.groups; g++)
        for (int64_t i = 0; i < k; i++) {
            for (int64_t j = 0; j <= i; j++) {
                const float h = one->h[(g * k + i) * k + j];
                g_assert_cmpfloat_with_epsilon((double)h, 2 * sum_of(&rows, g, each, each, 0, i, j, bad, n), 1e-3);
                g_assert_cmpfloat(h, ==, two->h[(g * k + i) * k + j]);
            }
            for (int64_t j = 0; j < rows.outs; j++) {
                const float b = one->b[(g * k + i) * rows.outs + j];
                g_assert_cmpfloat_with_epsilon((double)b, 2 * sum_of(&rows, g, each, made, rows.outs, i, j, bad, n),
                                               1e-3);
                g_assert_cmpfloat(b, ==, two->b[(g * k + i) * rows.outs + j]);
            }
        }
}

static void test_sums(void)
{
    check_sums("opset 17\n%y = Gemm(%x:f32[N,12], w:f32[12,5], b:f32[5])\n", (const int64_t[]){ 70, 12 }, 2);
    check_sums("opset 17\n%y = Gemm(%x:f32[N,101], w:f32[101,37], b:f32[37])\n", (const int64_t[]){ 131, 101 }, 2);
    check_sums("opset 17\n%y = Conv(%x:f32[N,7,6,5], w:f32[18,7,3,3], b:f32[18]) pads=[1,1,1,1]\n",
               (const int64_t[]){ 2, 7, 6, 5 }, 4);
    check_sums("opset 17\n%y = Conv(%x:f32[N,12,9], w:f32[6,4,5], b:f32[6]) group=3 strides=[2] dilations=[2] "
               "pads=[4,3]\n",
               (const int64_t[]){ 3, 12, 9 }, 3);
    check_sums("opset 17\n%y = Conv(%x:f32[N,20,4,4], w:f32[20,1,3,3], b:f32[20]) group=20\n",
               (const int64_t[]){ 2, 20, 4, 4 }, 4);
}

/* --- least squares ------------------------------------------------------------------------------------------------ */

#define ROWS 300
#define K 12
#define OUTS 5
#define MANY 37 /* of which kernels take some at once */

/* A Gemm and rows for it: x that hangs together, y that is nearly x w0 + b. */
typedef struct {
    HnModel *m;
    HnLinearRows rows;
    HnTensor *x, *y;
    double *w0; /* [K + 1, OUTS] */
} Problem;

static Problem problem_with(int outs)
{
    g_autofree char *text =
        g_strdup_printf("opset 17\n%%y = Gemm(%%x:f32[N,12], w:f32[12,%d], b:f32[%d])\n", outs, outs);
    Problem p = { .m = test_model(text) };
    g_assert_true(hn_graph_infer(p.m->graph, FALSE, NULL));
    g_assert_true(hn_linear_rows_of(p.m->graph->nodes->pdata[0], &p.rows));
    p.x = test_random(HN_F32, 2, (const int64_t[]){ ROWS, K }, 5);
    p.y = test_random(HN_F32, 2, (const int64_t[]){ ROWS, outs }, 6);
    float *x = p.x->data, *y = p.y->data;
    p.w0 = g_new0(double, (gsize)((K + 1) * outs));
    for (int64_t i = 0; i < (K + 1) * outs; i++)
        p.w0[i] = cos((double)(3 * i));
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t i = 1; i < K; i++)
            x[r * K + i] += 0.7F * x[r * K + i - 1];
        for (int64_t o = 0; o < outs; o++) {
            double sum = p.w0[K * outs + o] + 0.1 * (double)y[r * outs + o];
            for (int64_t i = 0; i < K; i++)
                sum += (double)x[r * K + i] * p.w0[i * outs + o];
            y[r * outs + o] = (float)sum;
        }
    }
    return p;
}

static Problem problem_new(void)
{
    return problem_with(OUTS);
}

static void problem_clear(Problem *p)
{
    hn_tensor_unref(p->x);
    hn_tensor_unref(p->y);
    hn_model_free(p->m);
    g_free(p->w0);
}

/* Sum of squares of what weights w[K + 1, OUTS] leave. */
static double error_of(const Problem *p, const double *w)
{
    const float *x = p->x->data, *y = p->y->data;
    double all = 0;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t o = 0; o < OUTS; o++) {
            double d = w[K * OUTS + o] - (double)y[r * OUTS + o];
            for (int64_t i = 0; i < K; i++)
                d += (double)x[r * K + i] * w[i * OUTS + o];
            all += d * d;
        }
    return all;
}

static void test_obs(void)
{
    g_autoptr(GError) error = NULL;
    Problem p = problem_new();
    g_autoptr(HnGram) g = hn_gram_new(&p.rows, TRUE, TRUE, NULL, &error);
    g_assert_no_error(error);
    hn_gram_add(g, &p.rows, p.x, p.y, ROWS, 1, 2);
    hn_gram_settle(g, 2);
    g_assert_cmpint(g->rows, ==, ROWS);
    const guint8 none[K + 1] = { 0 };
    g_autoptr(HnObs) o = hn_obs_new(g, p.w0, 1e-9, none, TRUE, &error);
    g_assert_no_error(error);
    const double best = error_of(&p, o->w);
    for (int64_t i = 0; i < (K + 1) * OUTS; i++) { /* no other weights are better */
        g_autofree double *w = g_memdup2(o->w, (K + 1) * OUTS * sizeof *w);
        w[i] += 0.01;
        g_assert_cmpfloat(error_of(&p, w), >, best);
    }
    /* what is lost is what the best weights without these inputs lose */
    const int64_t gone[][2] = { { 3, 4 }, { 0, 11 }, { 7, 5 } };
    double before = best;
    for (guint i = 0; i < G_N_ELEMENTS(gone); i++) {
        const double cost = hn_obs_cost(o, 0, gone[i], 2);
        hn_obs_remove(o, 0, gone[i], 2);
        const double now = error_of(&p, o->w);
        g_assert_cmpfloat_with_epsilon(now - before, cost, 1e-3 * cost + 1e-4);
        before = now;
        g_autofree double *was = g_memdup2(o->w, (K + 1) * OUTS * sizeof *was);
        g_assert_true(hn_obs_settle(o, g, p.w0, 1e-9, &error));
        for (int64_t e = 0; e < (K + 1) * OUTS; e++)
            g_assert_cmpfloat_with_epsilon(was[e], o->w[e], 1e-4);
    }
    /* those that come back are as if they had never gone, and gain what they had cost */
    for (guint i = 0; i < 2; i++) {
        g_autofree double *was = g_memdup2(o->w, (K + 1) * OUTS * sizeof *was);
        g_assert_true(hn_obs_restore(o, 0, gone[i], 2));
        const double now = error_of(&p, o->w), cost = hn_obs_cost(o, 0, gone[i], 2);
        g_assert_cmpfloat_with_epsilon(before - now, cost, 1e-3 * cost + 1e-4);
        g_autofree double *solved = g_memdup2(o->w, (K + 1) * OUTS * sizeof *solved);
        g_assert_true(hn_obs_settle(o, g, p.w0, 1e-9, &error));
        for (int64_t e = 0; e < (K + 1) * OUTS; e++)
            g_assert_cmpfloat_with_epsilon(solved[e], o->w[e], 1e-4);
        hn_obs_remove(o, 0, gone[i], 2);
        for (int64_t e = 0; e < (K + 1) * OUTS; e++)
            g_assert_cmpfloat_with_epsilon(was[e], o->w[e], 1e-4);
    }
    /* inputs that are no more from the beginning come to the same */
    guint8 all[K + 1] = { 0 };
    for (guint i = 0; i < G_N_ELEMENTS(gone); i++)
        all[gone[i][0]] = all[gone[i][1]] = 1;
    g_autoptr(HnObs) less = hn_obs_new(g, p.w0, 1e-9, all, FALSE, &error);
    g_assert_no_error(error);
    for (int64_t e = 0; e < (K + 1) * OUTS; e++)
        g_assert_cmpfloat_with_epsilon(less->w[e], o->w[e], 1e-6);
    problem_clear(&p);
}

/* How far w is from the best with what is left, as a part of what is asked for. */
static double slope_of(const HnZerosGroup *z)
{
    double most = 0, largest = 0;
    for (int64_t i = 0; i < z->k; i++)
        for (int64_t q = 0; q < z->outs; q++) {
            if (i < z->inputs && z->gone[q / z->rows * z->inputs + i]) {
                g_assert_true(z->w[i * z->outs + q] == 0);
                continue;
            }
            double slope = -z->b[i * z->outs + q];
            for (int64_t j = 0; j < z->k; j++)
                slope += (j <= i ? z->h[i * z->k + j] : z->h[j * z->k + i]) * z->w[j * z->outs + q];
            most = fmax(most, fabs(slope));
            largest = fmax(largest, fabs(z->b[i * z->outs + q]));
        }
    return most / largest;
}

/* Sum of squares with `left` blocks, of weights that are chosen so. */
static double zeros_error(const Problem *p, const HnGram *g, HnPruneScore by, int rows, int of_four, int64_t left)
{
    const HnPruneLayer l = { .rows = p->rows, .free = TRUE, .bias = 2 };
    g_autofree double *w = g_memdup2(p->w0, (K + 1) * OUTS * sizeof *w);
    HnZerosGroup z = { .rows = rows, .of_four = of_four, .by = by, .threads = 2, .seed = 3 };
    g_assert_true(hn_zeros_group_open(&z, &l, g, 0, 1e-9, p->w0, w, NULL));
    g_assert_cmpint(z.left, ==, K * ((OUTS + rows - 1) / rows));
    hn_zeros_group_drop(&z, left);
    g_assert_cmpint(z.left, ==, left);
    int64_t gone = 0;
    for (int64_t i = 0; i < z.strips * K; i++)
        gone += z.gone[i];
    g_assert_cmpint(gone, ==, z.strips * K - left);
    for (int64_t i = 0; of_four > 0 && i < z.strips * K; i += 4)
        g_assert_cmpint(z.gone[i] + z.gone[i + 1] + z.gone[i + 2] + z.gone[i + 3], ==, 2);
    hn_zeros_group_settle(&z);
    g_assert_cmpfloat(slope_of(&z), <, 1e-5);
    hn_zeros_group_close(&z);
    return error_of(p, w);
}

static void test_zeros(void)
{
    Problem p = problem_new();
    g_autoptr(HnGram) g = hn_gram_new(&p.rows, TRUE, TRUE, NULL, NULL);
    hn_gram_add(g, &p.rows, p.x, p.y, ROWS, 1, 2);
    hn_gram_settle(g, 2);
    const double best = zeros_error(&p, g, HN_PRUNE_OBS, 1, 0, 24);
    g_assert_cmpfloat(best, <, zeros_error(&p, g, HN_PRUNE_L2, 1, 0, 24));
    g_assert_cmpfloat(best, <, zeros_error(&p, g, HN_PRUNE_RANDOM, 1, 0, 24));
    g_assert_cmpfloat(best, <, 1.1 * zeros_error(&p, g, HN_PRUNE_OBS, 4, 0, 6)); /* 24 weights, too */
    g_assert_cmpfloat(best, <, zeros_error(&p, g, HN_PRUNE_OBS, 12, 0, 2));
    g_assert_cmpfloat(best, <, zeros_error(&p, g, HN_PRUNE_OBS, 1, 0, 12));
    (void)zeros_error(&p, g, HN_PRUNE_OBS, 1, 2, 30);
    (void)zeros_error(&p, g, HN_PRUNE_WANDA, 1, 2, 30);
    (void)zeros_error(&p, g, HN_PRUNE_L1, 16, 0, 5);
    problem_clear(&p);
}

/* What is lost last goes first: shares follow the curves, and add up. */
static void test_share(void)
{
    g_autoptr(HnModel) m = test_model("opset 17\n%h = Gemm(%x:f32[N,64], a:f32[64,64])\n%r = Relu(%h)\n"
                                      "%y = Gemm(%r, b:f32[64,128])\n");
    g_assert_true(hn_graph_infer(m->graph, FALSE, NULL));
    g_autoptr(HnPruneMap) map = hn_prune_map_new(m, NULL, NULL);
    g_assert_cmpint(map->layers->len, ==, 2);
    HnZerosCurves *c = g_new(HnZerosCurves, 1);
    *c = (HnZerosCurves){ map, g_new0(GArray *, 3) };
    double part[2];
    hn_zeros_share(map, NULL, 0.6, 1, part);
    g_assert_cmpfloat(part[0], ==, 0.6);
    g_assert_cmpfloat(part[1], ==, 0.6);
    for (int i = 0; i < 2; i++) {
        c->loss[i] = g_array_new(FALSE, TRUE, sizeof(double));
        for (int k = 0; k < 11; k++) {
            const double loss = k == 0 ? 0 : (i == 0 ? 0.02 : 0.0002) * pow(1.6, k) / pow(1.6, 10) * 10;
            g_array_append_val(c->loss[i], loss);
        }
    }
    for (double all = 0.1; all < 0.96; all += 0.05) {
        hn_zeros_share(map, c, all, 1, part);
        g_assert_cmpfloat_with_epsilon((part[0] + 2 * part[1]) / 3, all, 1e-6);
        g_assert_cmpfloat(part[0], <, part[1]);
        g_assert_cmpfloat(part[1], <=, 0.98 + 1e-9);
    }
    hn_zeros_curves_free(c);
}

static double clip(double x, float lo, float hi)
{
    return fmin(fmax(x, (double)lo), (double)hi);
}

/* b is that of results of w, [K + 1, MANY], where the layer's own are beyond a limit, and of these elsewhere. */
static void check_targets(const HnGram *g, const Problem *p, const double *w, float lo, float hi)
{
    const float *x = p->x->data, *y = p->y->data;
    for (int64_t c = 0; c < MANY; c++) {
        double b[K + 1] = { 0 };
        for (int64_t r = 0; r < ROWS; r++) {
            const double want = (double)y[r * MANY + c];
            double made = w[K * MANY + c];
            for (int64_t i = 0; i < K; i++)
                made += (double)x[r * K + i] * w[i * MANY + c];
            const double t = want <= lo ? fmin(made, lo) : want >= hi ? fmax(made, hi) : want;
            for (int64_t i = 0; i <= K; i++)
                b[i] += t * (i < K ? (double)x[r * K + i] : 1);
        }
        for (int64_t i = 0; i <= K; i++)
            g_assert_cmpfloat_with_epsilon((double)g->b[i * MANY + c], b[i], 1e-2);
    }
}

static void check_aim(float lo, float hi)
{
    g_autoptr(GError) error = NULL;
    Problem p = problem_with(MANY);
    g_autoptr(HnGram) g = hn_gram_new(&p.rows, TRUE, TRUE, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_gram_outcomes(g, &p.rows, lo, hi, ROWS, &error));
    hn_gram_add(g, &p.rows, p.x, p.y, ROWS, 1, 1);
    hn_gram_settle(g, 1);
    guint8 gone[K + 1] = { 0 };
    gone[2] = gone[6] = gone[9] = 1;
    g_autoptr(HnObs) o = hn_obs_new(g, p.w0, 1e-9, gone, FALSE, &error),
                     q = hn_obs_new(g, p.w0, 1e-9, gone, TRUE, NULL);
    g_assert_no_error(error);
    hn_obs_end(q);
    double errors[2];
    for (int pass = 0; pass < 2; pass++) {
        const float *x = p.x->data, *y = p.y->data;
        errors[pass] = 0;
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t c = 0; c < MANY; c++) {
                double sum = o->w[K * MANY + c];
                for (int64_t i = 0; i < K; i++)
                    sum += (double)x[r * K + i] * o->w[i * MANY + c];
                errors[pass] += pow(clip(sum, lo, hi) - clip((double)y[r * MANY + c], lo, hi), 2);
            }
        for (int i = 0; i < 8; i++) {
            hn_gram_aim(g, o->w);
            hn_gram_add(g, &p.rows, p.x, NULL, ROWS, 1, 2);
            hn_gram_settle(g, 2);
            check_targets(g, &p, o->w, lo, hi);
            g_assert_true(hn_obs_settle(o, g, p.w0, 1e-9, &error));
            g_assert_true(hn_obs_settle(q, g, p.w0, 1e-9, &error)); /* by a factor that it has */
            g_assert_cmpmem(o->w, (K + 1) * MANY * sizeof *o->w, q->w, (K + 1) * MANY * sizeof *q->w);
        }
    }
    g_assert_cmpfloat(errors[1], <, 0.98 * errors[0]);
    problem_clear(&p);
}

/* Behind a Relu, or a Clip: results below 0, or above what is the most, need not be met, and the others are met better.
 */
static void test_aim(void)
{
    check_aim(0, INFINITY);
    check_aim(-INFINITY, 0.1F);
    check_aim(-0.2F, 0.2F);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune_obs/spd", test_spd);
    g_test_add_func("/prune_obs/sums", test_sums);
    g_test_add_func("/prune_obs/obs", test_obs);
    g_test_add_func("/prune_obs/aim", test_aim);
    g_test_add_func("/prune_obs/zeros", test_zeros);
    g_test_add_func("/prune_obs/share", test_share);
    return g_test_run();
}
