/*
 * Judges passes by text: test-pass [--lower] FILE.txt..., each file named after its pass and holding cases like
 *
 *     == a name
 *     opset 17                        # left out: 17
 *     %1 = Conv(%x:f32[1,3,8,8], w:f32[8,3,3,3])
 *     %y = BatchNormalization(%1, s:f32[8], o:f32[8], m:f32[8], v:f32[8]=fill(1,0.5,2))
 *     --
 *     %y = Conv(%x:f32[1,3,8,8], w:f32[8,3,3,3], b:f32[8])
 *
 * The pass alone is run to its fixed point. Behind "--" stands what must come out: nodes, attributes, types of weights
 * and the elements of integer weights have to agree, names of inner values and weights do not. "unchanged" stands for
 * the text before, and "unchanged: words" asks that --explain says these words. Before and after are then both run on
 * random data and have to agree, unless the case has a line "no run" with its reason, behind a '#'. A line "rtol R"
 * loosens that comparison from 1e-5; "dim N=3" fixes a symbolic dimension for it (2 without).
 * A line "trains" says that the graph is to be trained.
 *
 * With --lower passes run as they do when a plan is made, on a copy of the graph that is to run (hn_lower()).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/tensor_diff.h"
#include "data/random.h"
#include "backends.h"
#include "ir/ir_text.h"
#include "lower/lower.h"

typedef struct {
    const HnPass *pass;
    char *file, *name;
    GString *before, *after;
    gboolean unchanged, no_run, lower, trains;
    char *why; /* of a near miss */
    double rtol;
    HnShapes *shapes;
} Case;

static guint n_cases, n_failed;

G_GNUC_PRINTF(2, 3) static gboolean fail(const Case *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *why = g_strdup_vprintf(format, args);
    va_end(args);
    g_auto(GStrv) lines = g_strsplit(why, "\n", -1);
    g_print("not ok %u - %s: %s\n", ++n_cases, c->file, c->name);
    for (char **l = lines; *l != NULL; l++)
        g_print("# %s\n", *l);
    n_failed++;
    return FALSE;
}

static HnModel *parse(const GString *text, GError **error)
{
    g_autofree char *whole =
        g_str_has_prefix(text->str, "opset") ? g_strdup(text->str) : g_strdup_printf("opset 17\n%s", text->str);
    g_autoptr(HnModel) m = hn_model_parse(whole, NULL, error);
    if (m == NULL || !hn_model_verify(m, error) || !hn_graph_infer(m->graph, FALSE, error))
        return NULL;
    return g_steal_pointer(&m);
}

/* --- form --------------------------------------------------------------------------------------------------------- */

static void rename_to(HnValue *v, GHashTable *done, const char *stem, guint *n)
{
    if (v == NULL || v->is_input || !g_hash_table_add(done, v))
        return;
    if (v->is_output && v->graph->outer == NULL)
        return;
    g_autofree char *name = g_strdup_printf("%s%u", stem, (*n)++);
    HnValue *other = hn_graph_value(v->graph, name);
    hn_value_swap_names(v, other);
}

static void canonical(HnGraph *g, GHashTable *done, guint *n)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *node = g->nodes->pdata[i];
        g_clear_pointer(&node->name, g_free);
        for (guint k = 0; k < node->in->len; k++)
            rename_to(node->in->pdata[k], done, "__", n);
        for (guint a = 0; a < node->attrs->len; a++) {
            HnAttr *attr = node->attrs->pdata[a];
            if (attr->kind == HN_ATTR_GRAPH)
                canonical(attr->g, done, n);
        }
        for (guint k = 0; k < node->out->len; k++)
            rename_to(node->out->pdata[k], done, "__", n);
    }
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp((*(HnAttr *const *)a)->name, (*(HnAttr *const *)b)->name);
}

static void print_value(const HnValue *v, GString *out)
{
    if (v == NULL) {
        g_string_append(out, " -");
        return;
    }
    g_string_append_printf(out, " %s", v->name);
    if (v->weight != NULL) {
        g_autofree char *type = hn_tensor_describe(v->weight);
        g_string_append_printf(out, ":%s", type);
        if (hn_dtype_in(v->weight->dtype, HN_T_INTS | HN_T_BOOL) && v->weight->n <= 64) {
            g_string_append_c(out, '=');
            hn_tensor_print(v->weight, -1, out);
        }
    }
}

