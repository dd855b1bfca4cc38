"""One leak or one error, as lines."""

from __future__ import annotations

from tracer.model.findings import BAD_FREES, REACHABLE, ErrorFinding, Leak, StackCount
from tracer.report.address_words import address_word, counts_references, is_handle
from tracer.report.amount_words import NOUNS, times
from tracer.report.amounts import counted, duration, exact_size, size
from tracer.report.balance import PRUNED, add_balance
from tracer.report.cause_entries import CauseEntry, add_same_cause
from tracer.report.class_words import CLASSES, below_words, state_word
from tracer.report.holder_words import add_holders, is_held
from tracer.report.page import Page
from tracer.report.selection_words import sampled_count, sampled_size
from tracer.report.stack_lines import add_stack, chain, read_alike
from tracer.report.trend_words import looked_at, trend_sentence, turnover_sentence
from tracer.report.unpaired import add_probable_put, add_unpaired
from tracer.report.unpaired_sentence import unpaired_sentence

_SAMPLES = 3
_CALL_STACKS = 5
_BIRTHS = {"reference": "created at", "allocation": "allocated at", "mapping": "mapped at"}
_FREED = ("freed-while-counted", "freed-past-counter")
_OFFENCES = {
    "over-put": "put at",
    "use-after-zero": "used at",
    "delete-while-referenced": "deleted at",
    "reinitialised": "initialised again at",
    "double-free": "freed again at",
    "mismatched-free": "freed at",
    "invalid-free": "freed at",
    "freed-while-counted": "freed at",
    "freed-past-counter": "freed at",
}


def add_leak(page: Page, number: int, entry: CauseEntry, tree: str = PRUNED) -> None:
    """Add one entry: amount and id, birth, gets and puts, notes, and a few addresses; what else has its cause."""
    leak = entry.lead
    page.blank()
    page.heading(f"#{number}  {_headline(entry.summed)}")
    page.paragraph(unpaired_sentence(entry.summed), "    ", "    ")
    page.ends(f"    {_BIRTHS[leak.kind]}", f"id {leak.id}")
    add_stack(page, leak.stack, leak.own_frame, leak.stack_status)
    _add_reach(page, leak)
    add_unpaired(page, leak)
    add_balance(page, leak.balance, tree)
    _add_calls(page, "get", leak.gets)
    _add_calls(page, "put", leak.puts)
    _add_over_time(page, leak)
    for note in leak.notes:
        page.paragraph(note, "          ", "    note: ")
    _add_samples(page, leak)
    add_same_cause(page, entry)
    for memory in entry.memory:
        _add_memory(page, memory)


def _add_memory(page: Page, leak: Leak) -> None:
    """Add blocks that counted objects are in, where they were allocated, and what hangs below them."""
    page.ends(f"    {'its' if leak.count == 1 else 'their'} memory: {_headline(leak)}", f"id {leak.id}")
    for line in chain(leak.stack, page.width - 6, leak.own_frame):
        page.line("      ", line)
    page.paragraph(below_words(leak), "      ", "      ")


def _add_reach(page: Page, leak: Leak) -> None:
    """Add what still points at it, and what hangs below it."""
    if leak.reachability is None or leak.state == "inherited":
        return
    word = CLASSES[leak.reachability] if leak.kind == "reference" else ""
    said = is_held(leak.holders) and leak.reachability == REACHABLE
    reason = "" if said else leak.reachability_reason or ""
    parts = [": ".join(filter(None, (word, reason))), below_words(leak)]
    page.paragraph("; ".join(filter(None, parts)), "      ", "    ")
    page.paragraph(leak.holders_and_count, "      ", "    ")
    add_holders(page, leak.holders)


def _headline(leak: Leak) -> str:
    state = state_word(leak)
    if leak.kind == "reference":
        counts = {instance.references for instance in leak.instances}
        known = f", count {counts.pop()}" if len(counts) == 1 and None not in counts else ""
        return f"{leak.count:,} x {leak.type} {state}{known}"
    if leak.sample is not None:
        blocks = sampled_count(leak.count, NOUNS[leak.kind], leak.sample)
        amount = sampled_size(leak.bytes or 0, leak.sample)
        return f"{amount} {state}: {blocks}{_spread(leak)}, sampled ({leak.type or 'unknown allocator'})"
    blocks = counted(leak.count, NOUNS[leak.kind])
    return f"{exact_size(leak.bytes or 0)} {state}: {blocks}{_spread(leak)} ({leak.type or 'unknown allocator'})"


