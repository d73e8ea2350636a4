/*
 * The memory plan: blocks alive together never overlap, and the arena is not much larger than what is alive at once.
 */
#include <string.h>

#include "base/clock.h"
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

/* The same plan by looking at every block that lives with each: what the fast one has to come to, or to less. */
static gsize plain_plan(HnBlock *blocks, guint n)
{
    gsize end = 0;
    g_autofree gboolean *placed = g_new0(gboolean, (gsize)n + 1);
    for (guint round = 0; round < n; round++) {
        HnBlock *b = NULL;
        for (guint i = 0; i < n; i++) /* the largest, the earliest of them */
            if (!placed[i] && (b == NULL || blocks[i].bytes > b->bytes ||
                               (blocks[i].bytes == b->bytes && blocks[i].first < b->first)))
                b = &blocks[i];
        b->offset = 0;
        for (gboolean moved = TRUE; moved;) {
            moved = FALSE;
            for (guint i = 0; i < n; i++) {
                const HnBlock *q = &blocks[i];
                if (!placed[i] || b->bytes == 0 || q->bytes == 0 || q->last < b->first || b->last < q->first ||
                    q->offset >= b->offset + (b->bytes + 63) / 64 * 64 || b->offset >= q->offset + q->bytes)
                    continue;
                b->offset = q->offset + (q->bytes + 63) / 64 * 64;
                moved = TRUE;
            }
        }
        placed[b - blocks] = TRUE;
        end = MAX(end, b->offset + (b->bytes + 63) / 64 * 64);
    }
    return end;
}

static void test_same(void)
{
    HnRng rng = hn_rng(6);
    int less = 0;
    for (int round = 0; round < 1000; round++) {
        HnBlock a[80], b[80];
        int n = (int)hn_rng_int(&rng, 1, 80), steps = (int)hn_rng_int(&rng, 1, 50);
        int span = (int)hn_rng_int(&rng, 0, steps - 1), kind = (int)hn_rng_int(&rng, 0, 2);
        for (int i = 0; i < n; i++) {
            int first = (int)hn_rng_int(&rng, 0, steps - 1), last = first + (int)hn_rng_int(&rng, 0, span);
            gsize bytes = kind == 0   ? 1024
                          : kind == 1 ? (gsize)64 << hn_rng_int(&rng, 0, 4)
                                      : (gsize)hn_rng_int(&rng, 0, 3000);
            a[i] = b[i] = (HnBlock){ bytes, first, MIN(last, steps - 1), 0 };
        }
        const gsize end = hn_memory_plan(a, n), plain = plain_plan(b, (guint)n);
        g_assert_cmpuint(end, <=, plain);
        assert_apart(a, n, end);
        less += end < plain;
        for (int i = 0; end == plain && i < n; i++)
            g_assert_cmpuint(a[i].offset, ==, b[i].offset);
    }
    g_test_message("%d of 1000 by the other order", less);
    g_assert_cmpint(less, >, 0);
}

/* A step of training, as forward and backward leave gaps for each other: the largest first is 1.12 times what is alive
 * at once. Units of 2 KB. */
static void test_gaps(void)
{
    HnBlock b[] = { { 128, 0, 1, 0 },   { 128, 1, 2, 0 },  { 256, 2, 32, 0 },  { 239, 2, 2, 0 },   { 64, 3, 26, 0 },
                    { 128, 4, 20, 0 },  { 207, 4, 4, 0 },  { 128, 5, 19, 0 },  { 32, 6, 19, 0 },   { 32, 7, 16, 0 },
                    { 32, 16, 18, 0 },  { 32, 18, 19, 0 }, { 128, 19, 24, 0 }, { 297, 23, 23, 0 }, { 36, 23, 25, 0 },
                    { 207, 24, 24, 0 }, { 64, 24, 26, 0 }, { 256, 26, 27, 0 }, { 128, 28, 34, 0 }, { 128, 29, 30, 0 },
                    { 150, 30, 30, 0 }, { 9, 30, 33, 0 },  { 239, 32, 32, 0 }, { 128, 32, 37, 0 } };
    HnBlock plain[G_N_ELEMENTS(b)];
    const int n = G_N_ELEMENTS(b);
    for (int i = 0; i < n; i++)
        b[i].bytes *= 2048;
    memcpy(plain, b, sizeof b);
    const gsize end = hn_memory_plan(b, n), floor = hn_memory_floor(b, n);
    assert_apart(b, n, end);
    g_assert_cmpfloat((double)plain_plan(plain, (guint)n), >, 1.1 * (double)floor);
    g_assert_cmpfloat((double)end, <, 1.04 * (double)floor);
}

/* Blocks that are all alive at the end, from the outside to the inside, and at random. */
static HnBlock *many_blocks(int n, int kind)
{
    HnRng rng = hn_rng(7);
    HnBlock *b = g_new(HnBlock, (guint)n);
    for (int i = 0; i < n; i++) {
        int first = kind == 1 ? i / 2 : i, last = kind == 1 ? n - 1 - i / 2 : n - 1;
        if (kind == 2) {
            first = (int)hn_rng_int(&rng, 0, n - 1);
            last = (int)hn_rng_int(&rng, first, n - 1);
        }
        b[i] = (HnBlock){ (gsize)64 * (gsize)hn_rng_int(&rng, 1, 100), first, last, 0 };
    }
    return b;
}

static void test_many(void)
{
    static const double most[] = { 1, 1, 3 }; /* of what is alive at once */
    for (int kind = 0; kind < 3; kind++) {
        guint64 took[2];
        for (int k = 0; k < 2; k++) {
            int n = k == 0 ? 10000 : 40000;
            g_autofree HnBlock *b = many_blocks(n, kind);
            guint64 start = hn_process_cpu_ns();
            gsize end = hn_memory_plan(b, n);
            took[k] = hn_process_cpu_ns() - start;
            g_assert_cmpfloat((double)end, <=, most[kind] * (double)hn_memory_floor(b, n));
        }
        g_test_message("kind %d: %.1f and %.1f ms", kind, (double)took[0] * 1e-6, (double)took[1] * 1e-6);
        g_assert_cmpuint(took[1], <, 8 * took[0] + 100000000); /* not 16 times as long */
    }
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
    g_test_add_func("/run/memory/same", test_same);
    g_test_add_func("/run/memory/gaps", test_gaps);
    g_test_add_func("/run/memory/many", test_many);
    g_test_add_func("/run/memory/chain", test_chain);
    g_test_add_func("/run/memory/edges", test_edges);
    return g_test_run();
}
