/*
 * Element-wise steps as programs that one kernel interprets: groups, and single nodes whose elements are floats or
 * truth values. Numbers are f32 in between, and rounded once. The most usual functions have a kernel of their own for
 * elements that lie side by side.
 */
#include "cuda/elementwise/cuda_elements.h"

#include <string.h>

#include "cuda/elementwise/cuda_elements_args.h"
#include "cuda/elementwise/cuda_map_args.h"
#include "cuda/elementwise/cuda_view.h"
#include "cuda/elementwise/cuda_walk.h"
#include "op/index.h"
#include "op/ops.h"
#include "run/element_program.h"

#define THREADS 256
#define SHARED (48 << 10)
#define NUMBERS (4 * HN_CUDA_QUADS) /* of a thread */
#define REGISTER_BYTES (NUMBERS * (int)sizeof(float))

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    int n_in;
    void *many; /* on the device; NULL: the table is in `few` */
    HnCudaFewArgs few;
    HnCuFunction map; /* NULL: there is none */
    HnCudaGrid map_grid;
    HnCudaMapArgs map_args;
    int map_port[2]; /* what its operands are */
} Elements;

/* --- the table ---------------------------------------------------------------------------------------------------- */

static int type_of(HnDtype d)
{
    switch (d) {
    case HN_F32:
        return HN_CUDA_F32;
    case HN_F16:
        return HN_CUDA_F16;
    case HN_BF16:
        return HN_CUDA_BF16;
    case HN_F64:
        return HN_CUDA_F64;
    case HN_BOOL:
        return HN_CUDA_BOOL;
    case HN_U8:
        return HN_CUDA_U8;
    case HN_I8:
        return HN_CUDA_I8;
    case HN_I32:
        return HN_CUDA_I32;
    default:
        return HN_CUDA_I64;
    }
}

/* Ports that an instruction reads, each once. */
static int ports_of(const HnElementProgram *p, int k, int *ports)
{
    const HnElementDo *d = &p->at[k];
    int n = 0;
    for (int a = 0; a < d->n_arg; a++) {
        gboolean fresh = d->arg[a] < p->n_ports;
        for (int i = 0; i < n && fresh; i++)
            fresh = ports[i] != d->arg[a];
        if (fresh)
            ports[n++] = d->arg[a];
    }
    return n;
}

static gboolean reads(const HnElementProgram *p, int k, int operand)
{
    const HnElementDo *d = &p->at[k];
    for (int a = 0; a < d->n_arg; a++)
        if (d->arg[a] == operand)
            return TRUE;
    return FALSE;
}

/* Somebody reads the result of instruction k from its register: not the next one at once. */
static gboolean is_kept(const HnElementProgram *p, int k)
{
    const int result = p->at[k].result;
    int ports[3];
    for (int i = k + 1; i < p->n; i++) {
        if (reads(p, i, result) && (i > k + 1 || ports_of(p, i, ports) > 1))
            return TRUE;
        if (p->at[i].result == result)
            return FALSE;
    }
    return FALSE;
}

/* Instruction k. It loads its last port itself; one before that is loaded as the result that it finds, and another one
 * into a register behind those of the program: how many of these there are. */
static int write_instruction(HnCudaMany *t, const HnElementProgram *p, int k)
{
    const HnElementDo *d = &p->at[k];
    int ports[3];
    const int n = ports_of(p, k, ports);
    for (int i = 0; i < n - 1; i++)
        t->code[t->n++] = (HnCudaDo){
            .code = HN_CUDA_LOADS,
            .port = (uint8_t)ports[i],
            .keep = n == 3 && i == 0 ? (uint8_t)p->n_registers : HN_CUDA_NONE,
            .arg = { HN_CUDA_LOADED, HN_CUDA_NONE, HN_CUDA_NONE },
        };
    HnCudaDo *c = &t->code[t->n++];
    *c = (HnCudaDo){ .code = (uint8_t)d->fn.code, .a = d->fn.a, .b = d->fn.b };
    c->port = n > 0 ? (uint8_t)ports[n - 1] : HN_CUDA_NONE;
    c->keep = is_kept(p, k) ? (uint8_t)(d->result - p->n_ports) : HN_CUDA_NONE;
    for (int a = 0; a < 3; a++) {
        const int operand = a < d->n_arg ? d->arg[a] : -1;
        if (operand < 0)
            c->arg[a] = HN_CUDA_NONE;
        else if (n > 0 && operand == ports[n - 1])
            c->arg[a] = HN_CUDA_LOADED;
        else if (n > 1 && operand == ports[n - 2])
            c->arg[a] = HN_CUDA_RESULT;
        else if (operand < p->n_ports)
            c->arg[a] = (uint8_t)p->n_registers;
        else if (n <= 1 && k > 0 && operand == p->at[k - 1].result)
            c->arg[a] = HN_CUDA_RESULT;
        else
            c->arg[a] = (uint8_t)(operand - p->n_ports);
    }
    return n == 3;
}

