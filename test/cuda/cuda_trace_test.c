/*
 * Records of what runs on the device (HnDeviceTrace) over the emulated driver and its stand-in of CUPTI (HONE_CUPTI):
 * whose they are, and what is said where they are not all there.
 */
#include "../unit/run_model.h"
#include "backends.h"
#include "cuda/core/cuda_backend.h"

typedef struct {
    HnModel *model;
    HnSession *session;
    GPtrArray *in;
    GArray *records, *work;
    char *why;
} Traced;

static void open_traced(Traced *t, const char *text)
{
    *t = (Traced){ .model = test_model(text) };
    t->session = test_session(t->model, hn_backend_cuda(0), &(HnSessionOptions){ .threads = 1 });
    t->in = test_inputs(t->session, 3);
    t->records = g_array_new(FALSE, FALSE, sizeof(HnDeviceRecord));
    t->work = g_array_new(FALSE, FALSE, sizeof(HnStepWork));
}

static void close_traced(Traced *t)
{
    hn_session_free(t->session);
    hn_model_free(t->model);
    g_ptr_array_unref(t->in);
    g_array_unref(t->records);
    g_array_unref(t->work);
    g_free(t->why);
}

/* A run with records. */
static gboolean trace(Traced *t)
{
    g_array_set_size(t->records, 0);
    g_array_set_size(t->work, 0);
    g_clear_pointer(&t->why, g_free);
    if (!hn_session_trace_device(t->session, &t->why))
        return FALSE;
    g_ptr_array_unref(test_run(t->session, t->in));
    return hn_session_device_records(t->session, t->records, t->work, &t->why);
}

static const HnDeviceRecord *record(const Traced *t, guint i)
{
    g_assert_cmpuint(i, <, t->records->len);
    return &g_array_index(t->records, HnDeviceRecord, i);
}

static const HnStepWork *work(const Traced *t, guint i)
{
    g_assert_cmpuint(i, <, t->work->len);
    return &g_array_index(t->work, HnStepWork, i);
}

#define CHAIN                                                                                                    \
    "opset 17 graph g(%x:f32[4,8]) -> (%y) { %a = Softmax(%x) axis=-1 %b = Softmax(%a) axis=0 %y = Softmax(%b) " \
    "axis=-1 }"

/* The same entries at the first run, at the one that is recorded, and where that is replayed. */
static void test_chain(void)
{
    Traced t;
    open_traced(&t, CHAIN);
    for (int run = 0; run < 4; run++) {
        g_assert_true(trace(&t));
        g_assert_null(t.why);
        g_assert_cmpuint(t.records->len, ==, 5);
        g_assert_cmpuint(t.work->len, ==, 5);
        for (guint i = 0; i < 5; i++) {
            g_assert_cmpuint(work(&t, i)->from, ==, i);
            g_assert_cmpuint(work(&t, i)->to, ==, i + 1);
            g_assert_cmpuint(work(&t, i)->launches, ==, i > 0 && i < 4);
            g_assert_cmpint(work(&t, i)->moves, ==, i == 0 || i == 4);
            g_assert_cmpfloat(record(&t, i)->end - record(&t, i)->start, >=, 999);
            g_assert_true(i == 0 || record(&t, i)->start >= record(&t, i - 1)->end);
            g_assert_cmpint(record(&t, i)->graph, ==, run > 0 && i > 0 && i < 4);
        }
        g_assert_cmpfloat(record(&t, 0)->start, >=, 0);
        g_assert_cmpint(record(&t, 0)->kind, ==, HN_WORK_UPLOAD);
        g_assert_cmpint(record(&t, 4)->kind, ==, HN_WORK_DOWNLOAD);
        g_assert_cmpuint(record(&t, 0)->bytes, ==, 128);
        g_assert_cmpint(record(&t, 1)->kind, ==, HN_WORK_KERNEL);
        g_assert_true(g_str_has_prefix(record(&t, 1)->name, "softmax"));
        g_assert_cmpuint(record(&t, 1)->registers, >, 0);
        g_assert_cmpuint(record(&t, 1)->block[0] * record(&t, 1)->grid[0], >, 0);
        g_assert_cmpstr(hn_node_label(work(&t, 2)->node), ==, "b");
    }
    close_traced(&t);
}

