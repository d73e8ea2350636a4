#!/usr/bin/env python3
"""Whether hone-distill, killed at a random moment and gone on with, writes what an uninterrupted run writes.

usage: resume.py TOOLS [--times 10] [--seed 0] [-- OPTION...]

OPTIONs are hone-distill's (default: the digits model from new weights, 6 epochs, averages of the weights, shifted images). An
uninterrupted run says how long one takes. Then, as often as asked, a run that writes its checkpoint each few steps is killed
(SIGKILL) behind a random part of that time, once more while it goes on, and goes on to its end. Prints what was done in each, and
exits with 1 where a file differs.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = ["--student", f"{ROOT}/models/digits/model.onnx", "--data", f"{ROOT}/models/digits/train.npz", "--init", "random:1",
          "--epochs", "6", "--ema", "0.99", "--augment", "shift:1"]


def killed(run, delay):
    """TRUE: it was still at work."""
    p = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        p.wait(delay)
        return False
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return True


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("tools")
    ap.add_argument("--times", type=int, default=10)
    ap.add_argument("--seed", type=int, default=0)
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, options = ap.parse_args(sys.argv[1:at]), sys.argv[at + 1:] or DIGITS
    rng, same = random.Random(args.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, out, whole = f"{folder}/c.hone", f"{folder}/out.onnx", f"{folder}/whole.onnx"
        run = [f"{args.tools}/hone-distill", *options, "-q", "--force"]
        start = time.monotonic()
        subprocess.run([*run, "-o", whole], check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - start
        goes_on = [*run, "-o", out, "--checkpoint-every", "3", "--checkpoint-file", checkpoint, "--resume", checkpoint]
        for i in range(args.times):
            for path in (checkpoint, out):
                if os.path.exists(path):
                    os.remove(path)
            delays = [rng.uniform(0.1, 1.1) * took, rng.uniform(0.1, 0.8) * took]
            kills = sum(killed(goes_on, delay) for delay in delays)
            subprocess.run(goes_on, check=True, stdout=subprocess.DEVNULL)
            with open(out, "rb") as a, open(whole, "rb") as b:
                equal = a.read() == b.read()
            same += equal
            print(f"{i + 1}: killed {kills} times, {'same bytes' if equal else 'OTHER BYTES'}", flush=True)
    print(f"{same} of {args.times} the same; a run takes {took:.1f} s")
    sys.exit(0 if same == args.times else 1)


if __name__ == "__main__":
    main()