/* Where the table has these strides; `*used` of it are taken. */
static int place_strides(HnCudaMany *t, const int64_t *strides, int *used)
{
    const int ndim = t->shape.ndim;
    int at = 0;
    while (at < *used && memcmp(t->stride + at, strides, (gsize)ndim * sizeof *strides) != 0)
        at += ndim;
    if (at == *used) {
        memcpy(t->stride + at, strides, (gsize)ndim * sizeof *strides);
        *used += ndim;
    }
    return at;
}

/* Operands of the program as they lie under the result: how many strides there are. */
static int write_ports(HnCudaMany *t, const HnStep *s, const HnCudaView *v)
{
    HnTensor *const *x = v->x;
    g_autofree HnCudaSeen *seen = g_new0(HnCudaSeen, (gsize)s->n_in);
    HnCudaWalk w;
    int used = 0;
    hn_cuda_walk(&w, seen, v->z, (const HnTensor *const *)x, s->n_in);
    t->shape = w.shape;
    memcpy(t->axis, w.axis, sizeof t->axis);
    for (int i = 0; i < s->n_in; i++) {
        t->port[i].kind = (uint8_t)seen[i].kind;
        t->port[i].type = (uint8_t)type_of(x[i] != NULL ? x[i]->dtype : HN_F32);
        if (seen[i].kind == HN_CUDA_STRIDED)
            t->port[i].stride = (uint16_t)place_strides(t, seen[i].stride, &used);
    }
    return used;
}

static void mark_unread(const HnElementProgram *p, HnStep *s)
{
    for (int i = 0; i < s->n_in; i++) {
        gboolean read = FALSE;
        for (int k = 0; k < p->n && !read; k++)
            read = reads(p, k, i);
        s->in[i].unread = !read && s->in[i].slot != NULL;
    }
}

/* The table where it is small enough for the kernel's arguments. */
static gboolean take_few(HnCudaFew *few, const HnCudaMany *t, int n_in, int strides)
{
    if (n_in > HN_CUDA_FEW_PORTS || t->n > HN_CUDA_FEW_CODES || t->shape.ndim > HN_CUDA_FEW_AXES ||
        strides > HN_CUDA_FEW_STRIDES)
        return FALSE;
    few->shape = t->shape;
    few->n = t->n;
    few->type = t->type;
    memcpy(few->port, t->port, (gsize)n_in * sizeof t->port[0]);
    memcpy(few->code, t->code, (gsize)t->n * sizeof t->code[0]);
    memcpy(few->axis, t->axis, (gsize)t->shape.ndim * sizeof t->axis[0]);
    memcpy(few->stride, t->stride, (gsize)strides * sizeof t->stride[0]);
    return TRUE;
}

/* --- one function ------------------------------------------------------------------------------------------------- */

/* The kernel of one function; its operands. NULL: there is none. */
static const char *map_of(HnElementCode code, int *operands)
{
    *operands = 2;
    switch ((int)code) {
#define CASE(name) case HN_DO_##name:
        HN_CUDA_MAPS_OF_TWO(CASE)
        return "map_two";
        HN_CUDA_LONG_MAPS_OF_TWO(CASE)
        return "map_long_two";
    default:
        *operands = 1;
    }
    switch ((int)code) {
        HN_CUDA_MAPS(CASE)
        return "map_one";
        HN_CUDA_LONG_MAPS(CASE)
        return "map_long_one";
#undef CASE
    default:
        return NULL;
    }
}

/* How an operand lies under the result, by packs of elements. FALSE: in a way that those kernels do not know. */
static gboolean source_of(const HnCudaMany *t, int port, HnDtype type, HnCudaMapSource *from)
{
    const int64_t each = HN_CUDA_MAP_BYTES / (int64_t)hn_dtype_size(type), *stride = t->stride + t->port[port].stride;
    const int last = t->shape.ndim - 1;
    *from = (HnCudaMapSource){ HN_CUDA_MAP_DENSE, hn_divisor(1), hn_divisor(1) };
    if (t->port[port].kind != HN_CUDA_STRIDED) {
        from->kind = t->port[port].kind == HN_CUDA_NUMBER ? HN_CUDA_MAP_NUMBER : HN_CUDA_MAP_DENSE;
        return TRUE;
    }
    const int channels = stride[last] == 0 ? last - 1 : last;
    if (channels < 0 || channels > 1 || stride[channels] != 1 || (channels == 1 && stride[0] != 0))
        return FALSE;
    if (t->axis[last].n % each != 0 || t->shape.total / each >= HN_DIVIDE_LIMIT)
        return FALSE;
    from->kind = channels == last ? HN_CUDA_MAP_ROW : HN_CUDA_MAP_CHANNEL;
    if (channels == last)
        from->n = hn_divisor(t->axis[last].n / each);
    else {
        from->run = hn_divisor(t->axis[last].n / each);
        from->n = hn_divisor(t->axis[channels].n);
    }
    return TRUE;
}

