/* onnx/tensor_file and the lists of TensorProto: every type as raw data and as a list, and what is refused. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/error.h"
#include "onnx/tensor_file.h"
#include "onnx/wire.h"
#include "onnx.pb-c.h"

static GBytes *pack(const ProtobufCMessage *p)
{
    gsize n = protobuf_c_message_get_packed_size(p);
    guint8 *out = g_malloc(n);
    protobuf_c_message_pack(p, out);
    return g_bytes_new_take(out, n);
}

static HnTensor *read_ok(GBytes *bytes)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_onnx_tensor_read_bytes(bytes, NULL, &error);
    g_assert_no_error(error);
    return t;
}

static void assert_refused(const ProtobufCMessage *p, int code, const char *message)
{
    g_autoptr(GBytes) bytes = pack(p);
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_onnx_tensor_read_bytes(bytes, NULL, &error));
    g_assert_error(error, HN_ERROR, code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_raw(void)
{
    for (int d = 1; d < HN_DTYPE_COUNT; d++) {
        static const int64_t counts[] = { 0, 1, 5, 2000 };
        for (guint k = 0; d != HN_STRING && k < G_N_ELEMENTS(counts); k++) {
            g_autoptr(HnTensor) t = hn_tensor_new((HnDtype)d, 1, &counts[k], NULL, NULL);
            for (gsize i = 0; i < t->bytes; i++)
                ((guint8 *)t->data)[i] = (guint8)(d == HN_BOOL ? i % 2 : i * 37 + 5);
            g_autoptr(GBytes) bytes = hn_onnx_tensor_write_bytes(t, "t", NULL, NULL);
            g_autoptr(HnTensor) again = read_ok(bytes);
            g_assert_true(hn_tensor_equal(t, again));
            g_assert_cmpstr(again->name, ==, "t");
            g_assert_false(again->misaligned);
        }
    }
}

static void test_strings(void)
{
    g_autoptr(HnTensor) t = hn_tensor_new(HN_STRING, 2, (const int64_t[]){ 2, 1 }, NULL, NULL);
    g_autoptr(GBytes) s = g_bytes_new("\0\xff"
                                      "a",
                                      3);
    hn_tensor_set_string(t, 1, s);
    g_autoptr(GBytes) bytes = hn_onnx_tensor_write_bytes(t, NULL, NULL, NULL);
    g_autoptr(HnTensor) again = read_ok(bytes);
    g_assert_true(hn_tensor_equal(t, again));
    g_assert_null(again->name);
}

/* What a list of numbers gives as elements */
static void assert_list(HnDtype dtype, Onnx__TensorProto *p, int64_t n, const double *want)
{
    p->n_dims = 1;
    p->dims = &n;
    p->has_data_type = TRUE;
    p->data_type = (int32_t)dtype;
    g_autoptr(GBytes) bytes = pack(&p->base);
    g_autoptr(HnTensor) t = read_ok(bytes);
    g_assert_cmpint(t->dtype, ==, dtype);
    g_assert_cmpint(t->n, ==, n);
    g_assert_cmpint(t->stored, ==, HN_STORED_TYPED);
    for (int64_t i = 0; i < n; i++)
        g_assert_cmpfloat(hn_tensor_get_f64(t, i), ==, want[i]);
}

#define ASSERT_LIST(dtype, field, n, values, ...)                    \
    do {                                                             \
        Onnx__TensorProto p_ = ONNX__TENSOR_PROTO__INIT;             \
        p_.n_##field = G_N_ELEMENTS(values);                         \
        p_.field = values;                                           \
        assert_list(dtype, &p_, n, (const double[]){ __VA_ARGS__ }); \
    } while (0)

