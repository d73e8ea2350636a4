/*
 * HnElementCode: what instructions of element-wise programs do. Read by kernels of devices, too.
 */
#pragma once

typedef enum {
#define HN_FUNCTION(name) HN_DO_##name,
#define HN_TRUTH_OF(name) HN_DO_##name,
#define HN_PAIR(name) HN_DO_##name,
#define HN_TRUTH_PAIR(name) HN_DO_##name,
#include "run/element_codes.def"
    HN_DO_choose, /* the second of three where the first one is not 0, else the third */
    HN_DO_CODES
} HnElementCode;
