#include "ptx_each.h"

/* Integers: one function for each operation and type. */

#define ALL_TYPES(op, expr)                           \
    FN2(op##_u16, uint32_t, uint16_t, uint16_t, expr) \
    FN2(op##_s16, uint32_t, int16_t, uint16_t, expr)  \
    FN2(op##_u32, uint32_t, uint32_t, uint32_t, expr) \
    FN2(op##_s32, uint32_t, int32_t, uint32_t, expr)  \
    FN2(op##_u64, uint64_t, uint64_t, uint64_t, expr) \
    FN2(op##_s64, uint64_t, int64_t, uint64_t, expr)
#define BITS(op, expr)                                \
    FN2(op##_b16, uint32_t, uint16_t, uint16_t, expr) \
    FN2(op##_b32, uint32_t, uint32_t, uint32_t, expr) \
    FN2(op##_b64, uint64_t, uint64_t, uint64_t, expr)
#define UNSIGNED(op, expr)                           \
    FN2(op##_16, uint32_t, uint16_t, uint16_t, expr) \
    FN2(op##_32, uint32_t, uint32_t, uint32_t, expr) \
    FN2(op##_64, uint64_t, uint64_t, uint64_t, expr)

UNSIGNED(add, x + y)
UNSIGNED(sub, x - y)
FN2(mul_16, uint32_t, uint32_t, uint16_t, x *y)
FN2(mul_32, uint32_t, uint32_t, uint32_t, x *y)
FN2(mul_64, uint64_t, uint64_t, uint64_t, x *y)
ALL_TYPES(min, x < y ? x : y)
ALL_TYPES(max, x > y ? x : y)
/* What division by zero gives is not specified: all ones, as devices do. */
FN2(div_u16, uint32_t, uint16_t, uint16_t, y ? x / y : 0xffff)
FN2(div_s16, uint32_t, int16_t, uint16_t, y ? x / y : -1)
FN2(div_u32, uint32_t, uint32_t, uint32_t, y ? x / y : UINT32_MAX)
FN2(div_s32, uint32_t, int32_t, uint32_t, !y ? -1 : y == -1 ? (int32_t)(0 - (uint32_t)x) : x / y)
FN2(div_u64, uint64_t, uint64_t, uint64_t, y ? x / y : UINT64_MAX)
FN2(div_s64, uint64_t, int64_t, uint64_t, !y ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
FN2(rem_u16, uint32_t, uint16_t, uint16_t, y ? x % y : x)
FN2(rem_s16, uint32_t, int16_t, uint16_t, y ? x % y : x)
FN2(rem_u32, uint32_t, uint32_t, uint32_t, y ? x % y : x)
FN2(rem_s32, uint32_t, int32_t, uint32_t, !y ? x : y == -1 ? 0 : x % y)
FN2(rem_u64, uint64_t, uint64_t, uint64_t, y ? x % y : x)
FN2(rem_s64, uint64_t, int64_t, uint64_t, !y ? x : y == -1 ? 0 : x % y)
BITS(and, x &y)
BITS(or, x | y)
BITS(xor, x ^ y)
FN1(not_b16, uint32_t, uint16_t, uint16_t, ~x)
FN1(not_b32, uint32_t, uint32_t, uint32_t, ~x)
FN1(not_b64, uint64_t, uint64_t, uint64_t, ~x)
FN1(cnot_b32, uint32_t, uint32_t, uint32_t, x == 0)
FN1(neg_s16, uint32_t, uint32_t, uint16_t, 0 - x)
FN1(neg_s32, uint32_t, uint32_t, uint32_t, 0 - x)
FN1(neg_s64, uint64_t, uint64_t, uint64_t, 0 - x)
FN1(abs_s16, uint32_t, int16_t, uint16_t, x < 0 ? -x : x)
FN1(abs_s32, uint32_t, int32_t, uint32_t, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)
FN1(abs_s64, uint64_t, int64_t, uint64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
FN1(mov_32, uint32_t, uint32_t, uint32_t, x)
FN1(mov_16, uint32_t, uint32_t, uint16_t, x)
FN1(mov_64, uint64_t, uint64_t, uint64_t, x)
FN2(mulhi_u16, uint32_t, uint32_t, uint16_t, x *y >> 16)
FN2(mulhi_s16, uint32_t, int16_t, uint16_t, (int32_t)x *y >> 16)
FN2(mulhi_u32, uint32_t, uint64_t, uint32_t, x *y >> 32)
FN2(mulhi_s32, uint32_t, int32_t, uint32_t, (int64_t)x *y >> 32)
FN2(mulhi_u64, uint64_t, uint64_t, uint64_t, (unsigned __int128)x *y >> 64)
FN2(mulhi_s64, uint64_t, int64_t, uint64_t, (__int128)x *y >> 64)
FN2(mul24_u32, uint32_t, uint32_t, uint32_t, (x & 0xffffff) * (y & 0xffffff))
FN2(mul24_s32, uint32_t, int32_t, uint32_t, (uint32_t)(x << 8 >> 8) * (uint32_t)(y << 8 >> 8))
FN3(mad_16, uint32_t, uint32_t, uint16_t, x *y + z)
FN3(mad_32, uint32_t, uint32_t, uint32_t, x *y + z)
FN3(mad_64, uint64_t, uint64_t, uint64_t, x *y + z)
FN3(madhi_u32, uint32_t, uint32_t, uint32_t, ((uint64_t)x * y >> 32) + z)
FN3(madhi_s32, uint32_t, int32_t, uint32_t, ((int64_t)x * y >> 32) + z)
FN3(madhi_u64, uint64_t, uint64_t, uint64_t, (uint64_t)((unsigned __int128)x *y >> 64) + z)
FN3(madhi_s64, uint64_t, int64_t, uint64_t, (uint64_t)((__int128)x *y >> 64) + (uint64_t)z)
FN3(sad_u32, uint32_t, uint32_t, uint32_t, (x > y ? x - y : y - x) + z)
FN3(sad_s32, uint32_t, int32_t, uint32_t, (x > y ? (uint32_t)x - (uint32_t)y : (uint32_t)y - (uint32_t)x) + (uint32_t)z)
FN2(addsat_s32, uint32_t, int32_t, uint32_t, (int32_t)CLAMP((int64_t)x + y, INT32_MIN, INT32_MAX))
FN2(subsat_s32, uint32_t, int32_t, uint32_t, (int32_t)CLAMP((int64_t)x - y, INT32_MIN, INT32_MAX))

/* Products twice as wide as their factors. */
#define WIDE(name, R, D, T, P, plus)                                        \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)          \
    {                                                                       \
        D *d = ptx_row(w, in->o[0]);                                        \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]);       \
        const D *c = plus ? ptx_row(w, in->o[3]) : NULL;                    \
        EACH({ d[l] = (D)((P)(T)a[l] * (P)(T)b[l]) + (plus ? c[l] : 0); }); \
    }
WIDE(wide_u16, uint32_t, uint32_t, uint16_t, uint32_t, 0)
WIDE(wide_s16, uint32_t, uint32_t, int16_t, int32_t, 0)
WIDE(wide_u32, uint32_t, uint64_t, uint32_t, uint64_t, 0)
WIDE(wide_s32, uint32_t, uint64_t, int32_t, int64_t, 0)
WIDE(madwide_u16, uint32_t, uint32_t, uint16_t, uint32_t, 1)
WIDE(madwide_s16, uint32_t, uint32_t, int16_t, int32_t, 1)
WIDE(madwide_u32, uint32_t, uint64_t, uint32_t, uint64_t, 1)
WIDE(madwide_s32, uint32_t, uint64_t, int32_t, int64_t, 1)

/* Shifts: the distance is 32 bits wide, and may be beyond the type. */
#define SHIFT(name, R, T, S, expr)                                 \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        R *d = ptx_row(w, in->o[0]);                               \
        const R *a = ptx_row(w, in->o[1]);                         \
        const uint32_t *b = ptx_row(w, in->o[2]);                  \
        const uint32_t top = 8 * sizeof(T) - 1;                    \
        EACH({                                                     \
            T x = (T)a[l];                                         \
            uint32_t y = b[l];                                     \
            uint32_t c = y > top ? top : y;                        \
            d[l] = (R)(S)(expr);                                   \
        });                                                        \
    }
SHIFT(shl_b16, uint32_t, uint16_t, uint16_t, y > top ? 0 : (uint32_t)x << c)
SHIFT(shl_b32, uint32_t, uint32_t, uint32_t, y > top ? 0 : x << c)
SHIFT(shl_b64, uint64_t, uint64_t, uint64_t, y > top ? 0 : x << c)
SHIFT(shr_u16, uint32_t, uint16_t, uint16_t, y > top ? 0 : x >> c)
SHIFT(shr_u32, uint32_t, uint32_t, uint32_t, y > top ? 0 : x >> c)
SHIFT(shr_u64, uint64_t, uint64_t, uint64_t, y > top ? 0 : x >> c)
SHIFT(shr_s16, uint32_t, int16_t, uint16_t, x >> c)
SHIFT(shr_s32, uint32_t, int32_t, uint32_t, x >> c)
SHIFT(shr_s64, uint64_t, int64_t, uint64_t, x >> c)
FN3(shf_l_wrap, uint32_t, uint32_t, uint32_t, (((uint64_t)y << 32 | x) << (z & 31)) >> 32)
FN3(shf_r_wrap, uint32_t, uint32_t, uint32_t, ((uint64_t)y << 32 | x) >> (z & 31))
FN3(shf_l_clamp, uint32_t, uint32_t, uint32_t, z >= 32 ? x : (((uint64_t)y << 32 | x) << z) >> 32)
FN3(shf_r_clamp, uint32_t, uint32_t, uint32_t, ((uint64_t)y << 32 | x) >> (z > 32 ? 32 : z))

/* Counting bits: the result has 32 bits. */
#define COUNT(name, R, T, expr)                                    \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        uint32_t *d = ptx_row(w, in->o[0]);                        \
        const R *a = ptx_row(w, in->o[1]);                         \
        EACH({                                                     \
            T x = (T)a[l];                                         \
            d[l] = (uint32_t)(expr);                               \
        });                                                        \
    }
COUNT(popc_b32, uint32_t, uint32_t, __builtin_popcount(x))
COUNT(popc_b64, uint64_t, uint64_t, __builtin_popcountll(x))
COUNT(clz_b32, uint32_t, uint32_t, x ? __builtin_clz(x) : 32)
COUNT(clz_b64, uint64_t, uint64_t, x ? __builtin_clzll(x) : 64)
COUNT(bfind_u32, uint32_t, uint32_t, x ? 31 - __builtin_clz(x) : -1)
COUNT(bfind_s32, uint32_t, int32_t, (x ^ x >> 31) ? 31 - __builtin_clz((uint32_t)(x ^ x >> 31)) : -1)
COUNT(bfind_u64, uint64_t, uint64_t, x ? 63 - __builtin_clzll(x) : -1)
COUNT(bfind_s64, uint64_t, int64_t, (x ^ x >> 63) ? 63 - __builtin_clzll((uint64_t)(x ^ x >> 63)) : -1)
COUNT(bfind_shift_u32, uint32_t, uint32_t, x ? __builtin_clz(x) : -1)

static uint64_t reverse_bits(uint64_t x)
{
    x = (x & 0x5555555555555555u) << 1 | (x >> 1 & 0x5555555555555555u);
    x = (x & 0x3333333333333333u) << 2 | (x >> 2 & 0x3333333333333333u);
    x = (x & 0x0f0f0f0f0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0fu);
    return __builtin_bswap64(x);
}
FN1(brev_b32, uint32_t, uint32_t, uint32_t, reverse_bits(x) >> 32)
FN1(brev_b64, uint64_t, uint64_t, uint64_t, reverse_bits(x))

static uint64_t extract(uint64_t a, uint32_t at, uint32_t n, int bits, bool sign)
{
    at &= 255;
    n &= 255;
    if (!n)
        return 0;
    uint32_t top = MIN(at + n - 1, (uint32_t)bits - 1);
    uint64_t fill = sign && (a >> top & 1) ? UINT64_MAX : 0;
    uint64_t v = at >= (uint32_t)bits ? fill : a >> at;
    uint32_t have = at >= (uint32_t)bits ? 0 : MIN(n, (uint32_t)bits - at);
    if (have < 64)
        v = (v & (((uint64_t)1 << have) - 1)) | fill << have;
    return v;
}

static uint64_t insert(uint64_t a, uint64_t b, uint32_t at, uint32_t n, uint32_t bits)
{
    at &= 255;
    n &= 255;
    if (at >= bits || !n)
        return b;
    n = MIN(n, bits - at);
    uint64_t m = (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << at;
    return (b & ~m) | (a << at & m);
}

#define EXTRACT(name, R, sign)                                                    \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)                \
    {                                                                             \
        R *d = ptx_row(w, in->o[0]);                                              \
        const R *a = ptx_row(w, in->o[1]);                                        \
        const uint32_t *b = ptx_row(w, in->o[2]), *c = ptx_row(w, in->o[3]);      \
        EACH({ d[l] = (R)extract(a[l], b[l], c[l], 8 * (int)sizeof(R), sign); }); \
    }
EXTRACT(bfe_u32, uint32_t, false)
EXTRACT(bfe_s32, uint32_t, true)
EXTRACT(bfe_u64, uint64_t, false)
EXTRACT(bfe_s64, uint64_t, true)
#define INSERT(name, R)                                                      \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)           \
    {                                                                        \
        R *d = ptx_row(w, in->o[0]);                                         \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]);        \
        const uint32_t *c = ptx_row(w, in->o[3]), *e = ptx_row(w, in->o[4]); \
        EACH({ d[l] = (R)insert(a[l], b[l], c[l], e[l], 8 * sizeof(R)); });  \
    }
INSERT(bfi_b32, uint32_t)
INSERT(bfi_b64, uint64_t)

static void lop3(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t *d = ptx_row(w, in->o[0]);
    const uint32_t *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]), *c = ptx_row(w, in->o[3]);
    uint32_t f = *(const uint32_t *)ptx_row(w, in->o[4]);
    uint32_t t[8];
    for (int i = 0; i < 8; i++)
        t[i] = f >> i & 1 ? UINT32_MAX : 0;
    EACH({
        uint32_t x = a[l];
        uint32_t y = b[l];
        uint32_t z = c[l];
        d[l] = (~x & ~y & ~z & t[0]) | (~x & ~y & z & t[1]) | (~x & y & ~z & t[2]) | (~x & y & z & t[3]) |
               (x & ~y & ~z & t[4]) | (x & ~y & z & t[5]) | (x & y & ~z & t[6]) | (x & y & z & t[7]);
    });
}

/* The variant with one of prmt's modes: in->sub is 1 + its index. */
static uint32_t permute(uint32_t a, uint32_t b, uint32_t c, int mode)
{
    uint64_t v = (uint64_t)b << 32 | a;
    uint32_t r = 0, n = c & 3;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t pick;
        switch (mode) {
        case 1: /* f4e */
            pick = n + i;
            break;
        case 2: /* b4e */
            pick = (n - i) & 7;
            break;
        case 3: /* rc8 */
            pick = n;
            break;
        case 4: /* ecl */
            pick = MAX(i, n);
            break;
        case 5: /* ecr */
            pick = MIN(i, n);
            break;
        case 6: /* rc16 */
            pick = (n & 1) * 2 + (i & 1);
            break;
        default:
            pick = c >> 4 * i & 15;
        }
        uint32_t byte = v >> 8 * (pick & 7) & 255;
        if (pick & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * i;
    }
    return r;
}
FN3(prmt, uint32_t, uint32_t, uint32_t, permute(x, y, z, in->sub))

static uint32_t dot(uint32_t a, uint32_t b, uint32_t c, int n, int from, bool a_signed, bool b_signed)
{
    for (int i = 0; i < n; i++) {
        int32_t x = n == 4     ? (a_signed ? (int8_t)(a >> 8 * i) : (uint8_t)(a >> 8 * i))
                    : a_signed ? (int16_t)(a >> 16 * i)
                               : (uint16_t)(a >> 16 * i);
        int32_t y = b_signed ? (int8_t)(b >> 8 * (from + i)) : (uint8_t)(b >> 8 * (from + i));
        c += (uint32_t)(x * y);
    }
    return c;
}
FN3(dp4a, uint32_t, uint32_t, uint32_t,
    dot(x, y, z, 4, 0, ptx_is_signed((PtxType)in->type), ptx_is_signed((PtxType)in->from)))
FN3(dp2a_lo, uint32_t, uint32_t, uint32_t,
    dot(x, y, z, 2, 0, ptx_is_signed((PtxType)in->type), ptx_is_signed((PtxType)in->from)))
FN3(dp2a_hi, uint32_t, uint32_t, uint32_t,
    dot(x, y, z, 2, 2, ptx_is_signed((PtxType)in->type), ptx_is_signed((PtxType)in->from)))

/* Sums with carries: the carry of each lane is a bit of the warp's last word of registers. */
#define CARRY(name, R, sum, out)                                                              \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)                            \
    {                                                                                         \
        R *d = ptx_row(w, in->o[0]);                                                          \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]);                         \
        const R *c = in->n > 3 ? ptx_row(w, in->o[3]) : NULL;                                 \
        for (uint32_t m = mask; m; m &= m - 1) {                                              \
            int l = __builtin_ctz(m);                                                         \
            uint32_t carry = w->carry >> l & 1;                                               \
            R x = a[l], y = b[l], z = c ? c[l] : 0;                                           \
            unsigned __int128 s = (sum);                                                      \
            (void)carry;                                                                      \
            (void)z;                                                                          \
            d[l] = (R)s;                                                                      \
            if (out)                                                                          \
                w->carry = (w->carry & ~(1u << l)) | (uint32_t)(s >> 8 * sizeof(R) & 1) << l; \
        }                                                                                     \
    }
typedef unsigned __int128 Wide;
CARRY(add_cc_32, uint32_t, (Wide)x + y, true)
CARRY(addc_32, uint32_t, (Wide)x + y + carry, false)
CARRY(addc_cc_32, uint32_t, (Wide)x + y + carry, true)
CARRY(sub_cc_32, uint32_t, (Wide)x - y, true)
CARRY(subc_32, uint32_t, (Wide)x - y - carry, false)
CARRY(subc_cc_32, uint32_t, (Wide)x - y - carry, true)
CARRY(add_cc_64, uint64_t, (Wide)x + y, true)
CARRY(addc_64, uint64_t, (Wide)x + y + carry, false)
CARRY(addc_cc_64, uint64_t, (Wide)x + y + carry, true)
CARRY(sub_cc_64, uint64_t, (Wide)x - y, true)
CARRY(subc_64, uint64_t, (Wide)x - y - carry, false)
CARRY(subc_cc_64, uint64_t, (Wide)x - y - carry, true)
CARRY(madlo_cc_32, uint32_t, (Wide)(uint32_t)(x *y) + z, true)
CARRY(madclo_32, uint32_t, (Wide)(uint32_t)(x *y) + z + carry, false)
CARRY(madclo_cc_32, uint32_t, (Wide)(uint32_t)(x *y) + z + carry, true)
CARRY(madhi_cc_32, uint32_t, (Wide)((uint64_t)x *y >> 32) + z, true)
CARRY(madchi_32, uint32_t, (Wide)((uint64_t)x *y >> 32) + z + carry, false)
CARRY(madchi_cc_32, uint32_t, (Wide)((uint64_t)x *y >> 32) + z + carry, true)

/* Predicates are words with a bit for each lane. */
#define PRED(name, expr)                                                      \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)            \
    {                                                                         \
        uint32_t *d = ptx_row(w, in->o[0]);                                   \
        uint32_t x = *(const uint32_t *)ptx_row(w, in->o[1]),                 \
                 y = in->n > 2 ? *(const uint32_t *)ptx_row(w, in->o[2]) : 0; \
        (void)y;                                                              \
        *d = (*d & ~mask) | ((expr)&mask);                                    \
    }
PRED(and_pred, x &y)
PRED(or_pred, x | y)
PRED(xor_pred, x ^ y)
PRED(not_pred, ~x)
PRED(mov_pred, in->flags &PTX_NOT ? ~x : x)

#define SELECT(name, R)                                               \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)    \
    {                                                                 \
        R *d = ptx_row(w, in->o[0]);                                  \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]); \
        uint32_t p = *(const uint32_t *)ptx_row(w, in->o[3]);         \
        if (in->flags & PTX_NOT)                                      \
            p = ~p;                                                   \
        EACH({ d[l] = p >> l & 1 ? a[l] : b[l]; });                   \
    }
SELECT(selp_32, uint32_t)
SELECT(selp_64, uint64_t)

#define SLCT(name, R, C)                                              \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)    \
    {                                                                 \
        R *d = ptx_row(w, in->o[0]);                                  \
        const R *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]); \
        const C *c = ptx_row(w, in->o[3]);                            \
        EACH({ d[l] = c[l] >= 0 ? a[l] : b[l]; });                    \
    }
SLCT(slct_32_s32, uint32_t, int32_t)
SLCT(slct_32_f32, uint32_t, float)
SLCT(slct_64_s32, uint64_t, int32_t)
SLCT(slct_64_f32, uint64_t, float)

/* mov between a register and the pieces of one: any combination of 2, 4 or 8 pieces. */
static void put_piece(uint8_t *row, int lane, size_t bytes, const uint8_t *from)
{
    size_t wide = bytes <= 4 ? 4 : bytes;
    if (bytes < 4)
        memset(row + wide * (size_t)lane, 0, wide);
    memcpy(row + wide * (size_t)lane, from, bytes);
}

static void mov_pack(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    const int32_t *o = ptx_more(w, in);
    size_t whole = ptx_type_bytes((PtxType)in->type), piece = whole / (size_t)(in->n - 1),
           wide = piece <= 4 ? 4 : piece;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint8_t v[16];
        for (int i = 1; i < in->n; i++)
            memcpy(v + piece * (size_t)(i - 1), (const uint8_t *)ptx_row(w, o[i]) + wide * (size_t)l, piece);
        put_piece(ptx_row(w, o[0]), l, whole, v);
    }
}

