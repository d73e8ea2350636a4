/*
 * hn-check: one harness that judges every operator and every kernel.
 *
 * usage: hn-check                                       all cases, TAP
 *        hn-check --op=Softmax [--seed=N] [--opset=N] [SPEC... attr=...]   one operator, or one case given by hand
 *        hn-check --device=cuda                         the same cases, as far as they are about kernels of that device
 *        hn-check --device=cuda --where                 what runs on ref there and on a kernel of the CPU
 *        hn-check --list                                operator x ability, from the records
 *        hn-check --page                                man/hone-operators.7.scd, from the same
 *        hn-check --gradients [--op=Softmax]           gradients against differences of ref, TAP
 *        hn-check --forms                               element types and attributes by opset, from the records: JSON
 *
 * Each case goes through bind, infer and ref; results are compared with the case's expectation, with what infer said
 * (also with symbolic dimensions), with guard zones around outputs; then through a session on ref, and one per kernel
 * of the backend that is asked first; then converted to every other opset; then, where there is no expectation, in
 * the other float types that the record admits.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../fence.h"
#include "case.h"
#include "check/abilities.h"
#include "gradients.h"
#include "backends.h"
#include "cuda/core/cuda_backend.h"
#include "ir/ir_text.h"
#include "op/infer.h"
#include "op/unbind.h"
#include "pass/opset.h"
#include "spec.h"
#include "subject.h"

#define HN_OP(name, symbol, file) extern const HnCaseList hn_cases_##symbol;
#include "op/ops.def"
#undef HN_OP

static const HnCaseList *const lists[] = {
#define HN_OP(name, symbol, file) &hn_cases_##symbol,
#include "op/ops.def"
#undef HN_OP
};

#define GUARD 64 /* bytes before and behind each output */
#define GUARD_BYTE 0xa5
/* of an output with guards: larger ones ref gets memory for itself, or refuses */
#define MOST_BYTES ((size_t)1 << 30)

/* Two, so that kernels share their work; HONE_CHECK_THREADS=1 for tools that do not get on with threads. */
static int threads_of_sessions(void)
{
    return g_strcmp0(g_getenv("HONE_CHECK_THREADS"), "1") == 0 ? 1 : 2;
}

/* --- comparing -------------------------------------------------------------------------------------------------------
 */

/* NULL: equal within tolerance; else what differs (g_free) */
static char *differs(const HnTensor *got, const HnTensor *want, double rtol, double atol, gboolean shape_only)
{
    g_autofree char *a = hn_tensor_describe(got), *b = hn_tensor_describe(want);
    if (strcmp(a, b) != 0)
        return g_strdup_printf("is %s, not %s", a, b);
    for (int64_t i = 0; hn_tensor_is_list(got) && i < got->n; i++) {
        g_autofree char *d = differs(hn_tensor_get_item(got, i), hn_tensor_get_item(want, i), rtol, atol, shape_only);
        if (d != NULL)
            return g_strdup_printf(" element %" PRId64 "%s%s", i, *d == ' ' || *d == '[' ? "" : " ", d);
    }
    if (hn_tensor_is_list(got))
        return NULL;
    if (got->dtype != HN_STRING && got->bytes > 0 && memcmp(got->data, want->data, got->bytes) == 0)
        return NULL;
    for (int64_t i = 0; i < got->n && !shape_only; i++) {
        if (got->dtype == HN_STRING) {
            if (!g_bytes_equal(hn_tensor_get_string(got, i), hn_tensor_get_string(want, i)))
                return g_strdup_printf("[%" PRId64 "] is another string", i);
            continue;
        }
        if (hn_dtype_in(got->dtype, HN_T_INTS | HN_T_BOOL)) {
            int64_t x = hn_tensor_get_i64(got, i), y = hn_tensor_get_i64(want, i);
            if (x != y && fabs((double)x - (double)y) > atol + rtol * fabs((double)y))
                return g_strdup_printf("[%" PRId64 "] is %" PRId64 ", not %" PRId64, i, x, y);
            continue;
        }
        double x = hn_tensor_get_f64(got, i), y = hn_tensor_get_f64(want, i);
        if ((isnan(x) && isnan(y)) || x == y)
            continue;
        if (!(fabs(x - y) <= atol + rtol * fabs(y)))
            return g_strdup_printf("[%" PRId64 "] is %.9g, not %.9g", i, x, y);
    }
    return NULL;
}

/* --- the steps of a check: each returns NULL or what is wrong --------------------------------------------------------
 */

