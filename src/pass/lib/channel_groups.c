#include "pass/lib/channel_place.h"

#include <string.h>

#include "base/forest.h"
#include "pass/lib/weights.h"

#define MOST_LIKE 32          /* weights of one shape that are compared */
#define COPY ((gsize)2 << 10) /* bytes of a weight that may become one for each of its readers */
#define MOST_CLASSES (1 << 24)
#define CLASS_BYTES (sizeof(int) + sizeof(const char *)) /* of a class in `parent` and `reasons` */

/* Classes, in memory of the budget. */
typedef struct {
    int *at;
    int64_t n;
} List;

/* --- classes ------------------------------------------------------------------------------------------------------ */

int hn_channels_class(const HnChannels *c, int k)
{
    return hn_forest_root((int *)c->parent->data, k);
}

static const char **reason_of(const HnChannels *c, int k)
{
    return &g_array_index(c->reasons, const char *, hn_channels_class(c, k));
}

void hn_channels_unite(HnChannels *c, int a, int b)
{
    a = hn_channels_class(c, a);
    b = hn_channels_class(c, b);
    if (a == b)
        return;
    const int low = MIN(a, b), high = MAX(a, b);
    if (*reason_of(c, low) == NULL)
        *reason_of(c, low) = *reason_of(c, high);
    g_array_index(c->parent, int, high) = low;
}

static int new_class(HnChannels *c)
{
    const int k = (int)c->parent->len;
    const char *none = NULL;
    g_array_append_val(c->parent, k);
    g_array_append_val(c->reasons, none);
    return k;
}

int hn_channels_count(const HnChannels *c)
{
    return (int)c->parent->len;
}

const char *hn_channels_locked(const HnChannels *c, int k)
{
    return *reason_of(c, k);
}

void hn_channels_lock(HnChannels *c, int k, const char *reason)
{
    const char **of = reason_of(c, k);
    if (*of == NULL)
        *of = g_string_chunk_insert_const(c->texts, reason);
}

int *hn_channels_list(HnChannels *c, int64_t n)
{
    List list = { NULL, n };
    if (c->error == NULL && (list.at = hn_budget_alloc_n(c->budget, (gsize)n, sizeof *list.at, &c->error)) != NULL)
        g_array_append_val(c->lists, list);
    return list.at;
}