static void test_lists(void)
{
    float f[] = { 1.5f, -2.0f };
    double d[] = { 1.5, -2.0 };
    int64_t l[] = { G_MAXINT32 + 1LL, -1 };
    uint64_t u[] = { G_MAXUINT32, 0 };
    int32_t i[] = { -128, 127 }, same[] = { 128, 127 }, w[] = { 65535, 1 }, b[] = { 1, 0 };
    int32_t h[] = { 0x3c00, 0xc000 }, bf[] = { 0x3f80, 0xc000 }, nibbles[] = { 0x21, 0x0f }, e[] = { 0x38, 0xc0 };
    ASSERT_LIST(HN_F32, float_data, 2, f, 1.5, -2);
    ASSERT_LIST(HN_C64, float_data, 1, f, 1.5);
    ASSERT_LIST(HN_F64, double_data, 2, d, 1.5, -2);
    ASSERT_LIST(HN_I64, int64_data, 2, l, 2147483648.0, -1);
    ASSERT_LIST(HN_U32, uint64_data, 2, u, 4294967295.0, 0);
    ASSERT_LIST(HN_U64, uint64_data, 2, u, 4294967295.0, 0);
    ASSERT_LIST(HN_I32, int32_data, 2, i, -128, 127);
    ASSERT_LIST(HN_I16, int32_data, 2, i, -128, 127);
    ASSERT_LIST(HN_I8, int32_data, 2, i, -128, 127);
    ASSERT_LIST(HN_I8, int32_data, 2, same, -128, 127);
    ASSERT_LIST(HN_U8, int32_data, 2, same, 128, 127);
    ASSERT_LIST(HN_U16, int32_data, 2, w, 65535, 1);
    ASSERT_LIST(HN_BOOL, int32_data, 2, b, 1, 0);
    ASSERT_LIST(HN_F16, int32_data, 2, h, 1, -2);
    ASSERT_LIST(HN_BF16, int32_data, 2, bf, 1, -2);
    ASSERT_LIST(HN_F8E4M3FN, int32_data, 2, e, 1, -2);
    ASSERT_LIST(HN_U4, int32_data, 3, nibbles, 1, 2, 15);
    ASSERT_LIST(HN_I4, int32_data, 3, nibbles, 1, 2, -1);
}

/* 6-bit floats are packed as raw data and one to an entry as a list. */
static void test_six_bits(void)
{
    int64_t n = 5;
    int32_t codes[] = { 1, 2, 63, 32, 5 };
    static const guint8 packed[] = { 0x81, 0xf0, 0x83, 0x05 };
    Onnx__TensorProto p = ONNX__TENSOR_PROTO__INIT;
    p.n_dims = 1;
    p.dims = &n;
    p.has_data_type = TRUE;
    p.data_type = HN_F6E3M2;
    p.n_int32_data = G_N_ELEMENTS(codes);
    p.int32_data = codes;
    g_autoptr(GBytes) bytes = pack(&p.base);
    g_autoptr(HnTensor) t = read_ok(bytes);
    g_assert_cmpmem(t->data, t->bytes, packed, sizeof packed);
}

static void test_refused(void)
{
    int64_t three = 3, huge = G_MAXINT64;
    float two[] = { 1, 2 };
    int32_t wide[] = { 0, 1, 256 }, bools[] = { 0, 1, 2 };
    Onnx__TensorProto p = ONNX__TENSOR_PROTO__INIT;
    p.n_dims = 1;
    p.dims = &three;
    p.has_data_type = TRUE;
    p.data_type = HN_F32;
    p.name = (char *)(guintptr) "w";
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' needs 12 bytes but holds 0");
    p.n_float_data = 2;
    p.float_data = two;
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' needs 3 entries of float_data but has 2");
    p.data_type = HN_I32;
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' holds i32 elements in float_data");
    p.has_raw_data = TRUE;
    p.raw_data = (ProtobufCBinaryData){ sizeof two, (guint8 *)two };
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' holds its elements twice");
    p.n_float_data = 0;
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' needs 12 bytes but holds 8");
    p.data_type = HN_STRING;
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' holds strings as raw data");
    p.has_raw_data = FALSE;
    p.data_type = HN_U8;
    p.n_int32_data = 3;
    p.int32_data = wide;
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' holds 256, which is no u8");
    p.data_type = HN_BOOL;
    p.int32_data = bools;
    assert_refused(&p.base, HN_ERROR_FORMAT, "tensor 'w' holds 2 as a bool");
    p.name = NULL;
    p.dims = &huge;
    assert_refused(&p.base, HN_ERROR_FORMAT, "the tensor has more elements than memory could hold");
    p.dims = &three;
    p.has_data_location = TRUE;
    p.data_location = (Onnx__TensorProto__DataLocation)7;
    assert_refused(&p.base, HN_ERROR_FORMAT, "the tensor has the unknown data location 7");
}

/* The other things that a test set's file may hold */
static void test_others(void)
{
    static const char other[] = "a sequence, map or optional, and only tensors are computed with";
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT, *list[] = { &t };
    Onnx__SequenceProto s = ONNX__SEQUENCE_PROTO__INIT;
    Onnx__OptionalProto o = ONNX__OPTIONAL_PROTO__INIT;
    s.name = (char *)(guintptr) "s";
    s.has_elem_type = TRUE;
    s.elem_type = ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
    assert_refused(&s.base, HN_ERROR_UNSUPPORTED, other);
    s.n_tensor_values = 1;
    s.tensor_values = list;
    t.has_data_type = TRUE;
    t.data_type = HN_F32;
    assert_refused(&s.base, HN_ERROR_UNSUPPORTED, other);
    o.has_elem_type = TRUE;
    o.elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__SEQUENCE;
    o.sequence_value = &s;
    assert_refused(&o.base, HN_ERROR_UNSUPPORTED, other);
}

