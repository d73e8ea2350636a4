#include "cpu/elementwise/elementwise_program.h"

#include "cpu/elementwise/broadcast.h"
#include "cpu/elementwise/unary.h"

#define HN_LOOPS "cpu/elementwise/elementwise_program_loops.h"
#include "base/every_level.h"

typedef void (*ChooseFn)(float *z, const float *c, const float *x, const float *y, int64_t n, int sc, int sx, int sy);

/* One of the functions, on the operands that it takes. */
typedef struct {
    HnUnary unary; /* of arg[0] */
    HnRowFn row;   /* of arg[0] and arg[1] */
    ChooseFn choose;
    const int *arg;
    int result;
} Instruction;

struct HnElementwise {
    HnElementProgram *program;
    Instruction at[]; /* program->n */
};

#define HERE(name) ((const __typeof__(&name##_plain)[])HN_TABLE_OF_LEVELS(name))[hn_cpu_level()]

/* The loops of an instruction. */
static Instruction loops_of(const HnElementDo *i)
{
#define HN_TRUTH_OF(name) [HN_DO_##name] = HN_TABLE_OF_LEVELS(name),
    static const HnUnaryFn truths_of[HN_DO_CODES][HN_LEVELS] = {
#include "run/element_codes.def"
    };
#define HN_TRUTH_PAIR(name) [HN_DO_##name] = HN_TABLE_OF_LEVELS(name),
    static const HnRowFn truth_pairs[HN_DO_CODES][HN_LEVELS] = {
#include "run/element_codes.def"
    };
    Instruction to = { .arg = i->arg, .result = i->result };
    const HnElementCode code = i->fn.code;
    if (code == HN_DO_choose)
        to.choose = HERE(choose);
    else if (i->n_arg == 2)
        to.row = truth_pairs[code][0] != NULL ? truth_pairs[code][hn_cpu_level()] : hn_broadcast_pair(code);
    else if (truths_of[code][0] != NULL)
        to.unary.fn = truths_of[code][hn_cpu_level()];
    else
        to.unary = hn_unary_fn(&i->fn);
    return to;
}

HnElementwise *hn_elementwise_new(const HnStep *s)
{
    HnElementProgram *program = hn_element_program_new(s);
    HnElementwise *p = g_malloc0(sizeof *p + (gsize)program->n * sizeof p->at[0]);
    p->program = program;
    for (int k = 0; k < program->n; k++)
        p->at[k] = loops_of(&program->at[k]);
    return p;
}

void hn_elementwise_free(HnElementwise *p)
{
    if (p != NULL)
        hn_element_program_free(p->program);
    g_free(p);
}

int hn_elementwise_registers(const HnElementwise *p)
{
    return p->program->n_registers;
}

double hn_elementwise_flops(const HnElementwise *p)
{
    return p->program->flops;
}

void hn_elementwise_run(const HnElementwise *p, float *const *at, const int *step, int64_t n)
{
    for (int k = 0; k < p->program->n; k++) {
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
