/*
 * Ensembles of trees. A chunk of rows becomes keys once; trees are taken in blocks that stay in the second cache, and
 * for each block rows in pieces whose keys stay in the first. Scores are summed in double, tree by tree, so that they
 * do not depend on threads or on how rows are cut.
 *
 * Threads get chunks of rows; where there are few rows they get blocks of trees, whose leaves are then added up by one.
 */
#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/trees/trees_walk.h"
#include "op/ops.h"

#define FEW_ROWS 8                            /* up to here one row at a time, trees as lanes */
#define CHUNK_BYTES ((gsize)512 << 10)        /* of keys and sums */
#define PIECE_BYTES ((gsize)24 << 10)         /* of keys that stay in the first cache */
#define BLOCK_CELLS ((gsize)(768 << 10) / 12) /* of trees that stay in the second one */
#define CHUNK_ROWS_MAX 4096

typedef struct {
    HnPackedTrees *p;
    const HnTreeWalks *walks;
    int64_t rows, features, targets;
    int out;              /* output with scores; -1: nobody wants them */
    int32_t stride;       /* of rows of keys */
    int64_t chunk, piece; /* rows */
    int threads;
    gsize keys_bytes, sum_bytes, has_bytes, leaf_bytes, thread_bytes;
} Trees;

/* Memory of a thread. */
typedef struct {
    int32_t *keys; /* [chunk, stride] */
    double *sum;   /* [targets, chunk], or [chunk, targets] where trees are mixed */
    uint8_t *has;  /* [chunk, targets], where trees are mixed */
    double *row;   /* [targets], at least 2 */
    float *floats; /* [features]: a row of integers */
} Work;

static gboolean is_classifier(const HnStep *s)
{
    return s->op == &hn_op_treeensembleclassifier;
}

static const char *trees_reject(const HnStep *s)
{
    return hn_trees_reject(s->params, hn_cpu_in(s, 0));
}

static gsize aligned(gsize bytes)
{
    return (bytes + 63) & ~(gsize)63;
}

static void plan_rows(Trees *t, int64_t threads)
{
    const HnPackedTrees *p = t->p;
    t->stride = (int32_t)p->n_columns | 1; /* rows do not meet in the same lines of a cache */
    const gsize row = (gsize)t->stride * sizeof(int32_t) + (gsize)t->targets * (sizeof(double) + (p->mixed ? 1 : 0));
    int64_t chunk = CLAMP((int64_t)(CHUNK_BYTES / row), HN_WALK_ROWS, CHUNK_ROWS_MAX);
    chunk = MIN(chunk, (t->rows + threads - 1) / threads);
    t->chunk = MAX((chunk + HN_WALK_ROWS - 1) / HN_WALK_ROWS, 1) * HN_WALK_ROWS;
    const int64_t piece = (int64_t)(PIECE_BYTES / ((gsize)t->stride * sizeof(int32_t)));
    t->piece = MAX(piece / HN_WALK_ROWS, 1) * HN_WALK_ROWS;
    t->keys_bytes = aligned((gsize)t->chunk * (gsize)t->stride * sizeof(int32_t));
    t->sum_bytes = aligned((gsize)t->chunk * (gsize)t->targets * sizeof(double));
    t->has_bytes = p->mixed ? aligned((gsize)t->chunk * (gsize)t->targets) : 0;
}

static gboolean trees_prepare(HnStep *s, GError **error)
{
    const HnTreesParams *params = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    Trees *t = g_new0(Trees, 1);
    s->state = t;
    t->p = hn_trees_pack(s->node, x->dtype, error);
    if (t->p == NULL)
        return FALSE;
    t->walks = hn_tree_walks();
    t->features = x->dims[x->ndim - 1];
    t->rows = x->n / t->features;
    t->targets = params->n_targets;
    t->out = is_classifier(s) ? 1 : 0;
    if (t->out >= s->n_out || s->out[t->out].slot == NULL)
        t->out = -1;
    t->threads = hn_cpu_threads_for(s, 4 * (double)t->rows * t->p->steps);
    plan_rows(t, t->threads);
    t->leaf_bytes = t->rows <= FEW_ROWS ? aligned((gsize)t->p->trees->n_trees * sizeof(int32_t) + 512) : 0;
    t->thread_bytes = t->keys_bytes + t->sum_bytes + t->has_bytes +
                      aligned((gsize)MAX(t->targets, 2) * sizeof(double)) + aligned((gsize)t->features * sizeof(float));
    s->scratch_bytes = t->leaf_bytes + (gsize)t->threads * t->thread_bytes;
    return TRUE;
}

static Work work_of(const HnStep *s, int thread)
{
    const Trees *t = s->state;
    guint8 *at = (guint8 *)s->scratch + t->leaf_bytes + (gsize)thread * t->thread_bytes;
    Work w = { .keys = (int32_t *)(void *)at };
    at += t->keys_bytes;
    w.sum = (double *)(void *)at;
    at += t->sum_bytes;
    w.has = t->p->mixed ? at : NULL;
    at += t->has_bytes;
    w.row = (double *)(void *)at;
    w.floats = (float *)(void *)(at + aligned((gsize)MAX(t->targets, 2) * sizeof(double)));
    return w;
}

