"""Scope of a trace: what was traced, for how long, and whether all of it was seen."""

from __future__ import annotations

import shlex
from collections import Counter

from tracer.model.findings import Findings
from tracer.model.reachability import AT_EXEC, Resident
from tracer.model.signals import signal_name
from tracer.model.snapshot import Process, Unresolved
from tracer.model.visible import visible
from tracer.report.amounts import counted, duration, size
from tracer.report.entry_sentence import short_place
from tracer.report.look_words import how_it_was_read
from tracer.report.page import Page
from tracer.report.selection_words import limits, rate
from tracer.report.source_location import first_named

_LABEL = 9
_MOST_FUNCTIONS = 3
_MOST_PROGRAMS = 5
_MOST_NAMES = 3


def add_scope(page: Page, findings: Findings) -> None:
    """Add the lines on the target, on completeness and on what the probes do not cover."""
    root = findings.processes[0] if findings.processes else None
    if root is not None:
        _labelled(page, "target", command(root))
    _labelled(page, "" if root else "target", _circumstances(findings, root))
    for line in _others(findings):
        _labelled(page, "", line)
    _add_completeness(page, findings)
    _add_scans(page, findings)
    _add_coverage(page, findings)
    _add_untraced(page, findings)


def _others(findings: Findings) -> list[str]:
    """Return lines on the processes besides the first: those that another one has, and those that stand alone."""
    pids = {process.pid for process in findings.processes}
    rest = findings.last_spaces[1:]
    children = [last for last in rest if last.parent in pids]
    alone = [f"{last.pid} ({command(last)})" for last in rest if last.parent not in pids]
    more = f" and {len(alone) - _MOST_PROGRAMS:,} more" if len(alone) > _MOST_PROGRAMS else ""
    lines = [f"and pid {', '.join(alone[:_MOST_PROGRAMS])}{more}"] if alone else []
    if children:
        lines.append(f"and {counted(len(children), 'child process', 'child processes')}")
    return lines


def untraced(findings: Findings) -> str:
    """Return how many of the programs that ran have no probes: "1 of 2 programs was not traced"."""
    unseen = {(untraced.pid, untraced.generation) for untraced in findings.coverage.untraced}
    count, programs = len(unseen), len(unseen | {process.space for process in findings.processes})
    if count == programs:
        return "nothing was probed"
    return f"{count:,} of {counted(programs, 'program')} {'was' if count == 1 else 'were'} not traced"


def unseen(findings: Findings) -> list[str]:
    """Return why not all was seen of what was asked for, a clause each; empty where all was."""
    said = [] if findings.complete else ["data were lost"]
    if findings.coverage.missing:
        names = list(map(str, findings.coverage.missing))
        said.append(f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} found nowhere")
    if findings.partly_seen:
        shown = findings.partly_seen[:_MOST_NAMES]
        more = len(findings.partly_seen) - len(shown)
        said.append(f"not all of {', '.join(shown)}{f' and {more:,} more' if more else ''} was seen")
    return [*said, untraced(findings)] if findings.coverage.untraced else said


def command(process: Process) -> str:
    return visible(shlex.join(process.command) or process.executable or f"pid {process.pid}")


def end(process: Process) -> str:
    """Return how a process ended: "exited with status 0", "killed by SIGKILL", "executed another program"."""
    if process.ended_ns is None:
        return "still runs"
    if process.by_exec:
        return "executed another program"
    if process.signal is not None:
        return f"killed by {signal_name(process.signal)}"
    return "ended" if process.exit_code is None else f"exited with status {process.exit_code}"


def _circumstances(findings: Findings, root: Process | None) -> str:
    parts = [] if root is None else [f"pid {root.pid}"]
    parts.append(f"{findings.mode}, traced for {duration(findings.duration_ns)}")
    parts += map(end, findings.last_spaces[:1])
    text = ", ".join(parts)
    return text if findings.mode == "launched" else f"{text}; what is older than the trace is unknown"


def _add_completeness(page: Page, findings: Findings) -> None:
    events = counted(findings.events_seen, "event")
    _add_limits(page, findings)
    if findings.complete:
        said = "as far as seen" if unseen(findings) else "complete" if findings.is_whole else "sampled"
        _labelled(page, "data", f"{said}: {events}, 0 lost")
        return
    lost = sum(loss.count for loss in findings.losses)
    _labelled(page, "data", f"NOT COMPLETE: {events}, {lost:,} lost", "warn")
    for loss in findings.losses:
        _labelled(page, "", f"{loss.count:,} lost: {loss.reason}" + (f"; cure: {loss.remedy}" if loss.remedy else ""))


