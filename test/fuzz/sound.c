/* Sound files, mixed and resampled. */
#include "data/sound.h"
#include "fuzz.h"

#define MOST 65536

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    g_autofree uint8_t *copy = g_memdup2(data, size);
    if (hn_sound_is(copy, size)) {
        HnSound *s = hn_sound_read(copy, size, "f.wav", budget, &error);
        fuzz_result(s != NULL, error);
        if (s != NULL && s->frames < MOST) {
            s = hn_sound_to_channels(s, 1, "f.wav", &error);
            if (s != NULL && s->rate > 1000 && s->rate < 100000) {
                fuzz_untimed_begin(); /* as long as the rate asks for */
                s = hn_sound_to_rate(s, 1000, &error);
                fuzz_untimed_end();
            }
            fuzz_result(s != NULL, error);
        }
        hn_sound_free(s);
    }
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one, .times = 2 };
