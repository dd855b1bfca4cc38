"""Last holders: what the trace saw of freed blocks that held what is left, beside what is still to be read of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import begins_of, is_in
from tracer.model.hashing import Hashes
from tracer.model.holders import HOLDER_RECORD, HolderKind
from tracer.model.missing_puts import MissingPuts
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.snapshot import Records, Snapshot
from tracer.reachability.holder_rows import mixed

_WORD = ("pid", "generation", "target", "place", "offset", "released")


def with_last_holders(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with freed blocks among the holders of its counted objects, where who holds these is known:
    the blocks that no put of what they held went with."""
    read = snapshot.holders
    of_objects = read["target_kind"] == KIND_REFERENCE
    freed = MissingPuts(snapshot)
    is_left = freed.rows["serial"] != 0
    if not is_left.any() or not of_objects.any():
        return snapshot
    seen, of = _holders(freed.rows[is_left], read[of_objects])
    is_seen = of_objects & (read["kind"] == HolderKind.FREED_BLOCK) & is_in(_words(read), _words(seen))
    lack_put = freed.lack_put()[is_left][of]
    return replace(snapshot, holders=np.concatenate([read[~is_seen], seen[lack_put]]))


def _holders(freed: Records, known: Records) -> tuple[Records, npt.NDArray[np.int64]]:
    """Return HOLDER_RECORDs of those of the freed holders whose object `known` ones are of, and which these are."""
    keys = mixed(known["pid"], known["generation"], known["target"])
    order = np.argsort(keys, kind="stable")
    first = order[begins_of(keys[order])]
    wanted = mixed(freed["pid"], freed["generation"], freed["address"])
    place = np.minimum(np.searchsorted(keys[first], wanted), len(first) - 1)
    chosen = np.flatnonzero(keys[first][place] == wanted)
    rows = np.zeros(len(chosen), HOLDER_RECORD)
    for name in ("pid", "generation", "offset", "size", "count"):
        rows[name] = freed[name][chosen]
    rows["target"], rows["place"], rows["released"] = (freed[name][chosen] for name in ("address", "made", "freed"))
    rows["target_size"] = known["target_size"][first[place[chosen]]]
    rows["target_kind"], rows["kind"] = KIND_REFERENCE, HolderKind.FREED_BLOCK
    return rows, chosen


def _words(rows: Records) -> Hashes:
    return mixed(*(rows[name] for name in _WORD))
