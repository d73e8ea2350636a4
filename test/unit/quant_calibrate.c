/*
 * Calibration held against runs whose every value is an output.
 */
#include <math.h>

#include "base/cpu.h"
#include "check/calibrate.h"
#include "quant/table.h"
#include "run_model.h"

static HnCalibrator *calibrator(HnModel *m, const HnBackend *backend, const HnCalibrateOptions *o)
{
    g_autoptr(GError) error = NULL;
    HnCalibrator *c = hn_calibrator_new(m, backend, o, &error);
    g_assert_no_error(error);
    return c;
}

static void run(HnCalibrator *c, HnTensor *const *in)
{
    g_autoptr(GError) error = NULL;
    gboolean ok = hn_calibrator_run(c, in, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

static void run_text(HnCalibrator *c, const char *text)
{
    g_autoptr(HnTensor) x = test_tensor(text);
    run(c, &x);
}

/* Nearly as many elements in each bin of both, and the same of them in all: numbers that differ in the last digits may
 * be in the next one. */
static void assert_alike(const HnHistogram *h, const HnHistogram *want, const char *what)
{
    uint64_t moved = 0;
    int64_t carry[2] = { 0, 0 };
    g_assert_nonnull(h);
    if (h->n != want->n || h->n_zero != want->n_zero || h->exponent != want->exponent) {
        g_test_message("%s: %" G_GUINT64_FORMAT " elements, %" G_GUINT64_FORMAT " zeros, not %" G_GUINT64_FORMAT
                       " and %" G_GUINT64_FORMAT,
                       what, h->n, h->n_zero, want->n, want->n_zero);
        g_test_fail();
        return;
    }
    for (int sign = 0; sign < 2; sign++)
        for (int i = 0; i < HN_HISTOGRAM_BINS; i++) {
            carry[sign] += h->bins[sign] != NULL ? (int64_t)h->bins[sign][i] : 0;
            carry[sign] -= want->bins[sign] != NULL ? (int64_t)want->bins[sign][i] : 0;
            moved += (uint64_t)ABS(carry[sign]);
        }
    g_assert_cmpuint(moved, <=, want->n / 100);
    g_assert_cmpfloat_with_epsilon((double)h->min, (double)want->min, 1e-4);
    g_assert_cmpfloat_with_epsilon((double)h->max, (double)want->max, 1e-4);
}

static const char layers[] =
    "opset 17 graph g(%x:f32[2,16,12,12]) -> (%out) { %c = Conv(%x, w:f32[24,16,3,3], b:f32[24]) pads=[1,1,1,1] "
    "%r = Relu(%c) %d = Conv(%r, v:f32[8,24,1,1]) %e = Conv(%r, u:f32[8,24,1,1]) %j = Concat(%d, %e) axis=1 "
    "%s = Sigmoid(%j) %m = Mul(%j, %s) %p = GlobalAveragePool(%m) %f = Flatten(%p) "
    "%g = Gemm(%f, k:f32[16,10], l:f32[10]) %out = Softmax(%g) }";
static const char *const names[] = { "x", "c", "r", "d", "e", "j", "s", "m", "p", "f", "g", "out" };

/* Every value is seen once, whole and as it is, though kernels would like to compute several in one and to write parts
 * of one into another. */
static void check_layers(const HnBackend *backend, int threads)
{
    g_autoptr(HnModel) m = test_model(layers), all = test_model(layers);
    for (guint i = 1; i + 1 < G_N_ELEMENTS(names); i++)
        hn_graph_add_output(all->graph, hn_graph_find(all->graph, names[i]));
    g_autoptr(HnSession) s = test_session(all, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnCalibrator) c = calibrator(m, backend, &(HnCalibrateOptions){ .threads = threads });
    HnHistogram want[G_N_ELEMENTS(names)];
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        hn_histogram_init(&want[i], NULL);
    for (uint64_t k = 0; k < 3; k++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 3 + k), out = test_run(s, in);
        run(c, (HnTensor *const *)in->pdata);
        for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
            const HnTensor *t = i == 0 ? in->pdata[0] : out->pdata[i % out->len]; /* `out` is the first of them */
            g_assert_true(hn_histogram_add(&want[i], HN_F32, t->data, 1, t->n, t->n, NULL));
        }
    }
    g_assert_cmpuint(hn_calibrator_samples(c), ==, 3);
    g_assert_cmpuint(hn_calibrator_count(c), ==, G_N_ELEMENTS(names));
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpstr(hn_calibrator_name(c, i), ==, names[i]);
        assert_alike(hn_calibrator_get(c, names[i]), &want[i], names[i]);
        hn_histogram_clear(&want[i]);
    }
    g_assert_null(hn_calibrator_get(c, "w"));
}

