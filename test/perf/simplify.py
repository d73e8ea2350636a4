#!/usr/bin/env python3
"""hone-export beside onnxsim and OnnxSlim: the same models, one run.

usage: simplify.py [--hone DIR] [--rounds N] [--parts LIST] [--json FILE] MODEL...

A MODEL is a folder with model.onnx and test_data_set_N, or a file, which has no test sets. Runs in a Python that has the
packages of test/perf/simplifiers.txt; `scripts/bench --export` makes one. Parts, by default all of them but the last:
  nodes     number of nodes, those of sub-graphs and functions included; hone's is at most the smaller of the two
  cost      whole process from start to end, the tools one after the other (A B C A B C ...), each with its defaults:
            median seconds and largest peak memory of N rounds. Against the better of the two, median over the models:
            hone takes a tenth of the time with --no-check, a quarter with its check, half of the memory
  agree     ONNX Runtime loads hone's file, and gives on all test sets what it gives for the original
  latency   hone's file and the original in ONNX Runtime and in hone, interleaved, several sessions: at most 3 % slower
  half      what --to f16 writes of an f32 model loads in ONNX Runtime, and is on all test sets within 1e-2 of the largest
            magnitude of each output
A table, then one line for each of these targets; exit status 1 where one is missed, 2 where something cannot run.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

PARTS = ("nodes", "cost", "agree", "latency")
SLOWER = 1.03
HALF = 1e-2

# Starts a command and tells its seconds, peak memory and status. A program of its own, since what a process starts
# counts as large as the process itself was: the floor of 9 MB is that of a bare Python.
METER = """
import json, os, sys, time
start = time.perf_counter()
null = os.open(os.devnull, os.O_RDWR)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 0),
                     (os.POSIX_SPAWN_DUP2, null, 1)])
_, status, used = os.wait4(pid, 0)
print(json.dumps({"s": time.perf_counter() - start, "mb": used.ru_maxrss / 1024,
                  "status": os.waitstatus_to_exitcode(status)}))
"""


# --- inside a child: what needs numpy, ONNX, ONNX Runtime -----------------------------------------------------------


def walk(graph, see):
    for n in graph.node:
        see(n)
        for a in n.attribute:
            for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                walk(g, see)


def child_nodes(path):
    import onnx

    model, count = onnx.load(path, load_external_data=False), [0]

    def see(node):
        count[0] += 1

    walk(model.graph, see)
    for f in model.functions:
        walk(f, see)
    return {"nodes": count[0]}


def session(path, threads=1):
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def feeds_of(path, folder):
    """A test set as {name: array}, matched by position; nothing where the file has an input of unknown shape alone."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path, load_external_data=False).graph
    known = {t.name for t in graph.initializer}
    feeds = {}
    for k, name in enumerate(i.name for i in graph.input if i.name not in known):
        file = os.path.join(folder, f"input_{k}.pb")
        if os.path.exists(file):
            with open(file, "rb") as f:
                feeds[name] = numpy_helper.to_array(onnx.TensorProto.FromString(f.read())).copy(order="C")
    return feeds


def made_up(path):
    """Inputs for a model without test sets: small numbers, 1 for open dimensions."""
    import numpy as np

    kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
             "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}
    rng, feeds = np.random.default_rng(1), {}
    for i in session(path).get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        kind = kinds[i.type]
        x = rng.standard_normal(shape) if np.issubdtype(kind, np.floating) else rng.integers(0, 2, shape)
        feeds[i.name] = np.asarray(x).astype(kind)
    return feeds


def all_feeds(path, folder):
    sets = sorted(glob.glob(os.path.join(folder, "test_data_set_*"))) if folder else []
    return [feeds_of(path, s) for s in sets] or [made_up(path)]


def bar_of(path):
    """(rtol, atol), or the smallest cosine of what is quantized"""
    import onnx

    model, ops = onnx.load(path, load_external_data=False), set()
    walk(model.graph, lambda n: ops.add(n.op_type))
    if any("Quantize" in o or o.startswith("QLinear") or o.endswith("Integer") for o in ops):
        return None
    half = any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer)
    return (5e-2, 5e-2) if half else (1e-3, 1e-4)


