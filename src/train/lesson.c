#include "train/lesson.h"

#include <math.h>
#include <string.h>

#include "check/outputs.h"

#define SAMPLES 64              /* of which results are looked at */
#define LOOKED_BYTES (64 << 20) /* of them, but for the first */
#define TEMPERATURE "4"         /* of KL */
#define TEMPERATURE_SHORT "2"   /* where there are few steps */
#define SOFT_PART 0.7           /* of the loss of what is held against a teacher and against labels */
#define ONE 1e-3                /* as a sum of probabilities */

/* An output of floats. */
typedef struct {
    const HnValue *v; /* the student's */
    HnOutputView view;
    int rank;
    int64_t columns;           /* along axis 1; 0: there is none */
    int64_t last;              /* along the last axis */
    int64_t elements;          /* of a sample */
    int axis;                  /* of classes, as the student has them; HN_NO_AXIS: they are none */
    double weight;             /* of squares of differences from what the teacher makes; 0: it is not known */
    gboolean raw, given;       /* probabilities without a softmax in front of them: the student's, the teacher's */
    gboolean unit, given_unit; /* all numbers are within [0, 1]: the student's, the teacher's */
    gboolean bounded;          /* they can be no others: the student's, by the node that makes them */
} Output;

struct HnLesson {
    HnLessonOptions o;
    gboolean taught;   /* there is a teacher */
    gboolean numbered; /* labels are numbers of classes, or integers anyway */
    gboolean parts;    /* they are within [0, 1] ... */
    gboolean bits;     /* ... and all of them 0 or 1 */
    GPtrArray *probes; /* two for each output: as it is, and as logits */
    Output *outputs;
    guint n;
};

gboolean hn_kd_parse(const char *text, HnKd *kd, GError **error)
{
    static const char *const names[] = { "standard", "mse", "standardize" };
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *kd = (HnKd)i;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--kd' is standard, mse, or standardize, not '%s'", text);
    return FALSE;
}

void hn_lesson_free(HnLesson *l)
{
    if (l == NULL)
        return;
    for (guint i = 0; i < l->n; i++)
        hn_output_view_clear(&l->outputs[i].view);
    g_free(l->outputs);
    g_clear_pointer(&l->probes, g_ptr_array_unref);
    g_clear_pointer(&l->o.labels, hn_tensor_unref);
    g_free(l);
}

/* --- what some samples show --------------------------------------------------------------------------------------- */

/* Results of a model: of sample i for probe k. */
typedef struct {
    GPtrArray *samples; /* HnTensor *[probes] */
    guint probes;
    GPtrArray *in; /* HnSample * */
} Looked;

