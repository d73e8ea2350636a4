/* data: pictures, sound, numbers as text, and what says how they become inputs; test/cli/media.py holds pictures
 * against Pillow. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/given.h"
#include "data/media_files.h"
#include "data/numbers.h"
#include "data/sound.h"
#include "ir/ir_text.h"

static HnModel *declare(const char *inputs)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("opset 17\ngraph main(%s) -> () {\n}\n", inputs);
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    return m;
}

static const HnValue *input(const HnModel *m, guint i)
{
    return m->graph->inputs->pdata[i];
}

static void assert_is(HnTensor *t, const char *want)
{
    g_autoptr(GError) error = NULL;
    g_assert_nonnull(t);
    g_autoptr(HnTensor) w = hn_tensor_parse(&want, NULL, &error);
    g_assert_no_error(error);
    g_autofree char *got = hn_tensor_describe(t), *wanted = hn_tensor_describe(w);
    g_assert_cmpstr(got, ==, wanted);
    for (int64_t i = 0; i < t->n; i++)
        g_assert_cmpfloat_with_epsilon(hn_tensor_get_f64(t, i), hn_tensor_get_f64(w, i), 1e-6);
    hn_tensor_unref(t);
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static void set_all(HnPreprocess *p, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_preprocess_read_text(p, text, strlen(text), "f.conf", &error));
    g_assert_no_error(error);
}

static void test_keys(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "bilinear" },
        { "[preprocess]\n", "bilinear" },
        { "[preprocess]\nresize=256\n", "resize=256 bilinear" },
        { "[preprocess]\nresize=20x30:nearest\ncrop=9\n", "resize=20x30 nearest crop=9x9" },
        { "[preprocess]\nmean=1, 2.5 ,3\npreset=imagenet\n",
          "bilinear crop-part=0.875 mean=1,2.5,3 scale=58.395,57.12,57.375" },
        { "[preprocess]\npreset=-1-1\nchannels=bgr\nlayout=NHWC\n",
          "bilinear channels=3 bgr mean=127.5 scale=127.5 channels-last" },
        { "[input x]\nscale=3\n[preprocess]\nscale=2\nmean=4\n", "bilinear mean=4 scale=3" },
        { "[input y]\nscale=3\n[preprocess]\nscale=2\n", "bilinear scale=2" },
        { "[preprocess]\nscale=2\nu8=true\n", "bilinear" },
        { "[preprocess]\nexif=true\nrate=16000\n", "exif bilinear rate=16000" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HnPreprocess) p = hn_preprocess_new();
        set_all(p, cases[i].text);
        const HnInputKeys k = hn_preprocess_keys(p, "x");
        g_autofree char *words = hn_input_keys_describe(&k);
        g_assert_cmpstr(words, ==, cases[i].want);
    }
}

static void test_keys_refused(void)
{
    static const char *const texts[] = {
        "scale=1",
        "[a]\nscale=1\n",
        "[preprocess]\nscales=1\n",
        "[preprocess]\nscale=\n",
        "[preprocess]\nscale=0\n",
        "[input]\n",
        "[preprocess]\nu8=1\n",
        "[preprocess]\ncrop=200%\n",
        "[preprocess]\nresize=\n",
        "[preprocess]\nresize=:\n",
        "[preprocess]\nmean=1,2,3,4,5\n",
        "[preprocess]\nmean=nan\n",
        "[preprocess]\nrate=0\n",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnPreprocess) p = hn_preprocess_new();
        g_assert_false(hn_preprocess_read_text(p, texts[i], strlen(texts[i]), "f.conf", &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
        g_assert_nonnull(strstr(error->message, "'f.conf'"));
    }
}

/* --- what inputs take --------------------------------------------------------------------------------------------- */

