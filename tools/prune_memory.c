/* hone-prune: how much memory the work takes, told before it begins. */
#include "base/text.h"
#include "check/session_need.h"
#include "hone_prune.h"
#include "op/infer.h"
#include "prune/moments.h"

#define SLACK 1.02 /* of what is counted: the rest is small */

typedef struct {
    const char *what;
    gsize bytes;
} Phase;

typedef struct {
    const HnTypes *types;
    GHashTable *bytes;
} NotedBytes;

/* Bytes of the weights of floats: those that pruning makes anew. */
static gsize weights_of(const HnModel *m)
{
    gsize bytes = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        bytes += t != NULL && hn_dtype_in(t->dtype, HN_T_FLOATS) ? t->bytes : 0;
    }
    return bytes;
}

static gsize inputs_of(const HnSample *s)
{
    gsize bytes = 0;
    for (int i = 0; i < s->n; i++)
        bytes += s->in[i] != NULL ? s->in[i]->bytes : 0;
    return bytes;
}

static gboolean makes_moments(const Prune *q)
{
    return !q->p->speed_only && (q->norm || q->bias || q->instead);
}

/* Copies of weights that are there while samples are looked at: what comes of pruning, of the best and the last choice
 * of widths, and of each sample that is left out in turn. */
static gsize copies_of(const Prune *q)
{
    const gboolean folds = !q->p->speed_only && prune_leaves_out(q);
    const gsize each = q->budget == PRUNE_ZEROS ? 2 : 1; /* with zeros, and fitted */
    const gsize repaired = 1 + (folds ? (gsize)q->held : 0);
    return each * (repaired + (prune_n_widths(q) > 1 ? 2 : 0)) + (makes_moments(q) ? repaired : 0);
}

/* What is kept of results to compare with, by what is to come. */
static gsize kept_of(const Prune *q, gsize results)
{
    if (q->p->speed_only)
        return 0;
    return hn_scorer_kept_bytes(q->held, results) +
           (prune_n_widths(q) > 1 ? hn_scorer_kept_bytes(MIN(q->calib, PRUNE_MOST_HELD), results) : 0);
}

static void note_bytes(HnNode *n, gpointer data)
{
    const NotedBytes *to = data;
    for (guint i = 0; i < n->out->len; i++) {
        const HnValue *v = n->out->pdata[i];
        const HnType *t = v != NULL ? hn_types_get(to->types, v) : NULL;
        int64_t dims[HN_MAX_RANK], all;
        gsize bytes;
        if (t != NULL && hn_type_is_tensor(t) && hn_type_is_fixed(t, dims) && hn_dims_count(t->rank, dims, &all) &&
            hn_dtype_bytes(t->dtype, all, &bytes))
            g_hash_table_insert(to->bytes, v->name, g_memdup2(&bytes, sizeof bytes));
    }
}

/* gsize * by name of a value, with the largest sample's types: those that are known without running. */
static GHashTable *bytes_of_values(const Prune *q)
{
    int n;
    const HnSample *s = q->largest;
    HnValue *const *inputs = hn_data_inputs(q->data, &n);
    g_autoptr(HnTypes) t = hn_types_new(q->dense);
    NotedBytes to = { t, g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free) };
    hn_types_set_budget(t, q->ctx->budget);
    for (int i = 0; i < n && i < s->n; i++) {
        const HnTensor *x = s->in[i];
        g_autoptr(HnType) type = x != NULL ? hn_type_fixed(x->dtype, x->ndim, x->dims) : NULL;
        if (type != NULL)
            hn_types_set(t, inputs[i], type);
    }
    (void)hn_types_graph(t, q->dense->graph, HN_TENSOR_SMALL, 0, NULL); /* what is known by then is right */
    hn_graph_foreach_node(q->dense->graph, note_bytes, &to);
    return to.bytes;
}

static gboolean need_of_sums(const Prune *q, gsize *bytes, GError **error)
{
    gsize curves = 0, moments = 0;
    *bytes = 0;
    if (q->o.data == NULL)
        return TRUE;
    if (makes_moments(q) && !q->o.fit && /* which takes more */
        !hn_moments_need(q->map, &q->o, &moments, error))
        return FALSE;
    if (q->budget == PRUNE_ZEROS) {
        if (!hn_zeros_need(q->map, &q->o, bytes, error))
            return FALSE;
        *bytes = MAX(*bytes, moments);
        return TRUE;
    }
    const gboolean widths = q->p->analyze || (q->budget != PRUNE_RATIO && q->budget != PRUNE_LAYERS);
    if ((widths && prune_chosen(q) == NULL && !hn_prune_curves_need(q->map, &q->o, &curves, error)) ||
        (!q->p->analyze && !hn_prune_need(q->map, &q->o, bytes, error)))
        return FALSE;
    *bytes = MAX(*bytes, MAX(curves, moments));
    return TRUE;
}

static gboolean refuse(const Prune *q, const Phase *phases, guint n, gsize most, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < n; i++) {
        g_autofree char *size = hn_text_size(phases[i].bytes);
        g_string_append_printf(text, "%s%s %s", i > 0 ? ", " : "", phases[i].what, size);
    }
    g_autofree char *needs = hn_text_size(most), *limit = hn_text_size(hn_budget_limit(q->ctx->budget));
    g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "pruning takes %s of memory, and the limit is %s: %s", needs, limit,
                text->str);
    return FALSE;
}

gboolean prune_plan_memory(Prune *q, GError **error)
{
    const gsize limit = hn_budget_limit(q->ctx->budget), used = hn_budget_used(q->ctx->budget),
                weights = weights_of(q->dense);
    if (limit == 0 || q->p->explain)
        return TRUE;
    HnSessionNeed dense;
    if ((q->largest = hn_data_load_largest(q->data, error)) == NULL ||
        !hn_session_need(q->dense, q->backend, q->ctx->common.threads, q->largest->in, limit > used ? limit - used : 1,
                         &dense, error))
        return FALSE;
    gsize sums, session = dense.values + dense.beside;
    q->memory = (HnPruneMemory){ q->largest->in, dense.values, dense.beside, bytes_of_values(q), G_MAXSIZE };
    q->o.memory = &q->memory;
    if (!need_of_sums(q, &sums, error))
        return FALSE;
    const gsize always = used + inputs_of(q->largest) + kept_of(q, dense.results), copies = weights * copies_of(q);
    Phase phases[] = {
        { "judging", always + q->file_before + session + dense.results },
        { "fitting weights", always + copies + weights + sums },
        { "comparing models", always + copies + 2 * (weights + session + dense.results) },
    };
    gsize most = 0;
    for (guint i = 0; i < G_N_ELEMENTS(phases); i++) {
        phases[i].bytes = (gsize)(SLACK * (double)phases[i].bytes) + HN_SPARE_BYTES;
        most = MAX(most, phases[i].bytes);
        g_autofree char *size = hn_text_size(phases[i].bytes);
        hn_context_note(q->ctx, 1, "memory for %s: %s", phases[i].what, size);
    }
    if (most > limit)
        return refuse(q, phases, G_N_ELEMENTS(phases), most, error);
    q->memory.room = (gsize)((double)(limit - HN_SPARE_BYTES) / SLACK) - (always + copies + weights);
    return TRUE;
}
