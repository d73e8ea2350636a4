#include "ir/lexer.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "ir/detach.h"

/* --- tokens ------------------------------------------------------------------------------------------------------ */

gboolean hn_lex_fail(HnLexer *x, const char *format, ...)
{
    if (x->error)
        return FALSE;
    int number = 1;
    for (const char *p = x->start; p < x->s; p++)
        number += *p == '\n';
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    x->error = g_error_new(HN_ERROR, HN_ERROR_FORMAT, "line %d: %s", number, what);
    return FALSE;
}

static gboolean fail_expected(HnLexer *x, const char *what)
{
    char found[24];
    gsize n = 0;
    hn_lex_blank(x);
    while (n < sizeof found - 1 && (guchar)x->s[n] > ' ' && (guchar)x->s[n] < 0x7f) {
        found[n] = x->s[n];
        n++;
    }
    found[n] = '\0';
    return hn_lex_fail(x, "expected %s but found '%s'", what, n ? found : (*x->s ? "?" : "the end"));
}

void hn_lex_blank(HnLexer *x)
{
    for (;; x->s++) {
        if (*x->s == '#')
            x->s += strcspn(x->s, "\n");
        if (!g_ascii_isspace(*x->s))
            return;
    }
}

gboolean hn_lex_accept(HnLexer *x, const char *text)
{
    hn_lex_blank(x);
    gsize n = strlen(text);
    if (strncmp(x->s, text, n) != 0)
        return FALSE;
    x->s += n;
    return TRUE;
}

gboolean hn_lex_word(HnLexer *x, const char *word)
{
    hn_lex_blank(x);
    gsize n = strlen(word);
    if (strncmp(x->s, word, n) != 0 || g_ascii_isalnum(x->s[n]) || (x->s[n] && strchr("_./'", x->s[n])))
        return FALSE;
    x->s += n;
    return TRUE;
}

gboolean hn_lex_expect(HnLexer *x, const char *text)
{
    if (hn_lex_accept(x, text))
        return TRUE;
    g_autofree char *quoted = g_strdup_printf("'%s'", text);
    return fail_expected(x, quoted);
}

gboolean hn_lex_peek(HnLexer *x, char c)
{
    hn_lex_blank(x);
    return *x->s == c;
}

/* Up to the closing quote, which is *x->s. NULL: it is missing. */
static GString *quoted(HnLexer *x)
{
    char quote = *x->s;
    GString *out = g_string_new(NULL);
    for (const char *p = x->s + 1; *p; p++) {
        if (*p == quote) {
            x->s = p + 1;
            return out;
        }
        if (*p != '\\') {
            g_string_append_c(out, *p);
        } else if (p[1] == 'x' && g_ascii_isxdigit(p[2]) && g_ascii_isxdigit(p[3])) {
            g_string_append_c(out, (char)(g_ascii_xdigit_value(p[2]) * 16 + g_ascii_xdigit_value(p[3])));
            p += 3;
        } else if (p[1] == 'n') {
            g_string_append_c(out, '\n');
            p++;
        } else if (p[1] == '\\' || p[1] == quote) {
            g_string_append_c(out, *++p);
        } else {
            break;
        }
    }
    g_string_free(out, TRUE);
    hn_lex_fail(x, "a text in quotes does not end, or has an unknown escape");
    return NULL;
}

char *hn_lex_name(HnLexer *x)
{
    hn_lex_blank(x);
    if (*x->s == '"') {
        GString *s = quoted(x);
        if (!s)
            return NULL;
        if (s->len > 0 && strlen(s->str) == s->len)
            return g_string_free(s, FALSE);
        g_string_free(s, TRUE);
        hn_lex_fail(x, "a name is empty or holds a NUL");
        return NULL;
    }
    const char *p = x->s;
    if (*p != '\'')
        while (g_ascii_isalnum(*p) || (*p && strchr("_./'", *p)))
            p++;
    if (p == x->s) {
        fail_expected(x, "a name");
        return NULL;
    }
    char *name = g_strndup(x->s, (gsize)(p - x->s));
    x->s = p;
    return name;
}

