/*
 * Device memory: one reservation of addresses without any access, which kernels and the tool see, and one of the bytes
 * at the same distance from its beginning. Between allocations are gaps, and pieces that were freed are not given out
 * again at once, so that what reaches beyond an allocation or comes too late finds nothing.
 */
#include <string.h>
#include <sys/mman.h>

#include "emu_device.h"

#define SMALL_MOST ((size_t)(EMU_BINS - 1) * EMU_ALIGN)
#define SMALL_AREA ((size_t)4 << 30)
#define LARGE_LEAST ((size_t)64 << 30)
#define QUARANTINE 64 /* pieces of a size that were freed, before the first of them is used again */

static uint8_t *reserve(size_t bytes, int access)
{
    void *p = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static size_t reserved(const EmuMemory *m)
{
    return m->large.end;
}

gboolean emu_memory_init(EmuMemory *m, size_t total)
{
    *m = (EmuMemory){ .total = total };
    m->small = (EmuArea){ 0, SMALL_AREA, 0 };
    m->large = (EmuArea){ SMALL_AREA, SMALL_AREA + MAX(2 * total, LARGE_LEAST), SMALL_AREA };
    m->seen = reserve(reserved(m), PROT_NONE);
    m->data = reserve(reserved(m), PROT_READ | PROT_WRITE);
    m->defined = reserve(reserved(m), PROT_READ | PROT_WRITE);
    if (m->seen != NULL && m->data != NULL && m->defined != NULL)
        return TRUE;
    emu_memory_clear(m);
    return FALSE;
}

void emu_memory_clear(EmuMemory *m)
{
    while (m->space.n > 0)
        emu_memory_free(m, (EmuBlock *)m->space.region[m->space.n - 1]);
    g_free(m->space.region);
    for (int i = 0; i < EMU_BINS; i++)
        g_queue_clear(&m->bin[i]);
    uint8_t *const all[] = { m->seen, m->data, m->defined };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i] != NULL)
            munmap(all[i], reserved(m));
    *m = (EmuMemory){ 0 };
}

/* --- regions by address ------------------------------------------------------------------------------------------- */

