/*
 * Rows of two operands, for broadcast.c at one instruction level: n elements of z from x and y, which advance by sx and
 * sy, 0 or 1.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu/core/cpu_level.h"
#include "cpu/core/vecmath.h"

#define GRADIENTS 64 /* that are looked at before their slopes are computed */

#define ROW(name, T, Z, EXPR)                                                                                  \
    static HN_TARGET void HN_V(name)(void *to, const void *left, const void *right, int64_t n, int sx, int sy) \
    {                                                                                                          \
        const T *x = left, *y = right;                                                                         \
        Z *z = to;                                                                                             \
        if (sx != 0 && sy != 0) {                                                                              \
            HN_IVDEP for (int64_t i = 0; i < n; i++)                                                           \
            {                                                                                                  \
                const T p = x[i], q = y[i];                                                                    \
                z[i] = (Z)(EXPR);                                                                              \
            }                                                                                                  \
        } else if (sx != 0) {                                                                                  \
            const T q = y[0];                                                                                  \
            HN_IVDEP for (int64_t i = 0; i < n; i++)                                                           \
            {                                                                                                  \
                const T p = x[i];                                                                              \
                z[i] = (Z)(EXPR);                                                                              \
            }                                                                                                  \
        } else {                                                                                               \
            const T p = x[0];                                                                                  \
            HN_IVDEP for (int64_t i = 0; i < n; i++)                                                           \
            {                                                                                                  \
                const T q = y[sy != 0 ? i : 0];                                                                \
                z[i] = (Z)(EXPR);                                                                              \
            }                                                                                                  \
        }                                                                                                      \
    }
/* Overflow wraps, which only unsigned numbers may. */
#define ARITHMETIC(name, OP)                                      \
    ROW(name##_f32, float, float, p OP q)                         \
    ROW(name##_f64, double, double, p OP q)                       \
    ROW(name##_i32, int32_t, int32_t, (uint32_t)p OP(uint32_t) q) \
    ROW(name##_i64, int64_t, int64_t, (uint64_t)p OP(uint64_t) q)
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)

/* Cut off towards zero; by zero 0; the negative of the least number is itself. */
#define DIVIDE(U) q == 0 ? 0 : q == -1 ? (U)0 - (U)p : (U)(p / q)
ROW(div_f32, float, float, p / q)
ROW(div_f64, double, double, p / q)
ROW(div_i32, int32_t, int32_t, DIVIDE(uint32_t))
ROW(div_i64, int64_t, int64_t, DIVIDE(uint64_t))

/* What is left over has the sign of the divisor (mod) or of the dividend (rem); by zero 0. */
#define REMAINDER(T) q == 0 || q == -1 ? 0 : (T)(p % q)
#define MODULO(T) q == 0 || q == -1 ? 0 : (T)(p % q + (p % q != 0 && (p % q < 0) != (q < 0) ? q : 0))
ROW(rem_f32, float, float, fmodf(p, q))
ROW(rem_f64, double, double, fmod(p, q))
ROW(rem_i32, int32_t, int32_t, REMAINDER(int32_t))
ROW(rem_i64, int64_t, int64_t, REMAINDER(int64_t))
ROW(mod_i32, int32_t, int32_t, MODULO(int32_t))
ROW(mod_i64, int64_t, int64_t, MODULO(int64_t))

#define BITS(name, OP)                        \
    ROW(name##_i32, int32_t, int32_t, p OP q) \
    ROW(name##_i64, int64_t, int64_t, p OP q) \
    ROW(name##_u8, uint8_t, uint8_t, p OP q)
BITS(bits_and, &)
BITS(bits_or, |)
BITS(bits_xor, ^)

#define EXTREME(name, OP)                                     \
    ROW(name##_f32, float, float, p OP q || p != p ? p : q)   \
    ROW(name##_f64, double, double, p OP q || p != p ? p : q) \
    ROW(name##_i32, int32_t, int32_t, p OP q ? p : q)         \
    ROW(name##_i64, int64_t, int64_t, p OP q ? p : q)
EXTREME(max, >)
EXTREME(min, <)

ROW(prelu_f32, float, float, p >= 0 ? p : p * q)
ROW(pow_f32, float, float, powf(p, q))
ROW(gelugrad_all, float, float, p *HN_V(gelu_slope)(q))
ROW(gelugrad_tanh_all, float, float, p *HN_V(gelu_tanh_slope)(q))

/* Where a gradient is 0 for some time, as behind a maximum over many elements, no slope is computed. */
#define WHERE_NOT_0(name)                                                                                            \
    static HN_TARGET void HN_V(name##_f32)(void *to, const void *left, const void *right, int64_t n, int sx, int sy) \
    {                                                                                                                \
        if (sx == 0) {                                                                                               \
            HN_V(name##_all)(to, left, right, n, sx, sy);                                                            \
            return;                                                                                                  \
        }                                                                                                            \
        float *z = to;                                                                                               \
        const float *x = left, *y = right;                                                                           \
        for (int64_t i = 0, m; i < n; i += m) {                                                                      \
            uint32_t any = 0;                                                                                        \
            m = n - i < GRADIENTS ? n - i : GRADIENTS;                                                               \
            for (int64_t k = 0; k < m; k++) {                                                                        \
                uint32_t bits;                                                                                       \
                memcpy(&bits, x + i + k, sizeof bits);                                                               \
                any |= bits;                                                                                         \
            }                                                                                                        \
            if ((any & 0x7fffffffu) != 0)                                                                            \
                HN_V(name##_all)(z + i, x + i, y + (sy != 0 ? i : 0), m, sx, sy);                                    \
            else                                                                                                     \
                memset(z + i, 0, (size_t)m * sizeof *z);                                                             \
        }                                                                                                            \
    }
WHERE_NOT_0(gelugrad)
WHERE_NOT_0(gelugrad_tanh)
#undef WHERE_NOT_0

#define COMPARE(name, OP)                     \
    ROW(name##_f32, float, uint8_t, p OP q)   \
    ROW(name##_f64, double, uint8_t, p OP q)  \
    ROW(name##_i32, int32_t, uint8_t, p OP q) \
    ROW(name##_i64, int64_t, uint8_t, p OP q) \
    ROW(name##_u8, uint8_t, uint8_t, p OP q)
COMPARE(equal, ==)
COMPARE(greater, >)
COMPARE(greaterorequal, >=)
COMPARE(less, <)
COMPARE(lessorequal, <=)

/* A file's bool may hold any byte. */
ROW(equal_bool, uint8_t, uint8_t, (p != 0) == (q != 0))
ROW(and_bool, uint8_t, uint8_t, p != 0 && q != 0)
ROW(or_bool, uint8_t, uint8_t, p != 0 || q != 0)
ROW(xor_bool, uint8_t, uint8_t, (p != 0) != (q != 0))
ROW(not_bool, uint8_t, uint8_t, ((void)q, p == 0))

#undef ROW
#undef GRADIENTS
#undef ARITHMETIC
#undef DIVIDE
#undef REMAINDER
#undef MODULO
#undef BITS
#undef EXTREME
#undef COMPARE
