"""Meant command: what a word that is none was seemingly written for."""

from __future__ import annotations

import re
import shlex
import shutil

from tracer.late_patterns import late_pattern

_OF_SHELLS = late_pattern(r"[|&;<>`]|\$\(")
_VARIABLE = late_pattern(r"[A-Za-z_]\w*=.*", re.DOTALL)


def meant_command(word: str) -> str | None:
    """Return how to write what was meant: a command line as one word, or a variable before the command. None where
    nothing speaks for either."""
    if _VARIABLE.fullmatch(word):
        return f"to set a variable: refleak env {shlex.quote(word)} CMD"
    if _OF_SHELLS.search(word) and " " in word:
        return f"a line for a shell: refleak sh -c {shlex.quote(word)}"
    first, blank, _ = word.partition(" ")
    if blank and shutil.which(first):
        return f"its arguments are words of their own: refleak {word}"
    return None
