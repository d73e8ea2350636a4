#include "pass/precision/precision.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "op/unbind.h"
#include "pass/inline_functions.h"
#include "pass/precision/precision_plan.h"
#include "pass/rewrite.h"

#define CHUNK 1024
#define BF16_OPSET 13 /* the first one with bf16 */

typedef struct {
    HnModel *model;
    const HnPrecisionOptions *o;
    HnPrecisionPlan *plan;
    HnPrecisionLog *log;
    GHashTable *constants; /* HnValue * -> Constant * */
    GPtrArray *order;      /* the same HnValues, as they were found */
    GHashTable *tensors;   /* HnTensor * -> HnTensor *, converted: what was shared stays shared */
    GHashTable *casts;     /* HnValue * -> HnValue *: in the other type */
    GPtrArray *made;       /* HnNode *: Casts */
    GError *error;
} Work;

/* A weight or Constant that is to be converted, and who wants it how. */
typedef struct {
    HnTensor *tensor; /* as it was */
    gboolean in_new, in_old;
    HnValue *converted; /* itself, or the copy */
} Constant;

/* --- the log ----------------------------------------------------------------------------------------------------- */

const char *hn_kept_name(HnKept kept)
{
    static const char *const names[] = { "converted", "type",     "overflow", "inside", "small",  "coarse",
                                         "weight",    "position", "asked",    "around", "checked" };
    return (guint)kept < G_N_ELEMENTS(names) ? names[kept] : "?";
}

static void log_node_free(gpointer data)
{
    HnPrecisionNode *l = data;
    g_free(l->op);
    g_free(l->site);
    g_free(l->why);
    g_free(l);
}

void hn_precision_log_init(HnPrecisionLog *log)
{
    *log = (HnPrecisionLog){ .nodes = g_ptr_array_new_with_free_func(log_node_free) };
}

void hn_precision_log_clear(HnPrecisionLog *log)
{
    if (log->nodes != NULL)
        g_ptr_array_unref(log->nodes);
    *log = (HnPrecisionLog){ 0 };
}

/* Casts and constants are means, not nodes that somebody asks about. */
static void note_node(const Work *w, const HnPortNode *pn)
{
    const HnNode *n = pn->node;
    const guint ports = n->in->len + n->out->len;
    const HnPortSet *kept = NULL;
    gboolean any = FALSE, converts = FALSE;
    for (guint k = 0; k < ports; k++) {
        if (pn->port[k] < 0)
            continue;
        const HnPortSet *s = hn_precision_set(w->plan, pn->port[k]);
        any = TRUE;
        converts = converts || s->converts;
        if (!s->converts && (kept == NULL || kept->kept == HN_KEPT_TYPE))
            kept = s;
    }
    if (!any || n->op == &hn_op_cast || n->op == &hn_op_constantofshape)
        return;
    HnPrecisionNode *l = g_new0(HnPrecisionNode, 1);
    l->op = g_strdup(n->op_type);
    l->site = g_strdup(hn_node_out(n, 0) != NULL ? hn_node_out(n, 0)->name : hn_node_label(n));
    l->headroom = hn_precision_headroom(w->plan, pn);
    if (!converts && kept != NULL) {
        l->kept = kept->kept;
        l->why = g_strdup(kept->why);
    }
    w->log->converted += l->kept == HN_KEPT_NOT;
    w->log->unseen += l->kept == HN_KEPT_NOT && w->o->ranges != NULL && isnan(l->headroom);
    g_ptr_array_add(w->log->nodes, l);
}

/* --- elements ---------------------------------------------------------------------------------------------------- */

static void narrow(Work *w, uint16_t *to, const float *from, int64_t n)
{
    const double largest = hn_precision_largest(w->o->to), clamp = hn_precision_clamp(w->o->to);
    float part[CHUNK];
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)from[i];
        const gboolean beyond = isfinite(from[i]) && fabs(x) >= largest * (1 + 0x1p-13);
        part[i] = beyond ? (float)copysign(clamp, x) : from[i];
        w->log->clamped += beyond;
    }
    (w->o->to == HN_F16 ? hn_f16_from_f32_n : hn_bf16_from_f32_n)(to, part, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        w->log->flushed += from[i] != 0 && (to[i] & 0x7fff) == 0;
}

