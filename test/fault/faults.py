#!/usr/bin/env python3
"""Let each step of each tool fail, and look at what is left; prints TAP, and a table of tool, fault and outcome.

usage: faults.py [--long] [--seed N] [--only WORD] TOOLS SHIM

TOOLS is the folder of the built tools, SHIM the built shim (shim.c says what it can do). Each tool runs in a folder of its
own, once without a fault; then once for each step, that is for each call of a class, which fails or ends the process. After
each run:
  - the status is one that hone-exit-status(7) names, with one sentence on stderr unless it is 0, and no signal ended it;
  - each file is as it was or as it should become, a model has the weights that go with it, and nothing else is there;
  - after a kill there may be more, but not after the next run, which makes what it should.
Without --long some of the steps are taken, with it all of them; 200 kills at random times and 100 pairs of writers too.
"""
import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "onnx"))

from wire import FLOAT, attr_ints, f32, node, simple, tensor, value  # noqa: E402

STATUSES = {0, 1, 2, 3, 4, 5, 6, 130}
# what may be left by a killed tool, until the next one writes the same file
LEFT = re.compile(r"(^|/)\.[^/]+\.hone-\d+$|\.[0-9a-f]{16}\.data$")

# Where one of these fails, the folder's models are not known, or old weights cannot be removed: they stay.
KEEPING = {"open", "map", "lock", "alloc", "unlink"}

# class of calls: what each of them does in turn; '+': all that follow, too
FAULTS = {
    "any": ["KILL", "INT"],
    "open": ["EACCES", "EMFILE"],
    "create": ["EACCES", "ENOSPC", "EOPNOTSUPP"],
    "read": ["EIO", "EINTR", "SHORT"],
    "write": ["ENOSPC", "ENOSPC+", "EIO", "EINTR", "SHORT"],
    "sync": ["EIO"],
    "rename": ["EIO"],
    "link": ["EPERM", "EPERM+"],
    "unlink": ["EIO"],
    "map": ["ENOMEM"],
    "truncate": ["EIO"],
    "close": ["EIO"],
    "lock": ["ENOLCK", "ENOLCK+", "EINTR"],
    "folder": ["EACCES"],
    "alloc": ["ENOMEM"],
}


def model(scale, n=600):
    """Two products, the weights of which are numbers of scale"""
    rng = random.Random(scale)
    weights = [tensor(name, FLOAT, dims, f32(*(scale * rng.uniform(-1, 1) for _ in range(dims[0] * dims[1]))))
               for name, dims in (("a", (8, n)), ("b", (n, 4)))]
    nodes = [node("MatMul", ["x", "a"], ["p"], name="first"), node("Relu", ["p"], ["q"]),
             node("MatMul", ["q", "b"], ["y"], name="second")]
    return simple(nodes, weights, (value("x", FLOAT, ("N", 8)),), (value("y", FLOAT, ("N", 4)),))


# What slow tools are put through without --long
SHORT = {("any", "KILL"), ("any", "INT"), ("write", "ENOSPC+"), ("sync", "EIO"), ("rename", "EIO"), ("alloc", "ENOMEM")}


class Scenario:
    """A command, what there was before it, and how its files are judged."""

    def __init__(self, name, command, before=(), loose=(), may_leave=r"$^", slow=False, stdin=None):
        self.name, self.command, self.before = name, command, before
        self.loose = loose  # files that differ from run to run: only their form is looked at
        self.may_leave = re.compile(may_leave)  # by design, where the tool did not get to its end
        self.slow, self.stdin = slow, stdin


EXPORT = ["hone-export", "-q", "--no-check"]
QUANTIZE = ["hone-quantize", "-q", "-t1", "--samples", "2", "--force", "--allow-larger", "--max-drop", "100%",
            "--timing-cache", "none", "--repair", "none"]
