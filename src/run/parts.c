/*
 * Planning: a batch that is run part by part.
 *
 * What the steps of a large batch hand on to each other does not stay in the caches, and memory decides. Where the
 * samples have nothing to do with each other from the inputs to all results, a plan is made for some of them, and a run
 * runs its steps again and again, each time for the next ones: inputs and results, which hold one sample behind the
 * other, are looked at in pieces.
 *
 * Where the samples are in each value is told by the rules of the operators (op/batch.h) for the lowered graph as it
 * is: one that would have to change a node fails, and the batch stays whole. What nodes read beside the samples stays
 * what it is for the whole batch.
 */
#include <string.h>

#include "op/batch.h"
#include "run/plan.h"

/* What stays in the second and in the last cache from one step to the next; a byte from memory takes as long as some
 * from the last cache. */
#define NEAR_BYTES 1e6
#define LAST_BYTES 16e6
#define OF_MEMORY 3
#define STEP_BYTES 20e3 /* of the last cache: as long as a step takes that has nothing to do */
#define WORTH 0.8 /* of the time that a batch as a whole waits for caches and memory: where it is less, it is cut */

/* Of a node, for all samples. */
typedef struct {
    double all;    /* bytes that it reads and makes */
    double handed; /* of them, those that another node made or reads */
} Traffic;

typedef struct {
    HnPlan *p;
    GHashTable *places; /* HnValue * of the lowered graph -> HnBatchPlace * */
    int64_t n;          /* samples */
    GArray *traffic;    /* Traffic of each node that has samples */
    double weights;     /* bytes of what nodes read beside the samples: by each part anew */
} Cut;

/* --- where the samples are ---------------------------------------------------------------------------------------- */

static HnBatchPlace place_of(const Cut *c, const HnValue *v)
{
    const HnBatchPlace *at = v != NULL ? g_hash_table_lookup(c->places, v) : NULL;
    return at != NULL ? *at : hn_batch_none();
}

static HnValue *no_value(HnBatch *b)
{
    hn_batch_may_edit(b);
    return NULL;
}

static gboolean no_graph(HnBatch *b, G_GNUC_UNUSED HnGraph *g, G_GNUC_UNUSED int n,
                         G_GNUC_UNUSED const HnBatchFormal *in, G_GNUC_UNUSED HnBatchFormal *out)
{
    return hn_batch_may_edit(b);
}

static gboolean no_settling(HnBatch *b, G_GNUC_UNUSED HnGraph *g, G_GNUC_UNUSED int k, G_GNUC_UNUSED int axis)
{
    return hn_batch_may_edit(b);
}

static gboolean no_select(HnBatch *b, G_GNUC_UNUSED HnGraph *const branch[2])
{
    return hn_batch_may_edit(b);
}

static HnValue *no_node(HnBatch *b, G_GNUC_UNUSED const char *op, G_GNUC_UNUSED HnValue *const *in,
                        G_GNUC_UNUSED int n_in, G_GNUC_UNUSED const char *attr, G_GNUC_UNUSED int64_t v,
                        G_GNUC_UNUSED int k)
{
    return no_value(b);
}

/* Elements are whole bytes, and nobody's but the value's. */
static gboolean has_parts(const HnType *t)
{
    return t != NULL && t->kind == HN_TYPE_TENSOR && t->dtype != HN_STRING && hn_dtype_bits(t->dtype) >= 8;
}

/* Parts of a value with samples at such a place, and their number, come out even. */
static gboolean fits(const Cut *c, const HnType *t, const HnBatchPlace *at)
{
    if (!has_parts(t))
        return FALSE;
    if (at->axis < 0 || at->axis >= t->rank || !at->outer.known || !at->inner.known)
        return FALSE;
    return hn_dim_is(t->dims[at->axis], at->outer.n * c->n * at->inner.n);
}

static double bytes_of(const HnType *t)
{
    return hn_type_count(t) * hn_dtype_bits(t->dtype) / 8;
}

static void add_traffic(Traffic *t, const HnValue *v, const HnType *type)
{
    t->all += bytes_of(type);
    t->handed += v->producer != NULL && !v->is_output ? bytes_of(type) : 0;
}

