#include "data/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define MOST_EMPTY 65536 /* elements of strings of no bytes */
#define ALIGN 64         /* NumPy pads the header so that the elements start at a multiple of this */

/* kind and bytes of an element as NumPy writes them */
static const struct {
    HnDtype dtype;
    char kind;
    int size;
} types[] = {
    { HN_F32, 'f', 4 }, { HN_F64, 'f', 8 },  { HN_F16, 'f', 2 },  { HN_I64, 'i', 8 }, { HN_I32, 'i', 4 },
    { HN_I16, 'i', 2 }, { HN_I8, 'i', 1 },   { HN_U8, 'u', 1 },   { HN_U16, 'u', 2 }, { HN_U32, 'u', 4 },
    { HN_U64, 'u', 8 }, { HN_BOOL, 'b', 1 }, { HN_BF16, 'V', 2 }, { HN_C64, 'c', 8 }, { HN_C128, 'c', 16 },
};

gboolean hn_npy_is(gconstpointer data, gsize size)
{
    return size >= MAGIC_SIZE && !memcmp(data, MAGIC, MAGIC_SIZE);
}

/* --- the header: a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---------- */

typedef struct {
    const char *at, *end;
} Text;

static void skip_blanks(Text *t)
{
    while (t->at < t->end && strchr(" \t\r\n\f", *t->at) && *t->at)
        t->at++;
}

static gboolean take(Text *t, char c)
{
    skip_blanks(t);
    if (t->at >= t->end || *t->at != c)
        return FALSE;
    t->at++;
    return TRUE;
}

static gboolean take_word(Text *t, const char *word)
{
    skip_blanks(t);
    gsize n = strlen(word);
    if ((gsize)(t->end - t->at) < n || memcmp(t->at, word, n))
        return FALSE;
    t->at += n;
    return TRUE;
}

/* a quoted string without escapes; FALSE where there is none, or none that fits */
static gboolean take_string(Text *t, char *out, gsize room)
{
    skip_blanks(t);
    if (t->at >= t->end || (*t->at != '\'' && *t->at != '"'))
        return FALSE;
    const char *start = t->at + 1, *stop = memchr(start, *t->at, (gsize)(t->end - start));
    if (!stop || (gsize)(stop - start) >= room)
        return FALSE;
    memcpy(out, start, (gsize)(stop - start));
    out[stop - start] = 0;
    t->at = stop + 1;
    return TRUE;
}

/* digits, with the L that Python 2 put behind them */
static gboolean take_int(Text *t, int64_t *x)
{
    skip_blanks(t);
    const char *start = t->at;
    int64_t v = 0;
    for (; t->at < t->end && g_ascii_isdigit(*t->at); t->at++)
        if (!hn_mul_i64(v, 10, &v) || !hn_add_i64(v, *t->at - '0', &v))
            return FALSE;
    if (t->at == start)
        return FALSE;
    if (t->at < t->end && *t->at == 'L')
        t->at++;
    *x = v;
    return TRUE;
}

typedef enum { GOOD, MALFORMED, RANK } Outcome;

static Outcome take_shape(Text *t, HnNpyHead *head)
{
    if (!take(t, '('))
        return MALFORMED;
    head->ndim = 0;
    while (!take(t, ')')) {
        if (head->ndim == HN_MAX_RANK)
            return RANK;
        if (!take_int(t, &head->dims[head->ndim++]))
            return MALFORMED;
        if (!take(t, ','))
            return take(t, ')') ? GOOD : MALFORMED;
    }
    return GOOD;
}

static Outcome take_dict(Text *t, HnNpyHead *head, char *descr, gsize room)
{
    unsigned seen = 0;
    char key[32];
    if (!take(t, '{'))
        return MALFORMED;
    while (!take(t, '}')) {
        if (!take_string(t, key, sizeof key) || !take(t, ':'))
            return MALFORMED;
        if (!strcmp(key, "descr")) {
            skip_blanks(t);
            if (t->at < t->end && *t->at == '[') { /* a record: the caller refuses its name */
                g_strlcpy(descr, "record", room);
                return GOOD;
            }
            if (!take_string(t, descr, room))
                return MALFORMED;
            seen |= 1;
        } else if (!strcmp(key, "fortran_order")) {
            head->fortran = take_word(t, "True");
            if (!head->fortran && !take_word(t, "False"))
                return MALFORMED;
            seen |= 2;
        } else if (!strcmp(key, "shape")) {
            Outcome outcome = take_shape(t, head);
            if (outcome != GOOD)
                return outcome;
            seen |= 4;
        } else {
            return MALFORMED;
        }
        if (!take(t, ','))
            return take(t, '}') && seen == 7 ? GOOD : MALFORMED;
    }
    return seen == 7 ? GOOD : MALFORMED;
}

