#include "onnx/wire.h"

#include <string.h>

#include "base/error.h"
#include "onnx.pb-c.h"

#define RAW_DATA_ID 9         /* TensorProto.raw_data */
#define MAX_ID 0x1fffffff     /* field numbers have 29 bits */
#define VARINT_SIZE 10        /* bytes of the longest number */
#define LENGTH_SIZE 5         /* bytes of a nested message's length, padded: it is known only after the message */
#define BIG_SIZE 8192         /* bytes: larger blocks are allocated one by one, so that they can go back */
#define MIN_CHUNK_SIZE 4096   /* bytes */
#define MAX_CHUNK_SIZE 262144 /* bytes */

/* The format's wire types */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_GROUP = 3, WIRE_GROUP_END = 4, WIRE_32 = 5 };

static const ProtobufCMessageDescriptor *const roots[] = {
    [HN_WIRE_MODEL] = &onnx__model_proto__descriptor,
    [HN_WIRE_GRAPH] = &onnx__graph_proto__descriptor,
    [HN_WIRE_FUNCTION] = &onnx__function_proto__descriptor,
    [HN_WIRE_TENSOR] = &onnx__tensor_proto__descriptor,
    [HN_WIRE_SPARSE_TENSOR] = &onnx__sparse_tensor_proto__descriptor,
    [HN_WIRE_SEQUENCE] = &onnx__sequence_proto__descriptor,
    [HN_WIRE_MAP] = &onnx__map_proto__descriptor,
    [HN_WIRE_OPTIONAL] = &onnx__optional_proto__descriptor,
    [HN_WIRE_TYPE] = &onnx__type_proto__descriptor,
};

/* About what the reader makes of a message besides its texts, in bytes: structures, tables, lists, and the pieces that
 * allocating rounds up to. */
static const struct {
    const ProtobufCMessageDescriptor *message;
    gsize bytes;
} made[] = {
    { &onnx__node_proto__descriptor, 264 },
    { &onnx__attribute_proto__descriptor, 176 },
    { &onnx__value_info_proto__descriptor, 96 },
    { &onnx__type_proto__descriptor, 112 },
    { &onnx__tensor_shape_proto__dimension__descriptor, 24 },
    { &onnx__tensor_proto__descriptor, 600 },
    { &onnx__graph_proto__descriptor, 1400 },
    { &onnx__function_proto__descriptor, 2600 },
    { &onnx__string_string_entry_proto__descriptor, 96 },
    { &onnx__operator_set_id_proto__descriptor, 64 },
};
#define MADE_NAME 16    /* an input or output of a node: its place in lists, and in the value's users */
#define MADE_OUTPUT 232 /* the value that a node makes */
#define MADE_STRING 80  /* an element of a list of strings */
#define MADE_UNKNOWN 128

/* One walk: the first measures (out is NULL) and checks, the second writes. */
typedef struct {
    const guint8 *data; /* the whole input; every position counts from here */
    guint8 *out;
    gsize room; /* bytes that may be written */
    gsize used;
    gsize unpacked, objects; /* bytes that protobuf-c and the reader will take; measured */
} Walk;

typedef struct {
    guint32 id;
    guint wire;
    gsize at;         /* of the tag */
    gsize start, end; /* payload, after a length */
} Field;

#define BAD(error, ...) (g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, __VA_ARGS__), FALSE)

static gboolean read_varint(const Walk *w, gsize *pos, gsize end, guint64 *value, GError **error)
{
    guint64 v = 0;
    for (guint i = 0; i < VARINT_SIZE; i++) {
        if (*pos + i >= end)
            return BAD(error, "the number at byte %" G_GSIZE_FORMAT " is cut off", *pos);
        guint8 byte = w->data[*pos + i];
        if (i == VARINT_SIZE - 1 && byte > 1)
            break;
        v |= (guint64)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *pos += i + 1;
            *value = v;
            return TRUE;
        }
    }
    return BAD(error, "the number at byte %" G_GSIZE_FORMAT " has more than 64 bits", *pos);
}

