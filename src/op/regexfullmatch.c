/*
 * RegexFullMatch: does a pattern of RE2 describe the whole of each string?
 *
 * RE2 looks at all ways at once and takes time in proportion to the string; GRegex tries them one after the other. So
 * what only the latter knows (references to groups, looking around, groups that do not give back) is refused, classes
 * such as \d are written out as the ASCII ones that RE2 means, and a string on which too many steps would have to be
 * tried is an error: it is never guessed.
 */
#include <string.h>

#include "base/regex.h"
#include "op/move.h"

#define MOST_STEPS 10000000 /* for one string: about 0.2 s */
#define MOST_BYTES 100000   /* of a pattern */

typedef struct {
    GBytes *pattern; /* borrowed */
} Regex;

/* What RE2 does not know of the two or three bytes at p; NULL: it does. */
static const char *foreign(const char *p, gboolean in_class)
{
    static const char *const groups[] = { "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "(?R", "(?&", "(?|", "(*" };
    if (in_class)
        return NULL;
    if (p[0] == '\\' && (g_ascii_isdigit(p[1]) || (p[1] != '\0' && strchr("gkGKRXhHNZ", p[1]) != NULL)))
        return "a reference to what was matched, or another escape";
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++)
        if (g_str_has_prefix(p, groups[i]))
            return "a group";
    if (p[0] != '\0' && strchr("*+?}", p[0]) != NULL && p[1] == '+')
        return "a repetition";
    return NULL;
}

/* The class that RE2 means by \c, as it is written inside of [...]; NULL: another escape. */
static const char *ascii_class(char c)
{
    return c == 'd' ? "0-9" : c == 'w' ? "0-9A-Za-z_" : c == 's' ? "\\t\\n\\f\\r " : NULL;
}

/* Escape \c outside or inside of a class. FALSE: as it stands. */
static gboolean write_escape(GString *out, char c, gboolean in_class)
{
    const char *set = ascii_class(g_ascii_tolower(c));
    if (set == NULL || (in_class && g_ascii_isupper(c)))
        return FALSE;
    if (in_class)
        g_string_append(out, set);
    else
        g_string_append_printf(out, "[%s%s]", g_ascii_isupper(c) ? "^" : "", set);
    return TRUE;
}

/* The pattern in GRegex's words; NULL: *what RE2 has not. */
static char *translate(const char *pattern, const char **what)
{
    g_autoptr(GString) out = g_string_new(NULL);
    gboolean in_class = FALSE;
    for (const char *p = pattern; *p != '\0'; p++) {
        if ((*what = foreign(p, in_class)) != NULL)
            return NULL;
        if (*p == '\\' && p[1] == 'Q') { /* as it stands, up to \E */
            const char *end = strstr(p, "\\E");
            g_string_append_len(out, p, end != NULL ? end - p : (gssize)strlen(p));
            if (end == NULL)
                g_string_append(out, "\\E");
            p = end != NULL ? end - 1 : p + strlen(p) - 1;
            continue;
        }
        if (*p == '\\' && p[1] != '\0') {
            if (!write_escape(out, p[1], in_class))
                g_string_append_len(out, p, 2);
            p++;
            continue;
        }
        if (!in_class && *p == '[') {
            in_class = TRUE;
            const gsize n = p[1] == '^' ? 2 : 1; /* a ']' behind it is one of the characters */
            g_string_append_len(out, p, (gssize)(n + (p[n] == ']')));
            p += n + (p[n] == ']') - 1;
            continue;
        }
        if (in_class && *p == '[' && p[1] == ':' && strstr(p, ":]") != NULL) {
            const char *end = strstr(p, ":]") + 2;
            g_string_append_len(out, p, end - p);
            p = end - 1;
            continue;
        }
        in_class = in_class && *p != ']';
        g_string_append_c(out, *p);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* NULL: *why says why not; g_free. */
static GRegex *compile(const Regex *p, char **why)
{
    gsize n;
    const char *text = g_bytes_get_data(p->pattern, &n), *what = NULL;
    if (n > MOST_BYTES || memchr(text != NULL ? text : "", 0, n) != NULL ||
        !g_utf8_validate_len(text ? text : "", n, NULL)) {
        *why = g_strdup_printf("the pattern is longer than %d bytes, or no text in UTF-8", MOST_BYTES);
        return NULL;
    }
    g_autofree char *pattern = g_strndup(text != NULL ? text : "", n);
    g_autofree char *own = translate(pattern, &what);
    /* by itself first: what closes a group that it did not open would end ours */
    g_autoptr(GRegex) alone = own != NULL ? hn_regex_limited(own, MOST_STEPS, 0, NULL) : NULL;
    g_autofree char *whole = g_strdup_printf("(?:%s)\\z", own != NULL ? own : "");
    GRegex *regex =
        alone != NULL ? hn_regex_limited(whole, MOST_STEPS, G_REGEX_ANCHORED | G_REGEX_DOLLAR_ENDONLY, NULL) : NULL;
    if (regex == NULL)
        *why = own == NULL ? g_strdup_printf("pattern '%.200s' has %s that patterns of RE2 have not", pattern, what)
                           : g_strdup_printf("pattern '%.200s' is wrong", pattern);
    return regex;
}

static void regexfullmatch_bind(HnBind *b, void *params)
{
    Regex *p = params;
    const HnAttr *a = hn_node_attr(b->node, "pattern");
    hn_bind_require(b, "pattern");
    if (a == NULL)
        return;
    if (a->kind != HN_ATTR_STRING || a->ref_attr != NULL) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'pattern' is no string");
        return;
    }
    p->pattern = a->s;
    g_autofree char *why = NULL;
    g_autoptr(GRegex) regex = compile(p, &why);
    if (regex == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%s", why);
}

static void regexfullmatch_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, HN_BOOL, 0);
}

static void regexfullmatch_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    g_autofree char *why = NULL;
    g_autoptr(GRegex) regex = compile(e->params, &why);
    uint8_t *y = regex != NULL ? hn_eval_out(e, 0, HN_BOOL, x->ndim, x->dims) : NULL;
    if (regex == NULL)
        hn_eval_fail(e, HN_ERROR_ATTRIBUTE, "%s", why);
    for (int64_t i = 0; y != NULL && i < x->n && e->error == NULL; i++) {
        gsize n;
        const char *s = g_bytes_get_data(hn_tensor_get_string(x, i), &n);
        g_autoptr(GError) cause = NULL;
        y[i] = n <= G_MAXINT && g_utf8_validate_len(s != NULL ? s : "", n, NULL) &&
               g_regex_match_full(regex, s != NULL ? s : "", (gssize)n, 0, 0, NULL, &cause);
        if (cause != NULL)
            hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "the pattern takes more than %d steps on element %" PRId64,
                         MOST_STEPS, i);
        else if (!hn_budget_ask(e->budget, &e->error))
            return;
    }
}

const HnOp hn_op_regexfullmatch = {
    .name = "RegexFullMatch",
    .since = { 20 },
    .in = "T",
    .out = "b",
    .T = HN_BIT(HN_STRING),
    .params_size = sizeof(Regex),
    .bind = regexfullmatch_bind,
    .infer = regexfullmatch_infer,
    .cost = hn_cost_elementwise,
    .ref = regexfullmatch_ref,
};
