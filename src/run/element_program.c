#include "run/element_program.h"

#include <float.h>

#include "op/activation.h"
#include "op/cast.h"
#include "op/clip.h"
#include "op/ops.h"

/* --- functions of one number --------------------------------------------------------------------------------------
 */

/* How instructions are made of an operator. */
typedef enum {
    OTHER,
    FUNCTION,      /* of one number, without parameters but `b` */
    WITH_ATTRS,    /* those are the operator's: an HnActivation */
    WITH_INVERSE,  /* b is one over its first attribute */
    WITH_FORM,     /* its attribute `tanh` chooses another function */
    WITH_BOUNDS,   /* Clip */
    WITH_EXPONENT, /* Pow, where that is one constant; else as PAIR */
    PAIR,          /* of two operands, or of more, one by one */
    CONVERT,
    NEGATE,
    CHOOSE,
    GATE, /* SwiGLU */
} How;

typedef struct {
    const HnOp *op;
    How how;
    HnElementCode code;
    float b;
} Recipe;

static const Recipe recipes[] = {
    { &hn_op_abs, FUNCTION, HN_DO_abs, 0 },
    { &hn_op_acos, FUNCTION, HN_DO_acos, 0 },
    { &hn_op_acosh, FUNCTION, HN_DO_acosh, 0 },
    { &hn_op_asin, FUNCTION, HN_DO_asin, 0 },
    { &hn_op_asinh, FUNCTION, HN_DO_asinh, 0 },
    { &hn_op_atan, FUNCTION, HN_DO_atan, 0 },
    { &hn_op_atanh, FUNCTION, HN_DO_atanh, 0 },
    { &hn_op_ceil, FUNCTION, HN_DO_ceil, 0 },
    { &hn_op_celu, WITH_INVERSE, HN_DO_celu, 0 },
    { &hn_op_cos, FUNCTION, HN_DO_sine, 1 },
    { &hn_op_cosh, FUNCTION, HN_DO_cosh, 0 },
    { &hn_op_elu, WITH_ATTRS, HN_DO_elu, 0 },
    { &hn_op_erf, FUNCTION, HN_DO_erf, 0 },
    { &hn_op_exp, FUNCTION, HN_DO_exp, 0 },
    { &hn_op_floor, FUNCTION, HN_DO_floor, 0 },
    { &hn_op_gelu, WITH_FORM, HN_DO_gelu, 0 },
    { &hn_op_hardsigmoid, WITH_ATTRS, HN_DO_hardsigmoid, 0 },
    { &hn_op_hardswish, FUNCTION, HN_DO_hardswish, 0 },
    { &hn_op_leakyrelu, WITH_ATTRS, HN_DO_leakyrelu, 0 },
    { &hn_op_log, FUNCTION, HN_DO_log, 0 },
    { &hn_op_mish, FUNCTION, HN_DO_mish, 0 },
    { &hn_op_neg, FUNCTION, HN_DO_neg, 0 },
    { &hn_op_reciprocal, FUNCTION, HN_DO_reciprocal, 0 },
    { &hn_op_relu, FUNCTION, HN_DO_relu, 0 },
    { &hn_op_round, FUNCTION, HN_DO_round, 0 },
    { &hn_op_selu, WITH_ATTRS, HN_DO_selu, 0 },
    { &hn_op_shrink, WITH_ATTRS, HN_DO_shrink, 0 },
    { &hn_op_sigmoid, FUNCTION, HN_DO_sigmoid, 0 },
    { &hn_op_sign, FUNCTION, HN_DO_sign, 0 },
    { &hn_op_sin, FUNCTION, HN_DO_sine, 0 },
    { &hn_op_sinh, FUNCTION, HN_DO_sinh, 0 },
    { &hn_op_softplus, FUNCTION, HN_DO_softplus, 0 },
    { &hn_op_softsign, FUNCTION, HN_DO_softsign, 0 },
    { &hn_op_sqrt, FUNCTION, HN_DO_sqrt, 0 },
    { &hn_op_swish, WITH_ATTRS, HN_DO_swish, 0 },
    { &hn_op_tan, FUNCTION, HN_DO_tan, 0 },
    { &hn_op_tanh, FUNCTION, HN_DO_tanh, 0 },
    { &hn_op_thresholdedrelu, WITH_ATTRS, HN_DO_thresholdedrelu, 0 },
    { &hn_op_add, PAIR, HN_DO_add, 0 },
    { &hn_op_sum, PAIR, HN_DO_add, 0 },
    { &hn_op_sub, PAIR, HN_DO_sub, 0 },
    { &hn_op_mul, PAIR, HN_DO_mul, 0 },
    { &hn_op_div, PAIR, HN_DO_div, 0 },
    { &hn_op_max, PAIR, HN_DO_max, 0 },
    { &hn_op_min, PAIR, HN_DO_min, 0 },
    { &hn_op_prelu, PAIR, HN_DO_prelu, 0 },
    { &hn_op_pow, WITH_EXPONENT, HN_DO_pow, 0 },
    { &hn_op_gelugrad, PAIR, HN_DO_gelugrad, 0 },
    { &hn_op_equal, PAIR, HN_DO_equal, 0 },
    { &hn_op_greater, PAIR, HN_DO_greater, 0 },
    { &hn_op_greaterorequal, PAIR, HN_DO_greaterorequal, 0 },
    { &hn_op_less, PAIR, HN_DO_less, 0 },
    { &hn_op_lessorequal, PAIR, HN_DO_lessorequal, 0 },
    { &hn_op_and, PAIR, HN_DO_both, 0 },
    { &hn_op_or, PAIR, HN_DO_either, 0 },
    { &hn_op_xor, PAIR, HN_DO_one_of, 0 },
    { &hn_op_clip, WITH_BOUNDS, HN_DO_clip, 0 },
    { &hn_op_cast, CONVERT, HN_DO_truth, 0 },
    { &hn_op_not, NEGATE, HN_DO_negate, 0 },
    { &hn_op_where, CHOOSE, HN_DO_choose, 0 },
    { &hn_op_swiglu, GATE, HN_DO_mul, 0 },
};

