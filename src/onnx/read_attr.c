#include "onnx/reader.h"

#include "base/error.h"

/* The file names no kind before IR version 2: then the field that is there says it. */
static HnAttrKind kind_of(const Onnx__AttributeProto *p)
{
    const struct {
        gboolean present;
        HnAttrKind kind;
    } fields[] = {
        { p->has_f, HN_ATTR_FLOAT },
        { p->has_i, HN_ATTR_INT },
        { p->has_s, HN_ATTR_STRING },
        { p->t != NULL, HN_ATTR_TENSOR },
        { p->g != NULL, HN_ATTR_GRAPH },
        { p->sparse_tensor != NULL, HN_ATTR_SPARSE },
        { p->tp != NULL, HN_ATTR_TYPE },
        { p->n_floats > 0, HN_ATTR_FLOATS },
        { p->n_ints > 0, HN_ATTR_INTS },
        { p->n_strings > 0, HN_ATTR_STRINGS },
        { p->n_tensors > 0, HN_ATTR_TENSORS },
        { p->n_graphs > 0, HN_ATTR_GRAPHS },
        { p->n_sparse_tensors > 0, HN_ATTR_SPARSES },
        { p->n_type_protos > 0, HN_ATTR_TYPES },
    };
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++)
        if (fields[i].present)
            return fields[i].kind;
    return HN_ATTR_UNDEFINED;
}

static GBytes *take_bytes(const ProtobufCBinaryData *b)
{
    return g_bytes_new(b->data, b->len);
}

static HnGraph *read_graph(HnOnnxReader *r, Onnx__GraphProto *p, HnGraph *outer, HnNode *holder, GError **error)
{
    HnGraph *g = hn_graph_new(r->model, outer, NULL);
    g->holder = holder;
    if (hn_onnx_read_graph(r, p, g, error))
        return g;
    hn_graph_free(g);
    return NULL;
}

static gboolean missing(HnAttr *a, GError **error)
{
    if (a->ref_attr)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "the attribute has no value of its kind");
    return FALSE;
}

static gboolean read_single(HnOnnxReader *r, Onnx__AttributeProto *p, HnAttr *a, HnGraph *g, HnNode *n, GError **error)
{
    switch (a->kind) {
    case HN_ATTR_FLOAT:
        a->f = p->f;
        a->implicit = !p->has_f;
        p->has_f = FALSE;
        return TRUE;
    case HN_ATTR_INT:
        a->i = p->i;
        a->implicit = !p->has_i;
        p->has_i = FALSE;
        return TRUE;
    case HN_ATTR_STRING:
        a->s = p->has_s ? take_bytes(&p->s) : g_bytes_new_static("", 0);
        a->implicit = !p->has_s;
        p->has_s = FALSE;
        return TRUE;
    case HN_ATTR_TENSOR:
        if (!p->t)
            return missing(a, error);
        a->t = hn_onnx_read_tensor(r, p->t, FALSE, error);
        p->t = NULL;
        return a->t != NULL;
    case HN_ATTR_GRAPH:
        if (!p->g)
            return missing(a, error);
        a->g = read_graph(r, p->g, g, n, error);
        p->g = NULL;
        return a->g != NULL;
    case HN_ATTR_SPARSE:
        if (!p->sparse_tensor)
            return missing(a, error);
        a->sparse = hn_onnx_read_sparse(r, p->sparse_tensor, error);
        p->sparse_tensor = NULL;
        return a->sparse != NULL;
    default: /* HN_ATTR_TYPE */
        if (!p->tp)
            return missing(a, error);
        a->type = hn_onnx_read_type(r, p->tp, error);
        p->tp = NULL;
        return a->type != NULL;
    }
}

/* The elements there are; *count is the message's, 0 afterwards. */
static gsize take_count(HnAttr *a, size_t *count)
{
    gsize n = *count;
    a->n = (int64_t)n;
    *count = 0;
    return n;
}

