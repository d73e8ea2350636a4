/* Who judges outputs, continued: what is seldom, and looks like something else. */
#include "score_case.h"

#define PI "3.1415927"
#define TURN "6.2831853"
/* %y = %a, turned back into [-pi, pi) */
#define WRAP "%b = Add(%a, p0:f32={" PI "})\n%c = Mod(%b, p1:f32={" TURN "}) fmod=1\n%y = Sub(%c, p2:f32={" PI "})"

/* The first 18 rows of %x, %r, and the last two. */
#define TWO "%r, %s = Split(%x, p:i64[2]={18,2}) axis=1\n"

static double phase(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_range(rng, -3.1415, 3.1415);
}

static double direction(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_range(rng, 0, 6.283);
}

/* [5,3]: a place in pixels, and whether it is seen. */
static double pose(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return i % 3 < 2 ? hn_rng_range(rng, 40, 640) : hn_rng_range(rng, 0.2, 0.95);
}

/* [20,6]: a box in pixels, a score, and which class. */
static double classed_box(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return i % 6 < 4    ? hn_rng_range(rng, 40, 640)
           : i % 6 == 4 ? hn_rng_range(rng, 0.2, 0.95)
                        : (double)hn_rng_int(rng, 0, 80);
}

/* [17,3]: a cell of a map, and a score. */
static double cell(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return i % 3 < 2 ? (double)hn_rng_int(rng, 0, 64) : hn_rng_range(rng, 0.2, 0.95);
}

/* 68 places of a face, which hardly move. */
static double landmark(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return 50 + 35 * sin(0.7 * (double)i * (i % 2 ? 1.3 : 1)) + 2 * hn_rng_normal(rng);
}

/* Far from 0 in each column, and near that in each sample. */
static double cone(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return 8 * sin(1.7 * (double)i) + 0.2 * hn_rng_normal(rng);
}

static double one_of_ten(HnRng *rng, int s, int64_t i)
{
    (void)rng;
    return i == s * 7 % 10;
}

/* [32,32]: dark but for some pixels, which are as bright as can be. */
static double cut_out(HnRng *rng, int s, int64_t i)
{
    return (i / 32 + i + s) % 32 < 9 ? 255 : hn_rng_range(rng, 0, 1);
}

static double tiny(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return 1e-8 * hn_rng_normal(rng);
}

static double huge(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return 1e12 * hn_rng_normal(rng);
}

static double nothing(HnRng *rng, int s, int64_t i)
{
    (void)rng, (void)s, (void)i;
    return NAN;
}

/* Nothing but zeros beside a number. */
static double idle(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return i == 0 ? 0 : hn_rng_range(rng, 1, 3);
}

static double spectrum(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return hn_rng_normal(rng) / (1 + 0.1 * (double)(i / 2 % 33));
}

static double log_probability(HnRng *rng, int s, int64_t i)
{
    return i % 5 == 4 ? -INFINITY : hn_rng_normal(rng) * 3 - (i % 5 == s % 4 ? 0 : 8);
}

static double duration(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_range(rng, 0.5, 12);
}

/* What varies is 160 roundings of what stays. */
static double pressure(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return 1000 + 0.01 * hn_rng_normal(rng);
}

/* Of a room in kelvin: what varies is far below what stays. */
static double temperature(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return 300 + hn_rng_normal(rng);
}

/* Logits of two classes, which rise and fall together far more than they differ. */
static double pair(HnRng *rng, int s, int64_t i)
{
    return 12 * sin(2.4 * s) + 0.4 * hn_rng_normal(rng) + (i == s % 2 ? 0.3 : -0.3);
}

/* One of 64 features is a thousand times as large as the others. */
static double outlier(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return (i == 7 ? 1000 : 1) * hn_rng_normal(rng);
}

/* Small numbers, and -1 where there is nothing. */
static double padded(HnRng *rng, int s, int64_t i)
{
    return (i + 3 * s) % 5 < 2 ? -1 : hn_rng_range(rng, 0.002, 0.02);
}

/* Depths up to 8, and 999 where nothing was hit. */
static double depth(HnRng *rng, int s, int64_t i)
{
    return (i / 16 + i + s) % 16 < 5 ? 999 : hn_rng_range(rng, 1, 8);
}

