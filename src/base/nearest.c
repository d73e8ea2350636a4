#include "base/nearest.h"

#include <string.h>

#define LONGEST 63       /* bytes of what is asked for that count ... */
#define LONGEST_NAME 255 /* ... and of a name */
#define SHOWN 3          /* names in an error */
#define LOOKED_AT 20000  /* names, each of which takes up to 30 us */

/* Edits between a and b, or, inside, between a and that part of b which is most like it. */
static int distance(const char *a, const char *b, gboolean inside)
{
    int d[3][LONGEST_NAME + 1]; /* the last three rows, one for each length of a */
    const int n = (int)MIN(strlen(a), LONGEST), m = (int)MIN(strlen(b), LONGEST_NAME);
    for (int i = 0; i <= n; i++) {
        int *now = d[i % 3], *last = d[(i + 2) % 3], *before = d[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            if (i == 0) {
                now[j] = inside ? 0 : j;
                continue;
            }
            now[j] = MIN(MIN(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = MIN(now[j], before[j - 2] + 1);
        }
    }
    int least = d[n % 3][m];
    for (int j = 0; j < m && inside; j++)
        least = MIN(least, d[n % 3][j]);
    return least;
}

const char *hn_nearest(const char *name, const char *const *names)
{
    const char *best = NULL;
    int least = (int)MIN(strlen(name) / 3, 3) + 1; /* further away is no likeness */
    for (; *names != NULL; names++) {
        int d = distance(name, *names, FALSE);
        if (d < least) {
            least = d;
            best = *names;
        }
    }
    return best;
}

/* What of a pattern is text, in lower case: "^/conv\\d+(a|b)$" is "/convab". */
static char *plain(const char *pattern)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p += g_ascii_isalnum(p[1]) ? 2 : 1; /* a class, or the character itself */
        if (*p == '\0')
            break;
        if (strchr("^$*+?()[]{}|", *p) == NULL)
            g_string_append_c(text, g_ascii_tolower(*p));
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

typedef struct {
    const char *name;
    int edits, whole; /* inside the name; between all of both */
} Near;

static int compare_near(gconstpointer a, gconstpointer b)
{
    const Near *x = a, *y = b;
    if (x->edits != y->edits)
        return x->edits < y->edits ? -1 : 1;
    return (x->whole > y->whole) - (x->whole < y->whole);
}

/* In that order; equal ones as they come. */
static GArray *by_likeness(const char *asked, const char *const *names)
{
    g_autofree char *text = plain(asked);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    GArray *near = g_array_new(FALSE, FALSE, sizeof(Near));
    for (; *names != NULL && near->len < LOOKED_AT; names++) {
        if (!g_hash_table_add(seen, (gpointer)*names))
            continue;
        g_autofree char *lower = g_ascii_strdown(*names, -1);
        const Near n = { *names, distance(text, lower, TRUE), distance(text, lower, FALSE) };
        g_array_append_val(near, n);
    }
    g_array_sort(near, compare_near);
    return near;
}

char *hn_nearest_words(const char *asked, const char *const *names)
{
    g_autoptr(GArray) near = by_likeness(asked, names);
    const guint n = MIN(near->len, SHOWN);
    if (n == 0)
        return g_strdup("; there is none");
    g_autoptr(GString) text = g_string_new(n == 1 ? "; there is" : "; the nearest are");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(text, "%s '%s'",
                               i == 0       ? ""
                               : i + 1 == n ? " and"
                                            : ",",
                               g_array_index(near, Near, i).name);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
