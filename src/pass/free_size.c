#include "pass/free_size.h"

#include <string.h>

#include "base/error.h"
#include "ir/copy.h"
#include "op/infer.h"
#include "op/ops.h"
#include "pass/lib/forget_types.h"

#define FOLD ((gsize)1 << 16)

typedef struct {
    HnModel *m;
    HnTypes *was, *now;
} Sizes;

/* --- views -------------------------------------------------------------------------------------------------------- */

/* Neighbouring axes of input and output that hold the same elements: [a, a_end) and [c, c_end). */
typedef struct {
    int a, a_end, c, c_end;
} Group;

static gboolean next_group(const HnType *from, const HnType *to, Group *g)
{
    int64_t x = 1, y = 1;
    g->a = g->a_end;
    g->c = g->c_end;
    if (g->a == from->rank && g->c == to->rank)
        return FALSE;
    do {
        if (g->a_end < from->rank && (x <= y || g->c_end == to->rank))
            x *= from->dims[g->a_end++].n;
        else if (g->c_end < to->rank)
            y *= to->dims[g->c_end++].n;
        else
            return FALSE;
    } while (x != y);
    while (g->a_end < from->rank && g->c_end == to->rank && from->dims[g->a_end].n == 1)
        g->a_end++;
    while (g->c_end < to->rank && g->a_end == from->rank && to->dims[g->c_end].n == 1)
        g->c_end++;
    return TRUE;
}

/* Sizes of the output's axes of a group, whose elements are as many as those of the input's are now. */
static gboolean resize_group(const HnType *was, const HnType *now, const HnType *to, const Group *g, HnDim *dims)
{
    HnDim all = hn_dim(1);
    gboolean same = TRUE;
    for (int a = g->a; a < g->a_end; a++) {
        all = hn_dim_mul(all, now->dims[a]);
        same = same && hn_dim_equal(now->dims[a], was->dims[a]);
    }
    for (int c = g->c; c < g->c_end; c++)
        dims[c] = to->dims[c];
    for (int c = g->c; c < g->c_end && !same; c++) {
        HnDim rest = hn_dim(1);
        for (int k = g->c; k < g->c_end; k++)
            rest = k == c ? rest : hn_dim_mul(rest, to->dims[k]);
        const HnDim d = hn_dim_floor_div(all, rest);
        same = hn_dim_equal(hn_dim_mul(d, rest), all);
        dims[c] = same ? d : dims[c];
    }
    return same;
}

/* Sizes that a list can say: 0 for one that the input has at the same place, and one -1. */
static gboolean list_of(const HnType *now, const HnDim *dims, int rank, int64_t *list)
{
    int open = 0;
    for (int c = 0; c < rank; c++) {
        const gboolean copied = !dims[c].known && c < now->rank && hn_dim_equal(now->dims[c], dims[c]);
        list[c] = dims[c].known ? dims[c].n : copied ? 0 : -1;
        open += list[c] < 0;
    }
    return open <= 1;
}

