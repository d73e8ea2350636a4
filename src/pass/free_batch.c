#include "pass/free_batch.h"

#include <string.h>

#include "ir/copy.h"
#include "pass/free_batch_inner.h"
#include "pass/lib/forget_types.h"

#define SAMPLES "hn~samples" /* the symbol, while nodes are walked over: no file calls a dimension so */
#define ATTEMPTS 64          /* views that are tried otherwise */
#define FOLD ((gsize)1 << 16)

/* A view that had several places for the samples. */
typedef struct {
    char *name; /* of its output */
    int wish, choices;
} Choice;

static void choice_free(gpointer choice)
{
    g_free(((Choice *)choice)->name);
    g_free(choice);
}

HnBatchPlace hn_free_place(const HnFreeWalk *f, const HnValue *v)
{
    const HnBatchPlace *at = g_hash_table_lookup(f->places, v);
    return at != NULL ? *at : hn_batch_none();
}

void hn_free_set_place(HnFreeWalk *f, HnValue *v, HnBatchPlace at)
{
    if (at.axis >= 0)
        g_hash_table_replace(f->places, v, g_memdup2(&at, sizeof at));
    else
        g_hash_table_remove(f->places, v);
}

/* --- one node ----------------------------------------------------------------------------------------------------- */

/* In front of all other nodes: Shape, then the size of the axis. */
static HnValue *size(HnBatch *b)
{
    HnFreeWalk *f = b->data;
    HnGraph *g = f->m->graph;
    if (f->size != NULL)
        return f->size;
    const HnNode *before = g->nodes->pdata[0];
    HnNode *shape = hn_graph_add_node_before(g, before, "Shape", NULL, NULL);
    HnNode *gather = hn_graph_add_node_before(g, before, "Gather", NULL, NULL);
    const int64_t axis = f->first_axis;
    g_autoptr(HnTensor) t = hn_tensor_ints(&axis, 1);
    HnValue *at = hn_graph_new_value(g, "batch_axis");
    hn_graph_add_weight(g, at, t);
    hn_types_set_value(f->now, at, t);
    hn_node_add_in(shape, f->first);
    hn_node_add_out(shape, hn_graph_new_value(g, "batch_shape"));
    hn_node_add_in(gather, hn_node_out(shape, 0));
    hn_node_add_in(gather, at);
    hn_node_add_out(gather, hn_graph_new_value(g, "batch_size"));
    f->size = hn_node_out(gather, 0);
    return hn_types_node(f->now, shape, 0, &b->error) && hn_types_node(f->now, gather, 0, &b->error) ? f->size : NULL;
}

static gboolean walk(HnFreeWalk *f, HnGraph *g, GError **error);
static gboolean holds(const HnBatch *b, const HnValue *v);
static gboolean sub_graph(HnBatch *b, HnGraph *g, int n_in, const HnBatchFormal *in, HnBatchFormal *out);
static gboolean settle_inner(HnBatch *b, HnGraph *g, int k, int axis);

void hn_free_begin(HnFreeWalk *f, HnNode *n, HnBatch *b)
{
    *b = (HnBatch){ .node = n,
                    .types = f->now,
                    .n_in = (int)n->in->len,
                    .n_out = (int)n->out->len,
                    .n = f->n,
                    .n0 = f->n0,
                    .size = size,
                    .holds = holds,
                    .graph = sub_graph,
                    .settle = settle_inner,
                    .select = hn_free_select,
                    .apart = hn_free_apart,
                    .make = hn_free_make,
                    .data = f };
    b->in = g_new0(HnBatchIn, (gsize)b->n_in + 1);
    b->was_out = g_new0(HnType *, (gsize)b->n_out + 1);
    b->out = g_new0(HnBatchPlace, (gsize)b->n_out + 1);
    for (int i = 0; i < b->n_in; i++) {
        HnValue *v = hn_node_in(n, i);
        b->in[i] = (HnBatchIn){ .v = v, .at = hn_batch_none() };
        if (v == NULL)
            continue;
        b->in[i].was = hn_types_get(f->was, v);
        b->in[i].now = hn_types_get(f->now, v);
        b->in[i].at = hn_free_place(f, v);
    }
    for (int k = 0; k < b->n_out; k++) {
        b->out[k] = hn_batch_none();
        b->was_out[k] = hn_node_out(n, k) != NULL ? hn_types_get(f->was, hn_node_out(n, k)) : NULL;
    }
}

