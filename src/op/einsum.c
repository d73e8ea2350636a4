/*
 * Einsum: sums of products over named dimensions. The equation is parsed once when the node is bound; the reference
 * contracts operands from left to right, each step a matrix product of stacks.
 */
#include "op/einsum.h"
#include "op/tape.h"

#include <string.h>

#include "op/gemm.h"
#include "op/index.h"
#include "op/types.h"

/* One term: up to ',' or "->" or the end; *s moves on. */
static gboolean parse_term(HnBind *b, const char **s, HnEinsumTerm *t)
{
    for (;; (*s)++) {
        char c = **s;
        int label;
        if (c == ' ')
            continue;
        if (c == 0 || c == ',' || c == '-')
            return TRUE;
        if (c >= 'A' && c <= 'Z') {
            label = c - 'A';
        } else if (c >= 'a' && c <= 'z') {
            label = 26 + c - 'a';
        } else if (strncmp(*s, "...", 3) == 0 && !t->ellipsis) {
            label = HN_EINSUM_ELLIPSIS;
            t->ellipsis = TRUE;
            *s += 2;
        } else {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'equation' has an unexpected '%c'",
                         g_ascii_isprint(c) ? c : '?');
            return FALSE;
        }
        if (t->n == HN_EINSUM_TERM) {
            hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "a term of attribute 'equation' has more than %d letters",
                         HN_EINSUM_TERM);
            return FALSE;
        }
        t->label[t->n++] = (uint8_t)label;
    }
}

/* Without "->": the dimensions of '...', then the letters that occur once, sorted. */
static void implicit_out(HnEinsum *p)
{
    int count[HN_EINSUM_LABELS + 1] = { 0 };
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->in[i].n; j++)
            count[p->in[i].label[j]]++;
    p->out = (HnEinsumTerm){ .ellipsis = count[HN_EINSUM_ELLIPSIS] > 0 };
    if (p->out.ellipsis)
        p->out.label[p->out.n++] = HN_EINSUM_ELLIPSIS;
    for (int l = 0; l < HN_EINSUM_LETTERS && p->out.n < HN_EINSUM_TERM; l++)
        if (count[l] == 1)
            p->out.label[p->out.n++] = (uint8_t)l;
}

static void check_out(HnBind *b, const HnEinsum *p)
{
    gboolean in[HN_EINSUM_LABELS + 1] = { FALSE }, out[HN_EINSUM_LABELS + 1] = { FALSE };
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->in[i].n; j++)
            in[p->in[i].label[j]] = TRUE;
    for (int j = 0; j < p->out.n; j++) {
        int l = p->out.label[j];
        if (out[l] || (!in[l] && l != HN_EINSUM_ELLIPSIS))
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "the output of attribute 'equation' has '%c' %s",
                         l < 26 ? 'A' + l : 'a' + l - 26, out[l] ? "twice" : "that no input has");
        out[l] = TRUE;
    }
}

static void einsum_bind(HnBind *b, void *params)
{
    HnEinsum *p = params;
    hn_bind_require(b, "equation");
    const char *s = hn_bind_string(b, "equation", "");
    if (b->node->in->len > HN_EINSUM_OPERANDS) {
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "has %u inputs, at most %d are supported", b->node->in->len,
                     HN_EINSUM_OPERANDS);
        return;
    }
    for (gboolean more = TRUE; more; s++) {
        if (p->n == HN_EINSUM_OPERANDS || !parse_term(b, &s, &p->in[p->n])) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'equation' has more than %d terms", HN_EINSUM_OPERANDS);
            return;
        }
        p->n++;
        more = *s == ',';
        if (!more)
            break;
    }
    p->implicit = *s == 0;
    if (*s != 0) {
        if (strncmp(s, "->", 2) != 0) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'equation' has a '-' without '>'");
            return;
        }
        s += 2;
        if (!parse_term(b, &s, &p->out))
            return;
        if (*s != 0)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'equation' does not end after its output");
    } else {
        implicit_out(p);
    }
    if ((guint)p->n != b->node->in->len)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'equation' has %d terms for %u inputs", p->n, b->node->in->len);
    check_out(b, p);
}

