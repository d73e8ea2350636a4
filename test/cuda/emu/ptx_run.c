#include "ptx_each.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Warps run in lock step. Where lanes part, a warp has several splits, each with its own place in the code; the deepest
 * in calls, then the one farthest back, goes on, and splits that meet become one. An instruction that needs certain
 * lanes waits for them. Warps take turns, and blocks do where one waits for another one for long.
 */

enum { TURN = 2000, BLOCK_TURN = 400000, MAX_TIME = 0xf0000000u };

/* Time goes on through all launches, so that old stamps mean nothing. */
static uint32_t now = 1;

uint32_t ptx_now(void)
{
    return now;
}

uint32_t ptx_tick(PtxBlock *b)
{
    now++;
    g_array_append_val(b->launch->blocks_of_time, b->index);
    b->time = now;
    return now;
}

uint32_t ptx_random(PtxLaunch *l)
{
    uint64_t x = l->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

/* --- faults --- */

void ptx_fault(PtxWarp *w, const PtxInst *in, int lane, int result, const char *format, ...)
{
    PtxLaunch *a = w->launch;
    const EmuKernel *k = a->kernel;
    const PtxBlock *b = w->block;
    char text[161], why[512];
    size_t n = 0;
    for (uint32_t i = 0; i < in->text_n && n < sizeof text - 1; i++) {
        char c = k->module->text[in->text + i];
        c = c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
        if (c != ' ' || (n && text[n - 1] != ' '))
            text[n++] = c;
    }
    while (n && (text[n - 1] == ';' || text[n - 1] == ' '))
        n--;
    text[n] = 0;
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    char who[100];
    unsigned id = (unsigned)(w->index * LANES + MAX(lane, 0)), x = a->what->block[0], y = a->what->block[1];
    if (lane >= 0)
        snprintf(who, sizeof who, "thread (%u,%u,%u)", id % x, id / x % y, id / x / y);
    else
        snprintf(who, sizeof who, "warp %d", w->index);
    ptx_say(a->fault, result, "kernel %s, '%s' (line %u of the PTX), block (%u,%u,%u), %s: %s", k->name, text, in->line,
            b->id[0], b->id[1], b->id[2], who, why);
    longjmp(a->out, 1);
}

/* --- small instructions --- */

void ptx_run_warp_barrier(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    (void)mask;
    w->turn++;
}

void ptx_run_nothing(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)w;
    (void)in;
    (void)mask;
}

void ptx_run_assert(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    ptx_fault(w, in, __builtin_ctz(mask), FAULT_ASSERT, "an assertion failed");
}

void ptx_run_clock(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint64_t t = w->launch->steps + w->steps;
    if (in->sub == SR_CLOCK_HI || in->sub == SR_TIME_HI)
        t >>= 32;
    if (in->sub == SR_CLOCK64 || in->sub == SR_TIME) {
        uint64_t *d = ptx_row(w, in->o[0]);
        EACH({ d[l] = t; });
    } else {
        uint32_t *d = ptx_row(w, in->o[0]);
        EACH({ d[l] = (uint32_t)t; });
    }
}

/* --- splits --- */

/* Joins splits that are at the same place, and drops empty ones. */
static void tidy(PtxWarp *w)
{
    int n = 0;
    for (int i = 0; i < w->splits; i++) {
        PtxSplit s = w->split[i];
        if (!s.mask)
            continue;
        int j = 0;
        while (j < n && (w->split[j].pc != s.pc || w->split[j].depth != s.depth))
            j++;
        if (j < n) {
            w->split[j].mask |= s.mask;
            w->split[j].waits = false;
        } else {
            w->split[n++] = s;
        }
    }
    w->splits = n;
}

/* The split to go on with; -1: all wait. */
static int choose(const PtxWarp *w)
{
    int best = -1;
    for (int i = 0; i < w->splits; i++) {
        const PtxSplit *s = &w->split[i], *b = &w->split[MAX(best, 0)];
        if (!s->waits && (best < 0 || s->depth > b->depth || (s->depth == b->depth && s->pc < b->pc)))
            best = i;
    }
    return best;
}

