#!/usr/bin/env python3
"""Transformers as ONNX Runtime's optimizer writes them, against the models they were made of; prints TAP.

usage: optimized.py TOOLS [--keep DIR] [--time]

Small BERT, GPT-2, T5 and Whisper-like networks with random weights, in the forms that PyTorch exports, go through
onnxruntime.transformers.optimizer. What it writes has fused nodes; hone-run agrees with ONNX Runtime on the original
within 1e-4 of the largest element, and so does OpenVINO on what `hone-export --to-core` writes.

--time: larger networks instead, and how long ONNX Runtime takes for what hone-export writes of the original, as a part
of its time for the optimizer's file: one thread, in turns, the least of 40.
"""
import argparse
import collections
import io
import logging
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper, numpy_helper
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

F, I = np.float32, np.int64
BATCH, TOKENS, WIDTH, HEADS, VOCABULARY, PLACES = 2, 10, 64, 4, 50, 64
SIZE = WIDTH // HEADS


class Net:
    """A graph under construction: each call of an operator's name adds a node and returns its result's name."""

    def __init__(self, opset=14, seed=0):
        self.nodes, self.weights, self.inputs, self.n, self.opset = [], [], [], 0, opset
        self.r = np.random.default_rng(seed)

    def __getattr__(self, op):
        def add(*args, n=1, out=None, **attrs):
            outs = [out] if out else [self.name(op) for _ in range(n)]
            ins = [a if isinstance(a, str) else self.w(a) for a in args]
            self.nodes.append(helper.make_node(op, ins, outs, name=outs[0] + "_node", **attrs))
            return outs[0] if n == 1 else outs
        return add

    def name(self, of):
        self.n += 1
        return f"{of.lower()}_{self.n}"

    def w(self, array):
        name = self.name("w")
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def random(self, *dims):
        return self.w(self.r.normal(0, dims[0] ** -0.5 if len(dims) > 1 else 0.1, dims).astype(F))

    def feed(self, name, dtype, dims):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        return name

    def dense(self, x, n, k, bias=True):
        y = self.MatMul(x, self.random(n, k))
        return self.Add(self.random(k), y) if bias else y

    def norm(self, x):
        """LayerNormalization, written out as it was before opset 17."""
        d = self.Sub(x, self.ReduceMean(x, axes=[-1]))
        v = self.ReduceMean(self.Pow(d, F(2)), axes=[-1])
        y = self.Div(d, self.Sqrt(self.Add(v, F(1e-5))))
        return self.Add(self.Mul(y, self.random(WIDTH)), self.random(WIDTH))

    def rms(self, x):
        v = self.ReduceMean(self.Pow(x, F(2)), axes=[-1], keepdims=1)
        return self.Mul(self.random(WIDTH), self.Mul(x, self.Div(F(1), self.Sqrt(self.Add(v, F(1e-6))))))

    def gelu(self, x):
        return self.Mul(self.Mul(x, self.Add(self.Erf(self.Div(x, F(2 ** 0.5))), F(1))), F(0.5))

    def heads(self, x, perm):
        return self.Transpose(self.Reshape(x, np.array([0, 0, HEADS, SIZE], I)), perm=perm)

    def joined(self, x):
        return self.Reshape(self.Transpose(x, perm=[0, 2, 1, 3]), np.array([0, 0, WIDTH], I))

    def row_dims(self, x, *last):
        """Batch and length of x and these, as PyTorch computes shapes."""
        shape = self.Shape(x)
        parts = [self.Unsqueeze(self.Gather(shape, np.array(i, I), axis=0), np.array([0], I)) for i in (0, 1)]
        return self.Concat(*parts, *[np.array([v], I) for v in last], axis=0)

    def model(self, out, dims):
        outs = [helper.make_tensor_value_info(out, 1, dims)]
        graph = helper.make_graph(self.nodes, "net", self.inputs, outs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def keep_mask(g, mask):
    wide = g.Unsqueeze(g.Unsqueeze(mask, np.array([1], I)), np.array([2], I))
    return g.Mul(g.Sub(F(1), g.Cast(wide, to=1)), F(-10000))


def bert():
    g = Net()
    ids, segments, mask = (g.feed(n, 7, ["b", "s"]) for n in ("input_ids", "token_type_ids", "attention_mask"))
    places = g.Slice(np.arange(PLACES, dtype=I)[None], np.array([0], I),
                     g.Unsqueeze(g.Gather(g.Shape(ids), np.array(1, I), axis=0), np.array([0], I)), np.array([1], I))
    x = g.Add(g.Gather(g.random(VOCABULARY, WIDTH), ids), g.Gather(g.random(2, WIDTH), segments))
    x = g.norm(g.Add(x, g.Gather(g.random(PLACES, WIDTH), places)))
    add = keep_mask(g, mask)
    for _ in range(2):
        q, k, v = (g.dense(x, WIDTH, WIDTH) for _ in range(3))
        s = g.Div(g.MatMul(g.heads(q, [0, 2, 1, 3]), g.heads(k, [0, 2, 3, 1])), F(SIZE ** 0.5))
        a = g.joined(g.MatMul(g.Softmax(g.Add(s, add), axis=-1), g.heads(v, [0, 2, 1, 3])))
        x = g.norm(g.Add(g.dense(a, WIDTH, WIDTH), x))
        h = g.gelu(g.dense(x, WIDTH, 4 * WIDTH))
        x = g.norm(g.Add(g.dense(h, 4 * WIDTH, WIDTH), x))
    g.Identity(x, out="y")
    on = np.ones((BATCH, TOKENS), I)
    on[-1, 7:] = 0
    second = np.zeros((BATCH, TOKENS), I) + (np.arange(TOKENS) > 4)
    feeds = {"input_ids": g.r.integers(0, VOCABULARY, (BATCH, TOKENS)), "token_type_ids": second, "attention_mask": on}
    return g.model("y", ["b", "s", WIDTH]), feeds, "bert", {"Attention", "SkipLayerNormalization", "BiasGelu"}


def tanh_gelu(g, x):
    u = g.Mul(g.Add(x, g.Mul(g.Pow(x, F(3)), F(0.044715))), F((2 / np.pi) ** 0.5))
    return g.Mul(g.Mul(x, F(0.5)), g.Add(g.Tanh(u), F(1)))


def gpt2():
    g = Net()
    ids = g.feed("input_ids", 7, ["b", "s"])
    x = g.Gather(g.random(VOCABULARY, WIDTH), ids)
    causal = np.tril(np.ones((PLACES, PLACES), bool))[None, None]
    at = lambda v: np.array([v], I)

    def gemm(x, n, k):
        rows = g.Reshape(x, np.array([-1, n], I))
        return g.Reshape(g.Gemm(rows, g.random(n, k), g.random(k)), g.row_dims(x, k))

    for _ in range(2):
        parts = g.Split(gemm(g.norm(x), WIDTH, 3 * WIDTH), np.array([WIDTH] * 3, I), axis=2, n=3)
        q, k, v = (g.heads(p, t) for p, t in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
        s = g.Div(g.MatMul(q, k), F(SIZE ** 0.5))
        shape = g.Shape(s)
        ns = g.Squeeze(g.Slice(shape, at(-1), at(2 ** 31), at(0)))
        nd = g.Squeeze(g.Slice(shape, at(-2), at(-1), at(0)))
        rows = g.Slice(causal, g.Unsqueeze(g.Sub(ns, nd), at(0)), g.Unsqueeze(ns, at(0)), at(2), at(1))
        seen = g.Slice(rows, at(0), g.Unsqueeze(ns, at(0)), at(3), at(1))
        p = g.Softmax(g.Where(seen, s, F(-10000)), axis=3)
        a = g.joined(g.MatMul(p, v))
        rows = g.Reshape(a, np.array([-1, WIDTH], I))
        x = g.Add(x, g.Reshape(g.Gemm(rows, g.random(WIDTH, WIDTH), g.random(WIDTH)), g.row_dims(a, WIDTH)))
        h = tanh_gelu(g, gemm(g.norm(x), WIDTH, 4 * WIDTH))
        x = g.Add(x, gemm(h, 4 * WIDTH, WIDTH))
    g.Identity(g.norm(x), out="y")
    return (g.model("y", ["b", "s", WIDTH]), {"input_ids": g.r.integers(0, VOCABULARY, (BATCH, TOKENS))}, "gpt2",
            {"Attention", "FastGelu", "SkipLayerNormalization"})


def t5():
    g = Net()
    x, mask = g.feed("x", 1, ["b", "s", WIDTH]), g.feed("attention_mask", 7, ["b", "s"])
    bias = g.Unsqueeze(g.random(HEADS, TOKENS, TOKENS), np.array([0], I))
    add = g.Add(bias, keep_mask(g, mask))
    for _ in range(2):
        n = g.rms(x)
        q, k, v = (g.dense(n, WIDTH, WIDTH, False) for _ in range(3))
        s = g.MatMul(g.heads(q, [0, 2, 1, 3]), g.heads(k, [0, 2, 3, 1]))
        a = g.joined(g.MatMul(g.Softmax(g.Add(s, add), axis=-1), g.heads(v, [0, 2, 1, 3])))
        x = g.Add(x, g.dense(a, WIDTH, WIDTH, False))
        n = g.rms(x)
        gate = tanh_gelu(g, g.dense(n, WIDTH, 2 * WIDTH, False))
        x = g.Add(x, g.dense(g.Mul(gate, g.dense(n, WIDTH, 2 * WIDTH, False)), 2 * WIDTH, WIDTH, False))
    g.Identity(g.rms(x), out="y")
    on = np.ones((BATCH, TOKENS), I)
    on[0, 6:] = 0
    return (g.model("y", ["b", "s", WIDTH]),
            {"x": g.r.normal(0, 1, (BATCH, TOKENS, WIDTH)).astype(F), "attention_mask": on}, "t5",
            {"SkipSimplifiedLayerNormalization", "FastGelu"})


def whisper():
    """An encoder behind two convolutions, and a decoder with attention to itself and to the encoder."""
    g = Net()
    sound, x = g.feed("sound", 1, ["b", 20, "t"]), g.feed("x", 1, ["b", "s", WIDTH])
    conv = lambda x, n, s: g.gelu(g.Conv(x, g.random(WIDTH, n, 3), g.random(WIDTH), pads=[1, 1], strides=[s]))
    e = g.Transpose(conv(conv(sound, 20, 1), WIDTH, 2), perm=[0, 2, 1])

    def attend(x, of, add=None):
        q = g.Mul(g.dense(x, WIDTH, WIDTH), F(SIZE ** -0.5))
        k, v = g.MatMul(of, g.random(WIDTH, WIDTH)), g.dense(of, WIDTH, WIDTH)
        s = g.MatMul(g.heads(q, [0, 2, 1, 3]), g.heads(k, [0, 2, 3, 1]))
        s = s if add is None else g.Add(s, add)
        return g.dense(g.joined(g.MatMul(g.Softmax(s, axis=-1), g.heads(v, [0, 2, 1, 3]))), WIDTH, WIDTH)

    def feed_forward(x):
        return g.dense(g.gelu(g.dense(g.norm(x), WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH)

    for _ in range(2):
        n = g.norm(e)
        e = g.Add(e, attend(n, n))
        e = g.Add(e, feed_forward(e))
    e = g.norm(e)
    causal = g.Where(np.tril(np.ones((TOKENS, TOKENS), bool))[None, None], np.zeros((1, 1, 1, 1), F),
                     np.full((1, 1, 1, 1), -1e9, F))
    for _ in range(2):
        n = g.norm(x)
        x = g.Add(x, attend(n, n, causal))
        x = g.Add(x, attend(g.norm(x), e))
        x = g.Add(x, feed_forward(x))
    g.Identity(g.norm(x), out="y")
    return (g.model("y", ["b", "s", WIDTH]), {"sound": g.r.normal(0, 1, (BATCH, 20, 24)).astype(F),
                                              "x": g.r.normal(0, 1, (BATCH, TOKENS, WIDTH)).astype(F)}, "bart",
            {"Attention", "SkipLayerNormalization", "BiasGelu"})


NETS = (bert, gpt2, t5, whisper)


def ort_session(model):
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, o, providers=["CPUExecutionProvider"])


def ort_run(model, feeds):
    return ort_session(model).run(None, feeds)[0]


class Shapes:
    """What the optimizer asks of its own shape inference, which needs sympy, by ONNX's."""

    def __init__(self, model):
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        self.known_vi_ = {v.name: v for v in [*graph.input, *graph.value_info, *graph.output]}
        for w in graph.initializer:
            self.known_vi_[w.name] = helper.make_tensor_value_info(w.name, w.data_type, list(w.dims))

    def get_edge_shape(self, name):
        v = self.known_vi_.get(name)
        return [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] if v is not None else None

    def compare_shape(self, a, b):
        return self.get_edge_shape(a) == self.get_edge_shape(b)


def optimize(path, out, kind):
    logging.disable(logging.ERROR)
    shapes = Shapes(onnx.load(path))
    # of the module as the optimizer itself imports it
    sys.modules["onnx_model"].OnnxModel.infer_runtime_shape = lambda *_, **__: shapes
    m = optimizer.optimize_model(path, kind, HEADS, WIDTH, opt_level=0, optimization_options=FusionOptions(kind))
    m.save_model_to_file(out)
    return collections.Counter(n.op_type for n in m.model.graph.node)


def save_feeds(model, feeds, d):
    os.makedirs(d, exist_ok=True)
    for i, x in enumerate(onnx.load(model).graph.input):
        with open(os.path.join(d, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(feeds[x.name], x.name).SerializeToString())


def hone(tools, name, *args):
    p = subprocess.run([os.path.join(tools, name), "-t", "1", *args], capture_output=True)
    if p.returncode != 0:
        raise RuntimeError(f"{name} ends with {p.returncode}: {p.stderr.decode().strip()}")
    return p.stdout


def hone_run(tools, path, feeds, d):
    args = []
    for name, x in feeds.items():
        np.save(os.path.join(d, f"{name}.npy"), x)
        args += ["--input", f"{name}={d}/{name}.npy"]
    return np.load(io.BytesIO(hone(tools, "hone-run", path, *args)))


def openvino_run(path, feeds):
    model = openvino.Core().read_model(path)
    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    return openvino.Core().compile_model(model, "CPU", hints)(feeds)[0]


def far(a, b):
    if a.shape != b.shape:
        return f"shape {list(b.shape)}, not {list(a.shape)}"
    most = float(np.abs(a - b).max() / np.abs(a).max())
    return None if most <= 1e-4 else f"differs by {most:.3g}"


def judge(tools, make, d):
    """What each of the checks of a network says: None, or what is wrong."""
    model, feeds, kind, fused = make()
    plain, made, core = (os.path.join(d, f"{make.__name__}{s}.onnx") for s in ("", "-optimized", "-core"))
    onnx.save(model, plain)
    want = ort_run(plain, feeds)
    counts = optimize(plain, made, kind)
    data = os.path.join(d, make.__name__, "test_data_set_0")
    save_feeds(made, feeds, data)
    missing = sorted(f for f in fused if counts[f] == 0)
    yield "is fused", f"no {', '.join(missing)} among {dict(counts)}" if missing else None
    yield "ONNX Runtime", far(want, ort_run(made, feeds))
    yield "hone-run", far(want, hone_run(tools, made, feeds, d))
    hone(tools, "hone-export", "-q", made, "--to-core", "-o", core, "--data", data)
    yield "--to-core in OpenVINO", far(want, openvino_run(core, feeds))


def times(tools, d):
    globals().update(BATCH=1, TOKENS=48, WIDTH=384, HEADS=6, SIZE=64)
    for make in NETS:
        model, feeds, kind, _ = make()
        files = [os.path.join(d, f"{make.__name__}{s}.onnx") for s in ("", "-exported", "-optimized")]
        onnx.save(model, files[0])
        optimize(files[0], files[2], kind)
        data = os.path.join(d, make.__name__, "test_data_set_0")
        save_feeds(files[0], feeds, data)
        hone(tools, "hone-export", "-q", "--force", files[0], "-o", files[1], "--data", data)
        sessions, best = [ort_session(f) for f in files], [float("inf")] * len(files)
        for _ in range(40):
            for i, s in enumerate(sessions):
                start = time.perf_counter()
                s.run(None, feeds)
                best[i] = min(best[i], time.perf_counter() - start)
        plain, exported = best[0] / best[2], best[1] / best[2]
        print(f"{make.__name__}: {best[2] * 1e3:.3f} ms, exported {exported:.3f}, original {plain:.3f}")
    return 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tools")
    p.add_argument("--keep")
    p.add_argument("--time", action="store_true")
    a = p.parse_args()
    if a.time:
        with tempfile.TemporaryDirectory() as work:
            return times(a.tools, work)
    print(f"1..{len(NETS) * 4}")
    k = bad = 0
    with tempfile.TemporaryDirectory() as work:
        for make in NETS:
            for what, wrong in judge(a.tools, make, a.keep or work):
                k += 1
                bad += wrong is not None
                line = f"{k} - {make.__name__}, {what}"
                print(f"not ok {line}: {wrong}" if wrong else f"ok {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
