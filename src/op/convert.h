/*
 * Conversion of elements between all types that have a number in them: what Cast does, and what quantization rounds
 * with.
 *
 * Floats lose their fraction on the way to integers. Out of range, i32 and i64 take the nearest end; the other integers
 * wrap, as the usual machines do; NaN is 0. Integers wrap among themselves. Anything but 0 is true.
 */
#pragma once

#include "base/half.h"
#include "ir/tensor.h"

G_BEGIN_DECLS

#define HN_CONVERT_CHUNK 1024 /* elements; a whole number of bytes in every packed type */

/* Of the 8-bit floats. */
typedef struct {
    gboolean saturate;
    HnE8m0Round round;
} HnConvert;

/* A type with a number in it: not a string, not complex. */
gboolean hn_convertible(HnDtype dtype);
/* All elements of t as type `to`; both are convertible. */
void hn_convert(HnDtype to, void *dst, const HnTensor *t, const HnConvert *how);
/* Elements [at, at + n) of t; n is at most HN_CONVERT_CHUNK and `at` a multiple of it. */
void hn_convert_to_f32(const HnTensor *t, int64_t at, int64_t n, float *to);
/* The reverse, into elements [at, at + n) of dst. */
void hn_convert_from_f64(HnDtype to, void *dst, int64_t at, int64_t n, const double *from, const HnConvert *how);

/* An integer's bits: range of int64_t and uint64_t together, saturating. */
static inline uint64_t hn_wrap_f64(double v)
{
    if (v >= -0x1p63 && v < 0x1p63)
        return (uint64_t)(int64_t)v;
    if (v >= 0x1p63)
        return v < 0x1p64 ? (uint64_t)v : UINT64_MAX;
    return v < 0 ? (uint64_t)INT64_MIN : 0;
}

static inline int64_t hn_saturate_i64(double v)
{
    if (v >= -0x1p63 && v < 0x1p63)
        return (int64_t)v;
    return v > 0 ? INT64_MAX : v < 0 ? INT64_MIN : 0;
}

static inline int32_t hn_saturate_i32(double v)
{
    if (v > -2147483649.0 && v < 2147483648.0)
        return (int32_t)v;
    return v > 0 ? INT32_MAX : v < 0 ? INT32_MIN : 0;
}

G_END_DECLS
