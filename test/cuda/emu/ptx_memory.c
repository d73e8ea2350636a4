#include "ptx_each.h"
#include <stdlib.h>

/* Loads, stores and atomics, and what is checked about each byte. */

void ptx_addresses(PtxWarp *w, const PtxInst *in, int operand, int64_t plus, uint32_t mask, uint64_t *address)
{
    const void *row = ptx_row(w, in->o[operand]);
    if (in->wide >> operand & 1) {
        const uint64_t *a = row;
        EACH({ address[l] = a[l] + (uint64_t)plus; });
    } else {
        const uint32_t *a = row;
        EACH({ address[l] = a[l] + (uint32_t)plus; });
    }
}

/* --- races --- */

static const char *deed(PtxUse use)
{
    return use == USE_READ ? "reads" : use == USE_WRITE ? "writes" : "changes atomically";
}

_Noreturn static void race(PtxWarp *w, const PtxInst *in, int l, PtxUse use, const char *where, uint64_t address,
                           bool wrote, const char *who, unsigned number)
{
    ptx_fault(w, in, l, FAULT_OTHER, "race: %s %s 0x%" G_GINT64_MODIFIER "x that %s %u %s with no barrier between",
              deed(use), where, address, who, number, wrote ? "wrote" : "read");
}

/* Whether what a warp did at a time is ordered before what this one does now; else *who says which one. */
static bool ordered(const PtxWarp *w, uint32_t time, uint8_t warp, const char **who, unsigned *number)
{
    const PtxLaunch *a = w->launch;
    const PtxBlock *b = w->block;
    if (time < a->began)
        return true;
    uint32_t owner = time == b->time ? b->index : g_array_index(a->blocks_of_time, uint32_t, time - a->began);
    if (owner == b->index) {
        *who = "warp";
        *number = warp;
        return warp == w->index || (warp == PTX_MANY ? time < w->newest : time < w->clock[warp & 31]);
    }
    *who = "block";
    *number = owner;
    return time < b->acquired && a->published[owner] > time;
}

/* Bytes came by a copy that the warp itself began, and has not waited for. */
static inline bool own_copy(const PtxWarp *w, const PtxStamp *s, uint32_t bytes)
{
    return s->wrote_bytes & PTX_BY_COPY && s->wrote_bytes & bytes && s->wrote >= w->launch->began &&
           s->writer == w->index && s->wrote >= w->clock[w->index];
}

/* Lanes of one warp are threads, too: between what one of them writes and another one reads, or reads before, is a
 * barrier of these lanes. What two of them write to one place without one must be the same: `again`, see same_values().
 */
static inline void stamp_lane(PtxWarp *w, const PtxInst *in, int l, PtxStamp *s, uint32_t bytes, PtxUse use,
                              const char *where, uint64_t address)
{
    const uint32_t time = w->block->time;
    uint8_t *last = use == USE_READ ? &s->read_lane : &s->wrote_lane;
    if (bytes != 3) { /* single bytes are of a lane each: that is not kept */
        *last = PTX_SOME;
        return;
    }
    if (use == USE_READ && s->wrote == time && s->writer == w->index && s->wrote_bytes & bytes &&
        !(s->wrote_bytes & (PTX_ATOMIC | PTX_BY_COPY)) && s->wrote_lane != l && s->wrote_lane != PTX_SOME &&
        s->wrote_turn == w->turn)
        race(w, in, l, use, where, address, true, "lane", s->wrote_lane);
    if (use == USE_WRITE && s->wrote == time && s->writer == w->index && s->wrote_bytes & bytes &&
        !(s->wrote_bytes & (PTX_ATOMIC | PTX_BY_COPY)) && s->wrote_lane != l && s->wrote_lane != PTX_SOME &&
        s->wrote_turn == w->turn) {
        w->again |= 1u << l;
        w->again_of[l] = s->wrote_lane;
    }
    if (use == USE_WRITE && s->read == time && s->reader == w->index && s->read_bytes & bytes && s->read_lane != l &&
        s->read_lane != PTX_SOME && s->read_turn == w->turn)
        race(w, in, l, use, where, address, false, s->read_lane == PTX_MANY ? "several lanes, marked" : "lane",
             s->read_lane);
    if (use == USE_READ) {
        const bool more = s->read == time && s->reader == w->index && s->read_turn == w->turn && s->read_lane != l;
        *last = !more ? (uint8_t)l : s->read_lane == PTX_SOME ? PTX_SOME : PTX_MANY;
        s->read_turn = w->turn;
    } else {
        *last = (uint8_t)l;
        s->wrote_turn = w->turn;
    }
}

