/*
 * Sizes, times and numbers as people write them.
 *
 * Formatting returns a new string with three significant digits. Parsing is strict: the whole text or an
 * HN_ERROR_USAGE that quotes it; outputs are untouched on failure. Neither looks at the locale.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

char *hn_text_size(guint64 bytes);      /* "512 B", "1.2 MB": powers of 1000 */
char *hn_text_time(double seconds);     /* "3.41 ms", "2 min 5 s", "unknown" for NaN */
char *hn_text_number(double x);         /* "0.125", "12.3 k", "4.5 M": powers of 1000; "-" for NaN */
char *hn_text_percent(double fraction); /* 0.031 -> "3.1 %" */

/* What a terminal may take for more than a character: controls, marks of direction and other formats, ends of lines. */
gboolean hn_text_is_hidden(gunichar c);

/* s with such characters and broken UTF-8 replaced by '?': names out of a file, on their way to a terminal */
char *hn_text_clean(const char *s);

/* UTF-8 of at most `most` bytes, 16 at least: of what is longer both ends, with " ... " in place of the rest */
char *hn_text_cut(const char *s, gsize most);

/* "512", "512M", "2GB", "1.5 GiB": K, M, G, T (with or without B) are powers of 1000, KiB to TiB of 1024 */
gboolean hn_parse_size(const char *text, guint64 *bytes, GError **error);

/* "200ms", "3s", "2m", "1.5h", "10us", "5ns": seconds; the unit is not optional */
gboolean hn_parse_duration(const char *text, double *seconds, GError **error);
/* the same, and "3" is 3 seconds */
gboolean hn_parse_seconds(const char *text, double *seconds, GError **error);

/* "3%" -> 0.03; the sign is not optional */
gboolean hn_parse_percent(const char *text, double *fraction, GError **error);

/* a decimal number with lo <= x <= hi */
gboolean hn_parse_int(const char *text, gint64 lo, gint64 hi, gint64 *x, GError **error);
gboolean hn_parse_double(const char *text, double lo, double hi, double *x, GError **error);

/* "1,8,32", "1..4" (1 2 3 4), "1..32*2" (1 2 4 8 16 32), and such parts joined by commas: an array of gint64 */
GArray *hn_parse_ints(const char *text, gint64 lo, gint64 hi, GError **error);

G_END_DECLS
