"""Names that stay the same over runs and rebuilds."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from tracer.late_patterns import late_pattern
from tracer.model.findings import FrameList
from tracer.model.frames import Frame

_ID_BYTES = 6
_CLONE_SUFFIX = late_pattern(r"(\.(isra|part|constprop|cold|lto_priv|llvm)(\.\d+)*)+$")
_VERSION_SUFFIX = late_pattern(r"(-[\d.]+)?\.so(\.[\w.]+)?$")
_NO_PROGRAM = ("[", "//")
"""Begin the names of mappings that have no file."""


def module_key(module: str | None) -> str:
    """Return a library's basename without its version: `libm.so.6` and `libm-2.36.so` are `libm`. Empty for a program,
    which may be called anything: a renamed one has the same entries."""
    name, is_library = _VERSION_SUFFIX.subn("", module or "")
    return name if is_library or name.startswith(_NO_PROGRAM) else ""


def frame_key(frame: Frame) -> str:
    """Return what identifies a frame: function and module, never a line, nor an address where there is a name.

    Suffixes of compiler-made clones (`.isra.0`) are dropped: they come and go with the optimizer's mood.
    """
    module = module_key(frame.module) if frame.kind == "native" else frame.module or ""
    if frame.function:
        return f"{_CLONE_SUFFIX.sub('', frame.function)}@{module}"
    if frame.module:
        return f"{module}+{frame.address:#x}"
    return "?"


def stable_id(kind: str, type_name: str | None, frame_keys: Iterable[str]) -> str:
    """Return 12 hex digits (BLAKE2b, RFC 7693) over kind, type and the frames' keys, leaf first."""
    text = "\0".join((kind, type_name or "", *frame_keys, ""))
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=_ID_BYTES).hexdigest()


def keys_of(stack: FrameList) -> tuple[str, ...]:
    return tuple(frame_key(frame) for frame in stack)
