#include "ir/ir_text.h"

#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "ir/detach.h"

typedef struct {
    GString *out;
    int64_t max; /* elements, -1: all */
    int indent;  /* levels of two blanks */
} Print;

static void line(Print *p)
{
    g_string_append_c(p->out, '\n');
    for (int i = 0; i < p->indent; i++)
        g_string_append(p->out, "  ");
}

/* --- names, numbers, elements ------------------------------------------------------------------------------------ */

static void print_quoted(GString *out, const char *s, gsize len, char quote)
{
    g_string_append_c(out, quote);
    for (gsize i = 0; i < len; i++) {
        guchar c = (guchar)s[i];
        if (c == quote || c == '\\')
            g_string_append_printf(out, "\\%c", c);
        else if (c == '\n')
            g_string_append(out, "\\n");
        else if (c < 0x20 || c >= 0x7f)
            g_string_append_printf(out, "\\x%02x", c);
        else
            g_string_append_c(out, (char)c);
    }
    g_string_append_c(out, quote);
}

gboolean hn_text_is_bare(const char *name)
{
    static const char *const words[] = { "graph", "function", "opset", "ir" };
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(name, words[i]) == 0)
            return FALSE;
    if (*name == '\0' || *name == '\'')
        return FALSE;
    while (g_ascii_isalnum(*name) || (*name && strchr("_./'", *name)))
        name++;
    return *name == '\0';
}

static void print_name(GString *out, const char *name)
{
    if (!name)
        name = "";
    if (hn_text_is_bare(name))
        g_string_append(out, name);
    else
        print_quoted(out, name, strlen(name), '"');
}

static void print_real(GString *out, double v, gboolean wide)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (isnan(v)) {
        g_string_append(out, "nan");
        return;
    }
    if (isinf(v)) {
        g_string_append(out, v < 0 ? "-inf" : "inf");
        return;
    }
    g_string_append(out, g_ascii_formatd(text, sizeof text, wide ? "%.17g" : "%.9g", v));
    if (!strpbrk(text, ".e"))
        g_string_append(out, ".0");
}

static void print_bytes(GString *out, GBytes *b)
{
    gsize len = 0;
    const char *s = b ? g_bytes_get_data(b, &len) : NULL;
    print_quoted(out, s, len, '\'');
}

static void print_u64(GString *out, const HnTensor *t, int64_t i)
{
    uint64_t v;
    memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v); /* may be misaligned */
    g_string_append_printf(out, "%" G_GUINT64_FORMAT, v);
}

static void print_element(GString *out, const HnTensor *t, int64_t i)
{
    if (t->dtype == HN_STRING)
        print_bytes(out, hn_tensor_get_string(t, i));
    else if (t->dtype == HN_BOOL)
        g_string_append(out, hn_tensor_get_i64(t, i) ? "true" : "false");
    else if (t->dtype == HN_U64)
        print_u64(out, t, i);
    else if (hn_dtype_in(t->dtype, HN_T_INTS | HN_BIT(HN_U4) | HN_BIT(HN_I4) | HN_BIT(HN_U2) | HN_BIT(HN_I2)))
        g_string_append_printf(out, "%" G_GINT64_FORMAT, hn_tensor_get_i64(t, i));
    else
        print_real(out, hn_tensor_get_f64(t, i), t->dtype == HN_F64);
}

/* A complex number is two elements. */
static void print_complex(GString *out, const HnTensor *t, int64_t i)
{
    gboolean wide = t->dtype == HN_C128;
    double pair[2];
    float narrow[2];
    const char *at = (const char *)t->data + (size_t)i * (wide ? sizeof pair : sizeof narrow);
    memcpy(wide ? (void *)pair : narrow, at, wide ? sizeof pair : sizeof narrow);
    print_real(out, wide ? pair[0] : (double)narrow[0], wide);
    g_string_append_c(out, ',');
    print_real(out, wide ? pair[1] : (double)narrow[1], wide);
}

void hn_tensor_print(const HnTensor *t, int64_t max_elems, GString *out)
{
    g_autofree char *type = hn_tensor_describe(t);
    g_string_append(out, type);
    if (t->unloaded || (max_elems >= 0 && t->n > max_elems))
        return;
    g_string_append(out, "={");
    for (int64_t i = 0; i < t->n; i++) {
        if (i)
            g_string_append_c(out, ',');
        if (t->dtype == HN_C64 || t->dtype == HN_C128)
            print_complex(out, t, i);
        else
            print_element(out, t, i);
    }
    g_string_append_c(out, '}');
}

static void print_sparse(Print *p, const HnSparse *s)
{
    g_string_append(p->out, "sparse[");
    for (int i = 0; i < s->ndim; i++)
        g_string_append_printf(p->out, "%s%" G_GINT64_FORMAT, i ? "," : "", s->dims[i]);
    g_string_append(p->out, "](");
    hn_tensor_print(s->values, p->max, p->out);
    g_string_append_c(p->out, ',');
    hn_tensor_print(s->indices, p->max, p->out);
    g_string_append_c(p->out, ')');
}

/* --- attributes -------------------------------------------------------------------------------------------------- */

