#include "run/variable.h"

#include "base/team.h"

typedef struct {
    const HnStep *step;
    HnRenewFn fn;
    gpointer data;
} Renewal;

static void clear(gpointer renewal)
{
    g_free(((Renewal *)renewal)->data);
}

GArray *hn_renewals_new(void)
{
    GArray *renewals = g_array_new(FALSE, FALSE, sizeof(Renewal));
    g_array_set_clear_func(renewals, clear);
    return renewals;
}

void hn_step_renews(HnStep *s, HnRenewFn fn, gpointer data)
{
    const Renewal r = { s, fn, data };
    g_array_append_val(s->renewals, r);
}

void hn_renewals_forget(GArray *renewals, const HnStep *s)
{
    for (guint i = renewals->len; i-- > 0;)
        if (g_array_index(renewals, Renewal, i).step == s)
            g_array_remove_index_fast(renewals, i);
}

typedef struct {
    const GArray *renewals;
    gint claimed; /* atomic */
} Work;

static void claim(void *data)
{
    Work *w = data;
    for (guint i; (i = (guint)g_atomic_int_add(&w->claimed, 1)) < w->renewals->len;) {
        const Renewal *r = &g_array_index(w->renewals, Renewal, i);
        r->fn(r->step, r->data);
    }
}

void hn_renewals_run(const GArray *renewals, int threads)
{
    Work w = { renewals, 0 };
    HnRegion region = { .fn = claim, .data = &w, .n = MAX(MIN(threads, (int)renewals->len), 1) };
    hn_team_run(&region, FALSE); /* fails only where threads must be together */
}
