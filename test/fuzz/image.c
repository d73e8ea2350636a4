/* Pictures: PNG, JPEG, PPM and PGM, with what follows decoding. Most changes to a PNG are made inside a chunk, and to
 * its checksum with it, so that what is behind the checksum is reached. */
#include "data/image.h"
#include "fuzz.h"

#define HEAD 8   /* bytes in front of the first chunk of a PNG */
#define FRAME 12 /* of a chunk: its length and kind, and the checksum behind it */
#define MOST 65536

static void use(HnImage *m)
{
    g_autoptr(GError) error = NULL;
    static const int channels[] = { 3, 3, 1, 4 }; /* of 1, 2, 3, 4 */
    if ((int64_t)m->width * m->height > MOST) {
        hn_image_free(m);
        return;
    }
    m = hn_image_to_channels(m, channels[m->channels - 1], &error);
    fuzz_result(m != NULL, error);
    g_autoptr(HnImage) resized = m != NULL ? hn_image_resize(m, 7, 5, (HnFilter)(m->width % 3), &error) : NULL;
    fuzz_result(resized != NULL, error);
    hn_image_free(m);
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    g_autofree uint8_t *copy = g_memdup2(data, size); /* on the heap alone, so that the sanitizer sees the end */
    if (hn_image_is(copy, size)) {
        HnImage *m = hn_image_read(copy, size, "f.png", TRUE, budget, &error);
        fuzz_result(m != NULL, error);
        if (m != NULL)
            use(m);
    }
    fuzz_budget_done(budget);
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* PNG's CRC-32, of a chunk's kind and data. */
static uint32_t checksum(const uint8_t *p, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

/* Where a chunk that is whole begins, one of those in data; 0: there is none. */
static size_t some_chunk(const uint8_t *data, size_t size, HnRng *rng)
{
    size_t found = 0, at = HEAD;
    for (int64_t n = 1; size >= FRAME && at <= size - FRAME; n++) {
        const size_t length = big_endian(data + at);
        if (length > size - FRAME - at)
            break;
        if (hn_rng_int(rng, 1, n) == 1)
            found = at;
        at += FRAME + length;
    }
    return found;
}

static size_t mutate(uint8_t *data, size_t size, G_GNUC_UNUSED size_t max, HnRng *rng)
{
    const size_t at = size > 1 && data[0] == 0x89 && hn_rng_int(rng, 0, 3) > 0 ? some_chunk(data, size, rng) : 0;
    const size_t length = at > 0 ? big_endian(data + at) : 0;
    if (length == 0)
        return 0;
    for (int64_t k = hn_rng_int(rng, 1, 3); k > 0; k--)
        data[at + 8 + (size_t)hn_rng_int(rng, 0, (int64_t)length - 1)] = (uint8_t)hn_rng_int(rng, 0, 255);
    const uint32_t sum = checksum(data + at + 4, length + 4);
    for (int k = 0; k < 4; k++)
        data[at + 8 + length + (size_t)k] = (uint8_t)(sum >> (24 - 8 * k));
    return size;
}

const FuzzTarget fuzz_target = { .one = one, .mutate = mutate, .times = 2 };
