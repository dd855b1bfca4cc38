"""The command line as data: commands, their groups of options, and what each option says."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tracer.analysis.policy import WORDS
from tracer.cli.main import COMMANDS, command_module
from tracer.cli.parsing import parser_of
from tracer.report.class_words import SHOWABLE
from tracer.specs.presets import preset_names

_WORDS = {
    "presets": ("auto", *preset_names()), "name": tuple(preset_names()), "fail_on": WORDS, "show": (*SHOWABLE, "all"),
}  # fmt: skip
"""What a value may begin with that is no choice from a few, by destination."""
_LISTS = ("fail_on", "show")
RUN = "run"
"""Before a command that is to be traced."""


@dataclass(frozen=True)
class Option:
    flags: tuple[str, ...]
    """Empty for a positional argument."""
    value: str
    """What stands for its value; empty where it takes none."""
    help: str
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """What completes its value: its choices, or what else is known of it."""
    is_path: bool = False
    repeats: bool = False
    """Whether it may be given more than once."""
    is_list: bool = False
    """Whether its value is some of the words, with commas in between."""

    @property
    def forms(self) -> tuple[str, ...]:
        """Return the ways to write it, each with its value."""
        return tuple(f"{flag} {self.value}".rstrip() for flag in self.flags) or (self.value,)


@dataclass(frozen=True)
class Group:
    title: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Command:
    name: str
    """Empty for the main job."""
    summary: str
    """The first line of its help."""
    text: str
    groups: tuple[Group, ...]
    examples: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"refleak {self.name}".rstrip()

    @property
    def synopsis(self) -> str:
        words = [option.value for group in self.groups for option in group.options if not option.flags]
        if not self.name:
            return f"{self.title} [OPTION ...] CMD ... | -p PID"
        return " ".join([self.title, "[OPTION ...]", *words])

    @property
    def options(self) -> tuple[Option, ...]:
        return tuple(option for group in self.groups for option in group.options)


def commands() -> list[Command]:
    """Return the main job, then the subcommands by name."""
    return [_command(name) for name in ("", *sorted(COMMANDS))]


def _command(name: str) -> Command:
    parser = parser_of(name)
    summary, _, text = (command_module(name).__doc__ or "").strip().partition("\n\n")
    groups = [Group(_title(group), tuple(_options(group))) for group in parser._action_groups]
    examples = [line.strip() for line in (parser.epilog or "").splitlines() if line.startswith("  ")]
    return Command(
        name, " ".join(summary.split()), text.strip(), tuple(group for group in groups if group.options),
        tuple(examples),
    )  # fmt: skip


def _title(group: argparse._ArgumentGroup) -> str:
    return {"positional arguments": "arguments"}.get(group.title or "", group.title or "options")


def _options(group: argparse._ArgumentGroup) -> Iterator[Option]:
    for action in group._group_actions:
        if action.help == argparse.SUPPRESS:
            continue
        text = (action.help or "").replace(" (default: %(default)s)", "")
        choices = tuple(map(str, action.choices or ()))
        is_path = getattr(action.type, "__name__", "") == "Path" or action.metavar in ("FILE", "PATH", "DIR")
        yield Option(
            tuple(action.option_strings), _value(action), re.sub(r"%%", "%", text), choices,
            choices or _WORDS.get(action.dest, ()), is_path, isinstance(action, argparse._AppendAction),
            action.dest in _LISTS,
        )


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    value = str(action.metavar or action.dest.upper())
    if action.nargs == argparse.REMAINDER and action.option_strings:
        return f"{value} [ARGUMENT ...]"
    return f"[{value}]" if action.nargs == "?" else f"{value} ..." if action.nargs in ("*", "+") else value