static HnTypes *types_of(const HnSubject *s, gboolean symbolic, GHashTable *names, int64_t *sizes)
{
    HnTypes *t = hn_types_new(s->model);
    int n = 0;
    for (guint i = 0; i < s->in->len; i++) {
        const HnSpec *spec = &g_array_index(s->in, HnSpec, i);
        const HnValue *v = hn_node_in(s->node, (int)i);
        if (v == NULL)
            continue;
        HnDim dims[HN_MAX_RANK];
        if (hn_tensor_is_list(spec->tensor)) {
            g_autoptr(HnType) list = hn_type_of(spec->tensor);
            hn_types_set(t, v, list);
            continue;
        }
        for (int a = 0; a < spec->tensor->ndim; a++) {
            g_autofree char *name = g_strdup_printf("d%u_%d", i, a);
            dims[a] = symbolic ? hn_dim_symbol(name) : hn_dim(spec->tensor->dims[a]);
            if (symbolic) {
                sizes[n] = spec->tensor->dims[a];
                g_hash_table_insert(names, g_strdup(name), &sizes[n++]);
            }
        }
        g_autoptr(HnType) type = hn_type_tensor(spec->tensor->dtype, spec->tensor->ndim, dims);
        if (spec->weight)
            hn_types_set_value(t, v, spec->tensor);
        else
            hn_types_set(t, v, type);
    }
    return t;
}

/* What infer said must be true of the result. */
static char *check_type(const HnType *said, const HnTensor *got, GHashTable *names, int k)
{
    static const HnTypeKind kinds[] = { HN_TYPE_SEQUENCE, HN_TYPE_OPTIONAL, HN_TYPE_MAP };
    if (said == NULL)
        return NULL;
    if (hn_tensor_is_list(got) ? said->kind != kinds[got->dtype - HN_SEQUENCE] : said->kind != HN_TYPE_TENSOR)
        return g_strdup_printf("output %d: infer said another kind of value than %s", k, hn_dtype_name(got->dtype));
    for (int64_t i = 0; hn_tensor_is_list(got) && got->dtype != HN_MAP && i < got->n; i++) {
        char *wrong = check_type(said->elem, hn_tensor_get_item(got, i), names, k);
        if (wrong != NULL)
            return wrong;
    }
    if (hn_tensor_is_list(got))
        return NULL;
    if (said->dtype != HN_UNDEFINED && said->dtype != got->dtype)
        return g_strdup_printf("output %d: infer said %s, ref made %s", k, hn_dtype_name(said->dtype),
                               hn_dtype_name(got->dtype));
    if (said->rank >= 0 && said->rank != got->ndim)
        return g_strdup_printf("output %d: infer said rank %d, ref made %d", k, said->rank, got->ndim);
    for (int a = 0; a < said->rank; a++) {
        int64_t size;
        if (!said->dims[a].known && said->dims[a].sym == NULL)
            continue;
        if (said->dims[a].known)
            size = said->dims[a].n;
        else if (!hn_dim_eval(said->dims[a], names, &size))
            continue; /* a name that the rule made up */
        if (size != got->dims[a])
            return g_strdup_printf("output %d: infer said size %" PRId64 " on axis %d (%s), ref made %" PRId64, k, size,
                                   a, said->dims[a].sym != NULL ? said->dims[a].sym : "fixed", got->dims[a]);
    }
    return NULL;
}

static HnTensor *guarded(const HnType *type)
{
    int64_t dims[HN_MAX_RANK], n;
    size_t bytes;
    if (type == NULL || !hn_type_is_fixed(type, dims) || type->dtype == HN_STRING ||
        !hn_dims_count(type->rank, dims, &n) || !hn_dtype_bytes(type->dtype, n, &bytes) || bytes > MOST_BYTES)
        return NULL;
    guint8 *memory = g_malloc(bytes + 2 * GUARD);
    memset(memory, GUARD_BYTE, bytes + 2 * GUARD);
    HnTensor *t = hn_tensor_new_borrowed(type->dtype, type->rank, dims, memory + GUARD);
    t->owner = g_bytes_new_take(memory, bytes + 2 * GUARD);
    return t;
}

static gboolean guards_hold(const HnTensor *t)
{
    if (t->owner == NULL)
        return TRUE;
    gsize n;
    const guint8 *memory = g_bytes_get_data(t->owner, &n);
    if (memory + GUARD != t->data)
        return TRUE;
    for (gsize i = 0; i < GUARD; i++)
        if (memory[i] != GUARD_BYTE || memory[n - 1 - i] != GUARD_BYTE)
            return FALSE;
    return TRUE;
}

