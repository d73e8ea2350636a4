#!/usr/bin/env python3
"""Print the recipe in a model's metadata, or write the model with another one, or none. Standard library only.

usage: recipe.py MODEL           what it says
       recipe.py MODEL OUT       with stdin as its recipe, in place of the one it has
       recipe.py MODEL --bare    the model without one, to stdout
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))

from wire import key, sub, varint  # noqa: E402

METADATA = 14  # ModelProto.metadata_props
NAME = b"hone.recipe"


def fields(data):
    """(field, bytes of the value if it is a message, all bytes) of a message of varints and messages"""
    def number(at):
        x = shift = 0
        while True:
            x |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return x, at

    at = 0
    while at < len(data):
        start = at
        tag, at = number(at)
        size, at = number(at)
        value = data[at:at + size] if tag & 7 == 2 else b""
        at += len(value)
        yield tag >> 3, value, data[start:at]


def main():
    with open(sys.argv[1], "rb") as f:
        model = list(fields(f.read()))
    entries = [dict((k, v) for k, v, _ in fields(value)) for field, value, _ in model if field == METADATA]
    if len(sys.argv) == 2:
        sys.stdout.buffer.write(next(e[2] for e in entries if e[1] == NAME))
        return
    if sys.argv[2] == "--bare":
        sys.stdout.buffer.write(b"".join(raw for field, value, raw in model if field != METADATA or NAME not in value))
        return
    entry = sub(1, NAME) + sub(2, sys.stdin.buffer.read())
    rest = b"".join(raw for field, value, raw in model if field != METADATA or NAME not in value)
    with open(sys.argv[2], "wb") as f:
        f.write(rest + key(METADATA, 2) + varint(len(entry)) + entry)


main()
