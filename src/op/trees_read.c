/*
 * Trees from attributes. Nothing in them is relied on: ids may be any numbers in any order, children may be missing,
 * lead in circles, or belong to several parents.
 *
 * A node may have several parents: converters write a test for each member of a set that way, all of which lead to one
 * subtree. Circles are refused where a root leads to them. Nodes that no root leads to are left alone.
 */
#include "op/trees_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (G_MAXINT32 / 4) /* of an ensemble: node numbers have 32 bits in backends, too */

/* --- lists ----------------------------------------------------------------------------------------------------- */

HnTreeNumbers hn_tree_numbers(HnBind *b, const char *list, const char *tensor)
{
    HnTreeNumbers v = { 0 };
    v.f = list != NULL ? hn_bind_floats(b, list, &v.n) : NULL;
    const HnTensor *t = tensor != NULL ? hn_bind_tensor(b, tensor) : NULL;
    if (t == NULL)
        return v;
    if (v.n > 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attributes '%s' and '%s' exclude each other", list, tensor);
    if (t->unloaded || !hn_dtype_in(t->dtype, HN_T_FLOATS))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is no tensor of floats", tensor);
    else
        v = (HnTreeNumbers){ .n = t->n, .t = t };
    return v;
}

double hn_tree_number(const HnTreeNumbers *v, int64_t i)
{
    return v->t != NULL ? hn_tensor_get_f64(v->t, i) : (double)v->f[i];
}

gboolean hn_tree_is_wide(const HnTreeNumbers *v)
{
    for (int64_t i = 0; v->t != NULL && v->t->dtype == HN_F64 && i < v->n; i++) {
        const double x = hn_tensor_get_f64(v->t, i);
        if (!isnan(x) && x != (double)(float)x)
            return TRUE;
    }
    return FALSE;
}

static const int64_t *ints_of(HnBind *b, const char *name, int64_t n)
{
    int64_t len;
    const int64_t *v = hn_bind_ints(b, name, &len);
    if (len != n)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " elements, not %" PRId64, name, len, n);
    return v;
}

static void check_length(HnBind *b, const char *name, int64_t n, int64_t want)
{
    if (n != want)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " elements, not %" PRId64, name, n, want);
}

static void check_count(HnBind *b, const char *what, int64_t n)
{
    if (n > NODES_MAX)
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "%" PRId64 " %s are more than %d", n, what, NODES_MAX);
}

/* Of a branch. */
static void set_feature(HnBind *b, HnTrees *t, HnTreeNode *n, int64_t feature)
{
    if (feature < 0 || feature >= G_MAXINT32) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a node tests feature %" PRId64, feature);
        return;
    }
    n->feature = (int32_t)feature;
    t->features = MAX(t->features, feature + 1);
}

static void set_target(HnBind *b, const HnTrees *t, HnTreeWeight *w, int64_t target)
{
    if (target < 0 || target >= t->n_targets || target >= G_MAXINT32)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a leaf has a weight for target %" PRId64 " of %" PRId64, target,
                     t->n_targets);
    w->target = (int32_t)target;
}

/* missing_value_tracks_true may be shorter: the rest is 0. */
static void set_missing(HnBind *b, HnTrees *t, int64_t n)
{
    int64_t len;
    const int64_t *v = hn_bind_ints(b, "nodes_missing_value_tracks_true", &len);
    if (len > n)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE,
                     "attribute 'nodes_missing_value_tracks_true' has %" PRId64 " elements, not %" PRId64, len, n);
    for (int64_t i = 0; i < MIN(len, n); i++)
        t->nodes[i].missing = v[i] == 1;
}

/* A walk down from a root meets no node that it is on the way from. */
typedef enum { UNSEEN, OPEN, DONE } Seen;

