/*
 * Models with constant weights of few bits on the CPU backend: which nodes do without their numbers, and that results
 * are those of ref.
 */
#include <string.h>

#include "cpu/gemm/wq_kernel.h"
#include "run_model.h"

#define W8 "%w = DequantizeLinear(q:i8[96,180], s:f32[180], z:i8[180]) axis=1 "
#define W4 "%w = DequantizeLinear(q:u4[96,180], s:f32[3,180], z:u4[3,180]) axis=0 block_size=32 "
#define X "opset 21 graph g(%x:f32[5,96]) -> (%y) { "

typedef struct {
    int products, rows, others;
    gsize packed;
    double error; /* the largest that a kernel tells */
} Found;

static void look(const HnStep *s, int depth, gpointer data)
{
    Found *f = data;
    (void)depth;
    const char *name = s->op != NULL && s->kernel != NULL ? s->op->name : "";
    if (strcmp(name, "WeightMatMul") == 0) {
        f->products++;
        const double error = s->kernel->error(s);
        f->error = MAX(f->error, error);
    }
    f->rows += strcmp(name, "WeightGather") == 0;
    f->others += strcmp(name, "WeightGather") != 0 && strcmp(name, "WeightMatMul") != 0;
}

static Found found(const char *text, gboolean strict_math, GPtrArray **out)
{
    Found f = { 0 };
    HnSessionStats stats;
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) s =
        test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .strict_math = strict_math });
    g_autoptr(GPtrArray) in = test_inputs(s, 71);
    g_autoptr(GPtrArray) results = test_run(s, in);
    if (out != NULL)
        *out = test_copies(results);
    hn_session_foreach_step(s, look, &f);
    hn_session_stats(s, &stats);
    f.packed = stats.packed_bytes;
    return f;
}

/* Sums of up to some hundred products of numbers up to 1 and 49; that many steps of each kind. */
static void check(const char *text, int products, int rows, int others)
{
    for (int threads = 1; threads <= 2; threads++) {
        const TestCount c = test_preferring(NULL, text, threads, 1e-4, 2e-2);
        g_assert_cmpint(c.ref, ==, 0);
    }
    const Found f = found(text, FALSE, NULL);
    g_assert_cmpfloat(f.error, <=, 1e-4);
    if (f.products != products || f.rows != rows || f.others != others) {
        g_test_message("%d products, %d of rows, %d other steps: %s", f.products, f.rows, f.others, text);
        g_test_fail();
    }
}

/* Many rows of weights that stay in the cache as numbers are multiplied by these where integers are slower. */
static void check_rows(const char *text, int rows, int bits)
{
    const gboolean few = hn_wq_is_few(rows, bits);
    check(text, few ? 1 : 0, 0, few ? 0 : 1);
}

static void test_matmul(void)
{
    check(X W8 "%y = MatMul(%x, %w) }", 1, 0, 0);
    check(X W4 "%y = MatMul(%x, %w) }", 1, 0, 0);
    check(X "%w = DequantizeLinear(q:u8[96,180], s:f32={0.5}, z:u8={3}) %y = MatMul(%x, %w) }", 1, 0, 0);
    check(X "%w = DequantizeLinear(q:i4[96,180], s:f32[2,180]) axis=0 block_size=64 %y = MatMul(%x, %w) }", 1, 0, 0);
    check("opset 21 graph g(%x:f32[96]) -> (%y) { " W8 "%y = MatMul(%x, %w) }", 1, 0, 0);
    check_rows("opset 21 graph g(%x:f32[2,3,7,96]) -> (%y) { " W4 "%y = MatMul(%x, %w) }", 42, 4);
    check_rows("opset 21 graph g(%x:f32[300,96]) -> (%y) { " W4 "%y = MatMul(%x, %w) }", 300, 4);
    check("opset 21 graph g(%x:f32[99,40]) -> (%y) { %w = DequantizeLinear(q:i8[40,60], s:f32[60]) axis=1 "
          "%y = MatMul(%x, %w) }",
          0, 0, 1); /* so few weights, of so many rows */
    check_rows("opset 21 graph g(%x:f32[99,96]) -> (%y) { " W8 "%m = MatMul(%x, %w) %y = Add(%m, b:f32[180]) }", 99, 8);
}

