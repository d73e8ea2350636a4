/*
 * A Cast behind a Cast that lost nothing starts where that one did: f16 -> f32 -> f16 is nothing, bool -> i32 -> f32
 * one Cast.
 */
#include "op/cast.h"
#include "pass/shapes.h"

/* Bits of an exact integer of the type: of an integer type without its sign, of a float's significand; 0: others. */
static int digits(HnDtype d)
{
    switch (d) {
    case HN_BOOL:
        return 1;
    case HN_BF16:
        return 8;
    case HN_F16:
        return 11;
    case HN_F32:
        return 24;
    case HN_F64:
        return 53;
    default:
        return hn_dtype_in(d, HN_T_INTS) ? (int)hn_dtype_bits(d) - hn_dtype_in(d, HN_T_SINTS) : 0;
    }
}

static int exponent_bits(HnDtype d)
{
    return d == HN_F16 ? 5 : d == HN_F64 ? 11 : 8;
}

static gboolean is_float(HnDtype d)
{
    return hn_dtype_in(d, HN_T_FLOATS);
}

/* Every value of a is one of b. */
static gboolean holds(HnDtype b, HnDtype a)
{
    if (digits(a) == 0 || digits(b) == 0 || digits(b) < digits(a))
        return a == b && a != HN_UNDEFINED;
    if (is_float(a))
        return is_float(b) && exponent_bits(b) >= exponent_bits(a);
    if (is_float(b)) /* f16 ends at 65504, 2^16 - 1 of more than 11 bits is out anyway */
        return TRUE;
    return b != HN_BOOL && (!hn_dtype_in(a, HN_T_SINTS) || hn_dtype_in(b, HN_T_SINTS));
}

/* a -> b -> c is a -> c: nothing is lost on the way to b, and what c makes of a does not depend on it. */
static gboolean direct(HnDtype a, HnDtype b, HnDtype c)
{
    if (!holds(b, a))
        return FALSE;
    if (a == c || c == HN_BOOL || holds(c, b) || holds(c, a))
        return TRUE;
    if (is_float(a))
        return is_float(b) && digits(c) > 0;
    return is_float(c) || (!is_float(b) && hn_dtype_in(c, HN_T_INTS)); /* integers are cut off bit by bit */
}

static gboolean merge_casts(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_cast)
        return FALSE;
    HnNode *first = hn_rw_maker(hn_node_in(n, 0), &hn_op_cast);
    HnValue *y = hn_node_out(n, 0);
    if (first == NULL || !hn_value_is_read(y))
        return FALSE;
    HnValue *x = hn_node_in(first, 0);
    const HnDtype a = hn_rw_dtype(r, x), b = ((const HnCast *)first->params)->to, c = ((const HnCast *)n->params)->to;
    if (!direct(a, b, c))
        return hn_rw_miss(r, n, "%s does not hold every %s", hn_dtype_name(b), hn_dtype_name(a));
    if (a == c)
        return hn_rw_bypass(r, n, y, x);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, x);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_merge_casts = {
    .name = "merge-casts",
    .summary = "one Cast instead of two where the first loses nothing",
    .level = 1,
    .node = merge_casts,
};
