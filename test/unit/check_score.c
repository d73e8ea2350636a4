/* Who judges outputs: kinds of outputs with errors planted in them, from harmless to fatal, under the goals that hold
 * where the user says nothing. */
#include <math.h>
#include <string.h>

#include "check/outputs.h"
#include "op/infer.h"
#include "score_case.h"

/* %z is %x with errors of that size that have nothing to do with it */
#define NOISE_OF(size) "%f = Mul(%x, q:f32={911})\n%n = Sin(%f)\n%e = Mul(%n, p:f32={" #size "})\n%z = Add(%x, %e)\n"

static double quality(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_range(rng, 2.2, 2.8);
}

static double two_qualities(HnRng *rng, int s, int64_t i)
{
    (void)rng, (void)i;
    return s == 0 ? 2.54 : 2.35;
}

static double probability(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    const double x = hn_rng_double(rng);
    return x < 0.5 ? 0.1 * x : 1 - 0.2 * (1 - x);
}

/* [50,5]: a box in pixels, and a score that is mostly low. */
static double detection(HnRng *rng, int s, int64_t i)
{
    (void)s;
    if (i % 5 < 4)
        return hn_rng_range(rng, 40, 640);
    return i / 5 % 10 == 0 ? hn_rng_range(rng, 0.7, 0.95) : hn_rng_range(rng, 0, 0.1);
}

static double normal(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_normal(rng);
}

static double half_mask(HnRng *rng, int s, int64_t i)
{
    return (i / 16 + i + s) % 16 < 5 ? hn_rng_range(rng, 3, 6) : hn_rng_range(rng, -6, -3);
}

static double logit(HnRng *rng, int s, int64_t i)
{
    return hn_rng_normal(rng) + (i == s * 7 % 10 ? 8 : 0);
}

static double possible(HnRng *rng, int s, int64_t i)
{
    return i < 24 ? logit(rng, s, i) : -INFINITY;
}

static double masked_logit(HnRng *rng, int s, int64_t i)
{
    return i < 24 ? logit(rng, s, i) : -1e9;
}

static double sound(HnRng *rng, int s, int64_t i)
{
    return 0.1 * sin((double)i * (0.05 + 0.01 * s)) * (1 + 0.1 * hn_rng_normal(rng));
}

static double count(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return (double)hn_rng_int(rng, 0, 4 + 5 * i);
}

/* Three measures, of metres, kilometres and per cent. */
static double measures(HnRng *rng, int s, int64_t i)
{
    static const double size[] = { 0.01, 1, 100 };
    (void)s;
    return size[i] * hn_rng_range(rng, 0.5, 1.5);
}

static double spectrum(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return fabs(hn_rng_normal(rng)) / (1 + 0.02 * (double)(i / 5));
}

/* The last of 64 samples is another one: above 10. */
static double odd_one(HnRng *rng, int s, int64_t i)
{
    (void)i;
    return hn_rng_normal(rng) + (s == 63 ? 20 : 0);
}

/* Twelve measures, each around a size of its own. */
static double own_columns(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return 10 * (double)i + hn_rng_normal(rng);
}

/* Always the same class, whose logits are as spread as others'. */
static double one_class(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return hn_rng_normal(rng) + (i == 3 ? 6 : 0);
}

static double masked(HnRng *rng, int s, int64_t i)
{
    return i % 16 >= 12 - s ? -1e9 : hn_rng_normal(rng);
}

static double some_unknown(HnRng *rng, int s, int64_t i)
{
    return i == 3 ? NAN : probability(rng, s, i);
}

/* [32,32]: nine pixels are high, one of them hardly. */
static double small_object(HnRng *rng, int s, int64_t i)
{
    const int64_t x = i % 32 - 5 - s, y = i / 32 - 7;
    return x < 0 || x > 2 || y < 0 || y > 2 ? hn_rng_range(rng, 0, 0.1) : x + y == 0 ? 0.55 : 0.9;
}

/* [32,64] of a picture. */
static double picture(HnRng *rng, int s, int64_t i)
{
    return 120 + 80 * sin((double)(i % 64) * 0.2 + (double)(i / 64) * 0.1 + s) + 10 * hn_rng_double(rng);
}

