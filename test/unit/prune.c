/*
 * Pruning: models that lose channels, at random too, do what they do with 0 in the channels' places; layers that read
 * what is left are nearer to the dense model than they were.
 */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "ir/copy.h"
#include "prune/prune.h"
#include "prune/branches.h"
#include "prune/widths.h"
#include "prune/rounds.h"
#include "prune/student.h"
#include "prune/taylor.h"
#include "prune/zeros.h"
#include "run_model.h"

/* --- models ------------------------------------------------------------------------------------------------------- */

static const char *const residual = "opset 17\n"
                                    "%1 = Conv(%x:f32[N,3,6,6], a:f32[16,3,3,3], b:f32[16]) pads=[1,1,1,1]\n"
                                    "%2 = Relu(%1)\n"
                                    "%3 = Conv(%2, c:f32[16,16,3,3], d:f32[16]) pads=[1,1,1,1]\n"
                                    "%4 = Relu(%3)\n"
                                    "%5 = Conv(%4, e:f32[16,16,3,3], f:f32[16]) pads=[1,1,1,1]\n"
                                    "%6 = Add(%5, %2)\n"
                                    "%7 = Relu(%6)\n"
                                    "%8 = Conv(%7, g:f32[16,1,3,3], h:f32[16]) pads=[1,1,1,1] group=16\n"
                                    "%9 = GlobalAveragePool(%8)\n"
                                    "%10 = Flatten(%9)\n"
                                    "%y = Gemm(%10, i:f32[16,4], j:f32[4])\n";

typedef struct {
    HnModel *m;
    HnData *data;
    HnPruneMap *map;
    HnPruneOptions o;
} Subject;

static Subject subject_new(const char *text)
{
    g_autoptr(GError) error = NULL;
    Subject s = { .m = test_model(text) };
    g_assert_true(hn_graph_infer(s.m->graph, FALSE, &error));
    HnValue *in[] = { s.m->graph->inputs->pdata[0] };
    s.data = hn_data_open("random:24", in, 1, &(HnDataOptions){ .seed = 3 }, &error);
    g_assert_no_error(error);
    s.map = hn_prune_map_new(s.m, NULL, &error);
    g_assert_no_error(error);
    s.o = (HnPruneOptions){ .backend = &hn_backend_ref, .threads = 1, .data = s.data, .n = 16, .fit = TRUE };
    return s;
}

static void subject_clear(Subject *s)
{
    hn_prune_map_free(s->map);
    hn_data_free(s->data);
    hn_model_free(s->m);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Subject, subject_clear)

/* Outputs of m on sample i. */
static HnTensor *result_of(const Subject *s, HnModel *m, int64_t i)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSession) session = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSample) sample = hn_data_load(s->data, i, &error);
    HnTensor *out = NULL;
    g_assert_no_error(error);
    g_assert_true(hn_session_run(session, sample->in, &out, &error));
    g_assert_no_error(error);
    return out;
}

/* Mean square of the error on samples that were not looked at. */
static double loss_of(const Subject *s, const HnPruned *p)
{
    g_autoptr(HnModel) m = hn_pruned_model(p, NULL);
    double sum = 0;
    for (int64_t i = 16; i < 24; i++) {
        g_autoptr(HnTensor) got = result_of(s, m, i), want = result_of(s, s->m, i);
        for (int64_t e = 0; e < want->n; e++)
            sum += pow(hn_tensor_get_f64(got, e) - hn_tensor_get_f64(want, e), 2);
    }
    return sum;
}

