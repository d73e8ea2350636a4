/*
 * How fast own kernels and oneDNN's are on layers of known models, in one process and in turns.
 *
 *     build/test/perf-kernels [-t THREADS] [-s SECONDS] [-k KERNELS] [REGEX]
 *
 * Per layer: the least time of hone's own kernel (the first whose name begins with KERNELS) and of oneDNN's, GFLOP/s,
 * percent of what the machine can do (as hone-profile measures it) and how many times faster the first is. Reorder
 * steps around the node are in "all". Of grad/..., what training makes of a layer: the layer, the gradients of its
 * weights and of its source, and what it takes to pack weights anew that have changed. Products with weights of few
 * bits are compared with those of f32, and so are, as bytes/..., convolutions and products of 8-bit integers, with
 * oneDNN's convolutions beside them.
 */
#include <stdio.h>
#include <string.h>

#include "../unit/run_model.h"
#include "base/text.h"
#include "onednn_bytes.h"
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
    { "regnet/1x1-32-24", 1, 32, 112, 112, 24, 1, 1, 0, 1, 1, "relu" },
    { "patches/4x4-3-24", 1, 3, 224, 224, 24, 4, 4, 0, 1, 1, "" },
    { "fastestdet/1x1-96", 1, 96, 22, 22, 96, 1, 1, 0, 1, 1, "relu" },
    { "fastestdet/spp", 1, 336, 22, 22, 96, 1, 1, 0, 1, 1, "relu" },
    { "fastestdet/depthwise", 1, 48, 44, 44, 48, 3, 1, 1, 1, 48, "relu" },
    { "superres/32-5x5", 1, 32, 48, 48, 32, 5, 1, 2, 1, 1, "relu" },
    { "signal/32-k3", 1, 32, 0, 800, 32, 3, 1, 1, 1, 1, "relu" },
    { "signal/64-k5", 1, 64, 0, 400, 64, 5, 1, 2, 1, 1, "relu" },
    { "signal/128-k3", 1, 128, 0, 400, 128, 3, 1, 1, 1, 1, "relu" },
    { "signal/128-k7-d3", 1, 128, 0, 400, 128, 7, 1, 9, 3, 1, "relu" },
    { "signal/192-k7", 1, 192, 0, 400, 192, 7, 1, 3, 1, 1, "relu" },
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
    { "regnet/28-groups-of-8", 1, 56, 28, 28, 56, 3, 1, 1, 1, 7, "relu" },
    { "regnet/56-groups-of-8-s2", 1, 152, 28, 28, 152, 3, 2, 1, 1, 19, "relu" },
    { "resnext/56-groups-of-4", 1, 128, 56, 56, 128, 3, 1, 1, 1, 32, "relu" },
    { "regnet/14-groups-of-16", 1, 368, 14, 14, 368, 3, 1, 1, 1, 23, "relu" },
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
    { "depthwise/8-176-k3-s1", 1, 8, 176, 176, 8, 3, 1, 1, 1, 8, "relu" },
    { "depthwise/16-112-k3-s1", 1, 16, 112, 112, 16, 3, 1, 1, 1, 16, "relu" },
    { "depthwise/64-112-k3-s2", 1, 64, 112, 112, 64, 3, 2, 1, 1, 64, "relu" },
    { "depthwise/58-28-k3-s1", 1, 58, 28, 28, 58, 3, 1, 1, 1, 58, "" },
    { "depthwise/116-14-k3-s1", 1, 116, 14, 14, 116, 3, 1, 1, 1, 116, "" },
    { "depthwise/512-14-k3-s2", 1, 512, 14, 14, 512, 3, 2, 1, 1, 512, "relu" },
    { "depthwise/1024-7-k3-s1", 1, 1024, 7, 7, 1024, 3, 1, 1, 1, 1024, "relu" },
    { "depthwise/96-22-k5-s1", 1, 96, 22, 22, 96, 5, 1, 2, 1, 96, "relu" },
    { "depthwise/96-28-k3-d2", 1, 96, 28, 28, 96, 3, 1, 2, 2, 96, "relu" },
    { "depthwise/96-56-k7-s2", 1, 96, 56, 56, 96, 7, 2, 3, 1, 96, "relu" },
    { "depthwise/512-14-k7-s1", 1, 512, 14, 14, 512, 7, 1, 3, 1, 512, "" },
    { "depthwise/1024-16-k9-s1", 1, 1024, 16, 16, 1024, 9, 1, 4, 1, 1024, "" },
    { "depthwise/512-14-k13-s1", 1, 512, 14, 14, 512, 13, 1, 6, 1, 512, "" },
    { "depthwise/128-56-k31-s1", 1, 128, 56, 56, 128, 31, 1, 15, 1, 128, "" },
    { "unet/up-2", 1, 128, 56, 56, 64, 2, 2, 0, 1, 1, "", TRUE },
    { "dcgan/up-4", 1, 256, 16, 16, 128, 4, 2, 1, 1, 1, "relu", TRUE },
    { "first/3-8-s2", 1, 3, 224, 224, 8, 3, 2, 1, 1, 1, "relu" },
    { "first/3-24-patches", 1, 3, 224, 224, 24, 4, 4, 0, 1, 1, "" },
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

