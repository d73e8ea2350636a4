/* hone-distill: what trials were judged is kept, so that a run that ended early need not try them again. */
#include <math.h>

#include "base/jsonread.h"
#include "hone_distill.h"

static JsonObject *options_of(const Distill *q, const DistillParams *p)
{
    return hn_recorded_json(&distill_recorded, p, q->ctx->common.seed);
}

gboolean distill_open_journal(const Distill *q, const DistillParams *p, HnJournal **journal, GError **error)
{
    g_autofree char *path = hn_tool_journal_path(p->journal, p->output);
    g_autoptr(JsonObject) options = options_of(q, p);
    json_object_set_int_member(options, "tune", p->tune);
    json_object_set_string_member(options, "time-budget", p->time_budget);
    g_autoptr(JsonObject) header = hn_journal_header(&(HnJournalOf){ .model = q->student_hash,
                                                                     .data = q->data_hash,
                                                                     .options = options,
                                                                     .device = q->ctx->common.device,
                                                                     .threads = q->ctx->common.threads });
    json_object_set_string_member(header, "teacher", q->teacher_hash);
    json_object_set_string_member(header, "val", q->val_hash);
    *journal = hn_journal_new();
    const gboolean resume = p->resume != NULL && path != NULL && g_file_test(path, G_FILE_TEST_EXISTS);
    return path == NULL || hn_journal_open(*journal, path, resume, header, error);
}

void distill_close_journal(const Distill *q, HnJournal *journal, const GError *why)
{
    hn_tool_close_journal(journal, &(HnToolJournal){ .journal = q->p->journal, .output = q->p->output }, why);
}

char *distill_trial_name(const Distill *q, const DistillParams *p)
{
    g_autoptr(JsonObject) options = options_of(q, p);
    g_autofree char *text = hn_json_line(options);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

gboolean distill_known(const HnJournal *journal, const char *name, HnJudgement *j)
{
    JsonObject *o = hn_journal_found(journal, name);
    if (o == NULL)
        return FALSE;
    const double loss = hn_json_number_or_nan(o, "loss"), samples = hn_json_number_or_nan(o, "samples");
    *j = (HnJudgement){ isnan(loss) ? INFINITY : loss, hn_json_number_or_nan(o, "top1"),
                        hn_json_number_or_nan(o, "agreement"), samples > 0 ? (int64_t)samples : 0 };
    return TRUE;
}

gboolean distill_note_trial(HnJournal *journal, const char *name, const HnJudgement *j, GError **error)
{
    JsonObject *o = json_object_new();
    hn_json_set_number(o, "loss", j->loss);
    hn_json_set_number(o, "top1", j->top1);
    hn_json_set_number(o, "agreement", j->agreement);
    json_object_set_int_member(o, "samples", j->samples);
    return hn_journal_add_found(journal, name, o, error);
}
