#include "ir/dim.h"

#include <string.h>

#include "base/checked.h"
#include "ir/poly.h"

/* FALSE: unknown. */
static gboolean poly_of(HnDim d, HnPoly *p)
{
    if (d.known) {
        *p = hn_poly_number(d.n);
        return TRUE;
    }
    if (!d.sym)
        return FALSE;
    if (hn_poly_is_name(d.sym)) {
        *p = hn_poly_atom(d.sym);
        return TRUE;
    }
    if (hn_poly_parse(d.sym, p, 0))
        return TRUE;
    if (strlen(d.sym) > HN_POLY_TEXT)
        return FALSE;
    g_autoptr(GString) quoted = g_string_new(NULL);
    hn_poly_print_name(d.sym, quoted);
    *p = hn_poly_atom(hn_poly_intern(quoted->str));
    return TRUE;
}

static HnDim symbol(const char *text)
{
    return (HnDim){ -1, hn_poly_intern(text), FALSE };
}

static HnDim dim_of(const HnPoly *p)
{
    int64_t c;
    HnPoly again;
    if (hn_poly_is_number(p, &c))
        return hn_dim(c);
    if (p->n == 1 && p->t[0].c == 1 && p->t[0].degree == 1 && p->t[0].atoms[0][0] == '\'') {
        HnAtom x;
        const char *s = p->t[0].atoms[0];
        if (!hn_poly_parse_atom(&s, &x, 0))
            return hn_dim_unknown();
        g_autofree char *name = x.name;
        return symbol(name);
    }
    g_autoptr(GString) s = g_string_new(NULL);
    hn_poly_print(p, s);
    return hn_poly_parse(s->str, &again, 0) ? symbol(s->str) : hn_dim_unknown(); /* too long, too deep */
}

HnDim hn_dim_symbol(const char *name)
{
    if (*name == '\0')
        return hn_dim_unknown();
    return symbol(name);
}

void hn_dim_print(HnDim d, GString *out)
{
    HnPoly p;
    if (d.known)
        g_string_append_printf(out, "%" G_GINT64_FORMAT, d.n);
    else if (!d.sym)
        g_string_append_c(out, '?');
    else if (hn_poly_parse(d.sym, &p, 0))
        g_string_append(out, d.sym);
    else
        hn_poly_print_name(d.sym, out);
}

/* --- what is known about values ---------------------------------------------------------------------------------- */

static gboolean poly_nonneg(const HnPoly *p, int depth);

static gboolean atom_nonneg(const char *atom, int depth)
{
    if (atom[0] == '\'' || hn_poly_is_name(atom))
        return TRUE; /* sizes of a file */
    g_autofree HnAtom *x = g_new(HnAtom, 1);
    const char *s = atom;
    if (depth > HN_POLY_DEPTH || !hn_poly_parse_atom(&s, x, 0) || x->name) {
        g_free(x->name);
        return FALSE;
    }
    gboolean a = poly_nonneg(&x->a, depth + 1), b = poly_nonneg(&x->b, depth + 1);
    return strcmp(x->word, "max") == 0 ? a || b : a && b;
}

/* Never negative, as sizes never are; FALSE: not known. */
static gboolean poly_nonneg(const HnPoly *p, int depth)
{
    for (int i = 0; i < p->n; i++) {
        if (p->t[i].c < 0)
            return FALSE;
        for (int k = 0; k < p->t[i].degree; k++)
            if (!atom_nonneg(p->t[i].atoms[k], depth))
                return FALSE;
    }
    return TRUE;
}

gboolean hn_dim_equal(HnDim a, HnDim b)
{
    if (a.known || b.known)
        return a.known && b.known && a.n == b.n;
    return a.sym && b.sym && (a.sym == b.sym || strcmp(a.sym, b.sym) == 0);
}

gboolean hn_dim_differ(HnDim a, HnDim b)
{
    if (a.known && b.known)
        return a.n != b.n;
    HnPoly p, q;
    int64_t c;
    return poly_of(a, &p) && poly_of(b, &q) && hn_poly_add_scaled(&p, &q, -1) && hn_poly_is_number(&p, &c) && c != 0;
}

/* --- arithmetic -------------------------------------------------------------------------------------------------- */

static HnDim dim_add(HnDim a, HnDim b, int64_t sign)
{
    int64_t n;
    if (a.known && b.known)
        return (sign > 0 ? hn_add_i64 : hn_sub_i64)(a.n, b.n, &n) ? hn_dim(n) : hn_dim_unknown();
    if (hn_dim_is(b, 0))
        return a;
    HnPoly p, q;
    return poly_of(a, &p) && poly_of(b, &q) && hn_poly_add_scaled(&p, &q, sign) ? dim_of(&p) : hn_dim_unknown();
}

HnDim hn_dim_add(HnDim a, HnDim b)
{
    return dim_add(a, b, 1);
}

HnDim hn_dim_sub(HnDim a, HnDim b)
{
    return dim_add(a, b, -1);
}

