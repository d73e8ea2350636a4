#include "train/gradient_sum.h"

#include <string.h>

#include "base/error.h"
#include "base/team.h"

#define LEVELS 32
#define CHUNK 16384 /* elements that one thread takes at a time */

struct HnGradientSum {
    guint n;
    int threads;
    HnBudget *budget;
    guint32 count;            /* micro-batches so far */
    HnTensor **level[LEVELS]; /* sums of 1, 2, 4, ... micro-batches; bit k of count: level k holds one */
};

static void free_level(HnGradientSum *s, int k)
{
    for (guint i = 0; s->level[k] != NULL && i < s->n; i++)
        hn_tensor_unref(s->level[k][i]);
    g_clear_pointer(&s->level[k], g_free);
}

HnGradientSum *hn_gradient_sum_new(guint n, int threads, HnBudget *budget)
{
    HnGradientSum *s = g_new0(HnGradientSum, 1);
    s->n = n;
    s->threads = MAX(threads, 1);
    s->budget = budget != NULL ? hn_budget_ref(budget) : NULL;
    return s;
}

void hn_gradient_sum_free(HnGradientSum *s)
{
    if (s == NULL)
        return;
    for (int k = 0; k < LEVELS; k++)
        free_level(s, k);
    if (s->budget != NULL)
        hn_budget_unref(s->budget);
    g_free(s);
}

/* Memory for level k, that of another level which holds no sum now where there is one. */
static gboolean have_level(HnGradientSum *s, int k, HnTensor *const *like, GError **error)
{
    for (int j = 0; s->level[k] == NULL && j < LEVELS; j++)
        if ((s->count >> j & 1) == 0)
            s->level[k] = g_steal_pointer(&s->level[j]);
    if (s->level[k] != NULL)
        return TRUE;
    s->level[k] = g_new0(HnTensor *, s->n + 1);
    for (guint i = 0; i < s->n; i++)
        if ((s->level[k][i] = hn_tensor_new_uninit(HN_F32, like[i]->ndim, like[i]->dims, s->budget, error)) == NULL)
            return FALSE;
    return TRUE;
}

/* to = a + b, element by element; b NULL: a copy. */
typedef struct {
    HnTensor *const *to, *const *a, *const *b;
    guint n;
    gint tensor; /* atomic */
} Work;

static void add_tensor(float *to, const float *a, const float *b, int64_t n)
{
    if (b == NULL) {
        memcpy(to, a, (gsize)n * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] + b[i];
}

static void claim(gpointer data)
{
    Work *w = data;
    for (guint i; (i = (guint)g_atomic_int_add(&w->tensor, 1)) < w->n;)
        add_tensor(w->to[i]->data, w->a[i]->data, w->b != NULL ? w->b[i]->data : NULL, w->a[i]->n);
}

static void combine(const HnGradientSum *s, HnTensor *const *to, HnTensor *const *a, HnTensor *const *b)
{
    Work w = { to, a, b, s->n, 0 };
    int64_t elements = 0;
    for (guint i = 0; i < s->n; i++)
        elements += a[i]->n;
    HnRegion region = { .fn = claim, .data = &w, .n = elements > CHUNK ? MIN(s->threads, (int)s->n) : 1 };
    hn_team_run(&region, FALSE);
}

gboolean hn_gradient_sum_add(HnGradientSum *s, HnTensor *const *gradients, GError **error)
{
    HnTensor *const *carry = gradients;
    int k = 0;
    for (; (s->count >> k & 1) != 0; k++) { /* the level's sum is of the micro-batches before */
        combine(s, s->level[k], s->level[k], carry);
        carry = s->level[k];
    }
    if (k > 0) { /* the sum moves up */
        HnTensor **spare = s->level[k];
        s->level[k] = s->level[k - 1];
        s->level[k - 1] = spare;
    } else if (have_level(s, k, gradients, error)) {
        combine(s, s->level[k], carry, NULL);
    } else {
        return FALSE;
    }
    s->count++;
    return TRUE;
}

guint hn_gradient_sum_levels(guint parts)
{
    return parts > 1 ? g_bit_storage(parts + 1) - 1 : 0; /* bits that are set at once in numbers up to it */
}

HnTensor *const *hn_gradient_sum_finish(HnGradientSum *s, GError **error)
{
    HnTensor *const *sum = NULL;
    for (int k = 0; k < LEVELS; k++) {
        if ((s->count >> k & 1) == 0)
            continue;
        if (sum != NULL)
            combine(s, s->level[k], s->level[k], sum);
        sum = s->level[k];
    }
    if (sum == NULL)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, "there are no gradients to add");
    s->count = 0;
    return sum;
}
