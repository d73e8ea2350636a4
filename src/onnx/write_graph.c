#include "onnx/writer.h"

#include <string.h>

#include "base/error.h"

#define EXTERNAL_LEAST 1024 /* bytes: smaller initializers stay in the model */

/* A new message of the arena. */
#define NEW(w, Type, init) (init##_made(HN_ONNX_ARRAY(w, Type, 1)))

#define MADE(Type, init)              \
    static Type *init##_made(Type *p) \
    {                                 \
        init(p);                      \
        return p;                     \
    }

MADE(Onnx__ModelProto, onnx__model_proto__init)
MADE(Onnx__GraphProto, onnx__graph_proto__init)
MADE(Onnx__NodeProto, onnx__node_proto__init)
MADE(Onnx__AttributeProto, onnx__attribute_proto__init)
MADE(Onnx__ValueInfoProto, onnx__value_info_proto__init)
MADE(Onnx__FunctionProto, onnx__function_proto__init)
MADE(Onnx__TensorProto, onnx__tensor_proto__init)
MADE(Onnx__SparseTensorProto, onnx__sparse_tensor_proto__init)
MADE(Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init)

static ProtobufCBinaryData borrow(GBytes *bytes)
{
    gsize n = 0;
    gconstpointer data = bytes ? g_bytes_get_data(bytes, &n) : NULL;
    return (ProtobufCBinaryData){ n, (guint8 *)(guintptr)data };
}

/* --- tensors ----------------------------------------------------------------------------------------------------- */

static void put_external(HnOnnxWriter *w, HnTensor *t, Onnx__TensorProto *p)
{
    guint64 offset = hn_onnx_place(w, t);
    char *text = hn_onnx_alloc(w, 64);
    g_snprintf(text, 32, "%" G_GUINT64_FORMAT, offset);
    g_snprintf(text + 32, 32, "%" G_GSIZE_FORMAT, t->bytes);
    p->external_data = HN_ONNX_ARRAY(w, Onnx__StringStringEntryProto *, 4);
    p->external_data[0] = hn_onnx_put_pair(w, "location", w->location);
    p->external_data[1] = hn_onnx_put_pair(w, "offset", text);
    p->external_data[2] = hn_onnx_put_pair(w, "length", text + 32);
    p->external_data[3] = hn_onnx_put_pair(w, "checksum", w->sum);
    p->n_external_data = 4;
}

Onnx__TensorProto *hn_onnx_put_tensor(HnOnnxWriter *w, HnTensor *t, const char *name, gboolean is_weight)
{
    Onnx__TensorProto *p = NEW(w, Onnx__TensorProto, onnx__tensor_proto__init);
    gboolean one_file = w->external == HN_EXTERNAL_ONE_FILE && is_weight && t->bytes >= EXTERNAL_LEAST;
    gboolean keep = w->external == HN_EXTERNAL_KEEP && t->stored == HN_STORED_EXTERNAL;
    gboolean external = t->dtype != HN_STRING && (one_file || keep);
    p->name = (char *)(guintptr)(name ? name : t->name);
    p->doc_string = t->doc;
    p->n_dims = (size_t)t->ndim;
    p->dims = t->dims;
    p->has_data_type = TRUE;
    p->data_type = (int32_t)t->dtype;
    p->metadata_props = hn_onnx_put_pairs(w, t->metadata, &p->n_metadata_props);
    if (external) {
        p->has_data_location = TRUE;
        p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    }
    if (external && keep) {
        p->external_data = hn_onnx_put_pairs(w, t->extra, &p->n_external_data);
    } else if (t->unloaded) {
        if (!w->error)
            g_set_error(&w->error, HN_ERROR, HN_ERROR_IO, "the external data of tensor '%s' was not loaded",
                        p->name ? p->name : "");
    } else if (external) {
        put_external(w, t, p);
    } else if (t->dtype == HN_STRING || t->stored == HN_STORED_TYPED) {
        hn_onnx_put_typed(w, t, p);
    } else {
        p->has_raw_data = TRUE;
        p->raw_data = (ProtobufCBinaryData){ t->bytes, t->data };
    }
    /* an explicit default location would win over ours */
    hn_onnx_put_unknown(w, &p->base, t->unknown, external ? 14 : 0);
    return p;
}

Onnx__SparseTensorProto *hn_onnx_put_sparse(HnOnnxWriter *w, const HnSparse *s, const char *name)
{
    Onnx__SparseTensorProto *p = NEW(w, Onnx__SparseTensorProto, onnx__sparse_tensor_proto__init);
    p->values = hn_onnx_put_tensor(w, s->values, name, FALSE);
    p->indices = hn_onnx_put_tensor(w, s->indices, NULL, FALSE);
    p->n_dims = (size_t)s->ndim;
    p->dims = s->dims;
    hn_onnx_put_unknown(w, &p->base, s->unknown, 0);
    return p;
}

