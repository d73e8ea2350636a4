/*
 * Ensembles of trees, packed as on the CPU: numbers become keys once, a thread takes a row through a group of trees,
 * and groups are added up in their order, in double. How many trees are a group follows from sizes alone.
 */
#include "cuda/core/cuda_kernel.h"
#include "cuda/trees/cuda_trees_args.h"
#include "op/ops.h"
#include "run/trees_pack.h"

#define THREADS 128
#define GROUP_TREES 8                   /* at least */
#define WALKS ((int64_t)1 << 17)        /* threads that keep any device busy */
#define CHUNK_ROWS ((int64_t)1 << 16)   /* rows at a time, and ... */
#define CHUNK_BYTES ((int64_t)64 << 20) /* ... memory for their keys and sums, about */

_Static_assert((int)HN_LEAF_VALUE == HN_CUDA_LEAF_VALUE && (int)HN_LEAF_DENSE == HN_CUDA_LEAF_DENSE &&
                   (int)HN_LEAF_SOME == HN_CUDA_LEAF_SOME && (int)HN_TREES_AVERAGE == HN_CUDA_TREES_AVERAGE &&
                   (int)HN_TREES_SUM == HN_CUDA_TREES_SUM && (int)HN_TREES_MIN == HN_CUDA_TREES_MIN &&
                   (int)HN_TREES_MAX == HN_CUDA_TREES_MAX,
               "leaves and sums have the same numbers on the device");
_Static_assert((int)HN_ML_NONE == HN_CUDA_ML_NONE && (int)HN_ML_SOFTMAX == HN_CUDA_ML_SOFTMAX &&
                   (int)HN_ML_LOGISTIC == HN_CUDA_ML_LOGISTIC && (int)HN_ML_SOFTMAX_ZERO == HN_CUDA_ML_SOFTMAX_ZERO &&
                   (int)HN_ML_PROBIT == HN_CUDA_ML_PROBIT,
               "transforms have the same numbers on the device");
_Static_assert(sizeof(HnTreeWeight) == sizeof(HnCudaTreeWeight) &&
                   G_STRUCT_OFFSET(HnTreeWeight, target) == G_STRUCT_OFFSET(HnCudaTreeWeight, target),
               "weights are copied as they are");

/* Memory on the device that is the step's own. */
enum { CELL, VALUE, TREE, COLUMN, RANK, TABLE, FIRST, WEIGHT, BASE, GIVEN, LABEL, N_TABLES };

typedef struct {
    HnCuFunction keys, walk, scores;
    uint64_t table[N_TABLES];
    int64_t rows, chunk; /* of rows */
    gsize element;       /* bytes of an element of the input */
    gsize keys_bytes, sum_bytes;
    HnCudaTreeKeysArgs key;
    HnCudaTreeWalkArgs go;
    HnCudaTreeScoresArgs score;
    int out; /* output with scores */
} Trees;

static gboolean is_classifier(const HnStep *s)
{
    return s->op == &hn_op_treeensembleclassifier;
}

