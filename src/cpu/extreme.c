/*
 * ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceSumSquare of f32 over axes that lie side by side.
 */
#include <math.h>

#include "cpu/cpu.h"
#include "op/reduce.h"

#define HN_LEVEL plain
#include "cpu/extreme_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/extreme_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/extreme_loops.h"
#undef HN_LEVEL

typedef void (*ReduceFn)(float *restrict y, const float *restrict x, int64_t n, int64_t inner);

static const struct {
    const HnOp *op;
    ReduceFn fns[HN_LEVELS];
    float start;
    gboolean root;
} kinds[] = {
    { &hn_op_reducemax, HN_TABLE_OF_LEVELS(do_max), -INFINITY, FALSE },
    { &hn_op_reducemin, HN_TABLE_OF_LEVELS(do_min), INFINITY, FALSE },
    { &hn_op_reduceprod, HN_TABLE_OF_LEVELS(do_prod), 1, FALSE },
    { &hn_op_reducel1, HN_TABLE_OF_LEVELS(do_sizes), 0, FALSE },
    { &hn_op_reducel2, HN_TABLE_OF_LEVELS(do_squares), 0, TRUE },
    { &hn_op_reducesumsquare, HN_TABLE_OF_LEVELS(do_squares), 0, FALSE },
};

typedef struct {
    ReduceFn fn;
    float start;
    gboolean root;
    int64_t outer, n, inner;
    int threads;
} Reduce;

static const char *reduce_reject(const HnStep *s)
{
    int64_t rows[3];
    const char *reason = hn_cpu_in(s, 0)->dtype != HN_F32 ? "only f32" : NULL;
    if (reason != NULL)
        return reason;
    if (hn_cpu_in(s, 0)->n == 0)
        return "nothing to compute";
    if (s->n_in > 1 && s->in[1].slot != NULL && !s->in[1].slot->constant)
        return "axes that are known only at run time";
    return hn_reduce_rows(s->params, hn_cpu_in(s, 0), hn_cpu_in(s, 1), rows) ? NULL : "reduced axes that lie apart";
}

static gboolean reduce_prepare(HnStep *s, GError **error)
{
    (void)error;
    int64_t rows[3];
    Reduce *r = g_new0(Reduce, 1);
    s->state = r;
    hn_reduce_rows(s->params, hn_cpu_in(s, 0), hn_cpu_in(s, 1), rows);
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (s->op == kinds[i].op) {
            r->fn = kinds[i].fns[hn_cpu_level()];
            r->start = kinds[i].start;
            r->root = kinds[i].root;
        }
    r->outer = rows[0];
    r->n = rows[1];
    r->inner = rows[2];
    r->threads = r->outer > 1 ? hn_cpu_threads_for(s, 0) : 1;
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    return TRUE;
}

static gboolean reduce_run(HnStep *s, GError **error)
{
    (void)error;
    const Reduce *r = s->state;
    const float *x = hn_cpu_data(&s->in[0]);
    float *y = hn_cpu_data(&s->out[0]);
#pragma omp parallel for num_threads(r->threads) if (r->threads > 1)
    for (int64_t o = 0; o < r->outer; o++) {
        float *to = y + o * r->inner;
        for (int64_t i = 0; i < r->inner; i++)
            to[i] = r->start;
        r->fn(to, x + o * r->n * r->inner, r->n, r->inner);
        for (int64_t i = 0; r->root && i < r->inner; i++)
            to[i] = sqrtf(to[i]);
    }
    return TRUE;
}

static void reduce_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel reduce = {
    .name = "cpu.reduce",
    .reject = reduce_reject,
    .prepare = reduce_prepare,
    .run = reduce_run,
    .release = reduce_release,
};

#define KERNELS(symbol) const HnKernel *const hn_cpu_##symbol[] = { &reduce, NULL };
KERNELS(reducel1)
KERNELS(reducel2)
KERNELS(reducemax)
KERNELS(reducemin)
KERNELS(reduceprod)
KERNELS(reducesumsquare)
