/*
 * Ensembles of trees, made at random: kernels against ref, to the last bit where there is one row or many, with one
 * thread and with two; and on the device that CUDA's driver has, or a driver that HONE_CUDA_DRIVER names.
 */
#include <string.h>

#include "backends.h"
#include "base/rng.h"
#include "run_model.h"

typedef struct {
    int trees, depth, features, targets;
    gboolean spread;  /* leaves have weights of several targets, or of none */
    gboolean dense;   /* ... of all of them */
    gboolean modes;   /* branches of any mode, NaN on either side */
    const char *more; /* attributes */
} Forest;

typedef struct {
    GString *trees, *nodes, *features, *modes, *values, *yes, *no, *missing;
    GString *w_trees, *w_nodes, *w_ids, *weights;
} Lists;

static void put(GString *list, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void put(GString *list, const char *format, ...)
{
    va_list args;
    if (list->len > 0)
        g_string_append_c(list, ',');
    va_start(args, format);
    g_string_append_vprintf(list, format, args);
    va_end(args);
}

/* Coarse numbers, so that rows meet thresholds. */
static double coarse(HnRng *rng)
{
    return floor(hn_rng_double(rng) * 17 - 8) / 4;
}

static void put_weights(Lists *l, const Forest *f, HnRng *rng, int tree, int node)
{
    const int first = f->spread && !f->dense ? (int)(hn_rng_double(rng) * f->targets) : 0;
    const int last = f->dense ? f->targets - 1 : f->spread ? (int)(hn_rng_double(rng) * f->targets) : 0;
    for (int k = first; k <= last; k++) {
        put(l->w_trees, "%d", tree);
        put(l->w_nodes, "%d", node);
        put(l->w_ids, "%d", f->spread ? k : tree % f->targets);
        put(l->weights, "%.9g", (double)(float)(hn_rng_double(rng) - 0.5) + 1e-3);
    }
}

static void put_node(Lists *l, const Forest *f, HnRng *rng, int tree, int node, gboolean leaf)
{
    static const char *const modes[] = { "LEQ", "LT", "GTE", "GT", "EQ", "NEQ" };
    put(l->trees, "%d", tree);
    put(l->nodes, "%d", node);
    put(l->features, "%d", leaf ? 0 : (int)(hn_rng_double(rng) * f->features));
    put(l->values, "%.9e", leaf ? 0 : coarse(rng));
    put(l->missing, "%d", f->modes && hn_rng_double(rng) < 0.4);
    put(l->yes, "%d", leaf ? 0 : 2 * node + 1);
    put(l->no, "%d", leaf ? 0 : 2 * node + 2);
    if (leaf)
        put(l->modes, "'LEAF'");
    else
        put(l->modes, "'BRANCH_%s'", modes[f->modes ? (int)(hn_rng_double(rng) * 6) : 0]);
}

/* Some branches end early. */
static void put_tree(Lists *l, const Forest *f, HnRng *rng, int tree)
{
    const int nodes = (1 << (f->depth + 1)) - 1;
    g_autofree gboolean *is_there = g_new0(gboolean, (gsize)nodes + 2);
    is_there[0] = TRUE;
    for (int i = 0; i < nodes; i++) {
        if (!is_there[i])
            continue;
        const gboolean leaf = 2 * i + 2 >= nodes || hn_rng_double(rng) < 0.1;
        put_node(l, f, rng, tree, i, leaf);
        if (leaf)
            put_weights(l, f, rng, tree, i);
        else
            is_there[2 * i + 1] = is_there[2 * i + 2] = TRUE;
    }
}

static char *forest_text(const Forest *f, int rows, const char *type)
{
    Lists l;
    GString **list = (GString **)(void *)&l;
    HnRng rng = hn_rng(5);
    for (gsize i = 0; i < sizeof l / sizeof *list; i++)
        list[i] = g_string_new(NULL);
    for (int i = 0; i < f->trees; i++)
        put_tree(&l, f, &rng, i);
    char *text = g_strdup_printf(
        "opset 18 opset ai.onnx.ml 3 graph g(%%x:%s[%d,%d]) -> (%%y) { %%y = ai.onnx.ml::TreeEnsembleRegressor(%%x) "
        "nodes_treeids=[%s] "
        "nodes_nodeids=[%s] nodes_featureids=[%s] nodes_modes=[%s] nodes_values=[%s] nodes_truenodeids=[%s] "
        "nodes_falsenodeids=[%s] nodes_missing_value_tracks_true=[%s] target_treeids=[%s] target_nodeids=[%s] "
        "target_ids=[%s] target_weights=[%s] n_targets=%d %s }",
        type, rows, f->features, l.trees->str, l.nodes->str, l.features->str, l.modes->str, l.values->str, l.yes->str,
        l.no->str, l.missing->str, l.w_trees->str, l.w_nodes->str, l.w_ids->str, l.weights->str, f->targets,
        f->more != NULL ? f->more : "");
    for (gsize i = 0; i < sizeof l / sizeof *list; i++)
        g_string_free(list[i], TRUE);
    return text;
}

static HnTensor *rows_of(int rows, int features, HnDtype dtype)
{
    const int64_t dims[] = { rows, features };
    HnTensor *x = hn_tensor_new(dtype, 2, dims, NULL, NULL);
    HnRng rng = hn_rng(9);
    for (int64_t i = 0; i < x->n; i++) {
        const double which = hn_rng_double(&rng), v = coarse(&rng);
        const gboolean floats = hn_dtype_in(dtype, HN_T_FLOATS);
        hn_tensor_set_f64(x, i,
                          floats && which < 0.05  ? NAN
                          : floats && which < 0.1 ? -0.0
                          : which < 0.2           ? v * 100
                                                  : v);
    }
    return x;
}

static const HnBackend *cuda; /* NULL: there is none */

static void runs_as(const char *text, GPtrArray *in, const HnTensor *want, const HnBackend *backend, int threads)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) s = test_session(m, backend, &(HnSessionOptions){ .threads = threads, .strict = TRUE });
    g_autoptr(GPtrArray) out = test_run(s, in);
    const HnTensor *got = out->pdata[0];
    g_assert_cmpint(got->n, ==, want->n);
    for (int64_t i = 0; i < got->n; i++)
        g_assert_cmpfloat_with_epsilon(hn_tensor_get_f64(got, i), hn_tensor_get_f64(want, i), 1e-6);
}

