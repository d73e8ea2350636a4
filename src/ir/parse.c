#include <string.h>

#include "base/error.h"
#include "ir/lexer.h"
#include "ir/detach.h"

typedef struct {
    HnLexer x;
    HnModel *m;
} Parse;

static gboolean parse_graph(Parse *p, HnGraph *g);
static gboolean parse_body(Parse *p, HnGraph *g, gboolean braces);

/* --- attributes -------------------------------------------------------------------------------------------------- */

static HnAttr *parse_list(Parse *p, HnNode *n, const char *name, HnAttrKind kind);

static gboolean parse_number(HnLexer *x, HnAttr *a, gboolean real)
{
    double v;
    if (!real)
        return hn_lex_int(x, &a->i);
    if (!hn_lex_real(x, &v))
        return FALSE;
    a->kind = HN_ATTR_FLOAT;
    a->f = (float)v;
    return TRUE;
}

/* @alpha:float */
static gboolean parse_reference(HnLexer *x, HnAttr *a)
{
    if (!(a->ref_attr = hn_lex_name(x)) || !hn_lex_expect(x, ":"))
        return FALSE;
    for (int kind = 0; kind < HN_TEXT_KINDS; kind++)
        if (hn_lex_word(x, hn_text_kinds[kind]) || (kind == 0 && hn_lex_accept(x, "?"))) {
            a->kind = (HnAttrKind)kind;
            return TRUE;
        }
    return hn_lex_fail(x, "attribute '%s' refers to an unknown kind", a->name);
}

static gboolean parse_subgraph(Parse *p, HnNode *n, HnAttr *a)
{
    if (p->x.depth >= HN_TEXT_DEPTH)
        return hn_lex_fail(&p->x, "graphs are nested too deep");
    a->kind = HN_ATTR_GRAPH;
    a->g = hn_graph_new(p->m, n->graph, NULL);
    p->x.depth++;
    gboolean good = parse_graph(p, a->g);
    p->x.depth--;
    return good;
}

/* One value that is no list, into a fresh attribute of kind INT. */
static gboolean parse_single(Parse *p, HnNode *n, HnAttr *a)
{
    HnLexer *x = &p->x;
    gboolean real;
    if (hn_lex_at_number(x, &real))
        return parse_number(x, a, real);
    if (hn_lex_peek(x, '\'')) {
        a->s = hn_lex_string(x);
        a->kind = a->s ? HN_ATTR_STRING : HN_ATTR_INT;
        return a->s != NULL;
    }
    if (hn_lex_accept(x, "?")) {
        a->kind = HN_ATTR_UNDEFINED;
        return TRUE;
    }
    if (hn_lex_accept(x, "@"))
        return parse_reference(x, a);
    if (hn_lex_word(x, "graph"))
        return parse_subgraph(p, n, a);
    if (hn_lex_accept(x, "type(")) {
        a->type = hn_lex_type(x);
        a->kind = HN_ATTR_TYPE;
        return a->type && hn_lex_expect(x, ")");
    }
    if (hn_lex_accept(x, "sparse")) {
        a->sparse = hn_lex_sparse(x, a->name);
        a->kind = HN_ATTR_SPARSE;
        return a->sparse != NULL;
    }
    a->t = hn_lex_tensor(x, a->name);
    a->kind = HN_ATTR_TENSOR;
    return a->t != NULL;
}

static void attr_free(gpointer a)
{
    hn_attr_free(a);
}

/* The plural of a single kind; UNDEFINED: it has none. */
static HnAttrKind plural(HnAttrKind kind)
{
    switch (kind) {
    case HN_ATTR_SPARSE:
        return HN_ATTR_SPARSES;
    case HN_ATTR_TYPE:
        return HN_ATTR_TYPES;
    default:
        return kind >= HN_ATTR_FLOAT && kind <= HN_ATTR_GRAPH ? (HnAttrKind)(kind + 5) : HN_ATTR_UNDEFINED;
    }
}

