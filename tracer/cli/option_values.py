"""Values of options: what their words mean, and what is wrong with them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tracer.errors import UsageError

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _number(text: str) -> int:
    number, suffix = text.strip(), ""
    if number and number[-1].upper() in "KMG":
        number, suffix = number[:-1], number[-1].upper()
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 4096, 64K or 16M")
    return int(number) * _SUFFIXES[suffix]


def _within(number: int, text: str, least: int, most: int) -> int:
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not between {least} and {most}")
    return number


def count_or_size(text: str) -> int:
    """Parse 4096, 64K, 16M or 1G, which is the most that the kernel's maps and rings take."""
    return _within(_number(text), text, 1, 1 << 30)


def block_size(text: str) -> int:
    return _within(_number(text), text, 0, 1 << 60)


def _whole(text: str, least: int, most: int) -> int:
    try:
        return _within(int(text), text, least, most)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def exit_status(text: str) -> int:
    return _whole(text, 0, 255)


def freed_count(text: str) -> int:
    """Parse how many freed blocks to keep: each takes up to 200 bytes of the kernel's memory."""
    return _within(_number(text), text, 0, 1 << 26)


def entry_count(text: str) -> int:
    return _whole(text, 0, 1 << 30)


def columns(text: str) -> int:
    return _whole(text, 40, 1 << 16)


def existing_file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def hold_seconds(text: str) -> float:
    """A hold ends by its turns too: HOLD_TURNS of tracer.kernel.programs."""
    value = _seconds(text)
    if not 1 <= value <= 20:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 20")
    return value


_DURATIONS = {"": 10**9, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


def duration_ns(text: str) -> int:
    """Parse 10, 2.5s, 500ms, 5m or 1h; a number alone is seconds."""
    number = text.strip().rstrip("msinh")
    factor = _DURATIONS.get(text.strip()[len(number) :].strip())
    try:
        value = float(number) * factor if factor is not None else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e18:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 10, 500ms, 5m or 1h")
    return round(value)


def some_time(text: str) -> float:
    """Parse a duration, which ends a trace, into seconds."""
    value = duration_ns(text) / 1e9
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to trace anything in")
    return value


def interval(text: str) -> float:
    value = duration_ns(text) / 1e9
    if value < 0.1:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 0.1 seconds")
    return value


def listed(text: str) -> list[str]:
    """Part at commas; an empty word stays one, to be refused."""
    return text.split(",")


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


class Once(argparse.Action):
    """An option of which the last one would win, and the others be passed over without a word."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest)
        if before is not None:
            raise UsageError(
                f"{option} is given twice, with {before} and {values}",
                "one run writes one file: a recording (-o run.refleak), of which `refleak report` makes every report",
            )
        setattr(namespace, self.dest, values)


def output_path(text: str) -> Path:
    """stdout is the target's: a report among its output would be of no use to a program that reads either."""
    if text == "-":
        raise argparse.ArgumentTypeError(
            "'-' is no file: without -o a trace's report goes to stderr, that of a recording to stdout"
        )
    return Path(text)
