/*
 * GridSampleGrad (domain "hone"): the gradients of a GridSample's input and grid, from these two (inputs 0 and 1) and
 * the gradient of its result (input 2). Attributes are those of the GridSample. Each element of the latter goes to the
 * elements that it was mixed of, by their weights; how those change with the place is what moves the grid.
 */
#include <string.h>

#include "op/gridsample.h"
#include "op/index.h"
#include "op/op.h"
#include "op/types.h"

static void gridsamplegrad_infer(HnInfer *x)
{
    hn_infer_out_like(x, 0, 0);
    hn_infer_out_like(x, 1, 1);
}

static void gridsamplegrad_cost(const HnInfer *x, HnCost *c)
{
    const HnGridSample *p = x->params;
    c->flops = 4 * hn_type_count(x->in[2]) * (p->mode == HN_GRID_NEAREST ? 1 : p->mode == HN_GRID_LINEAR ? 4 : 16);
}

/* What one result is mixed of, axis by axis. */
typedef struct {
    int axes, taps;
    int64_t size[HN_GRID_AXES], at[HN_GRID_AXES][HN_GRID_TAPS]; /* -1: a zero */
    double w[HN_GRID_AXES][HN_GRID_TAPS], slope[HN_GRID_AXES][HN_GRID_TAPS];
} Mix;

static void mix_read(Mix *m, const HnGridSample *p, const HnTensor *grid, int64_t place)
{
    for (int a = 0; a < m->axes; a++) {
        const double v = hn_tensor_get_f64(grid, place * m->axes + m->axes - 1 - a);
        const double step = hn_grid_slope(p, v, m->size[a]);
        int64_t first;
        m->taps = hn_grid_taps(p, hn_grid_place(p, v, m->size[a]), &first, m->w[a], m->slope[a]);
        for (int k = 0; k < m->taps; k++) {
            m->at[a][k] = hn_grid_settle(p, first + k, m->size[a]);
            m->slope[a][k] *= step;
        }
    }
}

/* Element of a plane that taps k[] speak of, and its weight; -1: a zero. */
static int64_t mix_element(const Mix *m, const int *k, double *w)
{
    int64_t at = 0;
    *w = 1;
    for (int a = 0; a < m->axes; a++) {
        if (m->at[a][k[a]] < 0)
            return -1;
        at = at * m->size[a] + m->at[a][k[a]];
        *w *= m->w[a][k[a]];
    }
    return at;
}

/* How that weight changes with the place along axis `of`. */
static double mix_slope(const Mix *m, const int *k, int of)
{
    double w = 1;
    for (int a = 0; a < m->axes; a++)
        w *= a == of ? m->slope[a][k[a]] : m->w[a][k[a]];
    return w;
}

static gboolean mix_next(const Mix *m, int *k)
{
    for (int a = m->axes - 1; a >= 0; a--) {
        if (++k[a] < m->taps)
            return TRUE;
        k[a] = 0;
    }
    return FALSE;
}

/* One place of the grid, of all channels: x and dx begin at its sample, dy at its first element. */
static void run_place(const Mix *m, const HnTensor *x, int64_t from, const HnTensor *dy, int64_t to, int64_t channels,
                      int64_t x_plane, int64_t y_plane, double *dx, double *dgrid)
{
    int k[HN_GRID_AXES] = { 0 };
    double w;
    memset(dgrid, 0, (size_t)m->axes * sizeof *dgrid);
    do {
        const int64_t at = mix_element(m, k, &w);
        double sum = 0;
        for (int64_t c = 0; at >= 0 && c < channels; c++) {
            const double g = hn_tensor_get_f64(dy, to + c * y_plane);
            dx[from + c * x_plane + at] += w * g;
            sum += g * hn_tensor_get_f64(x, from + c * x_plane + at);
        }
        for (int a = 0; at >= 0 && a < m->axes; a++)
            dgrid[m->axes - 1 - a] += sum * mix_slope(m, k, a);
    } while (mix_next(m, k));
}

static void store(void *y, HnDtype dtype, int64_t at, const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (dtype == HN_F32)
            ((float *)y)[at + i] = (float)v[i];
        else
            ((double *)y)[at + i] = v[i];
}

static void gridsamplegrad_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *grid = hn_eval_in(e, 1), *dy = hn_eval_in(e, 2);
    if (!hn_gridsample_check(e, x, grid))
        return;
    Mix m = { .axes = x->ndim - 2 };
    gboolean fits = dy->ndim == x->ndim && dy->dims[0] == x->dims[0] && dy->dims[1] == x->dims[1];
    for (int a = 0; a < m.axes; a++) {
        m.size[a] = x->dims[2 + a];
        fits = fits && dy->dims[2 + a] == grid->dims[1 + a];
    }
    const int64_t channels = x->dims[1], x_plane = hn_span(x->dims, 2, x->ndim);
    const int64_t y_plane = hn_span(dy->dims, 2, dy->ndim);
    if (!fits || (x_plane == 0 && dy->n > 0)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 2 does not have the shape of the GridSample's result");
        return;
    }
    void *to_x = hn_eval_out_like(e, 0, x), *to_grid = hn_eval_out_like(e, 1, grid);
    double *dx = to_x != NULL && to_grid != NULL ? hn_eval_scratch(e, x->n, sizeof *dx) : NULL, dgrid[HN_GRID_AXES];
    if (dx == NULL)
        return;
    memset(dx, 0, (size_t)x->n * sizeof *dx);
    for (int64_t i = 0; x_plane > 0 && i < x->dims[0] * y_plane; i++) {
        const int64_t s = i / y_plane;
        mix_read(&m, e->params, grid, i);
        run_place(&m, x, s * channels * x_plane, dy, s * channels * y_plane + i % y_plane, channels, x_plane, y_plane,
                  dx, dgrid);
        store(to_grid, grid->dtype, i * m.axes, dgrid, m.axes);
    }
    store(to_x, x->dtype, 0, dx, x->n);
    hn_eval_scratch_free(e, dx);
}

const HnOp hn_op_gridsamplegrad = {
    .name = "GridSampleGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TUT",
    .out = "TU",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .params_size = sizeof(HnGridSample),
    .bind = hn_gridsample_bind,
    .infer = gridsamplegrad_infer,
    .cost = gridsamplegrad_cost,
    .ref = gridsamplegrad_ref,
};
