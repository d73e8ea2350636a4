#!/usr/bin/env python3
"""hone-quantize on real models: what it writes, with default options, beside ONNX Runtime and OpenVINO in one run.

usage: quantize.py [--hone DIR] [--parts LIST] [--seconds S] [--rounds N] [--keep DIR] [--json FILE] MODEL_DIR...

A MODEL_DIR holds model.onnx and test_data_set_N, which serve for calibration, too. Runs in a Python that has the packages
of test/perf/peers.txt; `scripts/bench --quantize` makes one. Where hone-quantize refuses, the f32 model stands in its
place. Parts, by default all:
  files     what is written loads in ONNX Runtime and OpenVINO, and hone's run of it is that of ONNX Runtime without fusion,
            but for sums near halves of a step: one in 10^5 is rounded the other way, and in a deep model each of these
            moves some more, so that two right runs differ by up to what quantizing itself adds
  error     the same top-1 for class scores; largest score of a detector within 0.02; PSNR of what keeps an image's shape;
            for all: SQNR and cosine over the test sets; a language model's greedy text with 8-bit weights
  size      bytes over those of the f32 file, int8 and 4-bit weights
  peers     one thread: hone against the better of ONNX Runtime and OpenVINO on the same file; of CNNs
  self      one thread: against hone's own f32, for each instruction level that the machine has, quantized at that level
  levels    outputs at each instruction level against plain C
  same      the same command twice writes the same bytes
Then one line for each target that the parts have.
"""
import argparse
import glob
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

PARTS = ("files", "error", "size", "peers", "self", "levels", "same")
LEVELS = ("none", "avx2", "avx512", "vnni", "amx")
REFUSED = 3


# --- files -------------------------------------------------------------------------------------------------------------


def tensor_of(path):
    with open(path, "rb") as f:
        return np.array(numpy_helper.to_array(onnx.TensorProto.FromString(f.read())), order="C")


def sets_of(folder):
    return sorted(glob.glob(os.path.join(folder, "test_data_set_*")))


def inputs_of(graph):
    known = {t.name for t in graph.initializer}
    return [i.name for i in graph.input if i.name not in known]


def feeds_of(path, test_set):
    graph, feeds = onnx.load(path, load_external_data=False).graph, {}
    for k, name in enumerate(inputs_of(graph)):
        file = os.path.join(test_set, f"input_{k}.pb")
        if os.path.exists(file):
            feeds[name] = tensor_of(file)
    return feeds


def is_cnn(path):
    return sum(n.op_type == "Conv" for n in onnx.load(path, load_external_data=False).graph.node) >= 4


# --- the engines -------------------------------------------------------------------------------------------------------


class Failed(Exception):
    pass


def call(command, ok=(0,), level=None):
    env = dict(os.environ, **({"HONE_MAX_ISA": level} if level else {}))
    p = subprocess.run(command, capture_output=True, text=True, env=env)
    if p.returncode not in ok:
        raise Failed(f"{os.path.basename(command[0])}: status {p.returncode}: {(p.stderr.strip().splitlines() or [''])[-1][:160]}")
    return p


class Hone:
    def __init__(self, folder):
        self.folder = folder

    def tool(self, name):
        return os.path.join(self.folder, name)

    def quantize(self, model, data, out, options=(), level=None):
        """its report, None where it refuses"""
        if os.path.exists(out):
            os.remove(out)
        p = call([self.tool("hone-quantize"), model, "--calib", data, "-o", out, "--json", "--threads", "1", *options],
                 (0, REFUSED), level)
        return json.loads(p.stdout) if p.returncode == 0 else None

    def run(self, model, test_set, level=None):
        with tempfile.TemporaryDirectory() as out:
            call([self.tool("hone-run"), model, "--data", test_set, "--out", out], level=level)
            files = glob.glob(os.path.join(out, "test_data_set_0", "output_*.pb"))
            return [tensor_of(f) for f in sorted(files, key=lambda f: int(f.rsplit("_", 1)[1][:-3]))]

    def time(self, model, test_set, seconds, level=None, threads=1):
        p = call([self.tool("hone-bench"), model, "--data", test_set, "--threads", str(threads), "--time", f"{seconds}s",
                  "--json"], level=level)
        return json.loads(p.stdout)["runs"][0]["latency_ms"]["p50"]

    def levels(self):
        """those that the machine has, by what the tools say of themselves"""
        p = call([self.tool("hone-bench"), "--version"])
        have = p.stdout + open("/proc/cpuinfo").read()
        wants = {"none": "", "avx2": "avx2", "avx512": "avx512bw", "vnni": "avx512_vnni", "amx": "amx_int8"}
        return [x for x in LEVELS if wants[x] in have]


