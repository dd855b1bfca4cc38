"""The command line: which subcommand, and the one place where errors are printed."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from types import ModuleType

from tracer import __version__
from tracer.capture.open_files import EXHAUSTED
from tracer.cli import diff, discover, doctor, options, probes, report, specs, top, trace
from tracer.elf.cache_folder import refusals
from tracer.errors import NotPermitted, ProgramRefused, RefleakError, TooFewFiles

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
COMMANDS: dict[str, ModuleType] = {
    command.NAME: command for command in (report, diff, top, doctor, probes, specs, discover)
}


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand; of the main job for the empty name."""
    command = COMMANDS.get(name, trace)
    parser = argparse.ArgumentParser(
        prog=f"refleak {name}".rstrip(), description=command.__doc__, epilog=_EXAMPLES if command is trace else None,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"refleak {__version__}")
    command.add_arguments(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run refleak; return its exit status. No traceback reaches a user."""
    gc.set_threshold(*_COLLECT_AT)
    refusals.clear()
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words and words[0] in COMMANDS else ""
    parsed = parser_of(name).parse_args(words[1:] if name else words)
    command = COMMANDS.get(name, trace)
    try:
        return int(command.run(parsed))
    except RefleakError as error:
        return _print_error(error, words, verbose=getattr(parsed, "verbose", False))
    except BrokenPipeError:
        return 141
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise
        return _print_error(TooFewFiles("no more files may be opened"), words, verbose=False)
    except KeyboardInterrupt:
        return 130
    finally:
        for reason in refusals:
            print(f"refleak: cache not used: {reason}", file=sys.stderr)


def _print_error(error: RefleakError, words: Sequence[str], *, verbose: bool) -> int:
    if verbose and isinstance(error, ProgramRefused):
        print(error.log, file=sys.stderr)
    hint = error.hint
    if isinstance(error, NotPermitted) and hint == NotPermitted.hint:
        hint = options.command_with_sudo(words)
    print(f"refleak: {error}", file=sys.stderr)
    if hint:
        print(f"         {hint}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