/* The field at *pos of a message that ends at end; *pos moves behind it. */
static gboolean read_field(const Walk *w, gsize *pos, gsize end, Field *field, GError **error)
{
    Field f = { .at = *pos };
    guint64 tag, length;
    if (!read_varint(w, pos, end, &tag, error))
        return FALSE;
    if (tag >> 3 == 0 || tag >> 3 > MAX_ID)
        return BAD(error, "the field at byte %" G_GSIZE_FORMAT " has the impossible number %" G_GUINT64_FORMAT, f.at,
                   tag >> 3);
    f.id = (guint32)(tag >> 3);
    f.wire = tag & 7;
    f.start = *pos;

    switch (f.wire) {
    case WIRE_VARINT:
        if (!read_varint(w, pos, end, &length, error))
            return FALSE;
        length = *pos - f.start;
        break;
    case WIRE_64:
        length = 8;
        break;
    case WIRE_32:
        length = 4;
        break;
    case WIRE_BYTES:
        if (!read_varint(w, pos, end, &length, error))
            return FALSE;
        f.start = *pos;
        break;
    case WIRE_GROUP:
    case WIRE_GROUP_END:
        return BAD(error, "the field at byte %" G_GSIZE_FORMAT " is a group, which ONNX does not have", f.at);
    default:
        return BAD(error, "the field at byte %" G_GSIZE_FORMAT " has the unknown wire type %u", f.at, f.wire);
    }
    if (length > end - f.start)
        return BAD(error,
                   "the field at byte %" G_GSIZE_FORMAT " claims %" G_GUINT64_FORMAT " bytes where %" G_GSIZE_FORMAT
                   " are left",
                   f.at, length, end - f.start);
    *pos = f.end = f.start + length;
    *field = f;
    return TRUE;
}

static guint wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return WIRE_32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return WIRE_64;
    default:
        return WIRE_VARINT;
    }
}

/* Numbers of a list, unpacked; those of tensors are counted where they are made. */
static void measure_numbers(Walk *w, const ProtobufCMessageDescriptor *message, gsize bytes)
{
    w->unpacked += bytes;
    if (message != &onnx__tensor_proto__descriptor)
        w->objects += bytes;
}

/* A list of numbers in one field: whole numbers only */
static gboolean check_packed(Walk *w, const ProtobufCMessageDescriptor *message, const Field *f, guint wire,
                             GError **error)
{
    gsize pos = f->start;
    guint64 value;
    if (wire != WIRE_VARINT) {
        gsize width = wire == WIRE_64 ? 8 : 4;
        measure_numbers(w, message, f->end - f->start);
        return (f->end - f->start) % width == 0 ||
               BAD(error, "the list at byte %" G_GSIZE_FORMAT " is not a multiple of %" G_GSIZE_FORMAT " bytes", f->at,
                   width);
    }
    gsize n = 0;
    for (; pos < f->end; n++)
        if (!read_varint(w, &pos, f->end, &value, error))
            return FALSE;
    measure_numbers(w, message, n * sizeof value);
    return TRUE;
}

/* What a text or a number in a field of its own costs, as far as it adds up. */
static void measure_field(Walk *w, const ProtobufCMessageDescriptor *message, const ProtobufCFieldDescriptor *desc,
                          gsize length)
{
    gboolean many = desc->label == PROTOBUF_C_LABEL_REPEATED, text = wire_of(desc->type) == WIRE_BYTES;
    if (message == &onnx__tensor_proto__descriptor && desc->id == RAW_DATA_ID)
        return; /* it stays in the file */
    if (text) {
        w->unpacked += 2 * sizeof(guint64) + length;
        w->objects += length;
    }
    if (!many)
        return;
    if (!text) {
        measure_numbers(w, message, sizeof(guint64));
        return;
    }
    w->unpacked += 2 * sizeof(gpointer);
    if (message == &onnx__node_proto__descriptor)
        w->objects += MADE_NAME + (!strcmp(desc->name, "output") ? MADE_OUTPUT : 0);
    else
        w->objects += MADE_STRING;
}

