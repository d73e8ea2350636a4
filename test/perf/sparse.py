#!/usr/bin/env python3
"""How much faster weights with zeros are than the same layer without, by shape, pattern and part of zeros.

usage: sparse.py TOOLS [PREFIX]

Layers of common networks (PREFIX: only those whose name begins so, such as "3x3" or "int8"), each dense and with 50 to
90 % zeros, unstructured and in strips of four and of 16 outputs; one thread, interleaved (hone-bench DENSE SPARSE).
Layers of bytes are timed as nodes (hone-profile, the less of two), since a model of one layer has to turn its input
round. Prints times of the dense layer over those of the sparse one, "-" where hone keeps the dense kernel, and geometric
means. HONE_MAX_ISA sets the level of instructions. Needs numpy and onnx.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CONVOLUTIONS = {
    1: [(16, 64, 55), (128, 16, 55), (32, 128, 27), (256, 32, 27), (48, 192, 13), (384, 64, 13), (64, 256, 13),
        (512, 1000, 13), (96, 96, 22), (64, 64, 32), (64, 64, 7)],
    3: [(16, 64, 55), (32, 128, 27), (64, 256, 13), (64, 64, 56), (64, 64, 112), (128, 128, 28), (64, 64, 224),
        (64, 32, 224)],
}
PRODUCTS = [(128, 768, 3072), (128, 3072, 768), (128, 384, 1536), (64, 256, 256)]
PATTERNS = {"unstructured": 1, "4x1": 4, "16x1": 16}
ZEROS = (0.5, 0.6, 0.7, 0.8, 0.9)


def weights(outs, inputs, strip, zeros):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((outs, inputs)).astype("float32")
    if zeros:
        stay = rng.random(((outs + strip - 1) // strip, inputs)) >= zeros
        w *= np.repeat(stay, strip, 0)[:outs]
    return w


def save(path, nodes, shape, *initializers):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def convolution(path, kernel, inputs, outs, side, strip, zeros):
    w = weights(outs, inputs * kernel * kernel, strip, zeros).reshape(outs, inputs, kernel, kernel)
    save(path, [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[kernel // 2] * 4),
                helper.make_node("Relu", ["c"], ["y"])], [1, inputs, side, side],
         numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.ones(outs, "float32"), "b"))


def product(path, rows, inputs, outs, strip, zeros):
    w = weights(outs, inputs, strip, zeros)
    save(path, [helper.make_node("Gemm", ["x", "w", "b"], ["c"], transB=1), helper.make_node("Relu", ["c"], ["y"])],
         [rows, inputs], numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.ones(outs, "float32"), "b"))


def save_bytes(path, op, w, shape, **attributes):
    """One layer of bytes, its weights as QuantizeLinear would make them of normal ones."""
    w = np.where(w == 0, 0, np.where(np.round(w * 32) == 0, 1, np.clip(np.round(w * 32), -127, 127))).astype("int8")
    parameters = {"xs": np.float32(0.02), "xz": np.uint8(128), "w": w, "ws": np.float32(0.01), "wz": np.int8(0),
                  "ys": np.float32(0.3), "yz": np.uint8(100)}
    graph = helper.make_graph([helper.make_node(op, ["x", *parameters], ["y"], **attributes)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in parameters.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def byte_convolution(path, kernel, inputs, outs, side, strip, zeros):
    w = weights(outs, inputs * kernel * kernel, strip, zeros).reshape(outs, inputs, kernel, kernel)
    save_bytes(path, "QLinearConv", w, [1, inputs, side, side], pads=[kernel // 2] * 4)


def byte_product(path, rows, inputs, outs, strip, zeros):
    save_bytes(path, "QLinearMatMul", weights(outs, inputs, strip, zeros).T, [rows, inputs])


def node_of(tools, path):
    said = subprocess.run([os.path.join(tools, "hone-profile"), path, "-t", "1", "--time", "100ms", "--json"],
                          capture_output=True, text=True, check=True).stdout
    return next(n for n in json.loads(said)["nodes"] if n["op"].startswith("QLinear"))


def byte_gain(tools, dense, sparse):
    if "sparse" not in node_of(tools, sparse)["kernel"]:
        return float("nan")
    times = [(node_of(tools, dense)["ms"], node_of(tools, sparse)["ms"]) for _ in range(2)]
    return min(t[0] for t in times) / min(t[1] for t in times)


def gain(tools, dense, sparse):
    """NaN: the dense kernel runs."""
    said = subprocess.run([os.path.join(tools, "hone-profile"), sparse, "-t", "1", "--runs", "6"], capture_output=True,
                          text=True, check=True).stdout
    if "cpu.sparse_" not in said:
        return float("nan")
    said = subprocess.run([os.path.join(tools, "hone-bench"), dense, sparse, "-t", "1", "--time", "300ms", "--json"],
                          capture_output=True, text=True, check=True).stdout
    a, b = (run["latency_ms"]["p50"] for run in json.loads(said)["runs"])
    return a / b


def main(tools, prefix=""):
    layers = []
    for of, conv, matrices, how in (("", convolution, product, gain), ("int8 ", byte_convolution, byte_product, byte_gain)):
        layers += [(f"{of}{k}x{k} {i}-{o} {s}x{s}", conv, (k, i, o, s), how) for k in CONVOLUTIONS
                   for i, o, s in CONVOLUTIONS[k]]
        layers += [(f"{of}product {m}x{k}x{n}", matrices, (m, k, n), how) for m, k, n in PRODUCTS]
    got = {}
    print("layer".ljust(24), "  ".join(f"{p} {'/'.join(f'{z:.0%}' for z in ZEROS)}" for p in PATTERNS))
    with tempfile.TemporaryDirectory() as folder:
        dense, sparse = os.path.join(folder, "dense.onnx"), os.path.join(folder, "sparse.onnx")
        for name, make, shape, how in layers:
            if not name.startswith(prefix):
                continue
            make(dense, *shape, 1, 0)
            row = []
            for pattern, strip in PATTERNS.items():
                for zeros in ZEROS:
                    make(sparse, *shape, strip, zeros)
                    row.append(how(tools, dense, sparse))
                    got.setdefault((name[:name.index(" ", 5)], pattern, zeros), []).append(row[-1])
            print(name.ljust(24), " ".join("   -" if np.isnan(x) else f"{x:4.2f}" for x in row), flush=True)
    for (kind, pattern, zeros), all in got.items():
        means = [1 if np.isnan(x) else x for x in all]
        print(f"{kind} {pattern} {zeros:.0%}: {np.exp(np.mean(np.log(means))):.2f}")


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(*sys.argv[1:])
