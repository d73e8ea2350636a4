/*
 * What a device can do at most, measured: products of large matrices as its kernels compute them, by type, and bytes
 * read and written by an element-wise operator, by size. Kept as the CPU's is (perf/roofline.h), by the device's name.
 */
#pragma once

#include "perf/roofline.h"
#include "run/device.h"

G_BEGIN_DECLS

/* What cannot be measured stays NaN, or 0. An emulated device is measured anew each time, in small sizes. */
void hn_roofline_device(HnDevice *device, const HnDeviceState *state, const char *folder, gboolean fresh,
                        HnRoofline *out);

G_END_DECLS
