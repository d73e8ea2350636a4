#!/usr/bin/env python3
"""usage: cuda_peers.py [--only REGEX] [--list] [--small] [--device cpu]

The cases of perf-cuda in PyTorch (its libraries: cuBLAS, cuDNN, fused attention), by the device's clock, as JSON lines: name,
us (the median of 30 recorded calls), tflops where products are counted. f32 is strict: TF32 is off. Needs torch and a GPU.
--list: best_us of products, too: each of the algorithms that cuBLASLt lists, the best one. --small and --device cpu: for
trying this out.
"""
import argparse
import contextlib
import json
import re
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import cublaslt

ROUNDS = 30
SMALL = ("product f32 197x384x384", "relu f32")
device = "cuda"


def r(*dims, t=torch.float32):
    return torch.randn(*dims, device=device, dtype=t)


def host_us(call):
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        call()
        took.append((time.perf_counter() - begin) * 1e6)
    return sorted(took)[1]


def median_us(call, rounds=ROUNDS):
    """Microseconds of a call inside a recorded graph of several, so that launching costs nothing."""
    if device == "cpu":
        return host_us(call)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            call()
    graph.replay()
    took = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        graph.replay()
        b.record()
        torch.cuda.synchronize()
        took.append(a.elapsed_time(b) * 1e3 / 3)
    return sorted(took)[rounds // 2]


def product(m, k, n, t):
    a, b, out = r(m, k, t=t), r(k, n, t=t), r(m, n, t=t)
    return lambda: torch.mm(a, b, out=out), 2 * m * k * n


def best_us(m, k, n, kind):
    """The best of the algorithms that cuBLASLt lists, and how many these were."""
    t = {"f16": torch.float16, "bf16": torch.bfloat16}.get(kind, torch.float32)
    a, b, out = r(m, k, t=t), r(k, n, t=t), r(m, n, t=t)
    room = torch.empty(cublaslt.WORKSPACE, device=device, dtype=torch.uint8)
    p = cublaslt.Product(m, n, k, kind)
    addresses = [x.data_ptr() for x in (a, b, out, room)]
    times = []
    for result in p.found:
        try:
            times.append(median_us(lambda: p.run(result, *addresses, torch.cuda.current_stream().cuda_stream), 10))
        except RuntimeError:  # one that is listed and does not run
            torch.cuda.synchronize()
    p.close()
    return (round(min(times), 2), len(times)) if times else (None, 0)


def conv(n, c, h, o, kernel, t, stride=1, groups=1, last=True):
    x, w = r(n, c, h, h, t=t), r(o, c // groups, kernel, kernel, t=t)
    if last:
        x, w = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
    flops = 2 * n * o * (h // stride) ** 2 * (c // groups) * kernel**2
    return lambda: F.conv2d(x, w, stride=stride, padding=kernel // 2, groups=groups), flops


def attention(b, h, s, d, t, backend=None):
    """By what PyTorch chooses, or by one of its libraries."""
    q, k, v = r(b, h, s, d, t=t), r(b, h, s, d, t=t), r(b, h, s, d, t=t)

    def call():
        with sdpa_kernel(backend) if backend else contextlib.nullcontext():
            return F.scaled_dot_product_attention(q, k, v)

    return call, 4 * b * h * s * s * d


# M, K, N
PRODUCTS = {f"product {t} {m}x{k}x{n}": (m, k, n) for t, m, k, n in (
    ("f32", 197, 384, 384), ("f32", 197, 384, 1536), ("f32", 197, 1536, 384), ("f32", 128, 768, 3072), ("f32", 128, 3072, 768),
    ("f32", 1024, 768, 768), ("f16", 197, 384, 1536), ("f16", 128, 3072, 768), ("f16", 1024, 768, 768))}
PRODUCTS |= {f"product {t} {n}": (n, n, n) for t in ("f32", "f16") for n in (1024, 4096)}
PRODUCTS |= {"product f32 256": (2048, 256, 256), "product f16 256": (2048, 256, 256), "product f16 8192": (8192, 8192, 8192),
             "product f16 of 128 rows": (128, 4096, 4096), "product bf16 4096": (4096, 4096, 4096), "product bf16 1024": (1024, 1024, 1024)}


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
        yield f"conv 3x3 {name}", lambda: conv(32, 64, 56, 64, 3, t)
        yield f"conv 1x1 {name}", lambda: conv(32, 256, 56, 64, 1, t)
    for name, (m, k, n) in PRODUCTS.items():
        yield name, lambda: product(m, k, n, {"f16": f16, "bf16": torch.bfloat16}.get(name.split()[1], f32))
    yield "one row f16", lambda: product(1, 8192, 8192, f16)
    yield "conv 3x3 f16, 14x14", lambda: conv(32, 256, 14, 256, 3, f16)
    yield "conv 3x3 f32, 14x14, one image", lambda: conv(1, 256, 14, 256, 3, f32)
    yield "conv 7x7 by 2 f32", lambda: conv(32, 3, 224, 64, 7, f32, stride=2)
    yield "attention f16", lambda: attention(8, 16, 2048, 64, f16)
    yield "attention f16, cuDNN", lambda: attention(8, 16, 2048, 64, f16, SDPBackend.CUDNN_ATTENTION)
    yield "attention f32", lambda: attention(8, 16, 512, 64, f32)
    yield "max pool 3x3 f32", lambda: (lambda x: (lambda: F.max_pool2d(x, 3, 2, 1), 0))(r(32, 64, 112, 112))
    yield "resize f32", lambda: (lambda x: (lambda: F.interpolate(x, scale_factor=2, mode="bilinear"), 0))(r(32, 64, 56, 56))
    yield "gather rows f32", lambda: (lambda w, i: (lambda: w[i], 0))(
        r(30000, 768), torch.randint(0, 30000, (16384,), device=device))


def measure(name, make, listed):
    row = {"name": name}
    try:
        call, flops = make()
        row["us"] = round(median_us(call), 2)
        row["tflops"] = round(flops / row["us"] * 1e-6, 3)
    except RuntimeError as e:
        row["error"] = str(e).splitlines()[0]
    if listed and name in PRODUCTS:
        try:
            row["best_us"], row["algorithms"] = best_us(*PRODUCTS[name], name.split()[1])
        except RuntimeError as e:
            row["list_error"] = str(e).splitlines()[0]
    print(json.dumps(row), flush=True)


def main():
    global device
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--only", default=".")
    p.add_argument("--list", action="store_true")
    p.add_argument("--small", action="store_true")
    p.add_argument("--device", default="cuda")
    a = p.parse_args()
    device = a.device
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False  # the library's first answer
    for name, make in cases():
        if re.search(a.only, name) and (not a.small or name in SMALL):
            measure(name, make, a.list and device != "cpu")
            if device != "cpu":
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
