/*
 * The registry of operator records and the binding of nodes to them.
 */
#include "op/op.h"
#include "op/internal.h"
#include "op/ml.h"
#include "op/ops.h"

#include <stdarg.h>
#include <string.h>

static const HnOp *const all[] = {
#define HN_OP(name, symbol, file) &hn_op_##symbol,
#include "op/ops.def"
#undef HN_OP
    NULL,
};

const HnOp *const *hn_op_all(void)
{
    return all;
}

const HnOp *hn_op_find(const char *domain, const char *name)
{
    for (int i = 0; all[i] != NULL; i++)
        if (all[i]->name[0] == name[0] && strcmp(all[i]->name, name) == 0 && hn_domain_equal(all[i]->domain, domain))
            return all[i];
    return NULL;
}

/* --- attributes ------------------------------------------------------------------------------------------------------
 */

void hn_bind_fail(HnBind *b, HnError code, const char *format, ...)
{
    if (b->error != NULL)
        return;
    va_list args;
    va_start(args, format);
    b->error = g_error_new_valist(HN_ERROR, (int)code, format, args);
    va_end(args);
}

static const char *const kind_names[] = { "undefined",      "float", "int",     "string",  "tensor", "graph",
                                          "floats",         "ints",  "strings", "tensors", "graphs", "sparse tensor",
                                          "sparse tensors", "type",  "types" };

/* The attribute when it is there and of the right kind. An attribute that refers to a function's own is not bound. */
static const HnAttr *bind_attr(HnBind *b, const char *name, HnAttrKind kind)
{
    const HnAttr *a = hn_node_attr(b->node, name);
    if (a == NULL)
        return NULL;
    if (a->ref_attr != NULL) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' refers to '%s' of a function that is not inlined", name,
                     a->ref_attr);
        return NULL;
    }
    if (a->kind != kind) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is of kind %s, not %s", name,
                     a->kind < G_N_ELEMENTS(kind_names) ? kind_names[a->kind] : "?", kind_names[kind]);
        return NULL;
    }
    return a;
}

gboolean hn_bind_has(HnBind *b, const char *name)
{
    return hn_node_attr(b->node, name) != NULL;
}

void hn_bind_require(HnBind *b, const char *name)
{
    if (!hn_bind_has(b, name))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is missing", name);
}

int64_t hn_bind_int(HnBind *b, const char *name, int64_t def)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_INT);
    return a != NULL ? a->i : def;
}

gboolean hn_bind_bool(HnBind *b, const char *name, gboolean def)
{
    return hn_bind_int(b, name, def) != 0;
}

float hn_bind_float(HnBind *b, const char *name, float def)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_FLOAT);
    return a != NULL ? a->f : def;
}

const int64_t *hn_bind_ints(HnBind *b, const char *name, int64_t *n)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_INTS);
    *n = a != NULL ? a->n : 0;
    return a != NULL ? a->ints : NULL;
}

const float *hn_bind_floats(HnBind *b, const char *name, int64_t *n)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_FLOATS);
    *n = a != NULL ? a->n : 0;
    return a != NULL ? a->floats : NULL;
}

HnTensor *hn_bind_tensor(HnBind *b, const char *name)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_TENSOR);
    return a != NULL ? a->t : NULL;
}

HnGraph *hn_bind_graph(HnBind *b, const char *name)
{
    hn_bind_require(b, name);
    const HnAttr *a = bind_attr(b, name, HN_ATTR_GRAPH);
    return a != NULL ? a->g : NULL;
}

const char *hn_bind_string(HnBind *b, const char *name, const char *def)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_STRING);
    if (a == NULL)
        return def;
    gsize n;
    const char *s = g_bytes_get_data(a->s, &n);
    if (n > 4096 || memchr(s != NULL ? s : "", 0, n) != NULL) { /* an option's word, not a document */
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is not a word", name);
        return def;
    }
    g_autofree char *z = g_strndup(s != NULL ? s : "", n);
    return g_intern_string(z);
}

int hn_bind_word(HnBind *b, const char *name, const char *const *words, int def)
{
    const HnAttr *a = bind_attr(b, name, HN_ATTR_STRING);
    if (a == NULL)
        return def;
    gsize n;
    const char *s = g_bytes_get_data(a->s, &n);
    for (int i = 0; words[i] != NULL; i++)
        if (strlen(words[i]) == n && (n == 0 || memcmp(words[i], s, n) == 0))
            return i;
    hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' cannot be '%.*s'", name, (int)MIN(n, 64), s != NULL ? s : "");
    return def;
}

/* --- binding ----------------------------------------------------------------------------------------------------- */

/* Most inputs or outputs of a signature; INT_MAX where the last letter repeats. */
static int signature_max(const char *letters)
{
    size_t n = strlen(letters);
    return n > 0 && (letters[n - 1] == '*' || letters[n - 1] == '~') ? G_MAXINT : (int)n;
}