/* bind, infer, ref. Results in out (n_out places); *failure: what was refused. */
static char *run_ref(HnSubject *s, int n_out, HnTensor **out, GError **failure)
{
    g_autoptr(HnTypes) fixed = types_of(s, FALSE, NULL, NULL);
    if (!hn_types_node(fixed, s->node, 0, failure))
        return NULL;
    g_autofree HnTensor **in = g_new0(HnTensor *, s->in->len + 1);
    for (guint i = 0; i < s->in->len; i++)
        in[i] = g_array_index(s->in, HnSpec, i).tensor;
    for (int k = 0; k < n_out; k++)
        out[k] = guarded(hn_types_get(fixed, hn_node_out(s->node, k)));
    HnEval e = { .node = s->node,
                 .params = s->node->params,
                 .n_in = (int)s->in->len,
                 .n_out = n_out,
                 .in = in,
                 .out = out,
                 .seed = 1 };
    if (!hn_op_eval(&e, failure))
        return NULL;
    for (int k = 0; k < n_out; k++) {
        if (!guards_hold(out[k]))
            return g_strdup_printf("output %d: written outside its memory", k);
        char *wrong = check_type(hn_types_get(fixed, hn_node_out(s->node, k)), out[k], NULL, k);
        if (wrong != NULL)
            return wrong;
    }
    int64_t sizes[32 * HN_MAX_RANK];
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(HnTypes) symbolic = types_of(s, TRUE, names, sizes);
    g_autoptr(GError) error = NULL;
    if (!hn_types_node(symbolic, s->node, 0, &error))
        return g_strdup_printf("with symbolic dimensions: %s", error->message);
    for (int k = 0; k < n_out; k++) {
        char *wrong = check_type(hn_types_get(symbolic, hn_node_out(s->node, k)), out[k], names, k);
        if (wrong != NULL) {
            char *full = g_strdup_printf("with symbolic dimensions: %s", wrong);
            g_free(wrong);
            return full;
        }
    }
    return NULL;
}

static void collect_kernel(const HnStep *step, int depth, gpointer data)
{
    (void)depth;
    if (step->node != NULL && step->kernel != NULL)
        *(const char **)data = step->kernel->name;
}

static GPtrArray *inputs_to_feed(const HnSubject *s)
{
    GPtrArray *in = g_ptr_array_new();
    for (guint i = 0; i < s->in->len; i++) {
        const HnSpec *spec = &g_array_index(s->in, HnSpec, i);
        if (spec->tensor != NULL && !spec->weight)
            g_ptr_array_add(in, spec->tensor);
    }
    return in;
}

/* What runs a case: a device that stays open, since opening a GPU takes longer than a case, or one for each session. */
typedef struct {
    const HnBackend *backend;
    HnDevice *open;
} HnTarget;

static HnSession *new_session(HnModel *m, const HnTarget *on, const HnSessionOptions *o, GError **error)
{
    if (on->open == NULL)
        return hn_session_new(m, on->backend, o, error);
    HnEngine *e = hn_engine_new(m, on->open, &(HnEngineOptions){ .budget = o->budget, .feeds = o->feeds }, error);
    HnSession *s = e != NULL ? hn_session_new_on(e, o, error) : NULL;
    hn_engine_unref(e);
    return s;
}

static char *run_session(HnSubject *s, const HnTarget *on, const char *prefer, int n_out, HnTensor *const *want,
                         double rtol, double atol)
{
    g_autoptr(GError) error = NULL;
    HnSessionOptions o = { .threads = threads_of_sessions(), .seed = 1, .prefer = prefer, .apart = TRUE };
    g_autoptr(HnSession) session = new_session(s->model, on, &o, &error);
    if (session == NULL)
        return g_strdup_printf("session on %s: %s", on->backend->name, error->message);
    g_autoptr(GPtrArray) in = inputs_to_feed(s);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    char *wrong = NULL;
    for (int round = 0; round < 2 && wrong == NULL; round++) { /* the second run finds a plan that has run */
        if (!hn_session_run(session, (HnTensor *const *)in->pdata, out, &error))
            return g_strdup_printf("session on %s: %s", on->backend->name, error->message);
        const char *kernel = "ref";
        hn_session_foreach_step(session, collect_kernel, &kernel);
        for (int k = 0; k < n_out; k++) {
            g_autofree char *d = wrong == NULL && want[k] != NULL ? differs(out[k], want[k], rtol, atol, FALSE) : NULL;
            if (d != NULL)
                wrong = g_strdup_printf("kernel %s on %s: output %d%s", kernel, on->backend->name, k, d);
            hn_tensor_unref(out[k]);
        }
    }
    return wrong;
}

/* What ref refused, a session must refuse as well, whichever kernel is asked first. */
static char *refused_in_session(HnSubject *s, const HnTarget *on, const char *prefer, int n_out)
{
    g_autoptr(GError) error = NULL;
    HnSessionOptions o = { .threads = threads_of_sessions(), .seed = 1, .prefer = prefer, .apart = TRUE };
    g_autoptr(HnSession) session = new_session(s->model, on, &o, &error);
    if (session == NULL)
        return NULL;
    g_autoptr(GPtrArray) in = inputs_to_feed(s);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    if (!hn_session_run(session, (HnTensor *const *)in->pdata, out, &error))
        return NULL;
    const char *kernel = "ref";
    hn_session_foreach_step(session, collect_kernel, &kernel);
    for (int k = 0; k < n_out; k++)
        hn_tensor_unref(out[k]);
    return g_strdup_printf("was not refused by kernel %s", kernel);
}

