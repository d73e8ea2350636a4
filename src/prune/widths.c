#include "prune/widths.h"

#include <math.h>
#include <string.h>

/* Of the channels of a class: where fewer stay its curve says little, and kernels gain nothing. No class gets below
 * before all have got there. */
#define NARROW 0.2
#define GATHERED 16 /* steps of a row for each vector of results, beside its products */
#define TINY 1e-9   /* of a quotient that is a whole number but for rounding */

static const HnTensor *weight_of(const HnPruneMap *map, const HnChannelMember *f)
{
    return hn_node_in(hn_graph_find(map->model->graph, f->node)->producer, f->input)->weight;
}

static void free_other(gpointer data)
{
    HnPruneOther *o = data;
    g_array_unref(o->members);
    g_free(o);
}

static gboolean is_layer(const HnPruneMap *map, const char *node)
{
    for (guint i = 0; i < map->layers->len; i++)
        if (strcmp(hn_node_out(((const HnPruneLayer *)map->layers->pdata[i])->node, 0)->name, node) == 0)
            return TRUE;
    return FALSE;
}

static gboolean is_matrix(const HnTensor *t)
{
    int axes = 0;
    for (int k = 0; t != NULL && k < t->ndim; k++)
        axes += t->dims[k] > 1;
    return axes > 1;
}

/* The node that a member's weight costs time and operations in: behind those that only make other numbers of it, such
 * as DequantizeLinear, the product that reads them. */
static const char *payer_of(const HnPruneMap *map, const HnChannelMember *f)
{
    const HnValue *v = hn_graph_find(map->model->graph, f->node);
    while (v->users->len == 1 && !v->is_output) {
        const HnNode *n = v->producer;
        gboolean fixed = TRUE;
        for (guint i = 0; i < n->in->len && fixed; i++)
            fixed = hn_node_in(n, (int)i) == NULL || hn_node_in(n, (int)i)->weight != NULL;
        if (!fixed)
            break;
        v = hn_node_result(v->users->pdata[0]);
    }
    return v->name;
}

/* Those of matrices: vectors are added, or multiply, which costs little. */
static GPtrArray *others_of(const HnPruneMap *map)
{
    const GPtrArray *members = hn_channels_members(map->channels);
    GPtrArray *others = g_ptr_array_new_with_free_func(free_other);
    for (int i = 0; i < (int)members->len; i++) {
        const HnChannelMember *f = members->pdata[i];
        const HnTensor *t = weight_of(map, f);
        HnPruneOther *o = others->len > 0 ? others->pdata[others->len - 1] : NULL;
        if (!is_matrix(t) || is_layer(map, f->node))
            continue;
        const char *node = payer_of(map, f);
        if (o == NULL || strcmp(o->node, node) != 0) {
            o = g_new0(HnPruneOther, 1);
            o->node = node;
            o->members = g_array_new(FALSE, FALSE, sizeof(int));
            g_ptr_array_add(others, o);
        }
        g_array_append_val(o->members, i);
    }
    return others;
}

HnPruneCosts *hn_prune_costs_new(const HnPruneMap *map)
{
    const gsize n = map->layers->len + 1u;
    HnPruneCosts *c = g_new(HnPruneCosts, 1);
    *c = (HnPruneCosts){ map, g_new0(double, n), g_new0(double, n), others_of(map), 0, 0 };
    return c;
}

void hn_prune_costs_free(HnPruneCosts *c)
{
    if (c == NULL)
        return;
    g_ptr_array_unref(c->others);
    g_free(c->layer);
    g_free(c->part);
    g_free(c);
}

/* Steps for a row of all groups, with these parts of what it reads and makes; of groups, these parts of them. */
static double steps_of(const HnPruneLayer *l, int lanes, double in, double out)
{
    const HnLinearRows *r = &l->rows;
    if (r->groups > 1) /* as many at a time as there are lanes */
        return (double)(r->k + GATHERED) * ceil(out * (double)(r->groups * r->outs) / lanes - TINY);
    return (in * (double)r->k + GATHERED) * (ceil(out * (double)r->outs / lanes - TINY) + 1);
}

