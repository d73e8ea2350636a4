/*
 * Sums over records of a device, gaps between them, and occupancy.
 */
#include <math.h>

#include "perf/device_work.h"
#include "perf/occupancy.h"

/* What an A100 holds, and an H100. */
static const HnDeviceLimits sm80 = { 108, 2048, 32, 65536, 167936, 1024 };
static const HnDeviceLimits sm90 = { 132, 2048, 32, 65536, 233472, 1024 };

/* By NVIDIA's calculator. */
static void test_occupancy(void)
{
    static const struct {
        guint threads, registers, shared, blocks;
        double occupancy;
    } cases[] = {
        { 256, 32, 0, 8, 1 },           /* all threads */
        { 256, 33, 0, 6, 0.75 },        /* 40 registers are booked for each */
        { 128, 64, 0, 8, 0.5 },         /* registers */
        { 128, 168, 0, 3, 0.1875 },     /* 12 warps */
        { 1024, 64, 0, 1, 0.5 },        /* registers of one block */
        { 1024, 65, 0, 0, 0 },          /* too many for one */
        { 32, 16, 0, 32, 0.5 },         /* blocks */
        { 33, 16, 0, 32, 1 },           /* two warps */
        { 128, 32, 49152, 3, 0.1875 },  /* shared memory, with what the system takes */
        { 128, 32, 166912, 1, 0.0625 }, /* all of it */
        { 128, 32, 163841, 1, 0.0625 }, { 128, 32, 82944, 2, 0.125 }, { 128, 32, 82945, 1, 0.0625 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const HnDeviceRecord r = { .grid = { 1080, 1, 1 },
                                   .block = { cases[i].threads, 1, 1 },
                                   .registers = cases[i].registers,
                                   .shared = cases[i].shared };
        const HnOccupancy o = hn_occupancy(&sm80, &r);
        g_assert_cmpuint(o.blocks, ==, cases[i].blocks);
        g_assert_cmpfloat(o.occupancy, ==, cases[i].occupancy);
        if (cases[i].blocks > 0)
            g_assert_cmpfloat_with_epsilon(o.waves, 10.0 / cases[i].blocks, 1e-12);
        else
            g_assert_true(isnan(o.waves));
    }
    const HnDeviceRecord large = { .grid = { 2, 3, 22 }, .block = { 16, 8, 3 }, .registers = 168, .shared = 231424 };
    g_assert_cmpuint(hn_occupancy(&sm90, &large).blocks, ==, 1);
    g_assert_cmpfloat(hn_occupancy(&sm90, &large).occupancy, ==, 12.0 / 64);
    g_assert_cmpfloat(hn_occupancy(&sm90, &large).waves, ==, 1);
}

static void test_unknown(void)
{
    const HnDeviceRecord r = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .registers = 32 };
    for (int i = 0; i < 5; i++) {
        HnDeviceLimits l = sm80;
        guint *const parts[] = { &l.multiprocessors, &l.threads, &l.blocks, &l.registers, &l.shared };
        *parts[i] = 0;
        g_assert_true(isnan(hn_occupancy(&l, &r).occupancy));
    }
    g_assert_true(isnan(hn_occupancy(&sm80, &(HnDeviceRecord){ .block = { 1024, 2, 2 } }).occupancy));
    g_assert_true(isnan(hn_occupancy(&sm80, &(HnDeviceRecord){ .block = { 0, 1, 1 } }).occupancy));
    /* no registers, and no shared memory that the system takes */
    HnDeviceLimits l = sm80;
    l.shared_extra = 0;
    g_assert_cmpfloat(hn_occupancy(&l, &(HnDeviceRecord){ .grid = { 1, 1, 1 }, .block = { 64, 1, 1 } }).occupancy, ==,
                      1);
}

