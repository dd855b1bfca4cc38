"""Command words: which of a command line are refleak's, and which are the target's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def split_command(
    words: Sequence[str], parser: argparse.ArgumentParser
) -> tuple[list[str], list[str] | None]:  # fmt: skip
    """Return refleak's options, and the command: all from the first word that is neither an option nor an option's
    value, or all behind `--exec` or `--`, or both. None where there is no such word.
    """
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("--exec", "--"):
            both = word == "--exec" and list(words[at + 1 : at + 2]) == ["--"]  # no command has that name
            return list(words[:at]), list(words[at + 1 + both :])
        if not word.startswith("-") or word == "-":
            return list(words[:at]), list(words[at:])
        at += 1 + _takes_next(word, parser._option_string_actions)
    return list(words), None


def _takes_next(word: str, actions: dict[str, argparse.Action]) -> bool:
    """Tell whether the word after an option is its value."""
    if word.startswith("--"):
        return "=" not in word and _has_value(actions.get(word))
    for place, letter in enumerate(word[1:], start=1):  # -qo FILE, -qoFILE
        if _has_value(actions.get(f"-{letter}")):
            return place == len(word) - 1
    return False


def _has_value(action: argparse.Action | None) -> bool:
    return action is not None and action.nargs != 0
