/* onnx/onnx: models out and in again, external data, misaligned weights, failing memory, damaged bytes. */
#include "onnx/onnx.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define SEED 20240611
#define BIG 5000 /* elements of a weight that is not copied to align it */

static HnTensor *ramp(HnDtype dtype, int64_t n, const char *name)
{
    g_autoptr(HnTensor) t = hn_tensor_new(dtype, 1, &n, NULL, NULL);
    for (int64_t i = 0; i < n; i++)
        hn_tensor_set_f64(t, i, (double)(i % 100));
    t->name = g_strdup(name);
    return g_steal_pointer(&t);
}

static HnValue *add_weight(HnGraph *g, HnTensor *t)
{
    HnValue *v = hn_graph_value(g, t->name);
    hn_graph_add_weight(g, v, t);
    hn_tensor_unref(t);
    return v;
}

static HnType *matrix(const char *rows)
{
    HnDim dims[] = { hn_dim_symbol(rows), hn_dim(3) };
    return hn_type_tensor(HN_F32, 2, dims);
}

static HnValue *add_value(HnGraph *g, const char *name)
{
    HnValue *v = hn_graph_value(g, name);
    g_autoptr(HnType) type = matrix("N");
    hn_value_set_type(v, type);
    return v;
}

static HnGraph *branch(HnModel *m, HnNode *holder, HnValue *uses, const char *name)
{
    HnGraph *g = hn_graph_new(m, holder->graph, name);
    HnNode *n = hn_graph_add_node(g, -1, "Relu", "", NULL);
    g->holder = holder;
    hn_node_add_in(n, uses);
    hn_node_add_out(n, add_value(g, name));
    hn_graph_add_output(g, hn_graph_value(g, name));
    return g;
}

/* y = x + small + big, z = If(c): sub-graphs that use x; weights of each way of storing. */
static HnModel *make_model(void)
{
    HnModel *m = hn_model_new();
    HnGraph *g = m->graph;
    HnValue *x = add_value(g, "x");
    m->producer_name = g_strdup("test");
    hn_model_set_opset(m, "", 17);
    hn_graph_add_input(g, x);
    HnValue *small = add_weight(g, ramp(HN_F32, 3, "small")), *big = add_weight(g, ramp(HN_F32, BIG, "big"));
    add_weight(g, ramp(HN_F64, 700, "doubles"));
    add_weight(g, ramp(HN_BF16, 7, "typed"))->weight->stored = HN_STORED_TYPED;
    HnNode *add = hn_graph_add_node(g, -1, "Sum", "", "sum");
    hn_node_add_in(add, x);
    hn_node_add_in(add, NULL);
    hn_node_add_in(add, small);
    hn_node_add_in(add, big);
    hn_node_add_out(add, add_value(g, "y"));
    hn_node_set_int(add, "axis", -1);
    hn_node_set_string(add, "mode", "fast");
    hn_graph_add_output(g, hn_graph_value(g, "y"));

    HnNode *test = hn_graph_add_node(g, -1, "If", "", "if");
    static const char *const names[] = { "then_branch", "else_branch" };
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        HnAttr *a = hn_attr_new(names[i], HN_ATTR_GRAPH);
        a->g = branch(m, test, x, names[i]);
        hn_node_set_attr(test, a);
    }
    hn_node_add_in(test, small);
    hn_node_add_out(test, add_value(g, "z"));
    hn_graph_add_output(g, hn_graph_value(g, "z"));
    return m;
}

static HnModel *read_ok(GBytes *bytes, const HnOnnxOptions *options)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = hn_onnx_read_bytes(bytes, NULL, options, &error);
    g_assert_no_error(error);
    return m;
}

static void assert_equal(const HnModel *a, const HnModel *b)
{
    g_autofree char *why = NULL;
    if (!hn_model_equal(a, b, &why))
        g_error("%s", why);
}

