/* data: endless batches in an order that follows from seed and epoch, augmentation, checks of labels and numbers. */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/batches.h"
#include "data/npz.h"
#include "ir/ir_text.h"

/* --- a set: images whose elements say where they are ---------------------------------------------------------------
 */

typedef struct {
    char *path;
    HnModel *model;
    HnData *data;
} Fixture;

static HnModel *model_of(const char *inputs)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("opset 17\ngraph main(%s) -> () {\n}\n", inputs);
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    return m;
}

static HnTensor *tensor(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_tensor_parse(&text, NULL, &error);
    g_assert_no_error(error);
    return t;
}

static void expect(const HnTensor *t, const char *text)
{
    g_autoptr(HnTensor) want = tensor(text);
    g_autofree char *have = t ? hn_tensor_describe(t) : g_strdup("nothing");
    if (!t || !hn_tensor_equal(t, want))
        g_error("%s is not %s", have, text);
}

/* x, and labels where there are some; takes the tensors */
static void open_set(Fixture *f, const char *inputs, HnTensor *x, HnTensor *label)
{
    g_autoptr(GError) error = NULL;
    HnTensor *const both[] = { x, label };
    g_assert_true(hn_npz_write(f->path, (const char *const[]){ "x", "label" }, both, label ? 2 : 1, NULL, &error));
    g_assert_no_error(error);
    hn_tensor_unref(x);
    if (label)
        hn_tensor_unref(label);
    hn_data_free(f->data);
    hn_model_free(f->model);
    f->model = model_of(inputs);
    GPtrArray *in = f->model->graph->inputs;
    f->data = hn_data_open(f->path, (HnValue *const *)in->pdata, (int)in->len, &(HnDataOptions){ 0 }, &error);
    g_assert_no_error(error);
}

/* Element i is 1 + i, none is 0; a label is the number of its sample. */
static void open_numbered(Fixture *f, const char *inputs, HnDtype dtype, int ndim, const int64_t *dims)
{
    HnTensor *x = hn_tensor_new(dtype, ndim, dims, NULL, NULL), *label = hn_tensor_new(HN_I64, 1, dims, NULL, NULL);
    for (int64_t i = 0; i < x->n; i++)
        hn_tensor_set_f64(x, i, (double)(1 + i));
    for (int64_t i = 0; i < label->n; i++)
        hn_tensor_set_i64(label, i, i);
    open_set(f, inputs, x, label);
}

#define IMAGES "%x:f32[N,2,5,4]"
#define SAMPLES 23

static void set_up(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL);
    f->path = g_build_filename(folder, "set.npz", NULL);
    open_numbered(f, IMAGES, HN_F32, 4, (int64_t[]){ SAMPLES, 2, 5, 4 });
}

static void tear_down(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autofree char *folder = g_path_get_dirname(f->path);
    hn_data_free(f->data);
    hn_model_free(f->model);
    g_remove(f->path);
    g_rmdir(folder);
    g_free(f->path);
}

static HnBatches *batches_new(const Fixture *f, HnBatchesOptions o)
{
    g_autoptr(GError) error = NULL;
    HnBatches *b = hn_batches_new(f->data, &o, &error);
    g_assert_no_error(error);
    return b;
}

static HnSample *take(HnBatches *b, HnBatchPlace *at)
{
    g_autoptr(GError) error = NULL;
    HnSample *s = hn_batches_next(b, at, &error);
    g_assert_no_error(error);
    g_assert_nonnull(s);
    return s;
}

static HnAugment *augment(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnAugment *a = hn_augment_parse(text, &error);
    g_assert_no_error(error);
    return a;
}

static void check_error(GError **error, HnError code, const char *words)
{
    g_assert_error(*error, HN_ERROR, (int)code);
    if (!strstr((*error)->message, words))
        g_error("'%s' does not speak of '%s'", (*error)->message, words);
    g_clear_error(error);
}

/* --- order ---------------------------------------------------------------------------------------------------------
 */