/* [32,64]: four areas. */
static double areas(HnRng *rng, int s, int64_t i)
{
    (void)rng, (void)s;
    return (double)(i % 64 / 16) + 0.3;
}

static double within_one(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_range(rng, 0.1, 0.9);
}

/* [5,16,16]: one of five classes for each pixel. */
static double one_hot(HnRng *rng, int s, int64_t i)
{
    (void)rng;
    return i / 256 == (i % 16 / 4 + i % 256 / 64 + s) % 5;
}

static double constant(HnRng *rng, int s, int64_t i)
{
    (void)rng, (void)s;
    return 8 + 16 * (double)i;
}

/* [40,40]: four peaks. */
static double peaks(HnRng *rng, int s, int64_t i)
{
    return i % 397 == s ? hn_rng_range(rng, 15, 25) : 0;
}

#define THINGS "t:i64[12]={249523,621429,570665,136758,387926,960437,633256,497081,656115,609067,68711,635017}"

static const Case cases[] = {
    { "one number",
      "f32[1,1]",
      8,
      quality,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.002})", "%y = Add(%x, p:f32={0.003})" },
      { "%y = Mul(%x, p:f32={0.92})", "%y = Add(%x, p:f32={0.2})", "%y = Sub(p:f32={5}, %x)" } },
    { "one number, two samples",
      "f32[1,1]",
      2,
      two_qualities,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.005})" },
      { "%y = Sub(p:f32={4.87}, %x)", "%y = Mul(%x, p:f32={0})" } },
    { "one number, one sample",
      "f32[1,1]",
      1,
      quality,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})" },
      { "%y = Mul(%x, p:f32={1.2})", "%y = Neg(%x)" } },
    { "scores of windows",
      "f32[8]",
      6,
      probability,
      HN_OUTPUT_SCORES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={0.995})" },
      { "%y = Mul(%x, p:f32={0.85})", "%y = Mul(%x, p:f32={0})" } },
    { "boxes beside scores",
      "f32[1,50,5]",
      3,
      detection,
      HN_OUTPUT_MIXED,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32[5]={1,-1,1,-1,0})", "%y = Mul(%x, p:f32[5]={1,1,1,1,0.99})" },
      { "%y = Mul(%x, p:f32[5]={1,1,1,1,0})", "%y = Mul(%x, p:f32[5]={1,1,1,1,0.9})",
        "%y = Add(%x, p:f32[5]={30,0,0,0,0})" } },
    { "embedding",
      "f32[1,64]",
      5,
      normal,
      HN_OUTPUT_EMBEDDING,
      "%y = LpNormalization(%x)",
      { NOISE(0.01) "%y = LpNormalization(%z)" },
      { NOISE(-0.8) "%y = LpNormalization(%z)", "%z = Mul(%x, p:f32={0})\n%y = Add(%z, c:f32={0.125})",
        "%z = LpNormalization(%x)\n%y = Mul(%z, p:f32={0.5})" } },
    { "mask before a threshold",
      "f32[1,1,16,16]",
      2,
      half_mask,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.02})" },
      { "%y = Add(%x, p:f32={-4})", "%y = Abs(%x)" } },
    { "logits",
      "f32[1,10]",
      10,
      logit,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { NOISE(0.1) "%y = Identity(%z)", "%y = Mul(%x, p:f32={1.05})" },
      { "%y = Neg(%x)", "%y = Gather(%x, p:i64[10]={1,2,3,4,5,6,7,8,9,0}) axis=1", "%y = Mul(%x, p:f32={0.5})" } },
    { "few rows of logits",
      "f32[1,40]",
      8,
      normal,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { NOISE_OF(0.005) "%y = Identity(%z)", NOISE_OF(0.02) "%y = Identity(%z)" },
      { NOISE_OF(0.1) "%y = Identity(%z)" } },
    { "logits, and classes that can't be",
      "f32[1,40]",
      10,
      possible,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.05})" },
      { "%y = Neg(%x)", "%y = Mul(%x, p:f32={0.5})" } },
    { "logits behind a mask",
      "f32[1,40]",
      10,
      masked_logit,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { NOISE(0.1) "%y = Identity(%z)" },
      { "%y = Neg(%x)", "%y = Mul(%x, p:f32={0.5})" } },
    { "probabilities beside logits",
      "f32[1,10]",
      10,
      logit,
      HN_OUTPUT_CLASSES,
      "%y = Softmax(%x)\n%w = Identity(%x)",
      { NOISE(0.1) "%y = Softmax(%z)\n%w = Identity(%z)" },
      { "%y = Softmax(%x)\n%w = Neg(%x)", "%z = Neg(%x)\n%y = Softmax(%z)\n%w = Identity(%x)" } },
    { "state beside an output",
      "f32[1,1,8]",
      4,
      normal,
      HN_OUTPUT_STATE,
      "%y = Tanh(%x)\n%w = ReduceSum(%x, a:i64[1]={2}) keepdims=0",
      { NOISE(0.02) "%y = Tanh(%z)\n%w = ReduceSum(%z, a:i64[1]={2}) keepdims=0" },
      { "%w = ReduceSum(%x, a:i64[1]={2}) keepdims=0\n%y = Mul(%x, p:f32={0.01})",
        "%y = Tanh(%x)\n%s = ReduceSum(%x, a:i64[1]={2}) keepdims=0\n%w = Mul(%s, p:f32={0.8})" } },
    { "sound",
      "f32[1,800]",
      3,
      sound,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})" },
      { "%y = Mul(%x, p:f32={0.5})", "%y = Neg(%x)", "%y = Add(%x, p:f32={0.1})" } },
    { "counts",
      "f32[1,6]",
      12,
      count,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32[6]={0.01,0.02,0.02,0.02,-0.02,0.1})" },
      { "%y = Mul(%x, p:f32[6]={1,1,1,0.5,1,1})", "%y = Mul(%x, p:f32[6]={0,1,1,1,1,1})" } },
    { "labels",
      "f32[1,10]",
      10,
      logit,
      HN_OUTPUT_LABELS,
      "%y = ArgMax(%x) axis=1",
      { "%z = Mul(%x, p:f32={1.1})\n%y = ArgMax(%z) axis=1" },
      { "%z = Neg(%x)\n%y = ArgMax(%z) axis=1", "%a = ArgMax(%x) axis=1\n%y = Add(%a, p:i64={1})" } },
    { "three measures",
      "f32[1,3]",
      9,
      measures,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.005})" },
      { "%y = Add(%x, p:f32[3]={0.005,0,0})", "%y = Mul(%x, p:f32[3]={1,0.9,1})" } },
    { "spectrum",
      "f32[1,60,5]",
      2,
      spectrum,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})" },
      { "%y = Mul(%x, p:f32={0.7})", "%y = Mul(%x, p:f32={1.3})" } },
    { "one sample of many",
      "f32[1,2,4]",
      64,
      odd_one,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Clip(%x, lo:f32={-3}, hi:f32={100})" },
      { "%y = Clip(%x, lo:f32={-100}, hi:f32={12})" } },
    { "measures in columns",
      "f32[1,12]",
      16,
      own_columns,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32={0.005})" },
      { "%y = Add(%x, p:f32[12]={0,3,0,0,0,0,0,0,0,0,0,0})", "%y = Add(%x, p:f32[12]={0,0,0,0,0,0,0,0,0,0,0,4})" } },
    { "one class only",
      "f32[1,10]",
      10,
      one_class,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { NOISE(0.1) "%y = Identity(%z)" },
      { "%y = Neg(%x)" } },
    { "numbers behind a mask",
      "f32[1,4,16]",
      2,
      masked,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { NOISE(0.01) "%y = Identity(%z)", "%y = Mul(%x, p:f32={1.001})" },
      { "%y = Add(%x, p:f32={1})", "%y = Clip(%x, lo:f32={-10}, hi:f32={100})" } },
    { "probabilities, some unknown",
      "f32[1,4,2]",
      4,
      some_unknown,
      HN_OUTPUT_SCORES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={0.995})" },
      { "%y = Mul(%x, p:f32={0.97})", "%n = IsNaN(%x)\n%y = Where(%n, p:f32={0}, %x)",
        "%n = Greater(%x, t:f32={0.5})\n%y = Where(%n, p:f32={nan}, %x)" } },
    { "truth values that are rare",
      "f32[1,1,32,32]",
      3,
      small_object,
      HN_OUTPUT_LABELS,
      "%y = Greater(%x, t:f32={0.5})",
      { "%y = Greater(%x, t:f32={0.6})", "%y = Greater(%x, t:f32={0.45})" },
      { "%y = Greater(%x, t:f32={0.95})" } },
    { "picture of bytes",
      "f32[1,1,32,64]",
      2,
      picture,
      HN_OUTPUT_NUMBERS,
      "%y = Cast(%x) to=2",
      { "%z = Add(%x, p:f32={0.6})\n%y = Cast(%z) to=2" },
      { "%z = Sub(p:f32={250}, %x)\n%y = Cast(%z) to=2", "%z = Mul(%x, p:f32={0.7})\n%y = Cast(%z) to=2" } },
    { "areas",
      "f32[1,1,32,64]",
      2,
      areas,
      HN_OUTPUT_LABELS,
      "%y = Cast(%x) to=6",
      { "%z = Add(%x, p:f32={0.1})\n%y = Cast(%z) to=6" },
      { "%z = Add(%x, p:f32={1})\n%y = Cast(%z) to=6" } },
    { "parts of a sequence",
      "f32[1,4]",
      6,
      normal,
      HN_OUTPUT_NUMBERS,
      "%n = Neg(%x)\n%y = SequenceConstruct(%x, %n)",
      { "%n = Neg(%x)\n%m = Mul(%x, p:f32={1.01})\n%y = SequenceConstruct(%m, %n)" },
      { "%n = Neg(%x)\n%y = SequenceConstruct(%n, %x)", "%n = Abs(%x)\n%y = SequenceConstruct(%x, %n)" } },
    { "places of none",
      "f32[1,40]",
      3,
      normal,
      HN_OUTPUT_LABELS,
      "%g = Greater(%x, t:f32={50})\n%y = NonZero(%g)",
      { "%g = Greater(%x, t:f32={40})\n%y = NonZero(%g)" },
      { "%g = Greater(%x, t:f32={-1})\n%y = NonZero(%g)" } },
    { "key points and whether they are seen",
      "f32[1,17,3]",
      4,
      within_one,
      HN_OUTPUT_SCORES,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32={0.003})" },
      { "%y = Add(%x, p:f32[3]={0.06,0,0})", "%y = Mul(%x, p:f32[3]={1,1,0.5})" } },
    { "masks of classes",
      "f32[1,5,16,16]",
      3,
      one_hot,
      HN_OUTPUT_SCORES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={0.99})" },
      { "%y = Gather(%x, p:i64[5]={1,2,3,4,0}) axis=1", "%y = Mul(%x, p:f32[5,1,1]={1,1,0.5,1,1})" } },
    { "classes of pixels",
      "f32[1,5,16,16]",
      2,
      normal,
      HN_OUTPUT_SCORES,
      "%y = Softmax(%x) axis=1",
      { NOISE(0.01) "%y = Softmax(%z) axis=1" },
      { "%z = Neg(%x)\n%y = Softmax(%z) axis=1", "%z = Mul(%x, p:f32[5,1,1]={1,0,1,1,1})\n%y = Softmax(%z) axis=1" } },
    { "the same for all samples",
      "f32[1,20,4]",
      4,
      constant,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.002})" },
      { "%y = Mul(%x, p:f32={1.1})", "%y = Add(%x, p:f32={40})" } },
    { "mostly zeros",
      "f32[1,1,40,40]",
      3,
      peaks,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.02})" },
      { "%y = Mul(%x, p:f32={0.7})", "%y = Clip(%x, lo:f32={0}, hi:f32={15})", "%y = Add(%x, p:f32={0.5})" } },
    { "numbers of things",
      "f32[1,20,12]",
      8,
      normal,
      HN_OUTPUT_LABELS,
      "%i = ArgMax(%x) axis=2 keepdims=0\n%y = Gather(" THINGS ", %i)",
      { "%z = Mul(%x, p:f32={1.1})\n%i = ArgMax(%z) axis=2 keepdims=0\n%y = Gather(" THINGS ", %i)" },
      { "%i = ArgMax(%x) axis=2 keepdims=0\n%y = Gather(t:i64[12]={0,1,2,3,4,5,6,7,8,9,10,11}, %i)" } },
};