static void test_layers(void)
{
    check_layers(&hn_backend_cpu, 1);
    check_layers(&hn_backend_cpu, 3);
    check_layers(&hn_backend_ref, 1);
}

static gboolean wants_all(const HnValue *v, gpointer data)
{
    (void)v;
    (void)data;
    return TRUE;
}

static void count_gaps(const HnValue *v, const HnSeen *seen, gpointer data)
{
    int *gaps = data;
    *gaps += strcmp(v->name, "j") != 0 && seen->pitch > seen->width;
}

/* The model above is one whose values may lie in others with gaps: what test_layers is there for. */
static void test_gaps(void)
{
    int gaps = 0;
    const HnWatch watch = { wants_all, count_gaps, &gaps };
    g_autoptr(HnModel) m = test_model(layers);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .watch = &watch });
    g_autoptr(GPtrArray) in = test_inputs(s, 1), out = test_run(s, in);
    if (hn_cpu_isa() < HN_ISA_AVX2)
        g_test_skip("without AVX2 nothing is laid out with channels last");
    else
        g_assert_cmpint(gaps, ==, 2);
}

typedef struct {
    int64_t n;
    double sum, largest;
} Sum;

static void sum_up(const HnValue *v, const HnSeen *seen, gpointer data)
{
    Sum *s = data;
    const float *x = seen->data;
    for (int64_t r = 0; r < seen->rows && strcmp(v->name, "c") == 0; r++)
        for (int64_t i = 0; i < seen->width; i++) {
            s->n++;
            s->sum += (double)x[r * seen->pitch + i];
            s->largest = fmax(s->largest, fabs((double)x[r * seen->pitch + i]));
        }
}

static void count_padded(const HnStep *s, int depth, gpointer data)
{
    int *padded = data;
    (void)depth;
    for (int k = 0; k < s->n_out; k++)
        *padded += s->out[k].slot != NULL && s->out[k].slot->layout != NULL &&
                   s->out[k].slot->layout->bytes != s->out[k].slot->tensor->bytes;
}

/* A layout may have places for channels that there are not: they are never seen. */
static void test_padded(void)
{
    Sum sums[2] = { { 0 }, { 0 } };
    int padded = 0;
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[1,3,28,28]) -> (%y) { %c = Conv(%x, w:f32[13,3,3,3], b:f32[13]) pads=[1,1,1,1] "
        "%y = MaxPool(%c) kernel_shape=[2,2] }");
    for (int i = 0; i < 2; i++) {
        const HnWatch watch = { wants_all, sum_up, &sums[i] };
        const HnSessionOptions o = { .threads = 1, .watch = &watch, .prefer = "onednn" };
        g_autoptr(HnSession) s = test_session(m, i == 0 ? &hn_backend_cpu : &hn_backend_ref, &o);
        g_autoptr(GPtrArray) in = test_inputs(s, 1), out = test_run(s, in);
        hn_session_foreach_step(s, count_padded, &padded);
    }
    g_assert_cmpint(sums[0].n, ==, 13 * 28 * 28);
    g_assert_cmpint(sums[1].n, ==, 13 * 28 * 28);
    g_assert_cmpfloat_with_epsilon(sums[0].sum, sums[1].sum, 1e-2);
    g_assert_cmpfloat_with_epsilon(sums[0].largest, sums[1].largest, 1e-4);
    if (padded == 0)
        g_test_skip("no kernel of this machine has chosen a padded layout");
}

