"""JSON written piece by piece is what Python's own encoder writes at once."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from full_snapshot import full_snapshot
from hand_made import server
from hypothesis import given
from hypothesis import strategies as st

from tracer.analysis import analyse
from tracer.model.findings import Findings, Holder
from tracer.model.frames import Frame
from tracer.report import json_text
from tracer.report.json_report import DESCRIBED, ON_ONE_LINE, document, frame_document, write_json
from tracer.report.json_text import JsonText

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def expected(document: object) -> str:
    """Return a document as json.dump writes it, but for frames."""
    frames: list[str] = []

    def kept_apart(value: object) -> object:
        if isinstance(value, Frame):
            frames.append(json.dumps(frame_document(value)))
            return f"frame {len(frames)} of them"
        if isinstance(value, Holder):
            return kept_apart(DESCRIBED[Holder](value))
        if isinstance(value, Mapping):
            return {key: kept_apart(member) for key, member in value.items()}
        if isinstance(value, list | tuple | Iterator):
            return [kept_apart(member) for member in value]
        return value

    text = json.dumps(kept_apart(document), indent=1) + "\n"
    return re.sub(r'"frame (\d+) of them"', lambda found: frames[int(found[1]) - 1], text)


def written(findings: Findings) -> str:
    stream = io.StringIO()
    write_json(findings, stream)
    return stream.getvalue()


@given(st.dictionaries(st.text(), VALUES))
def test_any_document_is_written_as_by_python(value: dict[str, object]) -> None:
    stream = io.StringIO()
    JsonText(DESCRIBED).write(value, stream)
    assert stream.getvalue() == json.dumps(value, indent=1) + "\n"


def test_iterators_are_written_as_lists() -> None:
    stream = io.StringIO()
    JsonText(DESCRIBED).write({"a": iter([]), "b": {"c": iter([1, {"d": [2]}]), "e": {}}}, stream)
    assert stream.getvalue() == json.dumps({"a": [], "b": {"c": [1, {"d": [2]}], "e": {}}}, indent=1) + "\n"


def test_reports_are_written_as_by_python() -> None:
    one, code = server()
    for findings in (analyse(one, code.symbols), analyse(*full_snapshot())):
        assert written(findings) == expected(document(findings))


def test_a_frame_of_many_stacks_is_described_once() -> None:
    described: Counter[Frame] = Counter()

    def describe(frame: Frame) -> Mapping[str, object]:
        described[frame] += 1
        return frame_document(frame)

    frames = tuple(Frame(f"f{n}", "app", address=n) for n in range(7))
    stream = io.StringIO()
    JsonText({Frame: describe}).write({"leaks": ({"stack": frames[n % 7 :]} for n in range(1000))}, stream)
    assert set(described.values()) == {1} and len(described) == 7
    assert len(json.loads(stream.getvalue())["leaks"]) == 1000


@pytest.mark.parametrize("most", [0, 2_000, 1 << 26])
def test_what_is_kept_is_bounded_and_changes_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same stacks and holders, at several depths and beside others that come only once."""
    monkeypatch.setattr(json_text, "_MOST_KEPT", most)
    frames = tuple(Frame(f"f{n}", "app", address=n) for n in range(7))
    holders = tuple(Holder(n, "block", stack=frames[n:]) for n in range(5))

    def leaks() -> Iterator[Mapping[str, object]]:
        for n in range(50):
            once = (Frame(f"once{n}", "app"),)
            deeper = [{"stack": once}, {"s": frames}]
            yield {"stack": frames, "holders": holders, "one": holders[n % 5], "deeper": deeper}
            yield {"stack": (), "holders": None, "one": once[0], "deeper": [(1, 2), [frames, holders]]}

    writer, stream = JsonText(DESCRIBED, ON_ONE_LINE), io.StringIO()
    writer.write({"leaks": leaks()}, stream)
    assert stream.getvalue() == expected({"leaks": list(leaks())})
    assert sum(len(text) for _, text in writer._known.values()) <= most + 50_000