/* 'U5' or 'S20' */
static gboolean parse_text(const char *p, gboolean big, HnNpyHead *head)
{
    const gboolean unicode = *p == 'U';
    char *end;
    if ((!unicode && *p != 'S') || !g_ascii_isdigit(p[1]))
        return FALSE;
    const guint64 n = g_ascii_strtoull(p + 1, &end, 10);
    head->dtype = HN_STRING;
    head->unicode = unicode;
    head->big = big && unicode;
    return *end == '\0' && hn_mul_size(n, unicode ? 4 : 1, &head->width);
}

static gboolean parse_descr(const char *descr, HnNpyHead *head)
{
    const char *p = descr;
    gboolean big = *p == '>';
    if (*p && strchr("<>|=", *p))
        p++;
    if (parse_text(p, big, head))
        return TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        char text[8];
        g_snprintf(text, sizeof text, "%c%d", types[i].kind, types[i].size);
        if (strcmp(p, text) && !(types[i].dtype == HN_BOOL && !strcmp(p, "?")))
            continue;
        if (big && types[i].kind == 'V')
            return FALSE;
        head->dtype = types[i].dtype;
        head->big = big && types[i].size > 1;
        return TRUE;
    }
    return FALSE;
}

/* Strings without bytes would be many elements of a small file. */
static gboolean count_bytes(HnNpyHead *h)
{
    if (h->dtype == HN_STRING)
        return (h->width > 0 || h->n <= MOST_EMPTY) && hn_mul_size((gsize)h->n, h->width, &h->bytes) &&
               h->bytes <= PTRDIFF_MAX;
    return hn_dtype_bytes(h->dtype, h->n, &h->bytes);
}

gboolean hn_npy_parse(gconstpointer data, gsize size, const char *name, HnNpyHead *head, GError **error)
{
    const guint8 *p = data;
    if (!hn_npy_is(data, size) || size < MAGIC_SIZE + 4) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is not a .npy file", name);
        return FALSE;
    }
    int version = p[MAGIC_SIZE];
    if (version < 1 || version > 3) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' has version %d of the .npy format, which is not known",
                    name, version);
        return FALSE;
    }
    gsize start = version == 1 ? 10 : 12, length = p[8] | (gsize)p[9] << 8;
    if (version > 1 && size >= start)
        length |= (gsize)p[10] << 16 | (gsize)p[11] << 24;
    if (start > size || length > size - start) {
        gboolean is_long = length > HN_NPY_HEAD && size >= HN_NPY_HEAD;
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, is_long ? "the header of '%s' is too long" : "'%s' is cut off",
                    name);
        return FALSE;
    }
    char descr[32] = "";
    HnNpyHead h = { .offset = start + length };
    Text text = { (const char *)p + start, (const char *)p + start + length };
    Outcome outcome = take_dict(&text, &h, descr, sizeof descr);
    if (outcome == RANK)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' has more than %d dimensions", name, HN_MAX_RANK);
    else if (outcome == MALFORMED)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "the header of '%s' is not that of a .npy file", name);
    else if (!parse_descr(descr, &h))
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' holds elements of type '%s', which hone does not read",
                    name, descr);
    else if (!hn_dims_count(h.ndim, h.dims, &h.n) || !count_bytes(&h))
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has dimensions whose product is too large", name);
    else {
        *head = h;
        return TRUE;
    }
    return FALSE;
}

/* --- elements ---------------------------------------------------------------------------------------------------- */

/* bytes that are turned around together: the element, or half of a complex one */
static gsize unit_size(HnDtype dtype)
{
    gsize size = hn_dtype_size(dtype);
    return dtype == HN_C64 || dtype == HN_C128 ? size / 2 : size;
}

static void swap_bytes(guint8 *p, gsize bytes, gsize unit)
{
    for (guint8 *end = p + bytes; p < end; p += unit) {
        for (gsize i = 0; i < unit / 2; i++) {
            guint8 x = p[i];
            p[i] = p[unit - 1 - i];
            p[unit - 1 - i] = x;
        }
    }
}

/* src has the first index fastest, dst the last */
static void reorder(const HnNpyHead *h, const guint8 *src, guint8 *dst)
{
    int64_t index[HN_MAX_RANK] = { 0 }, stride[HN_MAX_RANK], at = 0;
    gsize size = h->dtype == HN_STRING ? h->width : hn_dtype_size(h->dtype);
    if (h->n == 0)
        return;
    for (int d = 0; d < h->ndim; d++)
        stride[d] = d ? stride[d - 1] * h->dims[d - 1] : 1;
    for (int64_t i = 0; i < h->n; i++) {
        memcpy(dst + (gsize)i * size, src + (gsize)at * size, size);
        for (int d = h->ndim - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < h->dims[d])
                break;
            at -= stride[d] * h->dims[d];
            index[d] = 0;
        }
    }
}

static gboolean check_bools(const HnNpyHead *head, const guint8 *elements, const char *name, GError **error)
{
    for (gsize i = 0; head->dtype == HN_BOOL && i < head->bytes; i++) {
        if (elements[i] <= 1)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has a bool that is %d", name, elements[i]);
        return FALSE;
    }
    return TRUE;
}

