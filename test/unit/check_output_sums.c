/* Who judges outputs: sums of one output, without a model, what nearly is something else, and what is no tensor. */
#include "check/outputs.h"
#include "score_case.h"

static HnTensor *floats(int ndim, const int64_t *dims, const float *x)
{
    HnTensor *t = hn_tensor_new(HN_F32, ndim, dims, NULL, NULL);
    memcpy(t->data, x, t->bytes);
    return t;
}

/* n samples of that shape, x[n][elements]; y: what another model makes of them, NULL: nothing. */
static HnOutputKind judge(int ndim, const int64_t *dims, guint n, const float *x, const float *y, HnOutputScore *score)
{
    g_autoptr(GPtrArray) want = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor *const **out = g_new0(HnTensor *const *, n + 1);
    HnOutputView view;
    int64_t each;
    g_assert_true(hn_dims_count(ndim, dims, &each));
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(want, floats(ndim, dims, x + i * each));
    for (guint i = 0; i < n; i++)
        out[i] = (HnTensor *const *)&want->pdata[i];
    hn_output_views_find(&view, 1, &(HnOutputsSeen){ .out = out, .n = n });
    HnOutputSums *sums = hn_output_sums_new(&view);
    for (guint i = 0; i < n; i++) {
        g_autoptr(HnTensor) got = y != NULL ? floats(ndim, dims, y + i * each) : NULL;
        hn_output_sums_add(sums, got, want->pdata[i], NULL);
    }
    hn_output_sums_score(sums, score);
    hn_output_sums_free(sums);
    hn_output_view_clear(&view);
    return view.kind;
}

/* One sample of 64 that is far off counts, however right the others are. */
static void test_worst_sample(void)
{
    const int64_t dims[] = { 1, 1 };
    HnOutputScore score;
    float x[64], y[64];
    for (int i = 0; i < 64; i++)
        x[i] = y[i] = i % 2 ? 1 : -1;
    y[7] = 0;
    g_assert_cmpint(judge(2, dims, 64, x, y, &score), ==, HN_OUTPUT_NUMBERS);
    g_assert_cmpfloat_with_epsilon(score.r2, 1 - 1.0 / 16, 0.01);
    g_assert_cmpfloat_with_epsilon(score.worst_r2, 0, 0.1);
    y[7] = NAN; /* no number where there was one */
    judge(2, dims, 64, x, y, &score);
    g_assert_cmpfloat(score.r2, <, -1e6);
    g_assert_true(isinf(score.noise));
    judge(2, dims, 64, x, NULL, &score);
    g_assert_true(isinf(score.noise));
}

static void test_strong(void)
{
    const int64_t dims[] = { 1, 4, 2 };
    const float x[] = { 0.9F, 0.1F, 0.1F, 0.2F, 0.1F, 0.1F, 0.1F, 0.1F }, none[8] = { 0 };
    float y[8];
    HnOutputScore score;
    memcpy(y, x, sizeof y);
    y[0] = 0.8F;
    g_assert_cmpint(judge(3, dims, 1, x, y, &score), ==, HN_OUTPUT_SCORES);
    g_assert_cmpfloat_with_epsilon(score.scores, 0.1, 1e-6);
    judge(3, dims, 1, x, NULL, &score); /* the output is not there */
    g_assert_cmpfloat(score.scores, ==, 1);
    g_assert_cmpfloat(score.r2, <, -1e6);
    g_assert_cmpint(judge(3, dims, 1, none, none, &score), ==, HN_OUTPUT_NUMBERS); /* zeros say nothing of scores */
}

/* Numbers that stand for something else are no strong scores, and make the loss of others no smaller. */
static void test_strong_beside_masks(void)
{
    const int64_t dims[] = { 1, 2, 20 };
    double scores[2];
    for (int masks = 0; masks < 2; masks++) {
        float x[40], y[40];
        HnOutputScore score;
        for (int i = 0; i < 40; i++)
            x[i] = y[i] = i == 0 ? 0.95F : i < 4 ? 0.9F : masks && i % 2 ? 1e9F : 0.1F;
        for (int i = 1; i < 4; i++)
            y[i] = 0.1F;
        judge(3, dims, 1, x, y, &score);
        scores[masks] = score.scores;
    }
    g_assert_cmpfloat(scores[0], >, 0.1);
    g_assert_cmpfloat_with_epsilon(scores[1], scores[0], 1e-6);
}