/* --- attributes -------------------------------------------------------------------------------------------------- */

/* What stands for a caller's attribute has no value, nor has what the file left out and nobody has set since. */
static void put_single(HnOnnxWriter *w, const HnAttr *a, Onnx__AttributeProto *p)
{
    switch (a->kind) {
    case HN_ATTR_FLOAT:
        p->f = a->f;
        p->has_f = !a->implicit || a->f != 0;
        break;
    case HN_ATTR_INT:
        p->i = a->i;
        p->has_i = !a->implicit || a->i != 0;
        break;
    case HN_ATTR_STRING:
        p->s = borrow(a->s);
        p->has_s = !a->implicit || p->s.len > 0;
        break;
    case HN_ATTR_TENSOR:
        p->t = a->t ? hn_onnx_put_tensor(w, a->t, NULL, FALSE) : NULL;
        break;
    case HN_ATTR_GRAPH:
        p->g = a->g ? hn_onnx_put_graph(w, a->g) : NULL;
        break;
    case HN_ATTR_SPARSE:
        p->sparse_tensor = a->sparse ? hn_onnx_put_sparse(w, a->sparse, NULL) : NULL;
        break;
    case HN_ATTR_TYPE:
        p->tp = a->type ? hn_onnx_put_type(w, a->type) : NULL;
        break;
    default:
        break;
    }
}

static void put_list(HnOnnxWriter *w, const HnAttr *a, Onnx__AttributeProto *p)
{
    size_t n = (size_t)a->n;
    switch (a->kind) {
    case HN_ATTR_FLOATS:
        p->n_floats = n;
        p->floats = a->floats;
        break;
    case HN_ATTR_INTS:
        p->n_ints = n;
        p->ints = a->ints;
        break;
    case HN_ATTR_STRINGS:
        p->n_strings = n;
        p->strings = HN_ONNX_ARRAY(w, ProtobufCBinaryData, n);
        for (size_t i = 0; i < n; i++)
            p->strings[i] = borrow(a->strings[i]);
        break;
    case HN_ATTR_TENSORS:
        p->n_tensors = n;
        p->tensors = HN_ONNX_ARRAY(w, Onnx__TensorProto *, n);
        for (size_t i = 0; i < n; i++)
            p->tensors[i] = hn_onnx_put_tensor(w, a->tensors[i], NULL, FALSE);
        break;
    case HN_ATTR_GRAPHS:
        p->n_graphs = n;
        p->graphs = HN_ONNX_ARRAY(w, Onnx__GraphProto *, n);
        for (size_t i = 0; i < n; i++)
            p->graphs[i] = hn_onnx_put_graph(w, a->graphs[i]);
        break;
    case HN_ATTR_SPARSES:
        p->n_sparse_tensors = n;
        p->sparse_tensors = HN_ONNX_ARRAY(w, Onnx__SparseTensorProto *, n);
        for (size_t i = 0; i < n; i++)
            p->sparse_tensors[i] = hn_onnx_put_sparse(w, a->sparses[i], NULL);
        break;
    case HN_ATTR_TYPES:
        p->n_type_protos = n;
        p->type_protos = HN_ONNX_ARRAY(w, Onnx__TypeProto *, n);
        for (size_t i = 0; i < n; i++)
            p->type_protos[i] = hn_onnx_put_type(w, a->types[i]);
        break;
    default:
        break;
    }
}

Onnx__AttributeProto *hn_onnx_put_attr(HnOnnxWriter *w, const HnAttr *a)
{
    Onnx__AttributeProto *p = NEW(w, Onnx__AttributeProto, onnx__attribute_proto__init);
    p->name = a->name;
    p->doc_string = a->doc;
    p->ref_attr_name = a->ref_attr;
    p->has_type = a->has_kind;
    p->type = (Onnx__AttributeProto__AttributeType)a->kind;
    put_single(w, a, p);
    put_list(w, a, p);
    hn_onnx_put_unknown(w, &p->base, a->unknown, 0);
    return p;
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

Onnx__ValueInfoProto *hn_onnx_put_info(HnOnnxWriter *w, const HnValue *v)
{
    Onnx__ValueInfoProto *p = NEW(w, Onnx__ValueInfoProto, onnx__value_info_proto__init);
    p->name = v->name;
    p->doc_string = v->doc;
    p->type = v->type ? hn_onnx_put_type(w, v->type) : NULL;
    p->metadata_props = hn_onnx_put_pairs(w, v->metadata, &p->n_metadata_props);
    hn_onnx_put_unknown(w, &p->base, v->unknown, 0);
    return p;
}

static Onnx__ValueInfoProto **put_infos(HnOnnxWriter *w, const HnGraph *g, const char *role, const GPtrArray *values,
                                        size_t *n)
{
    Onnx__ValueInfoProto **infos = HN_ONNX_ARRAY(w, Onnx__ValueInfoProto *, values->len);
    *n = values->len;
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        GBytes *variant = hn_graph_variant(g, role, v);
        ProtobufCMessage *p = variant ? hn_onnx_unpack(w, &onnx__value_info_proto__descriptor, variant) : NULL;
        infos[i] = p ? (Onnx__ValueInfoProto *)p : hn_onnx_put_info(w, v);
    }
    return infos;
}

