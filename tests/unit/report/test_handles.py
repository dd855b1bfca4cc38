"""Objects that are known by a number, not by an address."""

from __future__ import annotations

import io
from dataclasses import replace

from hand_made import server

from tracer.analysis import analyse
from tracer.model.findings import Findings, Instance
from tracer.report.html_document import html_document
from tracer.report.text import write_text


def found(address: int) -> Findings:
    snap, code = server()
    findings = analyse(snap, code.symbols)
    one = Instance(address, None, 1, 0, 812)
    reference, block = (replace(leak, instances=(one,)) for leak in findings.leaks[:2])
    error = replace(findings.errors[0], address=address)
    return replace(findings, leaks=(reference, block), errors=(error, replace(error, kind="invalid-free")))


def lines(findings: Findings) -> list[str]:
    out = io.StringIO()
    write_text(findings, out)
    return [line.strip() for line in out.getvalue().splitlines()]


def test_a_handle_is_shown_as_a_number() -> None:
    said = lines(found(3))
    assert [line for line in said if line.startswith("number 3")]
    assert [line for line in said if line.startswith("at 0x3")]  # the block
    heads = [line for line in said if line.startswith(("E1", "E2"))]
    assert " number 3" in heads[0] and " at 0x3" in heads[1]


def test_an_address_stays_one() -> None:
    said = lines(found(0x55D2C0))
    assert not [line for line in said if " number " in f" {line}"]
    assert len([line for line in said if line.startswith("at 0x55d2c0")]) == 2


def test_the_page_shows_them_as_the_text_does() -> None:
    page = html_document(found(3))
    entries = page["leaks"]
    assert isinstance(entries, list)
    assert [entry["at"] for entry in entries] == [["3"], ["0x3"]]
