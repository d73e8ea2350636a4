#include "base/regex.h"

#include <string.h>
#include <time.h>

#include "base/error.h"

#define MOST_STEPS \
    20000 /* from one place in a name, some 20 ns each; what people write takes a few for each character */
#define MOST_NS ((guint64)1000000000)

struct HnRegex {
    GRegex *regex;
    char *pattern; /* as it was given */
    guint64 ns;    /* so far */
};

/* What GRegex says, in our form. */
static void tell(const char *pattern, const GError *cause, GError **error)
{
    const char *colon = strrchr(cause->message, ':');
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "pattern '%s' is wrong%s", pattern, colon != NULL ? colon : "");
}

GRegex *hn_regex_limited(const char *pattern, int steps, GRegexCompileFlags flags, GError **error)
{
    g_autofree char *limited = g_strdup_printf("(*LIMIT_MATCH=%d)(*LIMIT_DEPTH=%d)%s", steps, steps, pattern);
    return g_regex_new(limited, flags, 0, error);
}

HnRegex *hn_regex_new(const char *pattern, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (strlen(pattern) > HN_REGEX_BYTES || !g_utf8_validate(pattern, -1, NULL)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "pattern '%.20s...' is longer than %d bytes, or no UTF-8", pattern,
                    HN_REGEX_BYTES);
        return NULL;
    }
    if (g_str_has_prefix(pattern, "(*")) { /* limits of its own, the last of which would count */
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "pattern '%s' begins with '(*'", pattern);
        return NULL;
    }
    GRegex *regex = hn_regex_limited(pattern, MOST_STEPS, 0, &cause);
    if (regex == NULL) {
        tell(pattern, cause, error);
        return NULL;
    }
    HnRegex *r = g_new(HnRegex, 1);
    *r = (HnRegex){ .regex = regex, .pattern = g_strdup(pattern) };
    return r;
}

void hn_regex_free(HnRegex *r)
{
    if (r == NULL)
        return;
    g_regex_unref(r->regex);
    g_free(r->pattern);
    g_free(r);
}

static guint64 processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (guint64)t.tv_sec * 1000000000 + (guint64)t.tv_nsec;
}

gboolean hn_regex_find(HnRegex *r, const char *name, gboolean *found, GError **error)
{
    g_autofree char *valid = g_utf8_make_valid(name, -1);
    g_autoptr(GError) cause = NULL;
    const guint64 start = processor_ns();
    *found = FALSE;
    if (strlen(name) > HN_REGEX_BYTES) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "pattern '%s' meets a name longer than %d bytes, '%.20s...'",
                    r->pattern, HN_REGEX_BYTES, valid);
        return FALSE;
    }
    *found = g_regex_match_full(r->regex, valid, -1, 0, 0, NULL, &cause);
    r->ns += processor_ns() - start;
    if (cause == NULL && r->ns <= MOST_NS)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "pattern '%s' takes too many steps on '%s'", r->pattern, valid);
    return FALSE;
}
