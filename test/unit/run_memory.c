/*
 * The memory plan: blocks alive together never overlap, and the arena is not much larger than what is alive at once.
 */
#include "base/rng.h"
#include "run/memory.h"

static void assert_apart(const HnBlock *b, int n, gsize end)
{
    for (int i = 0; i < n; i++) {
        g_assert_cmpuint(b[i].offset % 64, ==, 0);
        g_assert_cmpuint(b[i].offset + b[i].bytes, <=, end);
        for (int j = 0; j < i; j++) {
            gboolean together = b[i].first <= b[j].last && b[j].first <= b[i].last;
            gboolean overlap = b[i].offset < b[j].offset + b[j].bytes && b[j].offset < b[i].offset + b[i].bytes;
            g_assert_false(together && overlap);
        }
    }
}

static void test_random(void)
{
    HnRng rng = hn_rng(5);
    double worst = 1;
    for (int round = 0; round < 300; round++) {
        HnBlock b[64];
        int n = (int)hn_rng_int(&rng, 1, 64), steps = (int)hn_rng_int(&rng, 1, 40);
        for (int i = 0; i < n; i++) {
            int first = (int)hn_rng_int(&rng, 0, steps - 1), last = first + (int)hn_rng_int(&rng, 0, 5);
            b[i] = (HnBlock){ (gsize)hn_rng_int(&rng, 0, 5000), first, MIN(last, steps - 1), 0 };
        }
        gsize end = hn_memory_plan(b, n), floor = hn_memory_floor(b, n);
        assert_apart(b, n, end);
        g_assert_cmpuint(end, >=, floor);
        if (floor > 0)
            worst = MAX(worst, (double)end / (double)floor);
    }
    g_test_message("worst arena: %.3f times what is alive at once", worst);
    g_assert_cmpfloat(worst, <, 1.5);
}

/* A chain, each value read by the next step only: two blocks are enough. */
static void test_chain(void)
{
    HnBlock b[10];
    for (int i = 0; i < 10; i++)
        b[i] = (HnBlock){ 1024, i, i + 1, 0 };
    g_assert_cmpuint(hn_memory_plan(b, 10), ==, 2048);
    g_assert_cmpuint(hn_memory_floor(b, 10), ==, 2048);
    assert_apart(b, 10, 2048);
}

static void test_edges(void)
{
    g_assert_cmpuint(hn_memory_plan(NULL, 0), ==, 0);
    g_assert_cmpuint(hn_memory_floor(NULL, 0), ==, 0);
    HnBlock empty = { 0, 0, 0, 0 };
    g_assert_cmpuint(hn_memory_plan(&empty, 1), ==, 0);
    HnBlock huge[] = { { G_MAXSIZE - 8, 0, 0, 0 }, { 64, 1, 1, 0 } };
    g_assert_cmpuint(hn_memory_plan(huge, 2), ==, G_MAXSIZE);
    HnBlock sum[] = { { G_MAXSIZE / 2, 0, 0, 0 }, { G_MAXSIZE / 2, 0, 0, 0 }, { G_MAXSIZE / 2, 0, 0, 0 } };
    g_assert_cmpuint(hn_memory_plan(sum, 3), ==, G_MAXSIZE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/memory/random", test_random);
    g_test_add_func("/run/memory/chain", test_chain);
    g_test_add_func("/run/memory/edges", test_edges);
    return g_test_run();
}