/* The labels of so many epochs, one behind the other; each sample of an epoch comes once, with its own elements. */
static GArray *walk(const Fixture *f, HnBatchesOptions o, int64_t epochs)
{
    g_autoptr(HnBatches) b = batches_new(f, o);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (int64_t e = 0; e < epochs; e++) {
        gboolean seen[SAMPLES] = { 0 };
        for (int64_t k = 0; k < hn_batches_per_epoch(b); k++) {
            HnBatchPlace at;
            g_autoptr(HnSample) s = take(b, &at);
            g_assert_true(at.epoch == e && at.batch == k);
            g_assert_cmpint(s->label->n, ==, s->count);
            for (int64_t i = 0; i < s->count; i++) {
                int64_t label = hn_tensor_get_i64(s->label, i);
                g_assert_cmpint(s->which[i], ==, label);
                g_assert_false(seen[label]);
                seen[label] = TRUE;
                g_assert_cmpfloat(hn_tensor_get_f64(s->in[0], i * 40 + 39), ==, (double)(label * 40 + 40));
                g_array_append_val(all, label);
            }
        }
    }
    return all;
}

static gboolean same(const GArray *a, const GArray *b)
{
    return a->len == b->len && !memcmp(a->data, b->data, a->len * sizeof(int64_t));
}

static gboolean same_stretch(const GArray *a, guint from, guint other, guint n)
{
    return !memcmp(&g_array_index(a, int64_t, from), &g_array_index(a, int64_t, other), n * sizeof(int64_t));
}

static void test_order(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    const HnBatchesOptions o = { .batch = 5, .shuffle = TRUE, .seed = 3, .keep_rest = TRUE };
    HnBatchesOptions other = o, plain = o;
    other.seed = 4;
    plain.shuffle = FALSE;
    g_autoptr(GArray) a = walk(f, o, 3), again = walk(f, o, 3), b = walk(f, other, 3), c = walk(f, plain, 2);
    g_assert_cmpint(a->len, ==, 3 * SAMPLES); /* and each once an epoch, says walk() */
    g_assert_true(same(a, again));
    g_assert_false(same(a, b));
    g_assert_false(same_stretch(a, 0, SAMPLES, SAMPLES));
    g_assert_false(same_stretch(a, SAMPLES, 2 * SAMPLES, SAMPLES));
    for (guint i = 0; i < c->len; i++)
        g_assert_cmpint(g_array_index(c, int64_t, i), ==, i % SAMPLES);
    for (int threads = 1; threads <= 3; threads++) /* loaded ahead over the ends of epochs, too */
        for (int ahead = 0; ahead <= 12; ahead += 6) {
            HnBatchesOptions t = o;
            t.threads = threads;
            t.ahead = ahead;
            g_autoptr(GArray) d = walk(f, t, 3);
            g_assert_true(same(a, d));
        }
}

static void test_rest(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBatches) drops = batches_new(f, (HnBatchesOptions){ .batch = 5 }),
                         keeps = batches_new(f, (HnBatchesOptions){ .batch = 5, .keep_rest = TRUE });
    g_assert_cmpint(hn_batches_per_epoch(drops), ==, 4);
    g_assert_cmpint(hn_batches_per_epoch(keeps), ==, 5);
    static const int64_t sizes[] = { 5, 5, 5, 5, 3, 5 };
    for (int k = 0; k < 6; k++) {
        g_autoptr(HnSample) d = take(drops, NULL), s = take(keeps, NULL);
        g_assert_cmpint(d->count, ==, 5);
        g_assert_cmpint(s->count, ==, sizes[k]);
        g_assert_cmpint(s->in[0]->dims[0], ==, sizes[k]);
    }
    g_autoptr(HnBatches) all = batches_new(f, (HnBatchesOptions){ .batch = SAMPLES });
    g_assert_cmpint(hn_batches_per_epoch(all), ==, 1);
    g_assert_null(hn_batches_new(f->data, &(HnBatchesOptions){ .batch = 24 }, &error));
    check_error(&error, HN_ERROR_USAGE, "set.npz' has 23 samples, which do not fill a batch of 24");
}

