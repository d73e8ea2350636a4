#include "cpu/sparse/sparse_bytes.h"

#include <string.h>

#include "base/cpu.h"

#define HN_LEVEL avx2
#include "cpu/sparse/sparse_bytes_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/sparse/sparse_bytes_loops.h"
#undef HN_LEVEL
#define HN_LEVEL vnni
#include "cpu/sparse/sparse_bytes_loops.h"
#undef HN_LEVEL
#define HN_LEVEL vbmi
#include "cpu/sparse/sparse_bytes_loops.h"
#undef HN_LEVEL

#define LINE 64 /* bytes of the cache's */
/* What reading a group of a vector, and a step, from a cache further away takes once for all rows. */
#define OF_GROUP_READ 3.0
#define OF_STEP_READ 10.0

typedef struct {
    int window; /* bytes that a step sees */
    gboolean
        whole;   /* windows begin at a multiple of that, but for a segment's last: more lie in one line of the cache */
    double cost; /* of a step, in dense products of a row with a vector */
    const HnSparseTileFn *tiles;
} Level;

/* NULL: not at this level. */
static const Level *level(void)
{
    static const Level levels[] = { { 16, FALSE, 1.4, sparse_tiles_avx2 },
                                    { 16, FALSE, 1.4, sparse_tiles_avx512 },
                                    { 16, FALSE, 2.5, sparse_tiles_vnni },
                                    { 64, TRUE, 1.7, sparse_tiles_vbmi } };
    const HnIsa isa = hn_cpu_isa();
    if (isa >= HN_ISA_VNNI)
        return &levels[hn_int8_has_vbmi() ? 3 : 2];
    return isa >= HN_ISA_AVX512 ? &levels[1] : isa >= HN_ISA_AVX2 ? &levels[0] : NULL;
}

static int lanes(void)
{
    return hn_int8_cols() / 2;
}

gboolean hn_sparse_bytes_fit(int64_t depth)
{
    const Level *l = level();
    return l != NULL && depth >= l->window && depth <= G_MAXINT32;
}

double hn_sparse_bytes_cost(const HnSparseLists *l, int64_t rows)
{
    return (double)(l->steps[0] + l->steps[1]) * ((double)rows * level()->cost + OF_STEP_READ);
}

