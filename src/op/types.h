/*
 * Loops over element types for reference kernels.
 *
 * Use: #define BODY(T) abs_loop_##T... or, simplest, a macro that takes the C type:
 *
 *     #define RUN(T) { const T *x = in->data; T *y = out; for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i]; }
 *     HN_FOR_NUM(dtype, RUN)
 *
 * f16 and bf16 do not appear: records with HN_OP_HALF_VIA_F32 never see them. Kernels that only move elements switch
 * on the element size instead (HN_FOR_SIZE).
 */
#pragma once

#include <stdint.h>

#include "ir/dtype.h"

/* GCC warns about pragma-free fallthrough otherwise; each expands to a block and a break. */
#define HN_CASE(d, T, M) \
    case d: {            \
        M(T)             \
        break;           \
    }
#define HN_FOR_FLOAT(dtype, M)     \
    switch (dtype) {               \
        HN_CASE(HN_F32, float, M)  \
        HN_CASE(HN_F64, double, M) \
    default:                       \
        break;                     \
    }
#define HN_FOR_INT(dtype, M)         \
    switch (dtype) {                 \
        HN_CASE(HN_I8, int8_t, M)    \
        HN_CASE(HN_U8, uint8_t, M)   \
        HN_CASE(HN_I16, int16_t, M)  \
        HN_CASE(HN_U16, uint16_t, M) \
        HN_CASE(HN_I32, int32_t, M)  \
        HN_CASE(HN_U32, uint32_t, M) \
        HN_CASE(HN_I64, int64_t, M)  \
        HN_CASE(HN_U64, uint64_t, M) \
    default:                         \
        break;                       \
    }
#define HN_FOR_NUM(dtype, M)         \
    switch (dtype) {                 \
        HN_CASE(HN_F32, float, M)    \
        HN_CASE(HN_F64, double, M)   \
        HN_CASE(HN_I8, int8_t, M)    \
        HN_CASE(HN_U8, uint8_t, M)   \
        HN_CASE(HN_I16, int16_t, M)  \
        HN_CASE(HN_U16, uint16_t, M) \
        HN_CASE(HN_I32, int32_t, M)  \
        HN_CASE(HN_U32, uint32_t, M) \
        HN_CASE(HN_I64, int64_t, M)  \
        HN_CASE(HN_U64, uint64_t, M) \
    default:                         \
        break;                       \
    }
/* By element size, for kernels that only move bytes: T is uint8_t, uint16_t, uint32_t, uint64_t. */
#define HN_FOR_SIZE(size, M)    \
    switch (size) {             \
        HN_CASE(1, uint8_t, M)  \
        HN_CASE(2, uint16_t, M) \
        HN_CASE(4, uint32_t, M) \
        HN_CASE(8, uint64_t, M) \
    default:                    \
        break;                  \
    }
