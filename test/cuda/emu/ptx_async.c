#include "ptx_each.h"

/*
 * What goes on beside the warps of a block: barriers in shared memory (mbarrier), copies of tiles of tensors
 * (cp.async.bulk.tensor), products of warpgroups (wgmma). Copies arrive when somebody looks at their barrier, and
 * products are computed when their warp waits for them: no sooner. Each warp computes its own 16 rows of a product.
 */

enum { ROWS = 16, MOST_N = 256, MOST_K = 16, CHUNK = 8, LINE = 128, ATOM = 1024 };
enum { POLLS = 100000 }; /* in vain, and nothing else happened */

typedef struct {
    uint32_t at, phase, count, pending;
    int64_t bytes;         /* that are still to come */
    int maker;             /* warp that has made it */
    bool shown;            /* by a fence, to what goes on beside the warps */
    uint32_t clock[LANES]; /* what is ordered before the end of this phase */
    uint32_t done[LANES];  /* ... of the one before */
} Gate;

typedef struct {
    uint32_t gate, dst;
    size_t bytes;
    uint8_t *data;
    bool asked; /* somebody has looked for it, in vain */
    uint32_t clock[LANES];
    PtxWarp *w;
    const PtxInst *in;
} Flight;

typedef struct {
    const PtxInst *in;
    uint32_t group, began;
    uint64_t a_desc, b_desc;
    uint32_t a[4][LANES];
    bool add, a_across, b_across; /* lines of an operand lie across k */
    int sign;                     /* of the products */
} Product;

struct PtxAsync {
    GArray *gates, *flights;
    uint8_t *making; /* data of a flight that has not taken off, which a fault leaves behind */
    uint32_t polls;
};

static void flight_clear(gpointer flight)
{
    g_free(((Flight *)flight)->data);
}

PtxAsync *ptx_async_new(void)
{
    PtxAsync *a = g_new0(PtxAsync, 1);
    a->gates = g_array_new(FALSE, TRUE, sizeof(Gate));
    a->flights = g_array_new(FALSE, FALSE, sizeof(Flight));
    g_array_set_clear_func(a->flights, flight_clear);
    return a;
}

void ptx_async_free(PtxAsync *a)
{
    g_array_unref(a->gates);
    g_array_unref(a->flights);
    g_free(a->making);
    g_free(a);
}

void ptx_async_start(PtxAsync *a)
{
    g_array_set_size(a->gates, 0);
    g_array_set_size(a->flights, 0);
    a->polls = 0;
}

void ptx_async_end(const PtxBlock *b)
{
    if (b->async->flights->len == 0)
        return;
    const Flight *f = &g_array_index(b->async->flights, Flight, 0);
    ptx_fault(f->w, f->in, 0, FAULT_OTHER, "the block ends before anybody has waited for this copy");
}

static void later(uint32_t *clock, const uint32_t *other)
{
    for (int i = 0; i < LANES; i++)
        clock[i] = MAX(clock[i], other[i]);
}

/* --- barriers in shared memory --- */

static uint64_t near_address(PtxWarp *w, const PtxInst *in, int operand, int64_t plus, int lane)
{
    uint64_t address[LANES];
    ptx_addresses(w, in, operand, plus, 1u << lane, address);
    return address[lane] / PTX_WINDOW == 1 ? address[lane] - PTX_SHARED_BASE : address[lane];
}

void ptx_gates_shown(const PtxWarp *w)
{
    GArray *gates = w->block->async->gates;
    for (guint i = 0; i < gates->len; i++)
        g_array_index(gates, Gate, i).shown |= g_array_index(gates, Gate, i).maker == w->index;
}

void ptx_run_gates_shown(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    (void)mask;
    ptx_gates_shown(w);
}

void ptx_check_gate(PtxWarp *w, const PtxInst *in, int lane, uint64_t at, size_t bytes)
{
    const GArray *gates = w->block->async->gates;
    for (guint i = 0; i < gates->len; i++) {
        const Gate *g = &g_array_index(gates, Gate, i);
        if (at < g->at + 8 && g->at < at + bytes)
            ptx_fault(w, in, lane, FAULT_OTHER, "writes over the mbarrier at 0x%x of shared memory", g->at);
    }
}