static void looked_clear(Looked *w)
{
    for (guint i = 0; w->samples != NULL && i < w->samples->len; i++)
        hn_outputs_free(w->samples->pdata[i], (int)w->probes);
    g_clear_pointer(&w->samples, g_ptr_array_unref);
    g_clear_pointer(&w->in, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Looked, looked_clear)

static gboolean look_at(const HnLesson *l, HnForward *f, HnSample *s, Looked *w, gsize *bytes, GError **error)
{
    HnTensor **out = g_new0(HnTensor *, w->probes + 1);
    gboolean ok = hn_forward_run(f, s->in, out, error);
    for (guint k = 0; ok && k < w->probes; k++) {
        HnTensor *copy = hn_tensor_copy(out[k], l->o.forward->budget, error);
        hn_tensor_unref(out[k]);
        ok = (out[k] = copy) != NULL;
        *bytes += ok ? copy->bytes : 0;
    }
    g_ptr_array_add(w->samples, out);
    return ok;
}

/* Takes m. */
static gboolean look(const HnLesson *l, HnModel *m, const HnGraph *like, int64_t most, Looked *w, GError **error)
{
    HnForwardOptions o = *l->o.forward;
    o.like = like;
    *w = (Looked){ g_ptr_array_new(), l->probes->len, g_ptr_array_new_with_free_func((GDestroyNotify)hn_sample_free) };
    g_autoptr(HnForward) f = hn_forward_new(m, l->probes, &o, error);
    gsize bytes = 0;
    for (int64_t i = 0; f != NULL && i < MIN(hn_data_count(l->o.data), most) && bytes < LOOKED_BYTES; i++) {
        HnSample *s = hn_data_load(l->o.data, i, error);
        if (s != NULL)
            g_ptr_array_add(w->in, s);
        if (s == NULL || !look_at(l, f, s, w, &bytes, error))
            return FALSE;
    }
    return f != NULL;
}

static const HnTensor *result(const Looked *w, guint i, guint probe)
{
    return ((HnTensor *const *)w->samples->pdata[i])[probe];
}

/* All rows along the axis are of numbers from 0 on, and add up to 1. */
static gboolean are_probabilities(const HnTensor *t, int axis)
{
    const int at = axis < 0 ? axis + t->ndim : axis;
    int64_t inner = 1;
    if (at < 0 || at >= t->ndim || t->dims[at] < 2)
        return FALSE;
    for (int a = at + 1; a < t->ndim; a++)
        inner *= t->dims[a];
    for (int64_t r = 0; r < t->n / t->dims[at]; r++) {
        double sum = 0;
        for (int64_t k = 0; k < t->dims[at]; k++) {
            const double x = hn_tensor_get_f64(t, (r / inner * t->dims[at] + k) * inner + r % inner);
            sum += x >= 0 ? x : NAN;
        }
        if (!(fabs(sum - 1) <= ONE))
            return FALSE;
    }
    return TRUE;
}

static gboolean all_probabilities(const Looked *w, guint probe, int axis)
{
    for (guint i = 0; i < w->samples->len; i++)
        if (!are_probabilities(result(w, i, probe), axis))
            return FALSE;
    return w->samples->len > 0;
}

/* --- where classes lie -------------------------------------------------------------------------------------------- */

static int class_axis(const HnLesson *l, const Output *y, const HnTensor *made, gboolean first)
{
    const int axis = hn_class_axis(y->v, made->ndim, made->dims, first ? l->o.labels : NULL);
    if (axis != HN_NO_AXIS)
        return axis;
    return l->taught && y->view.kind == HN_OUTPUT_CLASSES ? 1 : HN_NO_AXIS;
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static void add_probe(HnLesson *l, const char *text, const HnValue *v)
{
    g_autoptr(GPtrArray) one = hn_objectives_parse(text, NULL);
    HnObjective *o = g_ptr_array_steal_index(one, 0);
    o->value = g_strdup(v->name);
    g_ptr_array_add(l->probes, o);
}

static void list_outputs(HnLesson *l)
{
    const GPtrArray *all = l->o.student->graph->outputs;
    l->outputs = g_new0(Output, all->len + 1u);
    l->probes = hn_objectives_new();
    for (guint i = 0; i < all->len; i++) {
        const HnValue *v = all->pdata[i];
        if (hn_type_is_tensor(v->type) && !hn_dtype_in(v->type->dtype, HN_T_FLOATS))
            continue;
        l->outputs[l->n++] = (Output){ .v = v, .axis = HN_NO_AXIS };
        add_probe(l, "mse", v);
        add_probe(l, "mse:logits=1", v);
    }
}

static void find_views(HnLesson *l, const Looked *made, const Looked *w)
{
    g_autofree HnOutputView *views = g_new0(HnOutputView, l->n + 1);
    g_autoptr(GPtrArray) out = g_ptr_array_new_with_free_func(g_free);
    const HnSample *first = w->in->len > 0 ? w->in->pdata[0] : NULL;
    for (guint i = 0; i < w->samples->len; i++) {
        HnTensor **t = g_new0(HnTensor *, l->n + 1);
        for (guint k = 0; k < l->n; k++)
            t[k] = ((HnTensor *const *)w->samples->pdata[i])[2 * k];
        g_ptr_array_add(out, t);
    }
    const HnOutputsSeen seen = { (HnTensor *const *const *)out->pdata,
                                 out->len,
                                 first->in,
                                 first->n,
                                 hn_labelled_axis(l->o.labels, result(made, 0, 0)->ndim, result(made, 0, 0)->dims) !=
                                     HN_NO_AXIS,
                                 FALSE,
                                 NULL };
    hn_output_views_find(views, (int)l->n, &seen);
    for (guint k = 0; k < l->n; k++) {
        l->outputs[k].view = views[k];
        HnTargetSums sums = { 0 };
        for (guint i = 0; i < w->samples->len; i++)
            hn_target_sums_add(&sums, result(w, i, 2 * k));
        l->outputs[k].weight = hn_target_sums_weight(&sums);
    }
}

static gboolean within_one(const HnTensor *t, gboolean ends)
{
    for (int64_t k = 0; k < t->n; k++) {
        const double x = hn_tensor_get_f64(t, k);
        if (!(x >= 0 && x <= 1) || (ends && x != 0 && x != 1))
            return FALSE;
    }
    return TRUE;
}

static gboolean all_within_one(const Looked *w, guint probe)
{
    gboolean all = w->samples->len > 0;
    for (guint i = 0; i < w->samples->len && all; i++)
        all = within_one(result(w, i, probe), FALSE);
    return all;
}

static gboolean is_bounded(const HnValue *v)
{
    const HnNode *n = v->producer;
    const HnQuantRule *q = n != NULL && n->op != NULL ? &n->op->quant : NULL;
    return q != NULL && q->kind == HN_Q_FIXED_RANGE && q->lo >= 0 && q->hi <= 1;
}

static void find_classes(HnLesson *l, const Looked *made, const Looked *said)
{
    for (guint k = 0; k < l->n; k++) {
        Output *y = &l->outputs[k];
        const HnTensor *one = result(made, 0, 2 * k);
        y->rank = one->ndim;
        y->columns = one->ndim >= 2 ? one->dims[1] : 0;
        y->last = one->ndim > 0 ? one->dims[one->ndim - 1] : 0;
        y->elements = one->n;
        y->axis = class_axis(l, y, one, k == 0);
        y->raw = y->axis != HN_NO_AXIS && all_probabilities(made, 2 * k + 1, y->axis);
        y->given = y->axis != HN_NO_AXIS && l->taught && all_probabilities(said, 2 * k + 1, y->axis);
        y->unit = all_within_one(made, 2 * k);
        y->bounded = is_bounded(y->v);
        y->given_unit = l->taught && all_within_one(said, 2 * k);
    }
}

HnLesson *hn_lesson_new(const HnLessonOptions *o, HnModel *student, HnModel *teacher, GError **error)
{
    g_autoptr(HnLesson) l = g_new0(HnLesson, 1);
    g_auto(Looked) made = { 0 }, said = { 0 };
    *l = (HnLesson){ .o = *o, .taught = teacher != NULL };
    l->o.labels = o->labels != NULL ? hn_tensor_ref(o->labels) : NULL;
    l->numbered = o->labels != NULL && hn_dtype_in(o->labels->dtype, HN_T_INTS);
    const gboolean numbers = o->labels != NULL && hn_dtype_in(o->labels->dtype, HN_T_INTS | HN_T_FLOATS);
    l->parts = numbers && within_one(o->labels, FALSE);
    l->bits = numbers && within_one(o->labels, TRUE);
    list_outputs(l);
    if (l->n == 0 || hn_data_count(o->data) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "the student has no output of floats to learn with");
        hn_model_free(student);
        hn_model_free(teacher);
        return NULL;
    }
    if (l->taught && !look(l, teacher, o->student->graph, SAMPLES, &said, error)) {
        hn_model_free(student);
        return NULL;
    }
    if (!look(l, student, NULL, 1, &made, error))
        return NULL;
    if (l->taught)
        find_views(l, &made, &said);
    find_classes(l, &made, &said);
    return g_steal_pointer(&l);
}

/* --- what is learned ---------------------------------------------------------------------------------------------- */

/* Takes text. */
static HnObjective *add(GPtrArray *all, const Output *y, double weight, char *text)
{
    g_autoptr(GPtrArray) one = hn_objectives_parse(text, NULL);
    HnObjective *o = g_ptr_array_steal_index(one, 0);
    o->value = g_strdup(y->v->name);
    o->weight = weight;
    g_ptr_array_add(all, o);
    g_free(text);
    return o;
}

static char *soft_text(const HnLesson *l, const Output *y)
{
    char chosen[G_ASCII_DTOSTR_BUF_SIZE];
    const char *t = l->o.temperature > 0           ? g_ascii_dtostr(chosen, sizeof chosen, l->o.temperature)
                    : l->o.steps < HN_LESSON_SHORT ? TEMPERATURE_SHORT
                                                   : TEMPERATURE;
    if (l->o.kd == HN_KD_MSE)
        return g_strdup_printf("mse:logits=1:axis=%d", y->axis);
    return g_strdup_printf("kl:temperature=%s:axis=%d%s", t, y->axis,
                           l->o.kd == HN_KD_STANDARDIZE ? ":standardize=1" : "");
}

/* Where they stand for logits. */
static void take_logarithms(const Output *y, HnObjective *o)
{
    o->log_value = o->logits && y->raw;
    o->log_target = o->logits && y->given && o->op->loss.target == HN_TARGET_LIKE;
}

static void add_classes(const HnLesson *l, const Output *y, gboolean labelled, GPtrArray *all)
{
    if (l->taught)
        take_logarithms(y, add(all, y, labelled ? SOFT_PART : 1, soft_text(l, y)));
    if (labelled)
        take_logarithms(y, add(all, y, l->taught ? 1 - SOFT_PART : 1, g_strdup_printf("ce:axis=%d", y->axis)));
}

/* Labels instead of a teacher say yes or no, each by itself. */
static gboolean has_bits(const HnLesson *l, const Output *y)
{
    return !l->taught && l->bits && (y->axis == HN_NO_AXIS || !l->numbered);
}

static const char *suits(const HnLesson *l, const Output *y)
{
    const HnOutputKind kind = y->view.kind;
    if (has_bits(l, y))
        return y->bounded ? "bce:probabilities=1" : "bce";
    if (y->axis != HN_NO_AXIS && (l->taught || l->numbered))
        return l->taught ? "kl" : "ce";
    if (kind == HN_OUTPUT_SCORES && y->unit)
        return "bce:probabilities=1";
    return kind == HN_OUTPUT_EMBEDDING && y->last > 1 ? "cosine" : "mse"; /* of rows along the last axis */
}

static void add_numbers(const HnLesson *l, const Output *y, GPtrArray *all)
{
    const char *text = suits(l, y);
    const gboolean squares = strcmp(text, "mse") == 0 && y->weight > 0;
    add(all, y, squares ? y->weight : 1, g_strdup(text));
}

/* There are as many labels as numbers. */
static gboolean one_for_each(const HnLesson *l, const Output *y)
{
    const HnTensor *t = l->o.labels;
    return t->ndim > 0 && t->n == y->elements * t->dims[0];
}

GPtrArray *hn_lesson_objectives(const HnLesson *l, GError **error)
{
    g_autoptr(GPtrArray) all = hn_objectives_new();
    for (guint k = 0; k < l->n; k++) {
        const Output *y = &l->outputs[k];
        const gboolean labelled = l->numbered && k == 0 && y->axis != HN_NO_AXIS;
        if (y->axis != HN_NO_AXIS && (l->taught || labelled))
            add_classes(l, y, labelled, all);
        else if (l->taught || (k == 0 && l->o.labels != NULL && (!l->numbered || one_for_each(l, y))))
            add_numbers(l, y, all);
    }
    if (all->len > 0)
        return g_steal_pointer(&all);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "no output holds what can be learned from %s; '--loss' says what is compared with what",
                l->taught ? "this teacher" : "these labels");
    return NULL;
}