OLD_INLINE = [EXPORT + ["other.onnx", "-o", "out.onnx"]]
OLD_BESIDE = [EXPORT + ["other.onnx", "-o", "out.onnx", "--external", "one-file"]]
SCENARIOS = [
    Scenario("run", ["hone-run", "-q", "-t1", "m.onnx", "--data", "x.npy", "--out", "sets"]),
    Scenario("run-stdin", ["hone-run", "-q", "-t1", "-", "--data", "x.npy", "--out", "sets"], stdin="m.onnx"),
    Scenario("export", ["hone-export", "-q", "-t1", "m.onnx", "-o", "out.onnx"], OLD_INLINE),
    Scenario("export-new", EXPORT + ["m.onnx", "-o", "out.onnx", "--external", "one-file"]),
    Scenario("export-beside", EXPORT + ["m.onnx", "-o", "out.onnx", "--external", "one-file"], OLD_BESIDE),
    Scenario("export-itself", EXPORT + ["out.onnx", "--level", "0", "--clear-metadata", "-o", "out.onnx"], OLD_BESIDE),
    Scenario("bench", ["hone-bench", "-q", "-t1", "--runs", "2", "--warmup", "0", "m.onnx", "--json=b.json", "--csv=b.csv"],
             loose=("b.json", "b.csv")),
    Scenario("profile", ["hone-profile", "-q", "-t1", "--runs", "2", "m.onnx", "--json=p.json", "--trace", "t.json",
                         "--folded", "f.txt"], loose=("p.json", "t.json", "f.txt")),
    Scenario("diff", ["hone-diff", "-q", "-t1", "m.onnx", "m.onnx", "--json=d.json"], loose=("d.json",)),
    Scenario("quantize", QUANTIZE + ["m.onnx", "--calib", "x.npy", "-o", "out.onnx", "--write-ranges", "r.json", "--write-plan",
                                     "p.json"], OLD_INLINE, loose=("p.json", "out.onnx.journal"),
             may_leave=r"out\.onnx\.(journal|best-so-far)", slow=True),
    Scenario("quantize-beside", QUANTIZE + ["m.onnx", "--mode", "weights", "-o", "out.onnx", "--external", "one-file",
                                            "--journal", "none"], OLD_BESIDE, slow=True),
    Scenario("replay", ["hone-replay", "-q", "-t1", "made.onnx", "m.onnx", "--calib", "x.npy", "-o", "out.onnx"], OLD_INLINE,
             slow=True),
]


