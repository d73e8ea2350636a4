/*
 * Where: rows of three operands that broadcast, by the size of their elements.
 */
#include "cpu/core/cpu_kernel.h"
#include "op/elementwise.h"
#include "op/types.h"
#include "run/move_forms.h"

static const char *where_reject(const HnStep *s)
{
    return s->out[0].slot->tensor->n == 0 ? "nothing to compute" : hn_few_bytes_reject(s, 1);
}

static gboolean where_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *z = s->out[0].slot->tensor;
    int64_t strides[3][HN_MAX_RANK];
    HnBroadcast *p = g_new0(HnBroadcast, 1);
    s->state = p;
    for (int i = 0; i < 3; i++)
        hn_broadcast_strides(hn_cpu_in(s, i), z->ndim, strides[i]);
    hn_broadcast_start(p, z->ndim, z->dims, 3, strides);
    return TRUE;
}

#define DEFINE_ROW(T)                                                                               \
    static void row_##T(T *z, const uint8_t *c, const T *x, const T *y, int64_t n, const int *step) \
    {                                                                                               \
        const int64_t sc = step[0], sx = step[1], sy = step[2];                                     \
        if (sc == 1 && sx == 1 && sy == 1) {                                                        \
            for (int64_t i = 0; i < n; i++) {                                                       \
                const T yes = x[i], no = y[i];                                                      \
                z[i] = c[i] != 0 ? yes : no;                                                        \
            }                                                                                       \
        } else if (sc == 1 && sx == 0 && sy == 1) {                                                 \
            const T yes = *x;                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                       \
                const T no = y[i];                                                                  \
                z[i] = c[i] != 0 ? yes : no;                                                        \
            }                                                                                       \
        } else if (sc == 1 && sx == 1) {                                                            \
            const T no = *y;                                                                        \
            for (int64_t i = 0; i < n; i++) {                                                       \
                const T yes = x[i];                                                                 \
                z[i] = c[i] != 0 ? yes : no;                                                        \
            }                                                                                       \
        } else {                                                                                    \
            for (int64_t i = 0; i < n; i++)                                                         \
                z[i] = c[i * sc] != 0 ? x[i * sx] : y[i * sy];                                      \
        }                                                                                           \
    }
DEFINE_ROW(uint8_t)
DEFINE_ROW(uint16_t)
DEFINE_ROW(uint32_t)
DEFINE_ROW(uint64_t)

static gboolean where_run(HnStep *s, GError **error)
{
    (void)error;
    HnBroadcast p = *(const HnBroadcast *)s->state;
    const gsize size = hn_dtype_size(s->out[0].slot->tensor->dtype);
    const uint8_t *c = hn_cpu_data(&s->in[0]), *x = hn_cpu_data(&s->in[1]), *y = hn_cpu_data(&s->in[2]);
    uint8_t *z = hn_cpu_data(&s->out[0]);
    for (int j = 0; j < p.k; j++)
        p.rows[j] = p.strides[j];
    do {
        const void *yes = x + (gsize)p.off[1] * size, *no = y + (gsize)p.off[2] * size;
#define ROW(T) row_##T((T *)(void *)z, c + p.off[0], yes, no, p.n, p.step);
        HN_FOR_SIZE(size, ROW)
#undef ROW
        z += (gsize)p.n * size;
    } while (hn_broadcast_next(&p));
    return TRUE;
}

static void where_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel where = {
    .name = "cpu.where",
    .reject = where_reject,
    .prepare = where_prepare,
    .run = where_run,
    .release = where_release,
};

const HnKernel *const hn_cpu_where[] = { &where, NULL };
