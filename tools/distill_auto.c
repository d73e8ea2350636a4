/* hone-distill: --student auto: which of several smaller models made of the teacher learns best in a short run. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/jsonread.h"
#include "base/text.h"
#include "hone_distill.h"
#include "ir/copy.h"
#include "prune/ready.h"
#include "prune/student.h"

#define MOST_FITTED 512 /* samples that weights of students are fitted to */
#define FIRST_PART 0.1  /* of the steps: how long each of them learns at first; twice as long in the next round */
#define LEAST_STEPS 8
#define TIME 1.4   /* times the part of the operations: the part of the time that a student takes, at most, ... */
#define SURE 0.98  /* ... by this much, since it is measured again by others ... */
#define RACED 0.3  /* ... and in so many seconds of runs */
#define GROWS 0.1  /* power of operations that a loss after few steps is divided by */
#define GENTLE 0.2 /* of the usual rate: the other one that the chosen student tries, since some know much already */

typedef struct {
    const char *how;
    guint blocks;
    double flops;
    int64_t weights;
    int narrower;         /* HnStudent.narrower */
    double time, as_wide; /* the same */
    GBytes *bytes;
    HnJudgement judged;
    int64_t steps; /* that it learned, the last time */
} Candidate;

struct DistillAuto {
    HnModel *teacher; /* whose inputs the data are for */
    double flops;     /* of the teacher */
    HnNarrower narrower;
    GArray *all; /* Candidate */
    guint chosen;
};

static void candidate_clear(gpointer candidate)
{
    g_bytes_unref(((Candidate *)candidate)->bytes);
}

void distill_auto_free(DistillAuto *a)
{
    if (a == NULL)
        return;
    hn_model_free(a->teacher);
    g_array_unref(a->all);
    g_free(a);
}

/* "low-rank" */
static gboolean parse_way(Distill *q, const char *name, GError **error)
{
    g_autofree char *way = g_strdelimit(g_strdup(name), "-", ' ');
    for (int i = 0; hn_student_ways[i] != NULL; i++)
        if (strcmp(way, hn_student_ways[i]) == 0) {
            q->auto_way = hn_student_ways[i];
            return TRUE;
        }
    return hn_tool_usage(error, "option '--student': a student is made by channels, uniform, blocks or low-rank, as in "
                                "auto:0.25x,low-rank");
}

gboolean distill_parse_auto(Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    if (p->student == NULL || !g_str_has_prefix(p->student, DISTILL_AUTO))
        return TRUE;
    g_autofree char *part = g_strdup(p->student + strlen(DISTILL_AUTO));
    char *comma = strchr(part, ',');
    if (comma != NULL) {
        *comma = '\0';
        if (!parse_way(q, comma + 1, error))
            return FALSE;
    }
    if (!g_str_has_suffix(part, "x"))
        return hn_tool_usage(error, "option '--student' is a model, or as in auto:0.25x the part of the teacher's "
                                    "operations that its student gets");
    part[strlen(part) - 1] = '\0';
    if (!hn_parse_double(part, 0, 1, &q->auto_part, error) || !(q->auto_part > 0 && q->auto_part < 1)) {
        g_clear_error(error);
        return hn_tool_usage(error, "option '--student': a student made of its teacher gets a part of its operations "
                                    "between 0 and 1, as in auto:0.25x");
    }
    if (p->list_trainable)
        return hn_tool_usage(error, "'--list-trainable' lists weights of a model that there is");
    if (p->pair != NULL && q->auto_way == NULL)
        return hn_tool_usage(error,
                             "features of students of several kinds have no widths to '--pair': say which kind, as "
                             "in auto:0.25x,low-rank");
    if (p->teacher == NULL)
        return hn_tool_usage(error, "whom does a student learn from that is made of its teacher? '--teacher' names it");
    return strcmp(p->teacher, "-") != 0 || hn_tool_usage(error, "a teacher that students are made of is read twice, "
                                                                "and cannot come from stdin");
}

/* --- what there is to choose from --------------------------------------------------------------------------------- */