static void print_form(HnGraph *g, const char *indent, GString *out)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        g_string_append(out, indent);
        for (guint k = 0; k < n->out->len; k++)
            print_value(n->out->pdata[k], out);
        g_string_append_printf(out, " = %s(", n->op_type);
        for (guint k = 0; k < n->in->len; k++)
            print_value(n->in->pdata[k], out);
        g_string_append(out, " )");
        if (n->attrs->len > 1)
            qsort(n->attrs->pdata, n->attrs->len, sizeof(gpointer), by_name);
        for (guint k = 0; k < n->attrs->len; k++) {
            const HnAttr *a = n->attrs->pdata[k];
            g_string_append_printf(out, " %s=", a->name);
            if (a->kind == HN_ATTR_INT)
                g_string_append_printf(out, "%" PRId64, a->i);
            else if (a->kind == HN_ATTR_FLOAT)
                g_string_append_printf(out, "%.6g", (double)a->f);
            else if (a->kind == HN_ATTR_STRING)
                g_string_append_printf(out, "'%.*s'", (int)g_bytes_get_size(a->s),
                                       (const char *)g_bytes_get_data(a->s, NULL));
            else if (a->kind == HN_ATTR_INTS)
                for (int64_t q = 0; q < a->n; q++)
                    g_string_append_printf(out, "%" PRId64 ",", a->ints[q]);
            else if (a->kind == HN_ATTR_FLOATS)
                for (int64_t q = 0; q < a->n; q++)
                    g_string_append_printf(out, "%.6g,", (double)a->floats[q]);
            else if (a->kind == HN_ATTR_TENSOR)
                hn_tensor_print(a->t, 0, out);
            else if (a->kind == HN_ATTR_GRAPH) {
                g_autofree char *deeper = g_strconcat(indent, "    ", NULL);
                g_string_append(out, "{\n");
                print_form(a->g, deeper, out);
                g_string_append_printf(out, "%s}", indent);
            }
        }
        g_string_append_c(out, '\n');
    }
    g_string_append_printf(out, "%s->", indent);
    for (guint i = 0; i < g->outputs->len; i++)
        print_value(g->outputs->pdata[i], out);
    g_string_append_c(out, '\n');
}

static char *form(HnModel *m)
{
    g_autoptr(GHashTable) done = g_hash_table_new(NULL, NULL);
    GString *out = g_string_new(NULL);
    guint n = 0;
    canonical(m->graph, done, &n);
    print_form(m->graph, "", out);
    return g_string_free(out, FALSE);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static HnTensor **run_model(HnModel *m, HnTensor *const *in, GError **error)
{
    g_autoptr(HnSession) s =
        hn_session_new(m, hn_backend_find("ref", NULL), &(HnSessionOptions){ .threads = 1 }, error);
    HnTensor **out = g_new0(HnTensor *, m->graph->outputs->len + 1u);
    if (s == NULL || !hn_session_run(s, in, out, error)) {
        g_free(out);
        return NULL;
    }
    for (guint i = 0; i < m->graph->outputs->len; i++) {
        HnTensor *t = hn_tensor_copy(out[i], NULL, NULL);
        hn_tensor_unref(out[i]);
        out[i] = t;
    }
    return out;
}

static gboolean same_values(const Case *c, HnModel *a, HnModel *b)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autoptr(GError) error = NULL;
    HnRng rng = hn_rng(7);
    for (guint i = 0; i < a->graph->inputs->len; i++) {
        HnValue *v = a->graph->inputs->pdata[i];
        if (v->weight != NULL)
            continue;
        HnTensor *t = hn_random_tensor(hn_rng_split(&rng, i), v, c->shapes, NULL, &error);
        if (t == NULL)
            return fail(c, "no data: %s", error->message);
        g_ptr_array_add(in, t);
    }
    const guint n = a->graph->outputs->len;
    HnTensor **x = run_model(a, (HnTensor *const *)in->pdata, &error);
    if (x == NULL)
        return fail(c, "before: %s", error->message);
    HnTensor **y = run_model(b, (HnTensor *const *)in->pdata, &error);
    gboolean ok = y != NULL || fail(c, "after: %s", error->message);
    for (guint i = 0; i < n; i++) {
        HnTolerance tol = { .rtol = c->rtol, .atol = c->rtol, .min_cos = NAN };
        HnDiff diff;
        if (ok && !hn_compare(y[i], x[i], &tol, &diff)) {
            g_autofree char *why = hn_diff_describe(&diff, y[i], x[i], &tol);
            ok = fail(c, "output %u: %s", i, why);
        }
        hn_tensor_unref(x[i]);
        if (y != NULL)
            hn_tensor_unref(y[i]);
    }
    g_free(x);
    g_free(y);
    return ok;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static gboolean explained(const Case *c, const HnPassLog *log)
{
    for (guint i = 0; i < log->missed->len; i++)
        if (strstr(((const HnSite *)log->missed->pdata[i])->why, c->why) != NULL)
            return TRUE;
    return FALSE;
}

static gboolean always(const HnValue *v, gpointer data)
{
    (void)data;
    return v->is_output;
}

/* The model as it is lowered, but for the passes. */
static HnModel *lowered(HnModel *m, GError **error)
{
    const GPtrArray *nodes = m->graph->nodes;
    g_autofree gboolean *live = g_new(gboolean, nodes->len + 1u);
    g_autoptr(HnTypes) types = hn_types_new(m);
    if (!hn_types_graph(types, m->graph, 0, 0, error))
        return NULL;
    for (guint i = 0; i < nodes->len; i++) {
        live[i] = TRUE;
        if (!hn_op_bind(nodes->pdata[i], error))
            return NULL;
    }
    HnLowering o = { .graph = m->graph, .end = (int)nodes->len, .live = live, .types = types, .is_kept = always };
    o.plain = TRUE;
    HnLowered *l = hn_lower(&o, error);
    HnModel *k = l != NULL ? hn_lowered_model(l) : NULL;
    hn_lowered_free(l);
    return k;
}

static void judge(Case *c)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) before = parse(c->before, &error), m = parse(c->before, NULL);
    if (c->lower && before != NULL) {
        g_autoptr(HnModel) whole = g_steal_pointer(&m);
        m = lowered(whole, &error);
    }
    g_autoptr(HnModel) after = error != NULL ? NULL : parse(c->unchanged ? c->before : c->after, &error);
    if (before == NULL || after == NULL) {
        fail(c, "the text: %s", error->message);
        return;
    }
    HnPassLog log;
    hn_pass_log_init(&log);
    const HnPassOptions o = {
        .level = 9,
        .only = (const char *const[]){ c->pass->name, NULL },
        .fold_bytes = HN_FOLD_BYTES,
        .explain = TRUE,
        .lowering = c->lower,
        .trains = c->trains,
        .passes = c->lower ? hn_lower_passes : NULL,
    };
    gboolean ok = hn_pass_run(m, &o, &log, &error) || fail(c, "%s", error->message);
    if (ok && c->unchanged && log.made->len > 0)
        ok = fail(c, "%u rewrites were made", log.made->len);
    if (ok && c->why != NULL && !explained(c, &log))
        ok = fail(c, "nothing said '%s', but for example '%s'", c->why,
                  log.missed->len > 0 ? ((const HnSite *)log.missed->pdata[0])->why : "");
    ok = ok && (c->no_run || same_values(c, before, m));
    g_autofree char *got = ok ? form(m) : NULL, *want = ok ? form(after) : NULL;
    if (ok && strcmp(got, want) != 0)
        ok = fail(c, "got:\n%swant:\n%s", got, want);
    if (ok)
        g_print("ok %u - %s: %s\n", ++n_cases, c->file, c->name);
    hn_pass_log_clear(&log);
}

