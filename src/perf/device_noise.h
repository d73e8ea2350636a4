/*
 * What a device did between two moments of a measurement, and what probably moved the times there. Unknown: NaN, or -1.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

typedef struct {
    gboolean there; /* there is a device that tells of itself */
    HnDeviceState before, after;
    double wall_ms;
    double watts;                /* mean */
    double capped_ms, heated_ms; /* clocks were held down by the limit of power, by heat */
    gint64 others;               /* other processes that compute on it */
} HnDeviceNoise;

/* device: what open() returned. Nothing is there where the backend says nothing. */
void hn_device_noise_begin(HnDeviceNoise *n, const HnBackend *backend, gpointer device);
void hn_device_noise_end(HnDeviceNoise *n, const HnBackend *backend, gpointer device);

/* "power cap" and "heat" (each over 1 % of the wall time), "device clock" (over 2 % between start and end), "other
 * process"; NULL at the end. Constant strings in a g_malloc'ed array. */
const char **hn_device_noise_causes(const HnDeviceNoise *n);

G_END_DECLS