static void part(PtxWarp *w, PtxSplit s)
{
    w->split[w->splits++] = s;
}

static void leave(PtxWarp *w, PtxSplit *s, uint32_t mask)
{
    s->mask &= ~mask;
    w->alive &= ~mask;
    ptx_copies_finish(w, mask, UINT32_MAX);
}

/* --- barriers --- */

static uint32_t bits(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

/* What the warps of a set did so far is ordered before what each of them does from now on. */
static void order_warps(PtxBlock *b, uint32_t waiting, uint32_t arrivers)
{
    uint32_t clock[LANES] = { 0 };
    for (int i = 0; i < b->warps; i++)
        if ((waiting | arrivers) >> i & 1)
            for (int j = 0; j < b->warps; j++)
                clock[j] = MAX(clock[j], b->warp[i].clock[j]);
    uint32_t time = ptx_tick(b);
    for (int i = 0; i < b->warps; i++)
        if ((waiting | arrivers) >> i & 1)
            clock[i] = time;
    for (int i = 0; i < b->warps; i++) {
        if (!(waiting >> i & 1))
            continue;
        PtxWarp *w = &b->warp[i];
        memcpy(w->clock, clock, sizeof clock);
        w->newest = 0;
        for (int j = 0; j < b->warps; j++)
            if (j != i)
                w->newest = MAX(w->newest, clock[j]);
    }
}

/* Lets the warps go that wait at a barrier where all have arrived. */
static void open_barrier(PtxBlock *b, int id)
{
    PtxBarrier *r = &b->barrier[id];
    uint32_t waiting = 0, live = 0;
    for (int i = 0; i < b->warps; i++) {
        live += bits(b->warp[i].alive);
        if (b->warp[i].state == WARP_AT_BARRIER && b->warp[i].barrier == id)
            waiting |= 1u << i;
    }
    if (!(waiting | r->arrivers) || r->arrived < (r->count ? r->count : live))
        return;
    order_warps(b, waiting, r->arrivers);
    for (int i = 0; i < b->warps; i++) {
        if (!(waiting >> i & 1))
            continue;
        PtxWarp *w = &b->warp[i];
        const PtxInst *in = w->barrier_in;
        uint32_t mask = w->barrier_mask;
        if (in->sub == 2 || in->sub == 3) {
            uint32_t *d = ptx_row(w, in->o[0]);
            bool v = in->sub == 2 ? r->votes == r->votes_asked : r->votes > 0;
            *d = (*d & ~mask) | (v ? mask : 0);
        } else if (in->sub == 4) {
            uint32_t *d = ptx_row(w, in->o[0]);
            EACH({ d[l] = r->votes; });
        }
        w->state = WARP_RUNS;
    }
    *r = (PtxBarrier){ 0 };
}

/* A warp arrives; true: it waits. */
static bool arrive(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    PtxBlock *b = w->block;
    bool red = in->sub >= 2 && in->sub <= 4, cluster = in->sub == 5;
    int first = red ? 1 : 0, p = red ? in->n - 1 : -1;
    uint32_t id = cluster         ? BARRIERS
                  : in->n > first ? ((const uint32_t *)ptx_row(w, in->o[first]))[__builtin_ctz(mask)]
                                  : 0;
    bool counted = !cluster && in->n - (red ? 1 : 0) > first + 1;
    uint32_t count = counted ? ((const uint32_t *)ptx_row(w, in->o[first + 1]))[__builtin_ctz(mask)] : 0;
    if (id > BARRIERS || (id == BARRIERS && !cluster))
        ptx_fault(w, in, -1, FAULT_INSTRUCTION, "there is no barrier %u", id);
    if (count % LANES)
        ptx_fault(w, in, -1, FAULT_INSTRUCTION, "a barrier for %u threads, which are not whole warps", count);
    PtxBarrier *r = &b->barrier[id];
    if ((r->arrived && r->count != count))
        ptx_fault(w, in, -1, FAULT_OTHER, "barrier %u is for %u threads here, and for %u where others arrived", id,
                  count, r->count);
    r->count = count;
    /* with a count, a warp counts as a whole */
    r->arrived += count ? LANES : bits(mask);
    if (count && r->arrived > count)
        ptx_fault(w, in, -1, FAULT_OTHER, "more than %u threads arrive at barrier %u", count, id);
    if (red) {
        uint32_t v = *(const uint32_t *)ptx_row(w, in->o[p]);
        r->votes += bits((in->flags & PTX_NOT ? ~v : v) & mask);
        r->votes_asked += bits(mask);
    }
    w->barrier = (int)id;
    w->barrier_in = in;
    w->barrier_mask = mask;
    if (in->sub == 1)
        r->arrivers |= 1u << w->index;
    else
        w->state = WARP_AT_BARRIER;
    open_barrier(b, (int)id);
    return w->state == WARP_AT_BARRIER;
}

/* --- running --- */

/* The mask of lanes that an instruction of a warp needs together; those that never come are a fault. True: all are
 * here. */
static bool together(PtxWarp *w, const PtxInst *in, PtxSplit *s, uint32_t mask)
{
    uint32_t need = w->alive;
    if (in->control == CTL_SYNC && in->sync >= 0) {
        const uint32_t *row = ptx_row(w, in->sync);
        need = 0;
        for (uint32_t m = mask; m; m &= m - 1) {
            int l = __builtin_ctz(m);
            if (!(row[l] >> l & 1))
                ptx_fault(w, in, l, FAULT_OTHER, "the mask 0x%08x does not name the thread itself", row[l]);
            need |= row[l];
        }
    } else if (in->control == CTL_SYNC) {
        need = UINT32_MAX;
    }
    uint32_t missing = need & ~mask;
    if (!missing)
        return true;
    uint32_t gone = missing & ~(w->alive & ~s->mask);
    if (gone)
        ptx_fault(w, in, __builtin_ctz(mask), FAULT_OTHER,
                  in->control == CTL_BAR ? "a barrier in diverged code: lanes 0x%08x of the warp do not come here"
                                         : "lanes 0x%08x are named and not there",
                  gone);
    return false;
}

static void branch_by_table(PtxWarp *w, const PtxInst *in, PtxSplit *s, uint32_t mask)
{
    const int32_t *t = &g_array_index(w->launch->kernel->tables, int32_t, in->imm);
    const uint32_t *a = ptx_row(w, in->o[0]);
    s->mask &= ~mask;
    s->pc++;
    uint32_t depth = s->depth;
    while (mask) {
        uint32_t i = a[__builtin_ctz(mask)], same = 0;
        if (i >= (uint32_t)t[0])
            ptx_fault(w, in, __builtin_ctz(mask), FAULT_PC, "branches to entry %u of a table that has %d", i, t[0]);
        for (uint32_t m = mask; m; m &= m - 1)
            if (a[__builtin_ctz(m)] == i)
                same |= m & -m;
        if (w->splits == LANES)
            tidy(w);
        part(w, (PtxSplit){ (uint32_t)t[1 + i], same, depth, false });
        mask &= ~same;
    }
}

static void come_back(PtxWarp *w, const PtxInst *in, PtxSplit *s, uint32_t mask)
{
    const uint32_t *a = ptx_row(w, in->o[0]);
    s->mask &= ~mask;
    s->pc++;
    uint32_t depth = s->depth - 1;
    while (mask) {
        uint32_t pc = a[__builtin_ctz(mask)], same = 0;
        for (uint32_t m = mask; m; m &= m - 1)
            if (a[__builtin_ctz(m)] == pc)
                same |= m & -m;
        part(w, (PtxSplit){ pc, same, depth, false });
        mask &= ~same;
    }
}

/* A place for one more split: the array has as many as lanes, and each holds one at least. */
static PtxSplit *room(PtxWarp *w, int *at)
{
    if (w->splits >= LANES - 1) {
        uint32_t mask = w->split[*at].mask;
        tidy(w);
        for (int i = 0; i < w->splits; i++)
            if (w->split[i].mask & mask)
                *at = i;
    }
    return &w->split[*at];
}

/* One of the instructions that change where a warp is. True: the turn ends. */
static bool control(PtxWarp *w, const PtxInst *in, int at, uint32_t mask)
{
    PtxSplit *s = room(w, &at);
    if (mask && w->launch->kernel->products && in->control == CTL_SYNC)
        ptx_check_registers(w, in);
    switch ((PtxControl)in->control) {
    case CTL_BRA:
        if (mask == s->mask) {
            s->pc = (uint32_t)in->imm;
        } else {
            s->mask &= ~mask;
            s->pc++;
            if (mask)
                part(w, (PtxSplit){ (uint32_t)in->imm, mask, s->depth, false });
        }
        return false;
    case CTL_BRX:
        branch_by_table(w, in, s, mask);
        return false;
    case CTL_CALL: {
        uint32_t *row = ptx_row(w, in->o[0]), pc = s->pc + 1;
        EACH({ row[l] = pc; });
        s->mask &= ~mask;
        s->pc++;
        if (mask)
            part(w, (PtxSplit){ (uint32_t)in->imm, mask, s->depth + 1, false });
        return false;
    }
    case CTL_RET:
        come_back(w, in, s, mask);
        return false;
    case CTL_EXIT:
        leave(w, s, mask);
        s->pc++;
        return false;
    case CTL_TRAP:
        if (mask)
            ptx_fault(w, in, __builtin_ctz(mask), FAULT_OTHER, "a trap");
        s->pc++;
        return false;
    case CTL_BAR:
        if (mask && !together(w, in, s, mask)) {
            s->waits = true;
            return false;
        }
        s->pc++;
        return mask && arrive(w, in, mask);
    case CTL_SYNC:
        if (mask && !together(w, in, s, mask)) {
            s->waits = true;
            return false;
        }
        s->pc++;
        if (mask)
            in->fn(w, in, mask);
        return false;
    default: /* CTL_YIELD */
        s->pc++;
        if (mask)
            in->fn(w, in, mask);
        return true;
    }
}

static void all_wait(PtxWarp *w)
{
    const PtxSplit *s = &w->split[0];
    const PtxInst *in = &w->launch->code[s->pc];
    if (in->control == CTL_BAR)
        ptx_fault(w, in, __builtin_ctz(s->mask), FAULT_OTHER,
                  "a barrier in diverged code: lanes 0x%08x of the warp do not come here", w->member & ~s->mask);
    ptx_fault(w, in, __builtin_ctz(s->mask), FAULT_OTHER,
              "lanes 0x%08x wait here for others of their warp, which do not come", s->mask);
}

static inline uint32_t guarded(const PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    if (in->guard < 0)
        return mask;
    uint32_t p = *(const uint32_t *)ptx_row(w, in->guard);
    return mask & (in->guard_not ? ~p : p);
}

/* At most so many instructions; ends at barriers, too. */
static void run_warp(PtxWarp *w, int steps)
{
    const PtxInst *code = w->launch->code;
    int left = steps;
    while (left > 0 && w->state == WARP_RUNS) {
        if (w->splits > 1)
            tidy(w);
        if (!w->splits || (w->splits == 1 && !w->split[0].mask)) {
            ptx_products_end(w);
            w->state = WARP_DONE;
            break;
        }
        int at = choose(w);
        if (at < 0)
            all_wait(w);
        PtxSplit *s = &w->split[at];
        uint32_t stop = UINT32_MAX; /* where the next split is */
        for (int i = 0; i < w->splits; i++)
            if (i != at && w->split[i].depth == s->depth && w->split[i].pc > s->pc)
                stop = MIN(stop, w->split[i].pc);
        uint32_t pc = s->pc, mask = s->mask;
        const PtxInst *in = &code[pc];
        while (left > 0 && in->control == CTL_NONE && pc != stop) {
            uint32_t m = guarded(w, in, mask);
            if (m) {
                if (w->launch->kernel->products)
                    ptx_check_registers(w, in);
                in->fn(w, in, m);
            }
            in = &code[++pc];
            left--;
        }
        s->pc = pc;
        if (pc == stop || left <= 0)
            continue;
        left--;
        if (control(w, in, at, guarded(w, in, mask)))
            break;
    }
    w->steps += (uint64_t)(steps - left);
    w->launch->steps += (uint64_t)(steps - left);
}

/* --- blocks --- */

static void fill(PtxWarp *w, int slot, uint32_t value)
{
    uint32_t *d = ptx_row(w, slot);
    for (int l = 0; l < LANES; l++)
        d[l] = value;
}

static void fill_special(PtxWarp *w, const PtxSpecialUse *u)
{
    const PtxLaunch *a = w->launch;
    const PtxBlock *b = w->block;
    const EmuLaunch *e = a->what;
    uint32_t *d = ptx_row(w, u->slot);
    unsigned x = e->block[0], y = e->block[1];
    if (u->special == SR_GRIDID) {
        memset(d, 0, 8 * LANES);
        return;
    }
    for (int l = 0; l < LANES; l++) {
        unsigned id = (unsigned)(w->index * LANES + l);
        uint32_t bit = 1u << l;
        switch (u->special) {
        case SR_TID_X:
            d[l] = id % x;
            break;
        case SR_TID_Y:
            d[l] = id / x % y;
            break;
        case SR_TID_Z:
            d[l] = id / x / y;
            break;
        case SR_LANEID:
            d[l] = (uint32_t)l;
            break;
        case SR_EQ:
            d[l] = bit;
            break;
        case SR_LE:
            d[l] = bit | (bit - 1);
            break;
        case SR_LT:
            d[l] = bit - 1;
            break;
        case SR_GE:
            d[l] = ~(bit - 1);
            break;
        case SR_GT:
            d[l] = ~(bit | (bit - 1));
            break;
        default:
            break;
        }
    }
    int s = u->special;
    if (s >= SR_NTID_X && s <= SR_NTID_Z)
        fill(w, u->slot, e->block[s - SR_NTID_X]);
    else if (s >= SR_CTAID_X && s <= SR_CTAID_Z)
        fill(w, u->slot, b->id[s - SR_CTAID_X]);
    else if (s >= SR_NCTAID_X && s <= SR_NCTAID_Z)
        fill(w, u->slot, e->grid[s - SR_NCTAID_X]);
    else if (s == SR_WARPID || s == SR_NWARPID)
        fill(w, u->slot, s == SR_WARPID ? (uint32_t)w->index : 32);
    else if (s == SR_SMID || s == SR_NSMID)
        fill(w, u->slot, s == SR_SMID ? b->index % (uint32_t)MAX(e->sms, 1) : (uint32_t)MAX(e->sms, 1));
    else if (s == SR_DYNAMIC_SHARED || s == SR_TOTAL_SHARED)
        fill(w, u->slot, (uint32_t)(s == SR_DYNAMIC_SHARED ? e->shared : b->shared_bytes));
    else if (s == SR_ZERO || s == SR_ONE)
        fill(w, u->slot, s == SR_ONE);
}

static PtxBlock *block_new(PtxLaunch *a)
{
    const EmuKernel *k = a->kernel;
    const EmuLaunch *e = a->what;
    PtxBlock *b = g_new0(PtxBlock, 1);
    b->launch = a;
    b->threads = (int)(e->block[0] * e->block[1] * e->block[2]);
    b->warps = (b->threads + LANES - 1) / LANES;
    b->shared_bytes = k->shared_bytes + e->shared;
    size_t shared = (b->shared_bytes + 127) / 128 * 128, stamps = shared / k->stamped * sizeof(PtxStamp);
    size_t registers = (k->register_bytes + 127) / 128 * 128, local = (k->local_bytes * LANES + 127) / 128 * 128;
    size_t all = 2 * shared + stamps + (size_t)b->warps * (registers + 2 * local) + 128;
    b->memory = aligned_alloc(128, (all + 127) / 128 * 128);
    memset(b->memory, 0, all);
    uint8_t *p = b->memory;
    b->shared = p;
    b->shared_defined = p + shared;
    p += 2 * shared;
    b->warp = g_new0(PtxWarp, b->warps);
    for (int i = 0; i < b->warps; i++) {
        PtxWarp *w = &b->warp[i];
        w->base[0] = p;
        w->base[1] = k->constants;
        p += registers;
        w->local = p;
        w->local_defined = p + local;
        p += 2 * local;
        w->copies = g_array_new(FALSE, FALSE, sizeof(PtxCopy));
        w->launch = a;
        w->block = b;
        w->index = i;
    }
    b->shared_stamps = (PtxStamp *)(void *)p;
    b->async = ptx_async_new();
    return b;
}

static void block_free(PtxBlock *b)
{
    for (int i = 0; i < b->warps; i++) {
        g_array_unref(b->warp[i].copies);
        ptx_products_free(&b->warp[i]);
    }
    ptx_async_free(b->async);
    g_free(b->warp);
    free(b->memory);
    g_free(b);
}

/* A block that is done, or a new one, becomes block i of the grid. */
static void block_start(PtxBlock *b, uint32_t i)
{
    PtxLaunch *a = b->launch;
    const EmuKernel *k = a->kernel;
    b->index = i;
    b->id[0] = i % a->size[0];
    b->id[1] = i / a->size[0] % a->size[1];
    b->id[2] = i / a->size[0] / a->size[1];
    b->began = ptx_tick(b);
    b->acquired = 0;
    b->copies_open = 0;
    b->gated = false;
    ptx_async_start(b->async);
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->shared_defined, 0, b->shared_bytes);
    memset(b->shared_stamps, 0, (b->shared_bytes + k->stamped - 1) / k->stamped * sizeof(PtxStamp));
    for (int n = 0; n < b->warps; n++) {
        PtxWarp *w = &b->warp[n];
        int lanes = MIN(LANES, b->threads - n * LANES);
        w->member = w->alive = lanes == LANES ? UINT32_MAX : (1u << lanes) - 1;
        w->splits = 1;
        w->split[0] = (PtxSplit){ 0, w->alive, 0, false };
        w->state = WARP_RUNS;
        w->steps = 0;
        for (int j = 0; j < LANES; j++)
            w->clock[j] = b->began;
        w->newest = b->began;
        g_array_set_size(w->copies, 0);
        ptx_products_start(w);
        if (k->local_bytes)
            memset(w->local_defined, 0, k->local_bytes * LANES);
        for (guint s = 0; s < k->specials->len; s++)
            fill_special(w, &g_array_index(k->specials, PtxSpecialUse, s));
    }
}

