#include "onnx/writer.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "onnx/pair.h"

#define FIRST_CHUNK 4096         /* bytes */
#define MAX_CHUNK 262144         /* bytes */
#define MESSAGE_LIMIT G_MAXINT32 /* bytes of a message that every reader takes */
#define PAGE 4096                /* bytes: what mapping the data file aligns to */
#define BIG 65536                /* bytes: elements that are worth a page of their own */

void hn_onnx_writer_init(HnOnnxWriter *w, HnExternal external, HnBudget *budget)
{
    *w = (HnOnnxWriter){ .budget = budget, .external = external };
}

static void array_free(GPtrArray *a)
{
    if (a)
        g_ptr_array_unref(a);
}

void hn_onnx_writer_clear(HnOnnxWriter *w)
{
    array_free(w->chunks);
    array_free(w->lists);
    array_free(w->data);
    if (w->places)
        g_hash_table_unref(w->places);
    g_free(w->location);
    g_clear_error(&w->error);
}

/* --- the arena --------------------------------------------------------------------------------------------------- */

typedef struct {
    gsize size; /* of what follows */
    gsize pad;  /* keeps it at a multiple of 16 bytes */
} Chunk;

gpointer hn_onnx_alloc(HnOnnxWriter *w, gsize size)
{
    gsize need = (size + 15) & ~(gsize)15;
    Chunk *c = w->chunks ? w->chunks->pdata[w->chunks->len - 1] : NULL;
    if (!c || need > c->size - w->used) {
        gsize chunk = MAX(need, c ? MIN(2 * c->size, MAX_CHUNK) : FIRST_CHUNK);
        if (!w->chunks)
            w->chunks = g_ptr_array_new_with_free_func(g_free);
        c = g_malloc0(sizeof *c + chunk);
        c->size = chunk;
        g_ptr_array_add(w->chunks, c);
        w->used = 0;
    }
    gpointer p = (guint8 *)(c + 1) + w->used;
    w->used += need;
    return p;
}

static void *arena_alloc(void *data, size_t size)
{
    return hn_onnx_alloc(data, size);
}

static void arena_free(void *data, void *pointer)
{
    (void)data, (void)pointer; /* goes with the arena */
}

ProtobufCMessage *hn_onnx_unpack(HnOnnxWriter *w, const ProtobufCMessageDescriptor *type, GBytes *bytes)
{
    ProtobufCAllocator allocator = { .alloc = arena_alloc, .free = arena_free, .allocator_data = w };
    gsize size;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    return protobuf_c_message_unpack(type, &allocator, size, size ? data : (const guint8 *)"");
}

/* --- pieces of messages ------------------------------------------------------------------------------------------ */

static gsize read_varint(const guint8 *p, gsize n, guint64 *value)
{
    *value = 0;
    for (gsize i = 0; i < n && i < 10; i++) {
        *value |= (guint64)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80)
            return i + 1;
    }
    return 0;
}

/* Bytes of the field at p: tag in *tag, the payload (with its length, as protobuf-c wants it) behind *at. 0: no field.
 */
static gsize read_field(const guint8 *p, gsize n, guint64 *tag, gsize *at)
{
    guint64 value;
    gsize used, rest;
    *at = read_varint(p, n, tag);
    if (*at == 0)
        return 0;
    p += *at;
    rest = n - *at;
    switch (*tag & 7) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        used = read_varint(p, rest, &value);
        return used ? *at + used : 0;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        return rest >= 8 ? *at + 8 : 0;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        return rest >= 4 ? *at + 4 : 0;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        used = read_varint(p, rest, &value);
        return used && value <= rest - used ? *at + used + value : 0;
    default:
        return 0;
    }
}

void hn_onnx_put_unknown(HnOnnxWriter *w, ProtobufCMessage *p, GBytes *unknown, guint32 except)
{
    gsize n, at, size;
    guint64 tag;
    const guint8 *data = unknown ? g_bytes_get_data(unknown, &n) : NULL;
    if (!data)
        return;
    gsize count = 0;
    for (gsize i = 0; i < n && (size = read_field(data + i, n - i, &tag, &at)) > 0; i += size)
        count++;
    p->unknown_fields = HN_ONNX_ARRAY(w, ProtobufCMessageUnknownField, count);
    for (gsize i = 0; i < n && (size = read_field(data + i, n - i, &tag, &at)) > 0; i += size) {
        if (tag >> 3 == except)
            continue;
        p->unknown_fields[p->n_unknown_fields++] = (ProtobufCMessageUnknownField){
            .tag = (guint32)(tag >> 3),
            .wire_type = (ProtobufCWireType)(tag & 7),
            .len = size - at,
            .data = (guint8 *)(guintptr)(data + i + at),
        };
    }
}

Onnx__StringStringEntryProto *hn_onnx_put_pair(HnOnnxWriter *w, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = HN_ONNX_ARRAY(w, Onnx__StringStringEntryProto, 1);
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)(guintptr)key;
    e->value = (char *)(guintptr)value;
    return e;
}

