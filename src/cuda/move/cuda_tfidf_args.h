#pragma once

#include <stdint.h>

/* A number of the pool, and what it is called; by value. */
typedef struct {
    int64_t value;
    int32_t number;
} HnCudaNgramItem;

/* From a node, by an item, to another node; by key. */
typedef struct {
    int64_t key; /* node << 32 | number */
    int32_t node;
} HnCudaNgramStep;

/* x [rows][n] -> item, i32 of the same shape; n-grams of these are counted, u32, in y [rows][width], where in the end
 * are f32. */
typedef struct {
    uint64_t x, item, y;
    uint64_t items, steps, place, weights; /* place: i32 of each node; weights: f32 [width]; 0: all 1 */
    int64_t rows, n, width;
    int64_t distances; /* that items may have, from 1 on */
    int64_t shortest, longest;
    int32_t n_items, n_steps;
    int32_t wide;         /* x is i64, else i32 */
    int32_t flags, weigh; /* whether it is there at all counts; by its weight */
} HnCudaTfIdfArgs;
