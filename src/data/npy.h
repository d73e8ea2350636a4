/*
 * NumPy's .npy: one array in a file. Versions 1.0 to 3.0 are read, 1.0 is written.
 *
 * Big-endian arrays and those in Fortran order are converted; objects, dates and records are refused as
 * UNSUPPORTED. Strings are NumPy's, all of one width: of Unicode where all of them are UTF-8, else of bytes. NumPy has
 * no bfloat16 of its own: as the ml_dtypes package does, it is written as '<V2', and two bytes without a meaning ('V2')
 * are read as bf16. The 8-bit floats and all types below 8 bits are refused.
 *
 * Messages begin with the name that is passed in, in quotes.
 */
#pragma once

#include "base/file.h"
#include "ir/tensor.h"

G_BEGIN_DECLS

#define HN_NPY_HEAD ((gsize)1 << 16) /* the longest header that is read, in bytes */

typedef struct {
    HnDtype dtype;
    int ndim;
    int64_t dims[HN_MAX_RANK];
    int64_t n;        /* elements */
    gsize bytes;      /* of all elements */
    gsize offset;     /* of the first element, from the start of the file */
    gboolean fortran; /* first index fastest */
    gboolean big;     /* big-endian */
    gsize width;      /* of strings: bytes of an element in the file */
    gboolean unicode; /* of strings: characters of 4 bytes, not bytes */
} HnNpyHead;

/* Whether these bytes begin like a .npy file. */
gboolean hn_npy_is(gconstpointer data, gsize size);

/* Reads the header out of the first bytes of a file (all of it, or at least HN_NPY_HEAD). Errors: FORMAT, UNSUPPORTED.
 */
gboolean hn_npy_parse(gconstpointer data, gsize size, const char *name, HnNpyHead *head, GError **error);

/* The tensor whose elements, head->bytes of them, stand at bytes[offset] as the header says: a slice of bytes where
 * nothing has to be converted. Errors: FORMAT where there are too few, BUDGET. */
HnTensor *hn_npy_tensor(const HnNpyHead *head, GBytes *bytes, gsize offset, const char *name, HnBudget *budget,
                        GError **error);

/* Elements of a file, head->bytes of them and in C order, become those of a tensor where they are. Errors: FORMAT. */
gboolean hn_npy_convert(const HnNpyHead *head, void *elements, const char *name, GError **error);

/* The same for strings, into a tensor of its own. Errors: FORMAT, BUDGET. */
HnTensor *hn_npy_strings(const HnNpyHead *head, const void *elements, const char *name, HnBudget *budget,
                         GError **error);

HnTensor *hn_npy_read(const char *path, HnBudget *budget, GError **error); /* "-" is stdin */
HnTensor *hn_npy_read_bytes(GBytes *bytes, const char *name, HnBudget *budget, GError **error);

/* The header alone, for elements that are written behind it. NULL with UNSUPPORTED for a type that .npy has not, and
 * for strings. */
GBytes *hn_npy_header(HnDtype dtype, int ndim, const int64_t *dims, GError **error);
GBytes *hn_npy_header_of(const char *descr, int ndim, const int64_t *dims);
/* A whole file of strings, whose width follows from all of them. Errors: UNSUPPORTED where one ends with a zero;
 * BUDGET.
 */
GBytes *hn_npy_text_file(const HnTensor *t, HnBudget *budget, GError **error);
gboolean hn_npy_write(HnOutFile *out, const HnTensor *t, GError **error);

G_END_DECLS
