"""Numbers as people read them."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return "1 block", "1,310 blocks"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def size(size_bytes: int) -> str:
    """Return a size in powers of 1024: "512 bytes", "4.0 MiB"."""
    if size_bytes < 1024:
        return counted(size_bytes, "byte")
    value, unit = size_bytes / 1024, 0
    while round(value, 1) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:,.1f} {_UNITS[unit]}"


def exact_size(size_bytes: int) -> str:
    """Return a size with its exact bytes: "12.3 KiB (12,595 bytes)"."""
    return size(size_bytes) if size_bytes < 1024 else f"{size(size_bytes)} ({size_bytes:,} bytes)"


def duration(time_ns: int) -> str:
    """Return "2.1 ms", "61.0 s", "5 min 3 s", "2 h 5 min"."""
    seconds = time_ns / 1e9
    if time_ns < 1_000_000:
        return f"{time_ns / 1e3:.1f} us" if time_ns >= 1000 else f"{time_ns} ns"
    if seconds < 0.9995:
        return f"{time_ns / 1e6:.1f} ms"
    if seconds < 119.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
