/*
 * Strings of .npy files: elements of one width, of characters of 4 bytes ('U') or of bytes ('S'), filled up with zeros.
 */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "data/npy.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

static gunichar character(const guint8 *p, gboolean big)
{
    return big ? (gunichar)p[0] << 24 | (gunichar)p[1] << 16 | (gunichar)p[2] << 8 | p[3]
               : (gunichar)p[3] << 24 | (gunichar)p[2] << 16 | (gunichar)p[1] << 8 | p[0];
}

/* NULL: a character is none. */
static GBytes *read_unicode(const guint8 *p, gsize n, gboolean big)
{
    while (n > 0 && character(p + 4 * (n - 1), big) == 0)
        n--;
    g_autoptr(GString) s = g_string_sized_new(n);
    for (gsize i = 0; i < n; i++) {
        const gunichar c = character(p + 4 * i, big);
        if (!g_unichar_validate(c))
            return NULL;
        if (c == 0)
            g_string_append_c(s, 0);
        else
            g_string_append_unichar(s, c);
    }
    return g_string_free_to_bytes(g_steal_pointer(&s));
}

static GBytes *read_bytes(const guint8 *p, gsize n)
{
    while (n > 0 && p[n - 1] == 0)
        n--;
    return g_bytes_new(p, n);
}

HnTensor *hn_npy_strings(const HnNpyHead *head, const void *elements, const char *name, HnBudget *budget,
                         GError **error)
{
    g_autoptr(HnTensor) t = hn_tensor_new(HN_STRING, head->ndim, head->dims, budget, error);
    const gsize width = head->width;
    for (int64_t i = 0; t && i < t->n && width > 0; i++) {
        const guint8 *p = (const guint8 *)elements + (gsize)i * width;
        g_autoptr(GBytes) s = head->unicode ? read_unicode(p, width / 4, head->big) : read_bytes(p, width);
        if (!s) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has a character that is none in element %" PRId64, name,
                        i);
            return NULL;
        }
        hn_tensor_set_string(t, i, s);
    }
    if (!t)
        g_prefix_error(error, "cannot read '%s': ", name);
    return g_steal_pointer(&t);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

static const char *text_of(const HnTensor *t, int64_t i, gsize *n)
{
    const char *s = g_bytes_get_data(hn_tensor_get_string(t, i), n);
    return s ? s : "";
}

/* Characters of the longest string where all are UTF-8, else bytes; at least 1, as NumPy has it. */
static gboolean measure(const HnTensor *t, gboolean *unicode, gsize *longest, GError **error)
{
    gsize chars = 1, bytes = 1, n;
    *unicode = TRUE;
    for (int64_t i = 0; i < t->n; i++) {
        const char *s = text_of(t, i, &n);
        if (n > 0 && s[n - 1] == 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "element %" PRId64 " ends with a zero, which strings of a .npy file cannot", i);
            return FALSE;
        }
        const gboolean valid = memchr(s, 0, n) == NULL && g_utf8_validate_len(s, n, NULL);
        *unicode = *unicode && valid;
        bytes = MAX(bytes, n);
        const gsize length = valid ? (gsize)g_utf8_strlen(s, (gssize)n) : 0;
        chars = MAX(chars, length);
    }
    *longest = *unicode ? chars : bytes;
    return TRUE;
}

static void write_unicode(guint8 *to, const char *s, gsize n)
{
    for (const char *c = s; c < s + n; c = g_utf8_next_char(c), to += 4) {
        const gunichar u = g_utf8_get_char(c);
        for (int k = 0; k < 4; k++)
            to[k] = (guint8)(u >> 8 * k);
    }
}

GBytes *hn_npy_text_file(const HnTensor *t, HnBudget *budget, GError **error)
{
    gboolean unicode;
    gsize longest, width, all, total;
    if (!measure(t, &unicode, &longest, error))
        return NULL;
    g_autofree char *descr = g_strdup_printf("%s%" G_GSIZE_FORMAT, unicode ? "<U" : "|S", longest);
    g_autoptr(GBytes) header = hn_npy_header_of(descr, t->ndim, t->dims);
    const gsize at = g_bytes_get_size(header);
    if (!hn_mul_size(longest, unicode ? 4 : 1, &width) || !hn_mul_size(width, (gsize)t->n, &all) ||
        !hn_add_size(at, all, &total)) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "strings of that length are too large for a .npy file");
        return NULL;
    }
    guint8 *file = hn_budget_alloc0(budget, total, error);
    if (!file)
        return NULL;
    memcpy(file, g_bytes_get_data(header, NULL), at);
    for (int64_t i = 0; i < t->n; i++) {
        gsize n;
        const char *s = text_of(t, i, &n);
        if (unicode)
            write_unicode(file + at + (gsize)i * width, s, n);
        else
            memcpy(file + at + (gsize)i * width, s, n);
    }
    return hn_budget_bytes(budget, file, total);
}