/* Moves what the items hold into one attribute. */
static HnAttr *merge(Parse *p, const char *name, HnAttrKind kind, GPtrArray *items)
{
    gsize n = items->len;
    for (gsize i = 0; i < n; i++) {
        const HnAttr *a = items->pdata[i];
        if (plural(a->kind) != kind && !(kind == HN_ATTR_FLOATS && a->kind == HN_ATTR_INT)) {
            hn_lex_fail(&p->x, "the list '%s' mixes kinds", name);
            return NULL;
        }
    }
    HnAttr *list = hn_attr_new(name, kind);
    list->n = (int64_t)n;
    if (n == 0)
        return list;
    if (kind == HN_ATTR_FLOATS)
        list->floats = g_new(float, n);
    else if (kind == HN_ATTR_INTS)
        list->ints = g_new(int64_t, n);
    else
        list->strings = g_new0(GBytes *, n); /* all others are pointers as well */
    for (gsize i = 0; i < n; i++) {
        HnAttr *a = items->pdata[i];
        if (kind == HN_ATTR_FLOATS) {
            list->floats[i] = a->kind == HN_ATTR_INT ? (float)a->i : a->f;
        } else if (kind == HN_ATTR_INTS) {
            list->ints[i] = a->i;
        } else {
            memcpy(&list->strings[i], &a->s, sizeof a->s);
            a->kind = HN_ATTR_UNDEFINED;
        }
    }
    return list;
}

/* Behind the "[". kind: UNDEFINED: that of the items. */
static HnAttr *parse_list(Parse *p, HnNode *n, const char *name, HnAttrKind kind)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(attr_free);
    while (!hn_lex_accept(&p->x, "]")) {
        if (items->len > 0 && !hn_lex_expect(&p->x, ","))
            return NULL;
        HnAttr *a = hn_attr_new(name, HN_ATTR_INT);
        g_ptr_array_add(items, a);
        if (!parse_single(p, n, a))
            return NULL;
        HnAttrKind k = plural(a->kind);
        if (k == HN_ATTR_UNDEFINED || a->ref_attr) {
            hn_lex_fail(&p->x, "the list '%s' holds what no list can", name);
            return NULL;
        }
        if (kind == HN_ATTR_UNDEFINED || (kind == HN_ATTR_INTS && k == HN_ATTR_FLOATS))
            kind = k;
    }
    return merge(p, name, kind == HN_ATTR_UNDEFINED ? HN_ATTR_INTS : kind, items);
}

/* Behind the "=". */
static HnAttr *parse_attr_value(Parse *p, HnNode *n, const char *name)
{
    if (hn_lex_accept(&p->x, "["))
        return parse_list(p, n, name, HN_ATTR_UNDEFINED);
    for (int kind = HN_ATTR_FLOATS; kind < HN_TEXT_KINDS; kind++) {
        g_autofree char *start = g_strconcat(hn_text_kinds[kind], "[", NULL);
        if (kind != HN_ATTR_SPARSE && kind != HN_ATTR_TYPE && hn_lex_accept(&p->x, start))
            return parse_list(p, n, name, (HnAttrKind)kind);
    }
    HnAttr *a = hn_attr_new(name, HN_ATTR_INT);
    if (parse_single(p, n, a))
        return a;
    hn_attr_free(a);
    return NULL;
}

/* name=value ... as long as that is what comes. */
static gboolean parse_attrs(Parse *p, HnNode *n)
{
    for (;;) {
        hn_lex_blank(&p->x);
        const char *before = p->x.s;
        if (*before != '"' && *before != '_' && !g_ascii_isalnum(*before))
            return TRUE;
        g_autofree char *name = hn_lex_name(&p->x);
        if (!name)
            return FALSE;
        if (!hn_lex_accept(&p->x, "=")) {
            p->x.s = before;
            return TRUE;
        }
        if (hn_node_attr(n, name))
            return hn_lex_fail(&p->x, "attribute '%s' is given twice", name);
        HnAttr *a = parse_attr_value(p, n, name);
        if (!a)
            return FALSE;
        hn_node_set_attr(n, a);
    }
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static HnValue *value_of(HnGraph *g, const char *name)
{
    HnValue *v = hn_graph_find(g, name);
    return v ? v : hn_graph_value(g, name);
}

/* :type, if that comes next; *t stays NULL otherwise. */
static gboolean parse_type(Parse *p, HnType **t)
{
    if (!hn_lex_peek(&p->x, ':') || p->x.s[1] == ':')
        return TRUE;
    p->x.s++;
    *t = hn_lex_type(&p->x);
    return *t != NULL;
}

/* Behind the ":" of a weight of g. */
static HnValue *parse_weight(Parse *p, HnGraph *g, const char *name)
{
    HnValue *v = hn_graph_value(g, name);
    if (hn_value_is_weight(v)) {
        hn_lex_fail(&p->x, "weight '%s' is declared twice", name);
        return NULL;
    }
    if (hn_lex_accept(&p->x, "sparse")) {
        HnSparse *s = hn_lex_sparse(&p->x, name);
        if (!s)
            return NULL;
        hn_graph_add_sparse(g, v, s);
        return v;
    }
    g_autoptr(HnTensor) t = hn_lex_tensor(&p->x, name);
    if (!t)
        return NULL;
    hn_graph_add_weight(g, v, t);
    if (!v->type) {
        g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->ndim, t->dims);
        hn_value_set_type(v, type);
    }
    return v;
}

