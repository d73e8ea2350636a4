/* hone-distill --pair: features of the teacher that the student's are to be like, through a linear map where they are
 * not of one width. The maps learn with the student, and are of the step's copy of it alone. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "hone_distill.h"
#include "ir/build.h"

/* A pair of values, "teacher:student". */
typedef struct {
    char *t, *s;
    int axis; /* along which the widths differ; -1: they do not */
    int rank;
    int64_t from, to; /* widths: the student's, the teacher's */
    HnObjective *loss;
} Pair;

static void pair_clear(gpointer data)
{
    Pair *p = data;
    g_free(p->t);
    g_free(p->s);
}

static gboolean has(const HnModel *m, const char *name)
{
    return g_hash_table_contains(m->graph->values, name);
}

/* Names may have colons: the first place where both halves are names. */
static gboolean parse_pair(const char *text, const HnModel *student, const HnModel *teacher, Pair *p, GError **error)
{
    for (const char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ':')) {
        g_autofree char *t = g_strndup(text, (gsize)(at - text));
        if (!has(teacher, t) || !has(student, at + 1))
            continue;
        *p = (Pair){ .t = g_steal_pointer(&t), .s = g_strdup(at + 1), .axis = -1 };
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                "option '--pair': '%s' is no value of the teacher, a colon, and a value of the student", text);
    return FALSE;
}

/* --- what is compared --------------------------------------------------------------------------------------------- */

static HnObjective *add_objective(GPtrArray *all, const char *value, const char *like)
{
    g_autoptr(GPtrArray) one = hn_objectives_parse("mse", NULL);
    HnObjective *o = g_ptr_array_steal_index(one, 0);
    o->value = g_strdup(value);
    o->like = g_strdup(like);
    g_ptr_array_add(all, o);
    return o;
}

/* What m, which is taken, makes of the first batch: of each pair its value. */
static HnTensor **features(const Distill *q, HnModel *m, const GArray *pairs, gboolean of_teacher, GError **error)
{
    g_autoptr(GPtrArray) values = hn_objectives_new();
    HnForwardOptions o = distill_forward(q);
    for (guint i = 0; i < pairs->len; i++) {
        const Pair *p = &g_array_index(pairs, Pair, i);
        add_objective(values, p->s, of_teacher ? p->t : NULL);
    }
    o.like = of_teacher ? q->plain->graph : NULL;
    g_autoptr(HnForward) f = hn_forward_new(m, values, &o, error);
    HnTensor **out = g_new0(HnTensor *, pairs->len + 1);
    if (f != NULL && hn_forward_run(f, q->sample->in, out, error)) {
        gboolean ok = TRUE;
        for (guint i = 0; i < pairs->len; i++) { /* a session's results go with it */
            HnTensor *copy = hn_tensor_copy(out[i], q->ctx->budget, ok ? error : NULL);
            hn_tensor_unref(out[i]);
            ok = (out[i] = copy) != NULL && ok;
        }
        if (ok)
            return out;
    }
    for (guint i = 0; i < pairs->len; i++)
        g_clear_pointer(&out[i], hn_tensor_unref);
    g_free(out);
    return NULL;
}

/* One axis, channels or the last one, may be of another length. */
static gboolean match(Pair *p, const HnTensor *s, const HnTensor *t, GError **error)
{
    int differ = 0;
    for (int a = 0; a < MIN(s->ndim, t->ndim); a++)
        if (s->dims[a] != t->dims[a]) {
            p->axis = a;
            differ++;
        }
    p->rank = s->ndim;
    if (s->ndim == t->ndim && differ == 0)
        return TRUE;
    if (s->ndim == t->ndim && differ == 1 && (p->axis == s->ndim - 1 || (p->axis == 1 && s->ndim > 2)) && p->axis > 0) {
        p->from = s->dims[p->axis];
        p->to = t->dims[p->axis];
        return TRUE;
    }
    g_autofree char *is = hn_tensor_describe(s), *wants = hn_tensor_describe(t);
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                "option '--pair': '%s' is %s and '%s' is %s, which differ in more than channels", p->t, wants, p->s,
                is);
    return FALSE;
}

