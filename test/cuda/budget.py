#!/usr/bin/env python3
"""usage: budget.py [--write] NVCC BUDGET FOLDER

Compares what ptxas and the PTX say of each kernel in FOLDER (*.fatbin, *.fatbin.usage of the build) with the file
BUDGET; TAP. A line of it for each kernel and target:

    kernel target registers shared stack spilled instructions

Registers of a thread; bytes of static shared memory, of stack and of spilled registers; then the instructions worth
having that its PTX has: mma and wgmma (tensor cores), tile (copies by tensor maps), ldmatrix, cp.async, v4 (16 bytes
at once from global memory). More of the
numbers, fewer of the instructions, or a kernel without a line fail until the file says so: --write makes it anew. They
are those of one compiler, which the first line names: another one is no judge, and skipped.
"""
import glob
import os
import re
import subprocess
import sys

WORTH = {
    "mma": r"\bmma\.sync",
    "wgmma": r"\bwgmma\.mma_async",
    "tile": r"\bcp\.async\.bulk\.tensor\.",
    "ldmatrix": r"\bldmatrix\.",
    "cp.async": r"\bcp\.async\.",
    "v4": r"\bld\.global(\.\w+)*\.(v4\.[fbus]32|v2\.[fbus]64|v8\.[fbus]16)",
}


def instructions(path):
    """kernel -> the instructions worth having, of the PTX within a fatbin"""
    text = open(path, "rb").read().decode("latin-1")
    found = {}
    for m in re.finditer(r"\.visible \.entry (\w+)\(.*?\n}", text, re.S):
        found[m.group(1)] = {name for name, rx in WORTH.items() if re.search(rx, m.group(0))}
    return found


def usage(path):
    """(kernel, target) -> registers, shared, stack, spilled"""
    found, key = {}, None
    for line in open(path):
        m = re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line)
        if m:
            key = m.groups()
            found[key] = [0, 0, 0, 0]
        m = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if m and key:
            found[key][2:] = int(m.group(1)), int(m.group(2)) + int(m.group(3))
        m = re.search(r"Used (\d+) registers", line)
        if m and key:
            shared = re.search(r"(\d+) bytes smem", line)
            found[key][:2] = int(m.group(1)), int(shared.group(1)) if shared else 0
            key = None
    return found


def measured(folder):
    rows = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.fatbin"))):
        worth = instructions(path)
        for (kernel, target), numbers in usage(path + ".usage").items():
            rows[kernel, target] = numbers, worth.get(kernel, set())
    return rows


def read_budget(path):
    rows = {}
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            rows[words[0], words[1]] = [int(w) for w in words[2:6]], set(words[6:])
    return rows


def compiler(nvcc):
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return "nvcc " + re.search(r"V([\d.]+)", text).group(1)


def complaint(now, then):
    names = ("registers", "bytes of shared memory", "bytes of stack", "spilled bytes")
    if then is None:
        return "has no line"
    for name, a, b in zip(names, now[0], then[0]):
        if a > b:
            return f"{a} {name}, {b} were said"
    gone = then[1] - now[1]
    return f"has no {', '.join(sorted(gone))} any more" if gone else None


def main():
    write = "--write" in sys.argv
    nvcc, budget, folder = [a for a in sys.argv[1:] if a != "--write"]
    now = measured(folder)
    if write:
        with open(budget, "w") as f:
            f.write(f"# {compiler(nvcc)}\n# kernel target registers shared stack spilled instructions: see budget.py\n")
            for (kernel, target), (numbers, worth) in sorted(now.items()):
                f.write(" ".join([kernel, target, *map(str, numbers), *sorted(worth)]) + "\n")
        return
    then = read_budget(budget)
    told = open(budget).readline()[2:].strip()
    if told != compiler(nvcc):
        print(f"1..1\nok - budget # SKIP is of {told}, this is {compiler(nvcc)}")
        return
    print(f"1..{len(now) + 1}")
    for key in sorted(now):
        wrong = complaint(now[key], then.get(key))
        print(f"{'not ' if wrong else ''}ok - budget {key[0]} {key[1]}{': ' + wrong if wrong else ''}")
    gone = sorted(set(then) - set(now))
    print(f"{'not ' if gone else ''}ok - budget: every line is of a kernel" + (f": not {gone[0][0]}" if gone else ""))
    sys.exit(1 if gone or any(complaint(now[k], then.get(k)) for k in now) else 0)


main()
