/*
 * HnTensor: elements in host memory with a type and fixed dimensions, row-major and contiguous.
 *
 * The bytes are counted: a slice of the mapped model file, heap memory of a budget, or borrowed from somebody who
 * outlives the tensor. A tensor that is shared or whose bytes come from a file is never written to.
 *
 * Types below 8 bits are packed two or four to a byte, low bits first, as in the file. bool is one byte, 0 or 1.
 * Strings (HN_STRING) are an array of n GBytes pointers, not necessarily valid UTF-8.
 *
 * Sequences, optionals and maps are tensors of rank 1, too, whose elements are n pointers to tensors, a reference each:
 * those of a sequence, the one or none of an optional, the keys and the values (two lists of one length) of a map. What
 * they hold is never written to again, so that any number of them may share it.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "base/budget.h"
#include "ir/dtype.h"

G_BEGIN_DECLS

#define HN_MAX_RANK 32       /* of what is computed; a file's tensors may have more as data */
#define HN_TENSOR_SMALL 4096 /* bytes: shapes, axes, scales; always aligned */

/* How the file stored the elements, so that writing gives back the same. */
typedef enum { HN_STORED_RAW, HN_STORED_TYPED, HN_STORED_EXTERNAL } HnStored;

typedef struct HnTensor {
    gint ref;
    HnDtype dtype;
    int ndim;
    int64_t n;     /* elements: the product of dims, 1 for ndim 0 */
    size_t bytes;  /* of data; those of n pointers for strings and lists */
    void *data;    /* aligned to the element size, or to 64 bytes where hone allocated it; not NULL even when n is 0 */
    GBytes *owner; /* keeps data alive; NULL: borrowed, or owned through `budget` when `own` is set */
    HnBudget *budget; /* whose memory data is, with `own` */
    gboolean own;
    gboolean misaligned; /* data is not aligned to the element size: hn_tensor_align() before it is used as elements */
    gboolean unloaded;   /* external data that was left in its file: no elements, bytes is 0 */
    HnStored stored;
    char *name, *doc;    /* as in the file; may be NULL */
    GPtrArray *extra;    /* external_data as in the file: (key, value) pairs like HnPairs; NULL mostly */
    GPtrArray *metadata; /* (key, value) pairs; NULL mostly */
    GBytes *unknown;     /* unknown protobuf fields, re-encoded on writing; NULL mostly */
    int64_t dims[];      /* ndim of them */
} HnTensor;

/* Product of dims; FALSE when one is negative or the product overflows. */
gboolean hn_dims_count(int ndim, const int64_t *dims, int64_t *n);

/* New zero-filled memory from the budget (NULL: unlimited). Errors: SHAPE (overflow), BUDGET. Strings are all empty. */
HnTensor *hn_tensor_new(HnDtype dtype, int ndim, const int64_t *dims, HnBudget *budget, GError **error);
/* Same, memory not cleared (strings excepted). */
HnTensor *hn_tensor_new_uninit(HnDtype dtype, int ndim, const int64_t *dims, HnBudget *budget, GError **error);
/* A view of bytes[offset...]: no copy where the address is aligned to the element size, else one copy into the budget.
 * Errors: FORMAT when the bytes are too few ("tensor 'w' needs 16 bytes but holds 12"). */
HnTensor *hn_tensor_new_bytes(HnDtype dtype, int ndim, const int64_t *dims, GBytes *bytes, gsize offset,
                              HnBudget *budget, GError **error);
/* The same, but a misaligned slice of more than HN_TENSOR_SMALL bytes stays where it is and is marked `misaligned`. */
HnTensor *hn_tensor_new_mapped(HnDtype dtype, int ndim, const int64_t *dims, GBytes *bytes, gsize offset,
                               HnBudget *budget, GError **error);
/* Gives a misaligned tensor aligned memory of the budget, in place; nothing to do for most. Whoever hands elements to
 * code that reads them as such (kernels, judges) calls it first, one thread at a time. hn_tensor_get_*(), _copy(),
 * _equal() and whatever only copies bytes take misaligned tensors as they are. */