/* A sharpened wave: it stays at its ends for long. */
static double clipped(HnRng *rng, int s, int64_t i)
{
    return fmax(fmin(2 * sin(0.1 * (double)i + s) + 0.05 * hn_rng_normal(rng), 1), -1);
}

static double any(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_normal(rng);
}

static double pixels(HnRng *rng, int s, int64_t i)
{
    (void)s, (void)i;
    return hn_rng_range(rng, 40, 640);
}

/* [20,6]: a table that is the same in all samples, but for the last two rows. */
static double table(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return i / 6 < 18 ? 3 + (double)(i * 7 % 31) : 20 + hn_rng_normal(rng);
}

/* Of some things there are many, of others few. */
static double how_many(HnRng *rng, int s, int64_t i)
{
    (void)s;
    return hn_rng_range(rng, 0.5, i < 2 ? 400 : 9);
}

/* Scores that come out of an Exp: those of a sample are a thousand times as large, and its best two close together. */
static double exponential(HnRng *rng, int s, int64_t i)
{
    if (s == 3)
        return i == 2 ? 8000 : i == 5 ? 6500 : hn_rng_range(rng, 1, 900);
    return i == s * 3 % 8 ? hn_rng_range(rng, 3, 40) : hn_rng_range(rng, 0.01, 2);
}

