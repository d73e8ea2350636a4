/*
 * Gradients of QuantizeLinear and DequantizeLinear.
 *
 * y = s * (q - z), q = clip(round(x / s) + z). Straight through the rounding, and 0 where it is clipped:
 * dx = dy * inside, ds = dy * (q - z - inside * x / s) (S. K. Esser et al., Learned step size quantization, 2020).
 */
#include <math.h>

#include "op/quantize.h"
#include "op/tape.h"

/* Scale or zero point, as floats that broadcast to input 0. NULL: refused. */
static HnValue *spread_to(HnTape *t, HnValue *v)
{
    const HnQuantize *p = t->params;
    const int rank = hn_tape_rank(t, 0), many = hn_tape_rank(t, 1);
    int64_t dims[HN_MAX_RANK], axis = p->axis + (p->axis < 0 ? rank : 0);
    if (hn_tape_dtype(t, v) != t->dtype)
        v = hn_build_cast(t->build, v, t->dtype);
    if (many == 0 || (many == 1 && rank == 1 && p->block == 0))
        return v;
    if (p->block != 0 || many != 1 || rank < 0 || axis < 0 || axis >= rank) {
        hn_tape_refuse(t, "scales that belong to blocks, or of unknown rank, have no gradient");
        return NULL;
    }
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? -1 : 1;
    return hn_build_reshape(t->build, v, dims, rank);
}

/* The gradient of the scale, summed from ds of input 0's shape; `wide` is the scale as it broadcasts. */
static void give_scale(HnTape *t, HnValue *ds, HnValue *wide)
{
    HnValue *scale = hn_tape_in(t, 1), *sum = hn_tape_sum_like(t, ds, wide);
    if (hn_tape_dtype(t, scale) != t->dtype)
        sum = hn_build_cast(t->build, sum, hn_tape_dtype(t, scale));
    hn_tape_give(t, 1, wide == scale ? sum : hn_tape_reshape_like(t, sum, scale));
}

void hn_dequantize_grad(HnTape *t)
{
    HnValue *q = hn_tape_in(t, 0), *zero = hn_tape_in(t, 2), *scale = spread_to(t, hn_tape_in(t, 1));
    hn_tape_ends(t, 2);
    if (scale == NULL)
        return;
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_calc(t, "dy * p", &scale));
    if (!hn_tape_needs(t, 1))
        return;
    HnValue *v[] = { hn_build_cast(t->build, q, t->dtype), zero != NULL ? spread_to(t, zero) : NULL };
    give_scale(t, hn_tape_calc(t, zero != NULL ? "dy * (p - q)" : "dy * p", v), scale);
}

void hn_quantize_grad(HnTape *t)
{
    const HnDtype to = hn_tape_dtype(t, hn_tape_out(t, 0));
    const gboolean is_signed = to == HN_I2 || to == HN_I4 || to == HN_I8 || to == HN_I16;
    const int bits = (int)hn_dtype_bits(to);
    HnValue *zero = hn_tape_in(t, 2), *v[3];
    hn_tape_ends(t, 2);
    t->dtype = hn_tape_dtype(t, hn_tape_in(t, 0));
    if (!hn_dtype_in(to, HN_T_INTS | HN_T_SUBBYTE) || to == HN_F4E2M1 || !hn_dtype_in(t->dtype, HN_T_FLOATS)) {
        hn_tape_refuse(t, "%s made of %s has no gradient", hn_dtype_name(to), hn_dtype_name(t->dtype));
        return;
    }
    t->number[0] = is_signed ? -ldexp(1, bits - 1) : 0;
    t->number[1] = ldexp(1, bits - (is_signed ? 1 : 0)) - 1;
    if ((v[0] = spread_to(t, hn_tape_in(t, 1))) == NULL)
        return;
    v[1] = zero != NULL ? spread_to(t, zero) : NULL;
    v[1] = hn_tape_calc(t, zero != NULL ? "Round(x / p) + q" : "Round(x / p)", v);
    v[1] = hn_tape_calc(t, "And(q >= a, q <= b)", v);
    v[2] = hn_tape_calc(t, "Where(q, dy / p, 0)", v);
    hn_tape_give(t, 0, v[2]);
    if (hn_tape_needs(t, 1))
        give_scale(t, hn_tape_calc(t, "-(r * x / p)", v), v[0]);
}
