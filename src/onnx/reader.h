/*
 * What the reading files of onnx/ share; nobody else includes this.
 *
 * Each reader takes the fields it understands out of the unpacked message (which is ours to change), and at the end
 * hn_onnx_rest() packs what is left: unknown fields, and whatever the ir has no place for.
 */
#pragma once

#include "ir/graph.h"
#include "onnx.pb-c.h"
#include "onnx/onnx.h"

G_BEGIN_DECLS

#define HN_ONNX_MAX_RANK 1024 /* dimensions of a tensor or type that is only data */

typedef struct {
    GBytes *bytes; /* the file: stubs of raw_data count from its start */
    const guint8 *data;
    gsize size;
    const char *base_dir;
    HnBudget *budget;
    gboolean keep_external, verify_data;
    const char *held_name; /* as in HnOnnxOptions */
    GBytes *held;
    HnModel *model;        /* NULL for tensor files */
    GHashTable *externals; /* real path -> GBytes, made with the first */
    GHashTable *sums;      /* GBytes of those -> SHA-1 in hexadecimal digits, made with the first */
    GHashTable *declared;  /* HnValue * of which a ValueInfoProto was read */
} HnOnnxReader;

void hn_onnx_reader_init(HnOnnxReader *r, GBytes *bytes, const char *base_dir, const HnOnnxOptions *options);
void hn_onnx_reader_clear(HnOnnxReader *r);

/* read.c: pieces of messages */
char *hn_onnx_take(char **s);                                                   /* a copy; *s is then absent */
HnPairs *hn_onnx_take_pairs(Onnx__StringStringEntryProto **entries, size_t *n); /* odd entries stay; NULL: none */
gboolean hn_onnx_rest(HnOnnxReader *r, ProtobufCMessage *p, GBytes **rest, GError **error); /* *rest NULL: nothing */
/* The whole message, raw_data put back. */
GBytes *hn_onnx_repack(HnOnnxReader *r, ProtobufCMessage *p, GError **error);

/* read_graph.c */
gboolean hn_onnx_read_graph(HnOnnxReader *r, Onnx__GraphProto *p, HnGraph *g, GError **error);
gboolean hn_onnx_read_function(HnOnnxReader *r, Onnx__FunctionProto *p, GError **error);
gboolean hn_onnx_read_opsets(HnOnnxReader *r, Onnx__OperatorSetIdProto **entries, size_t *n, GArray *opsets,
                             const HnGraph *g, GError **error); /* opsets: those of g's nodes */

/* read_attr.c: what n's attribute says, without adding it; n is NULL for a function's default, whose values are of g */
HnAttr *hn_onnx_read_attr(HnOnnxReader *r, Onnx__AttributeProto *p, HnGraph *g, HnNode *n, GError **error);

/* read_tensor.c; aligned: no matter how large it is */
HnTensor *hn_onnx_read_tensor(HnOnnxReader *r, Onnx__TensorProto *p, gboolean aligned, GError **error);
HnSparse *hn_onnx_read_sparse(HnOnnxReader *r, Onnx__SparseTensorProto *p, GError **error);

/* typed.c: the n elements of float_data and its like; takes the list out of p. Messages lack "tensor 'w'". */
HnTensor *hn_onnx_typed_read(HnOnnxReader *r, Onnx__TensorProto *p, int64_t n, GError **error);
gboolean hn_onnx_typed_present(const Onnx__TensorProto *p); /* any list has elements */

/* type.c */
HnType *hn_onnx_read_type(HnOnnxReader *r, Onnx__TypeProto *p, GError **error);

/* external.c: `need` bytes of a mapped file from *offset on; name is the tensor's */
GBytes *hn_onnx_external(HnOnnxReader *r, const char *name, const HnPairs *pairs, gsize need, gsize *offset,
                         GError **error);

G_END_DECLS
