#include "base/jsonread.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"

#define VALUE_BYTES 300  /* that a value costs, all told: what the budget is asked for */
#define NUMBER_CHARS 100 /* of the longest number; 25 tell all of a double */

/* --- looking the text over ---------------------------------------------------------------------------------------- */

typedef struct {
    const char *text, *p, *end;
    char open[HN_JSON_DEPTH]; /* '{' or '[' */
    int depth;
    gsize values, members; /* so far; members: those of all objects */
    GError **error;
} Scan;

static gboolean wrong(const Scan *s, const char *what)
{
    g_set_error(s->error, HN_ERROR, HN_ERROR_FORMAT, "this is no JSON: %s at byte %" G_GSIZE_FORMAT, what,
                (gsize)(s->p - s->text) + 1);
    return FALSE;
}

static gboolean refuse(const Scan *s, const char *what, gsize most)
{
    g_set_error(s->error, HN_ERROR, HN_ERROR_FORMAT, "this JSON has more than %" G_GSIZE_FORMAT " %s", most, what);
    return FALSE;
}

static void skip_blanks(Scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static gboolean take(Scan *s, char c)
{
    if (s->p == s->end || *s->p != c)
        return FALSE;
    s->p++;
    return TRUE;
}

static gboolean take_word(Scan *s, const char *word)
{
    const gsize n = strlen(word);
    if ((gsize)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return wrong(s, "an unknown word");
    s->p += n;
    return TRUE;
}

static gboolean take_digits(Scan *s)
{
    const char *from = s->p;
    while (s->p < s->end && g_ascii_isdigit(*s->p))
        s->p++;
    return s->p > from;
}

static gboolean take_number(Scan *s)
{
    const char *from = s->p;
    char digits[NUMBER_CHARS + 1];
    gboolean whole = TRUE;
    gint64 x;
    take(s, '-');
    if (!take(s, '0') && !take_digits(s))
        return wrong(s, "no value");
    if (take(s, '.')) {
        whole = FALSE;
        if (!take_digits(s))
            return wrong(s, "no digit");
    }
    if (take(s, 'e') || take(s, 'E')) {
        whole = FALSE;
        if (!take(s, '+'))
            take(s, '-');
        if (!take_digits(s))
            return wrong(s, "no digit");
    }
    const gsize n = (gsize)(s->p - from);
    if (n > NUMBER_CHARS)
        return wrong(s, "a number too long");
    memcpy(digits, from, n);
    digits[n] = '\0';
    if (whole ? !g_ascii_string_to_signed(digits, 10, G_MININT64, G_MAXINT64, &x, NULL)
              : !isfinite(g_ascii_strtod(digits, NULL)))
        return wrong(s, "a number too large");
    return TRUE;
}

/* The four digits of "\uXXXX", behind the u. */
static gboolean take_unit(Scan *s, guint *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, s->p++) {
        if (s->p == s->end || !g_ascii_isxdigit(*s->p))
            return wrong(s, "no hexadecimal digit");
        *unit = *unit << 4 | (guint)g_ascii_xdigit_value(*s->p);
    }
    return TRUE;
}

static gboolean take_escape(Scan *s)
{
    guint unit, low;
    if (s->p == s->end || strchr("\"\\/bfnrtu", *s->p) == NULL || *s->p == '\0')
        return wrong(s, "an unknown escape");
    if (*s->p++ != 'u')
        return TRUE;
    if (!take_unit(s, &unit))
        return FALSE;
    if (unit == 0)
        return wrong(s, "a NUL");
    if (unit < 0xd800 || unit > 0xdfff)
        return TRUE;
    if (unit > 0xdbff || !take(s, '\\') || !take(s, 'u'))
        return wrong(s, "half a character");
    return take_unit(s, &low) && (low >= 0xdc00 && low <= 0xdfff ? TRUE : wrong(s, "half a character"));
}

static gboolean take_string(Scan *s)
{
    if (!take(s, '"'))
        return wrong(s, "no string");
    while (s->p < s->end && *s->p != '"') {
        if ((guchar)*s->p < 0x20)
            return wrong(s, "a control character");
        if (*s->p++ == '\\' && !take_escape(s))
            return FALSE;
    }
    return take(s, '"') ? TRUE : wrong(s, "a string without end");
}

/* The name of a member, and the colon. */
static gboolean take_name(Scan *s)
{
    skip_blanks(s);
    if (!take_string(s))
        return FALSE;
    skip_blanks(s);
    s->members++;
    return take(s, ':') ? TRUE : wrong(s, "no colon");
}

/* A value that holds no others, or the beginning of one that does; *open: it may hold more. */
static gboolean take_value(Scan *s, gboolean *open)
{
    *open = FALSE;
    skip_blanks(s);
    if (++s->values > HN_JSON_VALUES)
        return refuse(s, "values", HN_JSON_VALUES);
    switch (s->p < s->end ? *s->p : '\0') {
    case '{':
    case '[':
        if (s->depth == HN_JSON_DEPTH)
            return refuse(s, "levels", HN_JSON_DEPTH);
        s->open[s->depth++] = *s->p++;
        *open = TRUE;
        return TRUE;
    case '"':
        return take_string(s);
    case 't':
        return take_word(s, "true");
    case 'f':
        return take_word(s, "false");
    case 'n':
        return take_word(s, "null");
    default:
        return take_number(s);
    }
}

/* Behind a value: closes what ends here; *more: another value comes next. */
static gboolean take_ends(Scan *s, gboolean *more)
{
    *more = FALSE;
    for (; s->depth > 0; s->depth--) {
        const gboolean object = s->open[s->depth - 1] == '{';
        skip_blanks(s);
        if (take(s, ',')) {
            *more = TRUE;
            return !object || take_name(s);
        }
        if (!take(s, object ? '}' : ']'))
            return wrong(s, object ? "neither ',' nor '}'" : "neither ',' nor ']'");
    }
    return TRUE;
}

/* The first value of what was just opened; *more: there is none, and it is closed. */
static gboolean take_first(Scan *s, gboolean *more)
{
    const gboolean object = s->open[s->depth - 1] == '{';
    skip_blanks(s);
    if (take(s, object ? '}' : ']')) {
        s->depth--;
        return take_ends(s, more);
    }
    *more = TRUE;
    return !object || take_name(s);
}

static gboolean scan(Scan *s)
{
    for (gboolean more = TRUE, open; more;)
        if (!take_value(s, &open) || !(open ? take_first(s, &more) : take_ends(s, &more)))
            return FALSE;
    skip_blanks(s);
    return s->p == s->end ? TRUE : wrong(s, "something behind the end");
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Members of all objects: of two with one name only one is there. At most HN_JSON_DEPTH levels deep. */
static gsize count_members(JsonNode *node)
{
    gsize n = 0;
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObjectIter iter;
        JsonNode *member;
        json_object_iter_init(&iter, json_node_get_object(node));
        while (json_object_iter_next(&iter, NULL, &member))
            n += 1 + count_members(member);
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);
        for (guint i = 0; i < json_array_get_length(array); i++)
            n += count_members(json_array_get_element(array, i));
    }
    return n;
}

