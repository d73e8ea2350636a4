#include "base/budget.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/halt.h"
#include "base/sanitize.h"
#include "base/text.h"

#if HN_SANITIZE_ADDRESS
#include <sanitizer/asan_interface.h> /* told of the bytes behind a block, which belong to nobody */
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define MAX_BLOCK ((gsize)1000000000000) /* bytes: a terabyte is a broken file, not a tensor */
#define LARGE_BLOCK ((gsize)4 << 20)

struct HnBudget {
    gint refs;
    gsize limit; /* 0: none */
    gsize device_limit;
    const gint *halt; /* NULL: nobody ends the work */
    gint fails;       /* atomic: fail_at is set */
    GMutex lock;      /* of what follows */
    gsize used;
    gsize peak;
    guint64 count;
    guint64 fail_at; /* value of count at which to fail, 0: never */
};

/* Stands right before each block, in the 64 bytes that its alignment leaves free. */
typedef struct {
    gpointer start; /* what malloc gave */
    gsize size;     /* what was asked for */
    HnBudget *budget;
} Block;

G_STATIC_ASSERT(sizeof(Block) <= HN_ALIGN);

HnBudget *hn_budget_new(gsize limit)
{
    HnBudget *budget = g_new0(HnBudget, 1);
    budget->refs = 1;
    budget->limit = limit;
    g_mutex_init(&budget->lock);
    return budget;
}

void hn_budget_limit_device(HnBudget *budget, gsize limit)
{
    budget->device_limit = limit;
}

gsize hn_budget_device_limit(const HnBudget *budget)
{
    return budget != NULL ? budget->device_limit : 0;
}

HnBudget *hn_budget_ref(HnBudget *budget)
{
    if (budget)
        g_atomic_int_inc(&budget->refs);
    return budget;
}

void hn_budget_unref(HnBudget *budget)
{
    if (budget && g_atomic_int_dec_and_test(&budget->refs)) {
        g_mutex_clear(&budget->lock);
        g_free(budget);
    }
}

gboolean hn_budget_charge(HnBudget *budget, gsize size, GError **error)
{
    if (!budget)
        return TRUE;
    if (!hn_halt_go(budget->halt, error))
        return FALSE;
    g_mutex_lock(&budget->lock);
    budget->count++;
    gboolean injected = budget->fail_at && budget->count == budget->fail_at;
    gsize limit = budget->limit ? budget->limit : G_MAXSIZE, left = limit - MIN(budget->used, limit);
    gboolean fits = !injected && size <= left;
    if (fits) {
        budget->used += size;
        budget->peak = MAX(budget->peak, budget->used);
    }
    g_mutex_unlock(&budget->lock);
    if (fits)
        return TRUE;

    g_autofree char *need = hn_text_size(size);
    if (injected || !budget->limit) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no memory for %s more", need);
    } else {
        g_autofree char *most = hn_text_size(budget->limit), *rest = hn_text_size(left);
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "needs %s more, the memory limit of %s leaves %s", need, most,
                    rest);
    }
    return FALSE;
}

void hn_budget_take(HnBudget *budget, gsize size)
{
    if (!budget)
        return;
    g_mutex_lock(&budget->lock);
    budget->used += size;
    budget->peak = MAX(budget->peak, budget->used);
    g_mutex_unlock(&budget->lock);
}

void hn_budget_uncharge(HnBudget *budget, gsize size)
{
    if (!budget)
        return;
    g_mutex_lock(&budget->lock);
    g_assert(budget->used >= size);
    budget->used -= size;
    g_mutex_unlock(&budget->lock);
}

/* Weights and arenas are read from end to end at each run: with pages of 4 KB, looking up addresses takes a third of
 * the time that 30 MB of them take. */
static void ask_for_large_pages(guint8 *p, gsize size)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)2 << 20, from = ((uintptr_t)p + page - 1) & ~(page - 1);
    const uintptr_t to = ((uintptr_t)p + size) & ~(page - 1);
    if (size >= LARGE_BLOCK && to > from)
        madvise(p + (from - (uintptr_t)p), to - from, MADV_HUGEPAGE); /* a wish: it may fail */
#else
    (void)p, (void)size;
#endif
}

