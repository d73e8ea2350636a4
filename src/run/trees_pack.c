#include "run/trees_pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_MAX (G_MAXINT32 - 2) /* of a tree */

/* Keys of thresholds, before they have 32 bits. */
#define KEY_NOTHING G_MININT64 /* only NaN that goes to `yes` is as small */
#define KEY_LEAF G_MAXINT64

/* What a cell is made of: a node, or a part of what a node tests. */
typedef struct {
    int32_t node;
    gboolean below;   /* of EQ: x <= value is known, x <= the number below is asked */
    gboolean missing; /* of MEMBER: NaN is dealt with */
    int32_t lo, hi;   /* of MEMBER: intervals between its limits that are left; lo > hi: all */
} Part;

typedef struct {
    int64_t key;
    int32_t child, column;
} WideCell;

typedef struct {
    HnPackedTrees *p;
    const HnTrees *t;
    GArray *part;      /* Part of each cell of the tree, in the order of cells */
    GArray *cells;     /* WideCell of all trees */
    GArray *values;    /* HnCellValue of all */
    GArray *limits;    /* int64_t: of the MEMBER node that is at hand */
    int32_t limits_of; /* node; -1: none */
    int32_t *seen;     /* by node: the tree, counted from 1, that met it last */
    int32_t trees_seen;
    gsize *made;        /* by node: 1 + the first cell that was made of it; from place->first on it is of this tree */
    int32_t *column[2]; /* by feature: 1 + column where NaN goes to `no`, to `yes`; 0: none yet */
    GArray *columns;    /* HnTreeColumn */
    GArray *some;       /* int32_t */
    GArray *weights;    /* HnTreeWeight */
    GArray *table;      /* double */
    HnTreePlace *place;
} Pack;

static int64_t key_of(const Pack *k, double x)
{
    return k->p->ranked ? hn_tree_key64(x) : hn_tree_key32((float)x);
}

static int32_t column_of(Pack *k, int32_t feature, gboolean nan_yes)
{
    int32_t *c = &k->column[nan_yes][feature];
    if (*c == 0) {
        const HnTreeColumn column = { .feature = feature, .nan = nan_yes ? HN_TREE_NAN_YES : HN_TREE_NAN_NO };
        g_array_append_val(k->columns, column);
        *c = (int32_t)k->columns->len;
    }
    return *c - 1;
}

/* --- branches as x <= key ---------------------------------------------------------------------------------------- */

typedef struct {
    int64_t key;
    gboolean nan_yes; /* NaN goes to the first side */
    Part side[2];     /* x <= key, x > key */
} Test;

static Part whole(int32_t node)
{
    return (Part){ .node = node, .lo = 0, .hi = -1 };
}