void hn_channels_drop_list(HnChannels *c)
{
    hn_budget_free(c->budget, g_array_index(c->lists, List, c->lists->len - 1).at);
    g_array_set_size(c->lists, c->lists->len - 1);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

HnChannelPlace *hn_channels_place(const HnChannels *c, const HnValue *v)
{
    return v != NULL && v->graph == c->model->graph && v->weight == NULL && v->id < c->n_places ? &c->places[v->id]
                                                                                                : NULL;
}

const HnType *hn_channels_type(const HnChannels *c, const HnValue *v)
{
    const HnType *t = v == NULL ? NULL : c->types != NULL ? hn_types_get(c->types, v) : v->type;
    return hn_type_is_tensor(t) ? t : NULL;
}

/* Classes are kept for numbers of these types. */
static gboolean is_followed(const HnChannels *c, HnDtype dtype)
{
    return c->bond == HN_BOND_UNIT ? dtype == HN_F32 : hn_dtype_in(dtype, HN_T_FLOATS | HN_BIT(HN_U8) | HN_BIT(HN_I8));
}

gboolean hn_channels_is_data(const HnChannels *c, const HnValue *v)
{
    const HnType *t = hn_channels_type(c, v);
    return t != NULL && v->weight == NULL && is_followed(c, t->dtype);
}

const HnTensor *hn_channels_weight(const HnChannels *c, const HnValue *v)
{
    const HnTensor *t = v != NULL && !v->is_input ? v->weight : NULL;
    if (t == NULL || (c->bond == HN_BOND_UNIT && t->misaligned))
        return NULL;
    return is_followed(c, t->dtype) ? t : NULL;
}

int64_t hn_channels_size(const HnChannels *c, const HnValue *v, int *axis)
{
    const HnType *t = hn_channels_type(c, v);
    if (!hn_channels_is_data(c, v) || t->rank < 0)
        return -1;
    *axis += *axis < 0 ? t->rank : 0;
    return *axis >= 0 && *axis < t->rank && t->dims[*axis].known ? t->dims[*axis].n : -1;
}

static void lock_places(HnChannels *c, HnChannelPlace *p, const char *reason)
{
    p->locked = p->at != NULL || p->ids != NULL;
    for (int64_t i = 0; p->at != NULL && i < p->n; i++)
        hn_channels_lock(c, p->at[i], reason);
    for (int64_t i = 0; p->ids != NULL && i < p->ids->n; i++)
        if (((const float *)p->ids->data)[i] > 0)
            hn_channels_lock(c, (int)((const float *)p->ids->data)[i] - 1, reason);
}

void hn_channels_lock_value(HnChannels *c, const HnValue *v, const HnNode *n, const char *reason)
{
    HnChannelPlace *p = hn_channels_place(c, v);
    if (p == NULL || p->locked)
        return;
    g_autofree char *text = g_strdup_printf("'%s' (%s): %s", hn_node_label(n), n->op_type, reason);
    lock_places(c, p, text);
}

void hn_channels_lock_output(HnChannels *c, const HnValue *v)
{
    HnChannelPlace *p = v->is_output ? hn_channels_place(c, v) : NULL;
    if (p == NULL || p->locked)
        return;
    g_autofree char *text = g_strdup_printf("'%s' is an output of the model", v->name);
    lock_places(c, p, text);
}

HnChannelPlace *hn_channels_make(HnChannels *c, const HnValue *v, int axis, int64_t n)
{
    HnChannelPlace *p = hn_channels_place(c, v);
    if (p == NULL || n <= 0 || n > MOST_CLASSES - (int64_t)c->parent->len || hn_channels_size(c, v, &axis) != n)
        return NULL;
    int *at = hn_channels_list(c, n);
    if (at == NULL || !hn_budget_charge(c->budget, (gsize)n * CLASS_BYTES, &c->error))
        return NULL;
    c->counted += (gsize)n * CLASS_BYTES;
    for (int64_t i = 0; i < n; i++)
        at[i] = new_class(c);
    return hn_channels_put(c, &(HnChannelPlace){ .n = n, .at = at }, v, axis);
}

HnChannelPlace *hn_channels_put(HnChannels *c, const HnChannelPlace *p, const HnValue *v, int axis)
{
    HnChannelPlace *q = hn_channels_place(c, v);
    if (p == NULL || p->at == NULL || q == NULL || hn_channels_size(c, v, &axis) != p->n)
        return NULL;
    *q = (HnChannelPlace){ .axis = axis, .n = p->n, .at = p->at };
    hn_channels_lock_output(c, v);
    return q;
}

HnChannelPlace *hn_channels_pass(HnChannels *c, const HnValue *from, const HnValue *v)
{
    const HnChannelPlace *p = hn_channels_place(c, from);
    return hn_channels_put(c, p, v, p != NULL ? p->axis : 0);
}

const int *hn_channels_at(const HnChannels *c, const HnValue *v, int *axis, int64_t *n)
{
    const HnChannelPlace *p = hn_channels_place(c, v);
    if (p == NULL || p->at == NULL)
        return NULL;
    *axis = p->axis;
    *n = p->n;
    return p->at;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

HnChannelMember *hn_channels_member(HnChannels *c, const HnNode *n, int input)
{
    HnChannelMember *m = g_new0(HnChannelMember, 1);
    *m = (HnChannelMember){ .node = hn_node_result(n)->name, .input = input, .axis = -1, .in_axis = -1, .groups = 1 };
    g_ptr_array_add(c->members, m);
    return m;
}

void hn_channels_makes(HnChannelMember *m, int axis, int64_t n, const int *classes)
{
    m->axis = axis;
    m->n = n;
    m->out = classes;
}

void hn_channels_reads(HnChannelMember *m, int axis, int64_t groups, int64_t n, const int *classes)
{
    m->in_axis = axis;
    m->groups = groups;
    m->in_n = n / groups;
    m->in = classes;
}

const GPtrArray *hn_channels_members(const HnChannels *c)
{
    return c->members;
}

const GArray *hn_channels_clips(const HnChannels *c)
{
    return c->clips;
}

static HnValue *weight_of_member(const HnChannels *c, const HnChannelMember *m)
{
    const HnValue *y = g_hash_table_lookup(c->model->graph->values, m->node);
    return hn_node_in(y->producer, m->input);
}

static void lock_member(HnChannels *c, const HnChannelMember *m, const char *reason)
{
    for (int64_t k = 0; k < m->n; k++)
        hn_channels_lock(c, m->out[k], reason);
    for (int64_t k = 0; k < m->groups * m->in_n; k++)
        hn_channels_lock(c, m->in[k], reason);
}

/* Classes along an axis of m's weight. */
static const int *classes_along(const HnChannelMember *m, int axis)
{
    return m->axis == axis ? m->out : m->in_axis == axis ? m->in : NULL;
}

/* Both have the same fate along each axis. FALSE: one of them keeps what the other loses. */
static gboolean tie(HnChannels *c, const HnChannelMember *a, const HnChannelMember *b, const HnTensor *w)
{
    for (int axis = 0; axis < w->ndim; axis++) {
        const int *x = classes_along(a, axis), *y = classes_along(b, axis);
        if ((x == NULL) != (y == NULL))
            return FALSE;
        for (int64_t i = 0; x != NULL && i < w->dims[axis]; i++)
            hn_channels_unite(c, x[i], y[i]);
    }
    return TRUE;
}

/* A weight that several nodes read can have no two units, but two readers of one fate; a short one, such as a bias of
 * zeros, is copied. */
static void bind_shared(HnChannels *c)
{
    g_autoptr(GHashTable) first = g_hash_table_new(NULL, NULL), found = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < c->members->len; i++) {
        const HnValue *w = weight_of_member(c, c->members->pdata[i]);
        const guint seen = GPOINTER_TO_UINT(g_hash_table_lookup(found, w));
        g_hash_table_insert(found, (gpointer)w, GUINT_TO_POINTER(seen + 1));
    }
    for (guint i = 0; i < c->members->len; i++) {
        HnChannelMember *m = c->members->pdata[i];
        const HnValue *w = weight_of_member(c, m);
        const HnChannelMember *other = g_hash_table_lookup(first, w);
        if ((w->users->len == 1 && !w->is_output) || w->weight->bytes <= COPY)
            continue;
        g_hash_table_insert(first, (gpointer)w, m);
        const gboolean all = GPOINTER_TO_UINT(g_hash_table_lookup(found, w)) == w->users->len && !w->is_output;
        if (c->bond == HN_BOND_FATE && all && (other == NULL || tie(c, other, m, w->weight)))
            continue;
        g_autofree char *reason = g_strdup_printf("weight '%s' is read by several nodes", w->name);
        lock_member(c, m, reason);
        if (other != NULL)
            lock_member(c, other, reason);
    }
}

static void lock_inputs(HnChannels *c, const HnChannelMember *m, const char *reason)
{
    for (int64_t k = 0; k < m->groups * m->in_n; k++)
        hn_channels_lock(c, m->in[k], reason);
}

/* Weights that are each other's times a factor for each output channel can be stored as one, and stay so: units of what
 * they read would make them differ. */
static void bind_proportional(HnChannels *c)
{
    g_autoptr(GPtrArray) like = g_ptr_array_new();
    for (guint i = 0; i < c->members->len; i++) {
        const HnChannelMember *m = c->members->pdata[i];
        if (m->axis < 0 || m->in_axis < 0 || weight_of_member(c, m)->weight->bytes <= COPY)
            continue;
        const HnValue *w = weight_of_member(c, m);
        for (guint k = 0, seen = 0; k < like->len && seen < MOST_LIKE; k++) {
            const HnChannelMember *other = like->pdata[k];
            const HnValue *u = weight_of_member(c, other);
            if (u == w || other->axis != m->axis || u->weight->dtype != HN_F32 ||
                !hn_tensor_same_form(u->weight, w->weight))
                continue;
            seen++;
            g_autofree float *f = hn_weights_factors(u->weight, w->weight, m->axis);
            if (f == NULL)
                continue;
            g_autofree char *reason =
                g_strdup_printf("weight '%s' is '%s' times a number for each channel", w->name, u->name);
            lock_inputs(c, m, reason);
            lock_inputs(c, other, reason);
            break;
        }
        g_ptr_array_add(like, (gpointer)m);
    }
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Of recurrent layers the last states may be all that is wanted. */
static gboolean is_known(const HnChannels *c, const HnNode *n)
{
    if (n->op == NULL || hn_node_result(n) == NULL)
        return FALSE;
    return hn_node_out(n, 0) != NULL || (c->bond == HN_BOND_FATE && n->op->channels.kind == HN_CH_RECURRENT);
}

static void follow_node(HnChannels *c, HnNode *n)
{
    const char *reason = "is not known";
    if (is_known(c, n))
        reason = c->bond == HN_BOND_UNIT ? hn_channels_follow_unit(c, n) : hn_channels_follow_fate(c, n);
    if (reason == NULL)
        return;
    g_autoptr(GPtrArray) all = hn_node_reads(n);
    for (guint i = 0; i < all->len; i++)
        hn_channels_lock_value(c, all->pdata[i], n, reason);
    for (guint k = 0; k < n->out->len; k++)
        hn_channels_lock_value(c, n->out->pdata[k], n, reason);
}

/* The types of inputs with this size for symbols. How many values are of no fixed type, then, or have no elements that
 * would show where channels go. */
static guint types_with(HnChannels *c, int64_t size)
{
    const HnGraph *g = c->model->graph;
    guint unknown = 0;
    g_clear_pointer(&c->types, hn_types_free);
    c->types = hn_types_new(c->model);
    hn_types_set_budget(c->types, c->budget);
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        int64_t dims[HN_MAX_RANK];
        const HnType *t = !hn_value_is_weight(v) ? v->type : NULL;
        if (!hn_type_is_tensor(t) || t->rank < 0 || t->rank > HN_MAX_RANK)
            continue;
        for (int k = 0; k < t->rank; k++)
            dims[k] = t->dims[k].known ? t->dims[k].n : size;
        g_autoptr(HnType) fixed = hn_type_fixed(t->dtype, t->rank, dims);
        hn_types_set(c->types, v, fixed);
    }
    if (!hn_types_graph(c->types, c->model->graph, HN_TENSOR_SMALL, 0, NULL))
        return G_MAXUINT;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnValue *y = hn_node_out(g->nodes->pdata[i], 0);
        unknown += y != NULL && hn_type_count(hn_types_get(c->types, y)) == 0;
    }
    return unknown;
}

