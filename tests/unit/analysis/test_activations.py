"""Pairs within one call of a function, and what is judged with them."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import Simulation

from tracer.analysis.activations import Activations, without
from tracer.analysis.analysis import analyse
from tracer.analysis.function_words import handing_by_name
from tracer.analysis.habits import MOST_PLACES, PlacedLife, learn
from tracer.analysis.lives import Life, life
from tracer.analysis.reference_sites import Path
from tracer.model.findings import Leak
from tracer.model.operations import Operation

GET, PUT = int(Operation.GET), int(Operation.PUT)
MAKE, DROP = "main:9 load:5 clone:3", "main:9 load:7 put:2"
LINK, UNLINK = "main:9 load:6 insert:4", "main:20 purge:8 put:2"
FIND, FOUND = "main:12 serve:5 lookup:30 find:33", "main:12 serve:9 put:2"


def path(text: str) -> Path:
    """Return "main:1 f:2" as a path, leaf first."""
    frames = [frame.split(":") for frame in reversed(text.split())]
    return tuple((function, int(line)) for function, line in frames)


def local(birth: str, *steps: str, initial: int = 1) -> list[list[float]]:
    """Return the pairs within one call of a life. `steps`: "+ get" or "- put", the leaf of a put being a wrapper."""
    texts = [sorted({step[2:] for step in steps if step[0] == sign}) for sign in "+-"]
    stacks = {text: number for number, text in enumerate((birth, *texts[0], *texts[1]), start=1)}
    one = life(
        np.array([GET if step[0] == "+" else PUT for step in steps]), np.array([stacks[step[2:]] for step in steps]),
        initial, 1,
    )  # fmt: skip
    gets = {stacks[text]: path(text) for text in (birth, *texts[0])}
    found = Activations(gets, {stacks[text]: path(text)[1:] for text in texts[1]})
    found.learn([one])
    pairs: list[list[float]] = found.local(one).tolist()
    assert without(one, np.array(pairs)).remaining == one.remaining
    return pairs


def test_what_a_function_was_handed_up_it_gives_back_itself() -> None:
    assert local(MAKE, "+ " + LINK, "- " + DROP) == [[1], [0]]


def test_a_line_further_back_is_another_call() -> None:
    assert local("main:9 load:8 clone:3", "- " + DROP) == [[0]]


def test_another_caller_is_another_call() -> None:
    assert local("main:10 load:5 clone:3", "- " + DROP) == [[0]]


def test_the_function_itself_comes_before_what_it_called() -> None:
    assert local("main:1 new:2", "+ main:9 load:4 keep:2", "+ main:9 load:5", "- " + DROP) == [[0], [0], [1]]


def test_of_two_handed_up_by_one_call_the_other_was_kept_there() -> None:
    made, kept = "main:9 load:5 findnew:3 new:1", "+ main:9 load:5 findnew:8"
    found, given = "+ main:9 load:5 findnew:2", "- " + DROP
    assert local(made, kept, given) == [[1], [0]]
    # The next call is handed one that was there.
    assert local(made, kept, given, found, given) == [[1], [1], [0]]


def test_a_get_that_nothing_is_known_of_is_no_part_of_a_call() -> None:
    stacks = {"made": 1, "unknown": 2, "put": 3}
    one = life(np.array([GET, PUT]), np.array([stacks["unknown"], stacks["put"]]), 1, stacks["made"])
    found = Activations({stacks["made"]: path("main:9 load:5 new:3")}, {stacks["put"]: path("main:9 load:7")})
    found.learn([])
    assert found.local(one).tolist() == [[1], [0]]


def simulated(times: int, *steps: str, made: Simulation) -> None:
    for _ in range(times):
        thing = made.create(MAKE)
        for step in steps:
            (made.get if step[0] == "+" else made.put)(thing, step[2:])


def only_leak(made: Simulation) -> Leak:
    (leak,) = analyse(made.snapshot(), made.code.symbols).leaks
    return leak


@pytest.mark.parametrize(
    ("missing", "accused"), [(UNLINK, "insert:4"), (DROP, "clone:3"), (FOUND, "find:33")], ids=["kept", "made", "found"]
)
def test_the_missing_put_of_each_kind_is_told_without_a_healthy_twin(missing: str, accused: str) -> None:
    made = Simulation()
    simulated(7, "+ " + LINK, "- " + DROP, "+ main:12 serve:6 find:33", "- " + FOUND, "- " + UNLINK, made=made)
    steps = ("+ " + LINK, "- " + DROP, "+ " + FIND, "- " + FOUND, "- " + UNLINK)
    simulated(5, *(step for step in steps if step[2:] != missing), made=made)
    first = only_leak(made).unpaired[0]
    assert (f"{first.stack[0].function}:{first.stack[0].line}", first.count) == (accused, 5)


def test_names_are_a_guess_to_start_from() -> None:
    assert handing_by_name("cache__find@app", birth=False) > 0.5 > handing_by_name("cache_insert@app", birth=False)
    assert handing_by_name("FindOrNull@app", birth=False) > 0.5
    assert handing_by_name("serve@app", birth=False) == 0.5 < handing_by_name("serve@app", birth=True)


def test_what_a_constructor_made_belongs_to_whoever_called_it() -> None:
    # One caller of a constructor stores what it made; another gives it back itself, and took one more in between.
    made = Simulation()
    simulated_from(made, 200, "main:9 store:4 new:2", "- main:30 clear:3 put:2")
    simulated_from(made, 5, "main:9 answer:5 new:2", "+ main:9 answer:6 send:4", "- main:9 answer:7 put:2")
    leak = only_leak(made)
    assert [frame.function for frame in leak.unpaired[0].stack] == ["send", "answer", "main"]


def test_a_put_of_what_came_from_elsewhere_is_not_of_what_the_same_call_took() -> None:
    received, taken, put = 1, 2, 3
    passed_on = life(np.array([PUT]), np.array([put]), 1, received, objects=20)
    kept = life(np.array([GET, PUT]), np.array([taken, put]), 1, received, objects=9)
    gets = {received: path("main:5 read:3"), taken: path("main:9 dispatch:5 serve:8 activate:4")}
    found = Activations(gets, {put: path("main:9 dispatch:7")})
    found.learn([passed_on, kept])
    assert found.local(kept).tolist() == [[0], [0]]


def test_places_whose_references_are_all_settled_do_not_make_a_life_too_long_to_learn_from() -> None:
    settled = MOST_PLACES + 1
    gets, puts = tuple(range(settled + 2)), tuple(range(100, 100 + settled + 2))
    left = np.array([0.0] * settled + [1.0, 1.0])
    possible = np.zeros((len(gets), len(puts)), dtype=bool)
    possible[-2, -1] = possible[-1, -2] = True
    one = PlacedLife(Life(gets, left, puts, left, possible), gets, puts)
    shares = learn([one], lambda pair: 1.0, {}).given
    assert shares[gets[-1], puts[-2]] > 0.9 > 0.1 > shares[gets[-1], puts[-1]]


def test_a_get_in_a_constructor_of_something_else_is_kept_there() -> None:
    assert handing_by_name("connection_new_for_transport", birth=False) == 0.5
    assert handing_by_name("variant_new_from_bytes", birth=False) == 0.5
    assert handing_by_name("thread__findnew", birth=False) > 0.5
    assert handing_by_name("transport_new", birth=True) > 0.5


def simulated_from(made: Simulation, times: int, birth: str, *steps: str) -> None:
    for _ in range(times):
        thing = made.create(birth)
        for step in steps:
            (made.get if step[0] == "+" else made.put)(thing, step[2:])
