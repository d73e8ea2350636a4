#include "train/objective.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define WHAT "option '--loss'"
#define IGNORE "ignore_index"
#define LOGITS "logits"
#define NO_LABEL (-100) /* what it is where nobody says another */

static const char *const any_loss[] = { LOGITS, "axis", NULL }; /* terms that all have */

static void objective_free(gpointer data)
{
    HnObjective *o = data;
    hn_terms_free(o->terms);
    g_free(o->value);
    g_free(o->like);
    g_free(o);
}

static const HnOp *find_loss(const char *name)
{
    for (const HnOp *const *op = hn_op_all(); *op != NULL; op++)
        if ((*op)->loss.name != NULL && strcmp((*op)->loss.name, name) == 0)
            return *op;
    return NULL;
}

static void refuse_name(const char *name, GError **error)
{
    g_autoptr(GString) all = g_string_new(NULL);
    for (const HnOp *const *op = hn_op_all(); *op != NULL; op++)
        if ((*op)->loss.name != NULL)
            g_string_append_printf(all, "%s%s", all->len > 0 ? ", " : "", (*op)->loss.name);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, WHAT ": there is no loss '%s'; there are %s", name, all->str);
}

/* "WEIGHT*" in front; *rest is what follows it. */
static gboolean read_weight(const char *text, double *weight, const char **rest, GError **error)
{
    const char *star = strchr(text, '*'), *colon = strchr(text, ':');
    char *end = NULL;
    *weight = 1;
    *rest = text;
    if (star == NULL || (colon != NULL && colon < star))
        return TRUE;
    *weight = g_ascii_strtod(text, &end);
    *rest = star + 1;
    if (end == star && isfinite(*weight) && *weight > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, WHAT ": '%.*s' is no weight above 0", (int)(star - text), text);
    return FALSE;
}

static HnObjective *parse_one(const char *text, GError **error)
{
    const char *rest, *at;
    double weight;
    if (!read_weight(text, &weight, &rest, error))
        return NULL;
    at = strchr(rest, '@');
    HnTerms *terms = hn_terms_parse(WHAT, rest, at != NULL ? (gsize)(at - rest) : strlen(rest), error);
    if (terms == NULL)
        return NULL;
    HnObjective *o = g_new0(HnObjective, 1);
    const double logits = hn_terms_get(terms, LOGITS);
    *o = (HnObjective){
        .op = find_loss(terms->name), .terms = terms, .weight = weight, .value = at != NULL ? g_strdup(at + 1) : NULL
    };
    if (o->op == NULL)
        refuse_name(terms->name, error);
    const char *const *lists[] = { o->op != NULL ? o->op->loss.floats : NULL, o->op != NULL ? o->op->loss.ints : NULL,
                                   any_loss };
    if (o->op == NULL || !hn_terms_check(terms, WHAT, lists, 3, error)) {
        g_clear_pointer(&o, objective_free);
        return NULL;
    }
    o->logits = isnan(logits) ? o->op->loss.logits : logits != 0;
    return o;
}

GPtrArray *hn_objectives_new(void)
{
    return g_ptr_array_new_with_free_func(objective_free);
}

GPtrArray *hn_objectives_parse(const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, "+", -1);
    g_autoptr(GPtrArray) all = hn_objectives_new();
    for (int i = 0; parts[i] != NULL; i++) {
        HnObjective *o = parse_one(parts[i], error);
        if (o == NULL)
            return NULL;
        g_ptr_array_add(all, o);
    }
    if (all->len == 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, WHAT ": no loss is named");
        return NULL;
    }
    return g_steal_pointer(&all);
}

char *hn_objectives_describe(const GPtrArray *objectives)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < objectives->len; i++) {
        const HnObjective *o = objectives->pdata[i];
        if (i > 0)
            g_string_append_c(s, '+');
        if (o->weight != 1)
            g_string_append_printf(s, "%.4g*", o->weight);
        g_string_append(s, o->terms->name);
        for (guint k = 0; k < o->terms->terms->len; k++) {
            const HnTerm *t = &g_array_index(o->terms->terms, HnTerm, k);
            g_string_append_printf(s, ":%s=%.4g", t->key, t->value);
        }
        if (o->value != NULL)
            g_string_append_printf(s, "@%s", o->value);
        if (o->like != NULL)
            g_string_append_printf(s, "(%s)", o->like);
    }
    return g_string_free(s, FALSE);
}

/* --- where classes lie -------------------------------------------------------------------------------------------- */

