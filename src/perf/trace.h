/*
 * Profiles for other programs to draw.
 *
 * The trace is in the Chrome trace event format (an object with "traceEvents"), which Perfetto and chrome://tracing
 * open. It holds runs chosen at random from all profiled ones, as many as HN_TRACE_SPANS steps, and never more than
 * HN_TRACE_BYTES. Events say which kernel ran, on which types and shapes, and how much work that is; they lie one
 * behind the other or one within the other, to the nanosecond. Beside each run there is one with the records that a
 * device keeps, if it does: its kernels and copies under their own names.
 *
 * Folded stacks are what flame graph programs read: a line for each node, "model;scope;...;node nanoseconds". Scopes
 * are nodes whose sub-graph holds it, and what a name like "/encoder/conv1/Conv" has before its last '/'. Two more
 * lines are "outside nodes" and "disturbed": all of them add up to the unprofiled median.
 */
#pragma once

#include "perf/profile.h"

G_BEGIN_DECLS

#define HN_TRACE_SPANS 120000
#define HN_TRACE_BYTES (48 * 1000 * 1000)

gboolean hn_trace_write(const HnProfile *p, const char *model, const char *path, GError **error);
gboolean hn_folded_write(const HnProfile *p, const char *model, const char *path, GError **error);

G_END_DECLS
