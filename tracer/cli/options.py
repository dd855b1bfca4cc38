"""Options that more than one subcommand has, each defined once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tracer.analysis.policy import Policy, parse_policy
from tracer.cli.option_values import (
    Once,
    block_size,
    columns,
    count_or_size,
    duration_ns,
    entry_count,
    existing_file,
    exit_status,
    freed_count,
    hold_seconds,
    interval,
    listed,
    output_path,
    some_time,
    words,
)
from tracer.model.selection import ANY_SIZE
from tracer.report.balance import PRUNED, TREES
from tracer.report.class_words import SHOWABLE, SHOWN
from tracer.report.formats import NAMES, format_named


def add_pids(parser: argparse._ActionsContainer, what: str) -> None:
    parser.add_argument(
        "-p", "--pid", action="extend", type=words, metavar="PID",
        help=f"{what} a running process; more of them after commas or another -p. A name stands for all processes of "
        "that program, cgroup:PATH or its directory for those of a cgroup",
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("what to trace")
    add_pids(which, "attach to")
    which.add_argument(
        "--tree", action="store_true", help="attach to the children that run already too, and to theirs (with -p)"
    )
    which.add_argument(
        "--exec", dest="command", nargs=argparse.REMAINDER, metavar="CMD",
        help="launch CMD with its arguments (everything after it), and trace it from its first instruction",
    )
    parser.set_defaults(streams=None)
    which.add_argument(
        "--preload", action="store_true",
        help="have CMD, and what it starts, call malloc and its kin through a library (LD_PRELOAD), where a probe "
        "costs less: docs/preload.md",
    )
    which.add_argument("--user", metavar="NAME", help="run CMD as this user (under sudo: the one who called it)")
    which.add_argument(
        "--follow-forks", action=argparse.BooleanOptionalAction, default=None,
        help="trace forked children and what they exec too (default with --exec and --tree)",
    )
    which.add_argument(
        "--interpreters", "--guest", choices=("auto", "off"), default="auto",
        help="show frames of the interpreters CPython and Lua too, where they are known (auto)",
    )
    which.add_argument(
        "--duration", type=some_time, metavar="TIME", help="end the trace after TIME (10, 500ms, 5m, 1h)"
    )


def add_kinds(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_argument_group("what to count")
    only = kinds.add_mutually_exclusive_group()
    only.add_argument("--refs-only", action="store_true", help="only reference counts")
    only.add_argument("--heap-only", action="store_true", help="only allocations")
    kinds.add_argument(
        "--mappings", action=argparse.BooleanOptionalAction, default=True, help="count mmap and munmap too (default)"
    )
    kinds.add_argument(
        "--reachability", choices=("auto", "off"), default="auto",
        help="read the memory of a process at its end, or stop it for that where the trace ends first, and tell what "
        "is lost from what something still points at (auto)",
    )
    kinds.add_argument(
        "--no-stop", action="store_true",
        help="never stop a process that runs on to read its memory: read it so often that nothing that is held can be "
        "called lost",
    )
    kinds.add_argument(
        "--allocator", action="append", default=[], metavar="PATH", type=existing_file,
        help="a library whose malloc family is an allocator (may be given more than once)",
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    kept = parser.add_argument_group("which blocks of allocators to keep (docs/sampling.md)")
    kept.add_argument("--min-size", type=block_size, default=0, metavar="BYTES", help="those of at least BYTES")
    kept.add_argument("--max-size", type=block_size, default=ANY_SIZE, metavar="BYTES", help="those of at most BYTES")
    kept.add_argument(
        "--sample-bytes", type=count_or_size, default=0, metavar="N",
        help="about one of every N bytes that are allocated draws its block; the report scales, with its error",
    )


def add_specs(parser: argparse.ArgumentParser) -> None:
    specs = parser.add_argument_group("what functions mean (docs/specs.md)")
    specs.add_argument("--type", dest="types", action="append", default=[], metavar="SPEC",
                       help="a counted type: 'conn:create=conn_new,get=conn_ref,put=conn_unref'; or an allocator: "
                            "'alloc pool:alloc=my_alloc(size=arg0),free=my_free'")  # fmt: skip
    specs.add_argument("--spec", dest="specs", action="append", default=[], metavar="FILE", type=Path,
                       help="types and allocators described in TOML")  # fmt: skip
    specs.add_argument("--preset", dest="presets", action="extend", type=listed, default=[], metavar="NAME",
                       help="a shipped spec, or `auto` for all; see `refleak specs`")  # fmt: skip


def add_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("how much to keep")
    limits.add_argument("--max-objects", type=count_or_size, default=1 << 22, metavar="N", help="live blocks (4M)")
    limits.add_argument("--max-stacks", type=count_or_size, default=1 << 20, metavar="N", help="different stacks (1M)")
    limits.add_argument("--max-threads", type=count_or_size, default=1 << 15, metavar="N",
                        help="threads and processes at once (32K)")  # fmt: skip
    limits.add_argument(
        "--keep-freed", type=freed_count, default=100_000, metavar="N",
        help="freed blocks, to know one that is freed again (100000); 0: none",
    )
    limits.add_argument(
        "--max-scan", type=block_size, metavar="BYTES",
        help="do not read the memory of a process, for what is lost, if it is more (what can be read in 4 s)",
    )
    limits.add_argument(
        "--hold", type=hold_seconds, metavar="SECONDS",
        help="do not hold a process for longer than this, until its probes are in place or its memory is read (5; 20"
        " while a binary is looked at for the first time)",
    )
    limits.add_argument(
        "--ring-size", type=count_or_size, default=1 << 26, metavar="BYTES", help="of the ring of events (64M)"
    )


def add_formats(parser: argparse.ArgumentParser, names: Sequence[str]) -> argparse._ArgumentGroup:
    report = parser.add_argument_group("how to report")
    report.add_argument(
        "--format", type=format_named, choices=names, metavar="FORMAT",
        help=f"{', '.join(names)}; by default as -o's suffix says",
    )
    report.add_argument(
        "-o", "--output", type=output_path, action=Once, metavar="FILE", help="write the report to FILE"
    )
    report.add_argument("--top", type=entry_count, metavar="N", default=10, help="show the N biggest entries only (10)")
    add_look(report)
    return report


def add_look(parser: argparse._ActionsContainer) -> None:
    """Add what a text looks like, whatever it is of."""
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto",
        help="colours in text: auto is on a terminal, unless NO_COLOR is set",
    )
    parser.add_argument("--width", type=columns, metavar="N", help="columns of text; by default the terminal's, or 80")


def add_output(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    report = add_formats(parser, NAMES)
    add_source_root(report, "sarif, junit, xunit")
    return report


def add_source_root(report: argparse._ArgumentGroup, formats: str) -> None:
    report.add_argument(
        "--source-root", type=Path, metavar="DIR", help=f"name source files below DIR relative to it ({formats})"
    )


def add_analysis(parser: argparse.ArgumentParser) -> None:
    analysis = parser.add_argument_group("how to judge")
    analysis.add_argument(
        "--suppressions", action="append", default=[], metavar="FILE", type=Path,
        help="leaks to pass over, in LeakSanitizer's syntax or valgrind's",
    )  # fmt: skip
    analysis.add_argument(
        "--no-default-suppressions", action="store_true", help="report one-off allocations of libc too"
    )
    analysis.add_argument("--no-demangle", action="store_true", help="print C++ and Rust names as they are linked")
    analysis.add_argument(
        "--debug-dir", action="append", default=[], metavar="DIR", help="look for separate debug files there too"
    )


def _classes(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if "all" in words:
        return SHOWABLE
    unknown = [word for word in words if word not in SHOWABLE]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(SHOWABLE)}, all")
    return words


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add what every report of one run has; a recording gives the same ones."""
    report = add_output(parser)
    report.add_argument(
        "--balance", choices=TREES, default=PRUNED,
        help="balance trees of counted objects: whole, without what is balanced (default), or none",
    )  # fmt: skip
    report.add_argument(
        "--show", type=_classes, default=SHOWN, metavar="LIST",
        help=f"classes of memory to list: {', '.join(SHOWABLE)}, all (lost,possible)",
    )  # fmt: skip
    report.add_argument(
        "--gen-suppressions", choices=("lsan", "valgrind"), metavar="SYNTAX",
        help="instead of the report print a suppression for each entry: lsan or valgrind",
    )  # fmt: skip
    report.add_argument(
        "--older", type=duration_ns, default=0, metavar="TIME", dest="older_ns",
        help="list only what is older than TIME (10, 500ms, 5m, 1h) at the end of the trace or of its process",
    )
    add_analysis(parser)