/* The elements in the new type; the tensor's name and such stay with the old one. */
static HnTensor *converted(Work *w, HnTensor *t)
{
    HnTensor *c = g_hash_table_lookup(w->tensors, t);
    if (c != NULL || w->error != NULL)
        return c;
    if ((c = hn_tensor_new_uninit(w->o->to, t->ndim, t->dims, w->o->budget, &w->error)) == NULL)
        return NULL;
    const size_t size = hn_dtype_size(t->dtype), to_size = hn_dtype_size(c->dtype);
    for (int64_t i = 0; i < t->n; i += CHUNK) {
        const int64_t n = MIN(t->n - i, CHUNK);
        float wide[CHUNK];
        uint16_t half[CHUNK];
        void *from = t->dtype == HN_F32 ? (void *)wide : half;
        memcpy(from, (const char *)t->data + (size_t)i * size, (size_t)n * size); /* may lie at any address */
        if (t->dtype != HN_F32)
            (t->dtype == HN_F16 ? hn_f16_to_f32_n : hn_bf16_to_f32_n)(wide, half, (size_t)n);
        else
            narrow(w, half, wide, n);
        memcpy((char *)c->data + (size_t)i * to_size, t->dtype == HN_F32 ? (void *)half : wide, (size_t)n * to_size);
    }
    w->log->weights++;
    g_hash_table_insert(w->tensors, hn_tensor_ref(t), c);
    return c;
}

static void set_dtype(HnValue *v, const HnType *known, HnDtype dtype)
{
    const HnType *t = v->type != NULL ? v->type : known;
    if (!hn_type_is_tensor(t))
        return;
    g_autoptr(HnType) type = hn_type_tensor(dtype, t->rank, t->dims);
    for (int i = 0; t->denotations != NULL && i < t->rank; i++) {
        if (type->denotations == NULL)
            type->denotations = g_new0(char *, (gsize)t->rank + 1);
        type->denotations[i] = g_strdup(t->denotations[i]);
    }
    hn_value_set_type(v, type);
    if (v->graph->variants == NULL)
        return;
    static const char *const roles[] = { "output", "info" };
    for (guint i = 0; i < G_N_ELEMENTS(roles); i++) { /* what the file says a second time is no longer so */
        g_autofree char *key = g_strdup_printf("%s %s", roles[i], v->name);
        g_hash_table_remove(v->graph->variants, key);
    }
}

/* --- constants --------------------------------------------------------------------------------------------------- */

static Constant *constant(Work *w, HnValue *v)
{
    Constant *c = g_hash_table_lookup(w->constants, v);
    HnTensor *t = c == NULL && hn_precision_dtype(w->plan, v) != HN_UNDEFINED ? hn_precision_constant(v) : NULL;
    if (t == NULL)
        return c;
    c = g_new0(Constant, 1);
    c->tensor = hn_tensor_ref(t);
    g_hash_table_insert(w->constants, v, c);
    g_ptr_array_add(w->order, v);
    return c;
}

static void constant_free(gpointer data)
{
    hn_tensor_unref(((Constant *)data)->tensor);
    g_free(data);
}

static void want(Work *w, HnValue *v, int port)
{
    Constant *c = v != NULL && port != HN_PORT_NONE ? constant(w, v) : NULL;
    if (c == NULL)
        return;
    c->in_new = c->in_new || hn_precision_converts(w->plan, port);
    c->in_old = c->in_old || (port >= 0 && !hn_precision_converts(w->plan, port));
}

typedef void (*OutputFn)(Work *w, HnGraph *g, guint k, int port);

static void each_output(Work *w, HnGraph *g, OutputFn fn)
{
    const int *port = g_hash_table_lookup(w->plan->outputs, g);
    for (guint k = 0; port != NULL && k < g->outputs->len; k++)
        if (port[k] >= 0)
            fn(w, g, k, port[k]);
    for (guint i = 0; i < g->inner->len; i++)
        each_output(w, g->inner->pdata[i], fn);
}

static void want_output(Work *w, HnGraph *g, guint k, int port)
{
    want(w, g->outputs->pdata[k], port);
}

static void convert_constant(Work *w, HnValue *v, Constant *c)
{
    if (!c->in_new) {
        w->log->weights_kept++;
        return;
    }
    HnTensor *t = converted(w, c->tensor);
    if (t == NULL)
        return;
    c->converted = v;
    if (c->in_old) {
        g_autofree char *stem = g_strdup_printf("%s_%s", v->name, hn_dtype_name(w->o->to));
        c->converted = hn_graph_new_value(v->graph, stem);
        hn_graph_add_weight(v->graph, c->converted, t);
        w->log->weights_twice++;
    } else if (v->weight != NULL) {
        hn_graph_add_weight(v->graph, v, t);
    } else {
        HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
        a->t = hn_tensor_ref(t);
        hn_node_set_attr(v->producer, a);
        (void)hn_op_bind(v->producer, NULL);
    }
    set_dtype(c->converted, hn_types_get(w->plan->types, v), w->o->to);
}

