#!/usr/bin/env python3
"""usage: cuda_models.py [--compile] [--batch N] [--device cpu] MODEL.onnx...

Whole networks in PyTorch on a GPU, converted by onnx2torch: one JSON line for each with the median of a call in
milliseconds, inputs from host memory and results back to it, eager and replayed from a CUDA graph (with --compile also
torch.compile, max-autotune). f32 is strict: TF32 is off. Needs torch, onnx, onnx2torch and a GPU.
"""
import argparse
import json
import os
import time

import numpy as np
import onnx
import torch
from onnx2torch import convert

TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 10: np.float16}


def inputs(model, batch):
    names = {i.name for i in model.graph.initializer}
    r = np.random.default_rng(1)
    for value in model.graph.input:
        if value.name not in names:
            t = value.type.tensor_type
            dims = [d.dim_value or batch for d in t.shape.dim]
            x = torch.from_numpy(r.random(dims).astype(TYPES[t.elem_type]))
            yield x.pin_memory() if torch.cuda.is_available() else x


def median_ms(call, seconds=1.0):
    for _ in range(5):
        call()
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return round(sorted(took)[len(took) // 2] * 1e3, 4)


def results(y):
    return y if isinstance(y, (list, tuple)) else [y]


def measure(path, batch, compiled, where):
    model = onnx.load(path)
    net = convert(model).eval().to(where)
    host = list(inputs(model, batch))
    device = [x.to(where) for x in host]
    row = {"model": os.path.basename(os.path.dirname(path)) or path, "batch": batch}

    def eager():
        with torch.no_grad():
            for d, h in zip(device, host):
                d.copy_(h, non_blocking=True)
            return [y.cpu() for y in results(net(*device))]

    def recorded(f):
        with torch.no_grad():
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    f(*device)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = results(f(*device))

        def call():
            for d, h in zip(device, host):
                d.copy_(h, non_blocking=True)
            graph.replay()
            return [y.cpu() for y in out]

        return call

    forms = {"eager_ms": lambda: eager, "graph_ms": lambda: recorded(net)}
    if compiled:
        forms["compile_graph_ms"] = lambda: recorded(torch.compile(net, mode="max-autotune-no-cudagraphs"))
    for name, make in forms.items():
        try:
            row[name] = median_ms(make())
        except Exception as e:  # sizes that a network computes as it runs cannot be recorded
            row[name] = f"{type(e).__name__}: {e}".splitlines()[0][:100]
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    return row


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--batch", type=int, default=1)
    ap.add_argument("--device", default="cuda")
    ap.add_argument("models", nargs="+")
    a = ap.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for path in a.models:
        try:
            print(json.dumps(measure(path, a.batch, a.compile, a.device)), flush=True)
        except Exception as e:  # a converter that lacks an operator is no end of the others
            print(json.dumps({"model": path, "error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}), flush=True)


if __name__ == "__main__":
    main()