def differs(got, want, bar):
    """"" or how; and the largest difference over the largest magnitude"""
    import numpy as np

    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}", 0.0
    if want.dtype.kind not in "f":
        return ("" if np.array_equal(got, want) else f"{int((got != want).sum())} elements differ"), 0.0
    a, b = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    worst = float(np.nanmax(np.abs(a - b), initial=0) / max(np.nanmax(np.abs(b), initial=0), 1e-30))
    if bar is None:
        norms = np.linalg.norm(a) * np.linalg.norm(b)
        cos = 1.0 if np.array_equal(a, b) else float(a @ b / norms) if norms else 0.0
        return ("" if cos >= 0.999 else f"cosine {cos:.4f}"), worst
    bad = ~(np.isclose(a, b, rtol=bar[0], atol=bar[1], equal_nan=True))
    return (f"{int(bad.sum())} of {bad.size} elements differ, by up to {np.nanmax(np.abs(a - b)):.3g}"
            if bad.any() else ""), worst


def child_agree(original, exported, folder):
    bar, worst = bar_of(original), 0.0
    a, b = session(original), session(exported)
    names = [o.name for o in a.get_outputs()]
    if [o.name for o in b.get_outputs()] != names:
        return {"why": f"outputs are {[o.name for o in b.get_outputs()]}"}
    feeds = all_feeds(original, folder)
    taken = {i.name for i in b.get_inputs()}
    for n, f in enumerate(feeds):
        got = b.run(None, {k: v for k, v in f.items() if k in taken})
        for name, x, y in zip(names, got, a.run(None, f)):
            why, w = differs(x, y, bar)
            worst = max(worst, w)
            if why:
                return {"why": f"output '{name}' of set {n}: {why}"}
    return {"why": "", "sets": len(feeds), "worst": worst}


def child_half(original, exported, folder):
    """largest difference of f16 to f32, over the largest magnitude of the output"""
    import numpy as np

    a, b, worst = session(original), session(exported), 0.0
    halves = {i.name for i in b.get_inputs() if i.type == "tensor(float16)"}
    for f in all_feeds(original, folder):
        want = a.run(None, f)
        own = {i.name: f[i.name].astype(np.float16) if i.name in halves else f[i.name] for i in b.get_inputs()}
        for x, y in zip(b.run(None, own), want):
            if y.dtype.kind == "f":
                x, y = x.astype(np.float64), y.astype(np.float64)
                worst = max(worst, float(np.max(np.abs(x - y), initial=0) / max(np.max(np.abs(y), initial=0), 1e-30)))
    return {"worst": worst}


def child_latency(original, exported, folder, rounds):
    """Median over sessions of exported to original; each session's runs alternate."""
    import time

    feeds, ratios, base = all_feeds(original, folder)[0], [], []
    for k in range(int(rounds)):
        order = (original, exported) if k % 2 else (exported, original)
        s = {path: session(path) for path in order}
        own = {path: {i.name: feeds[i.name] for i in s[path].get_inputs()} for path in order}
        times = {original: [], exported: []}
        for path in order:
            for _ in range(3):
                s[path].run(None, own[path])
        end = time.perf_counter() + 0.6
        while time.perf_counter() < end or len(times[exported]) < 5:
            for path in order:
                t = time.perf_counter()
                s[path].run(None, own[path])
                times[path].append(time.perf_counter() - t)
        base.append(statistics.median(times[original]))
        ratios.append(statistics.median(times[exported]) / base[-1])
    return {"ratios": ratios, "ms": min(base) * 1e3}


# --- the comparison ------------------------------------------------------------------------------------------------


