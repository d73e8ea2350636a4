/*
 * The largest flow from source to sink, by levels (Dinic): the cut is where it fills the edges.
 */
#include "pass/lib/cut.h"

typedef struct {
    guint to, next; /* next edge of the same vertex, plus 1 */
    gint32 room;
} Edge; /* each beside its reverse */

typedef struct {
    guint first; /* edge, plus 1 */
    guint at;    /* edge where the search goes on */
    gint level;  /* from the source; -1: not reached */
    gboolean second;
} Vertex;

struct HnCut {
    GArray *edges, *vertices;
};

static Edge *edge(const HnCut *c, guint i)
{
    return &g_array_index(c->edges, Edge, i);
}

static Vertex *vertex(const HnCut *c, guint i)
{
    return &g_array_index(c->vertices, Vertex, i);
}

HnCut *hn_cut_new(void)
{
    HnCut *c = g_new0(HnCut, 1);
    c->edges = g_array_new(FALSE, TRUE, sizeof(Edge));
    c->vertices = g_array_new(FALSE, TRUE, sizeof(Vertex));
    hn_cut_vertex(c);
    hn_cut_vertex(c);
    return c;
}

void hn_cut_free(HnCut *c)
{
    if (c == NULL)
        return;
    g_array_unref(c->edges);
    g_array_unref(c->vertices);
    g_free(c);
}

guint hn_cut_vertex(HnCut *c)
{
    g_array_set_size(c->vertices, c->vertices->len + 1);
    return c->vertices->len - 1;
}

static void add_half(HnCut *c, guint from, guint to, gint32 room)
{
    Edge e = { .to = to, .next = vertex(c, from)->first, .room = room };
    g_array_append_val(c->edges, e);
    vertex(c, from)->first = c->edges->len;
}

void hn_cut_edge(HnCut *c, guint from, guint to, gint32 cost)
{
    add_half(c, from, to, cost);
    add_half(c, to, from, 0);
}

/* TRUE: the sink is reached. */
static gboolean set_levels(HnCut *c)
{
    g_autofree guint *queue = g_new(guint, c->vertices->len);
    guint head = 0, tail = 0;
    for (guint v = 0; v < c->vertices->len; v++) {
        vertex(c, v)->level = -1;
        vertex(c, v)->at = vertex(c, v)->first;
    }
    vertex(c, HN_CUT_SOURCE)->level = 0;
    queue[tail++] = HN_CUT_SOURCE;
    while (head < tail) {
        guint v = queue[head++];
        for (guint e = vertex(c, v)->first; e > 0; e = edge(c, e - 1)->next) {
            Vertex *to = vertex(c, edge(c, e - 1)->to);
            if (edge(c, e - 1)->room > 0 && to->level < 0) {
                to->level = vertex(c, v)->level + 1;
                queue[tail++] = edge(c, e - 1)->to;
            }
        }
    }
    return vertex(c, HN_CUT_SINK)->level >= 0;
}

/* One more path along rising levels; what flows along it, 0: none is left. path: edges, as many as vertices. */
static gint32 add_path(HnCut *c, guint *path)
{
    guint n = 0, v = HN_CUT_SOURCE;
    while (v != HN_CUT_SINK) {
        Vertex *here = vertex(c, v);
        const Edge *e = here->at > 0 ? edge(c, here->at - 1) : NULL;
        if (e != NULL && e->room > 0 && vertex(c, e->to)->level == here->level + 1) {
            path[n++] = here->at - 1;
            v = e->to;
        } else if (e != NULL) {
            here->at = e->next;
        } else if (n > 0) { /* a dead end: back, and past this edge */
            v = edge(c, path[--n] ^ 1)->to;
            vertex(c, v)->at = edge(c, vertex(c, v)->at - 1)->next;
        } else {
            return 0;
        }
    }
    gint32 flow = HN_CUT_NEVER;
    for (guint i = 0; i < n; i++)
        flow = MIN(flow, edge(c, path[i])->room);
    for (guint i = 0; i < n; i++) {
        edge(c, path[i])->room -= flow;
        Edge *back = edge(c, path[i] ^ 1);
        back->room = back->room > HN_CUT_NEVER - flow ? HN_CUT_NEVER : back->room + flow;
    }
    return flow;
}

/* Whoever can still reach the sink is on the second side. */
static void set_sides(HnCut *c)
{
    g_autofree guint *queue = g_new(guint, c->vertices->len);
    guint head = 0, tail = 0;
    vertex(c, HN_CUT_SINK)->second = TRUE;
    queue[tail++] = HN_CUT_SINK;
    while (head < tail) {
        guint v = queue[head++];
        for (guint e = vertex(c, v)->first; e > 0; e = edge(c, e - 1)->next) {
            guint from = edge(c, e - 1)->to;
            if (edge(c, (e - 1) ^ 1)->room > 0 && !vertex(c, from)->second) {
                vertex(c, from)->second = TRUE;
                queue[tail++] = from;
            }
        }
    }
}

int64_t hn_cut_run(HnCut *c)
{
    g_autofree guint *path = g_new(guint, c->vertices->len);
    int64_t total = 0;
    while (set_levels(c))
        for (gint32 flow; (flow = add_path(c, path)) > 0;)
            total += flow;
    set_sides(c);
    return total;
}

gboolean hn_cut_second(const HnCut *c, guint v)
{
    return vertex(c, v)->second;
}