static Gate *gate_at(PtxWarp *w, const PtxInst *in, int lane, uint64_t at)
{
    GArray *gates = w->block->async->gates;
    for (guint i = 0; i < gates->len; i++)
        if (g_array_index(gates, Gate, i).at == at) {
            ptx_shared_bytes(w, in, lane, at, 8, USE_ATOMIC);
            return &g_array_index(gates, Gate, i);
        }
    ptx_fault(w, in, lane, FAULT_OTHER, "there is no mbarrier at 0x%" G_GINT64_MODIFIER "x of shared memory", at);
}

static void end_phase(PtxBlock *b, Gate *g)
{
    if (g->pending > 0 || g->bytes != 0)
        return;
    g->phase++;
    g->pending = g->count;
    memcpy(g->done, g->clock, sizeof g->done);
    b->async->polls = 0;
}

static void gate_init(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    const uint32_t *count = ptx_row(w, in->o[1]);
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t at = near_address(w, in, 0, in->imm, l);
        if (at % 8)
            ptx_fault(w, in, l, FAULT_ALIGNMENT, "an mbarrier at 0x%" G_GINT64_MODIFIER "x", at);
        if (count[l] == 0 || count[l] > 0xfffff)
            ptx_fault(w, in, l, FAULT_OTHER, "an mbarrier for %u arrivals", count[l]);
        ptx_shared_bytes(w, in, l, at, 8, USE_WRITE);
        GArray *gates = w->block->async->gates;
        for (guint i = 0; i < gates->len; i++)
            if (g_array_index(gates, Gate, i).at == at)
                ptx_fault(w, in, l, FAULT_OTHER, "there is an mbarrier at 0x%" G_GINT64_MODIFIER "x already", at);
        Gate g = { .at = (uint32_t)at, .count = count[l], .pending = count[l], .maker = w->index };
        g_array_append_val(gates, g);
        w->block->gated = true;
    }
}

/* sub: bit 0 arrives, bit 1 expects bytes. */
static void gate_arrive(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    PtxBlock *b = w->block;
    int first = in->sub & 1 && !(in->flags & PTX_NOT_D) ? 1 : 0;
    const uint32_t *n = in->n > first + 1 ? ptx_row(w, in->o[first + 1]) : NULL;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t at = near_address(w, in, first, in->imm, l);
        Gate *g = gate_at(w, in, l, at);
        uint32_t arrivals = !(in->sub & 1) ? 0 : n && !(in->sub & 2) ? n[l] : 1;
        if (first && in->o[0] != -1)
            ((uint64_t *)ptx_row(w, in->o[0]))[l] = g->phase;
        if (arrivals > g->pending)
            ptx_fault(w, in, l, FAULT_OTHER, "the mbarrier at 0x%x waits for %u arrivals, not for %u", g->at,
                      g->pending, arrivals);
        if (in->sub & 2)
            g->bytes += n[l];
        if (arrivals) {
            later(g->clock, w->clock);
            g->clock[w->index] = ptx_tick(b);
        }
        g->pending -= arrivals;
        end_phase(b, g);
    }
}

/* Copies come in whose end this barrier shows: when they are asked for the second time. */
static void land(PtxBlock *b, Gate *g)
{
    GArray *all = b->async->flights;
    for (guint i = 0; i < all->len;) {
        Flight *f = &g_array_index(all, Flight, i);
        if (f->gate != g->at || !f->asked) {
            f->asked |= f->gate == g->at;
            i++;
            continue;
        }
        memcpy(b->shared + f->dst, f->data, f->bytes);
        memset(b->shared_defined + f->dst, 1, f->bytes);
        later(g->clock, f->clock);
        g->bytes -= (int64_t)f->bytes;
        b->copies_open--;
        g_array_remove_index(all, i);
        end_phase(b, g);
    }
}

