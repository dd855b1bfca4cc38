"""A flame graph as a picture: no script, so that it can stand in a page or a merge request."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TextIO

from tracer.late_dataclasses import dataclass
from tracer.model.findings import Findings
from tracer.report.amounts import counted, exact_size
from tracer.report.flame_tree import FlameNode, flame_tree
from tracer.report.names import shorten
from tracer.report.verdict_line import verdict
from tracer.report.weights import Weight, call_paths
from tracer.report.xml_text import xml_escaped

_WIDTH, _MARGIN, _ROW = 1200, 12, 18
_CHARACTER = 6.7
"""Width of a letter of the font, in pixels, with some to spare."""
_LEAST_WIDTH = 0.4
_HEAD, _TITLE = 58, 34
_STYLE = """\
text{font:12px monospace;fill:#1b1b1b}
.title{font:600 15px sans-serif}
.verdict{font:13px sans-serif}
rect{stroke:#fff;stroke-width:.6}
"""


@dataclass(frozen=True)
class _Panel:
    """One graph: memory by bytes, or references by objects."""

    title: str
    root: FlameNode
    in_bytes: bool

    def width_of(self, weight: Weight) -> int:
        return weight.bytes if self.in_bytes else weight.count

    @property
    def height(self) -> int:
        return _TITLE + (self.root.depth + 1) * _ROW + _MARGIN


def write_flame_svg(findings: Findings, stream: TextIO) -> None:
    """Write one graph of memory, as wide as its bytes, and one of references, as wide as their objects.

    Outermost functions are on top. Each box tells its exact count and bytes; data-count and data-bytes have them too.
    """
    panels = _panels(findings)
    height = _HEAD + sum(panel.height for panel in panels)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{_WIDTH}"'
        f' height="{height}" viewBox="0 0 {_WIDTH} {height}">\n<style>{_STYLE}</style>\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n'
    )
    _text(stream, _MARGIN, 24, "Outstanding references and memory, by call path", "title")
    _text(stream, _MARGIN, 44, verdict(findings).text[: int(_WIDTH / 6.5)], "verdict")
    top = _HEAD
    for panel in panels:
        stream.write(f'<g data-count="{panel.root.weight.count}" data-bytes="{panel.root.weight.bytes}">\n')
        _text(stream, _MARGIN, top + 22, panel.title, "title")
        for box in _boxes(panel, top + _TITLE):
            stream.write(box)
        stream.write("</g>\n")
        top += panel.height
    stream.write("</svg>\n")


def _panels(findings: Findings) -> list[_Panel]:
    paths = call_paths(findings)
    memory = [path for path in paths if path.leak.kind != "reference"]
    references = [path for path in paths if path.leak.kind == "reference"]
    panels = []
    if memory or not references:
        panels.append(_Panel("Memory: width is bytes", flame_tree("memory", memory), in_bytes=True))
    if references:
        panels.append(_Panel("References: width is objects", flame_tree("references", references), in_bytes=False))
    return panels


def _boxes(panel: _Panel, top: float) -> Iterator[str]:
    """Yield the boxes, level by level. Those too thin to be seen are left out, and so is what they call."""
    whole = panel.width_of(panel.root.weight)
    scale = (_WIDTH - 2 * _MARGIN) / whole if whole else 0
    level: list[tuple[FlameNode, float]] = [(panel.root, _MARGIN)]
    while level:
        below = []
        for node, left in level:
            width = panel.width_of(node.weight) * scale
            yield _box(node, left, top, width, panel.root.weight, whole)
            for child in sorted(node.children.values(), key=lambda child: child.name):
                child_width = panel.width_of(child.weight) * scale
                if child_width >= _LEAST_WIDTH:
                    below.append((child, left))
                left += child_width
        level = below
        top += _ROW


def _box(node: FlameNode, left: float, top: float, width: float, whole: Weight, scale: int) -> str:
    room = int((width - 6) / _CHARACTER)
    label = xml_escaped(shorten(node.name, room)) if room >= 8 or len(node.name) <= room else ""
    text = f'<text x="{left + 3:.1f}" y="{top + 13:.1f}">{label}</text>' if label else ""
    return (
        f'<g><title>{xml_escaped(f"{node.name}: {_amount(node.weight, whole)}")}</title>'
        f'<rect x="{left:.2f}" y="{top:.1f}" width="{width:.2f}" height="{_ROW - 1}" rx="1"'
        f' fill="{_colour(node.name) if scale else "#ddd"}"/>{text}</g>\n'
    )


def _amount(weight: Weight, whole: Weight) -> str:
    if not whole.bytes:
        share = 100 * weight.count / whole.count if whole.count else 0
        return f"{counted(weight.count, 'object')} ({share:.1f} %)"
    return f"{exact_size(weight.bytes)} in {counted(weight.count, 'block')} ({100 * weight.bytes / whole.bytes:.1f} %)"


def _colour(name: str) -> str:
    """A warm colour that a name has in every graph."""
    hash_ = zlib.crc32(name.encode("utf-8", "backslashreplace"))
    return f"hsl({15 + hash_ % 40},{70 + hash_ // 64 % 20}%,{64 + hash_ // 4096 % 14}%)"


def _text(stream: TextIO, left: float, baseline: float, text: str, kind: str) -> None:
    stream.write(f'<text class="{kind}" x="{left}" y="{baseline}">{xml_escaped(text)}</text>\n')
