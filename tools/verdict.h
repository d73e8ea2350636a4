/*
 * The verdict: lines that the tools which make models print first. What the file is in bytes, how fast the model is,
 * how near its results are, and what was left as it was.
 */
#pragma once

#include "check/score.h"
#include "check/speedup.h"
#include "cli/report.h"

/* Tables and further lines are printed: with -v, and where a page was asked for. */
gboolean hn_verdict_in_full(const HnContext *ctx);

/* "size  34.1 KB, 0.29 of 118 KB"; after: 0: not known */
void hn_verdict_size(HnReport *report, guint64 before, guint64 after);

/* "speed  1.85 times as fast (99.9 %: 1.79 to 1.92), 46.1 us instead of 85.2 us, 2 threads"; s NULL: not measured,
 * and why. */
void hn_verdict_speed(HnReport *report, const HnSpeedup *s, int threads, const char *why);

/* Names in quotes, of the first few: "'conv1', 'conv2' and 4 more"; g_free. names: char *. */
char *hn_verdict_names(const GPtrArray *names);

/* Outputs that no sample says anything of are named in a warning; where all are so, and nobody insists, it is an error:
 * GUARD. */
gboolean hn_verdict_judges(HnContext *ctx, const HnScorer *s, gboolean force, GError **error);