/* A one-hot matrix picks rows, which are unpacked once: no product is left. */
static void test_lookup(void)
{
    check("opset 21 graph g(%i:i64[40,1]) -> (%y) { %w = DequantizeLinear(q:i8[8,2160], s:f32[2160]) axis=1 "
          "%e = Equal(%i, r:i64[8]={0,1,2,3,4,5,6,7}) %x = Cast(%e) to=1 %y = MatMul(%x, %w) }",
          0, 0, 1);
}

static void test_gemm(void)
{
    check(X W8 "%y = Gemm(%x, %w, b:f32[180]) }", 1, 0, 0);
    check(X "%w = DequantizeLinear(q:i8[180,96], s:f32[180]) axis=0 %y = Gemm(%x, %w, b:f32[180]) transB=1 }", 1, 0, 0);
    check(X "%w = DequantizeLinear(q:i4[180,96], s:f32[180,3], z:i4[180,3]) axis=-1 block_size=32 "
            "%y = Gemm(%x, %w) transB=1 }",
          1, 0, 0);
    check(X W8 "%y = Gemm(%x, %w, b:f32[180]) alpha=0.5 }", 0, 0, 1);
}

/* Weights that are moved before they are read. */
static void test_moved(void)
{
    check(X
          "%v = DequantizeLinear(q:i8[180,96], s:f32[180]) axis=0 %w = Transpose(%v) perm=[1,0] %y = MatMul(%x, %w) }",
          1, 0, 0);
    check(X "%v = DequantizeLinear(q:u4[180,96], s:f32[180,3]) axis=1 block_size=32 %u = Transpose(%v) "
            "%w = Transpose(%u) %y = Gemm(%x, %w) transB=1 }",
          1, 0, 0);
    check(X "%v = DequantizeLinear(q:i8[180,96,1,1], s:f32[180]) axis=0 %u = Reshape(%v, n:i64[2]={180,96}) "
            "%y = Gemm(%x, %u) transB=1 }",
          1, 0, 0);
    /* not as a matrix: numbers, once and for all */
    check(X "%v = DequantizeLinear(q:i8[90,192], s:f32[90]) axis=0 %u = Reshape(%v, n:i64[2]={180,96}) "
            "%y = Gemm(%x, %u) transB=1 }",
          0, 0, 1);
    check("opset 21 graph g(%x:f32[1,7,30,8]) -> (%y) { %v = DequantizeLinear(q:i8[6,3,3,7], s:f32[6]) axis=0 "
          "%w = Transpose(%v) perm=[0,3,1,2] %y = Conv(%x, %w) }",
          0, 0, 1);
}

static void test_conv(void)
{
    check("opset 21 graph g(%x:f32[2,96,1,1]) -> (%y) { %w = DequantizeLinear(q:i8[180,96,1,1], s:f32[180]) axis=0 "
          "%c = Conv(%x, %w, b:f32[180]) %y = Relu(%c) }",
          1, 0, 0);
    check("opset 21 graph g(%x:f32[2,96,1,1]) -> (%y) { %w = DequantizeLinear(q:i4[180,96,1,1], s:f32[180,3,1,1]) "
          "axis=1 block_size=32 %c = Conv(%x, %w) %y = Mul(%c, m:f32[1,180,1,1]) }",
          1, 0, 0);
}

/* Scales that are not the columns' own, or not those of blocks of a sum. */
static void test_other_scales(void)
{
    check(X "%w = DequantizeLinear(q:i8[96,180], s:f32[96]) axis=0 %y = MatMul(%x, %w) }", 0, 0, 1);
    check(X "%w = DequantizeLinear(q:i8[96,180], s:f32[96,18]) axis=1 block_size=10 %y = MatMul(%x, %w) }", 0, 0, 1);
    check(X "%w = DequantizeLinear(q:i4[96,180], s:f32[24,180]) axis=0 block_size=4 %y = MatMul(%x, %w) }", 0, 0, 1);
}