/* Layers of other forms, as text: convolutions of long windows and few channels, and what stands behind convolutions.
 */
static const struct {
    const char *name, *text;
    double flops;
} layers[] = {
    { "pitch/12-7x3",
      "%x:f32[1,12,128,62]) -> (%y) { %c = Conv(%x, w:f32[12,12,7,3], b:f32[12]) pads=[3,1,3,1] %y = Relu(%c)",
      2.0 * 12 * 12 * 21 * 128 * 62 },
    { "pitch/12-7x1",
      "%x:f32[1,12,128,62]) -> (%y) { %c = Conv(%x, w:f32[12,12,7,1], b:f32[12]) pads=[3,0,3,0] %y = Relu(%c)",
      2.0 * 12 * 12 * 7 * 128 * 62 },
    { "pitch/12-7x1-dilated",
      "%x:f32[1,12,128,62]) -> (%y) { %y = Conv(%x, w:f32[12,12,7,1], b:f32[12]) pads=[6,0,6,0] dilations=[2,1]",
      2.0 * 12 * 12 * 7 * 128 * 62 },
    { "pitch/12-4-3x3", "%x:f32[1,12,95,62]) -> (%y) { %y = Conv(%x, w:f32[4,12,3,3], b:f32[4]) pads=[1,1,1,1]",
      2.0 * 12 * 4 * 9 * 95 * 62 },
    { "notes/8-3x39",
      "%x:f32[1,8,172,264]) -> (%y) { %c = Conv(%x, w:f32[8,8,3,39], b:f32[8]) pads=[1,19,1,19] %y = Relu(%c)",
      2.0 * 8 * 8 * 117 * 172 * 264 },
    { "notes/8-1-7x3",
      "%x:f32[1,8,172,88]) -> (%y) { %c = Conv(%x, w:f32[1,8,7,3], b:f32[1]) pads=[3,1,3,1] %y = Sigmoid(%c)",
      2.0 * 8 * 21 * 172 * 88 },
    { "notes/32-1-5x5",
      "%x:f32[1,32,172,88]) -> (%y) { %c = Conv(%x, w:f32[1,32,5,5], b:f32[1]) pads=[2,2,2,2] %y = Sigmoid(%c)",
      2.0 * 32 * 25 * 172 * 88 },
    { "speech/32-64-dilated",
      "%x:f32[1,32,198,64]) -> (%y) { %c = Conv(%x, w:f32[64,32,3,3], b:f32[64]) pads=[1,1,1,1] dilations=[2,1] "
      "%y = LeakyRelu(%c) alpha=0.1",
      2.0 * 32 * 64 * 9 * 196 * 64 },
    { "letters/1x1-240-hardswish",
      "%x:f32[1,240,6,160]) -> (%y) { %c = Conv(%x, w:f32[240,240,1,1], b:f32[240]) %h = HardSwish(%c) "
      "%m = Mul(%h, k:f32={0.5}) %y = Add(%m, j:f32={-0.2})",
      2.0 * 240 * 240 * 6 * 160 },
    { "letters/5x5-240-hardswish",
      "%x:f32[1,240,6,160]) -> (%y) { %c = Conv(%x, w:f32[240,1,5,5], b:f32[240]) group=240 pads=[2,2,2,2] "
      "%h = HardSwish(%c) %m = Mul(%h, k:f32={0.5}) %y = Add(%m, j:f32={-0.2})",
      2.0 * 240 * 25 * 6 * 160 },
    { "inception/128-1x7",
      "%x:f32[1,128,17,17]) -> (%y) { %c = Conv(%x, w:f32[128,128,1,7], b:f32[128]) pads=[0,3,0,3] %y = Relu(%c)",
      2.0 * 128 * 128 * 7 * 17 * 17 },
    { "speech/256-depthwise-33", "%x:f32[1,256,500]) -> (%y) { %y = Conv(%x, w:f32[256,1,33]) group=256 pads=[16,16]",
      2.0 * 256 * 33 * 500 },
    { "speech/512-depthwise-75", "%x:f32[1,512,250]) -> (%y) { %y = Conv(%x, w:f32[512,1,75]) group=512 pads=[37,37]",
      2.0 * 512 * 75 * 250 },
    { "speech/512-depthwise-87-dilated",
      "%x:f32[1,512,250]) -> (%y) { %y = Conv(%x, w:f32[512,1,87]) group=512 pads=[86,86] dilations=[2]",
      2.0 * 512 * 87 * 250 },
    { "speech/up-512-1-16", "%x:f32[1,512,400]) -> (%y) { %y = ConvTranspose(%x, w:f32[512,1,16]) strides=[8]",
      2.0 * 512 * 16 * 400 },
    { "speech/up-514-1-512", "%x:f32[1,514,128]) -> (%y) { %y = ConvTranspose(%x, w:f32[514,1,512]) strides=[128]",
      2.0 * 514 * 512 * 128 },
    { "image/up-64-3-4x4",
      "%x:f32[1,64,56,56]) -> (%y) { %y = ConvTranspose(%x, w:f32[64,3,4,4], b:f32[3]) strides=[2,2] pads=[1,1,1,1]",
      2.0 * 64 * 3 * 16 * 56 * 56 },
    { "image/64-depthwise-13", "%x:f32[1,64,56,56]) -> (%y) { %y = Conv(%x, w:f32[64,1,13,13]) group=64 pads=[6,6,6,6]",
      2.0 * 64 * 169 * 56 * 56 },
    { "words/64-3x1",
      "%x:f32[1,64,32,32]) -> (%y) { %c = Conv(%x, w:f32[64,64,3,1], b:f32[64]) pads=[1,0,1,0] %y = Relu(%c)",
      2.0 * 64 * 64 * 3 * 32 * 32 },
    { "efficient/16-96-swish",
      "%x:f32[1,16,96,96]) -> (%y) { %c = Conv(%x, w:f32[96,16,1,1], b:f32[96]) %s = Sigmoid(%c) %y = Mul(%c, %s)",
      2.0 * 16 * 96 * 96 * 96 },
    { "efficient/144-depthwise-swish",
      "%x:f32[1,144,48,48]) -> (%y) { %c = Conv(%x, w:f32[144,1,3,3], b:f32[144]) group=144 pads=[1,1,1,1] "
      "%s = Sigmoid(%c) %y = Mul(%c, %s)",
      2.0 * 144 * 9 * 48 * 48 },
    { "bert/up-gelu",
      "%x:f32[128,768]) -> (%y) { %m = MatMul(%x, w:f32[768,3072]) %a = Add(%m, b:f32[3072]) %d = Div(%a, "
      "q:f32={1.41421356}) %e = Erf(%d) %o = Add(%e, k:f32={1}) %g = Mul(%a, %o) %y = Mul(%g, h:f32={0.5})",
      2.0 * 128 * 768 * 3072 },
    { "minilm/up-gelu",
      "%x:f32[128,384]) -> (%y) { %m = MatMul(%x, w:f32[384,1536]) %a = Add(%m, b:f32[1536]) %d = Div(%a, "
      "q:f32={1.41421356}) %e = Erf(%d) %o = Add(%e, k:f32={1}) %g = Mul(%a, %o) %y = Mul(%g, h:f32={0.5})",
      2.0 * 128 * 384 * 1536 },
    { "minilm/query-key-value", "%x:f32[128,384]) -> (%y) { %y = MatMul(%x, w:f32[384,1152])", 2.0 * 128 * 384 * 1152 },
    { "minilm/query-128", "%x:f32[128,384]) -> (%y) { %y = MatMul(%x, w:f32[384,384])", 2.0 * 128 * 384 * 384 },
    { "image/last-48-3",
      "%x:f32[1,8,192,192]) -> (%y) { %a = Conv(%x, v:f32[48,8,1,1]) %b = Relu(%a) %y = Conv(%b, w:f32[3,48,3,3]) "
      "pads=[1,1,1,1]",
      2.0 * 48 * 3 * 9 * 192 * 192 },
    { "image/last-32-1-5x5",
      "%x:f32[1,8,160,160]) -> (%y) { %a = Conv(%x, v:f32[32,8,1,1]) %b = Relu(%a) %y = Conv(%b, w:f32[1,32,5,5]) "
      "pads=[2,2,2,2]",
      2.0 * 32 * 25 * 160 * 160 },
    { "words/up-24-1-2x2",
      "%x:f32[1,24,160,160]) -> (%y) { %y = ConvTranspose(%x, w:f32[24,1,2,2], b:f32[1]) strides=[2,2]",
      2.0 * 24 * 4 * 160 * 160 },
    { "masks/transpose-21-224", "%x:f32[1,224,224,21]) -> (%y) { %y = Transpose(%x) perm=[0,3,1,2]", 21 * 224.0 * 224 },
    { "masks/argmax-21-224", "%x:f32[1,21,224,224]) -> (%y) { %y = ArgMax(%x) axis=1", 21 * 224.0 * 224 },
    { "words/argmax-64x5000", "%x:f32[64,5000]) -> (%y) { %y = ArgMax(%x) axis=1", 64 * 5000.0 },
    { "points/top-16-of-512", "%x:f32[512,512]) -> (%y, %i) { %y, %i = TopK(%x, k:i64[1]={16})", 512 * 512.0 },
    { "classes/top-5-of-1000", "%x:f32[64,1000]) -> (%y, %i) { %y, %i = TopK(%x, k:i64[1]={5})", 64 * 1000.0 },
    { "words/24-3x1-leaky",
      "%x:f32[1,24,74,32]) -> (%y) { %c = Conv(%x, w:f32[24,24,3,1], b:f32[24]) %l = LeakyRelu(%c) alpha=0.2 "
      "%y = Max(%l, k:f32={-0.4})",
      2.0 * 24 * 24 * 3 * 72 * 32 },
};