static const Case cases[] = {
    { "classes of very different size",
      "f32[1,8]",
      8,
      exponential,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32[8]={1.02,0.99,0.98,0.98,1.01,1.02,0.98,1})", "%y = Mul(%x, p:f32={1.02})" },
      { "%y = Add(%x, p:f32[8]={30,0,0,12,0,0,25,0})", "%y = Mul(%x, p:f32[8]={1.6,0.7,1,0.5,1.3,0.6,1,0.7})",
        "%y = Mul(%x, p:f32={0.3})" } },
    { "how many of each",
      "f32[1,4]",
      24,
      how_many,
      HN_OUTPUT_NUMBERS,
      "%m = MatMul(%x, w:f32[4,4]={1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1})\n%y = Cast(%m) to=7",
      { "%z = Add(%x, p:f32[4]={2,-2,0,0})\n%y = Cast(%z) to=7",
        "%z = Mul(%x, p:f32[4]={1.004,1.004,1,1})\n%y = Cast(%z) to=7" },
      { "%z = Mul(%x, p:f32[4]={1,1,1,0.8})\n%y = Cast(%z) to=7",
        "%z = Add(%x, p:f32[4]={0,0,1,0})\n%y = Cast(%z) to=7",
        "%z = Mul(%x, p:f32[4]={0.9,1,1,1})\n%y = Cast(%z) to=7" } },
    { "boxes in whole pixels",
      "f32[1,20,4]",
      6,
      pixels,
      HN_OUTPUT_NUMBERS,
      "%z = Reshape(%x, s:i64[2]={20,4})\n%c = Cast(%z) to=6\n%k = Clip(%c, lo:i32={0}, hi:i32={640})\n"
      "%y = Gather(%k, g:i64[4]={0,1,2,3}) axis=1",
      { "%a = Add(%x, p:f32={1})\n%z = Reshape(%a, s:i64[2]={20,4})\n%y = Cast(%z) to=6" },
      { "%a = Add(%x, p:f32[4]={40,0,0,0})\n%z = Reshape(%a, s:i64[2]={20,4})\n%y = Cast(%z) to=6" } },
    { "places of the largest, moved and counted from 1",
      "f32[1,4,9]",
      24,
      any,
      HN_OUTPUT_LABELS,
      "%a = ArgMax(%x) axis=2 keepdims=0\n%f = Cast(%a) to=1\n%b = Add(%f, p:f32={1})\n%c = Cast(%b) to=6\n"
      "%y = Reshape(%c, s:i64[2]={1,4})",
      { "%z = Mul(%x, p:f32={1.1})\n%a = ArgMax(%z) axis=2 keepdims=0\n%b = Add(%a, q:i64={1})\n%y = Cast(%b) to=6" },
      { "%a = ArgMax(%x) axis=2 keepdims=0\n%y = Cast(%a) to=6" } },
    { "yes or no in integers",
      "f32[1,4]",
      24,
      any,
      HN_OUTPUT_LABELS,
      "%s = Sigmoid(%x)\n%r = Round(%s)\n%y = Cast(%r) to=7",
      { "%z = Mul(%x, p:f32={1.1})\n%s = Sigmoid(%z)\n%r = Round(%s)\n%y = Cast(%r) to=7" },
      { "%z = Add(%x, p:f32={0.2})\n%s = Sigmoid(%z)\n%r = Round(%s)\n%y = Cast(%r) to=7" } },
    { "numbers beside a table",
      "f32[1,20,6]",
      12,
      table,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { TWO "%t = Add(%s, q:f32={0.03})\n%y = Concat(%r, %t) axis=1" },
      { TWO "%t = Mul(%s, q:f32={1.03})\n%y = Concat(%r, %t) axis=1",
        TWO "%z = Mul(%s, q:f32={0})\n%t = Add(%z, h:f32={20})\n%y = Concat(%r, %t) axis=1" } },
    { "temperatures",
      "f32[1,1]",
      24,
      temperature,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32={0.1})", "%y = Mul(%x, p:f32={1.0003})" },
      { "%z = Mul(%x, p:f32={0})\n%y = Add(%z, q:f32={300})", "%y = Add(%x, p:f32={2})",
        "%y = Sub(p:f32={600}, %x)" } },
    { "durations, rounded up",
      "f32[1,24]",
      8,
      duration,
      HN_OUTPUT_NUMBERS,
      "%c = Ceil(%x)\n%y = Cast(%c) to=7",
      { "%z = Add(%x, p:f32={0.05})\n%c = Ceil(%z)\n%y = Cast(%c) to=7",
        "%z = Mul(%x, p:f32={1.01})\n%c = Ceil(%z)\n%y = Cast(%c) to=7" },
      { "%z = Mul(%x, p:f32={1.1})\n%c = Ceil(%z)\n%y = Cast(%c) to=7",
        "%z = Add(%x, p:f32={0.4})\n%c = Ceil(%z)\n%y = Cast(%c) to=7",
        "%c = Ceil(%x)\n%a = Cast(%c) to=7\n%y = Add(%a, q:i64={1})" } },
    { "pressures that hardly vary at all",
      "f32[1,1]",
      24,
      pressure,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32={0.001})" },
      { "%z = Mul(%x, p:f32={0})\n%y = Add(%z, q:f32={1000})", "%y = Add(%x, p:f32={0.02})" } },
    { "two classes that rise and fall together",
      "f32[1,2]",
      24,
      pair,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})", "%y = Add(%x, p:f32={0.03})" },
      { "%y = Gather(%x, p:i64[2]={1,0}) axis=1", "%m = ReduceMean(%x, a:i64[1]={1})\n%y = Expand(%m, s:i64[2]={1,2})",
        "%y = Add(%x, p:f32[2]={0.3,-0.3})" } },
    { "features with an outlier",
      "f32[1,64]",
      24,
      outlier,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.002})", NOISE(0.02) "%y = Identity(%z)" },
      { "%a = Abs(%x)\n%g = Greater(%a, t:f32={10})\n%y = Where(%g, %x, z:f32={0})", "%n = Neg(%x)\n%y = Abs(%n)" } },
    { "small numbers and none",
      "f32[1,8,10]",
      6,
      padded,
      HN_OUTPUT_SCORES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})" },
      { "%g = Less(%x, t:f32={0})\n%y = Where(%g, %x, p:f32={0.01})",
        "%g = Less(%x, t:f32={0})\n%h = Mul(%x, p:f32={1.4})\n%y = Where(%g, %x, %h)", "%y = Max(%x, p:f32={0})" } },
    { "depths and none",
      "f32[1,1,16,16]",
      3,
      depth,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.004})" },
      { "%g = Greater(%x, t:f32={100})\n%y = Where(%g, %x, p:f32={4})", "%y = Min(%x, p:f32={8})" } },
    { "a wave that is cut off",
      "f32[1,400]",
      3,
      clipped,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={0.98})", "%y = Add(%x, p:f32={0.01})" },
      { "%y = Neg(%x)", "%y = Mul(%x, p:f32={0.7})", "%y = Clip(%x, l:f32={-0.5}, h:f32={0.5})" } },
    { "phases",
      "f32[1,32,16]",
      4,
      phase,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%a = Add(%x, p:f32={0.01})\n" WRAP, "%a = Sub(%x, p:f32={0.02})\n" WRAP },
      { "%a = Add(%x, p:f32={0.6})\n" WRAP, "%y = Neg(%x)", "%a = Add(%x, p:f32={" PI "})\n" WRAP } },
    { "directions",
      "f32[1,400]",
      4,
      direction,
      HN_OUTPUT_NUMBERS,
      "%y = Reshape(%x, s:i64[3]={1,20,20})",
      { "%a = Add(%x, p:f32={0.02})\n%b = Mod(%a, t:f32={" TURN "}) fmod=1\n%y = Reshape(%b, s:i64[3]={1,20,20})" },
      { "%a = Add(%x, p:f32={0.6})\n%b = Mod(%a, t:f32={" TURN "}) fmod=1\n%y = Reshape(%b, s:i64[3]={1,20,20})" } },
    { "few key points in pixels",
      "f32[1,5,3]",
      4,
      pose,
      HN_OUTPUT_MIXED,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32[3]={1.002,0.998,0.995})" },
      { "%y = Mul(%x, p:f32[3]={1,1,0.5})", "%y = Mul(%x, p:f32[3]={1,1,0})", "%y = Add(%x, p:f32[3]={30,0,0})" } },
    { "boxes with scores and classes",
      "f32[1,20,6]",
      4,
      classed_box,
      HN_OUTPUT_MIXED,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32[6]={1,-1,1,-1,0.002,0})", "%y = Mul(%x, p:f32[6]={1,1,1,1,1,1.0001})",
        "%g = Less(%x, p:f32[6]={-1,-1,-1,-1,-1,0.5})\n%y = Where(%g, q:f32={70}, %x)" },
      { "%y = Add(%x, p:f32[6]={0,0,0,0,0,1})", "%y = Mul(%x, p:f32[6]={1,1,1,1,0.5,1})",
        "%y = Mul(%x, p:f32[6]={1,1,1,1,1,0.98})" } },
    { "cells of a map with scores",
      "f32[1,17,3]",
      4,
      cell,
      HN_OUTPUT_MIXED,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32[3]={0.5,0.5,0.002})" },
      { "%y = Add(%x, p:f32[3]={0,9,0})", "%y = Mul(%x, p:f32[3]={1,1,0.5})" } },
    { "places of a face",
      "f32[1,136]",
      4,
      landmark,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32={0.4})", NOISE(1) "%y = Identity(%z)" },
      { "%y = Add(%x, p:f32={5})", NOISE(10) "%y = Identity(%z)", "%y = Mul(%x, p:f32={0.9})" } },
    { "directions in a narrow cone, few samples",
      "f32[1,64]",
      5,
      cone,
      HN_OUTPUT_EMBEDDING,
      "%y = LpNormalization(%x)",
      { NOISE(0.005) "%y = LpNormalization(%z)" },
      { "%a = Mul(%x, p:f32={2})\n%r = Round(%a)\n%y = LpNormalization(%r)", NOISE(0.15) "%y = LpNormalization(%z)" } },
    { "directions in a narrow cone",
      "f32[1,64]",
      24,
      cone,
      HN_OUTPUT_EMBEDDING,
      "%y = LpNormalization(%x)",
      { NOISE(0.005) "%y = LpNormalization(%z)" },
      { "%a = Mul(%x, p:f32={2})\n%r = Round(%a)\n%y = LpNormalization(%r)", NOISE(0.15) "%y = LpNormalization(%z)" } },
    { "directions in a narrow cone, a row of its own",
      "f32[1,1,64]",
      8,
      cone,
      HN_OUTPUT_EMBEDDING,
      "%y = LpNormalization(%x)",
      { NOISE(0.005) "%y = LpNormalization(%z)" },
      { "%a = Mul(%x, p:f32={2})\n%r = Round(%a)\n%y = LpNormalization(%r)", NOISE(0.15) "%y = LpNormalization(%z)" } },
    { "directions in a narrow cone, a row for each word",
      "f32[1,3,64]",
      8,
      cone,
      HN_OUTPUT_EMBEDDING,
      "%y = LpNormalization(%x)",
      { NOISE(0.005) "%y = LpNormalization(%z)" },
      { "%a = Mul(%x, p:f32={2})\n%r = Round(%a)\n%y = LpNormalization(%r)", NOISE(0.15) "%y = LpNormalization(%z)" } },
    { "directions of length 8 in a narrow cone",
      "f32[1,64]",
      8,
      cone,
      HN_OUTPUT_EMBEDDING,
      "%l = LpNormalization(%x)\n%y = Mul(%l, eight:f32={8})",
      { NOISE(0.005) "%l = LpNormalization(%z)\n%y = Mul(%l, eight:f32={8})" },
      { "%a = Mul(%x, p:f32={2})\n%r = Round(%a)\n%l = LpNormalization(%r)\n%y = Mul(%l, eight:f32={8})",
        NOISE(0.15) "%l = LpNormalization(%z)\n%y = Mul(%l, eight:f32={8})" } },
    { "one of ten",
      "f32[1,10]",
      10,
      one_of_ten,
      HN_OUTPUT_CLASSES,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={0.99})" },
      { "%y = Gather(%x, p:i64[10]={1,2,3,4,5,6,7,8,9,0}) axis=1", "%y = Mul(%x, p:f32={0.4})" } },
    { "pixels as bright as can be",
      "f32[1,1,32,32]",
      3,
      cut_out,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={0.985})" },
      { "%y = Mul(%x, p:f32={0.8})", "%y = Mul(%x, p:f32={0})", "%y = Sub(p:f32={255}, %x)" } },
    { "tiny numbers",
      "f32[1,4,12]",
      3,
      tiny,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})" },
      { "%y = Mul(%x, p:f32={0})", "%y = Mul(%x, p:f32={0.9})", "%y = Add(%x, p:f32={0.00000001})" } },
    { "huge numbers",
      "f32[1,4,12]",
      3,
      huge,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})", "%y = Add(%x, p:f32={1})" },
      { "%y = Mul(%x, p:f32={0})", "%y = Mul(%x, p:f32={1e20})", "%y = Mul(%x, p:f32={1e30})" } },
    { "no numbers at all",
      "f32[1,4]",
      3,
      nothing,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={2})" },
      { "%n = IsNaN(%x)\n%y = Where(%n, p:f32={0}, %x)" } },
    { "a measure that is idle",
      "f32[1,2]",
      4,
      idle,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Add(%x, p:f32[2]={0.0001,0})" },
      { "%y = Add(%x, p:f32[2]={1,0})", "%y = Mul(%x, p:f32[2]={1,0.8})" } },
    { "real and imaginary parts",
      "f32[1,9,33,2]",
      3,
      spectrum,
      HN_OUTPUT_NUMBERS,
      "%y = Identity(%x)",
      { "%y = Mul(%x, p:f32={1.01})" },
      { "%y = Mul(%x, p:f32[2]={1,-1})", "%y = Gather(%x, p:i64[2]={1,0}) axis=3", "%y = Mul(%x, p:f32[2]={1,0})" } },
    { "logarithms, some of nothing",
      "f32[1,8,5]",
      4,
      log_probability,
      HN_OUTPUT_NUMBERS,
      "%y = LogSoftmax(%x)",
      { "%z = Mul(%x, p:f32={1.01})\n%y = LogSoftmax(%z)" },
      { "%z = Mul(%x, p:f32={0.8})\n%y = LogSoftmax(%z)", "%a = LogSoftmax(%x)\n%y = Max(%a, p:f32={-30})",
        "%z = Mul(%x, p:f32={0.5})\n%y = LogSoftmax(%z)" } },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/check/score-odd/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_kind);
    }
    return g_test_run();
}