static void check_circles(HnBind *b, const HnTrees *t)
{
    g_autofree uint8_t *seen = g_new0(uint8_t, (gsize)t->n_nodes + 1);
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (int64_t i = 0; i < t->n_trees; i++) {
        g_array_append_val(stack, t->roots[i]);
        while (stack->len > 0) {
            const int32_t at = g_array_index(stack, int32_t, stack->len - 1);
            const HnTreeNode *n = &t->nodes[at];
            if (seen[at] != UNSEEN || n->mode == HN_TREE_LEAF) {
                seen[at] = DONE;
                g_array_set_size(stack, stack->len - 1);
                continue;
            }
            seen[at] = OPEN;
            if (seen[n->yes] == OPEN || seen[n->no] == OPEN) {
                hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "nodes of a tree lead in a circle");
                return;
            }
            if (seen[n->yes] == UNSEEN)
                g_array_append_val(stack, n->yes);
            if (seen[n->no] == UNSEEN)
                g_array_append_val(stack, n->no);
        }
    }
}

/* --- ids of trees and nodes ------------------------------------------------------------------------------------- */

typedef struct {
    int64_t tree, node;
    int32_t at;
} Id;

typedef struct {
    Id *id; /* in the order of trees and nodes */
    int64_t n;
} Ids;

static int compare_ids(const void *a, const void *b)
{
    const Id *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void sort_ids(HnBind *b, Ids *ids, const int64_t *trees, const int64_t *nodes)
{
    gboolean sorted = TRUE;
    for (int64_t i = 0; i < ids->n; i++) {
        ids->id[i] = (Id){ trees[i], nodes[i], (int32_t)i };
        sorted = sorted && (i == 0 || compare_ids(&ids->id[i - 1], &ids->id[i]) < 0);
    }
    if (sorted)
        return;
    qsort(ids->id, (size_t)ids->n, sizeof *ids->id, compare_ids);
    for (int64_t i = 1; i < ids->n; i++)
        if (compare_ids(&ids->id[i - 1], &ids->id[i]) == 0) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "node %" PRId64 " of tree %" PRId64 " is there twice", ids->id[i].node,
                         ids->id[i].tree);
            return;
        }
}

/* -1: there is none. `hint`: where it is mostly. */
static int32_t find_id(const Ids *ids, int64_t tree, int64_t node, int64_t hint)
{
    const Id key = { .tree = tree, .node = node };
    if (hint >= 0 && hint < ids->n && compare_ids(&ids->id[hint], &key) == 0)
        return ids->id[hint].at;
    const Id *found = ids->n > 0 ? bsearch(&key, ids->id, (size_t)ids->n, sizeof key, compare_ids) : NULL;
    return found != NULL ? found->at : -1;
}

static int32_t child_of(HnBind *b, const Ids *ids, int64_t tree, int64_t node, int64_t at, int64_t own)
{
    /* ids mostly count from 0 in each tree */
    const int64_t far = node >= 0 && own >= 0 && node < NODES_MAX && own < NODES_MAX ? at + node - own : -1;
    const int32_t i = find_id(ids, tree, node, far);
    if (i < 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE,
                     "node %" PRId64 " of tree %" PRId64 " leads to node %" PRId64 ", which is not there", own, tree,
                     node);
    return i;
}

static HnTreeMode mode_of(HnBind *b, GBytes *word)
{
    static const char *const words[] = { "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", NULL,         "LEAF" };
    gsize n;
    const char *s = g_bytes_get_data(word, &n);
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (words[i] != NULL && strlen(words[i]) == n && memcmp(words[i], s, n) == 0)
            return (HnTreeMode)i;
    hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a node's mode cannot be '%.*s'", (int)MIN(n, 64), s != NULL ? s : "");
    return HN_TREE_LEAF;
}

/* A tree begins where the way up from its first node in the list ends. parent[i]: 1 + a node that leads to i, 0: none.
 */
static int32_t root_of(HnBind *b, const Id *id, int64_t n, const int32_t *parent)
{
    int32_t root = G_MAXINT32;
    int64_t steps = 0;
    for (int64_t i = 0; i < n; i++)
        root = MIN(root, id[i].at);
    for (; parent[root] != 0 && steps < n; steps++)
        root = parent[root] - 1;
    if (parent[root] != 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "nodes of tree %" PRId64 " lead in a circle", id->tree);
    return root;
}

