"""One BPF program: put into the kernel, or only shown to its verifier."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial

from tracer.errors import NotPermitted, ProgramRefused
from tracer.kernel import bpf
from tracer.kernel.bpf import LogLevel, ProgramType
from tracer.kernel.function_types import function_records, function_types
from tracer.kernel.linking import Linked
from tracer.late_patterns import late_pattern
from tracer.model.verified import Verified

_LOG_BYTES = 1 << 24
_VERIFIED = late_pattern(r"^processed (\d+) insns", re.MULTILINE)
_STACK = late_pattern(r"^stack depth ([\d+]+)", re.MULTILINE)


def load(
    programs: Mapping[str, Linked], name: str, kind: ProgramType, attach: int = 0, *, sleepable: bool = False,
    wants_log: bool = True,
) -> int:  # fmt: skip
    """Return a descriptor of the loaded program; raises NotPermitted, or ProgramRefused with the verifier's log."""
    try:
        return _load(programs[name], name, kind, attach, sleepable)[0]
    except PermissionError:
        if os.geteuid() != 0:
            raise NotPermitted("loading BPF programs is not permitted") from None
    except OSError as error:
        if not wants_log:
            raise ProgramRefused(f"the kernel refused the BPF program {name} ({error.strerror})", "") from None
    try:  # once more, for the verifier's log
        return _load(programs[name], name, kind, attach, sleepable, LogLevel.STEPS)[0]
    except OSError as error:
        log = str(error.filename or "")
        last = " | ".join(log.strip().splitlines()[-3:])
        raise ProgramRefused(f"the kernel refused the BPF program {name} ({error.strerror}): {last}", log) from None


def verify(
    programs: Mapping[str, Linked], name: str, kind: ProgramType, attach: int = 0, *, sleepable: bool = False
) -> Verified:
    """Load a program, for what the verifier says of it, and unload it; raises NotPermitted."""
    instructions = len(programs[name].code) // 8
    try:
        program, log = _load(programs[name], name, kind, attach, sleepable, LogLevel.STATISTICS)
    except OSError:
        try:
            os.close(load(programs, name, kind, attach, sleepable=sleepable))
        except ProgramRefused as refusal:
            return Verified(name, instructions, refusal=str(refusal), log=refusal.log)
        return Verified(name, instructions)
    os.close(program)
    followed, stack = _VERIFIED.search(log), _STACK.search(log)
    own, *called = map(int, stack[1].split("+")) if stack else (0,)
    deepest = own + sum(sorted(called)[-2:])  # a turn of a loop may have a loop inside, and no more
    return Verified(name, instructions, int(followed[1]) if followed else 0, deepest)


def _load(
    program: Linked, name: str, kind: ProgramType, attach: int, sleepable: bool, level: LogLevel = LogLevel.NONE
) -> tuple[int, str]:
    put = partial(
        bpf.load_program, kind, name, program.code, attach_type=attach, sleepable=sleepable,
        log_bytes=_LOG_BYTES if level else 0, log_level=level,
    )  # fmt: skip
    if len(program.functions) == 1:
        return put()
    types = bpf.load_types(function_types([name for name, _ in program.functions]))
    try:
        return put(types_fd=types, functions=function_records([start for _, start in program.functions]))
    finally:
        os.close(types)