/* --- keys -------------------------------------------------------------------------------------------------------- */

/* How many thresholds are below x: x <= threshold i where that is at most i. */
static int32_t rank_below(const int64_t *v, gsize n, int64_t x)
{
    gsize first = 0;
    while (n > 0) {
        const gsize half = n / 2;
        const gboolean below = v[first + half] < x;
        first = below ? first + half + 1 : first;
        n = below ? n - half - 1 : half;
    }
    return (int32_t)first;
}

static double number_at(const HnTensor *x, int64_t i)
{
    switch (x->dtype) {
    case HN_F64:
        return ((const double *)x->data)[i];
    case HN_F32:
        return (double)((const float *)x->data)[i];
    case HN_I64:
        return (double)(float)((const int64_t *)x->data)[i];
    default:
        return (double)(float)((const int32_t *)x->data)[i];
    }
}

static void make_ranks(const Trees *t, int32_t *keys, const HnTensor *x, int64_t row)
{
    for (int64_t c = 0; c < t->p->n_columns; c++) {
        const HnTreeColumn *column = &t->p->column[c];
        const double v = number_at(x, row * t->features + column->feature);
        keys[c] = v != v ? column->nan : rank_below(t->p->ranks + column->first, column->n, hn_tree_key64(v));
    }
}

static void make_keys(const Trees *t, const Work *w, const HnTensor *x, int64_t row, int64_t n)
{
    if (x->dtype == HN_F32 && !t->p->ranked) {
        t->walks->keys(w->keys, t->stride, t->p, (const float *)x->data + row * t->features, t->features, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int32_t *keys = w->keys + i * t->stride;
        if (t->p->ranked) {
            make_ranks(t, keys, x, row + i);
            continue;
        }
        for (int64_t f = 0; f < t->features; f++)
            w->floats[f] = (float)number_at(x, (row + i) * t->features + f);
        t->walks->keys(keys, t->stride, t->p, w->floats, t->features, 1);
    }
}

/* --- leaves ------------------------------------------------------------------------------------------------------ */

/* What leaf `at` of tree i gives a row. */
static void add_leaf(const HnPackedTrees *p, const HnTreePlace *t, HnCellValue at, double *sum, uint8_t *has)
{
    const HnTreesAggregate how = p->trees->aggregate;
    const int64_t targets = p->trees->n_targets;
    if (t->kind == HN_LEAF_VALUE) {
        hn_trees_add(how, &sum[t->target], &has[t->target], (double)at.value);
        return;
    }
    if (t->kind == HN_LEAF_DENSE) {
        for (int64_t k = 0; k < targets; k++)
            hn_trees_add(how, &sum[k], &has[k], p->table[at.at * targets + k]);
        return;
    }
    for (int32_t i = p->first[at.at]; i < p->first[at.at + 1]; i++)
        hn_trees_add(how, &sum[p->weights[i].target], &has[p->weights[i].target], p->weights[i].value);
}

/* n rows from `row` of the chunk on, whose leaves of the tree are known. */
static void add_leaves(const Trees *t, const Work *w, const HnTreePlace *tree, const int32_t *leaf, int64_t row, int n)
{
    const HnPackedTrees *p = t->p;
    const HnCellValue *value = p->value + tree->first;
    const HnTreesAggregate how = p->trees->aggregate;
    if (p->mixed) {
        for (int i = 0; i < n; i++)
            add_leaf(p, tree, value[leaf[i]], w->sum + (row + i) * t->targets, w->has + (row + i) * t->targets);
        return;
    }
    double *sum = w->sum + tree->target * t->chunk + row;
    if (how == HN_TREES_SUM || how == HN_TREES_AVERAGE) {
        t->walks->add(sum, value, leaf, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        uint8_t has = !tree->opens;
        hn_trees_add(how, &sum[i], &has, (double)value[leaf[i]].value);
    }
}

/* Trees from `from` on that fit into a block. */
static int64_t block_end(const HnPackedTrees *p, int64_t from)
{
    int64_t end = from + 1;
    while (end < p->trees->n_trees &&
           p->place[end].first + (gsize)p->place[end].cells - p->place[from].first <= BLOCK_CELLS)
        end++;
    return end;
}

static void walk_chunk(const Trees *t, const Work *w, int64_t n)
{
    const HnPackedTrees *p = t->p;
    int32_t leaf[HN_WALK_ROWS];
    for (int64_t from = 0, end; from < p->trees->n_trees; from = end) {
        end = block_end(p, from);
        for (int64_t piece = 0; piece < n; piece += t->piece)
            for (int64_t i = from; i < end; i++) {
                for (int64_t r = piece; r < MIN(piece + t->piece, n); r += HN_WALK_ROWS) {
                    const int rows = (int)MIN(MIN(piece + t->piece, n) - r, HN_WALK_ROWS);
                    t->walks->rows(leaf, p, &p->place[i], w->keys + r * t->stride, t->stride, rows);
                    add_leaves(t, w, &p->place[i], leaf, r, rows);
                }
            }
    }
}

/* --- results ----------------------------------------------------------------------------------------------------- */

static void put_scores(const HnStep *s, const double *sum, int64_t row)
{
    const Trees *t = s->state;
    if (t->out < 0)
        return;
    void *y = hn_cpu_data(&s->out[t->out]);
    if (s->out[t->out].slot->tensor->dtype == HN_F64)
        memcpy((double *)y + row * t->targets, sum, (gsize)t->targets * sizeof *sum);
    else
        for (int64_t k = 0; k < t->targets; k++)
            ((float *)y)[row * t->targets + k] = (float)sum[k];
}

/* w->row holds what the row's leaves gave. */
static void finish_row(const HnStep *s, const Work *w, const uint8_t *has, int64_t row)
{
    const Trees *t = s->state;
    const int64_t class = hn_trees_finish(t->p->trees, w->row, has);
    if (is_classifier(s) && s->out[0].slot != NULL)
        hn_ml_label(s->out[0].slot->tensor, row, &((const HnTreesParams *)s->params)->labels, class);
    put_scores(s, w->row, row);
}

static void finish_chunk(const HnStep *s, const Work *w, int64_t row, int64_t n)
{
    const Trees *t = s->state;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < t->targets; k++)
            w->row[k] = t->p->mixed ? w->sum[i * t->targets + k] : w->sum[k * t->chunk + i];
        finish_row(s, w, t->p->mixed ? w->has + i * t->targets : t->p->has, row + i);
    }
}

