/* onnx/wire: constructed, random, cut, nested, hostile and huge messages; whatever passes must unpack. */
#include "onnx/wire.h"

#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "onnx.pb-c.h"

#define SEED 20240607

/* ---- making bytes ---- */

static void add_varint(GByteArray *a, guint64 v)
{
    for (; v >= 0x80; v >>= 7)
        g_byte_array_append(a, (const guint8[]){ (guint8)(v | 0x80) }, 1);
    g_byte_array_append(a, (const guint8[]){ (guint8)v }, 1);
}

static void add_tag(GByteArray *a, guint32 id, guint wire)
{
    add_varint(a, (guint64)id << 3 | wire);
}

static void add_int(GByteArray *a, guint32 id, guint64 v)
{
    add_tag(a, id, 0);
    add_varint(a, v);
}

static void add_bytes(GByteArray *a, guint32 id, gconstpointer bytes, gsize n)
{
    add_tag(a, id, 2);
    add_varint(a, n);
    g_byte_array_append(a, bytes, (guint)n);
}

static void add_string(GByteArray *a, guint32 id, const char *s)
{
    add_bytes(a, id, s, strlen(s));
}

/* takes sub */
static void add_message(GByteArray *a, guint32 id, GByteArray *sub)
{
    add_bytes(a, id, sub->data, sub->len);
    g_byte_array_unref(sub);
}

static GByteArray *make_tensor(const char *name, const char *raw)
{
    GByteArray *t = g_byte_array_new();
    add_int(t, 1, 2);
    add_int(t, 1, 3);
    add_int(t, 2, 1);
    if (raw)
        add_string(t, 9, raw);
    else
        add_bytes(t, 4, "\0\0\200\77\0\0\0\100", 8); /* 1.0f, 2.0f */
    add_string(t, 8, name);
    return t;
}

/* A model with two initializers, an If-like node whose sub-graph has one more, and unknown fields of each wire type. */
static GByteArray *make_model(void)
{
    GByteArray *sub = g_byte_array_new();
    add_message(sub, 5, make_tensor("inner", "INNER-BYTES"));
    add_string(sub, 2, "branch");

    GByteArray *attribute = g_byte_array_new();
    add_string(attribute, 1, "then_branch");
    add_int(attribute, 20, 5);
    add_message(attribute, 6, sub);

    GByteArray *node = g_byte_array_new();
    add_string(node, 1, "x");
    add_string(node, 1, "");
    add_string(node, 2, "y");
    add_string(node, 4, "If");
    add_message(node, 5, attribute);

    GByteArray *graph = g_byte_array_new();
    add_message(graph, 1, node);
    add_message(graph, 5, make_tensor("a", "0123456789"));
    add_message(graph, 5, make_tensor("b", NULL));
    add_message(graph, 5, make_tensor("empty", ""));

    GByteArray *model = g_byte_array_new();
    add_int(model, 1, 8);
    add_message(model, 7, graph);
    add_string(model, 2, "test");
    add_int(model, 1000, 77);
    add_bytes(model, 1001, "unknown\0bytes", 13);
    add_tag(model, 1002, 5);
    g_byte_array_append(model, (const guint8 *)"abcd", 4);
    add_tag(model, 1003, 1);
    g_byte_array_append(model, (const guint8 *)"abcdefgh", 8);
    return model;
}