/* Channels have sizes that are known; all others, such as those of batches and images, may be anything that the model
 * takes. */
static void fix_sizes(HnChannels *c)
{
    static const int64_t sizes[] = { 4, 32, 224 };
    guint least = G_MAXUINT, best = 0;
    for (guint i = 0; i < G_N_ELEMENTS(sizes) && least > 0; i++) {
        const guint unknown = types_with(c, sizes[i]);
        if (unknown < least) {
            least = unknown;
            best = i;
        }
    }
    if (least > 0)
        types_with(c, sizes[best]);
    for (guint i = 0; i < c->model->graph->nodes->len; i++)
        hn_op_bind(c->model->graph->nodes->pdata[i], NULL);
}

static void align_weights(HnChannels *c)
{
    for (guint i = 0; i < c->model->graph->weights->len && c->error == NULL; i++) {
        HnTensor *t = ((HnValue *)c->model->graph->weights->pdata[i])->weight;
        if (t != NULL && t->dtype == HN_F32)
            hn_tensor_align(t, c->budget, &c->error);
    }
}

/* --- elements that are held apart to the end ---------------------------------------------------------------------- */

/* How many classes become one of another when those of each place along an axis are united. */
static guint unions_along(const HnTensor *ids, int axis, int *parent, guint n_classes)
{
    const float *id = ids->data;
    const int64_t n = ids->dims[axis];
    int64_t inner = 1;
    guint unions = 0;
    g_autofree int *first = g_new(int, (gsize)n + 1);
    for (guint k = 0; k < n_classes; k++)
        parent[k] = (int)k;
    for (int64_t i = 0; i < n; i++)
        first[i] = -1;
    for (int i = axis + 1; i < ids->ndim; i++)
        inner *= ids->dims[i];
    for (int64_t i = 0; i < ids->n; i++) {
        int *at = &first[i / inner % n];
        if (id[i] <= 0)
            continue;
        const int k = hn_forest_root(parent, (int)id[i] - 1), other = *at >= 0 ? hn_forest_root(parent, *at) : k;
        *at = k;
        unions += k != other;
        parent[MAX(k, other)] = MIN(k, other);
    }
    return unions;
}

