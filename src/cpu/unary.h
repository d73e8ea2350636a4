/*
 * The kernel of all functions of one number; Pow by a constant is one of them.
 */
#pragma once

#include "cpu/cpu.h"

extern const HnKernel hn_cpu_unary;