/* A random message of this type: any field, lists packed or not, unknown fields, raw_data at times empty */
static GByteArray *make_random(GRand *r, const ProtobufCMessageDescriptor *d, guint depth)
{
    GByteArray *a = g_byte_array_new();
    for (guint i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        gboolean repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
        gint n = g_rand_int_range(r, 0, repeated ? 4 : 2);
        if (f->type == PROTOBUF_C_TYPE_MESSAGE && (depth == 0 || g_rand_int_range(r, 0, 3) == 0))
            n = 0;
        for (gint k = 0; k < n; k++) {
            guint8 bytes[24];
            gint len = g_rand_int_range(r, 0, sizeof bytes);
            for (guint b = 0; b < sizeof bytes; b++)
                bytes[b] = (guint8)g_rand_int_range(r, 1, 256);
            switch (f->type) {
            case PROTOBUF_C_TYPE_MESSAGE:
                add_message(a, f->id, make_random(r, f->descriptor, depth - 1));
                break;
            case PROTOBUF_C_TYPE_STRING:
            case PROTOBUF_C_TYPE_BYTES:
                add_bytes(a, f->id, bytes, (gsize)len);
                break;
            case PROTOBUF_C_TYPE_FLOAT:
            case PROTOBUF_C_TYPE_DOUBLE: {
                gsize width = f->type == PROTOBUF_C_TYPE_FLOAT ? 4 : 8;
                if (repeated && g_rand_boolean(r)) {
                    add_bytes(a, f->id, bytes, width * (gsize)g_rand_int_range(r, 0, 3));
                } else {
                    add_tag(a, f->id, width == 4 ? 5 : 1);
                    g_byte_array_append(a, bytes, (guint)width);
                }
                break;
            }
            default:
                if (repeated && g_rand_boolean(r)) {
                    GByteArray *list = g_byte_array_new();
                    for (gint j = 0; j < len; j++)
                        add_varint(list, (guint64)g_rand_int(r) << g_rand_int_range(r, 0, 32));
                    add_message(a, f->id, list);
                } else {
                    add_int(a, f->id, (guint64)g_rand_int(r) << g_rand_int_range(r, 0, 32));
                }
            }
        }
    }
    if (g_rand_int_range(r, 0, 4) == 0)
        add_string(a, 5000, "unknown");
    return a;
}

/* ---- looking at results ---- */

/* Put the bytes back where the stubs point; the message must come from protobuf-c's plain allocator. */
static void restore_raw(ProtobufCMessage *m, const guint8 *data, gsize size)
{
    if (m->descriptor == &onnx__tensor_proto__descriptor) {
        Onnx__TensorProto *t = (Onnx__TensorProto *)m;
        gsize offset, length;
        if (t->has_raw_data) {
            g_assert_true(hn_wire_stub_decode(t->raw_data.data, t->raw_data.len, size, &offset, &length));
            free(t->raw_data.data);
            t->raw_data.data = malloc(length + 1);
            memcpy(t->raw_data.data, data + offset, length);
            t->raw_data.len = length;
        }
    }
    for (guint i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        guint8 *base = (guint8 *)m;
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(size_t *)(gpointer)(base + f->quantifier_offset);
            ProtobufCMessage **list = *(ProtobufCMessage ***)(gpointer)(base + f->offset);
            for (size_t k = 0; k < n; k++)
                restore_raw(list[k], data, size);
        } else if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
                   *(guint32 *)(gpointer)(base + f->quantifier_offset) == f->id) {
            ProtobufCMessage *sub = *(ProtobufCMessage **)(gpointer)(base + f->offset);
            if (sub)
                restore_raw(sub, data, size);
        }
    }
}

static GBytes *pack(const ProtobufCMessage *m)
{
    gsize n = protobuf_c_message_get_packed_size(m);
    guint8 *out = g_malloc(n + 1);
    g_assert_cmpuint(protobuf_c_message_pack(m, out), ==, n);
    return g_bytes_new_take(out, n);
}

/* compact, unpack, restore and pack equals unpack and pack */
static void check_same(const ProtobufCMessageDescriptor *d, HnWireKind kind, const guint8 *data, gsize size)
{
    GError *error = NULL;
    g_autoptr(GBytes) bytes = hn_wire_compact(data, size, kind, NULL, &error);
    g_assert_no_error(error);
    ProtobufCMessage *a = protobuf_c_message_unpack(d, NULL, size, data);
    ProtobufCMessage *b = protobuf_c_message_unpack(d, NULL, g_bytes_get_size(bytes), g_bytes_get_data(bytes, NULL));
    g_assert_nonnull(a);
    g_assert_nonnull(b);
    restore_raw(b, data, size);
    g_autoptr(GBytes) pa = pack(a), pb = pack(b);
    g_assert_true(g_bytes_equal(pa, pb));
    protobuf_c_message_free_unpacked(a, NULL);
    protobuf_c_message_free_unpacked(b, NULL);
}

/* No crash; a refusal is a FORMAT error; what passes unpacks, with protobuf-c's allocator too. TRUE: it passed */
static gboolean check_sane(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *exact = g_memdup2(data, size); /* so that a sanitizer sees each byte read beyond the end */
    g_autoptr(GBytes) bytes = hn_wire_compact(exact, size, HN_WIRE_MODEL, NULL, &error);
    if (!bytes) {
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
        return FALSE;
    }
    g_autoptr(HnWire) wire = hn_wire_new(exact, size, HN_WIRE_MODEL, NULL, NULL, &error);
    g_assert_no_error(error);
    gsize n;
    const guint8 *compact = g_bytes_get_data(bytes, &n);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, n, n > 0 ? compact : (const guint8 *)"");
    g_assert_nonnull(model);
    g_autoptr(GBytes) a = pack(&model->base), b = pack(hn_wire_root(wire));
    g_assert_true(g_bytes_equal(a, b));
    onnx__model_proto__free_unpacked(model, NULL);
    return TRUE;
}

