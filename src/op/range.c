#include "op/range.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

#define CHUNK 1024

struct HnRanges {
    GHashTable *of; /* name -> HnRange * */
};

HnRanges *hn_ranges_new(void)
{
    HnRanges *r = g_new0(HnRanges, 1);
    r->of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return r;
}

void hn_ranges_free(HnRanges *r)
{
    if (r == NULL)
        return;
    g_hash_table_unref(r->of);
    g_free(r);
}

static HnRange *entry(HnRanges *r, const char *name)
{
    HnRange *e = g_hash_table_lookup(r->of, name);
    if (e == NULL) {
        e = g_new0(HnRange, 1);
        e->smallest = INFINITY;
        g_hash_table_insert(r->of, g_strdup(name), e);
    }
    return e;
}

static void look(HnRange *r, double x)
{
    const double m = fabs(x);
    r->n++;
    if (!isfinite(x)) {
        r->n_other++;
    } else if (x <= HN_MASK) {
        r->n_mask++;
    } else if (m == 0) {
        r->n_zero++;
    } else {
        r->negative = r->negative || x < 0;
        r->largest = MAX(r->largest, m);
        r->smallest = MIN(r->smallest, m);
    }
}

/* The same for n of them. The bits of magnitudes are in the order of the magnitudes, and integers make short loops. */
static void look_f32(HnRange *r, const uint32_t *x, int n)
{
    const uint32_t inf = hn_f32_bits(INFINITY), mask = hn_f32_bits((float)HN_MASK) & INT32_MAX;
    uint32_t largest = 0, smallest = UINT32_MAX; /* of bits - 1: 0 is beyond all others */
    int zero = 0, masks = 0, other = 0, negative = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t m = x[i] & INT32_MAX, sign = x[i] >> 31;
        const uint32_t is_other = m >= inf, is_mask = m < inf && m >= mask ? sign : 0;
        const uint32_t counts = (is_other | is_mask) != 0 ? 0 : m;
        zero += m == 0;
        other += (int)is_other;
        masks += (int)is_mask;
        negative |= (int)sign & (counts != 0);
        largest = MAX(largest, counts);
        smallest = MIN(smallest, counts - 1);
    }
    r->n += n;
    r->n_zero += zero;
    r->n_mask += masks;
    r->n_other += other;
    r->negative = r->negative || negative != 0;
    if (largest > 0) {
        r->largest = MAX(r->largest, (double)hn_f32_from_bits(largest));
        r->smallest = MIN(r->smallest, (double)hn_f32_from_bits(smallest + 1));
    }
}

static void look_at(HnRange *r, const HnTensor *t)
{
    if (!hn_dtype_in(t->dtype, HN_T_FLOATS))
        return;
    uint32_t part[CHUNK]; /* a file's elements may lie at any address */
    for (int64_t i = 0; t->dtype == HN_F32 && i < t->n; i += CHUNK) {
        const int n = (int)MIN(t->n - i, CHUNK);
        memcpy(part, (const char *)t->data + (size_t)i * sizeof *part, (size_t)n * sizeof *part);
        look_f32(r, part, n);
    }
    for (int64_t i = 0; t->dtype != HN_F32 && i < t->n; i++)
        look(r, hn_tensor_get_f64(t, i));
}

void hn_range_of(const HnTensor *t, HnRange *range)
{
    *range = (HnRange){ .smallest = INFINITY };
    look_at(range, t);
}

void hn_ranges_note(HnRanges *r, const char *name, const HnTensor *t)
{
    if (hn_dtype_in(t->dtype, HN_T_FLOATS) && !t->unloaded)
        look_at(entry(r, name), t);
}

void hn_ranges_note_inside(HnRanges *r, const char *name, double magnitude, const char *what)
{
    HnRange *e = entry(r, name);
    if (e->inside_what != NULL && !(magnitude > e->inside))
        return;
    e->inside = magnitude;
    e->inside_what = what;
}

const HnRange *hn_ranges_get(const HnRanges *r, const char *name)
{
    const HnRange *e = r != NULL ? g_hash_table_lookup(r->of, name) : NULL;
    return e != NULL && e->n > 0 ? e : NULL;
}

guint hn_ranges_count(const HnRanges *r)
{
    return g_hash_table_size(r->of);
}
