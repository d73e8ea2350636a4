#include "onnx/reader.h"

#include <string.h>

#include "base/error.h"
#include "onnx/wire.h"

/* "tensor 'w' ..." */
static gboolean fail(GError **error, HnError code, const char *name, const char *format, ...) G_GNUC_PRINTF(4, 5);

static gboolean fail(GError **error, HnError code, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    if (name && *name)
        g_set_error(error, HN_ERROR, code, "tensor '%s' %s", name, text);
    else
        g_set_error(error, HN_ERROR, code, "the tensor %s", text);
    return FALSE;
}

/* Elements and bytes that the shape asks for; of strings the bytes are 0. */
static gboolean measure(const Onnx__TensorProto *p, int64_t *n, gsize *need, GError **error)
{
    if (p->data_type <= HN_UNDEFINED || p->data_type >= HN_DTYPE_COUNT)
        return fail(error, HN_ERROR_FORMAT, p->name, "has the unknown element type %d", p->data_type);
    if (p->segment)
        return fail(error, HN_ERROR_UNSUPPORTED, p->name, "is one segment of a tensor");
    if (p->n_dims > HN_ONNX_MAX_RANK)
        return fail(error, HN_ERROR_FORMAT, p->name, "has %" G_GSIZE_FORMAT " dimensions", p->n_dims);
    for (size_t i = 0; i < p->n_dims; i++)
        if (p->dims[i] < 0)
            return fail(error, HN_ERROR_FORMAT, p->name, "has the negative size %" G_GINT64_FORMAT, p->dims[i]);
    *need = 0;
    if (!hn_dims_count((int)p->n_dims, p->dims, n) || *n > PTRDIFF_MAX / (int64_t)sizeof(GBytes *) ||
        (p->data_type != HN_STRING && (!hn_dtype_bytes((HnDtype)p->data_type, *n, need) || *need > PTRDIFF_MAX)))
        return fail(error, HN_ERROR_FORMAT, p->name, "has more elements than memory could hold");
    return TRUE;
}

static gboolean holds(const Onnx__TensorProto *p, gsize need, gsize have, GError **error)
{
    return need == have || fail(error, HN_ERROR_FORMAT, p->name,
                                "needs %" G_GSIZE_FORMAT " bytes but holds %" G_GSIZE_FORMAT, need, have);
}

static HnTensor *slice(HnOnnxReader *r, const Onnx__TensorProto *p, GBytes *bytes, gsize offset, gboolean aligned,
                       GError **error)
{
    HnDtype dtype = (HnDtype)p->data_type;
    int rank = (int)p->n_dims;
    return aligned ? hn_tensor_new_bytes(dtype, rank, p->dims, bytes, offset, r->budget, error)
                   : hn_tensor_new_mapped(dtype, rank, p->dims, bytes, offset, r->budget, error);
}

static HnTensor *read_raw(HnOnnxReader *r, Onnx__TensorProto *p, gsize need, gboolean aligned, GError **error)
{
    gsize offset, length;
    if (!hn_wire_stub_decode(p->raw_data.data, p->raw_data.len, r->size, &offset, &length)) {
        fail(error, HN_ERROR_FORMAT, p->name, "changed while it was read");
        return NULL;
    }
    if (p->data_type == HN_STRING) {
        fail(error, HN_ERROR_FORMAT, p->name, "holds strings as raw data");
        return NULL;
    }
    if (!holds(p, need, length, error))
        return NULL;
    p->has_raw_data = FALSE;
    return slice(r, p, r->bytes, offset, aligned, error);
}

static HnTensor *read_external(HnOnnxReader *r, Onnx__TensorProto *p, gsize need, gboolean aligned, GError **error)
{
    if (p->data_type == HN_STRING) {
        fail(error, HN_ERROR_FORMAT, p->name, "holds strings as external data");
        return NULL;
    }
    g_autoptr(GPtrArray) pairs = hn_onnx_take_pairs(p->external_data, &p->n_external_data);
    g_autoptr(HnTensor) t = NULL;
    if (r->keep_external) {
        static const guint64 nothing[2];
        t = hn_tensor_new_borrowed((HnDtype)p->data_type, (int)p->n_dims, p->dims, (void *)(guintptr)nothing);
        t->bytes = 0;
        t->unloaded = TRUE;
    } else {
        gsize offset;
        g_autoptr(GBytes) bytes = hn_onnx_external(r, p->name ? p->name : "", pairs, need, &offset, error);
        t = bytes ? slice(r, p, bytes, offset, aligned, error) : NULL;
        if (!t)
            return NULL;
    }
    t->extra = g_steal_pointer(&pairs);
    t->stored = HN_STORED_EXTERNAL;
    p->has_data_location = FALSE;
    return g_steal_pointer(&t);
}