static void print_graph(Print *p, const HnGraph *g);

/* Element i of a plural kind or, with kind singular, the value. */
static void print_item(Print *p, const HnAttr *a, int64_t i)
{
    GString *out = p->out;
    switch (a->kind) {
    case HN_ATTR_UNDEFINED:
        g_string_append_c(out, '?');
        break;
    case HN_ATTR_FLOAT:
        print_real(out, a->f, FALSE);
        break;
    case HN_ATTR_FLOATS:
        print_real(out, a->floats[i], FALSE);
        break;
    case HN_ATTR_INT:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, a->i);
        break;
    case HN_ATTR_INTS:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, a->ints[i]);
        break;
    case HN_ATTR_STRING:
        print_bytes(out, a->s);
        break;
    case HN_ATTR_STRINGS:
        print_bytes(out, a->strings[i]);
        break;
    case HN_ATTR_TENSOR:
        hn_tensor_print(a->t, p->max, out);
        break;
    case HN_ATTR_TENSORS:
        hn_tensor_print(a->tensors[i], p->max, out);
        break;
    case HN_ATTR_SPARSE:
        print_sparse(p, a->sparse);
        break;
    case HN_ATTR_SPARSES:
        print_sparse(p, a->sparses[i]);
        break;
    case HN_ATTR_TYPE:
    case HN_ATTR_TYPES:
        g_string_append(out, "type(");
        hn_type_print(a->kind == HN_ATTR_TYPE ? a->type : a->types[i], out);
        g_string_append_c(out, ')');
        break;
    case HN_ATTR_GRAPH:
        print_graph(p, a->g);
        break;
    case HN_ATTR_GRAPHS:
        print_graph(p, a->graphs[i]);
        break;
    }
}

const char *const hn_text_kinds[HN_TEXT_KINDS] = {
    "?",       "float",   "int",    "string", "tensor",  "graph", "floats", "ints",
    "strings", "tensors", "graphs", "sparse", "sparses", "type",  "types",
};

static gboolean is_empty_single(const HnAttr *a)
{
    if (a->kind == HN_ATTR_TENSOR)
        return !a->t;
    return a->kind == HN_ATTR_GRAPH ? !a->g : a->kind == HN_ATTR_SPARSE && !a->sparse;
}

static void print_attr(Print *p, const HnAttr *a)
{
    print_name(p->out, a->name);
    g_string_append_c(p->out, '=');
    if (a->ref_attr && *a->ref_attr) {
        g_string_append_c(p->out, '@');
        print_name(p->out, a->ref_attr);
        g_string_append_printf(p->out, ":%s", (guint)a->kind < HN_TEXT_KINDS ? hn_text_kinds[a->kind] : "?");
    } else if (a->kind < HN_ATTR_FLOATS || a->kind == HN_ATTR_SPARSE || a->kind == HN_ATTR_TYPE) {
        if (is_empty_single(a))
            g_string_append_c(p->out, '?');
        else
            print_item(p, a, 0);
    } else {
        if (a->n == 0 && a->kind != HN_ATTR_INTS)
            g_string_append(p->out, hn_text_kinds[a->kind]);
        g_string_append_c(p->out, '[');
        for (int64_t i = 0; i < a->n; i++) {
            if (i)
                g_string_append_c(p->out, ',');
            print_item(p, a, i);
        }
        g_string_append_c(p->out, ']');
    }
}

/* --- nodes and graphs -------------------------------------------------------------------------------------------- */

static void print_value(Print *p, const HnValue *v)
{
    if (!v) {
        g_string_append_c(p->out, '-');
        return;
    }
    if (!hn_value_is_weight(v))
        g_string_append_c(p->out, '%');
    print_name(p->out, v->name);
}

static void print_typed(Print *p, const HnValue *v, gboolean typed)
{
    if (!v) {
        g_string_append_c(p->out, '-');
        return;
    }
    g_string_append_c(p->out, '%');
    print_name(p->out, v->name);
    if (typed && v->type) {
        g_string_append_c(p->out, ':');
        hn_type_print(v->type, p->out);
    }
}

static void print_weight(Print *p, const HnValue *v)
{
    print_name(p->out, v->name);
    g_string_append_c(p->out, ':');
    if (v->sparse)
        print_sparse(p, v->sparse);
    else
        hn_tensor_print(v->weight, p->max, p->out);
}

/* Weights of g that a direct input of a node names before any sub-graph does. */
static GHashTable *inline_weights(const HnGraph *g)
{
    GHashTable *found = g_hash_table_new(NULL, NULL), *hidden = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint j = 0; j < n->in->len; j++) {
            HnValue *v = n->in->pdata[j];
            if (v && v->graph == g && hn_value_is_weight(v) && !g_hash_table_contains(hidden, v))
                g_hash_table_add(found, v);
        }
        g_autoptr(GPtrArray) captures = hn_node_captures(n);
        for (guint j = 0; j < captures->len; j++)
            if (!g_hash_table_contains(found, captures->pdata[j]))
                g_hash_table_add(hidden, captures->pdata[j]);
    }
    g_hash_table_unref(hidden);
    return found;
}

