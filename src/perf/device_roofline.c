#include "perf/device_roofline.h"

#include <math.h>

#include "base/clock.h"
#include "base/rng.h"
#include "ir/ir_text.h"
#include "run/session.h"

#define RUNS 7        /* of each size, the best counts; on an emulated device, whose clock counts, one is enough */
#define SLOW_MS 40    /* a size that takes as long is the last one */
#define COLUMNS 1024  /* of what goes through memory */
#define SEED 20080617 /* of what products are of */

static const int products[] = { 64, 256, 1024, 4096 };
static const double moved[HN_ROOFLINE_TIERS] = { 1e6, 4e6, 16e6, 64e6, 256e6, 512e6 }; /* bytes, read and written */

/* Products of zeros take less power, and are faster; what moves them does not care. */
static HnTensor *make_input(const HnValue *v, gboolean zeros)
{
    int64_t dims[HN_MAX_RANK];
    HnTensor *t =
        hn_type_is_fixed(v->type, dims) ? hn_tensor_new(v->type->dtype, v->type->rank, dims, NULL, NULL) : NULL;
    HnRng rng = hn_rng(SEED);
    for (int64_t i = 0; t != NULL && !zeros && i < t->n; i++)
        hn_tensor_set_f64(t, i, t->dtype == HN_I8 ? (double)hn_rng_int(&rng, -8, 8) : hn_rng_range(&rng, -1, 1));
    return t;
}

/* Milliseconds of the steps of nodes, by the device's clock: the least of some runs; NaN: it cannot be run. */
static double best_ms(HnSession *s, gboolean zeros, int runs)
{
    HnTimer timer = { .tick_ns = 1 };
    double best = NAN;
    g_autoptr(HnTensor) in = make_input(hn_session_input(s, 0), zeros);
    hn_session_set_timer(s, &timer);
    for (int i = 0; i < runs && in != NULL; i++) {
        HnTensor *out = NULL;
        double ns = 0;
        gboolean there = TRUE;
        timer.n = 0;
        if (!hn_session_run(s, &in, &out, NULL))
            break;
        hn_tensor_unref(out);
        for (gsize k = 0; k < timer.n; k++) {
            ns += timer.spans[k].node != NULL ? (double)(timer.spans[k].end - timer.spans[k].start) : 0;
            there = there && (timer.spans[k].node == NULL || timer.spans[k].device);
        }
        best = there && ns > 0 ? fmin(best, ns * 1e-6) : best;
    }
    hn_session_set_timer(s, NULL);
    g_free(timer.spans);
    return best;
}

static double ms_of(HnDevice *device, const char *text, gboolean zeros, int runs)
{
    g_autoptr(HnModel) m = hn_model_parse(text, NULL, NULL);
    if (m == NULL || !hn_model_verify(m, NULL))
        return NAN;
    g_autoptr(HnEngine) e = hn_engine_new(m, device, NULL, NULL);
    HnSession *s = e != NULL ? hn_session_new_on(e, &(HnSessionOptions){ .threads = 1 }, NULL) : NULL;
    const double ms = s != NULL ? best_ms(s, zeros, runs) : NAN;
    hn_session_free(s);
    return ms;
}

static double elapsed_ms(guint64 since)
{
    return (double)(hn_now_ns() - since) * 1e-6;
}

/* Operations per second of products, 0: there are none. */
static double product_rate(HnDevice *device, const char *op, const char *type, int runs)
{
    double best = 0;
    for (guint i = 0; i < G_N_ELEMENTS(products); i++) {
        const int n = products[i];
        const guint64 start = hn_now_ns();
        g_autofree char *text = g_strdup_printf(
            "opset 21 graph g(%%x:%s[%d,%d]) -> (%%y) { %%y = %s(%%x, w:%s[%d,%d]) }", type, n, n, op, type, n, n);
        const double ms = ms_of(device, text, FALSE, runs);
        if (ms > 0)
            best = fmax(best, 2e3 * n * n * (double)n / ms);
        if (isnan(ms) || elapsed_ms(start) > SLOW_MS * runs)
            break;
    }
    return best;
}

static void measure_moves(HnDevice *device, HnRoofline *r, int runs)
{
    gboolean slow = FALSE;
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        const int rows = (int)(moved[k] / (2 * sizeof(float) * COLUMNS));
        const guint64 start = hn_now_ns();
        g_autofree char *text =
            g_strdup_printf("opset 21 graph g(%%x:f32[%d,%d]) -> (%%y) { %%y = Relu(%%x) }", rows, COLUMNS);
        const double ms = slow ? NAN : ms_of(device, text, TRUE, runs);
        r->tiers[k].bytes = 2.0 * sizeof(float) * rows * COLUMNS;
        r->tiers[k].bytes_per_s = r->tiers[k].bytes / ms * 1e3;
        slow = isnan(ms) || elapsed_ms(start) > SLOW_MS * runs * (moved[k] < 64e6 ? 1 : moved[k] / 64e6);
    }
    for (int k = HN_ROOFLINE_TIERS - 2; k >= 0; k--) /* what is less is not slower */
        r->tiers[k].bytes_per_s = fmax(r->tiers[k].bytes_per_s, r->tiers[k + 1].bytes_per_s);
}

void hn_roofline_device(HnDevice *device, const HnDeviceState *state, const char *folder, gboolean fresh,
                        HnRoofline *out)
{
    g_autofree char *group = g_strdelimit(g_strdup(state->name), "[]\n\r", '_');
    const int runs = state->emulated ? 1 : RUNS;
    const gboolean keeps = !state->emulated && *group != '\0';
    *out = (HnRoofline){ .threads = 1 };
    if (keeps && !fresh && hn_roofline_load(folder, group, out))
        return;
    out->flops = product_rate(device, "MatMul", "f32", runs);
    out->half_flops = fmax(product_rate(device, "MatMul", "f16", runs), out->flops);
    out->int8_ops = fmax(product_rate(device, "MatMulInteger", "i8", runs), out->flops);
    measure_moves(device, out, runs);
    if (keeps)
        hn_roofline_store(folder, group, out);
}