/* sub: 1 by parity, 0 by the phase that an arrival gave. */
static void gate_test(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    PtxBlock *b = w->block;
    uint32_t *d = ptx_row(w, in->o[0]), looked = UINT32_MAX; /* lanes look together */
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        Gate *g = gate_at(w, in, l, near_address(w, in, 1, in->imm, l));
        uint64_t want =
            in->sub ? ((const uint32_t *)ptx_row(w, in->o[2]))[l] : ((const uint64_t *)ptx_row(w, in->o[2]))[l];
        if (in->sub && want > 1)
            ptx_fault(w, in, l, FAULT_OTHER, "a phase of parity %" G_GUINT64_FORMAT, want);
        uint32_t now = in->sub ? g->phase & 1 : g->phase;
        if (now == want && g->at != looked)
            land(b, g);
        looked = g->at;
        now = in->sub ? g->phase & 1 : g->phase;
        *d &= ~(1u << l);
        if (now != want) {
            *d |= 1u << l;
            later(w->clock, g->done);
            for (int j = 0; j < b->warps; j++)
                if (j != w->index)
                    w->newest = MAX(w->newest, w->clock[j]);
        } else if (b->async->polls++ > POLLS) {
            ptx_fault(w, in, l, FAULT_TIMEOUT,
                      "waits for a phase of the mbarrier at 0x%x that does not end: %u arrivals and %" G_GINT64_FORMAT
                      " bytes are missing",
                      g->at, g->pending, g->bytes);
        }
    }
}

const char *ptx_decode_gate(const PtxOpcode *o, PtxInst *in)
{
    in->type = T_B64;
    if (ptx_has(o, ".init")) {
        in->fn = gate_init;
        return "MU";
    }
    if (ptx_has(o, ".test_wait") || ptx_has(o, ".try_wait")) {
        in->fn = gate_test;
        in->control = CTL_YIELD;
        in->sub = ptx_has(o, ".parity");
        return in->sub ? "PMUU" : "PMLU";
    }
    in->fn = gate_arrive;
    in->sub = (uint8_t)(ptx_has(o, ".arrive") | ptx_has(o, ".expect_tx") << 1);
    if (!in->sub || ptx_has(o, ".noComplete") || ptx_has(o, ".shared::cluster"))
        return NULL;
    return in->sub & 1 ? "AMU" : "MU";
}

/* --- copies --- */

/* It begins: what comes is in f.data. */
static void take_off(PtxWarp *w, Flight *f, const Gate *g, uint64_t dst)
{
    if (!g->shown)
        ptx_fault(w, f->in, 0, FAULT_OTHER,
                  "the mbarrier at 0x%x was made without a fence (mbarrier_init or proxy.async) behind it", g->at);
    f->gate = g->at;
    f->dst = (uint32_t)dst;
    memcpy(f->clock, w->clock, sizeof f->clock);
    f->clock[w->index] = ptx_tick(w->block);
    g_array_append_vals(w->block->async->flights, f, 1);
    w->block->async->making = NULL;
    w->block->copies_open++;
}

/* dst, src, bytes, barrier. */
static void line_copy(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    const uint32_t *bytes = ptx_row(w, in->o[2]);
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t from[LANES], dst = near_address(w, in, 0, in->imm, l);
        Flight f = { .w = w, .in = in, .bytes = bytes[l] };
        ptx_addresses(w, in, 1, in->imm_b, 1u << l, from);
        if (dst % 16 || from[l] % 16 || f.bytes % 16 || !f.bytes)
            ptx_fault(w, in, l, FAULT_ALIGNMENT,
                      "copies %zu bytes from 0x%" G_GINT64_MODIFIER "x to 0x%" G_GINT64_MODIFIER
                      "x of shared memory, which are no multiples of 16",
                      f.bytes, from[l], dst);
        ptx_shared_bytes(w, in, l, dst, f.bytes, USE_COPY);
        const Gate *g = gate_at(w, in, l, near_address(w, in, 3, 0, l));
        f.data = w->block->async->making = g_malloc(f.bytes);
        for (size_t i = 0; i < f.bytes; i += 16) {
            uint64_t address[LANES];
            uint8_t *place[LANES];
            address[l] = from[l] + i;
            ptx_places(w, in, 1u << l, SPACE_GLOBAL, address, 16, USE_READ, place);
            memcpy(f.data + i, place[l], 16);
        }
        take_off(w, &f, g, dst);
    }
}

