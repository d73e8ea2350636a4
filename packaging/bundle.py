#!/usr/bin/env python3
"""The shared libraries that an installed tree needs, and the licences of their packages, into the tree.

usage: bundle.py TREE

TREE/lib/libhone.so.0 is built with -Dbundle=true: it looks into TREE/lib/hone first. What the C library consists of stays
the system's; so does oneDNN, which is a package of its own. Prints bytes of the tree without and of the bundle.
"""
import os
import re
import shutil
import subprocess
import sys

# of the C library: the one thing that has to be the system's
SYSTEM = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|nsl|anl))\.so")
# opened when the first file wants them (src/data/codecs.h)
OPENED = {"libpng16.so.16", "libjpeg.so.62", "libsndfile.so.1"}


def needed(path):
    """(name, real path) of all libraries that one needs, those of others included"""
    out = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for name, where in re.findall(r"^\s*(\S+) => (.+?) \(0x", out, re.M):
        yield name, where
    for name in re.findall(r"^\s*(\S+) => not found", out, re.M):
        sys.exit(f"bundle: {path} needs {name}, which is not there")


def system_library(name):
    out = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    m = re.search(rf"^\s*{re.escape(name)} .*x86-64.* => (\S+)$", out, re.M)
    return m and m.group(1)


def licence(path):
    """(package, its copyright file) of Debian's file at path"""
    for p in (path, os.path.realpath(path), re.sub(r"^/usr", "", os.path.realpath(path))):
        said = subprocess.run(["dpkg", "-S", p], capture_output=True, text=True)
        if said.returncode == 0:
            package = said.stdout.split(":")[0]
            return package, f"/usr/share/doc/{package}/copyright"
    sys.exit(f"bundle: no package says under what licence {path} is")


def size(folder):
    return sum(os.lstat(os.path.join(d, f)).st_size for d, _, files in os.walk(folder) for f in files)


def main(tree):
    own = os.path.join(tree, "lib", "hone")
    licences = os.path.join(tree, "share", "doc", "hone", "licenses")
    alone = size(tree)
    patchelf = shutil.which("patchelf")
    if not patchelf:
        print("bundle: without patchelf it runs as well, but auditwheel calls a wheel of it linux_x86_64", file=sys.stderr)
    os.makedirs(own, exist_ok=True)
    found = dict(needed(os.path.join(tree, "lib", "libhone.so.0")))
    for name in OPENED:
        where = system_library(name)
        if where:
            found[name] = where
            found.update(needed(where))
    for name, where in sorted(found.items()):
        if SYSTEM.match(name) or where.startswith(os.path.abspath(tree)):
            continue
        target = os.path.join(own, name)
        shutil.copyfile(os.path.realpath(where), target)
        if patchelf:  # they find each other through libhone.so's path, too, but auditwheel does not follow that
            subprocess.run([patchelf, "--set-rpath", "$ORIGIN", target], check=True)
        package, text = licence(where)
        os.makedirs(os.path.join(licences, package), exist_ok=True)
        shutil.copyfile(text, os.path.join(licences, package, "copyright"))
    print(f"hone {alone}")
    print(f"bundle {size(tree) - alone}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