static char **put_value_names(HnOnnxWriter *w, const GPtrArray *values, size_t *n)
{
    char **names = HN_ONNX_ARRAY(w, char *, values->len);
    *n = values->len;
    for (guint i = 0; i < values->len; i++)
        names[i] = values->pdata[i] ? ((const HnValue *)values->pdata[i])->name : (char *)(guintptr) "";
    return names;
}

static Onnx__NodeProto *put_node(HnOnnxWriter *w, const HnNode *n)
{
    Onnx__NodeProto *p = NEW(w, Onnx__NodeProto, onnx__node_proto__init);
    p->op_type = n->op_type;
    p->domain = n->domain;
    p->overload = n->overload;
    p->name = n->name;
    p->doc_string = n->doc;
    p->input = put_value_names(w, n->in, &p->n_input);
    p->output = put_value_names(w, n->out, &p->n_output);
    p->n_attribute = n->attrs->len;
    p->attribute = HN_ONNX_ARRAY(w, Onnx__AttributeProto *, n->attrs->len);
    for (guint i = 0; i < n->attrs->len; i++)
        p->attribute[i] = hn_onnx_put_attr(w, n->attrs->pdata[i]);
    p->metadata_props = hn_onnx_put_pairs(w, n->metadata, &p->n_metadata_props);
    hn_onnx_put_unknown(w, &p->base, n->unknown, 0);
    return p;
}

static Onnx__NodeProto **put_nodes(HnOnnxWriter *w, const HnGraph *g, size_t *n)
{
    Onnx__NodeProto **nodes = HN_ONNX_ARRAY(w, Onnx__NodeProto *, g->nodes->len);
    *n = g->nodes->len;
    for (guint i = 0; i < g->nodes->len; i++)
        nodes[i] = put_node(w, g->nodes->pdata[i]);
    return nodes;
}

static void put_weights(HnOnnxWriter *w, const HnGraph *g, Onnx__GraphProto *p)
{
    p->initializer = HN_ONNX_ARRAY(w, Onnx__TensorProto *, g->weights->len);
    p->sparse_initializer = HN_ONNX_ARRAY(w, Onnx__SparseTensorProto *, g->weights->len);
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        if (v->sparse)
            p->sparse_initializer[p->n_sparse_initializer++] = hn_onnx_put_sparse(w, v->sparse, v->name);
        else
            p->initializer[p->n_initializer++] = hn_onnx_put_tensor(w, v->weight, v->name, TRUE);
    }
}

Onnx__GraphProto *hn_onnx_put_graph(HnOnnxWriter *w, const HnGraph *g)
{
    Onnx__GraphProto *p = NEW(w, Onnx__GraphProto, onnx__graph_proto__init);
    p->name = g->name;
    p->doc_string = g->doc;
    p->node = put_nodes(w, g, &p->n_node);
    put_weights(w, g, p);
    p->input = put_infos(w, g, "input", g->inputs, &p->n_input);
    p->output = put_infos(w, g, "output", g->outputs, &p->n_output);
    p->value_info = put_infos(w, g, "info", g->infos, &p->n_value_info);
    p->metadata_props = hn_onnx_put_pairs(w, g->metadata, &p->n_metadata_props);
    p->quantization_annotation = HN_ONNX_ARRAY(w, Onnx__TensorAnnotation *, g->quant->len);
    for (guint i = 0; i < g->quant->len; i++) {
        ProtobufCMessage *q = hn_onnx_unpack(w, &onnx__tensor_annotation__descriptor, g->quant->pdata[i]);
        if (q)
            p->quantization_annotation[p->n_quantization_annotation++] = (Onnx__TensorAnnotation *)q;
    }
    hn_onnx_put_unknown(w, &p->base, g->unknown, 0);
    return p;
}

/* --- models ------------------------------------------------------------------------------------------------------ */