/* Turns of all warps. 1: the block is done; 0: it could go on; a fault where nobody can. */
static bool run_block(PtxBlock *b, uint64_t steps)
{
    PtxLaunch *a = b->launch;
    uint64_t end = a->steps + steps;
    for (;;) {
        int done = 0, ran = 0, from = 0;
        if (a->what->order)
            from = (int)(ptx_random(a) % (uint32_t)b->warps);
        for (int i = 0; i < b->warps; i++) {
            PtxWarp *w = &b->warp[(i + from) % b->warps];
            if (w->state == WARP_RUNS) {
                run_warp(w, a->what->order ? (int)(50 + ptx_random(a) % 500) : TURN);
                ran++;
                if (w->state == WARP_DONE)
                    for (int r = 0; r <= BARRIERS; r++)
                        if (b->barrier[r].arrived)
                            open_barrier(b, r);
            }
            done += w->state == WARP_DONE;
        }
        if (done == b->warps) {
            ptx_async_end(b);
            ptx_products_compare(b);
            return true;
        }
        for (int i = 0; i < b->warps && !ran; i++) {
            PtxWarp *w = &b->warp[i];
            if (w->state == WARP_AT_BARRIER)
                ptx_fault(w, w->barrier_in, __builtin_ctz(w->barrier_mask), FAULT_TIMEOUT,
                          "waits for threads that do not come: %u of %u have arrived", b->barrier[w->barrier].arrived,
                          b->barrier[w->barrier].count ? b->barrier[w->barrier].count : (unsigned)b->threads);
        }
        if (a->steps > a->budget) {
            PtxWarp *w = &b->warp[0];
            for (int i = 0; i < b->warps; i++)
                w = b->warp[i].state == WARP_RUNS ? &b->warp[i] : w;
            ptx_fault(w, &a->code[w->splits ? w->split[0].pc : 0], w->splits ? __builtin_ctz(w->split[0].mask) : 0,
                      FAULT_TIMEOUT,
                      "the kernel does not end within %" G_GUINT64_FORMAT " instructions (HONE_EMU_STEPS)", a->budget);
        }
        if (a->steps >= end)
            return false;
    }
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    return b ? divisor(b, a % b) : a;
}

