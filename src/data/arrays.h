/*
 * HnArrays: the arrays of a .npz file, or the only one of a .npy file, and which of them a model's inputs get.
 */
#pragma once

#include "data/npz.h"
#include "ir/graph.h"

G_BEGIN_DECLS

#define HN_ARRAYS_LIST (-2)

typedef struct {
    char *name; /* for messages */
    HnNpz *npz;
    HnTensor *npy;
    int *of_input; /* per input: which array, -1: none, HN_ARRAYS_LIST: several, of a value that is no tensor */
    int label;     /* which array, -1: none */
} HnArrays;

/* Errors: FORMAT, UNSUPPORTED, BUDGET; IO of the latter. */
gboolean hn_arrays_open(HnArrays *a, GBytes *bytes, const char *name, HnBudget *budget, GError **error);
gboolean hn_arrays_read(HnArrays *a, const char *path, HnBudget *budget, GError **error);
void hn_arrays_clear(HnArrays *a);

int hn_arrays_count(const HnArrays *a);
int hn_array_rank(const HnArrays *a, int i);
const int64_t *hn_array_dims(const HnArrays *a, int i);
HnTensor *hn_array_read(const HnArrays *a, int i, GError **error);

/* n pieces of so many rows, which begin with rows first[0..n). */
HnTensor *hn_array_pieces(const HnArrays *a, int i, const int64_t *first, int64_t n, int64_t rows, HnBudget *budget,
                          GError **error);

/* Decide which array each input gets that is not given: by name, else the only one, else by position. Errors: FORMAT.
 */
gboolean hn_arrays_match(HnArrays *a, HnValue *const *inputs, HnTensor *const *given, int n, GError **error);

/* The tensor that an input is, or may be; NULL: it is none. optional may be NULL. */
const HnType *hn_input_tensor_type(const HnValue *v, gboolean *optional);

/* t, with leading dimensions of 1 where the input declares more than it has; takes t. */
HnTensor *hn_input_add_leading(const HnValue *input, HnTensor *t);

G_END_DECLS
