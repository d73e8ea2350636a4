/*
 * NumPy's .npz: named arrays in a zip archive.
 *
 * HnNpz reads the headers of all arrays when it is opened and elements when they are asked for, rows of an array alone
 * too. The first use of an array reads all of it and compares its CRC, so that damaged elements are an error. One that
 * is compressed (numpy.savez_compressed) stays unpacked then; of one that is stored (numpy.savez) later uses read only
 * what they ask for. All functions may be called from several threads at once.
 *
 * Names of arrays are no paths: nothing that is read is looked for or written under one. In archives that hone writes
 * they cannot become any either. A '/', '\', '%', control character, broken UTF-8 and a '.' in front are written as '%'
 * and two hexadecimal digits a byte, and of a name beyond 200 bytes the end as "%~" and 16 digits of its SHA-256:
 * names stay apart, and hn_npz_find() knows both forms.
 */
#pragma once

#include "data/npy.h"
#include "ir/type.h"

G_BEGIN_DECLS

typedef struct HnNpz HnNpz;

typedef struct {
    char *name; /* without ".npy" */
    HnNpyHead head;
} HnNpzArray;

/* Whether these bytes begin like a zip archive. */
gboolean hn_npz_is(gconstpointer data, gsize size);

/* name is for messages. Members that are no .npy are passed over; two of one name are an error. Errors: FORMAT,
 * UNSUPPORTED, BUDGET. */
HnNpz *hn_npz_open(GBytes *bytes, const char *name, HnBudget *budget, GError **error);
void hn_npz_free(HnNpz *z);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnNpz, hn_npz_free)

int hn_npz_count(const HnNpz *z);
const HnNpzArray *hn_npz_array(const HnNpz *z, int i);
int hn_npz_find(const HnNpz *z, const char *name); /* -1: none of that name */

HnTensor *hn_npz_read(HnNpz *z, int i, GError **error);
/* n rows along the first axis; the array has one, and rows first to first + n - 1 in it. */
HnTensor *hn_npz_rows(HnNpz *z, int i, int64_t first, int64_t n, GError **error);
/* n pieces of so many rows each, one behind the other: the k-th begins with row first[k]. */
HnTensor *hn_npz_pieces(HnNpz *z, int i, const int64_t *first, int64_t n, int64_t rows, GError **error);

/* Values that are no tensors, npz_list.c: NAME.0, NAME.1, ... are a sequence, NAME.keys and NAME.values a map, NAME an
 * optional that holds something. Is there anything of the value? And what it is; errors: FORMAT, BUDGET. */
gboolean hn_npz_has_list(const HnNpz *z, const char *name, const HnType *type);
HnTensor *hn_npz_read_list(HnNpz *z, const char *name, const HnType *type, HnBudget *budget, GError **error);
/* The arrays that stand for t, a tensor or not, are added to both: names to be freed, tensors of t. */
void hn_npz_flatten(const char *name, HnTensor *t, GPtrArray *names, GPtrArray *tensors);

/* Stored, not compressed; the same arrays give the same bytes. "-" is stdout. */
gboolean hn_npz_write(const char *path, const char *const *names, HnTensor *const *tensors, int n, HnBudget *budget,
                      GError **error);

G_END_DECLS
