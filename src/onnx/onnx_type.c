/* TypeProto and HnType, both ways. */
#include "base/error.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

static HnType *type_new(HnTypeKind kind)
{
    HnType *t = g_new0(HnType, 1);
    t->ref = 1;
    t->kind = kind;
    return t;
}

static gboolean read_shape(const Onnx__TensorShapeProto *p, HnType *t, GError **error)
{
    if (!p) {
        t->rank = -1;
        return TRUE;
    }
    if (p->n_dim > HN_ONNX_MAX_RANK) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "a type has %" G_GSIZE_FORMAT " dimensions", p->n_dim);
        return FALSE;
    }
    t->rank = (int)p->n_dim;
    t->dims = g_new0(HnDim, p->n_dim);
    for (size_t i = 0; i < p->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = p->dim[i];
        t->dims[i] = hn_dim_unknown();
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
            t->dims[i] = hn_dim(d->dim_value); /* negative: some exporters' word for unknown */
        else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
            t->dims[i] = hn_dim_symbol(d->dim_param);
        if (d->denotation) {
            if (!t->denotations)
                t->denotations = g_new0(char *, p->n_dim);
            t->denotations[i] = g_strdup(d->denotation);
        }
    }
    return TRUE;
}

static HnType *read_type(const Onnx__TypeProto *p, GError **error);

static gboolean read_elem(const Onnx__TypeProto *p, HnType *t, GError **error)
{
    t->has_elem = p != NULL;
    t->elem = p ? read_type(p, error) : NULL;
    return !p || t->elem;
}

static gboolean read_tensor_type(gboolean has_elem, int32_t elem, const Onnx__TensorShapeProto *shape, HnType *t,
                                 GError **error)
{
    t->has_elem = has_elem;
    t->dtype = has_elem && elem > 0 ? (HnDtype)elem : HN_UNDEFINED;
    return read_shape(shape, t, error);
}

static gboolean fill_type(const Onnx__TypeProto *p, HnType *t, GError **error)
{
    switch (p->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        t->kind = HN_TYPE_TENSOR;
        return read_tensor_type(p->tensor_type->has_elem_type, p->tensor_type->elem_type, p->tensor_type->shape, t,
                                error);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        t->kind = HN_TYPE_SPARSE;
        return read_tensor_type(p->sparse_tensor_type->has_elem_type, p->sparse_tensor_type->elem_type,
                                p->sparse_tensor_type->shape, t, error);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        t->kind = HN_TYPE_SEQUENCE;
        return read_elem(p->sequence_type->elem_type, t, error);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        t->kind = HN_TYPE_OPTIONAL;
        return read_elem(p->optional_type->elem_type, t, error);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        t->kind = HN_TYPE_MAP;
        t->dtype = p->map_type->key_type > 0 ? (HnDtype)p->map_type->key_type : HN_UNDEFINED;
        return read_elem(p->map_type->value_type, t, error);
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
        t->kind = HN_TYPE_OPAQUE;
        t->domain = g_strdup(p->opaque_type->domain);
        t->name = g_strdup(p->opaque_type->name);
        return TRUE;
    default:
        return TRUE;
    }
}

static HnType *read_type(const Onnx__TypeProto *p, GError **error)
{
    g_autoptr(HnType) t = type_new(HN_TYPE_NONE);
    t->denotation = g_strdup(p->denotation);
    return fill_type(p, t, error) ? g_steal_pointer(&t) : NULL;
}

/* Types are small; where writing one would not give it back as it was, all of it is kept. */
HnType *hn_onnx_read_type(HnOnnxReader *r, Onnx__TypeProto *p, GError **error)
{
    g_autoptr(HnType) t = read_type(p, error);
    g_autoptr(GBytes) bytes = t ? hn_onnx_pack(&p->base, r->budget, error) : NULL;
    if (!bytes)
        return NULL;
    HnOnnxWriter w;
    hn_onnx_writer_init(&w, HN_EXTERNAL_INLINE, r->budget);
    g_autoptr(GBytes) again = hn_onnx_pack(&hn_onnx_put_type(&w, t)->base, r->budget, error);
    hn_onnx_writer_clear(&w);
    if (!again)
        return NULL;
    if (!g_bytes_equal(bytes, again))
        t->unknown = g_steal_pointer(&bytes);
    return g_steal_pointer(&t);
}

