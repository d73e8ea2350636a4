/* What a search is made of: kinds of numbers, scores and goals, regions, and plans as files. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "ir/ir_text.h"
#include "op/infer.h"
#include "check/channel_kinds.h"
#include "quant/plan_file.h"
#include "quant/int8_partition.h"
#include "check/score.h"
#include "onnx/onnx.h"
#include "quant/search.h"
#include "quant/size_bound.h"
#include "run/session.h"

static HnModel *parse(const char *text)
{
    GError *error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_verify(m, &error));
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    return m;
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

/* [1, n, 4]: channel c holds numbers of about size[c] */
static HnTensor *channels(int64_t n, const float *size)
{
    const int64_t dims[] = { 1, n, 4 };
    HnTensor *t = hn_tensor_new(HN_F32, 3, dims, NULL, NULL);
    for (int64_t i = 0; i < t->n; i++)
        ((float *)t->data)[i] = size[i % 4] * (0.5f + 0.5f * (float)(i / 4 % 2));
    return t;
}

static void test_kinds(void)
{
    const float detector[] = { 300, 0.9f, 200, 0.2f }, spectrum[] = { 90, 10, 1.2f, 0.2f },
                raised[] = { 300, 1.5f, 200, 1 };
    HnChannelKinds k;
    g_autoptr(HnTensor) a = channels(20, detector);
    hn_channel_kinds_find(&k, &a, 1);
    g_assert_cmpint(k.axis, ==, 2);
    g_assert_cmpint(k.n, ==, 2);
    g_assert_cmpint(k.of[0], ==, k.of[2]);
    g_assert_cmpint(k.of[1], ==, k.of[3]);
    g_assert_true(k.scores[k.of[1]]);
    g_assert_false(k.scores[k.of[0]]);
    g_assert_cmpint(hn_channel_kinds_step(&k, a), ==, 1);
    hn_channel_kinds_clear(&k);

    g_autoptr(HnTensor) b = channels(20, spectrum); /* no gap of ten times */
    hn_channel_kinds_find(&k, &b, 1);
    g_assert_cmpint(k.n, ==, 1);
    g_assert_false(k.scores[0]);
    hn_channel_kinds_clear(&k);

    g_autoptr(HnTensor) c = channels(20, raised); /* beyond 1: no scores, in any sample */
    HnTensor *both[] = { a, NULL, c };
    hn_channel_kinds_find(&k, both, 3);
    g_assert_cmpint(k.n, ==, 2);
    g_assert_false(k.scores[k.of[1]]);
    hn_channel_kinds_clear(&k);

    g_autoptr(HnTensor) d = channels(3, detector); /* a few numbers are no channel */
    hn_channel_kinds_find(&k, &d, 1);
    g_assert_cmpint(k.n, ==, 1);
    hn_channel_kinds_clear(&k);
}

/* Probabilities of classes beside one more score count as products with it, wherever that stands. */
/* What stands for something else: n numbers from 5 to 6, the first ones of which are `other`; NaN: nothing does. */
static double none_of(int64_t n, int first, float other)
{
    g_autoptr(HnTensor) t = hn_tensor_new(HN_F32, 3, (const int64_t[]){ 1, 1, n }, NULL, NULL);
    HnChannelKinds k;
    for (int i = 0; i < n; i++)
        ((float *)t->data)[i] = i < first ? other : 5 + (float)(i * 7 % 20) / 20;
    hn_channel_kinds_find(&k, &t, 1);
    hn_channel_kinds_clear(&k);
    return k.none;
}

static void test_none(void)
{
    g_assert_cmpfloat(none_of(30, 5, -1), ==, -1);
    g_assert_cmpfloat(none_of(30, 5, 99), ==, 99);
    g_assert_true(isnan(none_of(30, 5, 0)));  /* which is a number */
    g_assert_true(isnan(none_of(30, 1, -1))); /* once */
    g_assert_true(isnan(none_of(17, 5, -1))); /* among few */
    g_assert_true(isnan(none_of(30, 5, 4.5F)));
}