static void check_map(PtxWarp *w, const PtxInst *in, int l, const EmuTensorMap *t)
{
    if (t->magic != EMU_TENSOR_MAP)
        ptx_fault(w, in, l, FAULT_OTHER, "there is no tensor map (cuTensorMapEncodeTiled) where it is said to be");
    if (t->rank != in->vec)
        ptx_fault(w, in, l, FAULT_OTHER, "the tensor map has %d axes, the copy %d", t->rank, in->vec);
}

/* A line of the box, axis 0: from the tensor, zeros outside. */
static void copy_line(PtxWarp *w, const PtxInst *in, int l, const EmuTensorMap *t, const int32_t *at, uint8_t *to)
{
    int64_t first = at[0], n = t->box[0];
    uint64_t from = t->address;
    memset(to, 0, (size_t)n * t->size);
    for (int i = 1; i < t->rank; i++) {
        if (at[i] < 0 || (uint32_t)at[i] >= t->dims[i])
            return;
        from += (uint64_t)at[i] * t->strides[i - 1];
    }
    for (int64_t i = MAX(-first, 0); i < n && first + i < (int64_t)t->dims[0];) {
        uint64_t address[LANES] = { 0 };
        uint8_t *place[LANES];
        int64_t left = MIN(n, (int64_t)t->dims[0] - first) - i;
        address[l] = from + (uint64_t)(first + i) * t->size;
        size_t bytes = left * t->size >= 16 && address[l] % 16 == 0 ? 16 : t->size;
        ptx_places(w, in, 1u << l, SPACE_GLOBAL, address, bytes, USE_READ, place);
        memcpy(to + (size_t)i * t->size, place[l], bytes);
        i += (int64_t)(bytes / t->size);
    }
}

/* dst, map, a number for each axis, barrier. vec: axes. */
static void tile_copy(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    const int32_t *o = ptx_more(w, in);
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m), at[5] = { 0 }, start[5];
        EmuTensorMap t;
        uint64_t address[LANES];
        ptx_addresses(w, in, 1, in->imm_b, 1u << l, address);
        if (address[l] % 64)
            ptx_fault(w, in, l, FAULT_ALIGNMENT, "a tensor map at an address that is no multiple of 64");
        for (size_t i = 0; i < sizeof t; i += 8) {
            uint64_t piece[LANES];
            uint8_t *place[LANES];
            piece[l] = address[l] + i;
            ptx_places(w, in, 1u << l, SPACE_GENERIC, piece, 8, USE_READ, place);
            memcpy((uint8_t *)&t + i, place[l], 8);
        }
        check_map(w, in, l, &t);
        Flight f = { .w = w, .in = in, .bytes = t.size };
        for (int i = 0; i < t.rank; i++) {
            start[i] = ((const int32_t *)ptx_row(w, o[2 + i]))[l];
            f.bytes *= t.box[i];
        }
        uint64_t dst = near_address(w, in, 0, in->imm, l);
        if (dst % LINE)
            ptx_fault(w, in, l, FAULT_ALIGNMENT,
                      "a tile at 0x%" G_GINT64_MODIFIER "x of shared memory, which is no multiple of 128", dst);
        ptx_shared_bytes(w, in, l, dst, f.bytes, USE_COPY);
        const Gate *g = gate_at(w, in, l, near_address(w, in, 2 + t.rank, 0, l));
        f.data = w->block->async->making = g_malloc(f.bytes);
        size_t line = (size_t)t.box[0] * t.size;
        uint8_t buffer[2048];
        for (size_t i = 0; i < f.bytes / line; i++) {
            size_t rest = i;
            at[0] = start[0];
            for (int k = 1; k < t.rank; rest /= t.box[k], k++)
                at[k] = start[k] + (int)(rest % t.box[k]);
            copy_line(w, in, l, &t, at, buffer);
            for (size_t c = 0; c < line; c += 16) {
                size_t to = dst + i * line + c;
                if (t.swizzled)
                    to ^= (to >> 7 & 7) << 4;
                memcpy(f.data + (to - dst), buffer + c, 16);
            }
        }
        take_off(w, &f, g, dst);
    }
}

/* cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [src], bytes, [barrier]
 * cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [dst], [map, {x, y, z}], [barrier]
 */
const char *ptx_decode_tile(const PtxOpcode *o, PtxInst *in)
{
    static const char *const ranks[] = { ".1d", ".2d", ".3d", ".4d", ".5d" };
    static const char *const forms[] = { "MMUM", "MMUUM", "MMUUUM", "MMUUUUM", "MMUUUUUM" };
    if (o->parts == 6 && ptx_is(o->part[4], ".global") && ptx_has(o, ".mbarrier::complete_tx::bytes") && in->n == 4) {
        in->fn = line_copy;
        return "MMUM";
    }
    bool loads = o->parts > 7 && ptx_has(o, ".tensor") && ptx_has(o, ".tile") && ptx_is(o->part[6], ".global") &&
                 (ptx_is(o->part[5], ".shared::cluster") || ptx_is(o->part[5], ".shared::cta"));
    if (!loads || ptx_has(o, ".multicast::cluster") || !ptx_has(o, ".mbarrier::complete_tx::bytes"))
        return NULL;
    for (int i = 0; i < 5; i++)
        if (ptx_has(o, ranks[i]) && in->n == i + 4) {
            in->fn = tile_copy;
            in->vec = (uint8_t)(i + 1);
            return forms[i];
        }
    return NULL;
}

/* --- products of warpgroups --- */

/* An operand in shared memory, as its descriptor says: 128-byte swizzle. */
typedef struct {
    uint32_t start, leading, stride;
    bool along_k; /* lines of 128 bytes run along k */
    int size;     /* bytes of an element */
} Matrix;

static Matrix matrix_of(PtxWarp *w, const PtxInst *in, uint64_t d, bool along_k, int size)
{
    Matrix m = { .start = (uint32_t)(d & 0x3fff) << 4,
                 .leading = (uint32_t)(d >> 16 & 0x3fff) << 4,
                 .stride = (uint32_t)(d >> 32 & 0x3fff) << 4,
                 .along_k = along_k,
                 .size = size };
    if (d >> 62 != 1)
        ptx_fault(w, in, 0, FAULT_OTHER,
                  "a descriptor of a matrix without the 128-byte swizzle, the only one that is known");
    if ((d >> 49 & 7) != 0 || m.start % ATOM / LINE != 0 || (!along_k && m.start % ATOM != 0))
        ptx_fault(w, in, 0, FAULT_OTHER, "a matrix at 0x%x of shared memory: it begins within a pattern of 1024 bytes",
                  m.start);
    if (m.stride % ATOM != 0 || (!along_k && m.leading % ATOM != 0))
        ptx_fault(w, in, 0, FAULT_OTHER, "a matrix whose groups are %u and %u bytes apart, no multiples of 1024",
                  m.leading, m.stride);
    return m;
}

/* Of element k of that row of A, or column of B. */
static uint32_t element_at(const Matrix *m, int row, int k)
{
    uint32_t at;
    if (m->along_k)
        at = m->start + (uint32_t)(row / 8) * m->stride + (uint32_t)(row % 8 * LINE + k * m->size);
    else
        at = m->start + (uint32_t)(row / 64) * m->leading + (uint32_t)(k / 8) * m->stride +
             (uint32_t)(k % 8 * LINE + row % 64 * m->size);
    return at ^ (at >> 7 & 7) << 4;
}

/* Looks at all pieces of 16 bytes that rows first to first + n of the operand consist of. began: when the product
 * began, 0: now. */
