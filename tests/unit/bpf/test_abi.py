"""bpf/abi.h against tracer/model: every struct, field, enumerator and limit, as a C compiler sees them."""

from __future__ import annotations

import re
import subprocess
from enum import IntEnum, IntFlag
from pathlib import Path

import numpy as np
import pytest

from tracer.architecture.x86_64.registers import Register
from tracer.kernel import kernel_records
from tracer.model import events, operations, records, unwinding

BPF = Path(__file__).parents[3] / "bpf"
ABI, ARCHITECTURE = BPF / "abi.h", BPF / "x86_64.h"
STRUCTS: dict[str, np.dtype[np.void]] = {
    "location": records.LOCATION,
    "site": records.SITE,
    "key": records.KEY,
    "allocation": records.ALLOCATION,
    "object": records.OBJECT,
    "released": records.RELEASED,
    "stack": records.STACK,
    "stack_totals": records.STACK_TOTALS,
    "code_range": records.CODE_RANGE,
    "return_instance": records.RETURN_INSTANCE,
    "stack_request": records.STACK_REQUEST,
    "stack_words": records.STACK_WORDS,
    "stack_dump": records.STACK_DUMP,
    "free_site": records.FREE_SITE,
    "free_seen": records.FREE_SEEN,
    "type_name": records.TYPE_NAME,
    "control": records.CONTROL,
    "control_fork": records.CONTROL_FORK,
    "control_range": records.CONTROL_RANGE,
    "control_ending": records.CONTROL_ENDING,
    "process": records.PROCESS,
    "space_totals": records.SPACE_TOTALS,
    "ghost": records.GHOST,
    "ghost_key": records.GHOST_KEY,
    "counters": records.COUNTERS,
    "pending": kernel_records.PENDING,
    "unknown_free": kernel_records.UNKNOWN_FREE,
    "thread_head": kernel_records.THREAD_HEAD,
    "freed_block": kernel_records.FREED_PLACE,
    "block_set": kernel_records.BLOCK_SET,
    "freed_set": kernel_records.FREED_SET,
    "hold": kernel_records.HOLD,
    "mapping": records.MAPPING,
    "table": records.TABLE,
    "rule": records.RULE,
    "shared": records.SHARED,
    "constants": records.CONSTANTS,
    "python": records.PYTHON,
    "lua": records.LUA,
    "interpreter_frame": records.INTERPRETER_FRAME,
    "interpreter_stack": records.INTERPRETER_STACK,
    "interpreter_code": records.INTERPRETER_CODE,
}
EVENTS = {
    "create": events.CREATE_EVENT, "change": events.CHANGE_EVENT, "map": events.MAP_EVENT,
    "mapping": events.MAPPING_EVENT, "error": events.ERROR_EVENT, "holder freed": events.HOLDER_FREED_EVENT,
}  # fmt: skip
"""What `struct event` is by its operation."""
OWN_NAMES = {"value", "extra", "reserved", "represented"}
"""What Python alone calls a field of an event: where an operation has none, and of samples of errors."""
ENUMS: dict[str, tuple[type[IntEnum] | type[IntFlag], str]] = {
    "operation": (operations.Operation, "OP_"),
    "error_kind": (events.ErrorKind, "ERROR_"),
    "location_kind": (operations.LocationKind, "AT_"),
    "register_id": (Register, "REG_"),
    "site_flag": (operations.SiteFlag, "SITE_"),
    "failure": (operations.Failure, "FAILURE_"),
    "object_flag": (records.ObjectFlag, "OBJECT_"),
    "event_flag": (events.EventFlag, "EVENT_"),
    "remap_record": (events.RemapRecord, "REMAP_"),
    "stack_status": (records.StackStatus, "STACK_"),
    "given": (records.Given, "GIVEN_"),
    "control_kind": (records.ControlKind, "CONTROL_"),
    "loss": (records.LossKind, "LOSS_"),
    "type_source": (records.TypeSource, "TYPE_"),
    "unwinding": (unwinding.Moment, "UNWINDING_"),
    "process_state": (records.ProcessState, "PROCESS_"),
    "rule_kind": (records.RuleKind, "RULE_"),
    "interpreter_record": (records.InterpreterRecord, "INTERPRETER_"),
    "old_block": (kernel_records.OldBlock, "OLD_"),
    "unknown_frees": (kernel_records.UnknownFrees, "UNKNOWN_FREES_"),
    "where": (events.Where, "WHERE_"),
    "walk_outcome": (records.WalkOutcome, "WALK_"),
    "count": (records.Count, "COUNT_"),
}
LIMITS = (
    "MAX_FRAMES", "MAX_SITES", "NAME_BYTES", "PATH_BYTES", "FRAME_BINARY_SHIFT", "TABLE_MAPPINGS", "TABLES", "RULES",
    "HOLD_SLOTS", "OF_PLACE", "HELD_REGISTERS", "LIFE_BINS", "LIFE_SHIFT", "LUA_LAYOUTS", "INTERPRETER_FRAMES",
    "INTERPRETER_NO_LINE",
    "DUMP_PAGES", "PAGE_WORDS", "DUMPS_OF_A_CUT", "STACK_REACH", "CODE_RANGES", "RETURN_INSTANCES", "STACK_WORDS_MAX",
    "WALK_OUTCOMES", "FREED_WAYS", "BLOCK_WAYS", "COUNT_SLOTS",
)  # fmt: skip


