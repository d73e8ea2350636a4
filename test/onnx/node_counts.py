#!/usr/bin/env python3
"""What README.md says of hone-export's nodes, held against what it does; prints TAP.

usage: node_counts.py TOOLS FOLDER...     folders of models: NAME/model.onnx

In the table under "How far it simplifies" the first number of a row is the model's nodes, and the bold one those that are
left, both with the nodes of sub-graphs. Rows of models that are in no folder are skipped.
"""
import os
import re
import subprocess
import sys
import tempfile

import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def count(graph):
    n = len(graph.node)
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                n += count(a.g)
    return n


def rows():
    """(model, nodes, nodes left)"""
    text = open(os.path.join(ROOT, "README.md")).read()
    table = text[text.index("## How far it simplifies"):]
    for row in re.findall(r"^\| ([\w.-]+) \| (\d+) \|.*?\*\*(\d+)\*\*", table[: table.index("\n## ", 1)], re.M):
        yield row[0], int(row[1]), int(row[2])


def main():
    tools, folders = sys.argv[1], sys.argv[2:]
    n = failed = 0
    with tempfile.TemporaryDirectory() as work:
        for name, before, after in rows():
            n += 1
            found = [p for p in (f"{f}/{name}/model.onnx" for f in folders) if os.path.exists(p)]
            if not found:
                print(f"ok {n} - nodes of {name} # SKIP it is in none of the folders")
                continue
            subprocess.run([f"{tools}/hone-export", "-q", "--no-check", found[0], "-o", f"{work}/o.onnx"], check=True)
            now = count(onnx.load(found[0]).graph), count(onnx.load(f"{work}/o.onnx").graph)
            failed += now != (before, after)
            print(f"{'ok' if now == (before, after) else 'not ok'} {n} - nodes of {name}")
            if now != (before, after):
                print(f"# README.md says that {before} become {after}; {now[0]} become {now[1]}")
    print(f"1..{n}")
    if n == 0:
        print("not ok - README.md has a table of nodes")
    return failed > 0 or n == 0


if __name__ == "__main__":
    sys.exit(main())