static int signature_min(const HnOp *op)
{
    if (op->min_in > 0)
        return op->min_in != HN_MIN_IN_NONE ? op->min_in : 0;
    int max = signature_max(op->in);
    return max == G_MAXINT ? (int)strlen(op->in) - 1 : max;
}

static void check_arity(HnBind *b, const HnOp *op)
{
    const HnNode *n = b->node;
    int max_in = signature_max(op->in), max_out = signature_max(op->out), min_in = signature_min(op);
    if (n->in->len > (guint)max_in)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has %u inputs, at most %d are allowed", n->in->len, max_in);
    if (n->out->len > (guint)max_out)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has %u outputs, at most %d are allowed", n->out->len, max_out);
    const gboolean repeats = g_str_has_suffix(op->in, "*"); /* and none of the many may be left out */
    for (int i = 0; i < (repeats ? MAX((int)n->in->len, min_in) : min_in); i++)
        if (hn_node_in(n, i) == NULL) {
            hn_bind_fail(b, HN_ERROR_GRAPH, "input %d is missing", i);
            break;
        }
}

static void check_ml_version(HnBind *b, const HnOp *op)
{
    if (b->version <= 0)
        hn_bind_fail(b, HN_ERROR_GRAPH, "the model imports no opset of domain '%s'", op->domain);
    else if (b->version > HN_ML_OPSET_MAX)
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED,
                     "opset %" PRId64 " of domain '%s' is newer than %d, the newest that is known", b->version,
                     op->domain, HN_ML_OPSET_MAX);
    else if (b->version < op->since[0])
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED,
                     "the operator exists since opset %d of domain '%s', the model imports %" PRId64, op->since[0],
                     op->domain, b->version);
}

static void check_version(HnBind *b, const HnOp *op)
{
    if (op->domain != NULL) {
        if (hn_domain_equal(op->domain, HN_DOMAIN_ML))
            check_ml_version(b, op);
        return;
    }
    if (b->version <= 0)
        hn_bind_fail(b, HN_ERROR_GRAPH, "the model imports no opset of the default domain");
    else if (b->version > HN_OPSET_MAX)
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "opset %" PRId64 " is newer than %d, the newest that is known",
                     b->version, HN_OPSET_MAX);
    else if (b->version < op->since[0])
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "the operator exists since opset %d, the model imports %" PRId64,
                     op->since[0], b->version);
    else if (op->until != 0 && b->version > op->until)
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "the operator exists up to opset %d, the model imports %" PRId64,
                     op->until, b->version);
}

void hn_op_propagate(GError **error, GError *failure, const HnNode *n)
{
    g_propagate_prefixed_error(error, failure, "node '%s' (%s): ", hn_node_label(n), n->op_type);
}

gboolean hn_op_bind(HnNode *n, GError **error)
{
    if (n->op != NULL)
        return TRUE;
    const HnOp *op = hn_op_find(n->domain, n->op_type);
    if (op == NULL) {
        gboolean plain = hn_domain_equal(n->domain, NULL);
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "operator '%s%s%s' of node '%s' is not known",
                    plain ? "" : n->domain, plain ? "" : ".", n->op_type, hn_node_label(n));
        return FALSE;
    }
    HnBind b = { .node = n, .version = n->version };
    void *params = g_malloc0(MAX(op->params_size, 1));
    check_version(&b, op);
    check_arity(&b, op);
    if (b.error == NULL && op->bind != NULL)
        op->bind(&b, params);
    if (b.error != NULL) {
        g_free(params);
        hn_op_propagate(error, b.error, n);
        return FALSE;
    }
    n->op = op;
    n->params = params;
    return TRUE;
}

/* --- inference of one node --------------------------------------------------------------------------------------- */

HnTypeMask hn_op_mask(const HnOp *op, char letter)
{
    switch (letter) {
    case 'T':
        return op->T;
    case 'U':
        return op->U;
    case 'V':
        return op->V;
    case 'W':
        return op->W;
    case 'i':
        return HN_BIT(HN_I64);
    case 'j':
        return HN_BIT(HN_I32) | HN_BIT(HN_I64);
    case 'b':
        return HN_T_BOOL;
    case 'f':
        return HN_BIT(HN_F32);
    case 'u':
        return HN_BIT(HN_U8);
    case 'y':
        return HN_BIT(HN_U8) | HN_BIT(HN_I8);
    default:
        return HN_T_ANY;
    }
}

char hn_op_letter(const char *letters, int i, gboolean *same)
{
    size_t n = strlen(letters);
    *same = TRUE;
    if (n > 0 && (letters[n - 1] == '*' || letters[n - 1] == '~')) {
        if ((size_t)i >= n - 2) {
            *same = letters[n - 1] == '*';
            return letters[n - 2];
        }
    }
    return (size_t)i < n ? letters[i] : '.';
}

