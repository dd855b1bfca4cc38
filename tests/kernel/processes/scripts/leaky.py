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


def made_codes(size, word):
    """Yield ten code objects, twice; the latter take places of the former, which have ended by then."""
    places = set()
    for first in (0, 10):
        codes = [compile("\n" * n + f"leak({size})", f"<{word} {n}>", "exec") for n in range(first, first + 10)]
        places.update(map(id, codes))
        while codes:
            yield codes.pop(0)
    assert len(places) < 20


def recycled():
    for code in made_codes(5003, "made"):
        exec(code, {"leak": library.leak_block})


def recycled_by_another():
    """A thread executes what this one makes, and takes away."""
    box, ready, done = [None], threading.Semaphore(0), threading.Semaphore(0)

    def execute():
        while not ready.acquire() or box[0]:
            exec(box[0], {"leak": library.leak_block})
            done.release()

    thread = threading.Thread(target=execute)
    thread.start()
    for box[0] in made_codes(5009, "sent"):
        ready.release()
        done.acquire()
        box[0] = None
    ready.release()
    thread.join()


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
recycled_by_another()
made(9011)
deep(150, 7001)
if os.fork() == 0:
    library.leak_block(8009)
    os._exit(0)
os.wait()