static int compare_int32(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static void find_roots(HnBind *b, HnTrees *t, const Ids *ids, const int32_t *parent)
{
    for (int64_t i = 0; i < ids->n; i++)
        t->n_trees += i == 0 || ids->id[i].tree != ids->id[i - 1].tree;
    t->roots = g_new0(int32_t, (gsize)t->n_trees + 1);
    int64_t k = 0;
    for (int64_t i = 0, next; i < ids->n && b->error == NULL; i = next) {
        for (next = i + 1; next < ids->n && ids->id[next].tree == ids->id[i].tree;)
            next++;
        t->roots[k++] = root_of(b, &ids->id[i], next - i, parent);
    }
    qsort(t->roots, (size_t)t->n_trees, sizeof *t->roots, compare_int32); /* as they are listed */
}

static void read_branches(HnBind *b, HnTrees *t, const Ids *ids, const int64_t *trees, const int64_t *nodes)
{
    const int64_t n = ids->n, *yes = ints_of(b, "nodes_truenodeids", n), *no = ints_of(b, "nodes_falsenodeids", n);
    const int64_t *features = ints_of(b, "nodes_featureids", n);
    const HnTreeNumbers values = hn_tree_numbers(b, "nodes_values", "nodes_values_as_tensor");
    int64_t n_modes;
    GBytes *const *modes = hn_ml_bind_strings(b, "nodes_modes", &n_modes);
    check_length(b, "nodes_modes", n_modes, n);
    check_length(b, "nodes_values", values.n, n);
    if (b->error != NULL)
        return;
    g_autofree int32_t *parent = g_new0(int32_t, (gsize)n + 1);
    for (int64_t i = 0; i < n && b->error == NULL; i++) {
        HnTreeNode *node = &t->nodes[i];
        node->mode = (uint8_t)mode_of(b, modes[i]);
        if (node->mode == HN_TREE_LEAF)
            continue;
        node->value = hn_tree_number(&values, i);
        set_feature(b, t, node, features[i]);
        node->yes = child_of(b, ids, trees[i], yes[i], i, nodes[i]);
        node->no = child_of(b, ids, trees[i], no[i], i, nodes[i]);
        if (b->error == NULL)
            parent[node->yes] = parent[node->no] = (int32_t)i + 1;
    }
    t->wide = hn_tree_is_wide(&values);
    if (b->error == NULL)
        find_roots(b, t, ids, parent);
    if (b->error == NULL)
        check_circles(b, t);
}

/* What a list of weights is called: for a class or a target. */
typedef struct {
    const char *trees, *nodes, *ids, *weights, *tensor;
} WeightNames;

static void read_weights(HnBind *b, HnTrees *t, const Ids *ids, const WeightNames *names)
{
    int64_t n;
    const int64_t *trees = hn_bind_ints(b, names->trees, &n), *nodes = ints_of(b, names->nodes, n);
    const int64_t *targets = ints_of(b, names->ids, n);
    const HnTreeNumbers values = hn_tree_numbers(b, names->weights, names->tensor);
    check_length(b, names->weights, values.n, n);
    check_count(b, "weights", n);
    if (b->error != NULL)
        return;
    g_autofree int32_t *leaf = g_new0(int32_t, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) {
        const gboolean same = i > 0 && trees[i] == trees[i - 1] && nodes[i] == nodes[i - 1];
        leaf[i] = same ? leaf[i - 1] : find_id(ids, trees[i], nodes[i], -1);
        if (leaf[i] < 0) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "node %" PRId64 " of tree %" PRId64 " has a weight, but is not there",
                         nodes[i], trees[i]);
            return;
        }
        if (t->nodes[leaf[i]].mode == HN_TREE_LEAF) /* of branches they are left alone: old converters wrote them */
            t->nodes[leaf[i]].n++;
    }
    for (int64_t i = 0, first = 0; i < t->n_nodes; i++) {
        t->nodes[i].first = (int32_t)first;
        first += t->nodes[i].n;
        t->nodes[i].n = 0;
    }
    t->weights = g_new0(HnTreeWeight, (gsize)n + 1);
    t->n_weights = n;
    for (int64_t i = 0; i < n && b->error == NULL; i++) {
        HnTreeNode *node = &t->nodes[leaf[i]];
        if (node->mode != HN_TREE_LEAF)
            continue;
        HnTreeWeight *w = &t->weights[node->first + node->n++];
        w->value = hn_tree_number(&values, i);
        set_target(b, t, w, targets[i]);
    }
}

