#!/usr/bin/env python3
"""Change one place of a kernel's source after the other, as a mistake would, and see that hn-check finds it; prints TAP.

usage: mutants.py [--families NAME,...] [--each N] [--seconds S] NVCC BUILD

A family is a folder of src/cuda. In each of its .cu and .cuh files places are found where

    bound     a comparison is off by one            i < n        ->  i <= n
    barrier   threads do not wait for each other    __syncthreads();  ->  (nothing)
    stride    a distance is another one             * a.stride   ->  * (a.stride + 1)
    exchange  operands are exchanged                a - b        ->  b - a
    guard     a condition is not asked for          if (x)       ->  if (true)

N of them (10), of all kinds and spread over the files by a hash of what they say, are tried: the file's module becomes PTX
that takes its place in a copy of BUILD's kernels.cuda, which the emulated device interprets in the cases of all operators
that launch it. Places that are compiled to the same code do not count. A mutant is killed where a case fails, or takes
longer than S seconds (120). mutants-alive.txt lists those that change no result, each with the reason; one that is in the
list and is killed, or alive and not in the list, is 'not ok'.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CUDA = os.path.join(ROOT, "src", "cuda")
ALIVE = os.path.join(HERE, "mutants-alive.txt")
HEADER, ENTRY, ALIGN = "<8sII64s", "<64sQQ", 64  # as src/cuda/pack_kernels.py

# what else judges a family, of BUILD/test, where it was built
PROGRAMS = {"elementwise": ["cuda/test-cuda-run"], "gemm": ["test-cuda_products"], "conv": ["cuda/test-cuda-last", "cuda/test-cuda-run"], "core": ["cuda/test-cuda-last"], "int8": ["cuda/test-cuda-run"],
            "train": ["cuda/test-cuda-train"], "trees": ["test-cpu_trees"]}

# files of kernels for capability 9.0 alone
HOPPER_LIST = re.search(r"^hopper_files = \[(.*?)\]", open(os.path.join(CUDA, "meson.build")).read(), re.M | re.S)
HOPPER = re.findall(r"'(\w+)'", HOPPER_LIST.group(1))

WORD = r"[A-Za-z_][\w.]*(?:\[\w+\])?"
KINDS = [
    ("bound", r"(?<=\w) (<|>=) (?=[\w(])", lambda m: {"<": " <= ", ">=": " > "}[m.group(1)]),
    ("barrier", r"__sync(threads|warp)\(\);", lambda m: ";"),
    ("stride", r"\* (a\.\w+|\w*(?:stride|pitch|outer|inner|width|columns|rows)\w*)(?![\w.(\[])", lambda m: f"* ({m.group(1)} + 1)"),
    ("exchange", rf"(?<![\w.\])-])({WORD}) - ({WORD})(?![\w.(\[])", lambda m: f"{m.group(2)} - {m.group(1)}"),
    ("guard", r"\bif \(([^()]*(?:\([^()]*\)[^()]*)*)\)(?=$| [^{])", lambda m: "if (true)"),
]


def read(path):
    with open(path) as f:
        return f.read()


def sources(family):
    folder = os.path.join(CUDA, family)
    return sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith((".cu", ".cuh")))


def is_code(line):
    text = line.strip()
    return text and not text.startswith(("/*", "*", "//", "#", "template", "extern"))


def places(path):
    """[(kind, line number, changed line, what it says)] of a file"""
    found, comment, times = [], False, {}
    for i, line in enumerate(read(path).split("\n")):
        begins = "/*" in line and "*/" not in line
        if not comment and not begins and is_code(line):
            code, text = line.split("/*")[0], line.strip()
            times[text] = times.get(text, 0) + 1
            which = f" ({times[text]})" if times[text] > 1 else ""
            for kind, pattern, change in KINDS:
                for nth, m in enumerate(re.finditer(pattern, code)):
                    made = code[: m.start()] + change(m) + code[m.end() :] + line[len(code) :]
                    found.append((kind, i, made, f"{os.path.basename(path)}: {kind} {nth + 1} of '{text}'{which}"))
        comment = (comment or begins) and "*/" not in line
    return found


def chosen(family):
    """Places of all files in an order that takes kinds by turns, and files and lines as a hash says."""
    by_kind = {}
    for path in sources(family):
        for kind, i, made, says in places(path):
            key = hashlib.sha256(says.encode()).hexdigest()
            by_kind.setdefault(kind, []).append((key, path, i, made, says))
    lists = [sorted(by_kind[k]) for k, _, _ in KINDS if k in by_kind]
    return [l[n] for n in range(max(map(len, lists), default=0)) for l in lists if n < len(l)]


def includes(path, seen):
    if path in seen or not os.path.exists(path):
        return seen
    seen.add(path)
    for name in re.findall(r'#\s*include\s*"([^"]+)"', read(path)):
        includes(os.path.join(ROOT, "src", name), seen)
    return seen


def modules_of(family, path):
    """The .cu files that have a part of the file; of a header the smallest one is enough."""
    if path.endswith(".cu"):
        return [path]
    users = [p for p in sources(family) if p.endswith(".cu") and path in includes(p, set())]
    return sorted(users, key=os.path.getsize)[:1]


class Operators:
    """Which operators launch kernels of a module."""

    def __init__(self, check):
        listed = subprocess.run([check, "--list"], check=True, capture_output=True, text=True).stdout
        self.names = {line.split()[0].lower(): line.split()[0] for line in listed.split("\n")[1:] if line}
        self.symbols = re.findall(r"^HN_CUDA\((\w+), (\S+)\)", read(os.path.join(CUDA, "kernels.def")), re.M)
        self.files = {}
        for folder, _, files in os.walk(CUDA):
            for n in files:
                if n.endswith((".c", ".h")):
                    self.files[os.path.join(folder, n)] = read(os.path.join(folder, n))

    def of(self, module):
        some = module.rsplit("_", 1)[0] + "_"  # the name may be put together
        users = {p for p, text in self.files.items() if f'"{module}"' in text or f'"{some}%s"' in text}
        before = -1
        while len(users) > before:  # what helpers launch, their users do
            before = len(users)
            headers = {os.path.relpath(p, os.path.join(ROOT, "src"))[:-1] + "h" for p in users}
            users |= {p for p, text in self.files.items() if any(f'"{h}"' in text for h in headers)}
        made = [k for p in users for k in re.findall(r"^const HnKernel (hn_cuda_\w+)\b", self.files[p], re.M)]
        users |= {p for p, text in self.files.items() if any(re.search(rf"\b{k}\b", text) for k in made)}
        stems = {os.path.relpath(p, CUDA)[:-2] for p in users}
        return [self.names[s] for s, f in self.symbols if f in stems and s in self.names]


def with_module(kernels, name, ptx, out):
    """A copy of the file of kernels, with PTX for the module of that name."""
    data = open(kernels, "rb").read()
    magic, version, n, digest = struct.unpack_from(HEADER, data)
    first = struct.calcsize(HEADER)
    entries = [list(struct.unpack_from(ENTRY, data, first + i * struct.calcsize(ENTRY))) for i in range(n)]
    data += bytes(-len(data) % ALIGN)
    for e in entries:
        if e[0].rstrip(b"\0").decode() == name:
            e[1:] = [len(data), len(ptx) + 1]
    with open(out, "wb") as f:
        f.write(struct.pack(HEADER, magic, version, n, digest) + b"".join(struct.pack(ENTRY, *e) for e in entries))
        f.write(data[f.tell() :] + ptx + b"\0")


class Device:
    def __init__(self, nvcc, build, room, seconds):
        self.nvcc, self.build, self.room, self.seconds = nvcc, os.path.abspath(build), room, seconds
        self.check = os.path.join(self.build, "test", "hn-check")
        self.kernels = os.path.join(self.build, "src", "cuda", "kernels.cuda")
        self.mutated = os.path.join(room, "kernels.cuda")
        self.tree = os.path.join(room, "src")
        self.operators = Operators(self.check)
        self.plain, self.took, self.launched = {}, {}, {}
        self.counts = os.path.join(room, "counts")
        shutil.copytree(os.path.join(ROOT, "src"), self.tree, ignore=lambda d, names: [n for n in names if n.endswith(".c")])

    def compile(self, path):
        """PTX of a .cu file of the tree; None: it does not compile."""
        out = os.path.join(self.room, "out.ptx")
        arch = "-arch=compute_90a" if os.path.basename(path)[:-3] in HOPPER else "-arch=compute_80"
        command = [self.nvcc, "-std=c++17", "-O3", "-ptx", arch, "--expt-relaxed-constexpr", "-w", "-I", self.tree]
        done = subprocess.run(command + [path, "-o", out], capture_output=True)
        return open(out, "rb").read() if done.returncode == 0 else None

    def there(self, path):
        return os.path.join(self.tree, os.path.relpath(path, os.path.join(ROOT, "src")))

    def ptx_of(self, path, line, made, module):
        """Of the module with that line changed; None where it does not compile, or is as without the change."""
        if module not in self.plain:
            self.plain[module] = self.compile(self.there(module))
        there = self.there(path)
        kept = read(there)
        lines = kept.split("\n")
        lines[line] = made
        with open(there, "w") as f:
            f.write("\n".join(lines))
        ptx = self.compile(self.there(module))
        with open(there, "w") as f:
            f.write(kept)
        return None if ptx == self.plain[module] else ptx

    def kills(self, family, module, ptx):
        """The operator whose cases find it, or the program; None: nobody does."""
        name = os.path.basename(module)[:-3]
        with_module(self.kernels, name, ptx, self.mutated)
        env = dict(os.environ, HONE_CUDA_KERNELS=self.mutated,
                   HONE_CUDA_DRIVER=os.path.join(self.build, "test", "cuda", "libhone-emucuda.so"),
                   HONE_EMU_CC="90" if name in HOPPER else "80")
        judges = [[self.check, "--device=cuda", f"--op={op}"] for op in self.operators.of(name)]
        programs = [os.path.join(self.build, "test", p) for p in PROGRAMS.get(family, [])]
        judges += [[p] for p in programs if os.path.exists(p)]
        if not judges:
            sys.exit(f"mutants: no operator is known to launch what is in {name}.cu")
        entries = set(re.findall(r"\.entry (\w+)", ptx.decode()))
        for judge in sorted(judges, key=lambda j: self.took.get(j[-1], 0)):  # those that are done soon come first
            launched = self.launched.get((judge[-1], env["HONE_EMU_CC"]))
            if launched is not None and not launched & entries:
                continue
            if self.finds(judge, env):
                return os.path.basename(judge[-1].split("=")[-1])
        return None

    def finds(self, judge, env):
        """Whether a case fails, or takes too long; the first one that does is enough."""
        begun, failed = time.monotonic(), False
        if os.path.exists(self.counts):
            os.remove(self.counts)
        env = dict(env, HONE_EMU_COUNTS=self.counts)
        with subprocess.Popen(judge, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
            timer = threading.Timer(self.seconds, p.kill)
            timer.start()
            for line in p.stdout:
                if line.startswith("not ok") or re.match(r"# \S+ case \d+: ", line):
                    failed = True
                    p.kill()
                    break
            p.stdout.close()
            failed = p.wait() != 0 or failed
            timer.cancel()
        if not failed:
            self.took[judge[-1]] = time.monotonic() - begun
            if judge[0] == self.check:  # programs run cases in processes of their own, perhaps
                lines = read(self.counts).split("\n") if os.path.exists(self.counts) else []
                self.launched[(judge[-1], env["HONE_EMU_CC"])] = {json.loads(line)["kernel"] for line in lines if line}
        return failed


def read_alive():
    lines = [l for l in read(ALIVE).split("\n") if l and not l.startswith("#")]
    return set(lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--families")
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("nvcc")
    parser.add_argument("build")
    o = parser.parse_args()
    families = sorted(n for n in os.listdir(CUDA) if os.path.isdir(os.path.join(CUDA, n)))
    families = o.families.split(",") if o.families else families
    alive, count, failed = read_alive(), 0, 0
    with tempfile.TemporaryDirectory() as room:
        device = Device(o.nvcc, o.build, room, o.seconds)
        for family in families:
            left = o.each
            for _, path, line, made, says in chosen(family):
                module = modules_of(family, path)
                ptx = device.ptx_of(path, line, made, module[0]) if module and left > 0 else None
                if ptx is None:
                    continue
                left -= 1
                count += 1
                killer = device.kills(family, module[0], ptx)
                ok = (killer is not None) != (says in alive)
                failed += not ok
                how = f"killed by {killer}" if killer else "alive"
                print(f"{'ok' if ok else 'not ok'} {count} - {family}: {says} -> '{made.strip()}' # {how}", flush=True)
    print(f"1..{count}")
    sys.exit(failed > 0)


main()
