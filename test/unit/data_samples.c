/* data: sources of every kind, how arrays become samples, batches, order and loading ahead. */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "data/data.h"
#include "data/distinct.h"
#include "data/npz.h"
#include "data/testset.h"
#include "ir/ir_text.h"

/* --- files below a folder that is removed at the end ------------------------------------------------------------- */

typedef struct {
    char *folder;
    HnModel *model;
} Fixture;

static void remove_tree(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *inner = g_build_filename(path, name, NULL);
        remove_tree(inner);
    }
    if (dir)
        g_dir_close(dir);
    g_remove(path);
}

static void set_up(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    f->folder = g_dir_make_tmp("hone-XXXXXX", NULL);
}

static void tear_down(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    hn_model_free(f->model);
    remove_tree(f->folder);
    g_free(f->folder);
}

static HnTensor *tensor(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_tensor_parse(&text, NULL, &error);
    g_assert_no_error(error);
    return t;
}

/* A model with these inputs, such as "%x:f32[N,2], %y:i64[3]". */
static void declare(Fixture *f, const char *inputs)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("opset 17\ngraph main(%s) -> () {\n}\n", inputs);
    hn_model_free(f->model);
    f->model = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
}

/* PATH below the folder; arrays: name, text, ..., NULL. A .npy has one, whose name is not written. */
static char *write_arrays(Fixture *f, const char *path, const char *const *arrays)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GPtrArray) tensors = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    char *full = g_build_filename(f->folder, path, NULL);
    g_autofree char *folder = g_path_get_dirname(full);
    g_mkdir_with_parents(folder, 0777);
    for (; *arrays; arrays += 2) {
        g_ptr_array_add(names, (gpointer)arrays[0]);
        g_ptr_array_add(tensors, tensor(arrays[1]));
    }
    if (g_str_has_suffix(path, ".npy")) {
        g_autoptr(HnOutFile) out = hn_out_open(full, &error);
        g_assert_true(out && hn_npy_write(out, tensors->pdata[0], &error) && hn_out_commit(out, &error));
    } else {
        g_assert_true(hn_npz_write(full, (const char *const *)names->pdata, (HnTensor *const *)tensors->pdata,
                                   (int)names->len, NULL, &error));
    }
    g_assert_no_error(error);
    return full;
}

#define WRITE(f, path, ...) write_arrays(f, path, (const char *const[]){ __VA_ARGS__, NULL })

static HnData *open_with(Fixture *f, const char *source, HnDataOptions o, GError **error)
{
    GPtrArray *in = f->model->graph->inputs;
    return hn_data_open(source, (HnValue *const *)in->pdata, (int)in->len, &o, error);
}

static HnData *open_source(Fixture *f, const char *source)
{
    g_autoptr(GError) error = NULL;
    HnData *d = open_with(f, source, (HnDataOptions){ 0 }, &error);
    g_assert_no_error(error);
    return d;
}

static void check_fails(Fixture *f, const char *source, HnError code, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnData) d = open_with(f, source, (HnDataOptions){ 0 }, &error);
    g_assert_null(d);
    g_assert_error(error, HN_ERROR, (int)code);
    if (!strstr(error->message, words))
        g_error("'%s' does not speak of '%s'", error->message, words);
}

static void expect(const HnTensor *t, const char *text)
{
    g_autoptr(HnTensor) want = tensor(text);
    g_autofree char *have = t ? hn_tensor_describe(t) : g_strdup("nothing");
    if (!t || !hn_tensor_equal(t, want))
        g_error("%s is not %s", have, text);
}

static void expect_sample(const HnData *d, int64_t i, const char *in0, const char *in1, const char *label)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSample) s = hn_data_load(d, i, &error);
    g_assert_no_error(error);
    g_assert_cmpint(s->index, ==, i);
    g_assert_nonnull(s->name);
    expect(s->in[0], in0);
    if (in1)
        expect(s->in[1], in1);
    g_assert_cmpint(s->label != NULL, ==, label != NULL);
    if (label)
        expect(s->label, label);
}

/* --- arrays ------------------------------------------------------------------------------------------------------ */

