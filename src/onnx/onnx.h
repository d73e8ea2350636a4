/*
 * ONNX models in and out.
 *
 * Reading maps the file and leaves its weights there: a tensor is a slice of the mapping, of the model's own file or of
 * one with external data. A large slice that is not aligned to its elements is marked `misaligned`, and
 * hn_tensor_align() copies it when somebody needs it; everything small is aligned at once.
 *
 * Nothing is lost between reading and writing: what the ir has no place for (unknown fields, explicit defaults,
 * devices, training, value_info of values that do not exist) travels as bytes in the `unknown` fields and comes out
 * again. Only the order of fields, redundant encodings and the way a tensor is stored (see HnExternal) may change.
 *
 * Messages begin with the file in quotes: "'m.onnx': tensor 'w' needs 16 bytes but holds 12".
 */
#pragma once

#include "base/budget.h"
#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct {
    HnBudget *budget;       /* of what is unpacked and copied, and of tensors made later; NULL: unlimited */
    gboolean keep_external; /* external data is not looked for: its tensors are `unloaded` */
    gboolean verify_data;   /* files of external data are compared with the checksums that the model gives */
    const char *held_name;  /* of external data that has no file yet; NULL: there is none */
    GBytes *held;           /* its bytes */
} HnOnnxOptions;

/* "-" is stdin; external data is then relative to the working directory. options may be NULL. The model is verified
 * (hn_model_verify()); path and file_bytes (external files included) are filled in.
 * Errors: IO, FORMAT, GRAPH, UNSUPPORTED, BUDGET. */
HnModel *hn_onnx_read_file(const char *path, const HnOnnxOptions *options, GError **error);
/* The same from bytes, which the model's weights keep alive; base_dir is where external data lies, NULL: ".". */
HnModel *hn_onnx_read_bytes(GBytes *bytes, const char *base_dir, const HnOnnxOptions *options, GError **error);

/* Where the elements of initializers go. Tensors of attributes stay in the model. */
typedef enum {
    HN_EXTERNAL_AUTO,     /* into the model, beyond 2 GB as ONE_FILE */
    HN_EXTERNAL_INLINE,   /* into the model; UNSUPPORTED beyond the 2 GB of a protobuf message */
    HN_EXTERNAL_ONE_FILE, /* initializers of 1 kB and more into PATH.HASH.data beside the model (onnx/pair.h) */
    HN_EXTERNAL_KEEP,     /* what was external still names its old file: right only in the folder it came from */
} HnExternal;

typedef struct {
    HnExternal external;
    HnBudget *budget; /* of lists that have to be converted; NULL: unlimited */
    guint64 *bytes;   /* of all that was written, data file included; may be NULL */
    /* Looks at the model as it is read back from what was written, before that gets its name; FALSE with an error: it
     * does not get it. May be NULL. */
    gboolean (*check)(gpointer data, HnModel *written, GError **error);
    gpointer data;
} HnOnnxWriteOptions;

/* "-" is stdout. Data first, then the model, each put in place as a whole; on failure the target is as it was. Data
 * files that the replaced model had from hone and nobody needs any more are removed. The model may be written over the
 * files it was read from. Errors: IO, BUDGET, UNSUPPORTED, INTERRUPTED, USAGE (ONE_FILE beside a pipe); with `check`
 * also GUARD: what was written cannot be read back. */
gboolean hn_onnx_write_file(const HnModel *m, const char *path, const HnOnnxWriteOptions *options, GError **error);
/* Removes a model and the data file that hone wrote beside it. */
void hn_onnx_remove(const char *path);
/* How long the file would be with everything inline. */
gboolean hn_onnx_size(const HnModel *m, HnBudget *budget, gsize *bytes, GError **error);
/* Everything inline. */
GBytes *hn_onnx_write_bytes(const HnModel *m, HnBudget *budget, GError **error);

G_END_DECLS