/* --- a model for each sample -------------------------------------------------------------------------------------- */

#define SAMPLES 7
#define SAME "opset 13\n%y = Mul(%x:f32[2,8], a:f32={1})\n"

/* Off by more from sample to sample; from *data on there is none. */
static HnModel *made(gpointer data, int64_t i, GError **error)
{
    g_autofree char *text =
        g_strdup_printf("opset 13\n%%y = Mul(%%x:f32[2,8], a:f32={%g})\n", 1 + 0.01 * (double)(i + 1));
    if (i < *(const int *)data)
        return parse(text);
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "no model %d", (int)i);
    return NULL;
}

static void test_each(void)
{
    GError *error = NULL;
    g_autoptr(HnModel) m = parse(SAME);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:7", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 4 };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(SAME), d, 0, SAMPLES, &o, &error);
    g_assert_no_error(error);
    double db[6][SAMPLES];
    HnScore score[6];
    for (int workers = 0; workers < 6; workers++) { /* however many at a time */
        int all = SAMPLES, some = 3;
        const HnScorerEach each = { made, &all, workers, db[workers] }, fails = { made, &some, workers, db[workers] };
        g_assert_false(hn_scorer_run_each(s, &fails, &score[workers], &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_VALUE);
        g_assert_cmpstr(error->message, ==, "no model 3");
        g_clear_error(&error);
        g_assert_true(hn_scorer_run_each(s, &each, &score[workers], &error));
        g_assert_no_error(error);
        g_assert_cmpmem(&score[workers], sizeof *score, &score[0], sizeof *score);
        g_assert_cmpmem(db[workers], sizeof *db, db[0], sizeof *db);
    }
    for (int i = 0; i < SAMPLES; i++)
        g_assert_cmpfloat_with_epsilon(db[0][i], -20 * log10(0.01 * (i + 1)), 0.01);
}

/* What is said of all samples but one is what a scorer says that never saw that one. */
static void test_without(void)
{
    GError *error = NULL;
    const char *other = "opset 13\n%s = Sin(%x:f32[2,8])\n%t = Mul(%s, p:f32={0.1})\n%y = Add(%x, %t)\n";
    g_autoptr(HnModel) m = parse(SAME), wrong = parse(other);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:7", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(SAME), d, 0, SAMPLES, &o, &error);
    HnScore score, all, without[SAMPLES];
    g_assert_true(hn_scorer_run_without(s, wrong, &score, without, &error));
    g_assert_true(hn_scorer_run(s, wrong, &all, &error)); /* which adds to none of them */
    g_assert_cmpmem(&score, sizeof score, &all, sizeof all);
    for (int i = 0; i < SAMPLES; i++) {
        HnData *rest = hn_data_without(d, i);
        g_autoptr(HnScorer) few = hn_scorer_new(parse(SAME), rest, 0, SAMPLES - 1, &o, &error);
        g_assert_true(hn_scorer_run(few, wrong, &all, &error));
        g_assert_cmpfloat(without[i].sqnr, ==, all.sqnr);
        g_assert_cmpfloat(without[i].cos, ==, all.cos);
        g_assert_cmpfloat(without[i].r2, ==, all.r2);
        g_assert_cmpfloat(without[i].sqnr, !=, score.sqnr);
        g_clear_pointer(&few, hn_scorer_free);
        hn_data_free(rest);
    }
}

/* The output that is worst decides, and is named; one that the user does not want judged does neither. */
static void test_output_of(void)
{
    GError *error = NULL;
    static const char right[] = "opset 17\n%y = Sin(%x:f32[3,2])\n%z = Cos(%x)\n",
                      wrong[] = "opset 17\n%y = Sin(%x:f32[3,2])\n%z = Sin(%x)\n";
    g_autoptr(HnModel) m = parse(right), other = parse(wrong);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    for (int left_out = 0; left_out < 2; left_out++) {
        HnMetricChoice choice = { .all = HN_METRIC_CMD };
        HnScore score;
        g_assert_true(left_out == 0 || hn_metric_choice_parse("none@z", &choice, &error));
        const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1, .choice = &choice };
        g_autoptr(HnScorer) s = hn_scorer_new(parse(right), d, 0, 4, &o, &error);
        g_assert_no_error(error);
        g_assert_true(hn_scorer_run(s, other, &score, &error));
        g_assert_cmpint(score.at[HN_METRIC_R2], ==, left_out ? 0 : 1);
        g_assert_true((score.r2 == 1) == left_out);
        hn_metric_choice_clear(&choice);
    }
}

