#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/data.h"

/* Place for a batch that is being loaded, or was. */
typedef struct {
    gboolean done;
    HnSample *sample; /* NULL with done: error */
    GError *error;
} Slot;

struct HnDataIter {
    const HnData *data;
    HnDataIterOptions o;
    uint32_t *order; /* NULL: 0, 1, 2, ... */
    int64_t samples, batches;
    int64_t next;      /* batch to hand out */
    int64_t scheduled; /* batches handed to the pool */
    gboolean ended;
    GThreadPool *pool; /* NULL: batches are loaded when asked for */
    Slot *slots;       /* batch k is in slot k % n_slots */
    int n_slots;
    GMutex mutex;
    GCond cond;
};

HnDataIter *hn_data_iter_new(const HnData *d, const HnDataIterOptions *options)
{
    HnDataIter *it = g_new0(HnDataIter, 1);
    int64_t all = hn_data_count(d);
    it->data = d;
    it->o = *options;
    it->o.batch = MAX(options->batch, 1);
    it->samples = options->limit > 0 ? MIN(options->limit, all) : all;
    it->batches = (it->samples + it->o.batch - 1) / it->o.batch;
    if (options->shuffle) {
        HnRng rng = hn_rng(options->seed);
        it->order = g_new(uint32_t, (gsize)all);
        for (int64_t i = 0; i < all; i++)
            it->order[i] = (uint32_t)i;
        hn_rng_shuffle(&rng, it->order, (uint32_t)all);
    }
    if (options->threads > 0 && it->batches > 1) {
        it->n_slots = (int)MIN(options->ahead > 0 ? options->ahead : 2 * options->threads, it->batches);
        it->slots = g_new0(Slot, it->n_slots);
    }
    g_mutex_init(&it->mutex);
    g_cond_init(&it->cond);
    return it;
}

static HnSample *load_batch(const HnDataIter *it, int64_t k, GError **error)
{
    int64_t first = k * it->o.batch;
    int n = (int)MIN(it->samples - first, it->o.batch);
    g_autofree int64_t *index = g_new(int64_t, n);
    for (int i = 0; i < n; i++)
        index[i] = it->order ? it->order[first + i] : first + i;
    return hn_data_load_batch(it->data, index, n, error);
}

/* task is the number of a batch, plus 1 */
static void work(gpointer task, gpointer data)
{
    HnDataIter *it = data;
    int64_t k = (int64_t)GPOINTER_TO_SIZE(task) - 1;
    GError *error = NULL;
    HnSample *sample = load_batch(it, k, &error);
    g_mutex_lock(&it->mutex);
    it->slots[k % it->n_slots] = (Slot){ TRUE, sample, error };
    g_cond_signal(&it->cond);
    g_mutex_unlock(&it->mutex);
}

static HnSample *next_ahead(HnDataIter *it, GError **error)
{
    if (!it->pool)
        it->pool = g_thread_pool_new(work, it, it->o.threads, FALSE, NULL);
    while (it->scheduled < it->batches && it->scheduled < it->next + it->n_slots) {
        gboolean more = g_thread_pool_push(it->pool, GSIZE_TO_POINTER((gsize)++it->scheduled), NULL);
        if (!more && g_thread_pool_get_num_threads(it->pool) == 0) { /* else the others do the task that is queued */
            g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "no thread can be had to read samples with");
            return NULL;
        }
    }
    Slot *slot = &it->slots[it->next % it->n_slots];
    g_mutex_lock(&it->mutex);
    while (!slot->done)
        g_cond_wait(&it->cond, &it->mutex);
    Slot got = *slot;
    *slot = (Slot){ 0 };
    g_mutex_unlock(&it->mutex);
    if (got.error)
        g_propagate_error(error, got.error);
    return got.sample;
}

HnSample *hn_data_iter_next(HnDataIter *it, GError **error)
{
    if (it->ended || it->next == it->batches)
        return NULL;
    HnSample *s = it->slots ? next_ahead(it, error) : load_batch(it, it->next, error);
    it->next++;
    it->ended = s == NULL;
    return s;
}

int64_t hn_data_iter_batches(const HnDataIter *it)
{
    return it->batches;
}

void hn_data_iter_free(HnDataIter *it)
{
    if (!it)
        return;
    if (it->pool)
        g_thread_pool_free(it->pool, TRUE, TRUE);
    for (int i = 0; i < it->n_slots; i++) {
        hn_sample_free(it->slots[i].sample);
        g_clear_error(&it->slots[i].error);
    }
    g_mutex_clear(&it->mutex);
    g_cond_clear(&it->cond);
    g_free(it->slots);
    g_free(it->order);
    g_free(it);
}
