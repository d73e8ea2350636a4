/*
 * How fast own kernels and oneDNN's are on layers of known models, in one process and in turns.
 *
 *     build/test/perf-kernels [-t THREADS] [-s SECONDS] [-k KERNELS] [REGEX]
 *
 * Per layer: the least time of hone's own kernel (the first whose name begins with KERNELS) and of oneDNN's, GFLOP/s,
 * percent of what the machine can do (as hone-profile measures it) and how many times faster the first is. Reorder
 * steps around the node are in "all".
 */
#include <stdio.h>
#include <string.h>

#include "../unit/run_model.h"
#include "base/text.h"
#include "perf/roofline.h"

typedef struct {
    const char *name;
    int n, c, h, w; /* h 0: one spatial axis */
    int m, k, stride, pad, dilation, group;
    const char *after;
    gboolean up; /* ConvTranspose */
} Conv;

static const Conv convs[] = {
    { "squeezenet/conv1", 1, 3, 224, 224, 64, 3, 2, 0, 1, 1, "relu" },
    { "squeezenet/fire2-squeeze", 1, 64, 55, 55, 16, 1, 1, 0, 1, 1, "relu" },
    { "squeezenet/fire2-1x1", 1, 16, 55, 55, 64, 1, 1, 0, 1, 1, "relu" },
    { "squeezenet/fire2-3x3", 1, 16, 55, 55, 64, 3, 1, 1, 1, 1, "relu" },
    { "squeezenet/fire5-3x3", 1, 32, 27, 27, 128, 3, 1, 1, 1, 1, "relu" },
    { "squeezenet/fire9-3x3", 1, 64, 13, 13, 256, 3, 1, 1, 1, 1, "relu" },
    { "squeezenet/conv10", 1, 512, 13, 13, 1000, 1, 1, 0, 1, 1, "relu" },
    { "ultraface/first", 1, 3, 240, 320, 16, 3, 2, 1, 1, 1, "relu" },
    { "ultraface/1x1-16-32", 1, 16, 120, 160, 32, 1, 1, 0, 1, 1, "relu" },
    { "ultraface/1x1-64", 1, 64, 30, 40, 64, 1, 1, 0, 1, 1, "relu" },
    { "ultraface/dilated", 1, 16, 30, 40, 16, 3, 1, 3, 3, 1, "" },
    { "ultraface/depthwise", 1, 32, 120, 160, 32, 3, 2, 1, 1, 32, "relu" },
    { "fastestdet/first", 1, 3, 352, 352, 24, 3, 2, 1, 1, 1, "relu" },
    { "fastestdet/1x1-24", 1, 24, 88, 88, 24, 1, 1, 0, 1, 1, "relu" },
    { "fastestdet/1x1-96", 1, 96, 22, 22, 96, 1, 1, 0, 1, 1, "relu" },
    { "fastestdet/spp", 1, 336, 22, 22, 96, 1, 1, 0, 1, 1, "relu" },
    { "fastestdet/depthwise", 1, 48, 44, 44, 48, 3, 1, 1, 1, 48, "relu" },
    { "magika/conv", 1, 256, 0, 512, 512, 5, 1, 0, 1, 1, "" },
    { "superres/first", 1, 1, 224, 224, 64, 5, 1, 2, 1, 1, "relu" },
    { "superres/64", 1, 64, 224, 224, 64, 3, 1, 1, 1, 1, "relu" },
    { "superres/32", 1, 64, 224, 224, 32, 3, 1, 1, 1, 1, "relu" },
    { "superres/last", 1, 32, 224, 224, 9, 3, 1, 1, 1, 1, "" },
    { "resnet/first", 1, 3, 224, 224, 64, 7, 2, 3, 1, 1, "relu" },
    { "resnet/56-64-256", 1, 64, 56, 56, 256, 1, 1, 0, 1, 1, "add" },
    { "resnet/56-256-64", 1, 256, 56, 56, 64, 1, 1, 0, 1, 1, "relu" },
    { "resnet/56-3x3", 1, 64, 56, 56, 64, 3, 1, 1, 1, 1, "relu" },
    { "resnet/56-3x3-s2", 1, 128, 56, 56, 128, 3, 2, 1, 1, 1, "relu" },
    { "resnet/56-1x1-s2", 1, 256, 56, 56, 512, 1, 2, 0, 1, 1, "" },
    { "resnet/28-3x3", 1, 128, 28, 28, 128, 3, 1, 1, 1, 1, "relu" },
    { "resnet/28-512-128", 1, 512, 28, 28, 128, 1, 1, 0, 1, 1, "relu" },
    { "resnet/14-3x3", 1, 256, 14, 14, 256, 3, 1, 1, 1, 1, "relu" },
    { "resnet/14-256-1024", 1, 256, 14, 14, 1024, 1, 1, 0, 1, 1, "add" },
    { "resnet/7-3x3", 1, 512, 7, 7, 512, 3, 1, 1, 1, 1, "relu" },
    { "resnet/7-2048-512", 1, 2048, 7, 7, 512, 1, 1, 0, 1, 1, "relu" },
    { "resnext/28-grouped", 1, 256, 28, 28, 256, 3, 1, 1, 1, 32, "relu" },
    { "deeplab/dilated", 1, 256, 28, 28, 256, 3, 1, 2, 2, 1, "relu" },
    { "mobilenet/112-depthwise", 1, 32, 112, 112, 32, 3, 1, 1, 1, 32, "relu" },
    { "mobilenet/56-depthwise-s2", 1, 96, 112, 112, 96, 3, 2, 1, 1, 96, "relu" },
    { "mobilenet/14-depthwise", 1, 576, 14, 14, 576, 3, 1, 1, 1, 576, "relu" },
    { "efficientnet/14-depthwise-5", 1, 480, 14, 14, 480, 5, 1, 2, 1, 480, "" },
    { "depthwise/32-112-k3-s1", 1, 32, 112, 112, 32, 3, 1, 1, 1, 32, "relu" },
    { "depthwise/144-56-k3-s1", 1, 144, 56, 56, 144, 3, 1, 1, 1, 144, "relu" },
    { "depthwise/96-56-k3-s1", 1, 96, 56, 56, 96, 3, 1, 1, 1, 96, "relu" },
    { "depthwise/192-28-k3-s1", 1, 192, 28, 28, 192, 3, 1, 1, 1, 192, "relu" },
    { "depthwise/384-14-k3-s1", 1, 384, 14, 14, 384, 3, 1, 1, 1, 384, "relu" },
    { "depthwise/960-7-k3-s1", 1, 960, 7, 7, 960, 3, 1, 1, 1, 960, "relu" },
    { "depthwise/144-56-k5-s2", 1, 144, 56, 56, 144, 5, 2, 2, 1, 144, "relu" },
    { "depthwise/240-28-k5-s1", 1, 240, 28, 28, 240, 5, 1, 2, 1, 240, "relu" },
    { "depthwise/672-14-k5-s1", 1, 672, 14, 14, 672, 5, 1, 2, 1, 672, "relu" },
    { "depthwise/1152-7-k5-s1", 1, 1152, 7, 7, 1152, 5, 1, 2, 1, 1152, "relu" },
    { "depthwise/fastestdet-24-88-s2", 1, 24, 88, 88, 24, 3, 2, 1, 1, 24, "" },
    { "depthwise/convnext-96-56-k7", 1, 96, 56, 56, 96, 7, 1, 3, 1, 96, "" },
    { "unet/up-2", 1, 128, 56, 56, 64, 2, 2, 0, 1, 1, "", TRUE },
    { "dcgan/up-4", 1, 256, 16, 16, 128, 4, 2, 1, 1, 1, "relu", TRUE },
    { "small/11-96", 1, 96, 11, 11, 96, 1, 1, 0, 1, 1, "relu" },
    { "small/22-48", 1, 48, 22, 22, 48, 1, 1, 0, 1, 1, "relu" },
    { "small/30-8-16", 1, 8, 30, 30, 16, 1, 1, 0, 1, 1, "" },
    { "small/10-32-3x3", 1, 32, 10, 10, 32, 3, 1, 1, 1, 1, "relu" },
    { "small/28-1-8", 1, 1, 28, 28, 8, 5, 1, 2, 1, 1, "relu" },
    { "small/signal", 1, 64, 0, 100, 64, 3, 1, 1, 1, 1, "relu" },
    { "small/signal-1", 1, 1, 0, 512, 16, 5, 2, 0, 1, 1, "relu" },
    { "small/4-256-64", 1, 256, 4, 4, 64, 1, 1, 0, 1, 1, "relu" },
    { "batch/4-64", 4, 64, 28, 28, 64, 3, 1, 1, 1, 1, "relu" },
};

