#!/usr/bin/env python3
"""Blocks of bytes of this system's files, to distill a model that tells kinds of files apart by them.

usage: gather_blocks.py FOLDER [--count 3000] [--seed 0] [--name bytes] [--even] [ROOT...]

Writes FOLDER/train.npz and FOLDER/test.npz (a fifth): array `bytes`, i32 [N, 2048], the first and the last 1,024 bytes of a file without white
space at both ends, 256 where it has fewer. Files are taken below ROOT (/usr /etc /var/lib /opt) in a random order, with --even one kind of
name (its suffix) after the other, so that the frequent ones do not fill the set; no two blocks are the same. Needs numpy.
"""
import argparse
import collections
import os
import random

import numpy as np

HALF, PAD = 1024, 256
MOST = 1 << 24  # bytes: larger files are left out


def suffix(path):
    return os.path.splitext(path)[1].lower()[:12]


def files(roots, even):
    kinds = collections.defaultdict(list)
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    kinds[suffix(path) if even else ""].append(path)
    return kinds


def block(path):
    if not 16 <= os.path.getsize(path) <= MOST:
        return None
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 16:
        return None
    out = np.full(2 * HALF, PAD, "int32")
    first, last = data[:4096].lstrip()[:HALF], data[-4096:].rstrip()[-HALF:]
    out[:len(first)] = np.frombuffer(first, "uint8")
    out[2 * HALF - len(last):] = np.frombuffer(last, "uint8")
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder")
    ap.add_argument("roots", nargs="*", default=["/usr", "/etc", "/var/lib", "/opt"])
    ap.add_argument("--count", type=int, default=3000)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--name", default="bytes")
    ap.add_argument("--even", action="store_true")
    args = ap.parse_args()
    rng, kinds = random.Random(args.seed), files(args.roots, args.even)
    for paths in kinds.values():
        rng.shuffle(paths)
    blocks, seen = [], set()
    while len(blocks) < args.count and any(kinds.values()):
        for kind in sorted(kinds):
            if not kinds[kind] or len(blocks) >= args.count:
                continue
            try:
                b = block(kinds[kind].pop())
            except OSError:
                continue
            if b is not None and b.tobytes() not in seen:
                seen.add(b.tobytes())
                blocks.append(b)
    rng.shuffle(blocks)
    held = len(blocks) // 5
    os.makedirs(args.folder, exist_ok=True)
    np.savez(os.path.join(args.folder, "test.npz"), **{args.name: np.stack(blocks[:held])})
    np.savez(os.path.join(args.folder, "train.npz"), **{args.name: np.stack(blocks[held:])})
    print(f"{len(blocks) - held} blocks to learn from, {held} to judge by")


if __name__ == "__main__":
    main()