/* Values in branches and loops, by name; what a sub-graph captures counts once. */
static void test_subgraphs(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%c:bool[], %x:f32[N]) -> (%y) { w:f32[1]={2} %n = Neg(%x) %y = If(%c) "
        "then_branch=graph() -> (%p) { %t = Add(%n, w) %p = Mul(%t, %t) } else_branch=graph() -> (%q) { %q = Exp(%n) } "
        "}");
    g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 1 });
    static const char *const samples[][2] = { { "bool={true}", "f32[2]={3,4}" },
                                              { "bool={false}", "f32[3]={0,1,-1}" },
                                              { "bool={true}", "f32[1]={10}" } };
    for (guint i = 0; i < G_N_ELEMENTS(samples); i++) {
        g_autoptr(HnTensor) a = test_tensor(samples[i][0]), b = test_tensor(samples[i][1]);
        HnTensor *in[] = { a, b };
        run(c, in);
    }
    static const struct {
        const char *name;
        uint64_t n;
        double min, max;
    } want[] = { { "x", 6, -1, 10 }, { "n", 6, -10, 1 },       { "t", 3, -8, -1 },
                 { "p", 3, 1, 64 },  { "q", 3, 1 / G_E, G_E }, { "y", 6, 1 / G_E, 64 } };
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        const HnHistogram *h = hn_calibrator_get(c, want[i].name);
        g_assert_nonnull(h);
        g_assert_cmpuint(h->n, ==, want[i].n);
        g_assert_cmpfloat_with_epsilon((double)h->min, want[i].min, 1e-5);
        g_assert_cmpfloat_with_epsilon((double)h->max, want[i].max, 1e-5);
    }
    g_assert_null(hn_calibrator_get(c, "c"));
}

/* Values called the same in graphs beside each other, in one inside the other and in that of the model, and in two
 * calls of a function: each has a range of its own. */
static void test_same_names(void)
{
    static const char text[] =
        "opset 17 opset own 1 function own::Pick(%w, %s) -> (%r) { opset 17\n"
        "  %r = If(%w) then_branch=graph() -> (%b) { %t = Neg(%s) %b = Mul(%t, %t) }\n"
        "    else_branch=graph() -> (%b) { %b = Identity(%s) } }\n"
        "graph g(%c:bool[], %x:f32[N]) -> (%y, %z, %u, %v) {\n"
        "%y = Loop(three:i64={3}, -, %x) body=graph(%i:i64[], %k:bool[], %a:f32[N]) -> (%k, %t) {\n"
        "  %t = Add(%a, one:f32={1}) }\n"
        "%z = If(%c) then_branch=graph() -> (%p) { %t = Mul(%y, ten:f32={10})\n"
        "    %p = If(%c) then_branch=graph() -> (%q) { %t = Neg(%y) %q = Mul(%t, hundred:f32={100}) }\n"
        "      else_branch=graph() -> (%q) { %q = Identity(%t) } }\n"
        "  else_branch=graph() -> (%p) { %t = Exp(%y) %p = Identity(%t) }\n"
        "%t = Mul(%x, half:f32={0.5})\n"
        "%u = own::Pick(%c, %t)\n"
        "%v = own::Pick(%c, %y) }\n";
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 1 });
    g_autoptr(HnTensor) yes = test_tensor("bool={true}"), x = test_tensor("f32[2]={3,4}");
    HnTensor *in[] = { yes, x };
    run(c, in);
    static const struct {
        const char *name;
        double min, max;
    } want[] = {
        { "t", 1.5, 2 },
        { "y/body/t", 4, 7 },
        { "y", 6, 7 },
        { "z/then_branch/t", 60, 70 },
        { "z/then_branch/p/then_branch/t", -7, -6 },
        { "u/then_branch/b", 2.25, 4 },
        { "v/then_branch/b", 36, 49 },
        { "z", -700, -600 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        const HnHistogram *h = hn_calibrator_get(c, want[i].name);
        g_test_message("%s", want[i].name);
        g_assert_nonnull(h);
        g_assert_cmpfloat_with_epsilon((double)h->min, want[i].min, 1e-5);
        g_assert_cmpfloat_with_epsilon((double)h->max, want[i].max, 1e-5);
    }
    g_assert_cmpuint(hn_calibrator_get(c, "z/else_branch/t")->n, ==, 0);
}