static void convert_constants(Work *w)
{
    for (guint i = 0; i < w->plan->nodes->len; i++) {
        const HnPortNode *pn = w->plan->nodes->pdata[i];
        for (guint k = 0; k < pn->node->in->len; k++)
            want(w, hn_node_in(pn->node, (int)k), pn->port[k]);
    }
    each_output(w, w->model->graph, want_output);
    for (guint i = 0; i < w->order->len && w->error == NULL; i++)
        convert_constant(w, w->order->pdata[i], g_hash_table_lookup(w->constants, w->order->pdata[i]));
}

/* --- casts ------------------------------------------------------------------------------------------------------- */

static HnDtype dtype_now(const Work *w, const HnValue *v)
{
    const HnType *t = v->id < w->plan->n_values ? hn_types_get(w->plan->types, v) : NULL;
    const int set = v->id < w->plan->n_values ? w->plan->of_value[v->id] : HN_PORT_NONE;
    if (hn_precision_converts(w->plan, set))
        return w->o->to;
    const Constant *c = g_hash_table_lookup(w->constants, v);
    if (c != NULL && c->converted == v)
        return w->o->to;
    return hn_type_dtype(t);
}

/* What a Cast was made of, where another Cast may begin there too: integers, or the half that is wanted. */
static HnValue *before_cast(const Work *w, HnValue *v, HnDtype to)
{
    const HnNode *n = v->producer;
    HnValue *u = n != NULL && n->op == &hn_op_cast ? hn_node_in(n, 0) : NULL;
    const HnDtype from = u != NULL ? dtype_now(w, u) : HN_UNDEFINED;
    return from == to || hn_dtype_in(from, HN_T_INTS | HN_T_BOOL) ? u : NULL;
}

/* A Cast of v in g to `to`; what it makes is called after `name`. */
static HnValue *add_cast(Work *w, HnGraph *g, HnValue *v, HnDtype to, HnDtype name)
{
    HnValue *u = before_cast(w, v, to);
    g_autofree char *stem = g_strdup_printf("%s_%s", v->name, hn_dtype_name(name));
    HnNode *n = hn_graph_add_node(g, -1, "Cast", NULL, NULL);
    HnValue *c = hn_graph_new_value(g, stem);
    hn_node_add_in(n, u != NULL ? u : v);
    hn_node_add_out(n, c);
    hn_node_set_int(n, "to", to);
    (void)hn_op_bind(n, NULL);
    set_dtype(c, hn_types_get(w->plan->types, v), to);
    if (v->graph == g)
        g_hash_table_insert(w->casts, v, c);
    g_ptr_array_add(w->made, n);
    return c;
}

/* v in the other type, for whoever reads it. */
static HnValue *cast_to(Work *w, HnValue *v, HnDtype to)
{
    HnValue *c = g_hash_table_lookup(w->casts, v), *u = before_cast(w, v, to);
    return c != NULL ? c : u != NULL && dtype_now(w, u) == to ? u : add_cast(w, v->graph, v, to, to);
}

/* The type that port `port` wants v in; HN_UNDEFINED: it is right as it is. */
static HnDtype wanted_type(const Work *w, const HnValue *v, int port)
{
    const HnDtype old = hn_precision_dtype(w->plan, v);
    const HnDtype wanted = hn_precision_converts(w->plan, port) ? w->o->to : old;
    return old != HN_UNDEFINED && dtype_now(w, v) != wanted ? wanted : HN_UNDEFINED;
}

/* v as port `port` wants it, where that takes no Cast; else NULL. */
static HnValue *as_constant(const Work *w, HnValue *v, int port)
{
    const Constant *c = g_hash_table_lookup(w->constants, v);
    if (c != NULL)
        return hn_precision_converts(w->plan, port) && c->converted != NULL ? c->converted : v;
    return wanted_type(w, v, port) == HN_UNDEFINED ? v : NULL;
}

static HnValue *as_wanted(Work *w, HnValue *v, int port)
{
    HnValue *c = as_constant(w, v, port);
    return c != NULL ? c : cast_to(w, v, wanted_type(w, v, port));
}