/* Along an axis of which tensors have more or fewer there are no channels. */
static void test_lengths(void)
{
    g_autoptr(HnTensor) a = hn_tensor_new(HN_F32, 3, (const int64_t[]){ 1, 3, 40 }, NULL, NULL),
                        b = hn_tensor_new(HN_F32, 3, (const int64_t[]){ 1, 5, 40 }, NULL, NULL);
    HnTensor *const both[] = { a, b };
    HnChannelKinds k;
    for (int i = 0; i < 120; i++)
        ((float *)a->data)[i] = 1;
    for (int i = 0; i < 200; i++)
        ((float *)b->data)[i] = i < 160 ? 1 : 1000; /* the fifth is of another size */
    hn_channel_kinds_find(&k, both, 2);
    g_assert_cmpint(k.axis, ==, 2);
    hn_channel_kinds_clear(&k);
}

static void test_gates(void)
{
    static const float rows[3][6] = {
        { 300, 0.25f, 0.5f, 0.25f, 0.25f, 200 }, /* score, classes */
        { 300, 0.5f, 0.25f, 0.25f, 0.75f, 200 }, /* classes, score */
        { 300, 0.5f, 0.25f, 0.5f, 0.75f, 200 },  /* none are 1 together */
    };
    static const int64_t gates[] = { 1, 4, -1 };
    for (int r = 0; r < 3; r++) {
        const int64_t dims[] = { 1, 8, 6 };
        g_autoptr(HnTensor) t = hn_tensor_new(HN_F32, 3, dims, NULL, NULL);
        for (int i = 0; i < 48; i++)
            ((float *)t->data)[i] = rows[r][i % 6] * (i % 6 == 0 || i % 6 == 5 ? 1 + (float)(i / 6) : 1);
        HnChannelKinds k;
        hn_channel_kinds_find(&k, &t, 1);
        g_assert_cmpint(k.axis, ==, 2);
        g_assert_cmpint(k.gate, ==, gates[r]);
        const double gate = gates[r] < 0 ? 1 : (double)rows[r][gates[r]];
        g_assert_cmpfloat(hn_channel_kinds_value(&k, t, 1, 8 % k.channels, 8), ==, (double)rows[r][2] * gate);
        g_assert_cmpfloat(hn_channel_kinds_value(&k, t, 1, 5 % k.channels, 5), ==, 200);
        if (gates[r] >= 0)
            g_assert_cmpfloat(hn_channel_kinds_value(&k, t, 1, gates[r] % k.channels, gates[r]), ==, gate);
        hn_channel_kinds_clear(&k);
    }
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* Two channels of boxes below 100, two of scores; `add` is added to what the Sigmoid reads. */
static HnModel *detector_of(const char *add)
{
    g_autofree char *text = g_strconcat("opset 17\n"
                                        "%z = Add(%x:f32[1,40,4], d:f32[4]=",
                                        add,
                                        ")\n"
                                        "%s = Sigmoid(%z)\n"
                                        "%y = Mul(%s, size:f32[4]={100,100,1,1})\n",
                                        NULL);
    return parse(text);
}

static void loss_of(const char *add, HnGoals *goals, HnScore *score, gboolean *met)
{
    GError *error = NULL;
    g_autoptr(HnModel) original = detector_of("{0,0,0,0}");
    g_autoptr(HnModel) m = detector_of(add);
    HnValue *inputs[] = { original->graph->inputs->pdata[0] };
    g_autoptr(HnData) d = hn_data_open("random:2", inputs, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(detector_of("{0,0,0,0}"), d, 0, 2, &o, &error);
    g_assert_no_error(error);
    HnScore before;
    hn_scorer_original(s, &before);
    hn_scorer_goals(s, NAN, goals);
    g_assert_true(hn_scorer_run(s, m, score, &error));
    *met = hn_goals_met(goals, score, &before);
}

static void test_goals(void)
{
    HnGoals g;
    HnScore s;
    gboolean met;
    loss_of("{0,0,0,0}", &g, &s, &met);
    g_assert_true(met);
    g_assert_cmpint(g.n, ==, 2);
    g_assert_cmpint(g.goal[0].metric, ==, HN_METRIC_R2);
    g_assert_cmpint(g.goal[1].metric, ==, HN_METRIC_SCORES);
    g_assert_cmpfloat(s.scores, ==, 0);
    /* scores that are off do not show in the cosine of all, which boxes rule, and are refused */
    loss_of("{0,0,0,0.5}", &g, &s, &met);
    g_assert_false(met);
    g_assert_cmpfloat(1 - s.cos, <, 0.001);
    g_assert_cmpfloat(s.scores, >, 0.02);
    /* and so are boxes that are off while scores hold */
    loss_of("{2,-2,0,0}", &g, &s, &met);
    g_assert_false(met);
    g_assert_cmpfloat(s.scores, ==, 0);
    loss_of("{0,0,0,0.01}", &g, &s, &met);
    g_assert_true(met);
    g_assert_cmpfloat(s.scores, >, 0);
}

/* What nothing is judged by is told all the same, and says which nodes cost most. */
static void test_told(void)
{
    GError *error = NULL;
    g_autoptr(HnModel) original = detector_of("{0,0,0,0}");
    g_autoptr(HnModel) m = detector_of("{2,-2,0,0}");
    HnValue *inputs[] = { original->graph->inputs->pdata[0] };
    g_autoptr(HnData) d = hn_data_open("random:2", inputs, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    static const char *const names[] = { "r2", "cos", "sqnr" };
    HnScore score[3];
    for (int i = 0; i < 3; i++) {
        HnMetricChoice c;
        g_assert_true(hn_metric_choice_parse(names[i], &c, &error));
        const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1, .choice = &c };
        g_autoptr(HnScorer) s = hn_scorer_new(detector_of("{0,0,0,0}"), d, 0, 2, &o, &error);
        g_assert_no_error(error);
        g_assert_true(hn_scorer_run(s, m, &score[i], &error));
        hn_metric_choice_clear(&c);
    }
    g_assert_cmpfloat(score[0].r2, <, 0.99);
    g_assert_cmpfloat(score[0].cos, ==, score[1].cos);
    g_assert_cmpfloat(score[0].cos, <, 0.999);
    g_assert_cmpfloat(score[0].sqnr, ==, score[2].sqnr);
    g_assert_cmpfloat(score[1].sqnr, ==, score[2].sqnr);
    g_assert_cmpint(score[0].at[HN_METRIC_COS], ==, -1);
}

/* Outputs so large that the original computes those of later samples again. */
static void test_large_outputs(void)
{
    static const char *const texts[] = { "opset 17\n%y = Neg(%x:f32[1,3,600000])",
                                         "opset 17\n%z = Neg(%x:f32[1,3,600000])\n%y = Mul(%z, "
                                         "a:f32={1.01})" };
    GError *error = NULL;
    g_autoptr(HnModel) first = parse(texts[0]);
    HnValue *inputs[] = { first->graph->inputs->pdata[0] };
    g_autoptr(HnData) d = hn_data_open("random:3", inputs, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(texts[0]), d, 0, 3, &o, &error);
    g_assert_no_error(error);
    for (int i = 0; i < 2; i++) {
        g_autoptr(HnModel) m = parse(texts[i]);
        HnScore score;
        g_assert_true(hn_scorer_run(s, m, &score, &error));
        g_assert_cmpfloat_with_epsilon(score.cos, 1, 1e-6);
        g_assert_true(i == 0 ? isinf(score.sqnr) : fabs(score.sqnr - 40) < 0.01); /* a hundredth */
    }
}

static void test_metric_names(void)
{
    HnMetricChoice c;
    g_assert_true(hn_metric_choice_parse("scores", &c, NULL));
    g_assert_true(c.given && c.all == HN_METRIC_SCORES && c.command == NULL);
    hn_metric_choice_clear(&c);
    g_assert_true(hn_metric_choice_parse("cmd:map --fast", &c, NULL));
    g_assert_cmpstr(c.command, ==, "map --fast");
    hn_metric_choice_clear(&c);
    g_assert_true(hn_metric_choice_parse("top1@logits,none@state,cos", &c, NULL));
    g_assert_cmpint(c.n, ==, 2);
    g_assert_true(c.of[0].metric == HN_METRIC_TOP1 && c.of[1].metric == HN_METRIC_NONE);
    g_assert_cmpstr(c.of[1].output, ==, "state");
    g_assert_true(c.given && c.all == HN_METRIC_COS);
    hn_metric_choice_clear(&c);
    const char *const wrong[] = { "cmd:", "cmd", "none", "cos,r2", "top1@", "f1@y", "", "cos,", "cmd@y" };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_false(hn_metric_choice_parse(wrong[i], &c, NULL));
        hn_metric_choice_clear(&c);
    }
    const HnScore before = { .command = 40 }, after = { .command = 38 };
    g_assert_cmpfloat(hn_score_drop(HN_METRIC_CMD, &after, &before), ==, 0.05); /* relative */
    HnGoals g = { 0 };
    hn_goals_add(&g, HN_METRIC_CMD, 0.05);
    g_assert_true(hn_goals_met(&g, &after, &before));
    g.n = 0;
    hn_goals_add(&g, HN_METRIC_CMD, NAN);
    g_assert_false(hn_goals_met(&g, &after, &before));
    const HnScore none = { .command = NAN };
    g_assert_false(hn_goals_met(&g, &none, &before)); /* no number is no success */
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

static const char chain[] = "opset 17\n"
                            "%a = Conv(%x:f32[1,4,8,8], u:f32[4,4,1,1])\n"
                            "%b = Conv(%a, v:f32[4,4,1,1])\n"
                            "%c = Conv(%b, w:f32[4,4,1,1])\n"
                            "%y = Exp(%c)\n";

static void set_time(HnNodeTimes *t, const char *name, double ms, double elements)
{
    const HnNodeTime at = { ms, elements };
    g_hash_table_insert(t->nodes, g_strdup(name), g_memdup2(&at, sizeof at));
}

/* Nodes that stay integers, "ac", with times in us as f32 and as integers, and ns for each converted element. */
static char *chosen(const double *f32, const double *ints, double convert_ns, const char *pinned)
{
    static const char *const names[] = { "a", "b", "c" };
    g_autoptr(HnModel) m = parse(chain);
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8 });
    g_autoptr(HnNodeTimes) before = hn_node_times_new();
    g_autoptr(HnNodeTimes) after = hn_node_times_new();
    g_autoptr(GHashTable) pins = g_hash_table_new(g_str_hash, g_str_equal);
    set_time(before, "x", 0, 256);
    for (int i = 0; i < 3; i++) {
        hn_quant_plan_set_form(p, names[i], HN_FORM_INT8);
        set_time(before, names[i], f32[i] / 1e3, 256);
        set_time(after, names[i], ints[i] / 1e3, 256);
    }
    set_time(after, "x_q", 256 * convert_ns / 1e6, 256);
    if (pinned != NULL)
        g_hash_table_add(pins, (gpointer)pinned);
    const HnPartitionOptions o = { .f32 = before, .integers = after, .pinned = pins, .bonus = 0.03 };
    before->total_ms = f32[0] / 1e3 + f32[1] / 1e3 + f32[2] / 1e3;
    const double sum =
        (ints[0] + ints[1] + ints[2] + 2 * 256 * convert_ns / 1e3) / 1e3; /* what goes in, what comes out */
    g_assert_cmpfloat(fabs(hn_partition_ms(p, m, &o) - sum), <, 1e-9);
    g_autoptr(HnQuantPlan) found = hn_partition_choose(p, m, &o);
    GString *left = g_string_new(NULL);
    for (int i = 0; i < 3; i++)
        if (g_hash_table_contains(found->forms, names[i]))
            g_string_append(left, names[i]);
    return g_string_free(left, FALSE);
}