static gboolean choose_map(HnStep *s, const HnElementProgram *p, const HnCudaMany *t, const HnTensor *z, GError **error)
{
    Elements *e = s->state;
    const HnElementDo *d = &p->at[0];
    int n = 0;
    const char *name = p->n == 1 && z->n > 0 && hn_cuda_is_float(z->dtype) ? map_of(d->fn.code, &n) : NULL;
    if (name == NULL || n != d->n_arg)
        return TRUE;
    e->map_args = (HnCudaMapArgs){ .n = z->n, .code = (int32_t)d->fn.code, .a = d->fn.a, .b = d->fn.b };
    for (int a = 0; a < n; a++) {
        const int port = d->arg[a];
        if (port >= p->n_ports || hn_cuda_in(s, port)->dtype != z->dtype ||
            !source_of(t, port, z->dtype, &e->map_args.from[a]))
            return TRUE;
        e->map_port[a] = port;
    }
    const int64_t packs = z->n * (int64_t)hn_dtype_size(z->dtype) / (HN_CUDA_MAP_BYTES * HN_CUDA_MAP_TIMES);
    e->map_grid = hn_cuda_spread(s, packs + 1, HN_CUDA_MAP_THREADS);
    e->map = hn_cuda_typed(s, "cuda_map", name, z->dtype, error);
    return e->map != NULL;
}

/* Operands lie as the kernel of one function wants them. */
static gboolean map_fits(const HnStep *s)
{
    const Elements *e = s->state;
    uint64_t bits = hn_cuda_out_address(s, 0);
    if (e->map == NULL)
        return FALSE;
    for (int a = 0; a < 2; a++)
        if (e->map_args.from[a].kind == HN_CUDA_MAP_DENSE || e->map_args.from[a].kind == HN_CUDA_MAP_ROW)
            bits |= hn_cuda_in_address(s, e->map_port[a]);
    return bits % HN_CUDA_MAP_BYTES == 0;
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

static gboolean send_many(HnStep *s, const HnCudaMany *t, GError **error)
{
    const HnMemory *memory = &hn_cuda_memory;
    Elements *e = s->state;
    e->many = memory->alloc(s->device, sizeof *t, error);
    return e->many != NULL && memory->upload(s->stream, e->many, t, sizeof *t, error);
}

static gboolean elements_prepare(HnStep *s, GError **error)
{
    Elements *e = g_new0(Elements, 1);
    s->state = e;
    g_autofree HnCudaMany *t = g_new0(HnCudaMany, 1);
    HnElementProgram *p = hn_element_program_new(s);
    int registers = p->n_registers, spare = 0;
    mark_unread(p, s);
    for (int k = 0; k < p->n; k++) {
        const int more = write_instruction(t, p, k);
        spare = MAX(spare, more);
    }
    registers += spare;
    HnCudaView *v = hn_cuda_view_new(s);
    const int strides = write_ports(t, s, v);
    const gboolean chosen = choose_map(s, p, t, v->z, error);
    hn_cuda_view_free(v);
    hn_element_program_free(p);
    if (!chosen)
        return FALSE;
    t->type = type_of(hn_cuda_out(s, 0)->dtype);
    e->n_in = s->n_in;
    int threads = THREADS;
    while (registers * threads * REGISTER_BYTES > SHARED)
        threads /= 2;
    e->grid = hn_cuda_spread(s, t->shape.total / NUMBERS + 1, threads);
    e->grid.shared = (gsize)registers * (gsize)e->grid.block[0] * REGISTER_BYTES;
    const gboolean few = take_few(&e->few.table, t, s->n_in, strides);
    e->f = hn_cuda_named(s, "cuda_elements", few ? "elements_few" : "elements_many", error);
    return e->f != NULL && (few || send_many(s, t, error));
}

static gboolean elements_run(HnStep *s, GError **error)
{
    const Elements *e = s->state;
    const uint64_t z = hn_cuda_out_address(s, 0);
    if (hn_cuda_out(s, 0)->n == 0)
        return TRUE;
    if (map_fits(s)) {
        HnCudaMapArgs a = e->map_args;
        a.z = z;
        a.x = hn_cuda_in_address(s, e->map_port[0]);
        a.y = hn_cuda_in_address(s, e->map_port[1]);
        return hn_cuda_launch(s, e->map, e->map_grid, &a, error);
    }
    if (e->many != NULL) {
        HnCudaManyArgs a = { .z = z, .table = (uint64_t)(uintptr_t)e->many };
        for (int i = 0; i < e->n_in; i++)
            a.x[i] = hn_cuda_in_address(s, i);
        return hn_cuda_launch(s, e->f, e->grid, &a, error);
    }
    HnCudaFewArgs a = e->few;
    a.z = z;
    for (int i = 0; i < e->n_in; i++)
        a.x[i] = hn_cuda_in_address(s, i);
    return hn_cuda_launch(s, e->f, e->grid, &a, error);
}

static void elements_release(HnStep *s)
{
    Elements *e = s->state;
    if (e != NULL && e->many != NULL)
        hn_cuda_memory.free(s->device, e->many);
    hn_cuda_release(s);
}

const HnKernel hn_cuda_group = {
    .name = "cuda.group",
    .prepare = elements_prepare,
    .run = elements_run,
    .release = elements_release,
    .inplace = TRUE,
};

/* --- single nodes ------------------------------------------------------------------------------------------------- */

static gboolean same_count(const HnStep *s)
{
    return hn_cuda_in(s, 0)->n == hn_cuda_out(s, 0)->n;
}

/* A function of one number, SwiGLU, or Max, Min or Sum of one tensor. */
static gboolean is_function(const HnStep *s, const HnOperand *in)
{
    const HnTensor *x = hn_cuda_in(s, 0), *z = hn_cuda_out(s, 0);
    HnElementFn f;
    if (!hn_cuda_is_float(x->dtype) || x->dtype != z->dtype || !same_count(s))
        return FALSE;
    return s->op == &hn_op_swiglu || (s->n_in == 1 && s->op->in[1] == '*') ||
           hn_element_fn(s->op, s->params, in, s->n_in, &f) == NULL;
}

static gboolean takes(const HnStep *s, const HnOperand *in)
{
    HnType *type[HN_GROUP_INPUTS] = { NULL };
    HnTensor *known[HN_GROUP_INPUTS] = { NULL };
    g_autoptr(HnType) out = hn_type_of(hn_cuda_out(s, 0));
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cuda_in(s, i);
        type[i] = x != NULL ? hn_type_of(x) : NULL;
        known[i] = (HnTensor *)in[i].known;
    }
    const gboolean taken = hn_element_takes(s->node, (const HnType *const *)type, known, out);
    for (int i = 0; i < s->n_in; i++)
        g_clear_pointer(&type[i], hn_type_unref);
    return taken;
}