/* A part of a set: its own samples alone, which keep their places and names, and what augmentation makes of them. */
static void test_some(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnAugment) a = augment("shift:1,noise:0.5");
    const HnBatchesOptions o = { .batch = 2, .shuffle = TRUE, .augment = a, .threads = 1 },
                           all = { .batch = SAMPLES, .augment = a };
    g_autoptr(HnData) some = hn_data_some(f->data, (int64_t[]){ 20, 3, 7, 11 }, 4);
    g_autoptr(HnBatches) b = hn_batches_new(some, &o, &error), whole = batches_new(f, all);
    g_assert_no_error(error);
    g_autoptr(HnSample) w = take(whole, NULL);
    int sum = 0;
    for (int k = 0; k < 2; k++) {
        g_autoptr(HnSample) s = take(b, NULL);
        for (int i = 0; i < 2; i++) {
            const int64_t at = s->which[i];
            g_autofree char *name = hn_data_name(some, at), *end = g_strdup_printf("set.npz sample %d", (int)at);
            g_assert_cmpint(hn_tensor_get_i64(s->label, i), ==, at);
            g_assert_true(g_str_has_suffix(name, end));
            g_assert_true(!memcmp((float *)s->in[0]->data + i * 40, (float *)w->in[0]->data + at * 40, 160));
            sum += (int)at;
        }
    }
    g_assert_cmpint(sum, ==, 20 + 3 + 7 + 11);
    g_assert_null(hn_batches_new(some, &(HnBatchesOptions){ .batch = 5 }, &error));
    check_error(&error, HN_ERROR_USAGE, "has 4 samples");
    g_autoptr(HnBatches) rest =
        hn_batches_new(some, &(HnBatchesOptions){ .batch = G_MAXINT, .keep_rest = TRUE }, &error);
    g_autoptr(HnSample) four = take(rest, NULL);
    g_assert_cmpint(four->count, ==, 4);
}

/* --- places --------------------------------------------------------------------------------------------------------
 */

static void expect_same(const HnSample *a, const HnSample *b)
{
    g_assert_true(hn_tensor_equal(a->in[0], b->in[0]) && hn_tensor_equal(a->label, b->label));
    g_assert_cmpint(a->index, ==, b->index);
}

static void test_places(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnAugment) a = augment("shift:1,flip-x,noise:0.5");
    for (int threads = 0; threads <= 2; threads++) {
        const HnBatchesOptions o = { .batch = 5, .threads = threads, .shuffle = TRUE, .seed = 9, .augment = a };
        g_autoptr(HnBatches) through = batches_new(f, o), jumps = batches_new(f, o);
        hn_sample_free(take(jumps, NULL)); /* something is loaded ahead */
        for (int k = 0; k < 11; k++) {
            g_autoptr(HnBatches) resumed = batches_new(f, o);
            const HnBatchPlace place = hn_batches_place(through);
            g_assert_true(place.epoch == k / 4 && place.batch == k % 4);
            g_assert_true(hn_batches_go(resumed, place, &error) && hn_batches_go(jumps, place, &error));
            g_autoptr(HnSample) s = take(through, NULL), r = take(resumed, NULL), j = take(jumps, NULL);
            expect_same(s, r);
            expect_same(s, j);
            g_autoptr(HnSample) after = take(resumed, NULL), too = take(jumps, NULL);
            expect_same(after, too);
        }
        g_assert_true(hn_batches_go(jumps, (HnBatchPlace){ 6, 4 }, &error)); /* the end of an epoch */
        HnBatchPlace at;
        hn_sample_free(take(jumps, &at));
        g_assert_true(at.epoch == 7 && at.batch == 0);
        g_assert_false(hn_batches_go(jumps, (HnBatchPlace){ 6, 5 }, &error));
        check_error(&error, HN_ERROR_VALUE, "no batch 5 of epoch 6: an epoch has 4");
        g_assert_false(hn_batches_go(jumps, (HnBatchPlace){ -1, 0 }, &error));
        check_error(&error, HN_ERROR_VALUE, "epoch -1");
        g_assert_false(hn_batches_go(jumps, (HnBatchPlace){ G_MAXINT64 / 2, 0 }, &error));
        check_error(&error, HN_ERROR_VALUE, "an epoch has 4");
        hn_sample_free(take(jumps, &at)); /* a refused place changes nothing */
        g_assert_true(at.epoch == 7 && at.batch == 1);
    }
}

/* --- augmentation --------------------------------------------------------------------------------------------------
 */

