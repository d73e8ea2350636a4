#include "pass/inline_functions.h"

#include <string.h>

#include "base/error.h"
#include "pass/expand_contrib.h"

#define MAX_NODES 100000 /* that calls may unfold to, ... */
#define MAX_GROWTH 16    /* ... or so many times the nodes of the file, where that is more */
#define MAX_DEPTH 100    /* graphs one inside the other */

/* --- the functions, and what calls of them come to -----------------------------------------------------------------
 */

/* What a call finds a function by. */
typedef struct {
    const char *domain, *name, *overload;
} Name;

typedef struct {
    Name name;
    const HnFunction *function; /* NULL: the model's own graph */
    enum { NEW, OPEN, DONE } state;
    guint64 nodes;        /* that a call unfolds to, the calls in between too; once it is DONE */
    GArray *calls;        /* Call; once it is not NEW any more, as the next one */
    GHashTable *defaults; /* name -> HnAttr *: of the function's attributes */
    guint next;           /* call to look at */
} Body;

typedef struct {
    const HnNode *node;
    Body *body;
} Call;

typedef struct {
    HnModel *model;
    GHashTable *bodies; /* Name * -> Body *, which owns it */
    guint64 nodes;      /* of the file, as far as it is called */
    guint64 left;       /* nodes that may still be made */
    gboolean any;       /* the model's own graph calls one */
} Functions;

static const char *overload_of(const Name *n)
{
    return n->overload != NULL ? n->overload : "";
}

static guint name_hash(gconstpointer p)
{
    const Name *n = p;
    const guint domain = hn_domain_equal(n->domain, "") ? 0 : g_str_hash(n->domain);
    return (domain * 31 + g_str_hash(n->name)) * 31 + g_str_hash(overload_of(n));
}

static gboolean name_equal(gconstpointer p, gconstpointer q)
{
    const Name *a = p, *b = q;
    return strcmp(a->name, b->name) == 0 && hn_domain_equal(a->domain, b->domain) &&
           strcmp(overload_of(a), overload_of(b)) == 0;
}

static void body_free(gpointer data)
{
    Body *b = data;
    if (b->calls != NULL) {
        g_array_unref(b->calls);
        g_hash_table_unref(b->defaults);
    }
    g_free(b);
}

static void functions_init(Functions *fs, HnModel *m)
{
    *fs = (Functions){ .model = m, .bodies = g_hash_table_new_full(name_hash, name_equal, NULL, body_free) };
    for (guint i = 0; i < m->functions->len; i++) {
        const HnFunction *f = m->functions->pdata[i];
        Body *b = g_new0(Body, 1);
        b->name = (Name){ f->domain, f->name, f->overload };
        b->function = f;
        if (g_hash_table_contains(fs->bodies, &b->name)) /* of two the first is called */
            body_free(b);
        else
            g_hash_table_insert(fs->bodies, &b->name, b);
    }
}

static Body *called(const Functions *fs, const HnNode *n)
{
    const Name name = { n->domain, n->op_type, n->overload };
    return g_hash_table_lookup(fs->bodies, &name);
}

typedef struct {
    const Functions *fs;
    Body *body;
} Listing;

static void list_call(HnNode *n, gpointer data)
{
    const Listing *l = data;
    const Call call = { n, called(l->fs, n) };
    l->body->nodes++;
    if (call.body != NULL)
        g_array_append_val(l->body->calls, call);
}

static void open_body(Functions *fs, Body *b)
{
    Listing l = { fs, b };
    b->state = OPEN;
    b->calls = g_array_new(FALSE, FALSE, sizeof(Call));
    b->defaults = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = b->function != NULL ? b->function->attr_defaults->len : 0; i-- > 0;) { /* of two the first counts */
        HnAttr *a = b->function->attr_defaults->pdata[i];
        g_hash_table_replace(b->defaults, a->name, a);
    }
    hn_graph_foreach_node(b->function != NULL ? b->function->body : fs->model->graph, list_call, &l);
    for (guint i = 0; b->function != NULL && i < b->function->attr_defaults->len; i++) {
        const HnAttr *a = b->function->attr_defaults->pdata[i];
        if (a->kind == HN_ATTR_GRAPH)
            hn_graph_foreach_node(a->g, list_call, &l);
    }
    fs->nodes += b->nodes;
}

