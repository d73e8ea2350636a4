#include "onnx/kind.h"

#include <string.h>

#define TEXT_SEEN ((gsize)512) /* bytes that are looked at */

typedef struct {
    gsize at; /* of the bytes in the file */
    const char *bytes;
    gsize n;
    const char *kind;
} Magic;

#define MAGIC(at, bytes, kind)             \
    {                                      \
        at, bytes, sizeof(bytes) - 1, kind \
    }

/* The first that fits. */
static const Magic magics[] = {
    MAGIC(0, "\x89PNG\r\n\x1a\n", "a PNG image"),
    MAGIC(0, "\xff\xd8\xff", "a JPEG image"),
    MAGIC(0, "GIF8", "a GIF image"),
    MAGIC(0, "%PDF-", "a PDF document"),
    MAGIC(0, "PK\3\4", "a zip archive, as PyTorch, Keras and NumPy (.npz) write them"),
    MAGIC(0, "PK\5\6", "an empty zip archive"),
    MAGIC(0, "\x1f\x8b", "compressed by gzip"),
    MAGIC(0, "BZh", "compressed by bzip2"),
    MAGIC(0,
          "\xfd"
          "7zXZ",
          "compressed by xz"),
    MAGIC(0, "\x28\xb5\x2f\xfd", "compressed by zstd"),
    MAGIC(257, "ustar", "a tar archive"),
    MAGIC(0, "\x93NUMPY", "a NumPy array (.npy)"),
    MAGIC(0, "\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes them"),
    MAGIC(4, "TFL3", "a TensorFlow Lite model"),
    MAGIC(4, "ORTM", "a model in ONNX Runtime's own format"),
    MAGIC(0, "GGUF", "a GGUF model"),
    MAGIC(8, "{\"", "a safetensors file"),
    MAGIC(0, "\x80\x02", "a Python pickle, as PyTorch writes them"),
    MAGIC(0, "\x80\x03", "a Python pickle"),
    MAGIC(0, "\x80\x04", "a Python pickle"),
    MAGIC(0, "\x80\x05", "a Python pickle"),
    MAGIC(0,
          "\x7f"
          "ELF",
          "a program or library"),
    MAGIC(0, "MZ", "a program"),
    MAGIC(0, "version https://git-lfs.github.com/", "a pointer of Git LFS to a file that was not fetched"),
    MAGIC(0, "<!DOCTYPE html", "a web page"),
    MAGIC(0, "<!doctype html", "a web page"),
    MAGIC(0, "<html", "a web page"),
};

/* No bytes that only other files have; one cut off in the middle of a character is text, too. */
static gboolean is_text(const guint8 *data, gsize size)
{
    const gsize n = MIN(size, TEXT_SEEN);
    const char *end;
    for (gsize i = 0; i < n; i++)
        if (g_ascii_iscntrl((char)data[i]) && memchr("\n\r\t\f", data[i], 4) == NULL)
            return FALSE;
    return n > 0 && (g_utf8_validate((const char *)data, (gssize)n, &end) || end + 4 > (const char *)data + n);
}

/* A version, and then a message whose first field has a length: ONNX has the producer's name there. */
static gboolean is_saved_model(const guint8 *data, gsize size)
{
    gsize at = 3;
    if (size < 16 || memcmp(data, "\x08\x01\x12", at) != 0)
        return FALSE;
    while (at < 12 && data[at] >= 0x80)
        at++;
    return data[at + 1] == 0x0a;
}

const char *hn_onnx_other_kind(const guint8 *data, gsize size)
{
    for (gsize i = 0; i < G_N_ELEMENTS(magics); i++) {
        const Magic *m = &magics[i];
        if (size >= m->at + m->n && !memcmp(data + m->at, m->bytes, m->n))
            return m->kind;
    }
    if (is_saved_model(data, size))
        return "a TensorFlow SavedModel";
    return is_text(data, size) ? "text" : NULL;
}
