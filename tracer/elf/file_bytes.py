"""The bytes of a file that others may change: read, never mapped, since whoever reads a mapping behind the end of a
file that was made shorter is killed."""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from typing import overload

_BLOCK = 1 << 14
_SHORT = 1 << 12
_KEPT_BYTES = 48 << 20


class _Kept:
    """What was read last of all files, up to so many bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit, self._bytes = limit_bytes, 0
        self._parts: OrderedDict[tuple[int, int, int], memoryview] = OrderedDict()

    def get(self, key: tuple[int, int, int]) -> memoryview | None:
        found = self._parts.get(key)
        if found is not None:
            self._parts.move_to_end(key)
        return found

    def put(self, key: tuple[int, int, int], part: memoryview) -> None:
        if len(part) > self._limit // 2 or key in self._parts:
            return
        self._parts[key] = part
        self._bytes += len(part)
        while self._bytes > self._limit:
            self._bytes -= len(self._parts.popitem(last=False)[1])

    def drop(self, number: int) -> None:
        for key in [key for key in self._parts if key[0] == number]:
            self._bytes -= len(self._parts.pop(key))


_KEPT = _Kept(_KEPT_BYTES)
_NUMBERS = itertools.count()


class FileBytes:
    """A file as a sequence of bytes, as long as it was when it was opened.

    Each slice is read when it is asked for. What the file no longer has reads as zeros, as a hole in it would: every
    reader can do with damaged bytes.
    """

    def __init__(self, fd: int) -> None:
        """Take over a descriptor; raises OSError."""
        self._fd, self._size, self._number = fd, os.fstat(fd).st_size, next(_NUMBERS)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, part: int) -> int: ...

    @overload
    def __getitem__(self, part: slice) -> memoryview: ...

    def __getitem__(self, part: int | slice) -> int | memoryview:
        if isinstance(part, int):
            return self[part : part + 1][0]
        start, stop, _ = part.indices(self._size)
        if stop - start > _SHORT:
            return self._read(start, stop)
        first = start & -_BLOCK
        if stop <= first + _BLOCK:
            return self._read(first, min(first + _BLOCK, self._size))[start - first : max(start, stop) - first]
        middle = first + _BLOCK
        return memoryview(bytes(self[start:middle]) + bytes(self[middle:stop]))

    def _read(self, start: int, stop: int) -> memoryview:
        key = (self._number, start, stop)
        found = _KEPT.get(key)
        if found is None:
            data = bytearray(stop - start)
            found = memoryview(data)
            at = 0
            while self._fd >= 0 and at < len(data):
                try:
                    got = os.preadv(self._fd, [found[at:]], start + at)
                except OSError:
                    break
                if not got:
                    break
                at += got
            found = found.toreadonly()
            _KEPT.put(key, found)
        return found

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        _KEPT.drop(self._number)
