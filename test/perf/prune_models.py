#!/usr/bin/env python3
"""What hone-prune makes of models that come with a few test sets, and what is left of them on sets it has not seen.

usage: prune_models.py TOOLS PART... MODEL_DIR...

A folder holds model.onnx and test_data_set_N with input_K.pb. Parts:

    ratio=R     prunes by half of the sets (every other one) with --ratio R, and holds each output against the original's on the other
                half: dB of the error below the output's own spread ("told": by hone-prune), by ONNX Runtime, with which hone has to
                agree. Of an output of less than 13 dB it is said how the report names it
    flops=F     with --flops F and all sets: time over the dense model's in hone and in ONNX Runtime, one thread, interleaved
    latency=T   with --latency T and all sets: the same
    max-drop=P  with nothing but --max-drop P: the same, or why nothing was written

Each is run once. Needs numpy, onnx and onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

LITTLE = 13.0


def sets_of(folder):
    return sorted((d for d in os.listdir(folder) if d.startswith("test_data_set_")), key=lambda d: int(d[14:]))


def half(folder, names, to):
    os.mkdir(to)
    for name in names:
        os.symlink(os.path.abspath(os.path.join(folder, name)), os.path.join(to, name))
    return to


def tensor(path):
    t = onnx.TensorProto()
    with open(path, "rb") as f:
        t.ParseFromString(f.read())
    return numpy_helper.to_array(t)


def session(model):
    import onnxruntime
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 3
    return onnxruntime.InferenceSession(model, o, providers=["CPUExecutionProvider"])


def inputs(s, folder):
    return {x.name: tensor(os.path.join(folder, f"input_{k}.pb")) for k, x in enumerate(s.get_inputs())}


def spread_db(want, got):
    want, got = (np.concatenate([np.ravel(a).astype("float64") for a in x]) for x in (want, got))
    error, spread = np.mean((want - got) ** 2), np.var(want)
    return np.inf if error == 0 else -np.inf if spread == 0 else 10 * np.log10(spread / error)


def prune(tools, model, data, out, *options):
    run = subprocess.run([os.path.join(tools, "hone-prune"), model, "--calib", data, "-o", out, "--json", *options, "-t", "1"],
                         capture_output=True, text=True)
    return run.returncode, run.stderr.strip().replace("hone-prune: ", ""), json.loads(run.stdout) if run.returncode == 0 else None


def outputs_of(tools, model, data, to):
    subprocess.run([os.path.join(tools, "hone-run"), model, "--data", data, "--out", to, "-q"], check=True, capture_output=True)
    return [[tensor(os.path.join(to, s, f)) for f in sorted(os.listdir(os.path.join(to, s)))
             if f.startswith("output_")] for s in sets_of(to)]


def ratio(tools, folder, how, work):
    model, sets = os.path.join(folder, "model.onnx"), sets_of(folder)
    out = os.path.join(work, "p.onnx")
    seen, unseen = half(folder, sets[0::2], os.path.join(work, "seen")), half(folder, sets[1::2], os.path.join(work, "unseen"))
    status, said, report = prune(tools, model, seen, out, "--ratio", how, "--force")
    if status != 0:
        return f"status {status}: {said.splitlines()[-1]}"
    dense, small = session(model), session(out)
    want, ort = ([s.run(None, inputs(dense, os.path.join(unseen, d))) for d in sets_of(unseen)] for s in (dense, small))
    hone = outputs_of(tools, out, unseen, os.path.join(work, "out"))
    differ = max(float(np.max(np.abs(a.astype("float64") - b)) / max(np.max(np.abs(a)), 1e-30))
                 for x, y in zip(ort, hone) for a, b in zip(x, y))
    rows, reasons = [], {r["name"]: r for r in report["outputs"]}
    for k, o in enumerate(dense.get_outputs()):
        db, r = spread_db([x[k] for x in want], [x[k] for x in ort]), reasons.get(o.name, {})
        named = "" if db >= LITTLE else f" {r['reason']}" if r.get("reason") else " NOT NAMED"
        rows.append(f"{o.name} {db:.1f} (told {r.get('spread_db') or np.inf:.1f}){named}")
    weights = [x["weights_after"] / x["weights_before"] for x in report["layers"] if x["weights_after"]]
    same = [c["name"] for c in report["classes"] if c["width_after"] >= c["width_before"]]
    return (f"{len(report['classes'])} classes, {len(same)} of them no smaller; {sum(w < 1 for w in weights)} of {len(weights)} layers have "
            f"{np.mean([w for w in weights if w < 1] or [1]):.2f} of their weights left, at most {max([w for w in weights if w < 1] or [1]):.2f}; "
            f"hone and ONNX Runtime differ by {differ:.1e}; dB: {'; '.join(rows)}")


def hone_time(tools, a, b):
    said = subprocess.run([os.path.join(tools, "hone-bench"), a, b, "-t", "1", "--json"], capture_output=True, text=True)
    runs = json.loads(said.stdout)["runs"]
    return runs[1]["latency_ms"]["p50"] / runs[0]["latency_ms"]["p50"]


def ort_time(a, b, folder, seconds=3.0):
    s = [session(a), session(b)]
    x = inputs(s[0], os.path.join(folder, "test_data_set_0"))
    took, end = ([], []), time.perf_counter() + seconds
    while time.perf_counter() < end or len(took[0]) < 5:
        for k in (0, 1):
            begin = time.perf_counter()
            s[k].run(None, x)
            took[k].append(time.perf_counter() - begin)
    return float(np.median(took[1]) / np.median(took[0]))


def timed(option):
    """A part that prunes with that option."""
    def measure(tools, folder, how, work):
        model, out = os.path.join(folder, "model.onnx"), os.path.join(work, "p.onnx")
        begin = time.perf_counter()
        status, said, report = prune(tools, model, folder, out, option, how, *(["--force"] if option != "--max-drop" else []))
        took = time.perf_counter() - begin
        if status != 0:
            return f"status {status}: {said.splitlines()[-1]} ({took:.0f} s)"
        return (f"hone {hone_time(tools, model, out):.3f} (told {report['gain'].get('effect') or np.nan:.3f}), ONNX Runtime {ort_time(model, out, folder):.3f}, "
                f"operations {report['flops']['ratio']:.3f}, {report['score']['sqnr_db']:.1f} dB ({took:.0f} s)")
    return measure


PARTS = {"ratio": ratio, "flops": timed("--flops"), "latency": timed("--latency"), "max-drop": timed("--max-drop")}


def main(args):
    if len(args) < 3:
        sys.exit(__doc__)
    parts = [a.split("=", 1) for a in args[1:] if a.split("=")[0] in PARTS and "=" in a]
    for folder in [a for a in args[1:] if a.split("=")[0] not in PARTS]:
        for part, how in parts:
            with tempfile.TemporaryDirectory() as work:
                print(f"{os.path.basename(folder.rstrip('/'))} {part}={how}: {PARTS[part](args[0], folder, how, work)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
