/* What widths cost, and which of them are looked at. */
#include "prune/widths.h"
#include "run_model.h"

static const char text[] = "opset 17\n"
                           "%1 = Conv(%x:f32[N,3,6,6], a:f32[16,3,3,3]) pads=[1,1,1,1]\n"
                           "%2 = Relu(%1)\n"
                           "%3 = Conv(%2, b:f32[16,16,3,3]) pads=[1,1,1,1]\n"
                           "%4 = Relu(%3)\n"
                           "%y = Conv(%4, c:f32[16,16,3,3]) pads=[1,1,1,1]\n";

typedef struct {
    HnModel *m;
    HnPruneMap *map;
} Subject;

static Subject subject_new(void)
{
    g_autoptr(GError) error = NULL;
    Subject s = { .m = test_model(text) };
    g_assert_true(hn_graph_infer(s.m->graph, FALSE, &error));
    s.map = hn_prune_map_new(s.m, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(s.map->classes->len, ==, 2);
    return s;
}

static void subject_clear(Subject *s)
{
    hn_prune_map_free(s->map);
    hn_model_free(s->m);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Subject, subject_clear)

/* A vector that is half full takes what a full one takes; who reads fewer channels has fewer products to add. */
static void test_vectors(void)
{
    g_auto(Subject) s = subject_new();
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(s.map);
    int keep[] = { 16, 16 };
    costs->layer[1] = costs->layer[2] = 2.0 * 144 * 16; /* a row of 16 channels and 3 x 3 taps */
    costs->rest = 32;
    hn_prune_costs_by_vectors(costs, 16);
    g_assert_cmpfloat(costs->layer[1], ==, (144 + 16) * 2);
    g_assert_cmpfloat(hn_prune_cost(costs, keep), ==, 640 + 2);
    keep[1] = 8; /* of what layer 1 makes, and layer 2 reads */
    g_assert_cmpfloat_with_epsilon(hn_prune_layer_part(costs, 1, keep), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon(hn_prune_layer_part(costs, 2, keep), (72.0 + 16) / (144 + 16), 1e-12);
    keep[0] = 1;
    g_assert_cmpfloat_with_epsilon(hn_prune_layer_part(costs, 1, keep), (9.0 + 16) / (144 + 16), 1e-12);
}

/* Widths that fill no vector are left out, also where channels come back. */
static void test_steps(void)
{
    g_auto(Subject) s = subject_new();
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(s.map);
    g_autofree double *first = g_new(double, 16), *second = g_new(double, 16);
    double *of[] = { first, second };
    for (int i = 0; i < 16; i++)
        first[i] = second[i] = 0.01 * (i + 1);
    const HnPruneLoss loss = { of, 1 };
    const HnPruneSteps vectors = { 16, 2 };
    for (guint i = 0; i < s.map->layers->len; i++)
        costs->layer[i] = 1;
    g_assert_cmpint(hn_prune_step(s.map, 0, hn_prune_steps(16)), ==, 2);
    g_assert_cmpint(hn_prune_step(s.map, 0, hn_prune_steps(4)), ==, 2);
    g_assert_cmpint(hn_prune_step(s.map, 0, vectors), ==, 8);
    g_assert_cmpint(hn_prune_step(s.map, 0, (HnPruneSteps){ 4, 2 }), ==, 4);
    gboolean fine = FALSE;
    for (double most = 3.9; most > 1.5; most -= 0.1) {
        int keep[2];
        g_assert_true(hn_prune_allocate(costs, &loss, most, vectors, keep));
        g_assert_cmpfloat(hn_prune_cost(costs, keep), <=, most);
        g_assert_true((keep[0] % 8 == 0 || keep[0] == 1) && (keep[1] % 8 == 0 || keep[1] == 1));
        g_assert_true(hn_prune_allocate(costs, &loss, most, hn_prune_steps(16), keep));
        fine = fine || keep[0] % 8 != 0;
    }
    g_assert_true(fine);
}

/* Two classes that lose and save the same: the one whose losses count for less at the end is narrower. */
static void test_through(void)
{
    static const double throughs[] = { 0.1, 3 };
    g_auto(Subject) s = subject_new();
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(s.map);
    double curve[16], *of[] = { curve, curve };
    for (int i = 0; i < 16; i++)
        curve[i] = 0.01 * (i + 1) * (i + 1);
    costs->layer[0] = costs->layer[2] = 1; /* of which each class has a part of one */
    for (int i = 0; i < 2; i++) {
        const HnPruneLoss loss = { of, throughs[i] };
        int keep[2];
        g_assert_true(hn_prune_allocate(costs, &loss, 1.2, hn_prune_steps(1), keep));
        g_assert_cmpint(keep[i], <, keep[1 - i]);
    }
}

/* A class that loses nothing is left a fifth of its channels as long as others have more; what there is room for comes
 * back. */
static void test_narrow(void)
{
    g_auto(Subject) s = subject_new();
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(s.map);
    double nothing[16] = { 0 }, much[16], *of[] = { nothing, much };
    int keep[2];
    const HnPruneLoss loss = { of, 1 };
    for (int i = 0; i < 16; i++)
        much[i] = i + 1;
    costs->layer[0] = costs->layer[2] = 1;
    g_assert_true(hn_prune_allocate(costs, &loss, 1, hn_prune_steps(1), keep));
    g_assert_cmpint(keep[0], ==, 3);
    g_assert_cmpint(keep[1], ==, 13);
    g_assert_true(hn_prune_allocate(costs, &loss, 0.95, (HnPruneSteps){ 4, 8 }, keep)); /* steps of 2, and 1 back */
    g_assert_cmpint(keep[0], ==, 4);
    g_assert_cmpint(keep[1], ==, 11);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune_widths/vectors", test_vectors);
    g_test_add_func("/prune_widths/steps", test_steps);
    g_test_add_func("/prune_widths/through", test_through);
    g_test_add_func("/prune_widths/narrow", test_narrow);
    return g_test_run();
}