static void rewire_node(Work *w, const HnPortNode *pn)
{
    for (guint i = 0; i < pn->node->in->len; i++)
        if (pn->port[i] >= 0 && hn_node_in(pn->node, (int)i) != NULL)
            hn_node_set_in(pn->node, (int)i, as_wanted(w, hn_node_in(pn->node, (int)i), pn->port[i]));
}

/* A result of a graph is made there, under its name in the main graph. */
static void rewire_output(Work *w, HnGraph *g, guint k, int port)
{
    HnValue *v = g->outputs->pdata[k], *c = as_constant(w, v, port);
    const gboolean swaps = g->holder == NULL && v->graph == g && !v->is_input && c == NULL;
    const HnDtype to = wanted_type(w, v, port);
    if (c == NULL)
        c = v->graph == g ? g_hash_table_lookup(w->casts, v) : NULL;
    if (c == NULL)
        c = add_cast(w, g, v, to, swaps ? dtype_now(w, v) : to);
    if (c == v)
        return;
    hn_graph_set_output(g, k, c);
    if (swaps)
        hn_value_swap_names(v, c);
}

/* What a node makes because an attribute says so. */
static void set_made(Work *w, const HnPortNode *pn)
{
    HnNode *n = pn->node;
    HnValue *v = hn_node_out(n, 0);
    const int port = n->out->len > 0 ? pn->port[n->in->len] : HN_PORT_NONE;
    if (port < 0 || v == NULL)
        return;
    const HnDtype dtype = hn_precision_converts(w->plan, port) ? w->o->to : hn_precision_dtype(w->plan, v);
    if (n->op == &hn_op_cast) {
        hn_node_set_int(n, "to", dtype);
    } else if (n->op == &hn_op_eyelike) {
        hn_node_set_int(n, "dtype", dtype);
    } else if (n->op == &hn_op_constantofshape && dtype == w->o->to) {
        const HnAttr *value = hn_node_attr(n, "value");
        const int64_t one[] = { 1 };
        g_autoptr(HnTensor) zero = value == NULL ? hn_tensor_new(HN_F32, 1, one, NULL, &w->error) : NULL;
        HnTensor *t = value != NULL ? value->t : zero, *c = t != NULL ? converted(w, t) : NULL;
        if (c == NULL)
            return;
        HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
        a->t = hn_tensor_ref(c);
        hn_node_set_attr(n, a);
    } else {
        return;
    }
    (void)hn_op_bind(n, NULL);
}

/* --- sweeping ---------------------------------------------------------------------------------------------------- */

static void collect_casts(HnNode *n, gpointer data)
{
    if (n->op == &hn_op_cast)
        g_ptr_array_add(data, n);
}

/* The value that a Cast makes is the one that it takes: everybody reads that. */
static gboolean bypass(HnNode *n, HnValue *u, HnValue *v)
{
    if (!v->is_output) {
        hn_value_replace(v, u);
        return TRUE;
    }
    if (u->graph != v->graph || u->producer == NULL || u->is_output || n->graph->outer != NULL)
        return FALSE;
    hn_value_replace(v, u);
    hn_value_swap_names(u, v);
    if (v->type != NULL)
        hn_value_set_type(u, v->type);
    return TRUE;
}

static HnDtype stored(const HnTypes *types, const HnValue *v)
{
    return v != NULL ? hn_type_dtype(hn_types_get(types, v)) : HN_UNDEFINED;
}

/* Casts to the type that is there already, and those that nobody reads any more. */
static gboolean sweep(Work *w, GError **error)
{
    g_autoptr(GPtrArray) casts = g_ptr_array_new();
    g_autoptr(HnTypes) types = hn_precision_types(w->model, error);
    if (types == NULL)
        return FALSE;
    hn_graph_foreach_node(w->model->graph, collect_casts, casts);
    for (guint i = casts->len; i-- > 0;) {
        HnNode *n = casts->pdata[i];
        HnValue *u = hn_node_in(n, 0), *v = hn_node_out(n, 0);
        const HnAttr *to = hn_node_attr(n, "to");
        if (v == NULL || to == NULL)
            continue;
        if (stored(types, u) == (HnDtype)to->i && hn_dtype_in((HnDtype)to->i, HN_T_FLOATS))
            (void)bypass(n, u, v);
        if (!hn_value_is_read(v)) {
            hn_graph_remove_node(n->graph, n);
            w->log->casts_dropped++;
        }
    }
    return TRUE;
}

/* --- the model --------------------------------------------------------------------------------------------------- */