static void test_threads(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    static const char *const texts[] = { "shift:2", "flip-x,flip-y", "noise:0.1", "scale:0.3,shift:1,noise:2,flip-x" };
    for (guint k = 0; k < G_N_ELEMENTS(texts); k++) {
        g_autoptr(HnAugment) a = augment(texts[k]);
        HnBatchesOptions o = { .batch = 4, .shuffle = TRUE, .seed = k, .augment = a, .threads = 1 }, three = o,
                         large = o;
        three.threads = 3;
        large.batch = 1;
        large.threads = 0;
        g_autoptr(HnBatches) one = batches_new(f, o), many = batches_new(f, three), each = batches_new(f, large);
        gboolean changed = FALSE;
        for (int step = 0; step < 20; step++) {
            HnBatchPlace at;
            g_autoptr(HnSample) s = take(one, &at), t = take(many, NULL);
            expect_same(s, t);
            for (int64_t i = 0; i < s->count; i++) { /* alone or in a batch, a sample becomes the same */
                g_assert_true(hn_batches_go(each, (HnBatchPlace){ at.epoch, at.batch * 4 + i }, NULL));
                g_autoptr(HnSample) single = take(each, NULL);
                g_assert_true(!memcmp(single->in[0]->data, (float *)s->in[0]->data + i * 40, 160));
                changed |= hn_tensor_get_f64(single->in[0], 5) != (double)(single->index * 40 + 6);
            }
        }
        g_assert_true(changed);
    }
}

/* Samples of one epoch after augmentation, in the set's order. */
static HnSample *changed_set(const Fixture *f, const char *text, int64_t epoch)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnAugment) a = augment(text);
    g_autoptr(HnBatches) b = batches_new(f, (HnBatchesOptions){ .batch = (int)hn_data_count(f->data), .augment = a });
    g_assert_true(hn_batches_go(b, (HnBatchPlace){ epoch, 0 }, &error));
    return take(b, NULL);
}

/* Element (y, x) of plane c of sample i as the set has it, 0 outside. */
static double element(int64_t i, int64_t c, int64_t y, int64_t x)
{
    return y < 0 || y >= 5 || x < 0 || x >= 4 ? 0 : (double)(1 + ((i * 2 + c) * 5 + y) * 4 + x);
}

static gboolean is_moved(const HnTensor *t, int64_t i, int64_t dy, int64_t dx, gboolean flipped)
{
    for (int64_t k = 0; k < 40; k++) {
        const int64_t c = k / 20, y = k % 20 / 4, x = flipped ? 3 - k % 4 : k % 4;
        if (hn_tensor_get_f64(t, i * 40 + k) != element(i, c, y - dy, flipped ? x : x - dx))
            return FALSE;
    }
    return TRUE;
}

static void test_shift(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    int found[5][5] = { 0 };
    static const char *const types[] = { IMAGES, "%x:f64[N,2,5,4]", "%x:u16[N,2,5,4]" };
    static const HnDtype dtypes[] = { HN_F32, HN_F64, HN_U16 };
    for (int type = 0; type < 3; type++) {
        open_numbered(f, types[type], dtypes[type], 4, (int64_t[]){ SAMPLES, 2, 5, 4 });
        for (int64_t epoch = 12 * type; epoch < 12 * type + 12; epoch++) {
            g_autoptr(HnSample) s = changed_set(f, "x/shift:2", epoch);
            for (int64_t i = 0; i < SAMPLES; i++) {
                int hits = 0;
                for (int dy = -2; dy <= 2; dy++)
                    for (int dx = -2; dx <= 2; dx++)
                        if (is_moved(s->in[0], i, dy, dx, FALSE)) {
                            found[dy + 2][dx + 2]++;
                            hits++;
                        }
                g_assert_cmpint(hits, ==, 1);
            }
        }
    }
    for (int i = 0; i < 25; i++) /* 828 draws of 25 */
        g_assert_true(found[i / 5][i % 5] > 10 && found[i / 5][i % 5] < 66);

    open_numbered(f, "%x:f32[N,6,3]", HN_F32, 3, (int64_t[]){ SAMPLES, 6, 3 });
    g_autoptr(HnSample) s = changed_set(f, "shift-t:5", 0);
    gboolean moved[11] = { 0 };
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t by = -9;
        for (int64_t d = -5; d <= 5; d++) {
            gboolean fits = TRUE;
            for (int64_t k = 0; k < 18; k++) {
                const int64_t from = k / 3 - d;
                const double want = from < 0 || from >= 6 ? 0 : (double)(1 + i * 18 + from * 3 + k % 3);
                fits &= hn_tensor_get_f64(s->in[0], i * 18 + k) == want;
            }
            by = fits ? d : by;
        }
        g_assert_cmpint(by, >=, -5);
        moved[by + 5] = TRUE;
    }
    g_assert_true(moved[0] + moved[1] + moved[2] + moved[3] > 0 && moved[7] + moved[8] + moved[9] + moved[10] > 0);
}

