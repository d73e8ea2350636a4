#!/usr/bin/env python3
"""What a command prints to a terminal so many columns wide, as it stands there when it has ended. Standard library only.

usage: terminal.py COLUMNS COMMAND...     the command's status; on stderr each state of its progress bar, a line each

The terminal is the command's own (its controlling one), as a shell's is: only then there is a bar.
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

ERASE = "\x1b[K"  # to the end of the line


def stands(line):
    """What is left of a line whose parts were written over each other"""
    cells = []
    for part in line.split("\r"):
        at = 0
        for text in re.split(f"({re.escape(ERASE)})", part):
            if text == ERASE:
                del cells[at:]
            else:
                cells[at:at + len(text)] = text
                at += len(text)
    return "".join(cells)


def own(terminal):
    def begin():
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    return begin


def main():
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(sys.argv[1]), 0, 0))
    p = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, preexec_fn=own(theirs))
    os.close(theirs)
    told = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        told += more
    text = told.decode(errors="replace").replace("\r\n", "\n")
    for bar in re.findall(rf"\r([^\r\n]+?){re.escape(ERASE)}", text):
        print(bar, file=sys.stderr)
    for line in text.split("\n"):
        print(stands(line))
    return p.wait(timeout=60)


if __name__ == "__main__":
    sys.exit(main())