static gboolean match_all(Distill *q, GArray *pairs, HnModel *student, HnModel *teacher, GError **error)
{
    HnTensor **s = features(q, student, pairs, FALSE, error), **t = NULL;
    if (s != NULL)
        t = features(q, teacher, pairs, TRUE, error);
    else
        hn_model_free(teacher);
    gboolean ok = s != NULL && t != NULL;
    for (guint i = 0; i < pairs->len; i++) {
        Pair *p = &g_array_index(pairs, Pair, i);
        ok = ok && match(p, s[i], t[i], error);
        if (ok) {
            p->loss = add_objective(q->objectives, p->s, p->t);
            HnTargetSums sums = { 0 };
            hn_target_sums_add(&sums, t[i]);
            const double weight = hn_target_sums_weight(&sums);
            p->loss->weight = weight > 0 ? weight : 1;
        }
    }
    for (guint i = 0; i < pairs->len; i++) {
        if (s != NULL)
            hn_tensor_unref(s[i]);
        if (t != NULL)
            hn_tensor_unref(t[i]);
    }
    g_free(s);
    g_free(t);
    return ok;
}

gboolean distill_open_pairs(Distill *q, GError **error)
{
    q->n_judged = q->objectives->len;
    if (q->p->pair == NULL)
        return TRUE;
    if (q->p->teacher == NULL)
        return hn_tool_usage(error, "'--pair' is about a '--teacher', and there is none");
    HnModel *teacher = NULL, *student = distill_student(q, error);
    g_auto(GStrv) texts = g_strsplit(q->p->pair, ",", -1);
    q->pairs = g_array_new(FALSE, TRUE, sizeof(Pair));
    g_array_set_clear_func(q->pairs, pair_clear);
    gboolean ok = student != NULL && distill_read_teacher(q, &teacher, error);
    for (int i = 0; ok && texts[i] != NULL; i++) {
        Pair p = { 0 };
        if ((ok = parse_pair(texts[i], student, teacher, &p, error)))
            g_array_append_val(q->pairs, p);
    }
    if (ok)
        return match_all(q, q->pairs, student, teacher, error);
    hn_model_free(student);
    hn_model_free(teacher);
    return FALSE;
}

void distill_show_pairs(const Distill *q, HnModel *m)
{
    for (guint i = 0; q->pairs != NULL && i < q->pairs->len; i++) {
        HnValue *v = g_hash_table_lookup(m->graph->values, g_array_index(q->pairs, Pair, i).s);
        if (!v->is_output)
            hn_graph_add_output(m->graph, v);
    }
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* Normal numbers that keep the deviation of what they map. */
static HnTensor *draw(const Distill *q, const Pair *p, guint i, gboolean channels, GError **error)
{
    const HnRng all = hn_rng(q->init_seed);
    HnRng rng = hn_rng_split(&all, i);
    int64_t dims[HN_MAX_RANK] = { channels ? p->to : p->from, channels ? p->from : p->to };
    for (int a = 2; a < p->rank; a++)
        dims[a] = 1;
    HnTensor *t = hn_tensor_new(HN_F32, channels ? p->rank : 2, dims, q->ctx->budget, error);
    for (int64_t k = 0; t != NULL && k < t->n; k++)
        hn_tensor_set_f64(t, k, hn_rng_normal(&rng) / sqrt((double)p->from));
    return t;
}

gboolean distill_add_maps(const Distill *q, HnModel *work, GError **error)
{
    const HnBuild b = { .graph = work->graph };
    for (guint i = 0; q->pairs != NULL && i < q->pairs->len; i++) {
        Pair *p = &g_array_index(q->pairs, Pair, i);
        const gboolean channels = p->axis != p->rank - 1;
        if (p->axis < 0)
            continue;
        HnTensor *map = draw(q, p, i, channels, error);
        if (map == NULL)
            return FALSE;
        HnValue *v = hn_build_op2(&b, channels ? "Conv" : "MatMul", g_hash_table_lookup(work->graph->values, p->s),
                                  hn_build_constant(&b, "pair", map));
        g_free(p->loss->value);
        p->loss->value = g_strdup(v->name);
    }
    return TRUE;
}
