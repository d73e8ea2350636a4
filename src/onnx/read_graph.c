#include "onnx/reader.h"

#include <string.h>

#include "base/error.h"
#include "onnx/writer.h"

#define FEW 16 /* names that are compared with each other without a table */
#define BAD(error, code, ...) (g_set_error(error, HN_ERROR, code, __VA_ARGS__), FALSE)

static const char *graph_name(const HnGraph *g)
{
    return g->name ? g->name : "";
}

/* --- values ------------------------------------------------------------------------------------------------------ */

/* Would writing v in this role give these bytes? */
static gboolean writes_as(const HnGraph *g, const char *role, const HnValue *v, GBytes *bytes)
{
    GBytes *variant = hn_graph_variant(g, role, v);
    if (variant)
        return g_bytes_equal(variant, bytes);
    HnOnnxWriter w;
    hn_onnx_writer_init(&w, HN_EXTERNAL_INLINE, NULL);
    g_autoptr(GBytes) own = hn_onnx_pack(&hn_onnx_put_info(&w, v)->base, NULL, NULL);
    hn_onnx_writer_clear(&w);
    return own && g_bytes_equal(own, bytes);
}

/* A value may be declared more than once: as input and as output, say. The first declaration is the value's own,
 * another that differs from it is kept as bytes. */
static gboolean read_info(HnOnnxReader *r, Onnx__ValueInfoProto *p, const char *role, HnGraph *g, HnValue *v,
                          GError **error)
{
    if (v->graph != g || !g_hash_table_add(r->declared, v)) {
        g_autoptr(GBytes) bytes = hn_onnx_repack(r, &p->base, error);
        if (!bytes)
            return FALSE;
        if (!writes_as(g, role, v, bytes))
            hn_graph_set_variant(g, role, v, bytes);
        return TRUE;
    }
    p->name = NULL;
    v->doc = hn_onnx_take(&p->doc_string);
    v->metadata = hn_onnx_take_pairs(p->metadata_props, &p->n_metadata_props);
    if (p->type) {
        g_autoptr(HnType) type = hn_onnx_read_type(r, p->type, error);
        if (!type) {
            g_prefix_error(error, "value '%s': ", v->name);
            return FALSE;
        }
        hn_value_set_type(v, type);
        p->type = NULL;
    }
    return hn_onnx_rest(r, &p->base, &v->unknown, error);
}

static gboolean read_inputs(HnOnnxReader *r, Onnx__GraphProto *p, HnGraph *g, GError **error)
{
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = p->input[i]->name;
        if (!name || !*name)
            return BAD(error, HN_ERROR_FORMAT, "an input of graph '%s' has no name", graph_name(g));
        HnValue *v = hn_graph_value(g, name);
        if (v->is_input)
            return BAD(error, HN_ERROR_GRAPH, "two inputs of graph '%s' are named '%s'", graph_name(g), name);
        hn_graph_add_input(g, v);
        if (!read_info(r, p->input[i], "input", g, v, error))
            return FALSE;
    }
    p->n_input = 0;
    return TRUE;
}

/* The value that a new initializer fills; NULL with an error where that cannot be. */
static HnValue *weight_value(HnGraph *g, const char *name, GError **error)
{
    if (!name || !*name) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "an initializer of graph '%s' has no name", graph_name(g));
        return NULL;
    }
    HnValue *v = hn_graph_value(g, name);
    if (!hn_value_is_weight(v))
        return v;
    g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "two initializers of graph '%s' are named '%s'", graph_name(g), name);
    return NULL;
}

static gboolean read_weights(HnOnnxReader *r, Onnx__GraphProto *p, HnGraph *g, GError **error)
{
    for (size_t i = 0; i < p->n_initializer; i++) {
        HnValue *v = weight_value(g, p->initializer[i]->name, error);
        g_autoptr(HnTensor) t = v ? hn_onnx_read_tensor(r, p->initializer[i], FALSE, error) : NULL;
        if (!t)
            return FALSE;
        hn_graph_add_weight(g, v, t);
    }
    p->n_initializer = 0;
    for (size_t i = 0; i < p->n_sparse_initializer; i++) {
        Onnx__TensorProto *values = p->sparse_initializer[i]->values;
        HnValue *v = weight_value(g, values ? values->name : NULL, error);
        HnSparse *s = v ? hn_onnx_read_sparse(r, p->sparse_initializer[i], error) : NULL;
        if (!s) {
            if (v)
                g_prefix_error(error, "sparse initializer '%s': ", v->name);
            return FALSE;
        }
        hn_graph_add_sparse(g, v, s);
    }
    p->n_sparse_initializer = 0;
    return TRUE;
}

