/* data/npy, data/npz: headers of every kind, orders and types, cut and hostile files, archives written and read. */
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "data/npz.h"
#include "ir/ir_text.h"

static HnTensor *tensor(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_tensor_parse(&text, NULL, &error);
    g_assert_no_error(error);
    return t;
}

/* A .npy of this version, its header not padded. */
static GBytes *npy(int version, const char *header, gconstpointer data, gsize size)
{
    GByteArray *b = g_byte_array_new();
    guint n = (guint)strlen(header);
    guint8 start[12] = { 0x93, 'N',     'U',          'M',           'P',    'Y', (guint8)version,
                         0,    n & 255, n >> 8 & 255, n >> 16 & 255, n >> 24 };
    g_byte_array_append(b, start, version == 1 ? 10 : 12);
    g_byte_array_append(b, (const guint8 *)header, n);
    if (size)
        g_byte_array_append(b, data, (guint)size);
    return g_byte_array_free_to_bytes(b);
}

static void check_reads(int version, const char *header, gconstpointer data, gsize size, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = npy(version, header, data, size);
    g_autoptr(HnTensor) got = hn_npy_read_bytes(bytes, "x.npy", NULL, &error), want = tensor(text);
    g_assert_no_error(error);
    if (!hn_tensor_equal(got, want))
        g_error("%s: not %s", header, text);
}

static void check_refuses(int version, const char *header, gsize size, HnError code, const char *words)
{
    g_autoptr(GError) error = NULL;
    guint8 data[64] = { 9, 9, 9, 9, 9, 9 };
    g_autoptr(GBytes) bytes = npy(version, header, data, size);
    HnTensor *t = hn_npy_read_bytes(bytes, "x.npy", NULL, &error);
    g_assert_null(t);
    g_assert_error(error, HN_ERROR, (int)code);
    if (!strstr(error->message, "'x.npy") || !strstr(error->message, words))
        g_error("%s: %s", header, error->message);
}

static void test_headers(void)
{
    const float x[] = { 1, 2, 3, 4, 5, 6 };
    check_reads(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", x, 24, "f32[2,3]={1,2,3,4,5,6}");
    check_reads(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }   \n", x, 24, "f32[6]={1,2,3,4,5,6}");
    check_reads(3, "{\"shape\":(1L,),\"descr\":\"=f4\",\"fortran_order\":False}", x, 4, "f32[1]={1}");
    check_reads(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", x, 4, "f32[]={1}");
    check_reads(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, 3)}", x, 0, "f32[2,0,3]={}");
    check_reads(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", x, 24, "f32[2,3]={1,3,5,2,4,6}");
    check_reads(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3, 2)}", x, 24, "f32[1,3,2]={1,4,2,5,3,6}");
    check_reads(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4611686018427387904)}", x, 0,
                "f32[0,4611686018427387904]={}");
    check_reads(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", "\1\2\0\7", 4, "i16[2]={258,7}");
    check_reads(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}", "\x3f\x80\0\0\x40\0\0\0", 8,
                "c64[1]={1,2}");
    check_reads(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\1\0\1", 3, "bool[3]={1,0,1}");
    check_reads(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "\x80\1", 2, "u8[2]={128,1}");
    check_reads(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "\x80\x3f", 2, "bf16[1]={1}");
    check_reads(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", "\0\x3c", 2, "f16[1]={1}");
}

static void test_strings(void)
{
    static const char *const texts[] = { "string[2,2]={'a','','two','\xc3\xa4'}", "string[]={'x'}", "string[0]={}",
                                         "string[1]={''}" };
    check_reads(1, "{'descr': '<U2', 'fortran_order': False, 'shape': (2,)}", "a\0\0\0b\0\0\0\xe4\0\0\0\0\0\0\0", 16,
                "string[2]={'ab','\xc3\xa4'}");
    check_reads(1, "{'descr': '>U1', 'fortran_order': False, 'shape': (1,)}", "\0\0\0a", 4, "string[1]={'a'}");
    check_reads(1, "{'descr': '|S2', 'fortran_order': False, 'shape': (2,)}", "a\0bc", 4, "string[2]={'a','bc'}");
    check_reads(1, "{'descr': '|S1', 'fortran_order': True, 'shape': (2, 2)}", "abcd", 4,
                "string[2,2]={'a','c','b','d'}");
    check_reads(1, "{'descr': '|S0', 'fortran_order': False, 'shape': (2,)}", "", 0, "string[2]={'',''}");
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnTensor) t = tensor(texts[i]);
        g_autoptr(GBytes) file = hn_npy_text_file(t, NULL, &error);
        g_assert_no_error(error);
        g_autoptr(HnTensor) back = hn_npy_read_bytes(file, "x.npy", NULL, &error);
        g_assert_no_error(error);
        g_assert_true(hn_tensor_equal(back, t));
    }
}