static void test_prune(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new(residual);
    g_assert_cmpuint(s.map->classes->len, ==, 2);
    int keep[] = { 10, 8 };
    g_autoptr(HnPruned) p = hn_prune_run(s.map, &s.o, keep, &error);
    g_assert_no_error(error);
    g_assert_cmpint(p->kept[0], ==, 10);
    g_assert_cmpint(p->kept[1], ==, 8);
    g_autoptr(HnModel) less = hn_pruned_model(p, &error), masked = hn_pruned_masked(p, &error);
    g_assert_no_error(error);
    g_autoptr(HnTensor) a = result_of(&s, less, 0), b = result_of(&s, masked, 0);
    test_assert_close(a, b, 1e-5, 1e-6, residual);
    g_autoptr(HnPruned) plain = hn_pruned_copy(p, FALSE);
    g_assert_cmpfloat(loss_of(&s, p), <, 0.5 * loss_of(&s, plain));
    /* and better than any other choice with weights as good */
    HnPruneOptions other = s.o;
    double worst = 0;
    for (other.seed = 1; other.seed < 4; other.seed++) {
        other.score = HN_PRUNE_RANDOM;
        g_autoptr(HnPruned) r = hn_prune_run(s.map, &other, keep, &error);
        g_assert_no_error(error);
        worst = fmax(worst, loss_of(&s, r));
    }
    g_assert_cmpfloat(loss_of(&s, p), <, worst);
    /* the same again */
    g_autoptr(HnPruned) again = hn_prune_run(s.map, &s.o, keep, &error);
    g_assert_cmpint(memcmp(p->gone, again->gone, (gsize)hn_channels_count(s.map->channels)), ==, 0);
}

/* The first channel is the sum of the others, and of little else; the result is that sum. The one that costs least goes
 * first, and has to come back where a single one is to stay. */
static void test_exchange(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new("opset 17\n"
                                    "%h = MatMul(%x:f32[8,3], p:f32[3,3]={1,1,0, 1,0,1, 0.05,0,0})\n"
                                    "%y = MatMul(%h, q:f32[3,1]={0,1,1})\n");
    g_assert_cmpuint(s.map->classes->len, ==, 1);
    int keep[] = { 1 };
    g_autoptr(HnPruned) p = hn_prune_run(s.map, &s.o, keep, &error);
    g_assert_no_error(error);
    for (int i = 0; i < hn_channels_count(s.map->channels); i++)
        g_assert_cmpint(p->gone[i], ==, s.map->class_of[i] == 0 && s.map->place_of[i] > 0);
    g_assert_cmpfloat(p->loss[0], <, 0.01);
}

/* What a channel adds to results, by its values (0.5, 1, 3) and the weights that read it (3, 1, 0.6) together. */
static void test_wanda(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new("opset 17\n"
                                    "%h = MatMul(%x:f32[8,3], p:f32[3,3]={0.5,0,0, 0,1,0, 0,0,3})\n"
                                    "%y = MatMul(%h, q:f32[3,1]={3,1,0.6})\n");
    int keep[] = { 2 };
    s.o.score = HN_PRUNE_WANDA;
    g_autoptr(HnPruned) p = hn_prune_run(s.map, &s.o, keep, &error);
    g_assert_no_error(error);
    for (int i = 0; i < hn_channels_count(s.map->channels); i++)
        g_assert_cmpint(p->gone[i], ==, s.map->class_of[i] == 0 && s.map->place_of[i] == 1);
}

/* A layer that reads a class behind others that do, too: what went before is nothing that its weights can be fitted to,
 * though it is no 0 behind a Sigmoid of the masked model. */
static void test_read_again(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new("opset 17\n"
                                    "%1 = MatMul(%x:f32[8,6], p:f32[6,16])\n"
                                    "%2 = Sigmoid(%1)\n"
                                    "%3 = MatMul(%2, q:f32[16,8])\n"
                                    "%4 = Relu(%3)\n"
                                    "%5 = Concat(%2, %4) axis=1\n"
                                    "%y = MatMul(%5, r:f32[24,4])\n");
    g_assert_cmpuint(s.map->classes->len, ==, 2);
    int keep[] = { 8, 8 };
    const HnPruneLayer *last = s.map->layers->pdata[2];
    g_autoptr(HnPruned) p = hn_prune_run(s.map, &s.o, keep, &error);
    g_assert_no_error(error);
    g_assert_cmpint(last->level, ==, 2);
    const float *w = p->fits[4]->data; /* [24, 4] */
    for (int i = 0; i < 24; i++)
        for (int k = 0; k < 4; k++)
            g_assert_true((w[4 * i + k] == 0) == (p->gone[last->at[i]] != 0));
}

/* Layers without a bias get one by the fit, of the channels that are left. */
static const char unbiased[] = "opset 17\n"
                               "%1 = Conv(%x:f32[4,3,6,6], a:f32[8,3,3,3])\n"
                               "%2 = Relu(%1)\n"
                               "%3 = Conv(%2, b:f32[8,8,3,3])\n"
                               "%4 = Relu(%3)\n"
                               "%y = Conv(%4, c:f32[2,8,1,1])\n";

