/* SequenceProto, OptionalProto and MapProto as files, both ways. */
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "onnx/reader.h"
#include "onnx/tensor_file.h"
#include "onnx/wire.h"
#include "onnx/writer.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

static HnTensor *read_sequence(HnOnnxReader *r, const Onnx__SequenceProto *p, GError **error);

static gboolean mixed(GError **error, const char *what)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "%s holds elements of several kinds", what);
    return FALSE;
}

static HnTensor *sparse(GError **error)
{
    g_set_error_literal(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "it holds sparse tensors, and only dense ones are computed with");
    return NULL;
}

static HnTensor *read_keys(HnOnnxReader *r, const Onnx__MapProto *p, GError **error)
{
    const int64_t n_ints = (int64_t)p->n_keys, n_strings = (int64_t)p->n_string_keys;
    const gboolean strings = n_ints == 0 && (n_strings > 0 || p->key_type == HN_STRING);
    if (n_ints > 0 && n_strings > 0 && !mixed(error, "the map's list of keys"))
        return NULL;
    if (!strings && n_ints > 0 && p->key_type == HN_STRING && !mixed(error, "the map's list of keys"))
        return NULL;
    HnTensor *t = hn_tensor_new(strings ? HN_STRING : HN_I64, 1, strings ? &n_strings : &n_ints, r->budget, error);
    for (int64_t i = 0; t && i < t->n; i++) {
        if (strings) {
            g_autoptr(GBytes) s = g_bytes_new(p->string_keys[i].data, p->string_keys[i].len);
            hn_tensor_set_string(t, i, s);
        } else {
            hn_tensor_set_i64(t, i, p->keys[i]);
        }
    }
    return t;
}

/* One tensor of n elements of n tensors of one element each. */
static HnTensor *read_map_values(HnOnnxReader *r, const Onnx__SequenceProto *p, int64_t n, GError **error)
{
    if (p ? p->n_tensor_values != (size_t)n : n > 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "a map of %" G_GINT64_FORMAT " keys has %" G_GSIZE_FORMAT " tensors as values", n,
                    p ? p->n_tensor_values : 0);
        return NULL;
    }
    g_autoptr(HnTensor) all = NULL;
    for (int64_t i = 0; i < n; i++) {
        g_autoptr(HnTensor) one = hn_onnx_read_tensor(r, p->tensor_values[i], TRUE, error);
        if (!one)
            return NULL;
        if (one->n != 1 || (all && one->dtype != all->dtype) ||
            (one->dtype != HN_STRING && hn_dtype_bits(one->dtype) < 8)) {
            g_set_error_literal(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                                "a map's values are no scalars of one type, which are the only ones computed with");
            return NULL;
        }
        if (!all && !(all = hn_tensor_new(one->dtype, 1, &n, r->budget, error)))
            return NULL;
        if (one->dtype == HN_STRING)
            hn_tensor_set_string(all, i, hn_tensor_get_string(one, 0));
        else
            memcpy((guint8 *)all->data + (gsize)i * one->bytes, one->data, one->bytes);
    }
    return all ? g_steal_pointer(&all) : hn_tensor_new(HN_F32, 1, &n, r->budget, error);
}

static HnTensor *read_map(HnOnnxReader *r, const Onnx__MapProto *p, GError **error)
{
    g_autoptr(HnTensor) keys = read_keys(r, p, error);
    g_autoptr(HnTensor) values = keys ? read_map_values(r, p->values, keys->n, error) : NULL;
    HnTensor *map = values ? hn_tensor_new_list(HN_MAP, 2, r->budget, error) : NULL;
    if (map) {
        hn_tensor_set_item(map, 0, keys);
        hn_tensor_set_item(map, 1, values);
    }
    return map;
}

static HnTensor *read_optional(HnOnnxReader *r, const Onnx__OptionalProto *p, GError **error)
{
    const int n =
        (p->tensor_value != NULL) + (p->sequence_value != NULL) + (p->map_value != NULL) + (p->optional_value != NULL);
    if (p->sparse_tensor_value)
        return sparse(error);
    if (n > 1 && !mixed(error, "the optional"))
        return NULL;
    HnTensor *t = hn_tensor_new_list(HN_OPTIONAL, n, r->budget, error);
    if (!t || n == 0)
        return t;
    g_autoptr(HnTensor) item = p->tensor_value     ? hn_onnx_read_tensor(r, p->tensor_value, TRUE, error)
                               : p->sequence_value ? read_sequence(r, p->sequence_value, error)
                               : p->map_value      ? read_map(r, p->map_value, error)
                                                   : read_optional(r, p->optional_value, error);
    if (item)
        hn_tensor_set_item(t, 0, item);
    else
        g_clear_pointer(&t, hn_tensor_unref);
    return t;
}

static HnTensor *read_item(HnOnnxReader *r, const Onnx__SequenceProto *p, size_t i, GError **error)
{
    return p->n_tensor_values     ? hn_onnx_read_tensor(r, p->tensor_values[i], TRUE, error)
           : p->n_sequence_values ? read_sequence(r, p->sequence_values[i], error)
           : p->n_map_values      ? read_map(r, p->map_values[i], error)
                                  : read_optional(r, p->optional_values[i], error);
}