static void finish(Case *c)
{
    if (c->name != NULL)
        judge(c);
    g_clear_pointer(&c->name, g_free);
    g_clear_pointer(&c->why, g_free);
    g_string_truncate(c->before, 0);
    g_string_truncate(c->after, 0);
    hn_shapes_free(c->shapes);
    c->shapes = NULL;
    c->unchanged = c->no_run = c->trains = FALSE;
}

static const HnPass *find_pass(const char *name, gboolean lower)
{
    const HnPass *const *p = lower ? hn_lower_passes : hn_pass_all();
    while (*p != NULL && strcmp((*p)->name, name) != 0)
        p++;
    return *p;
}

static void run_file(const char *path, gboolean lower)
{
    g_autofree char *text = NULL, *base = g_path_get_basename(path);
    g_autoptr(GError) error = NULL;
    base[strcspn(base, ".")] = '\0';
    g_autofree char *name = g_strdelimit(g_strdup(base), "_", '-');
    Case c = { .pass = find_pass(name, lower),
               .lower = lower,
               .file = base,
               .before = g_string_new(NULL),
               .after = g_string_new(NULL) };
    if (c.pass == NULL || !g_file_get_contents(path, &text, NULL, &error)) {
        c.name = name;
        fail(&c, "%s", c.pass == NULL ? "no such pass" : error->message);
        g_string_free(c.before, TRUE);
        g_string_free(c.after, TRUE);
        return;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gboolean behind = FALSE;
    for (char **l = lines; *l != NULL; l++) {
        if (g_str_has_prefix(*l, "== ")) {
            finish(&c);
            c.name = g_strdup(*l + 3);
            c.rtol = 1e-5;
            c.shapes = hn_shapes_new();
            hn_shapes_set_dim(c.shapes, "N", 2);
            behind = FALSE;
        } else if (strcmp(*l, "--") == 0) {
            behind = TRUE;
        } else if (g_str_has_prefix(*l, "no run")) {
            c.no_run = TRUE;
        } else if (strcmp(*l, "trains") == 0) {
            c.trains = TRUE;
        } else if (g_str_has_prefix(*l, "rtol ")) {
            c.rtol = g_ascii_strtod(*l + 5, NULL);
        } else if (g_str_has_prefix(*l, "dim ")) {
            hn_shapes_parse_dim(c.shapes, *l + 4, NULL);
        } else if (behind && g_str_has_prefix(*l, "unchanged")) {
            c.unchanged = TRUE;
            c.why = (*l)[9] == ':' ? g_strstrip(g_strdup(*l + 10)) : NULL;
        } else if (c.name != NULL) {
            g_string_append_printf(behind ? c.after : c.before, "%s\n", *l);
        }
    }
    finish(&c);
    g_string_free(c.before, TRUE);
    g_string_free(c.after, TRUE);
}

int main(int argc, char **argv)
{
    const gboolean lower = argc > 1 && strcmp(argv[1], "--lower") == 0;
    for (int i = lower ? 2 : 1; i < argc; i++)
        run_file(argv[i], lower);
    g_print("1..%u\n", n_cases);
    return n_failed > 0;
}
