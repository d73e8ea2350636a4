#!/usr/bin/env python3
"""What a command prints to a terminal so many columns wide, as it stands there when it has ended. Standard library only.

usage: terminal.py COLUMNS COMMAND...     the command's status
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def main():
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(sys.argv[1]), 0, 0))
    p = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
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
    for line in told.decode(errors="replace").replace("\r\n", "\n").split("\n"):
        print(line.split("\r")[-1])  # a progress bar goes back to where the line begins
    return p.wait(timeout=60)


if __name__ == "__main__":
    sys.exit(main())