/* Notes where the node's results have their samples. FALSE: they may depend on each other, or nobody knows. */
static gboolean follow(Cut *c, HnNode *n)
{
    const HnTypes *types = c->p->types;
    const int n_in = (int)n->in->len, n_out = (int)n->out->len;
    g_autofree HnBatchIn *in = g_new0(HnBatchIn, n_in + 1);
    g_autofree HnBatchPlace *out = g_new0(HnBatchPlace, n_out + 1);
    g_autofree HnType **was = g_new0(HnType *, n_out + 1);
    Traffic traffic = { 0, 0 };
    gboolean any = FALSE;
    for (int i = 0; i < n_in; i++) {
        HnValue *v = hn_node_in(n, i);
        HnType *t = v != NULL ? hn_types_get(types, v) : NULL;
        in[i] = (HnBatchIn){ v, t, t, place_of(c, v) };
        any = any || in[i].at.axis >= 0;
        if (in[i].at.axis >= 0)
            add_traffic(&traffic, v, t);
        else if (v != NULL && hn_types_value(types, v) != NULL)
            c->weights += (double)hn_types_value(types, v)->bytes;
    }
    for (int k = 0; k < n_out; k++) {
        out[k] = hn_batch_none();
        was[k] = hn_node_out(n, k) != NULL ? hn_types_get(types, hn_node_out(n, k)) : NULL;
    }
    void (*const rule)(HnBatch * b) = hn_batch_rule(n->op);
    if ((n->op->flags & (HN_OP_CONTROL | HN_OP_RANDOM)) != 0)
        return FALSE;
    if (!any)
        return TRUE;
    if (rule == NULL || (n->op->flags & HN_OP_SHAPE_ONLY) != 0)
        return FALSE;
    HnBatch b = { .node = n,
                  .params = n->params,
                  .types = c->p->types,
                  .n_in = n_in,
                  .n_out = n_out,
                  .in = in,
                  .was_out = was,
                  .out = out,
                  .n = hn_dim(c->n),
                  .n0 = c->n,
                  .stays = TRUE,
                  .size = no_value,
                  .graph = no_graph,
                  .settle = no_settling,
                  .select = no_select,
                  .apart = hn_batch_may_edit,
                  .make = no_node };
    rule(&b);
    gboolean ok = b.error == NULL && !b.gone;
    g_clear_error(&b.error);
    for (int k = 0; k < n_out && ok; k++) {
        HnValue *v = hn_node_out(n, k);
        if (v == NULL)
            continue;
        ok = fits(c, was[k], &out[k]);
        if (ok)
            add_traffic(&traffic, v, was[k]);
        g_hash_table_insert(c->places, v, g_memdup2(&out[k], sizeof out[k]));
    }
    g_array_append_val(c->traffic, traffic);
    return ok;
}

/* The first size of the first input that has one: all others of that size hold samples, too, or a node refuses. */
static gboolean find_inputs(Cut *c)
{
    const GPtrArray *inputs = c->p->low->model->graph->inputs;
    for (guint i = 0; i < inputs->len; i++) {
        const HnType *t = hn_types_get(c->p->types, inputs->pdata[i]);
        if (!hn_type_is_fixed(t, NULL))
            return FALSE;
        if (t->rank == 0 || t->dims[0].n < 2 || (c->n != 0 && t->dims[0].n != c->n))
            continue;
        if (!has_parts(t))
            return FALSE;
        const HnBatchPlace at = hn_batch_place(0);
        c->n = t->dims[0].n;
        g_hash_table_insert(c->places, inputs->pdata[i], g_memdup2(&at, sizeof at));
    }
    return c->n > 1;
}

/* One sample behind the other, in memory that a step makes. */
static gboolean is_result(const Cut *c, const HnValue *v)
{
    const HnBatchPlace at = place_of(c, v);
    const HnType *t = hn_types_get(c->p->types, v);
    gboolean apart = at.axis >= 0 && hn_dim_is(at.outer, 1);
    for (int a = 0; a < at.axis && apart; a++)
        apart = hn_dim_is(t->dims[a], 1);
    while (v->producer != NULL && (v->producer->op->flags & HN_OP_VIEW) != 0)
        v = hn_node_in(v->producer, 0);
    return apart && v->producer != NULL;
}