def _add_scans(page: Page, findings: Findings) -> None:
    """Add what the reading of the target's memory cost it, or why it was not read."""
    done = [scan for scan in findings.scans if scan.reason is None]
    if done:
        # One may have been read before it executed a program, too.
        processes = len({findings.process_of((scan.pid, scan.generation)) for scan in done})
        of = f" of {counted(processes, 'process', 'processes')}" if processes > 1 else ""
        text = f"{size(sum(scan.bytes_read for scan in done))}{of} read at the end for what points where"
        held_ns = sum(scan.held_ns for scan in done)
        _labelled(page, "memory", f"{text}; held {duration(held_ns)} for it" if held_ns else text)
    for reason, passes in sorted({(scan.why_running, scan.passes) for scan in done if scan.why_running is not None}):
        _labelled(page, "", f"{how_it_was_read(passes)}, not stopped: {reason}")
    known = {scan.pid: scan.resident for scan in done if scan.resident is not None}
    pid, largest = max(known.items(), key=lambda known: known[1].total, default=(0, None))
    if largest is not None:
        _labelled(page, "", _resident(largest, f" of process {pid}" if len(known) > 1 else ""))
    for top in findings.heap_tops:
        if top.pid == pid:
            last = f"the last block, of {size(top.size)}, which is {duration(top.age_ns)} old"
            where = short_place(first_named(top.stack))
            _labelled(page, "", f"{size(top.free_bytes)} of its heap are free below {last} and from {where}")
    ended_by_signal = {p.space for p in findings.processes if p.signal is not None}
    reasons = Counter(
        (scan.reason, (scan.pid, scan.generation) in ended_by_signal)
        for scan in findings.scans if scan.reason is not None and scan.reason != AT_EXEC
    )  # fmt: skip
    for (reason, was_killed), count in reasons.items():
        of = f" of {counted(count, 'process', 'processes')}" if len(findings.scans) > 1 else ""
        means = ", so that what was alive is not judged" if was_killed else ", so that leaked means not freed"
        how = f"; {_LET_IT_EXIT}" if was_killed and findings.is_judged else ""
        _labelled(page, "memory", f"not looked into{of}{means if findings.is_judged else ''}: {reason}{how}")


_LET_IT_EXIT = "to have it judged let it exit by itself, or end the trace before it (--duration)"
_ROUNDING = "malloc's rounding of these"


def _resident(resident: Resident, of: str) -> str:
    """Return "resident 12.3 MiB: live blocks 3.1 MiB, ..." with an estimate of the blocks."""
    parts = (
        ("live blocks", resident.live), (_ROUNDING, resident.rounding),
        ("free or unknown in heaps", resident.free), ("stacks", resident.stacks), ("files", resident.files),
        ("data of binaries", resident.data), ("other mappings", resident.other),
    )  # fmt: skip
    named = ", ".join(f"{word} {size(amount)}" for word, amount in parts if amount or word != _ROUNDING)
    return f"resident{of} {size(resident.total)}: {named} (estimated: blocks as if wholly resident)"


def _add_limits(page: Page, findings: Findings) -> None:
    if findings.selection.is_sampled:
        said = f"blocks were sampled, {rate(findings.selection)}: their amounts are estimates"
        _labelled(page, "sampling", f"{said}, with their standard error")
    looked_at = limits(findings)
    if findings.selection.is_by_size or findings.older_ns:
        _labelled(page, "only", looked_at)


def _add_coverage(page: Page, findings: Findings) -> None:
    coverage = findings.coverage
    missing = []
    if coverage.unresolved:
        missing.append(_unresolved(coverage.unresolved))
    if coverage.uncovered_instances:
        copies = Counter[str]()
        for uncovered in coverage.uncovered_instances:
            copies[uncovered.function] += uncovered.copies
        missing.append(f"inlined copies not covered: {', '.join(f'{name} ({n:,})' for name, n in copies.items())}")
    if missing:
        _labelled(page, "probes", f"{coverage.attached:,} attached; {'; '.join(missing)}")


def _add_untraced(page: Page, findings: Findings) -> None:
    reasons = Counter((untraced.program, untraced.reason) for untraced in findings.coverage.untraced)
    shown = reasons.most_common(_MOST_PROGRAMS)
    for number, ((program, reason), count) in enumerate(shown):
        times = f" ({count:,} times)" if count > 1 else ""
        _labelled(page, "" if number else "NOT SEEN", f"{visible(program)}{times}: {reason}", "warn")
    if len(reasons) > len(shown):
        _labelled(page, "", f"and {counted(len(reasons) - len(shown), 'more program')}", "warn")


def _unresolved(functions: tuple[Unresolved, ...]) -> str:
    by_reason: dict[str, list[str]] = {}
    for unresolved in functions[:_MOST_FUNCTIONS]:
        by_reason.setdefault(unresolved.reason, []).append(unresolved.function)
    shown = [f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()]
    rest = len(functions) - min(len(functions), _MOST_FUNCTIONS)
    more = f" and {rest:,} more" if rest else ""
    return f"{counted(len(functions), 'function')} not covered: {', '.join(shown)}{more}"


def _labelled(page: Page, label: str, text: str, style: str = "") -> None:
    page.heading(f"{label:<{_LABEL}}{text}" if label else " " * _LABEL + text, style, " " * _LABEL)