/* --- what somebody chose ------------------------------------------------------------------------------------------ */

static const Output *compared(const HnLesson *l, const HnObjective *o)
{
    for (guint k = 0; k < l->n; k++)
        if (o->value == NULL ? k == 0 : strcmp(o->value, l->outputs[k].v->name) == 0)
            return &l->outputs[k];
    return NULL;
}

/* The same for binary cross-entropy with labels. */
static const char *misfit_of_parts(const HnLesson *l, const Output *y, gboolean probabilities)
{
    if (l->o.labels == NULL)
        return NULL;
    if (y->axis != HN_NO_AXIS && l->numbered)
        return "has classes that labels are numbers of";
    if (!l->parts)
        return "is held against labels that are no probabilities";
    return y->bounded && !probabilities ? "holds probabilities already"
           : !y->unit && probabilities  ? "holds no probabilities yet"
                                        : NULL;
}

/* What is wrong with the loss for this output; NULL: nothing that is known. */
static const char *misfit(const HnLesson *l, const HnObjective *o, const Output *y)
{
    const HnOutputKind kind = y->view.kind;
    const double given = hn_terms_get(o->terms, "probabilities");
    const gboolean classes = y->axis != HN_NO_AXIS, known = l->taught || classes, probabilities = given > 0;
    if (o->op->loss.logits && known && !classes && kind != HN_OUTPUT_NUMBERS)
        return kind == HN_OUTPUT_SCORES ? "holds scores, each one by itself" : "does not hold classes";
    if (o->op->loss.logits && (y->rank < 2 || (y->rank == 2 && y->columns < 2)))
        return "has no classes to choose from";
    if (!l->taught && l->o.labels != NULL && o->op->loss.target == HN_TARGET_LABELS && !l->numbered)
        return "is held against labels that are no numbers of classes";
    if (strcmp(o->terms->name, "bce") != 0)
        return NULL;
    if (!l->taught)
        return misfit_of_parts(l, y, probabilities);
    if (!y->given_unit)
        return "holds numbers that are no probabilities";
    return y->unit != probabilities ? (y->unit ? "holds probabilities already" : "holds no probabilities yet") : NULL;
}

void hn_lesson_place(const HnLesson *l, const GPtrArray *objectives)
{
    for (guint i = 0; i < objectives->len; i++) {
        const HnObjective *o = objectives->pdata[i];
        const Output *y = o->op->loss.logits ? compared(l, o) : NULL;
        if (y != NULL && y->axis != HN_NO_AXIS && isnan(hn_terms_get(o->terms, "axis")))
            hn_terms_set(o->terms, "axis", y->axis);
    }
}

gboolean hn_lesson_check(const HnLesson *l, const GPtrArray *objectives, GError **error)
{
    GError *first = NULL;
    for (guint i = 0; i < objectives->len; i++) {
        HnObjective *o = objectives->pdata[i];
        const Output *y = compared(l, o);
        const char *why = y != NULL ? misfit(l, o, y) : NULL;
        if (why == NULL && y != NULL)
            take_logarithms(y, o);
        if (why != NULL && first == NULL)
            g_set_error(&first, HN_ERROR, HN_ERROR_USAGE,
                        "option '--loss': '%s' does not suit output '%s', which %s: '%s' does", o->terms->name,
                        y->v->name, why, suits(l, y));
    }
    if (first != NULL)
        g_propagate_error(error, first);
    return first == NULL;
}
