/*
 * What a device with memory of its own says, as hone-bench and hone-profile report it.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "perf/device_noise.h"
#include "run/session.h"

/* Bytes; -1: not known. */
typedef struct {
    gint64 arena, weights; /* as planned: values between steps, and what lies beside them; weights and packs */
    gint64 allocated;      /* in fact, by this process */
    gint64 context;        /* what the driver takes for it: context and code */
    gint64 total, free;    /* of the device, all processes together */
} HnDeviceBytes;

/* before: the state before the device was opened. */
void hn_device_bytes(const HnSession *s, const HnDeviceState *before, HnDeviceBytes *out);

/* The members "name", "emulated", "memory_bytes" and "noise" of o. */
void hn_report_device(const HnDeviceNoise *n, const HnDeviceBytes *bytes, JsonObject *o);

/* "noise on the device: power cap 12 ms, device clock"; NULL: there was none (g_free). */
char *hn_device_noise_line(const HnDeviceNoise *n);
