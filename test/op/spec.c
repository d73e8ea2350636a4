#include "spec.h"

#include <math.h>
#include <string.h>

#include "case.h"

void hn_spec_clear(HnSpec *s)
{
    hn_tensor_unref(s->tensor);
    s->tensor = NULL;
}

char **hn_spec_words(const char *text)
{
    GPtrArray *words = g_ptr_array_new();
    int depth = 0;
    gboolean quoted = FALSE;
    GString *word = g_string_new(NULL);
    for (const char *c = text != NULL ? text : ""; *c != '\0'; c++) {
        quoted = quoted != (*c == '\'');
        depth += *c == '{' || *c == '[' ? 1 : *c == '}' || *c == ']' ? -1 : 0;
        if (*c != ' ' || quoted || depth > 0) {
            g_string_append_c(word, *c);
        } else if (word->len > 0) {
            g_ptr_array_add(words, g_strdup(word->str));
            g_string_truncate(word, 0);
        }
    }
    if (word->len > 0)
        g_ptr_array_add(words, g_strdup(word->str));
    g_string_free(word, TRUE);
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

static double number(const char *text)
{
    if (strcmp(text, "true") == 0)
        return 1;
    if (strcmp(text, "false") == 0)
        return 0;
    char *end;
    double v = g_ascii_strtod(text, &end);
    if (*end != '\0')
        g_error("bad number '%s' in a case", text);
    return v;
}

static GBytes *unquote(const char *text)
{
    gsize n = strlen(text);
    if (n < 2 || text[0] != '\'' || text[n - 1] != '\'')
        g_error("bad attribute value '%s'", text);
    return g_bytes_new(text + 1, n - 2);
}

static void store(HnTensor *t, int64_t i, const char *text)
{
    if (t->dtype == HN_STRING) {
        g_autoptr(GBytes) s = unquote(text);
        hn_tensor_set_string(t, i, s);
    } else if (hn_dtype_in(t->dtype, HN_T_INTS) && strpbrk(text, ".en") == NULL)
        hn_tensor_set_i64(
            t, i, t->dtype == HN_U64 ? (int64_t)g_ascii_strtoull(text, NULL, 10) : g_ascii_strtoll(text, NULL, 10));
    else
        hn_tensor_set_f64(t, i, number(text));
}

/* values: so many, equally far apart; 0: any */
static void fill_random(HnTensor *t, HnRng *rng, double lo, double hi, double values)
{
    gboolean whole = hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL);
    for (int64_t i = 0; i < t->n; i++) {
        double v = lo + (hi - lo + (whole ? 1 : 0)) * hn_rng_double(rng);
        if (values > 1)
            v = lo + floor((v - lo) / (hi - lo) * values) * (hi - lo) / (values - 1);
        hn_tensor_set_f64(t, i, whole ? floor(v) : v);
    }
}

/* "seq{...}", "opt{...}", "map{...}" */
static HnTensor *parse_list(const char *word, HnDtype kind, HnRng *rng, gboolean *open)
{
    g_autofree char *inside = g_strndup(word + 4, strlen(word) - 5);
    g_auto(GStrv) words = hn_spec_words(inside);
    HnTensor *list = hn_tensor_new_list(kind, (int64_t)g_strv_length(words), NULL, NULL);
    for (int64_t i = 0; i < list->n; i++) {
        HnSpec item = hn_spec_parse(words[i], rng);
        hn_tensor_set_item(list, i, item.tensor);
        *open = *open || item.open;
        hn_spec_clear(&item);
    }
    return list;
}

/* Parts between commas that stand in no quotes. */
static char **split_elements(const char *text)
{
    GPtrArray *parts = g_ptr_array_new();
    gboolean quoted = FALSE;
    const char *start = text;
    for (const char *c = text; *text != '\0'; c++) {
        quoted = quoted != (*c == '\'');
        if (*c != '\0' && (*c != ',' || quoted))
            continue;
        g_ptr_array_add(parts, g_strstrip(g_strndup(start, (gsize)(c - start))));
        start = c + 1;
        if (*c == '\0')
            break;
    }
    g_ptr_array_add(parts, NULL);
    return (char **)g_ptr_array_free(parts, FALSE);
}

