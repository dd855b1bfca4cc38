"""Groups, families, wrappers, and what DWARF adds to specs."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable

import pytest

from tracer.architecture.current import argument
from tracer.dwarf.debug_facts import DebugFacts, FunctionFacts, Member, Pointee
from tracer.model.operations import FunctionSpec, Location, LocationKind, MemoryTrait, Operation, SiteFlag
from tracer.model.snapshot import Unresolved
from tracer.specs.catalogue import Catalogue
from tracer.specs.files import parse_spec
from tracer.specs.options import parse_type_option
from tracer.specs.refinement import following, refinement

FAMILY = '[[type]]\nname = "{type}"\ncreate = "{type}_new"\nget = "{type}_get"\nput = "{type}_put"\n'
CONN = "conn:create=conn_new,get=conn_ref,put=conn_unref,counter=member:refs"


def names(*functions: str) -> Callable[[str], list[str]]:
    return lambda pattern: fnmatch.filter(functions, pattern)


def described(catalogue: Catalogue, *functions: str) -> list[FunctionSpec]:
    return [function for spec in catalogue.specs(names(*functions)) for function in spec.functions]


def test_each_type_has_a_group_of_its_own() -> None:
    catalogue = Catalogue([parse_type_option("a:put=f"), parse_type_option("b:put=f")])
    assert [(f.type_name, f.group) for f in described(catalogue)] == [("a", 1), ("b", 2)]


def test_a_wrapper_is_in_the_group_of_malloc() -> None:
    alloc, out, free = described(
        Catalogue([parse_type_option("alloc x:alloc=x(size=arg0),alloc=y(size=arg1,object=*arg0),free=z,wraps=yes")])
    )
    assert (alloc.group, out.group, free.group) == (0, 0, 0)
    assert free.flags == SiteFlag.ENTRY_RESULT
    assert (out.flags, out.name) == (SiteFlag.OUT_POINTER, argument(0))


@pytest.mark.parametrize("wraps", ["no", "yes"])
def test_what_is_said_of_memory_is_said_of_each_function(wraps: str) -> None:
    option = f"alloc x:alloc=x(size=arg0),realloc=y(size=arg1),free=z,wraps={wraps},memory=hides"
    assert {f.memory for f in described(Catalogue([parse_type_option(option)]))} == {MemoryTrait.HIDES}


def test_a_family_needs_both_get_and_put() -> None:
    catalogue = Catalogue([parse_type_option("z:put=f"), parse_spec(FAMILY, "f", "f")])
    first = described(catalogue, "a_get", "a_put", "b_get", "c_put")
    assert [(f.function, f.type_name, f.group) for f in first] == [
        ("f", "z", 1), ("a_new", "a", 2), ("a_get", "a", 2), ("a_put", "a", 2),
    ]  # fmt: skip
    second = described(catalogue, "a_get", "a_put", "b_get", "b_put")
    assert {(f.type_name, f.group) for f in second} == {("z", 1), ("a", 2), ("b", 3)}
    assert described(catalogue) == first[:1]


def facts() -> DebugFacts:
    pointee = Pointee("conn", 1)
    functions = {name: FunctionFacts(name, (pointee,), Pointee()) for name in ("conn_ref", "conn_unref")}
    return DebugFacts(functions, {"conn": (Member("refs", 24, "int"),)})


def refined(catalogue: Catalogue, known: DebugFacts) -> tuple[list[FunctionSpec], tuple[Unresolved, ...]]:
    found = refinement([1], catalogue.types, known)
    return [found.apply(function) for function in described(catalogue)], found.unresolved


def test_a_counter_is_found_by_its_member() -> None:
    functions, unresolved = refined(Catalogue([parse_type_option(CONN)]), facts())
    assert {f.counter for f in functions} == {Location(LocationKind.OBJECT, adjust=24)}
    assert all(f.flags == SiteFlag.COUNTER for f in functions)
    assert unresolved == ()


def test_a_counter_that_is_not_found_is_said() -> None:
    functions, unresolved = refined(Catalogue([parse_type_option(CONN)]), DebugFacts())
    assert not any(f.flags for f in functions)
    assert [(u.type, u.reason) for u in unresolved] == [("conn", "no refs in DWARF: counts are followed, not read")]


def test_the_counter_of_a_type_is_believed_if_it_changes_unseen() -> None:
    functions, _ = refined(Catalogue([parse_type_option(CONN)]), facts())
    assert {following(f, {1}).flags for f in functions} == {SiteFlag.COUNTER | SiteFlag.FOLLOWS}
    assert {following(f, {2}).flags for f in functions} == {SiteFlag.COUNTER}
    uncounted, _ = refined(Catalogue([parse_type_option(CONN)]), DebugFacts())
    assert not any(following(f, {1}).flags for f in uncounted)


def test_built_in_functions_are_left_alone() -> None:
    malloc = FunctionSpec("malloc", Operation.ALLOC)
    assert refinement([0], {}, facts()).apply(malloc) == malloc