GBytes *hn_lex_string(HnLexer *x)
{
    if (!hn_lex_peek(x, '\'')) {
        fail_expected(x, "a text in quotes");
        return NULL;
    }
    GString *s = quoted(x);
    return s ? g_string_free_to_bytes(s) : NULL;
}

/* Length of the number that starts here; 0: none. */
static gsize number_length(const char *s, gboolean *real)
{
    gsize n = s[0] == '-' || s[0] == '+';
    *real = TRUE;
    if (strncmp(s + n, "inf", 3) == 0 || strncmp(s + n, "nan", 3) == 0)
        return g_ascii_isalnum(s[n + 3]) || s[n + 3] == '_' ? 0 : n + 3;
    if (!g_ascii_isdigit(s[n]) && !(s[n] == '.' && g_ascii_isdigit(s[n + 1])))
        return 0;
    *real = FALSE;
    for (;; n++) {
        if (s[n] == '.')
            *real = TRUE;
        else if ((s[n] == 'e' || s[n] == 'E')) {
            *real = TRUE;
            if (s[n + 1] == '-' || s[n + 1] == '+')
                n++;
        } else if (!g_ascii_isdigit(s[n]))
            return n;
    }
}

gboolean hn_text_is_number(const char *text)
{
    gboolean real;
    return number_length(text, &real) > 0;
}

gboolean hn_lex_at_number(HnLexer *x, gboolean *real)
{
    hn_lex_blank(x);
    return number_length(x->s, real) > 0;
}

gboolean hn_lex_int(HnLexer *x, int64_t *v)
{
    gboolean real;
    hn_lex_blank(x);
    gsize n = number_length(x->s, &real);
    if (n == 0 || real)
        return fail_expected(x, "a whole number");
    errno = 0;
    gint64 r = g_ascii_strtoll(x->s, NULL, 10);
    if (errno)
        return hn_lex_fail(x, "a number is too large");
    x->s += n;
    *v = r;
    return TRUE;
}

gboolean hn_lex_real(HnLexer *x, double *v)
{
    gboolean real;
    char *end;
    hn_lex_blank(x);
    gsize n = number_length(x->s, &real);
    if (n == 0)
        return fail_expected(x, "a number");
    double r = g_ascii_strtod(x->s, &end);
    if (end != x->s + n)
        return fail_expected(x, "a number");
    x->s += n;
    *v = r;
    return TRUE;
}

/* --- types ------------------------------------------------------------------------------------------------------- */

static gboolean lex_dim(HnLexer *x, HnDim *d)
{
    gboolean real;
    if (hn_lex_accept(x, "?")) {
        *d = hn_dim_unknown();
        return TRUE;
    }
    const char *p = x->s;
    gsize n = number_length(p, &real);
    if (n > 0 && !real && (p[n] == ',' || p[n] == ']' || g_ascii_isspace(p[n]))) {
        int64_t v;
        if (!hn_lex_int(x, &v))
            return FALSE;
        *d = hn_dim(v);
        return TRUE;
    }
    for (int parens = 0; *p && (parens > 0 || (*p != ',' && *p != ']')); p++) {
        parens += (*p == '(') - (*p == ')');
        if (*p == '\'')
            for (p++; *p && *p != '\''; p++)
                if (*p == '\\' && p[1])
                    p++;
        if (!*p || *p == '\n')
            break;
    }
    if (p == x->s || (*p != ',' && *p != ']'))
        return fail_expected(x, "a dimension");
    g_autofree char *text = g_strchomp(g_strndup(x->s, (gsize)(p - x->s)));
    gsize len = strlen(text);
    if (text[0] == '\'' && len > 2) { /* a lone name */
        g_autoptr(GString) name = g_string_new(NULL);
        gsize i = 1;
        for (; text[i] && text[i] != '\''; i++)
            g_string_append_c(name, text[i] == '\\' && text[i + 1] ? text[++i] : text[i]);
        if (i == len - 1) {
            x->s = p;
            *d = hn_dim_symbol(name->str);
            return TRUE;
        }
    }
    x->s = p;
    *d = hn_dim_symbol(text);
    return TRUE;
}