static void mov_unpack(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    const int32_t *o = ptx_more(w, in);
    size_t whole = ptx_type_bytes((PtxType)in->type), piece = whole / (size_t)(in->n - 1),
           wide = whole <= 4 ? 4 : whole;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint8_t v[16];
        memcpy(v, (const uint8_t *)ptx_row(w, o[in->n - 1]) + wide * (size_t)l, whole);
        for (int i = 0; i < in->n - 1; i++)
            if (o[i] != -1)
                put_piece(ptx_row(w, o[i]), l, piece, v + piece * (size_t)i);
    }
}

static void mov_128(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint8_t *d = ptx_row(w, in->o[0]);
    const uint8_t *a = ptx_row(w, in->o[1]);
    EACH({ memcpy(d + 16 * l, a + 16 * l, 16); });
}

/* cvta: addresses in shared memory count from 0 there; all others are generic ones already. */
FN1(cvta_to, uint64_t, uint64_t, uint64_t, x + (in->space == SPACE_SHARED ? PTX_SHARED_BASE : 0))
FN1(cvta_from, uint64_t, uint64_t, uint64_t, x - (in->space == SPACE_SHARED ? PTX_SHARED_BASE : 0))

#define E(key, fn, form) { key, fn, form, NULL },
#define SU(op, bits, fn, form) E(#op ".s" #bits, fn, form) E(#op ".u" #bits, fn, form)
#define ALL6(op, name, form)       \
    E(op ".u16", name##_u16, form) \
    E(op ".s16", name##_s16, form) \
    E(op ".u32", name##_u32, form) \
    E(op ".s32", name##_s32, form) E(op ".u64", name##_u64, form) E(op ".s64", name##_s64, form)
#define BITS3(op, name, form) \
    E(op ".b16", name##_b16, form) E(op ".b32", name##_b32, form) E(op ".b64", name##_b64, form)
#define MOV(t, fn) E("mov." t, fn, "DT")
#define SEL(t, fn) E("selp." t, fn, "DTTP")

const PtxEntry ptx_alu_entries[] = {
    SU(add, 16, add_16, "DTT") SU(add, 32, add_32, "DTT") SU(add, 64, add_64, "DTT") SU(sub, 16, sub_16, "DTT") SU(
        sub, 32, sub_32, "DTT") SU(sub, 64, sub_64, "DTT") SU(mul.lo, 16, mul_16, "DTT") SU(mul.lo, 32, mul_32, "DTT")
        SU(mul.lo, 64, mul_64, "DTT") SU(mad.lo, 16, mad_16, "DTTT") SU(mad.lo, 32, mad_32, "DTTT") SU(
            mad.lo, 64, mad_64,
            "DTTT") ALL6("min", min, "DTT") ALL6("max", max, "DTT") ALL6("div", div, "DTT") ALL6("rem", rem, "DTT") ALL6("mul.hi", mulhi, "DTT")
            E("mad.hi.u32", madhi_u32, "DTTT") E("mad.hi.s32", madhi_s32, "DTTT") E("mad.hi.u64", madhi_u64, "DTTT") E(
                "mad.hi.s64",
                madhi_s64, "DTTT") E("mul.wide.u16", wide_u16,
                                     "UTT") E("mul.wide.s16", wide_s16, "UTT")
                E("mul.wide.u32", wide_u32, "LTT") E("mul.wide.s32", wide_s32, "LTT") E("mad.wide.u16", madwide_u16, "UTTU") E(
                    "mad.wide.s16",
                    madwide_s16, "UTTU") E("mad.wide.u32", madwide_u32, "LTTL")
                    E("mad.wide.s32", madwide_s32, "LTTL") E("mul24.lo.u32", mul24_u32, "DTT") E(
                        "mul24.lo.s32",
                        mul24_s32,
                        "DTT") E("sad.u32", sad_u32,
                                 "DTTT") E("sad.s32", sad_s32, "DTTT")
                        E("addsat.s32", addsat_s32, "DTT") E("subsat.s32", subsat_s32, "DTT") BITS3("and", and, "DTT") BITS3("or", or, "DTT") BITS3("xor", xor, "DTT") BITS3(
                            "not",
                            not, "DT") E("and.pred", and_pred,
                                         "PPP") E("or.pred", or_pred, "PPP")
                            E("xor.pred", xor_pred, "PPP") E("not.pred", not_pred, "PP") E("mov.pred", mov_pred, "PP")
                                E("cnot.b32", cnot_b32, "DT") E("neg.s16", neg_s16, "DT") E("neg.s32", neg_s32, "DT") E(
                                    "neg.s64", neg_s64,
                                    "DT") E("abs.s16", abs_s16, "DT")
                                    E("abs.s32", abs_s32,
                                      "DT") E("abs.s64", abs_s64, "DT")
                                        BITS3("shl", shl, "DTU") ALL6("shr", shr, "DTU") E("shr.b16", shr_u16, "DTU") E("shr.b32", shr_u32, "DTU") E(
                                            "shr.b64",
                                            shr_u64,
                                            "DTU") E("shf.l.wrap.b32", shf_l_wrap,
                                                     "DTTU") E("shf.r.wrap.b32", shf_r_wrap,
                                                               "DTTU") E("shf.l.clamp.b32", shf_l_clamp, "DTTU")
                                            E("shf.r.clamp.b32", shf_r_clamp, "DTTU") E("popc.b32", popc_b32, "UT") E("popc.b64", popc_b64, "UT") E("clz.b32", clz_b32, "UT") E(
                                                "clz.b64", clz_b64,
                                                "UT") E("bfind.u32", bfind_u32, "UT")
                                                E("bfind.s32", bfind_s32,
                                                  "UT") E("bfind.u64", bfind_u64, "UT")
                                                    E("bfind.s64",
                                                      bfind_s64, "UT") E("bfind.shiftamt.u32", bfind_shift_u32,
                                                                         "UT") E("brev.b32", brev_b32,
                                                                                 "DT") E("brev.b64", brev_b64,
                                                                                         "DT") E("bfe.u32", bfe_u32, "DTUU")
                                                        E("bfe.s32", bfe_s32, "DTUU") E("bfe.u64", bfe_u64, "DTUU") E("bfe.s64", bfe_s64, "DTUU") E(
                                                            "bfi.b32", bfi_b32,
                                                            "DTTUU") E("bfi.b64", bfi_b64, "DTTUU")
                                                            E("lop3.b32", lop3, "DTTTU") E("prmt.b32", prmt, "DTTU") E("dp4a", dp4a, "UUUU") E(
                                                                "dp2a.lo", dp2a_lo,
                                                                "UUUU") E("dp2a.hi", dp2a_hi, "UUUU")
                                                                SU(add.cc, 32, add_cc_32, "DTT") SU(addc, 32, addc_32, "DTT") SU(
                                                                    addc.cc, 32,
                                                                    addc_cc_32,
                                                                    "DTT") SU(sub.cc, 32, sub_cc_32,
                                                                              "DTT") SU(subc, 32, subc_32, "DTT")
                                                                    SU(subc.cc, 32, subc_cc_32, "DTT") SU(
                                                                        add.cc,
                                                                        64,
                                                                        add_cc_64,
                                                                        "DTT") SU(addc, 64, addc_64,
                                                                                  "DTT") SU(addc.cc, 64, addc_cc_64, "DTT")
                                                                        SU(sub.cc, 64, sub_cc_64, "DTT") SU(subc, 64, subc_64, "DTT") SU(
                                                                            subc.cc, 64,
                                                                            subc_cc_64,
                                                                            "DTT") E("mad.lo.cc.u32", madlo_cc_32,
                                                                                     "DTTT") E("madc.lo.u32",
                                                                                               madclo_32, "DTTT")
                                                                            E("madc.lo.cc.u32", madclo_cc_32, "DTTT") E(
                                                                                "mad.hi.cc.u32", madhi_cc_32,
                                                                                "DTTT") E("madc.hi.u32", madchi_32, "DTTT") E("madc.hi.cc.u32", madchi_cc_32, "DTTT")
                                                                                MOV("b16", mov_16) MOV("u16", mov_16) MOV(
                                                                                    "s16", mov_16) MOV("f16", mov_16) MOV("bf16",
                                                                                                                          mov_16)
                                                                                    MOV("b32", mov_32) MOV("u32", mov_32) MOV(
                                                                                        "s32", mov_32) MOV("f32", mov_32) MOV("b64",
                                                                                                                              mov_64)
                                                                                        MOV("u64", mov_64) MOV("s64", mov_64) MOV(
                                                                                            "f64", mov_64) MOV("b128",
                                                                                                               mov_128) MOV("f16x2", mov_32)
                                                                                            MOV("bf16x2", mov_32) E(
                                                                                                "movpack", mov_pack,
                                                                                                "*") E("movunpack",
                                                                                                       mov_unpack,
                                                                                                       "*") SEL("b16", selp_32)
                                                                                                SEL("u16",
                                                                                                    selp_32) SEL("s16",
                                                                                                                 selp_32) SEL("f16",
                                                                                                                              selp_32) SEL("b32", selp_32)
                                                                                                    SEL("u"
                                                                                                        "3"
                                                                                                        "2",
                                                                                                        selp_32) SEL("s"
                                                                                                                     "3"
                                                                                                                     "2",
                                                                                                                     selp_32) SEL("f32",
                                                                                                                                  selp_32)
                                                                                                        SEL("b64",
                                                                                                            selp_64) SEL("u64",
                                                                                                                         selp_64) SEL("s64",
                                                                                                                                      selp_64)
                                                                                                            SEL("f64",
                                                                                                                selp_64) E("slct"
                                                                                                                           ".b32"
                                                                                                                           ".s3"
                                                                                                                           "2",
                                                                                                                           slct_32_s32,
                                                                                                                           "DTT"
                                                                                                                           "F")
                                                                                                                E("s"
                                                                                                                  "l"
                                                                                                                  "c"
                                                                                                                  "t"
                                                                                                                  "."
                                                                                                                  "u"
                                                                                                                  "3"
                                                                                                                  "2"
                                                                                                                  "."
                                                                                                                  "s"
                                                                                                                  "3"
                                                                                                                  "2",
                                                                                                                  slct_32_s32,
                                                                                                                  "D"
                                                                                                                  "T"
                                                                                                                  "T"
                                                                                                                  "F") E("slct.s32.s32",
                                                                                                                         slct_32_s32,
                                                                                                                         "DTTF")
                                                                                                                    E("slct"
                                                                                                                      ".f32"
                                                                                                                      ".s3"
                                                                                                                      "2",
                                                                                                                      slct_32_s32,
                                                                                                                      "DTT"
                                                                                                                      "F") E("slct.f32.f32",
                                                                                                                             slct_32_f32,
                                                                                                                             "DTTF")
                                                                                                                        E("slct.b32.f32",
                                                                                                                          slct_32_f32,
                                                                                                                          "DTTF") E("slct.b64.s32",
                                                                                                                                    slct_64_s32,
                                                                                                                                    "DTTF")
                                                                                                                            E("slct.b64.f32",
                                                                                                                              slct_64_f32,
                                                                                                                              "DTTF")
                                                                                                                                E("cvta",
                                                                                                                                  cvta_to,
                                                                                                                                  "DT") E("cvta.to",
                                                                                                                                          cvta_from,
                                                                                                                                          "DT"){
                                                                                                                                    NULL,
                                                                                                                                    NULL,
                                                                                                                                    NULL,
                                                                                                                                    NULL },
};