void hn_prune_costs_by_vectors(HnPruneCosts *c, int lanes)
{
    c->lanes = lanes;
    c->rest /= lanes;
    for (guint i = 0; i < c->others->len; i++)
        ((HnPruneOther *)c->others->pdata[i])->cost /= 2 * lanes;
    for (guint i = 0; i < c->map->layers->len; i++) {
        const HnPruneLayer *l = c->map->layers->pdata[i];
        const double products = (double)(l->rows.groups * l->rows.k * l->rows.outs);
        c->layer[i] *= steps_of(l, lanes, 1, 1) / (2 * fmax(products, 1));
    }
}

/* The part of the channels at[0..n) that stays. */
static double staying(const HnPruneMap *map, const int *at, int64_t n, const int *keep)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const int c = map->class_of[at[i]];
        sum += c < 0 ? 1 : (double)keep[c] / ((const HnPruneClass *)map->classes->pdata[c])->n;
    }
    return n > 0 ? sum / (double)n : 1;
}

double hn_prune_layer_part(const HnPruneCosts *costs, int layer, const int *keep)
{
    const HnPruneMap *map = costs->map;
    const HnPruneLayer *l = map->layers->pdata[layer];
    int axis;
    int64_t n;
    const int *y = hn_channels_at(map->channels, hn_node_out(l->node, 0), &axis, &n);
    const double out = y != NULL ? staying(map, y, n, keep) : 1;
    const gboolean all = l->passes || l->at == NULL;
    const double in = all ? 1 : staying(map, l->at, l->rows.groups * l->rows.k / l->rows.taps, keep);
    if (costs->lanes > 0)
        return steps_of(l, costs->lanes, in, out) / steps_of(l, costs->lanes, 1, 1);
    if (all)
        return out;
    return l->rows.groups > 1 && in == out ? in : in * out; /* whole groups go */
}

double hn_prune_other_part(const HnPruneCosts *costs, const HnPruneOther *other, const int *keep)
{
    const GPtrArray *members = hn_channels_members(costs->map->channels);
    double left = 0, all = 0;
    for (guint i = 0; i < other->members->len; i++) {
        const HnChannelMember *f = members->pdata[g_array_index(other->members, int, i)];
        const double n = (double)weight_of(costs->map, f)->n;
        const double out = f->axis >= 0 ? staying(costs->map, f->out, f->n, keep) : 1;
        const double in = f->in_axis >= 0 ? staying(costs->map, f->in, f->groups * f->in_n, keep) : 1;
        left += n * out * in;
        all += n;
    }
    return all > 0 ? left / all : 1;
}

double hn_prune_other_bytes(const HnPruneCosts *costs, const HnPruneOther *other)
{
    const GPtrArray *members = hn_channels_members(costs->map->channels);
    double bytes = 0;
    for (guint i = 0; i < other->members->len; i++)
        bytes += (double)weight_of(costs->map, members->pdata[g_array_index(other->members, int, i)])->bytes;
    return bytes;
}

double hn_prune_cost(const HnPruneCosts *costs, const int *keep)
{
    double sum = costs->rest;
    for (guint i = 0; i < costs->others->len; i++) {
        const HnPruneOther *o = costs->others->pdata[i];
        if (o->cost > 0)
            sum += o->cost * (o->part + (1 - o->part) * hn_prune_other_part(costs, o, keep));
    }
    for (int i = 0; i < (int)costs->map->layers->len; i++)
        if (costs->layer[i] > 0)
            sum += costs->layer[i] * (costs->part[i] + (1 - costs->part[i]) * hn_prune_layer_part(costs, i, keep));
    return sum;
}

HnPruneSteps hn_prune_steps(int vector)
{
    return (HnPruneSteps){ vector, HN_PRUNE_WIDTHS };
}

int hn_prune_step(const HnPruneMap *map, int c, HnPruneSteps s)
{
    const HnPruneClass *k = map->classes->pdata[c];
    int step = MAX(s.vector, 1);
    while (step > 1 && step * s.widths > k->n)
        step /= 2;
    return step;
}

/* The same where channels come back, as there is room for them: where steps are small already, halves of them. */
static int step_back(const HnPruneMap *map, int c, HnPruneSteps s)
{
    const int step = hn_prune_step(map, c, s);
    return s.widths >= HN_PRUNE_WIDTHS && step != s.vector ? MAX(step / 2, 1) : step;
}

