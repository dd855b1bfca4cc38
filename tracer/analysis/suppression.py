"""Suppressions in LeakSanitizer's syntax, `ref:type` for counted types, and `error:kind` for broken rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tracer.analysis.glob import LONGEST, Glob
from tracer.analysis.runtime import is_allocator
from tracer.analysis.stack_suppression import StackSuppression, parse_block
from tracer.errors import SpecInvalid
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.findings import ErrorFinding, FrameList, Leak
from tracer.model.frames import Frame

_HINT = (
    "a suppression is `leak:PATTERN`, `ref:TYPE` or `error:KIND`, one a line, or a block of valgrind's;"
    " `#` begins a comment"
)

_CALL = late_pattern(r"\^(?:\(anonymous namespace\)::)?(\w+)\(.*\)\$$")


@dataclass(frozen=True)
class Suppression:
    """One line of a suppression file.

    `leak`: the pattern is found in the function, source file or binary of any frame of the stack; `*` stands for
    anything, `^` and `$` bind it to the beginning and the end (compiler-rt's sanitizer_common, TemplateMatch).
    `ref`: the pattern is the whole name of a counted type; `*` stands for anything.
    `error`: the whole kind of a broken rule; in KIND:PATTERN the pattern is one as of `leak`, for the offender's stack.
    """

    kind: str
    pattern: str
    source: str = ""
    """FILE:LINE it stands at."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"

    def matches(self, leak: Leak) -> bool:
        if self.kind == "ref":
            return leak.kind == "reference" and self._whole.matches(leak.type or "")
        return self.kind == "leak" and any(self._found_in(frame) for frame in _searched(leak))

    def matches_error(self, error: ErrorFinding) -> bool:
        kind, colon, _ = self.pattern.partition(":")
        if self.kind != "error" or not Glob(kind).matches(error.kind):
            return False
        return not colon or any(self._found_in(frame) for frame in error.stack)

    def _found_in(self, frame: Frame) -> bool:
        texts = (frame.function, frame.file, frame.path, frame.module)
        found = self._known.get(texts)
        if found is None:
            found = any(text is not None and self._template.matches(text) for text in texts)
            self._known[texts] = found
        return found

    @cached_property
    def _known(self) -> dict[tuple[str | None, ...], bool]:
        """Answers for frames that were looked at: many entries share their outer ones."""
        return {}

    @cached_property
    def _template(self) -> Glob:
        pattern = self.pattern.partition(":")[2] if self.kind == "error" else self.pattern
        return Glob(pattern.removeprefix("^").removesuffix("$"), pattern.startswith("^"), pattern.endswith("$"))

    @cached_property
    def _whole(self) -> Glob:
        return Glob(self.pattern)


Rule = Suppression | StackSuppression


def _searched(leak: Leak) -> FrameList:
    """Return the frames that a pattern may be in; an allocator that is the leaf of all stacks tells none apart."""
    is_said = leak.kind != "reference" and bool(leak.stack) and is_allocator(leak.stack[0])
    return leak.callers if is_said else leak.stack


def parse_suppressions(text: str, name: str) -> tuple[Rule, ...]:
    """Parse a suppression file's text, of both syntaxes mixed; `name` is what errors call the file.

    Raises SpecInvalid, with file and line, for what is neither a suppression nor a comment. Blocks of valgrind's that
    are about something else than leaks and frees are passed over.
    """
    found: list[Rule] = []
    block: list[str] | None = None
    started = 0
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line == "{" and block is None:
            block, started = [], number
        elif line == "}" and block is not None:
            found += _of_block(block, name, started)
            block = None
        elif block is not None:
            block.append(line)
        else:
            found.append(_of_line(line, f"{name}:{number}"))
    if block is not None:
        raise SpecInvalid(f"{name}:{started}: a block without its closing brace", _HINT)
    return tuple(found)


def _of_line(line: str, source: str) -> Suppression:
    kind, colon, pattern = line.partition(":")
    if not colon or kind not in ("leak", "ref", "error"):
        raise SpecInvalid(f"{source}: not a suppression: {line[:60]!r}", _HINT)
    if not pattern.strip("^$* "):
        raise SpecInvalid(f"{source}: the pattern of `{line[:60]}` would match everything", _HINT)
    if len(pattern) > LONGEST:
        raise SpecInvalid(f"{source}: the pattern has more than {LONGEST:,} characters", _HINT)
    return Suppression(kind, pattern.strip(), source)


def _of_block(lines: list[str], name: str, number: int) -> list[Rule]:
    try:
        parsed = parse_block(lines, f"{name}:{number}")
    except ValueError as error:
        raise SpecInvalid(f"{name}:{number}: {error}", _HINT) from None
    return [] if parsed is None else [parsed]


def matching(rules: Sequence[Rule], error: ErrorFinding) -> Rule | None:
    """Return the first rule that a broken rule is passed over by."""
    return next((rule for rule in rules if rule.matches_error(error)), None)


def unused_notes(
    rules: Sequence[Rule], leaks: Sequence[Leak], errors: Sequence[ErrorFinding] = ()
) -> tuple[str, ...]:
    """Return a sentence on each of the user's suppressions that matches nothing any more.

    None on a bare name that stands beside the same function with its arguments, as it is generated for LeakSanitizer.
    """
    used = {matching(rules, error) for error in errors}
    bare = {f"^{found[1]}$" for rule in rules if isinstance(rule, Suppression) and (found := _CALL.match(rule.pattern))}
    asked = [rule for rule in rules if not (isinstance(rule, Suppression) and rule.pattern in bare)]
    unused = [rule for rule in asked if rule not in used and not any(rule.matches(leak) for leak in leaks)]
    return tuple(f"suppression {rule} ({rule.source}) matched nothing" for rule in unused)