static int softmax_axis(const HnValue *v)
{
    const HnNode *n = v->producer;
    if (n == NULL || n->op == NULL || n->op->range.kind != HN_R_EXPONENTS || n->in->len != 1)
        return HN_NO_AXIS;
    const HnAttr *axis = hn_node_attr(n, "axis");
    return axis != NULL ? (int)axis->i : -1;
}

int hn_labelled_axis(const HnTensor *labels, int rank, const int64_t *dims)
{
    if (labels == NULL || !hn_dtype_in(labels->dtype, HN_T_INTS) || rank < 2)
        return HN_NO_AXIS;
    if (rank == 2)
        return dims[1] > 1 ? 1 : HN_NO_AXIS;
    for (int axis = 1; axis < rank; axis++) {
        gboolean fits = labels->ndim == rank - 1 && dims[axis] > 1;
        for (int i = 1; fits && i < labels->ndim; i++)
            fits = labels->dims[i] == dims[i < axis ? i : i + 1];
        if (fits)
            return axis;
    }
    return HN_NO_AXIS;
}

int hn_class_axis(const HnValue *v, int rank, const int64_t *dims, const HnTensor *labels)
{
    const int softmax = softmax_axis(v);
    return softmax != HN_NO_AXIS ? softmax : hn_labelled_axis(labels, rank, dims);
}

static HnValue *named_value(const HnObjective *o, const HnGraph *g)
{
    return o->value != NULL ? g_hash_table_lookup(g->values, o->value) : g->outputs->pdata[0];
}

void hn_objective_place(HnObjective *o, const HnGraph *g, const HnTypes *types, const HnTensor *labels)
{
    int64_t dims[HN_MAX_RANK];
    const HnValue *v = named_value(o, g);
    const HnType *type = v != NULL ? hn_types_get(types, v) : NULL;
    if (!o->op->loss.logits || !isnan(hn_terms_get(o->terms, "axis")) || !hn_type_is_tensor(type) ||
        !hn_type_is_fixed(type, dims))
        return;
    const int axis = hn_class_axis(v, type->rank, dims, v == g->outputs->pdata[0] ? labels : NULL);
    if (axis != HN_NO_AXIS)
        hn_terms_set(o->terms, "axis", axis);
}

/* --- in a graph --------------------------------------------------------------------------------------------------- */

HnValue *hn_objective_value(const HnObjective *o, const HnGraph *g, GError **error)
{
    HnValue *v = named_value(o, g);
    if (v == NULL || (v->producer == NULL && !v->is_output)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, WHAT ": the model computes no value '%s'", o->value);
        return NULL;
    }
    const HnNode *n = v->producer;
    const gboolean softmax = n != NULL && n->op != NULL && n->op->range.kind == HN_R_EXPONENTS && n->in->len == 1;
    return o->logits && softmax ? hn_node_in(n, 0) : v;
}

/* Of classes; a loss over elements knows none: the last one. */
static int axis_of(const HnObjective *o, int rank)
{
    const double given = hn_terms_get(o->terms, "axis");
    const int usual = o->op->loss.count == HN_COUNT_ELEMENTS ? -1 : o->op->loss.axis;
    return hn_axis(isnan(given) ? usual : (int)given, rank);
}

HnType *hn_objective_target(const HnObjective *o, const HnType *like, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    if (!hn_type_is_tensor(like) || !hn_type_is_fixed(like, dims)) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, WHAT ": the shape of what '%s' compares depends on the data",
                    o->terms->name);
        return NULL;
    }
    if (o->op->loss.target == HN_TARGET_LIKE)
        return hn_type_fixed(like->dtype, like->rank, dims);
    const int axis = axis_of(o, like->rank);
    if (axis < 0 || axis >= like->rank) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, WHAT ": '%s' looks for classes along axis %d of %d axes",
                    o->terms->name, axis, like->rank);
        return NULL;
    }
    memmove(dims + axis, dims + axis + 1, (gsize)(like->rank - axis - 1) * sizeof *dims);
    return hn_type_fixed(HN_I64, like->rank - 1, dims);
}

/* Logits of probabilities. */
static HnValue *logarithm(HnGraph *g, HnValue *v, HnDtype dtype, GError **error)
{
    const HnBuild b = { .graph = g };
    HnTensor *least = hn_tensor_new(dtype, 0, NULL, NULL, error);
    if (least == NULL)
        return NULL;
    hn_tensor_set_f64(least, 0, FLT_MIN);
    return hn_build_op1(&b, "Log", hn_build_op2(&b, "Max", v, hn_build_constant(&b, "least", least)));
}

