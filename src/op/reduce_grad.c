/* Gradients of the reductions: what is reduced over is spread out again. */
#include "op/reduce.h"
#include "op/tape.h"

/* v, of the result's shape, with axes of size 1 where the operator took them away; NULL: refused. */
static HnValue *kept(HnTape *t, HnValue *v)
{
    const HnReduce *p = t->params;
    HnValue *axes = hn_tape_in(t, 1);
    int64_t which[HN_MAX_RANK], ones[HN_MAX_RANK];
    const int n = axes != NULL ? hn_tape_ints(t, 1, which) : 0, rank = hn_tape_rank(t, 0);
    if (n < 0 || (n == 0 && !p->noop && rank < 0)) {
        hn_tape_refuse(t, "the axes are not known");
        return v;
    }
    if (p->keepdims || (n == 0 && p->noop))
        return v;
    for (int a = 0; a < rank; a++)
        ones[a] = 1;
    return n > 0 ? hn_build_op2(t->build, "Unsqueeze", v, axes) : hn_build_reshape(t->build, v, ones, rank);
}

/* The gradient of input 0 from p, dy, and q, the result, both with all axes. */
static void reduce_grad(HnTape *t, const char *expression)
{
    HnValue *v[] = { kept(t, hn_tape_dy(t, 0)), kept(t, hn_tape_out(t, 0)) };
    hn_tape_give(t, 0, hn_tape_calc(t, expression, v));
}

static HnValue *expanded(HnTape *t, HnValue *v)
{
    return hn_build_op2(t->build, "Expand", v, hn_build_shape(t->build, hn_tape_in(t, 0), 0, INT64_MAX));
}

void hn_reducesum_grad(HnTape *t)
{
    hn_tape_give(t, 0, expanded(t, kept(t, hn_tape_dy(t, 0))));
}

/* Elements of the input for each of the result. */
static HnValue *elements_of_each(HnTape *t)
{
    int64_t x[HN_MAX_RANK], y[HN_MAX_RANK];
    double n = 1;
    if (!hn_tape_dims(t, 0, x) || !hn_tape_out_dims(t, 0, y)) {
        HnValue *all = hn_build_op1(t->build, "Size", hn_tape_in(t, 0));
        HnValue *each = hn_build_op2(t->build, "Div", all, hn_build_op1(t->build, "Size", hn_tape_out(t, 0)));
        return hn_build_cast(t->build, each, t->dtype);
    }
    for (int a = 0; a < hn_tape_rank(t, 0); a++)
        n *= (double)x[a];
    const HnType *type = hn_types_get(t->types, hn_tape_out(t, 0));
    for (int a = 0; a < type->rank; a++)
        n /= (double)y[a];
    return hn_tape_number(t, n);
}

void hn_reducemean_grad(HnTape *t)
{
    HnValue *n = elements_of_each(t);
    HnValue *mean = hn_tape_calc(t, "dy / p", &n);
    hn_tape_give(t, 0, expanded(t, kept(t, mean)));
}

/* Elements that are the result share its gradient evenly, as in PyTorch. */
void hn_reducepick_grad(HnTape *t)
{
    HnValue *y = kept(t, hn_tape_out(t, 0));
    HnValue *is = hn_build_cast(t->build, hn_build_op2(t->build, "Equal", hn_tape_in(t, 0), y), t->dtype);
    HnValue *v[] = { kept(t, hn_tape_dy(t, 0)), is, hn_tape_sum_like(t, is, y) };
    hn_tape_give(t, 0, hn_tape_calc(t, "q * (p / r)", v));
}

/* The product of the others, axis by axis: those before times those behind, which holds where some are 0. */
void hn_reduceprod_grad(HnTape *t)
{
    const HnReduce *p = t->params;
    int64_t axes[HN_MAX_RANK];
    const int rank = hn_tape_rank(t, 0);
    int n = hn_tape_in(t, 1) != NULL ? hn_tape_ints(t, 1, axes) : 0;
    HnValue *g = kept(t, hn_tape_dy(t, 0)), *x = hn_tape_in(t, 0);
    if (n < 0 || rank < 0)
        return;
    for (int a = 0; n == 0 && !p->noop && a < rank; a++)
        axes[a] = a;
    n = n == 0 && !p->noop ? rank : n;
    HnValue *stage[HN_MAX_RANK + 1] = { x }; /* reduced over the first k axes */
    for (int k = 0; k < n; k++)
        stage[k + 1] = hn_build_reduce(t->build, "ReduceProd", stage[k], &axes[k], 1, TRUE);
    for (int k = n; k > 0; k--) {
        HnValue *axis = hn_build_constant(t->build, "axis", hn_tensor_new(HN_I64, 0, NULL, NULL, NULL));
        hn_tensor_set_i64(axis->weight, 0, axes[k - 1]);
        for (int reverse = 0; reverse < 2; reverse++) {
            HnValue *in[] = { stage[k - 1], axis };
            HnNode *c = hn_build_node(t->build, "CumProd", NULL, 2, in, 1);
            hn_node_set_int(c, "exclusive", 1);
            hn_node_set_int(c, "reverse", reverse);
            g = hn_build_op2(t->build, "Mul", hn_node_out(c, 0), g);
        }
    }
    hn_tape_give(t, 0, g);
}

void hn_reducel1_grad(HnTape *t)
{
    reduce_grad(t, "p * Sign(x)");
}

/* x / y, and 0 where all are 0. */
void hn_reducel2_grad(HnTape *t)
{
    reduce_grad(t, "p * Where(q > 0, x / q, 0)");
}

void hn_reducesumsquare_grad(HnTape *t)
{
    reduce_grad(t, "2 * p * x");
}

void hn_reducelogsum_grad(HnTape *t)
{
    HnValue *each = hn_tape_calc(t, "dy * Exp(-y)", NULL);
    hn_tape_give(t, 0, expanded(t, kept(t, each)));
}

void hn_reducelogsumexp_grad(HnTape *t)
{
    reduce_grad(t, "p * Exp(x - q)");
}