/* Each figure is that of the output that is worst, wherever it stands, and no infinite one. */
static void test_worst_output(void)
{
    GError *error = NULL;
    static const char right[] = "opset 17\n%y = Sin(%x:f32[3,2])\n%z = Cos(%x)\n", *const wrong[] = {
        "opset 17\n%y = Neg(%x:f32[3,2])\n%z = Cos(%x)\n",
        "opset 17\n%y = Sin(%x:f32[3,2])\n%c = Cos(%x)\n%z = Neg(%c)\n",
        "opset 17\n%y = Sin(%x:f32[3,2])\n%z = Div(%x, k:f32={1e-30})\n"
    };
    g_autoptr(HnModel) m = parse(right);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(right), d, 0, 4, &o, &error);
    g_assert_no_error(error);
    for (int i = 0; i < 3; i++) {
        HnScore score;
        g_autoptr(HnModel) other = parse(wrong[i]);
        g_assert_true(hn_scorer_run(s, other, &score, &error));
        g_assert_cmpfloat(score.worst_cos, <, 0.9);
        g_assert_cmpfloat(score.cos, <, 0.9);
        g_assert_cmpfloat(score.sqnr, >=, -300); /* journals have no number for what is beyond */
    }
}

/* Of a model whose results beside those of x are the same in all samples. */
static double sqnr_beside(const char *right, const char *wrong, double *first)
{
    GError *error = NULL;
    HnScore score;
    double db[4];
    g_autofree char *a = g_strconcat("opset 17\n%a = Sin(%x:f32[3,2])\n", right, NULL),
                    *b = g_strconcat("opset 17\n%s = Sin(%x:f32[3,2])\n%a = Mul(%s, e:f32={1.01})\n", wrong, NULL);
    g_autoptr(HnModel) m = parse(a), other = parse(b);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(a), d, 0, 4, &o, &error);
    g_assert_no_error(error);
    g_assert_true(hn_scorer_look(s, other, db, &score, &error));
    *first = db[0];
    return score.sqnr;
}

