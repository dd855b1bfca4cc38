"""Groups, families, wrappers, and what DWARF adds to specs."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable

from tracer.elf.debug_facts import DebugFacts, FunctionFacts, Member, Pointee
from tracer.model.operations import FunctionSpec, Location, LocationKind, Operation, Site, SiteFlag, argument
from tracer.specs.catalogue import Catalogue
from tracer.specs.files import parse_spec
from tracer.specs.options import parse_type_option
from tracer.specs.refinement import refine

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


def test_a_family_needs_both_get_and_put() -> None:
    catalogue = Catalogue([parse_type_option("z:put=f"), parse_spec(FAMILY, "f", "f")])
    first = described(catalogue, "a_get", "a_put", "b_get", "c_put")
    assert [(f.function, f.type_name, f.group) for f in first] == [
        ("f", "z", 1), ("a_new", "a", 2), ("a_get", "a", 2), ("a_put", "a", 2),
    ]  # fmt: skip
    second = described(catalogue, "a_get", "a_put", "b_get", "b_put")
    assert {(f.type_name, f.group) for f in second} == {("z", 1), ("a", 2), ("b", 3)}
    assert described(catalogue) == first[:1]


def facts(inlined: dict[str, int] | None = None) -> DebugFacts:
    pointee = Pointee("conn", 1)
    functions = {name: FunctionFacts(name, (pointee,), Pointee()) for name in ("conn_ref", "conn_unref")}
    return DebugFacts(functions, {"conn": (Member("refs", 24, "int"),)}, Counter(inlined or {}))


def sites(catalogue: Catalogue) -> list[Site]:
    return [Site(function, "/x", 16 * n, 16 * n) for n, function in enumerate(described(catalogue))]


def test_a_counter_is_found_by_its_member() -> None:
    catalogue = Catalogue([parse_type_option(CONN)])
    refined = refine(sites(catalogue), catalogue.types, facts())
    assert {s.function.counter for s in refined.sites} == {Location(LocationKind.OBJECT, adjust=24)}
    assert all(s.function.flags == SiteFlag.COUNTER for s in refined.sites)
    assert (refined.unresolved, refined.inlined) == ([], ())


def test_a_counter_that_is_not_found_is_said() -> None:
    catalogue = Catalogue([parse_type_option(CONN)])
    refined = refine(sites(catalogue), catalogue.types, DebugFacts())
    assert not any(s.function.flags for s in refined.sites)
    assert [(u.type, u.reason) for u in refined.unresolved] == [
        ("conn", "no refs in DWARF: counts are followed, not read")
    ]


def test_with_inlined_gets_the_counter_is_believed() -> None:
    catalogue = Catalogue([parse_type_option(CONN)])
    inlined = refine(sites(catalogue), catalogue.types, facts({"conn_ref": 3, "other": 1}))
    assert inlined.inlined == (("conn_ref", 3),)
    assert {s.function.flags for s in inlined.sites} == {SiteFlag.COUNTER | SiteFlag.FOLLOWS}
    of_create = refine(sites(catalogue), catalogue.types, facts({"conn_new": 3}))
    assert {s.function.flags for s in of_create.sites} == {SiteFlag.COUNTER}


def test_built_in_sites_are_left_alone() -> None:
    site = Site(FunctionSpec("malloc", Operation.ALLOC), "/x", 0, 0)
    assert refine([site], {}, facts({"malloc": 9})).sites == [site]
