/*
 * Sums and products that say whether they fit. Each returns FALSE on overflow and then leaves *out alone.
 */
#pragma once

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

static inline gboolean hn_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return FALSE;
    *out = r;
    return TRUE;
}

static inline gboolean hn_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return FALSE;
    *out = r;
    return TRUE;
}

static inline gboolean hn_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return FALSE;
    *out = r;
    return TRUE;
}

static inline gboolean hn_sub_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return FALSE;
    *out = r;
    return TRUE;
}

static inline gboolean hn_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return FALSE;
    *out = r;
    return TRUE;
}

/* x up to the next multiple of align, a power of two */
static inline gboolean hn_align_size(size_t x, size_t align, size_t *out)
{
    if (!hn_add_size(x, align - 1, &x))
        return FALSE;
    *out = x & ~(align - 1);
    return TRUE;
}
