"""The command line: which subcommand, and the one place where errors are printed.

What is imported here is imported by `refleak --version` too: a subcommand is imported when it is called.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from tracer import __version__
from tracer.cli.interrupts import check_interrupts, interruptible, last_words
from tracer.cli.standard_streams import flush_streams, give_up_streams, open_missing_streams
from tracer.errors import (
    CannotWrite,
    NoSuchTarget,
    NotPermitted,
    PackageMissing,
    ProgramRefused,
    RefleakError,
    TooFewFiles,
    place_of,
)

if TYPE_CHECKING:
    from argparse import Namespace

_COLLECT_AT = (200_000, 20, 20)
"""Python's own 700 make it look through hundreds of thousands of entries again and again, where there is no garbage."""
_ONE_THREAD = "OPENBLAS_NUM_THREADS"
"""numpy's linear algebra starts a thread for each further processor, which waits in a loop for work: there is none."""
_LONGEST_LINE = 600
_NOBODY_READS = 141
_FAILED_BY_ITSELF = 70
"""EX_SOFTWARE of sysexits.h. Before it: as a shell gives SIGPIPE."""
_VERSION = "--version"
_INTERRUPTED = 130
_TOO_EARLY = "refleak: interrupted before the trace began"
_MAIN = "trace"
_TRACING = ("", "top")
_DOCTOR = "doctor"
_RUN = "run"
"""Before a command that is to be traced: it may have the name of a subcommand."""
_NO_COMMAND, _MAKE_EXECUTABLE = "there is no command ", "chmod +x "
"""How an error begins, and a hint, of which more may be known here."""
_OF_OTHERS = {
    "help": "--help", "version": "--version", "exec": f"{_RUN} CMD", "trace": f"{_RUN} CMD", "launch": f"{_RUN} CMD",
    "record": "-o run.refleak CMD", "attach": "-p PID", "compare": "diff", "list": "specs",
}  # fmt: skip
"""What other tools call a subcommand."""
COMMANDS = ("report", "diff", "top", "doctor", "probes", "specs", "discover")


