#include "perf/device_rows.h"

#include <math.h>

#define LEFT 0.2 /* part of a step's time that is always left to it */

const char *hn_row_place_name(HnRowPlace place)
{
    static const char *const names[] = { "host", "device", "copy", "rest" };
    return names[place];
}

typedef struct {
    double *ms;
    const guint *calls;
    const HnRowPlace *places;
    guint n;
} Rows;

static double sum_of(const Rows *r, HnRowPlace place)
{
    double sum = 0;
    for (guint i = 0; i < r->n; i++)
        sum += r->places[i] == place ? r->ms[i] : 0;
    return sum;
}

/* Rows of a place take no more than `most` together; what is missing to it. */
static double fit(const Rows *r, HnRowPlace place, double most)
{
    const double sum = sum_of(r, place), by = sum > most && sum > 0 ? most / sum : 1;
    for (guint i = 0; i < r->n; i++)
        r->ms[i] *= r->places[i] == place ? by : 1;
    return fmax(most - sum, 0);
}

/* What the marks around each step took; ms for each call. */
static double take_marks_off(const Rows *r, double most)
{
    guint calls = 0;
    for (guint i = 0; i < r->n; i++)
        calls += r->places[i] == HN_ROW_DEVICE ? r->calls[i] : 0;
    const double more = calls > 0 ? fmax(sum_of(r, HN_ROW_DEVICE) - most, 0) / calls : 0;
    for (guint i = 0; i < r->n; i++)
        if (r->places[i] == HN_ROW_DEVICE)
            r->ms[i] = fmax(r->ms[i] - more * r->calls[i], LEFT * r->ms[i]);
    return more;
}

void hn_device_rows(double *ms, const guint *calls, const HnRowPlace *places, guint n, const HnDeviceTimes *t,
                    double wall, HnDeviceRest *rest)
{
    const Rows r = { ms, calls, places, n };
    const double copies = t->upload_ms + t->download_ms, outside = wall - copies - t->kernels_ms - t->gaps_ms;
    rest->mark = take_marks_off(&r, t->kernels_ms);
    rest->between = fit(&r, HN_ROW_DEVICE, t->kernels_ms);
    rest->waiting = fit(&r, HN_ROW_HOST, t->gaps_ms) + fit(&r, HN_ROW_COPY, copies);
    rest->outside = fmax(outside, 0);
}
