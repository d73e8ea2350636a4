/*
 * The CPU backend: oneDNN and own kernels, chosen by rules on type, size and instruction set.
 */
#pragma once

#include "run/backend.h"

extern const HnBackend hn_backend_cpu;
