/*
 * Trilu: each row is a part that is copied and a part of zeros.
 */
#include "op/trilu.h"

#include <string.h>

#include "cpu/core/strided_copy.h"

static const char *trilu_reject(const HnStep *s)
{
    const HnTensor *k = hn_cpu_in(s, 1);
    if (hn_cpu_in(s, 0)->ndim < 2 || (k != NULL && (k->n != 1 || k->dtype != HN_I64)))
        return "shapes that do not fit";
    return hn_copy_reject(hn_cpu_in(s, 0));
}

static gboolean trilu_prepare(HnStep *s, GError **error)
{
    (void)s;
    (void)error;
    return TRUE;
}

static gboolean trilu_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTrilu *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *shift = hn_cpu_in(s, 1);
    const size_t size = hn_dtype_size(x->dtype);
    const int64_t rows = x->dims[x->ndim - 2], cols = x->dims[x->ndim - 1];
    const int64_t k = shift != NULL ? CLAMP(*(const int64_t *)shift->data, -rows, cols) : 0;
    const char *from = x->data;
    char *to = hn_cpu_data(&s->out[0]);
    for (int64_t r = 0; x->n > 0 && r < x->n / cols; r++) {
        /* columns [0, cut) are left of the diagonal, which the lower triangle takes along */
        const int64_t cut = CLAMP(r % rows + k + (p->upper ? 0 : 1), 0, cols);
        const size_t left = (size_t)cut * size, row = (size_t)cols * size;
        memset(to + (p->upper ? 0 : left), 0, p->upper ? left : row - left);
        if (to != from)
            memcpy(to + (p->upper ? left : 0), from + (p->upper ? left : 0), p->upper ? row - left : left);
        to += row;
        from += row;
    }
    return TRUE;
}

static const HnKernel trilu_rows = {
    .name = "cpu.trilu",
    .reject = trilu_reject,
    .prepare = trilu_prepare,
    .run = trilu_run,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_trilu[] = { &trilu_rows, NULL };