static void test_round_trip(void)
{
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, NULL);
    g_autoptr(HnModel) again = read_ok(bytes, NULL);
    g_autoptr(GBytes) twice = hn_onnx_write_bytes(again, NULL, NULL);
    assert_equal(m, again);
    g_assert_true(g_bytes_equal(bytes, twice));
    g_assert_cmpuint(again->file_bytes, ==, g_bytes_get_size(bytes));
    g_assert_cmpuint(hn_model_weight_bytes(again), ==, 4 * 3 + 4 * BIG + 8 * 700 + 2 * 7);
    const HnNode *sum = again->graph->nodes->pdata[0];
    g_assert_cmpint(sum->version, ==, 17);
    g_assert_null(hn_node_in(sum, 1));
    g_assert_cmpint(hn_graph_find(again->graph, "typed")->weight->stored, ==, HN_STORED_TYPED);
    g_autoptr(GPtrArray) hidden = hn_node_captures(again->graph->nodes->pdata[1]);
    g_assert_cmpuint(hidden->len, ==, 1);
    g_assert_true(hidden->pdata[0] == hn_graph_find(again->graph, "x"));
}

/* Large weights stay where they are at every alignment; what needs elements gets them. */
static void test_misaligned(void)
{
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, NULL);
    gsize n;
    gconstpointer data = g_bytes_get_data(bytes, &n);
    guint seen = 0;
    for (gsize shift = 0; shift < 4; shift++) {
        guint8 *room = g_malloc(n + shift);
        memcpy(room + shift, data, n);
        g_autoptr(GBytes) all = g_bytes_new_take(room, n + shift);
        g_autoptr(GBytes) moved = g_bytes_new_from_bytes(all, shift, n);
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        g_autoptr(HnModel) again = read_ok(moved, &(HnOnnxOptions){ .budget = budget });
        HnTensor *big = hn_graph_find(again->graph, "big")->weight;
        g_assert_true((guint8 *)big->data >= room && (guint8 *)big->data < room + n + shift);
        g_assert_cmpuint(hn_budget_used(budget) - again->charged, <, 1000); /* the small ones */
        g_assert_false(hn_graph_find(again->graph, "small")->weight->misaligned);
        assert_equal(m, again);
        seen += big->misaligned;
        for (int64_t i = 0; i < BIG; i += 777) {
            g_assert_cmpfloat(hn_tensor_get_f64(big, i), ==, (double)(i % 100));
            g_assert_cmpint(hn_tensor_get_i64(big, i), ==, i % 100);
        }
        g_autoptr(HnTensor) view = hn_tensor_reshaped(big, 2, (const int64_t[]){ 50, 100 });
        g_autoptr(GError) error = NULL;
        g_assert_true(hn_tensor_align(big, budget, &error) && hn_tensor_align(view, budget, &error));
        g_assert_no_error(error);
        g_assert_cmpuint((guintptr)big->data % sizeof(float), ==, 0);
        g_assert_cmpuint((guintptr)view->data % sizeof(float), ==, 0);
        g_assert_cmpfloat(((float *)view->data)[777], ==, 77);
        assert_equal(m, again);
    }
    g_assert_cmpuint(seen, ==, 3);
}

/* Nodes may stand before what they use, sub-graphs before what their outer graph makes. */
static void test_unsorted(void)
{
    g_autoptr(HnModel) m = make_model();
    HnGraph *g = m->graph;
    HnValue *late = add_value(g, "late");
    HnNode *test = g->nodes->pdata[1], *make = hn_graph_add_node(g, -1, "Relu", "", "make");
    hn_node_set_in(((HnGraph *)hn_node_attr(test, "then_branch")->g)->nodes->pdata[0], 0, late);
    hn_node_add_in(make, hn_graph_find(g, "x"));
    hn_node_add_out(make, late);
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, NULL);
    g_autoptr(HnModel) again = read_ok(bytes, NULL);
    const HnNode *last = again->graph->nodes->pdata[2];
    g_assert_cmpstr(last->name, ==, "if");
    g_assert_cmpuint(g_hash_table_size(again->graph->values), ==, g_hash_table_size(g->values));
}