/* bytes: bits of those of the stamp that are used, 3: all. */
static inline void stamp(PtxWarp *w, const PtxInst *in, int l, PtxStamp *s, uint32_t bytes, PtxUse use,
                         const char *where, uint64_t address)
{
    uint32_t time = w->block->time, began = w->launch->began;
    const char *who;
    unsigned number;
    if (own_copy(w, s, bytes))
        race(w, in, l, use, where, address, true, "a copy of warp", s->writer);
    stamp_lane(w, in, l, s, bytes, use, where, address);
    if (s->wrote >= began && (s->wrote_bytes & bytes) && !(use == USE_ATOMIC && s->wrote_bytes & PTX_ATOMIC) &&
        !(s->wrote == time && s->writer == w->index) && !ordered(w, s->wrote, s->writer, &who, &number))
        race(w, in, l, use, where, address, true, who, number);
    if (use == USE_READ) {
        if (s->read == time) {
            if (s->reader != w->index)
                s->reader = PTX_MANY;
            s->read_bytes |= (uint8_t)bytes;
            return;
        }
        uint8_t blocks = 0;
        if (s->read >= began && (s->read_bytes & PTX_BLOCKS || g_array_index(w->launch->blocks_of_time, uint32_t,
                                                                             s->read - began) != w->block->index))
            blocks = PTX_BLOCKS;
        s->read = time;
        s->reader = (uint8_t)w->index;
        s->read_bytes = (uint8_t)(bytes | blocks);
        return;
    }
    if (s->read >= began && (s->read_bytes & bytes)) {
        if (s->read_bytes & PTX_BLOCKS && !(s->read < w->block->acquired))
            race(w, in, l, use, where, address, false, "more than one block, the last one in step", s->read - began);
        if (!(s->read == time && s->reader == w->index) && !ordered(w, s->read, s->reader, &who, &number))
            race(w, in, l, use, where, address, false,
                 s->reader == PTX_MANY && *who == 'w' ? "several warps, marked" : who, number);
    }
    s->wrote = time;
    s->writer = (uint8_t)w->index;
    s->wrote_bytes = (uint8_t)(bytes | (use == USE_ATOMIC ? PTX_ATOMIC : 0));
}

static size_t bytes_of_stamp(const PtxWarp *w)
{
    return w->launch->kernel->stamped;
}

static void stamps(PtxWarp *w, const PtxInst *in, int l, PtxStamp *s, size_t offset, size_t bytes, PtxUse use,
                   const char *where, uint64_t address)
{
    const size_t each = bytes_of_stamp(w);
    if (bytes >= each) {
        for (size_t i = 0; i < bytes; i += each)
            stamp(w, in, l, &s[(offset + i) / each], 3, use, where, address + i);
    } else {
        stamp(w, in, l, &s[offset / each], 1u << offset % each, use, where, address);
    }
}

/* --- bytes that were written --- */

static bool all_set(const uint8_t *d, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!d[i])
            return false;
    return true;
}

/* As numbers, for the usual sizes: no byte is 0. */
static inline bool defined(const uint8_t *d, size_t bytes)
{
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 4:
        memcpy(&four, d, 4);
        return four == 0x01010101u || all_set(d, 4);
    case 8:
        memcpy(&eight, d, 8);
        return eight == 0x0101010101010101u || all_set(d, 8);
    case 16:
        return defined(d, 8) && defined(d + 8, 8);
    default:
        return all_set(d, bytes);
    }
}

enum { IN_FLIGHT = 2 };

/* --- counts --- */

static void count_sectors(PtxLaunch *a, uint32_t mask, const uint64_t *address, size_t bytes)
{
    uint64_t seen[2 * LANES], last = UINT64_MAX, place = UINT64_MAX;
    int n = 0;
    size_t used = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint64_t at = address[__builtin_ctz(m)];
        if (at != place)
            used += bytes;
        place = at;
        for (uint64_t s = at / 32; s <= (at + bytes - 1) / 32; s++) {
            if (s == last)
                continue;
            last = s;
            int i = n - 1;
            while (i >= 0 && seen[i] > s)
                i--;
            if (i >= 0 && seen[i] == s)
                continue;
            memmove(seen + i + 2, seen + i + 1, sizeof *seen * (size_t)(n - 1 - i));
            seen[i + 1] = s;
            n++;
        }
    }
    a->counts->sectors += (uint64_t)n;
    a->counts->sectors_needed += MIN((uint64_t)n, (used + 31) / 32);
}