static HnTensor *read_sequence(HnOnnxReader *r, const Onnx__SequenceProto *p, GError **error)
{
    const size_t n = p->n_tensor_values + p->n_sequence_values + p->n_map_values + p->n_optional_values;
    if (p->n_sparse_tensor_values)
        return sparse(error);
    if (n != MAX(MAX(p->n_tensor_values, p->n_sequence_values), MAX(p->n_map_values, p->n_optional_values)) &&
        !mixed(error, "the sequence"))
        return NULL;
    g_autoptr(HnTensor) t = hn_tensor_new_list(HN_SEQUENCE, (int64_t)n, r->budget, error);
    for (size_t i = 0; t && i < n; i++) {
        g_autoptr(HnTensor) item = read_item(r, p, i, error);
        if (!item) {
            g_prefix_error(error, "element %" G_GSIZE_FORMAT ": ", i);
            return NULL;
        }
        hn_tensor_set_item(t, (int64_t)i, item);
    }
    return g_steal_pointer(&t);
}

static HnTensor *read_list(HnOnnxReader *r, HnTypeKind kind, GError **error)
{
    const HnWireKind wires[] = {
        [HN_TYPE_SEQUENCE] = HN_WIRE_SEQUENCE, [HN_TYPE_OPTIONAL] = HN_WIRE_OPTIONAL, [HN_TYPE_MAP] = HN_WIRE_MAP
    };
    g_autoptr(HnWire) wire = hn_wire_new(r->data, r->size, wires[kind], r->budget, NULL, error);
    if (!wire)
        return NULL;
    const ProtobufCMessage *p = hn_wire_root(wire);
    if (p->n_unknown_fields > 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "it holds no %s, as the model declares",
                    kind == HN_TYPE_SEQUENCE ? "sequence"
                    : kind == HN_TYPE_MAP    ? "map"
                                             : "optional");
        return NULL;
    }
    return kind == HN_TYPE_SEQUENCE ? read_sequence(r, hn_wire_root(wire), error)
           : kind == HN_TYPE_MAP    ? read_map(r, hn_wire_root(wire), error)
                                    : read_optional(r, hn_wire_root(wire), error);
}

HnTensor *hn_onnx_value_read_bytes(GBytes *bytes, const HnType *type, HnBudget *budget, GError **error)
{
    if (!hn_type_is_list(type))
        return hn_onnx_tensor_read_bytes(bytes, budget, error);
    HnOnnxReader r;
    hn_onnx_reader_init(&r, bytes, NULL, &(HnOnnxOptions){ .budget = budget });
    HnTensor *t = read_list(&r, type->kind, error);
    hn_onnx_reader_clear(&r);
    return t;
}

HnTensor *hn_onnx_value_read(const char *path, const HnType *type, HnBudget *budget, GError **error)
{
    if (!hn_type_is_list(type))
        return hn_onnx_tensor_read(path, budget, error);
    g_autoptr(GBytes) bytes = hn_file_bytes(path, budget, error);
    HnTensor *t = bytes ? hn_onnx_value_read_bytes(bytes, type, budget, error) : NULL;
    if (bytes && !t)
        g_prefix_error(error, "'%s': ", strcmp(path, "-") ? path : "stdin");
    return t;
}

/* --- and back ------------------------------------------------------------------------------------------------------
 */

static Onnx__SequenceProto *put_sequence(HnOnnxWriter *w, const HnTensor *t, const char *name);

/* Only the elements: what else a weight's file said is not about these. */
static Onnx__TensorProto *put_plain(HnOnnxWriter *w, const HnTensor *t, const char *name)
{
    HnTensor plain = *t;
    plain.stored = HN_STORED_RAW;
    plain.doc = NULL;
    plain.metadata = NULL;
    plain.unknown = NULL;
    plain.name = NULL;
    Onnx__TensorProto *p = hn_onnx_put_tensor(w, &plain, name, FALSE);
    p->dims = (int64_t *)(guintptr)t->dims;
    return p;
}

/* Element i of a list of values, as a scalar. */
static Onnx__TensorProto *put_scalar(HnOnnxWriter *w, const HnTensor *t, int64_t i)
{
    const gsize size = t->dtype == HN_STRING ? sizeof(GBytes *) : hn_dtype_size(t->dtype);
    g_autoptr(HnTensor) one = hn_tensor_new_borrowed(t->dtype, 0, NULL, (guint8 *)t->data + (gsize)i * size);
    return put_plain(w, one, NULL);
}

