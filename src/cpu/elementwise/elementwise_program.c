#include "cpu/elementwise/elementwise_program.h"

#include <math.h>

#include "cpu/elementwise/broadcast.h"
#include "cpu/core/half_rows.h"
#include "cpu/elementwise/unary.h"
#include "op/activation.h"
#include "op/cast.h"

#define HN_LEVEL plain
#include "cpu/elementwise/elementwise_program_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/elementwise/elementwise_program_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/elementwise/elementwise_program_loops.h"
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

struct HnElementwise {
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

static const struct {
    const HnOp *op;
    HnRowFn rows[HN_LEVELS];
} truths[] = {
    { &hn_op_equal, HN_TABLE_OF_LEVELS(is_equal) },
    { &hn_op_greater, HN_TABLE_OF_LEVELS(is_greater) },
    { &hn_op_greaterorequal, HN_TABLE_OF_LEVELS(is_greaterorequal) },
    { &hn_op_less, HN_TABLE_OF_LEVELS(is_less) },
    { &hn_op_lessorequal, HN_TABLE_OF_LEVELS(is_lessorequal) },
    { &hn_op_and, HN_TABLE_OF_LEVELS(both) },
    { &hn_op_or, HN_TABLE_OF_LEVELS(either) },
    { &hn_op_xor, HN_TABLE_OF_LEVELS(one_of) },
};

/* Comparison or logic of two; NULL: something else. */
static HnRowFn truth_rows(const HnOp *op)
{
    guint i = 0;
    while (i < G_N_ELEMENTS(truths) && truths[i].op != op)
        i++;
    return i < G_N_ELEMENTS(truths) ? truths[i].rows[hn_cpu_level()] : NULL;
}

/* Of any number of operands: Max, Min, Sum. */
static gboolean any_count(const HnOp *op)
{
    return op->in[1] == '*';
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

gboolean hn_elementwise_takes(const HnNode *n, const HnType *const *in, HnTensor *const *known, const HnType *out)
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

/* --- registers -------------------------------------------------------------------------------------------------------
 */

/* Registers are taken again as soon as their numbers were read for the last time, by the same instruction even. */
static void allot_registers(HnElementwise *p, int n_values)
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

HnElementwise *hn_elementwise_new(const HnStep *s)
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
    HnElementwise *p = g_new0(HnElementwise, 1);
    p->n_ports = s->n_in;
    p->n = (int)c.code->len;
    p->at = (Instruction *)(void *)g_array_free(c.code, FALSE);
    for (int k = 0; k < p->n; k++)
        p->flops += p->at[k].unary.fn != NULL ? 8 : 1;
    allot_registers(p, n_values);
    return p;
}

void hn_elementwise_free(HnElementwise *p)
{
    if (p != NULL)
        g_free(p->at);
    g_free(p);
}

int hn_elementwise_registers(const HnElementwise *p)
{
    return p->n_registers;
}

double hn_elementwise_flops(const HnElementwise *p)
{
    return p->flops;
}

void hn_elementwise_run(const HnElementwise *p, float *const *at, const int *step, int64_t n)
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
