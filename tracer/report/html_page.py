"""The interactive page: one file that needs nothing else, in any browser, without a network.

Its parts lie in web/. The data stand in it as JSON and reach the page as text nodes only; its policy lets no script
run but ours (by hash), and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import TextIO

from tracer.model.findings import Findings
from tracer.report.html_document import html_document
from tracer.report.scope import command

_SCRIPTS = ("elements.js", "flame.js", "leaks.js", "holders.js", "balance.js", "page.js")


def write_html(findings: Findings, stream: TextIO) -> None:
    """Write the page of a report."""
    write_page(_title(findings), html_document(findings), _SCRIPTS, stream)


def write_page(title: str, document: dict[str, object], scripts: tuple[str, ...], stream: TextIO) -> None:
    """Write a page that these scripts of web/ draw from the document."""
    script = "'use strict';\n(() => {\n" + "".join(_part(name) for name in scripts) + "})();\n"
    style = _part("page.css")
    stream.write(
        Template(_part("page.html")).substitute(
            title=html.escape(title),
            script=script,
            style=style,
            script_hash=_hash(script),
            style_hash=_hash(style),
            data=_harmless(json.dumps(document, separators=(",", ":"))),
        )
    )


def _title(findings: Findings) -> str:
    target = command(findings.processes[0]) if findings.processes else ""
    shown = "".join(character if character.isprintable() else "?" for character in target)
    return f"refleak: {shown}" if shown else "refleak"


def _part(name: str) -> str:
    return (files("tracer.report") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return a source expression (W3C, "Content Security Policy Level 3", section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _harmless(data: str) -> str:
    """Keep JSON from ending its element or opening a comment in it; an escape is the same text to the parser."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