static gboolean find_places(Cut *c)
{
    const HnGraph *g = c->p->low->model->graph;
    const GPtrArray *results = c->p->exec->graph->outputs;
    for (guint k = 0; k < results->len; k++)
        if (hn_types_value(c->p->known, results->pdata[k]) != NULL || ((const HnValue *)results->pdata[k])->is_input)
            return FALSE;
    if (!find_inputs(c))
        return FALSE;
    for (guint i = 0; i < g->nodes->len; i++)
        if (!follow(c, g->nodes->pdata[i]))
            return FALSE;
    for (guint k = 0; k < g->outputs->len; k++)
        if (!is_result(c, g->outputs->pdata[k]))
            return FALSE;
    return g->outputs->len > 0;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* How far away a byte is that was used so many bytes ago. */
static double distance(double bytes)
{
    return bytes > LAST_BYTES ? OF_MEMORY : bytes > NEAR_BYTES ? 1 : 0;
}

/* Bytes by their distance when a part has so many samples: what nodes hand on, and steps and weights for each part. */
static double far_bytes(const Cut *c, int64_t samples)
{
    const double part = (double)samples / (double)c->n;
    double far = (c->weights * MAX(1, distance(c->weights)) + STEP_BYTES * c->traffic->len) / part;
    for (guint i = 0; i < c->traffic->len; i++) {
        const Traffic *t = &g_array_index(c->traffic, Traffic, i);
        far += t->handed * distance(t->all * part);
    }
    return far;
}

static double most_bytes(const Cut *c)
{
    double most = 0;
    for (guint i = 0; i < c->traffic->len; i++)
        most = MAX(most, g_array_index(c->traffic, Traffic, i).all);
    return most;
}

/* Parts of the size that gets the fewest bytes from far, the larger of equals, where that is worth it. */
static int64_t samples_of_part(const Cut *c)
{
    const gsize given = c->p->exec->env->o.part_bytes;
    if (given == 0 && c->p->exec->env->o.threads > 1) /* which have more to share in a whole batch */
        return c->n;
    const double most = given > 0 ? most_bytes(c) / (double)c->n : 0;
    double least = given > 0 ? 0 : WORTH * far_bytes(c, c->n);
    int64_t best = given > 0 ? 1 : c->n;
    for (int64_t d = 1; d * d <= c->n; d++)
        for (int i = 0; i < 2 && c->n % d == 0; i++) {
            const int64_t samples = i == 0 ? d : c->n / d;
            if (given > 0) {
                best = most * (double)samples <= (double)given ? MAX(best, samples) : best;
                continue;
            }
            const double far = far_bytes(c, samples);
            if (far < least || (far == least && samples > best && best < c->n)) {
                least = far;
                best = samples;
            }
        }
    return best;
}

static void shrink(gpointer value, gpointer place, gpointer data)
{
    const Cut *c = data;
    const HnBatchPlace *at = place;
    const HnType *t = hn_types_get(c->p->types, value);
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < t->rank; a++)
        dims[a] = t->dims[a];
    dims[at->axis] = hn_dim(t->dims[at->axis].n / c->p->parts);
    g_autoptr(HnType) part = hn_type_tensor(t->dtype, t->rank, dims);
    hn_types_set(c->p->types, value, part);
}