static gboolean check_field(Walk *w, const ProtobufCMessageDescriptor *message, const ProtobufCFieldDescriptor *desc,
                            const Field *f, GError **error)
{
    guint wire = wire_of(desc->type);
    gsize length = f->end - f->start;
    if (f->wire == WIRE_BYTES && wire != WIRE_BYTES && desc->label == PROTOBUF_C_LABEL_REPEATED)
        return check_packed(w, message, f, wire, error);
    if (f->wire != wire)
        return BAD(error, "field '%s' of %s at byte %" G_GSIZE_FORMAT " has wire type %u instead of %u", desc->name,
                   message->short_name, f->at, f->wire, wire);
    if (desc->type == PROTOBUF_C_TYPE_STRING && length > 0 && memchr(w->data + f->start, 0, length))
        return BAD(error, "the string '%s' of %s at byte %" G_GSIZE_FORMAT " contains a NUL", desc->name,
                   message->short_name, f->at);
    if (desc->type != PROTOBUF_C_TYPE_MESSAGE)
        measure_field(w, message, desc, length);
    return TRUE;
}

static void measure_message(Walk *w, const ProtobufCMessageDescriptor *message)
{
    w->unpacked += message->sizeof_message + 2 * sizeof(guint64);
    for (guint i = 0; i < G_N_ELEMENTS(made); i++)
        if (made[i].message == message)
            w->objects += made[i].bytes;
}

static gboolean put(Walk *w, const guint8 *bytes, gsize n, GError **error)
{
    if (n > w->room - w->used)
        return w->out ? BAD(error, "the file changed while it was read")
                      : BAD(error, "there are more than 2 GB besides the raw data of tensors");
    if (w->out && n > 0)
        memcpy(w->out + w->used, bytes, n);
    w->used += n;
    return TRUE;
}

static gboolean put_varint(Walk *w, guint64 value, GError **error)
{
    guint8 bytes[VARINT_SIZE];
    gsize n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (guint8)(value | 0x80);
    bytes[n++] = (guint8)value;
    return put(w, bytes, n, error);
}

static gboolean put_stub(Walk *w, const Field *f, GError **error)
{
    guint64 stub[2] = { GUINT64_TO_LE((guint64)f->start), GUINT64_TO_LE((guint64)(f->end - f->start)) };
    G_STATIC_ASSERT(sizeof stub == HN_WIRE_STUB_SIZE);
    return put_varint(w, sizeof stub, error) && put(w, (const guint8 *)stub, sizeof stub, error);
}

/* length < 2^31 into the LENGTH_SIZE bytes that were kept free for it */
static void fill_length(guint8 *at, gsize length)
{
    for (guint i = 0; i < LENGTH_SIZE - 1; i++, length >>= 7)
        at[i] = (guint8)(length | 0x80);
    at[LENGTH_SIZE - 1] = (guint8)length;
}