/* One target's weights for two classes, and whether they are probabilities: as the list says, whatever leads there. */
static void find_kind(HnBind *b, HnTrees *t, const WeightNames *names)
{
    int64_t n;
    const int64_t *ids = hn_bind_ints(b, names->ids, &n);
    const HnTreeNumbers values = hn_tree_numbers(b, names->weights, names->tensor);
    gboolean one = n > 0;
    t->kind.positive = TRUE;
    for (int64_t i = 0; i < n; i++) {
        one = one && ids[i] == ids[0];
        t->kind.positive = t->kind.positive && !(hn_tree_number(&values, i) < 0);
    }
    t->kind.binary = t->n_targets == 2 && one;
}

void hn_trees_read_ids(HnBind *b, HnTrees *t, gboolean classes)
{
    static const WeightNames class = { "class_treeids", "class_nodeids", "class_ids", "class_weights",
                                       "class_weights_as_tensor" };
    static const WeightNames target = { "target_treeids", "target_nodeids", "target_ids", "target_weights",
                                        "target_weights_as_tensor" };
    Ids ids = { 0 };
    const int64_t *trees = hn_bind_ints(b, "nodes_treeids", &ids.n), *nodes = ints_of(b, "nodes_nodeids", ids.n);
    check_count(b, "nodes", ids.n);
    if (b->error != NULL)
        return;
    t->n_nodes = ids.n;
    t->nodes = g_new0(HnTreeNode, (gsize)ids.n + 1);
    set_missing(b, t, ids.n);
    ids.id = g_new0(Id, (gsize)ids.n + 1);
    sort_ids(b, &ids, trees, nodes);
    if (b->error == NULL)
        read_branches(b, t, &ids, trees, nodes);
    if (b->error == NULL)
        read_weights(b, t, &ids, classes ? &class : &target);
    if (b->error == NULL && classes)
        find_kind(b, t, &class);
    g_free(ids.id);
}

/* --- version 5: indices ------------------------------------------------------------------------------------------ */

typedef struct {
    const int64_t *at, *is_leaf; /* of all branches: where they lead, and whether that is a leaf */
    const char *name;
} Side;

static Side side_of(HnBind *b, const char *at, const char *leaf, int64_t n)
{
    const int64_t *child = ints_of(b, at, n);
    return (Side){ child, ints_of(b, leaf, n), at };
}

/* Leaves lie behind the branches. */
static int32_t lead(HnBind *b, const HnTrees *t, const Side *s, int64_t i, int64_t n)
{
    const int64_t leaves = t->n_nodes - n, end = s->is_leaf[i] != 0 ? leaves : n;
    if (s->at[i] >= 0 && s->at[i] < end)
        return (int32_t)(s->is_leaf[i] != 0 ? n + s->at[i] : s->at[i]);
    hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "node %" PRId64 " leads to %s %" PRId64 " of %" PRId64, i,
                 s->is_leaf[i] != 0 ? "leaf" : "node", s->at[i], end);
    return 0;
}

static void read_leaves(HnBind *b, HnTrees *t, int64_t n, const HnTreeNumbers *values)
{
    const int64_t *targets = ints_of(b, "leaf_targetids", values->n);
    if (b->error != NULL)
        return;
    t->n_weights = values->n;
    t->weights = g_new0(HnTreeWeight, (gsize)values->n + 1);
    for (int64_t i = 0; i < values->n && b->error == NULL; i++) {
        t->nodes[n + i] = (HnTreeNode){ .mode = HN_TREE_LEAF, .first = (int32_t)i, .n = 1 };
        t->weights[i].value = hn_tree_number(values, i);
        set_target(b, t, &t->weights[i], targets[i]);
    }
}

