#include "ir/tensor.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"
#include "ir/type.h"

gboolean hn_dims_count(int ndim, const int64_t *dims, int64_t *n)
{
    int64_t product = 1; /* of all but zeros: partial products (strides) must fit as well */
    gboolean empty = FALSE;
    for (int i = 0; i < ndim; i++) {
        if (dims[i] < 0 || !hn_mul_i64(product, dims[i] ? dims[i] : 1, &product))
            return FALSE;
        empty |= dims[i] == 0;
    }
    *n = empty ? 0 : product;
    return TRUE;
}

static gboolean count_bytes(HnDtype dtype, int64_t n, size_t *bytes)
{
    if (hn_dtype_is_refs(dtype))
        return hn_mul_size((size_t)n, sizeof(gpointer), bytes);
    return hn_dtype_bytes(dtype, n, bytes);
}

static void print_type(HnDtype dtype, int ndim, const int64_t *dims, GString *out)
{
    g_string_append_printf(out, "%s[", hn_dtype_name(dtype));
    for (int i = 0; i < ndim; i++)
        g_string_append_printf(out, "%s%" G_GINT64_FORMAT, i ? "," : "", dims[i]);
    g_string_append_c(out, ']');
}

static char *describe(HnDtype dtype, int ndim, const int64_t *dims)
{
    GString *s = g_string_new(NULL);
    print_type(dtype, ndim, dims, s);
    return g_string_free(s, FALSE);
}

/* Everything but the elements. NULL with SHAPE where the size cannot be counted. */
static HnTensor *tensor_alloc(HnDtype dtype, int ndim, const int64_t *dims, GError **error)
{
    int64_t n;
    size_t bytes;
    if (!hn_dims_count(ndim, dims, &n) || !count_bytes(dtype, n, &bytes) || bytes > PTRDIFF_MAX) {
        g_autofree char *text = describe(dtype, ndim, dims);
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "a tensor %s cannot be held in memory", text);
        return NULL;
    }
    HnTensor *t = g_malloc0(sizeof(HnTensor) + (size_t)ndim * sizeof(int64_t));
    t->ref = 1;
    t->dtype = dtype;
    t->ndim = ndim;
    t->n = n;
    t->bytes = bytes;
    for (int i = 0; i < ndim; i++)
        t->dims[i] = dims[i];
    return t;
}

/* Memory of its own; strings are empty ones, so that freeing is safe. */
static gboolean tensor_own(HnTensor *t, gboolean clear, HnBudget *budget, GError **error)
{
    void *data = clear || hn_tensor_is_list(t) ? hn_budget_alloc0(budget, t->bytes, error)
                                               : hn_budget_alloc(budget, t->bytes, error);
    if (!data)
        return FALSE;
    t->data = data;
    t->own = TRUE;
    t->budget = hn_budget_ref(budget);
    if (t->dtype == HN_STRING) {
        GBytes **s = data, *empty = NULL;
        for (int64_t i = 0; i < t->n; i++) {
            if (i % (1 << 20) == 0) /* the count of references is an int */
                empty = g_bytes_new_static("", 0);
            else
                g_bytes_ref(empty);
            s[i] = empty;
        }
    }
    return TRUE;
}

static HnTensor *tensor_make(HnDtype dtype, int ndim, const int64_t *dims, gboolean clear, HnBudget *budget,
                             GError **error)
{
    g_autoptr(HnTensor) t = tensor_alloc(dtype, ndim, dims, error);
    if (!t || !tensor_own(t, clear, budget, error))
        return NULL;
    return g_steal_pointer(&t);
}

HnTensor *hn_tensor_new(HnDtype dtype, int ndim, const int64_t *dims, HnBudget *budget, GError **error)
{
    return tensor_make(dtype, ndim, dims, TRUE, budget, error);
}

HnTensor *hn_tensor_new_uninit(HnDtype dtype, int ndim, const int64_t *dims, HnBudget *budget, GError **error)
{
    return tensor_make(dtype, ndim, dims, FALSE, budget, error);
}