class Bench:
    """Folders, runs and judgements of all scenarios."""

    def __init__(self, args):
        self.args = args
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="hone-faults-"))
        self.env = dict(os.environ, PATH=args.tools + ":" + os.environ["PATH"], LC_ALL="C.UTF-8",
                        XDG_CACHE_HOME=os.path.join(self.top, "cache"))
        self.rng = random.Random(args.seed)
        self.n = self.failed = 0
        self.table = []
        self.pool = ThreadPoolExecutor(os.cpu_count() or 1)
        self.common = os.path.join(self.top, "common")
        os.mkdir(self.common)
        for name, scale in (("m.onnx", 1.0), ("other.onnx", 0.5)):
            with open(os.path.join(self.common, name), "wb") as f:
                f.write(model(scale))
        head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8), }"
        head += b" " * (118 - len(head) - 1) + b"\n"
        with open(os.path.join(self.common, "x.npy"), "wb") as f:
            f.write(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + f32(*range(-8, 8)))
        self.must(QUANTIZE + ["m.onnx", "--calib", "x.npy", "-o", "made.onnx", "--journal", "none"], self.common)
        # what is measured once lies in the cache from now on
        self.must(["hone-profile", "-q", "-t1", "--runs", "2", "m.onnx"], self.common)

    def must(self, command, folder, stdin=None):
        with open(os.path.join(folder, stdin) if stdin else os.devnull, "rb") as source:
            p = subprocess.run(command, cwd=folder, env=self.env, stdin=source, capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(f"Bail out! {' '.join(command)}: status {p.returncode}: {p.stderr}")

    def ok(self, name, complaints, note=""):
        self.n += 1
        self.failed += bool(complaints)
        for c in complaints[:5]:
            print(f"# {name}: {c}")
        print(f"{'not ok' if complaints else 'ok'} {self.n} - faults: {name}{': ' if note else ''}{note}", flush=True)

    def fresh(self, source):
        folder = tempfile.mkdtemp(dir=self.top)
        shutil.copytree(source, folder, dirs_exist_ok=True)
        return folder

    # --- one run ---------------------------------------------------------------------------------------------------

    def run(self, scenario, folder, fault=None, nameless=True, stdout=subprocess.DEVNULL):
        """(status, stderr, call that was hit, calls of each class)"""
        env, log = dict(self.env), folder + ".log"
        if fault:
            env.update(LD_PRELOAD=self.args.shim, HONE_FAULT=fault, HONE_FAULT_DIR=folder, HONE_FAULT_LOG=log)
            if not nameless:
                env["HONE_FAULT_NAMELESS"] = "no"
        with open(os.path.join(folder, scenario.stdin) if scenario.stdin else os.devnull, "rb") as source:
            try:
                p = subprocess.run(scenario.command, cwd=folder, env=env, stdin=source, stdout=stdout,
                                   stderr=subprocess.PIPE, timeout=120)
            except subprocess.TimeoutExpired:
                return None, "", "timed out", {}
        hit, total = "", {}
        if os.path.exists(log):
            with open(log) as f:
                for line in f:
                    word, _, rest = line.strip().partition(" ")
                    hit = rest if word == "hit" else hit
                    if word == "total":
                        kind, n = rest.split()
                        total[kind] = max(total.get(kind, 0), int(n))
            os.remove(log)
        return p.returncode, p.stderr.decode(errors="replace"), hit, total

    def snapshot(self, folder):
        found = {}
        for root, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(root, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = f.read()
        return found

    # --- judging ---------------------------------------------------------------------------------------------------

    def well_formed(self, name, content):
        if name.endswith(".json"):
            try:
                json.loads(content)
            except ValueError:
                return False
        return bool(content)

    def judge(self, s, old, new, found, killed, keeps=False):
        """What is wrong with the files that are found. keeps: nobody could tell whether old weights are needed"""
        wrong, needed = [], set()
        for name, content in sorted(found.items()):
            known = [w for w in (old, new) if name in w and (w[name] == content or name in s.loose)]
            if known and name in s.loose and not self.well_formed(name, content) and content != old.get(name):
                if not (killed or s.may_leave.match(name)):
                    wrong.append(f"'{name}' is cut off")
            if known and name.endswith(".onnx"):
                needed |= {n for n in set(old) | set(new) if n.endswith(".data") and n.encode() in content}
            if known or s.may_leave.match(name) or (killed and LEFT.search(name)) or (keeps and name.endswith(".data")):
                continue
            wrong.append(f"'{name}' is {'neither old nor new' if name in old or name in new else 'left behind'}")
        for name in needed:
            if name not in found:
                wrong.append(f"the model's '{name}' is gone")
        for name in set(old) & set(new):
            if name not in found:
                wrong.append(f"'{name}' is gone")
        if not killed and not keeps:
            for name in found:
                if name.endswith(".data") and name not in needed:
                    wrong.append(f"'{name}' is left behind")
        return wrong

    def check(self, s, states, fault, nameless=True):
        """(what is wrong, outcome, reached) of one fault."""
        source, old, new = states
        folder = self.fresh(source)
        status, said, hit, _ = self.run(s, folder, fault, nameless)
        found = self.snapshot(folder)
        killed = fault.endswith("KILL") and status == -signal.SIGKILL
        litters = killed or fault.startswith("unlink")
        keeps = status == 0 and fault.split(":")[0] in KEEPING
        wrong = self.judge(s, old, new, found, litters, keeps)
        if status is None:
            wrong.append("it does not end")
        elif not killed and status not in STATUSES:
            wrong.append(f"status {status}")
        elif status and not killed and not re.fullmatch(r"hone-\w+: [^\n]+[^.\n]\n", said):
            wrong.append(f"status {status} says {said!r}")
        elif status == 0 and not litters:
            wrong += [f"status 0 without '{n}'" for n in new if n not in found]
            wrong += [f"status 0 and '{n}' is old" for n in new
                      if n in found and found[n] != new[n] and n not in s.loose]
        if litters and not wrong:
            status_then, said, _, _ = self.run(s, folder)
            then = self.snapshot(folder)
            if status_then != 0:
                wrong.append(f"the next run ends with {status_then}: {said}")
            wrong += [f"after the next run: {w}" for w in self.judge(s, new, new, then, False, keeps)]
        shutil.rmtree(folder)
        outcome = "killed" if killed else "went on" if status == 0 else f"status {status}"
        return [f"{fault} ({hit}): {w}" for w in wrong], outcome, bool(hit)

    # --- all steps of a scenario -----------------------------------------------------------------------------------

    def steps(self, total, s):
        most = 10**9 if self.args.long else 1 if s.slow else 3
        if total <= most:
            return list(range(1, total + 1))
        return sorted(self.rng.sample(range(1, total + 1), most))

    def scenario(self, s):
        folder = self.fresh(self.common)
        for command in s.before:
            self.must(command, folder)
        old, after = self.snapshot(folder), self.fresh(folder)
        self.must(s.command, after, s.stdin)
        states = folder, old, self.snapshot(after)
        shutil.rmtree(after)
        totals = self.count(s, folder)
        jobs = []
        for kind, actions in FAULTS.items():
            for action in actions:
                if s.slow and not self.args.long and (kind, action) not in SHORT:
                    continue
                jobs.append((kind, action, True, self.steps(totals[kind], s)))
        jobs.append(("any", "KILL", False, self.steps(totals["any"], s)))  # on other file systems
        for kind, action, nameless, ks in jobs:
            if not ks:
                continue
            results = list(self.pool.map(lambda k: self.check(s, states, f"{kind}:{k}:{action}", nameless), ks))
            outcomes = {}
            for _, outcome, hit in results:
                outcome = outcome if hit else "not reached"
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            note = ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items()))
            name = f"{kind} {action}{'' if nameless else ' without nameless files'}"
            self.table.append((s.name, name, f"{len(ks)} of {totals[kind]}", note))
            self.ok(f"{s.name}: {name}", [w for wrong, _, _ in results for w in wrong], note)
        shutil.rmtree(folder)

    def count(self, s, folder):
        """How many calls of each class there are; where a tool becomes another, of the longer part."""
        copy = self.fresh(folder)
        total = self.run(s, copy, "any:1000000000:EIO")[3]
        shutil.rmtree(copy)
        return total

    # --- descriptors -----------------------------------------------------------------------------------------------

    def descriptors(self, s):
        """stdout that nobody reads, a full one, and standard descriptors that are closed"""
        folder = self.fresh(self.common)
        for command in s.before:
            self.must(command, folder)
        old, after = self.snapshot(folder), self.fresh(folder)
        self.must(s.command, after, s.stdin)
        new = self.snapshot(after)
        wrong = []
        line = " ".join(f"'{c}'" for c in s.command) + (f" <{s.stdin}" if s.stdin else "")
        for redirect in ("| head -c 0", ">/dev/full", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            if s.stdin and "<" in redirect:
                continue
            copy = self.fresh(folder)
            p = subprocess.run(["bash", "-c", f"{line} {redirect}; exit ${{PIPESTATUS[0]}}"], cwd=copy, env=self.env,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
            if p.returncode not in STATUSES:
                wrong.append(f"{redirect}: status {p.returncode}")
            if p.stderr.count("\n") > 1:
                wrong.append(f"{redirect}: says {p.stderr!r}")
            wrong += [f"{redirect}: {w}" for w in self.judge(s, old, new, self.snapshot(copy), False)]
            shutil.rmtree(copy)
        self.ok(f"{s.name}: descriptors", wrong)
        shutil.rmtree(folder)
        shutil.rmtree(after)

    # --- several at once -------------------------------------------------------------------------------------------

    def pairs(self, folder, states, name):
        """The model that is there loads, and its weights are its own; leftovers are fine."""
        found = self.snapshot(folder)
        if found["out.onnx"] not in [s["out.onnx"] for s in states]:
            return [f"{name}: the model is nobody's"]
        return [f"{name}: the model's '{n}' is {'other' if n in found else 'gone'}"
                for s in states if found["out.onnx"] == s["out.onnx"]
                for n in s if n.endswith(".data") and found.get(n) != s[n]]

    def together(self):
        make = {n: EXPORT + [n, "-o", "out.onnx", "--external", "one-file"] for n in ("m.onnx", "other.onnx")}
        states = []
        for command in make.values():
            folder = self.fresh(self.common)
            self.must(command, folder)
            self.must(["hone-run", "-q", "--verify-data", "out.onnx", "--data", "x.npy", "--out", "sets"], folder)
            shutil.rmtree(os.path.join(folder, "sets"))
            states.append(self.snapshot(folder))
        folder, wrong = self.fresh(self.common), []
        self.must(make["m.onnx"], folder)
        start = time.monotonic()
        self.must(make["other.onnx"], folder)
        usual = time.monotonic() - start
        kills = 200 if self.args.long else 25
        dead = 0
        for i in range(kills):
            command = make["m.onnx" if i % 2 else "other.onnx"]
            p = subprocess.Popen(command, cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            time.sleep(self.rng.uniform(0, usual))
            p.kill()
            dead += p.wait() == -signal.SIGKILL
            wrong += self.pairs(folder, states, f"kill {i}")
        self.must(make["m.onnx"], folder)
        self.must(make["other.onnx"], folder)
        wrong += [f"'{n}' is left behind" for n in self.snapshot(folder) if n not in states[1]]
        self.ok("kills at random times", wrong, f"{dead} of {kills} before the end")

        wrong, won = [], 0
        count = 100 if self.args.long else 15
        for i in range(count):
            both = [subprocess.Popen(c, cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE) for c in make.values()]
            wrong += [f"pair {i}: {p.stderr.read()!r}" for p in both if p.wait() != 0]
            wrong += self.pairs(folder, states, f"pair {i}")
            now = self.snapshot(folder)
            wrong += [f"pair {i}: other files than one writer's" for _ in "1" if now not in states]
            won += now == states[0]
        self.ok("two writers", wrong, f"the first won {won} of {count}")
        shutil.rmtree(folder)

    def full_disk(self):
        """A real one, where it can be mounted"""
        disk = os.path.join(self.top, "disk")
        os.mkdir(disk)
        options = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
        if os.geteuid() or subprocess.run(["mount"] + options, capture_output=True).returncode:
            self.n += 1
            print(f"ok {self.n} - faults: full disk # SKIP nothing can be mounted here")
            return
        try:
            wrong = []
            shutil.copy(os.path.join(self.common, "m.onnx"), disk)
            for more in ([], ["--external", "one-file"]):
                with open(os.path.join(disk, "out.onnx"), "wb") as f:
                    f.write(b"old")
                p = subprocess.run(EXPORT + ["m.onnx", "-o", "out.onnx"] + more, cwd=disk, env=self.env,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True)
                left = self.snapshot(disk)
                if p.returncode != 1 or "No space left" not in p.stderr or sorted(left) != ["m.onnx", "out.onnx"] or \
                        left["out.onnx"] != b"old":
                    wrong.append(f"status {p.returncode}, {sorted(left)}: {p.stderr}")
            self.ok("full disk", wrong)
        finally:
            subprocess.run(["umount", disk], check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("tools")
    parser.add_argument("shim")
    args = parser.parse_args()
    args.tools, args.shim = os.path.realpath(args.tools), os.path.realpath(args.shim)
    bench = Bench(args)
    try:
        for s in SCENARIOS:
            if args.only in s.name:
                bench.scenario(s)
                if not s.slow or args.long:
                    bench.descriptors(s)
        if args.only in "together":
            bench.together()
            bench.full_disk()
    finally:
        shutil.rmtree(bench.top)
    print(f"1..{bench.n}")
    for row in bench.table:
        print(f"# {row[0]:16} {row[1]:32} {row[2]:>12}  {row[3]}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
