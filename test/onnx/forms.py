#!/usr/bin/env python3
"""What hone's records say of other opsets, compared with ONNX's own definitions; prints TAP.

usage: forms.py 'hn-check --forms'

For each operator and each opset from 7 to 28: the element types that inputs and outputs may have, which attributes
there are, and when the operator came and went. Types that hone never takes, or ONNX never did, are left out. A record
with a function of its own for other opsets may leave attributes to it; hn-check judges what that makes of them.
"""
import json
import shlex
import subprocess
import sys

OPSETS = range(7, 29)
DTYPES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26, "float6e2m3": 27, "float6e3m2": 28,
}


def schemas():
    import onnx.defs

    found = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "":
            found.setdefault(s.name, []).append(s)
    for v in found.values():
        v.sort(key=lambda s: s.since_version)
    return found


def schema_at(history, version):
    """The definition that opset `version` has; None before the first and once it is deprecated for good"""
    s = [s for s in history if s.since_version <= version]
    return s[-1] if s and not (s[-1].deprecated and history[-1].deprecated) else None


def mask(schema, parameter):
    allowed = [parameter.type_str]
    for c in schema.type_constraints:
        if c.type_param_str == parameter.type_str:
            allowed = list(c.allowed_type_strs)
    bits = 0
    for a in allowed:
        if a.startswith("tensor("):
            bits |= 1 << DTYPES[a[7:-1]]
    return bits


def letter(letters, i):
    if letters and letters[-1] in "*~" and i >= len(letters) - 2:
        return letters[-2]
    return letters[i] if i < len(letters) else "."


def onnx_masks(record, schema):
    """letter -> types that all its places may have"""
    masks = {}
    for letters, parameters in ((record["in"], schema.inputs), (record["out"], schema.outputs)):
        for i, p in enumerate(parameters):
            k, m = letter(letters, i), mask(schema, p)
            if m:  # 0: no tensors at all, and nothing is said of their types
                masks[k] = masks.get(k, 0xFFFFFFFF) & m
    return masks


def names(bits):
    return " ".join(n for n, d in DTYPES.items() if bits >> d & 1)


def differences(record, history):
    """-> what a record says differently"""
    wrong = []
    ever = {}
    for v in OPSETS:
        s = schema_at(history, v)
        for k, m in (onnx_masks(record, s) if s else {}).items():
            ever[k] = ever.get(k, 0) | m
    for v in OPSETS:
        s = schema_at(history, v)
        exists = v >= record["since"][0] and (record["until"] == 0 or v <= record["until"])
        if exists != (s is not None):
            wrong.append(f"opset {v}: {'exists' if s else 'does not exist'}")
        if s is None or not exists:
            continue
        if s.since_version not in record["since"]:
            wrong.append(f"opset {s.since_version} changed it")
        for k, m in onnx_masks(record, s).items():
            ours, newest = record["types"][str(v)][k], record["types"]["28"][k]
            for t in record["types"].values():
                newest |= t[k]
            scope = newest & ever[k]
            if ours & scope != m & scope:
                more, less = ours & scope & ~m, m & scope & ~ours
                wrong.append(f"opset {v}, types {k}: too many: {names(more)}; too few: {names(less)}")
    forms = {f["name"]: f for f in record["forms"]}
    if not record["unbind"]:
        for a, b in zip(history, history[1:]):
            if b.since_version <= 7 or b.deprecated or a.deprecated:
                continue
            for name in set(a.attributes) ^ set(b.attributes):
                f = forms.get(name)
                if f is None:
                    wrong.append(f"attribute '{name}' changed with opset {b.since_version}")
    for name, f in forms.items():
        for v in OPSETS:
            s = schema_at(history, v)
            if s is not None and (v >= f["since"] and (f["until"] == 0 or v < f["until"])) != (name in s.attributes):
                wrong.append(f"opset {v}: attribute '{name}' {'exists' if name in s.attributes else 'does not exist'}")
            elif s is not None and f["input"] and name not in s.attributes and f["input"] >= len(s.inputs):
                wrong.append(f"opset {v}: there is no input {f['input']}")
    return wrong


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        found = schemas()
    except ImportError:
        print("1..0 # SKIP no Python package onnx: scripts/setup installs it")
        return 0
    text = subprocess.run(shlex.split(sys.argv[1]), check=True, capture_output=True, text=True).stdout
    records = [json.loads(line) for line in text.splitlines()]
    print(f"1..{len(records)}")
    failed = 0
    for n, r in enumerate(records, 1):
        wrong = differences(r, found[r["name"]]) if r["name"] in found else ["ONNX does not know it"]
        failed += bool(wrong)
        for w in wrong:
            print(f"# {w}")
        print(f"{'not ' if wrong else ''}ok {n} - {r['name']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
