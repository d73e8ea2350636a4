#!/usr/bin/env python3
"""Run a command over conformance cases or model folders, one process for each data set; prints TAP.

usage: run_cases.py [options] ID-LIST... 'COMMAND'        cases made by make_cases.py
       run_cases.py [options] --models DIR 'COMMAND'      folders DIR/NAME with model.onnx and test_data_set_N

COMMAND is split like a shell does and run without a shell; in its words
  {model} {dir} {case} {name}   are the model, the data set, the case's folder and its id,
  {rtol} {atol}                 the case's tolerances,
  {bar}                         as a word of its own: the options of the bar a model has to reach, --rtol R --atol A for
                                floating point (1e-3 and 1e-4, with f16 weights 5e-2), --min-cos 0.999 for quantized.
Exit status 0 of the command is a pass, 4 "unsupported"; any other, a signal, or more than --limit seconds a failure
(--skip-late: that is skipped).

--expect FILE has a line 'ID: reason' for each known failure: it counts as skipped, and as failed once it passes.
The last line is 'N passed, M failed, K skipped'; the exit status is 0 when nothing failed, else 1, 2 on bad usage.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
UNSUPPORTED = 4
LATE = "more than "


def ids_of(paths):
    ids = []
    for path in paths:
        with open(path) as f:
            ids += [w for w in (line.split("#")[0].strip() for line in f) if w]
    return ids


def known_failures(path):
    known = {}
    if path:
        with open(path) as f:
            for line in f:
                line = line.strip()
                if line and not line.startswith("#"):
                    i, _, reason = line.partition(": ")
                    if not reason:
                        raise ValueError(f"{path}: no reason beside '{i}'")
                    known[i] = reason
    return known


def bar_of(model):
    """the options that say how well a model must agree, by what it holds"""
    import onnx

    m = onnx.load(model, load_external_data=False)
    ops, types = set(), set()

    def walk(graph):
        types.update(t.data_type for t in graph.initializer)
        for n in graph.node:
            ops.add(n.op_type)
            for a in n.attribute:
                if a.HasField("t"):
                    types.add(a.t.data_type)
                for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                    walk(g)

    walk(m.graph)
    if any("Quantize" in o or o.startswith("QLinear") or o.endswith("Integer") for o in ops):
        return ["--min-cos", "0.999"]
    if onnx.TensorProto.FLOAT16 in types:
        return ["--rtol", "5e-2", "--atol", "5e-2"]
    return ["--rtol", "1e-3", "--atol", "1e-4"]


class Runner:
    def __init__(self, words, limit):
        self.words, self.limit = words, limit
        self.env = dict(os.environ)
        self.env.setdefault("OMP_NUM_THREADS", "1")

    def command(self, values, bar):
        argv = []
        for w in self.words:
            if w == "{bar}":
                argv += bar
                continue
            for key, v in values.items():
                w = w.replace("{" + key + "}", v)
            argv.append(w)
        return argv

    def once(self, argv):
        """-> '' or why it did not pass"""
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=self.env, start_new_session=True)
        try:
            out, _ = p.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            return f"{LATE}{self.limit:g} s"
        if p.returncode == 0:
            return ""
        text = [s.strip() for s in out.decode("utf-8", "replace").splitlines() if s.strip()]
        # a tool says why on its last line; a sanitizer's report has it further up
        said = next((s for s in text if "ERROR: " in s or "runtime error" in s), text[-1] if text else "")
        if p.returncode < 0:
            return f"killed by {signal.Signals(-p.returncode).name} {said}"
        return ("unsupported: " if p.returncode == UNSUPPORTED else f"exit {p.returncode}: ") + said[:300]

    def case(self, name, folder):
        """-> (why it did not pass or '', seconds); all data sets of the case must pass"""
        start = time.monotonic()
        sets = sorted(s for s in os.listdir(folder) if s.startswith("test_data_set_"))
        model = os.path.join(folder, "model.onnx")
        if not sets:
            return "no data set", 0.0
        tol = {"rtol": 1e-3, "atol": 1e-7}
        if os.path.exists(os.path.join(folder, "data.json")):
            with open(os.path.join(folder, "data.json")) as f:
                tol.update(json.load(f))
        bar = bar_of(model) if "{bar}" in self.words else []
        for s in sets:
            argv = self.command({"model": model, "dir": os.path.join(folder, s), "case": folder, "name": name,
                                 "rtol": repr(tol["rtol"]), "atol": repr(tol["atol"])}, bar)
            why = self.once(argv)
            if why:
                if len(sets) > 1:
                    why += f" [{s}]"
                return why, time.monotonic() - start
        return "", time.monotonic() - start


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("words", nargs="+", metavar="LIST... COMMAND")
    ap.add_argument("--cases", default="build/cases", help="folder made by make_cases.py (build/cases)")
    ap.add_argument("--models", help="folder of model folders")
    ap.add_argument("--expect", help="known failures")
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--limit", type=float, default=60.0, help="seconds for one data set (60)")
    ap.add_argument("--skip-late", action="store_true", help="what takes longer counts as skipped")
    ap.add_argument("--op", action="append", help="only cases of these operators")
    ap.add_argument("--only", help="only ids with this in them")
    ap.add_argument("--failures", help="write 'ID: reason' of what failed to this file, in --expect's format")
    ap.add_argument("--table", action="store_true", help="end with the counts of each operator that does not pass wholly")
    a = ap.parse_intermixed_args()
    *lists, template = a.words
    if bool(lists) == bool(a.models):
        ap.error("either lists of ids or --models")
    runner = Runner(shlex.split(template), a.limit)
    if a.models:
        root = a.models
        ids = sorted(n for n in os.listdir(root) if os.path.exists(os.path.join(root, n, "model.onnx")))
    else:
        root = a.cases
        ids = ids_of(lists)
    op = collections.defaultdict(lambda: "(unknown)")
    if os.path.exists(os.path.join(root, "cases.jsonl")):
        with open(os.path.join(root, "cases.jsonl")) as f:
            for line in f:
                c = json.loads(line)
                op[c["id"]] = c["op"]
    if a.op:
        ids = [i for i in ids if op[i] in a.op]
    if a.only:
        ids = [i for i in ids if a.only in i]
    absent = [i for i in ids if not os.path.exists(os.path.join(root, i, "model.onnx"))]
    if absent or not ids:
        print(f"run_cases: {len(absent)} of {len(ids)} cases are not in {root} {absent[:3]}", file=sys.stderr)
        return 2
    try:
        known = known_failures(a.expect)
    except (OSError, ValueError) as e:
        print(f"run_cases: {e}", file=sys.stderr)
        return 2

    totals = collections.Counter()
    rows = collections.defaultdict(collections.Counter)
    seconds, failures = {}, []
    print(f"1..{len(ids)}")
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        try:
            results = pool.map(lambda i: runner.case(i, os.path.join(root, i)), ids)
            for n, (i, (why, dt)) in enumerate(zip(ids, results), 1):
                why = " ".join(why.replace("#", "").split())
                seconds[i] = dt
                if a.skip_late and why.startswith(LATE):
                    result, line = "skipped", f"ok {n} - {i} # SKIP {why}"
                elif why and i in known:
                    result, line = "skipped", f"ok {n} - {i} # SKIP known: {known[i]}"
                elif why:
                    result, line = "failed", f"not ok {n} - {i} # {why}"
                    failures.append(f"{i}: {why}")
                elif i in known:
                    result, line = "failed", f"not ok {n} - {i} # passes, yet {a.expect} names it"
                else:
                    result, line = "passed", f"ok {n} - {i}"
                totals[result] += 1
                rows[op[i]][result] += 1
                print(line, flush=True)
        except OSError as e:
            pool.shutdown(cancel_futures=True)
            print(f"run_cases: {e}", file=sys.stderr)
            return 2
    if a.failures:
        with open(a.failures, "w") as f:
            f.writelines(s + "\n" for s in failures)
    if a.table:
        for o in sorted(rows):
            r = rows[o]
            if not r["failed"] and not r["skipped"]:
                continue
            print(f"# {o:24} {r['passed']:5} passed {r['failed']:5} failed {r['skipped']:5} skipped")
    slow = ", ".join(f"{i} {seconds[i]:.2f} s" for i in sorted(ids, key=seconds.get)[:-4:-1])
    print(f"# slowest: {slow}")
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