gboolean hn_npy_convert(const HnNpyHead *head, void *elements, const char *name, GError **error)
{
    if (head->big)
        swap_bytes(elements, head->bytes, unit_size(head->dtype));
    return check_bools(head, elements, name, error);
}

static HnTensor *turned_strings(const HnNpyHead *head, const guint8 *src, const char *name, HnBudget *budget,
                                GError **error)
{
    guint8 *turned = hn_budget_alloc(budget, head->bytes, error);
    if (!turned)
        return NULL;
    reorder(head, src, turned);
    HnTensor *t = hn_npy_strings(head, turned, name, budget, error);
    hn_budget_free(budget, turned);
    return t;
}

HnTensor *hn_npy_tensor(const HnNpyHead *head, GBytes *bytes, gsize offset, const char *name, HnBudget *budget,
                        GError **error)
{
    gsize size = g_bytes_get_size(bytes);
    if (offset > size || head->bytes > size - offset) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "'%s' is cut off: %" G_GSIZE_FORMAT " bytes of elements instead of %" G_GSIZE_FORMAT, name,
                    offset > size ? 0 : size - offset, head->bytes);
        return NULL;
    }
    const guint8 *src = (const guint8 *)g_bytes_get_data(bytes, NULL) + (head->bytes ? offset : 0);
    if (!check_bools(head, src, name, error))
        return NULL;
    gboolean turn = head->fortran && head->ndim > 1;
    g_autoptr(HnTensor) t = NULL;
    if (head->dtype == HN_STRING)
        return turn ? turned_strings(head, src, name, budget, error) : hn_npy_strings(head, src, name, budget, error);
    if (!turn && !head->big) {
        t = hn_tensor_new_bytes(head->dtype, head->ndim, head->dims, bytes, offset, budget, error);
    } else {
        t = hn_tensor_new_uninit(head->dtype, head->ndim, head->dims, budget, error);
        if (t && turn)
            reorder(head, src, t->data);
        else if (t && head->bytes)
            memcpy(t->data, src, head->bytes);
        if (t && head->big)
            swap_bytes(t->data, head->bytes, unit_size(head->dtype));
    }
    if (!t)
        g_prefix_error(error, "cannot read '%s': ", name);
    return g_steal_pointer(&t);
}

HnTensor *hn_npy_read_bytes(GBytes *bytes, const char *name, HnBudget *budget, GError **error)
{
    HnNpyHead head;
    gsize size;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    if (!hn_npy_parse(data, size, name, &head, error))
        return NULL;
    return hn_npy_tensor(&head, bytes, head.offset, name, budget, error);
}

HnTensor *hn_npy_read(const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) bytes = hn_file_bytes(path, budget, error);
    return bytes ? hn_npy_read_bytes(bytes, strcmp(path, "-") ? path : "stdin", budget, error) : NULL;
}

GBytes *hn_npy_header(HnDtype dtype, int ndim, const int64_t *dims, GError **error)
{
    gsize k = 0;
    while (k < G_N_ELEMENTS(types) && types[k].dtype != dtype)
        k++;
    if (k == G_N_ELEMENTS(types)) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "a .npy file cannot hold elements of type %s",
                    hn_dtype_name(dtype));
        return NULL;
    }
    char descr[16];
    g_snprintf(descr, sizeof descr, "%c%c%d", types[k].size == 1 ? '|' : '<', types[k].kind, types[k].size);
    return hn_npy_header_of(descr, ndim, dims);
}

GBytes *hn_npy_header_of(const char *descr, int ndim, const int64_t *dims)
{
    GString *s = g_string_new(NULL);
    g_string_printf(s, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < ndim; d++)
        g_string_append_printf(s, "%s%" PRId64, d ? ", " : "", dims[d]);
    g_string_append(s, ndim == 1 ? ",), }" : "), }");
    while ((MAGIC_SIZE + 4 + s->len + 1) % ALIGN)
        g_string_append_c(s, ' ');
    g_string_append_c(s, '\n');
    char prefix[MAGIC_SIZE + 4] = MAGIC "\x01"; /* version 1.0, then the length of the rest */
    prefix[MAGIC_SIZE + 2] = (char)(s->len & 0xff);
    prefix[MAGIC_SIZE + 3] = (char)(s->len >> 8);
    g_string_prepend_len(s, prefix, sizeof prefix);
    return g_string_free_to_bytes(s);
}

gboolean hn_npy_write(HnOutFile *out, const HnTensor *t, GError **error)
{
    const gboolean text = t->dtype == HN_STRING;
    g_autoptr(GBytes) header =
        text ? hn_npy_text_file(t, NULL, error) : hn_npy_header(t->dtype, t->ndim, t->dims, error);
    if (!header)
        return FALSE;
    gsize size;
    gconstpointer data = g_bytes_get_data(header, &size);
    return hn_out_write(out, data, size, error) && (text || hn_out_write(out, t->data, t->bytes, error));
}