static void test_flip(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    int flips = 0;
    for (int64_t epoch = 0; epoch < 10; epoch++) {
        g_autoptr(HnSample) s = changed_set(f, "flip-x", epoch);
        for (int64_t i = 0; i < SAMPLES; i++) {
            const gboolean flipped = is_moved(s->in[0], i, 0, 0, TRUE);
            g_assert_true(flipped || is_moved(s->in[0], i, 0, 0, FALSE));
            flips += flipped;
        }
    }
    g_assert_true(flips > 80 && flips < 150); /* of 230 */
    open_set(f, "%x:u8[N,2,3]", tensor("u8[1,2,3]={1,2,3,4,5,6}"), NULL);
    gboolean plain = FALSE, turned = FALSE, both = FALSE;
    for (int64_t epoch = 0; epoch < 64; epoch++) {
        g_autoptr(HnSample) s = changed_set(f, "x/flip-y,x/flip-x", epoch);
        const guint8 *x = s->in[0]->data;
        plain |= !memcmp(x, (guint8[]){ 1, 2, 3, 4, 5, 6 }, 6);
        turned |= !memcmp(x, (guint8[]){ 4, 5, 6, 1, 2, 3 }, 6);
        both |= !memcmp(x, (guint8[]){ 6, 5, 4, 3, 2, 1 }, 6);
    }
    g_assert_true(plain && turned && both);
}

static void test_numbers(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    static const char *const types[] = { "%x:f32[N,500]", "%x:f64[N,500]", "%x:f16[N,500]" };
    static const HnDtype dtypes[] = { HN_F32, HN_F64, HN_F16 };
    for (int type = 0; type < 3; type++) {
        HnTensor *x = hn_tensor_new(dtypes[type], 2, (int64_t[]){ 20, 500 }, NULL, NULL);
        open_set(f, types[type], x, NULL);
        g_autoptr(HnSample) s = changed_set(f, "noise:0.25", 0), again = changed_set(f, "noise:0.25", 0),
                            other = changed_set(f, "noise:0.25", 1);
        double sum = 0, squares = 0, beyond = 0, far = 0;
        for (int64_t i = 0; i < 10000; i++) {
            const double v = hn_tensor_get_f64(s->in[0], i) / 0.25;
            sum += v;
            squares += v * v;
            beyond += fabs(v) > 1;
            far += fabs(v) > 2;
        }
        g_assert_cmpfloat(fabs(sum / 10000), <, 0.05);
        g_assert_cmpfloat(fabs(squares / 10000 - 1), <, 0.06);
        g_assert_cmpfloat(fabs(beyond / 10000 - 0.3173), <, 0.02);
        g_assert_cmpfloat(fabs(far / 10000 - 0.0455), <, 0.01);
        g_assert_true(hn_tensor_equal(s->in[0], again->in[0]));
        g_assert_false(hn_tensor_equal(s->in[0], other->in[0]));
    }
    open_numbered(f, "%x:f64[N,4]", HN_F64, 2, (int64_t[]){ SAMPLES, 4 });
    g_autoptr(HnSample) s = changed_set(f, "scale:0.5", 0);
    double least = 2, most = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        const double by = hn_tensor_get_f64(s->in[0], i * 4) / (double)(1 + i * 4);
        least = MIN(least, by);
        most = MAX(most, by);
        for (int64_t k = 1; k < 4; k++) /* one number a sample */
            g_assert_cmpfloat(fabs(hn_tensor_get_f64(s->in[0], i * 4 + k) / (double)(1 + i * 4 + k) - by), <, 1e-12);
    }
    g_assert_true(least >= 0.5 && least < 0.8 && most > 1.2 && most < 1.5);
}

