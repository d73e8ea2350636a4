/*
 * Measuring several instances that run at once, each in a thread of its own: what a loaded server sees.
 *
 * The threads start together and run for a slice of half a second (or twenty runs, where those take longer), end with
 * it, and so on. A run that makes caches warm, and does not count, begins each slice.
 */
#pragma once

#include "perf/measure.h"

G_BEGIN_DECLS

/* runners: n of them, whose inputs each take turns by themselves. out->wall is the time in which threads ran, out->busy
 * the sum of what all runs took. Options mean what they mean to hn_measure(), --runs all threads together. */
gboolean hn_measure_streams(const HnRunner *runners, int n, const HnMeasureOptions *options, const HnProgress *progress,
                            HnMeasured *out, GError **error);

G_END_DECLS
