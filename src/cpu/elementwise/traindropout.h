/*
 * What a run of TrainDropout drops by, for its loops.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define HN_DROP_CHUNK 256 /* elements whose random bits are made at once: whole blocks of 4, and whole cache lines */

typedef struct {
    uint64_t seed;
    uint32_t step, salt, threshold;
    float scale; /* 1 / (1 - ratio) */
} HnDrop;
