/*
 * Pruning: eigenvectors of symmetric matrices, and layers as two smaller ones. A layer whose weights are of a low rank
 * loses nothing, one that has a higher rank as little as any of that rank can.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "prune/count.h"
#include "prune/eigen.h"
#include "prune/low_rank.h"
#include "prune/spd.h"
#include "run_model.h"

/* --- eigenvectors ------------------------------------------------------------------------------------------------- */

static void check_eigen(const double *a, int64_t n)
{
    g_autofree double *used = g_memdup2(a, (gsize)(n * n) * sizeof *a), *values = g_new(double, (gsize)n),
                      *vectors = g_new(double, (gsize)(n * n));
    double scale = 0;
    for (int64_t i = 0; i < n * n; i++)
        scale = fmax(scale, fabs(a[i]));
    g_assert_true(hn_symmetric_eigen(used, n, values, vectors));
    for (int64_t i = 0; i < n; i++) {
        const double *v = vectors + i * n;
        g_assert_true(i == 0 || values[i] <= values[i - 1]);
        for (int64_t j = 0; j < n; j++) {
            g_assert_cmpfloat_with_epsilon(hn_spd_dot(a + j * n, v, n), values[i] * v[j],
                                           1e-12 * scale * (double)n + DBL_MIN);
            g_assert_cmpfloat_with_epsilon(hn_spd_dot(vectors + j * n, v, n), i == j, 1e-12 * (double)n);
        }
    }
}

/* Of so many random eigenvectors with eigenvalues 1, the others are 0. */
static double *projection(int64_t n, int64_t rank, uint64_t seed)
{
    HnRng rng = hn_rng(seed);
    double *a = g_new0(double, (gsize)(n * n));
    g_autofree double *x = g_new(double, (gsize)n);
    for (int64_t r = 0; r < rank; r++) {
        for (int64_t i = 0; i < n; i++)
            x[i] = hn_rng_normal(&rng);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                a[i * n + j] += x[i] * x[j];
    }
    return a;
}