static void test_rows(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N,2]");
    g_autofree char *npz = WRITE(f, "a.npz", "pixels", "f32[3,2]={1,2,3,4,5,6}", "label", "i64[3]={7,8,9}");
    g_autoptr(HnData) d = open_source(f, npz);
    g_assert_cmpint(hn_data_count(d), ==, 3);
    g_assert_true(hn_data_labelled(d));
    g_assert_false(hn_data_synthetic(d));
    expect_sample(d, 1, "f32[1,2]={3,4}", NULL, "i64[1]={8}");

    declare(f, "%x:f32[2]"); /* samples have no axis of their own */
    g_autoptr(HnData) bare = open_source(f, npz);
    expect_sample(bare, 2, "f32[2]={5,6}", NULL, "i64[1]={9}");
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_data_load_batch(bare, (int64_t[]){ 0, 1 }, 2, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);

    declare(f, "%x:f32[3,2]"); /* the model takes three at a time */
    g_autoptr(HnData) fixed = open_source(f, npz);
    g_assert_cmpint(hn_data_count(fixed), ==, 1);
    expect_sample(fixed, 0, "f32[3,2]={1,2,3,4,5,6}", NULL, "i64[3]={7,8,9}");

    declare(f, "%x:f32[2,2]"); /* which three rows do not fill */
    check_fails(f, npz, HN_ERROR_SHAPE, "3 rows");
    g_autoptr(HnData) dropped = open_with(f, npz, (HnDataOptions){ .drop_rest = TRUE }, NULL);
    g_assert_cmpint(hn_data_count(dropped), ==, 1);
}

/* Samples of d are those of its source: "0 2 3". */
static void expect_places(const HnData *d, const char *places)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (int64_t i = 0; i < hn_data_count(d); i++) {
        g_autoptr(HnSample) s = hn_data_load(d, i, NULL);
        g_string_append_printf(text, "%s%d", i > 0 ? " " : "", (int)s->which[0]);
    }
    g_assert_cmpstr(text->str, ==, places);
}