static const char *trees_reject(const HnStep *s)
{
    const HnTreesParams *p = s->params;
    const char *why = hn_trees_reject(p, hn_cuda_in(s, 0));
    if (why != NULL)
        return why;
    return is_classifier(s) && p->labels.strings != NULL ? "labels are texts" : NULL;
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

/* FALSE: error. Of nothing there is no table. */
static gboolean keep(const HnStep *s, int which, const void *data, gsize n, gsize size, GError **error)
{
    Trees *t = s->state;
    return n == 0 || (t->table[which] = hn_cuda_table_new(s, data, n * size, error)) != 0;
}

static gboolean keep_trees(const HnStep *s, const HnPackedTrees *p, GError **error)
{
    const gsize n = (gsize)p->trees->n_trees;
    g_autofree HnCudaTree *tree = g_new0(HnCudaTree, n + 1);
    for (gsize i = 0; i < n; i++)
        tree[i] = (HnCudaTree){ (int32_t)p->place[i].first, (int32_t)p->place[i].kind, p->place[i].target };
    return keep(s, TREE, tree, n, sizeof *tree, error) && keep(s, CELL, p->cell, p->n_cells, sizeof *p->cell, error) &&
           keep(s, VALUE, p->value, p->n_cells, sizeof *p->value, error);
}

static gboolean keep_columns(const HnStep *s, const HnPackedTrees *p, GError **error)
{
    const gsize n = (gsize)p->n_columns;
    g_autofree HnCudaTreeColumn *column = g_new0(HnCudaTreeColumn, n + 1);
    gsize ranks = 0;
    for (gsize i = 0; i < n; i++) {
        const HnTreeColumn *c = &p->column[i];
        column[i] = (HnCudaTreeColumn){ c->feature, c->nan, (int64_t)c->first, (int32_t)c->n };
        ranks = p->ranked ? c->first + c->n : 0;
    }
    return keep(s, COLUMN, column, n, sizeof *column, error) && keep(s, RANK, p->ranks, ranks, sizeof *p->ranks, error);
}

static gboolean keep_leaves(const HnStep *s, const HnPackedTrees *p, GError **error)
{
    const gsize targets = (gsize)p->trees->n_targets, some = (gsize)p->n_some;
    return keep(s, TABLE, p->table, (gsize)p->n_table * targets, sizeof *p->table, error) &&
           keep(s, FIRST, p->first, some > 0 ? some + 1 : 0, sizeof *p->first, error) &&
           keep(s, WEIGHT, p->weights, some > 0 ? (gsize)p->first[some] : 0, sizeof *p->weights, error) &&
           keep(s, BASE, p->trees->base, (gsize)p->trees->n_base, sizeof *p->trees->base, error) &&
           keep(s, GIVEN, p->has, targets, sizeof *p->has, error);
}

static gboolean keep_all(const HnStep *s, const HnPackedTrees *p, GError **error)
{
    const HnMlLabels *labels = &((const HnTreesParams *)s->params)->labels;
    return keep_trees(s, p, error) && keep_columns(s, p, error) && keep_leaves(s, p, error) &&
           (!is_classifier(s) || keep(s, LABEL, labels->ints, (gsize)labels->n, sizeof *labels->ints, error));
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

static gsize aligned(int64_t bytes)
{
    return ((gsize)bytes + 63) & ~(gsize)63;
}

static void choose_sizes(HnStep *s, const HnPackedTrees *p)
{
    Trees *t = s->state;
    HnCudaTreeWalkArgs *w = &t->go;
    const gboolean ordered = w->aggregate == HN_CUDA_TREES_MIN || w->aggregate == HN_CUDA_TREES_MAX;
    t->chunk = MIN(t->rows, CHUNK_ROWS);
    const int64_t groups = CLAMP(WALKS / t->chunk, 1, MAX(w->trees / GROUP_TREES, 1));
    w->group = (w->trees + groups - 1) / groups;
    w->groups = w->group > 0 ? (w->trees + w->group - 1) / w->group : 1;
    const int64_t sums = w->groups * w->targets * (int64_t)sizeof(double);
    t->chunk = CLAMP(CHUNK_BYTES / (p->n_columns * (int64_t)sizeof(int32_t) + sums), 1, t->chunk);
    t->keys_bytes = aligned(p->n_columns * t->chunk * (int64_t)sizeof(int32_t));
    t->sum_bytes = aligned(sums * t->chunk);
    w->has = p->mixed || ordered;
    s->scratch_bytes = t->keys_bytes + t->sum_bytes + (w->has ? aligned(w->groups * w->targets * t->chunk) : 0);
}

static void fill_in(HnStep *s, const HnPackedTrees *p)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    const HnTrees *trees = p->trees;
    Trees *t = s->state;
    t->element = hn_dtype_size(x->dtype);
    t->key.features = x->dims[x->ndim - 1];
    t->key.columns = (int32_t)p->n_columns;
    t->rows = x->n / t->key.features;
    t->go.targets = trees->n_targets;
    t->go.trees = trees->n_trees;
    t->go.bits = p->bits;
    t->go.aggregate = (int32_t)trees->aggregate;
    t->score.n_base = trees->n_base;
    t->score.divide = trees->aggregate == HN_TREES_AVERAGE ? (double)MAX(trees->n_trees, 1) : 1;
    t->score.aggregate = t->go.aggregate;
    t->score.transform = (int32_t)trees->transform;
    t->score.how = !trees->kind.classes    ? HN_CUDA_TREES_TARGETS
                   : trees->n_targets == 2 ? HN_CUDA_TREES_PAIR
                                           : HN_CUDA_TREES_CLASSES;
    t->score.probability = trees->kind.binary && trees->kind.positive;
    t->out = is_classifier(s) ? 1 : 0;
    t->score.wide = hn_cuda_out(s, t->out) != NULL && hn_cuda_out(s, t->out)->dtype == HN_F64;
    choose_sizes(s, p);
    t->score.targets = t->go.targets;
    t->score.groups = t->go.groups;
}

static gboolean trees_prepare(HnStep *s, GError **error)
{
    const HnDtype dtype = hn_cuda_in(s, 0)->dtype;
    Trees *t = g_new0(Trees, 1);
    s->state = t;
    HnPackedTrees *p = hn_trees_pack(s->node, dtype, error);
    if (p == NULL)
        return FALSE;
    fill_in(s, p);
    const gboolean kept = keep_all(s, p, error);
    hn_trees_unpack(p);
    return kept && (t->keys = hn_cuda_typed(s, "cuda_trees", "trees_keys", dtype, error)) != NULL &&
           (t->walk = hn_cuda_named(s, "cuda_trees", "trees_walk", error)) != NULL &&
           (t->scores = hn_cuda_named(s, "cuda_trees", "trees_scores", error)) != NULL;
}

/* --- runs -------------------------------------------------------------------------------------------------------- */

static gboolean make_keys(const HnStep *s, int64_t row, int64_t n, GError **error)
{
    const Trees *t = s->state;
    HnCudaTreeKeysArgs a = t->key;
    a.x = hn_cuda_in_address(s, 0) + (uint64_t)(row * a.features) * t->element;
    a.key = hn_cuda_scratch(s);
    a.column = t->table[COLUMN];
    a.rank = t->table[RANK];
    a.rows = n;
    return a.columns == 0 || hn_cuda_launch(s, t->keys, hn_cuda_loop(s, n * a.columns, THREADS), &a, error);
}

static gboolean walk(const HnStep *s, HnCudaTreeWalkArgs a, GError **error)
{
    const Trees *t = s->state;
    a.key = hn_cuda_scratch(s);
    a.cell = t->table[CELL];
    a.value = t->table[VALUE];
    a.tree = t->table[TREE];
    a.table = t->table[TABLE];
    a.first = t->table[FIRST];
    a.weight = t->table[WEIGHT];
    return hn_cuda_launch(s, t->walk, hn_cuda_loop(s, a.rows * a.groups, THREADS), &a, error);
}

static gboolean make_scores(const HnStep *s, HnCudaTreeScoresArgs a, int64_t row, GError **error)
{
    const Trees *t = s->state;
    const uint64_t scores = hn_cuda_out_address(s, t->out), labels = is_classifier(s) ? hn_cuda_out_address(s, 0) : 0;
    a.base = t->table[BASE];
    a.given = t->table[GIVEN];
    a.label = t->table[LABEL];
    a.y = scores != 0 ? scores + (uint64_t)(row * a.targets) * (a.wide ? sizeof(double) : sizeof(float)) : 0;
    a.labels = labels != 0 ? labels + (uint64_t)row * sizeof(int64_t) : 0;
    return hn_cuda_launch(s, t->scores, hn_cuda_loop(s, a.rows, THREADS), &a, error);
}

static gboolean trees_run(HnStep *s, GError **error)
{
    const Trees *t = s->state;
    HnCudaTreeWalkArgs w = t->go;
    HnCudaTreeScoresArgs a = t->score;
    a.sum = w.sum = hn_cuda_scratch(s) + t->keys_bytes;
    a.has = w.has = t->go.has ? w.sum + t->sum_bytes : 0;
    for (int64_t row = 0; row < t->rows; row += t->chunk) {
        a.rows = w.rows = MIN(t->chunk, t->rows - row);
        if (!make_keys(s, row, a.rows, error) || !walk(s, w, error) || !make_scores(s, a, row, error))
            return FALSE;
    }
    return TRUE;
}

static void trees_release(HnStep *s)
{
    const Trees *t = s->state;
    for (int i = 0; t != NULL && i < N_TABLES; i++)
        hn_cuda_table_free(s, t->table[i]);
    hn_cuda_release(s);
}

static const HnKernel trees = {
    .name = "cuda.trees",
    .reject = trees_reject,
    .prepare = trees_prepare,
    .run = trees_run,
    .release = trees_release,
};
const HnKernel *const hn_cuda_treeensemble[] = { &trees, NULL };
const HnKernel *const hn_cuda_treeensembleclassifier[] = { &trees, NULL };
const HnKernel *const hn_cuda_treeensembleregressor[] = { &trees, NULL };
