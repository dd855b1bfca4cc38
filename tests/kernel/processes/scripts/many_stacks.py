"""Makes a block on another stack each time, for so many seconds."""

import sys
import time


def branch(depth, path):
    if not depth:
        return bytearray(600)
    if path & 1:
        return branch(depth - 1, path >> 1)
    return branch(depth - 1, path >> 1)


path, end = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    branch(60, path)
    path += 1
print(path)