/* Any rank and type, samples of different shapes, empty ones. */
static void test_shapes(void)
{
    static const char *const models[] = { "opset 17 graph g(%x:f32[...]) -> (%y) { %y = Neg(%x) }",
                                          "opset 17 graph g(%x:f16[...]) -> (%y) { %y = Neg(%x) }",
                                          "opset 17 graph g(%x:bf16[...]) -> (%y) { %y = Neg(%x) }",
                                          "opset 17 graph g(%x:f64[...]) -> (%y) { %y = Neg(%x) }" };
    static const char *const types[] = { "f32", "f16", "bf16", "f64" };
    for (guint k = 0; k < G_N_ELEMENTS(models); k++) {
        g_autoptr(HnModel) m = test_model(models[k]);
        g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 1 });
        static const char *const samples[] = {
            "={-2}", "[0]", "[3]={1,0,8}", "[1,2,1,1,3,0]", "[2,2]={0,0,0.5,nan}", "[1]={-inf}"
        };
        for (guint i = 0; i < G_N_ELEMENTS(samples); i++) {
            g_autofree char *text = g_strconcat(types[k], samples[i], NULL);
            run_text(c, text);
        }
        const HnHistogram *h = hn_calibrator_get(c, "y");
        g_assert_cmpuint(h->n, ==, 7);
        g_assert_cmpuint(h->n_zero, ==, 3);
        g_assert_cmpuint(h->n_nan, ==, 1);
        g_assert_cmpuint(h->n_infinite, ==, 1);
        g_assert_true(h->min == -8 && h->max == 2);
        for (int method = 0; method < HN_CALIB_METHODS; method++) {
            HnQuantSpan s;
            g_assert_true(hn_quant_span_of(h, method, 99.99, &(HnQuantizer){ .bits = 8 }, &s));
            g_assert_true(s.lo >= -8 && s.hi <= 2 && s.lo < 0);
        }
    }
}

static const char sequence[] = "opset 17 graph g(%x:f32[1,L,32]) -> (%z) { %y = MatMul(%x, w:f32[32,32]) %t = Tanh(%y) "
                               "%u = Transpose(%t) perm=[0,2,1] %a = MatMul(%t, %u) %z = Softmax(%a) }";

static gsize peak_of(int samples, int longest)
{
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    g_autoptr(HnModel) m = test_model(sequence);
    {
        g_autoptr(HnCalibrator) c =
            calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 1, .budget = budget });
        for (int i = 0; i < samples; i++) {
            const int64_t dims[] = { 1, longest - i * 7 % 40, 32 };
            g_autoptr(HnTensor) x = test_random(HN_F32, 3, dims, (uint64_t)i);
            run(c, &x);
        }
    }
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    return hn_budget_peak(budget);
}

/* The same for 8 samples and for 512, each of another length. */
static void test_memory(void)
{
    const gsize few = peak_of(8, 64), many = peak_of(512, 64);
    g_assert_cmpuint(many, <=, few + few / 20);
}

/* Refused before it starts, and the figure is what is needed in the end. */
static void test_forecast(void)
{
    gsize forecast = 0;
    for (int limited = 0; limited < 3; limited++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnBudget) budget = hn_budget_new(limited == 0 ? 0 : limited == 1 ? forecast / 2 : forecast * 11 / 10);
        g_autoptr(HnModel) m = test_model(sequence);
        g_autoptr(HnCalibrator) c =
            calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 1, .budget = budget });
        const int64_t dims[] = { 1, 48, 32 };
        g_autoptr(HnTensor) x = test_random(HN_F32, 3, dims, 1);
        gboolean ok = hn_calibrator_prepare(c, &x, limited == 0 ? &forecast : NULL, &error);
        if (limited == 1) {
            g_assert_false(ok);
            g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
            continue;
        }
        g_assert_no_error(error);
        for (int i = 0; i < 20; i++)
            run(c, &x);
        g_assert_cmpuint(hn_budget_peak(budget), <=, forecast);
        g_assert_cmpuint(hn_budget_peak(budget), >=, forecast / 2);
    }
}

