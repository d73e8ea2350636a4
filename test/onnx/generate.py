#!/usr/bin/env python3
"""Decoders with a key-value cache, made by cache_model.py: what hone-run --steps says against ONNX Runtime; prints TAP.

usage: generate.py TOOLS

The model as Optimum would export it, and as hone-export writes it at opset 23 (Attention, RotaryEmbedding): the same
tokens as ONNX Runtime's, which feeds outputs back by hand, the last logits and caches within 1e-4, and no step planned
for its shapes.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

PROMPT, STEPS = [[1, 403, 407, 5], [9, 2, 300, 77]], 24


def load(name):
    path = os.path.join(os.path.dirname(__file__), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def peer(path):
    """Tokens, and the outputs of the last step."""
    s = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    past = {i.name: np.zeros((len(PROMPT), i.shape[1], 0, i.shape[3]), np.float32)
            for i in s.get_inputs() if i.name.startswith("past")}
    ids, n, tokens, names = np.array(PROMPT, np.int64), 0, [], [o.name for o in s.get_outputs()]
    for _ in range(STEPS):
        total = n + ids.shape[1]
        feeds = {"input_ids": ids, "attention_mask": np.ones((len(PROMPT), total), np.int64),
                 "position_ids": np.tile(np.arange(n, total), (len(PROMPT), 1)), **past}
        out = dict(zip(names, s.run(None, feeds)))
        past = {k: out[k.replace("past_key_values", "present")] for k in past}
        ids, n = out["logits"][:, -1].argmax(-1)[:, None], total
        tokens.append(ids[:, 0])
    return np.stack(tokens, 1), [out[k] for k in names]


def check(tools, path, d):
    want, outputs = peer(path)
    out, report = os.path.join(d, "out"), os.path.join(d, "report.json")
    subprocess.run([os.path.join(tools, "hone-run"), path, "--input", f"input_ids={json.dumps(PROMPT)}", "--steps",
                    str(STEPS), "--out", out, f"--json={report}"], check=True, capture_output=True)
    got = []
    for k in range(len(outputs) + 1):
        with open(os.path.join(out, "test_data_set_0", f"output_{k}.pb"), "rb") as f:
            got.append(numpy_helper.to_array(onnx.TensorProto.FromString(f.read())))
    with open(report) as f:
        planned = json.load(f)["loop"]["planned"]
    if planned is not None:
        return f"steps are planned: {planned}"
    if not np.array_equal(got[-1], want):
        return f"tokens are {got[-1].tolist()}, not {want.tolist()}"
    for k, (x, y) in enumerate(zip(got, outputs)):
        if x.shape != y.shape or not np.allclose(x, y, 1e-4, 1e-4):
            return f"output {k} differs"
    return None


def main():
    tools = sys.argv[1]
    maker = load("cache_model")
    print("1..2")
    with tempfile.TemporaryDirectory() as d:
        plain, fused = os.path.join(d, "plain.onnx"), os.path.join(d, "fused.onnx")
        onnx.save(maker.model(maker.random_weights(2, 3), 2), plain)
        subprocess.run([os.path.join(tools, "hone-export"), plain, "--opset", "23", "--no-check", "-o", fused], check=True,
                       capture_output=True)
        bad = 0
        for i, (name, path) in enumerate((("as it is made", plain), ("as hone-export writes it", fused))):
            folder = os.path.join(d, str(i))
            os.makedirs(folder)
            why = check(tools, path, folder)
            bad += why is not None
            print(f"{'not ' if why else ''}ok {i + 1} {name}{': ' + why if why else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