static gboolean read_outputs(HnOnnxReader *r, Onnx__GraphProto *p, HnGraph *g, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (size_t i = 0; i < p->n_output; i++) {
        const char *name = p->output[i]->name;
        if (!name || !*name)
            return BAD(error, HN_ERROR_FORMAT, "an output of graph '%s' has no name", graph_name(g));
        HnValue *v = hn_graph_find(g, name);
        if (!v)
            v = hn_graph_value(g, name); /* that nothing produces: verification says so */
        hn_graph_add_output(g, v);
        if (g_hash_table_add(seen, v)) {
            if (!read_info(r, p->output[i], "output", g, v, error))
                return FALSE;
            continue;
        }
        g_autoptr(GBytes) bytes = hn_onnx_repack(r, &p->output[i]->base, error);
        if (!bytes)
            return FALSE;
        if (!writes_as(g, "output", v, bytes))
            return BAD(error, HN_ERROR_GRAPH, "output '%s' of graph '%s' is declared twice, differently", v->name,
                       graph_name(g));
    }
    p->n_output = 0;
    return TRUE;
}

/* Types of values between; those of values that do not exist, which some exporters leave behind, stay in the rest. */
static gboolean read_value_infos(HnOnnxReader *r, Onnx__ValueInfoProto **infos, size_t *n, HnGraph *g, GError **error)
{
    size_t odd = 0;
    for (size_t i = 0; i < *n; i++) {
        HnValue *v = infos[i]->name ? g_hash_table_lookup(g->values, infos[i]->name) : NULL;
        if (!v || v->has_info) {
            infos[odd++] = infos[i];
            continue;
        }
        v->has_info = TRUE;
        g_ptr_array_add(g->infos, v);
        if (!read_info(r, infos[i], "info", g, v, error))
            return FALSE;
    }
    *n = odd;
    return TRUE;
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

/* Models from before there were opsets use the first one. A function falls back on what its model imports. */
static int64_t implied_version(const HnModel *m, const char *domain)
{
    int64_t version = hn_model_opset(m, domain);
    return version == 0 && m->ir_version < 3 && hn_domain_equal(domain, "") ? 1 : version;
}

/* Everything but inputs and attributes: these may name values that a later node makes. */
static HnNode *declare_node(HnOnnxReader *r, Onnx__NodeProto *p, HnGraph *g)
{
    HnNode *n = hn_graph_add_node(g, -1, p->op_type ? p->op_type : "", p->domain, p->name);
    if (n->version == 0)
        n->version = implied_version(r->model, p->domain);
    p->op_type = p->domain = p->name = NULL;
    n->overload = hn_model_text(r->model, p->overload);
    p->overload = NULL;
    n->doc = hn_onnx_take(&p->doc_string);
    n->metadata = hn_onnx_take_pairs(p->metadata_props, &p->n_metadata_props);
    for (size_t i = 0; i < p->n_output; i++)
        hn_node_add_out(n, *p->output[i] ? hn_graph_value(g, p->output[i]) : NULL);
    p->n_output = 0;
    return n;
}

static gboolean complete_node(HnOnnxReader *r, Onnx__NodeProto *p, HnNode *n, GError **error)
{
    HnGraph *g = n->graph;
    for (size_t i = 0; i < p->n_input; i++) {
        HnValue *v = NULL;
        if (*p->input[i]) {
            v = hn_graph_find(g, p->input[i]);
            if (!v)
                v = hn_graph_value(g, p->input[i]);
        }
        hn_node_add_in(n, v);
    }
    p->n_input = 0;
    g_autoptr(GHashTable) seen = p->n_attribute > FEW ? g_hash_table_new(g_str_hash, g_str_equal) : NULL;
    for (size_t i = 0; i < p->n_attribute; i++) {
        HnAttr *a = hn_onnx_read_attr(r, p->attribute[i], g, n, error);
        if (a && (seen ? !g_hash_table_add(seen, a->name) : hn_node_attr(n, a->name) != NULL)) {
            g_set_error(error, HN_ERROR, HN_ERROR_ATTRIBUTE, "the attribute '%s' is given twice", a->name);
            g_clear_pointer(&a, hn_attr_free);
        }
        if (!a) {
            g_prefix_error(error, "node '%s': ", hn_node_label(n));
            return FALSE;
        }
        hn_ptrs_add(n->attrs, a); /* its graphs know n already */
    }
    p->n_attribute = 0;
    return hn_onnx_rest(r, &p->base, &n->unknown, error);
}

static void declare_nodes(HnOnnxReader *r, Onnx__NodeProto **p, size_t n, HnGraph *g)
{
    for (size_t i = 0; i < n; i++)
        declare_node(r, p[i], g);
}

static gboolean complete_nodes(HnOnnxReader *r, Onnx__NodeProto **p, size_t *n, HnGraph *g, GError **error)
{
    for (size_t i = 0; i < *n; i++)
        if (!complete_node(r, p[i], g->nodes->pdata[i], error))
            return FALSE;
    *n = 0;
    return TRUE;
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

gboolean hn_onnx_read_graph(HnOnnxReader *r, Onnx__GraphProto *p, HnGraph *g, GError **error)
{
    g_free(g->name);
    g->name = hn_onnx_take(&p->name);
    g->doc = hn_onnx_take(&p->doc_string);
    g->metadata = hn_onnx_take_pairs(p->metadata_props, &p->n_metadata_props);
    if (!read_inputs(r, p, g, error) || !read_weights(r, p, g, error))
        return FALSE;
    declare_nodes(r, p->node, p->n_node, g);
    if (!read_outputs(r, p, g, error) || !read_value_infos(r, p->value_info, &p->n_value_info, g, error) ||
        !complete_nodes(r, p->node, &p->n_node, g, error))
        return FALSE;
    for (size_t i = 0; i < p->n_quantization_annotation; i++) {
        GBytes *bytes = hn_onnx_repack(r, &p->quantization_annotation[i]->base, error);
        if (!bytes)
            return FALSE;
        g_ptr_array_add(g->quant, bytes);
    }
    p->n_quantization_annotation = 0;
    return hn_onnx_rest(r, &p->base, &g->unknown, error);
}

static void take_names(char **names, size_t *n, GPtrArray *to)
{
    for (size_t i = 0; i < *n; i++)
        g_ptr_array_add(to, g_strdup(names[i]));
    *n = 0;
}

static gboolean read_formals(HnOnnxReader *r, const HnFunction *f, Onnx__FunctionProto *p, GError **error)
{
    for (size_t i = 0; i < p->n_input; i++) {
        if (!*p->input[i])
            return BAD(error, HN_ERROR_FORMAT, "an input has no name");
        HnValue *v = hn_graph_value(f->body, p->input[i]);
        if (v->is_input)
            return BAD(error, HN_ERROR_GRAPH, "two inputs are named '%s'", v->name);
        hn_graph_add_input(f->body, v);
    }
    declare_nodes(r, p->node, p->n_node, f->body);
    for (size_t i = 0; i < p->n_output; i++) {
        if (!*p->output[i])
            return BAD(error, HN_ERROR_FORMAT, "an output has no name");
        hn_graph_add_output(f->body, hn_graph_value(f->body, p->output[i]));
    }
    return TRUE;
}

static gboolean read_function(HnOnnxReader *r, Onnx__FunctionProto *p, HnFunction *f, GError **error)
{
    f->overload = hn_onnx_take(&p->overload);
    f->doc = hn_onnx_take(&p->doc_string);
    f->metadata = hn_onnx_take_pairs(p->metadata_props, &p->n_metadata_props);
    if (!hn_onnx_read_opsets(r, p->opset_import, &p->n_opset_import, f->opsets, f->body, error) ||
        !read_formals(r, f, p, error) || !read_value_infos(r, p->value_info, &p->n_value_info, f->body, error) ||
        !complete_nodes(r, p->node, &p->n_node, f->body, error))
        return FALSE;
    take_names(p->input, &p->n_input, f->inputs);
    take_names(p->output, &p->n_output, f->outputs);
    take_names(p->attribute, &p->n_attribute, f->attrs);
    for (size_t i = 0; i < p->n_attribute_proto; i++) {
        HnAttr *a = hn_onnx_read_attr(r, p->attribute_proto[i], f->body, NULL, error);
        if (!a)
            return FALSE;
        g_ptr_array_add(f->attr_defaults, a);
    }
    p->n_attribute_proto = 0;
    return hn_onnx_rest(r, &p->base, &f->unknown, error);
}

gboolean hn_onnx_read_function(HnOnnxReader *r, Onnx__FunctionProto *p, GError **error)
{
    HnFunction *f = hn_function_new(r->model, p->domain, p->name);
    p->domain = p->name = NULL;
    if (read_function(r, p, f, error))
        return TRUE;
    g_prefix_error(error, "function '%s': ", f->name ? f->name : "");
    return FALSE;
}
