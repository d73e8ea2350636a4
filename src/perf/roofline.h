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
    double flops;      /* f32 per second, a multiply-add counts 2 */
    double int8_ops;   /* the same for 8-bit integers; not below flops */
    double half_flops; /* of halves: another number than flops on devices only */
    struct {
        double bytes;           /* of memory that one pass goes through, all threads together */
        double bytes_per_s;     /* NaN: not measured, the budget had no room */
    } tiers[HN_ROOFLINE_TIERS]; /* from small to large */
    gboolean cached;            /* was not measured now */
} HnRoofline;

/* folder: where to keep it; NULL: as said above. fresh: measure even so. A cache that cannot be written is no error. */
void hn_roofline_get(int threads, const char *folder, gboolean fresh, HnBudget *budget, HnRoofline *out);

/* The group of that name in the cache, if it is there, and into it; what is not all known is not kept. */
gboolean hn_roofline_load(const char *folder, const char *group, HnRoofline *r);
void hn_roofline_store(const char *folder, const char *group, const HnRoofline *r);

/* Whose rate counts. */
typedef enum { HN_RATE_F32, HN_RATE_INT8, HN_RATE_HALF } HnRate;

/* What the least time is due to. */
typedef enum {
    HN_BOUND_NONE,
    HN_BOUND_COMPUTE,
    HN_BOUND_MEMORY, /* bytes at the pace of the memory that they fit into */
    HN_BOUND_CACHE,  /* they came faster: at the pace of a nearer cache, in which some of them still lay */
} HnBound;

const char *hn_bound_name(HnBound bound); /* "compute", ...; NULL for NONE */

/*
 * *limit_ms: the least time for so much work that took `ms` milliseconds. It is never above ms: bytes that came faster
 * than the memory that they fit into can give them came from a nearer cache; what was faster than even that, or than
 * what the processor was seen to compute, is at its limit.
 */
HnBound hn_roofline_limit(const HnRoofline *r, double flops, double bytes, HnRate rate, double ms, double *limit_ms);

/* Bytes per second through memory of this size. */
double hn_roofline_bandwidth(const HnRoofline *r, double bytes);

G_END_DECLS