gboolean hn_tensor_align(HnTensor *t, HnBudget *budget, GError **error);
/* Borrowed memory of at least the needed size: the caller guarantees size and lifetime. Never fails for dims that
 * hn_dims_count() accepted. */
HnTensor *hn_tensor_new_borrowed(HnDtype dtype, int ndim, const int64_t *dims, void *data);
/* What external_data in the file says under that key; NULL: nothing. */
const char *hn_tensor_extra(const HnTensor *t, const char *key);
gboolean hn_tensor_has_dims(const HnTensor *t, int ndim, const int64_t *dims);
gboolean hn_tensor_same_dims(const HnTensor *a, const HnTensor *b);
/* The same dims and type. */
gboolean hn_tensor_same_form(const HnTensor *a, const HnTensor *b);
/* Negative axes count from the end. */
static inline int hn_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}
/* Same elements, other dims of the same count (the caller checked it); keeps `t` alive. */
HnTensor *hn_tensor_reshaped(HnTensor *t, int ndim, const int64_t *dims);
/* Same elements in own memory that may be written to. */
HnTensor *hn_tensor_copy(const HnTensor *t, HnBudget *budget, GError **error);
/* Elements [from, from + n) of x become those of y, of the same type of whole bytes or strings, from `to` on. */
void hn_tensor_copy_elements(HnTensor *y, int64_t to, const HnTensor *x, int64_t from, int64_t n);
HnTensor *hn_tensor_scalar_i64(int64_t v);
HnTensor *hn_tensor_scalar_f32(float v);
HnTensor *hn_tensor_ints(const int64_t *v, int64_t n); /* i64[n] */

HnTensor *hn_tensor_ref(HnTensor *t);
void hn_tensor_unref(HnTensor *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnTensor, hn_tensor_unref)

/* Element i converted: any non-string type. Slow; for small things (axes, shapes, scalars) and judges. */
double hn_tensor_get_f64(const HnTensor *t, int64_t i);
int64_t hn_tensor_get_i64(const HnTensor *t, int64_t i); /* floats truncate, out of range saturates */
/* Stores with the target type's rounding; integers wrap. Packed types included. */
void hn_tensor_set_f64(HnTensor *t, int64_t i, double v);
void hn_tensor_set_i64(HnTensor *t, int64_t i, int64_t v);
GBytes *hn_tensor_get_string(const HnTensor *t, int64_t i);   /* borrowed */
void hn_tensor_set_string(HnTensor *t, int64_t i, GBytes *s); /* takes a reference of its own */

/* A sequence, an optional of n = 0 or 1, or a map (n = 2). The caller sets all n elements before anybody else sees it.
 */
HnTensor *hn_tensor_new_list(HnDtype kind, int64_t n, HnBudget *budget, GError **error);
static inline gboolean hn_tensor_is_list(const HnTensor *t)
{
    return hn_dtype_is_list(t->dtype);
}
HnTensor *hn_tensor_get_item(const HnTensor *list, int64_t i);      /* borrowed */
void hn_tensor_set_item(HnTensor *list, int64_t i, HnTensor *item); /* takes a reference of its own */
/* Both hold pointers: hn_tensor_get_f64() and bytes mean nothing. */
static inline gboolean hn_dtype_is_refs(HnDtype d)
{
    return d == HN_STRING || hn_dtype_is_list(d);
}

/* Type, dims and every byte (NaN payloads too) agree. */
gboolean hn_tensor_equal(const HnTensor *a, const HnTensor *b);
/* Of type, dims and some of the bytes; equal tensors have the same. */
guint hn_tensor_hash(const HnTensor *t);
/* "f32[1,3,224,224]"; "seq(f32[3]) of 2"; free with g_free. */
char *hn_tensor_describe(const HnTensor *t);

G_END_DECLS
