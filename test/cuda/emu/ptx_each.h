/*
 * Loops over the lanes of a warp, and functions of instructions that treat each lane by itself. Files that use it are
 * compiled without strict aliasing: a row has no type.
 */
#pragma once

#include "ptx.h"

#if defined(__clang__)
#define PTX_IVDEP
#else
#define PTX_IVDEP _Pragma("GCC ivdep")
#endif

/* The body for each lane l of mask; rows may be the same one, never shifted ones. */
#define EACH(...)                                        \
    do {                                                 \
        if (mask == UINT32_MAX) {                        \
            PTX_IVDEP                                    \
            for (int l = 0; l < LANES; l++)              \
                __VA_ARGS__                              \
        } else {                                         \
            for (uint32_t m_ = mask; m_; m_ &= m_ - 1) { \
                int l = __builtin_ctz(m_);               \
                __VA_ARGS__                              \
            }                                            \
        }                                                \
    } while (0)

/* R: element of a row, T: what is computed with, S: what the result is cut to. */
#define FN1(name, R, T, S, expr)                                   \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        R *restrict d = ptx_row(w, in->o[0]);                      \
        const R *a = ptx_row(w, in->o[1]);                         \
        EACH({                                                     \
            T x = (T)a[l];                                         \
            d[l] = (R)(S)(expr);                                   \
        });                                                        \
    }
#define FN2(name, R, T, S, expr)                                      \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)    \
    {                                                                 \
        R *d = ptx_row(w, in->o[0]);                                  \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]); \
        EACH({                                                        \
            T x = (T)a[l], y = (T)b[l];                               \
            d[l] = (R)(S)(expr);                                      \
        });                                                           \
    }
#define FN3(name, R, T, S, expr)                                                                 \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)                               \
    {                                                                                            \
        R *d = ptx_row(w, in->o[0]);                                                             \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]), *c = ptx_row(w, in->o[3]); \
        EACH({                                                                                   \
            T x = (T)a[l], y = (T)b[l], z = (T)c[l];                                             \
            d[l] = (R)(S)(expr);                                                                 \
        });                                                                                      \
    }
