#!/usr/bin/env python3
"""Check that manual pages and --help say the same; prints TAP.

usage: man.py TOOLS MAN        TOOLS: folder of the built tools; MAN: folder of the pages' sources

Each tool hone-VERB has a page hone-VERB.1.scd. Every option of its --help-all is on that page, or, being common to many
tools, on hone.1.scd or hone-data.7.scd; every option that its page defines (a line that starts with it in bold) is in --help; short names
agree. No line of --help-all is wider than 80 columns, and scdoc accepts every page.
"""
import glob
import os
import re
import shutil
import subprocess
import sys


def options_of_help(text):
    return {m[2]: m[1] or "" for m in re.finditer(r"^ +(?:-(\w), )?--([a-z][a-z0-9-]*)", text, re.M)}


def options_of_page(path):
    with open(path) as f:
        text = f.read()
    found = {}
    for line in text.splitlines():
        if line.startswith("*-"):
            head = line.replace("\\", "")
            short = re.search(r"\*-(\w)\b", head)
            for name in re.findall(r"--([a-z][a-z0-9-]*)", head):
                found[name] = short[1] if short else ""
    return found


def complaints(tool, man):
    page = os.path.join(man, os.path.basename(tool) + ".1.scd")
    if not os.path.exists(page):
        return [f"there is no {page}"]
    p = subprocess.run([tool, "--help-all"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    if p.returncode:
        return [f"--help-all ends with status {p.returncode}"]
    said = [f"--help-all is wider than 80 columns: {s}" for s in p.stdout.splitlines() if len(s) > 80]
    told, own = options_of_help(p.stdout), options_of_page(page)
    common = {}
    for shared in ("hone.1.scd", "hone-data.7.scd"):
        if os.path.exists(os.path.join(man, shared)):
            common.update(options_of_page(os.path.join(man, shared)))
    for name in sorted(told):
        if name not in own and name not in common:
            said.append(f"--{name} is in --help only")
        elif own.get(name, common.get(name)) != told[name]:
            said.append(f"--{name}: the short name is '{told[name]}' in --help, not so in the manual page")
    return said + [f"--{name} is in the manual page only" for name in sorted(own) if name not in told]


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    tools = sorted(glob.glob(os.path.join(sys.argv[1], "hone-*")))
    tools = [t for t in tools if os.access(t, os.X_OK) and os.path.isfile(t)]
    pages = sorted(glob.glob(os.path.join(sys.argv[2], "*.scd")))
    results = [(f"man: {os.path.basename(t)}", complaints(t, sys.argv[2])) for t in tools]
    if shutil.which("scdoc"):
        for page in pages:
            with open(page, "rb") as f:
                p = subprocess.run(["scdoc"], stdin=f, capture_output=True, text=True)
            results.append((f"man: scdoc {os.path.basename(page)}", p.stderr.splitlines()[:1] if p.returncode else []))
    print(f"1..{len(results)}")
    for n, (title, said) in enumerate(results, 1):
        print(f"{'not ok' if said else 'ok'} {n} - {title}")
        for s in said:
            print(f"# {s}")
    return 1 if any(said for _, said in results) or not tools else 0


if __name__ == "__main__":
    sys.exit(main())
