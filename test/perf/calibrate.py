#!/usr/bin/env python3
"""Calibration in hone and in ONNX Runtime: time, peak memory and ranges, of the same model on the same samples.

    .deps/venv/bin/python test/perf/calibrate.py [--hone build/test/perf-calibrate] [--rounds 3] [--values all|needed]
        squeezenet11-fp32d [stories260k ...]

Each side is a process of its own, one thread, interleaved; figures are the least of the rounds, in processor time of
whole processes, in parentheses that of ONNX Runtime without its imports. Samples are made up, of varying length where
a model's inputs have free dimensions. With "needed", hone looks at what a quantized model has scales for; ONNX Runtime
always looks at everything. Percentiles differ: ONNX Runtime's are of magnitudes, its bins too wide after
later samples brought larger numbers.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

FOLDER = pathlib.Path(os.environ.get("HONE_MODELS", "../shared/models"))
METHODS = {"minmax": "MinMax", "percentile": "Percentile", "entropy": "Entropy"}
TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16}


def make_samples(model, folder, count):
    """One .npz for each sample; free dimensions are 1, or of another length each time where there are several."""
    rng = np.random.default_rng(1)
    graph = onnx.load(model, load_external_data=False).graph
    weights = {w.name for w in graph.initializer}
    for i in range(count):
        sample, free = {}, {}
        for x in graph.input:
            if x.name in weights:
                continue
            t = x.type.tensor_type
            dims = []
            for k, d in enumerate(t.shape.dim):
                if d.HasField("dim_value"):
                    dims.append(d.dim_value)
                else:
                    dims.append(free.setdefault(d.dim_param, 1 if k == 0 else 8 + 5 * i))
            dtype = TYPES[t.elem_type]
            sample[x.name] = (
                rng.standard_normal(dims).astype(dtype)
                if np.issubdtype(dtype, np.floating)
                else rng.integers(0, 100, dims).astype(dtype)
            )
        np.savez(folder / f"{i:04}.npz", **sample)


def needed_values(model):
    """What a quantized model has scales for: not what goes from a convolution into a Relu, which are one there."""
    graph = onnx.load(model, load_external_data=False).graph
    weights, readers = {w.name for w in graph.initializer}, {}
    for n in graph.node:
        for x in n.input:
            readers.setdefault(x, []).append(n.op_type)
    values = [x.name for x in graph.input if x.name not in weights]
    for n in graph.node:
        if n.op_type not in ("Conv", "Gemm", "Constant") or readers.get(n.output[0]) != ["Relu"]:
            values.extend(n.output[:1])
    return values


def run_ort(model, folder, method):
    """In a process of its own."""
    from onnxruntime.quantization import calibrate as c

    class Reader(c.CalibrationDataReader):
        def __init__(self):
            self.files = iter(sorted(pathlib.Path(folder).glob("*.npz")))

        def get_next(self):
            path = next(self.files, None)
            return dict(np.load(path)) if path else None

    import onnxruntime

    created = onnxruntime.SessionOptions

    def one_thread():
        o = created()
        o.intra_op_num_threads = 1
        return o

    onnxruntime.SessionOptions = one_thread
    out = str(pathlib.Path(folder) / "augmented.onnx")
    t0 = time.process_time()
    calibrater = c.create_calibrator(
        model, calibrate_method=getattr(c.CalibrationMethod, METHODS[method]), augmented_model_path=out
    )
    calibrater.collect_data(Reader())
    ranges = calibrater.compute_data().data
    seconds = time.process_time() - t0
    spans = {k: [float(np.min(v.range_value[0])), float(np.max(v.range_value[1]))] for k, v in ranges.items()}
    peak = int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
    print(json.dumps({"seconds": time.process_time(), "own": seconds, "bytes": peak, "spans": spans}))


def ort(model, folder, method):
    done = subprocess.run([sys.executable, __file__, "--ort", method, str(model), str(folder)], capture_output=True)
    if done.returncode != 0:
        return done.stderr.decode(errors="replace").strip().splitlines()[-1][:160]
    return json.loads(done.stdout.splitlines()[-1])


def hone(program, model, folder, method, values):
    command = [program, str(model), str(folder), "-t", "1", "--samples", "1000000", "--method", method]
    if values:
        command += ["--values", values]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    seconds = float(re.search(r"time ([\d.]+) s", done.stderr)[1])
    peak = float(re.search(r"process peak ([\d.]+) MB", done.stderr)[1]) * 1e6
    return {"seconds": seconds, "own": seconds, "bytes": peak, "spans": {n: [float(a), float(b)] for n, a, b in rows}}


def least(results):
    good = [r for r in results if not isinstance(r, str)]
    if not good:
        return results[0]
    return dict(good[0], **{k: min(r[k] for r in good) for k in ("seconds", "own", "bytes")})


def compare(program, name, rounds, samples, needed):
    model = FOLDER / name / "model.onnx"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_samples(model, folder, samples)
        values = str(folder / "values.txt") if needed else None
        if needed:
            pathlib.Path(values).write_text("\n".join(needed_values(model)))
        for method in METHODS:
            theirs, ours = [], []
            for _ in range(rounds):
                theirs.append(ort(model, folder, method))
                ours.append(hone(program, model, folder, method, values))
            a, b = least(ours), least(theirs)
            line = f"{name} {method}: "
            line += a if isinstance(a, str) else f"hone {a['seconds']:.2f} s {a['bytes'] / 1e6:.0f} MB"
            line += ", ONNX Runtime "
            line += b if isinstance(b, str) else f"{b['seconds']:.2f} ({b['own']:.2f}) s {b['bytes'] / 1e6:.0f} MB"
            if not isinstance(a, str) and not isinstance(b, str):
                both = [k for k in a["spans"] if k in b["spans"]]
                worst, where = max(
                    (
                        max(abs(x - y) for x, y in zip(a["spans"][k], b["spans"][k]))
                        / max(1e-9, *(abs(y) for y in b["spans"][k])),
                        k,
                    )
                    for k in both
                )
                line += f"; time {a['seconds'] / b['seconds']:.3f} ({a['seconds'] / b['own']:.3f}), memory {a['bytes'] / b['bytes']:.3f}"
                line += f"; {len(both)} of {len(a['spans'])} and {len(b['spans'])} ranges, at most {worst:.1%} apart ('{where}')"
            print(line, flush=True)


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--ort":
        run_ort(sys.argv[3], sys.argv[4], sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", default="build/test/perf-calibrate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--values", choices=["all", "needed"], default="all")
    parser.add_argument("models", nargs="+")
    o = parser.parse_args()
    for name in o.models:
        compare(o.hone, name, o.rounds, o.samples, o.values == "needed")


if __name__ == "__main__":
    main()