static void use_matrix(PtxWarp *w, const PtxInst *in, const Matrix *m, int first, int n, int depth, uint32_t began)
{
    const int each = 16 / m->size;
    for (int i = first; i < first + n; i += m->along_k ? 1 : each)
        for (int k = 0; k < depth; k += m->along_k ? each : 1)
            if (began == 0 || ptx_shared_untouched(w, element_at(m, i, k), 16, began))
                ptx_shared_bytes(w, in, 0, element_at(m, i, k), 16, USE_PRODUCT);
            else
                ptx_fault(w, in, 0, FAULT_OTHER,
                          "reads 0x%x of shared memory, which was written before anybody had waited for this product",
                          element_at(m, i, k));
}

typedef float Line[MOST_K];

static float number(PtxType t, const uint8_t *p)
{
    uint32_t bits = 0;
    float f;
    memcpy(&bits, p, t == T_TF32 ? 4 : 2);
    if (t == T_F16)
        return ptx_half_to_float((uint16_t)bits);
    if (t == T_BF16)
        return ptx_bf16_to_float((uint16_t)bits);
    bits &= 0xffffe000u;
    memcpy(&f, &bits, 4);
    return f;
}

static void read_matrix(const PtxWarp *w, const Matrix *m, PtxType t, int first, int n, int depth, Line *to)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < depth; k++)
            to[i][k] = number(t, w->block->shared + element_at(m, first + i, k));
}

static int columns(const PtxInst *in)
{
    return in->vec * 8;
}
static bool from_registers(const PtxInst *in)
{
    return in->flags & PTX_HAS_P;
}
static int size_of(const PtxInst *in)
{
    return in->from == T_TF32 ? 4 : 2;
}
static int depth_of(const PtxInst *in)
{
    return in->from == T_TF32 ? 8 : 16;
}

/* A register of a product that another instruction used since the last fence. */
static void used_behind_fence(PtxWarp *w, const PtxInst *in, int32_t row)
{
    if (row >= 0 && !(row & 1) && w->used[row / LINE] == w->product_fences)
        ptx_fault(w, in, 0, FAULT_OTHER, "a product without wgmma.fence behind what used one of its registers");
}

/* D, A (a descriptor, or four registers), B, whether to add, signs, and what lies across k. */
static void product_begin(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)mask;
    const int32_t *o = ptx_more(w, in), *a = o + columns(in) / 2, *b = a + (from_registers(in) ? 4 : 1);
    Product p = { .in = in, .group = w->product_group, .sign = 1 };
    if (w->block->threads < (w->index / 4 + 1) * 4 * LANES)
        ptx_fault(w, in, 0, FAULT_OTHER, "a product of a warpgroup that has not four warps");
    if (!w->products_fenced)
        ptx_fault(w, in, 0, FAULT_OTHER, "a product without wgmma.fence behind what changed its registers");
    p.add = *(const uint32_t *)ptx_row(w, b[1]) != 0;
    for (int i = 2; i < 4; i++)
        p.sign *= *(const int32_t *)ptx_row(w, b[i]) < 0 ? -1 : 1;
    for (const int32_t *across = b + 4; across < o + in->n; across++)
        *(across == o + in->n - 1 ? &p.b_across : &p.a_across) = *(const uint32_t *)ptx_row(w, *across) != 0;
    memcpy(&p.b_desc, ptx_row(w, b[0]), 8);
    Matrix m = matrix_of(w, in, p.b_desc, !p.b_across, size_of(in));
    use_matrix(w, in, &m, 0, columns(in), depth_of(in), 0);
    if (from_registers(in)) {
        for (int r = 0; r < 4; r++)
            memcpy(p.a[r], ptx_row(w, a[r]), sizeof p.a[r]);
    } else {
        memcpy(&p.a_desc, ptx_row(w, a[0]), 8);
        m = matrix_of(w, in, p.a_desc, !p.a_across, size_of(in));
        use_matrix(w, in, &m, w->index % 4 * ROWS, ROWS, depth_of(in), 0);
    }
    if (!w->products)
        w->products = g_array_new(FALSE, FALSE, sizeof(Product));
    for (int i = 0; i < columns(in) / 2; i++) {
        used_behind_fence(w, in, o[i]);
        w->busy[o[i] / LINE]++;
    }
    for (int i = 0; from_registers(in) && i < 4; i++) {
        used_behind_fence(w, in, a[i]);
        if (!(a[i] & 1))
            w->read[a[i] / LINE]++;
    }
    w->product_last = in;
    w->product_hash = w->product_hash * 31 + (uint32_t)(in - w->launch->code) + 1;
    p.began = ptx_tick(w->block);
    g_array_append_val(w->products, p);
}

