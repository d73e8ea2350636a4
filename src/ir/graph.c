#include "ir/graph.h"

#include <string.h>

#include "ir/detach.h"

#define FEW_OPSETS 8  /* are looked through one by one */
#define FEW_GRAPHS 64 /* the same of a model's graphs */

/* --- small things ------------------------------------------------------------------------------------------------ */

static void bytes_free(gpointer b)
{
    if (b)
        g_bytes_unref(b);
}

static void pairs_free(HnPairs *p)
{
    if (p)
        g_ptr_array_unref(p);
}

static void array_free(GPtrArray *a)
{
    if (a)
        g_ptr_array_unref(a);
}

static void opset_clear(gpointer p)
{
    g_free(((HnOpset *)p)->domain);
    bytes_free(((HnOpset *)p)->unknown);
}

static GArray *opsets_new(void)
{
    GArray *a = g_array_new(FALSE, TRUE, sizeof(HnOpset));
    g_array_set_clear_func(a, opset_clear);
    return a;
}

static void opsets_free(GArray *opsets, HnOpsetIndex *index)
{
    g_array_unref(opsets);
    if (index->by_domain)
        g_hash_table_unref(index->by_domain);
}

gboolean hn_array_drop(GPtrArray *array, gconstpointer p)
{
    for (guint i = 0, j = array->len; i < j; i++) {
        if (array->pdata[i] == p) {
            g_ptr_array_remove_index(array, i);
            return TRUE;
        }
        if (array->pdata[--j] == p) {
            g_ptr_array_remove_index(array, j);
            return TRUE;
        }
    }
    return FALSE;
}

gboolean hn_domain_equal(const char *a, const char *b)
{
    a = !a || strcmp(a, "ai.onnx") == 0 ? "" : a;
    b = !b || strcmp(b, "ai.onnx") == 0 ? "" : b;
    return strcmp(a, b) == 0;
}

/* --- models ------------------------------------------------------------------------------------------------------ */

HnModel *hn_model_new(void)
{
    HnModel *m = g_new0(HnModel, 1);
    m->ir_version = 8;
    m->has_ir_version = TRUE;
    m->opsets = opsets_new();
    m->functions = g_ptr_array_new();
    m->training = g_ptr_array_new_with_free_func(bytes_free);
    m->configs = g_ptr_array_new_with_free_func(bytes_free);
    m->texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->graph = hn_graph_new(m, NULL, "main");
    return m;
}

void hn_model_free(HnModel *m)
{
    if (!m)
        return;
    if (m->names)
        g_hash_table_unref(m->names);
    hn_graph_free(m->graph);
    for (guint i = 0; i < m->functions->len; i++)
        hn_function_free(m->functions->pdata[i]);
    g_ptr_array_unref(m->functions);
    opsets_free(m->opsets, &m->opset_index);
    array_free(m->training);
    array_free(m->configs);
    pairs_free(m->metadata);
    bytes_free(m->unknown);
    g_hash_table_unref(m->texts);
    g_free(m->producer_name);
    g_free(m->producer_version);
    g_free(m->domain);
    g_free(m->doc);
    g_free(m->path);
    hn_model_set_budget(m, NULL);
    g_free(m);
}

/* The budget is told in steps: an object at a time would be a lock each. */
#define STEP ((gsize)64 << 10)

void hn_model_count(HnModel *m, gssize bytes)
{
    m->objects += (gsize)bytes;
    if (!m->budget)
        return;
    gsize need = m->objects + m->kept;
    if (need > m->charged) {
        hn_budget_take(m->budget, need + STEP - m->charged);
        m->charged = need + STEP;
    } else if (bytes < 0 && m->charged - need > 16 * STEP) {
        hn_budget_uncharge(m->budget, m->charged - need - STEP);
        m->charged = need + STEP;
    }
}

void hn_model_set_budget(HnModel *m, HnBudget *budget)
{
    hn_budget_uncharge(m->budget, m->charged);
    hn_budget_unref(m->budget);
    m->budget = hn_budget_ref(budget);
    m->charged = 0;
    hn_model_count(m, 0);
}

