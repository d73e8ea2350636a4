/* data: sizes of dimensions that a model leaves open, and what follows from them in made-up samples. */
#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "data/open_sizes.h"
#include "ir/ir_text.h"

static HnModel *model(const char *graph)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("opset 17\ngraph main%s\n", graph);
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    return m;
}

/* Sample 0 of random data with these --shapes (NULL: none). */
static HnSample *sample(HnModel *m, const char *given)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnShapes) shapes = hn_shapes_new();
    g_assert_true(given == NULL || hn_shapes_parse(shapes, given, &error));
    const HnDataOptions o = { .shapes = shapes, .seed = 1 };
    g_autoptr(HnData) d =
        hn_data_open("random", (HnValue *const *)m->graph->inputs->pdata, (int)m->graph->inputs->len, &o, &error);
    g_assert_no_error(error);
    HnSample *s = hn_data_load(d, 0, &error);
    g_assert_no_error(error);
    return s;
}

static void expect(HnModel *m, const char *given, int input, const char *type)
{
    g_autoptr(HnSample) s = sample(m, given);
    g_autofree char *text = hn_tensor_describe(s->in[input]);
    g_assert_cmpstr(text, ==, type);
}

#define WINDOW "(%x:f32[N,1,W]) -> (%y:f32[...]) {\n  %y = Conv(%x, w:f32[1,1,30])\n}"
#define SQUARE "(%x:f32[?,1,?,?]) -> (%y:f32[...]) {\n  %y = Conv(%x, w:f32[1,1,3,3])\n}"

static void test_fits(void)
{
    g_autoptr(HnModel) plain = model("(%x:f32[N,W]) -> (%y:f32[...]) {\n  %y = Relu(%x)\n}");
    expect(plain, NULL, 0, "f32[1,1]");
    g_autoptr(HnModel) window = model(WINDOW);
    expect(window, NULL, 0, "f32[1,1,32]");
    expect(window, "x:2x1x40", 0, "f32[2,1,40]");
    expect(window, "x:2x1x5", 0, "f32[2,1,5]"); /* what was chosen stays, right or wrong */
    g_autoptr(HnModel) square = model(SQUARE);
    expect(square, NULL, 0, "f32[1,1,8,8]");
}

/* The state has the size of the batch, although windows have not: its other sizes are known. */
static void test_states(void)
{
    g_autoptr(HnModel) m = model("(%x:f32[?,1,?], %state:f32[2,?,4]) -> (%y:f32[?,1,?], %stateN:f32[2,?,4]) {\n"
                                 "  %y = Conv(%x, w:f32[1,1,30])\n  %stateN = Relu(%state)\n}");
    expect(m, NULL, 0, "f32[1,1,32]");
    expect(m, NULL, 1, "f32[2,1,4]");
}

/* A size that follows from no shape: nothing is changed, and the run will say what is wrong. */
static void test_never(void)
{
    g_autoptr(HnModel) m = model("(%x:f32[N,W]) -> (%y:f32[...]) {\n  %a = Reshape(%x, s:i64[2]={7,0})\n  %y = "
                                 "MatMul(%a, w:f32[0,3])\n}");
    expect(m, NULL, 0, "f32[1,1]");
}

static void test_given(void)
{
    g_autoptr(HnModel) m = model("(%x:f32[N,1,W], %w:f32[1,1,K]) -> (%y:f32[...]) {\n  %y = Conv(%x, %w)\n}");
    HnValue *const *in = (HnValue *const *)m->graph->inputs->pdata;
    const int64_t dims[] = { 1, 1, 9 };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) w = hn_tensor_new(HN_F32, 3, dims, NULL, NULL);
    HnTensor *const given[] = { NULL, w };
    g_autoptr(HnData) d = hn_data_open("random", in, 2, &(HnDataOptions){ .given = given }, &error);
    g_assert_no_error(error);
    g_autoptr(HnSample) s = hn_data_load(d, 0, &error);
    g_assert_no_error(error);
    g_assert_cmpint(s->in[0]->dims[2], ==, 16);
    g_assert_cmpint(s->in[1]->dims[2], ==, 9);
}

/* Lengths of sequences are those of the input that holds them. */
static void test_lengths(void)
{
    g_autoptr(HnModel) m = model("(%x:f32[N,T,4], %x_lens:i64[N], %length:i32[], %balance:i64[N,2]) -> () {\n}");
    g_autoptr(HnSample) s = sample(m, "x:3x50x4,x_lens:3,length:,balance:3x2");
    for (int i = 0; i < 3; i++)
        g_assert_cmpint(hn_tensor_get_i64(s->in[1], i), ==, 50);
    g_assert_cmpint(hn_tensor_get_i64(s->in[2], 0), ==, 50);
    for (int i = 0; i < 6; i++)
        g_assert_cmpint(hn_tensor_get_i64(s->in[3], i), <=, 9);
}

static void test_explain(void)
{
    g_autoptr(HnModel) m = model(WINDOW);
    HnValue *const *in = (HnValue *const *)m->graph->inputs->pdata;
    g_autoptr(GError) error = NULL;
    g_autoptr(HnData) d = hn_data_open("random", in, 1, &(HnDataOptions){ 0 }, &error);
    g_assert_no_error(error);
    hn_data_explain(d, &error);
    g_assert_no_error(error);
    g_set_error(&error, HN_ERROR, HN_ERROR_SHAPE, "no");
    hn_data_explain(NULL, &error);
    g_assert_cmpstr(error->message, ==, "no");
    hn_data_explain(d, &error);
    g_assert_cmpstr(error->message, ==,
                    "no (sizes that the model leaves open were guessed: '--shapes x:1x1x32' sets them)");
    g_autoptr(HnShapes) shapes = hn_shapes_new();
    g_autoptr(GError) other = g_error_new(HN_ERROR, HN_ERROR_SHAPE, "no");
    g_assert_true(hn_shapes_parse(shapes, "x:1x1x40", NULL));
    g_autoptr(HnData) chosen = hn_data_open("random", in, 1, &(HnDataOptions){ .shapes = shapes }, NULL);
    hn_data_explain(chosen, &other);
    g_assert_cmpstr(other->message, ==, "no");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/data/open-sizes/fits", test_fits);
    g_test_add_func("/data/open-sizes/states", test_states);
    g_test_add_func("/data/open-sizes/never", test_never);
    g_test_add_func("/data/open-sizes/given", test_given);
    g_test_add_func("/data/open-sizes/lengths", test_lengths);
    g_test_add_func("/data/open-sizes/explain", test_explain);
    return g_test_run();
}
