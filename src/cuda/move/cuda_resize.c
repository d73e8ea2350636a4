/*
 * Resize, Upsample and ResizeGrad with sizes that are known ahead. Nearest moves elements of any size by tables of
 * indices; means (linear, cubic), and gradients, go axis by axis through f32 in scratch memory, or along two axes at
 * once where few elements make one.
 */
#include "run/resize_forms.h"

#include <string.h>

#include "cuda/conv/cuda_last.h"
#include "cuda/move/cuda_resize_args.h"
#include "cuda/move/cuda_strided.h"
#include "op/index.h"

#define THREADS 256
#define WIDEST 16

/* Only the source is read, the other inputs are known. */
static void read_source(HnStep *s)
{
    for (int i = 0; i < s->n_in; i++)
        s->in[i].unread = i != hn_resize_source(s);
}

static const char *size_reject(const HnStep *s)
{
    if (hn_cuda_out(s, 0)->n >= HN_DIVIDE_LIMIT || hn_cuda_in(s, hn_resize_source(s))->n >= HN_DIVIDE_LIMIT)
        return "2^31 elements or more";
    return NULL;
}

/* --- nearest ----------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction as_is, wide;
    size_t size, width; /* bytes of an element of each */
    uint64_t table;
    HnCudaNearestArgs args; /* of elements as they are */
    int64_t last;           /* elements of the last axis, if it stays; else 1 */
    HnCuFunction grid;      /* of two last axes that both do not stay; NULL: there is none */
    HnCudaGridNearestArgs grid_args;
} Nearest;

static const char *nearest_reject(const HnStep *s)
{
    const HnResize *p = s->params;
    HnResizeAxis axis[HN_MAX_RANK];
    int n;
    const char *reason = p->mode != HN_RESIZE_NEAREST ? "a mean" : hn_copy_reject(hn_cuda_in(s, 0));
    reason = reason != NULL ? reason : size_reject(s);
    if (reason != NULL)
        return reason;
    return hn_cuda_goes_last(s, &hn_cuda_nearest_last) ? HN_CUDA_GOES_LAST : hn_resize_form(s, FALSE, &n, axis);
}

/* Indices of all axes that do not stay. */
static gboolean make_tables(HnStep *s, Nearest *r, int n, const HnResizeAxis *axis, GError **error)
{
    int64_t total = 0;
    for (int a = 0; a < n; a++) {
        const gboolean same = hn_resize_stays(s->params, &axis[a]);
        r->args.tables[a] = same ? -1 : total;
        total += same ? 0 : axis[a].out;
    }
    if (total == 0)
        return TRUE;
    int32_t *table = hn_resize_table(s, total, sizeof *table, error);
    if (table == NULL)
        return FALSE;
    for (int a = 0; a < n; a++)
        for (int64_t y = 0; r->args.tables[a] >= 0 && y < axis[a].out; y++)
            table[r->args.tables[a] + y] = (int32_t)hn_resize_nearest(s->params, &axis[a], y);
    r->table = hn_cuda_table_new(s, table, (gsize)total * sizeof *table, error);
    hn_budget_free(s->budget, table);
    return r->table != 0;
}

/* Two last axes that do not stay, behind one that does at most. */
static gboolean use_grid(const HnStep *s, int n, const HnResizeAxis *axis, GError **error)
{
    Nearest *r = s->state;
    HnCudaGridNearestArgs *g = &r->grid_args;
    if (n < 2 || n > 3 || r->args.tables[n - 1] < 0 || r->args.tables[n - 2] < 0 || (n == 3 && r->args.tables[0] >= 0))
        return TRUE;
    const HnResizeAxis *rows = &axis[n - 2], *columns = &axis[n - 1];
    const int64_t groups = (rows->out + HN_CUDA_RESIZE_ROWS - 1) / HN_CUDA_RESIZE_ROWS;
    g->row_table = r->table + (uint64_t)r->args.tables[n - 2] * sizeof(int32_t);
    g->column_table = r->table + (uint64_t)r->args.tables[n - 1] * sizeof(int32_t);
    g->rows = (int32_t)rows->out;
    g->in_rows = rows->in;
    g->in_columns = columns->in;
    g->columns = hn_divisor(columns->out);
    g->row_groups = hn_divisor(groups);
    g->n = (uint32_t)((n == 3 ? axis[0].out : 1) * groups * columns->out);
    return (r->grid = hn_cuda_sized(s, "cuda_resize", "resize_nearest_grid", r->size, error)) != NULL;
}

