#!/usr/bin/env python3
"""What hone's guards promise, on real models: budgets that bind, verdicts that a busy machine does not turn round.

usage: guard.py [--hone DIR] [--busy] [--json FILE] PART [OPTION...] MODEL_DIR...

A MODEL_DIR holds model.onnx and test_data_set_N. --busy: beside a process that takes one core. Parts:
  time      hone-quantize within --time-budget of each of --seconds (5,20,60): status, seconds, and whether a file is there.
            Missed: more than 10 % and one second over it, or no file where weights alone meet the goals without a limit
  memory    hone-quantize and hone-prune within --mem-limit of each of --factors (0.5,0.75,1,1.5) of what a free run takes:
            status and the highest anonymous memory; of --tools. Missed: more than 5 % beyond the limit, or an end with status 6 that
            is not the forecast's (after --late seconds)
  verdict   the same command --runs (20) times: statuses; three commands, or hone-quantize with each --option. Missed: 0 and 3 in
            one row
  coverage  each test set is left out in turn, the others calibrate: is its error within the printed interval?
  profile   hone-profile --runs (5) times: nodes that all top fives have, those that may be in all of them by what each report says
            of their places, and how far times add up. Missed: fewer than four of the latter, or a node that one report says is
            surely among the five, and another one that it surely is not
"""
import argparse
import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TOP = 5


