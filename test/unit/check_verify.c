/*
 * The guard of hone-export: each way in which a candidate can be wrong, and what is not the candidate's fault.
 */
#include <math.h>

#include "cpu/core/cpu_backend.h"
#include "check/verify.h"
#include "ir/ir_text.h"

static const HnVerifyTolerance usual = { .rtol = NAN, .atol = NAN, .part = NAN };

static HnModel *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    return m;
}

/* Names of outputs that differ, with blanks between. */
static char *blamed(const HnVerified *found)
{
    GString *names = g_string_new(NULL);
    for (guint k = 0; k < found->n; k++)
        if (!found->row[k].equal)
            g_string_append_printf(names, "%s%s", names->len > 0 ? " " : "", found->row[k].name);
    return g_string_free(names, FALSE);
}

/* `candidate` beside `original` on made-up samples. TRUE: what is said of it is in *found, but for names of outputs. */
static gboolean verify(const char *original, const char *candidate, HnVerifyTolerance t, gsize memory,
                       HnVerified *found, char **names, GError **error)
{
    g_autoptr(HnBudget) budget = hn_budget_new(memory);
    const HnSamplesOptions o = {
        .backend = &hn_backend_ref, .threads = 1, .seed = 3, .budget = memory > 0 ? budget : NULL
    };
    g_autoptr(HnModel) a = parse(original), b = parse(candidate);
    g_autoptr(HnVerify) v = hn_verify_new(a, &o, error);
    g_assert_no_error(*error);
    g_assert_nonnull(v);
    hn_verify_tolerance(v, &t);
    const gboolean ok = hn_verify(v, b, &t, 0, found, error);
    *names = blamed(found);
    return ok;
}

static void same(const char *original, const char *candidate, HnVerifyTolerance t)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *names = NULL;
    HnVerified found;
    g_assert_true(verify(original, candidate, t, 0, &found, &names, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(found.why, ==, NULL);
    g_assert_true(found.equal);
    hn_verified_clear(&found);
}

/* The reason given contains `words`, and the outputs that are named, and no others, are to blame. */
static void differs(const char *original, const char *candidate, HnVerifyTolerance t, const char *words,
                    const char *outputs)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *names = NULL;
    HnVerified found;
    g_assert_true(verify(original, candidate, t, 0, &found, &names, &error));
    g_assert_no_error(error);
    g_assert_false(found.equal);
    g_assert_nonnull(found.why);
    if (strstr(found.why, words) == NULL)
        g_error("'%s' does not say '%s'", found.why, words);
    g_assert_cmpstr(names, ==, outputs);
    hn_verified_clear(&found);
}

#define HEAD "opset 17 graph g(%x:f32[N,12]) -> "

/* --- what is equal ------------------------------------------------------------------------------------------------ */