static gboolean nearest_prepare(HnStep *s, GError **error)
{
    HnResizeAxis axis[HN_MAX_RANK];
    int n;
    Nearest *r = g_new0(Nearest, 1);
    s->state = r;
    (void)hn_resize_form(s, FALSE, &n, axis);
    r->size = hn_dtype_size(hn_cuda_in(s, 0)->dtype);
    r->last = hn_resize_stays(s->params, &axis[n - 1]) ? axis[n - 1].in : 1;
    const int64_t bytes = (r->last * (int64_t)r->size) | WIDEST;
    r->width = (size_t)(bytes & -bytes);
    r->args.ndim = n;
    for (int64_t a = n - 1, stride = 1; a >= 0; stride *= axis[a--].in) {
        r->args.dims[a] = hn_divisor(axis[a].out);
        r->args.strides[a] = stride;
    }
    read_source(s);
    r->as_is = hn_cuda_sized(s, "cuda_resize", "resize_nearest", r->size, error);
    r->wide = r->as_is != NULL ? hn_cuda_sized(s, "cuda_resize", "resize_nearest", r->width, error) : NULL;
    return r->wide != NULL && make_tables(s, r, n, axis, error) && use_grid(s, n, axis, error);
}

static gboolean nearest_run(HnStep *s, GError **error)
{
    const Nearest *r = s->state;
    HnCudaNearestArgs a = r->args;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 0);
    a.table = r->table;
    if (r->grid != NULL) {
        HnCudaGridNearestArgs g = r->grid_args;
        g.y = a.y;
        g.x = a.x;
        return hn_cuda_launch(s, r->grid, hn_cuda_spread(s, g.n, THREADS), &g, error);
    }
    const gboolean wide = (a.y | a.x) % r->width == 0;
    const int64_t times = wide ? (int64_t)(r->width / r->size) : 1;
    a.n = (uint32_t)(hn_cuda_out(s, 0)->n / times);
    if (times > 1) {
        a.dims[a.ndim - 1] = hn_divisor(r->last / times);
        for (int k = 0; k < a.ndim - 1; k++)
            a.strides[k] /= times;
    }
    return hn_cuda_launch(s, wide ? r->wide : r->as_is, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static void nearest_release(HnStep *s)
{
    const Nearest *r = s->state;
    if (r != NULL)
        hn_cuda_table_free(s, r->table);
    hn_cuda_release(s);
}

static const HnKernel resize_nearest = {
    .name = "cuda.resize_nearest",
    .reject = nearest_reject,
    .prepare = nearest_prepare,
    .run = nearest_run,
    .release = nearest_release,
};

/* --- means ------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaMeanArgs args;
} Pass;

typedef struct {
    int n;
    gsize between; /* bytes of a result between two passes */
    uint64_t table;
    Pass pass[HN_MAX_RANK];
    HnCuFunction grid; /* NULL: pass by pass */
    HnCudaGridMeanArgs grid_args;
} Means;

/* x lies channels last, without gaps, and so will y. */
static gboolean means_last(const HnStep *s)
{
    const HnSlot *x = s->in[0].slot;
    return hn_resize_source(s) == 0 && x->layout != NULL && hn_cuda_padded(x->tensor) == x->tensor->dims[1] &&
           x->tensor->dims[1] == hn_cuda_out(s, 0)->dims[1];
}

static const char *back_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    reason = reason != NULL ? reason : size_reject(s);
    reason = reason != NULL ? reason : hn_resize_means_reject(s, means_last(s));
    if (reason != NULL)
        return reason;
    HnResizeAxis axis[HN_MAX_RANK];
    int64_t most[HN_MAX_RANK], elements;
    int n;
    (void)hn_resize_form(s, means_last(s), &n, axis);
    for (int a = 0; a < n; a++)
        most[a] = MAX(axis[a].in, axis[a].out);
    return hn_dims_count(n, most, &elements) && elements < HN_DIVIDE_LIMIT ? NULL : "2^31 elements or more between";
}