/* Wherever the elements are; what is in two places is refused. */
static HnTensor *read_elements(HnOnnxReader *r, Onnx__TensorProto *p, int64_t n, gsize need, gboolean aligned,
                               GError **error)
{
    gsize offset, length = 0;
    gboolean typed = hn_onnx_typed_present(p);
    if (p->has_raw_data)
        hn_wire_stub_decode(p->raw_data.data, p->raw_data.len, r->size, &offset, &length);
    gboolean external = p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (p->has_data_location && !external && p->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT) {
        fail(error, HN_ERROR_FORMAT, p->name, "has the unknown data location %d", (int)p->data_location);
        return NULL;
    }
    if ((length > 0) + typed + external > 1) {
        fail(error, HN_ERROR_FORMAT, p->name, "holds its elements twice");
        return NULL;
    }
    if (external) {
        p->has_raw_data = FALSE;
        return read_external(r, p, need, aligned, error);
    }
    if (p->has_raw_data && !typed)
        return read_raw(r, p, need, aligned, error);
    p->has_raw_data = FALSE;
    if (!typed && p->data_type != HN_STRING && !holds(p, need, 0, error))
        return NULL;
    HnTensor *t = hn_onnx_typed_read(r, p, n, error);
    if (!t) {
        g_autofree char *prefix =
            g_strdup_printf(p->name && *p->name ? "tensor '%s' " : "the tensor %s", p->name ? p->name : "");
        g_prefix_error(error, "%s", prefix);
    }
    return t;
}

HnTensor *hn_onnx_read_tensor(HnOnnxReader *r, Onnx__TensorProto *p, gboolean aligned, GError **error)
{
    int64_t n;
    gsize need;
    if (!measure(p, &n, &need, error))
        return NULL;
    g_autoptr(HnTensor) t = read_elements(r, p, n, need, aligned, error);
    if (!t)
        return NULL;
    for (gsize i = 0; t->dtype == HN_BOOL && i < t->bytes; i++) {
        guint8 b = ((const guint8 *)t->data)[i];
        if (b > 1) {
            fail(error, HN_ERROR_FORMAT, p->name, "holds %d as a bool", b);
            return NULL;
        }
    }
    p->has_data_type = FALSE;
    p->n_dims = 0;
    t->name = hn_onnx_take(&p->name);
    t->doc = hn_onnx_take(&p->doc_string);
    t->metadata = hn_onnx_take_pairs(p->metadata_props, &p->n_metadata_props);
    if (!hn_onnx_rest(r, &p->base, &t->unknown, error))
        return NULL;
    return g_steal_pointer(&t);
}

static gboolean read_sparse(HnOnnxReader *r, Onnx__SparseTensorProto *p, HnSparse *s, GError **error)
{
    int64_t n;
    if (!p->values || !p->indices) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "a sparse tensor has no values or no indices");
        return FALSE;
    }
    if (p->n_dims > HN_ONNX_MAX_RANK || !hn_dims_count((int)p->n_dims, p->dims, &n)) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "a sparse tensor has impossible dimensions");
        return FALSE;
    }
    s->ndim = (int)p->n_dims;
    s->dims = s->ndim > 0 ? g_memdup2(p->dims, p->n_dims * sizeof *s->dims) : NULL;
    s->values = hn_onnx_read_tensor(r, p->values, TRUE, error);
    s->indices = s->values ? hn_onnx_read_tensor(r, p->indices, TRUE, error) : NULL;
    if (!s->indices)
        return FALSE;
    p->values = p->indices = NULL;
    p->n_dims = 0;
    return hn_onnx_rest(r, &p->base, &s->unknown, error);
}

HnSparse *hn_onnx_read_sparse(HnOnnxReader *r, Onnx__SparseTensorProto *p, GError **error)
{
    HnSparse *s = g_new0(HnSparse, 1);
    if (read_sparse(r, p, s, error))
        return s;
    hn_sparse_free(s);
    return NULL;
}
