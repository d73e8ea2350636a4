/*
 * Holding a stream up: a function of the host stands in it, which returns when it is told to, or after a while, so that
 * nobody who waits for the stream meanwhile is stuck.
 */
#include "cuda/core/cuda_backend.h"

#define HOLD_US 1000 /* at most */

static void wait_here(void *data)
{
    HnCudaStream *t = data;
    const gint64 until = g_get_monotonic_time() + HOLD_US;
    g_mutex_lock(&t->hold_lock);
    const guint number = ++t->reached;
    while (t->free < number && g_cond_wait_until(&t->freed, &t->hold_lock, until))
        ;
    g_mutex_unlock(&t->hold_lock);
}

gboolean hn_cuda_hold(gpointer stream, gboolean on, GError **error)
{
    HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    if (on) {
        t->held++;
        return hn_cuda_enter(c, error) &&
               hn_cuda_check(c, c->driver->host_call(t->stream, wait_here, t), "holding a stream up", error);
    }
    g_mutex_lock(&t->hold_lock);
    t->free = t->held;
    g_cond_broadcast(&t->freed);
    g_mutex_unlock(&t->hold_lock);
    return TRUE;
}