def add_interval(parser: argparse.ArgumentParser) -> None:
    during = parser.add_argument_group("while it runs (SIGUSR1 to refleak takes a checkpoint)")
    during.add_argument(
        "--interval", type=interval, metavar="TIME",
        help="every TIME (10, 500ms, 5m) print what is outstanding, and the difference to the time before; with"
             " -o FILE.SUFFIX write whole reports too, FILE.0001.SUFFIX and so on",
    )  # fmt: skip
    during.add_argument(
        "--scan-live", action="store_true",
        help="stop the target at each of these reports, and at each checkpoint, for as long as reading its memory "
        "takes, and tell what is lost by then, and who holds the rest (docs/reachability.md)",
    )


def add_recording(parser: argparse.ArgumentParser) -> None:
    recording = parser.add_argument_group("recording: -o FILE.refleak, for `refleak report` and `refleak diff`")
    recording.add_argument("--force", action="store_true", help="replace a recording that exists")
    recording.add_argument(
        "--no-symbols", action="store_true", help="leave symbols out, to look them up where the binaries are"
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    policy = parser.add_argument_group("when to fail")
    policy.add_argument(
        "--baseline", type=Path, metavar="OLD", help="recording or JSON report: only what is new or has grown counts"
    )
    policy.add_argument(
        "--fail-on", type=_policy, metavar="LIST",
        help="fail on any of: leaks, errors, outstanding, incomplete, lost, possible, reachable, stack, bytes>SIZE,"
             " count>N, or a type's name",
    )  # fmt: skip
    add_error_exitcode(policy, "exit with N if anything leaked or an error was found (with --fail-on: N in place of 1)")


def add_allow_missing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-missing", action="store_true",
        help="what --type, --spec and --preset name need not be found in what runs (else the exit status is 68)",
    )


def add_error_exitcode(parser: argparse._ActionsContainer, text: str) -> None:
    parser.add_argument("--error-exitcode", type=exit_status, metavar="N", help=text)


def _policy(text: str) -> Policy:
    try:
        return parse_policy(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="store_true", help="say more; all of the verifier's words")


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    add_verbose(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no status line")


def add_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stats", action="store_true",
        help="say at the end where refleak's own time went, and what the trace had to do: walks, frames, rings, holds",
    )


def command_with_sudo(arguments: Sequence[str]) -> str:
    """Return the command that was typed, with sudo before it."""
    program = os.environ.get("REFLEAK_COMMAND", sys.argv[0])
    return " ".join(["sudo", program, *arguments])
