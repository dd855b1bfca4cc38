"""Options that more than one subcommand has, each defined once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tracer.report.formats import NAMES

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def count_or_size(text: str) -> int:
    """Parse 4096, 64K, 16M or 2G."""
    number, suffix = text.strip(), ""
    if number and number[-1].upper() in "KMG":
        number, suffix = number[:-1], number[-1].upper()
    if not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 4096, 64K or 16M")
    return int(number) * _SUFFIXES[suffix]


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def add_target(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("what to trace")
    which.add_argument("-p", "--pid", type=int, metavar="PID", help="attach to a running process")
    which.add_argument(
        "--exec", dest="command", nargs=argparse.REMAINDER, metavar="CMD",
        help="launch CMD with its arguments (everything after it), and trace it from its first instruction",
    )
    which.add_argument("--user", metavar="NAME", help="run CMD as this user (under sudo: the one who called it)")
    which.add_argument(
        "--follow-forks", action=argparse.BooleanOptionalAction, default=None,
        help="trace forked children and what they exec too (default with --exec)",
    )
    which.add_argument("--duration", type=seconds, metavar="S", help="end the trace after S seconds")


def add_kinds(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_argument_group("what to count")
    only = kinds.add_mutually_exclusive_group()
    only.add_argument("--refs-only", action="store_true", help="only reference counts")
    only.add_argument("--heap-only", action="store_true", help="only allocations")
    kinds.add_argument(
        "--mappings", action=argparse.BooleanOptionalAction, default=True, help="count mmap and munmap too (default)"
    )
    kinds.add_argument(
        "--allocator", action="append", default=[], metavar="PATH", type=Path,
        help="a library whose malloc family is an allocator (may be given more than once)",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("how much to keep")
    limits.add_argument("--max-objects", type=count_or_size, default=1 << 22, metavar="N", help="live blocks (4M)")
    limits.add_argument("--max-stacks", type=count_or_size, default=1 << 20, metavar="N", help="different stacks (1M)")
    limits.add_argument("--max-threads", type=count_or_size, default=1 << 15, metavar="N", help="threads (32K)")
    limits.add_argument(
        "--ring-size", type=count_or_size, default=1 << 26, metavar="BYTES", help="of the ring of events (64M)"
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    report = parser.add_argument_group("how to report")
    report.add_argument(
        "--format", choices=NAMES, metavar="FORMAT", help=f"{', '.join(NAMES)}; by default as -o's suffix says"
    )
    report.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report to FILE")
    report.add_argument("--top", type=int, metavar="N", default=10, help="show the N biggest entries only (10)")
    report.add_argument("--source-root", type=Path, metavar="DIR",
                        help="name source files below DIR relative to it (sarif, junit)")  # fmt: skip
    report.add_argument("--suppressions", action="append", default=[], metavar="FILE", type=Path,
                        help="leaks to pass over, in LeakSanitizer's syntax")  # fmt: skip
    report.add_argument("--no-default-suppressions", action="store_true", help="report one-off allocations of libc too")
    report.add_argument("--no-demangle", action="store_true", help="print C++ and Rust names as they are linked")
    report.add_argument("--debug-dir", action="append", default=[], metavar="DIR",
                        help="look for separate debug files there too")  # fmt: skip
    report.add_argument(
        "--error-exitcode", type=int, metavar="N", help="exit with N if anything leaked or an error was found"
    )


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="store_true", help="say more; all of the verifier's words")
    parser.add_argument("-q", "--quiet", action="store_true", help="no status line")


def command_with_sudo(arguments: Sequence[str]) -> str:
    """Return the command that was typed, with sudo before it."""
    program = os.environ.get("REFLEAK_COMMAND", sys.argv[0])
    return " ".join(["sudo", program, *arguments])
