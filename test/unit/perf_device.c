/*
 * Times of steps on a device against those of whole runs, and what moves them.
 */
#include <math.h>

#include "perf/device_noise.h"
#include "perf/device_rows.h"

#define ROWS 7
static const HnRowPlace places[ROWS] = { HN_ROW_COPY,   HN_ROW_DEVICE, HN_ROW_DEVICE, HN_ROW_HOST,
                                         HN_ROW_DEVICE, HN_ROW_COPY,   HN_ROW_REST };
static const guint calls[ROWS] = { 1, 1, 2, 1, 1, 1, 0 };

static double sum(const double *ms)
{
    double s = 0;
    for (int i = 0; i < ROWS; i++)
        s += ms[i];
    return s;
}

static double rest_sum(const HnDeviceRest *r)
{
    return r->between + r->waiting + r->outside;
}

/* Marks made each call of a kernel 0.5 ms longer. */
static void test_marks(void)
{
    double ms[ROWS] = { 1, 2.5, 5, 3, 1.5, 1, 0 };
    const HnDeviceTimes t = { .runs = 1, .upload_ms = 1, .download_ms = 1, .kernels_ms = 7, .gaps_ms = 4 };
    HnDeviceRest rest;
    hn_device_rows(ms, calls, places, ROWS, &t, 15, &rest);
    g_assert_cmpfloat_with_epsilon(rest.mark, 0.5, 1e-9);
    g_assert_cmpfloat_with_epsilon(ms[1], 2, 1e-9);
    g_assert_cmpfloat_with_epsilon(ms[2], 4, 1e-9);
    g_assert_cmpfloat_with_epsilon(ms[4], 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(ms[3], 3, 1e-9);
    g_assert_cmpfloat_with_epsilon(rest.between, 0, 1e-9);
    g_assert_cmpfloat_with_epsilon(rest.waiting, 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(rest.outside, 2, 1e-9);
    g_assert_cmpfloat_with_epsilon(sum(ms) + rest_sum(&rest), 15, 1e-9);
}

/* Kernels are shorter than their segment: the rest is between them. */
static void test_between(void)
{
    double ms[ROWS] = { 2, 1, 1, 1, 1, 2, 0 };
    const HnDeviceTimes t = { .runs = 1, .upload_ms = 1, .download_ms = 1, .kernels_ms = 5, .gaps_ms = 1 };
    HnDeviceRest rest;
    hn_device_rows(ms, calls, places, ROWS, &t, 9, &rest);
    g_assert_cmpfloat(rest.mark, ==, 0);
    g_assert_cmpfloat_with_epsilon(ms[0], 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(ms[5], 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(rest.between, 2, 1e-9);
    g_assert_cmpfloat_with_epsilon(rest.outside, 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(sum(ms) + rest_sum(&rest), 9, 1e-9);
}

/* Something is always left of each, and all of it fits. */
static void test_short_steps(void)
{
    double ms[ROWS] = { 1, 0.1, 4, 0, 4, 1, 0 };
    const HnDeviceTimes t = { .runs = 1, .upload_ms = 1, .download_ms = 1, .kernels_ms = 1, .gaps_ms = 0 };
    HnDeviceRest rest;
    hn_device_rows(ms, calls, places, ROWS, &t, 3, &rest);
    g_assert_cmpfloat(ms[1], >, 0);
    g_assert_cmpfloat(ms[1], <, ms[4]);
    g_assert_cmpfloat_with_epsilon(sum(ms) + rest_sum(&rest), 3, 1e-9);
}

/* The device is what it says. */
static void tell(int index, gpointer device, HnDeviceState *out)
{
    (void)index;
    *out = *(const HnDeviceState *)device;
}

static void assert_cause(const HnDeviceState *then, const HnDeviceState *now, const char *cause)
{
    const HnBackend backend = { .name = "told", .state = tell };
    HnDeviceNoise n;
    hn_device_noise_begin(&n, &backend, (gpointer)then);
    g_usleep(2000);
    hn_device_noise_end(&n, &backend, (gpointer)now);
    g_autofree const char **causes = hn_device_noise_causes(&n);
    g_assert_cmpstr(causes[0], ==, cause);
    g_assert_true(cause == NULL || causes[1] == NULL);
}

static void test_noise(void)
{
    const HnDeviceState calm = { .mhz = 1980, .joules = 10, .watts = 300, .processes = 1 };
    HnDeviceState now = calm;
    assert_cause(&calm, &now, NULL);
    now.mhz = 1950;
    assert_cause(&calm, &now, NULL);
    now.mhz = 1900;
    assert_cause(&calm, &now, "device clock");
    now = calm;
    now.capped_ns = 1000000000;
    assert_cause(&calm, &now, "power cap");
    now = calm;
    now.heated_ns = 1000000000;
    assert_cause(&calm, &now, "heat");
    now = calm;
    now.processes = 3;
    assert_cause(&calm, &now, "other process");
}

/* Where nothing is known nothing is a cause. */
static void test_unknown(void)
{
    const HnDeviceState nothing = {
        .mhz = NAN, .joules = NAN, .watts = NAN, .capped_ns = -1, .heated_ns = -1, .processes = -1
    };
    HnDeviceNoise n;
    assert_cause(&nothing, &nothing, NULL);
    hn_device_noise_begin(&n, &hn_backend_ref, NULL);
    hn_device_noise_end(&n, &hn_backend_ref, NULL);
    g_autofree const char **causes = hn_device_noise_causes(&n);
    g_assert_null(causes[0]);
    g_assert_false(n.there);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perf/device/marks", test_marks);
    g_test_add_func("/perf/device/between", test_between);
    g_test_add_func("/perf/device/short-steps", test_short_steps);
    g_test_add_func("/perf/device/noise", test_noise);
    g_test_add_func("/perf/device/unknown", test_unknown);
    return g_test_run();
}
