#include "data/distinct.h"

#include <string.h>

/* Of all inputs of a sample. */
typedef struct {
    guint64 a, b;
} Key;

static guint key_hash(gconstpointer key)
{
    return (guint)((const Key *)key)->a;
}

static gboolean key_equal(gconstpointer first, gconstpointer second)
{
    const Key *x = first, *y = second;
    return x->a == y->a && x->b == y->b;
}

/* Two chains, each of which every word goes through: a product by an odd number loses nothing, and the shift brings
 * upper bits down to where the next product moves them up again. */
static void add_word(Key *k, guint64 word)
{
    k->a = (k->a ^ word) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    k->a ^= k->a >> 29;
    k->b = (k->b + word) * G_GUINT64_CONSTANT(0xd6e8feb86659fd93);
    k->b ^= k->b >> 32;
}

/* The sign bits of the numbers of a word; 0: none that a zero may have. */
static guint64 signs_of(HnDtype dtype)
{
    switch (dtype) {
    case HN_F16:
    case HN_BF16:
        return G_GUINT64_CONSTANT(0x8000800080008000);
    case HN_F32:
        return G_GUINT64_CONSTANT(0x8000000080000000);
    case HN_F64:
        return G_GUINT64_CONSTANT(0x8000000000000000);
    default:
        return 0;
    }
}

/* A word in which -0.0 is 0: the sum sets the sign's bit of each number that is none of both, and carries nothing on.
 */
static guint64 one_zero(guint64 word, guint64 signs)
{
    return word & (((word & ~signs) + ~signs) | ~signs);
}

static void add_bytes(Key *k, const void *data, gsize n, guint64 signs)
{
    const char *at = data;
    guint64 word;
    add_word(k, n);
    for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        add_word(k, one_zero(word, signs));
    }
    word = 0;
    if (n > 0)
        memcpy(&word, at, n);
    add_word(k, one_zero(word, signs));
}

static void add_tensor(Key *k, const HnTensor *t)
{
    add_word(k, t != NULL ? (guint64)t->dtype : G_MAXUINT64);
    if (t == NULL)
        return;
    add_bytes(k, t->dims, (gsize)t->ndim * sizeof t->dims[0], 0);
    if (hn_tensor_is_list(t)) {
        for (int64_t i = 0; i < t->n; i++)
            add_tensor(k, hn_tensor_get_item(t, i));
    } else if (t->dtype == HN_STRING) {
        for (int64_t i = 0; i < t->n; i++) {
            gsize n;
            const void *s = g_bytes_get_data(hn_tensor_get_string(t, i), &n);
            add_bytes(k, s, n, 0);
        }
    } else {
        add_bytes(k, t->data, t->bytes, signs_of(t->dtype));
    }
}

static gboolean key_of(const HnData *d, int64_t i, Key *k, GError **error)
{
    g_autoptr(HnSample) s = hn_data_load(d, i, error);
    *k = (Key){ 1, 2 };
    for (int j = 0; s != NULL && j < s->n; j++)
        add_tensor(k, s->in[j]);
    return s != NULL;
}

static GHashTable *keys_new(void)
{
    return g_hash_table_new_full(key_hash, key_equal, g_free, NULL);
}

/* Samples of d that `seen` does not have, `most` at most; add: they are seen from then on. */
static HnData *pick(const HnData *d, GHashTable *seen, gboolean add, int64_t most, int64_t *copies, GError **error)
{
    g_autoptr(GArray) index = g_array_new(FALSE, FALSE, sizeof(int64_t));
    *copies = 0;
    for (int64_t i = 0; i < hn_data_count(d) && (int64_t)index->len < most; i++) {
        Key k;
        if (!key_of(d, i, &k, error))
            return NULL;
        if (g_hash_table_contains(seen, &k)) {
            (*copies)++;
            continue;
        }
        g_array_append_val(index, i);
        if (add)
            g_hash_table_add(seen, g_memdup2(&k, sizeof k));
    }
    return hn_data_some(d, (const int64_t *)(gpointer)index->data, index->len);
}

HnData *hn_data_distinct(const HnData *d, int64_t most, int64_t *copies, GError **error)
{
    g_autoptr(GHashTable) seen = keys_new();
    return pick(d, seen, TRUE, most, copies, error);
}

HnData *hn_data_unlike(const HnData *d, const HnData *other, GError **error)
{
    g_autoptr(GHashTable) seen = keys_new();
    int64_t copies;
    for (int64_t i = 0; i < hn_data_count(other); i++) {
        Key k;
        if (!key_of(other, i, &k, error))
            return NULL;
        g_hash_table_add(seen, g_memdup2(&k, sizeof k));
    }
    return pick(d, seen, FALSE, G_MAXINT64, &copies, error);
}
