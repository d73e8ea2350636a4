/*
 * HnDeviceState: what a device says of itself at a moment, for reports. Unknown: NaN, or -1.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_DEVICE_NAME 96

struct HnDeviceState {
    char name[HN_DEVICE_NAME]; /* "" where it is not known */
    gboolean emulated;         /* nothing there takes time: figures say nothing about speed */

    /* Bytes. */
    gint64 total;     /* the device has */
    gint64 free;      /* of these, by the driver: known where the device is open */
    gint64 used;      /* by all processes, by the management library: known before it is opened, too */
    gint64 allocated; /* by this process through HnMemory.alloc */

    /* By the management library. */
    double mhz, memory_mhz; /* clocks at the moment */
    double celsius, watts, limit_watts;
    double busy;                 /* part of the latest moments in which kernels ran */
    double joules;               /* taken since the driver was loaded */
    gint64 capped_ns, heated_ns; /* for which clocks were lower than asked for: by the limit of power, by heat */
    gint64 processes;            /* that compute on it, this one included */
};
typedef struct HnDeviceState HnDeviceState;

G_END_DECLS