/* Results that are the same in all samples, in an output of their own or beside others, make SQNR no better, and no
 * worse where they are right. */
static void test_still(void)
{
    static const char own[] = "%y = Identity(%a)\n%o = Sub(%x, %x)\n%z = Add(%o, p:f32={1000})\n",
                      beside[] = "%o = Sub(%x, %x)\n%z = Add(%o, p:f32={1000})\n%y = Concat(%a, %z) axis=0\n",
                      off[] = "%o = Sub(%x, %x)\n%z = Add(%o, p:f32={1000.1})\n%y = Concat(%a, %z) axis=0\n",
                      far[] = "%o = Sub(%x, %x)\n%z = Add(%o, p:f32={1})\n%y = Concat(%a, %z) axis=0\n";
    double first[5];
    const double alone = sqnr_beside("%y = Identity(%a)\n", "%y = Identity(%a)\n", &first[0]);
    g_assert_cmpfloat_with_epsilon(alone, 40, 0.01);
    g_assert_cmpfloat_with_epsilon(sqnr_beside(own, own, &first[1]), alone, 1e-9);
    g_assert_cmpfloat_with_epsilon(sqnr_beside(beside, beside, &first[2]), alone, 1e-9);
    g_assert_cmpfloat_with_epsilon(sqnr_beside(beside, off, &first[3]), alone, 1e-9);
    for (int i = 1; i < 4; i++)
        g_assert_cmpfloat_with_epsilon(first[i], first[0], 1e-6);
    g_assert_cmpfloat(sqnr_beside(beside, far, &first[4]), <, 1);
}