static void test_text(G_GNUC_UNUSED Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    static const char *const same_again[] = { "",          "shift:2,flip-x,noise:0.01", "x/shift-t:10000,a/b:0/flip-y",
                                              "scale:0.1", "noise:1e-05,noise:1000",    "scale:0.333333333333333" };
    for (guint i = 0; i < G_N_ELEMENTS(same_again); i++) {
        g_autoptr(HnAugment) a = augment(same_again[i]);
        g_autofree char *text = hn_augment_print(a);
        g_assert_cmpstr(text, ==, same_again[i]);
    }
    g_autoptr(HnAugment) a = augment(" shift:2 , noise:0.010");
    g_autofree char *text = hn_augment_print(a);
    g_assert_cmpstr(text, ==, "shift:2,noise:0.01");
    static const char *const bad[][2] = {
        { "shft:2", "'shft' is not known; there is 'shift'" },
        { "rotate:2", "'rotate' is none of shift, shift-t, flip-x, flip-y, noise, scale" },
        { "shift", "'shift' has no size" },
        { "flip-x:2", "'flip-x' takes no size" },
        { "shift:1.5", "'shift': '1.5'" },
        { "shift:10001", "10000" },
        { "shift:-1", "'-1'" },
        { "noise:nan", "'nan'" },
        { "noise:-1", "not between 0 and 1000" },
        { "scale:1.1", "not between 0 and 1" },
        { "scale:", "'scale'" },
        { "shift:1,", "is empty" },
        { "x/", "is empty" },
        { "/shift:1", "names no input" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(hn_augment_parse(bad[i][0], &error));
        check_error(&error, HN_ERROR_USAGE, bad[i][1]);
    }
}

static void test_refused(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    static const char *const bad[][3] = {
        { "%x:f32[N,5]", "shift:1", "'shift' is for inputs [N,H,W] or [N,C,H,W], and input 'x' has rank 2" },
        { "%x:f32[N,5]", "flip-x", "rank 2" },
        { "%x:f32[N,5]", "shift-t:1", "'shift-t' is for inputs [N,T,C], and input 'x' has rank 2" },
        { "%x:f32[N,1,5,5]", "shift-t:1", "rank 4" },
        { "%x:f32[N,28,28,3]", "shift:3", "moves all of input 'x' away, which has 3 along axis 3" },
        { "%x:f32[N,4,28]", "shift:5", "has 4 along axis 1" },
        { "%x:f32[N,4,28]", "shift-t:4", "has 4 along axis 1" },
        { "%x:u8[N,4,28]", "shift:1", "'shift' has no input of floats to change" },
        { "%x:u8[N,4,28]", "x/noise:1", "'noise' is for floats, and input 'x' is u8" },
        { "%x:i4[N,4,28]", "x/shift:1", "cannot change input 'x' of i4" },
        { "%x:f32[]", "noise:1", "has rank 0" },
        { "%image:f32[N,4,28]", "imge/shift:1", "input 'imge', which is not there; there is 'image'" },
    };
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(HnModel) m = model_of(bad[i][0]);
        g_autoptr(HnAugment) a = augment(bad[i][1]);
        g_assert_false(hn_augment_check(a, (HnValue *const *)m->graph->inputs->pdata, 1, &error));
        check_error(&error, HN_ERROR_USAGE, bad[i][2]);
    }
    g_autoptr(HnAugment) a = augment("shift:4");
    g_assert_null(hn_batches_new(f->data, &(HnBatchesOptions){ .augment = a }, &error));
    check_error(&error, HN_ERROR_USAGE, "along axis 3");
    open_numbered(f, "%x:f32[...]", HN_F32, 2, (int64_t[]){ 4, 3 }); /* which only the data tell */
    for (int threads = 0; threads < 2; threads++) {
        g_autoptr(HnBatches) b = batches_new(f, (HnBatchesOptions){ .augment = a, .threads = threads, .batch = 2 });
        for (int again = 0; again < 2; again++) {
            HnBatchPlace at = hn_batches_place(b);
            g_assert_true(at.epoch == 0 && at.batch == 0);
            g_assert_null(hn_batches_next(b, NULL, &error));
            check_error(&error, HN_ERROR_USAGE, "rank 2");
        }
    }
}