static Recipe recipe_of(const HnOp *op)
{
    for (guint i = 0; i < G_N_ELEMENTS(recipes); i++)
        if (recipes[i].op == op)
            return recipes[i];
    return (Recipe){ .op = op, .how = OTHER };
}

/* A number that is there and does not change, or `absent`. */
static gboolean constant_of(const HnOperand *in, int n_in, int i, float absent, float *value)
{
    const gboolean present = i < n_in && in[i].present;
    if (present && (in[i].known == NULL || in[i].known->n != 1))
        return FALSE;
    *value = present ? (float)hn_tensor_get_f64(in[i].known, 0) : absent;
    return TRUE;
}

typedef struct {
    const HnOperand *in;
    int n_in;
} Reader;

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const Reader *r = of;
    float value;
    if (!constant_of(r->in, r->n_in, i, (float)*x, &value))
        return FALSE;
    *x = (double)value;
    return TRUE;
}

static const char *clip_of(const HnClip *c, const HnOperand *in, int n_in, HnElementFn *f)
{
    double lo = (double)-FLT_MAX, hi = (double)FLT_MAX;
    if (!hn_op_bounds(&hn_op_clip, c, read_bound, &(Reader){ in, n_in }, &lo, &hi))
        return "bounds that are not constant numbers";
    *f = (HnElementFn){ HN_DO_clip, (float)lo, (float)hi };
    return NULL;
}

static const char *pow_of(const HnOperand *in, int n_in, HnElementFn *f)
{
    if (!constant_of(in, n_in, 1, 1, &f->a))
        return "an exponent that is not one constant";
    f->code = f->a == 2 ? HN_DO_square : f->a == 3 ? HN_DO_cube : f->a == -1 ? HN_DO_reciprocal : HN_DO_power;
    return NULL;
}

const char *hn_element_fn(const HnOp *op, const void *params, const HnOperand *in, int n_in, HnElementFn *f)
{
    const Recipe r = recipe_of(op);
    const HnActivation *p = params;
    *f = (HnElementFn){ .code = r.code, .b = r.b };
    switch (r.how) {
    case FUNCTION:
        return NULL;
    case WITH_BOUNDS:
        return clip_of(params, in, n_in, f);
    case WITH_EXPONENT:
        return pow_of(in, n_in, f);
    case WITH_ATTRS:
    case WITH_INVERSE:
    case WITH_FORM:
        break;
    default:
        return "no function of one number";
    }
    if (p == NULL)
        return NULL;
    f->a = (float)p->a;
    f->b = (float)(r.how == WITH_INVERSE ? 1 / p->a : p->b);
    if (r.how == WITH_FORM && p->tanh)
        f->code = HN_DO_gelu_tanh;
    return NULL;
}

/* --- what a program can have ---------------------------------------------------------------------------------------
 */