/* Turns that an access to shared memory takes: 32 banks of 4 bytes, one word of each in a turn; wider accesses in parts
 * of the warp. */
static void count_conflicts(PtxLaunch *a, uint32_t mask, const uint64_t *address, size_t bytes)
{
    a->counts->shared++;
    int parts = bytes > 4 ? (int)bytes / 4 : 1, lanes = LANES / parts;
    uint64_t turns = 0, used_parts = 0;
    for (int p = 0; p < parts; p++) {
        uint32_t m = mask >> (p * lanes) & (lanes == LANES ? UINT32_MAX : (1u << lanes) - 1);
        if (!m)
            continue;
        used_parts++;
        uint32_t word[LANES][LANES]; /* by bank */
        uint8_t n[LANES] = { 0 };
        uint64_t worst = 1;
        for (; m; m &= m - 1)
            for (size_t i = 0; i < MAX(bytes / 4, 1); i++) {
                uint32_t x = (uint32_t)(address[p * lanes + __builtin_ctz(m)] / 4 + i), bank = x & 31;
                int j = 0;
                while (j < n[bank] && word[bank][j] != x)
                    j++;
                if (j < n[bank] || j == LANES)
                    continue;
                word[bank][n[bank]++] = x;
                worst = MAX(worst, n[bank]);
            }
        turns += worst;
    }
    a->counts->conflicts += turns - used_parts;
}

/* --- places --- */

static void place_shared(PtxWarp *w, const PtxInst *in, uint32_t mask, const uint64_t *address, size_t bytes,
                         PtxUse use, uint8_t **place)
{
    PtxBlock *b = w->block;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t at = address[l];
        if (at > b->shared_bytes || b->shared_bytes - at < bytes)
            ptx_fault(w, in, l, FAULT_ADDRESS,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x of shared memory, which has %zu bytes", deed(use),
                      bytes, at, b->shared_bytes);
        if (use != USE_WRITE && !defined(b->shared_defined + at, bytes))
            ptx_fault(w, in, l, FAULT_OTHER,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x of shared memory that nobody has written", deed(use),
                      bytes, at);
        if (b->copies_open)
            for (size_t i = 0; i < bytes; i++)
                if (b->shared_defined[at + i] == IN_FLIGHT)
                    ptx_fault(w, in, l, FAULT_OTHER,
                              "%s byte 0x%" G_GINT64_MODIFIER
                              "x of shared memory, to which a copy (cp.async) is under way that nobody has waited for",
                              deed(use), at + i);
        stamps(w, in, l, b->shared_stamps, at, bytes, use, "shared memory at", at);
        if (b->gated && use != USE_READ)
            ptx_check_gate(w, in, l, at, bytes);
        if (use == USE_WRITE)
            memset(b->shared_defined + at, 1, bytes);
        place[l] = b->shared + at;
    }
}

bool ptx_shared_untouched(const PtxWarp *w, uint64_t at, size_t bytes, uint32_t since)
{
    const size_t each = bytes_of_stamp(w);
    for (size_t i = at / each; i < (at + bytes) / each; i++)
        if (w->block->shared_stamps[i].wrote >= since)
            return false;
    return true;
}

