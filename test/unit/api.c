/* hone.h as somebody else's program uses it. */
#include "api/hone.h"

#include <string.h>

#include "onnx/onnx.h"
#include "run_model.h"

static HoneStatus open_text(const char *text, const HoneOptions *o, HoneModel **m)
{
    g_autoptr(HnModel) graph = test_model(text);
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(graph, NULL, NULL);
    return hone_open_bytes(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), NULL, o, m);
}

static void check_said(const char *word)
{
    if (strstr(hone_error(), word) == NULL) {
        g_test_message("'%s' does not speak of '%s'", hone_error(), word);
        g_test_fail();
    }
}

#define SUM "opset 17 graph g(%x:f32[N,2], %b:f32[2]) -> (%y) { %y = Add(%x, %b) }"

static void test_ports(void)
{
    HoneModel *m;
    g_assert_cmpint(open_text(SUM, NULL, &m), ==, HONE_OK);
    g_assert_cmpuint(hone_n_inputs(m), ==, 2);
    g_assert_cmpuint(hone_n_outputs(m), ==, 1);
    const HonePort *x = hone_input(m, 0);
    g_assert_cmpstr(x->name, ==, "x");
    g_assert_cmpint(x->type, ==, HONE_F32);
    g_assert_cmpint(x->rank, ==, 2);
    g_assert_cmpint(x->dims[0], ==, -1);
    g_assert_cmpstr(x->symbols[0], ==, "N");
    g_assert_cmpint(x->dims[1], ==, 2);
    g_assert_null(x->symbols[1]);
    g_assert_cmpstr(hone_output(m, 0)->name, ==, "y");
    g_assert_null(hone_input(m, 2));
    g_assert_null(hone_output(m, 1));
    hone_close(m);
}

/* Two shapes, an address that is odd, and a session that outlives its model. */
static void test_run_twice(void)
{
    HoneModel *m;
    HoneSession *s;
    g_assert_cmpint(open_text(SUM, &(HoneOptions){ .size = sizeof(HoneOptions), .threads = 1 }, &m), ==, HONE_OK);
    g_assert_cmpint(hone_session_new(m, &s), ==, HONE_OK);
    hone_close(m);
    const float x[] = { 1, 2, 3, 4 }, b[] = { 10, 20 };
    char odd[sizeof b + 1];
    memcpy(odd + 1, b, sizeof b);
    for (int64_t rows = 2; rows >= 1; rows--) {
        HoneTensor in[] = { { HONE_F32, 2, (int64_t[]){ rows, 2 }, x, (size_t)rows * 8 },
                            { HONE_F32, 1, (int64_t[]){ 2 }, odd + 1, sizeof b } };
        HoneTensor y;
        g_assert_cmpint(hone_run(s, in, &y), ==, HONE_OK);
        g_assert_cmpint(y.type, ==, HONE_F32);
        g_assert_cmpint(y.rank, ==, 2);
        g_assert_cmpint(y.dims[0], ==, rows);
        g_assert_cmpuint(y.bytes, ==, (size_t)rows * 8);
        for (int64_t i = 0; i < 2 * rows; i++)
            g_assert_cmpfloat(((const float *)y.data)[i], ==, x[i] + b[i % 2]);
    }
    hone_session_free(s);
}

static void test_texts(void)
{
    HoneModel *m;
    HoneSession *s;
    g_assert_cmpint(
        open_text("opset 21 graph g(%x:string[2], %z:string[1]) -> (%y) { %y = StringConcat(%x, %z) }", NULL, &m), ==,
        HONE_OK);
    g_assert_cmpint(hone_session_new(m, &s), ==, HONE_OK);
    const char *x[] = { "a", "" }, *z[] = { "b" };
    HoneTensor in[] = { { HONE_STRING, 1, (int64_t[]){ 2 }, x, sizeof x },
                        { HONE_STRING, 1, (int64_t[]){ 1 }, z, sizeof z } };
    HoneTensor y;
    g_assert_cmpint(hone_run(s, in, &y), ==, HONE_OK);
    g_assert_cmpuint(y.bytes, ==, 2 * sizeof(char *));
    g_assert_cmpstr(((const char *const *)y.data)[0], ==, "ab");
    g_assert_cmpstr(((const char *const *)y.data)[1], ==, "b");
    hone_session_free(s);
    hone_close(m);
}