/* [1,16,7]: a box in pixels, a score, and of two classes one, which count as products with the score. */
static void test_gate(void)
{
    const int64_t dims[] = { 1, 16, 7 };
    float x[16 * 7], y[16 * 7];
    HnOutputScore score;
    for (int i = 0; i < 16; i++) {
        const float row[] = { 100 + (float)i, 200, 300, 400, 0.1F, 0.9F, 0.1F };
        memcpy(&x[7 * i], row, sizeof row);
    }
    memcpy(y, x, sizeof y);
    for (int i = 0; i < 16; i++) {
        y[7 * i + 5] = 0.1F;
        y[7 * i + 6] = 0.9F;
    }
    g_assert_cmpint(judge(3, dims, 1, x, y, &score), ==, HN_OUTPUT_MIXED);
    g_assert_cmpfloat(score.scores, <, 0.1); /* all of them are a no */
    g_assert_cmpfloat(score.r2, ==, 1);      /* which is about the boxes alone */
    y[0] += 50;
    judge(3, dims, 1, x, y, &score);
    g_assert_cmpfloat(score.r2, <, 1);
}

/* Kinds and channels that nearly are something else, by samples of one output. */
static void test_edges(void)
{
    HnOutputScore score;
    float x[128], y[128];
    const int64_t four[] = { 1, 4 }, ten[] = { 1, 10 }, boxes[] = { 1, 10, 4 }, few[] = { 1, 7, 6 };
    for (int i = 0; i < 8; i++) { /* from -pi to pi, but so few that a turn is a turn */
        x[i] = (const float[]){ -3.14F, 3.13F, 1, -2, 0.5F, 2.5F, -1, 3.1F }[i];
        y[i] = x[i] + 6.2831853F;
    }
    g_assert_cmpint(judge(2, four, 2, x, y, &score), ==, HN_OUTPUT_NUMBERS);
    g_assert_cmpfloat(score.r2, <, 0);
    for (int i = 0; i < 12; i++) /* rows that add up to 1, but are no probabilities */
        x[i] = y[i] = (const float[]){ 1.5F, -0.2F, -0.4F, 0.1F }[(i + i / 4) % 4];
    g_assert_cmpint(judge(2, four, 3, x, y, &score), ==, HN_OUTPUT_NUMBERS);
    for (int i = 0; i < 40; i++) /* columns that differ, but each from row to row, too */
        x[i] = y[i] = (float)(i % 10 + (i / 10 % 2 ? 0.466 : -0.466));
    g_assert_cmpint(judge(2, ten, 4, x, y, &score), ==, HN_OUTPUT_CLASSES);
    for (int i = 0; i < 20; i++) /* two rows, which do not show that columns have numbers of their own */
        x[i] = y[i] = (float)(i % 10 + (i / 10 ? 0.05 : -0.05));
    g_assert_cmpint(judge(2, ten, 2, x, y, &score), ==, HN_OUTPUT_CLASSES);
    for (int i = 0; i < 80; i++) { /* one whole number in each row, always the same: no name */
        x[i] = i % 4 == 3 ? 500 : 100.5F + 37 * (float)(i % 4) + (float)(i * 11 % 29);
        y[i] = i % 4 == 3 ? 500.6F : x[i];
    }
    judge(3, boxes, 2, x, y, &score);
    g_assert_cmpfloat(score.r2, >, 0.99);
    for (int i = 0; i < 42; i++) { /* whole numbers, too few to be names */
        x[i] = i % 6 == 5 ? (float)(300 + i * 13 % 50) : 100.5F + 37 * (float)(i % 6) + (float)(i * 11 % 29);
        y[i] = i % 6 == 5 ? x[i] + 0.6F : x[i];
    }
    judge(3, few, 1, x, y, &score);
    g_assert_cmpfloat(score.r2, >, 0.99);
}

static HnOutputKind kind_of_output(const char *text, int k, const char *metric)
{
    GError *error = NULL;
    HnMetricChoice choice = { .all = HN_METRIC_CMD };
    g_autoptr(HnModel) m = parse(text);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_true(metric == NULL || hn_metric_choice_parse(metric, &choice, &error));
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1, .choice = metric != NULL ? &choice : NULL };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(text), d, 0, 4, &o, &error);
    g_assert_no_error(error);
    hn_metric_choice_clear(&choice);
    return hn_scorer_output_kind(s, k);
}

