/* How many rows change their largest score, as their margins let expect. */
#include "check/margins.h"

#include <math.h>

#include "base/rng.h"

#define NEAR(a, b) g_assert_cmpfloat_with_epsilon(a, b, 1e-6)

/* A row whose two largest scores are `margin` apart, and another model moves that by `change`; its size hardly depends
 * on them. */
static void add(HnMargins *m, double margin, double change)
{
    const double want[] = { -1e4, 1, 1 + margin, 0.5 }, got[] = { -1e4, 1.25, 1.25 + margin + change, -2 };
    hn_margins_add(m, got, want, G_N_ELEMENTS(want));
}

static void test_by_hand(void)
{
    HnMargins m = { 0 };
    g_assert_true(isnan(hn_margins_turned(&m)));
    add(&m, 1, 0);
    NEAR(hn_margins_turned(&m), 0);

    m = (HnMargins){ 0 };
    add(&m, 1, -1);
    NEAR(hn_margins_turned(&m), 0.15865525); /* a normal error is larger than itself */

    m = (HnMargins){ 0 };
    add(&m, 0, 0.1);
    NEAR(hn_margins_turned(&m), 0.5);

    m = (HnMargins){ 0 }; /* one narrow row of 8 would be 1/16 */
    add(&m, 0, 0.1);
    for (int i = 0; i < 7; i++)
        add(&m, 10, 0.1);
    NEAR(hn_margins_turned(&m), 0.1 * 0.39894228 / 8.75);

    m = (HnMargins){ 0 }; /* margins that all are large: 4 % by their mean */
    for (int i = 0; i < 8; i++)
        add(&m, 2, 0.2);
    g_assert_cmpfloat(hn_margins_turned(&m), <, 1e-9);
}

static void test_probabilities(void)
{
    const double want[] = { 0.7, 0.2, 0.1 }, got[] = { 0.65, 0.22, 0.13 };
    const double sure[] = { 1 - 1e-9, 1e-9, 0 }, surer[] = { 1, 0, 0 };
    HnMargins m = { 0 }, logits = { 0 };
    hn_margins_add(&m, got, want, 3);
    add(&logits, log(0.7 / 0.2), log(0.65 / 0.22) - log(0.7 / 0.2));
    NEAR(hn_margins_turned(&m), hn_margins_turned(&logits));

    m = (HnMargins){ 0 }; /* next to nothing and nothing are the same */
    hn_margins_add(&m, surer, sure, 3);
    NEAR(hn_margins_turned(&m), 0);
}

static void test_rows(void)
{
    const double one[] = { 1 }, none[] = { NAN, 2, -INFINITY }, fine[] = { 1, 2, 3 }, lost[] = { 1, NAN, 3 };
    HnMargins m = { 0 };
    hn_margins_add(&m, one, one, 1);
    hn_margins_add(&m, fine, none, 3);
    hn_margins_add(&m, lost, fine, 3);
    g_assert_true(isnan(hn_margins_turned(&m))); /* no row says anything */
    for (int i = 0; i < HN_MOST_MARGINS; i++)
        add(&m, 1, 1);
    NEAR(hn_margins_turned(&m), 0.15865525);
    for (int i = 0; i < 2; i++) {
        add(&m, 1, 1);
        g_assert_true(isnan(hn_margins_turned(&m))); /* enough to count */
    }
}

#define CLASSES 10

/* A row of a network, which is `spread` times a normal number of powers of e as large as another one, and what another
 * network makes of it, whose errors go by the row's size, or are the same in all. */
typedef struct {
    double spread, error;
    gboolean by_size;
} Net;

static void make_row(HnRng *rng, const Net *net, double *got, double *want)
{
    const double size = exp(net->spread * hn_rng_normal(rng)), error = net->error * (net->by_size ? size : 1);
    for (int c = 0; c < CLASSES; c++) {
        want[c] = size * hn_rng_normal(rng);
        got[c] = want[c] + error * hn_rng_normal(rng);
    }
}

static int best(const double *x)
{
    int at = 0;
    for (int c = 1; c < CLASSES; c++)
        at = x[c] > x[at] ? c : at;
    return at;
}

/* Part of very many rows. */
static double truth_of(HnRng *rng, const Net *net)
{
    const int rows = 20000;
    int turned = 0;
    for (int r = 0; r < rows; r++) {
        double got[CLASSES], want[CLASSES];
        make_row(rng, net, got, want);
        turned += best(got) != best(want);
    }
    return (double)turned / rows;
}

/* 8 rows of a network whose margins come as they may tell what 20,000 others do, within a factor of 4, mostly. */
static void test_forecast(gconstpointer data)
{
    const Net *net = data;
    HnRng rng = hn_rng(11);
    const int draws = 400;
    int within = 0, above = 0;
    const double truth = truth_of(&rng, net);
    for (int d = 0; d < draws; d++) {
        HnMargins m = { 0 };
        for (int r = 0; r < 8; r++) {
            double want[CLASSES], got[CLASSES];
            make_row(&rng, net, got, want);
            hn_margins_add(&m, got, want, CLASSES);
        }
        const double said = hn_margins_turned(&m);
        within += said >= truth / 4 && said <= truth * 4;
        above += said > truth * 4;
    }
    g_test_message("%.4f of rows are turned; %d of %d draws tell it within a factor of 4, %d tell more", truth, within,
                   draws, above);
    g_assert_cmpint(within, >=, draws * 3 / 4);
    g_assert_cmpint(above, <=, draws / 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/margins/by-hand", test_by_hand);
    g_test_add_func("/check/margins/probabilities", test_probabilities);
    g_test_add_func("/check/margins/rows", test_rows);
    static const Net even = { 0, 0.15, FALSE }, by_size = { 3, 0.15, TRUE }, same = { 1, 0.15, FALSE };
    g_test_add_data_func("/check/margins/forecast", &even, test_forecast);
    g_test_add_data_func("/check/margins/forecast-by-size", &by_size, test_forecast);
    g_test_add_data_func("/check/margins/forecast-small-rows", &same, test_forecast);
    return g_test_run();
}