/* Counts what each call that `top` reaches unfolds to, without unfolding any. Errors: GRAPH for a circle. */
static gboolean count(Functions *fs, Body *top, GError **error)
{
    g_autoptr(GPtrArray) stack = g_ptr_array_new();
    open_body(fs, top);
    g_ptr_array_add(stack, top);
    while (stack->len > 0) {
        Body *b = stack->pdata[stack->len - 1];
        if (b->next == b->calls->len) {
            b->state = DONE;
            g_ptr_array_set_size(stack, (int)stack->len - 1);
            continue;
        }
        Body *c = g_array_index(b->calls, Call, b->next).body;
        if (c->state == OPEN) {
            g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "function '%s' is called by itself or in a circle",
                        c->function->name);
            return FALSE;
        }
        if (c->state == NEW) {
            open_body(fs, c);
            g_ptr_array_add(stack, c);
            continue;
        }
        b->nodes = c->nodes > G_MAXUINT64 - b->nodes ? G_MAXUINT64 : b->nodes + c->nodes;
        b->next++;
    }
    return TRUE;
}

/* Functions that call the next one twice double with each link: nothing is unfolded that comes to too much. */
static gboolean forecast(Functions *fs, GError **error)
{
    Body top = { 0 };
    gboolean ok = count(fs, &top, error);
    fs->left = MAX(MAX_NODES, MAX_GROWTH * fs->nodes);
    fs->any = top.calls->len > 0;
    guint64 left = fs->left;
    for (guint i = 0; ok && i < top.calls->len; i++) {
        const Call *call = &g_array_index(top.calls, Call, i);
        if ((ok = call->body->nodes <= left))
            left -= call->body->nodes;
        else
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "the functions called by node '%s' unfold to more than %" G_GUINT64_FORMAT " nodes",
                        hn_node_label(call->node), fs->left);
    }
    g_array_unref(top.calls);
    g_hash_table_unref(top.defaults);
    return ok;
}

/* --- copying what a body has ---------------------------------------------------------------------------------------
 */

typedef struct {
    Functions *fs;
    const Body *body;
    HnNode *call;
    GHashTable *values; /* HnValue * of the body -> HnValue * of the target */
    GError **error;
} Inline;

/* The target's value for one of the body's; made on first sight. */
static HnValue *mapped(Inline *x, HnGraph *to, HnValue *v)
{
    if (v == NULL)
        return NULL;
    gpointer known;
    if (g_hash_table_lookup_extended(x->values, v, NULL, &known))
        return known;
    HnValue *made = hn_graph_new_value(to, v->name);
    if (v->type != NULL)
        hn_value_set_type(made, v->type);
    g_hash_table_insert(x->values, v, made);
    return made;
}

static HnGraph *clone_graph(Inline *x, const HnGraph *g, HnGraph *outer);

static void clone_strings(HnAttr *to, const HnAttr *from)
{
    to->strings = g_new0(GBytes *, (gsize)from->n + 1);
    for (int64_t i = 0; i < from->n; i++)
        to->strings[i] = g_bytes_ref(from->strings[i]);
}

static HnSparse *clone_sparse(const HnSparse *s)
{
    HnSparse *c = g_new0(HnSparse, 1);
    c->values = s->values != NULL ? hn_tensor_ref(s->values) : NULL;
    c->indices = s->indices != NULL ? hn_tensor_ref(s->indices) : NULL;
    c->ndim = s->ndim;
    c->dims = g_memdup2(s->dims, (gsize)s->ndim * sizeof *s->dims);
    c->unknown = s->unknown != NULL ? g_bytes_ref(s->unknown) : NULL;
    return c;
}

/* A copy of `a` under another name; NULL and an error for kinds that no call carries. */
static HnAttr *clone_attr(Inline *x, const HnAttr *a, const char *name, HnGraph *to)
{
    HnAttr *c = hn_attr_new(name, a->kind);
    c->has_kind = TRUE;
    c->n = a->n;
    switch (a->kind) {
    case HN_ATTR_FLOAT:
        c->f = a->f;
        break;
    case HN_ATTR_INT:
        c->i = a->i;
        break;
    case HN_ATTR_STRING:
        c->s = g_bytes_ref(a->s);
        break;
    case HN_ATTR_TENSOR:
        c->t = hn_tensor_ref(a->t);
        break;
    case HN_ATTR_GRAPH:
        c->g = clone_graph(x, a->g, to);
        break;
    case HN_ATTR_FLOATS:
        c->floats = g_memdup2(a->floats, (gsize)a->n * sizeof *a->floats);
        break;
    case HN_ATTR_INTS:
        c->ints = g_memdup2(a->ints, (gsize)a->n * sizeof *a->ints);
        break;
    case HN_ATTR_STRINGS:
        clone_strings(c, a);
        break;
    case HN_ATTR_SPARSE:
        c->sparse = clone_sparse(a->sparse);
        break;
    case HN_ATTR_TYPE:
        c->type = hn_type_ref(a->type);
        break;
    default:
        c->kind = HN_ATTR_UNDEFINED;
        c->n = 0;
        hn_attr_free(c);
        if (*x->error == NULL)
            g_set_error(x->error, HN_ERROR, HN_ERROR_UNSUPPORTED, "attribute '%s' of function '%s' cannot be inlined",
                        name, x->body->function->name);
        return NULL;
    }
    return c;
}

