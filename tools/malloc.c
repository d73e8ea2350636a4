/*
 * malloc() and the like of a tool: the C library's, which a tool's limit may refuse, and the end of memory is one
 * sentence instead of a crash wherever it is met: in GLib, in oneDNN, in the C library itself (cli/out_of_memory.h).
 * A program's business, for it serves the whole process. Sanitizers have these functions for themselves.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "cli/out_of_memory.h"

#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x) /* clang's */
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !HAS_FEATURE(address_sanitizer) && !HAS_FEATURE(thread_sanitizer) && !HAS_FEATURE(memory_sanitizer)

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static void *checked(void *p, size_t n)
{
    if (p == NULL && n < HN_MEMORY_LARGE)
        hn_memory_out();
    return p;
}

void *malloc(size_t n)
{
    return checked(hn_memory_may(n) ? __libc_malloc(n) : NULL, n);
}

void *calloc(size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return checked(hn_memory_may(total) ? __libc_calloc(n, size) : NULL, total);
}

void *realloc(void *p, size_t n)
{
    if (n == 0)
        return __libc_realloc(p, n);
    return checked(hn_memory_may(n) ? __libc_realloc(p, n) : NULL, n);
}

void *memalign(size_t align, size_t n)
{
    return checked(hn_memory_may(n) ? __libc_memalign(align, n) : NULL, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
        return EINVAL;
    void *block = memalign(align, n);
    if (block == NULL)
        return ENOMEM;
    *p = block;
    return 0;
}

#else
typedef int hn_malloc_is_somebody_elses; /* a file must not be empty */
#endif