def child(*args):
    p = subprocess.run([sys.executable, __file__, "--child", *map(str, args)], capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError((p.stderr.strip().splitlines() or [f"exit status {p.returncode}"])[-1][:200])
    return json.loads(p.stdout.splitlines()[-1])


def metered(command):
    p = subprocess.run([sys.executable, "-I", "-S", "-c", METER, *command], capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError(p.stderr.strip()[-200:])
    return json.loads(p.stdout)


def commands(a, model, out):
    """tool -> command; hone's file last, from the run that checks"""
    export, here = os.path.join(os.path.abspath(a.hone), "hone-export"), os.path.dirname(sys.executable)
    return {
        "onnxsim": [os.path.join(here, "onnxsim"), model, out["onnxsim"]],
        "onnxslim": [os.path.join(here, "onnxslim"), model, out["onnxslim"]],
        "hone -n": [export, model, "-o", out["hone -n"], "--no-check"],
        "hone": [export, model, "-o", out["hone"]],
    }


def run_tools(a, row, model, out):
    runs = {t: [] for t in out}
    for _ in range(a.rounds if "cost" in a.parts else 1):
        for tool, command in commands(a, model, out).items():
            runs[tool].append(metered(command))
    for tool, r in runs.items():
        if any(x["status"] for x in r) or not os.path.exists(out[tool]):
            row["failed"][tool] = f"exit status {r[-1]['status']}"
            continue
        row["s"][tool] = statistics.median(x["s"] for x in r)
        row["mb"][tool] = max(x["mb"] for x in r)


def bench_hone(a, model, out, folder):
    """hone's file to the original in hone: the ratio, and whether it is slower for sure"""
    command = [os.path.join(a.hone, "hone-bench"), model, out, "--threads", "1", "--json", "--fail-if-slower", "3%"]
    if folder:
        command += ["--data", os.path.join(folder, "test_data_set_0")]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode not in (0, 3, 5):
        raise RuntimeError(p.stderr.strip()[-200:])
    return {"ratio": json.loads(p.stdout)["compare"][0]["effect"], "slower": p.returncode == 3}


def latency(a, row, model, out, folder):
    ratios = []
    for _ in range(3):  # once more where the first answer is no, to tell a slower model from a bad moment
        found = child("latency", model, out, folder or "", a.rounds + 2)
        ratios += found["ratios"]
        row["ort_ms"], row["ort"] = found["ms"], statistics.median(ratios)
        if row["ort"] <= SLOWER:
            break
    for _ in range(3):
        row["hone"] = bench_hone(a, model, out, folder)
        if not row["hone"]["slower"]:
            break


def examine(a, path, tmp):
    folder = path if os.path.isdir(path) else None
    model = os.path.join(path, "model.onnx") if folder else path
    row = {"model": os.path.basename(os.path.abspath(path)), "s": {}, "mb": {}, "nodes": {}, "failed": {}}
    out = {t: os.path.join(tmp, t.replace(" ", "") + ".onnx") for t in ("onnxsim", "onnxslim", "hone -n", "hone")}
    for file in glob.glob(os.path.join(tmp, "*")):
        os.unlink(file)
    run_tools(a, row, model, out)
    row["nodes"] = {t: child("nodes", out[t])["nodes"] for t in out if t in row["s"]}
    row["nodes"]["original"] = child("nodes", model)["nodes"]
    if "hone" in row["failed"]:
        return row
    try:
        if "agree" in a.parts:
            row["agree"] = child("agree", model, out["hone"], folder or "")
        if "latency" in a.parts and not row.get("agree", {}).get("why"):
            latency(a, row, model, out["hone"], folder)
        if "half" in a.parts:
            half = os.path.join(tmp, "half.onnx")
            run = metered([os.path.join(os.path.abspath(a.hone), "hone-export"), model, "-o", half, "--to", "f16", "--force"])
            row["half"] = child("half", model, half, folder or "")["worst"] if run["status"] == 0 else None
    except RuntimeError as e:
        row["failed"]["judge"] = str(e)
    return row


def better(row, key):
    theirs = [row[key][t] for t in ("onnxsim", "onnxslim") if t in row[key]]
    return min(theirs) if theirs else None


def ratio(row, key, tool):
    """the better of the two to hone, above 1 hone is better"""
    theirs = better(row, key)
    return theirs / row[key][tool] if theirs and tool in row[key] else None


HEAD = (f"{'model':26s}{'nodes':>6s}{'sim':>6s}{'slim':>6s}{'hone':>6s} |{'sim s':>7s}{'slim s':>7s}{'no-chk':>8s}"
        f"{'check':>8s} |{'sim MB':>7s}{'slim MB':>8s}{'hone MB':>8s} |{'sets':>5s}{'worst':>9s} |{'ORT':>6s}{'hone':>6s}")


def cell(x, text, width):
    return f"{x:{text}}".rjust(width) if x is not None else "-".rjust(width)


def tell(row):
    n, s, mb = row["nodes"], row["s"], row["mb"]
    agree = row.get("agree", {})
    print(f"{row['model'][:25]:26s}" + "".join(cell(n.get(t), "d", 6) for t in ("original", "onnxsim", "onnxslim", "hone"))
          + " |" + "".join(cell(s.get(t), ".2f", 7) for t in ("onnxsim", "onnxslim"))
          + "".join(cell(s.get(t), ".3f", 8) for t in ("hone -n", "hone"))
          + " |" + "".join(cell(mb.get(t), ".0f", w) for t, w in (("onnxsim", 7), ("onnxslim", 8), ("hone", 8)))
          + " |" + cell(agree.get("sets"), "d", 5) + cell(agree.get("worst"), ".1e", 9)
          + " |" + cell(row.get("ort"), ".2f", 6) + cell(row.get("hone", {}).get("ratio"), ".2f", 6)
          + "".join(f"  ({t}: {why})" for t, why in row["failed"].items())
          + (f"  ({agree['why']})" if agree.get("why") else ""), flush=True)


def verdict(what, missed, detail):
    print(f"{'missed' if missed else 'held':7s} {what}: {detail}")
    return bool(missed)


def median_target(rows, what, key, tool, least):
    found = {r["model"]: ratio(r, key, tool) for r in rows}
    values = [x for x in found.values() if x]
    if not values:
        return verdict(what, True, "nothing measured")
    worst = min((m for m in found if found[m]), key=found.get)
    middle = statistics.median(values)
    return verdict(what, middle < least, f"median {middle:.1f} x, least {found[worst]:.1f} x ({worst}), wanted {least} x")


def judge(a, rows):
    missed = verdict("hone-export writes every model", [r for r in rows if "hone" in r["failed"]],
                     ", ".join(r["model"] for r in rows if "hone" in r["failed"]) or f"{len(rows)} models")
    if "nodes" in a.parts:
        more = [f"{r['model']} {r['nodes']['hone']} > {better(r, 'nodes')}" for r in rows
                if better(r, "nodes") and r["nodes"].get("hone", 0) > better(r, "nodes")]
        missed |= verdict("nodes at most the smaller of the two", more, ", ".join(more) or "all models")
    if "agree" in a.parts:
        wrong = [r["model"] for r in rows if r.get("agree", {"why": "none"}).get("why") or "judge" in r["failed"]]
        missed |= verdict("loads in ONNX Runtime and agrees with the original", wrong, ", ".join(wrong) or "all models")
    if "cost" in a.parts:
        missed |= median_target(rows, "time without check, theirs to hone's", "s", "hone -n", 10)
        missed |= median_target(rows, "time with check, theirs to hone's", "s", "hone", 4)
        missed |= median_target(rows, "peak memory, theirs to hone's", "mb", "hone", 2)
    if "half" in a.parts:
        far = [f"{r['model']} {r['half']:.1e}" if r.get("half") is not None else f"{r['model']} not written" for r in rows
               if r.get("half") is None or r["half"] > HALF]
        missed |= verdict(f"f16 within {HALF:g} of f32", far, ", ".join(far) or "all models")
    if "latency" in a.parts:
        for what, slow in (("ONNX Runtime", [f"{r['model']} {r['ort']:.2f}" for r in rows if r.get("ort", 0) > SLOWER]),
                           ("hone", [f"{r['model']} {r['hone']['ratio']:.2f}" for r in rows
                                     if r.get("hone", {}).get("slower")])):
            missed |= verdict(f"not slower in {what}", slow, ", ".join(slow) or "all models")
    return missed


def main():
    if sys.argv[1:2] == ["--child"]:
        what = {"nodes": child_nodes, "agree": child_agree, "latency": child_latency,
                "half": child_half}[sys.argv[2]]
        print(json.dumps(what(*sys.argv[3:])))
        return 0
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hone", default="build/tools", help="folder of the tools")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--parts", default=",".join(PARTS))
    p.add_argument("--json")
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    a.parts = a.parts.split(",")
    if a.rounds < 1 or not set(a.parts) <= {*PARTS, "half"}:
        p.error(f"parts are {', '.join(PARTS)}, half; at least one round")
    rows = []
    print(HEAD)
    with tempfile.TemporaryDirectory() as tmp:
        for path in a.models:
            rows.append(examine(a, path, tmp))
            tell(rows[-1])
    print()
    missed = judge(a, rows)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as e:
        print(f"simplify: {e}", file=sys.stderr)
        sys.exit(2)
