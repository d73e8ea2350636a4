/*
 * Masks of TrainDropout: Philox's published answers, and what masks have in common, which is nothing but the part that
 * they keep. Two nodes make six of them from ones.
 */
#include "run_model.h"

#include <string.h>

#include "base/philox.h"

#define N (1 << 18)
#define SIGMAS 5

static void test_philox(void)
{
    static const struct {
        uint32_t word[4], key[2], want[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX },
          { UINT32_MAX, UINT32_MAX },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        uint32_t word[4];
        memcpy(word, known[i].word, sizeof word);
        hn_philox(known[i].key[0] | (uint64_t)known[i].key[1] << 32, word);
        g_assert_cmpmem(word, sizeof word, known[i].want, sizeof word);
    }
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

#define MODEL                                                                  \
    "opset 17 opset hone 1 graph g(%x:f32[512,512], %s:i64[2]) -> (%a, %b) { " \
    "%a = hone::TrainDropout(%x, %s) ratio=0.25 salt=0 %b = hone::TrainDropout(%x, %s) ratio=0.25 salt=1 }"

#define MASKS 6

/* The masks of both nodes for seed 5 and 6 in step 1, and for seed 5 in step 2: 1 or 0 for each element. */
static GPtrArray *masks(int threads)
{
    static const int64_t states[][2] = { { 5, 1 }, { 6, 1 }, { 5, 2 } };
    g_autoptr(HnModel) m = test_model(MODEL);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        for (int64_t k = 0; k < N; k++)
            ((float *)((HnTensor *)in->pdata[0])->data)[k] = 1;
        memcpy(((HnTensor *)in->pdata[1])->data, states[i], sizeof states[i]);
        g_autoptr(GPtrArray) out = test_run(s, in);
        for (guint k = 0; k < out->len; k++)
            g_ptr_array_add(all, hn_tensor_copy(out->pdata[k], NULL, NULL));
    }
    g_assert_cmpuint(all->len, ==, MASKS);
    return all;
}

static double kept(const HnTensor *t, int64_t i)
{
    const float v = ((const float *)t->data)[i];
    g_assert_true(v == 0 || fabsf(v - 1 / 0.75f) < 1e-6f);
    return v != 0 ? 1 : 0;
}

/* Of a[i] and b[i + lag], whose means are 0.75. */
static double correlation(const HnTensor *a, const HnTensor *b, int64_t lag)
{
    double sum = 0;
    for (int64_t i = 0; i + lag < N; i++)
        sum += (kept(a, i) - 0.75) * (kept(b, i + lag) - 0.75);
    return sum / (0.75 * 0.25) / (double)(N - lag);
}

static void test_part_kept(void)
{
    g_autoptr(GPtrArray) all = masks(1);
    for (guint k = 0; k < MASKS; k++)
        for (int part = 0; part < 4; part++) { /* those of one place in a block, too */
            double sum = 0;
            for (int64_t i = part; i < N; i += 4)
                sum += kept(all->pdata[k], i);
            g_assert_cmpfloat(fabs(sum * 4 / N - 0.75), <, SIGMAS * sqrt(0.75 * 0.25 * 4 / N));
        }
}

static void test_independent(void)
{
    static const int64_t lags[] = { 1, 2, 3, 4, 5, 8, 64, 256, 512, 1024 };
    g_autoptr(GPtrArray) all = masks(1);
    for (guint a = 0; a < MASKS; a++) {
        for (guint i = 0; i < G_N_ELEMENTS(lags); i++)
            g_assert_cmpfloat(fabs(correlation(all->pdata[a], all->pdata[a], lags[i])), <, SIGMAS / sqrt(N));
        for (guint b = 0; b < a; b++)
            g_assert_cmpfloat(fabs(correlation(all->pdata[a], all->pdata[b], 0)), <, SIGMAS / sqrt(N));
    }
}

static void test_threads(void)
{
    g_autoptr(GPtrArray) one = masks(1), two = masks(2), again = masks(3);
    for (guint k = 0; k < MASKS; k++) {
        g_assert_true(hn_tensor_equal(one->pdata[k], two->pdata[k]));
        g_assert_true(hn_tensor_equal(one->pdata[k], again->pdata[k]));
    }
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dropout/philox", test_philox);
    g_test_add_func("/dropout/part-kept", test_part_kept);
    g_test_add_func("/dropout/independent", test_independent);
    g_test_add_func("/dropout/threads", test_threads);
    return g_test_run();
}
