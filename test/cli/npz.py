#!/usr/bin/env python3
"""Make damaged and hostile .npz archives for npz.bats. Standard library only.

usage: npz.py DIR
"""
import os
import struct
import sys
import zipfile

STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


def npy(shape, data=b"", descr="<f4"):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data


ROWS = struct.pack("<6f", 1, -2, 3, -4, 5, -6)
GOOD = npy((2, 3), ROWS)


def archive(path, members, method=STORED, zip64=False):
    with zipfile.ZipFile(path, "w", method, compresslevel=9) as z:
        for name, data in members:
            with z.open(zipfile.ZipInfo(name) if method == STORED else name, "w", force_zip64=zip64) as f:
                f.write(data)
    with open(path, "rb") as f:
        return bytearray(f.read())


def bomb(path, name, length):
    """`length` zeros: a thousandth of that in the file"""
    with zipfile.ZipFile(path, "w", DEFLATED, compresslevel=1) as z, z.open(name, "w", force_zip64=True) as f:
        f.write(npy((length // 3, 3), descr="|u1"))
        for _ in range(length // 3000000):
            f.write(b"\0" * 3000000)


def changed(data, path, mark, at, new):
    """new at `at` behind the last occurrence of mark"""
    copy, i = bytearray(data), data.rfind(mark) + at
    copy[i:i + len(new)] = new
    with open(path, "wb") as f:
        f.write(copy)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    os.chdir(out)
    local, central = b"PK\3\4", b"PK\1\2"
    for kind, method, zip64 in (("stored", STORED, False), ("deflated", DEFLATED, False), ("zip64", STORED, True),
                                ("deflated64", DEFLATED, True)):
        data = archive(kind + ".npz", [("x.npy", GOOD)], method, zip64)
        changed(data, f"crc-{kind}.npz", central, 16, b"\0\0\0\0")
        with open(f"cut-{kind}.npz", "wb") as f:
            f.write(data[:-30])
    data = archive("stored.npz", [("x.npy", GOOD)])
    changed(data, "bad-element.npz", ROWS, 0, b"\1")
    changed(data, "bad-last.npz", ROWS, 23, b"\1")
    changed(data, "bad-size.npz", central, 24, b"\xff\xff\xff\x7f")
    changed(data, "bad-offset.npz", central, 42, b"\xff\xff\xff\x7f")
    changed(data, "bad-method.npz", central, 10, b"\x5d\0")
    changed(changed_flag(data, local, 6), "bad-encrypted.npz", central, 8, b"\1")
    long = archive("longer.npz", [("x.npy", GOOD)], DEFLATED)
    changed(long, "bad-ratio.npz", central, 24, b"\xff\xff\xff\x7f")
    archive("bad-behind.npz", [("x.npy", GOOD + b"\0" * 4096)], DEFLATED)
    archive("bad-twice.npz", [("x.npy", GOOD), ("x.npy", npy((2, 3), b"\0" * 24))])
    archive("good-names.npz", [("../../escape.npy", GOOD), ("/var/escape.npy", GOOD), ("y" * 60000 + ".npy", GOOD),
                               ("x.npy", GOOD)])
    archive("many.npz", [(f"a{i}.npy", npy((1, 3), b"\0" * 12)) for i in range(20000)] + [("x.npy", GOOD)])
    bomb("bomb.npz", "x.npy", 300000000)


def changed_flag(data, mark, at):
    copy = bytearray(data)
    copy[copy.find(mark) + at] |= 1
    return copy


if __name__ == "__main__":
    main()
