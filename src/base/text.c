#include "base/text.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

#define MAX_INTS 100000 /* members of one list of numbers */

/* x >= 0 with three significant digits; the result is below 1000 where x rounds so */
static void three_digits(char *buf, gsize size, double x, gboolean trim)
{
    const char *format = x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f";
    g_ascii_formatd(buf, (int)size, format, x);
    if (!trim || !strchr(buf, '.'))
        return;
    char *end = buf + strlen(buf);
    while (end[-1] == '0')
        *--end = 0;
    if (end[-1] == '.')
        *--end = 0;
}

/* divide x by 1000 until it prints below 1000, at most n - 1 times; returns how often */
static int scale(double *x, int n)
{
    int i = 0;
    while (*x >= 999.5 && i < n - 1) {
        *x /= 1000.0;
        i++;
    }
    return i;
}

char *hn_text_size(guint64 bytes)
{
    static const char *const unit[] = { "B", "KB", "MB", "GB", "TB", "PB", "EB" };
    char buf[G_ASCII_DTOSTR_BUF_SIZE];
    double x = (double)bytes;
    if (bytes < 1000)
        return g_strdup_printf("%" G_GUINT64_FORMAT " B", bytes);
    int i = scale(&x, G_N_ELEMENTS(unit));
    three_digits(buf, sizeof buf, x, TRUE);
    return g_strdup_printf("%s %s", buf, unit[i]);
}

char *hn_text_time(double seconds)
{
    static const char *const unit[] = { "ns", "us", "ms", "s" };
    char buf[G_ASCII_DTOSTR_BUF_SIZE];
    const char *sign = seconds < 0 ? "-" : "";
    double x = fabs(seconds);
    if (!isfinite(x) || x > 1e12)
        return g_strdup("unknown");
    if (x >= 119.5) {
        guint64 s = (guint64)(x + 0.5), min = s / 60, h = min / 60;
        if (h)
            return g_strdup_printf("%s%" G_GUINT64_FORMAT " h %d min", sign, h, (int)(min % 60));
        return g_strdup_printf("%s%d min %d s", sign, (int)min, (int)(s % 60));
    }
    x *= 1e9;
    int i = scale(&x, G_N_ELEMENTS(unit));
    three_digits(buf, sizeof buf, x, FALSE);
    return g_strdup_printf("%s%s %s", sign, x == 0 ? "0" : buf, unit[i]);
}

char *hn_text_number(double x)
{
    static const char *const unit[] = { "", " k", " M", " G", " T", " P" };
    char buf[G_ASCII_DTOSTR_BUF_SIZE];
    if (isnan(x))
        return g_strdup("-");
    if (isinf(x))
        return g_strdup(x < 0 ? "-inf" : "inf");
    const char *sign = x < 0 ? "-" : "";
    double y = fabs(x);
    if (y != 0 && (y < 0.01 || y >= 999.5e15)) {
        g_ascii_formatd(buf, sizeof buf, "%.3g", x);
        return g_strdup(buf);
    }
    int i = scale(&y, G_N_ELEMENTS(unit));
    if (y < 0.9995 && y != 0)
        g_ascii_formatd(buf, sizeof buf, "%.3g", y);
    else
        three_digits(buf, sizeof buf, y, TRUE);
    return g_strdup_printf("%s%s%s", sign, buf, unit[i]);
}

char *hn_text_percent(double fraction)
{
    char buf[G_ASCII_DTOSTR_BUF_SIZE];
    double x = fabs(fraction * 100.0);
    if (!isfinite(x))
        return g_strdup("-");
    g_ascii_formatd(buf, sizeof buf, x < 0.0995 && x != 0 ? "%.2g" : x < 99.95 ? "%.1f" : "%.0f", x);
    return g_strdup_printf("%s%s %%", fraction < 0 ? "-" : "", buf);
}