HnDim hn_dim_mul(HnDim a, HnDim b)
{
    int64_t n;
    if (hn_dim_is(a, 0) || hn_dim_is(b, 0))
        return hn_dim(0);
    if (a.known && b.known)
        return hn_mul_i64(a.n, b.n, &n) ? hn_dim(n) : hn_dim_unknown();
    if (hn_dim_is(a, 1))
        return b;
    if (hn_dim_is(b, 1))
        return a;
    HnPoly p, q, r;
    return poly_of(a, &p) && poly_of(b, &q) && hn_poly_mul(&p, &q, &r) ? dim_of(&r) : hn_dim_unknown();
}

/* b > 0 */
static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;
    return r < 0 ? r + b : r;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* The number at the end of p, taken out. */
static int64_t take_number(HnPoly *p)
{
    if (p->n == 0 || p->t[p->n - 1].degree > 0)
        return 0;
    return p->t[--p->n].c;
}

static gboolean add_number(HnPoly *p, int64_t c)
{
    HnTerm t = { .c = c };
    return hn_poly_add_term(p, &t);
}

/* p = floor(X/c) + k: *x = X + k*c, *c the divisor. So floor(p/b) is floor(x/(c*b)). */
static gboolean as_floor(const HnPoly *p, HnPoly *x, int64_t *c)
{
    HnPoly head = *p;
    int64_t k = take_number(&head), kc;
    if (head.n != 1 || head.t[0].c != 1 || head.t[0].degree != 1 || !g_str_has_prefix(head.t[0].atoms[0], "floor("))
        return FALSE;
    g_autofree HnAtom *atom = g_new(HnAtom, 1);
    const char *s = head.t[0].atoms[0];
    if (!hn_poly_parse_atom(&s, atom, 0) || !hn_poly_is_number(&atom->b, c) || *c <= 0)
        return FALSE;
    *x = atom->a;
    return hn_mul_i64(k, *c, &kc) && add_number(x, kc);
}

/* b > 0. Whole multiples of b leave the floor, common factors are cancelled, floors of floors become one. */
static gboolean floor_by_number(HnPoly *p, int64_t b, HnPoly *out)
{
    HnPoly whole = { .n = 0 }, rest = { .n = 0 }, inner;
    int64_t inner_b;
    for (int i = 0; i < p->n; i++) {
        HnTerm t = p->t[i], r = p->t[i];
        r.c = floor_mod(t.c, b);
        t.c = t.c / b - (t.c % b < 0);
        if (!hn_poly_add_term(&whole, &t) || !hn_poly_add_term(&rest, &r))
            return FALSE;
    }
    int64_t c = take_number(&rest), g = b;
    *out = whole;
    if (rest.n == 0)
        return TRUE; /* floor(c/b) with 0 <= c < b */
    for (int i = 0; i < rest.n; i++)
        g = gcd(g, rest.t[i].c);
    for (int i = 0; i < rest.n; i++)
        rest.t[i].c /= g;
    b /= g;
    if (!add_number(&rest, c / g))
        return FALSE;
    if (as_floor(&rest, &inner, &inner_b) && hn_mul_i64(b, inner_b, &inner_b)) {
        HnPoly joined;
        return floor_by_number(&inner, inner_b, &joined) && hn_poly_add_scaled(out, &joined, 1);
    }
    HnPoly divisor = hn_poly_number(b);
    const char *atom = hn_poly_make_atom("floor", &rest, &divisor);
    if (!atom)
        return FALSE;
    HnPoly made = hn_poly_atom(atom);
    return hn_poly_add_scaled(out, &made, 1);
}

/* Divides both by the atoms and the number that all their terms share. */
static void cancel(HnPoly *a, HnPoly *b)
{
    int64_t g = 0;
    HnPoly *const both[] = { a, b };
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->n; i++)
            g = both[k]->t[i].c == INT64_MIN ? 1 : gcd(g, both[k]->t[i].c);
    HnTerm common = b->t[0];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->n; i++) {
            const HnTerm *t = &both[k]->t[i];
            int n = 0;
            for (int x = 0, y = 0; x < common.degree && y < t->degree;) {
                int cmp = strcmp(common.atoms[x], t->atoms[y]);
                if (cmp == 0)
                    common.atoms[n++] = common.atoms[x];
                x += cmp <= 0;
                y += cmp >= 0;
            }
            common.degree = n;
        }
    common.c = g > 0 ? g : 1;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->n; i++) {
            HnTerm t;
            if (hn_term_div(&both[k]->t[i], &common, &t))
                both[k]->t[i] = t;
        }
}

static gboolean poly_floor(HnPoly *p, HnPoly *q, gboolean ceil, HnPoly *out)
{
    int64_t b;
    if (q->n == 0)
        return FALSE;
    if (hn_poly_div_exact(p, q, out))
        return TRUE;
    cancel(p, q);
    if (hn_poly_is_number(q, &b)) {
        if (b == INT64_MIN)
            return FALSE;
        if (b < 0) {
            HnPoly minus = { .n = 0 };
            if (!hn_poly_add_scaled(&minus, p, -1))
                return FALSE;
            *p = minus;
            b = -b;
        }
        return (!ceil || add_number(p, b - 1)) && floor_by_number(p, b, out);
    }
    const char *atom = hn_poly_make_atom(ceil ? "ceil" : "floor", p, q);
    if (!atom)
        return FALSE;
    *out = hn_poly_atom(atom);
    return TRUE;
}

