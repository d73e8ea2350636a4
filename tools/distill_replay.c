/* hone-distill --replay: what a recipe says is done again, with the files of the command line. */
#include "base/jsonread.h"
#include "check/recipe.h"
#include "hone_distill.h"

/* What went in, by its name in the recipe. */
typedef struct {
    const char *name, *hash, *another;
    gboolean may_be_none;
} WentIn;

#define N_IN 4

static void list(const Distill *q, WentIn all[N_IN])
{
    all[0] = (WentIn){ "input", q->student_hash, "another model", FALSE };
    all[1] = (WentIn){ "data", q->data_hash, "other samples", FALSE };
    all[2] = (WentIn){ "val", q->val_hash, "other samples to judge by", TRUE };
    all[3] = (WentIn){ "teacher", q->teacher_hash, "another teacher", TRUE };
}

static gboolean open_recipe(Distill *q, const char *path, GError **error)
{
    WentIn all[N_IN];
    list(q, all);
    if ((q->recipe = hn_recipe_open(path, DISTILL_TOOL, q->ctx->budget, error)) == NULL)
        return FALSE;
    for (int i = 0; i < N_IN; i++)
        if (!hn_recipe_has_hash(q->recipe, path, all[i].name, all[i].may_be_none, error))
            return FALSE;
    hn_tool_warn_version(q->ctx, path, hn_json_string_at(q->recipe, "hone"));
    return TRUE;
}

gboolean distill_read_recipe(Distill *q, GError **error)
{
    const DistillParams *given = q->p;
    if (!open_recipe(q, given->replay, error))
        return FALSE;
    DistillParams *p = &q->replayed;
    *p = distill_defaults;
    q->p = p;
    if (!hn_recorded_read(&distill_recorded, hn_json_object_at(q->recipe, "options"), p, &q->ctx->common.seed, error)) {
        g_prefix_error(error, "'%s': ", given->replay);
        return FALSE;
    }
    p->replay = given->replay;
    p->output = given->output;
    const char *made = hn_json_string_at(q->recipe, DISTILL_MADE),
               *narrower = hn_json_string_at(q->recipe, DISTILL_NARROWER);
    q->narrower = g_strdup(narrower != NULL ? narrower : "");
    p->student = made != NULL && g_str_has_prefix(made, DISTILL_AUTO) ? (char *)made
                 : q->ctx->n_args == 1                                ? q->ctx->args[0]
                                                                      : given->student;
    p->teacher = given->teacher;
    p->data = given->data;
    p->from = given->from;
    p->val = given->val;
    p->cache = given->cache;
    return TRUE;
}

gboolean distill_check_recipe(const Distill *q, GError **error)
{
    WentIn all[N_IN];
    list(q, all);
    for (int i = 0; q->recipe != NULL && i < N_IN; i++)
        if (!hn_recipe_check_hash(q->recipe, q->p->replay, all[i].name, all[i].hash, all[i].another, error))
            return FALSE;
    return TRUE;
}

void distill_clear_replayed(Distill *q)
{
    if (q->p == &q->replayed)
        hn_recorded_clear(&distill_recorded, &q->replayed);
    g_clear_pointer(&q->recipe, json_object_unref);
}