HnSpec hn_spec_parse(const char *word, HnRng *rng)
{
    static const struct {
        const char *word;
        HnDtype kind;
    } lists[] = { { "seq{", HN_SEQUENCE }, { "opt{", HN_OPTIONAL }, { "map{", HN_MAP } };
    HnSpec s = { 0 };
    if (strcmp(word, "-") == 0)
        return s;
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++)
        if (g_str_has_prefix(word, lists[i].word)) {
            s.tensor = parse_list(word, lists[i].kind, rng, &s.open);
            return s;
        }
    if (*word == '!') {
        s.weight = TRUE;
        word++;
    }
    gsize len = strcspn(word, "[={@");
    g_autofree char *type = g_strndup(word, len);
    HnDtype dtype = hn_dtype_parse(type);
    if (dtype == HN_UNDEFINED)
        g_error("bad type '%s' in a case", word);
    int64_t dims[HN_MAX_RANK];
    int rank = 0;
    const char *p = word + len;
    if (*p == '[') {
        const char *close = strchr(p, ']');
        g_autofree char *inside = g_strndup(p + 1, (gsize)(close - p - 1));
        g_auto(GStrv) parts = g_strsplit(inside, ",", -1);
        for (char **d = parts; *d != NULL && **d != '\0'; d++)
            dims[rank++] = g_ascii_strtoll(*d, NULL, 10);
        p = close + 1;
    }
    s.tensor = hn_tensor_new(dtype, rank, dims, NULL, NULL);
    if (s.tensor == NULL)
        g_error("bad tensor '%s' in a case", word);
    if (*p == '=') {
        const char *close = strrchr(p, '}');
        g_autofree char *inside = g_strndup(p + 2, (gsize)(close - p - 2));
        g_auto(GStrv) parts = split_elements(inside);
        int64_t i = 0;
        for (char **d = parts; *d != NULL && **d != '\0'; d++, i++)
            if (i < s.tensor->n)
                store(s.tensor, i, *d);
        if (i != s.tensor->n)
            g_error("%d elements given for '%s'", (int)i, word);
        return s;
    }
    double lo = -2, hi = 2, values = 0;
    if (!hn_dtype_in(dtype, HN_T_FLOATS)) {
        lo = 0;
        hi = dtype == HN_BOOL ? 1 : 5;
    }
    if (*p == '@') {
        char *end;
        lo = g_ascii_strtod(p + 1, &end);
        hi = g_ascii_strtod(end + 1, &end);
        if (*end == ':')
            values = g_ascii_strtod(end + 1, NULL);
    }
    s.open = TRUE;
    if (rng != NULL && dtype != HN_STRING)
        fill_random(s.tensor, rng, lo, hi, values);
    return s;
}

static gboolean is_float(const char *text)
{
    return strpbrk(text, ".einEIN") != NULL && *text != '\'';
}

static void attr_list(HnAttr *a, const char *value)
{
    g_autofree char *inside = g_strndup(value + 1, strlen(value) - 2);
    g_auto(GStrv) parts = g_strsplit(inside, ",", -1);
    guint n = *inside != '\0' ? g_strv_length(parts) : 0;
    gboolean strings = n > 0 && parts[0][0] == '\'', floats = FALSE;
    for (guint i = 0; i < n && !strings; i++)
        floats = floats || is_float(parts[i]);
    a->kind = strings ? HN_ATTR_STRINGS : floats ? HN_ATTR_FLOATS : HN_ATTR_INTS;
    a->n = n;
    if (strings)
        a->strings = g_new0(GBytes *, n + 1);
    else if (floats)
        a->floats = g_new0(float, n + 1);
    else
        a->ints = g_new0(int64_t, n + 1);
    for (guint i = 0; i < n; i++) {
        if (strings)
            a->strings[i] = unquote(parts[i]);
        else if (floats)
            a->floats[i] = (float)number(parts[i]);
        else
            a->ints[i] = g_ascii_strtoll(parts[i], NULL, 10);
    }
}

HnAttr *hn_spec_attr(const char *word)
{
    const char *eq = strchr(word, '=');
    if (eq == NULL)
        g_error("bad attribute '%s' in a case", word);
    g_autofree char *name = g_strndup(word, (gsize)(eq - word));
    const char *value = eq + 1;
    HnAttr *a = hn_attr_new(name, HN_ATTR_INT);
    g_autofree char *type = g_strndup(value, strcspn(value, "[="));
    if (*value == '[') {
        attr_list(a, value);
    } else if (*value == '\'') {
        a->kind = HN_ATTR_STRING;
        a->s = unquote(value);
    } else if (hn_dtype_parse(type) != HN_UNDEFINED) {
        a->kind = HN_ATTR_TENSOR;
        a->t = hn_spec_parse(value, NULL).tensor;
    } else if (is_float(value)) {
        a->kind = HN_ATTR_FLOAT;
        a->f = (float)number(value);
    } else {
        a->i = g_ascii_strtoll(value, NULL, 10);
    }
    return a;
}