static const struct {
    const char *name;
    int stack, m, k, n;
    gboolean constant; /* the right operand */
} products[] = {
    { "magika/dense", 1, 254, 512, 128, TRUE },     { "vector/768", 1, 1, 768, 768, TRUE },
    { "vector/2048-1000", 1, 1, 2048, 1000, TRUE }, { "few/4x1024", 1, 4, 1024, 1024, TRUE },
    { "bert/query", 1, 128, 768, 768, TRUE },       { "bert/up", 1, 128, 768, 3072, TRUE },
    { "bert/down", 1, 128, 3072, 768, TRUE },       { "bert/scores", 12, 128, 64, 128, FALSE },
    { "bert/values", 12, 128, 128, 64, FALSE },     { "square/512", 1, 512, 512, 512, FALSE },
};

static char *conv_text(const Conv *c, double *flops)
{
    const int reach = (c->k - 1) * c->dilation + 1, w = (c->w + 2 * c->pad - reach) / c->stride + 1;
    const int h = c->h > 0 ? (c->h + 2 * c->pad - reach) / c->stride + 1 : 1;
    g_autoptr(GString) t = g_string_new("opset 17 graph g(%x:f32[");
    g_string_append_printf(t, "%d,%d,", c->n, c->c);
    if (c->h > 0)
        g_string_append_printf(t, "%d,", c->h);
    g_string_append_printf(t, "%d]", c->w);
    if (strcmp(c->after, "add") == 0)
        g_string_append_printf(t, ", %%r:f32[%d,%d,%d,%d]", c->n, c->m, h, w);
    g_string_append_printf(t, ") -> (%%y) { %%%c = %s(%%x, w:f32[%d,%d,%d", *c->after != 0 ? 'c' : 'y',
                           c->up ? "ConvTranspose" : "Conv", c->up ? c->c : c->m, (c->up ? c->m : c->c) / c->group,
                           c->k);
    if (c->h > 0)
        g_string_append_printf(t, ",%d", c->k);
    g_string_append_printf(t, "], b:f32[%d]) group=%d", c->m, c->group);
    const char *two = c->h > 0 ? ",%d" : "";
    static const struct {
        const char *name;
        int times;
    } lists[] = { { "strides", 1 }, { "dilations", 1 }, { "pads", 2 } };
    const int values[] = { c->stride, c->dilation, c->pad };
    for (int i = 0; i < 3; i++) {
        g_string_append_printf(t, " %s=[", lists[i].name);
        for (int k = 0; k < lists[i].times * (*two != 0 ? 2 : 1); k++)
            g_string_append_printf(t, k > 0 ? ",%d" : "%d", values[i]);
        g_string_append_c(t, ']');
    }
    if (strcmp(c->after, "relu") == 0)
        g_string_append(t, " %y = Relu(%c)");
    if (strcmp(c->after, "add") == 0)
        g_string_append(t, " %a = Add(%c, %r) %y = Relu(%a)");
    g_string_append(t, " }");
    *flops = 2.0 * c->n * c->m * (c->up ? c->h * c->w : h * w) * (c->c / c->group) * c->k * (c->h > 0 ? c->k : 1);
    return g_string_free(g_steal_pointer(&t), FALSE);
}

