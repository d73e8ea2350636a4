/*
 * Times of a run on a device, step by step, turned into those of the run as it is without looking.
 *
 * Between marks around each step there is more than the step: the marks themselves, and what passes from one kernel to
 * the next. A run with marks between segments alone (hn_session_time_device()) says how long all kernels, all copies
 * and all gaps take in truth, recorded or not. What steps take together beyond that is taken off them, the same for
 * each call, down to a part that is always left; what they leave is between kernels.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

typedef enum {
    HN_ROW_HOST,   /* steps on the host */
    HN_ROW_DEVICE, /* steps of kernels */
    HN_ROW_COPY,   /* from one memory to the other */
    HN_ROW_REST,   /* no step: what is between others */
} HnRowPlace;

const char *hn_row_place_name(HnRowPlace place); /* "host", "device", "copy", "rest" */

/* Of one run, ms. */
typedef struct {
    double between; /* kernels of a segment: the device goes from one to the next */
    double waiting; /* the device, for the host, which computes no step */
    double outside; /* before the first mark and behind the last one */
    double mark;    /* what was taken off each call of a kernel */
} HnDeviceRest;

/* ms[i], calls[i]: of row i of n, in places[i]; those of HN_ROW_REST are left alone. t: of a run that took `wall` ms
 * with marks between segments. Rows and the rest add up to `wall`. */
void hn_device_rows(double *ms, const guint *calls, const HnRowPlace *places, guint n, const HnDeviceTimes *t,
                    double wall, HnDeviceRest *rest);

G_END_DECLS