static void assert_refused(const GByteArray *bytes, HnWireKind kind, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *exact = g_memdup2(bytes->data, bytes->len);
    g_autoptr(GBytes) out = hn_wire_compact(exact, bytes->len, kind, NULL, &error);
    g_assert_null(out);
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_cmpstr(error->message, ==, message);
}

/* ---- cases ---- */

static void assert_raw(const Onnx__TensorProto *t, const guint8 *data, gsize size, const char *expected)
{
    gsize offset, length;
    g_assert_true(t->has_raw_data);
    g_assert_true(hn_wire_stub_decode(t->raw_data.data, t->raw_data.len, size, &offset, &length));
    g_assert_cmpmem(data + offset, length, expected, strlen(expected));
}

static void test_model(void)
{
    g_autoptr(GByteArray) bytes = make_model();
    g_autoptr(GError) error = NULL;
    g_autoptr(HnWire) wire = hn_wire_new(bytes->data, bytes->len, HN_WIRE_MODEL, NULL, NULL, &error);
    g_assert_no_error(error);
    const Onnx__ModelProto *m = hn_wire_root(wire);
    g_assert_cmpint(m->ir_version, ==, 8);
    g_assert_cmpstr(m->producer_name, ==, "test");
    g_assert_cmpuint(m->base.n_unknown_fields, ==, 4);
    g_assert_cmpuint(m->graph->n_initializer, ==, 3);
    assert_raw(m->graph->initializer[0], bytes->data, bytes->len, "0123456789");
    g_assert_false(m->graph->initializer[1]->has_raw_data);
    g_assert_cmpuint(m->graph->initializer[1]->n_float_data, ==, 2);
    g_assert_cmpfloat(m->graph->initializer[1]->float_data[1], ==, 2.0f);
    assert_raw(m->graph->initializer[2], bytes->data, bytes->len, "");
    const Onnx__NodeProto *node = m->graph->node[0];
    g_assert_cmpstr(node->op_type, ==, "If");
    g_assert_cmpuint(node->n_input, ==, 2);
    assert_raw(node->attribute[0]->g->initializer[0], bytes->data, bytes->len, "INNER-BYTES");
    check_same(&onnx__model_proto__descriptor, HN_WIRE_MODEL, bytes->data, bytes->len);
}

static void test_kinds(void)
{
    static const struct {
        HnWireKind kind;
        const ProtobufCMessageDescriptor *desc;
    } kinds[] = {
        { HN_WIRE_MODEL, &onnx__model_proto__descriptor },
        { HN_WIRE_GRAPH, &onnx__graph_proto__descriptor },
        { HN_WIRE_FUNCTION, &onnx__function_proto__descriptor },
        { HN_WIRE_TENSOR, &onnx__tensor_proto__descriptor },
        { HN_WIRE_SPARSE_TENSOR, &onnx__sparse_tensor_proto__descriptor },
        { HN_WIRE_SEQUENCE, &onnx__sequence_proto__descriptor },
        { HN_WIRE_MAP, &onnx__map_proto__descriptor },
        { HN_WIRE_OPTIONAL, &onnx__optional_proto__descriptor },
        { HN_WIRE_TYPE, &onnx__type_proto__descriptor },
    };
    g_autoptr(GRand) r = g_rand_new_with_seed(SEED);
    gsize total = 0;
    for (guint i = 0; i < 40 * G_N_ELEMENTS(kinds); i++) {
        guint k = i % G_N_ELEMENTS(kinds);
        g_autoptr(GByteArray) bytes = make_random(r, kinds[k].desc, 6);
        g_autofree guint8 *exact = g_memdup2(bytes->data, MAX(bytes->len, 1));
        check_same(kinds[k].desc, kinds[k].kind, exact, bytes->len);
        total += bytes->len;
    }
    g_assert_cmpuint(total, >, 100000); /* the generator did something */
}

