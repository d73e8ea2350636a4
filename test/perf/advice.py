#!/usr/bin/env python3
"""Does an advised command yield what hone-profile says? For each model: the advice, the command as it was printed, and what
hone-bench measures of the file that it makes against the original, with one thread.

    advice.py TOOLS MODEL...

A table: model, advice, times as fast as advised with its interval, as measured with its interval (95 %).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

OUT = {"export": "export", "int8": "int8", "weights": "w8", "bf16": "bf16", "prune": "pruned"}  # suffix of the file made


def run(tools, command, **more):
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}, **more)


def interval(lo, hi):
    return f"{lo:.2f} to {hi:.2f}" if lo and hi else "-"


def label(model):
    path = pathlib.Path(model)
    return path.parent.name if path.stem == "model" else path.stem


def measured(tools, model, made):
    """Of hone-bench: (times as fast, lo, hi)"""
    p = run(tools, ["hone-bench", "-t1", model, made, "--json"])
    if p.returncode not in (0, 3):
        raise RuntimeError(p.stderr)
    row = json.loads(p.stdout)["compare"][0]
    lo, hi = row["ci95"] if row["ci95"] else (None, None)
    return 1 / row["effect"], 1 / hi if hi else None, 1 / lo if lo else None


def main():
    tools, models = os.path.abspath(sys.argv[1]), [os.path.abspath(m) for m in sys.argv[2:]]
    print("| model | advice | as advised | 95 % | as measured | 95 % |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        for model in models:
            p = run(tools, ["hone-profile", "-t1", "--json", "--advise", model])
            for a in json.loads(p.stdout)["advice"]:
                if a["name"] not in OUT or not a["times_as_fast"]:
                    continue
                name = f"{label(model)} | {a['name']} | {a['times_as_fast']:.2f} | {interval(a['lo'], a['hi'])}"
                made = run(tools, a["command"] + (" --force" if a["name"] != "export" else ""), shell=True, cwd=work)
                files = sorted(pathlib.Path(work).glob(f"*.{OUT[a['name']]}.onnx"))
                if made.returncode != 0 or not files:
                    print(f"| {name} | status {made.returncode}: {made.stderr.strip()[:80]} | |", flush=True)
                    continue
                gain, lo, hi = measured(tools, model, str(files[0]))
                print(f"| {name} | {gain:.2f} | {interval(lo, hi)} |", flush=True)
                files[0].unlink()


main()
