/* Factors that a tool moved between layers: in and out of the metadata, onto tensors and back. */
#include <glib.h>

#include "check/factors.h"
#include "check/recipe.h"

static HnTensor *counted(void)
{
    HnTensor *t = hn_tensor_new(HN_F32, 3, (const int64_t[]){ 2, 3, 2 }, NULL, NULL);
    for (int i = 0; i < 12; i++)
        ((float *)t->data)[i] = (float)(i + 1);
    return t;
}

static void test_metadata(void)
{
    g_autoptr(HnModel) m = hn_model_new();
    g_autoptr(HnFactors) f = hn_factors_read(m);
    const double some[] = { 2, 0.5, 1 }, ones[] = { 1, 1 }, others[] = { 3, 1, 4 };
    hn_factors_write(f, m);
    g_assert_null(hn_model_metadata(m, HN_UNITS));
    hn_factors_add(f, "b\"", 1, some, 3);
    hn_factors_add(f, "one", 0, ones, 2);
    hn_factors_add(f, "a", 1, some, 3);
    hn_factors_add(f, "c", 1, others, 3);
    hn_factors_add(f, "c", 1, some, 3);
    hn_factors_write(f, m);
    g_assert_cmpstr(hn_model_metadata(m, HN_UNITS), ==,
                    "[{\"tensors\":[\"b\\\"\",\"a\"],\"axis\":1,\"factors\":[2,0.5,1]},"
                    "{\"tensors\":[\"c\"],\"axis\":1,\"factors\":[6,0.5,4]}]");
    g_autoptr(HnFactors) again = hn_factors_read(m);
    g_assert_true(hn_factors_has(again, "a") && hn_factors_has(again, "b\"") && hn_factors_has(again, "c"));
    g_assert_false(hn_factors_has(again, "one"));
    hn_factors_add(again, "less", 0, (const double[]){ 1, 0.5 }, 2);
    g_assert_true(hn_factors_has(again, "less"));
}

static void test_tensors(void)
{
    g_autoptr(HnModel) m = hn_model_new();
    hn_model_set_metadata(m, HN_UNITS, "[{\"tensors\":[\"a\"],\"axis\":1,\"factors\":[2,0.5,1]}]");
    g_autoptr(HnFactors) f = hn_factors_read(m);
    g_autoptr(HnTensor) t = counted();
    g_autoptr(HnTensor) there = hn_factors_apply(f, "a", t, FALSE, NULL, NULL);
    const float want[] = { 2, 4, 1.5f, 2, 5, 6, 14, 16, 4.5f, 5, 11, 12 };
    for (int i = 0; i < 12; i++)
        g_assert_cmpfloat(((const float *)there->data)[i], ==, want[i]);
    g_autoptr(HnTensor) back = hn_factors_apply(f, "a", there, TRUE, NULL, NULL);
    g_assert_true(hn_tensor_equal(back, t) && back != t);
    g_autoptr(HnTensor) same = hn_factors_apply(f, "b", t, FALSE, NULL, NULL);
    g_assert_true(same == t);
    /* other channels, another type */
    g_autoptr(HnTensor) flat = hn_tensor_new(HN_F32, 2, (const int64_t[]){ 3, 2 }, NULL, NULL);
    g_autoptr(HnTensor) bytes = hn_tensor_new(HN_U8, 3, (const int64_t[]){ 2, 3, 2 }, NULL, NULL);
    g_assert_null(hn_factors_apply(f, "a", flat, FALSE, NULL, NULL));
    g_assert_null(hn_factors_apply(f, "a", bytes, FALSE, NULL, NULL));
}

/* Somebody else's text. */
static void test_hostile(void)
{
    static const char *const texts[] = { "",
                                         "{}",
                                         "[3,\"a\",null]",
                                         "[{\"tensors\":[\"a\"]}]",
                                         "[{\"tensors\":\"a\",\"axis\":1,\"factors\":[2]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":-1,\"factors\":[2]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":99,\"factors\":[2]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":0,\"factors\":[2,0]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":0,\"factors\":[-2]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":0,\"factors\":[1e999]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":0,\"factors\":[\"2\"]}]",
                                         "[{\"tensors\":[\"a\"],\"axis\":0,\"factors\":[]}]",
                                         "[{\"tensors\":[[\"a\"],3],\"axis\":0,\"factors\":[2]}]" };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(HnModel) m = hn_model_new();
        hn_model_set_metadata(m, HN_UNITS, texts[i]);
        g_autoptr(HnFactors) f = hn_factors_read(m);
        g_assert_false(hn_factors_has(f, "a"));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/factors/metadata", test_metadata);
    g_test_add_func("/check/factors/tensors", test_tensors);
    g_test_add_func("/check/factors/hostile", test_hostile);
    return g_test_run();
}