def _spread(leak: Leak) -> str:
    if leak.kept == 1 or leak.size_min is None or leak.size_max is None:
        return ""
    if leak.size_min == leak.size_max:
        return f" of {leak.size_min:,}"
    return f" of {leak.size_min:,} to {leak.size_max:,}"


def _add_calls(page: Page, word: str, calls: tuple[StackCount, ...]) -> None:
    if not calls:
        return
    page.line(f"    {counted(sum(call.count for call in calls), word)}")
    _add_stacks(page, calls)


def _add_stacks(page: Page, calls: tuple[StackCount, ...]) -> None:
    column = len(f"{sum(call.count for call in calls):,}")
    read = read_alike(calls, page.width - column - 8)
    for lines, count in read[:_CALL_STACKS]:
        lead = f"      {count:>{column},}  "
        for index, line in enumerate(lines):
            page.line(lead if index == 0 else " " * len(lead), line)
    rest = read[_CALL_STACKS:]
    if rest:
        more = sum(count for _, count in rest)
        page.line(f"      {more:>{column},}  from {counted(len(rest), 'other stack')}")


def _add_over_time(page: Page, leak: Leak) -> None:
    """Add what was made and freed and where, and whether what is left grows."""
    page.paragraph(turnover_sentence(leak), "      ", "    ")
    if leak.freed_at:
        page.line(f"    freed at {looked_at(leak)}")
        _add_stacks(page, leak.freed_at)
    sentence = trend_sentence(leak.trend)
    if sentence:
        page.paragraph(sentence, "      ", "    ")


def _add_samples(page: Page, leak: Leak) -> None:
    if not leak.instances:
        return
    ages = [instance.age_ns for instance in leak.instances]
    shown = [_sample(leak, index) for index in range(min(_SAMPLES, len(leak.instances)))]
    more = leak.kept - len(shown)
    text = ", ".join(shown) + (f" and {more:,} more" if more > 0 else "") + (" drawn" if leak.sample else "")
    word = "age" if leak.count == 1 else "oldest"
    are_handles = is_handle(leak.instances[0].address, counted=leak.kind == "reference")
    page.paragraph(f"{text}; {word} {duration(max(ages))}", "       ", f"    {'number' if are_handles else 'at'} ")


def _sample(leak: Leak, index: int) -> str:
    instance = leak.instances[index]
    differ = leak.size_min != leak.size_max
    of_size = f" ({size(instance.size)})" if differ and instance.size is not None else ""
    return address_word(instance.address, counted=leak.kind == "reference") + of_size


def _address(error: ErrorFinding) -> str:
    counts = counts_references(error)
    where = "number" if is_handle(error.address, counted=counts) else "at"
    return f"{where} {address_word(error.address, counted=counts)}"


def add_error(page: Page, number: int, error: ErrorFinding) -> None:
    """Add one broken rule with its three stacks: the offence, the release, the birth."""
    page.blank()
    how_often = "" if error.count == 1 else f", {times(error)}"
    what = f"E{number}  {error.kind}{f' of {error.type}' if error.type else ''} {_address(error)}{how_often}"
    page.heading(what)
    page.ends(f"    {_OFFENCES.get(error.kind, 'done at')}", f"pid {error.pid}")
    add_stack(page, error.stack, status="complete" if error.stack else "lost")
    add_probable_put(page, error)
    memory = error.kind in BAD_FREES
    if error.reason and (memory or error.kind in _FREED):
        page.paragraph(error.reason, "          ", "    note: ")
    if error.released_at is not None:
        page.line(f"    {'first freed at' if memory else 'count reached zero at'}")
        add_stack(page, error.released_at)
    if error.last_get is not None:
        page.line("    last got at")
        add_stack(page, error.last_get)
    add_holders(page, error.holders)
    if error.created_at is not None:
        page.line(f"    {'allocated at' if memory else 'created at'}")
        add_stack(page, error.created_at)