static void test_copies(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    int64_t copies;
    declare(f, "%a:f32[N,3], %b:i64[N]");
    g_autofree char *npz = WRITE(f, "a.npz", "a", "f32[6,3]={1,2,3, 1,2,3, 3,2,1, 1,2,3, 0,0,0, 0,0,-0.0}", "b",
                                 "i64[6]={7,7,7,8,9,9}", "label", "i64[6]={0,1,2,3,4,5}");
    g_autoptr(HnData) d = open_source(f, npz);
    g_autoptr(HnData) distinct = hn_data_distinct(d, 100, &copies, NULL);
    expect_places(distinct, "0 2 3 4"); /* labels and the sign of 0 do not count, and the second input does */
    g_assert_cmpint(copies, ==, 2);
    g_autoptr(HnData) two = hn_data_distinct(d, 2, &copies, NULL);
    expect_places(two, "0 2");
    g_autoptr(HnData) none = hn_data_distinct(d, 0, &copies, NULL);
    expect_places(none, "");
    g_autoptr(HnData) last = hn_data_some(d, (int64_t[]){ 5, 3, 1 }, 3);
    g_autoptr(HnData) others = hn_data_unlike(d, last, NULL);
    expect_places(others, "2");
    g_autoptr(HnData) one = hn_data_some(d, (int64_t[]){ 5 }, 1);
    g_autoptr(HnData) all_others = hn_data_unlike(d, one, NULL);
    expect_places(all_others, "0 1 2 3");
    g_autoptr(HnData) nested = hn_data_unlike(last, two, NULL);
    expect_places(nested, "5 3");
    g_autoptr(HnData) itself = hn_data_unlike(d, d, NULL);
    expect_places(itself, "");

    declare(f, "%s:string[N,2]");
    g_autofree char *words = WRITE(f, "s.npz", "s", "string[4,2]={'a','bc','ab','c','a','bc','',''}");
    g_autoptr(HnData) strings = open_source(f, words);
    g_autoptr(HnData) fewer = hn_data_distinct(strings, 100, &copies, NULL);
    expect_places(fewer, "0 1 3");

    /* halves and doubles have signs elsewhere, and a number with one bit is none; integers have no sign of 0 */
    static const struct {
        const char *type, *rows, *want;
    } zeros[] = {
        { "f32", "{0,-0.0,2,-2,0, -0.0,0,2,-2,-0.0, 0,0,2,2,0, 1e-45,0,2,-2,0}", "0 2 3" },
        { "f16", "{0,-0.0,2,-2,0, -0.0,0,2,-2,-0.0, 0,0,2,2,0, 6e-8,0,2,-2,0}", "0 2 3" },
        { "bf16", "{0,-0.0,2,-2,0, -0.0,0,2,-2,-0.0, 0,0,2,2,0, 1e-40,0,2,-2,0}", "0 2 3" },
        { "f64", "{0,-0.0,2,-2,0, -0.0,0,2,-2,-0.0, 0,0,2,2,0, 5e-324,0,2,-2,0}", "0 2 3" },
        { "i8", "{0,-128,2,-2,0, -128,0,2,-2,0, 0,0,2,2,0, 0,-128,2,-2,0}", "0 1 2" },
        { "i32", "{0,-2147483648,2,0,0, -2147483648,0,2,0,0, 0,0,2,0,0, 0,0,2,0,0}", "0 1 2" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(zeros); i++) {
        g_autofree char *header = g_strdup_printf("%%x:%s[N,5]", zeros[i].type);
        g_autofree char *text = g_strdup_printf("%s[4,5]=%s", zeros[i].type, zeros[i].rows);
        declare(f, header);
        g_autofree char *path = WRITE(f, "z.npz", "x", text);
        g_autoptr(HnData) signs = open_source(f, path);
        g_autoptr(HnData) unlike = hn_data_distinct(signs, 100, &copies, NULL);
        expect_places(unlike, zeros[i].want);
    }
}

static void test_names(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%a:f32[N], %b:i64[N]");
    g_autofree char *named = WRITE(f, "n.npz", "b", "i64[2]={3,4}", "a", "f32[2]={1,2}", "more", "f32[2]={0,0}");
    g_autoptr(HnData) d = open_source(f, named);
    g_assert_cmpint(hn_data_count(d), ==, 2);
    expect_sample(d, 1, "f32[1]={2}", "i64[1]={4}", NULL);
    g_autofree char *placed = WRITE(f, "p.npz", "arr_0", "f32[2]={1,2}", "arr_1", "i64[2]={3,4}");
    g_autoptr(HnData) p = open_source(f, placed);
    expect_sample(p, 0, "f32[1]={1}", "i64[1]={3}", NULL);
    g_autofree char *wrong = WRITE(f, "w.npz", "a", "f32[2]={1,2}", "c", "i64[2]={3,4}");
    check_fails(f, wrong, HN_ERROR_FORMAT, "no array for input 'b'; the nearest are 'a' and 'c'");

    g_autoptr(HnTensor) given = tensor("i64[1]={5}");
    HnTensor *const all[] = { NULL, given };
    g_autoptr(HnData) g = open_with(f, wrong, (HnDataOptions){ .given = all }, NULL);
    expect_sample(g, 0, "f32[1]={1}", "i64[1]={5}", NULL);

    declare(f, "%label:f32[N]"); /* an input of that name is one */
    g_autofree char *own = WRITE(f, "l.npz", "label", "f32[2]={1,2}");
    g_autoptr(HnData) l = open_source(f, own);
    expect_sample(l, 0, "f32[1]={1}", NULL, NULL);
}

static void test_whole(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N,2], %state:f32[3], %rate:i64[]");
    g_autofree char *npz = WRITE(f, "a.npz", "x", "f32[1,2]={1,2}", "state", "f32[3]={3,4,5}", "rate", "i64[]={16}");
    g_autoptr(HnData) d = open_source(f, npz);
    g_assert_cmpint(hn_data_count(d), ==, 1);
    expect_sample(d, 0, "f32[1,2]={1,2}", "f32[3]={3,4,5}", NULL);

    declare(f, "%x:f32[N,2]");
    g_autofree char *npy = WRITE(f, "x.npy", "", "f32[2,2]={1,2,3,4}"), *one = WRITE(f, "one.npy", "", "f32[2]={1,2}");
    g_autoptr(HnData) w = open_source(f, npy);
    g_assert_cmpint(hn_data_count(w), ==, 1);
    expect_sample(w, 0, "f32[2,2]={1,2,3,4}", NULL, NULL);
    g_autoptr(HnData) o = open_source(f, one);
    expect_sample(o, 0, "f32[1,2]={1,2}", NULL, NULL);
    declare(f, "%x:f32[1,2]");
    g_autoptr(HnData) r = open_source(f, npy);
    g_assert_cmpint(hn_data_count(r), ==, 2);
    expect_sample(r, 1, "f32[1,2]={3,4}", NULL, NULL);
}