gboolean hn_model_reserve(HnModel *m, gsize bytes, GError **error)
{
    if (!hn_budget_charge(m->budget, bytes, error))
        return FALSE;
    m->charged += bytes;
    return TRUE;
}

void hn_model_settle(HnModel *m)
{
    if (m->charged > m->objects)
        m->kept = m->charged - m->objects;
}

const char *hn_model_text(HnModel *m, const char *text)
{
    if (!text)
        return NULL;
    char *own = g_hash_table_lookup(m->texts, text);
    if (!own) {
        own = g_strdup(text);
        g_hash_table_add(m->texts, own);
    }
    return own;
}

static HnOpset *opset_find(GArray *opsets, HnOpsetIndex *index, const char *domain)
{
    const char *name = !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
    for (guint i = 0; i < opsets->len && i < FEW_OPSETS; i++) {
        HnOpset *o = &g_array_index(opsets, HnOpset, i);
        if (hn_domain_equal(o->domain, name))
            return o;
    }
    if (opsets->len <= FEW_OPSETS)
        return NULL;
    if (!index->by_domain)
        index->by_domain = g_hash_table_new(g_str_hash, g_str_equal);
    for (; index->n < opsets->len; index->n++) {
        const HnOpset *o = &g_array_index(opsets, HnOpset, index->n);
        const char *key = hn_domain_equal(o->domain, "") ? "" : o->domain;
        if (!g_hash_table_contains(index->by_domain, key)) /* the first one counts */
            g_hash_table_insert(index->by_domain, (gpointer)key, GUINT_TO_POINTER(index->n + 1));
    }
    const guint at = GPOINTER_TO_UINT(g_hash_table_lookup(index->by_domain, name));
    return at > 0 ? &g_array_index(opsets, HnOpset, at - 1) : NULL;
}

int64_t hn_model_opset(const HnModel *m, const char *domain)
{
    const HnOpset *o = hn_graph_import(m->graph, domain);
    return o ? o->version : 0;
}

void hn_model_set_opset(HnModel *m, const char *domain, int64_t version)
{
    HnOpset *o = opset_find(m->opsets, &m->opset_index, domain);
    if (o) {
        o->version = version;
        return;
    }
    HnOpset made = { g_strdup(domain ? domain : ""), version, NULL };
    g_array_append_val(m->opsets, made);
}

HnFunction *hn_function_new(HnModel *m, const char *domain, const char *name)
{
    HnFunction *f = g_new0(HnFunction, 1);
    f->model = m;
    f->domain = g_strdup(domain);
    f->name = g_strdup(name);
    f->inputs = g_ptr_array_new_with_free_func(g_free);
    f->outputs = g_ptr_array_new_with_free_func(g_free);
    f->attrs = g_ptr_array_new_with_free_func(g_free);
    f->attr_defaults = g_ptr_array_new();
    f->opsets = opsets_new();
    f->body = hn_graph_new(m, NULL, name);
    f->body->function = f;
    g_ptr_array_add(m->functions, f);
    return f;
}

void hn_function_free(HnFunction *f)
{
    if (!f)
        return;
    for (guint i = 0; i < f->attr_defaults->len; i++)
        hn_attr_free(f->attr_defaults->pdata[i]);
    g_ptr_array_unref(f->attr_defaults);
    g_ptr_array_unref(f->inputs);
    g_ptr_array_unref(f->outputs);
    g_ptr_array_unref(f->attrs);
    opsets_free(f->opsets, &f->opset_index);
    hn_graph_free(f->body);
    pairs_free(f->metadata);
    bytes_free(f->unknown);
    g_free(f->name);
    g_free(f->domain);
    g_free(f->overload);
    g_free(f->doc);
    g_free(f);
}

