#!/usr/bin/env python3
"""Processor time and memory of each tool on models that have very many of one thing (test/onnx/many.py).

usage: hostile.py [--build DIR] [--seconds S] [--mb M] [--tools LIST] N [SHAPE...]

A tool is run with --mem-limit M (500) megabytes. It is expected to end within S seconds of processor time (2), or to
refuse, with a sentence, within half of that time; and to keep the limit. Prints a line for each run that does not, a summary, and the five slowest; the status is 1
where there were any. Children (the proof of hone-export) count.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RUNS = {
    "run": ["--data", "random", "-o", "{out}.npz"],
    "bench": ["--runs", "1", "--warmup", "0"],
    "profile": ["--runs", "1", "--warmup", "0"],
    "export": ["-o", "{out}.onnx"],
    "quantize": ["--speed-only", "--mode", "dynamic", "-o", "{out}.onnx", "--journal", "none", "--timing-cache", "none"],
    "diff": ["{model}"],
}


def measure(command, deadline, environment):
    """(status, processor seconds, megabytes, last line of stderr)."""
    with tempfile.TemporaryFile() as log:
        p = subprocess.Popen(["timeout", "-s", "KILL", str(deadline), *command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=log, env=environment)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines() or [""]
    return p.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines[-1]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=ROOT / "build", type=Path)
    p.add_argument("--seconds", default=2.0, type=float)
    p.add_argument("--mb", default=500.0, type=float)
    p.add_argument("--tools", default=",".join(RUNS))
    p.add_argument("n", type=int)
    p.add_argument("shapes", nargs="*")
    a = p.parse_args()
    rows, over = [], 0
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([sys.executable, ROOT / "test/onnx/many.py", work, str(a.n), *a.shapes], check=True)
        environment = {**os.environ, "XDG_CACHE_HOME": work}
        for model in sorted(Path(work).glob("*.onnx")):
            for tool in a.tools.split(","):
                command = [str(a.build / "tools" / f"hone-{tool}"), str(model)]
                command += [w.format(out=f"{work}/out", model=model) for w in RUNS[tool]]
                command.append(f"--mem-limit={int(a.mb)}M")
                status, seconds, mb, last = measure(command, 30 * a.seconds, environment)
                good = seconds <= (a.seconds if status == 0 else a.seconds / 2) and mb <= a.mb and status in (0, 1, 3, 4, 5, 6)
                row = f"{model.stem:28} {tool:9} status {status:4} {seconds:8.2f} s {mb:7.0f} MB  {last[:120]}"
                rows.append((seconds, row))
                over += not good
                if not good:
                    print("over:", row, flush=True)
            model.unlink()
    print(f"{len(rows)} runs, {over} over {a.seconds:g} s ({a.seconds / 2:g} s refused) or {a.mb:g} MB; the slowest:")
    for _, row in sorted(rows, reverse=True)[:5]:
        print("     ", row)
    return over > 0


if __name__ == "__main__":
    sys.exit(main())