int hn_einsum_spell(const HnEinsumTerm *t, int rank, uint8_t *labels)
{
    int spare = rank - (t->n - (t->ellipsis ? 1 : 0)), n = 0;
    if (rank > HN_MAX_RANK || spare < 0 || (spare > 0 && !t->ellipsis))
        return -1;
    for (int j = 0; j < t->n; j++) {
        if (t->label[j] != HN_EINSUM_ELLIPSIS)
            labels[n++] = t->label[j];
        else
            for (int i = 0; i < spare; i++)
                labels[n++] = (uint8_t)(HN_EINSUM_LABELS - spare + i);
    }
    return n;
}

/* Labels of the output; `width` dimensions lie under '...'. -1: too many. */
static int spell_out(const HnEinsum *p, int width, uint8_t *labels)
{
    int n = p->out.n + (p->out.ellipsis ? width - 1 : 0);
    return n > HN_MAX_RANK ? -1 : hn_einsum_spell(&p->out, n, labels);
}

static void einsum_infer(HnInfer *x)
{
    const HnEinsum *p = x->params;
    HnDtype dtype = HN_UNDEFINED;
    HnDim size[HN_EINSUM_LABELS], dims[HN_MAX_RANK];
    gboolean seen[HN_EINSUM_LABELS] = { FALSE }, ranks = TRUE;
    uint8_t labels[HN_MAX_RANK + 1];
    int width = 0;
    for (int i = 0; i < p->n; i++) {
        int rank = hn_infer_rank(x, i);
        if (dtype == HN_UNDEFINED)
            dtype = hn_infer_dtype(x, i);
        if (rank < 0) {
            ranks = FALSE;
            continue;
        }
        if (hn_einsum_spell(&p->in[i], rank, labels) < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, its term in 'equation' does not fit", i,
                          rank);
            return;
        }
        if (p->in[i].ellipsis)
            width = MAX(width, rank - p->in[i].n + 1);
        for (int j = 0; j < rank; j++) {
            HnDim d = hn_infer_dim(x, i, j), *s = &size[labels[j]];
            if (!seen[labels[j]] || hn_dim_is(*s, 1)) {
                *s = d;
            } else if (!hn_dim_is(d, 1)) {
                if (hn_dim_differ(d, *s)) {
                    hn_infer_fail(x, HN_ERROR_SHAPE, "dimension %d of input %d does not fit the other inputs", j, i);
                    return;
                }
                if (!s->known && !hn_dim_equal(d, *s))
                    *s = d.known ? d : hn_dim_unknown();
            }
            seen[labels[j]] = TRUE;
        }
    }
    int rank = ranks ? spell_out(p, width, labels) : -1;
    if (ranks && rank < 0) {
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "the output has more than %d dimensions", HN_MAX_RANK);
        return;
    }
    for (int j = 0; j < rank; j++)
        dims[j] = seen[labels[j]] ? size[labels[j]] : hn_dim_unknown();
    hn_infer_out(x, 0, dtype, rank, dims);
}

static void einsum_cost(const HnInfer *x, HnCost *c)
{
    const HnEinsum *p = x->params;
    double size[HN_EINSUM_LABELS + 1] = { 0 };
    uint8_t labels[HN_MAX_RANK + 1];
    for (int i = 0; i < p->n; i++) {
        int rank = hn_infer_rank(x, i);
        if (rank < 0 || hn_einsum_spell(&p->in[i], rank, labels) < 0)
            return;
        for (int j = 0; j < rank; j++)
            size[labels[j]] = MAX(size[labels[j]], (double)hn_infer_dim(x, i, j).n);
    }
    c->flops = p->n;
    for (int l = 0; l < HN_EINSUM_LABELS; l++)
        c->flops *= size[l] > 0 ? size[l] : 1;
}

/* --- reference --------------------------------------------------------------------------------------------------- */