void hn_free_end(HnBatch *b)
{
    g_free(b->in);
    g_free(b->was_out);
    g_free(b->out);
    g_clear_error(&b->error);
}

/* A value that was of type `was` holds n samples there; NULL: it cannot. `rank`: of what it is now. */
static HnType *expected(const HnFreeWalk *f, const HnType *was, const HnBatchPlace *at, int rank)
{
    HnDim dims[HN_MAX_RANK];
    const HnDim size = hn_dim_mul(hn_dim_mul(at->outer, f->n), at->inner);
    const gboolean front = rank == was->rank + 1;
    if (was->rank < 0 || rank > HN_MAX_RANK || (!front && rank != was->rank) || at->axis >= rank)
        return NULL;
    if (front && (at->axis != 0 || !hn_dim_equal(size, f->n)))
        return NULL;
    for (int a = 0; a < rank; a++)
        dims[a] = front && a == 0 ? f->n : !front && a == at->axis ? size : was->dims[a - front];
    return hn_type_tensor(was->dtype, rank, dims);
}

gboolean hn_free_check_out(HnFreeWalk *f, const HnValue *y, HnType *was, HnBatchPlace *at, GError **error)
{
    HnType *now = hn_types_get(f->now, y);
    if (at->axis < 0)
        return TRUE;
    g_autoptr(HnType) want = hn_type_rank(was) >= 0 && hn_type_rank(now) >= 0 ? expected(f, was, at, now->rank) : NULL;
    gboolean fits = want != NULL;
    for (int a = 0; fits && a < want->rank; a++)
        fits = !hn_dim_differ(want->dims[a], now->dims[a]);
    if (fits) {
        hn_types_set(f->now, y, want);
        return TRUE;
    }
    g_autofree char *is = hn_type_describe(now), *before = hn_type_describe(was);
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "the samples cannot be told apart in its result, %s instead of %s", is,
                before);
    return FALSE;
}

static int wish_of(const HnFreeWalk *f, const HnNode *n)
{
    const HnValue *y = hn_node_result(n);
    return y != NULL ? GPOINTER_TO_INT(g_hash_table_lookup(f->wishes, y->name)) : 0;
}

/* `at`: in front of those of sub-graphs, which are tried otherwise first. */
static void note_choice(HnFreeWalk *f, guint at, const char *name, const HnBatch *b)
{
    if (b->choices < 2)
        return;
    Choice *c = g_new(Choice, 1);
    *c = (Choice){ g_strdup(name), b->wish, b->choices };
    g_ptr_array_insert(f->choices, (gint)at, c);
}

static gboolean apply_rule(HnFreeWalk *f, HnNode *n, GError **error)
{
    HnBatch b;
    const HnOp *op = n->op;
    void (*const rule)(HnBatch * b) = hn_batch_rule(op);
    hn_free_begin(f, n, &b);
    b.params = n->params;
    b.wish = wish_of(f, n);
    g_autofree HnValue **y = g_new0(HnValue *, (gsize)b.n_out + 1);
    for (int k = 0; k < b.n_out; k++)
        y[k] = hn_node_out(n, k);
    g_autofree char *name = g_strdup(hn_node_result(n) != NULL ? hn_node_result(n)->name : "");
    const guint choices = f->choices->len;
    g_autofree void *params = op->params_size > 0 ? g_memdup2(n->params, op->params_size) : NULL;
    b.params = params;
    if (rule != NULL)
        rule(&b);
    else
        b.apart(&b);
    note_choice(f, choices, name, &b);
    gboolean ok = b.error == NULL;
    if (ok && f->again) {
        hn_free_end(&b);
        return TRUE;
    }
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&b.error));
    if (ok && b.gone)
        hn_graph_remove_node(n->graph, n);
    ok = ok && (b.gone || hn_types_node(f->now, n, FOLD, error));
    for (int k = 0; k < b.n_out && ok && !b.gone; k++) {
        if (y[k] == NULL)
            continue;
        ok = hn_free_check_out(f, y[k], b.was_out[k], &b.out[k], error);
        hn_free_set_place(f, y[k], b.out[k]);
    }
    hn_free_end(&b);
    return ok;
}