static void test_bad(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N]");
    g_autofree char *noise = g_build_filename(f->folder, "noise.npz", NULL),
                    *empty = g_build_filename(f->folder, "e", NULL);
    g_assert_true(g_file_set_contents(noise, "PK\3\4 and nothing that follows", -1, NULL));
    g_assert_true(g_mkdir(empty, 0777) == 0);
    g_autofree char *none = WRITE(f, "none.npz", "x", "f32[0]={}");
    check_fails(f, noise, HN_ERROR_FORMAT, "noise.npz'");
    check_fails(f, empty, HN_ERROR_FORMAT, "holds no test set");
    check_fails(f, none, HN_ERROR_FORMAT, "no samples");
    check_fails(f, "/nonexistent/x.npy", HN_ERROR_IO, "/nonexistent/x.npy");
    check_fails(f, "random:x", HN_ERROR_USAGE, "'random:x'");
    check_fails(f, "random:0", HN_ERROR_USAGE, "random:0");
}

/* Values that are no tensors, as several arrays. */
static void test_lists(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%s:seq(f32[...]), %m:map(i64,f32[]), %x:f32[N]");
    g_autofree char *npz = WRITE(f, "l.npz", "s.0", "f32[2]={1,2}", "s.1", "f32[1]={3}", "m.keys", "i64[2]={7,8}",
                                 "m.values", "f32[2]={1,0}", "x", "f32[3]={1,2,3}");
    g_autoptr(HnData) d = open_source(f, npz);
    g_assert_cmpint(hn_data_count(d), ==, 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSample) s = hn_data_load(d, 0, &error);
    g_assert_no_error(error);
    g_assert_cmpint(s->in[0]->dtype, ==, HN_SEQUENCE);
    g_assert_cmpint(s->in[0]->n, ==, 2);
    expect(hn_tensor_get_item(s->in[0], 1), "f32[1]={3}");
    g_assert_cmpint(s->in[1]->dtype, ==, HN_MAP);
    expect(hn_tensor_get_item(s->in[1], 0), "i64[2]={7,8}");
    expect(s->in[2], "f32[3]={1,2,3}");
    g_autofree char *odd = WRITE(f, "odd.npz", "s.0", "f32[2]={1,2}", "m.keys", "i64[1]={7}", "m.values",
                                 "f32[2]={1,0}", "x", "f32[3]={1,2,3}");
    g_autoptr(HnData) wrong = open_source(f, odd);
    g_assert_null(hn_data_load(wrong, 0, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
}

/* --- folders ----------------------------------------------------------------------------------------------------- */

static void write_set(Fixture *f, const char *path, const char *prefix, const char *a, const char *b)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_build_filename(f->folder, path, NULL);
    g_autoptr(HnTensor) t = tensor(a), u = b ? tensor(b) : NULL;
    HnTensor *const both[] = { t, u };
    g_assert_true(hn_testset_write(folder, prefix, 2, both, (const char *const[]){ "t", "u" }, &error));
    g_assert_no_error(error);
}

static void test_sets(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N], %w:f32[1], %y:f32[N]");
    HnValue *w = hn_graph_find(f->model->graph, "w");
    g_autoptr(HnTensor) weight = tensor("f32[1]={9}");
    hn_graph_add_weight(f->model->graph, w, weight); /* input 1 of the graph, none of the test set */
    write_set(f, "s/test_data_set_10", "input", "f32[1]={10}", "f32[1]={11}");
    write_set(f, "s/test_data_set_2", "input", "f32[2]={1,2}", NULL);
    write_set(f, "s/test_data_set_2", "output", "f32[1]={0}", NULL);
    write_set(f, "s/other", "input", "f32[2]={1,2}", NULL);
    g_autofree char *sets = g_build_filename(f->folder, "s", NULL),
                    *one = g_build_filename(sets, "test_data_set_2", NULL);
    HnValue *inputs[] = { hn_graph_find(f->model->graph, "x"), hn_graph_find(f->model->graph, "y") };
    g_autoptr(GError) error = NULL;
    g_autoptr(HnData) d = hn_data_open(sets, inputs, 2, &(HnDataOptions){ 0 }, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_data_count(d), ==, 2);
    expect_sample(d, 1, "f32[1]={10}", "f32[1]={11}", NULL);
    g_autoptr(HnSample) s = hn_data_load(d, 0, &error);
    g_assert_cmpstr(s->name, ==, one);
    expect(s->in[0], "f32[2]={1,2}");
    g_assert_null(s->in[1]);

    /* w fed too: its tensor is given, and the places of the others stay */
    HnValue *fed[] = { inputs[0], w, inputs[1] };
    HnTensor *const given[] = { NULL, weight, NULL };
    g_autoptr(HnData) g = hn_data_open(sets, fed, 3, &(HnDataOptions){ .given = given }, &error);
    g_autoptr(HnSample) t = hn_data_load(g, 1, &error);
    g_assert_no_error(error);
    expect(t->in[1], "f32[1]={9}");
    expect(t->in[2], "f32[1]={11}");

    g_autoptr(HnData) few = hn_data_open(sets, inputs, 1, &(HnDataOptions){ 0 }, &error);
    g_assert_null(hn_data_load(few, 1, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_nonnull(strstr(error->message, "input_1.pb' has no counterpart: the model has 1 input"));
}

/* Samples that were loaded are there for as long as they fit, for parts of the data, too. */
static void test_kept(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N]");
    g_autofree char *b = WRITE(f, "k/b.npz", "x", "f32[2]={1,2}", "label", "i64[1]={7}");
    g_autofree char *a = WRITE(f, "k/a.npz", "x", "f32[2]={5,6}", NULL), *folder = g_path_get_dirname(a);
    static const gsize keep[] = { 0, 8, 16 };
    for (gsize k = 0; k < G_N_ELEMENTS(keep); k++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnData) d = open_with(f, folder, (HnDataOptions){ .keep = keep[k] }, &error);
        g_autoptr(HnData) rest = hn_data_without(d, 0);
        g_autoptr(HnSample) first = hn_data_load(d, 0, &error), again = hn_data_load(d, 0, &error);
        g_autoptr(HnSample) other = hn_data_load(d, 1, &error), once_more = hn_data_load(rest, 0, &error);
        g_assert_no_error(error);
        g_assert_true((first->in[0] == again->in[0]) == (keep[k] >= 8));
        g_assert_true((other->in[0] == once_more->in[0]) == (keep[k] >= 16));
        expect(again->in[0], "f32[2]={5,6}");
        expect(once_more->in[0], "f32[2]={1,2}");
        expect(once_more->label, "i64[1]={7}");
        g_assert_cmpstr(once_more->name, ==, b);
        g_assert_cmpint(once_more->index, ==, 1);
    }
}