/* How many begin at or below the address. */
static size_t below(const EmuSpace *s, uint64_t address)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (s->region[mid]->base <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

EmuRegion *emu_space_find(const EmuSpace *s, uint64_t address)
{
    const size_t n = below(s, address);
    return n > 0 && address - s->region[n - 1]->base < s->region[n - 1]->bytes ? s->region[n - 1] : NULL;
}

void emu_space_add(EmuSpace *s, EmuRegion *r)
{
    const size_t at = below(s, r->base);
    if (s->n == s->room) {
        s->room = MAX(2 * s->room, 64);
        s->region = g_renew(EmuRegion *, s->region, s->room);
    }
    memmove(s->region + at + 1, s->region + at, (s->n - at) * sizeof *s->region);
    s->region[at] = r;
    s->n++;
}

void emu_space_remove(EmuSpace *s, const EmuRegion *r)
{
    const size_t at = below(s, r->base) - 1;
    s->n--;
    memmove(s->region + at, s->region + at + 1, (s->n - at) * sizeof *s->region);
}

/* --- allocations ---------------------------------------------------------------------------------------------------
 */

static size_t small_at(EmuMemory *m, size_t room)
{
    GQueue *bin = &m->bin[room / EMU_ALIGN];
    const gboolean full = m->small.end - m->small.next < room;
    if (g_queue_get_length(bin) > QUARANTINE || (full && !g_queue_is_empty(bin)))
        return GPOINTER_TO_SIZE(g_queue_pop_head(bin)) - 1;
    if (full)
        return SIZE_MAX;
    m->small.next += room;
    return m->small.next - room;
}

/* The first gap behind the last large allocation, going round. */
static size_t large_at(EmuMemory *m, size_t room)
{
    for (int round = 0; round < 2; round++) {
        size_t at = round == 0 ? m->large.next : m->large.begin;
        for (size_t i = below(&m->space, (uint64_t)(uintptr_t)m->seen + at); at + room <= m->large.end; i++) {
            const EmuBlock *before = i > 0 ? (const EmuBlock *)m->space.region[i - 1] : NULL;
            const size_t taken = before != NULL ? before->r.base - (uint64_t)(uintptr_t)m->seen + before->room : 0;
            at = MAX(at, taken);
            const size_t next = i < m->space.n ? m->space.region[i]->base - (uint64_t)(uintptr_t)m->seen : m->large.end;
            if (at + room <= next) {
                m->large.next = at + room;
                return at;
            }
            if (i >= m->space.n)
                break;
        }
    }
    return SIZE_MAX;
}

EmuBlock *emu_memory_alloc(EmuMemory *m, size_t bytes)
{
    static guint64 serial;
    if (bytes == 0 || bytes > m->total - m->used)
        return NULL;
    const size_t taken = (bytes + EMU_ALIGN - 1) / EMU_ALIGN * EMU_ALIGN, room = taken + EMU_ALIGN;
    if (taken > m->total - m->used)
        return NULL;
    const size_t at = room <= SMALL_MOST ? small_at(m, room) : large_at(m, room);
    if (at == SIZE_MAX)
        return NULL;
    EmuBlock *b = g_new0(EmuBlock, 1);
    b->r = (EmuRegion){
        .base = (uint64_t)(uintptr_t)m->seen + at, .bytes = bytes, .data = m->data + at, .defined = m->defined + at
    };
    b->serial = ++serial;
    b->room = room;
    m->used += taken;
    emu_space_add(&m->space, &b->r);
    return b;
}

void emu_memory_free(EmuMemory *m, EmuBlock *b)
{
    const size_t at = (size_t)(b->r.data - m->data), page = 4096, first = (at + page - 1) / page * page,
                 end = (at + b->room) / page * page;
    emu_space_remove(&m->space, &b->r);
    m->used -= b->room - EMU_ALIGN;
    if (b->room <= SMALL_MOST) {
        memset(b->r.defined, 0, b->room);
        g_queue_push_tail(&m->bin[b->room / EMU_ALIGN], GSIZE_TO_POINTER(at + 1));
    } else {
        memset(b->r.defined, 0, first - at);
        memset(m->defined + end, 0, at + b->room - end);
        madvise(m->data + first, end - first, MADV_DONTNEED);
        madvise(m->defined + first, end - first, MADV_DONTNEED);
    }
    free(b->r.races);
    g_free(b);
}

gboolean emu_memory_sees(const EmuMemory *m, uint64_t address)
{
    return address - (uint64_t)(uintptr_t)m->seen < reserved(m);
}

EmuBlock *emu_memory_range(const EmuMemory *m, uint64_t address, size_t bytes, char **why)
{
    EmuRegion *r = emu_space_find(&m->space, address);
    if (r != NULL && bytes <= r->bytes - (address - r->base))
        return (EmuBlock *)r;
    const size_t n = below(&m->space, address);
    if (r != NULL)
        *why = g_strdup_printf(
            "%zu bytes at 0x%" G_GINT64_MODIFIER
            "x reach %zu bytes beyond the end of the allocation of %zu bytes at 0x%" G_GINT64_MODIFIER "x",
            bytes, address, (size_t)(bytes - (r->bytes - (address - r->base))), r->bytes, r->base);
    else if (!emu_memory_sees(m, address))
        *why = g_strdup_printf("0x%" G_GINT64_MODIFIER "x is no address of device memory", address);
    else if (n > 0)
        *why =
            g_strdup_printf("no allocation is at 0x%" G_GINT64_MODIFIER "x; %zu bytes are at 0x%" G_GINT64_MODIFIER "x",
                            address, m->space.region[n - 1]->bytes, m->space.region[n - 1]->base);
    else
        *why = g_strdup_printf("no allocation is at 0x%" G_GINT64_MODIFIER "x", address);
    return NULL;
}
