/* Elements as lists of numbers: float_data, int32_data and so on, to the bytes that raw_data would have and back. */
#include <string.h>

#include "base/error.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

typedef enum { LIST_F32, LIST_I32, LIST_STRING, LIST_I64, LIST_F64, LIST_U64, LIST_COUNT } List;

static const char *const list_names[LIST_COUNT] = { "float_data", "int32_data",  "string_data",
                                                    "int64_data", "double_data", "uint64_data" };

static List list_of(HnDtype dtype)
{
    switch (dtype) {
    case HN_F32:
    case HN_C64:
        return LIST_F32;
    case HN_F64:
    case HN_C128:
        return LIST_F64;
    case HN_I64:
        return LIST_I64;
    case HN_U32:
    case HN_U64:
        return LIST_U64;
    case HN_STRING:
        return LIST_STRING;
    default:
        return LIST_I32;
    }
}

static size_t *list_len(Onnx__TensorProto *p, List list)
{
    size_t *const lens[LIST_COUNT] = { &p->n_float_data, &p->n_int32_data,  &p->n_string_data,
                                       &p->n_int64_data, &p->n_double_data, &p->n_uint64_data };
    return lens[list];
}

static gboolean is_6bit(HnDtype dtype)
{
    return dtype == HN_F6E2M3 || dtype == HN_F6E3M2;
}

/* Entries of the list for n elements: complex ones take two; of packed types a byte each, except for the 6-bit ones. */
static gsize entries_of(HnDtype dtype, int64_t n)
{
    unsigned bits = hn_dtype_bits(dtype);
    if (dtype == HN_C64 || dtype == HN_C128)
        return 2 * (gsize)n;
    return bits == 0 || bits >= 8 || is_6bit(dtype) ? (gsize)n : ((gsize)n * bits + 7) / 8;
}

gboolean hn_onnx_typed_present(const Onnx__TensorProto *p)
{
    const size_t floats = p->n_float_data | p->n_double_data;
    return (floats | p->n_int32_data | p->n_int64_data | p->n_uint64_data | p->n_string_data) != 0;
}

static void put_6bit(guint8 *data, gsize i, guint code)
{
    gsize bit = i * 6;
    data[bit / 8] |= (guint8)(code << bit % 8);
    if (bit % 8 > 2)
        data[bit / 8 + 1] |= (guint8)(code >> (8 - bit % 8));
}

static guint get_6bit(const guint8 *data, gsize i)
{
    gsize bit = i * 6;
    guint v = data[bit / 8] >> bit % 8;
    if (bit % 8 > 2)
        v |= (guint)data[bit / 8 + 1] << (8 - bit % 8);
    return v & 63;
}

/* Small types may stand as signed or as unsigned numbers: both are the same bits. */
static gboolean fill_i32(HnTensor *t, const int32_t *list, gsize count, GError **error)
{
    unsigned bits = is_6bit(t->dtype) ? 6 : MAX(hn_dtype_bits(t->dtype), 8);
    if (is_6bit(t->dtype))
        memset(t->data, 0, t->bytes);
    for (gsize i = 0; i < count; i++) {
        int32_t v = list[i];
        if (bits < 32 && (v < -(1 << (bits - 1)) || v >= 1 << bits)) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "holds %d, which is no %s", v, hn_dtype_name(t->dtype));
            return FALSE;
        }
        if (bits == 6)
            put_6bit(t->data, i, (guint)v & 63);
        else if (bits == 8)
            ((guint8 *)t->data)[i] = (guint8)v;
        else if (bits == 16)
            ((guint16 *)t->data)[i] = (guint16)v;
        else
            ((int32_t *)t->data)[i] = v;
    }
    return TRUE;
}

static gboolean fill(HnTensor *t, const Onnx__TensorProto *p, List list, gsize count, GError **error)
{
    const void *from = NULL;
    switch (list) {
    case LIST_I32:
        return fill_i32(t, p->int32_data, count, error);
    case LIST_STRING:
        for (gsize i = 0; i < count; i++) {
            g_autoptr(GBytes) s = g_bytes_new(p->string_data[i].data, p->string_data[i].len);
            hn_tensor_set_string(t, (int64_t)i, s);
        }
        return TRUE;
    case LIST_U64:
        if (t->dtype == HN_U64) {
            from = p->uint64_data;
            break;
        }
        for (gsize i = 0; i < count; i++) {
            if (p->uint64_data[i] > G_MAXUINT32) {
                g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "holds %" G_GUINT64_FORMAT ", which is no u32",
                            p->uint64_data[i]);
                return FALSE;
            }
            ((guint32 *)t->data)[i] = (guint32)p->uint64_data[i];
        }
        return TRUE;
    case LIST_F32:
        from = p->float_data;
        break;
    case LIST_F64:
        from = p->double_data;
        break;
    default:
        from = p->int64_data;
    }
    if (t->bytes > 0)
        memcpy(t->data, from, t->bytes);
    return TRUE;
}

