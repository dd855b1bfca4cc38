"""Program checks: whether this kernel takes refleak's BPF programs, tried and not judged by its version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracer.errors import ProgramRefused, RefleakError
from tracer.kernel.btf import kernel_offsets
from tracer.kernel.maps import Limits, Maps
from tracer.kernel.programs import has_uprobe_multi, verify_programs
from tracer.model.checks import Check, CheckState
from tracer.model.verified import Verified

_NAME = "programs"
_MEANING = "the BPF programs, as the kernel's verifier takes them"
_REMEDY = "`refleak doctor --programs` says more; -v has the verifier's whole log: report it"


def verified_programs(cache: Path) -> list[Verified]:
    """Show all programs to the verifier; raises BccMissing, KernelLacks, NotPermitted."""
    offsets = kernel_offsets()
    maps = Maps.create(Limits())
    try:
        return list(verify_programs(maps, offsets, cache, multi=has_uprobe_multi()))
    finally:
        maps.close()


def programs_check(cache: Path) -> Check:
    """Test whether the kernel takes the programs that a trace loads."""
    try:
        programs = verified_programs(cache)
    except RefleakError as error:
        return Check(_NAME, CheckState.MISSING, f"{_MEANING}: {error}", error.hint, error.exit_code)
    return _judged(programs)


def programs_untested() -> Check:
    """Say that it was not tested: something else is in the way."""
    return Check(_NAME, CheckState.UNTESTED, _MEANING)


def _judged(programs: Sequence[Verified]) -> Check:
    refused = [program for program in programs if program.refusal]
    if not refused:
        followed = sum(program.followed for program in programs)
        return Check(
            _NAME, CheckState.OK, f"{len(programs)} BPF programs, which the verifier took in {followed:,} steps"
        )
    needed = [program for program in refused if program.is_needed]
    first = (needed or refused)[0]
    return Check(_NAME, CheckState.MISSING, first.refusal, _REMEDY, ProgramRefused.exit_code if needed else 0)
