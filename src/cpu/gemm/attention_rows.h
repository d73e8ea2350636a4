/*
 * Attention of a few queries: what a decoder with a cache does in each step.
 */
#pragma once

#include "run/backend.h"

extern const HnKernel hn_cpu_attention_rows;