static HnDim dim_div(HnDim a, HnDim b, gboolean ceil)
{
    HnPoly p, q, r;
    if (hn_dim_is(b, 1))
        return a;
    if (a.known && b.known) {
        if (b.n == 0 || (b.n == -1 && a.n == INT64_MIN))
            return hn_dim_unknown();
        gboolean whole = a.n % b.n == 0, negative = (a.n < 0) != (b.n < 0);
        return hn_dim(a.n / b.n + (whole ? 0 : ceil ? !negative : -negative));
    }
    return poly_of(a, &p) && poly_of(b, &q) && poly_floor(&p, &q, ceil, &r) ? dim_of(&r) : hn_dim_unknown();
}

HnDim hn_dim_floor_div(HnDim a, HnDim b)
{
    return dim_div(a, b, FALSE);
}

HnDim hn_dim_ceil_div(HnDim a, HnDim b)
{
    return dim_div(a, b, TRUE);
}

HnDim hn_dim_mod(HnDim a, HnDim b)
{
    return hn_dim_is(b, 0) ? hn_dim_unknown() : hn_dim_sub(a, hn_dim_mul(b, hn_dim_floor_div(a, b)));
}

static HnDim dim_extreme(HnDim a, HnDim b, gboolean max)
{
    HnPoly p, q, d, minus = { .n = 0 };
    if (a.known && b.known)
        return (a.n > b.n) == max ? a : b;
    if (!poly_of(a, &p) || !poly_of(b, &q))
        return hn_dim_unknown();
    d = p;
    if (!hn_poly_add_scaled(&d, &q, -1) || !hn_poly_add_scaled(&minus, &d, -1))
        return hn_dim_unknown();
    if (poly_nonneg(&d, 0))
        return max ? a : b;
    if (poly_nonneg(&minus, 0))
        return max ? b : a;
    g_autoptr(GString) x = g_string_new(NULL), y = g_string_new(NULL);
    hn_poly_print(&p, x);
    hn_poly_print(&q, y);
    gboolean swap = strcmp(x->str, y->str) > 0;
    const char *atom = hn_poly_make_atom(max ? "max" : "min", swap ? &q : &p, swap ? &p : &q);
    if (!atom)
        return hn_dim_unknown();
    p = hn_poly_atom(atom);
    return dim_of(&p);
}

HnDim hn_dim_max(HnDim a, HnDim b)
{
    return dim_extreme(a, b, TRUE);
}

HnDim hn_dim_min(HnDim a, HnDim b)
{
    return dim_extreme(a, b, FALSE);
}

/* --- evaluation -------------------------------------------------------------------------------------------------- */

static gboolean poly_eval(const HnPoly *p, GHashTable *names, int depth, int64_t *value);

static gboolean atom_eval(const char *atom, GHashTable *names, int depth, int64_t *value)
{
    g_autofree HnAtom *x = g_new(HnAtom, 1);
    const char *s = atom;
    int64_t a, b, q;
    if (depth > HN_POLY_DEPTH || !hn_poly_parse_atom(&s, x, 0)) {
        g_free(x->name);
        return FALSE;
    }
    if (x->name) {
        const int64_t *v = g_hash_table_lookup(names, x->name);
        g_free(x->name);
        if (v)
            *value = *v;
        return v != NULL;
    }
    if (!poly_eval(&x->a, names, depth + 1, &a) || !poly_eval(&x->b, names, depth + 1, &b))
        return FALSE;
    if (x->word[0] == 'm') {
        *value = x->word[1] == 'a' ? MAX(a, b) : MIN(a, b);
        return TRUE;
    }
    if (b == 0 || (b == -1 && a == INT64_MIN))
        return FALSE;
    q = a / b;
    if (a % b != 0) {
        gboolean negative = (a < 0) != (b < 0);
        q += x->word[0] == 'f' ? -negative : !negative;
    }
    *value = q;
    return TRUE;
}

static gboolean poly_eval(const HnPoly *p, GHashTable *names, int depth, int64_t *value)
{
    int64_t sum = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t term = p->t[i].c, v;
        for (int k = 0; k < p->t[i].degree; k++)
            if (!atom_eval(p->t[i].atoms[k], names, depth, &v) || !hn_mul_i64(term, v, &term))
                return FALSE;
        if (!hn_add_i64(sum, term, &sum))
            return FALSE;
    }
    *value = sum;
    return TRUE;
}

gboolean hn_dim_eval(HnDim d, GHashTable *names, int64_t *value)
{
    const int64_t *v = !d.known && d.sym && names ? g_hash_table_lookup(names, d.sym) : NULL;
    HnPoly p;
    int64_t r;
    if (v) {
        *value = *v;
        return TRUE;
    }
    if (!d.known && !names)
        return FALSE;
    if (!poly_of(d, &p) || !poly_eval(&p, names, 0, &r))
        return FALSE;
    *value = r;
    return TRUE;
}
