#include "data/open_sizes.h"

#include "base/error.h"
#include "data/interface.h"
#include "op/infer.h"

#define FOLD_BYTES ((gsize)1 << 16) /* what shapes are computed from is small */

int64_t hn_open_size(int i)
{
    static const int64_t sizes[] = { 1,   2,   8,   16,  32,   64,   128,  224,  256,
                                     320, 512, 576, 640, 1024, 2048, 4096, 8192, 16000 };
    return i < (int)G_N_ELEMENTS(sizes) ? sizes[i] : 0;
}

static gboolean has_no_name(HnDim d)
{
    return !d.known && d.sym == NULL;
}

static gboolean is_nameless(const HnValue *x)
{
    for (int a = 1; a < hn_type_rank(x->type); a++)
        if (has_no_name(x->type->dims[a]))
            return TRUE;
    return FALSE;
}

guint hn_open_nameless(const HnValue *const *inputs, int n)
{
    guint count = 0;
    for (int i = 0; i < n && count < HN_OPEN_NAMELESS; i++)
        count += is_nameless(inputs[i]);
    return count;
}

/* --shapes is the only way to give a dimension without a name a size. */
static void fill_nameless(HnShapes *s, const HnValue *x, const HnOpenSizes *z, gboolean small)
{
    const HnType *t = x->type;
    int64_t dims[HN_MAX_RANK], n;
    if (hn_type_rank(t) <= 0 || t->rank > HN_MAX_RANK || hn_shapes_says(s, x, 0, &n))
        return;
    for (int a = 0; a < t->rank; a++)
        dims[a] = t->dims[a].known ? t->dims[a].n : a == 0 || small ? z->first : t->dims[a].sym == NULL ? z->other : 1;
    for (int a = 0; a < t->rank; a++)
        if (t->dims[a].sym != NULL && hn_shapes_says(s, x, a, &n))
            dims[a] = n;
    hn_shapes_set(s, x->name, dims, t->rank);
}

gboolean hn_open_sizes_fill(HnShapes *s, const HnValue *const *inputs, int n, const HnOpenSizes *z)
{
    gboolean open = FALSE;
    guint nameless = 0;
    int64_t size;
    for (int pass = 0; pass < 2; pass++) { /* what is in front somewhere counts as such everywhere */
        for (int i = 0; i < n; i++) {
            const HnValue *x = inputs[i];
            const HnType *t = x->type;
            for (int a = 0; a < hn_type_rank(t); a++) {
                open = open || !t->dims[a].known;
                if ((a == 0) == (pass == 0) && t->dims[a].sym != NULL && !hn_shapes_says(s, x, a, &size))
                    hn_shapes_set_dim(s, t->dims[a].sym, pass == 0 ? z->first : z->other);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        const HnValue *x = inputs[i];
        const gboolean unnamed = is_nameless(x), first = hn_type_rank(x->type) > 0 && has_no_name(x->type->dims[0]);
        if (unnamed || first)
            fill_nameless(s, x, z, unnamed && (z->small >> nameless & 1) != 0);
        nameless += unnamed && nameless < HN_OPEN_NAMELESS;
    }
    return open;
}

/* --- what a model accepts ---------------------------------------------------------------------------------------- */

/* Gives the inputs types of these sizes. FALSE: one has no shape, which the data will tell. */
static gboolean set_inputs(HnTypes *t, const HnShapes *s, HnValue *const *inputs, HnTensor *const *given, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t dims[HN_MAX_RANK], count;
        if (given[i] != NULL) {
            hn_types_set_value(t, inputs[i], given[i]);
            continue;
        }
        const int rank = hn_shapes_dims(s, inputs[i], dims, NULL);
        const HnType *type = inputs[i]->type;
        while (type != NULL && type->kind == HN_TYPE_OPTIONAL)
            type = type->elem;
        if (rank < 0 || !hn_dims_count(rank, dims, &count))
            return FALSE;
        g_autoptr(HnType) fixed = hn_type_fixed(type->dtype, rank, dims);
        hn_types_set(t, inputs[i], fixed);
    }
    return TRUE;
}

/* An output of no elements: a window had no place, say. */
static gboolean is_void(const HnTypes *t, const HnGraph *g)
{
    for (guint i = 0; i < g->outputs->len; i++) {
        const HnType *type = hn_types_get(t, g->outputs->pdata[i]);
        for (int a = 0; a < hn_type_rank(type); a++)
            if (hn_dim_is(type->dims[a], 0))
                return TRUE;
    }
    return FALSE;
}

/* *ok: all types follow from these sizes, and no output is void. */
static gboolean try_sizes(const HnShapes *s, HnValue *const *inputs, HnTensor *const *given, int n, HnBudget *budget,
                          gboolean *ok, GError **error)
{
    HnGraph *g = inputs[0]->graph;
    g_autoptr(HnTypes) t = hn_types_new(g->model);
    GError *failure = NULL;
    hn_types_set_budget(t, budget);
    *ok = set_inputs(t, s, inputs, given, n) && hn_types_enter(t, g, TRUE, &failure);
    for (guint i = 0; i < g->nodes->len && *ok; i++)
        *ok = hn_types_node(t, g->nodes->pdata[i], FOLD_BYTES, &failure);
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET) ||
        g_error_matches(failure, HN_ERROR, HN_ERROR_INTERRUPTED)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    g_clear_error(&failure);
    *ok = *ok && !is_void(t, g);
    return TRUE;
}

/* Of the inputs that `small` counts, those that an output feeds: but for the batch their sizes are mostly known. */
static guint states_of(HnValue *const *inputs, int n)
{
    guint states = 0, at = 0;
    for (int i = 0; i < n && at < HN_OPEN_NAMELESS; i++) {
        HnSeems seems;
        if (!is_nameless(inputs[i]))
            continue;
        hn_seems(inputs[i]->graph->model, inputs[i], &seems);
        states |= (seems.role == HN_ROLE_STATE ? 1u : 0u) << at++;
    }
    return states;
}

gboolean hn_open_sizes_fit(HnShapes *s, HnValue *const *inputs, HnTensor *const *given, int n, HnBudget *budget,
                           GError **error)
{
    const HnValue *const *in = (const HnValue *const *)inputs;
    const guint forms = 1u << hn_open_nameless(in, n), states = states_of(inputs, n);
    for (int i = 0; n > 0 && hn_open_size(i) > 0; i++) {
        for (guint small = 0; small < (i == 0 ? 1 : forms); small++) {
            const HnOpenSizes z = { 1, hn_open_size(i), small ^ states };
            g_autoptr(HnShapes) trial = hn_shapes_copy(s);
            gboolean ok;
            if (!hn_open_sizes_fill(trial, in, n, &z))
                return TRUE;
            if (!try_sizes(trial, inputs, given, n, budget, &ok, error))
                return FALSE;
            if (!ok)
                continue;
            if (i > 0)
                hn_open_sizes_fill(s, in, n, &z);
            return TRUE;
        }
    }
    return TRUE;
}