HnTensor *hn_onnx_typed_read(HnOnnxReader *r, Onnx__TensorProto *p, int64_t n, GError **error)
{
    HnDtype dtype = (HnDtype)p->data_type;
    List list = list_of(dtype);
    for (int i = 0; i < LIST_COUNT; i++)
        if ((List)i != list && *list_len(p, (List)i) > 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "holds %s elements in %s", hn_dtype_name(dtype),
                        list_names[i]);
            return NULL;
        }
    gsize *len = list_len(p, list), count = entries_of(dtype, n);
    if (*len != count) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "needs %" G_GSIZE_FORMAT " entries of %s but has %" G_GSIZE_FORMAT, count, list_names[list], *len);
        return NULL;
    }
    g_autoptr(HnTensor) t = hn_tensor_new_uninit(dtype, (int)p->n_dims, p->dims, r->budget, error);
    if (!t || !fill(t, p, list, count, error))
        return NULL;
    t->stored = HN_STORED_TYPED;
    *len = 0;
    return g_steal_pointer(&t);
}

/* --- and back ------------------------------------------------------------------------------------------------------
 */

/* Memory for a list; NULL after an error. */
static gpointer list_new(HnOnnxWriter *w, gsize n, gsize size)
{
    gpointer block = w->error ? NULL : hn_budget_alloc_n(w->budget, n, size, &w->error);
    if (block && !w->lists)
        w->lists = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    if (block)
        g_ptr_array_add(w->lists, hn_budget_bytes(w->budget, block, n * size));
    return block;
}

static int32_t i32_of(const HnTensor *t, gsize i)
{
    switch (t->dtype) {
    case HN_I32:
        return ((const int32_t *)t->data)[i];
    case HN_I16:
        return ((const int16_t *)t->data)[i];
    case HN_U16:
    case HN_F16:
    case HN_BF16:
        return ((const guint16 *)t->data)[i];
    case HN_I8:
        return ((const int8_t *)t->data)[i];
    case HN_F6E2M3:
    case HN_F6E3M2:
        return (int32_t)get_6bit(t->data, i);
    default:
        return ((const guint8 *)t->data)[i];
    }
}

static void put_strings(HnOnnxWriter *w, const HnTensor *t, Onnx__TensorProto *p)
{
    p->n_string_data = (size_t)t->n;
    p->string_data = HN_ONNX_ARRAY(w, ProtobufCBinaryData, t->n);
    for (int64_t i = 0; i < t->n; i++) {
        gsize len;
        gconstpointer data = g_bytes_get_data(hn_tensor_get_string(t, i), &len);
        p->string_data[i] = (ProtobufCBinaryData){ len, (guint8 *)(guintptr)data };
    }
}

void hn_onnx_put_typed(HnOnnxWriter *w, const HnTensor *t, Onnx__TensorProto *p)
{
    gsize count = entries_of(t->dtype, t->n);
    switch (list_of(t->dtype)) {
    case LIST_STRING:
        put_strings(w, t, p);
        return;
    case LIST_F32:
        p->n_float_data = count;
        p->float_data = t->data;
        return;
    case LIST_F64:
        p->n_double_data = count;
        p->double_data = t->data;
        return;
    case LIST_I64:
        p->n_int64_data = count;
        p->int64_data = t->data;
        return;
    case LIST_U64:
        p->uint64_data = t->dtype == HN_U64 ? t->data : list_new(w, count, sizeof *p->uint64_data);
        for (gsize i = 0; p->uint64_data && t->dtype == HN_U32 && i < count; i++)
            p->uint64_data[i] = ((const guint32 *)t->data)[i];
        p->n_uint64_data = p->uint64_data ? count : 0;
        return;
    default:
        p->int32_data = t->dtype == HN_I32 ? t->data : list_new(w, count, sizeof *p->int32_data);
        for (gsize i = 0; p->int32_data && t->dtype != HN_I32 && i < count; i++)
            p->int32_data[i] = i32_of(t, i);
        p->n_int32_data = p->int32_data ? count : 0;
    }
}
