/* Each repair on a small model that it helps, and what it must leave alone. */
#include <math.h>
#include <stdlib.h>

#include "op/infer.h"
#include "check/calibrate.h"
#include "quant/correct.h"
#include "quant/equalize.h"
#include "quant/qdq.h"
#include "quant/repair.h"
#include "quant/rounding.h"
#include "check/linear_rows.h"
#include "quant/units.h"
#include "run_model.h"

#define CALIB 8
#define HELD 4

/* A model, samples for it, and a plan with ranges from them. */
typedef struct {
    char *text;
    HnModel *inputs;
    HnData *data;
    HnQuantPlan *plan;
    HnScorer *scorer;
    HnCaptureOptions samples;
    HnSearchOptions search;
    GPtrArray *units; /* models that took the place of the text's */
    guint same_units; /* times that ranges were asked for without others */
} Case;

static HnModel *typed(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = test_model(text);
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_assert_no_error(error);
    return m;
}

static HnModel *copy_of(HnModel *m)
{
    g_autoptr(GString) text = g_string_new(NULL);
    hn_model_print(m, -1, text);
    return typed(text->str);
}

static HnModel *open_case(gpointer data, GError **error)
{
    const Case *c = data;
    (void)error;
    return c->units->len > 0 ? copy_of(c->units->pdata[c->units->len - 1]) : typed(c->text);
}

static HnModel *build_case(gpointer data, const HnQuantPlan *p, GError **error)
{
    const Case *c = data;
    HnQuantLog log;
    return hn_quant_build(p, &c->search, &log, error);
}

/* Spans of all that is wanted: of most of what was seen, or of a share of it. */
static gboolean set_spans(const Case *c, HnQuantPlan *p, HnCalibMethod method, GError **error)
{
    g_autoptr(HnModel) m = open_case((gpointer)c, error);
    g_autoptr(HnCalibrator) k = hn_calibrator_new(m, &hn_backend_ref, &(HnCalibrateOptions){ .threads = 1 }, error);
    const HnQuantizer q = hn_quantizer_of(&p->o);
    for (int64_t i = 0; i < CALIB; i++) {
        g_autoptr(HnSample) s = hn_data_load(c->data, i, error);
        g_assert_true(hn_calibrator_run(k, s->in, error));
    }
    hn_quant_spread(p, m);
    g_autoptr(GPtrArray) values = hn_quant_wanted(p, m);
    for (guint i = 0; i < values->len; i++) {
        HnQuantSpan span;
        const HnValue *v = values->pdata[i];
        hn_quant_span_of(hn_calibrator_get(k, v->name), method, 99, &q, &span);
        hn_quant_plan_set_span(p, v->name, span.lo, span.hi);
    }
    return TRUE;
}

static gboolean recalibrate(gpointer data, HnQuantPlan *const *p, gboolean same_units, GError **error)
{
    Case *c = data;
    g_autoptr(HnModel) now = open_case(data, error), first = typed(c->text);
    g_assert_cmpint(hn_model_equal(now, first, NULL), ==, same_units);
    c->same_units += same_units;
    for (int k = 0; k < HN_CALIB_METHODS; k++)
        if (!set_spans(data, p[k], (HnCalibMethod)k, error))
            return FALSE;
    return TRUE;
}

static gboolean replace(gpointer data, HnModel *m, GError **error)
{
    Case *c = data;
    (void)error;
    g_ptr_array_add(c->units, copy_of(m));
    return TRUE;
}

static void case_clear(Case *c)
{
    g_ptr_array_unref(c->units);
    hn_scorer_free(c->scorer);
    hn_quant_plan_free(c->plan);
    hn_data_free(c->data);
    hn_model_free(c->inputs);
    g_free(c->text);
}

static void case_init(Case *c, const char *text, const HnQuantOptions *o, HnQuantForm form)
{
    g_autoptr(GError) error = NULL;
    *c = (Case){ .text = g_strdup(text), .inputs = typed(text) };
    c->units = g_ptr_array_new_with_free_func((GDestroyNotify)hn_model_free);
    HnValue *inputs[] = { c->inputs->graph->inputs->pdata[0] };
    c->data = hn_data_open("random:12", inputs, 1, &(HnDataOptions){ .seed = 5 }, &error);
    g_assert_no_error(error);
    c->plan = hn_quant_plan_new(o);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(c->inputs);
    for (guint i = 0; i < nodes->len; i++)
        hn_quant_plan_set_form(c->plan, hn_node_out(nodes->pdata[i], 0)->name, form);
    if (form == HN_FORM_INT8)
        g_assert_true(set_spans(c, c->plan, HN_CALIB_MINMAX, &error));
    const HnScorerOptions so = { .backend = &hn_backend_ref, .threads = 1 };
    c->scorer = hn_scorer_new(typed(text), c->data, CALIB, HELD, &so, &error);
    g_assert_no_error(error);
    c->samples =
        (HnCaptureOptions){ .backend = &hn_backend_ref, .threads = 2, .data = c->data, .first = 0, .n = CALIB };
    c->search = (HnSearchOptions){
        .open = open_case, .data = c, .scorer = c->scorer, .backend = &hn_backend_ref, .threads = 1
    };
}

