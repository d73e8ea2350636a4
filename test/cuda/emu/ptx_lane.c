#include "ptx_each.h"

/* Between the lanes of a warp: all that a mask names have come together before (CTL_SYNC). */

/* d|p, a, b, c, mask; in->sub: 0 up, 1 down, 2 bfly, 3 idx */
static void shuffle(PtxWarp *w, const PtxInst *in, uint32_t mask, int mode)
{
    bool has_p = in->n == 6;
    uint32_t *d = ptx_row(w, in->o[0]), *p = has_p && in->o[1] != -1 ? ptx_row(w, in->o[1]) : NULL;
    const int32_t *o = ptx_more(w, in) + (has_p ? 2 : 1);
    const uint32_t *a = ptx_row(w, o[0]), *b = ptx_row(w, o[1]), *c = ptx_row(w, o[2]);
    uint32_t out[LANES], inside = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        int clamp = c[l] & 31, segment = c[l] >> 8 & 31, by = (int)(b[l] & 31);
        int top = (l & segment) | (clamp & ~segment), bottom = l & segment, j;
        bool ok;
        if (mode == 0) {
            j = l - by;
            ok = j >= top;
        } else if (mode == 1) {
            j = l + by;
            ok = j <= top;
        } else if (mode == 2) {
            j = l ^ by;
            ok = j <= top;
        } else {
            j = bottom | (by & ~segment);
            ok = j <= top;
        }
        if (!ok)
            j = l;
        inside |= (uint32_t)ok << l;
        if (!(mask >> j & 1))
            ptx_fault(w, in, l, FAULT_OTHER, "reads the value of lane %d, which is not there", j);
        out[l] = a[j];
    }
    if (in->o[0] != -1)
        for (uint32_t m = mask; m; m &= m - 1)
            d[__builtin_ctz(m)] = out[__builtin_ctz(m)];
    if (p)
        *p = (*p & ~mask) | (inside & mask);
}

#define SHUFFLE(name, mode)                                        \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        shuffle(w, in, mask, mode);                                \
    }
SHUFFLE(shfl_up, 0)
SHUFFLE(shfl_down, 1)
SHUFFLE(shfl_bfly, 2)
SHUFFLE(shfl_idx, 3)

static uint32_t predicate(PtxWarp *w, const PtxInst *in, int i, uint32_t mask)
{
    uint32_t p = *(const uint32_t *)ptx_row(w, in->o[i]);
    return (in->flags & PTX_NOT ? ~p : p) & mask;
}

static void set_predicate(PtxWarp *w, int32_t row, uint32_t mask, bool value)
{
    if (row == -1)
        return;
    uint32_t *d = ptx_row(w, row);
    *d = (*d & ~mask) | (value ? mask : 0);
}

static void vote_all(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    set_predicate(w, in->o[0], mask, predicate(w, in, 1, mask) == mask);
}

static void vote_any(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    set_predicate(w, in->o[0], mask, predicate(w, in, 1, mask) != 0);
}

static void vote_uni(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t p = predicate(w, in, 1, mask);
    set_predicate(w, in->o[0], mask, p == mask || !p);
}

static void vote_ballot(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t *d = ptx_row(w, in->o[0]), p = predicate(w, in, 1, mask);
    EACH({ d[l] = p; });
}

static void activemask(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t *d = ptx_row(w, in->o[0]);
    EACH({ d[l] = mask; });
}

static uint64_t element(PtxWarp *w, const PtxInst *in, int i, int l)
{
    const void *row = ptx_row(w, in->o[i]);
    return in->wide >> i & 1 ? ((const uint64_t *)row)[l] : ((const uint32_t *)row)[l];
}

static void match_any(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t out[LANES] = { 0 };
    for (int l = 0; l < LANES; l++)
        for (int j = 0; j < LANES; j++)
            if (mask >> l & mask >> j & 1 && element(w, in, 1, l) == element(w, in, 1, j))
                out[l] |= 1u << j;
    uint32_t *d = ptx_row(w, in->o[0]);
    EACH({ d[l] = out[l]; });
}

