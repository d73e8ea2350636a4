/*
 * Occupancy: how much of what a multiprocessor can hold a kernel fills with its warps, by arithmetic from the device's
 * limits (as NVIDIA's occupancy calculator does it, for compute capability 8.0 and later).
 */
#pragma once

#include "run/device_trace.h"

G_BEGIN_DECLS

typedef struct {
    guint blocks;     /* of the kernel that a multiprocessor holds at a time */
    double occupancy; /* part of its warps that these are; NaN: the limits are not known */
    double waves;     /* how often all multiprocessors are filled by the grid */
} HnOccupancy;

/* r: of a kernel. */
HnOccupancy hn_occupancy(const HnDeviceLimits *l, const HnDeviceRecord *r);

G_END_DECLS
