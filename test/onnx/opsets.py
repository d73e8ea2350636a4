#!/usr/bin/env python3
"""Convert models to other opsets and back, and judge what comes out; prints TAP.

usage: opsets.py [options] --cases DIR LIST...        conformance cases made by make_cases.py
       opsets.py [options] --models DIR               folders DIR/NAME with model.onnx and test_data_set_N

Each model is converted by hn-convert to each opset of --to. What comes out must be valid (onnx.checker with shape
inference) where the original is, load and agree with the data in ONNX Runtime where the original does, and agree with
the data in hone-run where the original does; so must what comes out of converting back. A node that blocks is no
failure: it is named, and counted by its reason at the end.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import run_cases  # noqa: E402

ort.set_default_logger_severity(4)


def load_values(folder, kind, model_values):
    values = []
    for i, v in enumerate(model_values):
        path = os.path.join(folder, f"{kind}_{i}.pb")
        if not os.path.exists(path):
            values.append(None)
            continue
        with open(path, "rb") as f:
            data = f.read()
        if v.type.WhichOneof("value") != "tensor_type":
            raise ValueError("not a tensor")
        t = onnx.TensorProto()
        t.ParseFromString(data)
        values.append(numpy_helper.to_array(t))
    return values


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return 1.0 if norm == 0 else float(a @ b / norm)


def agree(got, want, tol):
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if got.dtype.kind not in "fc":
        return bool((got == want).all()) if tol["cos"] is None else cosine(got, want) >= tol["cos"]
    if tol["cos"] is not None:
        return cosine(got, want) >= tol["cos"]
    return bool(np.allclose(got.astype(np.float64), want.astype(np.float64), tol["rtol"], tol["atol"], equal_nan=True))


def judged_by_ort(path, sets, tol):
    """'' or why ONNX Runtime does not agree"""
    model = onnx.load(path, load_external_data=False)
    weights = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    try:
        o = ort.SessionOptions()
        o.intra_op_num_threads = 1
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # what the file says
        session = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        for s in sets:
            feeds = {i.name: v for i, v in zip(inputs, load_values(s, "input", inputs)) if v is not None}
            want = load_values(s, "output", model.graph.output)
            got = session.run(None, feeds)
            for k, (g, w) in enumerate(zip(got, want)):
                if w is not None and not agree(g, w, tol):
                    return f"output {k} differs"
    except Exception as e:  # whatever the judge says
        return " ".join(str(e).split())[:300]
    return ""


def judged_by_checker(path):
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as e:
        return " ".join(str(e).split())[:300]
    return ""


def judged_by_hone(tool, path, sets, tol):
    bar = ["--min-cos", str(tol["cos"])] if tol["cos"] is not None else \
        ["--rtol", repr(tol["rtol"]), "--atol", repr(tol["atol"])]
    for s in sets:
        p = subprocess.run([tool, path, "--test-data", s] + bar, capture_output=True, text=True, timeout=120)
        if p.returncode != 0:
            return f"exit {p.returncode}: {(p.stderr or p.stdout).strip()[-300:]}"
    return ""


def opset_of(path):
    model = onnx.load(path, load_external_data=False)
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


class Judge:
    def __init__(self, a):
        self.a = a

    def verdicts(self, path, sets, tol):
        return {"checker": judged_by_checker(path), "ONNX Runtime": judged_by_ort(path, sets, tol),
                "hone": judged_by_hone(self.a.run, path, sets, tol)}

    def one(self, name, folder):
        """-> list of (target, '' or failure, blocked lines); None where the case is of no use"""
        path = os.path.join(folder, "model.onnx")
        sets = sorted(os.path.join(folder, s) for s in os.listdir(folder) if s.startswith("test_data_set_"))
        tol = {"rtol": 1e-3, "atol": 1e-4, "cos": None}
        if os.path.exists(os.path.join(folder, "data.json")):
            import json
            with open(os.path.join(folder, "data.json")) as f:
                tol.update(json.load(f))
        else:
            bar = run_cases.bar_of(path)
            if bar[0] == "--min-cos":
                tol["cos"] = float(bar[1])
            else:
                tol.update(rtol=float(bar[1]), atol=float(bar[3]))
        # another order of operations: a few roundings more than the original's own
        tol["rtol"], tol["atol"] = max(tol["rtol"], 1e-4), max(tol["atol"], 1e-5)
        own = opset_of(path)
        if own < 7:
            return None
        before = self.verdicts(path, sets, tol)
        results = []
        with tempfile.TemporaryDirectory() as tmp:
            for target in self.a.to:
                if target == own:
                    continue
                for way, opsets in (("to", [target]), ("to and back from", [target, 0])):
                    out = os.path.join(tmp, "out.onnx")
                    p = subprocess.run([self.a.convert, path, out] + [str(o) for o in opsets], capture_output=True,
                                       text=True, timeout=120)
                    label = f"{way} {target}"
                    if p.returncode == 4 and p.stdout:
                        results.append((label, "", p.stdout.splitlines()))
                        continue
                    if p.returncode != 0:
                        results.append((label, f"hn-convert: {p.stderr.strip()[-300:]}", []))
                        continue
                    after = self.verdicts(out, sets, tol)
                    if way == "to" and opset_of(out) != target:
                        after["checker"] = f"the opset is {opset_of(out)}"
                    worse = [f"{k}: {v}" for k, v in after.items() if v and not before[k]]
                    results.append((label, "; ".join(worse), []))
        return results


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("lists", nargs="*")
    ap.add_argument("--cases")
    ap.add_argument("--models")
    ap.add_argument("--to", default="13,17,21", type=lambda s: [int(x) for x in s.split(",")])
    ap.add_argument("--convert", default="build/test/hn-convert")
    ap.add_argument("--run", default="build/tools/hone-run")
    ap.add_argument("--only", help="only ids with this in them")
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    a = ap.parse_args()
    if bool(a.cases) == bool(a.models):
        ap.error("either --cases or --models")
    root = a.cases or a.models
    names = run_cases.ids_of(a.lists) if a.cases else sorted(
        n for n in os.listdir(root) if os.path.exists(os.path.join(root, n, "model.onnx")))
    names = [n for n in names if not a.only or a.only in n]
    judge = Judge(a)
    n = failed = blocked = skipped = 0
    reasons = collections.Counter()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, results in zip(names, pool.map(lambda i: judge.one(i, os.path.join(root, i)), names)):
            if results is None:
                skipped += 1
            for label, why, lines in results or []:
                n += 1
                failed += bool(why)
                blocked += bool(lines)
                for line in lines:
                    reasons[re.sub(r"node '.*?' (\(.*?\)): ", r"\1 ", line)] += 1
                why = why.replace("#", "")
                print(f"{'not ' if why else ''}ok {n} - {name} {label}" + (f" # {why}" if why else "") +
                      (f" # blocked: {lines[0]}" if lines else ""), flush=True)
    print(f"1..{n}")
    for reason, count in reasons.most_common():
        print(f"# {count:5} {reason}")
    print(f"# {n - failed - blocked} of {n} conversions ({100 * (n - failed - blocked) / max(n, 1):.1f} %) hold, "
          f"{blocked} are blocked, {failed} failed; {skipped} models are of an opset below 7")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