static void expect(const double *f32, const double *ints, double convert_ns, const char *pinned, const char *want)
{
    g_autofree char *got = chosen(f32, ints, convert_ns, pinned);
    g_assert_cmpstr(got, ==, want);
}

static void test_regions(void)
{
    const double f32[] = { 10, 10, 10 }, fast[] = { 2, 2, 2 }, slow_middle[] = { 2, 11, 2 },
                 slower_middle[] = { 2, 90, 2 };
    const double even[] = { 10.1, 10.1, 10.1 }, one[] = { 12, 9, 12 };
    expect(f32, fast, 0.1, NULL, "abc");
    /* a little slower, but two conversions would cost more */
    expect(f32, slow_middle, 10, NULL, "abc");
    /* and now they do not */
    expect(f32, slow_middle, 0.1, NULL, "ac");
    expect(f32, slower_middle, 10, NULL, "ac");
    expect(f32, slower_middle, 10, "b", "abc");
    /* no conversion pays: a little faster alone is nothing */
    expect(f32, one, 10, NULL, "");
    expect(f32, one, 0.1, NULL, "b");
    /* what is even stays */
    expect(f32, even, 0.0001, NULL, "abc");
    /* a chain whose conversions cost all that it gains */
    expect(f32, fast, 60, NULL, "");

    g_autoptr(HnModel) m = parse(chain);
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8 });
    hn_quant_plan_set_form(p, "a", HN_FORM_INT8);
    hn_quant_plan_set_form(p, "c", HN_FORM_INT8);
    g_autoptr(GHashTable) regions = hn_partition_regions(p, m);
    g_assert_cmpuint(GPOINTER_TO_UINT(g_hash_table_lookup(regions, "a")), ==, 1);
    g_assert_cmpuint(GPOINTER_TO_UINT(g_hash_table_lookup(regions, "c")), ==, 2);
    g_assert_null(g_hash_table_lookup(regions, "b"));
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