static void test_interrupted(void)
{
    g_autoptr(GError) error = NULL;
    gint cancel = 0;
    const HnProgress progress = { .cancel = &cancel };
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N]) -> (%y) { %y = Neg(%x) }");
    g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .progress = &progress });
    run_text(c, "f32[2]={1,2}");
    cancel = 1;
    g_autoptr(HnTensor) x = test_tensor("f32[1]={7}");
    g_assert_false(hn_calibrator_run(c, &x, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_INTERRUPTED);
    g_assert_cmpuint(hn_calibrator_samples(c), ==, 1);
    g_assert_true(hn_calibrator_get(c, "x")->max == 2);
}

static void test_asked(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(layers);
    const char *const two[] = { "f", "r", NULL }, *const wrong[] = { "r", "w", NULL };
    g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .values = two });
    g_assert_cmpuint(hn_calibrator_count(c), ==, 2);
    g_assert_cmpstr(hn_calibrator_name(c, 0), ==, "r");
    const int64_t dims[] = { 2, 16, 12, 12 };
    g_autoptr(HnTensor) x = test_random(HN_F32, 4, dims, 1);
    run(c, &x);
    g_assert_cmpuint(hn_calibrator_get(c, "r")->n, ==, 2 * 24 * 144);
    g_assert_cmpuint(hn_calibrator_get(c, "f")->n, ==, 2 * 16);
    g_assert_null(hn_calibrator_get(c, "c"));
    g_assert_null(hn_calibrator_new(m, &hn_backend_cpu, &(HnCalibrateOptions){ .values = wrong }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_nonnull(strstr(error->message, "'w'"));
}

static void assert_same_histogram(const HnHistogram *a, const HnHistogram *b)
{
    g_assert_cmpuint(a->n, ==, b->n);
    g_assert_cmpuint(a->n_zero, ==, b->n_zero);
    g_assert_cmpint(a->exponent, ==, b->exponent);
    g_assert_true(a->min == b->min && a->max == b->max);
    for (int i = 0; i < 2 * HN_HISTOGRAM_BINS; i++) {
        const uint64_t *x = a->bins[i % 2], *y = b->bins[i % 2];
        g_assert_cmpuint(x != NULL ? x[i / 2] : 0, ==, y != NULL ? y[i / 2] : 0);
    }
}

/* What all samples but one show, from one pass over all of them, is what a pass over these alone shows. */
static void test_without(void)
{
    g_autoptr(HnModel) m = test_model(layers), other = test_model(layers);
    g_autoptr(HnCalibrator) all = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 2, .apart = TRUE });
    const int64_t dims[] = { 2, 16, 12, 12 };
    for (uint64_t left = 0; left <= 4; left++) { /* the last time: none is left out */
        g_autoptr(GError) error = NULL;
        g_autoptr(HnCalibrator) some = calibrator(other, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 2 });
        for (uint64_t i = 0; i < 4; i++) {
            g_autoptr(HnTensor) x = test_random(HN_F32, 4, dims, i);
            for (int64_t k = 0; k < x->n; k++)
                ((float *)x->data)[k] *= i == 1 ? 40.0F : 1.0F;
            if (left == 0)
                run(all, &x);
            if (i != left)
                run(some, &x);
        }
        g_autoptr(HnCalibrator) rest = hn_calibrator_without(all, left, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(hn_calibrator_samples(rest), ==, hn_calibrator_samples(some));
        for (guint k = 0; k < hn_calibrator_count(some); k++) {
            const char *name = hn_calibrator_name(some, k);
            const HnSpread *a = hn_calibrator_spread(rest, name), *b = hn_calibrator_spread(some, name);
            g_assert_cmpstr(hn_calibrator_name(rest, k), ==, name);
            assert_same_histogram(hn_calibrator_get(rest, name), hn_calibrator_get(some, name));
            g_assert_cmpmem(a, sizeof *a, b, sizeof *b);
            if (left == 4)
                assert_same_histogram(hn_calibrator_get(all, name), hn_calibrator_get(some, name));
        }
    }
}