def median(numbers):
    s = sorted(numbers)
    return s[len(s) // 2] if s else float("nan")


def anonymous(pid):
    """Bytes of the process that no file stands behind, which is what hone limits."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return sum(1024 * int(line.split()[1]) for line in f if line.startswith("Anonymous:"))
    except (OSError, ProcessLookupError):
        return 0


class Run:
    def __init__(self, command, watch=False):
        start = time.monotonic()
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.peak, stop = 0, threading.Event()

        def look():
            while not stop.is_set():
                self.peak = max(self.peak, anonymous(p.pid))
                stop.wait(0.003)

        watcher = threading.Thread(target=look)
        if watch:
            watcher.start()
        self.out, self.err = p.communicate()
        stop.set()
        if watch:
            watcher.join()
        self.seconds, self.status = time.monotonic() - start, p.returncode
        self.last = (self.err.strip().splitlines() or [""])[-1]


@contextlib.contextmanager
def busy(wanted):
    p = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if p is not None:
            p.kill()
            p.wait()


def sets_of(folder):
    return sorted(glob.glob(os.path.join(folder, "test_data_set_*")))


class Guard:
    def __init__(self, args, folder):
        self.args, self.folder, self.rows, self.missed = args, folder, [], 0
        self.out = os.path.join(folder, "out.onnx")

    def tool(self, name):
        return os.path.join(self.args.hone, name)

    def run(self, tool, model, *options, watch=False):
        """`model` a folder; what is written goes to self.out"""
        if os.path.exists(self.out):
            os.remove(self.out)
        data = [] if tool == "hone-export" else ["--calib", model]
        return Run([self.tool(tool), os.path.join(model, "model.onnx"), *data, *options, "-o", self.out], watch)

    def row(self, ok, **row):
        self.rows.append({**row, "ok": ok})
        self.missed += not ok
        print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), "" if ok else " MISSED",
              flush=True)

    def time(self, model):
        weights = self.run("hone-quantize", model, "--mode", "weights", "--json")
        for seconds in map(float, self.args.seconds.split(",")):
            r = self.run("hone-quantize", model, "--time-budget", f"{seconds:g}s", "--json")
            written = os.path.exists(self.out)
            ok = r.seconds <= 1.1 * seconds + 1 and (written or weights.status != 0)
            self.row(ok, model=os.path.basename(model), budget=seconds, took=r.seconds, status=r.status,
                     written=written, weights=weights.status, why=r.last[:120])

    def memory(self, model):
        for tool, options in (("hone-quantize", ["--time-budget", "8s"]), ("hone-prune", ["--ratio", "0.3"])):
            if tool not in self.args.tools:
                continue
            free = self.run(tool, model, *options, "--threads", "1", watch=True)
            for factor in map(float, self.args.factors.split(",")):
                limit = max(int(factor * free.peak), 1)
                r = self.run(tool, model, *options, "--threads", "1", "--mem-limit", str(limit), watch=True)
                late = r.status == 6 and r.seconds > self.args.late and "time" not in r.last
                self.row(r.peak <= 1.05 * limit and not late and r.status >= 0, model=os.path.basename(model), tool=tool,
                         factor=factor, limit_mb=limit / 1e6, part=r.peak / limit, status=r.status, free=free.status,
                         took=r.seconds, why=r.last[:160])

    def verdict(self, model):
        commands = [("hone-quantize", self.args.option)] if self.args.option else \
            [("hone-export", ["--to", "f16"]), ("hone-quantize", ["--mode", "weights"]), ("hone-quantize", ["--mode", "dynamic"])]
        for tool, options in commands:
            runs = [self.run(tool, model, *options) for _ in range(self.args.runs)]
            found = sorted(r.status for r in runs)
            self.row(not (0 in found and 3 in found), model=os.path.basename(model), command=" ".join([tool, *options]),
                     statuses=" ".join(f"{s}:{found.count(s)}" for s in sorted(set(found))),
                     seconds=median([r.seconds for r in runs]))

    def coverage(self, model):
        import numpy as np

        sets = sets_of(model)
        for left in sets:
            with tempfile.TemporaryDirectory() as rest:
                for k, s in enumerate(x for x in sets if x != left):
                    os.symlink(os.path.abspath(s), os.path.join(rest, f"test_data_set_{k}"))
                if os.path.exists(self.out):
                    os.remove(self.out)
                r = Run([self.tool("hone-quantize"), os.path.join(model, "model.onnx"), "--calib", rest, "--json", "-o", self.out,
                         *self.args.option])
                if r.status != 0:
                    self.row(True, model=os.path.basename(model), left=os.path.basename(left), status=r.status, why=r.last[:120])
                    continue
                report = json.loads(r.out)
                signal = noise = 0.0
                for a, b in zip(self.results(os.path.join(model, "model.onnx"), left, rest), self.results(self.out, left, rest)):
                    if a.dtype.kind == "f":
                        signal += float((a.astype("f8") ** 2).sum())
                        noise += float(((a.astype("f8") - b.astype("f8")) ** 2).sum())
                db = 10 * np.log10(signal / noise) if noise > 0 else 120.0
                lo, hi = interval_of(report)
                self.row(bool(lo is not None and lo <= db <= hi), model=os.path.basename(model), left=os.path.basename(left), db=float(db),
                         lo=lo, hi=hi, each=" ".join(f"{x:.1f}" for x in report.get("samples_db", [])))

    def results(self, model, test_set, work):
        import onnx
        from onnx import numpy_helper

        out = os.path.join(work, "results")
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([self.tool("hone-run"), model, "--data", test_set, "--out", out], capture_output=True, check=False)
        files = glob.glob(os.path.join(out, "**", "output_*.pb"), recursive=True)
        tensors = []  # all of them now: the next run takes the folder
        for f in sorted(files, key=lambda f: int(f.rsplit("_", 1)[1][:-3])):
            with open(f, "rb") as g:
                tensors.append(numpy_helper.to_array(onnx.TensorProto.FromString(g.read())))
        return tensors

    def profile(self, model):
        tops, agreements, sure, maybe = [], [], [], []
        for _ in range(self.args.runs):
            r = Run([self.tool("hone-profile"), os.path.join(model, "model.onnx"), "--data", sets_of(model)[0], "--json"])
            report = json.loads(r.out)
            rows = [x for x in report["nodes"] if x.get("name")]
            rows.sort(key=lambda x: -(x.get("ms") or 0))
            tops.append({x["name"] for x in rows[:TOP]})
            places = {x["name"]: [int(p) for p in x["rank"].split("-")] for x in rows}
            sure.append({n for n, p in places.items() if p[-1] <= TOP})
            maybe.append({n for n, p in places.items() if p[0] <= TOP})
            agreements.append(report["agreement"])
        common = set.intersection(*tops)
        pairs = [len(a & b) for i, a in enumerate(tops) for b in tops[i + 1:]]
        possible, torn = set.intersection(*maybe), sum(len(a - b) for a in sure for b in maybe)
        self.row(len(possible) >= TOP - 1 and torn == 0, model=os.path.basename(model), common=len(common), pairs=str(pairs),
                 possible=len(possible), sure=[len(s) for s in sure], torn=torn, within_2_percent=sum(abs(x - 1) <= 0.02 for x in agreements), runs=len(agreements))


def interval_of(report):
    e = report.get("judged_on") or {}
    return e.get("lo"), e.get("hi")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--hone", default="build/tools")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--seconds", default="5,20,60")
    parser.add_argument("--factors", default="0.5,0.75,1,1.5")
    parser.add_argument("--tools", default="hone-quantize,hone-prune")
    parser.add_argument("--late", type=float, default=5)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--option", action="append", default=[], help="given to hone-quantize")
    parser.add_argument("part", choices=("time", "memory", "verdict", "coverage", "profile"))
    parser.add_argument("model", nargs="+")
    args = parser.parse_args()
    args.runs = args.runs or (TOP if args.part == "profile" else 20)
    with tempfile.TemporaryDirectory() as folder, busy(args.busy):
        g = Guard(args, folder)
        for m in args.model:
            getattr(g, args.part)(m.rstrip("/"))
    print(f"{len(g.rows)} rows, {g.missed} missed")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(g.rows, f, indent=1)
    sys.exit(g.missed > 0)


if __name__ == "__main__":
    main()