void ptx_shared_bytes(PtxWarp *w, const PtxInst *in, int lane, uint64_t at, size_t bytes, PtxUse use)
{
    const size_t each = bytes_of_stamp(w);
    PtxBlock *b = w->block;
    const bool reads = use == USE_READ || use == USE_ATOMIC || use == USE_PRODUCT;
    if (at > b->shared_bytes || b->shared_bytes - at < bytes)
        ptx_fault(w, in, lane, FAULT_ADDRESS,
                  "uses %zu bytes at 0x%" G_GINT64_MODIFIER "x of shared memory, which has %zu bytes", bytes, at,
                  b->shared_bytes);
    for (size_t i = at; i < at + bytes; i++) {
        if (b->copies_open && b->shared_defined[i] == IN_FLIGHT)
            ptx_fault(w, in, lane, FAULT_OTHER,
                      "uses byte 0x%zx of shared memory, to which a copy is under way that nobody has waited for", i);
        if (reads && !b->shared_defined[i])
            ptx_fault(w, in, lane, FAULT_OTHER, "reads byte 0x%zx of shared memory that nobody has written", i);
    }
    for (size_t i = at / each; i < (at + bytes) / each; i++) {
        PtxStamp *s = &b->shared_stamps[i];
        stamp(w, in, lane, s, 3,
              use == USE_COPY      ? USE_WRITE
              : use == USE_PRODUCT ? USE_READ
                                   : use,
              "shared memory at", i * each);
        if (use == USE_PRODUCT && s->wrote >= w->launch->began && !(s->wrote_bytes & PTX_BY_COPY) &&
            b->warp[s->writer].proxied <= s->wrote && w->proxied <= s->wrote)
            ptx_fault(w, in, lane, FAULT_OTHER,
                      "reads 0x%zx of shared memory that warp %u wrote, with no fence.proxy.async between", i * each,
                      s->writer);
        if (use == USE_COPY)
            s->wrote_bytes |= PTX_BY_COPY;
    }
    if (!reads)
        memset(b->shared_defined + at, use == USE_COPY ? IN_FLIGHT : 1, bytes);
}

static void place_local(PtxWarp *w, const PtxInst *in, uint32_t mask, const uint64_t *address, size_t bytes, PtxUse use,
                        uint8_t **place)
{
    size_t room = w->launch->kernel->local_bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t at = address[l] - PTX_LOCAL_BASE;
        if (at > room || room - at < bytes)
            ptx_fault(w, in, l, FAULT_ADDRESS,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x of local memory, which has %zu bytes", deed(use),
                      bytes, at, room);
        uint8_t *d = w->local_defined + room * (size_t)l + at;
        if (use == USE_WRITE)
            memset(d, 1, bytes);
        else if (!all_set(d, bytes))
            ptx_fault(w, in, l, FAULT_OTHER, "%s %zu bytes of local memory that nobody has written", deed(use), bytes);
        place[l] = w->local + room * (size_t)l + at;
    }
}

static void place_param(PtxWarp *w, const PtxInst *in, uint32_t mask, const uint64_t *address, size_t bytes, PtxUse use,
                        uint8_t **place)
{
    size_t room = w->launch->kernel->param_bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t at = address[l] - PTX_PARAM_BASE;
        if (at > room || room - at < bytes)
            ptx_fault(w, in, l, FAULT_ADDRESS,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x of the parameters, which have %zu bytes", deed(use),
                      bytes, at, room);
        if (use != USE_READ)
            ptx_fault(w, in, l, FAULT_ADDRESS, "writes to the kernel's parameters");
        place[l] = (uint8_t *)w->launch->what->params + at;
    }
}

/* What was read in this way may be what was there before somebody wrote. */
static void read_only(PtxWarp *w, const PtxInst *in, int l, const PtxStamp *s, size_t bytes, uint64_t address)
{
    const size_t each = bytes_of_stamp(w);
    for (size_t i = 0; i < (bytes + each - 1) / each; i++)
        if (s[i].wrote >= w->launch->began)
            ptx_fault(w, in, l, FAULT_OTHER,
                      "reads 0x%" G_GINT64_MODIFIER
                      "x as memory that nobody writes (.nc), but this launch has written it",
                      address + i * each);
}

