"""Functions, places and --type options: what they mean, and what is said of mistakes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.architecture.current import argument
from tracer.architecture.x86_64.registers import Register
from tracer.errors import SpecInvalid
from tracer.model.operations import (
    NO_TRAITS,
    RETURN_VALUE,
    Failure,
    FunctionSpec,
    Location,
    LocationKind,
    MemoryTrait,
    Operation,
    SiteFlag,
    constant,
)
from tracer.specs.files import parse_spec, read_spec_file
from tracer.specs.functions import Defaults, parse_function, split_outside_parentheses
from tracer.specs.options import parse_type_option
from tracer.specs.presets import preset_names, preset_path, read_preset
from tracer.specs.value_syntax import parse_counter, parse_place, parse_value

DOCUMENT = Path(__file__).parents[3] / "docs" / "specs.md"
PLAIN = Defaults("conn")


def function(text: str, operation: Operation = Operation.GET, defaults: Defaults = PLAIN) -> FunctionSpec:
    return parse_function(text, operation, defaults).spec


@pytest.mark.parametrize(("text", "location"), [
    ("arg0", argument(0)),
    ("arg7", Location(LocationKind.STACK, offset=16)),
    ("return", RETURN_VALUE),
    ("arg1+16", Location(LocationKind.REGISTER, Register.RSI, adjust=16)),
    ("*arg1-0x10", Location(LocationKind.REGISTER, Register.RSI, dereference=1, adjust=-16)),
    ("*arg0+112:int", Location(LocationKind.REGISTER, Register.RDI, dereference=2, adjust=112)),
    ("return:int", Location(LocationKind.RETURN, width=4)),
])  # fmt: skip
def test_places(text: str, location: Location) -> None:
    assert parse_place(text) == location


@pytest.mark.parametrize("text", ["", "arg", "arg14", "arg-1", "**arg0", "ret", "arg0+", "arg0 + 8", "arg0+9999999999"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError):
        parse_place(text)


def test_counters_and_values() -> None:
    assert parse_counter("8") == Location(LocationKind.OBJECT, adjust=8)
    assert parse_counter("*16+4") == Location(LocationKind.OBJECT, adjust=16, dereference=1, offset=4)
    assert parse_value("-3") == constant(-3)
    with pytest.raises(ValueError, match="is no counter"):
        parse_counter("refcnt")


def test_defaults_of_each_operation() -> None:
    assert function("f", Operation.CREATE) == FunctionSpec("f", Operation.CREATE, "conn", object=RETURN_VALUE)
    assert function("f", Operation.PUT) == FunctionSpec("f", Operation.PUT, "conn", object=argument(0))
    counted = function("f", Operation.PUT, Defaults("conn", "8", ("libc.so*",)))
    assert (counted.counter, counted.flags, counted.libraries) == (parse_counter("8"), SiteFlag.COUNTER, ("libc.so*",))


def test_an_out_parameter_is_read_at_the_return() -> None:
    spec = function("open(object=*arg1+4:int, fails=negative)", Operation.CREATE)
    assert spec.object == Location(LocationKind.REGISTER, Register.RSI, adjust=4)
    assert (spec.size, spec.flags, spec.failure) == (constant(4), SiteFlag.OUT_POINTER, Failure.NEGATIVE)
    assert function("put(object=*arg0)", Operation.PUT).object.dereference == 1


def test_types_by_name_string_and_handle() -> None:
    assert function("new(type=Other)", Operation.CREATE).type_name == "Other"
    string = function("new(type=string:arg1)", Operation.CREATE)
    assert (string.type_name, string.name, string.flags) == (None, argument(1), SiteFlag.NAMED)
    handle = function("new(type=handle:arg0)", Operation.CREATE)
    assert (handle.type_name, handle.name, handle.flags) == ("conn", argument(0), SiteFlag.HANDLE)


def test_types_by_class() -> None:
    spec = function("new(type=class:8)", Operation.CREATE)
    place = Location(LocationKind.OBJECT, adjust=8)
    assert (spec.type_name, spec.name, spec.flags) == ("conn", place, SiteFlag.CLASS)
    behind = function("new(type=class:*0+16)", Operation.CREATE)
    assert behind.name == Location(LocationKind.OBJECT, dereference=1, offset=16)


def test_the_class_of_a_type_is_that_of_its_creates() -> None:
    body = "create=f,create=g(type=Other),create=h(type=class:0),put=p,class=8"
    (on_command_line,) = parse_type_option(f"conn:{body}").types
    text = '[[type]]\nname = "conn"\nclass = 8\ncreate = ["f", "g(type=Other)", "h(type=class:0)"]\nput = "p"\n'
    (in_file,) = parse_spec(text, "a.toml", "a").types
    for type_ in (on_command_line, in_file):
        found = [(f.spec.type_name, f.spec.name.adjust, f.spec.flags) for f in type_.functions]
        named = SiteFlag.CLASS
        assert found == [("conn", 8, named), ("Other", 0, SiteFlag(0)), ("conn", 0, named), ("conn", 0, SiteFlag(0))]


@pytest.mark.parametrize(("line", "reason"), [
    ('class = "first"', "a.toml:3: 'first' is no place of a class pointer"),
    ("class = true", "a.toml:3: class is an offset or a text"),
    ("class = -8", "a.toml:3: '-8' is no place of a class pointer"),
    ('create = "f(type=class:)"', "a.toml:3: '' is no place of a class pointer"),
    ('names = "f(type=class:8)"', "a.toml:3: f: the class is read where an object is created"),
    ('create = "f(object=arg0, type=class:8, nested=no)"', "a.toml:3: f: the class is read when the function returns"),
])  # fmt: skip
def test_mistakes_in_a_class(line: str, reason: str) -> None:
    with pytest.raises(SpecInvalid, match=re.escape(reason)):
        parse_spec(f'[[type]]\nname = "conn"\n{line}\nget = "g"\n', "a.toml", "a")


def test_sizes() -> None:
    product = function("calloc(size=arg0*arg1)", Operation.ALLOC)
    assert (product.size, product.count, product.flags) == (argument(0), argument(1), SiteFlag.PRODUCT)
    assert function("take(size=64)", Operation.ALLOC).size == constant(64)
    assert function("take(size=*arg0+8)", Operation.ALLOC).size == parse_place("*arg0+8")


@pytest.mark.parametrize(("text", "operation", "reason"), [
    ("9f", Operation.GET, "is no function"),
    ("f(object)", Operation.GET, "is no option"),
    ("f(objct=arg0)", Operation.GET, "there is no option 'objct'"),
    ("f(object=arg0, object=arg1)", Operation.GET, "object is given twice"),
    ("f(object=return)", Operation.PUT, "cannot be known from its return value"),
    ("f(count=1)", Operation.GET, "count is for create"),
    ("f(size=arg0)", Operation.GET, "size is for alloc"),
    ("f", Operation.ALLOC, "say where the size is"),
    ("f(fails=sometimes)", Operation.PUT, "give never, null, negative, nonzero"),
    ("f(nested=maybe)", Operation.PUT, "neither yes nor no"),
    ("f(nested=no, fails=null)", Operation.GET, "nested=no is for"),
    ("f(type=string:arg0)", Operation.PUT, "given at the create"),
])  # fmt: skip
def test_mistakes_in_a_function(text: str, operation: Operation, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        function(text, operation)


def test_commas_inside_parentheses_do_not_split() -> None:
    assert split_outside_parentheses("a=f(x=1, y=2),b=g") == ["a=f(x=1, y=2)", "b=g"]
    for text in ("a(", "a)(", "a(b))"):
        with pytest.raises(ValueError, match="do not match"):
            split_outside_parentheses(text)


def test_a_type_on_the_command_line() -> None:
    (type_,) = parse_type_option("conn:create=conn_new,get=conn_ref,put=conn_unref,delete=conn_free").types
    assert [(f.spec.function, f.spec.operation) for f in type_.functions] == [
        ("conn_new", Operation.CREATE), ("conn_ref", Operation.GET), ("conn_unref", Operation.PUT),
        ("conn_free", Operation.DELETE),
    ]  # fmt: skip
    (pool,) = parse_type_option("alloc pool:alloc=my_alloc(size=arg0),free=my_free,library=libmypool.so").types
    assert pool.name == "pool"
    assert [f.spec.libraries for f in pool.functions] == [("libmypool.so",)] * 2
    assert pool.memory == NO_TRAITS


@pytest.mark.parametrize(("text", "traits"), [
    ("root", MemoryTrait.ROOT), ("hides", MemoryTrait.HIDES), ("root+hides", MemoryTrait.ROOT | MemoryTrait.HIDES),
])  # fmt: skip
def test_what_is_said_of_an_allocators_memory(text: str, traits: MemoryTrait) -> None:
    (pool,) = parse_type_option(f"alloc pool:alloc=f(size=arg0),memory={text}").types
    assert pool.memory == traits
    (pool,) = parse_spec(f"[[allocator]]\nname = 'p'\nalloc = 'f(size=arg0)'\nmemory = '{text}'\n", "x", "x").types
    assert pool.memory == traits


@pytest.mark.parametrize(
    "text", ["conn", ":put=f", "conn:", "conn:put", "conn:pt=f", "conn:alloc=f(size=arg0)", "a:put=f(",
             "a:put=f,memory=root", "alloc a:free=f,memory=pool"]
)
def test_mistakes_on_the_command_line(text: str) -> None:
    with pytest.raises(SpecInvalid, match=r"^--type "):
        parse_type_option(text)


@pytest.mark.parametrize(("text", "line", "reason"), [
    ("[[type]\n", 1, "Expected"),
    ("\ndescription = 1\n[[type]]\nname = 'a'\nput = 'f'\n", 2, "description is a text"),
    ("description = 'x'\n", 1, "neither a"),
    ("\n[[type]]\nname = 'a'\nput = 'f'\n\n[[type]]\nname = 'b'\nput = 'f(objct=arg0)'\n", 8, "there is no option"),
    ("[[type]]\nname = 'a'\nputt = 'f'\n", 3, "there is no 'putt'"),
    ("[[type]]\nput = 'f'\n", 1, "it has no name"),
    ("[[type]]\nname = 'a'\n", 1, "'a' names no function"),
    ("[[type]]\nname = 'a'\nput = 7\n", 3, "put is a text or a list"),
    ("[[allocator]]\nname = 'a'\nwraps = 'x'\nfree = 'f'\n", 3, "wraps is true or false"),
    ("[[allocator]]\nname = 'a'\nfree = 'f'\nmemory = 'x'\n", 4, "memory is root or hides"),
    ("[[type]]\nname = 'a'\nput = 'f'\nmemory = 'root'\n", 4, "there is no 'memory'"),
    ("type = 3\n", 1, "write [[type]]"),
    ("[[type]]\nname = 'a'\ncounter = true\nput = 'f'\n", 3, "counter is an offset"),
])  # fmt: skip
def test_mistakes_in_a_file_have_their_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(SpecInvalid) as raised:
        parse_spec(text, "my.toml", "my")
    assert str(raised.value).startswith(f"my.toml:{line}: ")
    assert reason in str(raised.value)
    assert raised.value.hint == "see docs/specs.md"


@given(st.text(alphabet="[]type\n =\"'(),abcput_arg0*+:{}", max_size=80))
def test_any_text_is_a_spec_or_wrong(text: str) -> None:
    for parse in (parse_type_option, lambda t: parse_spec(t, "x.toml", "x"), lambda t: parse_type_option("a:put=" + t)):
        try:
            parse(text)
        except SpecInvalid as error:
            assert str(error)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_reads(name: str) -> None:
    preset = read_preset(name)
    assert (preset.name, preset.source) == (name, str(preset_path(name)))
    assert preset.description and preset.libraries
    for type_ in preset.types:
        operations = {f.spec.operation for f in type_.functions}
        assert Operation.CREATE in operations and Operation.PUT in operations


def test_the_examples_of_the_documentation_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    types = 0
    for language, text in blocks:
        if language == "toml":
            path = tmp_path / "server.toml"
            path.write_text(text)
            assert [t.name for t in read_spec_file(path).types] == ["conn", "{type}", "object", "pool"]
        for line in text.splitlines() if language == "sh" else ():
            words = shlex.split(line)
            parse_type_option(words[words.index("--type") + 1])
            types += 1
    assert types == 6


@pytest.mark.parametrize("value", ["9" * 12_000, "[" * 20_000])
def test_what_toml_cannot_take_is_refused_in_a_line(value: str) -> None:
    with pytest.raises(SpecInvalid, match=r"^spec\.toml:1: "):
        parse_spec(f"[[type]]\nname = {value}\n", "spec.toml", "spec")
