/* Weights as integers, and a plan carried out on a model. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "ir/ir_text.h"
#include "op/infer.h"
#include "quant/pack_weights.h"
#include "quant/qdq.h"

static HnTensor *random_weights(int ndim, const int64_t *dims, uint64_t seed)
{
    HnTensor *w = hn_tensor_new(HN_F32, ndim, dims, NULL, NULL);
    HnRng rng = hn_rng(seed);
    for (int64_t i = 0; i < w->n; i++)
        ((float *)w->data)[i] = (float)hn_rng_normal(&rng);
    return w;
}

static void check_error(const HnTensor *w, const HnPacked *k, int64_t per_channel)
{
    for (int64_t i = 0; i < w->n; i++) {
        const int64_t c = k->axis < 0 ? 0 : i / per_channel;
        const double scale = hn_tensor_get_f64(k->scale, c);
        const double got = scale * (double)((const int8_t *)k->q->data)[i];
        g_assert_cmpfloat(fabs(got - hn_tensor_get_f64(w, i)), <=, scale * 0.5001);
    }
}

static void test_pairs(void)
{
    const int64_t dims[] = { 16, 12, 3, 3 };
    g_autoptr(HnTensor) w = random_weights(4, dims, 3);
    HnPacked k;
    g_assert_true(hn_pack_s8(w, 0, NULL, TRUE, FALSE, NULL, &k, NULL));
    const int8_t *q = k.q->data;
    int most = 0;
    for (int64_t c = 0; c < 16; c++)
        for (int64_t i = 0; i < 108; i++) { /* neighbours in both orders of the sum */
            const int8_t *row = q + c * 108;
            if (i + 1 < 108)
                g_assert_cmpint(255 * (abs(row[i]) + abs(row[i + 1])), <=, 32767);
            if (i + 9 < 108)
                g_assert_cmpint(255 * (abs(row[i]) + abs(row[i + 9])), <=, 32767);
            most = MAX(most, abs(row[i]));
        }
    g_assert_cmpint(most, >, 63); /* no more is given away than has to be */
    g_assert_cmpint(k.reduced, >, 0);
    check_error(w, &k, 108);
    hn_packed_clear(&k);

    g_assert_true(hn_pack_s8(w, 0, NULL, FALSE, FALSE, NULL, &k, NULL));
    g_assert_cmpint(k.reduced, ==, 0);
    check_error(w, &k, 108);
    hn_packed_clear(&k);
}

static void test_zeros(void)
{
    const int64_t dims[] = { 2, 3 };
    g_autoptr(HnTensor) w = hn_tensor_new(HN_F32, 2, dims, NULL, NULL);
    ((float *)w->data)[0] = 1e-42f; /* denormal */
    HnPacked k;
    g_assert_true(hn_pack_s8(w, 0, NULL, TRUE, FALSE, NULL, &k, NULL));
    for (int i = 0; i < 2; i++)
        g_assert_cmpfloat(((const float *)k.scale->data)[i], ==, 1);
    for (int i = 0; i < 6; i++)
        g_assert_cmpint(((const int8_t *)k.q->data)[i], ==, 0);
    hn_packed_clear(&k);
}

static void test_four_bits(void)
{
    const int64_t dims[] = { 70, 5 }; /* the last block is short */
    g_autoptr(HnTensor) w = random_weights(2, dims, 5);
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        HnPacked k;
        g_assert_true(hn_pack_4(w, 0, 32, symmetric, NULL, &k, NULL));
        g_assert_cmpint(k.scale->dims[0], ==, 3);
        for (int64_t i = 0; i < w->n; i++) {
            const int64_t s = i / 5 / 32 * 5 + i % 5;
            const double scale = hn_tensor_get_f64(k.scale, s);
            const double q = hn_tensor_get_f64(k.q, i) - hn_tensor_get_f64(k.zero, s);
            g_assert_cmpfloat(fabs(scale * q - hn_tensor_get_f64(w, i)), <=, scale * 1.0001);
        }
        hn_packed_clear(&k);
    }
}