static void test_files(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N,2]");
    g_autofree char *b = WRITE(f, "d/b.npz", "x", "f32[2,2]={1,2,3,4}", "label", "i64[2]={0,1}");
    g_autofree char *a = WRITE(f, "d/a.npy", "", "f32[2]={5,6}"), *folder = g_path_get_dirname(a);
    g_autoptr(HnData) d = open_source(f, folder);
    g_assert_cmpint(hn_data_count(d), ==, 2);
    expect_sample(d, 0, "f32[1,2]={5,6}", NULL, NULL);
    expect_sample(d, 1, "f32[2,2]={1,2,3,4}", NULL, "i64[2]={0,1}");
    g_assert_true(b != NULL);
}

/* --- made up ----------------------------------------------------------------------------------------------------- */

static void test_random(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    declare(f, "%x:f32[batch,3], %ids:i64[batch,seq], %attention_mask:i64[batch,seq], %u:u8[64], %s:f64[], %b:bool[?]");
    g_autoptr(HnShapes) shapes = hn_shapes_new();
    g_assert_true(hn_shapes_parse_dim(shapes, "batch=2", &error) && hn_shapes_parse_dim(shapes, "seq=50", &error));
    g_assert_true(hn_shapes_parse(shapes, "u:2x2,b:4", &error));
    HnValue *const *inputs = (HnValue *const *)f->model->graph->inputs->pdata;
    g_assert_true(hn_shapes_check(shapes, inputs, 6, &error));
    g_autoptr(HnData) d = open_with(f, "random:3", (HnDataOptions){ .shapes = shapes, .seed = 5 }, &error);
    g_assert_no_error(error);
    g_assert_true(hn_data_synthetic(d));
    g_assert_cmpint(hn_data_count(d), ==, 3);
    g_autoptr(HnSample) s = hn_data_load(d, 2, &error), again = hn_data_load(d, 2, &error),
                        other = hn_data_load(d, 1, &error);
    static const char *const types[] = { "f32[2,3]", "i64[2,50]", "i64[2,50]", "u8[2,2]", "f64[]", "bool[4]" };
    for (int i = 0; i < 6; i++) {
        g_autofree char *type = hn_tensor_describe(s->in[i]);
        g_assert_cmpstr(type, ==, types[i]);
        g_assert_true(hn_tensor_equal(s->in[i], again->in[i]));
    }
    g_assert_false(hn_tensor_equal(s->in[0], other->in[0]));
    int64_t ones = 0;
    for (int64_t i = 0; i < 100; i++) {
        int64_t id = hn_tensor_get_i64(s->in[1], i), mask = hn_tensor_get_i64(s->in[2], i);
        g_assert_true(id >= 0 && id <= 9 && (mask == 0 || mask == 1));
        ones += mask;
    }
    g_assert_true(ones > 60 && ones < 100);
}