static gboolean add_candidate(const Distill *q, DistillAuto *a, const HnStudent *s, GError **error)
{
    const Candidate c = { .how = s->how,
                          .blocks = s->blocks,
                          .flops = s->flops,
                          .weights = s->weights,
                          .narrower = s->narrower,
                          .time = s->time,
                          .as_wide = s->as_wide,
                          .bytes = hn_onnx_write_bytes(s->model, q->ctx->budget, error),
                          .judged = { NAN, NAN, 0 } };
    if (c.bytes != NULL)
        g_array_append_val(a->all, c);
    return c.bytes != NULL;
}

static void tell(gpointer data, const char *text)
{
    hn_context_note(((const Distill *)data)->ctx, 2, "%s", text);
}

/* --- their time --------------------------------------------------------------------------------------------------- */

static double most_time(const Distill *q)
{
    return fmin(TIME * q->auto_part, 1);
}

typedef struct {
    const Distill *q;
    HnModel *teacher; /* as it is raced; NULL: nobody asked yet */
    HnSample *sample;
} Race;

static void race_clear(Race *r)
{
    hn_model_free(r->teacher);
    hn_sample_free(r->sample);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Race, race_clear)

/* HnStudentOptions.time: with as many threads as the run has, and with one, since nobody knows how it will be run. */
static gboolean race(gpointer data, const HnModel *m, double *part, GError **error)
{
    Race *r = data;
    const Distill *q = r->q;
    if (r->teacher == NULL &&
        (!distill_read_teacher(q, &r->teacher, error) || (r->sample = hn_data_load(q->data, 0, error)) == NULL))
        return FALSE;
    g_autoptr(HnModel) student = hn_model_copy(m);
    const int n = q->ctx->common.threads, all = n > 0 ? n : hn_cpu_threads(NULL);
    *part = 0;
    for (int threads = all; threads > 0; threads = threads > 1 && q->backend->memory == NULL ? 1 : 0) {
        HnSpeedup s;
        const HnSpeedupOptions o = { .threads = threads,
                                     .seconds = RACED,
                                     .limit = SURE * most_time(q),
                                     .budget = q->ctx->budget,
                                     .progress = &q->ctx->progress };
        hn_progress_tell(&q->ctx->progress, "how long students take", 0, 0);
        if (!hn_measure_speedup(r->teacher, student, q->backend, r->sample->in, &o, &s, error))
            return FALSE;
        *part = fmax(*part, s.effect.effect);
    }
    return TRUE;
}

char *distill_narrower(const Distill *q)
{
    if (q->derived == NULL)
        return NULL;
    GString *text = g_string_new(NULL);
    for (int i = 0; i < HN_STUDENTS; i++)
        g_string_append_printf(text, "%s%d", i > 0 ? "," : "", q->derived->narrower.times[i]);
    return g_string_free(text, FALSE);
}

/* What a recipe or a checkpoint says: what it does not is 0. */
static HnNarrower read_narrower(const char *text)
{
    HnNarrower all = { 0 };
    g_auto(GStrv) words = g_strsplit(text, ",", HN_STUDENTS);
    for (int i = 0; words[i] != NULL; i++)
        all.times[i] = g_ascii_isdigit(words[i][0]) ? words[i][0] - '0' : 0;
    return all;
}

/* Whoever repeats a run makes the students that it made, whatever time they take here. */
static gboolean repeat(Distill *q, GError **error)
{
    if (q->narrower == NULL && distill_goes_on(q))
        return (q->narrower = hn_fit_made(q->p->resume, q->ctx->budget, error)) != NULL;
    return TRUE;
}

