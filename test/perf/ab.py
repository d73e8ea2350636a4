#!/usr/bin/env python3
"""How often hone-bench is right about pairs of models of which the truth is known.

    ab.py [--bench PATH] [--runs N] [MODEL...]

Pairs: a chain of equal layers with itself and with a copy that has 5 % more of them; each MODEL with itself. Prints the
verdicts, and exits with 1 where fewer than nine in ten are right. Takes minutes; needs the Python package onnx.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, MORE, WIDTH, ROWS = 40, 2, 128, 32


def chain(path, layers):
    """layers times MatMul and Relu, on f32[ROWS,WIDTH]"""
    rng = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        w = (rng.standard_normal((WIDTH, WIDTH)) * np.sqrt(2 / WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
        last = f"r{i}"
    shape = [ROWS, WIDTH]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), path)


def compare(args, a, b, *options):
    command = [args.bench, "-t1", "--json", *options, str(a), str(b)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3, 5):
        sys.exit(f"{command} ended with {done.returncode}")
    return json.loads(done.stdout)["compare"][0], done.returncode


def judge(args, what, a, b, want, *options):
    """Compares a with b args.runs times; whether nine in ten verdicts are the wanted one."""
    right, found, start = 0, [], time.monotonic()
    for _ in range(args.runs):
        c, _ = compare(args, a, b, *options)
        right += c["verdict"] == want
        found.append(f"{c['verdict']} {100 * (c['effect'] - 1):+.1f} % of {c['instances']}")
    seconds = (time.monotonic() - start) / args.runs
    print(f"{what}: {right} of {args.runs} '{want}', {seconds:.1f} s each", flush=True)
    for text in found:
        if not text.startswith(want) or args.verbose:
            print(f"    {text}", flush=True)
    return right * 10 >= args.runs * 9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", metavar="MODEL", nargs="*")
    parser.add_argument("--bench", default="hone-bench")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        base, copy, more = (pathlib.Path(folder) / name for name in ("base.onnx", "copy.onnx", "more.onnx"))
        chain(base, LAYERS)
        chain(copy, LAYERS)
        chain(more, LAYERS + MORE)
        ok &= judge(args, "equal chains", base, copy, "no difference")
        ok &= judge(args, "5 % more layers", base, more, "slower")
        ok &= judge(args, "5 % fewer layers", more, base, "faster")
        for model in args.models:
            other = pathlib.Path(folder) / "model.onnx"
            other.write_bytes(pathlib.Path(model).read_bytes())
            ok &= judge(args, f"{model} and its copy", model, other, "no difference")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