/* A misaligned slice of up to `most` bytes is copied. */
static HnTensor *tensor_slice(HnDtype dtype, int ndim, const int64_t *dims, GBytes *bytes, gsize offset, size_t most,
                              HnBudget *budget, GError **error)
{
    if (hn_dtype_is_refs(dtype)) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "strings cannot be read from raw bytes");
        return NULL;
    }
    g_autoptr(HnTensor) t = tensor_alloc(dtype, ndim, dims, error);
    if (!t)
        return NULL;
    gsize size = g_bytes_get_size(bytes), rest = offset <= size ? size - offset : 0;
    if (rest < t->bytes) {
        g_autofree char *text = hn_tensor_describe(t);
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "tensor %s needs %" G_GSIZE_FORMAT " bytes but holds %" G_GSIZE_FORMAT, text, t->bytes, rest);
        return NULL;
    }
    const guint8 *start = g_bytes_get_data(bytes, NULL);
    size_t align = MAX(hn_dtype_size(dtype), 1);
    gboolean aligned = t->bytes > 0 && (uintptr_t)(start + offset) % align == 0;
    if (aligned || t->bytes > most) {
        t->misaligned = !aligned;
        t->data = (void *)(uintptr_t)(start + offset); /* never written to: see the header */
        t->owner = g_bytes_ref(bytes);
    } else {
        if (!tensor_own(t, FALSE, budget, error))
            return NULL;
        if (t->bytes > 0)
            memcpy(t->data, start + offset, t->bytes);
    }
    return g_steal_pointer(&t);
}

HnTensor *hn_tensor_new_bytes(HnDtype dtype, int ndim, const int64_t *dims, GBytes *bytes, gsize offset,
                              HnBudget *budget, GError **error)
{
    return tensor_slice(dtype, ndim, dims, bytes, offset, SIZE_MAX, budget, error);
}

HnTensor *hn_tensor_new_mapped(HnDtype dtype, int ndim, const int64_t *dims, GBytes *bytes, gsize offset,
                               HnBudget *budget, GError **error)
{
    return tensor_slice(dtype, ndim, dims, bytes, offset, HN_TENSOR_SMALL, budget, error);
}

gboolean hn_tensor_align(HnTensor *t, HnBudget *budget, GError **error)
{
    if (!t->misaligned)
        return TRUE;
    const void *from = t->data;
    if (!tensor_own(t, FALSE, budget, error))
        return FALSE;
    memcpy(t->data, from, t->bytes);
    g_clear_pointer(&t->owner, g_bytes_unref);
    t->misaligned = FALSE;
    return TRUE;
}

HnTensor *hn_tensor_new_borrowed(HnDtype dtype, int ndim, const int64_t *dims, void *data)
{
    HnTensor *t = tensor_alloc(dtype, ndim, dims, NULL);
    g_assert(t);
    t->data = data;
    return t;
}

static void unref_keeper(gpointer t)
{
    hn_tensor_unref(t);
}

const char *hn_tensor_extra(const HnTensor *t, const char *key)
{
    for (guint i = 0; t->extra != NULL && i + 1 < t->extra->len; i += 2)
        if (strcmp(t->extra->pdata[i], key) == 0)
            return t->extra->pdata[i + 1];
    return NULL;
}

gboolean hn_tensor_has_dims(const HnTensor *t, int ndim, const int64_t *dims)
{
    gboolean same = t->ndim == ndim;
    for (int i = 0; i < ndim && same; i++)
        same = t->dims[i] == dims[i];
    return same;
}

gboolean hn_tensor_same_dims(const HnTensor *a, const HnTensor *b)
{
    return hn_tensor_has_dims(a, b->ndim, b->dims);
}

gboolean hn_tensor_same_form(const HnTensor *a, const HnTensor *b)
{
    return a->dtype == b->dtype && hn_tensor_same_dims(a, b);
}

HnTensor *hn_tensor_reshaped(HnTensor *t, int ndim, const int64_t *dims)
{
    HnTensor *r = tensor_alloc(t->dtype, ndim, dims, NULL);
    g_assert(r && r->n == t->n);
    r->data = t->data;
    r->misaligned = t->misaligned;
    r->stored = t->stored;
    r->owner = t->owner ? g_bytes_ref(t->owner)
                        : g_bytes_new_with_free_func(t->data, t->bytes, unref_keeper, hn_tensor_ref(t));
    return r;
}

