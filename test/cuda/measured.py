#!/usr/bin/env python3
"""usage: measured.py --hashes        of each file of kernels with what it includes: JSON, for scripts/pack
       measured.py --changed       how many files changed since test/cuda/measured.json was made: a line
       measured.py --table         README's tables of figures on a GPU, from it
       measured.py --readme        whether README.md has those tables

test/cuda/measured.json: what scripts/gpu wrote on a machine with a GPU.
"""
import glob
import hashlib
import importlib.util
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "perf", "gpu"))
import judge  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORD = os.path.join(ROOT, "test", "cuda", "measured.json")


def hashes():
    spec = importlib.util.spec_from_file_location("compile_kernels", os.path.join(ROOT, "src", "cuda", "compile_kernels.py"))
    compiler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiler)
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "src", "cuda", "*", "*.cu"))):
        seen = {}
        compiler.texts(path, os.path.join(ROOT, "src"), seen)
        found[os.path.basename(path)[:-3]] = hashlib.sha256(b"".join(seen.values())).hexdigest()[:16]
    return found


def record():
    with open(RECORD) as f:
        return json.load(f)


def changed():
    then, now = record(), hashes()
    n = sum(then.get("files", {}).get(name) != h for name, h in now.items())
    return f"{n} of {len(now)} files of kernels changed since they were measured ({then['gpu']}, {then['date']})"


def demands(rows):
    """For each thing that is asked of how many rows it is met."""
    lines = ["", "| asked | met | missed | not measured | worst |", "|---|--:|--:|--:|--:|"]
    for point, title in judge.POINTS.items():
        mine = [x for x in rows if x["point"] == point and x["asked"] is not None]
        values = [x for x in mine if x["value"] is not None]
        worst = max(values, key=lambda x: {"less": x["value"], "more": -x["value"]}.get(x["better"], abs(x["value"] - x["asked"])), default=None)
        target = {"less": "at most ", "more": "at least "}.get(mine[0]["better"], "") + f"{mine[0]['asked']:g}" if mine else ""
        counts = [sum(x["met"] is met and (x["value"] is None) == (met is None) for x in mine) for met in (True, False, None)]
        worst_text = f"{worst['value']:.4g}" if worst else ""
        lines.append(f"| {title}: {target} | {counts[0]} | {counts[1]} | {counts[2]} | {worst_text} |")
    return lines


def table(r=None):
    r = r or record()
    copy = next(k["gb_per_s"] for k in r["kernels"] if k["name"] == "device copy")
    lines = [f"{r['gpu'].split(',')[0]}, {r['date']}; a device copy moves {copy / 1e3:.2f} TB/s, read and written.", "",
             "| kernel | time | of the copy's bytes/s | operations | of PyTorch's time |", "|---|--:|--:|--:|--:|"]
    for k in r["kernels"]:
        if "of_copy" in k:
            peer = f"{k['us'] / k['peer_us']:.2f}" if "peer_us" in k else ""
            rate = f"{k['tflops']:.1f} TFLOP/s" if k["tflops"] >= 5 else ""
            share = f"{k['of_copy']:.2f}" if k["of_copy"] >= 0.1 else ""
            lines.append(f"| {k['name']} | {k['us']:.1f} us | {share} | {rate} | {peer} |")
    if any("latency_ms" in m for m in r["models"]):
        lines += ["", "| model, batch 1 | a run, results on the host |", "|---|--:|"]
        lines += [f"| {m['model']} | {m['latency_ms']:.3f} ms |" for m in r["models"] if "latency_ms" in m]
    if r.get("networks"):
        lines += ["", "| network | type | batch | a run | its kernels | of PyTorch's time |", "|---|---|--:|--:|--:|--:|"]
        lines += [f"| {n['network']} | {n['precision']} | {n['batch']} | {n['ms']:.3f} ms | "
                  + (f"{n['kernels_ms']:.3f} ms | " if "kernels_ms" in n else "| ")
                  + (f"{n['ms'] / n['peer_ms']:.2f} |" if n.get("peer_ms") else "|") for n in r["networks"] if "ms" in n]
    if r.get("rows"):  # an older record has none
        lines += demands(r["rows"])
    return "\n".join(lines) + "\n"


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what == "--hashes":
        print(json.dumps(hashes(), indent=1))
    elif what == "--changed":
        print(changed())
    elif what == "--table":
        print(table(), end="")
    elif what == "--readme":
        with open(os.path.join(ROOT, "README.md")) as f:
            there = table() in f.read()
        print("ok - README's tables of a GPU are those of test/cuda/measured.json" if there else
              "not ok - README's tables of a GPU are not those of test/cuda/measured.json: measured.py --table")
        sys.exit(not there)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