/* The axis of v along which most classes stay apart. */
static int best_axis(HnChannels *c, const HnTensor *ids)
{
    const guint n = c->parent->len;
    g_autofree int *parent = g_new(int, n + 1);
    guint least = G_MAXUINT;
    int best = 0;
    for (int axis = 0; axis < ids->ndim; axis++) {
        const guint unions = unions_along(ids, axis, parent, n);
        best = unions < least ? axis : best;
        least = MIN(least, unions);
    }
    return best;
}

static gboolean has_free(const HnChannels *c, const HnTensor *ids)
{
    for (int64_t i = 0; i < ids->n; i++)
        if (((const float *)ids->data)[i] > 0 && hn_channels_locked(c, (int)((const float *)ids->data)[i] - 1) == NULL)
            return TRUE;
    return FALSE;
}

/* A tensor can only lose whole places along one of its axes. */
static void settle_apart(HnChannels *c)
{
    const GPtrArray *nodes = c->model->graph->nodes;
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        for (guint k = 0; k < n->out->len && c->error == NULL; k++) {
            const HnChannelPlace *p = hn_channels_place(c, n->out->pdata[k]);
            if (p == NULL || p->ids == NULL || !has_free(c, p->ids))
                continue;
            hn_channels_settle(c, p->ids);
            hn_channels_along(c, n->out->pdata[k], best_axis(c, p->ids));
        }
    }
}

