"""Text that may stand in XML 1.0."""

from __future__ import annotations

from tracer.late_patterns import late_pattern

_ESCAPES = str.maketrans({
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;",
})  # fmt: skip
_FORBIDDEN = late_pattern("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_safe(text: str) -> str:
    """Write as \\xNN what XML 1.0 (section 2.2) forbids even in escaped form: names are the target's to choose."""
    return _FORBIDDEN.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)


def xml_escaped(text: str) -> str:
    """Return text fit for an element or a quoted attribute."""
    return xml_safe(text).translate(_ESCAPES)
