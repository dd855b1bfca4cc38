"""The command line: which subcommand, and the one place where errors are printed."""

from __future__ import annotations

import argparse
import gc
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import NoReturn

from tracer import __version__
from tracer.capture.open_files import EXHAUSTED
from tracer.cli import diff, discover, doctor, options, probes, report, specs, top, trace
from tracer.cli.standard_streams import flush_streams, give_up_streams, open_missing_streams
from tracer.elf.cache_folder import refusals
from tracer.errors import (
    CannotWrite,
    NotPermitted,
    ProgramRefused,
    RefleakError,
    TooFewFiles,
    UsageError,
    place_of,
)
from tracer.model.visible import shortened, visible

_EXAMPLES = """\
examples:
  sudo refleak --exec ./perf probe -x /bin/true main
  sudo refleak -p PID
  sudo refleak --exec CMD ... --format json -o report.json   (options of refleak go before --exec)

  sudo refleak -o run.refleak --exec CMD ...       then, anywhere: refleak report run.refleak

other commands: refleak report | diff | top | doctor | probes | specs | discover
"""
_COLLECT_AT = (50_000, 20, 20)
"""Python's own 700 make it look through hundreds of thousands of entries again and again, where there is no garbage."""
_LONGEST_LINE = 600
_NOBODY_READS = 141
_FAILED_BY_ITSELF = 70
"""EX_SOFTWARE of sysexits.h. Before it: as a shell gives SIGPIPE."""
COMMANDS: dict[str, ModuleType] = {
    command.NAME: command for command in (report, diff, top, doctor, probes, specs, discover)
}


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand; of the main job for the empty name."""
    command = COMMANDS.get(name, trace)
    parser = _Parser(
        prog=f"refleak {name}".rstrip(), description=command.__doc__, epilog=_EXAMPLES if command is trace else None,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"refleak {__version__}")
    command.add_arguments(parser)
    return parser


class _Parser(argparse.ArgumentParser):
    """One that says in a line what is wrong, instead of all that there is."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run refleak; return its exit status. No traceback reaches a user."""
    gc.set_threshold(*_COLLECT_AT)
    open_missing_streams()
    refusals.clear()
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
    is_verbose = "-v" in words or "--verbose" in words
    try:
        parsed = parser_of(name).parse_args(words[1:] if name else words)
        return int(COMMANDS.get(name, trace).run(parsed))
    except RefleakError as error:
        return _print_error(error, words, verbose=is_verbose)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise
        return _print_error(TooFewFiles("no more files may be opened"), words, verbose=False)
    except Exception as error:
        if is_verbose:
            traceback.print_exc()
        _say(f"refleak: it failed by itself: {place_of(error)}: {error}")
        _say("         report it, with what is printed if -v is given too")
        return _FAILED_BY_ITSELF
    finally:
        for reason in refusals:
            _say(f"refleak: cache not used: {reason}")


def _reason(error: OSError) -> str:
    what = f"{error.strerror or type(error).__name__}"
    return f"{what}: {error.filename}" if error.filename else f"cannot write: {what}"


def _say(text: str) -> None:
    """Write a line to standard error; where that cannot be written, the exit status has to do."""
    with suppress(OSError, ValueError):
        print(shortened(visible(text), _LONGEST_LINE), file=sys.stderr, flush=True)


def _print_error(error: RefleakError, words: Sequence[str], *, verbose: bool) -> int:
    if verbose and isinstance(error, ProgramRefused):
        print(error.log, file=sys.stderr)
    hint = error.hint
    if isinstance(error, NotPermitted) and hint == NotPermitted.hint:
        hint = options.command_with_sudo(words)
    _say(f"refleak: {error}")
    if hint:
        _say(f"         {hint}")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