static gboolean make_candidates(const Distill *q, DistillAuto *a, HnModel *dense, GError **error)
{
    const HnNarrower known = read_narrower(q->narrower != NULL ? q->narrower : "");
    g_auto(Race) r = { .q = q };
    const HnStudentOptions o = { .backend = q->backend,
                                 .threads = q->ctx->common.threads,
                                 .budget = q->ctx->budget,
                                 .progress = &q->ctx->progress,
                                 .data = q->data,
                                 .n = MIN(hn_data_count(q->data), MOST_FITTED),
                                 .seed = q->ctx->common.seed,
                                 .part = q->auto_part,
                                 .way = q->auto_way,
                                 .time = q->auto_way == NULL ? race : NULL,
                                 .time_data = &r,
                                 .most_time = SURE * most_time(q),
                                 .narrower = q->narrower != NULL ? &known : NULL,
                                 .note = tell,
                                 .note_data = (gpointer)q };
    g_autoptr(GPtrArray) made = hn_students_new(dense, &o, &a->flops, &a->narrower, error);
    gboolean ok = made != NULL;
    for (guint i = 0; ok && i < made->len; i++)
        ok = add_candidate(q, a, made->pdata[i], error);
    return ok;
}

/* The student is this one. */
static gboolean take(Distill *q, guint i, GError **error)
{
    q->derived->chosen = i;
    g_clear_pointer(&q->start, g_bytes_unref);
    q->start = g_bytes_ref(g_array_index(q->derived->all, Candidate, i).bytes);
    hn_model_free(q->plain);
    return (q->plain = distill_student(q, error)) != NULL;
}

gboolean distill_make_students(Distill *q, GError **error)
{
    if (q->auto_part == 0)
        return TRUE;
    if (q->derived != NULL) { /* they were made already */
        hn_model_free(q->derived->teacher);
        q->derived->teacher = g_steal_pointer(&q->plain);
        return take(q, 0, error);
    }
    g_autoptr(HnModel) dense = distill_student(q, error);
    DistillAuto *a = q->derived = g_new0(DistillAuto, 1);
    a->teacher = g_steal_pointer(&q->plain);
    a->all = g_array_new(FALSE, FALSE, sizeof(Candidate));
    g_array_set_clear_func(a->all, candidate_clear);
    if (dense == NULL || !repeat(q, error) || !hn_prune_ready(dense, q->ctx->budget, &q->ctx->progress, error) ||
        !make_candidates(q, a, dense, error)) {
        g_prefix_error(error, "'%s': ", q->p->teacher);
        return FALSE;
    }
    return take(q, 0, error);
}

/* --- short runs --------------------------------------------------------------------------------------------------- */

/* A trainer of q->start, and what it compares. */
typedef struct {
    HnDevice *device;
    HnTrainer *trainer;
    GPtrArray *compared; /* HnType * */
} Trial;

static void trial_clear(Trial *t)
{
    g_clear_pointer(&t->compared, g_ptr_array_unref);
    hn_trainer_free(t->trainer);
    hn_device_unref(t->device);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Trial, trial_clear)

static gboolean trial_open(Distill *q, Trial *t, GError **error)
{
    q->parts = 0;
    if ((t->device = hn_device_new(q->backend, error)) == NULL ||
        (t->trainer = distill_trainer(q, t->device, distill_why_keep(q) != NULL, error)) == NULL)
        return FALSE;
    t->compared = distill_compared(q, t->trainer);
    return hn_batches_go(q->batches, (HnBatchPlace){ 0, 0 }, error);
}

/* From the start, to the end of a schedule of so many steps. A loss that is not finite ends it. */
static gboolean trial_run(const Distill *q, const Trial *t, int64_t steps, GError **error)
{
    const HnFeed feed = { t->trainer, q->batches, q->data, &q->targets, (HnType *const *)t->compared->pdata };
    const HnLrSchedule s = { .curve = q->schedule.curve, .warmup = steps / 20, .steps = steps };
    for (int64_t i = 1; i <= steps; i++) {
        HnStepLoss made;
        hn_progress_tell(&q->ctx->progress, "which student learns best", (guint64)i, (guint64)steps);
        if (hn_progress_stop(&q->ctx->progress, error) ||
            !hn_feed_step(&feed, q->rule->lr * hn_lr_factor(&s, i), &made, error))
            return FALSE;
        if (!isfinite(made.loss))
            break;
    }
    return TRUE;
}