/* Towards zero: what hardware does with a sum at its worst. */
static float cut(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (f - f == 0 && (x < 0 ? (double)f < x : (double)f > x))
        bits--;
    memcpy(&f, &bits, 4);
    return f;
}

static void product_end(PtxWarp *w, const Product *p)
{
    const PtxInst *in = p->in;
    const int n = columns(in), depth = depth_of(in);
    const PtxType t = (PtxType)in->from;
    const int32_t *o = ptx_more(w, in);
    Line A[ROWS], B[MOST_N]; /* on the stack: a fault leaves by a jump */
    Matrix m = matrix_of(w, in, p->b_desc, !p->b_across, size_of(in));
    use_matrix(w, in, &m, 0, n, depth, p->began);
    read_matrix(w, &m, t, 0, n, depth, B);
    if (from_registers(in)) {
        const int per = depth / 8; /* elements of a register */
        for (int l = 0; l < LANES; l++)
            for (int r = 0; r < 4; r++)
                for (int i = 0; i < per; i++)
                    A[l / 4 + r % 2 * 8][(r / 2 * 4 + l % 4) * per + i] =
                        number(t, (const uint8_t *)&p->a[r][l] + 2 * i);
    } else {
        m = matrix_of(w, in, p->a_desc, !p->a_across, size_of(in));
        use_matrix(w, in, &m, w->index % 4 * ROWS, ROWS, depth, p->began);
        read_matrix(w, &m, t, w->index % 4 * ROWS, ROWS, depth, A);
    }
    for (int r = 0; from_registers(in) && r < 4; r++)
        if (!(o[n / 2 + r] & 1))
            w->read[o[n / 2 + r] / LINE]--;
    for (int i = 0; i < n / 2; i++) {
        float *d = ptx_row(w, o[i]);
        w->busy[o[i] / LINE]--;
        for (int l = 0; l < LANES; l++) {
            const float *x = A[l / 4 + i % 4 / 2 * 8], *y = B[i / 4 * 8 + l % 4 * 2 + i % 2];
            double s = p->add ? (double)d[l] : 0;
            for (int from = 0; from < depth; from += CHUNK) {
                double part = 0;
                for (int k = from; k < from + CHUNK; k++)
                    part += (double)x[k] * (double)y[k];
                s = (double)cut(s + p->sign * part);
            }
            d[l] = (float)s;
        }
    }
}

static void product_fence(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    (void)mask;
    w->products_fenced = true;
    w->product_fences++;
}

static void product_group(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)in;
    (void)mask;
    w->product_group++;
}

static void product_wait(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)mask;
    uint32_t keep = *(const uint32_t *)ptx_row(w, in->o[0]);
    guint n = 0;
    w->products_fenced = false;
    while (w->products && n < w->products->len) {
        const Product *p = &g_array_index(w->products, Product, n);
        if (w->product_group - p->group <= keep)
            break;
        product_end(w, p);
        n++;
    }
    if (n)
        g_array_remove_range(w->products, 0, n);
}