static gboolean parse_arg(Parse *p, HnNode *n)
{
    HnLexer *x = &p->x;
    g_autoptr(HnType) type = NULL;
    if (hn_lex_accept(x, "-")) {
        hn_node_add_in(n, NULL);
        return TRUE;
    }
    gboolean weight = !hn_lex_accept(x, "%");
    g_autofree char *name = hn_lex_name(x);
    HnValue *v;
    if (!name)
        return FALSE;
    if (weight && hn_lex_accept(x, ":")) {
        v = parse_weight(p, n->graph, name);
        if (!v)
            return FALSE;
    } else if (weight) {
        v = hn_graph_find(n->graph, name);
        if (!v)
            return hn_lex_fail(x, "weight '%s' is used before it is declared", name);
    } else {
        v = value_of(n->graph, name);
        if (!parse_type(p, &type))
            return FALSE;
        if (type)
            hn_value_set_type(v, type);
    }
    hn_node_add_in(n, v);
    return TRUE;
}

/* %name[:type], "-" is NULL. Nothing but the name is looked at before the graph's body is known. */
typedef struct {
    char *name;
    HnType *type;
} Slot;

static void slot_clear(gpointer slot)
{
    g_free(((Slot *)slot)->name);
    hn_type_unref(((Slot *)slot)->type);
}

static GArray *slots_new(void)
{
    GArray *a = g_array_new(FALSE, TRUE, sizeof(Slot));
    g_array_set_clear_func(a, slot_clear);
    return a;
}

static gboolean parse_slot(Parse *p, GArray *slots)
{
    Slot s = { NULL, NULL };
    if (!hn_lex_accept(&p->x, "-") &&
        (!hn_lex_expect(&p->x, "%") || !(s.name = hn_lex_name(&p->x)) || !parse_type(p, &s.type))) {
        slot_clear(&s);
        return FALSE;
    }
    g_array_append_val(slots, s);
    return TRUE;
}

/* Behind "(". */
static gboolean parse_slots(Parse *p, GArray *slots)
{
    while (!hn_lex_accept(&p->x, ")"))
        if ((slots->len > 0 && !hn_lex_expect(&p->x, ",")) || !parse_slot(p, slots))
            return FALSE;
    return TRUE;
}

static void declare(HnGraph *g, HnValue *v, HnType *type)
{
    if (!type)
        return;
    hn_value_set_type(v, type);
    if (!v->has_info && v->graph == g) {
        v->has_info = TRUE;
        g_ptr_array_add(g->infos, v);
    }
}

/* domain::Name or Name */
static gboolean parse_op(Parse *p, char **domain, char **name)
{
    g_autofree char *first = hn_lex_name(&p->x);
    if (!first)
        return FALSE;
    if (!hn_lex_accept(&p->x, "::")) {
        *name = g_steal_pointer(&first);
        return TRUE;
    }
    *name = hn_lex_name(&p->x);
    if (*name)
        *domain = g_steal_pointer(&first);
    return *name != NULL;
}