static gboolean reads_samples(const HnFreeWalk *f, const HnNode *n)
{
    g_autoptr(GPtrArray) reads = hn_node_reads(n);
    for (guint i = 0; i < reads->len; i++)
        if (hn_free_place(f, reads->pdata[i]).axis >= 0)
            return TRUE;
    return FALSE;
}

/* What it makes of the samples without a change, for views that need none. */
static gboolean try_as_it_is(HnFreeWalk *f, HnNode *n, GError **error)
{
    g_autoptr(GError) ignored = NULL;
    if (!hn_op_bind(n, error))
        return FALSE;
    if ((n->op->flags & HN_OP_CONTROL) != 0)
        return TRUE;
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            hn_types_forget(f->now, n->out->pdata[k]);
    hn_types_node(f->now, n, 0, &ignored);
    return n->op != NULL || hn_op_bind(n, error);
}

gboolean hn_free_node(HnFreeWalk *f, HnNode *n, GError **error)
{
    g_autofree char *label = g_strdup(hn_node_label(n)), *op = g_strdup(n->op_type);
    const gboolean samples = reads_samples(f, n);
    if (samples ? try_as_it_is(f, n, error) && apply_rule(f, n, error) : hn_types_node(f->now, n, FOLD, error))
        return TRUE;
    f->stuck = f->stuck != NULL ? f->stuck : n;
    if (samples && *error != NULL && strstr((*error)->message, "' (") == NULL)
        g_prefix_error(error, "'%s' (%s): ", label, op);
    return FALSE;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static gboolean walk(HnFreeWalk *f, HnGraph *g, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_copy(g->nodes, NULL, NULL);
    GPtrArray *outer = f->todo;
    const guint outer_at = f->at;
    gboolean ok = TRUE;
    for (guint i = 0; i < nodes->len && ok; i += !f->again) {
        f->todo = nodes;
        f->at = i;
        f->again = FALSE;
        ok = nodes->pdata[i] == NULL || hn_free_node(f, nodes->pdata[i], error);
    }
    f->todo = outer;
    f->at = outer_at;
    f->again = FALSE;
    return ok;
}

static gboolean holds(const HnBatch *b, const HnValue *v)
{
    return hn_free_place(b->data, v).axis >= 0;
}

/* What goes into a body: as it was in the original, or with samples where they are said to be. */
static gboolean enter_formal(HnFreeWalk *f, HnValue *v, HnBatchFormal in, GError **error)
{
    HnType *was = hn_types_get(f->was, v);
    hn_free_set_place(f, v, in.at);
    if (in.at.axis < 0) {
        hn_types_set(f->now, v, was);
        return TRUE;
    }
    g_autoptr(HnType) now = hn_type_rank(was) >= 0 ? expected(f, was, &in.at, was->rank + in.front) : NULL;
    if (now == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "the samples cannot be told apart in '%s', which a body reads",
                    v->name);
        return FALSE;
    }
    hn_types_set(f->now, v, now);
    return TRUE;
}