static void test_targets(void)
{
    static const struct {
        const char *type;
        HnMediaKind kind;
        const char *key, *value;
        gboolean batched, channel_axis, last;
        int channels, width;
    } cases[] = {
        { "f32[N,3,20,10]", HN_MEDIA_IMAGE, NULL, NULL, TRUE, TRUE, FALSE, 3, 10 },
        { "f32[N,20,10,3]", HN_MEDIA_IMAGE, NULL, NULL, TRUE, TRUE, TRUE, 3, 10 },
        { "u8[N,1,8,4]", HN_MEDIA_IMAGE, NULL, NULL, TRUE, TRUE, FALSE, 1, 4 },
        { "u8[N,1,8,1]", HN_MEDIA_IMAGE, "layout", "nhwc", TRUE, TRUE, TRUE, 1, 8 },
        { "f32[N,C,H,W]", HN_MEDIA_IMAGE, NULL, NULL, TRUE, TRUE, FALSE, 3, 0 },
        { "f32[N,C,H,W]", HN_MEDIA_IMAGE, "channels", "grey", TRUE, TRUE, FALSE, 1, 0 },
        { "f32[4,H,W]", HN_MEDIA_IMAGE, NULL, NULL, FALSE, TRUE, FALSE, 4, 0 },
        { "f32[8,9,3]", HN_MEDIA_IMAGE, NULL, NULL, FALSE, TRUE, TRUE, 3, 9 },
        { "f32[N,8,9]", HN_MEDIA_IMAGE, NULL, NULL, TRUE, FALSE, FALSE, 1, 9 },
        { "f32[8,9]", HN_MEDIA_IMAGE, NULL, NULL, FALSE, FALSE, FALSE, 1, 9 },
        { "f32[N,512]", HN_MEDIA_SOUND, NULL, NULL, TRUE, FALSE, FALSE, 1, 512 },
        { "f32[T]", HN_MEDIA_SOUND, NULL, NULL, FALSE, FALSE, FALSE, 1, 0 },
        { "f32[N,2,T]", HN_MEDIA_SOUND, NULL, NULL, TRUE, TRUE, FALSE, 2, 0 },
        { "f32[N,T,2]", HN_MEDIA_SOUND, NULL, NULL, TRUE, TRUE, TRUE, 2, 0 },
        { "i16[2,T]", HN_MEDIA_SOUND, "layout", "ct", FALSE, TRUE, FALSE, 2, 0 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat("%x:", cases[i].type, NULL);
        g_autoptr(HnModel) m = declare(text);
        g_autoptr(HnPreprocess) p = hn_preprocess_new();
        HnMediaTarget t;
        if (cases[i].key != NULL)
            g_assert_true(hn_preprocess_set(p, NULL, cases[i].key, cases[i].value, &error));
        g_assert_true(hn_media_target(&t, input(m, 0), cases[i].kind, p, &error));
        g_assert_cmpint(t.batched, ==, cases[i].batched);
        g_assert_cmpint(t.channel_axis, ==, cases[i].channel_axis);
        g_assert_cmpint(t.channels_last, ==, cases[i].last);
        g_assert_cmpint(t.channels, ==, cases[i].channels);
        g_assert_cmpint(t.width, ==, cases[i].width);
    }
}

static void test_targets_refused(void)
{
    static const struct {
        const char *type;
        HnMediaKind kind;
        const char *key, *value;
        HnError code;
    } cases[] = {
        { "f32[N]", HN_MEDIA_IMAGE, NULL, NULL, HN_ERROR_SHAPE },
        { "f32[N,16,8,8]", HN_MEDIA_IMAGE, NULL, NULL, HN_ERROR_SHAPE },
        { "f32[1,2,3,4,5]", HN_MEDIA_IMAGE, NULL, NULL, HN_ERROR_SHAPE },
        { "bool[N,3,8,8]", HN_MEDIA_IMAGE, NULL, NULL, HN_ERROR_TYPE },
        { "str[N,3,8,8]", HN_MEDIA_IMAGE, NULL, NULL, HN_ERROR_TYPE },
        { "f32[N,3,8,8]", HN_MEDIA_IMAGE, "channels", "1", HN_ERROR_USAGE },
        { "f32[N,3,8,8]", HN_MEDIA_IMAGE, "mean", "1,2", HN_ERROR_USAGE },
        { "f32[N,3,8,8]", HN_MEDIA_IMAGE, "rate", "16000", HN_ERROR_USAGE },
        { "f32[N,C,8,8]", HN_MEDIA_IMAGE, "channels", "2", HN_ERROR_USAGE },
        { "f32[N,T]", HN_MEDIA_SOUND, "resize", "8x8", HN_ERROR_USAGE },
        { "f32[N,T]", HN_MEDIA_SOUND, "crop", "8", HN_ERROR_USAGE },
        { "f32[N,T]", HN_MEDIA_SOUND, "exif", "true", HN_ERROR_USAGE },
        { "f32[N,C,T,F]", HN_MEDIA_SOUND, NULL, NULL, HN_ERROR_SHAPE },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat("%x:", cases[i].type, NULL);
        g_autoptr(HnModel) m = declare(text);
        g_autoptr(HnPreprocess) p = hn_preprocess_new();
        HnMediaTarget t;
        if (cases[i].key != NULL)
            g_assert_true(hn_preprocess_set(p, NULL, cases[i].key, cases[i].value, &error));
        g_assert_false(hn_media_target(&t, input(m, 0), cases[i].kind, p, &error));
        g_assert_error(error, HN_ERROR, (int)cases[i].code);
    }
}

/* --- pictures ----------------------------------------------------------------------------------------------------- */

static HnTensor *picture(const char *type, const char *ppm, const char *keys, HnBudget *budget, GError **error)
{
    g_autofree char *text = g_strconcat("%x:", type, NULL);
    g_autoptr(HnModel) m = declare(text);
    g_autoptr(HnPreprocess) p = hn_preprocess_new();
    g_autoptr(GBytes) bytes = g_bytes_new(ppm, strlen(ppm));
    HnMediaTarget t;
    set_all(p, keys);
    if (!hn_media_target(&t, input(m, 0), HN_MEDIA_IMAGE, p, error))
        return NULL;
    g_autoptr(HnTensor) row = hn_media_row(&t, bytes, "f.ppm", budget, error);
    return row != NULL ? hn_media_join(&t, (HnTensor *[]){ row }, budget, error) : NULL;
}

#define RAMP "P3 2 1 255 10 20 30 40 50 60"

static void test_pictures(void)
{
    static const struct {
        const char *type, *ppm, *keys, *want;
    } cases[] = {
        { "f32[N,3,H,W]", RAMP, "", "f32[1,3,1,2]={10,40,20,50,30,60}" },
        { "f32[N,H,W,3]", RAMP, "", "f32[1,1,2,3]={10,20,30,40,50,60}" },
        { "u8[3,H,W]", RAMP, "[preprocess]\nchannels=bgr\n", "u8[3,1,2]={30,60,20,50,10,40}" },
        { "f32[N,1,H,W]", RAMP, "", "f32[1,1,1,2]={18,48}" },
        { "f32[N,4,H,W]", RAMP, "", "f32[1,4,1,2]={10,40,20,50,30,60,255,255}" },
        { "f16[N,3,H,W]", RAMP, "[preprocess]\nmean=10,20,30\nscale=30,15,10\n", "f16[1,3,1,2]={0,1,0,2,0,3}" },
        { "u8[1,1,H,W]", "P2 3 1 3 0 1 3", "", "u8[1,1,1,3]={0,85,255}" },
        { "i8[1,1,H,W]", "P2 3 1 255 0 1 255", "[preprocess]\nmean=128\nscale=0.5\n", "i8[1,1,1,3]={-128,-128,127}" },
        { "f32[1,1,2,4]", "P2 2 1 255 0 100", "[preprocess]\nresize=4x2:nearest\n",
          "f32[1,1,2,4]={0,0,100,100,0,0,100,100}" },
        { "f32[1,1,1,4]", "P2 2 1 255 0 100", "", "f32[1,1,1,4]={0,25,75,100}" },
        { "f32[1,1,1,1]", "P2 3 1 255 7 100 9", "[preprocess]\ncrop=1\n", "f32[1,1,1,1]={100}" },
        { "f32[H,W]", "P2 # a word\n2 1 255 7 9", "", "f32[1,2]={7,9}" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        HnTensor *t = picture(cases[i].type, cases[i].ppm, cases[i].keys, NULL, &error);
        g_assert_no_error(error);
        assert_is(t, cases[i].want);
    }
}

/* Each allocation fails once: nothing is lost, and the error says so. */
static void test_no_memory(void)
{
    for (guint64 k = 1;; k++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        hn_budget_fail_at(budget, k);
        HnTensor *t = picture("f32[1,1,5,6]", "P3 3 2 255 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9",
                              "[preprocess]\nresize=8x8\ncrop=6x5\n", budget, &error);
        if (t != NULL) {
            hn_tensor_unref(t);
            g_assert_cmpuint(k, >, 6);
            return;
        }
        g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
        g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    }
}

/* What bytes there are of a file of each kind; every shorter one is refused, and none reads beyond its end. */
static void test_cut(void)
{
    const HnImage whole = { 2, 3, 3, (guint8[18]){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 },
                            NULL };
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = hn_image_png(&whole, &error);
    if (bytes == NULL) {
        g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
        g_test_skip(error->message);
        return;
    }
    gsize size;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    for (gsize n = 8; n <= size; n++) {
        g_autoptr(GError) cause = NULL;
        g_autofree guint8 *copy = g_memdup2(data, n);
        g_autoptr(HnImage) m = hn_image_read(copy, n, "f.png", FALSE, NULL, &cause);
        if (m != NULL) /* the last chunk is not waited for */
            g_assert_cmpmem(m->data, 18, whole.data, 18);
        else
            g_assert_error(cause, HN_ERROR, HN_ERROR_FORMAT);
        g_assert_true(n < size || m != NULL);
    }
}

/* --- sound -------------------------------------------------------------------------------------------------------- */

/* A mono WAV of 16 bits, or of floats. */
static GBytes *wav(const float *x, guint n, guint rate, gboolean floats)
{
    const guint each = floats ? 4 : 2;
    const guint32 head[] = { 36 + n * each,         16,      floats ? 0x10003 : 0x10001, rate, rate * each,
                             each * 8 << 16 | each, n * each };
    GByteArray *b = g_byte_array_new();
    g_byte_array_append(b, (const guint8 *)"RIFF", 4);
    g_byte_array_append(b, (const guint8 *)&head[0], 4);
    g_byte_array_append(b, (const guint8 *)"WAVEfmt ", 8);
    g_byte_array_append(b, (const guint8 *)&head[1], 20);
    g_byte_array_append(b, (const guint8 *)"data", 4);
    g_byte_array_append(b, (const guint8 *)&head[6], 4);
    for (guint i = 0; i < n; i++) {
        const gint16 whole = floats ? 0 : (gint16)lrintf(x[i] * 32768);
        g_byte_array_append(b, floats ? (const guint8 *)&x[i] : (const guint8 *)&whole, each);
    }
    return g_byte_array_free_to_bytes(b);
}

static HnTensor *sound(const char *type, GBytes *bytes, const char *keys, GError **error)
{
    g_autofree char *text = g_strconcat("%x:", type, NULL);
    g_autoptr(HnModel) m = declare(text);
    g_autoptr(HnPreprocess) p = hn_preprocess_new();
    HnMediaTarget t;
    set_all(p, keys);
    if (!hn_media_target(&t, input(m, 0), HN_MEDIA_SOUND, p, error))
        return NULL;
    g_autoptr(HnTensor) row = hn_media_row(&t, bytes, "f.wav", NULL, error);
    return row != NULL ? hn_media_join(&t, (HnTensor *[]){ row }, NULL, error) : NULL;
}

static void test_sound(void)
{
    static const float x[] = { 0, 0.5f, -1, 0.25f };
    static const struct {
        const char *type, *keys, *want;
    } cases[] = {
        { "f32[N,T]", "", "f32[1,4]={0,0.5,-1,0.25}" },
        { "f32[6]", "", "f32[6]={0,0.5,-1,0.25,0,0}" },
        { "f32[N,3]", "[preprocess]\nscale=2\n", "f32[1,3]={0,0.25,-0.5}" },
        { "i16[N,T]", "", "i16[1,4]={0,16384,-32768,8192}" },
        { "f32[N,2,T]", "", "f32[1,2,4]={0,0.5,-1,0.25,0,0.5,-1,0.25}" },
        { "f32[N,2,2]", "[preprocess]\nlayout=ntc\n", "f32[1,2,2]={0,0,0.5,0.5}" },
    };
    g_autoptr(GBytes) bytes = wav(x, 4, 16000, FALSE), floats = wav(x, 4, 16000, TRUE);
    for (gsize i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        HnTensor *t = sound(cases[i / 2].type, i % 2 ? bytes : floats, cases[i / 2].keys, &error);
        if (g_error_matches(error, HN_ERROR, HN_ERROR_UNSUPPORTED)) {
            g_test_skip(error->message);
            return;
        }
        g_assert_no_error(error);
        assert_is(t, cases[i / 2].want);
    }
}

static void test_sound_refused(void)
{
    const float x[] = { 0, NAN, 1 };
    g_autoptr(GBytes) nan = wav(x, 3, 16000, TRUE), cut = g_bytes_new_from_bytes(nan, 0, 30);
    GBytes *all[] = { nan, cut };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(sound("f32[N,T]", all[i], "", &error));
        if (g_error_matches(error, HN_ERROR, HN_ERROR_UNSUPPORTED)) {
            g_test_skip(error->message);
            return;
        }
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    }
}

/* A sine keeps its frequency and size at another rate; its length follows from the rates. */
static void test_resampling(void)
{
    static const int rates[][2] = { { 16000, 8000 }, { 8000, 16000 }, { 44100, 16000 }, { 16000, 22050 } };
    for (gsize k = 0; k < G_N_ELEMENTS(rates); k++) {
        g_autoptr(GError) error = NULL;
        const int from = rates[k][0], to = rates[k][1], n = 2000;
        HnSound *s = g_new(HnSound, 1);
        *s = (HnSound){ n, 1, from, hn_budget_alloc_n(NULL, n, sizeof(float), &error), NULL };
        for (int i = 0; i < n; i++)
            s->data[i] = (float)sin(2 * G_PI * 440 * i / from);
        g_autoptr(HnSound) t = hn_sound_to_rate(s, to, &error);
        g_assert_no_error(error);
        g_assert_cmpint(t->frames, ==, ((int64_t)n * to + from - 1) / from);
        for (int64_t i = t->frames / 4; i < t->frames * 3 / 4; i++)
            g_assert_cmpfloat_with_epsilon(t->data[i], sin(2 * G_PI * 440 * (double)i / to), 0.01);
    }
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void test_numbers(void)
{
    static const struct {
        const char *type, *text, *want;
    } cases[] = {
        { "f32[N,3]", "1,2,3\n4 5;6\n", "f32[2,3]={1,2,3,4,5,6}" },
        { "f32[N]", "1\n2\n3", "f32[3]={1,2,3}" },
        { "f32[N,2,2]", "# c\na,b,c,d\n1,2,3,4\r\n5,6,7,8\r\n", "f32[2,2,2]={1,2,3,4,5,6,7,8}" },
        { "f32[1,2,2]", "1 2\n3 4\n", "f32[1,2,2]={1,2,3,4}" },
        { "i64[N]", "-9223372036854775808\n7\n", "i64[2]={-9223372036854775808,7}" },
        { "f32[N,2]", "1e3 -.5\n", "f32[1,2]={1000,-0.5}" },
        { "i64", "[16000]", "i64={16000}" },
        { "i64", "16000", "i64={16000}" },
        { "f32[2,N]", "0.5", "f32[2,1]={0.5,0.5}" },
        { "f32[2,2]", "[1,2,3,4]", "f32[2,2]={1,2,3,4}" },
        { "f32[N,M]", "[[1,2],[3, 4],[5,6]]", "f32[3,2]={1,2,3,4,5,6}" },
        { "u8[N]", "[1,255]", "u8[2]={1,255}" },
        { "bool[2]", "[0,1]", "bool[2]={0,1}" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat("%x:", cases[i].type, NULL);
        const char *said = cases[i].text;
        g_autoptr(HnModel) m = declare(text);
        HnTensor *t = said[0] == '[' || strchr(said, '\n') == NULL
                          ? hn_numbers_list(said, input(m, 0), NULL, &error)
                          : hn_numbers_text(said, strlen(said), input(m, 0), "f.csv", NULL, &error);
        g_assert_no_error(error);
        assert_is(t, cases[i].want);
    }
}

static void test_numbers_refused(void)
{
    static const struct {
        const char *type, *text;
    } cases[] = {
        { "f32[N]", "1,2\n3\n" }, { "f32[N]", "1\nx\n" },  { "u8[N]", "1\n256\n" }, { "i8[N]", "1\n-129\n" },
        { "i64[N]", "1\n1.5\n" }, { "f32[N]", "\n" },      { "f32[N]", "[1,2" },    { "f32[N]", "[[1,2],[3]]" },
        { "f32[N]", "[]" },       { "f32[N]", "[1,[2]]" }, { "f32[N]", "[1]]" },    { "f32[N]", "[1][2]" },
        { "i64", "1.5" },         { "bool[1]", "[2]" },    { "str[1]", "[2]" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat("%x:", cases[i].type, NULL);
        const char *said = cases[i].text;
        g_autoptr(HnModel) m = declare(text);
        HnTensor *t = strchr(said, '\n') == NULL
                          ? hn_numbers_list(said, input(m, 0), NULL, &error)
                          : hn_numbers_text(said, strlen(said), input(m, 0), "f.csv", NULL, &error);
        g_assert_null(t);
        g_assert_nonnull(error);
    }
}

static void test_raw(void)
{
    g_autoptr(HnModel) m = declare("%x:i16[N,2], %y:f32[A,B], %z:u8[2,3]");
    static const guint8 data[] = { 1, 0, 2, 0, 255, 255, 0, 1 };
    g_autoptr(GBytes) bytes = g_bytes_new(data, 8), odd = g_bytes_new(data, 6);
    g_autoptr(GError) error = NULL;
    assert_is(hn_numbers_raw(bytes, input(m, 0), "f", NULL, &error), "i16[2,2]={1,2,-1,256}");
    assert_is(hn_numbers_raw(odd, input(m, 2), "f", NULL, &error), "u8[2,3]={1,0,2,0,255,255}");
    g_assert_null(hn_numbers_raw(odd, input(m, 0), "f", NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_clear_error(&error);
    g_assert_null(hn_numbers_raw(bytes, input(m, 1), "f", NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
}

static void test_fills(void)
{
    g_autoptr(HnModel) m = declare("%x:f32[N,2], %y:i64");
    g_autoptr(HnShapes) shapes = hn_shapes_new();
    g_autoptr(GError) error = NULL;
    hn_shapes_set_dim(shapes, "N", 2);
    const HnGivenOptions o = { .seed = 4, .shapes = shapes };
    HnGiven how;
    assert_is(hn_given_read(input(m, 0), "zeros", &o, &how, &error), "f32[2,2]={0,0,0,0}");
    g_assert_true(how.made);
    assert_is(hn_given_read(input(m, 0), "ones", &o, &how, &error), "f32[2,2]={1,1,1,1}");
    assert_is(hn_given_read(input(m, 1), "16000", &o, &how, &error), "i64={16000}");
    g_assert_false(how.made);
    g_autoptr(HnTensor) a = hn_given_read(input(m, 0), "random:4", &o, &how, &error);
    g_autoptr(HnTensor) b = hn_given_read(input(m, 0), "random", &o, &how, &error);
    g_autoptr(HnTensor) c = hn_given_read(input(m, 0), "random:5", &o, &how, &error);
    g_assert_no_error(error);
    g_assert_true(hn_tensor_equal(a, b) && !hn_tensor_equal(a, c));
    g_assert_null(hn_given_read(input(m, 0), "random:x", &o, &how, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_clear_error(&error);
    g_assert_null(hn_given_read(input(m, 0), "no-such-file", &o, &how, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/data/media/keys", test_keys);
    g_test_add_func("/data/media/keys-refused", test_keys_refused);
    g_test_add_func("/data/media/targets", test_targets);
    g_test_add_func("/data/media/targets-refused", test_targets_refused);
    g_test_add_func("/data/media/pictures", test_pictures);
    g_test_add_func("/data/media/no-memory", test_no_memory);
    g_test_add_func("/data/media/cut", test_cut);
    g_test_add_func("/data/media/sound", test_sound);
    g_test_add_func("/data/media/sound-refused", test_sound_refused);
    g_test_add_func("/data/media/resampling", test_resampling);
    g_test_add_func("/data/media/numbers", test_numbers);
    g_test_add_func("/data/media/numbers-refused", test_numbers_refused);
    g_test_add_func("/data/media/raw", test_raw);
    g_test_add_func("/data/media/fills", test_fills);
    return g_test_run();
}