static const char *means_reject(const HnStep *s)
{
    const HnResize *p = s->params;
    return p->mode == HN_RESIZE_NEAREST ? "no mean" : back_reject(s);
}

static gsize table_bytes(const HnResizePass *p)
{
    return (gsize)(p->out + 1 + 2 * p->first[p->out]) * sizeof(int32_t);
}

/* Beginnings, places and weights of a pass, one behind the other. */
static void fill_table(const HnResizePass *p, void *to)
{
    int32_t *first = to, *at = first + p->out + 1;
    for (int64_t i = 0; i <= p->out; i++)
        first[i] = (int32_t)p->first[i];
    for (int64_t i = 0; i < p->first[p->out]; i++)
        at[i] = (int32_t)p->at[i];
    memcpy(at + p->first[p->out], p->weight, (gsize)p->first[p->out] * sizeof *p->weight);
}

static gboolean pass_new(const HnStep *s, const Means *m, Pass *to, const HnResizeMeans *means, int i, uint64_t table,
                         GError **error)
{
    const HnResizePass *p = &means->pass[i];
    const char *type = hn_dtype_name(hn_cuda_in(s, 0)->dtype), *between = hn_dtype_name(HN_F32);
    g_autofree char *name = g_strdup_printf("resize_%s_%s", i == 0 ? type : between, i == m->n - 1 ? type : between);
    to->args.n = (uint32_t)(means->pieces * p->outer * p->out * p->inner);
    to->args.in = p->in;
    to->args.out = hn_divisor(p->out);
    to->args.inner = hn_divisor(p->inner);
    to->args.first = table;
    to->args.at = table + (uint64_t)(p->out + 1) * sizeof(int32_t);
    to->args.weight = to->args.at + (uint64_t)p->first[p->out] * sizeof(int32_t);
    return (to->f = hn_cuda_named(s, "cuda_resize", name, error)) != NULL;
}

static gboolean passes_new(HnStep *s, Means *m, const HnResizeMeans *means, GError **error)
{
    gsize bytes = 0, at = 0;
    m->n = means->n;
    m->between = (gsize)(means->pieces * means->between) * sizeof(float);
    s->scratch_bytes = 2 * m->between;
    for (int i = 0; i < m->n; i++)
        bytes += table_bytes(&means->pass[i]);
    if (bytes == 0)
        return TRUE;
    char *tables = hn_resize_table(s, (int64_t)bytes, 1, error);
    for (int i = 0; tables != NULL && i < m->n; at += table_bytes(&means->pass[i++]))
        fill_table(&means->pass[i], tables + at);
    m->table = tables != NULL ? hn_cuda_table_new(s, tables, bytes, error) : 0;
    hn_budget_free(s->budget, tables);
    gboolean ok = m->table != 0;
    at = 0;
    for (int i = 0; ok && i < m->n; at += table_bytes(&means->pass[i++]))
        ok = pass_new(s, m, &m->pass[i], means, i, m->table + at, error);
    return ok;
}

/* Two passes of at most two taps, along axes that are neighbours. */
static gboolean is_grid(const HnResizeMeans *m, const HnResizePass *rows, const HnResizePass *columns)
{
    if (rows->inner != (rows == &m->pass[1] ? columns->out : columns->in) * columns->inner)
        return FALSE;
    for (int i = 0; i < 2; i++)
        for (int64_t y = 0; y < m->pass[i].out; y++)
            if (m->pass[i].first[y + 1] - m->pass[i].first[y] > 2)
                return FALSE;
    return TRUE;
}

static void fill_taps(const HnResizePass *p, HnCudaTaps *taps)
{
    for (int64_t y = 0; y < p->out; y++)
        for (int k = 0; k < 2; k++) {
            const int64_t t = p->first[y] + k;
            const gboolean there = t < p->first[y + 1];
            taps[y].at[k] = there ? (int32_t)p->at[t] : -1;
            taps[y].weight[k] = there ? p->weight[t] : 0.0f;
        }
}

