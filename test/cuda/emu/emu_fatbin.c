/*
 * What cuModuleLoadData is given: PTX as text, or a container of nvcc's with PTX and machine code for several targets
 * (magic, version, bytes of this header, bytes behind it; then entries, each with a header of its own). Only PTX that
 * is not compressed is read (nvcc --no-compress).
 */
#include <string.h>

#include "emu_device.h"

#define MAGIC 0xBA55ED50u
#define MOST ((size_t)1 << 30)

enum { KIND_PTX = 1, KIND_ELF = 2 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_ARCH_SPECIFIC = 0x100000 }; /* ... of a target like sm_90a */

typedef struct {
    guint32 magic;
    guint16 version, header;
    guint64 bytes;
} Container;

typedef struct {
    guint16 kind, version;
    guint32 header;
    guint64 bytes;
    guint32 compressed; /* bytes in the file; 0: it is not */
    guint32 options;
    guint16 minor, major; /* of the PTX or ELF */
    guint32 arch;         /* 80 */
    guint32 name, name_bytes;
    guint64 flags;
} Entry;

static gboolean is_text(const char *s)
{
    while (g_ascii_isspace(*s) || (s[0] == '/' && s[1] == '/')) {
        if (*s != '/')
            s++;
        else if ((s = strchr(s, '\n')) == NULL)
            return FALSE;
    }
    return g_str_has_prefix(s, ".version");
}

/* How well it fits, 0: not at all. Code of a specific architecture (sm_90a) runs on that one alone. */
static guint fits(const Entry *e, int cc)
{
    const gboolean specific = (e->flags & FLAG_ARCH_SPECIFIC) != 0;
    if (e->kind != KIND_PTX || (int)e->arch > cc || (specific && (int)e->arch != cc))
        return 0;
    return 2 * e->arch + specific;
}

static int find_in_container(const guint8 *image, int cc, const char **text, size_t *n)
{
    Container c;
    guint best = 0;
    memcpy(&c, image, sizeof c);
    if (c.version != 1 || c.header < sizeof c || c.bytes > MOST)
        return EMU_INVALID_IMAGE;
    const guint8 *at = image + c.header;
    for (guint64 left = c.bytes; left > 0;) {
        Entry e;
        if (left < sizeof e)
            return EMU_INVALID_IMAGE;
        memcpy(&e, at, sizeof e);
        if (e.header < sizeof e || e.header > left || e.bytes > left - e.header)
            return EMU_INVALID_IMAGE;
        const guint fit = fits(&e, cc);
        if (fit > best) {
            if (e.compressed != 0 || (e.flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0) {
                emu_say("PTX for compute_%u is compressed: compile with --no-compress", e.arch);
                return EMU_NO_BINARY;
            }
            best = fit;
            *text = (const char *)at + e.header;
            *n = strnlen(*text, e.bytes);
        }
        at += e.header + e.bytes;
        left -= e.header + e.bytes;
    }
    return best > 0 ? EMU_OK : EMU_NO_BINARY;
}

/* Text says itself what it is for. */
static int judge_text(const char *text, size_t n, int cc)
{
    const char *target = g_strstr_len(text, (gssize)n, ".target");
    const char *sm = target != NULL ? g_strstr_len(target, MIN(64, (gssize)(text + n - target)), "sm_") : NULL;
    if (sm == NULL)
        return EMU_INVALID_PTX;
    char *end;
    const int arch = (int)g_ascii_strtoull(sm + 3, &end, 10);
    return arch > cc || (*end == 'a' && arch != cc) ? EMU_NO_BINARY : EMU_OK;
}

int emu_image_ptx(const void *image, int cc, const char **text, size_t *n)
{
    guint32 magic;
    if (image == NULL)
        return EMU_INVALID_VALUE;
    const char first = *(const char *)image;
    if (first == '.' || first == '/' || g_ascii_isspace(first)) {
        *text = image;
        *n = strlen(image);
        return is_text(image) ? judge_text(image, *n, cc) : EMU_INVALID_IMAGE;
    }
    /* the bytes of a magic number one by one: an image of other kind may be shorter */
    guint8 *m = (guint8 *)&magic;
    for (int i = 0; i < 4; i++)
        if ((m[i] = ((const guint8 *)image)[i]) != (guint8)(MAGIC >> 8 * i))
            return EMU_INVALID_IMAGE;
    return find_in_container(image, cc, text, n);
}
