/* Kinds of outputs with errors planted in them, from harmless to fatal, under the goals that hold where the user says
 * nothing. */
#pragma once

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "check/score.h"
#include "data/npz.h"
#include "ir/ir_text.h"
#include "op/infer.h"

#define MOST 3 /* errors of a kind */
/* %z is %x with that part of its sine added */
#define NOISE(part) "%n = Sin(%x)\n%e = Mul(%n, p:f32={" #part "})\n%z = Add(%x, %e)\n"

/* Element i of sample s. */
typedef double (*Numbers)(HnRng *rng, int s, int64_t i);

typedef struct {
    const char *name, *input; /* "f32[1,10]" */
    int samples;
    Numbers numbers;
    HnOutputKind kind;                        /* of output 0 */
    const char *make;                         /* the original, made of %x */
    const char *harmless[MOST], *fatal[MOST]; /* others; NULL ends */
} Case;

static HnModel *model_of(const Case *c, const char *text)
{
    GError *error = NULL;
    g_autoptr(GString) s = g_string_new(text);
    g_autofree char *input = g_strdup_printf("%%x:%s", c->input);
    g_string_replace(s, "%x", input, 1);
    g_string_prepend(s, "opset 18\n");
    HnModel *m = hn_model_parse(s->str, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_verify(m, &error));
    return m;
}

static inline HnModel *parse(const char *text)
{
    GError *error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    return m;
}

/* An archive of the case's samples, whose first axis counts them. */
static void write_samples(const Case *c, const HnValue *input, const char *path)
{
    int64_t dims[HN_MAX_RANK], n;
    GError *error = NULL;
    HnRng rng = hn_rng(7);
    g_assert_true(hn_type_is_fixed(input->type, dims));
    g_assert_true(hn_dims_count(input->type->rank, dims, &n));
    const int rank = input->type->rank == 1 ? 2 : input->type->rank;
    if (input->type->rank == 1)
        dims[1] = dims[0];
    dims[0] = c->samples;
    HnTensor *t = hn_tensor_new(HN_F32, rank, dims, NULL, &error);
    for (int64_t i = 0; i < t->n; i++)
        ((float *)t->data)[i] = (float)c->numbers(&rng, (int)(i / n), i % n);
    const char *name = input->name;
    g_assert_true(hn_npz_write(path, &name, &t, 1, NULL, &error));
    hn_tensor_unref(t);
}

static gboolean holds(HnScorer *s, const Case *c, const char *text, HnGoals *goals)
{
    GError *error = NULL;
    HnScore score, original;
    g_autoptr(HnModel) m = model_of(c, text);
    hn_scorer_original(s, &original);
    g_assert_true(hn_goals_met(goals, &original, &original));
    g_assert_true(hn_scorer_run(s, m, &score, &error));
    for (int i = 0; i < goals->n; i++)
        g_test_message("%s: %s: %s drops by %g of %g", c->name, text, hn_metric_name(goals->goal[i].metric),
                       hn_score_drop(goals->goal[i].metric, &score, &original), goals->goal[i].most);
    return hn_goals_met(goals, &score, &original);
}

static inline void test_kind(gconstpointer data)
{
    const Case *c = data;
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-score-XXXXXX", &error),
                    *path = g_build_filename(folder, "x.npz", NULL);
    g_autoptr(HnModel) m = model_of(c, c->make);
    HnValue *input = m->graph->inputs->pdata[0];
    write_samples(c, input, path);
    g_autoptr(HnData) d = hn_data_open(path, &input, 1, &(HnDataOptions){ 0 }, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_data_count(d), ==, c->samples);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(model_of(c, c->make), d, 0, c->samples, &o, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(hn_output_kind_name(hn_scorer_output_kind(s, 0)), ==, hn_output_kind_name(c->kind));
    HnGoals goals;
    hn_scorer_goals(s, NAN, &goals);
    g_assert_true(holds(s, c, c->make, &goals));
    for (int i = 0; i < MOST && c->harmless[i] != NULL; i++)
        if (!holds(s, c, c->harmless[i], &goals))
            g_error("%s: refused, though harmless: %s", c->name, c->harmless[i]);
    for (int i = 0; i < MOST && c->fatal[i] != NULL; i++)
        if (holds(s, c, c->fatal[i], &goals))
            g_error("%s: taken, though fatal: %s", c->name, c->fatal[i]);
    g_remove(path);
    g_rmdir(folder);
}