gboolean hn_text_is_hidden(gunichar c)
{
    switch (g_unichar_type(c)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
        return TRUE;
    default:
        return FALSE;
    }
}

char *hn_text_clean(const char *s)
{
    GString *out = g_string_new(NULL);
    while (*s) {
        gunichar c = g_utf8_get_char_validated(s, -1);
        if (c >= (gunichar)-2) {
            g_string_append_c(out, '?');
            s++;
            continue;
        }
        g_string_append_unichar(out, hn_text_is_hidden(c) ? '?' : c);
        s = g_utf8_next_char(s);
    }
    return g_string_free(out, FALSE);
}

char *hn_text_cut(const char *s, gsize most)
{
    static const char gap[] = " ... ";
    const gsize n = strlen(s), kept = most - strlen(gap);
    if (n <= most)
        return g_strdup(s);
    const char *head = s + kept - kept / 3, *tail = s + n - kept / 3;
    while ((*head & 0xc0) == 0x80) /* inside a character */
        head--;
    while ((*tail & 0xc0) == 0x80)
        tail++;
    return g_strdup_printf("%.*s%s%s", (int)(head - s), s, gap, tail);
}

/* Reads plain decimal digits, with a fraction and an exponent where real is set; no blanks, no hex, no inf. */
static gboolean number_prefix(const char *text, gboolean real, double *x, const char **rest)
{
    const char *p = text;
    if (*p == '-' || *p == '+')
        p++;
    const char *digits = p;
    while (g_ascii_isdigit(*p))
        p++;
    gsize n = (gsize)(p - digits);
    if (real && *p == '.') {
        const char *fraction = ++p;
        while (g_ascii_isdigit(*p))
            p++;
        n += (gsize)(p - fraction);
    }
    if (!n)
        return FALSE;
    if (real && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (*q == '-' || *q == '+')
            q++;
        if (g_ascii_isdigit(*q)) {
            while (g_ascii_isdigit(*q))
                q++;
            p = q;
        }
    }
    *x = g_ascii_strtod(text, NULL);
    *rest = p;
    return isfinite(*x);
}

typedef struct {
    const char *name;
    double factor;
} Unit;

/* text is a number >= 0 and a unit of the table, blanks between them allowed */
static gboolean parse_unit(const char *text, const Unit *units, gsize n, gboolean any_case, double *out)
{
    double x;
    const char *rest;
    if (!number_prefix(text, TRUE, &x, &rest) || signbit(x))
        return FALSE;
    while (*rest == ' ')
        rest++;
    for (gsize i = 0; i < n; i++) {
        if (any_case ? !g_ascii_strcasecmp(rest, units[i].name) : !strcmp(rest, units[i].name)) {
            *out = x * units[i].factor;
            return TRUE;
        }
    }
    return FALSE;
}

gboolean hn_parse_size(const char *text, guint64 *bytes, GError **error)
{
    static const Unit units[] = {
        { "", 1 },     { "B", 1 },     { "K", 1e3 },      { "KB", 1e3 },     { "KiB", 0x1p10 },
        { "M", 1e6 },  { "MB", 1e6 },  { "MiB", 0x1p20 }, { "G", 1e9 },      { "GB", 1e9 },
        { "T", 1e12 }, { "TB", 1e12 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 },
    };
    double x;
    if (!parse_unit(text, units, G_N_ELEMENTS(units), TRUE, &x) || x >= 0x1p63) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a size such as 512M, 2GB or 1.5GiB", text);
        return FALSE;
    }
    *bytes = (guint64)(x + 0.5);
    return TRUE;
}

/* bare: without a unit it is seconds */
static gboolean parse_time(const char *text, gboolean bare, double *seconds, GError **error)
{
    static const Unit units[] = {
        { "", 1 },  { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 },
        { "s", 1 }, { "m", 60 },    { "min", 60 },  { "h", 3600 },
    };
    const gsize skip = bare ? 0 : 1;
    double x;
    if (!parse_unit(text, units + skip, G_N_ELEMENTS(units) - skip, FALSE, &x) || x > 1e9) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a duration such as 200ms, 3s or 2m", text);
        return FALSE;
    }
    *seconds = x;
    return TRUE;
}

