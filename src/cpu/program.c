#include "cpu/program.h"

#include <math.h>

#include "cpu/broadcast.h"
#include "cpu/half.h"
#include "cpu/unary.h"
#include "op/activation.h"
#include "op/cast.h"

#define HN_LEVEL plain
#include "cpu/program_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/program_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/program_loops.h"
#undef HN_LEVEL

typedef void (*ChooseFn)(float *z, const float *c, const float *x, const float *y, int64_t n, int sc, int sx, int sy);

/* One of the functions, on the operands that it takes. */
typedef struct {
    HnUnary unary; /* of arg[0] */
    HnRowFn row;   /* of arg[0] and arg[1] */
    ChooseFn choose;
    const HnOp *op; /* of which it is the whole */
    int n_arg, arg[3], result;
} Instruction;

struct HnProgram {
    int n, n_ports, n_registers;
    double flops;
    Instruction *at;
};

#define HERE(name) ((const __typeof__(&name##_plain)[])HN_TABLE_OF_LEVELS(name))[hn_cpu_level()]

/* --- what a program can have ---------------------------------------------------------------------------------------
 */

static gboolean is_number(HnDtype d)
{
    return d == HN_F32 || hn_dtype_is_half(d);
}

/* Comparison or logic of two. */
static HnRowFn truth_rows(const HnOp *op)
{
    return op == &hn_op_equal            ? HERE(is_equal)
           : op == &hn_op_greater        ? HERE(is_greater)
           : op == &hn_op_greaterorequal ? HERE(is_greaterorequal)
           : op == &hn_op_less           ? HERE(is_less)
           : op == &hn_op_lessorequal    ? HERE(is_lessorequal)
           : op == &hn_op_and            ? HERE(both)
           : op == &hn_op_or             ? HERE(either)
           : op == &hn_op_xor            ? HERE(one_of)
                                         : NULL;
}

static gboolean any_count(const HnOp *op)
{
    return op == &hn_op_max || op == &hn_op_min;
}