static void test_shapes(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    declare(f, "%\"x:0\":f32[N,2*N,M,?,4], %y:f32[], %z:f32[...]");
    HnValue *const *in = (HnValue *const *)f->model->graph->inputs->pdata;
    g_autoptr(HnShapes) s = hn_shapes_new();
    int64_t dims[HN_MAX_RANK];
    hn_shapes_set_dim(s, "N", 3);
    g_assert_cmpint(hn_shapes_dims(s, in[0], dims, &error), ==, 5);
    g_assert_true(dims[0] == 3 && dims[1] == 6 && dims[2] == 1 && dims[3] == 1 && dims[4] == 4);
    g_assert_cmpint(hn_shapes_dims(s, in[1], dims, &error), ==, 0);
    g_assert_cmpint(hn_shapes_dims(NULL, in[2], dims, &error), ==, -1);
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    g_assert_true(hn_shapes_parse(s, "x:0:1,3,224,y:,z:7x8", &error));
    g_assert_no_error(error);
    g_assert_cmpint(hn_shapes_dims(s, in[0], dims, &error), ==, 3);
    g_assert_cmpint(dims[2], ==, 224);
    g_assert_cmpint(hn_shapes_dims(s, in[1], dims, &error), ==, 0);
    g_assert_cmpint(hn_shapes_dims(s, in[2], dims, &error), ==, 2);
    static const char *const bad[] = { "", "1x2", "x:1xa", ":1", "x:1x-2", "x:1,", "x:1:" };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(HnShapes) t = hn_shapes_new();
        gboolean ok = hn_shapes_parse(t, bad[i], &error);
        if (ok) { /* "x:1:" is an input "x:1" without dimensions */
            g_assert_cmpstr(bad[i], ==, "x:1:");
            g_assert_false(hn_shapes_check(t, in, 3, &error));
        }
        g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_clear_error(&error);
    }
    g_assert_false(hn_shapes_parse_dim(s, "N", &error));
    g_clear_error(&error);
    g_assert_false(hn_shapes_parse_dim(s, "N=-1", &error));
    g_clear_error(&error);
    hn_shapes_set_dim(s, "K", 3);
    g_assert_false(hn_shapes_check(s, in, 3, &error));
    g_assert_cmpstr(error->message, ==,
                    "option '--dim': no input has a dimension 'K'; the nearest are 'N', 'M' and '2*N'");
}

/* --- one after the other ----------------------------------------------------------------------------------------- */