static void test_unbiased(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new(unbiased);
    const int keep[] = { 4, 5 };
    g_autoptr(HnPruned) p = hn_prune_run(s.map, &s.o, keep, &error);
    g_assert_no_error(error);
    g_autoptr(HnModel) less = hn_pruned_model(p, &error), masked = hn_pruned_masked(p, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_node_in(hn_graph_find(less->graph, "3")->producer, 2)->weight->n, ==, 5);
    g_autoptr(HnTensor) a = result_of(&s, less, 0), b = result_of(&s, masked, 0);
    test_assert_close(a, b, 1e-5, 1e-6, unbiased);
}

/* Channel k of a class is worth k, or the other way round; all but the last round's models are seen, and stay. */
typedef struct {
    gboolean turned;
    int seen;
} Learner;

static gboolean score_by_place(gpointer data, const HnPruneMap *map, double *score, GError **error)
{
    const Learner *l = data;
    (void)error;
    for (int i = 0; i < hn_channels_count(map->channels); i++)
        score[i] = map->class_of[i] < 0 ? 0 : l->turned ? 100 - map->place_of[i] : 1 + map->place_of[i];
    return TRUE;
}

static gboolean see_model(gpointer data, HnModel **m, GError **error)
{
    Learner *l = data;
    l->seen++;
    return *m != NULL && error != NULL;
}

static void test_learner(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new(residual);
    Learner l = { 0 };
    const HnPruneLearner learner = { score_by_place, see_model, &l };
    const int keep[] = { 4, 4 };
    s.o.learner = &learner;
    s.o.score = HN_PRUNE_TAYLOR;
    for (l.turned = FALSE; l.turned <= TRUE; l.turned++) {
        g_autoptr(HnPruned) p = hn_prune_run(s.map, &s.o, keep, &error);
        g_assert_no_error(error);
        for (int i = 0; i < hn_channels_count(s.map->channels); i++)
            if (s.map->class_of[i] >= 0)
                g_assert_cmpint(p->gone[i], ==, l.turned ? s.map->place_of[i] >= 4 : s.map->place_of[i] < 12);
    }
    g_autoptr(HnModel) m = hn_prune_in_rounds(s.map, &s.o, keep, 3, &error);
    g_assert_no_error(error);
    g_assert_cmpint(l.seen, ==, 2);
    g_autoptr(HnPruneMap) map = hn_prune_map_new(m, NULL, &error);
    g_assert_no_error(error);
    for (guint c = 0; c < map->classes->len; c++)
        g_assert_cmpint(((const HnPruneClass *)map->classes->pdata[c])->n, ==, 4);
    g_autoptr(HnTensor) y = result_of(&s, m, 0);
    g_assert_cmpint(y->n, ==, 4);
}

/* A sample's sum of weight times gradient, by channel, without its sign. */
static void test_taylor(void)
{
    g_auto(Subject) s = subject_new(residual);
    g_autofree double *score = g_new0(double, (gsize)hn_channels_count(s.map->channels) + 1);
    g_autofree HnTensor **gradients = g_new0(HnTensor *, s.map->layers->len + 1u);
    const HnPruneClass *k = s.map->classes->pdata[0];
    const int layer = g_array_index(k->layers, int, 0);
    const HnPruneLayer *l = s.map->layers->pdata[layer];
    g_autoptr(HnTensor) gradient = hn_tensor_copy(l->rows.w, NULL, NULL);
    gradients[layer] = gradient;
    hn_prune_taylor_add(s.map, gradients, score);
    hn_prune_taylor_add(s.map, gradients, score);
    double sum = 0, all = 0;
    for (int i = 0; i < k->n; i++)
        sum += score[g_array_index(k->group->classes, int, i)];
    for (int64_t i = 0; i < l->rows.w->n; i++)
        all += pow(hn_tensor_get_f64(l->rows.w, i), 2);
    g_assert_cmpfloat(all, >, 0);
    g_assert_cmpfloat(fabs(sum - 2 * all), <, 1e-9 * all);
}