/* Bytes pos..end are a message, depth levels below the root. */
static gboolean walk(Walk *w, const ProtobufCMessageDescriptor *message, gsize pos, gsize end, guint depth,
                     GError **error)
{
    guint64 seen = 0; /* a bit for each field that is a single message */
    g_assert(message->n_fields <= 64);
    if (!w->out)
        measure_message(w, message);

    while (pos < end) {
        Field f;
        if (!read_field(w, &pos, end, &f, error) || !put_varint(w, (guint64)f.id << 3 | f.wire, error))
            return FALSE;
        const ProtobufCFieldDescriptor *desc = protobuf_c_message_descriptor_get_field(message, f.id);
        if (!w->out && desc && !check_field(w, message, desc, &f, error))
            return FALSE;
        if (!w->out && !desc) {
            w->unpacked += sizeof(ProtobufCMessageUnknownField) + sizeof(guint64) + (f.end - f.start);
            w->objects += MADE_UNKNOWN + (f.end - f.start);
        }

        if (desc && desc->type == PROTOBUF_C_TYPE_MESSAGE) {
            static const guint8 zeros[LENGTH_SIZE];
            guint64 bit = G_GUINT64_CONSTANT(1) << (desc - message->fields);
            if (desc->label != PROTOBUF_C_LABEL_REPEATED && (seen & bit))
                return BAD(error, "field '%s' of %s is given twice, again at byte %" G_GSIZE_FORMAT, desc->name,
                           message->short_name, f.at);
            seen |= bit;
            if (depth == HN_WIRE_MAX_DEPTH)
                return BAD(error, "nesting deeper than %d at byte %" G_GSIZE_FORMAT, HN_WIRE_MAX_DEPTH, f.at);
            if (!put(w, zeros, sizeof zeros, error))
                return FALSE;
            gsize body = w->used;
            if (!walk(w, desc->descriptor, f.start, f.end, depth + 1, error))
                return FALSE;
            if (w->out)
                fill_length(w->out + body - LENGTH_SIZE, w->used - body);
        } else if (message == &onnx__tensor_proto__descriptor && f.id == RAW_DATA_ID) {
            if (!put_stub(w, &f, error))
                return FALSE;
        } else {
            if (f.wire == WIRE_BYTES && !put_varint(w, f.end - f.start, error))
                return FALSE;
            if (!put(w, w->data + f.start, f.end - f.start, error))
                return FALSE;
        }
    }
    return TRUE;
}

static GBytes *copy_out(const Walk *measured, HnWireKind kind, gsize size, HnBudget *budget, GError **error)
{
    guint8 *out = hn_budget_alloc(budget, measured->used, error);
    if (!out)
        return NULL;
    Walk copy = { .data = measured->data, .out = out, .room = measured->used };
    if (!walk(&copy, roots[kind], 0, size, 0, error)) {
        hn_budget_free(budget, out);
        return NULL;
    }
    return hn_budget_bytes(budget, out, copy.used);
}

GBytes *hn_wire_compact(const guint8 *data, gsize size, HnWireKind kind, HnBudget *budget, GError **error)
{
    g_return_val_if_fail((guint)kind < G_N_ELEMENTS(roots), NULL);
    g_return_val_if_fail(data || size == 0, NULL);

    Walk measure = { .data = data, .room = G_MAXINT32 };
    return walk(&measure, roots[kind], 0, size, 0, error) ? copy_out(&measure, kind, size, budget, error) : NULL;
}

gboolean hn_wire_stub_decode(const guint8 *stub, gsize stub_size, gsize size, gsize *offset, gsize *length)
{
    guint64 v[2];
    if (stub_size != sizeof v)
        return FALSE;
    memcpy(v, stub, sizeof v);
    guint64 start = GUINT64_FROM_LE(v[0]), n = GUINT64_FROM_LE(v[1]);
    if (start > size || n > size - start)
        return FALSE;
    *offset = start;
    *length = n;
    return TRUE;
}

/*
 * Memory of an unpacked message: small blocks come one after the other out of chunks and go only with the whole; big
 * ones (protobuf-c's scratch, arrays) are allocated singly and can go back. Each has a word before it that says which.
 */
typedef struct Block Block;
struct Block {
    Block *prev, *next;
    guint64 unused; /* keeps is_big right before the payload, at a multiple of 16 bytes */
    guint64 is_big;
};

struct HnWire {
    HnBudget *budget;
    Block *blocks; /* chunks and big blocks, newest first */
    guint8 *free;  /* rest of the newest chunk */
    gsize n_free;
    gsize chunk_size;
    GError *error; /* of the first allocation that failed */
    ProtobufCMessage *root;
};

