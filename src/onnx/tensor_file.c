#include "onnx/tensor_file.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "onnx/kind.h"
#include "onnx/reader.h"
#include "onnx/wire.h"

/* Sequences, maps and optionals look like broken tensors, and like each other: their fields have the same numbers. */
static gboolean is_other(const HnOnnxReader *r)
{
    static const HnWireKind others[] = { HN_WIRE_SEQUENCE, HN_WIRE_OPTIONAL, HN_WIRE_MAP };
    for (guint i = 0; r->size > 0 && i < G_N_ELEMENTS(others); i++) {
        g_autoptr(HnWire) wire = hn_wire_new(r->data, r->size, others[i], r->budget, NULL, NULL);
        const ProtobufCMessage *p = wire ? hn_wire_root(wire) : NULL;
        if (p && p->n_unknown_fields == 0)
            return TRUE;
    }
    return FALSE;
}

static HnTensor *read_tensor(HnOnnxReader *r, GError **error)
{
    g_autoptr(HnWire) wire = hn_wire_new(r->data, r->size, HN_WIRE_TENSOR, r->budget, NULL, error);
    if (!wire)
        return NULL;
    return hn_onnx_read_tensor(r, (Onnx__TensorProto *)hn_wire_root(wire), TRUE, error);
}

/* takes cause: what a reader of tensors has against the bytes */
static void no_tensor(const HnOnnxReader *r, GError *cause, GError **error)
{
    const char *kind = cause->code == HN_ERROR_FORMAT ? hn_onnx_other_kind(r->data, r->size) : NULL;
    if (kind) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "not an ONNX tensor: it looks like %s", kind);
        g_error_free(cause);
    } else {
        g_propagate_error(error, cause);
    }
}

HnTensor *hn_onnx_tensor_read_bytes(GBytes *bytes, HnBudget *budget, GError **error)
{
    HnOnnxReader r;
    g_autoptr(GError) cause = NULL;
    hn_onnx_reader_init(&r, bytes, NULL, &(HnOnnxOptions){ .budget = budget });
    HnTensor *t = read_tensor(&r, &cause);
    if (!t) {
        gboolean odd = cause->code == HN_ERROR_FORMAT || cause->code == HN_ERROR_UNSUPPORTED;
        if (odd && is_other(&r))
            g_set_error_literal(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                                "a sequence, map or optional, and only tensors are computed with");
        else
            no_tensor(&r, g_steal_pointer(&cause), error);
    }
    hn_onnx_reader_clear(&r);
    return t;
}

HnTensor *hn_onnx_tensor_read(const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) bytes = hn_file_bytes(path, budget, error);
    if (bytes && g_bytes_get_size(bytes) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is empty", strcmp(path, "-") ? path : "stdin");
        return NULL;
    }
    HnTensor *t = bytes ? hn_onnx_tensor_read_bytes(bytes, budget, error) : NULL;
    if (bytes && !t)
        g_prefix_error(error, "'%s': ", strcmp(path, "-") ? path : "stdin");
    return t;
}