/* What is no UTF-8 is written as bytes; a zero at the end would be lost. */
static void test_bytes(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) t = tensor("string[2]={'a','b'}");
    g_autoptr(GBytes) odd = g_bytes_new("\xff\0x", 3), zero = g_bytes_new("a", 2);
    hn_tensor_set_string(t, 1, odd);
    g_autoptr(GBytes) file = hn_npy_text_file(t, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) back = hn_npy_read_bytes(file, "x.npy", NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(back, t));
    hn_tensor_set_string(t, 0, zero);
    g_assert_null(hn_npy_text_file(t, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
}

static void test_refused(void)
{
    check_refuses(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23, HN_ERROR_FORMAT, "23 bytes");
    check_refuses(1, "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 16, HN_ERROR_UNSUPPORTED, "'|O'");
    check_refuses(1, "{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", 12, HN_ERROR_FORMAT, "character");
    check_refuses(1, "{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", 11, HN_ERROR_FORMAT, "11 bytes");
    check_refuses(1, "{'descr': '<U3x', 'fortran_order': False, 'shape': (1,)}", 12, HN_ERROR_UNSUPPORTED, "'<U3x'");
    check_refuses(1, "{'descr': '|S0', 'fortran_order': False, 'shape': (99999999,)}", 0, HN_ERROR_FORMAT, "large");
    check_refuses(1, "{'descr': '<U4611686018427387904', 'fortran_order': False, 'shape': (1,)}", 9,
                  HN_ERROR_UNSUPPORTED, "'<U4611686018427387904'");
    check_refuses(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, HN_ERROR_UNSUPPORTED,
                  "record");
    check_refuses(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", 1, HN_ERROR_FORMAT, "bool");
    check_refuses(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, HN_ERROR_UNSUPPORTED, "version 4");
    static const char *const malformed[] = {
        "",
        "{",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f4', 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr: '<f4'}",
        "{'a': 'b'}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(malformed); i++)
        check_refuses(1, malformed[i], 4, HN_ERROR_FORMAT, "header");
    check_refuses(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 4, HN_ERROR_FORMAT,
                  "too large");
    check_refuses(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2305843009213693952,)}", 4, HN_ERROR_FORMAT,
                  "");
    check_refuses(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (144115188075855871,)}", 4, HN_ERROR_FORMAT,
                  "cut");
    GString *deep = g_string_new("{'descr': '<f4', 'fortran_order': False, 'shape': (1");
    for (int i = 0; i < 40; i++)
        g_string_append(deep, ",1");
    g_string_append(deep, ")}");
    check_refuses(1, deep->str, 4, HN_ERROR_UNSUPPORTED, "dimensions");
    g_string_free(deep, TRUE);
}

/* Every beginning of a good file is refused, not read beyond. */
static void test_cut(void)
{
    const float x[] = { 1, 2 };
    g_autoptr(GBytes) whole = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", x, 8);
    gsize size = g_bytes_get_size(whole);
    for (gsize n = 0; n < size; n++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) part = g_bytes_new(g_bytes_get_data(whole, NULL), n);
        g_assert_null(hn_npy_read_bytes(part, "x.npy", NULL, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    }
}

static const char *const written[] = {
    "f32[2,3]={1,2,3,4,5,6}",
    "f64[]={0.5}",
    "f16[1]={2}",
    "bf16[2]={1,-2}",
    "i8[2]={-1,1}",
    "u8[1]={255}",
    "i16[1]={-7}",
    "u16[1]={65535}",
    "i32[1]={-5}",
    "u32[1]={5}",
    "i64[2]={-1,9}",
    "u64[1]={3}",
    "bool[2]={1,0}",
    "f32[3,0]={}",
};

static void test_write(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL), *path = g_build_filename(folder, "x.npy", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(written); i++) {
        g_autoptr(HnTensor) t = tensor(written[i]);
        g_autoptr(HnOutFile) out = hn_out_open(path, &error);
        g_assert_true(out && hn_npy_write(out, t, &error) && hn_out_commit(out, &error));
        g_assert_cmpuint((hn_out_tell(out) - t->bytes) % 64, ==, 0);
        g_autoptr(HnTensor) back = hn_npy_read(path, NULL, &error);
        g_assert_no_error(error);
        g_assert_true(hn_tensor_equal(back, t));
    }
    g_assert_null(hn_npy_header(HN_STRING, 0, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_clear_error(&error);
    g_assert_null(hn_npy_read("/nonexistent/x.npy", NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_unlink(path);
    g_rmdir(folder);
}

static GBytes *archive(HnTensor *const *tensors, const char *const *names, int n)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL), *path = g_build_filename(folder, "x.npz", NULL);
    g_assert_true(hn_npz_write(path, names, tensors, n, NULL, &error));
    g_assert_no_error(error);
    char *data;
    gsize size;
    g_assert_true(g_file_get_contents(path, &data, &size, NULL));
    g_unlink(path);
    g_rmdir(folder);
    return g_bytes_new_take(data, size);
}

static void test_npz(void)
{
    g_autoptr(GError) error = NULL;
    static const char *const names[] = { "a", "b/c:0", "s" };
    g_autoptr(HnTensor) a = tensor("f32[3,2]={1,2,3,4,5,6}"), b = tensor("i64[3]={7,8,9}"), s = tensor("f64[]={2}");
    HnTensor *const all[] = { a, b, s };
    g_autoptr(GBytes) bytes = archive(all, names, 3), again = archive(all, names, 3);
    g_assert_true(g_bytes_equal(bytes, again));

    g_autoptr(HnBudget) budget = hn_budget_new(100000);
    g_autoptr(HnNpz) z = hn_npz_open(bytes, "x.npz", budget, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_npz_count(z), ==, 3);
    g_assert_cmpint(hn_npz_find(z, "b/c:0"), ==, 1);
    g_assert_cmpint(hn_npz_find(z, "d"), ==, -1);
    for (int i = 0; i < 3; i++) {
        g_autoptr(HnTensor) t = hn_npz_read(z, i, &error);
        g_assert_no_error(error);
        g_assert_true(hn_tensor_equal(t, all[i]));
    }
    g_autoptr(HnTensor) rows = hn_npz_rows(z, 0, 1, 2, &error), want = tensor("f32[2,2]={3,4,5,6}");
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(rows, want));
    g_autoptr(HnTensor) none = hn_npz_rows(z, 0, 3, 0, &error);
    g_assert_no_error(error);
    g_assert_cmpint(none->n, ==, 0);
}

/* Rows are checked as well, by the first of them that is asked for, and so are the rows in front of it. */
static void test_npz_rows_damaged(void)
{
    static const char *const names[] = { "a" };
    g_autoptr(HnTensor) a = tensor("f32[3,2]={1,2,3,4,5,6}");
    HnTensor *const all[] = { a };
    g_autoptr(GBytes) bytes = archive(all, names, 1);
    gsize size, at = 0;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    while (memcmp(data + at, a->data, a->bytes) != 0)
        at++;
    for (gsize i = 0; i < a->bytes; i++) {
        g_autofree guint8 *copy = g_memdup2(data, size);
        copy[at + i] ^= 1;
        g_autoptr(GBytes) bad = g_bytes_new_static(copy, size);
        for (int64_t row = 0; row < 4; row++) {
            g_autoptr(GError) open_error = NULL, error = NULL;
            g_autoptr(HnNpz) z = hn_npz_open(bad, "x.npz", NULL, &open_error);
            g_assert_no_error(open_error);
            g_assert_null(hn_npz_rows(z, 0, row, row < 3, &error));
            g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
            g_assert_nonnull(strstr(error->message, "checksum"));
        }
    }
}

/* Rows of a stored array, in any order and more than once. */
static void test_npz_pieces(void)
{
    static const char *const names[] = { "a" };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) a = tensor("f32[5,2]={1,2,3,4,5,6,7,8,9,10}");
    HnTensor *const all[] = { a };
    g_autoptr(GBytes) bytes = archive(all, names, 1);
    g_autoptr(HnNpz) z = hn_npz_open(bytes, "x.npz", NULL, &error);
    g_autoptr(HnTensor) mixed = hn_npz_pieces(z, 0, (int64_t[]){ 4, 0, 1, 1 }, 4, 1, &error),
                        twos = hn_npz_pieces(z, 0, (int64_t[]){ 3, 0, 2 }, 3, 2, &error),
                        none = hn_npz_pieces(z, 0, (int64_t[]){ 3, 5 }, 2, 0, &error),
                        want = tensor("f32[4,2]={9,10,1,2,3,4,3,4}"),
                        want_twos = tensor("f32[6,2]={7,8,9,10,1,2,3,4,5,6,7,8}");
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(mixed, want) && hn_tensor_equal(twos, want_twos));
    g_assert_cmpint(none->n, ==, 0);
}