static void run_chunk(const HnStep *s, int thread, int64_t chunk)
{
    const Trees *t = s->state;
    const Work w = work_of(s, thread);
    const int64_t row = chunk * t->chunk, n = MIN(t->chunk, t->rows - row);
    make_keys(t, &w, hn_cpu_in(s, 0), row, n);
    memset(w.sum, 0, t->sum_bytes);
    if (t->has_bytes > 0)
        memset(w.has, 0, t->has_bytes);
    walk_chunk(t, &w, n);
    finish_chunk(s, &w, row, n);
}

/* --- few rows ---------------------------------------------------------------------------------------------------- */

static void add_trees(const Trees *t, const Work *w, const int32_t *leaf)
{
    const HnPackedTrees *p = t->p;
    const int64_t n = p->trees->n_trees;
    const gboolean adds = p->trees->aggregate == HN_TREES_SUM || p->trees->aggregate == HN_TREES_AVERAGE;
    memset(w->row, 0, (gsize)MAX(t->targets, 2) * sizeof *w->row);
    if (p->mixed || !adds) {
        uint8_t *has = w->has != NULL ? w->has : (uint8_t *)(void *)w->sum;
        memset(has, 0, (gsize)t->targets);
        for (int64_t i = 0; i < n; i++)
            add_leaf(p, &p->place[i], p->value[leaf[i]], w->row, has);
        return;
    }
    if (t->targets == 1) {
        w->row[0] = t->walks->sum(p->value, leaf, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        w->row[p->place[i].target] += (double)p->value[leaf[i]].value;
}

static void run_row(const HnStep *s, int64_t row)
{
    const Trees *t = s->state;
    const HnPackedTrees *p = t->p;
    const Work w = work_of(s, 0);
    int32_t *leaf = s->scratch;
    const int64_t n = p->trees->n_trees, groups = (n + HN_WALK_TREES - 1) / HN_WALK_TREES;
    make_keys(t, &w, hn_cpu_in(s, 0), row, 1);
#pragma omp parallel for num_threads(t->threads) if (t->threads > 1)
    for (int64_t g = 0; g < groups; g++)
        t->walks->trees(leaf + g * HN_WALK_TREES, p, w.keys, g * HN_WALK_TREES,
                        (int)MIN(n - g * HN_WALK_TREES, HN_WALK_TREES));
    add_trees(t, &w, leaf);
    finish_row(s, &w, p->mixed ? w.has : p->has, row);
}

static gboolean trees_run(HnStep *s, GError **error)
{
    (void)error;
    const Trees *t = s->state;
    if (t->rows <= FEW_ROWS) {
        for (int64_t i = 0; i < t->rows; i++)
            run_row(s, i);
        return TRUE;
    }
    const int64_t chunks = (t->rows + t->chunk - 1) / t->chunk;
    const int threads = (int)MIN(t->threads, chunks);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int i = 0; i < threads; i++)
        for (int64_t c = chunks * i / threads; c < chunks * (i + 1) / threads; c++)
            run_chunk(s, i, c);
    return TRUE;
}

static void trees_release(HnStep *s)
{
    Trees *t = s->state;
    if (t != NULL)
        hn_trees_unpack(t->p);
    hn_cpu_release(s);
}

static const HnKernel trees_kernel = {
    .name = "cpu.trees",
    .reject = trees_reject,
    .prepare = trees_prepare,
    .run = trees_run,
    .release = trees_release,
};

const HnKernel *const hn_cpu_treeensemble[] = { &trees_kernel, NULL };
const HnKernel *const hn_cpu_treeensembleclassifier[] = { &trees_kernel, NULL };
const HnKernel *const hn_cpu_treeensembleregressor[] = { &trees_kernel, NULL };