const HnOpset *hn_graph_import(const HnGraph *g, const char *domain)
{
    while (g->outer)
        g = g->outer;
    HnModel *m = g->model;
    HnFunction *f = g->function;
    return f ? opset_find(f->opsets, &f->opset_index, domain) : opset_find(m->opsets, &m->opset_index, domain);
}

int64_t hn_graph_opset(const HnGraph *g, const char *domain)
{
    const HnOpset *o = hn_graph_import(g, domain);
    return o ? o->version : 0;
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

static void value_destroy(gpointer v)
{
    hn_value_release(v);
}

HnGraph *hn_graph_new(HnModel *m, HnGraph *outer, const char *name)
{
    HnGraph *g = g_new0(HnGraph, 1);
    g->model = m;
    g->outer = outer;
    g->name = g_strdup(name);
    g->inputs = g_ptr_array_new();
    g->outputs = g_ptr_array_new();
    g->weights = g_ptr_array_new();
    g->infos = g_ptr_array_new();
    g->nodes = g_ptr_array_new();
    g->inner = g_ptr_array_new();
    g->quant = g_ptr_array_new_with_free_func(bytes_free);
    g->values = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, value_destroy);
    if (outer)
        g_ptr_array_add(outer->inner, g);
    m->n_graphs++;
    return g;
}

void hn_graph_release(HnGraph *g)
{
    g->model->n_graphs--;
    for (guint i = 0; i < g->nodes->len; i++)
        hn_node_release(g->nodes->pdata[i]);
    g_ptr_array_unref(g->nodes);
    g_ptr_array_unref(g->inputs);
    g_ptr_array_unref(g->outputs);
    g_ptr_array_unref(g->weights);
    g_ptr_array_unref(g->infos);
    g_ptr_array_unref(g->inner);
    g_hash_table_unref(g->values);
    array_free(g->quant);
    if (g->variants)
        g_hash_table_unref(g->variants);
    pairs_free(g->metadata);
    bytes_free(g->unknown);
    g_free(g->name);
    g_free(g->doc);
    g_free(g);
}

void hn_graph_free(HnGraph *g)
{
    if (!g)
        return;
    if (g->outer) {
        hn_graph_detach(g);
        hn_array_drop(g->outer->inner, g);
    }
    hn_graph_release(g);
}

gboolean hn_value_within(const HnValue *v, const HnGraph *g)
{
    for (const HnGraph *h = v->graph; h; h = h->outer)
        if (h == g)
            return TRUE;
    return FALSE;
}

static void detach(HnGraph *g, const HnGraph *root)
{
    for (guint i = g->nodes->len; i-- > 0;) {
        HnNode *n = g->nodes->pdata[i];
        for (guint j = n->in->len; j-- > 0;) {
            HnValue *v = n->in->pdata[j];
            if (v && v->graph != g && !hn_value_within(v, root))
                hn_value_drop_user(v, n);
        }
        for (guint j = 0; j < n->attrs->len; j++) {
            HnGraph *const *graphs;
            int64_t k = hn_attr_graphs(n->attrs->pdata[j], &graphs);
            while (k-- > 0)
                if (graphs[k])
                    detach(graphs[k], root);
        }
    }
    for (guint i = 0; g->holder && i < g->outputs->len; i++) {
        HnValue *v = g->outputs->pdata[i];
        if (v && !hn_value_within(v, root))
            hn_value_drop_user(v, g->holder);
    }
}