static HnQuantPlan *some_plan(void)
{
    HnQuantPlan *p = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_I8, .reduced = TRUE, .block = 64 });
    hn_quant_plan_set_form(p, "b", HN_FORM_INT8);
    hn_quant_plan_set_form(p, "a", HN_FORM_W4);
    hn_quant_plan_set_span(p, "x", -1.0 / 3, 1e-30);
    return p;
}

/* Forms that were chosen, out and in again; what names another node, or no form, is refused. */
static void test_forms(void)
{
    g_autoptr(HnModel) m =
        hn_model_parse("opset 17 %1 = MatMul(%x:f32[2,3], a:f32[3,3]) %y = MatMul(%1, b:f32[3,3])", NULL, NULL);
    g_assert_true(hn_model_verify(m, NULL) && hn_graph_infer(m->graph, FALSE, NULL));
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    g_assert_cmpuint(nodes->len, ==, 2);
    g_autoptr(HnQuantPlan) base = hn_quant_plan_new(&(HnQuantOptions){ 0 });
    for (guint i = 0; i < nodes->len; i++)
        hn_quant_plan_set_form(base, hn_quant_name(nodes->pdata[i]), HN_FORM_INT8);
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(base), again = hn_quant_plan_copy(base);
    g_assert_null(hn_quant_forms_json(p, base, nodes));
    g_assert_true(hn_quant_forms_read(NULL, again));
    hn_quant_plan_set_form(p, "y", HN_FORM_W8);
    g_autoptr(JsonObject) forms = hn_quant_forms_json(p, base, nodes);
    g_autofree char *text = hn_json_line(forms);
    g_assert_cmpstr(text, ==, "{\"y\":\"w8\"}");
    g_assert_true(hn_quant_forms_read(forms, again));
    g_assert_cmpint(hn_quant_plan_form(again, nodes->pdata[0]), ==, HN_FORM_INT8);
    g_assert_cmpint(hn_quant_plan_form(again, nodes->pdata[1]), ==, HN_FORM_W8);
    json_object_set_string_member(forms, "y", "int9");
    g_assert_false(hn_quant_forms_read(forms, again));
    json_object_set_string_member(forms, "y", "w8");
    json_object_set_string_member(forms, "z", "w8");
    g_assert_false(hn_quant_forms_read(forms, again));
}