/* By NumPy: numbers 1 to 12 as [4,3], compressed: in C order, in Fortran order and big-endian. */
static const char compressed[] =
    "UEsDBBQAAAAIAAAAIQDqRq9TXgAAAJgAAAAFAAAAYy5ucHmb7BfqGxDJyFDGUK2eklqcXKRupaBuk2mkrqOgnpZfVFKUmBef"
    "X5SSChJ3S8wpTgWKF2ckFqQC+RomOgrGmjoKtQpkAy5GBiYGZgYWBlYGNgZ2Bg4GTgYuBm4GHgYAUEsDBBQAAAAIAAAAIQCL"
    "Q36ZXQAAAJgAAAAFAAAAZi5ucHmb7BfqGxDJyFDGUK2eklqcXKRupaBuk2mkrqOgnpZfVFKUmBefX5SSChIPKSpNBQoXZyQW"
    "pAK5GiY6CsaaOgq1CuQDLkYGFgZ2Bi4GJgZWBg4GbgZmBjYGTgYeBgBQSwMEFAAAAAgAAAAhAL6eBcleAAAAmAAAAAUAAABi"
    "Lm5weZvsF+obEMnIUMZQrZ6SWpxcpG6loG6XaaSuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GiY6CsaaOgq1CmQD"
    "LgZGBiYGZgYWBlYGNgZ2Bg4GTgYuBm4GHgBQSwECFAMUAAAACAAAACEA6kavU14AAACYAAAABQAAAAAAAAAAAAAAgAEAAAAA"
    "Yy5ucHlQSwECFAMUAAAACAAAACEAi0N+mV0AAACYAAAABQAAAAAAAAAAAAAAgAGBAAAAZi5ucHlQSwECFAMUAAAACAAAACEA"
    "vp4FyV4AAACYAAAABQAAAAAAAAAAAAAAgAEBAQAAYi5ucHlQSwUGAAAAAAMAAwCZAAAAggEAAAAA";

