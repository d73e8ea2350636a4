#!/usr/bin/env python3
"""Make the digits model and its data: trains a small CNN in plain numpy and writes it as ONNX.

usage: make.py [OUT]          train, export, measure; OUT is this script's folder unless given
       make.py --check [OUT]  only measure what lies in OUT: parameters, accuracy, agreement with test_data_set_0

Needs: pip install onnx numpy scikit-learn onnxruntime

Everything random comes from numpy's RandomState, whose streams are frozen, and the linear algebra runs on one thread:
the same versions on the same kind of CPU give the same bytes.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # sums in one order
    os.environ[_name] = "1"

import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED = 20240
TEST = 360  # of 1797 samples
EPOCHS = 60
BATCH = 64
RATE = 3e-3
DECAY = 1e-2  # weight decay of AdamW, weights only
CHANNELS = (1, 16, 32, 64)
EPSILON = 1e-5
SET = 16  # samples in test_data_set_0


# ---- data -----------------------------------------------------------------------------------------------------------


def load():
    """Images f32 [1797,1,8,8] in [0,1] and labels i64 [1797], in the order scikit-learn has them."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return (digits.images[:, None] / 16.0).astype(np.float32), digits.target.astype(np.int64)


def split(label):
    """Indices (train, test): each class keeps its share in the test split, both are shuffled."""
    rs = np.random.RandomState(SEED)
    classes, counts = np.unique(label, return_counts=True)
    share = counts * TEST / label.size
    take = np.floor(share).astype(int)
    take[np.argsort(take - share, kind="stable")[: TEST - take.sum()]] += 1  # largest remainders first
    test = np.concatenate([rs.permutation(np.flatnonzero(label == c))[:n] for c, n in zip(classes, take)])
    train = np.setdiff1d(np.arange(label.size), test)
    return rs.permutation(train), rs.permutation(test)


def shifted(rs, x):
    """Each image moved by -1, 0 or 1 pixels in both directions; what comes in is background. x: [N,8,8,1]."""
    n, h, w, _ = x.shape
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    dy, dx = rs.randint(0, 3, (2, n))
    rows = dy[:, None] + np.arange(h)
    cols = dx[:, None] + np.arange(w)
    return wide[np.arange(n)[:, None, None], rows[:, :, None], cols[:, None, :]]


# ---- layers: channels last while training; forward returns (y, what backward needs) ---------------------------------


def conv_forward(x, w, b):
    """3x3, stride 1, padding 1. x: [N,H,W,C], w: [C*9,K], b: [K] or None."""
    n, h, wd, c = x.shape
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    cols = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2)).reshape(n * h * wd, c * 9)
    y = cols @ w
    if b is not None:
        y += b
    return y.reshape(n, h, wd, -1), (x.shape, cols, w)


def conv_backward(dy, saved):
    (n, h, wd, c), cols, w = saved
    dy = dy.reshape(n * h * wd, -1)
    dcols = (dy @ w.T).reshape(n, h, wd, c, 3, 3)
    wide = np.zeros((n, h + 2, wd + 2, c), np.float32)
    for i in range(3):
        for j in range(3):
            wide[:, i : i + h, j : j + wd] += dcols[..., i, j]
    return wide[:, 1:-1, 1:-1], cols.T @ dy, dy.sum(0)


def norm_forward(x, scale, shift, stats, training):
    """Batch normalisation over N, H, W; stats = [mean, variance] follow slowly while training."""
    if not training:
        return (x - stats[0]) / np.sqrt(stats[1] + np.float32(EPSILON)) * scale + shift, None
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    stats[0] += np.float32(0.1) * (mean - stats[0])
    stats[1] += np.float32(0.1) * (var - stats[1])
    inv = 1 / np.sqrt(var + np.float32(EPSILON))
    unit = (x - mean) * inv
    return unit * scale + shift, (unit, inv, scale)