static char *refused_by_kernels(HnSubject *s, const HnOp *op, const HnTarget *on, int n_out)
{
    const HnKernel *const *kernels = on->backend->kernels(op);
    char *wrong = refused_in_session(s, on, NULL, n_out);
    for (int k = 0; kernels != NULL && kernels[k] != NULL && wrong == NULL; k++)
        wrong = refused_in_session(s, on, kernels[k]->name, n_out);
    return wrong;
}

/* --- other opsets ------------------------------------------------------------------------------------------------ */

/* Converts the case's model to `target`; FALSE: refused, *why says so. */
static gboolean convert_case(HnSubject *s, const HnOp *op, const HnCase *c, const GArray *in, int n_out, int64_t target,
                             char **why)
{
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    hn_subject_init(s, op, c, in, n_out);
    if (hn_convert_opset(s->model, target, blocked, &error))
        return TRUE;
    *why = g_strdup(error->message);
    return FALSE;
}

static int64_t version_of(const HnOp *op, const HnCase *c)
{
    return c->opset > 0 ? c->opset : op->until > 0 ? op->until : HN_OPSET_MAX;
}

typedef struct {
    int64_t opset;
    GString *text;
} Meaning;

static void add_last_change(HnNode *n, gpointer data)
{
    const Meaning *m = data;
    const HnOp *op = hn_op_find(n->domain, n->op_type);
    int last = 0;
    for (int i = 0; op != NULL && op->since[i] != 0 && op->since[i] <= m->opset; i++)
        last = op->since[i];
    g_string_append_printf(m->text, " %d", last);
}

/* What the model computes: its nodes, with the opset that changed each one's operator last. */
static char *meaning_of(const HnSubject *s, int64_t opset)
{
    Meaning m = { opset, g_string_new(NULL) };
    hn_graph_print(s->model->graph, 64, m.text);
    hn_graph_foreach_node(s->model->graph, add_last_change, &m);
    return g_string_free(m.text, FALSE);
}

/* In every opset that the case can be written in, it computes the same. */
static char *check_opsets(const HnOp *op, const HnCase *c, const GArray *in, HnDtype dtype, int n_out,
                          HnTensor *const *want, double rtol, double atol)
{
    char *wrong = NULL;
    g_autofree char *before = NULL;
    if (op->domain != NULL || version_of(op, c) < HN_OPSET_MIN || c->own)
        return NULL;
    for (int64_t target = HN_OPSET_MIN; target <= HN_OPSET_MAX && wrong == NULL; target += dtype == HN_F32 ? 1 : 3) {
        HnSubject s = { 0 };
        g_autofree char *why = NULL;
        g_autoptr(GError) broken = NULL;
        g_autofree char *d = NULL;
        if (convert_case(&s, op, c, in, n_out, target, &why)) {
            g_autofree char *meaning = meaning_of(&s, target);
            if (!hn_model_verify(s.model, &broken))
                d = g_strdup(broken->message);
            else if (g_strcmp0(meaning, before) != 0) /* else it was run as the opset before */
                d = run_session(&s, &(HnTarget){ .backend = &hn_backend_ref }, NULL, n_out, want, rtol, atol);
            g_free(before);
            before = g_steal_pointer(&meaning);
        }
        if (d != NULL)
            wrong = g_strdup_printf("as opset %" PRId64 ": %s", target, d);
        hn_subject_clear(&s);
    }
    return wrong;
}

/* Share of its cases times targets that an operator can be written in; "-": none of them is of an opset that counts. */
static char *opsets_of(const HnOp *op, const HnCaseList *list)
{
    int done = 0, all = 0;
    int64_t oldest = HN_OPSET_MAX;
    for (guint i = 0; i < list->n && op->domain == NULL; i++) {
        const HnCase *c = &list->cases[i];
        g_auto(GStrv) want = hn_spec_words(c->want);
        int n_out = c->n_out > 0 ? c->n_out : MAX((int)g_strv_length(want), 1);
        if (c->refused || version_of(op, c) < HN_OPSET_MIN)
            continue;
        GArray *in = hn_subject_inputs(c, 71 + i, HN_F32);
        for (int64_t target = HN_OPSET_MIN; target <= HN_OPSET_MAX; target++) {
            HnSubject s = { 0 };
            g_autofree char *why = NULL;
            gboolean ok = convert_case(&s, op, c, in, n_out, target, &why);
            oldest = ok ? MIN(oldest, target) : oldest;
            done += ok;
            all++;
            hn_subject_clear(&s);
        }
        hn_subject_inputs_free(in);
    }
    return all > 0 ? g_strdup_printf("%" PRId64 ".. %d%%", oldest, 100 * done / all) : g_strdup("-");
}

