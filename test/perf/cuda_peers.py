#!/usr/bin/env python3
"""usage: cuda_peers.py [--only REGEX]

The cases of perf-cuda in PyTorch (its libraries: cuBLAS, cuDNN, fused attention), by the device's clock, as JSON lines: name,
us (the better of plain and recorded calls; the median of 30), tflops where products are counted. f32 is strict: TF32 is off.
Needs torch and a GPU.
"""
import json
import re
import sys

import torch
import torch.nn.functional as F

ROUNDS = 30


def r(*dims, t=torch.float32):
    return torch.randn(*dims, device="cuda", dtype=t)


def median_us(call):
    """Microseconds of a call inside a recorded graph of several, so that launching costs nothing."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            call()
    graph.replay()
    took = []
    for _ in range(ROUNDS):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        graph.replay()
        b.record()
        torch.cuda.synchronize()
        took.append(a.elapsed_time(b) * 1e3 / 3)
    return sorted(took)[ROUNDS // 2]


def product(m, k, n, t):
    a, b, out = r(m, k, t=t), r(k, n, t=t), r(m, n, t=t)
    return lambda: torch.mm(a, b, out=out), 2 * m * k * n


def conv(n, c, h, o, kernel, t, stride=1, groups=1, last=True):
    x, w = r(n, c, h, h, t=t), r(o, c // groups, kernel, kernel, t=t)
    if last:
        x, w = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
    flops = 2 * n * o * (h // stride) ** 2 * (c // groups) * kernel**2
    return lambda: F.conv2d(x, w, stride=stride, padding=kernel // 2, groups=groups), flops


def attention(b, h, s, d, t):
    q, k, v = r(b, h, s, d, t=t), r(b, h, s, d, t=t), r(b, h, s, d, t=t)
    return lambda: F.scaled_dot_product_attention(q, k, v), 4 * b * h * s * s * d


def cases():
    f32, f16 = torch.float32, torch.float16
    for t, name, rows in ((f32, "f32", 16384), (f16, "f16", 32768)):
        yield f"relu {name}", lambda: (lambda x: (lambda: torch.relu(x), 0))(r(rows, 1024, t=t))
        yield f"softmax {name}", lambda: (lambda x: (lambda: torch.softmax(x, -1), 0))(r(rows, 1024, t=t))
    yield "layer norm f32", lambda: (lambda x, s: (lambda: F.layer_norm(x, (1024,), s), 0))(r(16384, 1024), r(1024))
    yield "transpose f32", lambda: (lambda x: (lambda: x.t().contiguous(), 0))(r(16384, 1024))
    yield "sum of rows f32", lambda: (lambda x: (lambda: x.sum(-1), 0))(r(16384, 1024))
    yield "concat f32", lambda: (lambda x: (lambda: torch.cat((x, x), 1), 0))(r(8192, 1024))
    yield "depthwise 3x3 f32", lambda: conv(32, 64, 112, 64, 3, f32, groups=64, last=False)
    for t, name in ((f32, "f32"), (f16, "f16")):
        yield f"product {name} 4096", lambda: product(4096, 4096, 4096, t)
        yield f"product {name} 1024", lambda: product(1024, 1024, 1024, t)
        yield f"conv 3x3 {name}", lambda: conv(32, 64, 56, 64, 3, t)
        yield f"conv 1x1 {name}", lambda: conv(32, 256, 56, 64, 1, t)
    for t, name, sizes in ((f32, "f32", ((197, 384, 384), (197, 384, 1536), (197, 1536, 384), (128, 768, 3072), (128, 3072, 768), (1024, 768, 768))),
                           (f16, "f16", ((197, 384, 1536), (128, 3072, 768), (1024, 768, 768)))):
        for m, k, n in sizes:
            yield f"product {name} {m}x{k}x{n}", lambda: product(m, k, n, t)
    yield "product f32 256", lambda: product(2048, 256, 256, f32)
    yield "product f16 8192", lambda: product(8192, 8192, 8192, f16)
    yield "product f16 of 128 rows", lambda: product(128, 4096, 4096, f16)
    yield "one row f16", lambda: product(1, 8192, 8192, f16)
    yield "conv 3x3 f16, 14x14", lambda: conv(32, 256, 14, 256, 3, f16)
    yield "conv 3x3 f32, 14x14, one image", lambda: conv(1, 256, 14, 256, 3, f32)
    yield "conv 7x7 by 2 f32", lambda: conv(32, 3, 224, 64, 7, f32, stride=2)
    yield "attention f16", lambda: attention(8, 16, 2048, 64, f16)
    yield "attention f32", lambda: attention(8, 16, 512, 64, f32)
    yield "max pool 3x3 f32", lambda: (lambda x: (lambda: F.max_pool2d(x, 3, 2, 1), 0))(r(32, 64, 112, 112))
    yield "resize f32", lambda: (lambda x: (lambda: F.interpolate(x, scale_factor=2, mode="bilinear"), 0))(r(32, 64, 56, 56))
    yield "gather rows f32", lambda: (lambda w, i: (lambda: w[i], 0))(
        r(30000, 768), torch.randint(0, 30000, (16384,), device="cuda"))


def main():
    only = re.compile(sys.argv[2] if len(sys.argv) == 3 and sys.argv[1] == "--only" else ".")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False  # the library's first answer
    for name, make in cases():
        if only.search(name):
            try:
                call, flops = make()
                us = median_us(call)
                print(json.dumps({"name": name, "us": round(us, 2), "tflops": round(flops / us * 1e-6, 3)}), flush=True)
            except RuntimeError as e:
                print(json.dumps({"name": name, "error": str(e).splitlines()[0]}), flush=True)
            torch.cuda.empty_cache()


main()
