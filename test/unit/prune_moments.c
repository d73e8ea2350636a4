/* Means and spreads of channels: after channels have gone, and weights stayed as they are, layers make what they made
 * before on the average, and vary as much. */
#include <math.h>

#include "data/data.h"
#include "prune/moments.h"
#include "run_model.h"

#define SAMPLES 16

static const char text[] = "opset 17\n"
                           "%1 = Conv(%x:f32[N,3,6,6], a:f32[16,3,3,3], b:f32[16]) pads=[1,1,1,1]\n"
                           "%2 = Relu(%1)\n"
                           "%3 = Conv(%2, c:f32[16,16,3,3], d:f32[16]) pads=[1,1,1,1]\n"
                           "%4 = Relu(%3)\n"
                           "%5 = Conv(%4, e:f32[16,1,3,3], f:f32[16]) pads=[1,1,1,1] group=16\n"
                           "%6 = Sigmoid(%5)\n" /* 0.5 for channels that have gone, as long as they are masked */
                           "%y = Conv(%6, g:f32[5,16,1,1])\n";

typedef struct {
    HnModel *m;
    HnData *data;
    HnPruneMap *map;
    HnPruneOptions o;
    HnPruned *plain; /* without half of its channels */
} Subject;

static void subject_init(Subject *s)
{
    g_autoptr(GError) error = NULL;
    s->m = test_model(text);
    g_assert_true(hn_graph_infer(s->m->graph, FALSE, &error));
    HnValue *in[] = { s->m->graph->inputs->pdata[0] };
    s->data = hn_data_open("random:16", in, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    s->map = hn_prune_map_new(s->m, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(s->map->classes->len, ==, 2);
    s->o = (HnPruneOptions){ .backend = &hn_backend_ref, .threads = 1, .data = s->data, .n = SAMPLES };
    s->plain = hn_prune_run(s->map, &s->o, (const int[]){ 8, 8 }, &error);
    g_assert_no_error(error);
}

static void subject_clear(Subject *s)
{
    hn_pruned_free(s->plain);
    hn_prune_map_free(s->map);
    hn_data_free(s->data);
    hn_model_free(s->m);
}

typedef struct {
    double mean[5], spread[5];
} Moments;

/* Of each output channel of m over all samples. */
static Moments moments_of(const Subject *s, HnModel *m)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSession) session = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    Moments all = { { 0 }, { 0 } };
    for (int64_t i = 0; i < SAMPLES; i++) {
        g_autoptr(HnSample) sample = hn_data_load(s->data, i, &error);
        HnTensor *y = NULL;
        g_assert_true(hn_session_run(session, sample->in, &y, &error));
        g_assert_cmpint(y->n, ==, 5 * 36);
        for (int64_t e = 0; e < y->n; e++) {
            const double v = hn_tensor_get_f64(y, e) / 36 / SAMPLES;
            all.mean[e / 36] += v;
            all.spread[e / 36] += v * hn_tensor_get_f64(y, e);
        }
        hn_tensor_unref(y);
    }
    for (int c = 0; c < 5; c++)
        all.spread[c] = sqrt(all.spread[c] - all.mean[c] * all.mean[c]);
    return all;
}

static Moments moments_with(const Subject *s, const HnPruned *p)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = hn_pruned_model(p, &error);
    g_assert_no_error(error);
    return moments_of(s, m);
}

static void test_moments(void)
{
    g_autoptr(GError) error = NULL;
    Subject s;
    subject_init(&s);
    const Moments want = moments_of(&s, s.m), plain = moments_with(&s, s.plain);
    double before = 0;
    for (int c = 0; c < 5; c++)
        before = fmax(before, fabs(plain.mean[c] - want.mean[c]) / want.spread[c]);
    g_assert_cmpfloat(before, >, 0.05);
    for (int spreads = 0; spreads < 2; spreads++) {
        g_autoptr(HnPruned) p = hn_pruned_matched(s.plain, &s.o, spreads, &error);
        g_assert_no_error(error);
        const Moments got = moments_with(&s, p);
        for (int c = 0; c < 5; c++) {
            g_assert_cmpfloat(fabs(got.mean[c] - want.mean[c]), <, 1e-3 * want.spread[c]);
            if (spreads)
                g_assert_cmpfloat(fabs(got.spread[c] / want.spread[c] - 1), <, 1e-3);
        }
        /* again: there is nothing left to do */
        g_autoptr(HnPruned) again = hn_pruned_matched(p, &s.o, spreads, &error);
        const Moments same = moments_with(&s, again);
        for (int c = 0; c < 5; c++)
            g_assert_cmpfloat(fabs(same.mean[c] - got.mean[c]), <, 1e-3 * want.spread[c]);
    }
    subject_clear(&s);
}

/* Where nothing has gone nothing changes. */
static void test_whole(void)
{
    g_autoptr(GError) error = NULL;
    Subject s;
    subject_init(&s);
    {
        g_autoptr(HnPruned) whole = hn_pruned_new(s.map, NULL), p = hn_pruned_matched(whole, &s.o, TRUE, &error);
        g_assert_no_error(error);
        for (guint i = 0; i < 2 * s.map->layers->len; i++)
            g_assert_null(p->fits[i]);
    } /* they read the map when they go */
    subject_clear(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune-moments/moments", test_moments);
    g_test_add_func("/prune-moments/whole", test_whole);
    return g_test_run();
}
