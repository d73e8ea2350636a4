#include "perf/blocks.h"

#include <string.h>

#include "op/op.h"

typedef struct {
    const HnProfile *p;
    GPtrArray *blocks;   /* HnProfileBlock * */
    GHashTable *by_name; /* -> index + 1 */
} Blocks;

static void block_free(gpointer data)
{
    HnProfileBlock *b = data;
    g_free(b->name);
    g_ptr_array_unref(b->rows);
    g_free(b);
}

static int new_block(GPtrArray *blocks, char *name, int parent)
{
    HnProfileBlock *b = g_new0(HnProfileBlock, 1);
    *b = (HnProfileBlock){ name, g_ptr_array_new(), parent };
    g_ptr_array_add(blocks, b);
    return (int)blocks->len - 1;
}

/* --- scopes ----------------------------------------------------------------------------------------------- */

/* Adds the row to the block of this name; returns its index. */
static int enter(Blocks *b, const char *name, int parent, HnProfileRow *row)
{
    int at = GPOINTER_TO_INT(g_hash_table_lookup(b->by_name, name)) - 1;
    if (at < 0) {
        at = new_block(b->blocks, g_strdup(name), parent);
        g_hash_table_insert(b->by_name, ((HnProfileBlock *)b->blocks->pdata[at])->name, GINT_TO_POINTER(at + 1));
    }
    g_ptr_array_add(((HnProfileBlock *)b->blocks->pdata[at])->rows, row);
    return at;
}

/* The scopes of one name below `path`, and with `whole` the name itself. */
static int enter_scopes(Blocks *b, GString *path, const char *name, gboolean whole, int parent, HnProfileRow *row)
{
    const gsize above = path->len;
    if (above > 0 && *name != '/')
        g_string_append_c(path, '/');
    const gsize start = path->len;
    g_string_append(path, name);
    for (const char *slash = strchr(name + 1, '/'); *name && slash && slash[1]; slash = strchr(slash + 1, '/')) {
        g_autofree char *scope = g_strndup(path->str, start + (gsize)(slash - name));
        parent = enter(b, scope, parent, row);
    }
    return whole ? enter(b, path->str, parent, row) : parent;
}

static gboolean has_bodies(const HnProfileRow *row)
{
    return row->node && row->node->op && (row->node->op->flags & HN_OP_CONTROL) != 0;
}

static void add_scopes(Blocks *b, HnProfileRow *row)
{
    g_autoptr(GPtrArray) around = g_ptr_array_new(); /* from the inside out */
    g_autoptr(GString) path = g_string_new(NULL);
    int parent = -1;
    for (int i = row->parent; i >= 0; i = ((HnProfileRow *)b->p->rows->pdata[i])->parent)
        g_ptr_array_add(around, b->p->rows->pdata[i]);
    for (guint i = around->len; i > 0; i--)
        parent = enter_scopes(b, path, ((HnProfileRow *)around->pdata[i - 1])->name, TRUE, parent, row);
    enter_scopes(b, path, row->name, has_bodies(row), parent, row);
}

/* Rows that are in a block at all. */
static guint count_covered(const GPtrArray *blocks)
{
    g_autoptr(GHashTable) rows = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < blocks->len; i++) {
        const HnProfileBlock *b = blocks->pdata[i];
        for (guint k = 0; k < b->rows->len; k++)
            g_hash_table_add(rows, b->rows->pdata[k]);
    }
    return g_hash_table_size(rows);
}

/* The innermost of blocks with the same rows, and no single rows. Takes the list. */
static GPtrArray *distinct(GPtrArray *all)
{
    GPtrArray *out = g_ptr_array_new_with_free_func(block_free);
    g_autofree gboolean *drop = g_new0(gboolean, all->len + 1);
    g_autofree int *now =
        g_new0(int, all->len + 1); /* where a block went; that of the one around it where it did not */
    for (guint i = 0; i < all->len; i++) {
        const HnProfileBlock *b = all->pdata[i];
        drop[i] |= b->rows->len < 2;
        if (!drop[i] && b->parent >= 0 && ((HnProfileBlock *)all->pdata[b->parent])->rows->len == b->rows->len)
            drop[b->parent] = TRUE;
    }
    for (guint i = 0; i < all->len; i++) {
        HnProfileBlock *b = all->pdata[i];
        b->parent = b->parent >= 0 ? now[b->parent] : -1;
        now[i] = drop[i] ? b->parent : (int)out->len;
        if (drop[i])
            block_free(b);
        else
            g_ptr_array_add(out, b);
    }
    g_ptr_array_set_free_func(all, NULL);
    g_ptr_array_unref(all);
    return out;
}

static GPtrArray *by_scopes(const HnProfile *p)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    Blocks b = { p, g_ptr_array_new_with_free_func(block_free), by_name };
    for (guint i = 0; i < p->rows->len; i++)
        add_scopes(&b, p->rows->pdata[i]);
    return distinct(b.blocks);
}

/* --- the graph -------------------------------------------------------------------------------------------- */