/* Operators of old opsets lay the second operand against other axes. */
static gboolean old_broadcast(const HnNode *n, const HnType *const *in)
{
    return n->version < 7 && n->in->len == 2 && !any_count(n->op) && !hn_type_equal(in[0], in[1]);
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

gboolean hn_program_takes(const HnNode *n, const HnType *const *in, HnTensor *const *known, const HnType *out)
{
    HnOperand operand[HN_GROUP_INPUTS] = { { 0 } };
    HnUnary u;
    const int n_in = (int)n->in->len;
    if (n_in < 1 || in[0] == NULL || out->rank > HN_MAX_RANK)
        return FALSE;
    if (n->op == &hn_op_cast)
        return takes_cast(in[0], out);
    if (!is_number(out->dtype) && out->dtype != HN_BOOL)
        return FALSE;
    for (int i = 0; i < n_in; i++) {
        operand[i] = (HnOperand){ .known = known[i], .present = in[i] != NULL };
        if (in[i] != NULL && !is_number(in[i]->dtype) && in[i]->dtype != HN_BOOL)
            return FALSE;
    }
    if (n->op == &hn_op_not || (is_number(out->dtype) && hn_unary_of(n->op, n->params, operand, n_in, &u) == NULL))
        return in[0]->rank == out->rank && hn_type_count(in[0]) == hn_type_count(out);
    for (int i = 1; i < n_in; i++)
        if (in[i] == NULL && n->op != &hn_op_clip)
            return FALSE;
    if (old_broadcast(n, in))
        return FALSE;
    if (n->op == &hn_op_where)
        return n_in == 3 && is_number(out->dtype);
    if (n->op == &hn_op_clip)
        return TRUE;
    if (n_in == 2 && truth_rows(n->op) != NULL)
        return TRUE;
    return is_number(out->dtype) && hn_broadcast_rows(n->op, HN_F32) != NULL &&
           (n_in == 2 || (n_in > 2 && any_count(n->op)));
}

/* --- instructions, each with a result of its own --------------------------------------------------------------------
 */

typedef struct {
    const HnStep *s;
    GArray *code; /* Instruction: the result of number i is operand n_in + i */
    int n_in;
} Compiler;

static Instruction *code_at(const Compiler *c, int operand)
{
    return operand < c->n_in ? NULL : &g_array_index(c->code, Instruction, operand - c->n_in);
}

static int add(Compiler *c, Instruction i)
{
    i.result = c->n_in + (int)c->code->len;
    g_array_append_val(c->code, i);
    return i.result;
}

static int add_row(Compiler *c, const HnOp *op, HnRowFn row, int left, int right)
{
    return add(c, (Instruction){ .row = row, .op = op, .n_arg = 2, .arg = { left, right } });
}

static int add_unary(Compiler *c, const HnOp *op, HnUnary u, int x)
{
    return add(c, (Instruction){ .unary = u, .op = op, .n_arg = 1, .arg = { x } });
}

/* Number of a constant port of one element. */
static gboolean constant_number(const Compiler *c, int operand, double *v)
{
    const HnSlot *slot = operand < c->n_in ? c->s->in[operand].slot : NULL;
    if (slot == NULL || !slot->constant || slot->tensor->n != 1)
        return FALSE;
    *v = hn_tensor_get_f64(slot->tensor, 0);
    return TRUE;
}

static gboolean is_truth(const Compiler *c, int operand)
{
    const Instruction *i = code_at(c, operand);
    return i == NULL ? c->s->in[operand].slot->tensor->dtype == HN_BOOL
                     : i->op == &hn_op_not || i->op == &hn_op_cast || truth_rows(i->op) != NULL;
}

static int add_cast(Compiler *c, const HnNode *n, int x)
{
    const HnCast *p = n->params;
    if (p->to == HN_BOOL && !is_truth(c, x))
        return add_unary(c, n->op, (HnUnary){ HERE(truth), 0, 0 }, x);
    return x; /* f32 already: ports are converted on the way in */
}

/* Clip by bounds that are no constants. */
static int add_clip(Compiler *c, const HnNode *n, const int *arg, int n_in)
{
    int y = arg[0];
    if (n_in > 1 && arg[1] >= 0)
        y = add_row(c, n->op, hn_broadcast_rows(&hn_op_max, HN_F32), y, arg[1]);
    if (n_in > 2 && arg[2] >= 0)
        y = add_row(c, n->op, hn_broadcast_rows(&hn_op_min, HN_F32), y, arg[2]);
    return y;
}

/* One node, whose inputs are the operands arg; -1: absent. */
static int add_node(Compiler *c, const HnNode *n, const int *arg)
{
    const int n_in = (int)n->in->len;
    HnOperand operand[HN_GROUP_INPUTS] = { { 0 } };
    HnUnary u;
    for (int i = 0; i < n_in; i++) {
        const HnSlot *slot = arg[i] >= 0 && arg[i] < c->n_in ? c->s->in[arg[i]].slot : NULL;
        operand[i] =
            (HnOperand){ .known = slot != NULL && slot->constant ? slot->tensor : NULL, .present = arg[i] >= 0 };
    }
    if (n->op == &hn_op_cast)
        return add_cast(c, n, arg[0]);
    if (n->op == &hn_op_not)
        return add_unary(c, n->op, (HnUnary){ HERE(negate), 0, 0 }, arg[0]);
    if (n->op == &hn_op_where)
        return add(c,
                   (Instruction){ .choose = HERE(choose), .op = n->op, .n_arg = 3, .arg = { arg[0], arg[1], arg[2] } });
    if (truth_rows(n->op) != NULL)
        return add_row(c, n->op, truth_rows(n->op), arg[0], arg[1]);
    if (hn_unary_of(n->op, n->params, operand, n_in, &u) == NULL)
        return add_unary(c, n->op, u, arg[0]);
    if (n->op == &hn_op_clip)
        return add_clip(c, n, arg, n_in);
    int y = arg[0];
    for (int i = 1; i < n_in; i++)
        y = add_row(c, n->op, hn_broadcast_rows(n->op, HN_F32), y, arg[i]);
    return y;
}

/* --- what is written as several nodes and is one function
 * -------------------------------------------------------------
 */

#define MOST_FACTORS 6

/* A product as numbers and operands that are no products. */
typedef struct {
    double number;
    int n, factor[MOST_FACTORS];
} Product;

/* FALSE: too many factors. */
static gboolean factors_of(const Compiler *c, int operand, Product *p)
{
    double v;
    const Instruction *i = code_at(c, operand);
    if (constant_number(c, operand, &v)) {
        p->number *= v;
        return TRUE;
    }
    if (i != NULL && i->op == &hn_op_mul)
        return factors_of(c, i->arg[0], p) && factors_of(c, i->arg[1], p);
    if (i != NULL && i->op == &hn_op_div && constant_number(c, i->arg[1], &v)) {
        p->number /= v;
        return factors_of(c, i->arg[0], p);
    }
    int times = 1;
    if (i != NULL && i->op == &hn_op_pow && i->n_arg == 1 && (i->unary.a == 2 || i->unary.a == 3)) {
        times = (int)i->unary.a;
        operand = i->arg[0];
    }
    for (int k = 0; k < times; k++) {
        if (p->n == MOST_FACTORS)
            return FALSE;
        p->factor[p->n++] = operand;
    }
    return TRUE;
}

static gboolean product_of(const Compiler *c, int operand, Product *p)
{
    *p = (Product){ .number = 1 };
    return factors_of(c, operand, p);
}

static gboolean near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* Is operand v + w? Then in either order: *other is w. */
static gboolean sum_with(const Compiler *c, int operand, int v, int *other)
{
    const Instruction *i = code_at(c, operand);
    if (i == NULL || i->op != &hn_op_add || (i->arg[0] != v && i->arg[1] != v))
        return FALSE;
    *other = i->arg[0] == v ? i->arg[1] : i->arg[0];
    return TRUE;
}

static gboolean sum_with_one(const Compiler *c, int operand, int *other)
{
    const Instruction *i = code_at(c, operand);
    for (int k = 0; i != NULL && i->op == &hn_op_add && k < 2; k++) {
        double v;
        if (constant_number(c, i->arg[k], &v) && v == 1) {
            *other = i->arg[1 - k];
            return TRUE;
        }
    }
    return FALSE;
}

/* p is number * x^times */
static gboolean is_power(const Product *p, double number, int x, int times)
{
    for (int k = 0; k < p->n; k++)
        if (p->factor[k] != x)
            return FALSE;
    return p->n == times && near(p->number, number);
}

/* sqrt(2 / pi) (x + 0.044715 x^3), or with x taken out of the brackets */
static gboolean is_tanh_argument(const Compiler *c, int operand, int x)
{
    Product p, q;
    int other;
    if (!product_of(c, operand, &p) || !near(p.number, sqrt(2 / G_PI)) || p.n < 1 || p.n > 2)
        return FALSE;
    if (p.n == 1)
        return sum_with(c, p.factor[0], x, &other) && product_of(c, other, &q) && is_power(&q, 0.044715, x, 3);
    const int k = p.factor[0] == x ? 1 : 0;
    return p.factor[1 - k] == x && sum_with_one(c, p.factor[k], &other) && product_of(c, other, &q) &&
           is_power(&q, 0.044715, x, 2);
}

/* x / 2 (1 + erf(x / sqrt(2))), or the same with tanh for erf: what function it is. */
static gboolean is_gelu(const Compiler *c, const Product *p, int x, int rest, HnUnary *u)
{
    int bent;
    Product q;
    if (!near(p->number, 0.5) || !sum_with_one(c, rest, &bent) || code_at(c, bent) == NULL)
        return FALSE;
    const Instruction *i = code_at(c, bent);
    HnActivation gelu = { .tanh = i->op == &hn_op_tanh };
    if (i->op == &hn_op_erf ? !product_of(c, i->arg[0], &q) || !is_power(&q, sqrt(0.5), x, 1)
                            : !gelu.tanh || !is_tanh_argument(c, i->arg[0], x))
        return FALSE;
    return hn_unary_of(&hn_op_gelu, &gelu, NULL, 0, u) == NULL;
}

/* x sigmoid(a x) */
static gboolean is_swish(const Compiler *c, const Product *p, int x, int rest, HnUnary *u)
{
    Product q;
    const Instruction *i = code_at(c, rest);
    if (p->number != 1 || i == NULL || i->op != &hn_op_sigmoid || !product_of(c, i->arg[0], &q) || q.n != 1 ||
        q.factor[0] != x)
        return FALSE;
    HnActivation swish = { .a = q.number };
    return hn_unary_of(&hn_op_swish, &swish, NULL, 0, u) == NULL;
}

/* Instruction i, a product, as a function of one of its factors. */
static void simplify(const Compiler *c, Instruction *i)
{
    Product p;
    HnUnary u;
    if (i->op != &hn_op_mul || !product_of(c, i->result, &p) || p.n != 2)
        return;
    for (int k = 0; k < 2; k++) {
        const int x = p.factor[k], rest = p.factor[1 - k];
        if (is_gelu(c, &p, x, rest, &u) || is_swish(c, &p, x, rest, &u)) {
            *i = (Instruction){ .unary = u, .op = &hn_op_gelu, .n_arg = 1, .arg = { x }, .result = i->result };
            return;
        }
    }
}

/* --- registers -------------------------------------------------------------------------------------------------------
 */

static void drop_unread(GArray *code, int n_in)
{
    g_autofree gboolean *read = g_new0(gboolean, (gsize)n_in + code->len);
    read[n_in + (int)code->len - 1] = TRUE;
    for (int k = (int)code->len - 1; k >= 0; k--) {
        const Instruction *i = &g_array_index(code, Instruction, k);
        for (int a = 0; a < i->n_arg && read[i->result]; a++)
            read[i->arg[a]] = TRUE;
    }
    for (int k = (int)code->len - 1; k >= 0; k--)
        if (!read[g_array_index(code, Instruction, k).result])
            g_array_remove_index(code, (guint)k);
}

/* Registers are taken again as soon as their numbers were read for the last time, by the same instruction even. */
static void allot_registers(HnProgram *p, int n_values)
{
    g_autofree int *last = g_new0(int, (gsize)n_values), *place = g_new0(int, (gsize)n_values);
    g_autofree gboolean *taken = g_new0(gboolean, (gsize)p->n + 1);
    for (int k = 0; k < p->n; k++)
        for (int a = 0; a < p->at[k].n_arg; a++)
            last[p->at[k].arg[a]] = k;
    for (int i = 0; i < p->n_ports; i++)
        place[i] = i;
    for (int k = 0; k < p->n; k++) {
        Instruction *i = &p->at[k];
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

HnProgram *hn_program_new(const HnStep *s)
{
    const HnGroup *g = s->group;
    Compiler c = { .s = s, .n_in = s->n_in, .code = g_array_new(FALSE, FALSE, sizeof(Instruction)) };
    g_autofree int *made = g_new0(int, (gsize)g->n);
    const int *from = g->from;
    for (int k = 0; k < g->n; k++) {
        int arg[HN_GROUP_INPUTS];
        for (guint i = 0; i < g->node[k]->in->len; i++, from++)
            arg[i] = *from == HN_GROUP_ABSENT ? -1 : *from >= 0 ? *from : made[-1 - *from];
        made[k] = add_node(&c, g->node[k], arg);
    }
    const int result = made[g->n - 1];
    if (c.code->len == 0 || result != c.n_in + (int)c.code->len - 1) /* a cast that does nothing */
        add_row(&c, &hn_op_cast, hn_broadcast_rows(&hn_op_max, HN_F32), result, result);
    const int n_values = c.n_in + (int)c.code->len;
    for (guint k = 0; k < c.code->len; k++)
        simplify(&c, &g_array_index(c.code, Instruction, k));
    drop_unread(c.code, c.n_in);
    HnProgram *p = g_new0(HnProgram, 1);
    p->n_ports = s->n_in;
    p->n = (int)c.code->len;
    p->at = (Instruction *)(void *)g_array_free(c.code, FALSE);
    for (int k = 0; k < p->n; k++)
        p->flops += p->at[k].unary.fn != NULL ? 8 : 1;
    allot_registers(p, n_values);
    return p;
}

void hn_program_free(HnProgram *p)
{
    if (p != NULL)
        g_free(p->at);
    g_free(p);
}

int hn_program_registers(const HnProgram *p)
{
    return p->n_registers;
}

double hn_program_flops(const HnProgram *p)
{
    return p->flops;
}

void hn_program_run(const HnProgram *p, float *const *at, const int *step, int64_t n)
{
    for (int k = 0; k < p->n; k++) {
        const Instruction *i = &p->at[k];
        float *z = at[i->result];
        const float *x = at[i->arg[0]];
        if (i->row != NULL)
            i->row(z, x, at[i->arg[1]], n, step[i->arg[0]], step[i->arg[1]]);
        else if (i->unary.fn != NULL)
            i->unary.fn(x, z, n, i->unary.a, i->unary.b);
        else
            i->choose(z, x, at[i->arg[1]], at[i->arg[2]], n, step[i->arg[0]], step[i->arg[1]], step[i->arg[2]]);
    }
}