/* Steps on the host, sub-graphs, kernels that complain: pieces of no step are between those of steps. */
static void test_mixed(void)
{
    static const char *const texts[] = {
        "opset 17 graph g(%x:f32[4,8]) -> (%y) { %i = ArgMax(%x) axis=0 keepdims=0 %a = Gather(%x, %i) axis=0 %b = "
        "Softmax(%a) axis=-1 "
        "%c = Relu(%b) %y = Softmax(%c) axis=0 }",
        "opset 17 graph g(%x:f32[4,8]) -> (%y) { %s = Softmax(%x) axis=-1 %n = NonZero(%s) %y = Cast(%n) to=1 }",
        "opset 17 graph g(%x:f32[4,8], %c:bool[]) -> (%y) { %s = Softmax(%x) axis=-1 %y = If(%c) then_branch=graph() "
        "-> "
        "(%p) { %p = Softmax(%s) axis=0 } else_branch=graph() -> (%q) { %q = Relu(%s) } }",
    };
    for (guint k = 0; k < G_N_ELEMENTS(texts); k++) {
        Traced t;
        open_traced(&t, texts[k]);
        for (int run = 0; run < 3; run++) {
            guint launches = 0, kernels = 0;
            const gboolean ok = trace(&t);
            g_assert_cmpstr(t.why, ==, NULL);
            g_assert_true(ok);
            for (guint i = 0; i < t.work->len; i++) {
                launches += work(&t, i)->launches;
                g_assert_true(i == 0 || work(&t, i)->from >= work(&t, i - 1)->to);
            }
            for (guint i = 0; i < t.records->len; i++)
                kernels += record(&t, i)->kind == HN_WORK_KERNEL;
            g_assert_cmpuint(launches, ==, kernels);
            g_assert_cmpuint(kernels, >=, 1);
        }
        close_traced(&t);
    }
}

/* What was recorded while nobody kept records makes none. */
static void test_untold(void)
{
    Traced t;
    open_traced(&t, CHAIN);
    g_ptr_array_unref(test_run(t.session, t.in));
    g_ptr_array_unref(test_run(t.session, t.in));
    g_assert_false(trace(&t));
    g_assert_cmpstr(t.why, ==, "2 records of 5 pieces of work");
    g_ptr_array_unref(test_run(t.session, t.in));
    close_traced(&t);
}

/* Faults of the library, and whether records are there nevertheless. */
static void test_faults(void)
{
    static const struct {
        const char *name, *why; /* NULL: all are there */
    } cases[] = {
        { "late", NULL },
        { "pieces", NULL },
        { "shuffled", NULL },
        { "lose", "CUPTI lost 1 records" },
        { "silent", "4 records of 5 pieces of work" },
        { "swapped", "records in another order than the work: 1 kernels of 0 at 'a copy'" },
        { "strange", "CUPTI's records are not what they should be" },
        { "held", "another profiler holds CUPTI" },
        { "fills", "CUPTI keeps no records: CUPTI_ERROR_UNKNOWN" },
        { "broken", "CUPTI hands nothing out: CUPTI_ERROR_UNKNOWN" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Traced t;
        open_traced(&t, CHAIN);
        g_assert_true(trace(&t) && trace(&t));
        g_setenv("HONE_EMU_CUPTI", cases[i].name, TRUE);
        const gboolean ok = trace(&t);
        g_unsetenv("HONE_EMU_CUPTI");
        g_assert_cmpstr(t.why, ==, cases[i].why);
        g_assert_cmpint(ok, ==, cases[i].why == NULL);
        g_ptr_array_unref(test_run(t.session, t.in));
        g_assert_true(trace(&t)); /* as if nothing had been */
        close_traced(&t);
    }
}

/* A record that comes when the next ones are asked for is missed once, and is none of those. */
static void test_next(void)
{
    Traced t;
    open_traced(&t, CHAIN);
    g_assert_true(trace(&t) && trace(&t));
    g_setenv("HONE_EMU_CUPTI", "next", TRUE);
    g_assert_false(trace(&t));
    g_assert_cmpstr(t.why, ==, "4 records of 5 pieces of work");
    g_unsetenv("HONE_EMU_CUPTI");
    g_assert_true(trace(&t));
    g_assert_cmpuint(t.records->len, ==, 5);
    close_traced(&t);
}

static void test_limits(void)
{
    g_autoptr(GError) error = NULL;
    HnDevice *device = hn_device_new(hn_backend_cuda(0), &error);
    HnDeviceLimits l;
    g_assert_no_error(error);
    hn_backend_cuda(0)->trace->limits(device->handle, &l);
    g_assert_cmpuint(l.multiprocessors, ==, 4);
    g_assert_cmpuint(l.threads, ==, 2048);
    g_assert_cmpuint(l.blocks, ==, 32);
    g_assert_cmpuint(l.registers, ==, 65536);
    g_assert_cmpuint(l.shared, ==, 167936);
    g_assert_cmpuint(l.shared_extra, ==, 1024);
    hn_device_unref(device);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_test_init(&argc, &argv, NULL);
    g_autoptr(HnDevice) device = hn_cuda_has_device(0, &error) ? hn_device_new(hn_backend_cuda(0), &error) : NULL;
    if (device == NULL) {
        g_print("1..0 # SKIP %s\n", error->message);
        return 0;
    }
    g_test_add_func("/cuda/trace/chain", test_chain);
    g_test_add_func("/cuda/trace/mixed", test_mixed);
    g_test_add_func("/cuda/trace/untold", test_untold);
    g_test_add_func("/cuda/trace/faults", test_faults);
    g_test_add_func("/cuda/trace/next", test_next);
    g_test_add_func("/cuda/trace/limits", test_limits);
    return g_test_run();
}