HnTensor *hn_tensor_copy(const HnTensor *t, HnBudget *budget, GError **error)
{
    HnTensor *r = hn_tensor_new_uninit(t->dtype, t->ndim, t->dims, budget, error);
    if (!r)
        return NULL;
    r->stored = t->stored == HN_STORED_EXTERNAL ? HN_STORED_RAW : t->stored;
    if (t->dtype == HN_STRING)
        for (int64_t i = 0; i < t->n; i++)
            hn_tensor_set_string(r, i, hn_tensor_get_string(t, i));
    else if (hn_tensor_is_list(t))
        for (int64_t i = 0; i < t->n; i++)
            hn_tensor_set_item(r, i, hn_tensor_get_item(t, i));
    else if (t->bytes > 0)
        memcpy(r->data, t->data, t->bytes);
    return r;
}

void hn_tensor_copy_elements(HnTensor *y, int64_t to, const HnTensor *x, int64_t from, int64_t n)
{
    const size_t size = hn_dtype_size(x->dtype);
    if (x->dtype == HN_STRING)
        for (int64_t i = 0; i < n; i++)
            hn_tensor_set_string(y, to + i, hn_tensor_get_string(x, from + i));
    else if (n > 0)
        memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)from * size, (size_t)n * size);
}

HnTensor *hn_tensor_new_list(HnDtype kind, int64_t n, HnBudget *budget, GError **error)
{
    g_assert(hn_dtype_is_list(kind));
    return hn_tensor_new(kind, 1, &n, budget, error);
}

HnTensor *hn_tensor_get_item(const HnTensor *list, int64_t i)
{
    return ((HnTensor *const *)list->data)[i];
}

void hn_tensor_set_item(HnTensor *list, int64_t i, HnTensor *item)
{
    HnTensor **p = (HnTensor **)list->data + i, *old = *p;
    *p = hn_tensor_ref(item);
    hn_tensor_unref(old);
}

/* A handful of bytes outside any budget. */
static HnTensor *tensor_small(HnDtype dtype, int ndim, int64_t n)
{
    gsize bytes = (gsize)n * hn_dtype_size(dtype);
    gpointer data = g_malloc(MAX(bytes, 8));
    HnTensor *t = hn_tensor_new_borrowed(dtype, ndim, &n, data);
    t->owner = g_bytes_new_take(data, bytes);
    return t;
}

HnTensor *hn_tensor_scalar_i64(int64_t v)
{
    HnTensor *t = tensor_small(HN_I64, 0, 0);
    *(int64_t *)t->data = v;
    return t;
}

HnTensor *hn_tensor_scalar_f32(float v)
{
    HnTensor *t = tensor_small(HN_F32, 0, 0);
    *(float *)t->data = v;
    return t;
}

HnTensor *hn_tensor_ints(const int64_t *v, int64_t n)
{
    HnTensor *t = tensor_small(HN_I64, 1, n);
    if (n > 0)
        memcpy(t->data, v, (size_t)n * sizeof *v);
    return t;
}

HnTensor *hn_tensor_ref(HnTensor *t)
{
    if (t)
        g_atomic_int_inc(&t->ref);
    return t;
}

void hn_tensor_unref(HnTensor *t)
{
    if (!t || !g_atomic_int_dec_and_test(&t->ref))
        return;
    if (t->own) {
        if (t->dtype == HN_STRING)
            for (int64_t i = 0; i < t->n; i++)
                g_bytes_unref(((GBytes **)t->data)[i]);
        for (int64_t i = 0; hn_tensor_is_list(t) && i < t->n; i++)
            hn_tensor_unref(hn_tensor_get_item(t, i));
        hn_budget_free(t->budget, t->data);
        hn_budget_unref(t->budget);
    }
    if (t->owner)
        g_bytes_unref(t->owner);
    g_free(t->name);
    g_free(t->doc);
    if (t->extra)
        g_ptr_array_unref(t->extra);
    if (t->metadata)
        g_ptr_array_unref(t->metadata);
    if (t->unknown)
        g_bytes_unref(t->unknown);
    g_free(t);
}

static gboolean is_six_bits(HnDtype d)
{
    return d == HN_F6E2M3 || d == HN_F6E3M2;
}