gboolean hn_parse_duration(const char *text, double *seconds, GError **error)
{
    return parse_time(text, FALSE, seconds, error);
}

gboolean hn_parse_seconds(const char *text, double *seconds, GError **error)
{
    return parse_time(text, TRUE, seconds, error);
}

gboolean hn_parse_percent(const char *text, double *fraction, GError **error)
{
    static const Unit units[] = { { "%", 1.0 } };
    double x;
    if (!parse_unit(text, units, G_N_ELEMENTS(units), FALSE, &x)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a percentage such as 3%% or 0.5%%", text);
        return FALSE;
    }
    *fraction = x / 100.0;
    return TRUE;
}

/* the whole number at the start of text, however long */
static gboolean int_prefix(const char *text, gint64 *x, const char **rest)
{
    double ignored;
    if (!number_prefix(text, FALSE, &ignored, rest))
        return FALSE;
    g_autofree char *digits = g_strndup(text, (gsize)(*rest - text));
    return g_ascii_string_to_signed(digits + (*digits == '+'), 10, G_MININT64, G_MAXINT64, x, NULL);
}

static void range_error(GError **error, const char *text, gint64 lo, gint64 hi)
{
    if (hi == G_MAXINT64)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a whole number of at least %" G_GINT64_FORMAT, text,
                    lo);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "'%s' is not a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, text, lo, hi);
}

gboolean hn_parse_int(const char *text, gint64 lo, gint64 hi, gint64 *x, GError **error)
{
    gint64 y;
    const char *rest;
    if (!int_prefix(text, &y, &rest) || *rest || y < lo || y > hi) {
        range_error(error, text, lo, hi);
        return FALSE;
    }
    *x = y;
    return TRUE;
}

gboolean hn_parse_double(const char *text, double lo, double hi, double *x, GError **error)
{
    double y;
    const char *rest;
    if (!number_prefix(text, TRUE, &y, &rest) || *rest) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a number", text);
        return FALSE;
    }
    if (!(y >= lo && y <= hi)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not between %g and %g", text, lo, hi);
        return FALSE;
    }
    *x = y;
    return TRUE;
}

/* one part of a list: "8", "1..4" or "1..32*2" */
static gboolean parse_part(const char *part, gint64 lo, gint64 hi, GArray *out)
{
    gint64 first, last, factor = 1;
    const char *rest;
    if (!int_prefix(part, &first, &rest))
        return FALSE;
    last = first;
    if (g_str_has_prefix(rest, "..")) {
        if (!int_prefix(rest + 2, &last, &rest))
            return FALSE;
        if (*rest == '*' && (!int_prefix(rest + 1, &factor, &rest) || factor < 2 || first < 1))
            return FALSE;
    }
    if (*rest || first < lo || last > hi || last < first)
        return FALSE;
    for (gint64 x = first;;) {
        if (out->len >= MAX_INTS)
            return FALSE;
        g_array_append_val(out, x);
        if (factor == 1 ? x >= last : x > last / factor)
            return TRUE;
        x = factor == 1 ? x + 1 : x * factor;
    }
}

GArray *hn_parse_ints(const char *text, gint64 lo, gint64 hi, GError **error)
{
    g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(gint64));
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    for (int i = 0; parts[i]; i++) {
        if (!parse_part(parts[i], lo, hi, out)) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "'%s' is not a list such as 1,8,32 or 1..4 or 1..32*2 of numbers from %" G_GINT64_FORMAT
                        " to %" G_GINT64_FORMAT,
                        text, lo, hi);
            return NULL;
        }
    }
    if (!out->len) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, "'' is not a list of numbers");
        return NULL;
    }
    return g_steal_pointer(&out);
}