/* What follows is computed along; a bias of its own node is one. */
static void test_along(void)
{
    check(X W8 "%m = MatMul(%x, %w) %a = Add(%m, b:f32[180]) %y = Relu(%a) }", 1, 0, 0);
    check_rows("opset 21 graph g(%x:f32[40,96]) -> (%y) { " W4
               "%m = MatMul(%x, %w) %a = Add(b:f32[180], %m) %g = Sigmoid(%a) %y = Mul(%a, %g) }",
               40, 4);
    check("opset 21 graph g(%x:f32[5,96], %r:f32[5,180]) -> (%y) { " W8
          "%m = MatMul(%x, %w) %k = Mul(%m, c:f32={0.25}) %y = Add(%k, %r) }",
          1, 0, 0);
}

/* Rows of a table; the same table as the last product's weights. */
static void test_rows(void)
{
    check("opset 21 graph g(%i:i64[2,3]) -> (%y) { %t = DequantizeLinear(q:i8[40,96], s:f32[40]) axis=0 "
          "%y = Gather(%t, %i) }",
          0, 1, 0);
    check("opset 21 graph g(%i:i64[2,3]) -> (%y) { %t = DequantizeLinear(q:u4[40,96], s:f32[40,3], z:u4[40,3]) axis=1 "
          "block_size=32 %e = Gather(%t, %i) %w = Transpose(%t) %y = MatMul(%e, %w) }",
          1, 1, 0);
    check("opset 21 graph g(%i:i32[3]) -> (%y) { %t = DequantizeLinear(q:i8[40,96], s:f32={2}) "
          "%y = Gather(%t, %i) axis=1 }",
          0, 0, 1);
}

/* A model of f32 has four bytes for each weight where these have one, or a half and an eighth for the scales. */
static void test_memory(void)
{
    const gsize n = 96 * 180;
    const Found w8 = found(X W8 "%y = MatMul(%x, %w) }", FALSE, NULL),
                w4 = found(X W4 "%y = MatMul(%x, %w) }", FALSE, NULL);
    g_assert_cmpuint(w8.packed, >=, n);
    g_assert_cmpuint(w8.packed, <, 2 * n);
    g_assert_cmpuint(w4.packed, >=, n / 2);
    g_assert_cmpuint(w4.packed, <, n);
}

/* The same weights in two places are packed once. */
static void test_shared(void)
{
    const Found one = found(X W8 "%y = MatMul(%x, %w) }", FALSE, NULL);
    const Found two = found("opset 21 graph g(%x:f32[5,96], %v:f32[3,96]) -> (%y, %u) { " W8
                            "%y = MatMul(%x, %w) %u = MatMul(%v, %w) }",
                            FALSE, NULL);
    g_assert_cmpint(two.products, ==, 2);
    g_assert_cmpuint(one.packed, ==, two.packed);
}

/* Asked for what operators say term by term, products round nothing but what f32 does. */
static void test_strict_math(void)
{
    const char *const text = X W4 "%y = MatMul(%x, %w) }";
    g_autoptr(GPtrArray) strict = NULL;
    g_autoptr(GPtrArray) fast = NULL;
    const Found f = found(text, TRUE, &strict);
    g_assert_cmpint(f.products, ==, 1);
    g_assert_cmpfloat(f.error, <, 1e-6);
    g_assert_cmpfloat(found(text, FALSE, &fast).error, >, 1e-6);
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(ref, 71);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    test_assert_close(strict->pdata[0], want->pdata[0], 1e-6, 1e-4, "strict");
    test_assert_close(fast->pdata[0], want->pdata[0], 1e-4, 2e-2, "fast");
}

