#include "op/norm_grad.h"

static HnValue *mean(HnTape *t, const HnNormGrad *g, HnValue *v)
{
    return hn_build_reduce(t->build, "ReduceMean", v, g->axes, g->n, TRUE);
}

void hn_norm_hat(HnTape *t, HnNormGrad *g, HnValue *x)
{
    HnValue *off = x, *v[2];
    if (g->centred) {
        v[0] = x;
        v[1] = mean(t, g, x);
        off = hn_tape_calc(t, "p - q", v);
    }
    v[0] = mean(t, g, hn_build_op2(t->build, "Mul", off, off));
    t->number[0] = g->epsilon;
    g->inv = hn_tape_calc(t, "1 / Sqrt(p + a)", v);
    g->hat = hn_build_op2(t->build, "Mul", off, g->inv);
}

HnValue *hn_norm_dx(HnTape *t, const HnNormGrad *g, HnValue *dhat)
{
    HnValue *along = hn_build_op2(t->build, "Mul", g->hat, mean(t, g, hn_build_op2(t->build, "Mul", dhat, g->hat)));
    HnValue *v[] = { dhat, along, g->inv };
    HnValue *dx = hn_tape_calc(t, "(p - q) * r", v);
    if (!g->centred)
        return dx;
    HnValue *w[] = { dx, mean(t, g, dhat), g->inv };
    return hn_tape_calc(t, "p - q * r", w);
}

HnValue *hn_norm_by_channel(HnTape *t, HnValue *v, int rank)
{
    int64_t dims[HN_MAX_RANK];
    for (int i = 0; i < rank - 1; i++)
        dims[i] = i == 0 ? -1 : 1;
    return hn_build_reshape(t->build, v, dims, rank - 1);
}

HnValue *hn_norm_channel_sum(HnTape *t, HnValue *v, int i, int rank)
{
    HnValue *like = hn_tape_in(t, i);
    return hn_tape_reshape_like(t, hn_tape_sum_like(t, v, hn_norm_by_channel(t, like, rank)), like);
}
