#!/usr/bin/env python3
"""usage: pack_kernels.py OUT FATBINARY KEY.h IN.fatbin...

Puts compiled kernels into the one file that hone opens; its form is told in core/kernel_file.h. What each container holds
is compressed by nvcc's FATBINARY, as drivers unpack it, to a fifth; containers that are compressed already stay as they are.
"""
import os
import struct
import subprocess
import sys
import tempfile

HEADER, ENTRY, ALIGN = "<8sII64s", "<64sQQ", 64


CONTAINER, IMAGE = "<IHHQ", "<HHIQIIHHIIIQ"  # heads of nvcc's container, and of each image in it
KINDS, SPECIFIC = {1: "ptx", 2: "elf"}, 0x100000


def images(data):
    """[(kind, target, bytes)]; None: of a kind, or in a way, that is not known."""
    found, (_, _, at, size) = [], struct.unpack_from(CONTAINER, data)
    end = at + size
    while at < end:
        kind, _, head, size, packed, _, _, _, arch, _, _, flags = struct.unpack_from(IMAGE, data, at)
        if kind not in KINDS or packed:
            return None
        found.append((KINDS[kind], f"{arch}{'a' if flags & SPECIFIC else ''}", data[at + head : at + head + size]))
        at += head + size
    return found


def compressed(data, fatbinary):
    found = images(data)
    if found is None:
        return data
    with tempfile.TemporaryDirectory() as room:
        out = os.path.join(room, "out")
        command = [fatbinary, "-64", "--compress-all", "--compress-mode=speed", "--create", out]
        for i, (kind, target, body) in enumerate(found):
            path = os.path.join(room, f"{i}.{kind}")
            with open(path, "wb") as f:
                f.write(body.rstrip(b"\0") if kind == "ptx" else body)
            command.append(f"--image3=kind={kind},sm={target},file={path}")
        subprocess.run(command, check=True)
        return open(out, "rb").read()


def main():
    out, fatbinary, key, *paths = sys.argv[1:]
    pieces = sorted((os.path.basename(p).rsplit(".", 1)[0], compressed(open(p, "rb").read(), fatbinary)) for p in paths)
    names = [n for n, _ in pieces]
    if len(set(names)) < len(names) or any(len(n) > 63 for n in names):
        sys.exit("pack_kernels.py: names of .cu files must be unique and at most 63 characters long")
    key = open(key).read().split('"')[1]  # kernels_key.py
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
        f.write(struct.pack(HEADER, b"HONEKRNL", 1, len(pieces), key.encode()) + entries + body)


main()