Onnx__StringStringEntryProto **hn_onnx_put_pairs(HnOnnxWriter *w, const HnPairs *pairs, size_t *n)
{
    *n = pairs ? pairs->len / 2 : 0;
    Onnx__StringStringEntryProto **entries = *n ? HN_ONNX_ARRAY(w, Onnx__StringStringEntryProto *, *n) : NULL;
    for (size_t i = 0; i < *n; i++)
        entries[i] = hn_onnx_put_pair(w, pairs->pdata[2 * i], pairs->pdata[2 * i + 1]);
    return entries;
}

guint64 hn_onnx_place(HnOnnxWriter *w, const HnTensor *t)
{
    if (!w->data) {
        w->data = g_ptr_array_new();
        w->places = g_hash_table_new(NULL, NULL);
    }
    HnOnnxPlace *p = g_hash_table_lookup(w->places, t->data);
    if (p && p->tensor->bytes == t->bytes)
        return p->offset;
    guint64 align = t->bytes >= BIG ? PAGE : HN_ALIGN;
    p = hn_onnx_alloc(w, sizeof *p);
    p->tensor = t;
    p->offset = (w->data_size + align - 1) & ~(align - 1);
    w->data_size = p->offset + t->bytes;
    g_hash_table_insert(w->places, t->data, p);
    g_ptr_array_add(w->data, p);
    return p->offset;
}

/* --- packing ----------------------------------------------------------------------------------------------------- */

static gboolean fits(gsize size, GError **error)
{
    if (size <= MESSAGE_LIMIT)
        return TRUE;
    g_autofree char *text = hn_text_size(size);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "a model of %s in one file: ONNX ends at 2 GB, larger weights need a file of their own", text);
    return FALSE;
}

GBytes *hn_onnx_pack(const ProtobufCMessage *p, HnBudget *budget, GError **error)
{
    gsize size = protobuf_c_message_get_packed_size(p);
    guint8 *out = fits(size, error) ? hn_budget_alloc(budget, size, error) : NULL;
    if (!out)
        return NULL;
    protobuf_c_message_pack(p, out);
    return hn_budget_bytes(budget, out, size);
}

/* protobuf-c appends here; it cannot be told to stop. */
typedef struct {
    ProtobufCBuffer base;
    HnOutFile *out;
    GError *error;
} Stream;

static void append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
    Stream *s = (Stream *)buffer;
    if (!s->error)
        hn_out_write(s->out, data, len, &s->error);
}

static gboolean stream(const ProtobufCMessage *p, HnOutFile *out, GError **error)
{
    Stream s = { { append }, out, NULL };
    protobuf_c_message_pack_to_buffer(p, &s.base);
    if (!s.error)
        return TRUE;
    g_propagate_error(error, s.error);
    return FALSE;
}

/* *sum: the SHA-1 of what was written */
static gboolean write_data(const HnOnnxWriter *w, HnOutFile *out, char **sum, GError **error)
{
    static const guint8 zeros[PAGE];
    g_autoptr(GChecksum) sha1 = g_checksum_new(G_CHECKSUM_SHA1);
    for (guint i = 0; i < w->data->len; i++) {
        const HnOnnxPlace *p = w->data->pdata[i];
        const gsize gap = (gsize)(p->offset - hn_out_tell(out));
        if (!hn_out_write(out, zeros, gap, error) || !hn_out_write(out, p->tensor->data, p->tensor->bytes, error))
            return FALSE;
        g_checksum_update(sha1, zeros, (gssize)gap);
        g_checksum_update(sha1, p->tensor->data, (gssize)p->tensor->bytes);
    }
    *sum = g_strdup(g_checksum_get_string(sha1));
    return hn_out_sync(out, error);
}

/* The tree of m, as w->external says; NULL with the error. */
static Onnx__ModelProto *build(HnOnnxWriter *w, const HnModel *m, GError **error)
{
    Onnx__ModelProto *p = hn_onnx_put_model(w, m);
    if (!w->error)
        return p;
    g_propagate_error(error, g_steal_pointer(&w->error));
    return NULL;
}

/* Whoever asked to is shown the model that these bytes are. */
static gboolean check(const HnOnnxWriter *w, GBytes *bytes, GBytes *data, const char *path, const HnOnnxWriteOptions *o,
                      GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    const HnOnnxOptions how = { .budget = o->budget, .held_name = data ? w->location : NULL, .held = data };
    g_autoptr(GError) why = NULL;
    g_autoptr(HnModel) m = hn_onnx_read_bytes(bytes, folder, &how, &why);
    if (m)
        return o->check(o->data, m, error);
    if (why->code == HN_ERROR_IO || why->code == HN_ERROR_BUDGET || why->code == HN_ERROR_INTERRUPTED)
        g_propagate_error(error, g_steal_pointer(&why));
    else
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "what was written cannot be read back: %s", why->message);
    return FALSE;
}

