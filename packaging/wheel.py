#!/usr/bin/env python3
"""A wheel out of an installed tree with its libraries (bundle.py); prints its path.

usage: wheel.py TREE VERSION OUT-FOLDER

The tree becomes what lies beside an environment's Python: bin/hone-run, lib/libhone.so.0, share/man, ... The tools are the
programs themselves, started as fast as anywhere. The tag says the oldest C library that all of it runs with.
"""
import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: hone
Version: {version}
Summary: command-line tools for ONNX models: inspect, run, bench, profile, export, prune, quantize, distill, diff
License: MIT
Classifier: Environment :: Console
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""


def glibc_of(path):
    """(2, 36): the newest version of the C library that a program or library asks for"""
    out = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"\bGLIBC_(2\.\d+)", out)]
    return max(versions, default=(2, 17))


def files_of(tree):
    for folder, _, names in sorted(os.walk(tree)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield os.path.relpath(path, tree), path


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def main(tree, version, out):
    dist = f"hone-{version}.dist-info"
    # a link is a copy in a wheel: one is enough, under the name that programs ask for
    tree_files = [(name, path) for name, path in files_of(tree) if not re.search(r"libhone\.so(\.\d+\.\d+.*)?$", name)]
    newest = max(glibc_of(path) for _, path in tree_files if is_elf(path))
    tag = "py3-none-manylinux_%d_%d_x86_64" % newest
    with open(os.path.join(os.path.dirname(__file__), "..", "README.md"), encoding="utf-8") as f:
        readme = f.read().split("\n## How fast")[0]
    members = [(f"hone-{version}.data/data/{name}", open(path, "rb").read(), os.stat(path).st_mode & stat.S_IXUSR)
               for name, path in tree_files]
    members += [
        (f"hone-{version}.data/data/lib/libhone.so", b"INPUT(libhone.so.0)\n", 0),  # what a linker takes for a link
        (f"{dist}/METADATA", METADATA.format(version=version, readme=readme).encode(), 0),
        (f"{dist}/WHEEL", f"Wheel-Version: 1.0\nGenerator: hone {version}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0),
    ]
    os.makedirs(out, exist_ok=True)
    target = os.path.join(out, f"hone-{version}-{tag}.whl")
    record = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data, executable in members:
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            z.writestr(info, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        record.append(f"{dist}/RECORD,,")
        z.writestr(zipfile.ZipInfo(f"{dist}/RECORD", date_time=(1980, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")
    print(target)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