static gboolean sub_graph(HnBatch *b, HnGraph *g, int n_in, const HnBatchFormal *in, HnBatchFormal *out)
{
    HnFreeWalk *f = b->data;
    if (!hn_types_enter(f->now, g, FALSE, &b->error))
        return FALSE;
    for (int i = 0; i < n_in && (guint)i < g->inputs->len; i++)
        if (!enter_formal(f, g->inputs->pdata[i], in[i], &b->error))
            return FALSE;
    if (!walk(f, g, &b->error))
        return FALSE;
    for (guint k = 0; k < g->outputs->len; k++) {
        const HnValue *v = g->outputs->pdata[k];
        const int rank = hn_type_rank(hn_types_get(f->now, v));
        out[k].at = hn_free_place(f, v);
        out[k].front = out[k].at.axis >= 0 && rank == hn_type_rank(hn_types_get(f->was, v)) + 1;
    }
    return TRUE;
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

/* An Identity in front of output k, whose input is brought into form. axis -1: the samples in front. */
static gboolean settle_output(HnFreeWalk *f, HnGraph *g, int k, int axis, GError **error)
{
    HnBatch b;
    HnValue *v = g->outputs->pdata[k], *to = hn_graph_new_value(g, v->name);
    HnNode *n = hn_graph_add_node(g, -1, "Identity", NULL, NULL);
    HnType *was = hn_types_get(f->was, v);
    hn_node_add_in(n, v);
    hn_node_add_out(n, to);
    hn_free_begin(f, n, &b);
    gboolean ok = axis < 0 ? hn_batch_lift(&b, 0, 0) : hn_batch_put(&b, 0, axis);
    HnBatchPlace at = b.in[0].at;
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&b.error));
    hn_free_end(&b);
    ok = ok && hn_types_node(f->now, n, 0, error) && hn_free_check_out(f, to, was, &at, error);
    if (!ok)
        return FALSE;
    hn_types_set(f->was, to, was);
    hn_free_set_place(f, to, at);
    hn_graph_set_output(g, (guint)k, to);
    if (g->outer == NULL)
        hn_value_swap_names(v, to);
    return TRUE;
}

static gboolean settle_inner(HnBatch *b, HnGraph *g, int k, int axis)
{
    return settle_output(b->data, g, k, axis, &b->error);
}

/* Names of our own, of samples and of what is not known, are for no file. */
static HnType *renamed(const HnFreeWalk *f, const HnType *t, HnDim symbol)
{
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < t->rank; a++)
        dims[a] = hn_dim_equal(t->dims[a], f->n)                                    ? symbol
                  : t->dims[a].sym != NULL && strpbrk(t->dims[a].sym, "~?") != NULL ? hn_dim_unknown()
                                                                                    : t->dims[a];
    return hn_type_tensor(t->dtype, t->rank, dims);
}

static void declare(const HnFreeWalk *f, GPtrArray *values, HnDim symbol)
{
    for (guint i = 0; i < values->len; i++) {
        HnValue *v = values->pdata[i];
        const HnType *t = hn_types_get(f->now, v);
        if (!hn_type_is_tensor(t) || t->rank < 0 || (v->is_input && hn_free_place(f, v).axis < 0))
            continue;
        g_autoptr(HnType) type = renamed(f, t, symbol);
        hn_value_set_type(v, type);
    }
}

static void declare_formals(const HnFreeWalk *f, const HnGraph *g, const GPtrArray *values, HnDim symbol)
{
    for (guint i = 0; i < values->len; i++) {
        HnValue *v = values->pdata[i];
        const HnType *t = hn_types_get(f->now, v);
        if (v->graph != g || hn_value_is_weight(v) || hn_type_rank(t) < 0)
            continue;
        g_autoptr(HnType) type = renamed(f, t, symbol);
        hn_value_set_type(v, type);
    }
}

/* What goes into bodies and comes out of them is told as it is now: types that the file had are for one sample. */
static void declare_inner(const HnFreeWalk *f, const HnGraph *g, HnDim symbol)
{
    for (guint i = 0; i < g->inner->len; i++) {
        const HnGraph *inner = g->inner->pdata[i];
        declare_formals(f, inner, inner->inputs, symbol);
        declare_formals(f, inner, inner->outputs, symbol);
        declare_inner(f, inner, symbol);
    }
}

/* --- a model ------------------------------------------------------------------------------------------------------ */

static HnValue *input_named(const HnModel *m, const char *name)
{
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        HnValue *v = m->graph->inputs->pdata[i];
        if (!hn_value_is_weight(v) && !strcmp(v->name, name))
            return v;
    }
    return NULL;
}