static void assert_refused(HnModel *m, int code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(HnModel) again = hn_onnx_read_bytes(bytes, NULL, NULL, &error);
    g_assert_null(again);
    g_assert_error(error, HN_ERROR, code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_refused(void)
{
    g_autoptr(HnModel) m = make_model();
    HnTensor *small = hn_graph_find(m->graph, "small")->weight;
    small->bytes = 8;
    assert_refused(m, HN_ERROR_FORMAT, "tensor 'small' needs 12 bytes but holds 8");
    small->bytes = 12;
    small->dims[0] = -3;
    assert_refused(m, HN_ERROR_FORMAT, "tensor 'small' has the negative size -3");
    small->dims[0] = 3;
    small->dtype = (HnDtype)99;
    assert_refused(m, HN_ERROR_FORMAT, "tensor 'small' has the unknown element type 99");
    small->dtype = HN_F32;
    hn_model_set_opset(m, "ai.onnx", 0);
    HnOpset second = { g_strdup("ai.onnx"), 9, NULL };
    g_array_append_val(m->opsets, second);
    assert_refused(m, HN_ERROR_FORMAT, "the domain 'ai.onnx' is imported twice, as opset 0 and 9");
    g_array_set_size(m->opsets, 0);
    assert_refused(m, HN_ERROR_FORMAT, "the model imports no opset");
    m->ir_version = 2;
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, NULL);
    g_autoptr(HnModel) old = read_ok(bytes, NULL);
    g_assert_cmpint(((HnNode *)old->graph->nodes->pdata[0])->version, ==, 1);
}

/* --- files ------------------------------------------------------------------------------------------------------- */

typedef struct {
    char *folder, *model;
} Files;

static void files_init(Files *f, gconstpointer unused)
{
    (void)unused;
    f->folder = g_dir_make_tmp("hn-onnx-XXXXXX", NULL);
    f->model = g_build_filename(f->folder, "m.onnx", NULL);
}

static void files_clear(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(GDir) dir = g_dir_open(f->folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(f->folder, name, NULL);
        g_assert_cmpint(g_remove(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(f->folder), ==, 0);
    g_free(f->folder);
    g_free(f->model);
}

static void write_ok(const HnModel *m, const char *path, HnExternal external)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_onnx_write_file(m, path, &(HnOnnxWriteOptions){ .external = external }, &error));
    g_assert_no_error(error);
}

static HnModel *read_file_ok(const char *path, gboolean keep_external)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = hn_onnx_read_file(path, &(HnOnnxOptions){ .keep_external = keep_external }, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(m->path, ==, path);
    return m;
}

static const char *entry(const HnTensor *t, const char *key)
{
    for (guint i = 0; i + 1 < t->extra->len; i += 2)
        if (!strcmp(t->extra->pdata[i], key))
            return t->extra->pdata[i + 1];
    return NULL;
}

/* What the model calls the file of the tensor's elements, and where that is; g_free() it. */
static char *data_path(const Files *f, const HnTensor *t)
{
    return g_build_filename(f->folder, entry(t, "location"), NULL);
}

static void test_one_file(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(HnModel) m = make_model();
    HnTensor *shared = hn_graph_find(m->graph, "big")->weight;
    hn_graph_add_weight(m->graph, hn_graph_value(m->graph, "again"), shared);
    add_weight(m->graph, ramp(HN_F32, 30000, "huge"));
    write_ok(m, f->model, HN_EXTERNAL_ONE_FILE);

    g_autoptr(HnModel) again = read_file_ok(f->model, FALSE);
    const HnTensor *big = hn_graph_find(again->graph, "big")->weight;
    const HnTensor *huge = hn_graph_find(again->graph, "huge")->weight;
    g_assert_cmpint(big->stored, ==, HN_STORED_EXTERNAL);
    g_assert_cmpint(hn_graph_find(again->graph, "small")->weight->stored, ==, HN_STORED_RAW);
    g_assert_true(g_regex_match_simple("^m\\.onnx\\.[0-9a-f]{16}\\.data$", entry(big, "location"), 0, 0));
    g_assert_cmpstr(entry(big, "offset"), ==, "0");
    g_assert_cmpstr(entry(hn_graph_find(again->graph, "again")->weight, "offset"), ==, "0");
    g_assert_cmpstr(entry(huge, "offset"), ==, "28672"); /* a page; 20000 and 5600 before it */
    g_assert_cmpstr(entry(huge, "length"), ==, "120000");
    g_assert_false(big->misaligned || huge->misaligned);
    g_assert_true(hn_tensor_equal(huge, hn_graph_find(m->graph, "huge")->weight));
    GStatBuf st;
    g_autofree char *data = data_path(f, big), *content = NULL;
    gsize size;
    g_assert_cmpint(g_stat(data, &st), ==, 0);
    g_assert_cmpint(st.st_size, ==, 28672 + 120000);
    g_assert_true(g_file_get_contents(data, &content, &size, NULL));
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA1, (const guchar *)content, size);
    g_assert_cmpstr(entry(big, "checksum"), ==, sum);
    g_assert_true(strncmp(entry(big, "location") + strlen("m.onnx."), sum, 16) == 0);

    write_ok(again, f->model, HN_EXTERNAL_ONE_FILE); /* over the files that its weights are mapped from */
    g_autoptr(HnModel) third = read_file_ok(f->model, FALSE);
    assert_equal(again, third);
    write_ok(third, f->model, HN_EXTERNAL_INLINE);
    g_assert_false(g_file_test(data, G_FILE_TEST_EXISTS)); /* nobody needs it any more */
    g_autoptr(HnModel) inside = read_file_ok(f->model, FALSE);
    g_assert_true(hn_tensor_equal(huge, hn_graph_find(inside->graph, "huge")->weight));
    g_assert_cmpint(hn_graph_find(inside->graph, "huge")->weight->stored, ==, HN_STORED_RAW);
}