static void test_plan_file(void)
{
    GError *error = NULL;
    g_autoptr(HnQuantPlan) p = some_plan();
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    const char *repairs[] = { "rounding", NULL };
    HnPlanFile f;
    g_ptr_array_add(nodes, (gpointer) "a");
    g_ptr_array_add(nodes, (gpointer) "b");
    JsonNode *json = hn_quant_plan_json(p, NULL, repairs);
    g_autofree char *text = json_to_string(json, TRUE);
    json_node_unref(json);
    JsonNode *read = json_from_string(text, &error);
    g_assert_no_error(error);
    g_assert_true(hn_quant_plan_read(read, &(HnQuantOptions){ .block = 32 }, nodes, &f, &error));
    g_assert_no_error(error);
    g_assert_true(f.has_options && f.has_spans);
    g_assert_cmpstr(f.repairs[0], ==, "rounding");
    g_autofree char *before = hn_quant_plan_hash(p), *after = hn_quant_plan_hash(f.plan);
    g_assert_cmpstr(before, ==, after); /* numbers come back to the last bit */
    hn_plan_file_clear(&f);
    g_ptr_array_remove_index(nodes, 1);
    g_assert_false(hn_quant_plan_read(read, &(HnQuantOptions){ .block = 32 }, nodes, &f, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_nonnull(strstr(error->message, "'b'"));
    g_clear_error(&error);
    json_node_unref(read);

    hn_quant_plan_set_span(p, "x", -1.0 / 3, 2e-30);
    g_autofree char *other = hn_quant_plan_hash(p);
    g_assert_cmpstr(before, !=, other);
}

/* --- what stays f32 ----------------------------------------------------------------------------------------------- */

static void append_weight(GString *text, const char *name, int columns, double first)
{
    g_string_append_printf(text, "  %s:f32[64,%d]={", name, columns);
    for (int i = 0; i < 64 * columns; i++)
        g_string_append_printf(text, "%s%g", i > 0 ? "," : "", (i % 7 - 3) * (i < columns ? first : 1));
    g_string_append(text, "}\n");
}

static void append_scale(GString *text, const char *name, double first)
{
    g_string_append_printf(text, "  %s:f32[64]={%g", name, first);
    for (int i = 1; i < 64; i++)
        g_string_append(text, ",1");
    g_string_append(text, "}\n");
}

/* Products %1, whose first input is 1000 times the others (and its weights a thousandth), and %2; with `blocked` %3
 * with more weights, of which the first are 100000 times the others (and their input as much smaller). */
static char *uneven(gboolean blocked)
{
    GString *text = g_string_new("opset 17\ngraph main(%x:f32[8,64]) -> (%y) {\n");
    append_scale(text, "s", 1000);
    append_weight(text, "w", 8, 0.001);
    g_string_append(text, "  v:f32[64,8]\n  %0 = Mul(%x, s)\n  %1 = MatMul(%0, w)\n  %2 = MatMul(%x, v)\n");
    if (blocked) {
        append_scale(text, "t", 1e-5);
        append_weight(text, "b", 16, 1e5);
        g_string_append(text, "  %4 = Mul(%x, t)\n  %3 = MatMul(%4, b)\n  %5 = Add(%1, %2)\n"
                              "  %y = Concat(%5, %3) axis=1\n}\n");
    } else {
        g_string_append(text, "  %y = Add(%1, %2)\n}\n");
    }
    return g_string_free(text, FALSE);
}

static HnModel *open_text(gpointer data, GError **error)
{
    (void)error;
    return parse(data);
}

/* The forms of %1 and %2, and of %3 with `blocked`, that a search finds, and the bytes of weights then. */
static void found_forms(double most, gboolean blocked, HnQuantForm *forms, guint64 *bytes)
{
    g_autofree char *text = uneven(blocked);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = parse(text);
    HnValue *inputs[] = { m->graph->inputs->pdata[0] };
    g_autoptr(HnData) d = hn_data_open("random:4", inputs, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions so = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) scorer = hn_scorer_new(parse(text), d, 0, 4, &so, &error);
    g_assert_no_error(error);
    g_autoptr(HnQuantPlan) base = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8, .block = 32 });
    hn_quant_plan_set_form(base, "1", HN_FORM_DYNAMIC);
    hn_quant_plan_set_form(base, "2", HN_FORM_DYNAMIC);
    if (blocked)
        hn_quant_plan_set_form(base, "3", HN_FORM_DYNAMIC);
    HnSearchOptions o = { .open = open_text, .data = text, .scorer = scorer, .backend = &hn_backend_ref, .threads = 1 };
    hn_goals_add(&o.goals, HN_METRIC_COS, most);
    HnSearch found;
    g_assert_true(hn_quant_search(base, &o, &found, &error));
    g_assert_no_error(error);
    for (guint i = 0; i < found.nodes->len; i++)
        forms[i] = ((const HnSensitivity *)found.nodes->pdata[i])->form;
    HnQuantLog log;
    g_autoptr(HnModel) made = found.plan != NULL ? hn_quant_build(found.plan, &o, &log, &error) : NULL;
    *bytes = made != NULL ? hn_model_weight_bytes(made) : 0;
    hn_search_clear(&found);
}