static HnDtype lex_dtype(HnLexer *x)
{
    char word[16];
    gsize n = 0;
    hn_lex_blank(x);
    while (n < sizeof word - 1 && g_ascii_isalnum(x->s[n])) {
        word[n] = x->s[n];
        n++;
    }
    word[n] = '\0';
    HnDtype d = hn_dtype_parse(word);
    if (d == HN_UNDEFINED)
        fail_expected(x, "a type");
    else
        x->s += n;
    return d;
}

/* Behind the element type. */
static HnType *lex_shape(HnLexer *x, HnDtype dtype)
{
    if (*x->s != '[')
        return hn_type_tensor(dtype, 0, NULL);
    x->s++;
    if (hn_lex_accept(x, "...")) {
        if (!hn_lex_expect(x, "]"))
            return NULL;
        return hn_type_tensor(dtype, -1, NULL);
    }
    g_autoptr(GArray) dims = g_array_new(FALSE, FALSE, sizeof(HnDim));
    while (!hn_lex_accept(x, "]")) {
        HnDim d;
        if ((dims->len > 0 && !hn_lex_expect(x, ",")) || !lex_dim(x, &d))
            return NULL;
        g_array_append_val(dims, d);
    }
    return hn_type_tensor(dtype, (int)dims->len, (const HnDim *)(gconstpointer)dims->data);
}

/* Behind the word and its parenthesis. */
static HnType *lex_wrapped(HnLexer *x, HnTypeKind kind)
{
    g_autoptr(HnType) t = hn_type_tensor(HN_UNDEFINED, 0, NULL);
    t->kind = kind;
    if (kind == HN_TYPE_MAP && ((t->dtype = lex_dtype(x)) == HN_UNDEFINED || !hn_lex_expect(x, ",")))
        return NULL;
    x->depth++;
    t->elem = hn_lex_type(x);
    x->depth--;
    return t->elem && hn_lex_expect(x, ")") ? g_steal_pointer(&t) : NULL;
}

HnType *hn_lex_type(HnLexer *x)
{
    static const struct {
        const char *word;
        HnTypeKind kind;
    } words[] = { { "seq(", HN_TYPE_SEQUENCE }, { "opt(", HN_TYPE_OPTIONAL }, { "map(", HN_TYPE_MAP } };
    if (x->depth > HN_TEXT_DEPTH) {
        hn_lex_fail(x, "types are nested too deep");
        return NULL;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (hn_lex_accept(x, words[i].word))
            return lex_wrapped(x, words[i].kind);
    HnType *t;
    if (hn_lex_accept(x, "sparse(")) {
        HnDtype d = lex_dtype(x);
        t = d == HN_UNDEFINED ? NULL : lex_shape(x, d);
        if (t)
            t->kind = HN_TYPE_SPARSE;
        if (t && !hn_lex_expect(x, ")"))
            g_clear_pointer(&t, hn_type_unref);
        return t;
    }
    if (hn_lex_accept(x, "?")) {
        t = lex_shape(x, HN_UNDEFINED);
        if (t && x->s[-1] != ']')
            t->kind = HN_TYPE_NONE;
        if (t)
            t->has_elem = FALSE;
        return t;
    }
    if (hn_lex_word(x, "opaque")) {
        t = hn_type_tensor(HN_UNDEFINED, 0, NULL);
        t->kind = HN_TYPE_OPAQUE;
        return t;
    }
    HnDtype d = lex_dtype(x);
    return d == HN_UNDEFINED ? NULL : lex_shape(x, d);
}

/* --- tensors ----------------------------------------------------------------------------------------------------- */

/* FNV-1a, 64 bits: g_str_hash() may change from one GLib to the next. */
static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *s; s++)
        h = (h ^ (guchar)*s) * 0x100000001b3;
    return h;
}

