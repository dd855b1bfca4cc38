"""Unpaired references of outstanding objects, and how sure it is that they were never given back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tracer.analysis.activations import without
from tracer.analysis.certainty import probability
from tracer.analysis.evidence import Evidence
from tracer.analysis.habits import likely
from tracer.analysis.makings import Taking
from tracer.analysis.own_frame import call_into_library
from tracer.analysis.putters import Putters
from tracer.analysis.reasons import Reasons
from tracer.analysis.reference_sites import Level
from tracer.analysis.representatives import Representative, order_of_steps
from tracer.analysis.scaling import Floats
from tracer.analysis.siblings import Siblings
from tracer.analysis.slots import Keys
from tracer.analysis.stacks import Lines, same_lines
from tracer.analysis.suspect import CONFIDENCES, EXACT, STRONG, WEAK, Suspect
from tracer.analysis.unpaired_verdict import Verdict
from tracer.analysis.whole_places import by_whole_places
from tracer.model.findings import UnpairedGet

_SURE = 0.15
_WORTH = 0.3
_MOST = 3


def judge(
    evidence: Evidence, type_: int, groups: Sequence[Sequence[Representative]], putters: Putters
) -> list[Verdict]:
    """Judge the groups of outstanding objects of one type, each by its representatives."""
    lives = [one.life for group in groups for one in group]
    objects = sum(one.objects for group in groups for one in group)
    kin = evidence.kin.of(type_, lives)
    siblings = Siblings(evidence.stacks, evidence.snapshot.balanced, type_, lives, objects, kin=kin)
    reasons = Reasons(evidence.stacks, siblings)
    name = evidence.type_name(type_)
    judged = ((group, *_group(evidence, siblings, reasons, group)) for group in groups)
    return [_placed_among_others(siblings, putters, name, *one) for one in judged]


def _placed_among_others(
    siblings: Siblings, putters: Putters, type_: str, group: Sequence[Representative], verdict: Verdict,
    first: Suspect | None,
) -> Verdict:  # fmt: skip
    """Say whose end the put of the first suspect belongs to, and in which calls it was taken and the objects made."""
    if first is None:
        return verdict
    put = _usual_put(siblings, first)
    level, ended = siblings.seen(first.stack, first.birth)
    ended = ended if level == Level.PATH else 0
    return replace(
        verdict,
        around=() if put is None else putters.around(put, type_),
        taking=Taking(first.stack, first.birth, *siblings.came_to(first.stack), ended),
        making=siblings.making(group[0].life.gets[0]),
    )


def _group(
    evidence: Evidence, siblings: Siblings, reasons: Reasons, group: Sequence[Representative]
) -> tuple[Verdict, Suspect | None]:
    counts: Counter[Suspect] = Counter()
    weights: defaultdict[Suspect, float] = defaultdict(float)
    holders: dict[int, int] = {}
    for one in group:
        for held in one.held:
            holders.setdefault(held.stack, held.holder)
            counts[Suspect(held.stack, False, EXACT, Level.PATH)] += one.objects
        for suspect, count, weight in _suspects(siblings, one):
            counts[suspect] += count * one.objects
            weights[suspect] += weight * one.objects
    ranked = sorted(counts, key=lambda one: (CONFIDENCES.index(one.confidence), -weights[one], -counts[one], one.stack))
    totals: Counter[Lines] = Counter()
    for suspect, count in counts.items():
        totals[evidence.stacks.lines(suspect.stack)] += count
    merged: dict[Lines, UnpairedGet] = {}
    freed = frozenset[str]().union(*(one.freed_slots for one in group))
    for suspect in ranked:
        lines = evidence.stacks.lines(suspect.stack)
        if lines in merged:
            continue  # what is said is said of the surest
        if suspect.confidence == EXACT:
            reason = reasons.exact(holders[suspect.stack], totals[lines])
        else:
            reason = reasons.by_siblings(suspect, totals[lines], freed)
        get = UnpairedGet(evidence.stacks.get(suspect.stack).frames, totals[lines], suspect.confidence, reason)
        merged[lines] = _placed(siblings, suspect, get, weights[suspect] / counts[suspect], freed)
    ends = siblings.deaths(group[0].life.gets[0]) if group else {}
    return Verdict(tuple(merged.values())[:_MOST], same_lines(ends.items())), next(iter(ranked), None)


def _placed(siblings: Siblings, suspect: Suspect, get: UnpairedGet, share: float, freed: Keys) -> UnpairedGet:
    """Say how likely it is, who took it, where others put theirs, and where it was kept. `freed`: slots of blocks that
    were freed without a put."""
    put = _usual_put(siblings, suspect)
    taken_by = siblings.said_of(suspect.stack, by_name=put is not None)
    return replace(
        get,
        probability=probability(suspect.confidence, min(1.0, share)),
        taken_by=taken_by,
        taken_for=call_into_library(get.stack, taken_by),
        put_at=None if put is None else siblings.put_places.telling(put),
        kept_at=siblings.unemptied(suspect.stack, freed),
    )


def _usual_put(siblings: Siblings, suspect: Suspect) -> int | None:
    """Return where most of the references taken there are put, or None if none ever was."""
    level, seen = siblings.seen(suspect.stack, suspect.birth)
    if not seen:
        return None
    guessed = suspect.confidence == WEAK or suspect.habitual
    places = siblings.put_at(suspect.stack, suspect.birth, level, not guessed)
    return places[0].stack if places else None


def _suspects(siblings: Siblings, one: Representative) -> list[tuple[Suspect, int, float]]:
    """Return suspects, how many references of each were never put, and how much speaks for it."""
    if one.life.remaining <= 0:
        return []
    whole, one = one, _beyond_calls(siblings, one)
    kept = siblings.holding(one.life, one.slots | one.freed_slots)
    impartial = likely(siblings.weights(one.life), one.life, never=kept)[1]
    certain = not one.life.puts
    supported = certain or any(siblings.seen(get, row == 0)[1] for row, get in enumerate(one.life.gets))
    for level in (Level.PATH, Level.CALLS):  # any farther off, calls that differ look alike
        keys = [siblings.get_key(get, row == 0, level) for row, get in enumerate(one.life.gets)]
        settled = _settled(keys, impartial)
        if settled is not None and supported and one.complete:
            return _chosen(siblings, one, keys, settled, impartial)
    informed = likely(siblings.weights(one.life, one.in_order), one.life, never=kept * siblings.never(one.life))[1]
    settled = _settled(keys, informed)
    if settled is not None and one.complete:
        chosen = _chosen(siblings, one, keys, settled, informed)
        if all(siblings.habitual(suspect.stack, suspect.birth) for suspect, *_ in chosen):
            return [(replace(suspect, habitual=True), count, weight) for suspect, count, weight in chosen]
    informed = _by_numbers(siblings, whole, informed, kept)
    worth = np.flatnonzero(informed >= _WORTH * informed.max())
    worth = worth[np.argsort(-informed[worth], kind="stable")][:3]
    rivals = int(np.count_nonzero(informed[worth] >= 0.8 * informed.max())) - 1
    return [
        (
            Suspect(one.life.gets[row], row == 0, WEAK, _level(siblings, one, row), False, rivals, one.complete),
            max(1, round(float(informed[row]))),
            float(informed[row]),
        )
        for row in worth.tolist()
    ]


def _by_numbers(siblings: Siblings, one: Representative, never: Floats, kept: Floats) -> Floats:
    """Return how many references of each get were never put, weighed by whether the numbers come out with that.

    `kept`: how much likelier each is still kept, where it is known who holds the object: numbers say nothing else."""
    same = replace(one.life, possible=one.life.possible & siblings.same_slots(one.life))
    likely = by_whole_places(same, siblings.depth, siblings.put_path)
    if likely.min() == 1:
        likely = by_whole_places(one.life, siblings.depth, siblings.put_path)
    if likely.min() == 1:
        likely = by_whole_places(same, siblings.depth, siblings.put_line)
    if likely.min() == 1 or (kept[likely == 1] < 1).any():
        return never
    weighed = never * likely
    if weighed[likely == 1].sum() < _SURE:  # one call is thought to have taken and given back all that can be meant
        weighed = np.minimum(one.life.taken, one.life.remaining) * (likely == 1)
    weighed *= one.life.remaining / weighed.sum()
    return np.minimum(weighed, one.life.taken)


def _beyond_calls(siblings: Siblings, one: Representative) -> Representative:
    """Return what is left to be judged without what one call of a function took and gave back."""
    local = siblings.local(one.life)
    if not local.any():
        return one
    rest = without(one.life, local)
    return replace(one, life=rest, in_order=order_of_steps(rest))


def _settled(keys: Sequence[Hashable], never: Floats) -> Mapping[Hashable, int] | None:
    """Return how many references were never put per place, if all are near to whole numbers."""
    sums: Counter[Hashable] = Counter()
    for key, amount in zip(keys, never.tolist(), strict=True):
        sums[key] += amount
    if all(abs(amount - round(amount)) <= _SURE for amount in sums.values()):
        return {key: round(amount) for key, amount in sums.items()}
    return None


def _chosen(
    siblings: Siblings, one: Representative, keys: Sequence[Hashable], settled: Mapping[Hashable, int], never: Floats
) -> list[tuple[Suspect, int, float]]:
    """Return the calls of the places that are settled, those most suspected of each place."""
    chosen = []
    for key, count in settled.items():
        rows = sorted((row for row in range(len(keys)) if keys[row] == key), key=lambda row: -never[row])
        for row in rows:
            share = min(count, max(1, round(float(never[row])))) if count else 0
            if share:
                suspect = Suspect(one.life.gets[row], row == 0, STRONG, _level(siblings, one, row))
                chosen.append((suspect, share, float(never[row])))
                count -= share
    return chosen


def _level(siblings: Siblings, one: Representative, row: int) -> Level:
    return siblings.seen(one.life.gets[row], row == 0)[0]