static void test_eigen(void)
{
    static const int64_t sizes[] = { 1, 2, 3, 5, 8, 33, 120 };
    for (guint k = 0; k < G_N_ELEMENTS(sizes); k++) {
        const int64_t n = sizes[k];
        HnRng rng = hn_rng(k + 1);
        g_autofree double *a = g_new0(double, (gsize)(n * n)), *few = projection(n, MAX(n / 3, 1), k);
        check_eigen(a, n); /* 0 */
        for (int64_t i = 0; i < n; i++)
            a[i * n + i] = (double)(i % 3); /* several are equal */
        check_eigen(a, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                a[i * n + j] = a[j * n + i] = hn_rng_normal(&rng); /* of both signs */
        check_eigen(a, n);
        check_eigen(few, n);
        for (int64_t i = 0; i < n * n; i++)
            a[i] *= 1e-150;
        check_eigen(a, n);
    }
    double bad[] = { 1, NAN, NAN, 1 }, values[2], vectors[4];
    g_assert_false(hn_symmetric_eigen(bad, 2, values, vectors));
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

/* weight [rows, columns], rows one behind the other, becomes one of that rank, whose columns reach along rows. */
static void lower_rank(HnModel *m, const char *name, int64_t rank)
{
    HnTensor *t = ((HnValue *)g_hash_table_lookup(m->graph->values, name))->weight;
    const int64_t rows = t->dims[0], columns = t->n / rows;
    HnRng rng = hn_rng(7);
    float *x = t->data;
    g_autofree float *a = g_new(float, (gsize)(rows * rank)), *b = g_new(float, (gsize)(rank * columns));
    for (int64_t i = 0; i < rows * rank; i++)
        a[i] = (float)hn_rng_normal(&rng) / 4;
    for (int64_t i = 0; i < rank * columns; i++)
        b[i] = (float)hn_rng_normal(&rng) / 4;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;
            for (int64_t r = 0; r < rank; r++)
                sum += a[i * rank + r] * b[r * columns + j];
            x[i * columns + j] = sum;
        }
}

typedef struct {
    HnModel *dense, *small;
    HnData *data;
    HnPruneMap *map;
    double flops, left, forecast; /* forecast: the part that eigenvalues say is lost */
    int rank;
} Factored;

static void factored_clear(Factored *f)
{
    hn_prune_map_free(f->map);
    hn_data_free(f->data);
    hn_model_free(f->dense);
    hn_model_free(f->small);
}

/* The model with half of its operations, of which one layer may become two. */
static void factor(Factored *f, const char *text, const char *weight, int64_t rank, double part)
{
    g_autoptr(GError) error = NULL;
    *f = (Factored){ .dense = test_model(text) };
    if (rank > 0)
        lower_rank(f->dense, weight, rank);
    g_assert_true(hn_graph_infer(f->dense->graph, FALSE, &error));
    HnValue *in[] = { f->dense->graph->inputs->pdata[0] };
    f->data = hn_data_open("random:24", in, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    const HnPruneOptions o = { .backend = &hn_backend_ref, .threads = 1, .data = f->data, .n = 24 };
    f->map = hn_prune_map_new(f->dense, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(f->map);
    g_autoptr(HnSample) sample = hn_data_load(f->data, 0, &error);
    g_assert_true(hn_prune_flops_of_layers(f->dense, sample->in, NULL, costs, &error));
    g_assert_true(hn_prune_flops(f->dense, sample->in, NULL, NULL, &f->flops, &error));
    g_autoptr(HnLowRank) layers = hn_low_rank_new(f->map, &o, costs, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(layers->items->len, ==, 1);
    g_assert_true(hn_low_rank_allocate(layers, part * f->flops, &f->rank));
    f->small = hn_low_rank_model(layers, &f->rank, &error);
    g_assert_no_error(error);
    g_assert_true(hn_graph_verify(f->small->graph, NULL, &error));
    g_assert_true(hn_prune_flops(f->small, sample->in, NULL, NULL, &f->left, &error));
    const HnLowRankLayer *l = &g_array_index(layers->items, HnLowRankLayer, 0);
    for (int64_t i = f->rank; i < l->outs; i++)
        f->forecast += l->values[i] / l->energy;
    for (double goal = 0.5; goal < 1;
         goal += 0.05) { /* whatever is left over, no rank that two layers do not gain by */
        int some;
        g_assert_true(hn_low_rank_allocate(layers, goal * f->flops, &some));
        g_assert_cmpint(some, <=, l->most);
    }
    int none;
    g_assert_false(hn_low_rank_allocate(layers, 0.01 * f->flops, &none));
    g_assert_true(hn_low_rank_allocate(layers, 2 * f->flops, &none));
    g_assert_cmpint(none, ==, rank); /* of a full one it stays whole */
}

static HnTensor *run(HnModel *m, HnTensor *const *in)
{
    HnSession *s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) inputs = g_ptr_array_new();
    g_ptr_array_add(inputs, in[0]);
    g_autoptr(GPtrArray) out = test_run(s, inputs);
    HnTensor *y = hn_tensor_ref(out->pdata[0]);
    hn_session_free(s);
    return y;
}

/* Sum of squares of what differs, relative to the results. */
static double lost(const Factored *f)
{
    g_autoptr(GError) error = NULL;
    double difference = 0, all = 0;
    for (int64_t i = 0; i < 24; i++) {
        g_autoptr(HnSample) s = hn_data_load(f->data, i, &error);
        HnTensor *a = run(f->dense, s->in), *b = run(f->small, s->in);
        g_assert_cmpint(a->n, ==, b->n);
        for (int64_t e = 0; e < a->n; e++) {
            const double x = hn_tensor_get_f64(a, e), d = x - hn_tensor_get_f64(b, e);
            difference += d * d;
            all += x * x;
        }
        hn_tensor_unref(a);
        hn_tensor_unref(b);
    }
    return difference / all;
}

static void test_low_rank(void)
{
    static const struct {
        const char *text, *weight;
    } models[] = {
        { "opset 17\n%y = Conv(%x:f32[N,6,9,8], a:f32[48,6,3,3], b:f32[48]) pads=[1,1,0,1] strides=[2,1]\n", "a" },
        { "opset 17\n%y = Conv(%x:f32[N,16,20], a:f32[64,16,5]) dilations=[2]\n", "a" },
        { "opset 17\n%y = Gemm(%x:f32[N,60], a:f32[48,60], b:f32[48]) transB=1\n", "a" },
        { "opset 17\n%c = Conv(%x:f32[N,48,9,8], a:f32[64,48,3,3])\n%y = Conv(%c, g:f32[96,32,1,1]) group=2\n", "a" },
        { "opset 17\n%y = Gemm(%x:f32[60,7], a:f32[60,48], b:f32[48]) transA=1\n", "a" },
        { "opset 17\n%y = MatMul(%x:f32[N,5,60], a:f32[60,48])\n", "a" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        Factored f;
        factor(&f, models[i].text, models[i].weight, 8, 0.5);
        g_test_message("%s", models[i].text);
        g_assert_cmpint(f.rank, >=, 8);
        g_assert_cmpfloat(f.left, <=, 0.5 * f.flops);
        g_assert_cmpfloat(lost(&f), <=, 1e-9);
        factored_clear(&f);
    }
}

/* Of what is not of a low rank little is lost, and less with a higher one. */
static void test_full_rank(void)
{
    static const char *text = "opset 17\n%y = MatMul(%x:f32[N,20,320], a:f32[320,320])\n";
    double last = 1;
    for (int i = 1; i <= 3; i++) {
        Factored f;
        factor(&f, text, "a", 0, 0.05 + 0.3 * i);
        const double now = lost(&f);
        g_assert_cmpint(f.rank, >, 0);
        g_assert_cmpfloat(now, <, last);
        g_assert_cmpfloat_with_epsilon(now, f.forecast, 1e-4); /* no two layers of that rank lose less */
        last = now;
        factored_clear(&f);
    }
    g_assert_cmpfloat(last, >, 1e-6);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune-low-rank/eigen", test_eigen);
    g_test_add_func("/prune-low-rank/low_rank", test_low_rank);
    g_test_add_func("/prune-low-rank/full_rank", test_full_rank);
    return g_test_run();
}