static void test_store(void)
{
    HnQuantForm forms[3];
    guint64 bytes;
    found_forms(0.05, FALSE, forms, &bytes);
    g_assert_cmpint(forms[0], ==, HN_FORM_W8); /* as integers it would lose half of the output */
    g_assert_cmpint(forms[1], ==, HN_FORM_DYNAMIC);
    g_assert_cmpuint(bytes, <, 2 * 512 + 512);

    found_forms(0.001, FALSE, forms, &bytes); /* not even 8-bit weights are good enough */
    g_assert_cmpint(forms[0], ==, HN_FORM_F32);
    g_assert_cmpint(forms[1], ==, HN_FORM_DYNAMIC);
    g_assert_cmpuint(bytes, >, 512 * 4);

    found_forms(0.05, TRUE, forms, &bytes); /* the largest weight cannot be stored; a smaller one is all the same */
    g_assert_cmpint(forms[0], ==, HN_FORM_W8);
    g_assert_cmpint(forms[1], ==, HN_FORM_DYNAMIC);
    g_assert_cmpint(forms[2], ==, HN_FORM_F32);

    found_forms(1, FALSE, forms, &bytes); /* nothing stays f32 */
    g_assert_cmpint(forms[0], ==, HN_FORM_DYNAMIC);
    g_assert_cmpint(forms[1], ==, HN_FORM_DYNAMIC);
}