static double sqnr_of(const Case *c, const HnQuantPlan *p)
{
    g_autoptr(GError) error = NULL;
    HnScore score;
    g_autoptr(HnModel) m = build_case((gpointer)c, p, &error);
    g_assert_no_error(error);
    g_assert_true(hn_scorer_run(c->scorer, m, &score, &error));
    g_assert_no_error(error);
    return score.sqnr;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Rows of the input times rows of the weights are what the node makes. */
static void check_rows(const char *text)
{
    g_autoptr(HnModel) m = typed(text);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 3), out = test_run(s, in);
    const HnTensor *y = out->pdata[0];
    HnLinearRows rows;
    g_assert_true(hn_linear_rows_of(m->graph->nodes->pdata[0], &rows));
    const int64_t n = hn_linear_rows_feed(&rows, in->pdata[0]), all = rows.groups * rows.outs;
    g_assert_cmpint(n * all, ==, y->n);
    g_autofree float *row = g_new(float, (gsize)(rows.groups * rows.k));
    const gboolean conv = y->ndim > 2 && rows.axis == 1;
    const int64_t plane = conv ? y->n / y->dims[0] / y->dims[1] : 1;
    for (int64_t r = 0; r < n; r++) {
        hn_linear_rows_get(&rows, r, row);
        for (int64_t c = 0; c < all; c++) {
            double sum = 0;
            for (int64_t i = 0; i < rows.k; i++)
                sum += (double)row[c / rows.outs * rows.k + i] *
                       (double)((const float *)rows.w->data)[c * rows.row + i * rows.col];
            const int64_t at = conv ? (r / plane * all + c) * plane + r % plane : r * all + c;
            g_assert_cmpfloat_with_epsilon(hn_tensor_get_f64(y, at), sum, 1e-5);
        }
    }
}

static void test_rows(void)
{
    check_rows(
        "opset 17\n%y = Conv(%x:f32[2,4,7,6], w:f32[6,2,3,2]) pads=[1,0,2,1] strides=[2,1] dilations=[1,2] group=2");
    check_rows("opset 17\n%y = Conv(%x:f32[1,3,9], w:f32[5,3,4]) auto_pad='SAME_UPPER'");
    check_rows("opset 17\n%y = MatMul(%x:f32[2,3,5], w:f32[5,4])");
    check_rows("opset 17\n%y = Gemm(%x:f32[3,5], w:f32[4,5]) transB=1");
    check_rows("opset 17\n%y = Gemm(%x:f32[5,3], w:f32[5,4]) transA=1");
    HnLinearRows rows;
    g_autoptr(HnModel) m = typed("opset 17\n%y = MatMul(%x:f32[2,3,5], w:f32[2,5,4])");
    g_assert_false(hn_linear_rows_of(m->graph->nodes->pdata[0], &rows));
}

/* --- rounding ----------------------------------------------------------------------------------------------------- */

/* Inputs of one sign: errors of neighbouring weights add up unless they are chosen together. */
static const char positive[] = "opset 21\n"
                               "%a = Abs(%x:f32[1,8,10,10])\n"
                               "%1 = Conv(%a, w:f32[16,8,3,3], b:f32[16])\n"
                               "%2 = Relu(%1)\n"
                               "%3 = Conv(%2, v:f32[16,1,3,3]) group=16\n"
                               "%y = Exp(%3)\n";

