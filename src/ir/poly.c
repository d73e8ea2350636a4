#include "ir/poly.h"

#include <string.h>

#include "base/checked.h"

/* One table for the process, as behind g_intern_string(); that one would leave a copy of itself behind at each growth,
 * which a file with a million names turns into gigabytes. */
const char *hn_poly_intern(const char *text)
{
    static GMutex lock;
    static GHashTable *table;
    static GStringChunk *chunk;
    g_mutex_lock(&lock);
    if (!table) {
        table = g_hash_table_new(g_str_hash, g_str_equal);
        chunk = g_string_chunk_new(4000);
    }
    char *known = g_hash_table_lookup(table, text);
    if (!known) {
        known = g_string_chunk_insert(chunk, text);
        g_hash_table_add(table, known);
    }
    g_mutex_unlock(&lock);
    return known;
}

/* --- polynomials ------------------------------------------------------------------------------------------------- */

/* < 0: x comes before y. A graded order: multiplying both by the same term keeps it. */
static int monomial_cmp(const HnTerm *x, const HnTerm *y)
{
    if (x->degree != y->degree)
        return y->degree - x->degree;
    for (int i = 0; i < x->degree; i++)
        if (x->atoms[i] != y->atoms[i])
            return strcmp(x->atoms[i], y->atoms[i]);
    return 0;
}

gboolean hn_poly_add_term(HnPoly *p, const HnTerm *t)
{
    if (t->c == 0)
        return TRUE;
    int i = 0, cmp = 1;
    while (i < p->n && (cmp = monomial_cmp(&p->t[i], t)) < 0)
        i++;
    if (i < p->n && cmp == 0) {
        if (!hn_add_i64(p->t[i].c, t->c, &p->t[i].c))
            return FALSE;
        if (p->t[i].c == 0)
            memmove(&p->t[i], &p->t[i + 1], (size_t)(--p->n - i) * sizeof(HnTerm));
        return TRUE;
    }
    if (p->n == HN_POLY_TERMS)
        return FALSE;
    memmove(&p->t[i + 1], &p->t[i], (size_t)(p->n++ - i) * sizeof(HnTerm));
    p->t[i] = *t;
    return TRUE;
}

HnPoly hn_poly_number(int64_t c)
{
    HnPoly p;
    p.n = c != 0;
    p.t[0].c = c;
    p.t[0].degree = 0;
    return p;
}

HnPoly hn_poly_atom(const char *atom)
{
    HnPoly p = hn_poly_number(1);
    p.t[0].degree = 1;
    p.t[0].atoms[0] = atom;
    return p;
}

gboolean hn_poly_is_number(const HnPoly *p, int64_t *c)
{
    if (p->n > 1 || (p->n == 1 && p->t[0].degree > 0))
        return FALSE;
    *c = p->n ? p->t[0].c : 0;
    return TRUE;
}

static gboolean term_mul(const HnTerm *x, const HnTerm *y, HnTerm *out)
{
    if (x->degree + y->degree > HN_POLY_DEGREE || !hn_mul_i64(x->c, y->c, &out->c))
        return FALSE;
    out->degree = x->degree + y->degree;
    for (int i = 0, j = 0, k = 0; k < out->degree; k++) {
        gboolean first = j == y->degree || (i < x->degree && strcmp(x->atoms[i], y->atoms[j]) <= 0);
        out->atoms[k] = first ? x->atoms[i++] : y->atoms[j++];
    }
    return TRUE;
}

