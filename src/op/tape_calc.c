/*
 * Expressions of gradients, as nodes: a parser by recursive descent, with numbers folded on the way.
 *
 *     compared = sum [ ("<" | ">" | "<=" | ">=") sum ]
 *     sum      = product { ("+" | "-") product }
 *     product  = sign { ("*" | "/") sign }
 *     sign     = "-" sign | atom
 *     atom     = number | name | Name "(" compared { "," compared } ")" | "(" compared ")"
 */
#include <string.h>

#include "op/tape.h"

#define MOST_ARGUMENTS 3

/* A value, or, where it is NULL, a number. */
typedef struct {
    HnValue *v;
    double n;
} Term;

typedef struct {
    HnTape *t;
    const char *at;
    HnValue *const *values;
} Parser;

static Term compared(Parser *p);

static char next(Parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static gboolean take(Parser *p, const char *text)
{
    (void)next(p);
    if (!g_str_has_prefix(p->at, text))
        return FALSE;
    p->at += strlen(text);
    return TRUE;
}

static HnValue *value_of(Parser *p, Term x)
{
    return x.v != NULL ? x.v : hn_tape_number(p->t, x.n);
}

static Term node(Parser *p, const char *op, Term x, Term y)
{
    HnValue *a = value_of(p, x);
    return (Term){ hn_build_op2(p->t->build, op, a, value_of(p, y)), 0 };
}

static gboolean is(Term x, double n)
{
    return x.v == NULL && !(x.n < n) && !(x.n > n);
}

static Term add(Parser *p, Term x, Term y)
{
    if (x.v == NULL && y.v == NULL)
        return (Term){ NULL, x.n + y.n };
    return is(x, 0) ? y : is(y, 0) ? x : node(p, "Add", x, y);
}

static Term subtract(Parser *p, Term x, Term y)
{
    if (x.v == NULL && y.v == NULL)
        return (Term){ NULL, x.n - y.n };
    if (is(x, 0))
        return (Term){ hn_build_op1(p->t->build, "Neg", y.v), 0 };
    return is(y, 0) ? x : node(p, "Sub", x, y);
}

static Term multiply(Parser *p, Term x, Term y)
{
    if (x.v == NULL && y.v == NULL)
        return (Term){ NULL, x.n * y.n };
    return is(x, 1) ? y : is(y, 1) ? x : node(p, "Mul", x, y);
}

static Term divide(Parser *p, Term x, Term y)
{
    if (x.v == NULL && y.v == NULL)
        return (Term){ NULL, x.n / y.n };
    return is(y, 1) ? x : y.v == NULL ? node(p, "Mul", x, (Term){ NULL, 1 / y.n }) : node(p, "Div", x, y);
}

static Term call(Parser *p, const char *op)
{
    HnValue *arg[MOST_ARGUMENTS] = { NULL };
    int n = 0;
    do {
        g_assert(n < MOST_ARGUMENTS);
        arg[n] = value_of(p, compared(p));
        n++;
    } while (take(p, ","));
    g_assert(take(p, ")"));
    return (Term){ hn_node_out(hn_build_node(p->t->build, op, NULL, n, arg, 1), 0), 0 };
}

static Term named(Parser *p, const char *name)
{
    static const char *const inputs[] = { "x0", "x1", "x2" };
    HnTape *t = p->t;
    for (int i = 0; i < (int)G_N_ELEMENTS(inputs); i++)
        if (strcmp(name, inputs[i]) == 0)
            return (Term){ hn_tape_in(t, i), 0 };
    if (strcmp(name, "dy") == 0)
        return (Term){ hn_tape_dy(t, 0), 0 };
    if (strcmp(name, "y") == 0)
        return (Term){ hn_tape_out(t, 0), 0 };
    if (strcmp(name, "x") == 0)
        return (Term){ hn_tape_in(t, 0), 0 };
    g_assert(strlen(name) == 1);
    if (*name >= 'a' && *name < 'a' + HN_TAPE_NUMBERS)
        return (Term){ NULL, t->number[*name - 'a'] };
    g_assert(*name >= 'p' && *name <= 'r');
    return (Term){ p->values[*name - 'p'], 0 };
}

static Term atom(Parser *p)
{
    if (take(p, "(")) {
        const Term x = compared(p);
        g_assert(take(p, ")"));
        return x;
    }
    if (g_ascii_isdigit(next(p))) {
        char *end;
        const double n = g_ascii_strtod(p->at, &end);
        p->at = end;
        return (Term){ NULL, n };
    }
    const char *from = p->at;
    while (g_ascii_isalnum(*p->at))
        p->at++;
    g_autofree char *name = g_strndup(from, (gsize)(p->at - from));
    return take(p, "(") ? call(p, name) : named(p, name);
}

static Term sign(Parser *p)
{
    return take(p, "-") ? subtract(p, (Term){ NULL, 0 }, sign(p)) : atom(p);
}

static Term product(Parser *p)
{
    Term x = sign(p);
    for (;;) {
        if (take(p, "*"))
            x = multiply(p, x, sign(p));
        else if (take(p, "/"))
            x = divide(p, x, sign(p));
        else
            return x;
    }
}

static Term sum(Parser *p)
{
    Term x = product(p);
    for (;;) {
        if (take(p, "+"))
            x = add(p, x, product(p));
        else if (take(p, "-"))
            x = subtract(p, x, product(p));
        else
            return x;
    }
}

static Term compared(Parser *p)
{
    static const struct {
        const char *text, *op;
    } tests[] = { { "<=", "LessOrEqual" }, { ">=", "GreaterOrEqual" }, { "<", "Less" }, { ">", "Greater" } };
    const Term x = sum(p);
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++)
        if (take(p, tests[i].text))
            return node(p, tests[i].op, x, sum(p));
    return x;
}

HnValue *hn_tape_calc(HnTape *t, const char *expression, HnValue *const *values)
{
    Parser p = { .t = t, .at = expression, .values = values };
    HnValue *v = value_of(&p, compared(&p));
    g_assert(next(&p) == '\0');
    return v;
}
