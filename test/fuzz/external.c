/*
 * External data in a real folder: what tensors get are bytes of files in it, wherever links and names lead. An input is
 * lines: "tensor N" begins one of N bytes, "KEY VALUE" is an entry of its external data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "fuzz.h"
#include "onnx/onnx.h"

#define SECRET 0x5e /* each byte of what lies outside of the folder */
#define MOST_TENSORS 64

/* libFuzzer's interface leaves no other place. */
static char *folder; /* .../model; outside of it is .../secret */

/* --- the folder --------------------------------------------------------------------------------------------------- */

static void make_file(const char *name, gsize size, int byte)
{
    g_autofree char *path = g_build_filename(folder, name, NULL), *content = g_malloc(size + 1);
    for (gsize i = 0; i < size; i++)
        content[i] = (char)(byte >= 0 ? byte : (int)(i % 61));
    if (!g_file_set_contents(path, content, (gssize)size, NULL))
        g_error("cannot write '%s'", path);
}

static void make_link(const char *target, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    if (symlink(target, path) != 0)
        g_error("cannot make the link '%s'", path);
}

static void remove_folder(void)
{
    static const char *const names[] = { "a.bin", "sub/b.bin", "sub",  "empty", "inside", "outside", "up",
                                         "loop",  "device",    "pipe", ".",     "self",   "gone",    "../secret" };
    for (int twice = 0; twice < 2; twice++)
        for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
            g_autofree char *path = g_build_filename(folder, names[i], NULL);
            g_remove(path);
        }
    g_remove(folder);
    g_autofree char *above = g_path_get_dirname(folder);
    g_rmdir(above);
    g_free(folder);
}

static void init(void)
{
    g_autofree char *above = g_dir_make_tmp("hone-fuzz-XXXXXX", NULL);
    g_autofree char *sub = g_build_filename(above, "model", "sub", NULL);
    folder = g_build_filename(above, "model", NULL);
    if (g_mkdir_with_parents(sub, 0700) != 0)
        g_error("cannot make the folder '%s'", sub);
    make_file("a.bin", 10000, -1);
    make_file("sub/b.bin", 64, -1);
    make_file("empty", 0, 0);
    make_file("../secret", 4096, SECRET);
    make_link("a.bin", "inside");
    make_link("../secret", "outside");
    make_link("..", "up");
    make_link(".", "self");
    make_link("loop", "loop");
    make_link("nowhere", "gone");
    make_link("/dev/zero", "device");
    g_autofree char *pipe = g_build_filename(folder, "pipe", NULL);
    if (mkfifo(pipe, 0600) != 0)
        g_error("cannot make the pipe '%s'", pipe);
    atexit(remove_folder);
}

/* --- the model, as bytes ------------------------------------------------------------------------------------------ */

static void put_number(GByteArray *out, guint field, guint64 x)
{
    const guint8 key = (guint8)(field << 3);
    g_byte_array_append(out, &key, 1);
    for (; x >= 0x80; x >>= 7)
        g_byte_array_append(out, (const guint8[]){ (guint8)(x | 0x80) }, 1);
    g_byte_array_append(out, (const guint8[]){ (guint8)x }, 1);
}

static void put_bytes(GByteArray *out, guint field, gconstpointer data, gsize n)
{
    guint8 key[11] = { (guint8)(field << 3 | 2) };
    gsize k = 1;
    for (guint64 x = n; k == 1 || x > 0; x >>= 7)
        key[k++] = (guint8)((x & 0x7f) | (x >= 0x80 ? 0x80 : 0));
    g_byte_array_append(out, key, (guint)k);
    g_byte_array_append(out, data, (guint)n);
}

