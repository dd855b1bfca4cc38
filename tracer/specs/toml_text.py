"""A discovery as a spec in TOML, ready for --spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tracer.specs.discovery import Proposal
from tracer.specs.trial_verdict import TypeVerdict

_WIDTH = 118


def spec_text(
    binary: str, pattern: str, proposals: Sequence[Proposal], verdicts: Sequence[TypeVerdict] = (), tried: str = ""
) -> str:
    """Return the TOML text; `pattern` says which libraries it is for.

    `verdicts`: of a trial on each proposal; what it disproves is commented out. `tried`: how the trial went.
    """
    lines = [f'description = "What refleak discovered in {_plain(binary)}"', f'libraries = ["{_plain(pattern)}"]']
    if tried:
        lines[:0] = [f"# {_plain(tried)}", "# Not tried: it was not called, or it only calls another of its type."]
    for proposal, verdict in zip_longest(proposals, verdicts):
        table = ["[[type]]", f'name = "{_plain(proposal.name)}"']
        if proposal.counter is not None:
            table.append(f"counter = {proposal.counter.offset}")
        for key in ("create", "get", "put", "delete"):
            names: tuple[str, ...] = getattr(proposal, key + "s")
            if names:
                table += _list(key, names) if verdict is None else _remarked(key, names, verdict)
        if verdict is not None and verdict.disproved:
            table = [f"# disproved: {verdict.disproved}", *(f"# {line}" for line in table)]
        elif proposal.doubt and not (proposal.is_in_place and verdict is not None and verdict.is_tried):
            table = [f"# commented out: {_plain(proposal.doubt)}", *(f"# {line}" for line in table)]
        lines += ["", *_reasons(proposal), *table]
    return "\n".join(lines) + "\n"


def _reasons(proposal: Proposal) -> Iterator[str]:
    if proposal.is_by_code and proposal.counter is not None:
        yield f"# class {proposal.struct}, whose methods count at offset {proposal.counter.offset}, as their code shows"
    elif proposal.counter is not None:
        kind = f" ({proposal.counter.type_name})" if proposal.counter.type_name else ""
        yield f"# struct {proposal.struct}, counter {proposal.counter.name}{kind}"
    elif proposal.is_in_place:
        of = f" ({_plain(proposal.struct)})" if proposal.struct else ""
        yield f"# by the names and the code: what the caller has{of} is set up and cleared"
    elif proposal.is_declared and proposal.confirmed:
        yield f"# {_plain(proposal.struct)}, by the headers"
    elif proposal.confirmed:
        yield f"# struct {proposal.struct}"
    else:
        yield "# by the names alone: check that they mean what they say"
    if proposal.numbers and not proposal.doubt:
        yield f"# no create, since it returns a number: {_plain(', '.join(proposal.numbers))}"
    if proposal.inlined:
        copies = ", ".join(f"{name} {count} times" if count > 1 else f"{name} once" for name, count in proposal.inlined)
        yield f"# inlined: {copies}"


def _list(key: str, names: Sequence[str]) -> Iterator[str]:
    items = [f'"{_plain(name)}"' for name in names]
    line = f"{key} = {items[0] if len(items) == 1 else '[' + ', '.join(items) + ']'}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{key} = ["
    yield from (f"  {item}," for item in items)
    yield "]"


def _remarked(key: str, names: Sequence[str], verdict: TypeVerdict) -> Iterator[str]:
    """Yield a list with a function on each line and what is said of it."""
    remarks = [(name, verdict.remarks[key, name]) for name in names]
    if all(remark.disproved for _, remark in remarks) and not verdict.disproved:
        yield from (f'# {key} = "{_plain(name)}"  # {remark.text}' for name, remark in remarks)
        return
    yield f"{key} = ["
    for name, remark in remarks:
        out = "# " if remark.disproved and not verdict.disproved else ""
        yield f'  {out}"{_plain(name)}",  # {remark.text}'
    yield "]"


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isprintable()).replace("\\", "\\\\").replace('"', '\\"')
