#!/usr/bin/env python3
"""Show and make .npy files without NumPy.

usage: npy.py show [FILE]                    type, shape and elements of a .npy ("-": stdin), or of each array of a .npz
       npy.py make TYPE SHAPE VALUES FILE    "<f4" "2,3" "1 2 3 4 5 6"; "" is the shape of a scalar
       npy.py pack FILE NAME=NPY...          an .npz, compressed
"""
import ast
import io
import struct
import sys
import zipfile

CODES = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
         "u8": "Q", "b1": "?"}


def code(descr):
    return ("<" if descr[0] != ">" else ">"), CODES[descr[1:]]


def show(name, data):
    start = 10 if data[6] == 1 else 12
    size, = struct.unpack("<H" if data[6] == 1 else "<I", data[8:start])
    head = ast.literal_eval(data[start:start + size].decode())
    order, c = code(head["descr"])
    body = data[start + size:]
    values = struct.unpack(f"{order}{len(body) // struct.calcsize(c)}{c}", body)
    shape = ",".join(str(d) for d in head["shape"])
    print(f"{name}{head['descr']}[{shape}]", *(f"{float(v):g}" for v in values))


def make(descr, shape, values, path):
    order, c = code(descr)
    dims = tuple(int(d) for d in shape.split(",") if d)
    head = repr({"descr": descr, "fortran_order": False, "shape": dims}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    values = [int(v) if c not in "efd" else float(v) for v in values.split()]
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + struct.pack(f"{order}{len(values)}{c}", *values))


def main():
    verb, args = sys.argv[1], sys.argv[2:]
    if verb == "make":
        make(*args)
    elif verb == "pack":
        with zipfile.ZipFile(args[0], "w", zipfile.ZIP_DEFLATED) as z:
            for a in args[1:]:
                name, _, path = a.partition("=")
                z.write(path, name + ".npy")
    else:
        if not args or args[0] == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(args[0], "rb") as f:
                data = f.read()
        if data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as z:
                for n in z.namelist():
                    show(n[:-4] + " ", z.read(n))
        else:
            show("", data)


if __name__ == "__main__":
    main()
