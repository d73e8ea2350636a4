/*
 * Sums over the records of a device (run/device_trace.h): kernels and copies by row of a profile, and the times between
 * them.
 */
#pragma once

#include "run/device_trace.h"

G_BEGIN_DECLS

/* The same kernel, or copy of as many bytes, of one row. */
typedef struct {
    int row;
    HnDeviceRecord record; /* the first one */
    double count, ms;      /* over all runs; of what several rows share each has its part */
} HnWorkSum;

/* Between two pieces of work that follow each other nothing ran. */
typedef struct {
    int before, after; /* rows; -1: of no row */
    guint64 count;
    double ms, longest; /* over all runs, and of one */
} HnWorkGap;

typedef struct {
    GHashTable *sums;                      /* HnWorkSum * */
    GHashTable *gaps;                      /* HnWorkGap * */
    double runs, pieces, busy_ms, idle_ms; /* over all runs; idle: the gaps */
} HnDeviceWork;

void hn_device_work_init(HnDeviceWork *w);
void hn_device_work_clear(HnDeviceWork *w);

/* A run. rows[i]: of work[i], -1: none. */
void hn_device_work_add(HnDeviceWork *w, const GArray *records, const GArray *work, const int *rows);

/* The same, the longest together first (HnWorkSum *, HnWorkGap *). */
GPtrArray *hn_device_work_sums(const HnDeviceWork *w);
GPtrArray *hn_device_work_gaps(const HnDeviceWork *w);

const char *hn_work_kind_name(HnWorkKind kind); /* "kernel", "upload", "download", "copy", "fill" */

G_END_DECLS