/* Members of each node that asks for one of several, ended by NaN, in the order of these nodes. */
static void read_members(HnBind *b, HnTrees *t, int64_t n)
{
    const HnTreeNumbers v = hn_tree_numbers(b, NULL, "membership_values");
    check_count(b, "members", v.n);
    if (b->error != NULL)
        return;
    t->n_members = v.n;
    t->members = g_new0(double, (gsize)v.n + 1);
    t->wide = t->wide || hn_tree_is_wide(&v);
    int64_t at = 0;
    for (int64_t i = 0; i < v.n; i++)
        t->members[i] = hn_tree_number(&v, i);
    for (int64_t i = 0; i < n; i++) {
        if (t->nodes[i].mode != HN_TREE_MEMBER)
            continue;
        t->nodes[i].first = (int32_t)MIN(at, v.n);
        for (; at < v.n && !isnan(t->members[at]); at++)
            t->nodes[i].n++;
        at++;
    }
}

static void read_indexed_nodes(HnBind *b, HnTrees *t, int64_t n, const HnTensor *modes)
{
    const int64_t *features = ints_of(b, "nodes_featureids", n);
    const HnTreeNumbers splits = hn_tree_numbers(b, NULL, "nodes_splits");
    const Side yes = side_of(b, "nodes_truenodeids", "nodes_trueleafs", n);
    const Side no = side_of(b, "nodes_falsenodeids", "nodes_falseleafs", n);
    check_length(b, "nodes_splits", splits.n, n);
    for (int64_t i = 0; i < n && b->error == NULL; i++) {
        HnTreeNode *node = &t->nodes[i];
        const int64_t mode = hn_tensor_get_i64(modes, i);
        if (mode < 0 || mode > HN_TREE_MEMBER)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "node %" PRId64 " has mode %" PRId64, i, mode);
        node->mode = (uint8_t)mode;
        node->value = hn_tree_number(&splits, i);
        set_feature(b, t, node, features[i]);
        node->yes = lead(b, t, &yes, i, n);
        node->no = lead(b, t, &no, i, n);
    }
    t->wide = b->error == NULL && hn_tree_is_wide(&splits);
}

static void read_roots(HnBind *b, HnTrees *t, int64_t n)
{
    const int64_t *roots = hn_bind_ints(b, "tree_roots", &t->n_trees);
    check_count(b, "trees", t->n_trees);
    if (b->error != NULL)
        return;
    t->roots = g_new0(int32_t, (gsize)t->n_trees + 1);
    for (int64_t i = 0; i < t->n_trees && b->error == NULL; i++) {
        if (roots[i] < 0 || roots[i] >= n)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a tree begins with node %" PRId64 " of %" PRId64, roots[i], n);
        else
            t->roots[i] = (int32_t)roots[i];
    }
    if (b->error == NULL)
        check_circles(b, t);
}

void hn_trees_read_indices(HnBind *b, HnTrees *t)
{
    static const char *const needed[] = { "nodes_modes", "nodes_splits", "leaf_weights" };
    for (guint i = 0; i < G_N_ELEMENTS(needed); i++)
        hn_bind_require(b, needed[i]);
    const HnTensor *modes = hn_bind_tensor(b, "nodes_modes");
    const HnTreeNumbers leaves = hn_tree_numbers(b, NULL, "leaf_weights");
    if (b->error == NULL && (modes->dtype != HN_U8 || modes->unloaded))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'nodes_modes' is no tensor of u8");
    if (b->error != NULL)
        return;
    const int64_t n = modes->n;
    check_count(b, "nodes", n);
    check_count(b, "leaves", leaves.n);
    if (b->error != NULL)
        return;
    t->n_nodes = n + leaves.n;
    t->nodes = g_new0(HnTreeNode, (gsize)t->n_nodes + 1);
    read_leaves(b, t, n, &leaves);
    if (b->error == NULL)
        read_indexed_nodes(b, t, n, modes);
    if (b->error == NULL)
        set_missing(b, t, n);
    if (b->error == NULL)
        read_members(b, t, n);
    if (b->error == NULL)
        read_roots(b, t, n);
}
