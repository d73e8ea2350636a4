/*
 * NumPy's .npz: arrays whole and in rows, the same twice, and written again. Most changes are made to a member, and to
 * its checksum with it, so that what is behind the checksum is reached.
 */
#include <string.h>

#include "data/npz.h"
#include "fuzz.h"

#define MOST_ARRAYS 8
#define LOCAL 30   /* bytes of the header in front of a member, without its name */
#define CENTRAL 46 /* of its entry in the directory */

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void check_rows(HnNpz *z, int i, const HnTensor *all)
{
    g_autoptr(GError) error = NULL;
    const HnNpyHead *h = &hn_npz_array(z, i)->head;
    if (h->ndim == 0 || h->dims[0] < 2)
        return;
    const int64_t first = h->dims[0] / 2;
    g_autoptr(HnTensor) rows = hn_npz_rows(z, i, first, 1, &error);
    fuzz_result(rows != NULL, error);
    if (rows == NULL || all == NULL)
        return;
    const gsize row = all->bytes / (gsize)h->dims[0];
    if (rows->bytes != row ||
        (row > 0 && memcmp(rows->data, (const uint8_t *)all->data + (gsize)first * row, row) != 0))
        g_error("row %" G_GINT64_FORMAT " of array '%s' is not that of the whole", first, hn_npz_array(z, i)->name);
}

/* Rows first, or all of it first: what is checked when differs. */
static HnTensor *read_array(HnNpz *z, int i, gboolean rows_first)
{
    g_autoptr(GError) error = NULL;
    const char *name = hn_npz_array(z, i)->name;
    if (hn_npz_find(z, name) != i)
        g_error("array '%s' is not found", name);
    if (rows_first)
        check_rows(z, i, NULL);
    HnTensor *t = hn_npz_read(z, i, &error);
    fuzz_result(t != NULL, error);
    if (t != NULL)
        check_rows(z, i, t);
    return t;
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    GBytes *bytes = fuzz_bytes(data, size);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnNpz *z = hn_npz_open(bytes, "f.npz", budget, &error);
    fuzz_result(z != NULL, error);
    for (int i = 0; z != NULL && i < hn_npz_count(z) && i < MOST_ARRAYS; i++) {
        HnTensor *t = read_array(z, i, (fuzz_seed(data, size) & 1) != 0);
        g_clear_pointer(&t, hn_tensor_unref);
    }
    hn_npz_free(z);
    g_bytes_unref(bytes);
    fuzz_budget_done(budget);
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static uint32_t number(const uint8_t *p, int bytes)
{
    uint32_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint32_t)p[i] << 8 * i;
    return x;
}

static void put(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

static uint32_t crc32(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

/* The entry in the directory of the k-th stored member; NULL: there is none. */
static uint8_t *find_entry(uint8_t *data, size_t size, int64_t k)
{
    for (size_t i = 0; i + CENTRAL <= size; i++)
        if (memcmp(data + i, "PK\1\2", 4) == 0 && number(data + i + 10, 2) == 0 && k-- == 0)
            return data + i;
    return NULL;
}

/* Some bytes of a member, most of them in its header, and the checksum that they have then. */
static size_t mutate(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    (void)max;
    uint8_t *entry = hn_rng_int(rng, 0, 3) != 0 ? find_entry(data, size, hn_rng_int(rng, 0, 3)) : NULL;
    const size_t at = entry != NULL ? number(entry + 42, 4) : size;
    if (at > size || size - at < LOCAL)
        return 0;
    const size_t begin = at + LOCAL + number(data + at + 26, 2) + number(data + at + 28, 2), n = number(entry + 24, 4);
    if (n == 0 || begin > size || n > size - begin || data + begin + n > entry)
        return 0;
    for (int64_t i = hn_rng_int(rng, 1, 4); i > 0; i--) {
        static const char words[] = "0123456789(),'<>|=fiubcVTrueFals {}:-\n";
        const int64_t most = hn_rng_int(rng, 0, 3) != 0 ? MIN((int64_t)n, 128) : (int64_t)n;
        data[begin + (size_t)hn_rng_int(rng, 0, most - 1)] =
            hn_rng_int(rng, 0, 1) ? (uint8_t)words[hn_rng_int(rng, 0, sizeof words - 2)] : (uint8_t)hn_rng_u64(rng);
    }
    const uint32_t crc = crc32(data + begin, n);
    put(entry + 16, crc);
    put(data + at + 14, crc);
    return size;
}

const FuzzTarget fuzz_target = { .one = one, .mutate = mutate };
