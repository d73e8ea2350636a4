#include "perf/occupancy.h"

#include <math.h>

#define WARP 32
#define REGISTER_STEP 256 /* registers, for a warp */
#define WARP_STEP 4       /* warps whose registers fit are a multiple of it */
#define SHARED_STEP 128   /* bytes, for a block */

static guint up(guint n, guint step)
{
    return (n + step - 1) / step * step;
}

/* Blocks of so many warps for whose registers there is room. */
static guint by_registers(const HnDeviceLimits *l, guint registers, guint warps)
{
    const guint each = up(registers * WARP, REGISTER_STEP);
    return each > 0 ? l->registers / each / WARP_STEP * WARP_STEP / warps : G_MAXUINT;
}

static gboolean are_known(const HnDeviceLimits *l)
{
    return l->threads >= WARP && l->blocks > 0 && l->registers > 0 && l->shared > 0 && l->multiprocessors > 0;
}

HnOccupancy hn_occupancy(const HnDeviceLimits *l, const HnDeviceRecord *r)
{
    const guint64 threads = (guint64)r->block[0] * r->block[1] * r->block[2];
    const double grid = (double)r->grid[0] * r->grid[1] * r->grid[2];
    if (!are_known(l) || threads == 0 || threads > l->threads)
        return (HnOccupancy){ 0, NAN, NAN };
    const guint warps = up((guint)threads, WARP) / WARP, most = l->threads / WARP;
    const guint shared = up(r->shared + l->shared_extra, SHARED_STEP);
    guint blocks = MIN(MIN(most / warps, l->blocks), by_registers(l, r->registers, warps));
    blocks = shared > 0 ? MIN(blocks, l->shared / shared) : blocks;
    return (HnOccupancy){ blocks, (double)(blocks * warps) / most,
                          blocks > 0 ? grid / blocks / l->multiprocessors : NAN };
}
