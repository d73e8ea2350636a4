#include "onnx/reader.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "onnx/kind.h"
#include "onnx/wire.h"

/* Elements are used as they lie in the file, and the format is little-endian. */
G_STATIC_ASSERT(G_BYTE_ORDER == G_LITTLE_ENDIAN);

void hn_onnx_reader_init(HnOnnxReader *r, GBytes *bytes, const char *base_dir, const HnOnnxOptions *options)
{
    *r = (HnOnnxReader){ .bytes = bytes, .base_dir = base_dir ? base_dir : "." };
    r->data = g_bytes_get_data(bytes, &r->size);
    if (options) {
        r->budget = options->budget;
        r->keep_external = options->keep_external;
        r->verify_data = options->verify_data;
        r->held_name = options->held_name;
        r->held = options->held;
    }
    r->declared = g_hash_table_new(NULL, NULL);
}

void hn_onnx_reader_clear(HnOnnxReader *r)
{
    g_hash_table_unref(r->declared);
    if (r->externals)
        g_hash_table_unref(r->externals);
    if (r->sums)
        g_hash_table_unref(r->sums);
}

/* --- pieces of messages ------------------------------------------------------------------------------------------ */

char *hn_onnx_take(char **s)
{
    char *copy = g_strdup(*s);
    *s = NULL;
    return copy;
}

HnPairs *hn_onnx_take_pairs(Onnx__StringStringEntryProto **entries, size_t *n)
{
    HnPairs *pairs = NULL;
    size_t odd = 0;
    for (size_t i = 0; i < *n; i++) {
        Onnx__StringStringEntryProto *e = entries[i];
        if (!e->key || !e->value || e->base.n_unknown_fields > 0) {
            entries[odd++] = e;
            continue;
        }
        if (!pairs)
            pairs = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(pairs, g_strdup(e->key));
        g_ptr_array_add(pairs, g_strdup(e->value));
    }
    *n = odd;
    return pairs;
}

static gboolean restore(HnOnnxReader *r, ProtobufCMessage *p, GError **error);

static gboolean restore_field(HnOnnxReader *r, ProtobufCMessage *p, const ProtobufCFieldDescriptor *f, GError **error)
{
    const guint8 *at = (const guint8 *)p + f->offset, *quantifier = (const guint8 *)p + f->quantifier_offset;
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
        guint32 which;
        if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
            memcpy(&which, quantifier, sizeof which);
            if (which != f->id)
                return TRUE;
        }
        ProtobufCMessage *sub = *(ProtobufCMessage *const *)(gconstpointer)at;
        return !sub || restore(r, sub, error);
    }
    size_t n = *(const size_t *)(gconstpointer)quantifier;
    ProtobufCMessage **subs = *(ProtobufCMessage * **const)(gconstpointer)at;
    for (size_t i = 0; i < n; i++)
        if (!restore(r, subs[i], error))
            return FALSE;
    return TRUE;
}

/* Stubs of raw_data become the bytes of the file that they stand for: once for each message. */
static gboolean restore(HnOnnxReader *r, ProtobufCMessage *p, GError **error)
{
    if (p->descriptor == &onnx__tensor_proto__descriptor) {
        ProtobufCBinaryData *raw = &((Onnx__TensorProto *)p)->raw_data;
        gsize offset, length;
        if (((Onnx__TensorProto *)p)->has_raw_data) {
            if (!hn_wire_stub_decode(raw->data, raw->len, r->size, &offset, &length)) {
                g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "the file changed while it was read");
                return FALSE;
            }
            raw->data = (guint8 *)(guintptr)(r->data + offset); /* only read */
            raw->len = length;
        }
    }
    for (unsigned i = 0; i < p->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &p->descriptor->fields[i];
        if (f->type == PROTOBUF_C_TYPE_MESSAGE && !restore_field(r, p, f, error))
            return FALSE;
    }
    return TRUE;
}

GBytes *hn_onnx_repack(HnOnnxReader *r, ProtobufCMessage *p, GError **error)
{
    if (!restore(r, p, error))
        return NULL;
    gsize size = protobuf_c_message_get_packed_size(p);
    if (size > G_MAXINT32) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "a %s of more than 2 GB", p->descriptor->short_name);
        return NULL;
    }
    guint8 *out = hn_budget_alloc(r->budget, size, error);
    if (!out)
        return NULL;
    protobuf_c_message_pack(p, out);
    return hn_budget_bytes(r->budget, out, size);
}

gboolean hn_onnx_rest(HnOnnxReader *r, ProtobufCMessage *p, GBytes **rest, GError **error)
{
    if (protobuf_c_message_get_packed_size(p) == 0)
        return TRUE;
    *rest = hn_onnx_repack(r, p, error);
    return *rest != NULL;
}

/* --- the model ------------------------------------------------------------------------------------------------------
 */