/* All blocks: one after the other, but for those that run for long, which take turns with the ones behind them. */
static void run_grid(PtxLaunch *a, GPtrArray *running, GPtrArray *idle, uint64_t blocks)
{
    uint64_t step = 1, at = 0, limit = (uint64_t)MAX(a->what->sms, 1) * 2;
    if (a->what->order && blocks > 1) {
        do
            step = 1 + ptx_random(a) % (blocks - 1 ? blocks - 1 : 1);
        while (divisor(step, blocks) != 1);
        at = ptx_random(a) % blocks;
    }
    for (uint64_t started = 0; started < blocks || running->len;) {
        if (started < blocks && running->len < limit) {
            PtxBlock *b = idle->len ? g_ptr_array_steal_index(idle, idle->len - 1) : block_new(a);
            g_ptr_array_add(running, b);
            block_start(b, (uint32_t)at);
            at = (at + step) % blocks;
            started++;
        }
        for (guint i = 0; i < running->len;) {
            PtxBlock *b = running->pdata[i];
            if (run_block(b, BLOCK_TURN)) {
                g_ptr_array_remove_index(running, i);
                g_ptr_array_add(idle, b);
            } else {
                i++;
            }
        }
    }
}

static void forget_time(const EmuSpace *space)
{
    for (size_t i = 0; i < space->n; i++) {
        free(space->region[i]->races);
        space->region[i]->races = NULL;
    }
    now = 1;
}

