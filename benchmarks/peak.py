"""Runs a command and writes its peak memory, in KiB, to a file.

usage: peak.py FILE COMMAND ...

Whoever starts a command by vfork, as subprocess does, hands its own peak down to it (the kernel notes that of the
memory which an exec leaves). A benchmark is large; this program is small.
"""

import os
import resource
import sys


def main() -> int:
    file, *command = sys.argv[1:]
    status = os.spawnvp(os.P_WAIT, command[0], command)
    with open(file, "w") as out:
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=out)
    return status


if __name__ == "__main__":
    sys.exit(main())