/* What an attribute that stands for one of the function's own is worth in this call; NULL: nothing. */
static const HnAttr *referred(const Inline *x, const char *name)
{
    const HnAttr *given = hn_node_attr(x->call, name);
    return given != NULL ? given : g_hash_table_lookup(x->body->defaults, name);
}

static gboolean clone_node(Inline *x, const HnNode *n, HnGraph *to)
{
    if (x->fs->left-- == 0) { /* graphs that calls hand on count where they are used */
        x->fs->left = 0;
        g_set_error(x->error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "the functions called by node '%s' unfold to too many nodes", hn_node_label(x->call));
        return FALSE;
    }
    HnNode *c = hn_graph_add_node(to, -1, n->op_type, n->domain, n->name);
    c->version = n->version;
    c->overload = hn_model_text(c->graph->model, n->overload);
    for (guint i = 0; i < n->in->len; i++)
        hn_node_add_in(c, mapped(x, to, n->in->pdata[i]));
    for (guint k = 0; k < n->out->len; k++) {
        hn_node_add_out(c, NULL);
        hn_node_set_out(c, (int)k, mapped(x, to, n->out->pdata[k]));
    }
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i], *from = a->ref_attr != NULL ? referred(x, a->ref_attr) : a;
        HnAttr *copy = from != NULL ? clone_attr(x, from, a->name, to) : NULL;
        if (from != NULL && copy == NULL)
            return FALSE;
        if (copy != NULL)
            hn_node_set_attr(c, copy);
        if (*x->error != NULL)
            return FALSE;
    }
    return TRUE;
}

static gboolean is_too_deep(const HnGraph *g)
{
    int depth = 0;
    for (; g != NULL; g = g->outer)
        depth++;
    return depth > MAX_DEPTH;
}

/* A sub-graph of a body. A failure is left in x->error; what is built so far is valid to free. */
static HnGraph *clone_graph(Inline *x, const HnGraph *g, HnGraph *outer)
{
    HnGraph *c = hn_graph_new(x->fs->model, outer, g->name);
    if (is_too_deep(c)) {
        g_set_error(x->error, HN_ERROR, HN_ERROR_UNSUPPORTED, "function '%s' nests graphs more than %d deep",
                    x->body->function->name, MAX_DEPTH);
        return c;
    }
    for (guint i = 0; i < g->inputs->len; i++)
        hn_graph_add_input(c, mapped(x, c, g->inputs->pdata[i]));
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (v->weight != NULL)
            hn_graph_add_weight(c, mapped(x, c, v), v->weight);
    }
    for (guint i = 0; i < g->nodes->len; i++)
        if (!clone_node(x, g->nodes->pdata[i], c))
            break;
    for (guint i = 0; i < g->outputs->len; i++)
        hn_graph_add_output(c, mapped(x, c, g->outputs->pdata[i]));
    return c;
}

/* --- calls ---------------------------------------------------------------------------------------------------------
 */

/* A call that is being unfolded: its node is in no graph's list. */
typedef struct {
    Inline x;
    guint next;       /* node of the body */
    HnValue **handed; /* per output of the call: what the body hands through from an input, or gives twice; else NULL */
} Frame;

static void frame_clear(gpointer data)
{
    Frame *f = data;
    g_hash_table_unref(f->x.values);
    g_free(f->handed);
}

/* The call's inputs and outputs stand for the body's. */
static gboolean enter(Functions *fs, GArray *stack, HnNode *call, GError **error)
{
    const Body *b = called(fs, call);
    const HnFunction *f = b->function;
    if (call->in->len > f->body->inputs->len || call->out->len > f->body->outputs->len) {
        g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "node '%s' gives function '%s' more inputs or outputs than it has",
                    hn_node_label(call), f->name);
        return FALSE;
    }
    GHashTable *values = g_hash_table_new(NULL, NULL);
    Frame frame = { { fs, b, call, values, error }, 0, g_new0(HnValue *, call->out->len + 1u) };
    for (guint i = 0; i < f->body->inputs->len; i++)
        g_hash_table_insert(values, f->body->inputs->pdata[i], hn_node_in(call, (int)i));
    for (guint k = 0; k < call->out->len; k++) {
        HnValue *formal = f->body->outputs->pdata[k], *actual = hn_node_out(call, (int)k);
        if (actual != NULL && g_hash_table_contains(values, formal))
            frame.handed[k] = formal;
        else if (actual != NULL)
            g_hash_table_insert(values, formal, actual);
    }
    for (guint i = 0; i < f->body->weights->len; i++) {
        HnValue *v = f->body->weights->pdata[i];
        if (v->weight != NULL)
            hn_graph_add_weight(call->graph, mapped(&frame.x, call->graph, v), v->weight);
    }
    g_array_append_val(stack, frame);
    return TRUE;
}

