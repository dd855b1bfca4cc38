"""bpf/map_table.bpf.h as Python reads it, against what a C compiler makes of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tracer.kernel.bpf import MapType
from tracer.kernel.map_table import DeclaredMap, read_map_table

BPF = Path(__file__).parents[3] / "bpf"


def test_sizes_are_those_of_the_compiler(tmp_path: Path) -> None:
    table = read_map_table(BPF)
    rooms = "".join(f"struct {name} {{ char room[{size}]; }};\n" for name, size in table.rooms.items())
    lines = "".join(
        f'printf("{one.name} %zu %zu\\n", {_size("key", one)}, {_size("value", one)});\n' for one in table.maps
    )
    source = f'#include <stdio.h>\n#include "map_table.bpf.h"\n{rooms}int main(void) {{ {lines} return 0; }}\n'
    (tmp_path / "sizes.c").write_text(source)
    subprocess.run(
        ["gcc", "-Wall", "-Werror", f"-I{BPF}", "-o", tmp_path / "sizes", tmp_path / "sizes.c"], check=True
    )  # fmt: skip
    said = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert said == [f"{one.name} {one.key_size} {one.value_size}" for one in table.maps]


def _size(part: str, one: DeclaredMap) -> str:
    kind, name = one.kind, one.name
    is_shared = kind == MapType.ARRAY and one.flags and one.key_size == 4 and name != "CONSTANTS"
    if kind == MapType.RINGBUF:
        return "(size_t)0"
    return "(size_t)4" if part == "key" and is_shared else f"sizeof({part}_of_{name})"


def test_every_map_that_is_used_is_declared() -> None:
    text = "".join(path.read_text() for path in BPF.glob("*.[ch]"))
    used = set(re.findall(r"\b(?:MAP|VALUE|map_lookup|map_update|map_delete)\((\w+)", text)) - {"name"}
    assert used <= {one.name for one in read_map_table(BPF).maps}
