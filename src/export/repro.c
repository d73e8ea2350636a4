/*
 * A rewrite that changes results, as a model of a few nodes: the piece of the graph that ends in what the rewrite began
 * with and reaches so many nodes back, for the fewest nodes on which the pass alone still does it.
 */
#include <string.h>

#include "export/extract.h"
#include "export/private.h"
#include "onnx/onnx.h"

#define MOST_DEPTH 24

/* Values that nodes up to `depth` steps behind v read and that those nodes do not make: the piece's inputs. */
static GPtrArray *border(const HnGraph *g, const char *site, int depth)
{
    g_autoptr(GHashTable) inside = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) layer = g_ptr_array_new();
    GPtrArray *names = g_ptr_array_new();
    const HnValue *v = g_hash_table_lookup(g->values, site);
    if (v != NULL)
        g_ptr_array_add(layer, (gpointer)v);
    for (int d = 0; d <= depth; d++) {
        g_autoptr(GPtrArray) next = g_ptr_array_new();
        for (guint i = 0; i < layer->len; i++) {
            const HnNode *n = ((const HnValue *)layer->pdata[i])->producer;
            if (n == NULL || !g_hash_table_add(inside, (gpointer)n))
                continue;
            for (guint k = 0; k < n->in->len; k++)
                if (n->in->pdata[k] != NULL)
                    g_ptr_array_add(next, n->in->pdata[k]);
            g_autoptr(GPtrArray) captured = hn_node_captures(n);
            g_ptr_array_extend(next, captured, NULL, NULL);
        }
        g_ptr_array_set_size(layer, 0);
        g_ptr_array_extend(layer, next, NULL, NULL);
    }
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < layer->len; i++) {
        const HnValue *x = layer->pdata[i];
        const gboolean made = x->producer != NULL && g_hash_table_contains(inside, x->producer);
        if (x->graph == g && !hn_value_is_weight(x) && !made && g_hash_table_add(seen, (gpointer)x))
            g_ptr_array_add(names, x->name);
    }
    g_ptr_array_add(names, NULL);
    return names;
}

typedef struct {
    GBytes *bytes;
    HnBudget *budget;
} Piece;

static HnModel *open_piece(const Piece *p)
{
    return hn_onnx_read_bytes(p->bytes, NULL, &(HnOnnxOptions){ .budget = p->budget }, NULL);
}

/* The pass alone changes what the piece computes. */
static gboolean shows(const HnExportOptions *o, const Piece *p, const HnPass *pass)
{
    const HnSamplesOptions vo = {
        .backend = &hn_backend_ref, .threads = 1, .seed = 1, .samples = 2, .budget = p->budget
    };
    g_autoptr(HnModel) original = open_piece(p), m = open_piece(p);
    g_autoptr(HnVerify) v = original != NULL ? hn_verify_new(original, &vo, NULL) : NULL;
    HnPassOptions po = o->pass;
    const char *const only[] = { pass->name, NULL };
    HnVerified found;
    HnPassLog log;
    if (v == NULL || m == NULL)
        return FALSE;
    po.only = only;
    po.skip = NULL;
    po.explain = FALSE;
    hn_pass_log_init(&log);
    gboolean shown = hn_pass_run(m, &po, &log, NULL) && log.made->len > 0;
    if (shown && (shown = hn_verify(v, m, &o->tolerance, 0, &found, NULL))) {
        shown = !found.equal;
        hn_verified_clear(&found);
    }
    hn_pass_log_clear(&log);
    return shown;
}

char *hn_export_repro(const HnExportOptions *o, HnModel *before, const HnPass *pass, const char *site, guint number)
{
    const char *const out[] = { site, NULL };
    Piece whole = { hn_onnx_write_bytes(before, o->pass.budget, NULL), o->pass.budget };
    if (whole.bytes == NULL)
        return NULL;
    char *path = NULL;
    for (int depth = 0; depth <= MOST_DEPTH && path == NULL; depth++) {
        g_autoptr(HnModel) m = open_piece(&whole);
        g_autoptr(GPtrArray) in = m != NULL ? border(m->graph, site, depth) : NULL;
        if (m == NULL || !hn_extract(m, (const char *const *)in->pdata, out, NULL))
            continue;
        Piece piece = { hn_onnx_write_bytes(m, o->pass.budget, NULL), o->pass.budget };
        if (piece.bytes != NULL && shows(o, &piece, pass)) {
            path = g_strdup_printf("%s%s-%u.onnx", o->repro, pass->name, number);
            if (!hn_onnx_write_file(m, path, NULL, NULL))
                g_clear_pointer(&path, g_free);
        }
        g_clear_pointer(&piece.bytes, g_bytes_unref);
    }
    g_bytes_unref(whole.bytes);
    return path;
}