void hn_graph_detach(HnGraph *g)
{
    detach(g, g);
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static void note_name(HnModel *m, const char *name)
{
    if (m->names && !g_hash_table_contains(m->names, name))
        g_hash_table_add(m->names, g_strdup(name));
}

HnValue *hn_graph_value(HnGraph *g, const char *name)
{
    HnValue *v = g_hash_table_lookup(g->values, name);
    if (v)
        return v;
    v = g_new0(HnValue, 1);
    hn_model_count(g->model, HN_VALUE_BYTES);
    v->name = g_strdup(name);
    v->id = g->model->n_values++;
    v->graph = g;
    g_hash_table_insert(g->values, v->name, v);
    note_name(g->model, v->name);
    return v;
}

void hn_value_release(HnValue *v)
{
    hn_type_unref(v->type);
    hn_tensor_unref(v->weight);
    hn_sparse_free(v->sparse);
    hn_ptrs_clear(v->users);
    pairs_free(v->metadata);
    bytes_free(v->unknown);
    g_free(v->name);
    g_free(v->doc);
    hn_model_count(v->graph->model, -(gssize)HN_VALUE_BYTES);
    g_free(v);
}

HnValue *hn_graph_find(const HnGraph *g, const char *name)
{
    for (; g; g = g->outer) {
        HnValue *v = g_hash_table_lookup(g->values, name);
        if (v)
            return v;
    }
    return NULL;
}

static gboolean named_below(const HnGraph *g, const char *name)
{
    for (guint i = 0; i < g->inner->len; i++) {
        const HnGraph *h = g->inner->pdata[i];
        if (g_hash_table_contains(h->values, name) || named_below(h, name))
            return TRUE;
    }
    return FALSE;
}

void hn_graph_note_names(const HnGraph *g)
{
    HnModel *m = g->model;
    GHashTableIter it;
    gpointer name;
    g_hash_table_iter_init(&it, g->values);
    while (m->names && g_hash_table_iter_next(&it, &name, NULL))
        note_name(m, name);
    for (guint i = 0; m->names && i < g->inner->len; i++)
        hn_graph_note_names(g->inner->pdata[i]);
}

/* Has a value of the model had the name? To ask all graphs inside one takes too long where there are thousands. */
static gboolean named_anywhere(HnModel *m, const char *name)
{
    if (!m->names) {
        m->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        hn_graph_note_names(m->graph);
        for (guint i = 0; i < m->functions->len; i++)
            hn_graph_note_names(((const HnFunction *)m->functions->pdata[i])->body);
    }
    return g_hash_table_contains(m->names, name);
}

static gboolean is_taken(const HnGraph *g, const char *name)
{
    if (hn_graph_find(g, name))
        return TRUE;
    return g->inner->len > 0 &&
           (g->model->n_graphs > FEW_GRAPHS ? named_anywhere(g->model, name) : named_below(g, name));
}

HnValue *hn_graph_new_value(HnGraph *g, const char *stem)
{
    HnModel *m = g->model;
    g_autofree char *name = g_strdup(stem && *stem ? stem : "v");
    if (!is_taken(g, name))
        return hn_graph_value(g, name);
    const uint32_t least = MAX(m->n_values, m->suffix);
    uint32_t k = least;
    do {
        g_free(name);
        name = g_strdup_printf("%s_%u", stem && *stem ? stem : "v", k++);
    } while (is_taken(g, name));
    if (k > least + 1) /* a file took care that many are: nobody tries those again */
        m->suffix = k;
    return hn_graph_value(g, name);
}

void hn_graph_add_input(HnGraph *g, HnValue *v)
{
    v->is_input = TRUE;
    g_ptr_array_add(g->inputs, v);
}

void hn_graph_add_output(HnGraph *g, HnValue *v)
{
    if (v->graph == g)
        v->is_output++;
    else if (g->holder)
        hn_value_add_user(v, g->holder);
    g_ptr_array_add(g->outputs, v);
}

void hn_graph_remove_input(HnGraph *g, int i)
{
    HnValue *v = g_ptr_array_steal_index(g->inputs, (guint)i);
    v->is_input = FALSE;
}

void hn_graph_remove_output(HnGraph *g, int k)
{
    HnValue *v = g_ptr_array_steal_index(g->outputs, (guint)k);
    if (v->graph == g)
        v->is_output--;
    else if (g->holder)
        hn_value_drop_user(v, g->holder);
}

void hn_graph_set_output(HnGraph *g, guint k, HnValue *v)
{
    HnValue *old = g->outputs->pdata[k];
    if (v->graph == g)
        v->is_output++;
    else if (g->holder)
        hn_value_add_user(v, g->holder);
    g->outputs->pdata[k] = v;
    if (old->graph == g)
        old->is_output--;
    else if (g->holder)
        hn_value_drop_user(old, g->holder);
}

static void add_weight(HnGraph *g, HnValue *v, HnTensor *t, HnSparse *s)
{
    if (!hn_value_is_weight(v))
        g_ptr_array_add(g->weights, v);
    hn_tensor_unref(v->weight);
    hn_sparse_free(v->sparse);
    v->weight = t;
    v->sparse = s;
}

void hn_graph_add_weight(HnGraph *g, HnValue *v, HnTensor *t)
{
    add_weight(g, v, hn_tensor_ref(t), NULL);
}

void hn_graph_add_sparse(HnGraph *g, HnValue *v, HnSparse *s)
{
    add_weight(g, v, NULL, s);
}

void hn_graph_remove_weight(HnGraph *g, HnValue *v)
{
    hn_array_drop(g->weights, v);
    hn_tensor_unref(v->weight);
    hn_sparse_free(v->sparse);
    v->weight = NULL;
    v->sparse = NULL;
}

void hn_graph_drop_value(HnValue *v)
{
    HnGraph *g = v->graph;
    if (hn_value_is_weight(v))
        hn_graph_remove_weight(g, v);
    if (v->has_info)
        hn_array_drop(g->infos, v);
    g_hash_table_remove(g->values, v->name);
}

HnTensor *hn_value_aligned(const HnValue *v, HnBudget *budget, GError **error)
{
    if (v->weight == NULL)
        return hn_sparse_dense(v->sparse, budget, error);
    if (v->weight->dtype == HN_STRING || !v->weight->misaligned)
        return hn_tensor_ref(v->weight);
    g_autoptr(HnTensor) t = hn_tensor_reshaped(v->weight, v->weight->ndim, v->weight->dims);
    return hn_tensor_align(t, budget, error) ? g_steal_pointer(&t) : NULL;
}

gboolean hn_value_is_weight(const HnValue *v)
{
    return v->weight || v->sparse;
}

gboolean hn_value_is_read(const HnValue *v)
{
    return v && (v->users->len > 0 || v->is_output);
}

gboolean hn_node_is_read(const HnNode *n)
{
    gboolean read = FALSE;
    for (guint k = 0; k < n->out->len && !read; k++)
        read = hn_value_is_read(n->out->pdata[k]);
    return read;
}

void hn_value_set_type(HnValue *v, HnType *t)
{
    hn_type_ref(t);
    hn_type_unref(v->type);
    v->type = t;
}

void hn_graph_set_variant(HnGraph *g, const char *role, const HnValue *v, GBytes *declaration)
{
    if (!g->variants)
        g->variants = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, bytes_free);
    g_hash_table_insert(g->variants, g_strdup_printf("%s %s", role, v->name), g_bytes_ref(declaration));
}