/* --- and back ------------------------------------------------------------------------------------------------------
 */

static Onnx__TensorShapeProto *put_shape(HnOnnxWriter *w, const HnType *t)
{
    if (t->rank < 0)
        return NULL;
    Onnx__TensorShapeProto *p = HN_ONNX_ARRAY(w, Onnx__TensorShapeProto, 1);
    onnx__tensor_shape_proto__init(p);
    p->n_dim = (size_t)t->rank;
    p->dim = HN_ONNX_ARRAY(w, Onnx__TensorShapeProto__Dimension *, t->rank);
    for (int i = 0; i < t->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = p->dim[i] = HN_ONNX_ARRAY(w, Onnx__TensorShapeProto__Dimension, 1);
        onnx__tensor_shape_proto__dimension__init(d);
        if (t->dims[i].known) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = t->dims[i].n;
        } else if (t->dims[i].sym) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = (char *)(guintptr)t->dims[i].sym;
        }
        d->denotation = t->denotations ? t->denotations[i] : NULL;
    }
    return p;
}

static Onnx__TypeProto *put_elem(HnOnnxWriter *w, const HnType *t)
{
    return t->elem ? hn_onnx_put_type(w, t->elem) : NULL;
}

/* One message of a value, set up and hung into p. */
#define PUT(w, p, field, FIELD, Type, init) \
    ((p)->value_case = ONNX__TYPE_PROTO__VALUE_##FIELD, (p)->field = HN_ONNX_ARRAY(w, Type, 1), init((p)->field))

static void put_value(HnOnnxWriter *w, const HnType *t, Onnx__TypeProto *p)
{
    switch (t->kind) {
    case HN_TYPE_NONE:
        break;
    case HN_TYPE_TENSOR:
        PUT(w, p, tensor_type, TENSOR_TYPE, Onnx__TypeProto__Tensor, onnx__type_proto__tensor__init);
        p->tensor_type->has_elem_type = t->has_elem;
        p->tensor_type->elem_type = (int32_t)t->dtype;
        p->tensor_type->shape = put_shape(w, t);
        break;
    case HN_TYPE_SPARSE:
        PUT(w, p, sparse_tensor_type, SPARSE_TENSOR_TYPE, Onnx__TypeProto__SparseTensor,
            onnx__type_proto__sparse_tensor__init);
        p->sparse_tensor_type->has_elem_type = t->has_elem;
        p->sparse_tensor_type->elem_type = (int32_t)t->dtype;
        p->sparse_tensor_type->shape = put_shape(w, t);
        break;
    case HN_TYPE_SEQUENCE:
        PUT(w, p, sequence_type, SEQUENCE_TYPE, Onnx__TypeProto__Sequence, onnx__type_proto__sequence__init);
        p->sequence_type->elem_type = put_elem(w, t);
        break;
    case HN_TYPE_OPTIONAL:
        PUT(w, p, optional_type, OPTIONAL_TYPE, Onnx__TypeProto__Optional, onnx__type_proto__optional__init);
        p->optional_type->elem_type = put_elem(w, t);
        break;
    case HN_TYPE_MAP:
        PUT(w, p, map_type, MAP_TYPE, Onnx__TypeProto__Map, onnx__type_proto__map__init);
        p->map_type->has_key_type = t->dtype != HN_UNDEFINED;
        p->map_type->key_type = (int32_t)t->dtype;
        p->map_type->value_type = put_elem(w, t);
        break;
    case HN_TYPE_OPAQUE:
        PUT(w, p, opaque_type, OPAQUE_TYPE, Onnx__TypeProto__Opaque, onnx__type_proto__opaque__init);
        p->opaque_type->domain = t->domain;
        p->opaque_type->name = t->name;
        break;
    }
}

Onnx__TypeProto *hn_onnx_put_type(HnOnnxWriter *w, const HnType *t)
{
    if (t->unknown) {
        ProtobufCMessage *p = hn_onnx_unpack(w, &onnx__type_proto__descriptor, t->unknown);
        if (p)
            return (Onnx__TypeProto *)p;
    }
    Onnx__TypeProto *p = HN_ONNX_ARRAY(w, Onnx__TypeProto, 1);
    onnx__type_proto__init(p);
    p->denotation = t->denotation;
    put_value(w, t, p);
    return p;
}
