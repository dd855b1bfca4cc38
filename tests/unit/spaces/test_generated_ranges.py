"""Code made at run time: where it is mapped, what room its unwind rows take, and when its frames were seen."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tracer.binaries.open_binaries import END_OF_IDS, Binaries, OpenBinary
from tracer.elf.image import Image
from tracer.jit.seen_frames import SeenFrames
from tracer.model.records import FRAME_BINARY_SHIFT, FRAME_EXACT
from tracer.model.snapshot import Mapping
from tracer.procfs.maps import MapsEntry
from tracer.spaces.free_list import FreeList
from tracer.spaces.generated_ranges import GeneratedRanges, Placed

SPACE, CHILD = (10, 1), (11, 1)
EMPTY = b"\x7fELF\x02\x01" + bytes(58)


def image(number: int) -> OpenBinary:
    return OpenBinary(number, f"[jit] {number}", -1, Image(EMPTY), kind="jit")


def listed(ranges: GeneratedRanges, room: int = 1000, space: tuple[int, int] = SPACE) -> list[tuple[int, int, int]]:
    return sorted((m.start, m.end, binary.id) for m, binary, _ in ranges.listed(space, room))


def test_an_image_is_mapped_until_it_is_taken_back() -> None:
    ranges = GeneratedRanges()
    assert ranges.add(SPACE, 1, image(7), [(0x1000, 0x1100), (0x2000, 0x2100)], 0, ())
    assert ranges.add(SPACE, 2, image(8), [(0x1100, 0x1200)], 0, ())
    assert listed(ranges) == [(0x1000, 0x1100, 7), (0x1100, 0x1200, 8), (0x2000, 0x2100, 7)]
    assert ranges.remove(SPACE, 1) and not ranges.remove(SPACE, 1)
    assert listed(ranges) == [(0x1100, 0x1200, 8)]


def test_the_newest_image_at_an_address_is_the_right_one() -> None:
    ranges = GeneratedRanges()
    ranges.add(SPACE, 1, image(7), [(0x1000, 0x1100), (0x2000, 0x2100)], 0, ())
    ranges.add(SPACE, 2, image(8), [(0x10FF, 0x1200)], 0, ())
    assert listed(ranges) == [(0x10FF, 0x1200, 8)]


def test_no_image_takes_the_place_of_a_file() -> None:
    ranges = GeneratedRanges()
    file: Placed = (Mapping(*SPACE, 0x1000, 0x2000, 0, 3, True, 0), image(3), 0)
    assert not ranges.add(SPACE, 1, image(7), [(0x1FFF, 0x2100)], 0, [file])
    assert ranges.add(SPACE, 1, image(7), [(0x2000, 0x2100)], 0, [file])


def test_the_newest_are_listed_where_not_all_fit() -> None:
    ranges = GeneratedRanges()
    for number in range(5):
        ranges.add(SPACE, number, image(number), [(0x1000 * number, 0x1000 * number + 16)], 0, ())
    assert [number for _, _, number in listed(ranges, 2)] == [3, 4]
    assert ranges.unlisted == {0, 1, 2}


def test_an_image_whose_memory_is_gone_is_forgotten() -> None:
    def entry(start: int, end: int) -> MapsEntry:
        return MapsEntry(start, end, True, False, 0, "00:00", 0, "")

    ranges = GeneratedRanges()
    ranges.add(SPACE, 1, image(7), [(0x1800, 0x2800)], 0, ())
    ranges.add(SPACE, 2, image(8), [(0x3800, 0x4800)], 0, ())
    ranges.drop_unmapped(SPACE, [entry(0x1000, 0x2000), entry(0x2000, 0x3000), entry(0x3000, 0x4000)])
    assert listed(ranges) == [(0x1800, 0x2800, 7)]


def test_a_forked_child_has_a_copy() -> None:
    ranges = GeneratedRanges()
    ranges.add(SPACE, 1, image(7), [(0x1000, 0x1100)], 0, ())
    ranges.forked(SPACE, CHILD)
    ranges.remove(SPACE, 1)
    assert (listed(ranges), listed(ranges, space=CHILD)) == ([], [(0x1000, 0x1100, 7)])
    ranges.ended(CHILD)
    assert listed(ranges, space=CHILD) == []


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60))
def test_room_is_given_out_once(wishes: list[tuple[int, bool]]) -> None:
    extents, taken = FreeList(100), []
    for count, back in wishes:
        if back and taken:
            extents.give_back(*taken.pop(count % len(taken)))
            continue
        at = extents.take(count)
        if at is not None:
            taken.append((at, count))
        used = sorted(taken)
        assert all(a + n <= b for (a, n), (b, _) in pairwise(used))
        assert all(a >= 0 and a + n <= 100 for a, n in used)
    for extent in taken:
        extents.give_back(*extent)
    assert extents.take(100) == 0 and extents.take(1) is None


def test_ids_without_a_file_are_counted_down() -> None:
    binaries = Binaries()
    assert [binaries.take_id(), binaries.take_id()] == [END_OF_IDS - 1, END_OF_IDS - 2]
    assert [binaries.is_generated(n) for n in (END_OF_IDS, END_OF_IDS - 1, END_OF_IDS - 2, END_OF_IDS - 3, 1)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    while binaries.take_id() is not None:
        pass
    assert (binaries.lowest_generated, binaries.add_jit("[jit]", Image(EMPTY))) == (1, None)


def test_frames_are_noted_when_first_seen() -> None:
    binaries = Binaries()
    seen = SeenFrames(binaries)
    seen.note((1 << FRAME_BINARY_SHIFT | 5,), 0, 1)
    number = binaries.take_id() or 0
    keys = [number << FRAME_BINARY_SHIFT | address for address in (0x1000, 0x1010, 0x2000, FRAME_EXACT | 0x1008)]
    seen.note((1 << FRAME_BINARY_SHIFT | 5, keys[0], 0xFFFD << FRAME_BINARY_SHIFT), 10, 20)
    seen.note(tuple(keys), 20, 30)
    seen.note((), 30, 40)
    assert seen.first == {keys[0]: (10, 20), **dict.fromkeys(keys[1:], (20, 30))}
    assert (seen.fresh, seen.ids) == (keys, {number})
    assert sorted(seen.between(number, 0x1001, 0x1010)) == [keys[1], keys[3]]
    assert list(seen.between(number + 1, 0x1000, 0x3000)) == []
