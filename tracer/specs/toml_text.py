"""A discovery as a spec in TOML, ready for --spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracer.specs.discovery import Proposal

_WIDTH = 118


def spec_text(binary: str, pattern: str, proposals: Sequence[Proposal]) -> str:
    """Return the TOML text; `pattern` says which libraries it is for."""
    lines = [f'description = "What refleak discovered in {_plain(binary)}"', f'libraries = ["{_plain(pattern)}"]']
    for proposal in proposals:
        lines += ["", *_reasons(proposal), "[[type]]", f'name = "{_plain(proposal.name)}"']
        if proposal.counter is not None:
            lines.append(f"counter = {proposal.counter.offset}")
        for key in ("create", "get", "put", "delete"):
            names: tuple[str, ...] = getattr(proposal, key + "s")
            if names:
                lines += _list(key, names)
    return "\n".join(lines) + "\n"


def _reasons(proposal: Proposal) -> Iterator[str]:
    if proposal.counter is not None:
        kind = f" ({proposal.counter.type_name})" if proposal.counter.type_name else ""
        yield f"# struct {proposal.struct}, counter {proposal.counter.name}{kind}"
    elif proposal.is_declared and proposal.confirmed:
        yield f"# {_plain(proposal.struct)}, by the headers"
    elif proposal.confirmed:
        yield f"# struct {proposal.struct}"
    else:
        yield "# by the names alone: check that they mean what they say"
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


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isprintable()).replace("\\", "\\\\").replace('"', '\\"')
