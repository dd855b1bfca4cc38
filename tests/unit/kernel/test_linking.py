"""Programs of several functions: how they are put together, and what the kernel is told of them."""

from __future__ import annotations

import struct

from tracer.kernel.function_types import function_records, function_types
from tracer.kernel.linking import Linked, link, marks

MOVE, CALL, EXIT, LOAD = 0xB7, 0x85, 0x95, 0x18
FUNCTION = 4
NAMES = ["turn_one", "turn_two", "turn_three"]


def instruction(code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


def load(target: int, low: int, high: int = 0x7EF1EA4B, source: int = 0) -> bytes:
    return instruction(LOAD, target, source, value=low) + instruction(0, value=high)


RETURN = instruction(MOVE, 0) + instruction(EXIT)
LOOP = instruction(CALL, value=181)


def test_flags_give_each_function_a_constant() -> None:
    assert marks(["hold", "step"]) == ["-DTURN_hold=0x7ef1ea4b00000000ULL", "-DTURN_step=0x7ef1ea4b00000001ULL"]


def test_program_without_loops_is_left_as_it_is() -> None:
    code = load(1, 0x5EAF0000, 0) + load(2, 0, 0x7EF1EA4C) + RETURN
    assert link("main", {"main": code}, NAMES) == Linked(code, (("main", 0),))


def test_function_is_put_behind_the_program_once_and_found_from_each_place() -> None:
    main = load(2, 1) + LOOP + load(2, 1) + LOOP + RETURN
    linked = link("main", {"main": main, "turn_two": RETURN}, NAMES)
    to_instruction_8 = load(2, 7, 0, FUNCTION) + LOOP + load(2, 4, 0, FUNCTION) + LOOP
    assert linked.code == to_instruction_8 + RETURN + RETURN
    assert linked.functions == (("main", 0), ("turn_two", 8))


def test_functions_that_functions_call_come_too_and_may_lie_before_them() -> None:
    compiled = {
        "main": load(2, 2) + RETURN,
        "turn_one": load(3, 2) + RETURN,
        "turn_three": load(2, 0) + RETURN,
        "turn_two": RETURN,
    }
    linked = link("main", compiled, NAMES)
    assert linked.functions == (("main", 0), ("turn_three", 4), ("turn_one", 8))
    assert linked.code == (
        load(2, 3, 0, FUNCTION) + RETURN + load(2, 3, 0, FUNCTION) + RETURN + load(3, -5, 0, FUNCTION) + RETURN
    )


def test_marked_additions_become_exchanges() -> None:
    add, exchange = (instruction(0xDB, 1, 2, 0x7EF1), instruction(0xDB, 1, 2, 0, 0xE1))
    others = instruction(0xDB, 1, 2, 8) + instruction(0x7B, 1, 2, 0x7EF1)
    assert link("main", {"main": add + others + RETURN}, NAMES).code == exchange + others + RETURN


def test_types_of_functions() -> None:
    blob = function_types(["on_hold", "turn_hold"])
    magic, version, _, header, _, type_bytes, strings, string_bytes = struct.unpack_from("<HBBIIIII", blob)
    assert (magic, version, header, strings) == (0xEB9F, 1, 24, type_bytes)
    assert len(blob) == header + type_bytes + string_bytes
    texts = blob[header + strings :]
    assert (texts[0], texts[-1]) == (0, 0)
    functions = [struct.unpack_from("<III", blob, header + type_bytes - 12 * back) for back in (2, 1)]
    named = [(texts[name : texts.index(0, name)], info >> 24, info & 0xFFFF, of) for name, info, of in functions]
    assert named == [(b"on_hold", 12, 1, 4), (b"turn_hold", 12, 0, 5)]


def test_records_of_functions() -> None:
    assert function_records([0, 61, 90]) == struct.pack("<6I", 0, 6, 61, 7, 90, 8)