/* Products of 8, of which one has weights of 1000 beside those of 1 in each channel, for an input that is next to 0. */
static char *coarse(void)
{
    GString *text = g_string_new("opset 17\ngraph main(%x:f32[8,64]) -> (%y) {\n  s:f32[64]={0.0001");
    for (int i = 1; i < 64; i++)
        g_string_append(text, ",1");
    g_string_append(text, "}\n  %0 = Mul(%x, s)\n");
    for (int k = 1; k <= 8; k++) {
        g_string_append_printf(text, "  w%d:f32[64,64]={", k);
        for (int i = 0; i < 64 * 64; i++)
            g_string_append_printf(text, "%s%d", i > 0 ? "," : "", k == 5 && i < 64 ? 1000 : (i * k + i / 64) % 7 - 3);
        g_string_append_printf(text, "}\n  %%%d = MatMul(%%0, w%d)\n", k, k);
    }
    g_string_append(text, "  %y = Concat(%1, %2, %3, %4, %5, %6, %7, %8) axis=1\n}\n");
    return g_string_free(text, FALSE);
}

/* --- what a file takes at least ----------------------------------------------------------------------------------- */

/* The bound is one, and not far away; it counts weights of one shape once. */
static void check_bound(const char *text, HnQuantForm form, double near)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = parse(text);
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8, .block = 32 });
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    gsize before, after;
    for (guint i = 0; i < nodes->len; i++)
        hn_quant_plan_set_form(p, hn_quant_name(nodes->pdata[i]), hn_quant_form_fit(nodes->pdata[i], form, &p->o));
    g_assert_true(hn_onnx_size(m, NULL, &before, &error));
    const guint64 least = hn_quant_least_bytes(p, m, before);
    HnQuantLog log;
    g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
    g_assert_no_error(error);
    g_assert_true(hn_onnx_size(m, NULL, &after, &error));
    g_test_message("%s: %" G_GUINT64_FORMAT " of %u, before %u", hn_quant_form_name(form), least, (guint)after,
                   (guint)before);
    g_assert_cmpuint(least, <=, after);
    g_assert_cmpfloat((double)least, >=, near * (double)after);
}

