/*
 * Files of one TensorProto, SequenceProto, OptionalProto or MapProto, such as the input_0.pb of a test set.
 */
#pragma once

#include "base/budget.h"
#include "ir/type.h"

G_BEGIN_DECLS

/* "-" is stdin. The elements are aligned; where they can be, a slice of the mapped file. The file's name for the tensor
 * is in `name`, NULL where it gives none. Errors: IO, FORMAT, BUDGET; UNSUPPORTED for a sequence, map or optional. */
HnTensor *hn_onnx_tensor_read(const char *path, HnBudget *budget, GError **error);
HnTensor *hn_onnx_tensor_read_bytes(GBytes *bytes, HnBudget *budget, GError **error);

/* What a value of this type (NULL: a tensor) is stored as. The files do not say themselves what they are: a sequence of
 * one tensor is the same bytes as an optional with one. Errors: UNSUPPORTED for sparse tensors in it, and for maps
 * whose values are no scalars, too. */
HnTensor *hn_onnx_value_read(const char *path, const HnType *type, HnBudget *budget, GError **error);
HnTensor *hn_onnx_value_read_bytes(GBytes *bytes, const HnType *type, HnBudget *budget, GError **error);

/* The elements as raw_data (strings as strings), under `name` if not NULL; "-" is stdout. */
gboolean hn_onnx_tensor_write(const char *path, const HnTensor *t, const char *name, GError **error);
GBytes *hn_onnx_tensor_write_bytes(const HnTensor *t, const char *name, HnBudget *budget, GError **error);

G_END_DECLS
