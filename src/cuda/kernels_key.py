#!/usr/bin/env python3
"""usage: kernels_key.py SOURCE_ROOT OUT.h DEPFILE

A hash of all that is compiled for GPUs, the headers that kernels share with the host included. The library and its file
of kernels both have it: they go together or not at all, since arguments are passed by bare structures.
"""
import glob
import hashlib
import os
import sys

sys.dont_write_bytecode = True  # the sources stay as they are

from compile_kernels import texts


def main():
    root, out, depfile = sys.argv[1:]
    seen = {}
    for path in sorted(glob.glob(os.path.join(root, "cuda", "*", "*.cu"))):
        texts(path, root, seen)
    digest = hashlib.sha256()
    for path in sorted(seen):
        digest.update(os.path.relpath(path, root).encode() + b"\0" + seen[path] + b"\0")
    with open(out, "w") as f:
        f.write(f'#define HN_KERNELS_KEY "{digest.hexdigest()}"\n')
    with open(depfile, "w") as f:
        f.write(f"{out}: {' '.join(sorted(seen))} {os.path.join(root, 'cuda', 'meson.build')}\n")


main()