static gboolean grid_new(HnStep *s, const HnResizeMeans *means, const HnResizePass *rows, const HnResizePass *columns,
                         GError **error)
{
    Means *m = s->state;
    HnCudaGridMeanArgs *a = &m->grid_args;
    const int64_t groups = (rows->out + HN_CUDA_RESIZE_ROWS - 1) / HN_CUDA_RESIZE_ROWS;
    HnCudaTaps *taps = hn_resize_table(s, rows->out + columns->out, sizeof *taps, error);
    if (taps == NULL)
        return FALSE;
    fill_taps(rows, taps);
    fill_taps(columns, taps + rows->out);
    m->table = hn_cuda_table_new(s, taps, (gsize)(rows->out + columns->out) * sizeof *taps, error);
    hn_budget_free(s->budget, taps);
    a->row_taps = m->table;
    a->column_taps = m->table + (uint64_t)rows->out * sizeof *taps;
    a->columns_first = columns == &means->pass[0];
    a->rows = (int32_t)rows->out;
    a->in_rows = rows->in;
    a->in_columns = columns->in;
    a->inner = hn_divisor(columns->inner);
    a->columns = hn_divisor(columns->out);
    a->row_groups = hn_divisor(groups);
    a->n = (uint32_t)(means->pieces * rows->outer * groups * columns->out * columns->inner);
    m->grid = m->table != 0 ? hn_cuda_typed(s, "cuda_resize", "resize_grid", hn_cuda_in(s, 0)->dtype, error) : NULL;
    return m->grid != NULL;
}

static gboolean forms_new(HnStep *s, const HnResizeMeans *m, GError **error)
{
    if (m->n == 2) {
        const HnResizePass *p = m->pass;
        const gboolean turned = p[0].inner < p[1].inner || (p[0].inner == p[1].inner && p[0].outer > p[1].outer);
        const HnResizePass *rows = &p[turned ? 1 : 0], *columns = &p[turned ? 0 : 1];
        if (is_grid(m, rows, columns))
            return grid_new(s, m, rows, columns, error);
    }
    return passes_new(s, s->state, m, error);
}

static gboolean means_prepare(HnStep *s, GError **error)
{
    HnResizeMeans means = { 0 };
    s->state = g_new0(Means, 1);
    read_source(s);
    const gboolean last = means_last(s);
    if (last) {
        hn_cuda_want_last(s, 0);
        hn_cuda_make_last(s);
    }
    const gboolean ok = hn_resize_means_init(&means, s, last, error) && forms_new(s, &means, error);
    hn_resize_means_clear(&means, s);
    return ok;
}

static gboolean means_run(HnStep *s, GError **error)
{
    const Means *m = s->state;
    const uint64_t y = hn_cuda_out_address(s, 0);
    uint64_t x = hn_cuda_in_address(s, hn_resize_source(s));
    if (m->grid != NULL) {
        HnCudaGridMeanArgs a = m->grid_args;
        a.x = x;
        a.y = y;
        return hn_cuda_launch(s, m->grid, hn_cuda_spread(s, a.n, THREADS), &a, error);
    }
    if (m->n == 0)
        return hn_cuda_copy(s, y, x, hn_cuda_out(s, 0)->bytes, error);
    for (int i = 0; i < m->n; i++) {
        HnCudaMeanArgs a = m->pass[i].args;
        a.x = x;
        a.y = i == m->n - 1 ? y : hn_cuda_scratch(s) + i % 2 * m->between;
        if (!hn_cuda_launch(s, m->pass[i].f, hn_cuda_loop(s, a.n, THREADS), &a, error))
            return FALSE;
        x = a.y;
    }
    return TRUE;
}

static void means_release(HnStep *s)
{
    const Means *m = s->state;
    if (m != NULL)
        hn_cuda_table_free(s, m->table);
    hn_cuda_release(s);
}

static const HnKernel resize_means = {
    .name = "cuda.resize",
    .reject = means_reject,
    .prepare = means_prepare,
    .run = means_run,
    .release = means_release,
};

static const HnKernel resize_back = {
    .name = "cuda.resize_back",
    .reject = back_reject,
    .prepare = means_prepare,
    .run = means_run,
    .release = means_release,
};

const HnKernel *const hn_cuda_resize[] = { &resize_nearest, &resize_means, &hn_cuda_nearest_last, NULL };
const HnKernel *const hn_cuda_upsample[] = { &resize_nearest, &resize_means, &hn_cuda_nearest_last, NULL };
const HnKernel *const hn_cuda_resizegrad[] = { &resize_back, NULL };
