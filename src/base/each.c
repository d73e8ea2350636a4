#include "base/each.h"

typedef struct {
    gint64 n;
    HnEachFn fn;
    gpointer data;
    GMutex lock;
    gint64 next;
} Each;

static gpointer work(gpointer data)
{
    Each *e = data;
    for (;;) {
        g_mutex_lock(&e->lock);
        const gint64 i = e->next++;
        g_mutex_unlock(&e->lock);
        if (i >= e->n)
            return NULL;
        e->fn(e->data, i);
    }
}

void hn_each(gint64 n, int workers, HnEachFn fn, gpointer data)
{
    Each e = { .n = n, .fn = fn, .data = data };
    const int others = (int)CLAMP(workers, 1, MAX(n, 1)) - 1;
    g_autofree GThread **thread = g_new0(GThread *, (gsize)others + 1);
    g_mutex_init(&e.lock);
    for (int k = 0; k < others; k++)
        thread[k] = g_thread_try_new("each", work, &e, NULL); /* NULL: the others do its part */
    work(&e);
    for (int k = 0; k < others; k++)
        if (thread[k] != NULL)
            g_thread_join(thread[k]);
    g_mutex_clear(&e.lock);
}