/* What comes out is 0 or 1. */
static gboolean gives_truth(HnElementCode code)
{
    switch (code) {
#define HN_TRUTH_OF(name) case HN_DO_##name:
#define HN_TRUTH_PAIR(name) case HN_DO_##name:
#include "run/element_codes.def"
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean is_number(HnDtype d)
{
    return d == HN_F32 || hn_dtype_is_half(d);
}

/* Of any number of operands: Max, Min, Sum. */
static gboolean any_count(const HnOp *op)
{
    return op->in[1] == '*';
}

/* Operators of old opsets lay the second operand against other axes, where it has more than one element. */
static gboolean old_broadcast(const HnNode *n, const HnType *const *in)
{
    return n->version < 7 && n->in->len == 2 && !any_count(n->op) && !hn_type_equal(in[0], in[1]) &&
           hn_type_count(in[1]) != 1;
}

/* The types of a cast that rows can hold between. */
static gboolean takes_cast(const HnType *from, const HnType *to)
{
    static const HnDtype sources[] = { HN_F32, HN_F16, HN_BF16, HN_F64, HN_BOOL, HN_U8, HN_I8, HN_I32, HN_I64 };
    gboolean known = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(sources); i++)
        known = known || from->dtype == sources[i];
    return known && (to->dtype == HN_F32 || to->dtype == HN_BOOL);
}

gboolean hn_element_takes(const HnNode *n, const HnType *const *in, HnTensor *const *known, const HnType *out)
{
    HnOperand operand[HN_GROUP_INPUTS] = { { 0 } };
    HnElementFn f;
    const int n_in = (int)n->in->len;
    if (n_in < 1 || in[0] == NULL || out->rank > HN_MAX_RANK)
        return FALSE;
    const Recipe r = recipe_of(n->op);
    if (r.how == CONVERT)
        return takes_cast(in[0], out);
    if (!is_number(out->dtype) && out->dtype != HN_BOOL)
        return FALSE;
    for (int i = 0; i < n_in; i++) {
        operand[i] = (HnOperand){ .known = known[i], .present = in[i] != NULL };
        if (in[i] != NULL && !is_number(in[i]->dtype) && in[i]->dtype != HN_BOOL)
            return FALSE;
    }
    if (r.how == NEGATE || (is_number(out->dtype) && hn_element_fn(n->op, n->params, operand, n_in, &f) == NULL))
        return in[0]->rank == out->rank && hn_type_count(in[0]) == hn_type_count(out);
    for (int i = 1; i < n_in; i++)
        if (in[i] == NULL && r.how != WITH_BOUNDS)
            return FALSE;
    if (old_broadcast(n, in))
        return FALSE;
    if (r.how == CHOOSE)
        return n_in == 3 && is_number(out->dtype);
    if (r.how == WITH_BOUNDS)
        return TRUE;
    if (r.how != PAIR && r.how != WITH_EXPONENT)
        return FALSE;
    return gives_truth(r.code) ? n_in == 2 : is_number(out->dtype) && (n_in == 2 || (n_in > 2 && any_count(n->op)));
}

/* --- instructions, each with a result of its own --------------------------------------------------------------------
 */

typedef struct {
    const HnStep *s;
    GArray *code; /* HnElementDo: the result of number i is operand n_in + i */
    int n_in;
} Compiler;

static int add(Compiler *c, HnElementDo i)
{
    i.result = c->n_in + (int)c->code->len;
    g_array_append_val(c->code, i);
    return i.result;
}

static int add_pair(Compiler *c, HnElementCode code, int left, int right)
{
    return add(c, (HnElementDo){ .fn.code = code, .n_arg = 2, .arg = { left, right } });
}

static int add_fn(Compiler *c, HnElementFn f, int x)
{
    return add(c, (HnElementDo){ .fn = f, .n_arg = 1, .arg = { x } });
}

static gboolean is_truth(const Compiler *c, int operand)
{
    if (operand < c->n_in)
        return c->s->in[operand].slot->tensor->dtype == HN_BOOL;
    return gives_truth(g_array_index(c->code, HnElementDo, operand - c->n_in).fn.code);
}

static int add_cast(Compiler *c, const HnNode *n, int x)
{
    const HnCast *p = n->params;
    if (p->to == HN_BOOL && !is_truth(c, x))
        return add_fn(c, (HnElementFn){ .code = HN_DO_truth }, x);
    return x; /* f32 already: ports are converted on the way in */
}

/* Clip by bounds that are no constants. */
static int add_clip(Compiler *c, const int *arg, int n_in)
{
    int y = arg[0];
    if (n_in > 1 && arg[1] >= 0)
        y = add_pair(c, HN_DO_max, y, arg[1]);
    if (n_in > 2 && arg[2] >= 0)
        y = add_pair(c, HN_DO_min, y, arg[2]);
    return y;
}

static int add_swiglu(Compiler *c, const HnNode *n, const int *arg)
{
    const HnActivation *p = n->params;
    return add_pair(c, HN_DO_mul, add_fn(c, (HnElementFn){ HN_DO_swish, (float)p->a, 0 }, arg[0]), arg[1]);
}

/* One node, whose inputs are the operands arg; -1: absent. */
static int add_node(Compiler *c, const HnNode *n, const int *arg)
{
    const int n_in = (int)n->in->len;
    HnOperand operand[HN_GROUP_INPUTS] = { { 0 } };
    HnElementFn f;
    for (int i = 0; i < n_in; i++) {
        const HnSlot *slot = arg[i] >= 0 && arg[i] < c->n_in ? c->s->in[arg[i]].slot : NULL;
        operand[i] =
            (HnOperand){ .known = slot != NULL && slot->constant ? slot->tensor : NULL, .present = arg[i] >= 0 };
    }
    const Recipe r = recipe_of(n->op);
    if (r.how == CONVERT)
        return add_cast(c, n, arg[0]);
    if (r.how == GATE)
        return add_swiglu(c, n, arg);
    if (r.how == NEGATE)
        return add_fn(c, (HnElementFn){ .code = r.code }, arg[0]);
    if (r.how == CHOOSE)
        return add(c, (HnElementDo){ .fn.code = r.code, .n_arg = 3, .arg = { arg[0], arg[1], arg[2] } });
    if (hn_element_fn(n->op, n->params, operand, n_in, &f) == NULL)
        return add_fn(c, f, arg[0]);
    if (r.how == WITH_BOUNDS)
        return add_clip(c, arg, n_in);
    const HnActivation *p = n->params;
    const HnElementCode code = r.code == HN_DO_gelugrad && p->tanh ? HN_DO_gelugrad_tanh : r.code;
    int y = arg[0];
    for (int i = 1; i < n_in; i++)
        y = add_pair(c, code, y, arg[i]);
    return y;
}

/* --- registers -------------------------------------------------------------------------------------------------------
 */

/* Registers are taken again as soon as their numbers were read for the last time, by the same instruction even. */
static void allot_registers(HnElementProgram *p, int n_values)
{
    g_autofree int *last = g_new0(int, (gsize)n_values), *place = g_new0(int, (gsize)n_values);
    g_autofree gboolean *taken = g_new0(gboolean, (gsize)p->n + 1);
    for (int k = 0; k < p->n; k++)
        for (int a = 0; a < p->at[k].n_arg; a++)
            last[p->at[k].arg[a]] = k;
    for (int i = 0; i < p->n_ports; i++)
        place[i] = i;
    for (int k = 0; k < p->n; k++) {
        HnElementDo *i = &p->at[k];
        for (int a = 0; a < i->n_arg; a++) {
            const int v = i->arg[a];
            i->arg[a] = place[v];
            if (v >= p->n_ports && last[v] == k)
                taken[place[v] - p->n_ports] = FALSE;
        }
        int r = 0;
        while (k < p->n - 1 && taken[r])
            r++;
        taken[r] = TRUE;
        if (k < p->n - 1)
            p->n_registers = MAX(p->n_registers, r + 1);
        place[i->result] = p->n_ports + r;
        i->result = place[i->result];
    }
    p->at[p->n - 1].result = p->n_ports + p->n_registers;
}

static int add_group(Compiler *c)
{
    const HnGroup *g = c->s->group;
    g_autofree int *made = g_new0(int, (gsize)g->n);
    const int *from = g->from;
    for (int k = 0; k < g->n; k++) {
        int arg[HN_GROUP_INPUTS];
        for (guint i = 0; i < g->node[k]->in->len; i++, from++)
            arg[i] = *from == HN_GROUP_ABSENT ? -1 : *from >= 0 ? *from : made[-1 - *from];
        made[k] = add_node(c, g->node[k], arg);
    }
    return made[g->n - 1];
}

static int add_alone(Compiler *c)
{
    int arg[HN_GROUP_INPUTS];
    for (int i = 0; i < c->n_in; i++)
        arg[i] = c->s->in[i].slot != NULL ? i : -1;
    return add_node(c, c->s->node, arg);
}

HnElementProgram *hn_element_program_new(const HnStep *s)
{
    Compiler c = { .s = s, .n_in = s->n_in, .code = g_array_new(FALSE, FALSE, sizeof(HnElementDo)) };
    const int result = s->group != NULL ? add_group(&c) : add_alone(&c);
    if (c.code->len == 0 || result != c.n_in + (int)c.code->len - 1) /* a cast that does nothing */
        add_pair(&c, HN_DO_max, result, result);
    const int n_values = c.n_in + (int)c.code->len;
    HnElementProgram *p = g_new0(HnElementProgram, 1);
    p->n_ports = s->n_in;
    p->n = (int)c.code->len;
    p->at = (HnElementDo *)(void *)g_array_free(c.code, FALSE);
    for (int k = 0; k < p->n; k++)
        p->flops += p->at[k].n_arg == 1 ? 8 : 1;
    allot_registers(p, n_values);
    return p;
}

void hn_element_program_free(HnElementProgram *p)
{
    if (p != NULL)
        g_free(p->at);
    g_free(p);
}