static const char *elements_reject(const HnStep *s)
{
    HnOperand in[HN_GROUP_INPUTS] = { { 0 } };
    if (s->n_in > HN_GROUP_INPUTS)
        return "more than 8 inputs";
    for (int i = 0; i < s->n_in; i++) {
        const HnSlot *slot = s->in[i].slot;
        in[i] = (HnOperand){ slot != NULL && slot->constant ? slot->tensor : NULL, slot != NULL };
        if (slot != NULL && !hn_broadcasts_to(slot->tensor, hn_cuda_out(s, 0)))
            return "an input that does not broadcast as numpy's";
    }
    if (s->op == &hn_op_sum && s->n_in > 2)
        return "more than 2 inputs, the sum of which is rounded once";
    return is_function(s, in) || takes(s, in) ? NULL : "a type that is neither a float nor bool";
}

const HnKernel hn_cuda_elements = {
    .name = "cuda.elements",
    .reject = elements_reject,
    .prepare = elements_prepare,
    .run = elements_run,
    .release = elements_release,
    .inplace = TRUE,
};

#define KERNELS(symbol) const HnKernel *const hn_cuda_##symbol[] = { &hn_cuda_elements, NULL };
KERNELS(abs)
KERNELS(acos)
KERNELS(acosh)
KERNELS(asin)
KERNELS(asinh)
KERNELS(atan)
KERNELS(atanh)
KERNELS(ceil)
KERNELS(celu)
KERNELS(clip)
KERNELS(cos)
KERNELS(cosh)
KERNELS(elu)
KERNELS(erf)
KERNELS(exp)
KERNELS(floor)
KERNELS(gelu)
KERNELS(gelugrad)
KERNELS(hardsigmoid)
KERNELS(hardswish)
KERNELS(leakyrelu)
KERNELS(log)
KERNELS(mish)
KERNELS(neg)
KERNELS(prelu)
KERNELS(pow)
KERNELS(reciprocal)
KERNELS(relu)
KERNELS(round)
KERNELS(selu)
KERNELS(shrink)
KERNELS(sigmoid)
KERNELS(sign)
KERNELS(sin)
KERNELS(sinh)
KERNELS(softplus)
KERNELS(softsign)
KERNELS(sqrt)
KERNELS(swiglu)
KERNELS(swish)
KERNELS(tan)
KERNELS(tanh)
KERNELS(thresholdedrelu)
KERNELS(and)
KERNELS(or)
KERNELS(xor)
KERNELS(not )
