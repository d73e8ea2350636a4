#!/usr/bin/env python3
"""A decoder with a key-value cache as inputs and outputs, in the form that Optimum exports.

usage: cache_model.py OUT.onnx [--from DECODER.onnx] [--layers N] [--seed N]

Rotary positions, RMS norm, SwiGLU, several query heads for each key head. Inputs: input_ids [batch, sequence],
attention_mask [batch, total], position_ids [batch, sequence], past_key_values.N.key and .value
[batch, heads, past, size]; outputs: logits, present.N.key and .value. --from takes the weights of a decoder without a
cache that names them as llama2.c does; else they are random.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

OPSET = 17


class Build:
    def __init__(self):
        self.nodes, self.weights, self.n = [], {}, 0

    def weight(self, array, name=None):
        array = np.asarray(array)
        key = name or f"c_{array.dtype}_{list(array.shape)}_{array.tobytes().hex()[:64]}"
        self.weights.setdefault(key, numpy_helper.from_array(array, key))
        return key

    def ints(self, *x):
        return self.weight(np.array(x, np.int64))

    def op(self, kind, *inputs, outs=1, name=None, **attrs):
        self.n += 1
        names = [name] if name else [f"{kind}_{self.n}_{k}" for k in range(outs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, f"{kind}_{self.n}", **attrs))
        return names[0] if outs == 1 else names


def random_weights(layers, seed, dim=64, hidden=172, kv=32, words=512, head=8, most=512):
    r = np.random.default_rng(seed)

    def normal(*shape):
        return (r.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
    angle = np.arange(most)[:, None] * 10000.0 ** (-np.arange(0, head, 2) / head)
    w = {"freqs_cos": np.cos(angle).astype(np.float32), "freqs_sin": np.sin(angle).astype(np.float32),
         "tok_embeddings.weight": r.standard_normal((words, dim)).astype(np.float32),
         "norm.weight": np.ones(dim, np.float32)}
    for i in range(layers):
        p = f"layers.{i}."
        w |= {p + "attention_norm.weight": np.ones(dim, np.float32), p + "ffn_norm.weight": np.ones(dim, np.float32),
              p + "attention.wq": normal(dim, dim), p + "attention.wk": normal(dim, kv),
              p + "attention.wv": normal(dim, kv), p + "attention.wo": normal(dim, dim),
              p + "w1": normal(dim, hidden), p + "w3": normal(dim, hidden), p + "w2": normal(hidden, dim)}
    return w


def norm(b, x, weight):
    mean = b.op("ReduceMean", b.op("Pow", x, b.weight(np.float32(2))), axes=[-1])
    root = b.op("Sqrt", b.op("Add", mean, b.weight(np.float32(1e-5))))
    return b.op("Mul", b.op("Mul", x, b.op("Div", b.weight(np.float32(1)), root)), weight)


def rotate(b, x, heads, size, cos, sin, batch, length):
    """[batch, length, heads * size] -> [batch, heads, length, size], pairs of elements turned by their position."""
    shape = b.op("Concat", batch, length, b.ints(heads), b.ints(size // 2), b.ints(2), axis=0)
    x = b.op("Reshape", x, shape)
    even, odd = b.op("Split", x, b.ints(1, 1), outs=2, axis=4)
    even, odd = b.op("Squeeze", even, b.ints(4)), b.op("Squeeze", odd, b.ints(4))
    re = b.op("Sub", b.op("Mul", even, cos), b.op("Mul", odd, sin))
    im = b.op("Add", b.op("Mul", even, sin), b.op("Mul", odd, cos))
    both = b.op("Concat", b.op("Unsqueeze", re, b.ints(4)), b.op("Unsqueeze", im, b.ints(4)), axis=4)
    both = b.op("Reshape", both, b.op("Concat", batch, length, b.ints(heads), b.ints(size), axis=0))
    return b.op("Transpose", both, perm=[0, 2, 1, 3])


def repeated(b, x, times, heads, size, batch, total):
    if times == 1:
        return x
    more = b.op("Concat", batch, b.ints(heads), b.ints(times), total, b.ints(size), axis=0)
    x = b.op("Expand", b.op("Unsqueeze", x, b.ints(2)), more)
    return b.op("Reshape", x, b.op("Concat", batch, b.ints(heads * times), total, b.ints(size), axis=0))


def model(weights, layers):
    b = Build()
    w = {k: b.weight(v, k) for k, v in weights.items()}
    dim, kv = weights["layers.0.attention.wk"].shape
    size = 2 * weights["freqs_cos"].shape[1]
    heads, kv_heads, words = dim // size, kv // size, weights["tok_embeddings.weight"].shape[0]
    ids = b.op("Shape", "input_ids")
    batch, length = b.op("Gather", ids, b.ints(0)), b.op("Gather", ids, b.ints(1))
    past = b.op("Gather", b.op("Shape", "past_key_values.0.key"), b.ints(2))
    total = b.op("Add", past, length)
    one, zero, first = b.weight(np.int64(1)), b.weight(np.int64(0)), b.ints(0)
    cos, sin = (b.op("Unsqueeze", b.op("Gather", w[k], "position_ids"), b.ints(2)) for k in ("freqs_cos", "freqs_sin"))
    end = b.op("Squeeze", total, first)
    keys = b.op("Unsqueeze", b.op("Range", zero, end, one), first)
    rows = b.op("Unsqueeze", b.op("Range", b.op("Squeeze", past, first), end, one), b.ints(1))
    seen = b.op("Unsqueeze", b.op("LessOrEqual", keys, rows), b.ints(0, 1))
    given = b.op("Unsqueeze", b.op("Cast", "attention_mask", to=T.BOOL), b.ints(1, 2))
    mask = b.op("Where", b.op("And", seen, given), b.weight(np.float32(0)), b.weight(np.float32(-1e9)))
    x = b.op("Gather", w["tok_embeddings.weight"], "input_ids")
    flat = b.op("Concat", batch, length, b.ints(dim), axis=0)
    for i in range(layers):
        p = f"layers.{i}."
        h = norm(b, x, w[p + "attention_norm.weight"])
        q = rotate(b, b.op("MatMul", h, w[p + "attention.wq"]), heads, size, cos, sin, batch, length)
        k = rotate(b, b.op("MatMul", h, w[p + "attention.wk"]), kv_heads, size, cos, sin, batch, length)
        v = b.op("MatMul", h, w[p + "attention.wv"])
        v = b.op("Reshape", v, b.op("Concat", batch, length, b.ints(kv_heads), b.ints(size), axis=0))
        v = b.op("Transpose", v, perm=[0, 2, 1, 3])
        k = b.op("Concat", f"past_key_values.{i}.key", k, name=f"present.{i}.key", axis=2)
        v = b.op("Concat", f"past_key_values.{i}.value", v, name=f"present.{i}.value", axis=2)
        k, v = (repeated(b, t, heads // kv_heads, kv_heads, size, batch, total) for t in (k, v))
        s = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
        s = b.op("Div", s, b.weight(np.float32(np.sqrt(size))))
        y = b.op("MatMul", b.op("Softmax", b.op("Add", s, mask), axis=-1), v)
        y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), flat)
        x = b.op("Add", x, b.op("MatMul", y, w[p + "attention.wo"]))
        h = norm(b, x, w[p + "ffn_norm.weight"])
        a = b.op("MatMul", h, w[p + "w1"])
        a = b.op("Mul", b.op("Mul", a, b.op("Sigmoid", a)), b.op("MatMul", h, w[p + "w3"]))
        x = b.op("Add", x, b.op("MatMul", a, w[p + "w2"]))
    h = norm(b, x, w["norm.weight"])
    b.op("MatMul", h, b.op("Transpose", w["tok_embeddings.weight"], perm=[1, 0]), name="logits")
    info = helper.make_tensor_value_info
    ins = [info("input_ids", T.INT64, ["batch", "sequence"]), info("attention_mask", T.INT64, ["batch", "total"]),
           info("position_ids", T.INT64, ["batch", "sequence"])]
    outs = [info("logits", T.FLOAT, ["batch", "sequence", words])]
    for i in range(layers):
        for kind in ("key", "value"):
            ins.append(info(f"past_key_values.{i}.{kind}", T.FLOAT, ["batch", kv_heads, "past", size]))
            outs.append(info(f"present.{i}.{kind}", T.FLOAT, ["batch", kv_heads, "total", size]))
    g = helper.make_graph(b.nodes, "decoder", ins, outs, list(b.weights.values()))
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(m)
    return m


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--from", dest="source")
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    weights = random_weights(a.layers, a.seed)
    if a.source:
        names = {t.name: numpy_helper.to_array(t) for t in onnx.load(a.source).graph.initializer}
        weights = {k: v for k, v in names.items() if not k.startswith("const_")}
        a.layers = sum(k.endswith("attention.wq") for k in weights)
    onnx.save(model(weights, a.layers), a.out)


if __name__ == "__main__":
    main()
