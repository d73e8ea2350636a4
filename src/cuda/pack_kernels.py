#!/usr/bin/env python3
"""usage: pack_kernels.py OUT IN.fatbin...

Puts compiled kernels into the one file that hone opens; its form is told in core/kernel_file.h.
"""
import hashlib
import os
import struct
import sys

HEADER, ENTRY, ALIGN = "<8sII64s", "<64sQQ", 64


def main():
    out, *paths = sys.argv[1:]
    pieces = sorted((os.path.basename(p).rsplit(".", 1)[0], open(p, "rb").read()) for p in paths)
    names = [n for n, _ in pieces]
    if len(set(names)) < len(names) or any(len(n) > 63 for n in names):
        sys.exit("pack_kernels.py: names of .cu files must be unique and at most 63 characters long")
    digest = hashlib.sha256(b"".join(d for _, d in pieces)).hexdigest()
    at = struct.calcsize(HEADER) + len(pieces) * struct.calcsize(ENTRY)
    entries, body = b"", b""
    for name, data in pieces:
        gap = -at % ALIGN
        body += bytes(gap)
        at += gap
        entries += struct.pack(ENTRY, name.encode(), at, len(data))
        body += data
        at += len(data)
    with open(out, "wb") as f:
        f.write(struct.pack(HEADER, b"HONEKRNL", 1, len(pieces), digest.encode()) + entries + body)


main()