static void test_keep(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GError) error = NULL;
    g_autofree char *copy = g_build_filename(f->folder, "copy.onnx", NULL);
    write_ok(m, f->model, HN_EXTERNAL_ONE_FILE);
    g_autoptr(HnModel) here = read_file_ok(f->model, FALSE);
    write_ok(here, copy, HN_EXTERNAL_KEEP);
    g_autoptr(HnModel) copied = read_file_ok(copy, FALSE);
    assert_equal(here, copied);

    g_autofree char *data = data_path(f, hn_graph_find(here->graph, "big")->weight);
    g_assert_cmpint(g_remove(data), ==, 0);
    g_autoptr(HnModel) bare = read_file_ok(f->model, TRUE);
    g_assert_true(hn_graph_find(bare->graph, "big")->weight->unloaded);
    write_ok(bare, copy, HN_EXTERNAL_KEEP);
    g_autoptr(HnModel) kept = read_file_ok(copy, TRUE);
    assert_equal(bare, kept);
    g_assert_false(hn_onnx_write_file(bare, copy, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_clear_error(&error);
    g_assert_null(hn_onnx_read_file(f->model, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_autofree char *want = g_strdup_printf("'%s': external data '%s' of tensor 'big' is missing", f->model,
                                            entry(hn_graph_find(here->graph, "big")->weight, "location"));
    g_assert_cmpstr(error->message, ==, want);
}

/* A model whose weight `w` of 3 floats lies where the pairs say. */
static void assert_external(Files *f, int code, const char *why, const char *location, const char *offset,
                            const char *length)
{
    g_autoptr(HnModel) m = hn_model_new();
    HnTensor *t = ramp(HN_F32, 3, "w");
    t->stored = HN_STORED_EXTERNAL;
    t->extra = g_ptr_array_new_with_free_func(g_free);
    const char *const pairs[] = { "location", location, "offset", offset, "length", length };
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i += 2) {
        if (!pairs[i + 1])
            continue;
        g_ptr_array_add(t->extra, g_strdup(pairs[i]));
        g_ptr_array_add(t->extra, g_strdup(pairs[i + 1]));
    }
    hn_graph_add_output(m->graph, add_weight(m->graph, t));
    write_ok(m, f->model, HN_EXTERNAL_KEEP);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) again = hn_onnx_read_file(f->model, NULL, &error);
    if (!why) {
        g_assert_no_error(error);
        g_assert_cmpfloat(hn_tensor_get_f64(hn_graph_find(again->graph, "w")->weight, 1), ==, 1);
        return;
    }
    g_assert_null(again);
    g_assert_error(error, HN_ERROR, code);
    if (!strstr(error->message, why))
        g_error("'%s' lacks '%s'", error->message, why);
}

static void test_places(Files *f, gconstpointer unused)
{
    (void)unused;
    static const float numbers[] = { 5, 0, 1, 2 };
    g_autofree char *weights = g_build_filename(f->folder, "w.bin", NULL);
    g_autofree char *link_out = g_build_filename(f->folder, "out.bin", NULL);
    g_autofree char *link_in = g_build_filename(f->folder, "in.bin", NULL);
    g_assert_true(g_file_set_contents(weights, (const char *)numbers, sizeof numbers, NULL));
    g_assert_cmpint(symlink("/etc/passwd", link_out), ==, 0);
    g_assert_cmpint(symlink("w.bin", link_in), ==, 0);
    assert_external(f, 0, NULL, "w.bin", "4", "12");
    assert_external(f, 0, NULL, "w.bin", "4", NULL);
    assert_external(f, 0, NULL, "./in.bin", "4", "12");
    assert_external(f, HN_ERROR_FORMAT, "ends before it should", "w.bin", "8", "12");
    assert_external(f, HN_ERROR_FORMAT, "has 8 bytes where 12 are needed", "w.bin", "0", "8");
    assert_external(f, HN_ERROR_FORMAT, "has the impossible offset '-4'", "w.bin", "-4", "12");
    assert_external(f, HN_ERROR_FORMAT, "has the impossible length 'x'", "w.bin", "0", "x");
    assert_external(f, HN_ERROR_FORMAT, "ends before it should", "w.bin", "9223372036854775807", "12");
    assert_external(f, HN_ERROR_FORMAT, "has no location", NULL, "0", "12");
    assert_external(f, HN_ERROR_FORMAT, "leads out of the model's folder", "out.bin", "0", "12");
    assert_external(f, HN_ERROR_FORMAT, "lies outside the model's folder", "../w.bin", "0", "12");
    assert_external(f, HN_ERROR_FORMAT, "lies outside the model's folder", weights, "0", "12");
    assert_external(f, HN_ERROR_IO, "'none.bin' of tensor 'w' is missing", "none.bin", "0", "12");
    assert_external(f, HN_ERROR_FORMAT, "leads out", ".", "0", "12");
}

typedef struct {
    const HnModel *want;
    const char *path, *before; /* what the file holds while somebody looks; NULL: it is not there */
    guint looks;
    gboolean ok;
} Look;

static gboolean look(gpointer data, HnModel *written, GError **error)
{
    Look *l = data;
    g_autofree char *now = NULL;
    const HnValue *want = hn_graph_find(l->want->graph, "big"), *got = hn_graph_find(written->graph, "big");
    l->looks++;
    g_file_get_contents(l->path, &now, NULL, NULL);
    g_assert_cmpstr(now, ==, l->before);
    g_assert_true(got != NULL && hn_tensor_equal(want->weight, got->weight));
    if (!l->ok)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_GUARD, "it is not liked");
    return l->ok;
}