static gboolean free_input(HnFreeWalk *f, const HnFreeDim *d, GError **error)
{
    HnValue *v = input_named(f->m, d->input);
    const HnType *t = v != NULL ? v->type : NULL;
    HnDim dims[HN_MAX_RANK];
    if (v == NULL || hn_type_rank(t) <= d->axis || d->axis < 0 || t->rank > HN_MAX_RANK || !t->dims[d->axis].known) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the model has no input '%s' with a fixed dimension %d", d->input,
                    d->axis);
        return FALSE;
    }
    if (f->n0 != 0 && f->n0 != t->dims[d->axis].n) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "dimension %d of input '%s' is %" PRId64 ", others of that name are %" PRId64, d->axis, d->input,
                    t->dims[d->axis].n, f->n0);
        return FALSE;
    }
    f->n0 = t->dims[d->axis].n;
    memcpy(dims, t->dims, (gsize)t->rank * sizeof *dims);
    dims[d->axis] = f->n;
    g_autoptr(HnType) type = hn_type_tensor(t->dtype, t->rank, dims);
    hn_types_set(f->now, v, type);
    hn_free_set_place(f, v, hn_batch_place(d->axis));
    if (f->first == NULL) {
        f->first = v;
        f->first_axis = d->axis;
    }
    return TRUE;
}

static int wanted_axis(const HnFreeDim *wanted, const HnValue *v)
{
    for (; wanted != NULL && wanted->input != NULL; wanted++)
        if (!strcmp(wanted->input, v->name))
            return wanted->axis;
    return -1;
}

static gboolean settle_outputs(HnFreeWalk *f, const HnFreeDim *wanted, HnFreedBatch *out, GError **error)
{
    HnGraph *g = f->m->graph;
    out->n_out = (int)g->outputs->len;
    g_free(out->out);
    out->out = g_new(int, (gsize)out->n_out + 1);
    for (int k = 0; k < out->n_out; k++) {
        const HnValue *v = g->outputs->pdata[k];
        const HnBatchPlace at = hn_free_place(f, v);
        const HnType *was = hn_types_get(f->was, v), *now = hn_types_get(f->now, v);
        const gboolean front = at.axis >= 0 && hn_type_rank(now) != hn_type_rank(was);
        const gboolean alone = !front && hn_dim_is(at.outer, 1) && hn_dim_is(at.inner, 1);
        int want = wanted_axis(wanted, v);
        for (int a = 0; a < hn_type_rank(was) && want < 0 && at.axis >= 0 && !alone; a++)
            want = hn_dim_is(was->dims[a], f->n0) ? a : -1;
        const gboolean stays = at.axis < 0 ? want < 0 : want >= 0 ? at.axis == want && alone : alone || front;
        if (!stays && !settle_output(f, g, k, want, error)) {
            g_prefix_error(error, "output '%s': ", v->name);
            return FALSE;
        }
        out->out[k] = hn_free_place(f, g->outputs->pdata[k]).axis;
    }
    return TRUE;
}

static gboolean attempt(HnFreeWalk *f, const HnFreeDim *dims, guint n, const char *symbol, const HnFreeDim *wanted,
                        HnFreedBatch *out, GError **error)
{
    HnGraph *g = f->m->graph;
    gboolean ok = hn_types_graph(f->was, g, FOLD, 0, error);
    hn_pass_forget_types(g);
    ok = ok && hn_types_enter(f->now, g, TRUE, error);
    for (guint i = 0; i < n && ok; i++)
        ok = free_input(f, &dims[i], error);
    if (!ok || !walk(f, g, error) || !settle_outputs(f, wanted, out, error))
        return FALSE;
    declare(f, g->inputs, hn_dim_symbol(symbol));
    declare(f, g->outputs, hn_dim_symbol(symbol));
    declare_inner(f, g, hn_dim_symbol(symbol));
    return hn_graph_infer(g, FALSE, error) && hn_model_verify(f->m, error);
}

/* Names of what the node that failed makes, and of what it depends on. */
static GHashTable *upstream(HnNode *n)
{
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) todo = g_ptr_array_new();
    for (; n != NULL; n = n->graph->holder)
        g_ptr_array_add(todo, n);
    while (todo->len > 0) {
        const HnNode *at = g_ptr_array_steal_index(todo, todo->len - 1);
        if (!g_hash_table_add(seen, (gpointer)at))
            continue;
        for (guint k = 0; k < at->out->len; k++) /* one that is not read may name it */
            if (at->out->pdata[k] != NULL)
                g_hash_table_add(names, ((HnValue *)at->out->pdata[k])->name);
        g_autoptr(GPtrArray) reads = hn_node_reads(at);
        for (guint i = 0; i < reads->len; i++) {
            const HnValue *v = reads->pdata[i];
            g_hash_table_add(names, v->name);
            if (v->producer != NULL)
                g_ptr_array_add(todo, v->producer);
        }
    }
    return names;
}