/* A stream of samples from a file, prefetched. */
static void test_stream(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(layers);
    g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = 2 });
    HnValue *in[] = { (HnValue *)hn_calibrator_input(c, 0) };
    g_autoptr(HnData) d =
        hn_data_open("random:5", in, hn_calibrator_n_inputs(c), &(HnDataOptions){ .seed = 1 }, &error);
    g_assert_no_error(error);
    g_autoptr(HnDataIter) it = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = 1 });
    g_assert_true(hn_calibrator_stream(c, it, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(hn_calibrator_samples(c), ==, 5);
    g_assert_cmpuint(hn_calibrator_get(c, "x")->n, ==, 5 * 2 * 16 * 144);
}

static char *table_of(int threads, HnQuantPlan *p)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(layers);
    g_autoptr(HnCalibrator) c = calibrator(m, &hn_backend_cpu, &(HnCalibrateOptions){ .threads = threads });
    const int64_t dims[] = { 2, 16, 12, 12 };
    for (uint64_t i = 0; i < 4; i++) {
        g_autoptr(HnTensor) x = test_random(HN_F32, 4, dims, i);
        run(c, &x);
    }
    const HnCalibTableOptions o = { HN_CALIB_PERCENTILE, 99.9, { .bits = 8 }, "samples" };
    g_autoptr(JsonNode) table = hn_calib_table(c, &o);
    gboolean ok = hn_calib_table_apply(table, p, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    guint n_wider = 0;
    for (guint i = 0; i < hn_calibrator_count(c); i++) {
        const HnValue *v = hn_graph_find(m->graph, hn_calibrator_name(c, i));
        const HnQuantSpan *got = hn_quant_plan_span(p, v);
        HnQuantSpan want;
        g_assert_true(hn_quant_span_of(hn_calibrator_get(c, v->name), o.method, o.percentile, &o.quantizer, &want));
        const HnQuantSpan seen = want;
        hn_spread_widen(hn_calibrator_spread(c, v->name), &want.lo, &want.hi);
        n_wider += want.hi - want.lo > seen.hi - seen.lo;
        g_assert_true(got != NULL && got->lo == want.lo && got->hi == want.hi);
    }
    g_assert_cmpuint(n_wider, >, 0);
    return json_to_string(table, TRUE);
}

static void widened(const double (*seen)[2], int n, double lo, double hi, double *to)
{
    HnSpread s = { 0 };
    for (int i = 0; i < n; i++)
        hn_spread_add(&s, seen[i][0], seen[i][1]);
    to[0] = lo;
    to[1] = hi;
    hn_spread_widen(&s, &to[0], &to[1]);
}

/* By hand, and where there is nothing to add. */
static void test_spread(void)
{
    static const double seen[][2] = { { -1, 1 }, { -1, 3 }, { -0.5, 2 } }, above[][2] = { { 1, 2 }, { 2, 3 } },
                        below[][2] = { { -1, 1 }, { -3, 1 } };
    double to[2];
    widened(seen, 1, -1, 1, to); /* one sample says nothing of others */
    g_assert_true(to[0] == -1 && to[1] == 1);
    widened(seen, 2, -1, 3, to);
    g_assert_cmpfloat(to[0], ==, -1); /* both end there */
    g_assert_cmpfloat_with_epsilon(to[1], 3 + 0.78 * sqrt(2) * log(1.5), 1e-12);
    widened(seen, 3, -0.5, 1.5, to); /* a cut keeps its part of what was seen */
    g_assert_cmpfloat_with_epsilon(to[1], 1.5 * (1 + 0.78 * log(4 / 3.0) / 3), 1e-12);
    g_assert_cmpfloat(to[0], ==, -0.5);
    widened(below, 2, -3, 1, to);
    g_assert_cmpfloat_with_epsilon(to[0], -3 - 0.78 * sqrt(2) * log(1.5), 1e-12);
    g_assert_cmpfloat(to[1], ==, 1);
    widened(above, 2, 1, 3, to); /* 0 is in the range anyway */
    g_assert_true(to[0] == 1 && to[1] > 3);
}

/* The largest of n Gumbel numbers, widened, is on average the largest of n + 1; of 64 next to nothing is added. */
static void test_spread_mean(void)
{
    static const int counts[] = { 2, 4, 16, 64 };
    HnRng rng = hn_rng(5);
    for (gsize k = 0; k < G_N_ELEMENTS(counts); k++) {
        const int n = counts[k], trials = 20000;
        double sum = 0, next = 0;
        for (int i = 0; i < trials; i++) {
            HnSpread s = { 0 };
            double most = 0, to[2] = { 0, 0 };
            for (int j = 0; j <= n; j++) {
                const double x = 10 - log(-log(hn_rng_range(&rng, 1e-9, 1 - 1e-9)));
                if (j < n)
                    hn_spread_add(&s, 0, x);
                to[1] = j < n ? fmax(to[1], x) : to[1];
                most = fmax(most, x);
            }
            hn_spread_widen(&s, &to[0], &to[1]);
            sum += to[1] / trials;
            next += most / trials;
        }
        g_assert_cmpfloat_with_epsilon(sum, next, n == 2 ? 0.15 : 0.05); /* of two, deviations are told too small */
    }
}

/* The same bytes each time; what is wrong in a table is an error that names it. */
static void test_table(void)
{
    const HnQuantOptions o = { .activations = HN_U8 };
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&o);
    g_autofree char *a = table_of(1, p), *b = table_of(1, p);
    g_assert_cmpstr(a, ==, b);
    g_assert_nonnull(strstr(a, "\"percentile\" : 99.9"));
    static const char *const wrong[][2] = {
        { "[]", "no calibration table" },
        { "{\"schema\": \"hone.bench/1\", \"tensors\": {}}", "no calibration table" },
        { "{\"schema\": 3, \"tensors\": {}}", "no calibration table" },
        { "{\"schema\": \"hone.calibration/1\", \"tensors\": []}", "no calibration table" },
        { "{\"schema\": \"hone.calibration/1\", \"tensors\": {\"new\": {\"lo\": 0, \"hi\": 1}, \"k\": 3}}", "'k'" },
        { "{\"schema\": \"hone.calibration/1\", \"tensors\": {\"k\": {\"lo\": 0}}}", "'k'" },
        { "{\"schema\": \"hone.calibration/1\", \"tensors\": {\"k\": {\"lo\": 2, \"hi\": 1}}}", "'k'" },
        { "{\"schema\": \"hone.calibration/1\", \"tensors\": {\"k\": {\"lo\": \"0\", \"hi\": 1}}}", "'k'" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) table = json_from_string(wrong[i][0], NULL);
        g_assert_nonnull(table);
        g_assert_false(hn_calib_table_apply(table, p, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
        g_assert_nonnull(strstr(error->message, wrong[i][1]));
    }
    g_assert_false(g_hash_table_contains(p->spans, "new"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/calibrate/layers", test_layers);
    g_test_add_func("/check/calibrate/gaps", test_gaps);
    g_test_add_func("/check/calibrate/padded", test_padded);
    g_test_add_func("/check/calibrate/subgraphs", test_subgraphs);
    g_test_add_func("/check/calibrate/same-names", test_same_names);
    g_test_add_func("/check/calibrate/shapes", test_shapes);
    g_test_add_func("/check/calibrate/memory", test_memory);
    g_test_add_func("/check/calibrate/forecast", test_forecast);
    g_test_add_func("/check/calibrate/interrupted", test_interrupted);
    g_test_add_func("/check/calibrate/asked", test_asked);
    g_test_add_func("/check/calibrate/without", test_without);
    g_test_add_func("/check/calibrate/stream", test_stream);
    g_test_add_func("/check/calibrate/table", test_table);
    g_test_add_func("/check/spread/by-hand", test_spread);
    g_test_add_func("/check/spread/mean", test_spread_mean);
    return g_test_run();
}
