/*
 * Element types. The numbers are those of ONNX's TensorProto.DataType, so that a file's type is never translated.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef enum {
    HN_UNDEFINED = 0,
    HN_F32 = 1,
    HN_U8 = 2,
    HN_I8 = 3,
    HN_U16 = 4,
    HN_I16 = 5,
    HN_I32 = 6,
    HN_I64 = 7,
    HN_STRING = 8,
    HN_BOOL = 9,
    HN_F16 = 10,
    HN_F64 = 11,
    HN_U32 = 12,
    HN_U64 = 13,
    HN_C64 = 14,
    HN_C128 = 15,
    HN_BF16 = 16,
    HN_F8E4M3FN = 17,
    HN_F8E4M3FNUZ = 18,
    HN_F8E5M2 = 19,
    HN_F8E5M2FNUZ = 20,
    HN_U4 = 21,
    HN_I4 = 22,
    HN_F4E2M1 = 23,
    HN_F8E8M0 = 24,
    HN_U2 = 25,
    HN_I2 = 26,
    HN_F6E2M3 = 27,
    HN_F6E3M2 = 28,
    HN_DTYPE_COUNT,
    /* What no file says of elements: a value whose elements are values (hn_tensor_new_list()). Without bits, and not
     * known by name. */
    HN_SEQUENCE = 29,
    HN_OPTIONAL = 30,
    HN_MAP = 31,
} HnDtype;

/* A set of element types: bit d for HnDtype d. */
typedef uint32_t HnTypeMask;

#define HN_BIT(d) (1u << (d))
#define HN_T_FLOATS (HN_BIT(HN_F16) | HN_BIT(HN_F32) | HN_BIT(HN_F64) | HN_BIT(HN_BF16))
#define HN_T_SINTS (HN_BIT(HN_I8) | HN_BIT(HN_I16) | HN_BIT(HN_I32) | HN_BIT(HN_I64))
#define HN_T_UINTS (HN_BIT(HN_U8) | HN_BIT(HN_U16) | HN_BIT(HN_U32) | HN_BIT(HN_U64))
#define HN_T_INTS (HN_T_SINTS | HN_T_UINTS)
#define HN_T_NUM (HN_T_FLOATS | HN_T_INTS)
#define HN_T_BOOL HN_BIT(HN_BOOL)
#define HN_T_F8S (HN_BIT(HN_F8E4M3FN) | HN_BIT(HN_F8E4M3FNUZ) | HN_BIT(HN_F8E5M2) | HN_BIT(HN_F8E5M2FNUZ))
#define HN_T_F8 \
    (HN_BIT(HN_F8E4M3FN) | HN_BIT(HN_F8E4M3FNUZ) | HN_BIT(HN_F8E5M2) | HN_BIT(HN_F8E5M2FNUZ) | HN_BIT(HN_F8E8M0))
#define HN_T_SUBBYTE                                                     \
    (HN_BIT(HN_U4) | HN_BIT(HN_I4) | HN_BIT(HN_F4E2M1) | HN_BIT(HN_U2) | \
     HN_BIT(HN_I2))                         /* packed, low bits first; the 6-bit floats are data only */
#define HN_T_COMPUTE (HN_T_NUM | HN_T_BOOL) /* the 13 types that reference kernels compute with */
#define HN_T_ANY 0xffffffffu                /* every type, strings included */

/* "f32", "i64", "bool", ...: the names used in messages, text dumps and reports. "?" for an unknown number. */
const char *hn_dtype_name(HnDtype d);
/* The reverse; also accepts ONNX's and numpy's spellings ("float", "float32", "int64"). HN_UNDEFINED if unknown. */
HnDtype hn_dtype_parse(const char *name);
/* Bits of one element; 0 for strings and unknown numbers. */
unsigned hn_dtype_bits(HnDtype d);
/* Bytes of n elements, packed types rounded up. FALSE if the product overflows or the type has no fixed size. */
gboolean hn_dtype_bytes(HnDtype d, int64_t n, size_t *bytes);
/* Bytes of one element of a type that fills whole bytes. */
static inline size_t hn_dtype_size(HnDtype d)
{
    return hn_dtype_bits(d) / 8;
}
static inline gboolean hn_dtype_is_half(HnDtype d)
{
    return d == HN_F16 || d == HN_BF16;
}
static inline gboolean hn_dtype_is_list(HnDtype d)
{
    return d == HN_SEQUENCE || d == HN_OPTIONAL || d == HN_MAP;
}
static inline gboolean hn_dtype_in(HnDtype d, HnTypeMask m)
{
    return (unsigned)d < 32 && ((m >> d) & 1) != 0;
}

G_END_DECLS