/* When a value of the main graph is on its way: behind node `from`, until node `to` has read it. */
typedef struct {
    int from, to;
} Way;

static gboolean only_shapes(const HnNode *n, const GPtrArray *reads, GHashTable *ways)
{
    if (n->op && (n->op->flags & HN_OP_SHAPE_ONLY))
        return TRUE;
    for (guint i = 0; i < reads->len; i++)
        if (g_hash_table_contains(ways, reads->pdata[i]))
            return FALSE;
    return TRUE;
}

static void start(GHashTable *ways, const HnValue *v, int at)
{
    Way *w = g_new(Way, 1);
    *w = (Way){ at, at };
    g_hash_table_insert(ways, (gpointer)v, w);
}

/* HnValue * -> Way *, of those that depend on inputs. An input is on its way from where it is read first. */
static GHashTable *find_ways(const HnGraph *g)
{
    GHashTable *ways = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        g_autoptr(GPtrArray) reads = hn_node_reads(n);
        for (guint k = 0; k < reads->len; k++) {
            const HnValue *v = reads->pdata[k];
            if (v->is_input && !v->weight && !g_hash_table_contains(ways, v))
                start(ways, v, (int)i - 1);
            Way *w = g_hash_table_lookup(ways, v);
            if (w)
                w->to = (int)i;
        }
        for (guint k = 0; !only_shapes(n, reads, ways) && k < n->out->len; k++)
            if (n->out->pdata[k])
                start(ways, n->out->pdata[k], (int)i);
    }
    return ways;
}

/* For each node the number of the block that it lies in, when the graph is cut where one value is on its way. */
static int *find_parts(const HnGraph *g)
{
    const int n = (int)g->nodes->len;
    g_autoptr(GHashTable) ways = find_ways(g);
    g_autofree int *change = g_new0(int, n + 1); /* of the number of values, behind node i */
    int *part = g_new0(int, n + 1);
    GHashTableIter iter;
    gpointer way;
    g_hash_table_iter_init(&iter, ways);
    while (g_hash_table_iter_next(&iter, NULL, &way)) {
        const Way *w = way;
        if (w->to - w->from > n / 2 || w->from < 0)
            continue;
        change[w->from]++;
        change[w->to]--;
    }
    for (int i = 0, count = 0, at = 0; i < n; i++) {
        part[i] = at;
        count += change[i];
        at += count <= 1;
    }
    return part;
}

static const HnProfileRow *outermost(const HnProfile *p, const HnProfileRow *row)
{
    while (row->parent >= 0)
        row = p->rows->pdata[row->parent];
    return row;
}

/* The node of the main graph that the row is about; NULL: none that is known. */
static const HnNode *main_node(const HnProfile *p, const HnProfileRow *row)
{
    const HnProfileRow *r = outermost(p, row);
    return r->node ? r->node : r->value ? r->value->producer : NULL;
}

static const HnGraph *main_graph(const HnProfile *p)
{
    for (guint i = 0; i < p->rows->len; i++) {
        const HnNode *n = main_node(p, p->rows->pdata[i]);
        if (n && n->graph && !n->graph->holder)
            return n->graph;
    }
    return NULL;
}

static void name_parts(const HnProfile *p, GPtrArray *blocks)
{
    for (guint i = 0; i < blocks->len; i++) {
        HnProfileBlock *b = blocks->pdata[i];
        const HnProfileRow *first = outermost(p, b->rows->pdata[0]);
        const HnProfileRow *last = outermost(p, b->rows->pdata[b->rows->len - 1]);
        b->name = g_strdup_printf("%s .. %s", first->name, last->name);
    }
}

static GPtrArray *by_graph(const HnProfile *p)
{
    GPtrArray *blocks = g_ptr_array_new_with_free_func(block_free);
    const HnGraph *g = main_graph(p);
    if (!g)
        return blocks;
    g_autofree int *part = find_parts(g);
    g_autoptr(GHashTable) place = g_hash_table_new(NULL, NULL); /* HnNode * -> 1 + its place */
    for (guint i = 0; i < g->nodes->len; i++)
        g_hash_table_insert(place, g->nodes->pdata[i], GUINT_TO_POINTER(i + 1));
    for (guint i = 0; i < g->nodes->len; i++)
        new_block(blocks, NULL, -1);
    for (guint i = 0; i < p->rows->len; i++) {
        const HnNode *node = main_node(p, p->rows->pdata[i]);
        guint at = node ? GPOINTER_TO_UINT(g_hash_table_lookup(place, node)) : 0;
        if (at > 0)
            g_ptr_array_add(((HnProfileBlock *)blocks->pdata[part[at - 1]])->rows, p->rows->pdata[i]);
    }
    blocks = distinct(blocks);
    name_parts(p, blocks);
    return blocks;
}

GPtrArray *hn_profile_blocks(const HnProfile *p)
{
    GPtrArray *blocks = by_scopes(p);
    if (2 * count_covered(blocks) >= p->rows->len)
        return blocks;
    g_ptr_array_unref(blocks);
    return by_graph(p);
}