static void print_forms_of(const HnOp *op)
{
    printf("{\"name\": \"%s\", \"in\": \"%s\", \"out\": \"%s\", \"until\": %d, \"min_in\": %d, \"since\": [", op->name,
           op->in, op->out, op->until, op->min_in);
    for (int i = 0; op->since[i] != 0; i++)
        printf("%s%d", i > 0 ? ", " : "", op->since[i]);
    printf("], \"unbind\": %s, \"forms\": [", op->unbind != NULL ? "true" : "false");
    for (const HnForm *f = op->forms; f != NULL && f->name != NULL; f++)
        printf("%s{\"name\": \"%s\", \"since\": %d, \"until\": %d, \"input\": %d}", f != op->forms ? ", " : "", f->name,
               f->since, f->until, f->input);
    printf("], \"types\": {");
    for (int64_t v = HN_OPSET_MIN; v <= HN_OPSET_MAX; v++) {
        printf("%s\"%" PRId64 "\": {", v > HN_OPSET_MIN ? ", " : "", v);
        const char *letters = "TUVW.ijbfuy";
        for (const char *l = letters; *l != 0; l++)
            printf("%s\"%c\": %" PRIu32, l > letters ? ", " : "", *l, hn_op_types(op, *l, v));
        printf("}");
    }
    printf("}}\n");
}

static void print_forms(void)
{
    for (const HnOp *const *o = hn_op_all(); *o != NULL; o++)
        if ((*o)->domain == NULL)
            print_forms_of(*o);
}

/* --- one case ---------------------------------------------------------------------------------------------------- */

static char *check_want(const HnCase *c, HnTensor *const *out, double rtol, double atol)
{
    g_auto(GStrv) want = hn_spec_words(c->want);
    for (int k = 0; want[k] != NULL; k++) {
        HnSpec w = hn_spec_parse(want[k], NULL);
        g_autofree char *d = w.tensor != NULL ? differs(out[k], w.tensor, rtol, atol, w.open) : NULL;
        hn_spec_clear(&w);
        if (d != NULL)
            return g_strdup_printf("output %d%s", k, d);
    }
    return NULL;
}

/* Each kernel of the operator asked first. */
static char *run_kernels(HnSubject *s, const HnOp *op, const HnTarget *on, int n_out, HnTensor *const *want,
                         double rtol, double atol)
{
    const HnKernel *const *kernels = on->backend->kernels(op);
    char *wrong = NULL;
    for (int k = 0; kernels != NULL && kernels[k] != NULL && wrong == NULL; k++)
        wrong = run_session(s, on, kernels[k]->name, n_out, want, rtol, atol);
    return wrong;
}

/* The same in another float type: ref of that type against ref of f32 on the rounded elements. `on`: whose kernels
 * take halves; NULL: none. */
static char *check_other_type(const HnOp *op, const HnCase *c, uint64_t seed, HnDtype dtype, const HnTarget *on,
                              int n_out, HnTensor *const *f32)
{
    HnSubject s = { 0 };
    GArray *in = hn_subject_inputs(c, seed, dtype);
    hn_subject_init(&s, op, c, in, n_out);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    g_autoptr(GError) failure = NULL;
    char *wrong = run_ref(&s, n_out, out, &failure);
    double tol = dtype == HN_F64 ? 1e-4 : dtype == HN_F16 ? 2e-2 : 1e-1;
    if (failure != NULL && failure->code != HN_ERROR_TYPE && failure->code != HN_ERROR_UNSUPPORTED)
        wrong = g_strdup(failure->message);
    for (int k = 0; failure == NULL && wrong == NULL && k < n_out && dtype == HN_F64; k++) {
        if (!hn_dtype_in(out[k]->dtype, HN_T_FLOATS) || out[k]->n != f32[k]->n)
            continue;
        g_autoptr(HnTensor) wide = hn_subject_as(f32[k], out[k]->dtype);
        g_autofree char *d = differs(out[k], wide, tol, tol, FALSE);
        if (d != NULL)
            wrong = g_strdup_printf("output %d%s", k, d);
    }
    if (failure == NULL && wrong == NULL) {
        double few = dtype == HN_F64 ? tol : dtype == HN_F16 ? 4e-3 : 3e-2; /* roundings on another way */
        wrong = on != NULL ? run_kernels(&s, op, on, n_out, out, few, few)
                           : check_opsets(op, c, in, dtype, n_out, out, few, few);
    }
    for (int k = 0; k < n_out; k++)
        hn_tensor_unref(out[k]);
    hn_subject_clear(&s);
    hn_subject_inputs_free(in);
    char *full = wrong != NULL ? g_strdup_printf("as %s: %s", hn_dtype_name(dtype), wrong) : NULL;
    g_free(wrong);
    return full;
}

