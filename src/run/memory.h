/*
 * Memory plan: places of blocks with known lifetimes in one arena.
 */
#pragma once

#include <glib.h>

typedef struct {
    gsize bytes;
    int first, last; /* steps between which the block is alive, both included */
    gsize offset;    /* result, 64-byte aligned */
} HnBlock;

/* Places the blocks so that no two alive at the same time overlap: largest first, each at the lowest gap that fits
 * (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, greedy by size). Returns the
 * bytes needed, or G_MAXSIZE if the sum overflows. O(n log n) where gaps are few; where looking for them takes too
 * long, what is left, which is the smallest, goes on top. Where gaps are left over, the blocks of the fullest steps
 * are placed first instead, those that live longest before others, if that takes less. */
gsize hn_memory_plan(HnBlock *blocks, int n);

/* Largest sum of bytes alive at one step: no plan can need less. */
gsize hn_memory_floor(const HnBlock *blocks, int n);
