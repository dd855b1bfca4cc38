"""Errors that a user can fix: one class each, with a hint and an exit status of its own kind."""

from __future__ import annotations

import errno
from pathlib import Path

_PACKAGE = Path(__file__).parent
_GUARD = "mishaps.py"


class RefleakError(Exception):
    """A failure with one line that says what is wrong and one that says what to do.

    Raised anywhere, printed in one place (`tracer.cli.main`).
    """

    exit_code = 90
    hint = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint


class UsageError(RefleakError):
    exit_code = 2
    hint = "see refleak --help"


class NotPermitted(RefleakError):
    exit_code = 77
    hint = "run the same command with sudo"


class NoSuchTarget(RefleakError):
    exit_code = 66
    hint = "check the process number or the command's path"


class UnsuitableTarget(RefleakError):
    """Not an ELF file, 32 bits, or another architecture."""

    exit_code = 65
    hint = "refleak traces 64-bit x86 ELF programs"


class NothingToProbe(RefleakError):
    exit_code = 67
    hint = "give the allocator's library with --allocator PATH, or build with symbols; see `refleak probes`"


class NothingFound(RefleakError):
    """A name that the user gave is in nothing that ran: no verdict can rest on it."""

    exit_code = 68
    hint = "check the spelling: `refleak probes PROGRAM` shows what is found; --allow-missing passes over it"


class PackageMissing(RefleakError):
    """A package of Python that refleak imports is not installed."""

    exit_code = 69
    hint = "run `make venv` in a checkout, else install the package; `refleak doctor` lists all that are missing"
    again = "install refleak again; in a checkout look at `git status`"
    """The hint where it is refleak's own package that is not whole."""


class KernelLacks(RefleakError):
    exit_code = 71
    hint = "see `refleak doctor`; Linux 6.1 or newer with uprobes, BPF and BTF is needed"


class BccMissing(RefleakError):
    exit_code = 72
    hint = "install python3-bpfcc (Debian, Ubuntu) or python3-bcc (Fedora); PyPI's `bcc` is something else"


class ProgramRefused(RefleakError):
    """The kernel's verifier refused a BPF program; `log` is all it said."""

    exit_code = 73
    hint = "run again with -v for the verifier's whole log, and report it"

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


class TooFewFiles(RefleakError):
    """Too few files may be open at a time."""

    exit_code = 79
    hint = "raise the hard limit of open files (ulimit -Hn, prlimit --nofile, LimitNOFILE of a service)"

    @staticmethod
    def is_it(error: OSError) -> bool:
        """Tell whether an error of the system means this."""
        return error.errno in (errno.EMFILE, errno.ENFILE)


class TooLittleMemory(RefleakError):
    """A trace would need more memory than is left: the kernel would end it, or the program that it traces."""

    exit_code = 80
    hint = "raise the limit (memory.max of a cgroup, --memory of a container), or trace from outside of it with -p"


class CannotWrite(RefleakError):
    exit_code = 74
    hint = "check the path, its permissions and the free space"


class CannotRead(RefleakError):
    """A file of ours or of the user's could not be read or understood."""

    exit_code = 75
    hint = "check that the file is whole and made by this version of refleak"


class SpecInvalid(RefleakError):
    """A spec is wrong at a line: the message begins `FILE:LINE:`."""

    exit_code = 76
    hint = "see docs/specs.md"


class TraceFails(RefleakError):
    """A trace runs, and does not see what happens: what `refleak doctor` finds where it traces a child of its own."""

    exit_code = 78
    hint = "report it, with what `refleak doctor` prints"


def place_of(error: BaseException) -> str:
    """Return what an error is, with file and line of ours where it was raised."""
    import traceback  # here: few need it, and it takes its time

    kind, module = type(error).__qualname__, type(error).__module__
    kind = f"{module}.{kind}" if module != "builtins" and not module.startswith("tracer.") else kind
    frames = [
        f"{Path(frame.filename).relative_to(_PACKAGE)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if _PACKAGE in Path(frame.filename).parents and not frame.filename.endswith(_GUARD)
    ]
    return f"{kind} in {frames[-1]}" if frames else kind