/* Tensors that others have, too, are not written to. */
static void test_shared(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) x = tensor("f32[1,3]={1,2,3}"), before = hn_tensor_copy(x, NULL, NULL);
    g_autoptr(HnModel) m = model_of("%x:f32[N,3]");
    HnTensor *const given[] = { x };
    hn_data_free(f->data);
    f->data =
        hn_data_open(NULL, (HnValue *const *)m->graph->inputs->pdata, 1, &(HnDataOptions){ .given = given }, &error);
    g_assert_no_error(error);
    g_autoptr(HnSample) s = changed_set(f, "noise:1", 0), again = changed_set(f, "noise:1", 0);
    g_assert_true(hn_tensor_equal(x, before));
    g_assert_false(hn_tensor_equal(s->in[0], x));
    g_assert_true(hn_tensor_equal(s->in[0], again->in[0]));
}

/* --- what may be wrong with a batch --------------------------------------------------------------------------------
 */

static HnSample *whole_batch(const Fixture *f, int n)
{
    g_autoptr(GError) error = NULL;
    int64_t index[8];
    for (int i = 0; i < n; i++)
        index[i] = n - 1 - i;
    HnSample *s = hn_data_load_batch(f->data, index, n, &error);
    g_assert_no_error(error);
    return s;
}

static void check_labels(Fixture *f, const char *label, int n, HnLabels o, HnError code, const char *words)
{
    g_autoptr(GError) error = NULL;
    open_set(f, "%x:f32[N,1]", hn_tensor_new(HN_F32, 2, (int64_t[]){ n, 1 }, NULL, NULL), label ? tensor(label) : NULL);
    g_autoptr(HnSample) s = whole_batch(f, n);
    g_assert_null(hn_batch_labels(f->data, s, &o, NULL, &error));
    check_error(&error, code, words);
}

static void test_labels(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    static const char *const good[] = { "i64[3]={0,2,1}", "i32[3]={0,2,1}", "u8[3]={0,2,1}", "i16[3]={0,2,1}" };
    const HnLabels three = { .classes = 3, .count = 3 };
    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        open_set(f, "%x:f32[N,1]", tensor("f32[3,1]={1,2,3}"), tensor(good[i]));
        g_autoptr(HnSample) s = whole_batch(f, 3);
        g_autoptr(HnTensor) t = hn_batch_labels(f->data, s, &three, NULL, &error);
        g_assert_no_error(error);
        expect(t, "i64[3]={1,2,0}"); /* the batch's order */
    }
    check_labels(f, "i64[3]={0,3,1}", 3, three, HN_ERROR_VALUE,
                 "set.npz sample 1' has label 3, and the model has 3 classes");
    check_labels(f, "i8[3]={-1,0,1}", 3, three, HN_ERROR_VALUE, "set.npz sample 0' has label -1");
    check_labels(f, "f32[3]={0,1,1}", 3, three, HN_ERROR_TYPE, "is f32");
    check_labels(f, "i64[3,2]={0,1,1,0,0,1}", 3, three, HN_ERROR_SHAPE, "have 6 labels, and 3 are needed");
    check_labels(f, NULL, 3, three, HN_ERROR_FORMAT, "has no label");
    const HnLabels pixels = { .classes = 2, .ignores = TRUE, .ignored = 255, .count = 6 };
    check_labels(f, "u8[3,2]={0,255,1,7,1,1}", 3, pixels, HN_ERROR_VALUE, "sample 1' has label 7");
    open_set(f, "%x:f32[N,1]", tensor("f32[3,1]={1,2,3}"), tensor("u8[3,2]={0,255,1,1,0,1}"));
    g_autoptr(HnSample) s = whole_batch(f, 3);
    g_autoptr(HnTensor) t = hn_batch_labels(f->data, s, &pixels, NULL, &error);
    expect(t, "i64[3,2]={0,1,1,1,0,255}");
}