static void fill(HnTensor *t, uint64_t seed, double lo, double hi)
{
    HnRng rng = hn_rng(seed);
    int64_t n = t->dtype == HN_C64 || t->dtype == HN_C128 ? 0 : t->n;
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == HN_STRING) {
            g_autofree char *text = g_strdup_printf("s%" G_GINT64_FORMAT, hn_rng_int(&rng, 0, 99));
            g_autoptr(GBytes) s = g_bytes_new(text, strlen(text));
            hn_tensor_set_string(t, i, s);
        } else {
            double v = hn_rng_range(&rng, lo, hi);
            hn_tensor_set_f64(t, i, hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL | HN_T_SUBBYTE) ? floor(v) : v);
        }
    }
}

static void fill_default(HnTensor *t, const char *name)
{
    double lo = -1, hi = 1;
    if (t->dtype == HN_BOOL || t->dtype == HN_U2)
        lo = 0, hi = t->dtype == HN_BOOL ? 2 : 4;
    else if (t->dtype == HN_I2)
        lo = -2, hi = 2;
    else if (hn_dtype_in(t->dtype, HN_T_UINTS | HN_BIT(HN_U4)))
        lo = 0, hi = 16;
    else if (hn_dtype_in(t->dtype, HN_T_SINTS | HN_BIT(HN_I4)))
        lo = -8, hi = 8;
    else if (t->dtype == HN_F8E8M0)
        lo = 0.25, hi = 4;
    fill(t, hash(name), lo, hi);
}

static gboolean lex_integer(HnLexer *x, HnTensor *t, int64_t i)
{
    int64_t v;
    gboolean real;
    if (t->dtype == HN_U64 && hn_lex_at_number(x, &real) && !real && *x->s != '-') {
        errno = 0;
        guint64 u = g_ascii_strtoull(x->s, NULL, 10);
        if (errno)
            return hn_lex_fail(x, "a number is too large");
        x->s += number_length(x->s, &real);
        ((uint64_t *)t->data)[i] = u;
        return TRUE;
    }
    if (!hn_lex_int(x, &v))
        return FALSE;
    hn_tensor_set_i64(t, i, v);
    if (hn_tensor_get_i64(t, i) != v)
        return hn_lex_fail(x, "%" G_GINT64_FORMAT " does not fit into %s", v, hn_dtype_name(t->dtype));
    return TRUE;
}

static gboolean lex_element(HnLexer *x, HnTensor *t, int64_t i)
{
    double v, w;
    if (t->dtype == HN_STRING) {
        g_autoptr(GBytes) s = hn_lex_string(x);
        if (s)
            hn_tensor_set_string(t, i, s);
        return s != NULL;
    }
    if (t->dtype == HN_BOOL && (hn_lex_word(x, "true") || hn_lex_word(x, "false"))) {
        ((guint8 *)t->data)[i] = x->s[-2] == 'u';
        return TRUE;
    }
    if (hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL | (HN_T_SUBBYTE & ~HN_BIT(HN_F4E2M1))))
        return lex_integer(x, t, i);
    if (!hn_lex_real(x, &v))
        return FALSE;
    if (t->dtype == HN_C64 || t->dtype == HN_C128) {
        if (!hn_lex_expect(x, ",") || !hn_lex_real(x, &w))
            return FALSE;
        if (t->dtype == HN_C128)
            ((double *)t->data)[2 * i] = v, ((double *)t->data)[2 * i + 1] = w;
        else
            ((float *)t->data)[2 * i] = (float)v, ((float *)t->data)[2 * i + 1] = (float)w;
        return TRUE;
    }
    hn_tensor_set_f64(t, i, v);
    return TRUE;
}