/* What goes into a block takes the place of what comes out, and the layers behind make up for it. */
static void test_blocks(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new(residual);
    g_autoptr(GArray) blocks = hn_prune_blocks(s.m);
    char found[100] = "";
    for (guint i = 0; i < blocks->len; i++) {
        const HnPruneBlock *b = &g_array_index(blocks, HnPruneBlock, i);
        const gsize n = strlen(found);
        g_snprintf(found + n, sizeof found - n, "%s:%s:%u ", b->out->name, b->in->name, b->layers);
    }
    g_assert_cmpstr(found, ==, "3:2:1 5:4:1 6:2:2 8:7:1 "); /* layers of 16 channels, and the branch of the sum */
    g_autoptr(HnModel) base = hn_model_copy(s.m);
    g_assert_false(hn_prune_skip(base, "2", "5"));  /* is made of it */
    g_assert_false(hn_prune_skip(base, "9", "8"));  /* another type */
    g_assert_false(hn_prune_skip(base, "no", "7")); /* no such value */
    g_assert_true(hn_prune_skip(base, "6", "2"));
    HnPruneOptions o = s.o;
    o.wanted = s.m;
    g_autoptr(HnPruneMap) map = hn_prune_map_new(base, NULL, &error);
    g_assert_no_error(error);
    g_autofree int *keep = g_new(int, map->classes->len + 1u);
    for (guint c = 0; c < map->classes->len; c++)
        keep[c] = ((const HnPruneClass *)map->classes->pdata[c])->n;
    g_autoptr(HnPruned) p = hn_prune_run(map, &o, keep, &error);
    g_assert_no_error(error);
    g_autoptr(HnPruned) plain = hn_pruned_copy(p, FALSE);
    g_assert_cmpfloat(loss_of(&s, p), <, 0.5 * loss_of(&s, plain));
}

static void test_widths(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new(residual);
    g_autofree double *first = g_new0(double, 16), *second = g_new0(double, 16);
    double *of[] = { first, second };
    int keep[2];
    g_assert_true(hn_prune_curves(s.map, &s.o, of, &error));
    g_assert_no_error(error);
    for (int c = 0; c < 2; c++)
        for (int i = 1; i < 15; i++)
            g_assert_cmpfloat(of[c][i], >=, of[c][i - 1]);
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(s.map);
    for (guint i = 0; i < s.map->layers->len; i++)
        costs->layer[i] = 1;
    const HnPruneLoss loss = { of, 0.3 };
    hn_prune_uniform(s.map, 0.5, 8, keep);
    g_assert_cmpint(keep[0], ==, 8);
    g_assert_cmpint(keep[1], ==, 8);
    g_assert_true(hn_prune_allocate(costs, &loss, 3, hn_prune_steps(8), keep));
    g_assert_cmpfloat(hn_prune_cost(costs, keep), <=, 3);
    g_assert_cmpfloat(hn_prune_cost(costs, keep), >, 2);
    g_assert_false(hn_prune_allocate(costs, &loss, 1e-3, hn_prune_steps(8), keep)); /* one of each stays */
    g_assert_cmpint(keep[0], ==, 1);
}

static GPtrArray *students_of(const Subject *s, double part, GError **error)
{
    const HnStudentOptions o = { .backend = &hn_backend_ref, .threads = 1, .data = s->data, .n = 16, .part = part };
    double flops;
    HnNarrower narrower;
    GPtrArray *made = hn_students_new(s->m, &o, &flops, &narrower, error);
    for (guint i = 0; made != NULL && i < made->len; i++) {
        const HnStudent *t = made->pdata[i];
        g_assert_cmpfloat(t->flops, <=, part * flops);
        g_assert_cmpint(t->weights, >, 0);
        g_autoptr(HnTensor) got = result_of(s, t->model, 0), want = result_of(s, s->m, 0);
        g_assert_cmpint(got->n, ==, want->n);
    }
    return made;
}

