"""Function names cut to a column, without losing what tells them apart."""

from __future__ import annotations

from tracer.late_patterns import late_pattern

_OPERATOR = late_pattern(r"operator ?(<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>|\(\))")
_HIDDEN = {"<": "\ue000", ">": "\ue001", "(": "\ue002", ")": "\ue003"}
_SHOWN = str.maketrans({hidden: shown for shown, hidden in _HIDDEN.items()})
_HIDE = str.maketrans(_HIDDEN)
_TAG = late_pattern(r"\[abi:[^\]]*\]")
"""abi_tag of GCC; numba has the arguments' types and the options of a compilation in such tags."""
_LEAST = 8


def shorten(name: str, room: int) -> str:
    """Return `name` in at most `room` characters (never less than 8).

    First go the tags of an ABI, then the arguments, then what templates are instantiated with, then the return type
    and the outer namespaces; `..` stands for each but the tags.
    """
    room = max(room, _LEAST)
    if len(name) <= room:
        return name
    text = _OPERATOR.sub(lambda match: match.group().translate(_HIDE), name)
    for step in (_without_tags, _without_arguments, _without_inner_templates, _without_templates, _without_result):
        text = step(text)
        if len(text) <= room:
            return text.translate(_SHOWN)
    tail = text[2 - room :]
    scope = tail.find("::", 0, tail.find("<") if "<" in tail else None)
    return ".." + (tail[scope + 2 :] if scope >= 0 else tail).translate(_SHOWN)


def innermost(name: str, room: int) -> str:
    """Return `name` without its arguments, its templates' and as many outer namespaces as it takes to fit `room`.

    What remains may still be longer: its beginning tells it apart from others then.
    """
    if len(name) <= room:
        return name
    text = _OPERATOR.sub(lambda match: match.group().translate(_HIDE), name)
    for step in (_without_tags, _without_arguments, _without_inner_templates, _without_templates, _without_result):
        text = step(text)
    text = text.replace("(..)", "")
    while len(text) > room and "::" in text:
        text = text.partition("::")[2]
    return text.translate(_SHOWN)


def _without_tags(text: str) -> str:
    return _TAG.sub("", text)


def _without_arguments(text: str) -> str:
    end = text.rfind(")")
    start = _opening(text, end)
    if start <= 0 or text[start:].startswith("(anonymous"):
        return text
    return f"{text[:start]}(..){text[end + 1 :]}" if end - start > 1 else text


def _opening(text: str, end: int) -> int:
    depth = 0
    for at in range(end, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    return -1


def _without_inner_templates(text: str) -> str:
    return _collapse(text, 2)


def _without_templates(text: str) -> str:
    return _collapse(text, 1)


def _collapse(text: str, level: int) -> str:
    """Replace the contents of angle brackets that are nested at least `level` deep."""
    out, depth = [], 0
    for character in text:
        if character == ">":
            depth -= 1
            if depth == level - 1:
                out.append("..")
        if depth < level:
            out.append(character)
        if character == "<":
            depth += 1
    return "".join(out) if depth == 0 else text


def _without_result(text: str) -> str:
    head, operator, tail = text.partition("operator")
    start = head.rfind(" ", 0, head.find("(") if "(" in head else None) + 1
    return head[start:] + operator + tail