/* value_float and value_floats become value, which can be of any type. */
static void settle_constant(HnNode *n, gpointer data)
{
    Work *w = data;
    if (w->error != NULL || !hn_op_bind(n, NULL) || n->op != &hn_op_constant)
        return;
    const HnAttr *one = hn_node_attr(n, "value_float"), *many = hn_node_attr(n, "value_floats");
    HnTensor *t = NULL;
    if (one != NULL && one->kind == HN_ATTR_FLOAT)
        t = hn_tensor_scalar_f32(one->f);
    else if (many != NULL && many->kind == HN_ATTR_FLOATS &&
             (t = hn_tensor_new(HN_F32, 1, &many->n, w->o->budget, &w->error)) != NULL && many->n > 0)
        memcpy(t->data, many->floats, t->bytes);
    if (t == NULL)
        return;
    HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
    a->t = t;
    hn_node_remove_attr(n, one != NULL ? "value_float" : "value_floats");
    hn_node_set_attr(n, a);
    (void)hn_op_bind(n, NULL);
}

typedef struct {
    HnTypes *types;
    HnTypeMask from;
} Likes;

/* CastLike says by a value what Cast says by a number. */
static void settle_like(HnNode *n, gpointer data)
{
    const Likes *l = data;
    const HnDtype like = n->op == &hn_op_castlike ? stored(l->types, hn_node_in(n, 1)) : HN_UNDEFINED;
    if (!hn_dtype_in(like, l->from))
        return;
    HnValue *v = hn_node_in(n, 0), *out = hn_node_out(n, 0);
    if (v == NULL || out == NULL)
        return;
    n->op_type = hn_model_text(n->graph->model, "Cast");
    hn_node_set_in(n, 1, NULL);
    hn_ptrs_set_len(n->in, 1);
    hn_node_set_int(n, "to", like);
    (void)hn_op_bind(n, NULL);
}

static gboolean settle(Work *w, GError **error)
{
    g_autoptr(HnTypes) types = NULL;
    if (!hn_inline_functions(w->model, error))
        return FALSE;
    for (guint i = 0; i < w->model->functions->len; i++)
        hn_function_free(w->model->functions->pdata[i]);
    g_ptr_array_set_size(w->model->functions, 0);
    hn_graph_foreach_node(w->model->graph, settle_constant, w);
    if (w->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&w->error));
        return FALSE;
    }
    if ((types = hn_precision_types(w->model, error)) == NULL)
        return FALSE;
    Likes l = { types, w->o->to == HN_F32 ? HN_BIT(HN_F16) | HN_BIT(HN_BF16) : HN_BIT(HN_F32) };
    hn_graph_foreach_node(w->model->graph, settle_like, &l);
    return TRUE;
}

/* Infers everything; errors count. */
static gboolean infer_all(HnModel *m, HnTypes *types, GError **error)
{
    if (!hn_types_enter(types, m->graph, TRUE, error))
        return FALSE;
    for (guint i = 0; i < m->graph->nodes->len; i++)
        if (!hn_types_node(types, m->graph->nodes->pdata[i], 0, error))
            return FALSE;
    return TRUE;
}

/* Every record takes what it gets, and the results are what they are declared as. */
static gboolean check(HnModel *m, gboolean strict, GError **error)
{
    g_autoptr(HnTypes) types = hn_types_new(m);
    if (!hn_model_verify(m, error))
        return FALSE;
    if (!strict)
        return TRUE;
    if (!infer_all(m, types, error)) {
        g_prefix_error(error, "after the conversion: ");
        return FALSE;
    }
    for (guint k = 0; k < m->graph->outputs->len; k++) {
        const HnValue *v = m->graph->outputs->pdata[k];
        const HnDtype is = stored(types, v);
        if (!hn_type_is_tensor(v->type) || is == HN_UNDEFINED || v->type->dtype == is)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_TYPE, "after the conversion output '%s' is %s and is declared as %s",
                    v->name, hn_dtype_name(is), hn_dtype_name(v->type->dtype));
        return FALSE;
    }
    return TRUE;
}

/* Before IR version 4 a weight had to be an input. */
static void raise_ir(HnModel *m)
{
    for (guint i = 0; i < m->graph->weights->len; i++)
        if (!((const HnValue *)m->graph->weights->pdata[i])->is_input)
            m->ir_version = MAX(m->ir_version, 4);
}