static Block *block_new(HnWire *wire, gsize size)
{
    if (wire->error)
        return NULL;
    Block *b = hn_budget_alloc(wire->budget, sizeof *b + size, &wire->error);
    if (!b)
        return NULL;
    *b = (Block){ .next = wire->blocks, .is_big = TRUE };
    if (b->next)
        b->next->prev = b;
    wire->blocks = b;
    return b;
}

static void block_free(HnWire *wire, Block *b)
{
    if (b->next)
        b->next->prev = b->prev;
    if (b->prev)
        b->prev->next = b->next;
    else
        wire->blocks = b->next;
    hn_budget_free(wire->budget, b);
}

/* For protobuf-c. Sizes are below 2^40: a message of at most 2 GB makes no larger array. */
static void *wire_alloc(void *data, size_t size)
{
    HnWire *wire = data;
    if (size > BIG_SIZE) {
        Block *b = block_new(wire, size);
        return b ? b + 1 : NULL;
    }
    gsize need = sizeof(guint64) + ((size + 7) & ~(gsize)7);
    if (need > wire->n_free) {
        gsize n = MAX(wire->chunk_size, need);
        Block *b = block_new(wire, n);
        if (!b)
            return NULL;
        wire->free = (guint8 *)(b + 1);
        wire->n_free = n;
        wire->chunk_size = MIN(2 * wire->chunk_size, MAX_CHUNK_SIZE);
    }
    guint64 *head = (guint64 *)(gpointer)wire->free;
    wire->free += need;
    wire->n_free -= need;
    *head = FALSE;
    return head + 1;
}

static void wire_free(void *data, void *pointer)
{
    if (pointer && ((guint64 *)pointer)[-1])
        block_free(data, (Block *)pointer - 1);
}

HnWire *hn_wire_new(const guint8 *data, gsize size, HnWireKind kind, HnBudget *budget, gsize *objects, GError **error)
{
    g_return_val_if_fail((guint)kind < G_N_ELEMENTS(roots), NULL);
    g_return_val_if_fail(data || size == 0, NULL);

    Walk measure = { .data = data, .room = G_MAXINT32 };
    if (!walk(&measure, roots[kind], 0, size, 0, error))
        return NULL;
    /* all of it is there at once: refused before the first of it is taken */
    gsize need = measure.used + measure.unpacked + (objects ? measure.objects : 0);
    if (!hn_budget_charge(budget, need, error))
        return NULL;
    hn_budget_uncharge(budget, need);
    if (objects)
        *objects = measure.objects;
    g_autoptr(GBytes) bytes = copy_out(&measure, kind, size, budget, error);
    if (!bytes)
        return NULL;

    g_autoptr(HnWire) wire = g_new0(HnWire, 1);
    wire->budget = budget ? hn_budget_ref(budget) : NULL;
    wire->chunk_size = CLAMP(g_bytes_get_size(bytes), MIN_CHUNK_SIZE, MAX_CHUNK_SIZE);
    ProtobufCAllocator allocator = { .alloc = wire_alloc, .free = wire_free, .allocator_data = wire };
    /* protobuf-c takes a pointer also where there is nothing to read */
    static const guint8 nothing[1];
    const guint8 *packed = g_bytes_get_size(bytes) > 0 ? g_bytes_get_data(bytes, NULL) : nothing;
    wire->root = protobuf_c_message_unpack(roots[kind], &allocator, g_bytes_get_size(bytes), packed);
    if (!wire->root || wire->error) {
        if (wire->error)
            g_propagate_error(error, g_steal_pointer(&wire->error));
        else
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "the bytes are not a valid %s", roots[kind]->short_name);
        return NULL;
    }
    return g_steal_pointer(&wire);
}

void hn_wire_free(HnWire *wire)
{
    if (!wire)
        return;
    while (wire->blocks)
        block_free(wire, wire->blocks);
    g_clear_error(&wire->error);
    if (wire->budget)
        hn_budget_unref(wire->budget);
    g_free(wire);
}

gconstpointer hn_wire_root(const HnWire *wire)
{
    return wire->root;
}