/* A dense intermediate with a label per dimension: doubles for floats, uint64_t for integers, which wrap. */
typedef struct {
    int ndim;
    uint8_t label[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    int64_t n;
    void *data;
} Part;

typedef struct {
    HnEval *e;
    int64_t size[HN_EINSUM_LABELS]; /* of each label; 0 where it does not occur (and where it is 0) */
    gboolean real;                  /* doubles */
} Sum;

static gboolean part_alloc(Sum *s, Part *p)
{
    if (!hn_dims_count(p->ndim, p->dims, &p->n)) {
        hn_eval_fail(s->e, HN_ERROR_SHAPE, "an intermediate result is too large");
        return FALSE;
    }
    p->data = hn_eval_scratch(s->e, p->n, 8);
    return p->data != NULL;
}

/* Adds src, seen through strides (one per dimension of `dims`), up into dst: dst_strides are 0 along summed ones. */
#define RUN_ADD(T, A)                                                \
    {                                                                \
        A *y = dst;                                                  \
        const T *x = src;                                            \
        do                                                           \
            for (int64_t i = 0; i < inner; i++)                      \
                y[off[1] + i * ds] += (A)x[off[0] + i * ss];         \
        while (hn_index_next(ndim - 1, dims, idx, 2, strides, off)); \
    }
#define RUN_FLOAT(T) RUN_ADD(T, double)
#define RUN_INT(T) RUN_ADD(T, uint64_t)

static void add_up(HnDtype dtype, int ndim, const int64_t *dims, const void *src, int64_t *src_strides, void *dst,
                   int64_t *dst_strides)
{
    int64_t idx[2 * HN_MAX_RANK + 1] = { 0 }, off[2] = { 0, 0 };
    int64_t *strides[2] = { src_strides, dst_strides };
    int64_t inner = dims[ndim - 1], ss = src_strides[ndim - 1], ds = dst_strides[ndim - 1];
    for (int i = 0; i < ndim; i++)
        if (dims[i] == 0)
            return;
    HN_FOR_FLOAT(dtype, RUN_FLOAT)
    HN_FOR_INT(dtype, RUN_INT)
}

/*
 * A tensor as a part with the labels of `keep`, n_keep of them, in that order: labels that the tensor repeats give the
 * diagonal, those that are not kept are summed.
 */
static gboolean gather(Sum *s, HnDtype dtype, int rank, const uint8_t *labels, const int64_t *dims, const void *data,
                       const uint8_t *keep, int n_keep, Part *p)
{
    int64_t strides[HN_MAX_RANK + 1], walk[HN_EINSUM_LABELS + 1], src[HN_EINSUM_LABELS + 1], dst[HN_EINSUM_LABELS + 1];
    int at[HN_EINSUM_LABELS], n = 0;
    hn_strides(rank, dims, strides);
    memset(at, -1, sizeof at);
    for (int j = 0; j < rank; j++) {
        int l = labels[j];
        if (at[l] < 0) {
            at[l] = n;
            walk[n] = 1;
            src[n] = dst[n] = 0;
            n++;
        }
        if (dims[j] != 1) { /* the diagonal steps along all dimensions of a label at once */
            walk[at[l]] = dims[j];
            src[at[l]] += strides[j];
        }
    }
    p->ndim = n_keep;
    for (int i = 0; i < n_keep; i++) {
        p->label[i] = keep[i];
        p->dims[i] = at[keep[i]] >= 0 ? walk[at[keep[i]]] : 1;
    }
    if (!part_alloc(s, p))
        return FALSE;
    memset(p->data, 0, (size_t)p->n * 8);
    hn_strides(n_keep, p->dims, strides);
    for (int i = 0; i < n_keep; i++)
        if (at[keep[i]] >= 0)
            dst[at[keep[i]]] = strides[i];
    if (n == 0) { /* a scalar */
        walk[n] = 1;
        src[n] = dst[n] = 0;
        n++;
    }
    add_up(dtype, n, walk, data, src, p->data, dst);
    return TRUE;
}

/* What a label is in the product of two operands: in both and the result, in one, in both and summed. */
typedef enum { STACK, LEFT, RIGHT, INNER } Role;

static int64_t span_of(const Part *p, const uint8_t *labels, int n)
{
    int64_t v = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < p->ndim; j++)
            if (p->label[j] == labels[i])
                v *= p->dims[j];
    return v;
}