/* What candidate i is like after so many steps. */
static gboolean try_candidate(gpointer data, guint i, int64_t steps, GError **error)
{
    Distill *q = data;
    g_auto(Trial) t = { 0 };
    Candidate *c = &g_array_index(q->derived->all, Candidate, i);
    c->steps = steps;
    if (!take(q, i, error) || !trial_open(q, &t, error) || !trial_run(q, &t, steps, error))
        return FALSE;
    HnModel *m = distill_student(q, error);
    if (m != NULL && hn_trainer_store(t.trainer, m, FALSE, error))
        return hn_judge_run(q->judge, m, &c->judged, error);
    hn_model_free(m);
    return FALSE;
}

/* The loss, which is of what the teacher says, and tells more than how many labels are right; of a larger student it
 * falls for longer. */
static double score_of(const Candidate *c)
{
    return c->judged.loss * pow(c->flops, -GROWS);
}

static gboolean is_better(gpointer data, guint first, guint second)
{
    const GArray *all = ((const Distill *)data)->derived->all;
    const Candidate *a = &g_array_index(all, Candidate, first), *b = &g_array_index(all, Candidate, second);
    return score_of(a) < score_of(b) || (isfinite(a->judged.loss) && !isfinite(b->judged.loss));
}

/* Of a step of candidate i. */
static gboolean time_candidate(Distill *q, guint i, double *seconds, GError **error)
{
    g_auto(Trial) t = { 0 };
    if (!take(q, i, error) || !trial_open(q, &t, error))
        return FALSE;
    const HnFeed feed = { t.trainer, q->batches, q->data, &q->targets, (HnType *const *)t.compared->pdata };
    return distill_time_steps(q, &feed, seconds, error);
}

/* Some steps of each tell how long the others take. */
static gboolean forecast(Distill *q, int64_t choosing, int64_t learning, GError **error)
{
    const guint n = q->derived->all->len;
    double sum = 0, least = INFINITY, most = 0, step;
    for (guint i = 0; i < n; i++) {
        if (!time_candidate(q, i, &step, error))
            return FALSE;
        sum += step;
        least = fmin(least, step);
        most = fmax(most, step);
    }
    g_autofree char *a = hn_text_time(sum / n * (double)choosing), *b = hn_text_time(least * (double)learning),
                    *c = hn_text_time(most * (double)learning);
    hn_context_note(q->ctx, 0, "to choose among %u students takes about %s, and %s to %s that the chosen one learns", n,
                    a, b, c);
    return TRUE;
}

static int64_t steps_of(const Distill *q)
{
    return hn_batches_per_epoch(q->batches) * q->p->epochs;
}

static HnHalving halving(Distill *q)
{
    return (HnHalving){ .n = q->derived->all->len,
                        .first = MAX((int64_t)(FIRST_PART * (double)steps_of(q)), LEAST_STEPS),
                        .most = G_MAXINT64,
                        .attempt = try_candidate,
                        .better = is_better,
                        .data = q };
}

/* Nobody has said how large it is, or how it is found. */
static gboolean is_rate_open(const Distill *q)
{
    return q->p->lr == NULL && q->p->tune == 0 && isnan(hn_terms_get(q->rule->terms, "lr"));
}

double distill_choosing(const Distill *q)
{
    if (q->derived == NULL)
        return 0;
    const HnHalving h = halving((Distill *)q);
    const int64_t rates = is_rate_open(q) ? hn_halving_last(&h) * (h.n < 2 ? 2 : 1) : 0;
    return (double)(hn_halving_length(&h, NULL) + rates) / (double)steps_of(q);
}

/* Which rate candidate i learns more by in a run as long as its last one. */
static gboolean choose_rate(Distill *q, guint i, GError **error)
{
    Candidate *c = &g_array_index(q->derived->all, Candidate, i);
    const HnHalving h = halving(q);
    const int64_t steps = hn_halving_last(&h);
    const double usual = q->rule->lr;
    if (!is_rate_open(q))
        return TRUE;
    if (c->steps == 0 && !try_candidate(q, i, steps, error))
        return FALSE;
    const HnJudgement before = c->judged;
    q->rule->lr = usual * GENTLE;
    if (!try_candidate(q, i, steps, error))
        return FALSE;
    hn_context_note(q->ctx, 1,
                    "behind %" G_GINT64_FORMAT " steps the loss is %.4g with a learning rate of %.3g, and %.4g with "
                    "%.3g",
                    steps, before.loss, usual, c->judged.loss, usual * GENTLE);
    if (c->judged.loss < before.loss || !isfinite(before.loss))
        return TRUE;
    c->judged = before;
    q->rule->lr = usual;
    return TRUE;
}

