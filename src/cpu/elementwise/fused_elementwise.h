/*
 * The kernel of groups of element-wise nodes.
 */
#pragma once

#include "run/backend.h"

extern const HnKernel hn_cpu_fused_elementwise;