static JsonNode *build(const Scan *s, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) cause = NULL;
    if (!json_parser_load_from_data(parser, s->text, s->end - s->text, &cause)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "this is no JSON: %s", cause->message);
        return NULL;
    }
    JsonNode *root = json_parser_steal_root(parser);
    if (count_members(root) == s->members)
        return root;
    g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "this JSON has two members of one name in an object");
    json_node_unref(root);
    return NULL;
}

JsonNode *hn_json_read(const char *text, gsize n, gsize most, HnBudget *budget, GError **error)
{
    Scan s = { .text = text, .p = text, .end = text + n, .error = error };
    if (n > most) {
        refuse(&s, "bytes", most);
        return NULL;
    }
    if (n == 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT, "this is no JSON: it is empty");
        return NULL;
    }
    if (!g_utf8_validate_len(text, n, &s.p)) {
        wrong(&s, "no UTF-8");
        return NULL;
    }
    s.p = text;
    if (!scan(&s) || !hn_budget_charge(budget, s.values * VALUE_BYTES, error))
        return NULL;
    JsonNode *root = build(&s, error);
    hn_budget_uncharge(budget, s.values * VALUE_BYTES);
    return root;
}

JsonNode *hn_json_read_file(const char *path, gsize most, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) bytes = hn_file_bytes_most(path, most, budget, error);
    gsize n = 0;
    const char *text = bytes != NULL ? g_bytes_get_data(bytes, &n) : NULL;
    JsonNode *root = bytes != NULL ? hn_json_read(text != NULL ? text : "", n, most, budget, error) : NULL;
    if (bytes != NULL && root == NULL)
        g_prefix_error(error, "'%s': ", path);
    return root;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static GType type_of(JsonNode *n)
{
    return n != NULL && JSON_NODE_HOLDS_VALUE(n) ? json_node_get_value_type(n) : G_TYPE_INVALID;
}