/* wgmma.mma_async.sync.aligned.m64nNkK.f32.T.T, fence, commit_group, wait_group */
const char *ptx_decode_product(const PtxOpcode *o, PtxInst *in)
{
    in->control = CTL_SYNC;
    in->type = T_B32;
    in->fn = ptx_has(o, ".fence")          ? product_fence
             : ptx_has(o, ".commit_group") ? product_group
             : ptx_has(o, ".wait_group")   ? product_wait
                                           : product_begin;
    if (in->fn != product_begin)
        return "U";
    int n = 0, k = 0, types = 0;
    PtxType t[3] = { T_NONE };
    for (int i = 1; i < o->parts; i++) {
        PtxType found = ptx_type_of(o->part[i]);
        if (found && types < 3)
            t[types++] = found;
        if (o->part[i].n > 4 && memcmp(o->part[i].s, ".m64n", 5) == 0) {
            const char *at = o->part[i].s + 5, *end = o->part[i].s + o->part[i].n;
            for (; at < end && g_ascii_isdigit(*at); at++)
                n = 10 * n + (*at - '0');
            for (at++; at < end && g_ascii_isdigit(*at); at++)
                k = 10 * k + (*at - '0');
        }
    }
    bool half = (t[1] == T_F16 || t[1] == T_BF16) && k == 16, tf32 = t[1] == T_TF32 && k == 8;
    int behind = in->n - n / 2; /* operands behind D: A, B, the predicate, two signs; of halves what lies across k */
    if (types < 3 || t[0] != T_F32 || t[1] != t[2] || !(half || tf32) || n < 8 || n > MOST_N || n % 8)
        return NULL;
    int in_shared = half ? 7 : 5, in_registers = half ? 9 : 8;
    if (behind != in_shared && behind != in_registers)
        return NULL;
    in->from = (uint8_t)t[1];
    in->vec = (uint8_t)(n / 8);
    in->flags = behind == in_registers ? PTX_HAS_P : 0;
    return "*";
}

static bool is_of_products(const PtxInst *in)
{
    return in->fn == product_begin || in->fn == product_fence || in->fn == product_group || in->fn == product_wait;
}

void ptx_check_registers(PtxWarp *w, const PtxInst *in)
{
    const int32_t *o = ptx_more(w, in);
    if (is_of_products(in))
        return;
    for (int i = 0; i < in->n; i++) {
        if (o[i] < 0 || o[i] & 1)
            continue;
        if (w->busy[o[i] / LINE])
            ptx_fault(w, in, 0, FAULT_OTHER,
                      "uses a register of a product (wgmma) that nobody has waited for (wgmma.wait_group)");
        if (i < in->results && !in->copies && w->read[o[i] / LINE])
            ptx_fault(
                w, in, 0, FAULT_OTHER,
                "changes a register that a product (wgmma) reads, which nobody has waited for (wgmma.wait_group)");
        if (!in->copies)
            w->used[o[i] / LINE] = w->product_fences;
    }
}

void ptx_products_compare(const PtxBlock *b)
{
    for (int i = 0; b->launch->kernel->products && i < b->warps; i++) {
        PtxWarp *w = &b->warp[i], *first = &b->warp[i / 4 * 4];
        if (w->product_hash != first->product_hash)
            ptx_fault(w, w->product_last ? w->product_last : first->product_last, 0, FAULT_OTHER,
                      "the products (wgmma) of this warp are not those of the other warps of its warpgroup");
    }
}

void ptx_products_start(PtxWarp *w)
{
    const size_t rows = w->launch->kernel->register_bytes / LINE + 1;
    w->product_group = w->proxied = w->product_hash = 0;
    w->product_fences = 1;
    w->product_last = NULL;
    w->products_fenced = false;
    if (w->products)
        g_array_set_size(w->products, 0);
    if (!w->launch->kernel->products)
        return;
    if (!w->busy) {
        w->busy = g_new(uint8_t, 2 * rows);
        w->read = w->busy + rows;
        w->used = g_new(uint32_t, rows);
    }
    memset(w->busy, 0, 2 * rows);
    memset(w->used, 0, rows * sizeof *w->used);
}

void ptx_products_end(PtxWarp *w)
{
    if (w->products && w->products->len)
        ptx_fault(w, g_array_index(w->products, Product, 0).in, 0, FAULT_OTHER,
                  "the warp ends before it has waited for this product");
}

void ptx_products_free(PtxWarp *w)
{
    if (w->products)
        g_array_unref(w->products);
    g_free(w->busy);
    g_free(w->used);
}