/* a += b * t */
static gboolean poly_add_mul(HnPoly *a, const HnPoly *b, const HnTerm *t)
{
    for (int i = 0; i < b->n; i++) {
        HnTerm m;
        if (!term_mul(&b->t[i], t, &m) || !hn_poly_add_term(a, &m))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_poly_add_scaled(HnPoly *a, const HnPoly *b, int64_t c)
{
    HnTerm t = { .c = c };
    return poly_add_mul(a, b, &t);
}

gboolean hn_poly_mul(const HnPoly *a, const HnPoly *b, HnPoly *out)
{
    out->n = 0;
    for (int i = 0; i < b->n; i++)
        if (!poly_add_mul(out, a, &b->t[i]))
            return FALSE;
    return TRUE;
}

gboolean hn_term_div(const HnTerm *x, const HnTerm *y, HnTerm *out)
{
    if ((y->c == -1 && x->c == INT64_MIN) || x->c % y->c != 0)
        return FALSE;
    out->c = x->c / y->c;
    out->degree = 0;
    int j = 0;
    for (int i = 0; i < x->degree; i++)
        if (j < y->degree && strcmp(x->atoms[i], y->atoms[j]) == 0)
            j++;
        else
            out->atoms[out->degree++] = x->atoms[i];
    return j == y->degree;
}

/* a / b where b divides a. */
gboolean hn_poly_div_exact(const HnPoly *a, const HnPoly *b, HnPoly *out)
{
    HnPoly rest = *a;
    out->n = 0;
    while (rest.n > 0) {
        HnTerm t;
        if (!hn_term_div(&rest.t[0], &b->t[0], &t) || !hn_poly_add_term(out, &t))
            return FALSE;
        if (t.c == INT64_MIN)
            return FALSE;
        t.c = -t.c;
        if (!poly_add_mul(&rest, b, &t))
            return FALSE;
    }
    return TRUE;
}

/* --- text -------------------------------------------------------------------------------------------------------- */

gboolean hn_poly_is_name(const char *s)
{
    if (!g_ascii_isalpha(*s) && *s != '_')
        return FALSE;
    while (g_ascii_isalnum(*s) || *s == '_' || *s == '.')
        s++;
    return *s == '\0';
}

void hn_poly_print_name(const char *name, GString *out)
{
    if (hn_poly_is_name(name)) {
        g_string_append(out, name);
        return;
    }
    g_string_append_c(out, '\'');
    for (; *name; name++) {
        if (*name == '\'' || *name == '\\')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *name);
    }
    g_string_append_c(out, '\'');
}

void hn_poly_print(const HnPoly *p, GString *out)
{
    if (p->n == 0)
        g_string_append_c(out, '0');
    for (int i = 0; i < p->n; i++) {
        const HnTerm *t = &p->t[i];
        gboolean one = t->degree > 0 && (t->c == 1 || t->c == -1);
        if (t->c < 0)
            g_string_append_c(out, '-');
        else if (i > 0)
            g_string_append_c(out, '+');
        if (!one)
            g_string_append_printf(out, "%" G_GUINT64_FORMAT, t->c < 0 ? 0 - (uint64_t)t->c : (uint64_t)t->c);
        for (int k = 0; k < t->degree; k++) {
            if (k > 0 || !one)
                g_string_append_c(out, '*');
            g_string_append(out, t->atoms[k]);
        }
    }
}

static void print_operand(const HnPoly *p, gboolean divisor, GString *out)
{
    gboolean bare =
        p->n <= 1 && (!divisor || p->n == 0 || p->t[0].degree == 0 || (p->t[0].degree == 1 && p->t[0].c == 1));
    if (!bare)
        g_string_append_c(out, '(');
    hn_poly_print(p, out);
    if (!bare)
        g_string_append_c(out, ')');
}

const char *hn_poly_make_atom(const char *word, const HnPoly *a, const HnPoly *b)
{
    g_autoptr(GString) s = g_string_new(word);
    g_string_append_c(s, '(');
    if (word[0] == 'm') {
        hn_poly_print(a, s);
        g_string_append_c(s, ',');
        hn_poly_print(b, s);
    } else {
        print_operand(a, FALSE, s);
        g_string_append_c(s, '/');
        print_operand(b, TRUE, s);
    }
    g_string_append_c(s, ')');
    return s->len <= HN_POLY_TEXT ? hn_poly_intern(s->str) : NULL;
}

static gboolean parse_sum(const char **s, HnPoly *p, int depth);

static gboolean parse_number(const char **s, int64_t *v)
{
    int64_t r = 0;
    const char *start = *s;
    for (; g_ascii_isdigit(**s); ++*s)
        if (!hn_mul_i64(r, 10, &r) || !hn_add_i64(r, **s - '0', &r))
            return FALSE;
    *v = r;
    return *s > start;
}

static gboolean parse_operand(const char **s, HnPoly *p, int depth)
{
    if (**s != '(')
        return parse_sum(s, p, depth);
    ++*s;
    return parse_sum(s, p, depth) && *(*s)++ == ')';
}

/* 'a name' with \' and \\; the name comes back without them. A name that needs no quotes is refused. */
static gboolean parse_quoted(const char **s, GString *name, int depth)
{
    for (++*s; **s != '\''; ++*s) {
        if (**s == '\\')
            ++*s;
        if (**s == '\0')
            return FALSE;
        g_string_append_c(name, **s);
    }
    ++*s;
    HnPoly p;
    return name->len > 0 && !hn_poly_is_name(name->str) && !hn_poly_parse(name->str, &p, depth + 1);
}

gboolean hn_poly_parse_atom(const char **s, HnAtom *x, int depth)
{
    static const char *const words[] = { "floor", "ceil", "max", "min" };
    x->word = NULL;
    x->name = NULL;
    if (depth > HN_POLY_DEPTH)
        return FALSE;
    if (**s == '\'') {
        g_autoptr(GString) name = g_string_new(NULL);
        if (!parse_quoted(s, name, depth))
            return FALSE;
        x->name = g_strdup(name->str);
        return TRUE;
    }
    const char *start = *s;
    if (!g_ascii_isalpha(*start) && *start != '_')
        return FALSE;
    while (g_ascii_isalnum(**s) || **s == '_' || **s == '.')
        ++*s;
    size_t len = (size_t)(*s - start);
    if (**s != '(') {
        x->name = g_strndup(start, len);
        return TRUE;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strlen(words[i]) == len && memcmp(words[i], start, len) == 0)
            x->word = words[i];
    if (!x->word)
        return FALSE;
    ++*s;
    gboolean division = x->word[0] != 'm';
    if (!(division ? parse_operand : parse_sum)(s, &x->a, depth + 1) || *(*s)++ != (division ? '/' : ','))
        return FALSE;
    return (division ? parse_operand : parse_sum)(s, &x->b, depth + 1) && *(*s)++ == ')';
}

static gboolean parse_factor(const char **s, HnTerm *t, int depth)
{
    if (t->degree == HN_POLY_DEGREE)
        return FALSE;
    HnAtom *x = g_new(HnAtom, 1); /* two polynomials: too much for a stack of nested calls */
    const char *text = NULL;
    if (hn_poly_parse_atom(s, x, depth)) {
        if (x->name) {
            g_autoptr(GString) name = g_string_new(NULL);
            hn_poly_print_name(x->name, name);
            text = hn_poly_intern(name->str);
        } else {
            text = hn_poly_make_atom(x->word, &x->a, &x->b);
        }
    }
    g_free(x->name);
    g_free(x);
    if (!text)
        return FALSE;
    HnTerm one = { .c = 1, .degree = 1, .atoms = { text } }, product;
    if (!term_mul(t, &one, &product))
        return FALSE;
    *t = product;
    return TRUE;
}

static gboolean parse_sum(const char **s, HnPoly *p, int depth)
{
    p->n = 0;
    for (gboolean first = TRUE;; first = FALSE) {
        gboolean minus = **s == '-';
        if (minus || (**s == '+' && !first))
            ++*s;
        else if (!first)
            return TRUE;
        HnTerm t = { .c = 1 };
        if (g_ascii_isdigit(**s)) {
            if (!parse_number(s, &t.c))
                return FALSE;
        } else if (!parse_factor(s, &t, depth)) {
            return FALSE;
        }
        while (**s == '*') {
            ++*s;
            if (!parse_factor(s, &t, depth))
                return FALSE;
        }
        if (minus)
            t.c = -t.c;
        if (!hn_poly_add_term(p, &t))
            return FALSE;
    }
}

gboolean hn_poly_parse(const char *text, HnPoly *p, int depth)
{
    if (depth > HN_POLY_DEPTH || strlen(text) > HN_POLY_TEXT)
        return FALSE;
    const char *s = text;
    int64_t c;
    if (!parse_sum(&s, p, depth) || *s != '\0' || hn_poly_is_number(p, &c) || *text == '\0')
        return FALSE;
    if (p->n == 1 && p->t[0].degree == 1 && p->t[0].c == 1 && p->t[0].atoms[0][0] == '\'')
        return FALSE;
    g_autoptr(GString) again = g_string_new(NULL);
    hn_poly_print(p, again);
    return strcmp(again->str, text) == 0;
}