static void test_students(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(Subject) s = subject_new(residual);
    g_autoptr(GPtrArray) made = students_of(&s, 0.5, &error);
    g_assert_no_error(error);
    guint ways = 0, blocks = 0;
    for (guint i = 0; i < made->len; i++) {
        const HnStudent *t = made->pdata[i];
        ways |= strcmp(t->how, "channels") == 0 ? 1 : strcmp(t->how, "uniform") == 0 ? 2 : 4;
        blocks += t->blocks;
    }
    g_assert_cmpuint(ways, ==, 7);
    g_assert_cmpuint(blocks, >, 0);
    g_assert_null(students_of(&s, 1e-6, &error)); /* one channel of each class is more */
    g_assert_error(error, HN_ERROR, HN_ERROR_GUARD);
    g_clear_error(&error);
    g_auto(Subject) flat = subject_new("opset 17\n%1 = Flatten(%x:f32[N,3,6,6])\n%y = Gemm(%1, a:f32[108,4])\n");
    g_assert_null(students_of(&flat, 0.5, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
}

/* --- any model ---------------------------------------------------------------------------------------------------- */

/* Text of a model of random blocks on images. */
typedef struct {
    GString *s;
    HnRng rng;
    int values, weights, channels;
    char now[16];
} Writer;

static int pick(Writer *w, int lo, int hi)
{
    return (int)hn_rng_int(&w->rng, lo, hi);
}

static void made(Writer *w)
{
    g_snprintf(w->now, sizeof w->now, "%%%d", w->values);
}

/* "%7 = Conv(%6, w3:...)", of any kernel and as many groups; what it makes is `now`. */
static void conv(Writer *w, const char *from, int in, int out, int groups)
{
    const int k = pick(w, 0, 1) ? 3 : 1;
    w->values++;
    g_string_append_printf(w->s, "%%%d = Conv(%s, w%d:f32[%d,%d,%d,%d], b%d:f32[%d]) pads=[%d,%d,%d,%d] group=%d\n",
                           w->values, from, w->weights, out, in / groups, k, k, w->weights, out, k / 2, k / 2, k / 2,
                           k / 2, groups);
    w->weights++;
    w->channels = out;
    made(w);
}

static void unary(Writer *w, const char *op)
{
    g_string_append_printf(w->s, "%%%d = %s(%s)\n", w->values + 1, op, w->now);
    w->values++;
    made(w);
}

static void norm(Writer *w)
{
    const int c = w->channels, n = w->weights++;
    g_string_append_printf(
        w->s, "%%%d = BatchNormalization(%s, s%d:f32[%d], t%d:f32[%d], m%d:f32[%d], v%d:f32[%d]=fill(1,1,2))\n",
        w->values + 1, w->now, n, c, n, c, n, c, n, c);
    w->values++;
    made(w);
}

static void add_block(Writer *w)
{
    char from[16], other[16];
    const int c = w->channels;
    g_strlcpy(from, w->now, sizeof from);
    switch (pick(w, 0, 8)) {
    case 0:
        conv(w, from, c, 2 * pick(w, 1, 4), 1);
        break;
    case 1: /* depthwise */
        conv(w, from, c, c, c);
        break;
    case 2: /* in two groups */
        conv(w, from, c, c, c % 2 == 0 ? 2 : 1);
        break;
    case 3: /* residual */
        conv(w, from, c, 2 * pick(w, 1, 3), 1);
        unary(w, "Relu");
        conv(w, w->now, w->channels, c, 1);
        g_string_append_printf(w->s, "%%%d = Add(%s, %s)\n", w->values + 1, w->now, from);
        w->values++;
        made(w);
        break;
    case 4: { /* two branches side by side */
        conv(w, from, c, pick(w, 1, 4), 1);
        g_strlcpy(other, w->now, sizeof other);
        const int first = w->channels;
        conv(w, from, c, pick(w, 1, 4), 1);
        g_string_append_printf(w->s, "%%%d = Concat(%s, %s) axis=1\n", w->values + 1, other, w->now);
        w->values++;
        w->channels += first;
        made(w);
        break;
    }
    case 5: /* halves that change places */
        if (c % 2 != 0)
            break;
        g_string_append_printf(w->s, "%%%d, %%%d = Split(%s) axis=1\n%%%d = Concat(%%%d, %%%d) axis=1\n", w->values + 1,
                               w->values + 2, from, w->values + 3, w->values + 2, w->values + 1);
        w->values += 3;
        made(w);
        break;
    case 6: /* shuffled */
        if (c % 2 != 0)
            break;
        g_string_append_printf(w->s,
                               "%%%d = Reshape(%s, r%d:i64[5]={2,2,%d,4,4})\n%%%d = Transpose(%%%d) perm=[0,2,1,3,4]\n"
                               "%%%d = Reshape(%%%d, q%d:i64[4]={2,%d,4,4})\n",
                               w->values + 1, from, w->weights, c / 2, w->values + 2, w->values + 1, w->values + 3,
                               w->values + 2, w->weights, c);
        w->values += 3;
        w->weights++;
        made(w);
        break;
    case 7: /* channels that weigh others */
        unary(w, "GlobalAveragePool");
        conv(w, w->now, c, pick(w, 1, 3), 1);
        unary(w, "Relu");
        conv(w, w->now, w->channels, c, 1);
        unary(w, "Sigmoid");
        g_string_append_printf(w->s, "%%%d = Mul(%s, %s)\n", w->values + 1, w->now, from);
        w->values++;
        made(w);
        break;
    default:
        unary(w, pick(w, 0, 1) ? "Relu" : "HardSwish");
        break;
    }
    if (pick(w, 0, 2) == 0)
        norm(w);
}

static char *random_model(uint64_t seed)
{
    Writer w = { g_string_new("opset 17\n"), hn_rng(seed), 0, 0, 3, "" };
    conv(&w, "%x:f32[2,3,4,4]", 3, 2 * pick(&w, 2, 4), 1);
    const int blocks = pick(&w, 1, 5);
    for (int i = 0; i < blocks; i++)
        add_block(&w);
    g_string_append_printf(w.s, "%%y = Conv(%s, z:f32[2,%d,1,1])\n", w.now, w.channels);
    return g_string_free(w.s, FALSE);
}

#define GRAPHS 1000

static const int64_t images[] = { 2, 3, 4, 4 };

static void test_any(void)
{
    guint smaller = 0;
    const guint64 graphs = g_test_thorough() ? 20 * GRAPHS : GRAPHS;
    for (guint64 seed = 1; seed <= graphs; seed++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = random_model(seed);
        g_autoptr(HnModel) m = test_model(text);
        g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
        g_autoptr(HnPruneMap) map = hn_prune_map_new(m, NULL, &error);
        g_assert_no_error(error);
        g_autofree int *keep = g_new0(int, map->classes->len + 1u);
        HnRng rng = hn_rng(seed);
        for (guint c = 0; c < map->classes->len; c++)
            keep[c] = (int)hn_rng_int(&rng, 1, ((const HnPruneClass *)map->classes->pdata[c])->n);
        const HnPruneOptions o = { .backend = &hn_backend_ref, .threads = 1, .score = HN_PRUNE_RANDOM, .seed = seed };
        g_autoptr(HnPruned) p = hn_prune_run(map, &o, keep, &error);
        g_assert_no_error(error);
        g_autoptr(HnModel) less = hn_pruned_model(p, &error), masked = hn_pruned_masked(p, &error);
        if (error != NULL)
            g_test_message("%s", text);
        g_assert_no_error(error);
        g_assert_true(hn_model_verify(less, &error));
        g_autoptr(HnSession) a = test_session(less, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(HnSession) b = test_session(masked, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(HnTensor) x = test_random(HN_F32, 4, images, seed);
        g_autoptr(HnTensor) got = NULL;
        g_autoptr(HnTensor) want = NULL;
        g_assert_true(hn_session_run(a, &x, &got, &error));
        g_assert_no_error(error);
        g_assert_true(hn_session_run(b, &x, &want, &error));
        test_assert_close(got, want, 1e-5, 1e-6, text);
        smaller += memchr(p->gone, 1, (gsize)hn_channels_count(map->channels)) != NULL;
    }
    g_assert_cmpuint(smaller, >, graphs / 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune/run", test_prune);
    g_test_add_func("/prune/exchange", test_exchange);
    g_test_add_func("/prune/wanda", test_wanda);
    g_test_add_func("/prune/read-again", test_read_again);
    g_test_add_func("/prune/unbiased", test_unbiased);
    g_test_add_func("/prune/learner", test_learner);
    g_test_add_func("/prune/taylor", test_taylor);
    g_test_add_func("/prune/blocks", test_blocks);
    g_test_add_func("/prune/widths", test_widths);
    g_test_add_func("/prune/students", test_students);
    g_test_add_func("/prune/any", test_any);
    return g_test_run();
}