/* Element i of a packed type, its bits in the low end. */
static unsigned get_packed(const HnTensor *t, int64_t i)
{
    unsigned bits = hn_dtype_bits(t->dtype), shift = (unsigned)(i % 8) * bits;
    const guint8 *p = (const guint8 *)t->data + i / 8 * bits + shift / 8;
    unsigned low = p[0] >> shift % 8, high = shift % 8 + bits > 8 ? (unsigned)p[1] << (8 - shift % 8) : 0;
    return (low | high) & ((1u << bits) - 1);
}

static void set_packed(HnTensor *t, int64_t i, unsigned v)
{
    unsigned bits = hn_dtype_bits(t->dtype), shift = (unsigned)(i % 8) * bits;
    unsigned mask = ((1u << bits) - 1) << shift % 8, at = v << shift % 8;
    guint8 *p = (guint8 *)t->data + i / 8 * bits + shift / 8;
    p[0] = (guint8)((p[0] & ~mask) | (at & mask));
    if (mask > 0xff) /* six bits over a byte's end */
        p[1] = (guint8)((p[1] & ~(mask >> 8)) | (at & mask) >> 8);
}

/* 6-bit floats: a sign, 2 or 3 bits of exponent, the rest fraction; no infinity, no NaN. */
static double six_to_f64(HnDtype d, unsigned code)
{
    unsigned m = d == HN_F6E2M3 ? 3 : 2, e = code >> m & ((1u << (5 - m)) - 1), f = code & ((1u << m) - 1);
    int bias = d == HN_F6E2M3 ? 1 : 3;
    double x = ldexp(e ? (1u << m) + f : f, (int)MAX(e, 1) - bias - (int)m);
    return code & 32 ? -x : x;
}

/* Nearest, ties to even, saturated; NaN is 0. */
static unsigned six_from_f64(HnDtype d, double v)
{
    unsigned best = 0;
    double x = fabs(v);
    if (isnan(v))
        return 0;
    for (unsigned c = 1; c < 32; c++) { /* codes of positive numbers ascend */
        double middle = (six_to_f64(d, c - 1) + six_to_f64(d, c)) / 2;
        if (x > middle || (x == middle && c % 2 == 0))
            best = c;
    }
    return best | (signbit(v) ? 32 : 0);
}

static gboolean small_format(HnDtype d, HnSmallFloat *format)
{
    switch (d) {
    case HN_F8E4M3FN:
        *format = HN_SMALL_E4M3FN;
        return TRUE;
    case HN_F8E4M3FNUZ:
        *format = HN_SMALL_E4M3FNUZ;
        return TRUE;
    case HN_F8E5M2:
        *format = HN_SMALL_E5M2;
        return TRUE;
    case HN_F8E5M2FNUZ:
        *format = HN_SMALL_E5M2FNUZ;
        return TRUE;
    case HN_F8E8M0:
        *format = HN_SMALL_E8M0;
        return TRUE;
    case HN_F4E2M1:
        *format = HN_SMALL_E2M1;
        return TRUE;
    default:
        return FALSE;
    }
}

/* The integer types; FALSE for all others. u64 comes back as its bits. */
static gboolean get_int(const HnTensor *t, int64_t i, int64_t *v)
{
    switch (t->dtype) {
    case HN_I8:
        *v = ((const int8_t *)t->data)[i];
        return TRUE;
    case HN_U8:
        *v = ((const uint8_t *)t->data)[i];
        return TRUE;
    case HN_BOOL:
        *v = ((const uint8_t *)t->data)[i] != 0;
        return TRUE;
    case HN_I16:
        *v = ((const int16_t *)t->data)[i];
        return TRUE;
    case HN_U16:
        *v = ((const uint16_t *)t->data)[i];
        return TRUE;
    case HN_I32:
        *v = ((const int32_t *)t->data)[i];
        return TRUE;
    case HN_U32:
        *v = ((const uint32_t *)t->data)[i];
        return TRUE;
    case HN_I64:
    case HN_U64:
        *v = ((const int64_t *)t->data)[i];
        return TRUE;
    case HN_U4:
    case HN_U2:
        *v = get_packed(t, i);
        return TRUE;
    case HN_I4:
        *v = (int64_t)(get_packed(t, i) ^ 8) - 8;
        return TRUE;
    case HN_I2:
        *v = (int64_t)(get_packed(t, i) ^ 2) - 2;
        return TRUE;
    default:
        return FALSE;
    }
}