gboolean distill_choose_student(Distill *q, GError **error)
{
    if (q->derived == NULL)
        return TRUE;
    const HnHalving h = halving(q);
    g_autofree guint *order = g_new(guint, h.n);
    return (h.n < 2 || forecast(q, hn_halving_length(&h, NULL), steps_of(q), error)) &&
           hn_halving_run(&h, order, error) && choose_rate(q, order[0], error) && take(q, order[0], error) &&
           hn_batches_go(q->batches, (HnBatchPlace){ 0, 0 }, error);
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static const HnColumn columns[] = { { "how", "student by", HN_COL_TEXT },
                                    { "blocks", "blocks less", HN_COL_INT },
                                    { "flops", "operations", HN_COL_NUMBER },
                                    { "weights", "weights", HN_COL_NUMBER },
                                    { "time", "of the time", HN_COL_NUMBER },
                                    { "steps", "steps", HN_COL_INT },
                                    { "loss", "loss", HN_COL_NUMBER },
                                    { "chosen", "chosen", HN_COL_TEXT },
                                    { 0 } };

static JsonObject *candidate_json(const Candidate *c)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "how", c->how);
    json_object_set_int_member(o, "blocks", c->blocks);
    json_object_set_double_member(o, "flops", c->flops);
    json_object_set_int_member(o, "weights", c->weights);
    json_object_set_int_member(o, "narrower", c->narrower);
    hn_json_set_number(o, "time", c->time);
    return o;
}

void distill_report_auto(const Distill *q, HnReport *report)
{
    const DistillAuto *a = q->derived;
    if (a == NULL)
        return;
    const Candidate *best = &g_array_index(a->all, Candidate, a->chosen);
    JsonObject *student = candidate_json(best);
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < a->all->len; i++) {
        const Candidate *c = &g_array_index(a->all, Candidate, i);
        JsonObject *row = candidate_json(c);
        json_object_set_int_member(row, "steps", c->steps);
        hn_json_set_number(row, "loss", c->judged.loss);
        hn_json_set_number(row, "top1", c->judged.top1);
        json_object_set_string_member(row, "chosen", i == a->chosen ? "yes" : "no");
        json_array_add_object_element(rows, row);
    }
    json_object_set_double_member(student, "teacher_flops", a->flops);
    json_object_set_array_member(student, "candidates", rows);
    json_object_set_object_member(hn_report_root(report), "student", student);
    if (q->ctx->common.verbose > 0)
        hn_report_table(report, "student.candidates", columns);
    g_autofree char *flops = hn_text_number(best->flops), *of = hn_text_number(a->flops);
    hn_report_line(report, "the student was made of the teacher by %s: %s operations of %s, %.3g", best->how, flops, of,
                   best->flops / a->flops);
    if (best->narrower > 0 && isfinite(best->time))
        hn_report_line(report,
                       "it is narrower than it might be, which would take %.3g of the teacher's time, and this %.3g",
                       best->as_wide, best->time);
    if (best->time > most_time(q))
        hn_report_line(report,
                       "narrower students hardly take less than that: %.3g of the teacher's time was looked for",
                       most_time(q));
}

void distill_record_auto(const Distill *q, JsonObject *recipe)
{
    if (q->derived == NULL)
        return;
    json_object_set_string_member(recipe, DISTILL_MADE, q->p->student);
    json_object_set_string_member(recipe, "how", g_array_index(q->derived->all, Candidate, q->derived->chosen).how);
    g_autofree char *narrower = distill_narrower(q);
    json_object_set_string_member(recipe, DISTILL_NARROWER, narrower);
}
