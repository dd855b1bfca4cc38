import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])


def leak():
    library.leak_block(2003)


print("ready", flush=True)
sys.stdin.read(1)
leak()
print("done", flush=True)
sys.stdin.read(1)