static void test_bias(void)
{
    const int64_t n = 3;
    g_autoptr(HnTensor) b = hn_tensor_new(HN_F32, 1, &n, NULL, NULL);
    const double unit[] = { 0.5, 1e-3, 1e-12 };
    const float values[] = { 3.2f, -7, 0 };
    for (int i = 0; i < 3; i++)
        ((float *)b->data)[i] = values[i];
    g_autoptr(HnTensor) q = hn_pack_bias(b, unit, NULL);
    g_assert_cmpint(((const int32_t *)q->data)[0], ==, 6);
    g_assert_cmpint(((const int32_t *)q->data)[1], ==, -7000);
    ((float *)b->data)[2] = 1; /* 1e12 units */
    g_assert_null(hn_pack_bias(b, unit, NULL));
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

static HnModel *parse(const char *text)
{
    GError *error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_verify(m, &error));
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    return m;
}

static guint count(HnModel *m, const char *op)
{
    guint n = 0;
    for (guint i = 0; i < m->graph->nodes->len; i++)
        n += g_str_equal(((const HnNode *)m->graph->nodes->pdata[i])->op_type, op);
    return n;
}

static HnQuantPlan *plan_all(HnModel *m)
{
    HnQuantPlan *p = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8, .reduced = TRUE, .block = 32 });
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    for (guint i = 0; i < nodes->len; i++)
        hn_quant_plan_set_form(p, hn_node_out(nodes->pdata[i], 0)->name, HN_FORM_INT8);
    hn_quant_spread(p, m);
    g_autoptr(GPtrArray) values = hn_quant_wanted(p, m);
    for (guint i = 0; i < values->len; i++)
        hn_quant_plan_set_span(p, ((const HnValue *)values->pdata[i])->name, -1, 3);
    return p;
}

static void test_chain(void)
{
    g_autoptr(HnModel) m = parse("opset 17\n"
                                 "%1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,3,3], b:f32[8])\n"
                                 "%2 = Relu(%1)\n"
                                 "%3 = MaxPool(%2) kernel_shape=[2,2]\n"
                                 "%4 = Conv(%3, v:f32[4,8,1,1], c:f32[4])\n"
                                 "%y = Exp(%4)\n");
    g_autoptr(HnQuantPlan) p = plan_all(m);
    HnQuantLog log;
    GError *error = NULL;
    g_assert_true(hn_quant_apply(p, m, NULL, &log, &error));
    g_assert_no_error(error);
    /* x, Relu's and MaxPool's result; what Exp reads stays f32, and so does what lies between Conv and Relu */
    g_assert_cmpuint(count(m, "QuantizeLinear"), ==, 3);
    g_assert_cmpuint(count(m, "DequantizeLinear"), ==, 3 + 2 + 2); /* weights and biases too */
    g_assert_cmpuint(log.int8, ==, 2);
    g_assert_cmpuint(log.pairs, ==, 3);
    g_assert_cmpuint(log.without_bias, ==, 0);
}

static void test_shared_weight(void)
{
    g_autoptr(HnModel) m = parse("opset 17\n"
                                 "%1 = MatMul(%x:f32[2,4], w:f32[4,4])\n"
                                 "%2 = Exp(%1)\n"
                                 "%y = MatMul(%2, w)\n");
    g_autoptr(HnQuantPlan) p = plan_all(m);
    HnQuantLog log;
    g_assert_true(hn_quant_apply(p, m, NULL, &log, NULL));
    guint packed = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        g_assert_false(t->dtype == HN_F32 && t->n == 16);
        packed += t->dtype == HN_I8 && t->n == 16;
    }
    g_assert_cmpuint(packed, ==, 1);
}

static void test_missing_span(void)
{
    g_autoptr(HnModel) m = parse("opset 17\n%y = MatMul(%x:f32[2,4], w:f32[4,4])\n");
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&(HnQuantOptions){ .activations = HN_U8 });
    HnQuantLog log;
    g_autoptr(GError) error = NULL;
    hn_quant_plan_set_form(p, "y", HN_FORM_INT8);
    g_assert_false(hn_quant_apply(p, m, NULL, &log, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GRAPH);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quant/pack/pairs", test_pairs);
    g_test_add_func("/quant/pack/zeros", test_zeros);
    g_test_add_func("/quant/pack/four-bits", test_four_bits);
    g_test_add_func("/quant/pack/bias", test_bias);
    g_test_add_func("/quant/apply/chain", test_chain);
    g_test_add_func("/quant/apply/shared-weight", test_shared_weight);
    g_test_add_func("/quant/apply/missing-span", test_missing_span);
    return g_test_run();
}
