"""--fail-on and --baseline: what counts, and what does not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hand_made import server

from tracer.analysis.analysis import analyse
from tracer.analysis.baseline import against_baseline
from tracer.analysis.comparison import compare, error_id
from tracer.analysis.policy import ANY_FINDING, parse_policy
from tracer.model.comparison import Amount
from tracer.model.findings import LOST, REACHABLE, Findings
from tracer.report.comparison_words import amount_words, change_words


def found() -> Findings:
    snapshot, code = server()
    return analyse(snapshot, code.symbols)


def broken(policy: str, findings: Findings | None = None) -> tuple[str, ...]:
    return parse_policy(policy).broken_by(found() if findings is None else findings)


def clean() -> Findings:
    return replace(found(), leaks=(), errors=(), partly_seen=())


@pytest.mark.parametrize(
    ("policy", "phrases"),
    [
        ("leaks", ("5 entries leaked",)),
        ("errors", ("1 error",)),
        ("outstanding", ()),
        ("incomplete", ("not all of map was seen",)),
        ("count>12", ()),
        ("count>11", ("count 12 > 11",)),
        ("bytes>1077333", ()),
        ("bytes>1077332", ("bytes 1,077,333 > 1,077,332",)),
        ("bytes>1m", ("bytes 1,077,333 > 1,048,576",)),
        ("bytes>2M", ()),
        ("dso", ("2 x dso",)),
        ("d?o", ("2 x dso",)),
        ("map", ()),
        ("type:leaks", ()),
        (" map , errors,leaks ", ("1 error", "5 entries leaked")),
    ],
)
def test_conditions(policy: str, phrases: tuple[str, ...]) -> None:
    assert broken(policy) == phrases


@pytest.mark.parametrize("policy", ["leaks", "errors", "outstanding", "incomplete", "count>0", "bytes>0", "dso", "*"])
def test_a_clean_run_breaks_nothing(policy: str) -> None:
    assert broken(policy, clean()) == ()


@pytest.mark.parametrize("word", ["leak", "Leaks", "error", "outstandin", "incomplet"])
def test_a_misspelt_word_is_no_type(word: str) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        parse_policy(word)
    assert parse_policy(f"type:{word}").conditions[0].name == word


def test_of_a_target_that_lives_amounts_count_but_no_leak() -> None:
    snapshot, code = server()
    findings = analyse(replace(snapshot, mode="attached", target_ended=False), code.symbols)
    assert broken("leaks", findings) == ()
    assert broken("outstanding,count>11", findings) == ("5 entries outstanding", "count 12 > 11")


def test_inherited_and_alive_at_exec_never_count() -> None:
    findings = found()
    for state in ("inherited", "alive-at-exec"):
        others = replace(findings, leaks=tuple(replace(leak, state=state) for leak in findings.leaks))
        assert broken("leaks,outstanding,count>0,bytes>0,dso", others) == ()


@pytest.mark.parametrize("text", ["", ",", "leaks,", "bytes", "bytes>", "bytes>x", "count>1x", "count>-1", "bytes>K"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a list|lacks its limit|no number"):
        parse_policy(text)


def test_error_exitcode_alone_means_leaks_and_errors() -> None:
    assert parse_policy("leaks,errors") == ANY_FINDING


def words(before: Findings, after: Findings) -> dict[str, str]:
    return {change.id: change.word for change in compare(before, after).changes}


def test_a_run_is_no_worse_than_itself() -> None:
    comparison = compare(found(), found())
    assert {change.word for change in comparison.changes} == {"same"} and not comparison.worse
    assert len(comparison.changes) == 6  # five leaks and an error; the inherited blocks take no part


def test_each_kind_of_change_has_its_word() -> None:
    findings = found()
    new, grown, shrunk, *_ = leaked = [leak for leak in findings.leaks if leak.state == "leaked"]
    before = replace(
        findings,
        errors=(),
        leaks=(replace(grown, count=grown.count - 1), replace(shrunk, bytes=(shrunk.bytes or 0) + 1), *leaked[3:]),
    )
    expected = {new.id: "new", grown.id: "grown", shrunk.id: "shrunk"} | {leak.id: "same" for leak in leaked[3:]}
    assert words(before, findings) == {**expected, error_id(findings.errors[0]): "new"}
    back = {"new": "gone", "grown": "shrunk", "shrunk": "grown", "same": "same"}
    after = {id_: back[word] for id_, word in words(before, findings).items()}
    assert words(findings, before) == after


def test_processes_are_summed() -> None:
    findings = found()
    one = findings.leaks[0]
    split = replace(findings, errors=(), leaks=(replace(one, count=1), replace(one, count=one.count - 1, pid=9)))
    assert words(replace(findings, errors=(), leaks=(one,)), split) == {one.id: "same"}


def test_against_itself_nothing_is_left_and_the_rest_is_counted() -> None:
    findings = against_baseline(found(), found(), "old.json")
    assert (findings.leaks, findings.errors) == ((), ())
    assert ANY_FINDING.broken_by(findings) == ()
    sentence = "baseline old.json: 6 entries are no more than it has, and not shown (14 in all, 1,077,333 bytes)"
    assert findings.notes[-1] == sentence


def test_only_what_is_new_or_grown_is_left_with_a_note() -> None:
    findings = found()
    new, grown, *_ = leaked = [leak for leak in findings.leaks if leak.state == "leaked"]
    before = replace(findings, leaks=(replace(grown, count=1, bytes=10), *leaked[2:]))
    left = against_baseline(findings, before, "old").leaks
    assert [leak.id for leak in left] == [new.id, grown.id]
    assert left[0].notes[-1] == "new since the baseline"
    now = f"{grown.count:,} ({grown.bytes:,} bytes) now" if grown.bytes is not None else f"{grown.count:,} now"
    assert left[1].notes[-1] == f"grown since the baseline: 1 (10 bytes) then, {now}"


def test_the_empty_baseline_leaves_all() -> None:
    findings = against_baseline(found(), clean(), "old")
    assert len(findings.leaks) == 5 and len(findings.errors) == 1
    assert findings.notes[-1] == "baseline old: none of its entries was found again unchanged"


@pytest.mark.parametrize("is_held_now", [False, True])
def test_what_was_held_by_something_says_so(is_held_now: bool) -> None:
    leak = next(leak for leak in found().leaks if leak.kind == "allocation")
    lost, held = (replace(found(), leaks=(replace(leak, reachability=word),)) for word in (LOST, REACHABLE))
    sides = (lost, held) if is_held_now else (held, lost)
    changes = {change.id: change for change in compare(*sides).changes}
    amount = Amount(leak.count, leak.bytes)
    assert changes[leak.id].held == amount
    text = change_words(changes[leak.id])
    assert text.endswith(f"; held {'now' if is_held_now else 'then'}: {amount_words(changes[leak.id], amount)}")
    if is_held_now:
        assert (changes[leak.id].before, changes[leak.id].after) == (amount, None)
    else:
        assert (changes[leak.id].before, changes[leak.id].after) == (None, amount)
        [entry] = against_baseline(lost, held, "old").leaks
        assert entry.notes[-1].startswith(f"new since the baseline, which held {leak.count:,} (")
    assert all(change.held is None for change in compare(held, held, with_held=True).changes)


@pytest.mark.parametrize(("text", "said"), [
    ("laek", "did you mean leaks"), ("errosr", "did you mean errors"), ("lots", "did you mean lost"),
    ("leaks>3", "a limit is bytes>10 or count>10"), ("conn>3", "a limit is"), ("leaks=3", "a limit is"),
])  # fmt: skip
def test_a_word_that_cannot_be_a_type_is_refused_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_policy(text)


@pytest.mark.parametrize("text", ["conn", "net::Conn<int>", "Map<a, b>", "type:laek", "type:a=b", "lock", "slot"])
def test_the_name_of_a_type_is_taken(text: str) -> None:
    parse_policy(text.replace(",", ""))