static uint32_t place_region(PtxWarp *w, const PtxInst *in, uint32_t mask, const uint64_t *address, size_t bytes,
                             PtxUse use, uint8_t **place)
{
    PtxLaunch *a = w->launch;
    int first = __builtin_ctz(mask);
    EmuRegion **seen = &a->seen[in - a->code], *r = *seen;
    uint64_t start = address[first];
    if (!r || start - r->base >= r->bytes)
        *seen = r = emu_space_find(a->space, start);
    if (!r)
        ptx_fault(w, in, first, FAULT_ADDRESS, "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x, where nothing is allocated",
                  deed(use), bytes, start);
    if (use != USE_READ && r->constant)
        ptx_fault(w, in, first, FAULT_ADDRESS, "%s constant memory at 0x%" G_GINT64_MODIFIER "x", deed(use), start);
    if (!r->races)
        r->races = calloc(r->bytes, sizeof(PtxStamp));
    uint32_t done = 0;
    uint64_t base = r->base;
    size_t room = r->bytes;
    bool stamped = !r->constant;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t at = address[l] - base;
        if (at >= room)
            continue; /* another region's */
        if (room - at < bytes)
            ptx_fault(w, in, l, FAULT_ADDRESS,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x, %" G_GINT64_MODIFIER
                      "u bytes into an allocation of %zu",
                      deed(use), bytes, address[l], at, room);
        if (use != USE_WRITE && !defined(r->defined + at, bytes))
            ptx_fault(w, in, l, FAULT_OTHER,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x, %" G_GINT64_MODIFIER
                      "u bytes into an allocation of %zu, that nobody has written",
                      deed(use), bytes, address[l], at, room);
        if (stamped)
            stamps(w, in, l, r->races, at, bytes, use, "global memory at", address[l]);
        if (in->flags & PTX_READ_ONLY)
            read_only(w, in, l, (const PtxStamp *)r->races + at / bytes_of_stamp(w), bytes, address[l]);
        if (use == USE_WRITE)
            memset(r->defined + at, 1, bytes);
        place[l] = r->data + at;
        done |= 1u << l;
    }
    return done;
}

void ptx_places(PtxWarp *w, const PtxInst *in, uint32_t mask, PtxSpace space, const uint64_t *address, size_t bytes,
                PtxUse use, uint8_t **place)
{
    for (uint32_t m = mask; m; m &= m - 1)
        if (address[__builtin_ctz(m)] & (bytes - 1))
            ptx_fault(w, in, __builtin_ctz(m), FAULT_ALIGNMENT,
                      "%s %zu bytes at 0x%" G_GINT64_MODIFIER "x, which is not aligned to them", deed(use), bytes,
                      address[__builtin_ctz(m)]);
    if (space == SPACE_SHARED) {
        uint64_t near[LANES] = { 0 }; /* both kinds of addresses are taken */
        EACH({ near[l] = address[l] / PTX_WINDOW == 1 ? address[l] - PTX_SHARED_BASE : address[l]; });
        count_conflicts(w->launch, mask, near, bytes);
        place_shared(w, in, mask, near, bytes, use, place);
        return;
    }
    if (space == SPACE_GLOBAL)
        count_sectors(w->launch, mask, address, bytes);
    while (mask) {
        uint64_t window = address[__builtin_ctz(mask)] / PTX_WINDOW;
        if (window > 3 || !window) {
            mask &= ~place_region(w, in, mask, address, bytes, use, place);
            continue;
        }
        uint32_t same = 0;
        for (uint32_t m = mask; m; m &= m - 1)
            if (address[__builtin_ctz(m)] / PTX_WINDOW == window)
                same |= m & -m;
        if (window == 1)
            ptx_places(w, in, same, SPACE_SHARED, address, bytes, use, place);
        else if (window == 2)
            place_local(w, in, same, address, bytes, use, place);
        else
            place_param(w, in, same, address, bytes, use, place);
        mask &= ~same;
    }
}

/* --- loads and stores --- */

static void acquire(PtxWarp *w, const PtxInst *in)
{
    if (!(in->flags & PTX_WEAK))
        w->block->acquired = ptx_now() + 1;
}

void ptx_run_load(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint64_t address[LANES];
    uint8_t *place[LANES];
    size_t size = ptx_type_bytes((PtxType)in->type);
    acquire(w, in);
    ptx_addresses(w, in, in->vec == 1 ? 1 : in->n - 1, in->imm, mask, address);
    ptx_places(w, in, mask, (PtxSpace)in->space, address, size * in->vec, USE_READ, place);
    const int32_t *o = ptx_more(w, in);
    bool sign = in->type == T_S8 || in->type == T_S16 || in->type == T_S32;
    for (int v = 0; v < in->vec; v++) {
        if (o[v] == -1)
            continue;
        void *d = ptx_row(w, o[v]);
        size_t at = size * (size_t)v;
        bool wide = in->wide >> v & 1;
        if (size == 4 && !wide) {
            EACH({ memcpy((uint32_t *)d + l, place[l] + at, 4); });
        } else if (size == 8 && wide) {
            EACH({ memcpy((uint64_t *)d + l, place[l] + at, 8); });
        } else if (size == 16) {
            EACH({ memcpy((uint8_t *)d + 16 * l, place[l] + at, 16); });
        } else {
            for (uint32_t m = mask; m; m &= m - 1) {
                int l = __builtin_ctz(m);
                uint64_t x = 0;
                memcpy(&x, place[l] + at, size);
                if (sign)
                    x = (uint64_t)((int64_t)(x << (64 - 8 * size)) >> (64 - 8 * size));
                if (wide)
                    ((uint64_t *)d)[l] = x;
                else
                    ((uint32_t *)d)[l] = (uint32_t)x;
            }
        }
    }
}

