#!/usr/bin/env python3
"""Blocks of bytes of this system's files, to distill a model that tells kinds of files apart by them.

usage: gather_blocks.py FOLDER [--count 3000] [--seed 0] [--name bytes] [--even] [--cuts N] [ROOT...]

Writes FOLDER/train.npz and FOLDER/test.npz (a fifth): array `bytes`, i32 [N, 2048], the first and the last 1,024 bytes of a file without white
space at both ends, 256 where it has fewer. Files are taken below ROOT (/usr /etc /var/lib /opt) in a random order, with --even one kind of
name (its suffix) after the other, so that the frequent ones do not fill the set; no two blocks are the same, and no two files have the same
blocks. --cuts: of each file of text to learn from, N more blocks, of parts of it that begin and end with a line; what is judged by are whole
files in any case. Needs numpy.
"""
import argparse
import collections
import os
import random

import numpy as np

HALF, PAD = 1024, 256
MOST = 1 << 24  # bytes: larger files are left out
LEAST_CUT = 256


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


def read(path):
    if not 16 <= os.path.getsize(path) <= MOST:
        return None
    with open(path, "rb") as f:
        data = f.read()
    return data if len(data) >= 16 else None


def block(data):
    out = np.full(2 * HALF, PAD, "int16")
    first, last = data[:4096].lstrip()[:HALF], data[-4096:].rstrip()[-HALF:]
    out[:len(first)] = np.frombuffer(first, "uint8")
    out[2 * HALF - len(last):] = np.frombuffer(last, "uint8")
    return out


def cuts(data, n, rng):
    """Up to n blocks of parts of a text, whose lengths are spread evenly by their logarithms."""
    if n == 0 or len(data) < 4 * LEAST_CUT or 0 in data[:4096]:
        return []
    out = []
    for _ in range(n):
        length = int(LEAST_CUT * (len(data) / LEAST_CUT) ** rng.random())
        start = data.find(b"\n", rng.randrange(len(data) - length + 1)) + 1
        end = data.rfind(b"\n", 0, start + length) + 1
        if start > 0 and end - start >= LEAST_CUT // 2:
            out.append(block(data[start:end]))
    return out


def gather(kinds, count, n_cuts, seen, rng):
    """Blocks of `count` files, and of parts of them."""
    blocks, taken = [], 0
    while taken < count and any(kinds.values()):
        for kind in sorted(kinds):
            if not kinds[kind] or taken >= count:
                continue
            try:
                data = read(kinds[kind].pop())
            except OSError:
                continue
            if data is None or block(data).tobytes() in seen:
                continue
            taken += 1
            for b in [block(data)] + cuts(data, n_cuts, rng):
                if b.tobytes() not in seen:
                    seen.add(b.tobytes())
                    blocks.append(b)
    rng.shuffle(blocks)
    return blocks


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder")
    ap.add_argument("roots", nargs="*", default=["/usr", "/etc", "/var/lib", "/opt"])
    ap.add_argument("--count", type=int, default=3000)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--name", default="bytes")
    ap.add_argument("--even", action="store_true")
    ap.add_argument("--cuts", type=int, default=0)
    args = ap.parse_args()
    rng, kinds, seen = random.Random(args.seed), files(args.roots, args.even), set()
    for paths in kinds.values():
        rng.shuffle(paths)
    held = gather(kinds, args.count // 5, 0, seen, rng)
    learned = gather(kinds, args.count - args.count // 5, args.cuts, seen, rng)
    os.makedirs(args.folder, exist_ok=True)
    for name, blocks in (("test", held), ("train", learned)):
        np.savez(os.path.join(args.folder, name + ".npz"), **{args.name: np.stack(blocks).astype("int32")})
    print(f"{len(learned)} blocks to learn from, {len(held)} to judge by")


if __name__ == "__main__":
    main()