GBytes *hn_graph_variant(const HnGraph *g, const char *role, const HnValue *v)
{
    if (!g->variants)
        return NULL;
    g_autofree char *key = g_strdup_printf("%s %s", role, v->name);
    return g_hash_table_lookup(g->variants, key);
}

void hn_value_add_user(HnValue *v, HnNode *n)
{
    hn_ptrs_add(v->users, n);
}

void hn_value_drop_user(HnValue *v, HnNode *n)
{
    hn_ptrs_drop(v->users, n);
}

/* `most` places of a list that are `from`, looked for on both sides of *near, become `to`. */
static void replace_in(gpointer *p, guint len, guint *near, guint most, const HnValue *from, HnValue *to)
{
    const guint middle = *near < len ? *near : 0;
    for (guint k = 0; k < len && most > 0; k++) {
        const guint places[] = { k <= middle ? middle - k : G_MAXUINT, middle + k }; /* one, where k is 0 */
        for (guint side = 0; side < 2; side++)
            if (places[side] < len && p[places[side]] == from && most > 0) {
                p[places[side]] = to;
                *near = places[side];
                most--;
            }
    }
}

static gboolean replace_in_graphs(HnNode *n, const HnValue *from, HnValue *to)
{
    gboolean any = FALSE;
    for (guint i = 0; i < n->attrs->len; i++) {
        HnGraph *const *graphs;
        int64_t k = hn_attr_graphs(n->attrs->pdata[i], &graphs);
        for (; k-- > 0; any = TRUE)
            if (graphs[k])
                replace_in(graphs[k]->outputs->pdata, graphs[k]->outputs->len, &graphs[k]->near, G_MAXUINT, from, to);
    }
    return any;
}