/* An upload of row 0, a kernel of rows 1 and 2 together, one of no row, the first kernel again in row 3. us */
static void make_run(GArray *records, GArray *work, double late)
{
    const HnDeviceRecord r[] = {
        { .kind = HN_WORK_UPLOAD, .start = 0, .end = 2e3, .bytes = 100 },
        { .kind = HN_WORK_KERNEL, .name = "a", .start = 5e3, .end = 9e3, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } },
        { .kind = HN_WORK_FILL, .start = 9e3, .end = 10e3, .bytes = 8 },
        { .kind = HN_WORK_KERNEL,
          .name = "a",
          .start = 12e3 + late,
          .end = 13e3 + late,
          .grid = { 1, 1, 1 },
          .block = { 32, 1, 1 } },
        { .kind = HN_WORK_KERNEL, .name = "b", .start = 12.5e3 + late, .end = 12.7e3 + late }, /* beside it */
        { .kind = HN_WORK_DOWNLOAD, .start = 14e3 + late, .end = 15e3 + late, .bytes = 100 },
    };
    const HnStepWork w[] = {
        { .from = 0, .to = 1, .shared_by = 1 }, { .from = 1, .to = 2, .shared_by = 2 },
        { .from = 1, .to = 2, .shared_by = 2 }, { .from = 3, .to = 5, .shared_by = 1 },
        { .from = 5, .to = 6, .shared_by = 1 },
    };
    g_array_append_vals(records, r, G_N_ELEMENTS(r));
    g_array_append_vals(work, w, G_N_ELEMENTS(w));
}

static const HnWorkSum *find(const GPtrArray *sums, int row, const char *name)
{
    for (guint i = 0; i < sums->len; i++) {
        const HnWorkSum *s = sums->pdata[i];
        if (s->row == row && g_strcmp0(s->record.name, name) == 0)
            return s;
    }
    g_assert_not_reached();
}

static void test_sums(void)
{
    static const int rows[] = { 0, 1, 2, 3, 0 };
    HnDeviceWork w;
    hn_device_work_init(&w);
    for (int run = 0; run < 2; run++) {
        g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(HnDeviceRecord));
        g_autoptr(GArray) work = g_array_new(FALSE, FALSE, sizeof(HnStepWork));
        make_run(records, work, run * 10e3);
        hn_device_work_add(&w, records, work, rows);
    }
    g_assert_cmpfloat(w.runs, ==, 2);
    g_assert_cmpfloat(w.pieces, ==, 12);
    g_assert_cmpfloat_with_epsilon(w.busy_ms, 2 * 9.2e-3, 1e-12);
    g_assert_cmpfloat_with_epsilon(w.idle_ms, 2 * 6e-3 + 10e-3, 1e-12);
    g_autoptr(GPtrArray) sums = hn_device_work_sums(&w), gaps = hn_device_work_gaps(&w);
    g_assert_cmpuint(sums->len, ==, 6); /* an upload, a download, a for three rows, b */
    g_assert_cmpfloat_with_epsilon(find(sums, 1, "a")->ms, 4e-3, 1e-12);
    g_assert_cmpfloat(find(sums, 1, "a")->count, ==, 1);
    g_assert_cmpfloat_with_epsilon(find(sums, 2, "a")->ms, 4e-3, 1e-12);
    g_assert_cmpfloat_with_epsilon(find(sums, 3, "a")->ms, 2e-3, 1e-12);
    g_assert_cmpfloat(find(sums, 3, "b")->count, ==, 2);
    for (guint i = 1; i < sums->len; i++)
        g_assert_cmpfloat(((HnWorkSum *)sums->pdata[i - 1])->ms, >=, ((HnWorkSum *)sums->pdata[i])->ms);
    g_assert_cmpuint(gaps->len, ==, 3);
    const HnWorkGap *longest = gaps->pdata[0];
    g_assert_cmpint(longest->before, ==, -1);
    g_assert_cmpint(longest->after, ==, 3);
    g_assert_cmpuint(longest->count, ==, 2);
    g_assert_cmpfloat_with_epsilon(longest->ms, 14e-3, 1e-12);
    g_assert_cmpfloat_with_epsilon(longest->longest, 12e-3, 1e-12);
    hn_device_work_clear(&w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perf/device-work/occupancy", test_occupancy);
    g_test_add_func("/perf/device-work/unknown", test_unknown);
    g_test_add_func("/perf/device-work/sums", test_sums);
    return g_test_run();
}
