/* check/compare, check/metric: tolerance, NaN and infinities, cosines, the place of the worst difference, top-k. */
#include <math.h>

#include "base/error.h"
#include "check/tensor_diff.h"
#include "check/metric.h"
#include "ir/ir_text.h"

static const HnTolerance exact = { .rtol = 0, .atol = 0, .min_cos = NAN };

static HnTensor *tensor(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_tensor_parse(&text, NULL, &error);
    g_assert_no_error(error);
    return t;
}

static HnDiff compare(const char *got, const char *want, HnTolerance tolerance, const char *said)
{
    g_autoptr(HnTensor) a = tensor(got), b = tensor(want);
    HnDiff d;
    if (hn_compare(a, b, &tolerance, &d) != (said == NULL))
        g_error("%s and %s: equal is %d", got, want, d.equal);
    g_assert_cmpint(d.equal, ==, said == NULL);
    if (said) {
        g_autofree char *text = hn_diff_describe(&d, a, b, &tolerance);
        g_assert_cmpstr(text, ==, said);
    }
    return d;
}

static void test_tolerance(void)
{
    HnTolerance t = { .rtol = 0.1, .atol = 1, .min_cos = NAN };
    HnDiff d = compare("f32[2]={12,0}", "f32[2]={10,1}", t, NULL);
    g_assert_cmpint(d.n, ==, 2);
    g_assert_cmpfloat(d.max_abs, ==, 2);
    g_assert_cmpfloat(d.max_rel, ==, 1);
    d = compare("f32[2,2]={0,0,12.5,5}", "f32[2,2]={0,0,10,5}", t,
                "1 of 4 elements differ, most at [1,0]: 12.5 instead of 10");
    g_assert_cmpint(d.n_wrong, ==, 1);
    g_assert_cmpint(d.worst, ==, 2);
    compare("f32[]={1}", "f32[]={2}", exact, "1 of 1 elements differ, most at []: 1 instead of 2");
    compare("f32[0]={}", "f32[0]={}", exact, NULL);
    compare("f16[1]={1}", "f16[1]={1}", exact, NULL);
    compare("bool[2]={1,0}", "bool[2]={1,1}", exact, "1 of 2 elements differ, most at [1]: 0 instead of 1");
    compare("i4[3]={-1,2,3}", "i4[3]={-1,2,3}", exact, NULL);
    compare("c64[2]={1,2,3,4}", "c64[2]={1,2,3,5}", exact, "1 of 4 elements differ, most at [1]: 4 instead of 5");
    t.rtol = INFINITY;
    compare("f32[2]={1,5}", "f32[2]={0,1}", t, NULL);
}

static void test_types(void)
{
    HnDiff d = compare("f32[2]={1,2}", "f64[2]={1,2}", exact, "f32[2] instead of f64[2]");
    g_assert_true(isnan(d.max_abs) && d.same_shape && !d.same_type);
    compare("f32[2]={1,2}", "f32[2,1]={1,2}", exact, "f32[2] instead of f32[2,1]");
    compare("f32[1]={1}", "f32[]={1}", (HnTolerance){ .rtol = 1, .atol = 1, .min_cos = -1 }, "f32[1] instead of f32[]");
}

static void test_special(void)
{
    HnTolerance t = { .rtol = 1e-3, .atol = 1e9, .min_cos = NAN };
    compare("f32[3]={nan,inf,-inf}", "f32[3]={nan,inf,-inf}", exact, NULL);
    compare("f32[1]={nan}", "f32[1]={1}", t, "1 of 1 elements differ, most at [0]: nan instead of 1");
    compare("f32[1]={inf}", "f32[1]={-inf}", t, "1 of 1 elements differ, most at [0]: inf instead of -inf");
    compare("f32[1]={1}", "f32[1]={inf}", t, "1 of 1 elements differ, most at [0]: 1 instead of inf");
    compare("f32[1]={-0}", "f32[1]={0}", exact, NULL);
}

static void test_long(void)
{
    HnDiff d = compare("i64[1]={9223372036854775807}", "i64[1]={9223372036854775806}", exact,
                       "1 of 1 elements differ, most at [0]: 9.22337204e+18 instead of 9.22337204e+18");
    g_assert_cmpfloat(d.max_abs, ==, 1);
    d = compare("i64[1]={-9223372036854775808}", "i64[1]={9223372036854775807}",
                (HnTolerance){ .rtol = 2.1, .atol = 0, .min_cos = NAN }, NULL);
    g_assert_cmpfloat(d.max_abs, ==, 0x1p64);
    compare("u64[1]={18446744073709551615}", "u64[1]={18446744073709551615}", exact, NULL);
}