static gboolean lex_elements(HnLexer *x, HnTensor *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if ((i > 0 && !hn_lex_expect(x, ",")) || !lex_element(x, t, i))
            return FALSE;
    return hn_lex_expect(x, "}");
}

static gboolean lex_fill(HnLexer *x, HnTensor *t)
{
    int64_t seed;
    double lo, hi;
    if (!hn_lex_int(x, &seed))
        return FALSE;
    g_autofree char *name = g_strdup_printf("%" G_GINT64_FORMAT, seed);
    if (hn_lex_accept(x, ")")) {
        fill_default(t, name);
        return TRUE;
    }
    if (!hn_lex_expect(x, ",") || !hn_lex_real(x, &lo) || !hn_lex_expect(x, ",") || !hn_lex_real(x, &hi))
        return FALSE;
    if (!(isfinite(lo) && isfinite(hi) && lo <= hi))
        return hn_lex_fail(x, "a range to fill from is not one");
    fill(t, hash(name), lo, hi);
    return hn_lex_expect(x, ")");
}

HnTensor *hn_lex_tensor(HnLexer *x, const char *name)
{
    g_autoptr(HnType) type = NULL;
    HnDtype d = lex_dtype(x);
    if (d == HN_UNDEFINED || !(type = lex_shape(x, d)))
        return NULL;
    g_autofree int64_t *dims = g_new(int64_t, MAX(type->rank, 1));
    for (int i = 0; i < type->rank; i++) {
        if (!type->dims[i].known || type->dims[i].n < 0) {
            hn_lex_fail(x, "a tensor needs fixed dimensions");
            return NULL;
        }
        dims[i] = type->dims[i].n;
    }
    if (type->rank < 0) {
        hn_lex_fail(x, "a tensor needs fixed dimensions");
        return NULL;
    }
    g_autoptr(HnTensor) t = hn_tensor_new(d, type->rank, dims, x->budget, x->error ? NULL : &x->error);
    if (!t)
        return NULL;
    const char *before = x->s;
    gboolean good = TRUE;
    if (hn_lex_accept(x, "={"))
        good = lex_elements(x, t);
    else if (hn_lex_accept(x, "=fill("))
        good = lex_fill(x, t);
    else {
        x->s = before; /* blanks are the caller's */
        fill_default(t, name);
    }
    return good ? g_steal_pointer(&t) : NULL;
}

HnSparse *hn_lex_sparse(HnLexer *x, const char *name)
{
    g_autoptr(HnType) type = NULL;
    if (!hn_lex_peek(x, '[')) {
        hn_lex_expect(x, "[");
        return NULL;
    }
    if (!(type = lex_shape(x, HN_F32)))
        return NULL;
    HnSparse *s = g_new0(HnSparse, 1);
    s->ndim = MAX(type->rank, 0);
    s->dims = g_new0(int64_t, s->ndim + 1);
    gboolean fixed = type->rank >= 0;
    for (int i = 0; i < s->ndim; i++) {
        fixed &= type->dims[i].known;
        s->dims[i] = type->dims[i].n;
    }
    if (!fixed)
        hn_lex_fail(x, "a sparse tensor needs fixed dimensions");
    else if (hn_lex_expect(x, "(") && (s->values = hn_lex_tensor(x, name)) && hn_lex_expect(x, ",") &&
             (s->indices = hn_lex_tensor(x, name)) && hn_lex_expect(x, ")"))
        return s;
    hn_sparse_free(s);
    return NULL;
}

HnTensor *hn_tensor_parse(const char **text, HnBudget *budget, GError **error)
{
    HnLexer x = { .start = *text, .s = *text, .budget = budget };
    gsize n = strcspn(*text, " \t\n");
    g_autofree char *seed = g_strndup(*text, n);
    HnTensor *t = hn_lex_tensor(&x, seed);
    if (t)
        *text = x.s;
    else
        g_propagate_error(error, x.error);
    return t;
}