/* The message, and looks at it: at a file in place, at what goes into a pipe before it goes. */
static gboolean put(const HnOnnxWriter *w, const ProtobufCMessage *p, HnOutFile *out, HnOutFile *data, const char *path,
                    const HnOnnxWriteOptions *o, GError **error)
{
    if (!o || !o->check)
        return stream(p, out, error) && hn_out_sync(out, error);
    const gboolean is_file = hn_out_is_file(out);
    if (is_file && (!stream(p, out, error) || !hn_out_sync(out, error)))
        return FALSE;
    g_autoptr(GBytes) bytes = is_file ? hn_out_bytes(out, error) : hn_onnx_pack(p, o->budget, error);
    g_autoptr(GBytes) beside = bytes && data ? hn_out_bytes(data, error) : NULL;
    if (!bytes || (data && !beside) || !check(w, bytes, beside, path, o, error))
        return FALSE;
    gsize size;
    gconstpointer start = g_bytes_get_data(bytes, &size);
    return is_file || (hn_out_write(out, start, size, error) && hn_out_sync(out, error));
}

static gboolean write_model(HnOnnxWriter *w, const HnModel *m, const char *path, const HnOnnxWriteOptions *options,
                            GError **error)
{
    const gboolean is_auto = !options || options->external == HN_EXTERNAL_AUTO;
    g_autoptr(HnOutFile) out = hn_out_open(path, error);
    if (!out)
        return FALSE;
    if (w->external == HN_EXTERNAL_ONE_FILE && !hn_out_is_file(out)) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, "weights of their own file need a path for the model");
        return FALSE;
    }
    memset(w->sum, '0', sizeof w->sum - 1); /* until it is known: the model's size does not depend on it */
    w->location = hn_pair_data_name(path, w->sum);
    Onnx__ModelProto *p = build(w, m, error);
    if (!p)
        return FALSE;
    gsize size = protobuf_c_message_get_packed_size(&p->base);
    if (is_auto && size > MESSAGE_LIMIT && hn_out_is_file(out)) {
        w->external = HN_EXTERNAL_ONE_FILE;
        if (!(p = build(w, m, error)))
            return FALSE;
        size = protobuf_c_message_get_packed_size(&p->base);
    }
    if (!fits(size, error))
        return FALSE;

    g_autoptr(HnOutFile) data = NULL;
    g_autofree char *sum = NULL;
    if (w->data) {
        if (!(data = hn_out_open_beside(path, error)) || !write_data(w, data, &sum, error))
            return FALSE;
        g_autofree char *name = hn_pair_data_name(path, sum);
        memcpy(w->sum, sum, sizeof w->sum - 1);
        memcpy(w->location, name, strlen(name)); /* the tree has both by address */
    }
    if (!put(w, &p->base, out, data, path, options, error))
        return FALSE;
    if (options && options->bytes)
        *options->bytes = hn_out_tell(out) + (data ? hn_out_tell(data) : 0);
    return hn_out_is_file(out) ? hn_pair_commit(out, path, g_steal_pointer(&data), sum, error)
                               : hn_out_commit(out, error);
}

gboolean hn_onnx_write_file(const HnModel *m, const char *path, const HnOnnxWriteOptions *options, GError **error)
{
    HnExternal external = options ? options->external : HN_EXTERNAL_AUTO;
    HnOnnxWriter w;
    hn_onnx_writer_init(&w, external == HN_EXTERNAL_AUTO ? HN_EXTERNAL_INLINE : external,
                        options ? options->budget : NULL);
    g_autoptr(GError) cause = NULL;
    gboolean ok = write_model(&w, m, path, options, &cause);
    hn_onnx_writer_clear(&w);
    if (ok)
        return TRUE;
    if (cause->code != HN_ERROR_IO && cause->code != HN_ERROR_USAGE) /* those name the file, or the option */
        g_prefix_error(&cause, "'%s': ", strcmp(path, "-") ? path : "stdout");
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

GBytes *hn_onnx_write_bytes(const HnModel *m, HnBudget *budget, GError **error)
{
    HnOnnxWriter w;
    hn_onnx_writer_init(&w, HN_EXTERNAL_INLINE, budget);
    Onnx__ModelProto *p = build(&w, m, error);
    GBytes *bytes = p ? hn_onnx_pack(&p->base, budget, error) : NULL;
    hn_onnx_writer_clear(&w);
    return bytes;
}

void hn_onnx_remove(const char *path)
{
    hn_pair_remove(path);
}

gboolean hn_onnx_size(const HnModel *m, HnBudget *budget, gsize *bytes, GError **error)
{
    HnOnnxWriter w;
    hn_onnx_writer_init(&w, HN_EXTERNAL_INLINE, budget);
    const Onnx__ModelProto *p = build(&w, m, error);
    *bytes = p != NULL ? protobuf_c_message_get_packed_size(&p->base) : 0;
    hn_onnx_writer_clear(&w);
    return p != NULL;
}