static gpointer block_new(HnBudget *budget, gsize size, gboolean zero, GError **error)
{
    gsize total = size + 2 * HN_ALIGN;
    if (size > MAX_BLOCK) {
        g_autofree char *text = hn_text_size(size);
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no memory for %s more", text);
        return NULL;
    }
    if (!hn_budget_charge(budget, size, error))
        return NULL;
    gpointer start = zero ? calloc(1, total) : malloc(total);
    if (!start) {
        g_autofree char *text = hn_text_size(size);
        hn_budget_uncharge(budget, size);
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no memory for %s more", text);
        return NULL;
    }
    /* malloc aligns to 16, so between start and the block lie 64 to 112 bytes */
    uintptr_t at = ((uintptr_t)start + 2 * HN_ALIGN - 1) & ~(uintptr_t)(HN_ALIGN - 1);
    guint8 *p = (guint8 *)start + (at - (uintptr_t)start);
    ((Block *)(gpointer)(p - HN_ALIGN))[0] = (Block){ start, size, hn_budget_ref(budget) };
    ASAN_POISON_MEMORY_REGION(p + size, (gsize)((guint8 *)start + total - (p + size)));
    ask_for_large_pages(p, size);
    return p;
}

static Block *block_of(gpointer block)
{
    return (Block *)(gpointer)((guint8 *)block - HN_ALIGN);
}

gpointer hn_budget_alloc(HnBudget *budget, gsize size, GError **error)
{
    return block_new(budget, size, FALSE, error);
}

gpointer hn_budget_alloc0(HnBudget *budget, gsize size, GError **error)
{
    return block_new(budget, size, TRUE, error);
}

gpointer hn_budget_alloc_n(HnBudget *budget, gsize n, gsize size, GError **error)
{
    gsize total;
    if (!hn_mul_size(n, size, &total)) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET,
                    "no memory for %" G_GSIZE_FORMAT " times %" G_GSIZE_FORMAT " bytes", n, size);
        return NULL;
    }
    return block_new(budget, total, FALSE, error);
}

static void block_free(gpointer block)
{
    Block *b = block_of(block);
    HnBudget *budget = b->budget;
    hn_budget_uncharge(budget, b->size);
    ASAN_UNPOISON_MEMORY_REGION((guint8 *)block + b->size,
                                2 * HN_ALIGN - (gsize)((guint8 *)block - (guint8 *)b->start));
    free(b->start);
    hn_budget_unref(budget);
}

void hn_budget_free(HnBudget *budget, gpointer block)
{
    if (!block)
        return;
    g_assert(block_of(block)->budget == budget);
    block_free(block);
}

GBytes *hn_budget_bytes(HnBudget *budget, gpointer block, gsize size)
{
    g_assert(block_of(block)->budget == budget && size <= block_of(block)->size);
    return g_bytes_new_with_free_func(block, size, block_free, block);
}

gsize hn_budget_limit(HnBudget *budget)
{
    return budget ? budget->limit : 0;
}

gsize hn_budget_used(HnBudget *budget)
{
    if (!budget)
        return 0;
    g_mutex_lock(&budget->lock);
    gsize used = budget->used;
    g_mutex_unlock(&budget->lock);
    return used;
}

gsize hn_budget_peak(HnBudget *budget)
{
    if (!budget)
        return 0;
    g_mutex_lock(&budget->lock);
    gsize peak = budget->peak;
    g_mutex_unlock(&budget->lock);
    return peak;
}

guint64 hn_budget_count(HnBudget *budget)
{
    if (!budget)
        return 0;
    g_mutex_lock(&budget->lock);
    guint64 count = budget->count;
    g_mutex_unlock(&budget->lock);
    return count;
}

void hn_budget_fail_at(HnBudget *budget, guint64 k)
{
    g_mutex_lock(&budget->lock);
    budget->fail_at = k ? budget->count + k : 0;
    g_atomic_int_set(&budget->fails, k > 0);
    g_mutex_unlock(&budget->lock);
}

gboolean hn_budget_ask(HnBudget *budget, GError **error)
{
    if (!budget)
        return TRUE;
    if (!hn_halt_go(budget->halt, error))
        return FALSE;
    if (!g_atomic_int_get(&budget->fails))
        return TRUE;
    g_mutex_lock(&budget->lock);
    gboolean fails = budget->fail_at && budget->count + 1 == budget->fail_at;
    g_mutex_unlock(&budget->lock);
    return !fails || hn_budget_charge(budget, 0, error);
}

void hn_budget_watch(HnBudget *budget, const gint *halt)
{
    budget->halt = halt;
}

const gint *hn_budget_halt(HnBudget *budget)
{
    return budget ? budget->halt : NULL;
}