static Onnx__MapProto *put_map(HnOnnxWriter *w, const HnTensor *t, const char *name)
{
    const HnTensor *keys = hn_tensor_get_item(t, 0), *values = hn_tensor_get_item(t, 1);
    Onnx__MapProto *p = HN_ONNX_ARRAY(w, Onnx__MapProto, 1);
    onnx__map_proto__init(p);
    p->name = (char *)(guintptr)name;
    p->has_key_type = TRUE;
    p->key_type = (int32_t)keys->dtype;
    const size_t n = (size_t)keys->n;
    if (keys->dtype == HN_STRING) {
        p->n_string_keys = n;
        p->string_keys = HN_ONNX_ARRAY(w, ProtobufCBinaryData, n);
        for (size_t i = 0; i < n; i++)
            p->string_keys[i].data =
                (guint8 *)(guintptr)g_bytes_get_data(hn_tensor_get_string(keys, (int64_t)i), &p->string_keys[i].len);
    } else {
        p->n_keys = n;
        p->keys = keys->data;
    }
    p->values = HN_ONNX_ARRAY(w, Onnx__SequenceProto, 1);
    onnx__sequence_proto__init(p->values);
    p->values->has_elem_type = TRUE;
    p->values->elem_type = ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
    p->values->n_tensor_values = n;
    p->values->tensor_values = HN_ONNX_ARRAY(w, Onnx__TensorProto *, n);
    for (size_t i = 0; i < n; i++)
        p->values->tensor_values[i] = put_scalar(w, values, (int64_t)i);
    return p;
}

static Onnx__OptionalProto *put_optional(HnOnnxWriter *w, const HnTensor *t, const char *name)
{
    Onnx__OptionalProto *p = HN_ONNX_ARRAY(w, Onnx__OptionalProto, 1);
    onnx__optional_proto__init(p);
    p->name = (char *)(guintptr)name;
    p->has_elem_type = TRUE;
    p->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__UNDEFINED;
    if (t->n == 0)
        return p;
    const HnTensor *item = hn_tensor_get_item(t, 0);
    switch (item->dtype) {
    case HN_SEQUENCE:
        p->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__SEQUENCE;
        p->sequence_value = put_sequence(w, item, NULL);
        return p;
    case HN_MAP:
        p->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__MAP;
        p->map_value = put_map(w, item, NULL);
        return p;
    case HN_OPTIONAL:
        p->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__OPTIONAL;
        p->optional_value = put_optional(w, item, NULL);
        return p;
    default:
        p->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__TENSOR;
        p->tensor_value = put_plain(w, item, NULL);
        return p;
    }
}

/* One list of a sequence: its elements as messages of one kind. */
#define PUT_ITEMS(field, FIELD, Type, put)                                          \
    do {                                                                            \
        p->elem_type = ONNX__SEQUENCE_PROTO__DATA_TYPE__##FIELD;                    \
        p->n_##field##_values = n;                                                  \
        p->field##_values = HN_ONNX_ARRAY(w, Type *, n);                            \
        for (size_t i = 0; i < n; i++)                                              \
            p->field##_values[i] = put(w, hn_tensor_get_item(t, (int64_t)i), NULL); \
    } while (0)

static Onnx__SequenceProto *put_sequence(HnOnnxWriter *w, const HnTensor *t, const char *name)
{
    Onnx__SequenceProto *p = HN_ONNX_ARRAY(w, Onnx__SequenceProto, 1);
    const size_t n = (size_t)t->n;
    onnx__sequence_proto__init(p);
    p->name = (char *)(guintptr)name;
    p->has_elem_type = TRUE;
    switch (n > 0 ? hn_tensor_get_item(t, 0)->dtype : HN_F32) {
    case HN_SEQUENCE:
        PUT_ITEMS(sequence, SEQUENCE, Onnx__SequenceProto, put_sequence);
        break;
    case HN_MAP:
        PUT_ITEMS(map, MAP, Onnx__MapProto, put_map);
        break;
    case HN_OPTIONAL:
        PUT_ITEMS(optional, OPTIONAL, Onnx__OptionalProto, put_optional);
        break;
    default:
        PUT_ITEMS(tensor, TENSOR, Onnx__TensorProto, put_plain);
        break;
    }
    return p;
}

static const ProtobufCMessage *put_value(HnOnnxWriter *w, const HnTensor *t, const char *name)
{
    switch (t->dtype) {
    case HN_SEQUENCE:
        return &put_sequence(w, t, name)->base;
    case HN_OPTIONAL:
        return &put_optional(w, t, name)->base;
    case HN_MAP:
        return &put_map(w, t, name)->base;
    default:
        return &put_plain(w, t, name)->base;
    }
}

GBytes *hn_onnx_tensor_write_bytes(const HnTensor *t, const char *name, HnBudget *budget, GError **error)
{
    HnOnnxWriter w;
    hn_onnx_writer_init(&w, HN_EXTERNAL_INLINE, budget);
    const ProtobufCMessage *p = put_value(&w, t, name);
    GBytes *bytes = NULL;
    if (w.error)
        g_propagate_error(error, g_steal_pointer(&w.error));
    else
        bytes = hn_onnx_pack(p, budget, error);
    hn_onnx_writer_clear(&w);
    return bytes;
}

gboolean hn_onnx_tensor_write(const char *path, const HnTensor *t, const char *name, GError **error)
{
    g_autoptr(GBytes) bytes = hn_onnx_tensor_write_bytes(t, name, NULL, error);
    return bytes && hn_out_save(path, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), error);
}
