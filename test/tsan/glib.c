/*
 * Linked into programs that are built with ThreadSanitizer, and only those: GLib's functions in front of GLib's own,
 * which tell the sanitizer what happens before what. GLib itself is not built with it: its locks are futexes that the
 * sanitizer takes for nothing, and every value that they guard for a race.
 */
#include <dlfcn.h>
#include <glib.h>

void __tsan_acquire(void *at); /* what others did before they released `at` has happened */
void __tsan_release(void *at);

/* GLib's own function behind the one of that name here. */
#define REAL(type, name, ...)                                 \
    static gpointer found_##name;                             \
    type (*real_##name)(__VA_ARGS__);                         \
    gpointer at_##name = g_atomic_pointer_get(&found_##name); \
    if (at_##name == NULL) {                                  \
        at_##name = dlsym(RTLD_NEXT, #name);                  \
        g_atomic_pointer_set(&found_##name, at_##name);       \
    }                                                         \
    *(void **)(gpointer)&real_##name = at_##name

void g_mutex_lock(GMutex *mutex)
{
    REAL(void, g_mutex_lock, GMutex *);
    real_g_mutex_lock(mutex);
    __tsan_acquire(mutex);
}

gboolean g_mutex_trylock(GMutex *mutex)
{
    REAL(gboolean, g_mutex_trylock, GMutex *);
    const gboolean got = real_g_mutex_trylock(mutex);
    if (got)
        __tsan_acquire(mutex);
    return got;
}

void g_mutex_unlock(GMutex *mutex)
{
    REAL(void, g_mutex_unlock, GMutex *);
    __tsan_release(mutex);
    real_g_mutex_unlock(mutex);
}

void g_cond_wait(GCond *cond, GMutex *mutex)
{
    REAL(void, g_cond_wait, GCond *, GMutex *);
    __tsan_release(mutex);
    real_g_cond_wait(cond, mutex);
    __tsan_acquire(mutex);
}

gboolean g_cond_wait_until(GCond *cond, GMutex *mutex, gint64 end)
{
    REAL(gboolean, g_cond_wait_until, GCond *, GMutex *, gint64);
    __tsan_release(mutex);
    const gboolean signalled = real_g_cond_wait_until(cond, mutex, end);
    __tsan_acquire(mutex);
    return signalled;
}

/* g_once_init_enter() is a macro around this, whose first look is an atomic load of the place. */
void(g_once_init_leave)(volatile void *location, gsize result)
{
    REAL(void, g_once_init_leave, volatile void *, gsize);
    __tsan_release((void *)location);
    real_g_once_init_leave(location, result);
}

gboolean(g_once_init_enter)(volatile void *location)
{
    REAL(gboolean, g_once_init_enter, volatile void *);
    const gboolean first = real_g_once_init_enter(location);
    __tsan_acquire((void *)location);
    return first;
}

/* The last reference frees what other threads have read. */
void g_bytes_unref(GBytes *bytes)
{
    REAL(void, g_bytes_unref, GBytes *);
    if (bytes != NULL) {
        __tsan_release(bytes);
        __tsan_acquire(bytes);
    }
    real_g_bytes_unref(bytes);
}

/* --- pools ------------------------------------------------------------------------------------------------------- */

typedef struct {
    GFunc func;
    gpointer data;
    char pushed, done; /* places to release and acquire */
} Pool;

static void run_task(gpointer task, gpointer data)
{
    Pool *p = data;
    __tsan_acquire(&p->pushed);
    p->func(task, p->data);
    __tsan_release(&p->done);
}

GThreadPool *g_thread_pool_new(GFunc func, gpointer data, gint threads, gboolean exclusive, GError **error)
{
    REAL(GThreadPool *, g_thread_pool_new, GFunc, gpointer, gint, gboolean, GError **);
    Pool *p = g_new0(Pool, 1);
    p->func = func;
    p->data = data;
    return real_g_thread_pool_new(run_task, p, threads, exclusive, error);
}

gboolean g_thread_pool_push(GThreadPool *pool, gpointer task, GError **error)
{
    REAL(gboolean, g_thread_pool_push, GThreadPool *, gpointer, GError **);
    __tsan_release(&((Pool *)pool->user_data)->pushed);
    return real_g_thread_pool_push(pool, task, error);
}

void g_thread_pool_free(GThreadPool *pool, gboolean immediate, gboolean wait)
{
    REAL(void, g_thread_pool_free, GThreadPool *, gboolean, gboolean);
    Pool *p = pool->user_data;
    real_g_thread_pool_free(pool, immediate, wait);
    __tsan_acquire(&p->done);
    if (wait)
        g_free(p);
}