static void test_empty(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = hn_wire_compact(NULL, 0, HN_WIRE_TENSOR, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_bytes_get_size(bytes), ==, 0);
    g_autoptr(HnWire) wire = hn_wire_new(NULL, 0, HN_WIRE_MODEL, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_null(((const Onnx__ModelProto *)hn_wire_root(wire))->graph);
    hn_wire_free(NULL);
}

static void test_truncated(void)
{
    g_autoptr(GByteArray) bytes = make_model();
    guint passed = 0;
    for (guint n = 0; n < bytes->len; n++)
        passed += check_sane(bytes->data, n);
    /* only a cut between two fields of the model itself can pass: before each of its seven */
    g_assert_cmpuint(passed, ==, 7);
}

static void test_one_byte_changed(void)
{
    static const guint8 masks[] = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f };
    g_autoptr(GByteArray) bytes = make_model();
    for (guint i = 0; i < bytes->len; i++)
        for (guint k = 0; k < G_N_ELEMENTS(masks); k++) {
            bytes->data[i] ^= masks[k];
            check_sane(bytes->data, bytes->len);
            bytes->data[i] ^= masks[k];
        }
}

static void test_noise(void)
{
    g_autoptr(GRand) r = g_rand_new_with_seed(SEED);
    guint8 bytes[256];
    for (guint i = 0; i < 20000; i++) {
        gsize n = (gsize)g_rand_int_range(r, 0, sizeof bytes);
        for (gsize k = 0; k < n; k++)
            bytes[k] = (guint8)g_rand_int(r);
        check_sane(bytes, n);
    }
    for (guint i = 0; i < 3000; i++) { /* noise inside what was a model */
        g_autoptr(GByteArray) a = make_random(r, &onnx__model_proto__descriptor, 5);
        for (guint k = 0; k < 3 && a->len > 0; k++)
            a->data[g_rand_int_range(r, 0, (gint32)a->len)] = (guint8)g_rand_int(r);
        check_sane(a->data, a->len);
    }
}

/* A SequenceProto in a SequenceProto in ..., depth levels below the root */
static GByteArray *make_nested(guint depth)
{
    GByteArray *a = g_byte_array_new();
    for (guint i = 0; i < depth; i++) {
        GByteArray *outer = g_byte_array_new();
        add_message(outer, 5, a);
        a = outer;
    }
    return a;
}

static void test_nesting(void)
{
    g_autoptr(GByteArray) legal = make_nested(HN_WIRE_MAX_DEPTH), one_more = make_nested(HN_WIRE_MAX_DEPTH + 1),
                          deep = make_nested(10000);
    check_same(&onnx__sequence_proto__descriptor, HN_WIRE_SEQUENCE, legal->data, legal->len);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnWire) wire = hn_wire_new(one_more->data, one_more->len, HN_WIRE_SEQUENCE, NULL, NULL, &error);
    g_assert_null(wire);
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_true(g_str_has_prefix(error->message, "nesting deeper than 100 at byte "));
    g_clear_error(&error);
    wire = hn_wire_new(deep->data, deep->len, HN_WIRE_SEQUENCE, NULL, NULL, &error);
    g_assert_null(wire);
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_true(g_str_has_prefix(error->message, "nesting deeper than 100 at byte "));
}