/* Another model beside `right` under what the user asks for: its r2; -inf: it is refused. */
static double r2_under(const char *right, const char *wrong, const char *metric)
{
    GError *error = NULL;
    HnMetricChoice choice = { .all = HN_METRIC_CMD };
    HnScore score;
    g_autoptr(HnModel) m = parse(right), other = parse(wrong);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_true(hn_metric_choice_parse(metric, &choice, &error));
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1, .choice = &choice };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(right), d, 0, 4, &o, &error);
    hn_metric_choice_clear(&choice);
    if (s == NULL) {
        g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_error_free(error);
        return -INFINITY;
    }
    g_assert_true(hn_scorer_run(s, other, &score, &error));
    return score.r2;
}

/* Whole numbers are judged as quantities where somebody asks for that; what says nothing of an output is no metric. */
static void test_asked(void)
{
    static const char whole[] = "opset 17\n%a = Mul(%x:f32[3,4], p:f32={100})\n%y = Cast(%a) to=7\n",
                      near[] = "opset 17\n%a = Mul(%x:f32[3,4], p:f32={100.1})\n%y = Cast(%a) to=7\n",
                      far[] = "opset 17\n%a = Mul(%x:f32[3,4], p:f32={50})\n%y = Cast(%a) to=7\n",
                      numbers[] = "opset 17\n%y = Mul(%x:f32[3,4], p:f32={100})\n",
                      text[] = "opset 17\n%a = Mul(%x:f32[3,4], p:f32={100})\n%y = Cast(%a) to=8\n";
    g_assert_cmpfloat(r2_under(whole, near, "r2@y"), >, 0.999);
    g_assert_cmpfloat(r2_under(whole, near, "r2"), >, 0.999);
    g_assert_cmpfloat(r2_under(whole, far, "r2@y"), <, 0.9);
    g_assert_true(isinf(r2_under(numbers, numbers, "scores@y")));
    g_assert_true(isinf(r2_under(numbers, numbers, "scores")));
    g_assert_true(isinf(r2_under(text, text, "r2@y")));
}

