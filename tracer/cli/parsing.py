"""The parsers of all subcommands, and how their words are read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

from tracer import __version__
from tracer.cli.command_words import split_command
from tracer.cli.main import command_module
from tracer.errors import UsageError
from tracer.late_patterns import late_pattern
from tracer.report.formats import NAMES, format_named

_UNRECOGNIZED = "unrecognized arguments: "
_LEAST_BEGINNING = len("--x")
_CHOICE = late_pattern(r".*invalid choice: '(?P<typed>.*)' \(choose from (?P<choices>.*)\)", re.DOTALL)
_SWITCH = late_pattern(r"argument (?P<names>--[\w-]+(?:/--[\w-]+)*): ignored explicit argument .*", re.DOTALL)
_OF_OTHERS = {
    "timeout": "duration", "time": "duration", "file": "output", "log-file": "output", "threads": "max-threads",
    "children": "follow-forks", "trace-children": "follow-forks", "command": "exec", "limit": "top", "count": "top",
    "fail-on": "error-exitcode",
}
"""What other tools call it."""
_EXAMPLES = """\
examples:
  sudo refleak ./perf probe -x /bin/true main
  sudo refleak -p PID --tree              # without --tree: not its children
  sudo refleak -p nginx                   # all of that name
  sudo refleak -o report.html CMD ...     # options of refleak come first
  sudo refleak -o run.refleak CMD ...     # then: refleak report run.refleak

other commands: refleak report | diff | top | doctor | probes | specs | discover
"""


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand; of the main job for the empty name."""
    command = command_module(name)
    parser = _Parser(
        prog=f"refleak {name}".rstrip(), description=command.__doc__, epilog=None if name else _EXAMPLES,
        formatter_class=_HelpFormatter, allow_abbrev=False, add_help=False,
        usage=getattr(command, "USAGE", None),
    )  # fmt: skip
    most_used = getattr(command, "MOST_USED", ())
    if most_used:
        parser.add_argument("-h", action=_ShortHelp, nargs=0, help="show the options that are used most")
    parser.add_argument(*["-h"] * (not most_used), "--help", action="help", help="show all options")
    parser.add_argument("--version", action="version", version=f"refleak {__version__}", help="show the version")
    command.add_arguments(parser)
    parser.most_used = most_used
    return parser


def parse(name: str, command: ModuleType, words: Sequence[str]) -> argparse.Namespace:
    """Read the words behind a subcommand's name. What a target's command line is, is left as it was typed."""
    parser = parser_of(name)
    if not getattr(command, "TAKES_TARGET", False):
        return parser.parse_args(words)
    own, target = split_command(words, parser)
    parsed = parser.parse_args(own)
    if target is not None:
        parsed.command = target
    return parsed


class _HelpFormatter(argparse.HelpFormatter):
    """One that fits text to the terminal, by paragraphs; examples, which are indented, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            paragraph if "\n  " in paragraph else super(_HelpFormatter, self)._fill_text(paragraph, width, indent)
            for paragraph in paragraphs
        )


class _Parser(argparse.ArgumentParser):
    """One that says in a line what is wrong, instead of all that there is."""

    most_used: Sequence[str] = ()
    """The destinations of the options in the short help; none where there is only the long one."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self._meant(message) or f"see {self.prog} --help")

    def _meant(self, message: str) -> str | None:
        """Return which option or choice a misspelt one is like."""
        long = [option for option in self._option_string_actions if option.startswith("--")]
        if (switch := _SWITCH.fullmatch(message)) is not None:
            return f"it takes no value: {' or '.join(switch['names'].split('/'))}"
        if (choice := _CHOICE.fullmatch(message)) is not None:
            close = get_close_matches(choice["typed"].lower(), re.findall(r"'([^']*)'", choice["choices"]), 1)
            return f"did you mean {close[0]}?" if close else None
        words = message.removeprefix(_UNRECOGNIZED).split()
        if not message.startswith(_UNRECOGNIZED) or not words or not words[0].startswith("-"):
            return None
        meant = _option_like(words[0].lstrip("-").partition("=")[0], long)
        return f"did you mean {meant}?" if meant else None

    def format_short_help(self) -> str:
        actions = {action.dest: action for action in self._actions}
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text((self.description or "").strip().partition("\n")[0])
        formatter.start_section("used most")
        formatter.add_arguments([actions[name] for name in self.most_used])
        formatter.end_section()
        formatter.add_text(self.epilog)
        formatter.add_text(f"{self.prog} --help shows all options.")
        return formatter.format_help()


def _option_like(typed: str, long: Sequence[str]) -> str | None:
    """Return the option that a word without its dashes is meant for. One letter is like none."""
    if "--format" in long and format_named(typed) in NAMES:
        return f"--format {format_named(typed)}"
    parts = [f"--{part}" for part in (_OF_OTHERS.get(typed, typed), *reversed(typed.split("-")))]
    named = [part for part in parts if part in long]
    begun = [option for option in long if len(parts[0]) > _LEAST_BEGINNING and option.startswith(parts[0])]
    close = get_close_matches(f"--{typed}", long, 1) if len(typed) > 1 else []
    return next(iter((*named, *begun, *close)), None)


class _ShortHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        assert isinstance(parser, _Parser)
        print(parser.format_short_help(), end="")
        parser.exit()