/* y = a * b summed over labels that `need` does not have. a and b are freed. */
static gboolean contract(Sum *s, Part *a, Part *b, const gboolean *need, Part *y)
{
    uint8_t group[4][HN_EINSUM_LABELS], order[2][HN_MAX_RANK * 2];
    int n[4] = { 0 }, n_order[2] = { 0, 0 };
    gboolean in[2][HN_EINSUM_LABELS] = { { FALSE }, { FALSE } }, ok = FALSE;
    const Part *part[2] = { a, b };
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < part[k]->ndim; j++) /* a dimension of size 1 broadcasts: as if it were not there */
            in[k][part[k]->label[j]] = part[k]->dims[j] != 1;
    for (int l = 0; l < HN_EINSUM_LABELS; l++) {
        if ((!in[0][l] && !in[1][l]) || (in[0][l] != in[1][l] && !need[l]))
            continue; /* a label of one operand alone that is not needed is summed by gather() */
        Role r = in[0][l] && in[1][l] ? (need[l] ? STACK : INNER) : in[0][l] ? LEFT : RIGHT;
        group[r][n[r]++] = (uint8_t)l;
    }
    for (int k = 0; k < 2; k++) {
        const Role roles[3] = { STACK, k == 0 ? LEFT : INNER, k == 0 ? INNER : RIGHT };
        for (int r = 0; r < 3; r++)
            for (int i = 0; i < n[roles[r]]; i++)
                order[k][n_order[k]++] = group[roles[r]][i];
    }
    HnDtype dtype = s->real ? HN_F64 : HN_U64;
    Part pa = { 0 }, pb = { 0 };
    int64_t stack = span_of(a, group[STACK], n[STACK]), m = span_of(a, group[LEFT], n[LEFT]);
    int64_t inner = span_of(a, group[INNER], n[INNER]), cols = span_of(b, group[RIGHT], n[RIGHT]);
    *y = (Part){ 0 };
    if (n[STACK] + n[LEFT] + n[RIGHT] > HN_MAX_RANK) {
        hn_eval_fail(s->e, HN_ERROR_UNSUPPORTED, "an intermediate result has more than %d dimensions", HN_MAX_RANK);
        goto done;
    }
    for (Role r = STACK; r <= RIGHT; r++)
        for (int i = 0; i < n[r]; i++) {
            y->label[y->ndim] = group[r][i];
            y->dims[y->ndim++] = s->size[group[r][i]];
        }
    if (!gather(s, dtype, a->ndim, a->label, a->dims, a->data, order[0], n_order[0], &pa) ||
        !gather(s, dtype, b->ndim, b->label, b->dims, b->data, order[1], n_order[1], &pb) || !part_alloc(s, y))
        goto done;
    for (int64_t i = 0; y->n > 0 && i < stack; i++) {
        HnGemm g = {
            .m = m,
            .n = cols,
            .k = inner,
            .a = (const double *)pa.data + i * m * inner,
            .a_row = inner,
            .a_col = 1,
            .b = (const double *)pb.data + i * inner * cols,
            .b_row = cols,
            .b_col = 1,
            .c = (double *)y->data + i * m * cols,
            .c_row = cols,
            .alpha = 1,
        };
        hn_gemm(dtype, &g);
    }
    ok = TRUE;
done:
    hn_eval_scratch_free(s->e, pa.data);
    hn_eval_scratch_free(s->e, pb.data);
    hn_eval_scratch_free(s->e, a->data);
    hn_eval_scratch_free(s->e, b->data);
    a->data = b->data = NULL;
    return ok;
}