static int compare_keys(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The ends of intervals of which every other one holds a member, from the first, which holds none, on. */
static void find_limits(Pack *k, int32_t node)
{
    const HnTreeNode *n = &k->t->nodes[node];
    if (k->limits_of == node)
        return;
    k->limits_of = node;
    g_array_set_size(k->limits, 0);
    g_autofree int64_t *key = g_new0(int64_t, (gsize)n->n + 1);
    for (int32_t i = 0; i < n->n; i++)
        key[i] = key_of(k, k->t->members[n->first + i]);
    qsort(key, (size_t)n->n, sizeof *key, compare_keys);
    for (int32_t i = 0; i < n->n; i++) {
        const int64_t below = key[i] - 1;
        if (i > 0 && key[i] == key[i - 1])
            continue;
        if (k->limits->len > 0 && g_array_index(k->limits, int64_t, k->limits->len - 1) == below)
            g_array_set_size(k->limits, k->limits->len - 1); /* two members side by side */
        else
            g_array_append_val(k->limits, below);
        g_array_append_val(k->limits, key[i]);
    }
}

static Part interval(Pack *k, const Part *part, int32_t lo, int32_t hi)
{
    const HnTreeNode *n = &k->t->nodes[part->node];
    if (lo == hi)
        return whole(lo % 2 == 1 ? n->yes : n->no);
    return (Part){ .node = part->node, .missing = TRUE, .lo = lo, .hi = hi };
}

/* Intervals lo to hi, of which interval i ends at limit i. */
static Test test_member(Pack *k, const Part *part)
{
    const HnTreeNode *n = &k->t->nodes[part->node];
    find_limits(k, part->node);
    const int32_t lo = part->lo > part->hi ? 0 : part->lo,
                  hi = part->lo > part->hi ? (int32_t)k->limits->len : part->hi;
    if (n->missing && !part->missing)
        return (Test){ KEY_NOTHING, TRUE, { whole(n->yes), interval(k, part, lo, hi) } };
    if (lo == hi)
        return (Test){ KEY_NOTHING, FALSE, { interval(k, part, lo, hi), interval(k, part, lo, hi) } };
    const int32_t middle = lo + (hi - lo) / 2;
    return (Test){ g_array_index(k->limits, int64_t, middle),
                   FALSE,
                   { interval(k, part, lo, middle), interval(k, part, middle + 1, hi) } };
}

static Test test_of(Pack *k, const Part *part)
{
    const HnTreeNode *n = &k->t->nodes[part->node];
    const gboolean swaps = n->mode == HN_TREE_GEQ || n->mode == HN_TREE_GT || n->mode == HN_TREE_NEQ;
    const Part yes = whole(swaps ? n->no : n->yes), no = whole(swaps ? n->yes : n->no);
    if (n->mode == HN_TREE_MEMBER)
        return test_member(k, part);
    if (isnan(n->value)) /* nothing compares with it, but for !=, which is always so */
        return n->mode == HN_TREE_NEQ ? (Test){ KEY_NOTHING, FALSE, { whole(n->yes), whole(n->yes) } }
                                      : (Test){ KEY_NOTHING, n->missing, { whole(n->yes), whole(n->no) } };
    const int64_t key = key_of(k, n->value);
    if (n->mode == HN_TREE_EQ || n->mode == HN_TREE_NEQ) {
        const Part below = { .node = part->node, .below = TRUE, .lo = 0, .hi = -1 };
        if (part->below)
            return (Test){ key - 1, FALSE, { no, yes } };
        return (Test){ key, n->missing && n->mode == HN_TREE_EQ, { below, no } };
    }
    const gboolean less = n->mode == HN_TREE_LT || n->mode == HN_TREE_GEQ;
    return (Test){ less ? key - 1 : key, swaps ? !n->missing : n->missing, { yes, no } };
}

/* --- leaves ------------------------------------------------------------------------------------------------------ */

static gboolean is_one_of_all(const HnTrees *t, const HnTreeNode *n)
{
    for (int32_t i = 0; i < n->n; i++)
        if (t->weights[n->first + i].target != i)
            return FALSE;
    return n->n == t->n_targets;
}

/* What all leaves below a root have in common. */
static void find_kind(Pack *k, int32_t root)
{
    const HnTrees *t = k->t;
    gboolean one = TRUE, all = TRUE;
    int32_t target = -1;
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_array_append_val(stack, root);
    k->trees_seen++;
    while (stack->len > 0) {
        const int32_t at = g_array_index(stack, int32_t, stack->len - 1);
        const HnTreeNode *n = &t->nodes[at];
        g_array_set_size(stack, stack->len - 1);
        if (k->seen[at] == k->trees_seen)
            continue;
        k->seen[at] = k->trees_seen;
        if (n->mode != HN_TREE_LEAF) {
            g_array_append_val(stack, n->yes);
            g_array_append_val(stack, n->no);
            continue;
        }
        const HnTreeWeight *w = &t->weights[n->first];
        one = one && n->n == 1 && (target < 0 || w->target == target) && w->value == (double)(float)w->value;
        target = n->n > 0 ? w->target : target;
        all = all && is_one_of_all(t, n);
    }
    k->place->kind = one ? HN_LEAF_VALUE : all ? HN_LEAF_DENSE : HN_LEAF_SOME;
    k->place->target = one ? target : 0;
    for (int64_t i = 0; i < t->n_targets; i++)
        k->p->has[i] |= k->place->kind == HN_LEAF_DENSE || (one && i == target);
    k->p->mixed = k->p->mixed || !one;
}

static HnCellValue leaf_value(Pack *k, const HnTreeNode *n)
{
    const HnTreeWeight *w = &k->t->weights[n->first];
    if (k->place->kind == HN_LEAF_VALUE)
        return (HnCellValue){ .value = (float)w->value };
    if (k->place->kind == HN_LEAF_DENSE) {
        for (int32_t i = 0; i < n->n; i++)
            g_array_append_val(k->table, w[i].value);
        return (HnCellValue){ .at = (int32_t)(k->p->n_table++) };
    }
    const int32_t end = (int32_t)k->weights->len + n->n;
    g_array_append_vals(k->weights, w, (guint)n->n);
    g_array_append_val(k->some, end);
    return (HnCellValue){ .at = (int32_t)(k->p->n_some++) };
}

/* --- trees ------------------------------------------------------------------------------------------------------- */

/* Cell i of the tree, whose part is known; its children's parts go to the end. What several lead to is made once:
 * further cells of a node lead to the first one's children. */
static void make_cell(Pack *k, guint i)
{
    const Part part = g_array_index(k->part, Part, i);
    const HnTreeNode *n = &k->t->nodes[part.node];
    const gboolean is_whole = !part.below && !part.missing;
    const gsize made = is_whole ? k->made[part.node] : 0, again = made > k->place->first ? made : 0;
    WideCell cell = { .key = KEY_LEAF, .child = (int32_t)i };
    HnCellValue value = { .at = 0 };
    if (n->mode == HN_TREE_LEAF) {
        value = again > 0 ? g_array_index(k->values, HnCellValue, again - 1) : leaf_value(k, n);
    } else if (again > 0) {
        cell = g_array_index(k->cells, WideCell, again - 1);
    } else {
        const Test test = test_of(k, &part);
        cell = (WideCell){ test.key, (int32_t)k->part->len, column_of(k, n->feature, test.nan_yes) };
        g_array_append_vals(k->part, test.side, 2);
    }
    if (is_whole && again == 0)
        k->made[part.node] = k->cells->len + 1;
    g_array_append_val(k->cells, cell);
    g_array_append_val(k->values, value);
}

/* Steps from each cell to the farthest and the next leaf; those of the root are the tree's. */
static void find_depth(Pack *k)
{
    typedef struct {
        int32_t far, near; /* far < 0: not known */
    } Steps;
    const WideCell *cell = &g_array_index(k->cells, WideCell, k->place->first);
    g_autofree Steps *steps = g_new(Steps, (gsize)k->place->cells);
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (int32_t i = 0; i < k->place->cells; i++)
        steps[i] = (Steps){ cell[i].key == KEY_LEAF ? 0 : -1, 0 };
    const int32_t root = 0;
    g_array_append_val(stack, root);
    while (stack->len > 0) {
        const int32_t i = g_array_index(stack, int32_t, stack->len - 1), c = cell[i].child;
        const int32_t open = steps[i].far >= 0 ? -1 : steps[c].far < 0 ? c : steps[c + 1].far < 0 ? c + 1 : -1;
        if (open >= 0) {
            g_array_append_val(stack, open);
            continue;
        }
        if (steps[i].far < 0)
            steps[i] = (Steps){ 1 + MAX(steps[c].far, steps[c + 1].far), 1 + MIN(steps[c].near, steps[c + 1].near) };
        g_array_set_size(stack, stack->len - 1);
    }
    k->place->depth = steps[0].far;
    k->place->least = steps[0].near;
}

static gboolean pack_tree(Pack *k, int32_t root)
{
    const Part part = whole(root);
    find_kind(k, root);
    k->place->first = k->cells->len;
    k->limits_of = -1;
    g_array_set_size(k->part, 0);
    g_array_append_val(k->part, part);
    for (guint i = 0; i < k->part->len; i++) {
        make_cell(k, i);
        if (k->part->len > CELLS_MAX || k->cells->len > CELLS_MAX)
            return FALSE;
    }
    k->place->cells = (int32_t)k->part->len;
    find_depth(k);
    k->p->steps += k->place->depth;
    return TRUE;
}

/* --- keys of 32 bits --------------------------------------------------------------------------------------------- */

static void rank_thresholds(Pack *k, GArray *cells)
{
    HnPackedTrees *p = k->p;
    g_autofree gsize *fill = g_new0(gsize, (gsize)p->n_columns + 1);
    p->ranks = g_new0(int64_t, (gsize)cells->len + 1);
    for (guint i = 0; i < cells->len; i++) {
        const WideCell *c = &g_array_index(cells, WideCell, i);
        if (c->key != KEY_LEAF && c->key != KEY_NOTHING)
            p->column[c->column].n++;
    }
    gsize first = 0;
    for (int64_t c = 0; c < p->n_columns; c++) {
        p->column[c].first = fill[c] = first;
        first += p->column[c].n;
    }
    for (guint i = 0; i < cells->len; i++) {
        const WideCell *c = &g_array_index(cells, WideCell, i);
        if (c->key != KEY_LEAF && c->key != KEY_NOTHING)
            p->ranks[fill[c->column]++] = c->key;
    }
    for (int64_t c = 0; c < p->n_columns; c++) {
        int64_t *v = p->ranks + p->column[c].first;
        gsize n = 0;
        if (p->column[c].n > 0)
            qsort(v, p->column[c].n, sizeof *v, compare_keys);
        for (gsize i = 0; i < p->column[c].n; i++)
            if (n == 0 || v[i] != v[n - 1])
                v[n++] = v[i];
        p->column[c].n = n;
    }
}

static int32_t rank_of(const HnPackedTrees *p, const WideCell *c)
{
    const HnTreeColumn *column = &p->column[c->column];
    const int64_t *v = p->ranks + column->first;
    const int64_t *found = bsearch(&c->key, v, column->n, sizeof *v, compare_keys);
    return (int32_t)(found - v);
}

static int32_t narrow_key(const HnPackedTrees *p, const WideCell *c)
{
    if (c->key == KEY_LEAF)
        return HN_TREE_NAN_NO;
    if (c->key == KEY_NOTHING)
        return HN_TREE_NAN_YES;
    return p->ranked ? rank_of(p, c) : (int32_t)c->key;
}

/* FALSE: there is no room for columns beside children. */
static gboolean narrow(Pack *k)
{
    HnPackedTrees *p = k->p;
    int32_t most = 0;
    for (int64_t i = 0; i < p->trees->n_trees; i++)
        most = MAX(most, p->place[i].cells);
    p->n_columns = k->columns->len;
    p->bits = p->n_columns > 1 ? g_bit_storage((gulong)p->n_columns - 1) : 1;
    if (p->bits + (int)g_bit_storage((gulong)most + 1) > 32)
        return FALSE;
    p->column = (HnTreeColumn *)(void *)g_array_free(g_steal_pointer(&k->columns), FALSE);
    if (p->ranked)
        rank_thresholds(k, k->cells);
    p->n_cells = k->cells->len;
    p->cell = g_new(HnTreeCell, p->n_cells + 1);
    for (gsize i = 0; i < p->n_cells; i++) {
        const WideCell *c = &g_array_index(k->cells, WideCell, i);
        p->cell[i] = (HnTreeCell){ narrow_key(p, c), (uint32_t)c->child << p->bits | (uint32_t)c->column };
    }
    return TRUE;
}

static void make_groups(HnPackedTrees *p)
{
    const int64_t n = p->trees->n_trees, groups = (n + HN_WALK_TREES - 1) / HN_WALK_TREES;
    p->group = g_new0(HnTreeGroup, (gsize)groups + 1);
    p->roots = g_new0(int32_t, (gsize)groups * HN_WALK_TREES + 1);
    for (int64_t i = 0; i < groups * HN_WALK_TREES; i++) {
        const HnTreePlace *t = &p->place[MIN(i, n - 1)];
        HnTreeGroup *g = &p->group[i / HN_WALK_TREES];
        p->roots[i] = (int32_t)t->first;
        g->least = i % HN_WALK_TREES == 0 ? t->least : MIN(g->least, t->least);
        g->depth = MAX(g->depth, t->depth);
    }
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static void pack_init(Pack *k)
{
    const int32_t zero = 0;
    const gsize features = (gsize)k->t->features + 1;
    *k = (Pack){ .p = k->p,
                 .t = k->t,
                 .part = g_array_new(FALSE, FALSE, sizeof(Part)),
                 .cells = g_array_new(FALSE, FALSE, sizeof(WideCell)),
                 .values = g_array_new(FALSE, FALSE, sizeof(HnCellValue)),
                 .limits = g_array_new(FALSE, FALSE, sizeof(int64_t)),
                 .column = { g_new0(int32_t, features), g_new0(int32_t, features) },
                 .made = g_new0(gsize, (gsize)k->t->n_nodes + 1),
                 .seen = g_new0(int32_t, (gsize)k->t->n_nodes + 1),
                 .columns = g_array_new(FALSE, FALSE, sizeof(HnTreeColumn)),
                 .some = g_array_new(FALSE, FALSE, sizeof(int32_t)),
                 .weights = g_array_new(FALSE, FALSE, sizeof(HnTreeWeight)),
                 .table = g_array_new(FALSE, FALSE, sizeof(double)) };
    g_array_append_val(k->some, zero);
}

static void pack_clear(Pack *k)
{
    HnPackedTrees *p = k->p;
    p->value = (HnCellValue *)(void *)g_array_free(k->values, FALSE);
    p->first = (int32_t *)(void *)g_array_free(k->some, FALSE);
    p->weights = (HnTreeWeight *)(void *)g_array_free(k->weights, FALSE);
    p->table = (double *)(void *)g_array_free(k->table, FALSE);
    g_array_free(k->part, TRUE);
    g_array_free(k->cells, TRUE);
    g_array_free(k->limits, TRUE);
    if (k->columns != NULL)
        g_array_free(k->columns, TRUE);
    g_free(k->made);
    g_free(k->seen);
    g_free(k->column[0]);
    g_free(k->column[1]);
}

static void drop_nodes(HnTrees *t)
{
    g_clear_pointer(&t->nodes, g_free);
    g_clear_pointer(&t->weights, g_free);
    g_clear_pointer(&t->members, g_free);
}

/* Surely there is room for so many nodes and columns in cells. */
static gboolean has_room(const HnTreesParams *p)
{
    /* a cell's bits: at most two columns for each feature, or one for each test; two cells for each test and the root
     */
    const int64_t columns = MIN(2 * p->features, p->tests) + 1, cells = 2 * p->tests_most + 2;
    return g_bit_storage((gulong)columns) + g_bit_storage((gulong)cells) <= 32 &&
           2 * p->tests + p->n_trees <= G_MAXINT32 / 2;
}

const char *hn_trees_reject(const HnTreesParams *p, const HnTensor *x)
{
    if (x->n == 0)
        return "nothing to compute";
    if (!hn_dtype_in(x->dtype, HN_ML_NUMBERS))
        return "another element type";
    if (x->dims[x->ndim - 1] < p->features)
        return "too few features";
    return has_room(p) ? NULL : "too many nodes and features";
}

HnPackedTrees *hn_trees_pack(const HnNode *n, HnDtype input, GError **error)
{
    HnTrees *t = hn_trees_new(n, error);
    if (t == NULL)
        return NULL;
    HnPackedTrees *p = g_new0(HnPackedTrees, 1);
    Pack k = { .p = p, .t = t };
    p->trees = t;
    p->ranked = input == HN_F64 || t->wide;
    p->place = g_new0(HnTreePlace, (gsize)t->n_trees + 1);
    p->has = g_new0(uint8_t, (gsize)t->n_targets + 1);
    pack_init(&k);
    uint8_t *met = g_new0(uint8_t, (gsize)t->n_targets + 1);
    gboolean fits = TRUE;
    for (int64_t i = 0; i < t->n_trees && fits; i++) {
        k.place = &p->place[i];
        fits = pack_tree(&k, t->roots[i]);
        p->place[i].opens = !met[p->place[i].target];
        met[p->place[i].target] = 1;
    }
    g_free(met);
    fits = fits && narrow(&k);
    pack_clear(&k);
    drop_nodes(t);
    if (fits)
        make_groups(p);
    if (fits)
        return p;
    hn_trees_unpack(p);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "node '%s' has too many nodes", hn_node_label(n));
    return NULL;
}

void hn_trees_unpack(HnPackedTrees *p)
{
    if (p == NULL)
        return;
    hn_trees_free(p->trees);
    g_free(p->place);
    g_free(p->group);
    g_free(p->roots);
    g_free(p->cell);
    g_free(p->value);
    g_free(p->column);
    g_free(p->ranks);
    g_free(p->table);
    g_free(p->first);
    g_free(p->weights);
    g_free(p->has);
    g_free(p);
}