def source() -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", ABI.read_text(), flags=re.S)


def register_ids() -> str:
    """Return `enum register_id`, the one thing in the architecture's header that both sides know."""
    text = re.sub(r"/\*.*?\*/", "", ARCHITECTURE.read_text(), flags=re.S)
    return re.findall(r"^enum register_id \{.*?^\};", text, flags=re.S | re.M)[0] + "\n"


def bodies(keyword: str) -> dict[str, str]:
    return dict(re.findall(rf"^{keyword} (\w+) \{{(.*?)^\}};", source() + register_ids(), flags=re.S | re.M))


def field_names(body: str) -> list[str]:
    return [name for names in re.findall(r"^\s*(?:struct )?\w+\s+(.*?);", body, re.M)
            for name in re.findall(r"(\w+)(?:\[[^]]*\])?\s*(?:,|$)", names)]  # fmt: skip


def enumerators(body: str) -> list[str]:
    return re.findall(r"(\w+)(?:\s*=\s*\w+)?\s*,", body)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, ...]]:
    """Return what the host compiler says: name to (size,) or (offset, size, signed), enumerator to (value,)."""
    lines = []
    for name, body in bodies("struct").items():
        lines.append(f'P("{name}", 1, sizeof(struct {name}), 0, 0);')
        for field in field_names(body):
            value = f"((struct {name} *)0)->{field}"
            lines.append(f'P("{name}.{field}", 3, offsetof(struct {name}, {field}), sizeof({value}), SIGNED({value}));')
    for body in bodies("enum").values():
        lines += [f'P("{name}", 1, {name}, 0, 0);' for name in enumerators(body)]
    lines += [f'P("{name}", 1, {name}, 0, 0);' for name in LIMITS]
    program = f"""
#include "{ABI}"
{register_ids()}#include <stddef.h>
#include <stdio.h>
#define IS(x, t) __builtin_types_compatible_p(__typeof__(x), t)
#define SIGNED(x) (IS(x, s32) || IS(x, s16) || IS(x, s64))
#define P(name, n, a, b, c) printf("%s %d %lld %lld %d\\n", name, n, (long long)(a), (long long)(b), (int)(c))
int main(void) {{ {" ".join(lines)} return 0; }}
"""
    folder = tmp_path_factory.mktemp("abi")
    (folder / "abi.c").write_text(program)
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", folder / "abi", folder / "abi.c"], check=True)
    out = subprocess.run([folder / "abi"], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in out.splitlines())
    return {row[0]: tuple(int(value) for value in row[2 : 2 + int(row[1])]) for row in rows}


def test_every_struct_has_a_dtype() -> None:
    assert sorted(bodies("struct")) == sorted([*STRUCTS, "event"])


def test_every_enum_has_a_class() -> None:
    assert sorted(bodies("enum")) == sorted(ENUMS)


@pytest.mark.parametrize("name", STRUCTS)
def test_struct(name: str, compiled: dict[str, tuple[int, ...]]) -> None:
    dtype = STRUCTS[name]
    assert dtype.fields is not None
    assert compiled[name] == (dtype.itemsize,)
    expected = {}
    for field, (kind, offset, *_) in dtype.fields.items():
        expected[f"{name}.{field}"] = (offset, kind.itemsize, int(kind.kind == "i"))
    assert {key: value for key, value in compiled.items() if key.startswith(f"{name}.")} == expected


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_what_its_operation_says(name: str, compiled: dict[str, tuple[int, ...]]) -> None:
    dtype = EVENTS[name]
    assert dtype.fields is not None and compiled["event"] == (dtype.itemsize,) == (events.EVENT.itemsize,)
    for field, (kind, offset, *_) in dtype.fields.items():
        if field in OWN_NAMES or (name == "change" and field == "type"):
            continue
        assert compiled[f"event.{field}"] == (offset, kind.itemsize, int(kind.kind == "i")), field


def test_every_field_of_an_event_has_a_name_here(compiled: dict[str, tuple[int, ...]]) -> None:
    named = {f"event.{field}" for dtype in EVENTS.values() for field in dtype.names or ()}
    assert {name for name in compiled if name.startswith("event.")} <= named | {"event.reserved"}


@pytest.mark.parametrize("name", ENUMS)
def test_enum(name: str, compiled: dict[str, tuple[int, ...]]) -> None:
    kind, prefix = ENUMS[name]
    in_c = {key: compiled[key][0] for key in enumerators(bodies("enum")[name]) if key != f"{prefix}COUNT"}
    assert in_c == {prefix + member.name: int(member) for member in kind}


@pytest.mark.parametrize("name", LIMITS)
def test_limit(name: str, compiled: dict[str, tuple[int, ...]]) -> None:
    assert compiled[name] == (getattr(records, name, None) or getattr(kernel_records, name),)


def test_joined_records_keep_the_layout_of_their_parts() -> None:
    assert records.ALLOCATION_RECORD.itemsize == records.KEY.itemsize + records.ALLOCATION.itemsize
    assert records.OBJECT_RECORD.itemsize == records.KEY.itemsize + records.OBJECT.itemsize
    lives = records.STACK_TOTALS["lives"].itemsize
    assert records.TOTALS_RECORD.itemsize == 8 + records.STACK_TOTALS.itemsize - lives
