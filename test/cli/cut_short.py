#!/usr/bin/env python3
"""Run a command and cut a file short while the command has it mapped.

usage: cut_short.py FILE COMMAND...

Waits until the command has mapped FILE and has computed for a while, and leaves one page of FILE. Prints what the command
says on stderr and ends with its status; with 99 where it has not ended after 30 seconds.
"""
import os
import subprocess
import sys
import time


def is_mapped(pid, path):
    try:
        with open(f"/proc/{pid}/maps") as f:
            return path in f.read()
    except OSError:
        return False


def main():
    path, command = os.path.realpath(sys.argv[1]), sys.argv[2:]
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not is_mapped(p.pid, path):
        time.sleep(0.001)
    time.sleep(0.5)
    os.truncate(path, 4096)
    try:
        _, said = p.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        p.kill()
        return 99
    sys.stderr.write(said)
    return p.returncode if p.returncode >= 0 else 128 - p.returncode


if __name__ == "__main__":
    sys.exit(main())