static HnTensor *list_of(HnDtype kind, HnTensor *a, HnTensor *b)
{
    HnTensor *t = hn_tensor_new_list(kind, (a != NULL) + (b != NULL), NULL, NULL);
    if (a != NULL)
        hn_tensor_set_item(t, 0, a);
    if (b != NULL)
        hn_tensor_set_item(t, 1, b);
    return t;
}

/* Written and read again as what it is, and damaged at each byte. */
static void check_list(HnTensor *t, HnTypeKind kind)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnType) type = hn_type_list(kind, HN_UNDEFINED, NULL);
    g_autoptr(GBytes) bytes = hn_onnx_tensor_write_bytes(t, "v", NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) again = hn_onnx_value_read_bytes(bytes, type, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(t, again));
    gsize n;
    g_autofree guint8 *copy = g_memdup2(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
    for (n = 0; n < g_bytes_get_size(bytes); n++) {
        g_autoptr(GError) cause = NULL;
        copy[n] ^= 0x15;
        g_autoptr(GBytes) odd = g_bytes_new(copy, g_bytes_get_size(bytes)), part = g_bytes_new(copy, n);
        copy[n] ^= 0x15;
        HnTensor *x = hn_onnx_value_read_bytes(odd, type, NULL, &cause);
        g_assert_true((x == NULL) == (cause != NULL));
        hn_tensor_unref(x);
        hn_tensor_unref(hn_onnx_value_read_bytes(part, type, NULL, NULL));
    }
}

static void test_values(void)
{
    g_autoptr(HnTensor) ints = hn_tensor_ints((const int64_t[]){ 4, 5 }, 2), one = hn_tensor_scalar_f32(1.5f);
    g_autoptr(HnTensor) words = hn_tensor_new(HN_STRING, 1, (const int64_t[]){ 2 }, NULL, NULL);
    g_autoptr(GBytes) word = g_bytes_new_static("word", 4);
    hn_tensor_set_string(words, 1, word);
    g_autoptr(HnTensor) seq = list_of(HN_SEQUENCE, one, one), texts = list_of(HN_SEQUENCE, words, NULL),
                        none = list_of(HN_SEQUENCE, NULL, NULL), map = list_of(HN_MAP, ints, ints),
                        by_word = list_of(HN_MAP, words, words), maps = list_of(HN_SEQUENCE, map, map),
                        opt = list_of(HN_OPTIONAL, ints, NULL), opt_seq = list_of(HN_OPTIONAL, seq, NULL),
                        nothing = list_of(HN_OPTIONAL, NULL, NULL), nested = list_of(HN_SEQUENCE, seq, none);
    check_list(seq, HN_TYPE_SEQUENCE);
    check_list(texts, HN_TYPE_SEQUENCE);
    check_list(none, HN_TYPE_SEQUENCE);
    check_list(maps, HN_TYPE_SEQUENCE);
    check_list(nested, HN_TYPE_SEQUENCE);
    check_list(map, HN_TYPE_MAP);
    check_list(by_word, HN_TYPE_MAP);
    check_list(opt, HN_TYPE_OPTIONAL);
    check_list(opt_seq, HN_TYPE_OPTIONAL);
    check_list(nothing, HN_TYPE_OPTIONAL);
}

static void test_files(void)
{
    g_autofree char *folder = g_dir_make_tmp("hn-tensor-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "input_0.pb", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) t = hn_tensor_ints((const int64_t[]){ 4, 5, 6 }, 3);
    g_assert_true(hn_onnx_tensor_write(path, t, "x", &error));
    g_autoptr(HnTensor) again = hn_onnx_tensor_read(path, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(t, again));
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_null(hn_onnx_tensor_read(path, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_autofree char *want = g_strdup_printf("'%s' is empty", path);
    g_assert_cmpstr(error->message, ==, want);
    g_clear_error(&error);
    g_assert_cmpint(g_remove(path), ==, 0);
    g_assert_null(hn_onnx_tensor_read(path, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/onnx/tensor/raw", test_raw);
    g_test_add_func("/onnx/tensor/strings", test_strings);
    g_test_add_func("/onnx/tensor/lists", test_lists);
    g_test_add_func("/onnx/tensor/six-bits", test_six_bits);
    g_test_add_func("/onnx/tensor/refused", test_refused);
    g_test_add_func("/onnx/tensor/others", test_others);
    g_test_add_func("/onnx/tensor/values", test_values);
    g_test_add_func("/onnx/tensor/files", test_files);
    return g_test_run();
}