gboolean hn_onnx_read_opsets(HnOnnxReader *r, Onnx__OperatorSetIdProto **entries, size_t *n, GArray *opsets,
                             const HnGraph *g, GError **error)
{
    size_t odd = 0;
    for (size_t i = 0; i < *n; i++) {
        Onnx__OperatorSetIdProto *e = entries[i];
        if (!e->has_version) {
            entries[odd++] = e;
            continue;
        }
        const HnOpset *before = hn_graph_import(g, e->domain);
        if (before && before->version != e->version) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                        "the domain '%s' is imported twice, as opset %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                        e->domain ? e->domain : "", before->version, e->version);
            return FALSE;
        }
        HnOpset o = { hn_onnx_take(&e->domain), e->version, NULL };
        e->has_version = FALSE;
        gboolean ok = hn_onnx_rest(r, &e->base, &o.unknown, error);
        g_array_append_val(opsets, o);
        if (!ok)
            return FALSE;
    }
    *n = odd;
    return TRUE;
}

/* Messages kept as bytes */
static gboolean keep(HnOnnxReader *r, ProtobufCMessage **messages, size_t *n, GPtrArray *to, GError **error)
{
    for (size_t i = 0; i < *n; i++) {
        GBytes *bytes = hn_onnx_repack(r, messages[i], error);
        if (!bytes)
            return FALSE;
        g_ptr_array_add(to, bytes);
    }
    *n = 0;
    return TRUE;
}

static gboolean read_model(HnOnnxReader *r, Onnx__ModelProto *p, GError **error)
{
    HnModel *m = r->model;
    m->has_ir_version = p->has_ir_version;
    m->ir_version = p->has_ir_version ? p->ir_version : 0;
    m->has_model_version = p->has_model_version;
    m->model_version = p->model_version;
    p->has_ir_version = p->has_model_version = FALSE;
    m->producer_name = hn_onnx_take(&p->producer_name);
    m->producer_version = hn_onnx_take(&p->producer_version);
    m->domain = hn_onnx_take(&p->domain);
    m->doc = hn_onnx_take(&p->doc_string);
    m->metadata = hn_onnx_take_pairs(p->metadata_props, &p->n_metadata_props);
    if (!hn_onnx_read_opsets(r, p->opset_import, &p->n_opset_import, m->opsets, m->graph, error))
        return FALSE;
    if (m->opsets->len == 0 && m->ir_version >= 3 && p->graph->n_node > 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "the model imports no opset");
        return FALSE;
    }

    if (!hn_onnx_read_graph(r, p->graph, m->graph, error))
        return FALSE;
    p->graph = NULL;
    for (size_t i = 0; i < p->n_functions; i++)
        if (!hn_onnx_read_function(r, p->functions[i], error))
            return FALSE;
    p->n_functions = 0;
    return keep(r, (ProtobufCMessage **)p->training_info, &p->n_training_info, m->training, error) &&
           keep(r, (ProtobufCMessage **)p->configuration, &p->n_configuration, m->configs, error) &&
           hn_onnx_rest(r, &p->base, &m->unknown, error);
}

/* Why the bytes are no model: what else they seem to be, else what a reader of models has against them. */
static gboolean no_model(const HnOnnxReader *r, const char *why, GError **error)
{
    const char *kind = hn_onnx_other_kind(r->data, r->size);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "not an ONNX model: %s%s", kind ? "it looks like " : "",
                kind ? kind : why);
    return FALSE;
}

static gboolean read_all(HnOnnxReader *r, GError **error)
{
    GError *cause = NULL;
    gsize objects;
    g_autoptr(HnWire) wire = hn_wire_new(r->data, r->size, HN_WIRE_MODEL, r->budget, &objects, &cause);
    if (!wire && g_error_matches(cause, HN_ERROR, HN_ERROR_FORMAT)) {
        no_model(r, cause->message, error);
        g_error_free(cause);
        return FALSE;
    }
    if (!wire) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    Onnx__ModelProto *p = (Onnx__ModelProto *)hn_wire_root(wire);
    if (!p->graph)
        return no_model(r, r->size ? "it has no graph" : "it is empty", error);
    if (!hn_model_reserve(r->model, objects, error) || !read_model(r, p, error) || !hn_model_verify(r->model, error))
        return FALSE;
    hn_model_settle(r->model);
    return TRUE;
}

HnModel *hn_onnx_read_bytes(GBytes *bytes, const char *base_dir, const HnOnnxOptions *options, GError **error)
{
    g_autoptr(HnModel) m = hn_model_new();
    HnOnnxReader r;
    hn_onnx_reader_init(&r, bytes, base_dir, options);
    r.model = m;
    hn_model_set_budget(m, r.budget);
    m->file_bytes = r.size;
    gboolean ok = read_all(&r, error);
    hn_onnx_reader_clear(&r);
    return ok ? g_steal_pointer(&m) : NULL;
}

HnModel *hn_onnx_read_file(const char *path, const HnOnnxOptions *options, GError **error)
{
    gboolean is_stdin = !strcmp(path, "-");
    g_autoptr(GBytes) bytes = hn_file_bytes(path, options ? options->budget : NULL, error);
    if (!bytes)
        return NULL;
    if (g_bytes_get_size(bytes) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is empty", is_stdin ? "stdin" : path);
        return NULL;
    }
    g_autofree char *folder = is_stdin ? NULL : g_path_get_dirname(path);
    HnModel *m = hn_onnx_read_bytes(bytes, folder, options, error);
    if (!m) {
        g_prefix_error(error, "'%s': ", is_stdin ? "stdin" : path);
        return NULL;
    }
    m->path = is_stdin ? NULL : g_strdup(path);
    return m;
}