static void test_cosine(void)
{
    HnTolerance t = { .rtol = 0, .atol = 0, .min_cos = 0.99 };
    HnDiff d = compare("f32[2]={1,1}", "f32[2]={2,2}", t, NULL);
    g_assert_cmpfloat_with_epsilon(d.cos, 1, 1e-12);
    d = compare("f32[2]={1,0}", "f32[2]={0,1}", t, "its cosine is 0, below 0.99");
    compare("f32[2]={0,0}", "f32[2]={0,0}", t, NULL);
    compare("f32[2]={0,0}", "f32[2]={0,1}", t, "its cosine is 0, below 0.99");
    compare("f32[2]={nan,1}", "f32[2]={nan,1}", t, NULL);
    compare("f32[2]={nan,1}", "f32[2]={1,1}", t, "its cosine is nan, below 0.99");
    compare("f32[0]={}", "f32[0]={}", t, NULL);
}

static void topk(const char *scores, const char *labels, int k, int64_t right, int64_t total)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) s = tensor(scores), l = tensor(labels);
    int64_t r = 0, n = 0;
    g_assert_true(hn_metric_topk(s, l, k, &r, &n, &error));
    g_assert_no_error(error);
    g_assert_cmpint(r, ==, right);
    g_assert_cmpint(n, ==, total);
}

static void test_metric(void)
{
    g_autoptr(GError) error = NULL;
    int k = 0;
    g_assert_true(hn_metric_parse("top5", &k, &error));
    g_assert_cmpint(k, ==, 5);
    g_assert_false(hn_metric_parse("top0", &k, NULL) || hn_metric_parse("f1", &k, NULL));
    g_assert_false(hn_metric_parse("top", &k, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    topk("f32[2,3]={1,3,2,9,8,7}", "i64[2]={1,2}", 1, 1, 2);
    topk("f32[2,3]={1,3,2,9,8,7}", "i64[2,1]={1,2}", 3, 2, 2);
    topk("f32[1,3]={1,1,0}", "u8[1]={1}", 1, 0, 1); /* the first of equals */
    topk("f32[1,3]={nan,1,0}", "i32[1]={1}", 1, 1, 1);
    topk("f32[1,3]={nan,nan,nan}", "i32[1]={0}", 3, 0, 1);
    topk("f32[1,3]={1,1,0}", "i32[1]={7}", 3, 0, 1); /* no such class */
    g_autoptr(HnTensor) s = tensor("f32[2,3]={1,3,2,9,8,7}"), l = tensor("i64[3]={1,2,0}"), f = tensor("f32[2]={1,2}");
    int64_t r = 0, n = 0;
    g_assert_false(hn_metric_topk(s, l, 1, &r, &n, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
    g_clear_error(&error);
    g_assert_false(hn_metric_topk(s, f, 1, &r, &n, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_TYPE);
}

/* Numbers of two float types: what differs is told by its place, not by the types. */
static void test_numbers(void)
{
    g_autoptr(HnTensor) half = tensor("f16[3]={1,2,4}"), single = tensor("f32[3]={1,2,3}"),
                        other = tensor("f32[2]={1,2}");
    const HnTolerance loose = { .rtol = 0.5, .atol = 0, .min_cos = NAN };
    HnDiff d;
    g_assert_true(hn_compare_numbers(half, single, &loose, &d));
    g_assert_false(hn_compare_numbers(half, single, &exact, &d));
    g_autofree char *place = hn_diff_describe(&d, half, single, &exact);
    g_assert_cmpstr(place, ==, "1 of 3 elements differ, most at [2]: 4 instead of 3");
    g_assert_false(hn_compare_numbers(half, other, &exact, &d));
    g_autofree char *shape = hn_diff_describe(&d, half, other, &exact);
    g_assert_cmpstr(shape, ==, "f16[3] instead of f32[2]");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/compare/tolerance", test_tolerance);
    g_test_add_func("/check/compare/types", test_types);
    g_test_add_func("/check/compare/special", test_special);
    g_test_add_func("/check/compare/long", test_long);
    g_test_add_func("/check/compare/cosine", test_cosine);
    g_test_add_func("/check/compare/numbers", test_numbers);
    g_test_add_func("/check/metric", test_metric);
    return g_test_run();
}