/* Outputs that have no element in any sample are named. */
static void test_empty(void)
{
    static const char some[] = "opset 17\n%g = Greater(%x:f32[3,4], t:f32={50})\n%y = NonZero(%g)\n%z = Abs(%x)\n";
    GError *error = NULL;
    g_autoptr(HnModel) m = parse(some);
    HnValue *input = m->graph->inputs->pdata[0];
    g_autoptr(HnData) d = hn_data_open("random:4", &input, 1, &(HnDataOptions){ .seed = 3 }, &error);
    const HnScorerOptions o = { .backend = &hn_backend_ref, .threads = 1 };
    g_autoptr(HnScorer) s = hn_scorer_new(parse(some), d, 0, 4, &o, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) names = hn_scorer_empty(s);
    g_assert_cmpuint(names->len, ==, 1);
    g_assert_cmpstr(names->pdata[0], ==, "y");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/check/score/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_kind);
    }
    g_test_add_func("/check/score/each", test_each);
    g_test_add_func("/check/score/without", test_without);
    g_test_add_func("/check/score/output-of", test_output_of);
    g_test_add_func("/check/score/asked", test_asked);
    g_test_add_func("/check/score/still", test_still);
    g_test_add_func("/check/score/worst-output", test_worst_output);
    g_test_add_func("/check/score/empty", test_empty);
    return g_test_run();
}