static void test_bad_inputs(void)
{
    HoneModel *m;
    HoneSession *s;
    g_assert_cmpint(open_text(SUM, NULL, &m), ==, HONE_OK);
    g_assert_cmpint(hone_session_new(m, &s), ==, HONE_OK);
    const float x[4] = { 0 };
    const HoneTensor right = { HONE_F32, 1, (int64_t[]){ 2 }, x, 8 };
    const struct {
        HoneTensor x;
        HoneStatus status;
        const char *word;
    } bad[] = {
        { { HONE_F32, 2, (int64_t[]){ 2, 2 }, x, 12 }, HONE_USAGE, "needs 16" },
        { { HONE_F32, 2, (int64_t[]){ 2, 2 }, NULL, 16 }, HONE_USAGE, "0 bytes" },
        { { HONE_F32, 2, (int64_t[]){ -2, 2 }, x, 16 }, HONE_USAGE, "negative" },
        { { HONE_F32, 2, (int64_t[]){ INT64_MAX, 2 }, x, 16 }, HONE_USAGE, "large" },
        { { HONE_F32, 33, (int64_t[]){ 1 }, x, 16 }, HONE_USAGE, "rank" },
        { { HONE_F32, 2, NULL, x, 16 }, HONE_USAGE, "dimensions" },
        { { (HoneType)77, 2, (int64_t[]){ 2, 2 }, x, 16 }, HONE_USAGE, "type" },
        { { HONE_I32, 2, (int64_t[]){ 2, 2 }, x, 16 }, HONE_INVALID, "'x'" },
        { { HONE_F32, 2, (int64_t[]){ 1, 3 }, x, 12 }, HONE_INVALID, "'x'" },
        { { HONE_NONE, 0, NULL, NULL, 0 }, HONE_INVALID, "'x'" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        HoneTensor y, in[] = { bad[i].x, right };
        g_assert_cmpint(hone_run(s, in, &y), ==, bad[i].status);
        check_said(bad[i].word);
    }
    hone_session_free(s);
    hone_close(m);
}

static void test_bad_models(void)
{
    HoneModel *m = (HoneModel *)&m;
    g_assert_cmpint(hone_open("no/such.onnx", NULL, &m), ==, HONE_INVALID);
    g_assert_null(m);
    check_said("no/such.onnx");
    g_assert_cmpint(hone_open_bytes("x", 1, NULL, NULL, &m), ==, HONE_INVALID);
    g_assert_cmpint(hone_open(NULL, NULL, &m), ==, HONE_USAGE);
    g_assert_cmpint(open_text("opset 17 graph g(%x:f32[1]) -> (%y) { %y = NoSuchThing(%x) }", NULL, &m), ==,
                    HONE_UNSUPPORTED);
    check_said("NoSuchThing");
    HoneOptions o = { .size = sizeof o, .device = "gpu" };
    g_assert_cmpint(open_text(SUM, &o, &m), ==, HONE_USAGE);
    check_said("'gpu'");
    o = (HoneOptions){ .size = sizeof o, .memory_limit = 10 };
    g_assert_cmpint(open_text(SUM, &o, &m), ==, HONE_BUDGET);
    o = (HoneOptions){ .size = 0, .device = "gpu" }; /* a version that has no field but size */
    g_assert_cmpint(open_text(SUM, &o, &m), ==, HONE_OK);
    hone_close(m);
    hone_close(NULL);
    hone_session_free(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/ports", test_ports);
    g_test_add_func("/api/run", test_run_twice);
    g_test_add_func("/api/texts", test_texts);
    g_test_add_func("/api/bad-inputs", test_bad_inputs);
    g_test_add_func("/api/bad-models", test_bad_models);
    return g_test_run();
}