/* The plan's inputs, whose slots were made for all samples. */
static void shrink_inputs(const Cut *c)
{
    HnPlan *p = c->p;
    const GPtrArray *inputs = p->low->model->graph->inputs;
    p->pieces = g_array_new(FALSE, FALSE, sizeof(HnPiece));
    for (guint i = 0; i < inputs->len; i++) {
        HnSlot *s = hn_plan_find_slot(p, inputs->pdata[i]);
        guint at;
        if (place_of(c, inputs->pdata[i]).axis < 0 || !g_ptr_array_find(p->inputs, s, &at))
            continue;
        int64_t dims[HN_MAX_RANK];
        memcpy(dims, s->tensor->dims, (gsize)s->tensor->ndim * sizeof *dims);
        dims[0] /= p->parts;
        HnTensor *part = hn_tensor_new_borrowed(s->tensor->dtype, s->tensor->ndim, dims, NULL);
        hn_tensor_unref(s->tensor);
        s->tensor = part;
        g_array_append_val(p->pieces, ((HnPiece){ s, NULL, (int)at }));
    }
}

void hn_plan_cut(HnPlan *p)
{
    const HnRunEnv *env = p->exec->env;
    Cut c = { .p = p };
    if (p->exec->owner != NULL || p->before != NULL || !p->last || env->engine->variables->len > 0)
        return;
    if (env->backend->memory != NULL || !env->backend->lowers || !env->backend->computes)
        return;
    if (env->o.watch != NULL || env->o.lasting || env->o.part_bytes == G_MAXSIZE)
        return;
    c.places = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    c.traffic = g_array_new(FALSE, FALSE, sizeof(Traffic));
    if (find_places(&c)) {
        p->parts = (int)(c.n / samples_of_part(&c));
        if (p->parts > 1) {
            g_hash_table_foreach(c.places, shrink, &c);
            shrink_inputs(&c);
        }
    }
    g_array_unref(c.traffic);
    g_hash_table_unref(c.places);
}

/* --- memory of all samples ---------------------------------------------------------------------------------------- */

static HnPiece *piece_of(const HnPlan *p, const HnSlot *s)
{
    for (guint i = 0; i < p->pieces->len; i++) {
        HnPiece *piece = &g_array_index(p->pieces, HnPiece, i);
        if (piece->slot == s)
            return piece;
    }
    return NULL;
}

gboolean hn_plan_own_wholes(HnPlan *p, GError **error)
{
    p->wholes = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint k = 0; k < p->results->len; k++) {
        const HnSlot *s = p->results->pdata[k];
        const HnType *type = hn_types_get(p->known, p->exec->graph->outputs->pdata[k]);
        int64_t dims[HN_MAX_RANK];
        HnSlot *root = hn_slot_root(p->results->pdata[k]);
        const HnPiece *there = piece_of(p, root);
        hn_type_is_fixed(type, dims);
        HnTensor *t = there != NULL ? hn_tensor_reshaped(there->whole, type->rank, dims)
                                    : hn_tensor_new(s->tensor->dtype, type->rank, dims, p->exec->env->o.budget, error);
        if (t == NULL)
            return FALSE;
        g_ptr_array_add(p->wholes, t);
        if (there == NULL)
            g_array_append_val(p->pieces, ((HnPiece){ root, hn_tensor_ref(t), -1 }));
    }
    return TRUE;
}

gboolean hn_plan_feed(HnPlan *p, int i, HnTensor *t)
{
    for (guint k = 0; p->parts > 1 && k < p->pieces->len; k++) {
        HnPiece *piece = &g_array_index(p->pieces, HnPiece, k);
        if (piece->input != i)
            continue;
        hn_tensor_ref(t);
        hn_tensor_unref(piece->whole);
        piece->whole = t;
        return TRUE;
    }
    return FALSE;
}

void hn_plan_begin_part(const HnPlan *p, int part)
{
    for (guint k = 0; p->parts > 1 && k < p->pieces->len; k++) {
        const HnPiece *piece = &g_array_index(p->pieces, HnPiece, k);
        HnTensor *t = piece->slot->tensor;
        t->data = (char *)piece->whole->data + (gsize)part * t->bytes;
    }
}

void hn_plan_forget_pieces(HnPlan *p)
{
    for (guint k = 0; p->pieces != NULL && k < p->pieces->len; k++)
        hn_tensor_unref(g_array_index(p->pieces, HnPiece, k).whole);
    g_clear_pointer(&p->pieces, g_array_unref);
    g_clear_pointer(&p->wholes, g_ptr_array_unref);
}