static guint count_files(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    guint n = 0;
    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

/* What is written is read back, weights and all, and shown before it takes its name; what is not liked never does. */
static void test_checked(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(HnModel) m = make_model();
    const HnExternal how[] = { HN_EXTERNAL_INLINE, HN_EXTERNAL_ONE_FILE };
    for (gsize i = 0; i < G_N_ELEMENTS(how); i++) {
        g_autoptr(GError) error = NULL;
        Look l = { m, f->model, "old", 0, FALSE };
        HnOnnxWriteOptions o = { .external = how[i], .check = look, .data = &l };
        g_assert_true(g_file_set_contents(f->model, "old", -1, NULL));
        g_assert_false(hn_onnx_write_file(m, f->model, &o, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_GUARD);
        g_assert_cmpuint(count_files(f->folder), ==, 1);
        g_clear_error(&error);
        l.ok = TRUE;
        g_assert_true(hn_onnx_write_file(m, f->model, &o, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(l.looks, ==, 2);
        g_autoptr(HnModel) back = read_file_ok(f->model, FALSE);
        g_assert_nonnull(hn_graph_find(back->graph, "big"));
        hn_onnx_remove(f->model);
        g_assert_cmpuint(count_files(f->folder), ==, 0);
    }
}

static gboolean never(gpointer data, HnModel *written, GError **error)
{
    (void)written, (void)error;
    *(gboolean *)data = TRUE;
    return TRUE;
}

/* A model that no reader takes: 'gone' comes from nowhere. */
static void test_unreadable(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GError) error = NULL;
    gboolean shown = FALSE;
    hn_graph_add_output(m->graph, hn_graph_value(m->graph, "gone"));
    g_assert_false(hn_onnx_write_file(m, f->model, &(HnOnnxWriteOptions){ .check = never, .data = &shown }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GUARD);
    g_assert_nonnull(strstr(error->message, "what was written cannot be read back: "));
    g_assert_nonnull(strstr(error->message, "gone"));
    g_assert_false(shown);
    g_assert_cmpuint(count_files(f->folder), ==, 0);
    g_clear_error(&error);
    g_assert_false(hn_onnx_write_file(m, "/dev/null", &(HnOnnxWriteOptions){ .check = never, .data = &shown }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GUARD); /* what goes into a pipe is looked at before it goes */
}

static gboolean as_told(gpointer data, HnModel *written, GError **error)
{
    const gboolean ok = *(const gboolean *)data;
    (void)written;
    if (!ok)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_GUARD, "it is not liked");
    return ok;
}

/* Into a pipe nothing goes that is not liked, and what is goes once. */
static void test_pipe(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(HnModel) m = hn_model_new();
    HnValue *x = add_value(m->graph, "x");
    hn_model_set_opset(m, "", 17);
    hn_graph_add_input(m->graph, x);
    hn_graph_add_output(m->graph, x);
    g_autoptr(GBytes) want = hn_onnx_write_bytes(m, NULL, NULL);
    gsize size = g_bytes_get_size(want);
    guint8 got[4096];
    g_assert_cmpuint(size, <, sizeof got / 2);
    g_assert_cmpint(mkfifo(f->model, 0600), ==, 0);
    const int fd = open(f->model, O_RDWR | O_NONBLOCK);
    g_assert_cmpint(fd, >=, 0);
    gboolean ok = FALSE;
    const HnOnnxWriteOptions o = { .check = as_told, .data = &ok };
    g_autoptr(GError) error = NULL;
    g_assert_false(hn_onnx_write_file(m, f->model, &o, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GUARD);
    g_clear_error(&error);
    g_assert_cmpint(read(fd, got, sizeof got), <, 0);
    ok = TRUE;
    g_assert_true(hn_onnx_write_file(m, f->model, &o, &error));
    g_assert_no_error(error);
    const gssize n = read(fd, got, sizeof got);
    g_assert_cmpmem(got, (gsize)MAX(n, 0), g_bytes_get_data(want, NULL), size);
    close(fd);
}

static void test_file_errors(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GError) error = NULL;
    g_autofree char *nowhere = g_build_filename(f->folder, "no", "m.onnx", NULL);
    g_assert_null(hn_onnx_read_file(nowhere, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_clear_error(&error);
    g_assert_false(hn_onnx_write_file(m, nowhere, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_clear_error(&error);
    g_assert_false(hn_onnx_write_file(m, "-", &(HnOnnxWriteOptions){ .external = HN_EXTERNAL_ONE_FILE }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(f->model, "", 0, NULL));
    g_assert_null(hn_onnx_read_file(f->model, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_autofree char *want = g_strdup_printf("'%s' is empty", f->model);
    g_assert_cmpstr(error->message, ==, want);
}

/* --- on purpose ----------------------------------------------------------------------------------------------------
 */

/* Every allocation fails once: an error each time, nothing lost, nothing kept. */
static void test_no_memory(void)
{
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, NULL);
    guint64 k = 1;
    for (gboolean failed = TRUE; failed; k++) {
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        g_autoptr(GError) error = NULL;
        hn_budget_fail_at(budget, k);
        HnModel *again = hn_onnx_read_bytes(bytes, NULL, &(HnOnnxOptions){ .budget = budget }, &error);
        g_autoptr(GBytes) out = again ? hn_onnx_write_bytes(again, budget, &error) : NULL;
        failed = !out;
        if (failed)
            g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        else
            g_assert_true(g_bytes_equal(bytes, out));
        hn_model_free(again);
        g_clear_pointer(&out, g_bytes_unref);
        g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    }
    g_assert_cmpuint(k, >, 10);
}

/* Damaged bytes are refused, or are another model that survives a round trip. */
static void test_damaged(void)
{
    g_autoptr(HnModel) m = make_model();
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(m, NULL, NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);
    gsize n;
    const char *data = g_bytes_get_data(bytes, &n);
    guint read = 0;
    for (int i = 0; i < 3000; i++) {
        char *copy = g_memdup2(data, n);
        for (int k = g_rand_int_range(rand, 1, 4); k > 0; k--) {
            /* the weights' elements fill most of the file: aim at what stands around them, too */
            gsize at = (gsize)g_rand_int_range(rand, 0, (int)n);
            if (k & 1)
                at = (gsize)g_rand_int_range(rand, 0, 400);
            copy[at] = (char)g_rand_int(rand);
        }
        g_autoptr(GBytes) bad =
            g_bytes_new_take(copy, g_rand_int_range(rand, 0, 9) ? n : (gsize)g_rand_int_range(rand, 0, (int)n));
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) odd = hn_onnx_read_bytes(bad, NULL, NULL, &error);
        if (!odd) {
            g_assert_nonnull(error);
            continue;
        }
        read++;
        g_autoptr(GBytes) out = hn_onnx_write_bytes(odd, NULL, &error);
        g_assert_no_error(error);
        g_autoptr(HnModel) again = read_ok(out, NULL);
        assert_equal(odd, again);
    }
    g_assert_cmpuint(read, >, 50);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/onnx/model/round-trip", test_round_trip);
    g_test_add_func("/onnx/model/misaligned", test_misaligned);
    g_test_add_func("/onnx/model/unsorted", test_unsorted);
    g_test_add_func("/onnx/model/refused", test_refused);
    g_test_add("/onnx/model/one-file", Files, NULL, files_init, test_one_file, files_clear);
    g_test_add("/onnx/model/keep", Files, NULL, files_init, test_keep, files_clear);
    g_test_add("/onnx/model/places", Files, NULL, files_init, test_places, files_clear);
    g_test_add("/onnx/model/checked", Files, NULL, files_init, test_checked, files_clear);
    g_test_add("/onnx/model/pipe", Files, NULL, files_init, test_pipe, files_clear);
    g_test_add("/onnx/model/unreadable", Files, NULL, files_init, test_unreadable, files_clear);
    g_test_add("/onnx/model/file-errors", Files, NULL, files_init, test_file_errors, files_clear);
    g_test_add_func("/onnx/model/no-memory", test_no_memory);
    g_test_add_func("/onnx/model/damaged", test_damaged);
    return g_test_run();
}
