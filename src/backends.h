/*
 * Devices by name, for tools: the one place that knows all backends.
 */
#pragma once

#include "run/session.h"

/* "cpu", "null", "ref"; "cuda" and "cuda:N" where that backend is there. Errors: USAGE for a name that is none,
 * UNSUPPORTED for a device that this build or machine does not have: never a silent fall-back. */
const HnBackend *hn_backend_find(const char *device, GError **error);
