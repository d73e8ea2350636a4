/*
 * ONNX test sets: folders with input_K.pb and output_K.pb, K counting the graph's inputs (those that are no
 * initializers) and outputs from 0.
 */
#pragma once

#include "ir/type.h"

G_BEGIN_DECLS

/* The test sets at path: path itself where it holds input_K.pb or output_K.pb, else its folders test_data_set_N in the
 * order of N; anything else there is ignored. An array of char *. Errors: IO; FORMAT where there is none. */
GPtrArray *hn_testset_find(const char *path, GError **error);

/* Reads PREFIX_0.pb to PREFIX_<n-1>.pb into tensors[n]; NULL where there is no such file. types[n] say what they are
 * (each may be NULL: a tensor). A file with a higher number is FORMAT; the other errors are those of
 * hn_onnx_value_read(). On failure tensors are left NULL. */
gboolean hn_testset_read(const char *folder, const char *prefix, int n, const HnType *const *types, HnTensor **tensors,
                         HnBudget *budget, GError **error);

/* Writes them; NULL ones are left out. The folder is made where it is missing. */
gboolean hn_testset_write(const char *folder, const char *prefix, int n, HnTensor *const *tensors,
                          const char *const *names, GError **error);

G_END_DECLS
