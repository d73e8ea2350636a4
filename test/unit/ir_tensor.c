/* ir/tensor, ir/type: sizes, views, conversions of every element type, strings, sparse tensors. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/ir_text.h"
#include "ir/sparse.h"

static void test_count(void)
{
    int64_t n = -5;
    g_assert_true(hn_dims_count(0, NULL, &n));
    g_assert_cmpint(n, ==, 1);
    g_assert_true(hn_dims_count(3, (int64_t[]){ 2, 0, 5 }, &n));
    g_assert_cmpint(n, ==, 0);
    g_assert_false(hn_dims_count(2, (int64_t[]){ 2, -1 }, &n));
    g_assert_false(hn_dims_count(2, (int64_t[]){ INT64_MAX, 2 }, &n));
    g_assert_false(hn_dims_count(3, (int64_t[]){ 0, INT64_MAX, 2 }, &n)); /* strides would overflow */
    g_assert_cmpint(n, ==, 0);

    g_autoptr(GError) error = NULL;
    g_assert_null(hn_tensor_new(HN_F32, 2, (int64_t[]){ 1LL << 40, 1LL << 40 }, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
    g_clear_error(&error);
    g_assert_null(hn_tensor_new(HN_F64, 1, (int64_t[]){ INT64_MAX / 4 }, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
    g_clear_error(&error);
    g_assert_null(hn_tensor_new(HN_UNDEFINED, 0, NULL, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
    g_clear_error(&error);
    g_autoptr(HnBudget) budget = hn_budget_new(1000);
    g_assert_null(hn_tensor_new(HN_F32, 1, (int64_t[]){ 1000 }, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_clear_error(&error);
    HnTensor *t = hn_tensor_new(HN_I4, 1, (int64_t[]){ 5 }, budget, &error);
    g_assert_cmpuint(t->bytes, ==, 3);
    g_assert_cmpuint(hn_budget_used(budget), ==, 3);
    hn_tensor_unref(t);
    t = hn_tensor_new(HN_F32, 2, (int64_t[]){ 0, 7 }, NULL, &error);
    g_assert_nonnull(t->data);
    g_assert_cmpint(t->n, ==, 0);
    hn_tensor_unref(t);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

static void test_bytes(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    gpointer block = hn_budget_alloc(NULL, 64, NULL);
    for (int i = 0; i < 64; i++)
        ((guint8 *)block)[i] = (guint8)i;
    g_autoptr(GBytes) bytes = hn_budget_bytes(NULL, block, 64);

    HnTensor *t = hn_tensor_new_bytes(HN_I32, 1, (int64_t[]){ 3 }, bytes, 8, budget, &error);
    g_assert_true(t->data == (guint8 *)block + 8);
    g_assert_cmpuint(hn_budget_count(budget), ==, 0);
    g_assert_cmpint(hn_tensor_get_i64(t, 0), ==, 0x0b0a0908);
    HnTensor *r = hn_tensor_reshaped(t, 2, (int64_t[]){ 3, 1 });
    hn_tensor_unref(t);
    g_assert_cmpint(hn_tensor_get_i64(r, 2), ==, 0x13121110);
    hn_tensor_unref(r);

    t = hn_tensor_new_bytes(HN_I32, 1, (int64_t[]){ 3 }, bytes, 9, budget, &error); /* misaligned: copied */
    g_assert_cmpuint(hn_budget_used(budget), ==, 12);
    g_assert_cmpint(hn_tensor_get_i64(t, 0), ==, 0x0c0b0a09);
    r = hn_tensor_reshaped(t, 0 + 1, (int64_t[]){ 3 });
    hn_tensor_unref(t);
    g_assert_true(hn_tensor_equal(r, r));
    hn_tensor_unref(r);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);

    g_assert_null(hn_tensor_new_bytes(HN_F32, 2, (int64_t[]){ 2, 2 }, bytes, 52, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_cmpstr(error->message, ==, "tensor f32[2,2] needs 16 bytes but holds 12");
    g_clear_error(&error);
    g_assert_null(hn_tensor_new_bytes(HN_F32, 1, (int64_t[]){ 1 }, bytes, G_MAXSIZE, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_clear_error(&error);
    g_autoptr(GBytes) none = g_bytes_new(NULL, 0);
    t = hn_tensor_new_bytes(HN_F32, 1, (int64_t[]){ 0 }, none, 0, budget, &error);
    g_assert_nonnull(t->data);
    hn_tensor_unref(t);
}

static void test_elements(void)
{
    for (int d = 1; d < HN_DTYPE_COUNT; d++) {
        if (d == HN_STRING)
            continue;
        HnTensor *t = hn_tensor_new((HnDtype)d, 1, (int64_t[]){ 5 }, NULL, NULL);
        for (int i = 0; i < 5; i++)
            hn_tensor_set_f64(t, i, 1);
        hn_tensor_set_i64(t, 3, d == HN_BOOL ? 0 : 2);
        double two = d == HN_BOOL ? 0 : d == HN_I2 ? -2 : 2; /* 2 bits wrap */
        for (int i = 0; i < 5; i++)
            if (hn_tensor_get_f64(t, i) != (i == 3 ? two : 1))
                g_error("element %d of %s is %g", i, hn_dtype_name((HnDtype)d), hn_tensor_get_f64(t, i));
        g_assert_cmpint(hn_tensor_get_i64(t, 3), ==, (int64_t)two);
        g_autoptr(HnTensor) copy = hn_tensor_copy(t, NULL, NULL);
        g_assert_true(hn_tensor_equal(copy, t));
        hn_tensor_set_i64(copy, 4, 0);
        g_assert_true(!hn_tensor_equal(copy, t) || d == HN_F8E8M0);
        hn_tensor_unref(t);
    }
}

static void test_rounding(void)
{
    g_autoptr(HnTensor) i8 = hn_tensor_new(HN_I8, 0, NULL, NULL, NULL),
                        u64 = hn_tensor_new(HN_U64, 0, NULL, NULL, NULL),
                        bf = hn_tensor_new(HN_BF16, 0, NULL, NULL, NULL), f = hn_tensor_scalar_f32(0),
                        i = hn_tensor_scalar_i64(0);
    hn_tensor_set_i64(i8, 0, 300);
    g_assert_cmpint(hn_tensor_get_i64(i8, 0), ==, 44);
    hn_tensor_set_f64(i8, 0, -1.9);
    g_assert_cmpint(hn_tensor_get_i64(i8, 0), ==, -1);
    hn_tensor_set_i64(u64, 0, -1);
    g_assert_cmpint(hn_tensor_get_i64(u64, 0), ==, INT64_MAX);
    g_assert_cmpfloat(hn_tensor_get_f64(u64, 0), ==, 0x1p64);
    hn_tensor_set_f64(u64, 0, 0x1.8p63);
    g_assert_cmpfloat(hn_tensor_get_f64(u64, 0), ==, 0x1.8p63);
    hn_tensor_set_f64(i, 0, NAN);
    g_assert_cmpint(hn_tensor_get_i64(i, 0), ==, 0);
    hn_tensor_set_f64(i, 0, -INFINITY);
    g_assert_cmpint(hn_tensor_get_i64(i, 0), ==, INT64_MIN);
    hn_tensor_set_f64(f, 0, 1e30);
    g_assert_cmpint(hn_tensor_get_i64(f, 0), ==, INT64_MAX);
    hn_tensor_set_i64(bf, 0, (1LL << 62) + (1LL << 54) + 1); /* just above a midpoint: up, though f64 drops the 1 */
    g_assert_cmpfloat(hn_tensor_get_f64(bf, 0), ==, 0x1.02p62);
    hn_tensor_set_i64(bf, 0, (1LL << 62) + (1LL << 54));
    g_assert_cmpfloat(hn_tensor_get_f64(bf, 0), ==, 0x1p62);
    for (int d = HN_F6E2M3; d <= HN_F6E3M2; d++) {
        g_autoptr(HnTensor) six = hn_tensor_new((HnDtype)d, 1, (int64_t[]){ 5 }, NULL, NULL);
        g_assert_cmpuint(six->bytes, ==, 4);
        for (int k = 0; k < 5; k++)
            hn_tensor_set_f64(six, k, k == 4 ? -100 : k * 0.5);
        for (int k = 0; k < 4; k++)
            g_assert_cmpfloat(hn_tensor_get_f64(six, k), ==, k * 0.5);
        g_assert_cmpfloat(hn_tensor_get_f64(six, 4), ==, d == HN_F6E2M3 ? -7.5 : -28);
        hn_tensor_set_f64(six, 2, 0);
        g_assert_cmpfloat(hn_tensor_get_f64(six, 1), ==, 0.5);
        g_assert_cmpfloat(hn_tensor_get_f64(six, 3), ==, 1.5);
    }
    g_autofree char *text = hn_tensor_describe(bf);
    g_assert_cmpstr(text, ==, "bf16[]");
}

static void test_strings(void)
{
    HnTensor *t = hn_tensor_new_uninit(HN_STRING, 1, (int64_t[]){ 3 }, NULL, NULL);
    g_autoptr(GBytes) s = g_bytes_new("a\0b", 3);
    g_assert_cmpuint(g_bytes_get_size(hn_tensor_get_string(t, 0)), ==, 0);
    hn_tensor_set_string(t, 1, s);
    hn_tensor_set_string(t, 1, s);
    HnTensor *c = hn_tensor_copy(t, NULL, NULL), *r = hn_tensor_reshaped(t, 2, (int64_t[]){ 1, 3 });
    g_assert_true(hn_tensor_equal(t, c));
    hn_tensor_set_string(c, 2, s);
    g_assert_false(hn_tensor_equal(t, c));
    hn_tensor_unref(t);
    hn_tensor_unref(c);
    g_assert_true(g_bytes_equal(hn_tensor_get_string(r, 1), s));
    hn_tensor_unref(r);
}

static HnSparse *sparse(HnTensor *values, HnTensor *indices, int64_t a, int64_t b)
{
    HnSparse *s = g_new0(HnSparse, 1);
    s->values = values;
    s->indices = indices;
    s->ndim = 2;
    s->dims = g_new(int64_t, 2);
    s->dims[0] = a;
    s->dims[1] = b;
    return s;
}

static void test_sparse(void)
{
    g_autoptr(GError) error = NULL;
    HnSparse *s = sparse(hn_tensor_ints((int64_t[]){ 7, 8 }, 2), hn_tensor_ints((int64_t[]){ 1, 5 }, 2), 2, 3);
    g_autoptr(HnTensor) t = hn_sparse_dense(s, NULL, &error), want = NULL;
    g_assert_no_error(error);
    want = hn_tensor_new(HN_I64, 2, (int64_t[]){ 2, 3 }, NULL, NULL);
    hn_tensor_set_i64(want, 1, 7);
    hn_tensor_set_i64(want, 5, 8);
    g_assert_true(hn_tensor_equal(t, want));
    hn_tensor_set_i64(s->indices, 1, 6);
    g_assert_null(hn_sparse_dense(s, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_clear_error(&error);

    HnTensor *pairs = hn_tensor_new(HN_I64, 2, (int64_t[]){ 2, 2 }, NULL, NULL);
    hn_tensor_set_i64(pairs, 1, 1);
    hn_tensor_set_i64(pairs, 2, 1);
    hn_tensor_set_i64(pairs, 3, 2);
    hn_tensor_unref(s->indices);
    s->indices = pairs;
    g_autoptr(HnTensor) again = hn_sparse_dense(s, NULL, &error);
    g_assert_true(hn_tensor_equal(again, want));
    hn_tensor_set_i64(pairs, 1, 3); /* column 3 of 3 */
    g_assert_null(hn_sparse_dense(s, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_clear_error(&error);
    s->dims[0] = -1;
    g_assert_null(hn_sparse_dense(s, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    hn_sparse_free(s);
    hn_sparse_free(NULL);
}

/* What is mostly 0 becomes indices and values, and the same tensor of these. */
static void test_sparse_of(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) t = hn_tensor_new(HN_F32, 2, (const int64_t[]){ 40, 50 }, NULL, NULL);
    float *x = t->data;
    for (int64_t i = 0; i < t->n; i += 10)
        x[i] = (float)(i + 1);
    x[7] = -0.0F; /* has bits */
    HnSparse *s = hn_sparse_of(t, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(s->values->n, ==, 201);
    g_assert_cmpint(s->indices->stored, ==, HN_STORED_TYPED);
    g_assert_cmpint(hn_tensor_get_i64(s->indices, 1), ==, 7);
    g_autoptr(HnTensor) again = hn_sparse_dense(s, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpmem(again->data, again->bytes, t->data, t->bytes);
    hn_sparse_free(s);
    for (int64_t i = 0; i < t->n; i++)
        x[i] = i % 4 != 0 ? 1 : x[i];
    g_assert_null(hn_sparse_of(t, NULL, &error)); /* no shorter */
    g_autoptr(HnTensor) zeros = hn_tensor_new(HN_F32, 1, (const int64_t[]){ 100 }, NULL, NULL);
    g_assert_null(hn_sparse_of(zeros, NULL, &error)); /* too short */
    g_assert_no_error(error);
}

/* A few indices of a huge tensor stay what they are. */
static void test_store(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m =
        hn_model_parse("opset 17\n%y = Gemm(%x:f32[N,64], w:f32[64,64], b:sparse[64](f32[32],i64[32]="
                       "{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
                       "29,30,31}))\n%z = Add(%y, c:sparse[100000,64](f32[1]={1},i64[1]={2}))\n",
                       NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_has_sparse(m));
    g_assert_cmpint(hn_model_store_dense(m, NULL, &error), ==, 1);
    g_assert_nonnull(hn_graph_find(m->graph, "b")->weight);
    g_assert_nonnull(hn_graph_find(m->graph, "c")->sparse);
    g_assert_cmpint(hn_model_store_sparse(m, NULL, &error), ==, 0);
    g_assert_no_error(error);
}

static void test_types(void)
{
    HnDim dims[] = { hn_dim_symbol("N"), hn_dim(3), hn_dim_unknown() };
    g_autoptr(HnType) a = hn_type_tensor(HN_F32, 3, dims), b = hn_type_tensor(HN_F32, 3, dims),
                      c = hn_type_fixed(HN_I64, 2, (int64_t[]){ 2, 3 }), d = hn_type_tensor(HN_F16, -1, NULL);
    int64_t fixed[HN_MAX_RANK] = { 0 };
    g_assert_true(hn_type_equal(a, b)); /* the same text, not the same size */
    g_assert_false(hn_type_equal(a, c));
    g_assert_false(hn_type_equal(a, NULL));
    g_assert_false(hn_type_is_fixed(a, fixed));
    g_assert_false(hn_type_is_fixed(d, fixed));
    g_assert_false(hn_type_is_fixed(NULL, NULL));
    g_assert_true(hn_type_is_fixed(c, fixed));
    g_assert_cmpint(fixed[1], ==, 3);
    g_autofree char *ta = hn_type_describe(a), *td = hn_type_describe(d);
    g_assert_cmpstr(ta, ==, "f32[N,3,?]");
    g_assert_cmpstr(td, ==, "f16[...]");
    HnType *seq = hn_type_tensor(HN_UNDEFINED, 0, NULL);
    seq->kind = HN_TYPE_SEQUENCE;
    seq->elem = hn_type_ref(c);
    g_autofree char *ts = hn_type_describe(seq);
    g_assert_cmpstr(ts, ==, "seq(i64[2,3])");
    hn_type_unref(seq);
    b->denotations = g_new0(char *, 3);
    b->denotations[1] = g_strdup("DATA_CHANNEL");
    g_assert_false(hn_type_equal(a, b));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ir/tensor/count", test_count);
    g_test_add_func("/ir/tensor/bytes", test_bytes);
    g_test_add_func("/ir/tensor/elements", test_elements);
    g_test_add_func("/ir/tensor/rounding", test_rounding);
    g_test_add_func("/ir/tensor/strings", test_strings);
    g_test_add_func("/ir/tensor/sparse", test_sparse);
    g_test_add_func("/ir/tensor/sparse-of", test_sparse_of);
    g_test_add_func("/ir/tensor/store", test_store);
    g_test_add_func("/ir/type/types", test_types);
    return g_test_run();
}