HnNode *hn_objective_node(const HnObjective *o, HnGraph *g, HnValue *value, HnValue *target, HnDtype dtype,
                          GError **error)
{
    const HnBuild build = { .graph = g, .version = 1 };
    HnValue *in[] = { o->log_value ? logarithm(g, value, dtype, error) : value, target };
    if (in[0] == NULL)
        return NULL;
    HnNode *n = hn_build_node(&build, o->op->name, o->op->domain, 2, in, 1);
    hn_terms_apply(o->terms, o->op->loss.floats, o->op->loss.ints, n);
    return n;
}

gboolean hn_objective_build(const HnObjective *o, HnGraph *g, const HnTypes *types, HnObjectiveNode *made,
                            GError **error)
{
    HnValue *v = hn_objective_value(o, g, error);
    g_autoptr(HnType) type = v != NULL ? hn_objective_target(o, hn_types_get(types, v), error) : NULL;
    if (type == NULL)
        return FALSE;
    HnValue *target = hn_graph_new_value(g, "target");
    hn_value_set_type(target, type);
    hn_graph_add_input(g, target);
    HnNode *n = hn_objective_node(o, g, v, target, hn_types_get(types, v)->dtype, error);
    if (n != NULL)
        *made = (HnObjectiveNode){ v, target, hn_node_out(n, 0) };
    return n != NULL;
}

int64_t hn_objective_classes(const HnObjective *o, const HnType *compared)
{
    const int axis = axis_of(o, compared->rank);
    return o->op->loss.target == HN_TARGET_LABELS && axis >= 0 && axis < compared->rank ? compared->dims[axis].n : 0;
}

int64_t hn_objective_ignored(const HnObjective *o)
{
    const double given = hn_terms_get(o->terms, IGNORE);
    return isnan(given) ? NO_LABEL : (int64_t)given;
}

static int64_t count_labels(const HnObjective *o, const HnTensor *labels)
{
    const int64_t ignored = hn_objective_ignored(o);
    int64_t n = 0;
    for (int64_t i = 0; i < labels->n; i++)
        n += hn_tensor_get_i64(labels, i) != ignored;
    return n;
}

int64_t hn_objective_count(const HnObjective *o, const HnTensor *target, const HnType *like)
{
    const int axis = axis_of(o, like->rank);
    switch (o->op->loss.count) {
    case HN_COUNT_LABELS:
        return count_labels(o, target);
    case HN_COUNT_ROWS:
        return axis >= 0 && axis < like->rank && like->dims[axis].n > 0 ? target->n / like->dims[axis].n : target->n;
    case HN_COUNT_ELEMENTS:
        break;
    }
    return target->n;
}

/* Rows of numbers along the axis of classes, two or more. */
typedef struct {
    int64_t classes, inner, rows;
} Rows;

static gboolean rows_of(const HnObjective *o, const HnTensor *value, Rows *r)
{
    const int axis = axis_of(o, value->ndim);
    if (axis < 0 || axis >= value->ndim || value->dims[axis] < 2)
        return FALSE;
    *r = (Rows){ value->dims[axis], 1, value->n / value->dims[axis] };
    for (int a = axis + 1; a < value->ndim; a++)
        r->inner *= value->dims[a];
    return TRUE;
}

/* The first of the largest numbers of row i. */
static int64_t largest(const Rows *r, const HnTensor *t, int64_t i)
{
    const int64_t first = i / r->inner * r->inner * r->classes + i % r->inner;
    int64_t best = 0;
    for (int64_t k = 1; k < r->classes; k++)
        if (hn_tensor_get_f64(t, first + k * r->inner) > hn_tensor_get_f64(t, first + best * r->inner))
            best = k;
    return best;
}

int64_t hn_objective_hits(const HnObjective *o, const HnTensor *value, const HnTensor *labels, int64_t *of)
{
    const int64_t ignored = hn_objective_ignored(o);
    int64_t hits = 0;
    Rows r;
    *of = 0;
    if (!rows_of(o, value, &r) || r.rows != labels->n)
        return 0;
    for (int64_t i = 0; i < labels->n; i++) {
        const int64_t label = hn_tensor_get_i64(labels, i);
        if (label == ignored)
            continue;
        hits += largest(&r, value, i) == label;
        ++*of;
    }
    return hits;
}

int64_t hn_objective_agrees(const HnObjective *o, const HnTensor *value, const HnTensor *target, int64_t *of)
{
    int64_t hits = 0;
    Rows r;
    *of = 0;
    if (!o->logits || o->op->loss.target != HN_TARGET_LIKE || target->n != value->n || !rows_of(o, value, &r))
        return 0;
    for (int64_t i = 0; i < r.rows; i++)
        hits += largest(&r, value, i) == largest(&r, target, i);
    *of = r.rows;
    return hits;
}
