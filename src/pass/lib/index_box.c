#include "pass/lib/index_box.h"

/* Element i of t, a position in an axis of n, counted from the front; -1: outside. */
static int64_t position(const HnTensor *t, int64_t i, int64_t n)
{
    const int64_t at = hn_tensor_get_i64(t, i);
    if (at < -n || at >= n)
        return -1;
    return at < 0 ? at + n : at;
}

/* --- ScatterND ---------------------------------------------------------------------------------------------------- */

/* The first m axes of t are those of a grid, from the position of one row to the next of which is a constant step. */
typedef struct {
    const HnTensor *t;
    int m, k;
    const int64_t *data;
    int64_t rows[HN_MAX_RANK]; /* from one place of a grid's axis to the next */
    int by[HN_MAX_RANK];       /* grid's axis that number j follows; -1: it is always the same */
} Grid;

static int64_t number(const Grid *g, int64_t row, int j)
{
    return position(g->t, row * g->k + j, g->data[j]);
}

/* What number j follows, and by how much: by the first two places of each axis. */
static gboolean fit(Grid *g, int j, HnIndexBox *b)
{
    g->by[j] = -1;
    b->first[j] = number(g, 0, j);
    b->step[j] = b->size[j] = 1;
    if (b->first[j] < 0)
        return FALSE;
    for (int a = 0; a < g->m; a++) {
        const int64_t next = g->t->dims[a] > 1 ? number(g, g->rows[a], j) : b->first[j];
        if (next == b->first[j])
            continue;
        if (g->by[j] >= 0 || next < b->first[j])
            return FALSE;
        g->by[j] = a;
        b->step[j] = next - b->first[j];
        b->size[j] = g->t->dims[a];
    }
    return TRUE;
}

/* Each axis of the grid is followed by one number, in order. */
static gboolean is_in_order(const Grid *g)
{
    int a = 0;
    for (int j = 0; j < g->k; j++) {
        if (g->by[j] < 0)
            continue;
        while (a < g->by[j] && g->t->dims[a] == 1)
            a++;
        if (g->by[j] != a++)
            return FALSE;
    }
    while (a < g->m && g->t->dims[a] == 1)
        a++;
    return a == g->m;
}

static gboolean holds(const Grid *g, const HnIndexBox *b)
{
    int64_t at[HN_MAX_RANK] = { 0 };
    for (int64_t row = 0; row < g->t->n / g->k; row++) {
        for (int j = 0; j < g->k; j++)
            if (number(g, row, j) != b->first[j] + (g->by[j] < 0 ? 0 : at[g->by[j]] * b->step[j]))
                return FALSE;
        for (int a = g->m - 1; a >= 0 && ++at[a] == g->t->dims[a]; a--)
            at[a] = 0;
    }
    return TRUE;
}

gboolean hn_index_box_nd(const HnTensor *t, int rank, const int64_t *data, HnIndexBox *b)
{
    Grid g = { .t = t, .m = t->ndim - 1, .data = data };
    if (t->n == 0 || g.m < 0)
        return FALSE;
    g.k = (int)MIN(t->dims[g.m], HN_MAX_RANK);
    if (g.k != t->dims[g.m] || g.k > rank)
        return FALSE;
    for (int64_t a = g.m - 1, rows = 1; a >= 0; a--) {
        g.rows[a] = rows;
        rows *= t->dims[a];
    }
    for (int j = 0; j < g.k; j++)
        if (!fit(&g, j, b))
            return FALSE;
    for (int a = g.k; a < rank; a++) {
        b->first[a] = 0;
        b->step[a] = 1;
        b->size[a] = data[a];
    }
    return is_in_order(&g) && holds(&g, b);
}

/* --- ScatterElements ---------------------------------------------------------------------------------------------- */

gboolean hn_index_box_elements(const HnTensor *t, int axis, int rank, const int64_t *data, HnIndexBox *b)
{
    int64_t inner = 1;
    if (t->n == 0 || t->ndim != rank || axis < 0 || axis >= rank)
        return FALSE;
    for (int a = 0; a < rank; a++) {
        b->first[a] = 0;
        b->step[a] = 1;
        b->size[a] = t->dims[a];
        inner *= a > axis ? t->dims[a] : 1;
        if (a != axis && t->dims[a] > data[a])
            return FALSE;
    }
    b->first[axis] = position(t, 0, data[axis]);
    if (t->dims[axis] > 1)
        b->step[axis] = position(t, inner, data[axis]) - b->first[axis];
    if (b->first[axis] < 0 || b->step[axis] < 1)
        return FALSE;
    for (int64_t i = 0; i < t->n; i++)
        if (position(t, i, data[axis]) != b->first[axis] + i / inner % t->dims[axis] * b->step[axis])
            return FALSE;
    return TRUE;
}
