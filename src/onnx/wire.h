/*
 * A bounded walk over the bytes of an ONNX file, before protobuf-c sees any of them.
 *
 * hn_wire_compact() checks a file and copies it without its weights: wherever a TensorProto carries raw_data, the copy
 * carries a stub of 16 bytes that says where those bytes lie in the file. A mapped model of many gigabytes turns into
 * kilobytes that protobuf-c can unpack, and its weights are never touched. hn_wire_new() goes on and unpacks:
 *
 *   g_autoptr(HnWire) wire = hn_wire_new(data, size, HN_WIRE_MODEL, budget, error);
 *   const Onnx__ModelProto *model = hn_wire_root(wire);
 *   ...
 *   if (tensor->has_raw_data && hn_wire_stub_decode(tensor->raw_data.data, tensor->raw_data.len, size, &offset,
 * &length)) elements = data + offset;
 *
 * Every raw_data of a compacted message is a stub, an empty one too. Everything else is kept as it was, unknown fields
 * included; lists of numbers (float_data and the like) stay in the copy.
 *
 * What passes is safe to unpack. Refused with HN_ERROR_FORMAT, naming the byte in the file:
 *   - a length, number or tag that is cut off, longer than what encloses it, or longer than its encoding may be;
 *   - messages nested more than HN_WIRE_MAX_DEPTH deep below the root (readers of messages recurse);
 *   - a field whose encoding is not the one that onnx.proto gives it, packed and unpacked lists both being fine;
 *   - a single message given twice (the format would merge them) and a NUL inside a string (C would cut it);
 *   - groups, which no version of the format has;
 *   - more than 2 GB besides raw_data; with it, sizes are 64 bits.
 *
 * An empty input is an empty message. Time is linear in the size without raw_data. An unpacked message is up to 200
 * times as large as its bytes (an empty node is two bytes): the budget bounds that.
 */
#pragma once

#include "base/budget.h"

G_BEGIN_DECLS

#define HN_WIRE_MAX_DEPTH 100
#define HN_WIRE_STUB_SIZE 16 /* bytes: offset and length, u64 little-endian each */

/* What the bytes are; a new kind is a line here and one in wire.c. */
typedef enum {
    HN_WIRE_MODEL,
    HN_WIRE_GRAPH,
    HN_WIRE_FUNCTION,
    HN_WIRE_TENSOR,
    HN_WIRE_SPARSE_TENSOR,
    HN_WIRE_SEQUENCE,
    HN_WIRE_MAP,
    HN_WIRE_OPTIONAL,
    HN_WIRE_TYPE,
} HnWireKind;

/* The compacted copy, in memory of the budget. */
GBytes *hn_wire_compact(const guint8 *data, gsize size, HnWireKind kind, HnBudget *budget, GError **error);

/* A compacted message, unpacked into memory of the budget. The input may go away; the stubs still count from its start.
 */
typedef struct HnWire HnWire;

/* *objects: about the bytes that a reader will make of it, asked of the budget along with the message's own, so that
 * what cannot fit is refused before any of it is taken; NULL: nothing is made of it. */
HnWire *hn_wire_new(const guint8 *data, gsize size, HnWireKind kind, HnBudget *budget, gsize *objects, GError **error);
void hn_wire_free(HnWire *wire);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnWire, hn_wire_free)

/* The Onnx__ModelProto, Onnx__TensorProto, ... of the kind asked for. It lives as long as wire, and protobuf-c's own
 * free function is not for it. */
gconstpointer hn_wire_root(const HnWire *wire);

/* Where the raw_data of a compacted tensor lies in the input of size bytes; FALSE for what is no stub into it. */
gboolean hn_wire_stub_decode(const guint8 *stub, gsize stub_size, gsize size, gsize *offset, gsize *length);

G_END_DECLS
