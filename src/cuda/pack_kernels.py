#!/usr/bin/env python3
"""usage: pack_kernels.py [--for CAPABILITY] OUT FATBINARY KEY.h IN.fatbin...

Puts compiled kernels into the one file that hone opens; its form is told in core/kernel_file.h. What each container holds
is compressed by nvcc's FATBINARY, as drivers unpack it, to a fifth; containers that are compressed already stay as they are.
--for 9.0: what a device of that compute capability loads, nothing else (scripts/pack).
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


def loaded(found, capability):
    """Of the images those that a device loads: machine code of its own major version, else the PTX that it compiles."""
    major, minor = map(int, capability.split("."))
    own = f"{major * 10 + minor}a"
    code = [i for i in found if i[0] == "elf" and (i[1] == own or i[1].isdigit() and int(i[1]) // 10 == major and int(i[1]) <= major * 10 + minor)]
    return code[-1:] or [i for i in found if i[0] == "ptx" and i[1].isdigit() and int(i[1]) <= major * 10 + minor][-1:]


def compressed(data, fatbinary, capability):
    found = images(data)
    if found is None:
        return data
    if capability:
        found = loaded(found, capability)
    if not found:  # code of another capability alone
        return b""
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
    words = sys.argv[1:]
    capability = words[1] if words[0] == "--for" else None
    out, fatbinary, key, *paths = words[2:] if capability else words
    pieces = sorted((os.path.basename(p).rsplit(".", 1)[0], compressed(open(p, "rb").read(), fatbinary, capability)) for p in paths)
    pieces = [p for p in pieces if p[1]]
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