/* The element of a row that a lane stores. */
static const uint8_t *stored(PtxWarp *w, const PtxInst *in, int v, int l)
{
    const size_t size = ptx_type_bytes((PtxType)in->type), step = size == 16 ? 16 : in->wide >> (v + 1) & 1 ? 8 : 4;
    return (const uint8_t *)ptx_row(w, ptx_more(w, in)[v + 1]) + step * (size_t)l;
}

/* Lanes of a warp store where others have stored without a barrier between: where that was another value, chance says
 * which one stays. What an earlier instruction stored is still there. */
static void same_values(PtxWarp *w, const PtxInst *in, uint32_t mask, const uint64_t *address, uint8_t **place)
{
    const size_t size = ptx_type_bytes((PtxType)in->type);
    for (uint32_t m = w->again; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        int j = l; /* a lane of this instruction with the same place, or none */
        for (uint32_t n = mask & ((1u << l) - 1); n; n &= n - 1)
            j = place[__builtin_ctz(n)] == place[l] ? __builtin_ctz(n) : j;
        for (int v = 0; v < in->vec; v++)
            if (memcmp(j == l ? place[l] + size * (size_t)v : stored(w, in, v, j), stored(w, in, v, l), size) != 0)
                ptx_fault(w, in, l, FAULT_OTHER,
                          "race: writes %s memory at 0x%" G_GINT64_MODIFIER
                          "x that lane %d wrote with another value and no barrier between",
                          address[l] / PTX_WINDOW > 3 ? "global" : "shared", address[l], w->again_of[l]);
    }
}

void ptx_run_store(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint64_t address[LANES];
    uint8_t *place[LANES];
    size_t size = ptx_type_bytes((PtxType)in->type);
    ptx_addresses(w, in, 0, in->imm, mask, address);
    w->again = 0;
    ptx_places(w, in, mask, (PtxSpace)in->space, address, size * in->vec, USE_WRITE, place);
    if (w->again)
        same_values(w, in, mask, address, place);
    const int32_t *o = ptx_more(w, in);
    for (int v = 0; v < in->vec; v++) {
        const uint8_t *s = ptx_row(w, o[v + 1]);
        size_t at = size * (size_t)v, step = size == 16 ? 16 : in->wide >> (v + 1) & 1 ? 8 : 4;
        if (size == 4 && step == 4) {
            EACH({ memcpy(place[l] + at, s + 4 * l, 4); });
        } else {
            EACH({ memcpy(place[l] + at, s + step * (size_t)l, size); });
        }
    }
}

/* --- atomics --- */

enum { A_ADD, A_MIN, A_MAX, A_INC, A_DEC, A_AND, A_OR, A_XOR, A_EXCH, A_CAS };

static uint64_t atomic_real(PtxType t, int op, uint64_t old, uint64_t b)
{
    float x, y;
    double u, v;
    uint32_t lo = (uint32_t)old, lb = (uint32_t)b;
    switch (t) {
    case T_F32:
        memcpy(&x, &lo, 4);
        memcpy(&y, &lb, 4);
        x = op == A_ADD ? x + y : op == A_MIN ? MIN(x, y) : MAX(x, y);
        memcpy(&lo, &x, 4);
        return lo;
    case T_F64:
        memcpy(&u, &old, 8);
        memcpy(&v, &b, 8);
        u += v;
        memcpy(&old, &u, 8);
        return old;
    case T_F16:
        return ptx_to_half((double)ptx_half_to_float((uint16_t)old) + (double)ptx_half_to_float((uint16_t)b),
                           ROUND_NEAREST);
    case T_BF16:
        return ptx_to_bf16((double)ptx_bf16_to_float((uint16_t)old) + (double)ptx_bf16_to_float((uint16_t)b),
                           ROUND_NEAREST);
    default:
        t = t == T_F16X2 ? T_F16 : T_BF16;
        return atomic_real(t, op, old & 0xffff, b & 0xffff) | atomic_real(t, op, old >> 16 & 0xffff, b >> 16 & 0xffff)
                                                                  << 16;
    }
}

