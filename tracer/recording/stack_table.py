"""Stacks as bytes: ids, statuses, depths, then all frames in one row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np

from tracer.files.json_codec import Malformed
from tracer.model.records import INTERPRETER_FRAMES, MAX_FRAMES, StackStatus
from tracer.model.snapshot import Stack

_HEAD = np.dtype([("id", "<u8"), ("status", "<u2"), ("depth", "<u2")])
_COUNT_BYTES = 4
_DEEPEST = MAX_FRAMES + INTERPRETER_FRAMES


def encode_stacks(stacks: Mapping[int, Stack]) -> bytes:
    """Return stacks as a payload; a frame key is stored as its difference to the one before."""
    heads = np.zeros(len(stacks), _HEAD)
    heads["id"] = np.fromiter(stacks, np.uint64, len(stacks))
    heads["status"] = [stack.status for stack in stacks.values()]
    heads["depth"] = [len(stack.frames) for stack in stacks.values()]
    keys = np.fromiter(chain.from_iterable([stack.frames for stack in stacks.values()]), np.uint64)
    keys[1:] -= keys[:-1].copy()
    columns = [heads[name].tobytes() for name in _HEAD.names or ()]
    return b"".join([len(stacks).to_bytes(_COUNT_BYTES, "little"), *columns, keys.tobytes()])


def decode_stacks(payload: bytes) -> dict[int, Stack]:
    """Return the stacks of one chunk. Equal frame keys are one number in memory. Raises Malformed."""
    count, at = int.from_bytes(payload[:_COUNT_BYTES], "little"), _COUNT_BYTES
    if len(payload) < _COUNT_BYTES + count * _HEAD.itemsize or (len(payload) - at - count * _HEAD.itemsize) % 8:
        raise Malformed("stacks")
    columns = []
    for name in _HEAD.names or ():
        columns.append(np.frombuffer(payload, _HEAD[name], count, at))
        at += count * _HEAD[name].itemsize
    ids, statuses, depths = columns
    keys = np.cumsum(np.frombuffer(payload, np.uint64, offset=at), dtype=np.uint64)
    ends = np.cumsum(depths, dtype=np.int64)
    if int(ends[-1] if count else 0) != len(keys) or (depths > _DEEPEST).any() or (statuses >= len(_STATUS)).any():
        raise Malformed("stacks")
    distinct, places = np.unique(keys, return_inverse=True)
    pool, flat = distinct.tolist(), places.tolist()
    starts = (ends - depths).tolist()
    return {
        id_: Stack(tuple([pool[place] for place in flat[start:end]]), _STATUS[status])
        for id_, status, start, end in zip(ids.tolist(), statuses.tolist(), starts, ends.tolist(), strict=True)
    }


_STATUS = tuple(StackStatus)