static void match_all(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    int a = in->n == 4 ? 2 : 1, first = __builtin_ctz(mask);
    bool same = true;
    for (uint32_t m = mask; m; m &= m - 1)
        same = same && element(w, in, a, __builtin_ctz(m)) == element(w, in, a, first);
    uint32_t *d = ptx_row(w, in->o[0]);
    EACH({ d[l] = same ? mask : 0; });
    if (a == 2)
        set_predicate(w, in->o[1], mask, same);
}

#define REDUX(name, T, expr)                                       \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        uint32_t *d = ptx_row(w, in->o[0]);                        \
        const uint32_t *a = ptx_row(w, in->o[1]);                  \
        T x = (T)a[__builtin_ctz(mask)];                           \
        for (uint32_t m = mask & (mask - 1); m; m &= m - 1) {      \
            T y = (T)a[__builtin_ctz(m)];                          \
            x = (T)(expr);                                         \
        }                                                          \
        EACH({ d[l] = (uint32_t)x; });                             \
    }
REDUX(redux_add, uint32_t, x + y)
REDUX(redux_and, uint32_t, x &y)
REDUX(redux_or, uint32_t, x | y)
REDUX(redux_xor, uint32_t, x ^ y)
REDUX(redux_min_u32, uint32_t, MIN(x, y))
REDUX(redux_max_u32, uint32_t, MAX(x, y))
REDUX(redux_min_s32, int32_t, MIN(x, y))
REDUX(redux_max_s32, int32_t, MAX(x, y))

static void elect(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t leader = (uint32_t)__builtin_ctz(mask);
    if (in->o[0] != -1) {
        uint32_t *d = ptx_row(w, in->o[0]);
        EACH({ d[l] = leader; });
    }
    set_predicate(w, in->o[1], mask, false);
    set_predicate(w, in->o[1], 1u << leader, true);
}

#define ISSPACE(name, test)                                        \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        const uint64_t *a = ptx_row(w, in->o[1]);                  \
        for (uint32_t m = mask; m; m &= m - 1) {                   \
            uint64_t x = a[__builtin_ctz(m)];                      \
            set_predicate(w, in->o[0], m & -m, test);              \
        }                                                          \
    }
ISSPACE(is_shared, x / PTX_WINDOW == 1)
ISSPACE(is_local, x / PTX_WINDOW == 2)
ISSPACE(is_global, x / PTX_WINDOW > 3)

#define S(key, fn, form) { key, fn, form, NULL },
const PtxEntry ptx_lane_entries[] = {
    S("shfl.up.b32", shfl_up, "sync") S("shfl.down.b32", shfl_down, "sync") S("shfl.bfly.b32", shfl_bfly, "sync")
        S("shfl.idx.b32", shfl_idx, "sync") S("vote.all.pred", vote_all, "sync") S("vote.any.pred", vote_any, "sync")
            S("vote.uni.pred", vote_uni, "sync") S("vote.ballot.b32", vote_ballot, "sync")
                S("match.any.b32", match_any, "sync") S("match.any.b64", match_any, "sync")
                    S("match.all.b32", match_all, "sync") S("match.all.b64", match_all, "sync")
                        S("redux.add.u32", redux_add, "sync") S("redux.add.s32", redux_add, "sync")
                            S("redux.and.b32", redux_and, "sync") S("redux.or.b32", redux_or, "sync")
                                S("redux.xor.b32", redux_xor, "sync") S("redux.min.u32", redux_min_u32, "sync")
                                    S("redux.max.u32", redux_max_u32, "sync") S("redux.min.s32", redux_min_s32, "sync")
                                        S("redux.max.s32", redux_max_s32, "sync") S("elect", elect, "sync")
                                            S("activemask.b32", activemask, "D") S("isspacep.shared", is_shared, "PL")
                                                S("isspacep.local", is_local, "PL")
                                                    S("isspacep.global", is_global, "PL"){ NULL, NULL, NULL, NULL },
};