/* device: other than the CPU, which alone is judged; NULL: all else is. */
static char *check_case(const HnOp *op, const HnCase *c, uint64_t seed, const HnTarget *device, GString *shown)
{
    const HnTarget cpu = { .backend = hn_backend_find("cpu", NULL) }, *on = device != NULL ? device : &cpu;
    const HnTarget on_ref = { .backend = &hn_backend_ref }, on_fence = { .backend = &hn_backend_fence };
    HnSubject s = { 0 };
    int n_out = hn_subject_outputs(c);
    GArray *in = hn_subject_inputs(c, seed, HN_F32);
    hn_subject_init(&s, op, c, in, n_out);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    g_autoptr(GError) failure = NULL;
    gboolean tolerant = c->rtol > 0 || c->atol > 0;
    char *wrong = run_ref(&s, n_out, out, &failure);
    if (c->refused) {
        if (wrong == NULL && failure == NULL)
            wrong = g_strdup("was not refused");
        else if (wrong == NULL && failure->code != (int)c->code)
            wrong = g_strdup_printf("was refused with another code: %s", failure->message);
        if (wrong == NULL)
            wrong = refused_by_kernels(&s, op, on, n_out);
    } else if (failure != NULL) {
        g_free(wrong);
        wrong = g_strdup(failure->message);
    }
    gboolean ran = wrong == NULL && !c->refused;
    if (ran)
        wrong = check_want(c, out, tolerant ? c->rtol : 1e-5, tolerant ? c->atol : 1e-6);
    if (ran && wrong == NULL && (op->flags & HN_OP_RANDOM) == 0) {
        double rtol = tolerant ? c->rtol : 1e-4, atol = tolerant ? c->atol : 1e-4;
        if (device == NULL)
            wrong = run_session(&s, &on_ref, NULL, n_out, out, rtol, atol);
        if (wrong == NULL)
            wrong = run_kernels(&s, op, on, n_out, out, rtol, atol);
        if (wrong == NULL &&
            device == NULL) /* in memory that the host cannot touch, all of it, and but for the first input */
            wrong = run_session(&s, &on_fence, seed % 2 == 0 ? "fence.host" : NULL, n_out, out, rtol, atol);
        if (wrong == NULL && device == NULL)
            wrong = check_opsets(op, c, in, HN_F32, n_out, out, MAX(rtol, 1e-5), MAX(atol, 1e-6));
        const HnDtype types[] = { HN_F64, HN_F16, HN_BF16 };
        for (guint t = 0; t < G_N_ELEMENTS(types) && wrong == NULL && c->want == NULL; t++)
            wrong = check_other_type(op, c, seed, types[t], device, n_out, out);
    }
    for (int k = 0; k < n_out; k++) {
        if (shown != NULL && out[k] != NULL) {
            g_autofree char *text = hn_tensor_describe(out[k]);
            g_string_append_printf(shown, "output %d: %s", k, text);
            for (int64_t i = 0; !hn_dtype_is_refs(out[k]->dtype) && i < MIN(out[k]->n, 64); i++)
                g_string_append_printf(shown, "%s%.9g", i == 0 ? " = " : ", ", hn_tensor_get_f64(out[k], i));
            g_string_append_c(shown, '\n');
        }
        hn_tensor_unref(out[k]);
    }
    hn_subject_clear(&s);
    hn_subject_inputs_free(in);
    return wrong;
}

/* --- main
 * ----------------------------------------------------------------------------------------------------------------------
 */

static const char *quoted(const char *text)
{
    return strpbrk(text, " {'") != NULL ? "\"" : "";
}

static void print_again(const HnOp *op, const HnCase *c, uint64_t seed)
{
    printf("# again: hn-check --op=%s --seed=%" G_GUINT64_FORMAT, op->name, seed);
    if (c->opset > 0)
        printf(" --opset=%d", c->opset);
    if (hn_subject_outputs(c) > 1)
        printf(" --outputs=%d", hn_subject_outputs(c));
    const char *texts[] = { c->in, c->attrs };
    for (int t = 0; t < 2; t++) {
        g_auto(GStrv) words = hn_spec_words(texts[t]);
        for (char **w = words; *w != NULL; w++)
            printf(" %s%s%s", quoted(*w), *w, quoted(*w));
    }
    printf("\n");
}

/* Of the default domain, where it has one of that name, or of another. */
static const HnOp *find_op(const char *name)
{
    const HnOp *op = hn_op_find(NULL, name);
    for (const HnOp *const *o = hn_op_all(); op == NULL && *o != NULL; o++)
        op = strcmp((*o)->name, name) == 0 ? *o : NULL;
    return op;
}

static void note_kernel(const HnStep *step, int depth, gpointer data)
{
    (void)depth;
    if (step->node != NULL && (step->kernel == NULL || *(const char **)data == NULL))
        *(const char **)data = step->kernel != NULL ? step->kernel->name : "ref";
}