static void test_npz_compressed(void)
{
    g_autoptr(GError) error = NULL;
    gsize size;
    guchar *data = g_base64_decode(compressed, &size);
    g_autoptr(GBytes) bytes = g_bytes_new_take(data, size);
    g_autoptr(HnNpz) z = hn_npz_open(bytes, "x.npz", NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) all = tensor("i16[4,3]={1,2,3,4,5,6,7,8,9,10,11,12}"),
                        some = tensor("i16[2,3]={10,11,12,4,5,6}");
    for (int i = 0; i < 3; i++)
        for (int again = 0; again < 2; again++) { /* the first use unpacks */
            g_autoptr(HnTensor) pieces = hn_npz_pieces(z, i, (int64_t[]){ 3, 1 }, 2, 1, &error),
                                whole = hn_npz_read(z, i, &error);
            g_assert_no_error(error);
            g_assert_true(hn_tensor_equal(pieces, some) && hn_tensor_equal(whole, all));
        }
}

/* Names that would be paths are none in the archive, stay apart, and are found again. */
static void test_npz_names(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *longest = g_strnfill(70000, 'a'), *longer = g_strnfill(70001, 'a');
    const char *const names[] = { "../../x",  "/var/x", "..",       ".",    "a\\b", "a/b",   "a%2Fb", "a_b",
                                  "\xc3\xa4", "a\xffg", "\xff\xff", "\xc3", "a\nb", longest, longer };
    HnTensor *all[G_N_ELEMENTS(names)];
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *text = g_strdup_printf("i64[1]={%zu}", i);
        all[i] = tensor(text);
    }
    g_autoptr(GBytes) bytes = archive(all, names, G_N_ELEMENTS(names));
    g_autoptr(HnNpz) z = hn_npz_open(bytes, "x.npz", NULL, &error);
    g_assert_no_error(error);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *name = hn_npz_array(z, (int)i)->name;
        g_assert_null(strpbrk(name, "/\\\n"));
        g_assert_cmpint(name[0], !=, '.');
        g_assert_cmpuint(strlen(name), <=, 200);
        g_assert_true(g_utf8_validate(name, -1, NULL));
        g_assert_cmpint(hn_npz_find(z, name), ==, (int)i);
        if (strcmp(names[i], "a%2Fb") != 0) /* which is how 'a/b' is written: found as that */
            g_assert_cmpint(hn_npz_find(z, names[i]), ==, (int)i);
        hn_tensor_unref(all[i]);
    }
    g_assert_cmpstr(hn_npz_array(z, 0)->name, ==, "%2E.%2F..%2Fx");
    g_assert_cmpstr(hn_npz_array(z, 8)->name, ==, "\xc3\xa4");
}

