/*
 * Levels of instructions, as kernels see them.
 */
#pragma once

#include "base/level.h"