/* A Reshape to a constant shape, of something that has another size now. */
static gboolean follow(Sizes *s, HnNode *n, GError **error)
{
    const HnType *was = hn_types_get(s->was, hn_node_in(n, 0)), *now = hn_types_get(s->now, hn_node_in(n, 0));
    const HnType *to = hn_types_get(s->was, hn_node_out(n, 0));
    HnDim dims[HN_MAX_RANK];
    int64_t list[HN_MAX_RANK], fixed[HN_MAX_RANK];
    Group g = { 0 };
    if (n->op != &hn_op_reshape || hn_types_value(s->now, hn_node_in(n, 1)) == NULL || hn_type_equal(was, now) ||
        !hn_type_is_fixed(was, fixed) || !hn_type_is_fixed(to, fixed) || hn_type_rank(now) != was->rank)
        return TRUE;
    gboolean fits = TRUE;
    while (fits && next_group(was, to, &g))
        fits = resize_group(was, now, to, &g, dims);
    if (!fits || !list_of(now, dims, to->rank, list)) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "its shape is for one size only");
        return FALSE;
    }
    g_autoptr(HnTensor) t = hn_tensor_ints(list, to->rank);
    HnValue *v = hn_graph_new_value(n->graph, "sizes");
    hn_graph_add_weight(n->graph, v, t);
    hn_types_set_value(s->now, v, t);
    hn_node_set_in(n, 1, v);
    if (hn_node_attr(n, "allowzero") != NULL)
        hn_node_remove_attr(n, "allowzero");
    return TRUE;
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static gboolean walk(Sizes *s, HnGraph *g, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_copy(g->nodes, NULL, NULL);
    for (guint i = 0; i < nodes->len; i++) {
        HnNode *n = nodes->pdata[i];
        GError *failure = NULL;
        g_autofree char *label = g_strdup_printf("'%s' (%s): ", hn_node_label(n), n->op_type);
        const HnType *was =
            n->out->len > 0 && hn_node_out(n, 0) != NULL ? hn_types_get(s->was, hn_node_out(n, 0)) : NULL;
        gboolean ok = hn_op_bind(n, &failure) && follow(s, n, &failure) && hn_types_node(s->now, n, FOLD, &failure);
        const HnType *now = ok && was != NULL ? hn_types_get(s->now, hn_node_out(n, 0)) : NULL;
        if (now != NULL && hn_type_rank(now) != hn_type_rank(was)) {
            g_set_error(&failure, HN_ERROR, HN_ERROR_GUARD, "its rank follows from the size");
            ok = FALSE;
        }
        if (ok)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s%s", label, failure->message);
        g_error_free(failure);
        return FALSE;
    }
    return TRUE;
}

/* Dimensions of other sizes than the first have names of their own, "size3". */
static gboolean set_free(const HnModel *m, const HnFreeDim *d, const char *symbol, int64_t *first, GError **error)
{
    HnValue *v = g_hash_table_lookup(m->graph->values, d->input);
    HnDim dims[HN_MAX_RANK];
    if (v == NULL || !v->is_input || hn_type_rank(v->type) <= d->axis || v->type->rank > HN_MAX_RANK) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the model has no input '%s' with a fixed dimension %d", d->input,
                    d->axis);
        return FALSE;
    }
    memcpy(dims, v->type->dims, (gsize)v->type->rank * sizeof *dims);
    const int64_t n = v->type->dims[d->axis].n;
    *first = *first == 0 ? n : *first;
    g_autofree char *own = g_strdup_printf("%s%d", symbol, d->axis);
    dims[d->axis] = hn_dim_symbol(n == *first ? symbol : own);
    g_autoptr(HnType) type = hn_type_tensor(v->type->dtype, v->type->rank, dims);
    hn_value_set_type(v, type);
    return TRUE;
}

gboolean hn_free_size(const HnModel *m, const HnFreeDim *dims, guint n, const char *symbol, HnBudget *budget,
                      HnModel **out, GError **error)
{
    Sizes s = { .m = hn_model_copy(m) };
    HnGraph *g = s.m->graph;
    s.was = hn_types_new(s.m);
    s.now = hn_types_new(s.m);
    hn_types_set_budget(s.was, budget);
    hn_types_set_budget(s.now, budget);
    int64_t first = 0;
    gboolean ok = hn_types_graph(s.was, g, FOLD, 0, error);
    hn_pass_forget_types(g);
    for (guint i = 0; i < n && ok; i++)
        ok = set_free(s.m, &dims[i], symbol, &first, error);
    ok = ok && hn_types_enter(s.now, g, TRUE, error) && walk(&s, g, error) && hn_graph_infer(g, FALSE, error) &&
         hn_model_verify(s.m, error);
    hn_types_free(s.was);
    hn_types_free(s.now);
    if (!ok)
        hn_model_free(s.m);
    *out = ok ? s.m : NULL;
    return ok;
}