HnChannels *hn_channels_new(HnModel *m, HnChannelBond bond, HnBudget *budget, GError **error)
{
    g_autoptr(HnChannels) c = g_new0(HnChannels, 1);
    c->model = m;
    c->bond = bond;
    c->budget = budget;
    c->parent = g_array_new(FALSE, FALSE, sizeof(int));
    c->reasons = g_array_new(FALSE, FALSE, sizeof(const char *));
    c->texts = g_string_chunk_new(256);
    c->n_places = m->n_values;
    c->places = g_new0(HnChannelPlace, c->n_places + 1u);
    c->lists = g_array_new(FALSE, FALSE, sizeof(List));
    c->members = g_ptr_array_new_with_free_func(g_free);
    c->clips = g_array_new(FALSE, FALSE, sizeof(HnClipped));
    c->stays = -1;
    if (bond == HN_BOND_FATE)
        fix_sizes(c);
    else
        align_weights(c);
    for (guint i = 0; i < m->graph->nodes->len && c->error == NULL; i++)
        follow_node(c, m->graph->nodes->pdata[i]);
    if (c->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&c->error));
        return NULL;
    }
    bind_shared(c);
    if (bond == HN_BOND_UNIT)
        bind_proportional(c);
    else
        settle_apart(c);
    if (c->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&c->error));
        return NULL;
    }
    for (guint i = 0; i < c->n_places; i++)
        g_clear_pointer(&c->places[i].ids, hn_tensor_unref);
    for (guint i = 0; i < c->lists->len; i++) {
        const List *l = &g_array_index(c->lists, List, i);
        for (int64_t k = 0; k < l->n; k++)
            l->at[k] = hn_channels_class(c, l->at[k]);
    }
    return g_steal_pointer(&c);
}

void hn_channels_free(HnChannels *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->n_places; i++)
        hn_tensor_unref(c->places[i].ids);
    while (c->lists->len > 0)
        hn_channels_drop_list(c);
    hn_budget_uncharge(c->budget, c->counted);
    hn_types_free(c->types);
    g_array_unref(c->lists);
    g_free(c->places);
    g_array_unref(c->parent);
    g_array_unref(c->reasons);
    g_string_chunk_free(c->texts);
    g_array_unref(c->clips);
    g_ptr_array_unref(c->members);
    g_clear_error(&c->error);
    g_free(c);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static void group_free(gpointer data)
{
    HnChannelGroup *g = data;
    g_array_unref(g->classes);
    g_array_unref(g->spans);
    g_free(g);
}

/* Another place of each class in the list lies along an axis of v. `of` has a GArray of HnChannelSpan for each class.
 */
static void add_span(GPtrArray *of, const HnValue *v, int axis, const int *at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        GArray **spans = (GArray **)&of->pdata[at[i]];
        if (*spans == NULL)
            *spans = g_array_new(FALSE, TRUE, sizeof(HnChannelSpan));
        HnChannelSpan *last = (*spans)->len > 0 ? &g_array_index(*spans, HnChannelSpan, (*spans)->len - 1) : NULL;
        const HnChannelSpan span = { v, axis, 1 };
        if (last != NULL && last->v == v && last->axis == axis)
            last->count++;
        else
            g_array_append_val(*spans, span);
    }
}

