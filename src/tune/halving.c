#include "tune/halving.h"

/* The first n places: the best first. */
static void sort(const HnHalving *h, guint *order, guint n)
{
    for (guint i = 1; i < n; i++)
        for (guint k = i; k > 0 && h->better(h->data, order[k], order[k - 1]); k--) {
            const guint o = order[k];
            order[k] = order[k - 1];
            order[k - 1] = o;
        }
}

gboolean hn_halving_run(const HnHalving *h, guint *order, GError **error)
{
    int64_t length = MIN(h->first, h->most);
    for (guint i = 0; i < h->n; i++)
        order[i] = i;
    for (guint n = h->n; n > 1; n = (n + 1) / 2, length = MIN(2 * length, h->most)) {
        for (guint i = 0; i < n; i++)
            if (!h->attempt(h->data, order[i], length, error))
                return FALSE;
        sort(h, order, n);
    }
    return TRUE;
}

int64_t hn_halving_length(const HnHalving *h, guint *trials)
{
    int64_t sum = 0, length = MIN(h->first, h->most);
    guint count = 0;
    for (guint n = h->n; n > 1; n = (n + 1) / 2, length = MIN(2 * length, h->most)) {
        sum += n * length;
        count += n;
    }
    if (trials != NULL)
        *trials = count;
    return sum;
}

int64_t hn_halving_last(const HnHalving *h)
{
    int64_t length = MIN(h->first, h->most);
    for (guint n = (h->n + 1) / 2; n > 1; n = (n + 1) / 2)
        length = MIN(2 * length, h->most);
    return length;
}
