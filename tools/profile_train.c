/* hone-profile --train: forward and backward of a node side by side. */
#include <math.h>
#include <string.h>

#include "hone_profile.h"
#include "train/recompute.h"
#include "train/reverse.h"

/* A node of the model: its own time, and that of the nodes that its gradient was written as. */
typedef struct {
    const HnProfileRow *forward;
    double ms[HN_PHASES];
} Pair;

static double all_of(const Pair *p)
{
    return p->ms[HN_PHASE_FORWARD] + p->ms[HN_PHASE_BACKWARD];
}

static int longest_first(gconstpointer a, gconstpointer b)
{
    const double x = all_of(a), y = all_of(b);
    return x > y ? -1 : x < y;
}

/* What the row counts for: of a reorder, the phase of the node that makes its value. */
static HnPhase phase_of(const HnProfileRow *row)
{
    const HnNode *n = row->node ? row->node : row->value ? row->value->producer : NULL;
    return n ? hn_step_graph_phase(n) : HN_PHASE_FORWARD;
}

/* The name of the node that the row belongs to, without what tells a gradient; g_free(). */
static char *name_of(const HnProfileRow *row, HnPhase phase)
{
    static const char *const tails[] = { HN_GRADIENT_SUFFIX, HN_AGAIN_SUFFIX };
    const gsize n = strlen(row->name);
    for (guint i = 0; i < G_N_ELEMENTS(tails) && phase == HN_PHASE_BACKWARD; i++)
        if (n > strlen(tails[i]) && g_str_has_suffix(row->name, tails[i]))
            return g_strndup(row->name, n - strlen(tails[i]));
    return g_strdup(row->name);
}

static void add_row(GHashTable *by_name, GArray *pairs, const HnProfileRow *row, double total[HN_PHASES])
{
    const HnPhase phase = phase_of(row);
    const double ms = isnan(row->ms) ? 0 : row->ms;
    total[phase] += ms;
    if (phase == HN_PHASE_UPDATE)
        return;
    g_autofree char *name = name_of(row, phase);
    guint at = GPOINTER_TO_UINT(g_hash_table_lookup(by_name, name));
    if (at == 0) {
        const Pair none = { NULL, { 0 } };
        g_array_append_val(pairs, none);
        at = pairs->len;
        g_hash_table_insert(by_name, g_strdup(name), GUINT_TO_POINTER(at));
    }
    Pair *p = &g_array_index(pairs, Pair, at - 1);
    if (!p->forward || phase == HN_PHASE_FORWARD)
        p->forward = row;
    p->ms[phase] += ms;
}

static JsonObject *pair_object(const Pair *p)
{
    JsonObject *o = json_object_new();
    const HnPhase phase = phase_of(p->forward);
    g_autofree char *name = name_of(p->forward, phase);
    json_object_set_string_member(o, "name", name);
    json_object_set_string_member(o, "op", phase == HN_PHASE_FORWARD ? p->forward->op : "");
    json_object_set_double_member(o, "forward_ms", p->ms[HN_PHASE_FORWARD]);
    json_object_set_double_member(o, "backward_ms", p->ms[HN_PHASE_BACKWARD]);
    return o;
}

void profile_add_training(const Profiling *f, JsonObject *root)
{
    static const char *const names[HN_PHASES] = { "forward_ms", "backward_ms", "update_ms" };
    g_autoptr(GHashTable) by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    double total[HN_PHASES] = { 0 };
    for (guint i = 0; i < f->profile.rows->len; i++)
        add_row(by_name, pairs, f->profile.rows->pdata[i], total);
    g_array_sort(pairs, longest_first);
    JsonObject *o = json_object_new();
    JsonArray *nodes = json_array_new();
    for (int p = 0; p < HN_PHASES; p++)
        json_object_set_double_member(o, names[p], total[p]);
    for (guint i = 0; i < pairs->len; i++)
        json_array_add_object_element(nodes, pair_object(&g_array_index(pairs, Pair, i)));
    json_object_set_array_member(o, "nodes", nodes);
    json_object_set_object_member(root, "train", o);
}
