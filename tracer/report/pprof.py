"""The profile of a report, for pprof."""

from __future__ import annotations

from itertools import chain
from typing import BinaryIO

from tracer.model.findings import Findings, Leak
from tracer.report.code_layout import CodeLayout
from tracer.report.entry_sentence import error_sentence
from tracer.report.profile_message import ProfileMessage
from tracer.report.selection_words import rate
from tracer.report.verdict_line import verdict
from tracer.report.weights import process_names, reported, weight

SAMPLE_TYPES = (
    ("inuse_objects", "count"), ("inuse_space", "bytes"), ("alloc_objects", "count"), ("alloc_space", "bytes"),
    ("free_objects", "count"), ("free_space", "bytes"),
)  # fmt: skip


def write_pprof(findings: Findings, stream: BinaryIO) -> None:
    """Write what is outstanding as in use, what was freed again as freed, and both together as allocated.

    Counted objects weigh 1 and no bytes. What was freed of blocks is in `findings.freed`, if that was asked for.
    Labels: kind, type, class, state, process, pid, id, and thread where all was made by one.
    """
    _Profile(findings).write(stream)


def profile(findings: Findings) -> bytes:
    """Return the message `Profile`, not compressed."""
    return bytes(_Profile(findings).message.data)


def _values(leak: Leak) -> tuple[int, ...]:
    """Return a value for each of SAMPLE_TYPES; of blocks that were freed there are samples of their own."""
    held = weight(leak)
    ended = leak.freed or 0 if leak.kind == "reference" else 0
    return held.count, held.bytes, held.count + ended, held.bytes, ended, 0


def _labels(leak: Leak, names: dict[int, str]) -> dict[str, str | None]:
    return {
        "kind": leak.kind, "type": leak.type, "class": leak.reachability, "state": leak.state,
        "process": names.get(leak.pid), "id": leak.id,
    }  # fmt: skip


def _numbers(leak: Leak) -> dict[str, int]:
    threads = {instance.thread for instance in leak.instances}
    known = len(threads) == 1 and len(leak.instances) == leak.kept
    return {"pid": leak.pid, **({"thread": threads.pop()} if known else {})}


class _Profile(ProfileMessage):
    """The profile of a report."""

    def __init__(self, findings: Findings) -> None:
        leaks = reported(findings)
        stacks = chain((leak.stack for leak in leaks), (freed.stack for freed in findings.freed))
        program = findings.processes[0].executable if findings.processes else None
        layout = CodeLayout(findings.code, {frame for stack in stacks for frame in stack})
        super().__init__(SAMPLE_TYPES, layout, program)
        names = process_names(findings)
        for leak in leaks:
            self.sample(leak.stack, _values(leak), _labels(leak, names), _numbers(leak))
        for freed in findings.freed:
            self.sample(freed.stack, (0, 0, *(freed.count, freed.bytes) * 2), {}, {})
        self.duration(findings.duration_ns)
        if findings.selection.is_sampled:
            self.period("space", "bytes", findings.selection.sample_bytes)
        default = "inuse_space" if any(leak.bytes for leak in leaks) else "inuse_objects"
        self.finish(_comments(findings), default)


def _comments(findings: Findings) -> list[str]:
    lost = [f"lost {loss.count}: {loss.reason}" for loss in findings.losses]
    said = [verdict(findings).text, *(f"not complete: {reason}" for reason in lost)]
    if findings.selection.is_sampled:
        said.append(f"blocks were sampled, {rate(findings.selection)}: their values are estimates")
    return [*said, *(f"error: {error_sentence(error)}" for error in findings.errors)]
