#!/usr/bin/env python3
"""Models of scikit-learn, XGBoost and LightGBM, through hone-run and ONNX Runtime; prints TAP.

usage: judge_ml.py TOOLS [--table]

Labels have to be equal, scores within 1e-5 of the larger of 1 and their own size. The models beside this file are
make_models.py's.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = sys.argv[1]
TABLE = "--table" in sys.argv
TOLERANCE = 1e-5
# the graph subtracts in f32 what is nearly equal: hone is 1.7e-5 off from scikit-learn's doubles, ONNX Runtime 1.2e-5
LOOSE = {"process": 1e-4}
INPUTS = np.load(os.path.join(HERE, "inputs.npz"))


def peer(model):
    o = ort.SessionOptions()
    o.log_severity_level = 3
    s = ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])
    key = s.get_inputs()[0].name
    x = INPUTS[key]
    return key, [v.type for v in s.get_outputs()], s.run(None, {key: x.astype(object) if x.dtype.kind == "U" else x})


def read(path, kind):
    with open(path, "rb") as f:
        data = f.read()
    if not kind.startswith("seq"):
        return numpy_helper.to_array(onnx.TensorProto.FromString(data))
    return [numpy_helper.to_dict(m) for m in onnx.SequenceProto.FromString(data).map_values]


def own(model, key, kinds, work):
    x = INPUTS[key]
    t = numpy_helper.from_array(x.astype(object) if x.dtype.kind == "U" else x, key)
    path = os.path.join(work, "x.pb")
    with open(path, "wb") as f:
        f.write(t.SerializeToString())
    out = os.path.join(work, "out")
    p = subprocess.run([f"{TOOLS}/hone-run", "-t", "1", model, "--input", f"{key}={path}", "-o", out], capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError(p.stderr.strip())
    return [read(os.path.join(out, "test_data_set_0", f"output_{k}.pb"), kind) for k, kind in enumerate(kinds)]


def plain(v):
    return v.decode() if isinstance(v, bytes) else v


def flat(v):
    """An output as labels or keys, and numbers."""
    if isinstance(v, list):
        rows = [sorted((plain(k), float(s)) for k, s in row.items()) for row in v]
        return [k for row in rows for k, _ in row], np.array([s for row in rows for _, s in row])
    if v.dtype.kind in "fd":
        return v.shape, v.ravel().astype(np.float64)
    return [v.shape] + [str(plain(k)) for k in v.ravel().tolist()], np.zeros(0)


def differs(name, got, want):
    worst = 0.0
    for g, w in zip(got, want):
        (g_words, g_numbers), (w_words, w_numbers) = flat(g), flat(w)
        if list(g_words) != list(w_words):
            return "labels or shapes are not equal", worst
        if g_numbers.size:
            worst = max(worst, float(np.max(np.abs(g_numbers - w_numbers) / np.maximum(1, np.abs(w_numbers)))))
    limit = LOOSE.get(name, TOLERANCE)
    return (f"scores are {worst:.1e} off" if not worst <= limit else None), worst


def judge(name, work):
    model = os.path.join(HERE, name + ".onnx")
    key, kinds, want = peer(model)
    return differs(name, own(model, key, kinds, work), want)


def judge_tensor(work):
    """A map becomes a tensor under its name, which ONNX Runtime reads."""
    out = os.path.join(work, "tensor.onnx")
    subprocess.run([f"{TOOLS}/hone-export", "-q", os.path.join(HERE, "forest_map.onnx"), "-o", out, "--no-zipmap"], check=True)
    _, kinds, got = peer(out)
    _, _, want = peer(os.path.join(HERE, "forest_map.onnx"))
    rows = np.array([[row[k] for k in sorted(row)] for row in want[1]])
    return None if kinds[1] == "tensor(float)" and np.allclose(got[1], rows, atol=1e-6) else "scores are others", 0.0


def judge_refusal(tool, *more):
    """Who changes weights finds none in trees, and says so."""
    path = os.path.join(HERE, "xgboost.onnx")
    p = subprocess.run([f"{TOOLS}/{tool}", path, "-o", os.devnull, "--speed-only", *more], capture_output=True, text=True)
    return None if p.returncode != 0 and ("no node whose weights" in p.stderr or "no layer" in p.stderr) else p.stderr.strip(), 0.0


def judge_counts():
    p = subprocess.run([f"{TOOLS}/hone-inspect", os.path.join(HERE, "forest.onnx")], capture_output=True, text=True)
    return None if "trees: 5\n" in p.stdout + p.stderr else p.stdout + p.stderr, 0.0


def main():
    names = sorted(f[:-5] for f in os.listdir(HERE) if f.endswith(".onnx"))
    with tempfile.TemporaryDirectory() as work:
        tests = [(n, lambda n=n: judge(n, work)) for n in names]
        tests += [("hone-export --no-zipmap", lambda: judge_tensor(work)),
                  ("hone-inspect counts trees", judge_counts),
                  ("hone-quantize leaves trees alone", lambda: judge_refusal("hone-quantize", "--calib=random:8")),
                  ("hone-prune leaves trees alone", lambda: judge_refusal("hone-prune", "--sparsity=0.5"))]
        print(f"1..{len(tests)}")
        failed = 0
        for i, (name, test) in enumerate(tests, 1):
            try:
                wrong, worst = test()
            except Exception as problem:  # the next model is judged all the same
                wrong, worst = str(problem), 0.0
            failed += wrong is not None
            print(f"{'not ' if wrong else ''}ok {i} - {name}" + (f" {worst:.1e}" if TABLE else ""))
            if wrong:
                print(f"# {wrong}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
