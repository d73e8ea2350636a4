#!/usr/bin/env python3
"""Which models hone-export --free frees from their batch of 1, and how many more samples a second a batch of 8 makes of them.

usage: free.py [--batch N] [--time SECONDS] [--no-times] TOOLS MODEL...

A MODEL is a file or a folder with model.onnx. Freed is axis 0 of each input that has a fixed 1 there (else the first other
axis that has), but for states, which hone-export frees by itself. With one thread, interleaved: the model as it is, and the
freed one with its batch set to N. A table, then how many were freed and the geometric mean of the gains; status 1 where fewer than
nine tenths of those whose batch is fixed were freed.
"""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAME = "batch"


def run(tools, *command):
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})


def fixed(tools, model):
    """("x:0=batch", ...): what to free; None: the model says nothing, or a batch is free already"""
    p = run(tools, "hone-inspect", model, "--json")
    if p.returncode != 0:
        return None
    found = []
    for x in json.loads(p.stdout)["inputs"]:
        dims = x["dims"] or []
        if x["role"] == "state" or 1 not in dims:
            continue
        if not isinstance(dims[0], int):
            return None
        found.append(f"{x['name']}:{0 if dims[0] == 1 else dims.index(1)}={NAME}")
    return found or None


def gain(tools, model, many, batch, seconds):
    """Of a file for so many samples at once: (times as many samples a second, lo, hi), 95 %, and by the fastest runs alone"""
    p = run(tools, "hone-bench", "-t1", model, many, "--time", f"{seconds}s", "--json")
    if p.returncode not in (0, 3, 5):
        raise RuntimeError(p.stderr.strip())
    report = json.loads(p.stdout)
    row, least = report["compare"][0], [r["latency_ms"]["min"] for r in report["runs"]]
    lo, hi = row["ci95"] or (None, None)
    return batch / row["effect"], hi and batch / hi, lo and batch / lo, batch * least[0] / least[1]


def main():
    a = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--time", type=float, default=2)
    a.add_argument("--no-times", action="store_true")
    a.add_argument("tools")
    a.add_argument("models", nargs="+")
    o = a.parse_args()
    tools, freed, tried, gains = os.path.abspath(o.tools), 0, 0, []
    print(f"| model | freed | samples/s at batch {o.batch} | 95 % | by the fastest runs |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        out, many = os.path.join(work, "freed.onnx"), os.path.join(work, "many.onnx")
        for path in map(pathlib.Path, o.models):
            name, model = path.stem if path.is_file() else path.name, str(path / "model.onnx" if path.is_dir() else path)
            dims = fixed(tools, model)
            if dims is None:
                print(f"| {name} | - no fixed batch | | | |", flush=True)
                continue
            tried += 1
            p = run(tools, "hone-export", model, out, *(f"--free={d}" for d in dims), "--no-progress")
            if p.returncode != 0:
                print(f"| {name} | no: {p.stderr.strip().splitlines()[-1]} | | | |", flush=True)
                continue
            freed += 1
            apart = re.search(r"for one sample after the other: (\d+)", p.stderr + p.stdout)
            how = "yes" + (f" ({apart[1]} for one after the other)" if apart else "")
            if o.no_times:
                print(f"| {name} | {how} | | | |", flush=True)
                continue
            fixed_again = run(tools, "hone-export", out, many, "--dim", f"{NAME}={o.batch}", "--no-check", "--no-progress")
            if fixed_again.returncode != 0:
                raise RuntimeError(fixed_again.stderr.strip())
            times, lo, hi, least = gain(tools, model, many, o.batch, o.time)
            gains.append(times)
            sure = f"{lo:.2f} to {hi:.2f}" if lo and hi else "-"
            print(f"| {name} | {how} | x {times:.2f} | {sure} | x {least:.2f} |", flush=True)
    print(f"\n{freed} of {tried} freed" +
          (f", geometric mean x {math.exp(sum(map(math.log, gains)) / len(gains)):.2f}" if gains else ""))
    return 0 if freed >= 0.9 * tried else 1


if __name__ == "__main__":
    sys.exit(main())
