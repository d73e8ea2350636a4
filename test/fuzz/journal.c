/* Journals: gone on with, which keeps what is whole and cuts off the rest. The first line, the header, is given. */
#include <string.h>

#include "json.h"
#include "tune/journal.h"
#include "scratch.h"

#define FIRST "{\"schema\":\"hone.journal/1\",\"model\":\"5e1f\"}\n"

/* NULL: it is not the journal of this run. */
static HnJournal *resume(const Scratch *file)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnJournal) j = hn_journal_new();
    g_autoptr(JsonObject) header = json_object_new();
    json_object_set_string_member(header, "model", "5e1f");
    const gboolean ok = hn_journal_open(j, scratch_path(file), TRUE, header, &error);
    fuzz_result(ok, error);
    return ok ? g_steal_pointer(&j) : NULL;
}

static void add(HnJournal *j)
{
    HnTried *t = g_new0(HnTried, 1);
    HnNodeTimes *times = hn_node_times_new();
    t->plan = g_strdup("a plan of our own");
    t->what = g_strdup("all");
    t->bytes = 7;
    t->f32 = g_ptr_array_new_with_free_func(g_free);
    times->total_ms = 1.5;
    if (!hn_journal_add_tried(j, t, NULL) || !hn_journal_add_times(j, "own times", times, NULL) ||
        !hn_journal_add_race(j, "own", "race", &(HnEffect){ .effect = 0.5, .sure_lo = 0.4, .sure_hi = 0.6 }, NULL))
        g_error("nothing can be added");
}

static void one(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *all = g_malloc(size + sizeof FIRST);
    HnEffect effect;
    memcpy(all, FIRST, sizeof FIRST - 1);
    if (size > 0)
        memcpy(all + sizeof FIRST - 1, data, size);
    /* with a first byte of '#' the header is what the bytes say */
    const gboolean own = size > 0 && data[0] == '#';
    g_autoptr(Scratch) file = own ? scratch_new(data + 1, size - 1) : scratch_new(all, size + sizeof FIRST - 1);
    g_autoptr(HnJournal) j = resume(file);
    if (j == NULL && !own)
        g_error("the header was not understood");
    if (j == NULL)
        return;
    const gboolean known = hn_journal_tried(j, "a plan of our own") != NULL;
    const guint trials = hn_journal_resumed(j);
    add(j);
    g_autoptr(HnJournal) again = resume(file);
    if (again == NULL || hn_journal_resumed(again) != trials + 1)
        g_error("%u trials became %u", trials, again != NULL ? hn_journal_resumed(again) : 0);
    const HnTried *t = hn_journal_tried(again, "a plan of our own");
    if (t == NULL || t->bytes != 7 || t->f32->len != 0 || (!known && strcmp(t->what, "all") != 0))
        g_error("what was added is not there");
    if (hn_journal_times(again, "own times") == NULL || !hn_journal_race(again, "own", "race", &effect))
        g_error("times that were added are not there");
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_json, .times = 3 };
