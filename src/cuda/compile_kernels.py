#!/usr/bin/env python3
"""usage: compile_kernels.py NVCC CACHE SOURCE_ROOT ARCHES IN.cu OUT.fatbin DEPFILE

Compiles one file of kernels for all architectures (comma-separated: 80,90), with its PTX for later ones, and writes what
ptxas says of registers and memory to OUT.usage. What was made of the same text before, headers included, by the same
compiler, is taken from the folder CACHE: builds of several kinds share it.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile


def texts(path, root, seen):
    """The file and what it includes of the project, in order."""
    if path in seen:
        return
    seen[path] = open(path, "rb").read()
    for name in re.findall(rb'^\s*#\s*include\s*"([^"]+)"', seen[path], re.M):
        inner = os.path.join(root, name.decode())
        if os.path.exists(inner):
            texts(inner, root, seen)


def code_options(arches):
    first = arches[0].rstrip("a")
    plain = [a for a in arches if not a.endswith("a")]
    targets = ",".join(["sm_" + a for a in plain] + ["compute_" + first])
    options = ["-gencode", f"arch=compute_{first},code=[{targets}]"] if plain else []
    for a in arches:
        if a.endswith("a"):
            options += ["-gencode", f"arch=compute_{a},code=[sm_{a},compute_{a}]"]
    return options


def main():
    nvcc, cache, root, arches, source, out, depfile = sys.argv[1:]
    seen = {}
    texts(os.path.abspath(source), root, seen)
    # --fmad=true contracts a*b+c, as the CPU's kernels do; nothing else is less exact than IEEE 754
    command = [nvcc, "-std=c++17", "-O3", "-fatbin", "--no-compress", "-Xptxas", "-v", "--expt-relaxed-constexpr", "-I", root]
    command += ["-Werror", "all-warnings"] + code_options(arches.split(","))
    version = subprocess.run([nvcc, "--version"], check=True, capture_output=True).stdout
    key = hashlib.sha256(repr([command[1:], version, list(seen.values())]).replace(root, "").encode()).hexdigest()
    kept = os.path.join(cache, key)
    if not os.path.exists(kept):
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            fatbin = os.path.join(made, "fatbin")
            done = subprocess.run(command + [source, "-o", fatbin], stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            with open(os.path.join(made, "usage"), "w") as f:
                f.write(done.stderr)
            try:
                os.rename(made, kept)
                os.mkdir(made)  # for its owner to remove
            except OSError:  # another build was faster
                pass
    shutil.copyfile(os.path.join(kept, "fatbin"), out)
    shutil.copyfile(os.path.join(kept, "usage"), out + ".usage")
    with open(depfile, "w") as f:
        f.write(f"{out}: {' '.join(seen)}\n")


if __name__ == "__main__":
    main()