/* The last view in front of what failed that has another place left is to take it; FALSE: there is none. */
static gboolean try_otherwise(HnFreeWalk *f)
{
    g_autoptr(GHashTable) names = f->stuck != NULL ? upstream(f->stuck) : NULL;
    for (guint i = f->choices->len; i-- > 0;) {
        const Choice *c = f->choices->pdata[i];
        if (c->wish + 1 >= c->choices || (names != NULL && !g_hash_table_contains(names, c->name)))
            continue;
        g_hash_table_replace(f->wishes, g_strdup(c->name), GINT_TO_POINTER(c->wish + 1));
        for (guint k = i + 1; k < f->choices->len; k++)
            g_hash_table_remove(f->wishes, ((const Choice *)f->choices->pdata[k])->name);
        return TRUE;
    }
    return FALSE;
}

static void free_clear(HnFreeWalk *f)
{
    hn_types_free(f->was);
    hn_types_free(f->now);
    g_clear_pointer(&f->places, g_hash_table_unref);
    g_clear_pointer(&f->symbols, g_hash_table_unref);
    g_clear_pointer(&f->choices, g_ptr_array_unref);
    g_clear_pointer(&f->apart, g_free);
    g_clear_pointer(&f->m, hn_model_free);
}

static void free_init(HnFreeWalk *f, const HnModel *m, HnBudget *budget, GHashTable *wishes)
{
    *f = (HnFreeWalk){ .m = hn_model_copy(m), .n = hn_dim_symbol(SAMPLES), .wishes = wishes };
    f->was = hn_types_new(f->m);
    f->now = hn_types_new(f->m);
    hn_types_set_budget(f->was, budget);
    hn_types_set_budget(f->now, budget);
    hn_types_name_unknown(f->was);
    hn_types_name_unknown(f->now);
    f->places = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    f->choices = g_ptr_array_new_with_free_func(choice_free);
    f->symbols = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnType *t = ((const HnValue *)m->graph->inputs->pdata[i])->type;
        for (int a = 0; a < hn_type_rank(t); a++)
            if (t->dims[a].sym != NULL)
                g_hash_table_add(f->symbols, g_strdup(t->dims[a].sym));
    }
}

gboolean hn_free_batch(const HnModel *m, const HnFreeDim *dims, guint n, const char *symbol, const HnFreeDim *wanted,
                       HnBudget *budget, HnFreedBatch *out, GError **error)
{
    g_autoptr(GHashTable) wishes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GError *first = NULL;
    *out = (HnFreedBatch){ .n0 = 0 };
    for (int i = 0;; i++) {
        HnFreeWalk f;
        GError *failure = NULL;
        free_init(&f, m, budget, wishes);
        if (attempt(&f, dims, n, symbol, wanted, out, &failure)) {
            out->model = g_steal_pointer(&f.m);
            out->n0 = f.n0;
            out->n_apart = f.n_apart;
            out->apart = g_steal_pointer(&f.apart);
            free_clear(&f);
            g_clear_error(&first);
            return TRUE;
        }
        const gboolean again = i < ATTEMPTS && g_error_matches(failure, HN_ERROR, HN_ERROR_GUARD) && try_otherwise(&f);
        free_clear(&f);
        out->views += again;
        if (first == NULL)
            first = failure;
        else
            g_error_free(failure);
        if (!again)
            break;
    }
    hn_freed_batch_clear(out);
    g_propagate_error(error, first);
    return FALSE;
}

void hn_freed_batch_clear(HnFreedBatch *f)
{
    g_clear_pointer(&f->model, hn_model_free);
    g_clear_pointer(&f->out, g_free);
    g_clear_pointer(&f->apart, g_free);
}
