#include "base/mapped.h"

#include <unistd.h>

/* FREE: to be used again; BUSY: somebody is changing it; the others are what the rest says. */
typedef enum { FREE, BUSY, MAPPING, TEMP } State;

struct HnGuard {
    HnGuard *next; /* constant once it is in the list */
    gint state;
    gconstpointer start;
    gsize size;
    char *name;
};

/* A signal handler can reach nothing but a global. Entries are never freed, so that it can walk the list at any time.
 */
static HnGuard *guards;

static gboolean change(HnGuard *g, State from, State to)
{
    return g_atomic_int_compare_and_exchange(&g->state, (gint)from, (gint)to);
}

/* An entry that is BUSY. */
static HnGuard *take(void)
{
    for (HnGuard *g = g_atomic_pointer_get(&guards); g != NULL; g = g->next)
        if (change(g, FREE, BUSY))
            return g;
    HnGuard *g = g_new0(HnGuard, 1);
    g->state = BUSY;
    do
        g->next = g_atomic_pointer_get(&guards);
    while (!g_atomic_pointer_compare_and_exchange(&guards, g->next, g));
    return g;
}

static HnGuard *add(State state, gconstpointer start, gsize size, const char *name)
{
    HnGuard *g = take();
    g->start = start;
    g->size = size;
    g->name = g_strdup(name);
    g_atomic_int_set(&g->state, (gint)state);
    return g;
}

HnGuard *hn_guard_mapping(gconstpointer start, gsize size, const char *name)
{
    return add(MAPPING, start, size, name);
}

HnGuard *hn_guard_temp(const char *path)
{
    return add(TEMP, NULL, 0, path);
}

void hn_guard_end(HnGuard *g)
{
    /* a handler that has taken it keeps it: the program ends */
    if (g == NULL || (!change(g, MAPPING, BUSY) && !change(g, TEMP, BUSY)))
        return;
    g_free(g->name);
    g_atomic_int_set(&g->state, FREE);
}

const char *hn_guard_find(gconstpointer address)
{
    const guint8 *at = address;
    for (HnGuard *g = g_atomic_pointer_get(&guards); g != NULL; g = g->next) {
        /* a mapping that is being read cannot end now; others are only looked at while nobody changes them */
        if (!change(g, MAPPING, BUSY))
            continue;
        const guint8 *start = g->start;
        const gboolean here = at >= start && (gsize)(at - start) < g->size;
        g_atomic_int_set(&g->state, MAPPING);
        if (here)
            return g->name;
    }
    return NULL;
}

void hn_guard_unlink(void)
{
    for (HnGuard *g = g_atomic_pointer_get(&guards); g != NULL; g = g->next)
        if (change(g, TEMP, BUSY))
            unlink(g->name);
}

/* --- waits -------------------------------------------------------------------------------------------------------- */

static gint begun, waiting; /* waits so far; threads that are in one */

void hn_guard_wait_begin(void)
{
    g_atomic_int_inc(&begun);
    g_atomic_int_inc(&waiting);
}

void hn_guard_wait_end(void)
{
    g_atomic_int_add(&waiting, -1);
}

guint hn_guard_waits(void)
{
    return g_atomic_int_get(&waiting) > 0 ? (guint)g_atomic_int_get(&begun) : 0;
}