void hn_prune_uniform(const HnPruneMap *map, double ratio, int vector, int *keep)
{
    for (int c = 0; c < (int)map->classes->len; c++) {
        const HnPruneClass *k = map->classes->pdata[c];
        const int step = hn_prune_step(map, c, hn_prune_steps(vector));
        const int wanted = (int)lround((1 - ratio) * k->n / step) * step;
        keep[c] = k->fixed ? k->n : CLAMP(wanted, 1, k->n - 1);
    }
}

/* The next width below, not below the part `least` of its channels. */
static int narrower(const HnPruneMap *map, int c, HnPruneSteps steps, int keep, double least)
{
    const HnPruneClass *k = map->classes->pdata[c];
    const int step = hn_prune_step(map, c, steps), to = MAX((keep - 1) / step * step, 1);
    return to >= (int)(least * k->n) ? to : keep;
}

double hn_prune_gets_through(const HnPruneMap *map, int layer_level, double through)
{
    const int level = MIN(layer_level, map->levels - 1);
    return pow(through, (double)(map->levels - 1 - level) / MAX(map->levels - 1, 1));
}

/* What is lost by going on from one width to another. */
static double price_of(const HnPruneMap *map, int c, const HnPruneLoss *loss, int from, int to)
{
    const HnPruneClass *k = map->classes->pdata[c];
    const double lost = loss->of[c][k->n - to - 1] - (from < k->n ? loss->of[c][k->n - from - 1] : 0);
    return hn_prune_gets_through(map, k->level, loss->through) * fmax(lost, 0);
}

static double cost_with(const HnPruneCosts *costs, int *keep, int c, int width)
{
    const int was = keep[c];
    keep[c] = width;
    const double cost = hn_prune_cost(costs, keep);
    keep[c] = was;
    return cost;
}

/* The last step of one class may have been the one too many of another: what there is room for comes back, in smaller
 * steps, where it helps most. */
static void fill(const HnPruneCosts *costs, const HnPruneLoss *loss, double most, HnPruneSteps steps, int *keep)
{
    const HnPruneMap *map = costs->map;
    for (;;) {
        double now = hn_prune_cost(costs, keep), gain = 0;
        int best = -1, width = 0;
        for (int c = 0; c < (int)map->classes->len; c++) {
            const HnPruneClass *k = map->classes->pdata[c];
            const int to = MIN(keep[c] + step_back(map, c, steps), k->n);
            const double cost = to > keep[c] ? cost_with(costs, keep, c, to) : INFINITY;
            if (cost > most)
                continue;
            const double gained = price_of(map, c, loss, to, keep[c]) / fmax(cost - now, 1e-300);
            if (best < 0 || gained > gain) {
                gain = gained;
                best = c;
                width = to;
            }
        }
        if (best < 0)
            return;
        keep[best] = width;
    }
}

gboolean hn_prune_allocate(const HnPruneCosts *costs, const HnPruneLoss *loss, double most, HnPruneSteps steps,
                           int *keep)
{
    const HnPruneMap *map = costs->map;
    double narrow = NARROW;
    for (int c = 0; c < (int)map->classes->len; c++)
        keep[c] = ((const HnPruneClass *)map->classes->pdata[c])->n;
    for (double now = hn_prune_cost(costs, keep); now > most;) {
        double least = INFINITY, then = now;
        int best = -1, width = 0;
        for (int c = 0; c < (int)map->classes->len; c++) {
            const HnPruneClass *k = map->classes->pdata[c];
            const int to = narrower(map, c, steps, keep[c], narrow);
            if (to >= keep[c] || k->fixed)
                continue;
            const double cost = cost_with(costs, keep, c, to);
            const double price = now > cost ? price_of(map, c, loss, keep[c], to) / (now - cost) : INFINITY;
            if (best < 0 || price < least) {
                least = price;
                best = c;
                width = to;
                then = cost;
            }
        }
        if (best < 0 && narrow == 0)
            return FALSE;
        if (best < 0) {
            narrow = 0;
            continue;
        }
        keep[best] = width;
        now = then;
    }
    fill(costs, loss, most, steps, keep);
    return TRUE;
}