/* What one output holds may be told by another one, or by the user. */
static void test_beside(void)
{
    static const char
        logits[] = "opset 17 graph g(%x:f32[N,5]) -> (%y, %p) { %y = Mul(%x, k:f32={3}) %p = Softmax(%y) }",
        alone[] = "opset 17 graph g(%x:f32[N,5]) -> (%y) { %y = Mul(%x, k:f32={3}) }",
        second[] = "opset 17 graph g(%x:f32[N,12]) -> (%p, %y) { %p = Softmax(%x) %y = MatMul(%x, w:f32[12,11]) }";
    g_assert_cmpint(kind_of_output(logits, 0, NULL), ==, HN_OUTPUT_CLASSES);
    g_assert_cmpint(kind_of_output(alone, 0, NULL), ==, HN_OUTPUT_NUMBERS);
    g_assert_cmpint(kind_of_output(second, 1, NULL), ==, HN_OUTPUT_NUMBERS);
    g_assert_cmpint(kind_of_output(logits, 1, "r2@p"), ==, HN_OUTPUT_NUMBERS);
    g_assert_cmpint(kind_of_output(logits, 0, "r2@p"), ==, HN_OUTPUT_CLASSES);
}

/* A map's numbers, a sequence's texts, and complex numbers are looked at like those of a tensor. */
static void test_plain(void)
{
    const int64_t three = 3;
    HnTensor *keys = hn_tensor_ints((const int64_t[]){ 7, 8, 9 }, 3), *map = hn_tensor_new_list(HN_MAP, 2, NULL, NULL),
             *maps = hn_tensor_new_list(HN_SEQUENCE, 2, NULL, NULL),
             *texts = hn_tensor_new(HN_STRING, 1, &three, NULL, NULL),
             *list = hn_tensor_new_list(HN_SEQUENCE, 1, NULL, NULL),
             *pairs = hn_tensor_new(HN_C64, 1, &three, NULL, NULL);
    HnTensor *numbers = floats(1, &three, (const float[]){ 0.2F, 0.3F, 0.5F });
    g_autoptr(GBytes) word = g_bytes_new_static("word", 4);
    hn_tensor_set_item(map, 0, keys);
    hn_tensor_set_item(map, 1, numbers);
    hn_tensor_set_item(maps, 0, map);
    hn_tensor_set_item(maps, 1, map);
    hn_tensor_set_string(texts, 2, word);
    hn_tensor_set_item(list, 0, texts);
    ((float *)pairs->data)[5] = 4;
    g_autoptr(HnTensor) rows = hn_output_plain(maps, NULL, NULL), words = hn_output_plain(list, NULL, NULL),
                        parts = hn_output_plain(pairs, NULL, NULL), same = hn_output_plain(keys, NULL, NULL);
    g_autofree char *a = hn_tensor_describe(rows), *b = hn_tensor_describe(words), *c = hn_tensor_describe(parts);
    g_assert_cmpstr(a, ==, "f64[2,3]");
    g_assert_cmpfloat_with_epsilon(hn_tensor_get_f64(rows, 5), 0.5, 1e-6);
    g_assert_cmpstr(b, ==, "string[1,3]");
    g_assert_true(g_bytes_equal(hn_tensor_get_string(words, 2), word));
    g_assert_cmpstr(c, ==, "f32[3,2]");
    g_assert_cmpfloat(hn_tensor_get_f64(parts, 5), ==, 4);
    g_assert_true(same == keys);
    HnTensor *const all[] = { keys, map, maps, texts, list, pairs, numbers };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        hn_tensor_unref(all[i]);
}

/* What cannot be told of the other model is a loss of all. */
static void test_unknown(void)
{
    const HnScore original = { .r2 = 1, .scores = 0 }, other = { .r2 = NAN, .scores = NAN };
    g_assert_true(isinf(hn_score_drop(HN_METRIC_R2, &other, &original)));
    g_assert_true(isinf(hn_score_drop(HN_METRIC_SQNR, &(HnScore){ .sqnr = -INFINITY }, &original)));
    g_assert_cmpfloat(hn_score_drop(HN_METRIC_SQNR, &(HnScore){ .sqnr = INFINITY }, &original), ==, 0);
    g_assert_true(isinf(hn_score_drop(HN_METRIC_SCORES, &other, &original)));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/score/edges", test_edges);
    g_test_add_func("/check/score/beside", test_beside);
    g_test_add_func("/check/score/worst-sample", test_worst_sample);
    g_test_add_func("/check/score/strong", test_strong);
    g_test_add_func("/check/score/strong/masks", test_strong_beside_masks);
    g_test_add_func("/check/score/gate", test_gate);
    g_test_add_func("/check/score/plain", test_plain);
    g_test_add_func("/check/score/unknown", test_unknown);
    return g_test_run();
}
