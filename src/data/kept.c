#include "data/kept.h"

struct HnKept {
    GMutex lock;
    HnSample **sample; /* [count]; NULL: not there */
    int64_t count;
    gsize most, bytes;
};

HnKept *hn_kept_new(int64_t count, gsize bytes)
{
    HnKept *k = g_new0(HnKept, 1);
    g_mutex_init(&k->lock);
    k->sample = g_new0(HnSample *, (gsize)count);
    k->count = count;
    k->most = bytes;
    return k;
}

void hn_kept_free(HnKept *k)
{
    if (k == NULL)
        return;
    for (int64_t i = 0; i < k->count; i++)
        hn_sample_free(k->sample[i]);
    g_mutex_clear(&k->lock);
    g_free(k->sample);
    g_free(k);
}

gsize hn_sample_bytes(const HnSample *s)
{
    gsize bytes = 0;
    for (int i = 0; i < s->n; i++)
        bytes += s->in[i] != NULL ? s->in[i]->bytes : 0;
    return bytes;
}

static HnSample *shared(const HnSample *from)
{
    HnSample *s = g_new0(HnSample, 1);
    *s = (HnSample){ .n = from->n, .index = from->index, .count = from->count, .name = g_strdup(from->name) };
    s->in = g_new0(HnTensor *, (gsize)s->n + 1);
    for (int i = 0; i < s->n; i++)
        s->in[i] = from->in[i] != NULL ? hn_tensor_ref(from->in[i]) : NULL;
    s->label = from->label != NULL ? hn_tensor_ref(from->label) : NULL;
    s->which = g_memdup2(from->which, (gsize)s->count * sizeof *s->which);
    return s;
}

HnSample *hn_kept_get(HnKept *k, int64_t i)
{
    if (k == NULL)
        return NULL;
    g_mutex_lock(&k->lock);
    HnSample *s = k->sample[i] != NULL ? shared(k->sample[i]) : NULL;
    g_mutex_unlock(&k->lock);
    return s;
}

void hn_kept_put(HnKept *k, int64_t i, const HnSample *s)
{
    if (k == NULL)
        return;
    g_mutex_lock(&k->lock);
    if (k->sample[i] == NULL && hn_sample_bytes(s) <= k->most - k->bytes) {
        k->bytes += hn_sample_bytes(s);
        k->sample[i] = shared(s);
    }
    g_mutex_unlock(&k->lock);
}