static gboolean read_list(HnOnnxReader *r, Onnx__AttributeProto *p, HnAttr *a, HnGraph *g, HnNode *holder,
                          GError **error)
{
    gsize n;
    switch (a->kind) {
    case HN_ATTR_FLOATS:
        n = take_count(a, &p->n_floats);
        a->floats = n ? g_memdup2(p->floats, n * sizeof *a->floats) : NULL;
        return TRUE;
    case HN_ATTR_INTS:
        n = take_count(a, &p->n_ints);
        a->ints = n ? g_memdup2(p->ints, n * sizeof *a->ints) : NULL;
        return TRUE;
    case HN_ATTR_STRINGS:
        n = take_count(a, &p->n_strings);
        a->strings = g_new0(GBytes *, n);
        for (gsize i = 0; i < n; i++)
            a->strings[i] = take_bytes(&p->strings[i]);
        return TRUE;
    case HN_ATTR_TENSORS:
        n = take_count(a, &p->n_tensors);
        a->tensors = g_new0(HnTensor *, n);
        for (gsize i = 0; i < n; i++)
            if (!(a->tensors[i] = hn_onnx_read_tensor(r, p->tensors[i], FALSE, error)))
                return FALSE;
        return TRUE;
    case HN_ATTR_GRAPHS:
        n = take_count(a, &p->n_graphs);
        a->graphs = g_new0(HnGraph *, n);
        for (gsize i = 0; i < n; i++)
            if (!(a->graphs[i] = read_graph(r, p->graphs[i], g, holder, error)))
                return FALSE;
        return TRUE;
    case HN_ATTR_SPARSES:
        n = take_count(a, &p->n_sparse_tensors);
        a->sparses = g_new0(HnSparse *, n);
        for (gsize i = 0; i < n; i++)
            if (!(a->sparses[i] = hn_onnx_read_sparse(r, p->sparse_tensors[i], error)))
                return FALSE;
        return TRUE;
    default: /* HN_ATTR_TYPES */
        n = take_count(a, &p->n_type_protos);
        a->types = g_new0(HnType *, n);
        for (gsize i = 0; i < n; i++)
            if (!(a->types[i] = hn_onnx_read_type(r, p->type_protos[i], error)))
                return FALSE;
        return TRUE;
    }
}

static gboolean read_value(HnOnnxReader *r, Onnx__AttributeProto *p, HnAttr *a, HnGraph *g, HnNode *n, GError **error)
{
    switch (a->kind) {
    case HN_ATTR_UNDEFINED:
        return TRUE;
    case HN_ATTR_FLOAT:
    case HN_ATTR_INT:
    case HN_ATTR_STRING:
    case HN_ATTR_TENSOR:
    case HN_ATTR_GRAPH:
    case HN_ATTR_SPARSE:
    case HN_ATTR_TYPE:
        return read_single(r, p, a, g, n, error);
    default:
        return read_list(r, p, a, g, n, error);
    }
}

HnAttr *hn_onnx_read_attr(HnOnnxReader *r, Onnx__AttributeProto *p, HnGraph *g, HnNode *n, GError **error)
{
    if (!p->name || !*p->name) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "an attribute has no name");
        return NULL;
    }
    HnAttr *a = hn_attr_new(p->name, HN_ATTR_UNDEFINED);
    p->name = NULL;
    a->doc = hn_onnx_take(&p->doc_string);
    a->ref_attr = hn_onnx_take(&p->ref_attr_name);
    /* a kind from the future stays in the rest with all that belongs to it */
    gboolean known = p->has_type && (int)p->type >= HN_ATTR_UNDEFINED && (int)p->type <= HN_ATTR_TYPES;
    a->has_kind = known;
    if (known) {
        a->kind = (HnAttrKind)p->type;
        p->has_type = FALSE;
    } else if (!p->has_type) {
        a->kind = kind_of(p);
    }
    if (read_value(r, p, a, g, n, error) && hn_onnx_rest(r, &p->base, &a->unknown, error))
        return a;
    g_prefix_error(error, "attribute '%s': ", a->name);
    hn_attr_free(a);
    return NULL;
}
