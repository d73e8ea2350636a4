#!/usr/bin/env python3
"""Run a command over the models of test/onnx/bad_models.py. Standard library only.

usage: bad.py [--may-pass] DIR COMMAND...        DIR: what bad_models.py made; '{model}' in COMMAND is a model's path

Each has to end within 20 seconds and 4 GB of address space (the latter not under a sanitizer) with one of the statuses
that index.json allows, and where that is not 0, with one sentence on stderr that names what index.json says. Prints
what went wrong; exit status 1 if anything did. --may-pass: a command that need not see what is wrong with a model, or finds
that it cannot be run (status 4).
"""
import json
import os
import resource
import subprocess
import sys

SECONDS = 20
ADDRESS_SPACE = 4 << 30


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def sanitized(program):
    """address sanitizers reserve terabytes"""
    p = subprocess.run([program, "--version"], preexec_fn=limit, capture_output=True)
    return p.returncode != 0


def complaint(case, command, limits, may_pass):
    try:
        p = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return f"more than {SECONDS} s"
    said = p.stderr.decode("utf-8", "replace")
    if p.returncode == 0 and may_pass:
        return ""
    if p.returncode not in case["status"] + [4] * may_pass:
        return f"status {p.returncode} instead of {case['status']}: {said[:300]}"
    if p.returncode == 0:
        return ""
    if said.count("\n") != 1 or not said.startswith("hone") or said.rstrip("\n").endswith("."):
        return f"not one sentence: {said[:300]}"
    if case["names"] and not any(name in said for name in case["names"]):
        return f"names none of {case['names']}: {said[:300]}"
    return ""


def main():
    may_pass = sys.argv[1] == "--may-pass"
    folder, *command = sys.argv[1 + may_pass:]
    with open(os.path.join(folder, "index.json")) as f:
        cases = json.load(f)
    limits = None if sanitized(command[0]) else limit
    wrong = 0
    for case in cases:
        path = os.path.join(folder, case["file"])
        said = complaint(case, [path if word == "{model}" else word for word in command], limits, may_pass)
        if said:
            wrong += 1
            print(f"{case['file']} ({case['what']}): {said.strip()}")
    print(f"{len(cases) - wrong} of {len(cases)} as they should be")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
