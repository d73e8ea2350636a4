/*
 * HnRoofline: what this machine can do at most with so many threads, measured: multiply-adds in registers, and bytes
 * read and written by size of the memory they go through, since what lies in a cache is fast. After S. Williams, A.
 * Waterman and D. Patterson, "Roofline", 2009.
 *
 * The measurement takes about half a second and is kept in $XDG_CACHE_HOME/hone/roofline.ini, one group for each CPU
 * model, instruction set and number of threads.
 */
#pragma once

#include "base/budget.h"

G_BEGIN_DECLS

#define HN_ROOFLINE_TIERS 6

typedef struct {
    int threads;
    double flops;    /* f32 per second, a multiply-add counts 2 */
    double int8_ops; /* the same for 8-bit integers; not below flops */
    struct {
        double bytes;           /* of memory that one pass goes through, all threads together */
        double bytes_per_s;     /* NaN: not measured, the budget had no room */
    } tiers[HN_ROOFLINE_TIERS]; /* from small to large */
    gboolean cached;            /* was not measured now */
} HnRoofline;

/* folder: where to keep it; NULL: as said above. fresh: measure even so. A cache that cannot be written is no error. */
void hn_roofline_get(int threads, const char *folder, gboolean fresh, HnBudget *budget, HnRoofline *out);

/* The least time for so much work, in milliseconds. */
double hn_roofline_ms(const HnRoofline *r, double flops, double bytes, gboolean integer);

/* Bytes per second through memory of this size. */
double hn_roofline_bandwidth(const HnRoofline *r, double bytes);

G_END_DECLS