void hn_value_replace(HnValue *from, HnValue *to)
{
    if (from == to)
        return;
    for (guint i = 0, run; i < from->users->len; i += run) {
        HnNode *n = from->users->pdata[i];
        for (run = 0; i + run < from->users->len && from->users->pdata[i + run] == n; run++)
            hn_value_add_user(to, n);
        const gboolean graphs = replace_in_graphs(n, from, to); /* which have a part in the uses */
        replace_in(n->in->pdata, n->in->len, &n->near, graphs ? G_MAXUINT : run, from, to);
    }
    hn_ptrs_clear(from->users);
    if (!from->is_output)
        return;
    HnGraph *g = from->graph;
    for (guint i = 0; i < from->is_output && to->graph != g && g->holder; i++)
        hn_value_add_user(to, g->holder);
    replace_in(g->outputs->pdata, g->outputs->len, &g->near, from->is_output, from, to);
    if (to->graph == g)
        to->is_output += from->is_output;
    from->is_output = 0;
}

void hn_value_swap_names(HnValue *a, HnValue *b)
{
    GHashTable *values = a->graph->values; /* owns the values; keys are their names */
    g_return_if_fail(a->graph == b->graph);
    if (a == b)
        return;
    g_hash_table_steal(values, a->name);
    g_hash_table_steal(values, b->name);
    char *name = a->name;
    a->name = b->name;
    b->name = name;
    g_hash_table_insert(values, a->name, a);
    g_hash_table_insert(values, b->name, b);
}

void hn_value_take_name(HnValue *v, char *name)
{
    static const char *const roles[] = { "output", "info" };
    HnGraph *g = v->graph;
    for (gsize i = 0; g->variants && i < G_N_ELEMENTS(roles); i++) {
        g_autofree char *key = g_strdup_printf("%s %s", roles[i], v->name);
        g_hash_table_remove(g->variants, key);
    }
    note_name(g->model, name);
    g_hash_table_steal(g->values, v->name);
    g_free(v->name);
    v->name = name;
    g_hash_table_insert(g->values, v->name, v);
}

void hn_model_drop_defaults(HnModel *m)
{
    GPtrArray *in = m->graph->inputs;
    for (guint i = in->len; i-- > 0;) {
        HnValue *v = in->pdata[i];
        if (!hn_value_is_weight(v))
            continue;
        v->is_input = FALSE;
        g_ptr_array_remove_index(in, i);
        m->ir_version = MAX(m->ir_version, 4);
    }
}

static gsize bytes_once(HnTensor *t, GHashTable *seen)
{
    return t != NULL && g_hash_table_add(seen, t) ? t->bytes : 0;
}

static gsize graph_bytes(const HnGraph *g, GHashTable *seen)
{
    gsize bytes = 0;
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        bytes += bytes_once(v->weight != NULL ? v->weight : v->sparse != NULL ? v->sparse->values : NULL, seen);
    }
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->attrs->len; k++) {
            const HnAttr *a = n->attrs->pdata[k];
            bytes += a->kind == HN_ATTR_TENSOR ? bytes_once(a->t, seen) : 0;
        }
    }
    for (guint i = 0; i < g->inner->len; i++)
        bytes += graph_bytes(g->inner->pdata[i], seen);
    return bytes;
}

gsize hn_model_weight_bytes(const HnModel *m)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    return graph_bytes(m->graph, seen);
}