def norm_backward(dy, saved):
    unit, inv, scale = saved
    dscale, dshift = (dy * unit).sum((0, 1, 2)), dy.sum((0, 1, 2))
    count = np.float32(dy.size // dy.shape[-1])
    return scale * inv * (dy - dshift / count - unit * (dscale / count)), dscale, dshift


def pool_forward(x):
    """Max over 2x2; a tie goes to the first."""
    n, h, w, c = x.shape
    quads = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // 2, w // 2, c, 4)
    where = quads.argmax(-1)[..., None]
    return np.take_along_axis(quads, where, -1)[..., 0], (x.shape, where)


def pool_backward(dy, saved):
    (n, h, w, c), where = saved
    quads = np.zeros((n, h // 2, w // 2, c, 4), np.float32)
    np.put_along_axis(quads, where, dy[..., None], -1)
    return quads.reshape(n, h // 2, w // 2, c, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(n, h, w, c)


# ---- the network ----------------------------------------------------------------------------------------------------


def new_parameters(rs):
    """Parameters (trained) and running statistics. Convolution weights are [C*9,K], the last layer [256,10]."""
    p, stats = {}, {}
    for i, (c, k) in enumerate(zip(CHANNELS, CHANNELS[1:]), 1):
        p[f"conv{i}.weight"] = rs.standard_normal((c * 9, k)) * np.sqrt(2 / (c * 9))
        if i == 2:
            p["conv2.bias"] = np.zeros(k)
        else:
            p[f"norm{i}.scale"], p[f"norm{i}.shift"] = np.ones(k), np.zeros(k)
            stats[f"norm{i}"] = [np.zeros(k, np.float32), np.ones(k, np.float32)]
    features = CHANNELS[-1] * 4
    p["score.weight"] = rs.standard_normal((features, 10)) / np.sqrt(features)
    p["score.bias"] = np.zeros(10)
    return {name: v.astype(np.float32) for name, v in p.items()}, stats


def forward(p, stats, x, training):
    """x: [N,8,8,1] -> scores [N,10]."""
    s = {}
    y, s["conv1"] = conv_forward(x, p["conv1.weight"], None)
    y, s["norm1"] = norm_forward(y, p["norm1.scale"], p["norm1.shift"], stats["norm1"], training)
    s["relu1"] = y = np.maximum(y, 0)
    y, s["conv2"] = conv_forward(y, p["conv2.weight"], p["conv2.bias"])
    s["relu2"] = y = np.maximum(y, 0)
    y, s["pool1"] = pool_forward(y)
    y, s["conv3"] = conv_forward(y, p["conv3.weight"], None)
    y, s["norm3"] = norm_forward(y, p["norm3.scale"], p["norm3.shift"], stats["norm3"], training)
    s["relu3"] = y = np.maximum(y, 0)
    y, s["pool2"] = pool_forward(y)
    s["flat"] = y = y.transpose(0, 3, 1, 2).reshape(len(x), -1)  # channels first, as ONNX flattens
    return y @ p["score.weight"] + p["score.bias"], s


def backward(p, s, d):
    """d: gradient of the scores [N,10] -> gradient of every parameter."""
    g = {"score.weight": s["flat"].T @ d, "score.bias": d.sum(0)}
    d = (d @ p["score.weight"].T).reshape(-1, CHANNELS[-1], 2, 2).transpose(0, 2, 3, 1)
    d = pool_backward(d, s["pool2"]) * (s["relu3"] > 0)
    d, g["norm3.scale"], g["norm3.shift"] = norm_backward(d, s["norm3"])
    d, g["conv3.weight"], _ = conv_backward(d, s["conv3"])
    d = pool_backward(d, s["pool1"]) * (s["relu2"] > 0)
    d, g["conv2.weight"], g["conv2.bias"] = conv_backward(d, s["conv2"])
    d = d * (s["relu1"] > 0)
    d, g["norm1.scale"], g["norm1.shift"] = norm_backward(d, s["norm1"])
    _, g["conv1.weight"], _ = conv_backward(d, s["conv1"])
    return g


def train(image, label):
    """AdamW with a cosine schedule; the parameters after the last epoch, never chosen by looking at the test split."""
    rs = np.random.RandomState(SEED + 1)
    p, stats = new_parameters(rs)
    first = {name: np.zeros_like(v) for name, v in p.items()}
    second = {name: np.zeros_like(v) for name, v in p.items()}
    x = image.transpose(0, 2, 3, 1)
    steps = len(x) // BATCH * EPOCHS
    step = 0
    for epoch in range(EPOCHS):
        order, loss = rs.permutation(len(x)), 0.0
        for start in range(0, len(x) - BATCH + 1, BATCH):
            pick = order[start : start + BATCH]
            scores, saved = forward(p, stats, shifted(rs, x[pick]), True)
            prob = np.exp(scores - scores.max(1, keepdims=True))
            prob /= prob.sum(1, keepdims=True)
            loss -= float(np.log(prob[np.arange(BATCH), label[pick]] + 1e-12).sum())
            prob[np.arange(BATCH), label[pick]] -= 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            step += 1
            for name, g in backward(p, saved, prob / np.float32(BATCH)).items():
                first[name] += np.float32(0.1) * (g - first[name])
                second[name] += np.float32(0.001) * (g * g - second[name])
                move = first[name] / np.float32(1 - 0.9**step)
                move /= np.sqrt(second[name] / np.float32(1 - 0.999**step)) + np.float32(1e-8)
                if name.endswith("weight"):
                    move += np.float32(DECAY) * p[name]
                p[name] -= np.float32(rate) * move
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss / (len(x) // BATCH * BATCH):.4f}", flush=True)
    return p, stats


# ---- export and measure ---------------------------------------------------------------------------------------------


def export(p, stats):
    """The ONNX model: opset 17, IR version 8, batch dimension `N`."""
    consts, nodes = {}, []

    def node(op, name, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def conv(i, y, bias):
        c, k = CHANNELS[i - 1], CHANNELS[i]
        consts[f"conv{i}.weight"] = p[f"conv{i}.weight"].reshape(c, 3, 3, k).transpose(3, 0, 1, 2)
        inputs = [y, f"conv{i}.weight"]
        if bias:
            consts[f"conv{i}.bias"] = p[f"conv{i}.bias"]
            inputs.append(f"conv{i}.bias")
        return node("Conv", f"conv{i}", inputs, f"conv{i}.out", kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def norm(i, y):
        values = {"scale": p[f"norm{i}.scale"], "shift": p[f"norm{i}.shift"]}
        values["mean"], values["var"] = stats[f"norm{i}"]
        consts.update({f"norm{i}.{k}": v for k, v in values.items()})
        inputs = [y] + [f"norm{i}.{k}" for k in values]
        return node("BatchNormalization", f"norm{i}", inputs, f"norm{i}.out", epsilon=EPSILON)

    def relu(i, y):
        return node("Relu", f"relu{i}", [y], f"relu{i}.out")

    def pool(i, y):
        return node("MaxPool", f"pool{i}", [y], f"pool{i}.out", kernel_shape=[2, 2], strides=[2, 2])

    y = relu(1, norm(1, conv(1, "image", False)))
    y = pool(1, relu(2, conv(2, y, True)))
    y = pool(2, relu(3, norm(3, conv(3, y, False))))
    y = node("Flatten", "flatten", [y], "features", axis=1)
    consts["score.weight"], consts["score.bias"] = p["score.weight"].T, p["score.bias"]
    node("Gemm", "score", [y, "score.weight", "score.bias"], "scores", transB=1)

    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in consts.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "hone models/digits/make.py"
    onnx.checker.check_model(model, full_check=True)
    return model


def session(out):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(os.path.join(out, "model.onnx"), options, providers=["CPUExecutionProvider"])


def check(out):
    """Print what the files in `out` hold; the number of mistakes on the test split."""
    model = onnx.load(os.path.join(out, "model.onnx"))
    ort = session(out)
    size = os.path.getsize(os.path.join(out, "model.onnx"))
    count = sum(int(np.prod(t.dims)) for t in model.graph.initializer)
    print(f"model.onnx: {count} parameters, {size} bytes")
    for part in ("train", "test"):
        with np.load(os.path.join(out, part + ".npz")) as data:
            image, label = data["image"], data["label"]
        wrong = int((ort.run(None, {"image": image})[0].argmax(1) != label).sum())
        print(f"{part}.npz: {len(label) - wrong} of {len(label)} right, {100 * (1 - wrong / len(label)):.2f} %")
    folder = os.path.join(out, "test_data_set_0")
    x, y = (numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, f))) for f in ("input_0.pb", "output_0.pb"))
    worst = float(np.abs(ort.run(None, {"image": x})[0] - y).max())
    print(f"test_data_set_0: {len(x)} samples, worst difference {worst:.2g}")
    return wrong


def main(argv):
    only_check = "--check" in argv
    rest = [a for a in argv if a != "--check"]
    out = rest[0] if rest else os.path.dirname(os.path.abspath(__file__))
    if not only_check:
        folder = os.path.join(out, "test_data_set_0")
        os.makedirs(folder, exist_ok=True)
        image, label = load()
        parts = dict(zip(("train", "test"), split(label)))
        for part, index in parts.items():
            np.savez_compressed(os.path.join(out, part + ".npz"), image=image[index], label=label[index])
        start = time.perf_counter()
        p, stats = train(image[parts["train"]], label[parts["train"]])
        print(f"trained in {time.perf_counter() - start:.0f} s")
        onnx.save(export(p, stats), os.path.join(out, "model.onnx"))
        x = image[parts["test"][:SET]]
        mine = forward(p, stats, x.transpose(0, 2, 3, 1), False)[0]
        y = session(out).run(None, {"image": x})[0]
        if np.abs(mine - y).max() > 1e-3:
            sys.exit("make.py: ONNX Runtime and this script disagree on the model")
        onnx.save_tensor(numpy_helper.from_array(x, "image"), os.path.join(folder, "input_0.pb"))
        onnx.save_tensor(numpy_helper.from_array(y, "scores"), os.path.join(folder, "output_0.pb"))
    if check(out) > TEST * 2 // 100:
        sys.exit("make.py: less than 98 % of the test split is right")


if __name__ == "__main__":
    main(sys.argv[1:])