/* Plans for other shapes find what is packed: the weights of few bits, and numbers that were needed after all. */
static void test_shapes(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 21 graph g(%x:f32[N,7,9,8]) -> (%y) { %v = DequantizeLinear(k:i8[96,7,3,3], "
        "l:f32[96]) axis=0 %c = Conv(%x, %v) %r = GlobalAveragePool(%c) %f = Flatten(%r) " W8 "%y = MatMul(%f, %w) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    HnSessionStats one = { 0 }, two = { 0 };
    for (int64_t n = 1; n <= 2; n++) {
        g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
        g_ptr_array_add(in, test_random(HN_F32, 4, (const int64_t[]){ n, 7, 9, 8 }, 3));
        g_autoptr(GPtrArray) out = test_run(s, in);
        hn_session_stats(s, n == 1 ? &one : &two);
    }
    g_assert_cmpuint(one.plans, ==, 1);
    g_assert_cmpuint(two.plans, ==, 2);
    g_assert_cmpuint(one.packed_bytes, ==, two.packed_bytes);
}

/* Weights that a branch keeps for itself, and such that it shares. */
static void test_branches(void)
{
    const char *const text =
        "opset 21 graph g(%x:f32[5,96]) -> (%y) { %m = ReduceMax(%x) keepdims=0 %c = Cast(%m) to=9 "
        "%y = If(%c) then_branch=graph a() -> (%p) { %v = DequantizeLinear(q:i8[96,180], s:f32[180]) axis=1 "
        "%p = MatMul(%x, %v) } else_branch=graph b() -> (%e) { %e = MatMul(%x, o:f32[96,180]) } }";
    (void)test_preferring(NULL, text, 1, 1e-4, 2e-2);
    g_assert_cmpint(found(text, FALSE, NULL).products, ==, 1);
}

/* Branches read weights that the graph around them unpacks, perhaps turned round: too many bytes to be made ahead. */
static void test_captured(void)
{
    const struct {
        const char *made, *add;
    } c[] = {
        { "%w = DequantizeLinear(q:i8[600,700], s:f32[700]) axis=1 ", "" },
        { "%v = DequantizeLinear(q:i8[700,600], s:f32[700]) axis=0 %w = Transpose(%v) perm=[1,0] ", "" },
        { "%w = DequantizeLinear(q:i8[600,700], s:f32[700]) axis=1 ", "%o = ReduceMax(%w) " },
    };
    for (guint i = 0; i < G_N_ELEMENTS(c); i++) {
        g_autofree char *text = g_strdup_printf(
            "opset 21 graph g(%%x:f32[5,600]) -> (%%y%s) { %s%s%%m = ReduceMax(%%x) keepdims=0 %%c = Cast(%%m) to=9 "
            "%%y = If(%%c) then_branch=graph a() -> (%%p) { %%p = MatMul(%%x, %%w) } "
            "else_branch=graph b() -> (%%e) { %%e = MatMul(%%x, o:f32[600,700]) } }",
            c[i].add[0] != '\0' ? ", %o" : "", c[i].made, c[i].add);
        (void)test_preferring(NULL, text, 1, 1e-4, 5e-2);
        g_assert_cmpint(found(text, FALSE, NULL).products, ==, 1);
    }
}

static void test_null(void)
{
    g_autoptr(HnModel) m = test_model(X W4 "%y = MatMul(%x, %w) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_null, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GPtrArray) out = test_run(s, in);
    Found f = { 0 };
    hn_session_foreach_step(s, look, &f);
    g_assert_cmpint(f.products, ==, 0);
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/weights/matmul", test_matmul);
    g_test_add_func("/weights/lookup", test_lookup);
    g_test_add_func("/weights/gemm", test_gemm);
    g_test_add_func("/weights/moved", test_moved);
    g_test_add_func("/weights/conv", test_conv);
    g_test_add_func("/weights/other_scales", test_other_scales);
    g_test_add_func("/weights/along", test_along);
    g_test_add_func("/weights/rows", test_rows);
    g_test_add_func("/weights/memory", test_memory);
    g_test_add_func("/weights/shared", test_shared);
    g_test_add_func("/weights/strict_math", test_strict_math);
    g_test_add_func("/weights/shapes", test_shapes);
    g_test_add_func("/weights/branches", test_branches);
    g_test_add_func("/weights/captured", test_captured);
    g_test_add_func("/weights/null", test_null);
    return g_test_run();
}