static uint64_t atomic_op(PtxType t, int op, uint64_t old, uint64_t b, uint64_t c)
{
    bool wide = ptx_type_bytes(t) == 8, sign = ptx_is_signed(t), less;
    switch (op) {
    case A_ADD:
        return old + b;
    case A_MIN:
    case A_MAX:
        less = sign ? (wide ? (int64_t)old < (int64_t)b : (int32_t)old < (int32_t)b) : old < b;
        return less == (op == A_MIN) ? old : b;
    case A_INC:
        return old >= b ? 0 : old + 1;
    case A_DEC:
        return !old || old > b ? b : old - 1;
    case A_AND:
        return old & b;
    case A_OR:
        return old | b;
    case A_XOR:
        return old ^ b;
    case A_EXCH:
        return b;
    default:
        return old == b ? c : old;
    }
}

void ptx_run_atomic(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint64_t address[LANES];
    uint8_t *place[LANES];
    int first = in->flags & PTX_NOT_D ? 0 : 1;
    PtxType t = (PtxType)in->type;
    size_t size = ptx_type_bytes(t);
    ptx_addresses(w, in, first, in->imm, mask, address);
    ptx_places(w, in, mask, (PtxSpace)in->space, address, size, USE_ATOMIC, place);
    if (first)
        w->block->acquired = ptx_now() + 1;
    const uint8_t *b = ptx_row(w, in->o[first + 1]), *c = in->n > first + 2 ? ptx_row(w, in->o[first + 2]) : b;
    uint8_t *d = first && in->o[0] != -1 ? ptx_row(w, in->o[0]) : NULL;
    size_t step = size == 8 ? 8 : 4;
    bool real = ptx_is_float(t) || t == T_F16X2 || t == T_BF16X2;
    int turn = w->launch->what->order ? (int)(ptx_random(w->launch) & 31) : 0;
    for (int i = 0; i < LANES; i++) {
        int l = i ^ turn;
        if (!(mask >> l & 1))
            continue;
        uint64_t old = 0, x = 0, y = 0;
        memcpy(&old, place[l], size);
        memcpy(&x, b + step * (size_t)l, size);
        memcpy(&y, c + step * (size_t)l, size);
        uint64_t v = real && in->sub <= A_MAX ? atomic_real(t, in->sub, old, x) : atomic_op(t, in->sub, old, x, y);
        memcpy(place[l], &v, size);
        if (d) {
            memset(d + step * (size_t)l, 0, step);
            memcpy(d + step * (size_t)l, &old, size);
        }
    }
}

void ptx_run_fence(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    (void)mask;
    PtxBlock *b = w->block;
    w->launch->published[b->index] = ptx_tick(b);
    b->acquired = ptx_now() + 1;
}

void ptx_run_proxy(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    (void)mask;
    w->proxied = ptx_tick(w->block);
    ptx_gates_shown(w);
}

/* --- parameters of functions: between places in local memory --- */

void ptx_run_param_copy(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    size_t room = w->launch->kernel->local_bytes, n = (size_t)in->o[2];
    for (uint32_t m = mask; m; m &= m - 1) {
        size_t lane = room * (size_t)__builtin_ctz(m), to = lane + (size_t)in->o[0],
               from = lane + (size_t)MAX(in->o[1], 0);
        if (in->o[1] < 0) {
            memset(w->local + to, 0, n);
            memset(w->local_defined + to, 1, n);
        } else {
            memcpy(w->local + to, w->local + from, n);
            memcpy(w->local_defined + to, w->local_defined + from, n);
        }
    }
}

/* --- cp.async: the bytes arrive when their thread waits, never before --- */

