/*
 * Calibration by hand: time, memory and ranges, to be held against other tools' (calibrate.py).
 *
 *   perf-calibrate MODEL DATA [-t N] [--values FILE] [--method NAME] [--percentile P] [--samples N] [--shapes S]
 *   perf-calibrate --counting          elements a second that a histogram takes in
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/rng.h"
#include "cpu/core/cpu_backend.h"
#include "onnx/onnx.h"
#include "check/calibrate.h"
#include "quant/calib_method.h"

static int threads, samples = 16;
static double percentile = 99.99;
static char *values, *method, *shapes;
static gboolean counting;

static const GOptionEntry entries[] = {
    { "threads", 't', 0, G_OPTION_ARG_INT, &threads, "threads", "N" },
    { "values", 0, 0, G_OPTION_ARG_FILENAME, &values, "names of values, a line each; all by default", "FILE" },
    { "method", 0, 0, G_OPTION_ARG_STRING, &method, "minmax, percentile, entropy, mse", "NAME" },
    { "percentile", 0, 0, G_OPTION_ARG_DOUBLE, &percentile, "of that method", "P" },
    { "samples", 0, 0, G_OPTION_ARG_INT, &samples, "first so many of the data", "N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING, &shapes, "of made-up samples", "NAME:1x3x224x224" },
    { "counting", 0, 0, G_OPTION_ARG_NONE, &counting, "the histogram alone", NULL },
    { NULL },
};

static double seconds(void)
{
    return (double)hn_now_ns() * 1e-9;
}

/* Normally spread numbers, those of them below 0 cut off or not. */
static void count_floats(gboolean relu, int64_t n)
{
    g_autofree float *x = g_new(float, n);
    HnRng rng = hn_rng(1);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)hn_rng_normal(&rng);
        x[i] = relu && x[i] < 0 ? 0 : x[i];
    }
    double best = INFINITY;
    for (int k = 0; k < 20; k++) {
        HnHistogram h;
        hn_histogram_init(&h, NULL);
        const double t = (double)hn_thread_cpu_ns() * 1e-9;
        for (int64_t done = 0; done < (1 << 22); done += n)
            if (!hn_histogram_add(&h, HN_F32, x, 1, n, n, NULL))
                return;
        best = MIN(best, (double)hn_thread_cpu_ns() * 1e-9 - t);
        hn_histogram_clear(&h);
    }
    printf("%s, tensors of %" G_GINT64_FORMAT ": %.2f G elements/s\n", relu ? "relu" : "normal", n,
           (1 << 22) * 1e-9 / best);
}

static gboolean calibrate(const char *path, const char *source, GError **error)
{
    double t0 = seconds();
    g_autoptr(HnModel) m = hn_onnx_read_file(path, NULL, error);
    if (m == NULL)
        return FALSE;
    g_autofree char *text = NULL;
    g_auto(GStrv) names = NULL;
    if (values != NULL) {
        if (!g_file_get_contents(values, &text, NULL, error))
            return FALSE;
        names = g_strsplit(g_strchomp(text), "\n", -1);
    }
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    HnCalibrateOptions o = { .values = (const char *const *)names, .threads = threads, .budget = budget };
    g_autoptr(HnCalibrator) c = hn_calibrator_new(m, &hn_backend_cpu, &o, error);
    g_autoptr(HnShapes) fixed = hn_shapes_new();
    if (c == NULL || (shapes != NULL && !hn_shapes_parse(fixed, shapes, error)))
        return FALSE;
    g_autoptr(GPtrArray) inputs = g_ptr_array_new();
    for (int i = 0; i < hn_calibrator_n_inputs(c); i++)
        g_ptr_array_add(inputs, (gpointer)hn_calibrator_input(c, i));
    g_autoptr(HnData) d = hn_data_open(source, (HnValue *const *)inputs->pdata, (int)inputs->len,
                                       &(HnDataOptions){ .budget = budget, .shapes = fixed }, error);
    if (d == NULL)
        return FALSE;
    g_autoptr(HnDataIter) it = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = 1, .limit = samples });
    double t1 = seconds();
    if (!hn_calibrator_stream(c, it, error))
        return FALSE;
    double t2 = seconds();
    HnCalibMethod how = HN_CALIB_PERCENTILE;
    if (method != NULL && !hn_calib_method_parse(method, &how, error))
        return FALSE;
    for (guint i = 0; i < hn_calibrator_count(c); i++) {
        const char *name = hn_calibrator_name(c, i);
        HnQuantSpan span;
        if (hn_quant_span_of(hn_calibrator_get(c, name), how, percentile, &(HnQuantizer){ .bits = 8 }, &span))
            printf("%s\t%.9g\t%.9g\n", name, span.lo, span.hi);
    }
    double t3 = seconds();
    HnMem mem;
    hn_mem_read(&mem);
    fprintf(stderr,
            "%" G_GUINT64_FORMAT " samples, %u values: open %.3f s, pass %.3f s, ranges %.3f s; "
            "processors' time %.3f s; budget peak %.1f MB, process peak %.1f MB\n",
            hn_calibrator_samples(c), hn_calibrator_count(c), t1 - t0, t2 - t1, t3 - t2,
            (double)hn_process_cpu_ns() * 1e-9, (double)hn_budget_peak(budget) * 1e-6, (double)mem.peak_rss * 1e-6);
    return TRUE;
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("MODEL DATA");
    GError *error = NULL;
    mallopt(M_MMAP_THRESHOLD, 1 << 17); /* set, it stays: plans of ever new shapes leave no gaps in the heap */
    g_option_context_add_main_entries(context, entries, NULL);
    if (g_option_context_parse(context, &argc, &argv, &error) && counting) {
        printf("%s\n", hn_cpu_isa_name(hn_cpu_isa()));
        for (int64_t n = 1000; n <= 1000000; n *= 10)
            for (int relu = 0; relu < 2; relu++)
                count_floats(relu, n);
        return 0;
    }
    if (error == NULL && argc != 3)
        g_set_error_literal(&error, HN_ERROR, HN_ERROR_USAGE, "a model and data are needed");
    if (error != NULL || !calibrate(argv[1], argv[2], &error)) {
        fprintf(stderr, "perf-calibrate: %s\n", error->message);
        return 1;
    }
    return 0;
}
