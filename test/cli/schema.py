#!/usr/bin/env python3
"""Check a JSON report against a schema of schemas/. Standard library only.

usage: schema.py SCHEMA [REPORT]        without REPORT: stdin

The part of JSON Schema that these schemas use; a keyword that is not known is an error. Numbers that JSON has no text
for (NaN, Infinity) are refused. Prints what is wrong, one line each; exit status 1 if anything is.
"""
import json
import os
import sys

TYPES = {
    "object": lambda x: isinstance(x, dict),
    "array": lambda x: isinstance(x, list),
    "string": lambda x: isinstance(x, str),
    "integer": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "number": lambda x: isinstance(x, (int, float)) and not isinstance(x, bool),
    "boolean": lambda x: isinstance(x, bool),
    "null": lambda x: x is None,
}
PROSE = {"$schema", "$defs", "title", "description"}


class Checker:
    def __init__(self, path):
        self.path = path
        with open(path) as f:
            self.root = json.load(f)
        self.said = []

    def check(self, x, schema, at):
        for key, arg in schema.items():
            if key in PROSE or key in ("properties", "required", "additionalProperties"):
                continue
            rule = getattr(self, "rule_" + key.lstrip("$"), None)
            if not rule:
                raise ValueError(f"{self.path}: keyword '{key}' is not known here")
            rule(x, arg, at)
        if isinstance(x, dict):
            self.members(x, schema, at)

    def members(self, x, schema, at):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in x:
                self.said.append(f"{at}: no member '{name}'")
        for name, value in x.items():
            if name in known:
                self.check(value, known[name], f"{at}.{name}")
            elif schema.get("additionalProperties") is False:
                self.said.append(f"{at}: member '{name}' is not in the schema")
            elif isinstance(schema.get("additionalProperties"), dict):
                self.check(value, schema["additionalProperties"], f"{at}.{name}")

    def need(self, ok, at, x, what):
        if not ok:
            self.said.append(f"{at}: {json.dumps(x)[:60]} is not {what}")

    def rule_type(self, x, arg, at):
        names = [arg] if isinstance(arg, str) else arg
        self.need(any(TYPES[n](x) for n in names), at, x, " or ".join(names))

    def rule_const(self, x, arg, at):
        self.need(x == arg, at, x, json.dumps(arg))

    def rule_enum(self, x, arg, at):
        self.need(x in arg, at, x, f"one of {arg}")

    def rule_minimum(self, x, arg, at):
        self.need(not TYPES["number"](x) or x >= arg, at, x, f"at least {arg}")

    def rule_maximum(self, x, arg, at):
        self.need(not TYPES["number"](x) or x <= arg, at, x, f"at most {arg}")

    def rule_minItems(self, x, arg, at):
        self.need(not isinstance(x, list) or len(x) >= arg, at, x, f"{arg} items or more")

    def rule_maxItems(self, x, arg, at):
        self.need(not isinstance(x, list) or len(x) <= arg, at, x, f"{arg} items or fewer")

    def rule_items(self, x, arg, at):
        for i, item in enumerate(x if isinstance(x, list) else []):
            self.check(item, arg, f"{at}[{i}]")

    def rule_ref(self, x, arg, at):
        if arg.startswith("#/$defs/"):
            self.check(x, self.root["$defs"][arg[len("#/$defs/"):]], at)
            return
        file, _, part = arg.partition("#/$defs/")
        other = Checker(os.path.join(os.path.dirname(self.path), file))
        other.check(x, other.root["$defs"][part] if part else other.root, at)
        self.said += other.said


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    checker = Checker(sys.argv[1])
    with open(sys.argv[2]) if len(sys.argv) == 3 else sys.stdin as f:
        try:
            report = json.loads(f.read(), parse_constant=no_constant)
        except ValueError as e:
            print(f"not JSON: {e}")
            return 1
    checker.check(report, checker.root, "report")
    print(*checker.said, sep="\n", end="\n" if checker.said else "")
    return 1 if checker.said else 0


if __name__ == "__main__":
    sys.exit(main())