def command_module(name: str) -> ModuleType:
    """Return the module of a subcommand; of the main job for the empty name."""
    return import_module(f"tracer.cli.{name or _MAIN}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run refleak; return its exit status. No traceback reaches a user."""
    try:
        return _main(arguments)
    except KeyboardInterrupt as interrupt:
        if interrupt.args:  # where what the user sees does not say it
            _say(f"refleak: interrupted {interrupt}")
        return _INTERRUPTED


def _main(arguments: Sequence[str] | None) -> int:
    gc.set_threshold(*_COLLECT_AT)
    if _ONE_THREAD not in os.environ:
        os.putenv(_ONE_THREAD, "1")  # to this process alone: targets get what is in os.environ
    open_missing_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    status = 0
    try:
        status = _run(words)
        flush_streams()
    except BrokenPipeError:
        status = status or _NOBODY_READS
        give_up_streams()
    except OSError as error:  # of the streams: whatever reads and writes files has said what is wrong with them
        status = status or CannotWrite.exit_code
        _say(f"refleak: {_reason(error)}")
        give_up_streams()
    return status


def _run(words: Sequence[str]) -> int:
    name = words[0] if words and words[0] in COMMANDS else ""
    if list(words[bool(name) :][:1]) == [_VERSION]:  # before anything else is imported
        print(f"refleak {__version__}")
        return 0
    from tracer.files.cache_folder import refusals

    refusals.clear()
    own = words[1:] if name or words[:1] == [_RUN] else words
    try:
        if name == _DOCTOR and (status := _without_packages()):
            return status
        with last_words(_TOO_EARLY) if name in _TRACING else nullcontext():
            command, parsed = _parsed(name, own)
        with interruptible():
            return int(command.run(parsed))
    except RefleakError as error:
        return _print_error(error, words)
    except OSError as error:
        if not TooFewFiles.is_it(error):
            raise
        return _print_error(TooFewFiles("no more files may be opened"), words)
    except ModuleNotFoundError as error:
        if error.name is None:
            return _print_failure(error, words)
        if error.name.startswith("tracer"):
            broken = PackageMissing(f"refleak's own {error.name} is missing", PackageMissing.again)
            return _print_error(broken, words)
        return _print_error(PackageMissing(f"the Python package {error.name} is missing"), words)
    except Exception as error:
        check_interrupts()
        return _print_failure(error, words)
    finally:
        for reason in refusals:
            _say(f"refleak: cache not used: {reason}")


def _parsed(name: str, words: Sequence[str]) -> tuple[ModuleType, Namespace]:
    from tracer.cli.parsing import parse

    command = command_module(name)
    return command, parse(name, command, words)


def _without_packages() -> int:
    """Say what is missing of what refleak itself imports, and return that status; 0 where nothing is."""
    from tracer.cli.packages import package_checks

    checks = package_checks()
    if checks:
        from tracer.report.check_list import write_checks

        write_checks(checks, sys.stdout)
    return next((check.exit_code for check in checks if check.is_obstacle), 0)


def _is_verbose(words: Sequence[str]) -> bool:
    return "-v" in words or "--verbose" in words


def _print_failure(error: Exception, words: Sequence[str]) -> int:
    if _is_verbose(words):
        import traceback

        traceback.print_exc()
    _say(f"refleak: it failed by itself: {place_of(error)}: {error}")
    _say("         report it, with what is printed if -v is given too")
    return _FAILED_BY_ITSELF


def _reason(error: OSError) -> str:
    what = f"{error.strerror or type(error).__name__}"
    return f"{what}: {error.filename}" if error.filename else f"cannot write: {what}"


def _say(text: str) -> None:
    """Write a line to standard error; where that cannot be written, the exit status has to do."""
    from tracer.model.visible import shortened, visible

    with suppress(OSError, ValueError):
        print(shortened(visible(text), _LONGEST_LINE), file=sys.stderr, flush=True)


def _print_error(error: RefleakError, words: Sequence[str]) -> int:
    if _is_verbose(words) and isinstance(error, ProgramRefused):
        print(error.log, file=sys.stderr)
    _say(f"refleak: {error}")
    if hint := _hint(error, words):
        _say(f"         {hint}")
    return error.exit_code


def _hint(error: RefleakError, words: Sequence[str]) -> str:
    if isinstance(error, NotPermitted) and error.hint == NotPermitted.hint:
        from tracer.cli.options import command_with_sudo

        return command_with_sudo(words)
    if isinstance(error, NotPermitted) and error.hint.startswith(_MAKE_EXECUTABLE):
        return _hint_of_recording(error.hint.removeprefix(_MAKE_EXECUTABLE)) or error.hint
    if isinstance(error, NoSuchTarget) and (named := _hint_of_file(str(error).removeprefix(_NO_COMMAND), words)):
        return named
    if isinstance(error, NoSuchTarget) and str(error).startswith(_NO_COMMAND):
        from tracer.cli.meant_command import meant_command

        if written := meant_command(str(error).removeprefix(_NO_COMMAND)):
            return written
    if isinstance(error, NoSuchTarget) and words and words[0] not in COMMANDS:
        if words[0].isdecimal():
            return f"to attach to a process: refleak -p {words[0]}"
        if str(error) == f"{_NO_COMMAND}{words[0]}" and words[0] in _OF_OTHERS:
            return f"did you mean refleak {_OF_OTHERS[words[0]]}?"
        from difflib import get_close_matches

        if meant := get_close_matches(words[0], COMMANDS, 1):
            return f"did you mean refleak {meant[0]}?"
        meant = [word for word in COMMANDS if str(error) == f"{_NO_COMMAND}{word}"]
        if meant and not {_RUN, "--", "--exec"}.intersection(words):  # by which it was said to be one
            return f"options stand behind the subcommand: refleak {meant[0]} ..."
        if str(error) == f"{_NO_COMMAND}{_RUN}" and words[0] != _RUN:
            return f"`{_RUN}` stands first: refleak {_RUN} [OPTION ...] CMD"
    return error.hint


def _hint_of_file(name: str, words: Sequence[str]) -> str | None:
    """Return what to do with a file of this folder that is no command, because it was named without the folder."""
    from pathlib import Path

    with suppress(OSError):
        if Path(name).is_file():
            of = f"refleak {words[0]}" if words[0] in COMMANDS and words[0] != _RUN else "refleak"
            return _hint_of_recording(name) or f"to run the file of this folder: {of} ./{name}"
    return None


def _hint_of_recording(path: str) -> str | None:
    return f"to read it: refleak report {path}" if path.endswith((".refleak", ".json")) else None


if __name__ == "__main__":
    sys.exit(main())