const char *hn_json_string(JsonNode *n)
{
    return type_of(n) == G_TYPE_STRING ? json_node_get_string(n) : NULL;
}

JsonObject *hn_json_object(JsonNode *n)
{
    return n != NULL && JSON_NODE_HOLDS_OBJECT(n) ? json_node_get_object(n) : NULL;
}

gboolean hn_json_is_switch(JsonNode *n)
{
    return type_of(n) == G_TYPE_BOOLEAN;
}

gboolean hn_json_is_number(JsonNode *n)
{
    return type_of(n) == G_TYPE_DOUBLE || type_of(n) == G_TYPE_INT64;
}

JsonNode *hn_json_at(JsonObject *o, const char *name)
{
    return o != NULL ? json_object_get_member(o, name) : NULL;
}

const char *hn_json_string_at(JsonObject *o, const char *name)
{
    return hn_json_string(hn_json_at(o, name));
}

JsonObject *hn_json_object_at(JsonObject *o, const char *name)
{
    return hn_json_object(hn_json_at(o, name));
}

JsonArray *hn_json_array_at(JsonObject *o, const char *name)
{
    JsonNode *n = hn_json_at(o, name);
    return n != NULL && JSON_NODE_HOLDS_ARRAY(n) ? json_node_get_array(n) : NULL;
}

gboolean hn_json_number_at(JsonObject *o, const char *name, double *x)
{
    JsonNode *n = hn_json_at(o, name);
    if (!hn_json_is_number(n))
        return FALSE;
    *x = json_node_get_double(n);
    return isfinite(*x);
}

double hn_json_number_or_nan(JsonObject *o, const char *name)
{
    double x;
    return hn_json_number_at(o, name, &x) ? x : NAN;
}

char *hn_json_line(JsonObject *o)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_set_object(node, o);
    return json_to_string(node, FALSE);
}

void hn_json_set_number(JsonObject *o, const char *name, double x)
{
    if (isfinite(x))
        json_object_set_double_member(o, name, x);
    else
        json_object_set_null_member(o, name);
}

void hn_json_set_count(JsonObject *o, const char *name, gint64 n)
{
    if (n >= 0)
        json_object_set_int_member(o, name, n);
    else
        json_object_set_null_member(o, name);
}

char *hn_json_number(double x)
{
    char buf[G_ASCII_DTOSTR_BUF_SIZE];
    static const char *const formats[] = { "%.15g", "%.16g", "%.17g" };
    if (x == 0) /* "-0" would be a whole number, which has no sign there */
        return g_strdup(signbit(x) ? "-0.0" : "0");
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buf, sizeof buf, formats[i], x);
        if (g_ascii_strtod(buf, NULL) == x)
            break;
    }
    return g_strdup(buf);
}