/* The kernel that the case runs on, "ref" where that is anywhere in it; NULL: nothing runs. */
static const char *kernel_on(HnSubject *s, const HnTarget *on, int n_out)
{
    HnSessionOptions o = { .threads = 1, .seed = 1 };
    g_autoptr(HnSession) session = new_session(s->model, on, &o, NULL);
    g_autoptr(GPtrArray) in = inputs_to_feed(s);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    const char *kernel = NULL;
    if (session == NULL || !hn_session_run(session, (HnTensor *const *)in->pdata, out, NULL))
        return NULL;
    hn_session_foreach_step(session, note_kernel, &kernel);
    for (int k = 0; k < n_out; k++)
        hn_tensor_unref(out[k]);
    return kernel;
}

/* Cases of the operator, in f32 and in halves, that run on ref on the device and on a kernel of the CPU: how many. */
static int print_where(const HnOp *op, const HnCaseList *list, uint64_t seed, const HnTarget *device)
{
    static const HnDtype types[] = { HN_F32, HN_F16, HN_BF16 };
    int left = 0;
    for (guint i = 0; i < list->n; i++)
        for (guint t = 0; t < (list->cases[i].want == NULL ? G_N_ELEMENTS(types) : 1); t++) {
            const HnCase *c = &list->cases[i];
            HnSubject s = { 0 };
            const int n_out = hn_subject_outputs(c);
            GArray *in = hn_subject_inputs(c, seed + i, types[t]);
            hn_subject_init(&s, op, c, in, n_out);
            const char *cpu =
                c->refused ? NULL : kernel_on(&s, &(HnTarget){ .backend = hn_backend_find("cpu", NULL) }, n_out);
            const char *there = cpu != NULL && strcmp(cpu, "ref") != 0 ? kernel_on(&s, device, n_out) : NULL;
            if (cpu != NULL && strcmp(cpu, "ref") != 0 && (there == NULL || strcmp(there, "ref") == 0)) {
                left++;
                printf("# %s case %u as %s: %s there, %s on the CPU\n", op->name, i, hn_dtype_name(types[t]),
                       there != NULL ? "ref" : "fails", cpu);
            }
            hn_subject_clear(&s);
            hn_subject_inputs_free(in);
        }
    return left;
}

static int check_list(const HnCaseList *list, uint64_t seed, const HnTarget *device)
{
    const HnOp *op = find_op(list->op);
    int failures = 0;
    for (guint i = 0; i < list->n; i++) {
        g_autofree char *wrong = check_case(op, &list->cases[i], seed + i, device, NULL);
        if (wrong == NULL)
            continue;
        failures++;
        printf("# %s case %u: %s\n", list->op, i, wrong);
        print_again(op, &list->cases[i], seed + i);
        fflush(stdout); /* who waits for one may stop here */
    }
    return failures;
}

static void print_kernels(const HnKernel *const *kernels)
{
    for (int i = 0; kernels != NULL && kernels[i] != NULL; i++)
        printf(" %s", kernels[i]->name);
    printf("%s", kernels == NULL ? " -" : "");
}

static void print_abilities(void)
{
    const HnBackend *cpu = hn_backend_find("cpu", NULL);
    printf("%-22s %-8s %-9s %-6s %-5s %-4s %-5s %s | %s\n", "operator", "since", "opsets", "infer", "cost", "ref",
           "grad", "cpu kernels", "cuda kernels");
    for (const HnOp *const *o = hn_op_all(); *o != NULL; o++) {
        int newest = 0;
        for (int i = 0; (*o)->since[i] != 0; i++)
            newest = (*o)->since[i];
        g_autofree char *since = g_strdup_printf("%d..%d", (*o)->since[0], (*o)->until > 0 ? (*o)->until : newest);
        g_autofree char *opsets = opsets_of(*o, lists[o - hn_op_all()]);
        printf("%-22s %-8s %-9s %-6s %-5s %-4s %-5s", (*o)->name, since, opsets, (*o)->infer != NULL ? "yes" : "-",
               (*o)->cost != NULL ? "yes" : "-", (*o)->ref != NULL ? "yes" : "-", (*o)->grad != NULL ? "yes" : "-");
        print_kernels(cpu->kernels(*o));
        printf(" |");
        print_kernels(hn_backend_cuda(0)->kernels(*o));
        printf("\n");
    }
}

static void print_page(void)
{
    g_autoptr(GString) page = g_string_new(NULL);
    hn_abilities_page(hn_backend_find("cpu", NULL), hn_backend_cuda(0), page);
    fputs(page->str, stdout);
}