static void test_rounding(void)
{
    Case c;
    g_autoptr(GError) error = NULL;
    HnRoundingLog log;
    case_init(&c, positive, &(HnQuantOptions){ .activations = HN_U8, .reduced = TRUE }, HN_FORM_INT8);
    g_autoptr(HnModel) m = open_case(&c, NULL);
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(c.plan);
    p->o.part = HN_PART_WEIGHTS;
    const double before = sqnr_of(&c, p);
    g_assert_true(hn_quant_round(p, m, &c.samples, &log, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(log.weights, ==, 2);
    g_assert_cmpfloat(log.after, <, 0.5 * log.before);
    g_assert_cmpfloat(sqnr_of(&c, p), >, before + 3);

    const HnRounded *r = g_hash_table_lookup(p->integers, "int8 w");
    const int8_t *q = r->packed.q->data;
    for (int64_t k = 0; k < 16; k++) /* what saturation asks for holds still */
        for (int64_t i = 0; i < 72; i++) {
            if (i + 1 < 72)
                g_assert_cmpint(abs(q[k * 72 + i]) + abs(q[k * 72 + i + 1]), <=, 128);
            if (i + 9 < 72)
                g_assert_cmpint(abs(q[k * 72 + i]) + abs(q[k * 72 + i + 9]), <=, 128);
        }

    g_autoptr(HnQuantPlan) again = hn_quant_plan_copy(c.plan); /* threads and repetition change nothing */
    c.samples.threads = 1;
    g_assert_true(hn_quant_round(again, m, &c.samples, &log, &error));
    const HnRounded *s = g_hash_table_lookup(again->integers, "int8 w");
    g_assert_true(hn_tensor_equal(r->packed.q, s->packed.q));
    case_clear(&c);
}

static void test_rounding_four_bits(void)
{
    static const char *const models[] = {
        "opset 21\n%a = Abs(%x:f32[32,64])\n%1 = MatMul(%a, w:f32[64,24])\n%y = Tanh(%1)\n",
        "opset 21\n%a = Abs(%x:f32[32,64])\n%1 = Gemm(%a, w:f32[24,64]) transB=1\n%y = Tanh(%1)\n",
        "opset 21\n%a = Abs(%x:f32[1,64,9,9])\n%1 = Conv(%a, w:f32[24,64,3,3])\n%y = Tanh(%1)\n",
        "opset 21\n%a = Abs(%x:f32[1,128,9])\n%1 = Conv(%a, w:f32[24,64,1]) group=2\n%y = Tanh(%1)\n",
    };
    for (guint i = 0; i < 2 * G_N_ELEMENTS(models); i++) {
        Case c;
        HnRoundingLog log;
        g_autoptr(GError) error = NULL;
        case_init(&c, models[i / 2], &(HnQuantOptions){ .block = 32, .symmetric_block = i % 2 }, HN_FORM_W4);
        g_autoptr(HnModel) m = open_case(&c, NULL);
        const double before = sqnr_of(&c, c.plan);
        g_assert_true(hn_quant_round(c.plan, m, &c.samples, &log, &error));
        g_assert_no_error(error);
        g_assert_cmpfloat(sqnr_of(&c, c.plan), >, before + 1);
        /* to 8 bits, too */
        g_autoptr(HnQuantPlan) eight = hn_quant_plan_copy(c.plan);
        hn_quant_plan_set_form(eight, "1", HN_FORM_W8);
        const double rounded = sqnr_of(&c, eight);
        g_hash_table_remove_all(eight->integers);
        g_assert_cmpfloat(rounded, >, sqnr_of(&c, eight) + 1);
        case_clear(&c);
    }
}

/* Integers of p, or how many of them are those of `other`. */
static int64_t integers_of(const HnQuantPlan *p, const HnQuantPlan *other)
{
    GHashTableIter iter;
    gpointer key, rounded;
    int64_t n = 0;
    g_hash_table_iter_init(&iter, p->integers);
    while (g_hash_table_iter_next(&iter, &key, &rounded)) {
        const HnTensor *a = ((const HnRounded *)rounded)->packed.q;
        const HnRounded *r = other != NULL ? g_hash_table_lookup(other->integers, key) : NULL;
        for (int64_t k = 0; k < a->n; k++)
            n += other == NULL || (r != NULL && hn_tensor_get_i64(a, k) == hn_tensor_get_i64(r->packed.q, k));
    }
    return n;
}

/* Each plan's integers, from one pass over all samples, are those of a pass over all but one, but for the order of
 * sums; and not those of a pass over all. */
static void check_without(const char *text, const HnQuantOptions *o, HnQuantForm form, guint weights)
{
    Case c;
    HnRoundingLog log;
    g_autoptr(GError) error = NULL;
    case_init(&c, text, o, form);
    g_autoptr(HnModel) m = open_case(&c, NULL);
    g_autoptr(HnQuantPlan) all = hn_quant_plan_copy(c.plan);
    HnQuantPlan *p[CALIB];
    for (int i = 0; i < CALIB; i++)
        p[i] = hn_quant_plan_copy(c.plan);
    g_assert_true(hn_quant_round(all, m, &c.samples, &log, &error));
    g_assert_true(hn_quant_round_without(p, m, &c.samples, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(m->graph->outputs->len, ==, 1); /* its own again */
    g_assert_cmpstr(((const HnValue *)m->graph->outputs->pdata[0])->name, ==, "y");
    for (int i = 0; i < CALIB; i++) {
        g_autoptr(HnQuantPlan) one = hn_quant_plan_copy(c.plan);
        g_autoptr(HnData) rest = hn_data_without(c.data, i);
        HnCaptureOptions some = c.samples;
        some.data = rest;
        some.n = CALIB - 1;
        g_assert_true(hn_quant_round(one, m, &some, &log, &error));
        const int64_t n = integers_of(one, NULL);
        g_assert_cmpuint(g_hash_table_size(p[i]->integers), ==, weights);
        g_assert_cmpint(integers_of(p[i], one), >=, n - n / 200);
        g_assert_cmpint(integers_of(p[i], all), <, n - n / 200);
        hn_quant_plan_free(p[i]);
    }
    case_clear(&c);
}

static void test_rounding_without(void)
{
    check_without(positive, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8, 2);
    check_without("opset 21\n%a = Abs(%x:f32[32,64])\n%1 = MatMul(%a, w:f32[64,24])\n%y = Tanh(%1)\n",
                  &(HnQuantOptions){ .block = 32 }, HN_FORM_W4, 2);
}

/* Integers are for the form that they were chosen for, and give way where a bias asks for a larger scale. */
static void test_rounding_elsewhere(void)
{
    Case c;
    HnRoundingLog log;
    HnPacked k;
    case_init(&c, positive, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    g_autoptr(HnModel) m = open_case(&c, NULL), fresh = open_case(&c, NULL);
    const HnNode *n = fresh->graph->nodes->pdata[1];
    const HnValue *w = hn_node_in(n, 1);
    g_assert_true(hn_quant_round(c.plan, m, &c.samples, &log, NULL));
    const HnRounded *r = g_hash_table_lookup(c.plan->integers, "int8 w");
    g_assert_true(hn_quant_pack(c.plan, n, w, 0, NULL, &k, NULL));
    g_autoptr(HnTensor) nearest = hn_tensor_copy(k.q, NULL, NULL);
    hn_rounded_use(c.plan, "w", HN_FORM_W8, &k);
    g_assert_true(hn_tensor_equal(k.q, nearest));
    ((float *)k.scale->data)[3] *= 2;
    hn_rounded_use(c.plan, "w", HN_FORM_INT8, &k);
    g_assert_cmpmem((int8_t *)k.q->data + 3 * 72, 72, (int8_t *)nearest->data + 3 * 72, 72);
    g_assert_cmpmem((int8_t *)k.q->data, 3 * 72, (int8_t *)r->packed.q->data, 3 * 72);
    g_assert_true(!hn_tensor_equal(k.q, nearest));
    hn_packed_clear(&k);
    case_clear(&c);
}

/* --- biases ------------------------------------------------------------------------------------------------------- */

/* Ranges that cut off half of what there is shift all means. */
static void check_bias(const char *text, guint nodes)
{
    Case c;
    HnCorrectLog log;
    g_autoptr(GError) error = NULL;
    case_init(&c, text, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    hn_quant_plan_set_span(c.plan, "a", 0, 1);
    const HnCorrectOptions o = { .open = open_case, .build = build_case, .data = &c, .capture = c.samples };
    const double before = sqnr_of(&c, c.plan);
    g_assert_true(hn_quant_correct(c.plan, &o, &log, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(log.nodes, ==, nodes);
    g_assert_cmpfloat(sqnr_of(&c, c.plan), >, before + 3);
    case_clear(&c);
}

static void test_bias(void)
{
    check_bias("opset 17\n%a = Abs(%x:f32[1,8,10,10])\n%1 = Conv(%a, w:f32[16,8,3,3]=fill(1,0,0.1), b:f32[16])\n"
               "%2 = Relu(%1)\n%3 = Conv(%2, v:f32[4,16,1,1]=fill(2,0,0.1))\n%y = Atan(%3)\n",
               2);
    check_bias("opset 17\n%a = Abs(%x:f32[6,32])\n%1 = MatMul(%a, w:f32[32,8]=fill(1,0,0.1))\n%2 = Add(%1, b:f32[8])\n"
               "%y = Atan(%2)\n",
               1);
    check_bias("opset 17\n%a = Abs(%x:f32[6,32])\n%1 = Gemm(%a, w:f32[32,8]=fill(1,0,0.1))\n%y = Atan(%1)\n", 1);
}

/* Rounds that begin with what earlier ones have found come to what whole runs come to, to the bit. */
static void test_bias_again(void)
{
    const char *text =
        "opset 17\n%a = Abs(%x:f32[1,8,10,10])\n%1 = Conv(%a, w:f32[16,8,3,3]=fill(1,0,0.1), b:f32[16])\n"
        "%2 = Relu(%1)\n%3 = Conv(%2, v:f32[16,16,1,1]=fill(2,0,0.1))\n"
        "%4 = Conv(%a, u:f32[16,8,3,3]=fill(3,0,0.1))\n%5 = Add(%3, %4)\n"
        "%6 = Conv(%5, t:f32[4,16,1,1]=fill(4,0,0.1))\n%y = Atan(%6)\n";
    g_autoptr(HnBudget) limited = hn_budget_new((gsize)1 << 30);
    g_autoptr(GError) error = NULL;
    HnCorrectLog log[2];
    Case c[2];
    for (int k = 0; k < 2; k++) {
        case_init(&c[k], text, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
        hn_quant_plan_set_span(c[k].plan, "a", 0, 1);
        HnCorrectOptions o = { .open = open_case, .build = build_case, .data = &c[k], .capture = c[k].samples };
        o.capture.budget = k == 1 ? limited : NULL;
        g_assert_true(hn_quant_correct(c[k].plan, &o, &log[k], &error));
        g_assert_no_error(error);
    }
    g_assert_cmpuint(log[0].rounds, ==, 3);
    g_assert_cmpuint(log[0].known, ==, 4);
    g_assert_cmpuint(log[1].known, ==, 0);
    g_assert_cmpuint(g_hash_table_size(c[0].plan->shifts), ==, 4);
    GHashTableIter iter;
    gpointer name, shift;
    g_hash_table_iter_init(&iter, c[0].plan->shifts);
    while (g_hash_table_iter_next(&iter, &name, &shift)) {
        const HnTensor *one = shift, *other = g_hash_table_lookup(c[1].plan->shifts, name);
        g_assert_cmpmem(one->data, one->bytes, other->data, other->bytes);
    }
    case_clear(&c[0]);
    case_clear(&c[1]);
}

/* --- units -------------------------------------------------------------------------------------------------------- */

/* Other units change weights and nothing that comes out; `free` classes may have others. */
static void check_units(const char *text, int free)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = typed(text), other = typed(text);
    g_autoptr(HnChannels) u = hn_channels_new(m, HN_BOND_UNIT, NULL, &error);
    g_assert_no_error(error);
    const int n = hn_channels_count(u);
    g_autofree double *s = g_new(double, n + 1);
    g_autofree gboolean *seen = g_new0(gboolean, n + 1);
    HnRng rng = hn_rng(9);
    int found = 0;
    for (int k = 0; k < n; k++)
        s[k] = exp2(hn_rng_range(&rng, -3, 3));
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        int axis;
        int64_t channels;
        const int *at = hn_channels_at(u, hn_node_out(m->graph->nodes->pdata[i], 0), &axis, &channels);
        for (int64_t c = 0; at != NULL && c < channels; c++) {
            found += hn_channels_locked(u, at[c]) == NULL && !seen[at[c]];
            seen[at[c]] = TRUE;
        }
    }
    g_assert_cmpint(found, ==, free);
    g_assert_true(hn_units_scale(u, other, s, NULL, &error));
    g_autoptr(HnSession) a = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) b = test_session(other, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(a, 7), want = test_run(a, in), got = test_run(b, in);
    for (guint i = 0; i < want->len; i++)
        test_assert_close(got->pdata[i], want->pdata[i], 1e-4, 1e-4, text);
    gboolean same = TRUE;
    for (guint i = 0; i < m->graph->weights->len; i++)
        same = same && hn_tensor_equal(((const HnValue *)m->graph->weights->pdata[i])->weight,
                                       ((const HnValue *)other->graph->weights->pdata[i])->weight);
    g_assert_true(same == (free == 0));
}

static void test_units(void)
{
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,3,3], b:f32[8])\n%2 = Relu(%1)\n"
                "%3 = MaxPool(%2) kernel_shape=[2,2]\n%y = Conv(%3, v:f32[4,8,1,1], c:f32[4])\n",
                8);
    /* depthwise: other units before and behind */
    check_units(
        "opset 17\n%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,1,1])\n%2 = Relu(%1)\n"
        "%3 = Conv(%2, d:f32[8,1,3,3], e:f32[8]) group=8\n%4 = LeakyRelu(%3)\n%y = Conv(%4, v:f32[4,4,1,1]) group=2\n",
        16);
    /* a residual: one unit for both summands */
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,1,1])\n%2 = Relu(%1)\n"
                "%3 = Conv(%2, v:f32[8,8,1,1])\n%4 = Add(%2, %3)\n%y = Conv(%4, u:f32[4,8,1,1])\n",
                8);
    /* channels are shuffled and a half of them read elsewhere; and features of a plane share a channel's unit */
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,4,4], w:f32[8,3,1,1])\n%2 = Reshape(%1, s:i64[5]={1,2,4,4,4})\n"
                "%3 = Transpose(%2) perm=[0,2,1,3,4]\n%4 = Reshape(%3, t:i64[4]={1,8,4,4})\n"
                "%5, %6 = Split(%4, z:i64[2]={4,4}) axis=1\n%7 = Conv(%5, v:f32[4,4,1,1])\n%8 = Concat(%6, %7) axis=1\n"
                "%9 = Flatten(%8)\n%y = Gemm(%9, k:f32[128,6])\n",
                12);
    check_units("opset 17\n%1 = LayerNormalization(%x:f32[2,5,8], g:f32[8], b:f32[8])\n%2 = MatMul(%1, w:f32[8,6])\n"
                "%3 = Add(%2, c:f32[6])\n%4 = Mul(%3, d:f32[6])\n%y = MatMul(%4, v:f32[6,3])\n",
                14);
    /* a bias of two nodes becomes two */
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,1,1], b:f32[8])\n%2 = Relu(%1)\n"
                "%3 = Conv(%2, v:f32[8,8,1,1], b)\n%4 = Relu(%3)\n%y = Conv(%4, u:f32[4,8,1,1])\n",
                16);
    /* what must not change: outputs, functions that know units, weights of two nodes */
    check_units(
        "opset 17\n%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,1,1])\n%2 = Sigmoid(%1)\n%y = Conv(%2, v:f32[4,8,1,1])\n", 0);
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,1,1])\n%2 = Clip(%1, l:f32={-0.1}, h:f32={6})\n"
                "%y = Conv(%2, v:f32[4,8,1,1])\n",
                0);
    /* a pool over channels, and a sum of channels along different axes */
    check_units("opset 17\n%1 = MatMul(%x:f32[1,4,3], w:f32[3,6])\n%2 = MaxPool(%1) kernel_shape=[3] pads=[1,1]\n"
                "%y = MatMul(%2, v:f32[6,3])\n",
                0);
    check_units("opset 17\n%1 = MatMul(%x:f32[1,4,3], w:f32[3,4])\n%2 = Conv(%u:f32[1,3,4], v:f32[4,3,1])\n"
                "%3 = Add(%1, %2)\n%y = MatMul(%3, z:f32[4,3])\n",
                0);
    check_units("opset 17\n%1 = Conv(%x:f32[1,128,2,2], w:f32[128,128,1,1])\n%2 = Relu(%1)\n%y = Conv(%2, w)\n", 0);
    check_units("opset 17\n%1 = Conv(%x:f32[1,32,2,2], w:f32[32,32,1,1])\n%2 = Relu(%1)\n%y = Conv(%2, w)\n", 0);
    /* weights that are another one's times a number for each output can share integers: what they read keeps its unit
     */
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,2,2], z:f32[24,3,1,1])\n%2 = Relu(%1)\n"
                "%3 = Conv(%2, w:f32[24,24,1,1]=fill(7,-1,1))\n%4 = Relu(%3)\n"
                "%5 = Conv(%4, v:f32[24,24,1,1]=fill(7,-3,3))\n%6 = Relu(%5)\n%y = Conv(%6, u:f32[4,24,1,1])\n",
                24);
    check_units("opset 17\n%1 = Conv(%x:f32[1,3,2,2], z:f32[24,3,1,1])\n%2 = Relu(%1)\n"
                "%3 = Conv(%2, w:f32[24,24,1,1]=fill(7,-1,1))\n%4 = Relu(%3)\n"
                "%5 = Conv(%4, v:f32[24,24,1,1]=fill(8,-1,1))\n%6 = Relu(%5)\n%y = Conv(%6, u:f32[4,24,1,1])\n",
                72);
    check_units("opset 17 graph g(%x:f32[1,8,8,8]) -> (%1, %y) { %1 = Conv(%x, w:f32[8,8,1,1]) %2 = Relu(%1) "
                "%y = Conv(%2, v:f32[8,8,1,1]) }",
                0);
}