static void test_targets(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    open_set(f, "%x:f32[N,1]", tensor("f32[3,1]={1,2,3}"), tensor("f32[3,2]={0.5,1,1.5,2,2.5,3}"));
    g_autoptr(HnSample) s = whole_batch(f, 3);
    expect(s->label, "f32[3,2]={2.5,3,1.5,2,0.5,1}");
    open_set(f, "%x:f32[N,1]", tensor("f32[3,1]={1,2,3}"), NULL);
    g_autoptr(HnSample) none = whole_batch(f, 2);
    g_assert_null(none->label);
}

static void check_finite(Fixture *f, const char *inputs, const char *x, const char *label, const char *words)
{
    g_autoptr(GError) error = NULL;
    open_set(f, inputs, tensor(x), tensor(label));
    g_autoptr(HnSample) s = whole_batch(f, 2);
    g_assert_cmpint(hn_batch_finite(f->data, s, &error), ==, words == NULL);
    if (words)
        check_error(&error, HN_ERROR_VALUE, words);
}

static void test_finite(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    const char *label = "f32[2]={1,2}", *x = "%x:f32[N,3]";
    check_finite(f, x, "f32[2,3]={1,2,3,4,5,3e38}", label, NULL);
    check_finite(f, x, "f32[2,3]={1,2,3,4,nan,6}", label, "element 1 of input 'x' of '");
    check_finite(f, x, "f32[2,3]={1,2,3,4,nan,6}", label, "set.npz sample 1' is no number");
    check_finite(f, x, "f32[2,3]={1,2,inf,4,5,6}", label, "set.npz sample 0' is infinite");
    check_finite(f, "%x:f64[N,3]", "f64[2,3]={-inf,2,3,4,5,6}", label, "is -infinite");
    check_finite(f, "%x:f16[N,3]", "f16[2,3]={0,2,3,nan,5,6}", label, "element 0 of input 'x'");
    check_finite(f, x, "f32[2,3]={1,2,3,4,5,6}", "f32[2]={nan,2}", "element 0 of the label of '");
    check_finite(f, "%x:i64[N,3]", "i64[2,3]={1,2,3,4,5,6}", "i64[2]={1,2}", NULL);
}

/* --- joining ------------------------------------------------------------------------------------------------------
 */

/* A batch of any samples has what they have one by one. */
static void test_pieces(Fixture *f, G_GNUC_UNUSED gconstpointer data)
{
    static const int64_t lists[][6] = { { 0, 1, 2, 3, 4, 5 }, { 5, 4, 3, 2, 1, 0 }, { 7, 8, 3, 4, 4, 22 } };
    for (int k = 0; k < 3; k++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnSample) s = hn_data_load_batch(f->data, lists[k], 6, &error);
        g_assert_no_error(error);
        for (int64_t i = 0; i < 6; i++) {
            g_autoptr(HnSample) one = hn_data_load(f->data, lists[k][i], &error);
            g_assert_true(!memcmp(one->in[0]->data, (float *)s->in[0]->data + i * 40, 160));
            g_assert_cmpint(hn_tensor_get_i64(s->label, i), ==, lists[k][i]);
            g_assert_cmpint(s->which[i], ==, lists[k][i]);
        }
    }
    open_numbered(f, "%x:f32[2,2,5,4]", HN_F32, 4, (int64_t[]){ 22, 2, 5, 4 }); /* two rows each */
    g_autoptr(HnSample) s = whole_batch(f, 3);
    expect(s->label, "i64[6]={4,5,2,3,0,1}");
    g_assert_cmpfloat(hn_tensor_get_f64(s->in[0], 80), ==, 81);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*test)(Fixture *f, gconstpointer data);
    } tests[] = {
        { "/batches/order", test_order },     { "/batches/rest", test_rest },       { "/batches/some", test_some },
        { "/batches/places", test_places },   { "/batches/threads", test_threads }, { "/augment/shift", test_shift },
        { "/augment/flip", test_flip },       { "/augment/numbers", test_numbers }, { "/augment/text", test_text },
        { "/augment/refused", test_refused }, { "/augment/shared", test_shared },   { "/batches/labels", test_labels },
        { "/batches/targets", test_targets }, { "/batches/finite", test_finite },   { "/batches/pieces", test_pieces },
    };
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].name, Fixture, NULL, set_up, tests[i].test, tear_down);
    return g_test_run();
}
