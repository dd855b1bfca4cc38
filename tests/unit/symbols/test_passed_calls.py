"""What calls pass and what becomes of it, read in the code that compilers make."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_program import build, present, return_address
from hypothesis import given
from hypothesis import strategies as st

from tracer.architecture.current import ARCHITECTURE
from tracer.elf.image import Image
from tracer.model.passed import LINKED, RETURNED, Passed
from tracer.symbols.passed_calls import NOT_TOLD, Budget, PassedCalls
from tracer.symbols.source import Source

PROGRAM = """
#if defined(OPEN)  /* to those who call: what is left as it was, and what is returned */
#define NOINLINE __attribute__((noinline))
#elif defined(__clang__)
#define NOINLINE __attribute__((noinline, optnone))
#else
#define NOINLINE __attribute__((noipa))
#endif
struct node { struct node *next; };
struct thing { long count; struct node node; };
struct owner { long pad[3]; struct thing *one, *two; struct node list; };
struct array { struct thing **data; long length; };
struct link { struct thing *data; struct link *next; };
struct holder { long pad[4]; struct array *things, own; struct link *links; };
struct thing one_thing, *the_one, *volatile any = &one_thing, *volatile other;
volatile int flag;
NOINLINE struct thing *get(struct thing *thing) { if (thing) thing->count++; return thing; }
NOINLINE void put(struct thing *thing) { if (thing) thing->count--; }
NOINLINE void put_at(struct thing **thing) { put(*thing); *thing = 0; }
NOINLINE struct thing *make(void) { return any; }
NOINLINE struct thing *find(void) { return other; }
NOINLINE void note(void) { flag++; }
void keep(struct owner *owner, struct thing *thing) { owner->two = get(thing); note(); }
void keep_behind(struct owner *owner, struct thing *thing) { get(thing); owner->one = thing; note(); }
void drop(struct owner *owner) { put(owner->two); note(); }
void drop_at(struct owner *owner) { put_at(&owner->one); note(); }
struct thing *hand_up(struct thing *thing) { struct thing *mine = get(thing); note(); return mine; }
void local(void) { struct thing *mine = make(); note(); put(mine); note(); }
void either(void) { struct thing *mine = flag ? make() : find(); note(); put(mine); note(); }
void global(void) { put(the_one); note(); }
void linked(struct owner *owner, struct thing *thing) {
	get(thing);
	thing->node.next = owner->list.next;
	owner->list.next = &thing->node;
	note();
}
NOINLINE void add(struct array *array, struct thing *thing) { array->data[array->length++] = thing; }
NOINLINE struct thing *take(struct array *array) { return array->data[--array->length]; }
void keep_in(struct holder *holder, struct thing *thing) { get(thing); add(holder->things, thing); note(); }
void keep_in_own(struct holder *holder, struct thing *thing) { get(thing); add(&holder->own, thing); note(); }
void drop_from(struct holder *holder) { put(take(holder->things)); note(); }
void drop_from_own(struct holder *holder) { put(take(&holder->own)); note(); }
NOINLINE struct link *prepend(struct link *links, struct thing *thing) {
	static struct link link[2];
	static int used;
	link[used] = (struct link){ thing, links };
	return &link[used++];
}
NOINLINE struct link *first_of(struct link **links) { return *links; }
NOINLINE struct link *behind(struct link **links, struct link *link) { return link->next; }
void keep_in_list(struct holder *holder, struct thing *thing) {
	get(thing);
	holder->links = prepend(holder->links, thing);
	note();
}
void drop_list(struct holder *holder) {
	for (struct link *link = holder->links; link; link = link->next)
		put(link->data);
	note();
}
void drop_by_functions(struct holder *holder) {
	for (struct link *link = first_of(&holder->links); link; link = behind(&holder->links, link))
		put(link->data);
	note();
}
NOINLINE void set_two(struct owner *owner, struct thing *thing) { owner->two = thing; note(); }
void keep_by_other(struct owner *owner, struct thing *thing) { set_two(owner, get(thing)); note(); }
NOINLINE struct thing *cast(struct thing *thing) { if (flag) note(); return thing; }
struct thing *hand_up_cast(void) { struct thing *mine = make(); note(); return cast(mine); }
void drop_element(struct holder *holder, long which) { put(holder->things->data[which]); note(); }
int main(void) {
	struct thing *room[3];
	struct array array = { room }; struct holder holder = { .things = &array, .own = { room } };
	keep_in(&holder, make()); keep_in_own(&holder, make()); drop_from(&holder); drop_from_own(&holder);
	keep_in(&holder, make()); drop_element(&holder, 0);
	keep_in_list(&holder, make()); drop_list(&holder); drop_by_functions(&holder);
	struct owner owner = { .list = { 0 } };
	keep(&owner, make()); keep_behind(&owner, make()); drop(&owner); drop_at(&owner);
	keep_by_other(&owner, make()); put(hand_up_cast());
	put(hand_up(make())); local(); either(); global(); linked(&owner, make());
	return 0;
}
"""
BUILDS = {
    f"{compiler} {' '.join(flags)}": (compiler, flags)
    for compiler in ("gcc", "clang")
    for flags in (("-O0",), ("-O1",), ("-O2",), ("-O2", "-fno-omit-frame-pointer"), ("-Os",), ("-O2", "-DOPEN"))
}


@pytest.fixture(scope="module", params=BUILDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, flags = BUILDS[request.param]
    assert present(compiler)
    folder = tmp_path_factory.mktemp("passed")
    for flag in flags:
        (folder / flag.strip("-")).touch()
    return build(folder, PROGRAM, "-w", "-fno-inline", *flags, compiler=compiler)


def open_to_callers(program: Path) -> bool:
    return program.with_name("DOPEN").exists()


def passed(program: Path, function: str, callee: str) -> Passed:
    with Image.open(program) as image:
        told = PassedCalls(Source((image,), None, image), Budget()).of(return_address(program, function, callee))
    found = Passed.read(told)
    assert found is not None
    return found


def returned(program: Path, function: str, callee: str) -> str:
    return f"r{return_address(program, function, callee):x}"


def fate(told: Passed) -> tuple[str, ...]:
    """Return what becomes of what is returned, or of what was passed, where that is the same."""
    return told.kept_result or told.kept[0]


def test_a_member_that_keeps_what_is_returned(program: Path) -> None:
    told = passed(program, "keep", "get")
    assert told.arguments[0] == "p1"
    assert fate(told) == ("p0@32",)


def test_a_member_that_keeps_what_was_passed(program: Path) -> None:
    assert fate(passed(program, "keep_behind", "get")) == ("p0@24",)


def test_a_member_that_is_given(program: Path) -> None:
    assert passed(program, "drop", "put").arguments[0] == "p0@32"
    assert passed(program, "drop_at", "put_at").arguments[0] == "p0+24"


def test_a_member_that_is_filled_by_who_is_called(program: Path) -> None:
    found = passed(program, "keep_by_other", "get").kept_result
    assert found == ("p0@32",) or (not found and open_to_callers(program))  # clang passes what it gave itself


def test_what_is_returned_by_a_cast(program: Path) -> None:
    assert passed(program, "hand_up_cast", "make").kept_result == (RETURNED,)


def test_what_is_returned_on(program: Path) -> None:
    assert fate(passed(program, "hand_up", "get")) == (RETURNED,)


def test_variables_of_a_function(program: Path) -> None:
    assert passed(program, "local", "put").arguments[0] == returned(program, "local", "make")
    told = set(passed(program, "either", "put").arguments[0].split("/"))
    both = {returned(program, "either", "make"), returned(program, "either", "find")}
    assert told == both or (open_to_callers(program) and told < both)  # a compiler may make a put for each of them


def test_a_variable_beside_the_code(program: Path) -> None:
    value = passed(program, "global", "put").arguments[0]
    assert value.startswith("g")
    assert value.endswith("@0")


def test_what_is_linked_by_a_member(program: Path) -> None:
    told = passed(program, "linked", "get")
    assert LINKED in told.kept_result + told.kept[0]


@pytest.mark.parametrize(
    ("container", "kept"), [("keep_in", "p0@32*"), ("keep_in_own", "p0+40*"), ("keep_in_list", "p0@56*")]
)
def test_a_container_that_it_is_given_to(program: Path, container: str, kept: str) -> None:
    told = passed(program, container, "get")
    words = told.kept_result + told.kept[0]
    assert kept in words or (not words and open_to_callers(program))  # it was in that register before


@pytest.mark.parametrize(("function", "taken"), [("drop_from", "<p0@32*"), ("drop_from_own", "<p0+40*")])
def test_what_a_containers_function_returned(program: Path, function: str, taken: str) -> None:
    told = passed(program, function, "put")
    assert taken in told.kept[0] and told.arguments[0] == returned(program, function, "take")


@pytest.mark.parametrize(("function", "taken"), [("drop_list", "<p0@56*"), ("drop_by_functions", "<p0+56*")])
def test_the_nodes_of_a_list(program: Path, function: str, taken: str) -> None:
    told = [word for word in passed(program, function, "put").kept[0] if word.startswith("<")]
    assert told == [taken] or (not told and open_to_callers(program))  # who knows what is called keeps it elsewhere


def test_an_element_of_an_array(program: Path) -> None:
    told = [word for word in passed(program, "drop_element", "put").kept[0] if word.startswith("<")]
    assert told == ["<p0@32@0*"] or (not told and program.with_name("O0").exists())  # which adds up the address


def test_nothing_is_told_where_no_call_is_or_too_much_code(program: Path) -> None:
    with Image.open(program) as image:
        source, behind = Source((image,), None, image), return_address(program, "keep", "get")
        assert PassedCalls(source, Budget()).of(behind + 1) == NOT_TOLD
        assert PassedCalls(source, Budget(0)).of(behind) == NOT_TOLD
        assert PassedCalls(Source(), Budget()).of(behind) == NOT_TOLD


_PIECES = tuple(map(bytes.fromhex, (
    "e800000000", "4889c7", "4889fb", "488b4508", "48894508", "488b442418", "4889442418", "488d7c2410", "488d7b28",
    "4883c708", "eb05", "75f0", "c3", "5b", "4889e5", "48c7430800000000", "ff24c500000000", "4531c0", "480f44c3",
)))  # fmt: skip
"""A call, moves, loads and stores by the frame pointer and the stack pointer, jumps, a switch, and so on."""


@given(code=st.lists(st.sampled_from(_PIECES) | st.binary(max_size=6), max_size=60), is_entry=st.booleans())
def test_any_code_is_read(code: list[bytes], is_entry: bool) -> None:
    """It has an end, raises nothing, and what is told can be read."""
    function = ARCHITECTURE.read_function(b"".join(code), 0x1000, is_entry)
    for at in range(0x1000, 0x1000 + len(b"".join(code)) + 1):
        told = function.passed(at)
        assert told is None or Passed.read(told.text()) == told
