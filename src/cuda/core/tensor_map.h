/*
 * CUtensorMap, which the driver fills for copies of tiles.
 */
#pragma once

#include <stdint.h>

typedef struct {
#ifdef __cplusplus
    alignas(64)
#else
    _Alignas(64)
#endif
        uint64_t opaque[16];
} HnCuTensorMap;
