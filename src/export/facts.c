#include "export/facts.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "check/flops.h"
#include "ir/copy.h"
#include "pass/expand_contrib.h"

extern const HnBackend hn_backend_null;

/* --- counts ------------------------------------------------------------------------------------------------------- */

static guint hash_tensor(gconstpointer p)
{
    const HnTensor *t = p;
    guint h = (guint)t->dtype * 31u + (guint)t->n;
    const guint8 *b = t->data;
    for (size_t i = 0; i < MIN(t->bytes, (size_t)256); i++)
        h = h * 33u + b[i];
    return h;
}

static gboolean equal_tensors(gconstpointer a, gconstpointer b)
{
    return hn_tensor_equal(a, b);
}

typedef struct {
    HnFacts *f;
    GHashTable *seen; /* HnTensor * by content */
} Count;

static void count_tensor(Count *c, HnTensor *t)
{
    c->f->weights++;
    if (t->dtype == HN_STRING || t->unloaded || t->bytes == 0)
        return;
    if (!g_hash_table_add(c->seen, t))
        c->f->duplicate_bytes += t->bytes;
}

static void count_weights(Count *c, HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (v->weight != NULL)
            count_tensor(c, v->weight);
        else if (v->sparse != NULL && v->sparse->values != NULL)
            count_tensor(c, v->sparse->values);
    }
    for (guint i = 0; i < g->inner->len; i++)
        count_weights(c, g->inner->pdata[i]);
}

static void count_node(HnNode *n, gpointer data)
{
    Count *c = data;
    g_autofree char *name =
        hn_domain_equal(n->domain, NULL) ? g_strdup(n->op_type) : g_strdup_printf("%s.%s", n->domain, n->op_type);
    gpointer count = g_hash_table_lookup(c->f->operators, name);
    g_hash_table_insert(c->f->operators, g_steal_pointer(&name), GUINT_TO_POINTER(GPOINTER_TO_UINT(count) + 1));
    c->f->nodes++;
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_TENSOR && a->t != NULL)
            count_tensor(c, a->t);
    }
}

/* --- what a run takes --------------------------------------------------------------------------------------------- */

static void plan(HnModel *m, const HnShapes *shapes, HnBudget *budget, HnFacts *facts)
{
    const HnSessionOptions o = { .threads = 1, .budget = budget };
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_null, &o, NULL);
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    HnSessionStats stats;
    for (int i = 0; s != NULL && i < hn_session_n_inputs(s); i++) {
        const HnValue *v = hn_session_input(s, i);
        int64_t dims[HN_MAX_RANK];
        int rank = hn_shapes_dims(shapes, v, dims, NULL);
        if (rank < 0 || v->type->kind != HN_TYPE_TENSOR)
            return;
        g_ptr_array_add(in, hn_type_fixed(v->type->dtype, rank, dims));
    }
    g_ptr_array_add(in, NULL);
    if (s == NULL || !hn_session_prepare(s, (HnType *const *)in->pdata, NULL))
        return;
    hn_session_stats(s, &stats);
    facts->planned_bytes = stats.arena_bytes;
    guint left;
    g_autoptr(HnTypes) types = hn_flops_types(m, shapes, budget);
    const double flops = hn_flops(types, m, &left);
    facts->flops = left == 0 ? flops : NAN;
}

void hn_facts(HnModel *m, const HnShapes *shapes, HnBudget *budget, HnFacts *facts)
{
    *facts = (HnFacts){ .operators = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL), .flops = NAN };
    g_autoptr(GHashTable) seen = g_hash_table_new(hash_tensor, equal_tensors);
    Count c = { facts, seen };
    facts->opset = hn_model_opset(m, NULL);
    hn_graph_foreach_node(m->graph, count_node, &c);
    count_weights(&c, m->graph);
    facts->weight_bytes = hn_model_weight_bytes(m);
    if (m->functions->len > 0) /* planning unfolds them */
        return;
    g_autoptr(HnModel) copy = hn_count_contrib(m) > 0 ? hn_model_copy(m) : NULL; /* and spells these out */
    plan(copy != NULL ? copy : m, shapes, budget, facts);
}

void hn_facts_clear(HnFacts *facts)
{
    g_clear_pointer(&facts->operators, g_hash_table_unref);
}

/* --- data files --------------------------------------------------------------------------------------------------- */

typedef struct {
    guint64 first, end;
} Range;

static gint by_first(gconstpointer a, gconstpointer b)
{
    guint64 x = ((const Range *)a)->first, y = ((const Range *)b)->first;
    return (x > y) - (x < y);
}

static void add_range(GHashTable *files, const HnTensor *t)
{
    const char *location = t->stored == HN_STORED_EXTERNAL ? hn_tensor_extra(t, "location") : NULL, *text = NULL;
    gint64 offset = 0;
    if (location == NULL)
        return;
    if ((text = hn_tensor_extra(t, "offset")) != NULL && !hn_parse_int(text, 0, G_MAXINT64, &offset, NULL))
        return;
    GArray *ranges = g_hash_table_lookup(files, location);
    if (ranges == NULL) {
        ranges = g_array_new(FALSE, FALSE, sizeof(Range));
        g_hash_table_insert(files, g_strdup(location), ranges);
    }
    Range r = { (guint64)offset, (guint64)offset + t->bytes };
    g_array_append_val(ranges, r);
}

static void add_ranges(GHashTable *files, const HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        if (v->weight != NULL)
            add_range(files, v->weight);
    }
    for (guint i = 0; i < g->inner->len; i++)
        add_ranges(files, g->inner->pdata[i]);
}

guint64 hn_orphaned_bytes(const HnModel *m, const char *path)
{
    g_autoptr(GHashTable) files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    g_autofree char *dir = g_path_get_dirname(path);
    guint64 orphaned = 0;
    GHashTableIter iter;
    gpointer location, value;
    add_ranges(files, m->graph);
    g_hash_table_iter_init(&iter, files);
    while (g_hash_table_iter_next(&iter, &location, &value)) {
        g_autofree char *file = g_build_filename(dir, location, NULL);
        GArray *ranges = value;
        struct stat st;
        guint64 used = 0, end = 0;
        if (stat(file, &st) != 0)
            continue;
        g_array_sort(ranges, by_first);
        for (guint i = 0; i < ranges->len; i++) {
            const Range *r = &g_array_index(ranges, Range, i);
            used += r->end > end ? r->end - MAX(r->first, end) : 0;
            end = MAX(end, r->end);
        }
        orphaned += (guint64)st.st_size > used ? (guint64)st.st_size - used : 0;
    }
    return orphaned;
}