static void put_text(GByteArray *out, guint field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

static void put_array(GByteArray *out, guint field, GByteArray *inner)
{
    put_bytes(out, field, inner->data, inner->len);
    g_byte_array_unref(inner);
}

/* u8 of as many elements as the line asks for, with the entries of the lines behind it. */
static GByteArray *make_tensor(char **lines, guint k)
{
    GByteArray *t = g_byte_array_new();
    g_autofree char *name = g_strdup_printf("w%u", k);
    put_number(t, 1, g_ascii_strtoull(*lines + strlen("tensor "), NULL, 10));
    put_number(t, 2, 2);
    put_text(t, 8, name);
    for (char **l = lines + 1; *l != NULL && !g_str_has_prefix(*l, "tensor "); l++) {
        const char *blank = strchr(*l, ' ');
        if (blank == NULL)
            continue;
        GByteArray *pair = g_byte_array_new();
        put_bytes(pair, 1, *l, (gsize)(blank - *l));
        put_text(pair, 2, blank + 1);
        put_array(t, 13, pair);
    }
    put_number(t, 14, 1);
    return t;
}

static GBytes *make_model(char **lines)
{
    GByteArray *model = g_byte_array_new(), *graph = g_byte_array_new(), *opset = g_byte_array_new();
    guint k = 0;
    for (char **l = lines; *l != NULL && k < MOST_TENSORS; l++)
        if (g_str_has_prefix(*l, "tensor "))
            put_array(graph, 5, make_tensor(l, k++));
    put_text(graph, 2, "g");
    put_number(opset, 2, 17);
    put_number(model, 1, 8);
    put_array(model, 7, graph);
    put_array(model, 8, opset);
    return g_byte_array_free_to_bytes(model);
}

/* --- what was read ------------------------------------------------------------------------------------------------ */

static void check_weight(const HnTensor *t)
{
    const uint8_t *p = t->data;
    for (int64_t i = 0; i < t->n; i++)
        if (p[i] == SECRET || (i > 0 && p[i] != (p[i - 1] + 1) % 61))
            g_error("weight '%s' has the byte %d at %" G_GINT64_FORMAT, t->name, p[i], i);
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GBytes) bytes = make_model(lines);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnModel *m = hn_onnx_read_bytes(bytes, folder, &(HnOnnxOptions){ .budget = budget }, &error);
    fuzz_result(m != NULL, error);
    if (m != NULL) {
        GHashTableIter iter;
        gpointer value;
        g_hash_table_iter_init(&iter, m->graph->values);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const HnTensor *w = ((const HnValue *)value)->weight;
            if (w != NULL && !w->unloaded && w->data != NULL)
                check_weight(w);
        }
    }
    hn_model_free(m);
    fuzz_budget_done(budget);
}

/* A word of one line becomes another. */
static size_t mutate(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    static const char *const words[] = {
        "a.bin",
        "sub/b.bin",
        "sub/../a.bin",
        "inside",
        "outside",
        "up/secret",
        "self/self/a.bin",
        "../secret",
        "loop",
        "gone",
        "device",
        "pipe",
        "empty",
        ".",
        "up",
        "./a.bin",
        "self/outside",
        "location",
        "0",
        "1",
        "offset",
        "length",
        "checksum",
        "61",
        "4096",
        "9999",
        "10000",
        "10001",
        "-1",
        "18446744073709551615",
        "64",
        "tensor",
        "basepath",
        "9e3",
        "0x10",
        "9223372036854775807",
    };
    if (hn_rng_int(rng, 0, 3) == 0)
        return 0;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) parts = g_strsplit_set(text, " \n", -1);
    const guint n = g_strv_length(parts);
    const int64_t at = n > 0 ? hn_rng_int(rng, 0, (int64_t)n - 1) : 0,
                  word = hn_rng_int(rng, 0, G_N_ELEMENTS(words) - 1);
    g_autoptr(GString) out = g_string_new(NULL);
    gsize from = 0;
    for (guint i = 0; i < n; i++) {
        g_string_append(out, (int64_t)i == at ? words[word] : parts[i]);
        from += strlen(parts[i]);
        if (from < strlen(text))
            g_string_append_c(out, text[from++]);
    }
    if (out->len > max)
        return 0;
    if (out->len > 0)
        memcpy(data, out->str, out->len);
    return out->len;
}

const FuzzTarget fuzz_target = { .one = one, .init = init, .mutate = mutate };
