"""Plays the commands of hone-tutorial(7), one after the other as a reader types them.

usage: tutorial.py PAGE.scd DIGITS      in an empty folder, with the tools on PATH; DIGITS is models/digits
       tutorial.py --blocks PAGE.scd    prints the commands

With --force where a command would write nothing on a machine that is too busy to measure, and a gate that says just that
(status 5) is passed, for what is tested is the page.
"""
import os
import re
import shutil
import subprocess
import sys

STEPS = 10
PICTURES = 120  # of each set: as many as the steps need to be right


def blocks(page):
    """(number of the step, command)"""
    step = 0
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for m in re.finditer(r"^# (\d+)\. |^```\n(.*?)^```\n", text, re.M | re.S):
        if m[1]:
            step = int(m[1])
        else:
            for line in m[2].replace("\\\\", "\\").splitlines():
                yield step, line


def prepare(digits):
    import media
    import numpy as np
    for part in "train", "test":
        data = np.load(f"{digits}/{part}.npz")
        np.savez(f"{part}.npz", image=data["image"][:PICTURES], label=data["label"][:PICTURES])
        media.digits(part, f"{part}.npz")
        os.remove(f"{part}.npz")
    label = sorted(os.listdir("test"))[7]
    shutil.copy(f"test/{label}/" + sorted(os.listdir(f"test/{label}"))[0], "photo.png")
    shutil.copy(f"{digits}/model.onnx", ".")
    with open("labels.txt", "w", encoding="utf-8") as f:
        f.writelines(f"digit {k}\n" for k in range(10))


def play(step, command):
    typed = command
    if re.match(r"hone-(quantize|prune|export) ", command):
        command += " --force" if "quantize" in command else ""
        command += " --no-progress"
    p = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    busy = p.returncode == 5 or "Error 5" in p.stderr
    if p.returncode != 0 and not busy:
        sys.exit(f"step {step}: status {p.returncode}: {typed}\n{p.stdout}{p.stderr}")
    return p.stdout + p.stderr


def main():
    if sys.argv[1] == "--blocks":
        print("\n".join(command for _, command in blocks(sys.argv[2])))
        return
    prepare(sys.argv[2])
    said = {}
    for step, command in blocks(sys.argv[1]):
        said[step] = said.get(step, "") + play(step, command)
    missing = set(range(1, STEPS + 1)) - set(said)
    if missing:
        sys.exit(f"no command in steps {sorted(missing)}")
    if "digit 7" not in said[3]:
        sys.exit(f"step 3 does not know its digit:\n{said[3]}")


main()
