"""Whether an object that ended took as many references per slot as it gave back: what proves the slots of a program."""

from __future__ import annotations

from collections.abc import Sequence

from program import Calls, Program
from recordings import Run
from sites import KEPT

from tracer.analysis.lives import Life


def lacking(program: Program, run: Run, kind: str, life: Life) -> list[str]:
    """Return what does not come out: gets whose slots no put is left for, and the puts left; nothing where all do."""
    given = [
        program.slots.put_slot(kind, run.calls(stack))
        for stack, count in zip(life.puts, life.given.tolist(), strict=True)
        for _ in range(round(count))
    ]
    taken = [
        (sorted(program.slots.get_slots(kind, run.calls(stack), row == 0)), stack)
        for row, (stack, count) in enumerate(zip(life.gets, life.taken.tolist(), strict=True))
        for _ in range(round(count))
    ]
    pairs = pair_by_slot([slots for slots, _ in taken], given)
    answered = set(pairs.values())
    unanswered = [
        f"got {' or '.join(slots)} at {_said(run.calls(stack))}"
        for get, (slots, stack) in enumerate(taken)
        if get not in answered
    ]
    left = {slot for put, slot in enumerate(given) if put not in pairs}
    places = [stack for stack in life.puts if program.slots.put_slot(kind, run.calls(stack)) in left]
    puts = map(run.calls, places)
    return unanswered + [f"put {program.slots.put_slot(kind, calls)} at {_said(calls)}" for calls in puts]


def pair_by_slot(taken: Sequence[Sequence[str]], given: Sequence[str]) -> dict[int, int]:
    """Pair as many gets, each of which has one of some slots, with puts as can be; return the get of each put."""
    pairs: dict[int, int] = {}

    def pair(get: int, seen: set[str]) -> bool:
        for slot in taken[get]:
            if slot in seen:
                continue
            seen.add(slot)
            puts = [put for put, emptied in enumerate(given) if emptied == slot]
            for put in sorted(puts, key=pairs.__contains__):
                if put not in pairs or pair(pairs[put], seen):
                    pairs[put] = get
                    return True
        return False

    for get in range(len(taken)):
        pair(get, set())
    return pairs


def _said(calls: Calls) -> str:
    return " < ".join(f"{function}:{line}" for function, line in calls[:KEPT])