def ort_session(model, fused=True):
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    if not fused:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])


def openvino_model(model, feeds):
    import openvino as ov

    core = ov.Core()
    m = core.read_model(model)
    if m.is_dynamic():
        m.reshape({k: list(v.shape) for k, v in feeds.items()})
    return core.compile_model(m, "CPU", {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY",
                                         "INFERENCE_PRECISION_HINT": "f32"})


def openvino_call(model, feeds):
    import openvino as ov

    request = openvino_model(model, feeds).create_infer_request()
    for k, v in feeds.items():
        request.set_tensor(k, ov.Tensor(v, shared_memory=True))
    return request.infer


def median_ms(run, seconds):
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


# --- errors ------------------------------------------------------------------------------------------------------------


def largest_difference(got, want):
    """over the largest magnitude; of all outputs. A last digit that differs becomes a whole step where it is rounded."""
    worst = 0.0
    for a, b in zip(got, want):
        if a.shape != b.shape:
            return math.inf
        if b.size and b.dtype.kind == "f":
            worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)))
        elif not np.array_equal(a, b):
            worst = math.inf
    return worst


def sqnr(got, want):
    pairs = [(a, b) for a, b in zip(got, want) if b.dtype.kind == "f"]
    noise = sum(float(((a.astype(np.float64) - b) ** 2).sum()) for a, b in pairs)
    signal = sum(float((b.astype(np.float64) ** 2).sum()) for _, b in pairs)
    return 10 * math.log10(signal / noise) if noise else math.inf


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norm) if norm else 1.0


def scores_of(y):
    """the best score of a detector, or None: columns within [0, 1] beside boxes, or class and background"""
    if y.ndim != 3 or y.shape[1] < 100:
        return None
    columns = [k for k in range(y.shape[2]) if y[..., k].min() >= 0 and y[..., k].max() <= 1]
    if y.shape[2] == 2 and len(columns) == 2:
        return float(y[..., 1].max())
    if y.shape[2] > 6 and columns and columns[0] == 4:
        return float((y[..., 4] * y[..., 5:].max(-1)).max())
    return None


def judge(outputs, wanted, folder):
    """figures over all test sets; outputs and wanted: lists of lists"""
    result = {"sqnr_db": sqnr([t for o in outputs for t in o], [t for o in wanted for t in o]),
              "cos": statistics.mean(cosine(a, b) for o, w in zip(outputs, wanted) for a, b in zip(o, w))}
    first = wanted[0][0]
    if scores_of(first) is not None:
        pairs = [(scores_of(o[0]), scores_of(w[0])) for o, w in zip(outputs, wanted)]
        result["best_scores"] = pairs
        result["score_error"] = max(abs(a - b) for a, b in pairs)
    elif first.ndim == 2 or (first.ndim == 4 and first.shape[2:] == (1, 1)):
        flat = [(o[0].reshape(len(o[0]), -1).argmax(1), w[0].reshape(len(w[0]), -1).argmax(1))
                for o, w in zip(outputs, wanted)]
        result["top1"] = f"{sum(int((a == b).sum()) for a, b in flat)}/{sum(len(a) for a, _ in flat)}"
        result["top1_kept"] = all((a == b).all() for a, b in flat)
    elif first.ndim == 4 and min(first.shape[2:]) > 100:
        result["psnr_db"] = statistics.mean(10 * math.log10(1 / max(float(((o[0] - w[0]) ** 2).mean()), 1e-20))
                                            for o, w in zip(outputs, wanted))
    return result


def greedy(hone, model, tokens, count):
    """a language model's continuation, one token at a time, the whole text as input"""
    text, work = list(tokens), tempfile.mkdtemp()
    try:
        for _ in range(count):
            with open(os.path.join(work, "input_0.pb"), "wb") as f:
                f.write(numpy_helper.from_array(np.array([text], np.int64), "x").SerializeToString())
            y = hone.run(model, work)[0]
            text.append(int(y[0, -1].argmax()))
    finally:
        shutil.rmtree(work)
    return text


