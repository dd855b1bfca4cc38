import ctypes
import os
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
library.leak_block.argtypes = [ctypes.c_long]
callback = ctypes.CFUNCTYPE(None, ctypes.c_long)


class Loader:
    def load(self, size):
        return library.leak_block(
            size
        )


def each(size):
    return list(map(Loader().load, [size] * 3))


def generated(size):
    for loader in (Loader() for _ in range(1)):
        yield loader.load(size)


def worker():
    for _ in range(5):
        each(1009)


def called(size):
    library.leak_block(size)


def größe(size):
    library.leak_block(size)


def recycled():
    for blank in range(31):
        code = compile("\n" * blank + "leak(5003)", f"<made {blank}>", "exec")
        exec(code, {"leak": library.leak_block})
        del code


def deep(levels, size):
    if levels:
        deep(levels - 1, size)
    else:
        library.leak_block(size)


class Made:
    def __init__(self, size):
        library.leak_block(size)


def made(size):
    for _ in range(30):
        Made(size)


each(2003)
threads = [threading.Thread(target=worker) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.call_back(callback(called), 3001)
for _ in generated(4001):
    pass
größe(6007)
recycled()
made(9011)
deep(150, 7001)
if os.fork() == 0:
    library.leak_block(8009)
    os._exit(0)
os.wait()