void ptx_run_copy_begin(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint64_t to[LANES], from[LANES];
    uint8_t *place[LANES];
    PtxBlock *b = w->block;
    ptx_addresses(w, in, 0, in->imm, mask, to);
    ptx_addresses(w, in, 1, in->imm_b, mask, from);
    const uint32_t *n = ptx_row(w, in->o[2]), *source = in->n > 3 && !(in->wide >> 3 & 1) ? ptx_row(w, in->o[3]) : n;
    size_t bytes = n[0];
    if (bytes != 4 && bytes != 8 && bytes != 16)
        ptx_fault(w, in, -1, FAULT_INSTRUCTION, "copies %zu bytes, which are not 4, 8 or 16", bytes);
    uint32_t read = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        to[l] = to[l] / PTX_WINDOW == 1 ? to[l] - PTX_SHARED_BASE : to[l];
        if (to[l] & (bytes - 1))
            ptx_fault(w, in, l, FAULT_ALIGNMENT,
                      "copies %zu bytes to 0x%" G_GINT64_MODIFIER "x of shared memory, which is not aligned to them",
                      bytes, to[l]);
        if (to[l] > b->shared_bytes || b->shared_bytes - to[l] < bytes)
            ptx_fault(w, in, l, FAULT_ADDRESS,
                      "copies %zu bytes to 0x%" G_GINT64_MODIFIER "x of shared memory, which has %zu bytes", bytes,
                      to[l], b->shared_bytes);
        if (b->gated)
            ptx_check_gate(w, in, l, to[l], bytes);
        if (source[l])
            read |= m & -m;
    }
    if (read && source == n) {
        ptx_places(w, in, read, SPACE_GLOBAL, from, bytes, USE_READ, place);
    } else {
        for (uint32_t m = read; m; m &= m - 1) { /* of each lane another number of bytes */
            int l = __builtin_ctz(m);
            if (from[l] & (bytes - 1))
                ptx_fault(w, in, l, FAULT_ALIGNMENT,
                          "copies %zu bytes from 0x%" G_GINT64_MODIFIER "x, which is not aligned to them", bytes,
                          from[l]);
            for (uint32_t i = 0, step; i < MIN(source[l], bytes); i += step) {
                uint64_t at[LANES] = { 0 };
                at[l] = from[l] + i;
                uint32_t rest = (uint32_t)MIN(source[l], bytes) - i;
                step = rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
                uint8_t *part[LANES];
                ptx_places(w, in, m & -m, SPACE_GLOBAL, at, step, USE_READ, part);
                if (!i)
                    place[l] = part[l];
            }
        }
    }
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        stamps(w, in, l, b->shared_stamps, to[l], bytes, USE_WRITE, "shared memory at", to[l]);
        memset(b->shared_defined + to[l], IN_FLIGHT, bytes);
        PtxCopy c = { w->group[l],
                      (uint32_t)to[l],
                      (uint8_t)l,
                      (uint8_t)bytes,
                      (uint8_t)MIN(source[l], bytes),
                      in,
                      source[l] ? place[l] : NULL,
                      { 0 } };
        if (c.src)
            memcpy(c.was, c.src, c.source_size);
        g_array_append_val(w->copies, c);
        b->copies_open++;
    }
}

void ptx_copies_finish(PtxWarp *w, uint32_t mask, uint32_t keep)
{
    PtxBlock *b = w->block;
    guint left = 0;
    for (guint i = 0; i < w->copies->len; i++) {
        PtxCopy c = g_array_index(w->copies, PtxCopy, i);
        if (!(mask >> c.lane & 1) || (keep != UINT32_MAX && w->group[c.lane] - c.group <= keep)) {
            g_array_index(w->copies, PtxCopy, left++) = c;
            continue;
        }
        if (c.source_size && memcmp(c.was, c.src, c.source_size) != 0)
            ptx_fault(w, c.in, c.lane, FAULT_OTHER,
                      "what is copied was changed before anybody had waited for the copy");
        memset(b->shared + c.dst, 0, c.size);
        if (c.source_size)
            memcpy(b->shared + c.dst, c.src, c.source_size);
        memset(b->shared_defined + c.dst, 1, c.size);
        stamps(w, c.in, c.lane, b->shared_stamps, c.dst, c.size, USE_WRITE, "shared memory at", c.dst);
        b->copies_open--;
    }
    g_array_set_size(w->copies, left);
}

void ptx_run_copy_group(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    for (uint32_t m = mask; m; m &= m - 1)
        w->group[__builtin_ctz(m)]++;
}

/* All groups but the last ones, of which there are so many as the operand says. */
void ptx_run_copy_wait(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    ptx_copies_finish(w, mask, in->sub ? UINT32_MAX : *(const uint32_t *)ptx_row(w, in->o[0]));
}