static Onnx__OperatorSetIdProto **put_opsets(HnOnnxWriter *w, const GArray *opsets, size_t *n)
{
    Onnx__OperatorSetIdProto **entries = HN_ONNX_ARRAY(w, Onnx__OperatorSetIdProto *, opsets->len);
    *n = opsets->len;
    for (guint i = 0; i < opsets->len; i++) {
        const HnOpset *o = &g_array_index(opsets, HnOpset, i);
        entries[i] = NEW(w, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init);
        entries[i]->domain = o->domain;
        entries[i]->has_version = TRUE;
        entries[i]->version = o->version;
        hn_onnx_put_unknown(w, &entries[i]->base, o->unknown, 0);
    }
    return entries;
}

static char **borrow_names(const GPtrArray *names, size_t *n)
{
    *n = names->len;
    return (char **)names->pdata;
}

static Onnx__FunctionProto *put_function(HnOnnxWriter *w, const HnFunction *f)
{
    Onnx__FunctionProto *p = NEW(w, Onnx__FunctionProto, onnx__function_proto__init);
    if (f->body->weights->len > 0 && !w->error)
        g_set_error(&w->error, HN_ERROR, HN_ERROR_GRAPH, "the function '%s' has weights, which ONNX has no place for",
                    f->name ? f->name : "");
    p->name = f->name;
    p->domain = f->domain;
    p->overload = f->overload;
    p->doc_string = f->doc;
    p->input = borrow_names(f->inputs, &p->n_input);
    p->output = borrow_names(f->outputs, &p->n_output);
    p->attribute = borrow_names(f->attrs, &p->n_attribute);
    p->n_attribute_proto = f->attr_defaults->len;
    p->attribute_proto = HN_ONNX_ARRAY(w, Onnx__AttributeProto *, f->attr_defaults->len);
    for (guint i = 0; i < f->attr_defaults->len; i++)
        p->attribute_proto[i] = hn_onnx_put_attr(w, f->attr_defaults->pdata[i]);
    p->node = put_nodes(w, f->body, &p->n_node);
    p->value_info = put_infos(w, f->body, "info", f->body->infos, &p->n_value_info);
    p->opset_import = put_opsets(w, f->opsets, &p->n_opset_import);
    p->metadata_props = hn_onnx_put_pairs(w, f->metadata, &p->n_metadata_props);
    hn_onnx_put_unknown(w, &p->base, f->unknown, 0);
    return p;
}

/* Messages kept as bytes. Their raw_data is bytes of those, not copied again. */
static void put_kept(HnOnnxWriter *w, const HnModel *m, Onnx__ModelProto *p)
{
    p->training_info = HN_ONNX_ARRAY(w, Onnx__TrainingInfoProto *, m->training->len);
    for (guint i = 0; i < m->training->len; i++) {
        ProtobufCMessage *q = hn_onnx_unpack(w, &onnx__training_info_proto__descriptor, m->training->pdata[i]);
        if (q)
            p->training_info[p->n_training_info++] = (Onnx__TrainingInfoProto *)q;
    }
    p->configuration = HN_ONNX_ARRAY(w, Onnx__DeviceConfigurationProto *, m->configs->len);
    for (guint i = 0; i < m->configs->len; i++) {
        ProtobufCMessage *q = hn_onnx_unpack(w, &onnx__device_configuration_proto__descriptor, m->configs->pdata[i]);
        if (q)
            p->configuration[p->n_configuration++] = (Onnx__DeviceConfigurationProto *)q;
    }
}

Onnx__ModelProto *hn_onnx_put_model(HnOnnxWriter *w, const HnModel *m)
{
    Onnx__ModelProto *p = NEW(w, Onnx__ModelProto, onnx__model_proto__init);
    p->has_ir_version = m->has_ir_version;
    p->ir_version = m->ir_version;
    p->has_model_version = m->has_model_version;
    p->model_version = m->model_version;
    p->producer_name = m->producer_name;
    p->producer_version = m->producer_version;
    p->domain = m->domain;
    p->doc_string = m->doc;
    p->opset_import = put_opsets(w, m->opsets, &p->n_opset_import);
    p->metadata_props = hn_onnx_put_pairs(w, m->metadata, &p->n_metadata_props);
    p->graph = hn_onnx_put_graph(w, m->graph);
    p->n_functions = m->functions->len;
    p->functions = HN_ONNX_ARRAY(w, Onnx__FunctionProto *, m->functions->len);
    for (guint i = 0; i < m->functions->len; i++)
        p->functions[i] = put_function(w, m->functions->pdata[i]);
    put_kept(w, m, p);
    hn_onnx_put_unknown(w, &p->base, m->unknown, 0);
    return p;
}
