#include "ir/dtype.h"

#include "base/checked.h"

static const struct {
    const char *name, *onnx, *numpy;
    unsigned bits;
} types[HN_DTYPE_COUNT] = {
    [HN_UNDEFINED] = { "undefined", NULL, NULL, 0 },
    [HN_F32] = { "f32", "float", "float32", 32 },
    [HN_U8] = { "u8", "uint8", "uint8", 8 },
    [HN_I8] = { "i8", "int8", "int8", 8 },
    [HN_U16] = { "u16", "uint16", "uint16", 16 },
    [HN_I16] = { "i16", "int16", "int16", 16 },
    [HN_I32] = { "i32", "int32", "int32", 32 },
    [HN_I64] = { "i64", "int64", "int64", 64 },
    [HN_STRING] = { "string", "string", "str", 0 },
    [HN_BOOL] = { "bool", "bool", "bool", 8 },
    [HN_F16] = { "f16", "float16", "float16", 16 },
    [HN_F64] = { "f64", "double", "float64", 64 },
    [HN_U32] = { "u32", "uint32", "uint32", 32 },
    [HN_U64] = { "u64", "uint64", "uint64", 64 },
    [HN_C64] = { "c64", "complex64", "complex64", 64 },
    [HN_C128] = { "c128", "complex128", "complex128", 128 },
    [HN_BF16] = { "bf16", "bfloat16", "bfloat16", 16 },
    [HN_F8E4M3FN] = { "f8e4m3fn", "float8e4m3fn", "float8_e4m3fn", 8 },
    [HN_F8E4M3FNUZ] = { "f8e4m3fnuz", "float8e4m3fnuz", "float8_e4m3fnuz", 8 },
    [HN_F8E5M2] = { "f8e5m2", "float8e5m2", "float8_e5m2", 8 },
    [HN_F8E5M2FNUZ] = { "f8e5m2fnuz", "float8e5m2fnuz", "float8_e5m2fnuz", 8 },
    [HN_U4] = { "u4", "uint4", "uint4", 4 },
    [HN_I4] = { "i4", "int4", "int4", 4 },
    [HN_F4E2M1] = { "f4e2m1", "float4e2m1", "float4_e2m1fn", 4 },
    [HN_F8E8M0] = { "f8e8m0", "float8e8m0", "float8_e8m0fnu", 8 },
    [HN_U2] = { "u2", "uint2", "uint2", 2 },
    [HN_I2] = { "i2", "int2", "int2", 2 },
    [HN_F6E2M3] = { "f6e2m3", "float6e2m3", "float6_e2m3fn", 6 },
    [HN_F6E3M2] = { "f6e3m2", "float6e3m2", "float6_e3m2fn", 6 },
};

const char *hn_dtype_name(HnDtype d)
{
    static const char *const lists[] = { "sequence", "optional", "map" };
    if (hn_dtype_is_list(d))
        return lists[d - HN_SEQUENCE];
    return (unsigned)d < HN_DTYPE_COUNT ? types[d].name : "?";
}

HnDtype hn_dtype_parse(const char *name)
{
    for (int d = 1; d < HN_DTYPE_COUNT; d++)
        if (g_strcmp0(name, types[d].name) == 0 || g_strcmp0(name, types[d].onnx) == 0 ||
            g_strcmp0(name, types[d].numpy) == 0)
            return (HnDtype)d;
    return HN_UNDEFINED;
}

unsigned hn_dtype_bits(HnDtype d)
{
    return (unsigned)d < HN_DTYPE_COUNT ? types[d].bits : 0;
}

gboolean hn_dtype_bytes(HnDtype d, int64_t n, size_t *bytes)
{
    unsigned bits = hn_dtype_bits(d);
    int64_t total;
    if (bits == 0 || n < 0 || !hn_mul_i64(n, bits, &total) || !hn_add_i64(total, 7, &total))
        return FALSE;
    *bytes = (size_t)(total / 8);
    return TRUE;
}