bool emu_launch(const EmuKernel *k, const EmuLaunch *l, const EmuSpace *space, EmuCounts *counts, EmuFault *fault)
{
    PtxLaunch a = { .kernel = k, .what = l, .space = space, .counts = counts, .fault = fault, .random = l->order };
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2],
             threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    fault->text[0] = 0;
    fault->result = 0;
    if (!blocks || !threads || threads > k->max_threads || blocks > UINT32_MAX) {
        ptx_say(fault, 1,
                "kernel %s: %" G_GUINT64_FORMAT " blocks of %" G_GUINT64_FORMAT " threads, of which there may be %u",
                k->name, blocks, threads, k->max_threads);
        return false;
    }
    if (now > MAX_TIME)
        forget_time(space);
    const char *budget = getenv("HONE_EMU_STEPS");
    a.budget = budget ? strtoull(budget, NULL, 10) : UINT64_C(20000000000);
    a.code = &g_array_index(k->code, PtxInst, 0);
    memcpy(a.size, l->grid, sizeof a.size);
    a.seen = g_new0(EmuRegion *, k->code->len);
    a.blocks_of_time = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    a.began = now + 1;
    a.published = g_new0(uint32_t, blocks);
    GPtrArray *running = g_ptr_array_new(), *idle = g_ptr_array_new();
    bool ok = !setjmp(a.out);
    if (ok)
        run_grid(&a, running, idle, blocks);
    g_ptr_array_set_free_func(running, (GDestroyNotify)block_free);
    g_ptr_array_set_free_func(idle, (GDestroyNotify)block_free);
    g_ptr_array_unref(running);
    g_ptr_array_unref(idle);
    counts->launches++;
    counts->blocks += blocks;
    counts->instructions += a.steps;
    g_array_unref(a.blocks_of_time);
    g_free(a.published);
    g_free(a.seen);
    return ok;
}
