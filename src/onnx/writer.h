/*
 * What the writing files of onnx/ share; nobody else includes this.
 *
 * A model becomes a tree of protobuf-c's messages in an arena: strings and elements are borrowed from the ir, so the
 * tree costs about as much as the nodes do. The first error stays in the writer; functions go on and return what they
 * have.
 */
#pragma once

#include "ir/graph.h"
#include "onnx.pb-c.h"
#include "onnx/onnx.h"

G_BEGIN_DECLS

/* Where elements go in the data file. */
typedef struct {
    const HnTensor *tensor;
    guint64 offset;
} HnOnnxPlace;

typedef struct {
    HnBudget *budget;
    HnExternal external; /* never AUTO */
    char *location;      /* ONE_FILE: what the model calls the data file */
    char sum[41];        /* ONE_FILE: its SHA-1 in hexadecimal digits */
    GPtrArray *chunks;   /* the arena: g_malloc0 each */
    gsize used;          /* bytes of the newest chunk */
    GPtrArray *lists;    /* GBytes *: converted lists */
    GPtrArray *data;     /* ONE_FILE: HnOnnxPlace * in the arena, in the order of their offsets */
    GHashTable *places;  /* ONE_FILE: the elements' address -> HnOnnxPlace * */
    guint64 data_size;   /* ONE_FILE: bytes so far */
    GError *error;
} HnOnnxWriter;

void hn_onnx_writer_init(HnOnnxWriter *w, HnExternal external, HnBudget *budget);
void hn_onnx_writer_clear(HnOnnxWriter *w);
gpointer hn_onnx_alloc(HnOnnxWriter *w, gsize size); /* zeroed, aligned to 16 */
#define HN_ONNX_ARRAY(w, type, n) ((type *)hn_onnx_alloc(w, (gsize)(n) * sizeof(type)))

/* The offset in the data file of elements that go there; those of several tensors only once. */
guint64 hn_onnx_place(HnOnnxWriter *w, const HnTensor *t);

/* Into p->unknown_fields; field `except` is left out where it is not 0. */
void hn_onnx_put_unknown(HnOnnxWriter *w, ProtobufCMessage *p, GBytes *unknown, guint32 except);
Onnx__StringStringEntryProto **hn_onnx_put_pairs(HnOnnxWriter *w, const HnPairs *pairs, size_t *n);
Onnx__StringStringEntryProto *hn_onnx_put_pair(HnOnnxWriter *w, const char *key, const char *value);
/* A message out of bytes that were one when they were read; NULL: they are not. */
ProtobufCMessage *hn_onnx_unpack(HnOnnxWriter *w, const ProtobufCMessageDescriptor *type, GBytes *bytes);

Onnx__ModelProto *hn_onnx_put_model(HnOnnxWriter *w, const HnModel *m);
Onnx__GraphProto *hn_onnx_put_graph(HnOnnxWriter *w, const HnGraph *g);
Onnx__ValueInfoProto *hn_onnx_put_info(HnOnnxWriter *w, const HnValue *v);
Onnx__AttributeProto *hn_onnx_put_attr(HnOnnxWriter *w, const HnAttr *a);
Onnx__TypeProto *hn_onnx_put_type(HnOnnxWriter *w, const HnType *t);
/* name instead of the tensor's own; is_weight: the elements may go to the data file */
Onnx__TensorProto *hn_onnx_put_tensor(HnOnnxWriter *w, HnTensor *t, const char *name, gboolean is_weight);
Onnx__SparseTensorProto *hn_onnx_put_sparse(HnOnnxWriter *w, const HnSparse *s, const char *name);
void hn_onnx_put_typed(HnOnnxWriter *w, const HnTensor *t, Onnx__TensorProto *p); /* typed.c */

/* Packed in memory of the budget; NULL with the error. */
GBytes *hn_onnx_pack(const ProtobufCMessage *p, HnBudget *budget, GError **error);

G_END_DECLS
