#!/usr/bin/env python3
"""Tokens from a decoder with a key-value cache: hone-run --steps against ONNX Runtime with I/O binding.

usage: generate.py TOOLS [MODEL.onnx] [--steps N] [--prompt IDS] [--rounds N] [--from DECODER.onnx]

Without MODEL, test/onnx/cache_model.py makes one. One thread on both sides, rounds interleaved, the least of each; outputs
of a step stay where they are and are bound as inputs of the next. Of ONNX Runtime the time of its runs alone counts,
not what Python does in between; of hone all that hone-bench says: runs, picking tokens, feeding back. Says whether
the tokens are the same.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime


class Peer:
    def __init__(self, path):
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads = o.inter_op_num_threads = 1
        self.s = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        self.pasts = [i for i in self.s.get_inputs() if i.name.startswith("past_key_values.")]
        self.outputs = [o.name for o in self.s.get_outputs()]

    def generate(self, prompt, steps):
        """Tokens, and seconds of each run."""
        value = onnxruntime.OrtValue.ortvalue_from_numpy
        past = {i.name: value(np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)) for i in self.pasts}
        io, ids, n, tokens, times = self.s.io_binding(), np.array([prompt], np.int64), 0, [], []
        for _ in range(steps):
            k = ids.shape[1]
            io.clear_binding_inputs()
            io.clear_binding_outputs()
            io.bind_cpu_input("input_ids", ids)
            io.bind_cpu_input("attention_mask", np.ones((1, n + k), np.int64))
            io.bind_cpu_input("position_ids", np.arange(n, n + k, dtype=np.int64)[None])
            for name, v in past.items():
                io.bind_ortvalue_input(name, v)
            for name in self.outputs:
                io.bind_output(name, "cpu")
            start = time.perf_counter()
            self.s.run_with_iobinding(io)
            times.append(time.perf_counter() - start)
            out = dict(zip(self.outputs, io.get_outputs()))
            tokens.append(int(out["logits"].numpy()[0, -1].argmax()))
            past = {name: out[name.replace("past_key_values", "present")] for name in past}
            ids, n = np.array([[tokens[-1]]], np.int64), n + k
        return tokens, times


def hone(tools, model, prompt, steps):
    """Tokens of hone-run, and the report of hone-bench."""
    given = ["--input", f"input_ids=[{prompt}]", "--steps", str(steps), "--threads", "1"]
    with tempfile.TemporaryDirectory() as d:
        out = subprocess.run([os.path.join(tools, "hone-run"), model, *given], check=True, capture_output=True).stdout
        path = os.path.join(d, "t.npy")
        with open(path, "wb") as f:
            f.write(out)
        tokens = np.load(path)[0].tolist()
    text = subprocess.run([os.path.join(tools, "hone-bench"), model, *given, "--json", "--time", "1s"], check=True,
                          capture_output=True).stdout
    return tokens, json.loads(text)["generation"][0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tools")
    p.add_argument("model", nargs="?")
    p.add_argument("--steps", type=int, default=256)
    p.add_argument("--prompt", default="1,403,407")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--from", dest="source")
    a = p.parse_args()
    prompt = [int(x) for x in a.prompt.split(",")]
    with tempfile.TemporaryDirectory() as d:
        model = a.model or os.path.join(d, "decoder.onnx")
        if not a.model:
            maker = os.path.join(os.path.dirname(__file__), "..", "onnx", "cache_model.py")
            more = ["--from", a.source] if a.source else ["--layers", "5"]
            subprocess.run([sys.executable, maker, model, *more], check=True)
        peer = Peer(model)
        peer.generate(prompt, a.steps)
        ours, theirs, same = [], [], True
        for _ in range(a.rounds):
            want, times = peer.generate(prompt, a.steps)
            got, report = hone(a.tools, model, f"[{a.prompt}]", a.steps)
            same = same and got == want
            theirs.append((sum(times), times[0], float(np.median(times[1:]))))
            ours.append(tuple(report[k] / 1e3 for k in ("total_ms", "prefill_ms", "token_ms")))
    ours, theirs = np.min(ours, axis=0), np.min(theirs, axis=0)
    for name, i in (("prompt", 1), ("token", 2), (f"{a.steps} steps", 0)):
        print(f"{name:12} hone {ours[i] * 1e6:9.1f} us   ONNX Runtime {theirs[i] * 1e6:9.1f} us   {ours[i] / theirs[i]:.3f}")
    print("same tokens" if same else "tokens differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
