#!/usr/bin/env python3
"""Accuracy of small students that hone-distill trains from random weights, by what they learn from.

usage: distill.py TOOLS TEACHER TRAIN.npz TEST.npz [--channels 6,6,12,12,24] [--seeds 5] [--epochs 40] [--folded]
                  [--keep DIR] [WAY...]

The student is a CNN of five 3x3 convolutions with BatchNormalization and Relu (--folded: with biases instead of the
normalization), pooled by 2 behind the second and the fourth one, a mean over the image, and a Gemm. WAY is one of

    labels        the labels alone                       labels:100    a tenth each of 100 labels
    default       no label, options as they are          both          labels and teacher, options as they are
    OPTIONS       such as "--no-labels --kd mse"

distill.py --bytes-student OUT.onnx [--channels 32,224]    writes a student for models that tell kinds of files by 2,048 bytes
                  (gather_blocks.py): 257 embeddings, four bytes to a position, LayerNormalization, a convolution over 5, the
                  largest of each channel, LayerNormalization, 214 classes

Prints a row for each: accuracy on TEST by seed, mean, spread over seeds, seconds in all. TEST is looked at by nothing that
decides: each run holds out a tenth of TRAIN. nan: a guard refused what was trained. Needs numpy and onnx.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from prune import accuracy, option


def student(path, channels, image, folded, name, classes=10):
    rs, nodes, weights = np.random.RandomState(0), [], []

    def weight(name, x):
        weights.append(numpy_helper.from_array(x.astype("float32"), name))
        return name

    x, width = name, image[0]
    for i, n in enumerate(channels):
        kernel = weight(f"conv{i}.weight", rs.normal(0, np.sqrt(2 / (9 * width)), (n, width, 3, 3)))
        inputs = [x, kernel] + ([weight(f"conv{i}.bias", np.zeros(n))] if folded else [])
        nodes.append(helper.make_node("Conv", inputs, [f"conv{i}"], pads=[1] * 4))
        if not folded:
            norm = [weight(f"norm{i}.{what}", np.full(n, v)) for what, v in
                    (("scale", 1), ("bias", 0), ("mean", 0), ("var", 1))]
            nodes.append(helper.make_node("BatchNormalization", [f"conv{i}"] + norm, [f"norm{i}"]))
        nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], [f"relu{i}"]))
        if i in (1, 3):
            nodes.append(helper.make_node("MaxPool", [f"relu{i}"], [f"pool{i}"], kernel_shape=[2, 2], strides=[2, 2]))
        x, width = nodes[-1].output[0], n
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["mean"]))
    nodes.append(helper.make_node("Flatten", ["mean"], ["flat"]))
    last = [weight("fc.weight", rs.normal(0, np.sqrt(1 / width), (classes, width))), weight("fc.bias", np.zeros(classes))]
    nodes.append(helper.make_node("Gemm", ["flat"] + last, ["scores"], transB=1))
    graph = helper.make_graph(nodes, "student", [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *image])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", classes])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return sum(int(np.prod(w.dims)) for w in weights if not w.name.endswith((".mean", ".var")))


def bytes_student(path, width, channels, name="bytes", length=2048, classes=214):
    rs, nodes, weights = np.random.RandomState(0), [], []

    def weight(name, x, kind="float32"):
        weights.append(numpy_helper.from_array(np.asarray(x, kind), name))
        return name

    def node(op, inputs, out, **attributes):
        nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def norm(x, n, out, axis):
        return node("LayerNormalization", [x, weight(out + ".scale", np.ones(n)), weight(out + ".bias", np.zeros(n))], out, axis=axis)

    x = node("Gather", [weight("embedding", rs.normal(0, 0.5, (257, width))), name], "embedded")
    x = node("Reshape", [x, weight("four", [0, length // 4, 4 * width], "int64")], "positions")
    x = node("Transpose", [norm(x, 4 * width, "norm0", -1)], "turned", perm=[0, 2, 1])
    kernel = weight("conv.weight", rs.normal(0, np.sqrt(2 / (20 * width)), (channels, 4 * width, 5)))
    x = node("Conv", [x, kernel, weight("conv.bias", np.zeros(channels))], "conv", pads=[2, 2])
    x = node("Flatten", [node("GlobalMaxPool", [node("Gelu", [x], "gelu")], "largest")], "flat")
    last = [weight("fc.weight", rs.normal(0, np.sqrt(1 / channels), (classes, channels))), weight("fc.bias", np.zeros(classes))]
    node("Gemm", [norm(x, channels, "norm1", -1)] + last, "scores", transB=1)
    graph = helper.make_graph(nodes, "student", [helper.make_tensor_value_info(name, TensorProto.INT32, ["N", length])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", classes])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def fewer(path, out, n):
    """n labels: as many of each class, the first ones."""
    z = dict(np.load(path))
    label = z["label"]
    where = np.concatenate([np.flatnonzero(label == c)[: n // 10] for c in np.unique(label)])
    np.savez(out, **{k: v[where] for k, v in z.items()})
    return out


def arguments(way, teacher, train, folder):
    if way.startswith("labels"):
        n = way.partition(":")[2]
        return ["--data", fewer(train, f"{folder}/fewer.npz", int(n)) if n else train, "--loss", "ce"]
    ways = {"default": ["--no-labels"], "both": []}
    return ["--teacher", teacher, "--data", train, *ways.get(way, way.split())]


def main(args):
    out = option(args, "--bytes-student", None)
    if out:
        return bytes_student(out, *(int(c) for c in option(args, "--channels", "32,224").split(",")))
    folder = option(args, "--keep", None) or tempfile.mkdtemp()
    channels = [int(c) for c in option(args, "--channels", "6,6,12,12,24").split(",")]
    seeds, epochs = int(option(args, "--seeds", 5)), option(args, "--epochs", "40")
    folded = "--folded" in args and not args.remove("--folded")
    if len(args) < 4:
        sys.exit(__doc__)
    tools, teacher, train, test = args[:4]
    os.makedirs(folder, exist_ok=True)
    z = np.load(train)
    name = next(k for k in z.files if k != "label")
    weights = student(f"{folder}/student.onnx", channels, z[name].shape[1:], folded, name)
    print(f"student of {weights} weights, {epochs} epochs, teacher {accuracy(tools, teacher, test):.2f} %")
    for way in args[4:] or ["labels", "default", "both", "labels:100"]:
        top, start = [], time.time()
        for seed in range(seeds):
            out = f"{folder}/{way.replace(' ', '_').replace('/', '_')}-{seed}.onnx"
            run = [f"{tools}/hone-distill", "--student", f"{folder}/student.onnx", "--init", f"random:{seed}", "--seed", str(seed),
                   "--epochs", epochs, "-o", out, "-q", "--json=" + out + ".json", *arguments(way, teacher, train, folder)]
            made = subprocess.run(run, capture_output=True, text=True)
            if made.returncode not in (0, 3):
                sys.exit(f"{' '.join(run)}: {made.stderr}")
            top.append(accuracy(tools, out, test) if made.returncode == 0 else float("nan"))
        spread = np.std(top, ddof=1) if seeds > 1 else 0
        print(f"{way:40} {np.mean(top):6.2f} +- {spread:4.2f}  {time.time() - start:5.1f} s  "
              + " ".join(f"{t:.2f}" for t in top), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
