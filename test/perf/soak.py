#!/usr/bin/env python3
"""Run hone-bench for a while and see whether it grows: private memory early and late. Standard library only.

usage: soak.py TOOLS MODEL SECONDS

Status 1 when the largest of the last tenth is 1 MB or more above the largest of the second tenth.
"""
import os
import re
import subprocess
import sys
import time

MOST = 1_000_000  # bytes


def private(pid):
    """Anonymous memory of a process, in bytes; None when it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            found = re.search(r"^Anonymous: *(\d+) kB", f.read(), re.M)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def main():
    tools, model, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    command = [os.path.join(tools, "hone-bench"), model, "--time", f"{seconds}s", "--no-progress"]
    samples = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as bench:
        start = time.monotonic()
        while bench.poll() is None:
            now, size = time.monotonic() - start, private(bench.pid)
            if size is not None and now < seconds:
                samples.append((now, size))
            time.sleep(seconds / 200)
    early = max((s for t, s in samples if 0.1 <= t / seconds < 0.2), default=0)
    late = max((s for t, s in samples if t / seconds >= 0.9), default=0)
    print(f"{os.path.basename(model)}: {len(samples)} looks in {seconds:g} s, status {bench.returncode}: "
          f"private memory {early / 1e6:.3f} MB early, {late / 1e6:.3f} MB late")
    if bench.returncode != 0 or not early or not late or late - early >= MOST:
        sys.exit(1)


main()
