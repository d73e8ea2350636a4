/*
 * What cuModuleLoadData is given: PTX as text, or a container of nvcc's with PTX and machine code for several targets
 * (magic, version, bytes of this header, bytes behind it; then entries, each with a header of its own). PTX may be
 * compressed as LZ4 blocks are (fatbinary --compress-mode=speed).
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
    guint64 reserved;
    guint64 full; /* bytes of what is compressed */
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

/* A length of 15 goes on in bytes, of which 255 is followed by another one. FALSE: there is none. */
static gboolean read_length(const guint8 *from, size_t bytes, size_t *at, size_t *length)
{
    guint8 more = 255;
    for (gboolean goes_on = *length == 15; goes_on; goes_on = more == 255) {
        if (*at == bytes)
            return FALSE;
        more = from[(*at)++];
        *length += more;
    }
    return TRUE;
}

/* An LZ4 block: pieces that are given, and ones that were there `back` bytes before. Exactly `full` bytes and a zero;
 * NULL: damaged. */
static char *unpack(const guint8 *from, size_t bytes, size_t full)
{
    g_autofree char *to = g_malloc(full + 1);
    size_t at = 0, made = 0;
    while (at < bytes) {
        const guint8 token = from[at++];
        size_t given = token >> 4, again = token & 15;
        if (!read_length(from, bytes, &at, &given) || given > bytes - at || given > full - made)
            return NULL;
        memcpy(to + made, from + at, given);
        made += given;
        at += given;
        if (at == bytes)
            break;
        if (bytes - at < 2)
            return NULL;
        const size_t back = from[at] | (size_t)from[at + 1] << 8;
        at += 2;
        if (!read_length(from, bytes, &at, &again) || back == 0 || back > made || again + 4 > full - made)
            return NULL;
        for (const size_t end = made + again + 4; made < end; made++)
            to[made] = to[made - back];
    }
    to[full] = 0;
    return made == full ? g_steal_pointer(&to) : NULL;
}

/* The entry's PTX, behind its header. */
static int text_of(const Entry *e, const guint8 *at, const char **text, size_t *n, char **made)
{
    const guint8 *payload = at + e->header;
    g_clear_pointer(made, g_free);
    if ((e->flags & FLAG_ZSTD) != 0) {
        emu_say("PTX for compute_%u is compressed: compile with --no-compress, or --compress-mode=speed", e->arch);
        return EMU_NO_BINARY;
    }
    if ((e->flags & FLAG_LZ4) == 0) {
        *text = (const char *)payload;
        *n = strnlen(*text, e->bytes);
        return EMU_OK;
    }
    if (e->header < sizeof *e || e->compressed > e->bytes || e->full > MOST ||
        (*made = unpack(payload, e->compressed, e->full)) == NULL)
        return EMU_INVALID_IMAGE;
    *text = *made;
    *n = strnlen(*text, e->full);
    return EMU_OK;
}

static int find_in_container(const guint8 *image, int cc, const char **text, size_t *n, char **made)
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
            const int result = text_of(&e, at, text, n, made);
            if (result != EMU_OK)
                return result;
            best = fit;
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

int emu_image_ptx(const void *image, int cc, const char **text, size_t *n, char **made)
{
    guint32 magic;
    *made = NULL;
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
    return find_in_container(image, cc, text, n, made);
}