static void set_types(Work *w, HnGraph *g)
{
    GHashTableIter it;
    gpointer value;
    g_hash_table_iter_init(&it, g->values);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        HnValue *v = value;
        if (v->id < w->plan->n_values && hn_precision_converts(w->plan, w->plan->of_value[v->id]))
            set_dtype(v, hn_types_get(w->plan->types, v), w->o->to);
    }
    for (guint i = 0; i < g->inner->len; i++)
        set_types(w, g->inner->pdata[i]);
}

static void count_edges(Work *w)
{
    const HnGraph *g = w->model->graph;
    const int *port = g_hash_table_lookup(w->plan->outputs, g);
    for (guint i = 0; i < g->inputs->len; i++)
        w->log->inputs += hn_precision_converts(w->plan, w->plan->of_value[((HnValue *)g->inputs->pdata[i])->id]);
    for (guint k = 0; k < g->outputs->len; k++)
        w->log->outputs += hn_precision_converts(w->plan, port[k]);
}

static void apply(Work *w)
{
    const GPtrArray *nodes = w->plan->nodes;
    for (guint i = 0; i < nodes->len; i++)
        note_node(w, nodes->pdata[i]);
    count_edges(w);
    convert_constants(w);
    set_types(w, w->model->graph);
    for (guint i = 0; i < nodes->len; i++)
        set_made(w, nodes->pdata[i]);
    each_output(w, w->model->graph, rewire_output);
    for (guint i = 0; i < nodes->len && w->error == NULL; i++)
        rewire_node(w, nodes->pdata[i]);
    w->log->casts_added = w->made->len;
}

typedef struct {
    HnDtype to;
    int64_t opset;
} Needed;

static void need(HnNode *n, gpointer data)
{
    Needed *x = data;
    const HnOp *op = hn_op_find(n->domain, n->op_type); /* nodes of a model that was just read are not bound yet */
    if (op == NULL || op->domain != NULL)
        return;
    for (const char *letter = op->in; *letter != '\0'; letter++) {
        const HnTypeMask ever = hn_op_types(op, *letter, HN_OPSET_MAX);
        const gboolean taken = hn_dtype_in(HN_F32, ever) && hn_dtype_in(x->to, ever);
        while (taken && x->opset < HN_OPSET_MAX && !hn_dtype_in(x->to, hn_op_types(op, *letter, x->opset)))
            x->opset++;
    }
}

int64_t hn_precision_opset(HnModel *m, HnDtype to)
{
    Needed x = { to, MAX(hn_model_opset(m, NULL), to == HN_BF16 ? BF16_OPSET : 1) };
    if (to != HN_F32)
        hn_graph_foreach_node(m->graph, need, &x);
    return x.opset;
}

static gboolean usable(const HnModel *m, HnDtype to, GError **error)
{
    const int64_t opset = hn_model_opset(m, NULL);
    if (to != HN_F16 && to != HN_BF16 && to != HN_F32) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "a model cannot be converted to %s, but to f16, bf16 and f32",
                    hn_dtype_name(to));
        return FALSE;
    }
    if (to != HN_BF16 || opset >= BF16_OPSET)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "opset %" G_GINT64_FORMAT " has no bf16: convert the model to opset %d or newer first", opset,
                BF16_OPSET);
    return FALSE;
}

gboolean hn_convert_precision(HnModel *m, const HnPrecisionOptions *o, HnPrecisionLog *log, GError **error)
{
    Work w = { .model = m, .o = o, .log = log };
    if (!usable(m, o->to, error) || !settle(&w, error))
        return FALSE;
    g_autoptr(HnTypes) before = hn_types_new(m);
    const gboolean strict = infer_all(m, before, NULL);
    g_autoptr(HnPrecisionPlan) plan = w.plan = hn_precision_plan(m, o, error);
    if (plan == NULL)
        return FALSE;
    g_autoptr(GHashTable) constants = w.constants = g_hash_table_new_full(NULL, NULL, NULL, constant_free);
    g_autoptr(GHashTable) tensors = w.tensors =
        g_hash_table_new_full(NULL, NULL, (GDestroyNotify)hn_tensor_unref, (GDestroyNotify)hn_tensor_unref);
    g_autoptr(GHashTable) casts = w.casts = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) made = w.made = g_ptr_array_new(), order = w.order = g_ptr_array_new();
    log->bytes_before = hn_model_weight_bytes(m);
    apply(&w);
    if (w.error != NULL) {
        g_propagate_error(error, w.error);
        return FALSE;
    }
    raise_ir(m);
    if (!check(m, FALSE, error) || !sweep(&w, error) || !check(m, strict, error))
        return FALSE;
    log->bytes_after = hn_model_weight_bytes(m);
    return TRUE;
}