static void test_refused(void)
{
    static const struct {
        HnWireKind kind;
        const char *bytes; /* hex */
        const char *message;
    } cases[] = {
        { HN_WIRE_MODEL, "08", "the number at byte 1 is cut off" },
        { HN_WIRE_MODEL, "80", "the number at byte 0 is cut off" },
        { HN_WIRE_MODEL, "08ffffffffffffffffff02", "the number at byte 1 has more than 64 bits" },
        { HN_WIRE_MODEL, "08ffffffffffffffffffff01", "the number at byte 1 has more than 64 bits" },
        { HN_WIRE_MODEL, "0000", "the field at byte 0 has the impossible number 0" },
        { HN_WIRE_MODEL, "808080801000", "the field at byte 0 has the impossible number 536870912" },
        { HN_WIRE_MODEL, "0bffff", "the field at byte 0 is a group, which ONNX does not have" },
        { HN_WIRE_MODEL, "08010c", "the field at byte 2 is a group, which ONNX does not have" },
        { HN_WIRE_MODEL, "0e", "the field at byte 0 has the unknown wire type 6" },
        { HN_WIRE_MODEL, "120a6162", "the field at byte 0 claims 10 bytes where 2 are left" },
        { HN_WIRE_MODEL, "12ffffffffffffffffff01",
          "the field at byte 0 claims 18446744073709551615 bytes where 0 are left" },
        { HN_WIRE_MODEL, "3a0562050801", "the field at byte 0 claims 5 bytes where 4 are left" },
        { HN_WIRE_MODEL, "3a0462050800", "the field at byte 2 claims 5 bytes where 2 are left" },
        { HN_WIRE_MODEL, "3a026205aabb", "the field at byte 2 claims 5 bytes where 0 are left" },
        { HN_WIRE_MODEL, "3d01020304", "field 'graph' of ModelProto at byte 0 has wire type 5 instead of 2" },
        { HN_WIRE_MODEL, "0a00", "field 'ir_version' of ModelProto at byte 0 has wire type 2 instead of 0" },
        { HN_WIRE_MODEL, "3a003a00", "field 'graph' of ModelProto is given twice, again at byte 2" },
        { HN_WIRE_MODEL, "1203610062", "the string 'producer_name' of ModelProto at byte 0 contains a NUL" },
        { HN_WIRE_TENSOR, "2203010203", "the list at byte 0 is not a multiple of 4 bytes" },
        { HN_WIRE_TENSOR, "5203010203", "the list at byte 0 is not a multiple of 8 bytes" },
        { HN_WIRE_TENSOR, "3a0201ff", "the number at byte 3 is cut off" },
        { HN_WIRE_TENSOR, "4801", "field 'raw_data' of TensorProto at byte 0 has wire type 0 instead of 2" },
        { HN_WIRE_TENSOR, "2d01020304", "field 'int32_data' of TensorProto at byte 0 has wire type 5 instead of 0" },
        { HN_WIRE_TYPE, "0a000a00", "field 'tensor_type' of TypeProto is given twice, again at byte 2" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GByteArray) a = g_byte_array_new();
        for (const char *s = cases[i].bytes; *s; s += 2)
            g_byte_array_append(
                a, (const guint8[]){ (guint8)(g_ascii_xdigit_value(s[0]) << 4 | g_ascii_xdigit_value(s[1])) }, 1);
        assert_refused(a, cases[i].kind, cases[i].message);
    }
}

/* Legal, if strange: padded numbers, a scalar given twice, both members of a choice */
static void test_accepted(void)
{
    static const guint8 padded[] = { 0x88, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x85, 0x80, 0x00,
                                     0x92, 0x00, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 'p' };
    static const guint8 twice[] = { 0x08, 0x05, 0x12, 0x01, 'a', 0x08, 0x06, 0x12, 0x01, 'b' };
    static const guint8 choice[] = { 0x0a, 0x02, 0x08, 0x01, 0x22, 0x04, 0x0a, 0x02, 0x0a, 0x00 };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnWire) a = hn_wire_new(padded, sizeof padded, HN_WIRE_MODEL, NULL, NULL, &error);
    g_assert_no_error(error);
    const Onnx__ModelProto *m = hn_wire_root(a);
    g_assert_cmpint(m->ir_version, ==, 5);
    g_assert_cmpstr(m->producer_name, ==, "p");
    g_autoptr(HnWire) b = hn_wire_new(twice, sizeof twice, HN_WIRE_MODEL, NULL, NULL, &error);
    g_assert_no_error(error);
    m = hn_wire_root(b);
    g_assert_cmpint(m->ir_version, ==, 6);
    g_assert_cmpstr(m->producer_name, ==, "b");
    check_same(&onnx__model_proto__descriptor, HN_WIRE_MODEL, twice, sizeof twice);
    g_autoptr(HnWire) c = hn_wire_new(choice, sizeof choice, HN_WIRE_TYPE, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(((const Onnx__TypeProto *)hn_wire_root(c))->value_case, ==, ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE);
    check_same(&onnx__type_proto__descriptor, HN_WIRE_TYPE, choice, sizeof choice);
}

static void test_stub(void)
{
    guint8 stub[16] = { 10, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0 };
    gsize offset = 1, length = 2;
    g_assert_false(hn_wire_stub_decode(stub, 15, 100, &offset, &length));
    g_assert_false(hn_wire_stub_decode(stub, 16, 14, &offset, &length));
    g_assert_false(hn_wire_stub_decode(NULL, 0, 14, &offset, &length));
    memset(stub + 8, 0xff, 8); /* offset + length overflows */
    g_assert_false(hn_wire_stub_decode(stub, 16, 100, &offset, &length));
    g_assert_cmpuint(offset, ==, 1);
    g_assert_cmpuint(length, ==, 2);
    memset(stub + 8, 0, 8);
    g_assert_true(hn_wire_stub_decode(stub, 16, 10, &offset, &length));
    g_assert_cmpuint(offset, ==, 10);
    g_assert_cmpuint(length, ==, 0);
}