static int check_by_hand(const HnOp *op, char **words, uint64_t seed, int opset, int n_out, const HnTarget *device)
{
    g_autoptr(GString) in = g_string_new(NULL), attrs = g_string_new(NULL), shown = g_string_new(NULL);
    for (char **w = words; *w != NULL; w++) {
        gsize name = strcspn(*w, "=[{@");
        g_autofree char *type = g_strndup(*w + (**w == '!'), name - (**w == '!'));
        GString *to = strcmp(*w, "-") == 0 || hn_dtype_parse(type) != HN_UNDEFINED ? in : attrs;
        g_string_append_printf(to, "%s%s", to->len > 0 ? " " : "", *w);
    }
    HnCase c = { .in = in->str, .attrs = attrs->str, .opset = opset, .n_out = n_out };
    g_autofree char *wrong = check_case(op, &c, seed, device, shown);
    printf("%s%s %s%s%s\n", shown->str, wrong == NULL ? "ok" : "not ok", op->name, wrong != NULL ? ": " : "",
           wrong != NULL ? wrong : "");
    return wrong == NULL ? 0 : 1;
}

int main(int argc, char **argv)
{
    g_autofree char *name = NULL, *device_name = NULL, *part = NULL;
    gboolean where = FALSE, list = FALSE, page = FALSE, forms = FALSE, gradients = FALSE;
    gint64 seed = 71;
    int opset = 0, n_out = 0;
    g_auto(GStrv) rest = NULL;
    GOptionEntry entries[] = {
        { "op", 0, 0, G_OPTION_ARG_STRING, &name, "only this operator", "NAME" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &seed, "of random elements", "N" },
        { "opset", 0, 0, G_OPTION_ARG_INT, &opset, "of a case given by hand", "N" },
        { "outputs", 0, 0, G_OPTION_ARG_INT, &n_out, "of a case given by hand", "N" },
        { "device", 0, 0, G_OPTION_ARG_STRING, &device_name, "whose kernels are judged: cpu, cuda", "NAME" },
        { "where", 0, 0, G_OPTION_ARG_NONE, &where, "cases left to ref by the device and not by the CPU", NULL },
        { "part", 0, 0, G_OPTION_ARG_STRING, &part, "the K-th of N parts of all operators", "K/N" },
        { "list", 0, 0, G_OPTION_ARG_NONE, &list, "operators and what hone can do with them", NULL },
        { "page", 0, 0, G_OPTION_ARG_NONE, &page, "the same as a manual page", NULL },
        { "gradients", 0, 0, G_OPTION_ARG_NONE, &gradients, "against differences of the reference, in f64", NULL },
        { "forms", 0, 0, G_OPTION_ARG_NONE, &forms, "types and attributes by opset", NULL },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &rest, NULL, "[SPEC...]" },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "hn-check: %s\n", error->message);
        return 2;
    }
    HnTarget target = { 0 };
    const HnTarget *device = NULL;
    g_autoptr(HnDevice) open = NULL;
    if (device_name != NULL && strcmp(device_name, "cpu") != 0) {
        target.backend = hn_backend_find(device_name, &error);
        target.open = open = target.backend != NULL ? hn_device_new(target.backend, &error) : NULL;
        device = &target;
        if (open == NULL) {
            fprintf(stderr, "hn-check: %s\n", error->message);
            return 2;
        }
    }
    void (*const print)(void) = list ? print_abilities : page ? print_page : forms ? print_forms : NULL;
    if (print != NULL) {
        print();
        return 0;
    }
    if (gradients)
        return hn_check_gradients(lists, G_N_ELEMENTS(lists), name, (uint64_t)seed) > 0 ? 1 : 0;
    if (name != NULL && rest != NULL) {
        const HnOp *op = find_op(name);
        if (op == NULL) {
            fprintf(stderr, "hn-check: operator '%s' is not known\n", name);
            return 2;
        }
        return check_by_hand(op, rest, (uint64_t)seed, opset, n_out, device);
    }
    if (where && device == NULL) {
        fprintf(stderr, "hn-check: --where says what another device than the CPU lacks: name it by --device\n");
        return 2;
    }
    int failed = 0, n = 0, k = 1, parts = 1;
    if (part != NULL && (sscanf(part, "%d/%d", &k, &parts) != 2 || k < 1 || k > parts)) {
        fprintf(stderr, "hn-check: --part is K/N, not '%s'\n", part);
        return 2;
    }
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        if (name != NULL ? strcmp(name, lists[i]->op) != 0 : (int)i % parts != k - 1)
            continue;
        int failures = lists[i]->n == 0 ? 1
                       : where          ? print_where(find_op(lists[i]->op), lists[i], (uint64_t)seed, device)
                                        : check_list(lists[i], (uint64_t)seed, device);
        printf("%sok %d %s%s (%u cases)\n", failures > 0 ? "not " : "", ++n, where ? "all on the device: " : "",
               lists[i]->op, lists[i]->n);
        fflush(stdout);
        failed += failures > 0;
    }
    printf("1..%d\n", n);
    return failed > 0 || n == 0 ? 1 : 0;
}
