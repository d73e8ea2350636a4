/*
 * IsNaN and IsInf of f32 and f64, by their bits.
 */
#include "cpu/core/cpu_kernel.h"
#include "op/sign.h"

#define HN_LOOPS "cpu/elementwise/isnan_loops.h"
#include "base/every_level.h"

static const char *isnan_reject(const HnStep *s)
{
    const HnDtype dtype = hn_cpu_in(s, 0)->dtype;
    return dtype == HN_F32 || dtype == HN_F64 ? NULL : "only f32, f64";
}

static gboolean isnan_prepare(HnStep *s, GError **error)
{
    (void)s; /* plain inputs are the default */
    (void)error;
    return TRUE;
}

static void run_nan(gboolean wide, const void *x, uint8_t *y, int64_t n)
{
    static void (*const narrow_fns[])(const void *, uint8_t *restrict, int64_t) = HN_TABLE_OF_LEVELS(nan_f32);
    static void (*const wide_fns[])(const void *, uint8_t *restrict, int64_t) = HN_TABLE_OF_LEVELS(nan_f64);
    (wide ? wide_fns : narrow_fns)[hn_cpu_level()](x, y, n);
}

/* Of both signs the sign's bit does not count; of neither no bits are 1 where none count. */
static void run_inf(const HnIs *p, gboolean wide, const void *x, uint8_t *y, int64_t n)
{
    static void (*const narrow_fns[])(const void *, uint8_t *restrict, int64_t, uint64_t, uint64_t) =
        HN_TABLE_OF_LEVELS(inf_f32);
    static void (*const wide_fns[])(const void *, uint8_t *restrict, int64_t, uint64_t, uint64_t) =
        HN_TABLE_OF_LEVELS(inf_f64);
    const uint64_t sign = wide ? (uint64_t)1 << 63 : (uint64_t)1 << 31;
    const uint64_t infinity = wide ? 0x7ff0000000000000u : 0x7f800000u;
    uint64_t mask = p->negative && p->positive ? sign - 1 : sign | (sign - 1), bits = infinity;
    if (p->negative && !p->positive)
        bits |= sign;
    if (!p->negative && !p->positive) {
        mask = 0;
        bits = 1;
    }
    (wide ? wide_fns : narrow_fns)[hn_cpu_level()](x, y, n, mask, bits);
}

static gboolean isnan_run(HnStep *s, GError **error)
{
    const HnIs *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    (void)error;
    if (p->nan)
        run_nan(x->dtype == HN_F64, x->data, hn_cpu_data(&s->out[0]), x->n);
    else
        run_inf(p, x->dtype == HN_F64, x->data, hn_cpu_data(&s->out[0]), x->n);
    return TRUE;
}

static const HnKernel isnan_bits = {
    .name = "cpu.isnan",
    .reject = isnan_reject,
    .prepare = isnan_prepare,
    .run = isnan_run,
};

const HnKernel *const hn_cpu_isnan[] = { &isnan_bits, NULL };
const HnKernel *const hn_cpu_isinf[] = { &isnan_bits, NULL };
