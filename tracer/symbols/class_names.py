"""Types that are called by their vtable's symbol, as the programmer calls the class."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.symbols.demangling import demangled

_VTABLE = "_ZTV"
_DESCRIBED = "vtable for "


def class_names(types: Mapping[int, str]) -> dict[int, str]:
    """Return the types with `_ZTV4Conn` called `Conn`; `_ZTV4Conn+0x28`, within a vtable, `vtable for Conn+0x28`."""
    stems = {name: name.partition("+")[0] for name in types.values() if name.startswith(_VTABLE)}
    written = demangled(set(stems.values())) if stems else {}
    return {number: _called(name, stems, written) for number, name in types.items()}


def _called(name: str, stems: Mapping[str, str], written: Mapping[str, str]) -> str:
    if name not in stems:
        return name
    text = written[stems[name]]
    return text.removeprefix(_DESCRIBED) if name == stems[name] else text + name.removeprefix(stems[name])