static void test_equal(void)
{
    same(HEAD "(%y) { %y = Mul(%x, k:f32={2}) }", HEAD "(%y) { %y = Add(%x, %x) }", usual);
    same(HEAD "(%y) { %y = Log(%x) }", HEAD "(%y) { %y = Log(%x) }", (HnVerifyTolerance){ 0 }); /* NaN equals NaN */
    /* a little off: within a thousandth of the element, or a ten thousandth of the largest one */
    same(HEAD "(%y) { %y = Identity(%x) }", HEAD "(%y) { %y = Mul(%x, k:f32={1.0009}) }", usual);
    same(HEAD "(%y) { %y = Identity(%x) }", HEAD "(%y) { %y = Add(%x, k:f32={0.0001}) }", usual);
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

static void test_values(void)
{
    differs(HEAD "(%y) { %y = Identity(%x) }", HEAD "(%y) { %y = Mul(%x, k:f32={1.01}) }", usual, "'y': ", "y");
    differs(HEAD "(%y, %z) { %y = Neg(%x) %z = Abs(%x) }", HEAD "(%y, %z) { %y = Neg(%x) %z = Relu(%x) }", usual,
            "'z': ", "z");
    differs(HEAD "(%y) { %y = Log(%x) }", HEAD "(%y) { %a = Abs(%x) %y = Log(%a) }", usual, "'y': ", "y"); /* no NaN */
    differs(HEAD "(%y) { %y = Abs(%x) }", HEAD "(%y) { %y = Sqrt(%x) }", usual, "'y': ", "y");
    differs(HEAD "(%y) { %y = Neg(%x) }", HEAD "(%y) { %y = Div(%x, k:f32={0}) }", usual, "'y': ", "y"); /* infinite */
}

/* An absolute tolerance is one, whatever the magnitudes. */
static void test_absolute(void)
{
    const HnVerifyTolerance tenth = { .rtol = 0, .atol = 0.1, .part = NAN };
    const char *large = HEAD "(%y) { %y = Mul(%x, k:f32={1000}) }";
    same(large, HEAD "(%y) { %1 = Mul(%x, k:f32={1000}) %y = Add(%1, d:f32={0.09}) }", tenth);
    differs(large, HEAD "(%y) { %1 = Mul(%x, k:f32={1000}) %y = Add(%1, d:f32={0.11}) }", tenth, "'y': ", "y");
    same(large, HEAD "(%y) { %1 = Mul(%x, k:f32={1000}) %y = Add(%1, d:f32={0.11}) }", usual);
}

/* Boxes in pixels beside scores below 1, along the last axis or in front: each is judged by its own size. */
#define BOXES(scores)                                                                        \
    "opset 17 graph g(%x:f32[1,32,6]) -> (%y) { %s = Sigmoid(%x) %b = Mul(%x, k:f32={640}) " \
    "%p, %u = Split(%s, n:i64[2]={2,4}) axis=2 %v, %q = Split(%b, n) axis=2 " scores " %y = Concat(%q, %z) axis=2 }"

static void test_kinds(void)
{
    const char *original = BOXES("%z = Identity(%p)");
    same(original, BOXES("%z = Mul(%p, l:f32={1.0005})"), usual);
    differs(original, BOXES("%z = Add(%p, l:f32={0.05})"), usual, "'y': ", "y"); /* 1/20000 of the largest box */
    differs(original, BOXES("%z = Mul(%p, l:f32={0})"), usual, "'y': ", "y");
    /* what conversions to halves may cost is of each kind, too */
    differs(original, BOXES("%z = Mul(%p, l:f32={0})"), (HnVerifyTolerance){ .part = 1e-2 }, "'y': ", "y");
    same(original, BOXES("%z = Mul(%p, l:f32={1.005})"), (HnVerifyTolerance){ .part = 1e-2 });
}

/* What stands for "none", far beyond all numbers, hides no error of these. */
#define MASKED(numbers) HEAD "(%y) { %m = Greater(%x, k:f32={0}) " numbers " %y = Where(%m, n:f32={-1000000000}, %v) }"

static void test_masks(void)
{
    const char *original = MASKED("%v = Identity(%x)");
    same(original, MASKED("%v = Mul(%x, l:f32={1.0005})"), usual);
    differs(original, MASKED("%v = Add(%x, l:f32={0.1})"), usual, "'y': ", "y");
    differs(original, MASKED("%v = Mul(%x, l:f32={0})"), usual, "'y': ", "y");
}

/* A model with halves is held against what they round, also where they are in a branch alone. */
static void test_halves(void)
{
    static const char of_halves[] = "opset 17 graph g(%x:f16[N,12]) -> (%y) { %y = ",
                      inside[] = "opset 17 graph g(%x:f32[N,12], %c:bool) -> (%y) { %y = If(%c) "
                                 "then_branch=graph() -> (%t) { %h = Cast(%x) to=10 %t = Cast(%h) to=1 } "
                                 "else_branch=graph() -> (%e) { %h2:f16[N,12] = Cast(%x) to=10 %e = Cast(%h2) to=1 } }",
                      outside[] = "opset 17 graph g(%x:f32[N,12], %c:bool) -> (%y) { %y = ";
    g_autofree char *a = g_strconcat(of_halves, "Identity(%x) }", NULL),
                    *near = g_strconcat(of_halves, "Mul(%x, k:f16={1.003}) }", NULL),
                    *far = g_strconcat(of_halves, "Mul(%x, k:f16={1.008}) }", NULL),
                    *b = g_strconcat(outside, "Mul(%x, k:f32={1.003}) }", NULL),
                    *c = g_strconcat(outside, "Mul(%x, k:f32={1.008}) }", NULL);
    same(a, near, usual);
    differs(a, far, usual, "'y': ", "y");
    same(inside, b, usual);
    differs(inside, c, usual, "'y': ", "y");
}

/* Angles from -pi to pi: a turn more or less is none, half of one is. */
#define ANGLES(numbers, last)                                                                          \
    "opset 17 graph g(%x:f32[1,40,20]) -> (%y) { %a = Mul(%x, k:f32={9}) " numbers                     \
    " %b = Add(%v, p:f32={3.1415927}) %d = Div(%b, q:f32={6.2831853}) %e = Floor(%d) %f = Mul(%e, q) " \
    "%c = Sub(%b, %f) %w = Sub(%c, p) " last " }"
#define SAME_ANGLES(numbers) ANGLES(numbers, "%y = Identity(%w)")

static void test_angles(void)
{
    const char *original = SAME_ANGLES("%v = Identity(%a)");
    same(original, SAME_ANGLES("%v = Add(%a, s:f32={0.0001})"), usual);
    differs(original, SAME_ANGLES("%v = Add(%a, s:f32={0.1})"), usual, "'y': ", "y");
    differs(original, SAME_ANGLES("%v = Add(%a, h:f32={3.1415927})"), usual, "'y': ", "y");
    same(original, ANGLES("%v = Identity(%a)", "%y = Add(%w, q)"), usual);
    differs(original, ANGLES("%v = Identity(%a)", "%y = Add(%w, t:f32={6})"), usual, "'y': ", "y");
}

/* Numbers that should cancel out are as far off as rounding in others leaves them, which is no reason. */
static void test_cancelled(void)
{
    same("opset 17 graph g(%x:f32[1,16,2]) -> (%y) { %a, %b = Split(%x) axis=2 %c = Sub(%a, %a) %y = Concat(%a, %c) "
         "axis=2 }",
         "opset 17 graph g(%x:f32[1,16,2]) -> (%y) { %a, %b = Split(%x) axis=2 %d = Mul(%a, k:f32={0.0000003}) "
         "%y = Concat(%a, %d) axis=2 }",
         usual);
    same("opset 17 graph g(%x:f32[1,64,2]) -> (%y) { %a, %b = Split(%x) axis=2 %c = Mul(%a, k:f32={0.00000001}) "
         "%y = Concat(%a, %c) axis=2 }",
         "opset 17 graph g(%x:f32[1,64,2]) -> (%y) { %a, %b = Split(%x) axis=2 %c = Mul(%a, k:f32={0.00000004}) "
         "%y = Concat(%a, %c) axis=2 }",
         usual);
}

/* What is told of a candidate: the worst of all outputs and samples, and the largest size of an output in any of them.
 */
static void test_told(void)
{
    g_autoptr(GError) error = NULL;
    static const char by_rows[] = HEAD "(%y) { %s = Shape(%x) %n = Gather(%s, i:i64={0}) %f = Cast(%n) to=1 "
                                       "%g = Pow(%f, e:f32={-4}) %y = Mul(%x, %g) }",
                      two[] = HEAD "(%y, %z) { %y = Neg(%x) %z = Neg(%x) }",
                      first[] = HEAD "(%y, %z) { %y = Mul(%x, k:f32={-1.01}) %z = Mul(%x, l:f32={-1.0001}) }";
    double scale[2], worst[2];
    const char *const both[] = { HEAD "(%y) { %y = Identity(%x) }", by_rows };
    for (int i = 0; i < 2; i++) {
        HnVerified found;
        g_autofree char *names = NULL;
        g_assert_true(verify(both[i], both[i], usual, 0, &found, &names, &error));
        scale[i] = found.row[0].scale;
        hn_verified_clear(&found);
    }
    g_assert_cmpfloat(scale[1], >, scale[0] / 8); /* of the sample of one row */
    const char *const candidate[] = { two, first };
    for (int i = 0; i < 2; i++) {
        HnVerified found;
        g_autofree char *names = NULL;
        g_assert_true(verify(two, candidate[i], usual, 0, &found, &names, &error));
        worst[i] = found.worst;
        hn_verified_clear(&found);
    }
    g_assert_cmpfloat(worst[0], ==, 0);
    g_assert_cmpfloat_with_epsilon(worst[1], 0.01, 0.001);
}

/* --- all else ----------------------------------------------------------------------------------------------------- */

/* The second made-up sample has two rows. */
static void test_second_sample(void)
{
    differs(HEAD "(%y) { %y = Identity(%x) }",
            HEAD "(%y) { %s = Shape(%x) %n = Gather(%s, i:i64={0}) %f = Cast(%n) to=1 %y = Mul(%x, %f) }", usual,
            "'y': ", "y");
}

static void test_integers(void)
{
    const HnVerifyTolerance loose = { .rtol = 1, .atol = 10, .part = 1 };
    const char *whole = HEAD "(%y) { %1 = Mul(%x, k:f32={1000}) %y = Cast(%1) to=7 }";
    same(whole, whole, usual);
    differs(whole, HEAD "(%y) { %1 = Mul(%x, k:f32={1000}) %2 = Cast(%1) to=7 %y = Add(%2, l:i64={1}) }", loose,
            "'y': ", "y");
    differs(HEAD "(%y) { %y = Greater(%x, k:f32={0}) }", HEAD "(%y) { %y = Less(%x, k:f32={0}) }", loose, "'y': ", "y");
    differs(HEAD "(%y) { %y = Cast(%x) to=7 }", HEAD "(%y) { %y = Cast(%x) to=6 }", loose, "instead of", "y");
    differs(HEAD "(%y) { %y = Cast(%x) to=7 }", HEAD "(%y) { %y = Floor(%x) }", loose, "instead of", "y");
}

static void test_shapes(void)
{
    const HnVerifyTolerance loose = { .rtol = 1, .atol = 10, .part = 1 };
    differs(HEAD "(%y) { %y = Neg(%x) }", HEAD "(%y) { %1 = Neg(%x) %y = Transpose(%1) }", loose, "instead of", "y");
    differs(HEAD "(%y) { %y = Neg(%x) }", HEAD "(%y) { %1 = Neg(%x) %y = Unsqueeze(%1, a:i64[1]={0}) }", loose,
            "instead of", "y");
    differs(HEAD "(%y, %z) { %y = Neg(%x) %z = Abs(%x) }", HEAD "(%y) { %y = Neg(%x) }", usual, "other outputs", "");
}

static void test_does_not_run(void)
{
    differs(HEAD "(%y) { %y = Neg(%x) }", HEAD "(%y) { %y = Reshape(%x, s:i64[1]={5}) }", usual, "does not run", "");
    differs(HEAD "(%y) { %y = Neg(%x) }", "opset 17 graph g(%x:f32[N,12], %w:f32[3]) -> (%y) { %y = Add(%x, %w) }",
            usual, "does not run", "");
}

/* A candidate that needs more memory than there is, is not known to be wrong. */
static void test_memory(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *names = NULL;
    HnVerified found;
    g_assert_false(verify(HEAD "(%y) { %y = Neg(%x) }",
                          HEAD "(%y) { %b = Expand(%x, s:i64[3]={200000,1,1}) %m = ReduceMean(%b) axes=[0] keepdims=0 "
                               "%y = Neg(%m) }",
                          usual, (gsize)4 << 20, &found, &names, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_null(found.row);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/verify/equal", test_equal);
    g_test_add_func("/verify/values", test_values);
    g_test_add_func("/verify/absolute", test_absolute);
    g_test_add_func("/verify/kinds", test_kinds);
    g_test_add_func("/verify/masks", test_masks);
    g_test_add_func("/verify/halves", test_halves);
    g_test_add_func("/verify/told", test_told);
    g_test_add_func("/verify/angles", test_angles);
    g_test_add_func("/verify/cancelled", test_cancelled);
    g_test_add_func("/verify/second-sample", test_second_sample);
    g_test_add_func("/verify/integers", test_integers);
    g_test_add_func("/verify/shapes", test_shapes);
    g_test_add_func("/verify/does-not-run", test_does_not_run);
    g_test_add_func("/verify/memory", test_memory);
    return g_test_run();
}
