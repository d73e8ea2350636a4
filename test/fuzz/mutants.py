#!/usr/bin/env python3
"""Changed models through hone, all of them by chance but the same ones each time; prints TAP.

usage: mutants.py [--build DIR] [--inside N] [--tools N] [--seed N]

--inside N: N changed copies of hone's own models and the fuzz corpus, each read, exported with its check, profiled or
quantized within one process (the fuzz target `tools`). --tools N: N of them as files, each given to a tool as a user
would. What fails: a report of a sanitizer, a signal, a status that hone-exit-status(7) does not know, processor time or memory
beyond what --time-limit and --mem-limit allow. DIR is a build with sanitizers, or without.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
INSIDE = ("run m.onnx --data random:2", "export m.onnx -o out.onnx", "export m.onnx -o out.onnx --opset 21 --explain",
          "profile m.onnx --runs 1", "quantize m.onnx --speed-only --calib random:2 -o out.onnx --force --journal none --timing-cache none")
TOOLS = ("run {m} --data random:2", "export {m} -o {out}", "profile {m} --runs 1 --json", "bench {m} --runs 2 --warmup 0",
         "diff {m} {m} --data random:1 --per-layer",
         "quantize {m} --speed-only --calib random:2 -o {out} --force --journal none --timing-cache none")
TIME_S, MEMORY = 3, 300 << 20  # --time-limit and --mem-limit
GRACE_S = 2                    # that a tool may take beyond
SANITIZED = 10                 # times slower, and that much more memory besides
OWN_MEMORY = 200 << 20         # code, libraries, threads


def models(work):
    """files of models: hone's own, and what the fuzz targets know"""
    folder = os.path.join(work, "models")
    subprocess.run([sys.executable, os.path.join(ROOT, "test/cli/models.py"), folder], check=True)
    found = []
    for where in (folder, os.path.join(HERE, "corpus/model"), os.path.join(HERE, "corpus/session"),
                  os.path.join(ROOT, "models")):
        for path, _, names in sorted(os.walk(where)):
            found += [os.path.join(path, n) for n in sorted(names) if n.endswith((".onnx", ".txt"))]
    return [f for f in found if 0 < os.path.getsize(f) < 200000 and is_model(f)]


def is_model(path):
    with open(path, "rb") as f:
        start = f.read(5)
    return path.endswith(".onnx") or start == b"opset"


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def tell(self, ok, name, why=""):
        self.n += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}", flush=True)
        if not ok:
            print("# " + why.strip().replace("\n", "\n# "), flush=True)


def inside(tap, args, work):
    """each command line with each model is a file for the target, which changes models and words by itself"""
    seeds = os.path.join(work, "seeds")
    os.makedirs(seeds)
    files = models(work)
    for k, f in enumerate(files):
        for i, line in enumerate(INSIDE):
            with open(f, "rb") as model, open(os.path.join(seeds, f"{k:04}-{i}"), "wb") as out:
                out.write(line.encode() + b"\n" + model.read())
    each = max(1, args.inside // (len(files) * len(INSIDE)))
    now = os.path.join(work, "now")
    p = subprocess.run([os.path.join(args.build, "test/fuzz/tools"), "--mutate", str(each), "--seed", str(args.seed), "--save",
                        now, seeds], capture_output=True, cwd=work)
    said = p.stderr.decode(errors="replace")
    name = f"{each * len(files) * len(INSIDE)} changed models in one process"
    if p.returncode:
        kept = os.path.join(tempfile.gettempdir(), f"hone-mutant-{os.getpid()}")
        shutil.copy(now, kept)
        said = said[-4000:] + f"\nstatus {p.returncode}; test/fuzz/tools {kept} repeats it"
    tap.tell(p.returncode == 0, name, said)


def run_tool(args, words, slow):
    """status, seconds of processor time, peak bytes, stderr"""
    command = [os.path.join(args.build, "tools", "hone-" + words[0]), *words[1:], "-t", "1", "--time-limit", f"{TIME_S * slow}s",
               "--mem-limit", str(MEMORY), "--no-progress"]
    with tempfile.TemporaryFile() as err:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        return (p.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024,
                err.read(20000).decode(errors="replace"))


def tools(tap, args, work):
    files = models(work)
    seeds, mutants = os.path.join(work, "tool-seeds"), os.path.join(work, "mutants")
    os.makedirs(seeds)
    os.makedirs(mutants)
    for k, f in enumerate(files):
        shutil.copy(f, os.path.join(seeds, f"{k:04}"))
    each = -(-args.tools // len(files))
    subprocess.run([os.path.join(args.build, "test/fuzz/session"), "--mutate", str(each), "--seed", str(args.seed), "--write",
                    mutants, seeds], check=True, stdout=subprocess.DEVNULL)
    names = sorted(os.listdir(mutants))
    names = names[::max(1, len(names) // args.tools)][:args.tools]
    sanitized = "asan" in os.path.basename(os.path.normpath(args.build))
    slow = SANITIZED if sanitized else 1
    bad, statuses = [], {}
    for k, name in enumerate(names):
        mutant, out = os.path.join(mutants, name), os.path.join(work, "out.onnx")
        words = TOOLS[k % len(TOOLS)].format(m=mutant, out=out).split()
        status, seconds, peak, said = run_tool(args, words, slow)
        statuses[status] = statuses.get(status, 0) + 1
        why = ("a report" if "Sanitizer" in said or "runtime error" in said else
               f"status {status}" if status not in (0, 1, 2, 3, 4, 5, 6) else
               "no word on stderr" if status and not said.strip() else
               f"{seconds:.1f} s of processor time" if seconds > TIME_S * slow + GRACE_S * slow else
               f"{peak >> 20} MiB" if peak > (MEMORY + OWN_MEMORY) * (3 if sanitized else 1) else "")
        if why:
            kept = os.path.join(tempfile.gettempdir(), f"hone-mutant-{os.getpid()}-{name}.onnx")
            shutil.copy(mutant, kept)
            bad.append(f"{why}: hone-{' '.join(words)} ({kept})\n{said[-1500:]}")
    told = ", ".join(f"{n} x {s}" for s, n in sorted(statuses.items()))
    tap.tell(not bad, f"{len(names)} changed models through the tools; statuses: {told}", "\n".join(bad[:10]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=os.path.join(ROOT, "build-asan"))
    p.add_argument("--inside", type=int, default=0)
    p.add_argument("--tools", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="hone-mutants-") as work:
        if args.inside:
            inside(tap, args, work)
        if args.tools:
            tools(tap, args, work)
    print(f"1..{tap.n}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