/* Operand i with its repeated labels resolved and the labels summed that `need` does not have. */
static gboolean load(Sum *s, int i, const HnEinsumTerm *t, const gboolean *need, Part *p)
{
    const HnTensor *x = hn_eval_in(s->e, i);
    uint8_t labels[HN_MAX_RANK + 1], keep[HN_MAX_RANK];
    gboolean kept[HN_EINSUM_LABELS] = { FALSE };
    int n = 0;
    hn_einsum_spell(t, x->ndim, labels);
    for (int j = 0; j < x->ndim; j++)
        if (need[labels[j]] && !kept[labels[j]]) {
            kept[labels[j]] = TRUE;
            keep[n++] = labels[j];
        }
    return gather(s, x->dtype, x->ndim, labels, x->dims, x->data, keep, n, p);
}

/* The last part, its labels a subset of the output's, into the output. */
#define RUN_OUT(T, A)                                           \
    {                                                           \
        T *y = out;                                             \
        const A *x = p->data;                                   \
        int64_t i = 0;                                          \
        do                                                      \
            y[i++] = (T)x[off];                                 \
        while (hn_index_next(rank, dims, idx, 1, &walk, &off)); \
    }
#define OUT_FLOAT(T) RUN_OUT(T, double)
#define OUT_INT(T) RUN_OUT(T, uint64_t)

static void store(const Part *p, HnDtype dtype, int rank, const uint8_t *labels, const int64_t *dims, void *out)
{
    int64_t strides[HN_MAX_RANK], own[HN_MAX_RANK], idx[HN_MAX_RANK] = { 0 }, off = 0, *walk = strides;
    hn_strides(p->ndim, p->dims, own);
    for (int i = 0; i < rank; i++) {
        strides[i] = 0;
        for (int j = 0; j < p->ndim; j++)
            if (p->label[j] == labels[i] && p->dims[j] != 1)
                strides[i] = own[j];
        if (dims[i] == 0)
            return;
    }
    HN_FOR_FLOAT(dtype, OUT_FLOAT)
    HN_FOR_INT(dtype, OUT_INT)
}

/* Sizes of all labels; the width of '...', -1: failed. */
static int label_sizes(Sum *s, const HnEinsum *p)
{
    gboolean seen[HN_EINSUM_LABELS] = { FALSE };
    int width = 0;
    for (int i = 0; i < p->n; i++) {
        const HnTensor *x = hn_eval_in(s->e, i);
        uint8_t labels[HN_MAX_RANK + 1];
        if (x == NULL || hn_einsum_spell(&p->in[i], x->ndim, labels) < 0) {
            hn_eval_fail(s->e, HN_ERROR_SHAPE, "input %d does not fit its term in 'equation'", i);
            return -1;
        }
        if (p->in[i].ellipsis)
            width = MAX(width, x->ndim - p->in[i].n + 1);
        for (int j = 0; j < x->ndim; j++) {
            int64_t *size = &s->size[labels[j]];
            if (!seen[labels[j]] || *size == 1) {
                *size = x->dims[j];
            } else if (x->dims[j] != 1 && x->dims[j] != *size) {
                hn_eval_fail(s->e, HN_ERROR_SHAPE, "dimension %d of input %d is %" PRId64 ", not %" PRId64, j, i,
                             x->dims[j], *size);
                return -1;
            }
            seen[labels[j]] = TRUE;
        }
    }
    return width;
}