gboolean hn_op_widens(const HnOp *op, int n_in, const HnDtype *in, int n_out, const HnDtype *out)
{
    gboolean same, follows['Z' - 'A' + 1] = { FALSE };
    for (int i = 0; i < n_in; i++) {
        char letter = hn_op_letter(op->in, i, &same);
        if (!hn_dtype_is_half(in[i]) || letter == '.')
            continue;
        if (letter < 'A' || letter > 'Z' || !hn_dtype_in(HN_F32, hn_op_mask(op, letter)))
            return FALSE;
        follows[letter - 'A'] = same;
    }
    for (int k = 0; k < n_out; k++) {
        char letter = hn_op_letter(op->out, k, &same);
        if (hn_dtype_is_half(out[k]) && (letter < 'A' || letter > 'Z' || !follows[letter - 'A']))
            return FALSE;
    }
    return TRUE;
}

static void check_types(HnInfer *x)
{
    const HnOp *op = x->node->op;
    struct {
        HnDtype dtype;
        int input;
    } var[26] = { 0 };
    for (int i = 0; i < x->n_in; i++) {
        gboolean same;
        char letter = hn_op_letter(op->in, i, &same);
        const HnType *t = x->in[i];
        if (t == NULL || t->kind == HN_TYPE_NONE || (t->kind != HN_TYPE_TENSOR && letter == '.'))
            continue;
        if (t->kind != HN_TYPE_TENSOR) {
            g_autofree char *text = hn_type_describe(t);
            if (hn_type_is_list(t))
                hn_infer_fail(x, HN_ERROR_TYPE, "input %d is %s, not a tensor", i, text);
            else
                hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "input %d is %s, only tensors are computed with", i, text);
            return;
        }
        if (t->rank > HN_MAX_RANK) {
            hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "input %d has %d dimensions, at most %d are supported", i, t->rank,
                          HN_MAX_RANK);
            return;
        }
        if (t->dtype == HN_UNDEFINED || letter == '.')
            continue;
        if (!hn_dtype_in(t->dtype, hn_op_mask(op, letter))) {
            hn_infer_fail(x, HN_ERROR_TYPE, "input %d cannot be %s", i, hn_dtype_name(t->dtype));
            return;
        }
        if (!same || letter < 'A' || letter > 'Z')
            continue;
        int v = letter - 'A';
        if (var[v].dtype == HN_UNDEFINED) {
            var[v].dtype = t->dtype;
            var[v].input = i;
        } else if (var[v].dtype != t->dtype) {
            hn_infer_fail(x, HN_ERROR_TYPE, "input %d is %s, but input %d is %s", i, hn_dtype_name(t->dtype),
                          var[v].input, hn_dtype_name(var[v].dtype));
            return;
        }
    }
}

gboolean hn_op_infer(HnInfer *x, GError **error)
{
    check_types(x);
    if (x->error == NULL && x->node->op->infer != NULL)
        x->node->op->infer(x);
    if (x->error != NULL) {
        hn_op_propagate(error, g_steal_pointer(&x->error), x->node);
        return FALSE;
    }
    return TRUE;
}

double hn_type_count(const HnType *t)
{
    if (!hn_type_is_tensor(t) || t->rank < 0)
        return 0;
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i].known ? (double)t->dims[i].n : 0;
    return n;
}

void hn_cost_elementwise(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->out[0]);
}

HnQuantBytes hn_op_bytes(const HnNode *n)
{
    if (n->op == NULL)
        return HN_QB_NONE;
    if ((n->op->flags & HN_OP_VIEW) != 0)
        return HN_QB_MOVES;
    return n->op->quant.computes != NULL && n->op->quant.computes(n) ? HN_QB_NONE : n->op->quant.bytes;
}

gboolean hn_op_is_unpacked(const HnValue *v)
{
    const HnNode *n = v != NULL ? v->producer : NULL;
    return n != NULL && n->op != NULL && (n->op->flags & HN_OP_UNPACK) != 0;
}

gboolean hn_op_is_moved(const HnNode *n, int i)
{
    gboolean same;
    return hn_op_letter(n->op->in, i, &same) == n->op->in[0] && (i == 0 || n->op->quant.bytes != HN_QB_FILLS);
}

void hn_op_cost(const HnInfer *x, HnCost *c)
{
    *c = (HnCost){ 0, 0 };
    for (int i = 0; i < x->n_in; i++)
        if (x->in[i] != NULL && !((x->node->op->flags & HN_OP_SHAPE_ONLY) != 0 && i == 0))
            c->bytes += hn_type_count(x->in[i]) * hn_dtype_bits(x->in[i]->dtype) / 8;
    for (int k = 0; k < x->n_out; k++)
        if (x->out[k] != NULL)
            c->bytes += hn_type_count(x->out[k]) * hn_dtype_bits(x->out[k]->dtype) / 8;
    if (x->node->op->cost != NULL)
        x->node->op->cost(x, c);
}
