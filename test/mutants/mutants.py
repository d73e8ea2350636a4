#!/usr/bin/env python3
"""Change one line of the sources after the other, as a mistake would, and see that a test fails; prints TAP.

usage: mutants.py [--list FILE] [--only WORD] BUILD

BUILD is a folder that meson made of this checkout's sources; it is built first. FILE (mutants.txt beside this file) lists
mutants, separated by empty lines; lines that start with # say something about those that follow:

    src/check/guard.c          the file, from the root of the sources
    - if (lost > limit)        lines as they stand there, one after the other: they occur once in the file
    + if (lost > limit * 2)    what stands there instead; none: they are removed
    = unit check_guard         what has to fail: 'unit NAME [PATH...]', 'op NAME', 'pass CASES', 'lower NAME' (of the
                               cases in test/lower) or 'cli FILE PATTERN'

The sources are copied to BUILD/mutants, so that the checkout itself is not touched. A mutant that does not compile, whose
lines are not there, or whose test passes is 'not ok'; a test that fails without a mutant is one, too.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def read_list(path):
    """[(file, old, new, test, line number)] of a list of mutants."""
    mutants = []
    for block in re.split(r"\n\s*\n", open(path).read()):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        old = [line[2:] for line in lines if line.startswith("- ")]
        new = [line[2:] for line in lines if line.startswith("+ ")]
        test = [line[2:].split() for line in lines if line.startswith("= ")]
        if lines[0][:2] in ("- ", "+ ", "= ") or not old or len(test) != 1:
            sys.exit(f"mutants: {path}: a file, '- ' lines and one '= ' line are needed:\n{block}")
        mutants.append((lines[0], old, new, test[0]))
    return mutants


def changed(text, old, new):
    """text with the lines `old` exchanged for `new`, whatever their indentation; None: they do not occur once."""
    lines = text.split("\n")
    stripped = [line.strip() for line in lines]
    want = [line.strip() for line in old]
    at = [i for i in range(len(lines) - len(want) + 1) if stripped[i : i + len(want)] == want]
    if len(at) != 1:
        return None
    return "\n".join(lines[: at[0]] + new + lines[at[0] + len(want) :])


class Tree:
    """A copy of the sources and its build."""

    def __init__(self, build):
        self.root = os.path.join(os.path.abspath(build), "mutants")
        self.source = os.path.join(self.root, "source")
        self.build = os.path.join(self.root, "build")
        os.makedirs(self.source, exist_ok=True)
        self.copy()
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            self.run(["meson", "setup", self.build, self.source, "--buildtype=release", "-Dwerror=false"], check=True)
        self.run(["ninja", "-C", self.build], check=True)

    def copy(self):
        """The checkout's files; those that are the same keep their time, so that nothing is built twice."""
        tracked = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                 capture_output=True, check=True, text=True).stdout
        names = {name for name in tracked.split("\0") if name}
        for folder, folders, files in os.walk(self.source):
            folders[:] = [name for name in folders if name != ".deps"]
            for name in files:
                if os.path.relpath(os.path.join(folder, name), self.source) not in names:
                    os.remove(os.path.join(folder, name))
        for name in names:
            here, there = os.path.join(ROOT, name), os.path.join(self.source, name)
            if os.path.isfile(here) and not (os.path.exists(there) and open(here, "rb").read() == open(there, "rb").read()):
                os.makedirs(os.path.dirname(there), exist_ok=True)
                shutil.copy(here, there)
        deps = os.path.join(self.source, ".deps")
        if os.path.exists(os.path.join(ROOT, ".deps")) and not os.path.lexists(deps):
            os.symlink(os.path.join(ROOT, ".deps"), deps)

    def run(self, command, check=False, **options):
        done = subprocess.run(command, cwd=self.source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, **options)
        if check and done.returncode != 0:
            sys.exit(f"mutants: {' '.join(command)}\n{done.stdout[-4000:]}")
        return done

    def command(self, test):
        """(what to build, the command) of a '= ' line."""
        kind, name, rest = test[0], test[1], test[2:]
        program = os.path.join(self.build, "test", f"test-{name}")
        if kind == "unit":
            return [f"test/test-{name}"], [program] + [part for path in rest for part in ("-p", path)]
        if kind == "lower":
            return ["test/test-pass"], [os.path.join(self.build, "test", "test-pass"), "--lower",
                                        os.path.join("test", "lower", f"{name}.txt")]
        if kind == "cli":
            command = ["bats", "-F", "tap", os.path.join("test", "cli", f"{name}.bats")]
            return ["all"], command + (["-f", " ".join(rest)] if rest else [])
        suite = ["meson", "test", "-C", self.build, "--no-rebuild", "--print-errorlogs", "--suite", kind]
        return ["all"], suite + ([name] if name != "all" else [])

    def passes(self, test):
        """None: it does not compile; else whether the test passes."""
        targets, command = self.command(test)
        if self.run(["ninja", "-C", self.build] + targets).returncode != 0:
            return None
        env = dict(os.environ, HONE_BUILD=self.build, PATH=f"{self.build}/tools:{os.environ['PATH']}")
        try:
            return self.run(command, env=env, timeout=300).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--list", default=os.path.join(HERE, "mutants.txt"))
    options.add_argument("--only", default="")
    options.add_argument("build")
    args = options.parse_args()
    mutants = [m for m in read_list(args.list) if args.only in " ".join([m[0]] + m[3])]
    tree = Tree(args.build)
    failed = 0
    for test in sorted({tuple(m[3]) for m in mutants}):
        if not tree.passes(list(test)):
            failed += 1
            print(f"not ok - without a mutant: {' '.join(test)}", flush=True)
    for number, (name, old, new, test) in enumerate(mutants, 1):
        path = os.path.join(tree.source, name)
        text = open(path).read() if os.path.exists(path) else None
        mutant = changed(text, old, new) if text is not None else None
        if mutant is None:
            outcome = "its lines are not there once"
        else:
            try:
                open(path, "w").write(mutant)
                passed = tree.passes(test)
            finally:
                open(path, "w").write(text)
            outcome = {None: "does not compile", True: "survives", False: "killed"}[passed]
        failed += outcome != "killed"
        print(f"{'ok' if outcome == 'killed' else 'not ok'} - {name}: {old[0].strip()}: {outcome} by {' '.join(test)}",
              flush=True)
    print(f"1..{len(mutants)}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