/* Element i alone in aligned memory of 16 bytes. */
static HnTensor one_element(const HnTensor *t, int64_t i, void *buffer)
{
    HnTensor one = *t;
    size_t size = hn_dtype_size(t->dtype);
    memcpy(buffer, (const guint8 *)t->data + (size_t)i * size, size);
    one.data = buffer;
    one.misaligned = FALSE;
    return one;
}

double hn_tensor_get_f64(const HnTensor *t, int64_t i)
{
    if (t->misaligned) {
        _Alignas(16) guint8 buffer[16];
        HnTensor one = one_element(t, i, buffer);
        return hn_tensor_get_f64(&one, 0);
    }
    int64_t v;
    HnSmallFloat format;
    if (get_int(t, i, &v))
        return t->dtype == HN_U64 ? (double)(uint64_t)v : (double)v;
    if (is_six_bits(t->dtype))
        return six_to_f64(t->dtype, get_packed(t, i));
    if (small_format(t->dtype, &format))
        return hn_small_to_f32(format, t->dtype == HN_F4E2M1 ? (guint8)get_packed(t, i) : ((const guint8 *)t->data)[i]);
    switch (t->dtype) {
    case HN_F32:
        return ((const float *)t->data)[i];
    case HN_F64:
        return ((const double *)t->data)[i];
    case HN_F16:
        return hn_f16_to_f32(((const uint16_t *)t->data)[i]);
    case HN_BF16:
        return hn_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case HN_C64:
        return ((const float *)t->data)[2 * i];
    case HN_C128:
        return ((const double *)t->data)[2 * i];
    default:
        return NAN;
    }
}