static void test_bound(void)
{
    static const char small[] = "opset 13\n%y = MatMul(%x:f32[2,4], w:f32[4,3])\n";
    static const char table[] = "opset 13\n%1 = Gather(t:f32[256,64], %i:i64[4])\n%y = MatMul(%1, v:f32[64,8])\n";
    static const char gates[] =
        "opset 13\n%y, -, - = LSTM(%x:f32[5,1,64], w:f32[1,256,64], r:f32[1,256,64]) hidden_size=64\n";
    static const char twice[] = "opset 13\n%1 = MatMul(%x:f32[2,64], w:f32[64,64])\n%y = MatMul(%1, w)\n";
    g_autofree char *long_text = coarse(), *two = uneven(FALSE);
    check_bound(small, HN_FORM_W8, 0.5);
    check_bound(two, HN_FORM_W8, 0.4);
    check_bound(two, HN_FORM_DYNAMIC, 0.4);
    check_bound(table, HN_FORM_W8, 0.9);
    check_bound(table, HN_FORM_W4, 0.8);
    check_bound(gates, HN_FORM_W8, 0.4); /* both weights are of one shape */
    check_bound(twice, HN_FORM_W8, 0.8);
    check_bound(long_text, HN_FORM_W8, 0.1);
}

/* Some plan, soon: all, and all without that one; no node is tried alone. */
static void test_quick(void)
{
    g_autofree char *text = coarse();
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = parse(text);
    HnValue *inputs[] = { m->graph->inputs->pdata[0] };
    g_autoptr(HnData) d = hn_data_open("random:4", inputs, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions so = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) scorer = hn_scorer_new(parse(text), d, 0, 4, &so, &error);
    g_assert_no_error(error);
    g_autoptr(HnQuantPlan) base = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8, .block = 32 });
    for (int k = 1; k <= 8; k++)
        hn_quant_plan_set_form(base, (const char[]){ (char)('0' + k), 0 }, HN_FORM_W8);
    HnSearchOptions o = { .open = open_text, .data = text, .scorer = scorer, .backend = &hn_backend_ref, .threads = 1 };
    hn_goals_add(&o.goals, HN_METRIC_R2, 0.002);
    for (int quick = 0; quick < 2; quick++) {
        HnSearch found;
        o.quick = quick;
        g_assert_true(hn_quant_search(base, &o, &found, &error));
        g_assert_no_error(error);
        g_assert_nonnull(found.plan);
        for (guint k = 0; k < 8; k++)
            g_assert_cmpint(((const HnSensitivity *)found.nodes->pdata[k])->form, ==,
                            k == 4 ? HN_FORM_F32 : HN_FORM_W8);
        if (quick)
            g_assert_cmpuint(found.trials, ==, 2);
        else
            g_assert_cmpuint(found.trials, >, 8);
        hn_search_clear(&found);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/kinds", test_kinds);
    g_test_add_func("/check/kinds/none", test_none);
    g_test_add_func("/check/kinds/lengths", test_lengths);
    g_test_add_func("/check/kinds/gates", test_gates);
    g_test_add_func("/check/score/large_outputs", test_large_outputs);
    g_test_add_func("/check/score/goals", test_goals);
    g_test_add_func("/check/score/told", test_told);
    g_test_add_func("/check/score/metrics", test_metric_names);
    g_test_add_func("/quant/regions", test_regions);
    g_test_add_func("/quant/plan-file", test_plan_file);
    g_test_add_func("/quant/forms", test_forms);
    g_test_add_func("/quant/search/store", test_store);
    g_test_add_func("/quant/bound", test_bound);
    g_test_add_func("/quant/search/quick", test_quick);
    return g_test_run();
}
