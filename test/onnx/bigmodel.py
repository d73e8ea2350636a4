#!/usr/bin/env python3
"""Make a large ONNX model of 16 MB weights: a chain of MatMul and Add on vectors of 2048 elements.

usage: bigmodel.py OUT [--gb N] [--external] [--width N]

  OUT          the model's file; with --external its weights go to OUT.data beside it
  --gb N       size in GiB, a fraction is fine (default 1): 64 weights f32[2048,2048] of 16 MiB per GiB
  --external   weights in OUT.data, each at a multiple of 4096 bytes
  --width N    columns and rows of a weight (default 2048); small numbers make a quick test

Input `x` f32 [N,width], output `y` f32 [N,width]. The file is written piece by piece: memory stays at a few weights
however large it becomes. Weights are random, all different, and the same in every run; products along the chain stay
finite.
Other readers than hone take files over 2 GB only with --external.
"""

import argparse
import os
import random

import wire

ALIGN = 4096
# Top bytes of a float: either sign, exponents -7 and -6. Standard deviation 0.85 / sqrt(2048).
TOP = bytes(0xBC if i & 1 else 0x3C for i in range(256))


def weight(k, count):
    """`count` little-endian floats of weight k: random bits, the top byte replaced."""
    data = bytearray(random.Random(k).randbytes(4 * count))
    data[3::4] = data[3::4].translate(TOP)
    return data


def plan(width, layers):
    """(name, dims, elements) of every weight, in file order."""
    for k in range(layers):
        yield f"w{k}", (width, width), width * width
        yield f"b{k}", (width,), width


def write(out, side, side_name, width, layers):
    """Write the model to `out`, the weights to `side` unless that is None."""
    nodes, y = [], "x"
    for k in range(layers):
        nodes.append(wire.node("MatMul", [y, f"w{k}"], [f"m{k}"], name=f"matmul{k}"))
        y = "y" if k == layers - 1 else f"a{k}"
        nodes.append(wire.node("Add", [f"m{k}", f"b{k}"], [y], name=f"add{k}"))

    # Everything but the elements first: the graph's length must be known before it is written.
    heads, size, offset = [], 0, 0
    for name, dims, count in plan(width, layers):
        place = b""
        if side:
            offset = -(-offset // ALIGN) * ALIGN
            place = wire.external(location=side_name, offset=offset, length=4 * count)
            offset += 4 * count
        fields = wire.tensor(name, wire.FLOAT, dims) + place
        if not side:
            fields += wire.head(9, 4 * count)
        inside = len(fields) + (0 if side else 4 * count)
        heads.append(wire.head(5, inside) + fields)
        size += len(heads[-1]) + (0 if side else 4 * count)
    io = [wire.value(n, wire.FLOAT, ("N", width)) for n in ("x", "y")]
    front = wire.graph(nodes, name="big")
    back = wire.sub(11, io[0]) + wire.sub(12, io[1])

    out.write(wire.num(1, 8) + wire.sub(2, "hone test/onnx"))
    out.write(wire.head(7, len(front) + size + len(back)) + front)
    for k, (start, (_, _, count)) in enumerate(zip(heads, plan(width, layers))):
        out.write(start)
        if side:
            side.write(bytes(-side.tell() % ALIGN))
        (side or out).write(weight(k, count))
    out.write(back + wire.sub(8, wire.opset(17)))


def main():
    parser = argparse.ArgumentParser(description="make a large ONNX model of equal weights")
    parser.add_argument("out")
    parser.add_argument("--gb", type=float, default=1, help="size in GiB (default 1)")
    parser.add_argument("--external", action="store_true", help="weights in OUT.data")
    parser.add_argument("--width", type=int, default=2048, help="columns and rows of a weight (default 2048)")
    args = parser.parse_args()
    layers = max(1, round(args.gb * 2**30 / (4 * args.width**2)))
    side_path = args.out + ".data"
    temporary = [args.out + ".tmp"] + ([side_path + ".tmp"] if args.external else [])
    try:
        files = [open(path, "wb") for path in temporary]
        write(files[0], files[1] if args.external else None, os.path.basename(side_path), args.width, layers)
        for f in files:
            f.close()
        if args.external:
            os.replace(temporary[1], side_path)
        os.replace(temporary[0], args.out)
    except BaseException:
        for path in temporary:
            if os.path.exists(path):
                os.unlink(path)
        raise


if __name__ == "__main__":
    main()