/* Truncated towards zero and saturated; NaN is 0. */
static int64_t i64_from_f64(double x)
{
    if (isnan(x))
        return 0;
    if (x >= 0x1p63)
        return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

int64_t hn_tensor_get_i64(const HnTensor *t, int64_t i)
{
    if (t->misaligned) {
        _Alignas(16) guint8 buffer[16];
        HnTensor one = one_element(t, i, buffer);
        return hn_tensor_get_i64(&one, 0);
    }
    int64_t v;
    if (get_int(t, i, &v))
        return t->dtype == HN_U64 && v < 0 ? INT64_MAX : v;
    return i64_from_f64(hn_tensor_get_f64(t, i));
}

/* The integer types, wrapped; FALSE for all others. */
static gboolean set_int(HnTensor *t, int64_t i, uint64_t v)
{
    switch (t->dtype) {
    case HN_I8:
    case HN_U8:
        ((uint8_t *)t->data)[i] = (uint8_t)v;
        return TRUE;
    case HN_BOOL:
        ((uint8_t *)t->data)[i] = v != 0;
        return TRUE;
    case HN_I16:
    case HN_U16:
        ((uint16_t *)t->data)[i] = (uint16_t)v;
        return TRUE;
    case HN_I32:
    case HN_U32:
        ((uint32_t *)t->data)[i] = (uint32_t)v;
        return TRUE;
    case HN_I64:
    case HN_U64:
        ((uint64_t *)t->data)[i] = v;
        return TRUE;
    case HN_U4:
    case HN_I4:
    case HN_U2:
    case HN_I2:
        set_packed(t, i, (unsigned)(v & 15));
        return TRUE;
    default:
        return FALSE;
    }
}

/* The float types, correctly rounded from either source. */
static void set_float(HnTensor *t, int64_t i, double v)
{
    HnSmallFloat format;
    switch (t->dtype) {
    case HN_F64:
        ((double *)t->data)[i] = v;
        return;
    case HN_F32:
        ((float *)t->data)[i] = (float)v;
        return;
    case HN_F16:
        ((uint16_t *)t->data)[i] = hn_f16_from_f64(v);
        return;
    case HN_BF16:
        ((uint16_t *)t->data)[i] = hn_bf16_from_f64(v);
        return;
    case HN_C64:
        ((float *)t->data)[2 * i] = (float)v;
        ((float *)t->data)[2 * i + 1] = 0;
        return;
    case HN_C128:
        ((double *)t->data)[2 * i] = v;
        ((double *)t->data)[2 * i + 1] = 0;
        return;
    case HN_F6E2M3:
    case HN_F6E3M2:
        set_packed(t, i, six_from_f64(t->dtype, v));
        return;
    case HN_F8E8M0:
        ((guint8 *)t->data)[i] = hn_e8m0_from_f64(v, HN_E8M0_UP, TRUE);
        return;
    default:
        if (!small_format(t->dtype, &format))
            return;
        if (format == HN_SMALL_E2M1)
            set_packed(t, i, hn_small_from_f64(format, v, TRUE));
        else
            ((guint8 *)t->data)[i] = hn_small_from_f64(format, v, TRUE);
    }
}

void hn_tensor_set_f64(HnTensor *t, int64_t i, double v)
{
    if (t->dtype == HN_BOOL)
        ((uint8_t *)t->data)[i] = v != 0;
    else if (t->dtype == HN_U64 && v >= 0x1p63)
        ((uint64_t *)t->data)[i] = v < 0x1p64 ? (uint64_t)v : UINT64_MAX;
    else if (!set_int(t, i, (uint64_t)i64_from_f64(v)))
        set_float(t, i, v);
}

void hn_tensor_set_i64(HnTensor *t, int64_t i, int64_t v)
{
    if (set_int(t, i, (uint64_t)v))
        return;
    if (t->dtype == HN_F32) {
        ((float *)t->data)[i] = (float)v;
        return;
    }
    /* Beyond 53 bits a sticky last bit keeps the second rounding right; f64 itself rounds once. */
    if (t->dtype != HN_F64 && t->dtype != HN_C128 && (v > 1LL << 53 || v < -(1LL << 53)) && (v & 0xfff))
        v = (v & ~(int64_t)0xfff) | 0x800;
    set_float(t, i, (double)v);
}

GBytes *hn_tensor_get_string(const HnTensor *t, int64_t i)
{
    return ((GBytes *const *)t->data)[i];
}

void hn_tensor_set_string(HnTensor *t, int64_t i, GBytes *s)
{
    GBytes **p = (GBytes **)t->data + i, *old = *p;
    *p = g_bytes_ref(s);
    g_bytes_unref(old);
}

gboolean hn_tensor_equal(const HnTensor *a, const HnTensor *b)
{
    if (a == b)
        return TRUE;
    if (a->dtype != b->dtype || a->ndim != b->ndim || a->bytes != b->bytes)
        return FALSE;
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i])
            return FALSE;
    if (a->dtype == HN_STRING) {
        for (int64_t i = 0; i < a->n; i++)
            if (!g_bytes_equal(hn_tensor_get_string(a, i), hn_tensor_get_string(b, i)))
                return FALSE;
        return TRUE;
    }
    for (int64_t i = 0; hn_tensor_is_list(a) && i < a->n; i++)
        if (!hn_tensor_equal(hn_tensor_get_item(a, i), hn_tensor_get_item(b, i)))
            return FALSE;
    return hn_tensor_is_list(a) || a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
}

guint hn_tensor_hash(const HnTensor *t)
{
    const gsize places = 16; /* of 8 bytes each */
    guint64 h = 14695981039346656037u ^ (guint64)t->dtype;
    for (int i = 0; i < t->ndim; i++)
        h = (h ^ (guint64)t->dims[i]) * 1099511628211u;
    if (hn_dtype_is_refs(t->dtype))
        return (guint)(h ^ h >> 32);
    const gsize n = MIN(t->bytes, sizeof(guint64));
    for (gsize i = 0; i < places; i++) {
        const gsize at = (t->bytes - n) / (places - 1) * i;
        guint64 piece = 0;
        memcpy(&piece, (const char *)t->data + MIN(at, t->bytes - n), n);
        h = (h ^ piece) * 1099511628211u;
    }
    return (guint)(h ^ h >> 32);
}

char *hn_tensor_describe(const HnTensor *t)
{
    if (!hn_tensor_is_list(t))
        return describe(t->dtype, t->ndim, t->dims);
    g_autoptr(HnType) type = hn_type_of(t);
    char *text = hn_type_describe(type);
    if (t->dtype != HN_SEQUENCE)
        return text;
    g_autofree char *alone = text;
    return g_strdup_printf("%s of %" G_GINT64_FORMAT, alone, t->n);
}