typedef struct {
    HnModel *m;
    HnSession *s;
    HnTimer timer;
    char kernel[48];
    double node, all; /* us */
} Side;

static void side_run(Side *side, GPtrArray *in)
{
    side->timer.n = 0;
    g_ptr_array_unref(test_run(side->s, in));
    double node = 0, all = 0;
    for (gsize i = 0; i < side->timer.n; i++) {
        const HnSpan *span = &side->timer.spans[i];
        const double us = (double)(span->end - span->start) / 1e3;
        all += us;
        if (span->node != NULL) {
            node += us;
            g_strlcpy(side->kernel, span->kernel != NULL ? span->kernel->name : "ref", sizeof side->kernel);
        }
    }
    side->node = MIN(side->node, node);
    side->all = MIN(side->all, all);
}

static double layer_ns;
static const char *own = "cpu.";

static void measure(const char *name, const char *text, double flops, const HnRoofline *roof, int threads)
{
    const char *const prefer[] = { own, "onednn." };
    Side side[2] = { { .node = 1e12, .all = 1e12 }, { .node = 1e12, .all = 1e12 } };
    g_autoptr(GPtrArray) in = NULL;
    for (int i = 0; i < 2; i++) {
        HnSessionOptions o = { .threads = threads, .prefer = prefer[i] };
        side[i].m = test_model(text);
        side[i].s = test_session(side[i].m, &hn_backend_cpu, &o);
        hn_session_set_timer(side[i].s, &side[i].timer);
    }
    in = test_inputs(side[0].s, 1);
    guint64 start = hn_now_ns();
    for (int round = 0; round < 3 || (double)(hn_now_ns() - start) < layer_ns; round++)
        side_run(&side[round % 2], in);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            printf("%-28s", name);
        printf(" %-16s %8.1f us %6.1f GF/s %3.0f %% (all %8.1f)", side[i].kernel, side[i].node,
               flops / side[i].node / 1e3, flops / side[i].node * 1e8 / roof->flops, side[i].all);
        hn_session_free(side[i].s);
        hn_model_free(side[i].m);
        g_free(side[i].timer.spans);
    }
    printf("  x %.2f (all %.2f)\n", side[1].node / side[0].node, side[1].all / side[0].all);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    gint64 threads = 1;
    double seconds = 0.15;
    gboolean ok = TRUE;
    for (; argc > 2 && argv[1][0] == '-'; argv += 2, argc -= 2) {
        if (argv[1][1] == 't')
            ok = ok && hn_parse_int(argv[2], 1, 64, &threads, NULL);
        else if (argv[1][1] == 's')
            ok = ok && hn_parse_double(argv[2], 0, 100, &seconds, NULL);
        else
            own = argv[2];
    }
    if (!ok)
        return 2;
    layer_ns = seconds * 1e9;
    HnRoofline roof;
    hn_roofline_get((int)threads, NULL, FALSE, NULL, &roof);
    printf("%.0f GFLOP/s on %d thread%s\n", roof.flops / 1e9, (int)threads, threads == 1 ? "" : "s");
    for (guint i = 0; i < G_N_ELEMENTS(convs); i++) {
        double flops;
        g_autofree char *text = conv_text(&convs[i], &flops);
        if (argc < 2 || g_regex_match_simple(argv[1], convs[i].name, 0, 0))
            measure(convs[i].name, text, flops, &roof, (int)threads);
    }
    for (guint i = 0; i < G_N_ELEMENTS(products); i++) {
        const int s = products[i].stack, m = products[i].m, k = products[i].k, n = products[i].n;
        g_autofree char *text = g_strdup_printf(
            products[i].constant ? "opset 17 graph g(%%a:f32[%d,%d,%d]) -> (%%y) { %%y = MatMul(%%a, b:f32[%d,%d]) }"
                                 : "opset 17 graph g(%%a:f32[%d,%d,%d], %%b:f32[%d,%d,%d]) -> (%%y) { "
                                   "%%y = MatMul(%%a, %%b) }",
            s, m, k, products[i].constant ? k : s, products[i].constant ? n : k, n);
        if (argc < 2 || g_regex_match_simple(argv[1], products[i].name, 0, 0))
            measure(products[i].name, text, 2.0 * s * m * k * n, &roof, (int)threads);
    }
    return 0;
}