/* Of training, 64 images of 32x32: a ResNet-18 of 16 channels, and a MobileNetV2. */
static const Conv grads[] = {
    { "grad/resnet/3-16-32", 64, 3, 32, 32, 16, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/resnet/16-16-32", 64, 16, 32, 32, 16, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/resnet/16-32-s2", 64, 16, 32, 32, 32, 3, 2, 1, 1, 1, "", FALSE },
    { "grad/resnet/16-32-1x1-s2", 64, 16, 32, 32, 32, 1, 2, 0, 1, 1, "", FALSE },
    { "grad/resnet/32-32-16", 64, 32, 16, 16, 32, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/resnet/32-64-s2", 64, 32, 16, 16, 64, 3, 2, 1, 1, 1, "", FALSE },
    { "grad/resnet/64-64-8", 64, 64, 8, 8, 64, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/resnet/64-128-s2", 64, 64, 8, 8, 128, 3, 2, 1, 1, 1, "", FALSE },
    { "grad/resnet/64-128-1x1-s2", 64, 64, 8, 8, 128, 1, 2, 0, 1, 1, "", FALSE },
    { "grad/resnet/128-128-4", 64, 128, 4, 4, 128, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/digits/1-16", 64, 1, 8, 8, 16, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/digits/16-32", 64, 16, 8, 8, 32, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/mobile/16-depthwise", 64, 16, 32, 32, 16, 3, 1, 1, 1, 16, "", FALSE },
    { "grad/mobile/16-8-1x1", 64, 16, 32, 32, 8, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/mobile/8-48-1x1", 64, 8, 32, 32, 48, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/mobile/48-depthwise-s2", 64, 48, 32, 32, 48, 3, 2, 1, 1, 48, "", FALSE },
    { "grad/mobile/48-16-1x1", 64, 48, 16, 16, 16, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/mobile/16-96-1x1", 64, 16, 16, 16, 96, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/mobile/96-depthwise", 64, 96, 16, 16, 96, 3, 1, 1, 1, 96, "", FALSE },
    { "grad/mobile/96-depthwise-s2", 64, 96, 16, 16, 96, 3, 2, 1, 1, 96, "", FALSE },
    { "grad/mobile/144-24-1x1", 64, 144, 8, 8, 24, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/mobile/144-depthwise", 64, 144, 8, 8, 144, 3, 1, 1, 1, 144, "", FALSE },
    { "grad/mobile/192-depthwise", 64, 192, 4, 4, 192, 3, 1, 1, 1, 192, "", FALSE },
    { "grad/mobile/32-192-1x1", 64, 32, 4, 4, 192, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/mobile/192-48-1x1", 64, 192, 4, 4, 48, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/resnet50-56-3x3", 8, 64, 56, 56, 64, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/resnet50-first", 8, 3, 224, 224, 64, 7, 2, 3, 1, 1, "", FALSE },
    { "grad/resnet50-14-3x3", 8, 256, 14, 14, 256, 3, 1, 1, 1, 1, "", FALSE },
    { "grad/resnet50-14-1x1", 8, 256, 14, 14, 1024, 1, 1, 0, 1, 1, "", FALSE },
    { "grad/resnext-28-grouped", 8, 256, 28, 28, 256, 3, 1, 1, 1, 32, "", FALSE },
    { "grad/depthwise-5x5", 8, 240, 28, 28, 240, 5, 1, 2, 1, 240, "", FALSE },
    { "grad/signal", 16, 64, 0, 500, 64, 5, 2, 2, 1, 1, "", FALSE },
    { "grad/dilated", 4, 64, 28, 28, 64, 3, 1, 2, 2, 1, "", FALSE },
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
    { "minilm/query", 1, 64, 384, 384, TRUE },      { "minilm/up", 1, 64, 384, 1536, TRUE },
    { "minilm/down", 1, 64, 1536, 384, TRUE },      { "letters/last", 1, 40, 120, 6625, TRUE },
    { "vit/query", 1, 197, 192, 192, TRUE },        { "vit/up", 1, 197, 192, 768, TRUE },
};

static const int weights_rows[] = { 1, 4, 16, 64, 256 }, weights_k[] = { 768, 1024, 2048 };

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

/* Sides of texts that take turns. */
static void run_sides(Side *side, int n, const char *const *text, const char *const *prefer, int threads)
{
    g_autoptr(GPtrArray) in = NULL;
    for (int i = 0; i < n; i++) {
        HnSessionOptions o = { .threads = threads, .prefer = prefer[i] };
        side[i] = (Side){ .node = 1e12, .all = 1e12 };
        side[i].m = test_model(text[i]);
        side[i].s = test_session(side[i].m, &hn_backend_cpu, &o);
        hn_session_set_timer(side[i].s, &side[i].timer);
    }
    in = test_inputs(side[0].s, 1);
    guint64 start = hn_now_ns();
    for (int round = 0; round < 3 * n || (double)(hn_now_ns() - start) < layer_ns; round++)
        side_run(&side[round % n], in);
    for (int i = 0; i < n; i++) {
        hn_session_free(side[i].s);
        hn_model_free(side[i].m);
        g_free(side[i].timer.spans);
    }
}

static void measure(const char *name, const char *text, double flops, const HnRoofline *roof, int threads)
{
    Side side[2];
    run_sides(side, 2, (const char *const[]){ text, text }, (const char *const[]){ own, "onednn." }, threads);
    printf("%-28s", name);
    for (int i = 0; i < 2; i++)
        printf(" %-16s %8.1f us %6.1f GF/s %3.0f %% (all %8.1f)", side[i].kernel, side[i].node,
               flops / side[i].node / 1e3, flops / side[i].node * 1e8 / roof->flops, side[i].all);
    printf("  x %.2f (all %.2f)\n", side[1].node / side[0].node, side[1].all / side[0].all);
    fflush(stdout);
}

static int out_size(const Conv *c, int in)
{
    return (in + 2 * c->pad - (c->k - 1) * c->dilation - 1) / c->stride + 1;
}

/* A convolution and its gradients, as the nodes that training makes of it. */
static char *grad_text(const Conv *c, int which)
{
    const gboolean two = c->h > 0;
    const int h = two ? out_size(c, c->h) : 1, w = out_size(c, c->w);
    g_autofree char *x = two ? g_strdup_printf("f32[%d,%d,%d,%d]", c->n, c->c, c->h, c->w)
                             : g_strdup_printf("f32[%d,%d,%d]", c->n, c->c, c->w);
    g_autofree char *y =
        two ? g_strdup_printf("f32[%d,%d,%d,%d]", c->n, c->m, h, w) : g_strdup_printf("f32[%d,%d,%d]", c->n, c->m, w);
    g_autofree char *weights = two ? g_strdup_printf("w:f32[%d,%d,%d,%d]", c->m, c->c / c->group, c->k, c->k)
                                   : g_strdup_printf("w:f32[%d,%d,%d]", c->m, c->c / c->group, c->k);
    g_autoptr(GString) attrs = g_string_new(NULL);
    const char *lists[] = { two ? "strides=[%d,%d] " : "strides=[%d] ", two ? "dilations=[%d,%d] " : "dilations=[%d] ",
                            two ? "pads=[%d,%d,%d,%d]" : "pads=[%d,%d]" };
    const int values[] = { c->stride, c->dilation, c->pad };
    for (int i = 0; i < 3; i++)
        for (const char *p = lists[i]; *p != 0; p++)
            if (*p == '%')
                g_string_append_printf(attrs, "%d", values[i]), p++;
            else
                g_string_append_c(attrs, *p);
    g_string_append_printf(attrs, " group=%d", c->group);
    if (which == 0)
        return g_strdup_printf("opset 17 graph g(%%x:%s) -> (%%y) { %%y = Conv(%%x, %s) %s }", x, weights, attrs->str);
    if (which == 1)
        return g_strdup_printf("opset 17 opset hone 1 graph g(%%x:%s, %%d:%s) -> (%%dw, %%db) { %%dw, %%db = "
                               "hone::ConvWeightGrad(%%x, %%d, %s) "
                               "%s }",
                               x, y, weights, attrs->str);
    const int reach = (c->k - 1) * c->dilation + 1;
    const int over_w = c->w - ((w - 1) * c->stride + reach - 2 * c->pad);
    const int over_h = c->h - ((h - 1) * c->stride + reach - 2 * c->pad);
    g_string_append_printf(attrs, two ? " output_padding=[%d,%d]" : " output_padding=[%d]", two ? over_h : over_w,
                           over_w);
    return g_strdup_printf("opset 17 graph g(%%d:%s) -> (%%x) { %%x = ConvTranspose(%%d, %s) %s }", y, weights,
                           attrs->str);
}

/* One node whose weights are a variable; returns the least time, in us, that a run takes longer when they have changed:
 * that of packing them. */
static double run_variable(Side *side, const char *text, int threads)
{
    g_autoptr(GError) error = NULL;
    const HnVariable variables[] = { { .name = "w" }, { .name = NULL } };
    *side = (Side){ .node = 1e12, .all = 1e12, .m = test_model(text) };
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
    g_assert_no_error(error);
    HnEngine *e = hn_engine_new(side->m, device, &(HnEngineOptions){ .variables = variables }, &error);
    g_assert_no_error(error);
    side->s = hn_session_new_on(e, &(HnSessionOptions){ .threads = threads, .prefer = own }, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) in = test_inputs(side->s, 1);
    double least[2] = { 1e12, 1e12 };
    const guint64 start = hn_now_ns();
    hn_session_set_timer(side->s, &side->timer);
    for (int round = 0; round < 8 || (double)(hn_now_ns() - start) < layer_ns; round++) {
        if (round % 2 == 1)
            hn_engine_wrote(e);
        const guint64 begin = hn_now_ns();
        side_run(side, in);
        least[round % 2] = MIN(least[round % 2], (double)(hn_now_ns() - begin) / 1e3);
    }
    hn_session_free(side->s);
    hn_engine_unref(e);
    hn_model_free(side->m);
    g_free(side->timer.spans);
    return MAX(least[1] - least[0], 0);
}

static void measure_grads(const Conv *c, const HnRoofline *roof, int threads)
{
    static const char *const names[] = { "", " dW", " dX" };
    const int h = c->h > 0 ? out_size(c, c->h) : 1;
    const double taps = c->h > 0 ? (double)c->k * c->k : c->k;
    const double flops = 2.0 * c->n * c->m * h * out_size(c, c->w) * (c->c / c->group) * taps;
    printf("%-28s", c->name);
    for (int i = 0; i < 3; i++) {
        Side side;
        g_autofree char *text = grad_text(c, i);
        const double packing = run_variable(&side, text, threads);
        printf("%s %-26s %8.1f us %3.0f %%", names[i], side.kernel, side.node, flops / side.node * 1e8 / roof->flops);
        if (i != 1)
            printf(" (packing %6.1f)", packing);
    }
    printf("\n");
    fflush(stdout);
}

/* Rows times k x k weights of 8 bits with a scale per column, and of 4 bits with one for 32, against f32. */
static void measure_weights(const char *name, int rows, int k, int threads)
{
    Side side[4];
    g_autofree char *plain =
        g_strdup_printf("opset 21 graph g(%%x:f32[%d,%d]) -> (%%y) { %%y = MatMul(%%x, w:f32[%d,%d]) }", rows, k, k, k);
    g_autofree char *bytes = g_strdup_printf(
        "opset 21 graph g(%%x:f32[%d,%d]) -> (%%y) { %%w = DequantizeLinear(q:i8[%d,%d], s:f32[%d]) axis=1 "
        "%%y = MatMul(%%x, %%w) }",
        rows, k, k, k, k);
    g_autofree char *nibbles = g_strdup_printf(
        "opset 21 graph g(%%x:f32[%d,%d]) -> (%%y) { %%w = DequantizeLinear(q:u4[%d,%d], s:f32[%d,%d], z:u4[%d,%d]) "
        "axis=0 block_size=32 %%y = MatMul(%%x, %%w) }",
        rows, k, k, k, k / 32, k, k / 32, k);
    run_sides(side, 4, (const char *const[]){ plain, plain, bytes, nibbles },
              (const char *const[]){ own, "onednn.", NULL, NULL }, threads);
    const double best = MIN(side[0].all, side[1].all);
    printf("%-28s f32 %8.1f us, oneDNN %8.1f us, 8 bits %8.1f us x %.2f, 4 bits %8.1f us x %.2f\n", name, side[0].all,
           side[1].all, side[2].all, best / side[2].all, side[3].all, best / side[3].all);
    fflush(stdout);
}

static void print_bytes(const char *name, const Side *side, double onednn, double flops)
{
    printf("%-34s %-18s %8.1f us %6.0f GOP/s, f32 %-16s %8.1f us x %.2f", name, side[0].kernel, side[0].node,
           flops / side[0].node / 1e3, side[1].kernel, side[1].node, side[1].node / side[0].node);
    if (isfinite(onednn))
        printf(", oneDNN's bytes %8.1f us x %.2f", onednn, onednn / side[0].node);
    printf("\n");
    fflush(stdout);
}

/* A convolution of bytes by bytes to bytes against that of f32, and against oneDNN's. */
static void measure_byte_conv(const char *name, const Conv *c, int threads)
{
    double flops;
    Side side[2];
    Conv plain = *c;
    plain.after = strcmp(c->after, "relu") == 0 ? "relu" : "";
    g_autofree char *numbers = conv_text(&plain, &flops);
    const int k = c->k, s = c->stride, d = c->dilation, p = c->pad;
    g_autofree char *bytes = g_strdup_printf(
        "opset 17 graph g(%%x:u8[%d,%d,%d,%d]) -> (%%y) { %%y = QLinearConv(%%x, xs:f32={0.02}, xz:u8={110}, "
        "w:i8[%d,%d,%d,%d]=fill(1,-63,63), ws:f32[%d]=fill(2,0.001,0.01), wz:i8={0}, ys:f32={0.05}, yz:u8={3}, "
        "b:i32[%d]=fill(3,-99,99)) group=%d strides=[%d,%d] dilations=[%d,%d] pads=[%d,%d,%d,%d] }",
        c->n, c->c, c->h, c->w, c->m, c->c / c->group, k, k, c->m, c->m, c->group, s, s, d, d, p, p, p, p);
    const PerfConv same = { c->n, c->c, c->h, c->w, c->m, k, s, p, d, c->group };
    run_sides(&side[0], 1, (const char *const[]){ bytes }, (const char *const[]){ NULL }, threads);
    run_sides(&side[1], 1, (const char *const[]){ numbers }, (const char *const[]){ own }, threads);
    print_bytes(name, side, perf_onednn_bytes(&same, threads, layer_ns), flops);
}

static void measure_byte_product(const char *name, int m, int k, int n, int threads)
{
    Side side[2];
    g_autofree char *numbers =
        g_strdup_printf("opset 17 graph g(%%a:f32[%d,%d]) -> (%%y) { %%y = MatMul(%%a, b:f32[%d,%d]) }", m, k, k, n);
    g_autofree char *bytes = g_strdup_printf(
        "opset 17 graph g(%%a:u8[%d,%d]) -> (%%y) { %%y = QLinearMatMul(%%a, as:f32={0.02}, az:u8={110}, "
        "b:i8[%d,%d]=fill(1,-63,63), bs:f32={0.002}, bz:i8={0}, ys:f32={0.05}, yz:u8={3}) }",
        m, k, k, n);
    run_sides(&side[0], 1, (const char *const[]){ bytes }, (const char *const[]){ NULL }, threads);
    run_sides(&side[1], 1, (const char *const[]){ numbers }, (const char *const[]){ own }, threads);
    print_bytes(name, side, NAN, 2.0 * m * k * n);
}

/* Is it asked for? With bytes/ in front. */
static char *byte_name(const char *name, const char *wanted)
{
    char *s = g_strconcat("bytes/", name, NULL);
    if (wanted == NULL || g_regex_match_simple(wanted, s, 0, 0))
        return s;
    g_free(s);
    return NULL;
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
    for (guint i = 0; i < G_N_ELEMENTS(layers); i++) {
        g_autofree char *text = g_strdup_printf("opset 17 graph g(%s }", layers[i].text);
        if (argc < 2 || g_regex_match_simple(argv[1], layers[i].name, 0, 0))
            measure(layers[i].name, text, layers[i].flops, &roof, (int)threads);
    }
    for (guint i = 0; i < G_N_ELEMENTS(grads); i++)
        if (argc < 2 || g_regex_match_simple(argv[1], grads[i].name, 0, 0))
            measure_grads(&grads[i], &roof, (int)threads);
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
    for (guint i = 0; i < G_N_ELEMENTS(weights_rows); i++)
        for (guint j = 0; j < G_N_ELEMENTS(weights_k); j++) {
            g_autofree char *name = g_strdup_printf("weights/%dx%d", weights_rows[i], weights_k[j]);
            if (argc < 2 || g_regex_match_simple(argv[1], name, 0, 0))
                measure_weights(name, weights_rows[i], weights_k[j], (int)threads);
        }
    for (guint i = 0; i < G_N_ELEMENTS(convs); i++) {
        g_autofree char *name = byte_name(convs[i].name, argc < 2 ? NULL : argv[1]);
        if (name != NULL && convs[i].h > 0 && !convs[i].up)
            measure_byte_conv(name, &convs[i], (int)threads);
    }
    for (guint i = 0; i < G_N_ELEMENTS(products); i++) {
        g_autofree char *name = byte_name(products[i].name, argc < 2 ? NULL : argv[1]);
        if (name != NULL && products[i].constant)
            measure_byte_product(name, products[i].m, products[i].k, products[i].n, (int)threads);
    }
    return 0;
}
