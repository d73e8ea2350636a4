/* Pruning of recurrent layers: units and what they read are classes where the last state is all that is wanted, and
 * what the model costs falls with them. */
#include "prune/count.h"
#include "run_model.h"

#define GRU                                                                         \
    "%1 = MatMul(%x:f32[6,1,8], e:f32[8,12])\n"                                     \
    "-, %2 = GRU(%1, w:f32[1,48,12], r:f32[1,48,16], b:f32[1,96]) hidden_size=16\n" \
    "%y = MatMul(%2, z:f32[16,3])\n"

/* Weights behind DequantizeLinear, which costs nothing: they are operations of the convolutions. */
#define QUANTIZED                                                     \
    "%a = DequantizeLinear(p:i8[16,3,3,3], s:f32={0.02}, z:i8={0})\n" \
    "%1 = Conv(%x:f32[1,3,8,8], %a) pads=[1,1,1,1]\n"                 \
    "%2 = Relu(%1)\n"                                                 \
    "%b = DequantizeLinear(q:i8[16,16,3,3], s, z)\n"                  \
    "%3 = Conv(%2, %b) pads=[1,1,1,1]\n"                              \
    "%4 = Relu(%3)\n"                                                 \
    "%c = DequantizeLinear(r:i8[4,16,1,1], s, z)\n"                   \
    "%y = Conv(%4, %c)\n"

/* `rest`: what falls with channels and is no layer, as a part of all. */
static void check_costs(const char *text, int rank, const int64_t *dims, double rest)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnTensor) x = test_random(HN_F32, rank, dims, 1);
    const HnPruneOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    int keep[2];
    double flops;
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_autoptr(HnPruneMap) map = hn_prune_map_new(m, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(map->classes->len, ==, 2);
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(map);
    g_assert_true(hn_prune_flops_of_layers(m, &x, NULL, costs, &error));
    g_assert_no_error(error);
    for (int round = 0; round < 3; round++) {
        hn_prune_uniform(map, 0.25 * (round + 1), 1, keep);
        g_autoptr(HnModel) less = hn_prune_narrow(map, &o, keep, &error);
        g_assert_no_error(error);
        g_assert_true(hn_prune_flops(less, &x, NULL, NULL, &flops, &error));
        g_assert_cmpfloat_with_epsilon(hn_prune_cost(costs, keep), flops, rest * flops);
    }
}

static void test_costs(void)
{
    check_costs("opset 17\n" GRU, 3, (const int64_t[]){ 6, 1, 8 }, 0.02);
    check_costs("opset 17\n" QUANTIZED, 4, (const int64_t[]){ 1, 3, 8, 8 }, 0.06);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune-recurrent/costs", test_costs);
    return g_test_run();
}