def is_language_model(path):
    graph = onnx.load(path, load_external_data=False).graph
    names = inputs_of(graph)
    return len(names) == 1 and graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.INT64


# --- parts -------------------------------------------------------------------------------------------------------------


class Model:
    def __init__(self, hone, folder, work):
        self.hone, self.folder = hone, folder
        self.name = os.path.basename(os.path.abspath(folder))
        self.f32 = os.path.join(folder, "model.onnx")
        self.sets = sets_of(folder)
        self.language = is_language_model(self.f32)
        self.out = os.path.join(work, self.name + ".onnx")
        options = ("--mode", "weights") if self.language else ()
        self.report = hone.quantize(self.f32, folder, self.out, options)
        self.options = options
        self.written = self.report is not None
        self.file = self.out if self.written else self.f32
        self.row = {"model": self.name, "written": self.written}

    def files(self, a):
        if not self.written:
            return
        self.row["opens"] = {}
        plain = ort_session(self.file, fused=False)
        f32, got, want, exact = ort_session(self.f32), [], [], []
        for s in self.sets:
            got += self.hone.run(self.file, s)
            want += plain.run(None, feeds_of(self.file, s))
            exact += f32.run(None, feeds_of(self.f32, s))
        self.row["opens"]["ort"] = True
        self.row["hone_ort"] = largest_difference(got, want)
        self.row["hone_ort_db"], self.row["quantized_db"] = sqnr(got, want), sqnr(want, exact)
        for what, load in (("ort_fused", lambda: ort_session(self.file).run(None, feeds_of(self.file, self.sets[0]))),
                           ("openvino", lambda: openvino_call(self.file, feeds_of(self.file, self.sets[0]))())):
            try:
                load()
                self.row["opens"][what] = True
            except Exception as e:  # whatever a peer says
                self.row["opens"][what] = f"{type(e).__name__}: {str(e).splitlines()[0][:100]}"

    def error(self, a):
        f32 = ort_session(self.f32)
        wanted = [f32.run(None, feeds_of(self.f32, s)) for s in self.sets]
        self.row["error"] = judge([self.hone.run(self.file, s) for s in self.sets], wanted, self.folder)
        if self.language:
            first = feeds_of(self.f32, self.sets[0])
            tokens = list(next(iter(first.values()))[0])[:1]
            self.row["error"]["text_kept"] = greedy(self.hone, self.file, tokens, 50) == greedy(self.hone, self.f32, tokens, 50)

    def size(self, a):
        whole = os.path.getsize(self.f32)
        self.row["size"] = {"int8": os.path.getsize(self.file) / whole}
        four = self.out + ".w4"
        r = self.hone.quantize(self.f32, self.folder, four, ("--mode", "weights", "--bits", "4", "--force"))
        if r is not None:
            self.row["size"]["w4"] = os.path.getsize(four) / whole
            self.row["size"]["w4_db"] = (r.get("score") or {}).get("sqnr_db")
            os.remove(four)

    def peers(self, a):
        if not is_cnn(self.f32):
            return
        feeds, best = feeds_of(self.file, self.sets[0]), {}
        calls = {}
        s = ort_session(self.file)
        calls["ort"] = lambda: s.run(None, feeds)
        try:
            calls["openvino"] = openvino_call(self.file, feeds)
        except Exception:
            pass
        for _ in range(a.rounds):
            for k, run in calls.items():
                best[k] = min(best.get(k, math.inf), median_ms(run, a.seconds))
            best["hone"] = min(best.get("hone", math.inf), self.hone.time(self.file, self.sets[0], a.seconds))
        self.row["ms"] = best
        self.row["to_peers"] = best["hone"] / min(v for k, v in best.items() if k != "hone")

    def self(self, a):
        if not is_cnn(self.f32):
            return
        self.row["self"] = {}
        for level in self.hone.levels()[1:]:
            out = self.out + "." + level
            report = self.hone.quantize(self.f32, self.folder, out, self.options, level)
            if report is None:
                self.row["self"][level] = 1.0
                continue
            best = {}
            for _ in range(a.rounds):
                for k, file in (("f32", self.f32), ("int8", out)):
                    best[k] = min(best.get(k, math.inf), self.hone.time(file, self.sets[0], a.seconds, level))
            self.row["self"][level] = best["int8"] / best["f32"]

    def levels(self, a):
        if not self.written:
            return
        levels, worst = self.hone.levels(), {}
        for s in self.sets:
            want = self.hone.run(self.file, s, "none")
            for level in levels[1:]:
                worst[level] = max(worst.get(level, 0.0), largest_difference(self.hone.run(self.file, s, level), want))
        self.row["levels"] = worst

    def same(self, a):
        if not self.written:
            return
        again = self.out + ".again"
        self.hone.quantize(self.f32, self.folder, again, self.options)
        self.row["same"] = os.path.exists(again) and open(again, "rb").read() == open(self.out, "rb").read()


def mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values))


def targets(rows, parts):
    """[(what, figure, met)]"""
    found = []

    def add(what, figure, met):
        found.append((what, figure, met))

    written = [r for r in rows if r["written"]]
    if "files" in parts:
        add("files load in ONNX Runtime and OpenVINO", sum(all(v is True for v in r["opens"].values()) for r in written),
            all(v is True for r in written for v in r["opens"].values()))
        add("hone and ONNX Runtime without fusion differ less than quantized and f32, dB",
            min((r["hone_ort_db"] - r["quantized_db"] for r in written), default=math.inf),
            all(r["hone_ort_db"] > r["quantized_db"] for r in written))
    if "error" in parts:
        for r in rows:
            e = r["error"]
            if "top1" in e:
                add(f"{r['model']}: top-1 kept", e["top1"], e["top1_kept"])
            if "score_error" in e:
                add(f"{r['model']}: best scores within 0.02", e["score_error"], e["score_error"] <= 0.02)
            if "psnr_db" in e:
                add(f"{r['model']}: PSNR of at least 34 dB", e["psnr_db"], e["psnr_db"] >= 34)
            if "text_kept" in e:
                add(f"{r['model']}: 50 tokens kept", e["sqnr_db"], e["text_kept"])
    to_peers = [r["to_peers"] for r in rows if "to_peers" in r]
    if to_peers:
        add("against the better peer, geometric mean at most 0.75", mean(to_peers), mean(to_peers) <= 0.75)
    for level, most in (("avx2", 0.80), ("vnni", 0.50)):
        own = [r["self"][level] for r in rows if level in r.get("self", {})]
        if own:
            add(f"against own f32, {level}, at most {most}", mean(own), mean(own) <= most)
            add(f"none slower than f32, {level}", max(own), max(own) <= 1.02)
    if "levels" in parts:
        worst = max((v for r in written for v in r["levels"].values()), default=0)
        add("instruction levels against plain C, largest difference", worst, worst < 0.02)
    if "same" in parts:
        add("the same command twice, the same bytes", sum(r["same"] for r in written), all(r["same"] for r in written))
    return found


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--hone", default="build/tools")
    ap.add_argument("--parts", default=",".join(PARTS))
    ap.add_argument("--seconds", type=float, default=0.5)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--keep")
    ap.add_argument("--json")
    ap.add_argument("models", nargs="+")
    a = ap.parse_args()
    parts = a.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        ap.error(f"no part {', '.join(unknown)}")
    hone, rows, failed = Hone(a.hone), [], False
    with tempfile.TemporaryDirectory() as temporary:
        work = a.keep or temporary
        os.makedirs(work, exist_ok=True)
        for folder in a.models:
            try:
                m = Model(hone, folder, work)
                for part in parts:
                    getattr(m, part)(a)
            except Failed as e:
                print(f"{os.path.basename(os.path.abspath(folder))}: {e}", flush=True)
                failed = True
                continue
            rows.append(m.row)
            print(json.dumps(m.row), flush=True)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(rows, f, indent=1)
    missed = False
    for what, figure, met in targets(rows, parts):
        print(f"{'ok    ' if met else 'MISSED'} {what}: {figure if isinstance(figure, str) else f'{figure:.4g}'}")
        missed = missed or not met
    return 2 if failed else int(missed)


if __name__ == "__main__":
    sys.exit(main())
