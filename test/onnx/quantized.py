#!/usr/bin/env python3
"""What hone-quantize writes, judged by onnx.checker, ONNX Runtime and OpenVINO; prints TAP.

usage: quantized.py TOOLS [--openvino PYTHON] [--only REGEX] [--keep DIR]

TOOLS holds hone-quantize and hone-run. Models are made here: convolutions, depthwise ones, a residual, products with a
dynamic batch, attention, branches, shared and tied weights, a local function, values of unknown rank. Each goes through
each mode and format. What is written passes the checker, holds the operators and types that it should, loads in ONNX
Runtime (not fused: its fused kernels saturate on some processors) and in OpenVINO (in PYTHON, a Python that has it), which
agree with hone's run of it and come near the f32 model.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLES = 6
F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


# --- models ------------------------------------------------------------------------------------------------------------


class Maker:
    """A model in the making: nodes and weights in order, with a random generator of its own."""

    def __init__(self, seed):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def weight(self, name, *dims, scale=None):
        fan = np.prod(dims[1:]) if len(dims) > 2 else dims[0]
        w = self.rng.normal(0, scale or np.sqrt(2 / fan), dims).astype(np.float32)
        return self.constant(name, w)

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, inputs, output, **attrs):
        self.nodes.append(helper.make_node(op, inputs, output if isinstance(output, list) else [output], **attrs))
        return output

    def conv(self, x, y, cin, cout, k, group=1, bias=True, **attrs):
        ins = [x, self.weight(y + ".w", cout, cin // group, *([k] * attrs.pop("axes", 2)))]
        if bias:
            ins.append(self.weight(y + ".b", cout, scale=0.1))
        return self.add("Conv", ins, y, group=group, **attrs)

    def model(self, inputs, outputs, opset=17, ir=8, functions=(), as_inputs=False):
        infos = [helper.make_tensor_value_info(*i) for i in inputs]
        if as_inputs:
            infos += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in self.weights]
        graph = helper.make_graph(self.nodes, "made", infos, [helper.make_tensor_value_info(*o) for o in outputs],
                                  self.weights)
        imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid("local", 1)] * bool(functions)
        return helper.make_model(graph, opset_imports=imports, ir_version=ir, functions=list(functions))


def normal(*dims):
    return lambda rng: rng.normal(0, 1, dims).astype(np.float32)


def conv_net():
    m = Maker(1)
    x = m.conv("x", "c1", 3, 32, 3, pads=[1] * 4)
    x = m.add("MaxPool", [m.add("Relu", [x], "r1")], "p1", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = m.add("Relu", [m.conv(x, "c2", 32, 48, 3, pads=[1] * 4, strides=[2, 2])], "r2")
    a = m.add("Relu", [m.conv(x, "c3", 48, 32, 1)], "r3")
    b = m.add("Relu", [m.conv(x, "c4", 48, 32, 3, pads=[1] * 4)], "r4")
    x = m.add("Concat", [a, b], "cat", axis=1)
    x = m.conv(x, "c5", 64, 64, 1, bias=False)
    x = m.add("Flatten", [m.add("GlobalAveragePool", [m.add("Relu", [x], "r5")], "g")], "f")
    m.add("Gemm", [x, m.weight("fc.w", 10, 64), m.weight("fc.b", 10)], "y", transB=1)
    return m.model([("x", F, ["N", 3, 16, 16])], [("y", F, ["N", 10])]), {"x": normal(2, 3, 16, 16)}


def depthwise():
    m = Maker(2)
    bounds = [m.constant("lo", np.float32(0)), m.constant("hi", np.float32(6))]
    x = m.add("Clip", [m.conv("x", "c1", 3, 32, 3, strides=[2, 2]), *bounds], "k1")
    x = m.add("Clip", [m.conv(x, "dw", 32, 32, 3, group=32, pads=[1] * 4), *bounds], "k2")
    x = m.conv(x, "c2", 32, 64, 1)
    m.add("ConvTranspose", [x, m.weight("up.w", 64, 8, 2, 2)], "y", strides=[2, 2])
    return m.model([("x", F, [1, 3, 17, 17])], [("y", F, [1, 8, 16, 16])]), {"x": normal(1, 3, 17, 17)}


def residual():
    m = Maker(3)
    x = m.add("Relu", [m.conv("x", "c1", 16, 32, 3, auto_pad="SAME_UPPER")], "r1")
    y = m.conv(m.add("Relu", [m.conv(x, "c2", 32, 32, 3, pads=[1] * 4)], "r2"), "c3", 32, 32, 3, pads=[2] * 4,
               dilations=[2, 2])
    x = m.add("Relu", [m.add("Add", [x, y], "s")], "r3")
    x = m.add("Transpose", [m.conv(x, "c4", 32, 16, 1)], "t", perm=[0, 2, 3, 1])
    m.add("Reshape", [x, m.constant("shape", np.array([0, -1, 16]))], "y")
    return m.model([("x", F, [1, 16, 10, 10])], [("y", F, [1, 100, 16])], opset=13), {"x": normal(1, 16, 10, 10)}


def mlp():
    m = Maker(4)
    x = m.add("Relu", [m.add("Gemm", ["x", m.weight("w1", 48, 64), m.weight("b1", 48)], "g1", transB=1, alpha=0.5)], "r")
    x = m.add("Sigmoid", [m.add("Add", [m.add("MatMul", [x, m.weight("w2", 48, 80)], "m2"), m.weight("b2", 80)], "a2")],
              "s")
    m.add("Gemm", [x, m.weight("w3", 80, 7), m.weight("b3", 1, 7)], "y", beta=2.0)
    return m.model([("x", F, ["batch", 64])], [("y", F, ["batch", 7])], opset=11), {"x": normal(5, 64)}


def attention():
    m = Maker(5)
    x = "x"
    q, k, v = (m.add("MatMul", [x, m.weight("w" + n, 64, 64, scale=0.2)], n) for n in "qkv")
    s = m.add("MatMul", [q, m.add("Transpose", [k], "kt", perm=[0, 2, 1])], "qk")
    s = m.add("Softmax", [m.add("Div", [s, m.constant("root", np.float32(8))], "d")], "p", axis=-1)
    o = m.add("MatMul", [m.add("MatMul", [s, v], "pv"), m.weight("wo", 64, 64)], "o")
    m.add("Add", [x, o], "y")
    return m.model([("x", F, ["B", "T", 64])], [("y", F, ["B", "T", 64])]), {"x": normal(2, 7, 64)}


def branches():
    def branch(name, seed):
        m = Maker(seed)
        w = m.rng.normal(0, 0.2, (64, 32)).astype(np.float32)
        m.add("Constant", [], "w_" + name, value=numpy_helper.from_array(w))
        m.add("Relu", [m.add("MatMul", ["h", "w_" + name], "m_" + name)], "y_" + name)
        return helper.make_graph(m.nodes, name, [], [helper.make_tensor_value_info("y_" + name, F, None)])

    m = Maker(6)
    m.add("Tanh", [m.add("MatMul", ["x", m.weight("w0", 64, 64)], "m0")], "h")
    m.add("If", ["c"], "y", then_branch=branch("then", 7), else_branch=branch("else", 8))
    return (m.model([("x", F, [4, 64]), ("c", BOOL, [])], [("y", F, [4, 32])], opset=16),
            {"x": normal(4, 64), "c": lambda rng: np.array(bool(rng.integers(2)))})


def shared():
    """one weight of two products, with a third product between; a table tied to the last product"""
    m = Maker(9)
    table = m.weight("table", 96, 64, scale=1)
    x = m.add("Gather", [table, "ids"], "e", axis=0)
    w = m.weight("w", 64, 64)
    x = m.add("Tanh", [m.add("MatMul", [x, w], "m1")], "t1")
    x = m.add("Tanh", [m.add("MatMul", [x, m.weight("v", 64, 64)], "m2")], "t2")
    x = m.add("Tanh", [m.add("MatMul", [x, w], "m3")], "t3")
    m.add("MatMul", [x, m.add("Transpose", [table], "tt", perm=[1, 0])], "y")
    return (m.model([("ids", I64, ["T"])], [("y", F, ["T", 96])]),
            {"ids": lambda rng: rng.integers(0, 96, 9)})


def repeated():
    """two convolutions three times each, every time with a BatchNormalization of its own; a product read both ways"""
    m = Maker(21)
    m.weight("wa", 24, 24, 3, 3), m.weight("wb", 24, 24, 3, 3)
    x = m.conv("x", "first", 3, 24, 3, pads=[1] * 4)
    for i in range(6):
        x = m.add("Conv", [x, "wb" if i % 2 else "wa"], f"c{i}", pads=[1] * 4)
        norm = [m.constant(f"{k}{i}", m.rng.uniform(0.5, 1.5, 24).astype(np.float32)) for k in ("scale", "shift", "mean")]
        norm.append(m.constant(f"var{i}", m.rng.uniform(1, 3, 24).astype(np.float32)))
        x = m.add("Relu", [m.add("BatchNormalization", [x, *norm], f"n{i}")], f"r{i}")
    x = m.add("Flatten", [m.add("MaxPool", [x], "p", kernel_shape=[3, 3], strides=[3, 3])], "flat")
    m.weight("wide", 96, 96)
    x = m.add("Tanh", [m.add("Gemm", [x, "wide"], "g1", transB=1)], "t1")
    turned = m.add("Transpose", ["wide"], "turned", perm=[1, 0])
    m.add("MatMul", [x, turned], "y")
    return m.model([("x", F, [1, 3, 6, 6])], [("y", F, [1, 96])]), {"x": normal(1, 3, 6, 6)}


def function():
    body = [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["c"])]
    f = helper.make_function("local", "Layer", ["a", "b"], ["c"], body, [helper.make_opsetid("", 17)])
    m = Maker(10)  # three axes: OpenVINO 2026.4 computes nonsense where two quantized products follow on a fixed [4, K]
    h = m.add("Layer", ["x", m.weight("w1", 64, 64)], "h", domain="local")
    m.add("Layer", [h, m.weight("w2", 64, 64)], "y", domain="local")
    return m.model([("x", F, [2, 5, 64])], [("y", F, [2, 5, 64])], functions=[f]), {"x": normal(2, 5, 64)}


def unknown():
    """shapes that only data tell"""
    m = Maker(11)
    m.add("Reshape", ["x", "shape"], "r")
    h = m.add("Relu", [m.add("MatMul", ["r", m.weight("w1", 64, 64)], "m1")], "h")
    i = m.add("NonZero", [m.add("Greater", [m.add("ReduceSum", [h, m.constant("axes", np.array([1]))], "sum",
                                                  keepdims=0), m.constant("nil", np.float32(0))], "gt")], "nz")
    i = m.add("Reshape", [i, m.constant("flat", np.array([-1]))], "at")
    m.add("MatMul", [m.add("Gather", [h, i], "rows", axis=0), m.weight("w2", 64, 32)], "y")
    return (m.model([("x", F, ["A", "B", "C"]), ("shape", I64, [2])], [("y", F, ["R", 32])]),
            {"x": normal(2, 3, 64), "shape": lambda rng: np.array([6, 64])})


def old():
    """one axis, opset 7, weights among the inputs as files before IR 4 had to have them"""
    m = Maker(12)
    x = m.add("Relu", [m.conv("x", "c1", 16, 32, 5, axes=1, pads=[2, 2])], "r1")
    x = m.conv(x, "c2", 32, 32, 3, axes=1, group=2, strides=[2])
    m.add("AveragePool", [x], "y", kernel_shape=[2], strides=[2])
    return m.model([("x", F, [2, 16, 40])], [("y", F, [2, 32, 9])], opset=7, ir=3, as_inputs=True), {"x": normal(2, 16, 40)}


def digits():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/digits")
    train = np.load(f"{folder}/train.npz")
    name = next(k for k in train if k != "label")
    return onnx.load(f"{folder}/model.onnx"), {name: lambda rng: train[name][rng.integers(len(train[name]))][None]}


def recurrent():
    m = Maker(13)
    lstm = [m.weight("w", 2, 128, 48, scale=0.2), m.weight("r", 2, 128, 32, scale=0.2), m.weight("b", 2, 256, scale=0.1)]
    m.add("LSTM", ["x", *lstm], ["h", "last"], hidden_size=32, direction="bidirectional")
    gru = [m.weight("gw", 1, 96, 32, scale=0.2), m.weight("gr", 1, 96, 32, scale=0.2)]
    x = m.add("GRU", ["last", *gru], ["", "g"], hidden_size=32)[1]
    m.add("MatMul", [x, m.weight("o", 32, 32)], "y")
    return m.model([("x", F, [7, 2, 48])], [("y", F, [1, 2, 32])]), {"x": normal(7, 2, 48)}


MODELS = {f.__name__: f for f in (conv_net, depthwise, residual, mlp, attention, branches, shared, repeated, function, unknown, old,
                                  recurrent, digits)}

# what a model goes through: these, some all that are not just another type, and two everything
FEW = ("static", "qoperator", "dynamic", "weights-4")
MORE = (*FEW, "qoperator-channel", "qoperator-s8", "weights")
THROUGH = {"residual": MORE, "branches": MORE, "shared": MORE, "repeated": MORE, "recurrent": (*FEW, "weights")}
ALL = ("conv_net", "attention")
# part of its bytes that a model may take at most where each channel has a scale of its own
PART = {"repeated": 0.35}

# name: options, operators that some model must have in it, cosine with f32
MODES = {
    "static": ([], {"QuantizeLinear", "DequantizeLinear"}, 0.99),
    "static-s8": (["--activations", "s8"], {"QuantizeLinear"}, 0.99),
    "static-tensor": (["--per-tensor"], {"QuantizeLinear"}, 0.98),
    "static-tensor-s8": (["--per-tensor", "--activations", "s8", "--symmetric"], {"QuantizeLinear"}, 0.98),
    "qoperator": (["--format", "qoperator"], {"QLinearConv", "QLinearMatMul", "MatMulInteger"}, 0.98),
    "qoperator-channel": (["--format", "qoperator", "--per-channel"], {"ConvInteger", "MatMulInteger"}, 0.99),
    "qoperator-s8": (["--format", "qoperator", "--activations", "s8"], {"QLinearConv", "QLinearMatMul"}, 0.98),
    "dynamic": (["--mode", "dynamic"], {"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"}, 0.99),
    "dynamic-tensor": (["--mode", "dynamic", "--per-tensor"], {"DynamicQuantizeLinear"}, 0.98),
    "weights": (["--mode", "weights"], {"DequantizeLinear"}, 0.999),
    "weights-4": (["--mode", "weights", "--bits", "4"], {"DequantizeLinear"}, 0.95),
}


# --- judges ------------------------------------------------------------------------------------------------------------


def runs_ort(path, feeds):
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    return [s.run(None, f) for f in feeds]


def runs_hone(tools, path, feeds):
    found = []
    for f in feeds:
        with tempfile.TemporaryDirectory() as t:
            args = [os.path.join(tools, "hone-run"), "-q", path, "--out", t]
            for i, (name, x) in enumerate(f.items()):
                np.save(f"{t}/{i}.npy", x)
                args += ["--input", f"{name}={t}/{i}.npy"]
            p = subprocess.run(args, capture_output=True, text=True)
            if p.returncode != 0:
                raise RuntimeError(p.stderr.strip())
            with open(f"{t}/test_data_set_0/output_0.pb", "rb") as file:
                found.append([numpy_helper.to_array(TensorProto.FromString(file.read()))])
    return found


def openvino_worker():
    """a line of JSON in, [model, [[name, file], ...] of each sample, folder]; one out, with the files or what is wrong"""
    import openvino as ov

    core = ov.Core()
    for line in sys.stdin:
        path, feeds, folder = json.loads(line)
        try:
            hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
            c = core.compile_model(path, "CPU", hints)
            files = []
            for i, f in enumerate(feeds):
                y = c({name: np.load(file) for name, file in f})[0]
                files.append(f"{folder}/y{i}.npy")
                np.save(files[-1], y)
            print(json.dumps({"files": files}), flush=True)
        except Exception as e:
            print(json.dumps({"error": " ".join(str(e).split())[-400:]}), flush=True)


class OpenVINO:
    def __init__(self, python):
        self.p = subprocess.Popen([python, os.path.abspath(__file__), "--openvino-worker"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

    def run(self, path, feeds):
        with tempfile.TemporaryDirectory() as t:
            files = []
            for i, f in enumerate(feeds):
                files.append([[name, f"{t}/{i}_{k}.npy"] for k, name in enumerate(f)])
                for name, file in files[-1]:
                    np.save(file, f[name])
            self.p.stdin.write(json.dumps([path, files, t]) + "\n")
            self.p.stdin.flush()
            answer = json.loads(self.p.stdout.readline())
            if "error" in answer:
                raise RuntimeError(answer["error"])
            return [[np.load(f)] for f in answer["files"]]


def distance(a, b):
    """(largest difference over the largest number, cosine) of outputs 0"""
    worst, x, y = 0.0, [], []
    for p, q in zip(a, b):
        if p[0].shape != q[0].shape:
            return np.inf, -1.0
        worst = max(worst, np.abs(p[0] - q[0]).max(initial=0) / max(np.abs(q[0]).max(initial=0), 1e-9))
        x.append(p[0].ravel().astype(np.float64))
        y.append(q[0].ravel().astype(np.float64))
    x, y = np.concatenate(x), np.concatenate(y)
    return worst, float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-30))


# --- what has to be in a file --------------------------------------------------------------------------------------------


def all_nodes(graph):
    for n in graph.node:
        yield graph, n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(a.g)


def all_weights(graph):
    yield from graph.initializer
    for _, n in all_nodes(graph):
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from a.g.initializer
            elif a.type == onnx.AttributeProto.TENSOR:
                yield a.t


def unquantized(m):
    """f32 weights that should not be there any more"""
    return [f"{t.name}{list(t.dims)}" for t in all_weights(m.graph) if t.data_type == F and len(t.dims) > 1 and
            np.prod(t.dims) >= 1000]


def copies(m):
    """weights of 8 bits and less that stand there twice"""
    seen = collections.Counter()
    for t in all_weights(m.graph):
        if len(t.dims) > 1 and np.prod(t.dims) >= 1000 and t.data_type != F:
            a = np.asarray(numpy_helper.to_array(t)).astype(np.int64)
            seen[a.tobytes()] += 1
            if a.ndim == 2 and a.shape[0] != a.shape[1]:
                seen[np.ascontiguousarray(a.T).tobytes()] += 1
    return [n for n in seen.values() if n > 1]


# --- all -----------------------------------------------------------------------------------------------------------------


class Tap:
    def __init__(self):
        self.passed = self.failed = 0

    def test(self, name, wrong, skip=None):
        if skip:
            print(f"ok - {name} # SKIP {skip}")
        elif wrong:
            self.failed += 1
            print(f"not ok - {name}\n# " + "\n# ".join(wrong))
        else:
            self.passed += 1
            print(f"ok - {name}")
        sys.stdout.flush()


def judge(name, path, feeds, f32, near, tools, vino):
    wrong = []
    m = onnx.load(path)
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as e:
        wrong.append(f"checker: {e}")
    exact = "weights" in name
    try:
        want = runs_ort(path, feeds)
    except Exception as e:
        return m, wrong + [f"ONNX Runtime: {' '.join(str(e).split())}"]
    _, cos = distance(want, f32)
    if cos < near:
        wrong.append(f"cosine {cos:.5f} with the f32 model")
    for who, run in (("hone", lambda: runs_hone(tools, path, feeds)), ("OpenVINO", lambda: vino.run(path, feeds))):
        if who == "OpenVINO" and vino is None:
            continue
        try:
            worst, cos = distance(run(), want)
            # on processors without VNNI OpenVINO's sums of pairs of signed bytes may saturate
            pairs = who == "OpenVINO" and name.endswith("-s8")
            most, least = (1e-3, 0.999999) if exact else (0.1, 0.999) if pairs else (0.05, 0.9995)
            if worst > most or cos < least:
                wrong.append(f"{who}: differs from ONNX Runtime by {worst:.3g}, cosine {cos:.6f}")
        except Exception as e:
            wrong.append(f"{who}: {' '.join(str(e).split())}")
    return m, wrong


def samples_of(make, folder, count):
    rng, feeds = np.random.default_rng(77), []
    for i in range(count):
        feeds.append({name: f(rng) for name, f in make.items()})
        os.makedirs(f"{folder}/test_data_set_{i}")
        for k, x in enumerate(feeds[-1].values()):
            with open(f"{folder}/test_data_set_{i}/input_{k}.pb", "wb") as f:
                f.write(numpy_helper.from_array(x).SerializeToString())
    return feeds


def modes_of(name, only):
    """what a model goes through, of what --only leaves"""
    return [mode for mode in MODES if (name in ALL or mode in THROUGH.get(name, FEW)) and
            re.search(only, f"{name}-{mode}")]


def quantize(tools, folder, mode):
    """decided by nothing but the mode: guards are tested elsewhere"""
    command = [f"{tools}/hone-quantize", "-q", f"{folder}/model.onnx", "--calib", folder, "-o", f"{folder}/{mode}.onnx",
               "--force", "--max-drop", "100%", "--journal", "none", "--timing-cache", "none", "-t", "1", *MODES[mode][0]]
    p = subprocess.run(command, capture_output=True, text=True)
    return "" if p.returncode == 0 else p.stderr.strip() or f"exit status {p.returncode}"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("tools")
    ap.add_argument("--openvino")
    ap.add_argument("--only", default="")
    ap.add_argument("--keep")
    args = ap.parse_args()
    tap, seen = Tap(), collections.defaultdict(set)
    vino = OpenVINO(args.openvino) if args.openvino and os.access(args.openvino, os.X_OK) else None
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = []
        for name, make in MODELS.items():
            if not modes_of(name, args.only):
                continue
            at = f"{args.keep or folder}/{name}"
            os.makedirs(at)
            model, inputs = make()
            onnx.save(model, f"{at}/model.onnx")
            feeds = samples_of(inputs, at, SAMPLES)
            for mode in modes_of(name, args.only):
                jobs.append((name, mode, at, feeds, pool.submit(quantize, args.tools, at, mode)))
        for name, mode, at, feeds, job in jobs:
            if failure := job.result():
                tap.test(f"{name} {mode}", [failure])
                continue
            f32 = runs_ort(f"{at}/model.onnx", feeds)
            m, wrong = judge(mode, f"{at}/{mode}.onnx", feeds, f32, MODES[mode][2], args.tools, vino)
            if twice := copies(m):
                wrong.append(f"{len(twice)} weights stand there twice")
            part = os.path.getsize(f"{at}/{mode}.onnx") / os.path.getsize(f"{at}/model.onnx")
            if mode not in ("qoperator", "qoperator-s8") and part > PART.get(name, 1):
                wrong.append(f"{part:.3f} of the bytes")
            if mode.startswith("weights") and (left := unquantized(m)):
                wrong.append(f"f32 weights are left: {', '.join(left)}")
            for _, n in all_nodes(m.graph):
                seen[mode].add(n.op_type)
            tap.test(f"{name} {mode}", wrong)
    for mode, (_, ops, _) in MODES.items():
        if not args.only:
            tap.test(f"{mode} has its operators", [f"none of {o}" for o in sorted(ops - seen[mode])])
    if vino is None:
        tap.test("OpenVINO", [], skip="there is no Python that has it")
    print(f"1..{tap.passed + tap.failed + (vino is None)}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--openvino-worker"]:
        openvino_worker()
        sys.exit(0)
    sys.exit(main())