static void print_op(Print *p, const char *domain, const char *op_type)
{
    if (domain && *domain) {
        print_name(p->out, domain);
        g_string_append(p->out, "::");
    }
    print_name(p->out, op_type);
}

/* inlined: weights still to be declared */
static void print_node(Print *p, const HnNode *n, GHashTable *inlined)
{
    line(p);
    for (guint i = 0; i < n->out->len; i++) {
        const HnValue *v = n->out->pdata[i];
        if (i)
            g_string_append(p->out, ", ");
        print_typed(p, v, v && !v->is_output);
    }
    if (n->out->len == 0)
        g_string_append_c(p->out, '-');
    g_string_append(p->out, " = ");
    print_op(p, n->domain, n->op_type);
    if (n->version > 0 && n->version != hn_graph_opset(n->graph, n->domain))
        g_string_append_printf(p->out, "<%" PRId64 ">", n->version);
    g_string_append_c(p->out, '(');
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        if (i)
            g_string_append(p->out, ", ");
        if (v && g_hash_table_remove(inlined, v))
            print_weight(p, v);
        else
            print_value(p, v);
    }
    g_string_append_c(p->out, ')');
    for (guint i = 0; i < n->attrs->len; i++) {
        g_string_append_c(p->out, ' ');
        print_attr(p, n->attrs->pdata[i]);
    }
    if (n->name && *n->name) {
        g_string_append(p->out, " @");
        print_quoted(p->out, n->name, strlen(n->name), '\'');
    }
}

/* A type is printed where the value first appears: inputs, then outputs, then nodes. */
static void print_params(Print *p, const HnGraph *g, const GPtrArray *values)
{
    g_string_append_c(p->out, '(');
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        if (i)
            g_string_append(p->out, ", ");
        print_typed(p, v, v->graph == g && (values == g->inputs || !v->is_input));
    }
    g_string_append_c(p->out, ')');
}

static void print_body(Print *p, const HnGraph *g)
{
    p->indent++;
    g_autoptr(GHashTable) inlined = inline_weights(g);
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        if (!g_hash_table_contains(inlined, v)) {
            line(p);
            print_weight(p, v);
        }
    }
    for (guint i = 0; i < g->nodes->len; i++)
        print_node(p, g->nodes->pdata[i], inlined);
    p->indent--;
    line(p);
    g_string_append_c(p->out, '}');
}

static void print_graph(Print *p, const HnGraph *g)
{
    g_string_append(p->out, "graph");
    if (g->name && *g->name) {
        g_string_append_c(p->out, ' ');
        print_name(p->out, g->name);
    }
    print_params(p, g, g->inputs);
    g_string_append(p->out, " -> ");
    print_params(p, g, g->outputs);
    g_string_append(p->out, " {");
    print_body(p, g);
}

static void print_opsets(Print *p, const GArray *opsets)
{
    for (guint i = 0; i < opsets->len; i++) {
        const HnOpset *o = &g_array_index(opsets, HnOpset, i);
        if (p->indent)
            line(p);
        g_string_append(p->out, "opset ");
        if (o->domain && *o->domain) {
            if (hn_text_is_number(o->domain)) /* bare it would be the version */
                print_quoted(p->out, o->domain, strlen(o->domain), '"');
            else
                print_name(p->out, o->domain);
            g_string_append_c(p->out, ' ');
        }
        g_string_append_printf(p->out, "%" G_GINT64_FORMAT, o->version);
        if (!p->indent)
            g_string_append_c(p->out, '\n');
    }
}

static void print_function(Print *p, const HnFunction *f)
{
    g_string_append(p->out, "function ");
    print_op(p, f->domain, f->name);
    print_params(p, f->body, f->body->inputs);
    g_string_append(p->out, " -> ");
    print_params(p, f->body, f->body->outputs);
    for (guint i = 0; i < f->attrs->len; i++) {
        g_string_append_c(p->out, ' ');
        print_name(p->out, f->attrs->pdata[i]);
    }
    for (guint i = 0; i < f->attr_defaults->len; i++) {
        g_string_append_c(p->out, ' ');
        print_attr(p, f->attr_defaults->pdata[i]);
    }
    g_string_append(p->out, " {");
    p->indent++;
    print_opsets(p, f->opsets);
    p->indent--;
    print_body(p, f->body);
    g_string_append_c(p->out, '\n');
}

void hn_graph_print(const HnGraph *g, int64_t max_elems, GString *out)
{
    Print p = { out, max_elems, 0 };
    print_graph(&p, g);
    g_string_append_c(out, '\n');
}

void hn_model_print(const HnModel *m, int64_t max_elems, GString *out)
{
    Print p = { out, max_elems, 0 };
    if (m->has_ir_version)
        g_string_append_printf(out, "ir %" G_GINT64_FORMAT "\n", m->ir_version);
    print_opsets(&p, m->opsets);
    for (guint i = 0; i < m->functions->len; i++)
        print_function(&p, m->functions->pdata[i]);
    print_graph(&p, m->graph);
    g_string_append_c(out, '\n');
}