/* What a model only declares takes no memory, what is there counts, and values that share channels share a list. */
static void test_units_memory(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) empty = typed("opset 17\n%y = LayerNormalization(%x:f32[0,100000000], s:f32[1])\n");
    g_autoptr(HnChannels) none = hn_channels_new(empty, HN_BOND_UNIT, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_channels_count(none), ==, 0);
    g_autoptr(GString) text = g_string_new("opset 17\n%y0 = MatMul(%x:f32[0,1], w:f32[1,50000])\n");
    for (int i = 1; i <= 200; i++)
        g_string_append_printf(text, "%%y%d = Relu(%%y%d)\n", i, i - 1);
    g_autoptr(HnModel) long_one = typed(text->str);
    g_autoptr(HnBudget) budget = hn_budget_new((gsize)4 << 20), small = hn_budget_new((gsize)400 << 10);
    HnChannels *u = hn_channels_new(long_one, HN_BOND_UNIT, budget, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_channels_count(u), ==, 50000);
    g_assert_cmpuint(hn_budget_peak(budget), >=, 50000 * 16);
    g_assert_cmpuint(hn_budget_peak(budget), <, (gsize)1 << 20);
    hn_channels_free(u);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    g_assert_null(hn_channels_new(long_one, HN_BOND_UNIT, small, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_cmpuint(hn_budget_used(small), ==, 0);
}

/* Channels of very different size, made so by one layer and taken back by the next. */
static char *uneven(const char *between)
{
    g_autoptr(GString) w = g_string_new(NULL), v = g_string_new(NULL);
    HnRng rng = hn_rng(4);
    for (int i = 0; i < 8 * 4; i++)
        g_string_append_printf(w, "%s%.6g", i > 0 ? "," : "", hn_rng_range(&rng, -1, 1) * exp2(-(i / 4)));
    for (int i = 0; i < 6 * 8; i++)
        g_string_append_printf(v, "%s%.6g", i > 0 ? "," : "", hn_rng_range(&rng, -1, 1) * exp2(i % 8));
    return g_strdup_printf("opset 17\n%%a = Tanh(%%x:f32[1,4,12,12])\n%%1 = Conv(%%a, w:f32[8,4,1,1]={%s})\n"
                           "%%2 = %s\n%%3 = Conv(%%2, v:f32[6,8,1,1]={%s})\n%%y = Tanh(%%3)\n",
                           w->str, between, v->str);
}

static void check_equalize(const char *between, gboolean from_samples, double gain)
{
    Case c;
    HnEqualizeLog log;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = uneven(between);
    case_init(&c, text, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    const double before = sqnr_of(&c, c.plan);
    g_autoptr(HnModel) m = open_case(&c, NULL);
    g_assert_true(hn_quant_equalize(c.plan, m, from_samples, &c.samples, &log, &error));
    g_assert_no_error(error);
    g_assert_true(replace(&c, m, NULL) && set_spans(&c, c.plan, HN_CALIB_MINMAX, NULL));
    g_assert_cmpfloat(sqnr_of(&c, c.plan), >, before + gain);
    case_clear(&c);
}

static void test_equalize(void)
{
    check_equalize("Relu(%1)", FALSE, 10);
    check_equalize("Relu(%1)", TRUE, 10);
    check_equalize("Clip(%1, l:f32={0}, h:f32={6})", TRUE, 10);
    check_equalize("MaxPool(%1) kernel_shape=[2,2]", FALSE, 10);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void repair(Case *c, guint wanted, HnRepairLog *log)
{
    g_autoptr(GError) error = NULL;
    const HnRepairOptions o = { .search = &c->search,
                                .samples = c->samples,
                                .held_first = CALIB,
                                .held = HELD,
                                .wanted = wanted,
                                .parts = TRUE,
                                .replace = replace,
                                .calibrate = recalibrate,
                                .data = c };
    c->same_units = 0;
    g_assert_true(hn_quant_repair(&c->plan, &o, log, &error));
    g_assert_no_error(error);
    const guint units = 1u << HN_REPAIR_EQUALIZE | 1u << HN_REPAIR_SMOOTH;
    if ((log->tried & 1u << HN_REPAIR_RANGES) != 0)
        g_assert_cmpuint(c->same_units, ==, (log->kept & units) == 0);
    for (guint i = 0; i < log->steps->len; i++) { /* what promises more noise is not even tried */
        const HnRepairStep *s = &g_array_index(log->steps, HnRepairStep, i);
        const char *promise = (1u << s->repair & units) != 0 ? strstr(s->what, "; ") : NULL;
        if (promise != NULL && g_ascii_strtod(promise + 2, NULL) > 1)
            g_assert_cmpfloat(hn_repair_error(&s->after), ==, hn_repair_error(&s->before));
    }
}

/* Where the time is over nothing is repaired, and the plan stays. */
static void test_late(void)
{
    Case c;
    HnRepairLog log;
    HnTuneBudget over = { .end = 1 };
    g_autofree char *text = uneven("Relu(%1)");
    case_init(&c, text, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    c.search.budget = &over;
    const double before = sqnr_of(&c, c.plan);
    repair(&c, HN_REPAIR_ALL, &log);
    g_assert_cmpuint(log.steps->len, ==, 0);
    g_assert_cmpuint(log.kept, ==, 0);
    g_assert_cmpfloat(sqnr_of(&c, c.plan), ==, before);
    hn_repair_log_clear(&log);
    case_clear(&c);
}

/* Four samples judge: what is fitted to samples is not kept for a gain that they may show by chance. */
static void check_fitted(const HnRepairLog *log)
{
    for (guint i = 0; i < log->steps->len; i++) {
        const HnRepairStep *s = &g_array_index(log->steps, HnRepairStep, i);
        const gboolean fitted = s->repair != HN_REPAIR_ROUNDING && s->repair != HN_REPAIR_BIAS;
        const double part = hn_repair_error(&s->after) / hn_repair_error(&s->before);
        if (s->kept)
            g_assert_cmpfloat(part, <, fitted ? 0.4 : 0.99);
    }
}

static void test_repair(void)
{
    Case c;
    HnRepairLog log;
    g_autofree char *text = uneven("Relu(%1)");
    case_init(&c, text, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    const double before = sqnr_of(&c, c.plan);
    repair(&c, HN_REPAIR_ALL, &log);
    g_assert_cmpuint(log.steps->len, ==, HN_REPAIRS);
    g_assert_true((log.kept & (1u << HN_REPAIR_EQUALIZE | 1u << HN_REPAIR_SMOOTH)) != 0);
    g_assert_cmpfloat(sqnr_of(&c, c.plan), >, before + 10);
    g_assert_cmpfloat(log.repaired.sqnr, >, log.full.sqnr + 10);
    g_assert_cmpfloat(log.weights.sqnr, >, log.full.sqnr);
    g_assert_cmpfloat(log.activations.sqnr, >, log.full.sqnr);
    check_fitted(&log);
    for (guint i = 0; i < log.steps->len; i++) {
        const HnRepairStep *s = &g_array_index(log.steps, HnRepairStep, i);
        g_assert_true(!s->kept || hn_repair_error(&s->after) < hn_repair_error(&s->before));
        g_assert_true(!s->kept || hn_repair_db(&s->after) > hn_repair_db(&s->before));
        g_assert_true(s->kept == ((log.kept & 1u << s->repair) != 0));
    }
    hn_repair_log_clear(&log);
    case_clear(&c);
}

static void count_rounding(gpointer data, const char *what, guint64 done, guint64 total)
{
    guint *passes = data;
    *passes += strcmp(what, "rounding") == 0 && done == 0 && total > 0;
}

/* What is known to be wanted is done in an order in which weights are rounded once, with the same result. */
static void test_anyway(void)
{
    const guint units = 1u << HN_REPAIR_EQUALIZE | 1u << HN_REPAIR_SMOOTH, rounding = 1u << HN_REPAIR_ROUNDING;
    double sqnr[2];
    for (int apart = 0; apart < 2; apart++) {
        Case c;
        HnRepairLog log;
        g_autoptr(GError) error = NULL;
        g_autofree char *text = uneven("Relu(%1)");
        guint passes = 0;
        case_init(&c, text, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
        const HnProgress progress = { .fn = count_rounding, .data = &passes };
        HnRepairOptions o = { .search = &c.search, .samples = c.samples, .anyway = TRUE, .replace = replace };
        o.samples.progress = &progress;
        o.calibrate = recalibrate;
        o.data = &c;
        for (int step = 0; step <= apart; step++) {
            o.wanted = apart ? step == 0 ? units : rounding : units | rounding;
            g_assert_true(hn_quant_repair(&c.plan, &o, &log, &error));
            g_assert_no_error(error);
            g_assert_cmpuint(log.kept, ==, o.wanted);
            hn_repair_log_clear(&log);
        }
        g_assert_cmpuint(passes, ==, 1);
        sqnr[apart] = sqnr_of(&c, c.plan);
        case_clear(&c);
    }
    g_assert_cmpfloat(sqnr[0], ==, sqnr[1]);
}

/* A model that is repaired already gains nothing from the same once more, and stays as it is. */
static void test_dropped(void)
{
    Case c;
    HnRepairLog log;
    case_init(&c, positive, &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    repair(&c, HN_REPAIR_ALL, &log);
    check_fitted(&log);
    hn_repair_log_clear(&log);
    const double before = sqnr_of(&c, c.plan);
    const guint kept = g_hash_table_size(c.plan->integers);
    repair(&c, 1u << HN_REPAIR_ROUNDING, &log);
    g_assert_cmpuint(log.kept, ==, 0);
    g_assert_cmpfloat(sqnr_of(&c, c.plan), ==, before);
    g_assert_cmpuint(g_hash_table_size(c.plan->integers), ==, kept);
    hn_repair_log_clear(&log);
    case_clear(&c);
}

/* Channels that are alike as they are: equalizing them promises nothing. */
static void test_no_promise(void)
{
    Case c;
    HnRepairLog log;
    case_init(
        &c, "opset 17\n%1 = Conv(%x:f32[1,8,12,12], w:f32[16,8,3,3])\n%2 = Relu(%1)\n%y = Conv(%2, v:f32[8,16,1,1])\n",
        &(HnQuantOptions){ .activations = HN_U8 }, HN_FORM_INT8);
    repair(&c, 1u << HN_REPAIR_EQUALIZE, &log);
    const HnRepairStep *s = &g_array_index(log.steps, HnRepairStep, 0);
    g_test_message("%s", s->what);
    g_assert_cmpfloat(g_ascii_strtod(strstr(s->what, "; ") + 2, NULL), >, 1);
    g_assert_false(s->kept);
    hn_repair_log_clear(&log);
    case_clear(&c);
}

static void test_names(void)
{
    guint set;
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_repair_parse("auto", &set, NULL));
    g_assert_cmpuint(set, ==, HN_REPAIR_ALL);
    g_assert_true(hn_repair_parse("none", &set, NULL));
    g_assert_cmpuint(set, ==, 0);
    g_assert_true(hn_repair_parse("bias,rounding", &set, NULL));
    g_assert_cmpuint(set, ==, 1u << HN_REPAIR_BIAS | 1u << HN_REPAIR_ROUNDING);
    g_assert_false(hn_repair_parse("bias,luck", &set, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quant/rows", test_rows);
    g_test_add_func("/quant/rounding/int8", test_rounding);
    g_test_add_func("/quant/rounding/four-bits", test_rounding_four_bits);
    g_test_add_func("/quant/rounding/without", test_rounding_without);
    g_test_add_func("/quant/rounding/elsewhere", test_rounding_elsewhere);
    g_test_add_func("/quant/correct", test_bias);
    g_test_add_func("/quant/correct/again", test_bias_again);
    g_test_add_func("/quant/units", test_units);
    g_test_add_func("/quant/units-memory", test_units_memory);
    g_test_add_func("/quant/equalize", test_equalize);
    g_test_add_func("/quant/repair/all", test_repair);
    g_test_add_func("/quant/repair/late", test_late);
    g_test_add_func("/quant/repair/anyway", test_anyway);
    g_test_add_func("/quant/repair/dropped", test_dropped);
    g_test_add_func("/quant/repair/no-promise", test_no_promise);
    g_test_add_func("/quant/repair/names", test_names);
    return g_test_run();
}