static void is_same(const char *text, HnTensor *x)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = g_ptr_array_new();
    g_ptr_array_add(in, x);
    g_autoptr(GPtrArray) want = test_run(ref, in);
    for (int threads = 1; threads <= 2; threads++)
        runs_as(text, in, want->pdata[0], &hn_backend_cpu, threads);
    if (cuda != NULL)
        runs_as(text, in, want->pdata[0], cuda, 1);
}

static void each(const Forest *f)
{
    static const int rows[] = { 1, 3, 9, 64, 200 };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        static const HnDtype types[] = { HN_F32, HN_F64, HN_I64, HN_I32 };
        for (guint k = 0; k < (rows[i] == 9 ? G_N_ELEMENTS(types) : 1); k++) {
            g_autoptr(HnTensor) x = rows_of(rows[i], f->features, types[k]);
            g_autofree char *text = forest_text(f, rows[i], hn_dtype_name(types[k]));
            is_same(text, x);
        }
    }
}

static void test_plain(void)
{
    each(&(Forest){ .trees = 70, .depth = 5, .features = 6, .targets = 1 });
    each(&(Forest){ .trees = 3, .depth = 9, .features = 40, .targets = 1, .more = "base_values=[0.25]" });
    each(&(Forest){ .trees = 1, .depth = 0, .features = 1, .targets = 1 });
}

static void test_modes(void)
{
    each(&(Forest){ .trees = 20, .depth = 6, .features = 5, .targets = 1, .modes = TRUE });
    each(&(Forest){
        .trees = 65, .depth = 4, .features = 5, .targets = 3, .modes = TRUE, .more = "post_transform='SOFTMAX'" });
}

static void test_targets(void)
{
    each(&(Forest){ .trees = 20, .depth = 4, .features = 5, .targets = 4 });
    each(&(Forest){ .trees = 20, .depth = 4, .features = 5, .targets = 4, .spread = TRUE });
    each(&(Forest){ .trees = 20, .depth = 4, .features = 5, .targets = 4, .spread = TRUE, .dense = TRUE });
}

static void test_aggregates(void)
{
    static const char *const how[] = { "aggregate_function='MIN'", "aggregate_function='MAX'",
                                       "aggregate_function='AVERAGE'" };
    for (guint i = 0; i < G_N_ELEMENTS(how); i++) {
        each(&(Forest){ .trees = 20, .depth = 3, .features = 5, .targets = 1, .more = how[i] });
        each(&(Forest){ .trees = 20, .depth = 3, .features = 5, .targets = 3, .more = how[i] });
        each(&(Forest){ .trees = 20, .depth = 3, .features = 5, .targets = 3, .spread = TRUE, .more = how[i] });
    }
}

/* More than are taken at a time. */
static void test_many(void)
{
    const Forest f = { .trees = 2, .depth = 2, .features = 2, .targets = 2 };
    g_autoptr(HnTensor) x = rows_of(70000, f.features, HN_F32);
    g_autofree char *text = forest_text(&f, 70000, "f32");
    is_same(text, x);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    cuda = hn_backend_find("cuda", NULL);
    g_autoptr(HnDevice) device = cuda != NULL ? hn_device_new(cuda, NULL) : NULL;
    cuda = device != NULL ? cuda : NULL;
    g_test_add_func("/trees/plain", test_plain);
    g_test_add_func("/trees/modes", test_modes);
    g_test_add_func("/trees/targets", test_targets);
    g_test_add_func("/trees/aggregates", test_aggregates);
    g_test_add_func("/trees/many", test_many);
    return g_test_run();
}
