#include "cli/out_of_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread_local.h"

#define STATUS_LIMIT 6              /* HN_ERROR_BUDGET's */
#define MARGIN ((gsize)16 << 20)    /* bytes, with a twentieth of the limit: what is not counted piece by piece */
#define LOOK_EVERY ((gsize)1 << 20) /* bytes that a thread allocates between two looks at what the process has */
#define STACK ((gsize)8 << 20)      /* bytes of address space that a thread takes */
#define DEEP ((gsize)512 << 10)     /* bytes of stack that no recursion here exceeds */
#define ONE_HEAP ((gsize)4 << 30)   /* bytes of address space below which threads share one heap */

/* malloc() has no arguments for this: written once, while there is one thread. */
static struct {
    gsize cap; /* private memory, bytes; 0: no limit */
    gsize page;
    int statm; /* /proc/self/statm, open */
    char line[160];
    gsize length;
} guard;

static HN_THREAD_LOCAL gsize since; /* bytes allocated since the last look */

/* Numbers of /proc/self/statm, in pages: all address space, resident, shared of that, code, (nothing), data and stack.
 */
typedef struct {
    gsize size, resident, shared, text, lib, data;
} Statm;

static gsize number(const char **p)
{
    gsize n = 0;
    while (**p == ' ')
        ++*p;
    for (; g_ascii_isdigit(**p); ++*p)
        n = 10 * n + (gsize)(**p - '0');
    return n;
}

/* Within malloc(): nothing may be allocated. */
static gboolean statm_read(int fd, Statm *s)
{
    char text[160];
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return FALSE;
    text[n] = '\0';
    const char *p = text;
    gsize *const numbers[] = { &s->size, &s->resident, &s->shared, &s->text, &s->lib, &s->data };
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++)
        *numbers[i] = number(&p);
    return TRUE;
}

gboolean hn_memory_may(gsize n)
{
    if (guard.cap == 0 || (since += n) < LOOK_EVERY)
        return TRUE;
    Statm s;
    since = 0;
    if (!statm_read(guard.statm, &s) || s.resident < s.shared)
        return TRUE;
    gsize used = (s.resident - s.shared) * guard.page;
    return used <= guard.cap && n <= guard.cap - used;
}

void hn_memory_out(void)
{
    ssize_t ignored = write(STDERR_FILENO, guard.line, guard.length);
    (void)ignored;
    _exit(STATUS_LIMIT);
}

/* The last words of g_malloc() and of g_thread_new(). */
static void on_log(const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
    gboolean last = (level & G_LOG_LEVEL_ERROR) && !g_strcmp0(domain, "GLib");
    if (last && (!message || strstr(message, "failed to allocate") || strstr(message, "creating thread")))
        hn_memory_out();
    g_log_default_handler(domain, level, message, data);
}

/* Bytes below `limit` that are left once `used` are taken; G_MAXSIZE: there is no limit. */
static gsize left_of(int resource, gsize used)
{
    struct rlimit r;
    if (getrlimit(resource, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return G_MAXSIZE;
    return (gsize)r.rlim_cur > used ? (gsize)r.rlim_cur - used : 1;
}

/* The stack grows into address space that may be gone when it is needed: it has its share from the start. */
static void __attribute__((noinline)) reach_deep(void)
{
    volatile char deep[DEEP];
    deep[0] = 0;
    (void)deep[0];
}

gsize hn_memory_start(const char *name, gsize limit, int threads)
{
    Statm s = { 0 };
    guard.page = (gsize)sysconf(_SC_PAGESIZE);
    guard.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    gboolean known = statm_read(guard.statm, &s);
    g_autofree char *text = limit ? hn_text_size(limit) : NULL;
    int n = text ? g_snprintf(guard.line, sizeof guard.line, "%s: out of memory: the memory limit of %s is reached\n",
                              name, text)
                 : g_snprintf(guard.line, sizeof guard.line, "%s: out of memory\n", name);
    guard.length = MIN((gsize)n, sizeof guard.line - 1);
    g_log_set_default_handler(on_log, NULL);

    gsize space = known ? left_of(RLIMIT_AS, s.size * guard.page) : G_MAXSIZE;
    gsize data = known ? left_of(RLIMIT_DATA, s.data * guard.page) : G_MAXSIZE;
    gsize left = MIN(space, data);
    if (space < ONE_HEAP)
        mallopt(M_ARENA_MAX, 1);
    if (left < G_MAXSIZE) {
        reach_deep();
        /* what threads' stacks and uncounted things take; where little is left the better half is for models */
        gsize apart = left / 20 + MARGIN + STACK * (gsize)MAX(threads, 1);
        left = apart < left / 2 ? left - apart : MAX(left / 2, 1);
    }
    if (limit)
        guard.cap = limit + limit / 20 + MARGIN;
    return limit && limit < left ? limit : left < G_MAXSIZE ? left : 0;
}