static void walk(const HnData *d, HnDataIterOptions o, int64_t batches, int64_t samples, double first)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDataIter) it = hn_data_iter_new(d, &o);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_assert_cmpint(hn_data_iter_batches(it), ==, batches);
    int64_t n = 0, k = 0;
    for (HnSample *s; (s = hn_data_iter_next(it, &error)); n++) {
        g_assert_cmpint(s->in[0]->dims[0], ==, s->count);
        if (n == 0 && first >= 0)
            g_assert_cmpfloat(hn_tensor_get_f64(s->in[0], 0), ==, first);
        for (int64_t i = 0; i < s->count; i++, k++) {
            double x = hn_tensor_get_f64(s->in[0], i);
            g_assert_cmpfloat(x, ==, (double)hn_tensor_get_i64(s->label, i));
            g_assert_true(g_hash_table_add(seen, GINT_TO_POINTER((int)x)));
            g_assert_true(o.shuffle || x == (double)k);
        }
        hn_sample_free(s);
    }
    g_assert_no_error(error);
    g_assert_cmpint(n, ==, batches);
    g_assert_cmpint(k, ==, samples);
    g_assert_null(hn_data_iter_next(it, &error));
    g_assert_no_error(error);
}

static void test_iter(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N]");
    g_autoptr(GString) x = g_string_new("f32[100]={"), label = g_string_new("i64[100]={");
    for (int i = 0; i < 100; i++) {
        g_string_append_printf(x, "%s%d", i ? "," : "", i);
        g_string_append_printf(label, "%s%d", i ? "," : "", i);
    }
    g_string_append(x, "}");
    g_string_append(label, "}");
    g_autofree char *npz = WRITE(f, "a.npz", "x", x->str, "label", label->str);
    g_autoptr(HnData) d = open_source(f, npz);
    for (int threads = 0; threads <= 3; threads++) {
        walk(d, (HnDataIterOptions){ .threads = threads }, 100, 100, 0);
        walk(d, (HnDataIterOptions){ .threads = threads, .batch = 7 }, 15, 100, 0);
        walk(d, (HnDataIterOptions){ .threads = threads, .batch = 7, .shuffle = TRUE, .seed = 1 }, 15, 100, -1);
        walk(d, (HnDataIterOptions){ .threads = threads, .batch = 200, .limit = 50 }, 1, 50, 0);
        walk(d, (HnDataIterOptions){ .threads = threads, .ahead = 1, .shuffle = TRUE, .limit = 9 }, 9, 9, -1);
        /* left in the middle */
        HnDataIter *it = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = threads });
        hn_sample_free(hn_data_iter_next(it, NULL));
        hn_data_iter_free(it);
    }
}

static void test_iter_fails(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    declare(f, "%x:f32[N,2]");
    g_autofree char *a = WRITE(f, "d/a.npy", "", "f32[1,2]={5,6}"), *b = WRITE(f, "d/b.npy", "", "f32[1,2]={5,6}"),
                    *c = WRITE(f, "d/c.npy", "", "f32[1,3]={5,6,7}"), *folder = g_path_get_dirname(a);
    g_autoptr(HnData) d = open_source(f, folder);
    for (int threads = 0; threads < 2; threads++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnDataIter) it = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = threads, .batch = 2 });
        g_autoptr(HnSample) s = hn_data_iter_next(it, &error);
        g_assert_no_error(error);
        expect(s->in[0], "f32[2,2]={5,6,5,6}");
        g_autoptr(HnSample) last = hn_data_iter_next(it, &error);
        expect(last->in[0], "f32[1,3]={5,6,7}");
        g_autoptr(HnDataIter) all = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = threads, .batch = 3 });
        g_assert_null(hn_data_iter_next(all, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
        g_assert_null(hn_data_iter_next(all, NULL));
    }
    g_assert_true(g_file_set_contents(b, "noise", -1, NULL) && c != NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDataIter) it = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = 2 });
    hn_sample_free(hn_data_iter_next(it, &error));
    g_assert_null(hn_data_iter_next(it, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*test)(Fixture *f, gconstpointer data);
    } tests[] = {
        { "/data/rows", test_rows },     { "/data/names", test_names }, { "/data/copies", test_copies },
        { "/data/kept", test_kept },     { "/data/whole", test_whole }, { "/data/bad", test_bad },
        { "/data/sets", test_sets },     { "/data/files", test_files }, { "/data/random", test_random },
        { "/data/shapes", test_shapes }, { "/data/iter", test_iter },   { "/data/iter/fails", test_iter_fails },
        { "/data/lists", test_lists },
    };
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].name, Fixture, NULL, set_up, tests[i].test, tear_down);
    return g_test_run();
}
