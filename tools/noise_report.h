/*
 * What disturbed a measurement, as hone-bench and hone-profile report it.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "perf/noise.h"
#include "perf/outliers.h"

/* The member "noise" of o. */
void hn_report_noise(const HnNoise *n, JsonObject *o);

/* The member "outliers" of o: the worst of them one by one, and what happened in them. */
void hn_report_outliers(const HnOutliers *x, JsonObject *o);

/* "noise in 2.1 s: waiting 310 ms, clock"; NULL: there was none (g_free). */
char *hn_noise_line(const HnNoise *n);

/* "12 of 30000 runs took over 1.5 x the median, up to 3.1 ms: preempted 9, unknown 3"; NULL: none did (g_free). */
char *hn_outliers_line(const HnOutliers *x, guint64 runs);