static void einsum_ref(HnEval *e)
{
    const HnEinsum *p = e->params;
    Sum s = { .e = e };
    uint8_t labels[HN_MAX_RANK + 1], used[HN_MAX_RANK + 1];
    int64_t dims[HN_MAX_RANK];
    int width = label_sizes(&s, p);
    if (width < 0)
        return;
    int rank = spell_out(p, width, labels);
    if (rank < 0) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "the output has more than %d dimensions", HN_MAX_RANK);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = s.size[labels[i]];
    HnDtype dtype = hn_eval_in(e, 0)->dtype;
    s.real = dtype == HN_F32 || dtype == HN_F64;
    void *out = hn_eval_out(e, 0, dtype, rank, dims);
    /* a label is summed as soon as no later operand and not the output has it */
    Part acc = { 0 }, next = { 0 }, sum;
    for (int i = 0; out != NULL && i < p->n; i++) {
        gboolean later[HN_EINSUM_LABELS] = { FALSE }, need[HN_EINSUM_LABELS];
        for (int j = 0; j < rank; j++)
            later[labels[j]] = TRUE;
        for (int k = i + 1; k < p->n; k++) {
            int n = hn_einsum_spell(&p->in[k], hn_eval_in(e, k)->ndim, used);
            for (int j = 0; j < n; j++)
                later[used[j]] = TRUE;
        }
        memcpy(need, later, sizeof need);
        for (int j = 0; j < acc.ndim; j++)
            need[acc.label[j]] = TRUE;
        if (!load(&s, i, &p->in[i], need, i == 0 ? &acc : &next))
            break;
        if (i > 0) {
            if (!contract(&s, &acc, &next, later, &sum))
                goto failed;
            acc = sum;
        }
        if (i == p->n - 1)
            store(&acc, dtype, rank, labels, dims, out);
    }
failed:
    hn_eval_scratch_free(e, acc.data);
    hn_eval_scratch_free(e, next.data);
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

static void spell(GString *to, const HnEinsumTerm *t)
{
    for (int j = 0; j < t->n; j++)
        g_string_append_c(to, (char)(t->label[j] < 26 ? 'A' + t->label[j] : 'a' + t->label[j] - 26));
}

/* A letter twice in a term, or letters that stand for any number of axes. */
static gboolean is_plain(const HnEinsumTerm *t)
{
    for (int j = 0; j < t->n; j++)
        for (int k = 0; k < j; k++)
            if (t->label[j] == t->label[k])
                return FALSE;
    return !t->ellipsis;
}

/* The operand gives way to the gradient of the result, and the result to the operand. Letters that nobody else has come
 * from ones of the operand's shape. */
static void einsum_grad(HnTape *t)
{
    const HnEinsum *p = t->params;
    for (int i = 0; i < p->n; i++)
        if (!is_plain(&p->in[i])) {
            hn_tape_refuse(t, "a term of 'equation' has '...' or a letter twice");
            return;
        }
    if (p->n >= HN_EINSUM_OPERANDS) {
        hn_tape_refuse(t, "more than %d operands", HN_EINSUM_OPERANDS - 1);
        return;
    }
    for (int i = 0; i < p->n; i++) {
        HnValue *x = hn_tape_in(t, i), *in[HN_EINSUM_OPERANDS + 1];
        if (!hn_tape_needs(t, i))
            continue;
        g_autoptr(GString) equation = g_string_new(NULL);
        int n = 0;
        in[n++] = hn_tape_dy(t, 0);
        spell(equation, &p->out);
        for (int k = 0; k < p->n; k++) {
            in[n++] = k != i ? hn_tape_in(t, k)
                             : hn_build_op2(t->build, "Expand", hn_tape_number(t, 1),
                                            hn_build_shape(t->build, x, 0, INT64_MAX));
            g_string_append_c(equation, ',');
            spell(equation, &p->in[k]);
        }
        g_string_append(equation, "->");
        spell(equation, &p->in[i]);
        HnNode *e = hn_build_node(t->build, "Einsum", NULL, n, in, 1);
        hn_node_set_string(e, "equation", equation->str);
        hn_tape_give(t, i, hn_tape_sum_like(t, hn_node_out(e, 0), x));
    }
}

const HnOp hn_op_einsum = {
    .name = "Einsum",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 12, 28 },
    .lacks = HN_LACKS(HN_BF16_SINCE(28)),
    .in = "T*",
    .out = "T",
    .T = HN_T_NUM,
    .params_size = sizeof(HnEinsum),
    .bind = einsum_bind,
    .infer = einsum_infer,
    .cost = einsum_cost,
    .ref = einsum_ref,
    .grad = einsum_grad,
    .range = { .kind = HN_R_PRODUCTS },
    .trained = 1 | 1 << 1,
};