/* A TensorProto whose field id has size bytes, in address space that no memory stands behind */
static guint8 *map_tensor(guint8 id, gsize payload, gsize *size)
{
    GByteArray *head = g_byte_array_new();
    add_tag(head, id, 2);
    add_varint(head, payload);
    *size = head->len + payload;
    guint8 *p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED)
        memcpy(p, head->data, head->len);
    g_byte_array_unref(head);
    return p;
}

static void test_huge(void)
{
    gsize size, payload = G_GUINT64_CONSTANT(5000000000);
    guint8 *p = map_tensor(9, payload, &size);
    if (p == MAP_FAILED) {
        g_test_skip("no 5 GB of address space");
        return;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(HnWire) wire = hn_wire_new(p, size, HN_WIRE_TENSOR, NULL, NULL, &error);
    g_assert_no_error(error);
    const Onnx__TensorProto *t = hn_wire_root(wire);
    gsize offset, length;
    g_assert_true(hn_wire_stub_decode(t->raw_data.data, t->raw_data.len, size, &offset, &length));
    g_assert_cmpuint(length, ==, payload);
    g_assert_cmpuint(offset, ==, size - payload);
    munmap(p, size);

    p = map_tensor(6, G_GUINT64_CONSTANT(2200000000), &size); /* string_data is not left out */
    g_assert_true(p != MAP_FAILED);
    g_autoptr(HnWire) refused = hn_wire_new(p, size, HN_WIRE_TENSOR, NULL, NULL, &error);
    g_assert_null(refused);
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_cmpstr(error->message, ==, "there are more than 2 GB besides the raw data of tensors");
    munmap(p, size);
}

static void test_budget(void)
{
    g_autoptr(GRand) r = g_rand_new_with_seed(SEED);
    g_autoptr(GByteArray) nodes = g_byte_array_new(), bytes = g_byte_array_new();
    for (guint i = 0; i < 3000; i++) { /* enough for scratch, chunks and big arrays of every kind */
        GByteArray *node = g_byte_array_new();
        add_string(node, 4, "Add");
        add_string(node, 77, "unknown");
        add_message(nodes, 1, node);
        if (i % 100 == 0)
            add_message(nodes, 5, make_random(r, &onnx__tensor_proto__descriptor, 3));
    }
    g_autofree char *doc = g_strnfill(20000, 'd');
    add_string(nodes, 10, doc);
    add_bytes(bytes, 7, nodes->data, nodes->len);

    g_autoptr(HnBudget) budget = hn_budget_new(0);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnWire) wire = hn_wire_new(bytes->data, bytes->len, HN_WIRE_MODEL, budget, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(GBytes) packed = pack(hn_wire_root(wire));
    gsize peak = hn_budget_peak(budget);
    g_assert_cmpuint(peak, >, 3000 * sizeof(Onnx__NodeProto));
    hn_wire_free(g_steal_pointer(&wire));
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);

    g_autoptr(HnBudget) tight = hn_budget_new(peak / 2);
    wire = hn_wire_new(bytes->data, bytes->len, HN_WIRE_MODEL, tight, NULL, &error);
    g_assert_null(wire);
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_cmpuint(hn_budget_used(tight), ==, 0);

    guint k = 1;
    for (;; k++) { /* every allocation fails once */
        g_clear_error(&error);
        hn_budget_fail_at(budget, k);
        wire = hn_wire_new(bytes->data, bytes->len, HN_WIRE_MODEL, budget, NULL, &error);
        if (wire)
            break;
        g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    }
    hn_budget_fail_at(budget, 0);
    g_assert_cmpuint(k, >, 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wire/model", test_model);
    g_test_add_func("/wire/kinds", test_kinds);
    g_test_add_func("/wire/empty", test_empty);
    g_test_add_func("/wire/truncated", test_truncated);
    g_test_add_func("/wire/one-byte-changed", test_one_byte_changed);
    g_test_add_func("/wire/noise", test_noise);
    g_test_add_func("/wire/nesting", test_nesting);
    g_test_add_func("/wire/refused", test_refused);
    g_test_add_func("/wire/accepted", test_accepted);
    g_test_add_func("/wire/stub", test_stub);
    g_test_add_func("/wire/huge", test_huge);
    g_test_add_func("/wire/budget", test_budget);
    return g_test_run();
}