static gboolean parse_node(Parse *p, HnGraph *g)
{
    HnLexer *x = &p->x;
    g_autoptr(GArray) outs = slots_new();
    g_autofree char *domain = NULL, *op = NULL;
    int64_t version = 0;
    do {
        if (!parse_slot(p, outs))
            return FALSE;
    } while (hn_lex_accept(x, ","));
    if (!hn_lex_expect(x, "=") || !parse_op(p, &domain, &op))
        return FALSE;
    if (hn_lex_accept(x, "<") && (!hn_lex_int(x, &version) || !hn_lex_expect(x, ">")))
        return FALSE;
    if (!hn_lex_expect(x, "("))
        return FALSE;
    HnNode *n = hn_graph_add_node(g, -1, op, domain, NULL);
    if (version > 0)
        n->version = version;
    while (!hn_lex_accept(x, ")"))
        if ((n->in->len > 0 && !hn_lex_expect(x, ",")) || !parse_arg(p, n))
            return FALSE;
    for (guint i = 0; i < outs->len; i++) {
        const Slot *s = &g_array_index(outs, Slot, i);
        if (outs->len == 1 && !s->name)
            break; /* "- = Op()": no outputs at all */
        HnValue *v = s->name ? hn_graph_value(g, s->name) : NULL;
        hn_node_add_out(n, v);
        if (v && s->type)
            declare(g, v, s->type);
    }
    if (!parse_attrs(p, n))
        return FALSE;
    if (hn_lex_accept(x, "@")) {
        g_autoptr(GBytes) name = hn_lex_string(x);
        gsize len;
        if (!name)
            return FALSE;
        const char *text = g_bytes_get_data(name, &len);
        n->name = g_strndup(text ? text : "", len);
    }
    return TRUE;
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

/* Up to "}" (which is eaten) or to the end of the text. */
static gboolean parse_body(Parse *p, HnGraph *g, gboolean braces)
{
    HnLexer *x = &p->x;
    for (;;) {
        if (braces && hn_lex_accept(x, "}"))
            return TRUE;
        hn_lex_blank(x);
        if (!braces && *x->s == '\0')
            return TRUE;
        if (*x->s == '%' || *x->s == '-') {
            if (!parse_node(p, g))
                return FALSE;
            continue;
        }
        g_autofree char *name = hn_lex_name(x);
        if (!name || !hn_lex_expect(x, ":") || !parse_weight(p, g, name))
            return FALSE;
    }
}

/* Outputs listed among the graph's own values have no info of their own. */
static void drop_info(HnGraph *g, HnValue *v)
{
    if (v->has_info && v->graph == g) {
        v->has_info = FALSE;
        hn_array_drop(g->infos, v);
    }
}

/* (...) -> (...): the inputs are added, the outputs left to finish_outputs(). */
static gboolean parse_signature(Parse *p, HnGraph *g, GArray *outs)
{
    g_autoptr(GArray) ins = slots_new();
    if (!hn_lex_expect(&p->x, "(") || !parse_slots(p, ins) || !hn_lex_expect(&p->x, "->") ||
        !hn_lex_expect(&p->x, "(") || !parse_slots(p, outs))
        return FALSE;
    for (guint i = 0; i < ins->len + outs->len; i++) {
        const Slot *s = &g_array_index(i < ins->len ? ins : outs, Slot, i < ins->len ? i : i - ins->len);
        if (!s->name)
            return hn_lex_fail(&p->x, "an input or output of a graph has no name");
        if (i >= ins->len)
            continue;
        HnValue *v = hn_graph_value(g, s->name);
        hn_graph_add_input(g, v);
        if (s->type)
            hn_value_set_type(v, s->type);
    }
    return TRUE;
}

static void finish_outputs(HnGraph *g, const GArray *outs)
{
    for (guint i = 0; i < outs->len; i++) {
        const Slot *s = &g_array_index(outs, Slot, i);
        HnValue *v = value_of(g, s->name);
        hn_graph_add_output(g, v);
        if (s->type)
            hn_value_set_type(v, s->type);
        drop_info(g, v);
    }
}

/* Behind the word graph. */
static gboolean parse_graph(Parse *p, HnGraph *g)
{
    g_autoptr(GArray) outs = slots_new();
    if (!hn_lex_peek(&p->x, '(')) {
        char *name = hn_lex_name(&p->x);
        if (!name)
            return FALSE;
        g_free(g->name);
        g->name = name;
    }
    if (!parse_signature(p, g, outs) || !hn_lex_expect(&p->x, "{") || !parse_body(p, g, TRUE))
        return FALSE;
    finish_outputs(g, outs);
    return TRUE;
}

/* Behind the word: opset [domain] version, more than one of them where they follow. */
static gboolean parse_opset(Parse *p, GArray *opsets)
{
    int64_t version;
    gboolean real;
    g_autofree char *domain = NULL;
    if (!hn_lex_at_number(&p->x, &real) && !(domain = hn_lex_name(&p->x)))
        return FALSE;
    if (!hn_lex_int(&p->x, &version))
        return FALSE;
    HnOpset o = { .domain = domain ? g_steal_pointer(&domain) : g_strdup(""), .version = version };
    g_array_append_val(opsets, o);
    return TRUE;
}

static void add_name(GPtrArray *names, const HnValue *v)
{
    g_ptr_array_add(names, g_strdup(v->name));
}

static gboolean parse_function_attrs(Parse *p, HnFunction *f)
{
    while (!hn_lex_accept(&p->x, "{")) {
        g_autofree char *name = hn_lex_name(&p->x);
        if (!name)
            return FALSE;
        if (!hn_lex_accept(&p->x, "=")) {
            g_ptr_array_add(f->attrs, g_steal_pointer(&name));
            continue;
        }
        HnNode holder = { .graph = f->body };
        HnAttr *a = parse_attr_value(p, &holder, name);
        if (!a)
            return FALSE;
        HnGraph *const *graphs;
        if (hn_attr_graphs(a, &graphs) > 0) {
            hn_attr_free(a);
            return hn_lex_fail(&p->x, "attribute '%s' of a function has a graph as its default", name);
        }
        g_ptr_array_add(f->attr_defaults, a);
    }
    return TRUE;
}

/* Behind the word function. */
static gboolean parse_function(Parse *p)
{
    g_autofree char *domain = NULL, *name = NULL;
    g_autoptr(GArray) outs = slots_new();
    if (!parse_op(p, &domain, &name))
        return FALSE;
    HnFunction *f = hn_function_new(p->m, domain, name);
    if (!parse_signature(p, f->body, outs) || !parse_function_attrs(p, f))
        return FALSE;
    while (hn_lex_word(&p->x, "opset"))
        if (!parse_opset(p, f->opsets))
            return FALSE;
    if (!parse_body(p, f->body, TRUE))
        return FALSE;
    finish_outputs(f->body, outs);
    for (guint i = 0; i < f->body->inputs->len; i++)
        add_name(f->inputs, f->body->inputs->pdata[i]);
    for (guint i = 0; i < f->body->outputs->len; i++)
        add_name(f->outputs, f->body->outputs->pdata[i]);
    return TRUE;
}

static int by_id(gconstpointer a, gconstpointer b)
{
    const HnValue *x = *(HnValue *const *)a, *y = *(HnValue *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Inputs are what nothing produces, in the order of first use; outputs what nobody uses, in the order of the nodes. */
static void finish_short(HnGraph *g)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new();
    GHashTableIter it;
    gpointer p;
    g_hash_table_iter_init(&it, g->values);
    while (g_hash_table_iter_next(&it, NULL, &p)) {
        const HnValue *v = p;
        if (!v->producer && !hn_value_is_weight(v) && v->users->len > 0)
            g_ptr_array_add(in, p);
    }
    g_ptr_array_sort(in, by_id);
    for (guint i = 0; i < in->len; i++)
        hn_graph_add_input(g, in->pdata[i]);
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint j = 0; j < n->out->len; j++) {
            HnValue *v = n->out->pdata[j];
            if (!v || hn_value_is_read(v))
                continue;
            hn_graph_add_output(g, v);
            drop_info(g, v);
        }
    }
}