/* No cut, flipped byte or limit leads to anything but an error or a tensor. */
static void test_npz_damaged(void)
{
    static const char *const names[] = { "a" };
    g_autoptr(HnTensor) a = tensor("f32[3,2]={1,2,3,4,5,6}");
    HnTensor *const all[] = { a };
    g_autoptr(GBytes) bytes = archive(all, names, 1);
    gsize size;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    for (gsize i = 0; i < 2 * size; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree guint8 *copy = g_memdup2(data, size);
        if (i >= size)
            copy[i - size] ^= 0xff;
        g_autoptr(GBytes) bad = g_bytes_new_static(copy, i < size ? i : size);
        g_autoptr(HnNpz) z = hn_npz_open(bad, "x.npz", NULL, &error);
        HnTensor *t = z ? hn_npz_read(z, 0, &error) : NULL;
        g_assert_true(!t == (error != NULL));
        if (i < size)
            g_assert_null(t);
        else if (t) {
            g_assert_true(hn_tensor_equal(t, a)); /* what was flipped does not matter: a date */
            hn_tensor_unref(t);
        }
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) small = hn_budget_new(8);
    g_autoptr(HnNpz) z = hn_npz_open(bytes, "x.npz", small, &error);
    g_assert_no_error(error);
    g_assert_null(hn_npz_read(z, 0, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/data/npy/headers", test_headers);
    g_test_add_func("/data/npy/strings", test_strings);
    g_test_add_func("/data/npy/bytes", test_bytes);
    g_test_add_func("/data/npy/refused", test_refused);
    g_test_add_func("/data/npy/cut", test_cut);
    g_test_add_func("/data/npy/write", test_write);
    g_test_add_func("/data/npz", test_npz);
    g_test_add_func("/data/npz/damaged", test_npz_damaged);
    g_test_add_func("/data/npz/rows-damaged", test_npz_rows_damaged);
    g_test_add_func("/data/npz/pieces", test_npz_pieces);
    g_test_add_func("/data/npz/compressed", test_npz_compressed);
    g_test_add_func("/data/npz/names", test_npz_names);
    return g_test_run();
}