static gboolean same_classes(const int *a, const int *b, int64_t n)
{
    return a == b || (a != NULL && b != NULL && memcmp(a, b, (gsize)n * sizeof *a) == 0);
}

/* Both say the same of one weight. */
static gboolean same_member(const HnChannelMember *a, const HnChannelMember *b)
{
    if (a->axis != b->axis || a->n != b->n || !same_classes(a->out, b->out, a->n))
        return FALSE;
    return a->in_axis == b->in_axis && a->in_n == b->in_n && a->groups == b->groups &&
           same_classes(a->in, b->in, a->groups * a->in_n);
}

static GPtrArray *spans_of_classes(const HnChannels *c)
{
    GPtrArray *of = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL); /* weights -> their members */
    g_ptr_array_set_size(of, (int)c->parent->len);
    for (guint i = 0; i < c->model->graph->nodes->len; i++) {
        const HnNode *n = c->model->graph->nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            const HnChannelPlace *p = hn_channels_place(c, n->out->pdata[k]);
            if (p != NULL && p->at != NULL)
                add_span(of, n->out->pdata[k], p->axis, p->at, p->n);
        }
    }
    for (guint i = 0; i < c->members->len; i++) {
        const HnChannelMember *m = c->members->pdata[i];
        HnValue *w = weight_of_member(c, m);
        const HnChannelMember *first = g_hash_table_lookup(seen, w);
        if (first != NULL && same_member(first, m))
            continue;
        g_hash_table_insert(seen, w, (gpointer)m);
        add_span(of, w, m->axis, m->out, m->n);
        add_span(of, w, m->in_axis, m->in, m->groups * m->in_n);
    }
    return of;
}

/* What classes of one group have in common. */
static GBytes *signature(const GArray *spans, const char *reason)
{
    GByteArray *all = g_byte_array_new();
    for (guint i = 0; i < spans->len; i++) {
        const HnChannelSpan *s = &g_array_index(spans, HnChannelSpan, i);
        const int64_t words[] = { s->v->id, s->axis, s->count };
        g_byte_array_append(all, (const guint8 *)words, sizeof words);
    }
    g_byte_array_append(all, (const guint8 *)&reason, sizeof reason);
    return g_byte_array_free_to_bytes(all);
}

GPtrArray *hn_channels_groups(const HnChannels *c)
{
    GPtrArray *groups = g_ptr_array_new_with_free_func(group_free);
    g_autoptr(GPtrArray) spans = spans_of_classes(c);
    g_autoptr(GHashTable) found =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    for (int k = 0; k < (int)spans->len; k++) {
        if (spans->pdata[k] == NULL)
            continue;
        GBytes *key = signature(spans->pdata[k], hn_channels_locked(c, k));
        HnChannelGroup *g = g_hash_table_lookup(found, key);
        if (g == NULL) {
            g = g_new0(HnChannelGroup, 1);
            *g = (HnChannelGroup){ g_array_new(FALSE, FALSE, sizeof(int)), g_array_ref(spans->pdata[k]),
                                   hn_channels_locked(c, k) };
            g_ptr_array_add(groups, g);
            g_hash_table_insert(found, g_bytes_ref(key), g);
        }
        g_array_append_val(g->classes, k);
        g_bytes_unref(key);
        g_array_unref(spans->pdata[k]);
    }
    return groups;
}

char *hn_channels_describe(const HnChannels *c)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GPtrArray) groups = hn_channels_groups(c);
    for (guint i = 0; i < groups->len; i++) {
        const HnChannelGroup *g = groups->pdata[i];
        g_string_append_printf(out, "%u:", g->classes->len);
        for (guint k = 0; k < g->spans->len; k++) {
            const HnChannelSpan *s = &g_array_index(g->spans, HnChannelSpan, k);
            g_string_append_printf(out, " %s[%d]", s->v->name, s->axis);
            if (s->count > 1)
                g_string_append_printf(out, "x%d", (int)s->count);
        }
        if (g->locked != NULL)
            g_string_append_printf(out, "; locked: %s", g->locked);
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}