static gboolean parse_model(Parse *p)
{
    HnLexer *x = &p->x;
    for (;;) {
        if (hn_lex_word(x, "opset")) {
            if (!parse_opset(p, p->m->opsets))
                return FALSE;
        } else if (hn_lex_word(x, "ir")) {
            if (!hn_lex_int(x, &p->m->ir_version))
                return FALSE;
        } else if (hn_lex_word(x, "function")) {
            if (!parse_function(p))
                return FALSE;
        } else {
            break;
        }
    }
    if (!hn_lex_word(x, "graph")) {
        if (!parse_body(p, p->m->graph, FALSE))
            return FALSE;
        finish_short(p->m->graph);
        return TRUE;
    }
    if (!parse_graph(p, p->m->graph))
        return FALSE;
    hn_lex_blank(x);
    return *x->s == '\0' || hn_lex_fail(x, "there is more text behind the graph");
}

HnModel *hn_model_parse(const char *text, HnBudget *budget, GError **error)
{
    g_autoptr(HnModel) m = hn_model_new();
    Parse p = { .x = { .start = text, .s = text, .budget = budget }, .m = m };
    if (parse_model(&p))
        return g_steal_pointer(&m);
    g_propagate_error(error, p.x.error);
    return NULL;
}

gboolean hn_node_parse_attrs(HnNode *n, const char *text, HnBudget *budget, GError **error)
{
    Parse p = { .x = { .start = text, .s = text, .budget = budget }, .m = n->graph->model };
    if (parse_attrs(&p, n)) {
        hn_lex_blank(&p.x);
        if (*p.x.s == '\0' || hn_lex_fail(&p.x, "expected an attribute but found '%.20s'", p.x.s))
            return TRUE;
    }
    g_propagate_error(error, p.x.error);
    return FALSE;
}
