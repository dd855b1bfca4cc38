"""Probes on inlined instances: which instruction, where the object is, and which are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from built_program import build

from tracer.architecture.current import argument
from tracer.architecture.x86_64.registers import Register
from tracer.cfi.unwind_rules import Rule
from tracer.dwarf.debug_facts import DebugFacts, read_debug_facts
from tracer.dwarf.inlined_instances import InlinedInstance, Parameter
from tracer.dwarf.value_expressions import Base, ValuePlace
from tracer.elf.image import Image
from tracer.model.operations import Failure, FunctionSpec, Location, LocationKind, Operation, SiteFlag, Spec
from tracer.model.records import RuleKind
from tracer.sites.costs import default_costs
from tracer.sites.instance_locations import AlwaysNull, NotThere, locate
from tracer.sites.instance_probes import PlacedInstances, place_instances
from tracer.sites.instance_search import instances_of
from tracer.sites.mentions import mentions
from tracer.sites.resolve import resolve

SOURCE = """
struct item { long id; int refs; struct item *next; };
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
INLINE void item_ref(struct item *i) { if (i) __atomic_fetch_add(&i->refs, 1, 5); }
INLINE int item_try(struct item *i) { return i ? __atomic_fetch_add(&i->refs, 1, 5) : 0; }
NOINLINE void item_ref_slow(struct item *i) { item_ref(i); }
INLINE void item_ref_by(struct item *i) { item_ref_slow(i); }
NOINLINE void first(struct item *i) { item_ref(i); }
NOINLINE void second(struct item *i) { item_ref(i->next); }
NOINLINE void loop(struct item *i, int n) { while (n--) item_ref(i); }
NOINLINE int third(struct item *i) { return item_try(i); }
NOINLINE void fourth(struct item *i) { item_ref_by(i); }
int main(int n, char **v) { struct item i = {0}; i.next = &i; first(&i); second(&i); loop(&i, n); fourth(&i);
    return third(&i) + v[0][0] + i.refs; }
"""
COUNTER = Location(LocationKind.OBJECT, adjust=8)
GET = FunctionSpec("item_ref", Operation.GET, "item", 1, SiteFlag.COUNTER, argument(0), COUNTER)


def placed(folder: Path, compiler: str, *functions: FunctionSpec) -> tuple[Image, DebugFacts, PlacedInstances]:
    program = build(folder, SOURCE, "-g", "-O2", compiler=compiler)
    image = Image.open(program)
    facts = read_debug_facts(image)
    sites, _ = resolve(image, [Spec("s", functions)], allocator=False)
    return image, facts, place_instances(instances_of(functions, facts, image), sites, image, default_costs())


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_each_copy_has_one_probe_that_is_passed_when_it_counts(compiler: str, tmp_path: Path) -> None:
    image, facts, found = placed(tmp_path, compiler, GET)
    # gcc 14 moves the begin of one out of its loop; gcc 12 does not.
    unrolled = {
        "gcc": ([], ["it begins outside of a loop that it is in"]),
        "clang": (["it can be entered elsewhere than where it begins"],),
    }
    assert [one.reason for one in found.uncovered] in unrolled[compiler]
    assert len(found.placements) >= len(facts.instances["item_ref"]) - 2  # one is a wrapper's, one unrolled
    for one in found.placements:
        assert one.site.inlined
        assert one.site.function.flags >= SiteFlag.ENTRY_RESULT | SiteFlag.INLINED | SiteFlag.COUNTER
        assert one.object.kind == LocationKind.REGISTER
        assert one.object.dereference == 0
        assert one.file_offset == one.site.file_offset + one.return_distance
        assert image.file_offset_of(one.site.link_address) == one.site.file_offset


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_get_that_may_fail_is_refused(compiler: str, tmp_path: Path) -> None:
    attempt = replace(GET, function="item_try", failure=Failure.NULL)
    _, _, found = placed(tmp_path, compiler, attempt)
    assert found.placements == []
    assert [(one.function, one.reason) for one in found.uncovered] == [
        ("item_try", "whether it succeeds is not known where it begins")
    ]
    assert found.unseen == {1}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_copy_that_only_calls_a_traced_get_needs_no_probe(compiler: str, tmp_path: Path) -> None:
    wrapper, slow = replace(GET, function="item_ref_by"), replace(GET, function="item_ref_slow")
    _, facts, found = placed(tmp_path, compiler, wrapper, slow)
    assert facts.inlined["item_ref_by"] >= 1
    assert (found.placements, found.uncovered) == ([], [])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_an_inlined_create_is_told(compiler: str, tmp_path: Path) -> None:
    create = replace(GET, operation=Operation.CREATE, object=Location(LocationKind.RETURN))
    _, _, found = placed(tmp_path, compiler, create)
    assert {one.reason for one in found.uncovered} == {"what it makes is known only when it has run"}
    assert found.unseen == set()


def test_a_name_in_the_debug_strings_is_a_hint(tmp_path: Path) -> None:
    with Image.open(build(tmp_path, SOURCE, "-g", "-O2")) as image:
        assert mentions(image, [GET])
        assert not mentions(image, [replace(GET, function="item_r")])


def instance(*places: ValuePlace | str) -> InlinedInstance:
    parameters = tuple(Parameter(((16, 24, place),)) for place in places)
    return InlinedInstance(1, (2,), 16, ((16, 32),), ((0, 64),), parameters)


def rule(_: int) -> Rule:
    return Rule(RuleKind.STACK_POINTER, 0, 0, 40)


@pytest.mark.parametrize(
    ("place", "location"),
    [
        (ValuePlace(Base.REGISTER, 3, (0,)), Location(LocationKind.REGISTER, 3)),
        (ValuePlace(Base.REGISTER, 3, (8, 0)), Location(LocationKind.REGISTER, 3, adjust=8, dereference=1)),
        (ValuePlace(Base.FRAME, 0, (-24, 0)), Location(LocationKind.STACK, offset=16)),
        (ValuePlace(Base.FRAME, 0, (-24,)), Location(LocationKind.REGISTER, Register.RSP, adjust=16)),
        (ValuePlace(Base.ADDRESS, 0, (0x1010,)), Location(LocationKind.CODE, offset=0x1000)),
    ],
)
def test_dwarf_becomes_what_a_probe_reads(place: ValuePlace, location: Location) -> None:
    assert locate(argument(0), instance(place), 16, rule) == location


def test_an_offset_of_the_spec_is_added() -> None:
    wanted = replace(argument(0), adjust=4, dereference=1)
    found = locate(wanted, instance(ValuePlace(Base.REGISTER, 3, (8,))), 16, rule)
    assert found == Location(LocationKind.REGISTER, 3, adjust=12, dereference=1)


def test_what_cannot_be_read_has_a_reason() -> None:
    deep = instance(ValuePlace(Base.REGISTER, 3, (8, 8)), "gone", ValuePlace(Base.CONSTANT, 0, (0,)))
    for number, reason in enumerate(("its object is behind more pointers than a probe follows", "gone")):
        with pytest.raises(NotThere, match=reason):
            locate(argument(number), deep, 16, rule)
    with pytest.raises(AlwaysNull):
        locate(argument(2), deep, 16, rule)
    with pytest.raises(NotThere, match="it has no parameter 3"):
        locate(argument(3), deep, 16, rule)
    with pytest.raises(NotThere, match="optimised away"):
        locate(argument(0), deep, 24, rule)