/* An output that the body hands through needs a node of its own. */
static void add_identity(HnGraph *g, HnValue *from, HnValue *to)
{
    HnNode *n = hn_graph_add_node(g, -1, "Identity", NULL, NULL);
    if (n->version == 0)
        n->version = 1;
    hn_node_add_in(n, from);
    hn_node_add_out(n, NULL);
    hn_node_set_out(n, 0, to);
}

static void leave(GArray *stack)
{
    Frame *f = &g_array_index(stack, Frame, stack->len - 1);
    HnNode *call = f->x.call;
    HnGraph *g = call->graph;
    for (guint k = 0; k < call->out->len; k++)
        if (f->handed[k] != NULL)
            add_identity(g, mapped(&f->x, g, f->handed[k]), hn_node_out(call, (int)k));
    g_array_set_size(stack, stack->len - 1);
    g_ptr_array_add(g->nodes, call);
    hn_graph_remove_node(g, call);
}

/* Appends to the call's graph what the call unfolds to. The call goes, except where that fails: then all that were
 * being unfolded stay, at the end. */
static gboolean unfold(Functions *fs, HnNode *call, GError **error)
{
    HnGraph *g = call->graph;
    GError *failure = NULL;
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(Frame)); /* calls in calls in calls: no recursion */
    g_array_set_clear_func(stack, frame_clear);
    gboolean ok = enter(fs, stack, call, &failure);
    if (!ok)
        g_ptr_array_add(g->nodes, call);
    while (ok && stack->len > 0) {
        Frame *f = &g_array_index(stack, Frame, stack->len - 1);
        const GPtrArray *nodes = f->x.body->function->body->nodes;
        if (f->next == nodes->len) {
            leave(stack);
            continue;
        }
        const HnNode *n = nodes->pdata[f->next++];
        if (!(ok = clone_node(&f->x, n, g)) || called(fs, n) == NULL)
            continue;
        HnNode *inner = g_ptr_array_steal_index(g->nodes, g->nodes->len - 1);
        if (!(ok = enter(fs, stack, inner, &failure)))
            g_ptr_array_add(g->nodes, inner);
    }
    for (guint i = 0; i < stack->len; i++)
        g_ptr_array_add(g->nodes, g_array_index(stack, Frame, i).x.call);
    if (!ok)
        g_propagate_error(error, failure);
    return ok;
}

static gboolean inline_graph(Functions *fs, HnGraph *g, GError **error)
{
    g_autoptr(GPtrArray) old = g->nodes;
    gboolean ok = TRUE;
    g->nodes = g_ptr_array_sized_new(old->len);
    for (guint i = 0; i < old->len; i++) {
        HnNode *n = old->pdata[i];
        if (!ok || called(fs, n) == NULL)
            g_ptr_array_add(g->nodes, n);
        else
            ok = unfold(fs, n, error);
    }
    for (guint i = 0; ok && i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; ok && k < n->attrs->len; k++) {
            const HnAttr *a = n->attrs->pdata[k];
            if (a->kind == HN_ATTR_GRAPH)
                ok = inline_graph(fs, a->g, error);
            for (int64_t j = 0; ok && a->kind == HN_ATTR_GRAPHS && j < a->n; j++)
                ok = inline_graph(fs, a->graphs[j], error);
        }
    }
    return ok;
}

static gboolean inline_all(HnModel *m, GError **error)
{
    Functions fs;
    functions_init(&fs, m);
    const gboolean ok = forecast(&fs, error) && (!fs.any || inline_graph(&fs, m->graph, error));
    g_hash_table_unref(fs.bodies);
    return ok;
}

gboolean hn_inline_calls(HnModel *m, GError **error)
{
    return m->functions->len == 0 || inline_all(m, error);
}

gboolean hn_inline_functions(HnModel *m, GError **error)
{
    return hn_inline_calls(m, error) && hn_spell_out_contrib(m, FALSE, error);
}