double hn_sparse_dense_cost(int64_t groups, int64_t rows)
{
    return (double)groups * ((double)rows + OF_GROUP_READ);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* A column's weights of a segment that no step has yet. */
typedef struct {
    int8_t *w;
    int64_t next; /* all before it are 0 */
} Rest;

static int64_t next_of(Rest *r, int64_t depth)
{
    while (r->next < depth && r->w[r->next] == 0)
        r->next++;
    return r->next;
}

/* Up to four weights of window [from, end) go to a step's list. */
static void take(Rest *r, int64_t from, int64_t end, uint8_t *places, int8_t *weights)
{
    int8_t left[HN_INT8_GROUP];
    int n = 0;
    for (; n < HN_INT8_GROUP && next_of(r, end) < end; r->next++) {
        places[n] = (uint8_t)(r->next - from);
        weights[n++] = r->w[r->next];
        r->w[r->next] = 0;
    }
    if (!hn_int8_saturates() || !hn_int8_split(weights, left))
        return;
    for (int q = n - 1; q >= 0; q--) {
        r->w[from + places[q]] = left[q];
        r->next = left[q] != 0 ? from + places[q] : r->next;
    }
}

/* Steps of a segment; lists: the first one's, or NULL. */
static int64_t segment_steps(const HnSparseColumns *c, Rest *rest, int64_t seg, uint8_t *lists, HnSparsePlace *places)
{
    const Level *l = level();
    const gsize vector = (gsize)lanes() * HN_INT8_GROUP;
    int64_t n = 0;
    for (int j = 0; j < c->cols; j++) {
        memcpy(rest[j].w, c->w + j * c->length + seg * c->depth, (gsize)c->depth);
        rest[j].next = 0;
    }
    for (;; n++) {
        uint8_t scratch[2 * LINE] = { 0 }, *list = scratch;
        int64_t from = c->depth;
        for (int j = 0; j < c->cols; j++) {
            const int64_t next = next_of(&rest[j], c->depth);
            from = MIN(from, next);
        }
        if (from == c->depth)
            return n;
        if (l->whole)
            from = from / l->window * l->window;
        from = MIN(from, c->depth - l->window);
        const int64_t end = from + l->window;
        if (lists != NULL) {
            list = lists + 2 * vector * (gsize)n;
            places[n] = (HnSparsePlace){ (int32_t)seg, (int32_t)from };
            memset(list, 0, 2 * vector);
        }
        for (int j = 0; j < c->cols; j++)
            take(&rest[j], from, end, list + j * HN_INT8_GROUP, (int8_t *)list + vector + j * HN_INT8_GROUP);
    }
}

static int64_t all_steps(const HnSparseColumns *c, uint8_t *lists, HnSparsePlace *places)
{
    Rest rest[HN_INT8_MAX_COLS / 2];
    g_autofree int8_t *all = g_malloc((gsize)(c->cols * c->depth) + 1);
    const gsize vector = (gsize)lanes() * HN_INT8_GROUP;
    int64_t n = 0;
    for (int j = 0; j < c->cols; j++)
        rest[j].w = all + j * c->depth;
    for (int64_t s = 0; s < c->segs; s++)
        n += segment_steps(c, rest, s, lists != NULL ? lists + 2 * vector * (gsize)n : NULL,
                           places != NULL ? places + n : NULL);
    return n;
}

static HnSparseColumns half_of(const HnSparseColumns *c, int i)
{
    HnSparseColumns half = *c;
    half.w += i * lanes() * c->length;
    half.cols = CLAMP(c->cols - i * lanes(), 0, lanes());
    return half;
}

HnSparseLists hn_sparse_bytes_count(const HnSparseColumns *c)
{
    const HnSparseColumns first = half_of(c, 0), second = half_of(c, 1);
    return (HnSparseLists){ { all_steps(&first, NULL, NULL), second.cols > 0 ? all_steps(&second, NULL, NULL) : 0 } };
}

static gsize bytes_of_steps(int64_t steps)
{
    return (gsize)steps * 2 * (gsize)lanes() * HN_INT8_GROUP;
}

static gsize bytes_of_half(int64_t steps)
{
    return (bytes_of_steps(steps) + (gsize)steps * sizeof(HnSparsePlace) + LINE - 1) / LINE * LINE;
}

gsize hn_sparse_bytes_size(const HnSparseLists *l)
{
    return bytes_of_half(l->steps[0]) + bytes_of_half(l->steps[1]);
}

void hn_sparse_bytes_pack(const HnSparseColumns *c, const HnSparseLists *l, void *to)
{
    uint8_t *lists = to;
    for (int i = 0; i < 2 && i * lanes() < c->cols; lists += bytes_of_half(l->steps[i++])) {
        const HnSparseColumns half = half_of(c, i);
        all_steps(&half, lists, (HnSparsePlace *)(void *)(lists + bytes_of_steps(l->steps[i])));
    }
}

/* --- products ----------------------------------------------------------------------------------------------------- */

const HnSparseTileFn *hn_sparse_bytes_fns(void)
{
    return level()->tiles;
}

int hn_sparse_bytes_open(HnSparseTile *halves, const HnSparseLists *l, const void *packed, const int32_t *begin,
                         int cols)
{
    const uint8_t *lists = packed;
    const int n = cols > lanes() ? 2 : 1;
    for (int i = 0; i < n; lists += bytes_of_half(l->steps[i++])) {
        halves[i].lists = lists;
        halves[i].places = (const void *)(lists + bytes_of_steps(l->steps[i]));
        halves[i].steps = l->steps[i];
        halves[i].begin = begin + i * lanes();
        halves[i].pitch = 2 * lanes();
    }
    return n;
}
