/* Timing caches: lines of any run, of which those of one key count; what is no line is passed over. */
#include "json.h"
#include "tune/journal.h"
#include "scratch.h"

#define KEY "5e1f"

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(Scratch) file = scratch_new(data, size);
    g_autoptr(HnJournal) j = hn_journal_new(), again = hn_journal_new(), first = hn_journal_new(),
                         last = hn_journal_new();
    HnEffect effect;
    hn_journal_use_cache(first, scratch_path(file), "another run's");
    hn_journal_use_cache(j, scratch_path(file), KEY);
    const gboolean raced = hn_journal_race(j, "a", "b", &effect);
    if (!hn_journal_add_race(j, "own", "race", &(HnEffect){ .effect = 0.5, .sure_lo = 0.4, .sure_hi = 0.6 }, NULL) ||
        !hn_journal_add_times(j, "own times", hn_node_times_new(), NULL))
        g_error("nothing can be added");
    hn_journal_use_cache(again, scratch_path(file), KEY);
    if (!hn_journal_race(again, "own", "race", &effect) || effect.effect != 0.5)
        g_error("a race that was added is not there");
    if (raced && !hn_journal_race(again, "a", "b", &effect))
        g_error("a race that was there is lost");
    hn_journal_use_cache(last, scratch_path(file), "another run's");
    if (hn_journal_race(last, "own", "race", &effect) && !hn_journal_race(first, "own", "race", &effect))
        g_error("times of one run count for another");
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_json, .times = 4 };
